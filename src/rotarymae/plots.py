"""Figures: plain numpy arrays in, a matplotlib Figure out.

Every function builds its own `matplotlib.figure.Figure` and sets its style on it, so that nothing depends on, or
changes, global settings, and no window system is needed. `figure.savefig("name.png")` writes it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogFormatterSciNotation, MaxNLocator, NullLocator
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
Z95 = 1.959963984540054  # a normal's central 95 % lies within this many standard deviations


def channel_style(names: Sequence[str]) -> list[tuple[str, str]]:
    """A colour and a marker per channel: LSST's own if every name is one of its bands (u g r i z y, either case)."""
    if names and all(name.lower() in LSST_BANDS for name in names):
        return [LSST_BANDS[name.lower()] for name in names]
    return [_style_of(i) for i in range(len(names))]


def _style_of(i: int) -> tuple[str, str]:
    """Colour and marker i. The second eight colours get other markers than the first, every further round of sixteen
    moves the markers on by one: 128 stay distinct."""
    return COLOURS[i % len(COLOURS)], MARKERS[(i + i // 8 - i // 16) % len(MARKERS)]


# ── series ────────────────────────────────────────────────────────────────────────────────────────────────────────


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
    t, y = _vector("times", times), _vector("values", values)
    n = len(t)
    if n == 0:
        raise InputError("interpolation needs at least one observation.")
    _same("values", y, n)
    channel = np.zeros(n, np.int64) if channels is None else np.asarray(channels, np.int64)
    error = None if errors is None else _vector("errors", errors)
    hide = np.zeros(n, bool) if hidden is None else np.asarray(hidden, bool)
    for name, array in (("channels", channel), ("errors", error), ("hidden", hide)):
        if array is not None:
            _same(name, array, n)

    if (curve_times is None) != (curve_mean is None):
        raise InputError("curve_times and curve_mean belong together; give both or neither.")
    ct = _vector("curve_times", [] if curve_times is None else curve_times)
    cy = _vector("curve_mean", [] if curve_mean is None else curve_mean)
    cc = np.zeros(len(ct), np.int64) if curve_channels is None else np.asarray(curve_channels, np.int64)
    _same("curve_mean", cy, len(ct))
    _same("curve_channels", cc, len(ct))
    bands = _bands(cy, curve_std, curve_bands)

    most = int(max(channel.max(), cc.max(initial=0))) + 1
    names = [""] * most if channel_names is None and most == 1 else channel_names
    names = [f"channel {i}" for i in range(most)] if names is None else [_plain(name) for name in names]
    if len(names) < most or channel.min() < 0:
        raise InputError(f"channels run from {channel.min()} to {most - 1}, but there are {len(names)} channel_names.")
    styles = channel_style(names)
    shown = sorted(set(channel.tolist()) | set(cc.tolist()))
    panels = len(shown) > 2 if panels is None else panels

    columns = min(3, len(shown)) if panels else 1
    rows = -(-len(shown) // columns) if panels else 1
    figure = _figure(10.5, 0.75 + (2.15 * rows if panels else 3.6))
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
        _style(axes)
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
    _title(figure, title)
    _series_legend(figure, names, styles, [] if panels else shown, hide, error is not None, ct.size > 0, bands)
    return figure


def _bands(
    mean: NDArray[np.float64], std: ArrayLike | None, bands: Mapping[float, tuple[ArrayLike, ArrayLike]] | None
) -> dict[float, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    if std is not None and bands is not None:
        raise InputError("give curve_std or curve_bands, not both.")
    if std is not None:
        width = _vector("curve_std", std)
        _same("curve_std", width, len(mean))
        return {0.68: (mean - width, mean + width), 0.95: (mean - Z95 * width, mean + Z95 * width)}
    out = {}
    for level, edges in (bands or {}).items():
        if not 0 < level < 1:
            raise InputError(f"curve_bands has a level {level}; levels are shares between 0 and 1, such as 0.68.")
        lower, upper = (_vector(f"curve_bands[{level}]", edge) for edge in edges)
        _same(f"curve_bands[{level}]", lower, len(mean))
        _same(f"curve_bands[{level}]", upper, len(mean))
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
    _legend_below(figure, entries)


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


# ── training ──────────────────────────────────────────────────────────────────────────────────────────────────────


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
    figure = _figure(5.4 * len(stages) if len(stages) > 1 else 6.8, 3.5)
    grid = figure.subplots(1, len(stages), squeeze=False)
    for axes, (stage, curves) in zip(grid.flat, stages.items()):
        seen: list[NDArray[np.float64]] = []
        handles: list[Any] = []
        texts: list[str] = []
        for i, (name, (steps, losses)) in enumerate(curves.items()):
            x, y = _vector(f"steps of {name}", steps), _vector(f"values of {name}", losses)
            _same(f"values of {name}", y, len(x))
            seen.append(y[np.isfinite(y)])
            validation = name.startswith("validation")
            colour, dot = COLOURS[i % len(COLOURS)], "o" if len(x) == 1 else ""
            handles += axes.plot(x, y, color=colour, linewidth=1.8 if validation else 1.3, marker=dot)
            texts.append(_plain(name))
            if validation and np.isfinite(y).any():
                best = int(np.nanargmin(y))
                handles += axes.plot(x[best], y[best], "o", color=colour, markersize=6)
                texts.append(f"lowest: {y[best]:.4g}")
        _style(axes)
        together = np.concatenate(seen)
        if together.size and together.min() > 0 and together.max() > 10 * together.min():
            axes.set_yscale("log")
        axes.xaxis.set_major_locator(MaxNLocator(7, integer=True))
        axes.set_title(_plain(stage), fontsize=11, fontweight="bold", color=INK, loc="left")
        axes.set_xlabel(step_label, fontsize=10, color=INK)
        axes.set_ylabel(value_label, fontsize=10, color=INK)
        below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2), "ncols": 3}
        axes.legend(handles, texts, frameon=False, fontsize=9, labelcolor=INK, **below)
    return figure


# ── classification ────────────────────────────────────────────────────────────────────────────────────────────────


def confusion(counts: ArrayLike, names: Sequence[str]) -> Figure:
    """Row-normalised confusion matrix from counts [classes, classes]: rows are the truth, columns the prediction.

    Cells carry their share of the row in per cent; a row's label carries its number of objects.
    """
    table = np.asarray(counts, np.float64)
    names = [_plain(name) for name in names]
    k = len(names)
    if table.shape != (k, k) or k == 0:
        raise InputError(f"counts has shape {table.shape}; wanted [{k}, {k}] for {k} class names.")
    if not np.isfinite(table).all() or (table < 0).any():
        raise InputError("counts must be numbers of objects: finite and not negative.")
    totals = table.sum(1)
    share = np.divide(table, totals[:, None], out=np.zeros_like(table), where=totals[:, None] > 0)
    size = float(np.clip(0.5 * k, 2.6, 14))
    figure = _figure(size + 2.2, size + 1.3)
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
    x, y = _vector("truth", truth), _vector("predicted", predicted)
    _same("predicted", y, len(x))
    both = np.concatenate([x, y])
    both = both[np.isfinite(both)]
    if not both.size:
        raise InputError("regression needs at least one finite value.")
    low, high = float(both.min()), float(both.max())
    margin = 0.05 * (high - low) or 1.0
    figure = _figure(4.8, 4.6)
    axes = figure.subplots()
    line = [low - margin, high + margin]
    axes.plot(line, line, color=FAINT, linewidth=1.2, linestyle=(0, (4, 3)), label="agreement")
    axes.plot(x, y, "o", color=COLOURS[0], markersize=4.6, alpha=0.8 if len(x) < 200 else 0.35)
    axes.set(xlim=line, ylim=line)
    axes.set_aspect("equal")
    _style(axes)
    axes.set_xlabel(f"true {_plain(name)}", fontsize=10, color=INK)
    axes.set_ylabel(f"predicted {_plain(name)}", fontsize=10, color=INK)
    axes.legend(loc="upper left", frameon=False, fontsize=9, labelcolor=INK)
    return figure


def calibration(nominal: ArrayLike, observed: ArrayLike, *, names: Sequence[str] | None = None) -> Figure:
    """Share of hidden points found inside a band against the share the band promises, both in 0..1.

    nominal [L]; observed [L], or [curves, L] with one of `names` each.
    """
    x, y = _vector("nominal", nominal), np.atleast_2d(np.asarray(observed, np.float64))
    if y.ndim != 2 or y.shape[1] != len(x) or (names is not None and len(names) != len(y)):
        raise InputError(f"observed {np.shape(observed)} must be [{len(x)}] or [curves, {len(x)}], with a name each.")
    order = np.argsort(x)
    figure = _figure(4.6, 4.4)
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color=FAINT, linewidth=1.2, linestyle=(0, (4, 3)), label="as promised")
    for i, row in enumerate(y):
        label = "observed" if names is None else names[i]
        axes.plot(x[order], row[order], marker=_style_of(i)[1], color=_style_of(i)[0], linewidth=1.6, label=label)
    axes.set(xlim=(0, 1), ylim=(0, 1.02))
    axes.set_aspect("equal")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{100 * v:.0f} %"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{100 * v:.0f} %"))
    _style(axes)
    axes.set_xlabel("the band's promise", fontsize=10, color=INK)
    axes.set_ylabel("hidden points inside the band", fontsize=10, color=INK)
    axes.legend(loc="lower right", frameon=False, fontsize=9, labelcolor=INK)
    axes.text(0.04, 0.93, "bands too wide", fontsize=9, color=FAINT, transform=axes.transAxes)
    axes.text(0.96, 0.3, "bands too narrow", fontsize=9, color=FAINT, transform=axes.transAxes, ha="right")
    return figure


