"""Masks, and the split of a batch into visible tokens and tokens to predict.

A strategy is a small dataclass that is called with tokens and gives the mask: [B, N] bool, True = hidden, never True
on padding, and at least one token of each row stays visible. `MASKINGS` lists them by name; a new one is a class and
its entry there. There are no loops over the batch: random numbers are ranked within each row and compared with that
row's count (as in MAE, arXiv:2111.06377). `noise` says where they come from: `noise(n)` gives uniform numbers [B, n]
in [0, 1). The default draws from torch's global generator; training passes `counter_uniform(...)`, a pure function of
(seed, epoch, series), so that a mask does not depend on batch, process or worker.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from rotarymae.config import mask_range
from rotarymae.counter_rng import Noise
from rotarymae.errors import InputError, choose
from rotarymae.tokens import Tokens, compact


@dataclass(frozen=True)
class Masking(ABC):
    """Strategy that hides a share of each row: `masking(tokens, noise)` gives the mask.

    Attributes:
        ratio: the share to hide, more than 0 and less than 1. With (low, high) each row has its own share between
            them: a model that is to interpolate from many and from few observations should have seen both.

    The shares are drawn row by row, or with a `phase` (one number per epoch) they run between the two in a wave over
    the logarithm of the length: over the epochs every row sees them all, but rows of nearly equal length agree, so
    that a batch of such rows stays almost free of padding.

    `Masking.named(**dataclasses.asdict(masking))` is the same masking again, also after JSON.
    """

    kind: str = field(default="", init=False)
    ratio: float | tuple[float, float] = 0.75

    def __post_init__(self) -> None:
        """Raise InputError for a ratio out of range."""
        mask_range(self.ratio)

    @staticmethod
    def named(kind: str, ratio: float | Sequence[float] = 0.75) -> Masking:
        """Create the strategy with this name, for example `Masking.named("rows", ratio=0.5)`.

        Raises:
            InputError: an unknown name, and the message lists the known ones; a ratio out of range.
        """
        choose("masking", kind, tuple(MASKINGS))
        return MASKINGS[kind](tuple(ratio) if isinstance(ratio, Sequence) else ratio)  # type: ignore[arg-type]

    @abstractmethod
    def __call__(self, tokens: Tokens, noise: Noise | None = None, phase: float | None = None) -> Bool[Tensor, "B N"]:
        """Return the mask [B, N], True = hidden; never on padding, and never on all real tokens of a row.

        Args:
            noise: `noise(n)` gives uniform numbers [B, n] in [0, 1); None means torch's global generator.
            phase: one number per epoch, which shifts the wave of the rows' shares over their lengths; None draws each
                row's share at random. It has no effect if `ratio` is one number.
        """

    def _draw(
        self, tokens: Tokens, noise: Noise | None, phase: float | None
    ) -> tuple[float | Float[Tensor, " B"], Float[Tensor, "B N"]]:
        """Draw each row's share to hide, and one random number per token: the tokens with the smallest are hidden.

        Arguments are those of `__call__`.

        The share is one number if `ratio` is one, else a tensor in float64 on the CPU, because some devices (MPS) lack
        float64.
        """
        low, high = mask_range(self.ratio)
        if low == high:
            return low, _draw(tokens, noise, tokens.length)
        uniform = _draw(tokens, noise, tokens.length + 1)
        # The first number, not the last: a row's numbers must not depend on how far its batch is padded.
        at = uniform[:, 0].cpu().double()
        if phase is not None:
            at = 1 - (1 - 2 * ((tokens.real.sum(1).cpu().double().log2() + phase) % 1)).abs()
        return low + (high - low) * at, uniform[:, 1:]


@dataclass(frozen=True)
class MaskRatio(Masking):
    """Hide ceil(ratio · real tokens) of each row, uniformly; at least one stays, so a row of one is never masked.

    Section 4.1 of arXiv:2505.20535.
    """

    kind: str = field(default="ratio", init=False)

    def __call__(self, tokens: Tokens, noise: Noise | None = None, phase: float | None = None) -> Bool[Tensor, "B N"]:
        """Return the mask [B, N], True for random tokens; see `Masking.__call__`."""
        (share, uniform), real = self._draw(tokens, noise, phase), tokens.real
        return _hide(real, _count(real.sum(1), share), uniform)


@dataclass(frozen=True)
class MaskBlocks(Masking):
    """Hide ceil(ratio · real tokens) of each row in blocks of consecutive tokens, as gaps in real records come.

    The length of its blocks is drawn per row, log-uniformly from one token to all that is hidden. Half of the rows are
    cut in the order of time, so that a block hides all channels for a stretch, and the other half channel by channel
    (the last axis), so that it hides one. A block may reach the end of a row.
    """

    kind: str = field(default="blocks", init=False)

    def __call__(self, tokens: Tokens, noise: Noise | None = None, phase: float | None = None) -> Bool[Tensor, "B N"]:
        """Return the mask [B, N], True for random blocks of consecutive tokens of each row; see `Masking.__call__`."""
        # Before the numbers of each token: a row's numbers must not depend on how far its batch is padded.
        length, offset, order = _draw(tokens, noise, 3).cpu().double().unbind(1)
        share, uniform = self._draw(tokens, noise, phase)
        real = tokens.real
        count = _count(real.sum(1), share)
        length = ((count.cpu() + 1).double().log() * length).exp().long().clamp(min=1)
        offset = (offset * length).long()
        rank = torch.arange(real.shape[1], device=real.device)
        block = (rank + offset[:, None].to(rank.device)) // length[:, None].to(rank.device)
        ordered = rank < real.sum(1, keepdim=True)
        hidden = _hide(ordered, count, uniform.gather(1, block.clamp(max=real.shape[1] - 1)))
        return hidden.gather(1, _ranks(tokens, order < 0.5)) & real


@dataclass(frozen=True)
class MaskRows(Masking):
    """Hide everything observed at a time (axis 0), for ceil(ratio · distinct times) times of each row."""

    kind: str = field(default="rows", init=False)

    def __call__(self, tokens: Tokens, noise: Noise | None = None, phase: float | None = None) -> Bool[Tensor, "B N"]:
        """Return the mask [B, N], True for all tokens of random times; see `Masking.__call__`."""
        return _hide_groups(tokens, 0, *self._draw(tokens, noise, phase))


@dataclass(frozen=True)
class MaskChannels(Masking):
    """Hide whole channels (the last axis): ceil(ratio · channels present) of each row."""

    kind: str = field(default="channels", init=False)

    def __call__(self, tokens: Tokens, noise: Noise | None = None, phase: float | None = None) -> Bool[Tensor, "B N"]:
        """Return the mask [B, N], True for all tokens of random channels. Raises InputError without a channel axis."""
        if tokens.axes < 2:
            raise InputError(
                "masking 'channels' hides the last axis of positions, and there is one alone; use 'ratio'."
            )
        return _hide_groups(tokens, -1, *self._draw(tokens, noise, phase))


@dataclass(frozen=True)
class MaskFuture(Masking):
    """Hide all that comes after a time (axis 0): the last `ratio` of each row's span, so that a model learns to
    forecast. A row of one time hides nothing."""

    kind: str = field(default="future", init=False)

    def __call__(self, tokens: Tokens, noise: Noise | None = None, phase: float | None = None) -> Bool[Tensor, "B N"]:
        """Return the mask [B, N], True for the last share of each row's time span; see `Masking.__call__`."""
        share, _ = self._draw(tokens, noise, phase)
        times, real = tokens.positions[..., 0].cpu().double(), tokens.real.cpu()
        first = times.masked_fill(~real, torch.inf).amin(1)
        last = times.masked_fill(~real, -torch.inf).amax(1)
        return ((times > (last - share * (last - first))[:, None]) & real).to(tokens.positions.device)


