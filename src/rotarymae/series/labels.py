"""Labels in the order of a data set's series."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from rotarymae.errors import InputError, InputWarning, choose, listed
from rotarymae.series import dates, tables
from rotarymae.series.dataset import SeriesDataset

NO_LABEL = ("na", "n/a", "#n/a", "<na>", "nan", "null", "none", "?", "-")


def align_labels(
    dataset: SeriesDataset,
    labels_frame: Any,
    id: str = "id",
    label: str = "label",
    unlabelled: Literal["error", "none"] = "error",
) -> np.ndarray:
    """The labels [S] of a dataset's series, in its order, from a table that is matched by id.

    Args:
        labels_frame: one row per series, or several with the same label, as in the table of observations.
        unlabelled: a series without a label (or with an empty one) is an "error", or its label is None ("none").

    Returns:
        int64, float64, bool or string labels; objects where a label is None.

    Raises:
        InputError: naming the ids: series without a label, ids with two different ones; missing labels; no label of
            any series.

    Warns:
        InputWarning: labels that belong to no series; texts such as N/A, which are classes like others.
    """
    choose("unlabelled", unlabelled, ("error", "none"))
    seen = tables.as_frame(labels_frame, "labels table")
    tables.need_columns(seen, [("id", id), ("label", label)], "labels table")
    found = _align(dataset, seen, id, label, unlabelled, "label")
    if found.dtype == object:
        doubtful = Counter(name for name in found if isinstance(name, str) and name.strip().lower() in NO_LABEL)
        for name, count in doubtful.items():
            text = f"{count:,} series have the label {name!r}, which is taken as a class"
            text += f"; if it says that there is none, read it as missing (--na {name})."
            warnings.warn(text, InputWarning, stacklevel=2)
    return found


def align_column(dataset: SeriesDataset, frame: Any, id: str, name: str) -> tuple[np.ndarray, bool]:
    """A column's values [S] in the order of a dataset's series, None where one has none; and whether they were dates,
    which become days since 1970-01-01. Arguments and errors as of `align_labels`, and other dates than ISO."""
    seen = tables.as_frame(frame)
    tables.need_columns(seen, [("id", id), ("value", name)])
    cells = dates.from_iso(tables.trimmed(tables.arrow_column(seen, name)))
    dates.refuse_other_dates(cells, name)
    as_days = dates.zone(cells) is not None
    if as_days:
        days = pa.array(dates.times(cells, name)[0], from_pandas=True)
        seen = tables.as_frame(pa.table({id: tables.arrow_column(seen, id), name: days}))
    return _align(dataset, seen, id, name, "none", f"value of {name!r}"), as_days


def _align(dataset: SeriesDataset, seen: Any, id: str, label: str, unlabelled: str, what: str) -> np.ndarray:
    """`align_labels`; messages call what is aligned `what`."""
    ids, cells = tables.label_array(tables.arrow_column(seen, id), id), tables.trimmed(tables.arrow_column(seen, label))
    if unlabelled == "none":
        gone = tables.absent_labels(cells)
        ids, cells = ids.filter(pa.array(~gone)), cells.filter(pa.array(~gone))
    rows, labelled = tables.encode(ids)
    each = tables.label_values(tables.label_array(cells, label, amounts=True))
    first = np.unique(rows, return_index=True)[1]
    found = each[first]
    differs = found[rows] != each
    if differs.any():
        twice = labelled[np.unique(rows[differs])]
        raise InputError(f"{len(twice)} ids have more than one {what}: {listed(twice)}; keep one {what} per id.")
    own, labelled = _of_one_kind(dataset.ids, labelled)
    there = np.isin(own, labelled)
    lost = np.unique(dataset.ids[~there])
    if len(lost) and (unlabelled == "error" or not there.any()):
        raise InputError(f"{len(lost)} series have no {what}: {listed(lost)}; add their {what}s or select the others.")
    surplus = labelled[~np.isin(labelled, own)]
    if len(surplus) and what == "label":
        text = f"{len(surplus):,} labels belong to no series and are not used: {listed(surplus)}."
        warnings.warn(text, InputWarning, stacklevel=2)
    order = np.argsort(labelled, kind="stable")
    at = order[np.searchsorted(labelled, own[there], sorter=order)]
    if there.all():
        return found[at]
    every = np.full(len(dataset), None, object)
    every[there] = found[at]
    return every


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
