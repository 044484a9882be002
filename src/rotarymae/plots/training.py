"""Losses by step or epoch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from rotarymae.errors import InputError
from rotarymae.plots.style import COLOURS, empty_figure, legend_below, plain, same_length, style_axes, vector


def learning_curves(
    curves: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    title: str = "",
    step_label: str = "epoch",
    value_label: str = "loss",
    axes: Axes | None = None,
) -> Axes:
    """Losses of one training: (steps [n], values [n]) by the name of the curve.

    A curve whose name starts with "validation" is drawn strong, with its lowest point marked. The value axis is
    logarithmic where all values are positive and span more than a factor of ten.
    """
    if not curves:
        raise InputError("learning_curves needs at least one curve.")
    axes = axes or empty_figure(5.2, 3.7).subplots()
    entries: list[tuple[Any, str]] = []
    finite = []
    for i, (name, (steps, losses)) in enumerate(curves.items()):
        x, y = vector(f"steps of {name}", steps), vector(f"values of {name}", losses)
        same_length(f"values of {name}", y, len(x))
        finite.append(y[np.isfinite(y)])
        validation, colour = name.startswith("validation"), COLOURS[i % len(COLOURS)]
        width, dot = 1.8 if validation else 1.3, "o" if len(x) == 1 else ""
        entries.append((axes.plot(x, y, color=colour, linewidth=width, marker=dot)[0], plain(name)))
        if validation and len(finite[-1]):
            best = int(np.nanargmin(y))
            mark = axes.plot(x[best], y[best], "o", color=colour, markersize=6)[0]
            entries.append((mark, f"lowest: {y[best]:.4g}"))
    together = np.concatenate(finite)
    if together.size and together.min() > 0 and together.max() > 10 * together.min():
        axes.set_yscale("log")
    axes.xaxis.set_major_locator(MaxNLocator(7, integer=True))
    style_axes(axes, step_label, value_label, plain(title))
    legend_below(axes, entries)
    return axes
