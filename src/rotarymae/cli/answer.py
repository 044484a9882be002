"""rotarymae predict | embed | explain | interpolate | anomalies: what a model says of a table or folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from rotarymae import system
from rotarymae.cli.inputs import (
    Columns,
    ComputedIn,
    Flag,
    ModelPath,
    OptionalTable,
    QuestionTable,
    Quiet,
    SeriesTable,
    read_folder,
)
from rotarymae.cli.output import are_shards, check_new
from rotarymae.config import AutoPool
from rotarymae.errors import InputError
from rotarymae.training.fit_config import Predicting

if TYPE_CHECKING:
    from rotarymae import scale

BAR_TITLES = {
    "predict": "predicting",
    "embed": "embedding",
    "explain": "explaining",
    "interpolate": "interpolating",
    "anomalies": "scoring",
}
Workers = Annotated[
    int,
    arg(
        help="Prediction: number of processes that share the files of a folder of tables, where --out is a folder, "
        "too. Raise it to the number of cores; the same command may run on other computers at the same time."
    ),
]


def predict_command(
    model: Positional[ModelPath],
    table: Positional[QuestionTable],
    out: Path,
    columns: Columns,
    predictor: Predicting = "auto",
    anomaly_score: Flag = False,
    precision: ComputedIn = "auto",
    workers: Workers = 1,
    quiet: Quiet = False,
) -> None:
    """Predict the label of every series of a table, and write one row per series to a file.

    For example: rotarymae predict run new.csv --out predictions.csv. Each row has the id of a series, in the order of
    the table, and the prediction: the class with the probability of each class; or the number, with an interval that
    holds 90 % of numbers if the fit had at least nine validation series; or the expected time to the event, with the
    probability that it comes later than some times. A model without labels can only give --anomaly-score. A series
    without observations has a row with its id alone.

    Args:
        out: New .csv or .parquet file for the answers; - prints CSV. For a folder of tables, a folder, which gets a
            file for each table; files that are there already are kept.
        predictor: Prediction: the method to use: the network (model), boosted trees on summary features (features), the
            weighted average of all methods of the fit (combined), or the one that `fit` chose (auto). Set others to
            compare them.
        anomaly_score: Prediction: add a column that says how badly the observations of each series are predicted from
            the others (mean negative log-likelihood in nats). Set it to search for odd series, which score high; it
            takes five times as long.
    """
    from rotarymae import scale

    options = {"predictor": predictor, "anomaly_score": anomaly_score, "precision": precision}
    _write_results("predict", partial(scale.predictions, model, **options), table, out, columns, quiet, workers)


def embed_command(
    model: Positional[ModelPath],
    table: Positional[QuestionTable],
    out: Path,
    columns: Columns,
    pool: AutoPool = "auto",
    stage: Literal["pretrained", "finetuned"] = "pretrained",
    precision: ComputedIn = "auto",
    workers: Workers = 1,
    quiet: Quiet = False,
) -> None:
    """Turn every series of a table into one vector, and write one row per series to a file: id, e0, e1, and so on.

    For example: rotarymae embed run new.csv --out vectors.parquet. A vector is as long as the encoder is wide; a
    series without observations has a row with its id alone.

    Args:
        out: New .csv or .parquet file for the answers; - prints CSV. For a folder of tables, a folder, which gets a
            file for each table; files that are there already are kept.
        pool: Prediction: how a series' tokens become one vector: their mean, their maximum (max), the [CLS] token
            (cls), or as the model was trained (auto). Set another one to compare them.
        stage: Prediction: which model of the run makes the vectors: the one before fine-tuning (pretrained), or the
            one after it (finetuned). Set finetuned, which needs a fit with labels, to have series of like labels close
            together.
    """
    from rotarymae import scale

    options: dict[str, Any] = {"stage": stage, "pool": pool, "precision": precision}
    _write_results("embed", partial(scale.embeddings, model, **options), table, out, columns, quiet, workers)


def explain_command(
    model: Positional[ModelPath],
    table: Positional[SeriesTable],
    out: Path,
    columns: Columns,
    quiet: Quiet = False,
) -> None:
    """Measure how much each observation matters to the network's prediction, by leaving out each in turn.

    For example: rotarymae explain run new.csv --out importance.csv. MODEL must have been trained with labels; its
    network is explained, not boosted trees. The file has a row per observation: id, time, channel, values (and which
    are limits, such as <5), importance, and the network's prediction for the series. For classes, the importance is the
    logarithm of the predicted class's probability minus that without the observation, negative for an observation that
    speaks against the class. For a regression, it is how far the prediction moves, in standard deviations of the
    training targets; for a time to an event, the expected time minus that without the observation. The importance is
    empty for a series of one observation, and for one longer than the model reads at a time, which a warning names. A
    series without observations has a row with its id.

    Args:
        out: New .csv or .parquet file, with a row per observation; - prints CSV.
    """
    from rotarymae import scale
    from rotarymae.pipeline import Pipeline

    pipeline, reporter = _write_results(
        "explain", lambda: scale.importances(Pipeline.load(model)), table, out, columns, quiet
    )
    choice = pipeline.predictor.choice
    if choice != "model":
        reporter.say(
            f"explained and predicted by the network alone; `predict` answers by {choice} for this run, and may differ"
        )


def interpolate_command(
    model: Positional[ModelPath],
    table: Positional[OptionalTable] = None,
    *,
    out: Path,
    columns: Columns,
    at: Annotated[Path | None, arg(help_behavior_hint="(default: no table)")] = None,
    times: Annotated[tuple[str, ...], arg(help_behavior_hint="(default: no times)")] = (),
    grid: Annotated[int | None, arg(help_behavior_hint="(default: 100, if no times are given)")] = None,
    precision: ComputedIn = "auto",
    quiet: Quiet = False,
) -> None:
    """Predict values at any times, with standard deviations and 68 and 95 % bands, and write them to a file.

    For example: rotarymae interpolate run new.csv --times 0 0.5 1 --out values.csv. If no model is named (rotarymae
    interpolate new.csv --out values.csv), the shipped model any-series predicts, which was trained on random functions.
    Give at most one of --at, --times and --grid. Bands are for observations, noise included. If the model was trained
    with --errors, bands are for the curve without noise, unless the table of --at has these columns of errors.

    Args:
        out: New .csv or .parquet file: id, time, channel, mean, standard deviation and bands of each value, distance to
            the nearest observation in time, and other columns of the table of --at; - prints CSV.
        at: Prediction: table with the ids, times and channels to predict for. Give it if times differ by series;
            without a column of channels all are predicted, and ids are needed only if there are several series.
        times: Prediction: times to predict for, in every series and channel: numbers, dates (2024-03-31T10:00), or +4,
            +4h after each series' first observation. Give them if the same times matter for all.
        grid: Prediction: number of evenly spaced times to predict for, from each series' first to its last
            observation, in every channel. Raise it for finer curves.
    """
    from rotarymae import scale
    from rotarymae.pipeline import Pipeline
    from rotarymae.queries import QueryTable

    if sum([at is not None, bool(times), grid is not None]) > 1:
        raise InputError("--at, --times and --grid each say where to predict, and several are given; give one of them.")
    model, table = _model_and_table(model, table)

    def load() -> scale.Computation:
        """Load the pipeline of `model` and read --at; return the `scale.Computation` that predicts values."""
        pipeline = Pipeline.load(model, precision).pretrained
        query_table = None if at is None else QueryTable.read(at, pipeline.layout(asdict(columns)), table)
        return scale.values(pipeline, 100 if grid is None else grid, times, query_table)

    _say_if_untrained(*_write_results("interpolate", load, table, out, columns, quiet), table, columns)


def anomalies_command(
    model: Positional[ModelPath],
    table: Positional[OptionalTable] = None,
    *,
    out: Path,
    columns: Columns,
    precision: ComputedIn = "auto",
    quiet: Quiet = False,
) -> None:
    """Score how odd each observation is, and the stretch around it, given the others of its series.

    For example: rotarymae anomalies run new.csv --out scores.csv, which also draws the oddest in a new scores.png. A
    table alone (rotarymae anomalies new.csv --out scores.csv) is scored by any-series, which was trained on random
    functions. anomaly_score is the negative log-likelihood of an observation that was hidden, in nats: a spike scores
    high. stretch_score is high for a jump or a drift, which is predicted badly when its observations are hidden
    together, and for a frozen sensor, which is predicted too well: it says by how many robust standard deviations the
    mean score of about 16 neighbours is too high or too low. It is empty if a channel has fewer than 16.

    Args:
        out: New .csv or .parquet file, a row per observation: id, time, channel, values (and which are limits, such as
            <5), two scores per value; - prints CSV, and draws nothing.
    """
    from rotarymae import scale
    from rotarymae.cli.oddest import draw_oddest
    from rotarymae.pipeline import Pipeline

    model, table = _model_and_table(model, table)
    picture = None if str(out) == "-" else out.parent / f"{out.stem}.png"
    if picture is not None and picture.exists():
        raise InputError(f"{picture}, where the picture would go, exists; remove it, or give another --out than {out}.")

    pipeline, reporter = _write_results(
        "anomalies", lambda: scale.anomalies(Pipeline.load(model, precision)), table, out, columns, quiet
    )
    if picture is not None:
        draw_oddest(out, picture)
    _say_if_untrained(pipeline, reporter, table, columns)


def _model_and_table(model: Path, table: Path | None) -> tuple[Path, Path]:
    """Return (model, table) as typed or, if one path alone was typed, the model any-series and this path as the table.

    Raises InputError ("no-table") if one path alone was typed (`table` is None), and it is a model.
    """
    from rotarymae.model_files import ANY_SERIES, CONFIG, MODEL, shipped_models

    if table is not None:
        return model, table
    if str(model) in shipped_models() or any((model / name / CONFIG).exists() for name in ("", MODEL)):
        raise InputError(
            f"{model} is a model, and no table is named; name the table after it: {model} TABLE.", code="no-table"
        )
    return Path(ANY_SERIES), model


def _say_if_untrained(pipeline: Any, reporter: system.Reporter, table: Path, columns: Columns) -> None:
    """Print that the model any-series predicted without training, and its error at hidden observations of the table.

    The error of a straight line is printed next to it. Both errors are left out if no series has enough observations.
    To compute them, the first part of the table is read a second time. Nothing is printed for another pipeline, or if
    the table is standard input ("-"), which cannot be read twice.
    """
    if not pipeline.untrained or str(table) == "-":
        return
    parts = pipeline.reader(table, pipeline.layout(asdict(columns))).parts()
    dataset = next((part.dataset for part in parts if part.dataset is not None), None)
    compared = None if dataset is None else pipeline.beside_line(dataset)
    reporter.say(
        "no training: answered by any-series, a model trained on random functions"
        + (f"; {compared}" if compared else "")
    )


def _write_results(
    command: Literal["predict", "embed", "explain", "interpolate", "anomalies"],
    load_computation: Callable[[], scale.Computation],
    table: Path,
    out: Path,
    columns: Columns,
    quiet: bool,
    workers: int | None = None,
) -> tuple[Any, system.Reporter]:
    """Write a model's results for a table, or a folder of pictures or sounds, to a new file; print their number.

    `predict` and `embed` also take a folder of tables: for each of its files they write a file into the folder `out`.

    Args:
        command: the subcommand. It names the progress bar, and is recorded in a folder of outputs.
        load_computation: loads the pipeline and returns the `scale.Computation`, which says what to compute. If
            `workers` is given, this is a `functools.partial`: its first argument is the model's path, its keywords are
            the options that are recorded in a folder of outputs. Each worker process calls it, too.
        table: a file, a folder or a pattern; "-" is standard input.
        out: a .csv or .parquet file, or "-" for standard output; for a folder of tables, a folder (see `are_shards`).
        columns: the command's options on the table's layout.
        quiet: print only warnings and errors.
        workers: number of processes that share a folder of tables. None for commands that always write one file, and
            refuse a model of pictures or sounds.

    Returns:
        The pipeline that was used, and the reporter that printed.

    Raises:
        InputError: a file `out` that exists or cannot be written; a table that cannot be read or used; `workers` other
            than 1 for a single file; for a model of pictures or sounds, options of tables, or `workers` None.
        ShardsFailed: some tables of a folder cannot be used; the results of all others are written.
        RotaryMAEError, OSError: what `load_computation` raises, as for a damaged model; a worker or the disk fails.
    """
    from rotarymae import scale

    reporter, title = system.Reporter(quiet), BAR_TITLES[command]
    sharded = workers is not None and are_shards(table, out, workers)
    if not sharded:
        check_new(out)
    with reporter.catching_warnings():
        computation = load_computation()
        pipeline, preprocessor = computation.pipeline, computation.pipeline.preprocessor
        if preprocessor is not None and preprocessor.kind == "patches":
            if workers is None:
                pipeline.require_series()  # raises, as this command is for series alone
            check_new(out)
            with reporter.bar("reading") as on_file:
                files = read_folder(preprocessor, table, on_file, columns).dataset  # pyright: ignore
            with reporter.bar(title) as on_step:
                totals = scale.answer_arrays(computation, files, out, on_step)
        elif sharded:
            assert isinstance(load_computation, partial) and workers is not None
            model, options = load_computation.args[0], load_computation.keywords
            job = scale.ShardedJob(load_computation, command, model, options, pipeline.layout(asdict(columns)))
            with reporter.bar("shards") as on_step:
                done = scale.answer_shards(job, table, out, workers, on_step)
            before = f", {done.before:,} of them before" if done.before else ""
            reporter.say(f"{done.rows:,} {computation.noun} from {done.shards:,} shards{before} → {out}")
            return pipeline, reporter
        else:
            with reporter.bar(title) as on_step:
                totals = scale.answer_file(computation, table, out, pipeline.layout(asdict(columns)), on_step)
    rows, series = totals.rows - totals.empty, totals.answered if computation.at is None else len(computation.at.ids)
    of_series = "" if rows == series else f" of {series:,} series"
    reporter.say(f"{rows:,} {computation.noun}{of_series} → {out}{totals.said_of_empty}")
    return pipeline, reporter
