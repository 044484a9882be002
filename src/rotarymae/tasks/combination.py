"""Several methods' predictions as one, by weights that validation series choose.

Probabilities are averaged in the logarithm (a geometric mean): a method that is sure of itself counts more, and one
that rules a class out is heard. Values are averaged as they are.

The weights are the mean over a coarse grid of weights, in which each counts by the likelihood that it gives the
validation series. With many series that is the best point of the grid; with few it is not far from equal weights, so
that ten series decide little. Ranks (AUROC, average precision) choose badly: a hundred positives are too few for them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import softmax

Floats = NDArray[np.float64]

STEPS = 10  # of the grid of weights, from 0 to 1
LEAST = 1e-6  # probability, so that no method can rule a class out for good
SPREAD = 0.5  # the standard deviation of a temperature's logarithm, before any series is seen


class Probabilities:
    """How class probabilities [S, K] are combined, and how likely they make the truth, class numbers [S]."""

    def mean(self, predictions: Sequence[Floats], weights: Floats) -> Floats:
        """One prediction [S, K] from several."""
        return softmax(sum(w * np.log(np.clip(p, LEAST, 1)) for w, p in zip(weights, predictions, strict=True)), axis=1)

    def nats(self, predicted: Floats, truth: NDArray) -> float:
        """The negative logarithm of the likelihood of all series."""
        return float(-np.log(np.clip(predicted[np.arange(len(truth)), truth], LEAST, 1)).sum())

    def temperature(self, predicted: Floats, truth: NDArray) -> float:
        """By what `temper` divides the logarithms; more than 1 makes probabilities less sure.

        The most probable one, if its logarithm is normal around 0 with the deviation `SPREAD`."""

        def cost(log: float) -> float:
            return self.nats(self.temper(predicted, np.exp(log)), truth) + (log / SPREAD) ** 2 / 2

        found = minimize_scalar(cost, bounds=(-2.5, 2.5), method="bounded")
        return float(np.exp(found.x))  # type: ignore[attr-defined]

    def temper(self, predicted: Floats, temperature: float) -> Floats:
        return softmax(np.log(np.maximum(predicted, np.finfo(float).tiny)) / temperature, axis=1)


class Values:
    """The same of numbers [S, K]; in the truth NaN is missing."""

    def mean(self, predictions: Sequence[Floats], weights: Floats) -> Floats:
        return np.asarray(sum(w * p for w, p in zip(weights, predictions, strict=True)))

    def nats(self, predicted: Floats, truth: NDArray) -> float:
        """Of normal errors with the standard deviation that fits best, of each output by itself."""
        total = 0.0
        for guess, wanted in zip(predicted.T, truth.T, strict=True):
            known = np.isfinite(wanted)
            square = np.square(guess - wanted)[known]
            total += 0.5 * len(square) * float(np.log(max(square.mean(), 1e-300))) if len(square) else 0.0
        return total

    def temperature(self, predicted: Floats, truth: NDArray) -> float:
        return 1.0

    def temper(self, predicted: Floats, temperature: float) -> Floats:
        return predicted


Average = Probabilities | Values
AVERAGES: dict[str, Average] = {"classification": Probabilities(), "regression": Values()}


def choose_weights(average: Average, predictions: Sequence[Floats], truth: NDArray) -> Floats:
    """The weights [methods], which sum to 1, of predictions [S, K] for series whose truth is known."""
    parts = itertools.product(range(STEPS + 1), repeat=len(predictions))
    grid = [np.array(w) / STEPS for w in parts if sum(w) == STEPS]
    nats = np.array([average.nats(average.mean(predictions, weights), truth) for weights in grid])
    likelihood = np.exp(nats.min() - nats)
    return likelihood @ np.stack(grid) / likelihood.sum()
