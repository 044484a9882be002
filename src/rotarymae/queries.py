"""Where to ask for values: times and channels of series (`Queries`), made of a grid, a list, or another table."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rotarymae.datasets import is_flat
from rotarymae.errors import InputError, InputWarning, did_you_mean, listed
from rotarymae.preprocess import ObservationPreprocessor
from rotarymae.series import SeriesDataset, Windows, as_text, cells, dates
from rotarymae.series.cells import plain
from rotarymae.series.reading import NO_ZONE
from rotarymae.series.tidy import Observations, unusable
from rotarymae.system import unmasked
from rotarymae.tables import Source, TableReader, TableSchema, open_source, stem

MAX_QUERIES = 10**8  # in one call: their answers take some 10 GB


class WindowBlend(NamedTuple):
    """Weights that join m predictions, made in overlapping windows of long series, into one for each of n queries.

    Attributes:
        query: int [m], number of the query that each prediction is for; each of 0 to n - 1 occurs.
        weight: float [m], weight of each prediction; those of a query add up to 1.
    """

    query: np.ndarray
    weight: np.ndarray

    def mixed(self, answers: np.ndarray) -> np.ndarray:
        """Return a prediction for each of n queries (times to predict at), [n, V, P]: a weighted mean over windows.

        Windows are the overlapping pieces in which a model reads long series.

        Args:
            answers: [m, V, P], P numbers for each of V values; answers[i] is a prediction for the query
                `self.query[i]`.
        """
        order = np.argsort(self.query, kind="stable")
        first = np.flatnonzero(np.diff(self.query[order], prepend=-1))
        return np.add.reduceat((self.weight[:, None, None] * answers)[order], first)


@dataclass(frozen=True)
class Queries:
    """The n times at which values of S series are to be predicted, each with a channel if the series have channels.

    Attributes:
        times: float64 [n], all queries of the first series, then those of the second, and so on.
        channels: int [n], numbers from 0 (which band or sensor); None for series without channels.
        offsets: int [S + 1]; the queries of series s are those from offsets[s] to offsets[s + 1], the latter excluded.
        errors: [n, V] standard errors of V values in the table's units: predict observations that have these errors,
            whose bands are wider. With None, a model that was trained with errors predicts the curve without noise.
        positions: [n, P] positions on P axes besides time, such as latitude and longitude; None for series without.
    """

    times: np.ndarray
    channels: np.ndarray | None
    offsets: np.ndarray
    errors: np.ndarray | None = None
    positions: np.ndarray | None = None

    @property
    def lengths(self) -> np.ndarray:
        """Number of queries (times to predict at) of each of S series, int [S]."""
        return np.diff(self.offsets)

    def distinct_times(self) -> tuple[Queries, np.ndarray]:
        """Return queries (times to predict at) without repeats: one per different time (and position) of each series.

        They are for models that predict all channels of a time at once.

        Returns:
            A pair (distinct, index). `distinct` has the queries, sorted by time (then position) in each series, without
            channels and errors. `index`, int [n], says which of them each of the n queries became:
            `distinct.times[index]` equals `self.times`.
        """
        series = np.repeat(np.arange(len(self.lengths)), self.lengths)
        columns = [] if self.positions is None else list(self.positions.T)
        keys, index = np.unique(np.stack([series, self.times, *columns], axis=1), axis=0, return_inverse=True)
        offsets = np.searchsorted(keys[:, 0], np.arange(len(self.offsets)))
        positions = None if self.positions is None else keys[:, 2:]
        return Queries(keys[:, 1], None, offsets, positions=positions), index.reshape(-1)

    def of_windows(self, windows: Windows) -> tuple[Queries, WindowBlend]:
        """Assign n queries (times to predict at) to windows, the overlapping pieces in which a model reads long series.

        A query belongs to the window in which it lies deepest, farthest from the nearer edge. Around the middle of the
        overlap of two windows it is given to both.

        Args:
            windows: the S series, cut into W windows.

        Returns:
            A pair. The first has m queries, at least n, for the W windows instead of the S series, window after window;
            they have no errors. The second turns predictions for these m queries into predictions for the n queries.
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
        """Create queries (times to predict at) at the times of each series in each channel, without standard errors.

        In a series with channels, first come all times in its first channel, then all in its second, and so on.

        Args:
            dataset: the S series.
            times: for each series its times [q_i].
            channels: for each series the numbers, from 0, of the channels to predict; None means all channels. Not read
                if the data set has no channels.
            positions: for each series an array [q_i, P], the positions of its times on the P axes besides time. None
                takes the only position at which a series was observed. Not read if the data set has no such axes.

        Raises:
            InputError: `positions` is None, and a series was observed at several (code "positions-needed").
        """
        if dataset.channel_names is None:
            counts, number = np.ones(len(times), np.int64), None
        else:
            channels = [np.arange(len(dataset.channel_names))] * len(times) if channels is None else channels
            counts = np.array([len(numbers) for numbers in channels])
            number = np.concatenate([np.repeat(numbers, len(at)) for numbers, at in zip(channels, times, strict=True)])
        offsets = np.cumsum([0, *(counts * [len(at) for at in times])])
        flat = [np.tile(np.asarray(at, np.float64), count) for at, count in zip(times, counts, strict=True)]
        at_positions = None
        if dataset.positions is not None:
            each = _single_positions(dataset, times) if positions is None else positions
            tiled = [np.tile(at, (int(count), 1)) for at, count in zip(each, counts, strict=True)]
            at_positions = np.concatenate(tiled)
        return cls(np.concatenate(flat), number, offsets, positions=at_positions)


