"""The style of all figures, and those that more than a report needs, from numpy arrays.

Each function returns a new Figure in one style, whatever global settings are, and leaves them as they are; no window
system is needed. `figure.savefig("name.png")` writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, NamedTuple, ParamSpec

import matplotlib.style
import numpy as np
from cycler import cycler
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

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
HEAVY_TAILED = 50.0  # median distances from the median; a channel that reaches further has a logarithmic axis
MARKERS = ("o", "^", "s", "D", "v", "p", "P", "X")
INK, FAINT = "#1f2430", "#5b6270"
STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#9aa1ad",
    "axes.formatter.limits": (-6, 8),  # times such as 59,580 days in full
    "axes.formatter.useoffset": False,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 10,
    "axes.prop_cycle": cycler(color=COLOURS),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlepad": 3,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "date.converter": "concise",
    "figure.constrained_layout.use": True,
    "figure.dpi": 110,
    "font.size": 9,
    "grid.color": "#e3e6eb",
    "grid.linewidth": 0.7,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "text.color": INK,
    "xtick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.color": FAINT,
    "ytick.labelcolor": INK,
}
Arguments = ParamSpec("Arguments")


def styled(draw: Callable[Arguments, Figure]) -> Callable[Arguments, Figure]:
    """Decorate a drawing function so that it draws in this module's style, not in the caller's matplotlib style."""

    @wraps(draw)
    def drawing(*arguments: Arguments.args, **named: Arguments.kwargs) -> Figure:
        """Call the decorated function with matplotlib's default style and `STYLE`; restore the settings afterwards."""
        with matplotlib.style.context(["default", STYLE]):
            return draw(*arguments, **named)

    return drawing


