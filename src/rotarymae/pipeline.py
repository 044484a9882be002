"""A fitted model with all that its answers need: the one thing that is trained, saved, loaded, exported and asked.

    pipeline = rotarymae.load("run")
    pipeline.predict(X)
    pipeline.interpolate(X, at=[0.0, 0.5, 1.0], return_std=True)

X is a `SeriesDataset` or `ArrayDataset`, the path of a table, a data frame, or anything that the estimators take.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self, cast, get_args

import numpy as np

from rotarymae.anomaly import anomaly_score, observation_scores, odd_observations
from rotarymae.any_series import AnySeries
from rotarymae.arrays import ArrayDataset, as_arrays
from rotarymae.calibration import Calibration
from rotarymae.config import Precision
from rotarymae.datasets import AnyPreprocessor, with_channel_axis
from rotarymae.errors import InputError, ModelDirectoryError, choose
from rotarymae.heads import Classifier, Regressor, encoder_of
from rotarymae.interpolation import Interpolation, interpolate, interpolated
from rotarymae.labels import Labels
from rotarymae.model import Encoder, MaskedAutoencoder
from rotarymae.model_files import CONFIG, FOLDS_FOLDER, find_model, fold_folders, several_models
from rotarymae.partners import INTERVAL, Predictor, half_widths, least_errors
from rotarymae.prediction import embed, importance, predict_and_embed
from rotarymae.preprocess import ObservationPreprocessor, PatchPreprocessor
from rotarymae.queries import Queries
from rotarymae.saving import KINDS, check_parts, read, write
from rotarymae.series import SeriesDataset
from rotarymae.system.fields import Range
from rotarymae.tables import TableReader, TableSchema, as_dataset, read_table
from rotarymae.untrained import BesideLine, beside_line, embed_any, interpolate_any

Model = Encoder | MaskedAutoencoder | Classifier | Regressor


@dataclass(eq=False, repr=False)
class Pipeline:
    """A fitted model with its preprocessor, and with what decodes and calibrates its predictions.

    Methods that predict warn (InputWarning) of data that look unlike those of training, as in another unit.

    Parameters
    ----------
    preprocessor : ObservationPreprocessor, PatchPreprocessor or None
        Turns tables or arrays into the model's tokens; None where the caller makes tokens.
    model : Encoder, MaskedAutoencoder, Classifier or Regressor
        Predicts and embeds. Without labels it is the autoencoder itself.
    autoencoder : MaskedAutoencoder or None
        The pre-trained model, which interpolates; None where there is none.
    labels : ClassLabels, NumberTargets, EventTimes or None
        Classes, scale or intervals of the model's outputs; None for a model without a head.
    partners : Predictor or None
        Methods that predict labels next to the network, such as boosted trees; None where it predicts alone.
    columns : dict
        Layout of the training table, so that later tables need not be described.
    forecasts : bool
        Whether pre-training hid the ends of series (`masking="future"`), so that the model knows what follows.
    parameters : dict
        The options of the fit, as JSON.
    precision : str
        Number format of matrix products in predictions: "auto", "fp32" or "bf16". It is not saved.
    calibration : Calibration or None
        Corrects interpolations and their bands by the time to the nearest observation; None for no correction.

    Raises
    ------
    InputError
        A model of a class that no pipeline has.
    """

    untrained: ClassVar[bool] = False  # on a table
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
        """Check the class of the model; if it is a MaskedAutoencoder, store it as `autoencoder`, too.

        Raises InputError for a model of a class that no pipeline has.
        """
        if KINDS.get(type(self.model).__name__) is not type(self.model):
            raise InputError(
                f"the model is a {type(self.model).__name__}, which no pipeline can hold; give one of "
                f"{', '.join(KINDS)}."
            )
        if isinstance(self.model, MaskedAutoencoder):
            self.autoencoder = self.model

    def __repr__(self) -> str:
        """Return a line such as "Pipeline(Classifier 180/3/2, series)": model, width / heads / depth, kind of data."""
        sizes, noun = encoder_of(self.model).config, "tokens" if self.preprocessor is None else self.preprocessor.noun
        return f"Pipeline({type(self.model).__name__} {sizes.embed_dim}/{sizes.num_heads}/{sizes.depth}, {noun})"

    @property
    def pretrained(self) -> Pipeline:
        """The pre-trained part: a pipeline whose model is the autoencoder, without what serves labels alone.

        That is the labels, partners (other methods, such as boosted trees) and static columns (one value per series).
        A pipeline without these is returned itself. Parts are shared, not copied; the calibration stays.

        Raises
        ------
        InputError
            The pipeline has no autoencoder, or has the models of a cross-validation.
        """
        model = self.require_autoencoder()
        if model is self.model and self.labels is None:
            return self
        known: Any = self.preprocessor
        if known is not None and known.static:
            known = known.replace(static=())
        return replace(self, preprocessor=known, model=model, autoencoder=model, labels=None, partners=None)

    def require_autoencoder(self) -> MaskedAutoencoder:
        """Return the pre-trained autoencoder, or raise InputError if there is none.

        Returns
        -------
        MaskedAutoencoder
            The model that interpolates.

        Raises
        ------
        InputError
            The pipeline has no autoencoder, or has the models of a cross-validation.
        """
        model = self.require_one().autoencoder
        if model is None:
            raise InputError(
                f"this needs a pre-trained MaskedAutoencoder, and the pipeline has a {type(self.model).__name__} "
                "alone; give the run of a `rotarymae fit`, which has one."
            )
        return model

    def require_one(self) -> Pipeline:
        """Return the pipeline itself; called before anything that needs a single model.

        The subclass `Ensemble`, which has the models of a cross-validation and can only predict, raises InputError
        instead.

        Returns
        -------
        Pipeline
            This pipeline.
        """
        return self

    def require_labels(self) -> Labels:
        """Return the labels, which turn outputs into predictions, or raise InputError if the model is not fine-tuned.

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
                f"the model is a {type(self.model).__name__} and not fine-tuned, and so predicts no labels; train one "
                "that does by `rotarymae fit` with labels. This model can be used by embed and, for series, by "
                "interpolate, anomalies and evaluate --horizon."
            )
        return self.labels

    def require_series(self) -> ObservationPreprocessor:
        """Return the preprocessor of a model of series, or raise InputError for another model.

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
            raise InputError(
                f"the model was trained on {noun}, and this needs one trained on series; give a model of series."
            )
        return cast(ObservationPreprocessor, self.preprocessor)

    def require_arrays(self) -> PatchPreprocessor:
        """Return the preprocessor of a model of pictures, videos or sounds, or raise InputError for another model.

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
            raise InputError(
                "the model was not trained on pictures, videos or sounds, so it cannot read them; give a model that "
                "was, or series."
            )
        return cast(PatchPreprocessor, self.preprocessor)

    # ── answers ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def predict(self, X: Any, return_interval: float | None = None) -> Any:
        """Predict the class, the value or the time to the event of each series.

        Parameters
        ----------
        X : Any
            A data set, the path of a table, a data frame, arrays or lists; see `dataset`.
        return_interval : float or None
            For a regression, return also an interval that holds this share of the values of new series, such as 0.9;
            None returns no interval.

        Returns
        -------
        ndarray of shape [S] or [S, outputs], or a tuple (value, lower, upper) of three such
            One prediction for each of the S series, in the order of `dataset(X)`. For a classification it is the class
            with the largest probability, or with the largest probability times weight if `labels.weights` has weights.
            For a regression it is a value in the units of the training targets, [S, outputs] if there are several. For
            times to an event it is the expected time, for which all times after the last training event count as that
            event's time. The tuple is returned if `return_interval` is given.

        Raises
        ------
        InputError
            The model is not fine-tuned; data that cannot be read, or for which an output is NaN or infinite; an
            interval for another task than a regression, or of a share that is out of range or for which there were too
            few validation series.
        """
        labels = self.require_labels()
        half = None if return_interval is None else self.require_half_widths(return_interval)
        outputs = self.outputs(X)
        if half is None:
            return labels.predicted(outputs)
        return tuple(labels.predicted(edge) for edge in (outputs, outputs - half, outputs + half))

    @property
    def predictor(self) -> Predictor:
        """Predictor in use: it has the network's partners (such as boosted trees), and the choice of what predicts.

        Returns
        -------
        Predictor
            The attribute `partners`; if that is None, a predictor that uses the network alone.

        Raises
        ------
        InputError
            The model is not fine-tuned.
        """
        return self.partners or Predictor.of_model(self.require_labels().task, "the pipeline has no partners")

    def half_widths(self, share: float = INTERVAL, predictor: str = "auto") -> np.ndarray | None:
        """Return half the width of a regression's prediction intervals, for intervals that hold a share of new values.

        Parameters
        ----------
        share : float
            The share of values, more than 0 and less than 1; 0.9 by default.
        predictor : str
            "model" (the network), "features" (boosted trees) or "combined" (all); "auto" is what the fit chose.

        Returns
        -------
        ndarray of shape [outputs] or None
            Half widths, in the units of the targets: an interval is prediction ± half width. None if there were too few
            validation series for this share; None also for a predictor that the pipeline does not have, and for other
            tasks than a regression.

        Raises
        ------
        InputError
            The model is not fine-tuned; a share out of range.
        """
        Range(above=0, below=1).check("the share of an interval", share)
        name = self.predictor.choice if predictor == "auto" else predictor
        return half_widths(self.predictor.errors.get(name, ()), share)

    def require_half_widths(self, share: float) -> np.ndarray:
        """Return half the width of a regression's prediction intervals, or raise InputError if there are none.

        They are those of the predictor that the fit chose.

        Parameters
        ----------
        share : float
            The share of the values of new series that an interval holds, more than 0 and less than 1.

        Returns
        -------
        ndarray of shape [outputs]
            Half widths, in the units of the targets: an interval is prediction ± half width.

        Raises
        ------
        InputError
            The model is no regression; a share out of range; too few validation series for this share.
        """
        if self.require_labels().task != "regression":
            raise InputError(
                f"return_interval is for a regression, and this is a {self.require_labels().task}; leave it out."
            )
        half = self.half_widths(share)
        if half is None:
            known = min(map(len, self.predictor.errors.get(self.predictor.choice, ())), default=0)
            raise InputError(
                f"a prediction interval of {100 * share:g} % needs the errors of at least {least_errors(share):,} "
                f"validation series, and there are {known:,}; fit with more series or a larger validation_fraction, or "
                "give a lower return_interval."
            )
        return half

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict the probability of each class, by the method that the fit chose, such as the network or boosting.

        Parameters
        ----------
        X : Any
            A data set, the path of a table, a data frame, arrays or lists; see `dataset`.

        Returns
        -------
        ndarray of shape [S, classes]
            Probabilities, in the order of `labels.classes` and of the S series of `dataset(X)`; each row sums to 1.

        Raises
        ------
        InputError
            The model is not a fine-tuned classifier; data that cannot be read, or for which an output is NaN or
            infinite.
        """
        if self.labels is None or self.labels.task != "classification":
            does = type(self.model).__name__ if self.labels is None else f"model of {self.labels.task}"
            raise InputError(
                f"class probabilities need a fine-tuned Classifier, and this is a {does}; fit one with class labels."
            )
        return self.outputs(X)

    def survival(self, X: Any, times: Any = None) -> np.ndarray:
        """Predict the probability that the event comes later than each of some times, for each series.

        Parameters
        ----------
        X : Any
            A data set, the path of a table, a data frame, arrays or lists; see `dataset`.
        times : number, array of shape [T] or None
            Durations, in the unit of the training durations, the same for all series. None takes `labels.times`: up to
            three times, before which about a quarter, a half and three quarters of the training events happened.

        Returns
        -------
        ndarray of shape [S, T]
            Probabilities, for the S series of `dataset(X)` in their order and the times in theirs.

        Raises
        ------
        InputError
            The model does not predict times to an event; times that are NaN, negative, or after the last training
            event; data that cannot be read, or for which an output is NaN or infinite.
        """
        labels: Any = self.require_labels()
        if labels.task != "survival":
            raise InputError(
                f"survival needs a model of times to an event, and this is one of {labels.task}; fit one by "
                "RoMAESurvival, or by `rotarymae fit` with --duration and --event."
            )
        at = labels.times if times is None else np.atleast_1d(np.asarray(times, np.float64))
        if not ((at >= 0) & (at <= labels.edges[-1])).all():
            raise InputError(
                f"times reach from {at.min():g} to {at.max():g}, and survival is known from 0 to {labels.edges[-1]:g}, "
                "the last training event; give times in this range."
            )
        return labels.survival(self.outputs(X), at)

    def outputs(self, X: Any, predictor: str = "auto", on_step: Any = None) -> np.ndarray:
        """Predict class probabilities, or values, of each series, in the order of `dataset(X)`.

        Parameters
        ----------
        X : Any
            A data set, the path of a table, a data frame, arrays or lists; see `dataset`.
        predictor : str
            "model" (the network), "features" (boosted trees) or "combined" (all); "auto" is what the fit chose.
        on_step : callable or None
            Called with (steps done, steps in all) as the network predicts, to show progress.

        Returns
        -------
        ndarray of shape [S, classes] or [S, outputs]
            Probabilities of classes, or of the intervals of a time to an event, calibrated if the fit had validation
            series; or a regression's values, in the units of the targets.

        Raises
        ------
        InputError
            The model is not fine-tuned, or the pipeline does not have this predictor; data that cannot be read, or for
            which an output of the network is NaN or infinite.
        """
        self.predictor.check(predictor)
        dataset = self.dataset(X)
        return self.predictor.predict(predict_and_embed(self, dataset, on_step)[0], dataset, predictor)

    def every(self, X: Any, on_step: Any = None) -> dict[str, np.ndarray]:
        """Predict with each method: the network, each of its partners (such as boosted trees), and all combined.

        Parameters
        ----------
        X : Any
            A data set, the path of a table, a data frame, arrays or lists; see `dataset`.
        on_step : callable or None
            Called with (steps done, steps in all) as the network predicts, to show progress.

        Returns
        -------
        dict of str to ndarray
            {method: predictions [S, classes] or [S, outputs]}: for "model" (the network), each partner by its name, and
            "combined" if there are partners. Predictions are probabilities of classes, or of the intervals of a time to
            an event, calibrated if the fit had validation series; or a regression's values. Series are in the order of
            `dataset(X)`.

        Raises
        ------
        InputError
            The model is not fine-tuned; data that cannot be read.
        """
        dataset = self.dataset(X)
        return self.predictor.every(predict_and_embed(self, dataset, on_step)[0], dataset)

    def embed(self, X: Any, pool: str | None = None, on_step: Any = None) -> np.ndarray:
        """Turn each series into one vector.

        Parameters
        ----------
        X : Any
            A data set, the path of a table, a data frame, arrays or lists; see `dataset`.
        pool : str or None
            "mean" or "max" over the tokens; "cls", the [CLS] token, to which pre-training gives no task of its own; or
            "attention", if the model's head pools so. None takes the pool of the model's head; without a head the mean.
        on_step : callable or None
            Called with (steps done, steps in all), to show progress.

        Returns
        -------
        ndarray of shape [S, D]
            The vectors, float32, in the order of `dataset(X)`; D is the width of the encoder. A series longer than the
            model reads at once gets the mean over its pieces, weighted by their lengths.

        Raises
        ------
        InputError
            Another pool, or one that the model does not have; data that cannot be read; the models of a
            cross-validation.
        """
        return embed(self.require_one(), self.dataset(X), pool, on_step)

    def interpolate(self, X: Any, at: Any = None, return_std: bool = False, positions: Any = None) -> Any:
        """Predict values of the series at other times, with standard deviations if wanted.

        Parameters
        ----------
        X : Any
            A data set, the path of a table, a data frame, arrays or lists; see `dataset`.
        at : array of shape [q], list of arrays or None
            Times in the table's unit, or dates if it has dates: q times that are the same for all series, or one array
            of times [q_i] for each. None takes the steps 0, 1, ... if `X` is an array, or else the distinct times of
            each series.
        return_std : bool
            Whether to return standard deviations as well.
        positions : array of shape [q, P], list of arrays or None
            Positions on the P axes besides time, such as places, at these times: the same for all series, or one array
            [q_i, P] for each. None is for a model without such axes, and for series that stay at one position.

        Returns
        -------
        ndarray, list of ndarray, or tuple of two such
            Means in the table's units, for V columns of values: [S, q, V] for S series, or [S, C, q, V] if they have C
            channels (of a long table in sorted order). If series have different numbers of times, a list with an array
            [q_i, V], or [C, q_i, V], of each series. If `X` is an array [cases, channels, time] or [cases, time], an
            array [cases, channels, q] or [cases, q]. With `return_std` a tuple (means, standard deviations), both of
            this form.

        Raises
        ------
        InputError
            The pipeline has no autoencoder, or one of pictures or sounds; times that cannot be used; `return_std` of a
            model that predicts no spread (likelihood="point").
        """
        if not self.untrained:
            self.require_series()
        return interpolated(self.pretrained, self.pretrained.dataset(X), X, at, return_std, positions)

    def answer(self, dataset: SeriesDataset, queries: Queries, on_step: Any = None) -> Interpolation:
        """Predict values at queries (times and channels), in their order, with standard deviations and bands.

        Parameters
        ----------
        dataset : SeriesDataset
            The series, as the method `dataset` returns them.
        queries : Queries
            Times and channels to predict for, for each series; `queries.queries_from` makes them.
        on_step : callable or None
            Called with (steps done, steps in all), to show progress.

        Returns
        -------
        Interpolation
            Predictions of V columns of values at each of q queries, in the table's units; calibrated if the pipeline
            has a calibration. `mean` is [q, V], and `std` is [q, V], or None for a model that predicts no spread.
            `bands` are the edges of central intervals, {share: (lower, upper)}, each [q, V]; {} without a spread.

        Raises
        ------
        InputError
            The pipeline has no autoencoder; queries that do not belong to these series; columns of values that the
            model does not know; predictions that are NaN or infinite.
        """
        return interpolate(self.pretrained, dataset, queries, on_step)

    def importance(self, X: Any, on_step: Any = None) -> list[np.ndarray]:
        """Measure how much each observation matters to the model, by leaving out each in turn.

        Parameters
        ----------
        X : Any
            Series: a data set, the path of a table, a data frame, arrays or lists; see `dataset`.
        on_step : callable or None
            Called with (steps done, steps in all), to show progress.

        Returns
        -------
        list of ndarray
            For each series of n observations an array [n], in the order of time; [NaN] for a series of one. For classes
            it is by how much the log-probability of the most probable class falls without the observation, in nats. For
            numbers it is how far the prediction moves, in standard deviations of the training targets, never negative.
            For times to an event it is by how much the expected time gets shorter without the observation, in its unit.
            The numbers are those of the network alone, without boosted trees.

        Raises
        ------
        InputError
            Data that are not series; a model that is not fine-tuned; series longer than the model's window.
        """
        self.require_one().require_series()
        return importance(self, self.dataset(X), on_step)

    def anomaly_score(self, X: Any, on_step: Any = None) -> np.ndarray:
        """Score how badly the observations of each series are predicted from the others of the same series.

        Every observation is hidden once, with about a quarter of its series.

        Parameters
        ----------
        X : Any
            Series: a data set, the path of a table, a data frame, arrays or lists; see `dataset`.
        on_step : callable or None
            Called with (steps done, steps in all), to show progress.

        Returns
        -------
        ndarray of shape [S]
            The mean loss of each series by the pre-trained model, in the order of `dataset(X)`: high for unusual
            series, NaN for series of one observation. It is the negative log-likelihood of standardised values in nats,
            or for a model without a spread the squared error.

        Raises
        ------
        InputError
            The pipeline has no autoencoder, or was not trained on series.
        """
        view = self.pretrained
        return anomaly_score(view, view.dataset(X), on_step)

    def observation_scores(self, X: Any, on_step: Any = None) -> np.ndarray:
        """Score each observation by how badly the pre-trained model predicts it from other observations of its series.

        Each observation is hidden once, together with others: about a quarter of its series at a time.

        Parameters
        ----------
        X : Any
            Series: a data set, the path of a table, a data frame, arrays or lists; see `dataset`.
        on_step : callable or None
            Called with (steps done, steps in all), to show progress.

        Returns
        -------
        ndarray of shape [n, V]
            Losses for the n observations of `dataset(X)` in their order and V columns of values: high for odd ones, NaN
            if the series has a single observation. They are negative log-likelihoods of standardised values in nats, or
            squared errors for a model that predicts no spread. A limit that agrees with the prediction is not odd: "<5"
            counts as the value 5, or as the lower edge of the predicted 68 % band if that is below 5. ">5" counts as 5,
            or as the upper edge if that is above 5.

        Raises
        ------
        InputError
            The pipeline has no autoencoder, or was not trained on series.
        """
        view = self.pretrained
        return observation_scores(view, view.dataset(X), on_step)

    def stretch_scores(self, X: Any, on_step: Any = None) -> np.ndarray:
        """Score how odd the stretch around each observation is; a jump, a drift or a frozen sensor is odd.

        Parameters
        ----------
        X : Any
            Series: a data set, the path of a table, a data frame, arrays or lists; see `dataset`.
        on_step : callable or None
            Called with (steps done, steps in all), to show progress.

        Returns
        -------
        ndarray of shape [n, V]
            A score for each of the n observations of `dataset(X)`, in their order, and V columns of values: high for
            odd ones, NaN if the channel has fewer than 16 observations in the series. Observations are hidden and
            predicted. The losses of the predictions are averaged over runs of about 16 observations of a channel; each
            observation is in two runs. The score is the larger of two distances from the median over the channel in all
            series, in robust standard deviations:

            - How far the larger mean lies above the median (a bad prediction), when whole stretches are hidden: an
              eighth of the channel, at most 64 observations.
            - How far the smaller mean lies below the median (too good a prediction, as of a frozen sensor), when a
              random quarter of the series is hidden.

        Raises
        ------
        InputError
            The pipeline has no autoencoder, or was not trained on series.
        """
        view = self.pretrained
        return odd_observations(view, view.dataset(X), on_step)[1]

    def predicted_names(self, dataset: SeriesDataset) -> tuple[str, ...]:
        """Return the names of the columns of values that the pipeline predicts.

        Parameters
        ----------
        dataset : SeriesDataset
            The series to predict. It matters only to the model any-series, which was trained on no table, and predicts
            the columns of values of `dataset`; others predict those of their training table.

        Returns
        -------
        tuple of str
            The names of the V columns.

        Raises
        ------
        InputError
            The model was not trained on series.
        """
        return self.require_series().value_names

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
            The data, with the channels of the training set, and without limits (cells such as <5) if the model reads
            none. Rows of a table or data frame with other channels are left out, with a warning. The columns of values
            of a `SeriesDataset` stay as they are; a prediction refuses others than those of training.

        Raises
        ------
        InputError
            The model has no preprocessor; data that cannot be read, or of another kind than the model's; channels that
            it does not know, in other data than tables.
        """
        known: Any = self.preprocessor
        if known is None:
            raise InputError(
                "the model has no preprocessor, as it was not trained on a data set; give tokens to `pipeline.model`."
            )
        if known.kind == "patches":
            dataset = as_arrays(X, known.patch_size, known.sample_rate)
            known.check(dataset)
            return dataset
        if isinstance(X, ArrayDataset):
            raise InputError(f"{X.noun} were given; the model was trained on {known.noun}. Give {known.noun}.")
        if isinstance(X, str | Path):
            names: Any = {"channel_names": known.channel_names, "value_names": known.value_columns}
            X = read_table(Path(X), self.layout(), **names)
        return as_dataset(with_channel_axis(X), known, self.layout(), self.columns)

    def layout(self, given: Mapping[str, Any] | None = None) -> TableSchema:
        """Return how a table for this model is to be laid out: like the training table, with the changes in `given`.

        Static columns, errors and positions are always the model's. Limits (cells such as <5) are dropped if it reads
        none.

        Parameters
        ----------
        given : mapping or None
            {field of `TableSchema`: value} of what differs; None, False and () count as not given.

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
        """Open a table, to be read whole or in parts, with the channels and columns of values that the model knows.

        Parameters
        ----------
        table : Any
            A file, a folder, a pattern or a data frame, as for `SeriesDataset.from_file`.
        layout : TableSchema
            Which columns it has, and how their cells are read; the method `layout` returns one.

        Returns
        -------
        TableReader
            Reads the table.

        Raises
        ------
        InputError
            The model was not trained on series; a table that cannot be read, or lacks a column.
        """
        known = self.require_series()
        static = tuple(self.columns.get("static", ()))  # which a pre-trained model ignores
        return TableReader.open(table, layout, known.channel_names, known.value_columns, static)

    # ── files ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def save(self, folder: str | Path, note: str = "", license: str = "unknown") -> None:
        """Write the pipeline to a folder; an older pipeline there is replaced only once the new one is complete.

        Parameters
        ----------
        folder : str or Path
            A folder that is new, empty, or has a saved pipeline, which is replaced; anything else is refused.
        note : str
            A paragraph on the training for the model card; "" for none.
        license : str
            Licence of the model, as the Hugging Face Hub writes it: "mit", "cc-by-4.0".

        Raises
        ------
        InputError
            A folder with other things in it than a model; a file, or a link to a folder; a licence of other characters
            than letters, digits, dots and hyphens; the models of a cross-validation.
        OSError
            The files cannot be written; the message names the folder, and what was there is untouched.
        """
        write(self.require_one(), Path(folder), note, license)

    @classmethod
    def load(cls, source: str | Path, precision: Precision = "auto") -> Self:
        """Load a saved pipeline, in evaluation mode. Pickles are never read.

        Parameters
        ----------
        source : str or Path
            A run folder of `rotarymae fit`, a saved pipeline, the name of a model that ships with the library, or a
            repository OWNER/NAME of the Hugging Face Hub.
        precision : str
            Number format of matrix products in predictions: "fp32", "bf16", or "auto", which takes "bf16" where the
            GPU or processor has units for it.

        Returns
        -------
        Pipeline
            The pipeline, on the CPU; an `AnySeriesPipeline` for the model any-series, which no table trained.

        Raises
        ------
        InputError
            No such folder, name or precision; the run of a cross-validation (`rotarymae.load` loads it).
        ModelDirectoryError
            A file is missing, unreadable or changed, or has settings that no pipeline can have; the message names it.
        MissingExtra
            A repository without the extra `hub`.
        """
        choose("precision", precision, get_args(Precision))
        folder = find_model(source)
        if (folder / FOLDS_FOLDER).is_dir():
            raise several_models(len(fold_folders(folder)))
        parts = read(folder)
        kind = AnySeriesPipeline if type(parts["model"]) is AnySeries else cls
        try:
            pipeline = kind(**parts, precision=precision)
            check_parts(pipeline)
        except (InputError, TypeError, ValueError, AttributeError) as error:
            raise ModelDirectoryError(
                f"{folder / CONFIG}: {str(error).rstrip('.')}. Fit or fetch the model anew."
            ) from None
        return pipeline  # pyright: ignore


class AnySeriesPipeline(Pipeline):
    """A model that was trained on drawn functions alone, and answers any table: interpolates, scores, embeds.

    It has no preprocessor: each series is standardised by itself. `columns["errors"]` names the last value columns,
    if these are standard errors of the others.
    """

    untrained = True

    @property
    def error_columns(self) -> tuple[str, ...]:
        """Names of the last columns of values, if these are standard errors of the others; () if there are none."""
        return tuple(self.columns.get("errors", ()))

    def require_series(self) -> ObservationPreprocessor:
        """Raise InputError (code "untrained"), always: a model that was trained on no table has no preprocessor."""
        raise InputError(
            "any-series was not trained on a table: it interpolates, scores anomalies and embeds, and no more; "
            "`rotarymae fit` trains a model of this table.",
            code="untrained",
        )

    def require_autoencoder(self) -> AnySeries:
        """Return the model, which interpolates; unlike in other pipelines, InputError is never raised."""
        assert isinstance(self.model, AnySeries)
        return self.model

    def dataset(self, X: Any) -> SeriesDataset:
        """Read data into a data set, with any channels and columns of values.

        Args:
            X: a `SeriesDataset`, the path of a table, a data frame, or arrays or lists as the estimators take them.

        Returns:
            The series, without those observations of which only an upper or lower limit is known. Series that have
            nothing but limits are left out of a table that is read from a path, with a warning.

        Raises:
            InputError: data that cannot be read; a series that has nothing but limits, if `X` is not a path.
        """
        if isinstance(X, str | Path):
            return read_table(Path(X), self.layout())
        return as_dataset(with_channel_axis(X), None, self.layout(), self.columns).with_limits(False)

    def predicted_names(self, dataset: SeriesDataset) -> tuple[str, ...]:
        """Return the names of the data set's columns of values, without the columns of standard errors."""
        return dataset.value_names[: len(dataset.value_names) - len(self.error_columns)]

    def layout(self, given: Mapping[str, Any] | None = None) -> TableSchema:
        """Return how a table is laid out: each field as in `given`, else as in `self.columns`, else the default.

        Observations of which only a limit is known are always dropped. Raises InputError for fields that exclude each
        other.

        Args:
            given: {field of `TableSchema`: value}; values None, False and () count as not given. None for none.
        """
        return replace(TableSchema.resolve(given or {}, self.columns), limits="drop")

    def reader(self, table: Any, layout: TableSchema) -> TableReader:
        """Open a table, which may have any channels and columns of values, to be read whole or in parts.

        Args:
            table: a file, a folder, a pattern of file names, or a data frame.
            layout: which columns it has, and how their cells are read.

        Raises:
            InputError: a table that cannot be read, or lacks a column.
        """
        return TableReader.open(table, layout)

    def answer(self, dataset: SeriesDataset, queries: Queries, on_step: Any = None) -> Interpolation:
        """Predict values at queries (times and channels), in their order, with standard deviations and bands.

        Args:
            dataset: the series; observations of which only a limit is known are left out.
            queries: times and channels to predict for, for each series; errors and positions are not read.
            on_step: called with (pieces of series done, pieces in all), for progress bars; None for none.

        Returns:
            Predictions in the table's units, arrays [q, V], at q queries, of the V columns of values that are no
            standard errors. The bands are for observations, so they include the noise.

        Raises:
            InputError: queries for another number of series, at times that are not finite, or no query at all; a
                negative standard error; a series that has nothing but limits.
        """
        dataset = dataset.with_limits(False)
        return interpolate_any(self.require_autoencoder(), dataset, queries, self.error_columns, on_step)

    def beside_line(self, X: Any) -> BesideLine | None:
        """Hide some observations, predict them by the model and by straight lines, and compare the errors.

        A tenth of the observations of at most 200 series is hidden. The lines join the nearest visible observations.

        Args:
            X: series, as a data set, the path of a table, a data frame, arrays or lists.

        Returns:
            The median absolute errors of the model and of the lines, in units of the spread of a channel's values in
            its series; the number of series in the data; and the number of series in which observations were hidden.
            None if all series have fewer than five observations.
        """
        return beside_line(self.require_autoencoder(), self.dataset(X), self.error_columns)

    def embed(self, X: Any, pool: str | None = None, on_step: Any = None) -> np.ndarray:
        """Turn each of S series into one vector: return float32 [S, D], the mean over its encoded observations.

        D is the width of the model's decoder, whose input the encoded observations are. Series are in the order of
        `dataset(X)`. A long series is encoded in pieces; the mean is over the observations of all pieces.

        Args:
            X: series, as a data set, the path of a table, a data frame, arrays or lists.
            pool: "mean" or None, which means the same; InputError for another.
            on_step: called with (pieces of series done, pieces in all), for progress bars; None for none.
        """
        choose("pool", pool or "mean", ("mean",))
        return embed_any(self.require_autoencoder(), self.dataset(X), self.error_columns, on_step)
