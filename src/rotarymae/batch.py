"""Batches: one training step's data, made of a data set with masks and augmentation.

Everything that is drawn is a pure function of (seed, epoch, example): it does not depend on batch, process or worker.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from rotarymae.counter_rng import Noise, counter_uniform, standard_normal
from rotarymae.errors import InputError
from rotarymae.masking import Masking, split
from rotarymae.tokens import Tokens, compact, round_up, rounding_step


@dataclass(frozen=True, eq=False)
class Batch:
    """Data of one step.

    Attributes:
        series: [B] indices of the examples in their data set, on the host.
        inputs: the tokens that the encoder sees.
        masked: the hidden tokens, in pre-training only.
        targets: labels [B] or values, in supervised training only.
        static: [B, F] features of each series, which a head reads next to the series; None without.
        log_errors: [B, M, V] logarithm of the standard error of each hidden value, standardised as the value is; None
            where errors are not known.
    """

    series: np.ndarray
    inputs: Tokens
    masked: Tokens | None = None
    targets: Tensor | None = None
    static: Tensor | None = None
    log_errors: Tensor | None = None

    def to(self, device: torch.device | str) -> Batch:
        there = {name: part for name, part in vars(self).items() if isinstance(part, Tensor | Tokens)}
        return replace(self, **{name: part.to(device, non_blocking=True) for name, part in there.items()})


class Examples(Protocol):
    """Data as the training loop takes them."""

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each example [S]."""
        ...

    def batch(self, index: np.ndarray, epoch: int | None) -> Batch:
        """Return the batch of these examples; epoch None gives the fixed one that evaluation uses."""
        ...

    def names(self, index: Sequence[int] | np.ndarray) -> list[str]:
        """Return the names of these examples in messages and logs."""
        ...


class DatasetExamples(ABC):
    """Make batches of tokens from a data set; a subclass says how.

    Args:
        dataset: series or arrays; a batch's index is of its members.
        preprocessor: fitted on the data set, or one that has checked it (`Preprocessor.check`).
        seed: of masks and augmentation.
        masking: how tokens are hidden, for pre-training; a new draw each epoch, a fixed one for evaluation.
        targets: labels (integers) or values, one row per member, for supervised training.
        drop: augmentation; up to this share of a member's tokens is left out, drawn anew each epoch.
        noise: augmentation; standard deviation of normal noise added to standardised values.
        early: augmentation; half of the members end after a random number of their tokens, drawn anew each epoch.
    """

    def __init__(
        self,
        dataset: Any,
        preprocessor: Any,
        seed: int = 0,
        masking: Masking | None = None,
        targets: np.ndarray | None = None,
        drop: float = 0.0,
        noise: float = 0.0,
        early: bool = False,
    ) -> None:
        if not 0 <= drop < 1 or noise < 0:
            raise InputError(f"drop {drop}, noise {noise}; wanted 0 <= drop < 1 and noise >= 0.")
        if targets is not None and len(targets) != len(dataset):
            raise InputError(f"{len(targets)} targets for {len(dataset)} {dataset.noun}; wanted one each.")
        self.dataset, self.preprocessor, self.lengths = dataset, preprocessor, preprocessor.lengths(dataset)
        self.seed, self.masking, self.drop, self.noise, self.early = seed, masking, drop, noise, early
        self.targets = None if targets is None else torch.as_tensor(targets)

    @abstractmethod
    def tokens(self, index: np.ndarray, epoch: int | None) -> Tokens:
        """Return the members at `index`, as this epoch sees them before augmentation and masks."""

    def names(self, index: Sequence[int] | np.ndarray) -> list[str]:
        return [str(name) for name in self.dataset.ids[np.asarray(index, np.int64)]]

    def batch(self, index: np.ndarray, epoch: int | None) -> Batch:
        tokens, masked = self.tokens(index, epoch), None
        step = rounding_step(tokens.length)
        if epoch is not None:
            tokens = self._augmented(tokens, index, epoch)
        if self.masking is not None:
            tokens, masked = self._split_at_random(self.masking, tokens, index, epoch)
        targets = None if self.targets is None else self.targets[torch.from_numpy(index)]
        return Batch(index, round_up(tokens, step), None if masked is None else round_up(masked, step), targets)

    def _augmented(self, tokens: Tokens, index: np.ndarray, epoch: int) -> Tokens:
        dropped, noisy, cut = (counter_uniform(self.seed, epoch, index, stream) for stream in (1, 2, 5))
        if self.early:
            tokens = cut_tokens(tokens, cut)
        if self.drop > 0:
            tokens = drop_tokens(tokens, self.drop, dropped)
        if self.noise > 0:
            features = self.preprocessor.features  # further inputs stay as they are
            normal = standard_normal(noisy(tokens.length * features)).view(*tokens.values.shape[:2], features)
            normal = torch.nn.functional.pad(normal, (0, tokens.features - features))
            tokens = replace(tokens, values=tokens.values + self.noise * normal, check_values=False)
        return tokens

    def split(self, tokens: Tokens, mask: Bool[Tensor, "B K"]) -> tuple[Tokens, Tokens]:
        """Return (visible, masked), by a mask over `units`."""
        return split(tokens, mask)

    def units(self, tokens: Tokens) -> Tokens:
        """Return what a mask hides one by one: the tokens."""
        return tokens

    def _split_at_random(
        self, masking: Masking, tokens: Tokens, index: np.ndarray, epoch: int | None
    ) -> tuple[Tokens, Tokens]:
        # Evaluation draws from a stream of its own: the same masks in every epoch and for every model.
        hidden = counter_uniform(self.seed, -1 if epoch is None else epoch, index)
        # One phase an epoch; evaluation draws row by row, so that its masks do not depend on anything else.
        phase = None if epoch is None else float(counter_uniform(self.seed, epoch, [-1])(1))
        mask = masking(self.units(tokens), hidden, phase)
        # One process's part of a batch may be rows in which there is nothing to hide; its part of the loss is 0.
        return self.split(tokens, mask) if mask.any() else (tokens, _nothing(tokens))


