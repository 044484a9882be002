"""From a data set to a run folder: train, score against simpler methods, and write everything down.

A run folder holds `model/` (the pipeline), `training/` (logs and checkpoints), metrics.json, predictions.parquet,
embeddings.parquet, interpolations.parquet and report.html.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rotarymae.datasets import AnyDataset
from rotarymae.errors import InputError
from rotarymae.model_files import MODEL
from rotarymae.outcome import Outcome
from rotarymae.run_folder import check_folder, write_metrics, write_tables
from rotarymae.scoring import score, without
from rotarymae.splits import SplitColumn
from rotarymae.system import Reporter
from rotarymae.train import FitResult, train
from rotarymae.training import is_main_process, single_process, taken_precision
from rotarymae.training.fit_config import ClassificationOptions, FinetuningOptions, FitConfig


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
    """Train on a data set, score the pipeline, and write a run folder.

    Args:
        labels: [S] classes or numbers, or None to pre-train only; see `train`.
        task, holdout, split_by, resume: as `train`.
        columns: how the table was read; kept with the pipeline.
        started: time.monotonic() when the work on the table began; without it, now.
        report: writes the report, once all else is there; if it fails, the run is finished without one.

    Raises:
        InputError: before anything is written: an `out` that holds something already and no `resume`; and as `train`.
    """
    reporter = reporter or Reporter(quiet=True)
    started, out = time.monotonic() if started is None else started, Path(out)
    writes = is_main_process()  # one of several processes
    if writes:
        check_folder(out, resume)
    if labels is None and not config.pretrains:
        raise InputError(
            "there is nothing to train: the model is pre-trained already and there are no labels. Give labels "
            "(--labels, --label), or pretrain_epochs (--pretrain-epochs) to continue pre-training."
        )
    if labels is None:
        options = [f.name for group in (FinetuningOptions, ClassificationOptions) for f in dataclasses.fields(group)]
        unused = config.changed(options)
        if unused:
            reporter.warn(f"{', '.join(unused)} concern labels, and there are none: they have no effect.")
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
        folder=out,
        resume=resume,
        started=started,
        reporter=reporter,
    )
    outcome = Outcome(dataset, config, fit, labels=labels, command=command)
    outcome.metrics["split"] = fit.split_method
    score(outcome, reporter)
    if not writes:
        return outcome
    fit.pipeline.save(out / MODEL, training_note(fit, dataset.noun, config))
    write_tables(outcome, out)
    outcome.seconds, outcome.warnings = time.monotonic() - started, reporter.warnings
    if report is not None:
        with without("the report", reporter), reporter.bar("report"), single_process():
            report(outcome)
    outcome.seconds = time.monotonic() - started
    write_metrics(outcome, out)
    return outcome


def training_note(fit: FitResult, noun: str, config: FitConfig) -> str:
    """Say in the model card what the pipeline was trained on."""
    elsewhere = "" if config.pretrained is None else "elsewhere"
    and_then = " and then " if elsewhere and fit.pretrained_on else ""
    here = f"on {fit.pretrained_on:,} {noun}" if fit.pretrained_on else ""
    note = f"Pre-trained {elsewhere}{and_then}{here}."
    if fit.finetuning is not None and fit.pipeline.labels is not None and fit.split is not None:
        note += f" Fine-tuned ({fit.pipeline.labels.task}) on {len(fit.split.train):,} {noun}."
    return note
