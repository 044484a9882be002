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
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from rotarymae.config import mask_range
from rotarymae.counter_rng import Noise
from rotarymae.errors import InputError, choose
from rotarymae.tokens import Tokens, compact, lexsort

Share = float | Float[Tensor, " B"]  # of a row's tokens (or times, or channels) to hide: one for all rows, or one each


@dataclass(frozen=True)
class Masking:
    """How pre-training hides tokens from a model: `masking(tokens, noise)` draws the mask of a batch.

    Attributes:
        kind: what is hidden together, a name in `MASKINGS`: "ratio" (single tokens), "blocks" (runs of consecutive
            tokens), "rows" (all tokens of a time), "channels" (all tokens of a channel), "future" (the end of a row).
        ratio: share of each row's tokens, times or channels, rounded up to whole ones, or, for "future", of its span
            of time, that is hidden; more than 0 and less than 1. With (low, high) each row has its own share between
            them: a model that is to interpolate from many and from few observations should have seen both.

    Raises:
        InputError: an unknown kind; a ratio out of range.
    """

    kind: str = "ratio"
    ratio: float | Sequence[float] = 0.75

    def __post_init__(self) -> None:
        """Raise InputError for an unknown kind, or unless 0 < smallest share <= largest share < 1."""
        choose("masking", self.kind, tuple(MASKINGS))
        mask_range(self.ratio)

    def __call__(self, tokens: Tokens, noise: Noise | None = None, phase: float | None = None) -> Bool[Tensor, "B N"]:
        """Draw a mask for a batch: return [B, N], True = hidden; never on padding, never on all real tokens of a row.

        Args:
            tokens: the batch, B rows of N tokens; axis 0 of positions is time, and the last of several axes is the
                channel.
            noise: function from n to uniform random numbers [B, n] in [0, 1); None means torch's global generator.
            phase: makes the share that a row hides depend on its length, so that rows of nearly equal length hide
                nearly equal shares, and a batch of them has little padding. Give another number from 0 to 1 in each
                epoch, so that a row gets other shares. The share is low + (high - low) · `_wave`(log2(tokens of the
                row) + phase); (low, high) is `ratio`, and `_wave` a triangle wave from 0 to 1. None draws each row's
                share at random. There is no effect if `ratio` is one number.

        Raises:
            InputError: kind "channels" for tokens with one position axis.
        """
        low, high = mask_range(self.ratio)

        def shares() -> tuple[Share, Float[Tensor, "B N"]]:
            """Return the share of a row to hide, and a random number for each of N tokens in B rows, [B, N].

            The tokens (or groups of them) with the smallest numbers get hidden. The share is `ratio` itself if that is
            one number. Else it is a tensor [B], drawn at random or, with a phase, computed from the rows' lengths; it
            is in float64 on the CPU, because some devices (MPS) lack it.
            """
            if low == high:
                return low, _draw(tokens, noise, tokens.length)
            uniform = _draw(tokens, noise, tokens.length + 1)
            # The first number, not the last: a row's numbers must not depend on how far its batch is padded.
            at = uniform[:, 0].cpu().double()
            if phase is not None:
                at = _wave(tokens.real.sum(1).cpu().double().log2() + phase)
            return low + (high - low) * at, uniform[:, 1:]

        return MASKINGS[self.kind](tokens, noise, shares)


def _wave(x: Float[Tensor, " B"]) -> Float[Tensor, " B"]:
    """Return a triangle wave of period 1: it rises from 0 at 0 to 1 at 0.5, and falls back to 0 at 1."""
    return 1 - (1 - 2 * (x % 1)).abs()


Shares = Callable[[], tuple[Share, Float[Tensor, "B N"]]]  # draws (share to hide, one random number for each token)


