"""The features of one value's course over time, each with its formula, computed for many groups at once.

A group is the observations of a series, or of one of its channels, in the order of time. In the formulas x are the
values, t the times, e the standard errors, n the count, and d the changes from one observation to the next.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rotarymae.partners.base import Floats

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

STRONG = 5  # standard errors
LAGS = (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64)  # observations, of the structure function
LAG_EDGES = (0.0, 0.01, 0.05, 0.2, 1.0)  # shares of the span
HARMONICS = 16


def divide(a: Any, b: Any) -> Floats:
    """Return a / b, broadcast, as float64; NaN where b is 0."""
    a, b = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(b, np.float64))
    return np.divide(a, b, out=np.full(a.shape, np.nan), where=b != 0)


class Groups:
    """Observations of one value in groups, in the order of time in each group.

    An observation whose value or error is NaN, or whose error is negative, is left out. An error of 0 says that a value
    is exact: it counts like others, and has no ratio to its error.

    Properties and methods return one number for each group with an observation ("of groups"), or one for each
    observation.

    Attributes:
        present: numbers of the groups with an observation; `first`, `last` and `count` are of each: the indices of its
            first and last observation, and how many there are.
        total: number of all groups.
        group: of each observation, the index of its group in `present`.
        t, x, e: time, value and standard error of each observation; e is None without errors.
        index: of each observation, 0 .. n - 1.
    """

    def __init__(self, keys: Integers, total: int, times: Floats, x: Floats, errors: Floats | None) -> None:
        """Sort observations into groups.

        Observations whose value is not finite, or whose error is NaN or negative, are left out.

        Args:
            keys: [n] group of each observation, 0 .. total - 1, in any order.
            total: number of groups, some of which may be empty.
            times, x: [n] time and value of each observation; times ascend within a group.
            errors: [n] standard errors, or None.
        """
        usable = np.isfinite(x) if errors is None else np.isfinite(x) & (errors >= 0)  # NaN >= 0 is False
        keys = keys[usable]
        order = np.argsort(keys, kind="stable")
        self.present, self.first, self.count = np.unique(keys[order], return_index=True, return_counts=True)
        self.group = np.repeat(np.arange(len(self.present)), self.count)
        self.last, self.total = self.first + self.count - 1, total
        self.t, self.x = times[usable][order], x[usable][order]
        self.e = None if errors is None else errors[usable][order]
        self.index = np.arange(len(self.x))

    def spread(self, column: NDArray[Any]) -> Floats:
        """Return a number for each of `total` groups, NaN for the empty ones; `column` has one for each other group."""
        out = np.full(self.total, np.nan)
        out[self.present] = column
        return out

    def sum(self, x: NDArray[Any]) -> Floats:
        """Return the sum of `x`, one number for each observation, in each group."""
        return np.bincount(self.group, x, len(self.present)).astype(np.float64)

    def mean(self, x: NDArray[Any], where: Mask | None = None) -> Floats:
        """Return the mean of `x` in each group, over its finite numbers where the mask is true; NaN without any.

        Args:
            x: a number for each observation.
            where: a mask of observations; None means all.
        """
        known = np.isfinite(x) if where is None else np.isfinite(x) & where
        return divide(self.sum(np.where(known, x, 0.0)), self.sum(known))

    def reduce(self, operation: np.ufunc, x: NDArray[Any]) -> NDArray[Any]:
        """Return `operation`, such as np.maximum, over the numbers of each group; `x` has one for each observation."""
        return operation.reduceat(x, self.first) if len(x) else x[:0]

    def earliest(self, where: Mask) -> Floats:
        """Return the time of the first observation of each group where the mask is true; NaN without one."""
        time = self.reduce(np.minimum, np.where(where, self.t, np.inf))
        return np.where(np.isfinite(time), time, np.nan)

    def latest(self, where: Mask) -> Floats:
        """Return the time of the last observation of each group where the mask is true; NaN without one."""
        time = self.reduce(np.maximum, np.where(where, self.t, -np.inf))
        return np.where(np.isfinite(time), time, np.nan)

    def line(self, a: Floats, b: Floats, where: Mask) -> tuple[Floats, Floats]:
        """Fit b = slope · a + intercept within each group by least squares, where `where` is True.

        Args:
            a, b: a number for each observation.

        Returns:
            The slope and the residual variance of each group; NaN with fewer than 3 points, or where `a` is constant.
        """
        number = self.sum(where)
        a_mean, b_mean = self.mean(a, where), self.mean(b, where)
        a = np.where(where, a - a_mean[self.group], 0.0)
        b = np.where(where, b - b_mean[self.group], 0.0)
        aa, ab, bb = self.sum(a * a), self.sum(a * b), self.sum(b * b)
        enough = (number > 2) & (aa > 0)
        slope = divide(ab, np.where(enough, aa, 0.0))
        return slope, np.maximum(divide(bb - slope * ab, np.where(enough, number, 0.0)), 0.0)

    # What several features read.

    @cached_property
    def level(self) -> Floats:
        return self.mean(self.x)

    @cached_property
    def away(self) -> Floats:
        """Return each value less the mean of its group."""
        return self.x - self.level[self.group]

    @cached_property
    def variance(self) -> Floats:
        return self.mean(self.away**2)

    @cached_property
    def low(self) -> Floats:
        return self.reduce(np.minimum, self.x)

    @cached_property
    def high(self) -> Floats:
        return self.reduce(np.maximum, self.x)

    @cached_property
    def extent(self) -> Floats:
        return self.high - self.low

    @cached_property
    def ranked(self) -> Floats:
        return self.x[np.lexsort((self.x, self.group))]

    def quantile(self, share: float, ranked: Floats | None = None) -> Floats:
        """Return, for each group, the observation whose rank is nearest to a share: 0 means the least, 1 the largest.

        Args:
            ranked: numbers of all groups, ascending in each group; None means the values.
        """
        ranked = self.ranked if ranked is None else ranked
        return ranked[self.first + np.floor(share * (self.count - 1) + 0.5).astype(np.int64)]

    @cached_property
    def follows(self) -> Mask:
        """Return, for each observation, whether it follows another of its group."""
        return np.r_[False, self.group[1:] == self.group[:-1]][: len(self.x)]

    @cached_property
    def change(self) -> Floats:
        """Return, for each observation, the change of x since the one before; 0 for the first of a group."""
        return np.where(self.follows, np.diff(self.x, prepend=self.x[:1]), 0.0)

    @cached_property
    def span(self) -> Floats:
        return self.t[self.last] - self.t[self.first]

    @cached_property
    def base(self) -> Floats:
        """Return the median of each group: where most of a series stays that has one outburst."""
        return self.quantile(0.5)

    @cached_property
    def peak(self) -> Integers:
        """Return the index of each group's peak: its first largest x - e, or x without errors.

        A noisy point is thus no peak.
        """
        lower = self.x if self.e is None else self.x - self.e
        highest = np.flatnonzero(lower == self.reduce(np.maximum, lower)[self.group])
        peak = np.zeros(len(self.present), np.int64)
        peak[self.group[highest][::-1]] = highest[::-1]
        return peak

    @cached_property
    def since_peak(self) -> Floats:
        return self.t - self.t[self.peak][self.group]

    @cached_property
    def height(self) -> Floats:
        """Return the value of each group's peak above the base."""
        return self.x[self.peak] - self.base

    def edges(self, share: float) -> tuple[Integers, Integers]:
        """Return, for each group, the last observation before and the first after the peak that lie below a level.

        The level is base + share · height. They are indices of observations, -1 or n where there is no such
        observation.
        """
        below = self.x < (self.base + share * self.height)[self.group]
        before = np.where(below & (self.index < self.peak[self.group]), self.index, -1)
        after = np.where(below & (self.index > self.peak[self.group]), self.index, len(self.x))
        return self.reduce(np.maximum, before), self.reduce(np.minimum, after)

    @cached_property
    def outburst(self) -> tuple[Integers, Integers]:
        return self.edges(0.2)

    @cached_property
    def outside(self) -> Mask:
        """Return whether an observation is before or after the outburst: the peak down to a fifth of its height."""
        return self.before | self.after

    @cached_property
    def before(self) -> Mask:
        return self.index <= self.outburst[0][self.group]

    @cached_property
    def after(self) -> Mask:
        return self.index >= self.outburst[1][self.group]

    @cached_property
    def bright(self) -> Mask:
        """Return which values exceed the base by a tenth of the height and by 2 e: their logarithm is reliable."""
        above = self.x - self.base[self.group]
        bright = (above > 0.1 * self.height[self.group]) & (above > 0)
        return bright if self.e is None else bright & (above > 2 * self.e)

    @cached_property
    def brightness(self) -> Floats:
        """Return, for each observation, the logarithm of its value above the base; 0 for values that are not bright."""
        return np.log(np.where(self.bright, self.x - self.base[self.group], 1.0))

    @cached_property
    def ratio(self) -> Floats:
        """Return x / e of each observation; NaN for an exact value."""
        assert self.e is not None
        return divide(self.x, self.e)

    @cached_property
    def weighted_mean(self) -> Floats:
        """Return the mean of each group, weighted by 1 / e²."""
        assert self.e is not None
        weight = 1 / np.maximum(self.e, 1e-12) ** 2
        return divide(self.sum(self.x * weight), self.sum(weight))

    @cached_property
    def residual(self) -> Floats:
        """Return (x - weighted mean) / e of each observation; NaN for an exact value."""
        assert self.e is not None
        return divide(self.x - self.weighted_mean[self.group], self.e)

    @cached_property
    def structure(self) -> list[Floats]:
        """Return the structure function of each group in four bins of lags, a list of arrays [groups].

        It is the mean squared change between two observations, over twice the variance. Their lag in time is a share of
        the group's span, between two of LAG_EDGES.
        """
        total = np.zeros((len(LAG_EDGES) - 1, len(self.present)))
        count = np.zeros_like(total)
        for lag in (one for one in LAGS if one < len(self.x)):
            same = np.flatnonzero(self.group[lag:] == self.group[:-lag])
            group = self.group[same]
            share = divide(self.t[same + lag] - self.t[same], self.span[group])
            square = (self.x[same + lag] - self.x[same]) ** 2
            bin_of = np.searchsorted(LAG_EDGES[1:-1], share, side="right")
            place = bin_of * total.shape[1] + group
            total += np.bincount(place, square, total.size).reshape(total.shape)
            count += np.bincount(place, minlength=total.size).reshape(total.shape)
        return list(divide(divide(total, count), 2 * self.variance))

    @cached_property
    def power(self) -> Floats:
        """Return [HARMONICS, groups]: the share of the variance that a sine with 1, 2, ... cycles per span explains.

        NaN for a group of fewer than 5 observations, or a constant one.
        """
        phase = 2 * np.pi * divide(self.t - self.t[self.first][self.group], self.span[self.group])
        turn = np.exp(1j * np.nan_to_num(phase))
        wave, power = np.ones_like(turn), []
        for _ in range(HARMONICS):
            wave = wave * turn
            c, s = wave.real, wave.imag  # pyright: ignore
            c, s = c - self.mean(c)[self.group], s - self.mean(s)[self.group]
            cc, ss, cs = self.sum(c * c), self.sum(s * s), self.sum(c * s)
            xc, xs = self.sum(self.away * c), self.sum(self.away * s)
            explained = divide(ss * xc**2 + cc * xs**2 - 2 * cs * xc * xs, cc * ss - cs**2)
            known = (self.count > 4) & (cc * ss - cs**2 > 1e-9 * self.count**2) & (self.variance > 0)
            power.append(np.where(known, divide(explained, self.count * self.variance), np.nan))
        return np.stack(power)


