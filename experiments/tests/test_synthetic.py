"""HeTVAE's synthetic set: the stream, the split, and the exact posterior against conditioning by brute force."""

import numpy as np
import pytest
from sklearn.model_selection import train_test_split

from rotarymae_experiments.data import synthetic
from rotarymae_experiments.data.shared import mse


def rbf_weights():
    """The specification's W, entry by entry."""
    weights = np.empty((51, 10))
    for i, q in enumerate(np.linspace(0, 1, 51)):
        for j, k in enumerate(np.linspace(0, 1, 10)):
            weights[i, j] = np.exp(-120 * (q - k) ** 2)
        weights[i] /= weights[i].sum()
    return weights


def test_generator_replayed_series_by_series():
    series = synthetic.generate(7, seed=3)
    rng, weights = np.random.RandomState(3), rbf_weights()
    for clean, noisy in zip(series.clean, series.noisy, strict=True):
        expected = weights @ rng.randn(10)
        np.testing.assert_allclose(clean, expected, atol=1e-12)
        np.testing.assert_allclose(noisy, expected + 0.1 * rng.randn(51), atol=1e-12)
    np.testing.assert_array_equal(series.times, np.linspace(0, 1, 51))


def test_split_is_80_10_10_disjoint_and_matches_hetvae_training():
    train, valid, test = synthetic.split_indices(2000)
    assert (len(train), len(valid), len(test)) == (1600, 200, 200)
    np.testing.assert_array_equal(np.sort(np.concatenate([train, valid, test])), np.arange(2000))
    hetvae_train, hetvae_test = train_test_split(np.arange(2000), train_size=0.8, random_state=42, shuffle=True)
    np.testing.assert_array_equal(train, hetvae_train)
    np.testing.assert_array_equal(np.concatenate([test, valid]), hetvae_test)

    sets, series = synthetic.splits(2000), synthetic.generate(2000)
    np.testing.assert_array_equal(sets.validation.noisy, series.noisy[valid])
    np.testing.assert_array_equal(sets.test.clean, series.clean[test])


def test_context_counts_are_uniform_and_points_are_too():
    seen = synthetic.draw_context(np.random.default_rng(0), 14_000)
    counts = np.bincount(seen.sum(axis=1), minlength=11)
    assert counts[:3].sum() == 0 and counts[10:].sum() == 0
    np.testing.assert_allclose(counts[3:10], 2000, rtol=0.12)
    np.testing.assert_allclose(seen.mean(axis=0), 6 / 51, rtol=0.12)
    half = synthetic.draw_context(np.random.default_rng(0), 5, low=25, high=25)
    np.testing.assert_array_equal((~half).sum(axis=1), 26)


def brute_force(noisy, observed, noise_in_target):
    """Condition the 51-dimensional Gaussian: K_*o (K_oo + s^2 I)^-1 y and its covariance, for all 51 clean values."""
    prior = rbf_weights() @ rbf_weights().T
    o = np.flatnonzero(observed)
    gain = prior[:, o] @ np.linalg.inv(prior[np.ix_(o, o)] + 0.01 * np.eye(len(o)))
    covariance = prior - gain @ prior[o]
    return gain @ noisy[o], covariance + noise_in_target * np.eye(51)


def test_posterior_equals_brute_force_for_different_subsets():
    series = synthetic.generate(12, seed=1)
    observed = synthetic.draw_context(np.random.default_rng(2), 12, low=1, high=40)
    observed[0] = False  # of which nothing is known but the prior
    found = synthetic.posterior(series.noisy, observed)
    for i in range(12):
        mean, covariance = brute_force(series.noisy[i], observed[i], 0.01)
        np.testing.assert_allclose(found.mean[i], mean, atol=1e-9)
        np.testing.assert_allclose(found.std[i] ** 2, covariance.diagonal(), atol=1e-9)


def test_posterior_does_not_look_at_hidden_values():
    series = synthetic.generate(20)
    observed = synthetic.draw_context(np.random.default_rng(0), 20)
    spoiled = np.where(observed, series.noisy, np.nan)
    hidden = ~observed
    np.testing.assert_array_equal(
        synthetic.posterior(spoiled, observed).mean[hidden], synthetic.posterior(series.noisy, observed).mean[hidden]
    )


def test_optimum_is_of_the_expected_size():
    rng = np.random.default_rng(0)
    series = synthetic.generate(4000, seed=11)
    best = []
    for low, high in [(3, 3), (3, 9), (10, 10), (20, 20)]:
        observed = synthetic.draw_context(rng, 4000, low=low, high=high)
        expected = np.square(synthetic.posterior(series.noisy, observed).std)[~observed].mean()
        best.append(mse(synthetic.posterior(series.noisy, observed).mean[~observed], series.noisy[~observed]))
        assert best[-1] == pytest.approx(expected, rel=0.05)
    assert 0.21 < best[1] < 0.23
    assert best == sorted(best, reverse=True) and best[-1] > 0.01
