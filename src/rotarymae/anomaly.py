"""Score how badly a model predicts observations that are hidden from it: unusual series score high."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch

from rotarymae.interpolation import Interpolation, interpolate
from rotarymae.queries import as_queries
from rotarymae.series import SeriesDataset, channel_index

if TYPE_CHECKING:
    from rotarymae.pipeline import Pipeline

HIDDEN = 0.25  # share of a series' observations that is hidden to score what is predicted there
FOLDS = 4  # passes over a series; each observation is hidden in one of them


def hidden_loss(pipeline: Pipeline, hidden: SeriesDataset, answer: Interpolation) -> np.ndarray:
    """Return the mean loss [S] of the hidden observations' values in standardised units: of densities in nats.

    Args:
        hidden: what was hidden.
        answer: the model's predictions there.
    """
    preprocessor = pipeline.require_series()
    values = hidden.with_values(preprocessor.value_names).values
    truth = preprocessor.values.without_limits(values, channel_index(hidden))  # a gross outlier scores by its size
    each = answer.scaled.likelihood.loss(answer.scaled.parameters, torch.from_numpy(truth)).numpy()
    return np.add.reduceat(each.mean(1), hidden.offsets[:-1]) / hidden.lengths


def anomaly_score(
    pipeline: Pipeline, dataset: SeriesDataset, on_step: Callable[[int, int], None] | None = None
) -> np.ndarray:
    """Return how badly each series' observations are predicted from its others, in nats [S].

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
        queries = as_queries(hidden, pipeline.require_series())
        step = None if on_step is None else _fold_progress(on_step, k)
        answer = interpolate(pipeline, visible, queries, on_step=step)
        total[usable] += hidden_loss(pipeline, hidden, answer) * hidden.lengths
    return np.where(several, total / dataset.lengths, np.nan)


def _folds(lengths: np.ndarray) -> np.ndarray:
    """Return in which pass each observation is hidden [n]: at random, and alike in series of one length."""
    owner = np.repeat(np.arange(len(lengths)), lengths)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    order = np.lexsort((np.random.default_rng(0).random(int(lengths.max()))[place], owner))
    rank = np.empty(len(owner), np.int64)
    rank[order] = place
    return rank % FOLDS


def _fold_progress(on_step: Callable[[int, int], None], fold: int) -> Callable[[int, int], None]:
    return lambda done, total: on_step(fold * total + done, FOLDS * total)
