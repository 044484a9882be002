"""Estimators without a target: values at other times, and vectors."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, get_args

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from rotarymae.anomaly import HIDDEN
from rotarymae.config import AutoPool
from rotarymae.errors import InputError, InputWarning, choose
from rotarymae.estimators.base import ArrayOptions, Estimator
from rotarymae.estimators.parameters import documented
from rotarymae.heads import encoder_of
from rotarymae.interpolation import interpolated, standardise_truth
from rotarymae.model_files import ANY_SERIES
from rotarymae.pipeline import Pipeline
from rotarymae.queries import as_queries
from rotarymae.series import hide, measured


@dataclass(kw_only=True, repr=False, eq=False)
class _Unsupervised(Estimator):
    """Base class of the interpolator and the embedder."""

    validation_fraction: float = 0.0  # none by default, as nothing else needs one

    def fit(self, X: Any, y: Any = None) -> Self:
        """Train by hiding observations or patches and predicting them.

        Parameters
        ----------
        X : SeriesDataset, DataFrame, array or list
            The S series: a `SeriesDataset`; a data frame (the parameters `id`, `time`, `channel` and `values` say what
            its columns are); a list of (times, values); or an array [S, channels, time], in which NaN is a missing
            observation. The embedder also takes pictures, videos and sounds, with `patch_size` or `sample_rate`.
        y : Any
            Not used; for the interface of scikit-learn.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        InputError
            Series or a parameter that cannot be used; before any training.
        TrainingDiverged
            Losses or weights became infinite or NaN.
        """
        self._train(X, None, None, self._config(**self._changes()))
        return self

    def _changes(self) -> dict[str, Any]:
        """Return {parameter: value} for parameters that get another value in the fit; here {}.

        `RoMAEEmbedder` overrides it: it changes `pool`, and raises InputError for an unknown `pool`.
        """
        return {}


@documented
@dataclass(kw_only=True, repr=False, eq=False)
class RoMAEInterpolator(_Unsupervised):
    """Learn to predict hidden observations; then predict values at any time, with a standard deviation.

    Before `fit`, the model any-series answers, which was trained on random functions alone; an `InputWarning` says so.
    """

    takes_arrays = False
    interpolates = True

    @classmethod
    def _suited(cls, pipeline: Pipeline, folder: str | Path) -> Pipeline:
        """Return the part of a loaded pipeline that this estimator uses, the autoencoder; `folder` is not read.

        Raises InputError for a pipeline without an autoencoder, or one of a cross-validation, which has several models.
        """
        return pipeline.pretrained

    def _keep(self, pipeline: Pipeline) -> None:
        """Set `pipeline_`; raise InputError for a pipeline without an autoencoder."""
        pipeline.require_autoencoder()
        super()._keep(pipeline)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags of the estimator, with `requires_fit` False: it predicts before `fit`, too."""
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags

    def _answering(self) -> Pipeline:
        """Return the fitted pipeline, at the estimator's `precision`, or before `fit` the shipped model any-series.

        Warns:
            InputWarning: before `fit`; its `code` is "untrained".
        """
        if hasattr(self, "pipeline_"):
            return self._fitted()
        text = "no training: any-series, a model trained on random functions, predicts; call `fit` to learn from yours."
        warnings.warn(InputWarning(text, code="untrained"), stacklevel=3)
        return replace(Pipeline.load(ANY_SERIES), columns={"errors": self._columns().errors})

    def predict(self, X: Any, at: Any = None, return_std: bool = False, positions: Any = None) -> Any:
        """Predict values of the series at other times, in the units of the values.

        Before `fit`, any-series predicts: a model, shipped with the library, that was trained on random functions. A
        warning then says so.

        Parameters
        ----------
        X : SeriesDataset, DataFrame, array or list
            The series, laid out as in `fit`.
        at : array of shape [q], list of arrays or None
            Times, the same for all series, or one array of times [q_i] for each series. None takes the distinct times
            of each series; if X is an array, all of its times, so that its gaps are filled. If the series have dates,
            `at` may hold dates; one without a time zone is in that of the series.
        return_std : bool
            Whether to return standard deviations as well.
        positions : array of shape [q, P], list of arrays or None
            The P further positions at the times `at`, such as latitude and longitude: the same for all series, or one
            array [q_i, P] for each. Series that stay at one position need none.

        Returns
        -------
        ndarray, list of ndarray, or tuple of two such
            Predicted values (means). If all S series have q times, they are an array [S, q, V], or [S, C, q, V] for
            series of C channels (of a data frame in sorted order); V is the number of value columns. If numbers of
            times differ, they are a list with an array [q_i, V] or [C, q_i, V] for each series. If X is an array
            [cases, channels, time] or [cases, time], they are [cases, channels, q] or [cases, q]. With `return_std` a
            tuple of means and standard deviations, of the same shape.

        Raises
        ------
        InputError
            Series or times that cannot be used; `return_std` of a model that predicts no deviations (likelihood
            "point").
        """
        pipeline = self._answering()
        return interpolated(pipeline, self._dataset(X, pipeline), X, at, return_std, positions)

    def score(self, X: Any, y: Any = None) -> float:
        """Hide a quarter of each series, predict it from the rest, and return R² of these predictions.

        R² is 1 for perfect predictions, and 0 for those as good as the mean. It is computed from standardised values,
        all channels and value columns together; gross outliers are limited as in the model's input. Limits (censored
        values such as <5) and series of one observation do not count.

        The same observations are hidden in each call: random ones, or the latest ones for a model that learnt to
        forecast (`masking="future"`). Before `fit` the shipped model any-series is scored, with a warning.

        Parameters
        ----------
        X : SeriesDataset, DataFrame, array or list
            The series, laid out as in `fit`.
        y : Any
            Not used; for the interface of scikit-learn.

        Returns
        -------
        float
            R²; NaN if a single value is hidden.

        Raises
        ------
        InputError
            No series has two observations; all hidden values are limits; series laid out otherwise than in `fit`.
        """
        from sklearn.metrics import r2_score

        pipeline = self._answering()
        dataset, by = self._dataset(X, pipeline), "latest" if pipeline.forecasts else "observation"
        visible, hidden, _ = hide(dataset, HIDDEN, seed=0, by=by)
        queries = as_queries(hidden)
        answer = pipeline.answer(visible, queries)
        truth = standardise_truth(pipeline, hidden, answer)
        seen = np.isfinite(measured(hidden)[:, : truth.shape[1]])
        if not seen.any():
            raise InputError(
                "all hidden values are limits (censored, such as <5), and a score needs measured ones; give series "
                "with more measured values."
            )
        return float(r2_score(truth[seen], answer.scaled_mean[seen]))


