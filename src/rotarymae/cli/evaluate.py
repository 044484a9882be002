"""rotarymae evaluate: scores of predictions, or of forecasts, for a table or folder that the model has not seen."""

from __future__ import annotations

import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from tyro.conf import Positional, arg

from rotarymae import system, tables
from rotarymae.cli.inputs import (
    Columns,
    ComputedIn,
    LabelColumn,
    ModelPath,
    QuestionTable,
    Quiet,
    first_flagged,
    given_options,
    known_labels,
    read_folder,
)
from rotarymae.cli.output import print_metrics
from rotarymae.errors import InputError, InputWarning
from rotarymae.series.dates import span_of

if TYPE_CHECKING:
    from rotarymae.series import SeriesDataset


def evaluate_command(
    model: Positional[ModelPath],
    table: Positional[QuestionTable],
    columns: Columns,
    labels: LabelColumn,
    out: Annotated[Path | None, arg(help_behavior_hint="(default: no file)")] = None,
    at: Annotated[tuple[str, ...], arg(help_behavior_hint="(default: whole series)")] = (),
    first: Annotated[str | None, arg(help_behavior_hint="(default: the first observation)")] = None,
    horizon: Annotated[str | None, arg(help_behavior_hint="(default: no forecasts)")] = None,
    precision: ComputedIn = "auto",
    quiet: Quiet = False,
) -> None:
    """Score a model on series that it has not seen: its predictions of labels, or its forecasts; print the metrics.

    For example: rotarymae evaluate run new.csv --labels kinds.csv --label kind --out metrics.json; or rotarymae
    evaluate run new.csv --horizon 6h, which compares with the last value, the season before, the drift and the mean.
    Labels need a MODEL that was trained with some; a folder of pictures or sounds has one folder per class inside. A
    warning says how many of the series the model was trained or chosen on, if any.

    Args:
        out: New JSON file for the metrics. Name it to keep them; with --at, a PNG picture of the same name is written
            next to it.
        at: Scoring: also score predictions of series that are cut off this long after their first observation: 30 (in
            the table's unit of time) or, if times are dates, 6h or 2d. Give it to see how early predictions are good.
        first: Scoring: with --at, column of flags, such as detections: times count from the first observation where it
            is not 0; series without one are left out. Name it if series begin long before the event.
        horizon: Scoring: score forecasts of values instead of labels: of the next 30 (in the table's unit of time) or,
            if times are dates, 6h or 2d, from eight times in each series. Give it for a model that is to forecast.
    """
    from rotarymae.ensemble import load
    from rotarymae.scoring import evaluate_predictions
    from rotarymae.targets import has_label

    reporter = system.Reporter(quiet)
    picture = None if out is None or not at else out.parent / f"{out.stem}.png"
    for file in (out, picture):
        if file is not None and file.exists():
            raise InputError(f"{file} exists, and is not overwritten; choose another name, or remove it.")
    if out is not None:
        system.check_writable(out)
        if out == picture:
            raise InputError(f"{out} would hold both the metrics and the picture of --at; let --out end in .json.")
    if first is not None and not at:
        raise InputError(f"--first {first} says what --at counts from, and there is no --at; add it, or omit --first.")
    if horizon is not None:
        of_labels = [*given_options(labels), *(["--at"] if at else [])]
        if of_labels:
            raise InputError(f"--horizon scores forecasts of values, not of labels; leave out {', '.join(of_labels)}.")
        with reporter.catching_warnings():
            metrics = _forecast_metrics(model, table, columns, horizon, precision, reporter)
        _write(metrics, out, reporter)
        return
    since, spans = None, {}
    with reporter.catching_warnings():
        pipeline = load(model, precision)
        pipeline.require_labels()
        made_of = pipeline.preprocessor
        with reporter.bar("reading") as on_file:
            if made_of is not None and made_of.kind == "patches":
                if given_options(labels):
                    raise InputError(
                        f"the classes of {made_of.noun} are the folders that hold them; leave out "
                        f"{', '.join(given_options(labels))}."
                    )
                if at:
                    raise InputError(f"--at is for series, and {made_of.noun} have no times; leave it out.")
                data = read_folder(made_of, table, on_file, columns)  # pyright: ignore
                dataset, targets = data.dataset, known_labels(data, table, getattr(pipeline.labels, "classes", ()))
            else:
                if labels.name is None:
                    raise InputError(
                        "no labels are named, and evaluate needs the true ones: name their column by --label, or their "
                        "table by --labels."
                    )
                dataset, layout = _read_series(pipeline, table, columns, labels.columns)
                if labels.event is not None and pipeline.require_labels().task != "survival":
                    raise InputError(
                        f"--event {labels.event} is for models of times to an event (survival), and this model is for "
                        f"{pipeline.require_labels().task}; leave --event out."
                    )
                targets = labels.read(dataset, layout, table)
                spans = {text.lstrip("+"): span_of("--at", text, dataset.time_unit) for text in at}
                since = dataset.times[dataset.offsets[:-1]]
                if first is not None:
                    since = first_flagged(dataset, table, layout, first)
        _warn_of_training_series(model, dataset.ids[has_label(targets)])
        with reporter.bar("predicting") as on_step:
            metrics = evaluate_predictions(pipeline, dataset, targets, on_step, spans, since)
    if spans:
        early = metrics["early"] = {"first": f"observation with {first}" if first else "observation"} | metrics["early"]
        if early["left_out"]:
            reporter.warn(
                f"{early['left_out']:,} series have no observation where {first} is not 0: they are left out "
                "of the scores of --at, which count from it."
            )
    _write(metrics, out, reporter)
    if picture is not None:
        from rotarymae import plots
        from rotarymae.metrics import early_rows

        with system.replacing(picture) as temporary:
            plots.early(early_rows(metrics), metrics["early"]["first"]).savefig(temporary, format="png", dpi=160)


