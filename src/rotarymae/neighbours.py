"""What lies next to a query: the nearest visible values of each feature, before and after it. Ours, not the paper's.

Attention finds neighbours by angles, which takes long to learn where forty variables share a record; and what it finds
it must then average. Here a query is told: the two nearest values on either side, how far away they are, and the mean
of all. The decoder predicts what is to be added to the straight line between the nearest two.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from rotarymae.tokens import Tokens

PACE = 4.0  # units of position after which a neighbour counts as half as near
NUMBERS = 9  # that a query reads of each feature
EMBED_DIM, HIDDEN_DIM = 16, 64


class Observed(NamedTuple):
    """The visible values of a batch in the order of time, and where those next to any token are.

    Attributes:
        times: [B, N], ascending; padding behind, at infinity.
        values: [B, N, V], 0 where a feature was not observed.
        before, after: [B, N, V] places of the nearest token at or before, and at or after this one, in which the
            feature was observed; -1 and N where there is none.
        mean, count: [B, 1, V] of the observed values.
    """

    times: Float[Tensor, "B N"]
    values: Float[Tensor, "B N V"]
    before: Int[Tensor, "B N V"]
    after: Int[Tensor, "B N V"]
    mean: Float[Tensor, "B 1 V"]
    count: Float[Tensor, "B 1 V"]


class Neighbours(NamedTuple):
    """What M queries are told.

    Attributes:
        line: [B, M, V] the straight line between the nearest values; the nearest one alone where the other is
            missing, 0 (the mean of the training values) where both are.
        numbers: [B, M, V, K = NUMBERS] the line, and the neighbours themselves.
    """

    line: Float[Tensor, "B M V"]
    numbers: Float[Tensor, "B M V K"]


def observe(visible: Tokens, features: int) -> Observed:
    """The first `features` values of the tokens, whose positions are times alone.

    Of tokens with twice as many further inputs the first of these say which values were observed (joined times, see
    `series.examples`); of others all were.
    """
    times = visible.positions[..., 0].masked_fill(~visible.real, torch.inf)
    times, order = times.sort(dim=1, stable=True)
    values = visible.values.gather(1, order[..., None].expand(-1, -1, visible.features))
    observed = times.isfinite()[..., None].expand(-1, -1, features)
    if visible.features == 3 * features:
        observed = observed & (values[..., features : 2 * features] > 0)
    values = values[..., :features] * observed
    length = visible.length
    place = torch.arange(length, device=times.device)[:, None]
    before = torch.where(observed, place, -1).cummax(1).values
    after = torch.where(observed, place, length).flip(1).cummin(1).values.flip(1)
    count = observed.sum(1, keepdim=True).to(values.dtype)
    return Observed(times, values, before, after, values.sum(1, keepdim=True) / count.clamp(min=1), count)


def neighbours(observed: Observed, times: Float[Tensor, "B M"]) -> Neighbours:
    """Of queries at these times. What a query is told depends on no other query."""
    length = observed.times.shape[1]
    last = torch.searchsorted(observed.times, times.contiguous(), right=True)[..., None] - 1
    before = _at(observed.before, last, -1)
    after = _at(observed.after, last + 1, length)
    before2 = _step(observed.before, before, -1, -1)
    after2 = _step(observed.after, after, 1, length)
    (value, gap, there), (value2, gap2, there2) = (_look(observed, place, times) for place in (before, after))
    (further, _, known), (further2, _, known2) = (_look(observed, place, times) for place in (before2, after2))
    share = gap / (gap + gap2).clamp(min=1e-6)
    line = torch.where(there & there2, value + (value2 - value) * share, value + value2)
    near, near2 = there / (1 + gap / PACE), there2 / (1 + gap2 / PACE)
    change, change2 = further - value * known, further2 - value2 * known2
    whole = observed.mean.expand_as(line), (observed.count.log1p() / 3).expand_as(line)
    return Neighbours(line, torch.stack([line, value, value2, near, near2, change, change2, *whole], -1))


class NeighbourHead(nn.Module):
    """The decoder's outputs of each feature, from its neighbours and the query's token: the line, corrected.

    One small network serves all features, and knows them apart by a learned embedding; beside it each feature reads
    the token by weights of its own. Both start at zero.
    """

    def __init__(self, embed_dim: int, features: int, outputs: int) -> None:
        super().__init__()
        self.embedding = nn.Parameter(torch.empty(features, EMBED_DIM))
        self.numbers = nn.Linear(NUMBERS + EMBED_DIM, HIDDEN_DIM)
        self.token = nn.Linear(embed_dim, HIDDEN_DIM, bias=False)
        self.hidden = nn.Linear(HIDDEN_DIM, HIDDEN_DIM)
        self.correction = nn.Linear(HIDDEN_DIM, outputs)
        self.readout = nn.Linear(embed_dim, outputs * features)

    def forward(
        self, tokens: Float[Tensor, "B M D"], near: Neighbours, wanted: Bool[Tensor, "B M V"] | None = None
    ) -> Float[Tensor, "B M out"]:
        """Values of all features, and behind them, where there are two outputs, their log-variances.

        What is not `wanted` comes without the correction of the small network, whose cost is that of what is wanted.
        """
        wanted = torch.ones_like(near.line, dtype=torch.bool) if wanted is None else wanted
        row, query, feature = wanted.nonzero(as_tuple=True)
        x = self.numbers(torch.cat([near.numbers[wanted], self.embedding[feature]], -1))
        x = F.silu(x + self.token(tokens)[row, query])
        x = self.correction(x + F.silu(self.hidden(x)))
        correction = x.new_zeros(*wanted.shape, x.shape[-1]).masked_scatter(wanted[..., None], x)
        value, *log_variance = (correction.transpose(2, 3).flatten(2) + self.readout(tokens)).split(wanted.shape[2], -1)
        return torch.cat([near.line + value, *log_variance], -1)


def _at(places: Int[Tensor, "B N V"], token: Int[Tensor, "B M 1"], none: int) -> Int[Tensor, "B M V"]:
    """`places` of these tokens, and `none` of a token that is none."""
    inside = (token >= 0) & (token < places.shape[1])
    index = token.clamp(0, places.shape[1] - 1).expand(-1, -1, places.shape[2])
    return torch.where(inside, places.gather(1, index), none)


def _step(places: Int[Tensor, "B N V"], place: Int[Tensor, "B M V"], step: int, none: int) -> Int[Tensor, "B M V"]:
    """The next observed place beyond `place`."""
    inside = (place >= 0) & (place < places.shape[1]) & (place + step >= 0) & (place + step < places.shape[1])
    index = (place + step).clamp(0, places.shape[1] - 1)
    return torch.where(inside, places.gather(1, index), none)


def _look(
    observed: Observed, place: Int[Tensor, "B M V"], times: Float[Tensor, "B M"]
) -> tuple[Float[Tensor, "B M V"], Float[Tensor, "B M V"], Bool[Tensor, "B M V"]]:
    """The value at a place, its distance in time, and whether there is one; the first two are 0 where there is none."""
    there = (place >= 0) & (place < observed.times.shape[1])
    index = place.clamp(0, observed.times.shape[1] - 1)
    at = observed.times[..., None].expand_as(observed.values).gather(1, index)
    gap = torch.where(there, (times[..., None] - at).abs(), 0.0)
    return observed.values.gather(1, index) * there, gap, there
