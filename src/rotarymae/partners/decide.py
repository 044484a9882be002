"""From probabilities to a class: the most probable one, or one that rare classes reach more easily.

The class k is taken whose probability times a weight w[k] is largest. With the share s[k] of class k in training:

- accuracy: w[k] = 1, so that the most probable class is taken.
- balanced: w[k] = 1 / s[k], so that every class is recognised equally often, whatever its share.
- f1: w[k] = c[k] s[k]^-a, with the a from 0 to 1.5 that gives the largest expected F1, by the probabilities of series
  that training did not see: of the rarer of two classes, or on average over more. The factors c make the mean
  probability of each class its share.
- auto: f1 where the rarer of two classes has less than a fifth of the training series, else accuracy. A rare class is
  seldom the most probable one, so that accuracy would hardly ever name it.
- cost: w[k] is what it costs to miss a series of class k.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rotarymae.partners.base import Floats
from rotarymae.partners.combine import MIN_PROBABILITY

RARE = 0.2  # the share of the training series below which the rarer of two classes is sought
EXPONENTS = np.linspace(0, 1.5, 61)
PRIOR_STEPS = 50  # until mean probabilities are the shares


def decide(probabilities: Floats, weights: Sequence[float] | Floats = ()) -> NDArray[np.int64]:
    """Return the class of each of S series, int [S] from 0: the one with the largest probability times weight.

    Of equally large ones the first is taken.

    Args:
        probabilities: [S, K] of S series and K classes.
        weights: a weight of each class [K], or of each class for each series [S, K]; () means equal weights.
    """
    return (probabilities * np.asarray(weights) if len(weights) else probabilities).argmax(1)


def resolve(by: str, counts: NDArray[np.integer]) -> str:
    """Return the rule by which a class is chosen from probabilities: `by`, but "f1" or "accuracy" in place of "auto".

    "auto" becomes "f1" if there are two classes and the rarer one has less than a fifth of the training series, else
    "accuracy".

    Args:
        by: "accuracy", "f1", "balanced", "cost" or "auto".
        counts: [K] number of training series of each of K classes.
    """
    if by != "auto":
        return by
    return "f1" if len(counts) == 2 and counts.min() < RARE * counts.sum() else "accuracy"


def decision_weights(
    by: str, counts: NDArray[np.integer], probabilities: Floats, costs: Sequence[float] = ()
) -> tuple[float, ...]:
    """Return the K class weights by which `decide` multiplies probabilities for the rule `by`; () means equal weights.

    Args:
        by: the rule. "accuracy": equal weights; "balanced": the inverse of each class's share of the training series;
            "f1": the weights with the largest expected F1; "cost": the weights are `costs`; "auto": "f1" or "accuracy"
            (see `resolve`).
        counts: [K] number of training series of each class; a class without series counts as if it had one.
        probabilities: [S, K] of series that training did not see. Only "f1" reads them; without series it returns ().
        costs: [K] positive numbers, which only "cost" reads.
    """
    by = resolve(by, counts)
    if by == "cost":
        return tuple(float(cost) for cost in costs)
    share = np.maximum(counts, 1) / np.maximum(counts, 1).sum()
    if by == "balanced":
        return tuple((1 / share).tolist())
    if by == "accuracy" or not len(probabilities):
        return ()
    return tuple(_best_for_f1(share, probabilities).tolist())


def _best_for_f1(share: Floats, probabilities: Floats) -> Floats:
    """Return the weights [K] of K classes with which `decide` gets the largest expected F1; the largest weight is 1.

    First, each class gets a factor that makes its mean probability equal to its share in training. Then weights are
    tried that favour rare classes more and more: (1 / share) to the powers `EXPONENTS`, from 0 to 1.5. The weights with
    the largest F1, times the factors, are returned.

    F1 is that of the rarer of two classes, or the mean over more. It is computed from expected counts, in which a
    series belongs to class k with its probability. With true classes, the best weights for a rare class would be mostly
    chance.

    Args:
        share: [K] share of each class in training; they sum to 1.
        probabilities: [S, K] of series that training did not see.
    """
    prior = np.ones(len(share))
    for _ in range(PRIOR_STEPS):
        prior *= share / _reweighted(probabilities, prior).mean(0)
    matched = _reweighted(probabilities, prior)
    classes = np.array([share.argmin()]) if len(share) == 2 else np.arange(len(share))
    likely, best = matched[:, classes], (-1.0, prior)
    for exponent in EXPONENTS:
        weights = share**-exponent
        decided = decide(matched, weights)[:, None] == classes
        f1 = float((2 * (likely * decided).sum(0) / (likely.sum(0) + decided.sum(0))).mean())
        if f1 > best[0]:  # the first of equals: nearest to the most probable class
            best = (f1, prior * weights)
    return best[1] / best[1].max()


def _reweighted(probabilities: Floats, weights: Floats) -> Floats:
    """Multiply probabilities [S, K] by the weights [K] of the classes, and scale each row to the sum 1 again.

    A probability below 1e-6 counts as 1e-6.
    """
    weighted = np.maximum(probabilities, MIN_PROBABILITY) * weights
    return weighted / weighted.sum(1, keepdims=True)
