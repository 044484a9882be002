"""Random convolutions of sounds and of series that share a grid, read by ridge regression.

The kernels are those of MiniRocket (arXiv:2012.08791): nine weights, of which three are 2 and six are -1, so that a
level added to a channel changes nothing but at the ends; all 84 choices of the three, at several dilations, each summed
over a random choice of channels. Features are the shares of a convolution's output above biases, which are random
quantiles of the output on training series.

A sound is 32 bands, of four mel bins each, every 20 ms, in decibels below its loudest.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax
from torch.nn import functional as F

from rotarymae.arrays import BINS
from rotarymae.errors import InputError
from rotarymae.partners.base import AnyDataset, Floats, Partner, check, load_arrays, save_arrays
from rotarymae.partners.combine import log_loss
from rotarymae.preprocess import StaticColumn
from rotarymae.series import SeriesDataset, measured

LENGTH = 9  # of a kernel
KERNELS = np.full((84, LENGTH), -1.0, np.float32)
for _row, _three in zip(KERNELS, itertools.combinations(range(LENGTH), 3), strict=True):
    _row[list(_three)] = 2
NUM_FEATURES = 5000  # about so many shares
MOST_SERIES = 3000  # the ridge needs their square
MOST_POINTS = 1_000_000  # of all sounds together, five and a half hours: a minute or two per fit
ALPHAS = 10.0 ** np.linspace(-2, 4, 10)
SHARPNESS = 2.0 ** np.arange(-1, 7)  # factors of the ridge's answers, as logits
BIAS_SERIES, BIAS_POINTS = 64, 4096  # series that biases are drawn from, and points of each
BANDS, FRAMES, DECIBELS = 32, 2, 80.0  # of a sound: bands, frames of the filterbank per point, range below the loudest
GRID_POINTS = 2**22  # of all series that are put on a grid at once
MAX_LENGTH = 200_000  # points of a grid
SPARSE = 4  # distinct times per observation of the middle series, beyond which series share no grid
# Types and shapes of the saved arrays, with the letters of RandomConvolutions.
STORED_ARRAYS: dict[str, tuple[type, tuple[int | str, ...]]] = {
    "length": (np.int64, (1,)),
    "center": (np.float64, ("V",)),
    "scale": (np.float64, ("V",)),
    "dilation": (np.int64, ("G",)),
    "mix": (np.float32, ("G", len(KERNELS), "V")),
    "bias": (np.float32, ("G", len(KERNELS), "E")),
    "weight": (np.float64, ("F", "K")),
    "intercept": (np.float64, ("K",)),
}


@dataclass(frozen=True, eq=False)
class RandomConvolutions(Partner):
    """Random convolutions (MiniRocket) and a ridge regression on their outputs, for V variables and K classes.

    A variable is one value column of one channel, or a band of a sound.

    Attributes:
        length: [1] number of points of the grid to which series are interpolated; sounds keep their lengths.
        center, scale: [V] mean and standard deviation of each variable in training.
        dilation: [G] spacing of the nine weights of the kernels of each of G groups, in points.
        mix: [G, 84, V] 1 where a kernel reads a variable, else 0.
        bias: [G, 84, E] thresholds; a feature is the share of points at which a kernel's output exceeds one.
        weight, intercept: [F, K], [K] turn the F = G · 84 · E features to logits.
    """

    length: NDArray[np.int64]
    center: Floats
    scale: Floats
    dilation: NDArray[np.int64]
    mix: NDArray[np.float32]
    bias: NDArray[np.float32]
    weight: Floats
    intercept: Floats

    name: ClassVar[str] = "convolutions"
    title: ClassVar[str] = "random convolutions"
    suffix: ClassVar[str] = ".safetensors"

    @classmethod
    def suits(cls, task: str, dataset: AnyDataset) -> bool:
        """Return whether the task is to classify at most 3,000 sounds, or at most 3,000 series that share a time grid.

        Sounds must be spectrograms of `BINS` bins, with no more than 2 million frames in all. For series, n is the
        median of their numbers of distinct times; it must be from 9 to 200,000. They share a grid if they have at most
        4 n distinct times in all, counted from each series' first one, and rounded to a millionth of the longest span.
        """
        data: Any = dataset
        if task != "classification" or len(dataset) > MOST_SERIES:
            return False
        if dataset.kind == "patches":
            sounds = data.sample_rate is not None and data.arrays[0].shape[1:] == (BINS, 1)
            return sounds and sum(len(array) for array in data.arrays) <= MOST_POINTS * FRAMES
        points = _points(data)
        since = np.asarray(data.times) - np.repeat(np.asarray(data.times)[data.offsets[:-1]], data.lengths)
        ticks = np.unique(np.round(since / max(since.max() * 1e-6, 1e-300)))
        return LENGTH <= points <= MAX_LENGTH and len(ticks) <= SPARSE * points

    @classmethod
    def fit(
        cls,
        task: str,
        dataset: AnyDataset,
        truth: NDArray[np.int64],
        static: tuple[StaticColumn, ...] = (),
        seed: int = 0,
        rows: int | None = None,
    ) -> Self:
        """Draw thresholds, and which variables each kernel reads; fit a ridge regression from features to classes.

        The ridge penalty, and the factor that turns the regression's outputs into logits, are chosen by the predictions
        of each series by a fit to the others.

        Args:
            task: not read; "classification" is the only task.
            dataset: S sounds or series, for which `suits` is True.
            truth: class numbers int [S] from 0, every class present.
            static: not read.
            seed: fixes what is drawn.
            rows: not read.
        """
        from sklearn.linear_model import RidgeCV

        draw = np.random.default_rng(seed)
        length = min(max(LENGTH + 1, round(_points(dataset))), MAX_LENGTH)  # of the grid
        variables = _variables(dataset, length)
        points = sum(one.shape[1] for one in variables)
        center = np.sum([one.sum(1) for one in variables], 0) / points
        scale = np.sqrt(np.sum([np.square(one - center[:, None]).sum(1) for one in variables], 0) / points)
        scale = np.where(scale > 1e-12, scale, 1.0)
        x = _standardised(variables, center, scale)
        longest = max(1, (length - 2) / (LENGTH - 1))
        dilation = np.unique((2 ** np.linspace(0, np.log2(longest), 8)).astype(np.int64))
        each = max(1, NUM_FEATURES // (len(KERNELS) * len(dilation)))
        mix = np.stack([_choose_variables(draw, len(center)) for _ in dilation])
        sample = [x[i][:, :BIAS_POINTS] for i in draw.choice(len(x), min(len(x), BIAS_SERIES), replace=False)]
        bias = np.stack([_biases(sample, m, int(d), each, draw) for d, m in zip(dilation, mix, strict=True)])
        features = _shares(x, dilation, mix, bias)
        center_of, scale_of = features.mean(0), features.std(0)
        scale_of = np.where(scale_of > 1e-12, scale_of, 1.0)
        # With a scoring, the predictions of each series by all others are kept: they say how sharp its answers may be.
        ridge: Any = RidgeCV(ALPHAS, scoring="neg_mean_squared_error", store_cv_results=True)
        ridge.fit((features - center_of) / scale_of, np.eye(truth.max() + 1)[truth] * 2 - 1)
        left_out = ridge.cv_results_[:, :, int(np.flatnonzero(ridge.alpha_ == ALPHAS)[0])]
        sharpness = min(SHARPNESS, key=lambda one: log_loss(softmax(one * left_out, axis=1), truth))
        weight = sharpness * (ridge.coef_ / scale_of).T
        intercept = sharpness * ridge.intercept_ - center_of @ weight
        return cls(np.array([length]), center, scale, dilation, mix, bias, weight, intercept)

    def predict(self, dataset: AnyDataset) -> Floats:
        """Return class probabilities [S, classes] of S sounds or series, S at least 1.

        Raises:
            InputError: another number of variables (channels times value columns) than in training.
        """
        out, length = [], int(self.length[0])
        at_once = max(1, min(256, GRID_POINTS // (length * len(self.center))))
        for begin in range(0, len(dataset), at_once):
            variables = _variables(dataset.select(np.arange(begin, min(begin + at_once, len(dataset)))), length)
            if variables[0].shape[0] != len(self.center):
                raise InputError(
                    f"the series have {variables[0].shape[0]} variables (channels times value columns) and training "
                    f"had {len(self.center)}. Give the same channels and value columns as in training."
                )
            x = _standardised(variables, self.center, self.scale)
            shares = _shares(x, self.dilation, self.mix, self.bias)
            out.append(softmax(shares @ self.weight + self.intercept, axis=1))
        return np.concatenate(out)

    def save(self, path: Path) -> dict[str, Any]:
        """Write all arrays to the safetensors file `path`; return {}, as there are no other settings."""
        save_arrays(path, {field.name: getattr(self, field.name) for field in fields(self)})
        return {}

    @classmethod
    def load(cls, path: Path, task: str, settings: dict[str, Any]) -> Self:
        """Read the file that `save` wrote, and check everything in it.

        Args:
            path: the file.
            task: must be "classification".
            settings: must be {}.

        Raises:
            ModelDirectoryError: another task; settings or a file that `save` would not have written.
        """
        check(not settings and task == "classification", path, "settings")
        arrays = load_arrays(path, STORED_ARRAYS)
        length, dilation = arrays["length"][0], arrays["dilation"]
        conditions = {
            "length": LENGTH < length <= MAX_LENGTH,
            "scale": (arrays["scale"] > 0).all(),
            "dilation": ((dilation > 0) & (dilation <= length // 8)).all(),
            "mix": np.isin(arrays["mix"], (0, 1)).all(),
            "weight": len(arrays["weight"]) == arrays["bias"].size,
        }
        for name, holds in conditions.items():
            check(bool(holds), path, name)
        return cls(**arrays)


def _points(dataset: Any) -> float:
    """Return the median length of the series or sounds of a data set, in points of time.

    A series has as many points as different times. A sound has one point for every two frames of its spectrogram; the
    median of sounds is rounded down.
    """
    if dataset.kind == "patches":
        return float(np.median([len(array) for array in dataset.arrays])) // FRAMES
    new = np.diff(np.asarray(dataset.times), prepend=np.nan) != 0
    new[dataset.offsets[:-1]] = True
    return float(np.median(np.add.reduceat(new.astype(np.int64), dataset.offsets[:-1])))


def _variables(dataset: Any, length: int) -> Sequence[Floats]:
    """Return the numbers that convolutions read: an array [V, points] for each series or sound, with V variables.

    A variable of a series is one value column of one channel, interpolated to `length` evenly spaced points. A variable
    of a sound is one of 32 frequency bands in decibels, with a point for every two frames; `length` is not read.
    """
    if dataset.kind == "patches":
        return [_bands(np.asarray(array[..., 0], np.float64)) for array in dataset.arrays]
    return list(on_grid(dataset, length))


def on_grid(dataset: SeriesDataset, length: int) -> Floats:
    """Interpolate S series linearly to `length` evenly spaced times, from the first to the last time of each series.

    Returns:
        Values [S, C · V, length] of V value columns in C channels: first all columns of the first channel. They are
        constant before the first and after the last observation of a column in a channel, and 0 if it has none. Limits
        (censored values, such as <5) count as missing.
    """
    channels, columns = len(dataset.channel_names or (None,)), len(dataset.value_names)
    out = np.zeros((len(dataset), channels, columns, length))
    for s, one in enumerate(dataset):
        even, values = np.linspace(one.times[0], one.times[-1], length), measured(one)
        for c, v in np.ndindex(channels, columns):
            seen = np.isfinite(values[:, v]) & (True if one.channels is None else one.channels == c)
            if seen.any():
                out[s, c, v] = np.interp(even, one.times[seen], values[seen, v])
    return out.reshape(len(dataset), -1, length)


def _bands(spectrogram: Floats) -> Floats:
    """Reduce a spectrogram to 32 frequency bands, with one point for every two frames; return decibels [32, points].

    A band is the mean of neighbouring bins. Decibels are relative to the loudest cell, which is 0, and at least -80;
    silence is -80 everywhere.

    Args:
        spectrogram: [frames, bins], natural logarithms of power; the number of bins is a multiple of 32. A spectrogram
            of less than 20 frames is extended to 20 by its last frame, because a kernel needs that many. Of an odd
            number of frames the last is left out.
    """
    decibels = spectrogram * (10 / np.log(10))
    decibels = np.maximum(decibels - decibels.max(), -DECIBELS)
    if np.ptp(decibels) == 0:  # silence has no loudest
        decibels = decibels - DECIBELS
    lacking = max(0, FRAMES * (LENGTH + 1) - len(decibels))
    decibels = np.pad(decibels, ((0, lacking), (0, 0)), mode="edge")
    points = len(decibels) // FRAMES
    return decibels[: points * FRAMES].reshape(points, FRAMES, BANDS, -1).mean((1, 3)).T


def _standardised(variables: Sequence[Floats], center: Floats, scale: Floats) -> list[NDArray[np.float32]]:
    """Return (variables - center) / scale as float32, an array [V, L] for each series.

    Args:
        variables: an array [V, L] for each series: V variables at L points; L may differ between series.
        center, scale: [V] of each variable.
    """
    return [((one - center[:, None]) / scale[:, None]).astype(np.float32) for one in variables]


def _choose_variables(draw: np.random.Generator, variables: int) -> NDArray[np.float32]:
    """Draw the variables that each of the 84 kernels reads; return [84, V], 1 where a kernel reads one, else 0.

    V is the number `variables`. A kernel reads 1 to 9 of them; small numbers are drawn more often than large ones.
    """
    mix = np.zeros((len(KERNELS), variables), np.float32)
    sizes = np.minimum((2 ** draw.uniform(0, np.log2(min(variables, 9) + 1), len(KERNELS))).astype(int), variables)
    for row, size in zip(mix, sizes, strict=True):
        row[draw.choice(variables, size, replace=False)] = 1
    return mix


def _biases(
    sample: Sequence[NDArray[np.float32]],
    mix: NDArray[np.float32],
    dilation: int,
    each: int,
    draw: np.random.Generator,
) -> NDArray[np.float32]:
    """Draw thresholds ("biases") for the outputs of the 84 kernels at one dilation; return them as [84, each].

    A threshold is a quantile of the kernel's output for a series that is drawn from `sample`. Threshold number e (from
    0) is a random quantile between e / each and (e + 1) / each.

    Args:
        sample: standardised series, an array [V, L] for each: V variables at L points.
        mix: [84, V] 1 where a kernel reads a variable, else 0.
        dilation: spacing of the kernels' weights, in points.
        each: number of thresholds of each kernel.
        draw: the source of random numbers.
    """
    outputs = [_convolve(one, mix, dilation) for one in sample]
    drawn = [
        np.quantile(outputs[draw.integers(len(outputs))][k], (e + draw.random()) / each)
        for k, e in np.ndindex(len(KERNELS), each)
    ]
    return np.array(drawn, np.float32).reshape(len(KERNELS), each)


def _shares(
    x: Sequence[NDArray[np.float32]],
    dilation: NDArray[np.int64],
    mix: NDArray[np.float32],
    bias: NDArray[np.float32],
) -> Floats:
    """Return features [S, F]: the share of points at which each kernel's output exceeds each of its thresholds.

    F is G · 84 · E: 84 kernels at each of G dilations, each with E thresholds. The threshold varies fastest along F,
    the dilation slowest.

    Args:
        x: standardised series, an array [V, L] for each of S: V variables at L points; L may differ between series.
        dilation: [G] spacing of the kernels' weights, in points.
        mix: [G, 84, V] 1 where a kernel reads a variable, else 0.
        bias: [G, 84, E] the thresholds.
    """
    rows = []
    for one in x:
        outputs = (_convolve(one, m, int(d)) for d, m in zip(dilation, mix, strict=True))
        shares = [
            np.stack([(output > threshold[:, None]).mean(1) for threshold in thresholds.T], 1)
            for output, thresholds in zip(outputs, bias, strict=True)
        ]
        rows.append(np.stack(shares).ravel())
    return np.stack(rows)


def _convolve(x: NDArray[np.float32], mix: NDArray[np.float32], dilation: int) -> NDArray[np.float32]:
    """Convolve one series with the 84 kernels; return their outputs [84, L].

    The series is padded with zeros at both ends, so that outputs have its length.

    Args:
        x: [V, L] the standardised series: V variables at L points.
        mix: [84, V] 1 where a kernel reads a variable, else 0; the variables that it reads are summed first.
        dilation: spacing of the kernels' weights, in points.
    """
    padding = (LENGTH // 2) * dilation
    mixed, kernels = torch.from_numpy(mix @ x), torch.from_numpy(KERNELS)[:, None]
    return F.conv1d(mixed[None], kernels, padding=padding, dilation=dilation, groups=len(KERNELS))[0].numpy()
