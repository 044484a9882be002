"""Features: named numbers that describe a series of any length, for boosted trees and for whoever wants a table.

Numpy reduces sorted rows; and features are computed from a part of the series at a time, so that a data set in a file
is never read whole.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rotarymae.arrays import ArrayDataset
from rotarymae.partners.base import Floats
from rotarymae.partners.shapes import FEATURES, Feature, Groups, Integers, divide, fall, formula_of, rise
from rotarymae.series import SeriesDataset, error_columns

# Channels times value columns (without one of errors). With more, trees drown in features of a shape that few channels
# have: on PhysioNet's 37 variables ten numbers each beat thirteen.
MAX_NARROW = 12
REGIONS = 4  # along each axis of a picture
# Ends of the windows of a course, as shares of the series' span from the peak: short ones near it, long ones far away.
COURSE = (1 / 256, 1 / 128, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1.0)
WINDOWS = {"at": (-0.5, 0.5), "after": (0.5, 1.5), "late after": (1.5, 4.0)}  # widths of the outburst, from its peak


@singledispatch
def features(dataset: Any) -> tuple[Floats, tuple[str, ...]]:
    """Return features float64 [S, F] of S series or arrays, NaN where one cannot be computed, and their F names.

    For every channel and value column these are the basic features of `partners.shapes.FEATURES`, which has the
    formulas. If there are at most `MAX_NARROW` such pairs, there are also all other features for each channel and for
    the whole series, how each channel goes before and after the peak (`course`), and how two channels differ
    (`between`); with several value columns and channels these are computed for the first column only. A column of
    standard errors (`flux_err` for `flux`) has no features itself. Times count from the series' first observation, in
    the data's unit. For arrays see `array_features`.
    """
    names = tuple(str(name) for name in dataset.value_names)
    parts = [_features(rows, names, dataset.channel_names or ("all",)) for rows in chunks(dataset)]
    return np.concatenate([np.stack(list(part.values()), 1) for part in parts]), tuple(parts[0])


def _features(rows: Rows, names: tuple[str, ...], channel_names: Sequence[Any]) -> dict[str, Floats]:
    """Return {name: numbers [S]} of all features of a block of S series, in the order of the table's columns.

    Args:
        names: the value columns, one of which may be the standard errors of the first.
        channel_names: of the channels, which the names of features begin with; ("all",) without channels.
    """
    error = next((names.index(error) for name, error in error_columns(names) if name == names[0]), None)
    columns = [v for v in range(len(names)) if v != error]
    narrow = rows.num_channels * len(columns) <= MAX_NARROW
    begins = rows.times[np.searchsorted(rows.series, np.arange(rows.num_series))]
    times = rows.times - begins[rows.series]
    of_channel = rows.series * rows.num_channels + rows.channels
    out: dict[str, Floats] = {}
    basic = [one for one in FEATURES if one.basic]
    for v in columns:
        full = narrow and (v == 0 or rows.num_channels == 1)
        observed = (times, rows.values[:, v], rows.values[:, error] if error is not None and v == 0 else None)
        if rows.num_channels > 1:
            groups = Groups(of_channel, rows.num_series * rows.num_channels, *observed)
            table = compute(groups, FEATURES if full else basic)
            tables = {name: column.reshape(-1, rows.num_channels) for name, column in table.items()}
            for name, column in tables.items():
                out |= {f"{channel}: {names[v]} {name}": column[:, c] for c, channel in enumerate(channel_names)}
            if full:
                out |= course(groups, tables, names[v], channel_names)
                out |= between(groups, tables, names[v], channel_names)
        if rows.num_channels == 1 or narrow:
            groups = Groups(rows.series, rows.num_series, *observed)
            table = compute(groups, FEATURES if full else basic)
            out |= {f"all: {names[v]} {name}": column for name, column in table.items()}
            if rows.num_channels == 1 and full:
                out |= course(groups, {name: column[:, None] for name, column in table.items()}, names[v], ("all",))
    if rows.num_channels > 1:
        seen = np.bincount(of_channel, minlength=rows.num_series * rows.num_channels).reshape(-1, rows.num_channels)
        out["all: channels"] = (seen > 0).sum(1).astype(np.float64)
    return out


def compute(groups: Groups, chosen: Sequence[Feature]) -> dict[str, Floats]:
    """Return {feature: numbers [groups.total]}; NaN for a group without observations, whose count is 0.

    Args:
        chosen: the features to compute, "count" among them; those that need errors are skipped if there are none.
    """
    usable = [one for one in chosen if groups.e is not None or not one.needs_errors]
    table = {one.name: groups.spread(one.compute(groups)) for one in usable}
    return table | {"count": np.nan_to_num(table["count"])}


def course(groups: Groups, tables: dict[str, Floats], name: str, channel_names: Sequence[Any]) -> dict[str, Floats]:
    """Return how each channel goes before and after the peak of the leading channel: {feature: numbers [series]}.

    Window 0 is within 1/256 of the series' span of the peak; windows -1 and 1 end at 1/128, -2 and 2 at 1/64, and so on
    to 1/4, and -7 and 7 at the whole span. For each the mean of x less the channel's median, over the height of the
    leading channel, which has the greatest height (with errors: the largest x / e). With errors the mean is weighted by
    1 / e², and divided by its own standard error it is a second feature.

    Args:
        groups: one for each channel of each series, series by series.
        tables: {feature: [series, channels]} of all features, from `compute`.
        name: the value column, for the names of the features.
        channel_names: of the channels, for the names of the features.
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
    """Return the index of the leading channel [S]: of the greatest height, or with errors of the largest x / e.

    Args:
        tables: {feature: [S, channels]}; a channel without observations is NaN.
    """
    rank = tables["height" if groups.e is None else "largest signal to noise"]
    return np.argmax(np.nan_to_num(rank, nan=-np.inf), 1)


