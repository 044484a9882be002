"""Long series in overlapping windows, so that time and memory grow in proportion to their length."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rotarymae.series.dataset import SeriesDataset
from rotarymae.series.tidy import offsets_of


@dataclass(frozen=True, eq=False)
class Windows:
    """Series cut into overlapping windows; a short series, or an array, is one window.

    Attributes:
        dataset: a data set of W members, one per window; those of a series are together, in order of time, with the
            series' id.
        series: int [W], the index of each window's series, ascending from 0.
    """

    dataset: Any
    series: np.ndarray

    @classmethod
    def cut(cls, dataset: SeriesDataset, window: int | None, overlap: int = 0) -> Windows:
        """Cut series into evenly spread windows of `window` observations; a series that is not longer is one window.

        Args:
            dataset: series; or arrays, each of which is one window, if `window` is None.
            window: number of observations; None leaves every series whole.
            overlap: the least number of observations that neighbouring windows share; less than `window`.
        """
        lengths = np.asarray(dataset.lengths)
        if window is None or lengths.max() <= window:
            return cls(dataset, np.arange(len(lengths)))
        counts = np.where(lengths <= window, 1, -(-(lengths - overlap) // (window - overlap)))
        series = np.repeat(np.arange(len(dataset)), counts)
        number = np.arange(len(series)) - np.repeat(np.cumsum(counts) - counts, counts)
        share = number / np.maximum(counts[series] - 1, 1)
        starts = dataset.offsets[series] + np.rint(share * np.maximum(lengths[series] - window, 0)).astype(np.int64)
        of_windows = np.minimum(lengths, window)[series]
        cut = replace(
            dataset,
            **dataset.columns.pieces(starts, of_windows)._asdict(),
            offsets=offsets_of(of_windows),
            ids=dataset.ids[series],
            static={name: column[series] for name, column in dataset.static.items()},
        )
        return cls(cut, series)

    def mean(self, outputs: np.ndarray) -> np.ndarray:
        """Average K outputs of a model over the windows of each series: [W, K] for W windows to [S, K] for S series.

        Windows (the pieces of long series) are weighted by their numbers of observations. If every series is one
        window, `outputs` itself is returned.
        """
        if len(self.series) == self.series[-1] + 1:
            return outputs
        weights = np.asarray(self.dataset.lengths, np.float64)
        first = np.flatnonzero(np.diff(self.series, prepend=-1))
        total = np.add.reduceat(outputs * weights[:, None], first) / np.add.reduceat(weights, first)[:, None]
        return total.astype(outputs.dtype)

    def at(self, times: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Find the windows from which to predict at given times, and the weights that blend their predictions.

        A time is predicted from the window of its series whose ends are farthest from it. Around the middle of an
        overlap the weight passes linearly from one window to the next, so that predictions have no step there.

        Args:
            times: [n], the times to predict at, those of series 0 first.
            lengths: int [S], how many of these times each series has.

        Returns:
            For each time the index of a first and of a second window among all W windows, int [n] each; and the weight
            of the second, float [n] from 0 to 1. The first has the rest of the weight. Where one window is enough, it
            is the first, and the weight of the second is 0.
        """
        first, last = self.dataset.times[self.dataset.offsets[:-1]], self.dataset.times[self.dataset.offsets[1:] - 1]
        stops, begins = np.cumsum(lengths), np.searchsorted(self.series, np.arange(len(lengths) + 1))
        before = np.repeat(begins[:-1], lengths)
        after, share = before.copy(), np.zeros(len(times))
        for s in np.flatnonzero(np.diff(begins) > 1):
            rows, pair = slice(stops[s] - lengths[s], stops[s]), slice(begins[s], begins[s + 1] - 1)
            end, start = last[pair], first[1:][pair]
            border = (end + start) / 2
            room = np.diff(border, prepend=-np.inf, append=np.inf) / 2  # no fade reaches into the next one
            half = np.minimum(np.abs(end - start) / 2, np.minimum(room[:-1], room[1:]))
            faded = np.searchsorted(border + half, times[rows], side="right")
            begun = np.searchsorted(border - half, times[rows], side="right")
            at = np.minimum(faded, len(border) - 1)
            with np.errstate(over="ignore"):  # windows that end and begin at one time have no fade
                way = (times[rows] - (border - half)[at]) / np.maximum(2 * half[at], np.finfo(float).tiny)
            share[rows] = np.where(begun > faded, way, 0.0)
            before[rows] += faded
            after[rows] += np.maximum(begun, faded)
        return before, after, share
