"""Which files a path means, and how each is written.

What a text file does not say of itself is guessed from its first 64 KiB: separator, decimal comma, encoding.
"""

from __future__ import annotations

import atexit
import codecs
import csv
import functools
import json
import re
import shutil
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.json

from rotarymae.errors import InputError, InputWarning, did_you_mean, listed

FORMATS = {
    ".csv": "csv",
    ".txt": "csv",
    ".dat": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".xlsx": "excel",
    ".xls": "excel",
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
UNREADABLE = (pa.ArrowException, OSError, ValueError, OverflowError, RecursionError, csv.Error, zipfile.BadZipFile)
HEAD = 1 << 16  # bytes from which the form of a text file is guessed
LINE = 1 << 26  # bytes of the longest line of JSON


@dataclass(frozen=True)
class Text:
    """The form of a CSV file."""

    separator: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    comments: int = 0  # lines above the header that begin with #


# ── which files ─────────────────────────────────────────────────────────────────────────────────────────────────────


def table_files(path: Path) -> tuple[Path, ...]:
    """The table files of a folder or a pattern in the order of their names, or the one file. Raises InputError for
    none."""
    if path.is_file():
        return (path,)
    if path.is_dir():
        inside = (one for one in sorted(path.rglob("*")) if one.is_file() and not _hidden(one.relative_to(path)))
        found = tuple(one for one in inside if _suffix(one) and one.parent.parent.suffix != ".columns")  # see `memmap`
        if not found:
            raise InputError(
                f"{path} is a folder without table files; known suffixes are {', '.join(FORMATS)}. Pictures and sounds "
                "are read by --images and --audio."
            )
        return found
    pattern = str(path.relative_to(path.anchor))
    found = tuple(one for one in sorted(Path(path.anchor or ".").glob(pattern)) if one.is_file())
    if not found:
        beside = [one.name for one in path.parent.iterdir() if one.is_file()] if path.parent.is_dir() else []
        raise InputError(f"{path} does not exist; give the path of a table file.{did_you_mean(path.name, beside)}")
    return found


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _suffix(path: Path) -> str | None:
    name = path.name.lower()
    for packed in PACKED:
        name = name.removesuffix(packed)
    return next((suffix for suffix in FORMATS if name.endswith(suffix)), None)


def format_of(path: Path) -> str:
    suffix = _suffix(path)
    if suffix is None:
        raise InputError(
            f"{path}: cannot tell the kind of table from the name; known suffixes are {', '.join(FORMATS)} (text also "
            f"with {', '.join(PACKED)}). Convert the file, or read it yourself and pass the data frame to "
            "SeriesDataset.from_frame."
        )
    return FORMATS[suffix]


@functools.cache
def standard_input() -> Path:
    """What comes through the pipe, in a temporary file, as its columns are looked at before they are read."""
    folder = Path(tempfile.mkdtemp(prefix="rotarymae-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    head = sys.stdin.buffer.read(8)
    suffix = next((suffix for start, suffix in BEGINNINGS.items() if head.startswith(start)), ".csv")
    path = folder / f"standard input{suffix}"
    with path.open("wb") as file:
        file.write(head)
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path


def stem(path: Path) -> str:
    """The name of a file without the suffixes that say how it is read: one of packing, one of a format."""
    name = path.name
    for suffixes in (PACKED, FORMATS):
        ending = next((suffix for suffix in suffixes if name.lower().endswith(suffix)), "")
        name = name[: len(name) - len(ending)]
    return name


# ── how a file is written ───────────────────────────────────────────────────────────────────────────────────────────


def sniff(path: Path, format: str) -> Text:
    """The form of a CSV file: the separator that makes most columns, as many in every row as in the header."""
    usual = "\t" if format == "tsv" else ","
    with named(path, format), pa.input_stream(str(path), compression="detect") as file:
        head = file.read(HEAD)
    encoding = "utf-8"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    else:
        try:
            codecs.getincrementaldecoder("utf-8")().decode(head)
        except UnicodeDecodeError:
            encoding = "latin-1"
    lines = head.decode(encoding, errors="ignore").removeprefix("\ufeff").splitlines()
    lines = lines[: 100 if len(head) < HEAD else max(1, min(100, len(lines) - 1))]  # the last one may be cut
    comments = next((i for i, line in enumerate(lines) if not line.startswith("#")), 0)
    above, lines = lines[:comments], lines[comments:]
    best, most, cells = usual, 1, []
    for separator in dict.fromkeys((usual, ",", ";", "\t", "|")):
        rows = [row for row in csv.reader(lines, delimiter=separator) if row]
        if rows and len(rows[0]) > most and all(len(row) == len(rows[0]) for row in rows):
            best, most, cells = separator, len(rows[0]), [cell for row in rows[1:] for cell in row]
    comma = any(re.fullmatch(r"\s*-?\d*,\d+([eE][-+]?\d+)?\s*", cell) for cell in cells)
    point = any(re.fullmatch(r"\s*-?\d*\.\d+([eE][-+]?\d+)?\s*", cell) for cell in cells)
    below = lines[0].split(best) if lines else []
    if above and most > 1 and len(above[-1].split(best)) == most and any(re.match(r'[\s"]*[-+.]?\d', c) for c in below):
        comments -= 1  # "#id,time,value" is the header
    return Text(best, "," if best != "," and comma and not point else ".", encoding, comments)


def words(form: Text) -> str:
    encodings = {"utf-8": "", "utf-16": ", read as UTF-16", "latin-1": ", read as Latin-1, as it is no UTF-8"}
    comma = " and decimal commas" if form.decimal == "," else ""
    name = {"\t": "tabs"}.get(form.separator, repr(form.separator))
    below = f", below {form.comments} lines of comment" if form.comments else ""
    return f"separated by {name}{comma}{below}{encodings[form.encoding]}"


# ── formats that are read whole ─────────────────────────────────────────────────────────────────────────────────────


def _read_excel(path: Path, missing: Sequence[str]) -> pa.Table:
    try:
        import pandas

        sheets = pandas.read_excel(path, sheet_name=None, na_values=list(missing))
        (first, frame), *others = sheets.items()
        if others:
            rest = listed(name for name, _ in others)
            text = f"{path.name}: the first sheet, {first!r}, is read and {rest} not; save each sheet as a file."
            warnings.warn(text, InputWarning, stacklevel=4)
        return pa.Table.from_pandas(frame, preserve_index=False)
    except ImportError as error:
        raise InputError(
            f"{path}: an Excel file needs pandas with openpyxl, or with python-calamine for .xls (pip install pandas "
            "openpyxl python-calamine); or save the sheet as CSV."
        ) from error


def _read_json(path: Path, _: Sequence[str]) -> pa.Table:
    content = json.loads(path.read_text(encoding="utf-8-sig"))
    if isinstance(content, dict) and all(isinstance(column, list) for column in content.values()):
        return pa.Table.from_pydict(content)
    if isinstance(content, list) and all(isinstance(row, dict) for row in content):
        names = dict.fromkeys(name for row in content for name in row)  # Arrow takes those of the first row alone
        return pa.Table.from_pydict({name: [row.get(name) for row in content] for name in names})
    raise ValueError("neither a list of records nor lists by column")


def _read_json_lines(path: Path, _: Sequence[str]) -> pa.Table:
    # A block holds at least one whole line, and a line can hold the lists of a long series.
    return pyarrow.json.read_json(path, pyarrow.json.ReadOptions(block_size=LINE))


WHOLE = {"excel": _read_excel, "json": _read_json, "jsonl": _read_json_lines}


@contextmanager
def named(path: Path, format: str) -> Iterator[None]:
    """Names the file in what its reader raises."""
    try:
        yield
    except InputError:
        raise
    except UNREADABLE as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        if "CSV conversion error" in reason and "UTF8" not in reason:  # only of files that are read in parts
            raise InputError(
                f"{path} is read in parts, and its first rows decide what a column holds; later ones differ: {reason}. "
                "Mend that row, or convert the table to Parquet."
            ) from error
        if "invalid UTF8" in reason:  # what is read whole is then read as Latin-1
            raise InputError(
                f"{path} is not UTF-8 throughout, and too large to be read as a whole; convert it first, by iconv "
                "-f latin1 -t utf8 for example."
            ) from error
        raise InputError(
            f"{path} cannot be read as {format}: {reason}. Is it complete, and is it a {format} file?"
        ) from error
