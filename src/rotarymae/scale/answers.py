"""Computations of a pipeline for each series of a table: predictions, embeddings, importance, values at any times.

A `Computation` is of a data set that fits into memory; `tables` and `shards` cut larger tables into such. A new one is
a function here.
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
from rotarymae.queries import QueryTable, grid, queries_at
from rotarymae.run_folder import (
    embedding_columns,
    interpolation_columns,
    prediction_columns,
    score_columns,
)
from rotarymae.series import SeriesDataset, channel_index, plain

ModelStage = Literal["pretrained", "finetuned"]
UNTRAINED_AT_A_TIME = 1 << 13  # observations; any-series takes some seconds, and nobody waits longer for first answers
QUERIES_AT_ONCE = 1 << 22  # queries of a series' values that are answered at a time, with all their bands some 400 MB


@dataclass(frozen=True, eq=False)
class Results:
    """The results of a `Computation` for S series.

    Attributes:
        columns: Arrow table of n rows, without ids. Rows of a series are together, and series are in the order of the
            data set.
        rows: int [S], number of rows of each series; their sum is n.
    """

    columns: pa.Table
    rows: np.ndarray


@dataclass(frozen=True, eq=False)
class Computation:
    """A computation for every series of a table, whatever its size.

    Attributes:
        pipeline: the pipeline that computes it.
        compute: called with (data set, on_step), returns `Results`. It calls on_step, if that is not None, with (steps
            done, steps in all).
        noun: what the results are, in the plural, for messages.
        schema: columns of the results; None if they depend on the table.
        at: the table of query times; None if the computation has none.
        cost: called with a data set, returns costs [S] of its series. Series are answered together as long as their
            costs sum to about 1. None answers each part of a table at once.
    """

    pipeline: Pipeline
    compute: Callable[[Any, Any], Results]
    noun: str
    schema: pa.Schema | None = None
    at: QueryTable | None = None
    cost: Callable[[Any], np.ndarray] | None = None


def embeddings(
    model: Pipeline | str | Path,
    pool: AutoPool = "auto",
    stage: ModelStage = "pretrained",
    precision: Precision = "auto",
) -> Computation:
    """Return a `Computation` that embeds each series of a table as a vector.

    Its function `compute` returns one row per series, with the columns e0, e1, ... (float32).

    Args:
        model: a pipeline, which is used as it is; or the folder or name of one, which is loaded.
        pool: how the vectors of a series' observations become one: "mean" or "max" over them, "cls" for the [CLS]
            token, or "auto" for what the model was trained to use (for a pre-trained model the mean).
        stage: which model of a loaded pipeline is used, "pretrained" (the autoencoder) or "finetuned". Without an
            autoencoder, "pretrained" uses the fine-tuned model. Not used if `model` is a pipeline.
        precision: number format of matrix products ("auto", "fp32", "bf16") of a loaded pipeline.

    Raises:
        InputError: an unknown `pool` or `stage`; stage "finetuned" of a folder without such a model; the folder of a
            cross-validation. If `model` is the pipeline of a cross-validation, or lacks what `pool` needs, the error
            comes when embeddings are computed.
        ModelDirectoryError: a folder that is no whole model.
    """
    choose("pool", pool, get_args(AutoPool))
    choose("stage", stage, get_args(ModelStage))
    pipeline = model if isinstance(model, Pipeline) else Pipeline.load(model, precision)
    if pipeline is not model and stage == "finetuned":
        pipeline.require_labels()
    elif pipeline is not model and pipeline.autoencoder is not None:
        pipeline = pipeline.pretrained
    width = encoder_of(pipeline.model).config.embed_dim

    def compute(dataset: AnyDataset, on_step: Any) -> Results:
        """Return the embeddings of a data set's series: columns e0, e1, ..., one row per series."""
        vectors = pipeline.embed(dataset, None if pool == "auto" else pool, on_step=on_step)
        return _one_row_each(embedding_columns(vectors), len(dataset))

    schema = pa.table(embedding_columns(np.zeros((1, width), np.float32))).schema
    return Computation(pipeline, compute, f"embeddings of {width} numbers", schema)


