"""The pictures of a report. A new one is a function here and a line in PICTURES.

Each draws from an Outcome and yields `Drawing`s and `Table`s: nothing where the run has nothing to show.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.metrics import accuracy_score, confusion_matrix, precision_recall_fscore_support

from rotarymae import plots
from rotarymae.interpolation import SHARES, interpolate
from rotarymae.metrics import SCALED_RMSE, like_groups, method_words, scored_words
from rotarymae.outcome import Outcome
from rotarymae.partners.decide import decide
from rotarymae.preprocess import ObservationPreprocessor
from rotarymae.queries import curves
from rotarymae.reconstruction import drawn
from rotarymae.report.content import Table
from rotarymae.scoring import DISTANCES, MIN_HIDDEN
from rotarymae.series import channel_index, plain
from rotarymae.training import TrainResult

MISTAKES = 3  # series shown that were predicted wrong
EXAMPLES = 6  # series shown with their hidden points
CURVE_POINTS = 150  # of each interpolated curve
PANELS = 12  # of each series, one per channel
MAPPED = 2000  # embeddings on the map: t-SNE of 25,000 takes minutes, and shows a cloud
HEAVY_TAILED = 50.0  # median distances from the median; a series that reaches further is drawn by asinh
GROUPS = 3  # of like prediction, whose survival is drawn
LEVELS = SHARES  # bands whose promise is checked


@dataclass(frozen=True)
class Drawing:
    """A figure, and a description for readers who cannot see it."""

    figure: Figure
    alt: str
    caption: str = ""
    heading: str = ""


@dataclass(frozen=True)
class Words:
    """The user's names for classes, in the classifier's order, and axes; whether times are dates.

    `invert` holds the columns of values or the channels that are drawn upside down.
    """

    classes: tuple[str, ...]
    time: str
    value: str
    dates: bool
    invert: frozenset[str]

    @classmethod
    def of(
        cls,
        outcome: Outcome,
        class_names: Mapping[Any, str],
        time: str | None = None,
        value: str | None = None,
        invert: Collection[str] = (),
    ) -> Words:
        """Collect the names for a run's pictures: those given, or else the names of classes and columns.

        Args:
            class_names: {class: name for people}; a class that it lacks keeps its name.
            time, value: labels of the axes; None for the columns' names.
            invert: columns of values or channels that are drawn upside down.
        """
        names = tuple(class_names.get(name, str(name)) for name in outcome.classes)
        preprocessor = outcome.pipeline.preprocessor
        assert preprocessor is not None
        dates = getattr(outcome.dataset, "time_zone", None) is not None
        column = str(outcome.pipeline.columns.get("time") or "time")
        return cls(
            names,
            time or (f"{column} (UTC)" if dates else column),
            value or next(iter(getattr(preprocessor, "value_names", ())), ""),
            dates,
            frozenset(invert),
        )


@dataclass(frozen=True)
class Picture:
    """A kind of picture of the report: its title, its explanation, and the function that draws it."""

    name: str  # anchor of its section
    title: str
    explanation: str  # one sentence: what one sees, and how to read it
    draw: Callable[[Outcome, Words], Iterable[Drawing | Table]]
    private: bool = False  # whether it shows ids or values of single examples
    kind: str = ""  # of the data that it can draw; all where it is empty
    of_model: bool = False  # whether it is about the model, not about how good the predictions are

    def suits(self, kind: str, anonymous: bool) -> bool:
        """Return whether the picture is for this kind of data ("observations" or "patches") and may be on the page.

        One that shows single examples may not be on an anonymous page.
        """
        return self.kind in ("", kind) and not (anonymous and self.private)


def draw_series(outcome: Outcome, words: Words) -> Iterator[Drawing]:
    """Draw at most six scored series with visible and hidden observations, the predicted curve and its bands.

    Nothing where the run did not interpolate. Only the first column of values and at most 12 channels are drawn.
    """
    if outcome.visible is None or outcome.hidden is None:
        return
    preprocessor = outcome.pipeline.require_series()
    chosen = np.sort(np.random.default_rng(0).permutation(len(outcome.visible))[:EXAMPLES])
    visible, hidden = outcome.visible.select(chosen), outcome.hidden.select(chosen)
    queries = curves(visible, hidden, CURVE_POINTS)
    answers = interpolate(outcome.pipeline, visible, queries)
    query_channels = channel_index(queries)
    error = error_column(preprocessor)
    for i, (seen, left) in enumerate(zip(visible, hidden, strict=True)):
        values = np.concatenate([seen.values, left.values])
        channels = np.concatenate([channel_index(one) for one in (seen, left)])
        kept = most_observed(channels)
        shown = np.flatnonzero(np.isin(channels, kept))
        at = np.arange(queries.offsets[i], queries.offsets[i + 1])
        at = at[np.isin(query_channels[at], kept)]
        curve = plots.Curve(
            queries.times[at],
            answers.mean[at, 0],
            {share: (low[at, 0], high[at, 0]) for share, (low, high) in answers.bands.items()},
            query_channels[at],
        )
        times, errors = np.concatenate([seen.times, left.times]), None if error is None else values[:, error]
        late = np.arange(len(channels)) >= len(seen.times)
        figure = _observed(
            preprocessor, words, times, values[:, 0], channels, shown, errors=errors, hidden=late, curve=curve
        )
        alt = (
            f"{words.value} of {seen.id} by {words.time}: {len(seen.times)} observations seen, {len(left.times)} hidden"
        )
        caption = "" if error is None else f"Bars are ± {preprocessor.value_columns[error]}, as the table gives it. "
        if preprocessor.errors:
            caption += "The bands are those of the curve: a point lies outside more often, by its own error. "
        if len(shown) < len(values):
            caption += f"Of {len(np.unique(channels))} channels the {PANELS} with most observations."
        yield Drawing(figure, alt, caption.strip(), heading=str(seen.id))


def _observed(
    preprocessor: ObservationPreprocessor,
    words: Words,
    times: np.ndarray,
    values: np.ndarray,
    channels: np.ndarray,
    shown: np.ndarray,
    curve: plots.Curve | None = None,
    **marks: np.ndarray | None,
) -> Figure:
    """Draw one series in the table's units: those of its n observations that have an index in `shown`.

    The axis of values is that of an asinh where a few reach far beyond the others.

    Args:
        times, values, channels: [n], of all observations; channels are indices into the preprocessor's names.
        curve: predicted curve; None for none.
        marks: errors and hidden [n], as `plots.interpolation` takes them, each None if there is none.
    """
    middle = float(np.median(values))
    away = np.abs(values - middle)
    spread = float(np.median(away)) or 1.0
    heavy = abs(middle) < HEAVY_TAILED * spread < away.max()  # far from zero, asinh is a logarithm with hardly a tick
    names = [str(name) for name in preprocessor.channel_names or ("",)]
    of_shown: Any = {name: None if mark is None else mark[shown] for name, mark in marks.items()}
    return plots.interpolation(
        times[shown],
        values[shown],
        channels=channels[shown],
        curve=curve,
        channel_names=names,
        time_label=words.time,
        value_label=words.value,
        asinh_scale=spread if heavy else None,
        dates=words.dates,
        invert=names if preprocessor.value_names[0] in words.invert else words.invert,
        **of_shown,
    )


def error_column(preprocessor: ObservationPreprocessor) -> int | None:
    """Return the index, among the columns of values, of the standard errors of the first value; None without any.

    They are the first column of errors, or else a column of the value's name with "_err" at its end.
    """
    first, columns = preprocessor.value_names[0], preprocessor.value_columns
    named = preprocessor.errors[:1] or tuple(name for name in columns if name == f"{first}_err")
    return columns.index(named[0]) if named else None


def most_observed(channels: np.ndarray) -> np.ndarray:
    """Return the channels with most observations, at most 12, the most frequent first.

    `channels` int [n] is the channel of each observation.
    """
    present, counts = np.unique(channels, return_counts=True)
    return present[np.argsort(-counts, kind="stable")[:PANELS]]


def draw_reconstructions(outcome: Outcome, words: Words) -> Iterator[Drawing]:
    """Draw at most six scored pictures, or spectrograms, with hidden patches and their reconstructions.

    Nothing where the run reconstructed none.
    """
    dataset: Any = outcome.dataset
    scored = outcome.split.scored
    rows = scored[dataset.lengths[scored] >= 2]  # as `score` reconstructs them
    chosen = np.sort(np.random.default_rng(0).permutation(len(rows))[:EXAMPLES])
    for i in chosen.tolist() if outcome.reconstructions else ():
        row = int(rows[i])
        reconstruction, name = outcome.reconstructions[i], str(plain(dataset.ids[row]))
        array = dataset.arrays[row]
        lowest, highest = float(array.min()), float(array.max())
        limits = (0.0, np.iinfo(array.dtype).max) if array.dtype.kind == "u" else (min(lowest, 0.0), max(highest, 1.0))
        three = [_flat(part, dataset, *limits) for part in drawn(outcome.pipeline, array, reconstruction)]
        figure = plots.reconstructed(*three, cmap="gray" if dataset.sample_rate is None else "magma")
        hidden = f"{int(reconstruction.hidden.sum())} of {len(reconstruction.hidden)} patches hidden"
        yield Drawing(figure, f"{name}: input, {hidden}, and reconstruction", f"{hidden}.", heading=name)


def _flat(array: np.ndarray, dataset: Any, black: float, white: float) -> np.ndarray:
    """Return an array [*sizes, C] as a picture [H, W] in its own numbers, or [H, W, 3] with colours from 0 to 1.

    A video shows its first frame. The time of a sound runs from left to right, with low frequencies at the bottom. Of
    other than three channels the first is shown.

    Args:
        dataset: the data set of the array, which says whether it is a sound.
        black, white: values that become the colours 0 and 1.
    """
    picture = array
    while picture.ndim > 3:
        picture = picture[0]
    if picture.ndim == 2:  # one axis
        picture = picture[None]
    if dataset.sample_rate is not None:
        return picture[:, ::-1, 0].T
    if picture.shape[-1] != 3:
        return picture[..., 0]
    return np.clip((picture - black) / (white - black), 0, 1)


def draw_bands(outcome: Outcome, words: Words) -> Iterator[Drawing | Table]:
    """Tabulate and draw the share of hidden points inside each band, next to the share that the band promises.

    Where there are groups by distance to the nearest observation, their errors are drawn, too. Nothing where the run
    did not interpolate, or predicts no deviation. Only the first column of values counts.
    """
    answers, hidden = outcome.interpolated, outcome.hidden
    if answers is None or answers.std is None or hidden is None:
        return
    preprocessor = outcome.pipeline.require_series()
    # The share inside a band is the same in scaled units, in which the distribution is predicted.
    channels = channel_index(hidden)
    truth = preprocessor.values.transform(hidden.with_values(preprocessor.value_names).values, channels)[:, 0]
    points, first = len(truth), answers.scaled.parameters[:, 0]
    shares = {}
    for level in LEVELS:
        lower, upper = answers.scaled.likelihood.interval(first, level)
        shares[level] = float(((lower.numpy() <= truth) & (truth <= upper.numpy())).mean())
    rows = [
        (f"{level:.0%}", {"hidden points inside": f"{100 * share:.1f} %", "verdict": verdict(level, share, points)})
        for level, share in shares.items()
    ]
    caption = (
        f"{points:,} hidden points; “as promised” means within 2 percentage points, or within two standard "
        "errors where that is more."
    )
    yield Table(rows, first="band", caption=caption)
    yield Drawing(
        plots.calibration(LEVELS, list(shares.values())), "Share of hidden points inside bands, by the bands' promise"
    )
    rows = outcome.metrics["interpolation"][preprocessor.value_names[0]]["by_distance"]
    if len(rows) > 1:
        unit = preprocessor.positions.unit
        names = [f"> {row['above'] * unit:.3g}" if row["above"] else f"≤ {DISTANCES[0] * unit:.3g}" for row in rows]
        errors = {
            method_words(method): [row["methods"][method][SCALED_RMSE] for row in rows] for method in rows[0]["methods"]
        }
        inside = {
            float(share): [row["share_inside_band"][share] for row in rows] for share in rows[0]["share_inside_band"]
        }
        yield Drawing(
            plots.by_distance(names, errors, inside),
            "Errors and coverage at hidden points, by their distance in time to the nearest observation left",
            f"Distances are in the unit of time of the table; groups have at least {MIN_HIDDEN} hidden points.",
        )


def verdict(promise: float, share: float, points: int) -> str:
    """Return "as promised", "too narrow" or "too wide" for a band.

    It is as promised within 0.02, or within two standard errors of `points` independent points where that is more.

    Args:
        promise: the band's nominal share, such as 0.95.
        share: the share of points that were inside.
    """
    noise = 2 * (promise * (1 - promise) / max(points, 1)) ** 0.5
    if abs(share - promise) <= max(noise, 0.02):
        return "as promised"
    return "too narrow" if share < promise else "too wide"


@dataclass(frozen=True)
class ClassPredictions:
    """Classes of the scored series as indices: true and predicted [n], by other methods too; probabilities [n, K]."""

    labels: np.ndarray
    predicted: np.ndarray
    others: dict[str, np.ndarray]
    probabilities: np.ndarray

    @classmethod
    def of(cls, outcome: Outcome) -> ClassPredictions | None:
        """Collect the predicted classes of the scored series; None where the run has no classes."""
        if not outcome.classes or outcome.predicted is None or outcome.labels is None:
            return None
        index = {name: i for i, name in enumerate(outcome.classes)}
        at = outcome.split.scored
        weights = outcome.weights(at)
        return cls(
            np.array([index[plain(label)] for label in outcome.labels[at]]),
            decide(outcome.predicted[at], weights),
            {method_words(name): decide(probabilities, weights) for name, probabilities in outcome.baselines.items()},
            outcome.predicted[at],
        )


def draw_classes(outcome: Outcome, words: Words) -> Iterator[Drawing | Table]:
    """Draw the confusion matrix, and tabulate precision, recall and F1 of each class, with the F1 of other methods.

    Nothing where the run has no classes.
    """
    predictions = ClassPredictions.of(outcome)
    if predictions is None:
        return
    k = len(words.classes)
    precision, recall, f1, support = _scores(predictions.labels, predictions.predicted, k)
    columns: dict[str, np.ndarray] = {"precision": precision, "recall": recall, "F1": f1}
    columns |= {f"F1 of {name}": _scores(predictions.labels, guess, k)[2] for name, guess in predictions.others.items()}
    rows: list[tuple[str, Mapping[str, object]]] = []
    for i, name in enumerate(words.classes):
        rows.append((name, {column: float(x[i]) for column, x in columns.items()} | {"objects": int(support[i])}))

    def mean(column: str, guess: np.ndarray) -> float:
        """Return the mean of a column over the classes that are true, or predicted in `guess`, as in metrics.json."""
        return float(columns[column][np.union1d(predictions.labels, guess)].mean())

    model_means: dict[str, object] = {name: mean(name, predictions.predicted) for name in ("precision", "recall", "F1")}
    others = {f"F1 of {name}": mean(f"F1 of {name}", guess) for name, guess in predictions.others.items()}
    rows.append(("mean over classes (macro)", model_means | others | {"objects": len(predictions.labels)}))
    noun = outcome.dataset.noun
    accuracy = accuracy_score(predictions.labels, predictions.predicted)
    caption = f"Accuracy {accuracy:.3f} on {len(predictions.labels):,} {noun}: "
    caption += f"{scored_words(outcome.metrics)}."
    if not support.all():
        caption += " Classes that none of them has, and that none is taken for, are left out of the means."
    counts = confusion_matrix(predictions.labels, predictions.predicted, labels=range(k))
    yield Drawing(plots.confusion(counts, words.classes), f"Confusion matrix of {k} classes")
    yield Table(rows, first="class", caption=caption)


def draw_mistakes(outcome: Outcome, words: Words) -> Iterator[Drawing]:
    """Draw, for classes, one scored series of each of the most frequent confusions; for a regression, the worst series.

    Yields nothing for other tasks.
    """
    predictions, at = ClassPredictions.of(outcome), outcome.split.scored
    if predictions is not None:
        mistakes = _confusions(predictions, words)
    elif "regression" in outcome.metrics and outcome.predicted is not None and outcome.labels is not None:
        mistakes = _largest_errors(outcome)
    else:
        return
    preprocessor = outcome.pipeline.require_series()
    error = error_column(preprocessor)
    for i, caption in mistakes:
        (one,) = outcome.dataset.select([at[i]])  # pyright: ignore
        channels, errors = channel_index(one), None if error is None else one.values[:, error]
        shown = np.flatnonzero(np.isin(channels, most_observed(channels)))
        figure = _observed(preprocessor, words, one.times, one.values[:, 0], channels, shown, errors=errors)
        yield Drawing(figure, f"{words.value} of {one.id} by {words.time}. {caption}", caption, heading=str(one.id))


def _confusions(predictions: ClassPredictions, words: Words) -> Iterator[tuple[int, str]]:
    """Yield (index among the scored series, caption): the most certain mistake of each frequent confusion."""
    labels, predicted = predictions.labels, predictions.predicted
    wrong = np.flatnonzero(labels != predicted)
    pairs, counts = np.unique(np.stack([labels[wrong], predicted[wrong]], 1), axis=0, return_counts=True)
    for k in np.argsort(-counts, kind="stable")[:MISTAKES]:
        true, guess = pairs[k]
        alike = wrong[(labels[wrong] == true) & (predicted[wrong] == guess)]
        i = int(alike[predictions.probabilities[alike, guess].argmax()])
        name, taken = words.classes[true], words.classes[guess]
        share = f"{counts[k]:,} of {int((labels == true).sum()):,} {name} are taken for {taken}"
        yield i, f"{share}; this one with a probability of {predictions.probabilities[i, guess]:.2f}."


def _largest_errors(outcome: Outcome) -> Iterator[tuple[int, str]]:
    """Yield (index among the scored series, caption) of the largest errors of the first output."""
    at = outcome.split.scored
    truth = np.asarray(outcome.labels, np.float64).reshape(len(outcome.dataset), -1)[at, 0]
    predicted = np.asarray(outcome.predicted)[at, 0]
    errors = np.nan_to_num(np.abs(predicted - truth), nan=-1.0)
    for i in np.argsort(-errors, kind="stable")[:MISTAKES].tolist():
        if errors[i] >= 0:
            yield i, f"Predicted {predicted[i]:.4g}; true: {truth[i]:.4g}."


def _scores(labels: np.ndarray, predicted: np.ndarray, k: int) -> Any:
    """Return (precision, recall, F1, support), each [k], of k classes; 0 where one is not defined.

    `labels` and `predicted` are int [n], class numbers from 0. Support is the number of series of a class.
    """
    return precision_recall_fscore_support(labels, predicted, labels=range(k), zero_division=0)  # pyright: ignore


def draw_thresholds(outcome: Outcome, words: Words) -> Iterator[Drawing]:
    """Draw the ROC and the precision-recall curve of the second of two classes.

    Nothing for another number of classes, or where the scored series are all of one.
    """
    predictions = ClassPredictions.of(outcome)
    if predictions is None or len(words.classes) != 2 or len(np.unique(predictions.labels)) < 2:
        return
    name, positive, score = words.classes[1], predictions.labels == 1, predictions.probabilities[:, 1]
    yield Drawing(plots.roc(positive, score, name=name), f"ROC curve of {name}")
    yield Drawing(plots.precision_recall(positive, score, name=name), f"Precision-recall curve of {name}")


def draw_reliability(outcome: Outcome, words: Words) -> Iterator[Drawing]:
    """Draw how often predicted classes are right, by the probability given to them; nothing for less than 20 series."""
    predictions = ClassPredictions.of(outcome)
    if predictions is None or len(predictions.labels) < 20:
        return
    figure = plots.reliability(predictions.labels == predictions.predicted, predictions.probabilities.max(1))
    yield Drawing(figure, "Share of right predictions by their probability")


def draw_regression(outcome: Outcome, words: Words) -> Iterator[Drawing]:
    """Draw predicted against true values of the scored series, one picture for each output; nothing for other tasks."""
    if "regression" not in outcome.metrics or outcome.predicted is None or outcome.labels is None:
        return
    at = outcome.split.scored
    truth = np.asarray(outcome.labels, np.float64).reshape(len(outcome.labels), -1)
    for k in range(truth.shape[1]):
        there = at[np.isfinite(truth[at, k])]
        figure = plots.predicted_against_true(truth[there, k], outcome.predicted[there, k])
        which = "" if truth.shape[1] == 1 else f"Output {k + 1} of {truth.shape[1]}. "
        where = scored_words(outcome.metrics)
        caption = f"{which}Each point is one of {len(there):,} {outcome.dataset.noun}, on {where}."
        yield Drawing(figure, "Predicted against true values", caption)


def draw_survival(outcome: Outcome, words: Words) -> Iterator[Drawing]:
    """Draw predicted survival of the scored series next to Kaplan and Meier's estimate; nothing for other tasks.

    Series are in thirds by expected time, or in fewer groups where one would have less than 20.
    """
    labels: Any = outcome.pipeline.labels
    at = outcome.split.scored
    if "survival" not in outcome.metrics or outcome.predicted is None or outcome.labels is None:
        return
    truth, predicted = labels.truth(outcome.labels[at]), outcome.predicted[at]
    groups = like_groups(labels.predicted(predicted), GROUPS)
    curves = [(truth[rows], labels.survival(predicted[rows], labels.edges).mean(0)) for rows in groups]
    figure = plots.survival([*reversed(curves)], labels.edges)  # the longest survival on top, as in the legend
    events = f"{truth['event'].sum():,} of {len(at):,} {outcome.dataset.noun} have the event"
    caption = f"{events}, on {scored_words(outcome.metrics)}."
    yield Drawing(figure, "Predicted and observed survival of groups of like prediction", caption)


def draw_embedding(outcome: Outcome, words: Words) -> Iterator[Drawing]:
    """Draw a map of the scored series' embeddings, coloured by class if there are classes.

    It is a t-SNE of at most 2,000 of them, or a PCA of fewer than 50; nothing for fewer than 5.
    """
    at = outcome.split.scored
    if outcome.embeddings is None or len(at) < 5:
        return
    predictions = ClassPredictions.of(outcome)
    known = (None, None) if predictions is None else (predictions.labels, words.classes)
    if len(at) >= 50:
        method, caption = "t-SNE", "The flattening keeps neighbourhoods only; distances across the map mean little."
    else:
        method, caption = "PCA", "The two directions of largest variation; what overlaps here may differ in others."
    some, noun = np.sort(np.random.default_rng(0).permutation(len(at))[:MAPPED]), outcome.dataset.noun
    if len(some) < len(at):
        caption += f" These are {MAPPED:,} of {len(at):,} {noun}, drawn at random."
    points = plots.project(outcome.embeddings[at[some]], method)
    figure = plots.embedding_map(points, known[0] if known[0] is None else known[0][some], known[1], method)
    yield Drawing(figure, f"Embeddings of {len(some):,} {noun} in two dimensions ({method})", caption)


def draw_learning(outcome: Outcome, words: Words) -> Iterator[Drawing]:
    """Draw the losses by epoch, one picture for pre-training and one for fine-tuning, as far as they took place."""
    for stage, result in (("pre-training", outcome.fit.pretraining), ("fine-tuning", outcome.fit.finetuning)):
        losses = {} if result is None else losses_by_epoch(result)
        if losses:
            yield Drawing(plots.learning_curves(losses, title=stage), f"Losses of {stage} by epoch")


def losses_by_epoch(result: TrainResult) -> dict[str, tuple[list[int], list[float]]]:
    """Return {"training": (epochs, losses), "validation": (epochs, losses)} of one training, epochs counted from 1.

    Training losses are means over an epoch. "validation" is absent if there are none, both if there are no losses.
    """
    by_epoch: dict[int, list[float]] = {}
    for line in result.history:
        if "loss" in line:
            by_epoch.setdefault(int(line["epoch"]) + 1, []).append(line["loss"])
    if not by_epoch:
        return {}
    losses = {"training": (sorted(by_epoch), [float(np.mean(by_epoch[epoch])) for epoch in sorted(by_epoch)])}
    tested = {int(line["epoch"]): line["validation"] for line in result.history if "validation" in line}
    if tested:
        losses["validation"] = (sorted(tested), [tested[epoch] for epoch in sorted(tested)])
    return losses


PICTURES = [
    Picture(
        "classes",
        "Class by class",
        "Each row of the matrix is a true class and shows, in per cent, which classes its objects were predicted to "
        "be; "
        "the diagonal is recall. The table adds precision (the share of predictions of a class that are right) and F1, "
        "their harmonic mean.",
        draw_classes,
    ),
    Picture("regression", "Predicted and true", "On the dashed line both agree.", draw_regression, private=True),
    Picture(
        "mistakes",
        "Where it fails",
        "For classes, the most certain mistake of each frequent confusion; for numbers, the largest errors.",
        draw_mistakes,
        private=True,
        kind="observations",
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
        "bands "
        "should hold 68 % and 95 % of the hollow points.",
        draw_series,
        private=True,
        kind="observations",
    ),
    Picture(
        "reconstructions",
        "Hidden patches",
        "Left the input, in the middle what the model saw (hidden patches are grey), right its reconstruction.",
        draw_reconstructions,
        private=True,
        kind="patches",
    ),
    Picture(
        "confidence",
        "Are the probabilities honest?",
        "Of the series whose class has a probability of 80 %, 80 % should be of that class. Points below the dashed "
        "line "
        "mean that the probabilities are too high, points above it that they are too low.",
        draw_reliability,
    ),
    Picture(
        "thresholds",
        "Other thresholds",
        "The scores of the classifier if a series counts as positive at another probability than one half.",
        draw_thresholds,
    ),
    Picture(
        "bands",
        "Are the bands honest?",
        "The share of hidden points inside each band should equal its promise. A lower share means that the band is "
        "too "
        "narrow, a higher one that it is too wide.",
        draw_bands,
    ),
    Picture(
        "embedding",
        "Map of embeddings",
        "Each point is one series as the encoder sees it; neighbours are series that the model finds similar.",
        draw_embedding,
        of_model=True,
    ),
    Picture(
        "learning",
        "Learning curves",
        "Both curves should fall and level off. Validation that rises while training still falls means overfitting.",
        draw_learning,
        of_model=True,
    ),
]