MASKINGS: dict[str, type[Masking]] = {
    "ratio": MaskRatio,
    "blocks": MaskBlocks,
    "rows": MaskRows,
    "channels": MaskChannels,
    "future": MaskFuture,
}


def split(tokens: Tokens, mask: Bool[Tensor, "B N"]) -> tuple[Tokens, Tokens]:
    """Split tokens by a mask into (visible, masked); every real token is in exactly one of the two, in its order.

    Rows may hide different numbers of tokens; shorter rows are padded at the end. A row that hides nothing is all
    padding in `masked`.

    Raises:
        InputError: the mask has another shape or type, hides padding, hides nothing at all, or hides a whole row.
    """
    if mask.shape != tokens.values.shape[:2] or mask.dtype != torch.bool:
        raise InputError(
            f"mask is {mask.dtype} {tuple(mask.shape)}; wanted bool {tuple(tokens.values.shape[:2])} (batch, tokens)."
        )
    real = tokens.real
    # One transfer for all checks: on an accelerator each would wait for the device.
    seen, hidden = (real & ~mask).sum(1), mask.sum()
    blank, least_seen, all_hidden = torch.stack([(mask & ~real).sum(), seen.min(), hidden]).tolist()
    if blank:
        raise InputError(f"the mask hides {blank} padding tokens; mask only real ones (mask & tokens.real).")
    if least_seen == 0:
        raise InputError(f"row {int((seen == 0).nonzero()[0])} has no visible token; leave at least one.")
    if all_hidden == 0:
        raise InputError("the mask hides nothing; there would be nothing to predict.")
    return compact(tokens, ~mask), compact(tokens, mask)


