"""The supervised tasks: what their targets must be, how a model learns them, and how its outputs are read.

A task is an object in `TASKS`, with targets as numpy arrays with one entry or row per series; a new one is a class
here. Nothing else asks which task it is.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rotarymae.arrays import ArrayPreprocessor
from rotarymae.checkpoints import AnyPreprocessor
from rotarymae.errors import InputError, InputWarning, choose, listed
from rotarymae.heads import Classifier, Regressor
from rotarymae.losses import CLASSIFICATION_LOSSES, REGRESSION_LOSSES
from rotarymae.model import Encoder
from rotarymae.series import as_text, is_number, plain
from rotarymae.tasks.config import FitConfig
from rotarymae.training import Classification, Objective, Regression

MANY_WHOLE = 10  # different whole numbers may be amounts
LARGEST = float(np.finfo(np.float32).max)
LABELS = (str, bool, int, float, np.bool_, np.integer, np.floating)
MIXED = "some labels are strings and others numbers; give all of one kind."
FEWEST_DISTINCT = 10  # series; of fewer, many different whole numbers say nothing


class ClassificationTask:
    """Labels of any kind [S], at least two different ones.

    Attributes:
        name: as users give it.
        head: the class of models that solve it.
    """

    name = "classification"
    head = Classifier

    def check(self, targets: Any, series: int) -> np.ndarray:
        """The targets of so many series as an array, [S] or [S, outputs].

        Raises:
            InputError: another number of them than series, or targets that cannot be learnt.
        """
        labels = one_per_series(targets, series)
        if labels.ndim != 1:
            raise InputError(f"labels have the shape {labels.shape}; wanted one for each series, ({series},).")
        missing = [i for i, label in enumerate(labels) if label is None or label != label]
        if missing:
            raise InputError(f"the label of series {missing[0]} (counted from 0) is missing; {len(missing)} in all.")
        strange = [label for label in labels if not isinstance(label, LABELS)]
        if strange:
            kind = type(strange[0]).__name__
            raise InputError(f"labels are of the type {kind}; wanted strings, whole or other numbers, or booleans.")
        if _are_mixed(labels):
            raise InputError(MIXED)
        classes = np.unique(labels)
        if len(classes) < 2:
            raise InputError(
                f"every series has the label {plain(classes[0])!r}; a classifier needs at least 2 classes."
            )
        return labels

    def check_config(self, config: FitConfig) -> None:
        """Raises InputError for options that mean nothing to the task."""
        choose("loss", config.loss, tuple(CLASSIFICATION_LOSSES))

    def strata(self, targets: np.ndarray) -> np.ndarray | None:
        """What a split keeps in proportion: [S], or None."""
        return targets

    def fit(self, preprocessor: AnyPreprocessor, targets: np.ndarray) -> AnyPreprocessor:
        """The preprocessor with what encoding and decoding need, measured on the training targets."""
        return replace(preprocessor, classes=tuple(plain(name) for name in np.unique(targets)), target=None)

    def encode(self, preprocessor: AnyPreprocessor, targets: np.ndarray) -> np.ndarray:
        """Targets as the loss reads them. Raises InputError for targets that training did not have."""
        return class_index(targets, _classes(preprocessor))

    def truth(self, preprocessor: AnyPreprocessor, targets: np.ndarray) -> np.ndarray:
        """Targets as predictions are compared with them: class numbers [S], or values [S, outputs]."""
        return self.encode(preprocessor, targets)

    def model(self, encoder: Encoder, preprocessor: AnyPreprocessor, config: FitConfig) -> Classifier:
        """The encoder with a new head."""
        classes = len(_classes(preprocessor))
        return Classifier(encoder, classes, pool_of(config, preprocessor), static_features=preprocessor.static_features)

    def objective(self, model: Classifier | Regressor, encoded: np.ndarray, config: FitConfig) -> Objective:
        """What fine-tuning minimises, given the encoded training targets."""
        assert isinstance(model, Classifier)
        weights = None
        if config.class_weights == "balanced":
            counts = np.bincount(encoded, minlength=model.classes).clip(1)  # warm_start may lack a class
            weights = torch.tensor(len(encoded) / (model.classes * counts), dtype=torch.float32)
        return Classification(model, config.label_smoothing, weights, config.loss)

    def decode(self, preprocessor: AnyPreprocessor, outputs: Tensor) -> np.ndarray:
        """Predictions [S, K], float64, from the model's outputs [S, K]: probabilities, or values in their own units."""
        return outputs.double().softmax(-1).numpy()

    def columns(self, preprocessor: AnyPreprocessor, predicted: np.ndarray) -> dict[str, list[Any]]:
        """The columns of an output table, by name, from `decode`'s predictions."""
        classes = _classes(preprocessor)
        best: dict[str, list[Any]] = {"predicted": [classes[i] for i in predicted.argmax(1)]}
        return best | {f"probability_{name}": predicted[:, i].tolist() for i, name in enumerate(classes)}


