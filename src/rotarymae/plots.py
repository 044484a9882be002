"""The figures of a report, from numpy arrays.

Each function returns a new Figure in one style, whatever global settings are, and leaves them as they are; no window
system is needed. `figure.savefig("name.png")` writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from typing import Any, NamedTuple, ParamSpec

import matplotlib
import matplotlib.dates
import matplotlib.style
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator
from numpy.typing import ArrayLike, NDArray
from sklearn.calibration import calibration_curve
from sklearn.metrics import ConfusionMatrixDisplay, PrecisionRecallDisplay, PredictionErrorDisplay, RocCurveDisplay

from rotarymae.survival import kaplan_meier

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
INK, FAINT = "#1f2430", "#5b6270"
DASHED = {"color": FAINT, "linewidth": 1.2, "linestyle": (0, (4, 3))}
SQUARE = (4.6, 4.4)  # inches
STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#9aa1ad",
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
    """Return a drawing function that runs `draw` in this module's style, whatever the caller's matplotlib settings."""

    @wraps(draw)
    def drawing(*arguments: Arguments.args, **named: Arguments.kwargs) -> Figure:
        """Call the decorated function; the settings are as before afterwards."""
        with matplotlib.style.context(["default", STYLE]):
            return draw(*arguments, **named)

    return drawing


def channel_style(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return (colour, marker) for each channel name; LSST's if all are names of its bands, in upper or lower case."""
    if names and all(name.lower() in LSST_BANDS for name in names):
        return [LSST_BANDS[name.lower()] for name in names]
    return [style_of(i) for i in range(len(names))]


