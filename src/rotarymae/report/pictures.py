"""The parts of a report that are drawn. A new one is a function here and a line in PICTURES.

Each draws from an Outcome and yields `Drawing`s and `Table`s: nothing where the run has nothing to show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import AutoLocator
from sklearn.calibration import CalibrationDisplay
from sklearn.metrics import (
    ConfusionMatrixDisplay,
    PrecisionRecallDisplay,
    PredictionErrorDisplay,
    RocCurveDisplay,
    confusion_matrix,
    precision_recall_fscore_support,
)

from rotarymae import plots
from rotarymae.interpolation import interpolate
from rotarymae.metrics import SCALED_RMSE, like_groups, method_words, scored_words
from rotarymae.outcome import Outcome
from rotarymae.partners.decide import decide
from rotarymae.queries import curves
from rotarymae.reconstruction import drawn
from rotarymae.report.content import Drawing, Table
from rotarymae.scoring import DISTANCES
from rotarymae.series import channel_index, plain
from rotarymae.survival import kaplan_meier

MISTAKES = 3  # series shown that were predicted wrong
EXAMPLES = 6  # series shown with their hidden points
CURVE_POINTS = 150  # of each interpolated curve
PANELS = 12  # of each series, one per channel
GROUPS = 3  # of like prediction, whose survival is drawn
SQUARE = (4.6, 4.4)  # inches

Parts = Iterator[Drawing | Table]


@dataclass(frozen=True)
class Picture:
    """A section of the report that is drawn, as it stands in `PICTURES`.

    Attributes:
        name: anchor of the section.
        title: its heading.
        explanation: what one sees, and how to read it.
        draw: yields figures and tables of a run, nothing where it does not apply.
        private: whether it shows ids or values of single examples, which an anonymous report leaves out.
    """

    name: str
    title: str
    explanation: str
    draw: Callable[[Outcome], Iterable[Drawing | Table]]
    private: bool = False


def draw_series(outcome: Outcome) -> Parts:
    """Yield a drawing of each of six scored series, which are chosen at random with a fixed seed.

    A drawing shows the visible and the hidden observations of the first value column, the predicted curve and its
    bands. If fewer than six series were scored, all of them are shown. Nothing is yielded if the run did not
    interpolate.
    """
    if outcome.visible is None or outcome.hidden is None:
        return
    chosen = np.sort(np.random.default_rng(0).permutation(len(outcome.visible))[:EXAMPLES])
    visible, hidden = outcome.visible.select(chosen), outcome.hidden.select(chosen)
    queries = curves(visible, hidden, CURVE_POINTS)
    answers = interpolate(outcome.pipeline, visible, queries)
    of_query = channel_index(queries)
    for i, (seen, left) in enumerate(zip(visible, hidden, strict=True)):
        at = slice(queries.offsets[i], queries.offsets[i + 1])
        bands = {share: (low[at, 0], high[at, 0]) for share, (low, high) in answers.bands.items()}
        curve = plots.Curve(queries.times[at], answers.mean[at, 0], bands, of_query[at])
        caption = ""
        if outcome.pipeline.require_series().errors:
            caption = "The bands are those of the curve: a point lies outside more often, by its own error."
        late = np.repeat([False, True], [len(seen.times), len(left.times)])
        yield _draw_observations(outcome, (seen, left), caption, hidden=late, curve=curve)


def _draw_observations(outcome: Outcome, parts: tuple[Any, ...], caption: str, **marks: Any) -> Drawing:
    """Draw one series: the first value column against time, in the table's units, with error bars if errors are known.

    Only the 12 channels with most observations are drawn.

    Args:
        outcome: the results of the run, for the names of columns and channels.
        parts: the series as a `Series`, or as several that make it up, such as its visible and its hidden observations.
        caption: sentences for the caption of the drawing. Sentences on error bars and on channels that are not drawn
            are added.
        **marks: the arguments `hidden` (bool, for the observations of all parts in their order) and `curve` of
            `plots.interpolation`.
    """
    preprocessor = outcome.pipeline.require_series()
    times, values = np.concatenate([one.times for one in parts]), np.concatenate([one.values for one in parts])
    channels, errors = np.concatenate([channel_index(one) for one in parts]), None
    first, columns = preprocessor.value_names[0], preprocessor.value_columns
    if error := outcome.dataset.error_of.get(first):  # pyright: ignore
        errors = values[:, columns.index(error)]
        caption = f"Bars are ± {error}, as the table gives it. {caption}"
    present, counts = np.unique(channels, return_counts=True)
    if len(present) > PANELS:
        caption += f" Of {len(present)} channels the {PANELS} with most observations."
    limited = parts[0].sides is not None
    dates = getattr(outcome.dataset, "time_zone", None) is not None
    time = str(outcome.pipeline.columns.get("time") or "time")
    figure = plots.interpolation(
        times,
        values[:, 0],
        channels,
        [str(name) for name in preprocessor.channel_names or ("",)],
        shown=present[np.argsort(-counts, kind="stable")[:PANELS]],
        errors=errors,
        sides=np.concatenate([one.sides[:, 0] for one in parts]) if limited else None,
        time_label=f"{time} (UTC)" if dates else time,
        value_label=first,
        dates=dates,
        **marks,
    )
    name = str(parts[0].id)
    return Drawing(figure, f"{first} of {name} by {time}. {caption}", caption.strip(), name)


def draw_reconstructions(outcome: Outcome) -> Parts:
    """Yield a drawing of each of six scored pictures, videos or sounds, which are chosen at random with a fixed seed.

    A drawing shows the input, what the model saw of it, and the reconstruction of its hidden patches. A video is shown
    by its first frame; a sound by its spectrogram, with time from left to right and low frequencies at the bottom.
    Three channels are shown as colours; otherwise the first channel is shown. If the run reconstructed fewer than six
    inputs, all of them are shown; if it reconstructed none, nothing is yielded.
    """
    dataset: Any = outcome.dataset
    rows = outcome.split.scored[dataset.lengths[outcome.split.scored] >= 2]  # as `score` reconstructs them
    chosen = np.sort(np.random.default_rng(0).permutation(len(outcome.reconstructions))[:EXAMPLES])
    sound = dataset.kind == "patches" and dataset.sample_rate is not None
    for i in chosen.tolist():
        array, one = dataset.arrays[rows[i]], outcome.reconstructions[i]
        white = np.iinfo(array.dtype).max if array.dtype.kind == "u" else max(float(array.max()), 1.0)
        figure, limits = Figure((8.4, 3.2)), {"vmin": float(array.min()), "vmax": float(array.max())}
        titles = ("input", "what the model saw", "reconstruction")
        three = drawn(outcome.pipeline, array, one)
        for axes, part, title in zip(figure.subplots(1, 3), three, titles, strict=True):
            picture = part[(0,) * (part.ndim - 3)] if part.ndim > 2 else part[None]
            if picture.shape[-1] == 3:
                shown = np.nan_to_num(np.clip(picture / white, 0, 1), nan=0.74)
            else:
                shown = picture[:, ::-1, 0].T if sound else picture[..., 0]
            axes.imshow(shown, cmap="magma" if sound else "gray", interpolation="nearest", **limits)
            axes.set(title=title, xticks=[], yticks=[], facecolor="#b9bec8")  # which shows where patches are hidden
        hidden, name = f"{int(one.hidden.sum())} of {len(one.hidden)} patches hidden", str(plain(dataset.ids[rows[i]]))
        yield Drawing(figure, f"{name}: input, {hidden}, and reconstruction", f"{hidden}.", name)


def draw_bands(outcome: Outcome) -> Parts:
    """Yield a table of prediction bands: the share of hidden observations inside each, and a verdict on it.

    A band is an interval that should hold a given share of values, such as 95 %; the table has a row for each. If
    metrics.json has several groups of hidden observations, by their distance to the nearest visible one, the drawing of
    `draw_by_distance` follows. Only the first value column counts. Nothing is yielded if the run did not interpolate,
    or if the model predicts no bands.
    """
    scores = next(iter(outcome.metrics.get("interpolation", {}).values()), {})
    points, rows = scores.get("hidden_observations", 0), []
    for level, share in scores.get("share_inside_band", {}).items():
        row = {"hidden points inside": f"{100 * share:.1f} %", "verdict": verdict(float(level), share, points)}
        rows.append((f"{100 * float(level):.0f} %", row))
    if not rows:
        return
    caption = (
        f"{points:,} hidden points; “as promised” means within 2 percentage points, or within two standard "
        "errors where that is more."
    )
    yield Table(rows, first="band", caption=caption)
    if len(scores["by_distance"]) > 1:
        unit = outcome.pipeline.require_series().positions.unit
        yield draw_by_distance(scores["by_distance"], unit)


def draw_by_distance(rows: list[dict[str, Any]], unit: float) -> Drawing:
    """Draw the errors of all methods, and the shares of hidden observations inside bands, by distance.

    A band is an interval that should hold a given share of values, such as 95 %. The distance is that of a hidden
    observation to the nearest visible one, in the table's unit of time.

    Args:
        rows: the entry "by_distance" of an interpolation's scores in metrics.json: groups of hidden observations,
            nearest first, at least one.
        unit: factor that turns the distances in `rows` into the table's unit of time.
    """
    figure, at = Figure((9.2, 3.6)), np.arange(len(rows))
    left, right = figure.subplots(1, 2)
    for i, method in enumerate(rows[0]["methods"]):
        colour, marker = plots.style_of(i)
        errors = [row["methods"][method][SCALED_RMSE] for row in rows]
        left.plot(at, errors, color=colour, marker=marker, label=method_words(method))
    for i, share in enumerate(rows[0]["share_inside_band"]):
        colour, marker = plots.style_of(i)
        inside = [row["share_inside_band"][share] for row in rows]
        right.plot(at, inside, color=colour, marker=marker, label=f"band of {float(share):.0%}")
        right.axhline(float(share), color=plots.FAINT, linewidth=1.2, linestyle=(0, (4, 3)))
    left.set(ylabel="root mean squared error, scaled", ylim=(0, None))
    right.set(ylabel="hidden points inside", ylim=(0, 1.02))
    names = [f"> {row['above'] * unit:.3g}" if row["above"] else f"≤ {DISTANCES[0] * unit:.3g}" for row in rows]
    for axes in (left, right):
        axes.set_xticks(at, names)
        axes.set_xlabel("distance to the nearest observation")
        axes.legend(loc="best")
    return Drawing(
        figure,
        "Errors and coverage at hidden points, by their distance to the nearest observation",
        "Distances are in the unit of time of the table.",
    )


def verdict(promise: float, share: float, points: int) -> str:
    """Judge a predicted band: return "as promised", "too narrow" or "too wide".

    It is as promised if the two shares differ by at most 0.02, or by at most two standard errors. A standard error is
    sqrt(promise · (1 - promise) / points).

    Args:
        promise: the share of hidden observations that should be inside, such as 0.95.
        share: the share of hidden observations that were inside.
        points: number of hidden observations, taken as independent.
    """
    noise = 2 * (promise * (1 - promise) / max(points, 1)) ** 0.5
    if abs(share - promise) <= max(noise, 0.02):
        return "as promised"
    return "too narrow" if share < promise else "too wide"


def _class_predictions(outcome: Outcome) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return true classes int [n], predicted classes int [n] and probabilities [n, K] of the n scored series.

    Classes are numbers from 0, indices into the K `outcome.classes`. Returns None if the run predicts no classes, or
    has no labels.
    """
    labels: Any = outcome.pipeline.labels
    if not outcome.classes or outcome.predicted is None or outcome.labels is None:
        return None
    at = outcome.split.scored
    probabilities = outcome.predicted[at]
    return labels.truth(outcome.labels[at]), decide(probabilities, outcome.weights(at)), probabilities


