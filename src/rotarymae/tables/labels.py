"""Facts about each series, from a table with one row per series or one per observation: labels, splits, facts."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rotarymae.errors import InputError, InputWarning, choose, listed
from rotarymae.series import cells, dates
from rotarymae.series.columns import one_per_series, plain_cells, static_column, static_values
from rotarymae.series.dataset import SeriesDataset
from rotarymae.tables.guess import key_column
from rotarymae.tables.source import Source, open_source

WORDS_FOR_NO_LABEL = ("na", "n/a", "#n/a", "<na>", "nan", "null", "none", "?", "-")


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
        unlabelled: a series without a label is an "error", or gets the label None ("none").
        na: cells that mean "missing", besides empty ones.

    Returns:
        Labels [S] in the order of the series: int64, float64, bool or string; objects where a label is None.

    Raises:
        InputError: naming the ids: series without a label, ids with two different ones; no label for any series.

    Warns:
        InputWarning: labels whose id is no series; texts such as N/A, which are treated as classes.
    """
    choose("unlabelled", unlabelled, ("error", "none"))
    ids, cells_of = _read(source, id, label, na)
    gone = cells_of.is_null().to_numpy(zero_copy_only=False)
    if gone.any() and unlabelled == "error":
        raise InputError(
            f"column {label!r} is missing (null, NaN or empty) in {gone.sum()} of {len(gone)} rows, the first in row "
            f"{gone.argmax()}; fill the column or drop those rows.",
            code="missing-label",
        )
    if pa.types.is_floating(cells_of.type) and np.isinf(cells_of.to_numpy(zero_copy_only=False)).any():
        raise InputError(f"column {label!r} is infinite in some row; a label must be finite.", code="infinite-label")
    keep = pa.array(~gone)
    labels, surplus = _aligned(dataset, ids.filter(keep), cells_of.filter(keep), label)
    lost = dataset.ids[labels.is_null().to_numpy(zero_copy_only=False)]
    if len(lost) and (unlabelled == "error" or len(lost) == len(dataset)):
        raise InputError(f"{len(lost)} series have no label: {listed(lost)}; add their labels or select the others.")
    if len(surplus):
        text = f"{len(surplus):,} labels belong to no series and are not used: {listed(surplus)}."
        warnings.warn(text, InputWarning, stacklevel=2)
    aligned = _array(labels)
    doubtful = Counter(
        name for name in aligned.tolist() if isinstance(name, str) and name.lower() in WORDS_FOR_NO_LABEL
    )
    for name, count in doubtful.items():
        text = f"{count:,} series have the label {name!r}, which is taken as a class"
        text += f"; if it says that there is none, read it as missing (--na {name})."
        warnings.warn(text, InputWarning, stacklevel=2)
    return aligned


def align_column(
    dataset: SeriesDataset, source: Any, id: str, name: str, na: tuple[str, ...] = ()
) -> tuple[np.ndarray, bool]:
    """Read one value for each series from a column of a table, matched by id.

    Arguments and errors as in `align_labels`; also raised for dates that are not ISO dates.

    Returns:
        Values [S], None where a series has none; and whether they were dates, which become days since 1970-01-01.
    """
    ids, values = _read(source, id, name, na)
    as_days = pa.types.is_temporal(values.type)
    if cells.is_text(values.type):
        there = values.is_valid().to_numpy(zero_copy_only=False)
        as_days = bool(there.any()) and bool(cells.matches(values, dates.ISO)[there].all())
        if not as_days:
            dates.refuse_other_dates(values, name)
    if as_days:
        values = pa.array(dates.times(values, name).values, from_pandas=True)
    aligned, _ = _aligned(dataset, ids, values, name)
    if aligned.null_count == len(aligned):
        raise InputError(f"no series has a value of {name!r}.")
    return _array(aligned), as_days