# ── representations ───────────────────────────────────────────────────────────────────────────────────────────────


def project(embeddings: ArrayLike, method: str = "pca", seed: int = 0) -> NDArray[np.float64]:
    """Two dimensions of embeddings [S, D] for a map: [S, 2]. "pca" keeps distances best, "tsne" neighbourhoods."""
    x = np.asarray(embeddings, np.float64)
    if x.ndim != 2 or len(x) < 3 or x.shape[1] < 2 or not np.isfinite(x).all():
        raise InputError(f"embeddings has shape {x.shape}; wanted finite numbers [3 or more series, 2 or more].")
    if method == "pca":
        centred = x - x.mean(0)
        left, size, _ = np.linalg.svd(centred, full_matrices=False)
        return left[:, :2] * size[:2]
    if method == "tsne":
        from sklearn.manifold import TSNE

        scaled = (x - x.mean(0)) / (x.std(0) + 1e-12)
        perplexity = min(30.0, (len(x) - 1) / 3)
        return np.asarray(TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(scaled), float)
    raise InputError(f"method {method!r} is unknown; choose 'pca' or 'tsne'.")


def embedding_map(
    points: ArrayLike,
    labels: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    *,
    method: str = "",
) -> Figure:
    """Embedded series as points [S, 2], coloured by labels int [S], an index into the class names.

    `method` names the axes ("PCA" gives "PCA 1" and "PCA 2").
    """
    at = np.asarray(points, np.float64)
    if at.ndim != 2 or at.shape[1] != 2 or len(at) == 0:
        raise InputError(f"points has shape {at.shape}; wanted [series, 2], as project() returns.")
    label = np.zeros(len(at), np.int64) if labels is None else np.asarray(labels, np.int64)
    _same("labels", label, len(at))
    known = [""] * (label.max() + 1) if names is None and labels is None else names
    known = [f"class {i}" for i in range(label.max() + 1)] if known is None else [_plain(name) for name in known]
    if label.min() < 0 or label.max() >= len(known):
        raise InputError(f"labels run from {label.min()} to {label.max()}, but there are {len(known)} class names.")
    figure = _figure(9.2 if len(known) > 1 else 6.6, 5.6)
    axes = figure.subplots()
    styles = [_style_of(i) for i in range(len(known))]
    size = float(np.clip(20000 / len(at), 10, 38))
    # Largest classes first, so that the rare ones stay on top.
    for i in sorted(range(len(known)), key=lambda i: -int((label == i).sum())):
        pick = label == i
        if pick.any():
            colour, marker = styles[i]
            axes.scatter(
                at[pick, 0],
                at[pick, 1],
                s=size,
                c=colour,
                marker=marker,
                alpha=0.75,
                linewidths=0.3,
                edgecolors="white",
                rasterized=len(at) > 1500,
            )
    _style(axes)
    axes.set_xlabel(f"{_plain(method)} 1" if method else "first axis", fontsize=10, color=INK)
    axes.set_ylabel(f"{_plain(method)} 2" if method else "second axis", fontsize=10, color=INK)
    if len(known) > 1:
        from matplotlib.lines import Line2D

        handles = [Line2D([], [], linestyle="", marker=marker, color=colour, markersize=6) for colour, marker in styles]
        texts = [f"{name} ({int((label == i).sum()):,})" for i, name in enumerate(known)]
        columns = -(-len(known) // 24)
        figure.legend(
            handles, texts, loc="outside right center", ncols=columns, frameon=False, fontsize=9, labelcolor=INK
        )
    return figure


# ── grids and probes ──────────────────────────────────────────────────────────────────────────────────────────────


def reconstruction(
    original: ArrayLike,
    masked: ArrayLike,
    reconstructed: ArrayLike,
    *,
    titles: Sequence[str] = ("input", "what the model saw", "reconstruction"),
    cmap: str = "gray",
) -> Figure:
    """Images side by side, one row each: input, with hidden patches (NaN, drawn grey), reconstructed.

    Each [H, W], [H, W, 3], [n, H, W] or [n, H, W, 3]; colours in 0..1. Of grey images each row has the range of its
    input.
    """
    stacks = [np.asarray(part, np.float64) for part in (original, masked, reconstructed)]
    shape = stacks[0].shape
    if any(part.shape != shape for part in stacks):
        raise InputError(f"the three images have shapes {', '.join(str(p.shape) for p in stacks)}; they must agree.")
    single = len(shape) == 2 or (len(shape) == 3 and shape[-1] == 3)
    if single:
        stacks = [part[None] for part in stacks]
    if stacks[0].ndim not in (3, 4) or (stacks[0].ndim == 4 and stacks[0].shape[-1] != 3) or stacks[0].size == 0:
        raise InputError(f"images of shape {shape}; wanted [H, W], [H, W, 3], [n, H, W] or [n, H, W, 3].")
    rows, height, width = stacks[0].shape[:3]
    ratio = float(np.clip(height / width, 0.2, 3))
    figure = _figure(8.4, max(1.6, 2.8 * ratio * rows) + 0.4)
    grid = figure.subplots(rows, 3, squeeze=False)
    grey = matplotlib.colormaps[cmap].with_extremes(bad="#b9bec8")
    for row in range(rows):
        low, high = np.nanmin(stacks[0][row]), np.nanmax(stacks[0][row])
        for column, part in enumerate(stacks):
            axes: Axes = grid[row, column]
            picture = part[row]
            if picture.ndim == 3:
                gone = np.isnan(picture).any(-1, keepdims=True)
                axes.imshow(np.where(gone, 0.74, np.clip(picture, 0, 1)), interpolation="nearest")
            else:
                axes.imshow(picture, cmap=grey, vmin=low, vmax=high, interpolation="nearest")
            axes.set_xticks([])
            axes.set_yticks([])
            axes.spines[:].set_visible(False)
            if row == 0:
                axes.set_title(titles[column], fontsize=10.5, color=INK)
    return figure


def frequency_error(
    frequencies: ArrayLike,
    errors: Mapping[str, ArrayLike],
    *,
    frequency_label: str = "frequency (Hz)",
    error_label: str = "mean squared error",
) -> Figure:
    """Error by frequency of the signal: frequencies [F], and one curve [F] per name, on a logarithmic error axis."""
    return curves(frequencies, errors, x_label=frequency_label, y_label=error_label)


def curves(x: ArrayLike, ys: Mapping[str, ArrayLike], *, x_label: str, y_label: str, log_x: bool = False) -> Figure:
    """Lines over one axis: x [n], and one curve [n] per name; the other axis is logarithmic when all are positive."""
    at = _vector("x", x)
    if not ys:
        raise InputError("curves needs at least one curve.")
    figure = _figure(7.2, 3.9)
    axes = figure.subplots()
    entries: list[tuple[Any, str]] = []
    positive = True
    for i, (name, curve) in enumerate(ys.items()):
        y = _vector(f"ys[{name!r}]", curve)
        _same(f"ys[{name!r}]", y, len(at))
        positive &= bool((y[np.isfinite(y)] > 0).all())
        (line,) = axes.plot(at, y, color=_style_of(i)[0], marker=_style_of(i)[1], markersize=4, linewidth=1.5)
        entries.append((line, _plain(name)))
    if positive:
        axes.set_yscale("log")
        _plain_numbers(axes.yaxis)
    if log_x:
        axes.set_xscale("log")
        _plain_numbers(axes.xaxis)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))
    _style(axes)
    axes.set_xlabel(x_label, fontsize=10, color=INK)
    axes.set_ylabel(y_label, fontsize=10, color=INK)
    _legend_below(figure, entries)
    return figure


