"""Temperatures, weights and intervals of predictions, all chosen by validation series.

Probabilities are averaged in the logarithm (a geometric mean): a method that is sure of itself counts more, and one
that rules a class out is heard. Values are averaged as they are.

The weights are the mean over a coarse grid of weights, in which each counts by the likelihood that it gives the
validation series. With many series that is the best point of the grid; with few it is not far from equal weights, so
that ten series decide little. Ranks (AUROC, average precision) choose badly: a hundred positives are too few for them.

Intervals of predicted numbers are those of split conformal prediction (Vovk et al. 2005; Lei et al. 2018, JASA 113).
The absolute errors of validation series, from which no weight was learnt, are kept. Of n of them, in order, the one at
share · (n + 1) is half the width of an interval that holds the value of a further series with this probability,
whatever the errors' distribution, if the series are of the same kind. Between two of them it is interpolated: the next
larger one, as in the papers, would hold 0.95 instead of 0.9 with 18 errors.
"""

from __future__ import annotations

import itertools
import math
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
INTERVAL = 0.9  # share of values in the intervals that are written next to predictions
MAX_ERRORS = 1000  # that are kept of each output; of more, even steps of their order


def combine(task: str, predictions: Sequence[Floats], weights: Floats) -> Floats:
    """Average the predictions of several methods by weight; return the result [S, K].

    Values of a regression are averaged as they are. For probabilities the logarithms are averaged; the result is scaled
    so that each series' probabilities sum to 1.

    Args:
        task: "regression" averages values; "classification" and "survival" average log-probabilities.
        predictions: an array [S, K] for each method: values of K outputs, or probabilities of K classes or time
            intervals. A probability counts as 1e-6 at least.
        weights: weights of the methods, in the same order; they sum to 1.
    """
    if task != "regression":
        predictions = [np.log(np.clip(one, MIN_PROBABILITY, 1)) for one in predictions]
    total = np.asarray(sum(weight * one for weight, one in zip(weights, predictions, strict=True)))
    return total if task == "regression" else softmax(total, axis=1)


def nats(task: str, predicted: Floats, truth: NDArray[Any]) -> float:
    """Return the negative log-likelihood of predictions, summed over series, in nats (natural logarithms).

    A probability below 1e-6 counts as 1e-6. Errors of a regression are taken to be normal, with the standard deviation
    that fits best in each output; an additive constant is left out.

    Args:
        task: "classification", "regression" or "survival".
        predicted: probabilities [S, K] of K classes or time intervals, or a regression's values [S, outputs].
        truth: class numbers int [S] from 0; for survival [S, K] from 0 to 1, how much of each interval (the last is the
            time after all others) may hold the series' event; for a regression values [S, outputs], NaN where one is
            missing.
    """
    if task != "regression":
        return log_loss(predicted, truth)
    total = 0.0
    for guess, value in zip(predicted.T, truth.T, strict=True):
        square = np.square(guess - value)[np.isfinite(value)]
        total += 0.5 * len(square) * float(np.log(max(square.mean(), 1e-300))) if len(square) else 0.0
    return total


def choose_weights(task: str, predictions: Sequence[Floats], truth: NDArray[Any]) -> Floats:
    """Return the weights [methods] with which `combine` should average the methods' predictions; they sum to 1.

    They are an average over all possible weights in steps of a tenth, each counting in proportion to the likelihood of
    the truth under predictions that are combined with it. Few series therefore give nearly equal weights.

    Args:
        task: "classification", "regression" or "survival".
        predictions: for each method probabilities [S, K] of K classes or time intervals, or values [S, outputs], of
            series that it was not fitted to.
        truth: targets of these S series: class numbers int [S] from 0; values [S, outputs], NaN where one is missing;
            or for survival [S, K] from 0 to 1, how much of each interval may hold the series' event.
    """
    parts = itertools.product(range(GRID_STEPS + 1), repeat=len(predictions))
    grid = [np.array(steps) / GRID_STEPS for steps in parts if sum(steps) == GRID_STEPS]
    costs = np.array([nats(task, combine(task, predictions, weights), truth) for weights in grid])
    likelihood = np.exp(costs.min() - costs)
    return likelihood @ np.stack(grid) / likelihood.sum()


def temper(probabilities: Floats, temperature: float) -> Floats:
    """Divide the logarithms of probabilities [S, K] by a temperature; return new probabilities [S, K] of sum 1.

    A temperature above 1 makes the K probabilities of a series more equal, one below 1 less equal.
    """
    return softmax(np.log(np.maximum(probabilities, np.finfo(float).tiny)) / temperature, axis=1)


def choose_temperature(probabilities: Floats, truth: NDArray[Any]) -> float:
    """Return the temperature, between exp(-2.5) and exp(2.5), with which `temper` calibrates probabilities best.

    It maximises the likelihood of the truth times a prior, which keeps it near 1 if there are few series: the logarithm
    of the temperature is normal, with mean 0 and standard deviation 0.5.

    Args:
        probabilities: [S, K] of K classes or time intervals, of series that the method was not fitted to.
        truth: the true classes int [S] from 0; or for survival [S, K] from 0 to 1, how much of each interval may hold
            the series' event (see `log_loss`).
    """

    def cost(log: float) -> float:
        """Return the negative log-posterior of the temperature exp(log), up to a constant."""
        return log_loss(temper(probabilities, np.exp(log)), truth) + (log / SPREAD) ** 2 / 2

    minimum = minimize_scalar(cost, bounds=(-2.5, 2.5), method="bounded")
    return float(np.exp(minimum.x))  # type: ignore[attr-defined]


def log_loss(probabilities: Floats, truth: NDArray[Any]) -> float:
    """Return the negative log-likelihood of true classes or event times, summed over series, in natural units (nats).

    Args:
        probabilities: [S, K] of K classes or time intervals.
        truth: the true classes int [S] from 0; or [S, K] from 0 to 1, how much of each interval may hold the series'
            event. The likelihood of a series is the probability of its class, or sum(probabilities · truth), at least
            1e-6.
    """
    known = (probabilities * truth).sum(1) if truth.ndim > 1 else probabilities[np.arange(len(truth)), truth]
    return float(-np.log(np.clip(known, MIN_PROBABILITY, 1)).sum())


def sorted_errors(predicted: Floats, truth: Floats) -> list[list[float]]:
    """Return the absolute errors of predictions in ascending order, a list per output, for the widths of intervals.

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
