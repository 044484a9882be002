"""One series with its observations, what was hidden, and the predicted curve."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator
from numpy.typing import ArrayLike, NDArray

from rotarymae.errors import InputError
from rotarymae.plots.style import (
    FAINT,
    INK,
    channel_style,
    date_ticks,
    empty_figure,
    legend_below,
    plain,
    plain_numbers,
    same_length,
    style_axes,
    vector,
)


@dataclass(frozen=True, eq=False)
class Curve:
    """A predicted curve: times and mean [q], channels int [q], and by their probability its bands.

    bands: {0.68: (lower [q], upper [q]), 0.95: (lower [q], upper [q])}.
    """

    times: ArrayLike
    mean: ArrayLike
    bands: Mapping[float, tuple[ArrayLike, ArrayLike]]
    channels: ArrayLike | None = None

    def __post_init__(self) -> None:
        n = len(vector("times of the curve", self.times))
        same_length("mean of the curve", vector("mean of the curve", self.mean), n)
        for level, edges in self.bands.items():
            if not 0 < level < 1:
                raise InputError(f"a band of {level}; bands are of shares between 0 and 1, such as 0.68.")
            for edge in edges:
                same_length(f"the band of {level}", vector(f"the band of {level}", edge), n)

    def in_channel(self, channel: int) -> Curve:
        """Return the part in one channel, in order of time."""
        times = vector("times", self.times)
        which = _channels(self.channels, len(times), "channels of the curve")
        order = np.argsort(times, kind="stable")
        pick = order[which[order] == channel]
        bands = {level: (np.asarray(low)[pick], np.asarray(high)[pick]) for level, (low, high) in self.bands.items()}
        return Curve(times[pick], np.asarray(self.mean)[pick], bands)


def interpolation(
    times: ArrayLike,
    values: ArrayLike,
    *,
    channels: ArrayLike | None = None,
    errors: ArrayLike | None = None,
    hidden: ArrayLike | None = None,
    importance: ArrayLike | None = None,
    curve: Curve | None = None,
    channel_names: Sequence[str] | None = None,
    title: str = "",
    time_label: str = "time",
    value_label: str = "value",
    asinh_scale: float | None = None,
    dates: bool = False,
    invert: bool | Collection[str] = False,
) -> Figure:
    """Draw one series: observations the model saw (filled), hidden ones (hollow), and its prediction.

    Every channel has its own panel.

    Args:
        times: [n]; values: [n], in one unit, which belongs into `value_label`.
        channels: int [n], an index into `channel_names`.
        errors: [n], one standard deviation in the unit of the values.
        hidden: bool [n].
        importance: [n], instead of `hidden`: the area of each observation grows with it, and negative ones are hollow.
        asinh_scale: makes the value axis linear up to about that value and logarithmic beyond, of either sign.
        dates: times are days since 1970-01-01 UTC, and are labelled as dates.
        invert: large values at the bottom, as magnitudes are drawn: in all panels, or in those of these channels.
    """
    t, y = vector("times", times), vector("values", values)
    n = len(t)
    if n == 0:
        raise InputError("interpolation needs at least one observation.")
    same_length("values", y, n)
    channel = _channels(channels, n, "channels")
    error = None if errors is None else np.abs(vector("errors", errors))
    hide = np.zeros(n, bool) if hidden is None else np.asarray(hidden, bool)
    weight = None if importance is None else vector("importance", importance)
    for name, array in (("errors", error), ("hidden", hide), ("importance", weight)):
        if array is not None:
            same_length(name, array, n)
    area = None
    if weight is not None:
        size = np.abs(np.nan_to_num(weight))
        hide, area = weight < 0, 4 + 160 * size / max(size.max(initial=0), 1e-30)
    curve = curve or Curve([], [], {})
    present = np.union1d(channel, _channels(curve.channels, np.size(curve.times), "channels of the curve"))
    names = _names(channel_names, present)
    styles = channel_style(names)

    figure, panels = _panels(len(present))
    # Not one label of the figure: it would lie on the legend.
    lowest = len(panels) - min(2, len(panels))
    for i, (axes, index) in enumerate(zip(panels, present)):
        _draw_curve(axes, curve.in_channel(index), styles[index][0], dates)
        for kept in (False, True):
            pick = (channel == index) & (hide == kept)
            spread = None if error is None else error[pick]
            areas = None if area is None else area[pick]
            _draw_points(axes, t[pick], y[pick], spread, areas, styles[index], kept, dates)
        style_axes(axes, title=names[index], x_label=plain(time_label) if i >= lowest else "")
        date_ticks(axes.xaxis) if dates else plain_numbers(axes.xaxis, 4)
        plain_numbers(axes.yaxis)
        if asinh_scale is not None:
            _asinh(axes, asinh_scale)
        if invert is True or (invert and names[index] in {plain(name) for name in invert}):
            axes.invert_yaxis()
    figure.supylabel(value_label.replace("$", r"\$"), fontsize=10, color=INK)
    if title:
        text = title.replace("$", r"\$")
        figure.suptitle(text, x=0.01, ha="left", fontsize=11.5, fontweight="bold", color=INK)
    words = (
        ("seen" if hide.any() else "observed", "hidden") if weight is None else ("speaks for it", "speaks against it")
    )
    legend_below(figure, _legend(hide, words, error is not None, curve))
    return figure


def _channels(channels: ArrayLike | None, n: int, name: str) -> NDArray[np.int64]:
    out = np.zeros(n, np.int64) if channels is None else np.asarray(channels, np.int64)
    same_length(name, out, n)
    return out


def _names(names: Sequence[str] | None, present: NDArray[np.int64]) -> list[str]:
    first, last = int(present.min()), int(present.max())
    if names is None:
        names = [""] if last == 0 else [f"channel {i}" for i in range(last + 1)]
    if len(names) <= last or first < 0:
        raise InputError(f"channels run from {first} to {last}, but there are {len(names)} channel_names.")
    return [plain(name) for name in names]


def _panels(count: int) -> tuple[Figure, list[Axes]]:
    """Lay out two columns of panels that share their time axis; the lowest of each has the tick labels."""
    columns = min(2, count)
    rows = -(-count // columns)
    figure = empty_figure(5.6, 0.9 + (1.5 * rows if count > 1 else 2.4))
    grid = figure.subplots(rows, columns, sharex=True, squeeze=False)
    for spare in grid.flat[count:]:
        spare.set_visible(False)
        grid[rows - 2, columns - 1].tick_params(labelbottom=True)
    return figure, list(grid.flat[:count])


def _on_axis(times: NDArray[np.float64], dates: bool) -> Any:
    """Times as matplotlib takes them: dates as datetime64, whatever epoch the user has set for it."""
    return np.round(times * 86_400e3).astype("datetime64[ms]") if dates else times


def _draw_curve(axes: Axes, curve: Curve, colour: str, dates: bool) -> None:
    if not np.size(curve.times):
        return
    at = _on_axis(vector("times", curve.times), dates)
    for level in sorted(curve.bands, reverse=True):
        axes.fill_between(at, *curve.bands[level], color=colour, alpha=_strength(level), linewidth=0)
    axes.plot(at, curve.mean, color=colour, linewidth=1.4, zorder=3)


def _strength(level: float) -> float:
    return 0.16 if level > 0.8 else 0.26


def _draw_points(
    axes: Axes,
    times: NDArray[np.float64],
    values: NDArray[np.float64],
    errors: NDArray[np.float64] | None,
    areas: NDArray[np.float64] | None,
    style: tuple[str, str],
    hidden: bool,
    dates: bool,
) -> None:
    if not len(times):
        return
    colour, marker = style
    look: dict[str, Any] = {"markerfacecolor": colour, "markeredgecolor": INK, "markeredgewidth": 0.4, "zorder": 4}
    if hidden:
        look = {"markerfacecolor": "white", "markeredgecolor": colour, "markeredgewidth": 1.3, "zorder": 5}
    at = _on_axis(times, dates)
    if areas is None:
        axes.errorbar(at, values, errors, fmt=marker, markersize=4.6, color=colour, elinewidth=0.8, **look)
        return
    axes.errorbar(at, values, errors, fmt="none", ecolor=colour, elinewidth=0.6)
    edge, width = look["markeredgecolor"], look["markeredgewidth"]
    axes.scatter(
        at,
        values,
        areas,
        marker=marker,
        facecolor=look["markerfacecolor"],
        edgecolor=edge,
        linewidth=width,
        clip_on=False,
    )


def _legend(hidden: NDArray[np.bool_], words: tuple[str, str], errors: bool, curve: Curve) -> list[tuple[Any, str]]:
    """Return a neutral legend entry per kind of mark; panels' titles name the channels."""
    with_errors = " ± 1σ" if errors else ""
    entries: list[tuple[Any, str]] = []
    dot = {"marker": "o", "linestyle": "", "color": FAINT, "markersize": 5}
    if not hidden.all():
        entries.append((Line2D([], [], **dot), f"{words[0]}{with_errors}"))
    if hidden.any():
        entries.append((Line2D([], [], markerfacecolor="white", **dot), f"{words[1]}{with_errors}"))
    if np.size(curve.times):
        entries.append((Line2D([], [], color=FAINT, linewidth=1.6), "prediction"))
    for level in sorted(curve.bands):
        entries.append((Patch(color=FAINT, alpha=2 * _strength(level), linewidth=0), f"{level:.0%} band"))
    return entries


