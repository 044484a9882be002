"""Where tables come from: files of every kind, several at once, standard input, and data frames.

A `Source` is one relation of DuckDB with the columns by name ("lc.time" is the field `time` of a nested column `lc`).
It reads some columns as Arrow arrays, and hands out whole series part after part, however large the table and in
whichever order its rows come.
"""

from __future__ import annotations

import functools
import itertools
import os
import re
import shutil
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from rotarymae.errors import InputError, InputWarning, did_you_mean, listed
from rotarymae.series import cells
from rotarymae.series.cells import LOWER, UPPER, is_list, to_arrow
from rotarymae.system import free_memory
from rotarymae.system.database import connection, scratch
from rotarymae.tables import formats
from rotarymae.tables.formats import PACKED, as_utf8, named, numbers_in, one_type, values_in

FORMATS = {
    **dict.fromkeys((".csv", ".txt", ".dat", ".psv"), "csv"),
    ".tsv": "tsv",
    **dict.fromkeys((".parquet", ".pq"), "parquet"),
    **dict.fromkeys((".arrow", ".feather"), "arrow"),
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "json"),
    ".xlsx": "excel",
    **dict.fromkeys((".ecsv", ".fits", ".fit"), "astropy"),
}
BEGINNINGS = {
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
    b"PK\3\4": ".xlsx",
    b"\x1f\x8b": ".csv.gz",
    b"{": ".jsonl",
    b"[": ".json",
}
NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a]")  # a byte that no text has
NAME = re.compile(
    "(.*?)({})?({})?$".format(*("|".join(map(re.escape, part)) for part in (FORMATS, PACKED))), re.I | re.S
)
SPACE = "[.\\s'’\u00a0\u202f]"  # between thousands, where the comma is the decimal mark
COMMA_OR_SPACES = rf"\s*([<>]=?|[≤≥])?\s*[-+]?(\d{{1,3}}({SPACE}\d{{3}})+(,\d+)?|\d*,\d+)([eE][-+]?\d+)?\s*-?\s*"
DATE_PARTS = {  # as columns are called that hold them, the likeliest name first, and their least and greatest number
    "year": (("year", "yyyy", "yy", "yr"), 0, 9999),
    "month": (("month", "mon", "mo", "mm"), 1, 12),
    "quarter": (("quarter", "qtr", "q", "quartal", "trimestre"), 1, 4),
    "day": (("day", "dd", "dy", "da"), 1, 31),
    "day of year": (("doy", "dayofyear", "day_of_year", "yday", "jday", "julian_day"), 1, 366),
    "week": (("week", "wk", "weeknum", "isoweek", "epiweek", "woche", "kw"), 1, 53),
    "hour": (("hour", "hh", "hr"), 0, 24),
    "minute": (("minute", "min", "mn", "mi", "mm"), 0, 59),
    "second": (("second", "sec", "ss"), 0, 60),
}
CLOCK_PARTS = {"hour": 3600, "minute": 60, "second": 1}  # and their seconds
DATES = (
    ("year", "month", "day", *CLOCK_PARTS),
    ("year", "day of year", *CLOCK_PARTS),
    ("year", "week"),
    ("year", "quarter"),
)  # from the coarsest part on
FILE = "rotarymae_file"  # the column with the file of each row
ONE_NAME = "each column that is read needs a name of its own."
STATISTICS = {"max", "mean", "avg"}  # next to these, "min" is the least value, and no minute
ID_TEXT = pa.large_string()  # the type of ids that are names of files or joined: texts, also where they are digits
MAX_COLUMNS = 25_000
RUNS = 8  # of rows that a sample takes from a table
SAMPLE_BYTES = 1 << 24  # bytes of text; more are not read for a sample of rows
COPIES = 4  # what reading and sorting a table takes at its peak, over the bytes of its numbers


