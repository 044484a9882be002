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
    """Return the absolute errors of each output, an ascending list for each; of more than 1000, evenly spaced 1000.

    Args:
        predicted, truth: values [S, outputs] of series that training did not see. An error that is not finite, as of a
            missing value, is left out.
    """
    every = []
    for error in np.abs(predicted - truth).T:
        error = np.sort(error[np.isfinite(error)])
        steps = np.linspace(0, len(error) - 1, min(len(error), MAX_ERRORS)).round().astype(np.int64)
        every.append(error[steps].tolist())
    return every


def least_errors(share: float) -> int:
    """Return the least number of errors for an interval that holds a share of values, such as 9 for the share 0.9."""
    return math.ceil(share / (1 - share) - 1e-9)


def half_widths(errors: Sequence[Sequence[float]], share: float) -> NDArray[np.float64] | None:
    """Return half widths [outputs] of intervals around predictions that hold a share of the true values.

    Args:
        errors: of each output the absolute errors of validation series, ascending, as `sorted_errors` returns them.
        share: of the true values inside, such as 0.9; more than 0 and less than 1.

    Returns:
        A prediction ± its half width is the interval, in the unit of the output. None if there are no outputs, or fewer
        than `least_errors(share)` errors of one.
    """
    if not errors or min(map(len, errors)) < least_errors(share):
        return None
    return np.array([np.interp(share * (len(one) + 1), np.arange(len(one)) + 1, one) for one in errors])
