"""What one training step reads, and what the training loop needs of its data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from rotarymae.tokens import Tokens


@dataclass(frozen=True, eq=False)
class Batch:
    """What one step reads.

    Attributes:
        series: [B] indices into the data set, on the host.
        inputs: the tokens that the encoder sees.
        masked: the hidden tokens, in pre-training only.
        targets: labels [B] or values, in supervised training only.
        static: [B, F] features of each series, which a head reads beside the series; None without.
    """

    series: np.ndarray
    inputs: Tokens
    masked: Tokens | None = None
    targets: Tensor | None = None
    static: Tensor | None = None

    def to(self, device: torch.device | str) -> Batch:
        return replace(
            self,
            inputs=self.inputs.to(device, non_blocking=True),
            masked=None if self.masked is None else self.masked.to(device, non_blocking=True),
            targets=None if self.targets is None else self.targets.to(device, non_blocking=True),
            static=None if self.static is None else self.static.to(device, non_blocking=True),
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