@dataclass(frozen=True)
class Source:
    """One table in memory, or in one or several files of one format; make it with `open_source`.

    Attributes:
        name: the table's, for messages.
        kinds: {column: Arrow type} of the columns that can be read, in their order; all are text in a text file. A
            column of structs is listed by its fields, "column.field". Plain columns come before lists and fields.
        sql: {column: its SQL expression over `relation`}.
        relation: the SQL that stands after FROM when DuckDB reads the table; with a column `FILE`, if there are several
            files.
        paths: the files; none for a data frame.
        format: of the files, a value of `FORMATS`, "csv" also for Excel sheets; "memory" for a data frame.
        table: the Arrow table that `relation` calls "rotarymae_table", where it is in memory; else None.
        read_from: the files that DuckDB reads, `paths` or copies of them; none for Parquet files and in memory.
        unreadable: {column: error to raise if it is read}, for names that occur twice, values of mixed type, and lists
            within lists.
        units: {column: unit}, as far as the table says units.
        notes: sentences on how the table is read, where that was guessed.
    """

    name: str
    kinds: dict[str, pa.DataType]
    sql: dict[str, str] = field(repr=False)
    relation: str = field(repr=False)
    paths: tuple[Path, ...] = ()
    format: str = "memory"
    table: pa.Table | None = field(default=None, repr=False)
    read_from: tuple[Path, ...] = ()
    unreadable: dict[str, InputError] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        """The names of the columns that can be read, in their order."""
        return list(self.kinds)

    @property
    def is_text(self) -> bool:
        """Whether the table is in text files or Excel sheets, all cells of which are read as text, numbers too."""
        return self.format in ("csv", "tsv")

    @property
    def said_unreadable(self) -> list[str]:
        """Sentences for the user on the columns that cannot be read.

        All columns whose names occur twice share one sentence; each other column has its own.
        """
        twice = [name for name, error in self.unreadable.items() if error.code == "column-twice"]
        said = [f"columns {listed(twice, 20)} are each there more than once; {ONE_NAME}"] if len(twice) > 1 else []
        return said + [error.message for name, error in self.unreadable.items() if not said or name not in twice]

    def with_ids_of_files(self) -> Source:
        """Return the table with a column "file", which holds the id of each row's file (`file_ids`).

        For a data frame the id is the table's name in all rows. A column "file" of the table is replaced. A sentence
        is added to `notes`: each file, or the whole table, is one series.
        """
        said, cell = "the table is one series", _literal(self.file_ids[0] if self.paths else self.name)
        if len(self.paths) > 1:
            files = zip(self.read_from or self.paths, self.file_ids, strict=True)
            pairs = ", ".join(f"{_literal(str(path))}: {_literal(id)}" for path, id in files)
            said, cell = "each file is one series", f"MAP {{{pairs}}}[{FILE}]"
        kinds, sql = {**self.kinds, "file": ID_TEXT}, {**self.sql, "file": cell}
        return replace(self, kinds=kinds, sql=sql, notes=(*self.notes, f"no column of ids: {said}"))

    def with_empty(self, names: Sequence[str]) -> Source:
        """Return the table with further columns, which it lacks, of missing numbers (float64)."""
        kinds, sql = dict.fromkeys(names, pa.float64()), dict.fromkeys(names, "NULL::DOUBLE")
        return replace(self, kinds={**self.kinds, **kinds}, sql={**self.sql, **sql})

    def with_numbered(self, stem: str) -> Source:
        """Return the table with numbered columns, such as FLUX.1, FLUX.2, ..., joined to one list in each row.

        Each row is then a series. Two columns of lists replace the numbered ones. For FLUX.1 and FLUX.2 they are:

        - "number": in each row the list [1, 2] of the numbers (or dates) in the columns' names;
        - `values_in(stem)`, here "FLUX": the list of the row's cells, as texts if one of the columns holds texts.

        If the table has no column "series", one with the number of the row, from 1, is added. `notes` tells the user
        so.

        Args:
            stem: the columns' common beginning, "FLUX."; "" for columns whose whole names are numbers or dates.

        Raises:
            InputError: no such columns ("unknown-column"); one that cannot be read (in `unreadable`, with its error);
                another column that already has the name of one of the two new ones ("column-twice").
        """
        self.need([*numbers_in(self.unreadable, stem)])
        at = numbers_in(self.kinds, stem)
        names = sorted(at, key=at.__getitem__)
        if not names:
            raise InputError(
                f"{self.name} has no columns {stem}1, {stem}2, ...; give --numbered the common beginning of such "
                f"names. Its columns are {listed(self.columns, 20) or 'none'}.",
                code="unknown-column",
            )
        values, texts = values_in(stem), any(cells.is_text(self.kinds[name]) for name in names)
        kinds = {name: kind for name, kind in self.kinds.items() if name not in at}
        if taken := [name for name in ("number", values) if name in kinds]:
            raise InputError(
                f"--numbered joins the columns {stem}1, {stem}2, ... of {self.name} to new ones, whose names other "
                f"columns already have: {listed(taken)}. Rename these.",
                code="column-twice",
            )
        numbers = pa.array([at[name] for name in names])
        written = "TIMESTAMP '{}'" if pa.types.is_timestamp(numbers.type) else "{}"
        cell, kind = ("CAST({} AS VARCHAR)", pa.string()) if texts else ("{}", self.kinds[names[0]])
        cells_of = {
            "series": self.sql.get("series", "_row"),
            "number": f"[{', '.join(map(written.format, numbers.to_pylist()))}]",
            values: f"[{', '.join(cell.format(self.sql[name]) for name in names)}]",
        }
        rest = [name for name in kinds if stem and name.startswith(stem)]
        notes = [f"each row is a series of {len(names):,} columns {', '.join(names[:2])}, ..."]
        notes += [f"{listed(rest)} begin with {stem!r}, too, and are no part of the series"] if rest else []
        kinds.setdefault("series", pa.int64())
        kinds |= {"number": pa.list_(numbers.type), values: pa.list_(kind)}
        return replace(
            self,
            kinds=kinds,
            sql={**self.sql, **cells_of},
            relation=f"(SELECT *, row_number() OVER () AS _row FROM {self.relation})",
            notes=(*self.notes, *notes),
        )

    def with_time(self, name: str) -> Source:
        """Return the table with columns of parts of dates replaced by one column of timestamps, called `name`.

        A timestamp is the beginning of what the parts name, such as the first day of a month or the Monday of a week.
        It is null in rows whose parts make no date. Years of two digits stand for 1969 to 2068.

        The table is returned as it is if it has a column `name`, if it lacks one of the columns that `name` joins, or
        if these skip a part, as "year+day" does.

        Args:
            name: the names of the columns joined by "+", such as "year+month+day", which `dates_in_parts` must know.
        """
        parts = next(iter(dates_in_parts(part for part in name.split("+") if part in self.kinds)), {})
        if name in self.kinds or not parts or len(parts) < name.count("+") + 1:
            return self
        at = {part: _number_of_part(self.sql[column], part) for part, column in parts.items()}
        year = f"({at['year']} + CASE WHEN {at['year']} < 69 THEN 2000 WHEN {at['year']} < 100 THEN 1900 ELSE 0 END)"
        days, how = (at.get("month", "1"), at.get("day", "1")), "%Y-%m-%d"
        if "quarter" in at:  # its first day
            days = (f"3 * {at['quarter']} - 2", "1")
        if "day of year" in at:
            days, how = (at["day of year"],), "%Y-%j"
        if "week" in at:  # its Monday
            days, how = (at["week"], "1"), "%G-%V-%u"
        date = " || '-' || ".join(f"CAST({number} AS INTEGER)" for number in (year, *days))
        clock = " + ".join(f"{at.get(part, '0')} * {size}" for part, size in CLOCK_PARTS.items())
        sql = f"try_strptime({date}, '{how}') + to_microseconds(CAST(round(({clock}) * 1e6) AS BIGINT))"
        kinds = {column: kind for column, kind in self.kinds.items() if column not in parts.values()}
        return replace(self, kinds={**kinds, name: pa.timestamp("us")}, sql={**self.sql, name: sql})

    def with_id(self, name: str) -> Source:
        """Return the table with a further column of ids, called `name`, that are joined from several columns.

        For the name "subject+trial", an id is a text such as "S1+2" of the cells of subject and trial, without blanks
        around them. A missing cell counts as an empty text, as in "+2"; if all of these cells are missing or empty, the
        id is missing. The table is returned as it is if it has a column `name`, or if `name` has no "+".

        Raises:
            InputError: a joined column that is absent ("unknown-column"), or that cannot be read (in `unreadable`, with
                its error).
        """
        parts = id_parts(name, self.kinds)
        if not parts:
            return self
        self.need(parts)
        cell = " || '+' || ".join(f"coalesce(trim(CAST({self.sql[part]} AS VARCHAR)), '')" for part in parts)
        cell = f"nullif({cell}, '{'+' * (len(parts) - 1)}')"
        return replace(self, kinds={**self.kinds, name: ID_TEXT}, sql={**self.sql, name: cell})

    @functools.cached_property
    def file_ids(self) -> tuple[str, ...]:
        """The names of the files without suffix; if any two are equal, the path of each with suffix instead.

        Paths begin below the deepest folder that holds all files.
        """
        stems = tuple(stem(path) for path in self.paths)
        if len(set(stems)) == len(stems):
            return stems
        above = os.path.commonpath(self.paths)
        return tuple(path.relative_to(above).as_posix() for path in self.paths)

    @contextmanager
    def named(self) -> Iterator[None]:
        """Put the table's name before the message of an InputError that is raised inside the with statement.

        The message stays as it is if it begins with the name, or if the table is a data frame.
        """
        try:
            yield
        except InputError as error:
            said = self.format == "memory" or error.message.startswith(self.name)
            raise (error if said else error.within(self.name)) from error

    def need(self, columns: Sequence[str], advice: str = "") -> None:
        """Check that the table has some columns, and that they can be read.

        Args:
            columns: their names.
            advice: what to do about absent ones. It is put between their names and a full stop, so it begins with its
                own separator, such as "; ".

        Raises:
            InputError: a column is absent ("unknown-column"), or it is a key of `unreadable`, because it cannot be
                read; then the error stored there is raised.
        """
        for name in columns:
            if name in self.unreadable:
                raise self.unreadable[name].within(self.name)
        missing = [name for name in columns if name not in self.kinds]
        if missing:
            raise InputError(
                f"{self.name} has no column {listed(missing)}{advice}.{did_you_mean(missing[0], self.columns)} Its "
                f"columns are {listed(self.columns, 20) or 'none'}.",
                code="unknown-column",
            )

    # ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def sample(self, rows: int) -> Source:
        """Return a table with some rows of this one, in their order: at most `rows`, which must be 8 or more.

        - A table with no more rows than that is returned as it is.
        - Of text or JSON files of more than 16 MiB, the first rows are taken.
        - Otherwise, eight runs of rows are taken, equally long and evenly spread.

        Raises InputError for a file that cannot be read ("unreadable").
        """
        if (self._text_size or 0) > SAMPLE_BYTES:
            starts, count = [0], rows
        else:
            all_rows, count = self.rows(), rows // RUNS
            if all_rows <= rows:
                return self
            starts = [k * (all_rows - count) // (RUNS - 1) for k in range(RUNS)]
        runs = (f"(SELECT * FROM {self.relation} LIMIT {count} OFFSET {start})" for start in starts)
        return replace(self, relation=f"({' UNION ALL '.join(runs)})")

    def read(self, columns: Sequence[str], distinct: bool = False, equal: bool = True) -> dict[str, pa.Array]:
        """Read columns as {name: Arrow array}, all equally long, in the order of the rows.

        A list becomes rows, one for each of its entries; an empty or missing list becomes one row with null. The other
        cells of its row are repeated.

        Args:
            columns: their names.
            distinct: return different rows only, in the order of their first appearance, after lists became rows.
            equal: refuse a row whose lists differ in length; otherwise the shorter lists are filled with null.

        Raises:
            InputError: a column that is absent ("unknown-column") or one of `unreadable`; a file that cannot be read
                ("unreadable"); a row whose lists differ in length ("unequal-lists").
        """
        columns = list(dict.fromkeys(columns))
        self.need(columns)
        rows = f"(SELECT {self._selected(columns)} FROM {self.relation})"
        query = f"SELECT {self._flattened(columns)} FROM {rows}"
        if distinct:
            query = f"SELECT * EXCLUDE _at FROM (SELECT *, row_number() OVER () AS _at FROM ({query})) "
            query += "GROUP BY ALL ORDER BY min(_at)"
        with named(self.name, self.format):
            table = self._database.sql(query).to_arrow_table()
            return self._restored(table, columns, equal)

    def rejected(self) -> tuple[int, str]:
        """Return how many text lines were left out for a wrong number of cells, and a text about the first such line.

        - The result is (0, "") if no line was left out, or if the table is not of text files.
        - Lines that `read` and `rows` have met so far are counted; if neither was called, the files are read now.
        - A line counts once, even if it is read again. Each reading adds at most 100,000 lines.
        - With several files, the first line is the one with the smallest line number.
        """
        if not self.is_text:
            return 0, ""
        paths = ", ".join(_literal(str(path)) for path in self.read_from)
        rejects = f"reject_errors JOIN reject_scans USING (scan_id, file_id) WHERE file_path IN ({paths})"
        query = "SELECT count(DISTINCT (file_path, line)), arg_min(file_path, line), min(line), "
        query += f"arg_min(error_message, line) FROM {rejects}"
        try:
            count, path, line, why = self._database.sql(query).fetchall()[0]
        except duckdb.CatalogException:  # all was read on other connections
            self.rows()
            count, path, line, why = self._database.sql(query).fetchall()[0]
        where = f" of {Path(path).name}" if len(self.paths) > 1 and path else ""
        return count, f"line {line}{where}: {why}".replace("\n", " ") if count else ""

    def observations(self, columns: Sequence[str]) -> int:
        """Return how many observations the columns hold: rows, or list entries if any of the columns holds lists.

        The entries are those of the first column of lists. For text or JSON files the number is an estimate, a row for
        each 32 bytes. Raises InputError for another file that cannot be read ("unreadable").
        """
        if self._text_size is not None:
            return self._text_size // 32
        lists = [name for name in columns if name in self.kinds and is_list(self.kinds[name])]
        count = f"coalesce(sum(len({self.sql[lists[0]]})), 0)" if lists else "count(*)"
        with named(self.name, self.format):
            return int(self._database.sql(f"SELECT {count} FROM {self.relation}").fetchall()[0][0])

    def rows(self) -> int:
        """Return the number of rows; those of text are counted by reading. Raises InputError for an unreadable file."""
        with named(self.name, self.format):
            return self._database.sql(f"SELECT count(*) FROM {self.relation}").fetchall()[0][0]

    def too_large(self, columns: Sequence[str], memory: float | None = None) -> bool:
        """Return whether reading some columns would take too much memory, by an estimate from the number of rows.

        A data frame is never too large.

        Args:
            columns: their names.
            memory: bytes; half of what is free, if None.
        """
        memory = free_memory() / 2 if memory is None else memory
        return self.format != "memory" and self.observations(columns) * max(1, len(columns)) * 8 * COPIES > memory

    def series(self, columns: Sequence[str], id: str, size: int) -> Iterator[dict[str, pa.Array]]:
        """Yield the table in parts of whole series, {name: Arrow array}, in the order in which the series first appear.

        Lists become rows as in `read`. If the rows of a series are not consecutive, the table is sorted on disk first;
        within a series rows keep their order.

        Args:
            columns: the names of the columns to read.
            id: the column that says which series a row belongs to; blanks around texts do not count. Rows without an id
                make a series, too.
            size: about how many observations a part has; more if a series is longer.

        Raises:
            InputError: as `read` does.
        """
        columns = list(dict.fromkeys(columns))
        self.need([*columns, id])
        database = self._connect()  # which others may not use while its rows are read
        key = self.sql[id]
        key = f"trim({key})" if cells.is_text(self.kinds[id]) else key
        rows = f"(SELECT {self._selected(columns)}, {key} AS _id FROM {self.relation})"
        with named(self.name, self.format):
            database.execute(
                "CREATE TEMP TABLE _firsts AS SELECT _id, min(_row) AS _first, max(_row) - min(_row) >= count(*) "
                f"AS _apart FROM {rows} GROUP BY 1"
            )
            apart, count = database.sql("SELECT bool_or(_apart), count(*) FROM _firsts").fetchall()[0]
            if apart:
                rows = f"(SELECT n.* FROM {rows} n JOIN _firsts f ON n._id IS NOT DISTINCT FROM f._id "
                rows += "ORDER BY f._first, n._row)"
            query = f"SELECT {self._flattened(columns)}, _id FROM {rows}"
            pending: list[pa.Table] = []
            for batch in database.sql(query).to_arrow_reader(max(1, size)) if count else ():
                table = pa.Table.from_batches([batch])
                starts = np.flatnonzero(np.diff(cells.encode(to_arrow(table["_id"]))[0])) + 1
                if pending and pending[-1]["_id"][-1].as_py() != table["_id"][0].as_py():
                    starts = np.append(0, starts)
                if len(starts):  # the last series may go on in the next batch
                    yield self._restored(pa.concat_tables([*pending, table.slice(0, starts[-1])]), columns)
                    pending, table = [], table.slice(starts[-1])
                pending.append(table)
            if pending:
                yield self._restored(pa.concat_tables(pending), columns)

    @property
    def _text_size(self) -> int | None:
        """Size of text, JSON or Excel files in bytes, to estimate the number of rows; None for other tables.

        A compressed file counts as four times its size.
        """
        if self.table is not None or self.format == "parquet":
            return None
        return sum(path.stat().st_size * (4 if path.suffix.lower() in PACKED else 1) for path in self.paths)

    @functools.cached_property
    def _database(self) -> duckdb.DuckDBPyConnection:
        """The DuckDB connection that `read`, `rows` and `rejected` share.

        DuckDB keeps the text lines that it left out in tables of this connection.
        """
        return self._connect()

    def _connect(self) -> duckdb.DuckDBPyConnection:
        """Return a new DuckDB connection to this process's database, in which `self.relation` can be queried."""
        database = connection().cursor()
        if self.table is not None:
            database.register("rotarymae_table", self.table)
        return database

    def _selected(self, columns: Sequence[str]) -> str:
        """Return the SQL expressions of columns, joined by commas for SELECT, that make columns c0, c1, ... and _row.

        Numbers stand for names, as DuckDB takes "time" and "Time" for one; _row is the number of the row, from 1.
        """
        cells_of = [f"{self.sql[name]} AS c{i}" for i, name in enumerate(columns)]
        return ", ".join([*cells_of, "row_number() OVER () AS _row"])

    def _flattened(self, columns: Sequence[str]) -> str:
        """Return the SQL expressions, joined by commas, of a SELECT that makes one row of each entry of the lists.

        It selects from a table with the columns that `_selected(columns)` makes: c0, c1, ... and _row. An empty list
        gives one row with null. If several columns hold lists, a column _unequal is added: the row's number if its
        lists differ in length, else null. Without columns the result is "1", as SELECT needs something.
        """
        lists = [i for i, name in enumerate(columns) if is_list(self.kinds[name])]
        cells_of = [f"c{i}" for i in range(len(columns))]
        for i in lists:
            cells_of[i] = f"unnest(CASE WHEN len(c{i}) > 0 THEN c{i} ELSE [NULL] END) AS c{i}"
        if len(lists) > 1:
            lengths = ", ".join(f"coalesce(len(c{i}), 0)" for i in lists)
            cells_of.append(f"CASE WHEN len(list_distinct([{lengths}])) > 1 THEN _row END AS _unequal")
        return ", ".join(cells_of) or "1"

    def _restored(self, table: pa.Table, columns: Sequence[str], equal: bool = True) -> dict[str, pa.Array]:
        """Return the result of a query by `_flattened` as {name: Arrow array} for the names in `columns`.

        Each array is cast to the column's type in `self.kinds`, or to the type of the entries for a column of lists, as
        DuckDB lacks some types, such as durations. It keeps DuckDB's type if that fails. Raises InputError
        ("unequal-lists") if lists in a row differ in length, unless `equal` is false.
        """
        if equal and "_unequal" in table.column_names and len(unequal := table["_unequal"].drop_null()):
            lists = [name for name, kind in self.kinds.items() if is_list(kind)]
            raise InputError(
                f"row {unequal[0]} of {self.name} (counted from 1) has lists of different lengths in some of the "
                f"columns {listed(lists, 20)}; make a row's lists equally long.",
                code="unequal-lists",
            )
        arrays = {}
        for i, name in enumerate(columns):
            array, kind = to_arrow(table.column(i)), self.kinds[name]
            kind = kind.value_type if is_list(kind) else kind
            if array.type != kind and not pa.types.is_string_view(kind):
                with suppress(pa.ArrowException):
                    array = array.cast(kind)
            arrays[name] = cells.with_usual_digits(array)
        return arrays


# ── DuckDB ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _quoted(name: str) -> str:
    """Return the name of a column as an SQL identifier, in double quotes; those in the name are doubled."""
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    """Return a text as an SQL string, in single quotes; those in the text are doubled."""
    return "'" + text.replace("'", "''") + "'"


def _pattern(path: Path) -> str:
    """Return a path as an SQL string in which DuckDB sees no wildcards: "*", "?" and "[" stand in brackets."""
    return _literal(re.sub(r"[*?\[]", lambda match: f"[{match[0]}]", str(path)))


def _with_point(cell: str) -> str:
    """Return SQL that turns the decimal comma of a text, the SQL `cell`, into a point: "1.234,5" becomes "1234.5".

    Marks between thousands are left out. Texts that are no such numbers stay as they are.
    """
    plain = f"replace(regexp_replace({cell}, {_literal(SPACE)}, '', 'g'), ',', '.')"
    return f"CASE WHEN regexp_full_match({cell}, {_literal(COMMA_OR_SPACES)}) THEN {plain} ELSE {cell} END"


def _flat(schema: pa.Schema, columns: Sequence[str] | None = None) -> tuple[dict[str, pa.DataType], dict[str, str]]:
    """Flatten an Arrow schema: replace a column of structs by a column "column.field" for each of its fields.

    The fields of a list of structs become lists. A dictionary-encoded column has the type of its values. If two columns
    would have the same name, only one is kept and the other is dropped: a plain column is preferred to a field of a
    struct, and otherwise the first is kept.

    Args:
        schema: the Arrow schema.
        columns: the SQL expressions of its columns; None for their quoted names.

    Returns:
        {column: Arrow type} and {column: SQL expression}.
    """
    kinds: dict[str, pa.DataType] = {}
    coded = pa.types.is_dictionary
    sql: dict[str, str] = {}

    def add(name: str, kind: pa.DataType, cell: str, of_list: str | None = None) -> None:
        """Add a column, or each field of a struct, to `kinds` and `sql`, unless its name is there.

        `of_list` is the SQL expression of the list of structs that the column is a field of, and `_x` in its SQL
        expression `cell` stands for an entry of this list; None outside of one.
        """
        if of_list is None and is_list(kind) and pa.types.is_struct(kind.value_type):
            kind, cell, of_list = kind.value_type, "_x", cell
        if pa.types.is_struct(kind):
            for part in kind.fields:
                add(f"{name}.{part.name}", part.type, f"{cell}.{_quoted(part.name)}", of_list)
        elif name not in kinds:
            kind = pa.large_list(kind.value_type.value_type) if is_list(kind) and coded(kind.value_type) else kind
            kind = kind.value_type if coded(kind) else kind
            kinds[name] = kind if of_list is None else pa.large_list(kind)
            sql[name] = cell if of_list is None else f"[{cell} for _x in {of_list}]"

    pairs = list(zip(schema, columns or map(_quoted, schema.names), strict=True))
    for part, cell in sorted(pairs, key=lambda pair: pa.types.is_nested(pair[0].type)):
        add(part.name, part.type, cell)
    return kinds, sql


# ── opening ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def open_source(source: Any, header_row: int | None = None, numbered: str | None = None) -> Source:
    """Open a table for reading: a file, a folder, a pattern, standard input, or a data frame.

    Args:
        source: the path of a file or folder, a pattern such as "night*.csv", "-" for standard input, or a data frame.
            Several files are one table. A `Source` is returned as it is, except for `numbered`.
        header_row: the line of a text file, or row of an Excel sheet, counted from 1, that names the columns; None
            guesses it.
        numbered: "FLUX." if each row is a series, with its values in the columns FLUX.1, FLUX.2, ...: the beginning of
            their names. `Source.with_numbered` joins them to lists. In a `Source` that has these lists already, nothing
            changes. None without such columns.

    Raises:
        InputError: no such file ("no-file"); a file that is no text, with a suffix that is not known, or a text that is
            no table ("unknown-format"); files of several formats, or with different columns ("unknown-column"); a file
            that cannot be read ("unreadable"), for which a package is not installed, that is "too-large", is empty
            ("empty-file", or `NoObservations` for a sheet), or whose lines are longer than its header
            ("unequal-lines"); an object that is no table ("no-frame"); what `Source.with_numbered` refuses.

    Warns:
        InputWarning: an Excel file has further sheets, which are not read; files give a column different units.
    """
    if numbered is not None:
        opened = open_source(source, header_row)
        joined = isinstance(source, Source) and is_list(opened.kinds.get("number", pa.null()))
        return opened if joined else opened.with_numbered(numbered)
    if isinstance(source, Source):
        return source
    opened = _open_files(source, header_row) if isinstance(source, str | os.PathLike) else _open_frame(source)
    deep = {
        name: InputError(
            f"column {name!r} holds {'maps' if pa.types.is_map(kind) else 'lists of lists or objects'}, which are not "
            "opened; make a row of each inner entry first, as jq does, or pandas.json_normalize with record_path.",
            code="nested",
        )
        for name, kind in opened.kinds.items()
        if pa.types.is_map(kind) or (is_list(kind) and pa.types.is_nested(kind.value_type))
    }
    kinds = {name: kind for name, kind in opened.kinds.items() if name not in deep}
    return replace(opened, kinds=kinds, unreadable=opened.unreadable | deep)


def _open_files(source: str | os.PathLike[str], header_row: int | None) -> Source:
    """Open the files that a path, a folder, a pattern or "-" names as one table; `open_source` says what it raises."""
    name = str(source)
    paths, name = ((standard_input(),), "standard input") if name == "-" else (table_files(Path(name)), name)
    kinds = {format_of(path) for path in paths}
    if len(kinds) > 1:
        several = ", ".join(sorted(kinds))
        raise InputError(f"{source} holds tables of several formats ({several}); name the files of one format.")
    format = kinds.pop()
    name = name if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    with named(name, format):
        if format == "excel":
            copies = tuple(formats.sheet_as_text(path, path.stat().st_mtime_ns) for path in paths)
            opened = _open_text(paths, copies, "csv", name, header_row)
        elif format in ("csv", "tsv"):
            opened = _open_text(paths, paths, format, name, header_row)
        elif format == "parquet":
            opened = _open_parquet(paths, name)
        else:
            opened = _open_json(paths, name) if format == "json" else _open_whole(paths, format, name)
    unknown = dict.fromkeys(path.suffix for path in paths if _suffix(path) is None)
    read_as = "JSON" if format == "json" else "text"
    notes = [f"read as {read_as}, as the suffix {suffix!r} tells no format" for suffix in unknown]
    return replace(opened, notes=(*notes, *opened.notes))


def _open_frame(frame: Any) -> Source:
    """Make a `Source` of a pandas, polars, Arrow or astropy table, or that of another library that narwhals supports.

    - A level of a pandas index becomes a column if it has a name that no other column or level has. A single level of
      dates or durations without a name becomes the column "time", unless there is one.
    - Columns of mixed type, and those whose names are equal as texts, raise an error only when they are read.

    Raises:
        InputError: another object, or a lazy frame ("no-frame").
    """
    if hasattr(frame, "colnames"):  # of astropy
        table, units, notes, unreadable = formats.of_astropy(frame)
        return _of_tables([table], "the table", units=units, notes=notes, unreadable=unreadable)
    if isinstance(frame, pa.Table):
        return _of_tables([frame], "the table")
    columns: dict[str, Any] = {}
    unreadable = {}
    if nw.dependencies.is_pandas_dataframe(frame):
        unreadable = _twice(map(str, frame.columns))
        single = [str(name) not in unreadable for name in frame.columns]
        frame = frame.loc[:, single] if unreadable else frame
        if frame.index.names == [None] and frame.index.dtype.kind in "mM" and "time" not in frame.columns:
            frame = frame.rename_axis("time")
        names = list(frame.index.names)
        levels = [name for name in names if not (name is None or name in frame.columns or names.count(name) > 1)]
        frame = frame.reset_index(level=levels) if levels else frame
    try:
        seen = nw.from_native(frame, eager_only=True)
    except TypeError as error:
        raise InputError(
            f"the frame is of the type {type(frame).__module__}.{type(frame).__name__}; a pandas, polars, Arrow or "
            "astropy table was wanted. Collect a lazy frame with .collect(), make any other kind a data frame first, "
            "and read a file with SeriesDataset.from_file.",
            code="no-frame",
        ) from error
    for name in seen.columns:
        try:
            columns[str(name)] = _frame_column(seen, name)
        except InputError as error:
            unreadable[str(name)] = error
    return _of_tables([pa.table(columns)], "the table", unreadable=unreadable)


def _frame_column(frame: nw.DataFrame[Any], name: str) -> pa.Array:
    """Return the column `name` of a data frame as an Arrow array; if numbers and limits ("<0.01") are mixed, as texts.

    Raises:
        InputError: values of other mixed types, or of a type that Arrow lacks ("mixed-type").
    """
    with one_type(name):
        column = frame.get_column(name)
        if column.dtype in (nw.Int128, nw.UInt128):  # which Arrow does not have
            return to_arrow(column.to_list())
        with suppress(pa.ArrowException, NotImplementedError):  # a library that cannot convert a type of its own
            return to_arrow(column.to_arrow())
        array = column.to_numpy()
        texts = [cell for cell in array if isinstance(cell, str)]
        limits = bool(texts) and all(re.match(f"{UPPER}|{LOWER}", text) for text in texts)
        return to_arrow(array.astype(str) if limits else array)


def _of_tables(tables: Sequence[pa.Table], name: str, paths: tuple[Path, ...] = (), **attributes: Any) -> Source:
    """Return Arrow tables as one `Source` in memory, their rows one below the other.

    Args:
        tables: one table for each of the `paths`; a single table if there are none.
        name: what messages call the tables together.
        paths: the files that the tables were read from. If there are several, a column `FILE` holds each row's path.
        **attributes: other attributes of `Source`. Units in the tables' metadata are added to `units`, and columns
            whose name occurs twice to `unreadable`.

    Raises:
        InputError: tables of `paths` with different columns ("unknown-column"), or with too many columns ("too-large").
    """
    layouts = [table.column_names for table in tables]
    twice = _one_layout(name, paths, layouts) if paths else _twice(layouts[0])
    tables = [table.select([i for i, c in enumerate(table.column_names) if c not in twice]) for table in tables]
    table = tables[0]
    if len(tables) > 1:
        plain = [pa.table({c: to_arrow(table[c]) for c in table.column_names}) for table in tables]  # no dictionaries
        table = pa.concat_tables(plain, promote_options="permissive")
    columns, fields = [], []
    for column, part in zip(table.columns, table.schema):
        if pa.types.is_fixed_size_list(column.type):
            column = column.cast(pa.large_list(column.type.value_type))
        kind = column.type.value_type if is_list(column.type) else column.type
        column = to_arrow(column) if pa.types.is_dictionary(kind) else column
        fields.append(part.with_type(column.type))
        if pa.types.is_duration(column.type):  # which DuckDB knows as intervals of months, days and microseconds
            column = column.cast(pa.int64())
        columns.append(column.cast(pa.float32()) if pa.types.is_float16(column.type) else column)
    schema, numbers = pa.schema(fields), [f"c{i}" for i in range(len(columns))]
    kinds, sql = _flat(schema, numbers)
    if len(paths) > 1:
        files = [str(path) for path, table in zip(paths, tables) for _ in range(len(table))]
        columns, numbers = [*columns, pa.array(files)], [*numbers, FILE]
    if not columns:
        columns, numbers = [pa.nulls(len(table))], ["c0"]
    attributes["units"] = {**_units_of(schema), **attributes.get("units", {})}
    attributes["unreadable"] = attributes.get("unreadable", {}) | twice
    whole = pa.table(columns, names=numbers)
    return Source(name, kinds, sql, "rotarymae_table", paths, table=whole, **attributes)


def without_headers(columns: dict[str, pa.Array], name: str) -> tuple[dict[str, pa.Array], int]:
    """Leave out rows of a text file that repeat its header; return the other rows, and how many were left out.

    Such rows stem from files that were written one below the other. A row repeats the header if each of its cells is
    the name of its column. Columns of another type than text, or without a name, are not compared; if fewer than two
    are left, no row is left out.

    Args:
        columns: {name: Arrow array [rows]}.
        name: of the file, for messages.

    Raises:
        InputError: a row begins with two names of columns, but does not repeat the header: another table begins there
            ("several-tables").
    """
    texts = [key for key, column in columns.items() if column.type == pa.string() and not key.startswith("unnamed ")]
    if len(texts) < 2:
        return columns, 0
    begins = np.ones(len(columns[texts[0]]), bool)
    for key in texts[:2]:
        if begins.any():  # mostly the first column shows that none does
            begins &= pc.is_in(cells.trimmed(columns[key]), pa.array(texts)).to_numpy(zero_copy_only=False)  # pyright: ignore
    for row in np.flatnonzero(begins):
        there = [(columns[key][int(row)].as_py() or "").strip() for key in texts]
        if there != texts:
            raise InputError(
                f"{name}: the row {listed(there)} begins with names of columns, as another header does: the file holds "
                "several tables. Save each as a file of its own, or name the header by --header-row.",
                code="several-tables",
            )
    if not begins.any():
        return columns, 0
    return {key: column.filter(pa.array(~begins)) for key, column in columns.items()}, int(begins.sum())


def id_parts(name: str, columns: Iterable[str]) -> list[str]:
    """Return the names that "+" joins in `name`, such as "subject+trial"; [] without "+", or if `name` is a column."""
    return [] if name in columns or "+" not in name else name.split("+")


def dates_in_parts(names: Iterable[str]) -> list[dict[str, str]]:
    """Return the dates whose parts are columns, as {part: column}; those with most parts come first.

    An example is {"year": "YY", "month": "MM", "day": "DD"}.

    - A column holds a part if its name, in upper or lower case, is among the part's names in `DATE_PARTS`. But a column
      "min" is no minute if another column is called "max", "mean" or "avg".
    - The names of a date's columns may share a beginning: VISITYR, VISITMO and VISITDAY are one date, and BIRTHYR and
      BIRTHMO are another.
    - A date has two or more parts, which follow a line of `DATES` from its start without a gap. Year and month are a
      date, and so are year, month and day; year and hour are not.
    """
    names = list(names)
    if STATISTICS & {name.lower() for name in names}:
        names = [name for name in names if name.lower() != "min"]
    ends = ((name.lower(), word) for word in DATE_PARTS["year"][0] for name in names if name.lower().endswith(word))
    dates = []
    for beginning in dict.fromkeys(("", *(name.removesuffix(word) for name, word in ends))):
        best: dict[str, str] = {}
        for order in DATES:
            parts: dict[str, str] = {}
            for part in order:
                free = [name for name in names if name not in parts.values()]
                likely = (name for word in DATE_PARTS[part][0] for name in free if name.lower() == beginning + word)
                if (column := next(likely, None)) is None:
                    break
                parts[part] = column
            best = max(best, parts, key=len)
        dates += [best] if len(best) > 1 else []
    return sorted(dates, key=len, reverse=True)


def _number_of_part(cell: str, part: str) -> str:
    """Return SQL that reads a part of a date, such as "month", as a number from the SQL expression `cell`.

    `part` is a key of `DATE_PARTS`. The number is null if it is missing or out of range. All parts but seconds must be
    whole; a "Q" before a quarter is left out.
    """
    cell = f"ltrim(CAST({cell} AS VARCHAR), 'Qq')" if part == "quarter" else cell
    number, (_, low, high) = f"TRY_CAST({cell} AS DOUBLE)", DATE_PARTS[part]
    whole = "" if part == "second" else f" AND {number} = floor({number})"
    return f"CASE WHEN {number} BETWEEN {low} AND {high}{whole} THEN {number} END"


def _twice(names: Iterable[str]) -> dict[str, InputError]:
    """Return {name: error} of the names that occur more than once; the error is raised if such a column is read."""
    return {
        name: InputError(
            f"column {name!r} is there more than once; each but one must be renamed, as {ONE_NAME}", code="column-twice"
        )
        for name, count in Counter(names).items()
        if count > 1
    }


def _units_of(schema: pa.Schema) -> dict[str, str]:
    """Return {column: unit} from the metadata ("unit" or "units") of the fields of an Arrow schema that have one."""
    units = {part.name: (part.metadata or {}).get(b"unit") or (part.metadata or {}).get(b"units") for part in schema}
    return {name: unit.decode(errors="replace") for name, unit in units.items() if unit}


def table_files(path: Path) -> tuple[Path, ...]:
    """Return the table files that a path names, sorted: the file itself, those in a folder, or those of a pattern.

    A folder is searched with the folders inside it. Files without the suffix of a table, and files and folders whose
    names begin with "." or "_", are passed over. Files of a pattern may have any name.

    Raises:
        InputError: no such file, or `path` is neither a path nor a pattern ("no-file").
    """
    try:
        if path.is_file():
            return (path,)
        is_folder, pattern = path.is_dir(), str(path.relative_to(path.anchor))
        inside = path.rglob("*") if is_folder else Path(path.anchor or ".").glob(pattern)
        files = tuple(one for one in sorted(inside) if one.is_file())
        beside = path.parent.iterdir() if not files and path.parent.is_dir() else ()
        near = [one.name for one in beside if one.is_file()]
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path} is no path of a table ({reason}); give one, or a pattern.", code="no-file") from error
    if is_folder:
        pairs = ((one, one.relative_to(path).parts) for one in files)
        files = tuple(one for one, parts in pairs if _suffix(one) and not any(p.startswith((".", "_")) for p in parts))
        if not files:
            raise InputError(
                f"{path} is a folder without table files; known suffixes are {', '.join(FORMATS)}. For other text "
                f"files give a quoted pattern, such as '{path}/*.tab'; for pictures and sounds, --images or --audio.",
                code="no-file",
            )
        return files
    if not files:
        raise InputError(
            f"{path} does not exist; give the path of a table file.{did_you_mean(path.name, near)}", code="no-file"
        )
    return files


