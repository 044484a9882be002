"""What a user would do without this library: the figures every result is printed beside.

Classification: the most common class, and gradient boosting on summary features. Interpolation: a straight line in
time, or the last value, per channel. Nothing here loops over observations: rows are sorted by (series, channel, time)
once, and numpy reduces or gathers.

A *series data set* below is anything with the attributes of `Series`; `rotarymae.SeriesDataset` is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rotarymae.errors import InputError
from rotarymae.series import SeriesDataset

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Series(Protocol):
    """S series with n observations in all; series s owns the rows offsets[s]:offsets[s + 1]."""

    @property
    def times(self) -> Any:
        """float64 [n], any unit."""

    @property
    def values(self) -> Any:
        """[n, V]; NaN where a value is missing."""

    @property
    def channels(self) -> Any:
        """int32 [n], an index into channel_names; None where the data have no channels."""

    @property
    def offsets(self) -> Any:
        """int64 [S + 1]."""

    @property
    def ids(self) -> Any:
        """[S]."""

    @property
    def value_names(self) -> Sequence[str]:
        """V names."""
        ...

    @property
    def channel_names(self) -> Sequence[str] | None:
        """C names, or None."""


# ── classification ────────────────────────────────────────────────────────────────────────────────────────────────


def majority(labels_train: ArrayLike, n: int) -> NDArray[Any]:
    """The most common training label, n times: [n]. Of equally common labels, the first in sorted order."""
    labels = np.asarray(labels_train)
    if labels.ndim != 1 or labels.size == 0:
        raise InputError(f"labels_train has shape {labels.shape}; pass one label per training series.")
    names, counts = np.unique(labels, return_counts=True)
    return np.repeat(names[counts.argmax()], n)


def gradient_boosting(
    features_train: ArrayLike, labels_train: ArrayLike, features_test: ArrayLike, seed: int = 0
) -> Floats:
    """Class probabilities [S_test, classes] by boosted trees on features [S, F]; NaN means missing.

    Column k belongs to `np.unique(labels_train)[k]`. The number of threads is the environment's (OMP_NUM_THREADS).
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    train, test = np.asarray(features_train, np.float64), np.asarray(features_test, np.float64)
    labels = np.asarray(labels_train)
    if train.ndim != 2 or test.ndim != 2 or train.shape[1] != test.shape[1]:
        raise InputError(
            f"features_train {train.shape} and features_test {test.shape} must be [series, features] with the same "
            "features; call summary_features with the same num_channels for both."
        )
    if labels.shape != train.shape[:1]:
        raise InputError(f"{train.shape[0]} training series but labels of shape {labels.shape}.")
    if np.unique(labels).size < 2:
        raise InputError("gradient boosting needs at least two classes among the training labels.")
    # Rare classes have some 30 members. No early stopping, as it would split those; few features per split and a
    # penalty, as scikit-learn's defaults diverged on one PLAsTiCC fold (accuracy 0.33 where the others reach 0.74).
    model = HistGradientBoostingClassifier(
        learning_rate=0.06,
        max_iter=200,
        max_leaf_nodes=15,
        min_samples_leaf=10,
        l2_regularization=1.0,
        max_features=0.3,
        class_weight="balanced",
        early_stopping=False,  # pyright: ignore[reportArgumentType]
        random_state=seed,
    )
    return model.fit(train, labels).predict_proba(test)


