"""The average of the pipelines of a cross-validation's folds, and `load`, which finds a pipeline or such an average."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from rotarymae.config import Precision
from rotarymae.errors import InputError, ModelDirectoryError
from rotarymae.model_files import FOLDS_FOLDER, METRICS_FILE, find_model, fold_folders, read_json, several_models
from rotarymae.partners import COMBINED, MODEL, Predictor
from rotarymae.pipeline import Pipeline


@dataclass(eq=False, repr=False)
class Ensemble(Pipeline):
    """The pipelines of a cross-validation's folds. It predicts with their average, and does nothing else.

    Preprocessor, model, labels, columns, parameters and precision are those of the first member, but for the weights of
    classes, which are the geometric means. Autoencoder and calibration are None.

    Parameters
    ----------
    members : tuple of Pipeline
        The pipeline of each fold; each gets the ensemble's precision.
    """

    members: tuple[Pipeline, ...] = ()

    def __post_init__(self) -> None:
        """Replace `members`, the folds' pipelines, by copies that have the ensemble's precision ("fp32", ...)."""
        super().__post_init__()
        self.members = tuple(replace(member, precision=self.precision) for member in self.members)

    @classmethod
    def of(cls, members: Sequence[Pipeline]) -> Self:
        """Create an ensemble from the pipelines of a cross-validation's folds.

        Args:
            members: a fine-tuned pipeline of each fold, at least one, all with the same classes.

        Raises:
            InputError: a pipeline is not fine-tuned.
        """
        first = members[0]
        labels = first.require_labels().averaged([member.require_labels() for member in members])  # pyright: ignore
        shared = {"columns": first.columns, "parameters": first.parameters, "precision": first.precision}
        return cls(first.preprocessor, first.model, labels=labels, members=tuple(members), **shared)

    @property
    def predictor(self) -> Predictor:
        """Description of the methods (network, boosting), their errors, and which predicts; it cannot predict itself.

        It is the attribute `partners`, if that is set. Otherwise it is put together from the folds' predictors:

        - `partners`: the methods next to the network (boosting, ...) that every fold has, as the first fold fitted
          them;
        - `choice`: that of all folds; if they chose differently, "combined", or "model" if no partner is in each fold;
        - `errors`: the absolute validation errors of all folds, {method: for each output a list, ascending}, for
          methods that every fold has; empty except for a regression;
        - weights, temperatures and losses: empty.
        """
        if self.partners is not None:
            return self.partners
        every = [member.predictor for member in self.members]
        choices, errors = {one.choice for one in every}, [one.errors for one in every]
        merged = {
            name: [sorted(itertools.chain(*parts)) for parts in zip(*(one[name] for one in errors), strict=True)]
            for name in errors[0]
            if all(name in one for one in errors)
        }
        because = f"{every[0].because}, in each of {len(every)} folds"
        if len({(one.choice, one.because) for one in every}) > 1:
            because = f"the validation series of each of {len(every)} folds chose"
        shared = {name: one for name, one in every[0].partners.items() if all(name in each.partners for each in every)}
        choice = choices.pop() if len(choices) == 1 else COMBINED if shared else MODEL
        return Predictor(every[0].task, choice, because, shared, {}, {}, {}, merged)

    def outputs(self, X: Any, predictor: str = "auto", on_step: Any = None) -> np.ndarray:
        """Return the mean of the outputs of the folds' pipelines, float [S, K].

        The K columns are probabilities of classes or, for times to an event, of the first fold's intervals of time; or
        a regression's values, in the units of the targets. Each fold calibrates its probabilities if it had validation
        series.

        Args:
            X: S series, as a data set, the path of a table, a data frame, arrays or lists; see `dataset`.
            predictor: "model" (the network), "features" (boosting), "combined" (all methods); or "auto", the choice of
                all folds. If they chose differently, "auto" is "combined", or "model" if no other method is in every
                fold.
            on_step: called with (batches done, batches in all) of each fold anew, for progress bars; None for none.

        Raises:
            InputError: a fold lacks this predictor; data that cannot be read.
        """
        dataset, choice = self.dataset(X), self.predictor.check(predictor)
        each = [(member, member.outputs(dataset, choice, on_step)) for member in self.members]
        return np.mean([self.require_labels().convert(one, member.labels) for member, one in each], axis=0)

    def every(self, X: Any, on_step: Any = None) -> dict[str, np.ndarray]:
        """Return {method: outputs [S, K]}: predictions by the network, by each method next to it, and by all combined.

        The K columns are those of the method `outputs`. Methods that some fold lacks are left out. `X` are S series, in
        any form that `dataset` reads; `on_step` is called with (batches done, batches in all) of each fold anew.
        """
        dataset, labels = self.dataset(X), self.require_labels()
        each = [(member.labels, member.every(dataset, on_step)) for member in self.members]
        names = [name for name in each[0][1] if all(name in one for _, one in each)]
        return {name: np.mean([labels.convert(one[name], theirs) for theirs, one in each], axis=0) for name in names}

    def require_one(self) -> Pipeline:
        """Raise InputError (code "several-models"), because an ensemble can only predict, unlike a single pipeline."""
        raise several_models(len(self.members))


def load(source: str | Path, precision: Precision = "auto") -> Pipeline:
    """Load a saved pipeline; for the run of a cross-validation, an `Ensemble` of the pipelines of its folds.

    Parameters
    ----------
    source : str or Path
        A run folder of `rotarymae fit`, a saved pipeline, the name of a model that ships with the library, or a
        repository OWNER/NAME of the Hugging Face Hub.
    precision : str
        Number format of matrix products in predictions: "fp32", "bf16", or "auto", which takes "bf16" where the GPU or
        processor has units for it.

    Returns
    -------
    Pipeline
        The pipeline, or the `Ensemble`, which is one; in evaluation mode and on the CPU.

    Raises
    ------
    InputError
        No such folder, name or precision; a cross-validation that is not finished.
    ModelDirectoryError
        A file, or the folder of a fold, is missing, unreadable or changed; the message says which.
    MissingExtra
        A repository without the extra `hub`.
    """
    folder = find_model(source)
    if not (folder / FOLDS_FOLDER).is_dir():
        return Pipeline.load(folder, precision)
    if not (folder / METRICS_FILE).is_file():
        raise InputError(f"the folds in {folder} are not finished; finish them by `rotarymae fit` with --resume.")
    folds, count = fold_folders(folder), read_json(folder / METRICS_FILE).get("split", {}).get("folds")
    if len(folds) != count:
        raise ModelDirectoryError(
            f"{folder / FOLDS_FOLDER} has {len(folds)} folds, and {METRICS_FILE} lists {count}; copy all of the run."
        )
    return Ensemble.of([Pipeline.load(fold, precision) for fold in folds])
