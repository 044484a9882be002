"""From a table to a run folder: split, pre-train, fine-tune, score beside what is simpler, and write it all down.

A run folder holds `pretrained/` and `finetuned/` (model directories), `training/` (logs and checkpoints),
metrics.json, predictions.parquet, embeddings.parquet, interpolations.parquet and report.html.
"""

from __future__ import annotations

import dataclasses
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.metrics import accuracy_score, f1_score

from rotarymae.atomic_write import replacing, write_text
from rotarymae.checkpoints import ModelDirectory, save
from rotarymae.errors import InputError
from rotarymae.progress import Reporter
from rotarymae.provenance import hardware, versions
from rotarymae.series import SeriesDataset, plain
from rotarymae.tasks import baselines
from rotarymae.tasks.interpolation import Interpolation, as_queries, hide, interpolate
from rotarymae.tasks.predict import embed, predict_probabilities, predict_values
from rotarymae.tasks.pretrain_finetune import (
    Settings,
    Trained,
    check_settings,
    check_targets,
    finetune,
    pretrain,
    split_off,
)

FEWEST = 10  # series; with fewer none are held out
RESULTS = ("metrics.json", "predictions.parquet", "embeddings.parquet", "interpolations.parquet", "report.html")
HIDDEN = 0.25  # share of a held-out series' observations that is hidden to score interpolation


