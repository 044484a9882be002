"""Score how badly a model predicts observations that are hidden from it: unusual series score high."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch

from rotarymae.interpolation import Interpolation, standardise_truth
from rotarymae.queries import as_queries
from rotarymae.series import SeriesDataset

if TYPE_CHECKING:
    from rotarymae.pipeline import Pipeline

HIDDEN = 0.25  # share of a series' observations that is hidden to score what is predicted there
PASSES = 4  # passes over a series; each observation is hidden in one of them


def hidden_losses(pipeline: Pipeline, hidden: SeriesDataset, answer: Interpolation) -> np.ndarray:
    """Return the loss of each hidden observation: how badly the model predicted its values, in nats.

    Args:
        hidden: the n observations that the model did not see, with V value columns.
        answer: the model's predictions at their times.

    Returns:
        Array [n, V]: negative log-likelihoods of standardised values, or squared errors for likelihood="point".
    """
    truth = standardise_truth(pipeline, hidden, answer, limits=False)  # a gross outlier scores by its size
    return answer.scaled.likelihood.loss(answer.scaled.parameters, torch.from_numpy(truth)).numpy()


def observation_scores(
    pipeline: Pipeline, dataset: SeriesDataset, on_step: Callable[[int, int], None] | None = None
) -> np.ndarray:
    """Return how badly each observation is predicted from the others of its series, in nats.

    Every observation is hidden once, together with about a quarter of its series. Which ones are hidden together
    depends only on the number of observations in the series.

    Args:
        on_step: called with (steps done, steps in all).

    Returns:
        Array [observations, value columns], in the order of the data set; NaN where a series has one observation only.
        There is a single column if no series has two.
    """
    series, folds = np.repeat(np.arange(len(dataset)), dataset.lengths), _folds(dataset.lengths)
    several, scores = dataset.lengths >= 2, None
    for k in range(PASSES):
        usable = np.unique(series[(folds == k) & several[series]])
        if not len(usable):
            continue
        inside = np.isin(series, usable)
        part, late = dataset.select(usable), folds[inside] == k
        visible, hidden = part.mask_observations(~late), part.mask_observations(late)
        step = None if on_step is None else _fold_progress(on_step, k)
        queries = as_queries(hidden, pipeline.preprocessor)  # pyright: ignore
        losses = hidden_losses(pipeline, hidden, pipeline.answer(visible, queries, step))
        scores = np.full((len(series), losses.shape[1]), np.nan) if scores is None else scores
        scores[np.flatnonzero(inside)[late]] = losses
    return np.full((len(series), 1), np.nan) if scores is None else scores


def anomaly_score(
    pipeline: Pipeline, dataset: SeriesDataset, on_step: Callable[[int, int], None] | None = None
) -> np.ndarray:
    """Return one anomaly score per series, array [series], in nats: the mean of its `observation_scores`.

    The mean is over observations and value columns. A high score marks a series unlike those of pre-training, a
    candidate for an anomaly. A series of one observation gets NaN.

    Args:
        on_step: called with (steps done, steps in all).
    """
    scores = observation_scores(pipeline, dataset, on_step).mean(1)
    return np.add.reduceat(scores, dataset.offsets[:-1]) / dataset.lengths


def _folds(lengths: np.ndarray) -> np.ndarray:
    """Draw the pass (0 to 3) in which each observation is hidden; series of equal length get the same draw.

    Args:
        lengths: number of observations of each series.

    Returns:
        Array with one integer for each observation, series after series.
    """
    owner = np.repeat(np.arange(len(lengths)), lengths)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    order = np.lexsort((np.random.default_rng(0).random(int(lengths.max()))[place], owner))
    rank = np.empty(len(owner), np.int64)
    rank[order] = place
    return rank % PASSES


def _fold_progress(on_step: Callable[[int, int], None], fold: int) -> Callable[[int, int], None]:
    """Return an on_step for the pass number `fold`, from 0, that reports to the one for all passes."""
    return lambda done, total: on_step(fold * total + done, PASSES * total)
