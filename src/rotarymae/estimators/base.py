"""What the estimators share: parameters, the forms of series, the split, pre-training, saving and loading."""

from __future__ import annotations

import dataclasses
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from rotarymae import tasks
from rotarymae.arrays import ArrayDataset, ArrayPreprocessor, as_arrays
from rotarymae.checkpoints import AnyPreprocessor, ModelDirectory, open_model, save
from rotarymae.errors import InputError, InputWarning, listed
from rotarymae.model import MaskedAutoencoder
from rotarymae.series import (
    FrameColumns,
    Preprocessor,
    SeriesDataset,
    as_dataset,
    fit_static,
    is_frame,
    is_of_the_command,
    labels_of,
)
from rotarymae.system import Reporter, unmasked

FEWEST = 10  # series; of fewer none are kept for validation
COLUMNS = tuple(field.name for field in dataclasses.fields(FrameColumns))  # parameters that name a data frame's
LISTS = ("values", "static")


# No generated repr and no generated comparison, here and below: scikit-learn has its own.
@dataclass(kw_only=True, repr=False, eq=False)
class Estimator(tasks.TrainingOptions, tasks.MaskingOptions, tasks.ScalingOptions, tasks.ModelOptions, BaseEstimator):
    """What all four share: the parameters, reading series, splitting, pre-training, saving and loading."""

    # Of a run folder, the model that `load` takes; and the kinds of model that do the job.
    _stage: ClassVar[str] = "pretrained"
    _kinds: ClassVar[tuple[type, ...]] = (MaskedAutoencoder,)
    _interpolates: ClassVar[bool] = False  # and does nothing else

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
        if not issubclass(cls, TakesArrays):
            preprocessor = directory.of_series()
        columns, errors = {}, ()
        if not isinstance(preprocessor, ArrayPreprocessor):
            columns, errors = preprocessor.columns, preprocessor.errors
        layout = {name: columns[name] for name in COLUMNS if name in columns and name in own}
        layout |= {name: tuple(layout[name]) for name in LISTS if name in layout}
        layout |= {"errors": errors} if layout and errors else {}
        estimator = cls(**{**layout, **parameters})
        estimator._keep(directory.model, preprocessor)
        return estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # NaN in an array is no observation
        tags.input_tags.three_d_array = True
        return tags

    def _config(self, **changes: Any) -> tasks.FitConfig:
        """The parameters with the changes, checked."""
        state = self.random_state
        if state is None:
            seed = int(np.random.default_rng().integers(2**31))  # not from numpy's global state, which is the caller's
        else:
            seed = int(state.randint(2**31)) if isinstance(state, np.random.RandomState) else state
            seed = seed.item() if isinstance(seed, np.integer) else seed
        names = {field.name for field in dataclasses.fields(tasks.FitConfig)}
        own = {name: value for name, value in self.get_params(deep=False).items() if name in names}
        own |= {name: _tuple(own[name]) for name in ("static", "errors") if name in own}
        # A search over np.array([5, 10]) gives numpy's numbers.
        own = {name: value.item() if isinstance(value, np.generic) else value for name, value in own.items()}
        if self.pretrained is not None and not isinstance(self.pretrained, str):
            own["pretrained"] = f"a {type(self.pretrained).__name__}"  # which `open_pretrained` looks at
        return tasks.FitConfig(**{**own, "seed": seed, **changes})

    def _pretrain(self, series: Any, config: tasks.FitConfig, task: str | None, targets: Any) -> Parts:
        """Sets pretrained_ and history_; returns the parts, the targets' among them, that fine-tuning takes."""
        self.history_: dict[str, list[dict[str, Any]]] = {}
        going_on = self._goes_on()
        opened = None if self.pretrained is None else tasks.open_pretrained(self.pretrained)
        opened = self._directory if going_on else opened
        like = None if opened is None else opened.preprocessor
        dataset = self._dataset(series, like, fits=task or "unsupervised")
        if self._interpolates and not going_on:
            config = tasks.to_interpolate(config, dataset)
        everyone, strata = np.arange(len(dataset)), None
        labelled = everyone
        if task is not None:
            kind = tasks.find_task(task)
            kind.check_config(config)
            if isinstance(dataset, SeriesDataset):
                targets = labels_of(dataset, series, targets, self.id, unlabelled="none")
            there = tasks.has_label(targets)
            if len(there) == len(dataset) and not there.all():
                labelled, targets = np.flatnonzero(there), tasks.narrowed(np.asarray(targets, object)[there])
                if not len(labelled):
                    raise InputError("no series has a label; give the labels of some.")
            targets = kind.check(targets, len(labelled))
            strata = kind.strata(targets)
            if len(labelled) < len(dataset):
                use = "they are not used"
                if config.pretrains and not going_on:
                    use = "they are pre-trained on, and not fine-tuned on"
                lacking = f"{len(dataset) - len(labelled):,} of {len(dataset):,} {dataset.noun} have no label"
                warnings.warn(f"{lacking}: {use}.", InputWarning, stacklevel=4)
        rows, held = np.arange(len(labelled)), np.arange(0)
        if config.validation_fraction > 0 and len(labelled) >= FEWEST:
            rows, held = tasks.split_off(rows, strata, config.validation_fraction, config.seed)
        if task is not None and targets is not None:
            tasks.find_task(task).check(targets[rows], len(rows))
        parts = Parts(dataset if labelled is everyone else dataset.select(labelled), rows, held, targets)
        if task is not None and isinstance(dataset, SeriesDataset):
            if not going_on:  # a model that goes on keeps its columns
                fit_static(dataset.select(labelled[rows]), config.static)
            if unused := sorted(set(dataset.static) - set(config.static)):
                text = f"the static columns {listed(unused)} are not used; name those to read by static=."
                warnings.warn(text, InputWarning, stacklevel=4)
        if going_on and task is not None:
            return parts
        train, validation = dataset.select(np.setdiff1d(everyone, labelled[held])), parts.validation
        if going_on and self.pretrained is None:
            known = self.preprocessor_
            if self._interpolates and config.neighbours == "auto":
                config = dataclasses.replace(config, neighbours="on" if self.model_.config.neighbours else "off")
            if self.model_.config != config.model_config(known.axes, known.features, known.input_features):
                raise InputError("the sizes of the model have changed; warm_start goes on from a model of the same.")
        if config.pretrains:
            how = {"preprocessor": tasks.prepare(train, config, opened), "start": opened, "validation": validation}
            # Where all have labels, the least number of steps is fine-tuning's: as accurate in half the time.
            all_labelled = task is not None and labelled is everyone
            stage = dataclasses.replace(config, min_steps=0) if all_labelled else config
            with Reporter(quiet=not self.verbose).bar("pre-training") as on_step:
                trained = tasks.pretrain(train, stage, **how, on_step=on_step)
            opened = trained.directory
            self.history_["pretrain"] = trained.result.history
        elif opened is not None and not going_on:
            opened = replace(opened, preprocessor=tasks.prepare(train, config, opened))
        assert opened is not None
        if is_frame(series):
            columns = dataclasses.asdict(self._columns())
            columns["values"] = columns["values"][: len(columns["values"]) - len(config.errors)]
            if isinstance(like, Preprocessor) and is_of_the_command(like):  # it was read as the command reads
                columns = like.columns | {name: columns[name] for name in ("id", "time", "channel") if columns[name]}
            opened = replace(opened, preprocessor=replace(opened.of_series(), columns=columns))
        self.pretrained_ = opened
        return parts

    def _goes_on(self) -> bool:
        return self.warm_start and hasattr(self, "model_")

    def _dataset(self, series: Any, like: AnyPreprocessor | None, fits: str = "") -> Any:
        """Series in one of the forms; `fits` is what is fitted on them, or nothing where something is predicted."""
        if isinstance(like, ArrayPreprocessor):
            raise InputError(f"the model was made from {like.noun}; {type(self).__name__} needs one made from series.")
        if type(series) is tuple and len(series) in (2, 3) and all(np.ndim(part) == 1 for part in series):
            raise InputError("a single (times, values) came; put the series into a list: [(times, values)].")
        if is_flat(series):
            options: dict[str, Any] = {"dtype": [np.float64, np.float32], "ensure_all_finite": "allow-nan"}
            if fits:
                options |= {"ensure_min_features": 2, "ensure_min_samples": 1 if fits == "unsupervised" else 2}
            try:
                table: Any = unmasked(series) if isinstance(series, np.ndarray) else series
                flat = validate_data(self, table, reset=bool(fits), **options)
            except ValueError as error:
                raise InputError(str(error)) from None
            series = np.asarray(flat)[:, None]
        return as_dataset(series, like, self._columns())

    def _columns(self) -> FrameColumns:
        """The parameters that name the columns of a data frame."""
        own = {name: value for name, value in self.get_params(deep=False).items() if name in COLUMNS}
        own |= {name: _tuple(own[name]) for name in LISTS if name in own}
        own["values"] = (*own["values"], *_tuple(self.errors))
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
        return ModelDirectory(self.model_, self.preprocessor_, self.precision)


