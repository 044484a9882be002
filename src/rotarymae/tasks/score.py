"""How good a trained model is on series that training never saw, beside what is simpler."""

from __future__ import annotations

import errno
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn import metrics

from rotarymae.arrays import ArrayDataset
from rotarymae.checkpoints import ModelDirectory
from rotarymae.errors import InputError, listed
from rotarymae.partners import TITLES, Predictor, baselines, fit_predictor
from rotarymae.series import SeriesDataset, channel_index, hide
from rotarymae.system import Reporter
from rotarymae.tasks.data import AnyDataset
from rotarymae.tasks.interpolation import interpolate
from rotarymae.tasks.outcome import Outcome
from rotarymae.tasks.predict import embed, predict_and_embed
from rotarymae.tasks.pretrain_finetune import autoencoder_of
from rotarymae.tasks.queries import as_queries
from rotarymae.tasks.reconstruction import reconstruct
from rotarymae.tasks.surprise import HIDDEN
from rotarymae.tasks.targets import Task, has_label, narrowed, one_per_series, task_of

SCALED_ERROR = "root mean squared error, scaled"
CALIBRATION = "expected calibration error"
BEHIND, ENOUGH = 1.05, 20  # times the error of a simpler method, and hidden observations: less is chance
RESAMPLES = 200  # of the scored series, for intervals; of many series fewer, whose metrics take long and vary little
FEWEST, MEASURED = 40, 1_000_000  # resamples, series in all resamples


def score(outcome: Outcome, reporter: Reporter) -> None:
    """Fills in predictions, metrics and baselines, on series that training never saw where there are any."""
    dataset, split, noun = outcome.dataset, outcome.split, outcome.dataset.noun
    outcome.metrics |= {
        "series": {
            part: len(rows) for part, rows in vars(split).items() if part not in ("unlabelled", "left_out") or len(rows)
        },
        "scored on": split.scored_words(noun),
    }
    if isinstance(dataset, ArrayDataset):
        _score_reconstruction(outcome, dataset.select(split.scored), reporter)
    else:
        _score_interpolation(outcome, dataset.select(split.train), dataset.select(split.scored), reporter)
    assert outcome.pretrained is not None
    if outcome.finetuned is None:
        with reporter.bar("embedding") as on_step:
            outcome.embeddings = embed(outcome.pretrained.directory, dataset, on_step=on_step)
        return
    with reporter.bar("predicting") as on_step:
        outcome.predicted, outcome.embeddings = predict_and_embed(outcome.finetuned.directory, dataset, on_step=on_step)
    task = task_of(outcome.finetuned.model)
    assert task is not None
    _score_predictions(outcome, task, reporter)


@contextmanager
def without(what: str, reporter: Reporter) -> Iterator[None]:
    """What fails inside is left out, with a warning: no training is lost to a baseline or a picture."""
    try:
        yield
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise  # the run can be resumed when there is room again
        reporter.warn(f"{what} failed and is left out ({type(error).__name__}: {error}).")


def _score_predictions(outcome: Outcome, task: Task, reporter: Reporter) -> None:
    """Chooses what predicts, puts its predictions in place of the model's, and scores all methods."""
    assert outcome.finetuned is not None and outcome.predicted is not None
    dataset, split, seed = outcome.dataset, outcome.split, outcome.config.seed
    truth = _truth(outcome, task)
    methods, measure = BY_TASK[task.name]
    scored, raw, asked = split.scored, outcome.predicted, outcome.config.predictor
    parts = (split.train, split.validation)
    static = outcome.finetuned.preprocessor.static
    known_to_model = (dataset, truth, *parts, raw[split.validation], static)
    predictor, of_validation = fit_predictor(asked, task.name, *known_to_model, seed, reporter)
    outcome.predictor = predictor
    # The same series as the model in all: those it was trained on and, unless they are scored, those that chose the
    # epoch.
    known = np.sort(np.concatenate(parts)) if len(split.test) else split.train
    train, test = dataset.select(known), dataset.select(scored)
    with reporter.bar("predicting"):
        every = predictor.every(raw, dataset)
    for name, predicted in of_validation.items():  # of members that had not learnt these series
        every[name][split.validation] = predicted
    outcome.predicted = every[predictor.choice]
    guesses = {TITLES[name]: predicted[scored] for name, predicted in every.items()}
    with reporter.bar("baselines"):
        for method in methods:
            with without(f"the baseline {method.name!r}", reporter):
                guesses[method.name] = method().fit(train, truth[known]).predict(test)
    chosen = TITLES[predictor.choice]
    outcome.baselines = {name: guess for name, guess in guesses.items() if name != chosen}
    outcome.metrics[task.name] = {name: measure(truth[scored], guess) for name, guess in guesses.items()}
    outcome.metrics["intervals"] = intervals(chosen, measure, truth[scored], guesses[chosen])
    outcome.metrics["predictor"] = predictor.describe()
    if task.name == "classification":
        classes = outcome.finetuned.preprocessor.classes or ()
        if unseen := [name for i, name in enumerate(classes) if i not in truth[scored]]:
            reporter.warn(f"the metrics say nothing of the class {listed(unseen)}: no scored series is of it.")
        stages = {"before": raw[scored], "after": every["model"][scored]}
        outcome.metrics["calibration of the model"] = {"temperature": predictor.temperatures["model"]} | {
            stage: {name: measure(truth[scored], guess)[name] for name in ("log-loss", CALIBRATION)}
            for stage, guess in stages.items()
        }
    reporter.say(f"predictions are those of {chosen!r}: {predictor.because}")


