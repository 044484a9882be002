"""Observations in any order, and what makes tidy rows of them: leaving out, sorting, merging, reshaping.

Between a table's columns and a data set (`dataset`). A row with a cell that cannot be used is left out and counted by
reason; messages name the series, time and channel of a row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
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
    roles: dict[str, str] = field(default_factory=dict)  # what the table calls its "id", "time" and "channel"
    errors: dict[str, str] = field(default_factory=dict)  # value column → column of its standard errors
    time_step: float = 0.0  # the smallest difference of times that the table can hold, where that matters

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
        if self.series[row] < 0 or not np.isfinite(self.times[row]):
            return f"row {row}"
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


def tidy(rows: Observations, tokens: str, missing: str, duplicates: str, strict: bool = False) -> Observations:
    """Return rows that can be used, sorted by series, time and channel, without duplicates; by time if asked for.

    Raises:
        InputError: a cell that cannot be used ("unusable-cell"), where the reading is strict.
    """
    rows = leave_out_unusable(rows)
    if strict:
        rows.report.refuse_any()
    rows = with_typical_errors(rows)
    absent = np.isnan(rows.values)
    if absent.any():
        if missing == "error":
            refuse_missing(rows, absent)
        rows = drop_missing(rows, absent, tokens)
    rows = sort(replace(rows, report=replace(rows.report, suspects=suspects(rows))))
    rows = merge_duplicates(rows, duplicates, strict)
    cautions = (*rows.report.cautions, *far_times(rows), *coarse_times(rows))
    rows = replace(rows, report=replace(rows.report, cautions=cautions))
    if tokens == "time":
        rows = spread(rows)
        refuse_partial(rows)
    return rows


def leave_out_unusable(rows: Observations) -> Observations:
    """Leave out the rows without a series, a time or a channel, and those with numbers that cannot be used."""
    left: list[LeftOut] = []
    keep = np.ones(len(rows.times), bool)

    def leave_out(column: str, reason: str, wrong: np.ndarray) -> None:
        wrong = wrong & keep
        if wrong.any():
            keep[wrong] = False
            left.append(LeftOut(column, reason, int(wrong.sum()), rows.name(int(wrong.argmax()))))

    leave_out(rows.roles.get("id", "id"), "is missing", rows.series < 0)
    if rows.channels is not None:
        leave_out(rows.roles.get("channel", "channel"), "is missing", rows.channels < 0)
    numbers = [(rows.roles.get("time", "time"), rows.times)]
    numbers += [
        (name, rows.positions[:, p]) for p, name in enumerate(rows.position_names) if rows.positions is not None
    ]
    for name, column in numbers:
        leave_out(name, "is missing", np.isnan(column))
    numbers += [(name, rows.values[:, v]) for v, name in enumerate(rows.value_names)]
    for name, column in numbers:
        size = np.abs(column)
        leave_out(name, "is infinite", np.isinf(size))
        # Models compute in 32 bits, in which a larger number would be infinite.
        leave_out(name, f"is beyond {LARGEST:.2g}, too large for 32 bits", size > LARGEST)
    for error in rows.errors.values():
        leave_out(error, "is negative", rows.values[:, rows.value_names.index(error)] < 0)
    report = replace(rows.report, left_out=(*rows.report.left_out, *left))
    if len(keep) and not keep.any() and left:
        reading = replace(report, empty=tuple(rows.ids.tolist()))
        raise NoObservations(f"no row can be used: {'; '.join(map(str, left))}.", reading)
    return replace(rows, report=report) if keep.all() else replace(rows, report=report).keep(keep)


def with_typical_errors(rows: Observations) -> Observations:
    """Give series that lack all standard errors the median one of their channel, and say so."""
    cautions, values = [], rows.values
    for name, error in rows.errors.items():
        v, e = rows.value_names.index(name), rows.value_names.index(error)
        lacking = np.isnan(values[:, e]) & ~np.isnan(values[:, v])
        if not lacking.any():
            continue
        there = np.bincount(rows.series, ~np.isnan(values[:, e]), minlength=len(rows.ids)) > 0
        bare = lacking & ~there[rows.series]
        if not bare.any():
            continue
        values = values.copy() if values is rows.values else values
        channel = np.zeros(len(values), np.int64) if rows.channels is None else rows.channels
        for c in np.unique(channel[bare]):
            known = values[(channel == c) & ~np.isnan(values[:, e]), e]
            known = known if len(known) else values[~np.isnan(values[:, e]), e]
            spread_of = values[bare & (channel == c), v]
            typical = np.median(known) if len(known) else 1.4826 * np.median(np.abs(spread_of - np.median(spread_of)))
            values[bare & (channel == c), e] = typical
        which = rows.ids[np.unique(rows.series[bare])]
        cautions.append(
            f"{len(which):,} series have {name!r} but no {error!r} at all ({listed(which, 3)}); they are read with the "
            "median error of the others."
        )
    if not cautions:
        return rows
    return replace(rows, values=values, report=replace(rows.report, cautions=(*rows.report.cautions, *cautions)))


def far_times(rows: Observations) -> list[str]:
    """Return a sentence on sorted rows at the start or end of a series that lie far from all its others."""
    offsets = offsets_of(rows.lengths)
    many = np.flatnonzero(np.diff(offsets) > MIN_OTHERS)
    found = []
    for first in (True, False):
        edge = offsets[many] if first else offsets[many + 1] - 1
        near = edge + 1 if first else edge - 1
        other = offsets[many + 1] - 1 if first else offsets[many]
        gap, span = np.abs(rows.times[near] - rows.times[edge]), np.abs(rows.times[other] - rows.times[near])
        # Less than a 1,000th of all series may be so by chance, or their histories are.
        typical = np.median(span) if len(span) else 0.0
        far = gap > FAR_SPANS * np.maximum(span, typical)
        if not far.any():
            continue
        at = int(edge[far][0])
        length, unit = float(np.median(gap[far])), rows.time_unit or ""
        said = (
            f"{length / 365.25:.3g} years"
            if unit == "day" and length > 730
            else f"{length:.4g} {unit}s".strip(" s" if not unit else "")
        )
        option = "--since" if first else "--until"
        found.append(
            f"{far.sum():,} row{'s lie' if far.sum() > 1 else ' lies'} {said} "
            f"{'before the next' if first else 'after the one before'} "
            f"of {'their' if far.sum() > 1 else 'its'} series, which spans {np.median(span[far]):.3g} otherwise: "
            f"{rows.name(at)}{' and others' if far.sum() > 1 else ''}. A wrong clock? {option} leaves such rows out."
        )
    return found


def coarse_times(rows: Observations) -> list[str]:
    """Return a sentence where times of 32 bits are too coarse for their gaps."""
    if not rows.time_step:
        return []
    gaps = np.diff(rows.times)[np.diff(rows.series) == 0]
    gaps = gaps[gaps > 0]
    if len(gaps) and rows.time_step < np.median(gaps) / 100:
        return []
    return [_coarse(rows)]


def _coarse(rows: Observations) -> str:
    name = rows.roles.get("time", "time")
    return (
        f"column {name!r} has 32 bits: {rows.time_step:.4g} is its smallest step, so that times that differed may be "
        "equal. Write it with 64 bits, or subtract the first time before."
    )


def drop_missing(rows: Observations, absent: np.ndarray, tokens: str) -> Observations:
    """Return the rows that lack no value; the others are counted.

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
    """Return values that look like a code for "not observed", with their number: {"column 'flux' is -999": 12}.

    Such a value is the largest or smallest of its column (and channel), nothing else lies near it, and it is tens of
    deviations away from the median, or hundreds if it comes a few times only.
    """
    found: dict[str, int] = {}
    by_channel = slice(None) if rows.channels is None else np.argsort(rows.channels, kind="stable")
    ends = [] if rows.channels is None else np.cumsum(np.bincount(rows.channels))[:-1]
    for v, name in enumerate(rows.value_names):
        for c, column in enumerate(np.split(rows.values[by_channel, v], ends)):
            where = [] if rows.channel_names is None else [f"channel {rows.channel_names[c]!r}"]
            where += [f"column {name!r}"] if not where or len(rows.value_names) > 1 else []
            for value, count in _outliers(column[~np.isnan(column)]):
                if value or name not in rows.errors.values():  # an error of 0 is an exact value
                    found[f"{', '.join(where)} is {value:.10g}"] = count
    return found


