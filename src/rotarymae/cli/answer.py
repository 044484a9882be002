"""rotarymae predict | embed | explain | interpolate | anomalies | evaluate: what a model says of a table or folder."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from tyro.conf import Positional, arg

from rotarymae import system, tables
from rotarymae.cli.inputs import (
    Columns,
    ComputedIn,
    Flag,
    FolderReading,
    LabelColumn,
    ModelPath,
    OptionalTable,
    QuestionTable,
    Quiet,
    known_labels,
)
from rotarymae.cli.output import are_shards, as_file, check_new, new_reporter, print_metrics
from rotarymae.config import AutoPool
from rotarymae.errors import InputError, InputWarning
from rotarymae.training.fit_config import Predicting

if TYPE_CHECKING:
    from rotarymae import scale
    from rotarymae.series import SeriesDataset

Workers = Annotated[
    int,
    arg(
        help="Processes that share a folder of tables. Raise it on several cores; the same command may also run on "
        "other computers at the same time."
    ),
]


def predict_command(
    model: Positional[ModelPath],
    table: Positional[QuestionTable],
    out: Path,
    columns: Columns,
    folder: FolderReading,
    predictor: Predicting = "auto",
    anomaly_score: Flag = False,
    precision: ComputedIn = "auto",
    workers: Workers = 1,
    quiet: Quiet = False,
) -> None:
    """Predict the label of every series of a table, and write one row per series to a file.

    For example: rotarymae predict run new.csv --out predictions.csv. Classes have a probability each, numbers an
    interval. A model without labels can only give --anomaly-score.

    Args:
        out: New .csv or .parquet file; - prints CSV. For a folder of tables, a folder with a file for each; finished
            ones are kept.
        predictor: What predicts: the network (model), boosted trees on summary features (features), all methods
            averaged (combined), or what `fit` chose (auto).
        anomaly_score: Add a column: mean negative log-likelihood of hidden observations in nats. Set it to search for
            anomalies, which score high; takes five times as long.
    """

    from rotarymae import scale

    opened = partial(scale.open_predictions, model, predictor, anomaly_score, precision)
    options = {"predictor": predictor, "anomaly_score": anomaly_score, "precision": precision}
    _answer_each(opened, "predict", model, options, table, out, columns, folder, workers, quiet)


def embed_command(
    model: Positional[ModelPath],
    table: Positional[QuestionTable],
    out: Path,
    columns: Columns,
    folder: FolderReading,
    pool: AutoPool = "auto",
    stage: Literal["pretrained", "finetuned"] = "pretrained",
    precision: ComputedIn = "auto",
    workers: Workers = 1,
    quiet: Quiet = False,
) -> None:
    """Turn every series of a table into one vector, and write one row per series to a file: id, e0, e1, and so on.

    For example: rotarymae embed run new.csv --out vectors.parquet

    Args:
        out: New .csv or .parquet file; - prints CSV. For a folder of tables, a folder with a file for each; finished
            ones are kept.
        pool: The vector is the mean or maximum over a series' tokens, the [CLS] token, or what the model was trained
            to use (auto).
        stage: The vector comes from the pretrained model, or from the finetuned one, in which labels show; the latter
            needs a fit with labels.
    """

    from rotarymae import scale

    opened = partial(scale.open_embeddings, model, stage, pool, precision)
    options = {"stage": stage, "pool": pool, "precision": precision}
    _answer_each(opened, "embed", model, options, table, out, columns, folder, workers, quiet)


def explain_command(
    model: Positional[ModelPath],
    table: Positional[QuestionTable],
    out: Path,
    columns: Columns,
    quiet: Quiet = False,
) -> None:
    """Measure how much each observation matters to the network's prediction, by leaving out each in turn.

    For example: rotarymae explain run new.csv --out importance.csv. MODEL needs labels; its network is explained, not
    boosted trees. The file has a row per observation: id, time, channel, values, the network's prediction for the
    series, and the observation's importance. A series that is longer than the model reads at a time has one row with
    its id alone.

    Args:
        out: New .csv or .parquet file, with a row per observation; - prints CSV.
    """
    from rotarymae import scale
    from rotarymae.pipeline import Pipeline

    pipeline, reporter = _answer_rows(
        lambda: scale.importances(Pipeline.load(model)), table, out, columns, "explaining", quiet
    )
    if pipeline.predictor.choice != "model":
        choice = pipeline.predictor.choice
        reporter.say(f"explained and predicted by the model alone; `predict` takes {choice} for this run")


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

    For example: rotarymae interpolate run new.csv --times 0 0.5 1 --out values.csv. A table alone (rotarymae
    interpolate new.csv --out values.csv) is answered by any-series, which was trained on drawn functions. Give at most
    one of --at, --times and --grid. If the table of --at has the error columns of the training table, the bands are
    those of observations with these errors; otherwise they are those of the curve without noise.

    Args:
        out: New .csv or .parquet file: id, time, channel, mean, standard deviation and bands of each value; - prints
            CSV.
        at: Table of ids, times and channels to predict for, when they differ by series. Without channels: all; ids
            only if there are several series.
        times: The same times for every series and channel: numbers, dates (2024-03-31T10:00), or +4, +4h after a
            series' first observation.
        grid: Number of evenly spaced times, from each series' first to its last observation; set it for finer or
            coarser curves.
    """
    from rotarymae import scale
    from rotarymae.pipeline import Pipeline
    from rotarymae.queries import QueryTable

    if sum([at is not None, bool(times), grid is not None]) > 1:
        raise InputError("--at, --times and --grid each say where to predict, and several are given; give one of them.")
    model, table = _model_and_table(model, table)

    def question() -> scale.Question:
        """Load the pipeline, read the table of times if there is one, and return the question about values."""
        pipeline = Pipeline.load(model, precision).pretrained
        query_table = None if at is None else QueryTable.read(at, pipeline.layout(asdict(columns)), table)
        return scale.values(pipeline, 100 if grid is None else grid, times, query_table)

    _say_if_untrained(*_answer_rows(question, table, out, columns, "interpolating", quiet), table, columns)


