from types import SimpleNamespace

import numpy as np
import pytest

from rotarymae.errors import InputError
from rotarymae.tasks.baselines import (
    channel_means,
    gradient_boosting,
    interpolate_hidden,
    last_value,
    linear_interpolation,
    majority,
    summary_features,
)


def dataset(rows, names=("flux", "flux_err"), channel_names=("g", "r"), series=None):
    """rows: (series, time, channel, *values), in any order within a series."""
    rows = sorted(rows, key=lambda row: row[0])
    owner = np.array([row[0] for row in rows])
    count = int(owner.max()) + 1 if series is None else series
    return SimpleNamespace(
        times=np.array([row[1] for row in rows], np.float64),
        values=np.array([row[3:] for row in rows], np.float64).reshape(len(rows), len(names)),
        channels=None if channel_names is None else np.array([row[2] for row in rows], np.int32),
        offsets=np.searchsorted(owner, np.arange(count + 1)).astype(np.int64),
        ids=np.array([f"object {i}" for i in range(count)]),
        value_names=names,
        channel_names=channel_names,
    )


def test_majority_is_the_most_common_label():
    assert majority(["b", "a", "b", "c"], 3).tolist() == ["b", "b", "b"]
    assert majority([5, 3, 5, 3], 1).tolist() == [3]  # a tie goes to the first in sorted order
    with pytest.raises(InputError, match="one label per training series"):
        majority([], 2)


def test_summary_features_by_hand():
    data = dataset(
        [
            # series 0: g holds 1, 2, 6 at days 0, 1, 5; r holds 4 at day 2
            (0, 5.0, 0, 6.0, 0.5),
            (0, 0.0, 0, 1.0, 0.5),
            (0, 2.0, 1, 4.0, 2.0),
            (0, 1.0, 0, 2.0, 1.0),
            # series 1: only r, and one of its two values is missing
            (1, 3.0, 1, -2.0, 1.0),
            (1, 9.0, 1, np.nan, 1.0),
        ]
    )
    features, names = summary_features(data)
    assert features.shape == (2, len(names)) and len(set(names)) == len(names)
    first, second = (dict(zip(names, row)) for row in features)
    assert first["g: count"] == 3 and first["g: span"] == 5
    assert first["g: flux mean"] == 3 and first["g: flux min"] == 1 and first["g: flux max"] == 6
    std = np.sqrt((4 + 1 + 9) / 3)
    assert first["g: flux std"] == pytest.approx(std)
    assert first["g: flux skew"] == pytest.approx((-8 - 1 + 27) / 3 / std**3)
    assert first["g: signal-to-noise mean"] == pytest.approx((2 + 2 + 12) / 3)
    assert first["g: signal-to-noise max"] == 12
    assert first["g: share above 5 sigma"] == pytest.approx(1 / 3) and first["g: span above 5 sigma"] == 0
    assert first["g - r: flux"] == -1 and first["g - r: relative flux"] == pytest.approx(-1 / 7)
    assert first["all: count"] == 4 and first["all: flux mean"] == 13 / 4 and first["all: channels"] == 2
    assert np.isnan(first["r: flux skew"])  # one point has no skew
    assert second["g: count"] == 0 and np.isnan(second["g: flux mean"]) and np.isnan(second["g - r: flux"])
    assert second["r: count"] == 2 and second["r: span"] == 6
    assert second["r: flux mean"] == second["r: flux max"] == -2 and second["all: channels"] == 1


def test_summary_features_do_not_depend_on_the_order_of_rows_or_on_other_series():
    generator = np.random.default_rng(0)
    rows = [(s, float(t), int(c), *generator.normal(size=2)) for s in range(5) for t in range(6) for c in range(2)]
    whole, _ = summary_features(dataset(rows))
    shuffled, _ = summary_features(dataset([rows[i] for i in generator.permutation(len(rows))]))
    np.testing.assert_allclose(shuffled, whole, rtol=1e-9)
    alone, _ = summary_features(dataset([(0, *row[1:]) for row in rows if row[0] == 3]))
    np.testing.assert_allclose(alone[0], whole[3], rtol=1e-9)


def test_summary_features_without_channels_or_errors_and_with_an_empty_series():
    features, names = summary_features(dataset([(0, 1.0, 0, 7.0)], ("level",), None, series=2))
    assert all(name.startswith("all: ") for name in names) and not any("signal" in name for name in names)
    row = dict(zip(names, features[1]))
    assert row["all: count"] == 0 and np.isnan(row["all: level mean"]) and np.isnan(row["all: span"])


def test_unnamed_channels_take_the_number_asked_for():
    data = dataset([(0, 0.0, 0, 1.0, 1.0)])
    data.channel_names = None
    assert len(summary_features(data, 3)[1]) > len(summary_features(data, 2)[1])
    data.channels = np.array([4], np.int32)
    with pytest.raises(InputError, match="channels run from 4 to 4, but there are 2"):
        summary_features(data, 2)


def test_gradient_boosting_learns_ignores_missing_and_repeats():
    generator = np.random.default_rng(0)
    labels = np.repeat(["nova", "quasar", "star"], 40)
    features = generator.normal(size=(120, 3)) + 8 * np.unique(labels, return_inverse=True)[1][:, None]
    features[generator.random(features.shape) < 0.1] = np.nan
    train = np.arange(120) % 2 == 0
    probabilities = gradient_boosting(features[train], labels[train], features[~train], seed=3)
    assert probabilities.shape == (60, 3)
    np.testing.assert_allclose(probabilities.sum(1), 1)
    predicted = np.unique(labels)[probabilities.argmax(1)]
    assert (predicted == labels[~train]).mean() > 0.9
    again = gradient_boosting(features[train], labels[train], features[~train], seed=3)
    np.testing.assert_array_equal(probabilities, again)


