"""How surprising a series is: how badly the model foresees observations that are hidden from it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from rotarymae.checkpoints import ModelDirectory
from rotarymae.series import SeriesDataset, channel_index
from rotarymae.tasks.interpolation import Interpolation, interpolate
from rotarymae.tasks.queries import as_queries

HIDDEN = 0.25  # share of a series' observations that is hidden to score what is predicted there
FOLDS = 4  # every observation is hidden in one of so many readings


def surprise_at(directory: ModelDirectory, hidden: SeriesDataset, found: Interpolation) -> np.ndarray:
    """Return the mean loss [S] of the hidden observations' values in standardised units: of densities in nats.

    Args:
        hidden: what was hidden.
        found: the model's predictions there.
    """
    preprocessor = directory.of_series()
    truth = preprocessor.values.transform(hidden.with_values(preprocessor.value_names).values, channel_index(hidden))
    each = found.scaled.likelihood.loss(found.scaled.parameters, torch.from_numpy(truth)).numpy()
    return np.add.reduceat(each.mean(1), hidden.offsets[:-1]) / hidden.lengths


def surprise(
    directory: ModelDirectory, dataset: SeriesDataset, on_step: Callable[[int, int], None] | None = None
) -> np.ndarray:
    """The surprise [S] of each series: how badly its observations are foreseen from the others, in nats.

    Every observation is hidden once, with about a quarter of its series; a series of one observation has NaN. Which are
    hidden together depends on nothing but how many a series has. High values are of series unlike those that the model
    was pre-trained on: candidates for anomalies. `on_step` is called with what is done and how much there is.
    """
    series, folds = np.repeat(np.arange(len(dataset)), dataset.lengths), _folds(dataset.lengths)
    several, total = dataset.lengths >= 2, np.zeros(len(dataset))
    for k in range(FOLDS):
        usable = np.unique(series[(folds == k) & several[series]])
        if not len(usable):
            continue
        part, late = dataset.select(usable), (folds == k)[np.isin(series, usable)]
        visible, hidden = part.mask_observations(~late), part.mask_observations(late)
        queries = as_queries(hidden, directory.of_series())
        step = None if on_step is None else _within(on_step, k)
        found = interpolate(directory, visible, queries, on_step=step)
        total[usable] += surprise_at(directory, hidden, found) * hidden.lengths
    return np.where(several, total / dataset.lengths, np.nan)


def _folds(lengths: np.ndarray) -> np.ndarray:
    """In which of the readings each observation is hidden [n]: at random, and alike in series of one length."""
    owner = np.repeat(np.arange(len(lengths)), lengths)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    order = np.lexsort((np.random.default_rng(0).random(int(lengths.max()))[place], owner))
    rank = np.empty(len(owner), np.int64)
    rank[order] = place
    return rank % FOLDS


def _within(on_step: Callable[[int, int], None], reading: int) -> Callable[[int, int], None]:
    return lambda done, total: on_step(reading * total + done, FOLDS * total)
