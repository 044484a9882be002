"""The main jobs as scikit-learn estimators: classify, regress, interpolate, embed.

Series come in any of these forms, and the same data in all of them give the same predictions:

    SeriesDataset                       of a table, a file, arrays
    data frame                          long: one row per observation; pandas, polars or Arrow. Its columns are named by
                                        the parameters id, time, channel, values and static. Series are in the order of
                                        their first rows. Labels may be the name of a column, or a dictionary or pandas
                                        Series by id.
    list of (times, values)             times [n] and values [n] or [n, V] of every series, or also channels [n]
    array [cases, channels, time]       at the times 0, 1, 2, ...; NaN is no observation (aeon's layout)
    list of arrays [channels, time]     of unequal length (aeon's layout)
    array [cases, time]                 scikit-learn's X: each row is a series of one channel at the times 0, 1, 2, ...,
                                        NaN is no observation, and all have as many columns as in `fit`

An array is read with all channels of a time as one token, or, where some are missing at some times, with one token for
every time and channel; `SeriesDataset.from_padded` with tokens="channel" makes it the latter always, so that gaps may
come later. A data frame cannot be cut by rows: for cross-validation make it a SeriesDataset first.

All but the interpolator also take pictures and videos, with `patch_size`, and sounds, with `sample_rate`: an
`ArrayDataset`, one array [N, H, W], [N, H, W, C] or [N, T, H, W, C], or a list of arrays, or of waveforms [n], of
unequal sizes.

`fit` pre-trains on the series and, with labels, fine-tunes; `pretrained=` takes an encoder that has been trained
already. The parameters are the options of `tasks.FitConfig`, which describes and checks each, and three more.
`estimator.save(folder)` writes a fitted model without pickle; `RoMAEClassifier.load(folder)` predicts the
same; `load` reads a run folder of `rotarymae fit` as well.
"""

from __future__ import annotations

import dataclasses
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
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
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from rotarymae.arrays import ArrayDataset, ArrayPreprocessor, as_arrays
from rotarymae.checkpoints import AnyPreprocessor, ModelDirectory, open_model, save
from rotarymae.errors import InputError, InputWarning, choose
from rotarymae.heads import Classifier, Regressor
from rotarymae.model import Encoder, MaskedAutoencoder
from rotarymae.series import FrameColumns, SeriesDataset, as_dataset, hide, is_frame, labels_of
from rotarymae.system import Reporter
from rotarymae.tasks import (
    HIDDEN,
    PREDICTOR,
    AnyDataset,
    ClassificationOptions,
    FinetuningOptions,
    FitConfig,
    ImportanceMethod,
    MaskingOptions,
    ModelOptions,
    Predictor,
    Queries,
    ScalingOptions,
    TrainingOptions,
    as_queries,
    embed,
    find_task,
    finetune,
    fit_predictor,
    has_label,
    importance,
    interpolate,
    make_examples,
    narrowed,
    noun_of,
    open_pretrained,
    predict_probabilities,
    predict_values,
    prepare,
    pretrain,
    split_off,
)

__all__ = ["RoMAEClassifier", "RoMAEEmbedder", "RoMAEInterpolator", "RoMAERegressor"]

FEWEST = 10  # series; of fewer none are kept for validation
COLUMNS = tuple(field.name for field in dataclasses.fields(FrameColumns))  # parameters that name a data frame's
LISTS = ("values", "static")


