"""Learn from irregular observations, images, video and audio with one model: the Rotary Masked Autoencoder."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from rotarymae import official
    from rotarymae.checkpoints import load, save
    from rotarymae.config import RoMAEConfig
    from rotarymae.estimators import RoMAEClassifier, RoMAEEmbedder, RoMAEInterpolator, RoMAERegressor
    from rotarymae.heads import Classifier, Regressor, TokenRegressor
    from rotarymae.model import Encoder, MaskedAutoencoder
    from rotarymae.series import SeriesDataset
    from rotarymae.tokens import Tokens

__all__ = [
    "Classifier",
    "Encoder",
    "MaskedAutoencoder",
    "Regressor",
    "RoMAEClassifier",
    "RoMAEConfig",
    "RoMAEEmbedder",
    "RoMAEInterpolator",
    "RoMAERegressor",
    "SeriesDataset",
    "TokenRegressor",
    "Tokens",
    "load",
    "official",
    "save",
]

# Where each public name lives. Loaded on first use: `import rotarymae` costs little, and the command's --help too.
_HOME = {
    "Classifier": "heads",
    "Encoder": "model",
    "MaskedAutoencoder": "model",
    "Regressor": "heads",
    "RoMAEClassifier": "estimators",
    "RoMAEConfig": "config",
    "RoMAEEmbedder": "estimators",
    "RoMAEInterpolator": "estimators",
    "RoMAERegressor": "estimators",
    "SeriesDataset": "series.dataset",
    "TokenRegressor": "heads",
    "Tokens": "tokens",
    "load": "checkpoints",
    "save": "checkpoints",
}


def __getattr__(name: str) -> Any:
    if name == "official":
        return importlib.import_module("rotarymae.official")
    if name in _HOME:
        return getattr(importlib.import_module(f"rotarymae.{_HOME[name]}"), name)
    raise AttributeError(f"module 'rotarymae' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
