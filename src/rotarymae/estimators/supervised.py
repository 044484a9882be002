"""Estimators of a target: classes, numbers, and times to an event."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from rotarymae.errors import InputError
from rotarymae.estimators.base import ArrayOptions, Estimator
from rotarymae.estimators.parameters import documented
from rotarymae.labels import NumberTargets
from rotarymae.pipeline import Pipeline
from rotarymae.series import as_text
from rotarymae.survival import concordance, event_times
from rotarymae.tables import is_frame
from rotarymae.targets import as_targets, has_label, narrowed, one_per_series
from rotarymae.training.fit_config import ClassificationOptions, FinetuningOptions


@dataclass(kw_only=True, repr=False, eq=False)
class _Supervised(ArrayOptions, FinetuningOptions, Estimator, ABC):
    """Base class of the classifier, the regressor and the estimator of survival, each of which has its `task`."""

    task: ClassVar[str]
    # Fewer steps than the command's, for two minutes of a core on 200 series: docs/preset.md has what that costs.
    min_steps: int = 150

    @classmethod
    def _suited(cls, pipeline: Pipeline, folder: str | Path) -> Pipeline:
        """Return `pipeline`, which was loaded from `folder`; raise InputError if it was not fine-tuned for `task`."""
        if pipeline.labels is None or pipeline.labels.task != cls.task:
            raise InputError(
                f"{folder} holds a {type(pipeline.model).__name__}; {cls.__name__} needs one that was fine-tuned for "
                f"{cls.task}. Give the folder of such a model, or fit one with labels."
            )
        return pipeline

    def fit(self, X: Any, y: Any) -> Self:
        """Train on series with targets.

        Parameters
        ----------
        X : SeriesDataset, DataFrame, array or list
            The S series: a `SeriesDataset`; a data frame (the parameters `id`, `time`, `channel` and `values` say what
            its columns are); a list of (times, values); or an array [S, channels, time], in which NaN is a missing
            observation. Also pictures, videos and sounds, with `patch_size` or `sample_rate`. For times to an event
            give only observations from before the durations began: later ones would tell how long they were.
        y : array, dict, str, DataFrame or tuple
            The target of each series: an array in the order of the series; a dict from ids to targets, or a pandas
            Series with the ids as index; or the name of a column of the data frame. The classifier takes classes [S],
            which are texts, whole numbers or booleans, the regressor numbers [S] or [S, outputs]. Survival takes
            whether the event was seen, and the duration, in this order: a structured array, as scikit-survival's
            `Surv`; a data frame of two columns, with the ids as index or in the order of the series; or a tuple of two
            arrays, or of the names of two columns. A series whose target is None or NaN is not fine-tuned on.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        InputError
            Series, targets or a parameter that cannot be used; before any training.
        TrainingDiverged
            Losses or weights became infinite or NaN.
        """
        if y is None:
            raise InputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None; give one per series."
            )
        self._train(X, self._targets(y), self.task, self._config())
        return self

    def _targets(self, y: Any) -> Any:
        """Return the targets `y` of `fit` as they are.

        Classes that override it check them, raise InputError for targets of another kind, change their shape, or set
        attributes that `predict` reads.
        """
        return y

    def predict(self, X: Any) -> np.ndarray:
        """Predict the target of each series.

        Parameters
        ----------
        X : SeriesDataset, DataFrame, array or list
            The series, laid out as in `fit`.

        Returns
        -------
        ndarray of shape [S]
            A classifier returns classes: the most probable one, or the one that `decide` favours. `RoMAESurvival`
            returns expected times to the event in the unit of the durations, float; time after `edges_[-1]` does not
            count (restricted mean survival time). Their negatives are risks, as scikit-survival's metrics take them.

        Raises
        ------
        InputError
            Series laid out otherwise than in `fit`.
        NotFittedError
            Before `fit`.
        """
        return self._fitted().predict(self._read(X))

    def score(self, X: Any, y: Any) -> float:
        """Return the score of the predictions on series with known targets.

        Parameters
        ----------
        X : SeriesDataset, DataFrame, array or list
            The series, laid out as in `fit`.
        y : array, dict, str, DataFrame or tuple
            Their targets, as in `fit`; series without one are left out. A class not in `fit` is never predicted.

        Returns
        -------
        float
            A classifier's accuracy; a regressor's R², the mean over outputs, NaN if one has a single target; for times
            to an event Harrell's concordance: the share of pairs predicted in the order of their events, among those
            whose order is known; NaN if there is no such pair.

        Raises
        ------
        InputError
            Series or targets laid out otherwise than in `fit`; no target at all, or none of an output.
        NotFittedError
            Before `fit`.
        """
        dataset = self._read(X)
        predicted = self.predict(dataset)
        truth = one_per_series(self._labels_of(dataset, X, y), len(predicted))
        known = has_label(truth)
        truth, predicted = one_per_series(truth[known], known.sum()), predicted[known]
        if truth.size != predicted.size:
            raise InputError(
                f"y has the shape {truth.shape}, and predictions {predicted.shape}; give as many columns as in fit."
            )
        return self._score(truth, predicted)

    @abstractmethod
    def _score(self, truth: Any, predicted: np.ndarray) -> float:
        """Return the accuracy, R² or concordance of predictions, as the class's task needs it.

        Args:
            truth: labels of S series, each with at least one: classes [S], numbers [S] or [S, outputs] (NaN where one
                output is missing), or a structured array [S] of events and durations.
            predicted: what `predict` returned for them.
        """


@documented
@dataclass(kw_only=True, repr=False, eq=False)
class RoMAEClassifier(ClassifierMixin, ClassificationOptions, _Supervised):
    """Pre-train on the series, fine-tune to tell classes apart, and predict their probabilities.

    With `predictor="auto"` predictions may be those of gradient boosting on summary features, or of an ensemble of the
    model, boosting and random convolutions: whatever is best on the validation series. predictor="model" is the
    model alone.

    Attributes
    ----------
    classes_ : ndarray
        The classes, sorted.
    """

    task = "classification"

    def _keep(self, pipeline: Pipeline) -> None:
        """Set `pipeline_`, the fitted pipeline, and `classes_`, the array of classes that it predicts."""
        super()._keep(pipeline)
        self.classes_ = np.array(getattr(pipeline.labels, "classes", ()))

    def _targets(self, y: Any) -> Any:
        """Check class labels and return them as they are; the name of a column and a dictionary are not checked.

        One column [S, 1] becomes [S], with scikit-learn's DataConversionWarning.

        Raises:
            InputError: numbers that are measurements rather than classes, as scikit-learn judges; lists of unequal
                length.
        """
        if isinstance(y, str | Mapping):
            return y
        labels = as_targets(y)
        if labels.ndim == 2 and labels.shape[1] == 1:
            labels = column_or_1d(labels, warn=True)
            y = y.iloc[:, 0] if hasattr(y, "iloc") else labels  # whose index may be ids
        known = narrowed(labels[has_label(labels)]) if labels.ndim else labels
        if known.dtype.kind == "f" and known.size and np.isfinite(known).all():
            try:
                check_classification_targets(known)
            except ValueError as error:
                raise InputError(str(error)) from None
        return y

    score = _Supervised.score  # pyright: ignore[reportAssignmentType]

    def _score(self, truth: Any, predicted: np.ndarray) -> float:
        """Return the share of predicted classes [S] that equal the true ones, `truth` [S] or [S, 1]; 1 equals "1"."""
        pairs = zip(np.ravel(truth).tolist(), predicted.tolist(), strict=True)
        return float(np.mean([one == other or as_text(one) == as_text(other) for one, other in pairs]))

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict the probability of each class.

        Parameters
        ----------
        X : SeriesDataset, DataFrame, array or list
            The series, laid out as in `fit`.

        Returns
        -------
        ndarray of shape [S, classes]
            Probabilities, in the order of `classes_`.

        Raises
        ------
        InputError
            Series laid out otherwise than in `fit`.
        NotFittedError
            Before `fit`.
        """
        return self._fitted().outputs(self._read(X))


