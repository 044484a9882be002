"""A fitted model with all that its answers need: the one thing that is trained, saved, loaded, exported and asked.

    pipeline = rotarymae.load("run")
    pipeline.predict(X)
    pipeline.interpolate(X, at=[0.0, 0.5, 1.0], return_std=True)

X is a `SeriesDataset` or `ArrayDataset`, the path of a table, a data frame, or anything that the estimators take.
"""

from __future__ import annotations

import dataclasses
import html
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, cast

import jinja2
import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import nn

import rotarymae
from rotarymae.anomaly import anomaly_score, observation_scores
from rotarymae.any_series import AnySeries
from rotarymae.arrays import ArrayDataset, as_arrays
from rotarymae.calibration import Calibration
from rotarymae.config import Precision, RoMAEConfig
from rotarymae.datasets import AnyPreprocessor, is_flat
from rotarymae.errors import InputError, ModelDirectoryError, check_number, choose
from rotarymae.heads import Classifier, Regressor, TokenRegressor, encoder_of, head_settings
from rotarymae.importance import importance
from rotarymae.interpolation import Interpolation, interpolate, interpolated
from rotarymae.labels import LABELS, ClassLabels, EventTimes, Labels
from rotarymae.model import Encoder, MaskedAutoencoder
from rotarymae.model_files import (
    CARD,
    CONFIG,
    FILES,
    FOLDS_FOLDER,
    METRICS_FILE,
    PARTNERS_FOLDER,
    WEIGHTS,
    check_names,
    fill_model,
    find_model,
    fold_folders,
    read_config,
    read_json,
    read_tensors,
    write_config,
)
from rotarymae.partners import EACH_CHOICE, INTERVAL, Predictor, half_widths, least_errors
from rotarymae.prediction import embed, predict_outputs
from rotarymae.preprocess import ObservationPreprocessor, PatchPreprocessor, preprocessor_class
from rotarymae.queries import Queries
from rotarymae.series import SeriesDataset
from rotarymae.system import from_fields, remove_leftovers, replacing_folder
from rotarymae.tables import TableReader, TableSchema, as_dataset, is_frame, read_table
from rotarymae.training.fit_config import FitConfig
from rotarymae.untrained import BesideLine, beside_line, embed_any, interpolate_any

PIPELINE_FORMAT = 4  # 3 kept the preprocessor's settings in a file of their own
WRITTEN_BY = "written by rotarymae"  # in every model card
SAVE_SECONDS = 3600.0  # seconds; saving takes far less
KINDS: dict[str, type[nn.Module]] = {
    kind.__name__: kind for kind in (Encoder, MaskedAutoencoder, AnySeries, Classifier, Regressor, TokenRegressor)
}
HEADLESS = ("Encoder", "MaskedAutoencoder", "AnySeries")
Model = Encoder | MaskedAutoencoder | Classifier | Regressor | TokenRegressor


@dataclass(frozen=True)
class Described:
    """The content of config.json, without format version and checksums."""

    preprocessor: dict[str, Any] | None
    model: dict[str, Any]
    autoencoder: dict[str, Any] | None = None
    labels: dict[str, Any] | None = None
    columns: dict[str, Any] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)
    forecasts: bool = False
    calibrated: bool = False


