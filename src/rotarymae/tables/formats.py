"""The form of text files, guessed from their beginnings, and readers of formats that DuckDB does not know."""

from __future__ import annotations

import codecs
import csv
import functools
import io
import itertools
import json
import re
import shutil
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc

from rotarymae.errors import InputError, InputWarning, NoObservations, listed
from rotarymae.series import cells, dates
from rotarymae.series.cells import to_arrow
from rotarymae.system.database import scratch

PACKED = (".gz", ".bz2", ".zst")  # of text files
# What DuckDB, Arrow, openpyxl, astropy and the packers raise for a file that is none of theirs.
UNREADABLE = (duckdb.Error, pa.ArrowException, OSError, ValueError, ArithmeticError, RecursionError, TypeError)
UNREADABLE += (EOFError, LookupError, AttributeError, NotImplementedError, SyntaxError)
UNREADABLE += (csv.Error, zipfile.BadZipFile, zlib.error)
DATE = re.compile(r"\d{4}-\d\d-\d\d|\d\d?[./]\d\d?[./]\d{2,4}")  # the beginning of one
DATE_NAME = re.compile(  # of a column whose cells were measured then: 2024-03-31, 3/31/24, Jan 2024
    r"\d+([-/.])\d+(\1\d+)?([T ].*)?|(19|20)\d{6}|"
    rf"(\d+[-. ]+)?({'|'.join(dates.MONTHS.split())})[^\W\d_]*[-. ]+\d+",
    re.IGNORECASE,
)
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# In their order, with the letters that text in them must have: that of Windows has all of Latin-1, but not all bytes.
ENCODINGS = {
    "utf-8": "",
    "euc_kr": "^[^一-龥]*[가-힣]{2}[^一-龥]*$",
    "gb2312": "[一-龥]{2}",
    "cp1251": "[а-яё]{4}",
    "cp1252": "",
    "cp932": "",
}
NUMBERED = re.compile(r"(.*?)(\d+(?:\.\d+)?)(\D*)", re.DOTALL)  # columns FLUX.1, t0.5, 01h: stem, number, ending
MIN_TIME_NAMES = 7  # columns with names of times, and no others, that are said to be times
HEAD_BYTES = 1 << 16  # bytes from which the form of a text file is guessed
DATE_AND_CLOCK = re.compile(r"[^\s,;]*\d[^\s,;]* \d{1,2}:\d\d[^\s,;]*")
LISTED_NAME = re.compile(  # in a comment: # name 0 = scan: Scan Count
    r"(?i)[#%*]+\s*(?:name|column|col|field)?\s*(\d+)\s*[:=.)]\s*([^\s:=,;[(][^:=,;[(]*?)\s*(?::\s|[=,;[(]|$)"
)
_FIELD = r"(?:\\.|[^\s,=])+=(?:\"[^\"]*\"|(?:\\.|[^\s,])+)"
NO_TABLES = {  # by a pattern in the text without comments
    rf"\A(?:\\.|[^\s,=])+(?:,{_FIELD})* {_FIELD}(?:,{_FIELD})* -?\d{{9,}}$": "line protocol of InfluxDB",
    r"(?i)^(?:CREATE TABLE|INSERT INTO|COPY .* FROM stdin)\b": "a dump of SQL",
    r"(?i)\A\s*<(?:\?xml|!doctype|html|gpx)\b": "XML or HTML",
}
HEAD_LINES = (100, 1000)  # lines of them, and as many where the first show no table
SEPARATORS = (",", ";", "\t", "|", " ")  # between cells
VALUE_ROWS = 5  # rows of values that show where a preamble ends, and most rows between names and values
MIN_ROWS = 3  # of a list in JSON, which show what its times are
LINE = 1 << 24  # bytes of the longest line of text
MAX_CELLS = 1 << 25  # of a sheet
MAX_BYTES = 1 << 29  # of a file that is read whole


@contextmanager
def named(name: str, format: str) -> Iterator[None]:
    """Turn an error of a reading library, raised inside the with statement, into an InputError ("unreadable").

    Its message says that `name`, a file or table, cannot be read as `format`, such as "csv" ("memory" for a data
    frame). An InputError, and an error of a type that is not in `UNREADABLE`, are not caught.
    """
    try:
        yield
    except InputError:
        raise
    except UNREADABLE as error:
        said, advice = f"{name} cannot be read as {format}", f"check that it is complete and of the format {format}."
        if format == "memory":
            said, advice = f"{name} cannot be read", "convert its columns to numbers, texts or dates."
        raise InputError(
            f"{said}, as no table could be made of its content: {_reason(error)}. Correct or replace it: {advice}",
            code="unreadable",
        ) from error


@contextmanager
def one_type(name: str) -> Iterator[None]:
    """Turn an error in making an Arrow array of the column `name`, in the with statement, into an InputError.

    Its code is "mixed-type". Errors of a type that is not in `UNREADABLE` are not caught.
    """
    try:
        yield
    except UNREADABLE as error:
        raise InputError(
            f"column {name!r} holds values of mixed type, or of a type no table column can have ({_reason(error)}); "
            "convert the whole column to one type, for example all to strings or all to numbers.",
            code="mixed-type",
        ) from error


def _reason(error: Exception) -> str:
    """Return the first line of an error's message, at most 300 characters; the name of its type if it has none."""
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]


# ── text ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Text:
    """The form of a text file that holds a table.

    Attributes:
        names: of the columns, one for each cell of a row; "unnamed 2" for the second column if its name is empty.
        separator: the character between cells; " " for runs of blanks.
        encoding: Python's name of it.
        skip: number of lines before the first row of cells: header, units, and what stands above.
        comma: whether numbers have decimal commas.
        units: the unit of each column, from a row of units below the header, "" for none; () without such a row.
        comments: whether lines below the header that begin with "#" are comments, not rows.
        note: a text on what was guessed; "" for a plain file.
        head: the lines up to the header and with it; == does not compare them.
    """

    names: tuple[str, ...] = ()
    separator: str = ","
    encoding: str = "utf-8"
    skip: int = 0
    comma: bool = False
    units: tuple[str, ...] = ()
    comments: bool = False
    note: str = ""
    head: tuple[str, ...] = field(default=(), compare=False)


def _open_unpacked(path: Path) -> io.BufferedReader:
    """Open a file for reading bytes, and return it; a file with the suffix .gz, .bz2 or .zst is unpacked."""
    packing = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}.get(path.suffix.lower())
    return io.BufferedReader(pa.input_stream(str(path), compression=packing))  # pyright: ignore


