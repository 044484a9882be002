"""Answers without training: a model of drawn functions (`rotarymae.any_series`) is asked about the series of a table.

Every series is standardised by itself, a value column counts as a channel, and long series are answered in windows. An
answer does not depend on the other series of the table; only a channel that a series has no observation of is answered
by the table's median and spread.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from rotarymae.any_series import AnySeries, Scale, standardise
from rotarymae.batch import by_length
from rotarymae.heads import mean_of_real
from rotarymae.interpolation import Interpolation, Step, bands_of, predict_at, time_to_nearest
from rotarymae.partners.baselines import LINE, predict_simply
from rotarymae.preprocess.observations import refuse_negative
from rotarymae.queries import Queries, as_queries, check_queries
from rotarymae.series import SeriesDataset, Windows, channel_index, hide
from rotarymae.series.tidy import LARGEST_FLOAT32
from rotarymae.tokens import Tokens, pad_rows

WINDOW, MAX_WINDOW = 160, 480  # observations of one channel, and of all channels, that are answered together
OVERLAP = 0.25  # share of a window that it has in common with the next
BATCH_TOKENS = 6000
QUERIES_AT_A_TIME = 1024  # of each series in one pass of the decoder
COMPARED, SHORTEST = 200, 5  # series that are compared with the line, at most; observations of each, at least
HIDDEN_SHARE = 0.1  # of their observations
MIN_SERIES_FOR_TRAINING = 100  # that may have enough in common


def interpolate_any(
    model: AnySeries, dataset: SeriesDataset, queries: Queries, errors: tuple[str, ...] = (), on_step: Step = None
) -> Interpolation:
    """Predict observations at queries without training, in the table's units, with bands that include the noise.

    A query is a time (and channel) at which values are to be predicted. In a channel of which a series has no
    observation, predictions are based on the table's median and spread of this channel.

    Args:
        model: the shipped `any-series`; it is left in evaluation mode.
        dataset: the observed series. Its last value columns may be standard errors, one for each other column, in their
            order. Limits ("<5") count as values.
        queries: times and channels for each series, at which to predict. Their positions and errors are not read.
        errors: names of the columns of errors; () without.
        on_step: called with (pieces done, pieces in all), for progress bars; a series that is too long for the model
            counts as several pieces. None for none.

    Raises:
        InputError: queries that `check_queries` refuses; a negative standard error.
    """
    check_queries(queries, dataset)
    distance = time_to_nearest(dataset, queries)
    windows, blend = _windows(dataset, errors), None
    if len(windows.series) > len(dataset):
        queries, blend = queries.of_windows(windows)
    part, V = windows.dataset, len(dataset.value_names) - len(errors)
    typical = _typical(dataset, V)
    numbers = channel_index(queries).astype(np.int64)[:, None] * V + np.arange(V)
    lengths = np.diff(queries.offsets)
    parameters = torch.zeros(*numbers.shape, model.likelihood.outputs, dtype=torch.float64)
    centre, width = np.zeros(numbers.shape), np.zeros(numbers.shape)
    model = model.eval()
    for index, visible, channels, scale in _batches(part, lengths, errors, on_step):
        at = np.concatenate([np.arange(*queries.offsets[i : i + 2]) for i in index])
        if not len(at):
            continue
        row = np.repeat(np.arange(len(index)), lengths[index])
        moved = (queries.times[at] - scale.origin.numpy()[row]) / scale.unit.numpy()[row]
        moved = moved.clip(-LARGEST_FLOAT32, LARGEST_FLOAT32)  # nothing is known so far away, nor farther
        places = np.stack([np.repeat(moved, V), numbers[at].ravel() + 1.0], 1).astype(np.float32)
        query_positions, query_padding = pad_rows(places, lengths[index] * V)
        with torch.inference_mode():
            answers = predict_at(model, visible, query_positions, query_padding, QUERIES_AT_A_TIME)[:, :, 0]
        answers = answers.flatten(0, 1) if query_padding is None else answers[~query_padding]
        parameters[at] = answers.double().unflatten(0, (-1, V))
        c, w = (
            _with_absent(theirs, typical[i], channels, visible.real)
            for i, theirs in enumerate((scale.centre, scale.width))
        )
        centre[at], width[at] = c[row[:, None], numbers[at]], w[row[:, None], numbers[at]]
    if blend is not None:
        # Two windows may have other scales: their answers are mixed in the table's units.
        mixed = torch.from_numpy(blend.mixed(_rescaled(parameters, width, centre).numpy()))
        centre, width = np.moveaxis(blend.mixed(np.stack([centre, width], -1)), -1, 0)
        parameters = _rescaled(mixed, 1 / width, -centre / width)
    likelihood = model.likelihood
    mean = likelihood.mean(parameters).numpy() * width + centre
    std = (likelihood.interval(parameters, math.erf(1 / math.sqrt(2)))[1] - parameters[..., 0]).numpy() * width
    bands = bands_of(likelihood, parameters, lambda edge: edge * width + centre)
    return Interpolation(distance, mean, std, parameters, likelihood, bands, centre, width)


def embed_any(
    model: AnySeries, dataset: SeriesDataset, errors: tuple[str, ...] = (), on_step: Step = None
) -> np.ndarray:
    """Return one vector for each of S series, float32 [S, D]: the mean over its encoded observations.

    The observations are encoded for the model's decoder, and D is the decoder's width. A long series is encoded in
    pieces; the mean is over the observations of all pieces. `errors` names the last value columns if these are standard
    errors; `on_step` is called with (pieces done, pieces in all).
    """
    windows, model = _windows(dataset, errors), model.eval()
    vectors = np.zeros((len(windows.series), model.config.decoder_embed_dim))
    for index, visible, _, _ in _batches(windows.dataset, None, errors, on_step):
        with torch.inference_mode():
            context = model.context(visible)
        vectors[index] = mean_of_real(context.tokens[:, -visible.length :], visible.padding).double().numpy()
    return windows.mean(vectors).astype(np.float32)


@dataclass(frozen=True)
class BesideLine:
    """Errors of `any-series` and of a straight line at observations that were hidden from both.

    Attributes:
        series: number of series of the table.
        compared: number of these whose observations were hidden, a tenth of each.
        error, line: median absolute error of the model and of the line, in spreads of each channel (`standardise`).
    """

    series: int
    compared: int
    error: float
    line: float

    def __str__(self) -> str:
        """Return a sentence that compares the model's error with that of straight lines between observations.

        It also says whether training on this table may be worth its time. It has no full stop.
        """
        said = (
            f"with a tenth of the observations of {self.compared:,} series hidden, the median error is "
            f"{self.error:.2g} of a series' spread, and the straight line's {self.line:.2g}"
        )
        if self.error > self.line:
            return f"{said}; the line is nearer, so a training on this table (rotarymae fit) may pay"
        if self.series >= MIN_SERIES_FOR_TRAINING:
            return f"{said}; a training on this table (rotarymae fit) may pay if its {self.series:,} series are alike"
        return f"{said}; so few series ({self.series:,}) seldom pay for a training"


def beside_line(model: AnySeries, dataset: SeriesDataset, errors: tuple[str, ...] = ()) -> BesideLine | None:
    """Hide a tenth of some series' observations, predict them by the model and a straight line, and compare the errors.

    At most 200 series are used, and in each call the same observations are hidden. `errors` names the last value
    columns if these are standard errors.

    Returns:
        The median absolute error of each, in spreads of the channel (`standardise`), and the numbers of series in the
        table and in the comparison. None if all series are shorter than five observations.
    """
    long = np.flatnonzero(np.asarray(dataset.lengths) >= SHORTEST)
    if not len(long):
        return None
    chosen = long[np.unique(np.linspace(0, len(long) - 1, COMPARED).astype(int))]
    visible, hidden, _ = hide(dataset.select(chosen), HIDDEN_SHARE)
    answer = interpolate_any(model, visible, as_queries(hidden), errors)
    names = dataset.value_names[: answer.mean.shape[1]]
    seen, truth = visible.with_values(names), hidden.with_values(names)
    guesses = answer.mean, predict_simply([LINE], seen, seen, truth)[LINE]
    away = [np.abs(guess - np.asarray(truth.values, np.float64)) / answer.width for guess in guesses]
    ours, line = (float(np.nanmedian(each)) for each in away)
    return BesideLine(len(dataset), len(chosen), ours, line)


def _rescaled(parameters: Tensor, factor: np.ndarray, shift: np.ndarray) -> Tensor:
    """Return Student's t parameters [n, V, 3] for value · factor + shift (both [n, V], factor > 0), from the value's.

    The three parameters are those of `likelihoods.StudentT`; only the mean and the log squared scale change.
    """
    location, log_scale, freedom = parameters.unbind(-1)
    location = location * torch.from_numpy(factor) + torch.from_numpy(shift)
    return torch.stack([location, log_scale + 2 * torch.from_numpy(factor).log(), freedom], -1)


def _windows(dataset: SeriesDataset, errors: tuple[str, ...]) -> Windows:
    """Cut long series into overlapping pieces, about as long as the series in the model's training; others stay whole.

    A piece has 160 observations for each channel, but at most 480 values in all. It shares a quarter with the next
    piece.

    Args:
        dataset: the series.
        errors: names of the value columns that hold standard errors, which do not count as values.

    Raises:
        InputError: a negative standard error.
    """
    refuse_negative(dataset, errors)
    columns = len(dataset.value_names) - len(errors)
    channels = 1 if dataset.channel_names is None else len(dataset.channel_names)
    window = max(2, min(WINDOW * channels, MAX_WINDOW // columns))
    return Windows.cut(dataset, window, int(OVERLAP * window))


def _batches(
    dataset: SeriesDataset, queries: np.ndarray | None, errors: tuple[str, ...], on_step: Step
) -> Iterator[tuple[np.ndarray, Tokens, Tensor, Scale]]:
    """Yield batches of series of similar length, as the model's tokens: one value per token, padded to N tokens.

    An observation with V values becomes V tokens, in V channels of its series.

    Args:
        dataset: the series.
        queries: number of times at which each series is predicted, which count for the size of a batch; None for none.
        errors: names of the last value columns, if they hold standard errors; they get no tokens.
        on_step: called with (series yielded, series in all) when the caller has finished a batch; None for none.

    Yields:
        (index, tokens, channels, scale): the numbers of the series, int [B]; the model's tokens [B, N], which hold the
        standardised value and the relative noise at (time, channel from 1); the channel numbers from 0, [B, N]; and
        what undoes the standardisation of each series.
    """
    V = len(dataset.value_names) - len(errors)
    lengths = np.asarray(dataset.lengths)
    total = lengths * V + (0 if queries is None else np.minimum(queries * V, QUERIES_AT_A_TIME))
    done = 0
    for index in by_length(total, batch_tokens=BATCH_TOKENS):
        times, channels, values, *_ = dataset.gather(index)
        channels = np.zeros(len(times), np.int64) if channels is None else channels.astype(np.int64)
        parts = np.split(np.asarray(values, np.float64), [V], axis=1)
        columns = [np.repeat(times, V), *(part.ravel() for part in parts if part.shape[1])]
        padded, padding = pad_rows(np.stack(columns, 1), lengths[index] * V)
        numbers, _ = pad_rows((channels[:, None] * V + np.arange(V)).ravel(), lengths[index] * V)
        padding = torch.zeros_like(numbers, dtype=torch.bool) if padding is None else padding
        times, values, noise = padded[..., 0], padded[..., 1], padded[..., 2] if errors else None
        positions, scaled, relative, scale = standardise(times, numbers, values, ~padding, noise)
        features, places = torch.stack([scaled, relative], -1), torch.stack([positions, numbers + 1.0], -1)
        features, places = (part.masked_fill(padding[..., None], 0.0).float() for part in (features, places))
        yield index, Tokens(features, places, padding, check_values=False), numbers, scale
        done += len(index)
        if on_step is not None:
            on_step(done, len(dataset))


def _typical(dataset: SeriesDataset, V: int) -> np.ndarray:
    """Return the median and the spread of each channel over all series of a table, float64 [2, channels · V].

    They replace the statistics of a series in channels of which it has no observation. The spread is the distance from
    the median within which 68 % of the values lie, or 1 if that is 0. A channel without values has the median 0 and the
    spread 1. The first V value columns are used; those of a channel are side by side. Of a large table only
    `SeriesDataset.sample` is read.
    """
    some = dataset.sample()
    channels, values = channel_index(some), np.asarray(some.values, np.float64)[:, :V]
    count = 1 if dataset.channel_names is None else len(dataset.channel_names)
    typical = np.stack([np.zeros(count * V), np.ones(count * V)])
    for c in np.unique(channels):
        part = values[channels == c]
        middle = np.median(part, axis=0)
        spread = np.quantile(np.abs(part - middle), 0.68, axis=0)
        typical[:, c * V : (c + 1) * V] = middle, np.where(spread > 0, spread, 1.0)
    return typical


def _with_absent(scale: Tensor, typical: np.ndarray, channels: Int[Tensor, "B N"], real: Tensor) -> np.ndarray:
    """Return a statistic (scale or location) of B series, with the table's for channels that a series lacks, [B, C].

    Args:
        scale: the statistic of each series and channel, [B, C]; without meaning where the series lacks the channel.
        typical: the table's statistic of each channel, [C], from `_typical`.
        channels: channel number of each of N observations, from 0.
        real: False where there is no observation.
    """
    full = np.tile(typical, (len(scale), 1))
    row, seen = real.nonzero()[:, 0].numpy(), channels[real].numpy()
    full[row, seen] = scale.numpy()[row, seen]
    return full
