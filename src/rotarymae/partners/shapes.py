"""The features of one value's course over time, each with its formula, computed for many groups at once.

A group is the observations of a series, or of one of its channels, in the order of time. In the formulas x are the
values, t the times, e the standard errors, n the count, and d the changes from one observation to the next.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
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
HARMONICS = 4
# Ends of the windows of a course, as shares of the series' span from the peak: short ones near it, long ones far away.
COURSE = (1 / 256, 1 / 128, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1.0)
PEAK_WINDOWS = {"at": (-0.5, 0.5), "after": (0.5, 1.5)}  # widths of the outburst, from its peak


def divide(a: Any, b: Any) -> Floats:
    """Return a / b of two numbers or arrays, which are broadcast, as a float64 array; NaN where b is 0."""
    a, b = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(b, np.float64))
    return np.divide(a, b, out=np.full(a.shape, np.nan), where=b != 0)


class Groups:
    """Observations of one value in groups, in the order of time in each group.

    An observation whose value is not finite, or whose error is NaN or negative, is left out. An error of 0 says that a
    value is exact: it counts like others, and has no ratio to its error.

    The n observations that stay are sorted by group; G is the number of groups that have any of them.

    Attributes:
        present: [G] numbers of these groups, ascending.
        first, last: [G] indices of the first and the last observation of each.
        count: [G] number of observations of each.
        total: number of all groups, the empty ones included.
        group: [n] the index of each observation's group in `present`.
        t, x, e: [n] time, value and standard error of each observation; e is None without errors.
        index: [n] the numbers 0 .. n - 1.
    """

    def __init__(self, keys: Integers, total: int, times: Floats, x: Floats, errors: Floats | None) -> None:
        """Sort observations into groups, without those that the class leaves out.

        Args:
            keys: int [m], the group of each of m observations, 0 .. total - 1, in any order.
            total: number of groups, some of which may be empty.
            times, x: [m] time and value of each observation; times ascend within a group.
            errors: [m] standard error of each observation; None without errors.
        """
        usable = np.isfinite(x) if errors is None else np.isfinite(x) & (errors >= 0)  # NaN >= 0 is False
        keys = keys[usable]
        order = np.argsort(keys, kind="stable")
        self.present, self.first, self.count = np.unique(keys[order], return_index=True, return_counts=True)
        self.group = np.repeat(np.arange(len(self.present)), self.count)
        self.last, self.total = self.first + self.count - 1, total
        self.t, self.x = times[usable][order], x[usable][order]
        self.e: Any = None if errors is None else errors[usable][order]
        self.index = np.arange(len(self.x))

    def spread(self, column: NDArray[Any]) -> Floats:
        """Return a number for each of all groups, float [total]: NaN for those without observations.

        `column` [G] has the numbers of the others, in ascending order of the groups.
        """
        out = np.full(self.total, np.nan)
        out[self.present] = column
        return out

    def sum(self, x: NDArray[Any]) -> Floats:
        """Return the sum of `x` over each group with observations, float [G].

        `x` [n] has a number for each observation, or True and False, of which True counts 1.
        """
        return np.bincount(self.group, x, len(self.present)).astype(np.float64)

    def mean(self, x: NDArray[Any], where: Mask | None = None) -> Floats:
        """Return the mean of numbers over each group with observations, [G]; NaN for one without a number that counts.

        Args:
            x: [n] a number, or True or False, for each observation; NaN and infinity do not count.
            where: mask [n] of the observations that count; None means all.
        """
        known = np.isfinite(x) if where is None else np.isfinite(x) & where
        return divide(self.sum(np.where(known, x, 0.0)), self.sum(known))

    def reduce(self, operation: np.ufunc, x: NDArray[Any]) -> NDArray[Any]:
        """Return `operation` over each group with observations, [G]: with np.maximum the largest of its numbers.

        Args:
            operation: a binary function of numpy.
            x: [n] a number for each observation.
        """
        return operation.reduceat(x, self.first) if len(x) else x[:0]

    def earliest(self, where: Mask) -> Floats:
        """Return the time of the first observation of each group for which `where` is True, [G]; NaN without one.

        `where` is a mask [n] of the observations; [G] has a number for each group with observations.
        """
        return self.reduce(np.fmin, np.where(where, self.t, np.nan))

    def latest(self, where: Mask) -> Floats:
        """Return the time of the last observation of each group for which `where` is True, [G]; NaN without one.

        `where` is a mask [n] of the observations; [G] has a number for each group with observations.
        """
        return self.reduce(np.fmax, np.where(where, self.t, np.nan))

    def slope(self, a: Floats, b: Floats, where: Mask) -> Floats:
        """Fit b = slope · a + intercept within each group by least squares; return the slopes.

        Args:
            a, b: [n] finite numbers, one for each observation.
            where: mask [n] of the observations to which the lines are fitted.

        Returns:
            [G], a slope for each group with observations. NaN if `where` is True for fewer than 3 of its observations,
            or `a` is the same for all of these.
        """
        a = np.where(where, a - self.mean(a, where)[self.group], 0.0)
        b = np.where(where, b - self.mean(b, where)[self.group], 0.0)
        enough = (self.sum(where) > 2) & (self.sum(a * a) > 0)
        return divide(self.sum(a * b), np.where(enough, self.sum(a * a), 0.0))

    # What several features read.

    @cached_property
    def level(self) -> Floats:
        """The mean value of each group with observations, [G]."""
        return self.mean(self.x)

    @cached_property
    def away(self) -> Floats:
        """The value of each observation less the mean of its group, [n]."""
        return self.x - self.level[self.group]

    @cached_property
    def variance(self) -> Floats:
        """The variance of the values of each group with observations, [G]; the divisor is their number."""
        return self.mean(self.away**2)

    @cached_property
    def ranked(self) -> Floats:
        """The values of all observations, [n], group by group and ascending in each group."""
        return self.x[np.lexsort((self.x, self.group))]

    def quantile(self, share: float) -> Floats:
        """Return a quantile of the values of each group with observations, [G].

        It is one of the values, the one whose rank is nearest to `share`: 0 gives the least, 0.5 the median, 1 the
        largest. Between two ranks that are equally near the higher one is taken.
        """
        return self.ranked[self.first + np.floor(share * (self.count - 1) + 0.5).astype(np.int64)]

    @cached_property
    def follows(self) -> Mask:
        """Mask of the observations, [n]: False for the first observation of each group, True for all others."""
        return np.r_[False, self.group[1:] == self.group[:-1]][: len(self.x)]

    @cached_property
    def change(self) -> Floats:
        """The value of each observation less the one before in its group, [n]; 0 for the first of a group."""
        return np.where(self.follows, np.diff(self.x, prepend=self.x[:1]), 0.0)

    @cached_property
    def span(self) -> Floats:
        """The time from the first to the last observation of each group with observations, [G]."""
        return self.t[self.last] - self.t[self.first]

    @cached_property
    def base(self) -> Floats:
        """The median value of each group with observations, [G]; of an even number the upper one of the middle two.

        A series with one outburst mostly stays around it.
        """
        return self.quantile(0.5)

    @cached_property
    def peak(self) -> Integers:
        """The index of the observation that is the peak of each group with observations, int [G].

        The peak has the largest value less its standard error, so that a noisy value is no peak; without errors it has
        the largest value. Of equal ones the first is taken. Indices are into the n observations.
        """
        lower = self.x if self.e is None else self.x - self.e
        highest = np.flatnonzero(lower == self.reduce(np.maximum, lower)[self.group])
        peak = np.zeros(len(self.present), np.int64)
        peak[self.group[highest][::-1]] = highest[::-1]
        return peak

    @cached_property
    def since_peak(self) -> Floats:
        """The time of each observation less that of its group's peak, [n]; negative before the peak."""
        return self.t - self.t[self.peak][self.group]

    @cached_property
    def height(self) -> Floats:
        """The value of each group's peak less the group's median, [G], for groups with observations."""
        return self.x[self.peak] - self.base

    def edges(self, share: float) -> tuple[Integers, Integers]:
        """Return the last observation before and the first after each group's peak that lie below a level.

        The level is median + share · height, where the height is the peak's value less the group's median.

        Returns:
            Two int arrays [G] with an index for each group with observations, into the n observations. Where no
            observation lies below the level, it is -1 in the first array and n in the second.
        """
        below = self.x < (self.base + share * self.height)[self.group]
        before = np.where(below & (self.index < self.peak[self.group]), self.index, -1)
        after = np.where(below & (self.index > self.peak[self.group]), self.index, len(self.x))
        return self.reduce(np.maximum, before), self.reduce(np.minimum, after)

    @cached_property
    def outburst(self) -> tuple[Integers, Integers]:
        """The last observation before and the first after the outburst of each group with observations.

        The outburst is the observations around the `peak`, as far as none is below median + height / 5, where the
        height is the peak's value less the group's median. These are two int arrays [G] of indices into the n
        observations: -1 in the first where none is before the outburst, n in the second where none is after it.
        """
        return self.edges(0.2)

    @cached_property
    def outside(self) -> Mask:
        """Mask of the observations, [n]: True before and after the outburst of their group."""
        return self.before | self.after

    @cached_property
    def before(self) -> Mask:
        """Mask of the observations, [n]: True before the outburst of their group."""
        return self.index <= self.outburst[0][self.group]

    @cached_property
    def after(self) -> Mask:
        """Mask of the observations, [n]: True after the outburst of their group."""
        return self.index >= self.outburst[1][self.group]

    @cached_property
    def bright(self) -> Mask:
        """Mask of the observations, [n]: True if the value is far enough above its group's median for a logarithm.

        The value less the median must be positive, more than a tenth of the group's height (the peak's value less the
        median) and, if there are errors, more than twice its standard error.
        """
        above = self.x - self.base[self.group]
        bright = (above > 0.1 * self.height[self.group]) & (above > 0)
        return bright if self.e is None else bright & (above > 2 * self.e)

    @cached_property
    def brightness(self) -> Floats:
        """The natural logarithm of each observation's value less its group's median, [n]; 0 where `bright` is False."""
        return np.log(np.where(self.bright, self.x - self.base[self.group], 1.0))

    @cached_property
    def ratio(self) -> Floats:
        """The value of each observation over its standard error, [n]; NaN where this is 0. There must be errors."""
        return divide(self.x, self.e)

    @cached_property
    def weighted_mean(self) -> Floats:
        """The mean value of each group with observations, [G], weighted by the inverse squares of standard errors.

        An error below 1e-12 counts as 1e-12. There must be errors.
        """
        weight = 1 / np.maximum(self.e, 1e-12) ** 2
        return divide(self.sum(self.x * weight), self.sum(weight))

    @cached_property
    def residual(self) -> Floats:
        """Each value less the weighted mean of its group, over its standard error, [n]; NaN where the error is 0.

        The weights of the mean are the inverse squares of the errors. There must be errors.
        """
        return divide(self.x - self.weighted_mean[self.group], self.e)

    @cached_property
    def structure(self) -> list[Floats]:
        """The structure function of each group: how much two values differ, by the time between them.

        It is a list of four arrays [G], with a number for each group with observations: one array for each bin of lags
        0-0.01, 0.01-0.05, 0.05-0.2 and 0.2-1. A lag is the time between two observations as a share of the group's
        span, and 1 if this is 0. The number is the mean squared difference of pairs of values, over twice the group's
        variance. Pairs are `LAGS` observations apart: 1, 2, 3, 4, 6, 8 and so on to 64. NaN for a bin without pairs, or
        a group of equal values.
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
        """The share of each group's variance that a sine with 1, 2, 3 or 4 cycles per span explains, [4, G].

        There is a column for each group with observations. Each sine is fitted alone, with a free phase and mean. NaN
        for a group of fewer than 5 observations or of equal values, or where the times do not determine the sine.
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
    """A feature: a number for each group that has an observation.

    Attributes:
        name: of the feature.
        formula: as documentation shows it, in the letters that the top of this file explains.
        compute: returns the numbers [G] of groups, NaN where there is nothing to compute one from.
        needs_errors: whether it can be computed only with standard errors.
        basic: whether it is also computed where there are many channels.
    """

    name: str
    formula: str
    compute: Callable[[Groups], NDArray[Any]]
    needs_errors: bool = False
    basic: bool = False


