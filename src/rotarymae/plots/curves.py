"""Lines over one axis, and small pictures of predictions side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from rotarymae.errors import InputError
from rotarymae.plots.style import (
    COLOURS,
    FAINT,
    INK,
    empty_figure,
    legend_below,
    plain,
    plain_log_numbers,
    same_length,
    style_axes,
    style_of,
    vector,
)


def curves(
    x: ArrayLike,
    ys: Mapping[str, ArrayLike],
    *,
    x_label: str,
    y_label: str,
    log_x: bool = False,
    axes: Axes | None = None,
) -> Axes:
    """Lines over one axis: x [n], and one curve [n] per name; the other axis is logarithmic when all are positive."""
    at = vector("x", x)
    if not ys:
        raise InputError("curves needs at least one curve.")
    axes = axes or empty_figure(7.2, 3.9).subplots()
    entries: list[tuple[Any, str]] = []
    for i, (name, curve) in enumerate(ys.items()):
        y = vector(f"ys[{name!r}]", curve)
        same_length(f"ys[{name!r}]", y, len(at))
        colour, marker = style_of(i)
        entries.append((axes.plot(at, y, color=colour, marker=marker, markersize=4, linewidth=1.5)[0], plain(name)))
    together = np.concatenate([np.asarray(y, np.float64) for y in ys.values()])
    if (together[np.isfinite(together)] > 0).all():
        axes.set_yscale("log")
        plain_log_numbers(axes.yaxis)
    if log_x:
        axes.set_xscale("log")
        plain_log_numbers(axes.xaxis)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))
    style_axes(axes, x_label, y_label)
    legend_below(axes, entries)
    return axes


@dataclass(frozen=True)
class Panel:
    """One of several small pictures: points seen and hidden, lines by name, and a band, each as (x, y).

    lines: name → (x [n], y [n]); the first is the prediction, with the band (x [n], lower [n], upper [n]) around it.
    seen, hidden: (x [n], y [n]).
    """

    lines: Mapping[str, tuple[ArrayLike, ArrayLike]]
    seen: tuple[ArrayLike, ArrayLike]
    hidden: tuple[ArrayLike, ArrayLike] | None = None
    band: tuple[ArrayLike, ArrayLike, ArrayLike] | None = None


def predictions(
    panels: Mapping[str, Panel],
    *,
    x_label: str = "time",
    y_label: str = "value",
    equal: bool = False,
    seen_name: str = "seen",
) -> Figure:
    """Several predictions side by side, one panel per title; `equal` gives both axes one scale, as for paths.

    `seen_name` is what the legend calls the points that are not hidden.
    """
    if not panels:
        raise InputError("predictions needs at least one panel.")
    figure = empty_figure(3.6 * len(panels) + 0.4, 3.9)
    entries: dict[str, Any] = {}
    for i, (axes, (title, panel)) in enumerate(zip(np.atleast_1d(figure.subplots(1, len(panels))), panels.items())):
        style_axes(axes, x_label, y_label if i == 0 else "", plain(title))
        if panel.band is not None:
            entries["95 % band"] = axes.fill_between(*panel.band, color=COLOURS[0], alpha=0.18, linewidth=0)
        if panel.hidden is not None:
            look = {"markerfacecolor": "white", "markeredgecolor": FAINT, "markersize": 4}
            entries["hidden"] = axes.plot(*panel.hidden, "o", **look, zorder=2)[0]
        entries[seen_name] = axes.plot(*panel.seen, "o", color=INK, markersize=4.6, zorder=4)[0]
        for j, (name, line) in enumerate(panel.lines.items()):
            style = "-" if j == 0 else "--"
            entries[plain(name)] = axes.plot(*line, style, color=style_of(j)[0], linewidth=1.5, zorder=3)[0]
        if equal:
            axes.set_aspect("equal", adjustable="datalim")
    legend_below(figure, [(handle, name) for name, handle in entries.items()])
    return figure
