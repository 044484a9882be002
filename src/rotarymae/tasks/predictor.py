"""What a run predicts with: the model, gradient boosting on summary features, or all methods combined.

All are compared on the validation series. Unless a user decides otherwise the combination predicts, or what is better
than it by more than one nat in all. It also holds random convolutions, where these can be computed. Beside a model
directory the predictor is a folder of its own: predictor.json, and the arrays of each member as safetensors.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from scipy.special import softmax

from rotarymae.checkpoints import PREDICTOR, ModelDirectory, find_model, read_json, refuse_changed
from rotarymae.errors import InputError, ModelDirectoryError, listed
from rotarymae.series import SeriesDataset, StaticColumn, static_features
from rotarymae.system import Reporter, from_fields, replacing_folder, sha256, sha256_of
from rotarymae.tasks.combination import AVERAGES, choose_weights
from rotarymae.tasks.convolutions import RandomConvolutions, convolvable
from rotarymae.tasks.data import AnyDataset
from rotarymae.tasks.features import Floats, more_features
from rotarymae.tasks.targets import task_of
from rotarymae.tasks.trees import BoostedTrees, boosted

FORMAT = 3
JSON = "predictor.json"
MODEL, FEATURES, CONVOLUTIONS, COMBINED = "model", "features", "convolutions", "combined"
CHOICES = (MODEL, FEATURES, COMBINED)
TITLES = {  # as tables call them
    MODEL: "model",
    FEATURES: "gradient boosting, more features",
    CONVOLUTIONS: "random convolutions",
    COMBINED: "combined",
}


# Two classes, or numbers: slowly and with equal weights, best on PhysioNet's deaths. More classes: as many trees for
# each, so fewer; and weighted, best on PLAsTiCC's 14 both alone and combined.
SLOW: dict[str, Any] = {"learning_rate": 0.03, "max_iter": 400}
BALANCED: dict[str, Any] = {"learning_rate": 0.1, "max_iter": 80, "class_weight": "balanced"}


@dataclass(frozen=True, eq=False)
class BoostedFeatures:
    """Gradient boosting on `more_features` and the static columns.

    Attributes:
        names: of the features that are computed from observations.
        used: places, among these and the static columns', of what is not missing in every series of training.
        outputs: classes, or numbers.
    """

    task: str
    names: tuple[str, ...]
    static: tuple[StaticColumn, ...]
    used: tuple[int, ...]
    outputs: int
    trees: BoostedTrees

    @classmethod
    def fit(
        cls, task: str, dataset: AnyDataset, truth: NDArray[Any], static: tuple[StaticColumn, ...], seed: int
    ) -> Self:
        """From classes int [S] (0, 1, .., all of them), or numbers [S, outputs] of which some may be NaN."""
        features, names = _features(dataset, static)
        used = np.flatnonzero(~np.isnan(features).all(0))
        outputs = int(truth.max()) + 1 if task == "classification" else truth.shape[1]
        settings = SLOW if task == "regression" or outputs == 2 else BALANCED
        models = boosted(task, features[:, used], truth, settings, seed)
        return cls(task, names, static, tuple(used.tolist()), outputs, BoostedTrees.of(models))

    def predict(self, dataset: AnyDataset) -> Floats:
        """Probabilities [S, classes], or values [S, outputs]."""
        features, names = _features(dataset, self.static)
        if names != self.names:
            known, others = set(self.names), [name for name in names if name not in self.names]
            lacking = [name for name in self.names if name not in set(names)]
            raise InputError(
                f"the series have {len(names)} features and training had {len(known)}; lacking {listed(lacking, 3)}, "
                f"unknown {listed(others, 3)}. Give the same channels and value columns as in training."
            )
        scores = self.trees.scores(features[:, self.used])
        if self.task == "regression":
            return scores
        # The score of two classes is that of the second against the first.
        return softmax(np.concatenate([np.zeros_like(scores), scores], 1) if self.outputs == 2 else scores, axis=1)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What it has learnt."""
        return self.trees.arrays()

    def describe(self) -> dict[str, Any]:
        """The rest, as JSON."""
        static = [asdict(column) for column in self.static]
        return {"names": self.names, "static": static, "used": self.used, "outputs": self.outputs}

    @classmethod
    def load(cls, task: str, described: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        static = tuple(from_fields(StaticColumn, column, "static") for column in described["static"])
        names, used = tuple(described["names"]), tuple(described["used"])
        return cls(task, names, static, used, described["outputs"], BoostedTrees(**arrays))


def _features(dataset: AnyDataset, static: tuple[StaticColumn, ...]) -> tuple[Floats, tuple[str, ...]]:
    """Features [S, F] and the names of those that are computed from observations, which come first."""
    observed, names = more_features(dataset)
    if isinstance(dataset, SeriesDataset):
        observed = np.concatenate([observed, static_features(static, dataset)], 1)
    return observed, names


# The methods beside the model. A new one is a class with the methods of BoostedFeatures, and its entry here.
Member = BoostedFeatures | RandomConvolutions
MEMBERS: dict[str, Any] = {FEATURES: BoostedFeatures, CONVOLUTIONS: RandomConvolutions}


@dataclass(frozen=True, eq=False)
class Predictor:
    """Predictions of a fine-tuned model and its members, calibrated, and combined.

    Attributes:
        task: "classification" or "regression".
        choice: what predicts: "model", "features", or "combined": the model and all members, random convolutions among
            them where there are any.
        because: why, in words.
        members: the methods beside the model, by name.
        temperatures: of the model and each member; 1 leaves probabilities as they are.
        weights: of the model and each member in the combination.
        losses: of each and of the combination: nats per validation series (for a regression those of normal errors).
    """

    task: str
    choice: str
    because: str
    members: dict[str, Member]
    temperatures: dict[str, float]
    weights: dict[str, float]
    losses: dict[str, float]

    @classmethod
    def of_model(cls, task: str, because: str) -> Self:
        """The model alone, as it is."""
        return cls(task, MODEL, because, {}, {MODEL: 1.0}, {MODEL: 1.0}, {})

    def predict(self, of_model: Floats, dataset: AnyDataset, choice: str | None = None) -> Floats:
        """Predictions [S, K] of series, given the model's.

        Args:
            choice: "model", "features" or "combined" instead of the predictor's own.

        Raises:
            InputError: a choice that this predictor has not; series that are laid out otherwise than in training.
        """
        choice = self.check(choice or "auto")
        wanted = {MODEL: (), FEATURES: (FEATURES,)}.get(choice, tuple(self.members))
        return self._read(of_model, {name: self.members[name].predict(dataset) for name in wanted})[choice]

    def every(self, of_model: Floats, dataset: AnyDataset) -> dict[str, Floats]:
        """The predictions of the model, of each member, and of their combination, by name."""
        return self._read(of_model, {name: member.predict(dataset) for name, member in self.members.items()})

    def check(self, choice: str) -> str:
        """What predicts: the choice, or for "auto" the predictor's own. Raises InputError for one that is not there."""
        if choice not in ("auto", *self.available):
            raise InputError(
                f"predictor={choice!r}, but there is {listed(self.available)} alone ({self.because}); leave it out."
            )
        return self.choice if choice == "auto" else choice

    @property
    def available(self) -> tuple[str, ...]:
        """What `choice` may be."""
        there = {MODEL, *self.members} | ({COMBINED} if self.members else set())
        return tuple(name for name in CHOICES if name in there)

    def _read(self, of_model: Floats, of_members: dict[str, Floats]) -> dict[str, Floats]:
        average = AVERAGES[self.task]
        for name, predicted in of_members.items():
            if predicted.shape != of_model.shape:
                raise ModelDirectoryError(
                    f"{TITLES[name]} predicts {predicted.shape[1]} outputs and the model {of_model.shape[1]}; the "
                    "predictor is of another run."
                )
        out = {MODEL: average.temper(of_model, self.temperatures[MODEL])}
        out |= {name: average.temper(p, self.temperatures[name]) for name, p in of_members.items()}
        if self.members and set(out) == set(self.weights):
            out[COMBINED] = average.mean(list(out.values()), np.array([self.weights[name] for name in out]))
        return out

    def describe(self) -> dict[str, Any]:
        """What was chosen and why, for people and metrics.json."""
        return {
            "chosen": TITLES[self.choice],
            "because": self.because,
            "weights": {TITLES[name]: weight for name, weight in self.weights.items()},
            "temperatures": {TITLES[name]: temperature for name, temperature in self.temperatures.items()},
            "loss per validation series": {TITLES[name]: loss for name, loss in self.losses.items()},
        }

    def save(self, folder: str | Path) -> None:
        """Writes predictor.json and the members' arrays: beside, flushed, renamed."""
        described = {"format": FORMAT} | {field.name: getattr(self, field.name) for field in fields(self)}
        described["members"] = {name: member.describe() for name, member in self.members.items()}
        sums = {JSON: sha256_of(described)}
        with replacing_folder(folder) as beside:
            for name, member in self.members.items():
                file = beside / f"{name}.safetensors"
                save_file({key: np.ascontiguousarray(array) for key, array in member.arrays().items()}, file)
                sums[file.name] = sha256(file)
            text = json.dumps(described | {"sha256": sums}, indent=2, allow_nan=False)
            (beside / JSON).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def of_run(cls, folder: str | Path, directory: ModelDirectory) -> Self:
        """The predictor of a run folder; for a model directory, or a run without one, the model as it is.

        Raises:
            InputError: a model without a head.
            ModelDirectoryError: as `load`; a predictor of another task than the model's.
        """
        task = task_of(directory.model)
        if task is None:
            raise InputError("the model is not fine-tuned; `rotarymae fit` with labels makes one that predicts them.")
        path = find_model(folder) / PREDICTOR
        if not path.exists():
            return cls.of_model(task.name, f"{folder} has no folder {PREDICTOR!r}, as a run of `rotarymae fit` has")
        found = cls.load(path)
        if found.task != task.name:
            raise ModelDirectoryError(f"{path} is of a {found.task}, and the model beside it of a {task.name}.")
        return found

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """What `save` wrote. No code is run from the files.

        Raises:
            ModelDirectoryError: a file that is missing, damaged or of another kind; the message names it.
        """
        path = Path(folder) / JSON
        described = read_json(path, dict)
        if described.get("format") != FORMAT:
            raise ModelDirectoryError(f"{path} is no predictor of format {FORMAT}; it was not written by this version.")
        refuse_changed(path, described)
        del described["format"]
        members = {
            name: MEMBERS[name].load(described["task"], content, load_file(path.with_name(f"{name}.safetensors")))
            for name, content in described.pop("members").items()
        }
        return cls(members=members, **described)


def fit_predictor(
    asked: str,
    task: str,
    dataset: AnyDataset,
    truth: NDArray[Any],
    train: NDArray[np.int64],
    validation: NDArray[np.int64],
    of_model: Floats,
    static: tuple[StaticColumn, ...],
    seed: int,
    reporter: Reporter,
) -> tuple[Predictor, dict[str, Floats]]:
    """Fits the members on the training part, lets the validation part choose, and fits the members on both.

    Beside the predictor come predictions of the validation part, by name as `Predictor.every` gives them, of members
    that were fitted on the training part alone; none without a validation part.

    Args:
        asked: "auto", "model", "features" or "combined".
        static: the columns that the model's head reads, too.
        truth: class numbers [S] of all series, or numbers [S, outputs] of which some may be NaN.
        train, validation: indices of the parts.
        of_model: the model's predictions of the validation part [.., K]. They are slightly better there than elsewhere,
            as that part has chosen the model's epoch.

    Warns:
        Through the reporter: where what is asked for cannot be had, as there is no validation part, or a member failed.
    """
    if not len(validation):
        if asked in (FEATURES, COMBINED):
            reporter.warn(f"predictor={asked!r} needs validation series and there are none; the model predicts.")
        return Predictor.of_model(task, "there are no validation series to compare by"), {}
    average, compared = AVERAGES[task], truth[validation]
    members: dict[str, Member] = {}
    predictions = {MODEL: of_model}
    part, held = dataset.select(train), dataset.select(validation)
    known = np.sort(np.concatenate([train, validation]))
    kinds = [] if asked == MODEL else [FEATURES]
    if kinds and task == "classification" and convolvable(part):
        kinds.append(CONVOLUTIONS)
    for name in kinds:
        try:
            if task == "classification" and len(np.unique(truth[train])) < of_model.shape[1]:  # warm_start may lack one
                raise InputError("each class of the model needs a series to train on")
            with reporter.bar(TITLES[name]) as on_step:
                on_step(0, 2)
                predicted = MEMBERS[name].fit(task, part, truth[train], static, seed).predict(held)
                on_step(1, 2)
                members[name] = MEMBERS[name].fit(task, dataset.select(known), truth[known], static, seed)
                on_step(2, 2)
            predictions[name] = predicted
        except (ValueError, FloatingPointError, np.linalg.LinAlgError) as error:  # no training is lost to a member
            reporter.warn(f"{TITLES[name]!r} failed and is left out ({type(error).__name__}: {error}).")
    temperatures = {name: average.temperature(p, compared) for name, p in predictions.items()}
    tempered = {name: average.temper(p, temperatures[name]) for name, p in predictions.items()}
    weights = choose_weights(average, list(tempered.values()), compared)
    if members:
        tempered[COMBINED] = average.mean(list(tempered.values()), weights)
    nats = {name: average.nats(p, compared) for name, p in tempered.items()}
    found = Predictor(
        task,
        MODEL,
        f"asked for by predictor={asked!r}",
        members,
        temperatures,
        dict(zip(predictions, weights.tolist(), strict=True)),
        {name: total / len(validation) for name, total in nats.items()},
    )
    if asked not in ("auto", *found.available):
        reporter.warn(f"predictor={asked!r} could not be fitted; the model predicts.")
        return replace(found, because=f"predictor={asked!r} could not be fitted"), tempered
    if asked != "auto":
        return replace(found, choice=asked), tempered
    # A combination is the safer choice: another must be better by more than one nat in all, which chance could bring.
    best = min(found.available, key=lambda name: nats[name] - (name == COMBINED))
    because = f"the smallest loss on {len(validation)} validation series"
    if best == COMBINED and nats[COMBINED] > min(nats.values()):
        because = f"no other is better by more than one nat on {len(validation)} validation series"
    return replace(found, choice=best, because=because), tempered