def stem(path: Path) -> str:
    """Return the name of a file without its folder and its suffixes of format and compression: "a" for x/a.csv.gz."""
    return NAME.match(path.name)[1]  # pyright: ignore


def _suffix(path: Path) -> str | None:
    """Return the suffix of a file's format in lower case, without that of compression: ".csv" for a.CSV.gz.

    None if it is not among `FORMATS`.
    """
    suffix = NAME.match(path.name)[2]  # pyright: ignore
    return suffix and suffix.lower()


def format_of(path: Path) -> str:
    """Return the format of a file, a value of `FORMATS`, by its suffix.

    A file of an unknown suffix must be a text. Its format is "json" if it begins with a bracket, else "csv".

    Raises:
        InputError: an unknown suffix of a file that is no text ("unknown-format").
    """
    suffix = _suffix(path)
    if suffix is None:
        with path.open("rb") as file:
            head = file.read(formats.HEAD_BYTES)
        if not NO_TEXT.search(head) or head.startswith(formats.UTF_16):
            return FORMATS[_likely_suffix(head)]
        raise InputError(
            f"{path}: cannot tell the kind of table from the name; known suffixes are {', '.join(FORMATS)} (text also "
            f"with {', '.join(PACKED)}). The content is no text. Convert the file, or read it yourself and pass the "
            "data frame to SeriesDataset.from_frame.",
            code="unknown-format",
        )
    return FORMATS[suffix]


