"""Values in the table's units ↔ values as a model sees them, channel by channel; no single row moves the statistics.

    u = (x - centre) / width            median, and half of the range that holds the middle 68 %: a normal deviation
    y = u                              and of heavy-tailed values, beyond ±knee, ±(knee + asinh(|u| - knee))
        at most ±limit                 about half as far again as all values but one in a thousand, or but one
    z = (y - mean) / std               of y with what lies beyond its 1 % and 99 % quantiles moved to them

All of it is computed in float64.
"""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from rotarymae.errors import InputError, InputWarning, choose, listed
from rotarymae.series.cells import plain
from rotarymae.series.columns import by_channel, measured
from rotarymae.series.dataset import SeriesDataset

TransformKind = Literal["robust", "standard", "asinh", "none"]
KNEE = 3.0  # widths from the median up to which values stay as they are
HEAVY_TAIL = 6.0  # widths; of normal values one in a thousand is 3.3 away from the median
NO_LIMIT = 1e30
KNEES: dict[TransformKind, float] = {"robust": KNEE, "standard": NO_LIMIT, "asinh": 0.0, "none": NO_LIMIT}
STANDARD = "to mean 0 and deviation 1, channel by channel"
WORDS: dict[TransformKind, str] = {
    "robust": f"{STANDARD}; heavy tails are compressed by asinh",
    "standard": STANDARD,
    "asinh": f"compressed by asinh around the median, then {STANDARD}",
    "none": "as it is",
}
MIDDLE = (0.16, 0.84)  # quantiles that are one deviation of a normal distribution from its median
INNER = (0.01, 0.99)  # quantiles to which what lies beyond is moved before mean and deviation are taken
EXTREME = 0.999  # quantile of |u| that says whether tails are heavy, and where the limit is
LEAST_ERROR = 1e-3  # standardised: a smaller one makes no difference, and has no logarithm in the end
MAX_EXPONENT = 80.0  # of the inverse: sinh overflows beyond 710, and 80 is 1e34 widths away already
WILD_WIDTHS, WILD_RATIO, MAX_WILD = 100.0, 10.0, 1e-3  # a few values so far away, and so far from the next one


def numpy_too(method: Callable[..., Tensor]) -> Callable[..., Any]:
    """Decorate a method of tensors so that it also takes numpy arrays, and then returns an array.

    If the first argument is no tensor, all are converted. Arguments are positional only.
    """

    @functools.wraps(method)
    def either(self: Any, *args: Any) -> Any:
        """Call the method as it is if the first argument is a tensor; else with tensors, and return an array."""
        if isinstance(args[0], Tensor):
            return method(self, *args)
        return method(self, *(torch.tensor(np.asarray(arg)) for arg in args)).numpy()

    return either


def asinh(x: Tensor) -> Tensor:
    """Return the inverse hyperbolic sine of a float64 tensor, by functions that exported ONNX programs have."""
    return x.sign() * (x.abs() + (x * x + 1).sqrt()).log()


