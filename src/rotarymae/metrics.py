"""Metrics: their names in metrics.json, how they are computed, and how people read them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import config_context, metrics

from rotarymae.partners import TASKS, TITLES
from rotarymae.partners.decide import decide
from rotarymae.survival import concordance, integrated_brier_score, kaplan_meier

if TYPE_CHECKING:
    from rotarymae.survival import EventTimes

RMSE, SCALED_RMSE, MEDIAN_ERROR = "root_mean_squared_error", "root_mean_squared_error_scaled", "median_absolute_error"
COVERAGE, WIDTH = "interval90_coverage", "interval90_width"
CALIBRATION_ERROR = "expected_calibration_error"
CONCORDANCE, BRIER, SURVIVAL_ERROR = "concordance", "integrated_brier_score", "survival_calibration_error"
OUTPUT = "_output_"  # between a metric's name and the number of an output, where there are several
EARLY_SHOWN = (
    "auroc",
    "macro_f1",
    "log_loss",
    RMSE,
    COVERAGE,
    CONCORDANCE,
)  # of early answers, in the table and the picture
RESAMPLES = 200  # of the scored series, for intervals; of many series fewer, whose metrics take long and vary little
MIN_RESAMPLES, MAX_SERIES_IN_RESAMPLES = 40, 1_000_000


@dataclass(frozen=True)
class Metric:
    """The description of a metric.

    Attributes:
        words: its name for people.
        lower_is_better: whether smaller values are better; None if neither end is best.
    """

    words: str
    lower_is_better: bool | None = False


METRICS = {
    "accuracy": Metric("accuracy"),
    "macro_f1": Metric("macro-F1"),
    "rare_f1": Metric("F1 of the rarest class"),
    "rare_average_precision": Metric("average precision of the rarest class"),
    "log_loss": Metric("log-loss", True),
    CALIBRATION_ERROR: Metric("expected calibration error", True),
    "auroc": Metric("AUROC"),
    "macro_auroc": Metric("macro AUROC"),
    "average_precision": Metric("average precision"),
    "macro_average_precision": Metric("macro average precision"),
    "brier_score": Metric("Brier score", True),
    RMSE: Metric("RMSE", True),
    "mean_absolute_error": Metric("MAE", True),
    "r2": Metric("R²"),
    COVERAGE: Metric("share inside 90 % interval", None),
    WIDTH: Metric("width of 90 % interval", True),
    CONCORDANCE: Metric("concordance"),
    BRIER: Metric("integrated Brier score", True),
    SURVIVAL_ERROR: Metric("calibration error of survival", True),
    SCALED_RMSE: Metric("RMSE, scaled", True),
    MEDIAN_ERROR: Metric("median absolute error", True),
}


def metric_of(name: str) -> Metric:
    """Return the description of a metric by its name in metrics.json.

    A name that ends in "_output_NUMBER" gives words that end in "of output NUMBER". Raises KeyError for an unknown
    name.
    """
    metric, _, output = name.partition(OUTPUT)
    base = METRICS[metric]
    return Metric(f"{base.words} of output {output}", base.lower_is_better) if output else base


def method_words(name: str) -> str:
    """Return the words for a method by its name in metrics.json, such as "gradient boosting" for "features".

    For an unknown name it is the name with spaces instead of underscores.
    """
    return TITLES.get(name, name.replace("_", " "))


def rows_in_words(methods: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Return {method: {metric: value}} with the names of metrics.json replaced by words for people; the order stays."""
    return {
        method_words(method): {metric_of(name).words: value for name, value in row.items()}
        for method, row in methods.items()
    }


def rarest_class(truth: np.ndarray) -> int:
    """Return the number of the class with the fewest series, of the classes that occur; with equal counts, the last.

    `truth` are class numbers, int [S].
    """
    counts = np.bincount(truth)
    return int(np.flatnonzero(counts == counts[counts > 0].min())[-1])