def _likely_suffix(head: bytes) -> str:
    """Guess the suffix of a file from its first bytes: ".parquet" for "PAR1"; ".csv" for unknown ones."""
    return next((suffix for start, suffix in BEGINNINGS.items() if head.lstrip().startswith(start)), ".csv")


@functools.cache
def standard_input() -> Path:
    """Save standard input to a temporary file, so that it can be read more than once; return its path, always the same.

    Its suffix is guessed from the first bytes.
    """
    head = sys.stdin.buffer.read(formats.HEAD_BYTES)
    path = scratch() / f"standard input{_likely_suffix(head)}"
    with path.open("wb") as file:
        file.write(head)
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path


def _one_layout(name: str, paths: Sequence[Path], layouts: Sequence[Sequence[str]]) -> dict[str, InputError]:
    """Check that files have the same columns, in any order; return the columns that cannot be read.

    Args:
        name: name of the table that the files make up, for messages.
        paths: the files.
        layouts: the names of the columns of each file, in the order of `paths`.

    Returns:
        {column: error to raise if it is read}, for names that occur twice in any of the files.

    Raises:
        InputError: a file with other columns than the first ("unknown-column"); too many columns ("too-large").
    """
    for path, names in zip(paths, layouts, strict=True):
        if lacking := sorted(set(layouts[0]) ^ set(names)):
            has, lacks = (path, paths[0]) if set(lacking) & set(names) else (paths[0], path)
            alone = [column for column in lacking if (column in names) == (has is path)]
            raise InputError(
                f"{has} has the column {listed(alone)}, which {lacks} has not; the columns of the latter are "
                f"{listed(layouts[0] if lacks is paths[0] else names, 20)}. Read files of one layout at a time.",
                code="unknown-column",
            )
    if len(layouts[0]) > MAX_COLUMNS:
        raise InputError(
            f"{name} has {len(layouts[0]):,} columns; at most {MAX_COLUMNS:,} can be read. Split it, or make a row of "
            "each value (pandas.melt).",
            code="too-large",
        )
    return {column: error for names in layouts for column, error in _twice(names).items()}


