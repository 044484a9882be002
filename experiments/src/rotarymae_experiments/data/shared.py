"""The parts of a data set, predictions, errors and draws of points that several data sets share."""

from typing import Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Part = TypeVar("Part")


class Parts(NamedTuple, Generic[Part]):
    """The training, validation and test part of a data set: the parts themselves, or the indices [n] of examples."""

    train: Part
    validation: Part
    test: Part


class Posterior(NamedTuple):
    """The exact prediction of each of N points of S series: mean and standard deviation, both [S, N] float64."""

    mean: NDArray[np.float64]
    std: NDArray[np.float64]


def mse(predicted: ArrayLike, targets: ArrayLike) -> float:
    """Return the mean squared error over all values; both have one shape."""
    return float(np.square(np.asarray(predicted, np.float64) - np.asarray(targets)).mean())


def draw_seen(rng: np.random.Generator, n: int, points: int, seen: int | NDArray[np.int64]) -> NDArray[np.bool_]:
    """Draw which of its points each of n series shows: return a mask [n, points], True where a point is seen.

    `seen` is the number of points to show, one for all series, or an array [n, 1] with one for each.
    """
    return rng.random((n, points)).argsort(axis=1).argsort(axis=1) < seen
