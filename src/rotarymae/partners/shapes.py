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
        """Sort observations into groups: a group is one series, or one channel of a series.

        Observations whose value is not finite, or whose error is NaN or negative, are left out.

        Args:
            keys: int [m], the number of each observation's group, 0 .. total - 1, in any order.
            total: number of groups, the empty ones included.
            times, x: [m] time and value of each observation; times ascend within a group.
            errors: [m] standard error of each value; None without errors.
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

    def to_all_groups(self, column: NDArray[Any]) -> Floats:
        """Put the numbers of the G groups that have observations into an array of all groups, float [total].

        Groups (a group is one series, or one channel of a series) without observations get NaN. `column` [G] has the
        numbers of the others, in ascending order of the groups.
        """
        out = np.full(self.total, np.nan)
        out[self.present] = column
        return out

    def sum(self, x: NDArray[Any]) -> Floats:
        """Return the sum of `x` over each group (a series or a channel), float [G].

        `x` [n] has a number, or True (1) or False (0), for each observation. G counts the groups that have
        observations.
        """
        return np.bincount(self.group, x, len(self.present)).astype(np.float64)

    def mean(self, x: NDArray[Any], where: Mask | None = None) -> Floats:
        """Return the mean of `x` over each group (a series or a channel), [G]; NaN if no number of a group counts.

        Args:
            x: [n] a number, or True (1) or False (0), for each observation; NaN and infinity do not count.
            where: mask [n] of the observations that count; None means all.
        """
        known = np.isfinite(x) if where is None else np.isfinite(x) & where
        return divide(self.sum(np.where(known, x, 0.0)), self.sum(known))

    def reduce(self, operation: np.ufunc, x: NDArray[Any]) -> NDArray[Any]:
        """Combine the numbers of each group (a series or a channel) to one, [G]: np.maximum gives the largest.

        Args:
            operation: a binary ufunc of numpy.
            x: [n] a number for each observation.
        """
        return operation.reduceat(x, self.first) if len(x) else x[:0]

    def earliest(self, where: Mask) -> Floats:
        """Return the first time of each group (a series or a channel) at which `where` is True, [G]; NaN without one.

        `where` is a mask [n] of the observations. G counts the groups that have observations.
        """
        return self.reduce(np.fmin, np.where(where, self.t, np.nan))

    def latest(self, where: Mask) -> Floats:
        """Return the last time of each group (a series or a channel) at which `where` is True, [G]; NaN without one.

        `where` is a mask [n] of the observations. G counts the groups that have observations.
        """
        return self.reduce(np.fmax, np.where(where, self.t, np.nan))

    def slope(self, a: Floats, b: Floats, where: Mask) -> Floats:
        """Fit b = slope · a + intercept by least squares in each group (a series or a channel); return the slopes.

        Args:
            a, b: [n] a finite number for each observation.
            where: mask [n] of the observations to which the lines are fitted.

        Returns:
            The slopes [G] of the groups that have observations. NaN for a group if `where` selects fewer than 3 of its
            observations, or if `a` is the same for all that it selects.
        """
        largest, smallest = (self.reduce(kind, np.where(where, a, np.nan)) for kind in (np.fmax, np.fmin))
        a = np.where(where, a - self.mean(a, where)[self.group], 0.0)
        b = np.where(where, b - self.mean(b, where)[self.group], 0.0)
        enough = (self.sum(where) > 2) & (largest > smallest)
        return divide(self.sum(a * b), np.where(enough, self.sum(a * a), 0.0))

    # What several features read.

    @cached_property
    def mean_value(self) -> Floats:
        """The mean of the values of each group (a series or a channel), [G]."""
        return self.mean(self.x)

    @cached_property
    def from_mean(self) -> Floats:
        """The value of each observation minus the mean value of its group (a series or a channel), [n]."""
        return self.x - self.mean_value[self.group]

    @cached_property
    def variance(self) -> Floats:
        """The variance of the values of each group (a series or a channel), [G]; the divisor is n, not n - 1."""
        return self.mean(self.from_mean**2)

    @cached_property
    def ranked(self) -> Floats:
        """All values, [n], in ascending order within each group (a series or a channel), group after group."""
        return self.x[np.lexsort((self.x, self.group))]

    def quantile(self, share: float) -> Floats:
        """Return a quantile of the values of each group (a series or a channel), [G].

        It is always one of the values: 0 gives the smallest, 0.5 the median, 1 the largest. Between two ranks it takes
        the nearer one, and the higher one if both are equally near.
        """
        return self.ranked[self.first + np.floor(share * (self.count - 1) + 0.5).astype(np.int64)]

    @cached_property
    def has_previous(self) -> Mask:
        """Mask of the observations, [n]: False for the first of a group (a series or a channel), True for others."""
        return np.r_[False, self.group[1:] == self.group[:-1]][: len(self.x)]

    @cached_property
    def change(self) -> Floats:
        """Each value minus the previous value of its group (a series or a channel), [n]; 0 for the first one."""
        return np.where(self.has_previous, np.diff(self.x, prepend=self.x[:1]), 0.0)

    @cached_property
    def span(self) -> Floats:
        """The time from the first to the last observation of each group (a series or a channel), [G]."""
        return self.t[self.last] - self.t[self.first]

    @cached_property
    def median(self) -> Floats:
        """The median value of each group (a series or a channel), [G]; for an even number the upper of the middle two.

        It stands for the quiet level of a series that has one outburst.
        """
        return self.quantile(0.5)

    @cached_property
    def peak(self) -> Integers:
        """The index of the largest value, the peak, of each group (a series or a channel), int [G].

        Indices are into the n observations. With standard errors the peak is where value minus error is largest, so
        that a noisy value is not taken. The first of equals counts.
        """
        lower = self.x if self.e is None else self.x - self.e
        highest = np.flatnonzero(lower == self.reduce(np.maximum, lower)[self.group])
        peak = np.zeros(len(self.present), np.int64)
        peak[self.group[highest][::-1]] = highest[::-1]
        return peak

    @cached_property
    def time_since_peak(self) -> Floats:
        """Each time minus that of its group's `peak` (of a series or a channel), [n]; negative before it."""
        return self.t - self.t[self.peak][self.group]

    @cached_property
    def height(self) -> Floats:
        """The height of each group (a series or a channel), [G]: the value at its peak (`peak`) minus its median."""
        return self.x[self.peak] - self.median

    def edges(self, share: float) -> tuple[Integers, Integers]:
        """Find the nearest observations on both sides of each group's peak that lie below a share of the peak's height.

        "Below" means value < median + share · (peak - median). A group is a series, or one channel of it.

        Returns:
            Two int arrays [G] of indices into the n observations: the last one below before the peak, -1 if there is
            none; and the first one below after the peak, n if there is none.
        """
        below = self.x < (self.median + share * self.height)[self.group]
        before = np.where(below & (self.index < self.peak[self.group]), self.index, -1)
        after = np.where(below & (self.index > self.peak[self.group]), self.index, len(self.x))
        return self.reduce(np.maximum, before), self.reduce(np.minimum, after)

    @cached_property
    def outburst_edges(self) -> tuple[Integers, Integers]:
        """The observations just before and just after each group's outburst, the high values around its peak.

        High is at least median + (peak - median) / 5. These are two int arrays [G] of indices into the n observations:
        -1 in the first if the outburst begins with the group, n in the second if it ends with the group. A group is a
        series, or one channel of it.
        """
        return self.edges(0.2)

    @cached_property
    def outside_outburst(self) -> Mask:
        """Mask of the observations, [n]: True if they lie before or after their group's outburst.

        The outburst is the stretch around the group's peak in which values are at least median + (peak - median) / 5.
        """
        return self.before_outburst | self.after_outburst

    @cached_property
    def before_outburst(self) -> Mask:
        """Mask of the observations, [n]: True if they lie before their group's outburst.

        The outburst is the stretch around the group's peak in which values are at least median + (peak - median) / 5.
        """
        return self.index <= self.outburst_edges[0][self.group]

    @cached_property
    def after_outburst(self) -> Mask:
        """Mask of the observations, [n]: True if they lie after their group's outburst.

        The outburst is the stretch around the group's peak in which values are at least median + (peak - median) / 5.
        """
        return self.index >= self.outburst_edges[1][self.group]

    @cached_property
    def log_defined(self) -> Mask:
        """Mask of the observations, [n]: True if value - median is large enough to take its logarithm.

        It must be positive, more than a tenth of the peak's (peak - median) and, if there are standard errors, more
        than twice the value's error. Median and peak are those of the observation's group (a series or a channel).
        """
        above = self.x - self.median[self.group]
        bright = (above > 0.1 * self.height[self.group]) & (above > 0)
        return bright if self.e is None else bright & (above > 2 * self.e)

    @cached_property
    def log_excess(self) -> Floats:
        """log(value - median of its group, a series or a channel), [n]; 0 where `log_defined` is False."""
        return np.log(np.where(self.log_defined, self.x - self.median[self.group], 1.0))

    @cached_property
    def signal_to_noise(self) -> Floats:
        """Each value divided by its standard error, [n]; NaN if the error is 0. It needs observations with errors."""
        return divide(self.x, self.e)

    @cached_property
    def weighted_mean(self) -> Floats:
        """The mean value of each group (a series or a channel), [G], with the weights 1 / error².

        An error below 1e-12 counts as 1e-12. It needs observations with errors.
        """
        weight = 1 / np.maximum(self.e, 1e-12) ** 2
        return divide(self.sum(self.x * weight), self.sum(weight))

    @cached_property
    def residual(self) -> Floats:
        """Each value minus its group's weighted mean, divided by its standard error, [n]; NaN if the error is 0.

        The weights are 1 / error². A group is a series, or one channel of it. It needs observations with errors.
        """
        return divide(self.x - self.weighted_mean[self.group], self.e)

    @cached_property
    def structure_function(self) -> list[Floats]:
        """The structure function of each group: how much values differ, by the time between them.

        A group is a series, or one channel of it; G counts those with observations. The result is a list of four arrays
        [G], one for each range of lags: 0-0.01, 0.01-0.05, 0.05-0.2 and 0.2-1. A lag is the time between two
        observations divided by the group's span. Each number is mean((x[j] - x[i])²) / (2 variance) over the pairs with
        such a lag; only pairs that are 1, 2, 3, 4, 6, 8 ... 64 observations apart (`LAGS`) are used. NaN if there is no
        pair, or if all values of the group are equal. Pairs of a group of span 0 count as lag 1.
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
    def sine_power(self) -> Floats:
        """The share of each group's variance that a sine with 1, 2, 3 or 4 cycles over its span explains, [4, G].

        A group is a series, or one channel of it; G counts those with observations. Each sine is fitted alone, with a
        free phase and mean. NaN for a group of fewer than 5 observations or of equal values, or where the times do not
        determine the sine.
        """
        phase = 2 * np.pi * divide(self.t - self.t[self.first][self.group], self.span[self.group])
        turn = np.exp(1j * np.nan_to_num(phase))
        wave, power = np.ones_like(turn), []
        for _ in range(HARMONICS):
            wave = wave * turn
            c, s = wave.real, wave.imag  # pyright: ignore
            c, s = c - self.mean(c)[self.group], s - self.mean(s)[self.group]
            cc, ss, cs = self.sum(c * c), self.sum(s * s), self.sum(c * s)
            xc, xs = self.sum(self.from_mean * c), self.sum(self.from_mean * s)
            explained = divide(ss * xc**2 + cc * xs**2 - 2 * cs * xc * xs, cc * ss - cs**2)
            known = (self.count > 4) & (cc * ss - cs**2 > 1e-9 * self.count**2) & (self.variance > 0)
            power.append(np.where(known, divide(explained, self.count * self.variance), np.nan))
        return np.stack(power)


# ── the features ──────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Feature:
    """A feature: a named number for each group (a series or a channel) that has observations.

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

    A group is a series, or one channel of it; G counts those with observations. NaN for a single value.
    """
    mean = divide(g.sum(g.change), g.count - 1)
    return np.sqrt(divide(g.sum(np.where(g.has_previous, g.change - mean[g.group], 0.0) ** 2), g.count - 1))


def _largest_slope(g: Groups) -> Floats:
    """Return the largest absolute slope between two successive observations of each group, [G].

    A group is a series, or one channel of it; G counts those with observations. Two observations at the same time have
    no slope; NaN if no pair has one.
    """
    gap = np.where(g.has_previous, np.diff(g.t, prepend=g.t[:1]), 0.0)
    return g.reduce(np.fmax, np.abs(divide(g.change, gap)))


def _correlation_with_time(g: Groups) -> Floats:
    """Return Pearson's correlation of the values of each group (a series or a channel) with their times, [G].

    NaN for fewer than 3 observations, or if all values or all times are equal.
    """
    slope = g.slope(g.t, g.x, np.ones(len(g.x), bool))
    time = g.t - g.mean(g.t)[g.group]
    return divide(slope * np.sqrt(g.mean(time**2)), np.sqrt(g.variance))


def rise(g: Groups, share: float) -> Floats:
    """Return how long each group rises to its peak from `share` of the peak's height, [G], in the unit of the times.

    It is the time from the last value before the peak that is below median + share · (peak - median), to the peak. NaN
    if there is no such value. A group is a series, or one channel of it.
    """
    before, _ = g.edges(share)
    return np.where(before >= 0, g.t[g.peak] - g.t[before], np.nan)


def fall(g: Groups, share: float) -> Floats:
    """Return how long each group falls from its peak to `share` of the peak's height, [G], in the unit of the times.

    It is the time from the peak to the first value after it that is below median + share · (peak - median). NaN if
    there is no such value. A group is a series, or one channel of it.
    """
    _, after = g.edges(share)
    return np.where(after < len(g.x), g.t[np.minimum(after, len(g.x) - 1)] - g.t[g.peak], np.nan)


def _power_of_decay(g: Groups) -> Floats:
    """Return the power p of each group's decay, [G]: value - median is about (time since the peak) to the -p.

    A group is a series, or one channel of it; G counts those with observations. p is minus the slope of a line through
    log(value - median) against log(time since the peak), fitted to the observations after the peak that are clearly
    above the median (`Groups.log_defined`); NaN for fewer than 3 of them.
    """
    later = g.time_since_peak > 0
    return -g.slope(np.log(np.where(later, g.time_since_peak, 1.0)), g.log_excess, g.log_defined & later)


def _quiet(g: Groups, where: Mask) -> Floats:
    """Return the root mean square of value - median of each group, divided by its height (peak - median), [G].

    A group is a series, or one channel of it; G counts those with observations. Only observations in the mask `where`
    [n] count, such as those after the outburst. NaN if none counts, or if the height is 0.
    """
    return divide(np.sqrt(g.mean((g.x - g.median[g.group]) ** 2, where)), g.height)


def _second_peak(g: Groups) -> Floats:
    """Return the height of the highest value outside of each group's outburst, as a share of its peak's height, [G].

    A group is a series, or one channel of it; G counts those with observations. Heights are measured from the group's
    median. The outburst is the stretch around the peak in which heights are at least a fifth of the peak's. NaN if
    nothing lies outside, or if the peak's height is 0.
    """
    return divide(g.reduce(np.fmax, np.where(g.outside_outburst, g.x - g.median[g.group], np.nan)), g.height)


def _stetson_j(g: Groups) -> Floats:
    """Return Stetson's J, an index of variability, of each group (a series or a channel), [G].

    It is the mean of sign(p) sqrt(|p|), where p is the product of two successive residuals, and a residual is (value -
    weighted mean) / standard error. NaN for a group without a product. It needs observations with errors.
    """
    product = np.where(g.has_previous, g.residual * np.r_[0.0, g.residual[:-1]][: len(g.x)], np.nan)
    return g.mean(np.sign(product) * np.sqrt(np.abs(product)))


def _noise(g: Groups, where: Mask) -> Floats:
    """Return the mean of ((value - median) / standard error)² of each group, [G]; it is about 1 for noise alone.

    A group is a series, or one channel of it; G counts those with observations. Only observations in the mask `where`
    [n] with an error above 0 count; NaN if there are none. It needs observations with errors.
    """
    return g.mean(divide(g.x - g.median[g.group], g.e) ** 2, where)


_STRUCTURE = (
    "mean((x[j] - x[i])²) / (2 std(x)²) over pairs up to 64 observations apart, by their lag as a share of the span"
)
_POWER = "The share of the variance that a sine of k cycles over the span explains (Lomb-Scargle, with a free mean)"
_RISE = "t[peak] minus the time of the last x before it that is below median(x) + share · height"
_FALL = "The time of the first x after the peak that is below median(x) + share · height, minus t[peak]"
_QUIET = "sqrt(mean((x - median(x))²)) before or after the outburst, over its height"
_NOISE = "mean(((x - median(x)) / e)²) before or after the outburst: 1 where nothing but noise is seen"

# Around the peak: its height is x[peak] - median(x), and the outburst lasts while x is above a fifth of it.
FEATURES = (
    Feature("count", "n; 0 for a group without observations.", lambda g: g.count, basic=True),
    Feature("mean", "sum(x) / n", lambda g: g.mean_value, basic=True),
    Feature("std", "sqrt(mean((x - mean(x))²))", lambda g: np.sqrt(g.variance), basic=True),
    Feature("min", "min(x)", lambda g: g.reduce(np.minimum, g.x), basic=True),
    Feature("max", "max(x)", lambda g: g.reduce(np.maximum, g.x), basic=True),
    Feature("first", "x[0]", lambda g: g.x[g.first], basic=True),
    Feature("last", "x[n - 1]", lambda g: g.x[g.last], basic=True),
    Feature("time of last", "t[n - 1], since the series began", lambda g: g.t[g.last], basic=True),
    Feature("mean change", "mean(d)", lambda g: divide(g.sum(g.change), g.count - 1), basic=True),
    Feature("std of changes", "sqrt(mean((d - mean(d))²))", _std_of_changes, basic=True),
    Feature("span", "t[n - 1] - t[0]", lambda g: g.span),
    Feature("skew", "mean((x - mean(x))³) / std(x)³", lambda g: divide(g.mean(g.from_mean**3), g.variance**1.5)),
    Feature("kurtosis", "mean((x - mean(x))⁴) / std(x)⁴", lambda g: divide(g.mean(g.from_mean**4), g.variance**2)),
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
    Feature("structure above 0.2", _STRUCTURE, lambda g: g.structure_function[3]),
    Feature("structure below 0.2", _STRUCTURE, lambda g: g.structure_function[2]),
    Feature("structure below 0.05", _STRUCTURE, lambda g: g.structure_function[1]),
    Feature("structure below 0.01", _STRUCTURE, lambda g: g.structure_function[0]),
    Feature("power of 4 cycles", _POWER, lambda g: g.sine_power[3]),
    Feature("power of 3 cycles", _POWER, lambda g: g.sine_power[2]),
    Feature("power of 2 cycles", _POWER, lambda g: g.sine_power[1]),
    Feature("power of 1 cycle", _POWER, lambda g: g.sine_power[0]),
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
        "Minus the slope of log(x - median(x)) against t from the peak on, where x - median(x) > height / 10 and > 2 e",
        lambda g: -g.slope(g.t, g.log_excess, g.log_defined & (g.time_since_peak >= 0)),
    ),
    Feature(
        "growth rate",
        "The slope of log(x - median(x)) against t up to the peak, where x - median(x) > height / 10 and > 2 e",
        lambda g: g.slope(g.t, g.log_excess, g.log_defined & (g.time_since_peak <= 0)),
    ),
    Feature(
        "power of decay",
        "Minus the slope of log(x - median(x)) against log(t - t[peak]) after the peak, for the x of the decay rate",
        _power_of_decay,
    ),
    Feature(
        "roughness of decay",
        "The share of changes from the peak to the end of the outburst that rise",
        lambda g: g.mean(g.change > 0, (g.time_since_peak > 0) & ~g.outside_outburst & g.has_previous),
    ),
    Feature("quiet after", _QUIET, lambda g: _quiet(g, g.after_outburst)),
    Feature("quiet before", _QUIET, lambda g: _quiet(g, g.before_outburst)),
    Feature("second peak", "The largest x - median(x) outside of the outburst, over its height", _second_peak),
    Feature("dip", "(median(x) - min(x)) / height", lambda g: divide(g.median - g.quantile(0), g.height)),
    Feature(
        "share of outburst", "The share of observations within the outburst", lambda g: g.mean(~g.outside_outburst)
    ),
    Feature("signal to noise", "mean(x / e)", lambda g: g.mean(g.signal_to_noise), needs_errors=True),
    Feature("largest signal to noise", "max(x / e)", lambda g: g.reduce(np.fmax, g.signal_to_noise), needs_errors=True),
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
    Feature("share above 3 sigma", "mean(x / e > 3)", lambda g: g.mean(g.signal_to_noise > 3), needs_errors=True),
    Feature("share above 5 sigma", "mean(x / e > 5)", lambda g: g.mean(g.signal_to_noise > STRONG), needs_errors=True),
    Feature("share below -3 sigma", "mean(x / e < -3)", lambda g: g.mean(g.signal_to_noise < -3), needs_errors=True),
    Feature(
        "span above 5 sigma",
        "The time from the first to the last x / e > 5",
        lambda g: g.latest(g.signal_to_noise > STRONG) - g.earliest(g.signal_to_noise > STRONG),
        needs_errors=True,
    ),
    Feature(
        "first strong before max",
        "t[peak] minus the time of the first |x / e| > 5",
        lambda g: g.t[g.peak] - g.earliest(np.abs(g.signal_to_noise) > STRONG),
        needs_errors=True,
    ),
    Feature(
        "last strong after max",
        "The time of the last |x / e| > 5, minus t[peak]",
        lambda g: g.latest(np.abs(g.signal_to_noise) > STRONG) - g.t[g.peak],
        needs_errors=True,
    ),
    Feature("noise after", _NOISE, lambda g: _noise(g, g.after_outburst), needs_errors=True),
    Feature("noise before", _NOISE, lambda g: _noise(g, g.before_outburst), needs_errors=True),
)


def compute(groups: Groups, everything: bool = True) -> dict[str, Floats]:
    """Compute the features in `FEATURES` for all groups; return {name of the feature: numbers [groups.total]}.

    A group (a series or a channel) without observations has NaN, and 0 for "count". Features that need standard errors
    are left out if the observations have none.

    Args:
        groups: the observations of one value column, sorted into groups.
        everything: True computes all features, False only those that are marked `basic`.
    """
    usable = [one for one in FEATURES if (everything or one.basic) and (groups.e is not None or not one.needs_errors)]
    table = {one.name: groups.to_all_groups(one.compute(groups)) for one in usable}
    return table | {"count": np.nan_to_num(table["count"])}


# ── of several channels ───────────────────────────────────────────────────────────────────────────────────────────────


def course(groups: Groups, tables: dict[str, Floats], name: str, channel_names: Sequence[Any]) -> dict[str, Floats]:
    """Return the shape of each channel around the series' peak: its mean value in 15 windows of time.

    The series' peak is that of the leading channel: the one that rises highest above its median or, with standard
    errors e, the one with the largest value / e. In each window of each channel, "course" is mean(x - median of the
    channel) over the height of the series' peak above the leading channel's median. With errors the mean has the
    weights 1 / e², and "signal of course" is this mean over its standard error.

    Windows grow with the distance to the peak, in shares of the series' span: window 0 is within 1/256 of the peak;
    window 1 goes from 1/256 to 1/128 after the peak, window 2 to 1/64, and so on to window 6, which ends at 1/4; window
    7 is the rest. Windows -1 to -7 are the same before the peak.

    Args:
        groups: the observations, in a group for each of C channels of each of S series, series by series; times count
            from the first observation of the series.
        tables: {feature: [S, C]} of all features, from `compute`; heights, peaks and spans are read from there.
        name: the value column, for the names of the features.
        channel_names: [C], for the names of the features.

    Returns:
        {"CHANNEL: NAME course WINDOW": numbers [S]}, with errors also "CHANNEL: NAME signal of course WINDOW". NaN if
        the channel has no observation in the window, or if all times of the series are equal. A course is also NaN if
        the leading channel's peak is not above its median.
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
    above = np.bincount(place, (weight * (groups.x - groups.median[groups.group]))[inside], len(total))
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
    """Return the index of the leading channel of each of S series, int [S]: the one with the highest peak.

    Heights are measured from the channel's median. If there are standard errors, it is the channel with the largest
    value / error instead. The first of equal channels is taken.

    Args:
        groups: a group for each channel of each series; only read to see whether there are errors.
        tables: {feature: [S, channels]} of all features, from `compute`; a channel without observations has NaN.
    """
    rank = tables["height" if groups.e is None else "largest signal to noise"]
    return np.argmax(np.nan_to_num(rank, nan=-np.inf), 1)


