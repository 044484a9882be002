"""What is true of each series, from a table with one row per series or one per observation: labels, splits, facts."""

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
from rotarymae.series.columns import static_column
from rotarymae.series.dataset import SeriesDataset
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
    """Return the labels [S] of a data set's series, in its order, from a table that is matched by id.

    Args:
        source: a file or data frame with one row per series, or several with the same label, as in the table of
            observations.
        unlabelled: a series without a label (or with an empty one) is an "error", or its label is None ("none").
        na: cells that mean "missing", besides empty ones.

    Returns:
        int64, float64, bool or string labels; objects where a label is None.

    Raises:
        InputError: naming the ids: series without a label, ids with two different ones; missing labels; no label of
            any series.

    Warns:
        InputWarning: labels that belong to no series; texts such as N/A, which are classes like others.
    """
    choose("unlabelled", unlabelled, ("error", "none"))
    ids, values = _read(source, id, label, na)
    aligned = _align(dataset, ids, values, label, unlabelled, "label")
    if aligned.dtype == object:
        doubtful = Counter(
            name for name in aligned if isinstance(name, str) and name.strip().lower() in WORDS_FOR_NO_LABEL
        )
        for name, count in doubtful.items():
            text = f"{count:,} series have the label {name!r}, which is taken as a class"
            text += f"; if it says that there is none, read it as missing (--na {name})."
            warnings.warn(text, InputWarning, stacklevel=2)
    return aligned


def align_column(
    dataset: SeriesDataset, source: Any, id: str, name: str, na: tuple[str, ...] = ()
) -> tuple[np.ndarray, bool]:
    """Return a column's values [S] in the order of a data set's series, None where one has none, and whether they were
    dates, which become days since 1970-01-01. Arguments and errors as of `align_labels`, and other dates than ISO."""
    ids, values = _read(source, id, name, na)
    as_days = pa.types.is_temporal(values.type)
    if cells.is_text(values.type):
        there = values.is_valid().to_numpy(zero_copy_only=False)
        as_days = bool(there.any()) and bool(cells.matches(values, cells.ISO)[there].all())
        if not as_days:
            dates.refuse_other_dates(values, name)
    if as_days:
        values = pa.array(cells.times(values, name).values, from_pandas=True)
    return _align(dataset, ids, values, name, "none", f"value of {name!r}"), as_days


def with_static(
    dataset: SeriesDataset, source: Any, id: str, names: tuple[str, ...], na: tuple[str, ...] = ()
) -> SeriesDataset:
    """Return a data set with static columns of the objects' table, which has one row per series."""
    table, static = open_source(source), dict(dataset.static)
    table.need([id], advice=", by which its rows belong to series")
    columns = table.read([id, *names])
    codes, ids = cells.encode(_ids(table, columns[id], id))
    if not len(ids):
        raise InputError(f"{table.name} has no row with an id.", code="no-observations")
    place, there, _ = _match(dataset.ids, ids)
    for name in names:
        values, caution = static_column(columns[name], name, codes, ids, na, parse=table.is_text)
        if caution:
            warnings.warn(caution, InputWarning, stacklevel=3)
        static[name] = values[place]
        if not there.all():
            static[name] = (
                np.where(there, static[name].astype(float), np.nan)
                if values.dtype.kind in "iuf"
                else np.where(there, static[name], None)  # pyright: ignore
            )
    if not there.all():
        text = f"{(~there).sum():,} series are not in {table.name}: {listed(dataset.ids[~there])}; what is static of "
        text += "them is missing."
        warnings.warn(text, InputWarning, stacklevel=3)
    return replace(dataset, static=static)


def _ids(table: Source, column: pa.Array, name: str) -> pa.Array:
    ids = cells.labels(column, name)
    return ids.cast(pa.int64()) if table.is_text and cells.are_integers(ids) else ids


