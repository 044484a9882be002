"""The methods that every result is printed beside: by hand, on sets that defeat them, and on a set in a file."""

import numpy as np

from conftest import refuses
from rotarymae import SeriesDataset
from rotarymae.partners import baselines
from rotarymae.partners.baselines import FORECASTS, INTERPOLATION, LINE, channel_means, constant, predict_simply
from rotarymae.seasons import Season


def dataset(rows, names=("flux", "flux_err"), channel_names=("g", "r")):
    """rows: (series, time, channel, *values), in any order."""
    rows = sorted(rows, key=lambda row: row[:3])
    owner = [row[0] for row in rows]
    numbers = sorted(set(owner))

    def each(column):
        return [[column(row) for row in rows if row[0] == s] for s in numbers]

    return SeriesDataset.from_arrays(
        each(lambda row: row[1]),
        each(lambda row: row[3:]),
        None if channel_names is None else each(lambda row: channel_names[row[2]]),
        numbers,
        value_names=names,
        channel_names=channel_names,
    )


def test_the_most_common_class_and_the_training_mean():
    assert constant("classification", np.array([1, 0, 1, 2])).tolist() == [0.25, 0.5, 0.25]
    assert constant("classification", np.array([1, 0, 1, 0])).argmax() == 0  # a tie goes to the first
    values = np.array([[1.0, 10.0], [3.0, np.nan], [2.0, 30.0], [2.0, 20.0]])
    assert constant("regression", values).tolist() == [2, 20]


def sines(series=120, seed=0):
    """Series of three classes that differ in the mean of one channel."""
    draw = np.random.default_rng(seed)
    rows = []
    for s in range(series):
        rows += [(s, float(t), int(draw.integers(2)), draw.normal() + 8 * (s % 3), 1.0) for t in range(8)]
    return dataset(rows), np.arange(series) % 3


def test_means_are_the_same_in_chunks(monkeypatch):
    data, _ = sines(20)
    means = channel_means(data)
    parts = [np.arange(7), np.arange(7, 20)]
    monkeypatch.setattr(SeriesDataset, "series_chunks", lambda self: iter(parts))
    np.testing.assert_allclose(channel_means(data), means, rtol=1e-12)


# ── interpolation ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_interpolation_by_hand():
    """Series and channels apart; constant outside; the training mean where the channel has no visible value."""
    seen = [(0, 4.0, 0, 8.0), (0, 0.0, 0, 0.0), (0, 2.0, 1, 100.0), (0, 1.0, 0, 2.0), (1, 0.0, 0, 50.0)]
    visible = dataset(seen, ("x",))
    asked = [(-1.0, 0), (0.5, 0), (1.0, 0), (2.5, 0), (9.0, 0), (0.0, 1)]
    hidden = dataset([*((0, t, c, 0.0) for t, c in asked), (1, 5.0, 0, 0.0), (1, 5.0, 1, 0.0)], ("x",))
    train = dataset([(0, 0.0, 0, 1.0), (1, 0.0, 0, 3.0), (1, 0.0, 1, -9.0)], ("x",))
    expected = {
        "linear_interpolation": [0, 1, 2, 5, 8, 100, 50, -9],
        "last_value": [0, 0, 2, 2, 8, 100, 50, -9],
        "mean": [2, 2, 2, 2, 2, -9, 2, -9],
    }
    predicted = predict_simply(INTERPOLATION, train, visible, hidden)
    assert predicted.keys() == expected.keys()
    for name, got in predicted.items():
        at = dict(zip(zip(hidden.times, hidden.channels), got[:6, 0]))
        assert [at[place] for place in asked] + got[6:, 0].tolist() == expected[name], name
    with refuses("same series ids"):
        predict_simply([LINE], train, visible, hidden.select([0]))


def test_forecasts_by_hand(monkeypatch):
    """0, 4, 0, 4 every unit, then 1: the season is 2; from 0 to 1 in 4 units."""
    times, values = np.arange(5.0), np.array([0.0, 4, 0, 4, 1])
    visible = SeriesDataset.from_arrays([times], [values])
    hidden = SeriesDataset.from_arrays([np.array([5.0, 6, 8])], [np.zeros(3)])
    short = predict_simply(["seasonal_naive"], visible, visible, hidden)["seasonal_naive"]
    assert short[:, 0].tolist() == [1, 1, 1], "too short to repeat"
    monkeypatch.setattr(baselines, "find_season", lambda dataset: Season(2.0, 2.0))
    expected = {
        "last_value": [1, 1, 1],
        "seasonal_naive": [4, 1, 1],
        "drift": [1.25, 1.5, 2],
        "mean_so_far": [1.8, 1.8, 1.8],
    }
    predicted = predict_simply(FORECASTS, visible, visible, hidden)
    assert predicted.keys() == expected.keys()
    for name, got in predicted.items():
        np.testing.assert_allclose(got[:, 0], expected[name])


def test_linear_interpolation_agrees_with_numpy():
    draw = np.random.default_rng(1)
    times, asked = np.sort(draw.normal(size=30)), np.sort(2 * draw.normal(size=50))
    values = draw.normal(size=(30, 2))
    visible = SeriesDataset.from_arrays([times], [values], value_names=["a", "b"])
    hidden = SeriesDataset.from_arrays([asked], [np.zeros((50, 2))], value_names=["a", "b"])
    got = predict_simply([LINE], visible, visible, hidden)[LINE]
    for v in range(2):
        np.testing.assert_allclose(got[:, v], np.interp(asked, times, values[:, v]))


def test_a_channel_that_training_never_saw_has_no_mean():
    train = dataset([(0, 0.0, 0, 1.0, 2.0), (1, 0.0, 0, 3.0, 4.0)])
    np.testing.assert_allclose(channel_means(train), [[2, 3], [np.nan, np.nan]])
