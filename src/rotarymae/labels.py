"""Labels: which targets a fit accepts, how a model learns them, and how its outputs become labels again.

`ClassLabels`, `NumberTargets` and `survival.EventTimes` are fitted on training targets and kept by a `Pipeline`. A new
kind of target is a class and its entry in `LABELS`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from rotarymae.errors import InputError, InputWarning, choose, listed
from rotarymae.heads import Classifier, Regressor
from rotarymae.losses import REGRESSION_LOSSES, classification, regression
from rotarymae.partners.decide import decide, decision_weights, resolve
from rotarymae.series import as_text, plain
from rotarymae.survival import EventTimes
from rotarymae.targets import (
    MIN_SERIES_TO_JUDGE,
    Target,
    are_mixed,
    has_label,
    numbers_of,
    one_per_series,
    refuse_class_options,
)
from rotarymae.training import Objective, Supervised

if TYPE_CHECKING:
    from rotarymae.system import Reporter
    from rotarymae.training.fit_config import FitConfig

MAX_WHOLE_CLASSES = 10  # distinct whole numbers; with more of them the labels may be amounts
LABEL_TYPES = (str, bool, int, float, np.bool_, np.integer, np.floating)
MIXED = "some labels are strings and others numbers; write all as strings, or all as numbers."
Label = str | int | float | bool
MEMBERS, FEW_OF_A_CLASS = 3, 200  # networks that are averaged where the rarer of two classes has fewer series


@dataclass(frozen=True)
class ClassLabels(Target):
    """The classes of a classifier, and how one is decided from probabilities.

    Attributes:
        classes: names in the order of the model's outputs.
        weights: a factor for the probability of each class; the class with the largest product is predicted. Empty if
            the most probable class is.
    """

    task: ClassVar[str] = "classification"
    classes: tuple[Label, ...]
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Raise InputError for fewer than two classes, equal ones, texts among numbers, or weights that are wrong.

        Weights are empty, or a positive number for each class.
        """
        kinds = {str if isinstance(name, str) else float for name in self.classes}
        if len(self.classes) < 2 or len(set(self.classes)) < len(self.classes) or len(kinds) > 1:
            raise InputError(
                f"classes are {listed(self.classes)}; give two or more different ones, all text or all numbers."
            )
        numbers = [weight for weight in self.weights if type(weight) in (int, float) and 0 < weight < math.inf]
        if self.weights and len(numbers) != len(self.classes):
            raise InputError(f"the weights of classes are {self.weights}; wanted a positive number for each class.")

    @staticmethod
    def check(targets: Any, series: int) -> np.ndarray:
        """Return class labels as an array of strings, numbers or booleans, [series], after checking them.

        Args:
            targets: labels, in the order of the series.
            series: number of series.

        Raises:
            InputError: another number of labels, or an axis more, as in [series, 1]; a missing label; labels of other
                types than strings, numbers and booleans; strings among numbers; a single class; no series.
        """
        labels = one_per_series(targets, series)
        if labels.ndim != 1:
            raise InputError(f"labels have the shape {labels.shape}; give one for each series, shape ({series},).")
        missing = np.flatnonzero(~has_label(labels))
        if len(missing):
            raise InputError(
                f"{len(missing)} labels are missing, first that of series {missing[0]} (counted from 0); add them, or "
                "leave these series out."
            )
        strange = [label for label in labels if not isinstance(label, LABEL_TYPES)]
        if strange:
            kind = type(strange[0]).__name__
            raise InputError(f"labels are of the type {kind}; convert them to strings, numbers or booleans.")
        if are_mixed(labels):
            raise InputError(MIXED)
        classes = np.unique(labels)
        if len(classes) < 2:
            raise InputError(
                f"every label is {plain(classes[0])!r}; a classifier needs 2 classes: add series of another class."
            )
        return labels

    @staticmethod
    def check_config(config: FitConfig, targets: np.ndarray) -> None:
        """Raise InputError for a `loss` that classification lacks, or `costs` that do not fit `decide` or the classes.

        With decide="cost" there must be a positive cost for each class, else no costs.

        Args:
            config: the options of the fit, of which these three are read.
            targets: labels [S] of all series.
        """
        choose("loss", config.loss, ("auto",))
        classes, costs = len(np.unique(targets)), config.costs
        if config.decide == "cost" and (len(costs) != classes or min(costs) <= 0):
            raise InputError(f"costs are {list(costs)}; wanted {classes} positive numbers, one for each class.")
        if config.decide != "cost" and costs:
            raise InputError(
                f"costs have no effect with decide={config.decide!r}; leave them out, or say decide='cost'."
            )

    @staticmethod
    def strata(targets: np.ndarray) -> np.ndarray | None:
        """Return the labels [S] as they are: the groups whose proportions a split keeps."""
        return targets

    @staticmethod
    def default_members(decide: str, targets: np.ndarray) -> int:
        """Return how many networks are fine-tuned and averaged by default: 3 if "f1" decides on a rare class, else 1.

        A class is rare if it has fewer than 200 series.

        Args:
            decide: the rule by which a class is decided from probabilities. "auto" counts as "f1" if there are two
                classes, one of which has less than a fifth of the series.
            targets: labels [S] of the training series.
        """
        counts = np.unique(targets, return_counts=True)[1]
        return MEMBERS if resolve(decide, counts) == "f1" and counts.min() < FEW_OF_A_CLASS else 1

    @classmethod
    def fit(cls, targets: np.ndarray) -> Self:
        """Create from training labels [S]: the classes are their different values, sorted; weights are empty."""
        return cls(tuple(plain(name) for name in np.unique(targets)))

    @property
    def outputs(self) -> int:
        """Number of outputs of the model: one for each class."""
        return len(self.classes)

    def encode(self, targets: np.ndarray) -> np.ndarray:
        """Return the class number of each label, int64 [S], an index into `classes`.

        1 and "1" are the same label. Raises InputError for a label that is no class.
        """
        numbers = {as_text(name): i for i, name in enumerate(self.classes)}  # 1 is a number or a text by other labels
        texts = {label: as_text(label) for label in set(targets.tolist())}
        unknown = sorted(set(texts.values()) - set(numbers))
        if unknown:
            raise InputError(
                f"the labels {listed(unknown)} are none of the model's classes {listed(numbers)}; correct them, or "
                "leave these series out."
            )
        return np.array([numbers[texts[label]] for label in targets.tolist()], np.int64)

    truth = encode

    def objective(self, model: Classifier | Regressor, encoded: np.ndarray, config: FitConfig) -> Objective:
        """Return the objective of fine-tuning: a module that holds the classifier and computes its cross-entropy.

        In evaluation mode it is computed at several temperatures, by which the logits are divided. The smallest mean
        over the data counts (see `Supervised`), because the logits are divided by a temperature after training.

        Args:
            model: the classifier to train.
            encoded: class numbers [S] of the training series. With `class_weights` "balanced" each class is weighted by
                the inverse of its number of series.
            config: its `class_weights` and `label_smoothing` are read.
        """
        weights = None
        if config.class_weights == "balanced":
            counts = np.bincount(encoded, minlength=self.outputs)
            weights = torch.tensor(len(encoded) / (self.outputs * counts), dtype=torch.float32)
        loss = partial(classification, label_smoothing=config.label_smoothing, class_weights=weights)
        return Supervised(model, loss, tempered=True)

    def decided(self, truth: np.ndarray, unseen: np.ndarray, config: FitConfig, reporter: Reporter) -> Self:
        """Return a copy with `weights`: the class with the largest product of probability and weight is predicted.

        The rule `config.decide` sets the weights (see `decision_weights`): "accuracy" none, "balanced" the inverse
        shares of the classes, "f1" those with the largest expected F1, "cost" `config.costs`; "auto" is "f1" or
        "accuracy".

        Args:
            truth: class numbers of the training and validation series, which are counted per class.
            unseen: probabilities [n, classes] of the n validation series, by methods that have not learnt from these
                series. Only the rule "f1" needs them; without any (n = 0) this rule warns, and gives no weights.
            config: has the options `decide` and `costs`.
            reporter: shows if decide="auto" becomes "f1", and the warning.
        """
        counts = np.bincount(truth, minlength=self.outputs)
        rule = resolve(config.decide, counts)
        if config.decide == "auto" and rule == "f1":
            rare = self.classes[int(counts.argmin())]
            reporter.say(
                f"{counts.min():,} of {counts.sum():,} labels are of the class {rare!r}: it is predicted where that is "
                "best for its F1 on validation series (decide='f1'); decide='accuracy' predicts the most probable class"
            )
        if rule == "f1" and not len(unseen):
            reporter.warn(
                "decide='f1' needs validation series and there are none; the most probable class is predicted. Set a "
                "validation_fraction, or add series."
            )
        return replace(self, weights=decision_weights(rule, counts, unseen, config.costs))

    @classmethod
    def averaged(cls, each: Sequence[Self]) -> Self:
        """Return the labels for an average of several models' probabilities.

        They are the labels of the first model, with the geometric mean of the models' class weights. A model without
        weights counts as having the weight 1 for each class. If no model has weights, the first's labels are returned.

        Args:
            each: the labels of each model, all with the same classes.
        """
        if not any(one.weights for one in each):
            return each[0]
        weights = np.array([one.weights or (1.0,) * one.outputs for one in each])
        return replace(each[0], weights=tuple(np.exp(np.log(weights).mean(0)).tolist()))

    def change(self, whole: Tensor, without: Tensor) -> np.ndarray:
        """Return by how much the log-probability of the predicted class falls without each observation, [n], in nats.

        The class is the most probable one given all observations. Where its probability rises, the fall is negative.

        Args:
            whole: the model's outputs [1, classes] for the series, before softmax.
            without: its outputs [n, classes], row i for the series without observation i.
        """
        predicted = int(whole.argmax())
        return (whole.log_softmax(1)[0, predicted] - without.log_softmax(1)[:, predicted]).cpu().numpy()

    def predicted(self, probabilities: np.ndarray) -> np.ndarray:
        """Return the class of each series, [S]: the one with the largest product of probability and weight."""
        return np.array(self.classes)[decide(probabilities, self.weights)]

    def columns(self, probabilities: np.ndarray) -> dict[str, list[Any]]:
        """Return {name: list of S cells}, the columns of an output table for probabilities [S, classes].

        They are "predicted", the names of the decided classes, and "probability_NAME" for each class.
        """
        best: dict[str, list[Any]] = {"predicted": [self.classes[i] for i in decide(probabilities, self.weights)]}
        return best | {f"probability_{name}": probabilities[:, i].tolist() for i, name in enumerate(self.classes)}