class RegressionTask:
    """Numbers [S] or [S, outputs]; NaN where one is missing. Each output is standardised by itself.

    Its methods are as those of `ClassificationTask`.
    """

    name = "regression"
    head = Regressor

    def check(self, targets: Any, series: int) -> np.ndarray:
        numbers = self._numbers(targets, series)
        empty = np.atleast_1d(np.isnan(numbers).all(0))
        if empty.any():
            which = "label" if len(empty) == 1 else f"label of output {int(empty.argmax())} (counted from 0)"
            raise InputError(f"every {which} is missing (NaN); a regression needs numbers.")
        return numbers

    def _numbers(self, targets: Any, series: int) -> np.ndarray:
        given = one_per_series(targets, series)
        if given.dtype.kind in "mM":  # whose numbers would be of the unit that they are stored in
            raise InputError(f"the labels have the type {given.dtype}; a regression needs numbers, such as days.")
        try:
            numbers = given.astype(np.float64).reshape(series, -1)
        except (TypeError, ValueError):
            strange = next((label for label in given.ravel() if not is_number(label)), given.ravel()[0])
            raise InputError(f"the label {plain(strange)!r} is no number; a regression needs numbers.") from None
        if np.isinf(numbers).any():
            first = int(np.isinf(numbers).any(1).argmax())
            raise InputError(f"the label of series {first} (counted from 0) is infinite.")
        large = np.abs(numbers) > LARGEST
        if large.any():
            first = int(large.any(1).argmax())
            raise InputError(
                f"the label of series {first} (counted from 0) is {numbers[first][large[first]][0]:.6g}; numbers "
                f"beyond {LARGEST:.2g} do not fit into 32 bits. Correct it, or choose a larger unit."
            )
        return numbers

    def check_config(self, config: FitConfig) -> None:
        for name, unused in (("label_smoothing", 0.0), ("class_weights", "none")):
            if getattr(config, name) != unused:
                raise InputError(f"{name}={getattr(config, name)!r} concerns classes; leave it out of a regression.")
        choose("loss", config.loss, tuple(REGRESSION_LOSSES))

    def strata(self, targets: np.ndarray) -> np.ndarray | None:
        return None

    def fit(self, preprocessor: AnyPreprocessor, targets: np.ndarray) -> AnyPreprocessor:
        mean, std = np.nanmean(targets, axis=0), np.nanstd(targets, axis=0)
        # The spread of rounding errors is no spread: dividing by it would turn a constant target into noise.
        constant = std <= 1e-12 * np.abs(mean)
        if constant.any() and len(targets) > 1:
            text = f"every training label is {mean[constant][0]:.10g}; a regression has nothing to learn from them."
            warnings.warn(text, InputWarning, stacklevel=3)
        std = np.where(constant, 1.0, std)
        target = tuple((float(m), float(s)) for m, s in zip(mean, std, strict=True))
        return replace(preprocessor, target=target, classes=None)

    def encode(self, preprocessor: AnyPreprocessor, targets: np.ndarray) -> np.ndarray:
        numbers, (mean, std) = self._numbers(targets, len(targets)), _target(preprocessor)
        if numbers.shape[1] != len(mean):
            raise InputError(f"there are {numbers.shape[1]} targets per series; training had {len(mean)}.")
        return ((numbers - mean) / std).astype(np.float32)

    def truth(self, preprocessor: AnyPreprocessor, targets: np.ndarray) -> np.ndarray:
        return self._numbers(targets, len(targets))

    def model(self, encoder: Encoder, preprocessor: AnyPreprocessor, config: FitConfig) -> Regressor:
        outputs = len(_target(preprocessor)[0])
        return Regressor(encoder, outputs, pool_of(config, preprocessor), static_features=preprocessor.static_features)

    def objective(self, model: Classifier | Regressor, encoded: np.ndarray, config: FitConfig) -> Objective:
        assert isinstance(model, Regressor)
        return Regression(model, config.loss)

    def decode(self, preprocessor: AnyPreprocessor, outputs: Tensor) -> np.ndarray:
        mean, std = _target(preprocessor)
        return outputs.double().numpy() * std + mean

    def columns(self, preprocessor: AnyPreprocessor, predicted: np.ndarray) -> dict[str, list[Any]]:
        outputs = predicted.shape[1]
        names = ["predicted"] if outputs == 1 else [f"predicted_{i}" for i in range(outputs)]
        return {name: predicted[:, i].tolist() for i, name in enumerate(names)}


Task = ClassificationTask | RegressionTask
TASKS: dict[str, Task] = {task.name: task for task in (ClassificationTask(), RegressionTask())}