def predictions(
    model: Any, predictor: str = "auto", anomaly_score: bool = False, precision: Precision = "auto"
) -> Computation:
    """Return a `Computation` that predicts a class, a number or a time to event for each series of a table.

    Its function `compute` returns one row per series. The columns (see `prediction_columns`) are "predicted", or for
    several numbers "predicted_0", "predicted_1" and so on, and

    - for classes "probability_NAME" of each;
    - for numbers the edges of the 90 % interval, if the pipeline has intervals;
    - for times to an event "survival_TIME", the probability that the event comes later, at some times.

    Args:
        model: a pipeline; or the folder or name of one, which is loaded by `rotarymae.load`.
        predictor: "model" (the network), "features" (boosted trees), "combined", or "auto" for what the fit chose.
        anomaly_score: whether to add "anomaly_score" (see `Pipeline.anomaly_score`) as the last column; it is empty for
            a series without a score. For a pipeline without labels it is then the only column.
        precision: number format of matrix products ("auto", "fp32", "bf16") of a loaded pipeline.

    Raises:
        InputError: a pipeline without labels, unless only `anomaly_score` is asked for; a predictor that the pipeline
            does not have; `anomaly_score` of a pipeline without an autoencoder.
        ModelDirectoryError: a folder that is no whole model.
    """
    pipeline = load(model, precision) if isinstance(model, str | Path) else model
    score = _anomaly_scores(pipeline) if anomaly_score else None
    if score is not None and pipeline.labels is None and predictor == "auto":
        return score
    labels = pipeline.require_labels()
    pipeline.predictor.check(predictor)
    half = pipeline.half_widths(predictor=predictor)

    def compute(dataset: AnyDataset, on_step: Any) -> Results:
        """Return the predictions of a data set's series, and their anomaly scores if asked for: one row per series."""
        outputs = pipeline.outputs(dataset, predictor, on_step if score is None else None)
        columns = prediction_columns(labels, outputs, half)
        if score is not None:
            columns["anomaly_score"] = score.compute(dataset, on_step).columns["anomaly_score"]
        return _one_row_each(columns, len(dataset))

    schema = pa.table(prediction_columns(labels, np.zeros((1, labels.outputs)), half)).schema
    if score is not None and score.schema is not None:
        schema = pa.schema([*schema, *score.schema])
    return Computation(pipeline, compute, "predictions", schema)


def _anomaly_scores(pipeline: Pipeline) -> Computation:
    """Return the `Computation` of how unusual each series is: one row with the column "anomaly_score".

    See `Pipeline.anomaly_score`; the cell is empty for a series without a score. Raises InputError for a pipeline
    without an autoencoder.
    """
    pretrained = pipeline.pretrained

    def compute(dataset: AnyDataset, on_step: Any) -> Results:
        """Return the scores of a data set's series."""
        scores = pa.array(pretrained.anomaly_score(dataset, on_step), from_pandas=True)  # NaN is an empty cell
        return _one_row_each({"anomaly_score": scores}, len(dataset))

    return Computation(pretrained, compute, "anomaly scores", pa.schema({"anomaly_score": pa.float64()}))


def anomalies(pipeline: Pipeline) -> Computation:
    """Return the `Computation` (work to be done on a table of any size) that scores how unusual each observation is.

    Its output has one row per observation, with the columns "time", "channel" (if there are channels), the values,
    their limits ("NAME_limit", if there are limits), and two scores for each value column:

    - "anomaly_score" of the observation alone, given the others of its series (see `Pipeline.observation_scores`);
    - "stretch_score" of the run of consecutive observations around it (see `Pipeline.stretch_scores`).

    With several value columns the scores are called "NAME_anomaly_score" and "NAME_stretch_score". A missing score is
    an empty cell. Raises InputError for a pipeline without an autoencoder; a pipeline of pictures or sounds is refused
    when scores are computed.
    """
    pipeline = pipeline.pretrained

    def compute(dataset: SeriesDataset, on_step: Any) -> Results:
        """Return a data set's observations with their scores as a table, one row per observation."""
        dataset = pipeline.dataset(dataset)  # so that all parts of a table have the same columns
        single, stretch = odd_observations(pipeline, dataset, on_step)
        return Results(pa.table(score_columns(dataset, anomaly_score=single, stretch_score=stretch)), dataset.lengths)

    return Computation(pipeline, compute, "observations")


