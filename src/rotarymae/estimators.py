"""The main jobs as scikit-learn estimators: classify, regress, interpolate, embed.

Series are a `SeriesDataset`; a NaN-padded array [cases, channels, time]; or a list with (times [n], values [n] or
[n, V]) of every series, or (times, values, channels [n]). An array is read with all channels of a time as one token,
or, where some are missing at some times, with one token for every time and channel; `SeriesDataset.from_padded` with
tokens="channel" makes it the latter always, so that gaps may come later.

`fit` pre-trains on the series and, with labels, fine-tunes; `pretrained=` takes an encoder that has been trained
already. The parameters are the options of `tasks.FitConfig`, which describes and checks each, and three more.
`estimator.save(folder)` writes a fitted model without pickle; `RoMAEClassifier.load(folder)` predicts the
same; `load` reads a run folder of `rotarymae fit` as well.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from rotarymae.checkpoints import ModelDirectory, open_model, save
from rotarymae.errors import InputError, choose
from rotarymae.heads import Classifier, Regressor
from rotarymae.model import Encoder, MaskedAutoencoder
from rotarymae.series import Preprocessor, SeriesDataset, as_dataset
from rotarymae.system import Reporter
from rotarymae.tasks import (
    PREDICTOR,
    ClassificationOptions,
    FinetuningOptions,
    FitConfig,
    MaskingOptions,
    ModelOptions,
    Predictor,
    Queries,
    ScalingOptions,
    TrainingOptions,
    embed,
    find_task,
    finetune,
    fit_predictor,
    interpolate,
    open_pretrained,
    predict_probabilities,
    predict_values,
    prepare,
    pretrain,
    split_off,
)

__all__ = ["RoMAEClassifier", "RoMAEEmbedder", "RoMAEInterpolator", "RoMAERegressor"]

FEWEST = 10  # series; of fewer none are kept for validation


# No generated repr and no generated comparison, here and below: scikit-learn has its own.
@dataclass(kw_only=True, repr=False, eq=False)
class _Estimator(TrainingOptions, MaskingOptions, ScalingOptions, ModelOptions, BaseEstimator):
    """What all four share: the parameters, reading series, splitting, pre-training, saving and loading."""

    # Of a run folder, the model that `load` takes; and the kinds of model that do the job.
    _stage: ClassVar[str] = "pretrained"
    _kinds: ClassVar[tuple[type, ...]] = (MaskedAutoencoder,)

    pretrained: Any = None
    """A model directory, its path, or a run folder of `fit`; pre-trained further with pretrain_epochs only."""
    random_state: int | np.random.RandomState | None = 0
    """The seed of the split, the order, the masks, the augmentation and the first weights; None draws one."""
    verbose: bool = False
    """Show progress."""

    def save(self, folder: str | Path) -> None:
        """Writes the fitted model to a model directory, which `load` and the command read.

        Raises:
            InputError: a folder that holds something else.
        """
        save(self._directory.model, folder, self._directory.preprocessor)

    @classmethod
    def load(cls, folder: str | Path, **parameters: Any) -> Self:
        """A fitted estimator with the model of a model directory, or of a run folder of `rotarymae fit`.

        Args:
            folder: what `save` or the command wrote.
            parameters: the estimator's; a model directory does not hold them.

        Raises:
            InputError: a model that does another job, or one without a preprocessor.
            ModelDirectoryError: as `checkpoints.load_directory`.
        """
        directory = open_model(folder, cls._stage)
        if not isinstance(directory.model, cls._kinds):
            raise InputError(
                f"{folder} holds a {type(directory.model).__name__}; {cls.__name__} needs a "
                f"{' or '.join(kind.__name__ for kind in cls._kinds)}."
            )
        if directory.preprocessor is None:
            raise InputError(f"the model in {folder} has no preprocessor; it was not made from series.")
        estimator = cls(**parameters)
        estimator._keep(directory.model, directory.of_series())
        return estimator

    def _config(self, **changes: Any) -> FitConfig:
        """The parameters with the changes, checked."""
        state = self.random_state
        if state is None:
            seed = int(np.random.default_rng().integers(2**31))  # not from numpy's global state, which is the caller's
        else:
            seed = int(state.randint(2**31)) if isinstance(state, np.random.RandomState) else state
        names = {field.name for field in dataclasses.fields(FitConfig)}
        own = {name: value for name, value in self.get_params(deep=False).items() if name in names}
        if self.pretrained is not None and not isinstance(self.pretrained, str):
            own["pretrained"] = f"a {type(self.pretrained).__name__}"  # which `open_pretrained` looks at
        return FitConfig(**{**own, "seed": seed, **changes})

    def _pretrain(self, series: Any, config: FitConfig, task: str | None, targets: Any) -> Parts:
        """Sets pretrained_ and history_; returns the parts, the targets' among them, that fine-tuning takes."""
        self.history_: dict[str, list[dict[str, Any]]] = {}
        opened = None if self.pretrained is None else open_pretrained(self.pretrained)
        dataset = as_dataset(series, None if opened is None else opened.of_series())
        strata = None
        if task is not None:
            kind = find_task(task)
            kind.check_config(config)
            targets = kind.check(targets, len(dataset))
            strata = kind.strata(targets)
        rows, held = np.arange(len(dataset)), np.arange(0)
        if config.validation_fraction > 0 and len(dataset) >= FEWEST:
            rows, held = split_off(rows, strata, config.validation_fraction, config.seed)
        parts = Parts(dataset, rows, held, targets)
        train, validation = parts.train, parts.validation
        if opened is None or config.pretrains:
            how = {"preprocessor": prepare(train, config, opened), "start": opened, "validation": validation}
            with Reporter(quiet=not self.verbose).bar("pre-training") as on_step:
                trained = pretrain(train, config, **how, on_step=on_step)
            opened = trained.directory
            self.history_["pretrain"] = trained.result.history
        self.pretrained_ = opened
        return parts

    def _keep(self, model: Any, preprocessor: Preprocessor) -> None:
        self.model_, self.preprocessor_ = model, preprocessor

    def _read(self, series: Any) -> SeriesDataset:
        """Series for a fitted model, laid out as those it was fitted on."""
        check_is_fitted(self, "model_")
        return as_dataset(series, self.preprocessor_)

    @property
    def _directory(self) -> ModelDirectory:
        check_is_fitted(self, "model_")
        return ModelDirectory(self.model_, self.preprocessor_)


