"""The trained model that a training starts from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rotarymae.arrays import ArrayPreprocessor
from rotarymae.checkpoints import ModelDirectory, open_model
from rotarymae.errors import InputError
from rotarymae.model import MaskedAutoencoder


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
