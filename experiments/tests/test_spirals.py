"""Spirals: the stream, the two shapes and their direction, the scaling, the metrics, the noise floor."""

import math

import numpy as np
import pytest

from rotarymae_experiments.data import spirals
from rotarymae_experiments.data.shared import draw_seen


def one_spiral(a, b, counter_clockwise):
    """150 points of one spiral, number by number from the specification."""
    points = []
    for k in range(150):
        t = 6 * math.pi * k / 149
        if counter_clockwise:
            r = a + b * t
            points.append((r * math.cos(t) + 5, r * math.sin(t)))
        else:
            z = 6 * math.pi + 1 - t
            r = a + 50 * b / z
            points.append((r * math.cos(z) - 5, r * math.sin(z)))
    return np.array(points if counter_clockwise else points[::-1])


def replay(rng, n):
    """Raw clean curves [n, 150, 2] and types [n], drawn one number at a time."""
    a = [0.02 * rng.randn() for _ in range(n)]
    b = [0.3 + 0.02 * rng.randn() for _ in range(n)]
    kind = [bool(rng.rand() > 0.5) for _ in range(n)]
    return np.stack([one_spiral(*row) for row in zip(a, b, kind, strict=True)]), np.array(kind)


@pytest.mark.parametrize("seed", [27, 42])
def test_contiformer_replayed(seed):
    made, rng = spirals.contiformer_spirals(300, seed=seed), np.random.RandomState(seed)
    clean, kind = replay(rng, 300)
    noisy = clean + 0.05 * rng.randn(300, 150, 2)
    low, high = clean.reshape(-1, 2).min(axis=0), clean.reshape(-1, 2).max(axis=0)
    np.testing.assert_array_equal(made.counter_clockwise, kind)
    np.testing.assert_allclose(made.clean, (clean - low) / (high - low), atol=1e-12)
    np.testing.assert_allclose(made.noisy, (noisy - low) / (high - low), atol=1e-12)
    np.testing.assert_array_equal(made.context, sorted(rng.choice(75, 50, replace=False)))
    np.testing.assert_allclose(made.clean * made.scale + made.offset, clean, atol=1e-12)


def test_romae_replayed():
    made, rng = spirals.romae_spirals(20, seed=5), np.random.RandomState(5)
    clean, kind = replay(rng, 20)
    np.testing.assert_array_equal(made.counter_clockwise, kind)
    assert made.clean.shape == (20, 75, 2) and made.context is None
    np.testing.assert_allclose(made.times, np.linspace(0, 6 * np.pi, 150)[:75])
    np.testing.assert_allclose(made.clean, clean[:, :75], atol=1e-12)
    np.testing.assert_allclose(made.noisy, made.clean + 0.1 * rng.randn(20, 75, 2), atol=1e-12)


def test_split_is_200_and_100_and_validation_comes_from_training():
    made = spirals.contiformer_spirals()
    train, valid, test = made.split(valid=40)
    assert [len(part.clean) for part in (train, valid, test)] == [160, 40, 100]
    np.testing.assert_array_equal(np.concatenate([train.noisy, valid.noisy, test.noisy]), made.noisy)
    kinds = np.concatenate([part.counter_clockwise for part in (train, valid, test)])
    np.testing.assert_array_equal(kinds, made.counter_clockwise)
    np.testing.assert_array_equal(made.split().test.clean, made.clean[200:])


def test_draws_of_seen_points():
    rng = np.random.default_rng(0)
    seen = draw_seen(rng, 3000, 75, 30)
    assert seen.shape == (3000, 75)
    np.testing.assert_array_equal(seen.sum(axis=1), 30)
    np.testing.assert_allclose(seen.mean(axis=0), 0.4, atol=0.05)
    assert len(np.unique(seen, axis=0)) == 3000
    shared = np.stack([spirals.draw_shared_context(rng) for _ in range(1500)])
    assert (np.diff(shared) > 0).all() and shared.min() == 0 and shared.max() == 74
    np.testing.assert_allclose(np.bincount(shared.ravel()) / 1500, 50 / 75, atol=0.06)


def test_metrics_by_hand():
    predicted, targets = np.zeros((1, 2, 2)), np.array([[[3.0, -4.0], [0.0, 1.0]]])
    assert spirals.mae(predicted, targets) == pytest.approx((7 + 1) / 2)
    assert spirals.rmse(predicted, targets) == pytest.approx(math.sqrt((25 + 1) / 2))
    assert spirals.rmse_per_coordinate(predicted, targets) == pytest.approx(math.sqrt(26 / 4))


def test_noise_floor_is_the_noise():
    test = spirals.romae_spirals(3000).split(train=200).test
    hidden = ~draw_seen(np.random.default_rng(0), 2800, 75, 30)
    assert spirals.noise_floor(test, hidden) == pytest.approx(0.1, rel=0.01)
    picked = np.zeros_like(hidden)
    picked[4, 7] = True
    difference = test.noisy[4, 7] - test.clean[4, 7]
    assert spirals.noise_floor(test, picked) == pytest.approx(math.sqrt((difference**2).mean()))
