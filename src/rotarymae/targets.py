"""Targets, which a model learns to predict, as arrays after checks; what classes, numbers and times have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from torch import Tensor

from rotarymae.errors import InputError
from rotarymae.heads import Classifier, Regressor
from rotarymae.model import Encoder
from rotarymae.series import is_number, plain
from rotarymae.training.fit_config import ClassificationOptions, FitConfig

if TYPE_CHECKING:
    from rotarymae.system import Reporter

LARGEST_TARGET = float(np.finfo(np.float32).max)
MIN_SERIES_TO_JUDGE = 10  # with fewer series, the values of labels do not show what these are


class Target(ABC):
    """Base of `ClassLabels`, `NumberTargets` and `EventTimes`, which turn targets into what a model learns and back.

    One of them is fitted on the training targets and kept with the model. What most share is here; a kind overrides
    where it differs.

    Attributes:
        head: class of the model that predicts such targets.
        output: name of the output in exported programs.
    """

    head: ClassVar[type[Classifier | Regressor]] = Classifier
    output: ClassVar[str] = "probabilities"  # of exported programs

    @staticmethod
    def check_spans(targets: np.ndarray, spans: np.ndarray) -> None:
        """Warn if the lengths of series in time reveal the targets; this base method does nothing.

        `EventTimes` overrides it: if series are observed until the event, their length says when it happened.

        Args:
            targets: those of S series, [S, ...].
            spans: float [S], time from the first to the last observation of each series.
        """
        return  # classes and numbers have nothing to warn of

    @staticmethod
    def strata(targets: np.ndarray) -> np.ndarray | None:
        """Return the group of each series, [S], for a stratified split, from the targets [S, ...]; None for no groups.

        This base method returns None. `ClassLabels` returns the classes, and `EventTimes` whether the event was
        observed.
        """
        return None

    @staticmethod
    def default_members(decide: str, targets: np.ndarray) -> int:
        """Return how many networks to fine-tune and average if no option says it; this base method returns 1.

        `ClassLabels` returns more if a rare class is to be predicted. The base method ignores both arguments.

        Args:
            decide: the option that says how a class is decided from probabilities.
            targets: those of the training series, [S, ...].
        """
        return 1

    def decided(self, truth: np.ndarray, unseen: np.ndarray, config: FitConfig, reporter: Reporter) -> Self:
        """Choose how a class is decided from probabilities; return the labels with this choice.

        Only `ClassLabels` decides classes, and overrides this method. This base method ignores all arguments and
        returns `self`.

        Args:
            truth: encoded targets of the training series, followed by those of the n validation series.
            unseen: predictions for the n validation series, [n, classes], by methods that were not trained on them.
            config: the options of the fit.
            reporter: shows what was decided.
        """
        return self

    @classmethod
    def averaged(cls, each: Sequence[Self]) -> Self:
        """Return the labels of a pipeline that averages several models' outputs; this base method returns the first.

        `ClassLabels` overrides it: it also averages the weights by which classes are decided.

        Args:
            each: the labels of each model, at least one.
        """
        return each[0]

    @property
    @abstractmethod
    def outputs(self) -> int:
        """Number of outputs of the model for each series, such as one per class."""

    def model(self, encoder: Encoder, pool: str, static_features: int) -> Classifier | Regressor:
        """Build the network that predicts these targets: the encoder (not a copy) with a new head of `outputs` outputs.

        Args:
            encoder: reads the tokens.
            pool: how the head makes one vector of all tokens: "cls", "mean", "max" or "attention".
            static_features: numbers per series that the head also reads; 0 for none.
        """
        return self.head(encoder, self.outputs, pool, static_features=static_features)

    def for_partners(self, truth: np.ndarray) -> np.ndarray:
        """Return what methods other than the network, such as boosted trees, learn from these targets.

        This base method returns `truth` itself; `EventTimes` overrides it.

        Args:
            truth: the targets of S series, [S, ...], as the method `truth` returns them.
        """
        return truth

    @abstractmethod
    def change(self, whole: Tensor, without: Tensor) -> np.ndarray:
        """Return how much each of n observations matters to the prediction for a series, float [n].

        The prediction from all observations is compared with that without this one. Each subclass has its measure.

        Args:
            whole: the model's outputs [1, outputs] for the series.
            without: its outputs [n, outputs], row i for the series without observation i.
        """

    def decode(self, outputs: Tensor) -> Tensor:
        """Convert the model's outputs to predictions, float64 [S, outputs].

        This base method treats them as logits of classes, and returns probabilities. `NumberTargets` overrides it.
        """
        return outputs.double().softmax(-1)

    def convert(self, decoded: np.ndarray, source: Any) -> np.ndarray:
        """Convert predictions of a model with other labels to these labels, so that both predictions can be averaged.

        This base method returns `decoded` itself. `EventTimes` overrides it, as two models may have different intervals
        of time.

        Args:
            decoded: [S, K] for S series and the K outputs of the other model, as `source.decode` returned them.
            source: the labels of that model, of the same class as these.
        """
        return decoded


def refuse_class_options(config: FitConfig, task: str) -> None:
    """Raise InputError if an option that only classification has is not at its default.

    Args:
        config: the options of the fit.
        task: the other task, for the message, such as "a regression".
    """
    for name in config.changed(ClassificationOptions):
        text = f"{name}={getattr(config, name)!r} is set"
        raise InputError(f"{text}, which is an option of classification only; leave it out for {task}.")


def numbers_of(targets: Any, series: int) -> np.ndarray:
    """Convert targets that a user gave to float64 [series, outputs]; NaN and None become NaN.

    Args:
        targets: [series] or [series, outputs], numbers or texts that Python's float accepts.
        series: the number of series.

    Raises:
        InputError: another number of targets, or none; more than two axes; dates, text that is no number, infinity, or
            numbers that 32 bits cannot hold.
    """
    given = one_per_series(targets, series)
    if given.ndim > 2:
        raise InputError(f"the labels have the shape {given.shape}; give one row of numbers for each series.")
    if given.dtype.kind in "mM":  # whose numbers would be of the unit that they are stored in
        raise InputError(
            f"the labels have the type {given.dtype}; a regression needs numbers, such as days. Convert them."
        )
    try:
        numbers = given.astype(np.float64).reshape(series, -1)
    except (TypeError, ValueError):
        first = next((i for i, label in enumerate(given.ravel()) if not is_number(label)), 0)
        raise InputError(
            f"the label {plain(given.ravel()[first])!r} of series {first * series // max(given.size, 1)} (counted from "
            "0) is no number; a regression needs numbers. Correct it, or give NaN for none."
        ) from None
    if np.isinf(numbers).any():
        first = int(np.isinf(numbers).any(1).argmax())
        raise InputError(
            f"the label of series {first} (counted from 0) is infinite; give a finite number, or NaN for none."
        )
    large = np.abs(numbers) > LARGEST_TARGET
    if large.any():
        first = int(large.any(1).argmax())
        raise InputError(
            f"the label of series {first} (counted from 0) is {numbers[first][large[first]][0]:.6g}; numbers "
            f"beyond {LARGEST_TARGET:.2g} do not fit into 32 bits. Correct it, or choose a larger unit."
        )
    return numbers


def as_targets(targets: Any) -> np.ndarray:
    """Convert targets that a user gave to an array; arrays and columns of tables keep their type.

    A flat list with missing targets, or with both texts and others, becomes an array of objects; numpy would turn NaN
    and 1 among strings into the texts "nan" and "1". An array with masked entries becomes one of objects, too, with
    None for these. Raises InputError for lists of unequal length.
    """
    if isinstance(targets, np.ma.MaskedArray) and np.ma.is_masked(targets):
        return np.array(targets.tolist(), object)
    if hasattr(targets, "dtype"):
        return np.asarray(targets)
    try:
        objects = np.asarray(targets, object)
        unequal = objects.ndim == 1 and (are_mixed(objects) or not has_label(objects).all())
        return objects if unequal else np.asarray(targets)
    except ValueError:
        raise InputError(
            "the labels are lists of unequal lengths; give every series the same number of values, such as one each."
        ) from None


def has_label(targets: Any) -> np.ndarray:
    """Return a mask, bool [S], True for series that have a label: one that is not None, NaN or pandas' NA.

    Args:
        targets: a list or array of S labels. In a structured array the last field, the duration, decides. In an array
            of several outputs, [S, outputs], or of NumPy's dates, every series has a label.
    """
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
    """Convert an array of objects to one of numbers, strings or booleans, if all its labels are of one of these types.

    The array itself is returned if its dtype is not object or it is empty, if a label is missing, or if some labels are
    text and others not. Other objects, such as Python's dates, stay objects.
    """
    if labels.dtype != object or not labels.size or are_mixed(labels) or not has_label(labels).all():
        return labels
    return np.array(labels.tolist())


def are_mixed(labels: np.ndarray) -> bool:
    """Return whether an array of objects has both labels that are text and labels that are not; ignore missing ones.

    For an array of another dtype it is False.
    """
    return labels.dtype == object and len({isinstance(label, str) for label in labels.flat if _is_label(label)}) > 1


def one_per_series(targets: Any, series: int) -> np.ndarray:
    """Convert targets that a user gave to an array [series, ...], after checking that there is one for each series.

    An array of objects is converted by `narrowed`. Raises InputError for a single value, another
    number of targets than `series`, lists of unequal length, and if `series` is 0.
    """
    if not series:
        raise InputError("no series has a label; give labels for at least some series.")
    given = as_targets(targets)
    if given.ndim == 0 or len(given) != series:
        count = "one value" if given.ndim == 0 else f"{len(given)} labels"
        raise InputError(f"{count} for {series} series; give one label for each, in their order.")
    return narrowed(given)


def truth_at(labels: Any, targets: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Convert the targets of some of S series, and return them in an array for all S series, with 0 for the others.

    Args:
        labels: a fitted `ClassLabels`, `NumberTargets` or `EventTimes`, whose method `truth` converts targets.
        targets: [S, ...], the targets of all series as the caller gave them.
        rows: indices of the series whose targets are converted.

    Returns:
        Targets as `labels.truth` returns them: class numbers [S], numbers [S, outputs], or durations and events [S].

    Raises:
        InputError: a target that these labels do not know, such as another class.
    """
    known = labels.truth(targets[rows])
    truth = np.zeros((len(targets), *known.shape[1:]), known.dtype)
    truth[rows] = known
    return truth
