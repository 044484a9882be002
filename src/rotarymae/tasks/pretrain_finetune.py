"""From a data set to a trained model: pre-training, and fine-tuning that starts from all of the encoder."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rotarymae.arrays import ArrayDataset, ArrayPreprocessor
from rotarymae.batch import Examples
from rotarymae.checkpoints import AnyPreprocessor, ModelDirectory, open_model
from rotarymae.config import Precision
from rotarymae.counter_rng import make_generator
from rotarymae.errors import InputError, InputWarning
from rotarymae.heads import Classifier, Regressor, encoder_of
from rotarymae.model import Encoder, MaskedAutoencoder, build
from rotarymae.series import Inputs, Preprocessor, SeriesDataset, Windows, fit_static
from rotarymae.tasks.config import FitConfig
from rotarymae.tasks.cost import check_memory
from rotarymae.tasks.data import AnyDataset, make_examples, maskable, require_maskable, windowed
from rotarymae.tasks.plan import Schedule
from rotarymae.tasks.targets import find_task, pool_of
from rotarymae.tasks.tuning import check_tune, freeze, merge_adapters
from rotarymae.training import Objective, Pretraining, TrainConfig, TrainResult, fit, learning

# Options that mean nothing to pictures, videos and sounds.
SERIES_ONLY = ("time_unit", "time_origin", "channel_spacing", "join_times", "channel_one_hot", "signal_to_noise")
SERIES_ONLY += ("transforms", "max_tokens", "window", "overlap", "static", "errors", "neighbours")
LONG = 8192  # observations; longer series are read in windows
WINDOWS, STEP = (4096, 2048, 1024, 512, 256), 1 << 15  # observations of a window, and of a step's windows together


@dataclass(frozen=True)
class Trained:
    """A trained model, what it needs, and how the training went.

    Attributes:
        model: the trained module.
        preprocessor: the scalers, and what decodes the outputs of a head.
        result: losses and the best epoch.
        loaded: names of the tensors that fine-tuning took from the pre-trained model.
        trained_weights: how many weights fine-tuning trained.
        precision: in which it was trained, and predicts.
    """

    model: MaskedAutoencoder | Classifier | Regressor
    preprocessor: AnyPreprocessor
    result: TrainResult
    loaded: tuple[str, ...] = ()
    trained_weights: int = 0
    precision: Precision = "auto"

    @property
    def directory(self) -> ModelDirectory:
        return ModelDirectory(self.model, self.preprocessor, self.precision)


def open_pretrained(source: Any) -> ModelDirectory:
    """A trained model with its preprocessor.

    Args:
        source: a run folder of `rotarymae fit`, a model directory, or what `checkpoints.load_directory` gave.

    Raises:
        InputError: another kind of source; a model without a preprocessor, whose series nobody could scale.
        ModelDirectoryError: as `checkpoints.load_directory`.
    """
    if isinstance(source, str | Path):
        directory = open_model(source, "pretrained")
    elif isinstance(source, ModelDirectory):
        directory = source
    else:
        raise InputError(
            f"pretrained is a {type(source).__name__}; wanted the path of a model directory, or what "
            "rotarymae.checkpoints.load_directory gives: the weights alone do not say how values are scaled."
        )
    if directory.preprocessor is None:
        raise InputError("the pretrained model has no preprocessor; it was not made from series.")
    return directory


def autoencoder_of(directory: ModelDirectory) -> MaskedAutoencoder:
    """The model of a directory, which must be one that predicts hidden observations.

    Raises:
        InputError: another kind of model.
    """
    if not isinstance(directory.model, MaskedAutoencoder):
        raise InputError(
            f"the pretrained model is a {type(directory.model).__name__}; wanted the MaskedAutoencoder that "
            "pre-training makes (the folder 'pretrained' of a run)."
        )
    return directory.model


def describe_pretrained(directory: ModelDirectory) -> str:
    """What was loaded, in words: "MaskedAutoencoder 120/2/4, all 57 tensors, values flux, channels g, r, ..."."""
    model, preprocessor = autoencoder_of(directory), directory.preprocessor
    assert preprocessor is not None
    parts = [
        f"MaskedAutoencoder {model.config.embed_dim}/{model.config.num_heads}/{model.config.depth}",
        f"all {len(model.state_dict())} tensors",
    ]
    if isinstance(preprocessor, ArrayPreprocessor):
        return ", ".join([*parts, f"{preprocessor.noun} in patches of {preprocessor.patch_size}", "its scaling"])
    parts.append(f"values {', '.join(preprocessor.value_names)}")
    if preprocessor.channel_names is not None:
        parts.append(f"channels {', '.join(map(str, preprocessor.channel_names))}")
    return ", ".join([*parts, f"its scaling (unit of time {preprocessor.positions.unit:.4g})"])


def as_configured(objective: Objective, examples: Examples, training: TrainConfig) -> TrainConfig:
    """The schedule of who sets no limit of time."""
    return training


def to_interpolate(config: FitConfig, dataset: AnyDataset) -> FitConfig:
    """The configuration of a model that has no labels to learn: `neighbours="auto"` is on, if it can be."""
    if config.neighbours != "auto" or config.pretrained is not None or not isinstance(dataset, SeriesDataset):
        return config
    return replace(config, neighbours="off" if _hides_neighbours(config, dataset.channel_names is None) else "on")


def _hides_neighbours(config: FitConfig, only_times: bool) -> bool:
    """Whether tokens cannot be told from those of joined times, which have as many inputs of other kinds."""
    return bool(config.errors) and config.signal_to_noise and only_times


def prepare(dataset: AnyDataset, config: FitConfig, start: ModelDirectory | None = None) -> AnyPreprocessor:
    """The scalers of a training set, after everything that the trainings could refuse has been checked.

    Args:
        start: the trained model to start from, whose scalers are used as they are.

    Raises:
        InputError: nothing with two tokens; an option that does not fit the data; other data than those of `start`; a
            training that would not fit into memory, or would take days.
    """
    if config.pretrains and (dataset.lengths < 2).all():
        tokens = f"patches of {dataset.patch_size}" if isinstance(dataset, ArrayDataset) else "observations"
        raise InputError(
            f"none of the {len(dataset):,} {dataset.noun} to train on has two {tokens}; pre-training hides some and "
            "predicts them from the others."
        )
    if isinstance(dataset, ArrayDataset):
        preprocessor, lengths = _array_scalers(dataset, config, start), dataset.lengths
    else:
        preprocessor = _series_scalers(dataset, config, start)
        lengths = preprocessor.lengths(preprocessor.windows(dataset).dataset)
    if start is None:
        sizes = config.model_config(preprocessor.axes, preprocessor.features, preprocessor.input_features)
    else:
        sizes = autoencoder_of(start).config if config.pretrains else encoder_of(start.model).config
        if config.pool == "cls" and not sizes.cls_token:
            raise InputError("pool='cls' reads a [CLS] token and the pretrained model has none; use pool='mean'.")
    check_tune(config.tune, sizes.depth)
    check_memory(config, sizes, lengths, dataset.noun)
    if config.pretrains:
        require_maskable(windowed(dataset, preprocessor).dataset, preprocessor, config.strategy())
    return preprocessor


def _array_scalers(dataset: ArrayDataset, config: FitConfig, start: ModelDirectory | None) -> ArrayPreprocessor:
    config.refuse_changed(SERIES_ONLY, f"{dataset.noun} have no times, channels or columns as series have")
    if config.masking == "tubes" and len(dataset.patch_size) < 3:
        raise InputError(f"masking='tubes' hides the same patches in all frames, and {dataset.noun} have none.")
    if config.masking == "channels":
        raise InputError(f"masking='channels' hides channels of series; {dataset.noun} have none as tokens.")
    if start is None:
        return ArrayPreprocessor.fit(dataset)
    preprocessor = replace(start.of_arrays(), classes=None, target=None)
    preprocessor.check(dataset)
    return preprocessor


def _series_scalers(dataset: SeriesDataset, config: FitConfig, start: ModelDirectory | None) -> Preprocessor:
    window, overlap = _choose_window(dataset, config, None if start is None else start.of_series())
    if start is None:
        inputs = None
        if not config.join_times:
            inputs = Inputs.fit(dataset, config.channel_one_hot, config.signal_to_noise, config.errors)
        times = (config.time_unit, config.time_origin, config.channel_spacing)
        values = (inputs, config.join_times, config.errors)
        windows = Windows.cut(dataset, window, overlap).dataset
        preprocessor = Preprocessor.fit(windows, dict(config.transforms or {}), *times, *values)
        preprocessor = replace(preprocessor, max_tokens=config.max_tokens, window=window, overlap=overlap)
    else:
        before = start.of_series()
        most = config.max_tokens or before.max_tokens
        fresh = {"classes": None, "target": None, "static": (), "max_tokens": most}
        preprocessor = replace(before, **fresh, window=window, overlap=overlap)
        preprocessor.check(preprocessor.windows(dataset).dataset)
    if config.pretrains:
        preprocessor = replace(preprocessor, forecasts=config.masking == "future")
    if preprocessor.axes == 1 and config.changed(["channel_spacing"]):
        text = "channel_spacing has no effect: channels are no axis of this table."
        warnings.warn(text, InputWarning, stacklevel=3)
    fit_static(dataset, config.static)
    if config.neighbours == "on" and _hides_neighbours(config, preprocessor.axes == 1):
        raise InputError(
            "neighbours reads values alone, or values joined by time, and the ratios of values to their errors are "
            "neither; give signal_to_noise=False with it, or leave neighbours or errors out."
        )
    if config.masking == "tubes":
        raise InputError("masking='tubes' hides the same patches in all frames of videos; series have none.")
    if config.masking == "channels" and preprocessor.channel_names is None:
        raise InputError("masking of channels, but the table has none; use masking='ratio', or name its channels.")
    return preprocessor


def _choose_window(dataset: SeriesDataset, config: FitConfig, before: Preprocessor | None) -> tuple[int | None, int]:
    """The window and its overlap: the given ones, those of the model to start from, or, if a series is very long and
    nothing is said of that, ones whose steps fit into 2 GB."""
    if config.window is not None:
        return config.window, config.shared
    if before is not None and before.window is not None:
        return before.window, before.overlap
    longest = int(dataset.lengths.max())
    if longest <= LONG or config.max_tokens is not None or (before is not None and before.max_tokens is not None):
        return None, 0
    if config.attention == "linear":  # which is there to read them whole
        return None, 0
    window = next((size for size in WINDOWS if size * config.batch_size <= STEP), WINDOWS[-1])
    warnings.warn(
        f"the longest series has {longest:,} observations: series are cut into windows of {window:,} that share "
        f"{window // 16} (window={window}); what lies further apart is not seen together. An even share of each series "
        f"can be read instead (max_tokens={window}).",
        InputWarning,
        stacklevel=3,
    )
    return window, window // 16


@learning()
def pretrain(
    dataset: AnyDataset,
    config: FitConfig,
    *,
    preprocessor: AnyPreprocessor | None = None,
    start: ModelDirectory | None = None,
    validation: AnyDataset | None = None,
    schedule: Schedule = as_configured,
    **how: Any,
) -> Trained:
    """Train a masked autoencoder on a data set; series in which a mask hides nothing are left out, with a warning.

    Args:
        preprocessor: the data set's scalers, if `prepare` has made them already.
        start: the trained model to start from, instead of random weights; it is left as it is.
        validation: others, whose loss chooses the best epoch.
        schedule: given the objective, the examples and the settings, says how many epochs are made.
        how: folder, resume, on_step and on_resume, as `training.fit`.

    Raises:
        InputError: as `prepare` and `training.fit`.
    """
    if preprocessor is None:
        preprocessor = prepare(dataset, config, start)
    if start is not None:
        model = copy.deepcopy(autoencoder_of(start))
    else:
        sizes = config.model_config(preprocessor.axes, preprocessor.features, preprocessor.input_features)
        model = build(lambda: MaskedAutoencoder(sizes), make_generator(config.seed, 0))

    def examples(part: AnyDataset) -> Examples:
        return make_examples(part, preprocessor, seed=config.seed, masking=config.strategy())

    beta = config.reconstruction_beta if model.likelihood.has_spread else 0.0
    train = windowed(dataset, preprocessor).dataset
    hides = maskable(train, preprocessor, config.strategy())
    if not hides.all():
        warnings.warn(
            f"{(~hides).sum():,} of {len(train):,} {train.noun} have nothing that masking {config.masking!r} could "
            "hide, and are left out of pre-training.",
            InputWarning,
            stacklevel=2,
        )
        train = train.select(hides)
    objective, data = Pretraining(model, beta=beta), examples(train)
    held = None
    if validation is not None:
        validation = windowed(validation, preprocessor).dataset
        hides = maskable(validation, preprocessor, config.strategy())
        held = examples(validation.select(hides)) if hides.any() else None
    result = fit(objective, data, schedule(objective, data, config.pretraining()), validation=held, **how)
    return Trained(model, preprocessor, result, precision=config.precision)


@learning()
def finetune(
    pretrained: Trained | ModelDirectory,
    dataset: AnyDataset,
    targets: np.ndarray,
    config: FitConfig,
    *,
    task: str = "classification",
    validation: tuple[AnyDataset, np.ndarray] | None = None,
    goes_on: bool = False,
    schedule: Schedule = as_configured,
    **how: Any,
) -> Trained:
    """A classifier or regressor that starts from all of the pre-trained encoder: projection, [CLS] and blocks.

    Args:
        pretrained: as `pretrain` gives it, or a loaded model directory. It is left as it is.
        targets: [S] labels of any kind, or numbers [S] or [S, outputs] for task="regression".
        validation: others and their targets, whose loss chooses the best epoch.
        goes_on: `pretrained` is a fine-tuned model: its head is kept, too, and what its preprocessor says of targets.
        schedule, how: as `pretrain`.

    Raises:
        InputError: fewer than two classes; a validation label that training lacks; and as `training.fit`.
    """
    kind = find_task(task)
    if pretrained.preprocessor is None:
        raise InputError("the pre-trained model has no preprocessor; it was not made from a data set.")
    kind.check_config(config)
    targets = kind.check(targets, len(dataset))
    preprocessor = pretrained.preprocessor if goes_on else kind.fit(pretrained.preprocessor, targets)
    if not goes_on and isinstance(preprocessor, Preprocessor) and isinstance(dataset, SeriesDataset):
        preprocessor = replace(preprocessor, static=fit_static(dataset, config.static))
    encoded, held = kind.encode(preprocessor, targets), None
    if validation is not None:
        windows = windowed(validation[0], preprocessor)
        wanted = kind.encode(preprocessor, validation[1])[windows.series]
        held = make_examples(windows.dataset, preprocessor, seed=config.seed, targets=wanted)
    if goes_on and config.pool == "auto":
        config = replace(config, pool=getattr(pretrained.model, "pool", "auto"))
    generator = make_generator(config.seed, 1)
    encoder = copy_encoder(pretrained.model, config)
    model = build(lambda: kind.model(Encoder(encoder.config), preprocessor, config), generator)
    model.encoder = encoder
    if goes_on:
        if not isinstance(pretrained.model, kind.head) or pretrained.model.pool != pool_of(config, preprocessor):
            raise InputError(f"the head has changed; fine-tuning can go on with a {kind.name} of the same pool alone.")
        model.load_state_dict(pretrained.model.state_dict())
    check_tune(config.tune, model.encoder.config.depth)
    freeze(model, config.tune, generator)
    trained_weights = sum(weights.numel() for weights in model.parameters() if weights.requires_grad)
    windows = windowed(dataset, preprocessor)
    shown = {"targets": encoded[windows.series], "drop": config.drop, "noise": config.noise}
    data = make_examples(windows.dataset, preprocessor, seed=config.seed, **shown)
    objective = kind.objective(model, shown["targets"], config)  # class weights count windows, as batches do
    result = fit(objective, data, schedule(objective, data, config.finetuning()), validation=held, **how)
    if config.tune == "lora":
        merge_adapters(model)
    model.requires_grad_(True)
    loaded = tuple(f"encoder.{name}" for name in model.encoder.state_dict())
    return Trained(model, preprocessor, result, loaded, trained_weights, config.precision)


def copy_encoder(source: torch.nn.Module, config: FitConfig) -> Encoder:
    """Return a copy of a model's encoder, with every tensor, under the dropout of fine-tuning."""
    encoder = encoder_of(source)
    with torch.device("meta"):  # draws no weights, which are replaced at once
        copied = Encoder(replace(encoder.config, dropout=config.dropout, drop_path=config.drop_path))
    copied.load_state_dict({name: weight.clone() for name, weight in encoder.state_dict().items()}, assign=True)
    return copied.requires_grad_(True)
