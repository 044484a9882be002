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
    "batch_size": 16,
    "finetune_batch_size": None,
    "base_lr": 3e-3,
    "finetune_lr": None,
    "warmup_steps": 2,
}


class Labelled(NamedTuple):
    """S series, and the class of each: labels [S] of any type."""

    series: SeriesDataset
    labels: np.ndarray

    def select(self, rows: np.ndarray) -> Labelled:
        """Return the series at the indices `rows`, in their order, with their labels."""
        return Labelled(self.series.select(rows), self.labels[rows])


def train_both(
    trial: Trial, config: FitConfig, train: Labelled, validation: Labelled, finetuning: FitConfig | None = None
) -> tuple[FitResult, FitResult]:
    """Train two classifiers alike: return one from an autoencoder of the training series, and one from scratch.

    Either has the weights of the epoch with the smallest validation loss.

    Args:
        trial: gives seed and folder; interrupted trainings are resumed.
        config: the model, and options of pre-training and fine-tuning.
        train, validation: series with their classes.
        finetuning: options of fine-tuning, where they differ from `config` in more than it has names for; None takes
            `config`.
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
    """Return an autoencoder with random weights, to fine-tune from: what pre-training is compared with.

    Its sizes are those of `config`, for the tokens of `preprocessor`.
    """
    sizes = config.model_config(preprocessor.axes, preprocessor.features, preprocessor.input_features)
    return Pipeline(preprocessor, MaskedAutoencoder(sizes))


def predict(result: FitResult, series: SeriesDataset) -> np.ndarray:
    """Return the most probable class of each of S series, [S], as the labels name it."""
    return np.array(result.pipeline.labels.classes)[result.pipeline.predict_proba(series).argmax(1)]  # pyright: ignore


def scores(labels: np.ndarray, guesses: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Return {"macro-F1NAME": .., "accuracyNAME": ..} for each method's guesses.

    Args:
        labels: true classes [S].
        guesses: {NAME: guessed classes [S]}; names begin with a space, such as " from scratch", or are empty.
    """
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
    """Predict the classes of test series with all that `rotarymae fit` predicts with: return {name: probabilities}.

    Names are "model", "features" (gradient boosting), "convolutions" where series share a grid, "combined" for all of
    these, and "chosen" for what the command's `--predictor auto` would take. Temperatures, weights and the choice are
    made by the validation series. Probabilities are [S, classes] of the S test series, classes sorted.

    Args:
        trial: gives the seed and shows progress.
        known: training and validation series with their classes, and others, as boosting reads them.
        parts: indices in `known` of the training and of the validation series.
        test: the series to predict.
        of_model: the model's probabilities [n, classes] of the validation series, and [S, classes] of the test series.
        static: static columns that the model's head reads, which boosting then reads, too.
    """
    truth = np.unique(known.labels, return_inverse=True)[1]
    given = (known.series, truth, *parts, static, trial.seed, trial.reporter)
    fitted = fit_partners("auto", "classification", *given)
    predictor, _ = choose_predictor("auto", "classification", fitted, of_model[0], trial.reporter)
    probabilities = predictor.every(of_model[1], test)
    return {**probabilities, "chosen": probabilities[predictor.choice]}


def boost(train: Labelled, series: SeriesDataset, seed: int) -> np.ndarray:
    """Train gradient boosting on features of the training series; return the classes [S] that it predicts."""
    classes, index = np.unique(train.labels, return_inverse=True)
    return classes[BoostedFeatures.fit("classification", train.series, index, (), seed).predict(series).argmax(1)]
