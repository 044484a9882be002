"""Embeddings in two dimensions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from rotarymae.errors import InputError
from rotarymae.plots.style import INK, blank, plain, same_length, style_axes, style_of


def project(embeddings: ArrayLike, method: str = "pca", seed: int = 0) -> NDArray[np.float64]:
    """Two dimensions of embeddings [S, D] for a map: [S, 2]. "pca" keeps distances best, "tsne" neighbourhoods."""
    x = np.asarray(embeddings, np.float64)
    if x.ndim != 2 or len(x) < 3 or x.shape[1] < 2 or not np.isfinite(x).all():
        raise InputError(f"embeddings has shape {x.shape}; wanted finite numbers [3 or more series, 2 or more].")
    if method == "pca":
        centred = x - x.mean(0)
        left, size, _ = np.linalg.svd(centred, full_matrices=False)
        return left[:, :2] * size[:2]
    if method == "tsne":
        from sklearn.manifold import TSNE

        scaled = (x - x.mean(0)) / (x.std(0) + 1e-12)
        perplexity = min(30.0, (len(x) - 1) / 3)
        return np.asarray(TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(scaled), float)
    raise InputError(f"method {method!r} is unknown; choose 'pca' or 'tsne'.")


def embedding_map(
    points: ArrayLike,
    labels: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    *,
    method: str = "",
) -> Figure:
    """Embedded series as points [S, 2], coloured by labels int [S], an index into the class names.

    `method` names the axes ("PCA" gives "PCA 1" and "PCA 2").
    """
    at = np.asarray(points, np.float64)
    if at.ndim != 2 or at.shape[1] != 2 or len(at) == 0:
        raise InputError(f"points has shape {at.shape}; wanted [series, 2], as project() returns.")
    label = np.zeros(len(at), np.int64) if labels is None else np.asarray(labels, np.int64)
    same_length("labels", label, len(at))
    known = [""] * (label.max() + 1) if names is None and labels is None else names
    known = [f"class {i}" for i in range(label.max() + 1)] if known is None else [plain(name) for name in known]
    if label.min() < 0 or label.max() >= len(known):
        raise InputError(f"labels run from {label.min()} to {label.max()}, but there are {len(known)} class names.")
    figure = blank(9.2 if len(known) > 1 else 6.6, 5.6)
    axes = figure.subplots()
    styles = [style_of(i) for i in range(len(known))]
    size = float(np.clip(20000 / len(at), 10, 38))
    # Largest classes first, so that the rare ones stay on top.
    for i in sorted(range(len(known)), key=lambda i: -int((label == i).sum())):
        pick = label == i
        if pick.any():
            colour, marker = styles[i]
            axes.scatter(
                at[pick, 0],
                at[pick, 1],
                s=size,
                c=colour,
                marker=marker,
                alpha=0.75,
                linewidths=0.3,
                edgecolors="white",
                rasterized=len(at) > 1500,
            )
    style_axes(axes)
    axes.set_xlabel(f"{plain(method)} 1" if method else "first axis", fontsize=10, color=INK)
    axes.set_ylabel(f"{plain(method)} 2" if method else "second axis", fontsize=10, color=INK)
    if len(known) > 1:
        from matplotlib.lines import Line2D

        handles = [Line2D([], [], linestyle="", marker=marker, color=colour, markersize=6) for colour, marker in styles]
        texts = [f"{name} ({int((label == i).sum()):,})" for i, name in enumerate(known)]
        columns = -(-len(known) // 24)
        figure.legend(
            handles, texts, loc="outside right center", ncols=columns, frameon=False, fontsize=9, labelcolor=INK
        )
    return figure