def channel_style(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return (colour, marker), as matplotlib names them, for each channel in the order of `names`.

    If all names are bands of the LSST (u, g, r, i, z, y, in small or capital letters), they get the survey's colours.
    Otherwise the i-th channel gets `style_of(i)`.
    """
    if names and all(name.lower() in LSST_BANDS for name in names):
        return [LSST_BANDS[name.lower()] for name in names]
    return [style_of(i) for i in range(len(names))]


def style_of(i: int) -> tuple[str, str]:
    """Return (colour, marker), such as ("#0072b2", "o"), to draw the i-th of several things, counted from 0.

    The first 128 combinations all differ; then they repeat.
    """
    return COLOURS[i % len(COLOURS)], MARKERS[(i + i // 8 - i // 16) % len(MARKERS)]


def literal(text: object) -> str:
    """Return a text, such as a column's name, escaped so that matplotlib draws it as it is.

    Without this, matplotlib would read "$a$" as a formula, and hide a legend entry that starts with an underscore. A
    text of more than 32 characters is cut to its first 31 and "…".
    """
    name = str(text)
    name = name if len(name) <= 32 else f"{name[:31]}…"
    return ("\u200b" if name.startswith("_") else "") + name.replace("$", r"\$")


def legend_below(figure: Figure, entries: Sequence[tuple[Any, str]]) -> None:
    """Add a legend to a figure, below its panels, in as many columns as fit into its width.

    Args:
        figure: is changed in place. It has constrained layout, which makes room for the legend.
        entries: pairs of a matplotlib artist and its name, at least one.
    """
    handles, labels = zip(*entries)
    # A column takes its longest name and the handle; a line of 9 pt text has about 13 characters per inch.
    columns = int(np.clip(13 * figure.get_figwidth() // (max(map(len, labels)) + 6), 1, len(labels)))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)


class Curve(NamedTuple):
    """Predicted curves of a series' channels, which are drawn as lines between the q points in their order.

    Attributes:
        times, mean: [q] time and predicted value of each point, in the units of the observations.
        bands: {probability: (lower [q], upper [q])} with probabilities such as 0.95; {} without bands.
        channels: int [q], the index of each point's channel among the names of channels.
    """

    times: ArrayLike
    mean: ArrayLike
    bands: Mapping[float, tuple[ArrayLike, ArrayLike]]
    channels: ArrayLike


@styled
def interpolation(
    times: ArrayLike,
    values: ArrayLike,
    channels: ArrayLike,
    channel_names: Sequence[str],
    *,
    shown: ArrayLike,
    errors: ArrayLike | None = None,
    sides: ArrayLike | None = None,
    hidden: ArrayLike | None = None,
    curve: Curve | None = None,
    time_label: str = "time",
    value_label: str = "value",
    dates: bool = False,
) -> Figure:
    """Draw one series, a panel per channel: observations the model saw (filled), hidden ones (hollow), its prediction.

    Each panel has its own axis of values. Wide bands are cut off: the axis reaches beyond the channel's least and
    largest observation by at most twice their difference, if this is not 0. The axis is logarithmic, but linear around
    0, if a few values are far larger than the others, and the others are near 0.

    Args:
        times, values: [n] of the n observations.
        channels: int [n], indices into `channel_names`.
        channel_names: titles of the panels; they also decide the colours (`channel_style`).
        shown: indices into `channel_names` of the channels to draw, in any order, at least one; each has an
            observation. Panels are in ascending order.
        errors: [n], one standard deviation in the unit of the values; signs are ignored. None draws no bars.
        sides: int [n], -1 for upper limits, which are drawn as arrows down, 1 for lower limits, arrows up, and 0 for
            values; None means all are values. Hidden limits are drawn like others.
        hidden: bool [n], True for observations that the model did not see; None means that it saw all.
        curve: predicted means and bands; None for none.
        time_label, value_label: of the axes; name the units there.
        dates: whether times are days since 1970-01-01 UTC, to be labelled as dates.
    """
    t, y, channel, drawn = _on_axis(times, dates), np.asarray(values), np.asarray(channels), np.sort(shown)
    hollow = np.zeros(len(y), bool) if hidden is None else np.asarray(hidden)
    side = np.zeros(len(y), int) if sides is None else np.asarray(sides)
    styles, columns = channel_style(channel_names), min(2, len(drawn))
    rows = -(-len(drawn) // columns)
    figure = Figure((5.6, 0.9 + (1.5 * rows if len(drawn) > 1 else 2.4)))
    entries: dict[str, Any] = {}
    for i, (axes, c) in enumerate(zip(_panels(figure, rows, columns, len(drawn), sharex=True), drawn)):
        colour, marker = styles[c]
        if curve is not None:
            at = np.asarray(curve.channels) == c
            when = _on_axis(curve.times, dates)[at]
            for level, edges in sorted(curve.bands.items(), reverse=True):
                lower, upper = (np.asarray(edge)[at] for edge in edges)
                look = {"color": colour, "alpha": 0.16 if level > 0.8 else 0.26, "linewidth": 0}
                axes.fill_between(when, lower, upper, label=f"{level:.0%} band", **look)
            axes.plot(when, np.asarray(curve.mean)[at], color=colour, linewidth=1.4, label="prediction")
        for pick, label, face in (
            (~hollow, "seen" if hollow.any() else "observed", colour),
            (hollow, "hidden", "white"),
        ):
            row = pick & (channel == c) & (side == 0)
            if row.any():
                bars = None if errors is None else np.abs(np.asarray(errors)[row])
                look = {"markersize": 4.5, "markerfacecolor": face, "elinewidth": 0.8, "zorder": 4}
                axes.errorbar(t[row], y[row], bars, fmt=marker, color=colour, label=label, **look)
        _draw_limits(axes, t, y, np.where(channel == c, side, 0), colour)
        entries |= dict(zip(*axes.get_legend_handles_labels()[::-1]))
        # A label of the whole figure would lie on the legend.
        last = i >= len(drawn) - columns
        axes.set(title=literal(channel_names[c]), xlabel=literal(time_label) if last else "")
        axes.tick_params(labelbottom=last)
        _scale(axes, y[channel == c])
        _label_times(axes, dates)
    figure.supylabel(literal(value_label), fontsize=10)
    legend_below(figure, [(handle, name) for name, handle in entries.items()])
    return figure


def _panels(figure: Figure, rows: int, columns: int, count: int, **how: Any) -> np.ndarray:
    """Add a grid of panels to a figure; return the first `count` of them, row by row, as an array [count] of Axes.

    The remaining panels are hidden. `how` are further arguments of `Figure.subplots`.
    """
    panels = figure.subplots(rows, columns, squeeze=False, **how).ravel()
    for spare in panels[count:]:
        spare.set_visible(False)
    return panels[:count]


def _draw_limits(axes: Any, times: np.ndarray, values: np.ndarray, sides: np.ndarray, colour: str) -> None:
    """Draw each limit (a censored value, such as <5) as an arrow towards the side on which the value lies.

    Args:
        axes: the panel to draw into.
        times, values: [n] of the n observations; the value of a limit is the limit, such as 5.
        sides: int [n], -1 for upper limits (arrow down), 1 for lower limits (arrow up), 0 for values that are no
            limits, which are not drawn.
        colour: of the arrows.
    """
    for side, label, marker in ((-1, "upper limit", r"$\downarrow$"), (1, "lower limit", r"$\uparrow$")):
        at = sides == side
        if at.any():
            axes.plot(times[at], values[at], color=colour, marker=marker, markersize=7, linestyle="none", label=label)


def _scale(axes: Any, values: np.ndarray) -> None:
    """Set the value axis of the panel `axes` so that observations with the `values` [n] fill much of it.

    Wide bands and a few large values would otherwise make them look flat. The axis becomes logarithmic, but linear
    around 0, if a few values are far larger than the others, and the others are near 0. It is cut where it reaches
    beyond the least or the largest value by more than twice their difference, if this is not 0.
    """
    middle = np.median(values)
    away = np.abs(values - middle)
    spread = np.median(away) or 1.0
    if abs(middle) < HEAVY_TAILED * spread < away.max():  # far from 0 a logarithmic axis has hardly a tick
        axes.set_yscale("symlog", linthresh=spread)
    if np.ptp(values) > 0:
        low, high, (bottom, top) = values.min(), values.max(), axes.get_ylim()
        axes.set_ylim(max(bottom, low - 2 * (high - low)), min(top, high + 2 * (high - low)))


def _on_axis(times: ArrayLike, dates: bool) -> np.ndarray:
    """Convert times to what matplotlib draws: float64; or with `dates`, days since 1970-01-01 to datetime64[ms]."""
    days = np.asarray(times, np.float64)
    # Milliseconds are drawn alike whatever epoch the caller has set in matplotlib.
    return np.round(days * 86_400e3).astype("datetime64[ms]") if dates else days


def _label_times(axes: Any, dates: bool) -> None:
    """Limit the number of labels on the time axis, so that they do not overlap; `dates`: whether times are dates."""
    if dates:
        locator = AutoDateLocator(minticks=2, maxticks=5)
        axes.xaxis.set(major_locator=locator, major_formatter=ConciseDateFormatter(locator))
    else:
        axes.locator_params(axis="x", nbins=4)


@styled
def early(scores: Mapping[str, Mapping[str, Mapping[str, float]]], first: str = "") -> Figure:
    """Draw scores of predictions from incomplete series: a panel per metric, a line per method, a point per time span.

    A span says how much of each series was known. Spans are drawn at even steps, whatever their lengths.

    Args:
        scores: {metric: {method: {span: score}}}, at least one metric, each with the same methods. Spans are texts,
            such as "10 d", in order, the same for all methods.
        first: the event that spans start from, such as "observation": the axis then reads "known since the first
            observation"; with "" it reads "known".
    """
    figure = Figure((0.6 + 3.6 * len(scores), 3.3))
    entries = []
    for axes, (metric, methods) in zip(figure.subplots(1, len(scores), squeeze=False).flat, scores.items()):
        entries = []
        for i, (method, row) in enumerate(methods.items()):
            colour, marker = style_of(i)
            entries.append((axes.plot(range(len(row)), [*row.values()], color=colour, marker=marker)[0], method))
            axes.set_xticks(range(len(row)), [literal(span) for span in row])
        axes.set(title=metric, xlabel=f"known since the first {literal(first)}" if first else "known")
    legend_below(figure, entries)
    return figure


class Excerpt(NamedTuple):
    """A part of one channel of a series, n observations, to be drawn by `excerpts`.

    Attributes:
        name: first line of the title, such as the id.
        oddity: second line of the title: what is odd.
        times, values: [n] of the n observations; the value of a limit (a censored value, such as <5) is the limit.
        odd: bool [n], True for observations to mark.
        sides: int [n], -1 for upper limits, 1 for lower limits, 0 for values that are no limits.
    """

    name: str
    oddity: str
    times: ArrayLike
    values: ArrayLike
    odd: ArrayLike
    sides: ArrayLike


@styled
def excerpts(parts: Sequence[Excerpt], value: str) -> Figure:
    """Draw excerpts of series, such as anomalies, each in its own panel, with circles around the odd observations.

    Limits (censored values, such as <5) are drawn as arrows. `parts` has at least one excerpt. `value` is the label of
    the axis of values, for all panels.
    """
    columns = min(3, len(parts))
    rows = -(-len(parts) // columns)
    figure = Figure((3.2 * columns, 2.3 * rows))
    for axes, part in zip(_panels(figure, rows, columns, len(parts)), parts):
        times, values, odd, sides = (np.asarray(column) for column in part[2:])
        seen = sides == 0
        axes.plot(times[seen], values[seen], color=FAINT, linewidth=0.8, marker=".", markersize=3)
        _draw_limits(axes, times, values, sides, FAINT)
        axes.plot(times[odd], values[odd], "o", color=COLOURS[1], markerfacecolor="none", markersize=6)
        axes.set_title(f"{literal(part.name)}\n{part.oddity}", fontsize=8)
        _label_times(axes, times.dtype.kind == "M")
    figure.supylabel(literal(value), fontsize=9)
    return figure