class _Plain(LogFormatterSciNotation):
    """Labels the ticks of a logarithmic axis that matplotlib would label, as 0.02 and not as 2 × 10⁻²."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        with matplotlib.rc_context({"axes.formatter.min_exponent": 4}):
            return super().__call__(x, pos)


def _plain_numbers(axis: Axis) -> None:
    axis.set_major_formatter(_Plain())
    axis.set_minor_formatter(_Plain(labelOnlyBase=False, minor_thresholds=(1.3, 0.4)))


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
    figure = _figure(3.6 * len(panels) + 0.4, 3.9)
    entries: dict[str, Any] = {}
    for i, (axes, (title, panel)) in enumerate(zip(np.atleast_1d(figure.subplots(1, len(panels))), panels.items())):
        _style(axes)
        axes.set_title(_plain(title), fontsize=10.5, fontweight="bold", color=INK, loc="left", pad=3)
        if panel.band is not None:
            entries["95 % band"] = axes.fill_between(*panel.band, color=COLOURS[0], alpha=0.18, linewidth=0)
        if panel.hidden is not None:
            look = {"markerfacecolor": "white", "markeredgecolor": FAINT, "markersize": 4}
            entries["hidden"] = axes.plot(*panel.hidden, "o", **look, zorder=2)[0]
        entries[seen_name] = axes.plot(*panel.seen, "o", color=INK, markersize=4.6, zorder=4)[0]
        for j, (name, line) in enumerate(panel.lines.items()):
            style = "-" if j == 0 else "--"
            entries[_plain(name)] = axes.plot(*line, style, color=_style_of(j)[0], linewidth=1.5, zorder=3)[0]
        if equal:
            axes.set_aspect("equal", adjustable="datalim")
        axes.set_xlabel(x_label, fontsize=10, color=INK)
        if i == 0:
            axes.set_ylabel(y_label, fontsize=10, color=INK)
    _legend_below(figure, [(handle, name) for name, handle in entries.items()])
    return figure


# ── one style ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _figure(width: float, height: float) -> Figure:
    """Inches."""
    return Figure(figsize=(width, height), layout="constrained", facecolor="white", dpi=110)


def _style(axes: Axes) -> None:
    axes.grid(color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#9aa1ad")
    axes.tick_params(which="both", labelsize=9, colors=FAINT, labelcolor=INK, width=0.7)
    axes.tick_params(length=3)


def _title(figure: Figure, text: str) -> None:
    if text:
        figure.suptitle(text.replace("$", r"\$"), x=0.01, ha="left", fontsize=11.5, fontweight="bold", color=INK)


def _plain(text: object) -> str:
    """A user's name as it stands, at most 32 characters: matplotlib would read a formula between two dollar signs,
    leave a name with a leading underscore out of legends, and give a long one all the room."""
    name = str(text)
    name = name if len(name) <= 32 else f"{name[:31]}…"
    return ("\u200b" if name.startswith("_") else "") + name.replace("$", r"\$")


def _legend_below(figure: Figure, entries: Sequence[tuple[Any, str]]) -> None:
    if entries:
        handles, labels = zip(*entries)
        figure.legend(
            handles,
            labels,
            loc="outside lower center",
            ncols=min(len(labels), 6),
            frameon=False,
            fontsize=9,
            labelcolor=INK,
        )


def _vector(name: str, array: ArrayLike) -> NDArray[np.float64]:
    out = np.asarray(array, np.float64)
    if out.ndim != 1:
        raise InputError(f"{name} has shape {out.shape}; wanted one dimension.")
    return out


def _same(name: str, array: NDArray[Any], n: int) -> None:
    if array.shape != (n,):
        raise InputError(f"{name} has shape {array.shape}; wanted [{n}], one entry per point.")