@dataclass(frozen=True)
class Parts:
    """All series, the indices of those that are trained on and of those that choose, and the checked targets of all."""

    dataset: SeriesDataset
    rows: np.ndarray
    held: np.ndarray
    targets: np.ndarray | None

    @property
    def train(self) -> SeriesDataset:
        return self.dataset.select(self.rows)

    @property
    def validation(self) -> SeriesDataset | None:
        return self.dataset.select(self.held) if len(self.held) else None


@dataclass(kw_only=True, repr=False, eq=False)
class _Supervised(FinetuningOptions, _Estimator):
    """What the classifier and the regressor share."""

    _stage = "finetuned"

    def save(self, folder: str | Path) -> None:
        """Writes the fitted model, and what predicts beside it, to a new folder.

        Raises:
            InputError: a folder that holds something already.
        """
        super().save(folder)
        self.predictor_.save(Path(folder) / PREDICTOR)

    @classmethod
    def load(cls, folder: str | Path, **parameters: Any) -> Self:
        """What `save` or `rotarymae fit` wrote; see `RoMAEInterpolator.load`."""
        estimator = super().load(folder, **parameters)
        estimator.predictor_ = Predictor.of_run(folder, estimator._directory)
        return estimator

    def _fit(self, series: Any, targets: Any, task: str) -> None:
        config = self._config()
        parts = self._pretrain(series, config, task, targets)
        targets, validation, reporter = parts.targets, parts.validation, Reporter(quiet=not self.verbose)
        assert targets is not None
        with reporter.bar("fine-tuning") as on_step:
            trained = finetune(
                self.pretrained_,
                parts.train,
                targets[parts.rows],
                config,
                task=task,
                validation=None if validation is None else (validation, targets[parts.held]),
                on_step=on_step,
            )
        self._keep(trained.model, trained.directory.of_series())
        self.loaded_ = trained.loaded
        self.history_["finetune"] = trained.result.history
        of_model = np.zeros((0, 0)) if validation is None else self._of_model(validation)
        truth = find_task(task).truth(trained.preprocessor, targets)
        known = (parts.dataset, truth, parts.rows, parts.held, of_model, trained.preprocessor.static)
        self.predictor_ = fit_predictor(config.predictor, task, *known, config.seed, reporter)

    def _of_model(self, dataset: SeriesDataset) -> np.ndarray:
        """The model's own predictions."""
        job = predict_probabilities if isinstance(self.model_, Classifier) else predict_values
        return job(self._directory, dataset)

    def _predict(self, series: Any) -> np.ndarray:
        dataset = self._read(series)
        return self.predictor_.predict(self._of_model(dataset), dataset)