def grid(dataset: SeriesDataset, points: int) -> Queries:
    """Create queries (times to predict at), evenly spaced from each series' first to its last observation.

    They are in all channels: in each series, first come all times in one channel, then all in the next, and so on.

    Args:
        dataset: the series.
        points: number of times of each series. If it is 1, the time is that of the first observation.

    Raises:
        InputError: less than one point; more queries than memory could hold; a series observed at several positions.
    """
    if points < 1:
        raise InputError(f"a grid of {points} points has no times; give at least 1 point.")
    _check_size(dataset, points)
    first, last = dataset.times[dataset.offsets[:-1]], dataset.times[dataset.offsets[1:] - 1]
    return Queries.cross(dataset, list(np.linspace(first, last, points, axis=1)))


def _single_positions(dataset: SeriesDataset, times: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return positions for the times to predict at, if each series was observed at one position only.

    A position is P numbers besides time and channel. The position of a series is repeated for each of its times: the
    result is an array [q_i, P] for each series, as long as its times [q_i]. Raises InputError ("positions-needed") for
    a series that was observed at several positions.
    """
    assert dataset.positions is not None
    first = dataset.positions[dataset.offsets[:-1]]
    moves = (dataset.positions != np.repeat(first, dataset.lengths, axis=0)).any(axis=1)
    if moves.any():
        series = int(np.searchsorted(dataset.offsets, int(moves.argmax()), side="right")) - 1
        raise InputError(
            f"series {plain(dataset.ids[series])!r} is observed at several positions, so each time to predict needs a "
            f"position as well. Give a table of times with the columns {listed(dataset.position_names)}.",
            code="positions-needed",
        )
    return [np.repeat(at[None], len(when), axis=0) for at, when in zip(first, times, strict=True)]


def curves(visible: SeriesDataset, hidden: SeriesDataset, points: int) -> Queries:
    """Create queries (times to predict at) to draw curves: evenly spaced, in the observed channels of each series.

    The times of a series reach from its first to its last observation, visible or hidden. If series have positions
    besides time, those of the queries are interpolated linearly between observations. In each series, first come all
    times in one channel, then all in the next, and so on.

    Args:
        visible: the observations that a model saw.
        hidden: the other observations of the same series, in the same order of series.
        points: number of times of each series.
    """
    times, channels, paths = [], [], []
    for seen, left in zip(visible, hidden, strict=True):
        both = np.concatenate([seen.times, left.times])
        times.append(np.linspace(both.min(), both.max(), points))
        if seen.channels is not None and left.channels is not None:
            channels.append(np.union1d(seen.channels, left.channels))
        if seen.positions is not None and left.positions is not None:
            order, places = np.argsort(both, kind="stable"), np.concatenate([seen.positions, left.positions])
            paths.append(np.stack([np.interp(times[-1], both[order], column[order]) for column in places.T], axis=1))
    return Queries.cross(visible, times, channels, paths)


def queries_at(dataset: SeriesDataset, times: Sequence[float | str] | np.ndarray) -> Queries:
    """Create queries (times to predict at), the same times in every series and all its channels.

    In each series, first come all times in one channel, then all in the next, and so on.

    Args:
        dataset: the series.
        times: numbers in the unit of the series' times; or texts, each a number, a date (for series with dates), or a
            span from the first observation of each series, such as "+4" or "+4h".

    Raises:
        InputError: another text, NaN or infinity; more queries than memory could hold; a series observed at several
            positions.
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
    """Raise InputError if predictions at `times` times in each channel of each series would be over 100 million."""
    channels = 1 if dataset.channel_names is None else len(dataset.channel_names)
    queries = times * len(dataset) * channels
    if queries > MAX_QUERIES:
        # Per query its series, time and channel, and per value a mean, a deviation and the edges of two bands, twice.
        size = queries * 8 * (3 + 2 * 6 * len(dataset.value_names)) / 1e9
        raise InputError(
            f"{times:,} times for {len(dataset):,} series in {channels:,} channels are {queries:,} points; predictions "
            f"would take {size:,.0f} GB of memory. Give times for at most {MAX_QUERIES:,} points in one call."
        )


@dataclass(frozen=True, eq=False)
class QueryTable:
    """A table of times at which a user wants values, one row per time, with the id of its series.

    Attributes:
        name: of the table, for messages.
        rows: its n rows as read: series, times, channels and positions. Their values are the standard errors of the
            observations to predict; they have no value columns where the curve is to be predicted.
        table: the table itself, [n] rows.
        columns: names of its columns of ids, of times, and of channels (None without).
        clock: name of its column of times of day, where the column of times has dates alone; else None.
    """

    name: str
    rows: Observations
    table: pa.Table
    columns: tuple[str, str, str | None]
    clock: str | None = None

    @property
    def ids(self) -> list[Any]:
        """Ids of the series in the table, each once, in order of first appearance."""
        return self.rows.ids.tolist()

    def laid_out(self, answers: pa.Table) -> pa.Table:
        """Return predictions laid out as this table of times: with its rows, column names and further columns.

        If this table has no column of channels, each of its rows is repeated for each channel. The columns are

        - ids, times and channels. A column of numbers or dates keeps its cells. A column of texts is replaced by that
          of `answers`, which has numbers where the texts are numbers, and dates with their zone. Only texts of dates
          whose times of day are in a column of their own (`clock`) keep their cells;
        - the predictions;
        - the further columns of this table: they keep their cells, but texts that are all numbers become numbers. A
          column with the name of a column of predictions is left out.

        Args:
            answers: a table with ids in its first column, then "time" and, if there are channels, "channel", then
                predictions. It has a row for each query that the method `queries` makes of this table, for all of its
                ids. The rows of a series are in the order of these queries; rows of different series may be mixed. A
                series that could not be predicted has a single row, with empty cells of predictions, which is repeated
                for all of its queries.
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
        """Read a table of queries (times at which to predict, with the ids of their series) from a file.

        Args:
            path: the file, in any format of tables.
            layout: how the table of observations is laid out; the method `of` says which of its columns are looked for.
            observed: the file of observations. If this is one series without an id column, the table of queries needs
                no ids; they are then the name of this file without its ending.

        Raises:
            InputError: a file that cannot be read, or a table that `of` refuses.
        """
        source = open_source(path).with_time(layout.time).with_id(layout.id)
        columns = source.read(source.columns)
        table = pa.table(columns)
        if layout.id not in columns and observed.is_file() and layout.id not in open_source(observed).columns:
            table = table.append_column(layout.id, pa.array([stem(observed)] * len(table)))
        return cls.of(table, layout, str(path))

    @classmethod
    def of(cls, table: pa.Table, layout: TableSchema, name: str = "the table of times") -> QueryTable:
        """Create from a table that holds the ids, times, channels and positions at which to predict.

        Args:
            table: one row per time. Columns that are not read here are kept, for the method `laid_out`.
            layout: how the table of observations is laid out. `table` must have its columns of ids and of positions
                besides time, and may have its column of times of day, by the same names. The columns of times and of
                channels may instead be called "time" and "channel". Without channels, each row asks for all channels.
                ISO dates are read whatever the layout's format of times. If `table` has all columns of standard errors,
                predictions are of observations with these errors, else of the curve without noise.
            name: of the table, for messages.

        Raises:
            InputError: no rows; a missing column or cell; a column whose name is nearly that of the channels; times
                that cannot be read; a time, position or error that is infinite or beyond 32 bits.
        """
        if not len(table):
            raise InputError(f"{name} has no rows; give one for each time to interpolate at.")
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
                raise InputError(
                    f"{name} has no column {column!r}; it needs {listed(needed)}, called as in the table of "
                    f"observations (--id, --time, ...).{near}"
                )
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
        """Convert the table to queries (times to predict at), in the order of the series of a data set.

        Rows of one series keep their order. Ids are compared as text. Rows for other series are left out, and a series
        without a row has no query. If the data set has channels and this table has none, each row becomes a query in
        every channel: the first row in all channels, then the second, and so on. If the data set has no channels, the
        channels of this table are not read. If the data set has dates, dates without a time zone are read in its zone,
        and numbers are days since 1970-01-01 UTC.

        Raises:
            InputError: a channel that the data set does not have; dates or durations, if the times of the data set are
                of another kind.
        """
        rows = self.rows
        _check_kind(self.name, rows.time_unit, rows.time_zone, dataset)
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
                    f"{self.name} asks for channel {strange!r}, which the model does not know; give channels "
                    f"that it knows: {', '.join(known)}."
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
        """Raise InputError if this table asks for a series whose id is not among `ids`; ids are compared as text."""
        there = set(map(as_text, ids))
        unknown = [name for name in self.ids if as_text(name) not in there]
        if unknown:
            raise InputError(
                f"{self.name} asks for series {unknown[0]!r}, which the table of observations does not have; correct "
                "this id, or leave its rows out."
            )


def as_queries(dataset: SeriesDataset, preprocessor: ObservationPreprocessor | None = None) -> Queries:
    """Create a query (a time to predict at) at every observation, in their order, to compare predictions with values.

    Args:
        dataset: the observations.
        preprocessor: if its model reads standard errors, the queries get these errors of the observations. With None,
            or if the model reads none, the queries have no errors.
    """
    errors = None
    if preprocessor is not None and preprocessor.errors:
        errors = np.asarray(dataset.with_values(preprocessor.errors).values)
    positions = None if dataset.positions is None else np.asarray(dataset.positions)
    return Queries(np.asarray(dataset.times), dataset.channels, np.asarray(dataset.offsets), errors, positions)


def _check_kind(name: str, unit: str | None, zone: str | None, dataset: SeriesDataset) -> None:
    """Raise InputError if times are dates or durations and those of a data set are of another kind; numbers always fit.

    Args:
        name: what holds the times, for the message.
        unit, zone: of the times, as in `dates.Times`: numbers have no unit, durations no zone.
        dataset: the series.
    """
    asked, theirs = (
        "numbers" if unit is None else "durations" if zone is None else "dates"
        for unit, zone in ((unit, zone), (dataset.time_unit, dataset.time_zone))
    )
    if asked not in ("numbers", theirs):
        raise InputError(f"{name} holds {asked}, but the times of the series are {theirs}; give {theirs}.")


def check_queries(queries: Queries, dataset: SeriesDataset) -> None:
    """Check that queries (times to predict at) fit the series of a data set.

    Raises:
        InputError: another number of series; no query at all (some of the series may have none); times or errors that
            are NaN or infinite; dates outside the years 1 to 9999; negative errors; other axes of positions than the
            series have (code "positions-needed"); channels for series without, no channels for series with channels;
            the number of a channel that does not exist.
    """
    series, channels = len(queries.offsets) - 1, queries.channels
    if series != len(dataset):
        raise InputError(
            f"queries are for {series} series, but the data set has {len(dataset)}; give queries for the same series."
        )
    if not len(queries.times):
        raise InputError("there are no times to interpolate at; give at least one.")
    good, advice = np.isfinite(queries.times), "finite times"
    if dataset.time_zone is not None:
        good &= (queries.times >= dates.FIRST_DAY) & (queries.times <= dates.LAST_DAY)
        advice = "days since 1970-01-01 of the years 1 to 9999"
    if not good.all():
        first = int(good.argmin())
        raise InputError(
            f"query {first} (counted from 0) has the time {queries.times[first]}, which is not finite or out of range; "
            f"give {advice}."
        )
    if queries.errors is not None and not ((queries.errors >= 0) & np.isfinite(queries.errors)).all():
        raise InputError(
            "queries have standard errors that are negative, NaN or infinite; give finite numbers of at least 0."
        )
    axes, names = len(dataset.position_names), dataset.channel_names
    given = 0 if queries.positions is None else queries.positions.shape[1]
    if given != axes:
        advice = f"with the positions {listed(dataset.position_names)}" if axes else "without positions"
        raise InputError(
            f"queries have positions on {given} axes besides time, and the series on {axes}; give queries {advice}.",
            code="positions-needed",
        )
    if (channels is None) != (names is None):
        if names is None:
            raise InputError("queries ask for channels, and the series have none; give queries without channels.")
        raise InputError("the series have channels, and the queries none; give the number of a channel for each query.")
    strange = np.zeros(0) if channels is None or names is None else channels[~np.isin(channels, np.arange(len(names)))]
    if len(strange):
        raise InputError(f"queries ask for channel {strange[0]}; give whole numbers from 0 to {len(names or ()) - 1}.")


# ── times in the forms in which Python users give them ──────────────────────────────────────────────────────────────


class AnswerShape(NamedTuple):
    """How predictions, which are computed as one flat array over all series, are laid out for the caller.

    Attributes:
        channels: number of channels; 0 for series without.
        axes: number of axes of the array in which the caller gave the series, whose layout the predictions get: 3 for
            [cases, channels, time], 2 for [cases, time]; 0 for series in another form.
    """

    channels: int
    axes: int


def queries_from(dataset: SeriesDataset, X: Any, at: Any = None, positions: Any = None) -> tuple[Queries, AnswerShape]:
    """Create queries (times to predict at) in all channels of each series, from times in any form that a user may give.

    Args:
        dataset: the series of `X`, already read.
        X: the series as the user gave them; predictions will be laid out in the same form.
        at: an array of q times, the same for all series; or a list with an array of q_i times for each series. For
            series with dates these may be dates, in the zone of the series unless they name one. None means the steps
            0, 1, ... if `X` is an array or rows of numbers, or else each series' different times (and positions).
        positions: positions on the P axes besides time: an array [q, P] (or [q] if P is 1), the same for all series; or
            a list with an array [q_i, P] for each. None if the series have no such axes or stay at one position, or if
            `at` is None.

    Returns:
        A pair: the queries, in each series all times in one channel, then all in the next; and the layout, with which
        `shape_answers` brings their predictions into the form of `X`.

    Raises:
        InputError: `at` is a table; times or positions for another number of series, masked, not finite, or of another
            shape; texts that are no times; dates or durations, if the times of the series are of another kind;
            positions for series without such axes, or none for series that are observed at several positions.

    Warns:
        InputWarning: times with a unit, such as "4h"; the unit is ignored.
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
        places = _for_each("positions", positions, dataset, 2, lambda part: np.asarray(unmasked(part), np.float64))
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
    """Return a list of one array per series, from a user's argument that is one array for all series or one for each.

    Args:
        name: of the argument, for messages.
        given: one array for all series, which is repeated; or one array per series. The latter is a list with at least
            one array of `most` axes, or a single array of more than `most` axes, the first of which counts the series.
            With most=1, [1, 2] is one array for all series, and [[1, 2], [3]] has one array per series.
        dataset: the series.
        most: largest number of axes of the array of one series; the smallest is 1.
        convert: called with an array in the user's form, such as dates; returns it as numbers.

    Raises:
        InputError: arrays for another number of series, with another number of axes, with NaN or with infinity; an
            argument that is no array.
    """
    try:
        if isinstance(given, list | tuple) and any(np.ndim(one) >= most for one in given):
            each = [convert(one) for one in given]
        else:
            whole = convert(given)
            each = list(whole) if whole.ndim > most else [whole] * len(dataset)
    except InputError:
        raise
    except (TypeError, ValueError, pa.ArrowException) as error:  # of numpy or pyarrow: ragged lists, complex numbers
        raise InputError(
            f"{name} is no array ({error}); give one array for all series, or a list with one array for each."
        ) from None
    if len(each) != len(dataset):
        raise InputError(
            f"{name} has arrays for {len(each)} series, but there are {len(dataset)}; give one array for each "
            "series, or one for all."
        )
    axes = "a flat array" if most == 1 else f"an array of 1 to {most} axes"
    for i, one in enumerate(each):
        if not 1 <= one.ndim <= most:
            raise InputError(f"{name} of series {i} (counted from 0) has the shape {one.shape}; give {axes}.")
        if not np.isfinite(one).all():
            raise InputError(
                f"{name} of series {i} (counted from 0) holds NaN, infinity or a missing date; correct these entries, "
                "or leave them out."
            )
    return each


def shape_answers(answers: np.ndarray, queries: Queries, shape: AnswerShape) -> Any:
    """Bring flat predictions of V values at n queries (times), [n, V], into the form in which the user gave the series.

    Args:
        answers: predictions, in the order of the queries.
        queries, shape: as `queries_from` returned them.

    Returns:
        An array, if all series have the same number q of times. Its shape depends on what the user gave:
        - for an array [cases, time] it is [cases, q];
        - for an array [cases, channels, time] it is [cases, channels, q]. Without channels in the queries, the V values
          take their place; with channels, only the first value is returned;
        - for anything else it is [S, q, V] for S series, or [S, C, q, V] if they have C channels.

        If numbers of times differ, it is a list with one such array per series, without the first axis.
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
    """Convert times that a user gave to float64 of the same shape; dates become days since 1970-01-01 UTC.

    Args:
        times: an array or list of numbers, dates, durations, or texts of these; masked entries become NaN.
        dataset: the series, in whose time zone dates without a zone are read.

    Raises:
        InputError: dates or durations, if the times of the series are of another kind; texts that are no times.

    Warns:
        InputWarning: an assumption was made, for example that the unit of "4h" can be ignored.
    """
    array = unmasked(times)
    if array.dtype.kind in "iufb":
        return array.astype(np.float64)
    if array.ndim > 1 or array.dtype.kind in "mM" or isinstance(times, str):
        times = array.ravel()  # pyarrow reads no list of numpy's dates, and of a text its letters
    at = dates.times(cells.to_arrow(times), "at")
    numbers = at.values
    _check_kind("at", at.unit, at.zone, dataset)
    if at.unit is None and at.note is not None:
        warnings.warn(f"{at.note}; they are taken in the unit of the series' times.", InputWarning, stacklevel=2)
    if at.zone == "" and np.isfinite(numbers).all():  # what is not is refused by the caller
        numbers = dates.in_zone(numbers, dataset.time_zone)
    return numbers.reshape(array.shape)
