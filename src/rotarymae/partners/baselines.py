"""Simple methods that a user has without this library, with which every result is compared.

`constant` predicts whole series; the methods of `INTERPOLATION` and `FORECASTS` predict hidden observations. A new one
is a function here, and its line in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rotarymae.errors import InputError
from rotarymae.partners.base import Floats
from rotarymae.partners.features import SeriesRows, chunks
from rotarymae.partners.hazards import FollowUp, interval_probabilities
from rotarymae.partners.shapes import divide
from rotarymae.seasons import find_season
from rotarymae.series import SeriesDataset

CONSTANT_NAMES = {"classification": "most_common_class", "regression": "training_mean", "survival": "life_table"}


def constant(task: str, truth: NDArray[Any]) -> Floats:
    """Return the best prediction that does not look at a series: the same for all, from the training targets alone.

    Args:
        task: "classification", "regression" or "survival".
        truth: targets of the S training series. Classification: class numbers int [S] from 0. Regression: values [S,
            outputs], NaN where one is missing. Survival: weights [S, K + 1] of K time intervals and the time after
            them, from `survival.EventTimes.encode`. An observed event has the weight 1 in its interval. A censored
            series has 1 in all later intervals, and in the interval of its censoring the share that was still to come.
            All other weights are 0.

    Returns:
        Classification: the frequencies of the classes [classes], up to the highest number in `truth`. Regression: the
            means [outputs]; NaN (with NumPy's warning) for an output without any value. Survival: the probabilities [K
            + 1] of the event in each interval, and after all of them, from hazards (number of events divided by time at
            risk).
    """
    if task == "classification":
        return np.bincount(truth) / len(truth)
    if task == "regression":
        return np.nanmean(truth, axis=0)
    return interval_probabilities(np.zeros(1), FollowUp.of(truth).rates(np.zeros(len(truth))))[0]


# Each method returns values at the query times [q], from times [m], ascending, and values [m] of a channel's visible
# observations, at least one; the last argument is the season of the training series, 0 for none.
Method = Callable[[Floats, Floats, Floats, float], Floats]


def _seasonal_naive(queries: Floats, times: Floats, values: Floats, season: float) -> Floats:
    """Predict that the last observed season repeats; without a season (0), interpolate linearly.

    A time is moved by whole seasons into the last season before the last observation: later times back, earlier times
    forward. The value there is interpolated linearly.
    """
    if season:
        queries = queries - season * np.ceil((queries - times[-1]) / season)
    return np.interp(queries, times, values)


def _drift(queries: Floats, times: Floats, values: Floats, season: float) -> Floats:
    """Predict values [q] at q query times on the straight line through the first and the last observation.

    If these two have the same time, the last value is predicted. Ignore `season`.
    """
    span = times[-1] - times[0]
    slope = (values[-1] - values[0]) / span if span > 0 else 0.0
    return values[-1] + slope * (queries - times[-1])


def _last_value(queries: Floats, times: Floats, values: Floats, season: float) -> Floats:
    """Return the last value observed up to each query time, [q]; before all observations, the first.

    The arguments are those of `Method`; `season` is not read.
    """
    return values[np.searchsorted(times, queries, side="right").clip(1) - 1]


CHANNEL_MEAN, LINE = "mean", "linear_interpolation"
INTERPOLATION: dict[str, Method | None] = {
    LINE: lambda queries, times, values, season: np.interp(queries, times, values),
    "last_value": _last_value,
    CHANNEL_MEAN: None,
}
FORECASTS: dict[str, Method | None] = {
    "last_value": _last_value,
    "seasonal_naive": _seasonal_naive,
    "drift": _drift,
    "mean_so_far": lambda queries, times, values, season: np.full(len(queries), values.mean()),
}
METHODS = INTERPOLATION | FORECASTS


def channel_means(dataset: SeriesDataset) -> Floats:
    """Return the mean of each of V value columns in each channel, over all series of a data set, float64 [channels, V].

    NaN where no value was observed; limits (censored values, such as <5) do not count. A data set without channels has
    one row.
    """
    channels = 1 if dataset.channel_names is None else len(dataset.channel_names)
    total = np.zeros((channels, len(dataset.value_names)))
    count = np.zeros(total.shape)
    for rows in chunks(dataset):
        np.add.at(total, rows.channels, np.nan_to_num(rows.values))
        np.add.at(count, rows.channels, np.isfinite(rows.values))
    return divide(total, count)


def predict_simply(
    names: Iterable[str], train: SeriesDataset, visible: SeriesDataset, hidden: SeriesDataset
) -> dict[str, Floats]:
    """Predict hidden observations from visible ones of the same series and channel by simple methods.

    Returns {method: predictions [n, V]}. Where a series has no visible value in a channel, the channel's mean over the
    training series is predicted. The method "mean" always predicts this mean; it is NaN for a channel without a value
    in the training series. The n predictions are in the order of `hidden`: series by series, in the order of time.

    Args:
        names: names of the methods: "mean", "linear_interpolation", "last_value", "seasonal_naive", "drift",
            "mean_so_far".
        train: the training series, which give the means of channels and, for "seasonal_naive", the length of a season.
        visible: the known observations: S series with V value columns. Limits (censored values) are not read.
        hidden: the n observations to predict, of the same S series; only their times and channels are read.

    Raises:
        InputError: `visible` and `hidden` do not hold the same series in one order.
    """
    if not np.array_equal(np.asarray(visible.ids), np.asarray(hidden.ids)):
        raise InputError(
            "visible and hidden must hold the same series ids in one order; their ids begin with "
            f"{visible.ids[:3]} and {hidden.ids[:3]}; select the same series of both."
        )
    seen, hidden_rows, means = SeriesRows.of(visible), SeriesRows.of(hidden), channel_means(train)
    start = means[hidden_rows.channels]
    out = {name: start.copy() for name in names}
    methods = {name: method for name in out if (method := METHODS[name]) is not None}
    season = find_season(train).time if "seasonal_naive" in out else 0.0
    known, queried = (rows.series * rows.num_channels + rows.channels for rows in (seen, hidden_rows))
    order, queries = (np.argsort(keys, kind="stable") for keys in (known, queried))  # rows come in order of time
    keys, first = np.unique(queried[queries], return_index=True)
    begins, ends = (np.searchsorted(known[order], keys, side=side) for side in ("left", "right"))
    for rows, begin, end in zip(np.split(queries, first[1:]), begins, ends, strict=True):
        for v in range(means.shape[1]):
            points = order[begin:end]
            points = points[np.isfinite(seen.values[points, v])]  # limits are no values
            for name, method in methods.items() if len(points) else ():
                out[name][rows, v] = method(hidden_rows.times[rows], seen.times[points], seen.values[points, v], season)
    return out
