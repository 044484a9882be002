"""Which tokens are hidden, and how a batch splits into what is seen and what is to be predicted.

Every mask is [B, N] bool, True = hidden, never True on padding, and leaves at least one visible token in each row.
No loops over the batch: noise is ranked within each row and compared with that row's count (as in MAE,
arXiv:2111.06377). `noise` says where the randomness comes from: a call `noise(n)` returns uniform numbers [B, n] in
[0, 1). The default draws from torch's global generator; training passes `rows(...)`, a pure function of
(seed, epoch, series), so that a mask does not depend on batch, process or worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from rotarymae.counter_rng import Noise
from rotarymae.errors import InputError
from rotarymae.tokens import Tokens, compact


def mask_ratio(
    tokens: Tokens, ratio: float | tuple[float, float], noise: Noise | None = None, phase: float | None = None
) -> Bool[Tensor, "B N"]:
    """Hides ceil(ratio · real tokens) of each row, uniformly; at least one stays, so a row of one is never masked.

    Section 4.1 of arXiv:2505.20535. With two ratios each row has its own between them: a model that will be asked to
    interpolate from many and from few observations should have seen both. They are drawn row by row, or with a `phase`
    (one number an epoch) they run between the two in a wave over the logarithm of the length: over the epochs every row
    sees them all, but rows of nearly equal length agree, so that a batch of such rows stays almost free of padding.
    """
    low, high = ratio if isinstance(ratio, tuple) else (ratio, ratio)
    _check_ratio(low)
    _check_ratio(high)
    if low > high:
        raise InputError(f"mask ratios from {low} to {high}; wanted the smaller first.")
    real = tokens.real.sum(1)
    if low == high:
        return _hide(tokens.real, _share(real, low), _draw(tokens, noise, tokens.length))
    uniform = _draw(tokens, noise, tokens.length + 1)
    # The first number, not the last: a row's numbers must not depend on how far its batch is padded.
    at = uniform[:, 0].double() if phase is None else 1 - (1 - 2 * ((real.double().log2() + phase) % 1)).abs()
    return _hide(tokens.real, _share(real, low + (high - low) * at), uniform[:, 1:])


def mask_count(
    tokens: Tokens, low: int, high: int, noise: Noise | None = None, of: str = "masked"
) -> Bool[Tensor, "B N"]:
    """Hides, or with of="visible" leaves, between `low` and `high` tokens (both included), drawn anew for each row.

    A row too short for the drawn count keeps one visible token.
    """
    if of not in ("masked", "visible"):
        raise InputError(f"of={of!r}; wanted 'masked' or 'visible'.")
    if not 0 <= low <= high:
        raise InputError(f"counts from {low} to {high}; wanted 0 <= low <= high.")
    uniform = _draw(tokens, noise, tokens.length + 1)
    count = low + (uniform[:, 0] * (high - low + 1)).long().clamp(max=high - low)
    real = tokens.real.sum(1)
    if of == "visible":
        count = real - count
    return _hide(tokens.real, torch.minimum(count.clamp(min=0), real - 1), uniform[:, 1:])


def mask_groups(tokens: Tokens, ratio: float, axes: Sequence[int], noise: Noise | None = None) -> Bool[Tensor, "B N"]:
    """Hides whole groups: tokens of a row with equal positions on `axes` are hidden together or not at all.

    ceil(ratio · groups) of each row's groups are hidden, and at least one stays. axes=(time,) hides time rows,
    axes=(channel,) channels, all axes but time tubes (VideoMAE, arXiv:2203.12602).
    """
    _check_ratio(ratio)
    if not axes or any(not 0 <= axis < tokens.axes for axis in axes) or len(set(axes)) != len(axes):
        raise InputError(f"axes {tuple(axes)} of positions with {tokens.axes} axes; wanted distinct axes of them.")
    group, groups = _group_ids(tokens, axes)
    in_use = torch.arange(tokens.length, device=group.device)[None, :] < groups[:, None]
    hidden = _hide(in_use, _share(groups, ratio), _draw(tokens, noise, tokens.length))
    return hidden.gather(1, group) & tokens.real


def mask_rows(tokens: Tokens, ratio: float, noise: Noise | None = None, time_axis: int = 0) -> Bool[Tensor, "B N"]:
    """Hides everything observed at a time, for ceil(ratio · distinct times) times of each row."""
    return mask_groups(tokens, ratio, (time_axis,), noise)


def mask_channels(
    tokens: Tokens, ratio: float, noise: Noise | None = None, channel_axis: int = 1
) -> Bool[Tensor, "B N"]:
    """Hides whole channels: ceil(ratio · channels present) of each row."""
    return mask_groups(tokens, ratio, (channel_axis,), noise)


def mask_tubes(tokens: Tokens, ratio: float, noise: Noise | None = None, time_axis: int = 0) -> Bool[Tensor, "B N"]:
    """Hides the same places at all times: groups are positions on every axis but time."""
    axes = [axis for axis in range(tokens.axes) if axis != time_axis]
    return mask_groups(tokens, ratio, axes, noise)


@dataclass(frozen=True)
class Masking:
    """One way of hiding tokens, as a setting: `masking(tokens, noise)` gives the mask.

    Attributes:
        kind: "ratio" (single tokens), "count" (a drawn number of single tokens), "rows" (all that was observed at a
            time), "channels" (whole channels) or "tubes" (the same places at all times).
        ratio: share of tokens or groups to hide; not used by "count". For "ratio" also (low, high), see
            `mask_ratio`.
        low, high: "count" hides, or with of="visible" leaves, between `low` and `high` tokens.
        of: "masked" or "visible", for "count".
    """

    kind: str = "ratio"
    ratio: float | tuple[float, float] = 0.75
    low: int = 1
    high: int = 1
    of: str = "masked"

    def __post_init__(self) -> None:
        if self.kind not in ("ratio", "count", "rows", "channels", "tubes"):
            raise InputError(f"masking {self.kind!r}; wanted ratio, count, rows, channels or tubes.")
        if isinstance(self.ratio, tuple) and self.kind != "ratio":
            raise InputError(f"masking {self.kind!r} takes one ratio; {self.ratio} are two.")
        for ratio in self.ratio if isinstance(self.ratio, tuple) else (self.ratio,):
            _check_ratio(ratio)

    def __call__(self, tokens: Tokens, noise: Noise | None = None, phase: float | None = None) -> Bool[Tensor, "B N"]:
        if self.kind == "count":
            return mask_count(tokens, self.low, self.high, noise, self.of)
        if isinstance(self.ratio, tuple) or self.kind == "ratio":
            return mask_ratio(tokens, self.ratio, noise, phase)
        by_kind = {"rows": mask_rows, "channels": mask_channels, "tubes": mask_tubes}
        return by_kind[self.kind](tokens, self.ratio, noise)


def split(tokens: Tokens, mask: Bool[Tensor, "B N"]) -> tuple[Tokens, Tokens]:
    """(visible, masked): an exact partition of each row's real tokens, in their order.

    Rows may hide different numbers; the shorter ones are padded behind. A row that hides nothing is padding
    throughout in `masked`.

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