def _std_of_changes(g: Groups) -> Floats:
    """Return the standard deviation of the changes from one value to the next in each group, [G].

    [G] has a number for each group with observations; NaN for a single observation.
    """
    mean = divide(g.sum(g.change), g.count - 1)
    return np.sqrt(divide(g.sum(np.where(g.follows, g.change - mean[g.group], 0.0) ** 2), g.count - 1))


def _largest_slope(g: Groups) -> Floats:
    """Return the largest absolute slope between two successive observations of each group, [G].

    [G] has a number for each group with observations. Two at one time have no slope; NaN if a group has none.
    """
    gap = np.where(g.follows, np.diff(g.t, prepend=g.t[:1]), 0.0)
    return g.reduce(np.fmax, np.abs(divide(g.change, gap)))


def _correlation_with_time(g: Groups) -> Floats:
    """Return Pearson's correlation of values and times in each group, [G]; G counts groups with observations only.

    NaN for fewer than 3 observations, or where all values or all times are equal.
    """
    slope = g.slope(g.t, g.x, np.ones(len(g.x), bool))
    time = g.t - g.mean(g.t)[g.group]
    return divide(slope * np.sqrt(g.mean(time**2)), np.sqrt(g.variance))


def rise(g: Groups, share: float) -> Floats:
    """Return the time to each group's peak from the last value before it that is below median + share · height, [G].

    A group is the observations of a series in a channel; G counts those with observations. The height is the peak's
    value less the median. NaN where there is no such value.
    """
    before, _ = g.edges(share)
    return np.where(before >= 0, g.t[g.peak] - g.t[before], np.nan)