def with_static(
    dataset: SeriesDataset, source: Any, id: str, names: tuple[str, ...], na: tuple[str, ...] = ()
) -> SeriesDataset:
    """Return a data set with further static columns from a table with one row per series."""
    table, static = open_source(source), dict(dataset.static)
    id = key_column(table, id)
    columns = table.read([id, *names])
    codes, ids = cells.encode(_ids(table, columns[id], id))
    place, there, _ = _match(dataset.ids, ids)
    for name in names:
        values, caution = static_column(columns[name], name, codes, ids, na, parse=table.is_text)
        if caution:
            warnings.warn(caution, InputWarning, stacklevel=3)
        kept = pa.array(values, from_pandas=True).take(pa.array(place, mask=~there))
        static[name] = static_values(kept)
    if not there.all():
        text = f"{(~there).sum():,} series are not in {table.name}: {listed(dataset.ids[~there])}; what is static of "
        text += "them is missing."
        warnings.warn(text, InputWarning, stacklevel=3)
    return replace(dataset, static=static)


def _array(cells_of: pa.Array) -> np.ndarray:
    return np.array(cells_of.to_pylist(), object) if cells_of.null_count else cells.label_values(cells_of)


def _ids(table: Source, column: pa.Array, name: str) -> pa.Array:
    ids = cells.labels(column, name)
    return ids.cast(pa.int64()) if table.is_text and cells.are_integers(ids) else ids


def _read(source: Any, id: str, name: str, na: tuple[str, ...]) -> tuple[pa.Array, pa.Array]:
    """Read the id column and another column of a table; rows without an id are left out."""
    table = open_source(source)
    if id in ("file", "id") and id not in table.columns and name in table.columns:
        id, table = "file", table.with_ids_of_files()
    table.need([id], "id column")
    table.need([name], "label column")
    if id == name:
        raise InputError(
            f"column {id!r} is given twice, as id and as label; name each column once.", code="column-twice"
        )
    columns = table.read([id, name], distinct=not table.in_memory)
    if not len(columns[id]):
        raise InputError(f"the labels table has no rows (columns: {listed(table.columns)}).", code="no-observations")
    ids, values = _ids(table, columns[id], id), columns[name]
    if not pa.types.is_temporal(values.type):
        values = plain_cells(values, name, na, parse=table.is_text, words=False)
    return ids.filter(ids.is_valid()), values.filter(ids.is_valid())


def _aligned(dataset: SeriesDataset, ids: pa.Array, values: pa.Array, name: str) -> tuple[pa.Array, np.ndarray]:
    """Match values to series by id.

    Returns:
        The value of each series [S], null where there is none, and the ids of values without a series.
    """
    codes, distinct = cells.encode(ids)
    kept, _ = one_per_series(values, name, codes, distinct)
    place, there, known = _match(dataset.ids, distinct)
    return kept.take(pa.array(place, mask=~there)), np.delete(known, place[there])


def _match(ids: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Look up ids among known ones.

    Returns:
        The index of each id [S], whether it is known, and the known ids in the type in which they were compared. Raises
        as `_of_one_kind`.
    """
    if not len(known):
        return np.zeros(len(ids), int), np.zeros(len(ids), bool), known
    ids, known = _of_one_kind(ids, known)
    place = pc.index_in(pa.array(ids), value_set=pa.array(known))  # pyright: ignore
    return place.fill_null(0).to_numpy(), place.is_valid().to_numpy(zero_copy_only=False), known


def _of_one_kind(ids: np.ndarray, labelled: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return both lists of ids in one type, so that they can be compared; integers become text if the others are text.

    A text file's ids may be read as integers in one table and as text in another. Raises InputError where no text
    equals an integer, or where the match is ambiguous, as for 001 and 1.
    """
    numeric = [array.dtype.kind in "iufb" for array in (ids, labelled)]
    if numeric[0] == numeric[1]:
        return ids, labelled
    numbers, texts = (ids, labelled) if numeric[0] else (labelled, ids)
    unclear = any(text.isdecimal() and str(int(text)) != text for text in texts)
    as_texts = numbers.astype(str).astype(object)
    if numbers.dtype.kind in "iu" and not unclear and np.isin(texts, as_texts).any():
        return (as_texts, labelled) if numeric[0] else (ids, as_texts)
    kinds = ["numbers" if n else "strings" for n in numeric]
    raise InputError(
        f"the ids of the series are {kinds[0]} ({listed(ids[:1])}), those of the labels {kinds[1]} "
        f"({listed(labelled[:1])}); convert one of them."
    )
