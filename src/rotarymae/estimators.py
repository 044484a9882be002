"""The main jobs as scikit-learn estimators: classify, regress, interpolate, embed.

Series are a `SeriesDataset`; a NaN-padded array [cases, channels, time]; or a list with (times [n], values [n] or
[n, V]) of every series, or (times, values, channels [n]). An array is read with all channels of a time as one token,
or, where some are missing at some times, with one token for every time and channel; `SeriesDataset.from_padded` with
tokens="channel" makes it the latter always, so that gaps may come later.

`fit` pre-trains on the series and, with labels, fine-tunes; `pretrained=` takes an encoder that has been trained
already. A fitted model is saved without pickle by
`rotarymae.save(estimator.model_, folder, estimator.preprocessor_)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from rotarymae.checkpoints import ModelDirectory, open_model
from rotarymae.errors import InputError
from rotarymae.masking import Masking
from rotarymae.progress import Reporter
from rotarymae.series import Preprocessor, SeriesDataset, as_dataset
from rotarymae.tasks import (
    Queries,
    Settings,
    check_settings,
    check_targets,
    embed,
    finetune,
    interpolate,
    predict_probabilities,
    predict_values,
    pretrain,
    split_off,
)
from rotarymae.training import TrainConfig

__all__ = ["RoMAEClassifier", "RoMAEEmbedder", "RoMAEInterpolator", "RoMAERegressor"]

FEWEST = 10  # series; of fewer none are kept for validation


class _RoMAE(BaseEstimator):
    """What all four share: reading series, the settings, pre-training."""

    size: str
    pretrain_epochs: int
    min_steps: int
    batch_size: int
    base_lr: float
    mask_ratio: float | tuple[float, float]
    time_unit: float | None
    precision: str
    validation_fraction: float
    pretrained: Any
    random_state: Any
    verbose: bool

    model_: Any
    preprocessor_: Preprocessor
    pretrained_: ModelDirectory
    history_: dict[str, list[dict[str, Any]]]

    def _settings(self) -> Settings:
        state = self.random_state
        whole = isinstance(state, int | np.integer) and not isinstance(state, bool)
        seed = int(state) if whole else int(check_random_state(state).randint(2**31))
        common: dict[str, Any] = {
            "min_steps": self.min_steps,
            "batch_size": self.batch_size,
            "base_lr": self.base_lr,
            "precision": self.precision,
            "seed": seed,
        }
        ratio = self.mask_ratio
        pair = (float(ratio[0]), float(ratio[1])) if isinstance(ratio, Sequence) else float(ratio)
        settings = Settings(
            size=self.size,
            masking=Masking("ratio", pair),
            pretrain=TrainConfig(epochs=self.pretrain_epochs, **common),
            time_unit=self.time_unit,
        )
        if not isinstance(self, _Supervised):
            return settings
        return replace(
            settings,
            finetune=TrainConfig(epochs=self.finetune_epochs, betas=(0.9, 0.999), keep_best=True, **common),
            dropout=self.dropout,
            drop=self.drop,
            noise=self.noise,
            pool=self.pool,
        )

    def _pretrain(self, train: SeriesDataset, validation: SeriesDataset | None, settings: Settings) -> None:
        """Sets pretrained_ and history_: the given model's, or a newly trained one's."""
        self.history_ = {}
        if self.pretrained is not None:
            self.pretrained_ = _opened(self.pretrained)
            return
        with Reporter(quiet=not self.verbose).bar("pre-training") as on_step:
            trained = pretrain(train, settings, validation=validation, on_step=on_step)
        self.pretrained_ = trained.directory
        self.history_["pretrain"] = trained.result.history

    def _check_settings(self, train: SeriesDataset, settings: Settings) -> None:
        """Refuses before any training what could be refused after it."""
        if self.pretrained is None:
            check_settings(train, settings)

    def _read(self, series: Any) -> SeriesDataset:
        """Series to fit; an array of a time with only some channels becomes one token for every time and channel."""
        before = None
        if self.pretrained is not None:
            before = _opened(self.pretrained).preprocessor
        return as_dataset(series, before)

    def _read_again(self, series: Any) -> SeriesDataset:
        """Series for a fitted model, laid out as those it was fitted on."""
        check_is_fitted(self, "model_")
        return as_dataset(series, self.preprocessor_)

    @property
    def _directory(self) -> ModelDirectory:
        check_is_fitted(self, "model_")
        return ModelDirectory(self.model_, self.preprocessor_)

    def _cut(self, dataset: SeriesDataset, classes: np.ndarray | None, seed: int) -> tuple[np.ndarray, np.ndarray]:
        share, everything = self.validation_fraction, np.arange(len(dataset))
        if not 0 <= share < 1:
            raise InputError(f"validation_fraction is {share}; wanted at least 0 and less than 1.")
        if share == 0 or len(dataset) < FEWEST:
            return everything, everything[:0]
        return split_off(everything, classes, share, seed)


class _Supervised(_RoMAE):
    """What the classifier and the regressor share."""

    finetune_epochs: int
    dropout: float
    drop: float
    noise: float
    pool: str
    loaded_: tuple[str, ...]

    def __init__(
        self,
        size: str = "tiny-shallow",
        *,
        pretrain_epochs: int = 20,
        finetune_epochs: int = 20,
        min_steps: int = 500,
        batch_size: int = 32,
        base_lr: float = 1e-3,
        mask_ratio: float | tuple[float, float] = (0.3, 0.8),
        dropout: float = 0.0,
        drop: float = 0.0,
        noise: float = 0.0,
        pool: str = "cls",
        time_unit: float | None = None,
        precision: str = "auto",
        validation_fraction: float = 0.15,
        pretrained: Any = None,
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        self.size = size
        self.pretrain_epochs = pretrain_epochs
        self.finetune_epochs = finetune_epochs
        self.min_steps = min_steps
        self.batch_size = batch_size
        self.base_lr = base_lr
        self.mask_ratio = mask_ratio
        self.dropout = dropout
        self.drop = drop
        self.noise = noise
        self.pool = pool
        self.time_unit = time_unit
        self.precision = precision
        self.validation_fraction = validation_fraction
        self.pretrained = pretrained
        self.random_state = random_state
        self.verbose = verbose

    def _fit(self, series: Any, targets: Any, task: str, **settings_of_task: Any) -> None:
        settings = replace(self._settings(), **settings_of_task)
        dataset = self._read(series)
        found = check_targets(targets, len(dataset), task)
        by = found if task == "classification" else None
        train, held = self._cut(dataset, by, settings.pretrain.seed)
        part = dataset.select(train)
        validation = dataset.select(held) if len(held) else None
        self._check_settings(part, settings)
        self._pretrain(part, validation, settings)
        with Reporter(quiet=not self.verbose).bar("fine-tuning") as on_step:
            trained = finetune(
                self.pretrained_,
                part,
                found[train],
                settings,
                task=task,
                validation=None if validation is None else (validation, found[held]),
                on_step=on_step,
            )
        self.model_, self.preprocessor_, self.loaded_ = trained.model, trained.preprocessor, trained.loaded
        self.history_["finetune"] = trained.result.history


class RoMAEClassifier(ClassifierMixin, _Supervised):
    """Pre-trains on the series, then fine-tunes to tell classes apart.

    Args:
        size: of the encoder: "tiny-shallow", "tiny", "small" or "base".
        pretrain_epochs, finetune_epochs: passes over the series; more when they make fewer than
        min_steps: steps of each training.
        batch_size: series a step.
        base_lr: peak learning rate.
        mask_ratio: share of a series' observations that pre-training hides, or the smallest and the largest.
        dropout: in fine-tuning, on attention and in the MLP.
        drop: in fine-tuning, leave out up to this share of a series' observations, at random.
        noise: in fine-tuning, add normal noise of this deviation to the scaled values.
        pool: what the head reads: "cls", or "mean" over the observations.
        class_weights: "balanced" weighs classes by the inverse of their numbers, "none" does not.
        time_unit: unit that times are divided by; None measures it.
        precision: "auto", "fp32", "bf16" or "fp16".
        validation_fraction: share of the series that chooses the best epoch; none with fewer than ten series.
        pretrained: a model directory, its path, or a run folder of `rotarymae fit`: pre-training is left out.
        random_state: of order, masks, augmentation and weights.
        verbose: show progress.

    Attributes:
        classes_: [classes] labels, sorted.
        model_, preprocessor_: the `Classifier` and its scalers.
        pretrained_: the `MaskedAutoencoder` it started from, and its scalers, as a `ModelDirectory`.
        loaded_: names of the tensors that fine-tuning took from it.
        history_: what was logged, by stage.
    """

    classes_: np.ndarray

    def __init__(
        self,
        size: str = "tiny-shallow",
        *,
        pretrain_epochs: int = 20,
        finetune_epochs: int = 20,
        min_steps: int = 500,
        batch_size: int = 32,
        base_lr: float = 1e-3,
        mask_ratio: float | tuple[float, float] = (0.3, 0.8),
        dropout: float = 0.0,
        drop: float = 0.0,
        noise: float = 0.0,
        pool: str = "cls",
        class_weights: str = "none",
        time_unit: float | None = None,
        precision: str = "auto",
        validation_fraction: float = 0.15,
        pretrained: Any = None,
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            size,
            pretrain_epochs=pretrain_epochs,
            finetune_epochs=finetune_epochs,
            min_steps=min_steps,
            batch_size=batch_size,
            base_lr=base_lr,
            mask_ratio=mask_ratio,
            dropout=dropout,
            drop=drop,
            noise=noise,
            pool=pool,
            time_unit=time_unit,
            precision=precision,
            validation_fraction=validation_fraction,
            pretrained=pretrained,
            random_state=random_state,
            verbose=verbose,
        )
        self.class_weights = class_weights

    def fit(self, series: Any, labels: Any) -> Self:
        """Trains. `labels` [S] are of any kind, in the order of the series.

        Raises:
            InputError: series or labels that cannot be used, or a setting; before any training.
        """
        self._fit(series, labels, "classification", class_weights=self.class_weights)
        self.classes_ = np.unique(np.asarray(labels))
        return self

    def predict_proba(self, series: Any) -> np.ndarray:
        """Probabilities [S, classes], in the order of `classes_`."""
        return predict_probabilities(self._directory, self._read_again(series))

    def predict(self, series: Any) -> np.ndarray:
        """The most probable class [S]."""
        best = self.predict_proba(series).argmax(1)
        return self.classes_[best]


class RoMAERegressor(RegressorMixin, _Supervised):
    """Pre-trains on the series, then fine-tunes to predict numbers. Arguments and attributes as `RoMAEClassifier`'s,
    but for what concerns classes."""

    def fit(self, series: Any, targets: Any) -> Self:
        """Trains. `targets` are numbers [S] or [S, outputs] in the order of the series; NaN where one is missing.

        Raises:
            InputError: series or targets that cannot be used, or a setting; before any training.
        """
        self._fit(series, targets, "regression")
        self._flat = np.ndim(targets) == 1
        return self

    def predict(self, series: Any) -> np.ndarray:
        """Numbers [S], or [S, outputs] when fitted on such."""
        found = predict_values(self._directory, self._read_again(series))
        return found[:, 0] if self._flat else found


class _Unsupervised(_RoMAE):
    """What the interpolator and the embedder share."""

    def __init__(
        self,
        size: str = "tiny-shallow",
        *,
        pretrain_epochs: int = 20,
        min_steps: int = 500,
        batch_size: int = 32,
        base_lr: float = 1e-3,
        mask_ratio: float | tuple[float, float] = (0.3, 0.8),
        time_unit: float | None = None,
        precision: str = "auto",
        validation_fraction: float = 0.0,
        pretrained: Any = None,
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        self.size = size
        self.pretrain_epochs = pretrain_epochs
        self.min_steps = min_steps
        self.batch_size = batch_size
        self.base_lr = base_lr
        self.mask_ratio = mask_ratio
        self.time_unit = time_unit
        self.precision = precision
        self.validation_fraction = validation_fraction
        self.pretrained = pretrained
        self.random_state = random_state
        self.verbose = verbose

    def _fit(self, series: Any) -> None:
        settings = self._settings()
        dataset = self._read(series)
        train, held = self._cut(dataset, None, settings.pretrain.seed)
        part = dataset.select(train)
        self._check_settings(part, settings)
        self._pretrain(part, dataset.select(held) if len(held) else None, settings)
        assert self.pretrained_.preprocessor is not None
        self.pretrained_.preprocessor.check(part)
        self.model_, self.preprocessor_ = self.pretrained_.model, self.pretrained_.preprocessor


class RoMAEInterpolator(_Unsupervised):
    """Learns to predict hidden observations; then predicts values at any time, with a standard deviation.

    Args:
        size: of the encoder: "tiny-shallow", "tiny", "small" or "base".
        pretrain_epochs: passes over the series; more when they make fewer than
        min_steps: steps.
        batch_size: series a step.
        base_lr: peak learning rate.
        mask_ratio: share of a series' observations that training hides, or the smallest and the largest.
        time_unit: unit that times are divided by; None measures it.
        precision: "auto", "fp32", "bf16" or "fp16".
        validation_fraction: share of the series on which the loss is only measured, into `history_`.
        pretrained: a model directory, its path, or a run folder of `rotarymae fit`: training is left out.
        random_state: of order, masks and weights.
        verbose: show progress.

    Attributes:
        model_, preprocessor_: the `MaskedAutoencoder` and its scalers.
        history_: what was logged.
    """

    def fit(self, series: Any, y: Any = None) -> Self:
        """Trains; `y` is not read.

        Raises:
            InputError: series or a setting that cannot be used; before any training.
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
        dataset = self._read_again(series)
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


class RoMAEEmbedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _Unsupervised):
    """Learns by predicting hidden observations; then turns every series into one vector.

    Arguments and attributes as `RoMAEInterpolator`'s, and

    Args:
        pool: "mean" over a series' observations, "cls", or "auto": what the model was trained to use.
    """

    def __init__(
        self,
        size: str = "tiny-shallow",
        *,
        pretrain_epochs: int = 20,
        min_steps: int = 500,
        batch_size: int = 32,
        base_lr: float = 1e-3,
        mask_ratio: float | tuple[float, float] = (0.3, 0.8),
        pool: str = "auto",
        time_unit: float | None = None,
        precision: str = "auto",
        validation_fraction: float = 0.0,
        pretrained: Any = None,
        random_state: Any = 0,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            size,
            pretrain_epochs=pretrain_epochs,
            min_steps=min_steps,
            batch_size=batch_size,
            base_lr=base_lr,
            mask_ratio=mask_ratio,
            time_unit=time_unit,
            precision=precision,
            validation_fraction=validation_fraction,
            pretrained=pretrained,
            random_state=random_state,
            verbose=verbose,
        )
        self.pool = pool

    def fit(self, series: Any, y: Any = None) -> Self:
        """Trains; `y` is not read.

        Raises:
            InputError: series or a setting that cannot be used; before any training.
        """
        if self.pool not in ("auto", "mean", "cls"):
            raise InputError(f"pool is {self.pool!r}; wanted 'auto', 'mean' or 'cls'.")
        self._fit(series)
        encoder = getattr(self.model_, "encoder", self.model_)
        self._n_features_out = int(encoder.config.embed_dim)
        return self

    def transform(self, series: Any) -> np.ndarray:
        """Embeddings [S, D], float32."""
        return embed(self._directory, self._read_again(series), None if self.pool == "auto" else self.pool)


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


def _opened(pretrained: Any) -> ModelDirectory:
    if isinstance(pretrained, str | Path):
        return open_model(pretrained, "pretrained")
    if isinstance(pretrained, ModelDirectory):
        return pretrained
    raise InputError(
        f"pretrained is a {type(pretrained).__name__}; wanted the path of a model directory, or what "
        "rotarymae.checkpoints.load_directory gives: the weights alone do not say how values are scaled."
    )
