"""The kinds of data sets and of their preprocessors, and what is a table of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from rotarymae.arrays import ArrayDataset
from rotarymae.preprocess import ObservationPreprocessor, PatchPreprocessor
from rotarymae.series import SeriesDataset
from rotarymae.system import unmasked
from rotarymae.tables import is_frame

AnyDataset = SeriesDataset | ArrayDataset
AnyPreprocessor = ObservationPreprocessor | PatchPreprocessor
# By the name that a saved model's config.json has for them.
PREPROCESSORS: dict[str, type[AnyPreprocessor]] = {
    kind.kind: kind for kind in (ObservationPreprocessor, PatchPreprocessor)
}


def is_flat(X: Any) -> bool:
    """Return whether X is a table of numbers in scikit-learn's form, [cases, features or times], and no data frame.

    True for an array of at most two axes whose cells are no lists or records, a sparse matrix, and a list or tuple of
    one or more rows of the same length, if each is a list, tuple or array that begins with a scalar.
    """
    if is_frame(X):
        return False
    if isinstance(X, list | tuple):
        rows = [row for row in X if isinstance(row, list | tuple | np.ndarray) and np.iterable(row) and len(row)]
        return len(rows) == len(X) and len({*map(len, rows)}) == 1 and all(np.isscalar(row[0]) for row in rows)
    if hasattr(X, "toarray") or not hasattr(X, "__array__"):
        return hasattr(X, "toarray")
    array = np.asarray(X)
    cell = array.flat[0] if array.dtype == object and array.size else None
    return array.ndim < 3 and array.dtype.names is None and not isinstance(cell, list | tuple | np.ndarray)


def with_channel_axis(X: Any) -> Any:
    """Give a table [cases, times] an axis for channels: return an array [cases, 1, times].

    The table is an array or a list of rows; cells that a NumPy mask hides become NaN. Anything else is returned as it
    is: data frames, sparse matrices, rows of unequal length, arrays of one or three axes.
    """
    if not is_flat(X):
        return X
    try:
        table = unmasked(X)
    except ValueError:  # a list among the numbers
        return X
    return table[:, None] if table.ndim == 2 else X