def draw_classes(outcome: Outcome) -> Parts:
    """Yield a drawing of the confusion matrix, then a table of precision, recall and F1 of each class.

    Rows of the matrix are true classes; its cells are per cent of a row. Nothing is yielded if the run predicts no
    classes.
    """
    predictions = _class_predictions(outcome)
    if predictions is None:
        return
    (labels, predicted, _), names = predictions, outcome.class_names
    k = len(names)
    shares = 100 * confusion_matrix(labels, predicted, labels=range(k), normalize="true")
    size = float(np.clip(0.5 * k, 2.6, 14))
    figure = Figure((size + 2.2, size + 1.3))
    show = ConfusionMatrixDisplay(shares, display_labels=[plots.literal(name) for name in names])
    look: Any = {"cmap": "Blues", "im_kw": {"vmin": 0, "vmax": 100}, "colorbar": False, "include_values": k <= 30}
    show.plot(ax=figure.subplots(), values_format=".0f", xticks_rotation="vertical", **look)
    show.ax_.set(xlabel="predicted class (cells: % of the true class)", ylabel="true class")
    show.ax_.grid(False)
    yield Drawing(figure, f"Confusion matrix of {k} classes")
    yield class_table(labels, predicted, names, scored_words(outcome.metrics))


def class_table(labels: np.ndarray, predicted: np.ndarray, names: tuple[str, ...], scored: str) -> Table:
    """Return a table with a row per class: precision, recall, F1 and the number of series.

    A last row has the means of precision, recall and F1, and the number of all series. The means give each class equal
    weight; classes that no series has, and that are never predicted, do not count in them. What is undefined, such as
    the precision of a class that is never predicted, is 0.

    Args:
        labels, predicted: int [n], true and predicted class numbers from 0 of the n scored series.
        names: names of all classes, for the rows.
        scored: words for the series that are scored, for the caption.
    """
    each: Any = precision_recall_fscore_support(labels, predicted, labels=range(len(names)), zero_division=0)  # pyright: ignore
    mean: Any = precision_recall_fscore_support(labels, predicted, average="macro", zero_division=0)  # pyright: ignore
    columns = ("precision", "recall", "F1", "number")
    rows: list[Any] = [(name, dict(zip(columns, row, strict=True))) for name, *row in zip(names, *each, strict=True)]
    rows.append(("mean over classes (macro)", dict(zip(columns, (*mean[:3], len(labels)), strict=True))))
    caption = f"On {scored}. Classes that none of them has, and that none is taken for, are left out of the means."
    return Table(rows, first="class", caption=caption)


