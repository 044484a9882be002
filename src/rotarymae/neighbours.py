"""The neighbours of a query: the nearest visible values of its channel, before and after it. Ours, not the paper's.

Attention finds neighbours by angles, which takes long to learn where forty variables share a record or a sensor is read
a million times; and what it finds it must then average. Here a query is told: the two nearest values on either side,
how far away they are, and the mean of all. The decoder predicts what is to be added to the straight line between the
nearest two.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor, nn
from torch.nn import functional as F

from rotarymae.tokens import Tokens, lexsort

PACE = 4.0  # units of position at which the nearness of a neighbour, 1 / (1 + distance / PACE), is a half
NUMBERS = 9  # what a query reads about each feature: see `neighbours_at`
EMBED_DIM, NEIGHBOUR_DIM = 16, 64


class Observed(NamedTuple):
    """The visible observations of series, sorted by channel, then time, with missing ones last.

    Each feature (value of a token) of each series is a row of its own, as other features may have other neighbours: S
    series with V features are B = S · V rows, with the features of a series side by side. A row has E observations of W
    numbers each.

    Attributes:
        channel: position of each observation on the channel axis; infinity for missing ones.
        times: position of each observation on the time axis.
        values: W numbers of each observation; 0 for missing ones.
        mean: mean of the values of all observations of the row in the same channel.
        count: number of these observations.
        number: number of the observation's channel among those of the row, from 0.
    """

    channel: Float[Tensor, "B E"]
    times: Float[Tensor, "B E"]
    values: Float[Tensor, "B E W"]
    mean: Float[Tensor, "B E W"]
    count: Float[Tensor, "B E 1"]
    number: Int[Tensor, "B E 1"]


def observe(visible: Tokens, features: int) -> Observed:
    """Sort the visible observations of each feature by channel and time, so that neighbours can be looked up.

    Args:
        visible: N tokens for each of S series, whose positions are times, or times and channels.
        features: number V of values at the start of each token; further inputs are not read.

    Returns:
        S · V rows, the V features of the first series first, of N observations with one number each (W = 1).
    """
    values, real = (
        part[..., :features].transpose(1, 2).flatten(0, 1) for part in (visible.values, visible.observed_values)
    )
    times, channel = flat_queries(visible.positions, features)
    values, channel = values[..., None], channel.masked_fill(~real, torch.inf)
    order = lexsort(channel, times)
    channel, times, real = (part.gather(1, order) for part in (channel, times, real))
    values = values.gather(1, order[..., None].expand_as(values)) * real[..., None]
    changes = channel != channel.roll(1, 1)
    number = (changes.cumsum(1) - changes[:, :1].long())[..., None]
    count = channel_sum(real[..., None].to(values.dtype), number)
    mean = channel_sum(values, number) / count.clamp(min=1)
    return Observed(channel, times, values, mean, count, number)


def neighbours(observed: Observed, positions: Float[Tensor, "S M A"], features: int) -> Float[Tensor, "S M V K"]:
    """Describe the observations nearest to each query by K = 9 numbers, separately for each of V features.

    With channels in `positions`, only observations of the query's channel count. The first number is the value at the
    query on the straight line between the nearest observation before it and the nearest after it; of one of these
    alone it is the value, and without both 0. `neighbours_at` lists all nine. No query influences another.

    Args:
        observed: as `observe` returned it, for the same S series and V = `features`.
        positions: of M queries for each series: times (A = 1), or times and channels (A = 2).
        features: number V of values of a token.
    """
    return by_query(neighbours_at(observed, *flat_queries(positions, features)), features)


def flat_queries(positions: Float[Tensor, "S M A"], features: int) -> tuple[Float[Tensor, "R M"], Float[Tensor, "R M"]]:
    """Return the times and the channels of M queries of S series, with R = S · `features` rows, one for each feature.

    Each query is repeated for all features of its series, whose rows are side by side. Positions are times (A = 1), or
    times and channels (A = 2); without channels the returned channels are 0.
    """
    every = positions[:, None].expand(-1, features, -1, -1).flatten(0, 1)
    return every[..., 0], every[..., 1] if positions.shape[-1] == 2 else torch.zeros_like(every[..., 0])


def by_query(part: Shaped[Tensor, "R M 1 *rest"], features: int) -> Shaped[Tensor, "S M V *rest"]:
    """Turn results at the queries of `flat_queries` from R = S · V rows to [S, M, V, ...]; their third axis is dropped.

    S is the number of series, M that of queries of each, and V = `features` that of values of a token.
    """
    return part[:, :, 0].unflatten(0, (-1, features)).transpose(1, 2)


def neighbours_at(
    observed: Observed, times: Float[Tensor, "B Q"], channel: Float[Tensor, "B Q"]
) -> Float[Tensor, "B Q W K"]:
    """Describe the nearest observations before and after each query in its channel by K = 9 numbers.

    Args:
        observed: B rows of observations with W values each.
        times, channel: positions of Q queries for each of these rows. An observation at a query's time counts as the
            one before it.

    Returns:
        Nine numbers for each value. Each is 0 where there is no such observation: 0 is the mean of the training values.
        - 0: the value on the straight line between the two observations; beyond the first or last, the value of the
          only one.
        - 1 and 2: the values before and after.
        - 3 and 4: the nearness of both, 1 / (1 + distance / `PACE`), where `PACE` is 4 units of position.
        - 5: the value of the second observation before the query, less that of the first before it.
        - 6: the value of the second observation after the query, less that of the first after it.
        - 7: the mean of the channel's values.
        - 8: log1p(number of the channel's observations) / 3.
    """
    entries = observed.times.shape[1]
    # Sorted together, observations first at equal times: the last observation before a query is its neighbour.
    order = lexsort(torch.cat([observed.channel, channel], 1), torch.cat([observed.times, times], 1))
    before = torch.zeros_like(order).scatter(1, order, (order < entries).cumsum(1))[:, entries:] - 1

    def look(place: Int[Tensor, "B Q"]) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Look up, for each of Q queries in B rows, the observation with the index `place` in the query's row.

        Returns:
            Five tensors: the W values of the observation and the means of its channel, both [B, Q, W]; and, [B, Q, 1]
            each, the number of observations in its channel, its distance in time from the query, and whether it exists
            and is of the query's channel. The others are 0 where it does not.
        """
        inside = place.clamp(0, entries - 1)
        there = (place == inside) & (observed.channel.gather(1, inside) == channel)
        gap = (times - observed.times.gather(1, inside)).abs()

        def read(part: Tensor) -> Tensor:
            """Return the entry of `part`, [B, E, W] or [B, E, 1], of each observation looked up; 0 where none is."""
            return part.gather(1, inside[..., None].expand(-1, -1, part.shape[2])) * there[..., None]

        statistics = read(observed.values), read(observed.mean), read(observed.count)
        return (*statistics, torch.where(there, gap, 0.0)[..., None], there[..., None])

    value, mean, count, gap, there = look(before)
    value2, mean2, count2, gap2, there2 = look(before + 1)
    (further, *_, known), (further2, *_, known2) = look(before - 1), look(before + 2)
    share = gap / (gap + gap2).clamp(min=1e-6)
    line = torch.where(there & there2, value + (value2 - value) * share, value + value2)
    near, near2 = there / (1 + gap / PACE), there2 / (1 + gap2 / PACE)
    change, change2 = further - value * known, further2 - value2 * known2
    whole = torch.where(there, mean, mean2), torch.where(there, count, count2).log1p() / 3
    numbers = (line, value, value2, near, near2, change, change2, *whole)
    return torch.stack([part.to(line.dtype).expand_as(line) for part in numbers], -1)


def channel_sum(part: Float[Tensor, "B E W"], number: Int[Tensor, "B E 1"]) -> Float[Tensor, "B E W"]:
    """Return, for each observation, the sum of `part` over all observations of its row with the same channel `number`.

    There are B rows with E observations each, and W numbers in `part` for each observation.
    """
    number = number.expand_as(part)
    return torch.zeros_like(part).scatter_add(1, number, part).gather(1, number)


class NeighbourHead(nn.Module):
    """Output layer that adds a correction to the value on the straight line between a query's neighbours.

    The correction is the sum of a small network's output, which reads the neighbours, a learned embedding of the
    feature and the query's token, and of a linear layer on this token. Both are 0 after `initialise`.
    """

    def __init__(self, embed_dim: int, features: int, outputs: int) -> None:
        """Build the small network and the linear layer that make up the correction, for `initialise` to fill.

        Args:
            embed_dim: width D of the decoder's tokens.
            features: number V of values of an observation.
            outputs: number P of parameters of the likelihood, for each value.
        """
        super().__init__()
        self.embedding = nn.Parameter(torch.empty(features, EMBED_DIM))
        self.numbers = nn.Linear(NUMBERS + EMBED_DIM, NEIGHBOUR_DIM)
        self.token = nn.Linear(embed_dim, NEIGHBOUR_DIM, bias=False)
        self.hidden = nn.Linear(NEIGHBOUR_DIM, NEIGHBOUR_DIM)
        self.correction = nn.Linear(NEIGHBOUR_DIM, outputs)
        self.readout = nn.Linear(embed_dim, outputs * features)

    def forward(
        self,
        tokens: Float[Tensor, "B M D"],
        near: Float[Tensor, "B M V K"],
        corrected: Bool[Tensor, "B M V"] | None = None,
    ) -> Float[Tensor, "B M out"]:
        """Return P · V outputs of each query: the corrected means of all V values, then their second parameters, ...

        Args:
            tokens: M queries in each of B rows, of width D, as the decoder returns them.
            near: the K = 9 numbers of the function `neighbours` for each value; the first is the value on the straight
                line.
            corrected: True for values whose outputs the small network takes part in. Elsewhere only the
                linear layer corrects, which saves time. None means all.
        """
        line = near[..., 0]
        corrected = torch.ones_like(line, dtype=torch.bool) if corrected is None else corrected
        row, query, feature = corrected.nonzero(as_tuple=True)
        x = self.numbers(torch.cat([near[corrected], self.embedding[feature]], -1))
        x = F.silu(x + self.token(tokens)[row, query])
        x = self.correction(x + F.silu(self.hidden(x)))
        correction = x.new_zeros(*corrected.shape, x.shape[-1]).masked_scatter(corrected[..., None], x)
        value, *others = (correction.transpose(2, 3).flatten(2) + self.readout(tokens)).split(corrected.shape[2], -1)
        return torch.cat([line + value, *others], -1)
