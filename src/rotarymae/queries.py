"""Where to ask for values: times and channels of series (`Queries`), made of a grid, a list, or another table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
from rotarymae.series.tidy import unusable
from rotarymae.tables import Source, TableReader, TableSchema, open_source, stem

MAX_QUERIES = 10**8  # in one call: their answers take some 10 GB


@dataclass(frozen=True)
class WindowBlend:
    """How the answers of overlapping windows are blended.

    Attributes:
        first, second: int [n], for each query the rows of its two answers, which are often the same.
        share: float [n], the weight of the second.
    """

    first: np.ndarray
    second: np.ndarray
    share: np.ndarray

    def mixed(self, answers: np.ndarray) -> np.ndarray:
        """Blend window answers [W, V, P] into query answers [n, V, P]: V values with P numbers each."""
        share = self.share[:, None, None]
        return (1 - share) * answers[self.first] + share * answers[self.second]


@dataclass(frozen=True)
class Queries:
    """Where to predict: flat times and channel numbers (or None), with `offsets` [S + 1] that delimit each series.

    With `errors` [n, V], in the table's units, predictions are of observations with these standard errors, whose bands
    are wider than those of the curve. `positions` [n, P] are needed for series with further positions.
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
        """Return one query for each different time (and position) of a series, and the place of each query among them.

        The queries that are returned are sorted by time in each series, and have no channels and no errors. The place
        is int [n]: `distinct.times[place]` are the times of all n queries.
        """
        series = np.repeat(np.arange(len(self.lengths)), self.lengths)
        columns = [] if self.positions is None else list(self.positions.T)
        order = np.lexsort((*columns[::-1], self.times, series))
        owner = series[order]
        opens = np.append(True, np.any([np.diff(key[order]) != 0 for key in (series, self.times, *columns)], axis=0))
        place = np.empty(len(order), np.int64)
        place[order] = np.cumsum(opens) - 1
        offsets = np.searchsorted(owner[opens], np.arange(len(self.offsets)))
        positions = None if self.positions is None else self.positions[order][opens]
        return Queries(self.times[order][opens], None, offsets, positions=positions), place

    def of_windows(self, windows: Windows) -> tuple[Queries, WindowBlend]:
        """Return the queries sorted by the window that answers them, and how to blend their answers.

        A query between two windows is asked in both, so that the m sorted queries are at least n. They have one pair of
        offsets per window, and no errors. `WindowBlend.mixed` blends their answers [m, ...] into those of the original
        queries [n, ...].

        Args:
            windows: of the series to which the queries belong.
        """
        before, after, share = windows.at(self.times, self.lengths)
        twice = np.flatnonzero(after > before)
        window, query = np.append(before, after[twice]), np.append(np.arange(len(before)), twice)
        order = np.argsort(window, kind="stable")
        place = np.argsort(order, kind="stable")
        first, second = place[: len(before)], place[: len(before)].copy()
        second[twice] = place[len(before) :]
        offsets = np.searchsorted(window[order], np.arange(len(windows.series) + 1))
        channels = None if self.channels is None else self.channels[query[order]]
        positions = None if self.positions is None else self.positions[query[order]]
        blend = WindowBlend(first, second, share)
        return Queries(self.times[query[order]], channels, offsets, positions=positions), blend

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
            dataset: the S series; without channels, each time is asked for once.
            times: for each series an array [q_i].
            channels: for each series channel numbers from 0, not read without channels; None means all channels.
            positions: for each series an array [q_i, P], where the data set has further positions; None without.
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
        if positions is not None:
            where = np.concatenate([np.tile(at, (count, 1)) for at, count in zip(positions, counts, strict=True)])  # pyright: ignore
        return cls(np.concatenate(flat), number, offsets, positions=where)


def grid(dataset: SeriesDataset, points: int) -> Queries:
    """Create queries at `points` even times from each series' first to last observation, in every channel.

    The queries of a series are channel after channel. Series without channels have one query for each time.

    Raises:
        InputError: less than one point; more than memory could hold; series observed at several positions.
    """
    if points < 1:
        raise InputError(f"points is {points}; wanted at least 1.")
    _check_size(dataset, points)
    first, last = dataset.times[dataset.offsets[:-1]], dataset.times[dataset.offsets[1:] - 1]
    times = list(np.linspace(first, last, points, axis=1))
    return Queries.cross(dataset, times, positions=_single_positions(dataset, times))


