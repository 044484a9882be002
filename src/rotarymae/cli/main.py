"""The command: rotarymae demo | fit | predict | interpolate | embed, and those of `cli_recipes`.

Each function here is a subcommand; its docstring is its help. Heavy modules are imported inside, so that --help and
a misspelt option answer at once.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from tyro.conf import FlagCreatePairsOff, Positional, arg

from rotarymae.cli.recipes import list_recipes, results, run, run_with_overrides, show
from rotarymae.cli.table import AS_THEY_ARE, Columns, read, read_for, reading_of
from rotarymae.errors import InputError, ModelDirectoryError, RotaryMAEError

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
        out: Folder for the results; without it runs/demo, or runs/demo-2 and so on if that exists.
        seed: Of split, order, masks and weights.
        quick: Train for an epoch or two only, to see that everything runs.
        quiet: Print only what goes wrong.
    """
    from rotarymae.data import plasticc
    from rotarymae.recipes.demo import settings
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
            settings(seed, quick),
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


def fit(
    table: Positional[Table],
    out: Path,
    columns: Annotated[Columns, arg(name="")] = AS_THEY_ARE,
    labels: Path | None = None,
    label: str = "label",
    label_id: str | None = None,
    task: Literal["auto", "classification", "regression"] = "auto",
    holdout: float = 0.25,
    static: tuple[str, ...] = (),
    size: Literal["tiny-shallow", "tiny", "small", "base"] = "tiny-shallow",
    pretrain_epochs: int = 20,
    finetune_epochs: int = 20,
    min_steps: int = 500,
    batch_size: int = 32,
    base_lr: float = 1e-3,
    mask_ratio: tuple[float, float] = (0.3, 0.8),
    masking: Literal["ratio", "rows", "channels"] = "ratio",
    dropout: float = 0.0,
    drop: float = 0.0,
    noise: float = 0.0,
    time_unit: float | None = None,
    time_origin: Literal["first", "zero"] = "first",
    transform: tuple[str, ...] = (),
    class_weights: Literal["none", "balanced"] = "none",
    precision: Literal["auto", "fp32", "bf16", "fp16"] = "auto",
    compile: bool = False,
    seed: int = 0,
    resume: bool = False,
    quiet: bool = False,
) -> None:
    """Pre-train a model on a table of irregular observations, and fine-tune it when there are labels.

    For example, with a table of the columns star, day, band and flux:

    rotarymae fit stars.csv --id star --time day --channel band --values flux --labels kinds.csv --label kind --out run

    Args:
        table: CSV, TSV, Parquet or Arrow file, one row for every observation.
        out: New folder for models, metrics, predictions and the report.
        columns: How the table is read.
        labels: Table with one row a series: its id and its label (a class or a number).
        label: Column of labels in it.
        label_id: Column of ids in it, if it is not named as in the table.
        task: What the labels are; "auto" takes numbers that are not whole for a regression.
        holdout: Share of the series that is only scored; none are with fewer than ten series.
        static: Columns that hold one value a series; kept with the data.
        size: Size of the encoder; larger is slower and wants more data.
        pretrain_epochs: Passes over the data in pre-training.
        finetune_epochs: Passes over the data in fine-tuning.
        min_steps: Least steps of each training, for tables of few series.
        batch_size: Series a step.
        base_lr: Peak learning rate.
        mask_ratio: Smallest and largest share of a series' observations hidden in pre-training.
        masking: Hide single observations, all at a time (rows), or whole channels.
        dropout: In fine-tuning, on attention and in the MLP.
        drop: In fine-tuning, leave out up to this share of a series' observations, at random.
        noise: In fine-tuning, add normal noise of this deviation to the scaled values.
        time_unit: Unit that times are divided by; measured when not given (the report says what it is).
        time_origin: Times count from each series' first observation, or from the table's zero.
        transform: NAME=asinh, NAME=standard or NAME=none for a value column; chosen by its tails when not given.
        class_weights: Weigh classes by the inverse of their numbers.
        precision: Of matrix products; "auto" is bf16 where the hardware has it.
        compile: Compile the blocks; pays in long runs.
        seed: Of split, order, masks, augmentation and weights.
        resume: Go on with an interrupted run in OUT.
        quiet: Print only what goes wrong.
    """
    from rotarymae.masking import Masking
    from rotarymae.report import write_report
    from rotarymae.series import align_labels, read_table
    from rotarymae.tasks import Settings, check_folder, run_fit
    from rotarymae.training import TrainConfig

    reporter = _reporter(quiet)
    low, high = mask_ratio
    ratio: float | tuple[float, float] = (low, high) if masking == "ratio" and low != high else high
    common: dict[str, Any] = {
        "min_steps": min_steps,
        "batch_size": batch_size,
        "base_lr": base_lr,
        "precision": precision,
        "compile": compile,
        "seed": seed,
    }
    settings = Settings(
        size=size,
        masking=Masking(masking, ratio),
        pretrain=TrainConfig(epochs=pretrain_epochs, **common),
        finetune=TrainConfig(epochs=finetune_epochs, betas=(0.9, 0.999), keep_best=True, **common),
        dropout=dropout,
        drop=drop,
        noise=noise,
        time_unit=time_unit,
        origin=time_origin,
        transforms=_transforms(transform),
        class_weights=class_weights,
    )
    reading, page = reading_of(columns, {}), out / "report.html"
    check_folder(out, resume)
    with reporter.catching_warnings():
        dataset = read(table, reading, static, None)
        found = None
        if labels is not None:
            key = label_id or reading["id"]
            found = align_labels(dataset, read_table(labels, labels=[key]), key, label)
        reporter.say(f"{_describe(dataset)} → {out}")
        outcome = run_fit(
            dataset,
            found,
            settings,
            out,
            task=task,
            holdout=holdout,
            columns=reading,
            resume=resume,
            command=_command(),
            reporter=reporter,
            report=lambda outcome: write_report(outcome, page, title=table.name, time_label=reading["time"]),
        )
    _print_metrics(outcome.metrics, reporter)
    _print_end(outcome.seconds, page, reporter)


