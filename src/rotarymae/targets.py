"""Targets of any kind as arrays, after checks, and what the kinds (`labels`, `survival`) have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from torch import Tensor

from rotarymae.errors import InputError
from rotarymae.heads import Classifier, Regressor
from rotarymae.model import Encoder
from rotarymae.series import is_number, plain

if TYPE_CHECKING:
    from rotarymae.training.fit_config import FitConfig

LARGEST_TARGET = float(np.finfo(np.float32).max)
MIN_SERIES_TO_JUDGE = 10  # with fewer series, the values of labels do not show what these are


class Target:
    """Base of the kinds of targets: what most of them have in common."""

    head: ClassVar[type[Classifier | Regressor]] = Classifier
    output: ClassVar[str] = "probabilities"  # of exported programs

    @staticmethod
    def check_spans(targets: np.ndarray, spans: np.ndarray) -> None:
        """Warn where the spans of time [S] over which series were observed reveal their targets."""

    @staticmethod
    def strata(targets: np.ndarray) -> np.ndarray | None:
        """Return the group of each series [S], which a split keeps in proportion; None without groups."""
        return None

    @staticmethod
    def default_members(decide: str, targets: np.ndarray) -> int:
        """Return the number of networks to fine-tune and average, where time allows."""
        return 1

    @classmethod
    def averaged(cls, each: Sequence[Self]) -> Self:
        """Return the labels of the average of several models."""
        return each[0]

    @property
    def outputs(self) -> int:
        """The number of outputs of the model."""
        raise NotImplementedError

    def model(self, encoder: Encoder, pool: str, static_features: int) -> Classifier | Regressor:
        """Return the encoder with a new head."""
        return self.head(encoder, self.outputs, pool, static_features=static_features)

    def for_partners(self, truth: np.ndarray) -> np.ndarray:
        """Return the truth as `Partner.fit` takes it."""
        return truth

    def decode(self, outputs: Tensor) -> Tensor:
        """Return float64 probabilities [S, outputs] from the model's outputs."""
        return outputs.double().softmax(-1)

    def convert(self, decoded: np.ndarray, source: Any) -> np.ndarray:
        """Return decoded outputs of `source`, labels of the same kind, in the form of these."""
        return decoded


def refuse_class_options(config: FitConfig, task: str) -> None:
    """Raise InputError for options that only classification has."""
    defaults = {"label_smoothing": 0.0, "class_weights": "none", "decide": "auto", "costs": ()}
    for name, unused in defaults.items():
        if getattr(config, name) != unused:
            raise InputError(f"{name}={getattr(config, name)!r} concerns classes; leave it out of {task}.")


def numbers_of(targets: Any, series: int) -> np.ndarray:
    """Return targets as float64 [series, outputs]. Raises InputError for dates, text, infinity or one value only."""
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
        raise InputError(f"the label of series {first} (counted from 0) is infinite; give a finite number, or none.")
    large = np.abs(numbers) > LARGEST_TARGET
    if large.any():
        first = int(large.any(1).argmax())
        raise InputError(
            f"the label of series {first} (counted from 0) is {numbers[first][large[first]][0]:.6g}; numbers "
            f"beyond {LARGEST_TARGET:.2g} do not fit into 32 bits. Correct it, or choose a larger unit."
        )
    return numbers


def as_targets(targets: Any) -> np.ndarray:
    """Return targets as an array: of objects where some are missing, as NaN among strings would become "nan"."""
    if hasattr(targets, "dtype"):
        return np.asarray(targets)
    objects = np.asarray(targets, object)
    return objects if objects.ndim == 1 and not has_label(objects).all() else np.asarray(targets)


def has_label(targets: Any) -> np.ndarray:
    """Return a mask [S], True where a label is neither None nor NaN; rows of several outputs count as labels."""
    given = np.asarray(targets, None if hasattr(targets, "dtype") else object)  # in a list of strings NaN stays NaN
    if given.dtype.names is not None:
        return has_label(given[given.dtype.names[-1]])
    if given.ndim != 1 or given.dtype.kind not in "fO":
        return np.ones(len(given) if given.ndim else 1, bool)
    return np.array([_is_label(label) for label in given.tolist()], bool)


def _is_label(label: Any) -> bool:
    """Return whether a single label is present: not None, not NaN, not pandas' NA."""
    try:
        return label is not None and bool(label == label)
    except TypeError:  # pandas' NA is neither equal to itself nor not
        return False


def narrowed(labels: np.ndarray) -> np.ndarray:
    """Return an object array without None as numbers or strings; mixed types stay objects."""
    return np.array(labels.tolist()) if labels.dtype == object and len(labels) and not are_mixed(labels) else labels


def are_mixed(labels: np.ndarray) -> bool:
    """Return whether some labels are text and others are not."""
    return labels.dtype == object and len({isinstance(label, str) for label in labels.flat if _is_label(label)}) > 1


def one_per_series(targets: Any, series: int) -> np.ndarray:
    """Return targets as an array; raise InputError where their number is not that of the series."""
    given = np.asarray(targets)
    if given.ndim == 0 or len(given) != series:
        count = "one value" if given.ndim == 0 else f"{len(given)} labels"
        raise InputError(f"{count} for {series} series; give one label for each, in their order.")
    return given


def truth_at(labels: Any, targets: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the true values of the series at `rows`, in an array for all series; it is 0 elsewhere."""
    known = labels.truth(narrowed(targets[rows]))
    truth = np.zeros((len(targets), *known.shape[1:]), known.dtype)
    truth[rows] = known
    return truth
