"""From probabilities to a class: the most probable one, or one that rare classes reach more easily.

The class k is taken whose probability times a weight w[k] is largest. With the share s[k] of class k in training:

- accuracy: w[k] = 1, so that the most probable class is taken.
- balanced: w[k] = 1 / s[k], so that every class is found as often, whatever its share.
- f1: w[k] = s[k]^-a, with the a from 0 to 1.5 that gives the best F1 on series that training did not see: of the rarer
  of two classes, or on average over more.
- cost: w[k] is what it costs to miss a series of class k.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rotarymae.errors import InputError, choose
from rotarymae.partners.base import Floats

WAYS = ("accuracy", "f1", "balanced", "cost")
EXPONENTS = np.linspace(0, 1.5, 61)
RESAMPLES = 30  # of the series that choose the exponent: a threshold between two of a few positives is chance


def decide(probabilities: Floats, weights: Sequence[float] | Floats = ()) -> NDArray[np.int64]:
    """Return the class numbers [S] for probabilities [S, K] and weights [K], or [S, K] of each series.

    Without weights, those of the most probable classes.
    """
    return (probabilities * np.asarray(weights) if len(weights) else probabilities).argmax(1)


def decision_weights(
    by: str,
    counts: NDArray[np.integer],
    probabilities: Floats,
    truth: NDArray[np.integer],
    costs: Sequence[float] = (),
) -> tuple[float, ...]:
    """Return the weight of each class; () for accuracy, and where no series can choose.

    Args:
        counts: [K] training series of each class.
        probabilities: [S, K] of series that training did not see.
        truth: [S] their classes.
        costs: [K] for by="cost".

    Raises:
        InputError: another name, or costs that are not one positive number for each class.
    """
    check_decide(by, costs, len(counts))
    if by == "cost":
        return tuple(float(cost) for cost in costs)
    share = np.maximum(counts, 1) / np.maximum(counts, 1).sum()
    if by == "balanced":
        return tuple((1 / share).tolist())
    if by == "accuracy" or not len(truth):
        return ()
    best = _best_exponent(share, probabilities, truth)
    return tuple((share**-best).tolist())


def check_decide(by: str, costs: Sequence[float], classes: int) -> None:
    """Raise InputError for another name, or for costs that are not one positive number for each class."""
    choose("decide", by, WAYS)
    if by == "cost" and (len(costs) != classes or not all(np.isfinite(cost) and cost > 0 for cost in costs)):
        raise InputError(f"costs are {list(costs)}; wanted {classes} positive numbers, one for each class.")
    if by != "cost" and costs:
        raise InputError(f"costs have no effect with decide={by!r}; leave them out, or say decide='cost'.")


def _best_exponent(share: Floats, probabilities: Floats, truth: NDArray[Any]) -> float:
    draw = np.random.default_rng(0)
    drawn = draw.multinomial(len(truth), np.full(len(truth), 1 / len(truth)), size=RESAMPLES).astype(np.float64)
    classes = np.array([share.argmin()]) if len(share) == 2 else np.arange(len(share))
    true = truth[:, None] == classes
    scores = []
    for exponent in EXPONENTS:
        decided = decide(probabilities, share**-exponent)[:, None] == classes
        f1 = 2 * (drawn @ (true & decided)) / np.maximum(drawn @ true.astype(float) + drawn @ decided.astype(float), 1)
        scores.append(f1.mean())
    return float(EXPONENTS[np.argmax(scores)])  # the first of equals: nearest to the most probable class