def _outliers(column: np.ndarray) -> Iterator[tuple[float, int]]:
    total, again = len(column), True
    while again and len(column) >= max(MIN_TO_SUSPECT, total / 2):
        again, middle = False, np.median(column)
        for value in (column.min(), column.max()):
            others = column[column != value]
            count, away = len(column) - len(others), abs(value - middle)
            if 2 * len(others) < total:
                continue
            width = 1.4826 * np.median(np.abs(others - np.median(others))) or others.std()
            far = FAR if count < 10 else FAR_OFTEN
            if value != np.rint(value) and count == 1:
                far = FAR_FRACTION
            if away > far * width > 0 and np.abs(others - middle).max() < away / 5:
                yield float(value), count
                column, again = others, True
                break


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
    report = replace(rows.report, series=len(rows.ids))
    if backwards.any():
        which = np.unique(series[1:][backwards])
        report = replace(report, unsorted=len(which), unsorted_ids=tuple(rows.ids[which[:4]].tolist()))
    rows = replace(rows, report=report)
    if not backwards.any() and _ascends(rows.keys[2:], same & (times[1:] == times[:-1])):
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


def merge_duplicates(rows: Observations, duplicates: str, strict: bool = False) -> Observations:
    """Merge sorted rows of one series, time, position and channel into one.

    Rows that are the same in all columns are one. Of others "error" keeps the first, as long as few rows repeat others;
    a mean is weighted by the standard errors where there are any.

    Raises:
        InputError: rows that repeat others ("duplicates").
    """
    again = _repeats(rows.keys)
    if not again.any():
        return rows
    first = np.flatnonzero(np.concatenate([[True], ~again]))
    counts = np.diff(np.append(first, len(rows.times)))
    differs = again & ((rows.values[1:] != rows.values[:-1]) & ~np.isnan(rows.values[1:])).any(1)
    report = replace(rows.report, merged=int(again.sum()))
    if duplicates == "error" and differs.any():
        row = int(first[np.searchsorted(first, np.argmax(differs), side="right") - 1])
        count = counts[np.searchsorted(first, row)]
        if strict or differs.sum() > MAX_REPEATS * len(rows.times):
            more = f" {_coarse(rows)}" if rows.time_step else ""
            raise InputError(
                f"{rows.name(row)}, has {count} observations ({again.sum()} rows too many in all). Averages of them, "
                f"the first or the last may stand for them, if no column that tells them apart was left out.{more}",
                code="duplicates",
                settings=[("duplicates", "mean"), ("duplicates", "first"), ("duplicates", "last")],
            )
        report = replace(
            report,
            cautions=(
                *report.cautions,
                f"{differs.sum():,} of {len(rows.times):,} rows repeat the series, time and channel of another with "
                f"other values, as {rows.name(row)}; the first counts (--duplicates last or mean otherwise).",
            ),
        )
    rows = replace(rows, report=report)
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
    if cells > MAX_CELLS and cells > 100 * rows.values.size:
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
