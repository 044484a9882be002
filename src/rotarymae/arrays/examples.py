"""Batches of arrays as tokens: patches, standardised, masked or with targets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rotarymae.arrays.dataset import ArrayDataset, crop
from rotarymae.arrays.scaling import ArrayPreprocessor
from rotarymae.batch import DatasetExamples
from rotarymae.counter_rng import counter_uniform
from rotarymae.tokenizers import patchify
from rotarymae.tokens import Tokens, collate

Transform = Callable[[Sequence[np.ndarray], np.ndarray], Sequence[np.ndarray]]


class ArrayExamples(DatasetExamples):
    """Batches of an ArrayDataset; arguments as `DatasetExamples`, and one more.

    Args:
        transform: augmentation of the arrays themselves, before they are scaled: given the arrays [*sizes, C] of a
            batch and one whole number [B] per array, drawn anew each epoch, to seed its random numbers with, it gives
            the new arrays. Evaluation leaves it out.
    """

    dataset: ArrayDataset
    preprocessor: ArrayPreprocessor

    def __init__(self, *given: Any, transform: Transform | None = None, **options: Any) -> None:
        super().__init__(*given, **options)
        self.transform = transform

    def identity(self) -> dict[str, Any]:
        name = None if self.transform is None else getattr(self.transform, "__qualname__", "transform")
        return {**super().identity(), "transform": name}

    def tokens(self, index: np.ndarray, epoch: int | None) -> Tokens:
        arrays: Sequence[np.ndarray] = [self.dataset.arrays[i] for i in index]
        if self.transform is not None and epoch is not None:
            seeds = (counter_uniform(self.seed, epoch, index, stream=4)(1)[:, 0] * 2**24).long().numpy()
            arrays = self.transform(arrays, seeds)
        return _tokens_of(arrays, self.preprocessor)


def _tokens_of(arrays: Sequence[np.ndarray], preprocessor: ArrayPreprocessor) -> Tokens:
    """Standardised patches, at positions that count patches from 1 on every axis; shorter rows are padded behind."""
    patch_size = preprocessor.patch_size
    scaled = [torch.from_numpy(preprocessor.scale(crop(array, patch_size))) for array in arrays]
    if len({array.shape for array in scaled}) == 1:
        return patchify(torch.stack(scaled), patch_size)
    return collate(_row(array, patch_size) for array in scaled)


def _row(array: Tensor, patch_size: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    tokens = patchify(array[None], patch_size)
    return tokens.values[0], tokens.positions[0]