def fall(g: Groups, share: float) -> Floats:
    """Return the time from each group's peak to the first value after it that is below median + share · height, [G].

    A group is the observations of a series in a channel; G counts those with observations. The height is the peak's
    value less the median. NaN where there is no such value.
    """
    _, after = g.edges(share)
    return np.where(after < len(g.x), g.t[np.minimum(after, len(g.x) - 1)] - g.t[g.peak], np.nan)


def _power_of_decay(g: Groups) -> Floats:
    """Return the power p by which each group decays after its peak, as (time since the peak) to the -p, [G].

    It is the negative slope of log(value - median) against log(time since the peak), over the observations after the
    peak whose values are far enough above the median (`bright`). [G] has a number for each group with observations; NaN
    if a group has fewer than 3 of these.
    """
    later = g.since_peak > 0
    return -g.slope(np.log(np.where(later, g.since_peak, 1.0)), g.brightness, g.bright & later)


def _quiet(g: Groups, where: Mask) -> Floats:
    """Return the root mean square distance from each group's median, over the height of its peak, [G].

    Only the observations count for which the mask `where` [n] is True. [G] has a number for each group with
    observations; NaN if none of them counts, or the height is 0.
    """
    return divide(np.sqrt(g.mean((g.x - g.base[g.group]) ** 2, where)), g.height)