@dataclass(eq=False, repr=False)
class Pipeline:
    """A fitted model with its preprocessor, and with what decodes and calibrates its answers.

    Parameters
    ----------
    preprocessor : ObservationPreprocessor, PatchPreprocessor or None
        Turns tables or arrays into the model's tokens; None where the caller makes tokens.
    model : Encoder, MaskedAutoencoder, Classifier, Regressor or TokenRegressor
        Predicts and embeds. Without labels it is the autoencoder itself.
    autoencoder : MaskedAutoencoder or None
        The pre-trained model, which interpolates; None where there is none.
    labels : ClassLabels, NumberTargets, EventTimes or None
        Classes, scale or intervals of the model's outputs; None of a model without a head.
    partners : Predictor or None
        Models that predict together with this one; None where it predicts alone.
    columns : dict
        Layout of the training table, so that later tables need not be described.
    forecasts : bool
        Whether pre-training hid the ends of series (`masking="future"`), so that the model knows what follows.
    parameters : dict
        The options of the fit, as JSON.
    precision : str
        Of matrix products in predictions: "auto", "fp32" or "bf16". It is not saved.
    calibration : Calibration or None
        Of interpolations, by the time to the nearest observation; None where nothing was measured.

    Raises
    ------
    InputError
        A model of a class that no pipeline has.
    """

    preprocessor: AnyPreprocessor | None
    model: Model
    autoencoder: MaskedAutoencoder | None = None
    labels: Labels | None = None
    partners: Predictor | None = None
    columns: dict[str, Any] = field(default_factory=dict)
    forecasts: bool = False
    parameters: dict[str, Any] = field(default_factory=dict)
    precision: Precision = "auto"
    calibration: Calibration | None = None

    def __post_init__(self) -> None:
        """Check the model's class; a masked autoencoder is also the pipeline's `autoencoder`. Raises InputError."""
        if KINDS.get(type(self.model).__name__) is not type(self.model):
            raise InputError(f"the model is a {type(self.model).__name__}; wanted one of {', '.join(KINDS)}.")
        if isinstance(self.model, MaskedAutoencoder):
            self.autoencoder = self.model

    def __repr__(self) -> str:
        sizes, noun = encoder_of(self.model).config, "tokens" if self.preprocessor is None else self.preprocessor.noun
        return f"Pipeline({type(self.model).__name__} {sizes.embed_dim}/{sizes.num_heads}/{sizes.depth}, {noun})"

    @property
    def pretrained(self) -> Pipeline:
        """Return a pipeline with the autoencoder only, which reads no static columns.

        Raises
        ------
        InputError
            The pipeline has no autoencoder.
        """
        model = self.require_autoencoder()
        if model is self.model and self.labels is None:
            return self
        fresh = None if self.preprocessor is None else without_head(self.preprocessor)
        return replace(self, preprocessor=fresh, model=model, autoencoder=model, labels=None, partners=None)

    def require_autoencoder(self) -> MaskedAutoencoder:
        """Return the pre-trained model, or raise.

        Returns
        -------
        MaskedAutoencoder
            The model that interpolates.

        Raises
        ------
        InputError
            The pipeline has no autoencoder.
        """
        if self.autoencoder is None:
            raise InputError(
                f"this needs a pre-trained MaskedAutoencoder, and the pipeline has a {type(self.model).__name__} alone."
            )
        return self.autoencoder

    def of_series(self) -> Pipeline:
        """Return the part of the pipeline that interpolates series, or raise.

        Returns
        -------
        Pipeline
            The same as `pretrained`, checked to have a preprocessor of series.

        Raises
        ------
        InputError
            The pipeline has no autoencoder, or was trained on pictures or sounds.
        """
        view = self.pretrained
        view.require_series()
        return view

    def require_one(self) -> Pipeline:
        """Return the pipeline itself; an `Ensemble` raises, because it only predicts.

        Returns
        -------
        Pipeline
            The pipeline of one model.
        """
        return self

    def require_labels(self) -> Labels:
        """Return what decodes the outputs of a fine-tuned model, or raise.

        Returns
        -------
        ClassLabels, NumberTargets or EventTimes
            The classes, the scale of the numbers, or the intervals of times to an event.

        Raises
        ------
        InputError
            The model is not fine-tuned.
        """
        if self.labels is None or not isinstance(self.model, Classifier | Regressor):
            raise InputError(
                f"the model is a {type(self.model).__name__} and not fine-tuned; `rotarymae fit` with labels makes one "
                "that predicts them."
            )
        return self.labels

    def require_series(self) -> ObservationPreprocessor:
        """Return the preprocessor of a model of series, or raise.

        Returns
        -------
        ObservationPreprocessor
            Turns series into tokens.

        Raises
        ------
        InputError
            The model was not trained on series.
        """
        if self.preprocessor is None or self.preprocessor.kind != "observations":
            noun = "tokens" if self.preprocessor is None else self.preprocessor.noun
            raise InputError(f"the model was trained on {noun}, and this needs one trained on series.")
        return cast(ObservationPreprocessor, self.preprocessor)

    def require_arrays(self) -> PatchPreprocessor:
        """Return the preprocessor of a model of pictures, videos or sounds, or raise.

        Returns
        -------
        PatchPreprocessor
            Turns arrays into tokens.

        Raises
        ------
        InputError
            The model was not trained on arrays.
        """
        if self.preprocessor is None or self.preprocessor.kind != "patches":
            raise InputError("the model was not trained on pictures, videos or sounds, and this needs one that was.")
        return cast(PatchPreprocessor, self.preprocessor)

    # ── answers ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def predict(self, X: Any, return_interval: float | None = None) -> Any:
        """Predict the class, the value or the time to the event of each series.

        Parameters
        ----------
        X : Any
            Data in any form that `dataset` reads.
        return_interval : float or None
            Of a regression also return an interval that holds this share of the values, such as 0.9.

        Returns
        -------
        ndarray of shape [S] or [S, outputs], or (value, lower, upper) of such
            The most probable classes; values in the units of the training targets; or the expected time to the event,
            of which no more than the last interval's end counts.

        Raises
        ------
        InputError
            The model is not fine-tuned; an interval of a class, or of a share with too few validation series.
        """
        labels = self.require_labels()
        half = None if return_interval is None else self.require_half_widths(return_interval)
        outputs = self.outputs(X)
        if half is None:
            return labels.predicted(outputs)
        return tuple(labels.predicted(edge) for edge in (outputs, outputs - half, outputs + half))

    @property
    def errors(self) -> dict[str, list[list[float]]]:
        """Return the absolute errors of validation series in each output, by predictor; empty for classes."""
        return {} if self.partners is None else self.partners.errors

    def half_widths(self, share: float = INTERVAL, predictor: str = "auto") -> np.ndarray | None:
        """Return half the width of the intervals that hold a share of the values.

        Parameters
        ----------
        share : float
            The share of values, more than 0 and less than 1.
        predictor : str
            "model", "features" or "combined" instead of what the fit chose ("auto").

        Returns
        -------
        ndarray of shape [outputs] or None
            In the units of the targets; None where too few errors of validation series are known.
        """
        return half_widths(self.errors.get(self.choice if predictor == "auto" else predictor, ()), share)

    def require_half_widths(self, share: float) -> np.ndarray:
        """Return `half_widths`, or raise where intervals cannot be given.

        Parameters
        ----------
        share : float
            The share of values, more than 0 and less than 1.

        Returns
        -------
        ndarray of shape [outputs]
            Half the width of the intervals, in the units of the targets.

        Raises
        ------
        InputError
            The model predicts classes; a share out of range; too few errors of validation series.
        """
        if self.require_labels().task != "regression":
            raise InputError(
                f"prediction intervals are for regression, and this is a {self.require_labels().task}; leave out "
                "return_interval."
            )
        check_number("return_interval", share, "a share of more than 0 and less than 1", above=0, below=1)
        half = self.half_widths(share)
        if half is None:
            known = min(map(len, self.errors.get(self.choice, ())), default=0)
            raise InputError(
                f"a prediction interval of {100 * share:g} % needs at least {least_errors(share):,} validation "
                "series, and "
                f"there are {known:,}; ask for a lower share, or fit with more series or a larger validation_fraction."
            )
        return half

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict the probability of each class.

        Parameters
        ----------
        X : Any
            Data in any form that `dataset` reads.

        Returns
        -------
        ndarray of shape [S, classes]
            Probabilities, in the order of `labels.classes`.

        Raises
        ------
        InputError
            The model is not a fine-tuned classifier.
        """
        if not isinstance(self.labels, ClassLabels):
            raise InputError(
                f"the model is a {type(self.model).__name__}; class probabilities need a fine-tuned Classifier."
            )
        return self.outputs(X)

    def survival(self, X: Any, times: Any = None) -> np.ndarray:
        """Predict the probability that the event comes after each of some times.

        Parameters
        ----------
        X : Any
            Data in any form that `dataset` reads.
        times : array of shape [T] or None
            Durations, the same for all series; without them those by which a quarter, a half and three quarters of the
            training events were.

        Returns
        -------
        ndarray of shape [S, T]
            Probabilities, which fall with the time.

        Raises
        ------
        InputError
            The model does not predict times to an event; times that are negative, or after the last training event.
        """
        labels = self.require_labels()
        if not isinstance(labels, EventTimes):
            raise InputError(
                f"survival needs a model of times to an event (--event, RoMAESurvival), and this is a {labels.task}."
            )
        at = labels.times if times is None else np.atleast_1d(np.asarray(times, np.float64))
        if not ((at >= 0) & (at <= labels.edges[-1])).all():
            raise InputError(
                f"survival is known from 0 to {labels.edges[-1]:g}, the time of the last training event; give times "
                "in this range."
            )
        return labels.survival(self.outputs(X), at)

    def outputs(self, X: Any, predictor: str = "auto", on_step: Any = None) -> np.ndarray:
        """Predict class probabilities, or values.

        Parameters
        ----------
        X : Any
            Data in any form that `dataset` reads.
        predictor : str
            "model", "features" or "combined" instead of what the fit chose ("auto").
        on_step : callable or None
            Called with how much is done and how much there is.

        Returns
        -------
        ndarray of shape [S, classes] or [S, outputs]
            Probabilities of classes, or of the intervals of a time to an event; or values in the units of the targets.

        Raises
        ------
        InputError
            The model is not fine-tuned, or the pipeline does not have this predictor.
        """
        task, dataset = self.require_labels().task, self.dataset(X)
        partners = self.partners or Predictor.of_model(task, "the pipeline has no partners")
        partners.check(predictor)
        return partners.predict(predict_outputs(self, dataset, on_step), dataset, predictor)

    @property
    def choice(self) -> str:
        """Return the name of what predicts: "model", "features" or "combined"."""
        return "model" if self.partners is None else self.partners.choice

    def every(self, X: Any, on_step: Any = None) -> dict[str, np.ndarray]:
        """Predict with the model, with each partner, and with their combination.

        Parameters
        ----------
        X : Any
            Data in any form that `dataset` reads.
        on_step : callable or None
            Called with how much is done and how much there is.

        Returns
        -------
        dict of str to ndarray
            Predictor → its `outputs`.

        Raises
        ------
        InputError
            The model is not fine-tuned.
        """
        task, dataset = self.require_labels().task, self.dataset(X)
        partners = self.partners or Predictor.of_model(task, "the pipeline has no partners")
        return partners.every(predict_outputs(self, dataset, on_step), dataset)

    def describe_choice(self) -> dict[str, Any]:
        """Return what predicts and why, for people and metrics.json.

        Returns
        -------
        dict
            The chosen predictor, the reason, and how each predictor did.
        """
        task = self.require_labels().task
        return (self.partners or Predictor.of_model(task, "the pipeline has no partners")).describe()

    def embed(self, X: Any, pool: str | None = None, on_step: Any = None) -> np.ndarray:
        """Turn each series into one vector.

        Parameters
        ----------
        X : Any
            Data in any form that `dataset` reads.
        pool : str or None
            "mean" or "max" over the tokens, or "cls", the [CLS] token, to which pre-training gives no task of its own.
            If None, as the model's head pools; without a head the mean.
        on_step : callable or None
            Called with how much is done and how much there is.

        Returns
        -------
        ndarray of shape [S, D]
            The vectors.
        """
        return embed(self, self.dataset(X), pool, on_step)

    def interpolate(self, X: Any, at: Any = None, return_std: bool = False, positions: Any = None) -> Any:
        """Predict values of the series at other times; as `RoMAEInterpolator.predict`.

        Parameters
        ----------
        X : Any
            Data in any form that `dataset` reads.
        at : array of shape [q], list of arrays or None
            Times, the same for all series, or one array of times [q_i] for each. Without them, each series' times.
        return_std : bool
            Whether to return standard deviations as well.
        positions : array of shape [q, P], list of arrays or None
            Further positions of these times, the same for all series, or one array [q_i, P] for each.

        Returns
        -------
        ndarray, list of ndarray, or tuple of two such
            Values in the table's units: [S, q, V], or [S, C, q, V] of series with C channels, or a list with one array
            for each series. With `return_std` means and deviations, of the same shape.

        Raises
        ------
        InputError
            The pipeline has no autoencoder; times that cannot be used; `return_std` of a model without a likelihood.
        """
        return interpolated(self.pretrained, self.pretrained.dataset(X), X, at, return_std, positions)

    def answer(self, dataset: SeriesDataset, queries: Queries, on_step: Any = None) -> Interpolation:
        """Predict values at flat queries, with bands.

        Parameters
        ----------
        dataset : SeriesDataset
            The series.
        queries : Queries
            Times and channels for each series.
        on_step : callable or None
            Called with how much is done and how much there is.

        Returns
        -------
        Interpolation
            Means, deviations and bands at each query; see `rotarymae.interpolation`.

        Raises
        ------
        InputError
            The pipeline has no autoencoder; queries that do not belong to these series.
        """
        return interpolate(self.pretrained, dataset, queries, on_step)

    def importance(self, X: Any, on_step: Any = None) -> list[np.ndarray]:
        """Measure how much each observation matters to the model.

        Parameters
        ----------
        X : Any
            Series in any form that `dataset` reads.
        on_step : callable or None
            Called with how much is done and how much there is.

        Returns
        -------
        list of ndarray
            For each series an array [n], in the order of time. `rotarymae.importance` says what the numbers mean.

        Raises
        ------
        InputError
            Data that are not series; a model that predicts nothing; series that the model does not read whole.
        """
        self.require_series()
        return importance(self, self.dataset(X), on_step)

    def anomaly_score(self, X: Any, on_step: Any = None) -> np.ndarray:
        """Score how badly each series' observations are predicted from its others.

        Every observation is hidden once, with about a quarter of its series.

        Parameters
        ----------
        X : Any
            Series in any form that `dataset` reads.
        on_step : callable or None
            Called with how much is done and how much there is.

        Returns
        -------
        ndarray of shape [S]
            The mean loss of the pre-trained model in nats: high for unusual series, NaN for series of one observation.

        Raises
        ------
        InputError
            The pipeline has no autoencoder, or was not trained on series.
        """
        view = self.of_series()
        return anomaly_score(view, view.dataset(X), on_step)

    def observation_scores(self, X: Any, on_step: Any = None) -> np.ndarray:
        """Score how badly each observation is predicted from its series' others.

        Parameters
        ----------
        X : Any
            Series in any form that `dataset` reads.
        on_step : callable or None
            Called with how much is done and how much there is.

        Returns
        -------
        ndarray of shape [n, V]
            Losses of the pre-trained model in nats, in the order of `dataset(X)`; NaN where a series has one
            observation.

        Raises
        ------
        InputError
            The pipeline has no autoencoder, or was not trained on series.
        """
        view = self.of_series()
        return observation_scores(view, view.dataset(X), on_step)

    # ── data ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def dataset(self, X: Any) -> Any:
        """Read data into a data set that is laid out as the training set was.

        Parameters
        ----------
        X : SeriesDataset, ArrayDataset, str, Path, DataFrame, array or list
            A data set; the path of a table; a data frame; arrays or lists as the estimators take them; or pictures,
            videos or sounds.

        Returns
        -------
        SeriesDataset or ArrayDataset
            The data, with the channels and the values of the training set.

        Raises
        ------
        InputError
            The model has no preprocessor; data that cannot be read, or of another kind than the model's.
        """
        known: Any = self.preprocessor
        if known is None:
            raise InputError("the model has no preprocessor; it was not trained on a data set.")
        if known.kind == "patches":
            dataset = as_arrays(X, known.patch_size, known.sample_rate)
            known.check(dataset)
            return dataset
        if isinstance(X, ArrayDataset):
            raise InputError(f"{X.noun} were given; the model was trained on {known.noun}.")
        if isinstance(X, str | Path):
            names: Any = {"channel_names": known.channel_names, "value_names": known.value_columns}
            return read_table(Path(X), self.layout(), **names)
        if is_flat(X):
            X = np.asarray(X)[:, None]
        return as_dataset(X, known, self._frame_columns() if is_frame(X) else None, self.columns)

    def _frame_columns(self) -> TableSchema:
        """Return the columns to read from a data frame: those of the training table."""
        known = self.require_series()
        names = {"id", "time", "channel", "values", "static"}
        given = {name: value for name, value in self.columns.items() if name in names and value}
        lists: dict[str, Any] = {name: tuple(given[name]) for name in ("values", "static") if name in given}
        lists["values"] = (*lists.get("values", TableSchema.values), *known.errors)
        return TableSchema(**(given | lists))

    def layout(self, given: Mapping[str, Any] | None = None) -> TableSchema:
        """Return how a table for this model is laid out.

        Parameters
        ----------
        given : mapping or None
            Fields of `TableSchema` in which it differs from the training table.

        Returns
        -------
        TableSchema
            The columns, and how their cells are read.

        Raises
        ------
        InputError
            The model was not trained on series; fields that do not fit together.
        """
        return TableSchema.for_model(self.require_series(), self.columns, given)

    def reader(self, table: Any, layout: TableSchema) -> TableReader:
        """Open a table to be read as the model needs it.

        Parameters
        ----------
        table : Any
            A file, a folder, a pattern or a data frame, as `SeriesDataset.from_file` takes it.
        layout : TableSchema
            Its columns; see `layout`.

        Returns
        -------
        TableReader
            Reads the table whole or in parts.

        Raises
        ------
        InputError
            The model was not trained on series; a table that cannot be read, or lacks a column.
        """
        known = self.require_series()
        static = tuple(self.columns.get("static", ()))  # which a pre-trained model ignores
        return TableReader.open(table, layout, known.channel_names, known.value_columns, static)

    # ── files ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def save(self, folder: str | Path, note: str = "", license: str = "unknown", tags: Sequence[str] = ()) -> None:
        """Write the pipeline to a folder: a reader sees the old one or the new one, never half of either.

        Parameters
        ----------
        folder : str or Path
            New, empty, or a saved pipeline, which is replaced; anything else is left alone.
        note : str
            A paragraph for the model card.
        license : str
            Licence of the model, as the Hugging Face Hub writes it: "mit", "cc-by-4.0".
        tags : sequence of str
            Tags for the model card, besides the library's.

        Raises
        ------
        InputError
            A folder that holds other things than a model, or a link to one; a licence or a tag of other characters than
            letters, digits, dots and hyphens.
        OSError
            The files cannot be written; the message names the folder, and what was there is untouched.
        """
        folder = Path(folder)
        for word in (license, *tags):
            if not re.fullmatch(r"[\w.-]+", word):
                raise InputError(
                    f"{word!r} is not a valid licence or tag; use letters, digits, dots and hyphens, as in cc-by-4.0."
                )
        check_replaceable(folder)
        if folder.parent.is_dir():
            remove_leftovers(folder.parent, [folder.name], SAVE_SECONDS)
        modules = self._modules()
        # Contiguous copies: safetensors keeps bits, so a loaded model predicts the same bits.
        tensors = {
            f"{part}.{name}": tensor.detach().cpu().contiguous().clone()
            for part, module in modules.items()
            for name, tensor in module.state_dict().items()
        }
        with replacing_folder(folder) as temporary:
            try:
                save_file(tensors, temporary / WEIGHTS)
                if self.partners is not None:
                    self.partners.save(temporary / PARTNERS_FOLDER)
            except SafetensorError as error:
                raise OSError(f"{folder} could not be written: {error}") from None
            write_config(temporary, {"format": PIPELINE_FORMAT, **dataclasses.asdict(self._described())})
            (temporary / CARD).write_text(self._card(note, license, tags), encoding="utf-8")

    @classmethod
    def load(cls, source: str | Path, precision: Precision = "auto") -> Self:
        """Load a saved pipeline, in evaluation mode. Pickles are never read.

        Parameters
        ----------
        source : str or Path
            A run folder of `rotarymae fit`, a saved pipeline, the name of a model that ships with the library, or a
            repository OWNER/NAME of the Hugging Face Hub.
        precision : str
            Of matrix products in predictions: "auto", "fp32" or "bf16".

        Returns
        -------
        Pipeline
            The pipeline; the run of a cross-validation is an `Ensemble` of its folds.

        Raises
        ------
        InputError
            No such folder or name; a cross-validation that is not finished.
        ModelDirectoryError
            A file is missing, unreadable, changed, or says what no pipeline can be; the message names it.
        MissingExtra
            A repository without the extra `hub`.
        """
        folder = find_model(source)
        if not folder.is_dir():
            raise ModelDirectoryError(f"{folder} is not a folder; wanted a saved model with {', '.join(FILES)}.")
        if (folder / FOLDS_FOLDER).is_dir():
            if not (folder / METRICS_FILE).is_file():
                raise InputError(f"the folds in {folder} are not finished; continue `rotarymae fit` with --resume.")
            return Ensemble.of([cls.load(fold, precision) for fold in fold_folders(folder)])  # pyright: ignore
        path = folder / CONFIG
        if not path.is_file():
            raise ModelDirectoryError(
                f"{path} is missing; wanted a whole model folder, or the folder of a finished run."
            )
        content = read_config(folder, PIPELINE_FORMAT)
        content.pop("format")
        tensors = read_tensors(folder / WEIGHTS)
        try:
            described = from_fields(Described, content, CONFIG)
            modules = {"model": _built(described.model, len(tensors))}
            if described.autoencoder is not None:
                modules["autoencoder"] = _built(described.autoencoder, len(tensors))
            labels = None if described.labels is None else _labels(described.labels)
            preprocessor = None
            if described.preprocessor is not None:
                kind, settings = described.preprocessor.pop("kind"), described.preprocessor
                preprocessor = modules["preprocessor"] = preprocessor_class(kind).from_dict(settings)
            if described.calibrated:
                modules["calibration"] = _calibration(modules)
        except (InputError, KeyError, TypeError, ValueError, RecursionError, OverflowError) as error:
            raise ModelDirectoryError(f"{path}: {error}") from None
        names = {f"{part}.{name}" for part, module in modules.items() for name in module.state_dict()}
        check_names(names, tensors, folder / WEIGHTS)
        for part, module in modules.items():
            state = {name.removeprefix(f"{part}."): t for name, t in tensors.items() if name.startswith(f"{part}.")}
            fill_model(module, state, folder / WEIGHTS)
            module.eval()
        partners = _partners(folder / PARTNERS_FOLDER, labels) if (folder / PARTNERS_FOLDER).is_dir() else None
        try:
            kind = AnySeriesPipeline if isinstance(modules["model"], AnySeries) else cls
            pipeline = kind(
                preprocessor,
                modules["model"],  # type: ignore[arg-type]
                modules.get("autoencoder"),  # type: ignore[arg-type]
                labels,
                partners,
                described.columns,
                described.forecasts,
                described.parameters,
                precision,
                modules.get("calibration"),  # type: ignore[arg-type]
            )
            pipeline._check()
        except (InputError, TypeError, ValueError, AttributeError) as error:
            raise ModelDirectoryError(f"{path}: {error}") from None
        return pipeline  # pyright: ignore

    def _modules(self) -> dict[str, nn.Module]:
        """Return the torch modules to save, by name: model, autoencoder, calibration, preprocessor."""
        modules: dict[str, nn.Module] = {"model": self.model}
        modules |= {} if self.autoencoder in (None, self.model) else {"autoencoder": self.autoencoder}
        if self.calibration is not None and self.autoencoder is not None:
            modules["calibration"] = self.calibration
        return modules | ({} if self.preprocessor is None else {"preprocessor": self.preprocessor})

    def _described(self) -> Described:
        """Return the settings of all parts, as config.json keeps them."""
        known = self.preprocessor
        preprocessor = None if known is None else {"kind": known.kind, **known.to_dict()}
        models = {part: module for part, module in self._modules().items() if part in ("model", "autoencoder")}
        modules = {part: _module_settings(module) for part, module in models.items()}
        labels = None if self.labels is None else {"task": self.labels.task, **dataclasses.asdict(self.labels)}
        settings = (self.columns, self.parameters, self.forecasts, "calibration" in self._modules())
        return Described(preprocessor, modules["model"], modules.get("autoencoder"), labels, *settings)

    def _check(self) -> None:
        """Raise InputError where the parts do not fit together, as a preprocessor for another number of features."""
        from_fields(TableSchema, self.columns, "columns")
        options = {each.name for each in dataclasses.fields(FitConfig)}
        parameters: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in self.parameters.items()
            if name in options
        }
        FitConfig(**parameters)
        config, known = encoder_of(self.model).config, self.preprocessor
        if self.autoencoder is not None:
            other = self.autoencoder.config
            if (other.axes, other.features, other.input_features) != (
                config.axes,
                config.features,
                config.input_features,
            ):
                raise InputError("the autoencoder and the model read different tokens.")
        if known is not None:
            known.check_statistics()
            made = (known.features, known.axes, known.input_features)
            if made != (config.features, config.axes, config.input_features):
                raise InputError(
                    f"the preprocessor makes tokens of {made[0]} features and {made[1]} axes, with {made[2]} further "
                    f"inputs; the model asks for {config.features} and {config.axes}, with {config.input_features}."
                )
            if getattr(self.model, "static_features", 0) != known.static_features and self.labels is not None:
                raise InputError(
                    f"the preprocessor makes {known.static_features} static features; the model asks for "
                    f"{getattr(self.model, 'static_features', 0)}."
                )
        if self.calibration is not None:
            self.calibration.check()
        if self.labels is not None:
            outputs = getattr(self.model, "classes", None) or getattr(self.model, "outputs", None)
            if not isinstance(self.model, self.labels.head) or outputs != self.labels.outputs:
                kind = "outputs" if self.labels.task == "regression" else "classes"
                raise InputError(
                    f"there are {self.labels.outputs} {kind} by name; the {type(self.model).__name__} asks for "
                    f"{outputs}."
                )

    def _card(self, note: str, license: str, tags: Sequence[str]) -> str:
        """Return the text of the model card, README.md."""
        environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(Path(__file__).parent),
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        known, model = self.preprocessor, self.model
        described = {} if known is None else dict(known.describe())
        classes = getattr(self.labels, "classes", None)
        if classes is not None:
            described["classes"] = ", ".join(map(str, classes))
        return environment.get_template("model_card.md.j2").render(
            kind=type(model).__name__,
            config=encoder_of(model).config,
            written=f"{WRITTEN_BY} {rotarymae.__version__}",
            parameters=sum(p.numel() for p in model.parameters()),
            note=note,
            license=license,
            tags=tags,
            described={
                name: html.escape(" ".join(str(value).split()), quote=False) for name, value in described.items()
            },
            files=known.noun if known is not None and known.kind == "patches" else "",
            predicts=isinstance(model, Classifier | Regressor),
            interpolates=self.autoencoder is not None and known is not None and known.kind == "observations",
        )


@dataclass(eq=False, repr=False)
class Ensemble(Pipeline):
    """The pipelines of a cross-validation's folds. It predicts with their average, and does nothing else.

    Its other attributes are those of the first member, but for the weights of classes, which are the geometric means.

    Parameters
    ----------
    members : tuple of Pipeline
        The pipeline of each fold.
    """

    members: tuple[Pipeline, ...] = ()

    @classmethod
    def of(cls, members: Sequence[Pipeline]) -> Self:
        """Create an ensemble of the folds' pipelines; its decision weights are their geometric mean."""
        first = members[0]
        labels = first.require_labels()
        decided = [getattr(member.labels, "weights", ()) for member in members]
        if any(decided):
            weights = np.array([weights or (1.0,) * labels.outputs for weights in decided])
            labels = replace(labels, weights=tuple(np.exp(np.log(weights).mean(0)).tolist()))  # pyright: ignore
        shared = {"columns": first.columns, "parameters": first.parameters, "precision": first.precision}
        return cls(first.preprocessor, first.model, labels=labels, members=tuple(members), **shared)

    @property
    def choice(self) -> str:
        choices = {member.choice for member in self.members}
        return choices.pop() if len(choices) == 1 else EACH_CHOICE

    def outputs(self, X: Any, predictor: str = "auto", on_step: Any = None) -> np.ndarray:
        dataset = self.dataset(X)
        each = [(member, member.outputs(dataset, predictor, on_step)) for member in self.members]
        return np.mean([converted(one, member.labels, self.labels) for member, one in each], axis=0)

    def every(self, X: Any, on_step: Any = None) -> dict[str, np.ndarray]:
        """Return {predictor: outputs}, each the mean over the folds' pipelines."""
        dataset = self.dataset(X)
        each = [member.every(dataset, on_step) for member in self.members]
        if self.choice == EACH_CHOICE:
            each = [one | {EACH_CHOICE: one[member.choice]} for one, member in zip(each, self.members, strict=True)]
        each = [
            {name: converted(predicted, member.labels, self.labels) for name, predicted in one.items()}
            for one, member in zip(each, self.members, strict=True)
        ]
        return {
            name: np.mean([one[name] for one in each], axis=0) for name in each[0] if all(name in one for one in each)
        }

    @property
    def errors(self) -> dict[str, list[list[float]]]:
        """Return the validation errors of all folds by predictor, sorted, for prediction intervals."""
        each = [member.errors for member in self.members]
        if self.choice == EACH_CHOICE and all(each):
            each = [one | {EACH_CHOICE: one[member.choice]} for one, member in zip(each, self.members, strict=True)]
        names = [name for name in each[0] if all(name in one for one in each)]
        return {
            name: [sorted(itertools.chain(*parts)) for parts in zip(*(one[name] for one in each), strict=True)]
            for name in names
        }

    def describe_choice(self) -> dict[str, Any]:
        because = f"the validation series of each of {len(self.members)} folds chose"
        return {"chosen": self.choice, "because": because, "folds": [m.describe_choice() for m in self.members]}

    def require_one(self) -> Pipeline:
        """Raise InputError: an ensemble of folds only predicts."""
        raise InputError(
            f"these are {len(self.members)} models, one for each fold, which together can only predict. Name the "
            f"folder of one, such as {FOLDS_FOLDER}/1 in that of the run.",
            code="several-models",
        )

    def require_autoencoder(self) -> Any:
        return self.require_one()

    def embed(self, X: Any, pool: str | None = None, on_step: Any = None) -> np.ndarray:
        return self.require_one().embed(X, pool, on_step)

    def importance(self, X: Any, on_step: Any = None) -> list[np.ndarray]:
        return self.require_one().importance(X, on_step)

    def save(self, folder: str | Path, note: str = "", license: str = "unknown", tags: Sequence[str] = ()) -> None:
        self.require_one().save(folder, note, license, tags)


