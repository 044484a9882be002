"""Arrays in which some values are masked."""

from __future__ import annotations

from typing import Any

import numpy as np


def unmasked(values: Any) -> np.ndarray:
    """Return values as a plain array, in which masked entries, also in a list of masked rows, are NaN (NaT for dates).

    If some entries are masked, whole numbers and booleans become float64; in text they are "nan". Else the dtype stays.
    Raises ValueError for rows of unequal length.
    """
    if type(values) in (list, tuple) and any(isinstance(one, np.ma.MaskedArray) for one in values):
        values = np.ma.array(values)
    if not np.ma.is_masked(values):
        return np.asarray(values)
    if values.dtype.kind in "mM":
        return values.filled(np.array("NaT", values.dtype))
    if values.dtype.kind in "US":  # which may be too short for "nan"
        return np.where(values.mask, "nan", values.data)
    return (values.astype(np.float64) if values.dtype.kind in "iub" else values).filled(np.nan)