def anomalies_command(
    model: Positional[ModelPath],
    table: Positional[OptionalTable] = None,
    *,
    out: Path,
    columns: Columns,
    precision: ComputedIn = "auto",
    quiet: Quiet = False,
) -> None:
    """Score how badly each observation is predicted from the others of its series, and write the scores to a file.

    For example: rotarymae anomalies run new.csv --out scores.csv. A table alone (rotarymae anomalies new.csv --out
    scores.csv) is scored by any-series, which was trained on drawn functions. A quarter of each series is hidden at a
    time; a score is the negative log-likelihood of a hidden value, in nats, and a high one marks an odd observation.

    Args:
        out: New .csv or .parquet file, a row per observation: id, time, channel, values, a score per value; - prints
            CSV.
    """
    from rotarymae import scale
    from rotarymae.pipeline import Pipeline

    model, table = _model_and_table(model, table)

    def question() -> scale.Question:
        """Load the pipeline, and return the question about scores."""
        return scale.anomalies(Pipeline.load(model, precision).pretrained)

    _say_if_untrained(*_answer_rows(question, table, out, columns, "scoring", quiet), table, columns)


def evaluate_command(
    model: Positional[ModelPath],
    table: Positional[QuestionTable],
    columns: Columns,
    labels: LabelColumn,
    folder: FolderReading,
    out: Annotated[Path | None, arg(help_behavior_hint="(default: no file)")] = None,
    at: Annotated[tuple[str, ...], arg(help_behavior_hint="(default: whole series)")] = (),
    first: Annotated[str | None, arg(help_behavior_hint="(default: the first observation)")] = None,
    horizon: Annotated[str | None, arg(help_behavior_hint="(default: no forecasts)")] = None,
    precision: ComputedIn = "auto",
    quiet: Quiet = False,
) -> None:
    """Score predictions of labelled series, or forecasts of any, that the model has not seen; print and write metrics.

    For example: rotarymae evaluate run new.csv --labels kinds.csv --label kind --out metrics.json; or rotarymae
    evaluate run new.csv --horizon 6h, which compares with the last value, the season before, the drift and the mean.
    Labels need a MODEL that has some; a folder of pictures or sounds has one folder per class inside. A warning says
    how many of the series the model was trained on.

    Args:
        out: New JSON file of the metrics. With --at, a PNG picture of the same name is written next to it.
        at: Also score predictions made early: 30 (in the table's unit of time), 6h or 2d after each series' first
            observation.
        first: With --at: count from the first observation where this column is not 0, such as a detection.
        horizon: Score forecasts of the next 30 (in the table's unit of time), 6h or 2d instead, from eight times per
            series, next to simple methods.
    """
    from rotarymae.ensemble import load
    from rotarymae.scoring import evaluate_predictions
    from rotarymae.targets import has_label

    reporter = new_reporter(quiet)
    picture = None if out is None or not at else out.with_suffix(".png")
    for file in (out, picture):
        if file is not None and file.exists():
            raise InputError(f"{file} exists; choose another name, or remove it.")
    if first is not None and not at:
        raise InputError(f"--first {first} says what --at counts from, and there is no --at; give times by --at, too.")
    if horizon is not None:
        if at or labels.labels is not None or labels.label is not None:
            raise InputError(
                "--horizon scores forecasts of values, and --label, --labels and --at are for labels; leave them out."
            )
        _evaluate_forecasts(model, table, columns, horizon, precision, out, reporter)
        return
    since, spans = None, {}
    with reporter.catching_warnings():
        pipeline = load(model, precision)
        pipeline.require_labels()
        of_table = labels.labels is not None or labels.label is not None
        made_of = pipeline.preprocessor
        with reporter.bar("reading") as on_file:
            if made_of is not None and made_of.kind == "patches":
                if of_table or labels.label_id is not None:
                    raise InputError(
                        "--labels, --label and --label-id are for tables, and the model is one of pictures or sounds, "
                        "whose classes are their folders; leave them out."
                    )
                if at:
                    raise InputError(f"--at is for series, and {made_of.noun} have no times; leave it out.")
                data = folder.read_for(made_of, table, on_file, columns)  # pyright: ignore
                dataset, targets = data.dataset, known_labels(data, table, getattr(pipeline.labels, "classes", ()))
            else:
                if not of_table:
                    raise InputError(
                        "evaluate needs the true labels: name their column by --label, or their table by --labels."
                    )
                folder.check_table()
                known, layout = pipeline.require_series(), pipeline.layout(asdict(columns))
                dataset = tables.read_table(
                    table,
                    layout,
                    channel_names=known.channel_names,
                    value_names=known.value_columns,
                    others=labels.columns,
                )
                if labels.event is not None and pipeline.require_labels().task != "survival":
                    raise InputError(
                        f"--event {labels.event} is for models of times to an event (survival), and this is one of "
                        f"{pipeline.require_labels().task}; leave it out."
                    )
                targets = labels.read(dataset, layout, table)
                spans = {text.lstrip("+"): _span("--at", text, dataset.time_unit) for text in at}
                since = dataset.times[dataset.offsets[:-1]]
                if first is not None:
                    flags = replace(layout, values=(first,), errors=(), static=())
                    since = _first_flagged(dataset, tables.read_table(table, flags, others=labels.columns))
        _warn_of_training_series(model, dataset.ids[has_label(targets)])
        with reporter.bar("predicting") as on_step:
            metrics = evaluate_predictions(pipeline, dataset, targets, on_step, spans, since)
    if spans:
        early = metrics["early"] = {"first": f"observation with {first}" if first else "observation"} | metrics["early"]
        if early["left_out"]:
            reporter.warn(f"{early['left_out']:,} series have no observation with {first}: --at leaves them out.")
    if out is not None:
        system.write_text(out, system.as_json(metrics))
    if picture is not None:
        from rotarymae import plots
        from rotarymae.metrics import early_rows

        with system.replacing(picture) as temporary:
            plots.early(early_rows(metrics), metrics["early"]["first"]).savefig(temporary, format="png", dpi=160)
    print_metrics(metrics, reporter)