def importances(pipeline: Pipeline) -> Computation:
    """Return the `Computation` that tells how much each observation matters for the prediction of its series.

    Its result is a table with one row per observation. The columns are "time", "channel" (if there are channels), the
    values, their limits ("NAME_limit", if there are limits), "importance" (see `Pipeline.importance`), and "predicted"
    (or "predicted_0" and so on for several outputs), the network's prediction for the series. The importance is empty
    for series of one observation, and for series with more observations than the model reads at a time; an InputWarning
    names the latter.

    Args:
        pipeline: a fine-tuned pipeline of series.

    Raises:
        InputError: a pipeline without labels, or of pictures or sounds.
    """
    labels, limit = pipeline.require_labels(), pipeline.require_series().window or np.inf

    def compute(dataset: SeriesDataset, on_step: Any) -> Results:
        """Return a table of a data set's observations, each with its importance and the prediction for its series.

        Importances are empty for series of one observation, and for series longer than the model reads at a time, of
        which it warns (InputWarning).
        """
        dataset = pipeline.dataset(dataset)
        fits = np.flatnonzero(dataset.lengths <= limit)
        importance = [np.full(length, np.nan) for length in dataset.lengths]
        if len(fits):
            for i, one in zip(fits, pipeline.importance(dataset.select(fits), on_step), strict=True):
                importance[i] = one
        if len(fits) < len(dataset):
            warnings.warn(
                f"{len(dataset) - len(fits):,} series have more than the {limit:.0f} observations that the model reads "
                f"at a time, and get no importance: {listed(np.delete(dataset.ids, fits))}. Give shorter pieces of "
                "them.",
                InputWarning,
                stacklevel=2,
            )
        columns = score_columns(dataset, importance=np.concatenate(importance).astype(np.float64)[:, None])
        rows = pa.array(np.repeat(np.arange(len(dataset)), dataset.lengths))
        predicted = prediction_columns(labels, pipeline.outputs(dataset, "model"))
        columns |= {name: cells.take(rows) for name, cells in predicted.items() if name.startswith("predicted")}
        return Results(pa.table(columns), dataset.lengths)

    return Computation(pipeline, compute, "observations")


def values(
    pipeline: Pipeline, points: int = 100, times: Sequence[float | str] = (), at: QueryTable | None = None
) -> Computation:
    """Return the `Computation` of each series' predicted values at given times, with prediction bands.

    Its results have one row per time (and channel, if there are channels). The columns, from `interpolation_columns`,
    are "time"; "channel"; for each value column NAME (the mean), NAME_std and the edges of bands, such as NAME_lower95
    and NAME_upper95; and "distance", the time to the nearest observation of the same channel.

    Args:
        pipeline: has an autoencoder of series.
        points: number of evenly spaced times, from the first to the last observation of each series, in every channel.
        times: used in place of `points`: times, in every channel, as numbers, dates, or texts such as "+4h", which
            count from each series' first observation. () uses `points`.
        at: used in place of `points` and `times`: a table of ids, times and channels. None for no table.

    Raises:
        InputError: a pipeline without an autoencoder. When values are computed: a pipeline of pictures or sounds, less
            than one of `points`, or text in `times` that is no time.
    """
    pipeline = pipeline.pretrained

    def cost(dataset: SeriesDataset) -> np.ndarray:
        """Return the cost [S] of each series; series are answered together as long as their costs sum to about 1.

        The cost is the number of queries over 4 million, so that their answers fit into memory; queries of a table `at`
        do not count. For the model any-series the cost is at least the number of observations over 8,192, so that first
        answers come soon.
        """
        channels = 1 if dataset.channel_names is None else len(dataset.channel_names)
        queries = 0 if at is not None else channels * (len(times) or points)
        untrained = dataset.lengths / UNTRAINED_AT_A_TIME if pipeline.untrained else 0
        return np.maximum(untrained, np.full(len(dataset), queries / QUERIES_AT_ONCE))

    def compute(dataset: SeriesDataset, on_step: Any) -> Results:
        """Return the predicted values as a table, one row per query; without queries it has no columns."""
        if at is not None:
            queries = at.queries(dataset)
        else:
            queries = queries_at(dataset, times) if times else grid(dataset, points)
        if not len(queries.times):
            return Results(pa.table({}), queries.lengths)
        unseen = np.setdiff1d(channel_index(queries), channel_index(dataset))
        if pipeline.untrained and len(unseen):
            names = listed([(dataset.channel_names or ())[c] for c in unseen])
            warnings.warn(
                f"none of {len(dataset):,} series, of which {plain(dataset.ids[0])!r} is the first, has an observation "
                f"of the channels {names}: their predictions and bands there say nothing.",
                InputWarning,
                stacklevel=2,
            )
        answer = pipeline.answer(dataset, queries, on_step)
        asked = (queries.times, queries.channels, dataset.channel_names, pipeline.predicted_names(dataset))
        return Results(pa.table(interpolation_columns(*asked, answer, dataset.time_zone)), queries.lengths)

    return Computation(pipeline, compute, "values", at=at, cost=cost)


def _one_row_each(columns: dict[str, Any], series: int) -> Results:
    """Return `Results` with one row for each of `series` = S series, from columns {name: Arrow array [S]}."""
    return Results(pa.table(columns), np.ones(series, np.int64))
