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
    """Return the loss of each value of n hidden observations, [n, V]: how badly the pipeline predicted it in `answer`.

    Losses are negative log-likelihoods of standardised values, in nats; squared errors for likelihood="point". Gross
    outliers count in full. A limit is scored as a measured value in its place, so that its loss can be compared, and is
    ordinary if it agrees with the prediction:
    - upper limit ("<5"): the limit, or the lower edge of the predicted 68 % band, whichever is lower;
    - lower limit (">5"): the limit, or the upper edge of this band, whichever is higher.
    """
    truth = torch.from_numpy(standardise_truth(pipeline, hidden, answer, limits=False))  # a gross outlier in full
    if hidden.sides is not None:
        sides = torch.from_numpy(hidden.sides[:, : truth.shape[1]])
        lower, upper = (edge.to(truth) for edge in answer.likelihood.interval(answer.parameters, 0.68))
        truth = torch.where(sides < 0, truth.minimum(lower), torch.where(sides > 0, truth.maximum(upper), truth))
    return answer.likelihood.loss(answer.parameters, truth).numpy()


def observation_scores(pipeline: Pipeline, dataset: SeriesDataset, on_step: Step = None) -> np.ndarray:
    """Return how badly a model predicts each observation from others of its series, [observations, value columns].

    Each observation is hidden once, together with about a quarter of its series, and predicted from the rest. Which
    ones are hidden together depends only on the number of observations in the series. `on_step` is called with (steps
    done, steps in all).

    Returns:
        Negative log-likelihoods in nats, or squared errors for likelihood="point", in the order of the data set. NaN
        where a series has one observation only.
    """
    folds = np.where(np.repeat(dataset.lengths >= 2, dataset.lengths), _folds(dataset.lengths), -1)
    return _losses(pipeline, dataset, [folds == k for k in range(PASSES)], on_step)


def odd_observations(pipeline: Pipeline, dataset: SeriesDataset, on_step: Step = None) -> tuple[np.ndarray, np.ndarray]:
    """Return two scores of each observation, high where it is odd: one of itself, one of the stretch around it.

    The first is that of `observation_scores`. The second is high in stretches that are predicted badly (a jump, a
    drift) or too well (a frozen sensor), by the mean losses of runs of about 16 consecutive observations of a channel:

    - Badly: whole stretches are hidden, so that one half of a jump cannot help to predict the other. An observation
      gets the mean loss of its worst run.
    - Too well: observations are hidden as for the first score. An observation gets minus the mean loss of its best run.

    From each of these numbers the median over its channel (in all series) is subtracted, and the rest is divided by a
    robust standard deviation (`_deviations`). The second score is the larger of the two results.
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
    """Return how unusual each series is for a model, float [series]: the mean of its `observation_scores`.

    The mean is over observations and value columns, in nats (squared errors for likelihood="point"). A high score marks
    a series unlike those of pre-training, a candidate for an anomaly. A series of one observation gets NaN. `on_step`
    is called with (steps done, steps in all).
    """
    scores = observation_scores(pipeline, dataset, on_step).mean(1)
    return np.add.reduceat(scores, dataset.offsets[:-1]) / dataset.lengths


def _losses(pipeline: Pipeline, dataset: SeriesDataset, masks: Sequence[np.ndarray], on_step: Step) -> np.ndarray:
    """Hide the observations of each mask in turn, and predict them from the rest; return their losses, [n, V].

    Losses are negative log-likelihoods in nats, or squared errors for likelihood="point" (`hidden_losses`). They are
    NaN for an observation in no mask.

    Args:
        pipeline: has a trained autoencoder of series.
        dataset: n observations in all.
        masks: bool [n] each, True for observations to hide. An observation is in at most one mask, and no mask hides a
            whole series.
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
    """Locate each of n observations in its series and channel: return four integer arrays [n].

    They are the number of its channel; the number of its pair of series and channel; its rank in this pair, from 0 in
    order of time; and the number of observations of this pair.
    """
    channel = channel_index(dataset).astype(np.int64)
    series = np.repeat(np.arange(len(dataset)), dataset.lengths)
    _, group, count = np.unique(series * (channel.max() + 1) + channel, return_inverse=True, return_counts=True)
    return channel, group, rank_within(group, np.asarray(dataset.times)), count[group]


def _run_means(
    losses: np.ndarray, group: np.ndarray, place: np.ndarray, count: np.ndarray, extreme: np.ufunc
) -> np.ndarray:
    """Average losses over runs of 16 neighbouring observations; return for each observation its run's mean, [n, V].

    A run lies within one channel of one series. Each channel is cut into runs twice, the second time shifted by 8
    observations. Each observation is thus in two runs, and `extreme` chooses between their means. The first shifted run
    has only 8 observations. The last run also takes the observations left over, so that it may have up to 39. A channel
    with fewer than 32 observations is one run.

    Args:
        losses: [n, V]; a run with a NaN has the mean NaN.
        group: int [n], number of an observation's pair of series and channel.
        place: int [n], its rank in this pair, from 0 in order of time.
        count: int [n], number of observations of this pair.
        extreme: np.maximum for the larger of the two means, np.minimum for the smaller one.
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
    """Return how far each number of [n, V] lies above its column's median, in robust standard deviations of the column.

    Such a deviation is (upper quartile - median) / 0.6745, and at least 0.18 (`LEAST_SPREAD`).
    """
    median, upper = np.quantile(means, (0.5, 0.75), axis=0)
    return (means - median) / np.maximum((upper - median) / 0.6745, LEAST_SPREAD)


def _folds(lengths: np.ndarray) -> np.ndarray:
    """Assign each of n observations at random to one of four passes; return the passes' numbers, 0 to 3, int [n].

    In its pass, an observation is hidden from the model and predicted. A pass hides a quarter of each series, rounded
    up or down. Draws have a fixed seed, and depend only on lengths: in series of equal length the k-th observations are
    in the same pass. `lengths` [S] are the numbers of observations of the series; they add up to n.
    """
    owner = np.repeat(np.arange(len(lengths)), lengths)
    random = np.random.default_rng(0).random(int(lengths.max()))
    return rank_within(owner, random[rank_within(owner, np.zeros(len(owner)))]) % PASSES


def _part(on_step: Step, number: int, parts: int) -> Step:
    """Return a callback that reports the progress of one part of a job as progress of the whole job.

    The job has `parts` equal parts, and this is part `number`, from 0. The callback is called with (steps done, steps
    in all) of the part, and calls `on_step` with those of the job. It is None if `on_step` is None.
    """
    return on_step and (lambda done, total: on_step(number * total + done, parts * total))
