"""Which series go together, in which order, and how a batch is made of them.

The order is a pure function of (seed, epoch), and a batch of (seed, epoch, its series): nothing remembers where it
was, so a run can be resumed anywhere, on any number of processes and workers, with the same batches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from rotarymae.batch import Batch, augment, check_augmentation, nothing, random_mask, split_at_random
from rotarymae.counter_rng import Noise, counter_uniform
from rotarymae.errors import InputError
from rotarymae.masking import Masking
from rotarymae.series.dataset import SeriesDataset
from rotarymae.series.scaling import Preprocessor, opens_a_time
from rotarymae.series.static import static_features
from rotarymae.tokens import Tokens, compact, pad_rows

PACE = 4.0  # units of position after which a value that is carried forward counts as half as recent


class SeriesExamples:
    """Batches of a SeriesDataset, scaled, and masked or with targets.

    Args:
        dataset: series; places in it are what a batch's index means.
        preprocessor: fitted on training data.
        seed: of masks and augmentation.
        masking: how tokens are hidden, for pre-training; a new draw each epoch, a fixed one for evaluation.
        targets: labels (integers) or values, one row a series, for supervised training.
        drop: augmentation; up to this share of a series' observations is left out, drawn anew each epoch.
        noise: augmentation; standard deviation of normal noise added to standardised values.
    """

    def __init__(
        self,
        dataset: SeriesDataset,
        preprocessor: Preprocessor,
        seed: int = 0,
        masking: Masking | None = None,
        targets: np.ndarray | None = None,
        drop: float = 0.0,
        noise: float = 0.0,
    ) -> None:
        preprocessor.check(dataset)
        self.static = None
        if preprocessor.static:
            self.static = torch.from_numpy(static_features(preprocessor.static, dataset))
        check_augmentation(drop, noise)
        if targets is not None and len(targets) != len(dataset):
            raise InputError(f"{len(targets)} targets for {len(dataset)} series; wanted one each.")
        self.dataset = dataset
        self.preprocessor = preprocessor
        self.seed = seed
        self.masking = masking
        self.targets = None if targets is None else torch.as_tensor(targets)
        self.drop = drop
        self.noise = noise
        self.lengths = preprocessor.lengths(dataset)

    def identity(self) -> dict[str, Any]:
        """All that batches are made of, as JSON: a run is resumed only with the same."""
        targets = None if self.targets is None else hashlib.sha256(self.targets.numpy().tobytes()).hexdigest()
        own = {"targets": targets, "preprocessor": self.preprocessor.to_dict(), "seed": self.seed}
        own |= {"masking": None if self.masking is None else asdict(self.masking), "drop": self.drop}
        return {"series": self.dataset.fingerprint(), **own, "noise": self.noise}

    def names(self, index: Sequence[int] | np.ndarray) -> list[str]:
        return [str(name) for name in self.dataset.ids[np.asarray(index, np.int64)]]

    def batch(self, index: np.ndarray, epoch: int | None) -> Batch:
        drawn = None if epoch is None else counter_uniform(self.seed, epoch, index, stream=3)
        tokens = observed_tokens(self.dataset, self.preprocessor, index, drawn)
        tokens = augment(tokens, index, epoch, self.seed, self.drop, self.noise, self.preprocessor.features)
        masked = None
        if self.masking is not None:
            split = split_joined_at_random if self.preprocessor.join_times else split_at_random
            tokens, masked = split(tokens, index, epoch, self.seed, self.masking)
        if self.preprocessor.join_times:  # after hiding: what is hidden must not be carried forward
            tokens = carry_forward(tokens)
        targets = None if self.targets is None else self.targets[torch.from_numpy(index)]
        static = None if self.static is None else self.static[torch.from_numpy(index)]
        features, log_errors = self.preprocessor.features, None
        if masked is not None and self.preprocessor.errors:
            log_errors = masked.values[..., features : 2 * features]
        return Batch(index, tokens, masked, targets, static, log_errors)


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
    times, channels, values = dataset.gather(index)
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


def observations(joined: Tokens) -> Tokens:
    """Tokens of times [B, N, V] as B × N·V tokens of one observation, at its time and feature, to be masked as such."""
    observed = ~joined.values.isnan() & joined.real[..., None]
    feature = torch.arange(1.0, joined.features + 1).expand_as(joined.values)
    positions = torch.stack([joined.positions[..., :1].expand_as(feature), feature], -1)
    return Tokens(observed.flatten(1)[..., None] * 1.0, positions.flatten(1, 2), ~observed.flatten(1))


def split_joined_at_random(
    joined: Tokens, index: np.ndarray, epoch: int | None, seed: int, masking: Masking
) -> tuple[Tokens, Tokens]:
    """As `batch.split_at_random`, of single observations of tokens of times."""
    mask = random_mask(observations(joined), index, epoch, seed, masking)
    return split_joined(joined, mask) if mask.any() else (joined, nothing(joined))


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
