"""Batches of series as tokens: scaled, thinned, masked or with targets.

A batch is a pure function of (seed, epoch, its series); which series go together is `training.batching`'s to say.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from rotarymae.batch import Batch, DatasetExamples
from rotarymae.counter_rng import Noise, counter_uniform
from rotarymae.series.dataset import SeriesDataset
from rotarymae.series.preprocessor import Preprocessor, opens_a_time
from rotarymae.series.static import static_features
from rotarymae.tokens import Tokens, compact, pad_rows

PACE = 4.0  # units of position after which a value that is carried forward counts as half as recent


class SeriesExamples(DatasetExamples):
    """Batches of a SeriesDataset; arguments as `DatasetExamples`."""

    dataset: SeriesDataset
    preprocessor: Preprocessor

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        columns = self.preprocessor.static
        self.static = torch.from_numpy(static_features(columns, self.dataset)) if columns else None

    def tokens(self, index: np.ndarray, epoch: int | None) -> Tokens:
        drawn = None if epoch is None else counter_uniform(self.seed, epoch, index, stream=3)
        return observed_tokens(self.dataset, self.preprocessor, index, drawn)

    def _augmented(self, tokens: Tokens, index: np.ndarray, epoch: int) -> Tokens:
        if self.preprocessor.join_times and self.drop > 0:
            tokens = drop_values(tokens, self.drop, counter_uniform(self.seed, epoch, index, stream=4))
        return super()._augmented(tokens, index, epoch)

    def units(self, tokens: Tokens) -> Tokens:
        if not self.preprocessor.join_times:
            return tokens
        return observations(tokens, len(self.preprocessor.value_columns))

    def split(self, tokens: Tokens, mask: Bool[Tensor, "B K"]) -> tuple[Tokens, Tokens]:
        return split_joined(tokens, mask) if self.preprocessor.join_times else super().split(tokens, mask)

    def batch(self, index: np.ndarray, epoch: int | None) -> Batch:
        batch = super().batch(index, epoch)
        if self.preprocessor.join_times:  # after hiding: what is hidden must not be carried forward
            batch = replace(batch, inputs=carry_forward(batch.inputs))
        features = self.preprocessor.features
        if batch.masked is not None and self.preprocessor.errors:
            batch = replace(batch, log_errors=batch.masked.values[..., features : 2 * features])
        return batch if self.static is None else replace(batch, static=self.static[torch.from_numpy(index)])

    def token_of(self, i: int) -> np.ndarray:
        """The token [n] that each observation of series i is part of: its own, or its time's."""
        if not self.preprocessor.join_times:
            return np.arange(self.dataset.lengths[i])
        times = self.dataset.times[self.dataset.offsets[i] : self.dataset.offsets[i + 1]]
        return np.cumsum(opens_a_time(np.asarray(times), np.array([0]))) - 1

    def without_each(self, i: int) -> Tokens:
        """Series i of n observations n times over, each time without another one of them, the rest where it was."""
        tokens, token = self.tokens(np.array([i]), None), torch.from_numpy(self.token_of(i))
        n = len(token)
        left_out = torch.zeros(n, tokens.length, tokens.features, dtype=torch.bool)
        if self.preprocessor.join_times:
            rows = slice(self.dataset.offsets[i], self.dataset.offsets[i + 1])
            width = len(self.preprocessor.value_columns)  # one observation's features, side by side
            assert self.dataset.channels is not None, "joined times are those of channels"
            first = torch.from_numpy(np.asarray(self.dataset.channels[rows], np.int64)) * width
            for feature in range(width):
                left_out[torch.arange(n), token, first + feature] = True
        else:
            left_out[torch.arange(n), token] = True
            left_out = left_out[..., 0]
        copies = [part.expand(n, -1, -1) for part in (tokens.values, tokens.positions)]
        visible, _ = self.split(Tokens(*copies, check_values=False), left_out.flatten(1))
        return carry_forward(visible) if self.preprocessor.join_times else visible


def assemble(
    dataset: SeriesDataset, preprocessor: Preprocessor, index: np.ndarray, drawn: Noise | None = None
) -> Tokens:
    """Tokens of the series at `index`, padded behind to the longest: scaled values, then the further inputs.

    Of series that the preprocessor does not read whole, `drawn` says which observations; without it a fixed share.
    """
    tokens = observed_tokens(dataset, preprocessor, index, drawn)
    return carry_forward(tokens) if preprocessor.join_times else tokens