def _draw(tokens: Tokens, noise: Noise | None, n: int) -> Float[Tensor, "B n"]:
    """Return uniform numbers [B, n] on the device of the tokens, from `noise` or, for None, from torch's generator."""
    values = tokens.values
    return torch.rand(len(values), n, device=values.device) if noise is None else noise(n).to(values.device)


def _count(counts: Int[Tensor, " B"], share: float | Float[Tensor, " B"]) -> Int[Tensor, " B"]:
    """Return ceil(share · count), but less than the count; in float64, so that 0.75 · 4 is not rounded up to 4.

    Args:
        counts: real tokens, or groups, of each row.
        share: to hide, one for all rows or one for each.
    """
    hidden = (counts.cpu().double() * share - 1e-9).ceil().long().to(counts.device)
    return torch.minimum(hidden, counts - 1)


def _hide(real: Bool[Tensor, "B N"], count: Int[Tensor, " B"], uniform: Float[Tensor, "B N"]) -> Bool[Tensor, "B N"]:
    """Return a mask, True on the `count` real tokens of each row with the smallest numbers, the first of equal ones.

    Args:
        real: True where there is a token.
        count: number of tokens to hide in each row.
        uniform: a random number for each token.
    """
    order = uniform.masked_fill(~real, 2.0).argsort(dim=1, stable=True)
    rank = torch.empty_like(order)
    rank.scatter_(1, order, torch.arange(real.shape[1], device=order.device).expand_as(order))
    return (rank < count[:, None]) & real


def _ranks(tokens: Tokens, by_channel: Bool[Tensor, " B"]) -> Int[Tensor, "B N"]:
    """Return each token's rank in its row, from 0: in order of time, or of channel and then time; padding is last.

    The channel is the last position axis; with one axis all rows are ranked by time.

    Args:
        by_channel: True for rows that are ranked by channel first.
    """
    times, channels = tokens.positions[..., 0], tokens.positions[..., -1]
    if tokens.axes > 1:
        channels = torch.where(by_channel[:, None].to(channels.device), channels, 0.0)
    else:
        channels = torch.zeros_like(times)
    order = times.argsort(dim=1, stable=True)
    for key in (channels, tokens.real.logical_not().float()):
        order = order.gather(1, key.gather(1, order).argsort(dim=1, stable=True))
    places = torch.arange(tokens.length, device=order.device).expand_as(order)
    return torch.empty_like(order).scatter_(1, order, places)


def _hide_groups(
    tokens: Tokens, axis: int, share: float | Float[Tensor, " B"], uniform: Float[Tensor, "B N"]
) -> Bool[Tensor, "B N"]:
    """Return a mask that hides whole groups: a row's tokens with equal positions on `axis` are hidden together.

    Of each row's groups ceil(share · groups) are hidden, and at least one stays visible.

    Args:
        axis: of the positions: 0 is time, -1 the channel.
        share: of the groups to hide, one for all rows or one for each.
        uniform: random numbers; the first ones of a row are those of its groups, and the smallest are hidden.
    """
    real, length = tokens.real, tokens.length
    # Padding is numbered behind every real token, so that real groups count from 0.
    group = _dense((~real).long() * length + _dense(tokens.positions[..., axis].contiguous()))
    groups = torch.where(real, group, -1).amax(1) + 1
    in_use = torch.arange(length, device=group.device)[None, :] < groups[:, None]
    return _hide(in_use, _count(groups, share), uniform).gather(1, group) & real


def _dense(keys: Tensor) -> Int[Tensor, "B N"]:
    """Return the rank of each of the `keys` [B, N] among the different ones of its row: equal ones share it, from 0."""
    ordered, order = keys.sort(dim=1)
    step = torch.zeros_like(order)
    step[:, 1:] = (ordered[:, 1:] != ordered[:, :-1]).long()
    return torch.empty_like(order).scatter_(1, order, step.cumsum(1))