def _truth(outcome: Outcome, task: Task) -> np.ndarray:
    """What is true of every series, as the task compares it; 0 of a series without a label, which nothing scores."""
    assert outcome.finetuned is not None and outcome.labels is not None
    rows = outcome.split.labelled
    known = task.truth(outcome.finetuned.preprocessor, narrowed(outcome.labels[rows]))
    truth = np.zeros((len(outcome.dataset), *known.shape[1:]), known.dtype)
    truth[rows] = known
    return truth


def classification_metrics(truth: np.ndarray, probabilities: np.ndarray) -> dict[str, float]:
    """Metrics of probabilities [S, classes] for the true classes int [S].

    With two classes AUROC, average precision and the Brier score are of the second. With more, the first two are means
    over one class against the rest. NaN where only one class is left to tell apart.
    """
    best, classes = probabilities.argmax(1), probabilities.shape[1]
    found = {
        "accuracy": float(metrics.accuracy_score(truth, best)),
        "macro-F1": float(metrics.f1_score(truth, best, average="macro")),
        "log-loss": float(metrics.log_loss(truth, probabilities, labels=np.arange(classes))),
        CALIBRATION: expected_calibration_error(truth, probabilities),
    }
    compared = [1] if classes == 2 else range(classes)
    compared = [c for c in compared if 0 < (truth == c).sum() < len(truth)]
    macro = "" if classes == 2 else "macro "

    def mean(metric: Callable[..., Any]) -> float:
        return float(np.mean([metric(truth == c, probabilities[:, c]) for c in compared])) if compared else np.nan

    found[f"{macro}AUROC"] = mean(metrics.roc_auc_score)
    found[f"{macro}average precision"] = mean(metrics.average_precision_score)
    if classes == 2:
        found["Brier score"] = float(metrics.brier_score_loss(truth == 1, probabilities[:, 1]))
    return found


def expected_calibration_error(truth: np.ndarray, probabilities: np.ndarray, bins: int = 15) -> float:
    """How far the largest probability is from the share that is right, in even bins of it, on average over series."""
    sure, right = probabilities.max(1), probabilities.argmax(1) == truth
    bin_of = np.minimum((sure * bins).astype(int), bins - 1)
    away = np.bincount(bin_of, right - sure, minlength=bins)
    return round(float(np.abs(away).sum() / len(truth)), 12)  # what sums leave behind, such as 3e-17, is 0