def between(groups: Groups, tables: dict[str, Floats], name: str, channel_names: Sequence[Any]) -> dict[str, Floats]:
    """Return features of every pair of channels, which say how they differ: {feature: numbers [series]}.

    Relative differences are (a - b) / (|a| + |b|): of means, maxima and standard deviations, and of means in three
    windows around the peak of the leading channel, the one with the greatest height (with errors: the largest x / e).
    The windows are at -0.5 to 0.5, 0.5 to 1.5 and 1.5 to 4 times the outburst's width at half height. Further features:
    the change of the relative difference from the first window to the others, and the time between the maxima.

    Args:
        groups, tables, name, channel_names: as in `course`.
    """
    compared = {f"relative {key}": tables[key] for key in ("mean", "max", "std")}
    number = len(channel_names)
    of_series = groups.present[groups.group] // number
    series = len(tables["max"])
    leading, row = _leading(groups, tables), np.arange(series)
    width = np.nan_to_num(groups.spread(rise(groups, 0.5))) + np.nan_to_num(groups.spread(fall(groups, 0.5)))
    peak, width = tables["time of max"][row, leading], width.reshape(series, number)[row, leading]
    since = divide(groups.t - peak[of_series], width[of_series])
    for window, (low, high) in WINDOWS.items():
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
        columns["change after peak"] = columns["relative after peak"] - columns["relative at peak"]
        columns["change late after peak"] = columns["relative late after peak"] - columns["relative at peak"]
        columns["time of max"] = tables["time of max"][:, i] - tables["time of max"][:, j]
        out |= {f"{pair} {key}": column for key, column in columns.items()}
    return out


# What each feature is, in the order of the table; `features` says of which channels and columns there is one.
FORMULAS = {one.name: one.formula for one in FEATURES} | {
    "course, signal of course": formula_of(course),
    "A - B: relative .., change .., time of max": formula_of(between),
}


@features.register(ArrayDataset)
def array_features(dataset: ArrayDataset) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return features [S, F] of arrays and their F names: mean and standard deviation of every channel in regions.

    The regions of a sound are its frequency bins, over all frames; those of a picture 4 × 4 nearly equal parts; those
    of a video the same parts over all frames.
    """
    axes = len(dataset.patch_size)
    if dataset.sample_rate is not None:
        grid = (1, dataset.arrays[0].shape[1])
    else:
        grid = (1,) * (axes - 2) + (REGIONS,) * min(axes, 2)
    rows = [_mean_and_deviation(array, grid) for array in dataset.arrays]
    places = [f"channel {c}, region {r}" for r in range(math.prod(grid)) for c in range(dataset.channels)]
    return np.stack(rows), tuple(f"{what} of {place}" for what in ("mean", "std") for place in places)


def _mean_and_deviation(array: np.ndarray, grid: tuple[int, ...]) -> np.ndarray:
    """Return the means of an array in the cells of a grid of regions, then the standard deviations, as one flat array.

    Args:
        array: [*axes, channels]; channels stay apart, and vary fastest in the result.
        grid: number of regions along each axis.
    """
    total = np.asarray(array, np.float64)
    total = np.stack([total, np.square(total)])
    cells = np.ones((1,) * len(grid))
    for axis, (size, regions) in enumerate(zip(array.shape, grid, strict=False)):
        edges = size * np.arange(regions) // regions
        # Where there are fewer cells than regions an edge occurs twice, and reduceat takes the one cell there.
        total = np.add.reduceat(total, edges, axis=axis + 1)
        widths = np.maximum(np.diff(np.append(edges, size)), 1)
        cells = cells * widths.reshape([-1 if other == axis else 1 for other in range(len(grid))])
    mean, squares = total / cells[..., None]
    return np.concatenate([mean.ravel(), np.sqrt(np.maximum(squares - mean**2, 0.0)).ravel()])


# ── the rows of a data set ────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class Rows:
    """Observations of some series as flat columns, series by series and in the order of time.

    Attributes:
        series: [n] index of the series that owns each observation, 0 .. num_series - 1.
        channels: [n] index of the channel; 0 if the data set has no channels.
        times: [n].
        values: [n, V], NaN where one is missing.
    """

    series: Integers  # [n] index of the series that owns the row
    channels: Integers  # [n]
    times: Floats  # [n]
    values: Floats  # [n, V]
    num_series: int
    num_channels: int

    @classmethod
    def of(cls, dataset: SeriesDataset, index: NDArray[np.int64] | None = None) -> Rows:
        """Return the observations of the series at `index`, numbered in that order; None means all series."""
        index = np.arange(len(dataset)) if index is None else index
        times, channels, values, _ = dataset.gather(index)
        number = np.zeros(len(times), np.int64) if channels is None else np.asarray(channels, np.int64)
        series = np.repeat(np.arange(len(index)), np.asarray(dataset.lengths)[index])
        named = 1 if dataset.channel_names is None else len(dataset.channel_names)
        return cls(series, number, np.asarray(times, np.float64), np.asarray(values, np.float64), len(index), named)


def chunks(dataset: SeriesDataset) -> Iterator[Rows]:
    """Yield the rows of all series in order, in parts that fit into memory; each part numbers its series from 0."""
    return (Rows.of(dataset, index) for index in dataset.series_chunks())
