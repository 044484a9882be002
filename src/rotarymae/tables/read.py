"""From a table to a data set: which columns are read, what becomes of their cells, and the whole or part after part."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from rotarymae.errors import InputError, InputWarning, NoObservations, listed
from rotarymae.series import cells, dates
from rotarymae.series.cells import is_list, to_arrow
from rotarymae.series.columns import channel_numbers, error_columns, static_column
from rotarymae.series.dataset import SeriesDataset
from rotarymae.series.mapped import map_parts, series_chunks
from rotarymae.series.reading import NO_ZONE, LeftOut, ReadingReport
from rotarymae.series.tidy import Observations, dataset_fields, melt
from rotarymae.tables.labels import with_static
from rotarymae.tables.schema import TableSchema, option
from rotarymae.tables.source import Source, open_source

PART = 1 << 18  # observations that are answered at a time
READ = 1 << 20  # observations that are read at a time from a table larger than memory


@dataclass(frozen=True, eq=False)
class Part:
    """Some series of a table, in the order in which they first appear there.

    Attributes
    ----------
    ids
        [S] in the table's type.
    observed
        bool [S], whether a series has observations.
    dataset
        The series that have; None if none has.
    why
        Why none has.
    """

    ids: pa.Array
    observed: np.ndarray
    dataset: SeriesDataset | None
    why: NoObservations | None = None


def read_table(
    source: Any,
    schema: TableSchema,
    *,
    channel_names: tuple[Any, ...] | None = None,
    value_names: tuple[str, ...] | None = None,
    others: Sequence[str] = (),
    memory: float | None = None,
) -> tuple[SeriesDataset, ReadingReport]:
    """Read a table of observations as a `SeriesDataset`; return it with the report on its rows.

    Parameters
    ----------
    source
        A file, a folder, a pattern, "-" for standard input, a data frame, or a `Source`.
    channel_names, value_names
        Those of a trained model, if any. A column "lc.flux" counts as "flux".
    others
        Columns with other roles, such as a label, which are not channels of a wide table.
    memory
        Bytes that reading may take; beyond, columns are sorted and mapped on disk. None means half of the free memory.

    Raises
    ------
    InputError
        Columns that are absent, duplicate or not numeric; a table without observations; see `TableSchema`.

    Warns
    -----
    InputWarning
        Once for each kind of row that is left out, and for whatever looks wrong.
    """
    reader = TableReader.open(source, schema, channel_names, value_names, others)
    try:
        dataset = reader.read(memory)
    except InputError as error:
        raise (error if reader.source.in_memory else error.within(reader.source.name)) from error
    assert dataset.reading is not None
    return dataset, dataset.reading


def read_arrays(columns: dict[str, pa.Array], schema: TableSchema, channel_names: Any = None) -> SeriesDataset:
    """Build a data set from arrays as columns; raise InputError where a series or a cell would be left out."""
    values, source = (*schema.values, *schema.errors), Source("the arrays", {}, {}, "")
    dataset = TableReader(source=source, schema=schema, values=values, channel_names=channel_names).build(columns)
    announce(every_series(dataset).reading)
    return dataset


def every_series(dataset: SeriesDataset) -> SeriesDataset:
    """Return the data set, or raise InputError if series were left out: labels in order would then be wrong."""
    if dataset.reading is not None and dataset.reading.empty:
        empty, count = dataset.reading.empty, dataset.reading.series
        raise InputError(f"{len(empty)} of {count} series have no observation left: {listed(empty)}. Leave them out.")
    return dataset


@dataclass(frozen=True, eq=False, kw_only=True)
class TableReader:
    """A table with the columns of it that are read.

    Attributes
    ----------
    schema
        With every column by name.
    values
        The columns of values, then those of errors.
    absent
        Channels of a wide table that it has no column of, and static columns that a model knows.
    channel_names, value_names
        Those of a model, or of a table that is read in parts.
    id_name
        What the ids are called in the data set.
    objects
        The objects' table, where it has static columns.
    integers
        Columns of labels of a text file in which every cell is written as an integer.
    """

    source: Source
    schema: TableSchema
    values: tuple[str, ...]
    absent: tuple[str, ...] = ()
    channel_names: tuple[Any, ...] | None = None
    value_names: tuple[str, ...] | None = None
    unknown_channels: str = "error"
    id_name: str = "id"
    objects: Source | None = None
    integers: frozenset[str] = frozenset()

    @classmethod
    def open(
        cls,
        source: Any,
        schema: TableSchema,
        channel_names: Sequence[Any] | None = None,
        value_names: tuple[str, ...] | None = None,
        others: Sequence[str] = (),
        id_name: str | None = None,
    ) -> TableReader:
        """Open a table and find the columns of a schema in it; arguments as in `read_table`."""
        for_model = channel_names is not None or value_names is not None
        table = open_source(source, schema.header_row, schema.numbered).with_time(schema.time)
        names = table.columns
        role_of = {name: role for role, name in schema.roles}
        for name in others:
            if role_of.get(name, "static") not in ("static", "flags", "clock", "positions"):
                raise InputError(
                    f"column {name!r} is the label, or what the series are split by, and is read as {role_of[name]}, "
                    "too: the model would see the answer. Leave it out there.",
                    code="label-is-input",
                )
        table.need([name for name in role_of if name in table.twice])
        alone = schema.id == "file" and "file" not in names
        if schema.id == "id" and "id" not in names:
            alone = _no_ids(table, {*role_of, *others})
        values = schema.values or tuple(name for name in names if name not in role_of and name not in others)
        forgiving = for_model and schema.unknown_channels == "drop"
        objects = None if schema.objects is None else open_source(schema.objects)
        elsewhere = [name for name in schema.static if objects and name not in names and name in objects.columns]
        absent = [name for name in values if schema.wide and forgiving and name not in names]
        if for_model and schema.untimed == "static":  # facts that no series of this table may have
            absent += [name for name in schema.static if name not in names and name not in elsewhere]
        role_of |= dict.fromkeys(values, "values")
        for name, role in role_of.items():
            if name not in names and name not in absent and name not in elsewhere and not (role == "id" and alone):
                what, advice = (f"{role} column", "") if table.in_memory else ("column", _advice(role, for_model))
                table.need([name], what, advice)
        unread = [name for name in names if name not in role_of and name not in others]
        notes = [f"columns not read: {listed(unread)}"] if unread and not table.in_memory else []
        if absent:
            text = f"{table.name} has no column {listed(absent)}; it is taken as never observed."
            warnings.warn(text, InputWarning, stacklevel=3)
        _warn_of_units(table, schema)
        table = table.with_ids_of_files() if alone else table
        every = (*values, *schema.errors)
        same = value_names is not None and _fields(every) == _fields(value_names)
        tokens = schema.tokens if schema.channel or schema.wide else "channel"
        return cls(
            source=replace(table, notes=(*table.notes, *notes)),
            schema=replace(schema, id="file" if alone else schema.id, tokens=tokens),
            values=every,
            absent=tuple(absent),
            channel_names=None if channel_names is None or schema.wide else tuple(channel_names),
            value_names=value_names if same else None,
            unknown_channels=schema.unknown_channels if forgiving or not for_model else "error",
            id_name=id_name or schema.id,
            objects=objects if elsewhere else None,
        )

    @property
    def id(self) -> str:
        return self.schema.id

    @cached_property
    def _of_objects(self) -> tuple[str, ...]:
        """The static columns that are read from the objects' table, because the table of observations lacks them."""
        return tuple(name for name in self.schema.static if self.objects and name not in self.source.columns)

    @cached_property
    def columns(self) -> list[str]:
        """Return the names of the columns that are read."""
        schema = self.schema
        names = [schema.id, schema.time, schema.clock, schema.channel, *schema.positions, *self.values]
        names += [*schema.static, *schema.flags]
        skipped = {None, *self.absent, *self._of_objects}
        return [name for name in dict.fromkeys(names) if name is not None and name not in skipped]

    # ── whole, and in parts ─────────────────────────────────────────────────────────────────────────────────────────

    def read(self, memory: float | None = None) -> SeriesDataset:
        """Read all series; a table larger than `memory` gets memory-mapped columns."""
        whole = not self.source.too_large(self.columns, memory)
        parts: list[SeriesDataset] = []
        reports: list[ReadingReport] = []
        reason = NoObservations("the table has no rows; there is nothing to learn from.")

        def columns() -> Iterator[Any]:
            """Yield the columns of each part of the table, and collect its ids, static columns and report."""
            nonlocal reason
            for _, dataset, error in self._pieces(READ, whole):
                if dataset is None:
                    reason = error or reason
                    reports.extend([] if reason.reading is None else [reason.reading])
                    continue
                assert dataset.reading is not None
                reports.append(dataset.reading)
                # Of each part only what is one per series is kept.
                parts.append(dataset if whole else replace(dataset, **_no_columns(dataset)))
                yield dataset.columns

        if whole:
            list(columns())
            if not parts:
                raise reason
            return self._announced(parts[0])
        folder = self.source.paths[0].parent if self.source.paths else None
        try:
            mapped = map_parts(columns(), folder if folder is not None and os.access(folder, os.W_OK) else None)
        except OSError as error:
            raise InputError(
                f"{self.source.name} is larger than memory; its sorted columns cannot be written to {folder} "
                f"({error}). Make room there.",
                code="no-room",
            ) from error
        if not parts:
            raise reason
        report = _joined(reports)
        report.refuse_costly(len(self.values))
        lengths = np.concatenate([part.lengths for part in parts])
        dataset = replace(
            parts[0],
            **mapped._asdict(),
            offsets=np.concatenate([[0], np.cumsum(lengths)]),
            ids=np.concatenate([part.ids for part in parts]),
            static={name: np.concatenate([part.static[name] for part in parts]) for name in parts[0].static},
            reading=report,
        )
        return self._announced(dataset)

    def parts(self) -> Iterator[Part]:
        """Yield the table in parts of whole series, in the order of first appearance.

        Raises
        ------
        InputError
            As `read`; but a part without observations is no error.

        Warns
        -----
        InputWarning
            As `read`, once for the whole table.
        """
        whole = self.source.in_memory or self.source.observations(self.columns) <= PART
        reports, observed_any = [], False
        for ids, dataset, error in self._pieces(PART, whole):
            if dataset is None:
                reports += [error.reading] if error is not None and error.reading is not None else []
                if len(ids):
                    yield Part(ids, np.zeros(len(ids), bool), None, error)
                continue
            reports.append(dataset.reading)
            observed_any = True
            # Series without observations are not in the data set.
            observed = np.ones(len(ids), bool)
            if len(ids) != len(dataset):
                there = set(dataset.ids.tolist())
                observed = np.array([id in there for id in cells.label_values(cells.labels(ids, self.id)).tolist()])
            place, start = np.flatnonzero(observed), 0
            for chunk in series_chunks(dataset.offsets, PART):
                stop = len(ids) if chunk.stop == len(dataset) else int(place[chunk.stop - 1]) + 1
                one = dataset if chunk == slice(0, len(dataset)) else dataset.select(np.arange(chunk.start, chunk.stop))
                yield Part(ids[start:stop], observed[start:stop], one)
                start = stop
        if observed_any:
            report = self._with_notes(_joined(reports))
            if not whole:
                report.refuse_costly(len(self.values))
            announce(report)

    def _pieces(self, size: int, whole: bool) -> Iterator[tuple[pa.Array, SeriesDataset | None, NoObservations | None]]:
        """Yield ids and data set of consecutive series; without observations the data set is None, with the reason."""
        columns = self.source.read(self.columns) if whole else None
        reader = self._settled(columns)
        pieces: Any = self.source.series(self.columns, self.id, size) if columns is None else [columns]
        for columns in pieces:
            ids = cells.trimmed(columns[self.id].unique())
            ids = (ids if self.id not in reader.integers else reader.labels(ids, self.id)).unique()
            ids = ids.filter(cells.labels(ids, self.id).is_valid())
            try:
                yield ids, reader.build(columns, part=not whole), None
            except NoObservations as error:
                yield ids, None, error

    def _settled(self, columns: dict[str, pa.Array] | None) -> TableReader:
        """Return a reader that treats labels alike in all parts of the table.

        Ids and channels of a text file are texts unless all of them are integers; parts get the channels of the whole
        table.

        Args:
            columns: the id and channel columns of the whole table; None reads them.
        """
        source, schema, integers, channels = self.source, self.schema, set(), self.channel_names
        for name in (schema.id, schema.channel):
            if name not in source.kinds or not (source.is_text or (columns is None and name == schema.channel)):
                continue
            assert name is not None
            labels = cells.labels(source.distinct(name) if columns is None else columns[name].unique(), name)
            if source.is_text and cells.are_integers(labels) and labels.null_count < len(labels):
                integers.add(name)
                labels = labels.cast(pa.int64())
            if name == schema.channel and columns is None and channels is None:
                channels = tuple(sorted(set(cells.label_values(labels.drop_null()).tolist())))
        return replace(self, integers=frozenset(integers), channel_names=channels)

    def labels(self, column: pa.Array, name: str) -> pa.Array:
        """Return ids, or channels, with nulls where they are missing."""
        labels = cells.labels(column, name)
        return labels.cast(pa.int64()) if name in self.integers and cells.is_text(labels.type) else labels

    def _announced(self, dataset: SeriesDataset) -> SeriesDataset:
        """Return the data set with the notes on its file; warn once of what was left out."""
        assert dataset.reading is not None
        report = self._with_notes(dataset.reading)
        announce(report)
        return replace(dataset, reading=report)

    def _with_notes(self, report: ReadingReport) -> ReadingReport:
        """Add to a report the source's broken lines, notes and units. With `strict`, raise for unusable cells."""
        count, first = self.source.rejected()
        if count:
            cut = LeftOut("line", "has another number of cells", count, first)
            report = replace(report, total=report.total + count, left_out=(*report.left_out, cut))
            if self.schema.strict:
                report.refuse_any()
        units = {name: unit for name, unit in self.source.units.items() if name in self.columns}
        return replace(report, notes=(*self.source.notes, *report.notes), units=units)

    # ── building ────────────────────────────────────────────────────────────────────────────────────────────────────

    def build(self, columns: dict[str, pa.Array], part: bool = False) -> SeriesDataset:
        """Build a data set from columns of the table, or of a part with whole series."""
        schema = self.schema
        if not len(columns[schema.id]):
            count, first = self.source.rejected()
            if count:
                raise InputError(f"no line has as many cells as the header: {first}.", code="unequal-lines")
            raise NoObservations(f"the table has no rows (columns: {listed(columns)}); there is nothing to learn from.")
        rows, static = self._observations(columns)
        if schema.wide and schema.tokens == "channel":
            rows = melt(rows)
        fields, there = dataset_fields(rows, schema, part)
        dataset = SeriesDataset(
            **fields, static={name: column[there] for name, column in static.items()}, id_name=self.id_name
        )
        if self.objects is not None:
            dataset = with_static(dataset, self.objects, schema.id, self._of_objects, schema.na)
        return replace(dataset, value_names=self.value_names or dataset.value_names)

    def _observations(self, columns: dict[str, pa.Array]) -> tuple[Observations, dict[str, np.ndarray]]:
        """Convert columns to observations in any order, and static columns to one value per series."""
        schema = self.schema
        cautions: list[str] = []
        notes: list[str] = []
        words: dict[str, dict[str, int]] = {}
        series, ids = cells.encode(columns[schema.id], lambda column: self.labels(column, schema.id))
        static = {}
        for name in schema.static:
            if name not in self._of_objects:
                column = columns.get(name, pa.nulls(len(series)))
                static[name], caution = static_column(column, name, series, ids, schema.na, parse=self.source.is_text)
                cautions += [caution] if caution else []
        per_row, row_of = explode({name: column for name, column in columns.items() if name not in schema.static})
        series = series if row_of is None else series[row_of]

        def numbers(name: str, limits: bool = False) -> np.ndarray:
            """Read a column as numbers; NaN for an absent one. Words and notes are collected for the report."""
            if name in self.absent:
                return np.full(len(series), np.nan)
            read = cells.numbers(per_row[name], name, schema.na, limits)
            words.update({name: read.words} if read.words else {})
            notes.extend([read.note] if read.note else [])
            return read.values

        values = np.stack([numbers(name, schema.limits == "number") for name in self.values], axis=1)
        positions = [numbers(name) for name in schema.positions]
        when = dates.times(per_row[schema.time], schema.time, schema.time_format, schema.na)
        if schema.clock is not None:
            when = dates.with_clock(when, per_row[schema.clock], schema.time)
        words |= {schema.time: when.words} if when.words else {}
        notes += [when.note] if when.note else []
        keep, flagged = np.ones(len(series), bool), {}
        for name in schema.flags:
            marked = np.nan_to_num(numbers(name)) != 0
            flagged[name] = int((marked & keep).sum())
            keep &= ~marked
        bare, untimed = np.isnan(values).all(1), np.isnan(when.values)
        # Lists may be filled up to one length: an entry without a time and values is none.
        blank = bare & keep & untimed & (row_of is not None)
        keep &= ~blank
        missing = int(blank.sum())
        which, known, unknown = None, None, {}
        facts: dict[str, np.ndarray] = {}
        if schema.channel is not None:
            channel = schema.channel
            codes, names = cells.encode(per_row[channel], lambda column: self.labels(column, channel))
            if schema.untimed == "static":
                untimed &= keep & (series >= 0)
                facts = _facts(untimed, series, len(ids), codes, names, values)  # a model need not know them
            if facts:
                notes.append(f"{untimed.sum():,} rows without a time are static: {listed(facts)}")
                keep &= ~untimed
                codes = np.where(untimed, -1, codes)
            which, known, unknown = channel_numbers(
                codes,
                names,
                self.channel_names,
                f"column {channel!r}",
                self.unknown_channels,
                lambda row: f"series {listed([ids[series[row]]])}" if series[row] >= 0 else f"row {row}",
            )
            keep &= which != -2
            if self.channel_names is None:
                which, known = _observed_channels(which, known, keep & ~np.isnan(when.values) & ~bare)
        report = ReadingReport(
            total=len(series) - (int(untimed.sum()) if facts else 0),
            missing=missing,
            missing_by_column=dict.fromkeys(self.values, missing) if missing else {},
            words=words,
            unknown={name: count for name, count in unknown.items() if count},
            flagged={name: count for name, count in flagged.items() if count},
            lists=0 if row_of is None else len(columns[schema.id]),
            cautions=tuple(cautions),
            notes=(*notes, *((NO_ZONE,) if when.zone == "" else ())),
        )
        kind, step = per_row[schema.time].type, 0.0
        if pa.types.is_float32(kind):
            largest = np.nanmax(np.abs(when.values[np.isfinite(when.values)]), initial=0)
            step = float(np.spacing(np.float32(largest)))
        pairs = {**dict(error_columns(self.values)), **schema.error_of}
        rows = Observations(
            series=series,
            ids=ids,
            times=when.values,
            channels=which,
            channel_names=known,
            values=values,
            value_names=self.values,
            time_unit=when.unit,
            report=report,
            time_zone=None if when.zone is None else when.zone or "UTC",
            positions=np.stack(positions, axis=1) if positions else None,
            position_names=schema.positions,
            roles={"id": schema.id, "time": schema.time, "channel": schema.channel or "channel"},
            errors={name: error for name, error in pairs.items() if name in self.values and error in self.values},
            time_step=step,
        )
        return self._within(rows if keep.all() else rows.keep(keep)), static | facts

    def _within(self, rows: Observations) -> Observations:
        """Leave out and count rows before `since` and after `until`."""
        since, until, time = self.schema.since, self.schema.until, self.schema.time
        reasons = []
        if since is not None:
            reasons.append((time, f"is before {since}", rows.times < dates.parse_time(since, rows.time_zone)))
        if until is not None:
            reasons.append((time, f"is after {until}", rows.times > dates.parse_time(until, rows.time_zone)))
        return rows.leave_out(reasons)


