"""From a table to a data set: which columns are read, what becomes of their cells, and the whole or part after part."""

from __future__ import annotations

import importlib
import os
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rotarymae.errors import InputError, InputWarning, NoObservations, listed
from rotarymae.series import cells, dates
from rotarymae.series.cells import to_arrow
from rotarymae.series.columns import error_columns, measured, says_magnitude
from rotarymae.series.dataset import SeriesDataset
from rotarymae.series.mapped import Columns, map_parts
from rotarymae.series.reading import NO_ZONE, ReadingReport
from rotarymae.series.tidy import Observations, dataset_fields, offsets_of
from rotarymae.tables.columns import looks_like_id, looks_like_outcome
from rotarymae.tables.guess import id_column
from rotarymae.tables.labels import Facts
from rotarymae.tables.schema import TableSchema, option
from rotarymae.tables.source import ID_TEXT, Source, id_parts, open_source, without_headers

PART = 1 << 18  # observations that are answered at a time
MAX_CHANGING = 0.01  # of the series; more that change a static column make it none
HEADERS = "a line repeats the header"  # a reason to leave it out
READ = 1 << 20  # observations that are read at a time from a table larger than memory


@dataclass(frozen=True, eq=False)
class Part:
    """Some whole series of a table, which are read and answered together.

    Attributes:
        ids: Arrow array [S] without blanks around texts, in the order in which the series first appear in the table. Of
            the table's type; of a text file, whole numbers if all its ids are. Rows without an id are in no series.
        observed: bool [S], which of them have observations that can be used.
        dataset: the data set of the observed series; None if there are none.
        why: the error that says why `dataset` is None; else None.
    """

    ids: pa.Array
    observed: np.ndarray
    dataset: SeriesDataset | None
    why: NoObservations | None = None

    @property
    def report(self) -> ReadingReport:
        """The report on the part's rows, those that were read and those left out; an empty one if it has no rows."""
        reading = self.dataset.reading if self.dataset is not None else self.why and self.why.reading
        return reading or ReadingReport()


def read_table(source: Any, schema: TableSchema, memory: float | None = None, **known: Any) -> SeriesDataset:
    """Read a whole table of observations as a data set; its `reading` says what became of the rows.

    Raises and warns as `TableReader.open` and `TableReader.read` do.

    Args:
        source, schema: as for `TableReader.open`.
        memory: bytes that reading may take; half of what is free, if None. A larger table is sorted on disk.
        **known: `channel_names`, `value_names`, `others` or `id_name` of `TableReader.open`, such as the channels of a
            model.
    """
    return TableReader.open(source, schema, **known).read(memory)