def summary_features(dataset: Series, num_channels: int | None = None) -> tuple[Floats, tuple[str, ...]]:
    """What one would compute by hand: features [S, F] and their F names; NaN where there was nothing to compute.

    Per channel and over the whole series: count, time span, and for every value column mean, std, min, max and skew.
    Where a column is called as the first one with `_err` behind, also mean and largest signal-to-noise, the share of
    observations above 5, and the time they span. Between neighbouring channels: the difference of the means of the
    first value, and that difference over the sum of their sizes (it stays within -1..1 for fluxes of either sign).
    Times keep the data's unit. `num_channels` is needed only for a data set whose channels have no names. A large
    SeriesDataset is worked through in parts that fit into memory.
    """
    if isinstance(dataset, SeriesDataset) and len(chunks := list(dataset.series_chunks())) > 1:
        parts = [summary_features(dataset.select(chunk), num_channels) for chunk in chunks]
        return np.concatenate([features for features, _ in parts]), parts[0][1]
    rows = _Rows.of(dataset, num_channels)
    names = tuple(str(name) for name in dataset.value_names)
    if len(names) != rows.values.shape[1]:
        raise InputError(f"{rows.values.shape[1]} value columns but {len(names)} value_names.")
    channel_names = dataset.channel_names or [f"channel {i}" for i in range(rows.num_channels)]
    error = names.index(f"{names[0]}_err") if f"{names[0]}_err" in names else None

    features: dict[str, Floats] = {}
    per_channel: dict[str, Floats] = {}
    if rows.num_channels > 1:
        keys = rows.series * rows.num_channels + rows.channels
        per_channel = _summaries(keys, rows.num_series * rows.num_channels, rows.times, rows.values, names, error)
        for name, column in per_channel.items():
            table = column.reshape(rows.num_series, rows.num_channels)
            features |= {f"{channel}: {name}": table[:, i] for i, channel in enumerate(channel_names)}
        means = per_channel[f"{names[0]} mean"].reshape(rows.num_series, rows.num_channels)
        for i in range(rows.num_channels - 1):
            first, second = means[:, i], means[:, i + 1]
            pair = f"{channel_names[i]} - {channel_names[i + 1]}"
            features[f"{pair}: {names[0]}"] = first - second
            features[f"{pair}: relative {names[0]}"] = _divide(first - second, np.abs(first) + np.abs(second))
        seen = per_channel["count"].reshape(rows.num_series, rows.num_channels) > 0
        features["all: channels"] = seen.sum(1).astype(np.float64)
    whole = _summaries(rows.series, rows.num_series, rows.times, rows.values, names, error)
    features |= {f"all: {name}": column for name, column in whole.items()}
    return np.stack(list(features.values()), 1), tuple(features)


def _summaries(
    keys: Integers, groups: int, times: Floats, values: Floats, names: Sequence[str], error: int | None
) -> dict[str, Floats]:
    """Summaries of each group of rows, each [groups]; NaN for a group without rows, except counts (0)."""
    out: dict[str, Floats] = {"count": np.bincount(keys, minlength=groups).astype(np.float64)}
    out["span"] = _reduce(np.maximum, keys, groups, times) - _reduce(np.minimum, keys, groups, times)
    for v, name in enumerate(names):
        finite = np.isfinite(values[:, v])
        x, key = values[finite, v], keys[finite]
        count = np.bincount(key, minlength=groups).astype(np.float64)
        mean = _divide(np.bincount(key, x, groups), count)
        deviation = x - mean[key]
        std = np.sqrt(_divide(np.bincount(key, deviation**2, groups), count))
        third = _divide(np.bincount(key, deviation**3, groups), count)
        out[f"{name} mean"], out[f"{name} std"] = mean, std
        out[f"{name} min"] = _reduce(np.minimum, key, groups, x)
        out[f"{name} max"] = _reduce(np.maximum, key, groups, x)
        out[f"{name} skew"] = _divide(third, std**3)
    if error is not None:
        usable = np.isfinite(values[:, 0]) & (values[:, error] > 0)  # NaN > 0 is False
        ratio, key, when = values[usable, 0] / values[usable, error], keys[usable], times[usable]
        count = np.bincount(key, minlength=groups).astype(np.float64)
        strong = ratio > 5
        out["signal-to-noise mean"] = _divide(np.bincount(key, ratio, groups), count)
        out["signal-to-noise max"] = _reduce(np.maximum, key, groups, ratio)
        out["share above 5 sigma"] = _divide(np.bincount(key[strong], minlength=groups), count)
        last = _reduce(np.maximum, key[strong], groups, when[strong])
        out["span above 5 sigma"] = last - _reduce(np.minimum, key[strong], groups, when[strong])
    return out


def _reduce(operation: np.ufunc, keys: Integers, groups: int, x: Floats) -> Floats:
    """operation over the rows of each group, [groups]; NaN for a group without rows."""
    out = np.full(groups, np.nan)
    if keys.size:
        order = np.argsort(keys, kind="stable")
        present, starts = np.unique(keys[order], return_index=True)
        out[present] = operation.reduceat(x[order], starts)
    return out


def _divide(a: NDArray[Any], b: NDArray[Any]) -> Floats:
    """a / b; NaN where b is 0."""
    return np.divide(a, b, out=np.full(np.shape(a), np.nan), where=np.asarray(b) != 0)


# ── interpolation ─────────────────────────────────────────────────────────────────────────────────────────────────


