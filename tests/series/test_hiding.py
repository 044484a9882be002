"""A part of every series is hidden, and one observation of it stays."""

from __future__ import annotations

import numpy as np
import pytest

from conftest import refuses
from rotarymae.series import SeriesDataset, hide


@pytest.fixture(scope="module")
def data() -> SeriesDataset:
    draw = np.random.default_rng(0)
    times = [np.arange(n) * 1.5 for n in draw.integers(2, 12, 16)]
    return SeriesDataset.from_arrays(times, [draw.normal(size=len(at)) for at in times])


def test_hide_is_a_partition_that_leaves_one(data):
    visible, hidden, mask = hide(data, 0.4, seed=0)
    assert mask.sum() == len(hidden.times) and len(visible.times) + len(hidden.times) == len(data.times)
    assert (hidden.lengths == np.ceil(data.lengths * 0.4)).all()
    assert (visible.lengths >= 1).all()
    assert sorted([*visible.times, *hidden.times]) == sorted(data.times)
    assert np.array_equal(hide(data, 0.4, seed=0)[2], mask) and not np.array_equal(hide(data, 0.4, seed=1)[2], mask)
    single = SeriesDataset.from_arrays([[1.0], [1.0, 2.0]], [[1.0], [1.0, 2.0]])
    assert hide(single, 0.9, seed=0)[0].ids.tolist() == [1]
    with refuses("share", "1.0"):
        hide(data, 1.0, seed=0)


def test_the_latest_times_are_hidden_whole():
    times = [np.array([0.0, 1.0, 1.0, 2.0, 3.0, 3.0]), np.array([5.0, 6.0])]
    data = SeriesDataset.from_arrays(times, times, [np.arange(len(at)) % 2 for at in times])
    visible, hidden, _ = hide(data, 0.5, by="latest")
    assert visible.times.tolist() == [0.0, 1.0, 1.0, 5.0] and hidden.times.tolist() == [2.0, 3.0, 3.0, 6.0]


def test_whole_times_are_hidden_and_a_series_of_one_time_is_left_out():
    times = [np.array([0.0, 0.0, 1.0, 2.0, 2.0, 3.0]), np.array([5.0, 5.0])]
    data = SeriesDataset.from_arrays(times, times, [np.array([0, 1, 0, 0, 1, 1]), np.array([0, 1])])
    visible, hidden, _ = hide(data, 0.5, seed=3, by="time")
    assert visible.ids.tolist() == hidden.ids.tolist() == [0]
    assert len({*visible.times}) == len({*hidden.times}) == 2 and not {*visible.times} & {*hidden.times}
    with refuses("by='row'"):
        hide(data, 0.5, seed=3, by="row")  # type: ignore[arg-type]
    with refuses("nothing can be hidden", "single observation or time"):
        hide(data.select([1]), 0.5, by="time")
