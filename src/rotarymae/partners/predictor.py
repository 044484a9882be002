"""The predictor of a run: the network, a method next to it (a partner: boosting, convolutions, Cox), or all combined.

All are compared on the validation series. Unless a user decides otherwise the combination predicts, or what is better
than it by more than one nat in all. A saved predictor is the folder `partners` of a pipeline, whose config.json has the
checksums: predictor.json, and a file for each partner.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from rotarymae.errors import InputError, ModelDirectoryError, listed
from rotarymae.model_files import dump_json, read_version
from rotarymae.partners.base import ANEW, AnyDataset, Floats, Partner, check, read_settings
from rotarymae.partners.boosting import BoostedFeatures
from rotarymae.partners.combine import choose_temperature, choose_weights, combine, nats, temper
from rotarymae.partners.convolutions import RandomConvolutions
from rotarymae.partners.cox import CoxFeatures
from rotarymae.preprocess import StaticColumn
from rotarymae.system import Reporter

if TYPE_CHECKING:
    from rotarymae.training.cost import Plan

PREDICTOR_FORMAT = 7
JSON = "predictor.json"
# A new partner is a class that follows the protocol `Partner`, and its entry here.
PARTNERS: dict[str, type[Partner]] = {one.name: one for one in (BoostedFeatures, RandomConvolutions, CoxFeatures)}
MODEL, FEATURES, COMBINED = "model", BoostedFeatures.name, "combined"
CHOICES = (MODEL, FEATURES, COMBINED)
TITLES = {MODEL: "model", COMBINED: "combined"} | {name: kind.title for name, kind in PARTNERS.items()}  # in tables
TASKS = ("classification", "regression", "survival")


@dataclass(frozen=True, eq=False)
class Predictor:
    """The network, the methods next to it (its partners), and their combination, calibrated; one is chosen to predict.

    The names of methods are "model" (the network), "features" (boosted trees), "convolutions", "cox" and "combined".

    Attributes:
        task: "classification", "regression" or "survival".
        choice: the chosen method: "model", "features", or "combined" (the network and all partners).
        because: why it was chosen, in words.
        partners: {name: partner}.
        temperatures: {name: temperature} of the network and each partner; 1 leaves probabilities unchanged.
        weights: {name: weight} of the network and each partner in the combination; they sum to 1.
        losses: {name: nats per validation series} of the network, each partner and the combination; for a regression
            with normal errors, up to a constant. Empty without validation series.
        errors: {name: for each output the ascending absolute errors of the validation series}, for intervals; empty
            unless the task is a regression.
    """

    task: str
    choice: str
    because: str
    partners: dict[str, Partner]
    temperatures: dict[str, float]
    weights: dict[str, float]
    losses: dict[str, float]
    errors: dict[str, list[list[float]]] = field(default_factory=dict)

    @classmethod
    def of_model(cls, task: str, because: str) -> Self:
        """Create a predictor that uses the network only, without calibration; `because` is a text that says why."""
        return cls(task, MODEL, because, {}, {MODEL: 1.0}, {MODEL: 1.0}, {})

    def predict(self, of_model: Floats, dataset: AnyDataset, choice: str = "auto") -> Floats:
        """Return the predictions [S, K] of one method for S series.

        They are a regression's K values, or probabilities of K classes or time intervals. Probabilities are calibrated,
        if the fit had validation series.

        Args:
            of_model: the network's predictions [S, K] of S series, uncalibrated.
            dataset: the same S series, which the other methods read.
            choice: "model" (the network), "features" (boosted trees) or "combined" (all methods); "auto" means the one
                that the fit chose.

        Raises:
            InputError: a choice that is not available; series whose channels or columns are not those of training.
            ModelDirectoryError: methods of another run, which predict another number of outputs than the network.
        """
        choice = self.check(choice)
        needed = {MODEL: (), FEATURES: (FEATURES,)}.get(choice, tuple(self.partners))
        return self._combine(of_model, {name: self.partners[name].predict(dataset) for name in needed})[choice]

    def every(self, of_model: Floats, dataset: AnyDataset) -> dict[str, Floats]:
        """Return {method: predictions [S, K]} of all methods: the network, each other method, and all combined.

        "combined" is absent if there is only the network. Predictions are a regression's K values, or probabilities of
        K classes or time intervals, which are calibrated if the fit had validation series.

        Args:
            of_model: the network's predictions [S, K] of S series, uncalibrated.
            dataset: the same S series, which the other methods read.

        Raises:
            InputError: series whose channels or columns are not those of training.
            ModelDirectoryError: methods of another run, which predict another number of outputs than the network.
        """
        return self._combine(of_model, {name: member.predict(dataset) for name, member in self.partners.items()})

    def check(self, choice: str) -> str:
        """Return the method that a user's `choice` stands for: itself, or for "auto" the one that the fit chose.

        Raises:
            InputError: a choice that is neither "auto" nor in `available`: "model", and "features" and "combined" if
                they were fitted.
        """
        if choice not in ("auto", *self.available):
            raise InputError(
                f"predictor={choice!r} is not in this pipeline, which has {listed(self.available)} ({self.because}); "
                "leave it out, or give one of these."
            )
        return self.choice if choice == "auto" else choice

    @property
    def available(self) -> tuple[str, ...]:
        """The methods that can predict: "model" (the network), "features" (boosted trees), "combined", in this order.

        "features" is absent if there are no boosted trees; "combined" is absent if there is only the network.
        """
        there = {MODEL, *self.partners} | ({COMBINED} if self.partners else set())
        return tuple(name for name in CHOICES if name in there)

    def _combine(self, of_model: Floats, of_partners: dict[str, Floats]) -> dict[str, Floats]:
        """Calibrate the predictions of several methods, and combine them; return {method: predictions [S, K]}.

        The methods are "model", the names in `of_partners` and "combined". "combined" is absent if `of_partners` is
        empty, or lacks a fitted method. Probabilities are calibrated by `temperatures`, and combined by averaging
        their logarithms with `weights`. A regression's values are only averaged.

        Args:
            of_model: the network's predictions [S, K] of S series, uncalibrated: probabilities of K classes or time
                intervals, or K values.
            of_partners: {name: predictions [S, K]} of some or all methods next to the network (partners), uncalibrated.

        Raises:
            ModelDirectoryError: predictions of another shape than the network's.
        """
        for name, predicted in of_partners.items():
            if predicted.shape != of_model.shape:
                raise ModelDirectoryError(
                    f"{TITLES[name]} predicts {predicted.shape[1]} outputs and the model {of_model.shape[1]}: the "
                    f"predictor is of another run. {ANEW}"
                )
        out = {MODEL: of_model} | of_partners
        if self.task != "regression":
            out = {name: temper(predicted, self.temperatures[name]) for name, predicted in out.items()}
        if self.partners and set(out) == set(self.weights):
            out[COMBINED] = combine(self.task, list(out.values()), np.array([self.weights[name] for name in out]))
        return out

    def describe(self) -> dict[str, Any]:
        """Return a summary for metrics.json: which method was "chosen" to predict, and why ("because").

        It also has "weights", "temperatures" and "loss_per_validation_series", each {method: number}. They are absent
        if there are no weights, as for an ensemble of networks, whose members each have a predictor.
        """
        chosen = {"chosen": self.choice, "because": self.because}
        if not self.weights:  # of several predictors, each with its own
            return chosen
        scales = {"weights": self.weights, "temperatures": self.temperatures}
        return {**chosen, **scales, "loss_per_validation_series": self.losses}

    def save(self, folder: str | Path) -> None:
        """Write predictor.json and a file for each partner to a folder.

        Raises OSError if a file cannot be written, as on a full disk.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        described = {"format": PREDICTOR_FORMAT} | {one.name: getattr(self, one.name) for one in fields(self)}
        files = {name: folder / f"{name}{partner.suffix}" for name, partner in self.partners.items()}
        described["partners"] = {name: self.partners[name].save(file) for name, file in files.items()}
        dump_json(folder / JSON, described)

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read a predictor from the folder that `save` wrote. No code is run from the files.

        Raises:
            ModelDirectoryError: a file that is missing, damaged, of another kind, or does not belong to this predictor;
                a field or an array that this version would not write. The message names it.
        """
        path = Path(folder) / JSON
        described = read_version(path, PREDICTOR_FORMAT)
        del described["format"]
        read = read_settings(cls, described, path)
        read._check(path)
        files = {name: path.with_name(f"{name}{PARTNERS[name].suffix}") for name in read.partners}
        surplus = {file.name for file in path.parent.iterdir()} - {JSON, *(file.name for file in files.values())}
        if surplus:
            raise ModelDirectoryError(f"{path.parent} holds {listed(sorted(surplus))}, no file of this model. {ANEW}")
        partners: Any = read.partners  # their settings
        return replace(
            read,
            partners={name: PARTNERS[name].load(files[name], read.task, given) for name, given in partners.items()},
        )

    def _check(self, path: Path) -> None:
        """Raise ModelDirectoryError if a name or a number in a field that was read from a file is impossible.

        The message names the file `path`. Types are checked before; the settings in `partners` are checked later, by
        the partners' `load`; `because` and the values of the losses are not checked.
        """
        methods, known = {MODEL, *self.partners}, {MODEL, *self.partners, COMBINED}
        check(methods <= {MODEL, *PARTNERS}, path, "partners")
        check(self.task in TASKS, path, "task")
        check(self.choice in self.available, path, "choice")
        heats, weights = self.temperatures, self.weights
        check(set(heats) == methods and all(1e-3 <= one <= 1e3 for one in heats.values()), path, "temperatures")
        sound = set(weights) == methods and all(0 <= one <= 1 for one in weights.values())
        check(sound and math.isclose(sum(weights.values()), 1, rel_tol=1e-9), path, "weights")
        check(set(self.losses) <= known, path, "losses")
        sound = set(self.errors) <= known and (not self.errors or self.task == "regression")
        outputs = [one for several in self.errors.values() for one in several]
        check(sound and all(one == sorted(one) and min(one, default=0) >= 0 for one in outputs), path, "errors")


@dataclass(frozen=True, eq=False)
class FittedPartners:
    """Methods next to the network (partners) fitted for use, and predictions to compare them with the network by.

    Attributes:
        partners: {name: partner}, each fitted on the training and the validation part.
        predictions: {name: predictions [validation series, K]} by partners fitted on the training part only: values of
            K outputs, or probabilities of K classes or intervals.
        held: the validation series; None if there are none.
        truth: targets of the S validation series: class numbers int [S] from 0, values [S, outputs], or for survival
            weights [S, K] of the intervals in the likelihood.
    """

    partners: dict[str, Partner]
    predictions: dict[str, Floats]
    held: AnyDataset | None
    truth: NDArray[Any]


def fit_partners(
    choice: str,
    task: str,
    dataset: AnyDataset,
    truth: NDArray[Any],
    train: NDArray[np.int64],
    validation: NDArray[np.int64],
    static: tuple[StaticColumn, ...],
    seed: int,
    reporter: Reporter,
    budget: Plan | None = None,
) -> FittedPartners:
    """Fit the methods that predict next to the network (its partners), where they suit the task and the data.

    They are boosted trees, random convolutions and Cox's regression. Each is fitted twice: on the training series, to
    predict the validation series for a comparison with the network; then on both, for use. None is fitted if the choice
    is "model", or without validation series.

    Args:
        choice: the method that the user wants to predict with: "auto", "model" (the network), "features" (boosting) or
            "combined".
        task: "classification", "regression" or "survival".
        dataset: all S series or arrays.
        truth: their targets: class numbers int [S] from 0; values [S, outputs], NaN where one is missing; or for
            survival weights [S, K] of K time intervals (the last is the time after all others): 1 where the event may
            have happened, else 0. The interval in which a series was censored has the share of it that was still to
            come.
        train, validation: indices of the training and of the validation series in `dataset`; all classes are in train.
        static: columns of `dataset` with one value per series, which boosting and Cox's regression also read.
        seed: fixes all random choices, also that of series if time is short.
        reporter: shows progress and warnings.
        budget: the plan of a run with limited time. It limits the number of series to learn from, copies that a method
            makes of them included; None means no limit.

    Warns:
        Through the reporter: a method failed, for example for lack of series or of memory (ValueError,
            FloatingPointError, LinAlgError or MemoryError; other errors pass), and is left out.
    """
    fitted = FittedPartners({}, {}, dataset.select(validation) if len(validation) else None, truth[validation])
    if choice == MODEL or fitted.held is None:
        return fitted
    known, classes = np.sort(np.concatenate([train, validation])), truth if task == "classification" else None
    most = math.inf if budget is None else budget.max_rows_to_compare
    first = draw(train, most, classes, seed)
    whole, part = dataset.select(train), dataset.select(first)
    for name, kind in PARTNERS.items():
        if not kind.suits(task, whole):
            continue
        try:
            if note := kind.note_for_user(whole, [column.name for column in static]):
                reporter.say(f"{kind.title}: {note}")
            with reporter.bar(kind.title) as on_step:
                on_step(0, 2)
                started, count = time.monotonic(), _rows(kind, task, part, most)
                predicted = kind.fit(task, part, truth[first], static, seed, count).predict(fitted.held)
                on_step(1, 2)
                seconds = time.monotonic() - started
                later = math.inf if budget is None else budget.max_rows_to_learn(name, count, seconds)
                used = draw(known, later, classes, seed)
                chosen = dataset.select(used)
                count = _rows(kind, task, chosen, later)
                fitted.partners[name] = kind.fit(task, chosen, truth[used], static, seed, count)
                on_step(2, 2)
            fitted.predictions[name] = predicted
            if len(first) < len(train) or len(used) < len(known):
                reporter.say(
                    f"{kind.title} learns from {len(used):,} of {len(known):,} {dataset.noun}, and from {len(first):,} "
                    "when it is compared: drawn at random, as the minutes allow no more"
                )
        # No training is lost to a partner.
        except (ValueError, FloatingPointError, np.linalg.LinAlgError, MemoryError) as error:
            reporter.warn(f"{kind.title!r} failed and is left out ({type(error).__name__}: {error}).")
    return fitted


def _rows(kind: type[Partner], task: str, dataset: AnyDataset, most: float) -> int:
    """Return the number of training rows (series, and copies of them) for a method of the class `kind`, within a limit.

    It is what the method would like (`kind.rows`), but at most `most`, which may be infinite, and at least the number
    of series.
    """
    return max(len(dataset), int(min(most, kind.rows(task, dataset))))


def draw(rows: NDArray[np.int64], count: float, classes: NDArray[np.int64] | None, seed: int) -> NDArray[np.int64]:
    """Draw `count` of the given series at random; return their indices in ascending order.

    Args:
        rows: indices of series in a data set. If there are no more than `count`, they are returned unchanged.
        count: number of series to draw; may be infinite.
        classes: class number of every series of the data set. At least one series of each class in `rows` is drawn,
            even if the result is then longer than `count`. None means no classes.
        seed: fixes what is drawn.
    """
    if len(rows) <= count:
        return rows
    order = np.random.default_rng(seed).permutation(rows)
    if classes is not None:
        first = np.unique(classes[order], return_index=True)[1]
        order = np.concatenate([order[first], np.delete(order, first)])
        count = max(count, len(first))
    return np.sort(order[: int(count)])


def choose_predictor(
    choice: str, task: str, fitted: FittedPartners, of_model: Floats, reporter: Reporter
) -> tuple[Predictor, dict[str, Floats]]:
    """Choose what will predict, the network, boosted trees, or all methods averaged, and return the `Predictor`.

    All are compared on the validation series, after calibration. What is chosen:
    - for "auto", all methods averaged. But if the network or the boosted trees have a loss, summed over the validation
      series, that is smaller by more than one nat, the one with the smallest loss;
    - for another `choice`, the method that it names;
    - in both cases the network, if there are no validation series, no other method, or `choice` could not be fitted.

    Args:
        choice: "auto", "model" (the network), "features" (boosting) or "combined".
        task: "classification", "regression" or "survival".
        fitted: the methods next to the network, from `fit_partners`.
        of_model: the network's predictions [validation series, K], uncalibrated: values of K outputs, or probabilities
            of K classes or time intervals. They are slightly optimistic, because the validation part has also chosen
            the network's epoch.
        reporter: shows warnings.

    Returns:
        The predictor; and {method: calibrated predictions [validation series, K]} of the network, of each other method
        as fitted on the training series only, and of their combination ("combined"), if there are other methods. The
        dictionary is empty without validation series.

    Warns:
        Through the reporter: `choice` needs validation series, and there are none; `choice` could not be fitted.
    """
    partners, compared, series = fitted.partners, fitted.truth, len(fitted.truth)
    if fitted.held is None:
        if choice in (FEATURES, COMBINED):
            reporter.warn(
                f"predictor={choice!r} needs validation series and there are none; the network predicts instead. Set a "
                "validation_fraction, or add series."
            )
        return Predictor.of_model(task, "there are no validation series to compare by"), {}
    predictions = {MODEL: of_model, **fitted.predictions}
    temperatures = dict.fromkeys(predictions, 1.0)
    if task != "regression":
        temperatures = {name: choose_temperature(p, compared) for name, p in predictions.items()}
        predictions = {name: temper(p, temperatures[name]) for name, p in predictions.items()}
    weights = choose_weights(task, list(predictions.values()), compared)
    named_weights = dict(zip(predictions, weights.tolist(), strict=True))
    if partners:
        predictions[COMBINED] = combine(task, list(predictions.values()), weights)
    losses = {name: nats(task, predicted, compared) for name, predicted in predictions.items()}
    per_series = {name: total / series for name, total in losses.items()}
    because = f"asked for by predictor={choice!r}"
    predictor = Predictor(task, MODEL, because, partners, temperatures, named_weights, per_series)
    if choice not in ("auto", *predictor.available):
        reporter.warn(f"predictor={choice!r} could not be fitted; the network predicts instead.")
        return replace(predictor, because=f"predictor={choice!r} could not be fitted"), predictions
    if choice != "auto":
        return replace(predictor, choice=choice), predictions
    # A combination is the safer choice: another must be better by more than one nat in all, which chance could bring.
    best = min(predictor.available, key=lambda name: losses[name] - (name == COMBINED))
    because = f"the smallest loss on {series} validation series"
    if best == COMBINED and losses[COMBINED] > min(losses.values()):
        because = f"no other choice is better by more than one nat on {series} validation series"
    return replace(predictor, choice=best, because=because), predictions
