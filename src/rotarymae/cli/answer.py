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
    FolderReading,
    LabelColumn,
    ModelPath,
    OptionalTable,
    Quiet,
    TablePath,
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
    int, arg(help="This many processes share a folder of tables; the same command may also run on other computers.")
]


def predict(
    model: Positional[ModelPath],
    table: Positional[TablePath],
    out: Path,
    columns: Columns,
    folder: FolderReading,
    predictor: Predicting = "auto",
    anomaly_score: bool = False,
    precision: ComputedIn = "auto",
    workers: Workers = 1,
    quiet: Quiet = False,
) -> None:
    """Predict the label of every series in a table.

    For example: rotarymae predict run new.csv --out predictions.csv

    Args:
        model: This folder was written by `fit`, or is a model directory, which has the model alone.
        table: This table of observations is laid out as in training, unless options say otherwise; or it is a folder.
        out: The predictions go to this new .csv or .parquet file: id, predicted, and a probability per class; for
            a folder of tables they go to this folder, a file for each, and files that are there already are kept.
        predictor: The model predicts, gradient boosting (features), both (combined), or what `fit` chose (auto).
        anomaly_score: A column says how badly the pre-trained model predicts each series' observations, a quarter
            hidden at a time (mean negative log-likelihood, in nats): high ones may be anomalies. It takes about five
            times as long. A run without labels has this column alone.
    """

    from rotarymae import scale

    opened = partial(scale.open_predictions, model, predictor, anomaly_score, precision)
    options = {"predictor": predictor, "anomaly_score": anomaly_score, "precision": precision}
    _answer_each(opened, "predict", model, options, table, out, columns, folder, workers, quiet)


def embed(
    model: Positional[ModelPath],
    table: Positional[TablePath],
    out: Path,
    columns: Columns,
    folder: FolderReading,
    pool: AutoPool = "auto",
    stage: Literal["pretrained", "finetuned"] = "pretrained",
    precision: ComputedIn = "auto",
    workers: Workers = 1,
    quiet: Quiet = False,
) -> None:
    """Turn every series of a table into one vector.

    For example: rotarymae embed run new.csv --out vectors.parquet

    Args:
        model: This folder was written by `fit`, or is a model directory.
        table: This table of observations is laid out as in training, unless options say otherwise; or it is a folder.
        out: The embeddings go to this new .csv or .parquet file, as id and the columns e0, e1, and so on; for a
            folder of tables they go to this folder, a file for each, and files that are there already are kept.
        pool: The embedding is the mean or maximum over a series' tokens, the [CLS] token, or what the model was trained
            to use.
        stage: The embedding comes from the pre-trained or from the fine-tuned model in the folder.
    """

    from rotarymae import scale

    opened = partial(scale.open_embeddings, model, stage, pool, precision)
    options = {"stage": stage, "pool": pool, "precision": precision}
    _answer_each(opened, "embed", model, options, table, out, columns, folder, workers, quiet)


def explain(
    model: Positional[ModelPath],
    table: Positional[TablePath],
    out: Path,
    columns: Columns,
    quiet: Quiet = False,
) -> None:
    """Say how much each observation matters to the model's prediction, by leaving out each in turn.

    For example: rotarymae explain run new.csv --out importance.csv

    Args:
        model: This folder was written by `fit`, or is the directory of a fine-tuned model, which alone is explained.
        table: This table of observations is laid out as in training, unless options say otherwise.
        out: The answers go to this new .csv or .parquet file, with a row per observation: its time, channel and values,
            what the model predicts for the series, and the observation's importance. A series that is longer than the
            model reads at a time has an empty row.
    """
    from rotarymae import scale
    from rotarymae.pipeline import Pipeline

    reporter = new_reporter(quiet)
    check_new(out)
    with reporter.catching_warnings():
        pipeline = Pipeline.load(model)
        totals = _answer_table(scale.importances(pipeline), table, out, columns, "explaining", reporter)
    if pipeline.partners is not None and pipeline.partners.choice != "model":
        choice = pipeline.partners.choice
        reporter.say(f"explained and predicted by the model alone; `predict` takes {choice} for this run")
    if pipeline.require_series().window is not None:
        totals = replace(totals, what="series that are too long or without observations")
    rows = totals.rows - totals.empty
    reporter.say(f"{rows:,} observations of {totals.answered:,} series → {out}{totals.said_of_empty}")


