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
CALIBRATION_ERROR, CALIBRATION_BINS = "expected_calibration_error", 15
CONCORDANCE, BRIER, SURVIVAL_ERROR = "concordance", "integrated_brier_score", "survival_calibration_error"
OUTPUT = "_output_"  # between a metric's name and the number of an output, where there are several
# Of early answers, in the table and the picture.
EARLY_SHOWN = ("auroc", "macro_f1", "log_loss", RMSE, COVERAGE, CONCORDANCE)
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

    For "NAME_output_2" it is that of NAME, with "of output 2" added to its words. Raises KeyError for an unknown name.
    """
    metric, _, output = name.partition(OUTPUT)
    base = METRICS[metric]
    return Metric(f"{base.words} of output {output}", base.lower_is_better) if output else base


def method_words(name: str) -> str:
    """Return a method's name for people, given its name in metrics.json: "features" → "gradient boosting".

    For an unknown name it is the name with spaces instead of underscores.
    """
    return TITLES.get(name, name.replace("_", " "))


def rows_in_words(methods: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Replace the names of metrics.json by words for people in {method: {metric: value}}; the order stays."""
    return {
        method_words(method): {metric_of(name).words: value for name, value in row.items()}
        for method, row in methods.items()
    }


def rarest_class(truth: np.ndarray) -> int:
    """Return the number of the class with the fewest series, at least one; of classes with equal counts, the last.

    `truth` has a class number for each series, int [S].
    """
    counts = np.bincount(truth)
    return int(np.flatnonzero(counts == counts[counts > 0].min())[-1])


def classification_metrics(
    truth: np.ndarray, probabilities: np.ndarray, weights: Sequence[float] | np.ndarray = (), rare: int | None = None
) -> dict[str, float]:
    """Score a classification of S series: return {metric: value}, by the names in `METRICS`.

    There are always "accuracy", "macro_f1" (the mean over classes that occur or are decided), "log_loss" (nats),
    "expected_calibration_error", and "rare_f1" and "rare_average_precision" of the rarest class. With two classes there
    are "auroc", "average_precision" and "brier_score" of the second class; with more, "macro_auroc" and
    "macro_average_precision": means over the classes that occur, each against the rest. "auroc" and average precisions
    are NaN if only one class occurs; "rare_average_precision" also if the rarest class does not.

    Args:
        truth: class numbers int [S] from 0.
        probabilities: [S, classes].
        weights: factors [classes] or [S, classes] by which probabilities are multiplied before the largest decides the
            class, for accuracy and F1; () for none.
        rare: number of the rarest class; None takes the rarest in `truth`.
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
        """Return the mean of a metric over the compared classes; NaN if there are none.

        `metric` is called for each class with (bool [S], True for series of the class; its probabilities [S]).
        """
        return float(np.mean([metric(truth == c, probabilities[:, c]) for c in compared])) if compared else np.nan

    scores[f"{macro}auroc"] = mean(auroc)
    scores[f"{macro}average_precision"] = mean(average_precision)
    known = 0 < (truth == rare).sum() < len(truth)
    scores["rare_average_precision"] = average_precision(truth == rare, probabilities[:, rare]) if known else np.nan
    if classes == 2:
        scores["brier_score"] = float(metrics.brier_score_loss(truth == 1, probabilities[:, 1]))
    return scores


def auroc(positive: np.ndarray, scores: np.ndarray) -> float:
    """Return the area under the ROC curve, equal to scikit-learn's `roc_auc_score`, in a hundredth of its time.

    Args:
        positive: bool [S], True for the class sought; both values must occur.
        scores: [S], larger for likelier ones.
    """
    below, others = scores[positive], np.sort(scores[~positive])
    places = np.searchsorted(others, below, "left") + np.searchsorted(others, below, "right")
    return float(places.mean() / (2 * len(others)))


def average_precision(positive: np.ndarray, scores: np.ndarray) -> float:
    """Return the average precision of scores, equal to scikit-learn's `average_precision_score`, in less time.

    Args:
        positive: bool [S], True for the class sought, at least once.
        scores: [S], larger for likelier ones.
    """
    order = np.argsort(-scores, kind="stable")
    hits, last = np.cumsum(positive[order]), np.append(np.diff(scores[order]) != 0, True)
    return float((np.diff(hits[last], prepend=0) * hits[last] / (np.flatnonzero(last) + 1)).sum() / hits[-1])


def expected_calibration_error(truth: np.ndarray, probabilities: np.ndarray) -> float:
    """Return the expected calibration error: the mean distance between confidence and accuracy, from 0 to 1.

    The confidence is the largest probability of a series. Series are binned by it, in 15 bins of equal width from 0 to
    1; each bin's distance between mean confidence and accuracy counts by its number of series.

    Args:
        truth: class numbers int [S].
        probabilities: [S, classes]; the class of the largest one counts as predicted.
    """
    sure, right = probabilities.max(1), probabilities.argmax(1) == truth
    bin_of = np.minimum((sure * CALIBRATION_BINS).astype(int), CALIBRATION_BINS - 1)
    away = np.bincount(bin_of, right - sure, minlength=CALIBRATION_BINS)
    return round(float(np.abs(away).sum() / len(truth)), 12)  # what sums leave behind, such as 3e-17, is 0


def regression_metrics(truth: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Score a regression: return {metric: value} with "root_mean_squared_error", "mean_absolute_error" and "r2".

    Errors are in the unit of `truth`. With several outputs, each metric is given for each output instead, as
    "r2_output_0", "r2_output_1", ...; there is none over all outputs. Metrics of an output without true values, and R²
    with only one, are NaN. R² of true values that are all equal is 0, or 1 if all predictions are right.

    Args:
        truth: true values [S, outputs]; NaN and infinity are left out.
        predicted: predictions [S, outputs] in the same unit.
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
    """Score a regression's 90 % intervals, prediction ± half width: return {metric: value}, or {} without intervals.

    "interval90_coverage" is the share of true values inside, from 0 to 1, and "interval90_width" the mean full width.
    Several outputs have names as in `regression_metrics`. For an output without true values they are NaN.

    Args:
        truth, predicted: [S, outputs]; NaN in `truth` is left out.
        half_widths: half the width of the intervals, [outputs] or [S, outputs]; None without intervals.
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
    """Score predictions of the times to an event of S series: return {metric: value}, with three metrics.

    - "concordance": Harrell's, of the expected times; NaN if no two series can be compared.
    - "integrated_brier_score": mean over time, from the first to the last inner edge of the intervals. A single
      interval has no inner edge, so its end is used. Only edges before the longest duration count; NaN without any.
    - "survival_calibration_error": mean absolute difference between the mean predicted survival and Kaplan and Meier's
      estimate, at `labels.times`. It is taken in at most five groups of series with similar expected times, each up to
      its longest duration, and weighted by their sizes; NaN if there is no such time.

    Args:
        truth: durations and events, a structured array [S] with the fields "time" and "event".
        probabilities: [S, K + 1], the probabilities that the event falls in each of K intervals, or after the last.
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
    """Sort S rows by `expected` [S], ascending, and cut them into groups of about equal size; return their indices.

    The number of groups is `groups`, or less if a group would have fewer than 20 rows; at least one.
    """
    return np.array_split(np.argsort(expected, kind="stable"), max(1, min(groups, len(expected) // 20)))


def intervals(method: str, measure: Callable[..., dict[str, float]], truth: Any, predicted: Any) -> dict[str, Any]:
    """Return 95 % bootstrap intervals of a method's metrics, from resampling the series, as metrics.json holds them.

    Args:
        method: name of the method.
        measure: called with (truth, predicted) of resampled series; returns {metric: value}.
        truth: targets [S, ...] of S series.
        predicted: the method's predictions [S, ...] of the same series.

    Returns:
        {"method": name, "share": 0.95, "metrics": {metric: [low, high]}}, from the resamples in which a metric is
        finite. Left out are metrics that are finite in none, and calibration errors, because resampling enlarges them.
        Draws are seeded: equal arguments give equal intervals.
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
    """Return a sentence for people on how uncertain the metrics of the chosen method are; "" if that is not known.

    It gives the bootstrap intervals, or for a cross-validation mean and standard deviation over the folds.

    Args:
        content: content of a metrics.json.
    """
    if "folds" in content:
        chosen = content["predictor"]["chosen"]
        spreads = [f"{metric} {text}" for metric, text in fold_rows(content)[method_words(chosen)].items()]
        return f"Mean and standard deviation over folds of {method_words(chosen)!r}: {', '.join(spreads)}."
    spread = content.get("intervals", {"metrics": {}})
    if not spread["metrics"]:
        return ""
    spans = [f"{metric_of(name).words} {low:.3g} to {high:.3g}" for name, (low, high) in spread["metrics"].items()]
    return (
        f"{100 * spread['share']:.0f} % intervals of {method_words(spread['method'])!r}, from resampling the series: "
        f"{', '.join(spans)}."
    )


