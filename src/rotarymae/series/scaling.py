"""From a table's units to what the model sees, and back; fitted on training data and saved with the model.

Values are compressed where they are heavy-tailed (asinh) and standardised channel by channel. Times are shifted to
each series' first observation in float64 and divided by a unit near the gap between neighbours: the fastest rotary
frequency turns 1 radian a unit, so times in [0, 1] would be nearly indistinguishable.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Self, get_args

import numpy as np

from rotarymae.errors import InputError, InputWarning
from rotarymae.series.columns import channel_index
from rotarymae.series.dataset import SeriesDataset

Function = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Transform:
    """A monotone function of values, before they are standardised.

    Attributes:
        forward, inverse: of (values, centre, width), each [n, V]; None leaves values as they are.
        standardised: whether mean 0 and deviation 1 follow.
        words: what is done, for reports.
    """

    forward: Function | None
    inverse: Function | None
    standardised: bool
    words: str


STANDARD = "to mean 0 and deviation 1, channel by channel"
TRANSFORMS = {
    "standard": Transform(None, None, True, STANDARD),
    "asinh": Transform(
        lambda x, centre, width: np.arcsinh((x - centre) / width),
        # sinh overflows beyond 710; 80 is 1e34 widths away already.
        lambda y, centre, width: centre + width * np.sinh(np.clip(y, -80, 80)),
        True,
        f"compressed by asinh around the median, then {STANDARD}",
    ),
    "none": Transform(None, None, False, "as it is"),
}
Origin = Literal["first", "zero"]
COARSE = 0.1  # units of time: positions that float32 cannot tell apart better are worth a warning
LEAST_ERROR = 1e-3  # standardised: a smaller one makes no difference, and has no logarithm in the end


@dataclass(frozen=True)
class ValueScaler:
    """z = (f(x) - mean) / std for each channel and feature, with f(x) = x, or asinh((x - centre) / width).

    Attributes:
        transforms: V names, "standard", "asinh" or "none" (x as it is).
        centre, width: [C][V], used by "asinh": median and 1.4826 · median absolute deviation of the training values.
        mean, std: [C][V] of f(x) over the training values; a constant channel has std 1.
    """

    transforms: tuple[str, ...]
    centre: tuple[tuple[float, ...], ...]
    width: tuple[tuple[float, ...], ...]
    mean: tuple[tuple[float, ...], ...]
    std: tuple[tuple[float, ...], ...]

    @classmethod
    def fit(cls, dataset: SeriesDataset, transforms: dict[str, str] | None = None) -> Self:
        """Statistics of a training set (of a `sample` of a large one). `transforms` overrides by feature name; the
        others are chosen.

        A feature is heavy-tailed, and gets asinh, when in any channel with 20 observations or more the 99.5 %
        quantile of |x - median| exceeds 20 times its median (4.2 for a normal distribution).
        """
        dataset, asked = dataset.sample(), dict(transforms or {})
        for name, transform in asked.items():
            if name not in dataset.value_names:
                raise InputError(f"a transform for {name!r}; the values are {', '.join(dataset.value_names)}.")
            if transform not in TRANSFORMS:
                raise InputError(f"transform {transform!r} of {name!r}; wanted one of {', '.join(TRANSFORMS)}.")
        values = np.asarray(dataset.values, np.float64)
        groups = _by_channel(dataset)
        shape = (len(groups), values.shape[1])
        centre, width, tail = np.zeros(shape), np.ones(shape), np.zeros(shape)
        for c, group in enumerate(groups):
            part = values[group] if len(group) else values
            centre[c] = np.median(part, axis=0)
            away = np.abs(part - centre[c])
            spread = np.median(away, axis=0)
            tail[c] = np.quantile(away, 0.995, axis=0) / np.where(spread > 0, spread, np.inf) * (len(group) >= 20)
            fallback = away.mean(axis=0)
            width[c] = np.where(spread > 0, 1.4826 * spread, np.where(fallback > 0, fallback, 1.0))
        names = [
            asked.get(name, "asinh" if tail[:, v].max() > 20 else "standard")
            for v, name in enumerate(dataset.value_names)
        ]
        scaler = cls(tuple(names), _rows(centre), _rows(width), _rows(np.zeros(shape)), _rows(np.ones(shape)))
        compressed = scaler.transform(values, channel_index(dataset))
        mean, std = np.zeros(shape), np.ones(shape)
        for c, group in enumerate(groups):
            part = compressed[group] if len(group) else compressed
            with np.errstate(over="ignore", invalid="ignore"):  # refused below, by name
                away = part - part[0]  # so that sums of many equal numbers do not lose digits
                mean[c], std[c] = part[0] + away.mean(axis=0), away.std(axis=0)
        wild = np.argwhere(~np.isfinite([centre, width, mean, std]).all(0))
        if len(wild):
            c, v = wild[0]
            where = "" if dataset.channel_names is None else f" of channel {dataset.channel_names[c]!r}"
            most = np.abs(values[groups[c], v]).max(initial=0.0)
            raise InputError(
                f"column {dataset.value_names[v]!r}{where} reaches {most:.3g}, too large to compute a deviation; "
                "divide it by a constant first."
            )
        as_is = np.array([not TRANSFORMS[name].standardised for name in names])
        # The spread of rounding errors is no spread: dividing by it would turn a constant channel into noise.
        constant = std <= 1e-12 * np.abs(mean)
        mean, std = np.where(as_is, 0.0, mean), np.where(as_is | constant, 1.0, std)
        return dataclasses.replace(scaler, mean=_rows(mean), std=_rows(std))

    def transform(self, values: np.ndarray, channels: np.ndarray) -> np.ndarray:
        """Standardised values [n, V], float64, of observations in the given channels [n]."""
        compressed = self._apply("forward", np.asarray(values, np.float64), channels)
        return (compressed - np.array(self.mean)[channels]) / np.array(self.std)[channels]

    def inverse(self, scaled: np.ndarray, channels: np.ndarray) -> np.ndarray:
        """Values in their own units, float64; the inverse of `transform`, monotone in every feature."""
        compressed = np.asarray(scaled, np.float64) * np.array(self.std)[channels] + np.array(self.mean)[channels]
        return self._apply("inverse", compressed, channels)

    def standard_errors(self, values: np.ndarray, errors: np.ndarray, channels: np.ndarray) -> np.ndarray:
        """Standard errors [n, V] of values [n, V] in the table's units, standardised as the values are.

        Half the standardised distance between one error below and one above: of a compressed value, whose slope
        changes within a large error, that is nearer to its deviation than the slope at the value.
        """
        values, errors = np.asarray(values, np.float64), np.maximum(np.asarray(errors, np.float64), 0.0)
        return (self.transform(values + errors, channels) - self.transform(values - errors, channels)) / 2

    def spread_about(self, scaled: np.ndarray, channels: np.ndarray) -> np.ndarray:
        """The root mean squared distance of a channel's training values from given ones [n, V], all standardised."""
        as_is = np.array([not TRANSFORMS[name].standardised for name in self.transforms])
        # What is left as it is has the spread of its middle; all else has mean 0 and deviation 1.
        centre, width = np.where(as_is, self.centre, 0.0), np.where(as_is, self.width, 1.0)
        return np.hypot(width[channels], scaled - centre[channels])

    def _apply(self, direction: Literal["forward", "inverse"], values: np.ndarray, channels: np.ndarray) -> np.ndarray:
        for name in set(self.transforms):
            function = getattr(TRANSFORMS[name], direction)
            if function is not None:
                centre, width = np.array(self.centre)[channels], np.array(self.width)[channels]
                own = np.array([transform == name for transform in self.transforms])
                values = np.where(own, function(values, centre, width), values)
        return values


