"""The position encodings a configuration can name. A new one is a class here, and its name in `RoMAEConfig`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from rotarymae.config import BlockSizes, RoMAEConfig
from rotarymae.rope import Rotation, angles, frequencies, rotation, sincos


class PositionEncoding:
    """Base class: how a transformer reads positions, by an addition to its input, by rotation in every block, or both.

    This one ignores positions; the others override what they need.
    """

    def add(self, x: Float[Tensor, "B N D"], positions: Float[Tensor, "B N A"]) -> Float[Tensor, "B N D"]:
        """Return the tokens with their positions added."""
        return x

    def rotation(self, positions: Float[Tensor, "B N A"]) -> Rotation | None:
        """Return the rotation of queries and keys; None for no rotation."""
        return None


@dataclass(frozen=True)
class Rotary(PositionEncoding):
    """Continuous axial p-RoPE (`rotarymae.rope`)."""

    head_dim: int
    p: float
    base: float

    def rotation(self, positions: Float[Tensor, "B N A"]) -> Rotation | None:
        return rotation(angles(positions, frequencies(self.head_dim, positions.shape[-1], self.p, self.base)))


@dataclass(frozen=True)
class Absolute(PositionEncoding):
    """Added sines and cosines of the positions (`rotarymae.rope.sincos`), the baseline."""

    embed_dim: int
    base: float

    def add(self, x: Float[Tensor, "B N D"], positions: Float[Tensor, "B N A"]) -> Float[Tensor, "B N D"]:
        return x + sincos(positions, self.embed_dim, self.base).to(x.dtype)


POSITION_ENCODINGS: dict[str, Callable[[RoMAEConfig, BlockSizes], PositionEncoding]] = {
    "rotary": lambda config, sizes: Rotary(sizes.head_dim, config.p, config.base),
    "absolute": lambda config, sizes: Absolute(sizes.embed_dim, config.base),
}


def position_encoding(config: RoMAEConfig, sizes: BlockSizes) -> PositionEncoding:
    """Return the encoding that `config` names, for blocks of these sizes."""
    return POSITION_ENCODINGS[config.position_encoding](config, sizes)