def _observed_channels(which: np.ndarray, known: tuple[Any, ...], usable: np.ndarray) -> tuple[np.ndarray, tuple]:
    """Leave out channels without any usable row, unless no channel has one.

    Returns:
        The channel number of each row, and the names of the remaining channels.
    """
    there = np.bincount(which[usable & (which >= 0)], minlength=len(known)) > 0
    if there.all() or not there.any():
        return which, known
    number = np.where(there, np.cumsum(there) - 1, 0)
    names = tuple(name for name, used in zip(known, there, strict=True) if used)
    return np.append(number, [-2, -1])[which].astype(np.int32), names


def _joined(reports: list[ReadingReport]) -> ReadingReport:
    """Add up the reports on the parts of a table. Raises InputError where dates with and without zone are mixed."""
    if len({NO_ZONE in report.notes for report in reports}) > 1:
        raise InputError(
            "some of the times are dates with a zone or an offset, and some without; give all in one way.",
            code="mixed-zones",
        )
    return sum(reports[1:], reports[0])


def announce(report: ReadingReport | None) -> None:
    """Warn of losses and changes in reading that a user would not expect."""
    for loss in [] if report is None else report.losses():
        warnings.warn(loss, InputWarning, stacklevel=5)


def explode(columns: dict[str, pa.Array]) -> tuple[dict[str, pa.Array], np.ndarray | None]:
    """Turn columns of lists into one row per entry; other columns are left as they are.

    Returns
    -------
    tuple
        The columns, and the original row [n] of each entry; None if there are no lists.

    Raises
    ------
    InputError
        Lists in one row that differ in length.
    """
    lists = [name for name, column in columns.items() if is_list(column.type)]
    if not lists:
        return columns, None
    lengths = {name: cells.list_lengths(columns[name]) for name in lists}
    for name in lists[1:]:
        differs = np.flatnonzero(lengths[name] != lengths[lists[0]])
        if len(differs):
            row = differs[0]
            raise InputError(
                f"row {row} has {lengths[lists[0]][row]} entries in column {lists[0]!r} but {lengths[name][row]} in "
                f"{name!r}; the lists of a row must be equally long ({len(differs)} rows are not).",
                code="unequal-lists",
            )
    rows = np.repeat(np.arange(len(lengths[lists[0]])), lengths[lists[0]])
    at = pa.array(rows)
    return {
        name: to_arrow(column.flatten()) if name in lists else column.take(at) for name, column in columns.items()
    }, rows


