"""What can be asked of a model for series: embeddings, predictions, values at any times. Each is a job.

A job answers a data set that fits into memory; `tables` and `shards` cut larger tables into such. A new job is a class
here.
"""

from __future__ import annotations

import functools
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np
import pyarrow as pa

from rotarymae import partners, tasks
from rotarymae.checkpoints import ModelDirectory, find_model, open_model
from rotarymae.config import Precision
from rotarymae.errors import InputError, InputWarning, choose, listed
from rotarymae.heads import Classifier, Regressor, encoder_of
from rotarymae.model import MaskedAutoencoder
from rotarymae.series import SeriesDataset, parse_time

Stage = Literal["pretrained", "finetuned"]
Pool = Literal["auto", "mean", "max", "cls"]
POINTS = 1 << 22  # queries of a series' values that are answered at a time, with all their bands some 400 MB


@dataclass(frozen=True, eq=False)
class Answers:
    """A job's answers for S series.

    Attributes:
        columns: [n] rows, those of a series together and in the order of the data set; no columns where no rows.
        rows: int [S], how many each series has.
    """

    columns: pa.Table
    rows: np.ndarray


@dataclass(frozen=True, eq=False)
class Job(ABC):
    """What is asked for every series.

    Attributes:
        directory: the model that answers.
    """

    directory: ModelDirectory

    @property
    def schema(self) -> pa.Schema | None:
        """The columns of its answers; None where they depend on the table."""
        return None

    def answerable(self, dataset: SeriesDataset) -> np.ndarray:
        """Which series can be answered, bool [S]; of the others, warnings say why."""
        return np.ones(len(dataset), bool)

    @abstractmethod
    def answer(self, dataset: tasks.AnyDataset, on_step: Any = None) -> Answers:
        """The answers for a data set that fits into memory."""


def _one_each(columns: dict[str, Any], series: int) -> Answers:
    return Answers(pa.table(columns), np.ones(series, np.int64))


@dataclass(frozen=True, eq=False)
class Embedding(Job):
    """One vector per series, as columns e0, e1, ..; see `tasks.embed`."""

    pool: Pool = "auto"

    @classmethod
    def open(
        cls,
        model: str | Path,
        stage: Stage = "pretrained",
        pool: Pool = "auto",
        precision: Precision = "auto",
    ) -> Self:
        """Of a model directory, or of a run folder's model of a stage. Raises as `checkpoints.open_model`."""
        choose("pool", pool, get_args(Pool))
        return cls(open_model(model, stage, precision), pool)

    @property
    def schema(self) -> pa.Schema:
        width = encoder_of(self.directory.model).config.embed_dim
        return pa.table(tasks.embedding_columns(np.zeros((1, width), np.float32))).schema

    def answer(self, dataset: tasks.AnyDataset, on_step: Any = None) -> Answers:
        found = tasks.embed(self.directory, dataset, None if self.pool == "auto" else self.pool, on_step=on_step)
        return _one_each(tasks.embedding_columns(found), len(dataset))


_OPENING = threading.Lock()


def open_once(model: str, stage: Stage = "pretrained", pool: Pool = "auto", precision: Precision = "auto") -> Embedding:
    """As `Embedding.open`, but a process loads each model once, also when several of its threads ask for it; one in a
    folder is loaded anew after it was written anew."""
    written = tuple(path.stat().st_mtime_ns for path in sorted(Path(model).rglob("*.safetensors")))
    with _OPENING:
        return _open(model, stage, pool, precision, written)


@functools.cache
def _open(model: str, stage: Stage, pool: Pool, precision: Precision, written: tuple[int, ...]) -> Embedding:
    return Embedding.open(model, stage, pool, precision)