class AnySeriesPipeline(Pipeline):
    """A model that was trained on drawn functions alone, and answers any table: interpolates, scores, embeds.

    It has no preprocessor: each series is standardised by itself. `columns["errors"]` names the last value columns,
    if these are standard errors of the others.
    """

    @property
    def errors(self) -> tuple[str, ...]:
        return tuple(self.columns.get("errors", ()))

    def of_series(self) -> Pipeline:
        return self

    def require_series(self) -> ObservationPreprocessor:
        """Raise InputError: this model was trained on no table, so it has no fitted preprocessor."""
        raise InputError(
            "any-series was not trained on a table: it only interpolates, scores anomalies and embeds; "
            "`rotarymae fit` trains a model of this table.",
            code="untrained",
        )

    def require_autoencoder(self) -> AnySeries:
        assert isinstance(self.model, AnySeries)
        return self.model

    def dataset(self, X: Any) -> SeriesDataset:
        """Read data in any form into a `SeriesDataset`, whatever its channels."""
        if isinstance(X, str | Path):
            return read_table(Path(X), self.layout())
        if is_flat(X):
            X = np.asarray(X)[:, None]
        return as_dataset(X, None, self.layout(), self.columns)

    def layout(self, given: Mapping[str, Any] | None = None) -> TableSchema:
        return TableSchema.resolve(given or {}, self.columns)

    def reader(self, table: Any, layout: TableSchema) -> TableReader:
        return TableReader.open(table, layout)

    def answer(self, dataset: SeriesDataset, queries: Queries, on_step: Any = None) -> Interpolation:
        return interpolate_any(self.require_autoencoder(), dataset, queries, self.errors, on_step)

    def beside_line(self, X: Any) -> BesideLine | None:
        """Hide a tenth of some series' observations and compare with a straight line; None where series are short."""
        return beside_line(self.require_autoencoder(), self.dataset(X), self.errors)

    def embed(self, X: Any, pool: str | None = None, on_step: Any = None) -> np.ndarray:
        choose("pool", pool or "mean", ("mean",))
        return embed_any(self.require_autoencoder(), self.dataset(X), self.errors, on_step)


