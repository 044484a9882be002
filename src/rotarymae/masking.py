"""Masks, and the split of a batch into visible tokens and tokens to predict.

A mask is bool [B, N], True = hidden, never True on padding, and at least one token of each row stays visible. What is
hidden is said by a function in `MASKINGS`; a new one is a function, and its name there and in
`fit_config.MaskingStrategy`. There are no loops over the batch: random numbers are ranked within each row and compared
with that row's count (as in MAE, arXiv:2111.06377). `noise` says where they come from: `noise(n)` gives uniform numbers
[B, n] in [0, 1). The default draws from torch's global generator; training passes `counter_uniform(...)`, a pure
function of (seed, epoch, series), so that a mask does not depend on batch, process or worker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from rotarymae.config import mask_range
from rotarymae.counter_rng import Noise
from rotarymae.errors import InputError, choose
from rotarymae.tokens import Tokens, compact, lexsort

Share = float | Float[Tensor, " B"]  # to hide, one for all rows or one for each


@dataclass(frozen=True)
class Masking:
    """How pre-training hides tokens from a model: `masking(tokens, noise)` draws the mask of a batch.

    Attributes:
        kind: a name in `MASKINGS`: "ratio" (single tokens), "blocks" (consecutive ones), "rows" (times), "channels", or
            "future" (the end).
        ratio: the share of each row to hide, more than 0 and less than 1. With (low, high) each row has its own share
            between them: a model that is to interpolate from many and from few observations should have seen both.

    Raises:
        InputError: an unknown kind, and the message lists the known ones; a ratio out of range.
    """

    kind: str = "ratio"
    ratio: float | Sequence[float] = 0.75

    def __post_init__(self) -> None:
        """Check kind and ratio; a ratio that is a list, as after JSON, becomes a tuple."""
        choose("masking", self.kind, tuple(MASKINGS))
        if isinstance(self.ratio, Sequence):
            object.__setattr__(self, "ratio", tuple(self.ratio))
        mask_range(self.ratio)

    def __call__(self, tokens: Tokens, noise: Noise | None = None, phase: float | None = None) -> Bool[Tensor, "B N"]:
        """Return the mask [B, N], True = hidden; never on padding, and never on all real tokens of a row.

        Args:
            noise: function from n to uniform random numbers [B, n] in [0, 1); None means torch's global generator.
            phase: one number per epoch. With it, the rows' shares run between the two ends of `ratio` in a wave over
                the logarithm of their length, which the phase shifts: rows of nearly equal length agree, so that a
                batch of them has little padding, and over the epochs every row sees all shares. None draws each row's
                share at random.
        """
        low, high = mask_range(self.ratio)

        def shares() -> tuple[Share, Float[Tensor, "B N"]]:
            """Draw each row's share to hide, and one random number per token: the smallest are hidden.

            The share is one number if `ratio` is one, else a tensor in float64 on the CPU, because some devices (MPS)
            lack float64.
            """
            if low == high:
                return low, _draw(tokens, noise, tokens.length)
            uniform = _draw(tokens, noise, tokens.length + 1)
            # The first number, not the last: a row's numbers must not depend on how far its batch is padded.
            at = uniform[:, 0].cpu().double()
            if phase is not None:
                at = 1 - (1 - 2 * ((tokens.real.sum(1).cpu().double().log2() + phase) % 1)).abs()
            return low + (high - low) * at, uniform[:, 1:]

        return MASKINGS[self.kind](tokens, noise, shares)


Shares = Callable[[], tuple[Share, Float[Tensor, "B N"]]]


def _ratio(tokens: Tokens, noise: Noise | None, shares: Shares) -> Bool[Tensor, "B N"]:
    """Hide ceil(ratio · real tokens) of each row, uniformly; at least one stays, so a row of one is never masked.

    Section 4.1 of arXiv:2505.20535. The `shares` to hide and random numbers are drawn; `noise` serves other strategies.
    """
    (share, uniform), real = shares(), tokens.real
    return _hide(real, _count(real.sum(1), share), uniform)


def _blocks(tokens: Tokens, noise: Noise | None, shares: Shares) -> Bool[Tensor, "B N"]:
    """Hide ceil(ratio · real tokens) of each row in blocks of consecutive tokens, as gaps in real records come.

    The length of its blocks is drawn per row, log-uniformly from one token to all that is hidden. Half of the rows are
    cut in the order of time, so that a block hides all channels for a stretch, and the other half channel by channel
    (the last axis), so that it hides one. A block may reach the end of a row. Arguments are those of `_ratio`.
    """
    # Before the numbers of each token: a row's numbers must not depend on how far its batch is padded.
    length, offset, order = _draw(tokens, noise, 3).cpu().double().unbind(1)
    (share, uniform), real = shares(), tokens.real
    count = _count(real.sum(1), share)
    length = ((count.cpu() + 1).double().log() * length).exp().long().clamp(min=1)
    offset = (offset * length).long()
    rank = torch.arange(real.shape[1], device=real.device)
    block = (rank + offset[:, None].to(rank.device)) // length[:, None].to(rank.device)
    ordered = rank < real.sum(1, keepdim=True)
    hidden = _hide(ordered, count, uniform.gather(1, block.clamp(max=real.shape[1] - 1)))
    return hidden.gather(1, _ranks(tokens, order < 0.5)) & real


def _rows(tokens: Tokens, noise: Noise | None, shares: Shares) -> Bool[Tensor, "B N"]:
    """Hide all tokens at ceil(ratio · distinct times) of each row's times (axis 0).

    `shares` draws the ratio, and a random number for each token; `noise` is not used.
    """
    return _hide_groups(tokens, 0, *shares())


def _channels(tokens: Tokens, noise: Noise | None, shares: Shares) -> Bool[Tensor, "B N"]:
    """Hide whole channels (the last axis): ceil(ratio · channels present) of each row.

    `shares` draws the ratio, and a random number for each token; `noise` is not used.

    Raises InputError for tokens without a channel axis.
    """
    if tokens.axes < 2:
        raise InputError(
            "masking 'channels' hides channels, the last axis of positions, and these positions have only that of "
            "time; use 'ratio'."
        )
    return _hide_groups(tokens, -1, *shares())


def _future(tokens: Tokens, noise: Noise | None, shares: Shares) -> Bool[Tensor, "B N"]:
    """Hide the last `ratio` of each row's span of time (axis 0), so that a model learns to forecast.

    A row of one time hides nothing. Arguments are those of `_ratio`.
    """
    share, _ = shares()
    times, real = tokens.positions[..., 0].cpu().double(), tokens.real.cpu()
    first = times.masked_fill(~real, torch.inf).amin(1)
    last = times.masked_fill(~real, -torch.inf).amax(1)
    return ((times > (last - share * (last - first))[:, None]) & real).to(tokens.positions.device)


MASKINGS: dict[str, Callable[[Tokens, Noise | None, Shares], Tensor]] = {
    "ratio": _ratio,
    "blocks": _blocks,
    "rows": _rows,
    "channels": _channels,
    "future": _future,
}


def split(tokens: Tokens, mask: Bool[Tensor, "B N"]) -> tuple[Tokens, Tokens]:
    """Split tokens by a mask into (visible, masked); every real token is in exactly one of the two, in its order.

    Rows may hide different numbers of tokens; shorter rows are padded at the end. A row that hides nothing is all
    padding in `masked`. Raises InputError for a mask of another shape or type, or that hides padding, nothing or a
    whole row.
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