def _facts(
    untimed: np.ndarray, series: np.ndarray, count: int, codes: np.ndarray, names: np.ndarray, values: np.ndarray
) -> dict[str, np.ndarray]:
    """Turn rows without a time into static columns: each channel's first value; 1 and 0 for channels without any."""
    columns = {}
    for c in np.unique(codes[untimed & (codes >= 0)]):
        rows = np.flatnonzero(untimed & (codes == c))
        rows = rows[np.unique(series[rows], return_index=True)[1]]
        valued = not np.isnan(values[rows, 0]).all()
        column = np.full(count, np.nan) if valued else np.zeros(count)
        column[series[rows]] = values[rows, 0] if valued else 1.0
        columns[str(names[c])] = column
    return columns


def _no_columns(part: SeriesDataset) -> dict[str, Any]:
    """Return columns for as many observations as `part` has that take no memory, as placeholders."""
    return {
        name: None if column is None else np.broadcast_to(np.zeros((), column.dtype), column.shape)
        for name, column in part.columns._asdict().items()
    }


def _no_ids(table: Source, roles: set[str]) -> bool:
    """Return whether a table lacks an id column and is therefore one series, or one series per file.

    Raises
    ------
    InputError
        Another column looks like an id ("unknown-column").
    """
    from rotarymae.tables.guess import looks_like_id

    likely = [name for name in table.columns if name not in roles and looks_like_id(name)]
    if likely:
        raise InputError(
            f"{table.name} has no column 'id'; is it {listed(likely[:1])}? Name it by --id; --id file makes "
            f"{'the table' if len(table.paths) <= 1 else 'each file'} one series. Its columns are "
            f"{listed(table.columns, 20)}.",
            code="unknown-column",
        )
    return True


def _warn_of_units(table: Source, schema: TableSchema) -> None:
    """Warn of columns whose unit differs from training's; with the factor, if astropy knows it."""
    for name, trained in schema.units.items():
        unit = table.units.get(name, trained)
        if unit == trained:
            continue
        factor = None
        with suppress(Exception):  # no astropy, or a unit that it does not know
            units = importlib.import_module("astropy.units")
            factor = units.Unit(unit).to(units.Unit(trained))
        if factor == 1:
            continue
        said = "" if factor is None else f": multiply by {factor:.6g}"
        text = f"column {name!r} is in {unit}, and the model was trained on {trained}; convert it{said}."
        warnings.warn(text, InputWarning, stacklevel=4)


def _advice(role: str, for_model: bool) -> str:
    """Return what a user should type where the column for a role is absent."""
    if role in ("static", "errors") and for_model:
        return f", which the model reads ({option(role)} in training)"
    more = {"flags": ", or add one of zeros, if nothing is flagged", "id": ", or give --id file for one series a file"}
    return f"; name the right one by {option(role)}{more.get(role, '')}"


def _fields(names: Sequence[str]) -> list[str]:
    """Return field names without their column: "flux" for "lc.flux"."""
    return [name.rsplit(".", 1)[-1] for name in names]
