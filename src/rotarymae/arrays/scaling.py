"""What turns arrays into what the model sees; fitted on training data and saved with the model."""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rotarymae.arrays.dataset import NOUNS, ArrayDataset, sides
from rotarymae.errors import InputError, InputWarning
from rotarymae.system import from_fields

SAMPLED = 1024  # cells of each array, to see whether arrays are in training's unit
SPREAD = 20.0  # times more or less than in training: another unit


@dataclass(frozen=True)
class ArrayPreprocessor:
    """All that turns an ArrayDataset into tokens; saved as preprocessor.json.

    Attributes:
        patch_size: cells of a patch along each axis.
        mean, std: of each channel over all cells of the training arrays.
        sample_rate: of sounds, in Hz; None of anything else.
        longest_side: pictures from files are scaled down to this, in pixels; None leaves them as they are.
    """

    patch_size: tuple[int, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    sample_rate: int | None = None
    longest_side: int | None = None

    @classmethod
    def fit(cls, dataset: ArrayDataset) -> Self:
        """The mean and deviation of each channel of a training set; a constant channel gets the deviation 1.

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
            text = f"channel {which} (counted from 0) of the {dataset.noun} never changes; nothing can be learnt of it."
            warnings.warn(text, InputWarning, stacklevel=2)
        scale = np.where(constant, 1.0, std)
        mean = _floats(mean + around)
        return cls(dataset.patch_size, mean, _floats(scale), dataset.sample_rate, dataset.longest_side)

    @property
    def axes(self) -> int:
        """A, one for each axis of the arrays."""
        return len(self.patch_size)

    @property
    def channels(self) -> int:
        return len(self.mean)

    @property
    def features(self) -> int:
        """V, the values of a patch."""
        return math.prod(self.patch_size) * self.channels

    @property
    def input_features(self) -> int:
        """None beside the values."""
        return 0

    @property
    def static(self) -> tuple[()]:
        """None: arrays have no columns beside them."""
        return ()

    @property
    def static_features(self) -> int:
        return 0

    @property
    def noun(self) -> str:
        return "sounds" if self.sample_rate is not None else NOUNS.get(self.axes, "arrays")

    def check(self, dataset: ArrayDataset) -> None:
        """Refuses arrays that the model was not made for.

        Raises:
            InputError: another patch size, rate or number of channels; names what differs.

        Warns:
            InputWarning: pictures in another unit, as 0 to 1 for 0 to 255.
        """
        theirs = (dataset.patch_size, dataset.channels, dataset.sample_rate)
        ours = (self.patch_size, self.channels, self.sample_rate)
        for name, came, wanted in zip(("patch_size", "channels", "sample_rate"), theirs, ours, strict=True):
            if came != wanted:
                raise InputError(f"the {dataset.noun} have {name} {came}; the model was trained on {wanted}.")
        if self.sample_rate is not None:  # every spectrogram is in the same unit
            return
        cells = np.concatenate([np.ravel(array)[:: max(1, array.size // SAMPLED)] for array in dataset.arrays])
        spread, usual = float(np.std(cells, dtype=np.float64)), max(self.std)
        if not usual / SPREAD <= spread <= usual * SPREAD and spread > 0:
            text = (
                f"the {dataset.noun}' cells spread by {spread:.3g}, those of training by {usual:.3g}; is white as much "
                "in both? Pictures of 8 bits reach 255, fractions 1."
            )
            warnings.warn(text, InputWarning, stacklevel=2)

    def refuse_other(
        self, patch_size: int | Sequence[int] | None, sample_rate: int | None = None, longest_side: int | None = None
    ) -> None:
        """Raises InputError for options, of those that are given, that differ from the model's."""
        given = {
            "patch_size": (None if patch_size is None else sides(patch_size), self.patch_size),
            "sample_rate": (sample_rate, self.sample_rate),
            "longest_side": (longest_side, self.longest_side),
        }
        for name, (came, wanted) in given.items():
            if came is not None and came != wanted:
                raise InputError(f"{name} is {came}, and the model was trained with {wanted}; leave {name} out.")

    def lengths(self, dataset: ArrayDataset) -> np.ndarray:
        """Tokens of each array [S]."""
        return dataset.lengths

    def scale(self, array: np.ndarray) -> np.ndarray:
        """Standardised cells [*sizes, C], float32."""
        return ((array - np.array(self.mean)) / np.array(self.std)).astype(np.float32)

    def unscale(self, scaled: np.ndarray) -> np.ndarray:
        """The inverse of `scale`."""
        return np.asarray(scaled, np.float32) * np.array(self.std, np.float32) + np.array(self.mean, np.float32)

    def describe(self) -> dict[str, Any]:
        """What is done to the data, in words and numbers, for reports and model cards."""
        found: dict[str, Any] = {
            "input": self.noun,
            "patch": "×".join(map(str, self.patch_size)),
            "cells": "to mean 0 and deviation 1, channel by channel",
            "mean and deviation in training": ", ".join(
                f"{m:.6g} ± {s:.6g}" for m, s in zip(self.mean, self.std, strict=True)
            ),
            "what is left over beside whole patches": "cropped, evenly on both sides",
        }
        if self.sample_rate is not None:
            found["sample rate"] = f"{self.sample_rate} Hz"
        if self.longest_side is not None:
            found["longest side of a picture"] = f"at most {self.longest_side} pixels"
        return found

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """The inverse of `to_dict`, also after JSON. Raises InputError naming an unknown or missing field."""
        return from_fields(cls, fields, "preprocessor")


def _floats(numbers: np.ndarray) -> tuple[float, ...]:
    return tuple(float(number) for number in numbers)
