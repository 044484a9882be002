"""Continuous axial p-RoPE: positions → angles → rotated queries and keys.

Sections 3.1 and 4.2 of arXiv:2505.20535; the paper's θ are our frequencies. Two departures from its text, both as
its code has it: of every axis the p *fastest* frequencies are kept (Barbero et al., arXiv:2410.06205), and the two
channels of a pair lie half an axis apart.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor
from torch.nn import functional as F

from rotarymae.errors import InputError


class Angles(NamedTuple):
    """Cosines and sines of position · frequency, for the rotated pairs only: F of the K / 2A pairs of each axis."""

    cos: Float[Tensor, "B N A F"]
    sin: Float[Tensor, "B N A F"]


def check_head_dim(head_dim: int, axes: int) -> None:
    """Raises InputError unless a head's channels can be halved on every axis."""
    if head_dim % (2 * axes):
        below = head_dim - head_dim % (2 * axes)
        choices = " or ".join(str(k) for k in (below, below + 2 * axes) if k > 0)
        raise InputError(
            f"head_dim ({head_dim}) must be a multiple of 2 × axes ({2 * axes}); choose embed_dim or num_heads so "
            f"that embed_dim / num_heads is {choices}."
        )


def frequencies(
    head_dim: int,
    axes: int,
    p: float = 0.75,
    base: float = 10_000.0,
    device: torch.device | str = "cpu",
) -> Float[Tensor, " F"]:
    """The kept frequencies of one axis, fastest first, in radians per unit of position, float64.

    frequency_i = base^(-2i / (K/A)) for i < floor(p · (K/A) // 2); the other pairs of the axis are not rotated.
    Made anew for every pass: as a buffer of a module they would be rounded with its weights.
    """
    check_head_dim(head_dim, axes)
    channels = head_dim // axes
    kept = int(p * channels // 2)
    return base ** (-2.0 * torch.arange(kept, dtype=torch.float64, device=device) / channels)


def angles(positions: Float[Tensor, "B N A"], frequencies: Float[Tensor, " F"]) -> Angles:
    """Angles of every token, once per forward pass, in the positions' own precision and never below float32.

    bfloat16 keeps 8 bits: at position 100 its angles err by up to 0.25 rad. Autocast is therefore off in here.
    """
    with torch.autocast(positions.device.type, enabled=False):
        if positions.dtype not in (torch.float32, torch.float64):
            positions = positions.float()
        phase = positions[..., None] * frequencies.to(positions)
        return Angles(phase.cos(), phase.sin())


class Rotation(NamedTuple):
    """Angles as the blocks of one pass use them: flat over the P = A · F rotated pairs, with room for the heads.

    `order` lists the K channels of a head with the first channels of all rotated pairs, then their second channels,
    then the channels that are not rotated; `paired` lists them pair by pair, those that are not rotated behind. Scores
    do not change when queries and keys are permuted alike, so a block permutes the rows of its weights (cheap) instead
    of taking activations apart and together again (not cheap).

    Channels pair by pair are complex numbers, and rotating them is one product with `turn`, in one pass over memory.
    Compilers and half precision know no complex numbers; they take the other order.
    """

    cos: Float[Tensor, "B N 1 P"]
    sin: Float[Tensor, "B N 1 P"]
    order: Int[Tensor, " K"]
    turn: Complex[Tensor, "B N 1 K/2"]
    paired: Int[Tensor, " K"]

    def narrow(self, start: int, length: int) -> Rotation:
        """That of these tokens only."""
        cos, sin, turn = (part.narrow(1, start, length) for part in (self.cos, self.sin, self.turn))
        return Rotation(cos, sin, self.order, turn, self.paired)


def rotation(at: Angles, head_dim: int) -> Rotation:
    """Prepares one pass's angles for heads of K channels."""
    axes, kept = at.cos.shape[-2:]
    channels = torch.arange(head_dim, device=at.cos.device).view(axes, 2, head_dim // (2 * axes))
    first, second, rest = (
        part.flatten() for part in (channels[:, 0, :kept], channels[:, 1, :kept], channels[:, :, kept:])
    )
    cos, sin = at.cos.flatten(-2).unsqueeze(-2), at.sin.flatten(-2).unsqueeze(-2)
    # What is not rotated turns by nothing.
    more = head_dim // 2 - cos.shape[-1]
    turn = torch.complex(F.pad(cos, (0, more), value=1.0), F.pad(sin, (0, more)))
    paired = torch.cat([torch.stack([first, second], dim=-1).flatten(), rest])
    return Rotation(cos, sin, torch.cat([first, second, rest]), turn, paired)


def rotate_sorted(x: Float[Tensor, "B N H K"], by: Rotation) -> Float[Tensor, "B N H K"]:
    """Rotates heads whose channels are in `by.order`. Computed in the angles' precision, returned in that of x."""
    pairs = by.cos.shape[-1]
    first, second, rest = x.split([pairs, pairs, x.shape[-1] - 2 * pairs], dim=-1)
    turned = torch.addcmul(first * by.cos, second, by.sin, value=-1), torch.addcmul(second * by.cos, first, by.sin)
    return torch.cat([turned[0].to(x.dtype), turned[1].to(x.dtype), rest], dim=-1)


def rotate_paired(x: Float[Tensor, "B N H K"], by: Rotation) -> Float[Tensor, "B N H K"]:
    """As `rotate_sorted`, for heads whose channels are in the order `by.paired`; x is float32 or float64."""
    turned = torch.view_as_complex(x.unflatten(-1, (-1, 2))) * by.turn
    return torch.view_as_real(turned).flatten(-2).to(x.dtype)


def rotate(x: Float[Tensor, "B H N K"], at: Angles) -> Float[Tensor, "B H N K"]:
    """Rotates pair (i, i + K/2A) of every axis' slice of channels by that axis' angle; Eq. 2, the rest as it was."""
    by = rotation(at, x.shape[-1])
    turned = rotate_sorted(x.transpose(1, 2)[..., by.order], by)
    return turned[..., by.order.argsort()].transpose(1, 2)


def sincos(positions: Float[Tensor, "B N A"], embed_dim: int, base: float = 10_000.0) -> Float[Tensor, "B N D"]:
    """The baseline: sines and cosines of the positions themselves, D/A channels an axis, to be added to embeddings.

    Vaswani et al. (arXiv:1706.03762, section 3.5), extended to real-valued positions on several axes. Visible and
    masked tokens get the encoding of their own position; the published code numbers tokens instead, off by one.
    """
    at = angles(positions, frequencies(embed_dim, positions.shape[-1], 1.0, base, positions.device))
    return torch.cat([at.sin, at.cos], dim=-1).flatten(-2)
