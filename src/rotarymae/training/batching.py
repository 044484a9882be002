"""Batches and their order, a pure function of (seed, epoch).

Nothing remembers where it was, so a run can be resumed anywhere with the same batches.
"""

from __future__ import annotations

import numpy as np

# Batches sorted by length together: enough for batches of nearly equal lengths, few enough to stay shuffled.
POOL_BATCHES = 64


def plan(
    lengths: np.ndarray,
    seed: int,
    epoch: int,
    batch_size: int | None = None,
    batch_tokens: int | None = None,
) -> list[np.ndarray]:
    """Return the batches of one epoch, in the order of training; every example is in exactly one batch.

    Examples are shuffled and cut into pools of about 64 batches. Each pool is sorted by length and cut into batches, so
    that batches have little padding; then the pool's batches are shuffled. The same arguments always give the same
    batches. Give either `batch_size` or `batch_tokens`; the other is None.

    Args:
        lengths: [S] number of tokens of each example.
        seed: number from 0 that fixes all epochs of a run.
        epoch: number of the epoch, from 0; each has another order.
        batch_size: number of examples of a batch; a pool's last one may have fewer.
        batch_tokens: largest number of tokens of a batch, padding included; a longer example is a batch by itself.

    Returns:
        A list of batches, each an array of indices into `lengths`; [] without examples.
    """
    permute, shuffle = (np.random.default_rng([seed, epoch, stream]) for stream in (0, 1))
    order = permute.permutation(len(lengths))
    before = np.arange(len(order)) if batch_tokens is None else np.cumsum(lengths[order], dtype=np.int64)
    pool_of = before // (POOL_BATCHES * (batch_tokens or batch_size or 1))
    batches: list[np.ndarray] = []
    for pool in np.split(order, np.flatnonzero(np.diff(pool_of)) + 1):
        parts = [pool[batch] for batch in by_length(lengths[pool], batch_size, batch_tokens)]
        batches += [parts[i] for i in shuffle.permutation(len(parts))]
    return batches


def by_length(lengths: np.ndarray, batch_size: int | None = None, batch_tokens: int | None = None) -> list[np.ndarray]:
    """Sort examples by length, shortest first, and cut them into batches; return a list of arrays of indices.

    Examples of equal length stay in input order, so that the result is always the same. A batch has at most
    `batch_size` examples or, if that is None, at most `batch_tokens` tokens (see `in_order`).
    """
    order = np.argsort(lengths, kind="stable")
    return [order[cut] for cut in in_order(lengths[order], batch_size, batch_tokens)]


def in_order(lengths: np.ndarray, batch_size: int | None = None, batch_tokens: int | None = None) -> list[np.ndarray]:
    """Cut examples into batches of consecutive ones; return the batches in order, each an array of indices.

    Give either `batch_size` or `batch_tokens`; the other is None.

    Args:
        lengths: [S] number of tokens of each example.
        batch_size: number of examples of a batch, at least 1; the last one may have fewer.
        batch_tokens: largest number of tokens of a batch, padding included: each example counts as long as the longest
            of its batch. A longer example is a batch by itself.
    """
    if batch_size is not None:
        return [np.arange(i, min(i + batch_size, len(lengths))) for i in range(0, len(lengths), batch_size)]
    budget, batches, start = int(batch_tokens or 0), [], 0
    while start < len(lengths):
        # The longest so far times the number so far never falls, so the end can be searched for.
        window = np.maximum.accumulate(lengths[start : start + budget])
        room = np.searchsorted(window * np.arange(1, len(window) + 1), budget, side="right")
        batches.append(np.arange(start, start + max(1, int(room))))
        start = int(batches[-1][-1]) + 1
    return batches
