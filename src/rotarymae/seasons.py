"""Find the season of a table: after what time its series repeat themselves, read off their autocorrelation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rotarymae.series import SeriesDataset, channel_index, measured

MOST_SLOTS = 4096  # of a series; what repeats more slowly is not seen
MAX_SERIES = 50
LEAST_CYCLES = 2.5  # that a series must hold
LEAST_PROMINENCE = 0.25  # of a peak of the autocorrelation above the valleys around it
LEAST_CORRELATION = 0.1  # at that peak
LEAST_PAIRS = 50  # of observations so far apart
ALIKE = 0.75  # of the most prominent peak: the first such one is the season, and what follows are its multiples


class Season(NamedTuple):
    """The period after which series repeat; both numbers are 0 if there is none.

    Attributes:
        time: the period in the table's unit of time.
        gaps: the period as a number of median gaps between observations.
    """

    time: float = 0.0
    gaps: float = 0.0


def find_season(dataset: SeriesDataset) -> Season:
    """Return the period after which series repeat themselves: as a time, and as a number of median gaps.

    It is computed from the autocorrelation of the first value column. Times are rounded to multiples of the median gap,
    and a straight line is subtracted from each channel. Then the autocorrelation is averaged over the channels (at most
    200) of the 50 longest series; the weight of a channel is the number of its pairs of observations. If there is no
    clear peak, or too few observations for one, both numbers are 0.
    """
    curves = _longest(dataset)
    gaps = [float(np.median(np.diff(times))) for times, _ in curves]
    if not gaps:
        return Season()
    slot = float(np.median(gaps))
    products, pairs = np.zeros(MOST_SLOTS), np.zeros(MOST_SLOTS)
    for times, values in curves:
        slots = np.minimum(np.round((times - times[0]) / slot), MOST_SLOTS)  # one stray date must not overflow
        product, pair = _autocovariance(slots.astype(int), values)
        products[: len(product)] += product
        pairs[: len(pair)] += pair
    known = pairs >= LEAST_PAIRS
    size = len(known) if known.all() else int(known.argmin())
    if size < 4 or products[0] <= 0:
        return Season()
    from scipy.signal import find_peaks  # a second or two, which most commands need not wait

    correlation = products[:size] / pairs[:size] / (products[0] / pairs[0])
    lags, about = find_peaks(correlation, LEAST_CORRELATION, prominence=LEAST_PROMINENCE)
    if not len(lags):
        return Season()
    lag = float(lags[about["prominences"] >= ALIKE * about["prominences"].max()][0])
    for cycles in range(1, int(size / lag) + 1):  # many seasons on it is known to a fraction of a slot
        start = int(cycles * lag - lag / 4) + 1
        stop = int(cycles * lag + lag / 4) + 2
        if stop < size:
            top = start + int(correlation[start:stop].argmax())
            left, middle, right = correlation[top - 1 : top + 2]
            if left + right < 2 * middle:  # no flat top
                lag = (top + (left - right) / (left - 2 * middle + right) / 2) / cycles
    return Season(slot * lag, lag)


def _longest(dataset: SeriesDataset) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return a pair (times [n], values [n]) for each channel of the 50 longest series, the longest series first.

    Values are from the first value column, in order of time, at most the first 4096 (`MOST_SLOTS`). Missing values and
    limits (known only to lie above or below a number) are left out; of repeated times only one is kept. Channels that
    are constant or have fewer than 50 (`LEAST_PAIRS`) values are left out. At most 200 pairs are returned, or none.
    """
    channels, curves = channel_index(dataset), []
    for series in np.argsort(-np.asarray(dataset.lengths), kind="stable")[:MAX_SERIES]:
        rows = slice(dataset.offsets[series], dataset.offsets[series + 1])
        for channel in np.unique(channels[rows]):
            chosen = channels[rows] == channel
            times, first = np.unique(np.asarray(dataset.times[rows], float)[chosen], return_index=True)
            values = np.asarray(measured(dataset.columns.take(rows)), float)[chosen, 0][first]
            finite = np.isfinite(values)
            times, values = times[finite][:MOST_SLOTS], values[finite][:MOST_SLOTS]
            if len(times) >= LEAST_PAIRS and values.std() > 0:
                curves.append((times, values))
    return curves[: 4 * MAX_SERIES]


def _autocovariance(slots: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return, for each time lag, the sum of products of all pairs of values that lie this lag apart, and their number.

    A straight line is subtracted from the values before, and they are standardised. Lags are integers from 0 to the
    last of `slots` / 2.5 (`LEAST_CYCLES`). Both results are empty if fewer than 50 (`LEAST_PAIRS`) values are left, or
    all have the same time.

    Args:
        slots: time of each value as an ascending integer from 0; several values may have the same. Values at 4096
            (`MOST_SLOTS`) or later are left out.
        values: one for each of `slots`.
    """
    inside = slots < MOST_SLOTS
    slots, values = slots[inside], values[inside]
    if len(slots) < LEAST_PAIRS or not slots[-1]:
        return np.zeros(0), np.zeros(0)
    values = values - np.polyval(np.polyfit(slots, values, 1), slots)
    values /= values.std() or 1.0
    size = int(slots[-1]) + 1
    count = np.bincount(slots, minlength=size).astype(float)
    total = np.bincount(slots, values, minlength=size)
    most = int(size / LEAST_CYCLES) + 1

    def correlate(part: np.ndarray) -> np.ndarray:
        """Return, for each lag from 0 to the largest, the sum of products of `part` with itself shifted by the lag.

        `part` has a number for each integer time, 0 where there is no value.
        """
        transformed = np.fft.rfft(part, 2 * size)
        return np.fft.irfft(np.abs(transformed) ** 2)[:most]

    return correlate(total), np.round(correlate(count))
