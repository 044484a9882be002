"""Answers without training: a model of drawn functions (`rotarymae.any_series`) is asked about the series of a table.

Every series is standardised by itself, a value column counts as a channel, and long series are answered in windows. An
answer does not depend on the other series of the table; only a channel that a series has no observation of is answered
by the table's median and spread.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from rotarymae.any_series import AnySeries, standardise
from rotarymae.errors import InputError
from rotarymae.interpolation import SHOWN_BANDS, Interpolation, Predicted, Step, predict_at, time_to_nearest
from rotarymae.partners.baselines import LINE, predict_simply
from rotarymae.queries import Queries, as_queries, refuse_other_times
from rotarymae.series import SeriesDataset, Windows, channel_index, hide
from rotarymae.tokens import Tokens, pad_rows
from rotarymae.training.batching import by_length

WINDOW, MAX_WINDOW = 160, 480  # observations of one channel, and of all channels, that are answered together
OVERLAP = 0.25  # share of a window that it has in common with the next
BATCH_TOKENS = 6000
QUERIES_AT_A_TIME = 1024  # of each series in one pass of the decoder
COMPARED, SHORTEST = 200, 5  # series that are compared with the line, at most; observations of each, at least
HIDDEN_SHARE = 0.1  # of their observations
MIN_SERIES_FOR_TRAINING = 100  # that may have enough in common


class UntrainedAnswers(NamedTuple):
    """Student's t at n queries of V values, standardised, and the scale that undoes it: value · width + centre."""

    parameters: Tensor  # [n, V, 3]
    centre: np.ndarray  # [n, V]
    width: np.ndarray  # [n, V]


def interpolate_any(
    model: AnySeries, dataset: SeriesDataset, queries: Queries, errors: tuple[str, ...] = (), on_step: Step = None
) -> Interpolation:
    """Predict observations at queries without training, in the table's units, with bands that include the noise.

    Args:
        dataset: the observations. Its last value columns may be standard errors, one for each other column.
        queries: times and channels for each series.
        errors: names of the columns of errors; () without.
        on_step: called with (series done, series in all), for progress bars.

    Raises:
        InputError: queries for another number of series, or at times that are not finite.
    """
    answers = ask(model, dataset, queries, errors, on_step)
    likelihood, (parameters, centre, width) = model.likelihood, answers
    std = (likelihood.interval(parameters, math.erf(1 / math.sqrt(2)))[1] - parameters[..., 0]).numpy() * width
    bands = {}
    for share in SHOWN_BANDS:
        lower, upper = likelihood.interval(parameters, share)
        bands[share] = lower.numpy() * width + centre, upper.numpy() * width + centre
    mean = likelihood.mean(parameters).numpy() * width + centre
    return Interpolation(
        time_to_nearest(dataset, queries), mean, std, Predicted(parameters, likelihood), bands, centre, width
    )


def embed_any(
    model: AnySeries, dataset: SeriesDataset, errors: tuple[str, ...] = (), on_step: Step = None
) -> np.ndarray:
    """Return one vector for each series, float32 [S, D]: the mean over its encoded observations.

    They are encoded as the decoder reads them, so that D is its width. The windows of a long series are weighted by
    their observations.

    Args:
        errors, on_step: as in `interpolate_any`.
    """
    windows = _windows(dataset, errors)
    vectors = np.zeros((len(windows.series), model.config.decoder_embed_dim))
    for index, times, channels, values, noise, padding in _batches(windows.dataset, None, errors):
        positions, scaled, relative, _ = standardise(times, channels, values, ~padding, noise)
        with torch.inference_mode():
            context = model.context(_tokens(positions, channels, scaled, relative, padding))
        encoded = context.tokens[:, -times.shape[1] :].masked_fill(padding[..., None], 0.0)
        vectors[index] = (encoded.sum(1) / (~padding).sum(1, keepdim=True)).double().numpy()
        if on_step is not None:
            on_step(int(index.max()) + 1, len(vectors))
    return windows.mean(vectors).astype(np.float32)