def predict(
    model: Positional[Model],
    table: Positional[Table],
    out: Path,
    columns: Annotated[Columns, arg(name="")] = AS_THEY_ARE,
    quiet: bool = False,
) -> None:
    """Predict the label of every series in a table.

    For example: rotarymae predict run new.csv --out predictions.csv

    Args:
        model: Folder that `fit` wrote, or a model directory.
        table: Table of observations, laid out as in training.
        out: New .csv or .parquet file: id, predicted, and a probability for each class.
        columns: How the table is read, where it differs from the training table.
        quiet: Print only what goes wrong.
    """
    import pyarrow as pa

    from rotarymae.checkpoints import open_model
    from rotarymae.heads import Classifier, Regressor
    from rotarymae.tasks import predict_probabilities, predict_values, prediction_columns, write_table

    reporter = _reporter(quiet)
    _check_new(out)
    with reporter.catching_warnings():
        directory = open_model(model, "finetuned")
        if not isinstance(directory.model, Classifier | Regressor):
            raise InputError(
                f"{model} is a {type(directory.model).__name__}; predictions need a fine-tuned Classifier or "
                "Regressor, which `rotarymae fit` with --labels makes."
            )
        dataset = read_for(directory, table, columns)
        job = predict_probabilities if isinstance(directory.model, Classifier) else predict_values
        with reporter.bar("predicting") as on_step:
            found = job(directory, dataset, on_step=on_step)
        write_table(pa.table({"id": pa.array(dataset.ids.tolist()), **prediction_columns(directory, found)}), out)
    reporter.say(f"{len(dataset)} predictions → {out}")


def interpolate(
    model: Positional[Model],
    table: Positional[Table],
    out: Path,
    at: Path | None = None,
    times: tuple[float, ...] = (),
    grid: int | None = None,
    columns: Annotated[Columns, arg(name="")] = AS_THEY_ARE,
    quiet: bool = False,
) -> None:
    """Predict values at any times, with standard deviations and 68 and 95 % bands.

    For example: rotarymae interpolate run new.csv --times 0 0.5 1 --out values.csv

    Args:
        model: Folder that `fit` wrote, or the directory of a pre-trained model.
        table: Table of observations, laid out as in training.
        out: New .csv or .parquet file: id, time, channel, and for each value its mean, deviation and bands.
        at: Table of the times wanted: the id and time columns, and the channel column where there is one.
        times: The same times for every series and channel, as numbers; dates are days since 1970-01-01.
        grid: So many even times from each series' first to its last observation, for every channel [100, when no
            times are given].
        columns: How the table is read, where it differs from the training table.
        quiet: Print only what goes wrong.
    """
    import numpy as np

    from rotarymae.checkpoints import open_model
    from rotarymae.tasks import grid as even
    from rotarymae.tasks import interpolate as run
    from rotarymae.tasks import interpolation_table, queries_at, queries_from_table, write_table

    reporter = _reporter(quiet)
    _check_new(out)
    if sum([at is not None, bool(times), grid is not None]) > 1:
        raise InputError("give one of --at, --times and --grid.")
    with reporter.catching_warnings():
        directory = open_model(model, "pretrained")
        assert directory.preprocessor is not None
        dataset = read_for(directory, table, columns)
        if at is not None:
            reading = reading_of(columns, directory.preprocessor.columns)
            queries = queries_from_table(dataset, at, reading["id"], reading["time"], reading.get("channel"))
        elif times:
            queries = queries_at(dataset, np.array(times))
        else:
            queries = even(dataset, 100 if grid is None else grid)
        with reporter.bar("interpolating") as on_step:
            found = run(directory, dataset, queries, on_step=on_step)
        names = directory.preprocessor.value_names
        ids = np.repeat(dataset.ids, queries.lengths)
        write_table(interpolation_table(ids, queries.times, queries.channels, dataset.channel_names, names, found), out)
    reporter.say(f"{len(queries.times)} values of {len(dataset)} series → {out}")