def _second_peak(g: Groups) -> Floats:
    """Return the largest value outside of each group's outburst as a share of the height of its peak, [G].

    The outburst is the observations around the peak (`Groups.outburst`). Value and height are measured from the group's
    median. [G] has a number for each group with observations; NaN if none of them is outside, or the height is 0.
    """
    return divide(g.reduce(np.fmax, np.where(g.outside, g.x - g.base[g.group], np.nan)), g.height)


def _stetson_j(g: Groups) -> Floats:
    """Return Stetson's J of each group, [G]: the mean of sign(p) sqrt(|p|) over the products p of residuals.

    A product is that of two successive observations; a residual is (value - weighted mean) / standard error. [G] has a
    number for each group with observations; NaN for a group without a product. There must be errors.
    """
    product = np.where(g.follows, g.residual * np.r_[0.0, g.residual[:-1]][: len(g.x)], np.nan)
    return g.mean(np.sign(product) * np.sqrt(np.abs(product)))


def _noise(g: Groups, where: Mask) -> Floats:
    """Return the mean square of (value - median) / standard error of each group, [G]; about 1 for noise alone.

    Only the observations count for which the mask `where` [n] is True and the error is not 0. [G] has a number for each
    group with observations; NaN if none of them counts. There must be errors.
    """
    return g.mean(divide(g.x - g.base[g.group], g.e) ** 2, where)


