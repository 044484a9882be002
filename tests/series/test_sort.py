"""Rows are sorted where they are not, and the others are left where they are."""

import numpy as np
import pytest

from rotarymae.errors import InputWarning
from rotarymae.series import SeriesDataset


def test_series_out_of_order_are_sorted_and_the_others_left_alone():
    draw = np.random.default_rng(0)
    times = [np.repeat(np.arange(4.0), 2) for _ in range(5)]
    channels = [np.tile([0, 1], 4) for _ in range(5)]
    for i in (1, 3):  # of times, and of channels at one time
        order = draw.permutation(8) if i == 1 else np.array([0, 1, 3, 2, 4, 5, 6, 7])
        times[i], channels[i] = times[i][order], channels[i][order]
    values = [10.0 * t + c + 100 * i for i, (t, c) in enumerate(zip(times, channels, strict=True))]
    with pytest.warns(InputWarning, match="not in order|ascend|sorted"):
        dataset = SeriesDataset.from_arrays(times, values, channels)
    assert np.array_equal(dataset.times, np.tile(np.repeat(np.arange(4.0), 2), 5))
    assert np.array_equal(dataset.channels, np.tile([0, 1], 20))
    series = np.repeat(np.arange(5), 8)
    assert np.array_equal(dataset.values[:, 0], 10 * dataset.times + dataset.channels + 100 * series)
