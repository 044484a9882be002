"""Random convolutions of sounds and of series that share a grid, read by a ridge classifier.

The kernels are those of MiniRocket (arXiv:2012.08791): nine weights, of which three are 2 and six are -1, so that a
level added to a channel changes nothing but at the ends; all 84 choices of the three, at several dilations, each summed
over a random choice of channels. Features are the shares of a convolution's output above biases, which are random
quantiles of the output on training series. Differences of the series are a second representation, as in MultiRocket
(arXiv:2102.00457).

A sound is 32 bands, of four mel bins each, every 20 ms, in decibels below its loudest. Its features are also the
maxima of the outputs, as in ROCKET (arXiv:1910.13051). Those of a series are not: a value far off would decide alone.
Few sounds are learnt from several starts each, since where a recording begins says nothing of what it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
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
from rotarymae.partners.base import AnyDataset, Floats, check, load_arrays, save_arrays
from rotarymae.partners.features import chunks
from rotarymae.preprocess import StaticColumn
from rotarymae.series import SeriesDataset

LENGTH = 9  # of a kernel
KERNELS = np.full((84, LENGTH), -1.0, np.float32)
for _row, _three in zip(KERNELS, itertools.combinations(range(LENGTH), 3), strict=True):
    _row[list(_three)] = 2
NUM_FEATURES = 5000  # about so many shares
MOST_SERIES = 3000  # the ridge needs their square
MOST_POINTS = 1_000_000  # of all sounds together, five and a half hours: a minute or two per fit
ALPHAS = 10.0 ** np.linspace(-2, 4, 10)
BLOCK = 2**15  # points convolved at once
BIAS_POINTS = 4096  # points of a series that biases are drawn from
BANDS, FRAMES, DECIBELS = 32, 2, 80.0  # of a sound: bands, frames of the filterbank per point, range below the loudest
LEAST = 5.0  # decibels, by which a band is divided that is nearly constant in training
STARTS = 4  # of each sound of training, where `MOST_SERIES` and `MOST_POINTS` leave room for them
GRID_POINTS = 2**22  # of all series that are put on a grid at once
MAX_LENGTH = 200_000  # points of a grid
STORED_ARRAYS: dict[
    str, tuple[type, tuple[int | str, ...]]
] = {  # types and shapes, with the letters of RandomConvolutions
    "length": (np.int64, (1,)),
    "center": (np.float64, ("V",)),
    "scale": (np.float64, ("V",)),
    "dilation": (np.int64, ("G",)),
    "mix": (np.float32, ("G", len(KERNELS), "V")),
    "bias": (np.float32, ("G", len(KERNELS), "E")),
    "feature_center": (np.float64, ("F",)),
    "feature_scale": (np.float64, ("F",)),
    "weight": (np.float64, ("F", "K")),
    "intercept": (np.float64, ("K",)),
    "sharpness": (np.float64, (1,)),
}
SPARSE = 4  # distinct times per observation of the middle series, beyond which series share no grid


class SeriesReader:
    """Reads series on a common grid as arrays [V, length]; a variable is one value column of one channel.

    Attributes:
        maxima: whether the maxima of the kernels' outputs are features too.
        starts: how many rows each series gives in training at most, each rolled to another start.
    """

    maxima = False
    starts = 1

    @staticmethod
    def suits(dataset: Any) -> bool:
        """Return whether there are at most `MOST_SERIES` series, on one time grid of `LENGTH` to `MAX_LENGTH` points.

        Times count from each series' first, and may differ by a millionth of the longest series. Single points may be
        missing.
        """
        begins = np.asarray(dataset.times)[dataset.offsets[:-1]]
        if len(dataset) > MOST_SERIES or not LENGTH <= _distinct_per_series(dataset) <= MAX_LENGTH:
            return False
        since = np.asarray(dataset.times) - np.repeat(begins, dataset.lengths)
        ticks = np.round(since / max(since.max() * 1e-6, 1e-300))
        return len(np.unique(ticks)) <= SPARSE * _distinct_per_series(dataset)

    @staticmethod
    def length(dataset: Any) -> int:
        """Return the number of points of the grid."""
        return round(_distinct_per_series(dataset))

    @staticmethod
    def scale(std: Floats) -> Floats:
        """Return the divisors [V] for variables with these standard deviations [V]; 1 for a constant variable."""
        return np.where(std > 1e-12, std, 1.0)

    @staticmethod
    def variables(dataset: Any, length: int) -> Sequence[Floats]:
        """Return an array [V, length] for each series; see `on_grid`."""
        return list(on_grid(dataset, length))


class SoundReader(SeriesReader):
    """Reads sounds as arrays [BANDS, points] of different lengths."""

    maxima = True
    starts = STARTS

    @staticmethod
    def suits(dataset: Any) -> bool:
        """Return whether the arrays are sounds, at most `MOST_SERIES` and at most `MOST_POINTS` points in all."""
        if dataset.sample_rate is None or dataset.arrays[0].shape[1:] != (BINS, 1):
            return False
        return len(dataset) <= MOST_SERIES and sum(len(array) for array in dataset.arrays) <= MOST_POINTS * FRAMES

    @staticmethod
    def length(dataset: Any) -> int:
        """Return the median number of points of a sound; two frames of the filterbank make a point."""
        return int(np.median([len(array) for array in dataset.arrays])) // FRAMES

    @staticmethod
    def scale(std: Floats) -> Floats:
        """Return the divisors [V] for bands with these standard deviations [V], `LEAST` decibels at least."""
        return np.maximum(std, LEAST)

    @staticmethod
    def variables(dataset: Any, length: int) -> Sequence[Floats]:
        """Return an array [BANDS, points] for each sound; `length` is ignored, as sounds keep theirs."""
        return [_bands(np.asarray(array[..., 0], np.float64)) for array in dataset.arrays]


SERIES_READERS: dict[str, type[SeriesReader]] = {
    "observations": SeriesReader,
    "patches": SoundReader,
}  # by kind of data set


def _distinct_per_series(dataset: SeriesDataset) -> float:
    """Return the median, over the series, of the number of different times in a series."""
    new = np.diff(np.asarray(dataset.times), prepend=np.nan) != 0
    new[dataset.offsets[:-1]] = True
    return float(np.median(np.add.reduceat(new.astype(np.int64), dataset.offsets[:-1])))


@dataclass(frozen=True, eq=False)
class RandomConvolutions:
    """Random convolutions (MiniRocket) and a ridge classifier on their outputs, for V variables and K classes.

    Attributes:
        length: [1] points of the grid; for sounds, which keep their lengths, the median.
        center, scale: [V] of the variables.
        dilation: [G] of each group of 84 kernels; the first half reads the series, the second its differences.
        mix: [G, 84, V] 1 where a kernel reads a variable.
        bias: [G, 84, E] thresholds of each kernel's output.
        feature_center, feature_scale: [F], with F = G · 84 · E, for sounds G · 84 · (E + 1).
        weight, intercept: [F, K], [K] of the ridge classifier.
        sharpness: [1] factor of its scores before the softmax.
    """

    length: NDArray[np.int64]
    center: Floats
    scale: Floats
    dilation: NDArray[np.int64]
    mix: NDArray[np.float32]
    bias: NDArray[np.float32]
    feature_center: Floats
    feature_scale: Floats
    weight: Floats
    intercept: Floats
    sharpness: Floats

    name: ClassVar[str] = "convolutions"
    title: ClassVar[str] = "random convolutions"
    suffix: ClassVar[str] = ".safetensors"

    @classmethod
    def suits(cls, task: str, dataset: AnyDataset) -> bool:
        """Return whether the task is a classification of sounds or of series on one time grid, not too many."""
        reader = SERIES_READERS.get(dataset.kind)
        return task == "classification" and reader is not None and reader.suits(dataset)

    @classmethod
    def fit(
        cls,
        task: str,
        dataset: AnyDataset,
        truth: NDArray[np.int64],
        static: tuple[StaticColumn, ...] = (),
        seed: int = 0,
    ) -> Self:
        """Fit the transform and the ridge classifier; see `Partner.fit`.

        Args:
            truth: class numbers [S] from 0, every class present.
            static: ignored.
        """
        draw = np.random.default_rng(seed)
        reader = SERIES_READERS[dataset.kind]
        length = min(max(LENGTH + 1, reader.length(dataset)), MAX_LENGTH)
        variables = reader.variables(dataset, length)
        points = sum(one.shape[1] for one in variables)
        center = np.sum([one.sum(1) for one in variables], 0) / points
        scale = np.sqrt(np.sum([np.square(one - center[:, None]).sum(1) for one in variables], 0) / points)
        scale = reader.scale(scale)
        x = _standardised(variables, center, scale)
        del variables
        starts = max(1, min(reader.starts, MOST_SERIES // len(x), MOST_POINTS // points))
        x += [np.roll(one, draw.integers(one.shape[1]), axis=1) for _ in range(starts - 1) for one in x]
        truth = np.tile(truth, starts)
        dilation = np.unique((2 ** np.linspace(0, np.log2(max(1, (length - 2) / (LENGTH - 1))), 8)).astype(np.int64))
        dilation = np.tile(dilation, 2)
        each = max(1, NUM_FEATURES // (len(KERNELS) * len(dilation)))
        mix = np.stack([_choose_variables(draw, len(center)) for _ in dilation])
        sample = [x[i][:, :BIAS_POINTS] for i in draw.choice(len(x), min(len(x), 64), replace=False)]
        groups = zip(range(len(dilation)), dilation, mix, strict=True)
        bias = np.stack(
            [_biases([_view(one, g, dilation) for one in sample], m, int(d), each, draw) for g, d, m in groups]
        )
        features = _features(x, dilation, mix, bias, reader.maxima)
        feature_center, feature_scale = features.mean(0), features.std(0)
        feature_scale = np.where(feature_scale > 1e-12, feature_scale, 1.0)
        features = (features - feature_center) / feature_scale
        weight, intercept, left_out = _ridge(features, np.eye(truth.max() + 1)[truth] * 2 - 1, starts)

        def loss(sharpness: float) -> float:
            """Return the log loss, summed over rows, of the leave-one-out scores times a sharpness."""
            return float(-np.log(softmax(sharpness * left_out, axis=1)[np.arange(len(x)), truth] + 1e-9).sum())

        sharpness = min(2.0 ** np.arange(-1, 7), key=loss)
        arrays = (feature_center, feature_scale, weight, intercept, np.array([sharpness]))
        return cls(np.array([length]), center, scale, dilation, mix, bias, *arrays)

    def predict(self, dataset: AnyDataset) -> Floats:
        """Return class probabilities [S, classes].

        Raises InputError for another number of variables than in training.
        """
        out, reader, length = [], SERIES_READERS[dataset.kind], int(self.length[0])
        at_once = max(1, min(256, GRID_POINTS // (length * len(self.center))))
        for begin in range(0, len(dataset), at_once):
            part = np.arange(begin, min(begin + at_once, len(dataset)))
            variables = reader.variables(dataset.select(part), length)
            if variables[0].shape[0] != len(self.center):
                raise InputError(
                    f"the series have {variables[0].shape[0]} variables (channels times value columns) and training "
                    f"had {len(self.center)}. Give the same channels and value columns as in training."
                )
            x = _standardised(variables, self.center, self.scale)
            features = _features(x, self.dilation, self.mix, self.bias, reader.maxima)
            features = (features - self.feature_center) / self.feature_scale
            out.append(softmax(self.sharpness[0] * (features @ self.weight + self.intercept), axis=1))
        return np.concatenate(out)

    def save(self, path: Path) -> dict[str, Any]:
        """Write all arrays to a safetensors file; return {}, as there are no other settings."""
        save_arrays(path, {field.name: getattr(self, field.name) for field in fields(self)})
        return {}

    @classmethod
    def load(cls, path: Path, task: str, settings: dict[str, Any]) -> Self:
        """Read the file that `save` wrote, and check everything in it.

        Args:
            task: must be "classification".
            settings: must be {}.

        Raises:
            ModelDirectoryError: another task, settings, or arrays that `save` would not write.
        """
        check(not settings and task == "classification", path, "settings")
        arrays = load_arrays(path, STORED_ARRAYS)
        length, shares = arrays["length"][0], np.prod(arrays["bias"].shape)
        groups, features = len(arrays["dilation"]), len(arrays["feature_center"])
        conditions = {
            "length": LENGTH < length <= MAX_LENGTH,
            "scale": (arrays["scale"] > 0).all(),
            "dilation": groups % 2 == 0 and ((arrays["dilation"] > 0) & (arrays["dilation"] * 8 <= length)).all(),
            "mix": np.isin(arrays["mix"], (0, 1)).all(),
            "feature_center": features in (shares, shares + groups * len(KERNELS)),
            "feature_scale": (arrays["feature_scale"] > 0).all(),
            "sharpness": arrays["sharpness"][0] > 0,
        }
        for name, holds in conditions.items():
            check(bool(holds), path, name)
        return cls(**arrays)


def on_grid(dataset: SeriesDataset, length: int) -> Floats:
    """Interpolate each variable linearly to `length` even times from a series' first to its last: [series, V, length].

    A variable is one value column of one channel, with the columns of a channel side by side. It is constant before its
    first and after its last observation, and 0 in a series without any.
    """
    channels, columns = len(dataset.channel_names or (None,)), len(dataset.value_names)
    out = np.zeros((len(dataset), channels, columns, length))
    begin = 0
    for rows in chunks(dataset):
        ends = np.searchsorted(rows.series, np.arange(rows.num_series + 1))
        for s, (first, last) in enumerate(itertools.pairwise(ends)):
            times, channel, values = rows.times[first:last], rows.channels[first:last], rows.values[first:last]
            even = np.linspace(times[0], times[-1], length)
            for c, v in np.ndindex(channels, columns):
                seen = (channel == c) & np.isfinite(values[:, v])
                if seen.any():
                    out[begin + s, c, v] = np.interp(even, times[seen], values[seen, v])
        begin += rows.num_series
    return out.reshape(len(dataset), -1, length)


def _bands(spectrogram: Floats) -> Floats:
    """Average a filterbank spectrogram [frames, bins] into [BANDS, points], in decibels below the loudest.

    Args:
        spectrogram: natural logarithms of power. A short one is continued with its last frame, as a kernel needs
            points.
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
    """Return each variable [V, L] less `center` [V], over `scale` [V], as float32."""
    return [((one - center[:, None]) / scale[:, None]).astype(np.float32) for one in variables]


