"""The questions to a pipeline for each series of a table: predictions, embeddings, importance, values at any times.

A `Question` answers a data set that fits into memory; `tables` and `shards` cut larger tables into such. A new one is a
function here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa

from rotarymae.anomaly import odd_observations
from rotarymae.config import AutoPool, Precision
from rotarymae.datasets import AnyDataset
from rotarymae.ensemble import load
from rotarymae.errors import InputWarning, choose, listed
from rotarymae.heads import encoder_of
from rotarymae.pipeline import Pipeline
from rotarymae.queries import Queries, QueryTable, grid, queries_at
from rotarymae.run_folder import (
    embedding_columns,
    importance_columns,
    interpolation_columns,
    prediction_columns,
    score_columns,
)
from rotarymae.series import SeriesDataset

ModelStage = Literal["pretrained", "finetuned"]
UNTRAINED_AT_A_TIME = 1 << 13  # observations
QUERIES_AT_ONCE = 1 << 22  # queries of a series' values that are answered at a time, with all their bands some 400 MB


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers for S series.

    Attributes:
        columns: table of n rows; those of a series are together, in the order of the data set.
        rows: int [S], number of rows of each series.
    """

    columns: pa.Table
    rows: np.ndarray


@dataclass(frozen=True, eq=False)
class Question:
    """Describe a computation for every series of a table, whatever its size.

    Attributes:
        pipeline: the pipeline that computes it.
        answer: function (data set, on_step) → Answers.
        noun: what the answers are, for messages.
        schema: columns of the answers; None where they depend on the table.
        at: the table of query times, if any.
        at_a_time: number of observations, about, whose answers are written at a time; None leaves it to the reader.
    """

    pipeline: Pipeline
    answer: Callable[[Any, Any], Answers]
    noun: str
    schema: pa.Schema | None = None
    at: QueryTable | None = None
    at_a_time: int | None = None


def embeddings(pipeline: Pipeline, pool: AutoPool = "auto") -> Question:
    """Return the question that embeds each series, one row with the columns e0, e1, ...; see `Pipeline.embed`.

    Raises InputError for an unknown `pool`; "auto" is what the model was trained to use.
    """
    choose("pool", pool, get_args(AutoPool))
    width = encoder_of(pipeline.model).config.embed_dim

    def answer(dataset: AnyDataset, on_step: Any) -> Answers:
        """Return the embeddings, with one row per series."""
        vectors = pipeline.embed(dataset, None if pool == "auto" else pool, on_step=on_step)
        return _one_row_each(embedding_columns(vectors), len(dataset))

    schema = pa.table(embedding_columns(np.zeros((1, width), np.float32))).schema
    return Question(pipeline, answer, f"embeddings of {width} numbers", schema)


def open_embeddings(
    model: str | Path, stage: ModelStage = "pretrained", pool: AutoPool = "auto", precision: Precision = "auto"
) -> Question:
    """Load a model and return the question that embeds with it; as `open_stage` and then `embeddings`."""
    return embeddings(open_stage(model, stage, precision), pool)


def open_stage(model: str | Path, stage: ModelStage, precision: Precision = "auto") -> Pipeline:
    """Load a pipeline, for its pre-trained or its fine-tuned model.

    Args:
        model: what `Pipeline.load` reads.
        stage: "pretrained" returns the part with the autoencoder, or the whole pipeline if it has none; "finetuned" the
            whole pipeline.

    Raises:
        InputError: stage "finetuned" for a pipeline that was not fine-tuned.
        ModelDirectoryError: as `Pipeline.load`.
    """
    choose("stage", stage, ("pretrained", "finetuned"))
    pipeline = Pipeline.load(model, precision)
    if stage == "finetuned":
        pipeline.require_labels()
        return pipeline
    return pipeline if pipeline.autoencoder is None else pipeline.pretrained


def predictions(pipeline: Pipeline, predictor: str = "auto", anomaly_score: bool = False) -> Question:
    """Return the question that predicts each series: class and probabilities, value and interval, or expected time.

    Args:
        predictor: "model", "features", "combined", or "auto" for what the fit chose.
        anomaly_score: adds a column of that name, last. A pipeline without labels then gives this column alone.

    Raises:
        InputError: a pipeline without labels, unless `anomaly_score`; a predictor that the pipeline does not have.
    """
    score = _anomaly_scores(pipeline) if anomaly_score else None
    if score is not None and pipeline.labels is None:
        return score
    labels = pipeline.require_labels()
    pipeline.predictor.check(predictor)

    half = pipeline.half_widths(predictor=predictor)

    def answer(dataset: AnyDataset, on_step: Any) -> Answers:
        """Return the columns of predictions, with one row per series."""
        outputs = pipeline.outputs(dataset, predictor, on_step if score is None else None)
        columns = prediction_columns(labels, outputs, half)
        if score is not None:
            columns["anomaly_score"] = score.answer(dataset, on_step).columns["anomaly_score"]
        return _one_row_each(columns, len(dataset))

    schema = pa.table(prediction_columns(labels, np.zeros((1, labels.outputs)), half)).schema
    if score is not None and score.schema is not None:
        schema = pa.schema([*schema, *score.schema])
    return Question(pipeline, answer, "predictions", schema)


def open_predictions(
    model: str | Path, predictor: str = "auto", anomaly_score: bool = False, precision: Precision = "auto"
) -> Question:
    """Load a model and return the question that predicts with it; as `rotarymae.load` and then `predictions`."""
    return predictions(load(model, precision), predictor, anomaly_score)