@documented
@dataclass(kw_only=True, repr=False, eq=False)
class RoMAERegressor(RegressorMixin, _Supervised):
    """Pre-train on the series, then fine-tune to predict numbers, each output in its own units.

    With `predictor="auto"` predictions may be those of gradient boosting on summary features, or the average of these
    and the model's: whatever is best on the validation series. predictor="model" is the model alone.
    """

    task = "regression"

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags of the estimator: several outputs are accepted."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _keep(self, pipeline: Pipeline) -> None:
        """Set `pipeline_`, and `_flat`: True if predictions have the shape [S], and not [S, outputs].

        `_flat` is True for a single output, unless the targets of `fit` had the shape [S, 1].
        """
        super()._keep(pipeline)
        self._flat = pipeline.require_labels().outputs == 1 and getattr(self, "_flat", True)

    def _targets(self, y: Any) -> Any:
        """Return the targets `y` as they are, and set `_flat`: whether predictions may have the shape [S].

        It is False for targets [S, outputs]: predictions then have this shape, too, even with one output.
        """
        self._flat = isinstance(y, str) or as_targets(y).ndim < 2
        return y

    score = _Supervised.score  # pyright: ignore[reportAssignmentType]

    def _score(self, truth: Any, predicted: np.ndarray) -> float:
        """Return R² of predicted numbers, the mean over outputs; a true value that is NaN is left out.

        It is NaN if an output has one true value only, and InputError is raised if it has none. `truth` and `predicted`
        are [S] or [S, outputs].
        """
        from sklearn.metrics import r2_score

        truth = NumberTargets.check(truth, len(predicted))
        columns = zip(truth.T, predicted.reshape(truth.shape).T, strict=True)
        return float(np.mean([r2_score(known[~np.isnan(known)], guess[~np.isnan(known)]) for known, guess in columns]))

    def predict(self, X: Any, return_interval: float | None = None) -> Any:
        """Predict the targets of each series, in their units.

        Parameters
        ----------
        X : SeriesDataset, DataFrame, array or list
            The series, laid out as in `fit`.
        return_interval : float or None
            Also return an interval that holds this share of the targets of new series, such as 0.9. It is as wide as
            the errors of the validation series were (split conformal prediction), the same for all series.

        Returns
        -------
        ndarray of shape [S] or [S, outputs], or (value, lower, upper) of such
            Numbers of the shape that the targets of `fit` had; a loaded estimator with one output gives [S]. With
            `return_interval` a tuple of the numbers and of the lower and upper ends of their intervals.

        Raises
        ------
        InputError
            A `return_interval` that is not between 0 and 1, or for which there were too few validation series; series
            laid out otherwise than in `fit`.
        NotFittedError
            Before `fit`.
        """
        pipeline = self._fitted()
        half = None if return_interval is None else pipeline.require_half_widths(return_interval)
        values = pipeline.outputs(self._read(X))
        values = values[:, 0] if self._flat else values
        return values if half is None else (values, values - half, values + half)


