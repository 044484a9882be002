"""Observations in any order, and what makes tidy rows of them: leaving out, sorting, merging, reshaping.

Between a table's columns and a data set (`dataset`). A row with a cell that cannot be used is left out and counted by
reason; messages name the series, time and channel of a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rotarymae.errors import InputError, NoObservations, listed
from rotarymae.series import cells
from rotarymae.series.columns import by_channel, channel_index, measured
from rotarymae.series.dates import FIRST_DAY, LAST_DAY, as_dates, parse_time
from rotarymae.series.reading import ReadingReport

LARGEST_FLOAT32 = float(np.finfo(np.float32).max)
MIN_TO_SUSPECT = 20  # values of a channel; with fewer nothing is an outlier
FEW_FALLS = 0.05  # of a series' rows, which go back in time though the others ascend
FAR, FAR_CODE = 100, 20  # deviations: of any value, and of nines or ten equal ones
TYPICAL_VALUES = 100_000  # values of a channel that show what is typical
FAR_SPANS, MIN_OTHERS = 5, 5  # a time is far where the others of its series, at least so many, span a fifth of the gap
MAX_REPEATS = 0.01  # of the rows; more that repeat others are a table that is read in the wrong way


@dataclass(frozen=True, eq=False)
class Observations:
    """The n rows of a table as arrays, in any order, before they are cleaned and sorted into a `SeriesDataset`.

    Attributes:
        series: int [n], index of each row's series in `ids`; -1 where the id is missing.
        ids: [S] the different ids, in order of first appearance.
        times: float64 [n], NaN where missing.
        channels: int32 [n], index in `channel_names`, -1 where missing and -2 where the label is none of them; None
            without channels.
        channel_names: the labels of channels; None without channels.
        values: float [n, V], NaN where missing; a column for each of `value_names`, standard errors included.
        value_names: V names of columns.
        time_unit: "day" where the times came as dates or durations; None for numbers.
        time_zone: of dates; None where times were none.
        report: what has become of the rows so far.
        positions: float64 [n, P], a column for each of `position_names`; None without further positions.
        position_names: P names of columns.
        names: {"id", "time" or "channel": the table's name of that column}, for messages.
        errors: {value column: column of its standard errors}, both among `value_names`.
        time_bits: 32 where the table's times are floats of 32 bits, else 64.
        static: {column: one value for each of `ids`}.
        row: [n] number of each row in the table.
        sides: int8 [n, V], -1 where a value is known only to lie below the number (an upper limit), 1 where above, else
            0; None without limits.
    """

    series: np.ndarray
    ids: np.ndarray
    times: np.ndarray
    channels: np.ndarray | None
    channel_names: tuple[Any, ...] | None
    values: np.ndarray
    value_names: tuple[str, ...]
    time_unit: str | None
    row: np.ndarray
    report: ReadingReport
    time_zone: str | None = None
    positions: np.ndarray | None = None
    position_names: tuple[str, ...] = ()
    names: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    time_bits: int = 64
    static: dict[str, np.ndarray] = field(default_factory=dict)
    sides: np.ndarray | None = None

    def keep(self, rows: np.ndarray) -> Observations:
        """Return the observations with only the rows at a mask [n] or at indices, in the order of the indices.

        `ids` and `static` stay complete, also where a series loses all rows.
        """
        columns = ("series", "times", "channels", "values", "positions", "row", "sides")
        parts = {name: getattr(self, name) for name in columns}
        return replace(self, **{name: None if part is None else part[rows] for name, part in parts.items()})

    def noting(self, **changes: Any) -> Observations:
        """Return the observations with `changes`, {field of `ReadingReport`: value}, added to their report.

        So noting(merged=3) adds 3 to the merged rows, and noting(notes=("...",)) adds a note.
        """
        return replace(self, report=self.report + ReadingReport(**changes))

    def doubting(self, reason: str, count: int, first: str) -> Observations:
        """Return the observations with one more sentence in `report.doubts`: something that may be wrong.

        Args:
            reason: the sentence, which is printed behind the count: "series had times that were not ascending".
            count: number of rows or series that it is about.
            first: the first of them in words, such as `name` of a row.
        """
        return self.noting(doubts={reason: count}, first={reason: first})

    def leave_out(
        self, reasons: Iterable[tuple[str, np.ndarray]], counter: str = "left_out", strict: bool = False
    ) -> Observations:
        """Return the observations without the rows that `reasons` mark; the report counts these rows by reason.

        The report (`ReadingReport`) also names the first row for each reason.

        Args:
            reasons: pairs (reason in words, mask [n], True for rows to leave out). A row is counted for its first
                reason.
            counter: the field of the report that gets the counts, "left_out" or "missing".
            strict: True raises an error instead of leaving rows out.

        Raises:
            InputError: `strict`, and some row is marked (code "unusable-cell").
        """
        keep, counts, first = np.ones(len(self.times), bool), {}, {}
        for reason, wrong in reasons:
            wrong = wrong & keep
            if wrong.any():
                keep &= ~wrong
                counts[reason] = int(wrong.sum())
                first[reason] = self.name(int(wrong.argmax()))
        if counts and strict:
            each = "; ".join(f"{reason} in {count:,} (first: {first[reason]})" for reason, count in counts.items())
            raise InputError(
                f"{each}. No entry of a row may be missing, unknown or out of range: correct these rows, or leave them "
                "out.",
                code="unusable-cell",
            )
        return self.noting(**{counter: counts, "first": first}).keep(keep) if counts else self

    @property
    def keys(self) -> list[np.ndarray]:
        """Return the columns [n] to sort rows by, the most significant first: series, time, further positions, channel.

        Positions and channel are absent if the table has none.
        """
        positions = [] if self.positions is None else list(self.positions.T)
        return [self.series, self.times, *positions, *([] if self.channels is None else [self.channels])]

    @property
    def lengths(self) -> np.ndarray:
        """Return the number of rows of every series, int64 [S]; no row's id may be missing."""
        return np.bincount(self.series, minlength=len(self.ids))

    @property
    def time_step(self) -> float:
        """Return the step to which the table's type of numbers rounds times, in their unit; 0 if it is negligible.

        It is the gap between neighbouring floats, of 32 or 64 bits, at the largest |time|. It counts as negligible for
        64-bit floats up to 2^53; beyond are, for example, Unix times in nanoseconds.
        """
        largest = np.abs(self.times[np.isfinite(self.times)]).max(initial=0.0)
        if self.time_bits == 32:
            return float(np.spacing(np.float32(largest)))
        return float(np.spacing(largest)) if largest > 2**53 else 0.0

    def name(self, at: int) -> str:
        """Describe the row at index `at` for messages: "series 615 at time 59750.4, depth 5, channel 'u'".

        Depth is a further position. If times were dates, the time is an ISO date. A missing channel is not named. A row
        without series is "row 7", one without a finite time "row 7, series 615", by its number in the table.
        """
        if self.series[at] < 0:
            return f"row {self.row[at]}"
        series = f"series {listed([self.ids[self.series[at]]])}"
        if not np.isfinite(self.times[at]):
            return f"row {self.row[at]}, {series}"
        when: Any = f"{self.times[at]:.10g}"
        if self.time_zone is not None and FIRST_DAY <= self.times[at] <= LAST_DAY:
            when = as_dates(self.times[[at]], self.time_zone)[0].as_py().isoformat()
        text = f"{series} at time {when}"
        if self.positions is not None:
            where = zip(self.position_names, self.positions[at], strict=True)
            text += "".join(f", {name} {value:.10g}" for name, value in where)
        if self.channels is None or self.channel_names is None or self.channels[at] < 0:
            return text
        return f"{text}, channel {self.channel_names[self.channels[at]]!r}"


def dataset_fields(rows: Observations, schema: Any, channels_known: bool = True) -> dict[str, Any]:
    """Clean the rows, sort them and merge duplicates; return the fields of a `SeriesDataset`.

    A row is left out if a value is missing, if no model can use it (`unusable`), or if it lies before `since` or after
    `until`. With wide=True and tokens="channel", each value that is not missing becomes a row of its own (`melt`).
    Missing standard errors are filled in by `with_typical_errors` and `with_errors_of_limits`.

    Args:
        rows: the rows as they stand in the table.
        schema: the `TableSchema`; its wide, tokens, strict, since, until, time and duplicates are used.
        channels_known: True keeps channels without rows, such as those a model was trained on; False drops them.

    Returns:
        {field: value} for all fields but `id_name`; `reading` is the report that counts what was done. Series without a
        row are left out.

    Raises:
        NoObservations: no row is left.
        InputError: with strict=True, a cell that no model can use, or a text among numbers (code "unusable-cell");
            duplicates that `merge_duplicates` refuses ("duplicates"); a `since` or `until` that is no time.
    """
    rows = with_errors_of_limits(with_typical_errors(rows))
    if schema.wide and schema.tokens == "channel":
        rows = melt(rows)
    else:
        absent = np.isnan(rows.values)
        gone = absent.any(1)
        columns = [(f"{name!r} is missing", absent[:, v] & gone) for v, name in enumerate(rows.value_names)]
        rows = rows.leave_out(columns, "missing").noting(lost=int((~absent[gone]).sum()))
    rows = rows.leave_out(unusable(rows), strict=schema.strict)
    if schema.strict:
        rows.report.refuse_words()
    for limit, where, sign in ((schema.since, "before", -1), (schema.until, "after", 1)):
        if limit is not None:
            beyond = sign * (rows.times - parse_time(limit, rows.time_zone)) > 0
            rows = rows.leave_out([(f"{schema.time!r} is {where} {limit}", beyond)])
    if rows.channel_names is not None and rows.channels is not None and not channels_known:
        seen = np.bincount(rows.channels, minlength=len(rows.channel_names)) > 0
        names = tuple(name for name, there in zip(rows.channel_names, seen, strict=True) if there)
        rows = replace(rows, channels=(np.cumsum(seen, dtype=np.int32) - 1)[rows.channels], channel_names=names)
    there = rows.lengths > 0
    rows = rows.noting(series=len(there), empty=tuple(rows.ids[~there].tolist()))
    if not there.any():
        text = f"no value was observed in {len(there):,} series ({listed(rows.ids)}): {rows.report}. "
        text += rows.report.losses()[0] if rows.report.lost else ""
        raise NoObservations(text, rows.report)
    rows = sort(doubt_missing_codes(rows))  # step by step, as each copies the columns
    rows = merge_duplicates(rows, schema.duplicates, schema.strict)
    rows = doubt_coarse_times(doubt_far_times(rows))
    # A column that Arrow lends is read-only: torch would warn, and it must not change with the table.
    fields = {
        "times": np.require(rows.times, requirements="W"),
        "values": np.require(rows.values, requirements=["C", "W"]),
        "offsets": offsets_of(rows.lengths[there]),
        "ids": np.require(rows.ids[there], requirements="W"),
        "static": {name: column[there] for name, column in rows.static.items()},
        "reading": rows.report,
    }
    names = ("value_names", "errors", "channels", "channel_names", "positions", "position_names")
    names += ("time_unit", "time_zone")
    sides = rows.sides if rows.sides is not None and rows.sides.any() else None
    return fields | {name: getattr(rows, name) for name in names} | {"sides": sides}


def unusable(rows: Observations) -> Iterator[tuple[str, np.ndarray]]:
    """Yield (reason, mask [n]) for each check that a row must pass; the mask is True for rows that no model can use.

    Such a row has no series, time, channel or position, a date outside the years 1 to 9999, an infinite number, a
    number beyond 32 bits, or a negative standard error. Values are not checked for NaN. A mask may be all False.
    """
    yield f"{rows.names['id']!r} is missing", rows.series < 0
    if rows.channels is not None:
        yield f"{rows.names['channel']!r} is missing", rows.channels < 0
    numbers = [(rows.names["time"], rows.times)]
    if rows.positions is not None:
        numbers += list(zip(rows.position_names, rows.positions.T, strict=True))
    for name, column in numbers:
        yield f"{name!r} is missing", np.isnan(column)
    if rows.time_zone is not None:  # no other years can be written
        outside = (rows.times < FIRST_DAY) | (rows.times > LAST_DAY)
        yield f"{rows.names['time']!r} is a date outside the years 1 to 9999", outside
    for name, column in [*numbers, *zip(rows.value_names, rows.values.T, strict=True)]:
        size = np.abs(column)
        yield f"{name!r} is infinite", np.isinf(size)
        # Models compute in 32 bits, in which a larger number would be infinite.
        yield f"{name!r} is beyond {LARGEST_FLOAT32:.2g}, too large for 32 bits,", size > LARGEST_FLOAT32
    for error in rows.errors.values():
        yield f"{error!r} is negative", rows.values[:, rows.value_names.index(error)] < 0


def with_typical_errors(rows: Observations) -> Observations:
    """Fill in the standard errors of series that have none, by the median error of the channel in other series.

    - If the channel has no error in any series, the median over all channels is used.
    - An error stays missing if its value is missing or a limit ("<5"), if its series has other errors, or if its whole
      column is missing.

    The series whose errors are filled in are counted in `report.doubts`.
    """
    for name, error in rows.errors.items():
        v, e = rows.value_names.index(name), rows.value_names.index(error)
        known = ~np.isnan(rows.values[:, e])
        bare = ~known & ~np.isnan(measured(rows)[:, v]) & ~np.isin(rows.series, rows.series[known])
        if not bare.any() or not known.any():
            continue
        values = rows.values.copy()
        channel = channel_index(rows)
        for c in np.unique(channel[bare]):
            errors = values[(channel == c) & known, e]
            values[bare & (channel == c), e] = np.median(errors if len(errors) else values[known, e])
        rows = replace(rows, values=values)
        which = rows.ids[np.unique(rows.series[bare & (rows.series >= 0)])]
        reason = f"series have {name!r} but no {error!r} at all, and are read with the median error of the others"
        rows = rows.doubting(reason, len(which), listed(which[:1])) if len(which) else rows
    return rows


def with_errors_of_limits(rows: Observations) -> Observations:
    """Set missing standard errors of limits ("<5") to 0, since the number that a limit gives is exact."""
    if rows.sides is None:
        return rows
    values = rows.values.copy()
    for name, error in rows.errors.items():
        e = rows.value_names.index(error)
        values[(rows.sides[:, rows.value_names.index(name)] != 0) & np.isnan(values[:, e]), e] = 0.0
    return replace(rows, values=values)


def doubt_far_times(rows: Observations) -> Observations:
    """Warn in the report (`doubts`) if the first or the last rows of a series lie far in time from its other rows.

    A wrong clock may have caused them. The largest gap between two times of the series separates these rows from the
    others. They are reported if all of this holds:

    - they have at most a tenth of the different times of the series, or only one time;
    - the gap is more than five times the span of the other rows, from their first to their last time;
    - the gap is more than five times the median of these spans over all series.

    Series of fewer than six different times are not judged, and do not count for the median.

    Args:
        rows: sorted by series and time.

    Returns:
        The unchanged rows, with the report.
    """
    ends = offsets_of(rows.lengths)
    of_series = np.repeat(np.arange(len(rows.lengths)), rows.lengths)
    changes = (np.diff(of_series, prepend=-1) != 0) | (np.diff(rows.times, prepend=np.nan) != 0)
    starts = np.flatnonzero(changes)  # of the rows of one time
    times, of_series, bounds = rows.times[starts], of_series[starts], np.searchsorted(starts, ends)
    gaps = np.where(np.diff(of_series, prepend=-1) != 0, 0.0, np.diff(times, prepend=0.0))  # before each time
    many = np.flatnonzero(np.diff(bounds) > MIN_OTHERS)
    low, high = bounds[many], bounds[many + 1]
    at = np.lexsort((gaps, of_series))[high - 1]  # the time behind the largest gap of each series
    few = np.maximum((high - low) // 10, 1)
    for first, count, span in (
        (True, at - low, times[high - 1] - times[at]),
        (False, high - at, times[at - 1] - times[low]),
    ):
        far = (count <= few) & (gaps[at] > FAR_SPANS * np.maximum(span, np.median(span) if len(span) else 0.0))
        if not far.any():
            continue
        length = float(np.median(gaps[at][far]))
        said = f"{length:.4g}" + (f" {rows.time_unit}s" if rows.time_unit else "")
        if rows.time_unit == "day" and length > 730:
            said = f"{length / 365.25:.3g} years"
        where, option = ("before the next", "--since") if first else ("after the one before", "--until")
        reason = f"rows lie {said} {where} of their series, which spans {np.median(span[far]):.3g} otherwise; if a "
        reason += f"clock was wrong, {option} leaves such rows out"
        begin, end = (ends[many], starts[at]) if first else (starts[at], ends[many + 1])
        rows = rows.doubting(reason, int((end - begin)[far].sum()), rows.name(int(begin[far][0])))
    return rows


def doubt_coarse_times(rows: Observations) -> Observations:
    """Warn in the report (`doubts`) if the type of the times rounds so coarsely that gaps between them may be wrong.

    For example, 32-bit floats round the Julian date 2460000.6 to a step (`time_step`) of 0.25 days. A gap is the
    difference between two successive times of a series that are not equal. It is short if it is at most 100 steps. The
    warning is given if at least half of the gaps are short; it counts the short ones. It is never given for 64-bit
    floats up to 2^53, whose step is negligible. The rows themselves are unchanged.

    Args:
        rows: sorted by series and time.
    """
    step = rows.time_step
    if not step:
        return rows
    gaps = np.diff(rows.times)[np.diff(rows.series) == 0]
    close = gaps[gaps > 0] <= 100 * step
    if 2 * close.sum() < max(close.size, 1):
        return rows
    return rows.doubting(_coarse(rows), int(close.sum()), rows.name(0))


def _coarse(rows: Observations) -> str:
    """Return a text on times that are rounded too coarsely, and what to do: "gaps between times are close to ...".

    The caller writes the number of such gaps, or "Many", before it. The text names the column of times and its
    rounding step.
    """
    advice = "write it with 64 bits, or subtract the first time" if rows.time_bits == 32 else "subtract the first time"
    return (
        f"gaps between times are close to the rounding step of the column {rows.names['time']!r}, {rows.time_step:.4g} "
        f"with {rows.time_bits} bits, so that different times may have become equal; {advice}"
    )


def doubt_missing_codes(rows: Observations) -> Observations:
    """Warn in the report (`doubts`) of values that look like codes for "not observed", such as -999.

    A code lies far from all measurements. So the smallest and the largest value of each column and channel are tried,
    and once one looks like a code, the next. A value looks like a code if it is more than five times as far from the
    median as any other value, and also far in robust deviations (`_width`):

    - A number of nines, such as -999, must be more than 20 deviations away. If it is the only negative number, it looks
      like a code in any case.
    - Another number, tried among 20 values or more, must be more than 100 deviations away, or 20 if it occurs at least
      ten times.

    Limits ("<5") and a standard error of 0 are never suspected. There is one warning for each number, which names its
    columns and channels. The rows themselves are unchanged.
    """
    values, parts = measured(rows), by_channel(rows)
    places: dict[float, list[tuple[str, Any, np.ndarray]]] = {}  # column, channel and rows of each such value
    for v, name in enumerate(rows.value_names):
        for c, at in enumerate(parts):
            column = values[at, v]
            for value in _outliers(column[~np.isnan(column)]):
                if value or name not in rows.errors.values():  # an error of 0 is an exact value
                    channel = None if rows.channel_names is None else rows.channel_names[c]
                    places.setdefault(value, []).append((name, channel, at[column == value]))
    for value, where_from in places.items():
        names, channels, at = zip(*where_from)
        where = [] if rows.channel_names is None else [_named("channel", channels)]
        where += [_named("column", names)] if not where or len(rows.value_names) > 1 else []
        reason = f"{rows.report.counted} have {', '.join(where)} {value:.10g}, far from all others; if that means "
        reason += f'"not observed", read it as missing (--na {value:.10g})'
        same = np.unique(np.concatenate(at))
        rows = rows.doubting(reason, len(same), rows.name(int(same[0])))
    return rows


def _named(what: str, names: Iterable[Any]) -> str:
    """Return names, each once, behind the word for them: "channel 'g'", "channels 'g', 'r'"."""
    names = dict.fromkeys(names)
    return f"{what}{'s' * (len(names) > 1)} {listed(names)}"


def _outliers(column: np.ndarray) -> Iterator[float]:
    """Yield values that lie so far from all others that they may be codes for "missing"; see `doubt_missing_codes`.

    The smallest and the largest value are judged. Once one is yielded, those of the remaining values are judged, too.

    Args:
        column: values [n] without NaN.
    """
    for value in np.unique([column.min(initial=0.0), column.max(initial=0.0)]):
        others = column[column != value] if cells.is_code(value) else column[:0]
        if len(others) < 2:
            continue
        middle = np.median(others)
        away, farthest = abs(value - middle), np.abs(others - middle).max()
        if (value < 0 <= others.min()) or away > max(5 * farthest, FAR_CODE * _width(others)):
            yield float(value)
            column = others
    total, again = len(column), True
    while again and len(column) >= max(MIN_TO_SUSPECT, total / 2):
        again, some = False, column[:: 1 + len(column) // TYPICAL_VALUES]
        middle = np.median(some)
        for value in (column.min(), column.max()):
            away, others = abs(value - middle), some[some != value]
            if away <= FAR_CODE * _width(others):
                continue
            others = column[column != value]
            count = len(column) - len(others)
            if 2 * len(others) < total:
                continue
            far = FAR if count < 10 else FAR_CODE
            if away > far * _width(others) > 0 and np.abs(others - middle).max() < away / 5:
                yield float(value)
                column, again = others, True
                break


def _width(column: np.ndarray) -> float:
    """Return a robust standard deviation of values [n]: 1.4826 times the median distance from their median.

    If that is 0, return the plain standard deviation; without values, return 0.
    """
    return 1.4826 * np.median(np.abs(column - np.median(column))) or column.std() if len(column) else 0.0


def sort(rows: Observations) -> Observations:
    """Return the rows sorted by series, time, positions and channel; rows that are equal in these keep their order.

    The report warns (`doubts`) if the times of a channel of some series did not ascend in the table, and if series seem
    to start over in time (`_begin_again`); each warning has the number of these series.
    """
    if (rows.series[1:] < rows.series[:-1]).any():
        rows = rows.keep(np.argsort(rows.series, kind="stable"))
    which = _backwards(rows.series, rows.times)
    if len(which) and rows.channels is not None:  # one channel may stand after the other
        order = np.lexsort([rows.channels, rows.series])
        which = _backwards(rows.series[order], rows.times[order], rows.channels[order])
    if len(which):
        reason = "series had times that were not ascending, and have been sorted"
        rows = rows.doubting(reason, len(which), listed(rows.ids[which[:1]]))
        again = _begin_again(rows)
        if len(again):
            reason = "series go back in time by more than half of their span, and then go on: a clock that passed "
            reason += "midnight (give the column of days as --time, and this one as --clock), or several series (--id)"
            rows = rows.doubting(reason, len(again), listed(rows.ids[again[:1]]))
    same, wrong = (np.full(max(0, len(rows.times) - 1), value) for value in (True, False))
    for key in rows.keys:
        wrong |= same & (key[1:] < key[:-1])
        same &= key[1:] == key[:-1]
    if not wrong.any():
        return rows
    mixed = np.zeros(len(rows.ids), bool)  # of a large table often few series
    mixed[rows.series[1:][wrong]] = True
    order = np.arange(len(rows.times))
    at = np.flatnonzero(mixed[rows.series])
    order[at] = at[np.lexsort([key[at] for key in rows.keys[::-1]])]
    return rows.keep(order)


def _backwards(series: np.ndarray, times: np.ndarray, channels: np.ndarray | int = 0) -> np.ndarray:
    """Return the numbers of the series, ascending, in which a row is earlier than the row just before it.

    Rows of different channels are not compared.

    Args:
        series: int [n], ascending.
        times: float [n].
        channels: int [n], or one number for all rows.
    """
    same = (np.diff(series) == 0) & (np.diff(np.broadcast_to(channels, len(series))) == 0)
    return np.unique(series[1:][same & (times[1:] < times[:-1])])


def _begin_again(rows: Observations) -> np.ndarray:
    """Find series whose times jump back, as at midnight on a clock, or where two series share an id.

    Each step back in such a series is longer than half of the series' span, and at most 5 % of the series' rows come
    right after a step back.

    Args:
        rows: sorted by series, and within each in the order of the table. Only the rows of each series' first channel
            are looked at, since the table may hold one channel after the other.

    Returns:
        Indices of these series in `ids`, int, ascending.
    """
    times, series = rows.times, rows.series
    if rows.channels is not None:
        starts = np.flatnonzero(np.diff(series, prepend=-1))
        first = rows.channels == np.repeat(rows.channels[starts], np.diff(np.append(starts, len(series))))
        times, series = times[first], series[first]
    starts = np.flatnonzero(np.diff(series, prepend=-1))
    spans, counts = np.zeros(len(rows.ids)), np.bincount(series, minlength=len(rows.ids))
    spans[series[starts]] = np.maximum.reduceat(times, starts) - np.minimum.reduceat(times, starts)
    back = np.where(series[1:] == series[:-1], times[:-1] - times[1:], 0.0)
    steps, falls = (
        np.bincount(series[1:][back > least], minlength=len(rows.ids)) for least in (0, spans[series[1:]] / 2)
    )
    return np.flatnonzero((falls > 0) & (falls == steps) & (falls <= FEW_FALLS * counts))


def merge_duplicates(rows: Observations, duplicates: str, strict: bool = False) -> Observations:
    """Merge rows of the same series, time, further positions and channel into one; the report counts merged rows.

    Args:
        rows: sorted by series, time, positions and channel.
        duplicates: what to keep where the values of such rows differ.
            - "first" or "last": the first or the last row.
            - "mean": the mean of the different rows; equal ones count once. A value with a standard error s has the
              weight 1 / s², and gets the error of that mean. If an error is 0 or missing, values and errors have plain
              means. If one of the rows is a limit ("<5"), the first row is kept.
            - "error": the first row, with a warning in the report (`doubts`).
        strict: True makes "error" raise an error instead of a warning.

    Raises:
        InputError: duplicates is "error", and rows with other values than the duplicate before them are more than 1 %
            of all rows, or there is one and `strict` (code "duplicates").
    """
    again = np.logical_and.reduce([key[1:] == key[:-1] for key in rows.keys])  # as the row before
    if not again.any():
        return rows
    first = np.flatnonzero(np.concatenate([[True], ~again]))
    counts = np.diff(np.append(first, len(rows.times)))
    differs = again & ((rows.values[1:] != rows.values[:-1]) & ~np.isnan(rows.values[1:])).any(1)
    if rows.sides is not None:
        differs |= again & (rows.sides[1:] != rows.sides[:-1]).any(1)
    rows = rows.noting(merged=int(again.sum()))
    if duplicates == "error" and differs.any():
        place = np.searchsorted(first, np.argmax(differs), side="right") - 1
        where = rows.name(int(first[place]))
        if strict or differs.sum() > MAX_REPEATS * len(rows.times):
            more = f" Many {_coarse(rows)}." if rows.time_step else ""
            raise InputError(
                f"{where}: there are {counts[place]} observations that differ; wanted one ({again.sum()} rows too many "
                "in all). If a column tells them apart, name it as the channel; else read their mean, the first or the "
                f"last (in Python by SeriesDataset.from_frame).{more}",
                code="duplicates",
                settings=[("duplicates", "mean"), ("duplicates", "first"), ("duplicates", "last")],
            )
        reason = (
            "rows repeat the series, time and channel of another with other values; the first counts (--duplicates "
        )
        rows = rows.doubting(f"{reason}last or mean otherwise)", int(differs.sum()), where)
    if duplicates == "last":
        return rows.keep(first + counts - 1)
    merged = rows.keep(first)
    if duplicates != "mean":
        return merged
    rows, counts = _without_copies(rows, np.repeat(np.arange(len(first)), counts))
    first = np.cumsum(counts) - counts
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
    whole = counts == 1
    if rows.sides is not None:
        whole |= np.logical_or.reduceat((rows.sides != 0).any(1), first)
    mean[whole] = values[first[whole]]
    return replace(merged, values=mean.astype(rows.values.dtype))


def _without_copies(rows: Observations, group: np.ndarray) -> tuple[Observations, np.ndarray]:
    """Remove rows that have the same values and limits ("<5") as an earlier row of their group.

    Args:
        rows: n rows.
        group: int [n], number of each row's group, ascending from 0 without gaps.

    Returns:
        The rows that are left, in their order, and the number of them in each group, int.
    """
    sides = [] if rows.sides is None else [rows.sides]
    several = np.flatnonzero(np.bincount(group)[group] > 1)
    compared = np.column_stack([group[several], *(part[several] for part in (rows.values, *sides))])
    kept = np.ones(len(group), bool)
    kept[several] = False
    kept[several[np.unique(compared, axis=0, return_index=True)[1]]] = True
    return rows.keep(np.flatnonzero(kept)), np.bincount(group[kept])


def melt(rows: Observations) -> Observations:
    """Turn a wide table into a long one: each value that is not NaN becomes a row, and each value column a channel.

    The value column of the result is called "value". The result's `report` counts the NaN of each value column as
    missing.
    """
    row, column = np.nonzero(~np.isnan(rows.values))
    absent = len(rows.times) - np.bincount(column, minlength=len(rows.value_names))
    missing = {
        f"{name!r} is missing": int(count) for name, count in zip(rows.value_names, absent, strict=True) if count
    }
    others = replace(rows, values=rows.values[:, :0], sides=None)  # whose rows come once for each of the C channels
    return replace(
        others.keep(row).noting(missing=missing),
        channels=column.astype(np.int32),
        channel_names=rows.value_names,
        values=rows.values[row, column][:, None],
        sides=None if rows.sides is None else rows.sides[row, column][:, None],
        value_names=("value",),
        errors={},
    )


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    """Return the index at which each series begins in flat columns, and the end of the last one, int64 [S + 1].

    Args:
        lengths: int [S], number of observations of each series.
    """
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