@dataclass(frozen=True, eq=False)
class Surprising(Job):
    """How surprising each series is to a pre-trained model, as the column surprise; see `tasks.surprise`."""

    @classmethod
    def open(cls, model: str | Path, precision: Precision = "auto") -> Self:
        """Of a run folder's pre-trained model, or of its directory.

        Raises:
            InputError: a model that does not predict hidden observations, or not those of series.
            ModelDirectoryError: as `checkpoints.load_directory`.
        """
        directory = open_model(model, "pretrained", precision)
        directory.of_series()
        if not isinstance(directory.model, MaskedAutoencoder):
            raise InputError(
                f"{model} is a {type(directory.model).__name__}; surprise is of a pre-trained MaskedAutoencoder: name "
                "the run folder, which has one beside it."
            )
        return cls(directory)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema({"surprise": pa.float64()})

    def answer(self, dataset: tasks.AnyDataset, on_step: Any = None) -> Answers:
        assert isinstance(dataset, SeriesDataset)
        found = pa.array(tasks.surprise(self.directory, dataset, on_step), from_pandas=True)  # NaN is an empty cell
        return _one_each({"surprise": found}, len(dataset))


@dataclass(frozen=True, eq=False)
class Predicting(Job):
    """The predicted class and a probability per class, or the predicted value; see `partners.Predictor`.

    Attributes:
        beside: what scores the surprise of each series, in a column of its own.
    """

    predictor: partners.Predictor
    choice: str = "auto"
    beside: Surprising | None = None

    @classmethod
    def open(
        cls, model: str | Path, choice: str = "auto", surprise: bool = False, precision: Precision = "auto"
    ) -> Self:
        """Of a run folder, or of a model directory, which has the model alone.

        Raises:
            InputError: a model that is not fine-tuned; a choice that the predictor has not; as `Surprising.open`.
            ModelDirectoryError: as `checkpoints.load_directory`.
        """
        beside = Surprising.open(model, precision) if surprise else None
        directory = open_model(model, "finetuned", precision)
        if not isinstance(directory.model, Classifier | Regressor):
            raise InputError(
                f"{model} is a {type(directory.model).__name__}; predictions need a fine-tuned Classifier or "
                "Regressor, which `rotarymae fit` with --labels makes; --surprise alone needs none."
            )
        predictor = partners.Predictor.of_run(model, directory)
        predictor.check(choice)
        return cls(directory, predictor, choice, beside)

    @property
    def schema(self) -> pa.Schema:
        preprocessor = self.directory.preprocessor
        assert preprocessor is not None
        width = len(preprocessor.classes or preprocessor.target or ())
        schema = pa.table(tasks.prediction_columns(self.directory, np.zeros((1, width)))).schema
        return schema if self.beside is None else pa.schema([*schema, *self.beside.schema])

    def answer(self, dataset: tasks.AnyDataset, on_step: Any = None) -> Answers:
        of_model = tasks.predict_labels(self.directory, dataset, on_step if self.beside is None else None)
        found = self.predictor.predict(of_model, dataset, self.choice)
        columns = tasks.prediction_columns(self.directory, found)
        if self.beside is not None:
            columns["surprise"] = self.beside.answer(dataset, on_step).columns["surprise"]
        return _one_each(columns, len(dataset))


def open_predicting(
    model: str | Path, choice: str = "auto", surprise: bool = False, precision: Precision = "auto"
) -> Predicting | Surprising:
    """Predictions, with their surprise if asked for; of a run or a model that is only pre-trained, the surprise alone.

    Raises:
        As `Predicting.open`.
    """
    if surprise and not (find_model(model) / "finetuned").is_dir():
        return Surprising.open(model, precision)
    return Predicting.open(model, choice, surprise, precision)


