"""Labels in the order of a data set's series."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from rotarymae.errors import InputError, InputWarning, choose, listed
from rotarymae.series import tables
from rotarymae.series.dataset import SeriesDataset


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
        InputWarning: labels that belong to no series.
    """
    choose("unlabelled", unlabelled, ("error", "none"))
    seen = tables.as_frame(labels_frame, "labels table")
    tables.need_columns(seen, [("id", id), ("label", label)], "labels table")
    ids, cells = tables.label_array(tables.arrow_column(seen, id), id), tables.arrow_column(seen, label)
    if unlabelled == "none":
        gone = tables.absent_labels(cells)
        ids, cells = ids.filter(pa.array(~gone)), cells.filter(pa.array(~gone))
    rows, labelled = tables.encode(ids)
    each = tables.label_values(tables.label_array(cells, label))
    first = np.unique(rows, return_index=True)[1]
    found = each[first]
    differs = found[rows] != each
    if differs.any():
        twice = labelled[np.unique(rows[differs])]
        raise InputError(f"{len(twice)} ids have more than one label: {listed(twice)}; keep one label per id.")
    if labelled.dtype.kind == "f" and (np.abs(labelled) > 2**53).any() and dataset.ids.dtype.kind in "iu":
        raise InputError(
            f"the ids of the labels table are floating point numbers above 2^53 ({listed(labelled[:1])}), which have "
            "lost their last digits; read its ids as integers."
        )
    numeric = [array.dtype.kind in "iufb" for array in (dataset.ids, labelled)]
    if numeric[0] != numeric[1]:
        kinds = ["numbers" if n else "strings" for n in numeric]
        raise InputError(
            f"the ids of the series are {kinds[0]} ({listed(dataset.ids[:1])}), those of the labels {kinds[1]} "
            f"({listed(labelled[:1])}); convert one of them."
        )
    there = np.isin(dataset.ids, labelled)
    lost = np.unique(dataset.ids[~there])
    if len(lost) and (unlabelled == "error" or not there.any()):
        raise InputError(f"{len(lost)} series have no label: {listed(lost)}; add their labels or select the others.")
    surplus = labelled[~np.isin(labelled, dataset.ids)]
    if len(surplus):
        text = f"{len(surplus):,} labels belong to no series and are not used: {listed(surplus)}."
        warnings.warn(text, InputWarning, stacklevel=2)
    order = np.argsort(labelled, kind="stable")
    at = order[np.searchsorted(labelled, dataset.ids[there], sorter=order)]
    if there.all():
        return found[at]
    every = np.full(len(dataset), None, object)
    every[there] = found[at]
    return every