def pool_of(config: FitConfig, preprocessor: AnyPreprocessor) -> str:
    """What the head reads; a mean, or attention, which starts as one, loses a bark among seconds of silence."""
    if config.pool != "auto":
        return config.pool
    return (
        "max" if isinstance(preprocessor, ArrayPreprocessor) and preprocessor.sample_rate is not None else "attention"
    )


def find_task(name: str) -> Task:
    """The task of this name. Raises InputError for an unknown one."""
    choose("task", name, tuple(TASKS))
    return TASKS[name]


def task_of(model: Any) -> Task | None:
    """The task that a model's head solves; None of a model without a head."""
    return next((task for task in TASKS.values() if type(model) is task.head), None)


def choose_task(targets: Any, name: str = "auto") -> Task:
    """The task of this name; "auto" decides by the targets: numbers of which one is not whole are a regression's.

    Raises:
        InputError: an unknown name; texts and numbers in one, which no table can hold; whole numbers that may be
            classes or measurements; nearly as many texts as series.
    """
    choose("task", name, ("auto", *TASKS))
    numbers = np.asarray(targets)
    if _are_mixed(numbers):
        raise InputError(MIXED)
    if name != "auto":
        return TASKS[name]
    if numbers.dtype.kind == "f" and bool((numbers != np.round(numbers)).any()):
        return TASKS["regression"]
    different = len(np.unique(numbers))
    if numbers.dtype.kind in "if" and MANY_WHOLE <= different <= len(numbers) / 2:
        warnings.warn(
            f"the labels are {different} different whole numbers, which are taken as classes; if they are amounts, say "
            "task='regression' (--task regression).",
            InputWarning,
            stacklevel=2,
        )
    many = len(numbers) >= FEWEST_DISTINCT and different > len(numbers) / 2
    if numbers.dtype.kind in "if" and many:
        raise InputError(
            f"the labels are {different} different whole numbers for {len(numbers)} series; say whether they are "
            "classes or measurements, by task='classification' or 'regression' (--task)."
        )
    if many:
        raise InputError(
            f"the labels are {different} different texts ({listed(numbers[:2])}) for {len(numbers)} series; numbers "
            "need a decimal point. If they are classes, say task='classification' (--task)."
        )
    return TASKS["classification"]


def has_label(targets: Any) -> np.ndarray:
    """Which series have a label, bool [S]: not None and not NaN. Rows of several targets count as labels."""
    given = np.asarray(targets, None if hasattr(targets, "dtype") else object)  # in a list of strings NaN stays NaN
    if given.ndim != 1 or given.dtype.kind not in "fO":
        return np.ones(len(given) if given.ndim else 1, bool)
    return np.array([_is_label(label) for label in given.tolist()], bool)


def _is_label(label: Any) -> bool:
    try:
        return label is not None and bool(label == label)
    except TypeError:  # pandas' NA is neither equal to itself nor not
        return False


def narrowed(labels: np.ndarray) -> np.ndarray:
    """Labels [S] among which None stood as numbers or strings again, now that it is gone; a mixture as it is."""
    return np.array(labels.tolist()) if labels.dtype == object and len(labels) and not _are_mixed(labels) else labels


def _are_mixed(labels: np.ndarray) -> bool:
    """Whether some labels are texts and others are not."""
    return labels.dtype == object and len({isinstance(label, str) for label in labels.flat if _is_label(label)}) > 1


def class_index(labels: np.ndarray, classes: Sequence[Any] | np.ndarray) -> np.ndarray:
    """Numbers [S] of labels among the classes. Raises InputError naming a label that is no class."""
    numbers = {as_text(name): i for i, name in enumerate(classes)}  # whether 1 is a number depends on the other labels
    texts = [as_text(label) for label in labels]
    unknown = sorted(set(texts) - set(numbers))
    if unknown:
        raise InputError(f"labels {', '.join(unknown[:5])} are none of the model's classes {', '.join(numbers)}.")
    return np.array([numbers[text] for text in texts], np.int64)


def one_per_series(targets: Any, series: int) -> np.ndarray:
    """Targets as an array. Raises InputError for another number of them than series."""
    given = np.asarray(targets)
    if given.ndim == 0 or len(given) != series:
        came = "one value" if given.ndim == 0 else f"{len(given)} labels"
        raise InputError(f"{came} for {series} series; give one label for each, in their order.")
    return given


def _classes(preprocessor: AnyPreprocessor) -> tuple[Any, ...]:
    if preprocessor.classes is None:
        raise InputError("the model's preprocessor has no classes; it was not made by a classification.")
    return preprocessor.classes


def _target(preprocessor: AnyPreprocessor) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation [outputs] of the training targets."""
    if preprocessor.target is None:
        raise InputError("the model's preprocessor has no scale of targets; it was not made by a regression.")
    mean, std = np.array(preprocessor.target, np.float64).T
    return mean, std
