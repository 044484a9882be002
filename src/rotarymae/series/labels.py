"""Labels in the order of a data set's series."""

from __future__ import annotations

from typing import Any

import numpy as np

from rotarymae.errors import InputError, listed
from rotarymae.series import tables
from rotarymae.series.dataset import SeriesDataset


def align_labels(dataset: SeriesDataset, labels_frame: Any, id: str = "id", label: str = "label") -> np.ndarray:
    """The labels [S] of a dataset's series, in its order, from a table with one row per series, matched by id.

    Returns:
        int64, float64, bool or string labels.

    Raises:
        InputError: naming the ids: series without a label, labels without a series, ids given twice; missing labels.
    """
    seen = tables.as_frame(labels_frame, "labels table")
    tables.need_columns(seen, [("id", id), ("label", label)], "labels table")
    rows, labelled = tables.encode(tables.label_array(tables.arrow_column(seen, id), id))
    found = tables.label_values(tables.label_array(tables.arrow_column(seen, label), label))
    counts = np.bincount(rows)
    if (counts > 1).any():
        twice = labelled[counts > 1]
        raise InputError(f"{len(twice)} ids have more than one label: {listed(twice)}; keep one row per id.")
    numeric = [array.dtype.kind in "iufb" for array in (dataset.ids, labelled)]
    if numeric[0] != numeric[1]:
        kinds = ["numbers" if n else "strings" for n in numeric]
        raise InputError(
            f"the ids of the series are {kinds[0]} ({listed(dataset.ids[:1])}), those of the labels {kinds[1]} "
            f"({listed(labelled[:1])}); convert one of them."
        )
    lost = np.unique(dataset.ids[~np.isin(dataset.ids, labelled)])
    if len(lost):
        raise InputError(f"{len(lost)} series have no label: {listed(lost)}; add their labels or select the others.")
    surplus = labelled[~np.isin(labelled, dataset.ids)]
    if len(surplus):
        raise InputError(f"{len(surplus)} labels belong to no series: {listed(surplus)}; drop those rows.")
    order = np.argsort(labelled, kind="stable")
    return found[order[np.searchsorted(labelled, dataset.ids, sorter=order)]]