def load(source: str | Path) -> Pipeline:
    """Load a pipeline; as `Pipeline.load`.

    Parameters
    ----------
    source : str or Path
        A run folder of `rotarymae fit`, a saved pipeline, the name of a model that ships with the library, or a
        repository OWNER/NAME of the Hugging Face Hub.

    Returns
    -------
    Pipeline
        The pipeline, in evaluation mode.

    Raises
    ------
    InputError
        No such folder or name; a cross-validation that is not finished.
    ModelDirectoryError
        A file is missing, unreadable or changed; the message names it.
    MissingExtra
        A repository without the extra `hub`.
    """
    return Pipeline.load(source)


def converted(outputs: np.ndarray, source: Labels | None, labels: Labels | None) -> np.ndarray:
    """Return outputs of one fold's model in the form of another's, as intervals of survival differ by fold."""
    if isinstance(labels, EventTimes) and isinstance(source, EventTimes):
        return labels.convert(outputs, source)
    return outputs


def without_head(preprocessor: Any) -> Any:
    """Return the preprocessor for a model without a head, which reads no static columns."""
    return preprocessor.replace(static=()) if getattr(preprocessor, "static", ()) else preprocessor


def check_replaceable(folder: str | Path) -> None:
    """Raise InputError where saving a pipeline to `folder` would delete files that are not a saved pipeline."""
    folder = Path(folder)
    if folder.is_symlink():
        raise InputError(f"{folder} is a link to {folder.readlink()}; save to that folder itself, or remove the link.")
    if folder.is_dir():
        others = sorted(path.name for path in folder.iterdir() if path.name not in (*FILES, PARTNERS_FOLDER))
        if others:
            raise InputError(
                f"{folder} holds {', '.join(others[:3])}, which is not part of a model; choose a new folder."
            )
        if any(folder.iterdir()) and not _is_model(folder):
            raise InputError(
                f"{folder} holds files with the names of a model's files, but is not a model; choose a new folder."
            )
    elif folder.exists():
        raise InputError(f"{folder} is a file; a model is saved as a folder.")