def observed_tokens(
    dataset: SeriesDataset, preprocessor: Preprocessor, index: np.ndarray, drawn: Noise | None = None
) -> Tokens:
    """As `assemble`, but of joined times the values alone, NaN where a channel was not observed."""
    lengths = dataset.offsets[index + 1] - dataset.offsets[index]
    times, channels, values, _ = dataset.gather(index)
    channels = np.zeros(len(times), np.int64) if channels is None else channels
    starts = times[np.cumsum(lengths) - lengths]
    most = preprocessor.max_tokens
    if most is not None and (lengths > most).any():
        kept = thinned(lengths, most, drawn)
        times, channels, values = times[kept], channels[kept], values[kept]
        lengths = np.minimum(lengths, most)
    scaled = preprocessor.values.transform(values[:, : len(preprocessor.value_names)], channels)
    if preprocessor.errors:
        scaled = np.concatenate([scaled, preprocessor.log_errors(values, channels)], axis=1)
    if preprocessor.inputs.width:
        further = preprocessor.inputs.compute(values, channels, preprocessor.value_columns)
        scaled = np.concatenate([scaled, further], axis=1)
    origins = np.zeros(len(index)) if preprocessor.positions.origin == "zero" else starts
    if preprocessor.join_times:
        opens = opens_a_time(times, np.cumsum(lengths) - lengths)
        token = np.cumsum(opens) - 1
        joined = np.full((token[-1] + 1, len(preprocessor.channel_names or ()), values.shape[1]), np.nan)
        joined[token, channels] = scaled
        scaled, times = joined.reshape(len(joined), -1), times[opens]
        lengths = np.add.reduceat(opens.astype(np.int64), np.cumsum(lengths) - lengths)
        channels = np.zeros(len(times), np.int64)
    positions = positions_of(preprocessor, times, channels, origins, lengths)
    padded, padding = pad_rows(scaled.astype(np.float32), lengths)
    padded_positions = pad_rows(positions.astype(np.float32), lengths)[0]
    return Tokens(padded, padded_positions, padding, check_values=not preprocessor.join_times)


def observations(joined: Tokens, columns: int) -> Tokens:
    """Tokens of times [B, N, V] as B × N·V tokens of one value, at its time and channel, to be masked as such; each
    channel has so many columns of values."""
    observed = ~joined.values.isnan() & joined.real[..., None]
    channel = (1.0 + torch.arange(joined.features) // columns).expand_as(joined.values)
    positions = torch.stack([joined.positions[..., :1].expand_as(channel), channel], -1)
    return Tokens(observed.flatten(1)[..., None] * 1.0, positions.flatten(1, 2), ~observed.flatten(1))


def drop_values(joined: Tokens, most: float, draw: Noise) -> Tokens:
    """Leaves out a random share, up to `most`, of each row's values: they become NaN, and are not carried forward."""
    uniform = draw(1 + joined.length * joined.features)
    left_out = uniform[:, 1:].view(joined.values.shape) < most * uniform[:, :1, None]
    return replace(joined, values=joined.values.masked_fill(left_out, torch.nan), check_values=False)


def split_joined(joined: Tokens, mask: Bool[Tensor, "B K"]) -> tuple[Tokens, Tokens]:
    """(visible, masked) as `masking.split`, of a mask over `observations`: NaN is what belongs to the other part.

    A time of which something is hidden and something visible is a token of both.
    """
    hidden = mask.unflatten(1, (joined.length, joined.features))
    parts = []
    for kept in (~hidden, hidden):
        values = joined.values.masked_fill(~kept, torch.nan)
        part = replace(joined, values=values, check_values=False)
        parts.append(compact(part, ~values.isnan().all(-1) & joined.real))
    return parts[0], parts[1]


def carry_forward(tokens: Tokens) -> Tokens:
    """Tokens of times whose values [B, N, V] are NaN where they were not observed, with 3 V features instead.

    These are the latest value so far (0, the mean, before the first), whether it was observed at this very time, and
    how lately it was, 1 / (1 + age / PACE) (0 before the first).
    """
    observed = ~tokens.values.isnan() & tokens.real[..., None]
    order = torch.arange(tokens.length)[:, None]
    latest = torch.where(observed, order, -1).cummax(1).values
    known, at = latest >= 0, latest.clamp(min=0)
    carried = tokens.values.nan_to_num(0.0).gather(1, at) * known
    times = tokens.positions[..., :1].expand_as(carried)
    recency = known / (1 + (times - times.gather(1, at)) / PACE)
    values = torch.cat([carried, observed.to(carried.dtype), recency], -1).masked_fill(~tokens.real[..., None], 0.0)
    return replace(tokens, values=values, check_values=False)


def thinned(lengths: np.ndarray, most: int, drawn: Noise | None = None) -> np.ndarray:
    """Rows of flat series of these lengths of which `most` are kept of each longer one: one at random of each of
    `most` equal parts, in order. Without `drawn` the same of every series of a length."""
    if drawn is None:
        # Not the middles: where sensors take turns, an even stride would always meet the same one.
        share = np.broadcast_to(np.random.default_rng(0).random(most), (len(lengths), most))
    else:
        share = drawn(most).numpy()
    edges = lengths[:, None] * np.arange(most + 1) // most
    picked = edges[:, :-1] + (share * np.diff(edges)).astype(np.int64)
    within = np.where((lengths > most)[:, None], picked, np.arange(most))
    return (within + (np.cumsum(lengths) - lengths)[:, None])[np.arange(most) < lengths[:, None]]


def positions_of(
    preprocessor: Preprocessor, times: np.ndarray, channels: np.ndarray, origins: np.ndarray, lengths: np.ndarray
) -> np.ndarray:
    """Positions [n, A] of flat times and channels (from 0) of series with these origins and lengths."""
    at = preprocessor.positions.times(times, origins, lengths)
    if preprocessor.axes == 1:
        return at[:, None]
    # Index axes count from 1: [CLS] is at 0.
    return np.stack([at, (channels + 1.0) * preprocessor.positions.channel_spacing], axis=1)
