"""Continuous axial p-RoPE: positions → angles → rotated queries and keys.

Sections 3.1 and 4.2 of arXiv:2505.20535; the paper's θ are our frequencies. Two departures from its text, as its code
has them: of every axis the p *fastest* frequencies are kept (Barbero et al., arXiv:2410.06205), and the axes share out
the K channels of each head, not those of the model.

Which two channels of a head form a pair is free, because scores do not change when the channels of queries and keys
are permuted alike. Here channel i pairs with channel i + K/2, and the pairs of the first axis come first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from rotarymae.config import BlockSizes, RoMAEConfig


class Rotation(NamedTuple):
    """Cosines and sines of the angles that rotate the K/2 pairs of channels of each head, for N tokens in B rows."""

    cos: Float[Tensor, "B N 1 K/2"]
    sin: Float[Tensor, "B N 1 K/2"]

    def select(self, tokens: slice) -> Rotation:
        """Return the rotation of the tokens of each row that the slice `tokens` selects."""
        return Rotation(self.cos[:, tokens], self.sin[:, tokens])


def frequencies(head_dim: int, axes: int, p: float = 0.75, base: float = 10_000.0) -> Float[Tensor, " F"]:
    """Return the p-RoPE frequencies of one position axis, in radians per unit of position, float64, on the CPU.

    Each axis gets K / A of the K = `head_dim` channels of a head, which form F = K / 2A pairs, and each pair has a
    frequency. Frequency i is base^(-2i / (K/A)). Only the fastest, i < floor(p · (K/A) // 2), are kept; the others are
    0, and their pairs are not rotated. They are computed in every forward pass, because a module's buffer would be
    rounded with its weights.

    Args:
        head_dim: channels of a head, a multiple of 2 · axes (`RoMAEConfig` checks it).
        axes: number A of position axes, which share the channels equally.
        p: share of the frequencies that is kept.
        base: at least 1; frequencies fall from 1 radian per unit of position towards 1 / base.
    """
    channels = head_dim // axes
    i = torch.arange(channels // 2, dtype=torch.float64)
    return torch.where(i < int(p * channels // 2), base ** (-2.0 * i / channels), 0.0)


def angles(positions: Float[Tensor, "B N A"], frequencies: Float[Tensor, " F"]) -> Float[Tensor, "B N A*F"]:
    """Return the angle of each token for each axis and frequency: position · frequency, in radians.

    Args:
        positions: of N tokens in each of B rows, on A axes.
        frequencies: the F frequencies, the same for all axes, in radians per unit of position.

    Returns:
        F angles for the first axis, then F for the second, and so on; in the dtype of float32 or float64 positions,
        else in float32. Autocast is off: bfloat16 keeps 8 bits, with which angles at position 100 err by up to 0.25
        rad.
    """
    with torch.autocast(positions.device.type, enabled=False):
        if positions.dtype not in (torch.float32, torch.float64):
            positions = positions.float()
        # The precision first: some devices have no float64.
        return (positions[..., None] * frequencies.to(positions.dtype).to(positions.device)).flatten(-2)


def rotation(angles: Float[Tensor, "B N P"]) -> Rotation:
    """Return the cosines and sines of P angles per token, [B, N, 1, P]; the axis of length 1 stands for all heads."""
    return Rotation(angles.cos().unsqueeze(-2), angles.sin().unsqueeze(-2))


def rotate(x: Float[Tensor, "B N H K"], rotation: Rotation) -> Float[Tensor, "B N H K"]:
    """Rotate each pair of channels (i, i + K/2) of queries or keys by the i-th angle of their token.

    Products are computed in the precision of the angles; the result has the dtype of x.

    Args:
        x: K channels of each of H heads, for N tokens in each of B rows.
        rotation: cosines and sines of the angles, the same for all heads.
    """
    cos, sin = rotation
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat([x1 * cos - x2 * sin, x2 * cos + x1 * sin], dim=-1).to(x.dtype)


def sincos(positions: Float[Tensor, "B N A"], embed_dim: int, base: float = 10_000.0) -> Float[Tensor, "B N D"]:
    """Return sines and cosines of positions, to be added to embeddings: the baseline for rotary positions.

    It is the encoding of Vaswani et al. (arXiv:1706.03762, section 3.5), extended to real-valued positions on several
    axes.

    Args:
        positions: of N tokens in each of B rows, on A axes.
        embed_dim: width D of the embeddings, a multiple of 2 · A.
        base: frequencies fall from 1 radian per unit of position towards 1 / base.

    Returns:
        D/A numbers for each axis, axis after axis: the sines at all its frequencies, then the cosines. They have the
        dtype of float32 or float64 positions, else float32. Visible and masked tokens get the encoding of their real
        position; the published code of RoMAE numbers tokens instead, off by one.
    """
    phase = angles(positions, frequencies(embed_dim, positions.shape[-1], 1.0, base))
    phase = phase.unflatten(-1, (positions.shape[-1], -1))
    return torch.cat([phase.sin(), phase.cos()], dim=-1).flatten(-2)


# ── the position encodings that a configuration can name ────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Rotary:
    """Continuous axial p-RoPE: queries and keys are rotated in every block, and nothing is added to tokens.

    Attributes:
        head_dim: width K of a head.
        p, base: as in `frequencies`.
    """

    head_dim: int
    p: float
    base: float

    def add(self, x: Float[Tensor, "B N D"], positions: Float[Tensor, "B N A"]) -> Float[Tensor, "B N D"]:
        """Return the tokens `x` unchanged, as rotary positions are not added to tokens; `positions` are ignored."""
        return x

    def rotation(self, positions: Float[Tensor, "B N A"]) -> Rotation:
        """Return the rotation of queries and keys of N tokens in each of B rows, from their positions on A axes."""
        return rotation(angles(positions, frequencies(self.head_dim, positions.shape[-1], self.p, self.base)))


@dataclass(frozen=True)
class Absolute:
    """The baseline: sines and cosines of the positions (`sincos`) are added to tokens, and nothing is rotated.

    Attributes:
        embed_dim, base: as in `sincos`.
    """

    embed_dim: int
    base: float

    def add(self, x: Float[Tensor, "B N D"], positions: Float[Tensor, "B N A"]) -> Float[Tensor, "B N D"]:
        """Return x, N tokens of width D in B rows, plus the encoding of their positions (`sincos`); keep its dtype."""
        return x + sincos(positions, self.embed_dim, self.base).to(x.dtype)

    def rotation(self, positions: Float[Tensor, "B N A"]) -> None:
        """Return None: queries and keys are not rotated. Ignore `positions`."""


POSITION_ENCODINGS: dict[str, Callable[[RoMAEConfig, BlockSizes], Rotary | Absolute]] = {
    "rotary": lambda config, sizes: Rotary(sizes.head_dim, config.p, config.base),
    "absolute": lambda config, sizes: Absolute(sizes.embed_dim, config.base),
}
