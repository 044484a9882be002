"""Score how badly a model predicts observations that are hidden from it: odd observations, stretches and series.

Three kinds of oddity are seen by hiding: a spike when single observations are hidden, a jump or a drift when whole
stretches are, because the rest of a stretch gives its observations away, and a frozen sensor by single observations
that are predicted too well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from rotarymae.interpolation import Interpolation, Step, standardise_truth
from rotarymae.queries import as_queries
from rotarymae.series import SeriesDataset, channel_index, rank_within

if TYPE_CHECKING:
    from rotarymae.pipeline import Pipeline

HIDDEN = 0.25  # share of a series' observations that is hidden to score what is predicted there
PASSES = 4  # passes over a series; each observation is hidden in one of them
STRETCH = 64  # consecutive observations of a channel that are hidden together, at most an eighth of the channel
RUN = 16  # consecutive observations of a channel whose losses are averaged
LEAST_SPREAD = 0.18  # standard deviation of the mean loss of `RUN` independent normal observations, in nats


def hidden_losses(pipeline: Pipeline, hidden: SeriesDataset, answer: Interpolation) -> np.ndarray:
    """Return the loss of each of n hidden observations, [n, V]: how badly the pipeline's `answer` predicts its values.

    They are negative log-likelihoods of standardised values, in nats, or squared errors for likelihood="point". Values
    far outside the training range count in full. A limit is scored as a value, as its probability cannot be compared
    with densities: an upper limit as one at the limit, or at the lower edge of the predicted 68 % band if that is
    lower; a lower limit as one at the limit, or at the upper edge if that is higher. Expected limits thus have usual
    losses.
    """
    truth = torch.from_numpy(standardise_truth(pipeline, hidden, answer, limits=False))  # a gross outlier in full
    if hidden.sides is not None:
        sides = torch.from_numpy(hidden.sides[:, : truth.shape[1]])
        lower, upper = (edge.to(truth) for edge in answer.likelihood.interval(answer.parameters, 0.68))
        truth = torch.where(sides < 0, truth.minimum(lower), torch.where(sides > 0, truth.maximum(upper), truth))
    return answer.likelihood.loss(answer.parameters, truth).numpy()


def observation_scores(pipeline: Pipeline, dataset: SeriesDataset, on_step: Step = None) -> np.ndarray:
    """Return how badly a model predicts each observation from the others of its series, in nats.

    Every observation is hidden once, together with about a quarter of its series. Which ones are hidden together
    depends only on the number of observations in the series. `on_step` is called with (steps done, steps in all).

    Returns:
        Array [observations, value columns], in the order of the data set; NaN where a series has one observation only.
        For likelihood="point" they are squared errors.
    """
    folds = np.where(np.repeat(dataset.lengths >= 2, dataset.lengths), _folds(dataset.lengths), -1)
    return _losses(pipeline, dataset, [folds == k for k in range(PASSES)], on_step)


def odd_observations(pipeline: Pipeline, dataset: SeriesDataset, on_step: Step = None) -> tuple[np.ndarray, np.ndarray]:
    """Return how odd each observation is, by `observation_scores`, and how odd the stretch of observations around it.

    A stretch is odd if it lies far from what the rest predicts, or is predicted too well. Stretches of consecutive
    observations of a channel are hidden, so that a jump or a drift cannot be predicted from its other half. Losses are
    averaged over runs of about 16 observations. The second score is the larger of two numbers, both in robust standard
    deviations: how far the mean loss of an observation's worst predicted run lies above the median of all runs of its
    channel; and, with observations hidden one by one, how far that of its best predicted run lies below the median.
    `on_step` is called with (steps done, steps in all).

    Returns:
        Two arrays [observations, value columns]; the second is NaN where a channel of a series has fewer than 16
        observations.
    """
    steps = [_part(on_step, k, 3) for k in range(3)]
    single = observation_scores(pipeline, dataset, steps[0])
    channel, group, place, count = _places(dataset)
    known = count >= RUN
    length = np.clip(count // 8, 2, STRETCH)
    badly = np.full(single.shape, -np.inf)
    for shift, step in ((0, steps[1]), (1, steps[2])):  # by half a stretch
        # Channels are hidden at different times, so that one helps to predict the other.
        fold = ((2 * place + shift * length) // (2 * length) + channel) % PASSES
        losses = _losses(pipeline, dataset, [known & (fold == k) for k in range(PASSES)], step)
        badly = np.fmax(badly, _run_means(losses, group, place, count, np.maximum))
    well = _run_means(single, group, place, count, np.minimum)
    stretch = np.full(single.shape, np.nan)
    for c in np.unique(channel[known]):
        rows = known & (channel == c)
        stretch[rows] = np.maximum(_deviations(badly[rows]), _deviations(-well[rows]))
    return single, stretch


def anomaly_score(pipeline: Pipeline, dataset: SeriesDataset, on_step: Step = None) -> np.ndarray:
    """Return how unusual each series is for a model, one score per series in nats: the mean of `observation_scores`.

    The mean is over observations and value columns. A high score marks a series unlike those of pre-training, a
    candidate for an anomaly. A series of one observation gets NaN.
    """
    scores = observation_scores(pipeline, dataset, on_step).mean(1)
    return np.add.reduceat(scores, dataset.offsets[:-1]) / dataset.lengths


def _losses(pipeline: Pipeline, dataset: SeriesDataset, masks: Sequence[np.ndarray], on_step: Step) -> np.ndarray:
    """Hide the observations of each mask in turn, predict them, and return the `hidden_losses` of all n, [n, V].

    Args:
        masks: bool [n] each; no observation is in two of them, and no series is hidden as a whole. The losses of those
            in none are NaN.
        on_step: called with (steps done, steps in all).
    """
    series = np.repeat(np.arange(len(dataset)), dataset.lengths)
    scores = np.full((len(series), len(pipeline.predicted_names(dataset))), np.nan)
    for k, mask in enumerate(masks):
        usable = np.unique(series[mask])
        if not len(usable):
            continue
        inside = np.isin(series, usable)
        part = dataset.select(usable)
        visible, hidden = part.mask_observations(~mask[inside]), part.mask_observations(mask[inside])
        queries = as_queries(hidden, pipeline.preprocessor)  # pyright: ignore
        answer = pipeline.answer(visible, queries, _part(on_step, k, len(masks)))
        scores[mask] = hidden_losses(pipeline, hidden, answer)
    return scores


def _places(dataset: SeriesDataset) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return four integer arrays [n] that say where each observation stands in its series and channel.

    They are its channel; the number of its pair of series and channel; its rank there, from 0 in order of time; and the
    number of observations of the pair.
    """
    channel = channel_index(dataset).astype(np.int64)
    series = np.repeat(np.arange(len(dataset)), dataset.lengths)
    _, group, count = np.unique(series * (channel.max() + 1) + channel, return_inverse=True, return_counts=True)
    return channel, group, rank_within(group, np.asarray(dataset.times)), count[group]


