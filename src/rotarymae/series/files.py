"""Table files as people have them, read as Arrow tables whole or a few rows at a time.

`TableFile.notes` tells what was guessed of them (see `formats`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

from rotarymae.errors import InputError, choose, did_you_mean, listed
from rotarymae.series import dates, formats, tables
from rotarymae.series.formats import FORMATS, PACKED, Text, named, stem

ROWS = 1 << 18  # observations that are streamed at a time
BUFFER = 1 << 20  # bytes of a Parquet file that are read ahead per column
# In a Parquet file, what stands between a list and its entries.
WITHIN_LISTS = re.compile(r"\.(list\.(element|item|array)|bag\.array_element)(?=\.|$)")
IN_MEMORY = "memory"  # the format of a table that is no file


@dataclass(frozen=True)
class TableFile:
    """One table in one or several files of one format; make it with `open_table`.

    Attributes:
        paths: the files, whose rows follow one another.
        format: one of FORMATS' values.
        text: how each file is written, for CSV.
        missing: cells that mean "missing", beside the usual ones: as texts, or as numbers whatever their spelling.
        times: column → strptime format of times that are text.
        of_file: this column, which no file has, holds the name of the file that a row is from.
        whole: the table of each file, where a format is read whole.
        notes: what was guessed.
    """

    paths: tuple[Path, ...]
    format: str
    text: tuple[Text, ...] = ()
    missing: tuple[str, ...] = ()
    times: dict[str, str] = field(default_factory=dict)
    of_file: str | None = None
    whole: tuple[pa.Table, ...] = field(default=(), repr=False)
    notes: tuple[str, ...] = ()

    @classmethod
    def of_table(cls, table: pa.Table) -> TableFile:
        """A table that is in memory already."""
        return cls((Path("table"),), IN_MEMORY, whole=(table,))

    def with_ids_of_files(self) -> TableFile:
        """The same with a column "file" that holds the name of the file that a row is from.

        Where two files in different folders have one name, it holds their paths below the folder that all are in.
        """
        alone = "the table is one series" if len(self.paths) == 1 else "each file is one series"
        return replace(self, of_file="file", notes=(*self.notes, f"no column of ids: {alone}"))

    @cached_property
    def file_ids(self) -> tuple[str, ...]:
        """What `with_ids_of_files` calls the files."""
        stems = tuple(stem(path) for path in self.paths)
        if len(set(stems)) == len(stems):
            return stems
        above = os.path.commonpath(self.paths)
        return tuple(path.relative_to(above).as_posix() for path in self.paths)

    @property
    def in_memory(self) -> bool:
        return self.format == IN_MEMORY

    @property
    def name(self) -> str:
        return self.paths[0].name if len(self.paths) == 1 else f"{self.paths[0].name} and {len(self.paths) - 1} more"

    def column_names(self) -> list[str]:
        """Of the first file, without reading it; the fields of nested columns as "column.field"."""
        return self._names(0)

    def _names(self, i: int) -> list[str]:
        return [*self._flat_schema(i).names, *([self.of_file] if self.of_file else [])]

    def type_of(self, column: str) -> pa.DataType:
        """The type of a column; of a text file, that of its first rows."""
        return pa.string() if column == self.of_file else self._flat_schema().field(column).type

    def list_columns(self) -> list[str]:
        """Those that hold a list per row, by the names of `column_names`."""
        return [field.name for field in self._flat_schema() if tables.is_list(field.type)]

    def numeric_columns(self) -> list[str]:
        """Those that hold numbers, or lists of numbers; of a text file as its first block of rows says."""
        types = {field.name: field.type for field in self._flat_schema()}
        kinds = {name: kind.value_type if tables.is_list(kind) else kind for name, kind in types.items()}
        return [name for name, kind in kinds.items() if pa.types.is_integer(kind) or pa.types.is_floating(kind)]

    def _flat_schema(self, i: int = 0) -> pa.Schema:
        with named(self.paths[i], self.format):
            schema = self._schema(i)
            repeats = len(set(schema.names)) < len(schema.names)  # which `need` refuses
            return schema if repeats else tables.flat(schema.empty_table()).schema

    def _schema(self, i: int, labels: Sequence[str] = ()) -> pa.Schema:
        path = self.paths[i]
        if self.whole:
            return self.whole[i].schema
        if self.format == "parquet":
            return pyarrow.parquet.read_schema(path)
        if self.format == "arrow":
            with pa.memory_map(str(path)) as mapped:
                return pa.ipc.open_file(mapped).schema
        read, parse, how = self._csv(i, labels=labels)
        with pyarrow.csv.open_csv(path, read_options=read, parse_options=parse, convert_options=how) as head:
            return head.schema

    def read(self, columns: Sequence[str] | None = None, labels: Sequence[str] = ()) -> pa.Table:
        """Some columns (all of them, if None), as `read_table`."""
        wanted = self.column_names() if columns is None else list(dict.fromkeys(columns))
        labels = [name for name in labels if name in wanted and name != self.of_file]
        parts = []
        for i, path in enumerate(self.paths):
            self.need(wanted, self._names(i), i)
            own = [name for name in wanted if name != self.of_file]
            with named(path, self.format):
                if self.whole:
                    part = self.whole[i]
                elif self.format == "parquet":
                    file = pyarrow.parquet.ParquetFile(path)
                    part = file.read(columns=_leaves(own, file))
                elif self.format == "arrow":
                    part = pyarrow.feather.read_table(path, columns=_tops(own, path))
                else:
                    part = self._read_csv(i, own, labels)
                parts.append(self._finished(part, wanted, labels, i))
        self._common([part.schema for part in parts])
        table = pa.concat_tables(parts, promote_options="permissive") if len(parts) > 1 else parts[0]
        if self.format in ("csv", "tsv"):
            table = as_integers(table, [name for name in labels if are_integers(table[name].unique().to_pylist())])
        return table

    def read_distinct(self, columns: list[str], labels: Sequence[str]) -> pa.Table:
        """The different rows of some columns; of a Parquet file in the memory of these, however many rows there are."""
        columns = list(dict.fromkeys(columns))
        self.need(columns, self.column_names())
        lists = set(columns) & set(self.list_columns())
        if self.format != "parquet" or lists or not self.observations(columns):
            return self.read(columns, labels)
        found = None
        for piece in self.stream(columns, labels):
            rows = pa.table(piece) if found is None else pa.concat_tables([found, pa.table(piece)])
            found = rows.group_by(columns, use_threads=False).aggregate([])
        assert found is not None
        return found

    def read_labels(self, id: str, label: str) -> pa.Table:
        """The different ids and labels. Labels of a text file stay text where one is written with a leading zero: 01
        and 1 are two classes."""
        found = self.read_distinct([id, label], [id])
        if self.format not in ("csv", "tsv") or not pa.types.is_integer(found[label].type):
            return found
        written = self.read([label], [label])[label]  # as text, unless all are written as integers are
        if not pa.types.is_string(written.type) or not any(
            re.match(r"0\d", text) for text in written.unique().to_pylist()
        ):
            return found
        return found.set_column(
            found.schema.get_field_index(label), label, tables.without(tables.to_arrow(written), self.missing)
        )

    def stream(self, columns: Sequence[str], labels: Sequence[str]) -> Iterator[dict[str, pa.Array]]:
        """Some columns, about ROWS observations at a time, of one type in all files; labels of a CSV file as text."""
        types = self._stream_types(list(dict.fromkeys(columns)), labels)
        for i, path in enumerate(self.paths):
            own = [name for name in columns if name != self.of_file]
            with named(path, self.format):
                if self.whole:
                    batches = iter(self.whole[i].to_batches())
                elif self.format == "parquet":
                    # Read ahead, and all row groups that were read would stay in memory.
                    file = pyarrow.parquet.ParquetFile(path, buffer_size=BUFFER, pre_buffer=False)
                    leaves = _leaves(own, file)
                    rows = max(1, ROWS * file.metadata.num_rows // max(1, _cells(file, leaves)))
                    batches = file.iter_batches(rows, columns=leaves)
                elif self.format == "arrow":
                    mapped = pa.memory_map(str(path))
                    fields = [pa.ipc.open_file(mapped).schema.get_field_index(name) for name in _tops(own, path)]
                    file = pa.ipc.open_file(mapped, options=pa.ipc.IpcReadOptions(included_fields=fields))
                    batches = (file.get_batch(i) for i in range(file.num_record_batches))
                else:
                    batches = self._stream_csv(i, own, labels, types)
                for batch in batches:
                    part = self._finished(pa.Table.from_batches([batch]), columns, labels, i)
                    for start, stop in _pieces(part):
                        rows = part.slice(start, stop - start)
                        yield {name: tables.to_arrow(rows[name].cast(types[name])) for name in columns}

    def _stream_types(self, columns: Sequence[str], labels: Sequence[str]) -> dict[str, pa.DataType]:
        """The types into which all files' columns fit. Of a text file the first block tells: what looks like an integer
        there may be a fraction later, and a date may have a time of day."""
        schemas = []
        for i, path in enumerate(self.paths):
            self.need(columns, self._names(i), i)
            with named(path, self.format):
                head = self._schema(i, labels).empty_table()
                schemas.append(self._finished(head, columns, labels, i).schema)
        types = {field.name: field.type for field in self._common(schemas)}
        if self.format not in ("csv", "tsv"):
            return types
        for name, kind in types.items():
            if pa.types.is_integer(kind) or pa.types.is_null(kind):
                types[name] = pa.float64()
            elif pa.types.is_date(kind) or pa.types.is_timestamp(kind):
                types[name] = pa.timestamp("ns", getattr(kind, "tz", None))
        return types

    def _common(self, schemas: Sequence[pa.Schema]) -> pa.Schema:
        """The schema into which those of all files fit. Raises InputError for a column that is of other kinds."""
        found = schemas[0]
        for path, schema in zip(self.paths[1:], schemas[1:], strict=True):
            try:
                found = pa.unify_schemas([found, schema], promote_options="permissive")
            except pa.ArrowException as error:
                differ = [field for field in schema if field.type != found.field(field.name).type]
                said = listed(f"{one.name!r} ({one.type} for {found.field(one.name).type})" for one in differ)
                raise InputError(
                    f"the columns of {path} are of other kinds than those of {self.paths[0]}: {said}. Make them alike."
                ) from error
        return found

    def need(self, wanted: Sequence[str], names: Sequence[str], i: int = 0) -> None:
        """Refuse the header `names` of file i that lacks a column or names one twice."""
        tables.refuse_twice(names, f"the header of {self.paths[i].name}")
        missing = sorted(set(wanted) - set(names))
        if missing:
            raise InputError(
                f"column {listed(missing)} is missing.{did_you_mean(missing[0], names)} {self.paths[i]} has the "
                f"columns {listed(names, 20)}."
            )

    def observations(self, columns: Sequence[str]) -> int:
        """The rows, or the entries of lists in some columns.

        It is a guess for text, at 32 characters per row (8 where they are compressed), and counts rows with lists in
        an Arrow file as rows.
        """
        if self.whole:
            return sum(_entries(batch, columns) for table in self.whole for batch in table.to_batches())
        return sum(self._observations(path, columns) for path in self.paths)

    def _observations(self, path: Path, columns: Sequence[str]) -> int:
        with named(path, self.format):
            if self.format == "parquet":
                file = pyarrow.parquet.ParquetFile(path)
                return _cells(file, _leaves([name for name in columns if name != self.of_file], file))
            if self.format == "arrow":
                with pa.memory_map(str(path)) as mapped:
                    return pa.ipc.open_file(mapped).count_rows()
        return path.stat().st_size // (8 if path.suffix.lower() in PACKED else 32)

    def _finished(self, table: pa.Table, wanted: Sequence[str], labels: Sequence[str], i: int) -> pa.Table:
        """The wanted columns of a part of file i: validated, structs as their fields, missing cells null but those of
        labels, text times parsed, file named."""
        # Arrow trusts the offsets in a file, and a wrong one ends the process when the column is used.
        table.validate(full=True)
        table = tables.flat(table)
        if len(self.paths) > 1:  # Arrow joins no dictionary to a plain column
            plain = [field.with_type(tables.decoded(field.type)) for field in table.schema]
            table = table.cast(pa.schema(plain))
        text = self.format in ("csv", "tsv")
        for name in set(labels) & set(table.column_names) if text else ():  # "a, b", and aligned columns
            trimmed = tables.trimmed(tables.to_arrow(table[name]))
            table = table.set_column(table.schema.get_field_index(name), name, trimmed)
        if self.of_file is not None:
            table = table.append_column(self.of_file, pa.array([self.file_ids[i]] * len(table), pa.string()))
        for name in set(wanted) - set(labels) if self.missing else ():
            column = tables.without(tables.to_arrow(table[name]), self.missing)
            table = table.set_column(table.schema.get_field_index(name), name, column)
        for name, how in self.times.items():
            if name in wanted:
                times = dates.parse_times(tables.to_arrow(table[name]), name, how)
                table = table.set_column(table.schema.get_field_index(name), name, times)
        return table.select(list(wanted))

    def _csv(
        self, i: int, columns: Sequence[str] = (), labels: Sequence[str] = ()
    ) -> tuple[pyarrow.csv.ReadOptions, pyarrow.csv.ParseOptions, pyarrow.csv.ConvertOptions]:
        form, how = self.text[i], pyarrow.csv.ConvertOptions()
        how.decimal_point = form.decimal
        how.null_values = [*how.null_values, *self.missing]
        how.column_types = dict.fromkeys([*labels, *self.times], pa.string())
        how.include_columns = list(columns)
        read = pyarrow.csv.ReadOptions(encoding=form.encoding, skip_rows=form.comments)
        return read, pyarrow.csv.ParseOptions(delimiter=form.separator), how

    def _read_csv(self, i: int, columns: Sequence[str], labels: Sequence[str]) -> pa.Table:
        try:
            read, parse, how = self._csv(i, columns, labels)
            table = pyarrow.csv.read_csv(self.paths[i], read_options=read, parse_options=parse, convert_options=how)
            if self.text[i].encoding != "utf-8" or not any(pa.types.is_binary(kind) for kind in table.schema.types):
                return table
        except pa.ArrowInvalid as error:
            if self.text[i].encoding != "utf-8" or "UTF8" not in str(error):
                raise
        latin = replace(self, text=(*self.text[:i], replace(self.text[i], encoding="latin-1"), *self.text[i + 1 :]))
        return latin._read_csv(i, columns, labels)

    def _stream_csv(
        self, i: int, columns: Sequence[str], labels: Sequence[str], types: dict[str, pa.DataType]
    ) -> Iterator[pa.RecordBatch]:
        read, parse, how = self._csv(i, columns, labels)
        how.column_types = {name: types[name] for name in columns} | how.column_types
        return iter(pyarrow.csv.open_csv(self.paths[i], read_options=read, parse_options=parse, convert_options=how))


def open_table(
    path: str | Path,
    format: str | None = None,
    missing: Sequence[str] = (),
    times: dict[str, str] | None = None,
) -> TableFile:
    """A table file, a folder of them, a pattern such as "night*.csv", or "-" for standard input.

    Args:
        path: the file or files; several are read one after the other, in the order of their names.
        format: one of FORMATS' values, where the suffix does not say.
        missing: cells that mean "missing", of all columns but ids and channels: as texts, or as numbers whatever their
            spelling. In a text file "" always does, and among numbers NA, NaN, null and the like.
        times: column → strptime format of times that are text.

    Raises:
        InputError: no such file, a suffix that is not known, files of several formats, a file that cannot be read.
    """
    if format is not None:
        choose("format", format, sorted(set(FORMATS.values())))
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"{path!r:.60} is no path; give that of a table file, a folder of them or a pattern.")
    paths = (formats.standard_input(),) if str(path) == "-" else formats.table_files(Path(path))
    kinds = {format or formats.format_of(one) for one in paths}
    if len(kinds) > 1:
        raise InputError(f"{path} holds tables of several formats ({', '.join(sorted(kinds))}); read one at a time.")
    source = TableFile(paths, kinds.pop(), missing=tuple(missing), times=times or {})
    if source.format in ("csv", "tsv"):
        text = tuple(formats.sniff(one, source.format) for one in paths)
        usual = Text("\t" if source.format == "tsv" else ",")
        notes = dict.fromkeys(formats.words(form) for form in text if form != usual)
        return replace(source, text=text, notes=tuple(notes))
    if source.format in formats.WHOLE:
        parts = []
        for one in paths:
            with named(one, source.format):
                parts.append(formats.WHOLE[source.format](one, source.missing))
        with named(paths[0], source.format):  # what one file's records all lack is missing there
            every = pa.concat_tables(parts, promote_options="permissive")
        ends = np.cumsum([len(part) for part in parts])
        return replace(
            source, whole=tuple(every.slice(end - len(part), len(part)) for end, part in zip(ends, parts, strict=True))
        )
    return source


def read_table(
    path: str | Path,
    format: str | None = None,
    columns: Sequence[str] | None = None,
    labels: Sequence[str] = (),
) -> pa.Table:
    """Read a table, of the kind that its suffix says: one of `formats.FORMATS`, text also packed (`formats.PACKED`).

    Args:
        path, format: as `open_table`.
        columns: those to read; all of them, if None.
        labels: columns of a CSV file that hold ids or channels: 001 and 1 stay different there. They become integers
            only where all are written as such.

    Returns:
        An Arrow table; empty cells of a CSV are nulls in numeric columns and empty strings in text columns.

    Raises:
        InputError: as `open_table`; a column that is missing or whose name is used twice.
    """
    return open_table(path, format).read(columns, labels)


def are_integers(labels: Iterable[str]) -> bool:
    """Whether all texts are written as integers are: 1 and -20, but not 01 or 1.0."""
    return all(re.fullmatch(r"0|-?[1-9][0-9]{0,17}", text) for text in labels)


def as_integers(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    for name in columns:
        table = table.set_column(table.schema.get_field_index(name), name, table[name].cast(pa.int64()))
    return table


def _tops(names: Sequence[str], path: Path) -> list[str]:
    """The columns of an Arrow file that hold some fields, by the names of `flat`."""
    with pa.memory_map(str(path)) as mapped:
        there = pa.ipc.open_file(mapped).schema.names
    return list(dict.fromkeys(name if name in there else name.split(".")[0] for name in names))


def _leaves(names: Sequence[str], file: pyarrow.parquet.ParquetFile) -> list[str]:
    """The columns of a Parquet file that hold some fields, by the names of `flat`: "lc.list.element.t" is "lc.t"."""
    paths = [file.schema.column(i).path for i in range(len(file.schema))]
    own = {path: WITHIN_LISTS.sub("", path) for path in paths}
    return [path for name in names for path in paths if own[path] == name or own[path].startswith(f"{name}.")]


def _cells(file: pyarrow.parquet.ParquetFile, leaves: Sequence[str]) -> int:
    """The most cells that one of the columns has, entries of lists counted one by one."""
    places = [i for i in range(len(file.schema)) if file.schema.column(i).path in set(leaves)]
    groups = [file.metadata.row_group(k) for k in range(file.metadata.num_row_groups)]
    return max((sum(group.column(i).num_values for group in groups) for i in places), default=file.metadata.num_rows)


def _entries(batch: pa.RecordBatch, columns: Sequence[str]) -> int:
    """The most rows, or entries of lists, that one of the columns has."""
    table = tables.flat(pa.Table.from_batches([batch]))
    lists = [name for name in columns if name in table.column_names and tables.is_list(table.schema.field(name).type)]
    return max((int(tables.list_lengths(tables.to_arrow(table[name])).sum()) for name in lists), default=len(table))


def _pieces(table: pa.Table) -> Iterator[tuple[int, int]]:
    """Runs of rows (start, stop) with about ROWS observations each; of lists, every entry is one."""
    lists = [name for name in table.column_names if tables.is_list(table.schema.field(name).type)]
    lengths = tables.list_lengths(tables.to_arrow(table[lists[0]])) if lists else np.ones(len(table), np.int64)
    ends = np.cumsum(np.maximum(lengths, 1))
    total = int(ends[-1]) if len(ends) else 0
    size = -(-total // max(1, round(total / ROWS)))  # even ones: no last piece of a few rows
    start = 0
    while start < len(table):
        before = 0 if start == 0 else ends[start - 1]
        stop = min(len(table), int(np.searchsorted(ends, before + size)) + 1)
        yield start, stop
        start = stop
