"""Where to ask for values: times and channels of series (`Queries`), made of a grid, a list, or another table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rotarymae.datasets import is_flat
from rotarymae.errors import InputError, did_you_mean, listed
from rotarymae.preprocess import ObservationPreprocessor
from rotarymae.series import SeriesDataset, Windows, as_text, cells, dates
from rotarymae.series.cells import plain
from rotarymae.series.reading import NO_ZONE
from rotarymae.series.tidy import Observations, unusable
from rotarymae.tables import Source, TableReader, TableSchema, open_source, stem

MAX_QUERIES = 10**8  # in one call: their answers take some 10 GB


class WindowBlend(NamedTuple):
    """Weights that join the answers of overlapping pieces of long series into one answer per query.

    Attributes:
        query: int [m], the query that each answer is for.
        weight: float [m], of each answer; those of a query add up to 1.
    """

    query: np.ndarray
    weight: np.ndarray

    def mixed(self, answers: np.ndarray) -> np.ndarray:
        """Return the weighted means [n, V, P] of the answers [m, V, P] to each of n queries."""
        order = np.argsort(self.query, kind="stable")
        first = np.flatnonzero(np.diff(self.query[order], prepend=-1))
        return np.add.reduceat((self.weight[:, None, None] * answers)[order], first)


@dataclass(frozen=True)
class Queries:
    """The n points at which values of S series are to be predicted: a query is a time, and a channel if there are any.

    Attributes:
        times: float64 [n], all queries of the first series, then those of the second, and so on.
        channels: int [n], numbers from 0 (which band or sensor); None for series without channels.
        offsets: int [S + 1]; the queries of series s are those from offsets[s] to offsets[s + 1].
        errors: [n, V] standard errors in the table's units: predict observations that have these errors, whose bands
            are wider. None predicts the curve without noise.
        positions: [n, P] places next to time, such as latitude and longitude; None for series without.
    """

    times: np.ndarray
    channels: np.ndarray | None
    offsets: np.ndarray
    errors: np.ndarray | None = None
    positions: np.ndarray | None = None

    @property
    def lengths(self) -> np.ndarray:
        """Number of queries of each series, int [S]."""
        return np.diff(self.offsets)

    def distinct_times(self) -> tuple[Queries, np.ndarray]:
        """Return one query for each different time (and position) of a series, and where each query is among them.

        For models that predict all channels of a time at once.

        Returns:
            The m queries, sorted by time in each series, without channels and errors; and int [n], the index among them
            of each of the n queries: `distinct.times[index]` equals `self.times`.
        """
        series = np.repeat(np.arange(len(self.lengths)), self.lengths)
        columns = [] if self.positions is None else list(self.positions.T)
        keys, index = np.unique(np.stack([series, self.times, *columns], axis=1), axis=0, return_inverse=True)
        offsets = np.searchsorted(keys[:, 0], np.arange(len(self.offsets)))
        positions = None if self.positions is None else keys[:, 2:]
        return Queries(keys[:, 1], None, offsets, positions=positions), index.reshape(-1)

    def of_windows(self, windows: Windows) -> tuple[Queries, WindowBlend]:
        """Return the queries of each of the `windows` of long series, and the weights that join the windows' answers.

        A window is a piece of a series, and neighbouring ones overlap. A query in an overlap is asked in both windows.

        Returns:
            m queries, at least n, window after window (offsets [W + 1]), without errors; and the `WindowBlend` that
            turns their m answers into those of the n queries.
        """
        before, after, share = windows.at(self.times, self.lengths)
        twice = np.flatnonzero(after > before)
        window = np.append(before, after[twice])
        order = np.argsort(window, kind="stable")
        query = np.append(np.arange(len(before)), twice)[order]
        offsets = np.searchsorted(window[order], np.arange(len(windows.series) + 1))
        channels = None if self.channels is None else self.channels[query]
        positions = None if self.positions is None else self.positions[query]
        blend = WindowBlend(query, np.append(1 - share, share[twice])[order])
        return Queries(self.times[query], channels, offsets, positions=positions), blend

    @classmethod
    def cross(
        cls,
        dataset: SeriesDataset,
        times: Sequence[np.ndarray],
        channels: Sequence[np.ndarray] | None = None,
        positions: Sequence[np.ndarray] | None = None,
    ) -> Queries:
        """Create queries for every time of a series in every one of its channels, channel after channel.

        Args:
            times: for each series its times [q_i]; without channels, each is asked for once.
            channels: for each series channel numbers from 0, not read without channels; None means all channels.
            positions: for each series its places [q_i, P]. None takes the only place at which a series was observed.

        Raises:
            InputError: no positions for a series that was observed at several ("positions-needed").
        """
        if dataset.channel_names is None:
            counts, number = np.ones(len(times), np.int64), None
        else:
            channels = [np.arange(len(dataset.channel_names))] * len(times) if channels is None else channels
            counts = np.array([len(numbers) for numbers in channels])
            number = np.concatenate([np.repeat(numbers, len(at)) for numbers, at in zip(channels, times, strict=True)])
        offsets = np.cumsum([0, *(counts * [len(at) for at in times])])
        flat = [np.tile(np.asarray(at, np.float64), count) for at, count in zip(times, counts, strict=True)]
        where = None
        if dataset.positions is not None:
            each = _single_positions(dataset, times) if positions is None else positions
            where = np.concatenate([np.tile(at, (int(count), 1)) for at, count in zip(each, counts, strict=True)])
        return cls(np.concatenate(flat), number, offsets, positions=where)


def grid(dataset: SeriesDataset, points: int) -> Queries:
    """Create queries at evenly spaced times from each series' first to its last observation, channel after channel.

    Args:
        points: number of times of each series.

    Raises:
        InputError: less than one point; more than memory could hold; series observed at several positions.
    """
    if points < 1:
        raise InputError(f"points is {points}; give at least 1.")
    _check_size(dataset, points)
    first, last = dataset.times[dataset.offsets[:-1]], dataset.times[dataset.offsets[1:] - 1]
    return Queries.cross(dataset, list(np.linspace(first, last, points, axis=1)))


def _single_positions(dataset: SeriesDataset, times: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return for each series the only place at which it was observed, repeated for its query times: arrays [q_i, P].

    Raises InputError ("positions-needed") for a series that was observed at several places.
    """
    assert dataset.positions is not None
    first = dataset.positions[dataset.offsets[:-1]]
    moves = (dataset.positions != np.repeat(first, dataset.lengths, axis=0)).any(axis=1)
    if moves.any():
        series = int(np.searchsorted(dataset.offsets, int(moves.argmax()), side="right")) - 1
        raise InputError(
            f"series {plain(dataset.ids[series])!r} is observed at several positions; times alone do not say where its "
            f"values are wanted. Ask by a table with the columns of times and {listed(dataset.position_names)}.",
            code="positions-needed",
        )
    return [np.repeat(at[None], len(when), axis=0) for at, when in zip(first, times, strict=True)]


