"""Calibrated probabilities of several methods, and their predictions as one, by weights that validation series choose.

Probabilities are averaged in the logarithm (a geometric mean): a method that is sure of itself counts more, and one
that rules a class out is heard. Values are averaged as they are.

The weights are the mean over a coarse grid of weights, in which each counts by the likelihood that it gives the
validation series. With many series that is the best point of the grid; with few it is not far from equal weights, so
that ten series decide little. Ranks (AUROC, average precision) choose badly: a hundred positives are too few for them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from rotarymae.partners.base import Floats

GRID_STEPS = 10  # between the weights 0 and 1
MIN_PROBABILITY = 1e-6  # no method can rule a class out for good
SPREAD = 0.5  # the standard deviation of a temperature's logarithm, before any series is seen


def combine(task: str, predictions: Sequence[Floats], weights: Floats) -> Floats:
    """Return the weighted mean [S, K] of predictions: of values, or of log-probabilities, renormalised.

    Args:
        task: "regression" averages values, any other task log-probabilities.
        predictions: of each method, values or probabilities [S, K]; a probability counts as 1e-6 at least.
        weights: of the methods, in the same order; they sum to 1.
    """
    if task != "regression":
        predictions = [np.log(np.clip(one, MIN_PROBABILITY, 1)) for one in predictions]
    total = np.asarray(sum(weight * one for weight, one in zip(weights, predictions, strict=True)))
    return total if task == "regression" else softmax(total, axis=1)


def nats(task: str, predicted: Floats, truth: NDArray[Any]) -> float:
    """Return the negative log-likelihood of predictions, summed over series, in nats.

    For a regression errors are taken as normal, with the standard deviation that fits best in each output, and a
    constant is left out.

    Args:
        task: "classification", "regression" or "survival".
        predicted: probabilities [S, K], or a regression's values [S, outputs].
        truth: class numbers int [S] from 0; for survival the weights [S, K] of the intervals, and of the time after
            them, in the likelihood; for a regression values [S, outputs], NaN where one is missing, which counts
            nothing.
    """
    if task != "regression":
        return log_loss(predicted, truth)
    total = 0.0
    for guess, value in zip(predicted.T, truth.T, strict=True):
        square = np.square(guess - value)[np.isfinite(value)]
        total += 0.5 * len(square) * float(np.log(max(square.mean(), 1e-300))) if len(square) else 0.0
    return total


def choose_weights(task: str, predictions: Sequence[Floats], truth: NDArray[Any]) -> Floats:
    """Return weights [methods], which sum to 1, for `combine`.

    They are the mean over all weights in steps of a tenth, each of which counts by the likelihood that the predictions
    combined with it give the truth.

    Args:
        task: "classification", "regression" or "survival".
        predictions: of each method, probabilities [S, K] or values [S, outputs] of series that it was not fitted to.
        truth: targets of the S series, as of `nats`: class numbers int [S], values [S, outputs] with NaN where one is
            missing, or for survival weights of the intervals [S, K].
    """
    parts = itertools.product(range(GRID_STEPS + 1), repeat=len(predictions))
    grid = [np.array(steps) / GRID_STEPS for steps in parts if sum(steps) == GRID_STEPS]
    costs = np.array([nats(task, combine(task, predictions, weights), truth) for weights in grid])
    likelihood = np.exp(costs.min() - costs)
    return likelihood @ np.stack(grid) / likelihood.sum()


def temper(probabilities: Floats, temperature: float) -> Floats:
    """Return probabilities [S, K] with their logarithms divided by a temperature, renormalised.

    A temperature above 1 makes them more equal, one below 1 less.
    """
    return softmax(np.log(np.maximum(probabilities, np.finfo(float).tiny)) / temperature, axis=1)


def choose_temperature(probabilities: Floats, truth: NDArray[Any]) -> float:
    """Return the temperature for `temper` that calibrates probabilities best, between exp(-2.5) and exp(2.5).

    It maximises the likelihood of the truth times a prior: its logarithm is normal, with mean 0 and deviation 0.5.

    Args:
        probabilities: [S, K].
        truth: the true classes int [S], or weights of the classes [S, K].
    """

    def cost(log: float) -> float:
        """Return the negative log-posterior of the temperature exp(log), up to a constant."""
        return log_loss(temper(probabilities, np.exp(log)), truth) + (log / SPREAD) ** 2 / 2

    minimum = minimize_scalar(cost, bounds=(-2.5, 2.5), method="bounded")
    return float(np.exp(minimum.x))  # type: ignore[attr-defined]


def log_loss(probabilities: Floats, truth: NDArray[Any]) -> float:
    """Return the negative log-likelihood of the truth, summed over series, in nats.

    Args:
        probabilities: [S, K].
        truth: the true classes int [S] from 0, or weights of the classes [S, K]. The likelihood of a series is the
            probability of its class, or the weighted sum of all; less than 1e-6 counts as that.
    """
    known = (probabilities * truth).sum(1) if truth.ndim > 1 else probabilities[np.arange(len(truth)), truth]
    return float(-np.log(np.clip(known, MIN_PROBABILITY, 1)).sum())
