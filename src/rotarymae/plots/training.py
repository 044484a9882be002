"""Losses by step or epoch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from rotarymae.errors import InputError
from rotarymae.plots.style import COLOURS, INK, blank, plain, same_length, style_axes, vector


def learning_curves(
    stages: Mapping[str, Mapping[str, tuple[ArrayLike, ArrayLike]]],
    *,
    step_label: str = "epoch",
    value_label: str = "loss",
) -> Figure:
    """One panel per stage of training; in it, one curve per name: {stage: {curve: (steps [n], values [n])}}.

    A curve whose name starts with "validation" is drawn strong, with its lowest point marked. The value axis is
    logarithmic where all values are positive and span more than a factor of ten.
    """
    if not stages or not all(stages.values()):
        raise InputError("learning_curves needs at least one stage, and every stage at least one curve.")
    figure = blank(5.4 * len(stages) if len(stages) > 1 else 6.8, 3.5)
    grid = figure.subplots(1, len(stages), squeeze=False)
    for axes, (stage, curves) in zip(grid.flat, stages.items()):
        seen: list[NDArray[np.float64]] = []
        handles: list[Any] = []
        texts: list[str] = []
        for i, (name, (steps, losses)) in enumerate(curves.items()):
            x, y = vector(f"steps of {name}", steps), vector(f"values of {name}", losses)
            same_length(f"values of {name}", y, len(x))
            seen.append(y[np.isfinite(y)])
            validation = name.startswith("validation")
            colour, dot = COLOURS[i % len(COLOURS)], "o" if len(x) == 1 else ""
            handles += axes.plot(x, y, color=colour, linewidth=1.8 if validation else 1.3, marker=dot)
            texts.append(plain(name))
            if validation and np.isfinite(y).any():
                best = int(np.nanargmin(y))
                handles += axes.plot(x[best], y[best], "o", color=colour, markersize=6)
                texts.append(f"lowest: {y[best]:.4g}")
        style_axes(axes)
        together = np.concatenate(seen)
        if together.size and together.min() > 0 and together.max() > 10 * together.min():
            axes.set_yscale("log")
        axes.xaxis.set_major_locator(MaxNLocator(7, integer=True))
        axes.set_title(plain(stage), fontsize=11, fontweight="bold", color=INK, loc="left")
        axes.set_xlabel(step_label, fontsize=10, color=INK)
        axes.set_ylabel(value_label, fontsize=10, color=INK)
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2), "ncols": 3}
        axes.legend(handles, texts, frameon=False, fontsize=9, labelcolor=INK, **below)
    return figure
