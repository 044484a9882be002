"""Observations in any order, and what makes tidy rows of them: sorting, merging, reshaping, refusing.

Between a table's columns (`columns`) and a data set (`dataset`). Messages name the series, time and channel of a row.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rotarymae.errors import InputError, InputWarning, NoObservations, listed
from rotarymae.series.columns import error_columns
from rotarymae.series.dates import as_dates
from rotarymae.series.reading import ReadingReport

LARGEST = float(np.finfo(np.float32).max)
MOST_CELLS = 10_000_000  # that are made of few observations without asking back
FEWEST_TO_SUSPECT = 20  # values of a channel; with fewer nothing is an outlier
FAR, FAR_OFTEN = 100, 20  # deviations; of a value that comes ten times or more


@dataclass(frozen=True, eq=False)
class Observations:
    """Observations in any order: series [n] indexes ids [S]; the rest as in SeriesDataset, NaN allowed in values."""

    series: np.ndarray
    ids: np.ndarray
    times: np.ndarray
    channels: np.ndarray | None
    channel_names: tuple[Any, ...] | None
    values: np.ndarray
    value_names: tuple[str, ...]
    time_unit: str | None
    report: ReadingReport
    time_zone: str | None = None
    positions: np.ndarray | None = None
    position_names: tuple[str, ...] = ()

    def keep(self, rows: np.ndarray) -> Observations:
        """Select the rows of a mask or an order."""
        columns = ("series", "times", "channels", "values", "positions")
        parts = {name: getattr(self, name) for name in columns}
        return replace(self, **{name: None if part is None else part[rows] for name, part in parts.items()})

    @property
    def keys(self) -> list[np.ndarray]:
        """What distinguishes one observation from another, most significant first: series, time, positions, channel."""
        positions = [] if self.positions is None else list(self.positions.T)
        return [self.series, self.times, *positions, *([] if self.channels is None else [self.channels])]

    @property
    def lengths(self) -> np.ndarray:
        """Of every series, int64 [S]."""
        return np.bincount(self.series, minlength=len(self.ids))

    def name(self, row: int) -> str:
        """ "series 615 at time 59750.4, channel 'u'": where a row is, for messages."""
        when = f"{self.times[row]:.10g}"
        if self.time_zone is not None:
            when = as_dates(self.times[[row]], self.time_zone)[0].as_py().isoformat()
        text = f"series {listed([self.ids[self.series[row]]])} at time {when}"
        if self.positions is not None:
            where = zip(self.position_names, self.positions[row], strict=True)
            text += "".join(f", {name} {value:.10g}" for name, value in where)
        if self.channels is None or self.channel_names is None:
            return text
        return f"{text}, channel {self.channel_names[self.channels[row]]!r}"


def tidy(rows: Observations, tokens: str, missing: str, duplicates: str) -> Observations:
    """Checked, sorted by series, time and channel, without duplicates; by time (tokens="time") if asked for."""
    refuse_infinite(rows)
    refuse_huge(rows)
    absent = np.isnan(rows.values)
    if absent.any():
        if missing == "error":
            refuse_missing(rows, absent)
        rows = drop_missing(rows, absent, tokens)
    rows = replace(rows, report=replace(rows.report, suspects=suspects(rows)))
    rows = merge_duplicates(sort(rows), duplicates)
    if tokens == "time":
        rows = spread(rows)
        refuse_partial(rows)
    return rows


def drop_missing(rows: Observations, absent: np.ndarray, tokens: str) -> Observations:
    """The rows that lack no value, the others counted.

    Raises:
        NoObservations: all are missing.
    """
    counts = {name: int(n) for name, n in zip(rows.value_names, absent.sum(axis=0), strict=True) if n}
    if absent.all():
        reading = replace(
            rows.report,
            missing=rows.report.missing + len(absent),
            missing_by_column={name: rows.report.missing_by_column.get(name, 0) + len(absent) for name in counts},
            empty=tuple(rows.ids.tolist()),
        )
        each = ", ".join(f"{name!r} is missing in {count:,}" for name, count in counts.items())
        raise NoObservations(f"no value was observed: {each} of {len(absent):,} rows have none.", reading)
    # With tokens="time" a row that lacks only some values is kept for now: `refuse_partial` names what it lacks.
    gone = np.asarray(absent.all(axis=1) if tokens == "time" else absent.any(axis=1))
    incomplete = int((gone & ~absent.all(axis=1)).sum())
    report = replace(
        rows.report,
        missing=rows.report.missing + int(gone.sum()),
        missing_by_column={
            name: rows.report.missing_by_column.get(name, 0) + int(absent[gone, v].sum())
            for v, name in enumerate(rows.value_names)
            if name in counts or name in rows.report.missing_by_column
        },
        incomplete=incomplete,
    )
    return replace(rows, report=report).keep(np.logical_not(gone))


def suspects(rows: Observations) -> dict[str, int]:
    """Values that look like a code for "not observed", with their number: {"column 'flux' is -999": 12}.

    Such a value is whole, it is the largest or smallest of its column (and channel), nothing else lies near it, and it
    is tens of deviations away from the median, or hundreds if it comes a few times only.
    """
    found: dict[str, int] = {}
    errors = {error for _, error in error_columns(rows.value_names)}
    by_channel = slice(None) if rows.channels is None else np.argsort(rows.channels, kind="stable")
    ends = [] if rows.channels is None else np.cumsum(np.bincount(rows.channels))[:-1]
    for v, name in enumerate(rows.value_names):
        for c, column in enumerate(np.split(rows.values[by_channel, v], ends)):
            where = [] if rows.channel_names is None else [f"channel {rows.channel_names[c]!r}"]
            where += [f"column {name!r}"] if not where or len(rows.value_names) > 1 else []
            for value, count in _outliers(column[~np.isnan(column)]):
                if value or name not in errors:  # an error of 0 is an exact value
                    found[f"{', '.join(where)} is {value:.10g}"] = count
    return found


def _outliers(column: np.ndarray) -> Iterator[tuple[float, int]]:
    if len(column) < FEWEST_TO_SUSPECT:
        return
    middle = np.median(column)
    for value in (column.min(), column.max()):
        others = column[column != value]
        if value != np.rint(value) or 2 * len(others) < len(column):
            continue
        away, width = abs(value - middle), 1.4826 * np.median(np.abs(others - np.median(others))) or others.std()
        far = FAR if len(column) - len(others) < 10 else FAR_OFTEN
        if away > far * width > 0 and np.abs(others - middle).max() < away / 5:
            yield float(value), len(column) - len(others)


def leave_out_empty(rows: Observations) -> tuple[Observations, np.ndarray]:
    """The rows with only the series that have observations, which are counted; True [S] for these.

    Raises:
        InputError: no series has any.
    """
    there = rows.lengths > 0
    if there.all():
        return rows, there
    if not there.any():
        every = f"{len(rows.ids)} of {len(rows.ids)} series"
        reading = replace(rows.report, empty=rows.report.empty + tuple(rows.ids.tolist()))
        raise NoObservations(f"{every} have no observation left: {listed(rows.ids)}. {rows.report}.", reading)
    number = np.cumsum(there) - 1
    empty = tuple(rows.ids[~there].tolist())
    report = replace(rows.report, empty=rows.report.empty + empty)
    return replace(rows, series=number[rows.series], ids=rows.ids[there], report=report), there


def sort(rows: Observations) -> Observations:
    """Sort by series, time, positions and channel, stably; one warning if times within a series did not ascend."""
    if (rows.series[1:] < rows.series[:-1]).any():
        rows = rows.keep(np.argsort(rows.series, kind="stable"))
    series, times = rows.series, rows.times
    same = series[1:] == series[:-1]
    backwards = same & (times[1:] < times[:-1])
    if backwards.any():
        found = np.unique(series[1:][backwards])
        warnings.warn(
            f"times were not ascending in {len(found)} of {len(rows.ids)} series ({listed(rows.ids[found], 3)}); "
            "they have been sorted.",
            InputWarning,
            stacklevel=5,
        )
    elif _ascends(rows.keys[2:], same & (times[1:] == times[:-1])):
        return rows
    return rows.keep(np.lexsort(rows.keys[::-1]))


def _ascends(keys: list[np.ndarray], same: np.ndarray) -> bool:
    """Return whether rows that are the `same` [n - 1] as the one before ascend by these keys, the first foremost."""
    for key in keys:
        if (same & (key[1:] < key[:-1])).any():
            return False
        same = same & (key[1:] == key[:-1])
    return True


def _repeats(keys: list[np.ndarray]) -> np.ndarray:
    """Return True [n - 1] for each row whose keys are those of the row before."""
    return np.logical_and.reduce([key[1:] == key[:-1] for key in keys])


def merge_duplicates(rows: Observations, duplicates: str) -> Observations:
    """Merge sorted rows of one series, time, position and channel into one."""
    again = _repeats(rows.keys)
    if not again.any():
        return rows
    rows = replace(rows, report=replace(rows.report, merged=int(again.sum())))
    first = np.flatnonzero(np.concatenate([[True], ~again]))
    counts = np.diff(np.append(first, len(rows.times)))
    if duplicates == "error":
        row = first[np.argmax(counts > 1)]
        raise InputError(
            f"{rows.name(row)}, has {counts[counts > 1][0]} observations ({again.sum()} rows too many in all); "
            "they can be averaged, or the first be kept.",
            code="duplicates",
            settings=[("duplicates", "mean"), ("duplicates", "first")],
        )
    merged = rows.keep(first)
    if duplicates == "first":
        return merged
    mean = np.add.reduceat(rows.values.astype(np.float64), first) / counts[:, None]
    return replace(merged, values=mean.astype(rows.values.dtype))


def melt(rows: Observations) -> Observations:
    """Features as channels: each value [n, C] that is not NaN becomes a row of its own."""
    absent = np.isnan(rows.values)
    row, column = np.nonzero(~absent)
    counts = zip(rows.value_names, absent.sum(axis=0).tolist(), strict=True)
    report = replace(
        rows.report,
        total=absent.size,
        missing=int(absent.sum()),
        missing_by_column={name: count for name, count in counts if count},
        counted="cells",
    )
    return replace(
        rows.keep(row),
        channels=column.astype(np.int32),
        channel_names=rows.value_names,
        values=rows.values[row, column][:, None],
        value_names=("value",),
        report=report,
    )


def spread(rows: Observations) -> Observations:
    """Turn channels into features: one row per (series, time, position) of sorted rows, NaN where none was observed."""
    if rows.channels is None or rows.channel_names is None:
        return rows
    new = np.concatenate([[True], ~_repeats(rows.keys[:-1])])[: len(rows.times)]
    first, width = np.flatnonzero(new), len(rows.value_names)
    shape = (len(first), len(rows.channel_names), width)
    cells = math.prod(shape)
    if cells > MOST_CELLS and cells > 100 * rows.values.size:
        raise InputError(
            f"one token per time needs a value of all {shape[1]:,} channels at each of {shape[0]:,} times: {cells:,} "
            f"numbers ({cells * rows.values.itemsize / 2**30:.1f} GiB), of which {rows.values.size:,} came.",
            code="too-many-cells",
            settings=[("tokens", "channel")],
        )
    values = np.full(shape, np.nan, rows.values.dtype)
    values[np.cumsum(new) - 1, rows.channels] = rows.values
    names = tuple(
        str(channel) if width == 1 else f"{channel}_{name}"
        for channel in rows.channel_names
        for name in rows.value_names
    )
    rows = replace(rows, channels=None, channel_names=None).keep(first)
    return replace(rows, values=values.reshape(len(first), -1), value_names=names)


def refuse_infinite(rows: Observations) -> None:
    endless = np.isinf(rows.values)
    if endless.any():
        row, column = np.argwhere(endless)[0]
        raise InputError(
            f"column {rows.value_names[column]!r} is infinite for {rows.name(row)} ({endless.sum()} infinite values in "
            "all); no repair is safe, so remove those observations or correct them."
        )


def refuse_huge(rows: Observations) -> None:
    """Refuse numbers that would be infinite in the 32 bits that models compute in."""
    columns = [("the time", rows.times[:, None], None), ("a value", rows.values, rows.value_names)]
    columns += [] if rows.positions is None else [("a position", rows.positions, rows.position_names)]
    for what, column, names in columns:
        with np.errstate(invalid="ignore"):
            huge = np.abs(column) > LARGEST
        if huge.any():
            row, v = np.argwhere(huge)[0]
            where = "" if names is None else f" of column {names[v]!r}"
            raise InputError(
                f"{what}{where} is {column[row, v]:.4g} for {rows.name(row)} ({huge.sum()} such in all); numbers "
                f"beyond {LARGEST:.2g} do not fit into 32 bits. Correct it, or choose a larger unit."
            )


def refuse_missing(rows: Observations, absent: np.ndarray) -> None:
    row, column = np.argwhere(absent)[0]
    counts = ", ".join(f"{rows.value_names[c]!r}: {n}" for c, n in enumerate(absent.sum(axis=0)) if n)
    here = absent[rows.series == rows.series[row], column].sum()
    raise InputError(
        f"column {rows.value_names[column]!r} has {here} missing values (null or NaN) in series "
        f"{listed([rows.ids[rows.series[row]]])}, the first at time {rows.times[row]:.10g}; over all series: {counts}. "
        "Rows whose missing values mean that nothing was observed can be dropped.",
        code="missing-values",
        settings=[("missing", "drop")],
    )


def refuse_partial(rows: Observations) -> None:
    absent = np.isnan(rows.values)
    if absent.any():
        row, column = np.argwhere(absent)[0]
        there = rows.value_names[np.argmin(absent[row])]
        raise InputError(
            f"{rows.name(row)} has a value for {there!r} but none for {rows.value_names[column]!r} "
            f"({absent.any(axis=1).sum()} of {len(absent)} times lack some); one token per time needs all of them. One "
            "token per observation lets every channel have times of its own (for a wide table: from_wide).",
            code="missing-values",
            settings=[("tokens", "channel")],
        )


def refuse_empty(lengths: np.ndarray, ids: np.ndarray, advice: str) -> None:
    empty = ids[lengths == 0]
    if len(empty):
        raise InputError(f"{len(empty)} of {len(ids)} series have no observation left: {listed(empty)}. {advice}")


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
