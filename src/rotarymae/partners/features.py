"""Numbers that describe a series of any length: what gradient boosting reads.

`summary_features` are those of the printed baseline, `more_features` those of the predictor. Nothing here loops over
observations: numpy reduces sorted rows; and features are computed from a part of the series at a time, so that a data
set in a file is never read whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rotarymae.arrays import ArrayDataset, array_features
from rotarymae.partners.base import AnyDataset
from rotarymae.series import SeriesDataset, error_columns

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Channels times value columns (without one of errors). With more, trees drown in features of a shape that few channels
# have: on PhysioNet's 37 variables ten numbers each beat thirteen.
NARROW = 12
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
STRONG = 5  # standard deviations from zero; where the first value has an error column


def _computed(dataset: AnyDataset, features: Callable[..., dict[str, Floats]]) -> tuple[Floats, tuple[str, ...]]:
    if isinstance(dataset, ArrayDataset):
        return array_features(dataset)
    names = tuple(str(name) for name in dataset.value_names)
    channel_names = dataset.channel_names or ("all",)
    parts = [features(rows, names, channel_names) for rows in chunks(dataset)]
    return np.concatenate([np.stack(list(part.values()), 1) for part in parts]), tuple(parts[0])


# ── of the printed baseline ───────────────────────────────────────────────────────────────────────────────────────


def summary_features(dataset: AnyDataset) -> tuple[Floats, tuple[str, ...]]:
    """What one would compute by hand: features [S, F] and their F names; NaN where there was nothing to compute.

    Per channel and over the whole series: count, time span, and for every value column mean, std, min, max and skew.
    Where the first column has one of errors (`error_columns`), also mean and largest signal-to-noise, the share of
    observations above 5, and the time they span. Between neighbouring channels: the difference of the means of the
    first value, and that difference over the sum of their sizes (it stays within -1..1 for fluxes of either sign).
    Times keep the data's unit. Of arrays, `array_features`.
    """
    return _computed(dataset, _features)


def _features(rows: Rows, names: tuple[str, ...], channel_names: Sequence[Any]) -> dict[str, Floats]:
    error = _error(names)
    features: dict[str, Floats] = {}
    if rows.num_channels > 1:
        shape = (rows.num_series, rows.num_channels)
        keys = rows.series * rows.num_channels + rows.channels
        summaries = _summaries(keys, rows.num_series * rows.num_channels, rows.times, rows.values, names, error)
        per_channel = {name: column.reshape(shape) for name, column in summaries.items()}
        for name, table in per_channel.items():
            features |= {f"{channel}: {name}": table[:, i] for i, channel in enumerate(channel_names)}
        means = per_channel[f"{names[0]} mean"]
        for i in range(rows.num_channels - 1):
            first, second = means[:, i], means[:, i + 1]
            pair = f"{channel_names[i]} - {channel_names[i + 1]}"
            features[f"{pair}: {names[0]}"] = first - second
            features[f"{pair}: relative {names[0]}"] = divide(first - second, np.abs(first) + np.abs(second))
        features["all: channels"] = (per_channel["count"] > 0).sum(1).astype(np.float64)
    whole = _summaries(rows.series, rows.num_series, rows.times, rows.values, names, error)
    return features | {f"all: {name}": column for name, column in whole.items()}


def _summaries(
    keys: Integers, groups: int, times: Floats, values: Floats, names: Sequence[str], error: int | None
) -> dict[str, Floats]:
    """Summaries of each group of rows, each [groups]; NaN for a group without rows, except counts (0)."""
    all_rows = _Groups(keys, groups, times, times, None)
    out = {"count": np.bincount(keys, minlength=groups).astype(np.float64)}
    out |= all_rows.spread({"span": all_rows.reduce(np.maximum, all_rows.x) - all_rows.reduce(np.minimum, all_rows.x)})
    for v, name in enumerate(names):
        own = _Groups(keys, groups, times, values[:, v], None)
        mean = own.mean(own.x)
        deviation = own.x - mean[own.group]
        std = np.sqrt(own.mean(deviation**2))
        found = {"mean": mean, "std": std, "min": own.reduce(np.minimum, own.x), "max": own.reduce(np.maximum, own.x)}
        found["skew"] = divide(own.mean(deviation**3), std**3)
        out |= own.spread({f"{name} {key}": column for key, column in found.items()})
    if error is not None:
        own = _Groups(keys, groups, times, values[:, 0], values[:, error])
        assert own.errors is not None
        ratio = divide(own.x, own.errors)
        strong = ratio > STRONG
        out |= own.spread(
            {
                "signal-to-noise mean": own.mean_of_known(ratio),
                "signal-to-noise max": own.reduce(np.fmax, ratio),
                "share above 5 sigma": own.mean(strong),
                "span above 5 sigma": own.latest(strong) - own.earliest(strong),
            }
        )
    return out


def _error(names: Sequence[str]) -> int | None:
    """The place of the first value's standard errors, if there are any."""
    return next((names.index(error) for name, error in error_columns(names) if name == names[0]), None)