# No generated repr and no generated comparison, here and below: scikit-learn has its own.
@dataclass(kw_only=True, repr=False, eq=False)
class _Estimator(TrainingOptions, MaskingOptions, ScalingOptions, ModelOptions, BaseEstimator):
    """What all four share: the parameters, reading series, splitting, pre-training, saving and loading."""

    # Of a run folder, the model that `load` takes; and the kinds of model that do the job.
    _stage: ClassVar[str] = "pretrained"
    _kinds: ClassVar[tuple[type, ...]] = (MaskedAutoencoder,)

    pretrained: Any = None
    """A model directory, its path, or a run folder of `fit`; pre-trained further with pretrain_epochs only."""
    warm_start: bool = False
    """A further `fit` goes on from the fitted model, with its scalers and without a new pre-training."""
    id: str = "id"
    """Of a data frame, this column says which series a row belongs to."""
    time: str = "time"
    """Of a data frame, this column holds the times, numbers or dates."""
    channel: str | None = None
    """Of a data frame, this column says which channel was observed; without it there is one channel."""
    values: tuple[str, ...] = ("value",)
    """Of a data frame, these columns hold the values."""
    random_state: int | np.random.RandomState | None = 0
    """The seed of the split, the order, the masks, the augmentation and the first weights; None draws one."""
    verbose: bool = False
    """Show progress."""

    def save(self, folder: str | Path, license: str = "unknown", tags: Sequence[str] = ()) -> None:
        """Writes the fitted model to a model directory, which `load` and the command read.

        Args:
            folder: new, empty, or a model directory, which is replaced.
            license: for the model card, as the Hugging Face Hub writes it: "mit", "cc-by-4.0".
            tags: for the model card.

        Raises:
            InputError: a folder that holds something else.
        """
        save(self._directory.model, folder, self._directory.preprocessor, self._note(), license, tags)

    def save_pretrained(self, folder: str | Path, license: str = "unknown", tags: Sequence[str] = ()) -> None:
        """`save`, by the Hugging Face Hub's name."""
        self.save(folder, license, tags)

    def push_to_hub(
        self,
        repository: str,
        license: str = "unknown",
        tags: Sequence[str] = (),
        private: bool = False,
        token: str | None = None,
    ) -> str:
        """Puts the fitted model into a repository OWNER/NAME of the Hugging Face Hub, which is made if it is not there.

        Args:
            license, tags: as `save`.
            private: who may see a repository that is made now.
            token: of the Hub; without it, the one that `hf auth login` has kept.

        Returns:
            The address of the upload.

        Raises:
            MissingExtra: without the extra `hub`.
        """
        from rotarymae.export import push_folder

        with tempfile.TemporaryDirectory() as beside:
            self.save(Path(beside) / "model", license, tags)
            return push_folder(Path(beside) / "model", repository, private, token)

    @classmethod
    def from_pretrained(cls, name: str | Path, **parameters: Any) -> Self:
        """`load`, by the Hugging Face Hub's name."""
        return cls.load(name, **parameters)

    def _note(self) -> str:
        """What the model card says of the training."""
        if not hasattr(self, "history_"):
            return ""
        said = [f"Fitted by `{' '.join(repr(self).split())}`."]
        for stage, lines in self.history_.items():
            losses = [line["validation"] for line in lines if "validation" in line]
            best = f", best validation loss {min(losses):.4g}" if losses else ""
            said.append(f"{stage}: {lines[-1]['step'] if lines else 0:,} steps{best}.")
        return " ".join(said)

    @classmethod
    def load(cls, folder: str | Path, **parameters: Any) -> Self:
        """A fitted estimator with the model of a model directory, or of a run folder of `rotarymae fit`.

        Args:
            folder: what `save` or the command wrote, or a repository OWNER/NAME of the Hugging Face Hub.
            parameters: the estimator's. A model directory does not hold them, but the columns of its training table.

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
        preprocessor, own = directory.preprocessor, [field.name for field in dataclasses.fields(cls)]
        if not issubclass(cls, _TakesArrays):
            preprocessor = directory.of_series()
        columns = {} if isinstance(preprocessor, ArrayPreprocessor) else preprocessor.columns
        layout = {name: columns[name] for name in COLUMNS if name in columns and name in own}
        layout |= {name: tuple(layout[name]) for name in LISTS if name in layout}
        estimator = cls(**{**layout, **parameters})
        estimator._keep(directory.model, preprocessor)
        return estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # NaN in an array is no observation
        tags.input_tags.three_d_array = True
        return tags

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
        going_on = self._goes_on()
        opened = None if self.pretrained is None else open_pretrained(self.pretrained)
        opened = self._directory if going_on else opened
        like = None if opened is None else opened.preprocessor
        dataset = self._dataset(series, like, fits=task or "unsupervised")
        everyone, strata = np.arange(len(dataset)), None
        labelled = everyone
        if task is not None:
            kind = find_task(task)
            kind.check_config(config)
            if isinstance(dataset, SeriesDataset):
                targets = labels_of(dataset, series, targets, self.id, unlabelled="none")
            there = has_label(targets)
            if len(there) == len(dataset) and not there.all():
                labelled, targets = np.flatnonzero(there), narrowed(np.asarray(targets, object)[there])
                if not len(labelled):
                    raise InputError("no series has a label; give the labels of some.")
            targets = kind.check(targets, len(labelled))
            strata = kind.strata(targets)
            if len(labelled) < len(dataset):
                use = "they are not used"
                if config.pretrains and not going_on:
                    use = "they are pre-trained on, and not fine-tuned on"
                lacking = f"{len(dataset) - len(labelled):,} of {len(dataset):,} {noun_of(dataset)} have no label"
                warnings.warn(f"{lacking}: {use}.", InputWarning, stacklevel=4)
        rows, held = np.arange(len(labelled)), np.arange(0)
        if config.validation_fraction > 0 and len(labelled) >= FEWEST:
            rows, held = split_off(rows, strata, config.validation_fraction, config.seed)
        parts = Parts(dataset if labelled is everyone else dataset.select(labelled), rows, held, targets)
        if going_on and task is not None:
            return parts
        train, validation = dataset.select(np.setdiff1d(everyone, labelled[held])), parts.validation
        if going_on and self.pretrained is None:
            self._check_sizes(config)
        if config.pretrains:
            how = {"preprocessor": prepare(train, config, opened), "start": opened, "validation": validation}
            # Where all have labels, the least number of steps is fine-tuning's: as accurate in half the time.
            all_labelled = task is not None and labelled is everyone
            stage = dataclasses.replace(config, min_steps=0) if all_labelled else config
            with Reporter(quiet=not self.verbose).bar("pre-training") as on_step:
                trained = pretrain(train, stage, **how, on_step=on_step)
            opened = trained.directory
            self.history_["pretrain"] = trained.result.history
        assert opened is not None
        if is_frame(series):
            columns = dataclasses.asdict(self._columns())
            opened = replace(opened, preprocessor=replace(opened.of_series(), columns=columns))
        self.pretrained_ = opened
        return parts

    def _goes_on(self) -> bool:
        return self.warm_start and hasattr(self, "model_")

    def _check_sizes(self, config: FitConfig) -> None:
        """Refuses to go on from a model of other sizes than the parameters'."""
        known = self.preprocessor_
        if self.model_.config != config.model_config(known.axes, known.features, known.input_features):
            raise InputError("the sizes of the model have changed; warm_start goes on from a model of the same.")

    def _dataset(self, series: Any, like: AnyPreprocessor | None, fits: str = "") -> Any:
        """Series in one of the forms; `fits` is what is fitted on them, or nothing where something is predicted."""
        if isinstance(like, ArrayPreprocessor):
            raise InputError(f"the model was made from {like.noun}; {type(self).__name__} needs one made from series.")
        if _is_flat(series):
            options: dict[str, Any] = {"dtype": [np.float64, np.float32], "ensure_all_finite": "allow-nan"}
            if fits:
                options |= {"ensure_min_features": 2, "ensure_min_samples": 1 if fits == "unsupervised" else 2}
            try:
                flat = validate_data(self, series, reset=bool(fits), **options)
            except ValueError as error:
                raise InputError(str(error)) from None
            series = np.asarray(flat)[:, None]
        return as_dataset(series, like, self._columns())

    def _columns(self) -> FrameColumns:
        """The parameters that name the columns of a data frame."""
        own = {name: value for name, value in self.get_params(deep=False).items() if name in COLUMNS}
        own |= {name: (own[name],) if isinstance(own[name], str) else tuple(own[name]) for name in LISTS if name in own}
        if self.errors:
            own["values"] = (*own["values"], *self.errors)
        return FrameColumns(**own)

    def _keep(self, model: Any, preprocessor: AnyPreprocessor) -> None:
        self.model_, self.preprocessor_ = model, preprocessor

    def _read(self, series: Any) -> Any:
        """Series for a fitted model, laid out as those it was fitted on."""
        check_is_fitted(self, "model_")
        return self._dataset(series, self.preprocessor_)

    @property
    def _directory(self) -> ModelDirectory:
        check_is_fitted(self, "model_")
        return ModelDirectory(self.model_, self.preprocessor_)


