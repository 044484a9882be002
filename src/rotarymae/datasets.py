"""Data sets of series or arrays: their examples, windows, and what a mask can hide of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rotarymae.arrays import ArrayDataset
from rotarymae.batch import Examples
from rotarymae.counter_rng import counter_uniform
from rotarymae.errors import InputError
from rotarymae.masking import Masking, MaskRatio
from rotarymae.preprocess import ObservationPreprocessor, PatchPreprocessor
from rotarymae.series import SeriesDataset, Windows
from rotarymae.tables import is_frame

AnyDataset = SeriesDataset | ArrayDataset
AnyPreprocessor = ObservationPreprocessor | PatchPreprocessor


def make_examples(dataset: AnyDataset, preprocessor: AnyPreprocessor, **options: Any) -> Examples:
    """Batches of a data set; options as those of `DatasetExamples`.

    Raises:
        InputError: series for a model of arrays, or the other way round; and as these.
    """
    _require_kind(dataset, preprocessor)
    return preprocessor.examples(dataset, **options)  # type: ignore[arg-type]


def windowed(dataset: AnyDataset, preprocessor: AnyPreprocessor) -> Windows:
    """What the model reads of each series, one window or several; arrays are read whole."""
    _require_kind(dataset, preprocessor)
    return preprocessor.windows(dataset)  # type: ignore[arg-type]


def _require_kind(dataset: AnyDataset, preprocessor: AnyPreprocessor) -> None:
    if dataset.kind != preprocessor.kind:
        raise InputError(f"{dataset.noun} came; the model was made from {preprocessor.noun}.")


def maskable(dataset: AnyDataset, preprocessor: AnyPreprocessor, masking: Masking) -> np.ndarray:
    """Return which series (or arrays) a mask hides something of, [S] bool.

    A share of single tokens needs two; whole times, channels or patches need two different ones.
    """
    return np.concatenate(list(_maskable(dataset, preprocessor, masking)))


def require_maskable(dataset: AnyDataset, preprocessor: AnyPreprocessor, masking: Masking) -> None:
    """Raise InputError when a mask would hide nothing of any series; stops at the first of which it does."""
    if not any(part.any() for part in _maskable(dataset, preprocessor, masking)):
        raise InputError(
            f"masking {masking.kind!r} would hide nothing in any of the {len(dataset):,} {dataset.noun}, so that there "
            "would be nothing to learn; hide single observations instead.",
            code="nothing-to-hide",
            settings=[("masking", "ratio")],
        )


def _maskable(dataset: AnyDataset, preprocessor: AnyPreprocessor, masking: Masking) -> Iterator[np.ndarray]:
    if isinstance(masking, MaskRatio):
        yield dataset.lengths >= 2
        return
    examples: Any = make_examples(dataset, preprocessor)
    for start in range(0, len(dataset), 256):
        index = np.arange(start, min(start + 256, len(dataset)))
        units = examples.units(examples.tokens(index, None))
        yield masking(units, counter_uniform(0, -1, index)).any(1).cpu().numpy()


def is_flat(X: Any) -> bool:
    """Return whether this is a table of numbers [cases, time], scikit-learn's X, or what shall be one."""
    if is_frame(X):
        return False
    if isinstance(X, list | tuple):
        rows = [row for row in X if isinstance(row, list | tuple | np.ndarray) and len(row)]
        return len(rows) == len(X) > 0 and all(np.isscalar(row[0]) for row in rows)
    return hasattr(X, "toarray") or (hasattr(X, "__array__") and np.asarray(X).ndim < 3)
