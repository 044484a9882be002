"""What one training step reads, and what the training loop needs of its data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from rotarymae.tokens import Tokens


@dataclass(frozen=True, eq=False)
class Batch:
    """What one step reads.

    Attributes:
        series: [B] places in the data set, on the host.
        inputs: the tokens the encoder sees.
        masked: the hidden tokens, in pre-training only.
        targets: labels [B] or values, in supervised training only.
    """

    series: np.ndarray
    inputs: Tokens
    masked: Tokens | None = None
    targets: Tensor | None = None

    def to(self, device: torch.device | str) -> Batch:
        return replace(
            self,
            inputs=self.inputs.to(device, non_blocking=True),
            masked=None if self.masked is None else self.masked.to(device, non_blocking=True),
            targets=None if self.targets is None else self.targets.to(device, non_blocking=True),
        )


class Examples(Protocol):
    """What the training loop needs of its data.

    It may also have `blocks: Blocks | None`: where the examples lie in a file, for an order that reads it well.
    """

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each example [S]."""
        ...

    def batch(self, index: np.ndarray, epoch: int | None) -> Batch:
        """The batch of these examples; epoch None asks for the fixed one that evaluation uses."""
        ...

    def fingerprint(self) -> str:
        """Changes when the data do."""
        ...