def _is_model(folder: Path) -> bool:
    """Return whether a folder looks like a saved pipeline: its config.json, no other folders, no foreign README.md."""
    if not all(path.is_file() or path.name == PARTNERS_FOLDER for path in folder.iterdir()):
        return False
    try:
        content = read_json(folder / CONFIG)
        card = (folder / CARD).read_text(encoding="utf-8") if (folder / CARD).exists() else WRITTEN_BY
    except (ModelDirectoryError, OSError, UnicodeDecodeError):
        return False
    return {"format", "model", "files"} <= content.keys() and WRITTEN_BY in card


def _module_settings(model: nn.Module) -> dict[str, Any]:
    return {"kind": type(model).__name__, "config": encoder_of(model).config.to_dict(), "head": head_settings(model)}


def _built(settings: dict[str, Any], tensors: int) -> nn.Module:
    """Build a model from its settings, without memory for weights (on the meta device).

    Args:
        tensors: the number of saved tensors, which bounds what a damaged file may ask for.
    """
    if set(settings) != {"kind", "config", "head"}:
        raise InputError(f"a model has kind, config and head, and not {', '.join(sorted(settings))}.")
    choose("kind", settings["kind"], tuple(KINDS))
    config, head = from_fields(RoMAEConfig, settings["config"], "config"), settings["head"]
    if max(config.depth, config.decoder_depth) > tensors:  # before so many blocks are built
        raise InputError(f"it asks for more blocks than the file of weights has tensors ({tensors}).")
    if (settings["kind"] in HEADLESS) != (head is None) or not isinstance(head, dict | None):
        raise InputError(f"the head of a {settings['kind']} is {head!r}.")
    members = (head or {}).get("members", 1)
    if type(members) is not int or members > tensors:
        raise InputError(f"it asks for {members!r} members, and the file of weights has {tensors} tensors.")
    with torch.device("meta"):
        return KINDS[settings["kind"]](config) if head is None else KINDS[settings["kind"]](Encoder(config), **head)