class ValueScaling(nn.Module):
    """The scaling of V value columns in C channels (1 without channels). Its methods take tensors or numpy arrays.

    A value x becomes u = (x - centre) / width, then y, which is u with |u| compressed by asinh beyond `knee`, then
    z = (y - mean) / std.

    Attributes:
        transforms: V names. "robust" compresses only heavy tails and cuts off extreme values, "asinh" compresses from
            the median on, "standard" does neither, and "none" leaves a column as it is.
        centre, width: float64 [C, V], median and half of the range that holds the middle 68 % of the training values;
            if that is 0, another spread, and 1 for a constant.
        knee, limit: float64 [C, V], beyond which |u| is compressed, and where |y| is cut off; 1e30 for never.
        mean, std: float64 [C, V], of y in training, with extreme values moved to its 1 % and 99 % quantiles; 0 and 1
            for "none".
        as_is: bool [V], True for the transform "none".
    """

    centre: Tensor
    width: Tensor
    mean: Tensor
    std: Tensor
    limit: Tensor
    knee: Tensor
    as_is: Tensor

    def __init__(self, transforms: tuple[TransformKind, ...], channels: int) -> None:
        """Create a scaling with statistics that are NaN until they are fitted or loaded.

        Args:
            transforms: one for each of the V value columns.
            channels: number C of channels; 1 without channels.

        Raises:
            InputError: an unknown transform.
        """
        super().__init__()
        for name in transforms:
            choose("a transform", name, get_args(TransformKind))
        self.transforms = transforms
        for name in ("centre", "width", "mean", "std", "knee", "limit"):  # NaN until they are fitted or loaded
            self.register_buffer(name, torch.full((channels, len(transforms)), torch.nan, dtype=torch.float64))
        self.register_buffer("as_is", torch.tensor([name == "none" for name in transforms]), persistent=False)

    @classmethod
    def fit(cls, dataset: SeriesDataset, transforms: dict[str, str] | None = None) -> ValueScaling:
        """Create a scaling with the statistics of a training set; a large set is sampled.

        Limits ("<5") do not count as values. A channel without a value in a column gets the statistics of that column
        over all channels. If no channel has a value, it gets those of the column's limits, which at least have the
        right size.

        Args:
            dataset: the training set.
            transforms: {column: transform}; the other columns get "robust", which compresses heavy tails only.

        Raises:
            InputError: an unknown column or transform.

        Warns:
            InputWarning: single values that lie far from all others, named by series and time.
        """
        dataset, by_name = dataset.sample(), dict(transforms or {})
        for name in by_name:
            if name not in dataset.value_names:
                raise InputError(
                    f"the option transforms has an entry for {name!r}, which is no column of values; give entries for "
                    f"{', '.join(dataset.value_names)} only."
                )
        names: Any = tuple(by_name.get(name, "robust") for name in dataset.value_names)
        scaling = cls(names, len(dataset.channel_names or (None,)))
        values = np.asarray(measured(dataset), np.float64)
        wild: list[str] = []
        for (c, of_channel), v in itertools.product(enumerate(by_channel(dataset)), range(len(names))):
            rows, known = of_channel[np.isfinite(values[of_channel, v])], np.isfinite(values[:, v])
            part = values[rows, v] if len(rows) else values[known, v] if known.any() else dataset.values[:, v]
            away = scaling._fit_column(c, v, torch.from_numpy(np.array(part, np.float64)))
            wild += _wild(dataset, rows, v, away) if len(rows) else ()
        if wild:
            warnings.warn(
                f"{len(wild)} value{'s lie' if len(wild) > 1 else ' lies'} far from all others: {listed(wild)}. Their "
                "effect on others is bounded; leave them out if they are wrong.",
                InputWarning,
                stacklevel=3,
            )
        return scaling

    def _fit_column(self, c: int, v: int, part: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
        """Set the statistics of one channel and value column, in place; return how far its values are from the median.

        Args:
            c, v: numbers of channel and column.
            part: their n training values, at least one, all finite.

        Returns:
            |value - median| / `width` of each value; `width` is a robust spread of the values.
        """
        low, centre, high = np.quantile(part.numpy(), (MIDDLE[0], 0.5, MIDDLE[1]))
        # Where two values in three are alike the spread of the others counts, and of a rare flag that of all.
        candidates = (high - low) / 2, float(_inner(part).std(correction=0)), float((part - centre).abs().mean())
        # The spread of rounding errors is no spread: dividing by it would turn a constant channel into noise.
        usable = [spread for spread in candidates if spread > 1e-12 * abs(centre)]
        width = usable[0] if usable else 1.0
        self.centre[c, v], self.width[c, v] = centre, width
        u = (part - centre) / width
        robust, as_is = self.transforms[v] == "robust", self.transforms[v] == "none"
        self.knee[c, v] = NO_LIMIT if robust and _quantile_999(u) <= HEAVY_TAIL else KNEES[self.transforms[v]]
        bent = _compress_tails(u, self.knee[c, v])
        self.limit[c, v] = 1.5 * max(_quantile_999(bent), KNEE) + 0.5 if robust else NO_LIMIT
        bent = _inner(bent)
        std = float(bent.std(correction=0))
        self.mean[c, v] = 0.0 if as_is else bent.mean()
        self.std[c, v] = std if usable and std > 1e-12 and not as_is else 1.0
        return u.abs()

    @numpy_too
    def transform(self, values: Float[Tensor, "*shape V"], channel: Int[Tensor, "*shape"]) -> Tensor:
        """Standardise values by the statistics of their channel, moving extreme ones inwards; return float64 [..., V].

        Heavy tails are compressed as `transforms` says. With "robust", a value beyond a bound (`limit`) is moved to it;
        the bound is about 1.5 times as far from the median as nearly all training values. Columns with "none" are
        unchanged.

        Args:
            values: V values in each row, in the table's units.
            channel: number of each row's channel, from 0.
        """
        return self.bounded(self.unbounded(values, channel), channel)

    @numpy_too
    def bounded(self, scaled: Float[Tensor, "*shape V"], channel: Int[Tensor, "*shape"]) -> Tensor:
        """Limit standardised values to the bounds of their channel; return float64 [..., V].

        The bounds are those of `transform`. A model's predictions are limited to them, too, so that none lies beyond
        all values that it saw in training. Columns with the transform "none" are unchanged.

        Args:
            scaled: V standardised values in each row.
            channel: number of each row's channel, from 0.
        """
        scaled, limit = scaled.double(), self.limit[channel]
        low, high = ((bound - self.mean[channel]) / self.std[channel] for bound in (-limit, limit))
        return torch.where(self.as_is, scaled, torch.minimum(torch.maximum(scaled, low), high))

    @numpy_too
    def unbounded(self, values: Float[Tensor, "*shape V"], channel: Int[Tensor, "*shape"]) -> Tensor:
        """Standardise values by the statistics of their channel, without any bound; return float64 [..., V].

        Heavy tails are compressed as `transforms` says; columns with "none" are unchanged.

        Args:
            values: V values in each row, in the table's units.
            channel: number of each row's channel, from 0.
        """
        values = values.double()
        y = _compress_tails((values - self.centre[channel]) / self.width[channel], self.knee[channel])
        return torch.where(self.as_is, values, (y - self.mean[channel]) / self.std[channel])

    @numpy_too
    def inverse(self, scaled: Float[Tensor, "*shape V"], channel: Int[Tensor, "*shape"]) -> Tensor:
        """Convert standardised values to the table's units, float64 [..., V]: the inverse of `unbounded`.

        Args:
            scaled: V standardised values in each row.
            channel: number of each row's channel, from 0.
        """
        scaled = scaled.double()
        u = _expand_tails(scaled * self.std[channel] + self.mean[channel], self.knee[channel])
        return torch.where(self.as_is, scaled, self.centre[channel] + self.width[channel] * u)

    @numpy_too
    def standard_errors(
        self, values: Float[Tensor, "*shape V"], errors: Float[Tensor, "*shape V"], channel: Int[Tensor, "*shape"]
    ) -> Tensor:
        """Convert standard errors from the table's units to standardised units, float64 [..., V].

        The result is half the distance between value + error and value - error, both standardised by `unbounded`. Where
        values are compressed, this is closer to the true deviation than the error times the slope at the value.

        Args:
            values, errors: V values in each row and their standard errors, in the table's units; a negative error
                counts as 0.
            channel: number of each row's channel, from 0.
        """
        values, errors = values.double(), errors.double().clamp(min=0.0)
        upper, lower = (self.unbounded(edge, channel) for edge in (values + errors, values - errors))
        return (upper - lower) / 2

    @numpy_too
    def spread_about(self, scaled: Float[Tensor, "*shape V"], channel: Int[Tensor, "*shape"]) -> Tensor:
        """Return the RMS distance of the channel's training values from each given value, float64 [..., V].

        It is estimated from the mean and standard deviation in training. Values and distances are standardised.

        Args:
            scaled: V given values in each row, standardised.
            channel: number of each row's channel, from 0.
        """
        # What is left as it is has the spread of its middle; all else has mean 0 and deviation 1.
        centre = torch.where(self.as_is, self.centre[channel], 0.0)
        width = torch.where(self.as_is, self.width[channel], 1.0)
        return (width**2 + (scaled.double() - centre) ** 2).sqrt()


def _compress_tails(u: Float[Tensor, "*shape"], knee: Float[Tensor, "*#shape"]) -> Float[Tensor, "*shape"]:
    """Compress large numbers: return u up to ±knee, and ±(knee + asinh(|u| - knee)) beyond it.

    Args:
        knee: at least 0.
    """
    return _within(u, knee) + u.sign() * asinh((u.abs() - knee).clamp(min=0.0))


def _expand_tails(y: Float[Tensor, "*shape"], knee: Float[Tensor, "*#shape"]) -> Float[Tensor, "*shape"]:
    """Invert `_compress_tails`: return y up to ±knee, and ±(knee + sinh(|y| - knee)) beyond it.

    To avoid overflow, a |y| of more than knee + 80 (`MAX_EXPONENT`) counts as knee + 80.

    Args:
        knee: that of `_compress_tails`, at least 0.
    """
    beyond = (y.abs() - knee).clamp(0.0, MAX_EXPONENT)
    sinh = (beyond.exp() - (-beyond).exp()) / 2  # ONNX programs have none of float64
    return _within(y, knee) + y.sign() * sinh


def _quantile_999(part: Float[Tensor, " n"]) -> float:
    """Return how large the extreme values are: the 99.9 % quantile of |values|, rounded down to one of them.

    It is the second largest of 2 to 1,000 values.
    """
    return float(np.quantile(part.abs().numpy(), EXTREME, method="lower"))


def _within(x: Float[Tensor, "*shape"], bound: Float[Tensor, "*#shape"]) -> Float[Tensor, "*shape"]:
    """Return x limited to ±bound."""
    return torch.minimum(torch.maximum(x, -bound), bound)


def _inner(part: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """Move values below the 1 % and above the 99 % quantile to these; return fewer than five values as they are.

    Quantiles are rounded inwards to one of the values. Of up to a hundred values, the smallest and the largest thus
    become equal to the next one, so that a single wild value has no weight.
    """
    if len(part) < 5:
        return part
    low, high = (
        float(np.quantile(part.numpy(), share, method=how))
        for share, how in zip(INNER, ("higher", "lower"), strict=True)
    )
    return part.clamp(low, high)


def _wild(dataset: SeriesDataset, rows: np.ndarray, v: int, away: Float[Tensor, " n"]) -> Iterator[str]:
    """Describe, for a warning, the few values of a channel that lie extremely far from its median and all other values.

    Of n values, at most n / 1000 are described, or one if that is less. Each lies over 100 widths from the median, and
    over ten times as far from it as any value that is not described.

    Args:
        dataset: the training set.
        rows: the observations of the channel, as indices; of fewer than twenty nothing is yielded.
        v: number of the value column.
        away: distance of the value in each of these rows from the median, in widths (`ValueScaling.width`).
    """
    most, names = max(1, int(MAX_WILD * len(rows))), dataset.channel_names
    if len(rows) < 20:  # with fewer nothing stands out
        return
    largest = torch.topk(away, most + 1)
    size = largest.values.numpy()
    apart = np.flatnonzero((size[:-1] > WILD_WIDTHS) & (size[:-1] > WILD_RATIO * size[1:]) & (size[1:] > 0))
    for k in range(int(apart[-1]) + 1 if len(apart) else 0):
        row = int(rows[largest.indices[k]])
        series = int(np.searchsorted(dataset.offsets, row, side="right")) - 1
        channel = "" if names is None else f"channel {plain(names[dataset.channels[row]])!r}, "  # pyright: ignore
        yield (
            f"{channel}column {dataset.value_names[v]!r} is {dataset.values[row, v]:.6g} in series "
            f"{plain(dataset.ids[series])!r} at time {dataset.times[row]:.10g}"
        )