def curves(visible: SeriesDataset, hidden: SeriesDataset, points: int) -> Queries:
    """Create queries for drawing: evenly spaced times of each series, in the channels in which it was observed.

    The times reach from its first to its last observation, visible or hidden. For series with further positions, the
    queries follow the path of the observations.

    Args:
        visible, hidden: observations of the same series in the same order: those a model saw, and the others.
        points: number of times of each series.
    """
    times, channels, paths = [], [], []
    for seen, left in zip(visible, hidden, strict=True):
        both = np.concatenate([seen.times, left.times])
        times.append(np.linspace(both.min(), both.max(), points))
        if seen.channels is not None and left.channels is not None:
            channels.append(np.union1d(seen.channels, left.channels))
        if seen.positions is not None and left.positions is not None:
            order, where = np.argsort(both, kind="stable"), np.concatenate([seen.positions, left.positions])
            paths.append(np.stack([np.interp(times[-1], both[order], column[order]) for column in where.T], axis=1))
    return Queries.cross(visible, times, channels, paths)


def queries_at(dataset: SeriesDataset, times: Sequence[float | str] | np.ndarray) -> Queries:
    """Create queries for the same times in every series and channel, channel after channel in each series.

    Times are numbers, or texts: dates, or spans such as "+4" or "+4h" from each series' first observation. Raises
    InputError for another text, more times than memory could hold, and series observed at several positions.
    """
    _check_size(dataset, len(times))
    spans = [dates.parse_span(str(one), dataset.time_unit) for one in times]
    absolute = [
        dates.parse_time(str(one), dataset.time_zone) if span is None else np.nan
        for one, span in zip(times, spans, strict=True)
    ]
    after = dataset.times[dataset.offsets[:-1]][:, None] + np.array(spans, np.float64)  # NaN for None
    return Queries.cross(dataset, list(np.where(np.isnan(after), absolute, after)))


