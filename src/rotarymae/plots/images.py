"""Images: what was there, what the model saw, what it makes of it."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from rotarymae.errors import InputError
from rotarymae.plots.style import INK, empty_figure


def reconstruction(
    original: ArrayLike,
    masked: ArrayLike,
    reconstructed: ArrayLike,
    *,
    titles: Sequence[str] = ("input", "what the model saw", "reconstruction"),
    cmap: str = "gray",
) -> Figure:
    """Images side by side, one row each: input, with hidden patches (NaN, drawn grey), reconstructed.

    Each [H, W], [H, W, 3], [n, H, W] or [n, H, W, 3]; colours in 0..1. Of grey images each row has the range of its
    input.
    """
    stacks = [np.asarray(part, np.float64) for part in (original, masked, reconstructed)]
    shape = stacks[0].shape
    if any(part.shape != shape for part in stacks):
        raise InputError(f"the three images have shapes {', '.join(str(p.shape) for p in stacks)}; they must agree.")
    if len(shape) == 2 or (len(shape) == 3 and shape[-1] == 3):
        stacks = [part[None] for part in stacks]
    if stacks[0].ndim not in (3, 4) or (stacks[0].ndim == 4 and stacks[0].shape[-1] != 3) or stacks[0].size == 0:
        raise InputError(f"images of shape {shape}; wanted [H, W], [H, W, 3], [n, H, W] or [n, H, W, 3].")
    rows, height, width = stacks[0].shape[:3]
    figure = empty_figure(8.4, max(1.6, 2.8 * float(np.clip(height / width, 0.2, 3)) * rows) + 0.4)
    grid = figure.subplots(rows, 3, squeeze=False)
    grey = matplotlib.colormaps[cmap].with_extremes(bad="#b9bec8")
    for row in range(rows):
        limits = float(np.nanmin(stacks[0][row])), float(np.nanmax(stacks[0][row]))
        for column, part in enumerate(stacks):
            _image(grid[row, column], part[row], grey, limits)
    for axes, title in zip(grid[0], titles):
        axes.set_title(title, fontsize=10.5, color=INK)
    return figure


def _image(axes: Axes, picture: NDArray[np.float64], grey: Colormap, limits: tuple[float, float]) -> None:
    if picture.ndim == 3:
        gone = np.isnan(picture).any(-1, keepdims=True)
        axes.imshow(np.where(gone, 0.74, np.clip(picture, 0, 1)), interpolation="nearest")
    else:
        axes.imshow(picture, cmap=grey, vmin=limits[0], vmax=limits[1], interpolation="nearest")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
