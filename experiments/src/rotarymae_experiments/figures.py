"""The figures of the recipes: lines over one axis, and predictions side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter
from numpy.typing import ArrayLike

from rotarymae.plots import COLOURS, FAINT, INK, legend_below, style_of, styled


@styled
def curves(x: ArrayLike, ys: Mapping[str, ArrayLike], x_label: str, y_label: str, log_x: bool = False) -> Figure:
    """Draw a line [n] per name over x [n]; the other axis is logarithmic where all values are positive."""
    figure = Figure((7.2, 3.9))
    axes, entries = figure.subplots(), []
    for i, (name, y) in enumerate(ys.items()):
        colour, marker = style_of(i)
        entries.append((axes.plot(x, y, color=colour, marker=marker, markersize=4)[0], name))
    together = np.concatenate([np.asarray(y, np.float64) for y in ys.values()])
    if (together[np.isfinite(together)] > 0).all():
        axes.set_yscale("log")
    if log_x:
        axes.set_xscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(ScalarFormatter())
    axes.set(xlabel=x_label, ylabel=y_label)
    legend_below(figure, entries)
    return figure


class Panel(NamedTuple):
    """One of several small pictures, of (x [n], y [n]) each: lines by name, points seen and hidden, and a band.

    The first line is the prediction, with the band (x [n], lower [n], upper [n]) around it.
    """

    lines: Mapping[str, tuple[ArrayLike, ArrayLike]]
    seen: tuple[ArrayLike, ArrayLike]
    hidden: tuple[ArrayLike, ArrayLike] | None = None
    band: tuple[ArrayLike, ArrayLike, ArrayLike] | None = None


@styled
def predictions(panels: Mapping[str, Panel], x_label: str = "time", y_label: str = "value") -> Figure:
    """Draw a panel per title; two axes of one label "x" and "y" are a plane, and get one scale."""
    figure = Figure((3.6 * len(panels) + 0.4, 3.9))
    entries: dict[str, Any] = {}
    for axes, (title, panel) in zip(np.atleast_1d(figure.subplots(1, len(panels))), panels.items()):
        if panel.band is not None:
            entries["95 % band"] = axes.fill_between(*panel.band, color=COLOURS[0], alpha=0.18, linewidth=0)
        if panel.hidden is not None:
            look = {"markerfacecolor": "white", "markeredgecolor": FAINT, "markersize": 4}
            entries["hidden"] = axes.plot(*panel.hidden, "o", **look, zorder=2)[0]
        entries["seen"] = axes.plot(*panel.seen, "o", color=INK, markersize=4.6, zorder=4)[0]
        for i, (name, line) in enumerate(panel.lines.items()):
            entries[name] = axes.plot(*line, "-" if i == 0 else "--", color=style_of(i)[0], zorder=3)[0]
        if (x_label, y_label) == ("x", "y"):
            axes.set_aspect("equal", adjustable="datalim")
        axes.set(title=title, xlabel=x_label)
    figure.axes[0].set_ylabel(y_label)
    legend_below(figure, [(handle, name) for name, handle in entries.items()])
    return figure