def _one_unit(paths: Sequence[Path], units: Iterable[dict[str, str]]) -> dict[str, str]:
    """Join the units of files, {column: unit} for each of the `paths`, to one such dictionary; "" is no unit.

    If files give a column different units, the first one counts, and an InputWarning names the later file.
    """
    of_column: dict[str, str] = {}
    for path, of_file in zip(paths, units, strict=True):
        for column, unit in of_file.items():
            if unit and of_column.setdefault(column, unit) != unit:
                text = f"{path}: column {column!r} is in {unit}, and in {of_column[column]} in files before it; its"
                warnings.warn(f"{text} numbers are read as they are. Convert them first.", InputWarning, stacklevel=4)
    return of_column


def _open_text(
    paths: tuple[Path, ...], copies: tuple[Path, ...], format: str, name: str, header_row: int | None
) -> Source:
    """Open text files, all "csv" or all "tsv", as one table, which messages call `name`; all cells are read as text.

    The `copies` are read in place of `paths`, and are the same paths if there are no copies. The line `header_row`,
    counted from 1, names the columns; None guesses it. Raises InputError for a file that `formats.sniff` refuses, such
    as one that ends before its header ("empty-file"); for files with different columns ("unknown-column"); and for too
    many columns ("too-large").
    """
    texts = formats.sniff_all(copies, paths, format, header_row)
    twice = _one_layout(name, paths, [text.names for text in texts])
    columns = [column for column in texts[0].names if column not in twice]
    runs, read_from = [], []
    for text, run in itertools.groupby(zip(texts, copies, strict=True), key=lambda pair: replace(pair[0], note="")):
        files = [as_utf8(path, text) for _, path in run]
        read_from += files
        cells_of = {name: _with_point(f"c{i}") if text.comma else f"c{i}" for i, name in enumerate(text.names)}
        kinds = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(text.names)))
        skip = 0 if files[0] not in copies else text.skip
        separator = "\t" if text.separator == " " else text.separator
        relation = (
            f"read_csv([{', '.join(map(_pattern, files))}], auto_detect=false, header=false, skip={skip}, "
            f"delim={_literal(separator)}, quote='\"', escape='\"', strict_mode=false, columns={{{kinds}}}, "
            f"store_rejects=true, rejects_limit=100000, max_line_size={formats.LINE}, buffer_size={formats.LINE}, "
            f"filename='{FILE}')"
        )
        if text.comments:
            relation = f"(SELECT * FROM {relation} WHERE coalesce(c0, '') NOT LIKE '#%')"
        picked = [f"{cells_of[name]} AS c{i}" for i, name in enumerate(columns)]
        runs.append(f"SELECT {', '.join([*picked, FILE])} FROM {relation}")
    return Source(
        name=name,
        kinds=dict.fromkeys(columns, pa.string()),
        sql={name: f"c{i}" for i, name in enumerate(columns)},
        relation=f"({' UNION ALL '.join(runs)})",
        paths=paths,
        format=format,
        read_from=tuple(read_from),
        unreadable=twice,
        units=_one_unit(paths, [dict(zip(text.names, text.units)) for text in texts]),
        notes=tuple(dict.fromkeys(text.note for text in texts if text.note)),
    )