def _choose_variables(draw: np.random.Generator, variables: int) -> NDArray[np.float32]:
    """Draw which of V variables each of the 84 kernels reads: a 0/1 matrix [84, V] with 1 to 9 ones per row."""
    mix = np.zeros((len(KERNELS), variables), np.float32)
    sizes = np.minimum((2 ** draw.uniform(0, np.log2(min(variables, 9) + 1), len(KERNELS))).astype(int), variables)
    for row, size in zip(mix, sizes, strict=True):
        row[draw.choice(variables, size, replace=False)] = 1
    return mix


def _view(x: NDArray[np.float32], group: int, dilation: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return what a group of kernels reads: `x` itself in the first half of the groups, else its differences.

    Args:
        x: series of L points [..., L]; differences have the shape [..., L - 1].
        group: index of the group in `dilation` [G].
    """
    return np.diff(x) if group >= len(dilation) // 2 else x


def _biases(
    sample: Sequence[NDArray[np.float32]],
    mix: NDArray[np.float32],
    dilation: int,
    each: int,
    draw: np.random.Generator,
) -> NDArray[np.float32]:
    """Return biases [84, each]: random quantiles of each kernel's output, each for a random series.

    Args:
        sample: series [V, L].
        mix: which variables each kernel reads, from `_choose_variables`.
        dilation: spacing of the kernels' weights.
        each: biases per kernel.
    """
    outputs = [_convolve(one[None], mix, dilation)[0] for one in sample]
    drawn = [
        np.quantile(outputs[draw.integers(len(outputs))][k], (e + draw.random()) / each)
        for k, e in np.ndindex(len(KERNELS), each)
    ]
    return np.array(drawn, np.float32).reshape(len(KERNELS), each)


def _features(
    x: Sequence[NDArray[np.float32]],
    dilation: NDArray[np.int64],
    mix: NDArray[np.float32],
    bias: NDArray[np.float32],
    maxima: bool,
) -> Floats:
    """Return features [S, F] of series [V, L]: the share of points at which each kernel's output exceeds each bias.

    Args:
        dilation, mix, bias: [G], [G, 84, V] and [G, 84, E], as in `RandomConvolutions`.
        maxima: whether the maximum of each kernel's output is a feature too, after the shares of this kernel.
    """
    rows = []
    for block in _blocks(x):
        groups = enumerate(zip(dilation, mix, bias, strict=True))
        pooled = [
            _pooled(_convolve(_view(block, g, dilation), m, int(d)), thresholds, maxima)
            for g, (d, m, thresholds) in groups
        ]
        rows.append(np.concatenate(pooled, 1))
    return np.concatenate(rows).astype(np.float64)


def _blocks(x: Sequence[NDArray[np.float32]]) -> Iterator[NDArray[np.float32]]:
    """Yield consecutive series [V, L] of equal length as arrays [s, V, L].

    An array is one series, or several with at most `BLOCK` points (s · L) in all.
    """
    for length, run in itertools.groupby(x, key=lambda one: one.shape[1]):
        neighbours, most = list(run), max(1, BLOCK // length)
        yield from (np.stack(neighbours[i : i + most]) for i in range(0, len(neighbours), most))


def _pooled(output: NDArray[np.float32], thresholds: NDArray[np.float32], maxima: bool) -> NDArray[np.float32]:
    """Return features [s, 84 · E] of kernel outputs [s, 84, L]: the shares of points above thresholds [84, E].

    Args:
        maxima: whether each kernel's maximum follows its shares; then there are 84 · (E + 1) features.
    """
    shares = [(output > one[None, :, None]).mean(2, dtype=np.float32) for one in thresholds.T]
    return np.stack([*shares, output.max(2)] if maxima else shares, 2).reshape(len(output), -1)


def _convolve(x: NDArray[np.float32], mix: NDArray[np.float32], dilation: int) -> NDArray[np.float32]:
    """Return the outputs [s, 84, L] of all kernels for series [s, V, L], padded with zeros at both ends.

    Args:
        mix: [84, V] 1 where a kernel reads a variable; variables are summed.
        dilation: spacing of the kernels' weights.
    """
    mixed = torch.einsum("kv,svl->skl", torch.from_numpy(mix), torch.from_numpy(np.ascontiguousarray(x)))
    kernels = torch.from_numpy(KERNELS)[:, None]
    padding = (LENGTH // 2) * dilation
    return F.conv1d(mixed, kernels, padding=padding, dilation=dilation, groups=len(KERNELS)).numpy()


def _ridge(x: Floats, y: Floats, starts: int = 1) -> tuple[Floats, Floats, Floats]:
    """Fit ridge regression at the best of the penalties `ALPHAS`, by the squared leave-one-out errors.

    Each sample has `starts` of the S rows (i, i + S / starts, ...), which are left out together. With G = X Xᵀ and C =
    (G + αI)⁻¹, the residuals of rows g of n that are left out are (C_gg - 1 / nα)⁻¹ (C y)_g; the last term takes the
    rows out of the means, by which columns and answers are centred.

    Args:
        x: features [S, F], whose columns the caller has centred.
        y: answers [S, K]; they are centred here.
        starts: rows of each sample.

    Returns:
        Weights [F, K], intercepts [K], and the leave-one-out predictions [S, K].
    """
    intercept = y.mean(0)
    values, vectors = np.linalg.eigh(x @ x.T)
    rotated = vectors.T @ (y - intercept)
    together = vectors.reshape(starts, -1, len(y)).swapaxes(0, 1)  # [sounds, starts, S]

    def dual(alpha: float) -> tuple[Floats, Floats]:
        """Return the dual coefficients [S, K] for a penalty, and the leave-one-out residuals [S, K]."""
        shrunk = 1 / (values.clip(0) + alpha)
        coefficients = vectors @ (shrunk[:, None] * rotated)
        blocks = (together * shrunk) @ together.swapaxes(1, 2) - 1 / (len(y) * alpha)
        residuals = np.linalg.solve(blocks, coefficients.reshape(starts, len(blocks), -1).swapaxes(0, 1))
        return coefficients, residuals.swapaxes(0, 1).reshape(y.shape)

    best = min(ALPHAS, key=lambda alpha: float((dual(alpha)[1] ** 2).sum()))
    coefficients, residuals = dual(best)
    return x.T @ coefficients, intercept, y - residuals