def as_utf8(path: Path, text: Text) -> Path:
    """Return the path of a file of the form `text` that DuckDB can read: the file itself, or a copy.

    A copy is made of a file that is not UTF-8, is compressed as .bz2, or has columns aligned by blanks. The copy lacks
    the first `text.skip` lines.
    """
    if text.encoding == "utf-8" and text.separator != " " and path.suffix.lower() != ".bz2":
        return path
    return _transcoded(path, path.stat().st_mtime_ns, text)


@functools.lru_cache(maxsize=1 << 16)
def _transcoded(path: Path, changed: int, text: Text) -> Path:
    """Copy a file of the form `text` as UTF-8, unpacked, to the temporary folder; return the path of the copy.

    The first `text.skip` lines are left out. If blanks separate the cells, runs of them become single tabs. A call with
    equal arguments returns the same copy; `changed`, the time of the file's last change, makes a changed file be copied
    anew.
    """
    target = scratch() / f"{len(list(scratch().iterdir()))}-{path.name}.txt"
    lines = io.TextIOWrapper(_open_unpacked(path), text.encoding, newline="")
    with lines, target.open("w", encoding="utf-8", newline="") as out:
        for _ in range(text.skip):
            lines.readline()
        if text.separator == " ":
            out.writelines(re.sub(r"[ \t]+", "\t", line.strip()) + "\n" for line in lines)
        else:
            shutil.copyfileobj(lines, out, 1 << 20)
    return target


def _is_in(encoding: str, path: Path) -> bool:
    """Return whether a file, unpacked and read to its end, can be decoded by an encoding.

    An incomplete character at its end is allowed.
    """
    decoder = codecs.getincrementaldecoder(encoding)()
    with _open_unpacked(path) as file:
        try:
            while block := file.read(1 << 22):
                decoder.decode(block)
        except UnicodeDecodeError:
            return False
    return True


def sniff_all(paths: Sequence[Path], said: Sequence[Path], format: str, header_row: int | None) -> list[Text]:
    """Guess the form, a `Text`, of each of several text files, as `sniff` does; return the forms in the files' order.

    To open thousands of files fast, a file gets the form of the first file without a closer look, if

    - both files are UTF-8, and the first has no row of units;
    - both begin with the same lines, up to and including the header;
    - the next line has numbers in the same cells of both files. This is required only if the lines above it are all
      comments or empty, or if there are none. (Files of light curves often have no header, and a closer look takes
      forty times as long.)

    Args:
        paths: the files to read, at least one.
        said: what messages call each file: its path, or that of the original if the file is a copy.
        format, header_row: as for `sniff`, which also says what is raised.
    """
    texts: list[Text] = []
    for path, name in zip(paths, said, strict=True):
        same = bool(texts) and texts[0].encoding == "utf-8" and not texts[0].units
        if same and (same := _begins_like(path, texts[0].head)):
            named = any(map(_is_plain, texts[0].head))
            same = named or _numbers_below(path, texts[0]) == _numbers_below(paths[0], texts[0])
            same = same and _is_in("utf-8", path)
        try:
            texts.append(texts[0] if same else sniff(path, format, header_row))
        except InputError as error:
            raise error.within(name) from error
    return texts


def _begins_like(path: Path, lines: Sequence[str]) -> bool:
    """Return whether a file begins with the given lines."""
    with _open_unpacked(path) as file:
        return all(_line(file) == line for line in lines)


def _numbers_below(path: Path, text: Text) -> list[bool]:
    """Return whether each cell of the line below the header is a number, in a file of the form `text`."""
    with _open_unpacked(path) as file:
        *_, line = (_line(file) for _ in range(len(text.head) + 1))
    return [_number(cell) is not None for cell in _rows_of([line], text.separator)[0]]


def _line(file: io.BufferedReader) -> str:
    """Read the next line of a file that is open for bytes; return it without a byte order mark and the line break.

    At most 64 KiB are read. Bytes that are no UTF-8 become replacement characters. The result is "" at the end of the
    file, and for an empty line.
    """
    return file.readline(HEAD_BYTES).decode("utf-8", errors="replace").removeprefix("\ufeff").rstrip("\r\n")


def _beginning(path: Path, count: int) -> tuple[list[str], str]:
    """Return the first lines of a text file, unpacked and without line breaks, and its encoding.

    There are at least `count` lines, if the first 16 MiB have as many. The encoding is the first that fits:

    - "utf-16", if the file begins with its byte order mark;
    - the first of `ENCODINGS` that decodes the whole file, and whose regular expression (typical letters of a language;
      empty for any text) matches in the beginning;
    - "latin-1".
    """
    with _open_unpacked(path) as file:
        head = file.read(HEAD_BYTES)
        while head.count(b"\n") < count and len(head) < LINE and (more := file.read(HEAD_BYTES)):
            head += more
    likely = (each for each, letters in ENCODINGS.items() if re.search(letters, head.decode(each, errors="ignore")))
    encoding = "utf-16" if head.startswith(UTF_16) else next((each for each in likely if _is_in(each, path)), "latin-1")
    # Not by splitlines, for which form feeds and other signs, which DuckDB takes as part of a cell, end a line, too.
    lines = re.split(r"\r\n|\r|\n", head.decode(encoding, errors="ignore").removeprefix("\ufeff"))
    cut = not lines[-1] or (len(head) >= HEAD_BYTES and len(lines) > 1)  # the last one may be a part
    return lines[:-1] if cut else lines, encoding