def _check_size(dataset: SeriesDataset, times: int) -> None:
    """Raise InputError if so many times for each series and channel of the data set are more than `MAX_QUERIES`."""
    channels = 1 if dataset.channel_names is None else len(dataset.channel_names)
    queries = times * len(dataset) * channels
    if queries > MAX_QUERIES:
        # Per query its series, time and channel, and per value a mean, a deviation and the edges of two bands, twice.
        size = queries * 8 * (3 + 2 * 6 * len(dataset.value_names)) / 1e9
        raise InputError(
            f"{times:,} times for {len(dataset):,} series in {channels:,} channels are {queries:,} points, whose "
            f"answers would take {size:,.0f} GB of memory; ask for at most {MAX_QUERIES:,} points at a time."
        )


@dataclass(frozen=True, eq=False)
class QueryTable:
    """A table of times at which a user wants values, one row per time, with the id of its series.

    Attributes:
        name: of the table, for messages.
        rows: its rows as read: `series` [n], an index into `ids`, times [n], channels, positions. Their values are the
            standard errors of the observations to predict, none to predict the curve.
        table: the table itself.
        columns: names of its columns of ids, of times, and of channels (None without).
        clock: name of its column of times of day, which its times are without; None where times are whole.
    """

    name: str
    rows: Observations
    table: pa.Table
    columns: tuple[str, str, str | None]
    clock: str | None = None

    @property
    def ids(self) -> list[Any]:
        """The different ids of the table, in order of first appearance."""
        return self.rows.ids.tolist()

    def in_order(self, answers: pa.Table) -> pa.Table:
        """Return the answers in the row order of the table of times, with its column names and its other columns.

        A row without a channel becomes one row for each channel. A row that could not be answered has empty cells.

        Args:
            answers: the ids in the first column, then "time" and, if there are channels, "channel". The answers of a
                series are in the order of its queries, and may lie anywhere in the table. A series that could not be
                answered has one row.
        """
        id, time, channel = self.columns
        code = {as_text(name): k for k, name in enumerate(self.ids)}
        owner = np.array([code[as_text(name)] for name in answers[0].to_pylist()], np.int64)
        counts, queried = (np.bincount(part, minlength=len(code)) for part in (owner, self.rows.series))
        every = max(1, int((counts // np.maximum(queried, 1)).max(initial=1)))  # answers for each row
        # The one row of a series that could not be answered stands for all its answers.
        repeats = np.where(counts == queried * every, 1, queried * every)
        rows = np.argsort(owner, kind="stable")
        place = np.empty((len(self.rows.series), every), np.int64)
        place[np.argsort(self.rows.series, kind="stable")] = np.repeat(rows, repeats[owner[rows]]).reshape(-1, every)
        answers = answers.take(pa.array(place.ravel()))
        table = self.table.take(pa.array(np.repeat(np.arange(len(place)), every)))
        names = {answers.column_names[0]: id, "time": time} | ({"channel": channel} if channel else {})
        # What a text file writes is kept as it was read: ids, times and channels of the answers' types.
        kept = {name for name, to in names.items() if not cells.is_text(table[to].type) or (self.clock and to == time)}
        columns = {
            names.get(name, name): table[names[name]] if name in kept else column
            for name, column in zip(answers.column_names, answers.columns, strict=True)
        }
        for name in table.column_names:
            if name not in columns:
                other = cells.to_arrow(table[name])
                typed = cells.typed(cells.trimmed(other)) if cells.is_text(other.type) else other
                columns[name] = other if cells.is_text(typed.type) else typed  # numbers that a text file holds
        return pa.table(columns)

    @classmethod
    def read(cls, path: Path, layout: TableSchema, observed: Path) -> QueryTable:
        """Read a table of queries from the file `path`; `layout` and InputError are those of `of`.

        Args:
            observed: the file of observations. If it is one series without an id column, the queries need no ids
                either, and get the name of this file as id.
        """
        source = open_source(path).with_time(layout.time)
        columns = source.read(source.columns)
        table = pa.table(columns)
        if layout.id not in columns and observed.is_file() and layout.id not in open_source(observed).columns:
            table = table.append_column(layout.id, pa.array([stem(observed)] * len(table)))
        return cls.of(table, layout, str(path))

    @classmethod
    def of(cls, table: pa.Table, layout: TableSchema, name: str = "the table of times") -> QueryTable:
        """Read ids, times and channels of queries from a table with one row per time.

        Args:
            layout: names of the columns, and how times and missing cells are written. Ids and further positions are in
                its columns for these. Times are in its time column, or else in "time". Channels are in its channel
                column, or else in "channel"; without either, each row asks for all channels. Columns of standard
                errors, if all are present, ask for observations with these errors rather than for the curve.
            name: of the table, for messages.

        Raises:
            InputError: a missing column or cell, a time that is not finite; no rows.
        """
        if not len(table):
            raise InputError(f"{name} has no rows; there are no times to interpolate at.")
        id, time = layout.id, layout.time
        if time not in table.column_names and "time" in table.column_names:
            time = "time"  # as `interpolate` itself writes it
        others = [column for column in table.column_names if column not in (id, time)]
        channel = next((column for column in (layout.channel, "channel") if column in others), None)
        if channel is None and layout.channel and did_you_mean(layout.channel, others):
            channel = layout.channel  # misspelt, and refused below
        with_errors = layout.errors if set(layout.errors) <= set(table.column_names) else ()
        axes = layout.positions
        clock = layout.clock if layout.clock in others else None  # without it, times are whole
        needed = [id, time, *axes] + [name for name in (channel, clock) if name]
        for column in (*needed, *with_errors):
            if column not in table.column_names:
                near = did_you_mean(column, table.column_names)
                raise InputError(f"{name} has no column {column!r}; it needs {listed(needed)}.{near}")
        columns = {column: cells.to_arrow(table[column]) for column in (*needed, *with_errors)}
        iso = cells.is_text(columns[time].type) and cells.matches(columns[time], dates.ISO).all()  # as we write them
        written: Any = {"time_format": None if iso else layout.time_format, "na": layout.na}
        schema = TableSchema(id=id, time=time, clock=clock, channel=channel, positions=axes, values=("",), **written)
        reader = TableReader(source=Source(name, {}, {}, ""), schema=schema, values=with_errors)
        try:
            rows = reader.rows(columns)
            empty = [(f"{error!r} is missing", np.isnan(rows.values[:, v])) for v, error in enumerate(with_errors)]
            rows.leave_out([*unusable(rows), *empty], strict=True)
        except InputError as error:
            raise error.within(name) from error
        return cls(name, rows, table, (id, time, channel), clock)

    def queries(self, dataset: SeriesDataset) -> Queries:
        """Return the queries for the series of a data set, in its order, and for each series in the order of the rows.

        Rows for other series are left out, and a series without a row has no query. A row without a channel becomes a
        query in every channel. Dates without a zone are read in the zone of the data set. Raises InputError for an
        unknown channel, and for dates where the times of the data set are numbers.
        """
        rows = self.rows
        if rows.time_unit is not None and dataset.time_unit is None:
            raise InputError(f"{self.name} asks for dates, and the times of the series are numbers; give numbers.")
        # Whether a text file's 1 is a number or a text depends on what else stands in its column.
        rank = {as_text(name): i for i, name in enumerate(dataset.ids)}
        place = np.array([rank.get(as_text(name), -1) for name in self.ids], np.int64)[rows.series]
        order = np.argsort(place, kind="stable")[(place < 0).sum() :]
        names, theirs, channels = dataset.channel_names, rows.channel_names or (), None
        offsets = np.searchsorted(place[order], np.arange(len(dataset) + 1))
        if names is not None and rows.channels is not None:
            known = {as_text(name): i for i, name in enumerate(names)}
            number = np.array([known.get(as_text(name), -1) for name in theirs], np.int64)[rows.channels]
            if (number < 0).any():
                strange = theirs[rows.channels[(number < 0).argmax()]]
                raise InputError(
                    f"{self.name} asks for channel {strange!r}, which the model does not know; it knows "
                    f"{', '.join(known)}."
                )
            channels = number[order]
        elif names is not None:
            channels, offsets = np.tile(np.arange(len(names)), len(order)), offsets * len(names)
            order = np.repeat(order, len(names))
        times = rows.times[order]
        if NO_ZONE in rows.report.notes:
            times = dates.in_zone(times, dataset.time_zone)
        errors = rows.values[order] if rows.value_names else None
        return Queries(times, channels, offsets, errors, None if rows.positions is None else rows.positions[order])

    def refuse_others(self, ids: Iterable[Any]) -> None:
        """Raise InputError if the table of queries has an id that is not among `ids`; ids are compared as text."""
        there = set(map(as_text, ids))
        unknown = [name for name in self.ids if as_text(name) not in there]
        if unknown:
            raise InputError(
                f"{self.name} asks for series {unknown[0]!r}, which the table of observations does not have; correct "
                "the id, or leave out its rows."
            )


def as_queries(dataset: SeriesDataset, preprocessor: ObservationPreprocessor | None = None) -> Queries:
    """Create a query at every observation of a data set, in their order: to predict what was observed.

    Args:
        preprocessor: one that reads standard errors gives the queries those of the observations; None gives none.
    """
    errors = None
    if preprocessor is not None and preprocessor.errors:
        errors = np.asarray(dataset.with_values(preprocessor.errors).values)
    positions = None if dataset.positions is None else np.asarray(dataset.positions)
    return Queries(np.asarray(dataset.times), dataset.channels, np.asarray(dataset.offsets), errors, positions)


def check_queries(queries: Queries, dataset: SeriesDataset) -> None:
    """Raise InputError for queries of other series than `dataset`, for times that are not finite, or for no queries."""
    series, times = len(queries.offsets) - 1, len(queries.times)
    if series != len(dataset):
        raise InputError(
            f"queries are for {series} series; the data set has {len(dataset)}. Give some, or none, for each."
        )
    if queries.offsets[-1] != times:
        raise InputError(f"the offsets of the queries end at {queries.offsets[-1]}, and there are {times} times.")
    if not times:
        raise InputError("there are no times to interpolate at; give at least one.")
    if not np.isfinite(queries.times).all():
        first = int((~np.isfinite(queries.times)).argmax())
        raise InputError(f"query {first} (counted from 0) has the time {queries.times[first]}; give finite times.")


def check_axes(queries: Queries, preprocessor: ObservationPreprocessor) -> None:
    """Raise InputError for queries whose channels or positions are not those that a model was trained with.

    Refused are positions or channels where the model's preprocessor has none, or none where it has some; an unknown
    channel; and positions that are NaN or infinite.
    """
    axes, names, channels = len(preprocessor.position_names), preprocessor.channel_names, queries.channels
    if (0 if queries.positions is None else queries.positions.shape[1]) != axes:
        raise InputError(
            f"queries have no positions on the model's further axes ({listed(preprocessor.position_names)}); give one "
            "for each query."
            if axes
            else "queries have further positions, and the model was trained without any; leave them out.",
            code="positions-needed",
        )
    if queries.positions is not None and not np.isfinite(queries.positions).all():
        first = int((~np.isfinite(queries.positions)).any(axis=1).argmax())
        raise InputError(f"query {first} (counted from 0) has a position that is NaN or infinite; give finite ones.")
    if (channels is None) != (names is None):
        given, trained, advice = (
            ("none", "some", "give one for each query") if names else ("some", "none", "leave them out")
        )
        raise InputError(f"queries have channels: {given}; the model was trained with {trained}; {advice}.")
    if channels is not None and names is not None and ((channels < 0) | (channels >= len(names))).any():
        strange = channels[(channels < 0) | (channels >= len(names))][0]
        raise InputError(f"queries ask for channel {int(strange)}; there are 0 to {len(names) - 1}.")


# ── times in the forms in which Python users give them ──────────────────────────────────────────────────────────────


class AnswerShape(NamedTuple):
    """How answers, which are computed as one flat array over all series, are laid out for the caller.

    Attributes:
        channels: number of channels; 0 for series without.
        axes: 3 if the series came as an array [cases, channels, time], whose layout the answers get; 2 for an array
            [cases, time]; else 0.
    """

    channels: int
    axes: int


def queries_from(dataset: SeriesDataset, X: Any, at: Any = None, positions: Any = None) -> tuple[Queries, AnswerShape]:
    """Create queries for all channels of each series; return them, and how their answers are to be laid out.

    Args:
        X: the series as the caller gave them, whose form the answers take.
        at: times [q], the same for all series; or one array of times [q_i] for each series. None means the steps 0, 1,
            ... of an array, or else each series' different times (and positions). For series with dates these may be
            dates, in the zone of the series unless they name one.
        positions: further positions [q, P] (or [q] for one column), the same for all series; or a list with one array
            [q_i, P] for each. None is for series that stay at one position, or for no `at`.

    Raises:
        InputError: times or positions for another number of series, not finite, or of another shape; no positions for
            series that are observed at several.
    """
    if hasattr(at, "columns"):
        raise InputError(
            f"at is a table, with the columns {listed(list(at.columns), 10)}; give times: one array for all series, or "
            "a list with one array for each. A file of such a table is read by `rotarymae interpolate --at`."
        )
    axes = 2 if is_flat(X) else 3 if isinstance(X, np.ndarray) and X.ndim == 3 else 0
    if at is None and dataset.positions is not None and positions is None:
        points = [np.unique(np.column_stack([one.times, one.positions]), axis=0) for one in dataset]  # pyright: ignore
        at, positions = [rows[:, 0] for rows in points], [rows[:, 1:] for rows in points]
    elif at is None:
        at = np.arange(np.shape(X)[-1]) if axes else [np.unique(one.times) for one in dataset]
    times = _for_each("at", at, dataset, 1, lambda part: _as_numbers(part, dataset))
    places, width = None, len(dataset.position_names)
    if positions is not None:
        if not width:
            raise InputError("positions are given, and the series have none besides their times; leave positions out.")
        places = _for_each("positions", positions, dataset, 2, lambda part: np.asarray(part, np.float64))
        places = [one[:, None] if one.ndim == 1 else one for one in places]
        for i, (one, when) in enumerate(zip(places, times, strict=True)):
            if one.shape != (len(when), width):
                raise InputError(
                    f"positions of series {i} (counted from 0) have the shape {one.shape}; give [{len(when)}, {width}]:"
                    f" one row per time, and the columns {listed(dataset.position_names)}."
                )
    return Queries.cross(dataset, times, positions=places), AnswerShape(len(dataset.channel_names or ()), axes)


def _for_each(
    name: str, given: Any, dataset: SeriesDataset, most: int, convert: Callable[[Any], np.ndarray]
) -> list[np.ndarray]:
    """Return one array for each series of a data set, from one array that is meant for all of them or one for each.

    Args:
        name: of the argument, for messages.
        given: one array for all series, or a list of arrays, or an array with one more axis.
        most: number of axes of the array of one series, at most; it has one at least.
        convert: makes an array of numbers of what was given.

    Raises InputError for arrays for another number of series, with another number of axes, with NaN or with infinity.
    """
    if isinstance(given, list | tuple) and any(np.ndim(one) >= most for one in given):
        each = [convert(one) for one in given]
    else:
        whole = convert(given)
        each = list(whole) if whole.ndim > most else [whole] * len(dataset)
    if len(each) != len(dataset):
        raise InputError(
            f"{name} is for {len(each)} series; there are {len(dataset)}. Give one array for each series, or a single "
            "one for all."
        )
    for i, one in enumerate(each):
        if not 1 <= one.ndim <= most:
            raise InputError(
                f"{name} of series {i} (counted from 0) has the shape {one.shape}; give at most {most} axes."
            )
        if not np.isfinite(one).all():
            raise InputError(f"{name} of series {i} (counted from 0) holds NaN or infinity; give finite numbers.")
    return each


def shape_answers(answers: np.ndarray, queries: Queries, shape: AnswerShape) -> Any:
    """Lay out flat answers [n, V] to n queries as [S, q, V], with channels as [S, C, q, V].

    They are a list of arrays [q_i, V] or [C, q_i, V] where series have different numbers of times. For series given as
    an array they are [cases, channels, q] or [cases, q]. Queries and shape are those of `queries_from`.
    """
    parts = []
    for part in np.split(answers, queries.offsets[1:-1]):
        part = part.reshape(max(shape.channels, 1), -1, part.shape[-1])
        if shape.axes:
            part = part[..., 0] if shape.channels else part[0].T
            parts.append(part[0] if shape.axes == 2 else part)
        else:
            parts.append(part if shape.channels else part[0])
    return np.stack(parts) if len(set(queries.lengths)) == 1 else parts


def _as_numbers(times: Any, dataset: SeriesDataset) -> np.ndarray:
    """Return times, of any shape, as float64; dates and texts that are dates become days since 1970-01-01 UTC.

    Dates without a zone are read in the zone of the series. Raises InputError for dates where the series have numbers,
    and for other texts.
    """
    array = np.asarray(times)
    if array.dtype.kind in "iufb":
        return array.astype(np.float64)
    at = dates.times(cells.to_arrow(times if array.ndim < 2 else array.ravel()), "at")
    numbers = at.values
    if at.unit is not None and dataset.time_unit is None:
        raise InputError("at holds dates, and the times of the series are numbers; give numbers.")
    if at.zone == "" and np.isfinite(numbers).all():  # what is not is refused by the caller
        numbers = dates.in_zone(numbers, dataset.time_zone)
    return numbers.reshape(array.shape)