def _single_positions(dataset: SeriesDataset, times: Sequence[np.ndarray]) -> list[np.ndarray] | None:
    """Return for each series its only position, repeated for each of its query times [q_i, P].

    None for a data set without further positions.

    Args:
        times: query times [q_i] of each series.

    Raises:
        InputError: a series that is observed at several positions ("positions-needed").
    """
    if dataset.positions is None:
        return None
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
    """Create queries at `points` even times of each series, in the channels that it was observed in.

    The times are from its first to its last observation, visible or hidden. With further positions, the queries follow
    the path of the observations.

    Args:
        visible, hidden: the two parts of the same series, in the same order.
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
    return Queries.cross(visible, times, channels, paths if visible.positions is not None else None)


def queries_at(dataset: SeriesDataset, times: Sequence[float | str] | np.ndarray) -> Queries:
    """Create queries for the same times in every series and channel, channel after channel in each series.

    Args:
        times: numbers, or texts: dates, or spans such as "+4" or "+4h" from each series' first observation.

    Raises:
        InputError: another text; more times than memory could hold; series observed at several positions.
    """
    _check_size(dataset, len(times))
    spans = [dates.parse_span(str(one), dataset.time_unit) for one in times]
    absolute = [
        dates.parse_time(str(one), dataset.time_zone) if span is None else np.nan
        for one, span in zip(times, spans, strict=True)
    ]
    after = dataset.times[dataset.offsets[:-1]][:, None] + np.array(spans, np.float64)  # NaN for None
    each = list(np.where(np.isnan(after), absolute, after))
    return Queries.cross(dataset, each, positions=_single_positions(dataset, each))


def _check_size(dataset: SeriesDataset, times: int) -> None:
    """Raise InputError for more than `MAX_QUERIES`: `times` for each series and channel of the data set.

    Args:
        times: number of times of each series.
    """
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
    """Queries read from a table with one row per time.

    Attributes:
        name: of that table, for messages.
        ids: the distinct ids, in order of first appearance.
        series: int [n], index of each row's id.
        times: float64 [n].
        channels: labels [n]; None where every row asks for all channels.
        errors: [n, V] standard errors of observations to predict; None to predict the curve.
        dates: whether the times were dates, which are counted in days.
        table: the table itself, and its names for ids, times and channels.
        clock: its name for the times of day, which its times are without; None where times are whole.
        positions: float64 [n, P] further positions; None without any.
    """

    name: str
    ids: list[Any]
    series: np.ndarray
    times: np.ndarray
    channels: list[Any] | None
    errors: np.ndarray | None = None
    dates: bool = False
    zoneless: bool = False
    table: pa.Table | None = None
    roles: tuple[str, str, str | None] = ("id", "time", None)
    clock: str | None = None
    positions: np.ndarray | None = None

    def in_order(self, answers: pa.Table) -> pa.Table:
        """Return the answers in the row order of the table of queries, with its column names and further columns.

        A row without a channel has as many answers as there are channels, one after another. A query that could not be
        answered has a row with empty cells.

        Args:
            answers: the ids in the first column, then "time" and, if there are channels, "channel". The answers of a
                series are in the order of its queries, and may lie anywhere in the table. A series that could not be
                answered has one row.
        """
        assert self.table is not None
        id, time, channel = self.roles
        code = {as_text(name): k for k, name in enumerate(self.ids)}
        owner = np.array([code[as_text(name)] for name in answers[0].to_pylist()], np.int64)
        rows, counts = np.argsort(owner, kind="stable"), np.bincount(owner, minlength=len(self.ids))
        per_series = np.bincount(self.series, minlength=len(self.ids))
        every = max(1, int((counts // np.maximum(per_series, 1)).max(initial=1)))  # answers for each row
        order = np.argsort(self.series, kind="stable")
        number = np.empty(len(order), np.int64)  # of each row among those of its series
        number[order] = np.arange(len(order)) - np.repeat(np.cumsum(per_series) - per_series, per_series)
        full = counts == per_series * every  # a series that cannot be answered has one row, and no answer in it
        place = (np.cumsum(counts) - counts)[self.series][:, None] + np.where(
            full[self.series][:, None], number[:, None] * every + np.arange(every), 0
        )
        answers = answers.take(pa.array(rows[place.ravel()]))
        table = self.table.take(pa.array(np.repeat(np.arange(len(self.series)), every)))
        columns = dict(zip(answers.column_names, answers.columns, strict=True))
        names = {answers.column_names[0]: id, "time": time}
        names |= {"channel": channel} if channel else {}
        # What a text file writes is kept as it was read: ids, times and channels of the answers' types.
        kept = {name for name, to in names.items() if not cells.is_text(table[to].type) or (self.clock and to == time)}
        columns = {names.get(name, name): table[names[name]] if name in kept else c for name, c in columns.items()}
        others = {name: cells.to_arrow(table[name]) for name in table.column_names if name not in columns}
        texts = {name: cells.typed(cells.trimmed(c)) for name, c in others.items() if cells.is_text(c.type)}
        numbers = {name: column for name, column in texts.items() if not cells.is_text(column.type)}
        return pa.table(columns | others | numbers)

    @classmethod
    def read(cls, path: Path, layout: TableSchema, observed: Path) -> QueryTable:
        """Read a table of queries from a file.

        Args:
            path: the file.
            layout: as in `of`.
            observed: the file of observations. If it is one series without an id column, the queries need no ids
                either, and get the name of this file as id.

        Raises:
            InputError: as `of`; a file that cannot be read.
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
        own = cells.is_text(columns[time].type) and cells.matches(columns[time], dates.ISO).all()  # as we write them
        written: Any = {"time_format": None if own else layout.time_format, "na": layout.na}
        schema = TableSchema(id=id, time=time, clock=clock, channel=channel, positions=axes, values=("",), **written)
        reader = TableReader(source=Source(name, {}, {}, ""), schema=schema, values=with_errors)
        try:
            rows = reader.rows(columns)
            empty = [(f"{error!r} is missing", np.isnan(rows.values[:, v])) for v, error in enumerate(with_errors)]
            rows.leave_out([*unusable(rows), *empty], strict=True)
        except InputError as error:
            raise error.within(name) from error
        names = rows.channel_names
        return cls(
            name=name,
            ids=rows.ids.tolist(),
            series=rows.series,
            times=rows.times,
            channels=None if names is None or rows.channels is None else [names[c] for c in rows.channels],
            errors=rows.values if with_errors else None,
            dates=rows.time_unit is not None,
            zoneless=NO_ZONE in rows.report.notes,
            table=table,
            roles=(id, time, channel),
            clock=clock,
            positions=rows.positions,
        )

    def queries(self, dataset: SeriesDataset) -> Queries:
        """Return the queries for the series of a data set, in its order, and for each series in the order of the rows.

        Rows for other series are left out, and a series without a row has no query. A row without a channel becomes a
        query in every channel. Dates without a zone are read in the zone of the data set.

        Raises:
            InputError: an unknown channel; dates, where the times of the data set are numbers.
        """
        if self.dates and dataset.time_unit is None:
            raise InputError(f"{self.name} asks for dates, and the times of the series are numbers; give numbers.")
        # Whether a text file's 1 is a number or a text depends on what else stands in its column.
        rank = {as_text(name): i for i, name in enumerate(dataset.ids)}
        place = np.array([rank.get(as_text(name), -1) for name in self.ids], np.int64)[self.series]
        order = np.argsort(place, kind="stable")[(place < 0).sum() :]
        offsets, times = np.searchsorted(place[order], np.arange(len(dataset) + 1)), self.times[order]
        if self.zoneless:
            times = dates.in_zone(times, dataset.time_zone)
        errors = None if self.errors is None else self.errors[order]
        where = None if self.positions is None else self.positions[order]
        names = dataset.channel_names
        if names is None:
            return Queries(times, None, offsets, errors, where)
        if self.channels is None:
            every = len(names)
            errors, where = (None if part is None else np.repeat(part, every, axis=0) for part in (errors, where))
            channels = np.tile(np.arange(every), len(times))
            return Queries(np.repeat(times, every), channels, offsets * every, errors, where)
        known = {as_text(name): i for i, name in enumerate(names)}
        strange = [name for name in dict.fromkeys(self.channels) if as_text(name) not in known]
        if strange:
            raise InputError(
                f"{self.name} asks for channel {strange[0]!r}, which the model does not know; it knows "
                f"{', '.join(known)}."
            )
        number = np.array([known[as_text(name)] for name in self.channels], np.int64)
        return Queries(times, number[order], offsets, errors, where)

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
    """Create queries at a data set's observations, in their order.

    Args:
        preprocessor: one that reads standard errors gives the queries those of the observations; None gives none.
    """
    errors = None
    if preprocessor is not None and preprocessor.errors:
        errors = np.asarray(dataset.with_values(preprocessor.errors).values)
    positions = None if dataset.positions is None else np.asarray(dataset.positions)
    return Queries(np.asarray(dataset.times), dataset.channels, np.asarray(dataset.offsets), errors, positions)