def between(groups: Groups, tables: dict[str, Floats], name: str, channel_names: Sequence[Any]) -> dict[str, Floats]:
    """Return how every two channels, a and b, of each series differ.

    The features of a pair are

    - "relative mean", "relative max" and "relative std": (a - b) / (|a| + |b|) of the means, maxima, standard
      deviations;
    - "relative at peak" and "relative after peak": the same of the mean values in two windows of time;
    - "time of max": the time of the peak of a minus the time of the peak of b.

    The windows, in all channels, follow the peak of the leading channel: the one that rises highest above its median
    or, with standard errors e, the one with the largest value / e. Let w be the width of this peak: the time from half
    its height up to the peak, plus the time from the peak down to half its height (each 0 where not observed). "at" is
    from -0.5 w to 0.5 w around the peak, "after" from 0.5 w to 1.5 w.

    Args:
        groups: a group for each of C channels of each of S series, series by series.
        tables: {feature: [S, C]} of all features, from `compute`.
        name: the value column, for the names of the features.
        channel_names: [C], for the names of the features.

    Returns:
        {"A - B: NAME FEATURE": numbers [S]} for each pair of channels, A before B in `channel_names`. NaN if one of the
        two has no value to compare. A "relative" feature is also NaN if both values are 0; those at and after the peak
        also if w is 0.
    """
    compared = {f"relative {key}": tables[key] for key in ("mean", "max", "std")}
    number = len(channel_names)
    of_series = groups.present[groups.group] // number
    series = len(tables["max"])
    leading, row = _leading(groups, tables), np.arange(series)
    width = np.nan_to_num(groups.to_all_groups(rise(groups, 0.5))) + np.nan_to_num(
        groups.to_all_groups(fall(groups, 0.5))
    )
    peak, width = tables["time of max"][row, leading], width.reshape(series, number)[row, leading]
    since = divide(groups.t - peak[of_series], width[of_series])
    for window, (low, high) in PEAK_WINDOWS.items():
        inside = (since >= low) & (since < high)
        mean = groups.to_all_groups(groups.mean(groups.x, inside)).reshape(series, number)
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