def test_gradient_boosting_refuses():
    with pytest.raises(InputError, match="same num_channels"):
        gradient_boosting(np.zeros((3, 2)), [0, 1, 1], np.zeros((3, 4)))
    with pytest.raises(InputError, match="3 training series but labels"):
        gradient_boosting(np.zeros((3, 2)), [0, 1], np.zeros((3, 2)))
    with pytest.raises(InputError, match="two classes"):
        gradient_boosting(np.zeros((3, 2)), [1, 1, 1], np.zeros((3, 2)))


# ── interpolation ─────────────────────────────────────────────────────────────────────────────────────────────────

TIMES, VALUES, CHANNELS = [4.0, 0.0, 2.0, 1.0], [8.0, 0.0, 100.0, 2.0], [0, 0, 1, 0]
ASKED = [-1.0, 0.5, 1.0, 2.5, 9.0, 0.0, 5.0]
ASKED_CHANNELS = [0, 0, 0, 0, 0, 1, 2]


def test_linear_interpolation_by_hand():
    got = linear_interpolation(TIMES, VALUES, CHANNELS, ASKED, ASKED_CHANNELS, fallback=[[-7.0], [-8.0], [-9.0]])
    np.testing.assert_allclose(got, [0, 1, 2, 5, 8, 100, -9])


def test_last_value_by_hand():
    got = last_value(TIMES, VALUES, CHANNELS, ASKED, ASKED_CHANNELS)
    np.testing.assert_allclose(got, [0, 0, 2, 2, 8, 100, np.nan])


def test_linear_interpolation_agrees_with_numpy():
    generator = np.random.default_rng(1)
    times, asked = np.sort(generator.normal(size=30)), 2 * generator.normal(size=50)
    values = generator.normal(size=(30, 2))
    got = linear_interpolation(times, values, None, asked, None)
    assert got.shape == (50, 2)
    for v in range(2):
        np.testing.assert_allclose(got[:, v], np.interp(asked, times, values[:, v]))


def test_several_values_at_one_time_are_averaged_and_missing_ones_left_out():
    got = linear_interpolation([0, 0, 1, 2], [1.0, 3.0, np.nan, 6.0], None, [0.0, 1.0], None)
    np.testing.assert_allclose(got, [2, 4])


def test_interpolate_hidden_keeps_series_and_channels_apart():
    visible = dataset(
        [(0, 0.0, 0, 0.0, 1.0), (0, 10.0, 0, 10.0, 3.0), (1, 0.0, 0, 50.0, 5.0), (1, 5.0, 1, 70.0, np.nan)]
    )
    hidden = dataset(
        [(0, 5.0, 0, np.nan, np.nan), (0, 5.0, 1, 0, 0), (1, 5.0, 0, 0, 0), (1, 1.0, 1, 0, 0), (0, 2.0, 0, 0, 0)]
    )
    means = [[-1.0, -2.0], [-3.0, -4.0]]
    expected = [[5, 2], [-3, -4], [2, 1.4], [50, 5], [70, -4]]
    np.testing.assert_allclose(interpolate_hidden(visible, hidden, means), expected)
    last = interpolate_hidden(visible, hidden, means, "last")
    np.testing.assert_allclose(last, [[0, 1], [-3, -4], [0, 1], [50, 5], [70, -4]])
    single = linear_interpolation([0, 10], [[0, 1], [10, 3]], [0, 0], [5, 5, 2], [0, 1, 0], means)
    np.testing.assert_allclose(single, expected[:3])


def test_channel_means():
    data = dataset([(0, 0, 0, 1.0, 2.0), (1, 0, 0, 3.0, np.nan), (1, 1, 0, 5.0, 4.0)])
    np.testing.assert_allclose(channel_means(data), [[3, 3], [np.nan, np.nan]])


def test_interpolation_refuses_what_does_not_fit():
    data = dataset([(0, 0.0, 0, 1.0, 1.0)])
    with pytest.raises(InputError, match="choose 'linear' or 'last'"):
        interpolate_hidden(data, data, np.zeros((2, 2)), "cubic")
    with pytest.raises(InputError, match="means has shape"):
        interpolate_hidden(data, data, np.zeros((2, 1)))
    with pytest.raises(InputError, match="same series ids"):
        interpolate_hidden(data, dataset([(1, 0.0, 0, 1.0, 1.0)]), np.zeros((2, 2)))
    with pytest.raises(InputError, match="for neither"):
        last_value([0.0], [1.0], [0], [1.0], None)
    with pytest.raises(InputError, match="do not belong together"):
        last_value([0.0, 1.0], [1.0], None, [1.0], None)
    with pytest.raises(InputError, match="fallback has 1 channels"):
        last_value([0.0], [1.0], [0], [1.0], [1], [[0.0]])


@pytest.mark.parametrize("offsets", [[0, 2], [1, 1], [0], [0, 2, 1]])
def test_offsets_are_checked(offsets):
    data = dataset([(0, 0.0, 0, 1.0, 1.0)])
    data.offsets = np.array(offsets)
    with pytest.raises(InputError, match="offsets"):
        channel_means(data)