def sniff(path: Path, format: str, header_row: int | None) -> Text:
    """Guess the form of a text file from its beginning: encoding, separator, header, and rows of units below it.

    Args:
        path: the file.
        format: "csv" or "tsv"; a comma or a tab is the separator, unless another splits the lines better.
        header_row: the line, counted from 1, that names the columns; None guesses it.

    Raises:
        InputError: the file is no table ("unknown-format"); it ends before the header's line, or this is empty
            ("empty-file"); most lines below have more cells than the header, or no line has as many ("unequal-lines").
    """
    every, encoding = _beginning(path, (header_row or 0) + 4)
    _refuse_no_table(every)
    western = encoding in ("cp1252", "latin-1")
    notes = [f"read as {'Latin-1, as it is no UTF-8' if western else encoding.upper()}"] * (encoding != "utf-8")
    usual = "\t" if format == "tsv" else ","
    lines, best, start = _separated(every, usual, header_row)
    rows = [[cell.strip() for cell in row] for row in _rows_of(lines, best)]
    if start >= len(rows) or not rows[start]:
        raise InputError(
            f"it {'is empty in' if start < len(rows) else 'ends before'} line {start + 1}, which should name its "
            f"columns. Check that the file is complete and is a {format} file"
            f"{'; else name another line (--header-row)' if header_row else ''}.",
            code="empty-file",
        )
    header, filled = rows[start], [i for i, row in enumerate(rows) if i > start and any(row)]
    names = tuple(name or f"unnamed {k + 1}" for k, name in enumerate(header))
    hashes = [i for i in filled if lines[i].startswith("#")]
    comments = lines[start][:1] != "#" and any(line.startswith("#") for line in lines[:start])
    comments = comments and 2 * len(hashes) < len(filled)
    filled = [i for i in filled if not (comments and i in hashes)]
    headless = header_row is None and _is_headless(header, [rows[i] for i in filled])
    if filled and not headless and rows[filled[0]] != header:  # a row of units may repeat names that have none
        rows[filled[0]] = ["" if [cell] == header[k : k + 1] else cell for k, cell in enumerate(rows[filled[0]])]
    below = [rows[i] for i in filled]
    if headless:
        names, start = _listed_names(lines[:start], len(names)) or numbered_names(len(names)), start - 1
    longer = [] if headless else [row for row in below if any(row[len(names) :])]
    of_rows = bool(longer) and _have_names(below, len(names))
    shorter = not (of_rows or any(len(row) >= len(names) for row in below))
    if below and (2 * len(longer) > len(below) or shorter) and not of_rows:
        example = best.join(below[-1] if shorter else longer[0])
        option = " (or leave --header-row out: columns without names are numbered)" if header_row else ""
        raise InputError(
            f"line {start + 1} names {len(names)} columns, and {'no line' if shorter else 'most lines'} below it "
            f"{'has as many' if shorter else 'have more'} cells, such as {example!r}. If the names stand in another "
            f"line, say which (--header-row){option}; else name each column, and "
            f"{'leave no blanks within cells' if best == ' ' else f'quote cells that hold {best!r}'}.",
            code="unequal-lines",
        )
    names = ("unnamed 0", *names) if of_rows else names
    equal = [i for i in filled if len(rows[i]) == len(names)]
    of_units = [] if headless else _rows_of_units([rows[i] for i in equal])
    units = max(of_units, key=lambda row: len({*row}), default=())  # and not that of types
    spanned = [k for k, name in enumerate(header) if not name and any(row[k] for row in of_units)]
    if len(spanned) > 1:  # as merged cells of a sheet
        over = [*itertools.accumulate(header, lambda left, name: name or left)]
        header = [over[k] if k in spanned else name for k, name in enumerate(header)]
    lines_of_names = (header, *of_units) if len({*names}) < len(names) or len(spanned) > 1 else ()
    joined = tuple(" ".join(filter(None, parts)) for parts in zip(*lines_of_names))  # which tell columns apart together
    apart = len(spanned) > 1 or len({*joined, ""}) > len(joined)
    names, units = (joined, ()) if joined and apart and all(joined) else (names, units)
    comma = cells.have_decimal_commas([cell for i in equal for cell in rows[i]], between_commas=best == ",")
    if best != usual or notes:
        said = {"\t": "tabs", " ": "blanks"}.get(best, repr(best))
        notes = [f"separated by {said}", *notes]
    notes += ["decimal commas"] if comma else []
    if headless and names == numbered_names(len(names)):
        notes.append("no line names the columns, and they are numbered")
    elif headless:
        notes.append("the lines above the rows list the names of the columns")
    notes += [f"the header is line {start + 1}"] if start and not headless else []
    notes += ["the first column, of the names of rows, has no name itself"] if of_rows else []
    if longer and not of_rows:
        notes += [f"{len(longer)} of the first {len(below)} lines have more cells than the header, which are not read"]
    shown = [unit for unit in units if unit]
    notes += [f"a row of units below it ({', '.join(shown[:20])}{', ...' * (len(shown) > 20)})"] if shown else []
    skip = (equal[len(of_units) - 1] if of_units else start) + 1
    return Text(names, best, encoding, skip, comma, units, comments, ", ".join(notes), tuple(lines[: start + 1]))


def _separated(every: list[str], usual: str, header_row: int | None) -> tuple[list[str], str, int]:
    """Guess which character separates the cells of a text file, and which line is its header.

    A separator fits if it gives the header several cells, and three quarters of the later lines fit the header.

    - If several fit: the one with the fewest lines above the header, and among these the one with the most header
      cells. Blanks are taken only if no other separator fits. They are never taken in a file of one column of dates and
      times.
    - If none fits: `usual`; or, if the user named the header's line, the separator guessed from the lines below it.

    Args:
        every: the first lines of the file.
        usual: the separator by the file's suffix.
        header_row: the line of the header, counted from 1, if the user named it; None guesses it.

    Returns:
        The first 100 lines, or up to 1,000 if the first 100 show no table; the separator; and the header's index.
    """
    for count in HEAD_LINES:
        lines = every[: count + (header_row or 0)]
        best, score = usual, (-len(lines), 0)
        start = header_row - 1 if header_row else next((i for i, line in enumerate(lines) if _is_plain(line)), 0)
        filled = [line.strip(' "') for line in lines if _is_plain(line)]
        dates = bool(filled[1:]) and " " not in filled[0] and all(map(DATE_AND_CLOCK.fullmatch, filled[1:]))
        for separator in dict.fromkeys((usual, *SEPARATORS)):
            if separator == " " and dates:
                continue
            first, width, share = _header(_rows_of(lines, separator), lines, header_row)
            above = sum(bool(line.strip()) and _is_plain(line) for line in lines[:first])
            if width > 1 and share >= 0.75 and (separator != " " or score[1] < 2) and (-above, width) > score:
                best, score, start = separator, (-above, width), first
        if score[1]:
            break
    if header_row and not score[1] and lines[header_row:]:
        best = _separated(lines[header_row:], usual, None)[1]
    return lines, best, start


def _refuse_no_table(lines: Sequence[str]) -> None:
    """Raise InputError ("unknown-format") if a text file is no table, such as XML, HTML or a dump of SQL.

    Its `lines`, without comments, are searched for the patterns in `NO_TABLES`.
    """
    text = "\n".join(line for line in lines if _is_plain(line))
    for pattern, what in NO_TABLES.items():
        if re.search(pattern, text, re.MULTILINE):
            how = "by a query of the database, or pandas"
            raise InputError(
                f"it is no table but {what}; save its observations as CSV, one per row, {how}.", code="unknown-format"
            )