def check_queries(queries: Queries, dataset: SeriesDataset, preprocessor: ObservationPreprocessor) -> None:
    """Raise InputError for queries that a model cannot answer for a data set.

    Refused are: no queries, another number of series or of times than the offsets say, times or positions that are not
    finite, positions or channels where the preprocessor has none or none where it has some, and an unknown channel.

    Args:
        dataset: the series that the queries are for.
        preprocessor: the model's.
    """
    if len(queries.offsets) != len(dataset) + 1:
        raise InputError(
            f"queries are for {len(queries.offsets) - 1} series; the data set has {len(dataset)}. Give queries, or "
            "none, for each."
        )
    if queries.offsets[-1] != len(queries.times):
        raise InputError(
            f"the offsets of the queries end at {queries.offsets[-1]}, and there are {len(queries.times)} times; both "
            "must be equal."
        )
    if len(queries.times) == 0:
        raise InputError("there are no times to interpolate at; give at least one.")
    refuse_other_times(queries)
    axes = len(preprocessor.position_names)
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
    if queries.channels is None and preprocessor.channel_names is not None:
        raise InputError("queries have no channels, and the model was trained with channels; give one for each query.")
    if queries.channels is not None and preprocessor.channel_names is None:
        raise InputError("queries have channels, and the model was trained without any; leave them out.")
    if preprocessor.channel_names is not None and queries.channels is not None:
        known = len(preprocessor.channel_names)
        strange = queries.channels[(queries.channels < 0) | (queries.channels >= known)]
        if len(strange):
            raise InputError(f"queries ask for channel {int(strange[0])}; there are 0 to {known - 1}.")