def draw_mistakes(outcome: Outcome) -> Parts:
    """Yield drawings of at most three scored series with wrong predictions, one drawing for each.

    For classes it is one series of each of the three most frequent confusions; for a regression the three series with
    the largest errors of the first output. Nothing is yielded for times to an event, for pictures, videos and sounds,
    or without labels.
    """
    predictions, at, dataset = _class_predictions(outcome), outcome.split.scored, outcome.dataset
    if dataset.kind == "patches":
        return
    if predictions is not None:
        mistakes = confusions(*predictions, outcome.class_names)
    elif "regression" in outcome.metrics:
        mistakes = _largest_errors(outcome)
    else:
        return
    for i, caption in mistakes:
        yield _draw_observations(outcome, tuple(dataset.select([at[i]])), caption)  # pyright: ignore


def confusions(
    labels: np.ndarray, predicted: np.ndarray, probabilities: np.ndarray, names: tuple[str, ...]
) -> Iterator[tuple[int, str]]:
    """Yield (index, caption) of one wrongly predicted series for each of the three most frequent confusions.

    A confusion is a pair of a true class and another class that was predicted. The series is the one whose predicted
    class has the largest probability. The most frequent confusion comes first; there may be fewer than three.

    Args:
        labels, predicted: int [n], true and predicted class numbers from 0 of n series. The index counts these.
        probabilities: [n, K] probabilities of the K classes.
        names: [K] names of the classes, for the captions.
    """
    wrong = np.flatnonzero(labels != predicted)
    pairs, counts = np.unique(np.stack([labels[wrong], predicted[wrong]], 1), axis=0, return_counts=True)
    for k in np.argsort(-counts, kind="stable")[:MISTAKES]:
        true, guess = pairs[k]
        alike = wrong[(labels[wrong] == true) & (predicted[wrong] == guess)]
        i = int(alike[probabilities[alike, guess].argmax()])
        share = f"{counts[k]:,} of {int((labels == true).sum()):,} {names[true]} are taken for {names[guess]}"
        yield i, f"{share}; this one with a probability of {probabilities[i, guess]:.2f}."