@dataclass(kw_only=True, repr=False, eq=False)
class RoMAEClassifier(ClassifierMixin, ClassificationOptions, _Supervised):
    """Pre-trains on the series, then fine-tunes to tell classes apart.

    Attributes:
        classes_: [classes] labels, sorted.
        model_, preprocessor_: the `Classifier` and its scalers.
        predictor_: what predicts beside the model, and how it was chosen.
        pretrained_: the `MaskedAutoencoder` it started from, and its scalers, as a `ModelDirectory`.
        loaded_: names of the tensors that fine-tuning took from it.
        history_: what was logged, by stage.

    One that was loaded has classes_, model_ and preprocessor_.
    """

    _kinds = (Classifier,)

    def _keep(self, model: Any, preprocessor: Preprocessor) -> None:
        super()._keep(model, preprocessor)
        self.classes_ = np.array(preprocessor.classes)

    def fit(self, series: Any, labels: Any) -> Self:
        """Trains. `labels` [S] are of any kind, in the order of the series.

        Raises:
            InputError: series or labels that cannot be used, or a parameter; before any training.
        """
        self._fit(series, labels, "classification")
        self.classes_ = np.unique(np.asarray(labels))
        return self

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

    def _keep(self, model: Any, preprocessor: Preprocessor) -> None:
        super()._keep(model, preprocessor)
        self._flat = model.outputs == 1

    def fit(self, series: Any, targets: Any) -> Self:
        """Trains. `targets` are numbers [S] or [S, outputs] in the order of the series; NaN where one is missing.

        Raises:
            InputError: series or targets that cannot be used, or a parameter; before any training.
        """
        self._fit(series, targets, "regression")
        self._flat = np.ndim(targets) == 1
        return self

    def predict(self, series: Any) -> np.ndarray:
        """Numbers [S], or [S, outputs] when fitted on such; a loaded model of one output gives [S]."""
        values = self._predict(series)
        return values[:, 0] if self._flat else values


@dataclass(kw_only=True, repr=False, eq=False)
class _Unsupervised(_Estimator):
    """What the interpolator and the embedder share."""

    validation_fraction: float = 0.0
    """This share of the series is set aside and chooses the best epoch, if there are at least ten series."""

    def _pool(self) -> str:
        """What shall be there to be pooled."""
        return "mean"

    def _fit(self, series: Any) -> None:
        parts = self._pretrain(series, self._config(pool=self._pool()), None, None)
        preprocessor = self.pretrained_.of_series()
        preprocessor.check(parts.train)
        self._keep(self.pretrained_.model, preprocessor)


