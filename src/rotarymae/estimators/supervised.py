"""Estimators of a target: classes and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from rotarymae import partners, tasks
from rotarymae.arrays import ArrayDataset
from rotarymae.checkpoints import PREDICTOR, AnyPreprocessor
from rotarymae.errors import InputError
from rotarymae.estimators.base import Estimator, TakesArrays
from rotarymae.heads import Classifier, Regressor
from rotarymae.series import labels_of
from rotarymae.system import Reporter


@dataclass(kw_only=True, repr=False, eq=False)
class _Supervised(tasks.FinetuningOptions, TakesArrays, Estimator):
    """What the classifier and the regressor share."""

    _stage = "finetuned"

    # Fewer than the command's, for two minutes of a core on 200 series: docs/preset.md has what that costs.
    min_steps: int = 150
    """Each training makes at least this many steps, so that a small table is not left half trained."""

    def save(self, folder: str | Path, license: str = "unknown", tags: Sequence[str] = ()) -> None:
        """Writes the fitted model, and what predicts beside it; arguments and errors as `RoMAEInterpolator.save`."""
        super().save(folder, license, tags)
        self.predictor_.save(Path(folder) / PREDICTOR)

    @classmethod
    def load(cls, folder: str | Path, **parameters: Any) -> Self:
        """What `save` or `rotarymae fit` wrote; see `RoMAEInterpolator.load`.

        Raises:
            InputError: also for a `predictor` that was not saved.
        """
        estimator = super().load(folder, **parameters)
        found = partners.Predictor.of_run(folder, estimator._directory)
        estimator.predictor_ = replace(found, choice=found.check(estimator.predictor))
        return estimator

    def _fit(self, series: Any, targets: Any, task: str) -> None:
        if targets is None:
            raise InputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None; give one per series."
            )
        config, going_on = self._config(), self._goes_on()
        parts = self._pretrain(series, config, task, targets)
        targets, validation, reporter = parts.targets, parts.validation, Reporter(quiet=not self.verbose)
        assert targets is not None
        with reporter.bar("fine-tuning") as on_step:
            trained = tasks.finetune(
                self._directory if going_on else self.pretrained_,
                parts.train,
                targets[parts.rows],
                config,
                task=task,
                validation=None if validation is None else (validation, targets[parts.held]),
                goes_on=going_on,
                on_step=on_step,
            )
        self._keep(trained.model, trained.preprocessor)
        self.loaded_, self.trained_weights_ = trained.loaded, trained.trained_weights
        self.history_["finetune"] = trained.result.history
        of_model = np.zeros((0, 0)) if validation is None else tasks.predict_labels(self._directory, validation)
        truth = tasks.find_task(task).truth(trained.preprocessor, targets)
        known = (parts.dataset, truth, parts.rows, parts.held, of_model, trained.preprocessor.static)
        self.predictor_, _ = partners.fit_predictor(config.predictor, task, *known, config.seed, reporter)

    def importance(self, series: Any, method: tasks.ImportanceMethod = "occlusion") -> list[np.ndarray]:
        """How much each observation matters to the model: for each series an array [n], in the order of time.

        The model is meant, not what may predict beside it. `tasks.importance` says what the numbers are.

        Args:
            series: as `predict`; no pictures or sounds.
            method: "occlusion" leaves out each observation by itself; "attention" is how much the model looks at it.

        Raises:
            InputError: series that cannot be used, and as `tasks.importance`.
        """
        dataset = self._read(series)
        if isinstance(dataset, ArrayDataset):
            raise InputError(f"{dataset.noun} came; importance is of the observations of series.")
        return tasks.importance(self._directory, dataset, method)

    def _labelled(self, dataset: Any, series: Any, y: Any, predicted: np.ndarray) -> tuple[Any, np.ndarray]:
        """The labels of the series, read as `dataset`, that have one, and what is predicted of these."""
        truth = labels_of(dataset, series, y, self.id, "none")
        there = tasks.has_label(truth)
        if len(there) == len(predicted) and not there.all():
            truth, predicted = tasks.narrowed(np.asarray(truth, object)[there]), predicted[there]
        return truth, predicted

    def _predict(self, series: Any) -> np.ndarray:
        dataset = self._read(series)
        return self.predictor_.predict(tasks.predict_labels(self._directory, dataset), dataset)


@dataclass(kw_only=True, repr=False, eq=False)
class RoMAEClassifier(ClassifierMixin, tasks.ClassificationOptions, _Supervised):
    """Pre-trains on the series, pictures or sounds, then fine-tunes to tell classes apart.

    Attributes:
        classes_: [classes] labels, sorted.
        model_, preprocessor_: the `Classifier` and its scalers.
        predictor_: what predicts beside the model, and how it was chosen.
        pretrained_: the `MaskedAutoencoder` it started from, and its scalers, as a `ModelDirectory`.
        loaded_: names of the tensors that fine-tuning took from it.
        trained_weights_: how many weights fine-tuning trained (see `tune`).
        history_: what was logged, by stage.

    One that was loaded has classes_, model_, preprocessor_ and predictor_.
    """

    _kinds = (Classifier,)

    def _keep(self, model: Any, preprocessor: AnyPreprocessor) -> None:
        super()._keep(model, preprocessor)
        self.classes_ = np.array(preprocessor.classes)

    def fit(self, series: Any, y: Any) -> Self:
        """Trains. The labels `y` [S] are of any kind, in the order of the series; a series whose label is None or NaN
        is pre-trained on, and not fine-tuned on. Where there is none such, `min_steps` concerns fine-tuning alone.

        Raises:
            InputError: series or labels that cannot be used, or a parameter; before any training.
        """
        self._fit(series, _class_labels(y), "classification")
        return self

    def score(self, series: Any, y: Any) -> float:
        """The share of series [S] with a label whose most probable class is that of `y`."""
        from sklearn.metrics import accuracy_score

        dataset = self._read(series)
        return float(accuracy_score(*self._labelled(dataset, series, y, self.predict(dataset))))

    def predict_proba(self, series: Any) -> np.ndarray:
        """Probabilities [S, classes], in the order of `classes_`."""
        return self._predict(series)

    def predict(self, series: Any) -> np.ndarray:
        """The most probable class [S]."""
        best = self.predict_proba(series).argmax(1)
        return self.classes_[best]


@dataclass(kw_only=True, repr=False, eq=False)
class RoMAERegressor(RegressorMixin, _Supervised):
    """Pre-trains on the series, then fine-tunes to predict numbers, each output in its own units.

    Attributes:
        model_, preprocessor_, predictor_, pretrained_, loaded_, history_: as `RoMAEClassifier`'s, with a `Regressor`.
    """

    _kinds = (Regressor,)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _keep(self, model: Any, preprocessor: AnyPreprocessor) -> None:
        super()._keep(model, preprocessor)
        self._flat = model.outputs == 1

    def fit(self, series: Any, y: Any) -> Self:
        """Trains. The targets `y` are numbers [S] or [S, outputs] in the order of the series; NaN where one is missing.
        A series whose one target is missing is pre-trained on, and not fine-tuned on.

        Raises:
            InputError: series or targets that cannot be used, or a parameter; before any training.
        """
        self._fit(series, y, "regression")
        self._flat = isinstance(y, str) or np.asarray(y).ndim < 2
        return self

    def score(self, series: Any, y: Any) -> float:
        """R² of the predictions for what has a label, the mean over outputs."""
        from sklearn.metrics import r2_score

        dataset = self._read(series)
        truth, predicted = self._labelled(dataset, series, y, self.predict(dataset))
        truth = tasks.find_task("regression").check(truth, len(predicted))
        columns = zip(truth.T, predicted.reshape(truth.shape).T, strict=True)
        return float(
            np.mean([r2_score(wanted[~np.isnan(wanted)], guess[~np.isnan(wanted)]) for wanted, guess in columns])
        )

    def predict(self, series: Any) -> np.ndarray:
        """Numbers [S], or [S, outputs] when fitted on such; a loaded model of one output gives [S]."""
        values = self._predict(series)
        return values[:, 0] if self._flat else values


def _class_labels(y: Any) -> Any:
    """Labels as they are, a column of them flat. Raises InputError for measurements."""
    if y is None or isinstance(y, str | Mapping):
        return y
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        flat = column_or_1d(y, warn=True)
        return y.iloc[:, 0] if hasattr(y, "iloc") else flat  # whose index may be ids
    there = labels[~np.isnan(labels)] if labels.dtype.kind == "f" else labels[:0]  # NaN is no label
    if labels.ndim and len(there) and np.isfinite(there).all():
        try:
            check_classification_targets(there)
        except ValueError as error:
            raise InputError(str(error)) from None
    return y