def classification_metrics(
    truth: np.ndarray, probabilities: np.ndarray, weights: Sequence[float] | np.ndarray = (), rare: int | None = None
) -> dict[str, float]:
    """Return {metric: value} for probabilities [S, classes] and true classes int [S], by the names in `METRICS`.

    Always there are "accuracy", "macro_f1", "log_loss" and "expected_calibration_error", and "rare_f1" and
    "rare_average_precision" of the rarest class. With two classes "auroc", "average_precision" and "brier_score" are
    those of the second class. With more, "macro_auroc" and "macro_average_precision" are means over the classes that
    occur, each against the rest. Areas and average precisions are NaN if only one class occurs.

    Args:
        truth: class numbers int [S] from 0.
        probabilities: [S, classes].
        weights: factors [classes] or [S, classes] of the probabilities before the largest decides the class, for
            accuracy and F1; () means equal ones.
        rare: number of the rarest class; None computes it from `truth`.
    """
    best, classes = decide(probabilities, weights), probabilities.shape[1]
    rare = rarest_class(truth) if rare is None else rare
    scores = {
        "accuracy": float(metrics.accuracy_score(truth, best)),
        "macro_f1": float(metrics.f1_score(truth, best, average="macro")),
        "rare_f1": float(metrics.f1_score(truth == rare, best == rare, zero_division=0.0)),  # pyright: ignore
        "log_loss": float(metrics.log_loss(truth, probabilities, labels=np.arange(classes))),
        CALIBRATION_ERROR: expected_calibration_error(truth, probabilities),
    }
    compared = [1] if classes == 2 else range(classes)
    compared = [c for c in compared if 0 < (truth == c).sum() < len(truth)]
    macro = "" if classes == 2 else "macro_"

    def mean(metric: Callable[..., Any]) -> float:
        """Return the mean over the compared classes of `metric(is it this one, its probability)`; NaN without any."""
        return float(np.mean([metric(truth == c, probabilities[:, c]) for c in compared])) if compared else np.nan

    scores[f"{macro}auroc"] = mean(auroc)
    scores[f"{macro}average_precision"] = mean(average_precision)
    known = 0 < (truth == rare).sum() < len(truth)
    scores["rare_average_precision"] = average_precision(truth == rare, probabilities[:, rare]) if known else np.nan
    if classes == 2:
        scores["brier_score"] = float(metrics.brier_score_loss(truth == 1, probabilities[:, 1]))
    return scores


def auroc(positive: np.ndarray, scores: np.ndarray) -> float:
    """Return the area under the ROC curve, as scikit-learn's function would, in a hundredth of its time.

    Args:
        positive: bool [S], True for the class sought; both values must occur.
        scores: [S], larger for likelier ones.
    """
    below, others = scores[positive], np.sort(scores[~positive])
    places = np.searchsorted(others, below, "left") + np.searchsorted(others, below, "right")
    return float(places.mean() / (2 * len(others)))


def average_precision(positive: np.ndarray, scores: np.ndarray) -> float:
    """Return the average precision of scores, as scikit-learn's function of that name would, in less time.

    Args:
        positive: bool [S], True for the class sought, at least once.
        scores: [S], larger for likelier ones.
    """
    order = np.argsort(-scores, kind="stable")
    hits, last = np.cumsum(positive[order]), np.append(np.diff(scores[order]) != 0, True)
    return float((np.diff(hits[last], prepend=0) * hits[last] / (np.flatnonzero(last) + 1)).sum() / hits[-1])


def expected_calibration_error(truth: np.ndarray, probabilities: np.ndarray, bins: int = 15) -> float:
    """Return the mean distance between confidence and accuracy over bins of the confidence, weighted by their series.

    Args:
        truth: class numbers int [S].
        probabilities: [S, classes]; the largest is the confidence, and right if it is that of the true class.
        bins: number of bins, of equal width from 0 to 1.
    """
    sure, right = probabilities.max(1), probabilities.argmax(1) == truth
    bin_of = np.minimum((sure * bins).astype(int), bins - 1)
    away = np.bincount(bin_of, right - sure, minlength=bins)
    return round(float(np.abs(away).sum() / len(truth)), 12)  # what sums leave behind, such as 3e-17, is 0