@dataclass(kw_only=True, repr=False, eq=False)
class RoMAEInterpolator(_Unsupervised):
    """Learns to predict hidden observations; then predicts values at any time, with a standard deviation.

    Attributes:
        model_, preprocessor_: the `MaskedAutoencoder` and its scalers.
        pretrained_: both as a `ModelDirectory`.
        history_: what was logged.
    """

    def fit(self, series: Any, y: Any = None) -> Self:
        """Trains; `y` is not read.

        Raises:
            InputError: series or a parameter that cannot be used; before any training.
        """
        self._fit(series)
        return self

    def predict(self, series: Any, at: Any, return_std: bool = False) -> Any:
        """Values of the series at other times, in their own units.

        Args:
            series: what was observed, laid out as in `fit`.
            at: times [q], the same for all series; or one array of times [q_i] for each series.
            return_std: return (mean, std), two of the same shape.

        Returns:
            For times [q], or [S, q]: an array [S, q, V], or [S, C, q, V] when the series have C channels. For times
            of different number: a list with [q_i, V] or [C, q_i, V] for each series. When `series` is an array
            [cases, channels, time], they are laid out as it is: [cases, channels, q].
        """
        dataset = self._read(series)
        per_series, common = _times(at, len(dataset))
        channels = 1 if dataset.channel_names is None else len(dataset.channel_names)
        queries = Queries.cross(dataset, per_series)
        found = interpolate(self._directory, dataset, queries)
        if return_std and found.std is None:
            raise InputError("the model was trained without a likelihood and has no deviation; leave out return_std.")
        padded = isinstance(series, np.ndarray)

        def shaped(flat: np.ndarray) -> Any:
            parts = []
            for part in np.split(flat, queries.offsets[1:-1]):
                part = part.reshape(channels, -1, part.shape[-1])
                if padded:
                    parts.append(part[..., 0] if dataset.channel_names is not None else part[0].T)
                else:
                    parts.append(part if dataset.channel_names is not None else part[0])
            return np.stack(parts) if common else parts

        if return_std and found.std is not None:
            return shaped(found.mean), shaped(found.std)
        return shaped(found.mean)


@dataclass(kw_only=True, repr=False, eq=False)
class RoMAEEmbedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _Unsupervised):
    """Learns by predicting hidden observations; then turns every series into one vector.

    Attributes:
        model_, preprocessor_, pretrained_, history_: as `RoMAEInterpolator`'s.
    """

    _kinds = (MaskedAutoencoder, Classifier, Regressor, Encoder)

    pool: Literal["auto", "mean", "cls"] = "auto"
    """The vector is the mean over a series' observations, the [CLS] token, or what the model was trained to use."""

    def _pool(self) -> str:
        choose("pool", self.pool, ("auto", "mean", "cls"))
        return "cls" if self.pool == "cls" else "mean"

    def _keep(self, model: Any, preprocessor: Preprocessor) -> None:
        super()._keep(model, preprocessor)
        self._n_features_out = int(getattr(model, "encoder", model).config.embed_dim)

    def fit(self, series: Any, y: Any = None) -> Self:
        """Trains; `y` is not read.

        Raises:
            InputError: series or a parameter that cannot be used; before any training.
        """
        self._fit(series)
        return self

    def transform(self, series: Any) -> np.ndarray:
        """Embeddings [S, D], float32."""
        dataset = self._read(series)
        return embed(self._directory, dataset, None if self.pool == "auto" else self.pool)


def _times(at: Any, series: int) -> tuple[list[np.ndarray], bool]:
    """Times for every series, and whether they are equally many."""
    if isinstance(at, list | tuple) and any(np.ndim(times) for times in at):
        each = [np.asarray(times, np.float64) for times in at]
    else:
        flat = np.asarray(at, np.float64)
        each = [flat] * series if flat.ndim < 2 else list(flat)
    if len(each) != series:
        raise InputError(f"at has times for {len(each)} series; there are {series}. Give one array for each, or one.")
    for i, times in enumerate(each):
        if times.ndim != 1:
            raise InputError(f"at of series {i} has the shape {times.shape}; wanted a flat array of times.")
        if not np.isfinite(times).all():
            raise InputError(f"at of series {i} holds NaN or infinity; every time must be a finite number.")
    return each, len({len(times) for times in each}) == 1