def _anomaly_scores(pipeline: Pipeline) -> Question:
    """Return the question for `Pipeline.anomaly_score`: one row per series, empty where a series has no score.

    Raises InputError for a pipeline without an autoencoder of series.
    """
    pretrained = pipeline.pretrained

    def answer(dataset: AnyDataset, on_step: Any) -> Answers:
        """Return the scores, with one row per series."""
        scores = pa.array(pretrained.anomaly_score(dataset, on_step), from_pandas=True)  # NaN is an empty cell
        return _one_row_each({"anomaly_score": scores}, len(dataset))

    return Question(pretrained, answer, "anomaly scores", pa.schema({"anomaly_score": pa.float64()}))


def anomalies(pipeline: Pipeline) -> Question:
    """Return the question that scores every observation, and the stretch around it, given the others of its series.

    There is a row per observation, with time, channel, values and two scores per value: those of
    `Pipeline.observation_scores` and `Pipeline.stretch_scores`. Raises InputError for a pipeline without an autoencoder
    of series.
    """
    pipeline = pipeline.pretrained

    def answer(dataset: SeriesDataset, on_step: Any) -> Answers:
        """Return the scores, with one row per observation."""
        single, stretch = odd_observations(pipeline, dataset, on_step)
        return Answers(pa.table(score_columns(dataset, anomaly_score=single, stretch_score=stretch)), dataset.lengths)

    return Question(pipeline, answer, "observations")


def importances(pipeline: Pipeline) -> Question:
    """Return the question that measures the importance of every observation; see `Pipeline.importance`.

    There is a row per observation: time, channel, values, importance, and what the network alone predicts for the
    series. Observations of series longer than the model's window have no importance, with an InputWarning.

    Raises:
        InputError: a pipeline without labels, or of pictures or sounds.
    """
    labels, limit = pipeline.require_labels(), pipeline.require_series().window or np.inf

    def answer(dataset: SeriesDataset, on_step: Any) -> Answers:
        """Return the columns of importances, with one row per observation."""
        fits = np.flatnonzero(dataset.lengths <= limit)
        importance = [np.full(length, np.nan) for length in dataset.lengths]
        if len(fits):
            for i, one in zip(fits, pipeline.importance(dataset.select(fits), on_step), strict=True):
                importance[i] = one
        if len(fits) < len(dataset):
            warnings.warn(
                f"{len(dataset) - len(fits):,} series have more than the {limit:.0f} observations that the model reads "
                f"at a time, and are not explained: {listed(np.delete(dataset.ids, fits))}. Ask about shorter pieces "
                "of them.",
                InputWarning,
                stacklevel=2,
            )
        columns = importance_columns(dataset, importance)
        rows = pa.array(np.repeat(np.arange(len(dataset)), dataset.lengths))
        predicted = prediction_columns(labels, pipeline.outputs(dataset, "model"))
        columns |= {name: cells.take(rows) for name, cells in predicted.items() if name.startswith("predicted")}
        return Answers(pa.table(columns), dataset.lengths)

    return Question(pipeline, answer, "observations")


def values(
    pipeline: Pipeline, points: int = 100, times: Sequence[float | str] = (), at: QueryTable | None = None
) -> Question:
    """Return the question that predicts values with bands, with one row per query; see `interpolate`.

    Args:
        points: number of even times from each series' first to its last observation, in every channel.
        times: if there are any, they replace `points`: numbers, dates, or texts such as "+4h" after each series' first
            observation.
        at: if given, its ids, times and channels replace both.

    Raises:
        InputError: a pipeline without an autoencoder of series.
    """
    pipeline = pipeline.pretrained

    def queries(dataset: SeriesDataset) -> Queries:
        """Return the queries of a data set: from the table, the times or the grid."""
        if at is not None:
            return at.queries(dataset)
        if times:
            return queries_at(dataset, times)
        return grid(dataset, points)

    def answer_part(dataset: SeriesDataset, on_step: Any) -> Answers:
        """Return the predictions for some series, with one row per query; a table without columns for no queries."""
        part_queries = queries(dataset)
        if not len(part_queries.times):
            return Answers(pa.table({}), part_queries.lengths)
        answer = pipeline.answer(dataset, part_queries, on_step)
        names = pipeline.predicted_names(dataset)
        where = (part_queries.times, part_queries.channels, dataset.channel_names, names)
        return Answers(pa.table(interpolation_columns(*where, answer, dataset.time_zone)), part_queries.lengths)

    def answer(dataset: SeriesDataset, on_step: Any) -> Answers:
        """Return the predictions for all series, computed in parts that fit into memory."""
        channels = 1 if dataset.channel_names is None else len(dataset.channel_names)
        each, total = channels * (len(times) or points), len(dataset)
        several = total if at is not None else max(1, QUERIES_AT_ONCE // max(1, each))
        parts = []
        for i in range(0, total, several):
            stop = min(i + several, total)
            # Progress in series: those before these, and the share of these that is done.
            step = on_step and (lambda k, n, i=i, stop=stop: on_step(i + (stop - i) * k // n, total))
            parts.append(answer_part(dataset if several >= total else dataset.select(np.arange(i, stop)), step))
        return Answers(pa.concat_tables([one.columns for one in parts]), np.concatenate([one.rows for one in parts]))

    # any-series takes some seconds for so many; who waits for the first answers waits no longer.
    return Question(pipeline, answer, "values", at=at, at_a_time=UNTRAINED_AT_A_TIME if pipeline.untrained else None)


def _one_row_each(columns: dict[str, Any], series: int) -> Answers:
    """Return columns with one row for each of so many series as Answers."""
    return Answers(pa.table(columns), np.ones(series, np.int64))