def _ratio(tokens: Tokens, noise: Noise | None, shares: Shares) -> Bool[Tensor, "B N"]:
    """Hide single tokens, drawn uniformly: ceil(share · real tokens) of each row (section 4.1 of arXiv:2505.20535).

    At least one real token stays visible, so that a row of one token hides nothing. `shares()` returns the share and a
    random number for each token; `noise` is not used. Returns the mask of the N tokens in B rows, True where hidden,
    never on padding.
    """
    (share, uniform), real = shares(), tokens.real
    return _hide(real, _count(real.sum(1), share), uniform)


def _blocks(tokens: Tokens, noise: Noise | None, shares: Shares) -> Bool[Tensor, "B N"]:
    """Hide blocks of consecutive tokens, like gaps in records: ceil(share · real tokens) of each row.

    At least one real token (one that is not padding) of a row stays visible. All blocks of a row have one length, drawn
    log-uniformly from one token to all that is hidden; blocks at the ends of the row and the last one that is chosen
    may be shorter. In a random half of the rows, and in all if time is the only axis, tokens are taken in the order of
    time, so that a block hides all channels for a stretch. In the others they are taken in the order of channel (the
    last axis), then time, so that a block hides a stretch of one channel, or the end of one and the start of the next.

    Args:
        tokens: B rows of N tokens.
        noise: function from n to uniform random numbers [B, n], which decide length, offset and order of the blocks.
            None means torch's global generator.
        shares: function without arguments. It returns the share to hide, a number or [B], and random numbers [B, N],
            which decide the blocks that are hidden.

    Returns:
        The mask, True for hidden tokens; never on padding.
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
    by_channel = (order < 0.5)[:, None].to(real.device) & (tokens.axes > 1)
    channels = torch.where(by_channel, tokens.positions[..., -1], 0.0)
    ranks = lexsort((~real).to(torch.uint8), channels, tokens.positions[..., 0]).argsort(dim=1)
    return hidden.gather(1, ranks) & real


def _rows(tokens: Tokens, noise: Noise | None, shares: Shares) -> Bool[Tensor, "B N"]:
    """Hide whole times, with all their tokens: ceil(share · distinct times) of each row. At least one stays visible.

    Axis 0 of positions is time. `shares()` returns the share and random numbers; `noise` is not used. Returns the mask
    of the N tokens in B rows, True where hidden, never on padding.
    """
    return _hide_groups(tokens, 0, *shares())


def _channels(tokens: Tokens, noise: Noise | None, shares: Shares) -> Bool[Tensor, "B N"]:
    """Hide whole channels, with all their tokens: ceil(share · channels present) of each row; at least one stays.

    The last axis of positions is the channel; InputError is raised for tokens with one axis. `shares()` returns the
    share and random numbers; `noise` is not used. Returns the mask of the N tokens in B rows, True where hidden, never
    on padding.
    """
    if tokens.axes < 2:
        raise InputError(
            "masking 'channels' hides whole channels, and the tokens have no axis of channels, only that of "
            "time; use 'ratio'."
        )
    return _hide_groups(tokens, -1, *shares())


def _future(tokens: Tokens, noise: Noise | None, shares: Shares) -> Bool[Tensor, "B N"]:
    """Hide the tokens in the last part of each row's span of time, to learn forecasting.

    The span reaches from the first to the last real token of the row, and the part is a share of it, which `shares()`
    returns; `noise` is not used. Axis 0 of positions is time, and a row of one time hides nothing. Returns the mask of
    the N tokens in B rows, True where hidden, never on padding.
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
    """Split tokens into a pair (visible, masked); both keep the order of tokens.

    Each has B rows, padded at the end to the longest row of its own. A row that hides nothing is all padding among the
    masked tokens.

    Args:
        tokens: B rows of N tokens.
        mask: True where a token is masked.

    Raises:
        InputError: a mask of another shape or type, or one that hides padding, all real tokens of a row, or nothing at
            all.
    """
    real = tokens.real
    if mask.shape != real.shape or mask.dtype != torch.bool:
        raise InputError(
            f"mask is {mask.dtype} {tuple(mask.shape)}; give torch.bool of shape {tuple(real.shape)} (batch, tokens)."
        )
    # One transfer for all checks: on an accelerator each would wait for the device.
    seen, hidden = (real & ~mask).sum(1), mask.sum()
    blank, least_seen, all_hidden = torch.stack([(mask & ~real).sum(), seen.min(), hidden]).tolist()
    if blank:
        raise InputError(f"the mask hides {blank} padding tokens; mask only real ones (mask & tokens.real).")
    if least_seen == 0:
        raise InputError(f"the mask hides all tokens of row {int((seen == 0).nonzero()[0])}; leave one visible.")
    if all_hidden == 0:
        raise InputError(
            "the mask hides nothing; hide a token of a row that has two or more, so that there is one to predict."
        )
    return compact(tokens, ~mask), compact(tokens, mask)


