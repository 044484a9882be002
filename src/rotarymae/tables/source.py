"""Where tables come from: files of every kind, several at once, standard input, and data frames.

A `Source` knows its columns ("lc.time" is the field `time` of a nested column `lc`), reads some as Arrow arrays,
and hands out whole series part after part, however large the table and in whichever order its rows come. Text and
Parquet files are read, and rows sorted, by DuckDB; what a text file does not say of itself is guessed from its
beginning: separator, encoding, header.
"""

from __future__ import annotations

import atexit
import codecs
import csv
import functools
import io
import itertools
import json
import os
import re
import shutil
import sys
import tempfile
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
import pyarrow.parquet

from rotarymae.errors import InputError, InputWarning, NoObservations, did_you_mean, listed
from rotarymae.series import cells
from rotarymae.series.cells import is_list, to_arrow
from rotarymae.system import free_memory

FORMATS = {
    **dict.fromkeys((".csv", ".txt", ".dat", ".psv"), "csv"),
    ".tsv": "tsv",
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".feather"), "arrow"),
    **dict.fromkeys((".jsonl", ".ndjson"), "jsonl"),
    ".json": "json",
    ".xlsx": "excel",
    **dict.fromkeys((".ecsv", ".fits", ".fit"), "astropy"),
}
PACKED = (".gz", ".bz2", ".zst")  # of text files
BEGINNINGS = {
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
    b"PK\3\4": ".xlsx",
    b"\x1f\x8b": ".csv.gz",
    b"{": ".jsonl",
    b"[": ".json",
}
# What DuckDB, Arrow, openpyxl, astropy and the packers raise for a file that is none of theirs.
UNREADABLE = (
    duckdb.Error,
    pa.ArrowException,
    OSError,
    ValueError,
    ArithmeticError,
    RecursionError,
    TypeError,
    EOFError,
)
UNREADABLE += (LookupError, AttributeError, NotImplementedError, SyntaxError, csv.Error, zipfile.BadZipFile, zlib.error)
HEAD = 1 << 16  # bytes from which the form of a text file is guessed
COMMA = r"\s*[-+]?\d*,\d+([eE][-+]?\d+)?\s*"
LINE = 1 << 25  # bytes of the longest line of text
MAX_COLUMNS = 25_000
MAX_CELLS = 1 << 25  # of a sheet, and of JSON
MAX_BYTES = 1 << 29  # of a file that is read whole: JSON, Excel, FITS
COPIES = 4  # what reading and sorting a table takes at its peak, over the bytes of its numbers
PART = 1 << 20  # observations of the parts in which a large table is read


