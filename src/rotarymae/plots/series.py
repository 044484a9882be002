"""One series with its observations, what was hidden, and the predicted curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator
from numpy.typing import ArrayLike, NDArray

from rotarymae.bands import HALF_WIDTHS, SHOWN
from rotarymae.errors import InputError
from rotarymae.plots.style import (
    FAINT,
    INK,
    blank,
    channel_style,
    legend_below,
    plain,
    same_length,
    style_axes,
    title_above,
    vector,
)


def interpolation(
    times: ArrayLike,
    values: ArrayLike,
    *,
    channels: ArrayLike | None = None,
    errors: ArrayLike | None = None,
    hidden: ArrayLike | None = None,
    curve_times: ArrayLike | None = None,
    curve_mean: ArrayLike | None = None,
    curve_std: ArrayLike | None = None,
    curve_bands: Mapping[float, tuple[ArrayLike, ArrayLike]] | None = None,
    curve_channels: ArrayLike | None = None,
    channel_names: Sequence[str] | None = None,
    title: str = "",
    time_label: str = "time",
    value_label: str = "value",
    asinh_scale: float | None = None,
    panels: bool | None = None,
) -> Figure:
    """One series: what the model saw (filled), what was hidden from it (hollow), and what it predicts.

    times, values [n]; channels int [n], an index into channel_names; errors [n], one standard deviation, in the
    unit of the values; hidden bool [n]. The curve: curve_times, curve_mean [q] and curve_channels int [q], with
    bands of 68 % and 95 % either as curve_std [q] or, where they are not symmetric, as curve_bands
    {0.68: (lower [q], upper [q]), 0.95: (lower [q], upper [q])}. All values share one unit; put it in the label.

    `asinh_scale` makes the value axis linear up to about that value and logarithmic beyond, of either sign. `panels`
    gives each channel its own panel; the default does so for more than two channels.
    """
    t, y = vector("times", times), vector("values", values)
    n = len(t)
    if n == 0:
        raise InputError("interpolation needs at least one observation.")
    same_length("values", y, n)
    channel = np.zeros(n, np.int64) if channels is None else np.asarray(channels, np.int64)
    error = None if errors is None else vector("errors", errors)
    hide = np.zeros(n, bool) if hidden is None else np.asarray(hidden, bool)
    for name, array in (("channels", channel), ("errors", error), ("hidden", hide)):
        if array is not None:
            same_length(name, array, n)

    if (curve_times is None) != (curve_mean is None):
        raise InputError("curve_times and curve_mean belong together; give both or neither.")
    ct = vector("curve_times", [] if curve_times is None else curve_times)
    cy = vector("curve_mean", [] if curve_mean is None else curve_mean)
    cc = np.zeros(len(ct), np.int64) if curve_channels is None else np.asarray(curve_channels, np.int64)
    same_length("curve_mean", cy, len(ct))
    same_length("curve_channels", cc, len(ct))
    bands = _bands(cy, curve_std, curve_bands)

    most = int(max(channel.max(), cc.max(initial=0))) + 1
    names = [""] * most if channel_names is None and most == 1 else channel_names
    names = [f"channel {i}" for i in range(most)] if names is None else [plain(name) for name in names]
    if len(names) < most or channel.min() < 0:
        raise InputError(f"channels run from {channel.min()} to {most - 1}, but there are {len(names)} channel_names.")
    styles = channel_style(names)
    shown = sorted(set(channel.tolist()) | set(cc.tolist()))
    panels = len(shown) > 2 if panels is None else panels

    columns = min(3, len(shown)) if panels else 1
    rows = -(-len(shown) // columns) if panels else 1
    figure = blank(10.5, 0.75 + (2.15 * rows if panels else 3.6))
    grid = np.atleast_2d(figure.subplots(rows, columns, sharex=True, squeeze=False))
    for spare in grid.flat[len(shown) if panels else 1 :]:
        spare.set_visible(False)

    for i, index in enumerate(shown):
        axes: Axes = grid.flat[i if panels else 0]
        colour, marker = styles[index]
        here = cc == index
        order = np.argsort(ct[here], kind="stable")
        if here.any():
            x = ct[here][order]
            for level in sorted(bands, reverse=True):
                lower, upper = (edge[here][order] for edge in bands[level])
                axes.fill_between(x, lower, upper, color=colour, alpha=0.16 if level > 0.8 else 0.26, linewidth=0)
            axes.plot(x, cy[here][order], color=colour, linewidth=1.4, zorder=3)
        for part, face in ((~hide, colour), (hide, "white")):
            pick = (channel == index) & part
            if not pick.any():
                continue
            axes.errorbar(
                t[pick],
                y[pick],
                None if error is None else np.abs(error[pick]),
                fmt=marker,
                markersize=4.6,
                markerfacecolor=face,
                markeredgecolor=colour if part is hide else INK,
                markeredgewidth=1.3 if part is hide else 0.4,
                color=colour,
                elinewidth=0.8,
                zorder=5 if part is hide else 4,
            )

    for i, axes in enumerate(grid.flat[: len(shown) if panels else 1]):
        style_axes(axes)
        if asinh_scale is not None:
            _asinh(axes, asinh_scale)
        if panels and names[shown[i]]:
            axes.set_title(names[shown[i]], fontsize=10.5, fontweight="bold", color=INK, loc="left", pad=3)
        if panels and i + columns < len(shown):
            axes.tick_params(labelbottom=False)
        elif panels:
            axes.tick_params(labelbottom=True)  # also above a panel that is not there
    lowest = [axes for axes in grid[:, (columns - 1) // 2] if axes.get_visible()][-1]
    lowest.set_xlabel(time_label, fontsize=10, color=INK)
    if len(grid) == 1:
        grid[0, 0].set_ylabel(value_label, fontsize=10, color=INK)
    else:
        figure.supylabel(value_label, fontsize=10, color=INK)
    title_above(figure, title)
    _series_legend(figure, names, styles, [] if panels else shown, hide, error is not None, ct.size > 0, bands)
    return figure


def _bands(
    mean: NDArray[np.float64], std: ArrayLike | None, bands: Mapping[float, tuple[ArrayLike, ArrayLike]] | None
) -> dict[float, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    if std is not None and bands is not None:
        raise InputError("give curve_std or curve_bands, not both.")
    if std is not None:
        width = vector("curve_std", std)
        same_length("curve_std", width, len(mean))
        return {share: (mean - HALF_WIDTHS[share] * width, mean + HALF_WIDTHS[share] * width) for share in SHOWN}
    out = {}
    for level, edges in (bands or {}).items():
        if not 0 < level < 1:
            raise InputError(f"curve_bands has a level {level}; levels are shares between 0 and 1, such as 0.68.")
        lower, upper = (vector(f"curve_bands[{level}]", edge) for edge in edges)
        same_length(f"curve_bands[{level}]", lower, len(mean))
        same_length(f"curve_bands[{level}]", upper, len(mean))
        out[level] = (lower, upper)
    return out


def _series_legend(
    figure: Figure,
    names: Sequence[str],
    styles: Sequence[tuple[str, str]],
    channels: Sequence[int],
    hidden: NDArray[np.bool_],
    errors: bool,
    curve: bool,
    bands: Mapping[float, Any],
) -> None:
    """Below the panels, where it covers nothing: one neutral entry per kind of mark, then the channels if mixed."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    with_errors = " ± 1σ" if errors else ""
    entries: list[tuple[Any, str]] = []
    if not hidden.all():
        label = f"{'seen by the model' if hidden.any() else 'observed'}{with_errors}"
        entries.append((Line2D([], [], marker="o", linestyle="", color=FAINT, markersize=5), label))
    if hidden.any():
        hollow = Line2D([], [], marker="o", linestyle="", color=FAINT, markerfacecolor="white", markersize=5)
        entries.append((hollow, f"hidden from it{with_errors}"))
    if curve:
        entries.append((Line2D([], [], color=FAINT, linewidth=1.6), "prediction"))
    for level in sorted(bands):
        entries.append((Patch(color=FAINT, alpha=0.3 if level > 0.8 else 0.6, linewidth=0), f"{level:.0%} band"))
    for i in channels:
        if names[i]:
            colour, marker = styles[i]
            entries.append((Line2D([], [], marker=marker, color=colour, markersize=5, linewidth=1.4), names[i]))
    legend_below(figure, entries)


def _asinh(axes: Axes, scale: float) -> None:
    """A symmetric axis with ticks at 0 and at ± powers of ten beyond the linear range."""
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