def divide(a: NDArray[Any], b: NDArray[Any]) -> Floats:
    """a / b; NaN where b is 0."""
    return np.divide(a, b, out=np.full(np.shape(a), np.nan), where=np.asarray(b) != 0)


# ── of the predictor ──────────────────────────────────────────────────────────────────────────────────────────────


def more_features(dataset: AnyDataset) -> tuple[Floats, tuple[str, ...]]:
    """Features [S, F] and their F names; NaN where there was nothing to compute.

    For every channel and value column: count, mean, std, min, max, first, last, time of the last, and mean and std of
    the changes from one observation to the next. For at most `NARROW` of them also all of `summary_features`, the
    shape of each (quantiles, times around the maximum, roughness, tails, and fit of a constant where there are errors)
    and how neighbouring channels differ. Times count from the first observation of the series.
    Of arrays, `array_features`.
    """
    return _computed(dataset, _more)


def _more(rows: Rows, names: tuple[str, ...], channel_names: Sequence[Any]) -> dict[str, Floats]:
    error = _error(names)
    columns = [v for v in range(len(names)) if v != error]
    narrow = rows.num_channels * len(columns) <= NARROW
    features = _features(rows, names, channel_names) if narrow else {}
    begins = rows.times[np.searchsorted(rows.series, np.arange(rows.num_series))]
    times = rows.times - begins[rows.series]
    by_channel = rows.series * rows.num_channels + rows.channels
    for v in columns:
        observed = (times, rows.values[:, v], rows.values[:, error] if error is not None and v == 0 else None)
        if rows.num_channels > 1:
            table = _Groups(by_channel, rows.num_series * rows.num_channels, *observed).features(narrow)
            per_channel = {key: column.reshape(-1, rows.num_channels) for key, column in table.items()}
            for key, found in per_channel.items():
                features |= {f"{channel}: {names[v]} {key}": found[:, i] for i, channel in enumerate(channel_names)}
            if narrow:
                features |= _between(per_channel, names[v], channel_names)
        if rows.num_channels == 1 or narrow:
            table = _Groups(rows.series, rows.num_series, *observed).features(narrow)
            features |= {f"all: {names[v]} {key}": column for key, column in table.items()}
    return features


def _between(table: dict[str, Floats], name: str, channel_names: Sequence[Any]) -> dict[str, Floats]:
    """How neighbouring channels differ, from features [S, C] of each."""
    out = {}
    top, when, spread = table["max"], table["time of max"], table["quantile 0.95"] - table["quantile 0.05"]
    for i in range(len(channel_names) - 1):
        pair, j = f"{channel_names[i]} - {channel_names[i + 1]}: {name}", i + 1
        out[f"{pair} relative max"] = divide(top[:, i] - top[:, j], np.abs(top[:, i]) + np.abs(top[:, j]))
        out[f"{pair} relative spread"] = divide(spread[:, i] - spread[:, j], spread[:, i] + spread[:, j])
        out[f"{pair} time of max"] = when[:, i] - when[:, j]
    return out


