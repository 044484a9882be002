"""Temperatures: how sure probabilities are made to be, so that they say how often they are right."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from rotarymae.partners.base import Floats

MIN_PROBABILITY = 1e-6  # no method can rule a class out for good
SPREAD = 0.5  # the standard deviation of a temperature's logarithm, before any series is seen


def temper(probabilities: Floats, temperature: float) -> Floats:
    """Divide the logarithms of probabilities [S, K] by a temperature; more than 1 makes them less sure."""
    return softmax(np.log(np.maximum(probabilities, np.finfo(float).tiny)) / temperature, axis=1)


def choose_temperature(probabilities: Floats, truth: NDArray[np.integer]) -> float:
    """Return the most probable temperature, given the classes [S], if its logarithm is normal around 0."""

    def cost(log: float) -> float:
        return log_loss(temper(probabilities, np.exp(log)), truth) + (log / SPREAD) ** 2 / 2

    found = minimize_scalar(cost, bounds=(-2.5, 2.5), method="bounded")
    return float(np.exp(found.x))  # type: ignore[attr-defined]


def log_loss(probabilities: Floats, truth: NDArray[np.integer]) -> float:
    """Return the negative logarithm of the likelihood of all classes [S]."""
    return float(-np.log(np.clip(probabilities[np.arange(len(truth)), truth], MIN_PROBABILITY, 1)).sum())
