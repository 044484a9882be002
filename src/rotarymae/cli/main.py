"""The command: rotarymae demo | fit | predict | evaluate | interpolate | embed, and those of `cli.recipes`.

Each function here is a subcommand; its docstring is its help. Heavy modules are imported inside, so that --help and
a misspelt option answer at once.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from tyro.conf import DisallowNone, FlagCreatePairsOff, OmitArgPrefixes, Positional, arg

from rotarymae.cli.interruption import Stopped, exit_code, how_to_resume, stopping_on_signals
from rotarymae.cli.recipes import list_recipes, results, run, run_with_overrides, show
from rotarymae.cli.table import Columns, TableLayout, read_for
from rotarymae.errors import InputError, Interrupted, ModelDirectoryError, RotaryMAEError, did_you_mean
from rotarymae.tasks import (
    ClassificationOptions,
    FinetuningOptions,
    FitConfig,
    MaskingOptions,
    ModelOptions,
    Predicting,
    RunOptions,
    ScalingOptions,
    TrainingOptions,
)

if TYPE_CHECKING:
    from rotarymae.series import SeriesDataset


Table = Annotated[Path, arg(metavar="TABLE")]
Model = Annotated[Path, arg(metavar="MODEL")]


def demo(
    out: Path | None = None,
    seed: int = 0,
    quick: bool = False,
    quiet: bool = False,
) -> None:
    """Pre-train, classify, interpolate and embed real light curves (PLAsTiCC), and write a report.

    Args:
        out: The results go to this folder; without it, to runs/demo, or runs/demo-2 and so on if that exists.
        seed: This number fixes the split, the order, the masks, the augmentation and the first weights.
        quick: Train for an epoch or two only, to see that everything runs.
        quiet: Print only what goes wrong.
    """
    from rotarymae.data import plasticc
    from rotarymae.recipes.demo import configure
    from rotarymae.report import write_report
    from rotarymae.tasks import check_folder, run_fit

    reporter = _reporter(quiet)
    folder = out or _free(Path("runs/demo"))
    check_folder(folder, resume=False)
    page = folder / "report.html"
    dataset, labels = plasticc.sample()
    reporter.say(f"{_describe(dataset)}, {len(set(labels.tolist()))} classes → {folder}")
    with reporter.catching_warnings():
        outcome = run_fit(
            dataset,
            labels,
            configure(seed, quick),
            folder,
            task="classification",
            command=_command(),
            reporter=reporter,
            report=lambda outcome: write_report(
                outcome,
                page,
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
    _print_metrics(outcome.metrics, reporter)
    _print_end(outcome.seconds, page, reporter)


@dataclass(frozen=True)
class LabelColumn:
    """Where the labels are."""

    labels: Annotated[Path | None, arg(help_behavior_hint="(default: TABLE)")] = None
    """This table has ids of series and labels, classes or numbers; series without a label are only pre-trained on."""
    label: Annotated[str | None, arg(help_behavior_hint="(default: label)")] = None
    """This column holds the labels; without it and --labels the model is only pre-trained."""
    label_id: Annotated[str | None, arg(help_behavior_hint="(default: as in TABLE)")] = None
    """This column of that table holds the ids."""

    @property
    def beside(self) -> tuple[str, ...]:
        """Columns of the table of observations that hold labels."""
        return (self.label,) if self.label and self.labels is None else ()

    def read(self, dataset: SeriesDataset, layout: TableLayout, table: Path) -> Any:
        """The labels in the order of the series, or None. Raises InputError for labels that do not match."""
        from rotarymae.series import align_labels, read_table

        key = self.label_id or layout.id
        if self.labels is None:
            if self.label is None:
                return None
            found = layout.open(table).read([key, self.label], [key])
        else:
            found = read_table(self.labels, labels=[key])
        return align_labels(dataset, found, key, self.label or "label", unlabelled="none")


@dataclass(frozen=True)
class Labels(LabelColumn):
    """What fine-tuning learns to predict; without labels the model is only pre-trained."""

    task: Literal["auto", "classification", "regression"] = "auto"
    """The labels are classes or numbers; auto takes numbers that are not whole for a regression."""
    holdout: float = 0.25
    """This share of the series is only scored; with fewer than ten series none are."""

    def check(self) -> None:
        """Raises InputError for an option that says how labels are read where there are none."""
        given = {"--label-id": self.label_id, "--task": self.task.replace("auto", "")}
        for option, value in given.items():
            if self.labels is None and self.label is None and value:
                raise InputError(f"{option} {value} says how labels are read; name their table by --labels.")


def fit(
    table: Positional[Table],
    out: Path,
    columns: Columns,
    labels: Labels,
    model: ModelOptions,
    scaling: ScalingOptions,
    masking: MaskingOptions,
    training: TrainingOptions,
    finetuning: FinetuningOptions,
    classification: ClassificationOptions,
    run: RunOptions,
    resume: bool = False,
    quiet: bool = False,
) -> None:
    """Pre-train a model on a table of irregular observations, and fine-tune it when there are labels.

    For example, with a table of the columns star, day, band and flux:

    rotarymae fit stars.csv --id star --time day --channel band --values flux --labels kinds.csv --label kind --out run

    Args:
        table: This file, folder or quoted pattern has one row per observation; a single - reads standard input.
        out: The models, metrics, predictions and the report go to this new folder.
        resume: Continue the interrupted run in the folder.
        quiet: Print only what goes wrong.
    """
    from rotarymae.report import write_report
    from rotarymae.tasks import check_folder, run_fit

    started, reporter, page = time.monotonic(), _reporter(quiet), out / "report.html"
    groups = (model, scaling, masking, training, finetuning, classification, run)
    config = FitConfig(**{name: value for group in groups for name, value in vars(group).items()})
    layout = replace(TableLayout.resolve(columns), static=config.static)
    labels.check()
    if _first_process():
        check_folder(out, resume)
    with stopping_on_signals(lambda: how_to_resume(out)), reporter.catching_warnings():
        with reporter.bar("reading"):
            dataset = layout.read(table, beside=labels.beside)
            targets = labels.read(dataset, layout, table)
        reporter.say(f"{_describe(dataset)} → {out}")
        reporter.say(f"read {table.name}: {dataset.reading}")
        outcome = run_fit(
            dataset,
            targets,
            config,
            out,
            task=labels.task,
            holdout=labels.holdout,
            columns=asdict(layout.with_values_of(dataset)),
            resume=resume,
            command=_command(),
            started=started,
            reporter=reporter,
            report=lambda outcome: write_report(outcome, page, title=table.name, time_label=layout.time),
        )
    _print_metrics(outcome.metrics, reporter)
    _print_end(outcome.seconds, page, reporter)


def predict(
    model: Positional[Model],
    table: Positional[Table],
    out: Path,
    columns: Columns,
    predictor: Predicting = "auto",
    quiet: bool = False,
) -> None:
    """Predict the label of every series in a table.

    For example: rotarymae predict run new.csv --out predictions.csv

    Args:
        model: This folder was written by `fit`, or is a model directory, which has the model alone.
        table: This table of observations is laid out as in training, unless options say otherwise.
        out: The predictions go to this new .csv or .parquet file: id, predicted, and a probability per class.
        predictor: The model predicts, gradient boosting (features), both (combined), or what `fit` chose (auto).
        quiet: Print only what goes wrong.
    """
    import pyarrow as pa

    from rotarymae.checkpoints import open_model
    from rotarymae.heads import Classifier, Regressor
    from rotarymae.tasks import (
        Predictor,
        predict_probabilities,
        predict_values,
        prediction_columns,
        with_empty_rows,
        write_table,
    )

    reporter = _reporter(quiet)
    _check_new(out)
    with reporter.catching_warnings():
        directory = open_model(model, "finetuned")
        if not isinstance(directory.model, Classifier | Regressor):
            raise InputError(
                f"{model} is a {type(directory.model).__name__}; predictions need a fine-tuned Classifier or "
                "Regressor, which `rotarymae fit` with --labels makes."
            )
        chosen = Predictor.of_run(model, directory)
        chosen.check(predictor)
        with reporter.bar("reading"):
            dataset = read_for(directory, table, columns)
        job = predict_probabilities if isinstance(directory.model, Classifier) else predict_values
        with reporter.bar("predicting") as on_step:
            found = chosen.predict(job(directory, dataset, on_step=on_step), dataset, predictor)
        answers = pa.table({"id": pa.array(dataset.ids.tolist()), **prediction_columns(directory, found)})
        write_table(with_empty_rows(answers, dataset), out)
    reporter.say(f"{len(dataset)} predictions → {out}{_empty_rows(dataset)}")


def evaluate(
    model: Positional[Model],
    table: Positional[Table],
    columns: Columns,
    labels: LabelColumn,
    out: Annotated[Path | None, arg(help_behavior_hint="(default: no file)")] = None,
    quiet: bool = False,
) -> None:
    """Score the predictions for a labelled table that the model has not seen.

    For example: rotarymae evaluate run new.csv --labels kinds.csv --label kind --out metrics.json

    Args:
        model: This folder was written by `fit`, or is a model directory.
        table: This table of observations is laid out as in training, unless options say otherwise.
        out: The metrics go to this new JSON file as well.
        quiet: Print only what goes wrong.
    """
    import json

    from rotarymae.atomic_write import write_text
    from rotarymae.checkpoints import open_model
    from rotarymae.tasks import Predictor, evaluate_predictions

    reporter = _reporter(quiet)
    if labels.labels is None and labels.label is None:
        raise InputError("evaluate needs the true labels: name their column by --label, or their table by --labels.")
    if out is not None and out.exists():
        raise InputError(f"{out} exists; choose another name, or remove it.")
    with reporter.catching_warnings():
        directory = open_model(model, "finetuned")
        predictor = Predictor.of_run(model, directory)
        with reporter.bar("reading"):
            dataset = read_for(directory, table, columns, labels.beside)
            assert directory.preprocessor is not None
            layout = TableLayout.resolve(columns, directory.preprocessor.columns)
            targets = labels.read(dataset, layout, table)
        with reporter.bar("predicting") as on_step:
            task, metrics, count = evaluate_predictions(directory, predictor, dataset, targets, on_step=on_step)
    content = {"series": {"scored": count, "without a label": len(dataset) - count}, task: metrics}
    content["predictor"] = predictor.describe()
    if out is not None:
        write_text(out, json.dumps(content, indent=2) + "\n")
    _print_table(f"{task}, on {count:,} of {len(dataset):,} series", metrics, reporter)


def interpolate(
    model: Positional[Model],
    table: Positional[Table],
    out: Path,
    columns: Columns,
    at: Annotated[Path | None, arg(help_behavior_hint="(default: no table)")] = None,
    times: Annotated[tuple[str, ...], arg(help_behavior_hint="(default: no times)")] = (),
    grid: Annotated[int | None, arg(help_behavior_hint="(default: 100, if no times are given)")] = None,
    quiet: bool = False,
) -> None:
    """Predict values at any times, with standard deviations and 68 and 95 % bands.

    For example: rotarymae interpolate run new.csv --times 0 0.5 1 --out values.csv

    Args:
        model: This folder was written by `fit`, or is the directory of a pre-trained model.
        table: This table of observations is laid out as in training, unless options say otherwise.
        out: The answers go to this new .csv or .parquet file, with the mean, deviation and bands of each value.
        at: This table holds the wanted times, with columns of ids, times and channels; without channels, of all.
        times: These numbers or dates (2024-03-31T10:00) are the wanted times of every series and channel.
        grid: So many even times are wanted, from each series' first to its last observation, for every channel.
        quiet: Print only what goes wrong.
    """
    import numpy as np

    from rotarymae.checkpoints import open_model
    from rotarymae.series import parse_time
    from rotarymae.tasks import grid as even
    from rotarymae.tasks import interpolate as run
    from rotarymae.tasks import interpolation_table, queries_at, queries_from_table, with_empty_rows, write_table

    reporter = _reporter(quiet)
    _check_new(out)
    if sum([at is not None, bool(times), grid is not None]) > 1:
        raise InputError("give one of --at, --times and --grid.")
    with reporter.catching_warnings():
        directory = open_model(model, "pretrained")
        assert directory.preprocessor is not None
        with reporter.bar("reading"):
            dataset = read_for(directory, table, columns)
        if at is not None:
            layout = TableLayout.resolve(columns, directory.preprocessor.columns)
            queries = queries_from_table(dataset, at, layout.id, layout.time, layout.channel)
        elif times:
            queries = queries_at(dataset, np.array([parse_time(one, dataset.time_zone) for one in times]))
        else:
            queries = even(dataset, 100 if grid is None else grid)
        with reporter.bar("interpolating") as on_step:
            found = run(directory, dataset, queries, on_step=on_step)
        names = directory.preprocessor.value_names
        ids = np.repeat(dataset.ids, queries.lengths)
        channels, zone = dataset.channel_names, dataset.time_zone
        answers = interpolation_table(ids, queries.times, queries.channels, channels, names, found, zone)
        write_table(with_empty_rows(answers, dataset), out)
    reporter.say(f"{len(queries.times)} values of {len(dataset)} series → {out}{_empty_rows(dataset)}")


def embed(
    model: Positional[Model],
    table: Positional[Table],
    out: Path,
    columns: Columns,
    pool: Literal["auto", "mean", "cls"] = "auto",
    stage: Literal["pretrained", "finetuned"] = "pretrained",
    quiet: bool = False,
) -> None:
    """Turn every series of a table into one vector.

    For example: rotarymae embed run new.csv --out vectors.parquet

    Args:
        model: This folder was written by `fit`, or is a model directory.
        table: This table of observations is laid out as in training, unless options say otherwise.
        out: The embeddings go to this new .csv or .parquet file, as id and the columns e0, e1, and so on.
        pool: The embedding is the mean over a series' tokens, the [CLS] token, or what the model was trained to use.
        stage: This model of the folder that `fit` wrote makes the embedding.
        quiet: Print only what goes wrong.
    """
    from rotarymae.checkpoints import open_model
    from rotarymae.tasks import embed as run
    from rotarymae.tasks import embedding_table, with_empty_rows, write_table

    reporter = _reporter(quiet)
    _check_new(out)
    with reporter.catching_warnings():
        directory = open_model(model, stage)
        with reporter.bar("reading"):
            dataset = read_for(directory, table, columns)
        with reporter.bar("embedding") as on_step:
            found = run(directory, dataset, None if pool == "auto" else pool, on_step=on_step)
        write_table(with_empty_rows(embedding_table(dataset, found), dataset), out)
    reporter.say(f"{len(dataset)} embeddings of {found.shape[1]} numbers → {out}{_empty_rows(dataset)}")


COMMANDS = {"demo": demo, "fit": fit, "predict": predict, "evaluate": evaluate, "interpolate": interpolate}
COMMANDS |= {"embed": embed}
COMMANDS |= {"list": list_recipes, "show": show, "run": run, "results": results}


def main(argv: list[str] | None = None) -> None:
    """Runs the command. What this library refuses is printed in a sentence, with exit code 2; 1 means it broke off."""
    from rotarymae import __version__

    arguments = sys.argv[1:] if argv is None else argv
    if arguments in (["--version"], ["-V"]):
        print(f"rotarymae {__version__}")
        return
    try:
        with stopping_on_signals(lambda: _advice(arguments)):
            _run_command(arguments)
    except (Interrupted, Stopped) as error:
        print(f"rotarymae: {error}", file=sys.stderr)
        sys.exit(exit_code(error.signum))
    except (InputError, ModelDirectoryError) as error:
        print(f"rotarymae: {_as_options(str(error))}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:  # whoever read our output has closed it, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (RotaryMAEError, OSError) as error:
        print(f"rotarymae: {error}", file=sys.stderr)
        sys.exit(1)


def _run_command(arguments: list[str]) -> None:
    if arguments[:1] == ["run"]:  # its options depend on the recipe
        run_with_overrides(arguments[1:])
        return
    if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        raise InputError(
            f"no command {arguments[0]!r}; there are {', '.join(COMMANDS)}.{did_you_mean(arguments[0], COMMANDS)}"
        )
    tyro.extras.subcommand_cli_from_dict(
        COMMANDS,
        args=arguments,
        prog="rotarymae",
        description="Learn from irregular observations: pre-train, classify, interpolate, embed; run experiments.",
        config=(FlagCreatePairsOff, DisallowNone, OmitArgPrefixes),
    )


def _advice(arguments: list[str]) -> str:
    """What is left of an interrupted command; `fit` says it by itself."""
    if arguments[:1] == ["run"]:
        return "The same command goes on from the last checkpoint."
    return "Nothing was written." if arguments[:1] != ["demo"] else "The demo begins anew next time."


def _as_options(message: str) -> str:
    """Advice in the words of the command: missing="drop" is --missing drop."""
    return re.sub(r'\b(missing|duplicates|tokens|unknown_channels|max_tokens)="?(\w+)"?', _as_option, message)


def _as_option(found: re.Match[str]) -> str:
    return f"--{found[1].replace('_', '-')} {found[2]}"


def _empty_rows(dataset: SeriesDataset) -> str:
    count = len(dataset.reading.empty) if dataset.reading is not None else 0
    return f"; {count} series without observations have an empty row" if count else ""


def _describe(dataset: SeriesDataset) -> str:
    return repr(dataset).removeprefix("SeriesDataset(").removesuffix(")")


def _reporter(quiet: bool) -> Any:
    from rotarymae.progress import Reporter

    return Reporter(quiet or not _first_process())


def _first_process() -> bool:
    """Whether this is the one of the processes of a launcher, such as torchrun, that writes and speaks."""
    return os.environ.get("RANK", "0") == "0"


def _check_new(out: Path) -> None:
    """Refuses, before any work, to overwrite a file or to write one of another kind."""
    from rotarymae.tasks import check_output

    check_output(out)
    if out.exists():
        raise InputError(f"{out} exists; choose another name, or remove it.")


def _free(folder: Path) -> Path:
    """The folder, or the first of folder-2, folder-3, .. that does not exist."""
    number, candidate = 2, folder
    while candidate.exists():
        number, candidate = number + 1, folder.with_name(f"{folder.name}-{number}")
    return candidate


def _command() -> str:
    return shlex.join(["rotarymae", *sys.argv[1:]])


def _print_end(seconds: float, page: Path, reporter: Any) -> None:
    from rotarymae.progress import duration

    reporter.say(f"took {duration(seconds)}; " + (f"the report is {page}" if page.exists() else f"there is no {page}"))


def _print_metrics(metrics: dict[str, Any], reporter: Any) -> None:
    """One table per task: a row for the model and for each baseline."""
    where = f"on {metrics['scored on']}"
    for task in ("classification", "regression"):
        if task in metrics:
            _print_table(f"{task}, {where}", metrics[task], reporter)
    for name, row in metrics.get("interpolation", {}).items():
        rows = {method: dict(errors) for method, errors in row["methods"].items()}
        rows["model"] |= {f"inside {share}": inside for share, inside in row.get("share inside band", {}).items()}
        _print_table(f"{name} at {row['hidden observations']:,} hidden observations, {where}", rows, reporter)


def _print_table(title: str, rows: dict[str, dict[str, float]], reporter: Any) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    if reporter.quiet:
        return
    # Narrow, so that eight metrics fit on 80 columns with whole words.
    table = Table("", *rows["model"], title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name, row in rows.items():
        table.add_row(name, *(f"{row[metric]:.4g}" if metric in row else "" for metric in rows["model"]))
    Console().print(table)  # results go to standard output, progress to standard error


if __name__ == "__main__":
    main()
