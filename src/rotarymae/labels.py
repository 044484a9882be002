"""Labels: what a fit accepts as targets, how a model learns them, and how its outputs become labels again.

`ClassLabels`, `NumberTargets` and `EventTimes` are fitted on training targets and kept by a `Pipeline`. A new kind of
target is a class here, and its entry in `LABELS`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from rotarymae.errors import InputError, InputWarning, choose, listed
from rotarymae.heads import Classifier, Regressor
from rotarymae.losses import CLASSIFICATION_LOSSES, REGRESSION_LOSSES
from rotarymae.model import Encoder
from rotarymae.partners.decide import check_decide, decide
from rotarymae.series import as_text, is_number, plain
from rotarymae.training import Classification, Objective, Regression, TimeToEvent

if TYPE_CHECKING:
    from rotarymae.training.fit_config import FitConfig

MAX_WHOLE_CLASSES = 10  # distinct whole numbers; with more of them the labels may be amounts
LARGEST_TARGET = float(np.finfo(np.float32).max)
LABEL_TYPES = (str, bool, int, float, np.bool_, np.integer, np.floating)
MIXED = "some labels are strings and others numbers; give all of one kind."
MIN_SERIES_TO_JUDGE = 10  # with fewer series, many distinct whole numbers do not show what the labels are
Label = str | int | float | bool
EVENT_TIME = np.dtype([("event", np.bool_), ("time", np.float64)])  # as scikit-survival's `Surv`; NaN is no label
STATUS_WORDS = {"0": False, "0.0": False, "false": False, "1": True, "1.0": True, "true": True}
MAX_INTERVALS, EVENTS_PER_INTERVAL = 20, 10  # of times to an event


@dataclass(frozen=True)
class ClassLabels:
    """The classes of a classifier, and how one is decided from probabilities.

    Attributes:
        classes: names in the order of the model's outputs.
        weights: factors for the probabilities before the largest is taken (`partners.decide`); empty for none.
    """

    task: ClassVar[str] = "classification"
    head: ClassVar[type[Classifier]] = Classifier
    classes: tuple[Label, ...]
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Check the classes and their weights. Raises InputError."""
        kinds = {str if isinstance(name, str) else float for name in self.classes}
        if len(self.classes) < 2 or len(set(self.classes)) < len(self.classes) or len(kinds) > 1:
            raise InputError(f"classes are {listed(self.classes)}; wanted at least two different ones of one kind.")
        numbers = [weight for weight in self.weights if type(weight) in (int, float) and 0 < weight < math.inf]
        if self.weights and len(numbers) != len(self.classes):
            raise InputError(f"the weights of classes are {self.weights}; wanted a positive number for each class.")

    @staticmethod
    def check(targets: Any, series: int) -> np.ndarray:
        """Return class labels as an array, one per series, after checking that they can be learnt.

        Raises:
            InputError: a number of labels other than `series`; fewer than two classes; labels that cannot be learnt.
        """
        labels = one_per_series(targets, series)
        if labels.ndim != 1:
            raise InputError(f"labels have the shape {labels.shape}; wanted one for each series, ({series},).")
        missing = [i for i, label in enumerate(labels) if label is None or label != label]
        if missing:
            raise InputError(f"the label of series {missing[0]} (counted from 0) is missing; {len(missing)} in all.")
        strange = [label for label in labels if not isinstance(label, LABEL_TYPES)]
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

    @staticmethod
    def check_config(config: FitConfig, targets: np.ndarray) -> None:
        """Raise InputError for options that do not fit these classes or that only a regression has."""
        choose("loss", config.loss, tuple(CLASSIFICATION_LOSSES))
        check_decide(config.decide, config.costs, len(np.unique(targets)))

    @staticmethod
    def strata(targets: np.ndarray) -> np.ndarray | None:
        """Return the classes [S], which a split keeps in proportion."""
        return targets

    @classmethod
    def fit(cls, targets: np.ndarray) -> Self:
        """Create from training labels, with the classes sorted."""
        return cls(tuple(plain(name) for name in np.unique(targets)))

    @property
    def outputs(self) -> int:
        return len(self.classes)

    def encode(self, targets: np.ndarray) -> np.ndarray:
        """Return class numbers [S]. Raises InputError for a label that is no class."""
        return class_index(targets, self.classes)

    truth = encode

    def model(self, encoder: Encoder, pool: str, static_features: int) -> Classifier:
        """Return the encoder with a new head."""
        return Classifier(encoder, self.outputs, pool, static_features=static_features)

    def objective(self, model: Classifier | Regressor, encoded: np.ndarray, config: FitConfig) -> Objective:
        """Return the loss of fine-tuning as a module: cross-entropy with the options of `config`.

        Args:
            encoded: class numbers of the training series, for class weights.
        """
        assert isinstance(model, Classifier)
        weights = None
        if config.class_weights == "balanced":
            counts = np.bincount(encoded, minlength=model.classes).clip(1)  # warm_start may lack a class
            weights = torch.tensor(len(encoded) / (model.classes * counts), dtype=torch.float32)
        return Classification(model, config.label_smoothing, weights, config.loss)

    def decode(self, outputs: Tensor) -> np.ndarray:
        """Return probabilities [S, classes], float64, from the model's outputs [S, classes]."""
        return outputs.double().softmax(-1).numpy()

    def decide(self, probabilities: np.ndarray) -> np.ndarray:
        """Return class numbers [S] with the largest probability, weighted if there are weights."""
        return decide(probabilities, self.weights)

    def predicted(self, probabilities: np.ndarray) -> np.ndarray:
        """Return the decided class [S] for probabilities [S, classes]."""
        return np.array(self.classes)[self.decide(probabilities)]

    def columns(self, probabilities: np.ndarray) -> dict[str, list[Any]]:
        """Return the columns of an output table: the class, and the probability of each class."""
        best: dict[str, list[Any]] = {"predicted": [self.classes[i] for i in self.decide(probabilities)]}
        return best | {f"probability_{name}": probabilities[:, i].tolist() for i, name in enumerate(self.classes)}


