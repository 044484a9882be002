"""Times and further positions in the table's units → positions near zero, about one unit between neighbours.

The fastest rotary frequency turns 1 radian a unit, so times in [0, 1] would be nearly indistinguishable. Origins and
units are taken from the middle of the data: one row decades before all others moves neither.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from rotarymae.errors import InputError, InputWarning
from rotarymae.series.dataset import SeriesDataset

Origin = Literal["first", "zero"]
COARSE = 0.1  # units: positions that float32 cannot tell apart better are worth a warning
FENCE = 10.0  # interquartile ranges; a time beyond as many of its series is far from the others
MIN_TIMES = 4  # of a series, to tell which of them is far
# In a series' span: of bursts of times the gaps within them are no unit. Beyond some 3,000 to 4,000 units (size light)
# the slowest rotated frequency has gone round once.
MAX_UNITS = 1000.0


class PositionScaling(nn.Module):
    """Turn times and P further columns into positions near zero: (x - origin) / unit, the difference in float64.

    Time counts from each series' first observation that is not far before its others, or from the table's zero. The
    origins of further columns are their medians in the training set.

    Attributes:
        origin: "first" or "zero", from which time counts.
        units: float64 [1 + P], the unit of time and those of the further columns, in the table's units.
        column_origins: float64 [P].
        training_reach: float64 [1 + P], largest |position| of the training set, without times far from their series.
    """

    units: Tensor
    column_origins: Tensor
    training_reach: Tensor

    def __init__(self, columns: int = 0, origin: Origin = "first") -> None:
        """Create a scaling of time and of `columns` further positions; its statistics are NaN until they are set.

        With `origin` "first" time counts from each series' first observation, with "zero" from the table's zero.
        """
        super().__init__()
        self.origin = origin
        for name, size in (("units", columns + 1), ("column_origins", columns), ("training_reach", columns + 1)):
            self.register_buffer(name, torch.full((size,), torch.nan, dtype=torch.float64))

    @property
    def unit(self) -> float:
        """Return the unit of time, in which positions are counted, as a number in the unit of the table's times."""
        return float(self.units[0])

    @property
    def reach(self) -> float:
        """Return how far times of the training set lie from their series' origin at most, in multiples of `unit`.

        The origin is the first observation, or the table's zero. Times far from others of their series do not count.
        """
        return float(self.training_reach[0])

    @classmethod
    def fit(cls, dataset: SeriesDataset, unit: float | None = None, origin: Origin = "first") -> PositionScaling:
        """Create a scaling with the units and origins of a training set; a large set is sampled.

        The unit of time is a typical gap between observations: the median over series of each one's median gap, or a
        thousandth of the median span if that is larger. The unit of another position is about the distance of
        neighbouring places, see `_column_units`.

        Args:
            dataset: the training set.
            unit: the unit of time, in the table's unit; None measures it.
            origin: "first" counts from each series' first observation, "zero" from the table's zero.

        Raises:
            InputError: in this unit, times are too large for 32 bits.

        Warns:
            InputWarning: a unit so small that 32 bits do not tell times apart that differ by a tenth of it.
        """
        some, scaling = dataset.sample(), cls(len(dataset.position_names), origin)
        if some.positions is not None:
            columns = np.asarray(some.positions, np.float64)
            scaling.column_origins[:] = torch.from_numpy(np.median(columns, axis=0))
            scaling.units[1:] = torch.from_numpy(_column_units(some, columns))
        scaling.units[0] = _time_unit(some) if unit is None else unit
        with np.errstate(over="ignore"):
            scaling.training_reach[:] = torch.from_numpy(scaling.reaches(dataset).max(axis=0))
        if scaling.reach > np.finfo(np.float32).max:
            raise InputError(
                f"times lie up to {scaling.reach:.2g} from their origin, in units of {scaling.unit:g}, and 32 bits "
                "cannot hold such a number; set a larger time_unit, or write the table's times in a larger unit."
            )
        apart = float(np.spacing(np.float32(scaling.reach)))
        if apart > COARSE:
            warnings.warn(
                f"times reach {scaling.reach:.3g} units of {scaling.unit:.3g} from their origin, where 32 bits tell "
                f"apart only what is {apart:.2g} units away; count them from each series' first "
                "(time_origin='first'), or choose a larger time_unit.",
                InputWarning,
                stacklevel=3,
            )
        return scaling

    def origins(self, dataset: SeriesDataset) -> np.ndarray:
        """Return the origin of each series: the time to subtract from its times, float64 [S] in the table's unit.

        With `origin` "zero" it is 0. Else it is the earliest time of the series that is not a stray one. A stray one is
        more than ten interquartile ranges below the first quartile; a series of fewer than four times, or with an
        interquartile range of 0, has none.
        """
        if self.origin == "zero":
            return np.zeros(len(dataset))
        low, _ = fences(dataset)
        first = np.asarray(dataset.times[dataset.offsets[:-1]], np.float64).copy()
        for s in np.flatnonzero(first < low):
            times = np.asarray(dataset.times[dataset.offsets[s] : dataset.offsets[s + 1]])
            first[s] = times[np.searchsorted(times, low[s])]
        return first

    def origins_of_rows(self, times: Float[Tensor, "B N"], real: Bool[Tensor, "B N"]) -> Float[Tensor, "B 1"]:
        """Return the origin of each of B padded series, the time to subtract: [B, 1] in the table's unit.

        The rule is that of `origins`. With `origin` "zero" the origin is 0; otherwise it is the earliest time that is
        not an outlier. An outlier lies more than ten interquartile ranges below the first quartile. A series of fewer
        than four times, or with an interquartile range of 0, has no outliers.

        Args:
            times: N times of each row in the table's unit, in any order.
            real: True where there is an observation, in each row at least once; other times are not read.
        """
        if self.origin == "zero":
            return torch.zeros_like(times[:, :1])
        ordered = torch.where(real, times, torch.inf).sort(dim=1).values
        count = real.sum(1, keepdim=True)
        lower, upper = (ordered.gather(1, at) for at in _quartiles(count))
        low = torch.where((count >= MIN_TIMES) & (upper > lower), lower - FENCE * (upper - lower), -torch.inf)
        return torch.where(real & (times >= low), times, torch.inf).amin(1, keepdim=True)

    def reaches(self, dataset: SeriesDataset) -> np.ndarray:
        """Return how far each series reaches from the origin on each axis, in units of position, float64 [S, 1 + P].

        The first column is time, counted from the series' origin (`origins`), without times far from its others
        (`fences`). The others are the P further positions, counted from the training medians.
        """
        low, high = fences(dataset)
        origins, lengths = self.origins(dataset), np.diff(dataset.offsets)
        reach = np.zeros((len(lengths), len(self.units)))
        for part in dataset.series_chunks():
            rows = slice(*dataset.offsets[[part[0], part[-1] + 1]])
            series = np.repeat(part, lengths[part])
            times = np.asarray(dataset.times[rows], np.float64)
            away = np.abs(times - origins[series]) * ((times >= low[series]) & (times <= high[series]))
            columns = [away[:, None]]
            if dataset.positions is not None:
                columns.append(np.abs(dataset.positions[rows] - self.column_origins.numpy()))
            scaled = np.concatenate(columns, axis=1) / self.units.numpy()
            reach[part] = np.maximum.reduceat(scaled, dataset.offsets[part] - rows.start)
        return reach

    def forward(
        self,
        times: Float[Tensor, "B N"],
        columns: Float[Tensor, "B N P"] | None,
        origins: Float[Tensor, "B 1"],
    ) -> Float[Tensor, "B N A"]:
        """Scale N times and P further columns in each of B rows to positions on A = 1 + P axes, float64, time first.

        A position is (number - origin) / unit. The units are those of the training set, as are the origins of the
        further columns. The origins of time are given by `origins`.

        Args:
            times: in the table's unit.
            columns: further positions in the table's units; None without any (P = 0).
            origins: the origin of time of each row, as `origins_of_rows` returns it.
        """
        at = ((times.double() - origins) / self.units[0])[..., None]
        if columns is None:
            return at
        return torch.cat([at, (columns.double() - self.column_origins) / self.units[1:]], -1)


