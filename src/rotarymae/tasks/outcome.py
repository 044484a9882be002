"""All that a run found out: what `score` fills in, `outputs` writes, and the report reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rotarymae.partners import Predictor
from rotarymae.series import SeriesDataset
from rotarymae.tasks.config import FitConfig
from rotarymae.tasks.data import AnyDataset
from rotarymae.tasks.interpolation import Interpolation
from rotarymae.tasks.pretrain_finetune import Trained
from rotarymae.tasks.reconstruction import Reconstruction


@dataclass(frozen=True)
class Split:
    """Indices of the series that are trained on, that choose the best epoch, and that are only scored.

    Where some series have labels and others have none, these three are of the labelled ones; `unlabelled` are the
    others, which pre-training reads as well, and `left_out` those that belong to a held-out group, which nothing reads.
    """

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray
    unlabelled: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    left_out: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def pretrain(self) -> np.ndarray:
        """The series that pre-training reads."""
        return np.sort(np.concatenate([self.train, self.unlabelled]))

    @property
    def labelled(self) -> np.ndarray:
        """All series but the unlabelled ones."""
        return np.sort(np.concatenate([self.train, self.validation, self.test]))

    @property
    def scored(self) -> np.ndarray:
        """The held-out series; without any those of validation, or else those that were trained on."""
        return next((part for part in (self.test, self.validation) if len(part)), self.train)

    @property
    def scored_part(self) -> str:
        """The part that is scored: "test", "validation" or "train"."""
        return next((name for name in ("test", "validation") if len(getattr(self, name))), "train")


@dataclass
class Outcome:
    """All that a run found out.

    Attributes:
        metrics: the content of metrics.json under "split", "series", "scored_on", "classification", "regression",
            "intervals", "predictor", "model_calibration", "interpolation" and "reconstruction".
        visible, hidden: the scored series' observations that interpolation saw, and those it was asked for.
        interpolated: predictions at the hidden observations.
        reconstructions: of the scored arrays, in their order.
        predictor: what predicts, and what it was chosen among.
        predicted: its [S, classes] probabilities or [S, outputs] values of all series.
        baselines: the same of each other method, by its name, at the scored series only.
        embeddings: [S, D] of all series.
        seconds: wall time so far.
    """

    dataset: AnyDataset
    split: Split
    config: FitConfig
    metrics: dict[str, Any] = field(default_factory=dict)
    pretrained: Trained | None = None
    finetuned: Trained | None = None
    visible: SeriesDataset | None = None
    hidden: SeriesDataset | None = None
    interpolated: Interpolation | None = None
    reconstructions: list[Reconstruction] = field(default_factory=list)
    labels: np.ndarray | None = None
    predictor: Predictor | None = None
    predicted: np.ndarray | None = None
    baselines: dict[str, np.ndarray] = field(default_factory=dict)
    embeddings: np.ndarray | None = None
    seconds: float = 0.0
    command: str = ""
    warnings: list[str] = field(default_factory=list)