@dataclass(frozen=True)
class BesideLine:
    """Errors of the untrained model and of a straight line at a tenth of some series' observations, which are hidden.

    Attributes:
        series: how many the table has.
        compared: how many of these were compared.
        error, line: median absolute errors, in spreads of each channel of a series.
    """

    series: int
    compared: int
    error: float
    line: float

    def __str__(self) -> str:
        """Return a sentence on the errors of the model and of a straight line, and on whether training may pay."""
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
    """Hide a tenth of some series' observations; compare the model's predictions with a straight line.

    Args:
        errors: as in `interpolate_any`.

    Returns:
        The median errors; None if all series are shorter than five observations.
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


def ask(
    model: AnySeries, dataset: SeriesDataset, queries: Queries, errors: tuple[str, ...] = (), on_step: Step = None
) -> UntrainedAnswers:
    """Return the model's predictions, standardised, in the order of the queries, and the scales that undo this.

    Arguments and errors are those of `interpolate_any`; the model is left in evaluation mode.
    """
    if len(queries.offsets) != len(dataset) + 1:
        raise InputError(f"queries are for {len(queries.offsets) - 1} series; the data set has {len(dataset)}.")
    refuse_other_times(queries)
    windows, fade = _windows(dataset, errors), None
    if len(windows.series) > len(dataset):
        queries, fade = queries.of_windows(windows)
    part, V = windows.dataset, len(dataset.value_names) - len(errors)
    typical = _typical(dataset, V)
    numbers = channel_index(queries).astype(np.int64)[:, None] * V + np.arange(V)
    lengths = np.diff(queries.offsets)
    parameters = torch.zeros(*numbers.shape, model.likelihood.outputs, dtype=torch.float64)
    centre, width = np.zeros(numbers.shape), np.zeros(numbers.shape)
    done, model = 0, model.eval()
    for index, times, channels, values, noise, padding in _batches(part, lengths, errors):
        at = np.concatenate([np.arange(*queries.offsets[i : i + 2]) for i in index])
        if not len(at):
            continue
        positions, scaled, relative, scale = standardise(times, channels, values, ~padding, noise)
        row = np.repeat(np.arange(len(index)), lengths[index])
        moved = (queries.times[at] - scale.origin.numpy()[row]) / scale.unit.numpy()[row]
        places = np.stack([np.repeat(moved, V), numbers[at].ravel() + 1.0], 1).astype(np.float32)
        query_positions, query_padding = pad_rows(places, lengths[index] * V)
        visible = _tokens(positions, channels, scaled, relative, padding)
        with torch.inference_mode():
            answers = predict_at(model, visible, query_positions, query_padding, QUERIES_AT_A_TIME).parameters[:, :, 0]
        parameters[at] = (
            (answers.flatten(0, 1) if query_padding is None else answers[~query_padding]).double().unflatten(0, (-1, V))
        )
        c, w = (_with_absent(part, typical[i], channels, padding) for i, part in enumerate((scale.centre, scale.width)))
        centre[at], width[at] = c[row[:, None], numbers[at]], w[row[:, None], numbers[at]]
        done += len(index)
        if on_step is not None:
            on_step(done, len(part))
    if fade is not None:
        # Two windows may have other scales: their answers are mixed in the table's units.
        mixed = torch.from_numpy(fade.mixed(_rescaled(parameters, width, centre).numpy()))
        centre, width = np.moveaxis(fade.mixed(np.stack([centre, width], -1)), -1, 0)
        parameters = _rescaled(mixed, 1 / width, -centre / width)
    return UntrainedAnswers(parameters, centre, width)


def _rescaled(parameters: Tensor, factor: np.ndarray, shift: np.ndarray) -> Tensor:
    """Return Student's t parameters [n, V, 3] after a change of units: value · factor + shift.

    Args:
        factor, shift: [n, V].
    """
    location, log_scale, freedom = parameters.unbind(-1)
    location = location * torch.from_numpy(factor) + torch.from_numpy(shift)
    return torch.stack([location, log_scale + 2 * torch.from_numpy(factor).log(), freedom], -1)


def _windows(dataset: SeriesDataset, errors: tuple[str, ...]) -> Windows:
    """Cut series that are longer than those in the model's training into overlapping windows.

    Args:
        errors: names of the last value columns, which are standard errors.
    """
    columns = len(dataset.value_names) - len(errors)
    channels = 1 if dataset.channel_names is None else len(dataset.channel_names)
    window = max(2, min(WINDOW * channels, MAX_WINDOW // columns))
    return Windows.cut(dataset, window, int(OVERLAP * window))


def _batches(dataset: SeriesDataset, queries: np.ndarray | None, errors: tuple[str, ...]) -> Iterator[tuple]:
    """Yield batches of series of similar length.

    Each is (index [B], times, channels, values, standard errors or None, padding [B, N]). An observation with several
    values becomes one observation for each.

    Args:
        queries: number of queries of each series, which count for the size of a batch; None without queries.
        errors: names of the last value columns, which are standard errors.
    """
    V = len(dataset.value_names) - len(errors)
    lengths = np.asarray(dataset.lengths)
    total = lengths * V + (0 if queries is None else np.minimum(queries * V, QUERIES_AT_A_TIME))
    for index in by_length(total, batch_tokens=BATCH_TOKENS):
        times, channels, values, *_ = dataset.gather(index)
        channels = np.zeros(len(times), np.int64) if channels is None else channels.astype(np.int64)
        parts = np.split(np.asarray(values, np.float64), [V], axis=1)
        columns = [np.repeat(times, V), *(part.ravel() for part in parts if part.shape[1])]
        padded, padding = pad_rows(np.stack(columns, 1), lengths[index] * V)
        numbers = pad_rows((channels[:, None] * V + np.arange(V)).reshape(-1, 1), lengths[index] * V)[0][..., 0]
        padding = torch.zeros_like(numbers, dtype=torch.bool) if padding is None else padding
        yield index, padded[..., 0], numbers, padded[..., 1], padded[..., 2] if errors else None, padding


def _tokens(positions: Tensor, channels: Tensor, scaled: Tensor, relative: Tensor, padding: Tensor) -> Tokens:
    """Return the tokens of a batch [B, N] for the model: values with their relative noise, at a position and a channel.

    Args:
        channels: numbers from 0; tokens count them from 1.
    """
    numbers, places = torch.stack([scaled, relative], -1), torch.stack([positions, channels + 1.0], -1)
    numbers = numbers.masked_fill(padding[..., None], 0.0).float()
    return Tokens(numbers, places.masked_fill(padding[..., None], 0.0).float(), padding, check_values=False)


def _typical(dataset: SeriesDataset, V: int) -> np.ndarray:
    """Return median and spread of each channel over the table [2, channels · V], for series without that channel.

    Args:
        V: number of value columns that are not errors; those of a channel are side by side.
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


def _with_absent(scale: Tensor, typical: np.ndarray, channels: Tensor, padding: Tensor) -> np.ndarray:
    """Return the scale of all channels [B, channels], with the table's for channels that a series has not observed.

    Args:
        scale: of each series' own channels.
        typical: [channels] the table's.
        channels, padding: of the observations [B, N].
    """
    full = np.tile(typical, (len(scale), 1))
    row = torch.arange(len(scale))[:, None].expand_as(channels)[~padding].numpy()
    seen = channels[~padding].numpy()
    full[row, seen] = scale.numpy()[row, seen]
    return full
