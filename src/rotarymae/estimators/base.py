"""The common base of the estimators: reading data, training with the parameters as options, saving, loading."""

from __future__ import annotations

import dataclasses
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from rotarymae.arrays import ArrayDataset, as_arrays
from rotarymae.config import RANGES
from rotarymae.datasets import is_flat
from rotarymae.ensemble import load
from rotarymae.errors import InputError, InputWarning, listed
from rotarymae.pipeline import Pipeline
from rotarymae.system import Reporter, plain_json, unmasked
from rotarymae.tables import TableSchema, as_dataset, fitted_by_command, is_frame, labels_of
from rotarymae.train import open_start, train
from rotarymae.training.fit_config import FitConfig, MaskingOptions, ModelOptions, ScalingOptions, TrainingOptions

# Parameters that name a data frame's columns.
FRAME_COLUMNS = ("id", "time", "channel", "values", "upper_limits", "lower_limits", "static")
CONFIG_FIELDS = frozenset(field.name for field in dataclasses.fields(FitConfig))


class _Reporter(Reporter):
    """Print progress, and issue warnings as Python's, which the caller can filter and catch."""

    def warn(self, text: str) -> None:
        """Issue an InputWarning."""
        warnings.warn(text, InputWarning, stacklevel=2)


@dataclass(kw_only=True, repr=False, eq=False)
class EstimatorOptions:
    """Parameters of an estimator in addition to the options of a fit."""

    pretrained: Any = None
    """The trained pipeline to start from: a run folder, a saved pipeline, a model's name, or a Pipeline; without it,
    random weights. It is pre-trained further only if pretrain_epochs is given."""
    id: str = "id"
    """For data frames: the column that says which series a row belongs to."""
    time: str = "time"
    """For data frames: the column of times, numbers or dates."""
    channel: str | None = None
    """For data frames: the column of channels; without it there is one channel."""
    values: tuple[str, ...] = ("value",)
    """For data frames: the columns of values; cells such as "<0.01" are limits."""
    upper_limits: tuple[str, ...] = ()
    """For data frames: columns of detection limits, in the order of values; where a value is missing, it lies below."""
    lower_limits: tuple[str, ...] = ()
    """For data frames: columns of detection limits, in the order of values; where a value is missing, it lies above, as
    magnitudes do."""
    random_state: int | np.random.RandomState | None = 0
    """The seed of the split, the order, the masks, the augmentation and the first weights; None draws one."""
    verbose: bool = False
    """Show progress on standard error."""


@dataclass(kw_only=True, repr=False, eq=False)
class ArrayOptions:
    """Parameters that say how pictures, videos and sounds become patches."""

    patch_size: int | tuple[int, ...] | None = None
    """Pictures, videos and sounds are cut into patches of this many cells along each axis; without it sounds are cut
    into patches of all bins of 8 frames, and other data are series."""
    sample_rate: int | None = None
    """The data are waveforms with this many samples per second, which become spectrograms."""


