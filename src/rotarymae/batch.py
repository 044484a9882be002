"""What one training step reads, what the training loop needs of its data, and what it does to tokens at random.

Everything that is drawn is a pure function of (seed, epoch, example): it does not depend on batch, process or worker.
"""

from __future__ import annotations

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
from rotarymae.tokens import Tokens, compact


@dataclass(frozen=True, eq=False)
class Batch:
    """What one step reads.

    Attributes:
        series: [B] indices of the examples in their data set, on the host.
        inputs: the tokens that the encoder sees.
        masked: the hidden tokens, in pre-training only.
        targets: labels [B] or values, in supervised training only.
        static: [B, F] features of each series, which a head reads beside the series; None without.
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
        return replace(
            self,
            inputs=self.inputs.to(device, non_blocking=True),
            masked=None if self.masked is None else self.masked.to(device, non_blocking=True),
            targets=None if self.targets is None else self.targets.to(device, non_blocking=True),
            static=None if self.static is None else self.static.to(device, non_blocking=True),
            log_errors=None if self.log_errors is None else self.log_errors.to(device, non_blocking=True),
        )


class Examples(Protocol):
    """What the training loop needs of its data."""

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each example [S]."""
        ...

    def batch(self, index: np.ndarray, epoch: int | None) -> Batch:
        """The batch of these examples; epoch None asks for the fixed one that evaluation uses."""
        ...

    def identity(self) -> dict[str, Any]:
        """All that the batches are made of, as JSON, targets included: a run is resumed only with the same."""
        ...

    def names(self, index: Sequence[int] | np.ndarray) -> list[str]:
        """What messages and logs call these examples."""
        ...


def check_augmentation(drop: float, noise: float) -> None:
    """Raises InputError for a share or a deviation that cannot be."""
    if not 0 <= drop < 1 or noise < 0:
        raise InputError(f"drop {drop}, noise {noise}; wanted 0 <= drop < 1 and noise >= 0.")


def augment(
    tokens: Tokens, index: np.ndarray, epoch: int | None, seed: int, drop: float, noise: float, features: int
) -> Tokens:
    """Tokens as one epoch of training sees them; as they are for epoch None.

    Args:
        tokens: of the examples at `index`.
        drop: up to this share of an example's tokens is left out.
        noise: the standard deviation of normal noise added to the first `features` values of each token.
    """
    if epoch is None:
        return tokens
    dropped, noisy = (counter_uniform(seed, epoch, index, stream) for stream in (1, 2))
    if drop > 0:
        tokens = drop_tokens(tokens, drop, dropped)
    if noise > 0:
        normal = standard_normal(noisy(tokens.length * features)).view(*tokens.values.shape[:2], features)
        normal = torch.nn.functional.pad(normal, (0, tokens.features - features))
        tokens = replace(tokens, values=tokens.values + noise * normal, check_values=False)
    return tokens


def split_at_random(
    tokens: Tokens, index: np.ndarray, epoch: int | None, seed: int, masking: Masking
) -> tuple[Tokens, Tokens]:
    """(visible, masked) tokens of the examples at `index`; epoch None hides the same ones every time."""
    mask = random_mask(tokens, index, epoch, seed, masking)
    # One process's part of a batch may be rows in which there is nothing to hide; its part of the loss is 0.
    return split(tokens, mask) if mask.any() else (tokens, nothing(tokens))


def random_mask(
    tokens: Tokens, index: np.ndarray, epoch: int | None, seed: int, masking: Masking
) -> Bool[Tensor, "B N"]:
    """What is hidden of the examples at `index`; epoch None hides the same tokens every time."""
    # Evaluation draws from a stream of its own: the same masks in every epoch and for every model.
    hidden = counter_uniform(seed, -1 if epoch is None else epoch, index)
    # One phase an epoch; evaluation draws row by row, so that its masks do not depend on anything else.
    phase = None if epoch is None else float(counter_uniform(seed, epoch, [-1])(1))
    return masking(tokens, hidden, phase)


def drop_tokens(tokens: Tokens, most: float, draw: Noise) -> Tokens:
    """Leaves out a random share, up to `most`, of each row's tokens; at least one stays."""
    uniform = draw(tokens.length + 1)
    share, uniform = most * uniform[:, :1], uniform[:, 1:]
    keep = tokens.real & (uniform >= share)
    # A row that would become empty keeps the token with the largest draw.
    largest = uniform.masked_fill(~tokens.real, -1.0).argmax(1, keepdim=True)
    return compact(tokens, keep.scatter(1, largest, True))


def nothing(like: Tokens) -> Tokens:
    """As many rows with nothing in them: one token of padding each."""
    values, positions = like.values[:, :1] * 0, like.positions[:, :1] * 0
    return Tokens(values, positions, torch.ones(values.shape[:2], dtype=torch.bool), check_values=False)