def interpolate(
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
    """Predict values at any times, with standard deviations and 68 and 95 % bands.

    For example: rotarymae interpolate run new.csv --times 0 0.5 1 --out values.csv. A table alone (rotarymae
    interpolate new.csv --out values.csv) is answered by any-series, which was trained on drawn functions.

    Args:
        model: This folder was written by `fit`, or is the directory of a pre-trained model.
        table: This table of observations is laid out as in training, unless options say otherwise.
        out: The answers go to this new .csv or .parquet file, with the mean, deviation and bands of each value.
        at: Values are predicted for the ids, times and channels in this table; without channels, for all channels.
            One series needs no ids. With the error columns of the training, bands are those of observations with
            these errors instead of those of the curve.
        times: Values of every series and channel are predicted at these numbers or dates (2024-03-31T10:00); +4 or +4h
            count from each series' first observation.
        grid: Values are predicted at this many even times, from each series' first to its last observation.
    """
    from rotarymae import scale
    from rotarymae.pipeline import Pipeline
    from rotarymae.queries import QueryTable

    reporter = new_reporter(quiet)
    check_new(out)
    if sum([at is not None, bool(times), grid is not None]) > 1:
        raise InputError("give one of --at, --times and --grid.")
    model, table = _model_and_table(model, table)
    with reporter.catching_warnings():
        pipeline = Pipeline.load(model, precision).pretrained
        query_table = None if at is None else QueryTable.read(at, pipeline.layout(asdict(columns)), table)
        question = scale.values(pipeline, 100 if grid is None else grid, times, query_table)
        totals = _answer_table(question, table, out, columns, "interpolating", reporter)
    values, observed = totals.rows - totals.empty, totals.answered
    said = f"{values:,} values of {observed if query_table is None else len(query_table.ids):,} series"
    reporter.say(f"{said} → {out}{totals.said_of_empty}")
    _say_if_untrained(pipeline, table, columns, reporter)


def anomalies(
    model: Positional[ModelPath],
    table: Positional[OptionalTable] = None,
    *,
    out: Path,
    columns: Columns,
    precision: ComputedIn = "auto",
    quiet: Quiet = False,
) -> None:
    """Score how badly each observation is predicted from the others of its series: high scores are oddities.

    For example: rotarymae anomalies run new.csv --out scores.csv. A table alone (rotarymae anomalies new.csv --out
    scores.csv) is scored by any-series, which was trained on drawn functions.

    Args:
        model: This folder was written by `fit`, or is the directory of a pre-trained model.
        table: This table of observations is laid out as in training, unless options say otherwise.
        out: The scores go to this new .csv or .parquet file, with a row per observation: its time, channel and values,
            and the negative log-likelihood of each value in nats, a quarter of the series hidden at a time.
    """
    from rotarymae import scale
    from rotarymae.pipeline import Pipeline

    reporter = new_reporter(quiet)
    check_new(out)
    model, table = _model_and_table(model, table)
    with reporter.catching_warnings():
        pipeline = Pipeline.load(model, precision).pretrained
        totals = _answer_table(scale.observation_scores(pipeline), table, out, columns, "scoring", reporter)
    rows = totals.rows - totals.empty
    reporter.say(f"{rows:,} observations of {totals.answered:,} series → {out}{totals.said_of_empty}")
    _say_if_untrained(pipeline, table, columns, reporter)


def evaluate(
    model: Positional[ModelPath],
    table: Positional[TablePath],
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
    """Score the predictions for a labelled table that the model has not seen, or its forecasts of any table.

    For example: rotarymae evaluate run new.csv --labels kinds.csv --label kind --out metrics.json, or rotarymae
    evaluate run new.csv --horizon 6h

    Args:
        model: This folder was written by `fit`, or is a model directory.
        table: This table of observations is laid out as in training, unless options say otherwise; or it is a folder
            of pictures or sounds with one folder per class.
        out: The metrics go to this new JSON file; with --at a picture goes next to it.
        at: Also score predictions from the beginnings of series: what was known 30 (in the unit of time), 6h or 2d
            after the first observation.
        first: --at counts from the first observation where this column is not 0.
        horizon: Score forecasts of what comes within 30 (in the unit of time), 6h or 2d, next to the last value, the
            season before, the drift and the mean, instead of labels. Each series is forecast from eight times.
    """
    from rotarymae.labels import has_label
    from rotarymae.pipeline import Pipeline
    from rotarymae.run_folder import as_json
    from rotarymae.scoring import evaluate_predictions

    reporter = new_reporter(quiet)
    picture = None if out is None or not at else out.with_suffix(".png")
    for file in (out, picture):
        if file is not None and file.exists():
            raise InputError(f"{file} exists; choose another name, or remove it.")
    if first is not None and not at:
        raise InputError(f"--first {first} says what --at counts from; name times by --at.")
    if horizon is not None:
        if at or labels.labels is not None or labels.label is not None:
            raise InputError("--horizon scores forecasts of values, and --label, --labels and --at concern labels.")
        _evaluate_forecasts(Pipeline.load(model, precision).pretrained, model, table, columns, horizon, out, reporter)
        return
    since, spans = None, {}
    with reporter.catching_warnings():
        pipeline = Pipeline.load(model, precision)
        pipeline.require_labels()
        of_table = labels.labels is not None or labels.label is not None
        made_of = pipeline.preprocessor
        with reporter.bar("reading") as on_file:
            if made_of is not None and made_of.kind == "patches":
                if of_table or labels.label_id is not None:
                    raise InputError(
                        "--labels, --label and --label-id concern tables; a picture's or sound's class is its folder."
                    )
                if at:
                    raise InputError(f"--at concerns series; {made_of.noun} have no times.")
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
                    others=labels.beside,
                )
                if labels.event is not None and pipeline.require_labels().task != "survival":
                    raise InputError(
                        f"--event {labels.event} concerns times to an event, and the model is one of "
                        f"{pipeline.require_labels().task}; leave it out."
                    )
                targets = labels.read(dataset, layout, table)
                spans = {text.lstrip("+"): _span("--at", text, dataset.time_unit) for text in at}
                since = dataset.times[dataset.offsets[:-1]]
                if first is not None:
                    flags = replace(layout, values=(first,), errors=(), static=())
                    since = _first_flagged(dataset, tables.read_table(table, flags, others=labels.beside))
        _warn_of_training_series(model, dataset.ids[has_label(targets)])
        with reporter.bar("predicting") as on_step:
            metrics = evaluate_predictions(pipeline, dataset, targets, on_step, spans, since)
    if spans:
        early = metrics["early"] = {"first": f"observation with {first}" if first else "observation"} | metrics["early"]
        if early["left_out"]:
            reporter.warn(f"{early['left_out']:,} series have no observation with {first}: --at leaves them out.")
    if out is not None:
        system.write_text(out, as_json(metrics))
    if picture is not None:
        from rotarymae import plots
        from rotarymae.metrics import early_rows

        with system.replacing(picture) as beside:
            plots.early(early_rows(metrics), metrics["early"]["first"]).savefig(beside, format="png", dpi=160)
    print_metrics(metrics, reporter)


def _evaluate_forecasts(
    pipeline: Any,
    model: Path,
    table: Path,
    columns: Columns,
    horizon: str,
    out: Path | None,
    reporter: system.Reporter,
) -> None:
    """Score forecasts of a table's values, print them, and write them to `out`."""
    from rotarymae.run_folder import as_json
    from rotarymae.scoring import evaluate_forecasts

    with reporter.catching_warnings():
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
    metrics = {"series": len(dataset), "noun": dataset.noun, "horizon": horizon.lstrip("+"), "forecasts": rows}
    if out is not None:
        system.write_text(out, as_json(metrics))
    print_metrics(metrics, reporter)


def _span(option: str, text: str, unit: str | None) -> float:
    """Return a time span such as "30", "6h" or "+2d" as a number in `unit`. Raises InputError for other text."""
    from rotarymae.series.dates import parse_span

    span = parse_span(f"+{text.lstrip('+')}", unit)
    if not span:
        raise InputError(
            f"{option} {text} is no span of time; wanted a number, or one with d, h, min or s, such as 6h."
        )
    return span


def _first_flagged(dataset: SeriesDataset, flags: SeriesDataset) -> np.ndarray:
    """Return the first time at which each series' flag is not 0; NaN where it always is."""
    when = np.where(flags.values[:, 0] != 0, flags.times, np.inf)
    earliest = dict(zip(flags.ids.tolist(), np.minimum.reduceat(when, flags.offsets[:-1]).tolist(), strict=True))
    since = np.array([earliest.get(id, np.inf) for id in dataset.ids.tolist()])
    return np.where(np.isfinite(since), since, np.nan)


def _warn_of_training_series(run: Path, ids: np.ndarray) -> None:
    """Warn where some of these ids were in the training set of the run: their scores would be too good."""
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
    """Return (model, table); a lone argument is a table, for the model that needs no training.

    Raises:
        InputError: a model without a table.
    """
    from rotarymae.model_files import ANY_SERIES, CONFIG, MODEL, shipped_models

    if table is not None:
        return model, table
    if str(model) in shipped_models() or any((model / name / CONFIG).exists() for name in ("", MODEL)):
        raise InputError(f"{model} is a model, and no table was named; name the table behind it.", code="no-table")
    return Path(ANY_SERIES), model


def _say_if_untrained(pipeline: Any, table: Path, columns: Columns, reporter: system.Reporter) -> None:
    """Print, for the untrained model, how well it predicts hidden observations here, and when training would pay."""
    from rotarymae.pipeline import AnySeriesPipeline

    if not isinstance(pipeline, AnySeriesPipeline) or str(table) == "-":
        return
    parts = pipeline.reader(table, pipeline.layout(asdict(columns))).parts()
    dataset = next((part.dataset for part in parts if part.dataset is not None), None)
    compared = None if dataset is None else pipeline.beside_line(dataset)
    reporter.say("no training: a model trained on drawn functions" + (f"; {compared}" if compared else ""))


def _answer_table(
    question: scale.Question, table: Path, out: Path, columns: Columns, title: str, reporter: system.Reporter
) -> scale.Totals:
    """Write the answers for every series of one table to one file; return the totals."""
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
    """Write one answer per series, for a table, a folder of tables, or a folder of pictures or sounds.

    Args:
        open_question: loads the pipeline; also called in each worker process.
        command: "embed" or "predict".
        options: the command's options, recorded in the manifest of a folder of outputs.
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
