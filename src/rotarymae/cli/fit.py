"""rotarymae fit | demo: from a table, or pictures or sounds, to a folder with models, predictions and a report."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from tyro.conf import Positional, arg

from rotarymae import series, system, tables
from rotarymae.cli.inputs import (
    Columns,
    Flag,
    FolderOptions,
    LabelColumn,
    Quiet,
    TablePath,
    first_flagged,
    with_helps,
)
from rotarymae.cli.interruption import how_to_resume, with_advice
from rotarymae.cli.output import print_outcome, typed_command
from rotarymae.errors import InputError, InputWarning
from rotarymae.tables.schema import option
from rotarymae.training.fit_config import (
    ClassificationOptions,
    FinetuningOptions,
    FitConfig,
    MaskingOptions,
    ModelOptions,
    RunOptions,
    ScalingOptions,
    TrainingOptions,
)

if TYPE_CHECKING:
    from rotarymae.pipeline import Pipeline
    from rotarymae.splits import SplitColumn


PAGE = "report.html"


for group in (
    ModelOptions,
    ScalingOptions,
    MaskingOptions,
    TrainingOptions,
    FinetuningOptions,
    ClassificationOptions,
    RunOptions,
):
    with_helps(group)


@with_helps
@dataclass(frozen=True)
class LabelOptions(LabelColumn):
    """Labels that fine-tuning learns to predict; without them the model is only pre-trained."""

    task: Literal["auto", "classification", "regression", "survival"] = "auto"
    """Fine-tuning: labels are classes (classification), numbers (regression) or times to an event (survival). auto:
    survival with --event, regression for numbers with decimals, else classification. Set regression if whole
    numbers are amounts."""
    holdout: float = 0.25
    """Scoring: share of the series (if there are labels, of the labelled ones) that the model is scored by, not trained
    on. With fewer than ten series, and no --split-by, none is kept. Raise it for surer scores, lower it to train
    on more."""
    split_by: Annotated[str | None, arg(help_behavior_hint="(default: at random)")] = None
    """Scoring: column, with one value per series, that decides which series are kept out of training: of words, whole
    groups (patients); of numbers or dates, the largest; of train and test, those that say test. Set it if related
    series must not be separated."""
    folds: Annotated[int | None, arg(help_behavior_hint="(default: one part held out)")] = None
    """Scoring: number of parts of a cross-validation, instead of --holdout: each part is scored by a model trained on
    the others, and later predictions average all models. Set it if series are few; it multiplies the time."""
    first: Annotated[str | None, arg(help_behavior_hint="(default: the first observation)")] = None
    """Fine-tuning: column of flags, such as detections, for --early alone: its times then count from the first
    observation whose flag is not 0. Set it if series begin long before what you classify, such as an outburst."""

    def read_split(self, dataset: series.SeriesDataset, layout: tables.TableSchema, table: Path) -> SplitColumn | None:
        """Read the column of --split-by, which decides what series are kept out for scoring.

        Args:
            dataset, layout, table: as for `read`.

        Returns:
            The column's name and a value for each series, in the order of `dataset`: a number, a text, or None if it is
            missing. Dates become days since 1970-01-01, and durations days. If the column is called like an id, such as
            patient_id, other values become text: they are groups without order. None if there is no --split-by.

        Raises:
            InputError: a column that is in none of --labels, --objects and the table, that differs within a series, or
                that has no value for any series; dates that are not ISO dates, or only some with a zone; times of day.
        """
        if self.split_by is None:
            return None
        source, key = self.source(self.split_by, layout, table)
        values, dates = tables.align_column(dataset, source, key, self.split_by, layout.na)
        if tables.looks_like_id(self.split_by) and not dates:  # patients and stars are groups, not an order
            values = np.array([None if value is None else str(value) for value in values.tolist()], object)
        from rotarymae.splits import SplitColumn

        return SplitColumn(self.split_by, values)

    def check(self) -> None:
        """Raise InputError if --label-id, --event, --folds, --task or --first is given, but no --label or --labels.

        --task auto counts as not given.
        """
        given = {"label_id": self.label_id, "task": self.task.replace("auto", ""), "folds": self.folds}
        given |= {"first": self.first}
        unused = [option(name, x) for name, x in {**given, "event": self.event}.items() if x]
        if self.name is None and unused:
            raise InputError(
                f"{', '.join(unused)} is for labels, and none are named; name their column by --label (of times to an "
                "event: --duration), or their table by --labels."
            )


def fit_command(
    table: Positional[TablePath],
    out: Path,
    columns: Columns,
    folder: FolderOptions,
    labels: LabelOptions,
    model: ModelOptions,
    scaling: ScalingOptions,
    masking: MaskingOptions,
    training: TrainingOptions,
    finetuning: FinetuningOptions,
    classification: ClassificationOptions,
    run: RunOptions,
    resume: Flag = False,
    anonymous: Flag = False,
    quiet: Quiet = False,
) -> None:
    """Pre-train a model on a table of irregular observations, and fine-tune it when there are labels.

    The folder of --out gets the models, metrics, predictions and a report. For example, with a table of the columns
    star, day, band and flux:

    rotarymae fit stars.csv --id star --time day --channel band --values flux --labels kinds.csv --label kind --out run

    Or with pictures (or sounds, by --audio) in one folder per class: rotarymae fit photos --images --out run

    Args:
        table: Reading: the observations, one per row: a file, a folder of files, a quoted pattern, or - for standard
            input. With --images or --audio, a folder of pictures or sounds.
        out: New folder for all that the run writes: the model, metrics.json, predictions, and report.html.
        resume: Pre-training and fine-tuning: continue the interrupted run in --out. Type it after a crash or Ctrl-C,
            with all other options as before.
        anonymous: Report: leave out ids and curves of single series. Set it to share the report; the run's other files
            still hold them.
    """
    started = time.monotonic()  # importing takes seconds, too
    from rotarymae import report
    from rotarymae.run import run_fit, run_folds
    from rotarymae.run_folder import check_folder
    from rotarymae.train import open_start

    reporter = system.Reporter(quiet)
    groups = (model, scaling, masking, training, finetuning, classification, run)
    config = FitConfig(**{name: value for group in groups for name, value in vars(group).items()})
    if not folder.is_folder:
        labels.check()
    check_folder(out, resume)
    if labels.first is not None and not config.early:
        raise InputError(f"--first {labels.first} says what --early counts from, and there is no --early; add --early.")
    if labels.folds is not None and labels.holdout != LabelOptions.holdout:
        raise InputError(
            "--holdout scores on one part of the series, --folds on each part in turn; leave out one of the two."
        )
    others = {name: value for name, value in vars(labels).items() if name not in ("task", "holdout", "folds")}
    folder.check(columns, others)
    start = None if config.pretrained is None else open_start(config.pretrained)
    with with_advice(lambda: how_to_resume(out)), reporter.catching_warnings():
        with reporter.bar("reading") as on_file:
            if folder.is_folder:
                files = folder.read(table, None if start is None else start.require_arrays(), on_file)
                dataset, targets, split_by, layout, since = files.dataset, files.labels, None, {}, None
            else:
                dataset, targets, split_by, layout, since = _read_table(table, columns, labels, config, start)
                if layout["untimed"] == "static":  # rows without a time are facts, which heads read
                    config = replace(config, static=tuple(dataset.static))  # pyright: ignore
        reporter.say(f"{dataset.describe()} → {out}")
        reporter.say(f"read {table.name}: {dataset.reading}")
        how: dict[str, Any] = {
            "task": labels.task,
            "split_by": split_by,
            "columns": layout,
            "since": since,
            "resume": resume,
            "command": typed_command(),
            "started": started,
            "reporter": reporter,
            "report": lambda outcome, folder: report.write_report(
                outcome, folder / PAGE, title=table.name, anonymous=anonymous
            ),
        }
        if labels.folds is None:
            outcome = run_fit(dataset, targets, config, out, holdout=labels.holdout, **how)
        else:
            outcome = run_folds(dataset, targets, config, out, labels.folds, **how)
    print_outcome(outcome, out / PAGE, reporter)


def _read_table(
    table: Path, columns: Columns, labels: LabelOptions, config: FitConfig, start: Pipeline | None
) -> tuple[series.SeriesDataset, Any, SplitColumn | None, dict[str, Any], np.ndarray | None]:
    """Read the table of observations, its labels and the columns of --split-by and --first, as the options say.

    The column of --first holds flags: --early counts from the first time at which a series' flag is not 0.

    Args:
        table, columns, labels: the table of observations, and the options on its layout and labels.
        config: the options of the fit. They name the static columns and, without `start`, the columns of errors.
        start: the trained pipeline to start from; None for a new model. Its channels and columns of errors are read,
            and its layout is the default of options that are not given. Limits (censored values such as <5) are left
            out if it was trained without limits.

    Returns:
        The data set; the labels in the order of its series, or None; the column of --split-by, or None; the table's
        layout, {field of `TableSchema`: value}, which is kept with the model, without the table of --objects ("objects"
        is None), as it matters to this run alone; and the time of each series' first flag that is not 0, NaN if it is
        always 0, or None without --first.

    Raises:
        InputError: options that exclude each other; a table or labels that cannot be read; flags that are 0 everywhere.

    Warns:
        InputWarning: series whose flag is always 0; rows that are left out; channels whose values never change; a label
            that looks like durations, next to a column that seems to say which of them were cut short (censored),
            without --event or --task classification.
    """
    known = None if start is None else start.require_series()
    errors = config.errors if known is None else known.errors
    layout = tables.TableSchema.resolve(asdict(columns), start and start.columns)
    objects = layout.objects or (None if labels.labels is None else str(labels.labels))
    layout = replace(layout, static=config.static, errors=errors, objects=objects)
    if known is not None and not known.limits:
        layout = replace(layout, limits="drop")
    channels = None if known is None else known.channel_names
    others = (*labels.columns, *(name for name in (labels.split_by, labels.first) if name is not None))
    dataset = tables.read_table(table, layout, channel_names=channels, others=others)
    dataset = dataset if known is None else dataset.with_limits(known.limits)
    dataset.warn_constant_channels(layout.errors)
    targets, split_by = labels.read(dataset, layout, table), labels.read_split(dataset, layout, table)
    if labels.name is not None and labels.event is None and labels.task != "classification":
        _warn_if_censored(labels.name, labels.source(labels.name, layout, table)[0].columns)
    since = None if labels.first is None else first_flagged(dataset, table, layout, labels.first)
    if since is not None and (unflagged := int(np.isnan(since).sum())):
        text = f"{unflagged:,} of {len(dataset):,} series have no observation where {labels.first} is not 0"
        if unflagged == len(dataset):
            raise InputError(
                f"{text}, so in no series does --first flag an observation from which --early could count; name "
                "another column of flags by --first, or leave --first out."
            )
        warnings.warn(f"{text}: --early does not cut them off, they stay whole.", InputWarning, stacklevel=2)
    return dataset, targets, split_by, asdict(replace(layout.with_values_of(dataset), objects=None)), since


def _warn_if_censored(label: str, columns: Sequence[str]) -> None:
    """Warn, with an InputWarning, if a label looks like durations some of which were cut short (censored).

    It does if its name is that of a duration, such as "time", and one of `columns`, the names of all columns of its
    table, is that of a flag for whether the event came, such as "status".
    """
    status = tables.status_of(label, columns)
    if status is not None:
        warnings.warn(
            f"the table has a column {status!r} next to the label {label!r}: if it says whether these durations ended "
            f"in an event or were cut short (censored), add --event {status}; without it those that were cut short are "
            "learnt as if they were whole, and predictions are too short.",
            InputWarning,
            stacklevel=2,
        )


def demo_command(
    out: Path = Path("runs/demo"),
    seed: int = 0,
    quick: Flag = False,
    quiet: Quiet = False,
) -> None:
    """Fit a model to 1,400 light curves that ship with the library (PLAsTiCC), and write models, metrics and a report.

    Args:
        out: New folder for all that the run writes: the model, metrics.json, predictions, and report.html.
        seed: Pre-training and fine-tuning: number that fixes every random choice (split, order, masks, first weights).
            Try several to see how much results vary.
        quick: Pre-training and fine-tuning: make 1 pass of pre-training and 2 of fine-tuning, instead of 12 and 40. Set
            it to see that everything runs; results are poor.
    """
    from rotarymae import report
    from rotarymae.data import plasticc
    from rotarymae.run import run_fit
    from rotarymae.run_folder import check_folder

    reporter = system.Reporter(quiet)
    check_folder(out, resume=False)
    dataset, labels = plasticc.sample()
    reporter.say(f"{dataset.describe()}, {len(set(labels.tolist()))} classes → {out}")
    with with_advice(lambda: "The demo begins anew next time."), reporter.catching_warnings():
        outcome = run_fit(
            dataset,
            labels,
            configure(seed, quick),
            out,
            task="classification",
            command=typed_command(),
            reporter=reporter,
            report=lambda outcome, folder: report.write_report(
                outcome,
                folder / PAGE,
                title="Light curves of PLAsTiCC",
                class_names=dict(plasticc.CLASSES),
                notes=(
                    "The sample has more of the rare classes than the full set, so its figures are not comparable "
                    "with published ones.",
                    "Data: PLAsTiCC team and collaborators, CC BY 4.0, DOI 10.5281/zenodo.2539456.",
                ),
            ),
        )
    print_outcome(outcome, out / PAGE, reporter)


def configure(seed: int = 0, quick: bool = False) -> FitConfig:
    """Return the settings of the demo: 12 passes of pre-training and 40 of fine-tuning; with `quick` 1 and 2.

    `min_steps` is 0, and all other settings are the defaults; `seed` fixes every random choice.
    """
    # Rather more passes than the defaults: on 900 objects the labels are what is scarce. Six minutes on two cores.
    return FitConfig(
        pretrain_epochs=1 if quick else 12,
        finetune_epochs=2 if quick else 40,
        min_steps=0,
        seed=seed,
    )