@dataclass(frozen=True, eq=False)
class Explaining(Job):
    """How much each observation matters to the model's prediction, one row per observation; see `tasks.importance`."""

    predictor: partners.Predictor
    method: tasks.ImportanceMethod = "occlusion"

    @classmethod
    def open(cls, model: str | Path, method: tasks.ImportanceMethod = "occlusion") -> Self:
        """Of a run folder's fine-tuned model, or of its directory.

        What is explained is the model, also where the run predicts by more than that. Raises as
        `checkpoints.open_model` and `Predictor.of_run`.
        """
        directory = open_model(model, "finetuned")
        return cls(directory, partners.Predictor.of_run(model, directory), method)

    def answerable(self, dataset: SeriesDataset) -> np.ndarray:
        most = tasks.most_observations(self.directory.of_series())
        fits = np.asarray(dataset.lengths) <= most
        if not fits.all():
            warnings.warn(
                f"{(~fits).sum():,} series have more than the {most:.0f} observations that the model reads at a time, "
                f"and are not explained: {listed(dataset.ids[~fits])}. Ask about shorter pieces of them.",
                InputWarning,
                stacklevel=2,
            )
        return fits

    def answer(self, dataset: tasks.AnyDataset, on_step: Any = None) -> Answers:
        if not isinstance(dataset, SeriesDataset):
            raise InputError(f"{dataset.noun} came; what can matter here are observations of series.")
        found = tasks.importance(self.directory, dataset, self.method, on_step=on_step)
        columns = tasks.importance_columns(dataset, found)
        rows = pa.array(np.repeat(np.arange(len(dataset)), dataset.lengths))
        of_model = self.predictor.predict(tasks.predict_labels(self.directory, dataset), dataset, "model")
        predicted = tasks.prediction_columns(self.directory, of_model)
        columns |= {name: cells.take(rows) for name, cells in predicted.items() if name.startswith("predicted")}
        return Answers(pa.table(columns), dataset.lengths)


@dataclass(frozen=True, eq=False)
class Interpolating(Job):
    """Values at any times with their bands, one row per query; see `tasks.interpolate`.

    Attributes:
        points: so many even times from each series' first to its last observation, in every channel.
        times: or these, as numbers or dates.
        at: or those of a table.
    """

    points: int = 100
    times: Sequence[float | str] = ()
    at: tasks.QueryTable | None = None

    @classmethod
    def open(
        cls,
        model: str | Path,
        points: int = 100,
        times: Sequence[float | str] = (),
        at: tasks.QueryTable | None = None,
        precision: Precision = "auto",
    ) -> Self:
        """Of a run folder's pre-trained model, or of its directory. Raises as `checkpoints.open_model`."""
        return cls(open_model(model, "pretrained", precision), points, times, at)

    def answer(self, dataset: tasks.AnyDataset, on_step: Any = None) -> Answers:
        if not isinstance(dataset, SeriesDataset):
            raise InputError(f"{dataset.noun} came; values at any times are those of series.")
        channels = 1 if dataset.channel_names is None else len(dataset.channel_names)
        each = channels * (len(self.times) or self.points)
        several = len(dataset) if self.at is not None else max(1, POINTS // max(1, each))
        found, total = [], len(dataset)
        for i in range(0, total, several):
            stop = min(i + several, total)
            # Progress in series: those before these, and the share of these that is done.
            step = on_step and (lambda k, n, i=i, stop=stop: on_step(i + (stop - i) * k // n, total))
            found.append(self._answer(dataset if several >= total else dataset.select(np.arange(i, stop)), step))
        return Answers(pa.concat_tables([one.columns for one in found]), np.concatenate([one.rows for one in found]))

    def _answer(self, dataset: SeriesDataset, on_step: Any) -> Answers:
        queries = self._queries(dataset)
        if not len(queries.times):
            return Answers(pa.table({}), queries.lengths)
        found = tasks.interpolate(self.directory, dataset, queries, on_step=on_step)
        asked = (queries.times, queries.channels, dataset.channel_names, self.directory.of_series().value_names)
        columns = tasks.interpolation_columns(*asked, found, dataset.time_zone)
        return Answers(pa.table(columns), queries.lengths)

    def _queries(self, dataset: SeriesDataset) -> tasks.Queries:
        if self.at is not None:
            return self.at.queries(dataset)
        if self.times:
            return tasks.queries_at(dataset, np.array([parse_time(str(one), dataset.time_zone) for one in self.times]))
        return tasks.grid(dataset, self.points)