@dataclass(frozen=True)
class NumberTargets(Target):
    """The scaling of a regressor's targets: each output is standardised by itself.

    Attributes:
        mean, std: of the training targets, one for each output.
    """

    task: ClassVar[str] = "regression"
    head = Regressor
    output = "predicted"
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        """Raise InputError unless `mean` and `std` have equally many values, one or more, and `std` is positive."""
        if not self.mean or len(self.mean) != len(self.std) or not all(std > 0 for std in self.std):
            raise InputError(
                f"the scaling of targets has the means {self.mean} and deviations {self.std}; wanted at least one "
                "mean, and a positive deviation for each."
            )

    @staticmethod
    def check(targets: Any, series: int) -> np.ndarray:
        """Return targets as float64 [series, outputs], after checking them; NaN marks a missing one.

        Args:
            targets: [series] or [series, outputs], in the order of the series.
            series: number of series.

        Raises:
            InputError: another number of targets; dates, text or infinity; numbers beyond 32 bits; an output that is
                missing in every series.
        """
        numbers = numbers_of(targets, series)
        _refuse_empty(numbers, "Check the name of the column, and that it holds numbers.")
        return numbers

    @staticmethod
    def check_config(config: FitConfig, targets: np.ndarray) -> None:
        """Raise InputError for an option that only classification has, such as class_weights, or an unknown `loss`.

        The targets are not used; other kinds of labels need them.
        """
        refuse_class_options(config, "a regression")
        choose("loss", config.loss, tuple(REGRESSION_LOSSES))

    @classmethod
    def fit(cls, targets: np.ndarray) -> Self:
        """Create the scaling from mean and standard deviation of each output of the training targets [S, outputs].

        NaN is left out. A constant output gets the deviation 1, with an InputWarning.
        Raises InputError for an output that is missing in every series.
        """
        _refuse_empty(targets, "Hold out less, so that training has some, or leave this output out.")
        mean, std = np.nanmean(targets, axis=0), np.nanstd(targets, axis=0)
        # The spread of rounding errors is no spread: dividing by it would turn a constant target into noise.
        constant = std <= 1e-12 * np.abs(mean)
        if constant.any():
            text = f"every training label is {mean[constant][0]:.10g}; a regression has nothing to learn from them."
            warnings.warn(text, InputWarning, stacklevel=3)
        std = np.where(constant, 1.0, std)
        return cls(tuple(map(float, mean)), tuple(map(float, std)))

    @property
    def outputs(self) -> int:
        """Number of outputs of the model: how many numbers the target of a series has."""
        return len(self.mean)

    def encode(self, targets: np.ndarray) -> np.ndarray:
        """Return targets [S] or [S, outputs] standardised, float32 [S, outputs]; NaN, for a missing one, stays.

        Raises InputError for targets that the method `truth` refuses.
        """
        return ((self.truth(targets) - np.array(self.mean)) / np.array(self.std)).astype(np.float32)

    def truth(self, targets: np.ndarray) -> np.ndarray:
        """Return targets [S] or [S, outputs] as float64 [S, outputs] in their own units; NaN, for a missing one, stays.

        Raises InputError for another number of outputs than in training, and for a target that is no number, infinite,
        or too large for 32 bits.
        """
        numbers = numbers_of(targets, len(targets))
        if numbers.shape[1] != self.outputs:
            raise InputError(f"there are {numbers.shape[1]} targets per series; give {self.outputs}, as in training.")
        return numbers

    def objective(self, model: Classifier | Regressor, encoded: np.ndarray, config: FitConfig) -> Objective:
        """Return the objective of fine-tuning: a module that holds the regressor and computes the loss `config.loss`.

        Args:
            model: the regressor to train.
            encoded: not used; other kinds of labels need it.
            config: its `loss` is read.
        """
        return Supervised(model, partial(regression, loss=config.loss))

    def decode(self, outputs: Tensor) -> Tensor:
        """Return values in the units of the targets, float64 [S, outputs], from the model's standardised outputs."""
        mean, std = (torch.tensor(part, dtype=torch.float64, device=outputs.device) for part in (self.mean, self.std))
        return outputs.double() * std + mean

    def change(self, whole: Tensor, without: Tensor) -> np.ndarray:
        """Return how far the prediction for a series moves without each of its n observations, float [n].

        It is the root mean square over outputs, in standard deviations of the training targets.

        Args:
            whole: the model's outputs [1, outputs] for the series.
            without: its outputs [n, outputs], row i for the series without observation i.
        """
        return (whole - without).square().mean(1).sqrt().cpu().numpy()

    def predicted(self, values: np.ndarray) -> np.ndarray:
        """Return predictions [S, outputs], already in the targets' units, unchanged; of a single output as [S]."""
        return values[:, 0] if self.outputs == 1 else values

    def columns(self, values: np.ndarray) -> dict[str, list[Any]]:
        """Return {name: list of S cells}, columns of an output table for predictions [S, outputs] in units of targets.

        They are "predicted", or "predicted_0", "predicted_1", ... for several outputs.
        """
        names = ["predicted"] if self.outputs == 1 else [f"predicted_{i}" for i in range(self.outputs)]
        return {name: values[:, i].tolist() for i, name in enumerate(names)}