@dataclass(kw_only=True, repr=False, eq=False)
class Estimator(EstimatorOptions, ModelOptions, ScalingOptions, MaskingOptions, TrainingOptions, BaseEstimator):
    """Base of the estimators: a `Pipeline` in scikit-learn's interface, with the options of a fit as parameters.

    `takes_arrays` says whether the estimator takes pictures, videos and sounds, and `interpolates` whether it only
    predicts values of series.
    """

    takes_arrays: ClassVar[bool] = True
    interpolates: ClassVar[bool] = False

    def save(self, folder: str | Path, license: str = "unknown") -> None:
        """Write the fitted pipeline to a folder, which `load`, `rotarymae.load` and the command read.

        Parameters
        ----------
        folder : str or Path
            A new or empty folder, or a saved pipeline, which is replaced.
        license : str
            For the model card, as the Hugging Face Hub writes it: "mit", "cc-by-4.0".

        Raises
        ------
        InputError
            The folder holds something else; the models of a cross-validation; a licence of other characters than
            letters, digits, dots and hyphens.
        NotFittedError
            Before `fit`.
        OSError
            The files cannot be written.
        """
        self._fitted().save(folder, license=license)

    save_pretrained = save  # by the Hugging Face Hub's name

    @classmethod
    def load(cls, folder: str | Path, **parameters: Any) -> Self:
        """Load a fitted estimator, with the parameters that it was fitted with.

        Parameters
        ----------
        folder : str or Path
            A folder of `save` or `rotarymae fit`, the name of a model, or a repository of the Hugging Face Hub.
        **parameters : Any
            Parameters of the estimator to set to other values than in the fit. All matter to a later `fit`; only
            `predictor`, `precision`, `pool` and the names of columns change predictions. Only the value of
            `predictor` is checked here.

        Returns
        -------
        object
            The fitted estimator.

        Raises
        ------
        InputError
            No such folder or name; the pipeline does another job, has no preprocessor, or has not the `predictor` that
            is asked for.
        ModelDirectoryError
            A file is missing, unreadable or changed.
        MissingExtra
            A repository without the extra `hub`.
        TypeError
            A parameter that the estimator does not have.
        """
        pipeline = load(folder)
        if pipeline.preprocessor is None and not pipeline.untrained:
            raise InputError(
                f"the model in {folder} has no preprocessor, as it was not trained on a data set; load one that was."
            )
        if pipeline.preprocessor is not None and not cls.takes_arrays:
            pipeline.require_series()
        pipeline = cls._suited(pipeline, folder)
        known = cls().get_params(deep=False)
        columns = {name: value for name, value in pipeline.columns.items() if name in FRAME_COLUMNS}
        stored = {"random_state": pipeline.parameters.get("seed", 0)} | pipeline.parameters | columns
        fitted = {name: stored[name] for name in known if name in stored}  # as JSON, which has no tuples
        fitted = {name: tuple(value) if isinstance(value, list) else value for name, value in fitted.items()}
        estimator = cls(**{**fitted, **parameters})
        if pipeline.labels is not None and "predictor" in parameters:
            choice = pipeline.predictor.check(parameters["predictor"])
            pipeline = replace(pipeline, partners=replace(pipeline.predictor, choice=choice))
        estimator._keep(pipeline)
        return estimator

    from_pretrained = load  # by the Hugging Face Hub's name

    @classmethod
    def _suited(cls, pipeline: Pipeline, folder: str | Path) -> Pipeline:
        """Return the part of a loaded pipeline that the estimator uses; here, in the base class, the whole.

        Subclasses return the whole or its pre-trained part, or raise InputError for a pipeline that cannot do their
        job. `folder`, from which it was loaded, is for their messages.
        """
        return pipeline

    def _keep(self, pipeline: Pipeline) -> None:
        """Set `pipeline_`; classes that override it also set other fitted attributes, such as `classes_`."""
        self.pipeline_: Pipeline = pipeline

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags of the estimator: arrays of three dimensions and NaN are accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # NaN in an array is no observation
        tags.input_tags.three_d_array = True
        return tags

    def _config(self, **changes: Any) -> FitConfig:
        """Return the options of a fit: the estimator's parameters as a `FitConfig`, which checks them.

        Its seed is `random_state`; a RandomState gives a number drawn from it; None gives a new one at each call. Its
        `pretrained` is text or None: a Pipeline becomes a text that only says that there is one.

        Args:
            **changes: fields of the FitConfig that get other values than the parameters of these names.

        Raises:
            InputError: a value out of its range, or parameters that cannot work together.
        """
        state = self.random_state
        if state is None:
            seed = int(np.random.default_rng().integers(2**31))  # not from numpy's global state, which is the caller's
        else:
            seed = int(state.randint(2**31)) if isinstance(state, np.random.RandomState) else state
        RANGES["seed"].check("random_state", seed)
        given = {name: value for name, value in self.get_params(deep=False).items() if name in CONFIG_FIELDS}
        if given["pretrained"] is not None:
            given["pretrained"] = str(given["pretrained"])  # which `open_start` looks at
        return FitConfig(**{**given, "seed": seed, **changes})

    def _train(self, X: Any, y: Any, task: str | None, config: FitConfig) -> None:
        """Train a pipeline and keep it as `pipeline_`; also set `history_`, what was logged in each training.

        Args:
            X: the data, in any form that `fit` accepts.
            y: labels, in any form that `fit` accepts; not read without a task.
            task: "classification", "regression" or "survival"; None pre-trains only.
            config: the parameters, as options of a fit. For an embedder without `pretrained`, the value "auto" of
                `neighbours` is replaced by "off".

        Raises:
            InputError: data, labels or options that cannot be used; before any training.
            ModelDirectoryError: the pipeline to start from is damaged.
            TypeError: a sparse matrix, or cells that are neither numbers nor text.

        Warns:
            InputWarning: with a task, series without a label, and static columns of a data set that the parameter
                `static` does not name.
        """
        start = None if self.pretrained is None else open_start(self.pretrained)
        dataset = self._dataset(X, start, fits=task or "unsupervised")
        embeds = task is None and not self.interpolates
        if embeds and config.pretrained is None and config.neighbours == "auto":
            config = replace(config, neighbours="off")  # lines between values help to interpolate, not to embed
        targets = y
        if task is not None:
            targets = self._labels_of(dataset, X, y)
            if unused := sorted(set(dataset.static) - set(config.static)):
                text = f"the static columns {listed(unused)} are not used; name those to read by static=."
                warnings.warn(text, InputWarning, stacklevel=4)
        result = train(
            dataset,
            targets,
            config,
            start=start,
            task=task or "auto",
            columns=self._columns_of(X, start),
            reporter=_Reporter(quiet=not self.verbose),
        )
        assert result.split is not None
        lacking = len(result.split.unlabelled)
        if task is not None and lacking:
            use = "they are pre-trained on, and not fine-tuned on" if result.pretrained_on else "they are not used"
            text = f"{lacking:,} of {len(dataset):,} {dataset.noun} have no label: {use}."
            warnings.warn(text, InputWarning, stacklevel=4)
        self.history_ = result.history
        self._keep(replace(result.pipeline, parameters=self._as_json(config)))

    def _labels_of(self, dataset: Any, X: Any, y: Any) -> Any:
        """Return labels, [S] or [S, outputs], in the order of the series.

        An array in this order is returned unchanged. If labels are given by id, a series without a label gets None.
        `RoMAESurvival` overrides this for events and durations.

        Args:
            dataset: the S series, which were made from `X`.
            X: the data as the caller gave them; a data frame may have the column of labels.
            y: labels in any form that `fit` accepts: an array in the order of the series; a dictionary, pandas Series
                or pandas data frame by id; or the name of a column of `X`.

        Raises:
            InputError: labels by id that match no series, or two for one series; a label that is a static column, too.
        """
        return labels_of(dataset, X, y, self.id, unlabelled="none")

    def _as_json(self, config: FitConfig) -> dict[str, Any]:
        """Return the estimator's parameters, {name: value}, as JSON can hold them, to be saved with the pipeline.

        A Pipeline as `pretrained` becomes None, but a path or name stays. A RandomState becomes the seed that was drawn
        from it, that of `config`.
        """
        given = self.get_params(deep=False)
        if not isinstance(given["pretrained"], str | Path | None):
            given["pretrained"] = None
        if isinstance(given["random_state"], np.random.RandomState):
            given["random_state"] = config.seed
        return plain_json(given)

    def _dataset(self, X: Any, like: Pipeline | None, fits: str = "") -> Any:
        """Turn X, in any accepted form, into a SeriesDataset or ArrayDataset.

        Args:
            X: the data as the caller gave them, in any form that `fit` accepts.
            like: a trained pipeline, in whose layout X is read; None in a training from scratch.
            fits: in a training its task, or "unsupervised" if it has no targets; "" in a prediction. It is read only if
                X is an array [cases, time]. A training sets `n_features_in_` to the number of columns, at least two,
                and with targets needs at least two rows. A prediction needs the same number of columns as the training.

        Raises:
            InputError: data in another form or layout; pictures, videos or sounds for an estimator of series alone.
            TypeError: a sparse matrix, or cells that are neither numbers nor text, as scikit-learn wants it.
        """
        known: Any = None if like is None else like.preprocessor
        patch_size, sample_rate = getattr(self, "patch_size", None), getattr(self, "sample_rate", None)
        if like is not None and known is not None and known.kind == "patches":
            if not self.takes_arrays:
                like.require_series()
            like.require_arrays().refuse_other(patch_size, sample_rate)
            return like.dataset(X)
        arrays = patch_size is not None or sample_rate is not None or isinstance(X, ArrayDataset)
        if self.takes_arrays and known is None and arrays:
            return as_arrays(X, patch_size, sample_rate)
        if type(X) is tuple and len(X) in (2, 3) and all(np.ndim(part) == 1 for part in X):
            raise InputError("X is a single (times, values); put it into a list: [(times, values)].")
        if is_flat(X):
            checks: dict[str, Any] = {"dtype": [np.float64, np.float32], "ensure_all_finite": "allow-nan"}
            if fits:
                checks |= {"ensure_min_features": 2, "ensure_min_samples": 1 if fits == "unsupervised" else 2}
            try:
                table: Any = unmasked(X) if isinstance(X, np.ndarray | list | tuple) else X
                flat = validate_data(self, table, reset=bool(fits), **checks)
            except ValueError as error:
                raise InputError(str(error)) from None
            X = np.asarray(flat)[:, None]
        columns = replace(self._columns(), positions=() if known is None else known.position_names)
        return as_dataset(X, known, columns, {} if like is None else like.columns)

    def _columns(self) -> TableSchema:
        """Return the parameters that name columns of a data frame, as a TableSchema."""
        names = (*FRAME_COLUMNS, "errors")
        return TableSchema(**{name: value for name, value in self.get_params(deep=False).items() if name in names})

    def _columns_of(self, X: Any, start: Pipeline | None) -> dict[str, Any] | None:
        """Return the layout of a training data frame, {field of TableSchema: value}, to be kept with the pipeline.

        It has the estimator's parameters that name columns, but not `errors`, which the preprocessor knows.

        Args:
            X: the data as the caller gave them; the result is None unless they are a data frame.
            start: the trained pipeline to start from, or None. If `rotarymae fit` trained it, the result is its layout,
                with the estimator's names of id, time and channel where the estimator has them.
        """
        if not is_frame(X):
            return None
        schema = self._columns()
        columns = {name: getattr(schema, name) for name in FRAME_COLUMNS}
        if start is not None and fitted_by_command(start.columns):  # it was read as the command reads
            return start.columns | {name: columns[name] for name in ("id", "time", "channel") if columns[name]}
        return columns

    def _read(self, X: Any) -> Any:
        """Return X as a data set in the layout of the training data; raise as `_fitted` and `_dataset` do."""
        return self._dataset(X, self._fitted())

    def _fitted(self) -> Pipeline:
        """Return a copy of `pipeline_` with the estimator's present `precision`; raise NotFittedError before `fit`."""
        check_is_fitted(self, "pipeline_")
        return replace(self.pipeline_, precision=self.precision)
