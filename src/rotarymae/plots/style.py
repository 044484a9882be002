"""What all figures share: colours and markers, size, grid, labels, legends, tick labels, checks of their input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib
import matplotlib.dates
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogFormatterSciNotation, MaxNLocator
from numpy.typing import ArrayLike, NDArray

from rotarymae.errors import InputError

# The colours and symbols that Rubin Observatory uses for its bands on white; told apart with any colour vision
# because each band also has its own symbol.
LSST_BANDS = {
    "u": ("#0c71ff", "o"),
    "g": ("#49be61", "^"),
    "r": ("#c61c00", "v"),
    "i": ("#ffc200", "s"),
    "z": ("#f341a2", "D"),
    "y": ("#5d0000", "p"),
}
# Okabe and Ito's eight colours (yellow darkened, black last), then eight of Tol's muted ones for longer lists.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d1f", "#000000")
COLOURS += ("#332288", "#44aa99", "#cc6677", "#117733", "#ddcc77", "#882255", "#999933", "#888888")
MARKERS = ("o", "^", "s", "D", "v", "p", "P", "X")
INK, FAINT, GRID = "#1f2430", "#5b6270", "#e3e6eb"
DASHED = {"color": FAINT, "linewidth": 1.2, "linestyle": (0, (4, 3))}


def channel_style(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return a colour and a marker per channel: LSST's if every name is one of its bands (u g r i z y, either case)."""
    if names and all(name.lower() in LSST_BANDS for name in names):
        return [LSST_BANDS[name.lower()] for name in names]
    return [style_of(i) for i in range(len(names))]


def style_of(i: int) -> tuple[str, str]:
    """Colour and marker i. The second eight colours get other markers than the first, every further round of sixteen
    moves the markers on by one: 128 stay distinct."""
    return COLOURS[i % len(COLOURS)], MARKERS[(i + i // 8 - i // 16) % len(MARKERS)]


def empty_figure(width: float, height: float) -> Figure:
    """Return an empty figure; width and height in inches."""
    return Figure(figsize=(width, height), layout="constrained", facecolor="white", dpi=110)


def figure_of(axes: Axes) -> Figure:
    """Return the figure that the axes are part of."""
    figure = axes.get_figure(root=True)
    assert figure is not None, "axes that were removed from their figure"
    return figure


def style_axes(axes: Axes, x_label: str = "", y_label: str = "", title: str = "") -> None:
    """Grid, spines, ticks and labels as all figures have them."""
    axes.grid(color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#9aa1ad")
    axes.tick_params(which="both", labelsize=9, colors=FAINT, labelcolor=INK, width=0.7)
    axes.tick_params(length=3)
    axes.set_xlabel(x_label, fontsize=10, color=INK)
    axes.set_ylabel(y_label, fontsize=10, color=INK)
    axes.set_title(title, fontsize=10.5, fontweight="bold", color=INK, loc="left", pad=3)


def plain(text: object) -> str:
    """Return a user's name so that matplotlib draws it as it is, at most 32 characters long.

    It would read a formula between two dollar signs, and leave a name with a leading underscore out of legends.
    """
    name = str(text)
    name = name if len(name) <= 32 else f"{name[:31]}…"
    return ("\u200b" if name.startswith("_") else "") + name.replace("$", r"\$")


def legend_below(where: Figure | Axes, entries: Sequence[tuple[Any, str]]) -> None:
    """(handle, name) pairs under a figure or one panel, where they cover nothing."""
    if not entries:
        return
    handles, labels = zip(*entries)
    # A column takes its longest name and the handle; a line of 9 pt text has about 13 characters per inch.
    width = figure_of(where).get_figwidth() if isinstance(where, Axes) else where.get_figwidth()
    columns = int(np.clip(13 * width // (max(map(len, labels)) + 6), 1, len(labels)))
    look: dict[str, Any] = {"ncols": columns, "frameon": False, "fontsize": 9, "labelcolor": INK}
    if isinstance(where, Axes):
        where.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, -0.15), **look)
    else:
        where.legend(handles, labels, loc="outside lower center", **look)


def plain_numbers(axis: Axis, most: int = 6) -> None:
    """Ticks of a linear axis as whole numbers: 59,580 and neither "+5.958e4" nor "1e3" beside the axis."""
    axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.10g}".replace("-", "−")))


def date_ticks(axis: Axis) -> None:
    """Ticks of an axis of datetime64: as short as the span allows, with the year or the day beside the axis."""
    locator = matplotlib.dates.AutoDateLocator(minticks=3, maxticks=7)
    axis.set_major_locator(locator)
    axis.set_major_formatter(matplotlib.dates.ConciseDateFormatter(locator))


class _Plain(LogFormatterSciNotation):
    """Labels the ticks of a logarithmic axis that matplotlib would label, as 0.02 and not as 2 × 10⁻²."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        with matplotlib.rc_context({"axes.formatter.min_exponent": 4}):
            return super().__call__(x, pos)


def plain_log_numbers(axis: Axis) -> None:
    """Ticks of a logarithmic axis as 0.02 and not as 2 × 10⁻²."""
    axis.set_major_formatter(_Plain())
    axis.set_minor_formatter(_Plain(labelOnlyBase=False, minor_thresholds=(1.3, 0.4)))


def vector(name: str, array: ArrayLike) -> NDArray[np.float64]:
    """[n] as float64. Raises InputError, with `name`, for another number of dimensions."""
    out = np.asarray(array, np.float64)
    if out.ndim != 1:
        raise InputError(f"{name} has shape {out.shape}; wanted one dimension.")
    return out


def same_length(name: str, array: NDArray[Any], n: int) -> None:
    """Raise InputError, with `name`, unless the array is [n]."""
    if array.shape != (n,):
        raise InputError(f"{name} has shape {array.shape}; wanted [{n}], one entry per point.")
