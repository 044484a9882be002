"""The shared parts of recipes of classification: a classifier with and without pre-training, and gradient boosting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import accuracy_score, f1_score

from rotarymae.model import MaskedAutoencoder
from rotarymae.partners import BoostedFeatures, choose_predictor, fit_partners
from rotarymae.pipeline import AnyPreprocessor, Pipeline
from rotarymae.preprocess import StaticColumn
from rotarymae.series import SeriesDataset
from rotarymae.train import FitResult, finetune, pretrain
from rotarymae.training.fit_config import FitConfig
from rotarymae_experiments.runner import SMOKE, Trial

# The model and training of a recipe of classification that only has to show that everything runs.
SMOKE_TRAINING: dict[str, Any] = SMOKE | {
    "pretrain_epochs": 5,
    "finetune_epochs": 5,
    "batch_size": 8,
    "finetune_batch_size": None,
    "base_lr": 3e-3,
    "finetune_lr": None,
    "warmup_steps": 2,
}


class Labelled(NamedTuple):
    """Series and the class [S] of each."""

    series: SeriesDataset
    labels: np.ndarray

    def select(self, rows: np.ndarray) -> Labelled:
        """Return the series at these indices, with their labels."""
        return Labelled(self.series.select(rows), self.labels[rows])


def train_both(
    trial: Trial, config: FitConfig, train: Labelled, validation: Labelled, finetuning: FitConfig | None = None
) -> tuple[FitResult, FitResult]:
    """Two classifiers, fine-tuned alike: from an autoencoder of the training series, and from scratch.

    Of either the epoch with the smallest validation loss is kept. `finetuning` takes the place of `config` where the
    two trainings differ in more than `FitConfig` has names for.
    """
    config, finetuning = trial.with_seed(config), trial.with_seed(finetuning or config)
    pretrained = trial.train("pretraining", pretrain, train.series, config)
    starts = {"finetuning": pretrained.pipeline, "from scratch": blank(config, pretrained.pipeline.preprocessor)}  # pyright: ignore
    tuned, scratch = (
        trial.train(stage, finetune, start, *train, finetuning, validation=tuple(validation))
        for stage, start in starts.items()
    )
    return tuned, scratch


def blank(config: FitConfig, preprocessor: AnyPreprocessor) -> Pipeline:
    """A model of random weights, to fine-tune from: what pre-training is compared with."""
    sizes = config.model_config(preprocessor.axes, preprocessor.features, preprocessor.input_features)
    return Pipeline(preprocessor, MaskedAutoencoder(sizes))


def predict(result: FitResult, series: SeriesDataset) -> np.ndarray:
    """The most probable class [S]."""
    return np.array(result.pipeline.labels.classes)[result.pipeline.predict_proba(series).argmax(1)]  # pyright: ignore


def scores(labels: np.ndarray, guesses: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Macro-F1 and accuracy of each method's classes [S]; a method's name stands behind that of the metric."""
    metrics: dict[str, float] = {}
    for name, guess in guesses.items():
        metrics[f"macro-F1{name}"] = float(f1_score(labels, guess, average="macro"))
        metrics[f"accuracy{name}"] = float(accuracy_score(labels, guess))
    return metrics


def combine(
    trial: Trial,
    known: Labelled,
    parts: tuple[np.ndarray, np.ndarray],
    test: SeriesDataset,
    of_model: Sequence[np.ndarray],
    static: tuple[StaticColumn, ...] = (),
) -> dict[str, np.ndarray]:
    """Probabilities [S, classes] of the test series by all that `rotarymae fit` predicts with.

    By name: "model", "features" (gradient boosting), "convolutions" where series share a grid, all of them "combined",
    and "chosen", what the command's `--predictor auto` would take. The validation series choose temperatures, weights,
    and what is chosen.

    Args:
        known: series with the class of each, as boosting reads them.
        parts: which of them are for training and which for validation.
        test: the series to predict.
        of_model: the model's probabilities of the validation and of the test series, classes sorted.
        static: the columns that the model's head reads, for boosting, too.
    """
    classes, truth = np.unique(known.labels, return_inverse=True)
    given = (known.series, truth, *parts, len(classes), static, trial.seed, trial.reporter)
    fitted = fit_partners("auto", "classification", *given)
    predictor, _ = choose_predictor("auto", "classification", fitted, of_model[0], trial.reporter)
    probabilities = predictor.every(of_model[1], test)
    return {**probabilities, "chosen": probabilities[predictor.choice]}


def boost(train: Labelled, series: SeriesDataset, seed: int) -> np.ndarray:
    """Return the classes [S] that gradient boosting on features predicts."""
    classes, index = np.unique(train.labels, return_inverse=True)
    return classes[BoostedFeatures.fit("classification", train.series, index, (), seed).predict(series).argmax(1)]