def refuse_other_times(queries: Queries) -> None:
    """Raise InputError, naming the query, for a time that is NaN or infinite."""
    if not np.isfinite(queries.times).all():
        first = int((~np.isfinite(queries.times)).argmax())
        raise InputError(f"query {first} (counted from 0) has the time {queries.times[first]}; give finite times.")


# ── times in the forms in which Python users give them ──────────────────────────────────────────────────────────────


class AnswerShape(NamedTuple):
    """How flat answers are laid out for the caller.

    Attributes:
        channels: names of channels, or None.
        common: whether all series have the same number of query times.
        padded: whether the series came as an array [cases, channels, time], whose layout the answers get.
        flat: whether they came as an array [cases, time].
    """

    channels: tuple[Any, ...] | None
    common: bool
    padded: bool
    flat: bool


def queries_from(dataset: SeriesDataset, X: Any, at: Any = None, positions: Any = None) -> tuple[Queries, AnswerShape]:
    """Create queries for all channels of each series; return them, and how their answers are to be laid out.

    Args:
        dataset: the series.
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
    flat = is_flat(X)
    padded = flat or (isinstance(X, np.ndarray) and X.ndim == 3)
    if at is None and dataset.positions is not None and positions is None:
        points = [np.unique(np.column_stack([one.times, one.positions]), axis=0) for one in dataset]  # pyright: ignore
        at, positions = [rows[:, 0] for rows in points], [rows[:, 1:] for rows in points]
    elif at is None:
        at = np.arange(np.shape(X)[-1]) if padded else [np.unique(one.times) for one in dataset]
    per_series = _times_of_each(at, dataset)
    common = len({len(times) for times in per_series}) == 1
    where = _positions_of_each(positions, dataset, per_series)
    queries = Queries.cross(dataset, per_series, positions=where)
    return queries, AnswerShape(dataset.channel_names, common, padded, flat)


def _positions_of_each(positions: Any, dataset: SeriesDataset, times: list[np.ndarray]) -> list[np.ndarray] | None:
    """Return further positions [q_i, P] for the times [q_i] of every series; None for a data set without them.

    Args:
        positions: as in `queries_from`; None takes the only position of each series.

    Raises:
        InputError: as in `queries_from`; positions for a data set without them.
    """
    width = len(dataset.position_names)
    if positions is None:
        return _single_positions(dataset, times)
    if not width:
        raise InputError("positions are given, and the series have none besides their times; leave positions out.")
    several = isinstance(positions, list | tuple) and all(np.ndim(one) == 2 for one in positions)
    each = list(positions) if several or np.ndim(positions) == 3 else [positions] * len(dataset)
    if len(each) != len(dataset):
        raise InputError(f"positions are for {len(each)} series; there are {len(dataset)}. Give one array for each.")
    arrays = [np.asarray(one, np.float64) for one in each]
    arrays = [one[:, None] if one.ndim == 1 else one for one in arrays]
    for i, one in enumerate(arrays):
        if one.shape != (len(times[i]), width):
            raise InputError(
                f"positions of series {i} (counted from 0) have the shape {one.shape}; give [{len(times[i])}, "
                f"{width}]: one row per time, and the columns {listed(dataset.position_names)}."
            )
        if not np.isfinite(one).all():
            raise InputError(
                f"positions of series {i} (counted from 0) hold NaN or infinite numbers; fill or drop these rows."
            )
    return arrays


def shape_answers(answers: np.ndarray, queries: Queries, shape: AnswerShape) -> Any:
    """Lay out flat answers [n, V] as [S, q, V], with channels as [S, C, q, V].

    They are a list of arrays [q_i, V] or [C, q_i, V] where series have different numbers of times. For series given as
    an array they are [cases, channels, q] or [cases, q].

    Args:
        queries, shape: what `queries_from` returned.
    """
    channels, parts = 1 if shape.channels is None else len(shape.channels), []
    for part in np.split(answers, queries.offsets[1:-1]):
        part = part.reshape(channels, -1, part.shape[-1])
        if shape.padded:
            part = part[..., 0] if shape.channels is not None else part[0].T
            parts.append(part[0] if shape.flat else part)
        else:
            parts.append(part if shape.channels is not None else part[0])
    return np.stack(parts) if shape.common else parts


def _times_of_each(at: Any, dataset: SeriesDataset) -> list[np.ndarray]:
    """Return the query times of every series, float64 [q_i].

    Args:
        at: times [q] for all series, an array [S, q], or a list of one array for each series; dates as `_as_numbers`
            reads them.

    Raises:
        InputError: a table; times for another number of series, that are no flat array, or that are not finite.
    """
    if hasattr(at, "columns"):
        raise InputError(
            f"at is a table, with the columns {listed(list(at.columns), 10)}; give times: one array for all series, or "
            "a list with one array for each. A file of such a table is read by `rotarymae interpolate --at`."
        )
    if isinstance(at, list | tuple) and any(np.ndim(times) for times in at):
        each = [_as_numbers(times, dataset) for times in at]
    else:
        times = _as_numbers(at, dataset)
        each = [times] * len(dataset) if times.ndim < 2 else list(times)
    if len(each) != len(dataset):
        raise InputError(
            f"at has times for {len(each)} series; there are {len(dataset)}. Give one array for each series, or a "
            "single one for all."
        )
    for i, times in enumerate(each):
        if times.ndim != 1:
            raise InputError(f"at of series {i} (counted from 0) has the shape {times.shape}; give a flat array [q].")
        if not np.isfinite(times).all():
            raise InputError(f"at of series {i} (counted from 0) holds NaN or infinity; give finite times.")
    return each


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
    if at.zone == "" and np.isfinite(numbers).all():  # what is not is refused above
        numbers = dates.in_zone(numbers, dataset.time_zone)
    return numbers.reshape(array.shape)