def regression_metrics(truth: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Return {metric: value} for predictions: RMSE and mean absolute error in the output's unit, and R².

    With several outputs the metrics of each have names that end in "_output_" and its number, from 0. A metric without
    values, and R² of a single one, is NaN.

    Args:
        truth: [S, outputs]; NaN is left out.
        predicted: [S, outputs].
    """
    scores = {}
    for i in range(truth.shape[1]):
        known = np.isfinite(truth[:, i])
        expected, guess = truth[known, i], predicted[known, i]
        of = "" if truth.shape[1] == 1 else f"{OUTPUT}{i}"
        away = guess - expected
        scores[f"{RMSE}{of}"] = float(np.sqrt(np.mean(away**2))) if known.any() else np.nan
        scores[f"mean_absolute_error{of}"] = float(np.abs(away).mean()) if known.any() else np.nan
        scores[f"r2{of}"] = float(metrics.r2_score(expected, guess)) if known.sum() > 1 else np.nan
    return scores


def interval_metrics(truth: np.ndarray, predicted: np.ndarray, half_widths: np.ndarray | None) -> dict[str, float]:
    """Return {metric: value}: the share of true values inside prediction ± half width, and the mean full width.

    With several outputs the metrics of each have names that end in "_output_" and its number, from 0. Without values
    they are NaN.

    Args:
        truth, predicted: [S, outputs]; NaN in `truth` is left out.
        half_widths: half the width of 90 % intervals, [outputs] or [S, outputs]; None returns {}.
    """
    if half_widths is None:
        return {}
    half, scores = np.broadcast_to(half_widths, truth.shape), {}
    for i in range(truth.shape[1]):
        known = np.isfinite(truth[:, i])
        of = "" if truth.shape[1] == 1 else f"{OUTPUT}{i}"
        inside = np.abs(truth[known, i] - predicted[known, i]) <= half[known, i]
        scores[f"{COVERAGE}{of}"] = float(inside.mean()) if known.any() else np.nan
        scores[f"{WIDTH}{of}"] = float(2 * half[known, i].mean()) if known.any() else np.nan
    return scores


def survival_metrics(truth: np.ndarray, probabilities: np.ndarray, labels: EventTimes) -> dict[str, float]:
    """Return {metric: value} of survival predictions: concordance, Brier score and calibration error.

    Concordance is Harrell's, by the expected time. The Brier score is the mean over the time between the first and the
    last inner edge of the intervals that is before the longest duration; NaN if there is no such edge. The calibration
    error is the mean absolute difference between the mean predicted survival at `labels.times` and Kaplan and Meier's
    estimate, in at most five groups of series with similar expected times, over series and times up to a group's
    longest duration; NaN without such a time.

    Args:
        truth: durations and events, a structured array [S] with the fields "time" and "event".
        probabilities: [S, K + 1] of the K intervals and of "after them".
        labels: the fitted intervals, whose edges are times.
    """
    time, event, expected = truth["time"], truth["event"], labels.predicted(probabilities)
    inner = np.array(labels.edges[1:-1] or labels.edges[1:])
    at = inner[inner < time.max()]
    survival, predicted = labels.survival(probabilities, at), labels.survival(probabilities, labels.times)
    away, weights = [], []
    for rows in like_groups(expected, 5):
        followed = labels.times <= time[rows].max()  # later nobody knows
        seen = kaplan_meier(time[rows], event[rows], labels.times)
        away.append(np.abs(seen - predicted[rows].mean(0))[followed])
        weights.append(np.full(followed.sum(), len(rows)))
    weight = np.concatenate(weights)
    return {
        CONCORDANCE: concordance(time, event, expected),
        BRIER: integrated_brier_score(time, event, survival, at) if len(at) else np.nan,
        SURVIVAL_ERROR: float(np.concatenate(away) @ weight / weight.sum()) if weight.sum() else np.nan,
    }


def like_groups(expected: np.ndarray, groups: int) -> list[np.ndarray]:
    """Divide S rows into at most `groups` groups of about equal size and similar numbers; return their row indices.

    Each group has 20 rows or more; fewer than 40 rows are one group. Groups, and rows in each, are by ascending
    `expected` [S].
    """
    return np.array_split(np.argsort(expected, kind="stable"), max(1, min(groups, len(expected) // 20)))


def intervals(method: str, measure: Callable[..., dict[str, float]], truth: Any, predicted: Any) -> dict[str, Any]:
    """Return 95 % bootstrap intervals of a method's metrics, over resampled series, as metrics.json has them.

    Args:
        method: name of the method.
        measure: called with (truth, predicted) of resampled series; returns {metric: value}.
        truth: targets of the series, their first axis.
        predicted: the method's predictions of the same series, their first axis.

    Returns:
        {"method": name, "share": 0.95, "metrics": {metric: [low, high]}}, without calibration errors, whose resamples
        are biased, and without metrics that are never finite. The same on each call.
    """
    draw, resampled = np.random.default_rng(0), []
    with warnings.catch_warnings(), config_context(skip_parameter_validation=True, assume_finite=True):
        warnings.simplefilter("ignore")  # a resample may lack a class
        for _ in range(max(MIN_RESAMPLES, min(RESAMPLES, MAX_SERIES_IN_RESAMPLES // len(truth)))):
            rows = draw.integers(len(truth), size=len(truth))
            resampled.append(measure(truth[rows], predicted[rows]))
    every = {name: np.array([one[name] for one in resampled]) for name in resampled[0]}
    # Resampling makes calibration look worse: its interval would not hold the 0 of honest probabilities.
    judged = [name for name in every if name not in (CALIBRATION_ERROR, SURVIVAL_ERROR)]
    known = {name: every[name][np.isfinite(every[name])] for name in judged}
    middle = {name: np.quantile(column, (0.025, 0.975)).tolist() for name, column in known.items() if len(column)}
    return {"method": method, "share": 0.95, "metrics": middle}


def interval_words(content: Mapping[str, Any]) -> str:
    """Return a sentence with the bootstrap intervals of the metrics, or their spread over folds; "" without either.

    `content` is that of a metrics.json; the method is the one that predicts.
    """
    if "folds" in content:
        chosen = content["predictor"]["chosen"]
        spreads = [f"{metric} {text}" for metric, text in fold_rows(content)[method_words(chosen)].items()]
        return f"Mean and standard deviation over folds of {method_words(chosen)!r}: {', '.join(spreads)}."
    spread = content.get("intervals")
    if spread is None:
        return ""
    spans = [f"{metric_of(name).words} {low:.3g} to {high:.3g}" for name, (low, high) in spread["metrics"].items()]
    return (
        f"{100 * spread['share']:.0f} % intervals of {method_words(spread['method'])!r}, from resampling the series: "
        f"{', '.join(spans)}."
    )


def fold_rows(content: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return {method: {metric: text}}, named in words, with "mean ± standard deviation" over folds as texts.

    `content` is the metrics.json of a cross-validation, with "folds".
    """
    return {
        method_words(method): {
            metric_of(name).words: f"{spread['mean']:.3g} ± {spread['std']:.2g}" for name, spread in row.items()
        }
        for method, row in content["folds"].items()
    }


def early_rows(content: Mapping[str, Any]) -> dict[str, dict[str, dict[str, float]]]:
    """Return {metric: {method: {time span: score}}}, named in words, for predictions of series that were cut off early.

    Args:
        content: content of a metrics.json with "early".

    Returns:
        Scores of the metrics in `EARLY_SHOWN` that the task has. The spans are those of the evaluation with a "+", such
        as "+10d", and last "whole", for whole series.
    """
    task = next(task for task in TASKS if task in content)
    each = {f"+{span}": scores for span, scores in content["early"]["at"].items()} | {"whole": content[task]}
    shown = [name for name in EARLY_SHOWN if name in content[task]["model"]]
    return {
        metric_of(name).words: {
            method_words(method): {span: scores[method][name] for span, scores in each.items()}
            for method, row in content[task].items()
            if name in row
        }
        for name in shown
    }


def scored_words(content: Mapping[str, Any]) -> str:
    """Return the words for the series that a run is scored on, such as "held-out series" or "the training series, ...".

    They begin with "250 of the" or the like if only a sample was scored. `content` is that of a metrics.json.
    """
    noun, counts = content["noun"], content["series"]
    some = f"{content['sample']['scored']:,} of the " if "sample" in content else ""
    return (
        some
        + {
            "test": f"held-out {noun}",
            "validation": f"{'' if some else 'the '}validation {noun}, which chose the epoch",
            "train": f"{'' if some else 'the '}training {noun}",
            "folds": f"{counts.get('labelled', 0):,} {noun}, each by a model of the folds that it is not in",
            "labelled": f"{counts.get('labelled', 0):,} of {sum(counts.values()):,} {noun}",
        }[content["scored_on"]]
    )


def sample_words(content: Mapping[str, Any]) -> str:
    """Return a sentence, without a full stop, on how many series a run has answered when there was no time for all.

    `content` is that of a metrics.json with "sample".
    """
    sample, noun = content["sample"], content["noun"]
    words = (
        f"{sample['series']:,} of {sum(content['series'].values()):,} {noun}, drawn at random, are answered and "
        f"scored ({sample['scored']:,}), as the minutes allow no more"
    )
    if sample["stretch"] is not None:
        words += f"; of longer ones a stretch of {sample['stretch']:,} observations"
    return words