# ── the features ──────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Feature:
    """A feature: a function that returns one number for each group with an observation.

    Attributes:
        needs_errors: whether it needs standard errors.
        basic: whether it is also computed where there are many channels.
    """

    name: str
    compute: Callable[[Groups], NDArray[Any]]
    needs_errors: bool = False
    basic: bool = False

    @property
    def formula(self) -> str:
        return formula_of(self.compute.func if isinstance(self.compute, partial) else self.compute)


def formula_of(function: Callable[..., Any]) -> str:
    """Return the formula of a feature in one line: its function's docstring, without the section on arguments."""
    return " ".join((inspect.getdoc(function) or "").partition("\n\nArgs:")[0].split())


FEATURES: list[Feature] = []


def feature(name: str, *arguments: Any, **options: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds a function of `Groups` to FEATURES under a name and returns it unchanged.

    Args:
        arguments: pairs (name, value) of further arguments of the function.
        options: fields of `Feature`, such as basic=True.
    """

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        """Add the function to FEATURES and return it."""
        FEATURES.append(Feature(name, partial(function, **dict(arguments)) if arguments else function, **options))
        return function

    return add


@feature("count", basic=True)
def count(g: Groups) -> NDArray[Any]:
    """n; 0 for a group without observations."""
    return g.count


@feature("mean", basic=True)
def mean(g: Groups) -> Floats:
    """sum(x) / n"""
    return g.level


@feature("std", basic=True)
def std(g: Groups) -> Floats:
    """sqrt(mean((x - mean(x))²))"""
    return np.sqrt(g.variance)


@feature("min", basic=True)
def lowest(g: Groups) -> Floats:
    """min(x)"""
    return g.low


@feature("max", basic=True)
def highest(g: Groups) -> Floats:
    """max(x)"""
    return g.high


@feature("first", basic=True)
def first(g: Groups) -> Floats:
    """x[0]"""
    return g.x[g.first]


@feature("last", basic=True)
def last(g: Groups) -> Floats:
    """x[n - 1]"""
    return g.x[g.last]


@feature("time of last", basic=True)
def time_of_last(g: Groups) -> Floats:
    """t[n - 1], since the series began"""
    return g.t[g.last]


@feature("mean change", basic=True)
def mean_change(g: Groups) -> Floats:
    """mean(d)"""
    return divide(g.sum(g.change), g.count - 1)


@feature("std of changes", basic=True)
def std_of_changes(g: Groups) -> Floats:
    """sqrt(mean((d - mean(d))²))"""
    away = np.where(g.follows, g.change - mean_change(g)[g.group], 0.0)
    return np.sqrt(divide(g.sum(away**2), g.count - 1))


@feature("span")
def span(g: Groups) -> Floats:
    """t[n - 1] - t[0]"""
    return g.span


@feature("skew")
def skew(g: Groups) -> Floats:
    """mean((x - mean(x))³) / std(x)³"""
    return divide(g.mean(g.away**3), g.variance**1.5)


@feature("kurtosis")
def kurtosis(g: Groups) -> Floats:
    """mean((x - mean(x))⁴) / std(x)⁴"""
    return divide(g.mean(g.away**4), g.variance**2)


@feature("quantile 0.05", ("share", 0.05))
@feature("quantile 0.25", ("share", 0.25))
@feature("quantile 0.5", ("share", 0.5))
@feature("quantile 0.75", ("share", 0.75))
@feature("quantile 0.95", ("share", 0.95))
def quantile(g: Groups, share: float) -> Floats:
    """The value whose rank is nearest to the share of the others."""
    return g.quantile(share)


@feature("median in range")
def median_in_range(g: Groups) -> Floats:
    """(median(x) - min(x)) / (max(x) - min(x))"""
    return divide(g.base - g.low, g.extent)


@feature("mean in range")
def mean_in_range(g: Groups) -> Floats:
    """(mean(x) - min(x)) / (max(x) - min(x))"""
    return divide(g.level - g.low, g.extent)


@feature("inner range")
def inner_range(g: Groups) -> Floats:
    """(q(0.75) - q(0.25)) / (q(0.95) - q(0.05)), with the quantiles q"""
    return divide(g.quantile(0.75) - g.quantile(0.25), g.quantile(0.95) - g.quantile(0.05))


@feature("skew of quantiles")
def skew_of_quantiles(g: Groups) -> Floats:
    """(q(0.95) + q(0.05) - 2 median(x)) / (q(0.95) - q(0.05))"""
    high, low = g.quantile(0.95), g.quantile(0.05)
    return divide(high + low - 2 * g.base, high - low)


@feature("median deviation")
def median_deviation(g: Groups) -> Floats:
    """median(|x - median(x)|) / std(x)"""
    away = np.abs(g.x - g.base[g.group])
    return divide(g.quantile(0.5, away[np.lexsort((away, g.group))]), np.sqrt(g.variance))


@feature("share beyond 1 std")
def share_beyond_1_std(g: Groups) -> Floats:
    """mean(|x - mean(x)| > std(x))"""
    return g.mean(np.abs(g.away) > np.sqrt(g.variance)[g.group])


@feature("roughness")
def roughness(g: Groups) -> Floats:
    """mean(d²) / std(x)²: 2 for noise, near 0 for a smooth course (von Neumann's ratio)"""
    return divide(g.sum(g.change**2), g.variance * (g.count - 1))


@feature("path")
def path(g: Groups) -> Floats:
    """mean(|d|) / (max(x) - min(x))"""
    return divide(g.sum(np.abs(g.change)), g.extent * (g.count - 1))


@feature("largest change")
def largest_change(g: Groups) -> Floats:
    """max(|d|) / (max(x) - min(x))"""
    return divide(g.reduce(np.maximum, np.abs(g.change)), g.extent)


@feature("largest slope")
def largest_slope(g: Groups) -> Floats:
    """max(|d| / (t[i + 1] - t[i]))"""
    gap = np.where(g.follows, np.diff(g.t, prepend=g.t[:1]), 0.0)
    return g.reduce(np.fmax, np.abs(divide(g.change, gap)))


@feature("range of sums")
def range_of_sums(g: Groups) -> Floats:
    """(max(S) - min(S)) / (n std(x)), with the running sums S of x - mean(x)"""
    running = np.cumsum(g.away)
    running = running - (running - g.away)[g.first][g.group]
    return divide(g.reduce(np.maximum, running) - g.reduce(np.minimum, running), g.count * np.sqrt(g.variance))


@feature("correlation with time")
def correlation_with_time(g: Groups) -> Floats:
    """The slope of x against t, times std(t) / std(x)"""
    everywhere = np.ones(len(g.x), bool)
    slope, _ = g.line(g.t, g.x, everywhere)
    time = g.t - g.mean(g.t)[g.group]
    return divide(slope * np.sqrt(g.mean(time**2)), np.sqrt(g.variance))


@feature("structure below 0.01", ("index", 0))
@feature("structure below 0.05", ("index", 1))
@feature("structure below 0.2", ("index", 2))
@feature("structure above 0.2", ("index", 3))
def structure(g: Groups, index: int) -> Floats:
    """mean((x[j] - x[i])²) / (2 std(x)²) over pairs up to 64 observations apart, by their lag as a share of the span"""
    return g.structure[index]


@feature("power of 1 cycle", ("k", 1))
@feature("power of 2 cycles", ("k", 2))
@feature("power of 3 cycles", ("k", 3))
@feature("power of 4 cycles", ("k", 4))
def power(g: Groups, k: int) -> Floats:
    """The share of the variance that a sine of k cycles over the span explains (Lomb-Scargle, with a free mean)"""
    return g.power[k - 1]


@feature("largest power")
def largest_power(g: Groups) -> Floats:
    """The largest share of the variance that a sine of 1 to 16 cycles explains"""
    return np.fmax.reduce(g.power)


@feature("cycles of the largest power")
def cycles_of_largest_power(g: Groups) -> Floats:
    """The number of cycles, 1 to 16, that explains most of the variance"""
    known = ~np.isnan(g.power).all(0)
    return np.where(known, np.argmax(np.nan_to_num(g.power, nan=-1.0), 0) + 1, np.nan)


# Around the peak: its height is x[peak] - median(x), and the outburst lasts while x is above a fifth of it.


@feature("time of max")
def time_of_max(g: Groups) -> Floats:
    """t[peak], since the series began; the peak is the first of the largest x - e, or of the largest x"""
    return g.t[g.peak]


@feature("height")
def height(g: Groups) -> Floats:
    """x[peak] - median(x)"""
    return g.height


@feature("share above half")
def share_above_half(g: Groups) -> Floats:
    """mean(x > (min(x) + max(x)) / 2)"""
    return g.mean(g.x > ((g.low + g.high) / 2)[g.group])


@feature("first above half")
def first_above_half(g: Groups) -> Floats:
    """t[peak] less the time of the first x > (min(x) + max(x)) / 2"""
    return g.t[g.peak] - g.earliest(g.x > ((g.low + g.high) / 2)[g.group])


@feature("last above half")
def last_above_half(g: Groups) -> Floats:
    """The time of the last x > (min(x) + max(x)) / 2, less t[peak]"""
    return g.latest(g.x > ((g.low + g.high) / 2)[g.group]) - g.t[g.peak]


@feature("rise from 0.2", ("share", 0.2))
@feature("rise from 0.5", ("share", 0.5))
@feature("rise from 0.8", ("share", 0.8))
def rise(g: Groups, share: float) -> Floats:
    """t[peak] less the time of the last x before it that is lower than median(x) + share · height"""
    before, _ = g.edges(share)
    return np.where(before >= 0, g.t[g.peak] - g.t[before], np.nan)


@feature("fall to 0.8", ("share", 0.8))
@feature("fall to 0.5", ("share", 0.5))
@feature("fall to 0.2", ("share", 0.2))
def fall(g: Groups, share: float) -> Floats:
    """The time of the first x after the peak that is lower than median(x) + share · height, less t[peak]"""
    _, after = g.edges(share)
    return np.where(after < len(g.x), g.t[np.minimum(after, len(g.x) - 1)] - g.t[g.peak], np.nan)


@feature("rise over fall")
def rise_over_fall(g: Groups) -> Floats:
    """rise from 0.5 / fall to 0.5"""
    return divide(rise(g, 0.5), fall(g, 0.5))


@feature("decay rate")
def decay_rate(g: Groups) -> Floats:
    """Less the slope of log(x - median(x)) against t from the peak on, over x above a tenth of the height and 2 e"""
    return -g.line(g.t, g.brightness, g.bright & (g.since_peak >= 0))[0]


@feature("growth rate")
def growth_rate(g: Groups) -> Floats:
    """The slope of log(x - median(x)) against t up to the peak, over x above a tenth of the height and 2 e"""
    return g.line(g.t, g.brightness, g.bright & (g.since_peak <= 0))[0]


@feature("power of decay")
def power_of_decay(g: Groups) -> Floats:
    """Less the slope of log(x - median(x)) against log(t - t[peak]) after the peak, over x as of the decay rate"""
    later = g.since_peak > 0
    return -g.line(np.log(np.where(later, g.since_peak, 1.0)), g.brightness, g.bright & later)[0]


@feature("misfit of decay")
def misfit_of_decay(g: Groups) -> Floats:
    """The std of log(x - median(x)) around the line of the decay rate"""
    return np.sqrt(g.line(g.t, g.brightness, g.bright & (g.since_peak >= 0))[1])


@feature("roughness of decay")
def roughness_of_decay(g: Groups) -> Floats:
    """The share of changes from the peak to the end of the outburst that rise"""
    inside = (g.since_peak > 0) & ~g.outside & g.follows
    return g.mean(g.change > 0, inside)


@feature("quiet before", ("part", "before"))
@feature("quiet after", ("part", "after"))
def quiet(g: Groups, part: str) -> Floats:
    """sqrt(mean((x - median(x))²)) before or after the outburst, over its height"""
    square = g.mean((g.x - g.base[g.group]) ** 2, getattr(g, part))
    return divide(np.sqrt(square), g.height)


@feature("second peak")
def second_peak(g: Groups) -> Floats:
    """The largest x - median(x) outside of the outburst, over its height"""
    other = g.reduce(np.maximum, np.where(g.outside, g.x - g.base[g.group], -np.inf))
    return np.where(np.isfinite(other), divide(other, g.height), np.nan)


@feature("dip")
def dip(g: Groups) -> Floats:
    """(median(x) - min(x)) / height"""
    return divide(g.base - g.low, g.height)


@feature("share of outburst")
def share_of_outburst(g: Groups) -> Floats:
    """The share of observations within the outburst"""
    return g.mean(~g.outside)


# With standard errors.


@feature("signal to noise", needs_errors=True)
def signal_to_noise(g: Groups) -> Floats:
    """mean(x / e)"""
    return g.mean(g.ratio)


@feature("largest signal to noise", needs_errors=True)
def largest_signal_to_noise(g: Groups) -> Floats:
    """max(x / e)"""
    return g.reduce(np.fmax, g.ratio)


@feature("mean error", needs_errors=True)
def mean_error(g: Groups) -> Floats:
    """mean(e)"""
    assert g.e is not None
    return g.mean(g.e)


@feature("weighted mean", needs_errors=True)
def weighted_mean(g: Groups) -> Floats:
    """sum(x / e²) / sum(1 / e²)"""
    return g.weighted_mean


@feature("chi square", needs_errors=True)
def chi_square(g: Groups) -> Floats:
    """mean(((x - weighted mean) / e)²)"""
    return g.mean(g.residual**2)


@feature("excess variance", needs_errors=True)
def excess_variance(g: Groups) -> Floats:
    """(std(x)² - mean(e²)) / std(x)²: the share of the variance that is no noise"""
    assert g.e is not None
    return divide(g.variance - g.mean(g.e**2), g.variance)


@feature("Stetson J", needs_errors=True)
def stetson_j(g: Groups) -> Floats:
    """mean(sign(p) sqrt(|p|)) over neighbours, with p = r[i] r[i + 1] and r = (x - weighted mean) / e"""
    product = np.where(g.follows, g.residual * np.r_[0.0, g.residual[:-1]][: len(g.x)], np.nan)
    return g.mean(np.sign(product) * np.sqrt(np.abs(product)))


@feature("Stetson K", needs_errors=True)
def stetson_k(g: Groups) -> Floats:
    """mean(|r|) / sqrt(mean(r²)), with r = (x - weighted mean) / e: 0.8 for noise"""
    return divide(g.mean(np.abs(g.residual)), np.sqrt(g.mean(g.residual**2)))


@feature("share above 5 sigma", ("low", STRONG), needs_errors=True)
@feature("share above 3 sigma", ("low", 3), needs_errors=True)
def share_above(g: Groups, low: float) -> Floats:
    """mean(x / e > low)"""
    return g.mean(g.ratio > low)


@feature("share below -3 sigma", needs_errors=True)
def share_below(g: Groups) -> Floats:
    """mean(x / e < -3)"""
    return g.mean(g.ratio < -3)


@feature("span above 5 sigma", needs_errors=True)
def span_above(g: Groups) -> Floats:
    """The time from the first to the last x / e > 5"""
    return g.latest(g.ratio > STRONG) - g.earliest(g.ratio > STRONG)


@feature("first strong before max", needs_errors=True)
def first_strong(g: Groups) -> Floats:
    """t[peak] less the time of the first |x / e| > 5"""
    return g.t[g.peak] - g.earliest(np.abs(g.ratio) > STRONG)


@feature("last strong after max", needs_errors=True)
def last_strong(g: Groups) -> Floats:
    """The time of the last |x / e| > 5, less t[peak]"""
    return g.latest(np.abs(g.ratio) > STRONG) - g.t[g.peak]


@feature("noise before", ("part", "before"), needs_errors=True)
@feature("noise after", ("part", "after"), needs_errors=True)
def noise(g: Groups, part: str) -> Floats:
    """mean(((x - median(x)) / e)²) before or after the outburst: 1 where nothing but noise is seen"""
    assert g.e is not None
    return g.mean(divide(g.x - g.base[g.group], g.e) ** 2, getattr(g, part))
