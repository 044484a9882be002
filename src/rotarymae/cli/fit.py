"""rotarymae fit | demo: from a table, or pictures or sounds, to a folder with models, predictions and a report."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from tyro.conf import Positional, arg

from rotarymae import series, tables
from rotarymae.cli.inputs import Columns, Flag, FolderOptions, LabelColumn, Quiet, TablePath, as_options
from rotarymae.cli.interruption import how_to_resume, saying
from rotarymae.cli.output import new_reporter, print_end, print_metrics, typed_command
from rotarymae.errors import InputError, InputWarning, did_you_mean, listed
from rotarymae.training import fit_config
from rotarymae.training.fit_config import FitConfig

if TYPE_CHECKING:
    from rotarymae.datasets import AnyDataset
    from rotarymae.pipeline import Pipeline
    from rotarymae.splits import SplitColumn


PAGE = "report.html"

if TYPE_CHECKING:
    from rotarymae.training.fit_config import (
        ClassificationOptions,
        FinetuningOptions,
        MaskingOptions,
        ModelOptions,
        RunOptions,
        ScalingOptions,
        TrainingOptions,
    )
else:
    ModelOptions = as_options(fit_config.ModelOptions)
    ScalingOptions = as_options(fit_config.ScalingOptions)
    MaskingOptions = as_options(fit_config.MaskingOptions)
    TrainingOptions = as_options(fit_config.TrainingOptions)
    FinetuningOptions = as_options(fit_config.FinetuningOptions)
    ClassificationOptions = as_options(fit_config.ClassificationOptions)
    RunOptions = as_options(fit_config.RunOptions)


@dataclass(frozen=True)
class LabelOptions(LabelColumn):
    """Labels that fine-tuning learns to predict; without them the model is only pre-trained."""

    task: Literal["auto", "classification", "regression", "survival"] = "auto"
    """Kind of labels: classes, numbers or durations; auto reads numbers that are not whole as amounts (regression), and
    labels with --event as durations (survival)."""
    holdout: float = 0.25
    """Share of the labelled series that is set aside to score the model; with fewer than ten series, none is."""
    split_by: Annotated[str | None, arg(help_behavior_hint="(default: at random)")] = None
    """Column that decides which series are held out: whole groups (text), the latest (dates or numbers), or "test"."""
    folds: Annotated[int | None, arg(help_behavior_hint="(default: one part held out)")] = None
    """Number of folds of a cross-validation: each series is scored by the model without it; predictions average all."""

    def read_split(self, dataset: series.SeriesDataset, layout: tables.TableSchema, table: Path) -> SplitColumn | None:
        """Return the column of `--split-by` in the order of the series, or None without that option.

        Raises:
            InputError: the column is in neither table, or differs within a series.
        """
        if self.split_by is None:
            return None
        source, key = self.source(self.split_by, layout, table)
        values, dates = tables.align_column(dataset, source, key, self.split_by, layout.na)
        if tables.looks_like_id(self.split_by) and not dates:  # patients and stars are groups, not an order
            values = np.array([None if value is None else str(value) for value in values.tolist()], object)
        from rotarymae.splits import SplitColumn

        return SplitColumn(self.split_by, values, dates)

    def check(self) -> None:
        """Raise InputError for options about labels when no labels are read."""
        given = {"--label-id": self.label_id, "--task": self.task.replace("auto", ""), "--folds": self.folds}
        if self.event is not None and self.name is None:
            raise InputError(f"--event {self.event} says how durations ended; name their column by --duration.")
        for option, value in given.items():
            if self.labels is None and self.label is None and value is not None and value != "":
                raise InputError(
                    f"{option} {value} applies to labels, and there are none; name their table with --labels."
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
    invert: Annotated[tuple[str, ...], arg(help_behavior_hint="(default: none)")] = (),
    anonymous: Flag = False,
    quiet: Quiet = False,
) -> None:
    """Pre-train a model on a table of irregular observations, and fine-tune it when there are labels.

    For example, with a table of the columns star, day, band and flux:

    rotarymae fit stars.csv --id star --time day --channel band --values flux --labels kinds.csv --label kind --out run

    Or with pictures (or sounds, by --audio) in one folder per class: rotarymae fit photos --images --out run

    Args:
        table: Table with one row per observation: a file, a folder, a quoted pattern, or - for standard input.
        out: New folder for the models, metrics, predictions and the report.
        resume: Continue the interrupted run in the folder.
        invert: Column of values, or channels, that the report draws on a reversed axis, as for magnitudes.
        anonymous: Leave ids and values of single series out of the report; the other files of the run still hold them.
    """
    started = time.monotonic()  # importing takes seconds, too
    from rotarymae import report
    from rotarymae.run import run_fit, run_folds
    from rotarymae.run_folder import check_folder
    from rotarymae.train import open_start

    reporter = new_reporter(quiet)
    groups = (model, scaling, masking, training, finetuning, classification, run)
    config = FitConfig(**{name: value for group in groups for name, value in vars(group).items()})
    if not folder.given:
        labels.check()
    check_folder(out, resume)
    if labels.folds is not None and labels.holdout != LabelOptions.holdout:
        raise InputError(
            "--holdout sets one part aside, and --folds holds out each series once; leave out one of the two."
        )
    others = {name: value for name, value in vars(labels).items() if name not in ("task", "holdout", "folds")}
    folder.check(columns, {**others, "invert": invert})
    start = None if config.pretrained is None else open_start(config.pretrained)
    with saying(lambda: how_to_resume(out)), reporter.catching_warnings():
        with reporter.bar("reading") as on_file:
            if folder.given:
                files = folder.read(table, None if start is None else start.require_arrays(), on_file)
                given = LoadedData(files.dataset, _several(files.labels))
            else:
                given = _read_table(table, columns, labels, config, start)
                _check_drawn(invert, given.dataset)
                if columns.untimed == "static":  # rows without a time are facts, which heads read
                    config = replace(config, static=tuple(given.dataset.static))  # pyright: ignore
        reporter.say(f"{given.dataset.describe()} → {out}")
        reporter.say(f"read {table.name}: {given.dataset.reading}")
        how: dict[str, Any] = {
            "task": labels.task,
            "split_by": given.split_by,
            "columns": given.columns,
            "resume": resume,
            "command": typed_command(),
            "started": started,
            "reporter": reporter,
            "report": lambda outcome, folder: report.write_report(
                outcome,
                folder / PAGE,
                title=table.name,
                time_label=given.columns.get("time"),
                invert=invert,
                anonymous=anonymous,
            ),
        }
        if labels.folds is None:
            outcome = run_fit(given.dataset, given.targets, config, out, holdout=labels.holdout, **how)
        else:
            outcome = run_folds(given.dataset, given.targets, config, out, labels.folds, **how)
    print_metrics(outcome.metrics, reporter)
    print_end(outcome.seconds, out / PAGE, reporter)


def _several(labels: np.ndarray | None) -> np.ndarray | None:
    """Return the classes of a folder's files; None, with a warning, where all files are of one class."""
    names = [] if labels is None else sorted({str(label) for label in labels if label is not None})
    if len(names) != 1:
        return labels
    warnings.warn(
        f"all files with a class lie in the folder {names[0]!r}; there is nothing to tell apart, and the model is only "
        "pre-trained.",
        InputWarning,
        stacklevel=2,
    )
    return None


