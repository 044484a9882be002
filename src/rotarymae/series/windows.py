"""Long series in overlapping windows, so that time and memory grow in proportion to their length."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rotarymae.series.dataset import SeriesDataset
from rotarymae.series.tidy import offsets_of


@dataclass(frozen=True, eq=False)
class Windows:
    """The windows of S series; a series that is no longer than one is its own window, and so is every array.

    Attributes:
        dataset: a window per series, those of a series together and in the order of time, with the id of their series;
            or arrays.
        series: int [W], which series each window is of.
    """

    dataset: Any
    series: np.ndarray

    @classmethod
    def cut(cls, dataset: SeriesDataset, window: int | None, overlap: int = 0) -> Windows:
        """Windows of `window` observations that overlap by at least `overlap`, evenly spread; None cuts nothing."""
        lengths = np.asarray(dataset.lengths)
        if window is None or lengths.max() <= window:
            return cls(dataset, np.arange(len(dataset)))
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

    def mean(self, answers: np.ndarray) -> np.ndarray:
        """Average answers [W, K] of windows into those of series [S, K]; a window counts by its observations."""
        if len(self.series) == self.series[-1] + 1:
            return answers
        weights = np.asarray(self.dataset.lengths, np.float64)
        first = np.flatnonzero(np.diff(self.series, prepend=-1))
        total = np.add.reduceat(answers * weights[:, None], first) / np.add.reduceat(weights, first)[:, None]
        return total.astype(answers.dtype)

    def at(self, times: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The one or two windows that answer flat times [n] with so many per series [S], and the share of the second.

        A time is answered by the window in which it lies deepest. About the border of two windows, the middle of their
        overlap, the answer passes evenly from one to the other, so that it has no step there.
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
