"""Embeddings in two dimensions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from rotarymae.errors import InputError
from rotarymae.plots.style import empty_figure, legend_below, plain, same_length, style_axes, style_of


def project(embeddings: ArrayLike, method: str = "pca", seed: int = 0) -> NDArray[np.float64]:
    """Project embeddings [S, D] to [S, 2] for a map. "pca" keeps distances best, "tsne" neighbourhoods."""
    x = np.asarray(embeddings, np.float64)
    if x.ndim != 2 or len(x) < 3 or x.shape[1] < 2 or not np.isfinite(x).all():
        raise InputError(f"embeddings has shape {x.shape}; wanted finite numbers [3 or more series, 2 or more].")
    if method == "pca":
        from sklearn.decomposition import PCA

        with np.errstate(invalid="ignore"):  # of points that are all the same, no share of the variance is explained
            return PCA(2, svd_solver="full").fit_transform(x)
    if method == "tsne":
        from sklearn.manifold import TSNE
        from sklearn.preprocessing import scale

        perplexity = min(30.0, (len(x) - 1) / 3)
        return np.asarray(TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(scale(x)), float)
    raise InputError(f"method {method!r} is unknown; choose 'pca' or 'tsne'.")


def embedding_map(
    points: ArrayLike,
    labels: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    *,
    method: str = "",
    axes: Axes | None = None,
) -> Axes:
    """Embedded series as points [S, 2], coloured by labels int [S], an index into the class names.

    `method` names the axes ("PCA" gives "PCA 1" and "PCA 2").
    """
    at = np.asarray(points, np.float64)
    if at.ndim != 2 or at.shape[1] != 2 or len(at) == 0:
        raise InputError(f"points has shape {at.shape}; wanted [series, 2], as project() returns.")
    label = np.zeros(len(at), np.int64) if labels is None else np.asarray(labels, np.int64)
    same_length("labels", label, len(at))
    if names is None:
        names = [""] if labels is None else [f"class {i}" for i in range(label.max() + 1)]
    if label.min() < 0 or label.max() >= len(names):
        raise InputError(f"labels run from {label.min()} to {label.max()}, but there are {len(names)} class names.")
    axes = axes or empty_figure(5.6, 5.0 + 0.12 * len(names)).subplots()
    number = np.bincount(label, minlength=len(names))
    size = float(np.clip(20000 / len(at), 10, 38))
    for i in np.argsort(-number, kind="stable"):  # largest classes first, so that the rare ones stay on top
        colour, marker = style_of(int(i))
        x, y = at[label == i].T
        look = {"alpha": 0.75, "linewidths": 0.3, "edgecolors": "white", "rasterized": len(at) > 1500}
        if len(x):
            axes.scatter(x, y, s=size, c=colour, marker=marker, **look)
    style_axes(axes, *((f"{plain(method)} 1", f"{plain(method)} 2") if method else ("first axis", "second axis")))
    if len(names) > 1:
        styles = map(style_of, range(len(names)))
        handles = [Line2D([], [], linestyle="", marker=marker, color=colour, markersize=6) for colour, marker in styles]
        texts = [f"{plain(name)} ({count:,})" for name, count in zip(names, number)]
        legend_below(axes, list(zip(handles, texts)))
    return axes
