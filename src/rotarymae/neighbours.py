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
        The observations in B = S · V rows, one row for each feature of each series; the V rows of the first series come
        first. A row has E = N observations of one number each (the fields' last size, W, is 1), with missing ones last.
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

    A query is a time (and channel) at which values are to be predicted; only observations in its channel count. The
    first number is the straight line between the nearest observations before and after the query, read at the query's
    time. If only one of the two exists, it is the value of that one; if none does, 0. `neighbours_at` lists all nine
    numbers.

    Args:
        observed: as `observe` returned it, for the same S series and V = `features`.
        positions: of M queries for each series: times (A = 1), or times and channels (A = 2).
        features: number V of values of a token.
    """
    return by_query(neighbours_at(observed, *flat_queries(positions, features)), features)


def flat_queries(positions: Float[Tensor, "S M A"], features: int) -> tuple[Float[Tensor, "R M"], Float[Tensor, "R M"]]:
    """Repeat the queries (positions to predict at) of each series for each of its features; return times and channels.

    `Observed` has a row for each feature of each series, and neighbours of all M queries are looked up in each row.
    Both results thus have R = S · `features` rows. `positions` are times (A = 1), or times and channels (A = 2); for A
    = 1 the returned channels are 0.
    """
    every = positions[:, None].expand(-1, features, -1, -1).flatten(0, 1)
    return every[..., 0], every[..., 1] if positions.shape[-1] == 2 else torch.zeros_like(every[..., 0])


def by_query(part: Shaped[Tensor, "R M 1 *rest"], features: int) -> Shaped[Tensor, "S M V *rest"]:
    """Undo `flat_queries`: reorder results with a row per series and feature, [S · V, M, 1, ...], to [S, M, V, ...].

    There are S series with M queries (positions to predict at), and V = `features` values. The third axis of `part` is
    dropped.
    """
    return part[:, :, 0].unflatten(0, (-1, features)).transpose(1, 2)


def neighbours_at(
    observed: Observed, times: Float[Tensor, "B Q"], channel: Float[Tensor, "B Q"]
) -> Float[Tensor, "B Q W K"]:
    """Describe by K = 9 numbers the observations nearest to each query, before and after it, in its channel.

    A query is a time (and channel) at which values are to be predicted. An observation at exactly this time counts as
    before it.

    Args:
        observed: E observations of W values each in B rows (a row is one feature of one series, see `Observed`).
        times, channel: positions of Q queries to each row.

    Returns:
        Nine numbers for each query and each of W values; 0 where an observation that is named below does not exist.
        - 0: the straight line between the nearest observation before the query and the nearest after it, at the query's
          time; if only one of these exists, its value.
        - 1 and 2: the values of these two, before and after.
        - 3 and 4: how near they are, 1 / (1 + distance in time / `PACE`), where `PACE` is 4 units of position.
        - 5: the value of the second nearest observation before the query, minus that of the nearest.
        - 6: the value of the second nearest observation after the query, minus that of the nearest.
        - 7: the mean of all values in the channel.
        - 8: log1p(number of observations in the channel) / 3.
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
    """Sum `part` over the observations of each channel; return at each observation the sum of its channel.

    Args:
        part: W numbers for each of E observations in each of B rows. Rows are summed separately.
        number: channel of each observation, as a number from 0.
    """
    number = number.expand_as(part)
    return torch.zeros_like(part).scatter_add(1, number, part).gather(1, number)


class NeighbourHead(nn.Module):
    """Output layer that adds a correction to the value on the straight line between a query's neighbours.

    The correction is a sum of two outputs, both 0 after `initialise`:
    - of a small network, which reads the neighbours, a learned embedding of the feature, and the query's token;
    - of a linear layer, which reads the query's token.
    """

    def __init__(self, embed_dim: int, features: int, outputs: int) -> None:
        """Build the layers that correct the straight line between the neighbours of a query (a position to predict at).

        Neighbours are the nearest visible observations of the query's channel, before and after it. A small network
        reads them and the decoder's token; a linear layer reads the token alone. `initialise` sets the weights.

        Args:
            embed_dim: width D of the decoder's tokens.
            features: number V of values of an observation.
            outputs: number P of parameters of the likelihood for each value, such as 2 for a mean and a variance.
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
        """Return the P parameters of the predicted distribution of V values at M queries (positions to predict at).

        The result has P · V numbers per query. The first V are the means: the straight line between the query's
        neighbours plus a learnt correction. Then come the V second parameters (such as the spread), and so on.

        The correction and the other parameters are sums of two outputs: of a small network, which reads `near`, the
        feature and the token, and of a linear layer, which reads the token alone.

        Args:
            tokens: the decoder's token of each query, of width D, in B rows.
            near: the K = 9 numbers that `neighbours` returns for each value; the first is the straight line.
            corrected: True for values for which the small network is computed. Elsewhere its output counts as 0, which
                saves time. None computes it for all.
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
