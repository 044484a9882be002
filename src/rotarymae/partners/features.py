"""Features: named numbers that describe a series of any length, for boosted trees and for whoever wants a table.

Numpy reduces sorted rows; and features are computed from a part of the series at a time, so that a data set in a file
is never read whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rotarymae.arrays import ArrayDataset
from rotarymae.partners import light_curves
from rotarymae.partners.base import Floats
from rotarymae.partners.shapes import FEATURES, Groups, Integers, between, compute, course, divide
from rotarymae.series import SeriesDataset, measured

# Channels times value columns (without one of errors). With more, trees drown in features of a shape that few channels
# have: on PhysioNet's 37 variables ten numbers each beat thirteen.
MAX_NARROW = 12
REGIONS = 4  # along each axis of a picture


@singledispatch
def features(dataset: Any, static: Sequence[str] | None = None) -> tuple[Floats, tuple[str, ...]]:
    """Compute features that summarise series or arrays: return them as float64 [S, F], and their F names.

    A name is such as "g: flux max": the maximum of the column flux in channel g; "all: flux max" is that of all
    channels together, or of the only one. NaN where a feature cannot be computed. Times count from the series' first
    observation, in the data's unit. Formulas are in `partners.shapes.FEATURES`; basic features, such as the mean, are
    marked `basic` there. For arrays see `array_features`.

    - Every data set has the basic features of each pair of a channel and a value column.
    - With at most 12 pairs and one channel, each column has all of `FEATURES` and its shape around the peak (`course`).
    - With at most 12 pairs and several channels, the first column has all of `FEATURES`, `course`, and differences
      between channels (`between`). All channels together ("all: ..") have all of `FEATURES` for the first column,
      basic ones for other columns.
    - With several channels, "all: channels" counts those in which a series was observed.
    - Limits, such as <5, count as missing, and have features of their own (`limits_of`).
    - Light curves (fluxes or magnitudes with errors, in channels named after filters) have those of `curve_features`.

    The standard errors of the first value column (`SeriesDataset.error_of`) are used for its features; they have no
    features of their own.

    Args:
        dataset: a `SeriesDataset` or an `ArrayDataset`. Series are read in parts that fit into memory.
        static: names of the columns with one value per series among which a light curve's redshift and reddening are
            looked for; None means all.
    """
    names = tuple(str(name) for name in dataset.value_names)
    sources = light_curves.find_sources(dataset, dataset.static if static is None else static)
    out, computed, start = np.zeros((0, 0)), tuple[str, ...](), 0
    for rows in chunks(dataset):  # into one array, as it may be the largest of a fit
        part = _features(rows, names, dataset.error_of, dataset.channel_names or ("all",))
        at = slice(start, start + rows.num_series)
        if sources is not None:
            error = rows.values[:, names.index(dataset.error_of[names[0]])]
            sides = None if rows.sides is None else rows.sides[:, 0]
            brightness = light_curves.fluxes(rows.values[:, 0], error, rows.limits[:, 0], sides, sources.magnitudes)
            columns = (rows.series, rows.channels, rows.times, *brightness, sources.select(at), rows.num_series)
            of_curve = light_curves.curve_features(*columns)
            part |= {f"curve: {names[0]} {name}": column for name, column in of_curve.items()}
        if not computed:
            out, computed = np.empty((len(dataset), len(part))), tuple(part)
        np.stack(list(part.values()), 1, out=out[at])
        start = at.stop
    return out, computed


def _features(
    rows: SeriesRows, names: tuple[str, ...], error_of: Mapping[str, str], channel_names: Sequence[Any]
) -> dict[str, Floats]:
    """Compute all features of S series that fit into memory; return {name: numbers [S]} in the order of `features`.

    A number is NaN where a series has nothing to compute it from.

    Args:
        rows: observations of the S series, each of which has at least one.
        names: names of the value columns.
        error_of: {value column: column of its standard errors}; only those of the first are used.
        channel_names: names of the channels, for the names of the features, such as "g: flux max"; ("all",) without
            channels. With a single channel, all features except those of limits have the name "all" instead.
    """
    error = names.index(error_of[names[0]]) if names[0] in error_of else None
    columns = [v for v in range(len(names)) if v != error]
    narrow = rows.num_channels * len(columns) <= MAX_NARROW
    begins = rows.times[np.searchsorted(rows.series, np.arange(rows.num_series))]
    times = rows.times - begins[rows.series]
    of_channel = rows.series * rows.num_channels + rows.channels
    out: dict[str, Floats] = {}
    for v in columns:
        full = narrow and (v == 0 or rows.num_channels == 1)
        observed = (times, rows.values[:, v], rows.values[:, error] if error is not None and v == 0 else None)
        if rows.num_channels > 1:
            groups = Groups(of_channel, rows.num_series * rows.num_channels, *observed)
            table = compute(groups, everything=full)
            tables = {name: column.reshape(-1, rows.num_channels) for name, column in table.items()}
            for name, column in tables.items():
                out |= {f"{channel}: {names[v]} {name}": column[:, c] for c, channel in enumerate(channel_names)}
            if full:
                out |= course(groups, tables, names[v], channel_names)
                out |= between(groups, tables, names[v], channel_names)
        if rows.num_channels == 1 or narrow:
            groups = Groups(rows.series, rows.num_series, *observed)
            table = compute(groups, everything=full)
            out |= {f"all: {names[v]} {name}": column for name, column in table.items()}
            if rows.num_channels == 1 and full:
                out |= course(groups, {name: column[:, None] for name, column in table.items()}, names[v], ("all",))
    for v in columns if rows.sides is not None else ():
        for name, column in limits_of(rows, v, of_channel, rows.num_series * rows.num_channels).items():
            of_each = zip(channel_names, column.reshape(-1, rows.num_channels).T, strict=True)
            out |= {f"{channel}: {names[v]} {name}": part for channel, part in of_each}
    if rows.num_channels > 1:
        seen = np.bincount(of_channel, minlength=rows.num_series * rows.num_channels).reshape(-1, rows.num_channels)
        out["all: channels"] = (seen > 0).sum(1).astype(np.float64)
    return out


def limits_of(rows: SeriesRows, v: int, keys: Integers, total: int) -> dict[str, Floats]:
    """Return the share of upper and of lower limits among a group's observations, and the tightest limit of each kind.

    A group is a series, or one channel of it. The tightest upper limit is the smallest, the tightest lower limit the
    largest; NaN if there is none.

    Args:
        rows: n observations of a data set with limits (censored values, such as <5).
        v: index of the value column.
        keys: int [n], the number of each observation's group, 0 .. total - 1.
        total: number of groups, the empty ones included.

    Returns:
        {feature: numbers [total]} with "share of upper limits", "tightest upper limit", and the same of lower limits. A
        share is NaN for a group without observations.
    """
    assert rows.sides is not None, "only of observations with limits"
    out, count = {}, np.bincount(keys, minlength=total)
    for side, kind, tighter in ((-1, "upper", np.minimum), (1, "lower", np.maximum)):
        at = rows.sides[:, v] == side
        tightest = np.full(total, -side * np.inf)
        tighter.at(tightest, keys[at], rows.limits[at, v])
        out[f"share of {kind} limits"] = divide(np.bincount(keys[at], minlength=total), count)
        out[f"tightest {kind} limit"] = np.where(np.isfinite(tightest), tightest, np.nan)
    return out


def _described(function: Callable[..., Any]) -> str:
    """Return a feature's description for the docs: its function's docstring before "Args:", without "Return"."""
    text = " ".join((function.__doc__ or "").partition("Args:")[0].split()).removeprefix("Return ")
    return text[:1].upper() + text[1:]


# What each feature is, in the order of the table; `features` says of which channels and columns there is one.
FORMULAS: dict[str, str] = {one.name: one.formula for one in FEATURES} | {
    "course, signal of course": _described(course),
    "share of .. limits, tightest .. limit": _described(limits_of),
    "A - B: relative .., time of max": _described(between),
    "curve: ..": _described(light_curves.curve_features),
    "curve: features of a channel": _described(light_curves.point_features),
    "curve: temperature of .., temperature at .. days": _described(light_curves.curve_temperatures),
    "curve: temperature, error of temperature, misfit, strength": _described(light_curves.temperatures),
}


@features.register(ArrayDataset)
def array_features(dataset: ArrayDataset, static: Sequence[str] | None = None) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return features float64 [S, F] of S pictures, videos or sounds, and the F names of these features.

    They are the mean of each channel in each region, then the standard deviations in the same order. A picture has 4 ×
    4 regions of nearly equal size; so has a video, each over all frames. The regions of a sound are its frequency bins,
    each over all frames.
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
    """Cut an array into R regions by a grid; return the means, then the standard deviations, as float64 [2 · R · C].

    Both have a number for each region and channel: the C channels of the first region, then of the next, in row-major
    order.

    Args:
        array: [*axes, C] with C channels.
        grid: number of regions along each axis except the channels' axis; R is their product. Regions along an axis are
            nearly equal; if an axis has fewer cells than regions, each cell is repeated.
    """
    cells = [np.asarray(array, np.float64)]
    for axis, regions in enumerate(grid):
        times = -(-regions // array.shape[axis])  # so that each region has a cell
        cells = [part for cell in cells for part in np.array_split(np.repeat(cell, times, axis), regions, axis)]
    flat = [cell.reshape(-1, array.shape[-1]) for cell in cells]
    return np.concatenate([cell.mean(0) for cell in flat] + [cell.std(0) for cell in flat])


# ── the rows of a data set ────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class SeriesRows:
    """Observations of some series as flat columns, series by series and in the order of time.

    Attributes:
        series: [n] index of each observation's series, 0 .. num_series - 1, ascending.
        channels: [n] index of the channel; 0 if the data set has no channels.
        times: [n], in the data set's unit.
        values: [n, V], NaN where one is missing or a limit.
        num_series, num_channels: numbers of series and of the data set's channels (1 without channels).
        limits: [n, V], the limits where `sides` is -1 (upper ones) or 1 (lower ones); has no meaning elsewhere.
        sides: [n, V]; None without limits.
    """

    series: Integers
    channels: Integers
    times: Floats
    values: Floats
    num_series: int
    num_channels: int
    limits: Floats
    sides: NDArray[np.int8] | None = None

    @classmethod
    def of(cls, dataset: SeriesDataset, index: NDArray[np.int64] | None = None) -> SeriesRows:
        """Return the observations of some series of a data set as flat columns, one row per observation.

        Args:
            dataset: the data set.
            index: indices of the series in the data set, in the order wanted; the result numbers them 0, 1, ... None
                takes all.
        """
        index = np.arange(len(dataset)) if index is None else index
        columns = dataset.gather(index)
        times, channels = np.asarray(columns.times, np.float64), columns.channels
        values, limits = (np.asarray(part, np.float64) for part in (measured(columns), columns.values))
        number = np.zeros(len(times), np.int64) if channels is None else np.asarray(channels, np.int64)
        series = np.repeat(np.arange(len(index)), np.asarray(dataset.lengths)[index])
        named = 1 if dataset.channel_names is None else len(dataset.channel_names)
        return cls(series, number, times, values, len(index), named, limits, columns.sides)


def chunks(dataset: SeriesDataset) -> Iterator[SeriesRows]:
    """Yield the observations of all series in order, in parts of whole series that fit into memory.

    Each part numbers its series from 0. A small data set is one part.
    """
    return (SeriesRows.of(dataset, index) for index in dataset.series_chunks())
