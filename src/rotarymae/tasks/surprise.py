"""How surprising a series is: how badly the model foresees observations that are hidden from it."""

from __future__ import annotations

import math

import numpy as np

from rotarymae.checkpoints import ModelDirectory
from rotarymae.series import SeriesDataset, hide
from rotarymae.tasks.interpolation import Interpolation, as_queries, interpolate

HIDDEN = 0.25  # share of a series' observations that is hidden to score what is predicted there


def surprise_at(directory: ModelDirectory, hidden: SeriesDataset, found: Interpolation) -> np.ndarray:
    """Mean negative log-likelihood [S] of the hidden observations' first value, in nats, in standardised units.

    Args:
        hidden: what was hidden.
        found: the model's predictions there. Without a likelihood the mean squared error takes its place.
    """
    channels = np.zeros(len(hidden.times), np.int64) if hidden.channels is None else hidden.channels
    truth = directory.of_series().values.transform(hidden.values, channels)[:, 0]
    away = truth - found.scaled_mean[:, 0]
    if found.scaled_std is None:
        each = away**2
    else:
        std = found.scaled_std[:, 0]
        each = 0.5 * (away / std) ** 2 + np.log(std) + 0.5 * math.log(2 * math.pi)
    return np.add.reduceat(each, hidden.offsets[:-1]) / hidden.lengths


def surprise(directory: ModelDirectory, dataset: SeriesDataset, seed: int = 0) -> np.ndarray:
    """The surprise [S] of each series, with a random quarter of it hidden; NaN for one of a single observation.

    High values are of series unlike those that the model was pre-trained on: candidates for anomalies.
    """
    several = np.flatnonzero(dataset.lengths >= 2)
    found = np.full(len(dataset), np.nan)
    if len(several):
        visible, hidden, _ = hide(dataset.select(several), HIDDEN, seed)
        found[several] = surprise_at(directory, hidden, interpolate(directory, visible, as_queries(hidden)))
    return found
