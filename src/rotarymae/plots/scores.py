"""How good predictions are: confusion matrix, ROC and precision-recall curves, reliability, regression, bands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray
from sklearn.calibration import calibration_curve
from sklearn.metrics import ConfusionMatrixDisplay, PrecisionRecallDisplay, PredictionErrorDisplay, RocCurveDisplay

from rotarymae.errors import InputError
from rotarymae.plots.style import COLOURS, DASHED, FAINT, INK, empty_figure, plain, same_length, style_axes, vector

SQUARE = (4.6, 4.4)  # inches
LINE = {"color": COLOURS[0], "linewidth": 1.6, "linestyle": "-"}


def confusion(counts: ArrayLike, names: Sequence[str], *, axes: Axes | None = None) -> Axes:
    """Draw counts [classes, classes] as shares of each row in per cent: rows are the truth, columns the prediction.

    A row's label carries its number of objects.
    """
    table = np.asarray(counts, np.float64)
    names = [plain(name) for name in names]
    k = len(names)
    if table.shape != (k, k) or k == 0:
        raise InputError(f"counts has shape {table.shape}; wanted [{k}, {k}] for {k} class names.")
    if not np.isfinite(table).all() or (table < 0).any():
        raise InputError("counts must be numbers of objects: finite and not negative.")
    totals = table.sum(1)
    percent = 100 * np.divide(table, totals[:, None], out=np.zeros_like(table), where=totals[:, None] > 0)
    size = float(np.clip(0.5 * k, 2.6, 14))
    axes = axes or empty_figure(size + 2.2, size + 1.3).subplots()
    look = {"cmap": "Blues", "im_kw": {"vmin": 0, "vmax": 100}, "text_kw": {"fontsize": 8.5}}
    show = ConfusionMatrixDisplay(percent, display_labels=names)
    show.plot(include_values=k <= 30, values_format=".0f", colorbar=False, ax=axes, **look)
    style_axes(axes, "predicted class (cells: % of the true class)", "true class (number of objects)")
    axes.set_xticks(np.arange(k), names, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(np.arange(k), [f"{name}  ({int(total):,})" for name, total in zip(names, totals)])
    axes.grid(False)
    return axes


def roc(positive: ArrayLike, scores: ArrayLike, *, name: str = "", axes: Axes | None = None) -> Axes:
    """Draw the receiver operating characteristic of `positive` bool [n] by `scores` [n], larger for likelier ones.

    Raises:
        InputError: shapes that differ; only one of the two classes.
    """
    truth, score = _two_classes(positive, scores)
    axes = axes or empty_figure(*SQUARE).subplots()
    RocCurveDisplay.from_predictions(truth, score, name="model", ax=axes, plot_chance_level=True)
    return _finish(axes, "false positive rate", f"true positive rate{_of(name)}", "lower right")


def precision_recall(positive: ArrayLike, scores: ArrayLike, *, name: str = "", axes: Axes | None = None) -> Axes:
    """Draw precision against recall, over all thresholds; arguments and errors as `roc`."""
    truth, score = _two_classes(positive, scores)
    axes = axes or empty_figure(*SQUARE).subplots()
    PrecisionRecallDisplay.from_predictions(truth, score, name="model", ax=axes, plot_chance_level=True)
    return _finish(axes, f"recall{_of(name)}", "precision", "lower left")


def reliability(correct: ArrayLike, confidence: ArrayLike, *, axes: Axes | None = None) -> Axes:
    """Draw the share of correct predictions bool [n] against the probability [n] that the model gave them.

    Predictions are sorted by confidence into at most ten bins of equal number.
    """
    truth, probability = np.asarray(correct, bool), vector("confidence", confidence)
    same_length("correct", truth, len(probability))
    if not len(truth) or not ((probability >= 0) & (probability <= 1)).all():
        raise InputError("reliability needs at least one prediction, and probabilities between 0 and 1.")
    bins = int(np.clip(len(truth) // 10, 1, 10))
    share, mean = calibration_curve(truth, probability, n_bins=bins, strategy="quantile")
    return _promise(axes, mean, share, "probability given to the predicted class", "share that is right")


def calibration(nominal: ArrayLike, observed: ArrayLike, *, axes: Axes | None = None) -> Axes:
    """Draw the share of hidden points inside a band (observed [L]) against the nominal share [L], both 0 to 1."""
    x, y = vector("nominal", nominal), vector("observed", observed)
    same_length("observed", y, len(x))
    order = np.argsort(x)
    return _promise(axes, x[order], y[order], "nominal share of the band", "hidden points inside the band")


def _promise(
    axes: Axes | None, promised: NDArray[np.float64], kept: NDArray[np.float64], x_label: str, y_label: str
) -> Axes:
    axes = axes or empty_figure(*SQUARE).subplots()
    axes.plot(promised, kept, "o", label="observed")
    axes.plot([0, 1], [0, 1], label="as promised")
    axes.set(xlim=(0, 1), ylim=(0, 1.02), aspect="equal")
    for at, where, words in ((0.04, "left", "too cautious"), (0.96, "right", "too sure")):
        axes.text(at, 0.93 if at < 0.5 else 0.3, words, fontsize=9, color=FAINT, transform=axes.transAxes, ha=where)
    return _finish(axes, x_label, y_label, "lower right")


def regression(truth: ArrayLike, predicted: ArrayLike, *, name: str = "label", axes: Axes | None = None) -> Axes:
    """Draw predicted against true values, both [n]; they agree on the dashed line."""
    x, y = vector("truth", truth), vector("predicted", predicted)
    same_length("predicted", y, len(x))
    both = np.isfinite(x) & np.isfinite(y)
    if not both.any():
        raise InputError("regression needs at least one finite value.")
    axes = axes or empty_figure(*SQUARE).subplots()
    show = PredictionErrorDisplay(y_true=x[both], y_pred=y[both])
    points = {"color": COLOURS[0], "s": 21, "alpha": 0.8 if len(x) < 200 else 0.35}
    show.plot(kind="actual_vs_predicted", ax=axes, scatter_kwargs=points, line_kwargs=DASHED)
    axes.set_aspect("equal", adjustable="datalim")
    for axis in (axes.xaxis, axes.yaxis):  # the class sets ticks at odd numbers
        axis.set_major_locator(MaxNLocator(6))
    style_axes(axes, f"predicted {plain(name)}", f"true {plain(name)}")
    return axes


def _two_classes(positive: ArrayLike, scores: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    truth, score = np.asarray(positive, bool), vector("scores", scores)
    same_length("positive", truth, len(score))
    if truth.all() or not truth.any():
        raise InputError("both classes are needed; all series are of one.")
    return truth, score


def _of(name: str) -> str:
    return f" of {plain(name)}" if name else ""


def _finish(axes: Axes, x_label: str, y_label: str, corner: str) -> Axes:
    """Style the last two lines, a curve and what it is compared with, and label the axes."""
    curve, reference = axes.lines[-2:]
    curve.set(**LINE)
    reference.set(**DASHED)
    style_axes(axes, x_label, y_label)
    axes.legend(loc=corner, frameon=False, fontsize=9, labelcolor=INK)  # pyright: ignore
    return axes