@dataclass(frozen=True, eq=False, kw_only=True)
class TableReader:
    """A table of observations whose columns are known: it reads them as a data set, at once or in parts.

    Attributes:
        source: the table.
        schema: which column is what; its `id` is "file" where each file is a series.
        values: names of the columns of values, then of those of their standard errors.
        channel_names: the channels of a model, or of a whole table that is read in parts; None takes those that occur,
            sorted.
        value_names: what a model calls the columns in `values`; None for the names of the columns.
        id_name: what the ids are called in the data set.
        objects: the table with one row per series, if static columns are read from it; else None.
        factors: {column: factor} by which its numbers are multiplied, to convert errors to the unit of their values,
            and columns to the unit of a model.
        unread: names of the columns that have no role.
    """

    source: Source
    schema: TableSchema
    values: tuple[str, ...]
    channel_names: tuple[Any, ...] | None = None
    value_names: tuple[str, ...] | None = None
    id_name: str = "id"
    objects: Source | None = None
    factors: dict[str, float] = field(default_factory=dict)
    unread: tuple[str, ...] = ()

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
        """Open a table and look up the columns of a schema in it; the rows are not read yet.

        Args:
            source: a file, a folder, a pattern, "-" for standard input, a data frame, or an open `Source`.
            schema: which columns to read, and how. If it names no values, all columns without another role are values.
                If its `id` is "file" or "id", and the table has no column of this name, each file or data frame is one
                series.
            channel_names: the channels of a model; None without one, or if it has none. An observation of another
                channel is left out, or refused if the schema is strict.
            value_names: what a model calls its values and errors; None without one. The data set uses these names if
                the table has the same ones, perhaps with other prefixes of nested columns: "lc.flux" is the same as
                "flux".
            others: columns that have another role, such as a label, and are no values; the table may lack them.
            id_name: what the ids are called in the data set; None takes the schema's `id`.

        Raises:
            InputError: what `open_source` refuses; columns that are absent ("unknown-column"), or there twice
                ("column-twice"); the `id` "id" without such a column, if another one looks like ids ("unknown-column");
                one of `others` that the schema names as id, time, channel, value, error or limit ("label-is-input"); a
                unit that cannot be converted ("unit").

        Warns:
            InputWarning: columns that a model knows and the table lacks; channels that look like outcomes; units of
                values other than a model's, or of errors that cannot be converted to those of their values.
        """
        for_model = channel_names is not None or value_names is not None
        table = open_source(source, schema.header_row, schema.numbered).with_time(schema.time)
        joined, table = id_parts(schema.id, table.columns), table.with_id(schema.id)
        names = table.columns
        role_of = {name: role for role, name in schema.roles}
        for name in others:
            if role_of.get(name, "static") not in ("static", "flags", "clock", "positions"):
                raise InputError(
                    f"column {name!r} is the label, or that of --split-by or --first, and is also named as "
                    f"{role_of[name]}: the model would see the answer. Leave it out of {role_of[name]}.",
                    code="label-is-input",
                )
        role_of = dict.fromkeys(joined, "id") | role_of
        table.need([name for name in role_of if name in table.unreadable])
        alone = schema.id in ("id", "file") and schema.id not in names
        free = (name for name in names if name not in role_of and name not in others) if schema.id == "id" else ()
        likely = [name for name in free if alone and looks_like_id(name)]
        if likely:
            table.need(["id"], advice=f" (is it {likely[0]!r}? Name it by --id; --id file makes each file one series)")
        values = schema.values or tuple(name for name in names if name not in role_of and name not in others)
        role_of |= dict.fromkeys(values, "values")
        objects = None if schema.objects is None else open_source(schema.objects)
        elsewhere = [name for name in schema.static if objects and name not in names and name in objects.columns]
        limits = (*schema.upper_limits, *schema.lower_limits)
        may_lack = (*schema.static, *(values if schema.wide else ()), *limits) if for_model else ()
        absent = [name for name in may_lack if name not in names and name not in elsewhere]
        for name, role in role_of.items():
            if name not in [*names, *absent, *elsewhere] and not (role == "id" and alone):
                known = role == "errors" and for_model  # which no option names anew
                advice = ", which the model reads" if known else f"; name the right one by {option(role)}"
                table.need([name], advice=advice)
        unread = tuple(name for name in names if name not in role_of and name not in others)
        if absent:
            text = f"{table.name} has no column {listed(absent)}; it is taken as never observed"
            text += "; --objects names a table with one row per series." if {*absent} & {*schema.static} else "."
            warnings.warn(text, InputWarning, stacklevel=3)
        outcomes = [name for name in values if others and not schema.values and looks_like_outcome(name)]
        if outcomes:
            text = f"{listed(outcomes)} look like outcomes, and are read as channels: a model would see what it is to "
            warnings.warn(f"{text}predict. Name the others by --values.", InputWarning, stacklevel=3)
        every, factors, notes = (*values, *schema.errors), {}, []
        for find in (_factors_of_errors, _factors_of_training):  # the units of training are those of values
            for name, (factor, unit) in find(table, schema, every).items():
                factors[name] = factors.get(name, 1.0) * factor
                notes.append(f"{name!r} is converted from {table.units[name]} to {unit}")
                table = replace(table, units=table.units | {name: unit})
        table = (table.with_ids_of_files() if alone else table).with_empty(absent)
        fields = [name.rpartition(".")[2] for name in every]
        same = value_names is not None and fields == [name.rpartition(".")[2] for name in value_names]
        tokens = schema.tokens if schema.channel or schema.wide else "channel"
        return cls(
            source=replace(table, notes=(*table.notes, *notes)),
            schema=replace(schema, id="file" if alone else schema.id, tokens=tokens),
            values=every,
            channel_names=None if channel_names is None or schema.wide else tuple(channel_names),
            value_names=value_names if same else None,
            id_name=id_name or schema.id,
            objects=objects if elsewhere else None,
            factors=factors,
            unread=unread,
        )

    @cached_property
    def columns(self) -> list[str]:
        """The names of the columns that have a cell for each observation, each once; static ones are not among them."""
        schema = self.schema
        names = [schema.id, schema.time, schema.clock, schema.channel, *schema.positions, *self.values]
        names += [*schema.upper_limits, *schema.lower_limits, *schema.flags]
        return [name for name in dict.fromkeys(names) if name is not None]

    @cached_property
    def _static_facts(self) -> list[tuple[str, Facts]]:
        """Static columns of the schema, as pairs (name of the table that holds them, its columns as `Facts`).

        There are at most two such tables: the table of observations, and the table `objects` (one row per series) for
        columns that the first lacks. Each is read once and as a whole, so that all parts of the table of observations
        get the same static values. Numeric columns in `factors` are multiplied by their factor. Raises InputError for
        an id column that is missing, or for columns that `Facts.read` refuses.
        """
        schema, facts = self.schema, []
        for table in (self.source, self.objects):
            names = [name for name in schema.static if (name in self.source.columns) == (table is self.source)]
            if table is not None and names:
                id = schema.id if table is self.source else id_column(table, schema.id)
                read = Facts.read(table, id, names, schema.na, most=MAX_CHANGING, floats=True)
                converted = {
                    name: pc.multiply(column, self.factors[name])  # pyright: ignore
                    for name, column in read.values.items()
                    if name in self.factors and cells.is_numeric(column.type)
                }
                facts.append((table.name, replace(read, values=read.values | converted)))
        return facts

    # ── whole, and in parts ─────────────────────────────────────────────────────────────────────────────────────────

    def read(self, memory: float | None = None, refuse_empty: bool = False) -> SeriesDataset:
        """Read all series; `reading` of the result is a report on the rows that were left out, and why.

        Args:
            memory: bytes; a table that takes more gets memory-mapped columns. None means half of what is free.
            refuse_empty: True refuses the table if a series has no observations. It is for labels that are given in the
                order of the series. False leaves such series out.

        Raises:
            InputError: what `Source.read` refuses; columns that are not numeric; dates with a zone next to ones without
                ("mixed-zones"); no line of a text file that fits its header ("unequal-lines"), or a second header
                ("several-tables"); no room on disk for a large table ("no-room"); many rows that repeat the series,
                time and channel of others ("duplicates"); static columns that `Facts.read` refuses; a series without
                observations, if `refuse_empty`; any cell that cannot be used, if the schema is `strict`. The message
                begins with the name of the table, unless it is a data frame.
            NoObservations: a table without an observation.

        Warns:
            InputWarning: one for the whole table. It counts each kind of row that is left out, and what looks wrong.
        """
        _ = self._static_facts  # whose errors name its table
        mapped, reports = self.source.too_large(self.columns, memory), []
        why = NoObservations("the table has no rows; check that it is the right one.")

        def datasets() -> Iterator[SeriesDataset]:
            """Yield the data sets of parts that have observations; keep all `reports`, and the last error as `why`."""
            nonlocal why
            for part in self._parts(READ, whole=not mapped):
                reports.append(part.report)
                why = part.why or why
                if part.dataset is not None:
                    yield part.dataset

        with self.source.named():
            dataset = self._mapped(datasets()) if mapped else next(datasets(), None)
            if dataset is None:
                raise why
            report = _joined(reports)
            if refuse_empty and report.empty:
                said = f"{len(report.empty)} of {report.series} series have no observation left: {listed(report.empty)}"
                raise InputError(
                    f"{said}. Each needs an observation that can be read; correct their rows, or remove these series, "
                    "and their labels."
                )
            report = self._with_notes(report)
        announce(report)
        return replace(dataset, reading=report, sides=dataset.sides if report.limits else None)

    def _mapped(self, datasets: Iterator[SeriesDataset]) -> SeriesDataset | None:
        """Join the data sets of consecutive parts of a table to one with memory-mapped columns; None if there are none.

        Limits ("<5") are dropped unless the schema's `limits` is "censored". The columns are in nameless temporary
        files, which vanish with the data set. They are made in the folder of the table's first file, or in the system's
        temporary folder if that folder is not writable. Raises InputError ("no-room") if writing them fails, as on a
        full disk.
        """
        first: SeriesDataset | None = None
        per_series: list[tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]] = []

        def columns() -> Iterator[Columns]:
            """Yield the columns of each data set, with limits ("<5") only if the schema keeps them.

            Sets `first` to the first data set, and adds the lengths, ids and static columns of each to `per_series`.
            """
            nonlocal first
            for one in datasets:
                one = one.with_limits(kept=self.schema.limits == "censored")
                first = one if first is None else first
                per_series.append((one.lengths, one.ids, one.static))
                yield one.columns

        folder = self.source.paths[0].parent
        folder = folder if os.access(folder, os.W_OK) else Path(tempfile.gettempdir())
        try:
            mapped = map_parts(columns(), folder)
        except OSError as error:
            raise InputError(
                f"{self.source.name} is larger than memory; its sorted columns cannot be written to {folder} "
                f"({error}). Make room there, or make it writable.",
                code="no-room",
            ) from error
        if first is None:
            return None
        lengths, ids, static = zip(*per_series, strict=True)
        return replace(
            first,
            **mapped._asdict(),
            offsets=offsets_of(np.concatenate(lengths)),
            ids=np.concatenate(ids),
            static=_joined_static(static, [len(part) for part in ids]),
        )

    def parts(self) -> Iterator[Part]:
        """Yield the table in parts of whole series, about 262,144 observations each, in order of first appearance.

        A part whose series have no observations has the `dataset` None; this is no error, even if all parts are like
        that. Rows without an id are in no part. Errors and warnings on the table as a whole come after the last part,
        if any part has observations.

        Raises:
            InputError: what `read` refuses, but no lack of observations. Messages do not name the table.

        Warns:
            InputWarning: as `read` does.
        """
        reports, observed = [], False
        for part in self._parts(PART, whole=self.source.observations(self.columns) <= PART):
            reports.append(part.report)
            observed = observed or part.dataset is not None
            if len(part.ids):
                yield part
        if observed:
            announce(self._with_notes(_joined(reports)))

    def _parts(self, size: int, whole: bool) -> Iterator[Part]:
        """Yield parts of whole series, about `size` observations each, or a single part if the table is read `whole`.

        Series are in the order in which they first appear. Ids and channels have one type in all parts, and a channel
        one number. A part without observations has the error in `why`; anything else raises InputError as in `read`,
        without the table's name.
        """
        schema, reader = self.schema, self
        labels = [name for name in (schema.id, schema.channel) if name in self.source.kinds]
        # Those of a text file are integers if all of a column are.
        integers = {name for name in labels if self.source.is_text and self.source.kinds[name] != ID_TEXT}
        if whole:
            pieces: Any = [self.source.read(self.columns)]
        else:
            # Labels are alike in all parts, and these have the channels of the whole.
            names = {*integers, schema.channel} & {*labels}
            every = {name: self.source.read([name], distinct=True)[name] for name in names}
            for name in names:  # a header that comes again is no label
                if every[name].type == pa.string():
                    every[name] = every[name].filter(pc.not_equal(every[name], name))  # pyright: ignore
            every = {name: cells.as_integers(column) if name in integers else column for name, column in every.items()}
            integers = {name for name in integers if pa.types.is_integer(every[name].type)}
            if schema.channel and schema.channel in every and self.channel_names is None:
                known = cells.label_values(cells.labels(every[schema.channel], schema.channel).drop_null())
                reader = replace(self, channel_names=tuple(sorted(set(known.tolist()))))
            pieces = self.source.series(self.columns, schema.id, size)
        for columns in pieces:
            columns, repeated = without_headers(columns, self.source.name) if self.source.is_text else (columns, 0)
            columns |= {name: cells.as_integers(columns[name]) for name in integers}
            cells.labels(columns[schema.id][:1], schema.id)  # which refuses types that Arrow cannot compare
            ids = cells.trimmed(to_arrow(columns[schema.id].unique())).unique()
            known = cells.labels(ids, schema.id)
            ids = ids.filter(known.is_valid())
            observed, dataset, why = np.zeros(len(ids), bool), None, None
            try:
                dataset = reader.build(columns)
                if repeated:
                    first = {HEADERS: listed(list(columns)[:3])}
                    lines = ReadingReport(total=repeated, left_out={HEADERS: repeated}, first=first)
                    dataset = replace(dataset, reading=(dataset.reading or ReadingReport()) + lines)
                for name, facts in self._static_facts:
                    dataset = facts.add_to(dataset, name)
                there = set(dataset.ids.tolist())
                observed = np.array([id in there for id in cells.label_values(known.drop_null()).tolist()])
            except NoObservations as error:
                why = error
            yield Part(ids, observed, dataset, why)

    def _with_notes(self, report: ReadingReport) -> ReadingReport:
        """Add what is known of the table as a whole to a report on all of its rows, and return this report.

        Added are the number of broken lines, whose number of cells differs from the header's; the columns that are not
        read; the source's notes and units; and doubts on static columns. Raises InputError ("unusable-cell") for a
        broken line in a strict reading.
        """
        count, first = self.source.rejected()
        if count:
            reason = "a line has another number of cells than the header"
            cut = ReadingReport(total=count, left_out={reason: count}, first={reason: first})
            report = report + cut
            if self.schema.strict:
                raise InputError(
                    f"{reason}: {first}. Give this line a cell for each column, or read without strict.",
                    code="unusable-cell",
                )
        read = {*self.columns, *self.schema.static}
        units = {name: unit for name, unit in self.source.units.items() if name in read}
        report = sum((facts.report for _, facts in self._static_facts), report)
        return replace(report, unread=self.unread, notes=(*self.source.notes, *report.notes), units=units)

    # ── building ────────────────────────────────────────────────────────────────────────────────────────────────────

    def build(self, columns: dict[str, pa.Array]) -> SeriesDataset:
        """Build a data set from the cells of the table or of a part of it, without the static columns of the schema.

        Args:
            columns: {name: Arrow array [rows]} for each of `self.columns`.

        Raises:
            NoObservations: no rows, or none with a value.
            InputError: no line of a text file fits its header ("unequal-lines"); else as `read` does.
        """
        schema = self.schema
        if not len(columns[schema.id]):
            count, first = self.source.rejected()
            if count:
                raise InputError(
                    f"no line has as many cells as the header: {first}. Check the file's separator, and which line is "
                    "the header (--header-row).",
                    code="unequal-lines",
                )
            raise NoObservations(f"the table has no rows (columns: {listed(columns)}); check that it is the right one.")
        known = self.channel_names is not None or schema.wide
        dataset = SeriesDataset(**dataset_fields(self.rows(columns), schema, known), id_name=self.id_name)
        names = self.value_names or dataset.value_names
        named = dict(zip(dataset.value_names, names, strict=True))
        errors = {named[name]: named[error] for name, error in dataset.errors.items()}
        return replace(dataset, value_names=names, errors=errors)

    def rows(self, columns: dict[str, pa.Array]) -> Observations:
        """Convert cells to observations, in the order of the rows.

        - Rows of an unknown channel are left out, and rows with a flag: a number other than 0 in a column of flags.
        - Rows without a time become static columns if there are channels and the schema's `untimed` is "static".
        - All other rows stay, with NaN for what is missing, and for limits ("<5") if the schema drops them.

        The columns of values are `self.values`, errors included.

        Args:
            columns: {name: Arrow array [rows]} for each of `self.columns`.

        Raises:
            InputError: a column that is not numeric; times that cannot be read as such; in a strict reading, an unknown
                channel ("unusable-cell").
        """
        schema, report = self.schema, ReadingReport()
        series, ids = cells.encode_labels(columns[schema.id], schema.id)

        def numbers(name: str, sides: np.ndarray | None = None) -> np.ndarray:
            """Read a column as floats [rows], converted by its factor; add its words and its note to `report`.

            In `sides`, int8 [rows] of zeros, cells are set to -1 for an upper limit ("<0.01") and 1 for a lower one;
            the number is then that of the limit. "<12.6" of magnitudes, which means fainter, is a lower limit, and a
            note says so. If `sides` is None, limits count as words, and are NaN.
            """
            nonlocal report
            read = cells.numbers(columns[name], name, schema.na, sides is not None)
            notes = [read.note] if read.note else []
            if sides is not None and read.sides is not None:
                fainter = says_magnitude(name) and (read.sides < 0).any()
                sides[:] = abs(read.sides) if fainter else read.sides
                notes += [f'"<" in {name!r} means fainter: a lower limit of the magnitude'] if fainter else []
            words = {name: read.words} if read.words else {}
            report += ReadingReport(words=words, notes=tuple(notes))
            return read.values * self.factors[name] if name in self.factors else read.values

        pairs = _error_of(schema, self.values)
        sides = np.zeros((len(self.values), len(series)), np.int8)
        exact = {*pairs.values()}  # a bound of an error is no error
        columns_of = [numbers(name, None if name in exact else sides[v]) for v, name in enumerate(self.values)]
        values = np.stack(columns_of, axis=1) if columns_of else np.empty((len(series), 0))
        sides = sides.T
        for side, bounds in ((-1, schema.upper_limits), (1, schema.lower_limits)):
            for v, name in enumerate(bounds):
                bound = numbers(name)
                beyond = np.isnan(values[:, v]) & ~np.isnan(bound)
                values[beyond, v], sides[beyond, v] = bound[beyond], side
        limited = np.flatnonzero(sides.any(0)).tolist()
        report += ReadingReport(limits={self.values[v]: int((sides[:, v] != 0).sum()) for v in limited})
        if alike := cells.alike(ids):
            reason = f"ids in {schema.id!r} differ from another in capitals alone, and are series of their own"
            report += ReadingReport(doubts={reason: len(alike)}, first={reason: listed(alike[:2])})
        positions = [numbers(name) for name in schema.positions]
        flags = [(f"{name!r} is a flag", np.nan_to_num(numbers(name)) != 0) for name in schema.flags]
        when = dates.times(columns[schema.time], schema.time, schema.time_format, schema.na)
        if schema.clock is not None:
            when = dates.with_clock(when, columns[schema.clock], schema.time)
        notes = (*((when.note,) if when.note else ()), *((NO_ZONE,) if when.zone == "" else ()))
        cellwise = schema.wide and schema.tokens == "channel"
        report += ReadingReport(
            total=values.size if cellwise else len(series),
            words={schema.time: when.words} if when.words else {},
            notes=notes,
        )
        rows = Observations(
            series=series,
            ids=cells.label_values(ids),
            times=when.values * self.factors.get(schema.time, 1.0),
            channels=None,
            channel_names=None,
            values=values,
            value_names=self.values,
            time_unit=when.unit,
            row=np.arange(len(series)),
            report=replace(report, counted="cells" if cellwise else "rows"),
            time_zone=None if when.zone is None else when.zone or "UTC",
            positions=np.stack(positions, axis=1) if positions else None,
            position_names=schema.positions,
            names={"id": schema.id, "time": schema.time, "channel": schema.channel or "channel"},
            errors=pairs,
            time_bits=32 if pa.types.is_float32(columns[schema.time].type) else 64,
            sides=sides if limited else None,
        )
        if schema.limits == "drop":
            for v in limited:
                name, first = self.values[v], rows.name(int((sides[:, v] != 0).argmax()))
                reason = f"values of {name!r} are limits, and are left out; models trained with some read them"
                rows = rows.doubting(reason, report.limits[name], first)
            rows = replace(rows, values=measured(rows), sides=None)
        if schema.channel is None:
            return rows.leave_out(flags, "missing")
        return self._with_channels(rows, columns[schema.channel], schema.channel, flags)

    def _with_channels(
        self, rows: Observations, column: pa.Array, name: str, flags: list[tuple[str, np.ndarray]]
    ) -> Observations:
        """Return the rows with the numbers of their channels, without flagged rows and rows of unknown channels.

        Channels are numbered as in `self.channel_names`; if that is None, the channels of the rows are sorted and
        numbered. A missing channel is -1. Rows without a time are first made static columns, if the schema's `untimed`
        is "static".

        Args:
            rows: all rows of the table or of a part of it.
            column: the channel of each row as read, Arrow array [rows].
            name: of this column.
            flags: pairs of a reason, and a mask [rows], True for the rows to leave out for it.

        Raises:
            InputError: cells that cannot be names of channels; an unknown channel in a strict reading
                ("unusable-cell").
        """
        codes, labels = cells.encode_labels(column, name)
        names = cells.label_values(labels)
        known = tuple(sorted(names.tolist())) if self.channel_names is None else self.channel_names
        # Whether a text file's 1 is a number or a text depends on what else stands in its column.
        place = {cells.as_text(one): k for k, one in enumerate(known)} | {one: k for k, one in enumerate(known)}
        at = [place.get(one, place.get(cells.as_text(one), -2)) for one in names.tolist()]
        rows = replace(rows, channels=np.array([*at, -1], np.int32)[codes], channel_names=known)
        if self.schema.untimed == "static":
            timed = ~np.isnan(rows.times) | (rows.series < 0) | (codes < 0)
            facts = _facts(rows, np.where(timed, -1, codes), names)
            note = f"{(~timed).sum():,} rows without a time are static: {listed(facts)}"
            rows = rows.noting(total=-int((~timed).sum()), notes=(note,) if facts else ()).keep(timed)
            rows = replace(rows, static=facts)
        rows = rows.leave_out([(reason, flag[rows.row]) for reason, flag in flags], "missing")
        strange = rows.channels == -2
        seen = listed(names[np.unique(codes[rows.row][strange])])
        unknown = f"{name!r} is {seen}, where {listed(known, 12)} are known,"
        return rows.leave_out([(unknown, strange)], strict=self.schema.strict)