def _listed_names(lines: Sequence[str], count: int) -> tuple[str, ...]:
    """Return the names of `count` columns that comments list by number, as "# name 0 = scan: Scan Count" does.

    `lines` are the lines above the rows; those that list no name are passed over. The result is () unless `count`
    different names are listed, numbered from 0 or 1 on without a gap.
    """
    listed = [match for match in map(LISTED_NAME.match, lines) if match]
    names, numbers = tuple(match[2] for match in listed), [int(match[1]) for match in listed]
    whole = numbers in ([*range(count)], [*range(1, count + 1)])
    return names if whole and len({*names}) == count else ()


def numbered_names(count: int) -> tuple[str, ...]:
    """Return the names that `count` columns get where no line names them: "column 1", "column 2", ..."""
    return tuple(f"column {k + 1}" for k in range(count))


def _is_plain(line: str) -> bool:
    """Return whether a line is neither empty nor a comment. Comments begin with #, * (CNV files) or \\ (IPAC files)."""
    return line[:1] not in ("", "#", "\\", "*")


def _rows_of(lines: Sequence[str], separator: str) -> list[list[str]]:
    """Split each line of a file into cells; return a list of texts for each line.

    The `separator` is the character between cells, which blanks may follow; or " " for runs of blanks and tabs.

    - An empty line has no cells. A comment that names a column, such as "# name 0 = scan" (`LISTED_NAME`), has none,
      either. From the beginning of any other comment, "#", "*" and blanks are removed.
    - A quoted cell ends with its line, even without a closing quote.
    - With the separator " ", a line with bars at both ends, as in headers of IPAC files, is split at its bars. From any
      other line, a bar at the end is removed if a blank stands before it.
    """
    bare = (line.lstrip("#* ") if line[:1] in ("#", "*") else line for line in lines)
    lines = ["" if LISTED_NAME.match(line) else plain for line, plain in zip(lines, bare)]
    if separator == " ":
        barred = (re.fullmatch(r"\s*\|(.*)\|\s*", line) for line in lines)
        lines = [re.sub(r"\s\|\s*$", "", line) for line in lines]
        return [bars[1].split("|") if bars else re.findall(r"[^ \t]+", line) for bars, line in zip(barred, lines)]
    try:
        return [next(csv.reader([line], delimiter=separator, skipinitialspace=True), []) for line in lines]
    except csv.Error:
        return [line.split(separator) for line in lines]


def _header(rows: list[list[str]], lines: Sequence[str], given: int | None) -> tuple[int, int, float]:
    """Find the header among the first lines: mostly the first row with the most frequent number of cells.

    That row is not the header in these cases:

    - It holds values, and a row of names with another number of cells stands above: that one, damaged, is the header.
    - It belongs to a preamble: the header is below (`_below_preamble`).
    - It only numbers the columns, or describes the whole table: the header is below (`_second_header`).
    - It has numbers, and a comment such as "#id,time,value" stands right above: the comment is the header.

    Args:
        rows: the cells of each line, by `_rows_of`.
        lines: the same lines as text.
        given: the line of the header, counted from 1, if the user named it; None looks for it.

    Returns:
        The index of the header in `rows`, from 0; its number of cells; and the share, 0 to 1, of the later rows that
        fit it. These are the rows with as many cells as the header, or those with one cell more (R writes names of
        rows), whichever are more. Without a later row the share is 1 for a header of several cells, and 0 for one cell.
    """
    filled = [i for i, row in enumerate(rows) if any(cell.strip() for cell in row)]
    if given is None and (short := _trim_rows_above_table(rows)) != rows:
        start, width, share = _header(short, lines, None)
        if start and _are_names(short[start]):
            return start, width, share
    if given is not None:
        start = given - 1
        width = len(rows[start]) if start < len(rows) else 0
    else:
        plain = [i for i in filled if _is_plain(lines[i])]
        widths = Counter(len(rows[i]) for i in plain)
        width = max(widths, key=lambda w: (widths[w], w), default=0)
        start = next((i for i in plain if len(rows[i]) == width), 0)
        # Where the first row of that width holds numbers, a row of other width above it is a damaged header.
        above = [i for i in plain if i < start and len(rows[i]) > 1 and not _has_number(rows[i])]
        alike = [len(rows[i]) for i in above[-2:]]  # several lines of one length are a preamble
        above = [i for i in above[-1:] if 2 * len(rows[i]) > width and alike != alike[:1] * 2]
        if above and _holds_values(rows[start]) and _second_header(rows, filled, start) == start:
            start, width = above[-1], len(rows[above[-1]])
        start = _below_preamble(rows, filled, start)
        # "#id,time,value" is the header where the first row below it holds numbers.
        over = start - 1
        if over >= 0 and not _is_plain(lines[over]) and len(rows[over]) == width > 1 and _has_number(rows[start]):
            # Two such lines are names and units; units repeat or have marks, and names do not.
            units = over > 0 and lines[over - 1].startswith("#") and len(rows[over - 1]) == width
            units = units and (len({*rows[over]}) < width or any(re.search(r"[/%°^(\[]", cell) for cell in rows[over]))
            start = over - 1 if units and width == len({*rows[over - 1]}) else over
    start = start if given is not None else _second_header(rows, filled, start)
    below = Counter(len(rows[i]) for i in filled if i > start)  # one cell more where rows have names, as R writes them
    return start, width, max(below[width], below[width + 1]) / below.total() if below else float(width > 1)


def _trim_rows_above_table(rows: list[list[str]]) -> list[list[str]]:
    """Return the rows without the empty cells at the end of rows above the table, such as a title.

    A sheet is saved so that a title has as many cells as the table below it. The table begins at the first row with two
    or more cells that are all filled, or with an empty cell before a filled one. Without such a row nothing is removed.
    """
    ends = [len([*itertools.takewhile(str.strip, row)]) for row in rows]
    top = next(
        (i for i, (row, end) in enumerate(zip(rows, ends)) if len(row) == end > 1 or any(map(str.strip, row[end:]))), 0
    )
    return [*(row[:end] for row, end in zip(rows[:top], ends)), *rows[top:]]


