"""Which weights fine-tuning trains: all of them, the head alone, or the upper blocks."""

from __future__ import annotations

from rotarymae.errors import InputError
from rotarymae.heads import Classifier, Regressor


def check_tune(tune: str, depth: int) -> None:
    """Refuse, before anything is trained, to tune more blocks than an encoder of this depth has."""
    if tune.startswith("top:") and int(tune[4:]) > depth:
        raise InputError(f"tune={tune!r}, but the encoder has {depth} blocks; use tune='full', or fewer blocks.")


def freeze(model: Classifier | Regressor, tune: str) -> None:
    """Leave only the weights trainable that `tune` names; the head's always are."""
    if tune == "full":
        return
    model.encoder.requires_grad_(False)
    if tune.startswith("top:"):
        model.encoder.transformer.blocks[-int(tune[4:]) :].requires_grad_(True)