@dataclass(frozen=True)
class NumberTargets:
    """The scaling of a regressor's targets: each output is standardised by itself.

    Attributes:
        mean, std: of the training targets, one for each output.
    """

    task: ClassVar[str] = "regression"
    head: ClassVar[type[Regressor]] = Regressor
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.mean or len(self.mean) != len(self.std) or min(self.std) <= 0:
            raise InputError(f"targets have means {self.mean} and deviations {self.std}; wanted positive deviations.")

    @staticmethod
    def check(targets: Any, series: int) -> np.ndarray:
        """Return targets as numbers [series, outputs], after checking them; NaN marks a missing one.

        Raises:
            InputError: a number of targets other than `series`; targets that are not numbers.
        """
        numbers = _numbers(targets, series)
        empty = np.atleast_1d(np.isnan(numbers).all(0))
        if empty.any():
            which = "label" if len(empty) == 1 else f"label of output {int(empty.argmax())} (counted from 0)"
            raise InputError(f"every {which} is missing (NaN); a regression needs numbers.")
        return numbers

    @staticmethod
    def check_config(config: FitConfig, targets: np.ndarray) -> None:
        """Raise InputError for options that only classification has, such as class_weights."""
        _refuse_class_options(config, "a regression")
        choose("loss", config.loss, tuple(REGRESSION_LOSSES))

    @staticmethod
    def strata(targets: np.ndarray) -> np.ndarray | None:
        """Return None, as numbers have no proportions that a split could keep."""
        return None

    @classmethod
    def fit(cls, targets: np.ndarray) -> Self:
        """Create the scaling: mean and standard deviation of each output over the training targets [S, outputs]."""
        mean, std = np.nanmean(targets, axis=0), np.nanstd(targets, axis=0)
        # The spread of rounding errors is no spread: dividing by it would turn a constant target into noise.
        constant = std <= 1e-12 * np.abs(mean)
        if constant.any() and len(targets) > 1:
            text = f"every training label is {mean[constant][0]:.10g}; a regression has nothing to learn from them."
            warnings.warn(text, InputWarning, stacklevel=3)
        std = np.where(constant, 1.0, std)
        return cls(tuple(map(float, mean)), tuple(map(float, std)))

    @property
    def outputs(self) -> int:
        return len(self.mean)

    def encode(self, targets: np.ndarray) -> np.ndarray:
        """Return standardised targets [S, outputs]. Raises InputError for a number of outputs unlike training's."""
        numbers = _numbers(targets, len(targets))
        if numbers.shape[1] != self.outputs:
            raise InputError(f"there are {numbers.shape[1]} targets per series; training had {self.outputs}.")
        return ((numbers - np.array(self.mean)) / np.array(self.std)).astype(np.float32)

    def truth(self, targets: np.ndarray) -> np.ndarray:
        """Return the targets [S, outputs] in their own units, as predictions are compared with them."""
        return _numbers(targets, len(targets))

    def model(self, encoder: Encoder, pool: str, static_features: int) -> Regressor:
        """Return the encoder with a new head."""
        return Regressor(encoder, self.outputs, pool, static_features=static_features)

    def objective(self, model: Classifier | Regressor, encoded: np.ndarray, config: FitConfig) -> Objective:
        """Return the loss of fine-tuning as a module."""
        assert isinstance(model, Regressor)
        return Regression(model, config.loss)

    def decode(self, outputs: Tensor) -> np.ndarray:
        """Return values [S, outputs], float64, in their own units, from the model's outputs."""
        return outputs.double().numpy() * np.array(self.std) + np.array(self.mean)

    def predicted(self, values: np.ndarray) -> np.ndarray:
        """Return values [S, outputs]; [S] for a single output."""
        return values[:, 0] if self.outputs == 1 else values

    def columns(self, values: np.ndarray) -> dict[str, list[Any]]:
        """Return the columns of an output table: one for each output."""
        names = ["predicted"] if self.outputs == 1 else [f"predicted_{i}" for i in range(self.outputs)]
        return {name: values[:, i].tolist() for i, name in enumerate(names)}


