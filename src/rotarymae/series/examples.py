"""Which series go together, in which order, and how a batch is made of them.

The order is a pure function of (seed, epoch), and a batch of (seed, epoch, its series): nothing remembers where it
was, so a run can be resumed anywhere, on any number of processes and workers, with the same batches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rotarymae.batch import Batch
from rotarymae.counter_rng import counter_uniform
from rotarymae.errors import InputError
from rotarymae.masking import Masking, split
from rotarymae.series.dataset import SeriesDataset
from rotarymae.series.scaling import Preprocessor
from rotarymae.tokens import Tokens


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
        if not 0 <= drop < 1 or noise < 0:
            raise InputError(f"drop {drop}, noise {noise}; wanted 0 <= drop < 1 and noise >= 0.")
        if targets is not None and len(targets) != len(dataset):
            raise InputError(f"{len(targets)} targets for {len(dataset)} series; wanted one each.")
        self.dataset = dataset
        self.preprocessor = preprocessor
        self.seed = seed
        self.masking = masking
        self.targets = None if targets is None else torch.as_tensor(targets)
        self.drop = drop
        self.noise = noise
        self.lengths = np.asarray(dataset.lengths)

    def identity(self) -> dict[str, Any]:
        """All that batches are made of, as JSON: a run is resumed only with the same."""
        targets = None if self.targets is None else hashlib.sha256(self.targets.numpy().tobytes()).hexdigest()
        own = {"targets": targets, "preprocessor": self.preprocessor.to_dict(), "seed": self.seed}
        own |= {"masking": None if self.masking is None else asdict(self.masking), "drop": self.drop}
        return {"series": self.dataset.fingerprint(), **own, "noise": self.noise}

    def names(self, index: Sequence[int] | np.ndarray) -> list[str]:
        return [str(name) for name in self.dataset.ids[np.asarray(index, np.int64)]]

    def batch(self, index: np.ndarray, epoch: int | None) -> Batch:
        tokens = assemble(self.dataset, self.preprocessor, index)
        # Evaluation draws from a stream of its own: the same masks in every epoch and for every model.
        draw, thin, radius, angle = (
            counter_uniform(self.seed, -1 if epoch is None else epoch, index, i) for i in range(4)
        )
        if epoch is not None and self.drop > 0:
            tokens = _thin(tokens, self.drop, thin)
        if epoch is not None and self.noise > 0:
            values = tokens.values + self.noise * _normal(tokens, radius, angle)
            tokens = replace(tokens, values=values, check_values=False)
        masked = None
        if self.masking is not None:
            # One phase an epoch; evaluation draws row by row, so that its masks do not depend on anything else.
            phase = None if epoch is None else float(counter_uniform(self.seed, epoch, [-1])(1))
            mask = self.masking(tokens, draw, phase)
            # One process's part of a batch may be rows in which there is nothing to hide; its part of the loss is 0.
            tokens, masked = split(tokens, mask) if mask.any() else (tokens, _nothing(tokens))
        targets = None if self.targets is None else self.targets[torch.from_numpy(index)]
        return Batch(index, tokens, masked, targets)


def assemble(dataset: SeriesDataset, preprocessor: Preprocessor, index: np.ndarray) -> Tokens:
    """Tokens of the series at `index`, scaled, padded behind to the longest; by slices, without a loop over series."""
    lengths = dataset.offsets[index + 1] - dataset.offsets[index]
    times, channels, values = dataset.gather(index)
    channels = np.zeros(len(times), np.int64) if channels is None else channels
    values = preprocessor.values.transform(values, channels)
    first = np.cumsum(lengths) - lengths
    origins = np.zeros(len(index)) if preprocessor.positions.origin == "zero" else times[first]
    positions = place(preprocessor, times, channels, origins, lengths)
    return _padded(values, positions, lengths)


def place(
    preprocessor: Preprocessor, times: np.ndarray, channels: np.ndarray, origins: np.ndarray, lengths: np.ndarray
) -> np.ndarray:
    """Positions [n, A] of flat times and channels (from 0) of series with these origins and lengths."""
    at = preprocessor.positions.times(times, origins, lengths)
    if preprocessor.channel_names is None:
        return at[:, None]
    # Index axes count from 1: [CLS] is at 0.
    return np.stack([at, (channels + 1) * preprocessor.positions.channel_spacing], axis=1)


def _padded(values: np.ndarray, positions: np.ndarray, lengths: np.ndarray) -> Tokens:
    longest = int(lengths.max())
    if (lengths == longest).all():
        shape = (len(lengths), longest, -1)
        return Tokens(
            torch.from_numpy(values.astype(np.float32).reshape(shape)),
            torch.from_numpy(positions.astype(np.float32).reshape(shape)),
        )
    real = np.arange(longest)[None, :] < lengths[:, None]
    out = []
    for flat in (values, positions):
        table = np.zeros((len(lengths), longest, flat.shape[1]), np.float32)
        table[real] = flat
        out.append(torch.from_numpy(table))
    return Tokens(out[0], out[1], torch.from_numpy(~real))


def _nothing(tokens: Tokens) -> Tokens:
    """Tokens of as many rows with nothing in them."""
    values, positions = tokens.values[:, :1] * 0, tokens.positions[:, :1] * 0
    return Tokens(values, positions, torch.ones(values.shape[:2], dtype=torch.bool), check_values=False)


def _thin(tokens: Tokens, drop: float, draw: Callable[[int], Tensor]) -> Tokens:
    """Leaves out a random share, up to `drop`, of each row's tokens; at least one stays."""
    uniform = draw(tokens.length + 1)
    share, uniform = drop * uniform[:, :1], uniform[:, 1:]
    keep = tokens.real & (uniform >= share)
    # Whoever lost everything keeps the token that drew the largest number.
    best = uniform.masked_fill(~tokens.real, -1.0).argmax(1, keepdim=True)
    keep.scatter_(1, best, True)
    order = (~keep).to(torch.uint8).argsort(dim=1, stable=True)
    count = keep.sum(1)
    longest = int(count.max())
    padding = torch.arange(longest)[None, :] >= count[:, None]
    return replace(tokens, padding=None, check_values=False).select(order[:, :longest], padding)


def _normal(tokens: Tokens, radius: Callable[[int], Tensor], angle: Callable[[int], Tensor]) -> Tensor:
    """Standard normal numbers in the shape of the values (Box-Muller), from two streams of each row."""
    size = tokens.length * tokens.features
    away = (-2 * torch.log1p(-radius(size))).sqrt()
    return (away * torch.cos(2 * torch.pi * angle(size))).view_as(tokens.values)