def _largest_errors(outcome: Outcome) -> Iterator[tuple[int, str]]:
    """Yield (index, caption) of the three scored series with the largest errors of a regression's first output.

    The largest error comes first. The index counts the scored series. Series without a label for this output are left
    out, so there may be fewer than three.
    """
    at = outcome.split.scored
    truth = np.asarray(outcome.labels, np.float64).reshape(len(outcome.dataset), -1)[at, 0]
    predicted = np.asarray(outcome.predicted)[at, 0]
    errors = np.nan_to_num(np.abs(predicted - truth), nan=-1.0)
    for i in np.argsort(-errors, kind="stable")[:MISTAKES].tolist():
        if errors[i] >= 0:
            yield i, f"Predicted {predicted[i]:.4g}; true: {truth[i]:.4g}."


def draw_thresholds(outcome: Outcome) -> Parts:
    """Yield one drawing for two classes: the ROC and the precision-recall curve of the second class.

    Nothing is yielded for another number of classes, for other tasks, or if all scored series are of one class.
    """
    predictions = _class_predictions(outcome)
    if predictions is None or len(outcome.classes) != 2 or len(np.unique(predictions[0])) < 2:
        return
    name = outcome.class_names[1]
    figure, positive, score = Figure((9.2, 4.4)), predictions[0] == 1, predictions[2][:, 1]
    for axes, kind in zip(figure.subplots(1, 2), (RocCurveDisplay, PrecisionRecallDisplay), strict=True):
        kind.from_predictions(positive, score, ax=axes, name="model", plot_chance_level=True)
    yield Drawing(figure, f"ROC and precision-recall curve of {name}", f"Positive is the class {name}.")