def linear_interpolation(
    times: ArrayLike,
    values: ArrayLike,
    channels: ArrayLike | None,
    query_times: ArrayLike,
    query_channels: ArrayLike | None,
    fallback: ArrayLike = np.nan,
) -> Floats:
    """A straight line in time within each channel of one series, constant before the first and after the last point.

    times [n], values [n] or [n, V], channels int [n] or None; query_times [q] and query_channels [q] → [q] or [q, V].
    `fallback` ([channels, V], or anything that broadcasts to it) serves channels without a value here.
    """
    return _one_series(times, values, channels, query_times, query_channels, fallback, linear=True)


def last_value(
    times: ArrayLike,
    values: ArrayLike,
    channels: ArrayLike | None,
    query_times: ArrayLike,
    query_channels: ArrayLike | None,
    fallback: ArrayLike = np.nan,
) -> Floats:
    """The channel's latest value at or before each query; before its first point, that first value.

    Arguments and result as for `linear_interpolation`.
    """
    return _one_series(times, values, channels, query_times, query_channels, fallback, linear=False)


def channel_means(dataset: Series, num_channels: int | None = None) -> Floats:
    """Mean of each value in each channel over a (training) data set, or a sample of a large one: [C, V], or NaN."""
    if isinstance(dataset, SeriesDataset) and len(dataset.times) > len((some := dataset.sample()).times):
        return channel_means(some, num_channels)
    rows = _Rows.of(dataset, num_channels)
    means = np.empty((rows.num_channels, rows.values.shape[1]))
    for v in range(means.shape[1]):
        finite = np.isfinite(rows.values[:, v])
        channels = rows.channels[finite]
        total = np.bincount(channels, rows.values[finite, v], rows.num_channels)
        means[:, v] = _divide(total, np.bincount(channels, minlength=rows.num_channels))
    return means


def interpolate_hidden(visible: Series, hidden: Series, means: ArrayLike, method: str = "linear") -> Floats:
    """Predictions [n_hidden, V] at every row of `hidden`, from the rows of `visible` of the same series and channel.

    Both hold the same series in the same order; the values of `hidden` are not read. `means` [C, V] (from
    `channel_means` of the training data) serves rows whose channel has no visible value in their series. `method` is
    "linear" or "last", as in `linear_interpolation` and `last_value`.
    """
    if method not in ("linear", "last"):
        raise InputError(f"method {method!r} is unknown; choose 'linear' or 'last'.")
    if not np.array_equal(np.asarray(visible.ids), np.asarray(hidden.ids)):
        raise InputError("visible and hidden must hold the same series ids in the same order.")
    fallback = np.asarray(means, np.float64)
    seen, asked = _Rows.of(visible, len(fallback)), _Rows.of(hidden, len(fallback))
    if fallback.shape != (seen.num_channels, seen.values.shape[1]):
        raise InputError(
            f"means has shape {fallback.shape}; wanted [channels, values] = "
            f"{(seen.num_channels, seen.values.shape[1])}, as channel_means of the training data returns."
        )
    return _fill(
        seen.series * seen.num_channels + seen.channels,
        seen.times,
        seen.values,
        asked.series * seen.num_channels + asked.channels,
        asked.times,
        fallback[asked.channels],
        linear=method == "linear",
    )


def _one_series(
    times: ArrayLike,
    values: ArrayLike,
    channels: ArrayLike | None,
    query_times: ArrayLike,
    query_channels: ArrayLike | None,
    fallback: ArrayLike,
    *,
    linear: bool,
) -> Floats:
    when, asked = np.asarray(times, np.float64), np.asarray(query_times, np.float64)
    known = np.asarray(values, np.float64)
    if (channels is None) != (query_channels is None):
        raise InputError("give channels for both the observations and the queries, or for neither.")
    key = np.zeros(when.shape, np.int64) if channels is None else np.asarray(channels, np.int64)
    query_key = np.zeros(asked.shape, np.int64) if query_channels is None else np.asarray(query_channels, np.int64)
    if when.ndim != 1 or known.ndim not in (1, 2) or len(known) != len(when) or key.shape != when.shape:
        raise InputError(
            f"times {when.shape}, values {known.shape} and channels {key.shape} do not belong together; "
            "wanted [n], [n] or [n, V], and [n]."
        )
    if asked.ndim != 1 or query_key.shape != asked.shape:
        raise InputError(f"query_times {asked.shape} and query_channels {query_key.shape} must both be [q].")
    columns = known.reshape(len(known), -1) if known.ndim == 2 else known[:, None]
    missing = np.asarray(fallback, np.float64)
    if missing.ndim:  # [C, V] or [C, 1]: one row per channel
        missing = missing.reshape(len(missing), -1)
        if query_key.size and (query_key.min() < 0 or query_key.max() >= len(missing)):
            raise InputError(f"fallback has {len(missing)} channels, but query_channels reach beyond them.")
        missing = missing[query_key]
    filled = np.broadcast_to(missing, (len(asked), columns.shape[1]))
    out = _fill(key, when, columns, query_key, asked, filled, linear=linear)
    return out if known.ndim == 2 else out[:, 0]


