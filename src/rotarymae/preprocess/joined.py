"""Joined times: all that was observed at one time is one token, and each value in it is hidden by itself.

`Tokens.observed` says which values there are. A model also reads the latest value of every channel (`carry_forward`).
"""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from rotarymae.counter_rng import Noise
from rotarymae.tokens import Tokens, compact, lexsort

HALF_AS_RECENT = 4.0  # units of position after which a value that is carried forward counts as half as recent


def join(
    values: Float[Tensor, "B N V"],
    positions: Float[Tensor, "B N A"],
    keys: list[Float[Tensor, "B N"]],
    channel: Int[Tensor, "B N"],
    channels: int,
    real: Bool[Tensor, "B N"],
) -> Tokens:
    """Make one token of all observations of a row with equal keys (time, further positions).

    Args:
        values, positions: of single observations, in any order; positions of one token are equal.
        keys: tokens are sorted by the first, then the second, and so on.
        channel: of each observation, from 0 to `channels` - 1.
        real: True where there is an observation.

    Returns:
        Tokens [B, N] with channels · V values each, those of a channel side by side, padded at the end. `observed` says
        which values there are; the others are 0.
    """
    keys = [torch.where(real, key, torch.inf) for key in keys]
    order = lexsort(*keys)
    real, channel = real.gather(1, order), channel.gather(1, order)
    values, positions = (part.gather(1, order[..., None].expand_as(part)) for part in (values, positions))
    ordered = torch.stack([key.gather(1, order) for key in keys], -1)
    opens = torch.cat([torch.ones_like(real[:, :1]), (ordered[:, 1:] != ordered[:, :-1]).any(-1)], 1)
    length, width = real.shape[1], values.shape[2]
    # What is no observation goes to a token behind all others, which is cut off.
    token = torch.where(real, opens.cumsum(1) - 1, length)
    cell = ((token * channels + channel) * width)[..., None] + torch.arange(width, device=real.device)
    size = (real.shape[0], (length + 1) * channels * width)
    table = values.new_zeros(size).scatter(1, cell.flatten(1), values.flatten(1))
    seen = torch.zeros(size, dtype=torch.bool, device=real.device).scatter(
        1, cell.flatten(1), torch.ones_like(cell.flatten(1), dtype=torch.bool)
    )
    table, seen = (part.unflatten(1, (length + 1, -1))[:, :length] for part in (table, seen))
    at = positions.new_zeros(real.shape[0], length + 1, positions.shape[2])
    at = at.scatter(1, token[..., None].expand_as(positions), positions)[:, :length]
    padding = torch.arange(length, device=real.device) >= (opens & real).sum(1, keepdim=True)
    return Tokens(table, at.masked_fill(padding[..., None], 0.0), padding, seen, check_values=False)


def observations(joined: Tokens, columns: int) -> Tokens:
    """Split tokens of times [B, N, V] into [B, N · V] tokens of one number, so that single values can be masked.

    Their number is 1 where the value was observed; the others are padding. Positions are time and channel, from 1. Each
    channel has `columns` value columns.
    """
    observed = joined.observed_values
    channel = (1.0 + torch.arange(joined.features) // columns).expand_as(joined.values)
    positions = torch.stack([joined.positions[..., :1].expand_as(channel), channel], -1)
    return Tokens(observed.flatten(1)[..., None] * 1.0, positions.flatten(1, 2), ~observed.flatten(1))


def drop_values(joined: Tokens, most: float, draw: Noise) -> Tokens:
    """Drop a random share of each row's values, as if they had not been observed; an augmentation.

    The share is uniform from 0 to `most`.
    """
    uniform = draw(1 + joined.length * joined.features)
    left_out = uniform[:, 1:].view(joined.values.shape) < most * uniform[:, :1, None]
    return keep_values(joined, ~left_out)


def keep_values(joined: Tokens, kept: Bool[Tensor, "B N V"]) -> Tokens:
    """Return the tokens as if only the values where `kept` is True had been observed; the others are 0."""
    observed = joined.observed_values & kept
    return replace(joined, values=joined.values * observed, observed=observed, check_values=False)


def split_joined(joined: Tokens, mask: Bool[Tensor, "B K"]) -> tuple[Tokens, Tokens]:
    """Split tokens, each with the V values of one time, into (visible, hidden) by a mask over single values.

    A time with both hidden and visible values has a token in both. K is N · V, with the values of a token side by side.
    """
    hidden = mask.unflatten(1, (joined.length, joined.features))
    visible, masked = (keep_values(joined, kept) for kept in (~hidden, hidden))
    return tuple(compact(part, part.observed_values.any(-1)) for part in (visible, masked))  # type: ignore[return-value]


def carry_forward(tokens: Tokens) -> Tokens:
    """Replace the V values of each token by 3 V: the latest values so far, whether each is new, and their recency.

    The latest value is 0, the mean, before the first observation; recency is 1 / (1 + age / HALF_AS_RECENT), and 0
    before the first. Tokens are in the order of time, their first position.
    """
    observed = tokens.observed_values
    count = observed.cumsum(1)  # of each value's observations so far
    order = torch.arange(tokens.length, device=observed.device)[:, None].expand_as(count)
    # Where the k-th of them is: at k; place 0 takes what is not observed.
    at = torch.zeros(count.shape[0], tokens.length + 1, tokens.features, dtype=torch.int64, device=observed.device)
    at = at.scatter(1, count * observed, order).gather(1, count)
    known = count > 0
    at = at * known
    carried = tokens.values.gather(1, at) * known
    times = tokens.positions[..., :1].expand_as(carried)
    recency = known / (1 + (times - times.gather(1, at)) / HALF_AS_RECENT)
    values = torch.cat([carried, observed.to(carried.dtype), recency], -1).masked_fill(~tokens.real[..., None], 0.0)
    return replace(tokens, values=values, check_values=False)