def embed(
    model: Positional[Model],
    table: Positional[Table],
    out: Path,
    pool: Literal["auto", "mean", "cls"] = "auto",
    stage: Literal["pretrained", "finetuned"] = "pretrained",
    columns: Annotated[Columns, arg(name="")] = AS_THEY_ARE,
    quiet: bool = False,
) -> None:
    """Turn every series of a table into one vector.

    For example: rotarymae embed run new.csv --out vectors.parquet

    Args:
        model: Folder that `fit` wrote, or a model directory.
        table: Table of observations, laid out as in training.
        out: New .csv or .parquet file: id, and the embedding as columns e0, e1, ..
        pool: Mean over a series' tokens, or the [CLS] token; "auto" takes what the model was trained with.
        stage: Which model of a folder that `fit` wrote.
        columns: How the table is read, where it differs from the training table.
        quiet: Print only what goes wrong.
    """
    from rotarymae.checkpoints import open_model
    from rotarymae.tasks import embed as run
    from rotarymae.tasks import embedding_table, write_table

    reporter = _reporter(quiet)
    _check_new(out)
    with reporter.catching_warnings():
        directory = open_model(model, stage)
        dataset = read_for(directory, table, columns)
        with reporter.bar("embedding") as on_step:
            found = run(directory, dataset, None if pool == "auto" else pool, on_step=on_step)
        write_table(embedding_table(dataset, found), out)
    reporter.say(f"{len(dataset)} embeddings of {found.shape[1]} numbers → {out}")


COMMANDS = {"demo": demo, "fit": fit, "predict": predict, "interpolate": interpolate, "embed": embed}
COMMANDS |= {"list": list_recipes, "show": show, "run": run, "results": results}


def main(argv: list[str] | None = None) -> None:
    """Runs the command. What this library refuses is printed in a sentence, with exit code 2; 1 means it broke off."""
    from rotarymae import __version__

    arguments = sys.argv[1:] if argv is None else argv
    if arguments in (["--version"], ["-V"]):
        print(f"rotarymae {__version__}")
        return
    try:
        if arguments[:1] == ["run"]:  # its options depend on the recipe
            run_with_overrides(arguments[1:])
            return
        tyro.extras.subcommand_cli_from_dict(
            COMMANDS,
            args=arguments,
            prog="rotarymae",
            description="Learn from irregular observations: pre-train, classify, interpolate, embed; run experiments.",
            config=(FlagCreatePairsOff,),
        )
    except (InputError, ModelDirectoryError) as error:
        print(f"rotarymae: {_as_options(str(error))}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:  # whoever read our output has closed it, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (RotaryMAEError, OSError) as error:
        print(f"rotarymae: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print(
            "rotarymae: interrupted. `fit` goes on from its last checkpoint with --resume, `run` by itself.",
            file=sys.stderr,
        )
        sys.exit(130)


def _as_options(message: str) -> str:
    """Advice in the words of the command: missing="drop" is --missing drop."""
    return re.sub(r'\b(missing|duplicates|tokens)="(\w+)"', r"--\1 \2", message)


def _describe(dataset: SeriesDataset) -> str:
    return repr(dataset).removeprefix("SeriesDataset(").removesuffix(")")


def _reporter(quiet: bool) -> Any:
    from rotarymae.progress import Reporter

    return Reporter(quiet)


def _check_new(out: Path) -> None:
    """Refuses, before any work, to overwrite a file or to write one of another kind."""
    from rotarymae.tasks import check_output

    check_output(out)
    if out.exists():
        raise InputError(f"{out} exists; choose another name, or remove it.")


def _transforms(asked: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for item in asked:
        name, equals, how = item.rpartition("=")
        if not equals or not name:
            raise InputError(f"--transform {item!r}; wanted NAME=asinh, NAME=standard or NAME=none.")
        found[name] = how
    return found


def _free(folder: Path) -> Path:
    """The folder, or the first of folder-2, folder-3, .. that does not exist."""
    number, candidate = 2, folder
    while candidate.exists():
        number, candidate = number + 1, folder.with_name(f"{folder.name}-{number}")
    return candidate


def _command() -> str:
    return shlex.join(["rotarymae", *sys.argv[1:]])


def _print_end(seconds: float, page: Path, reporter: Any) -> None:
    reporter.say(f"took {seconds:.0f} s; " + (f"the report is {page}" if page.exists() else f"there is no {page}"))


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
    from rich.table import Table

    if reporter.quiet:
        return
    table = Table("", *rows["model"], title=title)
    for name, row in rows.items():
        table.add_row(name, *(f"{row[metric]:.4g}" if metric in row else "" for metric in rows["model"]))
    reporter.console.print(table)


if __name__ == "__main__":
    main()