def _draw(tokens: Tokens, noise: Noise | None, n: int) -> Float[Tensor, "B n"]:
    """Return n uniform random numbers in [0, 1) for each of the B rows of tokens, on their device.

    They come from `noise`, a function from n to numbers [B, n]; None means torch's global generator.
    """
    values = tokens.values
    return torch.rand(len(values), n, device=values.device) if noise is None else noise(n).to(values.device)


def _count(counts: Int[Tensor, " B"], share: Share) -> Int[Tensor, " B"]:
    """Return how many tokens (or groups of them) each row hides: ceil(share · count), but at most count - 1.

    1e-9 is taken from the product, so that a rounding error does not add one: 0.07 · 100 is 7.

    Args:
        counts: number of tokens (or groups) of each of the B rows.
        share: what part of them to hide, one number for all rows or one for each.
    """
    hidden = (counts.cpu().double() * share - 1e-9).ceil().long().to(counts.device)
    return torch.minimum(hidden, counts - 1)


def _hide(real: Bool[Tensor, "B N"], count: Int[Tensor, " B"], uniform: Float[Tensor, "B N"]) -> Bool[Tensor, "B N"]:
    """Hide the real tokens of each row that have the smallest random numbers; return the mask, True = hidden.

    Of tokens with equal numbers the first ones are taken.

    Args:
        real: True for tokens that may be hidden, N in each of B rows.
        count: how many to hide in each row.
        uniform: the random numbers, less than 1.
    """
    rank = uniform.masked_fill(~real, 2.0).argsort(dim=1, stable=True).argsort(dim=1)
    return (rank < count[:, None]) & real


def _hide_groups(tokens: Tokens, axis: int, share: Share, uniform: Float[Tensor, "B N"]) -> Bool[Tensor, "B N"]:
    """Return a mask that hides whole groups: the tokens of a row with equal positions on `axis` are a group.

    In each row ceil(share · groups) groups are hidden (True), but at least one stays visible. They are those with the
    smallest random numbers: the group of the g-th smallest position has the g-th number of its row.

    Args:
        tokens: B rows of N tokens.
        axis: 0 for time, -1 for the channel.
        share: part of the groups to hide, for all rows or for each.
        uniform: random numbers in [0, 1).
    """
    real, length = tokens.real, tokens.length
    # Padding is numbered behind every real token, so that real groups count from 0.
    group = _dense((~real).long() * length + _dense(tokens.positions[..., axis].contiguous()))
    groups = torch.where(real, group, -1).amax(1) + 1
    in_use = torch.arange(length, device=group.device)[None, :] < groups[:, None]
    return _hide(in_use, _count(groups, share), uniform).gather(1, group) & real


def _dense(keys: Shaped[Tensor, "B N"]) -> Int[Tensor, "B N"]:
    """Number the distinct keys of each of B rows from 0, ascending; return each key's number: 5, 2, 5 → 1, 0, 1."""
    ordered, order = keys.sort(dim=1)
    step = torch.zeros_like(order)
    step[:, 1:] = (ordered[:, 1:] != ordered[:, :-1]).long()
    return torch.empty_like(order).scatter_(1, order, step.cumsum(1))
