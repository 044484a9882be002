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
    """The visible values of a batch in the order of time, with an empty place in front and one behind.

    Attributes:
        times: [B, N + 2], ascending; padding at infinity.
        values: [B, N + 2, V], 0 where a feature was not observed.
        seen: [B, N + 2, V] where it was.
        before, after: [B, N + 2, V] the place next to this one, itself included, at which the feature was observed; the
            first or the last where there is none.
    """

    times: Float[Tensor, "B P"]
    values: Float[Tensor, "B P V"]
    seen: Bool[Tensor, "B P V"]
    before: Int[Tensor, "B P V"]
    after: Int[Tensor, "B P V"]


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
    seen = times.isfinite()[..., None].expand(-1, -1, features)
    if visible.features == 3 * features:
        seen = seen & (values[..., features : 2 * features] > 0)
    seen = F.pad(seen, (0, 0, 1, 1))
    times = F.pad(F.pad(times, (1, 0), value=-torch.inf), (0, 1), value=torch.inf)
    values = F.pad(values[..., :features], (0, 0, 1, 1)) * seen
    place = torch.arange(seen.shape[1], device=times.device)[:, None]
    before = torch.where(seen, place, 0).cummax(1).values
    after = torch.where(seen, place, len(place) - 1).flip(1).cummin(1).values.flip(1)
    return Observed(times, values, seen, before, after)


def neighbours(observed: Observed, times: Float[Tensor, "B M"]) -> Neighbours:
    """Of queries at these times. What a query is told depends on no other query."""
    latest = torch.searchsorted(observed.times[:, 1:-1].contiguous(), times.contiguous(), right=True)
    latest = latest[..., None].expand(-1, -1, observed.values.shape[2])

    def look(place: Int[Tensor, "B M V"]) -> tuple[Tensor, Tensor, Tensor]:
        """The value at a place, its distance in time, and whether there is one; 0 where there is none."""
        seen = observed.seen.gather(1, place)
        at = observed.times[..., None].expand_as(observed.values).gather(1, place)
        return observed.values.gather(1, place), torch.where(seen, (times[..., None] - at).abs(), 0.0), seen

    before, after = observed.before.gather(1, latest), observed.after.gather(1, latest + 1)
    before2 = observed.before.gather(1, (before - 1).clamp(min=0))
    after2 = observed.after.gather(1, (after + 1).clamp(max=observed.seen.shape[1] - 1))
    (value, gap, there), (value2, gap2, there2) = look(before), look(after)
    (further, _, known), (further2, _, known2) = look(before2), look(after2)
    share = gap / (gap + gap2).clamp(min=1e-6)
    line = torch.where(there & there2, value + (value2 - value) * share, value + value2)
    near, near2 = there / (1 + gap / PACE), there2 / (1 + gap2 / PACE)
    change, change2 = further - value * known, further2 - value2 * known2
    count = observed.seen.sum(1, keepdim=True).to(value.dtype)
    mean = observed.values.sum(1, keepdim=True) / count.clamp(min=1)
    whole = mean.expand_as(line), (count.log1p() / 3).expand_as(line)
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