def _count(counts: Int[Tensor, " B"], share: Share) -> Int[Tensor, " B"]:
    """Return ceil(share · count), but less than the count; in float64, so that 0.75 · 4 is not rounded up to 4.

    Counted are the real tokens, or groups, of each row.
    """
    hidden = (counts.cpu().double() * share - 1e-9).ceil().long().to(counts.device)
    return torch.minimum(hidden, counts - 1)


def _hide(real: Bool[Tensor, "B N"], count: Int[Tensor, " B"], uniform: Float[Tensor, "B N"]) -> Bool[Tensor, "B N"]:
    """Return a mask, True on the `count` real tokens of each row with the smallest numbers, the first of equal ones."""
    rank = uniform.masked_fill(~real, 2.0).argsort(dim=1, stable=True).argsort(dim=1)
    return (rank < count[:, None]) & real


def _ranks(tokens: Tokens, by_channel: Bool[Tensor, " B"]) -> Int[Tensor, "B N"]:
    """Return each token's rank in its row, from 0: in order of time, or of channel and then time; padding is last.

    The channel is the last position axis; with one axis all rows are ranked by time, else those that are not
    `by_channel`.
    """
    by_channel = by_channel[:, None].to(tokens.positions.device) & (tokens.axes > 1)
    channels = torch.where(by_channel, tokens.positions[..., -1], 0.0)
    return lexsort((~tokens.real).to(torch.uint8), channels, tokens.positions[..., 0]).argsort(dim=1)


def _hide_groups(tokens: Tokens, axis: int, share: Share, uniform: Float[Tensor, "B N"]) -> Bool[Tensor, "B N"]:
    """Return a mask that hides whole groups: a row's tokens with equal positions on `axis` are hidden together.

    Of each row's groups ceil(share · groups) are hidden, and at least one stays visible. Axis 0 is time, -1 the
    channel. The first random numbers of a row are those of its groups, of which the smallest are hidden.
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
