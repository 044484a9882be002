"""From a data set to a run folder: train, score against simpler methods, and write everything down.

A run folder holds `model/` (the pipeline), `training/` (logs and checkpoints), metrics.json, predictions.parquet,
embeddings.parquet, interpolations.parquet and report.html. That of a cross-validation holds `folds/`, a run folder for
each, and metrics.json, predictions.parquet and report.html of all.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rotarymae.datasets import AnyDataset
from rotarymae.ensemble import Ensemble
from rotarymae.errors import InputError
from rotarymae.metrics import sample_words
from rotarymae.model_files import FOLDS_FOLDER, METRICS_FILE, MODEL
from rotarymae.outcome import Outcome
from rotarymae.pipeline import Pipeline
from rotarymae.run_folder import check_folder, identify, open_folder, write_metrics, write_tables
from rotarymae.scoring import score, score_folds
from rotarymae.splits import Fold, Split, SplitColumn, make_split
from rotarymae.system import Reporter
from rotarymae.targets import as_targets
from rotarymae.train import FitResult, labelled, open_start, train
from rotarymae.training import taken_precision
from rotarymae.training.cost import Plan
from rotarymae.training.fit_config import ClassificationOptions, FinetuningOptions, FitConfig


def run_fit(
    dataset: AnyDataset,
    labels: np.ndarray | None,
    config: FitConfig,
    out: str | Path,
    *,
    task: str = "auto",
    holdout: float = 0.25,
    split_by: SplitColumn | Fold | None = None,
    columns: dict[str, Any] | None = None,
    since: np.ndarray | None = None,
    resume: bool = False,
    command: str = "",
    started: float | None = None,
    reporter: Reporter | None = None,
    report: Callable[[Outcome, Path], object] | None = None,
) -> Outcome:
    """Train on a data set, score the pipeline, and write a run folder; return all results.

    If the `minutes` of the fit do not suffice to predict all series, a random sample is predicted and scored.

    Args:
        dataset: S series or arrays.
        labels: [S] classes, numbers or times to an event (`survival.EVENT_TIME`), None or NaN for a series without one;
            or None to pre-train only, with a warning if options of fine-tuning are set.
        config: all options of the training.
        out: the run folder, new or empty, or that of the run to resume.
        task: "classification", "regression", "survival", or "auto" to decide it by the labels.
        holdout: share of the series that nothing is trained on, and on which the run is scored; if there are labels, of
            those that have one. It is not used if `split_by` is a fold, or a column that names the parts; without
            `split_by`, fewer than ten such series are all trained on.
        split_by: a column, or a fold of a cross-validation, that decides which series are held out; None draws them.
        columns: how the table was read, {field of `TableSchema`: value}; kept with the pipeline.
        since: [S] times from which the spans of `config.early` count, NaN for none; None for the first observations.
        resume: whether to continue the interrupted run in `out`.
        command: the command line that the user typed, for metrics.json.
        started: time.monotonic() when the work on the table began; None means now.
        reporter: shows progress and warnings; None shows warnings only.
        report: writes the report, called with (results, folder) once all else but metrics.json is written. If it fails,
            the run is finished without one and with a warning, unless a file could not be written. None writes no
            report.

    Raises:
        InputError: `out` is not empty and `resume` is False; with `resume`, `out` has a finished run, another run, or
            files but no run; nothing to train; labels or options that cannot be used.
        ModelDirectoryError, MissingExtra: `config.pretrained` is damaged, or on the Hub without the extra `hub`.
        TrainingDiverged: losses or weights became infinite or NaN.
        OSError: a file could not be written; the run can be resumed.
    """
    reporter = reporter or Reporter(quiet=True)
    out = Path(out)
    plan = Plan(out, config, started, reporter, resume)
    check_folder(out, resume)
    if labels is None and not config.pretrains:
        raise InputError(
            "there is nothing to train: the model is pre-trained already and there are no labels. Give labels "
            "(--labels, --label), or pretrain_epochs (--pretrain-epochs) to continue pre-training."
        )
    if labels is None:
        unused = config.changed(FinetuningOptions, ClassificationOptions)
        if unused:
            reporter.warn(
                f"{', '.join(unused)} concern labels, and there are none: they have no effect. Give labels, or leave "
                "these options out."
            )
    if config.precision == "auto" and taken_precision("auto") == "bf16":
        reporter.say(
            'matrix products are in bf16, which this device has units for; precision "fp32" is slower and more exact'
        )
    fit = train(
        dataset,
        labels,
        config,
        task=task,
        holdout=holdout,
        split_by=split_by,
        columns=columns or {},
        since=since,
        plan=plan,
        reporter=reporter,
    )
    outcome = Outcome(dataset, config, fit, labels=labels, command=command)
    # Parts that most runs do not have are named only where they have series.
    parts = {
        name: len(rows)
        for name, rows in vars(outcome.split).items()
        if len(rows) or name not in ("unlabelled", "left_out")
    }
    outcome.metrics |= {"split": fit.split_method, "series": parts, "scored_on": outcome.split.scored_part}
    outcome.metrics["noun"] = dataset.noun
    some = plan.series_to_predict()
    if some is not None:
        outcome = outcome.sample(*some)
        reporter.say(f"{sample_words(outcome.metrics)}; `rotarymae predict`, `embed` and `evaluate` answer all")
    score(outcome, reporter)
    fit.pipeline.save(out / MODEL, training_note(fit, dataset.noun, config))
    _write(outcome, out, plan.started, reporter, report)
    return outcome


def run_folds(
    dataset: AnyDataset,
    labels: np.ndarray | None,
    config: FitConfig,
    out: str | Path,
    folds: int,
    *,
    task: str = "auto",
    split_by: SplitColumn | None = None,
    resume: bool = False,
    command: str = "",
    started: float | None = None,
    reporter: Reporter | None = None,
    report: Callable[[Outcome, Path], object] | None = None,
    **how: Any,
) -> Outcome:
    """Cross-validate: train and score each fold in its own run folder, and score all out-of-fold predictions together.

    All choices (best epoch, what predicts, calibration, how classes are decided) are made within a fold's training
    part. The results of all folds together are written to `out` and returned. Loaded later, `out` predicts with the
    average of the folds' models (`ensemble.Ensemble`). With `resume`, folds that are finished are not trained again.

    Args:
        dataset: S series or arrays.
        labels: [S] classes, numbers or times to an event; None is refused. A series without one (None or NaN) is never
            scored; every fold pre-trains on it, unless its group of `split_by` is held out.
        config: all options; its `minutes` are those of all folds together. If a fold takes longer than its share, the
            later ones have less time.
        out: the run folder, new or empty, or that of the run to resume. Fold k is a run folder `folds/k` in it.
        folds: number of folds, at least 2.
        task: "classification", "regression", "survival", or "auto" to decide it by the labels.
        split_by: a column; series of equal value in it are in the same fold. None draws single series.
        resume: whether to continue the interrupted run in `out`.
        command: the command line that the user typed, for metrics.json.
        started: time.monotonic() when the work on the table began; None means now.
        reporter: shows progress and warnings; None shows warnings only.
        report: writes a report, called with (results, folder) for each fold and for all; None writes none.
        how: further arguments of `run_fit`, for each fold, such as `columns`.

    Raises:
        InputError: no labels; fewer than two folds, or more than series or groups; folds that leave nothing to learn a
            class from; `out` is not empty and `resume` is False; with `resume`, `out` has a finished run, another run,
            or files but no run; labels or options that cannot be used.
        ModelDirectoryError, MissingExtra: as in `run_fit`.
        TrainingDiverged: losses or weights became infinite or NaN.
        OSError: a file could not be written; the run can be resumed.
    """
    reporter = reporter or Reporter(quiet=True)
    started, out = time.monotonic() if started is None else started, Path(out)
    check_folder(out, resume)
    if labels is None:
        raise InputError("a cross-validation is scored by labels, and there are none; give labels (--labels, --label).")
    _, rows, strata = labelled(dataset, as_targets(labels), task, config)
    every, series = [Fold(number + 1, folds, split_by) for number in range(folds)], len(dataset)
    shares = 0.0, config.validation_fraction
    splits = [make_split(series, rows, strata, *shares, config.seed, fold)[0] for fold in every]
    start = None if config.pretrained is None else open_start(config.pretrained).model
    open_folder(out, identify(dataset, labels, config, task, 0.0, split_by, start) | {"folds": folds})
    each = config
    if config.minutes is not None:  # half a fold's share is for reading, and for the scores and the report of all
        each = dataclasses.replace(config, minutes=config.minutes / (folds + 0.5))
    folders = [out / FOLDS_FOLDER / str(fold.number) for fold in every]
    left = [pair for pair in zip(every, folders, strict=True) if not (pair[1] / METRICS_FILE).exists()]
    first = time.monotonic()
    for done, (fold, folder) in enumerate(left):
        reporter.say(f"fold {fold.number} of {folds} → {folder}")
        now = time.monotonic()
        # Time that earlier folds took beyond their shares is missing in equal parts to all that are left.
        late = 0.0 if each.minutes is None else max(0.0, now - first - 60 * done * each.minutes) / (len(left) - done)
        given: Any = {"command": command, "reporter": reporter, "report": report, "started": now - late, **how}
        again = (folder / "training").is_dir()
        run_fit(dataset, labels, each, folder, task=task, split_by=fold, resume=again, **given)
    pipeline = Ensemble.of([Pipeline.load(folder, config.precision) for folder in folders])
    others = np.setdiff1d(np.arange(len(dataset)), rows)
    split = Split(rows[:0], rows[:0], rows, others)
    outcome = Outcome(dataset, config, FitResult(pipeline, split), labels=as_targets(labels), command=command)
    outcome.metrics["split"] = {"by": None if split_by is None else split_by.name, "method": "folds", "folds": folds}
    score_folds(outcome, splits, reporter)
    _write(outcome, out, started, reporter, report)
    return outcome


def _write(
    outcome: Outcome,
    out: Path,
    started: float,
    reporter: Reporter,
    report: Callable[[Outcome, Path], object] | None,
) -> None:
    """Write the results of a run to its folder: tables, the report, and last metrics.json, which marks it as finished.

    A report that fails is left out with a warning, unless a file could not be written.

    Args:
        outcome: the results, whose `seconds` and `warnings` are set here.
        out: the run folder, with the saved model.
        started: time.monotonic() at the start of the run.
        reporter: shows progress, and has the warnings so far.
        report: writes the report, called with (outcome, out); None writes none.

    Raises:
        OSError: a file could not be written.
    """
    write_tables(outcome, out)
    outcome.seconds, outcome.warnings = time.monotonic() - started, reporter.warnings
    if report is not None:
        try:
            with reporter.bar("report"):
                report(outcome, out)
        except OSError:  # no room, a quota, a limit on the size of files: the run can be resumed when that is mended
            raise
        except Exception as error:
            reporter.warn(
                f"the report failed and is left out ({type(error).__name__}: {error}); all other results are there."
            )
    outcome.seconds = time.monotonic() - started
    write_metrics(outcome, out)


def training_note(fit: FitResult, noun: str, config: FitConfig) -> str:
    """Return one or two sentences for the model card: on how many examples the pipeline was pre-trained and fine-tuned.

    For example "Pre-trained elsewhere and then on 300 series. Fine-tuned (classification) on 200 series." The sentence
    on fine-tuning is left out if there was none. "Elsewhere" is said of a fit that started from a trained model.

    Args:
        fit: the result of the training. The examples in the training part of its split are those of the fine-tuning.
        noun: what the examples are called, such as "series".
        config: options of the fit; its `pretrained` says whether the fit started from a trained model.
    """
    elsewhere = "" if config.pretrained is None else "elsewhere"
    and_then = " and then " if elsewhere and fit.pretrained_on else ""
    here = f"on {fit.pretrained_on:,} {noun}" if fit.pretrained_on else ""
    note = f"Pre-trained {elsewhere}{and_then}{here}."
    if fit.finetuning is not None and fit.pipeline.labels is not None and fit.split is not None:
        note += f" Fine-tuned ({fit.pipeline.labels.task}) on {len(fit.split.train):,} {noun}."
    return note