class _Groups:
    """One value column's observations in groups, in the order of time in each: a series', or one of its channels'.

    An error of 0 says that a value is exact: it counts like others, and has no ratio to its error.
    """

    def __init__(self, keys: Integers, total: int, times: Floats, x: Floats, errors: Floats | None) -> None:
        usable = np.isfinite(x) if errors is None else np.isfinite(x) & (errors >= 0)  # NaN >= 0 is False
        keys = keys[usable]
        order = np.argsort(keys, kind="stable")  # rows come in the order of time
        self.present, self.first, self.count = np.unique(keys[order], return_index=True, return_counts=True)
        self.group = np.repeat(np.arange(len(self.present)), self.count)
        self.last, self.total = self.first + self.count - 1, total
        self.times, self.x = times[usable][order], x[usable][order]
        self.errors = None if errors is None else errors[usable][order]

    def features(self, shape: bool) -> dict[str, Floats]:
        return self.course() | (self.shape() if shape else {})

    def course(self) -> dict[str, Floats]:
        """Level, extremes, ends and changes, each [total]; NaN for a group without observations, but a count of 0."""
        x = self.x
        mean = self.mean(x)
        follows, change = self._changes()
        changes = self.count - 1
        mean_change = divide(self._sum(change), changes)
        away = np.where(follows, change - mean_change[self.group], 0.0)
        found = {
            "mean": mean,
            "std": np.sqrt(self.mean((x - mean[self.group]) ** 2)),
            "min": self.reduce(np.minimum, x),
            "max": self.reduce(np.maximum, x),
            "first": x[self.first],
            "last": x[self.last],
            "time of last": self.times[self.last],
            "mean change": mean_change,
            "std of changes": np.sqrt(divide(self._sum(away**2), changes)),
        }
        count = np.zeros(self.total)
        count[self.present] = self.count
        return {"count": count} | self.spread(found)

    def shape(self) -> dict[str, Floats]:
        """Quantiles, tails, roughness, and when the values are high, each [total]; NaN without observations."""
        x, times, group = self.x, self.times, self.group
        by_value = np.lexsort((x, group))
        ranked = x[by_value]
        found = {
            f"quantile {q}": ranked[self.first + np.floor(q * (self.count - 1) + 0.5).astype(np.int64)]
            for q in QUANTILES
        }
        low, high, mean = ranked[self.first], ranked[self.last], self.mean(x)
        variance, extent = self.mean((x - mean[group]) ** 2), high - low
        peak = times[by_value][self.last]
        above = x > ((low + high) / 2)[group]
        _, change = self._changes()
        found |= {
            "time of max": peak,
            "share above half": self.mean(above),
            "rise above half": peak - self.earliest(above),
            "fall above half": self.latest(above) - peak,
            "roughness": divide(self._sum(change**2), variance * (self.count - 1)),
            "path": divide(self._sum(np.abs(change)), extent * (self.count - 1)),
            "median in range": divide(found["quantile 0.5"] - low, extent),
            "mean in range": divide(mean - low, extent),
            "kurtosis": divide(self.mean((x - mean[group]) ** 4), variance**2),
        }
        if self.errors is not None:
            weight = 1 / np.maximum(self.errors, 1e-12) ** 2
            best = divide(self._sum(x * weight), self._sum(weight))
            ratio = divide(x, self.errors)
            strong = np.abs(ratio) > STRONG
            found |= {
                "weighted mean": best,
                "chi square": self.mean_of_known(divide(x - best[group], self.errors) ** 2),
                "share above 3 sigma": self.mean(ratio > 3),
                "share below -3 sigma": self.mean(ratio < -3),
                "time of max after the first strong": peak - self.earliest(strong),
                "time of the last strong after max": self.latest(strong) - peak,
            }
        return self.spread(found)

    def _changes(self) -> tuple[NDArray[np.bool_], Floats]:
        """Whether an observation follows another of its group, and the change since then; 0 where none is before."""
        follows = np.r_[False, self.group[1:] == self.group[:-1]][: len(self.x)]
        return follows, np.where(follows, np.diff(self.x, prepend=self.x[:1]), 0.0)

    def _sum(self, x: NDArray[Any]) -> Floats:
        return np.bincount(self.group, x, len(self.present)).astype(np.float64)

    def mean(self, x: NDArray[Any]) -> Floats:
        return self._sum(x) / self.count

    def mean_of_known(self, x: Floats) -> Floats:
        """The mean of what is not NaN, such as ratios to an error of 0."""
        known = np.isfinite(x)
        return divide(self._sum(np.where(known, x, 0.0)), self._sum(known))

    def reduce(self, operation: np.ufunc, x: Floats) -> Floats:
        return operation.reduceat(x, self.first) if len(x) else x

    def earliest(self, where: NDArray[np.bool_]) -> Floats:
        found = self.reduce(np.minimum, np.where(where, self.times, np.inf))
        return np.where(np.isfinite(found), found, np.nan)

    def latest(self, where: NDArray[np.bool_]) -> Floats:
        found = self.reduce(np.maximum, np.where(where, self.times, -np.inf))
        return np.where(np.isfinite(found), found, np.nan)

    def spread(self, found: dict[str, Floats]) -> dict[str, Floats]:
        out = {}
        for name, column in found.items():
            out[name] = np.full(self.total, np.nan)
            out[name][self.present] = column
        return out


# ── the rows of a data set ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class Rows:
    """Observations of some series as flat columns, in the order of series and time."""

    series: Integers  # [n] index of the series that owns the row
    channels: Integers  # [n]
    times: Floats  # [n]
    values: Floats  # [n, V]
    num_series: int
    num_channels: int

    @classmethod
    def of(cls, dataset: SeriesDataset, index: Integers | None = None) -> Rows:
        """The rows of the series at `index`, or of all."""
        index = np.arange(len(dataset)) if index is None else index
        times, channels, values, _ = dataset.gather(index)
        number = np.zeros(len(times), np.int64) if channels is None else np.asarray(channels, np.int64)
        series = np.repeat(np.arange(len(index)), np.asarray(dataset.lengths)[index])
        named = 1 if dataset.channel_names is None else len(dataset.channel_names)
        return cls(series, number, np.asarray(times, np.float64), np.asarray(values, np.float64), len(index), named)


def chunks(dataset: SeriesDataset) -> Iterator[Rows]:
    """The rows of all series, in parts that fit into memory."""
    return (Rows.of(dataset, index) for index in dataset.series_chunks())