def _below_preamble(rows: Sequence[Sequence[str]], filled: Sequence[int], start: int) -> int:
    """Return the index of the header: `start`, unless this row is part of a preamble above the table.

    `start` is the first row of the table's width (number of cells). A row of the preamble, such as "station,Oslo" above
    a table of two columns, can have this width by chance. `start` counts as one if rows of another width, or more
    than five rows, lie between it and the first row of values; but not if some column has a number in each row below
    `start`, and none in `start` itself. Then the header is the first of these that exists:

    - The last row of names (`_are_names`) that begins a block of rows of the table's width, if at most five rows lie
      between it and the values.
    - The row right above the values, if it is a row of names of this width.
    - The first row of values. The file then has no header.

    `rows` are the cells of each line, and `filled` the indices of the rows that are not blank. A file without a row of
    values keeps `start`.
    """
    width = len(rows[start]) if start < len(rows) else 0
    later = [rows[i] for i in filled[-max(VALUE_ROWS, len(filled) // 4) :] if len(rows[i]) == width]
    numeric = [k for k in range(width) if sum(_has_number(row[k : k + 1]) for row in later) > 0.9 * len(later)]
    below = [rows[i] if len(rows[i]) == width else [] for i in filled if i > start]
    for k in (k for k in numeric if not _has_number(rows[start][k : k + 1])):
        if all(_has_number(row[k : k + 1]) for row in below):  # where ids, in another column, may begin with digits
            return start
    column = next(iter(numeric), width)
    cells_of = [rows[i][column : column + 1] if len(rows[i]) == width else [] for i in filled]
    values = [_has_number(cell) or bool({*map(str.strip, cell)} & {*cells.MISSING}) for cell in cells_of]
    # A row of values has a number or a missing cell in this column, as have the next four rows, if there are so many.
    first = next((i for k, i in enumerate(filled) if all(values[k : k + VALUE_ROWS])), None)
    if first is None:
        return start
    above = [i for i in filled if i < first]
    far = above[: -VALUE_ROWS - 1]  # more than five rows lie between them and the values
    if start not in far and all(len(rows[i]) == width for i in above if i > start):
        return start
    names = [i for i in above if len(rows[i]) == width and _are_names(rows[i])]
    tops = [i for i in names if i == filled[0] or len(rows[above[above.index(i) - 1]]) != width]
    near = [i for i in tops[-1:] if i not in far]
    return (near or [i for i in names if i == above[-1]] or [first])[0]


def values_in(stem: str) -> str:
    """Return a name for the values of numbered columns, without their numbers: "FLUX" for FLUX.1, FLUX.2, ...

    The `stem` is the common beginning of the columns' names, "FLUX.". Points, underscores and blanks at its end are
    left out; the name is "value" if nothing remains.
    """
    return stem.rstrip("._ ") or "value"


def numbers_in(names: Iterable[str], stem: str) -> dict[str, Any]:
    """Return the numbers in the names of numbered columns: {"FLUX.1": 1, "FLUX.2.5": 2.5} for the stem "FLUX.".

    Args:
        names: names of columns. A name counts if it is the stem, a number, and an ending, such as the h of 01h, or
            none. Only names with the most frequent ending are returned.
        stem: what stands before the numbers; "" for names that begin with numbers, such as 1990, 400.5 or 01h.

    Returns:
        {name: number} in the order of the names, as int, or float if the number has a point. If the stem is "" and some
        names are dates or quarters, all of one notation, it is {name: datetime} of these names alone.
    """
    names = list(names)
    tails = {name: NUMBERED.fullmatch(name[len(stem) :]) for name in names if name.startswith(stem)}
    parts = {name: match for name, match in tails.items() if match and not match[1]}
    endings = Counter(match[3] for match in parts.values())
    ending = max(endings, key=lambda ending: (endings[ending], not ending), default="")
    numbers = {name: match[2] for name, match in parts.items() if match[3] == ending}
    dated = {name: start for name in names if DATE_NAME.fullmatch(start := dates.start_of(name))}
    if not stem and len(formats := dates.formats_of([*dated.values()])) == 1:
        return dict(zip(dated, dates.as_datetimes([*dated.values()], formats[0]), strict=True))
    return {name: float(number) if "." in number else int(number) for name, number in numbers.items()}


def _second_header(rows: list[list[str]], filled: Sequence[int], first: int) -> int:
    """Return the index of the row that names the columns: `first`, or the row one or two below it.

    Mostly it is `first`. There are two exceptions, in which blank rows do not count:

    - One below, if `first` only numbers the columns (1, 2, 3, ...), and the row below it has as many cells and may hold
      names (`_are_names`).
    - Two below, if two rows on the whole table come first, such as "site,height" and "Basel,316": the rows one and
      three below `first` have a number, and the row two below may hold names and is not equal to `first`.

    `rows` are the cells of each line, `filled` the indices of the rows that are not blank, and `first` that of the
    presumed header.
    """
    after = [i for i in filled if i >= first][:4]
    above_names = len(after) > 1 and len(rows[after[1]]) == len(rows[first]) and _are_names(rows[after[1]])
    if above_names and rows[first] == [str(k + 1) for k in range(len(rows[first]))]:
        return after[1]
    if len(after) < 4 or not all(_has_number(rows[i]) for i in (after[1], after[3])):
        return first
    return after[2] if rows[after[2]] != rows[first] and _are_names(rows[after[2]]) else first


def _are_names(row: Sequence[str]) -> bool:
    """Return whether a row may name columns: at least two cells and more than half are filled, with different words.

    False if any cell begins like a number, or is a word that means "missing", such as NA.
    """
    names = [cell.strip() for cell in row if cell.strip()]
    plain = len(names) == len({*names}) > max(1, len(row) // 2) and not _has_number(names)
    return plain and not {*names} & {*cells.MISSING}


def _holds_values(row: Sequence[str]) -> bool:
    """Return whether a row has numbers that are values, and not names of columns.

    At least seven years in ascending order, or at least seven dates in any order, are names of columns.
    """
    times = [*numbers_in(dict.fromkeys(row), "").values()]
    years = all(isinstance(one, int) and 1000 < one < 2500 for one in times) and times == sorted(times)
    names = len(times) >= MIN_TIME_NAMES and (years or not isinstance(times[0], int | float))
    return _has_number(row) and not names


def _has_number(row: Sequence[str]) -> bool:
    """Return whether any cell of a row begins like a number, perhaps behind blanks and quotes."""
    return any(re.match(r"[\s\"]*[-+.]?\d", cell) for cell in row)


def _is_headless(names: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Return whether `names`, the first row of a table, holds values, so that there is no header.

    `below` are the rows below it. From left to right, the first column of one of these two kinds decides:

    - Most of its cells, the name included, are dates. True if the name is a date, else False.
    - Most of its cells below are numbers, and its name is a word, not a mark of a missing value such as NA. False.

    If no column decides, the result is True if a name is a number, and most cells below it are numbers, unless the
    numbers are names (`_are_numbered_names`), such as 0, 1, 2, ... or ascending wavelengths.
    """
    like_values = []  # for each number above numbers: not farther outside their range than this is wide
    for name, *column in itertools.zip_longest(names, *below, fillvalue=""):
        if column and sum(bool(DATE.match(cell)) for cell in (name, *column)) > (len(column) + 1) / 2:
            return bool(DATE.match(name))
        number, values = _number(name), [value for value in map(_number, column) if value is not None]
        if column and 2 * len(values) <= sum(cell.strip() not in cells.MISSING for cell in column):
            continue
        if number is None and name.strip() not in cells.MISSING:
            return False
        if number is not None:
            low, high = min(values, default=number), max(values, default=number)
            like_values.append(2 * low - high <= number <= 2 * high - low)
    return bool(like_values) and not _are_numbered_names(names, all(like_values))


def _are_numbered_names(names: Sequence[str], like_values: bool) -> bool:
    """Return whether the numbers in the first row of a table are names of columns.

    They are if they ascend from left to right, and one of these holds:

    - Their steps are equal: at least four numbers such as 400, 410, 420, 430, or two from 0 or 1 on.
    - All are digits alone, and `like_values` is False.

    Args:
        names: all cells of the first row, at least one of which is a number; other texts are passed over.
        like_values: whether each of the numbers is near the range of the numbers below it, as a value would be.
    """
    texts = [name.strip() for name in names if _number(name) is not None]
    numbers = [number for number in map(_number, texts) if number is not None]
    steps = [later - earlier for earlier, later in itertools.pairwise(numbers)]
    if min(steps, default=1) <= 0:
        return False
    equal = len(steps) > (0 if numbers[0] in (0, 1) else 2) and max(steps) - min(steps) < 1e-6 * max(steps)
    return equal or (not like_values and all(map(str.isdecimal, texts)))


def _number(cell: str) -> float | None:
    """Return the number in a cell of text, which may have a decimal comma; None for another cell."""
    cell = cell.strip().replace(",", ".")
    return float(cell) if re.match(cells.NUMBER, cell) else None


def _have_names(rows: Sequence[Sequence[str]], columns: int) -> bool:
    """Return whether rows begin with their own names, for which the header has no cell, as in tables written by R.

    True if each of the `rows` below the header, one at least, has one cell more than the header's `columns`, and the
    first cells of the rows are 1, 2, 3, ..., or all different and no numbers.
    """
    names = [row[0].strip() for row in rows]
    words = len({*names}) == len(names) and not any(_has_number([name]) for name in names)
    return {*map(len, rows)} == {columns + 1} and (words or names == [str(k + 1) for k in range(len(names))])


def _rows_of_units(rows: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return the rows right below a header that hold units, such as ("", "d", "mJy"), with "" for no unit.

    A row holds units if its words, such as "d", stand above numbers (`_are_units`). To tell this, at least two rows
    must follow, so the last two rows are never returned. Rows of types, such as 15s and 20d in RDB files, and rows of
    lines drawn with "-", may stand among them; they are returned as rows of "". The first row of any other kind ends
    the search.

    Args:
        rows: the cells of each row below the header; all rows have the same number of cells.
    """
    empty = {"", "-", "none", "string", "str", "text", "[]", "()", *map(str.lower, cells.MISSING)}
    units = []
    for k, row in enumerate(rows[:-2]):
        of_types = all(re.fullmatch(r"\d+[sdn]|[-:=]+", cell.strip()) for cell in row if cell)  # RDB: 15s, 20d
        words = ["" if of_types or cell.strip().lower() in empty else cell.strip() for cell in row]
        if not of_types and not _are_units(words, rows[k + 1 :]):
            break
        units.append(tuple(words))
    return units


def _are_units(words: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Return whether a row below a header holds units of the columns, such as "", "d" and "mJy".

    - False if a word looks like a number (1/min does not), has 25 characters or more, or is also a cell of its own
      column.
    - Otherwise True if a word stands above a column of numbers. At least two words must, if another word, not in
      brackets, stands above a column of texts: the row may then hold values, such as an id.

    `words` are the cells of the row, "" for an empty cell, and `below` those of each row below it, equally many.
    """
    above_numbers = above_texts = 0
    for word, *column in zip(words, *below, strict=True):
        cells_of = [cell.strip() for cell in column if cell.strip() not in cells.MISSING]
        is_number = 2 * sum(bool(re.match(r"[-+.]?\d", cell)) for cell in cells_of) > len(cells_of)
        if len(word) >= 25 or re.match(r"(?!1\S*/[^\W\d]\w*$)[-+.<>]?\s*\d", word) or word in cells_of:
            return False
        above_numbers += bool(word) and is_number
        above_texts += not is_number and word[:1] not in ("", "(", "[")
    return above_numbers > bool(above_texts)


def _check_size(path: Path, size: int) -> None:
    """Raise InputError ("too-large") if a file that has to be read whole has a `size` of more than 512 MiB."""
    if size > MAX_BYTES:
        raise InputError(
            f"{path} holds {size:,} bytes, and of this format at most {MAX_BYTES:,} can be read; convert it to "
            "Parquet, or save it as CSV, which may be larger.",
            code="too-large",
        )


def rows_of_json(path: Path) -> tuple[pa.Table, str] | None:
    """Read a JSON file of rows that are lists; return (Arrow table, note), or None for a JSON file of another form.

    The note is a sentence for the user if the rows stand under several keys (`_lists_of_keys`), else "".
    `_names_and_rows` says where the names of the columns may stand. A column of mixed types becomes texts.

    Raises:
        InputError: a file that is too large to be read whole ("too-large").
        ValueError: no JSON; rows of other lengths than the names.
    """
    _check_size(path, path.stat().st_size)
    with _open_unpacked(path) as file:
        content = json.load(file)
    names, rows = _names_and_rows(content)
    note = "" if names else "each list of rows is a channel, and what goes one way through it is the time"
    names, rows = (names, rows) if names else _lists_of_keys(content)
    if not names:
        return None
    strange = next((k for k, row in enumerate(rows) if len(row) != len(names)), None)
    if strange is not None:
        raise ValueError(f"row {strange + 1} has {len(rows[strange])} cells, and there are {len(names)} columns")
    columns = [_of_one_type(column) for column in zip(*rows)] or [pa.nulls(0)] * len(names)
    return pa.table(columns, names=names), note


def _names_and_rows(content: Any) -> tuple[list[str], list[list[Any]]]:
    """Return the names of columns and the rows, as lists, in what `json.load` returned; ([], []) for another form.

    - A list of rows: the first row may hold the names. Without names, the columns are "column 1", "column 2", ...
    - An object with a list of names and a list of rows, under any keys, perhaps inside other objects: {"columns":
      ["time", "x"], "data": [[0, 1.5]]}. Other lists of the object with one item per row become columns, too, which
      are called like their keys and come first: with "id": ["a"] the columns are id, time, x.
    """
    if _are_rows(content):
        names = [str(name) for name in content[0]]
        below = [[*map(str, row)] for row in content[1 : HEAD_LINES[0]]]
        headless = not all(isinstance(name, str) for name in content[0]) or _is_headless(names, below)
        return ([*numbered_names(len(names))], content) if headless else (names, content[1:])
    parts = content if isinstance(content, dict) else {}
    lists = {key: part for key, part in parts.items() if isinstance(part, list)}
    for (of_names, names), (of_rows, rows) in itertools.permutations(lists.items(), 2):
        names = [name.get("name", name.get("id")) if isinstance(name, dict) else name for name in names]
        if _are_rows(rows) and len(rows[0]) == len(names) and all(isinstance(name, str) for name in names):
            more = [key for key, part in lists.items() if key not in (of_names, of_rows) and len(part) == len(rows)]
            return [*more, *map(str, names)], [
                [*cells_of, *row] for *cells_of, row in zip(*(lists[key] for key in more), rows)
            ]
    inside = (_names_and_rows(part) for part in parts.values() if isinstance(part, dict))
    return next((pair for pair in inside if pair[0]), ([], []))


def _lists_of_keys(content: Any) -> tuple[list[str], list[list[Any]]]:
    """Join lists of rows that stand under several keys in the `content` of a JSON file to one table.

    {"a": [[0, 1.5], [1, 1.6], [2, 1.4]], "b": [[0, 7.0]]} becomes the names ["time", "channel", "value"] and the rows
    [0, "a", 1.5], [0, "b", 7.0], [1, "a", 1.6], ..., in the order of their times.

    - Time: the first place in a row whose cells rise or fall throughout each list (`_go_one_way`). It may be any
      place: Graphite writes [value, time].
    - Values: all other cells, called "value" if a row has one of them, else "column 2", "column 3", ... by their place.
    - Channel: the words that tell a list from others, which are keys of lists and texts in objects (`_lists_in`),
      without those that all lists share. If two channels would be equal, every channel gets a number. A single list
      has no channel.

    Returns ([], []) if no place holds times; for rows of several lengths or of one cell; if no list has three rows, or
    one holds anything but rows; and for lists under a key "coordinates", as in GeoJSON.
    """
    lists = [*_lists_in(content)]
    widths = {len(row) if isinstance(row, list) else 0 for _, rows in lists for row in rows}
    longest = max((len(rows) for _, rows in lists), default=0)
    if len(widths) != 1 or min(widths) < 2 or longest < MIN_ROWS or not all(_are_rows(rows) for _, rows in lists):
        return [], []
    width = widths.pop()
    at = next((k for k in range(width) if all(_go_one_way([row[k] for row in rows]) for _, rows in lists)), None)
    if at is None or any("coordinates" in words for words, _ in lists):
        return [], []
    shared = set.intersection(*({*words} for words, _ in lists))
    others = ["value"] if width == 2 else [f"column {k + 1}" for k in range(width) if k != at]
    channels = [" ".join(word for word in words if word not in shared) for words, _ in lists]
    if len({*channels}) < len(channels):
        channels = [f"{channel} {k + 1}".lstrip() for k, channel in enumerate(channels)]
    both = ((channel, row) for channel, (_, rows) in zip(channels, lists) for row in rows)
    rows = sorted(([row[at], channel, *row[:at], *row[at + 1 :]] for channel, row in both), key=lambda row: row[0])
    one = len(lists) == 1
    return ["time", *["channel"][one:], *others], [[row[0], *row[1 + one :]] for row in rows]


def _lists_in(content: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    """Yield (words, list) for each list in a JSON file, except empty lists, lists of objects alone and rows of a list.

    The words tell the lists apart: the keys of lists on the way to a list, its own included, and the texts in the
    objects on this way. In [{"name": "a", "data": [[0, 1], [1, 2]]}] they are ("a", "data").
    """
    if isinstance(content, dict):
        texts = (*words, *_texts_in(content))
        for key, part in content.items():
            yield from _lists_in(part, (*texts, key) if isinstance(part, list) else texts)
    elif isinstance(content, list) and content:
        if not all(isinstance(part, dict) for part in content):
            yield words, content
        for part in content if isinstance(content[0], dict) else ():
            yield from _lists_in(part, words)


def _texts_in(content: dict[str, Any]) -> Iterator[str]:
    """Yield the texts in an object of a JSON file and in the objects inside it, but not in lists."""
    for part in content.values():
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict):
            yield from _texts_in(part)


def _go_one_way(times: list[Any]) -> bool:
    """Return whether cells may be times: numbers or ISO dates that never fall or never rise, and mostly differ."""
    dated = all(isinstance(time, str) and re.match(dates.ISO, time) for time in times)
    if not dated and not all(isinstance(time, int | float) for time in times):
        return False
    return sorted(times) in (times, times[::-1]) and 2 * len({*times}) >= len(times)


def _are_rows(content: Any) -> bool:
    """Return whether a part of a JSON file is a table: a list of lists, none empty, with plain values in the first."""
    lists = isinstance(content, list) and bool(content) and all(isinstance(row, list) and row for row in content)
    return lists and not any(isinstance(cell, list | dict) for cell in content[0])


def _of_one_type(column: Sequence[Any]) -> pa.Array:
    """Convert cells of a JSON file to an Arrow array, null for None.

    All cells become texts if they are of several types or if a whole number is beyond 64 bits. Whole numbers and
    numbers with a point are of one type.
    """
    try:
        return pa.array(column)
    except (pa.ArrowException, OverflowError):
        return pa.array([cell if cell is None else str(cell) for cell in column])


@functools.lru_cache(maxsize=1 << 16)
def sheet_as_text(path: Path, changed: int) -> Path:
    """Copy the first sheet of an Excel file to a CSV file in the temporary folder; return the copy's path.

    - Each row becomes one line, so that lines are numbered as in the sheet: a blank row becomes an empty line, and
      blank rows at the end are left out.
    - Lines are equally long, and end where the table does. Its last column is that of the last cell of the longest row
      with at least half of its cells filled. Cells further right, far from the table, are left out.
    - A row that fills its first cell alone, such as a title above the header, becomes a line of one cell instead.

    A call with equal arguments returns the same copy, and does not warn again. `changed` is the time of the file's last
    change.

    Raises:
        InputError: openpyxl is not installed; the sheet is too large ("too-large").
        NoObservations: the sheet is empty.

    Warns:
        InputWarning: the file has other sheets, which are not read.
    """
    try:
        import openpyxl
    except ImportError as error:
        raise InputError(
            f"{path}: an Excel file needs openpyxl (pip install openpyxl); or save the sheet as CSV."
        ) from error
    with zipfile.ZipFile(path) as packed:
        _check_size(path, sum(part.file_size for part in packed.infolist()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    try:
        first, *others = book.worksheets
        if others:
            text = f"{path.name}: the first sheet, {first.title!r}, is read and {listed([o.title for o in others])} not"
            warnings.warn(f"{text}; save each sheet as a file.", InputWarning, stacklevel=2)
        first.reset_dimensions()  # what a file says of its size need not be so
        rows, width = {}, 0  # by their number, from 0
        for line, row in enumerate(first.iter_rows(values_only=True)):
            if any(cell is not None for cell in row):
                rows[line] = row
                width = max(width, len(row))
            if width * len(rows) > MAX_CELLS or line > MAX_CELLS // 16:
                raise InputError(
                    f"{path}: a cell lies in row {line + 1}, column {width}, which makes the sheet too large; delete "
                    "cells that lie far from the table.",
                    code="too-large",
                )
    finally:
        book.close()
    if not rows:
        raise NoObservations(f"the first sheet of {path} is empty; make the sheet with the table the first.")
    filled = [[k + 1 for k, cell in enumerate(row) if cell is not None] for row in rows.values()]
    width = max((places[-1] for places in filled if 2 * len(places) >= places[-1]), default=1)  # a far cell is none
    target = scratch() / f"{len(list(scratch().iterdir()))}-{path.name}.txt"
    with target.open("w", encoding="utf-8", newline="") as file:
        for line in range(max(rows) + 1):
            texts = ["" if cell is None else _cell(cell) for cell in rows.get(line, ())[:width]]
            above = not any(texts[1:])  # the header
            csv.writer(file).writerow(texts[:1] if above else texts + [""] * (width - len(texts)))
    return target


def _cell(cell: Any) -> str:
    """Return a filled cell of a sheet as text: "1" or "0" for a boolean, ISO format for a date or time."""
    if isinstance(cell, bool):
        return str(int(cell))
    return cell.isoformat() if hasattr(cell, "isoformat") else str(cell)


# ── formats that a library reads whole: Arrow table, units by column, notes, errors by column that it cannot hold ───

Read = tuple[pa.Table, dict[str, str], tuple[str, ...], dict[str, InputError]]


def _read_arrow(path: Path) -> Read:
    """Read an Arrow file, memory-mapped: (table, {}, (), {}), without units, notes and errors.

    Raises ArrowException for a damaged file.
    """
    table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
    table.validate(full=True)  # Arrow trusts the offsets in a file, and a wrong one ends the process later
    return table, {}, (), {}


def _read_astropy(path: Path) -> Read:
    """Read the first table of a FITS or ECSV file with astropy; return what `of_astropy` makes of it.

    The result is (Arrow table, {column: unit}, notes, {column: error}). If a FITS file has several tables, a note says
    so. Raises InputError if astropy is not installed, or the file is too large ("too-large").
    """
    try:
        from astropy.table import QTable
    except ImportError as error:
        raise InputError(f"{path}: this format needs astropy (pip install astropy); or save it as CSV.") from error
    _check_size(path, path.stat().st_size)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table, units, notes, unreadable = of_astropy(QTable.read(path))
    more = any("multiple tables" in str(one.message) for one in caught)
    first = (f"{path.name} has several tables, and the first is read",) if more else ()
    return table, units, first + notes, unreadable


def of_astropy(table: Any) -> Read:
    """Convert an astropy table to (Arrow table, {column: unit}, notes, {column: error}).

    - Times become timestamps in UTC; those of the scale "local" are not converted.
    - Durations become numbers of days. So do numbers with another unit of time; a note, a sentence for the user, says
      so.
    - A column that Arrow cannot hold, such as one of complex numbers, is missing from the Arrow table. `Source` raises
      its error, an InputError, if the column is to be read.
    - A column without a unit is missing from {column: unit}.
    """
    columns: dict[str, pa.Array] = {}
    units: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    unreadable: dict[str, InputError] = {}
    for name in table.colnames:
        column = table[name]
        unit = getattr(column, "unit", None)
        try:
            with one_type(name):
                if type(column).__name__ == "Time":
                    values: Any = (column if column.scale == "local" else column.utc).to_value("datetime64")
                elif type(column).__name__ == "TimeDelta":
                    values, unit = column.to_value("day"), "d"
                elif unit is not None and unit.physical_type == "time" and str(unit) != "d":
                    values = np.ma.asarray(getattr(column, "value", column)) * unit.to("day")
                    notes, unit = (*notes, f"column {name!r} was in {unit}, and is read in days"), "d"
                else:
                    values = getattr(column, "value", column)
                columns[name] = _of_masked(np.ma.asarray(values))
        except InputError as error:
            unreadable[name] = error
        units |= {} if unit is None or not str(unit) else {name: str(unit)}
    return pa.table(columns), units, notes, unreadable


def _of_masked(values: np.ma.MaskedArray[Any, Any]) -> pa.Array:
    """Convert a masked array to an Arrow array, in which masked cells are null.

    An array [n, ...] of several axes becomes n flat lists. In a list, a masked number is NaN, not null, and a masked
    cell of another type keeps the value under its mask. Raises what Arrow raises for cells that it cannot hold.
    """
    masked, plain = np.ma.getmaskarray(values), np.ma.getdata(values)
    if plain.ndim > 1:
        if masked.any() and plain.dtype.kind in "iuf":
            plain = np.where(masked, np.nan, plain)
        return pa.array(list(plain.reshape(len(plain), -1)))
    plain = np.char.decode(plain, "utf-8") if plain.dtype.kind == "S" else plain
    array = to_arrow(plain.tolist() if plain.dtype.kind in "OU" else plain)
    return pc.if_else(pa.array(masked), pa.scalar(None, array.type), array) if masked.any() else array  # pyright: ignore


FORMAT_READERS = {"arrow": _read_arrow, "astropy": _read_astropy}
