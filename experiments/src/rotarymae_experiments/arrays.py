"""The shared parts of picture and sound recipes: an autoencoder of patches, classifiers with and without its start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import torch

from rotarymae.arrays import ArrayDataset
from rotarymae.config import RoMAEConfig
from rotarymae.heads import Classifier
from rotarymae.losses import classification
from rotarymae.masking import Masking
from rotarymae.model import Encoder, MaskedAutoencoder
from rotarymae.preprocess import DatasetExamples, PatchPreprocessor
from rotarymae.training import Pretraining, Supervised, TrainConfig, fit
from rotarymae.training import predict as predict_each
from rotarymae_experiments.runner import Setup, Trial

# An augmentation of a batch: (arrays, one random seed for each, int [B]) → new arrays in the same order.
Transform = Callable[[Sequence[np.ndarray], np.ndarray], Sequence[np.ndarray]]


@dataclass(frozen=True)
class ArraySetup(Setup):
    """How an autoencoder of patches is pre-trained and fine-tuned.

    Attributes:
        mask_ratio: Pre-training hides this share of the patches.
        model: Build this autoencoder; axes and features follow from the patches.
        pretraining: Pre-train it like this.
        finetuning: Fine-tune it like this; the same model from random weights is trained likewise.
        drop: Fine-tuning leaves out up to this share of the patches, at random.
        label_smoothing: Each label gives this share of its probability to all classes alike.
        pool: The head of a model without [CLS] reads the mean or the maximum over patches, or what attention picks.
    """

    mask_ratio: float = 0.75
    model: RoMAEConfig = field(default_factory=RoMAEConfig)
    pretraining: TrainConfig = field(default_factory=TrainConfig)
    finetuning: TrainConfig = field(default_factory=TrainConfig)
    drop: float = 0.0
    label_smoothing: float = 0.0
    pool: str = "mean"


@dataclass(frozen=True, eq=False)
class LabelledArrays:
    """S arrays with a class each.

    Attributes:
        arrays: the data set.
        labels: int [S], class of each array, from 0.
        classes: number of classes.
    """

    arrays: ArrayDataset
    labels: np.ndarray
    classes: int


def pretrain_arrays(
    setup: ArraySetup,
    trial: Trial,
    arrays: ArrayDataset,
    preprocessor: PatchPreprocessor,
    transform: Transform | None = None,
) -> MaskedAutoencoder:
    """Train an autoencoder of patches and return it; each target patch is normalised by itself, as in MAE.

    Args:
        setup: its `model`, `pretraining` and `mask_ratio` are used.
        trial: gives seed and folder; an interrupted training is resumed.
        arrays: to learn from, without labels.
        preprocessor: fitted on arrays of this kind.
        transform: augmentation; None for none.
    """
    model, config = MaskedAutoencoder(setup.model), trial.with_seed(setup.pretraining)
    masking = Masking("ratio", ratio=setup.mask_ratio)
    examples = DatasetExamples(arrays, preprocessor, config.seed, masking, transform=transform)
    trial.train("pretraining", fit, Pretraining(model, normalize_targets=True), examples, config)
    return model


def finetune_both(
    setup: ArraySetup,
    trial: Trial,
    pretrained: MaskedAutoencoder,
    train: LabelledArrays,
    preprocessor: PatchPreprocessor,
    transform: Transform | None = None,
) -> dict[str, Classifier]:
    """Train two classifiers alike: return {"": from the autoencoder, " from scratch": from random weights}.

    They have the weights of the last epoch. The head reads the [CLS] token where the model has one, else what
    `setup.pool` says. The encoder of `pretrained` is trained in place.

    Args:
        setup: its `model`, `finetuning`, `drop`, `label_smoothing` and `pool` are used.
        trial: gives seed and folder; an interrupted training is resumed.
        pretrained: the autoencoder.
        train: arrays with their classes.
        preprocessor: fitted on arrays of this kind.
        transform: augmentation; None for none.
    """
    classifiers = {}
    for name, start in (("", pretrained.encoder), (" from scratch", Encoder(setup.model))):
        model = Classifier(start, train.classes, pool="cls" if setup.model.cls_token else setup.pool)
        examples = DatasetExamples(
            train.arrays, preprocessor, trial.seed, targets=train.labels, drop=setup.drop, transform=transform
        )
        objective = Supervised(model, partial(classification, label_smoothing=setup.label_smoothing))
        trial.fit(objective, examples, setup.finetuning, stage=f"finetuning{name}")
        classifiers[name] = model
    return classifiers


def predict_arrays(
    model: Classifier, arrays: ArrayDataset, preprocessor: PatchPreprocessor, config: TrainConfig, starts: int = 1
) -> np.ndarray:
    """Return the probability of each class for each of S arrays, [S, classes].

    Args:
        model, preprocessor: the classifier, and what makes its tokens.
        arrays: to classify.
        config: its batch size and device are used.
        starts: average over this many copies of each array, which start at evenly spaced cells of its first axis, with
            its beginning behind its end; 1 takes the array as it is.
    """

    def probabilities(start: int) -> np.ndarray:
        """Return class probabilities [S, classes] of arrays that start `start` of `starts` parts of their length on."""
        turned = tuple(np.roll(array, -(start * len(array) // starts), axis=0) for array in arrays.arrays)
        examples = DatasetExamples(replace(arrays, arrays=turned), preprocessor)
        return np.array(predict_each(model, examples, lambda m, batch: m(batch.inputs).softmax(-1).tolist(), config))

    return np.mean([probabilities(start) for start in range(starts)], axis=0)


def flip_and_crop(margin: int) -> Transform:
    """Return an augmentation of pictures [rows, columns, 3]: mirrored left to right at random, and moved at random.

    They are mirrored with probability 1/2, and moved by up to `margin` pixels along each axis; what enters at an edge
    is the picture's reflection there.
    """

    def transform(pictures: Sequence[np.ndarray], seeds: np.ndarray) -> Sequence[np.ndarray]:
        """Return the augmented pictures, of the same shapes; each seed fixes the changes of one picture."""
        cropped = []
        for picture, seed in zip(pictures, seeds, strict=True):
            draw = np.random.default_rng(seed)
            turned = picture[:, ::-1] if draw.random() < 0.5 else picture
            wide = np.pad(turned, ((margin, margin), (margin, margin), (0, 0)), mode="reflect")
            row, column = draw.integers(0, 2 * margin + 1, 2)
            cropped.append(wide[row : row + picture.shape[0], column : column + picture.shape[1]])
        return cropped

    return transform


def randaugment(operations: int, magnitude: int) -> Transform:
    """Return an augmentation of pictures uint8 [rows, columns, 3]: RandAugment (arXiv:1909.13719) by kornia.

    Groups of eight pictures share the random choice of operations, as kornia applies one choice to a whole batch. The
    results are float32, from 0 to 255.

    Args:
        operations: number of random operations on each picture.
        magnitude: their strength, as kornia counts it.

    Raises:
        MissingExtra: the extra `images` is not installed.
    """
    from rotarymae.errors import import_extra

    augment = import_extra("kornia.augmentation.auto", "images").RandAugment(n=operations, m=magnitude)

    def transform(pictures: Sequence[np.ndarray], seeds: np.ndarray) -> Sequence[np.ndarray]:
        """Return the augmented pictures, of one shape; the first seed of eight pictures fixes the changes of these."""
        augmented = []
        with torch.random.fork_rng(devices=[]):
            for start in range(0, len(pictures), 8):
                torch.default_generator.manual_seed(int(seeds[start]))
                pixels = torch.from_numpy(np.stack(pictures[start : start + 8])).permute(0, 3, 1, 2).float() / 255
                augmented.append((augment(pixels) * 255).permute(0, 2, 3, 1).numpy())
        return list(np.concatenate(augmented))

    return transform
