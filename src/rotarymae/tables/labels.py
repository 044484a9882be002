"""Facts about each series, from a table with one row per series or one per observation: labels, splits, facts."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rotarymae.errors import InputError, InputWarning, choose, listed
from rotarymae.series import cells, dates
from rotarymae.series.dataset import SeriesDataset
from rotarymae.series.reading import ReadingReport
from rotarymae.tables.guess import key_column
from rotarymae.tables.source import Source, open_source

WORDS_FOR_NO_LABEL = ("na", "n/a", "#n/a", "<na>", "nan", "null", "none", "?", "-")
MAX_CHANGING = 0.01  # of the series; more that change a static column make it none


def align_labels(
    dataset: SeriesDataset,
    source: Any,
    id: str = "id",
    label: str = "label",
    unlabelled: Literal["error", "none"] = "error",
    na: tuple[str, ...] = (),
) -> np.ndarray:
    """Read one label for each series of a data set from a table, matched by id.

    Args:
        source: a file or data frame with one row per series, or several rows with the same label.
        id: its column of ids. Where it has no column "id" or "file", these mean the name of the file of each row.
        label: its column of labels.
        unlabelled: a series without a label, or a row of the table with an empty label, is an "error", or gets the
            label None ("none").
        na: cells that mean "missing", besides empty ones.

    Returns:
        Labels [S] in the order of the series: int64, float64, bool or string; objects where a label is None.

    Raises:
        InputError: naming the ids: series without a label, ids with two different ones; no label for any series; an
            infinite label; a column that is absent.

    Warns:
        InputWarning: labels whose id is no series; texts such as N/A, which are treated as classes.
    """
    choose("unlabelled", unlabelled, ("error", "none"))
    ids, values = _read(source, id, label, na)
    gone = values.is_null().to_numpy(zero_copy_only=False)
    if gone.any() and unlabelled == "error":
        raise InputError(
            f"column {label!r} is missing (null, NaN or empty) in {gone.sum()} of {len(gone)} rows, the first in row "
            f"{gone.argmax()} (counted from 0); fill the column or drop those rows.",
            code="missing-label",
        )
    _refuse_infinite(values, f"column {label!r}", "infinite-label", lambda at: f"row {at} (counted from 0)")
    labels, surplus = _aligned(dataset, ids.filter(pa.array(~gone)), values.filter(pa.array(~gone)), label)
    lost = dataset.ids[labels.is_null().to_numpy(zero_copy_only=False)]
    if len(lost) and (unlabelled == "error" or len(lost) == len(dataset)):
        others = f" There are labels of {listed(surplus)}." if surplus else ""
        raise InputError(
            f"{len(lost)} series have no label: {listed(lost)}; add their labels or select the others.{others}"
        )
    if surplus:
        text = f"{len(surplus):,} labels belong to no series and are not used: {listed(surplus)}."
        warnings.warn(text, InputWarning, stacklevel=2)
    aligned = _array(labels)
    texts = Counter(name for name in aligned.tolist() if isinstance(name, str) and name.lower() in WORDS_FOR_NO_LABEL)
    for name, count in texts.items():
        text = f"{count:,} series have the label {name!r}, which is taken as a class; if it says that there is none, "
        warnings.warn(f"{text}read it as missing (--na {name}).", InputWarning, stacklevel=2)
    return aligned


def align_column(
    dataset: SeriesDataset, source: Any, id: str, name: str, na: tuple[str, ...] = ()
) -> tuple[np.ndarray, bool]:
    """Read one value for each series of a data set from a column of a table, matched by id.

    Args:
        source, id, na: as in `align_labels`.
        name: the column. Dates become days since 1970-01-01.

    Returns:
        Values [S], None for a series without one; and whether they were dates.

    Raises:
        InputError: as `align_labels`, but not for series without a value, unless that is all; dates that are not ISO
            dates.
    """
    ids, values = _read(source, id, name, na)
    as_days = pa.types.is_temporal(values.type)
    if cells.is_text(values.type):
        texts = values.drop_null()
        as_days = bool(len(texts)) and bool(cells.matches(texts, dates.ISO).all())
        if not as_days:
            dates.refuse_other_dates(values, name)
    if as_days:
        values = pa.array(dates.times(values, name).values, from_pandas=True)
    aligned, _ = _aligned(dataset, ids, values, name)
    if aligned.null_count == len(aligned):
        raise InputError(f"no series has a value of the column {name!r}; check that the ids are those of the series.")
    return _array(aligned), as_days


def with_static(
    dataset: SeriesDataset, source: Any, id: str, names: tuple[str, ...], na: tuple[str, ...] = ()
) -> SeriesDataset:
    """Return a data set with further static columns from a table with one row per series, matched by id.

    Args:
        source: a file or data frame.
        id: its column of ids; if it lacks that, the only one that looks like an id is taken.
        names: the columns.
        na: cells that mean "missing", besides the usual ones.

    Raises:
        InputError: an absent column, an infinite value, many series with several values.

    Warns:
        InputWarning: series that the table lacks, whose values are missing; a few series with several values.
    """
    table, static = open_source(source), dict(dataset.static)
    id = key_column(table, id)
    columns = table.read([id, *names])
    codes, ids = cells.encode(_ids(table, columns[id], id))
    place = _match(dataset.ids, ids)
    for name in names:
        values, report = static_column(columns[name], name, codes, ids, na, parse=table.is_text)
        for loss in report.losses():
            warnings.warn(loss, InputWarning, stacklevel=3)
        static[name] = static_values(values.take(place))
    if place.null_count:
        lost = dataset.ids[place.is_null().to_numpy(zero_copy_only=False)]
        text = f"{len(lost):,} series are not in {table.name}: {listed(lost)}; what is static of them is missing."
        warnings.warn(text, InputWarning, stacklevel=3)
    return replace(dataset, static=static)


def static_column(
    column: pa.Array, name: str, series: np.ndarray, ids: pa.Array, na: Sequence[str] = (), parse: bool = False
) -> tuple[pa.Array, ReadingReport]:
    """Return one value per series [S] of a column that repeats it on every row, and the doubts as a report.

    Missing cells, those of `na` included, are ignored. If a few series have different values, the first of each counts.
    With `parse`, texts that all look like numbers become numbers, as in text files.

    Args:
        series: [rows], index of each row's series in `ids` [S]; -1 without one.

    Raises:
        InputError: an infinite value ("unusable-cell"); many series with several values ("several-values").
    """
    codes, values = cells.encode(column, lambda column: _plain(column, name, na, parse, words=True))
    _refuse_infinite(
        values,
        f"static column {name!r}",
        "unusable-cell",
        lambda at: f"series {listed([ids[series[np.argmax(codes == at)]].as_py()])}",
    )
    return _first_of_each(codes, values, name, series, ids, MAX_CHANGING)


def static_values(values: pa.Array) -> np.ndarray:
    """Return static cells as a numpy array; missing numbers are NaN, other missing cells None."""
    numbers = cells.is_numeric(values.type) or pa.types.is_null(values.type)
    if numbers and (values.null_count or pa.types.is_floating(values.type)):
        return values.cast(pa.float64()).to_numpy(zero_copy_only=False).copy()
    return cells.label_values(values)


def _array(values: pa.Array) -> np.ndarray:
    return np.array(values.to_pylist(), object) if values.null_count else cells.label_values(values)


def _ids(table: Source, column: pa.Array, name: str) -> pa.Array:
    return cells.labels(cells.as_integers(column) if table.is_text else column, name)


def _refuse_infinite(values: pa.Array, what: str, code: str, place: Callable[[int], str]) -> None:
    """Raise InputError if a value is infinite; `place` says where the value of an index is in the table."""
    if pa.types.is_floating(values.type) and (infinite := pc.is_inf(values)).true_count:  # pyright: ignore
        where = place(infinite.index(True).as_py())
        raise InputError(f"{what} is infinite, first in {where}; correct it, or leave the cell empty.", code=code)


def _read(source: Any, id: str, name: str, na: tuple[str, ...]) -> tuple[pa.Array, pa.Array]:
    """Read the id column and another column of a table, as (ids, values); rows without an id are left out.

    Values are labels, numbers or dates, null where missing. If the table lacks a column `id` that is called "id" or
    "file", the ids are the names of the files. Raises InputError for an absent column, one for both, and no rows.
    """
    table = open_source(source)
    if id in ("file", "id") and id not in table.columns and name in table.columns:
        id, table = "file", table.with_ids_of_files()
    if id == name:
        raise InputError(
            f"column {id!r} is given twice, as id and as label; name each column once.", code="column-twice"
        )
    columns = table.read([id, name], distinct=not table.in_memory)
    if not len(columns[id]):
        raise InputError(f"the labels table has no rows (columns: {listed(table.columns)}).", code="no-observations")
    ids, values = _ids(table, columns[id], id), columns[name]
    if not pa.types.is_temporal(values.type):
        values = _plain(values, name, na, parse=table.is_text, words=False)
    return ids.filter(ids.is_valid()), values.filter(ids.is_valid())


def _plain(column: pa.Array, name: str, na: Sequence[str], parse: bool, words: bool) -> pa.Array:
    """Return a column as labels or numbers, null where a cell is missing.

    Args:
        na: cells that mean "missing", besides empty ones: texts, or numbers in any spelling.
        parse: whether texts that all look like numbers become numbers, as in text files.
        words: whether the usual words for "missing", such as NA, always mean that in parsed texts, and numbers become
            floats. Otherwise the words do so only next to numbers alone, and whole numbers become integers.

    Raises:
        InputError: cells that are neither text, numbers nor booleans.
    """
    column = cells.trimmed(column)
    if cells.is_text(column.type):
        column = cells.without(column, ("", *na))
        if not parse:
            return column
        numbers = cells.typed(cells.without_missing(column), integers=not words)
        return numbers if words or not cells.is_text(numbers.type) else column
    if not cells.is_numeric(column.type):
        return cells.labels(column, name)
    codes = pa.array([float(code) for code in na if cells.is_number(code)], pa.float64())
    gone = pc.or_(pc.is_in(column.cast(pa.float64(), safe=False), codes), column.is_null(nan_is_null=True))  # pyright: ignore
    column = pc.if_else(gone, pa.scalar(None, column.type), column)  # pyright: ignore
    column = column.cast(pa.float64()) if pa.types.is_decimal(column.type) else column
    return column.cast(pa.int64()) if pa.types.is_integer(column.type) and column.type != pa.uint64() else column


def _first_of_each(
    codes: np.ndarray, values: pa.Array, name: str, series: np.ndarray, ids: pa.Array, tolerated: float = 0.0
) -> tuple[pa.Array, ReadingReport]:
    """Return the first present value of each series [S], null where there is none, and the doubts as a report.

    Args:
        codes: [rows], index of each row's cell in `values`; -1 where it is missing.
        series: [rows], index of each row's series in `ids` [S]; -1 without one.
        tolerated: share of the series that may have several values, which are a doubt; InputError for more.
    """
    rows = np.flatnonzero((codes >= 0) & (series >= 0))
    first = np.full(len(ids), -1)
    first[series[rows[::-1]]] = codes[rows[::-1]]  # the last that is written is that of the first row
    kept = values.take(pa.array(first, mask=first < 0))
    differs = rows[codes[rows] != first[series[rows]]]
    if not len(differs):
        return kept, ReadingReport()
    several, row = np.unique(series[differs]), differs[0]
    where = f"{listed(values.take([first[series[row]], codes[row]]).to_pylist())} in {ids[series[row]].as_py()!r}"
    if len(several) > tolerated * len(ids):
        raise InputError(
            f"column {name!r} has several values within series {listed(ids.take(several).to_pylist())}: {where} "
            f"({len(several)} series in all); keep one value per series.",
            code="several-values",
        )
    reason = f"series have several values in column {name!r}; the first counts"
    return kept, ReadingReport(doubts={reason: len(several)}, first={reason: where})


def _aligned(dataset: SeriesDataset, ids: pa.Array, values: pa.Array, name: str) -> tuple[pa.Array, list[Any]]:
    """Match rows (ids, values) to the series: return a value for each [S], null without one, and ids of no series.

    Raises InputError for an id with different values ("several-values").
    """
    series, known = cells.encode(ids)
    kept, _ = _first_of_each(*cells.encode(values), name, series, known)
    place = _match(dataset.ids, known)
    return kept.take(place), np.delete(np.array(known.to_pylist(), object), place.drop_null()).tolist()


def _match(ids: np.ndarray, known: pa.Array) -> pa.Array:
    """Return for each of `ids` [S] its index in `known`, null if it is not there.

    A text file's ids may be read as integers in one table and as text in another; if either is text, both become text.
    """
    ours = pa.array(ids)
    if cells.is_text(ours.type) != cells.is_text(known.type):
        ours, known = (pa.array(list(map(cells.as_text, each.to_pylist()))) for each in (ours, known))
    if ours.type != known.type and cells.is_numeric(ours.type):
        ours = ours.cast(pa.float64())
    return pc.index_in(ours, value_set=known.cast(ours.type))  # pyright: ignore
