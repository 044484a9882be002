"""What recipes of classification share: a classifier after pre-training, the same without, and gradient boosting."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np

from rotarymae.checkpoints import ModelDirectory
from rotarymae.experiments.runner import Trial
from rotarymae.model import MaskedAutoencoder
from rotarymae.series import SeriesDataset
from rotarymae.tasks import Settings, Trained, baselines, finetune, predict_probabilities, pretrain


class Labelled(NamedTuple):
    """Series and the class [S] of each."""

    series: SeriesDataset
    labels: np.ndarray


def train_both(trial: Trial, settings: Settings, train: Labelled, validation: Labelled) -> tuple[Trained, Trained]:
    """Two classifiers, fine-tuned alike: from an autoencoder of the training series, and from scratch.

    Of either the epoch with the smallest validation loss is kept, when `settings.finetune` says so.
    """
    settings = dataclasses.replace(
        settings, pretrain=trial.own(settings.pretrain), finetune=trial.own(settings.finetune)
    )
    with trial.training("pretraining") as how:
        pretrained = pretrain(train.series, settings, **how)
    trial.keep("pretraining", pretrained.result)
    scaled = pretrained.preprocessor
    blank = ModelDirectory(MaskedAutoencoder(settings.model_config(scaled.axes, scaled.features)), scaled)
    found = []
    for stage, start in (("finetuning", pretrained.directory), ("from scratch", blank)):
        with trial.training(stage) as how:
            tuned = finetune(
                start, train.series, train.labels, settings, validation=(validation.series, validation.labels), **how
            )
        trial.keep(stage, tuned.result)
        found.append(tuned)
    return found[0], found[1]


def predict(found: Trained, series: SeriesDataset) -> np.ndarray:
    """The most probable class [S]."""
    return np.array(found.preprocessor.classes)[predict_probabilities(found.directory, series).argmax(1)]


def boost(train: Labelled, series: SeriesDataset, seed: int) -> np.ndarray:
    """The classes [S] that gradient boosting on summary features finds."""
    classes, index = np.unique(train.labels, return_inverse=True)
    return classes[baselines.BoostedClasses(seed).fit(train.series, index).predict(series).argmax(1)]