def _evaluate_forecasts(
    model: Path,
    table: Path,
    columns: Columns,
    horizon: str,
    precision: ComputedIn,
    out: Path | None,
    reporter: system.Reporter,
) -> None:
    """Score forecasts of a table's values, print the metrics, and write them to the JSON file `out`, if that is given.

    Parameters are those of `evaluate_command`.

    Raises:
        InputError: a model without an autoencoder of series; a table or a horizon that cannot be read.
    """
    from rotarymae.pipeline import Pipeline
    from rotarymae.run_folder import as_json
    from rotarymae.scoring import evaluate_forecasts

    with reporter.catching_warnings():
        pipeline = Pipeline.load(model, precision).pretrained
        known = pipeline.require_series()
        with reporter.bar("reading"):
            dataset = tables.read_table(
                table,
                pipeline.layout(asdict(columns)),
                channel_names=known.channel_names,
                value_names=known.value_columns,
            )
        _warn_of_training_series(model, dataset.ids)
        with reporter.bar("forecasting") as on_step:
            span = _span("--horizon", horizon, dataset.time_unit)
            rows = evaluate_forecasts(pipeline, dataset, span, on_step)
    metrics = {"series": len(dataset), "noun": dataset.noun, "horizon": horizon.lstrip("+"), "interpolation": rows}
    if out is not None:
        system.write_text(out, as_json(metrics))
    print_metrics(metrics, reporter)