def regression_metrics(truth: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Metrics of predictions [S, outputs], of each output in its own unit; NaN in `truth` is missing."""
    found = {}
    for i in range(truth.shape[1]):
        known = np.isfinite(truth[:, i])
        wanted, guess = truth[known, i], predicted[known, i]
        of = "" if truth.shape[1] == 1 else f" of output {i}"
        away = guess - wanted
        found[f"RMSE{of}"] = float(np.sqrt(np.mean(away**2))) if known.any() else np.nan
        found[f"MAE{of}"] = float(np.abs(away).mean()) if known.any() else np.nan
        found[f"R²{of}"] = float(metrics.r2_score(wanted, guess)) if known.sum() > 1 else np.nan
    return found


# Of each task: what is simpler, and what is measured.
BY_TASK = {
    "classification": (baselines.CLASSIFICATION, classification_metrics),
    "regression": (baselines.REGRESSION, regression_metrics),
}


def intervals(method: str, measure: Callable[..., dict[str, float]], truth: Any, predicted: Any) -> dict[str, Any]:
    """The middle 95 % of a method's metrics over resamples of the scored series: how far chance alone may move them."""
    draw, found = np.random.default_rng(0), []
    with warnings.catch_warnings():  # a resample may lack a class
        warnings.simplefilter("ignore")
        for _ in range(max(FEWEST, min(RESAMPLES, MEASURED // len(truth)))):
            rows = draw.integers(len(truth), size=len(truth))
            found.append(measure(truth[rows], predicted[rows]))
    every = {name: np.array([one[name] for one in found]) for name in found[0]}
    # Resampling makes calibration look worse: its interval would not hold the 0 of honest probabilities.
    known = {name: column[np.isfinite(column)] for name, column in every.items() if name != CALIBRATION}
    middle = {name: np.quantile(column, (0.025, 0.975)).tolist() for name, column in known.items() if len(column)}
    return {"of": method, "middle 95 % of resamples": middle}


def interval_words(of_run: dict[str, Any]) -> str:
    """The intervals of a run's metrics in a sentence; empty without any."""
    found = of_run.get("intervals")
    if found is None:
        return ""
    spans = [f"{name} {low:.3g} to {high:.3g}" for name, (low, high) in found["middle 95 % of resamples"].items()]
    return f"95 % intervals of {found['of']!r}, from resampling the series: {', '.join(spans)}."


def evaluate_predictions(
    directory: ModelDirectory, predictor: Predictor, dataset: AnyDataset, labels: np.ndarray, on_step: Any = None
) -> dict[str, Any]:
    """Metrics, laid out as in metrics.json, on series with labels [S]; those without are left out.

    The methods are the fine-tuned model, the others of its predictor, and their combination.

    Raises:
        InputError: a model without a head, another number of labels than series, a label that is none of its classes,
            no label at all.
    """
    task = task_of(directory.model)
    if task is None or directory.preprocessor is None:
        raise InputError("the model is not fine-tuned; `rotarymae fit` with labels makes one that predicts them.")
    labels = one_per_series(labels, len(dataset))
    rows = np.flatnonzero(has_label(labels))
    if not len(rows):
        raise InputError("no series has a label; give the labels of some.")
    truth = task.truth(directory.preprocessor, narrowed(labels[rows]))
    part = dataset.select(rows)
    every = predictor.every(predict_and_embed(directory, part, on_step=on_step)[0], part)
    measure = BY_TASK[task.name][1]
    return {
        "series": {"scored": len(rows), "without a label": len(dataset) - len(rows)},
        "scored on": f"{len(rows):,} of {len(dataset):,} {dataset.noun}",
        task.name: {TITLES[name]: measure(truth, predicted) for name, predicted in every.items()},
        "intervals": intervals(TITLES[predictor.choice], measure, truth, every[predictor.choice]),
        "predictor": predictor.describe(),
    }


def _score_reconstruction(outcome: Outcome, part: ArrayDataset, reporter: Reporter) -> None:
    """How far the model's hidden patches are from what was there, beside means; hidden as in pre-training."""
    assert outcome.pretrained is not None
    several = np.flatnonzero(part.lengths >= 2)
    if not len(several):
        return
    with reporter.bar("reconstructing") as on_step:
        directory, masking = outcome.pretrained.directory, outcome.config.strategy()
        found = reconstruct(directory, part.select(several), masking, on_step=on_step)
    outcome.reconstructions = found
    channels = directory.of_arrays().channels
    away: dict[str, float] = {"model": 0.0, "mean of the visible patches": 0.0, "training mean": 0.0}
    for one in found:
        # By channel: the last axis of a patch's values.
        mean = np.tile(one.visible.reshape(-1, channels).mean(0), one.truth.shape[1] // channels)
        guesses = (one.predicted, mean, np.zeros(1, np.float32))
        for name, guess in zip(away, guesses, strict=True):
            away[name] += float(np.square(one.truth - guess, dtype=np.float64).sum())
    cells = sum(one.truth.size for one in found)
    outcome.metrics["reconstruction"] = {
        "hidden patches": sum(len(one.truth) for one in found),
        "methods": {name: {SCALED_ERROR: float(np.sqrt(total / cells))} for name, total in away.items()},
    }


def _score_interpolation(outcome: Outcome, train: SeriesDataset, part: SeriesDataset, reporter: Reporter) -> None:
    assert outcome.pretrained is not None
    if (part.lengths < 2).all():
        return
    preprocessor, guesses = outcome.pretrained.directory.of_series(), {}
    # A model that learnt to forecast is asked to.
    visible, hidden, _ = hide(part, HIDDEN, seed=0, by="latest" if preprocessor.forecasts else "observation")
    with reporter.bar("interpolating") as on_step:
        queries = as_queries(hidden, preprocessor)
        found = interpolate(outcome.pretrained.directory, visible, queries, on_step=on_step)
    outcome.visible, outcome.hidden, outcome.interpolated = visible, hidden, found
    guesses["model"] = found.mean
    train, visible, hidden = (part.with_values(preprocessor.value_names) for part in (train, visible, hidden))
    with reporter.bar("baselines"):
        for method in baselines.INTERPOLATION:
            with without(f"the baseline {method.name!r}", reporter):
                guesses[method.name] = method().fit(train).predict(visible, hidden)

    scaler, truth = preprocessor.values, np.asarray(hidden.values, np.float64)
    channels = channel_index(hidden)
    scaled = {name: scaler.transform(guess, channels) for name, guess in guesses.items() if name != "model"}
    scaled["model"] = found.scaled_mean
    scaled_truth = scaler.transform(truth, channels)
    inside = {share: (truth >= lower) & (truth <= upper) for share, (lower, upper) in found.bands.items()}

    def measure(rows: np.ndarray, v: int, own_unit: bool) -> dict[str, Any]:
        # A channel that training never saw has no mean: methods are compared where all of them answer.
        rows = rows[np.all([np.isfinite(guess[rows, v]) for guess in guesses.values()], axis=0)]
        methods = {}
        for name, guess in guesses.items():
            methods[name] = {SCALED_ERROR: _root_mean_square(scaled[name][rows, v] - scaled_truth[rows, v])}
            if own_unit:
                away = guess[rows, v] - truth[rows, v]
                methods[name]["root mean squared error"] = _root_mean_square(away)
                methods[name]["median absolute error"] = float(np.median(np.abs(away))) if len(rows) else np.nan
        row: dict[str, Any] = {"hidden observations": len(rows), "methods": methods}
        if inside and len(rows):
            row["share inside band"] = {f"{100 * share:.0f} %": float(x[rows, v].mean()) for share, x in inside.items()}
        return row

    every = np.arange(len(truth))
    outcome.metrics["interpolation"] = {}
    for v, name in enumerate(preprocessor.value_names):
        # Channels may have different units (heart rate, pH): only scaled errors are pooled over them.
        row = measure(every, v, own_unit=hidden.channel_names is None)
        if hidden.channel_names is not None:
            row["channels"] = {
                str(channel): measure(every[channels == c], v, own_unit=True)
                for c, channel in enumerate(hidden.channel_names)
                if (channels == c).any()
            }
        outcome.metrics["interpolation"][name] = row
        _warn_if_behind(outcome, name, row, reporter)


def _warn_if_behind(outcome: Outcome, value: str, row: dict[str, Any], reporter: Reporter) -> None:
    """Says which simpler method is closer to the hidden observations than the model, and what may help."""
    errors = {method: found[SCALED_ERROR] for method, found in row["methods"].items()}
    closest = min(errors, key=errors.__getitem__)
    if row["hidden observations"] < ENOUGH or errors["model"] <= BEHIND * errors[closest]:
        return
    assert outcome.pretrained is not None
    advice = "more epochs of pre-training may help"
    reads_nearest = autoencoder_of(outcome.pretrained.directory).config.neighbours
    if not reads_nearest and closest != baselines.ChannelMean.name and outcome.config.pretrained is None:
        advice = "neighbours='on' lets the model start from the straight line"
    reporter.warn(
        f"hidden observations of {value!r} are predicted better by {closest} (scaled error {errors[closest]:.3g}) than "
        f"by the model ({errors['model']:.3g}); {advice}."
    )


def _root_mean_square(x: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(x)))) if len(x) else np.nan