def draw_reliability(outcome: Outcome) -> Parts:
    """Yield one drawing, a reliability diagram: how often the most probable class is right, by its probability.

    Series are put into at most ten bins of about equal size by this probability. Nothing is yielded without classes, or
    with fewer than 20 scored series.
    """
    predictions = _class_predictions(outcome)
    if predictions is None or len(predictions[0]) < 20:
        return
    labels, _, probabilities = predictions  # rules such as that of F1 decide for other classes than the most probable
    figure, bins = Figure(SQUARE), int(np.clip(len(labels) // 10, 1, 10))
    right, sure = labels == probabilities.argmax(1), probabilities.max(1)
    how = {"n_bins": bins, "strategy": "quantile", "name": "predictions"}
    show = CalibrationDisplay.from_predictions(right, sure, pos_label=True, ax=figure.subplots(), **how)
    show.ax_.set(xlabel="probability of the most probable class", ylabel="share that is right")
    yield Drawing(figure, "Share of most probable classes that are right, by their probability")


def draw_regression(outcome: Outcome) -> Parts:
    """Yield a drawing of predicted against true values of the scored series for each output of a regression.

    Series without a true value of an output are left out of its drawing; an output without any has no drawing. Nothing
    is yielded for other tasks.
    """
    if "regression" not in outcome.metrics or outcome.predicted is None or outcome.labels is None:
        return
    at = outcome.split.scored
    truth = np.asarray(outcome.labels, np.float64).reshape(len(outcome.labels), -1)
    for k in np.flatnonzero(np.isfinite(truth[at]).any(0)).tolist():
        known, figure = at[np.isfinite(truth[at, k])], Figure(SQUARE)
        points = {"color": plots.COLOURS[0], "s": 21, "alpha": 0.8 if len(known) < 200 else 0.35}
        show = PredictionErrorDisplay(y_true=truth[known, k], y_pred=outcome.predicted[known, k])
        show.plot(kind="actual_vs_predicted", ax=figure.subplots(), scatter_kwargs=points)
        for axis in (show.ax_.xaxis, show.ax_.yaxis):  # the class sets ticks at odd numbers
            axis.set_major_locator(AutoLocator())
        which = "" if truth.shape[1] == 1 else f"Output {k + 1} of {truth.shape[1]}. "
        caption = f"{which}Each point is one of {len(known):,}, on {scored_words(outcome.metrics)}."
        yield Drawing(figure, "Predicted against true values", caption)


def draw_survival(outcome: Outcome) -> Parts:
    """Yield one drawing of times to an event: predicted survival curves next to Kaplan and Meier's estimates.

    Both are shown for three groups of scored series: the thirds with the shortest, middle and longest predicted times.
    There are fewer groups if one would have less than 20 series. Nothing is yielded for other tasks.
    """
    labels: Any = outcome.pipeline.labels
    at = outcome.split.scored
    if "survival" not in outcome.metrics or outcome.predicted is None or outcome.labels is None:
        return
    truth, predicted, edges = labels.truth(outcome.labels[at]), outcome.predicted[at], np.asarray(labels.edges)
    groups, figure = like_groups(labels.predicted(predicted), GROUPS), Figure(SQUARE)
    axes = figure.subplots()
    for colour, rows in zip(plots.COLOURS, reversed(groups), strict=False):  # the longest on top, as in the legend
        time, event = truth["time"][rows], truth["event"][rows]
        steps = np.unique(np.append(time[time <= edges[-1]], (0.0, edges[-1])))
        steps = steps[steps <= time.max()]
        observed = kaplan_meier(time, event, steps)
        axes.step(steps, observed, where="post", color=colour, label=f"observed, {len(rows):,}")
        axes.plot(edges, labels.survival(predicted[rows], edges).mean(0), "--", color=colour, label="predicted")
    axes.set(ylim=(0, 1.02), xlim=(0, edges[-1]), xlabel="time", ylabel="without the event")
    axes.legend(loc="best")
    events = f"{truth['event'].sum():,} of {len(at):,} {outcome.dataset.noun} have the event"
    caption = f"{events}, on {scored_words(outcome.metrics)}."
    yield Drawing(figure, "Predicted and observed survival of groups of like prediction", caption)


def draw_learning(outcome: Outcome) -> Parts:
    """Yield a drawing of training and validation losses by epoch for pre-training, then one for fine-tuning.

    A stage that was not trained has no drawing; without validation series there is no curve of validation losses.
    """
    for stage, result in (("pre-training", outcome.fit.pretraining), ("fine-tuning", outcome.fit.finetuning)):
        history: Any = [] if result is None else result.history
        figure = Figure((5.2, 3.7))
        axes = figure.subplots()
        for name, key in (("training", "loss"), ("validation", "validation")):
            points = [(line["epoch"], line[key]) for line in history if key in line]
            if points:
                axes.plot(*zip(*points, strict=True), label=name, marker="o" if len(points) == 1 else "")
        axes.set(xlabel="epoch", ylabel="loss", title=stage)
        if axes.lines:
            axes.legend()
            yield Drawing(figure, f"Losses of {stage} by epoch")


PICTURES = [
    Picture(
        "classes",
        "Class by class",
        "Each row of the matrix is a true class and shows, in per cent, which classes its objects were predicted to "
        "be; the diagonal is recall. The table adds precision (the share of predictions of a class that are right) "
        "and F1, their harmonic mean.",
        draw_classes,
    ),
    Picture("regression", "Predicted and true", "On the dashed line both agree.", draw_regression, private=True),
    Picture(
        "mistakes",
        "Where it fails",
        "For classes, the most certain mistake of each frequent confusion; for numbers, the largest errors.",
        draw_mistakes,
        private=True,
    ),
    Picture(
        "survival",
        "Survival",
        "Series are grouped by their expected time to the event. Steps are the share without the event so far (Kaplan "
        "and Meier's estimate, which counts censored series while they were followed), dashed lines the mean of the "
        "predicted curves: where they agree, the predictions are calibrated.",
        draw_survival,
    ),
    Picture(
        "series",
        "Hidden observations",
        "Filled points were shown to the model, hollow points were hidden from it. The line is its prediction; the "
        "bands should hold 68 % and 95 % of the hollow points.",
        draw_series,
        private=True,
    ),
    Picture(
        "reconstructions",
        "Hidden patches",
        "Left the input, in the middle what the model saw (hidden patches are grey), right its reconstruction.",
        draw_reconstructions,
        private=True,
    ),
    Picture(
        "confidence",
        "Are the probabilities honest?",
        "Of the series whose most probable class has a probability of 80 %, 80 % should be of that class. Points below "
        "the dashed line mean that the probabilities are too high, points above it that they are too low.",
        draw_reliability,
    ),
    Picture(
        "thresholds",
        "Other thresholds",
        "The scores of the classifier if a series counts as positive at another probability than the one that decides.",
        draw_thresholds,
    ),
    Picture(
        "bands",
        "Are the bands honest?",
        "The share of hidden points inside each band should equal its promise. A lower share means that the band is "
        "too narrow, a higher one that it is too wide.",
        draw_bands,
    ),
    Picture(
        "learning",
        "Learning curves",
        "Both curves should fall and level off. Validation that rises while training still falls means overfitting.",
        draw_learning,
    ),
]