def _fill(
    keys: Integers,
    times: Floats,
    values: Floats,
    query_keys: Integers,
    query_times: Floats,
    fallback: Floats,
    *,
    linear: bool,
) -> Floats:
    """[q, V]: each query from the rows with its key; fallback [q, V] where no row has it.

    Rows and queries are sorted together by (key, time), rows first at equal times; the neighbours of a query are
    then the last row before it and the next one, if their keys agree.
    """
    out = np.array(fallback, np.float64)
    for v in range(out.shape[1]):
        finite = np.isfinite(values[:, v])
        key, when, x = _merge_duplicates(keys[finite], times[finite], values[finite, v])
        if not key.size:
            continue
        is_query = np.repeat([False, True], [len(key), len(query_keys)])
        order = np.lexsort((is_query, np.concatenate([when, query_times]), np.concatenate([key, query_keys])))
        rows_so_far = np.cumsum(~is_query[order])
        before = np.empty(len(query_keys), np.int64)
        before[order[is_query[order]] - len(key)] = rows_so_far[is_query[order]] - 1
        after = before + 1
        has_before = (before >= 0) & (key[before.clip(0)] == query_keys)
        has_after = (after < len(key)) & (key[after.clip(max=len(key) - 1)] == query_keys)
        left = np.where(has_before, before, after).clip(0, len(key) - 1)
        right = np.where(has_after & (linear | ~has_before), after, left).clip(0, len(key) - 1)
        gap = when[right] - when[left]
        weight = np.divide(query_times - when[left], gap, out=np.zeros(len(gap)), where=gap > 0)
        line = x[left] + weight * (x[right] - x[left])
        out[:, v] = np.where(has_before | has_after, line, out[:, v])
    return out


def _merge_duplicates(keys: Integers, times: Floats, x: Floats) -> tuple[Integers, Floats, Floats]:
    """Rows sorted by (key, time), those at the same key and time replaced by their mean."""
    order = np.lexsort((times, keys))
    keys, times, x = keys[order], times[order], x[order]
    if not keys.size:
        return keys, times, x
    starts = np.flatnonzero(np.r_[True, (np.diff(keys) != 0) | (np.diff(times) != 0)])
    counts = np.diff(np.r_[starts, len(keys)])
    return keys[starts], times[starts], np.add.reduceat(x, starts) / counts


# ── a data set as plain, checked arrays ───────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class _Rows:
    series: Integers  # [n] index of the series that owns the row
    channels: Integers  # [n]
    times: Floats  # [n]
    values: Floats  # [n, V]
    num_series: int
    num_channels: int

    @classmethod
    def of(cls, dataset: Series, num_channels: int | None) -> _Rows:
        times, values = np.asarray(dataset.times, np.float64), np.asarray(dataset.values, np.float64)
        offsets = np.asarray(dataset.offsets, np.int64)
        if times.ndim != 1 or values.ndim != 2 or len(values) != len(times):
            raise InputError(f"times {times.shape} and values {values.shape} must be [n] and [n, V].")
        if offsets.ndim != 1 or offsets.size < 2 or offsets[0] != 0 or offsets[-1] != len(times):
            raise InputError(f"offsets must be [S + 1] numbers from 0 to {len(times)}, with at least one series.")
        if (np.diff(offsets) < 0).any():
            raise InputError("offsets must not fall.")
        if dataset.channels is None:
            channels = np.zeros(len(times), np.int64)
        else:
            channels = np.asarray(dataset.channels, np.int64)
        if num_channels is None:
            named = dataset.channel_names
            num_channels = len(named) if named is not None else int(channels.max(initial=0)) + 1
        if channels.size and (channels.min() < 0 or channels.max() >= num_channels):
            raise InputError(
                f"channels run from {channels.min()} to {channels.max()}, but there are {num_channels} of them."
            )
        series = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        return cls(series, channels, times, values, len(offsets) - 1, num_channels)