def fold_rows(content: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return {method: {metric: "MEAN ± STANDARD DEVIATION" over the folds}}, with both named in words for people.

    Args:
        content: content of a metrics.json of a cross-validation, with "folds".
    """
    return {
        method_words(method): {
            metric_of(name).words: f"{spread['mean']:.3g} ± {spread['std']:.2g}" for name, spread in row.items()
        }
        for method, row in content["folds"].items()
    }


def early_rows(content: Mapping[str, Any]) -> dict[str, dict[str, dict[str, float]]]:
    """Return a table of the scores of early predictions, from only the first days (or hours, ...) of each series.

    Args:
        content: content of a metrics.json with "early".

    Returns:
        {metric: {method: {time span: score}}}, with metrics and methods named in words. Metrics are those in
        `EARLY_SHOWN` that the network has, of each output where there are several. Time spans are those of the
        evaluation, such as "+10d" for the first ten days, and last "whole", for whole series.
    """
    task = next(task for task in TASKS if task in content)
    each = {f"+{span}": scores for span, scores in content["early"]["at"].items()} | {"whole": content[task]}
    shown = [name for kind in EARLY_SHOWN for name in content[task]["model"] if name.partition(OUTPUT)[0] == kind]
    return {
        metric_of(name).words: {
            method_words(method): {span: scores[method][name] for span, scores in each.items()}
            for method, row in content[task].items()
            if name in row
        }
        for name in shown
    }


def scored_words(content: Mapping[str, Any]) -> str:
    """Return a name, for people, of the series that scores are computed on, such as "held-out series".

    If only a sample was scored, it begins with the number of series in the sample: "250 of the held-out series".

    Args:
        content: content of a metrics.json.
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
    """Return a sentence, without a full stop, on the part of the series that a run predicted in its limited time.

    It says how many series were predicted and scored, and to how many observations longer ones were cut, if they were.

    Args:
        content: content of a metrics.json with "sample".
    """
    sample, noun = content["sample"], content["noun"]
    words = (
        f"{sample['series']:,} of {sum(content['series'].values()):,} {noun}, drawn at random, are answered and "
        f"scored ({sample['scored']:,}), as the minutes allow no more"
    )
    if sample["stretch"] is not None:
        words += f"; of longer ones a stretch of {sample['stretch']:,} observations"
    return words
