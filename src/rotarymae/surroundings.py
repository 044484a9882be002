"""Describe what lies around a query: the nearest observations, how far they are, and what simple methods predict.

The simple methods are listed in `surroundings`.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from rotarymae.neighbours import PACE, Observed, by_query, channel_sum, flat_queries, neighbours_at, observe
from rotarymae.preprocess import ObservationPreprocessor
from rotarymae.tokens import Tokens

GUESSES = ("line", "latest", "mean", "drift", "season", "change")
BETWEEN, BEYOND, NOWHERE = range(3)  # nowhere: the channel has no observation
TRAITS = 4  # numbers that describe a channel of a series: the constant 1, and those of `traits`
NEAR_SEASON, UNSEEN = 0.08, 1e-4  # of a season, from an observation; weight of what is guessed without any season
LEAST_VARIANCE, MAX_TRAIT = 1e-6, 6.0  # standardised; of a logarithm


class Surroundings(NamedTuple):
    """The surroundings of M queries (positions to predict at) in B rows, for V values each: the observations near them.

    Attributes:
        guesses: predictions of the G simple methods, in the order of `GUESSES`, standardised.
        distance: in units of position, to the nearest observation of the same value in the query's channel. Between two
            observations it is the harmonic mean of the distances to both; without any it is 0.
        region: of the query: 0 (`BETWEEN`) if it is between two observations, 1 (`BEYOND`) if before the first or after
            the last, 2 (`NOWHERE`) if there are none.
        traits: T = 4 numbers that describe the channel: the constant 1, and the three of the function `traits`.
    """

    guesses: Float[Tensor, "B M V G"]
    distance: Float[Tensor, "B M V"]
    region: Int[Tensor, "B M V"]
    traits: Float[Tensor, "B M V T"]


def surroundings(
    visible: Tokens, positions: Float[Tensor, "B M A"], preprocessor: ObservationPreprocessor, season: float = 0.0
) -> Surroundings:
    """Describe what was observed near each query: what simple methods predict there, and how far the observations are.

    A query is a position (time and channel) at which values are to be predicted. The simple methods, in the order of
    `GUESSES`, are:
    - line: the straight line between the two nearest observations, one before and one after the query. Before the first
      or after the last observation it is the value of that one;
    - latest: the latest value before the query; before the first observation, the value of that one;
    - mean: the mean of the channel, as if it had one more observation of 0;
    - drift: the line; before the first or after the last observation it goes on with the channel's mean slope, for at
      most as long as the channel was observed;
    - season: the value a season earlier or later; the mean if `season` is 0;
    - change: the line plus the change a season earlier or later (`a_season_away`); the line if `season` is 0.

    If there are positions besides time and channel, `_surroundings_in_space` describes the queries instead.

    Args:
        visible: the visible tokens of B series, as the model takes them.
        positions: of M queries for each series, on the A axes of the tokens.
        preprocessor: the one that made the tokens; it says how many values a token has, and which axes.
        season: period after which series repeat, in units of position; 0 for none.

    Returns:
        For each of the V values at each query: the G predictions [B, M, V, G], the distance to the observations
        [B, M, V], whether the query is between observations [B, M, V], and T numbers that describe the channel
        [B, M, V, T].
    """
    features = preprocessor.features
    if preprocessor.position_names:
        return _surroundings_in_space(visible, positions, features)
    observed = observe(visible, features)
    # What is the same for all observations of a channel lies on any line between two of them.
    values = torch.cat([observed.values, *traits(observed), *trend(observed)], -1)
    every = observed._replace(values=values, mean=observed.mean.repeat(1, 1, TRAITS + 2))
    times, channel = flat_queries(positions.to(visible.positions.dtype), features)
    numbers = neighbours_at(every, times, channel).unflatten(2, (-1, 1)).movedim(2, 0)
    line, before, after, nearness, nearness2, _, _, mean, count = numbers[0].unbind(-1)
    opened, closed = nearness > 0, nearness2 > 0
    gap, gap2 = (
        torch.where(there, PACE * (1 / nearness.clamp(min=1e-9) - 1), torch.inf)
        for there, nearness in ((opened, nearness), (closed, nearness2))
    )
    known = opened | closed
    # Between two observations their harmonic mean: the squared error of a line on a random walk is proportional to it.
    distance = torch.where(opened & closed, 2 * gap * gap2 / (gap + gap2).clamp(min=1e-6), torch.minimum(gap, gap2))
    distance = torch.where(known, distance, 0.0)
    region = torch.where(opened & closed, BETWEEN, torch.where(known, BEYOND, NOWHERE))
    number = (3 * count).expm1()
    # As if one more observation had the mean of the training values, 0: a mean of two is no better than it.
    mean = mean * number / (number + 1)
    slopes, span = numbers[TRAITS:, ..., 0]
    # A trend is carried on for as long as it was seen: two values within a minute say nothing of the next year.
    ahead = torch.minimum(distance, span)
    drift = line + torch.where(region == BEYOND, torch.where(opened, ahead, -ahead), 0.0) * slopes
    seasonal, change = mean, line
    if season > 0:
        start = times - torch.where(opened, gap, torch.where(closed, -gap2, 0.0))[..., 0]
        end = times + torch.where(closed, gap2, torch.where(opened, -gap, 0.0))[..., 0]
        trends = slopes, span
        seasonal, change = a_season_away(observed, times, channel, features, season, start, end, line, mean, *trends)
    guesses = torch.stack([line, torch.where(opened, before, after), mean, drift, seasonal, change], -1)
    described = torch.stack([torch.ones_like(line), *numbers[1:TRAITS, ..., 0]], -1)
    return Surroundings(*(by_query(part, features) for part in (guesses, distance, region, described)))


def a_season_away(
    observed: Observed,
    times: Float[Tensor, "B Q"],
    channel: Float[Tensor, "B Q"],
    features: int,
    season: float,
    start: Float[Tensor, "B Q"],
    end: Float[Tensor, "B Q"],
    line: Float[Tensor, "B Q W"],
    mean: Float[Tensor, "B Q W"],
    slopes: Float[Tensor, "B Q W"],
    span: Float[Tensor, "B Q W"],
) -> tuple[Float[Tensor, "B Q W"], Float[Tensor, "B Q W"]]:
    """Predict values at Q times in each of B rows from observations whole seasons earlier and later, by two methods.

    Example: the season is a year, and the time to predict at (the query) is a day in a gap between observations in
    March and June. The first method predicts last year's value on that day. The second predicts the straight line from
    March to June (`line`), plus how far last year's value lay from last year's line between the same two dates
    (`start`, `end`).

    For a query before the first or after the last observation, `start` and `end` are both the time of that observation.
    The second method then predicts the value there (`line`), plus how much the values changed, a season away, from
    that time to the query's. If the query is more than a season away from the observations, both methods
    skip the whole seasons without observations. The second adds the change by the mean slope over the skipped time.

    Both predictions are averages over four seasons: the nearest two earlier and the nearest two later. A season weighs
    more if observations are close to the times that are looked up in it, and next to nothing if it has none there.

    Args:
        observed: the visible observations in B rows, W numbers for each.
        times, channel: positions of the queries.
        features: number of consecutive rows that belong to one series, one row for each feature (value of a token).
            Whole seasons before the first or after the last observation in any of these rows are skipped.
        season: the period, in units of position, more than 0.
        start, end: times of the observations before and after each query; equal beyond the last or first one.
        line: value at the query on the straight line between these two; the second prediction where no season was
            observed.
        mean: of the query's channel; the first prediction where no season was observed.
        slopes: mean slope of the query's channel.
        span: how long the query's channel was observed; the mean slope is applied for at most this time.

    Returns:
        The predictions of the first method, and those of the second.
    """
    real = observed.channel.isfinite()
    early, late = observed.times.masked_fill(~real, torch.inf), observed.times.masked_fill(~real, -torch.inf)
    first, last = early.unflatten(0, (-1, features)).amin((1, 2)), late.unflatten(0, (-1, features)).amax((1, 2))
    # A series of limits only has no ends; that infinity would make of a guess of nothing no number.
    first, last = (part.masked_fill(part.isinf(), 0.0).repeat_interleave(features)[:, None] for part in (first, last))
    # Whole seasons to be skipped: those beyond the observations, and those within the hole.
    back, ahead, hole = (
        season * ((part / season).ceil() - 1).clamp(min=0.0) for part in (times - last, first - times, end - start)
    )
    step = torch.stack([hole + season, -hole - season, hole + 2 * season, -hole - 2 * season], 1)
    further = torch.stack([back, -ahead, back, -ahead], 1)
    away = torch.stack([times[:, None] - further, *(edge[:, None].expand_as(further) for edge in (start, end))], 1)
    away = away - step[:, None]
    near = neighbours_at(observed, away.flatten(1), channel.repeat(1, 12))
    there, before, after = near[..., 0].unflatten(1, away.shape[1:]).unbind(1)
    gap = PACE * (1 / near[..., 3:5].amax(-1).clamp(min=1e-9) - 1)
    seen = (1 / (1 + (gap / (season * NEAR_SEASON)) ** 4)).unflatten(1, away.shape[1:])
    share = ((times - start) / (end - start).clamp(min=1e-6)).clamp(0, 1)[:, None, :, None]
    skipped = torch.minimum(torch.maximum(further[..., None], -span[:, None]), span[:, None])
    offset = there - before - (after - before) * share + skipped * slopes[:, None]

    def average(part: Tensor, weight: Tensor, otherwise: Tensor) -> Tensor:
        """Return the weighted mean of `part` over axis 1, in which `otherwise` is one more entry, with weight 1e-4."""
        return ((weight * part).sum(1) + UNSEEN * otherwise) / (weight.sum(1) + UNSEEN)

    seasonal = average(there, seen[:, 0], mean)
    return seasonal, line + average(offset, seen.prod(1), torch.zeros_like(line))


def trend(observed: Observed) -> tuple[Float[Tensor, "B E W"], Float[Tensor, "B E W"]]:
    """Return the mean slope of each observation's channel, and how long that channel was observed.

    The slope is (last value - first value) / (last time - first time), and the length is last time - first time. Both
    are 0 for a channel that was observed at one time only, and for missing observations. `observed` has E observations
    of W numbers in each of B rows.
    """
    values, times, channel = observed.values, observed.times[..., None], observed.channel
    real = channel.isfinite()
    edges = [real & (channel != channel.roll(by, 1)) for by in (1, -1)]
    edges[0][:, 0], edges[1][:, -1] = real[:, 0], real[:, -1]

    (begin, end), (low, high) = (
        [channel_sum(part * edge[..., None], observed.number) for edge in edges] for part in (times, values)
    )
    slope = torch.where(end > begin, (high - low) / (end - begin).clamp(min=1e-6), 0.0) * real[..., None]
    return slope, ((end - begin) * real[..., None]).expand_as(slope)


def traits(observed: Observed) -> tuple[Float[Tensor, "B E W"], ...]:
    """Describe the channel of each observation by three natural logarithms: of its roughness, variation and size.

    Variation is the standard deviation of the channel's values within the series. Size is the root mean square of these
    values. Roughness says how jagged the curve is: the root mean square distance of an observation from the straight
    line between the two next to it, divided by the variation. One more distance, equal to the variation, is counted, so
    that the roughness is near 1 for few observations.

    Each logarithm is limited to ±`MAX_TRAIT` (6), and 0 for missing observations. `observed` has E observations of W
    standardised numbers in each of B rows; the result is a tuple of three tensors.
    """
    values, times, channel = observed.values, observed.times, observed.channel
    real = channel.isfinite()
    inner = real & (channel == channel.roll(1, 1)) & (channel == channel.roll(-1, 1))
    inner[:, 0], inner[:, -1] = False, False
    gap, gap2 = times - times.roll(1, 1), times.roll(-1, 1) - times
    share = (gap / (gap + gap2).clamp(min=1e-6)).masked_fill(~inner, 0.0)[..., None]
    line = (1 - share) * values.roll(1, 1) + share * values.roll(-1, 1)
    squares = (values - observed.mean).square() * real[..., None], (values - line).square() * inner[..., None]
    about_mean, about_line = (channel_sum(part, observed.number) for part in squares)
    variance = about_mean / observed.count.clamp(min=1) + LEAST_VARIANCE
    number = channel_sum(inner[..., None].to(values.dtype), observed.number)
    rough = ((about_line + variance) / (1 + number) / variance).log()
    size = variance + observed.mean.square()
    logarithms = (rough / 2, variance.log() / 2, size.log() / 2)
    return tuple(part.clamp(-MAX_TRAIT, MAX_TRAIT) * real[..., None] for part in logarithms)


def _surroundings_in_space(visible: Tokens, positions: Float[Tensor, "B M A"], features: int) -> Surroundings:
    """Describe what was observed near queries (positions to predict at) of series that have places as well as times.

    Each value is described by one token: the nearest in which it was observed, by Euclidean distance over all axes of
    position. The fields of the result are

    - guesses: the value in this token, for all simple methods alike; 0 if the value was never observed;
    - distance: the distance to this token; 0 if the value was never observed;
    - region: `BETWEEN`, or `NOWHERE` if the value was never observed;
    - traits: always 1, 0, 0, 0, where 0 stands for each description of a channel (see `Surroundings`).

    Args:
        visible: the visible tokens of B series.
        positions: of M queries for each series, on the A axes of the tokens.
        features: number V of values at the start of a token.
    """
    away = torch.cdist(positions.float(), visible.positions.float())
    seen = visible.observed_values[..., :features].unbind(-1)
    least = [away.masked_fill(~of_one[:, None], torch.inf).min(-1) for of_one in seen]
    distance, index = (torch.stack(part, -1) for part in zip(*least, strict=True))
    known = distance.isfinite()
    nearest = visible.values[..., :features].gather(1, index) * known
    guesses = nearest[..., None].expand(*nearest.shape, len(GUESSES))
    alike = torch.eye(TRAITS, device=positions.device)[0].expand(*nearest.shape, -1)
    return Surroundings(guesses, torch.where(known, distance, 0.0), torch.where(known, BETWEEN, NOWHERE), alike)


def output_numbers(positions: Float[Tensor, "B M A"], preprocessor: ObservationPreprocessor) -> Int[Tensor, "B M V"]:
    """Return which channel and value column each of V values at M queries (positions to predict at) belongs to.

    It is a number that counts pairs of channel and column from 0: all value columns of the first channel, then all of
    the second, and so on, as in `Calibration`. The last of the A axes of `positions` gives the channel. If the series
    have no channels, or a token holds all channels of a time, the number is the value's place in its token.
    """
    value = torch.arange(preprocessor.features, device=positions.device)
    if preprocessor.channel_names is None or preprocessor.join_times:
        return value.expand(*positions.shape[:2], -1)
    channel = (positions[..., -1:] / preprocessor.channel_spacing).round().long() - 1
    return channel.clamp(0, len(preprocessor.channel_names) - 1) * preprocessor.features + value


def log_distance(around: Surroundings) -> Float[Tensor, "*shape"]:
    """Return log2(1 + `around.distance`) as float64: how far observations are from each position to predict at."""
    return (1 + around.distance.double()).log2()
