"""Batches of series and arrays as tokens: scaled, thinned, masked or with targets.

A batch is a pure function of (seed, epoch, its members); which members go together is `training.batching`'s to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from rotarymae.arrays.dataset import ArrayDataset
from rotarymae.batch import Batch, DatasetExamples
from rotarymae.counter_rng import counter_uniform
from rotarymae.errors import InputError
from rotarymae.masking import MaskBlocks, Masking, MaskRatio
from rotarymae.preprocess.base import Preprocessor
from rotarymae.preprocess.joined import drop_values, observations, split_joined
from rotarymae.preprocess.observations import ObservationPreprocessor, opens_token
from rotarymae.preprocess.patches import PatchPreprocessor
from rotarymae.preprocess.static import static_features
from rotarymae.series.dataset import SeriesDataset
from rotarymae.tokens import Tokens

Transform = Callable[[Sequence[np.ndarray], np.ndarray], Sequence[np.ndarray]]


class SeriesExamples(DatasetExamples):
    """Batches of a SeriesDataset; arguments as `DatasetExamples`."""

    dataset: SeriesDataset
    preprocessor: ObservationPreprocessor

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        columns = self.preprocessor.static
        self.static = torch.from_numpy(static_features(columns, self.dataset)) if columns else None
        self.origins = self.preprocessor.positions.origins(self.dataset)

    def tokens(self, index: np.ndarray, epoch: int | None) -> Tokens:
        drawn = None if epoch is None else counter_uniform(self.seed, epoch, index, stream=3)
        return checked(self.preprocessor.tokens(self.preprocessor.rows(self.dataset, index, self.origins, drawn)))

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
        # After hiding: what is hidden must not be carried forward.
        batch = replace(batch, inputs=self.preprocessor.complete(batch.inputs))
        features = self.preprocessor.features
        if batch.masked is not None and self.preprocessor.errors:
            batch = replace(batch, log_errors=batch.masked.values[..., features : 2 * features])
        return batch if self.static is None else replace(batch, static=self.static[torch.from_numpy(index)])

    def token_of(self, i: int) -> np.ndarray:
        """Return the token [n] that each observation of series i is part of: its own, or its time's."""
        if not self.preprocessor.join_times:
            return np.arange(self.dataset.lengths[i])
        one = self.dataset.select([i])
        return np.cumsum(opens_token(one, np.array([0]))) - 1

    def without_each(self, i: int) -> Tokens:
        """Return series i of n observations n times over, each time without another one of them."""
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
        visible, _ = self.split(tokens.rows(torch.zeros(n, dtype=torch.int64)), left_out.flatten(1))
        return self.preprocessor.complete(visible)


class ArrayExamples(DatasetExamples):
    """Batches of an ArrayDataset; arguments as `DatasetExamples`, and one more.

    Args:
        transform: augmentation of the arrays themselves, before they are scaled: given the arrays [*sizes, C] of a
            batch and one whole number [B] per array, drawn anew each epoch, to seed its random numbers with, it gives
            the new arrays. Evaluation leaves it out.
    """

    dataset: ArrayDataset
    preprocessor: PatchPreprocessor

    def __init__(self, *given: Any, transform: Transform | None = None, **options: Any) -> None:
        super().__init__(*given, **options)
        self.transform = transform

    def tokens(self, index: np.ndarray, epoch: int | None) -> Tokens:
        arrays: Sequence[np.ndarray] = [self.dataset.arrays[i] for i in index]
        if self.transform is not None and epoch is not None:
            seeds = (counter_uniform(self.seed, epoch, index, stream=4)(1)[:, 0] * 2**24).long().numpy()
            arrays = self.transform(arrays, seeds)
        return self.preprocessor(arrays)


def assemble(
    dataset: SeriesDataset,
    preprocessor: ObservationPreprocessor,
    index: np.ndarray,
    origins: np.ndarray | None = None,
) -> Tokens:
    """Return the tokens of the series at `index`, padded behind to the longest, as a model takes them.

    Args:
        origins: the times [S] from which the data set's series count; computed where they are not given.
    """
    origins = preprocessor.positions.origins(dataset) if origins is None else origins
    return checked(preprocessor(preprocessor.rows(dataset, index, origins)))


def checked(tokens: Tokens) -> Tokens:
    """Cut off padding that no row needs, and refuse NaN and infinity."""
    if tokens.padding is None:
        return tokens
    length = int(tokens.real.sum(1).max())
    observed = None if tokens.observed is None else tokens.observed[:, :length]
    return Tokens(tokens.values[:, :length], tokens.positions[:, :length], tokens.padding[:, :length], observed)


def maskable(dataset: Any, preprocessor: Preprocessor, masking: Masking) -> np.ndarray:
    """Return which series (or arrays) a mask hides something of, [S] bool.

    A share of single tokens needs two; whole times, channels or patches need two different ones.
    """
    return np.concatenate(list(_maskable(dataset, preprocessor, masking)))


def require_maskable(dataset: Any, preprocessor: Preprocessor, masking: Masking) -> None:
    """Raise InputError when a mask would hide nothing of any series; stops at the first of which it does."""
    if not any(part.any() for part in _maskable(dataset, preprocessor, masking)):
        raise InputError(
            f"masking {masking.kind!r} would hide nothing in any of the {len(dataset):,} {dataset.noun}, so that there "
            "would be nothing to learn; hide single observations instead.",
            code="nothing-to-hide",
            settings=[("masking", "ratio")],
        )


def _maskable(dataset: Any, preprocessor: Preprocessor, masking: Masking) -> Iterator[np.ndarray]:
    if isinstance(masking, MaskRatio | MaskBlocks):
        yield dataset.lengths >= 2
        return
    examples = preprocessor.examples(dataset)
    for start in range(0, len(dataset), 256):
        index = np.arange(start, min(start + 256, len(dataset)))
        units = examples.units(examples.tokens(index, None))
        yield masking(units, counter_uniform(0, -1, index)).any(1).cpu().numpy()