_STRUCTURE = (
    "mean((x[j] - x[i])²) / (2 std(x)²) over pairs up to 64 observations apart, by their lag as a share of the span"
)
_POWER = "The share of the variance that a sine of k cycles over the span explains (Lomb-Scargle, with a free mean)"
_RISE = "t[peak] less the time of the last x before it that is lower than median(x) + share · height"
_FALL = "The time of the first x after the peak that is lower than median(x) + share · height, less t[peak]"
_QUIET = "sqrt(mean((x - median(x))²)) before or after the outburst, over its height"
_NOISE = "mean(((x - median(x)) / e)²) before or after the outburst: 1 where nothing but noise is seen"

# Around the peak: its height is x[peak] - median(x), and the outburst lasts while x is above a fifth of it.
FEATURES = (
    Feature("count", "n; 0 for a group without observations.", lambda g: g.count, basic=True),
    Feature("mean", "sum(x) / n", lambda g: g.level, basic=True),
    Feature("std", "sqrt(mean((x - mean(x))²))", lambda g: np.sqrt(g.variance), basic=True),
    Feature("min", "min(x)", lambda g: g.reduce(np.minimum, g.x), basic=True),
    Feature("max", "max(x)", lambda g: g.reduce(np.maximum, g.x), basic=True),
    Feature("first", "x[0]", lambda g: g.x[g.first], basic=True),
    Feature("last", "x[n - 1]", lambda g: g.x[g.last], basic=True),
    Feature("time of last", "t[n - 1], since the series began", lambda g: g.t[g.last], basic=True),
    Feature("mean change", "mean(d)", lambda g: divide(g.sum(g.change), g.count - 1), basic=True),
    Feature("std of changes", "sqrt(mean((d - mean(d))²))", _std_of_changes, basic=True),
    Feature("span", "t[n - 1] - t[0]", lambda g: g.span),
    Feature("skew", "mean((x - mean(x))³) / std(x)³", lambda g: divide(g.mean(g.away**3), g.variance**1.5)),
    Feature("kurtosis", "mean((x - mean(x))⁴) / std(x)⁴", lambda g: divide(g.mean(g.away**4), g.variance**2)),
    *(
        Feature(
            f"quantile {share}",
            "The value whose rank, from 0 for the least to 1 for the largest, is nearest to this number",
            partial(Groups.quantile, share=share),
        )
        for share in (0.95, 0.75, 0.5, 0.25, 0.05)
    ),
    Feature(
        "roughness",
        "mean(d²) / std(x)²: 2 for noise, near 0 for a smooth course (von Neumann's ratio)",
        lambda g: divide(g.sum(g.change**2), g.variance * (g.count - 1)),
    ),
    Feature("largest slope", "max(|d| / (t[i + 1] - t[i]))", _largest_slope),
    Feature("correlation with time", "The slope of x against t, times std(t) / std(x)", _correlation_with_time),
    Feature("structure above 0.2", _STRUCTURE, lambda g: g.structure[3]),
    Feature("structure below 0.2", _STRUCTURE, lambda g: g.structure[2]),
    Feature("structure below 0.05", _STRUCTURE, lambda g: g.structure[1]),
    Feature("structure below 0.01", _STRUCTURE, lambda g: g.structure[0]),
    Feature("power of 4 cycles", _POWER, lambda g: g.power[3]),
    Feature("power of 3 cycles", _POWER, lambda g: g.power[2]),
    Feature("power of 2 cycles", _POWER, lambda g: g.power[1]),
    Feature("power of 1 cycle", _POWER, lambda g: g.power[0]),
    Feature(
        "time of max",
        "t[peak], since the series began; the peak is the first of the largest x - e, or of the largest x",
        lambda g: g.t[g.peak],
    ),
    Feature("height", "x[peak] - median(x)", lambda g: g.height),
    *(Feature(f"rise from {share}", _RISE, partial(rise, share=share)) for share in (0.8, 0.5, 0.2)),
    *(Feature(f"fall to {share}", _FALL, partial(fall, share=share)) for share in (0.2, 0.5, 0.8)),
    Feature(
        "decay rate",
        "Less the slope of log(x - median(x)) against t from the peak on, over x above a tenth of the height and 2 e",
        lambda g: -g.slope(g.t, g.brightness, g.bright & (g.since_peak >= 0)),
    ),
    Feature(
        "growth rate",
        "The slope of log(x - median(x)) against t up to the peak, over x above a tenth of the height and 2 e",
        lambda g: g.slope(g.t, g.brightness, g.bright & (g.since_peak <= 0)),
    ),
    Feature(
        "power of decay",
        "Less the slope of log(x - median(x)) against log(t - t[peak]) after the peak, over x as of the decay rate",
        _power_of_decay,
    ),
    Feature(
        "roughness of decay",
        "The share of changes from the peak to the end of the outburst that rise",
        lambda g: g.mean(g.change > 0, (g.since_peak > 0) & ~g.outside & g.follows),
    ),
    Feature("quiet after", _QUIET, lambda g: _quiet(g, g.after)),
    Feature("quiet before", _QUIET, lambda g: _quiet(g, g.before)),
    Feature("second peak", "The largest x - median(x) outside of the outburst, over its height", _second_peak),
    Feature("dip", "(median(x) - min(x)) / height", lambda g: divide(g.base - g.quantile(0), g.height)),
    Feature("share of outburst", "The share of observations within the outburst", lambda g: g.mean(~g.outside)),
    Feature("signal to noise", "mean(x / e)", lambda g: g.mean(g.ratio), needs_errors=True),
    Feature("largest signal to noise", "max(x / e)", lambda g: g.reduce(np.fmax, g.ratio), needs_errors=True),
    Feature("mean error", "mean(e)", lambda g: g.mean(g.e), needs_errors=True),
    Feature("weighted mean", "sum(x / e²) / sum(1 / e²)", lambda g: g.weighted_mean, needs_errors=True),
    Feature("chi square", "mean(((x - weighted mean) / e)²)", lambda g: g.mean(g.residual**2), needs_errors=True),
    Feature(
        "excess variance",
        "(std(x)² - mean(e²)) / std(x)²: the share of the variance that is no noise",
        lambda g: divide(g.variance - g.mean(g.e**2), g.variance),
        needs_errors=True,
    ),
    Feature(
        "Stetson J",
        "mean(sign(p) sqrt(|p|)) over neighbours, with p = r[i] r[i + 1] and r = (x - weighted mean) / e",
        _stetson_j,
        needs_errors=True,
    ),
    Feature(
        "Stetson K",
        "mean(|r|) / sqrt(mean(r²)), with r = (x - weighted mean) / e: 0.8 for noise",
        lambda g: divide(g.mean(np.abs(g.residual)), np.sqrt(g.mean(g.residual**2))),
        needs_errors=True,
    ),
    Feature("share above 3 sigma", "mean(x / e > 3)", lambda g: g.mean(g.ratio > 3), needs_errors=True),
    Feature("share above 5 sigma", "mean(x / e > 5)", lambda g: g.mean(g.ratio > STRONG), needs_errors=True),
    Feature("share below -3 sigma", "mean(x / e < -3)", lambda g: g.mean(g.ratio < -3), needs_errors=True),
    Feature(
        "span above 5 sigma",
        "The time from the first to the last x / e > 5",
        lambda g: g.latest(g.ratio > STRONG) - g.earliest(g.ratio > STRONG),
        needs_errors=True,
    ),
    Feature(
        "first strong before max",
        "t[peak] less the time of the first |x / e| > 5",
        lambda g: g.t[g.peak] - g.earliest(np.abs(g.ratio) > STRONG),
        needs_errors=True,
    ),
    Feature(
        "last strong after max",
        "The time of the last |x / e| > 5, less t[peak]",
        lambda g: g.latest(np.abs(g.ratio) > STRONG) - g.t[g.peak],
        needs_errors=True,
    ),
    Feature("noise after", _NOISE, lambda g: _noise(g, g.after), needs_errors=True),
    Feature("noise before", _NOISE, lambda g: _noise(g, g.before), needs_errors=True),
)


