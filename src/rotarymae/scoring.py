"""How good a trained model is on series that training never saw, compared with simpler methods."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from rotarymae.anomaly import HIDDEN
from rotarymae.arrays import ArrayDataset
from rotarymae.datasets import AnyDataset
from rotarymae.ensemble import Ensemble
from rotarymae.errors import InputError, listed
from rotarymae.interpolation import Interpolation, interpolate
from rotarymae.labels import Labels
from rotarymae.metrics import (
    MEDIAN_ERROR,
    RMSE,
    SCALED_RMSE,
    classification_metrics,
    interval_metrics,
    intervals,
    method_words,
    rarest_class,
    regression_metrics,
    survival_metrics,
)
from rotarymae.outcome import Outcome
from rotarymae.partners.baselines import (
    CHANNEL_MEAN,
    CONSTANT_NAMES,
    FORECASTS,
    INTERPOLATION,
    constant,
    predict_simply,
)
from rotarymae.partners.combine import INTERVAL
from rotarymae.pipeline import Pipeline
from rotarymae.prediction import embed, predict_and_embed
from rotarymae.preprocess import ObservationPreprocessor
from rotarymae.queries import as_queries
from rotarymae.reconstruction import reconstruct
from rotarymae.series import SeriesDataset, channel_index, hide, known_at, measured
from rotarymae.splits import Split
from rotarymae.system import Reporter
from rotarymae.targets import has_label, one_per_series, truth_at

DISTANCES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)  # edges of the groups of hidden observations, in units of position
ORIGINS = 8  # times from which each series is forecast
BEHIND, MIN_HIDDEN = 1.05, 20  # times the error of a simpler method, and hidden observations: less is chance


def score(outcome: Outcome, reporter: Reporter) -> None:
    """Predict with a trained pipeline, and score it and simple methods on held-out series.

    If nothing was held out, validation series are scored; if there are none, the training series.

    Args:
        outcome: the results of one run: its trained pipeline, data and split. It is changed in place: it gets metrics,
            and the embeddings of all series. With labels it also gets predictions of all series, half the width of
            their intervals, and other methods' predictions of the scored series. With an autoencoder it also gets
            predictions of observations (or patches of arrays) that are hidden in the scored series.
        reporter: shows progress and warnings.
    """
    dataset, split = outcome.dataset, outcome.split
    if outcome.pipeline.autoencoder is not None and dataset.kind == "patches":
        _score_reconstruction(outcome, cast(ArrayDataset, dataset.select(split.scored)), reporter)
    elif outcome.pipeline.autoencoder is not None:
        train, part = (cast(SeriesDataset, dataset.select(rows)) for rows in (split.train, split.scored))
        _score_interpolation(outcome, train, part, reporter)
    labels = outcome.pipeline.labels
    if labels is None:
        with reporter.bar("embedding") as on_step:
            outcome.embeddings = embed(outcome.pipeline, dataset, on_step=on_step)
        return
    with reporter.bar("predicting") as on_step:
        outcome.predicted, outcome.embeddings = predict_and_embed(outcome.pipeline, dataset, on_step=on_step)
    _score_predictions(outcome, labels, reporter)


def _score_predictions(outcome: Outcome, labels: Labels, reporter: Reporter) -> None:
    """Score the network, its partners (other methods, such as boosted trees) and a constant prediction.

    Args:
        outcome: has the true labels, and in `predicted` the network's predictions of all series. These fields are set:

            - `predicted`: the predictions of all series by the method that the fit chose. The predictions of
              validation series come from this method as trained without them.
            - `baselines`: the predictions of the scored series by the other methods and the constant.
            - `half_widths`: half the width of a regression's prediction intervals.
            - `metrics`: gets the entries of the task's name (the scores of all methods), "intervals" (bootstrap
              intervals of the chosen method's scores) and "predictor" (which method was chosen, and why).
        labels: labels of the pipeline: its classes, the scale of its numbers, or the intervals of times to an event.
        reporter: shows progress, and which method predicts; warns of classes that no scored series has.
    """
    predictor = outcome.pipeline.partners
    assert predictor is not None and outcome.predicted is not None and outcome.labels is not None
    dataset, split = outcome.dataset, outcome.split
    truth = truth_at(labels, outcome.labels, split.labelled)
    measure = _measure(labels, truth[split.scored])
    scored, chosen = split.scored, predictor.choice
    # The same series as the model in all: those it was trained on and, unless they are scored, those that chose the
    # epoch.
    known = np.sort(np.concatenate((split.train, split.validation))) if len(split.test) else split.train
    with reporter.bar("predicting"):
        every = predictor.every(outcome.predicted, dataset)
    for name, predicted in outcome.fit.validation_outputs.items():  # of members that had not learnt these series
        every[name][split.validation] = predicted
    outcome.predicted = every[chosen]
    guesses = {name: predicted[scored] for name, predicted in every.items()} | _guess(labels, truth[known], len(scored))
    outcome.baselines = {name: guess for name, guess in guesses.items() if name != chosen}
    outcome.half_widths = outcome.pipeline.half_widths(predictor=chosen)
    widths = partial(outcome.pipeline.half_widths, INTERVAL)
    outcome.metrics[labels.task] = _scores(measure, truth[scored], guesses, widths)
    outcome.metrics["intervals"] = intervals(chosen, measure, truth[scored], guesses[chosen])
    outcome.metrics["predictor"] = predictor.describe()
    unseen = [name for i, name in enumerate(outcome.classes) if i not in truth[scored]]
    if labels.task == "classification" and unseen:
        reporter.warn(f"the metrics say nothing about the class {listed(unseen)}: no scored series has it.")
    reporter.say(f"predictions are those of {method_words(chosen)!r}: {predictor.because}")


def _guess(labels: Labels, truth: np.ndarray, count: int) -> dict[str, np.ndarray]:
    """Predict the same for every series, as a baseline; return {name of the method: predictions [count, K]}, one entry.

    For a classification the K predictions are the frequencies of the classes ("most_common_class"); for a regression
    the means of the K outputs ("training_mean"); for times to an event the probabilities of K intervals ("life_table").

    Args:
        labels: labels of the pipeline.
        truth: targets of the training series, as `labels.truth` returns them.
        count: number of series to predict.
    """
    same = constant(labels.task, labels.for_partners(truth))
    return {CONSTANT_NAMES[labels.task]: np.tile(same, (count, 1))}


def _measure(labels: Labels, truth: np.ndarray, weights: Any = None) -> Callable[..., dict[str, float]]:
    """Return a function of (truth, predictions) that returns the metrics for the labels' task, {metric: value}.

    Args:
        labels: labels of the pipeline.
        truth: targets of all scored series, as `labels.truth` returns them; for classes only, to find the rarest.
        weights: for classes only: factors [classes] or [S, classes], by which probabilities are multiplied before the
            largest decides the class. None takes those of the labels.
    """
    if labels.task == "classification":
        weights = getattr(labels, "weights", ()) if weights is None else weights
        return partial(classification_metrics, weights=weights, rare=rarest_class(truth))
    return partial(survival_metrics, labels=cast(Any, labels)) if labels.task == "survival" else regression_metrics


def _scores(
    measure: Callable[..., dict[str, float]],
    truth: np.ndarray,
    guesses: dict[str, np.ndarray],
    widths: Callable[[str], np.ndarray | None],
) -> dict[str, dict[str, float]]:
    """Score the predictions of several methods, and their intervals; return {method: {metric: value}}.

    Args:
        measure: called with (truth, predictions); returns {metric: value}.
        truth: targets of the n predicted series, as `labels.truth` returns them.
        guesses: {method: predictions [n, K]}: probabilities of K classes or intervals of time, or K outputs.
        widths: called with a method's name; returns half the width of its prediction intervals, [K] or [n, K]. None
            means that it has no intervals, and only its predictions are scored.
    """
    return {
        name: measure(truth, guess) | interval_metrics(truth, guess, widths(name)) for name, guess in guesses.items()
    }


def evaluate_predictions(
    pipeline: Pipeline,
    dataset: AnyDataset,
    targets: np.ndarray,
    on_step: Any = None,
    spans: Mapping[str, float] | None = None,
    since: np.ndarray | None = None,
) -> dict[str, Any]:
    """Score a pipeline's predictions of labelled series; return metrics as in metrics.json.

    Scored are the fine-tuned network, its partners (other methods, such as boosted trees), and their combination. With
    `spans` and `since` they are also scored on series that are cut off early, as if less had been observed yet. Series
    without a label are left out.

    Args:
        pipeline: has all of these methods.
        dataset: S series or arrays.
        targets: labels [S], None or NaN for a series without one; for times to an event a structured array [S]; or
            numbers [S, outputs].
        on_step: called with (batches done, batches in all), for progress bars; None for none.
        spans: {name: time span, in the unit of times}. For each, series are cut off that long after `since`, and
            predicted again. None for no early scores.
        since: [S] times from which the spans count; a series with NaN is left out of the early scores. None for no
            early scores.

    Returns:
        A dictionary with these keys:

        - "series": {"labelled": number of series with a label, "unlabelled": number without}.
        - "scored_on": "labelled". "noun": "series" or another word for them.
        - The name of the task, such as "classification": {method: {metric: value}}.
        - "intervals": bootstrap intervals of the metrics of the method that predicts.
        - "predictor": which method predicts, and why.
        - "early", only with early scores: {"series": number of labelled series with a time `since`, "left_out": number
          without, "at": {name of a span: {method: {metric: value}}}}.

    Raises:
        InputError: a model without a head; another number of labels than series; an unknown class; no label at all;
            early scores, for which no labelled series has a time `since`, or a series has no observation until the end
            of a span.
    """
    labels = pipeline.require_labels()
    targets = one_per_series(targets, len(dataset))
    rows = np.flatnonzero(has_label(targets))
    if not len(rows):
        raise InputError("no series has a label; give labels for at least some series.")
    truth = labels.truth(targets[rows])
    part = dataset.select(rows)
    every, choice = pipeline.every(part, on_step), pipeline.predictor.choice
    measure, widths = _measure(labels, truth), partial(pipeline.half_widths, INTERVAL)
    early = {}
    if spans and since is not None:
        begun = np.flatnonzero(np.isfinite(since[rows]))
        if not len(begun):
            raise InputError(
                "--at counts from the first observation that the column of --first flags, and no labelled series has "
                "such an observation; name another column, or leave --first out."
            )
        each = {name: known_at(part.select(begun), since[rows[begun]] + span) for name, span in spans.items()}  # pyright: ignore
        scored = {
            name: _scores(measure, truth[begun], pipeline.every(cut, on_step), widths) for name, cut in each.items()
        }
        early = {"early": {"series": len(begun), "left_out": len(rows) - len(begun), "at": scored}}
    return {
        "series": {"labelled": len(rows), "unlabelled": len(dataset) - len(rows)},
        "scored_on": "labelled",
        "noun": dataset.noun,
        labels.task: _scores(measure, truth, every, widths),
        **early,
        "intervals": intervals(choice, measure, truth, every[choice]),
        "predictor": pipeline.predictor.describe(),
    }


def score_folds(outcome: Outcome, splits: Sequence[Split], reporter: Reporter) -> None:
    """Score a cross-validation: predict each fold's series with the pipeline trained without them, and score them all.

    A constant prediction is scored, too. Everything is computed from the saved pipelines, so that a resumed run has the
    same metrics. Series without a label are predicted by the average of all folds' models, and not scored.

    Args:
        outcome: has the data, the labels, and an `Ensemble` as its pipeline. It is changed in place: `predicted`,
            `half_widths` (None unless the method that predicts has intervals in all folds), `baselines`, `fold_of`,
            `fold_weights` (for classes) and `metrics` are set. `metrics` gets the entries of `evaluate_predictions`
            except "intervals" and "early", for all series together; "scored_on" is "folds". It also gets "folds",
            {method: what `_over_folds` returns}, for the methods that all folds have.
        splits: the split of each fold, in the order of `Ensemble.members`.
        reporter: shows progress, and which method predicts.
    """
    pipeline, dataset, rows = cast(Ensemble, outcome.pipeline), outcome.dataset, outcome.split.test
    labels = pipeline.require_labels()
    truth = truth_at(labels, cast(np.ndarray, outcome.labels), rows)
    choice, series, noun = pipeline.predictor.choice, len(dataset), dataset.noun
    weights, outcome.fold_of = np.ones((series, labels.outputs)), np.zeros(series, np.int64)
    predicted: dict[str, np.ndarray] = {}
    half: dict[str, np.ndarray] = {}
    folds: list[dict[str, dict[str, float]]] = []
    for number, (member, split) in enumerate(zip(pipeline.members, splits, strict=True), 1):
        with reporter.bar(f"predicting fold {number}") as on_step:
            guesses = member.every(dataset.select(split.test), on_step)
        known = np.sort(np.concatenate([split.train, split.validation]))
        theirs, widths = member.require_labels(), partial(member.half_widths, INTERVAL)
        guesses |= _guess(theirs, truth[known], len(split.test))
        for name, guess in guesses.items():
            of_all = predicted.setdefault(name, np.zeros((series, labels.outputs)))
            of_all[split.test] = labels.convert(guess, theirs)
            if (of_fold := widths(name)) is not None:
                half.setdefault(name, np.full((series, labels.outputs), np.nan))[split.test] = of_fold
        folds.append(_scores(_measure(theirs, truth[rows]), truth[split.test], guesses, widths))
        weights[split.test] = getattr(member.labels, "weights", ()) or 1.0
        outcome.fold_of[split.test] = number
    names = [name for name in predicted if all(name in fold for fold in folds)]
    if labels.task == "classification":
        outcome.fold_weights = weights
    measure = _measure(labels, truth[rows], weights[rows])
    half = {name: widths for name, widths in half.items() if np.isfinite(widths[rows]).all()}
    outcome.predicted, outcome.half_widths = predicted[choice], half.get(choice)
    if len(outcome.split.unlabelled):
        if outcome.half_widths is not None:
            outcome.half_widths[outcome.split.unlabelled] = pipeline.half_widths()
        outcome.predicted[outcome.split.unlabelled] = pipeline.outputs(dataset.select(outcome.split.unlabelled))
        weights[outcome.split.unlabelled] = getattr(labels, "weights", ()) or 1.0
    outcome.baselines = {name: predicted[name][rows] for name in names if name != choice}
    outcome.metrics |= {
        "series": {"labelled": len(rows), "unlabelled": len(outcome.split.unlabelled)},
        "scored_on": "folds",
        "noun": noun,
        labels.task: _scores(
            measure,
            truth[rows],
            {name: predicted[name][rows] for name in names},
            lambda name: half[name][rows] if name in half else None,
        ),
        "folds": {name: _over_folds([fold[name] for fold in folds]) for name in names},
        "predictor": pipeline.predictor.describe() | {"folds": [m.predictor.describe() for m in pipeline.members]},
    }
    reporter.say(f"predictions are those of {method_words(choice)!r}: {outcome.metrics['predictor']['because']}")


def _over_folds(scores: Sequence[dict[str, float]]) -> dict[str, dict[str, Any]]:
    """Summarise the metrics of one method over the folds of a cross-validation.

    Return {metric: {"mean": number, "std": number, "folds": list of numbers}}. The standard deviation is that of a
    sample (n - 1 degrees of freedom). Metrics that some fold lacks are left out; a fold lacks metrics of intervals if
    it had too few validation series for them.

    Args:
        scores: {metric: value} of each fold.
    """
    each = {name: [one[name] for one in scores] for name in scores[0] if all(name in one for one in scores)}
    return {
        name: {"mean": float(np.mean(values)), "std": float(np.std(values, ddof=1)), "folds": values}
        for name, values in each.items()
    }


def _score_reconstruction(outcome: Outcome, part: ArrayDataset, reporter: Reporter) -> None:
    """Hide patches of pictures, videos or sounds, predict them with the model and with two means, and score these.

    The first mean is that of the array's visible patches, for each channel; the second is the mean of the training
    data. Arrays of one patch are left out; if there are no others, nothing is done.

    Args:
        outcome: has the pipeline. It is changed in place: `reconstructions` gets the predictions, and "reconstruction"
            of `metrics` the number of hidden patches and the root mean squared errors of standardised cells.
        part: the scored arrays.
        reporter: shows progress.
    """
    several = np.flatnonzero(part.lengths >= 2)
    if not len(several):
        return
    with reporter.bar("reconstructing") as on_step:
        strategy = outcome.config.strategy("patches")
        reconstructions = reconstruct(outcome.pipeline, part.select(several), strategy, on_step=on_step)
    outcome.reconstructions = reconstructions
    channels = outcome.pipeline.require_arrays().channels
    away: dict[str, float] = {"model": 0.0, "mean_of_visible_patches": 0.0, "training_mean": 0.0}
    for one in reconstructions:
        # By channel: the last axis of a patch's values.
        mean = np.tile(one.visible.reshape(-1, channels).mean(0), one.truth.shape[1] // channels)
        guesses = (one.predicted, mean, np.zeros(1, np.float32))
        for name, guess in zip(away, guesses, strict=True):
            away[name] += float(np.square(one.truth - guess, dtype=np.float64).sum())
    cells = sum(one.truth.size for one in reconstructions)
    outcome.metrics["reconstruction"] = {
        "hidden_patches": sum(len(one.truth) for one in reconstructions),
        "methods": {name: {SCALED_RMSE: float(np.sqrt(total / cells))} for name, total in away.items()},
    }


def _score_interpolation(outcome: Outcome, train: SeriesDataset, part: SeriesDataset, reporter: Reporter) -> None:
    """Hide observations of series, predict them with the model and with simple methods, and score the predictions.

    A quarter of each series is hidden: runs of consecutive observations; or its end, if pre-training hid the ends of
    series. Series that are too short for that are left out; if all are, nothing is done.

    Args:
        outcome: has the pipeline. It is changed in place: `visible`, `hidden`, `interpolated` (the model's predictions)
            and "interpolation" of `metrics` (the errors, as `compare_at_hidden` returns them) are set.
        train: series on which the simple methods are fitted.
        part: the scored series.
        reporter: shows progress. Warns if, for a column of values with at least 20 hidden observations, the model's
            standardised error is over 5 % above that of a simple method.
    """
    forecasts = outcome.pipeline.forecasts
    # A model that learnt to forecast needs a series of two times, others one of two observations.
    if not any(len(np.unique(one.times)) > 1 if forecasts else len(one.times) > 1 for one in part):
        return
    # A model that learnt to forecast is asked to.
    visible, hidden, _ = hide(part, HIDDEN, seed=0, by="latest" if forecasts else "stretch")
    with reporter.bar("interpolating") as on_step:
        answers, errors = _compare(outcome.pipeline, INTERPOLATION, train, visible, hidden, on_step)
    outcome.visible, outcome.hidden, outcome.interpolated = visible, hidden, answers
    outcome.metrics["interpolation"] = errors
    for value, row in errors.items():
        scaled = {method: scores[SCALED_RMSE] for method, scores in row["methods"].items()}
        closest = min(scaled, key=scaled.__getitem__)
        if row["hidden_observations"] < MIN_HIDDEN or scaled["model"] <= BEHIND * scaled[closest]:
            continue
        advice = "more epochs of pre-training may help"
        reads_nearest = outcome.pipeline.require_autoencoder().config.neighbours
        if not reads_nearest and closest != CHANNEL_MEAN and outcome.config.pretrained is None:
            advice = "neighbours='on' lets the model start from the straight line"
        reporter.warn(
            f"hidden observations of {value!r} are predicted better by {method_words(closest)} (scaled error "
            f"{scaled[closest]:.3g}) than by the model ({scaled['model']:.3g}); {advice}."
        )


def _compare(
    pipeline: Pipeline,
    methods: Iterable[str],
    train: SeriesDataset,
    visible: SeriesDataset,
    hidden: SeriesDataset,
    on_step: Any = None,
) -> tuple[Interpolation, dict[str, Any]]:
    """Predict hidden observations from the visible ones of the same series, by the model and by simple methods.

    Args:
        pipeline: has the model and its preprocessor.
        methods: names of simple methods (`partners.baselines`) with which the model is compared.
        train: series on which these methods are fitted.
        visible, hidden: the two parts of the scored series; both have all series, in the same order.
        on_step: called with (batches done, batches in all), for progress bars; None for none.

    Returns:
        A pair: the model's predictions of the hidden observations, in their order; and the errors of the model and of
        all methods, as `compare_at_hidden` returns them.
    """
    preprocessor = pipeline.require_series()
    answers = interpolate(pipeline, visible, as_queries(hidden, preprocessor), on_step=on_step)
    train, visible, hidden = (part.with_values(preprocessor.value_names) for part in (train, visible, hidden))
    guesses = {"model": answers.mean, **predict_simply(methods, train, visible, hidden)}
    return answers, compare_at_hidden(preprocessor, hidden, answers, guesses)


def compare_at_hidden(
    preprocessor: ObservationPreprocessor, hidden: SeriesDataset, answers: Interpolation, guesses: dict[str, np.ndarray]
) -> dict[str, Any]:
    """Return the errors of the model and of other methods at hidden observations, for each column of values.

    A value is compared if all methods predict it. If only a limit is known, such as "<5", a prediction that agrees with
    it has the error 0; for any other prediction the error is the distance to the limit. Limits are not left out,
    because the measured values alone are biased (a faint star is measured only when it is bright): a method that
    ignores limits would then look better than one that uses them.

    Args:
        preprocessor: the preprocessor of the model, which standardises values.
        hidden: the n hidden observations, with the V columns of values that the model predicts.
        answers: the model's predictions of these observations, in their order. Its standardised means, its bands and
            its distances to visible observations are read.
        guesses: {method: predictions [n, V]} in the table's units; NaN where a method predicts nothing. Under "model"
            are the means of `answers`.

    Returns:
        {name of a column of values: row}. A row is a dictionary:

        - "hidden_observations": the number of compared values; "limits", if there are any: how many of them are limits.
        - "methods": {method: {error: number}}. "root_mean_squared_error_scaled" is that of standardised values. Rows of
          a single channel, and of data without channels, also have "root_mean_squared_error" and
          "median_absolute_error" (of values that are no limits), in the table's unit. All are NaN if nothing is
          compared.
        - "share_inside_band": {share of a band, as text ("0.95"): share of the values inside}, if `answers` has bands
          and any value that is no limit is compared; limits do not count.
        - "channels": {channel, as text: row}, for each channel of hidden observations, if the data has channels.
        - "by_distance": a list of rows with scaled errors only, one for each range of distances. A distance is the time
          to the nearest visible observation in the channel, in units of position; infinite without one. "above" is the
          lower edge of the range. Ranges with fewer than 20 compared values that are no limits are left out.
    """
    scaler, truth = preprocessor.values, np.asarray(hidden.values, np.float64)
    channels, known = channel_index(hidden), np.isfinite(measured(hidden))
    sides = np.zeros(truth.shape, np.int8) if hidden.sides is None else hidden.sides
    scaled = {name: scaler.transform(guess, channels) for name, guess in guesses.items() if name != "model"}
    scaled["model"] = answers.scaled_mean
    scaled_truth = scaler.transform(truth, channels)
    inside = {share: (truth >= lower) & (truth <= upper) for share, (lower, upper) in answers.bands.items()}

    def measure(rows: np.ndarray, v: int, own_unit: bool) -> dict[str, Any]:
        """Return the row, without "channels" and "by_distance", of some hidden observations and one column of values.

        Args:
            rows: indices of the observations; if none of them can be compared, errors are NaN.
            v: index of the column of values.
            own_unit: whether to return errors in the table's unit as well; standardised ones are always there.
        """
        # A channel that training never saw has no mean: methods are compared where all of them answer.
        rows = rows[np.all([np.isfinite(guess[rows, v]) for guess in guesses.values()], axis=0)]
        exact, side = rows[known[rows, v]], sides[rows, v]

        def away(guess: np.ndarray, values: np.ndarray) -> np.ndarray:
            """Return how far guesses [rows] are from what the observations allow: the value itself, or a side of it."""
            error = guess[rows, v] - values[rows, v]
            return np.where((side == 0) | (np.sign(error) == -side), error, 0.0)

        methods = {}
        for name, guess in guesses.items():
            methods[name] = {SCALED_RMSE: _root_mean_square(away(scaled[name], scaled_truth))}
            if own_unit:
                methods[name][RMSE] = _root_mean_square(away(guess, truth))
                error = np.abs(guess[exact, v] - truth[exact, v])
                methods[name][MEDIAN_ERROR] = float(np.median(error)) if len(exact) else np.nan
        row: dict[str, Any] = {"hidden_observations": len(rows), "methods": methods}
        row |= {"limits": len(rows) - len(exact)} if len(exact) < len(rows) else {}
        if inside and len(exact):
            row["share_inside_band"] = {f"{share:g}": float(x[exact, v].mean()) for share, x in inside.items()}
        return row

    every = np.arange(len(truth))
    rows_of = {}
    for v, name in enumerate(preprocessor.value_names):
        # Channels may have different units (heart rate, pH): only scaled errors are pooled over them.
        row = measure(every, v, own_unit=hidden.channel_names is None)
        if hidden.channel_names is not None:
            row["channels"] = {
                str(channel): measure(every[channels == c], v, own_unit=True)
                for c, channel in enumerate(hidden.channel_names)
                if (channels == c).any()
            }
        # How far a hidden observation lies from any that is left, in units of position: some median gaps.
        far = np.searchsorted(DISTANCES, answers.distance / preprocessor.positions.unit)
        groups = [(edge, measure(every[far == k], v, own_unit=False)) for k, edge in enumerate((0.0, *DISTANCES))]
        measured_of = lambda part: part["hidden_observations"] - part.get("limits", 0)  # noqa: E731
        row["by_distance"] = [{"above": edge, **part} for edge, part in groups if measured_of(part) >= MIN_HIDDEN]
        rows_of[name] = row
    return rows_of


def evaluate_forecasts(
    pipeline: Pipeline, dataset: SeriesDataset, horizon: float, on_step: Any = None
) -> dict[str, Any]:
    """Return the errors of forecasts by the model and by simple methods, for each column of values.

    Every series is forecast from eight times, evenly spread from the middle of its span to `horizon` before its end; or
    from the middle alone, if it is later than `horizon` before the end. A forecast reads the observations until its
    time. It is compared with the later ones, up to `horizon` ahead; an observation may be compared with several
    forecasts. Series without an observation to compare are left out. Simple methods read the same; what they need of a
    whole table, such as its season, is taken from `dataset`.

    Args:
        pipeline: has the model.
        dataset: the series.
        horizon: how far ahead, in the unit of the series' times.
        on_step: called with (batches done, batches in all), for progress bars; None for none.

    Returns:
        {name of a column of values: row}. The entry "methods" of a row is {method: {error: number}}, such as the root
        mean squared error of standardised values. `compare_at_hidden` lists all entries, with their units.

    Raises:
        InputError: no observation lies within the horizon after any of these times; the model predicts no values.
    """
    first, last = dataset.times[dataset.offsets[:-1]], dataset.times[dataset.offsets[1:] - 1]
    middle = (first + last) / 2
    share = np.arange(ORIGINS) / (ORIGINS - 1)
    origins = middle[:, None] + (last - horizon - middle).clip(0)[:, None] * share
    new = np.diff(origins, axis=1, prepend=-np.inf) != 0  # of short series all are the same
    copies = dataset.select(np.repeat(np.arange(len(dataset)), ORIGINS))
    ahead = copies.times - np.repeat(origins.ravel(), copies.lengths)
    asked = (ahead > 0) & (ahead <= horizon) & np.repeat(new.ravel(), copies.lengths)
    answered = np.add.reduceat(asked, copies.offsets[:-1]) > 0
    if not answered.any():
        raise InputError(
            f"forecasts start in the second half of each series, and no observation follows within {horizon:.6g}; give "
            "a longer horizon."
        )
    part, rows = copies.select(np.flatnonzero(answered)), np.repeat(answered, copies.lengths)
    visible, hidden = part.mask_observations(ahead[rows] <= 0), part.mask_observations(asked[rows])
    return _compare(pipeline, FORECASTS, dataset, visible, hidden, on_step)[1]


def _root_mean_square(x: np.ndarray) -> float:
    """Return the root mean square of an array [n]; NaN if it is empty."""
    return float(np.sqrt(np.mean(np.square(x)))) if len(x) else np.nan