@dataclass(frozen=True)
class Split:
    """Places of the series that are trained on, that choose the best epoch, and that are only scored."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


@dataclass
class Outcome:
    """All that a run found out, for metrics.json and the report."""

    dataset: SeriesDataset
    split: Split
    settings: Settings
    metrics: dict[str, Any] = field(default_factory=dict)
    pretrained: Trained | None = None
    finetuned: Trained | None = None
    visible: SeriesDataset | None = None
    hidden: SeriesDataset | None = None
    interpolated: Interpolation | None = None
    linear: np.ndarray | None = None
    labels: np.ndarray | None = None
    predicted: np.ndarray | None = None
    boosted: np.ndarray | None = None
    embeddings: np.ndarray | None = None
    seconds: float = 0.0
    command: str = ""
    warnings: list[str] = field(default_factory=list)


def fit_table(
    dataset: SeriesDataset,
    labels: np.ndarray | None,
    settings: Settings,
    out: str | Path,
    *,
    task: str = "auto",
    holdout: float = 0.25,
    columns: dict[str, Any] | None = None,
    resume: bool = False,
    command: str = "",
    reporter: Reporter | None = None,
) -> Outcome:
    """Trains on a data set and writes a run folder, the report excepted (`summary.write_report`).

    Args:
        labels: [S] classes or numbers, or None to pre-train only.
        task: "classification", "regression", or "auto": regression for numbers that are not whole.
        holdout: share of series that is only scored; none are with fewer than ten series.
        columns: how the table was read; kept with the model.
        resume: go on with an interrupted run of the same table and settings.

    Raises:
        InputError: before anything is written: an `out` that holds something already and no `resume`; labels or
            settings that cannot be used, as `pretrain` and `finetune` say.
    """
    reporter = reporter or Reporter(quiet=True)
    started, out = time.monotonic(), Path(out)
    # Everything that can be refused is refused before a file is written.
    check_folder(out, resume)
    task = choose_task(labels, task)
    if labels is not None:
        check_targets(labels, len(dataset), task)
    split = make_split(len(dataset), labels if task == "classification" else None, holdout, settings.pretrain.seed)
    check_settings(dataset.select(split.train), settings)
    dataset.warn_constant_channels()
    out.mkdir(parents=True, exist_ok=True)
    outcome = Outcome(dataset, split, settings, labels=labels, command=command)
    train, validation = dataset.select(split.train), None
    if len(split.validation):
        validation = dataset.select(split.validation)
    going = "auto" if resume else "never"
    with reporter.bar("pre-training") as on_step:
        outcome.pretrained = pretrain(
            train, settings, validation=validation, folder=out / "training" / "pretrain", resume=going, on_step=on_step
        )
    read = dataclasses.replace(outcome.pretrained.preprocessor, columns=columns or {})
    outcome.pretrained = dataclasses.replace(outcome.pretrained, preprocessor=read)
    save(outcome.pretrained.model, out / "pretrained", read, f"Pre-trained on {len(train):,} series.")
    if labels is not None:
        with reporter.bar("fine-tuning") as on_step:
            outcome.finetuned = finetune(
                outcome.pretrained,
                train,
                labels[split.train],
                settings,
                task=task,
                validation=None if validation is None else (validation, labels[split.validation]),
                folder=out / "training" / "finetune",
                resume=going,
                on_step=on_step,
            )
        reporter.say(f"fine-tuning started from all {len(outcome.finetuned.loaded)} tensors of the pre-trained encoder")
        save(
            outcome.finetuned.model,
            out / "finetuned",
            outcome.finetuned.preprocessor,
            f"Pre-trained and fine-tuned ({task}) on {len(train):,} series.",
        )
    score(outcome, task, reporter)
    outcome.seconds = time.monotonic() - started
    outcome.metrics["seconds"] = round(outcome.seconds, 1)
    outcome.warnings = list(reporter.warnings)
    write_results(outcome, out, task)
    return outcome


def check_folder(out: Path, resume: bool) -> None:
    """Refuses to write over something; an interrupted run is gone on with."""
    _refuse_file_above(out)
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; wanted a new folder.")
    if not out.is_dir() or not any(out.iterdir()):
        return
    if not resume:
        raise InputError(f"{out} holds something already; choose a new folder, or go on with its run by --resume.")
    if not (out / "training").is_dir():
        raise InputError(f"{out} holds something, but no run that could be resumed; choose a new folder.")
    # An interrupted run has written none of these: they are a finished run's results, or somebody's own files.
    there = [name for name in RESULTS if (out / name).exists()]
    if there:
        raise InputError(f"{out} holds results already ({', '.join(there)}); move them away, or choose a new folder.")


def choose_task(labels: np.ndarray | None, task: str) -> str:
    """What the labels are; "auto" decides for numbers: a regression when one is not whole."""
    if task not in ("auto", "classification", "regression"):
        raise InputError(f"task {task!r}; wanted 'auto', 'classification' or 'regression'.")
    if task != "auto" or labels is None:
        return task
    numbers = np.asarray(labels)
    if numbers.dtype.kind == "f" and bool((numbers != np.round(numbers)).any()):
        return "regression"
    different = len(np.unique(numbers))
    if numbers.dtype.kind in "if" and len(numbers) >= FEWEST and different > len(numbers) / 2:
        raise InputError(
            f"the labels are {different} different whole numbers for {len(numbers)} series; say whether they are "
            "classes or measurements, by task='classification' or 'regression' (--task)."
        )
    return "classification"


def make_split(series: int, classes: np.ndarray | None, holdout: float, seed: int) -> Split:
    """Random parts, with every class in each as far as it goes, and in `train` always. With fewer than ten series all
    are trained on."""
    everything, none = np.arange(series), np.zeros(0, np.int64)
    if not 0 <= holdout < 1:
        raise InputError(f"holdout is {holdout}; wanted at least 0 and less than 1, the share of series to score.")
    if series < FEWEST or holdout == 0:
        return Split(everything, none, none)

    rest, test = split_off(everything, classes, holdout, seed)
    train, validation = split_off(rest, classes, 0.15, seed)
    return Split(train, validation, test)


def score(outcome: Outcome, task: str, reporter: Reporter) -> None:
    """Fills in predictions, metrics and baselines, on series that training never saw where there are any."""
    dataset, split = outcome.dataset, outcome.split
    held = len(split.test) > 0
    scored = split.test if held else split.train
    outcome.metrics |= {
        "series": {"train": len(split.train), "validation": len(split.validation), "test": len(split.test)},
        "scored on": "held-out series" if held else "the training series, for want of others",
    }
    part = dataset.select(scored)
    _score_interpolation(outcome, part, reporter)
    assert outcome.pretrained is not None
    last = outcome.finetuned or outcome.pretrained
    with reporter.bar("embedding") as on_step:
        outcome.embeddings = embed(last.directory, dataset, on_step=on_step)
    if outcome.finetuned is None or outcome.labels is None:
        return
    with reporter.bar("predicting") as on_step:
        if task == "classification":
            outcome.predicted = predict_probabilities(outcome.finetuned.directory, dataset, on_step=on_step)
        else:
            outcome.predicted = predict_values(outcome.finetuned.directory, dataset, on_step=on_step)
    train_on = np.sort(np.concatenate([split.train, split.validation]))
    if task == "classification":
        _score_classes(outcome, scored, train_on)
    else:
        truth = np.asarray(outcome.labels, np.float64)
        mean = truth[train_on].mean()
        outcome.metrics["regression"] = {
            "mean squared error": _mean_square(outcome.predicted[scored, 0] - truth[scored]),
            "training mean": {"mean squared error": _mean_square(mean - truth[scored])},
        }


def _score_classes(outcome: Outcome, scored: np.ndarray, train_on: np.ndarray) -> None:
    assert outcome.finetuned is not None and outcome.labels is not None and outcome.predicted is not None
    classes = np.array(outcome.finetuned.preprocessor.classes)
    labels = np.array([plain(label) for label in outcome.labels])
    found = {"model": classes[outcome.predicted[scored].argmax(1)]}
    found["most common class"] = baselines.majority(labels[train_on], len(scored))
    features, _ = baselines.summary_features(outcome.dataset)
    # The same series as ours in all: those we trained on and those that chose our epoch.
    boosted = baselines.gradient_boosting(features[train_on], labels[train_on], features[scored], 0)
    outcome.boosted = np.unique(labels[train_on])[boosted.argmax(1)]
    found["gradient boosting"] = outcome.boosted
    outcome.metrics["classification"] = {
        name: {
            "accuracy": float(accuracy_score(labels[scored], guess)),
            "macro-F1": float(f1_score(labels[scored], guess, average="macro")),
        }
        for name, guess in found.items()
    }


def _score_interpolation(outcome: Outcome, part: SeriesDataset, reporter: Reporter) -> None:
    assert outcome.pretrained is not None
    if (part.lengths < 2).all():
        return
    visible, hidden, _ = hide(part, HIDDEN, seed=0)
    with reporter.bar("interpolating") as on_step:
        found = interpolate(outcome.pretrained.directory, visible, as_queries(hidden), on_step=on_step)
    means = baselines.channel_means(outcome.dataset.select(outcome.split.train))
    linear = baselines.interpolate_hidden(visible, hidden, means)
    outcome.visible, outcome.hidden, outcome.interpolated, outcome.linear = visible, hidden, found, linear
    values, preprocessor = np.asarray(hidden.values, np.float64), outcome.pretrained.preprocessor
    channels = np.zeros(len(values), int) if hidden.channels is None else hidden.channels

    def scaled(x: np.ndarray) -> np.ndarray:
        return preprocessor.values.transform(x, channels)

    first: dict[str, Any] = {}
    for v, name in enumerate(preprocessor.value_names):
        row: dict[str, Any] = {"hidden observations": len(values)}
        for method, guess in (("model", found.mean), ("linear interpolation", linear)):
            row[method] = {
                "root mean squared error, scaled": _mean_square((scaled(guess) - scaled(values))[:, v]) ** 0.5,
                "median absolute error": float(np.median(np.abs(guess - values)[:, v])),
            }
        if found.bands:
            row["share inside band"] = {
                f"{100 * share:.0f} %": float(((values >= low) & (values <= high))[:, v].mean())
                for share, (low, high) in found.bands.items()
            }
        first[name] = row
    outcome.metrics["interpolation"] = first


def _mean_square(x: np.ndarray) -> float:
    return float(np.mean(np.square(x)))


def write_results(outcome: Outcome, out: Path, task: str) -> None:
    """metrics.json and the three tables."""
    dataset, split = outcome.dataset, outcome.split
    part = np.empty(len(dataset), object)
    for name in ("train", "validation", "test"):
        part[getattr(split, name)] = name
    ids = pa.array(dataset.ids.tolist())
    if outcome.predicted is not None and outcome.finetuned is not None and outcome.labels is not None:
        columns: dict[str, Any] = {"id": ids, "part": pa.array(part.tolist()), "label": pa.array(list(outcome.labels))}
        columns |= prediction_columns(outcome.finetuned.directory, outcome.predicted)
        write_table(pa.table(columns), out / "predictions.parquet")
    if outcome.embeddings is not None:
        write_table(embedding_table(dataset, outcome.embeddings), out / "embeddings.parquet")
    if outcome.interpolated is not None and outcome.hidden is not None and outcome.pretrained is not None:
        hidden, names = outcome.hidden, outcome.pretrained.preprocessor.value_names
        ids = np.repeat(hidden.ids, hidden.lengths)
        table = interpolation_table(
            ids, hidden.times, hidden.channels, hidden.channel_names, names, outcome.interpolated
        )
        for v, name in enumerate(names):
            table = table.append_column(f"{name}_observed", pa.array(np.asarray(hidden.values)[:, v]))
        write_table(table, out / "interpolations.parquet")
    content = {
        **outcome.metrics,
        "command": outcome.command,
        "seed": outcome.settings.pretrain.seed,
        "settings": dataclasses.asdict(outcome.settings),
        "preprocessing": None if outcome.pretrained is None else outcome.pretrained.preprocessor.describe(),
        "warnings": outcome.warnings,
        "versions": versions(),
        "hardware": hardware(),
    }
    write_text(out / "metrics.json", json.dumps(content, indent=2) + "\n")


def prediction_columns(directory: ModelDirectory, predicted: np.ndarray) -> dict[str, Any]:
    """Columns of a prediction: the class and a probability for each, or the value."""
    assert directory.preprocessor is not None
    classes = directory.preprocessor.classes
    if classes is None:
        names = ["predicted"] if predicted.shape[1] == 1 else [f"predicted_{i}" for i in range(predicted.shape[1])]
        return {name: pa.array(predicted[:, i]) for i, name in enumerate(names)}
    columns: dict[str, Any] = {"predicted": pa.array([classes[i] for i in predicted.argmax(1)])}
    return columns | {f"probability_{name}": pa.array(predicted[:, i]) for i, name in enumerate(classes)}


def embedding_table(dataset: SeriesDataset, embeddings: np.ndarray) -> pa.Table:
    """One row a series: id, and the embedding as columns e0, e1, .."""
    columns = {"id": pa.array(dataset.ids.tolist())}
    return pa.table(columns | {f"e{i}": pa.array(embeddings[:, i]) for i in range(embeddings.shape[1])})


def interpolation_table(
    ids: np.ndarray,
    times: np.ndarray,
    channels: np.ndarray | None,
    channel_names: tuple[Any, ...] | None,
    value_names: tuple[str, ...],
    found: Interpolation,
) -> pa.Table:
    """One row a query: id, time, channel, and for every value its mean, std and bands."""
    columns: dict[str, Any] = {"id": pa.array(ids.tolist()), "time": pa.array(np.asarray(times))}
    if channels is not None and channel_names is not None:
        columns["channel"] = pa.array([plain(channel_names[c]) for c in channels])
    for v, name in enumerate(value_names):
        columns[name] = pa.array(found.mean[:, v])
        if found.std is not None:
            columns[f"{name}_std"] = pa.array(found.std[:, v])
        for share, (lower, upper) in found.bands.items():
            columns[f"{name}_lower{100 * share:.0f}"] = pa.array(lower[:, v])
            columns[f"{name}_upper{100 * share:.0f}"] = pa.array(upper[:, v])
    return pa.table(columns)


def write_table(table: pa.Table, path: str | Path) -> None:
    """CSV or Parquet by suffix, written beside and renamed. Raises InputError for another suffix."""
    path = Path(path)
    check_output(path)
    with replacing(path) as beside:
        if path.suffix == ".parquet":
            pq.write_table(table, beside)
        else:
            import pyarrow.csv

            pyarrow.csv.write_csv(table, beside)


def check_output(path: Path) -> None:
    """Refuses, before any work, a table that could not be written."""
    if path.suffix not in (".csv", ".parquet"):
        raise InputError(f"{path} ends in {path.suffix or 'nothing'}; tables are written as .csv or .parquet.")
    _refuse_file_above(path)


def _refuse_file_above(path: Path) -> None:
    above = next((folder for folder in path.parents if folder.exists()), None)
    if above is not None and not above.is_dir():
        raise InputError(f"{path} cannot be made: {above} is a file, not a folder.")