@documented
@dataclass(kw_only=True, repr=False, eq=False)
class RoMAEEmbedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ArrayOptions, _Unsupervised):
    """Learn by predicting hidden observations or patches; then turn every series, picture or sound into one vector."""

    pool: AutoPool = "auto"
    """How a series' tokens become one vector: their mean ("mean"), their maximum ("max"), the [CLS] token ("cls"), or
    what the model was trained with ("auto"; of a new model the mean)."""

    @classmethod
    def _suited(cls, pipeline: Pipeline, folder: str | Path) -> Pipeline:
        """Return the pre-trained part of a loaded pipeline, or the whole one if it has none.

        Its saved parameter `pool` is dropped if it is "attention", which only a fine-tuned head has. `folder` is not
        read. Raises InputError for the models of a cross-validation, which can only predict.
        """
        part = pipeline if pipeline.require_one().autoencoder is None else pipeline.pretrained
        return replace(part, parameters={k: v for k, v in part.parameters.items() if (k, v) != ("pool", "attention")})

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags of the estimator: embeddings are float32."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _keep(self, pipeline: Pipeline) -> None:
        """Set `pipeline_`, and `_n_features_out`, the width of vectors, from which scikit-learn names outputs."""
        super()._keep(pipeline)
        self._n_features_out = encoder_of(pipeline.model).config.embed_dim

    def _changes(self) -> dict[str, Any]:
        """Return {"pool": value}, the value for the options of the fit: "cls" if `pool` is "cls", else "mean".

        Raises InputError for an unknown `pool`.
        """
        choose("pool", self.pool, get_args(AutoPool))
        return {"pool": "cls" if self.pool == "cls" else "mean"}

    def transform(self, X: Any) -> np.ndarray:
        """Embed the series.

        Parameters
        ----------
        X : SeriesDataset, DataFrame, array or list
            The series, laid out as in `fit`.

        Returns
        -------
        ndarray of shape [S, D]
            One vector for each series, float32; D is the width of the encoder.

        Raises
        ------
        InputError
            Series laid out otherwise than in `fit`.
        NotFittedError
            Before `fit`.
        """
        return self._fitted().embed(self._read(X), None if self.pool == "auto" else self.pool)