def _check_drawn(invert: tuple[str, ...], dataset: Any) -> None:
    """Raise InputError where `--invert` names a column or channel that the report does not draw."""
    known = [dataset.value_names[0], *map(str, dataset.channel_names or ())]
    for name in invert:
        if name not in known:
            raise InputError(
                f"--invert {name} is not drawn in the report; choose the first column of values or a channel: "
                f"{listed(known, 20)}.{did_you_mean(name, known)}"
            )


@dataclass(frozen=True)
class LoadedData:
    """The data that the command read, and the target of each example.

    Attributes:
        columns: how the table was laid out; kept with the model.
    """

    dataset: AnyDataset
    targets: Any
    split_by: SplitColumn | None = None
    columns: dict[str, Any] = field(default_factory=dict)


def _read_table(
    table: Path, columns: Columns, labels: LabelOptions, config: FitConfig, start: Pipeline | None
) -> LoadedData:
    """Read the table and its labels; warn of constant channels.

    Args:
        start: a trained pipeline, whose columns, channels and errors the table must have.
    """
    known = None if start is None else start.require_series()
    errors = config.errors if known is None else known.errors
    layout = tables.TableSchema.resolve(asdict(columns), start and start.columns)
    objects = layout.objects or (None if labels.labels is None else str(labels.labels))
    layout = replace(layout, static=config.static, errors=errors, objects=objects)
    channels = None if known is None else known.channel_names
    others = labels.columns if labels.split_by is None else (*labels.columns, labels.split_by)
    dataset = tables.read_table(table, layout, channel_names=channels, others=others)
    dataset.warn_constant_channels()
    targets, split_by = labels.read(dataset, layout, table), labels.read_split(dataset, layout, table)
    if labels.name is not None and labels.event is None and labels.task != "classification":
        _warn_if_censored(labels.name, labels.source(labels.name, layout, table)[0].columns)
    return LoadedData(dataset, targets, split_by, asdict(replace(layout.with_values_of(dataset), objects=None)))