def _check_ratio(ratio: float) -> None:
    if not 0 < ratio < 1:
        raise InputError(f"mask ratio {ratio}; wanted more than 0 and less than 1, the share of tokens to hide.")


def _draw(tokens: Tokens, noise: Noise | None, n: int) -> Float[Tensor, "B n"]:
    if noise is None:
        return torch.rand(tokens.batch, n, device=tokens.values.device)
    return noise(n).to(tokens.values.device)


def _share(counts: Int[Tensor, " B"], ratio: float | Float[Tensor, " B"]) -> Int[Tensor, " B"]:
    """ceil(ratio · count), less than the count. In float64, so that 0.75 · 4 is not rounded up to 4."""
    return torch.minimum((counts.double() * ratio - 1e-9).ceil().long(), counts - 1)


def _hide(real: Bool[Tensor, "B N"], count: Int[Tensor, " B"], uniform: Float[Tensor, "B N"]) -> Bool[Tensor, "B N"]:
    """True on the `count` real places of each row that drew the smallest numbers."""
    order = uniform.masked_fill(~real, 2.0).argsort(dim=1)
    rank = torch.empty_like(order)
    rank.scatter_(1, order, torch.arange(real.shape[1], device=order.device).expand_as(order))
    return (rank < count[:, None]) & real


def _group_ids(tokens: Tokens, axes: Sequence[int]) -> tuple[Int[Tensor, "B N"], Int[Tensor, " B"]]:
    """A number 0..groups-1 for each token's group within its row, and the number of groups of each row."""
    group = (~tokens.real).long()  # padding sorts behind every real token, so real groups count from 0
    for axis in axes:
        place = _dense(tokens.positions[..., axis].contiguous())
        group = _dense(group * tokens.length + place)
    groups = torch.where(tokens.real, group, torch.full_like(group, -1)).amax(1) + 1
    return group, groups


def _dense(keys: Tensor) -> Int[Tensor, "B N"]:
    """Ranks of the distinct values of each row: equal keys get equal numbers, in ascending order from 0."""
    ordered, order = keys.sort(dim=1)
    step = torch.zeros_like(order)
    step[:, 1:] = (ordered[:, 1:] != ordered[:, :-1]).long()
    return torch.empty_like(order).scatter_(1, order, step.cumsum(1))
