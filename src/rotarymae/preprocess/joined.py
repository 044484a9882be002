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
    """Make one token of all observations of a row that have equal keys, such as the same time.

    Args:
        values: V values of each observation; observations stand in any order.
        positions: position of each observation on A axes; equal keys have equal positions.
        keys: the time, then each further position, of each observation; tokens are sorted by the first key, then the
            second, and so on.
        channel: of each observation, from 0 to `channels` - 1; observations with equal keys have different channels.
        channels: number of channels.
        real: True where there is an observation; elsewhere nothing is read.

    Returns:
        Tokens [B, N] with channels · V values each, those of a channel side by side, padded at the end. `observed` is
        True for values that were observed; the others are 0.
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


def value_tokens(joined: Tokens, columns: int) -> Tokens:
    """Make a token for each value of tokens [B, N] that hold V values of one time; return [B, N · V].

    So values can be hidden one by one. The new tokens say only where values are: all have the value 1; their positions
    are the time and the number of the channel, from 1; and values that were not observed are padding.

    Args:
        joined: tokens [B, N] with V values, those of a channel side by side.
        columns: number of values of each channel, of which V is a multiple.
    """
    observed = joined.observed_values
    channel = (1.0 + torch.arange(joined.features) // columns).expand_as(joined.values)
    positions = torch.stack([joined.positions[..., :1].expand_as(channel), channel], -1)
    return Tokens(observed.flatten(1)[..., None] * 1.0, positions.flatten(1, 2), ~observed.flatten(1))


def drop_values(joined: Tokens, most: float, draw: Noise) -> Tokens:
    """Augment tokens that hold several values of one time: drop a random share of each row's values.

    Dropped values count as not observed, and become 0; a token may lose all.

    Args:
        most: the share is drawn for each row, uniformly from 0 to this.
        draw: function from k to uniform random numbers [B, k] in [0, 1).
    """
    uniform = draw(1 + joined.length * joined.features)
    left_out = uniform[:, 1:].view(joined.values.shape) < most * uniform[:, :1, None]
    return keep_values(joined, ~left_out)


def keep_values(joined: Tokens, kept: Bool[Tensor, "B N V"]) -> Tokens:
    """Return tokens in which values count as not observed, and become 0, where `kept` is False."""
    observed = joined.observed_values & kept
    return replace(joined, values=joined.values * observed, observed=observed, check_values=False)


def split_joined(joined: Tokens, mask: Bool[Tensor, "B K"]) -> tuple[Tokens, Tokens]:
    """Split tokens, each with the V values of one time, into (visible, hidden) by a mask over single values.

    Args:
        mask: K is N · V, with the values of a token side by side; True where a value is hidden.

    Returns:
        Two sets of tokens, padded at the end. A time with both hidden and visible values has a token in both.
    """
    hidden = mask.unflatten(1, (joined.length, joined.features))
    visible, masked = (keep_values(joined, kept) for kept in (~hidden, hidden))
    return tuple(compact(part, part.observed_values.any(-1)) for part in (visible, masked))  # type: ignore[return-value]


def carry_forward(tokens: Tokens) -> Tokens:
    """Carry values forward to later tokens; return tokens with 3 V values: latest ones, marks of new ones, recency.

    The latest value is the one observed last, at this token or before; it is 0, the mean, until one was observed. The
    mark is 1 if the value was observed at this token, else 0. Recency is 1 / (1 + age / 4), where the age is the time
    since the value was observed, in units of the first position; it is 0 until one was observed. All 3 V are 0 at
    padding. `observed`, positions and padding stay as they are.

    Args:
        tokens: in order of time, with V values each.
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