@dataclass(frozen=True)
class Parts:
    """All series that have a label, where labels are learnt; the indices of those that are trained on and of those that
    choose; and the checked targets of all."""

    dataset: AnyDataset
    rows: np.ndarray
    held: np.ndarray
    targets: np.ndarray | None

    @property
    def train(self) -> AnyDataset:
        return self.dataset.select(self.rows)

    @property
    def validation(self) -> AnyDataset | None:
        return self.dataset.select(self.held) if len(self.held) else None


@dataclass(kw_only=True, repr=False, eq=False)
class _TakesArrays:
    """What the estimators share that take pictures, videos and sounds as well."""

    patch_size: int | tuple[int, ...] | None = None
    """Pictures and videos are cut into patches of so many cells along each axis; without it the data are series."""
    sample_rate: int | None = None
    """The data are waveforms of so many samples per second, which become spectrograms."""

    def _dataset(self, series: Any, like: AnyPreprocessor | None, fits: str = "") -> Any:
        patch_size, sample_rate = self.patch_size, self.sample_rate
        if isinstance(like, ArrayPreprocessor):  # of a model, which says by itself what it reads
            patch_size, sample_rate = like.patch_size, like.sample_rate
        elif like is not None or (patch_size is None and sample_rate is None and not isinstance(series, ArrayDataset)):
            return super()._dataset(series, like, fits)  # type: ignore[misc]
        dataset = as_arrays(series, patch_size, sample_rate)
        if isinstance(like, ArrayPreprocessor):
            like.check(dataset)
        return dataset