@dataclass(frozen=True)
class EventTimes:
    """The intervals of time into which an event may fall, used as classes; the last class is "after all intervals".

    What is known about a series is a weight for each class in its likelihood: for an observed event 1 for its interval;
    for a censored series 1 for each later class, and for the interval of censoring the share that was left of it. This
    is the likelihood of a density that is constant in each interval, whose survival curve is linear between edges
    (Kvamme & Borgan 2021, doi:10.1007/s10985-021-09532-6).

    Attributes:
        edges: of the intervals, ascending from 0: quantiles of the observed training events.
    """

    task: ClassVar[str] = "survival"
    head: ClassVar[type[Classifier]] = Classifier
    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        edges = np.array(self.edges, np.float64)
        if len(edges) < 2 or edges[0] != 0 or not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
            raise InputError(f"the edges of intervals are {self.edges}; wanted at least two, ascending from 0.")

    @staticmethod
    def check(targets: Any, series: int) -> np.ndarray:
        """Return durations and events as a structured array `EVENT_TIME` [series], after checking them.

        Raises:
            InputError: a number of targets other than `series`; no structured array with the event first and the
                duration second; a negative or infinite duration; an event that is neither true nor false; no event at
                all.
        """
        checked = _event_times(targets, series)
        if not checked["event"].any():
            raise InputError("the event was seen in no series; without one there is no risk to learn.")
        if not (checked["time"][checked["event"]] > 0).any():
            raise InputError("every event is at the time 0; there is no time to an event to learn.")
        return checked

    @staticmethod
    def check_config(config: FitConfig, targets: np.ndarray) -> None:
        """Raise InputError for options that do not apply to times to an event."""
        _refuse_class_options(config, "a time to an event")
        choose("loss", config.loss, ("auto",))

    @staticmethod
    def strata(targets: np.ndarray) -> np.ndarray | None:
        """Return whether each series has the event, so that every part of a split gets its share of events."""
        return targets["event"]

    @classmethod
    def fit(cls, targets: np.ndarray) -> Self:
        """Create intervals with about equally many observed events in each: edges are quantiles of their times."""
        known = _event_times(targets, len(targets))
        times = known["time"][known["event"]]
        count = min(max(len(times) // EVENTS_PER_INTERVAL, 1), MAX_INTERVALS)
        edges = np.unique(np.quantile(times, np.arange(1, count + 1) / count))
        return cls((0.0, *edges[edges > 0].tolist()))

    @property
    def outputs(self) -> int:
        return len(self.edges)

    def encode(self, targets: np.ndarray) -> np.ndarray:
        """Return the weight of each class in the likelihood of each series [S, classes]."""
        known = _event_times(targets, len(targets))
        edges, time = np.array(self.edges), known["time"][:, None]
        left = np.clip((edges[1:] - time) / np.diff(edges), 0, 1)
        censored = np.concatenate([left, np.ones_like(time)], 1)
        number = np.maximum(np.searchsorted(edges, time, side="left") - 1, 0)
        observed = number == np.arange(len(edges))
        return np.where(known["event"][:, None], observed, censored).astype(np.float32)

    def truth(self, targets: np.ndarray) -> np.ndarray:
        """Return the durations and events [S], as predictions are compared with them."""
        return _event_times(targets, len(targets))

    def model(self, encoder: Encoder, pool: str, static_features: int) -> Classifier:
        """Return the encoder with a new head."""
        return Classifier(encoder, self.outputs, pool, static_features=static_features)

    def objective(self, model: Classifier | Regressor, encoded: np.ndarray, config: FitConfig) -> Objective:
        """Return the loss of fine-tuning as a module."""
        assert isinstance(model, Classifier)
        return TimeToEvent(model)

    def decode(self, outputs: Tensor) -> np.ndarray:
        """Return probabilities of the intervals [S, classes], float64, from the model's outputs."""
        return outputs.double().softmax(-1).numpy()

    def survival(self, probabilities: np.ndarray, times: Any) -> np.ndarray:
        """Return the probability [S, T] that the event comes after each time; constant after the last edge."""
        curve = np.concatenate([np.ones((len(probabilities), 1)), 1 - probabilities[:, :-1].cumsum(1)], 1)
        place = np.interp(np.asarray(times, np.float64), self.edges, np.arange(len(self.edges)))
        low = np.minimum(place.astype(np.int64), len(self.edges) - 2)
        return curve[:, low] + (place - low) * (curve[:, low + 1] - curve[:, low])

    def convert(self, probabilities: np.ndarray, other: EventTimes) -> np.ndarray:
        """Convert probabilities of other intervals to these, by the survival curve at the edges."""
        curve = other.survival(probabilities, self.edges)
        return np.concatenate([-np.diff(curve, axis=1), curve[:, -1:]], 1)

    @property
    def times(self) -> np.ndarray:
        """Return the three times by which a quarter, a half and three quarters of all events happened."""
        return np.unique([float(f"{time:.3g}") for time in np.quantile(self.edges, (0.25, 0.5, 0.75))])

    def predicted(self, probabilities: np.ndarray) -> np.ndarray:
        """Return the expected time [S], limited to the last edge (restricted mean survival time)."""
        edges = np.array(self.edges)
        return probabilities @ np.append((edges[1:] + edges[:-1]) / 2, edges[-1])

    def columns(self, probabilities: np.ndarray) -> dict[str, list[Any]]:
        """Return the columns of an output table: the expected time, and survival at three times."""
        survival = self.survival(probabilities, self.times).T.tolist()
        shown = {f"survival_{time:g}": column for time, column in zip(self.times, survival, strict=True)}
        return {"predicted": self.predicted(probabilities).tolist(), **shown}


def event_times(time: Any, event: Any, time_name: str = "time", event_name: str = "event") -> np.ndarray:
    """Combine durations and events into one structured array, `EVENT_TIME` [S].

    A series without a duration, or without a status, gets the time NaN.

    Args:
        time, event: durations, and whether each ended in the event.
        time_name, event_name: names of these columns, for messages.

    Raises:
        InputError: a duration that is negative, infinite or no number; a status other than 0, 1, true and false.
    """
    status, known = np.asarray(event), has_label(time) & has_label(event)
    out = np.zeros(len(status), EVENT_TIME)
    out["time"] = np.nan
    out["time"][known] = _numbers(narrowed(np.asarray(time)[known]), int(known.sum())).reshape(-1)
    negative = out["time"] < 0
    if negative.any():
        first = int(negative.argmax())
        raise InputError(
            f"{negative.sum():,} durations in {time_name!r} are negative, first {out['time'][first]:g} of series "
            f"{first} (counted from 0); a duration counts from the time at which the prediction is made."
        )
    if status.dtype == np.bool_:
        out["event"] = status
        return out
    words = [as_text(one).lower() for one in status[known]]
    strange = [word for word in words if word not in STATUS_WORDS]
    if strange:
        raise InputError(
            f"{event_name!r} holds {listed(dict.fromkeys(strange))}; wanted 1 or true where the event was seen, and 0 "
            "or false where the series was censored."
        )
    out["event"][known] = [STATUS_WORDS[word] for word in words]
    return out


def _event_times(targets: Any, series: int) -> np.ndarray:
    """Return targets as `EVENT_TIME` [series]. Raises InputError unless they are a structured array, event first."""
    given = one_per_series(targets, series)
    names = given.dtype.names or ()
    if len(names) != 2:
        raise InputError(
            "a time to an event needs for each series whether the event was seen, and the duration: a structured "
            "array with these two fields, as scikit-survival's Surv, or two columns (--duration days --event died)."
        )
    return event_times(given[names[1]], given[names[0]], names[1], names[0])


def _refuse_class_options(config: FitConfig, task: str) -> None:
    """Raise InputError for options that only classification has."""
    defaults = {"label_smoothing": 0.0, "class_weights": "none", "decide": "auto", "costs": ()}
    for name, unused in defaults.items():
        if getattr(config, name) != unused:
            raise InputError(
                f"{name}={getattr(config, name)!r} applies to classification only; leave it out of {task}."
            )


def _numbers(targets: Any, series: int) -> np.ndarray:
    """Return targets as float64 [series, outputs]. Raises InputError for dates, text, infinity or one value only."""
    given = one_per_series(targets, series)
    if given.dtype.kind in "mM":  # whose numbers would be of the unit that they are stored in
        raise InputError(f"the labels have the type {given.dtype}; a regression needs numbers, such as days.")
    try:
        numbers = given.astype(np.float64).reshape(series, -1)
    except (TypeError, ValueError):
        strange = next((label for label in given.ravel() if not is_number(label)), given.ravel()[0])
        raise InputError(f"the label {plain(strange)!r} is not a number; a regression needs numbers.") from None
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


Labels = ClassLabels | NumberTargets | EventTimes
LABELS: dict[str, type[Labels]] = {kind.task: kind for kind in (ClassLabels, NumberTargets, EventTimes)}


def truth_at(labels: Labels, targets: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the true values of the series at `rows`, in an array for all series that is 0 elsewhere.

    Args:
        targets: of all series, None or NaN where one is missing.
    """
    known = labels.truth(narrowed(targets[rows]))
    truth = np.zeros((len(targets), *known.shape[1:]), known.dtype)
    truth[rows] = known
    return truth


def learnt_by_partners(labels: Labels, truth: np.ndarray) -> np.ndarray:
    """Return the truth as `Partner.fit` takes it: for times to an event, the weights of their intervals."""
    return labels.encode(truth) if isinstance(labels, EventTimes) else truth


def choose_labels(targets: Any, name: str = "auto") -> type[Labels]:
    """Return the class that handles the targets of a task: ClassLabels, NumberTargets or EventTimes.

    "auto" means regression where some number is not whole, else classification. Durations with a status are times to an
    event, whatever the name.

    Raises:
        InputError: an unknown task; text mixed with numbers; whole numbers that may be classes or measurements; nearly
            as many different texts as series.
    """
    choose("task", name, ("auto", *LABELS))
    numbers = np.asarray(targets)
    if numbers.dtype.names is not None and name != "auto":
        choose("task", name, ("survival",))
    if numbers.dtype.names is not None:
        return EventTimes
    if _are_mixed(numbers):
        raise InputError(MIXED)
    if name != "auto":
        return LABELS[name]
    if numbers.dtype.kind == "f" and bool((numbers != np.round(numbers)).any()):
        return LABELS["regression"]
    different = len(np.unique(numbers))
    if numbers.dtype.kind in "if" and MAX_WHOLE_CLASSES <= different <= len(numbers) / 2:
        warnings.warn(
            f"the labels are {different} different whole numbers, which are taken as classes; if they are amounts, say "
            "task='regression' (--task regression).",
            InputWarning,
            stacklevel=2,
        )
    many = len(numbers) >= MIN_SERIES_TO_JUDGE and different > len(numbers) / 2
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
    return LABELS["classification"]


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
    return np.array(labels.tolist()) if labels.dtype == object and len(labels) and not _are_mixed(labels) else labels


def _are_mixed(labels: np.ndarray) -> bool:
    """Return whether some labels are text and others are not."""
    return labels.dtype == object and len({isinstance(label, str) for label in labels.flat if _is_label(label)}) > 1


def class_index(labels: np.ndarray, classes: Sequence[Any] | np.ndarray) -> np.ndarray:
    """Return the index [S] of each label in `classes`. Raises InputError naming a label that is no class."""
    numbers = {as_text(name): i for i, name in enumerate(classes)}  # whether 1 is a number depends on the other labels
    texts = [as_text(label) for label in labels]
    unknown = sorted(set(texts) - set(numbers))
    if unknown:
        raise InputError(
            f"labels {', '.join(unknown[:5])} are not among the model's classes, {', '.join(numbers)}; leave these "
            "series out."
        )
    return np.array([numbers[text] for text in texts], np.int64)


def one_per_series(targets: Any, series: int) -> np.ndarray:
    """Return targets as an array; raise InputError where their number is not that of the series."""
    given = np.asarray(targets)
    if given.ndim == 0 or len(given) != series:
        count = "one value" if given.ndim == 0 else f"{len(given)} labels"
        raise InputError(f"{count} for {series} series; give one label for each, in their order.")
    return given