def _tuple(names: Sequence[str] | str) -> tuple[str, ...]:
    """Names of columns; one string is one name."""
    return (names,) if isinstance(names, str) else tuple(names)


@dataclass(frozen=True)
class Parts:
    """All series that have a label, where labels are learnt; the indices of those that are trained on and of those that
    choose; and the checked targets of all."""

    dataset: tasks.AnyDataset
    rows: np.ndarray
    held: np.ndarray
    targets: np.ndarray | None

    @property
    def train(self) -> tasks.AnyDataset:
        return self.dataset.select(self.rows)

    @property
    def validation(self) -> tasks.AnyDataset | None:
        return self.dataset.select(self.held) if len(self.held) else None


@dataclass(kw_only=True, repr=False, eq=False)
class TakesArrays:
    """What the estimators share that take pictures, videos and sounds as well."""

    patch_size: int | tuple[int, ...] | None = None
    """Pictures, videos and sounds are cut into patches of so many cells along each axis; without it sounds are cut into
    patches of all bins of 8 frames, and other data are series."""
    sample_rate: int | None = None
    """The data are waveforms of so many samples per second, which become spectrograms."""

    def _dataset(self, series: Any, like: AnyPreprocessor | None, fits: str = "") -> Any:
        patch_size, sample_rate = self.patch_size, self.sample_rate
        if isinstance(like, ArrayPreprocessor):  # of a model, which says by itself what it reads
            like.refuse_other(patch_size, sample_rate)
            dataset = as_arrays(series, like.patch_size, like.sample_rate)
            like.check(dataset)
            return dataset
        if like is not None or (patch_size is None and sample_rate is None and not isinstance(series, ArrayDataset)):
            return super()._dataset(series, like, fits)  # type: ignore[misc]
        return as_arrays(series, patch_size, sample_rate)


def is_flat(series: Any) -> bool:
    """Whether this is scikit-learn's X: a table of numbers, or what shall be one; its errors are scikit-learn's."""
    if isinstance(series, SeriesDataset) or is_frame(series):
        return False
    if isinstance(series, list | tuple):
        rows = [row for row in series if isinstance(row, list | tuple | np.ndarray) and len(row)]
        return len(rows) == len(series) > 0 and all(np.isscalar(row[0]) for row in rows)
    return hasattr(series, "toarray") or (hasattr(series, "__array__") and np.asarray(series).ndim < 3)