def style_of(i: int) -> tuple[str, str]:
    """Return (colour, marker) for the number i from 0; the first 128 combinations all differ, then they repeat."""
    return COLOURS[i % len(COLOURS)], MARKERS[(i + i // 8 - i // 16) % len(MARKERS)]


def literal(text: object) -> str:
    """Return a user's name as matplotlib can draw it literally; of more than 32 characters the first 31 and "…".

    matplotlib would read a formula between two dollar signs, and hide a legend entry that starts with an underscore.
    """
    name = str(text)
    name = name if len(name) <= 32 else f"{name[:31]}…"
    return ("\u200b" if name.startswith("_") else "") + name.replace("$", r"\$")


def legend_below(figure: Figure, entries: Sequence[tuple[Any, str]]) -> None:
    """Add a legend of (handle, name) pairs, at least one, below the panels, in as many columns as the width takes.

    The figure has constrained layout, which makes room for the legend.
    """
    handles, labels = zip(*entries)
    # A column takes its longest name and the handle; a line of 9 pt text has about 13 characters per inch.
    columns = int(np.clip(13 * figure.get_figwidth() // (max(map(len, labels)) + 6), 1, len(labels)))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)


# ── one series ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Curve(NamedTuple):
    """A predicted curve: times and mean [q], bands by their probability (lower [q], upper [q]), channels int [q]."""

    times: ArrayLike
    mean: ArrayLike
    bands: Mapping[float, tuple[ArrayLike, ArrayLike]]
    channels: ArrayLike | None = None


@styled
def interpolation(
    times: ArrayLike,
    values: ArrayLike,
    *,
    channels: ArrayLike | None = None,
    errors: ArrayLike | None = None,
    hidden: ArrayLike | None = None,
    curve: Curve | None = None,
    channel_names: Sequence[str] = ("",),
    title: str = "",
    time_label: str = "time",
    value_label: str = "value",
    asinh_scale: float | None = None,
    dates: bool = False,
    invert: Collection[str] = (),
) -> Figure:
    """Draw one series, a panel per channel: observations the model saw (filled), hidden ones (hollow), its prediction.

    Args:
        times: [n]; values: [n], in one unit, which belongs into `value_label`.
        channels: int [n], an index into `channel_names`; None means 0 for all.
        errors: [n], one standard deviation in the unit of the values; None draws no bars.
        hidden: bool [n]; None means that none is.
        curve: predicted curve; None for none.
        title: of the figure; "" for none.
        asinh_scale: makes the value axis linear up to about that value and logarithmic beyond, of either sign; None
            leaves it linear.
        dates: times are days since 1970-01-01 UTC, and are labelled as dates.
        invert: names of the channels in which large values are at the bottom, as magnitudes are drawn.
    """
    t, y = _on_axis(times, dates), np.asarray(values, np.float64)
    channel = np.zeros(len(y), np.int64) if channels is None else np.asarray(channels)
    hollow = np.zeros(len(y), bool) if hidden is None else np.asarray(hidden, bool)
    curve = Curve([], [], {}) if curve is None else curve
    at, mean = _on_axis(curve.times, dates), np.asarray(curve.mean)
    of_curve = np.zeros(len(at), np.int64) if curve.channels is None else np.asarray(curve.channels)
    present, styles = np.union1d(channel, of_curve), channel_style(channel_names)
    figure, panels = _panels(len(present))
    for i, (axes, c) in enumerate(zip(panels, present)):
        colour, marker = styles[c]
        order = np.flatnonzero(of_curve == c)
        order = order[np.argsort(at[order], kind="stable")]
        for level in sorted(curve.bands, reverse=True):
            lower, upper = (np.asarray(edge)[order] for edge in curve.bands[level])
            axes.fill_between(at[order], lower, upper, color=colour, alpha=_strength(level), linewidth=0)
        if len(order):
            axes.plot(at[order], mean[order], color=colour, linewidth=1.4, zorder=3)
        for late in (False, True):
            pick = (channel == c) & (hollow == late)
            face, edge, width = ("white", colour, 1.3) if late else (colour, INK, 0.4)
            if errors is not None and pick.any():
                bars = np.abs(np.asarray(errors, np.float64)[pick])
                axes.errorbar(t[pick], y[pick], bars, fmt="none", ecolor=colour, elinewidth=0.8, zorder=3)
            look: dict[str, Any] = {"marker": marker, "facecolor": face, "edgecolor": edge, "linewidth": width}
            axes.scatter(t[pick], y[pick], 21.0, zorder=5 if late else 4, **look)
        # A label of the whole figure would lie on the legend.
        axes.set(title=literal(channel_names[c]), xlabel=literal(time_label) if i >= len(panels) - 2 else "")
        _date_ticks(axes.xaxis) if dates else _plain_numbers(axes.xaxis, 4)
        if asinh_scale is not None:
            axes.set_yscale("asinh", linear_width=asinh_scale)
        _limit(axes, y[channel == c], np.ptp(y) if len(y) else 0.0)
        if asinh_scale is None:
            _plain_numbers(axes.yaxis)
        elif not _powers_of_ten(axes, asinh_scale):
            _plain_numbers(axes.yaxis, 3)  # away from 0 an asinh axis crowds them
        if channel_names[c] in invert:
            axes.invert_yaxis()
    figure.supylabel(value_label.replace("$", r"\$"), fontsize=10)
    if title:
        figure.suptitle(title.replace("$", r"\$"), x=0.01, ha="left", fontsize=11.5, fontweight="bold")
    legend_below(figure, _entries(hollow, errors is not None, curve))
    return figure


def _limit(axes: Axes, values: NDArray[np.float64], spread: float) -> None:
    """Limit the value axis to twice the range of observations beyond them, however wide a band is.

    Args:
        values: the observations of the panel.
        spread: the range to use if these are all equal.
    """
    if not len(values):
        return
    low, high = float(values.min()), float(values.max())
    room = 2 * ((high - low) or spread or 1.0)
    bottom, top = axes.get_ylim()
    axes.set_ylim(max(bottom, low - room), min(top, high + room))


def _powers_of_ten(axes: Axes, scale: float) -> bool:
    """Set ticks at 0 and at two powers of ten on each side; return False, and set none, if there is no room for any.

    Args:
        scale: the value up to which the axis is linear; ticks nearer to 0 would overlap.
    """
    low, high = axes.get_ylim()
    powers = np.arange(np.ceil(np.log10(3 * scale)), np.floor(np.log10(max(-low, high))) + 1)
    if not len(powers):
        return False
    sizes = 10.0 ** powers[:: -max(1, -(-len(powers) // 2))]
    ticks = [x for x in (*-sizes, 0.0, *sizes) if low <= x <= high]
    if len(ticks) < 2:
        return False
    axes.set_yticks(ticks, labels=[f"{x:,.10g}" for x in ticks])
    axes.yaxis.set_minor_locator(NullLocator())
    return True


def _panels(count: int) -> tuple[Figure, list[Axes]]:
    """Create a figure with `count` panels in two columns with a common time axis; return it and the panels, by rows.

    The lowest panel of each column has the tick labels; one panel has a single column.
    """
    columns = min(2, count)
    rows = -(-count // columns)
    figure = Figure((5.6, 0.9 + (1.5 * rows if count > 1 else 2.4)))
    grid = figure.subplots(rows, columns, sharex=True, squeeze=False)
    for spare in grid.flat[count:]:
        spare.set_visible(False)
        grid[rows - 2, columns - 1].tick_params(labelbottom=True)
    return figure, list(grid.flat[:count])


def _on_axis(times: ArrayLike, dates: bool) -> NDArray[Any]:
    """Return times for an axis: as float64, or days since 1970-01-01 as datetime64 in milliseconds if `dates`.

    Of datetime64 matplotlib draws the same, whatever epoch the caller has set.
    """
    days = np.asarray(times, np.float64)
    return np.round(days * 86_400e3).astype("datetime64[ms]") if dates else days


def _strength(level: float) -> float:
    """Return the opacity of a band of this probability; wide bands are paler."""
    return 0.16 if level > 0.8 else 0.26


def _entries(hollow: NDArray[np.bool_], with_errors: bool, curve: Curve) -> list[tuple[Any, str]]:
    """Return legend entries (handle, name), in neutral colours, for the kinds of marks that are drawn.

    Args:
        hollow: bool [n], which observations are hidden.
        with_errors: whether there are error bars; the names of observations then say ± 1σ.
    """
    dot, entries = {"marker": "o", "linestyle": "", "color": FAINT, "markersize": 5}, []
    spread = " ± 1σ" if with_errors else ""
    if not hollow.all():
        entries.append((Line2D([], [], **dot), ("seen" if hollow.any() else "observed") + spread))
    if hollow.any():
        entries.append((Line2D([], [], markerfacecolor="white", **dot), "hidden" + spread))
    if np.size(curve.times):
        entries.append((Line2D([], [], color=FAINT, linewidth=1.6), "prediction"))
    for level in sorted(curve.bands):
        entries.append((Patch(color=FAINT, alpha=2 * _strength(level), linewidth=0), f"{level:.0%} band"))
    return entries


def _plain_numbers(axis: Axis, most: int = 6) -> None:
    """Set the ticks of a linear axis, about `most` of them, with labels in full: 59,580 instead of 5.958e4."""
    axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.10g}".replace("-", "−")))


def _date_ticks(axis: Axis) -> None:
    """Set three to seven ticks on a datetime64 axis, with labels as brief as its span allows."""
    locator = matplotlib.dates.AutoDateLocator(minticks=3, maxticks=7)
    axis.set_major_locator(locator)
    axis.set_major_formatter(matplotlib.dates.ConciseDateFormatter(locator))


# ── pictures ────────────────────────────────────────────────────────────────────────────────────────────────────────


@styled
def reconstructed(original: ArrayLike, masked: ArrayLike, reconstructed: ArrayLike, cmap: str = "gray") -> Figure:
    """Draw three pictures [H, W], or [H, W, 3] with colours from 0 to 1, side by side.

    Args:
        original: the input, whose range is that of the colour map.
        masked: the same with NaN at hidden patches, which are drawn grey.
        reconstructed: the same with predictions there.
        cmap: matplotlib's colour map for pictures [H, W].
    """
    parts = [np.asarray(part, np.float64) for part in (original, masked, reconstructed)]
    height, width = parts[0].shape[:2]
    figure = Figure((8.4, max(1.6, 2.8 * float(np.clip(height / width, 0.2, 3))) + 0.4))
    grey = matplotlib.colormaps[cmap].with_extremes(bad="#b9bec8")
    low, high = float(np.nanmin(parts[0])), float(np.nanmax(parts[0]))
    titles = ("input", "what the model saw", "reconstruction")
    for axes, part, title in zip(figure.subplots(1, 3), parts, titles):
        if part.ndim == 3:
            part = np.where(np.isnan(part).any(-1, keepdims=True), 0.74, np.clip(part, 0, 1))
        axes.imshow(part, cmap=grey, vmin=low, vmax=high, interpolation="nearest")
        axes.set(title=title, xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
    return figure


# ── how good predictions are ────────────────────────────────────────────────────────────────────────────────────────


@styled
def confusion(counts: ArrayLike, names: Sequence[str]) -> Figure:
    """Draw a confusion matrix: counts [classes, classes] as shares of each row in per cent.

    Rows are the truth, columns the prediction. A row's label carries its number of objects.

    Args:
        names: of the classes, in the order of the rows.
    """
    table, names, k = np.asarray(counts, np.float64), [literal(name) for name in names], len(names)
    totals = table.sum(1)
    percent = 100 * np.divide(table, totals[:, None], out=np.zeros_like(table), where=totals[:, None] > 0)
    size = float(np.clip(0.5 * k, 2.6, 14))
    figure = Figure((size + 2.2, size + 1.3))
    axes = figure.subplots()
    look = {"cmap": "Blues", "im_kw": {"vmin": 0, "vmax": 100}, "text_kw": {"fontsize": 8.5}}
    show = ConfusionMatrixDisplay(percent, display_labels=names)
    show.plot(include_values=k <= 30, values_format=".0f", colorbar=False, ax=axes, **look)
    axes.set(xlabel="predicted class (cells: % of the true class)", ylabel="true class (number of objects)")
    axes.set_xticks(np.arange(k), names, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(np.arange(k), [f"{name}  ({int(total):,})" for name, total in zip(names, totals)])
    axes.grid(False)
    return figure


@styled
def roc(positive: ArrayLike, scores: ArrayLike, name: str) -> Figure:
    """Draw the receiver operating characteristic of one class.

    Args:
        positive: bool [n], which objects are of the class; both values must occur.
        scores: [n], larger for those that are likelier of the class.
        name: of the class, for an axis.
    """
    figure, named = Figure(SQUARE), {"name": "model", "plot_chance_level": True}
    show = RocCurveDisplay.from_predictions(positive, scores, ax=figure.subplots(), **named)
    show.ax_.set(xlabel="false positive rate", ylabel=f"true positive rate of {literal(name)}")
    return figure


@styled
def precision_recall(positive: ArrayLike, scores: ArrayLike, name: str) -> Figure:
    """Draw precision against recall of one class, over all thresholds.

    Args:
        positive: bool [n], which objects are of the class.
        scores: [n], larger for those that are likelier of the class.
        name: of the class, for an axis.
    """
    figure, named = Figure(SQUARE), {"name": "model", "plot_chance_level": True}
    show = PrecisionRecallDisplay.from_predictions(positive, scores, ax=figure.subplots(), **named)
    show.ax_.set(xlabel=f"recall of {literal(name)}", ylabel="precision")
    return figure


@styled
def reliability(correct: ArrayLike, confidence: ArrayLike) -> Figure:
    """Draw the share of correct predictions against the probability that the model gave them.

    Predictions are sorted by confidence into bins of equal number, at most ten and of at least ten where possible.

    Args:
        correct: bool [n], whether each prediction is right.
        confidence: [n], the probability of each predicted class.
    """
    bins = int(np.clip(np.size(correct) // 10, 1, 10))
    share, mean = calibration_curve(correct, confidence, n_bins=bins, strategy="quantile")
    return _promise(mean, share, "probability given to the predicted class", "share that is right")


@styled
def calibration(nominal: ArrayLike, observed: ArrayLike) -> Figure:
    """Draw the share of hidden points inside each of L bands against the share that the band promises.

    `nominal` and `observed` are [L], from 0 to 1, by rising `nominal`, as they are joined by a line.
    """
    return _promise(nominal, observed, "nominal share of the band", "hidden points inside the band")


def _promise(promised: ArrayLike, kept: ArrayLike, x_label: str, y_label: str) -> Figure:
    """Draw observed against promised shares, both [L] from 0 to 1, with the diagonal on which they agree."""
    figure = Figure(SQUARE)
    axes = figure.subplots()
    axes.plot(promised, kept, "o-", label="observed")
    axes.plot([0, 1], [0, 1], label="as promised", **DASHED)
    axes.set(xlim=(0, 1), ylim=(0, 1.02), aspect="equal", xlabel=x_label, ylabel=y_label)
    axes.text(0.04, 0.93, "too cautious", color=FAINT)
    axes.text(0.96, 0.3, "too sure", color=FAINT, ha="right")
    axes.legend(loc="lower right")
    return figure


@styled
def by_distance(distances: Sequence[str], errors: Mapping[str, ArrayLike], inside: Mapping[float, ArrayLike]) -> Figure:
    """Draw errors and coverage of hidden points by their distance to the nearest observation.

    Args:
        distances: names of D groups of hidden points, near first.
        errors: {method: scaled root mean squared errors [D]}.
        inside: {nominal share of a band: shares of hidden points inside it [D]}; the nominal share is dashed.
    """
    figure, at = Figure((9.2, 3.6)), np.arange(len(distances))
    left, right = figure.subplots(1, 2)
    for (name, values), marker in zip(errors.items(), MARKERS, strict=False):
        left.plot(at, values, marker=marker, label=literal(name))
    left.set(ylabel="root mean squared error, scaled", ylim=(0, None))
    for (share, values), marker in zip(inside.items(), MARKERS, strict=False):
        right.plot(at, values, marker=marker, label=f"band of {share:.0%}")
        right.axhline(share, **DASHED)
    right.set(ylabel="hidden points inside", ylim=(0, 1.02))
    for axes in (left, right):
        axes.set_xticks(at, distances)
        axes.set_xlabel("distance to the nearest observation")
        axes.legend(loc="best")
    return figure


@styled
def predicted_against_true(truth: ArrayLike, predicted: ArrayLike, name: str = "label") -> Figure:
    """Draw true (upward) against predicted values, both [n]; they agree on the dashed line. `name` labels both axes."""
    figure, n = Figure(SQUARE), np.size(truth)
    show = PredictionErrorDisplay(y_true=np.asarray(truth), y_pred=np.asarray(predicted))
    points = {"color": COLOURS[0], "s": 21, "alpha": 0.8 if n < 200 else 0.35}
    show.plot(kind="actual_vs_predicted", ax=figure.subplots(), scatter_kwargs=points, line_kwargs=DASHED)
    show.ax_.set_aspect("equal", adjustable="datalim")
    for axis in (show.ax_.xaxis, show.ax_.yaxis):  # the class sets ticks at odd numbers
        axis.set_major_locator(MaxNLocator(6))
    show.ax_.set(xlabel=f"predicted {literal(name)}", ylabel=f"true {literal(name)}")
    return figure


@styled
def survival(groups: Sequence[tuple[NDArray[Any], NDArray[np.float64]]], times: ArrayLike) -> Figure:
    """Draw observed survival (Kaplan and Meier's estimate) of groups in steps, and predicted survival dashed.

    Args:
        groups: for each group the pair of durations and events, `survival.EVENT_TIME` [n], and mean predicted survival
            [T].
        times: ascending times [T] of the predicted survival, from 0; the last is the end of the axis.
    """
    figure, times = Figure(SQUARE), np.asarray(times, np.float64)
    axes = figure.subplots()
    for i, (truth, predicted) in enumerate(groups):
        colour, _ = style_of(i)
        steps = np.unique(np.append(truth["time"][truth["time"] <= times[-1]], (0.0, times[-1])))
        steps = steps[steps <= truth["time"].max()]
        observed = kaplan_meier(truth["time"], truth["event"], steps)
        axes.step(steps, observed, where="post", color=colour, label=f"observed, {len(truth):,}")
        axes.plot(times, predicted, "--", color=colour, label="" if i else "predicted")
    axes.set(ylim=(0, 1.02), xlim=(0, times[-1]), xlabel="time", ylabel="without the event")
    axes.legend(loc="best")
    return figure


# ── embeddings and losses ───────────────────────────────────────────────────────────────────────────────────────────


@styled
def early(scores: Mapping[str, Mapping[str, Mapping[str, float]]], first: str = "") -> Figure:
    """Draw scores of predictions made early: a panel per metric, a line per method, time spans in even steps.

    Args:
        scores: {metric: {method: {span: score}}}, spans as texts in their order.
        first: what the spans count from, such as "observation", for the axis; "" for nothing.
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
    """A part of a series: a title, times and values [n], and bool [n], which of the observations are odd."""

    title: str
    times: ArrayLike
    values: ArrayLike
    odd: ArrayLike


@styled
def excerpts(parts: Sequence[Excerpt], value: str) -> Figure:
    """Draw parts of series, at least one, in a panel each, with the odd observations marked.

    Args:
        value: what the values are, for the axis.
    """
    columns = min(3, len(parts))
    rows = -(-len(parts) // columns)
    figure = Figure((3.2 * columns, 2.2 * rows))
    panels = figure.subplots(rows, columns, squeeze=False)
    for spare in panels.flat[len(parts) :]:
        spare.set_visible(False)
    for axes, part in zip(panels.flat, parts):
        times, values, odd = (np.asarray(column) for column in part[1:])
        axes.plot(times, values, color=FAINT, linewidth=0.8, marker=".", markersize=3)
        axes.plot(times[odd], values[odd], "o", color=COLOURS[1], markerfacecolor="none", markersize=6)
        axes.set_title(literal(part.title), fontsize=8)
        if np.issubdtype(times.dtype, np.datetime64):
            _date_ticks(axes.xaxis)
    figure.supylabel(literal(value), fontsize=9)
    return figure


def project(embeddings: NDArray[Any], method: str, seed: int = 0) -> NDArray[np.float64]:
    """Project embeddings [S, D] to float64 [S, 2] for a map.

    Args:
        method: "PCA", which keeps distances best; any other word means t-SNE, which keeps neighbourhoods, of embeddings
            scaled column by column.
        seed: of t-SNE.
    """
    x = np.asarray(embeddings, np.float64)
    if method == "PCA":
        from sklearn.decomposition import PCA

        with np.errstate(invalid="ignore"):  # of points that are all the same, no share of the variance is explained
            return PCA(2, svd_solver="full").fit_transform(x)
    from sklearn.manifold import TSNE
    from sklearn.preprocessing import scale

    perplexity = min(30.0, (len(x) - 1) / 3)
    return np.asarray(TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(scale(x)), float)


@styled
def embedding_map(
    points: NDArray[Any], labels: NDArray[Any] | None, names: Sequence[str] | None, method: str
) -> Figure:
    """Draw embedded series as points, coloured by class.

    Args:
        points: [S, 2].
        labels: int [S], indices into `names`; None, or no names, draws all points alike and without a legend.
        method: names the axes; "PCA" gives "PCA 1" and "PCA 2".
    """
    names = names if labels is not None and names is not None else [""]
    label = np.zeros(len(points), np.int64) if labels is None else labels
    figure = Figure((5.6, 5.0 + 0.12 * len(names)))
    axes, counts = figure.subplots(), np.bincount(label, minlength=len(names))
    size = float(np.clip(20000 / len(points), 10, 38))
    for i in np.argsort(-counts, kind="stable"):  # largest classes first, so that the rare ones stay on top
        colour, marker = style_of(int(i))
        look = {"alpha": 0.75, "linewidths": 0.3, "edgecolors": "white", "rasterized": len(points) > 1500}
        if counts[i]:
            axes.scatter(*points[label == i].T, s=size, c=colour, marker=marker, **look)
    axes.set(xlabel=f"{method} 1", ylabel=f"{method} 2")
    if len(names) > 1:
        styles = map(style_of, range(len(names)))
        handles = [Line2D([], [], linestyle="", marker=marker, color=colour, markersize=6) for colour, marker in styles]
        legend_below(figure, list(zip(handles, [f"{literal(name)} ({n:,})" for name, n in zip(names, counts)])))
    return figure


@styled
def learning_curves(curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], title: str) -> Figure:
    """Draw the losses of one training.

    The curve "validation" is drawn strong, with its lowest point marked. The axis of losses is logarithmic where all
    are positive and span more than a factor of ten.

    Args:
        curves: {name: (epochs [n], losses [n])}.
    """
    figure = Figure((5.2, 3.7))
    axes, entries = figure.subplots(), []
    for i, (name, (epochs, losses)) in enumerate(curves.items()):
        x, y = np.asarray(epochs), np.asarray(losses)
        width, dot = 1.8 if name == "validation" else 1.3, "o" if len(x) == 1 else ""
        entries.append((axes.plot(x, y, color=COLOURS[i], linewidth=width, marker=dot)[0], name))
        if name == "validation" and np.isfinite(y).any():
            best = int(np.nanargmin(y))
            mark = axes.plot(x[best], y[best], "o", color=COLOURS[i], markersize=6)[0]
            entries.append((mark, f"lowest: {y[best]:.4g}"))
    together = np.concatenate([np.asarray(losses)[np.isfinite(losses)] for _, losses in curves.values()])
    if together.size and together.min() > 0 and together.max() > 10 * together.min():
        axes.set_yscale("log")
    axes.xaxis.set_major_locator(MaxNLocator(7, integer=True))
    axes.set(xlabel="epoch", ylabel="loss", title=title)
    legend_below(figure, entries)
    return figure