def _span(option: str, text: str, unit: str | None) -> float:
    """Return the time span `text`, such as "30", "6h" or "+2d", as a number of `unit`.

    Args:
        option: the command's option, for messages.
        unit: unit of the data set's times: "day", or None for numbers without a unit.

    Raises:
        InputError: text that is no span; d, h, min or s where the times have no unit.
    """
    from rotarymae.series.dates import parse_span

    span = parse_span(f"+{text.lstrip('+')}", unit)
    if span is None:
        raise InputError(
            f"{option} {text} is no span of time; wanted a number, or one with d, h, min or s, such as 6h."
        )
    return span


def _first_flagged(dataset: SeriesDataset, flags: SeriesDataset) -> np.ndarray:
    """Return, for each series of `dataset`, the first time at which its flag is not 0, float [S]; NaN without any.

    Args:
        flags: the same table read with the flag as its first column of values; series are matched by id.
    """
    when = np.where(flags.values[:, 0] != 0, flags.times, np.inf)
    earliest = dict(zip(flags.ids.tolist(), np.minimum.reduceat(when, flags.offsets[:-1]).tolist(), strict=True))
    since = np.array([earliest.get(id, np.inf) for id in dataset.ids.tolist()])
    return np.where(np.isfinite(since), since, np.nan)


def _warn_of_training_series(run: Path, ids: np.ndarray) -> None:
    """Warn, with an InputWarning, of ids that the run in the folder `run` was trained or chosen on.

    They are looked up in the run's predictions.parquet; does nothing without that file.
    """
    import pyarrow.parquet as pq

    if not (run / "predictions.parquet").is_file():
        return
    predictions = pq.read_table(run / "predictions.parquet")
    known = np.array(predictions.column(0).to_pylist(), object)
    trained = set(known[predictions["part"].to_numpy() != "test"].tolist())
    seen = sum(id in trained for id in ids.tolist())
    if seen:
        warnings.warn(
            f"{seen:,} of {len(ids):,} series have ids that the model was trained or chosen on: their scores are "
            "better than those of new series. Score series that it has not seen.",
            InputWarning,
            stacklevel=2,
        )


