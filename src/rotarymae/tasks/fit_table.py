"""From a data set to a run folder: split, pre-train, fine-tune, score beside what is simpler, and write it all down.

A run folder holds `pretrained/` and `finetuned/` (model directories), `predictor/` (what predicts beside the model),
`training/` (logs and checkpoints), metrics.json, predictions.parquet, embeddings.parquet, interpolations.parquet and
report.html.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rotarymae.checkpoints import PREDICTOR, save
from rotarymae.errors import InputError
from rotarymae.series import Preprocessor, SeriesDataset, fit_static
from rotarymae.system import Reporter
from rotarymae.tasks.config import ClassificationOptions, FinetuningOptions, FitConfig
from rotarymae.tasks.data import AnyDataset
from rotarymae.tasks.outcome import Outcome, Split
from rotarymae.tasks.outputs import check_folder, identify, open_folder, write_metrics, write_tables
from rotarymae.tasks.plan import Plan
from rotarymae.tasks.pretrain_finetune import (
    Trained,
    autoencoder_of,
    describe_pretrained,
    finetune,
    open_pretrained,
    prepare,
    pretrain,
    to_interpolate,
)
from rotarymae.tasks.score import score, without
from rotarymae.tasks.split_by import RANDOM_SPLIT, SplitColumn, split_off, split_words
from rotarymae.tasks.targets import choose_task, has_label, narrowed
from rotarymae.training import TrainResult, is_main_process, single_process, taken_precision

FEWEST = 10  # series; with fewer none are held out


def run_fit(
    dataset: AnyDataset,
    labels: np.ndarray | None,
    config: FitConfig,
    out: str | Path,
    *,
    task: str = "auto",
    holdout: float = 0.25,
    split_by: SplitColumn | None = None,
    columns: dict[str, Any] | None = None,
    resume: bool = False,
    command: str = "",
    started: float | None = None,
    reporter: Reporter | None = None,
    report: Callable[[Outcome], object] | None = None,
) -> Outcome:
    """Trains on a data set, scores the models, and writes a run folder.

    Args:
        labels: [S] classes or numbers, or None to pre-train only. A series without one (None or NaN) is pre-trained on
            and embedded; the others are fine-tuned on and scored.
        task: "classification", "regression", or "auto": regression for numbers that are not whole.
        holdout: share of series that is only scored; none are with fewer than ten series.
        split_by: what decides the parts instead of chance; see `SplitColumn.split`.
        columns: how the table was read; kept with the model.
        resume: go on with an interrupted run of the same table and configuration.
        started: time.monotonic() when the work on the table began; without it, now.
        report: writes the report, once all else is there; if it fails, the run is finished without one.

    Raises:
        InputError: before anything is written: an `out` that holds something already and no `resume`; labels or
            settings that cannot be used, as `pretrain` and `finetune` say; a pretrained model of other values or
            channels, or nothing to train.
    """
    reporter = reporter or Reporter(quiet=True)
    started, out = time.monotonic() if started is None else started, Path(out)
    # Everything that can be refused is refused before a file is written.
    writes = is_main_process()  # one of several processes
    noun = dataset.noun
    if writes:
        check_folder(out, resume)
    start = None if config.pretrained is None else open_pretrained(config.pretrained)
    if start is not None:
        reporter.say(f"started from {config.pretrained}: {describe_pretrained(start)}")
    if labels is None and not config.pretrains:
        raise InputError(
            "there is nothing to train: the model is pre-trained already and there are no labels. Give labels "
            "(--labels, --label), or pretrain_epochs (--pretrain-epochs) to go on pre-training."
        )
    kind, strata, rows = None, None, np.arange(len(dataset))
    if labels is None:
        config = to_interpolate(config, dataset)
        options = [f.name for group in (FinetuningOptions, ClassificationOptions) for f in dataclasses.fields(group)]
        unused = config.changed(options)
        if unused:
            reporter.warn(f"{', '.join(unused)} concern labels, and there are none: without effect.")
    else:
        given = labels
        if len(labels) == len(dataset):
            rows = np.flatnonzero(has_label(labels))
            given = narrowed(labels[rows])
            if not len(rows):
                raise InputError("no series has a label; give the labels of some, or none at all to pre-train only.")
        kind = choose_task(given, task)
        kind.check_config(config)
        strata = kind.strata(kind.check(given, len(rows)))
    how = RANDOM_SPLIT
    if split_by is None:
        parts = make_split(len(rows), strata, holdout, config.seed, config.validation_fraction)
        others = np.setdiff1d(np.arange(len(dataset)), rows)
        split = Split(rows[parts.train], rows[parts.validation], rows[parts.test], others)
    else:
        split, how = split_by.split(rows, strata, holdout, config.validation_fraction, config.seed)
        reporter.say(split_words(how))
    if len(split.unlabelled):
        reporter.say(
            f"{len(split.unlabelled):,} of {len(dataset):,} {noun} have no label: they are pre-trained on and embedded"
        )
    if kind is not None and labels is not None:  # before a training that could not be used
        kind.check(narrowed(labels[split.train]), len(split.train))
        if isinstance(dataset, SeriesDataset):
            fit_static(dataset.select(split.train), config.static)
    train, validation = dataset.select(split.pretrain), None
    with reporter.bar("scaling"):
        preprocessor = prepare(train, config, start)
        if isinstance(dataset, SeriesDataset) and isinstance(preprocessor, Preprocessor):
            preprocessor = dataclasses.replace(preprocessor, columns=columns or {})
            dataset.warn_constant_channels()
    if writes:
        open_folder(out, identify(dataset, labels, config, task, holdout, split_by, start and start.model))
    if config.precision == "auto" and taken_precision("auto") == "bf16":
        reporter.say(
            'matrix products are in bf16, which this device has units for; precision "fp32" is slower and more exact'
        )
    outcome = Outcome(dataset, split, config, labels=labels, command=command)
    outcome.metrics["split"] = how
    if len(split.validation):
        validation = dataset.select(split.validation)
    going: dict[str, Any] = {"resume": "auto" if resume else "never", "on_resume": reporter.say}
    plan = Plan(out, config, kind is not None, started, reporter)
    if start is not None and not config.pretrains:
        known, note = autoencoder_of(start), "Pre-trained elsewhere."
        outcome.pretrained = Trained(known, preprocessor, TrainResult(), precision=config.precision)
    else:
        with reporter.bar("pre-training") as on_step:
            outcome.pretrained = pretrain(
                train,
                config,
                preprocessor=preprocessor,
                start=start,
                validation=validation,
                schedule=partial(plan.schedule, "pre-training"),
                folder=out / "training" / "pretrain",
                on_step=plan.watch("pre-training", on_step),
                **going,
            )
        note = f"Pre-trained {'' if start is None else 'elsewhere and then '}on {len(train):,} {noun}."
    if writes:
        save(outcome.pretrained.model, out / "pretrained", preprocessor, note)
    if labels is not None and kind is not None:
        with reporter.bar("fine-tuning") as on_step:
            outcome.finetuned = finetune(
                outcome.pretrained,
                dataset.select(split.train),
                narrowed(labels[split.train]),
                config,
                task=kind.name,
                validation=None if validation is None else (validation, narrowed(labels[split.validation])),
                schedule=partial(plan.schedule, "fine-tuning"),
                folder=out / "training" / "finetune",
                on_step=plan.watch("fine-tuning", on_step),
                **going,
            )
        reporter.say(
            f"fine-tuning started from all {len(outcome.finetuned.loaded)} tensors of the pre-trained encoder and "
            f"trained {outcome.finetuned.trained_weights:,} weights (tune={config.tune})"
        )
        if writes:
            save(
                outcome.finetuned.model,
                out / "finetuned",
                outcome.finetuned.preprocessor,
                f"{note} Fine-tuned ({kind.name}) on {len(split.train):,} {noun}.",
            )
    score(outcome, reporter)
    if not writes:
        return outcome
    if outcome.predictor is not None:
        outcome.predictor.save(out / PREDICTOR)
    write_tables(outcome, out)
    outcome.seconds, outcome.warnings = time.monotonic() - started, reporter.warnings
    if report is not None:
        with without("the report", reporter), reporter.bar("report"), single_process():
            report(outcome)
    outcome.seconds = time.monotonic() - started
    write_metrics(outcome, out)
    return outcome


def make_split(series: int, classes: np.ndarray | None, holdout: float, seed: int, validation: float = 0.15) -> Split:
    """Random parts, with every class in each as far as it goes, and in `train` always. With fewer than ten series all
    are trained on."""
    everything, none = np.arange(series), np.zeros(0, np.int64)
    if not 0 <= holdout < 1:
        raise InputError(f"holdout is {holdout}; wanted at least 0 and less than 1, the share of series to score.")
    if series < FEWEST:
        return Split(everything, none, none)
    rest, test = (everything, none) if holdout == 0 else split_off(everything, classes, holdout, seed)
    if validation == 0:
        return Split(rest, none, test)
    train, chooses = split_off(rest, classes, validation, seed)
    return Split(train, chooses, test)
