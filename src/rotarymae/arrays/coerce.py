"""The forms in which the estimators take pictures, videos and sounds, each as an `ArrayDataset`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rotarymae.arrays.dataset import ArrayDataset
from rotarymae.errors import InputError


def as_arrays(data: Any, patch_size: int | Sequence[int] | None, sample_rate: int | None = None) -> ArrayDataset:
    """Data as an `ArrayDataset`: waveforms where a sample rate is given, else pictures or videos.

    Args:
        data: an `ArrayDataset`, which is given back; waveforms as `ArrayDataset.from_waveforms` takes them; or arrays
            as `ArrayDataset.from_arrays` takes them.
        patch_size: as there; needed for arrays.
        sample_rate: of waveforms.

    Raises:
        InputError: another form; and as these.
    """
    if isinstance(data, ArrayDataset):
        return data
    if not isinstance(data, np.ndarray | list | tuple) or len(data) == 0:
        what = "waveforms [n]" if sample_rate is not None else "arrays [*sizes] or [*sizes, channels]"
        raise InputError(f"data came as {type(data).__name__}; wanted a list of {what}, or one array of them.")
    if sample_rate is not None:
        return ArrayDataset.from_waveforms(list(data), sample_rate, 16 if patch_size is None else patch_size)
    if patch_size is None:
        raise InputError("pictures and videos need patch_size, the cells of a patch along each axis; give one.")
    return ArrayDataset.from_arrays(data, patch_size)
