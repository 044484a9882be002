"""Score predicted times to an event, of which some are censored: Kaplan-Meier, concordance, Brier score.

Times are [S] durations, and events [S] whether each ended in the event or was censored.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def kaplan_meier(time: ArrayLike, event: ArrayLike, at: ArrayLike, before: bool = False) -> Floats:
    """Return the share [T] of series without the event after each time (Kaplan & Meier 1958).

    Args:
        time, event: duration of each series, and whether it ended in the event.
        at: times [T]; beyond the longest duration the share stays constant.
        before: return the share just before each time instead.
    """
    time, event = np.asarray(time, np.float64), np.asarray(event, bool)
    return _product_limit(time, event, np.zeros(0), at, before)


def censoring(time: ArrayLike, event: ArrayLike, at: ArrayLike, before: bool = False) -> Floats:
    """Return the share [T] of series not yet censored at each time; arguments as in `kaplan_meier`.

    At equal times events come first.
    """
    time, event = np.asarray(time, np.float64), np.asarray(event, bool)
    return _product_limit(time, ~event, time[event], at, before)


def _product_limit(time: Floats, ends: NDArray[np.bool_], earlier: Floats, at: ArrayLike, before: bool) -> Floats:
    """Return the product-limit estimate [T] at given times.

    Args:
        time: durations of all series.
        ends: which of them ended in the outcome that is counted.
        earlier: durations of series that leave the risk set before the outcomes of the same time.
        at, before: as in `kaplan_meier`.
    """
    steps, counts = np.unique(time[ends], return_counts=True)
    at_risk = len(time) - np.searchsorted(np.sort(time), steps, side="left")
    known = np.sort(earlier)
    at_risk = at_risk - (np.searchsorted(known, steps, side="right") - np.searchsorted(known, steps, side="left"))
    curve = np.concatenate([[1.0], np.cumprod(1 - counts / at_risk)])
    return curve[np.searchsorted(steps, np.asarray(at, np.float64), side="left" if before else "right")]


def concordance(time: ArrayLike, event: ArrayLike, predicted: ArrayLike) -> float:
    """Return Harrell's concordance: the share of pairs predicted in their true order, among those with a known one.

    The order is known where the earlier one ended in the event; at equal times an event comes before a censored one,
    and two events are no pair. Equal predictions count half. NaN without a pair.

    Args:
        predicted: [S] larger for longer times.
    """
    time, event = np.asarray(time, np.float64), np.asarray(event, bool)
    rank = np.unique(predicted, return_inverse=True)[1].reshape(-1)
    # Of two events at one time neither may count: the order of these puts them where they do not.
    falling, rising = np.lexsort((-rank, ~event, time)), np.lexsort((rank, ~event, time))
    larger = _later_and_larger(rank[falling], event[falling])
    smaller = _later_and_larger(-rank[rising], event[rising])
    ends, counts = np.unique(time[event], return_counts=True)
    later = len(time) - np.searchsorted(np.sort(time), ends, side="left") - counts
    pairs = int((later * counts).sum())
    return float((larger + (pairs - larger - smaller) / 2) / pairs) if pairs else np.nan


def _later_and_larger(rank: NDArray[np.int64], counts: NDArray[np.bool_]) -> int:
    """Return the number of pairs i < j with rank[i] < rank[j], for i where `counts` is True, by merging halves."""
    size = 1 << max(len(rank) - 1, 0).bit_length()
    low = np.full(size - len(rank), rank.min(initial=0))  # padding is later than all, and larger than none
    rank, counts = np.concatenate([rank, low]), np.concatenate([counts, np.zeros(len(low), bool)])
    total, half = 0, 1
    while half < size:
        blocks, counted = rank.reshape(-1, 2 * half), counts.reshape(-1, 2 * half)
        # Of equal ranks those of the right half come first, so that they are not counted as larger.
        order = np.argsort(np.concatenate([blocks[:, half:], blocks[:, :half]], 1), axis=1, kind="stable")
        right = order < half
        larger = right.sum(1, keepdims=True) - right.cumsum(1)
        left = np.take_along_axis(np.concatenate([counted[:, half:], counted[:, :half]], 1), order, 1) & ~right
        total += int(larger[left].sum())
        half *= 2
    return total


def brier_scores(time: ArrayLike, event: ArrayLike, survival: Floats, at: ArrayLike) -> Floats:
    """Return the Brier score [T] of predicted survival [S, T], weighted for censoring (Graf et al. 1999).

    Each series has as weight the inverse of the probability that it was not censored before; one that was censored
    before a time counts nothing there.

    Args:
        survival: probabilities of no event until each time.
        at: ascending times [T], before the last duration.
    """
    time, event, at = np.asarray(time, np.float64), np.asarray(event, bool), np.asarray(at, np.float64)
    ended = (time[:, None] <= at) & event[:, None]
    weight = ended / np.maximum(censoring(time, event, time, before=True), 1e-12)[:, None]
    weight = weight + (time[:, None] > at) / np.maximum(censoring(time, event, at), 1e-12)
    return (weight * np.square(survival - ~ended)).mean(0)


def integrated_brier_score(time: ArrayLike, event: ArrayLike, survival: Floats, at: ArrayLike) -> float:
    """Return the Brier score averaged over the span of the times; for one time the score itself.

    Arguments are those of `brier_scores`.
    """
    scores, at = brier_scores(time, event, survival, at), np.asarray(at, np.float64)
    return float(np.trapezoid(scores, at) / (at[-1] - at[0]) if len(at) > 1 else scores.mean())
