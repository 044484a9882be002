"""Numbers that describe an array of any size: what gradient boosting reads."""

from __future__ import annotations

import math

import numpy as np

from rotarymae.arrays.dataset import ArrayDataset

REGIONS = 4  # along each axis of a picture


def array_features(dataset: ArrayDataset) -> tuple[np.ndarray, tuple[str, ...]]:
    """Features float64 [S, F] and their F names: the mean and the deviation of every channel in regions of the array.

    Of a sound the regions are its bins, over all frames; of a picture 4 × 4 of nearly equal sizes; of a video the same
    over all frames.
    """
    axes = len(dataset.patch_size)
    if dataset.sample_rate is not None:
        grid = (1, dataset.arrays[0].shape[1])
    else:
        grid = (1,) * (axes - 2) + (REGIONS,) * min(axes, 2)
    rows = [_mean_and_deviation(array, grid) for array in dataset.arrays]
    places = [f"channel {c}, region {r}" for r in range(math.prod(grid)) for c in range(dataset.channels)]
    return np.stack(rows), tuple(f"{what} of {place}" for what in ("mean", "std") for place in places)


def _mean_and_deviation(array: np.ndarray, grid: tuple[int, ...]) -> np.ndarray:
    total = np.asarray(array, np.float64)
    total = np.stack([total, np.square(total)])
    cells = np.ones((1,) * len(grid))
    for axis, (size, regions) in enumerate(zip(array.shape, grid, strict=False)):
        edges = size * np.arange(regions) // regions
        # Where there are fewer cells than regions an edge occurs twice, and reduceat takes the one cell there.
        total = np.add.reduceat(total, edges, axis=axis + 1)
        widths = np.maximum(np.diff(np.append(edges, size)), 1)
        cells = cells * widths.reshape([-1 if other == axis else 1 for other in range(len(grid))])
    mean, squares = total / cells[..., None]
    return np.concatenate([mean.ravel(), np.sqrt(np.maximum(squares - mean**2, 0.0)).ravel()])
