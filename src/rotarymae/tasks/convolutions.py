"""Random convolutions of series that share a grid, read by a ridge classifier.

The kernels are those of MiniRocket (arXiv:2012.08791): nine weights, of which three are 2 and six are -1, so that a
level added to a channel changes nothing; all 84 choices of the three, at several dilations, each summed over a random
choice of channels. A feature is the share of a convolution's output above a bias, and biases are random quantiles of
the output on training series. Differences of the series are a second representation, as in MultiRocket
(arXiv:2102.00457).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax
from torch.nn import functional as F

from rotarymae.series import SeriesDataset, StaticColumn
from rotarymae.tasks.data import AnyDataset
from rotarymae.tasks.features import Floats, chunks

LENGTH = 9  # of a kernel
KERNELS = np.full((84, LENGTH), -1.0, np.float32)
for _row, _three in zip(KERNELS, itertools.combinations(range(LENGTH), 3), strict=True):
    _row[list(_three)] = 2
FEATURES = 5000  # about so many
MOST_SERIES = 3000  # the ridge needs their square
ALPHAS = 10.0 ** np.linspace(-2, 4, 10)
ONLY_SERIES = "convolutions are fitted only where series share a grid"
SPARSE = 4  # distinct times per observation of the middle series, beyond which series share no grid


def share_a_grid(dataset: SeriesDataset) -> bool:
    """Whether convolutions make sense: series long enough for a kernel, not too many, and observed at the same times.

    Times count from each series' first, and are equal within a millionth of the longest series.
    """
    begins = np.asarray(dataset.times)[dataset.offsets[:-1]]
    if len(dataset) > MOST_SERIES or _distinct_per_series(dataset) < LENGTH:
        return False
    since = np.asarray(dataset.times) - np.repeat(begins, dataset.lengths)
    ticks = np.round(since / max(since.max() * 1e-6, 1e-300))
    return len(np.unique(ticks)) <= SPARSE * _distinct_per_series(dataset)


def _distinct_per_series(dataset: SeriesDataset) -> float:
    """The median number of different times of a series."""
    new = np.diff(np.asarray(dataset.times), prepend=np.nan) != 0
    new[dataset.offsets[:-1]] = True
    return float(np.median(np.add.reduceat(new.astype(np.int64), dataset.offsets[:-1])))


@dataclass(frozen=True, eq=False)
class RandomConvolutions:
    """A fitted transform and its ridge classifier. V variables (channels times value columns), K classes.

    Attributes:
        length: [1] of the grid.
        center, scale: [V] of the gridded variables.
        dilation: [G] of each group of 84 kernels; the first half reads the series, the second its differences.
        mix: [G, 84, V] 1 where a kernel reads a variable.
        bias: [G, 84, E].
        feature_center, feature_scale: [F], F = G · 84 · E.
        weight, intercept: [F, K], [K]: scores of the classes.
        sharpness: [1] what scores are multiplied by before the softmax.
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

    @classmethod
    def fit(
        cls,
        task: str,
        dataset: AnyDataset,
        truth: NDArray[np.int64],
        static: tuple[StaticColumn, ...] = (),
        seed: int = 0,
    ) -> Self:
        """From the classes 0, 1, .. [S] of the series; static columns are not read."""
        assert isinstance(dataset, SeriesDataset), ONLY_SERIES
        draw = np.random.default_rng(seed)
        length = max(LENGTH + 1, round(_distinct_per_series(dataset)))
        gridded = on_grid(dataset, length)
        center, scale = gridded.mean((0, 2)), gridded.std((0, 2))
        scale = np.where(scale > 1e-12, scale, 1.0)
        x = _standardised(gridded, center, scale)
        dilation = np.unique((2 ** np.linspace(0, np.log2(max(1, (length - 2) / (LENGTH - 1))), 8)).astype(np.int64))
        dilation = np.tile(dilation, 2)
        each = max(1, FEATURES // (len(KERNELS) * len(dilation)))
        mix = np.stack([_choose_variables(draw, x.shape[1]) for _ in dilation])
        sample = x[draw.choice(len(x), min(len(x), 64), replace=False)]
        bias = np.zeros((len(dilation), len(KERNELS), each), np.float32)
        for g, (view, d, m) in enumerate(_groups(sample, dilation, mix)):
            output = _convolve(view, m, d)  # [s, 84, L]
            for k, e in np.ndindex(bias.shape[1:]):
                bias[g, k, e] = np.quantile(output[draw.integers(len(sample)), k], (e + draw.random()) / each)
        features = _features(x, dilation, mix, bias)
        feature_center, feature_scale = features.mean(0), features.std(0)
        feature_scale = np.where(feature_scale > 1e-12, feature_scale, 1.0)
        features = (features - feature_center) / feature_scale
        weight, intercept, left_out = _ridge(features, np.eye(truth.max() + 1)[truth] * 2 - 1)

        def loss(sharpness: float) -> float:
            return float(-np.log(softmax(sharpness * left_out, axis=1)[np.arange(len(x)), truth] + 1e-9).sum())

        sharpness = min(2.0 ** np.arange(-1, 7), key=loss)
        arrays = (feature_center, feature_scale, weight, intercept, np.array([sharpness]))
        return cls(np.array([length]), center, scale, dilation, mix, bias, *arrays)

    def predict(self, dataset: AnyDataset) -> Floats:
        """Probabilities [S, K]."""
        assert isinstance(dataset, SeriesDataset), ONLY_SERIES
        out = []
        for part in dataset.series_chunks():
            gridded = on_grid(dataset.select(part), int(self.length[0]))
            x = _standardised(gridded, self.center, self.scale)
            features = (_features(x, self.dilation, self.mix, self.bias) - self.feature_center) / self.feature_scale
            out.append(softmax(self.sharpness[0] * (features @ self.weight + self.intercept), axis=1))
        return np.concatenate(out)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def describe(self) -> dict[str, Any]:
        return {}

    @classmethod
    def load(cls, task: str, described: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        return cls(**arrays)


def on_grid(dataset: SeriesDataset, length: int) -> Floats:
    """[S, V, length]: each variable linearly between its observations, at even times from a series' first to last.

    A variable is a channel's value column. It is constant before its first and after its last observation, and 0 in a
    series that has none.
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


def _standardised(gridded: Floats, center: Floats, scale: Floats) -> NDArray[np.float32]:
    return ((gridded - center[:, None]) / scale[:, None]).astype(np.float32)


def _choose_variables(draw: np.random.Generator, variables: int) -> NDArray[np.float32]:
    """[84, V]: each kernel reads 1 to 9 variables, few more often than many."""
    mix = np.zeros((len(KERNELS), variables), np.float32)
    sizes = np.minimum((2 ** draw.uniform(0, np.log2(min(variables, 9) + 1), len(KERNELS))).astype(int), variables)
    for row, size in zip(mix, sizes, strict=True):
        row[draw.choice(variables, size, replace=False)] = 1
    return mix


def _groups(x: NDArray[np.float32], dilation: NDArray[np.int64], mix: NDArray[np.float32]) -> Any:
    """(series or their differences, dilation, mix) of each group of kernels."""
    views = (x, np.diff(x, axis=2))
    half = len(dilation) // 2
    return ((views[g >= half], int(dilation[g]), mix[g]) for g in range(len(dilation)))


def _features(
    x: NDArray[np.float32], dilation: NDArray[np.int64], mix: NDArray[np.float32], bias: NDArray[np.float32]
) -> Floats:
    """[S, F]."""
    out = []
    for (view, d, m), thresholds in zip(_groups(x, dilation, mix), bias, strict=True):
        rows = [_shares(_convolve(view[i : i + 64], m, d), thresholds) for i in range(0, len(x), 64)]
        out.append(np.concatenate(rows))
    return np.concatenate(out, 1).astype(np.float64)


def _shares(output: NDArray[np.float32], thresholds: NDArray[np.float32]) -> NDArray[np.float32]:
    """The share of output [s, 84, L] above thresholds [84, E], as [s, 84 · E]."""
    above = [(output > one[None, :, None]).mean(2, dtype=np.float32) for one in thresholds.T]
    return np.stack(above, 2).reshape(len(output), -1)


def _convolve(x: NDArray[np.float32], mix: NDArray[np.float32], dilation: int) -> NDArray[np.float32]:
    """[s, 84, L] of series [s, V, L]."""
    mixed = torch.einsum("kv,svl->skl", torch.from_numpy(mix), torch.from_numpy(np.ascontiguousarray(x)))
    kernels = torch.from_numpy(KERNELS)[:, None]
    padding = (LENGTH // 2) * dilation
    return F.conv1d(mixed, kernels, padding=padding, dilation=dilation, groups=len(KERNELS)).numpy()


def _ridge(x: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """(weight [F, K], intercept [K], predictions [S, K] of each row by the others) at the best penalty.

    With G = X Xᵀ and C = (G + αI)⁻¹, the residual of one of n rows that is left out is (C y) / (diag(C) - 1 / nα): the
    last term takes the row out of the means as well, by which columns and answers are centred.
    """
    intercept = y.mean(0)
    values, vectors = np.linalg.eigh(x @ x.T)
    rotated = vectors.T @ (y - intercept)

    def dual(alpha: float) -> tuple[Floats, Floats]:
        shrunk = 1 / (values.clip(0) + alpha)
        coefficients = vectors @ (shrunk[:, None] * rotated)
        return coefficients, coefficients / ((vectors**2) @ shrunk - 1 / (len(y) * alpha))[:, None]

    best = min(ALPHAS, key=lambda alpha: float((dual(alpha)[1] ** 2).sum()))
    coefficients, residuals = dual(best)
    return x.T @ coefficients, intercept, y - residuals