def _read(source: Any, id: str, name: str, na: tuple[str, ...]) -> tuple[pa.Array, pa.Array]:
    """Return the ids and the values of a column, as far as both are there."""
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
    ids, values = _ids(table, columns[id], id), cells.trimmed(columns[name])
    if cells.is_text(values.type):
        values = cells.without(values, ("", *na))
        if table.is_text and cells.are_numbers(values):
            values = cells.without_missing(values)
            values = values.cast(pa.int64() if cells.are_integers(values) else pa.float64())
    elif cells.is_numeric(values.type):
        codes = [float(code) for code in na if cells.is_number(code)]
        wrong = pc.is_in(values.cast(pa.float64(), safe=False), value_set=pa.array(codes, pa.float64()))  # pyright: ignore
        values = pc.if_else(pc.or_(wrong, values.is_null(nan_is_null=True)), pa.scalar(None, values.type), values)  # pyright: ignore
    keep = ids.is_valid()
    return ids.filter(keep), values.filter(keep)


def _align(
    dataset: SeriesDataset, ids: pa.Array, values: pa.Array, label: str, unlabelled: str, what: str
) -> np.ndarray:
    """Return the values in the order of the series; messages call what is aligned `what`."""
    gone = values.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    if gone.any() and unlabelled == "none":
        ids, values = ids.filter(pa.array(~gone)), values.filter(pa.array(~gone))
    elif gone.any():
        raise InputError(
            f"column {label!r} is missing (null, NaN or empty) in {gone.sum()} of {len(gone)} rows, the first in row "
            f"{gone.argmax()}; fill the column or drop those rows.",
            code="missing-label",
        )
    rows, labelled = cells.encode(ids)
    exact = cells.labels(values, label, amounts=True)
    if exact.null_count:
        row = int(exact.is_null().to_numpy(zero_copy_only=False).argmax())
        raise InputError(f"column {label!r} is infinite in row {row}; a label must be finite.", code="infinite-label")
    each = cells.label_values(exact)
    first = np.unique(rows, return_index=True)[1]
    found = each[first]
    differs = found[rows] != each
    if differs.any():
        twice = labelled[np.unique(rows[differs])]
        raise InputError(f"{len(twice)} ids have more than one {what}: {listed(twice)}; keep one {what} per id.")
    place, there, labelled = _match(dataset.ids, labelled)
    lost = np.unique(dataset.ids[~there])
    if len(lost) and (unlabelled == "error" or not there.any()):
        raise InputError(f"{len(lost)} series have no {what}: {listed(lost)}; add their {what}s or select the others.")
    surplus = np.delete(labelled, place[there])
    if len(surplus) and what == "label":
        text = f"{len(surplus):,} labels belong to no series and are not used: {listed(surplus)}."
        warnings.warn(text, InputWarning, stacklevel=2)
    if there.all():
        return found[place]
    every = np.full(len(dataset), None, object)
    every[there] = found[place[there]]
    return every


def _match(ids: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the place of each id [S] among the known ones, whether it is among them, and these as they are compared.

    Raises as `_of_one_kind`.
    """
    ids, known = _of_one_kind(ids, known)
    if not len(known):
        return np.zeros(len(ids), int), np.zeros(len(ids), bool), known
    order = np.argsort(known, kind="stable")
    place = order[np.minimum(np.searchsorted(known, ids, sorter=order), len(known) - 1)]
    return place, known[place] == ids, known


def _of_one_kind(own: np.ndarray, labelled: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The ids of the series and of the labels; integers as texts where the others are texts.

    A text file's ids are integers or texts by what else stands in the column. Raises InputError where no text is one of
    the integers, or where one cannot tell what belongs together, as 001 might be 1.
    """
    numeric = [array.dtype.kind in "iufb" for array in (own, labelled)]
    if numeric[0] == numeric[1]:
        return own, labelled
    numbers, texts = (own, labelled) if numeric[0] else (labelled, own)
    unclear = any(text.isdecimal() and str(int(text)) != text for text in texts)
    as_texts = numbers.astype(str).astype(object)
    if numbers.dtype.kind in "iu" and not unclear and np.isin(texts, as_texts).any():
        return (as_texts, labelled) if numeric[0] else (own, as_texts)
    kinds = ["numbers" if n else "strings" for n in numeric]
    raise InputError(
        f"the ids of the series are {kinds[0]} ({listed(own[:1])}), those of the labels {kinds[1]} "
        f"({listed(labelled[:1])}); convert one of them."
    )