def _labels(content: dict[str, Any]) -> Labels:
    task = content.get("task")
    choose("task", task, tuple(LABELS))
    return from_fields(LABELS[str(task)], {k: v for k, v in content.items() if k != "task"}, "labels")


def _calibration(modules: dict[str, nn.Module]) -> Calibration:
    """Return a calibration of the loaded model's size, whose tensors are filled later."""
    model, preprocessor = modules.get("autoencoder", modules["model"]), modules.get("preprocessor")
    if not isinstance(model, MaskedAutoencoder) or not isinstance(preprocessor, ObservationPreprocessor):
        raise InputError("a calibration is that of a model that interpolates series, and this one does not.")
    return Calibration.of(preprocessor, model.likelihood)


def _partners(folder: Path, labels: Labels | None) -> Predictor:
    """Load the predictor of a pipeline. Raises ModelDirectoryError where it is damaged or does not fit the labels."""
    try:
        partners = Predictor.load(folder)
    except ModelDirectoryError:
        raise
    except Exception as error:  # whatever a made-up file makes of the code that reads it
        raise ModelDirectoryError(f"{folder}: {type(error).__name__}: {error}") from None
    if labels is None or partners.task != labels.task:
        raise ModelDirectoryError(f"{folder} is of a {partners.task}, and the model is not.")
    if any(len(outputs) != labels.outputs for outputs in partners.errors.values()):
        raise ModelDirectoryError(f"{folder} holds errors of another number of outputs than {labels.outputs}.")
    return partners