@documented
@dataclass(kw_only=True, repr=False, eq=False)
class RoMAESurvival(_Supervised):
    """Pre-train on the series, then fine-tune to predict times to an event, some of which are censored.

    With `predictor="auto"` predictions may be those of gradient boosting or of Cox's regression, both on summary
    features, or of all together: whatever is best on the validation series. predictor="model" is the model alone.

    Attributes
    ----------
    edges_ : ndarray
        Ends of the intervals into which an event may fall, ascending, from 0 to the last event of the training series,
        in the unit of the durations.
    """

    task = "survival"

    def _keep(self, pipeline: Pipeline) -> None:
        """Set `pipeline_`, the fitted pipeline, and `edges_`, the ends of its intervals of time."""
        super()._keep(pipeline)
        self.edges_ = np.array(getattr(pipeline.labels, "edges", ()))

    def _labels_of(self, dataset: Any, X: Any, y: Any) -> Any:
        """Return events and durations in the order of the S series.

        A pair of columns or arrays becomes a structured array [S] with the fields "event" (bool) and "time", which is
        NaN for a series that lacks either. Anything else, such as a structured array, is aligned with the series like
        labels of other tasks.

        Args:
            dataset: the S series, which were made from `X`.
            X: the data as the caller gave them; a data frame may have the columns of events and durations.
            y: a tuple of events and durations, in this order, each an array, a dictionary or pandas Series by id, or
                the name of a column of `X`; a data frame of two such columns; or a structured array [S].

        Raises:
            InputError: a tuple or data frame of other than two parts; durations or events that cannot be used.
        """
        aligned = super()._labels_of
        if hasattr(y, "iloc") and np.shape(y)[1:] == (2,):
            y = y.iloc[:, 0], y.iloc[:, 1]
        elif is_frame(y) and np.ndim(y) == 2:  # of polars or Arrow, without ids
            y = tuple(np.asarray(y).T)
        if not isinstance(y, tuple):
            return aligned(dataset, X, y)
        if len(y) != 2:
            raise InputError(f"y has {len(y)} parts; give two: whether the event was seen, and the durations.")
        event, time = (aligned(dataset, X, part) for part in y)
        return event_times(time, event)

    def _score(self, truth: Any, predicted: np.ndarray) -> float:
        """Return Harrell's concordance of predicted times [S] with the true ones, from 0 to 1.

        `truth` is a structured array [S], whose first field says whether the event was seen; the second is the
        duration.
        """
        known = self.pipeline_.require_labels().truth(truth)
        return concordance(known["time"], known["event"], predicted)

    def predict_survival_function(self, X: Any, times: Any = None) -> np.ndarray:
        """Predict the probability that the event comes after each of some times.

        Parameters
        ----------
        X : SeriesDataset, DataFrame, array or list
            The series, laid out as in `fit`.
        times : array of shape [T] or None
            Durations from 0 to `edges_[-1]`, the same for all series. None takes the quartiles of `edges_`: with many
            training events about a quarter, a half and three quarters of them happened by then.

        Returns
        -------
        ndarray of shape [S, T]
            Probabilities, which fall with the time.

        Raises
        ------
        InputError
            Times below 0 or above `edges_[-1]`; series laid out otherwise than in `fit`.
        NotFittedError
            Before `fit`.
        """
        return self._fitted().survival(self._read(X), times)