def _joined_static(parts: Sequence[dict[str, np.ndarray]], counts: Sequence[int]) -> dict[str, np.ndarray]:
    """Join the static columns of parts of a table: {name: array with one value for each series of all parts}.

    `_facts` makes static columns of rows without a time, part by part. A part without such rows lacks the column; one
    in which none of them has a value has booleans, where other parts may have numbers. If any part has numbers, the
    series of parts without numbers get NaN. If all parts with the column have booleans, the series of the others get
    False.

    Args:
        parts: {name: array [S]} for the S series of each part.
        counts: S of each part.
    """
    static = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        kinds = {part[name].dtype.kind for part in parts if name in part}
        absent, known = (np.nan, kinds - {"b"}) if "f" in kinds else (False, kinds)
        columns = [(part.get(name, np.full(n, absent)), n) for part, n in zip(parts, counts, strict=True)]
        static[name] = np.concatenate([one if one.dtype.kind in known else np.full(n, absent) for one, n in columns])
    return static


def _joined(reports: list[ReadingReport]) -> ReadingReport:
    """Add up the reports on the parts of a table, at least one, to a report on the whole.

    Raises InputError ("mixed-zones") if the dates of some parts have a time zone, and those of others have none.
    """
    if len({NO_ZONE in report.notes for report in reports if report.total}) > 1:
        raise InputError(
            "some of the times are dates with a zone or an offset, and some without; give all with one, or none.",
            code="mixed-zones",
        )
    return sum(reports[1:], reports[0])


