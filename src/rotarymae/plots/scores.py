"""How good predictions are: the confusion matrix, predicted against true values, and calibration."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from numpy.typing import ArrayLike

from rotarymae.errors import InputError
from rotarymae.plots.style import COLOURS, FAINT, INK, blank, plain, same_length, style_axes, style_of, vector


def confusion(counts: ArrayLike, names: Sequence[str]) -> Figure:
    """Row-normalised confusion matrix from counts [classes, classes]: rows are the truth, columns the prediction.

    Cells carry their share of the row in per cent; a row's label carries its number of objects.
    """
    table = np.asarray(counts, np.float64)
    names = [plain(name) for name in names]
    k = len(names)
    if table.shape != (k, k) or k == 0:
        raise InputError(f"counts has shape {table.shape}; wanted [{k}, {k}] for {k} class names.")
    if not np.isfinite(table).all() or (table < 0).any():
        raise InputError("counts must be numbers of objects: finite and not negative.")
    totals = table.sum(1)
    share = np.divide(table, totals[:, None], out=np.zeros_like(table), where=totals[:, None] > 0)
    size = float(np.clip(0.5 * k, 2.6, 14))
    figure = blank(size + 2.2, size + 1.3)
    axes = figure.subplots()
    axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
    axes.set_xticks(np.arange(k), names, rotation=45, ha="right", rotation_mode="anchor", fontsize=9, color=INK)
    axes.set_yticks(
        np.arange(k), [f"{name}  ({int(total):,})" for name, total in zip(names, totals)], fontsize=9, color=INK
    )
    axes.set_xlabel("predicted class (cells: % of the true class)", fontsize=10, color=INK)
    axes.set_ylabel("true class (number of objects)", fontsize=10, color=INK)
    axes.set_xticks(np.arange(k - 1) + 0.5, minor=True)
    axes.set_yticks(np.arange(k - 1) + 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.2)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(False)
    if k <= 30:
        for i, j in zip(*np.nonzero(share)):
            percent = 100 * share[i, j]
            axes.text(
                j,
                i,
                "<1" if percent < 0.5 else f"{percent:.0f}",
                ha="center",
                va="center",
                fontsize=8.5,
                fontweight="bold" if i == j else "normal",
                color="white" if share[i, j] > 0.55 else INK,
            )
    return figure


def regression(truth: ArrayLike, predicted: ArrayLike, *, name: str = "label") -> Figure:
    """Predicted against true values, both [n]; on the dashed line they agree."""
    x, y = vector("truth", truth), vector("predicted", predicted)
    same_length("predicted", y, len(x))
    both = np.concatenate([x, y])
    both = both[np.isfinite(both)]
    if not both.size:
        raise InputError("regression needs at least one finite value.")
    low, high = float(both.min()), float(both.max())
    margin = 0.05 * (high - low) or 1.0
    figure = blank(4.8, 4.6)
    axes = figure.subplots()
    line = [low - margin, high + margin]
    axes.plot(line, line, color=FAINT, linewidth=1.2, linestyle=(0, (4, 3)), label="agreement")
    axes.plot(x, y, "o", color=COLOURS[0], markersize=4.6, alpha=0.8 if len(x) < 200 else 0.35)
    axes.set(xlim=line, ylim=line)
    axes.set_aspect("equal")
    style_axes(axes)
    axes.set_xlabel(f"true {plain(name)}", fontsize=10, color=INK)
    axes.set_ylabel(f"predicted {plain(name)}", fontsize=10, color=INK)
    axes.legend(loc="upper left", frameon=False, fontsize=9, labelcolor=INK)
    return figure


def calibration(nominal: ArrayLike, observed: ArrayLike, *, names: Sequence[str] | None = None) -> Figure:
    """Share of hidden points found inside a band against the share the band promises, both in 0..1.

    nominal [L]; observed [L], or [curves, L] with one of `names` each.
    """
    x, y = vector("nominal", nominal), np.atleast_2d(np.asarray(observed, np.float64))
    if y.ndim != 2 or y.shape[1] != len(x) or (names is not None and len(names) != len(y)):
        raise InputError(f"observed {np.shape(observed)} must be [{len(x)}] or [curves, {len(x)}], with a name each.")
    order = np.argsort(x)
    figure = blank(4.6, 4.4)
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color=FAINT, linewidth=1.2, linestyle=(0, (4, 3)), label="as promised")
    for i, row in enumerate(y):
        label = "observed" if names is None else names[i]
        axes.plot(x[order], row[order], marker=style_of(i)[1], color=style_of(i)[0], linewidth=1.6, label=label)
    axes.set(xlim=(0, 1), ylim=(0, 1.02))
    axes.set_aspect("equal")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{100 * v:.0f} %"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{100 * v:.0f} %"))
    style_axes(axes)
    axes.set_xlabel("the band's promise", fontsize=10, color=INK)
    axes.set_ylabel("hidden points inside the band", fontsize=10, color=INK)
    axes.legend(loc="lower right", frameon=False, fontsize=9, labelcolor=INK)
    axes.text(0.04, 0.93, "bands too wide", fontsize=9, color=FAINT, transform=axes.transAxes)
    axes.text(0.96, 0.3, "bands too narrow", fontsize=9, color=FAINT, transform=axes.transAxes, ha="right")
    return figure
