"""Observations in any order, and what makes tidy rows of them: leaving out, sorting, merging, reshaping.

Between a table's columns and a data set (`dataset`). A row with a cell that cannot be used is left out and counted by
reason; messages name the series, time and channel of a row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rotarymae.errors import InputError, NoObservations, listed
from rotarymae.series.dates import as_dates
from rotarymae.series.reading import LeftOut, ReadingReport

LARGEST = float(np.finfo(np.float32).max)
MAX_CELLS = 10_000_000  # that are made of few observations without asking back
MIN_TO_SUSPECT = 20  # values of a channel; with fewer nothing is an outlier
FAR, FAR_OFTEN, FAR_FRACTION = 100, 20, 1000  # deviations: of any, of ten equal ones, of one that is no whole number
FAR_SPANS, MIN_OTHERS = 5, 5  # a time is far where the others of its series, at least so many, span a fifth of the gap
MAX_REPEATS = 0.01  # of the rows; more that repeat others are a table that is read in the wrong way


@dataclass(frozen=True, eq=False)
class Observations:
    """Observations in any order: `series` [n] indexes `ids` [S]; the rest is as in SeriesDataset; values may be NaN."""

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
    roles: dict[str, str] = field(default_factory=dict)  # what the table calls its "id", "time" and "channel"
    errors: dict[str, str] = field(default_factory=dict)  # value column → column of its standard errors
    time_step: float = 0.0  # the smallest difference of times that the table can hold, where that matters

    def keep(self, rows: np.ndarray) -> Observations:
        """Select rows by a mask or an order."""
        columns = ("series", "times", "channels", "values", "positions")
        parts = {name: getattr(self, name) for name in columns}
        return replace(self, **{name: None if part is None else part[rows] for name, part in parts.items()})

    def leave_out(self, reasons: Iterable[tuple[str, str, np.ndarray]]) -> Observations:
        """Remove rows and count them by reason.

        Args:
            reasons: triples (column, reason, mask [n]); a row with several reasons counts for the first.
        """
        keep, left = np.ones(len(self.times), bool), []
        for column, reason, wrong in reasons:
            wrong = wrong & keep
            if wrong.any():
                keep[wrong] = False
                left.append(LeftOut(column, reason, int(wrong.sum()), self.name(int(wrong.argmax()))))
        return self if keep.all() else self.noting(left_out=(*self.report.left_out, *left)).keep(keep)

    def noting(self, *cautions: str, **changes: Any) -> Observations:
        """Return the observations with changes to their report, and with further sentences on what may be wrong."""
        return replace(self, report=replace(self.report, **changes, cautions=(*self.report.cautions, *cautions)))

    @property
    def keys(self) -> list[np.ndarray]:
        """Return what rows are sorted by, the most significant first: series, time, positions, channel."""
        positions = [] if self.positions is None else list(self.positions.T)
        return [self.series, self.times, *positions, *([] if self.channels is None else [self.channels])]

    @property
    def lengths(self) -> np.ndarray:
        """The number of rows of every series, int64 [S]."""
        return np.bincount(self.series, minlength=len(self.ids))

    def name(self, row: int) -> str:
        """Describe a row for messages: "series 615 at time 59750.4, channel 'u'"."""
        if self.series[row] < 0 or not np.isfinite(self.times[row]):
            return f"row {row}" + (f", series {listed([self.ids[self.series[row]]])}" if self.series[row] >= 0 else "")
        when = f"{self.times[row]:.10g}"
        if self.time_zone is not None:
            when = as_dates(self.times[[row]], self.time_zone)[0].as_py().isoformat()
        text = f"series {listed([self.ids[self.series[row]]])} at time {when}"
        if self.positions is not None:
            where = zip(self.position_names, self.positions[row], strict=True)
            text += "".join(f", {name} {value:.10g}" for name, value in where)
        if self.channels is None or self.channel_names is None or self.channels[row] < 0:
            return text
        return f"{text}, channel {self.channel_names[self.channels[row]]!r}"


def dataset_fields(rows: Observations, schema: Any, part: bool = False) -> tuple[dict[str, Any], np.ndarray]:
    """Clean the rows: drop unusable ones, sort, merge duplicates, reshape.

    Parameters
    ----------
    schema
        A `TableSchema`, which says how missing values and duplicates are handled.
    part
        Whether the rows are a part of a table; then it is no error if most of them are dropped.

    Returns
    -------
    tuple
        The fields of a `SeriesDataset`, and a mask of the ids [S] that still have observations.

    Raises
    ------
    InputError
        A cell that cannot be used ("unusable-cell") in a strict reading; and as the single steps.
    """
    width, total = len(rows.value_names), len(rows.times)
    rows = rows.leave_out(_unusable(rows))
    if total and not len(rows.times) and rows.report.left_out:
        reading = replace(rows.report, empty=tuple(rows.ids.tolist()))
        raise NoObservations(f"no row can be used: {'; '.join(map(str, rows.report.left_out))}.", reading)
    if schema.strict:
        rows.report.refuse_any()
    rows = with_typical_errors(rows)
    absent = np.isnan(rows.values)
    if absent.any():
        if schema.missing == "error":
            refuse_missing(rows, absent)
        rows = drop_missing(rows, absent, schema.tokens)
    rows = sort(rows.noting(suspects=suspects(rows)))
    rows = merge_duplicates(rows, schema.duplicates, schema.strict)
    rows = rows.noting(*far_times(rows), *coarse_times(rows))
    if schema.tokens == "time":
        rows = spread(rows)
    if not part:
        rows.report.refuse_costly(width)
    there = rows.lengths > 0
    empty = tuple(rows.ids[~there].tolist())
    report = replace(rows.report, empty=rows.report.empty + empty)
    if not there.any():
        every = f"{len(empty)} of {len(empty)} series"
        raise NoObservations(f"{every} have no observation left: {listed(empty)}. {rows.report}.", report)
    # A column that Arrow lends is read-only: torch would warn, and it must not change with the table.
    fields = {
        "times": np.require(rows.times, requirements="W"),
        "values": np.require(rows.values, requirements=["C", "W"]),
        "offsets": offsets_of(rows.lengths[there]),
        "ids": np.require(rows.ids[there], requirements="W"),
        "reading": report,
    }
    names = ("value_names", "channels", "channel_names", "positions", "position_names", "time_unit", "time_zone")
    return fields | {name: getattr(rows, name) for name in names}, there


def _unusable(rows: Observations) -> Iterator[tuple[str, str, np.ndarray]]:
    """Yield (column, reason, mask [n]) for rows without series, time or channel, and for unusable numbers."""
    time = rows.roles.get("time", "time")
    yield rows.roles.get("id", "id"), "is missing", rows.series < 0
    if rows.channels is not None:
        yield rows.roles.get("channel", "channel"), "is missing", rows.channels < 0
    numbers = [(time, rows.times)]
    if rows.positions is not None:
        numbers += list(zip(rows.position_names, rows.positions.T, strict=True))
    for name, column in numbers:
        yield name, "is missing", np.isnan(column)
    for name, column in [*numbers, *zip(rows.value_names, rows.values.T, strict=True)]:
        size = np.abs(column)
        yield name, "is infinite", np.isinf(size)
        # Models compute in 32 bits, in which a larger number would be infinite.
        yield name, f"is beyond {LARGEST:.2g}, too large for 32 bits", size > LARGEST
    for error in rows.errors.values():
        yield error, "is negative", rows.values[:, rows.value_names.index(error)] < 0


def with_typical_errors(rows: Observations) -> Observations:
    """Give series without any standard errors the median error of their channel, and note it in the report."""
    for name, error in rows.errors.items():
        v, e = rows.value_names.index(name), rows.value_names.index(error)
        known = ~np.isnan(rows.values[:, e])
        there = np.bincount(rows.series, known, minlength=len(rows.ids)) > 0
        bare = ~known & ~np.isnan(rows.values[:, v]) & ~there[rows.series]
        if not bare.any():
            continue
        values = rows.values.copy()
        channel = np.zeros(len(values), np.int64) if rows.channels is None else rows.channels
        for c in np.unique(channel[bare]):
            of_channel = values[(channel == c) & known, e]
            errors = of_channel if len(of_channel) else values[known, e]
            observed = values[bare & (channel == c), v]
            deviation = 1.4826 * np.median(np.abs(observed - np.median(observed)))
            values[bare & (channel == c), e] = np.median(errors) if len(errors) else deviation
        which = rows.ids[np.unique(rows.series[bare])]
        rows = replace(rows, values=values).noting(
            f"{len(which):,} series have {name!r} but no {error!r} at all ({listed(which, 3)}); they are read with the "
            "median error of the others."
        )
    return rows


def far_times(rows: Observations) -> Iterator[str]:
    """Yield sentences on observations at the ends of series that lie far away in time from all others."""
    offsets = offsets_of(rows.lengths)
    many = np.flatnonzero(np.diff(offsets) > MIN_OTHERS)
    ends = (offsets[many], offsets[many + 1] - 1)
    for first in (True, False):
        edge, other = ends if first else ends[::-1]
        near = edge + (1 if first else -1)
        gap, span = np.abs(rows.times[near] - rows.times[edge]), np.abs(rows.times[other] - rows.times[near])
        far = gap > FAR_SPANS * np.maximum(span, np.median(span) if len(span) else 0.0)
        if not far.any():
            continue
        length, several = float(np.median(gap[far])), far.sum() > 1
        option = "--since" if first else "--until"
        said = f"{length:.4g}" + (f" {rows.time_unit}s" if rows.time_unit else "")
        if rows.time_unit == "day" and length > 730:
            said = f"{length / 365.25:.3g} years"
        yield (
            f"{far.sum():,} row{'s lie' if several else ' lies'} {said} "
            f"{'before the next' if first else 'after the one before'} of {'their' if several else 'its'} series, "
            f"which spans {np.median(span[far]):.3g} otherwise: {rows.name(int(edge[far][0]))}"
            f"{' and others' if several else ''}. A wrong clock? {option} leaves such rows out."
        )


def coarse_times(rows: Observations) -> Iterator[str]:
    """Yield a sentence where times were stored in 32 bits, too coarse for their gaps."""
    if rows.time_step:
        gaps = np.diff(rows.times)[np.diff(rows.series) == 0]
        gaps = gaps[gaps > 0]
        if not len(gaps) or rows.time_step >= np.median(gaps) / 100:
            yield _coarse(rows)


def _coarse(rows: Observations) -> str:
    """Return that sentence."""
    return (
        f"column {rows.roles.get('time', 'time')!r} has 32 bits: {rows.time_step:.4g} is its smallest step, so that "
        "times that differed may be equal. Write it with 64 bits, or subtract the first time before."
    )


def drop_missing(rows: Observations, absent: np.ndarray, tokens: str) -> Observations:
    """Drop and count the rows in which a value is missing.

    Parameters
    ----------
    absent
        Mask [n, V] of missing values.
    tokens
        "channel" or "time"; see `TableSchema`.

    Raises
    ------
    NoObservations
        All values are missing.
    """
    # With tokens="time" a row that lacks only some values is kept for now: `spread` names what it lacks.
    gone = absent.all(axis=1) if tokens == "time" else absent.any(axis=1)
    counts = dict(rows.report.missing_by_column)
    for v, name in enumerate(rows.value_names):
        if absent[:, v].any():
            counts[name] = counts.get(name, 0) + int(absent[gone, v].sum())
    missing, incomplete = rows.report.missing + int(gone.sum()), int((gone & ~absent.all(axis=1)).sum())
    rows = rows.noting(missing=missing, missing_by_column=counts, incomplete=incomplete)
    if absent.all():
        each = ", ".join(f"{name!r} is missing in {count:,}" for name, count in counts.items())
        reading = replace(rows.report, empty=tuple(rows.ids.tolist()))
        raise NoObservations(f"no value was observed: {each} of {len(absent):,} rows have none.", reading)
    return rows.keep(~np.asarray(gone))


def suspects(rows: Observations) -> dict[str, int]:
    """Return values that look like codes for "not observed": {"column 'flux' is -999": count}.

    Such a value is the largest or smallest of its column (and channel), nothing else is near it, and it is tens of
    deviations away from the median, or hundreds if it occurs only a few times.
    """
    counts: dict[str, int] = {}
    by_channel = slice(None) if rows.channels is None else np.argsort(rows.channels, kind="stable")
    ends = [] if rows.channels is None else np.cumsum(np.bincount(rows.channels))[:-1]
    for v, name in enumerate(rows.value_names):
        for c, column in enumerate(np.split(rows.values[by_channel, v], ends)):
            where = [] if rows.channel_names is None else [f"channel {rows.channel_names[c]!r}"]
            where += [f"column {name!r}"] if not where or len(rows.value_names) > 1 else []
            for value, count in _outliers(column[~np.isnan(column)]):
                if value or name not in rows.errors.values():  # an error of 0 is an exact value
                    counts[f"{', '.join(where)} is {value:.10g}"] = count
    return counts


def _outliers(column: np.ndarray) -> Iterator[tuple[float, int]]:
    """Yield (value, count) for extreme values of a column that may be codes; see `suspects`."""
    total, again = len(column), True
    while again and len(column) >= max(MIN_TO_SUSPECT, total / 2):
        again, middle = False, np.median(column)
        for value in (column.min(), column.max()):
            others = column[column != value]
            count, away = len(column) - len(others), abs(value - middle)
            if 2 * len(others) < total:
                continue
            width = 1.4826 * np.median(np.abs(others - np.median(others))) or others.std()
            far = FAR_FRACTION if value != np.rint(value) and count == 1 else FAR if count < 10 else FAR_OFTEN
            if away > far * width > 0 and np.abs(others - middle).max() < away / 5:
                yield float(value), count
                column, again = others, True
                break


def sort(rows: Observations) -> Observations:
    """Sort rows by series, time, positions and channel, stably; count the series whose times did not ascend."""
    if (rows.series[1:] < rows.series[:-1]).any():
        rows = rows.keep(np.argsort(rows.series, kind="stable"))
    backwards = (rows.series[1:] == rows.series[:-1]) & (rows.times[1:] < rows.times[:-1])
    which = np.unique(rows.series[1:][backwards])
    rows = rows.noting(series=len(rows.ids), unsorted=len(which), unsorted_ids=tuple(rows.ids[which[:4]].tolist()))
    same, ascend = np.ones(max(0, len(rows.times) - 1), bool), True
    for key in rows.keys:
        ascend = ascend and not (same & (key[1:] < key[:-1])).any()
        same = same & (key[1:] == key[:-1])
    return rows if ascend else rows.keep(np.lexsort(rows.keys[::-1]))


def _repeats(keys: list[np.ndarray]) -> np.ndarray:
    """Return a mask [n - 1], True for each row with the same keys as the row before."""
    return np.logical_and.reduce([key[1:] == key[:-1] for key in keys])


def merge_duplicates(rows: Observations, duplicates: str, strict: bool = False) -> Observations:
    """Merge sorted rows with equal series, time, position and channel.

    Rows that are equal in all columns always become one. Others are merged as `duplicates` says: "mean" averages,
    weighted by standard errors if there are any; "first" and "last" keep one; "error" keeps the first if few rows are
    concerned.

    Raises
    ------
    InputError
        Many different rows for one time, with "error" ("duplicates").
    """
    again = _repeats(rows.keys)
    if not again.any():
        return rows
    first = np.flatnonzero(np.concatenate([[True], ~again]))
    counts = np.diff(np.append(first, len(rows.times)))
    differs = again & ((rows.values[1:] != rows.values[:-1]) & ~np.isnan(rows.values[1:])).any(1)
    rows = rows.noting(merged=int(again.sum()))
    if duplicates == "error" and differs.any():
        place = np.searchsorted(first, np.argmax(differs), side="right") - 1
        where = rows.name(int(first[place]))
        if strict or differs.sum() > MAX_REPEATS * len(rows.times):
            more = f" {_coarse(rows)}" if rows.time_step else ""
            raise InputError(
                f"{where}, has {counts[place]} observations ({again.sum()} rows too many in all). Averages of them, "
                f"the first or the last may stand for them, if no column that tells them apart was left out.{more}",
                code="duplicates",
                settings=[("duplicates", "mean"), ("duplicates", "first"), ("duplicates", "last")],
            )
        rows = rows.noting(
            f"{differs.sum():,} of {len(rows.times):,} rows repeat the series, time and channel of another with other "
            f"values, as {where}; the first counts (--duplicates last or mean otherwise)."
        )
    if duplicates == "last":
        return rows.keep(first + counts - 1)
    merged = rows.keep(first)
    if duplicates != "mean":
        return merged
    values = rows.values.astype(np.float64)
    mean = np.add.reduceat(values, first) / counts[:, None]
    for name, error in rows.errors.items():
        v, e = rows.value_names.index(name), rows.value_names.index(error)
        with np.errstate(divide="ignore", invalid="ignore"):
            weight = 1 / values[:, e] ** 2
            total = np.add.reduceat(weight, first)
            exact = np.isfinite(total) & (counts > 1)  # an error of 0 has no weight
            mean[exact, v] = (np.add.reduceat(weight * values[:, v], first) / total)[exact]
            mean[exact, e] = total[exact] ** -0.5
    mean[counts == 1] = values[first[counts == 1]]
    return replace(merged, values=mean.astype(rows.values.dtype))


def melt(rows: Observations) -> Observations:
    """Turn value columns into channels: each value [n, C] that is not NaN becomes a row."""
    absent = np.isnan(rows.values)
    row, column = np.nonzero(~absent)
    counts = zip(rows.value_names, absent.sum(axis=0).tolist(), strict=True)
    rows = rows.noting(
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
    )


def spread(rows: Observations) -> Observations:
    """Turn channels into value columns: one row for each (series, time, position) of sorted rows.

    Raises
    ------
    InputError
        Channels observed at only a few of many times ("too-many-cells"), or not at all ("missing-values").
    """
    if rows.channels is not None and rows.channel_names is not None:
        new = np.concatenate([[True], ~_repeats(rows.keys[:-1])])[: len(rows.times)]
        first, width = np.flatnonzero(new), len(rows.value_names)
        shape = (len(first), len(rows.channel_names), width)
        cells = math.prod(shape)
        if cells > MAX_CELLS and cells > 100 * rows.values.size:
            raise InputError(
                f"one token per time needs a value of all {shape[1]:,} channels at each of {shape[0]:,} times: "
                f"{cells:,} numbers ({cells * rows.values.itemsize / 2**30:.1f} GiB), of which {rows.values.size:,} "
                "are there.",
                code="too-many-cells",
                settings=[("tokens", "channel")],
            )
        values = np.full(shape, np.nan, rows.values.dtype)
        values[np.cumsum(new) - 1, rows.channels] = rows.values
        pairs = [(channel, name) for channel in rows.channel_names for name in rows.value_names]
        names = tuple(str(channel) if width == 1 else f"{channel}_{name}" for channel, name in pairs)
        rows = replace(rows, channels=None, channel_names=None).keep(first)
        rows = replace(rows, values=values.reshape(len(first), -1), value_names=names)
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
    return rows


def refuse_missing(rows: Observations, absent: np.ndarray) -> None:
    """Raise InputError for missing values, naming column and series."""
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


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