def _warn_if_censored(label: str, columns: Sequence[str]) -> None:
    """Warn where a label looks like a duration and another column says whether the event was observed (censoring)."""
    status = tables.status_of(label, columns)
    if status is not None:
        warnings.warn(
            f"the label {label!r} looks like a duration, and the table has a column {status!r}: if that says whether "
            f"the event happened or the duration was cut short (censored), add --event {status}. Without it, durations "
            "that were cut short are learnt as if they were whole, and predictions are too short.",
            InputWarning,
            stacklevel=2,
        )


def demo_command(
    out: Annotated[Path | None, arg(help_behavior_hint="(default: runs/demo, or runs/demo-2 if that exists)")] = None,
    seed: int = 0,
    quick: Flag = False,
    quiet: Quiet = False,
) -> None:
    """Pre-train, classify, interpolate and embed real light curves (PLAsTiCC), and write a report.

    Args:
        out: New folder for the results.
        seed: Seed of the split, the order, the masks, the augmentation and the first weights.
        quick: Train for only an epoch or two, to see that everything runs.
    """
    from rotarymae import report
    from rotarymae.data import plasticc
    from rotarymae.run import run_fit
    from rotarymae.run_folder import check_folder

    reporter = new_reporter(quiet)
    folder = out or _free(Path("runs/demo"))
    check_folder(folder, resume=False)
    dataset, labels = plasticc.sample()
    reporter.say(f"{dataset.describe()}, {len(set(labels.tolist()))} classes → {folder}")
    with saying(lambda: "The demo begins anew next time."), reporter.catching_warnings():
        outcome = run_fit(
            dataset,
            labels,
            configure(seed, quick),
            folder,
            task="classification",
            command=typed_command(),
            reporter=reporter,
            report=lambda outcome, folder: report.write_report(
                outcome,
                folder / PAGE,
                title="Light curves of PLAsTiCC",
                summary=(
                    f"A Rotary Masked Autoencoder pre-trained on {len(outcome.split.train):,} light curves by hiding "
                    "observations and predicting them, then fine-tuned to tell 14 kinds of object apart. All figures "
                    f"are on {len(outcome.split.test)} objects that neither training saw."
                ),
                class_names=dict(plasticc.CLASSES),
                time_label="MJD (days)",
                value_label="flux",
                notes=(
                    "The sample has more of the rare classes than the full set, so its figures are not comparable "
                    "with published ones.",
                    "Data: PLAsTiCC team and collaborators, CC BY 4.0, DOI 10.5281/zenodo.2539456.",
                ),
            ),
        )
    print_metrics(outcome.metrics, reporter)
    print_end(outcome.seconds, folder / PAGE, reporter)


def configure(seed: int = 0, quick: bool = False) -> FitConfig:
    """Return the demo's fit; `quick` trains for an epoch or two, to see that everything runs."""
    # Rather more passes than the defaults: on 900 objects the labels are what is scarce. Six minutes on two cores.
    return FitConfig(
        pretrain_epochs=1 if quick else 12,
        finetune_epochs=2 if quick else 40,
        min_steps=0,
        seed=seed,
    )


def _free(folder: Path) -> Path:
    """Return the folder, or the first of folder-2, folder-3, ... that does not exist."""
    number, candidate = 2, folder
    while candidate.exists():
        number, candidate = number + 1, folder.with_name(f"{folder.name}-{number}")
    return candidate
