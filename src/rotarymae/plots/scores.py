"""How good predictions are: confusion matrix, ROC and precision-recall curves, reliability, regression, bands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter
from numpy.typing import ArrayLike, NDArray

from rotarymae.errors import InputError
from rotarymae.plots.style import COLOURS, DASHED, FAINT, INK, blank, plain, same_length, style_axes, vector

SQUARE = (4.6, 4.4)  # inches


def confusion(counts: ArrayLike, names: Sequence[str], *, axes: Axes | None = None) -> Axes:
    """Row-normalised confusion matrix from counts [classes, classes]: rows are the truth, columns the prediction.

    Cells carry their share of the row in per cent; a row's label carries its number of objects.
    """
    table = np.asarray(counts, np.float64)
    names = [plain(name) for name in names]
    k = len(names)
    if table.shape != (k, k) or k == 0:
        raise InputError(f"counts has shape {table.shape}; wanted [{k}, {k}] for {k} class names.")
    if not np.isfinite(table).all() or (table < 0).any():
        raise InputError("counts must be numbers of objects: finite and not negative.")
    totals = table.sum(1)
    share = np.divide(table, totals[:, None], out=np.zeros_like(table), where=totals[:, None] > 0)
    size = float(np.clip(0.5 * k, 2.6, 14))
    axes = axes or blank(size + 2.2, size + 1.3).subplots()
    axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
    style_axes(axes, "predicted class (cells: % of the true class)", "true class (number of objects)")
    axes.set_xticks(np.arange(k), names, rotation=45, ha="right", rotation_mode="anchor")
    axes.set_yticks(np.arange(k), [f"{name}  ({int(total):,})" for name, total in zip(names, totals)])
    axes.grid(False)
    axes.set_xticks(np.arange(k - 1) + 0.5, minor=True)
    axes.set_yticks(np.arange(k - 1) + 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.2)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(False)
    if k <= 30:
        _percentages(axes, share)
    return axes


def _percentages(axes: Axes, share: NDArray[np.float64]) -> None:
    for i, j in zip(*np.nonzero(share)):
        text = "<1" if share[i, j] < 0.005 else f"{100 * share[i, j]:.0f}"
        weight, colour = "bold" if i == j else "normal", "white" if share[i, j] > 0.55 else INK
        axes.text(j, i, text, ha="center", va="center", fontsize=8.5, fontweight=weight, color=colour)


def roc(positive: ArrayLike, scores: ArrayLike, *, name: str = "", axes: Axes | None = None) -> Axes:
    """Receiver operating characteristic: positive bool [n], scores [n], the larger the more likely positive.

    Raises:
        InputError: shapes that differ; only one of the two classes.
    """
    from sklearn.metrics import roc_auc_score, roc_curve

    truth, score = _two_classes(positive, scores)
    false_positive, true_positive, _ = roc_curve(truth, score)
    axes = _unit_square(axes, "false positive rate", f"true positive rate{_of(name)}")
    axes.plot([0, 1], [0, 1], label="chance", **DASHED)
    label = f"model (area {roc_auc_score(truth, score):.3f})"
    axes.plot(false_positive, true_positive, color=COLOURS[0], linewidth=1.6, label=label)
    _legend(axes, "lower right")
    return axes


def precision_recall(positive: ArrayLike, scores: ArrayLike, *, name: str = "", axes: Axes | None = None) -> Axes:
    """Precision against recall, over all thresholds; arguments and errors as `roc`."""
    from sklearn.metrics import average_precision_score, precision_recall_curve

    truth, score = _two_classes(positive, scores)
    precision, recall, _ = precision_recall_curve(truth, score)
    axes = _unit_square(axes, f"recall{_of(name)}", "precision")
    axes.axhline(truth.mean(), label=f"chance ({truth.mean():.3f})", **DASHED)
    label = f"model (average precision {average_precision_score(truth, score):.3f})"
    axes.plot(recall, precision, color=COLOURS[0], linewidth=1.6, drawstyle="steps-post", label=label)
    _legend(axes, "lower left")
    return axes


def reliability(correct: ArrayLike, confidence: ArrayLike, *, axes: Axes | None = None) -> Axes:
    """Share of correct verdicts against the probability that the model gave them: bool [n] and [n].

    Verdicts are sorted by confidence into at most ten bins of equal number.
    """
    from sklearn.calibration import calibration_curve

    truth, probability = np.asarray(correct, bool), vector("confidence", confidence)
    same_length("correct", truth, len(probability))
    if not len(truth) or not ((probability >= 0) & (probability <= 1)).all():
        raise InputError("reliability needs at least one verdict, and probabilities between 0 and 1.")
    bins = int(np.clip(len(truth) // 10, 1, 10))
    share, mean = calibration_curve(truth, probability, n_bins=bins, strategy="quantile")
    axes = _unit_square(axes, "probability given to the predicted class", "share that is right")
    return _promise(axes, mean, share, "too cautious", "too sure")


def calibration(nominal: ArrayLike, observed: ArrayLike, *, axes: Axes | None = None) -> Axes:
    """Share of hidden points inside a band (observed [L]) against the share it promises (nominal [L]), both 0..1."""
    x, y = vector("nominal", nominal), vector("observed", observed)
    same_length("observed", y, len(x))
    order = np.argsort(x)
    axes = _unit_square(axes, "the band's promise", "hidden points inside the band")
    return _promise(axes, x[order], y[order], "bands too wide", "bands too narrow")


def _promise(axes: Axes, promised: ArrayLike, kept: ArrayLike, above: str, below: str) -> Axes:
    """What was observed against what was promised, and what it means to lie above the line and below it."""
    axes.plot([0, 1], [0, 1], label="as promised", **DASHED)
    axes.plot(promised, kept, "o-", color=COLOURS[0], linewidth=1.6, label="observed")
    axes.text(0.04, 0.93, above, fontsize=9, color=FAINT, transform=axes.transAxes)
    axes.text(0.96, 0.3, below, fontsize=9, color=FAINT, transform=axes.transAxes, ha="right")
    _legend(axes, "lower right")
    return axes


def regression(truth: ArrayLike, predicted: ArrayLike, *, name: str = "label", axes: Axes | None = None) -> Axes:
    """Predicted against true values, both [n]; on the dashed line they agree."""
    x, y = vector("truth", truth), vector("predicted", predicted)
    same_length("predicted", y, len(x))
    both = np.concatenate([x, y])
    both = both[np.isfinite(both)]
    if not both.size:
        raise InputError("regression needs at least one finite value.")
    low, high = float(both.min()), float(both.max())
    margin = 0.05 * (high - low) or 1.0
    axes = axes or blank(*SQUARE).subplots()
    line = [low - margin, high + margin]
    axes.plot(line, line, label="agreement", **DASHED)
    axes.plot(x, y, "o", color=COLOURS[0], markersize=4.6, alpha=0.8 if len(x) < 200 else 0.35)
    axes.set(xlim=line, ylim=line, aspect="equal")
    style_axes(axes, f"true {plain(name)}", f"predicted {plain(name)}")
    _legend(axes, "upper left")
    return axes


def _two_classes(positive: ArrayLike, scores: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    truth, score = np.asarray(positive, bool), vector("scores", scores)
    same_length("positive", truth, len(score))
    if truth.all() or not truth.any():
        raise InputError("both classes are needed; all series are of one.")
    return truth, score


def _of(name: str) -> str:
    return f" of {plain(name)}" if name else ""


def _unit_square(axes: Axes | None, x_label: str, y_label: str) -> Axes:
    axes = axes or blank(*SQUARE).subplots()
    axes.set(xlim=(0, 1), ylim=(0, 1.02), aspect="equal")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(PercentFormatter(1, symbol=" %"))
    style_axes(axes, x_label, y_label)
    return axes


def _legend(axes: Axes, corner: Literal["upper left", "lower left", "lower right"]) -> None:
    axes.legend(loc=corner, frameon=False, fontsize=9, labelcolor=INK)
