"""From a table to a data set: which columns are read, what becomes of their cells, and the whole or part after part."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rotarymae.errors import InputError, InputWarning, NoObservations, listed
from rotarymae.series import cells, dates
from rotarymae.series.cells import is_list, to_arrow
from rotarymae.series.columns import encode_channels, error_columns, static_column
from rotarymae.series.dataset import SeriesDataset
from rotarymae.series.mapped import map_parts, series_chunks
from rotarymae.series.reading import NO_ZONE, LeftOut, ReadingReport
from rotarymae.series.tidy import Observations, melt
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
    """Read a table of observations.

    Parameters
    ----------
    source
        A file, a folder, a pattern, "-" for standard input, a data frame, or what `open_source` made of them.
    channel_names, value_names
        Those of a model, if there is one. A column "lc.flux" is its "flux".
    others
        Columns that have another role, such as a label, and are no channels.
    memory
        Bytes that reading may take before the columns are sorted and mapped on disk; half of what is free, if None.

    Raises
    ------
    InputError
        Columns that are not there, twice or not numeric; a table without an observation; see `TableSchema`.

    Warns
    -----
    InputWarning
        Once for the whole table, of each kind of row that is left out, and of what looks wrong.
    """
    reader = TableReader.open(source, schema, channel_names, value_names, others)
    try:
        dataset = reader.read(memory)
    except InputError as error:
        raise (error if reader.source.in_memory else error.within(reader.source.name)) from error
    assert dataset.reading is not None
    return dataset, dataset.reading


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
    id_name
        What the ids are called in the data set.
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
        """Find the columns of a schema in a table; arguments as `read_table`."""
        table, for_model = open_source(source, schema.header_row), channel_names is not None or value_names is not None
        names = table.columns
        roles = {name for _, name in schema.roles if name not in schema.values} | set(others)
        if others and set(others) & {schema.id, schema.time, schema.channel, *schema.values, *schema.errors}:
            both = [
                name
                for name in others
                if name in (schema.id, schema.time, schema.channel, *schema.values, *schema.errors)
            ]
            raise InputError(
                f"column {both[0]!r} is the label, or what the series are split by, and is read as "
                f"{_role(schema, both[0])}, too: the model would see the answer. Leave it out there.",
                code="label-is-input",
            )
        table.need([name for _, name in schema.roles if name in table.twice])
        alone = schema.id == "file" and "file" not in names
        if schema.id == "id" and "id" not in names:
            alone = _no_ids(table, schema, {*roles, *schema.values})
        values = schema.values or tuple(name for name in names if name not in roles)
        forgiving = for_model and schema.unknown_channels == "drop"
        absent = [name for name in values if schema.wide and forgiving and name not in table.kinds]
        objects = None if schema.objects is None else open_source(schema.objects)
        elsewhere = [name for name in schema.static if objects and name not in names and name in objects.columns]
        if for_model and schema.untimed == "static":  # facts that no series of this table may have
            absent += [name for name in schema.static if name not in names and name not in elsewhere]
        for role, name in [*schema.roles, *(("values", name) for name in values)]:
            if name not in names and name not in absent and name not in elsewhere and not (role == "id" and alone):
                what, advice = (f"{role} column", "") if table.in_memory else ("column", _advice(role, for_model))
                table.need([name], what, advice)
        wanted = {schema.id, *(name for _, name in schema.roles), *values}
        unread = [name for name in names if name not in wanted and name not in others]
        notes = [f"columns not read: {listed(unread)}"] if unread and not table.in_memory else []
        if absent:
            text = f"{table.name} has no column {listed(absent)}; it is taken as never observed."
            warnings.warn(text, InputWarning, stacklevel=3)
        table = table.with_ids_of_files() if alone else table
        every = (*values, *schema.errors)
        same = value_names is not None and _fields(every) == _fields(value_names)
        return cls(
            source=replace(table, notes=(*table.notes, *notes)),
            schema=replace(
                schema,
                id="file" if alone else schema.id,
                tokens=schema.tokens if schema.channel or schema.wide else "channel",
            ),
            values=every,
            absent=tuple(absent),
            channel_names=None if channel_names is None or schema.wide else tuple(channel_names),
            value_names=value_names if same else None,
            unknown_channels=schema.unknown_channels if forgiving or not for_model else "error",
            id_name=id_name or schema.id,
            objects=objects if elsewhere else None,
        )

    @cached_property
    def _of_objects(self) -> tuple[str, ...]:
        """The static columns that the objects' table has, and not the table of observations."""
        return tuple(name for name in self.schema.static if self.objects and name not in self.source.columns)

    @property
    def id(self) -> str:
        return self.schema.id

    @cached_property
    def columns(self) -> list[str]:
        """Those that are read."""
        schema = self.schema
        names = [schema.id, schema.time, schema.clock, schema.channel, *schema.positions, *self.values]
        names += [*schema.static, *schema.flags]
        skipped = {None, *self.absent, *self._of_objects}
        return [name for name in dict.fromkeys(names) if name is not None and name not in skipped]

    # ── whole ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def read(self, memory: float | None = None) -> SeriesDataset:
        """Return all series; of a table larger than `memory`, with memory-mapped columns."""
        if not self.source.too_large(self.columns, memory):
            read = self.source.read(self.columns)
            dataset = self.build(read, Labels.of(self, read))
            return self._announced(dataset)
        parts: list[SeriesDataset] = []
        reports: list[ReadingReport] = []
        reason = NoObservations("the table has no rows; there is nothing to learn from.")
        labels = Labels.of(self, None)

        def columns() -> Iterator[Any]:
            nonlocal reason
            for columns in self.source.series(self.columns, self.id, READ):
                try:
                    part = self.build(columns, labels, part=True)
                except NoObservations as error:
                    reason = error
                    reports.append(error.reading)
                    continue
                assert part.reading is not None
                reports.append(part.reading)
                # Of each part only what is one per series is kept.
                parts.append(replace(part, **_no_columns(part)))
                yield part.columns

        folder = self.source.paths[0].parent if self.source.paths else None
        try:
            mapped = map_parts(columns(), folder if folder is not None and _writable(folder) else None)
        except OSError as error:
            raise InputError(
                f"{self.source.name} is larger than memory; its sorted columns cannot be written to {folder} "
                f"({error}). Make room there.",
                code="no-room",
            ) from error
        if not parts:
            raise reason
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        report = _joined(reports)
        dataset = replace(
            parts[0],
            **mapped._asdict(),
            offsets=np.concatenate([[0], np.cumsum(lengths)]),
            ids=np.concatenate([part.ids for part in parts]),
            static={name: np.concatenate([part.static[name] for part in parts]) for name in parts[0].static},
            reading=report,
        )
        report.refuse_costly(len(self.values))
        return self._announced(dataset)

    def _announced(self, dataset: SeriesDataset) -> SeriesDataset:
        """Return the data set with what is to say of the file, and warn once of what was left out."""
        assert dataset.reading is not None
        report = self._with_notes(dataset.reading)
        announce(report)
        return replace(dataset, reading=report)

    def _with_notes(self, report: ReadingReport) -> ReadingReport:
        count, first = self.source.rejected()
        if count:
            cut = LeftOut("line", "has another number of cells", count, first)
            report = replace(report, total=report.total + count, left_out=(*report.left_out, cut))
            if self.schema.strict:
                report.refuse_any()
        return replace(report, notes=(*self.source.notes, *report.notes))

    # ── in parts ────────────────────────────────────────────────────────────────────────────────────────────────────

    def parts(self) -> Iterator[Part]:
        """Yield all series in parts of whole series, as they first appear in the table.

        Raises
        ------
        InputError
            As `read`; but a part in which nothing was observed is no error.

        Warns
        -----
        InputWarning
            As `read`, once for the whole table.
        """
        whole = self.source.in_memory or self.source.observations(self.columns) <= PART
        columns = self.source.read(self.columns) if whole else None
        labels, reports, observed_any = Labels.of(self, columns), [], False
        if columns is not None:
            pieces: Any = [columns] if len(columns[self.id]) else []
        else:
            pieces = self.source.series(self.columns, self.id, PART)
        for columns in pieces:
            codes, known = cells.encode(labels.ids(columns[self.id], self.id))
            rows = np.unique(codes, return_index=True)[1][int((codes < 0).any()) :]
            ids = cells.trimmed(columns[self.id]).take(pa.array(rows))
            ids = ids.cast(pa.int64()) if self.id in labels.integers else ids
            dataset, why = None, None
            try:
                dataset = self.build(columns, labels, part=not whole)
                assert dataset.reading is not None
                reports.append(dataset.reading)
                observed_any = True
            except NoObservations as error:
                why = error
                reports += [error.reading] if error.reading is not None else []
            if dataset is None:
                yield Part(ids, np.zeros(len(ids), bool), None, why)
                continue
            observed = _observed(known, dataset)
            place, start = np.flatnonzero(observed), 0
            for chunk in (np.arange(part.start, part.stop) for part in series_chunks(dataset.offsets, PART)):
                stop = len(ids) if chunk[-1] == len(dataset) - 1 else int(place[chunk[-1]]) + 1
                own = dataset if len(chunk) == len(dataset) else dataset.select(chunk)
                yield Part(ids[start:stop], observed[start:stop], own)
                start = stop
        if reports and observed_any:
            report = self._with_notes(_joined(reports))
            if not whole:
                report.refuse_costly(len(self.values))
            announce(report)

    # ── building ────────────────────────────────────────────────────────────────────────────────────────────────────

    def build(self, columns: dict[str, pa.Array], labels: Labels, part: bool = False) -> SeriesDataset:
        """Return the data set of columns of the table, or of a part of it with whole series."""
        schema = self.schema
        if not len(columns[schema.id]):
            count, first = self.source.rejected()
            if count:
                raise InputError(f"no line has as many cells as the header: {first}.", code="unequal-lines")
            raise NoObservations(f"the table has no rows (columns: {listed(columns)}); there is nothing to learn from.")
        rows, static = self.observations(columns, labels)
        if schema.wide and schema.tokens == "channel":
            rows = melt(rows)
        dataset = SeriesDataset.of_rows(
            (rows, static),
            schema.tokens,
            schema.missing,
            schema.duplicates,
            id_name=self.id_name,
            part=part,
            strict=schema.strict,
        )
        if self.objects is not None:
            dataset = with_static(dataset, self.objects, schema.id, self._of_objects, schema.na)
        return replace(dataset, value_names=self.value_names or dataset.value_names)

    def observations(self, columns: dict[str, pa.Array], labels: Labels) -> tuple[Observations, dict[str, np.ndarray]]:
        """Return the rows of some columns, in any order, and one value per series of every static column."""
        schema = self.schema
        cautions: list[str] = []
        notes: list[str] = []
        series, ids = cells.encode(labels.ids(columns[schema.id], schema.id))
        static = {}
        for name in schema.static:
            if name in self._of_objects:
                continue
            column = columns.get(name, pa.nulls(len(series)))
            static[name], caution = static_column(column, name, series, ids, schema.na, parse=self.source.is_text)
            cautions += [caution] if caution else []
        per_row = {name: column for name, column in columns.items() if name not in schema.static}
        per_row, row_of = explode(per_row)
        series = series if row_of is None else series[row_of]
        total = len(series)
        words: dict[str, dict[str, int]] = {}
        numbers = []
        for name in self.values:
            if name in self.absent:
                numbers.append(np.full(total, np.nan))
                continue
            read = cells.numbers(per_row[name], name, schema.na, schema.limits == "number")
            words |= {name: read.words} if read.words else {}
            notes += [read.note] if read.note else []
            numbers.append(read.values)
        values = np.stack(numbers, axis=1)
        when = self._times(per_row)
        words |= {schema.time: when.words} if when.words else {}
        notes += [when.note] if when.note else []
        keep, flagged = np.ones(total, bool), {}
        for name in schema.flags:
            marked = np.nan_to_num(cells.numbers(per_row[name], name, schema.na).values) != 0
            flagged[name] = int((marked & keep).sum())
            keep &= ~marked
        missing = 0
        if row_of is not None:  # lists may be filled up to one length: an entry without a time and values is none
            blank = np.isnan(values).all(1) & keep & np.isnan(when.values)
            missing = int(blank.sum())
            keep &= ~blank
        positions = [cells.numbers(per_row[name], name, schema.na).values for name in schema.positions]
        which, known, unknown = None, None, {}
        named = None if schema.channel is None else labels.channels(per_row[schema.channel], schema.channel)
        if schema.untimed == "static":
            untimed = np.isnan(when.values) & keep & (series >= 0)
            # A fact's channel need be none that a model knows.
            facts = _facts(untimed, series, len(ids), *cells.encode(named), values) if named is not None else {}
            if facts:
                static |= facts
                notes.append(f"{untimed.sum():,} rows without a time are static: {listed(facts)}")
                keep &= ~untimed
                total -= int(untimed.sum())
                named = pc.if_else(pa.array(untimed), pa.scalar(None, named.type), named)  # pyright: ignore
        if named is not None:
            which, known, unknown = encode_channels(
                named,
                self.channel_names if self.channel_names is not None else labels.channel_names,
                f"column {schema.channel!r}",
                self.unknown_channels,
                lambda row: f"series {listed([ids[series[row]]])}" if series[row] >= 0 else f"row {row}",
            )
            keep &= which != -2
            unknown = {name: count for name, count in unknown.items() if count}
        if which is not None and known is not None and self.channel_names is None and labels.channel_names is None:
            usable = keep & ~np.isnan(when.values) & ~np.isnan(values).all(1) & (which >= 0)
            there = np.bincount(which[usable], minlength=len(known)) > 0
            if there.any():  # channels of which no row can be used are none
                number = np.where(there, np.cumsum(there) - 1, 0)
                which = np.append(number, [-2, -1])[which].astype(np.int32) if not there.all() else which
                known = tuple(name for name, used in zip(known, there, strict=True) if used)
        report = ReadingReport(
            total=total,
            missing=missing,
            missing_by_column=dict.fromkeys(self.values, missing) if missing else {},
            words=words,
            unknown=unknown,
            flagged={name: count for name, count in flagged.items() if count},
            lists=0 if row_of is None else len(columns[schema.id]),
            cautions=tuple(cautions),
            notes=(*notes, *((NO_ZONE,) if when.zone == "" else ())),
        )
        kind = per_row[schema.time].type
        step = 0.0
        if pa.types.is_float32(kind) or pa.types.is_float16(kind):
            largest = np.nanmax(np.abs(when.values[np.isfinite(when.values)]), initial=0)
            step = float(np.spacing(np.asarray(largest, kind.to_pandas_dtype())))
        pairs = {**dict(error_columns(self.values)), **schema.error_of}
        rows = Observations(
            series=series,
            ids=ids,
            times=when.values if when.values.flags.writeable else when.values.copy(),  # else torch warns
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
        rows = rows if keep.all() else rows.keep(keep)
        return self._within(rows), static

    def _times(self, columns: dict[str, pa.Array]) -> cells.Times:
        schema = self.schema
        if schema.clock is not None:
            return cells.with_clock(
                columns[schema.time], columns[schema.clock], schema.time, schema.time_format, schema.na
            )
        return cells.times(columns[schema.time], schema.time, schema.time_format, schema.na)

    def _within(self, rows: Observations) -> Observations:
        """Leave out rows before `since` and after `until`."""
        left = []
        for text, reason in ((self.schema.since, "is before"), (self.schema.until, "is after")):
            if text is None:
                continue
            limit = dates.parse_time(text, rows.time_zone)
            beyond = rows.times < limit if reason == "is before" else rows.times > limit
            if beyond.any():
                left.append(
                    LeftOut(self.schema.time, f"{reason} {text}", int(beyond.sum()), rows.name(int(beyond.argmax())))
                )
                rows = rows.keep(~beyond)
        return replace(rows, report=replace(rows.report, left_out=(*rows.report.left_out, *left))) if left else rows


@dataclass(frozen=True, eq=False)
class Labels:
    """How the labels of a table are read, alike in all its parts.

    Ids and channels of a text file are texts, unless all of them are written as integers.
    """

    integers: frozenset[str] = field(default_factory=frozenset)
    channel_names: tuple[Any, ...] | None = None

    @classmethod
    def of(cls, reader: TableReader, columns: dict[str, pa.Array] | None) -> Labels:
        """Look at all labels of a text file, and at the channels of one that is read in parts (`columns` is None)."""
        source, schema = reader.source, reader.schema
        if not source.is_text and columns is not None:
            return cls()
        integers, names = set(), None
        for name in (schema.id, schema.channel):
            if name is None or name not in source.kinds or (name == schema.id and not source.is_text):
                continue
            column = source.distinct(name) if columns is None else columns[name].unique()
            column = cells.labels(column, name).drop_null()
            if source.is_text and len(column) and cells.are_integers(column):
                integers.add(name)
                column = column.cast(pa.int64())
            if name == schema.channel and columns is None:
                names = tuple(sorted(set(cells.label_values(column).tolist())))
        return cls(frozenset(integers), names)

    def ids(self, column: pa.Array, name: str) -> pa.Array:
        """Return ids, or channels, with nulls where they are missing."""
        found = cells.labels(column, name)
        return found.cast(pa.int64()) if name in self.integers and cells.is_text(found.type) else found

    channels = ids


def _joined(reports: list[ReadingReport]) -> ReadingReport:
    """Return the report of a table from those of its parts."""
    if len({NO_ZONE in report.notes for report in reports}) > 1:
        raise InputError(
            "some of the times are dates with a zone or an offset, and some without; give all in one way.",
            code="mixed-zones",
        )
    return sum(reports[1:], reports[0])


def announce(report: ReadingReport) -> None:
    """Warn of what a user would not expect to be lost or changed."""
    for loss in report.losses():
        warnings.warn(loss, InputWarning, stacklevel=5)


def explode(columns: dict[str, pa.Array]) -> tuple[dict[str, pa.Array], np.ndarray | None]:
    """Return columns of lists as one row per entry, and the row [n] that each is from; others as they are.

    Raises
    ------
    InputError
        Lists of one row that differ in length.
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
    """Return rows without a time as static columns: the first value of each channel, or 1 and 0 where it has none."""
    found = {}
    for c in np.unique(codes[untimed & (codes >= 0)]):
        rows = np.flatnonzero(untimed & (codes == c))
        rows = rows[np.unique(series[rows], return_index=True)[1]]
        valued = not np.isnan(values[rows, 0]).all()
        column = np.full(count, np.nan) if valued else np.zeros(count)
        column[series[rows]] = values[rows, 0] if valued else 1.0
        found[str(names[c])] = column
    return found


def _no_columns(part: SeriesDataset) -> dict[str, Any]:
    """Return the columns of as many observations that take no memory."""
    return {
        name: None if column is None else np.broadcast_to(np.zeros((), column.dtype), column.shape)
        for name, column in part.columns._asdict().items()
    }


def _writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK)


def _observed(ids: np.ndarray, dataset: SeriesDataset) -> np.ndarray:
    """Return which of the ids are among the data set's, bool [S]."""
    if len(ids) == len(dataset):
        return np.ones(len(ids), bool)
    there = set(dataset.ids.tolist())
    return np.array([id in there for id in ids.tolist()], bool)


def _role(schema: TableSchema, name: str) -> str:
    return next((role for role, column in schema.roles if column == name), "values")


def _no_ids(table: Source, schema: TableSchema, roles: set[str]) -> bool:
    """Return True for a table without a column of ids: it is one series, or each of its files is.

    Raises
    ------
    InputError
        Another column looks like one of ids ("unknown-column").
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


def _advice(role: str, for_model: bool) -> str:
    """Return what to type where a column of this role is absent."""
    if role in ("static", "errors") and for_model:
        return f", which the model reads ({option(role)} in training)"
    more = {"flags": ", or add one of zeros, if nothing is flagged", "id": ", or give --id file for one series a file"}
    return f"; name the right one by {option(role)}{more.get(role, '')}"


def _fields(names: Sequence[str]) -> list[str]:
    """Return of columns "lc.flux" the names of the fields, "flux"."""
    return [name.rsplit(".", 1)[-1] for name in names]