def _run_means(
    losses: np.ndarray, group: np.ndarray, place: np.ndarray, count: np.ndarray, extreme: np.ufunc
) -> np.ndarray:
    """Return the mean loss of a run of neighbouring observations around each, [n, V]: the more extreme of two runs.

    The runs of a channel of a series begin every 16 observations, and once more shifted by half of that; the first and
    the last may be shorter or longer. Losses are [n, V]; one that is NaN makes its runs NaN.

    Args:
        group, place, count: int [n], the number of an observation's pair of series and channel, its rank there from 0,
            and the number of observations of the pair.
        extreme: np.maximum or np.minimum.
    """
    means = []
    for shift in (0, RUN // 2):
        run = np.minimum((place + shift) // RUN, np.maximum(count // RUN - 1, 0))  # the last one is longer
        _, cell = np.unique(np.stack([group, run]), axis=1, return_inverse=True)
        size = np.bincount(cell)
        each = [np.bincount(cell, column) / size for column in losses.T]
        means.append(np.stack(each, 1)[cell])
    return extreme(*means)


def _deviations(means: np.ndarray) -> np.ndarray:
    """Return how far each value [n, V] lies above its column's median, over the column's robust standard deviation.

    The deviation is the distance from the median to the upper quartile, over 0.6745; it is at least `LEAST_SPREAD`.
    """
    median, upper = np.quantile(means, (0.5, 0.75), axis=0)
    return (means - median) / np.maximum((upper - median) / 0.6745, LEAST_SPREAD)


def _folds(lengths: np.ndarray) -> np.ndarray:
    """Draw the pass (0 to 3) in which each observation is hidden, int [n]; series of equal length get the same draw."""
    owner = np.repeat(np.arange(len(lengths)), lengths)
    random = np.random.default_rng(0).random(int(lengths.max()))
    return rank_within(owner, random[rank_within(owner, np.zeros(len(owner)))]) % PASSES


def _part(on_step: Step, number: int, parts: int) -> Step:
    """Return a callback for part `number` (from 0) of equal parts of a job; None if `on_step` is None.

    Called with (steps done, steps in all) of the part, it calls `on_step` with those of the whole job.
    """
    return on_step and (lambda done, total: on_step(number * total + done, parts * total))
