"""Simple methods that a user has without this library, with which every result is compared.

`CLASSIFICATION`, `REGRESSION`, `SURVIVAL`, `INTERPOLATION` and `FORECASTS` list them; a new one is a class here, and
its name in the list. Each has `name`, `fit` and `predict`. Nothing here loops over observations.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rotarymae.errors import InputError
from rotarymae.partners.base import AnyDataset, Floats
from rotarymae.partners.features import SeriesRows, chunks
from rotarymae.partners.hazards import FollowUp, interval_probabilities
from rotarymae.partners.shapes import divide
from rotarymae.seasons import find_season
from rotarymae.series import SeriesDataset


class MostCommonClass:
    """Baseline: every class's probability is its training frequency; of equally frequent ones the first wins."""

    name = "most_common_class"

    def fit(self, dataset: AnyDataset, targets: NDArray[Any]) -> Self:
        """Fit to class numbers int [S] from 0."""
        counts = np.bincount(targets)
        self.shares = counts / counts.sum()
        return self

    def predict(self, dataset: AnyDataset) -> Floats:
        """Return the same probabilities for each series of `dataset`, [S, classes]."""
        return np.tile(self.shares, (len(dataset), 1))


class TrainingMean:
    """Baseline: the mean of each output over the training series."""

    name = "training_mean"

    def fit(self, dataset: AnyDataset, targets: NDArray[Any]) -> Self:
        """Fit to numbers [S, outputs], NaN where one is missing."""
        self.means = np.nanmean(targets, axis=0)
        return self

    def predict(self, dataset: AnyDataset) -> Floats:
        """Return the training means for each series of `dataset`, [S, outputs]."""
        return np.tile(self.means, (len(dataset), 1))


class LifeTable:
    """Baseline: the same survival for all: in each interval the share with the event among those still followed."""

    name = "life_table"

    def fit(self, dataset: AnyDataset, targets: NDArray[Any]) -> Self:
        """Fit to the weight of each interval in the likelihood [S, K + 1]; see `Partner.fit`."""
        self.rates = FollowUp.of(targets).rates(np.zeros(len(targets)))
        return self

    def predict(self, dataset: AnyDataset) -> Floats:
        """Return the same probabilities of the intervals for each series of `dataset`, [S, K + 1]."""
        return interval_probabilities(np.zeros(len(dataset)), self.rates)


class ChannelMean:
    """Baseline: the mean of each value in its channel over the training series; NaN for an unknown channel."""

    name = "mean"

    def fit(self, dataset: SeriesDataset) -> Self:
        """Compute the mean of each value column in each channel and return self.

        A channel without observations gets NaN.
        """
        channels = 1 if dataset.channel_names is None else len(dataset.channel_names)
        total, count = np.zeros((channels, len(dataset.value_names))), np.zeros((channels, 1))
        for rows in chunks(dataset):
            np.add.at(total, rows.channels, rows.values)
            count[:, 0] += np.bincount(rows.channels, minlength=channels)
        self.means = divide(total, np.broadcast_to(count, total.shape))
        return self

    def predict(self, visible: SeriesDataset, hidden: SeriesDataset) -> Floats:
        """Return predictions [n, V] of the n hidden observations: the training means of their channels.

        They are ordered as in `SeriesRows.of(hidden)`.

        Args:
            visible: not read here; see `LinearInterpolation`.
        """
        return self.means[SeriesRows.of(hidden).channels]


class LinearInterpolation(ChannelMean):
    """Baseline: a straight line in time within each channel, constant before the first and after the last observation.

    A channel without a visible value gets its training mean.
    """

    name = "linear_interpolation"

    def predict(self, visible: SeriesDataset, hidden: SeriesDataset) -> Floats:
        """Return predictions [n, V] of the hidden observations from visible ones of the same series and channel.

        A prediction is on the straight line in time between its neighbours, constant beyond the first and last, and the
        training mean without any. They are ordered as in `SeriesRows.of(hidden)`.

        Raises:
            InputError: the data sets do not hold the same series in one order.
        """
        if not np.array_equal(np.asarray(visible.ids), np.asarray(hidden.ids)):
            raise InputError("visible and hidden must hold the same series ids in the same order.")
        seen, hidden_rows, out = SeriesRows.of(visible), SeriesRows.of(hidden), super().predict(visible, hidden)
        known, queried = (rows.series * rows.num_channels + rows.channels for rows in (seen, hidden_rows))
        order, queries = (np.argsort(keys, kind="stable") for keys in (known, queried))  # rows come in order of time
        keys, first = np.unique(queried[queries], return_index=True)
        begins, ends = (np.searchsorted(known[order], keys, side=side) for side in ("left", "right"))
        for rows, begin, end in zip(np.split(queries, first[1:]), begins, ends, strict=True):
            points = order[begin:end]
            for v in range(out.shape[1]) if len(points) else ():
                out[rows, v] = self._at(hidden_rows.times[rows], seen.times[points], seen.values[points, v])
        return out

    def _at(self, query_times: Floats, times: Floats, values: Floats) -> Floats:
        """Return values at the query times, on a line between the neighbours in `times`, which ascend."""
        return np.interp(query_times, times, values)


class LastValue(LinearInterpolation):
    """Baseline: the channel's latest value at or before each query; before its first observation, that one's value."""

    name = "last_value"

    def _at(self, query_times: Floats, times: Floats, values: Floats) -> Floats:
        """Return the latest value at or before each query time, the first value where there is none; `times` ascend."""
        return values[np.searchsorted(times, query_times, side="right").clip(1) - 1]


class SeasonalNaive(LinearInterpolation):
    """Baseline of forecasts: the value whole seasons before, the latest such; the last value where nothing repeats."""

    name = "seasonal_naive"

    def fit(self, dataset: SeriesDataset) -> Self:
        self.season = find_season(dataset).time
        return super().fit(dataset)

    def _at(self, query_times: Floats, times: Floats, values: Floats) -> Floats:
        if self.season:
            query_times = query_times - self.season * np.ceil((query_times - times[-1]) / self.season)
        return np.interp(query_times, times, values)


class Drift(LinearInterpolation):
    """Baseline of forecasts: the last value, and the mean slope of the channel's observations from there on."""

    name = "drift"

    def _at(self, query_times: Floats, times: Floats, values: Floats) -> Floats:
        span = times[-1] - times[0]
        slope = (values[-1] - values[0]) / span if span > 0 else 0.0
        return values[-1] + slope * (query_times - times[-1])


class SeriesMean(LinearInterpolation):
    """Baseline of forecasts: the mean of the series' own observations of the channel."""

    name = "mean_so_far"

    def _at(self, query_times: Floats, times: Floats, values: Floats) -> Floats:
        return np.full(len(query_times), values.mean())


OF_TASK = {"classification": (MostCommonClass,), "regression": (TrainingMean,), "survival": (LifeTable,)}
INTERPOLATION: tuple[type[ChannelMean], ...] = (LinearInterpolation, LastValue, ChannelMean)
FORECASTS: tuple[type[ChannelMean], ...] = (LastValue, SeasonalNaive, Drift, SeriesMean)