def fences(dataset: SeriesDataset) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds (low, high) of each series, two arrays float64 [S]; times beyond them are far from its others.

    They are the quartiles of the series' times, moved outwards by ten interquartile ranges; or -inf and inf for a
    series of fewer than four times, or with equal quartiles.
    """
    lengths = np.diff(dataset.offsets)
    lower, upper = (np.asarray(dataset.times[dataset.offsets[:-1] + at]) for at in _quartiles(lengths))
    known, wide = (lengths >= MIN_TIMES) & (upper > lower), FENCE * (upper - lower)
    return np.where(known, lower - wide, -np.inf), np.where(known, upper + wide, np.inf)


def _quartiles(count: Any) -> tuple[Any, Any]:
    """Return the indices (lower, upper) of the first and the third quartile among `count` sorted numbers.

    Args:
        count: an array or a tensor of whole numbers, each at least 1; the indices have its shape.
    """
    return ((count + 2) // 4).clip(max=count - 1), (3 * (count - 1)) // 4


def _time_unit(dataset: SeriesDataset) -> float:
    """Return a unit of time for a data set: the median over series of each one's median gap between observations.

    It is at least a thousandth of the median span of the series, and 1 if no series has two different times. The span
    is twice the interquartile range of a series' times, or the whole range if that is 0 or there are fewer than four
    times. Equal times make no gap; gaps next to a time far from the others of its series (`fences`) do not count.
    """
    low, high = fences(dataset)
    lengths = np.diff(dataset.offsets)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    near = (dataset.times >= low[owner]) & (dataset.times <= high[owner])
    gaps = np.diff(dataset.times, append=0.0) * (near & np.append(near[1:], False))
    gaps[dataset.offsets[1:] - 1] = 0.0  # from one series to the next is no gap
    owner = owner[gaps > 0]
    if not len(owner):
        return 1.0
    gaps = gaps[gaps > 0]
    order = np.lexsort((gaps, owner))
    opens = np.flatnonzero(np.diff(owner, prepend=-1))
    counts = np.diff(np.append(opens, len(owner)))
    gaps = gaps[order]
    medians = (gaps[opens + (counts - 1) // 2] + gaps[opens + counts // 2]) / 2
    lower, upper = (np.asarray(dataset.times[dataset.offsets[:-1] + at]) for at in _quartiles(lengths))
    spans = np.where(lengths >= MIN_TIMES, 2 * (upper - lower), 0.0)  # as of times spread evenly
    last = dataset.times[dataset.offsets[1:] - 1] - dataset.times[dataset.offsets[:-1]]
    spans = np.where(spans > 0, spans, last)[last > 0]
    return float(max(np.median(medians), np.median(spans) / MAX_UNITS))


def _column_units(dataset: SeriesDataset, columns: np.ndarray) -> np.ndarray:
    """Return a unit for each of P further positions, [P]: about the distance of neighbouring places.

    A unit is the span of its column divided by k ** (1 / P), as if k places were a grid; the divisor is at most 1,000.
    k is the median number of different places of a series. If most series stay at one place, k is the number of
    different places in the data set. The span is twice the interquartile range, or if that is 0, the whole range. A
    constant column gets 1.

    Args:
        columns: [n, P], the further positions of all observations, in the table's units.
    """
    places = [len(np.unique(part, axis=0)) for part in np.split(columns, dataset.offsets[1:-1])]
    series_alike = len(places) > 1 and np.median(places) < 2  # stations: each series stays at its place
    count = len(np.unique(columns, axis=0)) if series_alike else float(np.median(places))
    steps = np.clip(count ** (1 / columns.shape[1]), 1.0, MAX_UNITS)
    low, high = np.quantile(columns, (0.25, 0.75), axis=0)
    spans = 2 * (high - low)
    spans = np.where(spans > 0, spans, columns.max(axis=0) - columns.min(axis=0))
    return np.where(spans > 0, spans / steps, 1.0)