def _asinh(axes: Axes, scale: float) -> None:
    """Make the axis symmetric, with ticks at 0 and at ± powers of ten beyond the linear range."""
    if not scale > 0:
        raise InputError(f"asinh_scale is {scale}; it must be a positive value in the unit of the data.")
    axes.set_yscale("asinh", linear_width=scale)
    axes.set_ymargin(0.08)
    axes.autoscale_view(scalex=False)
    low, high = axes.get_ylim()
    first, last = np.floor(np.log10(scale)), np.ceil(np.log10(max(abs(low), abs(high), scale)))
    decades = 10.0 ** np.arange(first, last + 1)
    for sizes in (decades, np.sort(np.r_[decades, 3 * decades])):
        sizes = sizes[sizes >= scale]
        within = [x for x in np.r_[-sizes[::-1], 0, sizes] if low <= x <= high]
        if len(within) >= 4:
            break
    if len(within) < 3:  # hardly beyond the linear part: round numbers serve better
        within = [x for x in MaxNLocator(5).tick_values(low, high) if low <= x <= high]
    while len(within) > 8:
        zero = int(np.argmin(np.abs(within)))
        within = within[zero % 2 :: 2]
    axes.yaxis.set_major_locator(FixedLocator([float(x) for x in within]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.6g}".replace("-", "−")))
