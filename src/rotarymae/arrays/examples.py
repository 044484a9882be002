"""Batches of arrays as tokens: patches, standardised, masked or with targets."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rotarymae.arrays.dataset import ArrayDataset, crop
from rotarymae.arrays.scaling import ArrayPreprocessor
from rotarymae.batch import Batch, augment, check_augmentation, split_at_random
from rotarymae.counter_rng import counter_uniform
from rotarymae.errors import InputError
from rotarymae.masking import Masking
from rotarymae.tokenizers import patchify
from rotarymae.tokens import Tokens, collate

Transform = Callable[[Sequence[np.ndarray], np.ndarray], Sequence[np.ndarray]]


class ArrayExamples:
    """Batches of an ArrayDataset, as `series.SeriesExamples` makes them of series.

    Args:
        dataset: arrays; places in it are what a batch's index means.
        preprocessor: fitted on training data.
        seed: of masks and augmentation.
        masking: how patches are hidden, for pre-training; a new draw each epoch, a fixed one for evaluation.
        targets: labels (integers) or values, one row per array, for supervised training.
        drop: augmentation; up to this share of an array's patches is left out, drawn anew each epoch.
        noise: augmentation; standard deviation of normal noise added to standardised values.
        transform: augmentation of the arrays themselves, before they are scaled: given the arrays [*sizes, C] of a
            batch and one whole number [B] per array, drawn anew each epoch, to seed its random numbers with, it gives
            the new arrays. Evaluation leaves it out.
    """

    def __init__(
        self,
        dataset: ArrayDataset,
        preprocessor: ArrayPreprocessor,
        seed: int = 0,
        masking: Masking | None = None,
        targets: np.ndarray | None = None,
        drop: float = 0.0,
        noise: float = 0.0,
        transform: Transform | None = None,
    ) -> None:
        preprocessor.check(dataset)
        check_augmentation(drop, noise)
        if targets is not None and len(targets) != len(dataset):
            raise InputError(f"{len(targets)} targets for {len(dataset)} {dataset.noun}; wanted one each.")
        self.dataset = dataset
        self.preprocessor = preprocessor
        self.seed = seed
        self.masking = masking
        self.targets = None if targets is None else torch.as_tensor(targets)
        self.drop = drop
        self.noise = noise
        self.transform = transform
        self.lengths = dataset.lengths

    def identity(self) -> dict[str, Any]:
        """All that batches are made of, as JSON: a run is resumed only with the same."""
        targets = None if self.targets is None else hashlib.sha256(self.targets.numpy().tobytes()).hexdigest()
        own = {"targets": targets, "preprocessor": self.preprocessor.to_dict(), "seed": self.seed}
        own |= {"masking": None if self.masking is None else asdict(self.masking), "drop": self.drop}
        own |= {"transform": None if self.transform is None else getattr(self.transform, "__qualname__", "transform")}
        return {"arrays": self.dataset.fingerprint(), **own, "noise": self.noise}

    def names(self, index: Sequence[int] | np.ndarray) -> list[str]:
        return [str(name) for name in self.dataset.ids[np.asarray(index, np.int64)]]

    def batch(self, index: np.ndarray, epoch: int | None) -> Batch:
        arrays: Sequence[np.ndarray] = [self.dataset.arrays[i] for i in index]
        if self.transform is not None and epoch is not None:
            seeds = (counter_uniform(self.seed, epoch, index, stream=4)(1)[:, 0] * 2**24).long().numpy()
            arrays = self.transform(arrays, seeds)
        tokens = _tokens_of(arrays, self.preprocessor)
        tokens = augment(tokens, index, epoch, self.seed, self.drop, self.noise, tokens.features)
        masked = None
        if self.masking is not None:
            tokens, masked = split_at_random(tokens, index, epoch, self.seed, self.masking)
        targets = None if self.targets is None else self.targets[torch.from_numpy(index)]
        return Batch(index, tokens, masked, targets)


def array_tokens(dataset: ArrayDataset, preprocessor: ArrayPreprocessor, index: np.ndarray | Sequence[int]) -> Tokens:
    """Tokens of the arrays at `index`: standardised patches, at positions that count patches from 1 on every axis.

    Where sizes differ, rows of fewer patches are padded behind.
    """
    return _tokens_of([dataset.arrays[i] for i in index], preprocessor)


def _tokens_of(arrays: Sequence[np.ndarray], preprocessor: ArrayPreprocessor) -> Tokens:
    patch_size = preprocessor.patch_size
    scaled = [torch.from_numpy(preprocessor.scale(crop(array, patch_size))) for array in arrays]
    if len({array.shape for array in scaled}) == 1:
        return patchify(torch.stack(scaled), patch_size)
    return collate(_row(array, patch_size) for array in scaled)


def _row(array: Tensor, patch_size: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    tokens = patchify(array[None], patch_size)
    return tokens.values[0], tokens.positions[0]