@dataclass(kw_only=True, repr=False, eq=False)
class _Supervised(FinetuningOptions, _TakesArrays, _Estimator):
    """What the classifier and the regressor share."""

    _stage = "finetuned"

    def save(self, folder: str | Path, license: str = "unknown", tags: Sequence[str] = ()) -> None:
        """Writes the fitted model, and what predicts beside it, to a new folder; arguments as `RoMAEInterpolator.save`.

        Raises:
            InputError: a folder that holds something already.
        """
        super().save(folder, license, tags)
        self.predictor_.save(Path(folder) / PREDICTOR)

    @classmethod
    def load(cls, folder: str | Path, **parameters: Any) -> Self:
        """What `save` or `rotarymae fit` wrote; see `RoMAEInterpolator.load`."""
        estimator = super().load(folder, **parameters)
        estimator.predictor_ = Predictor.of_run(folder, estimator._directory)
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
            trained = finetune(
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
        of_model = np.zeros((0, 0)) if validation is None else self._of_model(validation)
        truth = find_task(task).truth(trained.preprocessor, targets)
        known = (parts.dataset, truth, parts.rows, parts.held, of_model, trained.preprocessor.static)
        self.predictor_ = fit_predictor(config.predictor, task, *known, config.seed, reporter)

    def importance(self, series: Any, method: ImportanceMethod = "occlusion") -> list[np.ndarray]:
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
        return importance(self._directory, dataset, method)

    def _of_model(self, dataset: AnyDataset) -> np.ndarray:
        """The model's own predictions."""
        job = predict_probabilities if isinstance(self.model_, Classifier) else predict_values
        return job(self._directory, dataset)

    def _truth(self, series: Any, y: Any) -> Any:
        """What `score` compares with, in the order of the series."""
        return labels_of(self._read(series), series, y, self.id) if isinstance(y, str | Mapping) else y

    def _predict(self, series: Any) -> np.ndarray:
        dataset = self._read(series)
        return self.predictor_.predict(self._of_model(dataset), dataset)


@dataclass(kw_only=True, repr=False, eq=False)
class RoMAEClassifier(ClassifierMixin, ClassificationOptions, _Supervised):
    """Pre-trains on the series, pictures or sounds, then fine-tunes to tell classes apart.

    Attributes:
        classes_: [classes] labels, sorted.
        model_, preprocessor_: the `Classifier` and its scalers.
        predictor_: what predicts beside the model, and how it was chosen.
        pretrained_: the `MaskedAutoencoder` it started from, and its scalers, as a `ModelDirectory`.
        loaded_: names of the tensors that fine-tuning took from it.
        trained_weights_: how many weights fine-tuning trained (see `tune`).
        history_: what was logged, by stage.

    One that was loaded has classes_, model_ and preprocessor_.
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
        """The share of series [S] whose most probable class is that of `y`."""
        return super().score(series, self._truth(series, y))

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
        """R² of the predictions."""
        return super().score(series, self._truth(series, y))

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
        preprocessor = self.pretrained_.preprocessor
        assert preprocessor is not None
        make_examples(parts.train, preprocessor)  # refuses what the model was not made for
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

    def predict(self, series: Any, at: Any = None, return_std: bool = False) -> Any:
        """Values of the series at other times, in their own units.

        Args:
            series: what was observed, laid out as in `fit`.
            at: times [q], the same for all series; or one array of times [q_i] for each series. Without them, the
                times of an array, which fills its gaps, or each series' own times.
            return_std: return (mean, std), two of the same shape.

        Returns:
            For times [q], or [S, q]: an array [S, q, V], or [S, C, q, V] when the series have C channels. For times
            of different number: a list with [q_i, V] or [C, q_i, V] for each series. When `series` is an array
            [cases, channels, time] or [cases, time], they are laid out as it is: [cases, channels, q] or [cases, q].

        Raises:
            InputError: series or times that cannot be used; `return_std` of a model without a likelihood.
        """
        dataset, queries, shaped = self._ask(series, at)
        found = interpolate(self._directory, dataset, queries)
        if return_std and found.std is None:
            raise InputError("the model was trained without a likelihood and has no deviation; leave out return_std.")
        if return_std and found.std is not None:
            return shaped(found.mean), shaped(found.std)
        return shaped(found.mean)

    def sample(
        self, series: Any, at: Any = None, draws: int = 10, joint: bool = False, random_state: int | None = 0
    ) -> Any:
        """Random values at other times, drawn from what the model predicts for each of them alone.

        The spread over draws is that of each value. Neighbouring values of one draw are as if they had nothing to do
        with each other: draws are no curves.

        Args:
            series, at: as `predict`.
            draws: so many values for each time.
            joint: draws whose values belong together; the model has none.
            random_state: the seed of the draws; None draws one.

        Returns:
            As `predict`, with the draws in front: [draws, S, q, V], or a list with [draws, q_i, V] for each series.

        Raises:
            InputError: `joint`, whose message says why; a model without a likelihood; as `predict`.
        """
        if joint:
            raise InputError(
                "joint draws need the covariance between times, and the model predicts the mean and the variance of "
                "each value by itself; use joint=False for draws of each value alone, which are no curves."
            )
        if type(draws) is not int or draws < 1:
            raise InputError(f"draws is {draws!r}; wanted a whole number of at least 1.")
        dataset, queries, shaped = self._ask(series, at)
        found = interpolate(self._directory, dataset, queries)
        if found.scaled_std is None:
            raise InputError("the model was trained without a likelihood: it predicts one value for each time.")
        channels = np.zeros(len(queries.times), int) if queries.channels is None else queries.channels
        normal = np.random.default_rng(random_state).standard_normal((draws, *found.mean.shape))
        values = self._directory.of_series().values
        drawn = [shaped(values.inverse(found.scaled_mean + found.scaled_std * one, channels)) for one in normal]
        if isinstance(drawn[0], np.ndarray):
            return np.stack(drawn)
        return [np.stack(of_series) for of_series in zip(*drawn, strict=True)]

    def score(self, series: Any, y: Any = None) -> float:
        """R² at hidden observations: a quarter of each series' is hidden, always the same, and predicted from the rest.

        It is computed from standardised values, all channels and value columns together; 1 is perfect, 0 as good as
        the mean. `y` is not read.

        Raises:
            InputError: no series has two observations.
        """
        from sklearn.metrics import r2_score

        visible, hidden, _ = hide(self._read(series), HIDDEN, seed=0)
        queries = as_queries(hidden)
        found = interpolate(self._directory, visible, queries)
        channels = np.zeros(len(queries.times), int) if queries.channels is None else queries.channels
        truth = self._directory.of_series().values.transform(hidden.values, channels)
        return float(r2_score(truth.ravel(), found.scaled_mean.ravel()))

    def _ask(self, series: Any, at: Any) -> tuple[SeriesDataset, Queries, Callable[[np.ndarray], Any]]:
        """The series, where to ask, and what brings flat answers into their shape."""
        dataset = self._read(series)
        padded = _is_flat(series) or (isinstance(series, np.ndarray) and series.ndim == 3)
        if at is None:
            at = np.arange(np.shape(series)[-1]) if padded else [np.unique(one.times) for one in dataset]
        per_series, common = _times(at, len(dataset))
        channels = 1 if dataset.channel_names is None else len(dataset.channel_names)
        queries = Queries.cross(dataset, per_series)

        def shaped(flat: np.ndarray) -> Any:
            parts = []
            for part in np.split(flat, queries.offsets[1:-1]):
                part = part.reshape(channels, -1, part.shape[-1])
                if padded:
                    part = part[..., 0] if dataset.channel_names is not None else part[0].T
                    parts.append(part[0] if _is_flat(series) else part)
                else:
                    parts.append(part if dataset.channel_names is not None else part[0])
            return np.stack(parts) if common else parts

        return dataset, queries, shaped


@dataclass(kw_only=True, repr=False, eq=False)
class RoMAEEmbedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _TakesArrays, _Unsupervised):
    """Learns by predicting hidden observations or patches; then turns every series, picture or sound into one vector.

    Attributes:
        model_, preprocessor_, pretrained_, history_: as `RoMAEInterpolator`'s.
    """

    _kinds = (MaskedAutoencoder, Classifier, Regressor, Encoder)

    pool: Literal["auto", "mean", "max", "cls"] = "auto"
    """The vector is the mean or maximum over a series' observations, the [CLS] token, or what training used."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _pool(self) -> str:
        choose("pool", self.pool, ("auto", "mean", "max", "cls"))
        return "cls" if self.pool == "cls" else "mean"

    def _keep(self, model: Any, preprocessor: AnyPreprocessor) -> None:
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


def _is_flat(series: Any) -> bool:
    """Whether this is scikit-learn's X: a table of numbers, or what shall be one; its errors are scikit-learn's."""
    if isinstance(series, SeriesDataset) or is_frame(series):
        return False
    if isinstance(series, list | tuple):
        rows = [row for row in series if isinstance(row, list | tuple | np.ndarray) and len(row)]
        return len(rows) == len(series) > 0 and all(np.isscalar(row[0]) for row in rows)
    return hasattr(series, "toarray") or (hasattr(series, "__array__") and np.asarray(series).ndim < 3)


def _class_labels(y: Any) -> Any:
    """Labels as they are, a column of them flat. Raises InputError for measurements."""
    if y is None or isinstance(y, str | Mapping):
        return y
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        return column_or_1d(y, warn=True)
    there = labels[~np.isnan(labels)] if labels.dtype.kind == "f" else labels[:0]  # NaN is no label
    if labels.ndim and len(there) and np.isfinite(there).all():
        try:
            check_classification_targets(there)
        except ValueError as error:
            raise InputError(str(error)) from None
    return y


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
