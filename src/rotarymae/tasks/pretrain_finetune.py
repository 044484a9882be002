"""From a data set to a trained model: pre-training, and fine-tuning that starts from all of the encoder."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from rotarymae.checkpoints import ModelDirectory
from rotarymae.config import RoMAEConfig
from rotarymae.errors import InputError
from rotarymae.heads import Classifier, Regressor
from rotarymae.model import Encoder, MaskedAutoencoder
from rotarymae.series import Inputs, Preprocessor, SeriesDataset, SeriesExamples, fit_static
from rotarymae.tasks.config import FitConfig
from rotarymae.tasks.cost import check_cost
from rotarymae.tasks.plan import Schedule
from rotarymae.tasks.pretrained import autoencoder_of
from rotarymae.tasks.targets import find_task
from rotarymae.training import Pretraining, TrainResult, fit

OnStep = Callable[[int, int, float], None]


@dataclass(frozen=True)
class Trained:
    """A trained model, what it needs, and how the training went.

    Attributes:
        model: the trained module.
        preprocessor: the scalers, and what decodes the outputs of a head.
        result: losses and the best epoch.
        loaded: names of the tensors that fine-tuning took from the pre-trained model.
    """

    model: MaskedAutoencoder | Classifier | Regressor
    preprocessor: Preprocessor
    result: TrainResult
    loaded: tuple[str, ...] = ()

    @property
    def directory(self) -> ModelDirectory:
        return ModelDirectory(self.model, self.preprocessor)


def prepare(dataset: SeriesDataset, config: FitConfig, start: ModelDirectory | None = None) -> Preprocessor:
    """The scalers of a training set, after everything that the trainings could refuse has been checked.

    Args:
        dataset: the training set.
        config: model, masking and training.
        start: the trained model to start from, whose scalers are used as they are.

    Raises:
        InputError: no series with two observations; an option that does not fit the data; other values or channels
            than those of `start`; a training that would not fit into memory, or would take days.
    """
    if config.pretrains and (dataset.lengths < 2).all():
        raise InputError(
            f"none of the {len(dataset):,} series to train on has two observations; pre-training hides some and "
            "predicts them from the others."
        )
    preprocessor, sizes = _new_scalers(dataset, config) if start is None else _scalers_of(start, dataset, config)
    fit_static(dataset, config.static)
    if config.masking == "channels" and preprocessor.join_times:
        raise InputError("masking of channels hides tokens, and join_times makes one token of all channels of a time.")
    if config.masking == "channels" and preprocessor.channel_names is None:
        raise InputError("masking of channels, but the table has none; use masking='ratio', or name its channels.")
    check_cost(config, sizes, preprocessor.lengths(dataset))
    return preprocessor


def _new_scalers(dataset: SeriesDataset, config: FitConfig) -> tuple[Preprocessor, RoMAEConfig]:
    preprocessor = Preprocessor.fit(
        dataset,
        dict(config.transforms or {}),
        config.time_unit,
        config.time_origin,
        config.channel_spacing,
        None if config.join_times else Inputs.fit(dataset, config.channel_one_hot, config.signal_to_noise),
        config.join_times,
    )
    sizes = config.model_config(preprocessor.axes, preprocessor.features, preprocessor.input_features)
    return replace(preprocessor, max_tokens=config.max_tokens), sizes


def _scalers_of(start: ModelDirectory, dataset: SeriesDataset, config: FitConfig) -> tuple[Preprocessor, RoMAEConfig]:
    """Those of a trained model, without what its head decoded."""
    if start.preprocessor is None:
        raise InputError("the pretrained model has no preprocessor; it was not made from series.")
    sizes = autoencoder_of(start).config if config.pretrains else _encoder(start.model).config
    if config.pool == "cls" and not sizes.cls_token:
        raise InputError("pool='cls' reads a [CLS] token and the pretrained model has none; use pool='mean'.")
    most = config.max_tokens or start.preprocessor.max_tokens
    preprocessor = replace(start.preprocessor, classes=None, target=None, static=(), max_tokens=most)
    preprocessor.check(dataset)
    return preprocessor, sizes


def pretrain(
    dataset: SeriesDataset,
    config: FitConfig,
    *,
    preprocessor: Preprocessor | None = None,
    start: ModelDirectory | None = None,
    validation: SeriesDataset | None = None,
    folder: str | Path | None = None,
    resume: str = "never",
    on_step: OnStep | None = None,
    on_resume: Callable[[str], None] | None = None,
    schedule: Schedule | None = None,
) -> Trained:
    """A masked autoencoder of a data set. Series of one observation have nothing to hide and are left out.

    Args:
        dataset: the series to train on.
        config: model, masking and training.
        preprocessor: the data set's scalers, if `prepare` has made them already.
        start: the trained model to start from, instead of random weights; it is left as it is.
        validation: series whose loss chooses the best epoch.
        folder, resume, on_step, on_resume: see `training.fit`.
        schedule: given the objective, the examples and the settings, says how many epochs are made.

    Raises:
        InputError: as `prepare` and `training.fit`.
    """
    if preprocessor is None:
        preprocessor = prepare(dataset, config, start)
    if start is not None:
        model = copy.deepcopy(autoencoder_of(start))
    else:
        with _seeded(config.seed):
            sizes = config.model_config(preprocessor.axes, preprocessor.features, preprocessor.input_features)
            model = MaskedAutoencoder(sizes)

    def examples(part: SeriesDataset) -> SeriesExamples:
        several = part.lengths >= 2
        part = part if several.all() else part.select(several)
        return SeriesExamples(part, preprocessor, config.seed, config.strategy())

    beta = config.reconstruction_beta if model.config.likelihood == "gaussian" else 0.0
    objective, data = Pretraining(model, beta=beta), examples(dataset)
    training = config.pretraining()
    result = fit(
        objective,
        data,
        training if schedule is None else schedule(objective, data, training),
        validation=None if validation is None or (validation.lengths < 2).all() else examples(validation),
        folder=folder,
        resume=resume,
        on_step=on_step,
        on_resume=on_resume,
    )
    return Trained(model, preprocessor, result)


def finetune(
    pretrained: Trained | ModelDirectory,
    dataset: SeriesDataset,
    targets: np.ndarray,
    config: FitConfig,
    *,
    task: str = "classification",
    validation: tuple[SeriesDataset, np.ndarray] | None = None,
    folder: str | Path | None = None,
    resume: str = "never",
    on_step: OnStep | None = None,
    on_resume: Callable[[str], None] | None = None,
    schedule: Schedule | None = None,
) -> Trained:
    """A classifier or regressor that starts from all of the pre-trained encoder: projection, [CLS] and blocks.

    Args:
        pretrained: as `pretrain` gives it, or a loaded model directory. It is left as it is.
        dataset: the series to train on.
        targets: [S] labels of any kind, or numbers [S] or [S, outputs] for task="regression".
        config: fine-tuning.
        task: "classification" or "regression".
        validation: series and targets whose loss chooses the best epoch.
        folder, resume, on_step, on_resume: see `training.fit`.
        schedule: given the objective, the examples and the settings, says how many epochs are made.

    Raises:
        InputError: fewer than two classes; a validation label that training lacks; and as `training.fit`.
    """
    kind = find_task(task)
    if pretrained.preprocessor is None:
        raise InputError("the pre-trained model has no preprocessor; it was not made from a SeriesDataset.")
    kind.check_config(config)
    targets = kind.check(targets, len(dataset))
    preprocessor = kind.fit(pretrained.preprocessor, targets)
    preprocessor = replace(preprocessor, static=fit_static(dataset, config.static))
    encoded, held = kind.encode(preprocessor, targets), None
    if validation is not None:
        wanted = kind.encode(preprocessor, validation[1])
        held = SeriesExamples(validation[0], preprocessor, config.seed, targets=wanted)
    with _seeded(config.seed):
        model = kind.model(copy_encoder(pretrained.model, config), preprocessor, config)
    data = SeriesExamples(dataset, preprocessor, config.seed, targets=encoded, drop=config.drop, noise=config.noise)
    objective, training = kind.objective(model, encoded, config), config.finetuning()
    result = fit(
        objective,
        data,
        training if schedule is None else schedule(objective, data, training),
        validation=held,
        folder=folder,
        resume=resume,
        on_step=on_step,
        on_resume=on_resume,
    )
    return Trained(model, preprocessor, result, tuple(f"encoder.{name}" for name in model.encoder.state_dict()))


def copy_encoder(source: torch.nn.Module, config: FitConfig) -> Encoder:
    """A copy of a model's encoder, with every tensor, under the dropout of fine-tuning."""
    encoder = _encoder(source)
    own = Encoder(replace(encoder.config, dropout=config.dropout, drop_path=config.drop_path))
    own.load_state_dict(encoder.state_dict())
    return own


def _encoder(model: torch.nn.Module) -> Encoder:
    encoder = model if isinstance(model, Encoder) else model.encoder
    assert isinstance(encoder, Encoder), "every model of this library has an encoder"
    return encoder


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """First weights depend on the seed alone, and the caller's random state stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # not torch.manual_seed: it would seed the accelerators, too
        yield