def _refuse_empty(numbers: np.ndarray, advice: str) -> None:
    """Raise InputError if an output of `numbers` [S, outputs] is NaN in every series; the message ends in `advice`."""
    empty = np.atleast_1d(np.isnan(numbers).all(0))
    if empty.any():
        which = "label" if len(empty) == 1 else f"label of output {int(empty.argmax())} (counted from 0)"
        raise InputError(f"every {which} is missing (NaN); a regression needs numbers, so give some. {advice}")


Labels = ClassLabels | NumberTargets | EventTimes
LABELS: dict[str, type[Labels]] = {kind.task: kind for kind in (ClassLabels, NumberTargets, EventTimes)}


def choose_labels(targets: Any, name: str = "auto") -> type[Labels]:
    """Return the class that handles the targets of a task: ClassLabels, NumberTargets or EventTimes.

    Args:
        targets: labels of all labelled series. Numbers in an array of objects count as texts.
        name: of the task, "classification", "regression" or "survival". "auto" is survival for structured arrays
            (durations with a status), regression if some number is not whole, and else classification.

    Raises:
        InputError: an unknown task; another task than survival for structured arrays; text mixed with numbers. With
            "auto" also whole numbers or texts of which more than half are different, if there are ten series or more.

    Warns:
        InputWarning: "auto" takes ten or more different whole numbers as classes.
    """
    numbers = np.asarray(targets)
    structured = numbers.dtype.names is not None
    choose("task", name, ("auto", "survival") if structured else ("auto", *LABELS))
    if structured:
        return EventTimes
    if are_mixed(numbers):
        raise InputError(MIXED)
    if name != "auto":
        return LABELS[name]
    if numbers.dtype.kind == "f" and bool((numbers != np.round(numbers)).any()):
        return LABELS["regression"]
    whole = numbers.dtype.kind in "iuf"
    if numbers.dtype == object:  # which may have no order, and is refused later
        numbers = numbers.astype(str)
    different = len(np.unique(numbers))
    if whole and MAX_WHOLE_CLASSES <= different <= len(numbers) / 2:
        warnings.warn(
            f"the labels are {different} different whole numbers, which are taken as classes; if they are amounts, say "
            "task='regression' (--task regression).",
            InputWarning,
            stacklevel=2,
        )
    many = len(numbers) >= MIN_SERIES_TO_JUDGE and different > len(numbers) / 2
    if whole and many:
        raise InputError(
            f"the labels are {different} different whole numbers for {len(numbers)} series; say whether they are "
            "classes or measurements, by task='classification' or 'regression' (--task)."
        )
    if many:
        raise InputError(
            f"the labels are {different} different texts ({listed(numbers[:2])}) for {len(numbers)} series. Write "
            "numbers with a decimal point, as 1.5; if they are classes, say task='classification' (--task)."
        )
    return LABELS["classification"]
