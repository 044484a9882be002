"""The prior of the model `any-series`: functions drawn at random, observed at irregular times, a part hidden.

A model that is trained on nothing but these draws has never seen a real series, and so can be asked about any. What a
draw is made of is what real series are made of: smooth and rough processes, trends, seasons, jumps, plateaus, pulses
and decays, shared by several channels with lags; observed at even or uneven times, in bursts or at night, with errors
that are known or not, rounded, counted, bounded, with outliers.

`draw(seed, epoch, rows)` is a pure function of its arguments: every number comes from `counter_uniform` of (seed,
epoch, row), so that a resumed training sees what it would have seen. All rows of a batch are drawn at once; a row does
not depend on the others. Letters: B rows of N observations, C channels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rotarymae.any_series import standardise
from rotarymae.batch import Batch
from rotarymae.counter_rng import counter_uniform
from rotarymae.tokens import Tokens, compact

MAX_CHANNELS = 12
SHORTEST, LONGEST = 14, 120  # observations of a row, over all channels


@dataclass(frozen=True, eq=False)
class Draw:
    """A batch of B rows of N observations.

    Attributes:
        times: float64 [B, N], ascending within each channel; the median gap is near 1.
        channels: int64 [B, N], from 0.
        values: float64 [B, N] in arbitrary units.
        errors: float64 [B, N] standard errors where a row has known ones, else NaN.
        hidden: bool [B, N] what is to be predicted.
        padding: bool [B, N] True where there is no observation.
    """

    times: Tensor
    channels: Tensor
    values: Tensor
    errors: Tensor
    hidden: Tensor
    padding: Tensor


class Numbers:
    """Random numbers of B rows, by streams: what one component draws does not depend on how many another one drew."""

    def __init__(self, seed: int, epoch: int, rows: np.ndarray) -> None:
        """Store what the numbers depend on, beside the stream: seed, epoch, and the number of each row, int [B]."""
        self._key, self._rows = (seed, epoch, rows), len(rows)

    def uniform(self, stream: int, *shape: int, low: float = 0.0, high: float = 1.0) -> Tensor:
        """Return uniform numbers [B, *shape] from `low` to `high`, float64; a stream always returns the same ones."""
        flat = counter_uniform(*self._key, stream=stream)(math.prod(shape))
        return low + (high - low) * flat.double().view(self._rows, *shape)

    def normal(self, stream: int, *shape: int) -> Tensor:
        """Return the standard normal numbers [B, *shape] of a stream."""
        return torch.special.ndtri(self.uniform(stream, *shape).clamp(1e-7, 1 - 1e-7))

    def log_uniform(self, stream: int, low: float, high: float, *shape: int) -> Tensor:
        """Return the numbers [B, *shape] of a stream whose logarithm is uniform, from `low` to `high`."""
        return self.uniform(stream, *shape, low=math.log(low), high=math.log(high)).exp()

    def happens(self, stream: int, share: float, *shape: int) -> Tensor:
        """Return a mask [B, *shape] of a stream, each element True with the probability `share`."""
        return self.uniform(stream, *shape) < share


def choose(kind: Tensor, first: Tensor, *others: tuple[float, Tensor]) -> Tensor:
    """Choose among options for each element: the last one of (number, option) whose number `kind` reaches.

    `first` is taken where `kind` is less than all numbers, which ascend. Shapes are broadcast.
    """
    for low, other in others:
        first = torch.where(kind >= low, other, first)
    return first


def counts(seed: int, rows: np.ndarray, longest: int = LONGEST) -> np.ndarray:
    """Return the number of observations of each row (int [B]), over all channels, hidden ones included.

    It is drawn by seed and row, log-uniformly from `SHORTEST` (14) to `longest`.
    """
    return Numbers(seed, 0, rows).log_uniform(1, SHORTEST, longest + 0.999).floor().long().numpy()


def draw(seed: int, epoch: int, rows: np.ndarray, longest: int = LONGEST) -> Draw:
    """Draw the functions with the numbers `rows`, int [B]; each depends on seed, epoch and its number alone.

    `longest` is the largest number of observations of a row.
    """
    numbers = Numbers(seed, epoch, rows)
    count = torch.from_numpy(counts(seed, rows, longest))
    times, channels, padding, number_of_channels = observation_times(numbers, count)
    most = int(number_of_channels.max())
    values = signal(numbers, times, channels, padding)
    values, errors = measured(numbers, values, times, channels, padding, most)
    hidden = hide(numbers, times, channels, padding, number_of_channels)
    return Draw(times, channels, values, errors, hidden, padding)


# ── when ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def observation_times(numbers: Numbers, counts: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Draw when rows are observed: return times, channels and padding [B, N], and the number of channels [B].

    Three of five rows have one channel. Half of the others are observed in all channels at once, the rest in one
    channel at a time, in some more often than in others. `counts` [B] has the number of observations of each row, which
    is rounded down to a multiple of the number of channels in rows that are observed in all at once.
    """
    size, count = len(counts), int(counts.max())
    several = numbers.happens(10, 0.4)
    most = (counts // 6).clamp(1, MAX_CHANNELS)
    share = numbers.uniform(11)
    drawn = (math.log(2) * (1 - share) + (most + 0.999).clamp(min=2).log() * share).exp().floor().long()
    channels_of = torch.minimum(torch.where(several, drawn, 1), most)
    together = numbers.happens(12, 0.5) & (channels_of > 1)
    visits = torch.where(together, counts // channels_of, counts)
    place = torch.arange(count).expand(size, -1)
    gaps = _gaps(numbers, count, place < visits[:, None])
    at = gaps.cumsum(1)
    # rows observed together: observation i is channel i % C at visit i // C
    visit = torch.where(together[:, None], place // channels_of[:, None], place)
    favour = numbers.log_uniform(14, 0.2, 1.0, MAX_CHANNELS).masked_fill(
        torch.arange(MAX_CHANNELS) >= channels_of[:, None], 0.0
    )
    edges = (favour / favour.sum(1, keepdim=True)).cumsum(1)
    apart = torch.searchsorted(edges, numbers.uniform(15, count)).clamp(max=MAX_CHANNELS - 1)
    apart = torch.minimum(apart, channels_of[:, None] - 1)
    channels = torch.where(together[:, None], place % channels_of[:, None], apart)
    padding = place >= torch.where(together, visits * channels_of, visits)[:, None]
    return at.gather(1, visit).masked_fill(padding, 0.0), channels.masked_fill(padding, 0), padding, channels_of


def _gaps(numbers: Numbers, count: int, real: Tensor) -> Tensor:
    """Draw the gaps between `count` visits of each row, [B, count], whose median over the `real` ones [B, count] is 1.

    By row they are even, even with some missing, jittered, exponential, log-normal, in bursts, or of nights and days.
    """
    u = numbers.uniform(20, count).clamp(1e-6, 1 - 1e-6)
    kind = numbers.uniform(21)
    even = torch.ones_like(u)
    missing = 1 + torch.floor(torch.log(u) / math.log(0.35))  # geometric
    exponential = -torch.log(u)
    width = numbers.uniform(22, low=0.5, high=1.6)[:, None]
    log_normal = (numbers.normal(23, count) * width).exp()
    # bursts: a gap ten to a hundred times as long now and then
    rest = numbers.log_uniform(24, 8, 100)[:, None]
    often = numbers.uniform(25, low=0.03, high=0.25)[:, None]
    bursts = torch.where(numbers.uniform(27, count) < often, rest * u, 0.2 + u)
    jittered = 0.6 + 0.8 * u
    # nights: several visits, then whole days without, in which the sun shines
    nights = numbers.uniform(28, low=2, high=12)[:, None]
    day = (numbers.uniform(29, count) < 1 / nights) * numbers.log_uniform(30, 3, 30)[:, None]
    nightly = 0.5 * exponential + day * (1 + torch.floor(4 * u * u))
    others = ((0.22, missing), (0.32, jittered), (0.45, exponential), (0.65, log_normal), (0.78, bursts))
    chosen = choose(kind[:, None], even, *others, (0.88, nightly))
    return chosen / torch.where(real, chosen, torch.nan).nanmedian(1, keepdim=True).values.clamp(min=1e-3)


# ── what ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def signal(numbers: Numbers, times: Tensor, channels: Tensor, padding: Tensor) -> Tensor:
    """Draw values [B, N] without noise at times, channels and padding [B, N].

    Two causes are shared by all channels of a row, each channel with its lag and loading: a process, and perhaps a
    trend, a season, jumps, plateaus and pulses. Every channel adds a process that it does not share.
    """
    size, count = times.shape
    span, most = times.amax(1).clamp(min=1.0), MAX_CHANNELS
    loading = numbers.normal(40, most, 2) * torch.stack([torch.ones(size), numbers.happens(41, 0.5)], 1)[:, None]
    common = numbers.happens(42, 0.3)  # all channels alike
    loading = torch.where(common[:, None, None], loading.abs() + 0.3, loading)
    channel_loading = numbers.log_uniform(43, 0.05, 2.0)[:, None].expand(-1, most)
    lags = numbers.normal(44, most, 2) * (numbers.happens(45, 0.5) * numbers.log_uniform(46, 0.3, 10))[:, None, None]
    pick = channels[..., None].expand(-1, -1, 2)
    loads = loading.gather(1, pick).masked_fill(padding[..., None], 0.0)  # [B, N, 2]
    own_load = channel_loading.gather(1, channels)
    shifted = times[..., None] - lags.gather(1, pick)  # [B, N, 2]
    covariance = torch.zeros(size, count, count, dtype=torch.float64)
    for cause in range(2):
        part = process_kernel(numbers, 50 + 20 * cause, shifted[..., cause], span)
        covariance += loads[:, :, None, cause] * loads[:, None, :, cause] * part
    same = (channels[:, :, None] == channels[:, None, :]) * own_load[:, :, None] * own_load[:, None, :]
    covariance += same * process_kernel(numbers, 90, times, span)
    covariance.diagonal(dim1=1, dim2=2).add_(1e-6 + padding * 1.0)
    factor, info = torch.linalg.cholesky_ex(covariance)
    smooth = (factor @ numbers.normal(110, count)[..., None])[..., 0]
    smooth = smooth.masked_fill((info > 0)[:, None], 0.0)
    present = numbers.happens(111, 0.8)[:, None]
    total = smooth * present
    for cause in range(2):
        at = shifted[..., cause]
        shape = sum(part(numbers, 120 + 100 * cause, at, span) for part in (trend, season, jumps, plateaus, pulses))
        total = total + shape * loads[..., cause]
    return total + 1e-3 * numbers.normal(330, count)


def process_kernel(numbers: Numbers, stream: int, at: Tensor, span: Tensor) -> Tensor:
    """Draw the kernel of a sum of up to three processes; return its covariances [B, N, N] between times `at` [B, N].

    Each process is rough (exponential), once or twice differentiable (Matérn 3/2 and 5/2), smooth (squared
    exponential), periodic, or periodic with a shape that changes. Lengths are from 0.7, the unit being the median gap,
    to two spans. `span` [B] is the time that a row covers; streams from `stream` to `stream + 6` are used.
    """
    distance = (at[:, :, None] - at[:, None, :]).abs()
    total = torch.zeros_like(distance)
    parts = 3
    amount = numbers.log_uniform(stream, 0.1, 1.0, parts)
    present = numbers.uniform(stream + 1, parts) < torch.tensor([1.0, 0.4, 0.15])
    kinds = (numbers.uniform(stream + 2, parts) * 7).long()
    share = numbers.uniform(stream + 3, parts)
    length = (math.log(0.7) * (1 - share) + (2 * span)[:, None].log() * share).exp()
    # at least some 2 gaps to a period, mostly; at most the span
    period_share = numbers.uniform(stream + 4, parts)
    period = (math.log(1.5) * (1 - period_share) + (0.8 * span)[:, None].clamp(min=3).log() * period_share).exp()
    rough = numbers.log_uniform(stream + 5, 0.4, 2.0, parts)
    lasting = numbers.log_uniform(stream + 6, 1.0, 30.0, parts)
    for p in range(parts):
        rows = present[:, p].nonzero()[:, 0]
        r = distance[rows] / length[rows, p, None, None]
        r3, r5 = math.sqrt(3) * r, math.sqrt(5) * r
        kind = kinds[rows, p, None, None]
        cycles = distance[rows] / period[rows, p, None, None]
        log_wave = -2 * (cycles * math.pi).sin().square() / rough[rows, p, None, None].square()
        decay = -0.5 * (cycles / lasting[rows, p, None, None]).square()
        one = torch.ones_like(r)
        exponent = choose(kind, -r, (1, -r3), (2, -r5), (3, -0.5 * r * r), (5, log_wave), (6, log_wave + decay))
        factor = choose(kind, one, (1, 1 + r3), (2, 1 + r5 + r5 * r5 / 3), (3, one))
        total[rows] += amount[rows, p, None, None] * factor * exponent.exp()
    return total


def trend(numbers: Numbers, stream: int, at: Tensor, span: Tensor) -> Tensor:
    """Draw a line or a parabola over the span [B] in three of ten rows: return its values at times `at` [B, N], else 0.

    `stream` is the first stream of random numbers that is used.
    """
    share = at / span[:, None] - 0.5
    size = (
        numbers.normal(stream, 2)
        * (numbers.happens(stream + 1, 0.3) * numbers.log_uniform(stream + 2, 0.3, 6))[:, None]
    )
    bent = numbers.happens(stream + 3, 0.3)
    return size[:, :1] * 2 * share + (size[:, 1] * bent)[:, None] * 4 * share.square()


def season(numbers: Numbers, stream: int, at: Tensor, span: Tensor) -> Tensor:
    """Draw a wave in three of ten rows: return its values at times `at` [B, N], in the other rows 0.

    It has up to four harmonics; its phase may drift and its amplitude swell over the span [B]. Streams of random
    numbers are used from `stream` + 10 on.
    """
    stream += 10
    size = numbers.happens(stream, 0.3) * numbers.log_uniform(stream + 1, 0.2, 3)
    share = numbers.uniform(stream + 2)
    period = (math.log(1.6) * (1 - share) + (1.2 * span).clamp(min=3).log() * share).exp()
    drift = numbers.happens(stream + 3, 0.5) * numbers.log_uniform(stream + 4, 0.02, 0.5)
    cycles = at / period[:, None]
    slow = numbers.uniform(stream + 5, 2, high=2 * math.pi)
    wander = (2 * math.pi * at / span[:, None] + slow[:, :1]).sin()
    cycles = cycles + drift[:, None] * wander
    falling = numbers.uniform(stream + 6, low=0.2, high=2.0)
    total = torch.zeros_like(at)
    phases, sizes = numbers.uniform(stream + 7, 4, high=2 * math.pi), numbers.normal(stream + 8, 4)
    pure = numbers.happens(stream + 9, 0.4)
    for k in range(4):
        weight = sizes[:, k] / (k + 1) ** falling * (1.0 if k == 0 else (~pure).double())
        total += weight[:, None] * (2 * math.pi * (k + 1) * cycles + phases[:, k : k + 1]).sin()
    swell = 1 + 0.5 * numbers.happens(stream + 10, 0.3)[:, None] * (3 * at / span[:, None] + slow[:, 1:]).sin()
    return size[:, None] * total * swell


def jumps(numbers: Numbers, stream: int, at: Tensor, span: Tensor) -> Tensor:
    """Draw one to three steps in an eighth of the rows: return the level at times `at` [B, N], in the other rows 0.

    Steps lie within the span [B] from time 0. Streams of random numbers are used from `stream` + 25 on.
    """
    stream += 25
    when = numbers.uniform(stream, 3) * span[:, None]
    size = numbers.normal(stream + 1, 3) * (numbers.uniform(stream + 2, 3) < torch.tensor([1.0, 0.5, 0.3]))
    size = size * (numbers.happens(stream + 3, 0.12) * numbers.log_uniform(stream + 4, 0.5, 6))[:, None]
    return (size[:, None] * (at[..., None] > when[:, None])).sum(-1)


def plateaus(numbers: Numbers, stream: int, at: Tensor, span: Tensor) -> Tensor:
    """Draw up to twelve levels that hold for a while and then change, in a twelfth of the rows.

    Return the level at times `at` [B, N], in the other rows 0. Changes lie within the span [B] from time 0. Streams of
    random numbers are used from `stream` + 30 on.
    """
    stream += 30
    borders = (numbers.uniform(stream, 11) * span[:, None]).sort(1).values
    levels = numbers.normal(stream + 1, 12)
    few = numbers.happens(stream + 2, 0.5)  # states that return
    levels = torch.where(few[:, None], levels[:, :1] * (levels > 0), levels)
    place = torch.searchsorted(borders, at.clamp(min=0).contiguous())
    size = numbers.happens(stream + 3, 0.08) * numbers.log_uniform(stream + 4, 0.5, 5)
    return size[:, None] * levels.gather(1, place)


def pulses(numbers: Numbers, stream: int, at: Tensor, span: Tensor) -> Tensor:
    """Draw one event, or up to eight, that rise and decay, in a fifth of the rows.

    Return their sum at times `at` [B, N], in the other rows 0. Events start within the span [B] from time 0, or a fifth
    of it before. Streams of random numbers are used from `stream` + 40 on.
    """
    stream += 40
    most = 8
    many = numbers.happens(stream, 0.35)
    shown = (torch.arange(most) == 0) | (many[:, None] & (numbers.uniform(stream + 1, most) < 0.7))
    start = (numbers.uniform(stream + 2, most, low=-0.2, high=1.0)) * span[:, None]
    rise = numbers.log_uniform(stream + 3, 0.003, 0.1) * span
    fall = numbers.log_uniform(stream + 4, 0.01, 0.5) * span
    size = (
        numbers.log_uniform(stream + 5, 0.3, 1.0, most)
        * torch.where(numbers.happens(stream + 6, 0.75), 1.0, -1.0)[:, None]
    )
    size = size * shown * (numbers.happens(stream + 7, 0.2) * numbers.log_uniform(stream + 8, 1, 20))[:, None]
    after = at[..., None] - start[:, None]
    bell = numbers.happens(stream + 9, 0.3)[:, None, None]
    rising = (after / rise[:, None, None]).clamp(-30, 30).sigmoid()
    decay = (-(after.clamp(min=0)) / fall[:, None, None]).exp()
    round_ = (-0.5 * (after / fall[:, None, None]).square()).exp()
    return (size[:, None] * torch.where(bell, round_, rising * decay)).sum(-1)


# ── how it is measured ──────────────────────────────────────────────────────────────────────────────────────────────


def spread(values: Tensor, channels: Tensor, padding: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation of each channel, both [B, C] for C = `most` channels.

    Values, channels and padding are [B, N]. A channel without observations has the mean 0 and the deviation 1e-6.
    """
    real = (~padding).double()
    count = torch.zeros(len(values), most, dtype=torch.float64).scatter_add(1, channels, real).clamp(min=1)
    mean = torch.zeros_like(count).scatter_add(1, channels, values * real) / count
    away = (values - mean.gather(1, channels)) * real
    return mean, (torch.zeros_like(count).scatter_add(1, channels, away.square()) / count).sqrt().clamp(min=1e-6)


def measured(
    numbers: Numbers, values: Tensor, times: Tensor, channels: Tensor, padding: Tensor, most: int
) -> tuple[Tensor, Tensor]:
    """Draw how values are measured: return the values read, and their standard errors where known, else NaN, [B, N].

    Each channel is standardised. Some rows are warped (positive with a long tail, or of two states). Noise is 0.3 to
    150 % of the spread, normal or with heavy tails; in a fourth of the rows its size is known and differs from point to
    point. There are outliers, bounds, counts and rounding. `most` is the largest number of channels of a row.
    """
    count = values.shape[1]
    mean, deviation = spread(values, channels, padding, most)
    scaled = (values - mean.gather(1, channels)) / deviation.gather(1, channels)
    kind = numbers.uniform(400)[:, None]
    steep = numbers.uniform(401, low=0.3, high=1.2)[:, None]
    before = numbers.happens(402, 0.5)[:, None]  # noise before the warp: its size follows the value
    level = numbers.log_uniform(403, 0.003, 1.5)[:, None]
    level = level * torch.where(numbers.happens(404, 0.1)[:, None], 0.0, 1.0)
    normal = numbers.normal(405, count)
    u = numbers.uniform(406, count).clamp(1e-3, 1)
    heavy = normal * u.pow(-0.4) * 0.6
    noise = torch.where(numbers.happens(407, 0.3)[:, None], heavy, normal)
    known = numbers.happens(408, 0.25)[:, None]
    relative = (numbers.normal(409, count) * numbers.uniform(410, low=0.1, high=0.9)[:, None]).exp()
    relative = torch.where(known, relative, 1.0)
    noise = noise * level * relative
    signal_ = scaled + torch.where(before, noise, 0.0)
    tail = ((steep * signal_).clamp(max=6)).exp() / steep
    switch = 2 * (signal_ * 4 * steep + numbers.normal(411)[:, None]).tanh()
    positive = torch.nn.functional.softplus(2 * signal_ + numbers.normal(412)[:, None])
    warped = choose(kind, tail, (0.14, switch), (0.18, positive), (0.24, signal_))
    warped = warped + torch.where(before, 0.0, noise)
    outlier = (
        numbers.uniform(413, count)
        < numbers.happens(414, 0.2)[:, None] * numbers.log_uniform(415, 0.005, 0.06)[:, None]
    )
    away = numbers.normal(416, count) * numbers.log_uniform(417, 1.5, 10)[:, None]
    warped = torch.where(outlier, warped + away, warped)
    low = numbers.uniform(418, low=-1.6, high=0.0)[:, None]
    warped = torch.where((numbers.happens(419, 0.06)[:, None]), torch.maximum(warped, low), warped)
    high = numbers.uniform(420, low=0.0, high=1.6)[:, None]
    warped = torch.where((numbers.happens(421, 0.05)[:, None]), torch.minimum(warped, high), warped)
    grid = numbers.log_uniform(422, 0.02, 0.8)[:, None]
    warped = torch.where(numbers.happens(423, 0.2)[:, None], (warped / grid).round() * grid, warped)
    rate = (0.5 * warped + numbers.uniform(424, low=-1.0, high=3.0)[:, None]).clamp(max=6).exp()
    counts = (rate + rate.sqrt() * numbers.normal(425, count)).clamp(min=0).round()
    warped = torch.where((numbers.happens(426, 0.05))[:, None], counts, warped)
    errors = torch.where(known & ~before & (level > 0), level * relative, torch.nan)
    return warped.masked_fill(padding, 0.0), errors


# ── what is hidden ──────────────────────────────────────────────────────────────────────────────────────────────────


def hide(numbers: Numbers, times: Tensor, channels: Tensor, padding: Tensor, count_of: Tensor) -> Tensor:
    """Draw which observations are hidden, [B, N]: 30 to 80 % at random, stretches, or the end; of one channel or all.

    At least four observations of a row remain visible, and one is hidden. `count_of` [B] has the number of channels.
    """
    count = times.shape[1]
    kind = numbers.uniform(500)[:, None]
    share = numbers.uniform(501, low=0.3, high=0.8)[:, None]
    span = times.amax(1, keepdim=True).clamp(min=1e-9)
    # by time: all that was observed then is hidden, too
    alone = numbers.uniform(502, count)
    by_time = numbers.happens(503, 0.5)[:, None]
    hashed = ((times * 12.9898).sin() * 43758.5453).remainder(1.0)
    random = torch.where(by_time, hashed, alone) < share
    length = numbers.log_uniform(504, 0.06, 0.5)[:, None]
    start = numbers.uniform(505)[:, None] * (1 - length)
    position = times / span
    block = (position >= start) & (position < start + length)
    length2 = numbers.log_uniform(506, 0.03, 0.2)[:, None]
    start2 = numbers.uniform(507)[:, None] * (1 - length2)
    several = block | ((position >= start2) & (position < start2 + length2)) | (alone < 0.15)
    end = position > 1 - numbers.log_uniform(508, 0.05, 0.45)[:, None]
    one = (numbers.uniform(509)[:, None] * count_of[:, None]).floor()
    hidden = choose(kind, random, (0.5, block), (0.78, several), (0.88, end))
    only_one = (numbers.happens(510, 0.4) & (count_of > 1))[:, None]
    hidden = hidden & (~only_one | (channels == one)) & ~padding
    # repair: at least four visible, at least one hidden
    rank = alone.masked_fill(padding, 2.0).argsort(1).argsort(1)
    few = ((~hidden & ~padding).sum(1) < 4)[:, None]
    hidden = torch.where(few, hidden & (rank >= 4), hidden)
    none = (hidden.sum(1) == 0)[:, None]
    return torch.where(none, (rank == 5) & ~padding, hidden)


# ── for training ────────────────────────────────────────────────────────────────────────────────────────────────────


class PriorExamples:
    """Draws as examples of the training loop: standardised as any table's series are, part of them hidden."""

    def __init__(self, rows: int, seed: int = 0, longest: int = LONGEST) -> None:
        """Offer the draws 0 to `rows` - 1 of a seed, with at most `longest` observations each."""
        self.seed, self.longest = seed, longest
        self.lengths = counts(seed, np.arange(rows), longest)

    def names(self, index: Sequence[int] | np.ndarray) -> list[str]:
        """Return a name for each draw, for messages."""
        return [f"draw {i}" for i in index]

    def batch(self, index: np.ndarray, epoch: int | None) -> Batch:
        """Return the batch of the functions with the numbers `index`: others in each epoch, fixed ones for None."""
        drawn = draw(self.seed, -1 if epoch is None else epoch, np.asarray(index), self.longest)
        visible, hidden = tokens_of(drawn)
        return Batch(index, visible, hidden)


def tokens_of(drawn: Draw) -> tuple[Tokens, Tokens]:
    """Return the visible and the hidden observations as tokens of `any-series`: a pair of batches [B, ..].

    A token has two values, the standardised observation and its relative noise; its position is time and channel, from
    1. Rows are standardised by their visible observations.
    """
    seen = ~drawn.hidden & ~drawn.padding
    at, values, noise, _ = standardise(drawn.times, drawn.channels, drawn.values, seen, drawn.errors)
    positions = torch.stack([at, drawn.channels + 1.0], -1).float()
    numbers = torch.stack([values, noise], -1).float()
    tokens = Tokens(numbers, positions, drawn.padding, check_values=False)
    return compact(tokens, seen), compact(tokens, drawn.hidden)