def _model_and_table(model: Path, table: Path | None) -> tuple[Path, Path]:
    """Return (model, table); where `table` is None, `model` is the table and the model is the shipped any-series.

    Raises:
        InputError: `table` is None and `model` is a model ("no-table").
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
    """Print, if the pipeline is any-series, that nothing was trained, and its error on hidden observations of `table`.

    The error is printed next to that of a straight line. Only the first part of the table is read, a second time. Does
    nothing for another pipeline, or where `table` is "-" (standard input cannot be read twice).
    """
    if not pipeline.untrained or str(table) == "-":
        return
    parts = pipeline.reader(table, pipeline.layout(asdict(columns))).parts()
    dataset = next((part.dataset for part in parts if part.dataset is not None), None)
    compared = None if dataset is None else pipeline.beside_line(dataset)
    reporter.say("no training: a model trained on drawn functions" + (f"; {compared}" if compared else ""))


def _answer_rows(
    open_question: Callable[[], scale.Question], table: Path, out: Path, columns: Columns, title: str, quiet: bool
) -> tuple[Any, system.Reporter]:
    """Write the answers for a table, one or more rows per series, to the new file `out`, and print how many there are.

    Args:
        open_question: loads the pipeline; called once.
        title: name of the progress bar.

    Returns:
        The pipeline that answered, and the reporter.

    Raises:
        InputError: a file that exists; a table that cannot be read or answered.
    """
    reporter = new_reporter(quiet)
    check_new(out)
    with reporter.catching_warnings():
        question = open_question()
        totals = _answer_table(question, table, out, columns, title, reporter)
    series = totals.answered if question.at is None else len(question.at.ids)
    rows = totals.rows - totals.empty
    reporter.say(f"{rows:,} {question.noun} of {series:,} series → {out}{totals.said_of_empty}")
    return question.pipeline, reporter


def _answer_table(
    question: scale.Question, table: Path, out: Path, columns: Columns, title: str, reporter: system.Reporter
) -> scale.Totals:
    """Write the answers for every series of one table to the file `out` ("-" prints CSV); return the totals.

    Args:
        columns: the command's options on the table's layout; what is not given is as in the model's training table.
        title: name of the progress bar.
    """
    from rotarymae import scale

    with as_file(out) as file, reporter.bar(title) as on_step:
        return scale.answer_file(question, table, file, question.pipeline.layout(asdict(columns)), on_step)


def _answer_each(
    open_question: Callable[[], scale.Question],
    command: str,
    model: Path,
    options: dict[str, Any],
    table: Path,
    out: Path,
    columns: Columns,
    folder: FolderReading,
    workers: int,
    quiet: bool,
) -> None:
    """Write one answer per series, for a table, a folder of tables, or a folder of pictures or sounds; print a summary.

    Args:
        open_question: loads the pipeline; also called in each worker process.
        command: "embed" or "predict".
        model: the folder that `open_question` loads; its checksum goes into the manifest of a folder of outputs.
        options: the command's options, recorded in the same manifest.
        out: a file, "-" for standard output, or a folder for a folder of tables; see `are_shards`.

    Raises:
        InputError: options of tables for a model of pictures or sounds, or the reverse; an output that exists.
    """
    from rotarymae import scale

    reporter, sharded = new_reporter(quiet), are_shards(table, out, workers)
    title = {"embed": "embedding", "predict": "predicting"}[command]
    with reporter.catching_warnings():
        question = open_question()
        made_of = question.pipeline.preprocessor
        if made_of is None or made_of.kind != "patches":
            folder.check_table()
        if made_of is not None and made_of.kind == "patches":
            check_new(out)
            with reporter.bar("reading") as on_file:
                files = folder.read_for(made_of, table, on_file, columns).dataset  # pyright: ignore
            with as_file(out) as file, reporter.bar(title) as on_step:
                totals = scale.answer_arrays(question, files, file, on_step)
        elif sharded:
            layout = question.pipeline.layout(asdict(columns))
            with reporter.bar("shards") as on_step:
                done = scale.answer_shards(
                    scale.ShardedJob(open_question, command, model, options, layout), table, out, workers, on_step
                )
            before = f", {done.before:,} of them before" if done.before else ""
            reporter.say(f"{done.rows:,} {question.noun} from {done.shards:,} shards{before} → {out}")
            return
        else:
            totals = _answer_table(question, table, out, columns, title, reporter)
    reporter.say(f"{totals.answered:,} {question.noun} → {out}{totals.said_of_empty}")
