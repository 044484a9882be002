"""Intervals of predicted numbers, by split conformal prediction (Vovk et al. 2005; Lei et al. 2018, JASA 113).

The absolute errors of validation series, from which no weight was learnt, are kept. Of n of them, in order, the one at
share · (n + 1) is half the width of an interval that holds the value of a further series with this probability,
whatever the errors' distribution, if the series are of the same kind. Between two of them it is interpolated: the next
larger one, as in the papers, would hold 0.95 instead of 0.9 with 18 errors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rotarymae.partners.base import Floats

INTERVAL = 0.9  # share of values in the intervals that are written next to predictions
MAX_ERRORS = 1000  # that are kept of each output; of more, even steps of their order


def sorted_errors(predicted: Floats, truth: Floats) -> list[list[float]]:
    """Return the absolute errors of predictions in ascending order, a list for each output.

    If an output has more than 1000, 1000 of them are kept, at even steps from the smallest to the largest. Errors that
    are not finite, because a value is missing (NaN), are left out.

    Args:
        predicted, truth: values [S, outputs] of S series that training did not see.
    """
    every = []
    for error in np.abs(predicted - truth).T:
        error = np.sort(error[np.isfinite(error)])
        steps = np.linspace(0, len(error) - 1, min(len(error), MAX_ERRORS)).round().astype(np.int64)
        every.append(error[steps].tolist())
    return every


def least_errors(share: float) -> int:
    """Return how many validation errors are needed for an interval that holds a given share of new values.

    It is the smallest n with share · (n + 1) ≤ n: 9 for the share 0.9, and 19 for 0.95.

    Args:
        share: more than 0 and less than 1.
    """
    return math.ceil(share / (1 - share) - 1e-9)


def half_widths(errors: Sequence[Sequence[float]], share: float) -> NDArray[np.float64] | None:
    """Return the half-width of the prediction interval of each output, so that it holds a given share of true values.

    Args:
        errors: for each output the absolute errors on validation series in ascending order, from `sorted_errors`.
        share: the share of true values inside, such as 0.9; more than 0 and less than 1.

    Returns:
        float64 [outputs], each in the unit of its output: the interval is prediction ± this number. None if there are
        no outputs, or if one of them has too few errors (less than `least_errors(share)`).
    """
    if not errors or min(map(len, errors)) < least_errors(share):
        return None
    return np.array([np.interp(share * (len(one) + 1), np.arange(len(one)) + 1, one) for one in errors])