def cut_tokens(tokens: Tokens, draw: Noise) -> Tokens:
    """End half of the rows, which are in the order of time, after a random number of tokens."""
    uniform, real = draw(2), tokens.real
    kept = torch.where(uniform[:, :1] < 0.5, 1.0, uniform[:, 1:]) * real.sum(1, keepdim=True)
    return compact(tokens, real & (torch.arange(tokens.length) < kept.ceil().clamp(min=1)))


def drop_tokens(tokens: Tokens, most: float, draw: Noise) -> Tokens:
    """Leave out a random share, up to `most`, of each row's tokens; at least one stays."""
    uniform = draw(tokens.length + 1)
    share, uniform = most * uniform[:, :1], uniform[:, 1:]
    keep = tokens.real & (uniform >= share)
    # A row that would become empty keeps the token with the largest draw.
    largest = uniform.masked_fill(~tokens.real, -1.0).argmax(1, keepdim=True)
    return compact(tokens, keep.scatter(1, largest, True))


def normalize_index(indices: Any, count: int, noun: str) -> np.ndarray:
    """Return indices in [0, count), int64, from integers, also negative ones, or a boolean mask.

    Raises:
        InputError: an index that does not exist, a mask of another length, nothing selected.
    """
    at = np.asarray(indices)
    if at.ndim != 1 or (at.size and at.dtype.kind not in "iub"):
        raise InputError(f"indices are a flat list of integers or booleans, not {at.dtype} of shape {at.shape}.")
    if at.dtype.kind == "b":
        if len(at) != count:
            raise InputError(f"the mask has {len(at)} entries for {count} {noun}; give one for each.")
        at = np.flatnonzero(at)
    if not at.size:
        raise InputError(f"none of the {count} {noun} is selected; select at least one.")
    at = at.astype(np.int64)
    outside = at[(at < -count) | (at >= count)]
    if len(outside):
        raise InputError(f"{noun} {outside[0]}, counted from 0, was asked for and there are {count}.")
    return at % count


def _nothing(like: Tokens) -> Tokens:
    """Return as many rows with nothing in them: one token of padding each."""
    values, positions = like.values[:, :1] * 0, like.positions[:, :1] * 0
    return Tokens(values, positions, torch.ones(values.shape[:2], dtype=torch.bool), check_values=False)