def announce(report: ReadingReport | None) -> None:
    """Warn (InputWarning) of losses and changes in reading that a user would not expect, once for each kind.

    `report` may be None, for a data set that was not read.
    """
    for loss in [] if report is None else report.losses():
        warnings.warn(loss, InputWarning, stacklevel=5)


def _facts(rows: Observations, codes: np.ndarray, names: np.ndarray) -> dict[str, np.ndarray]:
    """Turn rows without a time into static columns: {channel: array with one value for each of S series}.

    A row without a time states a fact of its series, such as an age, and its channel names the fact. Each channel with
    such rows becomes a column:

    - float64 if any of these rows has a measured value: the first of each series, NaN for none or a limit ("<5");
    - else boolean: True for the series with such a row.

    Args:
        rows: all rows; only the first of their columns of values is used. S is the number of their ids.
        codes: int [n], index of each row's channel in `names`; -1 for rows that have a time.
        names: the channels.
    """
    columns, values = {}, measured(rows)[:, 0]
    for c in np.unique(codes[codes >= 0]):
        which = np.flatnonzero(codes == c)
        valued = which[~np.isnan(values[which])][::-1]  # from the last on, so that the first is written last
        column = np.isin(np.arange(len(rows.ids)), rows.series[which])
        if len(valued):
            column = np.full(len(rows.ids), np.nan)
            column[rows.series[valued]] = values[valued]
        columns[str(names[c])] = column
    return columns


