"""Absolute positions: the draws, the trivial answer, the curve of Figure 2."""

import numpy as np
import pytest

from rotarymae_experiments.data import position


def test_table_1_sizes_and_streams():
    sets = position.position_sets()
    assert sets.train.values.shape == sets.train.positions.shape == (20_000, 10, 1)
    assert sets.test.values.shape == sets.test.positions.shape == (4_000, 10, 1)
    assert (sets.train.values == sets.test.values.flat[0]).all()
    assert sets.train.positions.dtype == np.float32
    for stream, drawn in enumerate(sets):
        unit = np.random.default_rng([0, stream]).random((len(drawn.positions), 10, 1))
        np.testing.assert_allclose(drawn.positions, 50 * unit, rtol=1e-6)
    np.testing.assert_array_equal(sets.test.targets, sets.test.positions[:, :, 0])


def test_training_and_test_share_no_draw_and_the_seed_matters():
    sets, other = position.position_sets(train=300, test=300), position.position_sets(train=300, test=300, seed=1)
    # single numbers may coincide in float32, whole samples do not
    samples = np.concatenate([sets.train.targets, sets.test.targets, other.train.targets, other.test.targets])
    assert len(np.unique(samples, axis=0)) == 1200


@pytest.mark.parametrize("low, high", [(0, 50), (1, 50), (0, 1000)])
def test_trivial_answer_scores_the_variance(low, high):
    targets = position.position_sets(low=low, high=high, train=1).test.targets
    assert low <= targets.min() < low + 0.01 * high
    assert high * 0.99 < targets.max() <= high
    constant = np.full_like(targets, (low + high) / 2)
    trivial = position.trivial_mse(low, high)
    assert position.mse(constant, targets) == pytest.approx(trivial, rel=0.015)
    assert position.mse(constant + 0.1 * (high - low), targets) > 1.1 * trivial


def test_the_published_code_has_the_variance_it_should():
    assert position.trivial_mse(1, 50) == pytest.approx(200.083, abs=1e-3)


@pytest.mark.parametrize("high", [100, 1000])
def test_range_sets_have_one_token(high):
    sets = position.range_sets(high, train=50, test=4000)
    assert sets.train.positions.shape == (50, 1, 1)
    assert sets.test.high == high and sets.test.positions.max() > 0.99 * high


def test_error_by_position_by_hand():
    targets = np.array([[0.0, 4.0], [5.0, 10.0]])
    curve = position.mse_by_position(targets + np.array([[1, 2], [3, 4]]), targets, low=0, high=10, bins=2)
    np.testing.assert_allclose(curve.fraction, [0.25, 0.75])
    np.testing.assert_array_equal(curve.count, [2, 2])
    np.testing.assert_allclose(curve.mse, [(1 + 4) / 2, (9 + 16) / 2])
    assert np.isnan(position.mse_by_position([[1.0]], [[1.0]], low=0, high=10, bins=2).mse[1])
