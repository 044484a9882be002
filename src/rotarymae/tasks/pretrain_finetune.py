"""From a data set to a trained model: settings and what they refuse, pre-training, fine-tuning.

The command, the demo and the estimators are thin layers over this, `inference` and `interpolation`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rotarymae.batch import Examples
from rotarymae.checkpoints import ModelDirectory
from rotarymae.config import RoMAEConfig
from rotarymae.errors import InputError
from rotarymae.heads import POOLS, Classifier, Regressor
from rotarymae.masking import Masking
from rotarymae.model import Encoder, MaskedAutoencoder
from rotarymae.series import Preprocessor, SeriesDataset, SeriesExamples, plain
from rotarymae.training import Classification, Pretraining, Regression, TrainConfig, TrainResult, check_beta, fit

OnStep = Callable[[int, int, float], None]


@dataclass(frozen=True)
class Settings:
    """Everything `fit` needs beside the data; the defaults suit tables of a few thousand series on a CPU.

    Attributes:
        size: named size of the encoder.
        embed_dim, num_heads, depth: of the encoder, instead of the named size's.
        decoder_embed_dim, decoder_num_heads, decoder_depth: of the decoder, instead of tiny-shallow's.
        likelihood: "gaussian" predicts a variance with every value, which interpolation with bands needs.
        beta: of the β-NLL in pre-training (see `losses.reconstruction`); without it means that are hard to predict
            learn slowest. It means nothing to likelihood="point".
        cls_token: use a [CLS] token; without it the model sees positions only relative to each other.
        dropout, drop_path: of fine-tuning.
        masking: how pre-training hides tokens.
        pretrain, finetune: the two trainings.
        transforms: "standard", "asinh" or "none" by value name; the others are chosen by their tails.
        time_unit: the table's unit of time divided by this is a position; None measures it.
        origin: "first" counts time from each series' first observation, "zero" from the table's zero.
        channel_spacing: distance of neighbouring channels on the channel axis.
        pool: "cls" or "mean".
        label_smoothing: of classification.
        class_weights: "balanced" weighs classes by the inverse of their counts, "none" does not.
        drop, noise: augmentation in fine-tuning, see `SeriesExamples`.
    """

    size: str = "tiny-shallow"
    embed_dim: int | None = None
    num_heads: int | None = None
    depth: int | None = None
    decoder_embed_dim: int | None = None
    decoder_num_heads: int | None = None
    decoder_depth: int | None = None
    likelihood: str = "gaussian"
    beta: float = 0.5
    cls_token: bool = True
    dropout: float = 0.0
    drop_path: float = 0.0
    masking: Masking = field(default_factory=lambda: Masking("ratio", (0.3, 0.8)))
    pretrain: TrainConfig = field(default_factory=lambda: TrainConfig(epochs=20, batch_size=32))
    finetune: TrainConfig = field(
        default_factory=lambda: TrainConfig(epochs=20, batch_size=32, betas=(0.9, 0.999), keep_best=True)
    )
    transforms: dict[str, str] = field(default_factory=dict)
    time_unit: float | None = None
    origin: str = "first"
    channel_spacing: float = 1.0
    pool: str = "cls"
    label_smoothing: float = 0.0
    class_weights: str = "none"
    drop: float = 0.0
    noise: float = 0.0

    def model_config(self, axes: int, features: int) -> RoMAEConfig:
        names = ("embed_dim", "num_heads", "depth", "decoder_embed_dim", "decoder_num_heads", "decoder_depth")
        own = {name: getattr(self, name) for name in names}
        return RoMAEConfig.named(
            self.size,
            axes=axes,
            features=features,
            likelihood=self.likelihood,
            cls_token=self.cls_token,
            **{name: value for name, value in own.items() if value is not None},
        )


@dataclass(frozen=True)
class Trained:
    """A trained model, what it needs, and how the training went."""

    model: MaskedAutoencoder | Classifier | Regressor
    preprocessor: Preprocessor
    result: TrainResult
    loaded: tuple[str, ...] = ()

    @property
    def directory(self) -> ModelDirectory:
        return ModelDirectory(self.model, self.preprocessor)


def pretrain(
    dataset: SeriesDataset,
    settings: Settings,
    *,
    validation: SeriesDataset | None = None,
    folder: str | Path | None = None,
    resume: str = "never",
    on_step: OnStep | None = None,
) -> Trained:
    """A masked autoencoder of a data set. Series of one observation have nothing to hide and are left out.

    Raises:
        InputError: no series with two observations; and as `training.fit`.
    """
    preprocessor = check_settings(dataset, settings)
    usable = dataset.select(dataset.lengths >= 2) if (dataset.lengths < 2).any() else dataset
    torch.manual_seed(settings.pretrain.seed)
    model = MaskedAutoencoder(settings.model_config(preprocessor.axes, preprocessor.features))
    seed = settings.pretrain.seed
    examples = SeriesExamples(usable, preprocessor, seed, settings.masking)
    held = None
    if validation is not None and (validation.lengths >= 2).any():
        held = SeriesExamples(validation.select(validation.lengths >= 2), preprocessor, seed, settings.masking)
    objective = Pretraining(model, beta=settings.beta if settings.likelihood == "gaussian" else 0.0)
    result = fit(objective, examples, settings.pretrain, validation=held, folder=folder, resume=resume, on_step=on_step)
    return Trained(model, preprocessor, result)


def check_settings(dataset: SeriesDataset, settings: Settings) -> Preprocessor:
    """The fitted scalers, after everything that pre-training could refuse has been tried.

    Raises:
        InputError: no series with two observations; a setting that does not fit the data.
    """
    if (dataset.lengths < 2).all():
        raise InputError(
            f"none of the {len(dataset)} series to train on has two observations; pre-training hides some and predicts "
            "them from the others."
        )
    preprocessor = Preprocessor.fit(
        dataset, settings.transforms, settings.time_unit, settings.origin, settings.channel_spacing
    )
    settings.model_config(preprocessor.axes, preprocessor.features)
    if settings.pool not in POOLS:
        raise InputError(f"pool is {settings.pool!r}; wanted 'cls' or 'mean'.")
    if settings.class_weights not in ("none", "balanced"):
        raise InputError(f"class_weights is {settings.class_weights!r}; wanted 'none' or 'balanced'.")
    for name in ("dropout", "drop_path", "drop", "label_smoothing"):
        if not 0 <= getattr(settings, name) < 1:
            raise InputError(f"{name} is {getattr(settings, name)}; wanted at least 0 and less than 1.")
    check_beta(settings.beta)
    if not settings.noise >= 0:
        raise InputError(f"noise is {settings.noise}; wanted at least 0.")
    ratio = settings.masking.ratio
    if isinstance(ratio, tuple) and ratio[0] > ratio[1]:
        raise InputError(f"mask ratios from {ratio[0]} to {ratio[1]}; wanted the smaller first.")
    if settings.masking.kind == "channels" and preprocessor.channel_names is None:
        raise InputError("masking of channels, but the table has none; use masking='ratio', or name its channels.")
    return preprocessor


def check_targets(targets: Any, series: int, task: str) -> np.ndarray:
    """Labels [S] of a classification, or numbers float64 [S, outputs] of a regression (NaN where one is missing).

    Raises:
        InputError: another number of them than series; fewer than two classes, a missing label; for a regression what
            is no number, infinity, or no number at all.
    """
    if task not in ("classification", "regression"):
        raise InputError(f"task {task!r}; wanted 'classification' or 'regression'.")
    found = np.asarray(targets)
    if len(found.shape) == 0 or len(found) != series:
        came = "one value" if len(found.shape) == 0 else f"{len(found)} labels"
        raise InputError(f"{came} for {series} series; give one label for each, in their order.")
    if task == "classification":
        if found.ndim != 1:
            raise InputError(f"labels have the shape {found.shape}; wanted one for each series, ({series},).")
        missing = [i for i, label in enumerate(found) if label is None or label != label]
        if missing:
            raise InputError(f"the label of series {missing[0]} (counted from 0) is missing; {len(missing)} in all.")
        if found.dtype == object and len({isinstance(label, str) for label in found}) > 1:
            raise InputError("some labels are strings and others numbers; give all of one kind.")
        classes = np.unique(found)
        if len(classes) < 2:
            raise InputError(
                f"every series has the label {plain(classes[0])!r}; a classifier needs at least 2 classes."
            )
        return found
    try:
        numbers = found.astype(np.float64).reshape(series, -1)
    except (TypeError, ValueError):
        strange = next((label for label in found.ravel() if not _is_number(label)), found.ravel()[0])
        raise InputError(f"the label {plain(strange)!r} is no number; a regression needs numbers.") from None
    if np.isinf(numbers).any():
        raise InputError(f"the label of series {int(np.isinf(numbers).any(1).argmax())} (counted from 0) is infinite.")
    if np.isnan(numbers).all(0).any():
        raise InputError("every label is missing (NaN); a regression needs numbers.")
    return numbers


def _is_number(label: Any) -> bool:
    try:
        float(label)
    except (TypeError, ValueError):
        return False
    return True


def split_off(places: np.ndarray, classes: np.ndarray | None, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(rest, part): a random share of the places, with every class in both as far as it goes, and in `rest` always:
    a class that nothing has trained on could only be missed.

    Args:
        places: of series, among all.
        classes: [S] of all series, or None.

    Raises:
        InputError: too few for two parts.
    """
    from sklearn.model_selection import train_test_split

    by = None if classes is None else np.unique(classes, return_inverse=True)[1][places]
    if by is not None:
        counts = np.unique(by, return_counts=True)[1]
        smaller = int(min(share, 1 - share) * len(places))
        stratify = None if counts.min() < 2 or len(counts) > smaller else by
    else:
        stratify = None
    order = np.arange(len(places))
    try:
        rest, part = train_test_split(order, test_size=share, random_state=seed % 2**32, stratify=stratify)
    except ValueError:
        raise InputError(f"a share of {share} of {len(places)} series leaves too few to train on; keep less.") from None
    rest, part = np.asarray(rest), np.asarray(part)
    if by is not None:
        lost = part[~np.isin(by[part], by[rest])]
        moved = lost[np.unique(by[lost], return_index=True)[1]]
        rest, part = np.concatenate([rest, moved]), np.setdiff1d(part, moved)
    return places[np.sort(rest)], places[np.sort(part)]