def _error_of(schema: TableSchema, values: Sequence[str]) -> dict[str, str]:
    """Return {column of values: column of its standard errors}, as the schema says, or else as the names say.

    Both are among `values`, the names of the columns of values and of errors.
    """
    pairs = {**dict(error_columns(values)), **dict(zip(schema.values, schema.errors, strict=False))}
    return {name: error for name, error in pairs.items() if name in values and error in values}


def _factor(unit: str, to: str) -> float | None:
    """Return the factor from one unit to another; None if astropy does not know it, or is not installed."""
    with suppress(Exception):
        units = importlib.import_module("astropy.units")
        return 1.0 if unit == to else float(units.Unit(unit).to(units.Unit(to)))
    return None


def _factors_of_errors(table: Source, schema: TableSchema, values: Sequence[str]) -> dict[str, tuple[float, str]]:
    """Return the factors that convert standard errors to the units of their values, where the two units differ.

    The result is {column of errors: (factor, unit of the values)}. A column whose unit cannot be converted is left out
    with an InputWarning. `values` are the names of the columns of values and of errors.
    """
    factors = {}
    for name, error in _error_of(schema, values).items():
        unit = table.units.get(name, "")
        given = table.units.get(error, unit) if unit else ""
        factor = 1.0 if given == unit else _factor(given, unit)
        if factor is None:
            text = f"column {error!r} is in {given}, and {name!r}, whose error it is, in {unit}; convert it."
            warnings.warn(text, InputWarning, stacklevel=4)
        elif factor != 1:
            factors[error] = (factor, unit)
    return factors


def _factors_of_training(table: Source, schema: TableSchema, values: Sequence[str]) -> dict[str, tuple[float, str]]:
    """Return {column: (factor, unit)} that convert columns to the units of a model's training, `schema.units`.

    A column with the same unit, perhaps by another name, is not in the result. Without `schema.convert` the result is
    {}, and an InputWarning names each column in another unit, with the factor if `_factor` knows it. With
    `schema.convert`, InputError ("unit") is raised for a column whose factor `_factor` does not know. `values` is not
    used; `_factors_of_errors` takes the same arguments.
    """
    factors = {}
    for name, trained in schema.units.items():
        unit = table.units.get(name, trained)
        factor = 1.0 if unit == trained else _factor(unit, trained)
        if factor == 1:
            continue
        text = f"column {name!r} is in {unit}, and the model was trained on {trained}"
        if not schema.convert:
            said = "" if factor is None else f": multiply by {factor:.6g} (--convert)"
            warnings.warn(f"{text}; convert it{said}.", InputWarning, stacklevel=4)
        elif factor is None:
            text += "; no factor is known to astropy, or it is not installed. Install it, or convert the column."
            raise InputError(text, code="unit")
        else:
            factors[name] = (factor, trained)
    return factors