@dataclass(frozen=True)
class PositionScaler:
    """position = (time - origin) / unit, in float64, then channel number · channel_spacing as a second axis.

    Attributes:
        unit: in the table's unit of time.
        origin: "first" counts from each series' first observation, "zero" from the table's own zero.
        channel_spacing: distance between neighbouring channels on the channel axis, whose first channel stands at it.
        reach: largest |position| in time of the training set; times far beyond it get a warning.
    """

    unit: float
    origin: Origin = "first"
    channel_spacing: float = 1.0
    reach: float = 0.0

    @classmethod
    def fit(
        cls,
        dataset: SeriesDataset,
        unit: float | None = None,
        origin: Origin = "first",
        channel_spacing: float = 1.0,
    ) -> Self:
        """The unit is the larger of the median gap between a series' distinct times and a thousandth of the median
        span, unless given; of a `sample` of a large set. Beyond some 3,000 to 4,000 units (size light,
        with and without channels) the slowest kept frequency has gone round."""
        if origin not in get_args(Origin):
            raise InputError(f"origin {origin!r}; wanted 'first' (of each series) or 'zero' (of the table).")
        for name, number in (("unit", unit), ("channel_spacing", channel_spacing)):
            if number is not None and not (np.isfinite(number) and number > 0):
                raise InputError(f"{name} of positions is {number}; wanted a positive number.")
        if unit is None:
            some = dataset.sample()
            gaps = np.diff(some.times)
            gaps[some.offsets[1:-1] - 1] = 0.0  # from one series to the next is no gap
            gaps = gaps[gaps > 0]
            spans = some.times[some.offsets[1:] - 1] - some.times[some.offsets[:-1]]
            spans = spans[spans > 0]
            unit = max(float(np.median(gaps)), float(np.median(spans)) / 1000) if len(gaps) else 1.0
        scaler = cls(float(unit), origin, float(channel_spacing))
        with np.errstate(over="ignore"):
            reach = float(scaler.reaches(dataset).max())
        if reach > np.finfo(np.float32).max:
            raise InputError(
                f"in units of {unit:g} times reach {reach:.2g} from their origin, which does not fit into 32 bits; "
                "choose a larger unit."
            )
        apart = float(np.spacing(np.float32(reach)))
        if apart > COARSE:
            warnings.warn(
                f"times reach {reach:.3g} units of {unit:.3g} from their origin, where 32 bits tell apart only what is "
                f"{apart:.2g} units away; count them from each series' first (time_origin='first'), or choose a larger "
                "time_unit.",
                InputWarning,
                stacklevel=2,
            )
        return dataclasses.replace(scaler, reach=reach)

    def origins(self, dataset: SeriesDataset) -> np.ndarray:
        """The time [S] from which each series counts."""
        if self.origin == "zero":
            return np.zeros(len(dataset))
        return dataset.times[dataset.offsets[:-1]]

    def reaches(self, dataset: SeriesDataset) -> np.ndarray:
        """The largest |position| in time of each series [S]; its times ascend."""
        ends = np.stack([dataset.times[dataset.offsets[:-1]], dataset.times[dataset.offsets[1:] - 1]])
        return np.abs((ends - self.origins(dataset)) / self.unit).max(axis=0)

    def times(self, times: np.ndarray, origins: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """Positions in time [n], float64, of flat times whose series have these origins and lengths."""
        return (np.asarray(times, np.float64) - np.repeat(origins, lengths)) / self.unit


def _rows(table: np.ndarray) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(x) for x in row) for row in table)


def _by_channel(dataset: SeriesDataset) -> list[np.ndarray]:
    """Indices of the observations of every channel."""
    channels = channel_index(dataset)
    count = 1 if dataset.channel_names is None else len(dataset.channel_names)
    order = np.argsort(channels, kind="stable")
    return np.split(order, np.searchsorted(channels[order], np.arange(1, count)))
