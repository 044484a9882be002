"""Arrays → tokens: patches of cells that are standardised channel by channel."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from rotarymae.arrays.dataset import NOUNS, ArrayDataset, crop, patch_shape
from rotarymae.errors import InputError, InputWarning
from rotarymae.preprocess.base import Preprocessor, require_positive
from rotarymae.tokenizers import patchify
from rotarymae.tokens import Tokens, pad_rows

SAMPLED_CELLS = 1024  # cells of each array, to see whether arrays are in training's unit
OTHER_UNIT = 20.0  # times more or less than in training: another unit


@dataclass(eq=False, repr=False)
class PatchPreprocessor(Preprocessor):
    """The preprocessor of arrays of any number of axes.

    Attributes:
        patch_size: number of cells of a patch along each axis.
        channels: number of values of a cell.
        sample_rate: of sounds, in Hz; None of anything else.
        longest_side: pictures from files are scaled down to this, in pixels; None leaves them as they are.
        mean, std: float64 [channels], mean and standard deviation of each channel over all cells of the training
            arrays.
    """

    kind: ClassVar[str] = "patches"
    parts: ClassVar[str] = "patches"
    mean: ClassVar[Tensor]
    std: ClassVar[Tensor]

    patch_size: tuple[int, ...]
    channels: int
    sample_rate: int | None = None
    longest_side: int | None = None

    def __post_init__(self) -> None:
        """Create the buffers `mean` and `std` of the channels, NaN until they are fitted or loaded.

        Raises InputError for a patch size or number of channels below 1.
        """
        if self.channels < 1:
            raise InputError(f"the number of channels is {self.channels}; give arrays with at least 1 channel.")
        if not self.patch_size or min(self.patch_size) < 1:
            raise InputError(f"patch_size is {self.patch_size}; wanted a number of at least 1 for each axis.")
        for name in ("mean", "std"):  # NaN until they are fitted or loaded
            self.register_buffer(name, torch.full((self.channels,), torch.nan, dtype=torch.float64))

    @classmethod
    def fit(cls, dataset: ArrayDataset) -> PatchPreprocessor:
        """Create a preprocessor with mean and deviation of each channel; a constant channel gets the deviation 1.

        Args:
            dataset: the training arrays, whose patch size, sample rate and longest side it takes.

        Warns:
            InputWarning: once, for constant channels.
        """
        total, squares, count = np.zeros(dataset.channels), np.zeros(dataset.channels), 0
        # Around the first array's mean, so that squares do not lose digits.
        around = np.asarray(dataset.arrays[0], np.float64).reshape(-1, dataset.channels).mean(0)
        for array in dataset.arrays:
            away = array.reshape(-1, dataset.channels) - around
            total, squares, count = total + away.sum(0), squares + np.square(away).sum(0), count + len(away)
        mean = total / count
        std = np.sqrt(np.maximum(squares / count - mean**2, 0.0))
        constant = std <= 1e-12 * np.maximum(np.abs(mean + around), 1e-30)
        if constant.any():
            which = ", ".join(str(c) for c in np.flatnonzero(constant))
            text = f"channel {which} (counted from 0) of the {dataset.noun} never changes; leave it out."
            warnings.warn(text, InputWarning, stacklevel=2)
        made = cls(dataset.patch_size, dataset.channels, dataset.sample_rate, dataset.longest_side)
        made.mean[:], made.std[:] = torch.from_numpy(mean + around), torch.from_numpy(np.where(constant, 1.0, std))
        return made

    @property
    def noun(self) -> str:
        """Name of the data in messages: "pictures", "videos", "sounds" or "arrays"."""
        return "sounds" if self.sample_rate is not None else NOUNS.get(self.axes, "arrays")

    @property
    def axes(self) -> int:
        """Number A of position axes: one for each axis of the arrays."""
        return len(self.patch_size)

    @property
    def features(self) -> int:
        """Number V of values of a patch: its cells times the channels."""
        return math.prod(self.patch_size) * self.channels

    def check(self, dataset: ArrayDataset) -> None:
        """Raise InputError for arrays whose patch size, sample rate or number of channels is not that of training.

        Warns:
            InputWarning: arrays that seem to be in another unit, such as pictures from 0 to 1 instead of 0 to 255: the
                standard deviation of all their values (a sample) is over twenty times the largest of a channel in
                training, or under a twentieth, but not 0. Sounds are not judged.
        """
        for name in ("patch_size", "channels", "sample_rate"):
            given, trained = getattr(dataset, name), getattr(self, name)
            if given != trained:
                raise InputError(
                    f"the {dataset.noun} have {name} {given}; the model was trained on {trained}. Give "
                    f"{dataset.noun} with {name} {trained}."
                )
        if self.sample_rate is not None:  # every spectrogram is in the same unit
            return
        cells = np.concatenate([np.ravel(array)[:: max(1, array.size // SAMPLED_CELLS)] for array in dataset.arrays])
        spread, usual = float(np.std(cells, dtype=np.float64)), float(self.std.max())
        if not usual / OTHER_UNIT <= spread <= usual * OTHER_UNIT and spread > 0:
            text = (
                f"values of the {dataset.noun} have the standard deviation {spread:.3g}, in training {usual:.3g}: "
                "are they in the same unit? White is 255 in pictures of 8 bits, and 1 in fractions."
            )
            warnings.warn(text, InputWarning, stacklevel=2)

    def refuse_other(
        self, patch_size: int | Sequence[int] | None, sample_rate: int | None = None, longest_side: int | None = None
    ) -> None:
        """Raise InputError if an option that a user gives differs from that of the model; None is an option not given.

        Args:
            patch_size: cells along each axis, or one number for all axes.
            sample_rate: in Hz.
            longest_side: in pixels.
        """
        size = None if patch_size is None else patch_shape(patch_size, len(self.patch_size))
        for name, value in {"patch_size": size, "sample_rate": sample_rate, "longest_side": longest_side}.items():
            trained = getattr(self, name)
            if value is not None and value != trained:
                raise InputError(f"{name} is {value}, and the model was trained with {trained}; leave {name} out.")

    def tokens_of(self, dataset: ArrayDataset, index: np.ndarray) -> Tokens:
        """Return the tokens of the arrays at `index`, int [B], one per patch; rows with fewer patches are padded."""
        return self([dataset.arrays[i] for i in index])

    def forward(self, rows: Sequence[np.ndarray]) -> Tokens:
        """Cut arrays that are not scaled yet into standardised patches; return them as tokens, a row for each array.

        What goes beyond whole patches is cropped, evenly on both sides. Positions count patches from 1 on every axis.
        Rows with fewer patches than others are padded at the end.

        Args:
            rows: arrays [*sizes, C], with C channels last; their sizes may differ.
        """
        scaled = [self.scale(torch.tensor(np.ascontiguousarray(crop(array, self.patch_size)))) for array in rows]
        if len({array.shape for array in scaled}) == 1:
            return patchify(torch.stack(scaled), self.patch_size)
        each = [patchify(array[None], self.patch_size) for array in scaled]
        lengths = [tokens.length for tokens in each]
        values, padding = pad_rows(torch.cat([tokens.values[0] for tokens in each]), lengths)
        positions, _ = pad_rows(torch.cat([tokens.positions[0] for tokens in each]), lengths)
        return Tokens(values, positions, padding)

    def check_statistics(self) -> None:
        """Raise InputError for a standard deviation that is not positive and finite."""
        require_positive(std=self.std)

    def scale(self, array: Tensor) -> Tensor:
        """Standardise each channel of an array [*sizes, C] by `mean` and `std` of training; return it as float32."""
        return ((array.double() - self.mean) / self.std).float()

    def unscale(self, scaled: np.ndarray) -> np.ndarray:
        """Undo `scale`: convert a standardised array [*sizes, C] back to the units of its channels, float32."""
        return (torch.from_numpy(np.asarray(scaled, np.float32)) * self.std.float() + self.mean.float()).numpy()

    def describe(self) -> dict[str, Any]:
        """Return {topic: description} of patches and scaling, for reports and model cards."""
        description: dict[str, Any] = {
            "input": self.noun,
            "patch": "×".join(map(str, self.patch_size)),
            "cells": "to mean 0 and deviation 1, channel by channel",
            "mean and deviation in training": ", ".join(
                f"{m:.6g} ± {s:.6g}" for m, s in zip(self.mean.tolist(), self.std.tolist(), strict=True)
            ),
            "cells beyond whole patches": "cropped, evenly on both sides",
        }
        if self.sample_rate is not None:
            description["sample rate"] = f"{self.sample_rate} Hz"
        if self.longest_side is not None:
            description["longest side of a picture"] = f"at most {self.longest_side} pixels"
        return description
