"""Absolute positions: the draws, the trivial answer, the curve of Figure 2."""

import numpy as np
import pytest

from rotarymae_experiments.data import position
from rotarymae_experiments.data.shared import mse


def test_table_1_sizes_and_streams():
    sets = position.position_sets()
    assert sets.train.shape == (20_000, 10) and sets.test.shape == (4_000, 10) and sets.train.dtype == np.float32
    others = position.position_sets(train=3, test=2, seed=1)
    for seed, stream, drawn in [(0, i, drawn) for i, drawn in enumerate(sets)] + [
        (1, 0, others.train),
        (1, 1, others.test),
    ]:
        unit = np.random.default_rng([seed, stream]).random((len(drawn), 10))
        np.testing.assert_allclose(drawn, 50 * unit, rtol=1e-6)


@pytest.mark.parametrize("low, high", [(0, 50), (1, 50), (0, 1000)])
def test_trivial_answer_scores_the_variance(low, high):
    targets = position.position_sets(low=low, high=high, train=1).test
    assert low <= targets.min() < low + 0.01 * high
    assert high * 0.99 < targets.max() <= high
    constant = np.full_like(targets, (low + high) / 2)
    trivial = position.trivial_mse(low, high)
    assert trivial == pytest.approx((high - low) ** 2 / 12)  # 200.083 for the published code's 1 to 50
    assert mse(constant, targets) == pytest.approx(trivial, rel=0.015)
    assert mse(constant + 0.1 * (high - low), targets) > 1.1 * trivial


def test_error_by_position_by_hand():
    targets = np.array([[0.0, 4.0], [5.0, 10.0]])
    curve = position.mse_by_position(targets + np.array([[1, 2], [3, 4]]), targets, high=10, bins=2)
    np.testing.assert_allclose(curve.fraction, [0.25, 0.75])
    np.testing.assert_allclose(curve.mse, [(1 + 4) / 2, (9 + 16) / 2])
    assert np.isnan(position.mse_by_position([[1.0]], [[1.0]], high=10, bins=2).mse[1])
