"""The methods that every result is printed beside: by hand, on sets that defeat them, and on a set in a file."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score

from conftest import refuses
from rotarymae import SeriesDataset
from rotarymae.partners import features
from rotarymae.partners.baselines import (
    CLASSIFICATION,
    INTERPOLATION,
    REGRESSION,
    BoostedClasses,
    BoostedValues,
    ChannelMean,
    LastValue,
    LinearInterpolation,
    MostCommonClass,
    TrainingMean,
)


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
    data = dataset([(s, 0.0, 0, 1.0, 1.0) for s in range(4)])
    assert MostCommonClass().fit(data, np.array([1, 0, 1, 2])).predict(data).tolist() == [[0.25, 0.5, 0.25]] * 4
    assert MostCommonClass().fit(data, np.array([1, 0, 1, 0])).predict(data)[0].argmax() == 0  # a tie goes to the first
    values = np.array([[1.0, 10.0], [3.0, np.nan], [2.0, 30.0], [2.0, 20.0]])
    assert TrainingMean().fit(data, values).predict(data).tolist() == [[2, 20]] * 4


def sines(series=120, seed=0):
    """Series of three classes that differ in the mean of one channel."""
    draw = np.random.default_rng(seed)
    rows = []
    for s in range(series):
        rows += [(s, float(t), int(draw.integers(2)), draw.normal() + 8 * (s % 3), 1.0) for t in range(8)]
    return dataset(rows), np.arange(series) % 3


def test_means_are_the_same_in_chunks(monkeypatch):
    data, _ = sines(20)
    means = ChannelMean().fit(data).means
    parts = [np.arange(7), np.arange(7, 20)]
    monkeypatch.setattr(SeriesDataset, "series_chunks", lambda self: iter(parts))
    np.testing.assert_allclose(ChannelMean().fit(data).means, means, rtol=1e-12)


def test_boosting_of_classes_learns_and_repeats():
    data, labels = sines()
    train, test = np.arange(0, 90), np.arange(90, 120)
    probabilities = BoostedClasses(3).fit(data.select(train), labels[train]).predict(data.select(test))
    assert probabilities.shape == (30, 3)
    np.testing.assert_allclose(probabilities.sum(1), 1)
    assert accuracy_score(labels[test], probabilities.argmax(1)) > 0.9
    again = BoostedClasses(3).fit(data.select(train), labels[train]).predict(data.select(test))
    np.testing.assert_array_equal(probabilities, again)
    with refuses("two classes"):
        BoostedClasses().fit(data, np.zeros(120, int))


def test_boosting_of_values_takes_each_output_by_itself():
    data, labels = sines()
    targets = np.stack([labels * 1e-3, labels * 1e3], 1)
    targets[::7, 1] = np.nan
    away = BoostedValues().fit(data, targets).predict(data) - np.stack([labels * 1e-3, labels * 1e3], 1)
    assert (np.abs(away).mean(0) < [1e-4, 1e2]).all()


@pytest.mark.parametrize("kind", ["constant channel", "once per series", "in one series only", "constant values"])
def test_boosting_gets_over_features_that_all_series_lack(kind):
    """A skew of a constant, or of single observations, is missing for every series: they say nothing."""
    draw, rows = np.random.default_rng(0), []
    for s in range(30):
        rows += [(s, float(t), 0, 1.0 if kind == "constant values" else draw.normal(), 1.0) for t in range(6)]
        if kind == "constant channel":
            rows += [(s, t + 0.5, 1, 1.0, 1.0) for t in range(6)]
        elif kind != "in one series only" or s == 0:
            rows.append((s, 0.5, 1, draw.normal(), 1.0))
    data, labels = dataset(rows), np.arange(30) % 2
    assert np.isnan(features(data)[0]).all(0).any()
    for method in CLASSIFICATION:
        assert np.isfinite(method().fit(data, labels).predict(data)).all()
    for method in REGRESSION:
        assert np.isfinite(method().fit(data, labels[:, None].astype(float)).predict(data)).all()


# ── interpolation ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_interpolation_by_hand():
    """Series and channels apart; constant outside; the training mean where the channel has no visible value."""
    seen = [(0, 4.0, 0, 8.0), (0, 0.0, 0, 0.0), (0, 2.0, 1, 100.0), (0, 1.0, 0, 2.0), (1, 0.0, 0, 50.0)]
    visible = dataset(seen, ("x",))
    asked = [(-1.0, 0), (0.5, 0), (1.0, 0), (2.5, 0), (9.0, 0), (0.0, 1)]
    hidden = dataset([*((0, t, c, 0.0) for t, c in asked), (1, 5.0, 0, 0.0), (1, 5.0, 1, 0.0)], ("x",))
    train = dataset([(0, 0.0, 0, 1.0), (1, 0.0, 0, 3.0), (1, 0.0, 1, -9.0)], ("x",))
    for method, wanted in (
        (LinearInterpolation, [0, 1, 2, 5, 8, 100, 50, -9]),
        (LastValue, [0, 0, 2, 2, 8, 100, 50, -9]),
        (ChannelMean, [2, 2, 2, 2, 2, -9, 2, -9]),
    ):
        got = method().fit(train).predict(visible, hidden)[:, 0]
        at = dict(zip(zip(hidden.times, hidden.channels), got[:6]))
        assert [at[place] for place in asked] + got[6:].tolist() == wanted, method.name
    assert {method.name for method in INTERPOLATION} == {"linear interpolation", "last value", "mean"}
    with refuses("same series ids"):
        LinearInterpolation().fit(train).predict(visible, hidden.select([0]))


def test_linear_interpolation_agrees_with_numpy():
    draw = np.random.default_rng(1)
    times, asked = np.sort(draw.normal(size=30)), np.sort(2 * draw.normal(size=50))
    values = draw.normal(size=(30, 2))
    visible = SeriesDataset.from_arrays([times], [values], value_names=["a", "b"])
    hidden = SeriesDataset.from_arrays([asked], [np.zeros((50, 2))], value_names=["a", "b"])
    got = LinearInterpolation().fit(visible).predict(visible, hidden)
    for v in range(2):
        np.testing.assert_allclose(got[:, v], np.interp(asked, times, values[:, v]))


def test_a_channel_that_training_never_saw_has_no_mean():
    train = dataset([(0, 0.0, 0, 1.0, 2.0), (1, 0.0, 0, 3.0, 4.0)])
    np.testing.assert_allclose(ChannelMean().fit(train).means, [[2, 3], [np.nan, np.nan]])
