"""Batches: one training step's data, what makes them, and which examples go together.

The order is a pure function of (seed, epoch): nothing remembers where it was, so a run can be resumed anywhere with the
same batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from rotarymae.errors import InputError
from rotarymae.tokens import Tokens

# Batches sorted by length together: enough for batches of nearly equal lengths, few enough to stay shuffled.
POOL_BATCHES = 64


@dataclass(frozen=True, eq=False)
class Batch:
    """Data of one training step, or of one step of prediction, on B examples (series or arrays).

    Attributes:
        series: int [B], indices of the examples in their data set; a NumPy array, whatever the device.
        inputs: the tokens [B, N] that the encoder sees, N for each example.
        masked: the hidden tokens [B, M] whose values are to be predicted, M for each example; None where nothing is
            hidden.
        targets: of supervised training, one row for each example, in the form that the loss takes; None without.
        static: [B, F] features of each series, which a head reads next to the tokens; None without.
        log_errors: [B, M, V] logarithm of the standard error of each of the V values of a hidden token, standardised as
            the value is; None where errors are not known.
        sides: [B, M, V] kind of each hidden value: -1 for an upper limit (the value lies below it), 1 for a lower one,
            0 for a value that was measured; None where all were.
    """

    series: np.ndarray
    inputs: Tokens
    masked: Tokens | None = None
    targets: Tensor | None = None
    static: Tensor | None = None
    log_errors: Tensor | None = None
    sides: Tensor | None = None

    def to(self, device: torch.device | str) -> Batch:
        """Return the batch with tensors and tokens on `device` and `series` as it is; copies may be asynchronous."""
        there = {name: part for name, part in vars(self).items() if isinstance(part, Tensor | Tokens)}
        return replace(self, **{name: part.to(device, non_blocking=True) for name, part in there.items()})


class Examples(Protocol):
    """A data set of S examples (series or arrays), from which the training loop takes batches."""

    @property
    def lengths(self) -> np.ndarray:
        """Number of tokens of each of S examples, int [S]; a batch is made of examples with similar numbers."""
        ...

    def batch(self, index: np.ndarray, epoch: int | None) -> Batch:
        """Return the batch of the B examples at `index`, integers from 0, in this order.

        With `epoch`, a number from 0, an example has a random mask and augmentation that differ from epoch to epoch.
        With None, for evaluation, masks are the same at each call, and nothing is augmented.
        """
        ...

    def names(self, index: Sequence[int] | np.ndarray) -> list[str]:
        """Return the names of the examples at `index` (integers from 0) as text, for messages and logs."""
        ...


def plan_batches(
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

    Examples of equal length stay in input order, so that the result is always the same. Give either `batch_size` or
    `batch_tokens`; the other is None.

    Args:
        lengths: [S] number of tokens of each example.
        batch_size: number of examples of a batch, at least 1; the last one may have fewer.
        batch_tokens: largest number of tokens of a batch, padding included: each example counts as long as the longest
            of its batch. A longer example is a batch by itself.
    """
    order = np.argsort(lengths, kind="stable")
    if batch_size is not None:
        return [order[i : i + batch_size] for i in range(0, len(order), batch_size)]
    budget, batches, start = int(batch_tokens or 0), [], 0
    while start < len(order):
        longest = lengths[order[start : start + budget]]
        room = np.searchsorted(longest * np.arange(1, len(longest) + 1), budget, side="right")
        batches.append(order[start : start + max(1, int(room))])
        start += len(batches[-1])
    return batches


def normalize_index(indices: Any, count: int, noun: str) -> np.ndarray:
    """Check a selection of members, such as series of a data set, and return their numbers from 0, int64, in its order.

    Args:
        indices: a list or array of integers, of which negative ones count from the end, and which may repeat; or a
            boolean mask [count], True for members to select.
        count: number of members in all.
        noun: what messages call the members, such as "series".

    Raises:
        InputError: an index that does not exist; a mask of another length; a single number, or more than one axis;
            other types; nothing selected.
    """
    try:
        at = np.asarray(indices)
    except ValueError:  # lists of unequal length
        at = np.asarray(indices, object)
    if at.ndim != 1 or (at.size and at.dtype.kind not in "iub"):
        raise InputError(f"indices are {at.dtype} of shape {at.shape}; give a flat list, of integers or of booleans.")
    if at.dtype.kind == "b":
        if len(at) != count:
            raise InputError(f"the mask has {len(at)} entries for {count} {noun}; give a mask of {count} entries.")
        at = np.flatnonzero(at)
    if not at.size:
        raise InputError(f"none of the {count} {noun} is selected; select at least one.")
    outside = at[(at < -count) | (at >= count)]  # before a conversion, in which large unsigned numbers wrap around
    if len(outside):
        raise InputError(f"index {outside[0]} is out of range for {count} {noun}; give indices from 0 to {count - 1}.")
    return at.astype(np.int64) % count