def _write(metrics: dict[str, Any], out: Path | None, reporter: system.Reporter) -> None:
    """Write metrics, laid out as metrics.json, to `out` unless it is None; print them unless `reporter` is quiet."""
    if out is not None:
        system.write_text(out, system.as_json(metrics))
    print_metrics(metrics, reporter)


def _read_series(
    pipeline: Any, table: Path, columns: Columns, others: tuple[str, ...] = ()
) -> tuple[SeriesDataset, tables.TableSchema]:
    """Read a table as a pipeline of series needs it; return the data set, and the layout by which it was read.

    Args:
        pipeline: a trained pipeline; the channels and columns of values that it was trained on are read.
        table: the table.
        columns: the command's options on the layout; what is not given is as in the pipeline's training table.
        others: names of columns that are no values, such as that of labels.

    Raises:
        InputError: a pipeline that was not trained on a table of series; a table that cannot be read.
    """
    known, layout = pipeline.require_series(), pipeline.layout(asdict(columns))
    names = {"channel_names": known.channel_names, "value_names": known.value_columns}
    return tables.read_table(table, layout, **names, others=others), layout


def _forecast_metrics(
    model: Path, table: Path, columns: Columns, horizon: str, precision: ComputedIn, reporter: system.Reporter
) -> dict[str, Any]:
    """Score forecasts of a table's values up to `horizon` ahead; return the metrics as a dictionary for JSON.

    Its keys are "series" (their number), "noun" (the word for them), "horizon" (without "+") and "interpolation"
    ({column of values: scores}, as in metrics.json).

    Args:
        model, table, columns, precision: as for the command `evaluate`.
        horizon: such as "30", in the unit of the times, or "6h".
        reporter: shows progress.

    Raises:
        InputError: a model without an autoencoder of series; a table or a horizon that cannot be read; no observation
            within the horizon.
        ModelDirectoryError: a folder that is no whole model.

    Warns:
        InputWarning: some of the series are those that the model was trained or chosen on.
    """
    from rotarymae.pipeline import Pipeline
    from rotarymae.scoring import evaluate_forecasts

    pipeline = Pipeline.load(model, precision).pretrained
    with reporter.bar("reading"):
        dataset, _ = _read_series(pipeline, table, columns)
    _warn_of_training_series(model, dataset.ids)
    with reporter.bar("forecasting") as on_step:
        span = span_of("--horizon", horizon, dataset.time_unit)
        rows = evaluate_forecasts(pipeline, dataset, span, on_step)
    return {"series": len(dataset), "noun": dataset.noun, "horizon": horizon.lstrip("+"), "interpolation": rows}


def _warn_of_training_series(run: Path, ids: np.ndarray) -> None:
    """Warn, with an InputWarning, if a model was trained or chosen on some of the series to be scored.

    Args:
        run: folder of the model. Its predictions.parquet says in which part of the run each series was; those of any
            part but "test" count. Without this file, or a column "part" in it, nothing is checked; a damaged one is
            named by a warning.
        ids: [S] ids of the series to be scored.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = run / "predictions.parquet"
    if not path.is_file():
        return
    try:
        predictions = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        text = f"{path} is damaged, so that it is not known which series the model was trained on: {error}"
        warnings.warn(text, InputWarning, stacklevel=2)
        return
    if "part" not in predictions.column_names:
        return
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