def _open_parquet(paths: tuple[Path, ...], name: str) -> Source:
    """Open Parquet files as one table, which messages call `name`; types may differ where one converts to the other.

    Raises InputError for files with different columns ("unknown-column") and for too many columns ("too-large"). DuckDB
    cannot tell apart names that differ only in capitals, such as "time" and "Time". Files with two such columns raise
    InputError, too, unless all of them have their columns in the same order.
    """
    schemas = [pyarrow.parquet.read_schema(path) for path in paths]
    schema, twice = schemas[0], _one_layout(name, paths, [schema.names for schema in schemas])
    with suppress(pa.ArrowException):
        schema = pa.unify_schemas(schemas, promote_options="permissive")
    # Numbers stand for names, as DuckDB takes "time" and "Time" for one, in several files the first of the two.
    if len({*map(str.lower, schema.names)}) < len(schema) and any(one.names != schema.names for one in schemas):
        raise InputError(
            f"{name} have columns whose names differ only in capitals, as time and Time do, and whose order differs "
            "between the files; rename these columns."
        )
    numbers = [f"c{i}" for i in range(len(schema))]
    files = f"read_parquet([{', '.join(map(_pattern, paths))}], union_by_name=true, hive_partitioning=false, "
    files += f"filename='{FILE}') AS _table({', '.join(numbers)})"
    numbers = [number for number, part in zip(numbers, schema) if part.name not in twice]
    schema = pa.schema([part for part in schema if part.name not in twice])
    units = _one_unit(paths, map(_units_of, schemas))
    return Source(name, *_flat(schema, numbers), files, paths, "parquet", unreadable=twice, units=units)


