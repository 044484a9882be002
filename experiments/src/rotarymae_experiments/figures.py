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
    """Draw a line per name, with a legend; the y axis is logarithmic if all finite values are positive.

    Args:
        x: [n], the same for all lines.
        ys: {name: values [n]}; NaN leaves a gap.
        x_label, y_label: texts of the axes.
        log_x: whether the x axis is logarithmic, too.
    """
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
    """One of several small pictures: a prediction, other lines, and the observations.

    Attributes:
        lines: {name: (x [n], y [n])}; the first is the prediction.
        seen: points (x, y) that the model read.
        hidden: points (x, y) that it did not; None draws none.
        band: (x, lower, upper), the 95 % band of the prediction; None draws none.
    """

    lines: Mapping[str, tuple[ArrayLike, ArrayLike]]
    seen: tuple[ArrayLike, ArrayLike]
    hidden: tuple[ArrayLike, ArrayLike] | None = None
    band: tuple[ArrayLike, ArrayLike, ArrayLike] | None = None


@styled
def predictions(panels: Mapping[str, Panel], x_label: str = "time", y_label: str = "value") -> Figure:
    """Draw the panels {title: Panel} side by side, with one legend.

    With the labels "x" and "y" the picture is of a plane: both axes of a panel have the same scale.
    """
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