@dataclass(frozen=True)
class Text:
    """The form of a text file. `skip` lines stand above the first row, whose columns are `names`."""

    names: tuple[str, ...] = ()
    separator: str = ","
    encoding: str = "utf-8"
    skip: int = 0
    comma: bool = False  # numbers have decimal commas
    blanks: bool = False  # columns are aligned by blanks
    units: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Source:
    """One table in memory, or in one or several files of one format; make it with `open_source`.

    Attributes
    ----------
    name
        The table's, for messages.
    kinds
        Column → Arrow type; of a text file all are text. A nested column stands under the names of its fields.
    table
        The whole table, where it is in memory or mapped; its columns are those of `kinds`, nested or not.
    sql
        Column → its expression, over `relation`.
    relation
        What DuckDB reads, after FROM; with the columns `file` and, to keep the order of rows, none.
    read_from
        The text files that are read: `paths`, or copies of them that DuckDB can read.
    twice
        Column names that occur more than once.
    of_file
        The column, which no file has, that holds the name of the file that a row is from.
    """

    name: str
    kinds: dict[str, pa.DataType]
    paths: tuple[Path, ...] = ()
    format: str = "memory"
    table: Any = field(default=None, repr=False)
    sql: dict[str, str] = field(default_factory=dict, repr=False)
    relation: str = field(default="", repr=False)
    twice: tuple[str, ...] = ()
    read_from: tuple[Path, ...] = ()
    of_file: str | None = None
    units: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def in_memory(self) -> bool:
        return self.format == "memory"

    @property
    def columns(self) -> list[str]:
        return [*self.kinds, *([self.of_file] if self.of_file else [])]

    @property
    def is_text(self) -> bool:
        """Whether its cells are texts, of which some may be numbers."""
        return self.format in ("csv", "tsv")

    def with_ids_of_files(self) -> Source:
        """Return the same with a column "file", the name of the file that a row is from."""
        alone = "the table is one series" if len(self.paths) <= 1 else "each file is one series"
        return replace(self, of_file="file", notes=(*self.notes, f"no column of ids: {alone}"))

    @functools.cached_property
    def file_ids(self) -> tuple[str, ...]:
        """What `with_ids_of_files` calls the files: their names, or where two are alike their paths."""
        stems = tuple(stem(path) for path in self.paths)
        if len(set(stems)) == len(stems):
            return stems
        above = os.path.commonpath(self.paths)
        return tuple(path.relative_to(above).as_posix() for path in self.paths)

    def need(self, columns: Sequence[str], what: str = "column", advice: str = "") -> None:
        """Refuse columns that are absent, or are there twice; the message calls them `what` and gives advice."""
        twice = [name for name in columns if name in self.twice]
        if twice:
            raise InputError(
                f"{self.name} names {listed(twice)} more than once; each column that is read needs a name of its own.",
                code="column-twice",
            )
        missing = [name for name in columns if name not in self.kinds and name != self.of_file]
        if isinstance(self.table, _Frame):
            tops = {name.split(".")[0] for name in missing} & set(self.table.column_names)
            missing = [
                name for name in missing if not tops or name not in flat_kinds(self.table.select([*tops]).schema)
            ]
        if missing:
            raise InputError(
                f"{self.name} has no {what} {listed(missing)}{advice}.{did_you_mean(missing[0], self.columns)} Its "
                f"columns are {listed(self.columns, 20)}.",
                code="unknown-column",
            )

    # ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def read(self, columns: Sequence[str], rows: int | None = None) -> dict[str, pa.Array]:
        """Return some columns, of the first rows only where their number is given."""
        columns = list(dict.fromkeys(columns))
        self.need(columns)
        with named(self.name, self.format):
            if self.table is not None:
                table = self.table if rows is None else self.table.slice(0, rows)
                found = flat(table.select(self._tops(columns)), columns)
                if self.of_file in columns:
                    found[self.of_file] = self._file_column(rows)
                return {name: to_arrow(found[name]) for name in columns}
            limit = "" if rows is None else f" LIMIT {rows}"
            names = columns or list(self.kinds)[:1]
            table = _sql(f"SELECT {self._selected(names)} FROM {self.relation}{limit}").to_arrow_table()
            return {name: self._restored(table[name], name) for name in columns} if columns else {"": table[0]}

    def rejected(self) -> tuple[int, str]:
        """Return how many lines of the text files that were read last had another number of cells, and the first."""
        if not self.is_text or self.table is not None:
            return 0, ""
        paths = ", ".join(_literal(str(path)) for path in self.read_from)
        rejects = f"reject_errors JOIN reject_scans USING (scan_id, file_id) WHERE file_path IN ({paths})"
        found = _sql(
            f"SELECT count(DISTINCT (file_path, line)), arg_min(file_path, line), min(line) FROM {rejects}"
        ).fetchall()[0]
        if not found[0]:
            return 0, ""
        error = _sql(f"SELECT error_message FROM {rejects} AND line = {found[2]} LIMIT 1").fetchall()
        where = f" of {Path(found[1]).name}" if len(self.paths) > 1 else ""
        return found[0], f"line {found[2]}{where}: {error[0][0] if error else ''}".replace("\n", " ")

    def observations(self, columns: Sequence[str]) -> int:
        """Return the rows, or the entries of lists in some columns; of text a guess, at 32 characters per row."""
        if self.table is not None:
            lists = [name for name in columns if name in self.kinds and is_list(self.kinds[name])]
            if lists:
                return int(cells.list_lengths(self.read(lists[:1])[lists[0]]).sum())
            return len(self.table)
        if self.format == "parquet":
            return sum(_cells(path, columns) for path in self.paths)
        return sum(path.stat().st_size // (8 if path.suffix.lower() in PACKED else 32) for path in self.paths)

    def too_large(self, columns: Sequence[str], memory: float | None = None) -> bool:
        """Return whether reading some columns takes more than `memory` bytes (half of what is free, if None)."""
        memory = free_memory() / 2 if memory is None else memory
        return not self.in_memory and self.observations(columns) * max(1, len(columns)) * 8 * COPIES > memory

    def distinct(self, column: str) -> pa.Array:
        """Return the different cells of a column, of the entries of a column of lists, in any order."""
        if self.table is not None or column == self.of_file:
            array = self.read([column])[column]
            return (array.flatten() if is_list(array.type) else array).unique()
        cell = self._expression(column)
        cell = f"unnest({cell})" if is_list(self.kinds[column]) else cell
        with named(self.name, self.format):
            table = _sql(f"SELECT DISTINCT {cell} AS c FROM {self.relation}").to_arrow_table()
        return to_arrow(table["c"])

    def distinct_rows(self, columns: Sequence[str]) -> dict[str, pa.Array]:
        """Return the different rows of some columns without lists, in any order."""
        columns = list(dict.fromkeys(columns))
        if self.table is not None or self.of_file in columns:
            return self.read(columns)
        self.need(columns)
        with named(self.name, self.format):
            table = _sql(f"SELECT DISTINCT {self._selected(columns)} FROM {self.relation}").to_arrow_table()
            return {name: self._restored(table[name], name) for name in columns}

    def series(self, columns: Sequence[str], id: str, size: int = PART) -> Iterator[dict[str, pa.Array]]:
        """Yield some columns in parts of whole series, in the order in which these first appear, about `size`
        observations at a time. Rows that are not together already are sorted on disk."""
        columns = list(dict.fromkeys(columns))
        self.need(columns)
        relation, database = self.relation, connection().cursor()  # which others may not use while its rows are read
        if self.table is not None:
            database.register("rotarymae_table", self.table.select(self._tops(columns)))
            relation = "rotarymae_table"
        key = f"trim({self._expression(id)})" if cells.is_text(self._kind(id)) else self._expression(id)
        numbered = f"(SELECT {self._selected(columns)}, {key} AS _id, row_number() OVER () AS _row FROM {relation})"
        with named(self.name, self.format):
            runs = database.sql(
                "SELECT count(*) FILTER (_id IS DISTINCT FROM _before OR _row = 1) FROM "
                f"(SELECT _id, _row, lag(_id) OVER () AS _before FROM {numbered})"
            ).fetchall()[0]
            database.execute(
                f"CREATE OR REPLACE TEMP TABLE _firsts AS SELECT _id, min(_row) AS _first FROM {numbered} GROUP BY 1"
            )
            count = database.sql("SELECT count(*) FROM _firsts").fetchall()[0]
            if runs[0] == count[0]:
                query = f"SELECT * EXCLUDE (_row), _id AS _key FROM {numbered}"
            else:
                query = (
                    f"SELECT n.* EXCLUDE (_row), n._id AS _key FROM {numbered} n JOIN _firsts f "
                    "ON n._id IS NOT DISTINCT FROM f._id ORDER BY f._first, n._row"
                )
            rows = max(1, size * self._rows() // max(1, self.observations(columns)))
            reader = database.sql(query).to_arrow_reader(rows)
            pending: list[pa.Table] = []
            for batch in reader:
                table = pa.Table.from_batches([batch])
                keys = to_arrow(table["_key"]).dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False)
                new = pending and pending[-1]["_key"][-1].as_py() != table["_key"][0].as_py()
                change = np.flatnonzero(np.diff(keys))
                if len(change):  # the last series may go on in the next batch
                    cut = int(change[-1]) + 1
                    yield self._part(pa.concat_tables([*pending, table.slice(0, cut)]), columns)
                    pending, table = [], table.slice(cut)
                elif new:
                    yield self._part(pa.concat_tables(pending), columns)
                    pending = []
                pending.append(table)
            if pending:
                yield self._part(pa.concat_tables(pending), columns)

    def _part(self, table: pa.Table, columns: Sequence[str]) -> dict[str, pa.Array]:
        return {name: self._restored(table[name], name) for name in columns}

    def _rows(self) -> int:
        if self.table is not None:
            return len(self.table)
        if self.format == "parquet":
            return sum(pyarrow.parquet.read_metadata(path).num_rows for path in self.paths)
        return max(1, self.observations(()))

    def type_of(self, column: str) -> pa.DataType:
        """Return the Arrow type of a column as it is read."""
        return self.read([column], 0)[column].type

    def _kind(self, column: str) -> pa.DataType:
        return pa.large_string() if column == self.of_file else self.kinds[column]

    def _expression(self, column: str) -> str:
        if column == self.of_file:
            if self.table is not None or len(self.paths) == 1:
                return _literal(self.file_ids[0] if self.paths else self.name)
            names = ", ".join(f"{_literal(str(path))}: {_literal(id)}" for path, id in zip(self.paths, self.file_ids))
            return f"MAP {{{names}}}[filename]"
        return self.sql.get(column) or _nested(column, self.table.schema if self.table is not None else None)

    def _selected(self, columns: Sequence[str]) -> str:
        return ", ".join(f"{self._expression(name)} AS {_quoted(name)}" for name in columns)

    def _restored(self, column: Any, name: str | None = None) -> pa.Array:
        """Return a column in the type that the file says, which DuckDB has no word for: durations, zones."""
        array = to_arrow(column)
        kind = self.kinds.get(name or "")
        if kind is not None and kind != array.type and (pa.types.is_duration(kind) or pa.types.is_timestamp(kind)):
            with suppress(pa.ArrowException):
                return array.cast(kind)
        return array

    def _tops(self, columns: Sequence[str]) -> list[str]:
        there = set(self.table.column_names)
        return list(
            dict.fromkeys(name if name in there else name.split(".")[0] for name in columns if name != self.of_file)
        )

    def _file_column(self, rows: int | None) -> pa.Array:
        lengths = (
            self.table["_file"].to_numpy() if "_file" in self.table.column_names else np.zeros(len(self.table), int)
        )
        ids = pa.array(self.file_ids if self.paths else (self.name,), pa.large_string())
        return ids.take(pa.array(lengths[:rows]))


# ── DuckDB ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@functools.cache
def _database(process: int) -> duckdb.DuckDBPyConnection:
    folder = tempfile.mkdtemp(prefix="rotarymae-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    threads = min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    config = {
        "memory_limit": f"{max(256, min(1500, int(free_memory() / 4 / 2**20)))}MB",
        "temp_directory": folder,
        "threads": threads,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
    }
    database = duckdb.connect(":memory:", config=config)
    database.execute("SET TimeZone = 'UTC'")
    return database


def connection() -> duckdb.DuckDBPyConnection:
    """Return this process's database in memory, which spills to a temporary folder."""
    return _database(os.getpid())


def _sql(query: str) -> duckdb.DuckDBPyRelation:
    return connection().sql(query)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _pattern(path: Path) -> str:
    """Return a path as a literal that DuckDB does not take for a pattern."""
    return _literal(re.sub(r"[*?\[]", lambda match: f"[{match[0]}]", str(path)))


def repeated(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names that occur more than once."""
    return tuple(sorted(name for name, count in Counter(names).items() if count > 1))


def flat_kinds(schema: pa.Schema) -> dict[str, pa.DataType]:
    """Return the columns of a schema by name; fields of structs, and of lists of structs, as "column.field"."""
    found: dict[str, pa.DataType] = {}

    def add(name: str, kind: pa.DataType, listed: bool) -> None:
        if is_list(kind) and pa.types.is_struct(kind.value_type) and not listed:
            kind, listed = kind.value_type, True
        if pa.types.is_struct(kind):
            for part in kind.fields:
                add(f"{name}.{part.name}", part.type, listed)
        else:
            found.setdefault(name, pa.large_list(kind) if listed else kind)

    for part in schema:
        if not pa.types.is_nested(part.type):
            found[part.name] = part.type
    for part in schema:
        if pa.types.is_nested(part.type):
            add(part.name, part.type, False)
    return found


def flat(table: pa.Table, columns: Sequence[str]) -> dict[str, Any]:
    """Return columns of a table by their names in `flat_kinds`."""
    found: dict[str, Any] = {}
    place = {name: i for i, name in enumerate(table.column_names)}  # a look-up by name would look through all of them
    for name in columns:
        if name in place and not pa.types.is_struct(table.schema.field(place[name]).type):
            found[name] = table.column(place[name])
            continue
        top = next((top for top in place if name.startswith(f"{top}.")), None)
        if top is None:
            continue
        column, path = to_arrow(table[top]), name[len(top) + 1 :].split(".")
        offsets = None
        if is_list(column.type):
            offsets = pa.array(np.concatenate([[0], np.cumsum(cells.list_lengths(column))]))
            column = column.flatten()
        while path:
            step = next(i for i in range(len(path), 0, -1) if column.type.get_field_index(".".join(path[:i])) >= 0)
            column, path = pc.struct_field(column, column.type.get_field_index(".".join(path[:step]))), path[step:]  # pyright: ignore
        found[name] = column if offsets is None else pa.LargeListArray.from_arrays(offsets, column)
    return found


def _nested(column: str, schema: pa.Schema | None) -> str:
    """Return the expression of a column by its name in `flat_kinds`."""
    assert schema is not None
    if column in schema.names and not pa.types.is_struct(schema.field(column).type):
        return _quoted(column)
    top = next(name for name in schema.names if column.startswith(f"{name}."))
    fields = ".".join(_quoted(part) for part in column[len(top) + 1 :].split("."))
    if is_list(schema.field(top).type):
        return f"[_x.{fields} for _x in {_quoted(top)}]"
    return f"{_quoted(top)}.{fields}"


# ── opening ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def open_source(source: Any, header_row: int | None = None) -> Source:
    """Open a table file, a folder of them, a pattern such as "night*.csv", "-" for standard input, or a data frame.

    Parameters
    ----------
    header_row
        The line of a text file, counted from 1, that names the columns.

    Raises
    ------
    InputError
        No such file ("no-file"), a suffix that is not known ("unknown-format"), files of several formats, a file that
        cannot be read ("unreadable").
    """
    if isinstance(source, Source):
        return source
    if not isinstance(source, str | os.PathLike):
        return of_frame(source)
    paths = (standard_input(),) if str(source) == "-" else table_files(Path(source))
    formats = {format_of(path) for path in paths}
    if len(formats) > 1:
        raise InputError(
            f"{source} holds tables of several formats ({', '.join(sorted(formats))}); read one at a time."
        )
    format = formats.pop()
    name = str(source) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    with named(name, format):
        if format in ("csv", "tsv"):
            return _open_text(paths, format, name, header_row)
        if format == "parquet":
            return _open_parquet(paths, name)
        return _open_whole(paths, format, name)


def of_frame(frame: Any) -> Source:
    """Open a pandas, polars, Arrow or astropy table, or one of another library that narwhals knows.

    Raises
    ------
    InputError
        Anything else, a lazy frame.
    """
    units: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    if type(frame).__module__.startswith("astropy"):
        frame, units, notes = _of_astropy(frame)
    if isinstance(frame, pa.Table):
        twice = repeated(frame.column_names)
        table = _without(frame, twice)
        return Source("the table", flat_kinds(table.schema), table=table, twice=twice, units=units, notes=notes)
    twice = ()
    if nw.dependencies.is_pandas_dataframe(frame) and not frame.columns.is_unique:
        again = frame.columns.duplicated(keep=False)
        twice, frame = tuple(sorted(set(map(str, frame.columns[again])))), frame.loc[:, ~again]
    try:
        seen = nw.from_native(frame, eager_only=True)
    except TypeError as error:
        raise InputError(
            f"the frame is of the type {type(frame).__module__}.{type(frame).__name__}; a pandas, polars, Arrow or "
            "astropy table was wanted. Collect a lazy frame with .collect(), make any other kind a data frame first, "
            "and read a file with SeriesDataset.from_file.",
            code="no-frame",
        ) from error
    held = _Frame(seen)
    kinds = dict.fromkeys(held.column_names, pa.null())
    return Source("the table", kinds, table=held, twice=twice, units=units, notes=notes)


class _Frame:
    """A data frame of another library, whose columns become Arrow's only when they are read."""

    def __init__(self, frame: nw.DataFrame[Any]) -> None:
        self.frame = frame
        self.column_names = [name for name in frame.columns if isinstance(name, str)]

    def __len__(self) -> int:
        return len(self.frame)

    def select(self, names: Sequence[str]) -> pa.Table:
        return pa.table({name: arrow_column(self.frame, name) for name in names})

    def slice(self, start: int, rows: int) -> _Frame:
        return _Frame(self.frame[start : start + rows])


def arrow_column(frame: nw.DataFrame[Any], name: str) -> pa.Array:
    """Return one column as an Arrow array; refuses one of mixed type, or of a kind that Arrow cannot hold."""
    try:
        column = frame.get_column(name)
        try:
            return to_arrow(column.to_arrow())
        except (pa.ArrowException, NotImplementedError):
            return to_arrow(column.to_numpy())
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(
            f"column {name!r} holds values of mixed type, or of a type no table column can have ({reason}); "
            "convert the whole column to one type, for example all to strings or all to numbers.",
            code="mixed-type",
        ) from error


def table_files(path: Path) -> tuple[Path, ...]:
    """Return the table files of a folder or a pattern in the order of their names, or the one file.

    Raises
    ------
    InputError
        For none ("no-file").
    """
    if path.is_file():
        return (path,)
    if path.is_dir():
        inside = (one for one in sorted(path.rglob("*")) if one.is_file() and not _hidden(one.relative_to(path)))
        found = tuple(one for one in inside if _suffix(one))
        if not found:
            raise InputError(
                f"{path} is a folder without table files; known suffixes are {', '.join(FORMATS)}. Pictures and sounds "
                "are read by --images and --audio.",
                code="no-file",
            )
        return found
    pattern = str(path.relative_to(path.anchor))
    found = tuple(one for one in sorted(Path(path.anchor or ".").glob(pattern)) if one.is_file())
    if not found:
        near = [one.name for one in path.parent.iterdir() if one.is_file()] if path.parent.is_dir() else []
        raise InputError(
            f"{path} does not exist; give the path of a table file.{did_you_mean(path.name, near)}", code="no-file"
        )
    return found


def _one_layout(name: str, paths: Sequence[Path], layouts: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Return the column names that occur twice in one of several files.

    Raises
    ------
    InputError
        Files with other columns than the first, a table with too many.
    """
    for path, names in zip(paths, layouts, strict=True):
        if lacking := sorted(set(layouts[0]) ^ set(names)):
            raise InputError(
                f"column {listed(lacking)} is missing in {path} or in {paths[0]}; the former has the columns "
                f"{listed(names, 20)}. Read files of one layout at a time.",
                code="unknown-column",
            )
    if len(layouts[0]) > MAX_COLUMNS:
        raise InputError(
            f"{name} has {len(layouts[0]):,} columns; at most {MAX_COLUMNS:,} can be read.", code="too-large"
        )
    return tuple(sorted({column for names in layouts for column in repeated(names)}))


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _suffix(path: Path) -> str | None:
    name = path.name.lower()
    for packed in PACKED:
        name = name.removesuffix(packed)
    return next((suffix for suffix in FORMATS if name.endswith(suffix)), None)


def format_of(path: Path) -> str:
    """Return the format of a file by its name."""
    suffix = _suffix(path)
    if suffix is None:
        raise InputError(
            f"{path}: cannot tell the kind of table from the name; known suffixes are {', '.join(FORMATS)} (text also "
            f"with {', '.join(PACKED)}). Convert the file, or read it yourself and pass the data frame to "
            "SeriesDataset.from_frame.",
            code="unknown-format",
        )
    return FORMATS[suffix]


@functools.cache
def _scratch() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="rotarymae-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def standard_input() -> Path:
    """Keep what comes through the pipe in a temporary file, as its columns are looked at before they are read."""
    head = sys.stdin.buffer.read(8)
    suffix = next((suffix for start, suffix in BEGINNINGS.items() if head.startswith(start)), ".csv")
    path = _scratch() / f"standard input{suffix}"
    with path.open("wb") as file:
        file.write(head)
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path


def stem(path: Path) -> str:
    """Return the name of a file without the suffixes that say how it is read: one of packing, one of a format."""
    name = path.name
    for suffixes in (PACKED, FORMATS):
        ending = next((suffix for suffix in suffixes if name.lower().endswith(suffix)), "")
        name = name[: len(name) - len(ending)]
    return name


# ── text ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _open_text(paths: tuple[Path, ...], format: str, name: str, header_row: int | None) -> Source:
    """Open text files; consecutive ones of one form are read together."""
    texts = [sniff(path, format, header_row) for path in paths]
    twice = _one_layout(name, paths, [text.names for text in texts])
    columns = [column for column in texts[0].names if column not in twice]
    notes = tuple(dict.fromkeys(text.note for text in texts if text.note))
    units = {column: unit for column, unit in zip(texts[0].names, texts[0].units, strict=False) if unit}
    parts, read_from = [], []
    with suppress(duckdb.CatalogException):  # what was left out of an earlier reading
        connection().execute("DELETE FROM reject_errors")
    for text, run in itertools.groupby(zip(texts, paths, strict=True), key=lambda pair: replace(pair[0], note="")):
        own = [_as_utf8(path, text) for _, path in run]
        read_from += own
        place = {column: i for i, column in enumerate(text.names)}
        cell = (
            "CASE WHEN regexp_full_match({0}, '{1}') THEN replace({0}, ',', '.') ELSE {0} END" if text.comma else "{0}"
        )
        picked = ", ".join(f"{cell.format(f'c{place[name]}', COMMA)} AS {_quoted(name)}" for name in columns)
        kinds = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(text.names)))
        listed_paths = ", ".join(_pattern(path) for path in own)
        skip = 0 if own[0] not in paths else text.skip
        separator = "\t" if text.blanks else text.separator
        read = (
            f"read_csv([{listed_paths}], auto_detect=false, header=false, skip={skip}, delim={_literal(separator)}, "
            f"quote='\"', escape='\"', strict_mode=false, columns={{{kinds}}}, store_rejects=true, "
            f"rejects_limit=100000, max_line_size={LINE}, filename=true)"
        )
        parts.append(f"SELECT {picked}, filename FROM {read}")
    return Source(
        name=name,
        kinds=dict.fromkeys(columns, pa.large_string()),
        paths=paths,
        format=format,
        sql={column: _quoted(column) for column in columns},
        relation=f"({' UNION ALL '.join(parts)})",
        read_from=tuple(read_from),
        twice=twice,
        units=units,
        notes=notes,
    )


def _open_unpacked(path: Path) -> Any:
    """Open a file for reading bytes; one that is packed, by its suffix, is unpacked."""
    packing = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}.get(path.suffix.lower())
    return io.BufferedReader(pa.input_stream(str(path), compression=packing))  # pyright: ignore


@functools.lru_cache(maxsize=1 << 16)
def _transcoded(path: Path, changed: int, encoding: str, skip: int, blanks: bool) -> Path:
    """Return a copy of a text file that DuckDB reads: UTF-8, unpacked, without what stands above its first row."""
    target = _scratch() / f"{len(list(_scratch().iterdir()))}-{path.name}.txt"
    with _open_unpacked(path) as packed, target.open("w", encoding="utf-8", newline="") as out:
        lines = codecs.getreader(encoding)(packed, errors="strict")  # pyright: ignore
        for _ in range(skip):
            lines.readline()
        if blanks:
            out.writelines(re.sub(r"[ \t]+", "\t", line.strip()) + "\n" for line in lines)
        else:
            shutil.copyfileobj(lines, out, 1 << 20)
    return target


def _as_utf8(path: Path, text: Text) -> Path:
    if text.encoding == "utf-8" and not text.blanks and path.suffix.lower() != ".bz2":
        return path
    return _transcoded(path, path.stat().st_mtime_ns, text.encoding, text.skip, text.blanks)


def _is_utf8(path: Path) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    with _open_unpacked(path) as file:
        try:
            while block := file.read(1 << 22):
                decoder.decode(block)
        except UnicodeDecodeError:
            return False
    return True


def sniff(path: Path, format: str, header_row: int | None = None) -> Text:
    """Guess the form of a text file from its beginning: the separator, the row of the header, units below it."""
    with _open_unpacked(path) as file:
        head = file.read(HEAD)
        while head.count(b"\n") < 4 and len(head) < LINE and (more := file.read(HEAD)):
            head += more
    encoding = "utf-8"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif not _is_utf8(path):
        encoding = "latin-1"
    text = head.decode(encoding, errors="ignore").removeprefix("\ufeff")
    lines = text.splitlines()
    lines = lines[: 100 if len(head) < HEAD else max(1, min(100, len(lines) - 1))]  # the last one may be cut
    usual = "\t" if format == "tsv" else ","
    best, blanks, score, start = usual, False, (-len(lines), 0), 0
    for separator in dict.fromkeys((usual, ",", ";", "\t", "|", " ")):
        rows = _rows_of(lines, separator)
        first, width, share = _header(rows, lines, header_row)
        above = sum(bool(line.strip()) and line[0] != "#" for line in lines[:first])
        if width > 1 and share >= 0.75 and (separator != " " or score[1] < 2) and (-above, width) > score:
            best, blanks, score, start = separator, separator == " ", (-above, width), first
    rows = _rows_of(lines, best)
    if score[1] == 0:
        start = (
            header_row - 1 if header_row else next((i for i, line in enumerate(lines) if line and line[0] != "#"), 0)
        )
    if start >= len(rows) or not rows[start]:
        raise InputError(
            f"{path} has no line {start + 1} that could name its columns; is it complete, and is it a {format} file?",
            code="empty-file",
        )
    names = [name.strip() for name in rows[start]]
    below = [row for row in rows[start + 1 :] if len(row) == len(names)]
    units = _units(below)
    cells_below = [cell.strip() for row in below for cell in row]
    with_comma = any(re.fullmatch(r"-?\d*,\d+([eE][-+]?\d+)?", cell) for cell in cells_below)
    with_point = any(re.fullmatch(r"-?\d*\.\d+([eE][-+]?\d+)?", cell) for cell in cells_below)
    comma = best != "," and with_comma and not with_point
    said = {"\t": "tabs", " ": "blanks"}.get(best, repr(best))
    notes = [] if best == usual and encoding == "utf-8" else [f"separated by {said}"]
    notes += ["decimal commas"] if comma else []
    notes += (
        [{"utf-16": "read as UTF-16", "latin-1": "read as Latin-1, as it is no UTF-8"}[encoding]]
        if encoding != "utf-8"
        else []
    )
    notes += [f"the header is line {start + 1}"] if start else []
    notes += [f"a row of units below it ({', '.join(unit for unit in units if unit)})"] if units else []
    skip = start + 1 + bool(units)
    return Text(tuple(names), best, encoding, skip, comma, blanks, units, ", ".join(notes))


def _rows_of(lines: Sequence[str], separator: str) -> list[list[str]]:
    """Split each line; a quoted cell of several lines counts in the first of them."""
    if separator == " ":
        return [line.split() for line in lines]
    try:
        return [next(csv.reader([line], delimiter=separator, skipinitialspace=True), []) for line in lines]
    except csv.Error:
        return [line.split(separator) for line in lines]


def _header(rows: list[list[str]], lines: Sequence[str], given: int | None) -> tuple[int, int, float]:
    """Return the row of the header, its width, and the share of the rows below that have it."""
    filled = [i for i, row in enumerate(rows) if row and any(cell.strip() for cell in row)]
    if given is not None:
        start = given - 1
        width = len(rows[start]) if start < len(rows) else 0
    else:
        plain = [i for i in filled if not lines[i].startswith("#")]
        widths = [len(rows[i]) for i in plain]
        width = max(set(widths), key=lambda w: (widths.count(w), w), default=0)
        start = next((i for i in plain if len(rows[i]) == width), 0)
        # Where the first row of that width holds numbers, a row of other width above it is a damaged header.
        named = [i for i in plain if i < start and len(rows[i]) > 1 and not _has_number(rows[i])]
        if named and _has_number(rows[start]):
            start, width = named[-1], len(rows[named[-1]])
        # "#id,time,value" is the header where the first row below it holds numbers.
        above = start - 1
        if above >= 0 and lines[above].startswith("#") and len(rows[above]) == width > 1 and _has_number(rows[start]):
            start = above
    below = [i for i in filled if i > start]
    same = sum(len(rows[i]) == width for i in below)
    return start, width, same / len(below) if below else float(width > 1)


def _has_number(row: Sequence[str]) -> bool:
    return any(re.match(r"[\s\"]*[-+.]?\d", cell) for cell in row)


def _units(rows: list[list[str]]) -> tuple[str, ...]:
    """Return the cells of a first row of units, such as ",d,,mJy"; nothing where it is a row like the others."""
    if len(rows) < 3:
        return ()
    first, others = [cell.strip() for cell in rows[0]], [[cell.strip() for cell in row] for row in rows[1:]]
    columns = list(zip(*others, strict=True))
    numeric = [sum(bool(re.match(r"[-+.]?\d", cell)) for cell in column) > len(column) / 2 for column in columns]
    empty = {"", "-", "none", "string", "str", "text", "[]", "()", *map(str.lower, cells.MISSING)}
    units = ["" if cell.lower() in empty else cell for cell in first]
    of_numbers = [unit for unit, is_number in zip(units, numeric, strict=True) if is_number]
    of_texts = [unit for unit, is_number in zip(units, numeric, strict=True) if not is_number]
    looks = [bool(unit) and len(unit) < 25 and not re.match(r"[-+.<>]?\s*\d", unit) for unit in of_numbers]
    if not any(looks) or any(unit and not look for unit, look in zip(of_numbers, looks, strict=True)):
        return ()
    return tuple(units) if not any(unit and unit[0] not in "([" for unit in of_texts) else ()


# ── Parquet ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _open_parquet(paths: tuple[Path, ...], name: str) -> Source:
    schemas = [pyarrow.parquet.read_schema(path) for path in paths]
    first = schemas[0]
    twice = _one_layout(name, paths, [schema.names for schema in schemas])
    files = f"read_parquet([{', '.join(map(_pattern, paths))}], union_by_name=true, filename=true)"
    with suppress(pa.ArrowException):
        first = pa.unify_schemas(schemas, promote_options="permissive")
    kept = pa.schema([part for part in first if part.name not in twice])
    kinds = flat_kinds(kept)
    sql = {column: _nested(column, kept) for column in kinds}
    return Source(
        name=name,
        kinds=kinds,
        paths=paths,
        format="parquet",
        sql=sql,
        relation=files,
        twice=twice,
        units=_units_of(kept),
    )


def _units_of(schema: pa.Schema) -> dict[str, str]:
    """Return the units in the metadata of Arrow fields."""
    found = {part.name: (part.metadata or {}).get(b"unit") or (part.metadata or {}).get(b"units") for part in schema}
    return {name: unit.decode(errors="replace") for name, unit in found.items() if unit}


def _cells(path: Path, columns: Sequence[str]) -> int:
    """Return the most cells that one of the columns of a Parquet file has, entries of lists counted one by one."""
    file = pyarrow.parquet.read_metadata(path)
    within = re.compile(r"\.(list\.(element|item|array)|bag\.array_element)(?=\.|$)")
    leaves = {within.sub("", file.schema.column(i).path): i for i in range(len(file.schema))}
    wanted = [leaves[name] for name in columns if name in leaves]
    groups = [file.row_group(k) for k in range(file.num_row_groups)]
    return max((sum(group.column(i).num_values for group in groups) for i in wanted), default=file.num_rows)


# ── formats that are read whole ─────────────────────────────────────────────────────────────────────────────────────


def _open_whole(paths: tuple[Path, ...], format: str, name: str) -> Source:
    readers = {
        "arrow": _read_arrow,
        "excel": _read_excel,
        "json": _read_json,
        "jsonl": _read_json_lines,
        "astropy": _read_astropy,
    }
    tables, units, notes, twice = [], {}, (), ()
    for path in paths:
        if format != "arrow" and path.stat().st_size > MAX_BYTES:
            raise InputError(
                f"{path} has {path.stat().st_size:,} bytes, too many for {format}; convert it to Parquet.",
                code="too-large",
            )
        with named(str(path), format):
            table, units_of_file, notes_of_file = readers[format](path)
        units, notes = {**units, **units_of_file}, (*notes, *notes_of_file)
        tables.append(table)
    if format not in ("json", "jsonl"):  # a record may lack fields
        twice = _one_layout(name, paths, [table.column_names for table in tables])
    tables = [_without(table, twice) for table in tables]
    if len(tables) > 1:
        tables = [_numbered(table, i) for i, table in enumerate(tables)]
    whole = pa.concat_tables(tables, promote_options="permissive")
    kinds = flat_kinds(pa.schema([part for part in whole.schema if part.name != "_file"]))
    return Source(
        name=name,
        kinds=kinds,
        paths=paths,
        format=format,
        table=whole,
        twice=twice,
        units={**_units_of(whole.schema), **units},
        notes=notes,
    )


def _numbered(table: pa.Table, number: int) -> pa.Table:
    """Return the table of one of several files, with the number of its file."""
    plain = [
        part.with_type(part.type.value_type if pa.types.is_dictionary(part.type) else part.type)
        for part in table.schema  # Arrow joins no dictionary to a plain column
    ]
    return table.cast(pa.schema(plain)).append_column("_file", pa.array(np.full(len(table), number, np.int32)))


def _without(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return a table without the columns of these names, each of which it may have several times."""
    return table.select([i for i, name in enumerate(table.column_names) if name not in names]) if names else table


def _read_arrow(path: Path) -> tuple[pa.Table, dict[str, str], tuple[str, ...]]:
    table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
    table.validate(full=True)  # Arrow trusts the offsets in a file, and a wrong one ends the process later
    return table, {}, ()


def _read_excel(path: Path) -> tuple[pa.Table, dict[str, str], tuple[str, ...]]:
    try:
        import openpyxl
    except ImportError as error:
        raise InputError(
            f"{path}: an Excel file needs openpyxl (pip install openpyxl); or save the sheet as CSV."
        ) from error
    with zipfile.ZipFile(path) as packed:
        size = sum(part.file_size for part in packed.infolist())
    if size > MAX_BYTES:
        raise InputError(f"{path} unpacks to {size:,} bytes; save the sheet as CSV.", code="too-large")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    try:
        sheets = book.worksheets
        if len(sheets) > 1:
            rest = listed([sheet.title for sheet in sheets[1:]])
            text = (
                f"{path.name}: the first sheet, {sheets[0].title!r}, is read and {rest} not; save each sheet as a file."
            )
            warnings.warn(text, InputWarning, stacklevel=2)
        sheets[0].reset_dimensions()  # what a file says of its size need not be so
        rows, count, line = [], 0, 0
        for line, row in enumerate(sheets[0].iter_rows(values_only=True)):
            count += len(row)
            if count > MAX_CELLS or line > MAX_CELLS // 16 or len(row) > MAX_COLUMNS:
                raise InputError(
                    f"{path}: a cell lies in row {line + 1}, column {len(row)}; take far cells away.", code="too-large"
                )
            if any(cell is not None for cell in row):
                rows.append(row)
    finally:
        book.close()
    if not rows:
        raise NoObservations(f"the first sheet of {path} is empty.")
    width = max(map(len, rows))
    if width * len(rows) > MAX_CELLS:
        raise InputError(
            f"{path} has {len(rows):,} rows and a cell in column {width}; take far cells away.", code="too-large"
        )
    cells_of = [[*row, *[None] * (width - len(row))] for row in rows]
    start = next((i for i, row in enumerate(cells_of) if sum(cell is not None for cell in row) * 2 > width), 0)
    used = [k for k in range(width) if cells_of[start][k] is not None]
    names = [str(cells_of[start][k]).strip() for k in used]
    arrays = [_sheet_column([row[k] for row in cells_of[start + 1 :]]) for k in used]
    return pa.Table.from_arrays(arrays, names=names), {}, (f"the header is row {start + 1}",) if start else ()


def _sheet_column(column: list[Any]) -> pa.Array:
    """Return the cells of a sheet or of records as one column; of several types as text."""
    try:
        return pa.array(column)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        if any(isinstance(cell, list | dict) for cell in column):
            raise
    kinds = {type(cell) for cell in column if cell is not None}
    if kinds <= {int, float}:
        return pa.array([None if cell is None else float(cell) for cell in column])
    return pa.array(
        [None if cell is None else cell.isoformat() if hasattr(cell, "isoformat") else str(cell) for cell in column]
    )


def _read_json(path: Path) -> tuple[pa.Table, dict[str, str], tuple[str, ...]]:
    content = json.loads(path.read_text(encoding="utf-8-sig"))
    if isinstance(content, dict) and all(isinstance(column, list) for column in content.values()):
        if len({len(column) for column in content.values()}) > 1:
            raise ValueError("its columns are not equally long")
        _check_size(path, len(content), max(map(len, content.values()), default=0))
        return pa.table({name: _sheet_column(column) for name, column in content.items()}), {}, ()
    if isinstance(content, list) and all(isinstance(row, dict) for row in content):
        return _of_records(path, content), {}, ()
    raise ValueError("neither a list of records nor lists by column")


def _read_json_lines(path: Path) -> tuple[pa.Table, dict[str, str], tuple[str, ...]]:
    parts, rows, size = [], [], 0
    with _open_unpacked(path) as file:
        for number, line in enumerate(file):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"line {number + 1}: {error}") from None
            if not isinstance(row, dict):
                raise ValueError(f"line {number + 1} is no record")
            rows.append(row)
            size += len(line)
            if size > 1 << 24:
                parts.append(_of_records(path, rows))
                rows, size = [], 0
    if rows or not parts:
        parts.append(_of_records(path, rows))
    return pa.concat_tables(parts, promote_options="permissive") if len(parts) > 1 else parts[0], {}, ()


def _of_records(path: Path, rows: list[dict[str, Any]]) -> pa.Table:
    names: dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(row))
        _check_size(path, len(names), len(rows))
    return pa.table({name: _sheet_column([row.get(name) for row in rows]) for name in names})


def _check_size(path: Path, columns: int, rows: int) -> None:
    if columns > MAX_COLUMNS or columns * rows > MAX_CELLS:
        raise InputError(
            f"{path} has more than {columns - 1:,} different fields in {rows:,} records; give one record per "
            "observation, or convert it to Parquet.",
            code="too-large",
        )


def _read_astropy(path: Path) -> tuple[pa.Table, dict[str, str], tuple[str, ...]]:
    try:
        from astropy.table import QTable
    except ImportError as error:
        raise InputError(f"{path}: this format needs astropy (pip install astropy); or save it as CSV.") from error
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _of_astropy(QTable.read(path))


def _of_astropy(table: Any) -> tuple[pa.Table, dict[str, str], tuple[str, ...]]:
    """Return an astropy table as Arrow's, its units, and what became of its times: these in days, dates as dates."""
    columns: dict[str, pa.Array] = {}
    units: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    for name in table.colnames:
        column = table[name]
        unit = getattr(column, "unit", None)
        if type(column).__name__ == "Time":
            values: Any = column.utc.to_value("datetime64")
        elif type(column).__name__ == "TimeDelta":
            values, unit = column.to_value("day"), "d"
        elif unit is not None and unit.physical_type == "time" and str(unit) != "d":
            values = np.ma.asarray(getattr(column, "value", column)) * unit.to("day")
            notes, unit = (*notes, f"column {name!r} was in {unit}, and is read in days"), "d"
        else:
            values = getattr(column, "value", column)
        units |= {} if unit is None or not str(unit) else {name: str(unit)}
        masked = np.ma.getmaskarray(np.ma.asarray(values))
        plain = np.ma.getdata(np.ma.asarray(values))
        if plain.ndim > 1:
            columns[name] = pa.array(list(plain.reshape(len(plain), -1)))
            continue
        plain = np.char.decode(plain, "utf-8") if plain.dtype.kind == "S" else plain
        array = to_arrow(plain.tolist() if plain.dtype.kind in "OU" else plain)
        columns[name] = pc.if_else(pa.array(masked), pa.scalar(None, array.type), array) if masked.any() else array  # pyright: ignore
    return pa.table(columns), units, notes


@contextmanager
def named(name: str, format: str) -> Iterator[None]:
    """Name the file in what its reader raises."""
    try:
        yield
    except InputError:
        raise
    except UNREADABLE as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:300]
        raise InputError(
            f"{name} cannot be read as {format}: {reason}. Is it complete, and is it a {format} file?",
            code="unreadable",
        ) from error