def compute(groups: Groups, everything: bool = True) -> dict[str, Floats]:
    """Compute the features of `FEATURES` for all groups; return {feature: numbers [groups.total]}, in their order.

    A group without observations has NaN, and the count 0. Features that need standard errors are left out if the
    observations have none.

    Args:
        groups: observations of one value, sorted into groups.
        everything: True computes all features, False the basic ones only.
    """
    usable = [one for one in FEATURES if (everything or one.basic) and (groups.e is not None or not one.needs_errors)]
    table = {one.name: groups.spread(one.compute(groups)) for one in usable}
    return table | {"count": np.nan_to_num(table["count"])}


# ── of several channels ───────────────────────────────────────────────────────────────────────────────────────────────


def course(groups: Groups, tables: dict[str, Floats], name: str, channel_names: Sequence[Any]) -> dict[str, Floats]:
    """Return the mean of each channel in windows of time around the series' peak, which is that of a leading channel.

    The leading channel has the greatest height, its peak less its median (with errors: the largest x / e). Windows are
    shares of the series' span on either side of its peak: window 0 reaches to 1/256, windows -1 and 1 go on to 1/128,
    -2 and 2 to 1/64, and so on to 1/4, and -7 and 7 to the whole span. In each window a channel has the mean of x less
    the channel's median, over the height of the leading channel. With errors the mean is weighted by 1 / e², and there
    is a second feature: this mean, without the height, divided by its standard error.

    Args:
        groups: a group for each of C channels of each of S series, series by series; times count from the first
            observation of the series.
        tables: {feature: [S, C]} of all features, from `compute`.
        name: the value column, for the names of the features.
        channel_names: [C], for the names of the features.

    Returns:
        {"CHANNEL: NAME course WINDOW": numbers [S]}, with errors also "CHANNEL: NAME signal of course WINDOW". NaN for
        a window without observations of the channel, and for a series of a single time; a course, but not its signal,
        is also NaN where the height is not positive.
    """
    series, number = tables["max"].shape
    of_series, channel = np.divmod(groups.present[groups.group], number)
    leading, row = _leading(groups, tables), np.arange(series)
    span = np.nan_to_num(tables["time of last"]).max(1)
    since = divide(groups.t - tables["time of max"][row, leading][of_series], span[of_series])
    edges, inside = np.r_[-np.array(COURSE[-2::-1]), COURSE[:-1]], np.isfinite(since)
    windows = len(edges) + 1
    place = ((of_series * number + channel) * windows + np.searchsorted(edges, since, side="right"))[inside]
    weight = np.ones(len(groups.x)) if groups.e is None else 1 / np.maximum(groups.e, 1e-12) ** 2
    total = np.bincount(place, weight[inside], series * number * windows)
    above = np.bincount(place, (weight * (groups.x - groups.base[groups.group]))[inside], len(total))
    height = tables["height"][row, leading][:, None, None]
    shape = (series, number, windows)
    columns = {"course": divide(divide(above, total).reshape(shape), np.where(height > 0, height, np.nan))}
    if groups.e is not None:
        columns["signal of course"] = divide(above, np.sqrt(total)).reshape(shape)
    return {
        f"{called}: {name} {key} {w - len(COURSE) + 1}": values[:, c, w]
        for key, values in columns.items()
        for c, called in enumerate(channel_names)
        for w in range(windows)
    }