def finetune(
    pretrained: Trained | ModelDirectory,
    dataset: SeriesDataset,
    targets: np.ndarray,
    settings: Settings,
    *,
    task: str = "classification",
    validation: tuple[SeriesDataset, np.ndarray] | None = None,
    folder: str | Path | None = None,
    resume: str = "never",
    on_step: OnStep | None = None,
) -> Trained:
    """A classifier or regressor that starts from all of the pre-trained encoder: projection, [CLS] and blocks.

    Args:
        pretrained: as `pretrain` gives it, or a loaded model directory. It is left as it is.
        targets: [S] labels of any kind, or numbers for task="regression".
        task: "classification" or "regression".

    Raises:
        InputError: fewer than two classes; a validation label that training lacks; and as `training.fit`.
    """
    source, preprocessor = pretrained.model, pretrained.preprocessor
    if preprocessor is None:
        raise InputError("the pre-trained model has no preprocessor; it was not made from a SeriesDataset.")
    targets = check_targets(targets, len(dataset), task)
    torch.manual_seed(settings.finetune.seed)
    encoder = copy_encoder(source, settings)
    seed = settings.finetune.seed

    def examples(data: SeriesDataset, wanted: np.ndarray, augment: bool) -> Examples:
        drop, noise = (settings.drop, settings.noise) if augment else (0.0, 0.0)
        return SeriesExamples(data, fitted, seed, targets=wanted, drop=drop, noise=noise)

    if task == "classification":
        classes, index = np.unique(targets, return_inverse=True)
        fitted = replace(preprocessor, classes=tuple(plain(name) for name in classes))
        model: Classifier | Regressor = Classifier(encoder, len(classes), settings.pool)
        weights = None
        if settings.class_weights == "balanced":
            counts = np.bincount(index)
            weights = torch.tensor(len(index) / (len(classes) * counts), dtype=torch.float32)
        objective = Classification(model, settings.label_smoothing, weights)
        train = examples(dataset, index, True)
        held = None
        if validation is not None:
            held = examples(validation[0], class_index(validation[1], classes), False)
    else:
        numbers = targets
        mean, std = float(np.nanmean(numbers)), float(np.nanstd(numbers)) or 1.0
        fitted = replace(preprocessor, target=(mean, std))
        model = Regressor(encoder, numbers.shape[1], settings.pool)
        objective = Regression(model)
        train = examples(dataset, ((numbers - mean) / std).astype(np.float32), True)
        held = None
        if validation is not None:
            wanted = check_targets(validation[1], len(validation[0]), task)
            held = examples(validation[0], ((wanted - mean) / std).astype(np.float32), False)
    loaded = tuple(f"encoder.{name}" for name in encoder.state_dict())
    result = fit(objective, train, settings.finetune, validation=held, folder=folder, resume=resume, on_step=on_step)
    return Trained(model, fitted, result, loaded)


def copy_encoder(source: torch.nn.Module, settings: Settings) -> Encoder:
    """A copy of a model's encoder, with every tensor, under the dropout of fine-tuning."""
    encoder = source if isinstance(source, Encoder) else source.encoder
    assert isinstance(encoder, Encoder), "every model of this library has an encoder"
    copy = Encoder(replace(encoder.config, dropout=settings.dropout, drop_path=settings.drop_path))
    copy.load_state_dict(encoder.state_dict())
    return copy


def class_index(labels: np.ndarray, classes: Sequence[Any] | np.ndarray) -> np.ndarray:
    """Places [S] of labels among the classes. Raises InputError naming a label that is no class."""
    places = {plain(name): i for i, name in enumerate(classes)}
    unknown = sorted({str(plain(label)) for label in labels if plain(label) not in places})
    if unknown:
        raise InputError(
            f"labels {', '.join(unknown[:5])} are none of the model's classes {', '.join(map(str, places))}."
        )
    return np.array([places[plain(label)] for label in labels], np.int64)
