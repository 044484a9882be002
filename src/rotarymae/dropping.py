"""Dropout and stochastic depth that can draw from a generator of their own.

torch's dropout draws from a state that all threads share: a training would change the caller's random numbers, and two
trainings in two threads each other's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Dropping(nn.Module):
    """A layer that sets some of its input to zero in training, and scales up the rest.

    `generator` is what it draws from; None is torch's own, as for any module of torch.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.generator: torch.Generator | None = None

    @property
    def drops(self) -> bool:
        return self.training and self.rate > 0

    def _drop(self, x: Float[Tensor, "*shape"], shape: tuple[int, ...]) -> Float[Tensor, "*shape"]:
        dropped = torch.empty(shape, dtype=torch.bool, device=x.device).bernoulli_(self.rate, generator=self.generator)
        return x.masked_fill(dropped, 0.0) / (1.0 - self.rate)


class Dropout(Dropping):
    """Drops single numbers."""

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return self._drop(x, tuple(x.shape)) if self.drops else x


class DropPath(Dropping):
    """Stochastic depth (arXiv:1603.09382): drops a residual branch for whole samples."""

    def forward(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        return self._drop(x, (len(x), 1, 1)) if self.drops else x


@contextmanager
def drawing_from(generator: torch.Generator, module: nn.Module) -> Iterator[None]:
    """Let every layer of `module` that drops draw from `generator`, on the device of the module."""
    layers = [layer for layer in module.modules() if isinstance(layer, Dropping)]
    for layer in layers:
        layer.generator = generator
    try:
        yield
    finally:
        for layer in layers:
            layer.generator = None