def _leading(groups: Groups, tables: dict[str, Floats]) -> Integers:
    """Return the index of the leading channel of each of S series, int [S].

    It is the channel whose peak is the highest above its median or, if there are errors, the channel with the largest
    ratio of a value to its error; the first of equals.

    Args:
        groups: a group for each channel of each series; read for whether there are errors.
        tables: {feature: [S, channels]} of all features, from `compute`; a channel without observations has NaN.
    """
    rank = tables["height" if groups.e is None else "largest signal to noise"]
    return np.argmax(np.nan_to_num(rank, nan=-np.inf), 1)


def between(groups: Groups, tables: dict[str, Floats], name: str, channel_names: Sequence[Any]) -> dict[str, Floats]:
    """Return how every two channels, a and b, of each series differ.

    The features of a pair are

    - "relative mean", "relative max" and "relative std": (a - b) / (|a| + |b|) of means, maxima, standard deviations;
    - "relative at peak" and "relative after peak": the same of the means of values in two windows of time;
    - "time of max": the time of the peak of a, less that of b.

    The windows are around the peak of the leading channel, the one with the greatest height, its peak less its median
    (with errors: the largest x / e). Let w be the time that this channel takes from half its height to the peak plus
    that back to half, a missing one counting as 0. Then "at" is from -0.5 w to 0.5 w after the peak, and "after" from
    0.5 w to 1.5 w.

    Args:
        groups: a group for each of C channels of each of S series, series by series.
        tables: {feature: [S, C]} of all features, from `compute`.
        name: the value column, for the names of the features.
        channel_names: [C], for the names of the features.

    Returns:
        {"A - B: NAME FEATURE": numbers [S]} for each pair of channels, A before B in `channel_names`. NaN where one of
        the two lacks what is compared; a relative one also where both are 0, or w is 0.
    """
    compared = {f"relative {key}": tables[key] for key in ("mean", "max", "std")}
    number = len(channel_names)
    of_series = groups.present[groups.group] // number
    series = len(tables["max"])
    leading, row = _leading(groups, tables), np.arange(series)
    width = np.nan_to_num(groups.spread(rise(groups, 0.5))) + np.nan_to_num(groups.spread(fall(groups, 0.5)))
    peak, width = tables["time of max"][row, leading], width.reshape(series, number)[row, leading]
    since = divide(groups.t - peak[of_series], width[of_series])
    for window, (low, high) in PEAK_WINDOWS.items():
        inside = (since >= low) & (since < high)
        mean = groups.spread(groups.mean(groups.x, inside)).reshape(series, number)
        compared[f"relative {window} peak"] = mean
    out = {}
    for i, j in itertools.combinations(range(number), 2):
        pair = f"{channel_names[i]} - {channel_names[j]}: {name}"
        columns = {
            key: divide(table[:, i] - table[:, j], np.abs(table[:, i]) + np.abs(table[:, j]))
            for key, table in compared.items()
        }
        columns["time of max"] = tables["time of max"][:, i] - tables["time of max"][:, j]
        out |= {f"{pair} {key}": column for key, column in columns.items()}
    return out