def _open_json(paths: tuple[Path, ...], name: str) -> Source:
    """Open JSON files as one table, which messages call `name`: records, rows as lists, or an object of columns.

    Raises InputError for too many columns, or a file that has to be read whole and is too large ("too-large"). Raises
    ValueError for a file of no such form, or columns of unequal length.
    """
    files = [path if path.suffix.lower() != ".bz2" else as_utf8(path, formats.Text()) for path in paths]
    largest = min(max(1 << 24, *(path.stat().st_size for path in paths)), 1 << 27)  # of an object; all may be one
    relation = (
        f"read_json([{', '.join(map(_pattern, files))}], sample_size=-1, maximum_sample_files={1 << 30}, "
        f"union_by_name=true, maximum_object_size={largest}, map_inference_threshold=2000, dateformat='%%', "
        f"timestampformat='%%', filename='{FILE}')"  # texts stay texts
    )
    opened = connection().sql(f"SELECT * EXCLUDE ({FILE}) FROM {relation}")
    schema = opened.limit(0).to_arrow_table().schema
    _one_layout(name, paths[:1], [schema.names])
    single = opened.limit(2).to_arrow_table().num_rows == 1
    kinds, sql = _flat(schema)
    whole, of_rows = single or schema.names == ["json"], []
    if whole or any(is_list(kind) and is_list(kind.value_type) for kind in kinds.values()):
        with nullcontext() if whole else suppress(ValueError):  # of several objects, a line each
            of_rows = [formats.rows_of_json(path) for path in paths]
    if of_rows and not any(rows is None for rows in of_rows):
        tables, notes = zip(*of_rows)  # pyright: ignore
        return _of_tables(tables, name, paths, format="json", notes=tuple(dict.fromkeys(filter(None, notes))))
    if schema.names == ["json"]:
        holds = ", ".join(str(row[0]) for row in opened.limit(3).fetchall())[:60] or "nothing"
        raise ValueError(
            f'it holds {holds}; wanted are records, [{{"time": 0, "x": 1}}, ...], a list for each column, '
            '{"time": [0], "x": [1]}, or the names and a list for each row, [["time", "x"], [0, 1]]'
        )
    for column, kind in zip(opened.columns, map(str, opened.types), strict=True):
        if kind in ("JSON", "UUID"):  # several types are text
            cell = _quoted(column)
            kinds[column], sql[column] = pa.string(), f"{cell} ->> '$'" if kind == "JSON" else f"{cell}::VARCHAR"
    if len(paths) == 1 and single and all(map(is_list, schema.types)):
        lengths = opened.select(f"list_distinct([{', '.join(f'len({cell})' for cell in sql.values())}])").fetchall()[0]
        if len(lengths[0]) > 1:
            raise ValueError("its columns are not equally long")
        each = ", ".join(f"unnest({_quoted(c)}) AS {_quoted(c)}" for c in opened.columns)
        relation = f"(SELECT {each} FROM {relation})"
        kinds, sql = _flat(pa.schema([part.with_type(part.type.value_type) for part in schema]))
    return Source(name, kinds, sql, relation, paths, "json", read_from=tuple(files))


def _open_whole(paths: tuple[Path, ...], format: str, name: str) -> Source:
    """Read whole files and join their rows to one table in memory; return it as a `Source`.

    `format` names the library that reads them, "arrow" or "astropy". `name` is the name of the table in messages.
    Raises InputError for a file that cannot be read ("unreadable") or is too large ("too-large"), and for files with
    different columns ("unknown-column").
    """
    tables, units, notes, unreadable = [], [], {}, {}
    for path in paths:
        with named(str(path), format):
            table, units_of_file, notes_of_file, errors = formats.FORMAT_READERS[format](path)
        units.append(units_of_file)
        notes, unreadable = notes | dict.fromkeys(notes_of_file), unreadable | errors
        tables.append(table)
    units = _one_unit(paths, units)
    more = {"units": units, "notes": tuple(notes), "unreadable": unreadable}
    return _of_tables(tables, name, paths, format=format, **more)
