"""Frequencies: what the Fourier transform finds is what was put in; waves; errors by hand; the stream."""

import dataclasses
import math

import numpy as np
import pytest

from rotarymae.errors import InputError
from rotarymae_experiments.data import frequency


def test_training_series_replayed():
    made, rng = frequency.generate(50, seed=4), np.random.default_rng(4)
    count = rng.integers(1, 3, 50)
    hertz = rng.integers(0, 25, (50, 2))
    size = 0.5 + 0.5 * rng.random((50, 2))
    noise = rng.standard_normal((50, 100))
    order = rng.random((50, 100))
    for i in range(50):
        clean = np.zeros(100)
        for component in range(count[i]):
            clean += size[i, component] * np.sin(2 * np.pi * hertz[i, component] * np.linspace(0, 1, 100))
        np.testing.assert_allclose(made.clean[i], clean, atol=1e-12)
        np.testing.assert_allclose(made.noisy[i], clean + 0.1 * noise[i], atol=1e-12)
        np.testing.assert_array_equal(np.flatnonzero(made.seen[i]), np.sort(np.argsort(order[i])[:50]))
        assert made.frequencies[i, 0] == hertz[i, 0]
        assert made.frequencies[i, 1] == (hertz[i, 1] if count[i] == 2 else -1)


def test_signals_are_as_strong_against_the_noise_as_the_paper_prints():
    made = frequency.generate(10_000)
    assert (made.clean**2).mean() / (made.noisy - made.clean).var() == pytest.approx(43.1, rel=0.03)


def test_the_spectrum_peaks_at_the_frequency_of_each_series():
    made = frequency.single_frequencies(8)
    np.testing.assert_array_equal(made.frequencies[:, 0], np.repeat(np.arange(25), 8))
    spectrum = frequency.amplitude_spectrum(made.noisy)
    sounding = made.frequencies[:, 0] > 0
    np.testing.assert_array_equal(spectrum.argmax(axis=1)[sounding], made.frequencies[sounding, 0])
    np.testing.assert_array_equal(made.clean[~sounding], 0)


def test_two_frequencies_give_two_peaks():
    made = frequency.two_frequencies(2)
    assert len(made.clean) == 2 * len(np.unique(made.frequencies, axis=0)) == 2 * 300
    apart = (made.frequencies[:, 0] > 0) & (np.diff(made.frequencies)[:, 0] > 3)
    top = np.sort(np.argsort(frequency.amplitude_spectrum(made.clean[apart]))[:, -2:], axis=1)
    # 1 Hz is 100 / 99 bins, so a side of one peak may top the centre of the weaker.
    assert (top == made.frequencies[apart]).all(axis=1).mean() > 0.9


def test_spectrum_of_whole_periods_is_the_amplitude():
    t = np.arange(100) / 100
    values = 3 + 0.7 * np.sin(2 * np.pi * 9 * t + 0.4) + 0.2 * np.cos(2 * np.pi * 50 * t)
    expected = np.zeros(51)
    expected[[0, 9, 50]] = 3, 0.7, 0.2
    np.testing.assert_allclose(frequency.amplitude_spectrum(values), expected, atol=1e-12)
    odd = frequency.amplitude_spectrum(np.cos(2 * np.pi * 3 * np.arange(7) / 7))
    np.testing.assert_allclose(odd, [0, 0, 0, 1], atol=1e-12)


def test_waveforms():
    cycles = np.linspace(-2, 3, 5001)
    for kind in ("sine", "square", "cycloid"):
        wave = frequency.waveform(cycles, kind)
        assert wave.min() >= -1 and wave.max() <= 1 and wave.max() > 0.999
        np.testing.assert_allclose(frequency.waveform(cycles[:-1] + 1e-4, kind), frequency.waveform(cycles[:-1] + 2 + 1e-4, kind), atol=1e-4)  # fmt: skip # noqa: E501
    np.testing.assert_array_equal(frequency.waveform([0.1, 0.4, 0.6, 0.9, 1.2], "square"), [1, 1, -1, -1, 1])
    for u in np.linspace(0, 2 * math.pi, 57):
        at = frequency.waveform((u - math.sin(u)) / (2 * math.pi) % 1, "cycloid")
        assert at == pytest.approx(-math.cos(u), abs=1e-5)
    fine = (np.arange(100_000) + 0.5) / 100_000
    assert frequency.waveform(fine, "cycloid").mean() == pytest.approx(0.5, abs=1e-4)
    # the Fourier series of a square wave: odd harmonics 4 / (pi k)
    spectrum = frequency.amplitude_spectrum(frequency.waveform(fine, "square"))
    np.testing.assert_allclose(spectrum[1:8], [4 / math.pi / k if k % 2 else 0 for k in range(1, 8)], atol=1e-4)


def test_hidden_values_are_in_order_of_time():
    made = frequency.generate(6)
    first = np.flatnonzero(~made.seen[2])[0]
    assert frequency.hidden(made.clean, made)[2, 0] == made.clean[2, first]


def test_errors_by_hand():
    t = np.arange(50) / 50
    targets = np.stack([np.sin(2 * np.pi * 5 * t), np.sin(2 * np.pi * 5 * t)])
    predicted = np.stack([np.zeros(50), np.cos(2 * np.pi * 5 * t)])
    np.testing.assert_allclose(frequency.time_error(predicted, targets), [0.5, 1.0])
    # a wave of amplitude 1 missing from one of 26 bins; a shifted wave has the same amplitudes
    np.testing.assert_allclose(frequency.fft_error(predicted, targets), [1 / 26, 0], atol=1e-12)


KINDS = pytest.mark.parametrize("kind", ["sine", "square", "cycloid"])


@KINDS
def test_posterior_is_calibrated_and_beats_the_training_mean(kind):
    made = frequency.generate(2000, seed=8, kind=kind)
    found, hidden = frequency.posterior(made, kind), ~made.seen
    away = ((made.noisy - found.mean) / found.std)[hidden]
    assert 0.66 < (np.abs(away) < 0.9944579).mean() < 0.70
    assert 0.94 < (np.abs(away) < 1.959964).mean() < 0.96
    assert (away**2).mean() == pytest.approx(1, abs=0.02)
    best = ((found.mean - made.noisy)[hidden] ** 2).mean()
    assert 0.0097 < best < 0.0107
    assert 20 * best < ((made.noisy.mean(axis=0) - made.noisy)[hidden] ** 2).mean()


@KINDS
def test_posterior_is_the_mixture_of_all_gaussian_regressions(kind):
    made = frequency.generate(4, seed=3, kind=kind, noise=0.3)
    made.seen[:2] = np.arange(100) % 20 == 3  # 5 points only: many hypotheses stay alive
    found = frequency.posterior(made, kind, 0.3)
    waves = np.stack([frequency.waveform(f * made.times, kind) for f in range(25)])
    choices = [((i,), 1 / 50) for i in range(25)] + [((i, j), 1 / 1250) for i in range(25) for j in range(25)]
    for i in range(4):
        s, y, terms = made.seen[i], made.noisy[i], []
        for choice, prior in choices:
            h = waves[list(choice)].T
            center, covariance = h.sum(axis=1) * 0.75, h @ h.T / 48
            inner = covariance[np.ix_(s, s)] + 0.09 * np.eye(s.sum())
            gain = np.linalg.solve(inner, covariance[s]).T
            away = y[s] - center[s]
            log = -0.5 * (away @ np.linalg.solve(inner, away) + np.linalg.slogdet(inner)[1])
            variance = np.diag(covariance) - (gain * covariance[s].T).sum(axis=1)
            terms.append((np.log(prior) + log, center + gain @ away, variance))
        weight = np.exp(np.array([t[0] for t in terms]) - max(t[0] for t in terms))
        weight /= weight.sum()
        assert i > 1 or weight.max() < 0.99
        means, variances = np.stack([t[1] for t in terms]), np.stack([t[2] for t in terms])
        mean = weight @ means
        np.testing.assert_allclose(found.mean[i], mean, atol=1e-8)
        variance = weight @ (variances + means**2) - mean**2 + 0.09
        np.testing.assert_allclose(found.std[i] ** 2, variance, atol=1e-8)


def test_posterior_reads_series_one_by_one_and_only_what_is_seen():
    made, order = frequency.generate(300, seed=2), np.random.default_rng(0).permutation(300)
    found = frequency.posterior(made)
    shuffled = dataclasses.replace(made, noisy=made.noisy[order], seen=made.seen[order])
    np.testing.assert_allclose(frequency.posterior(shuffled).mean, found.mean[order], atol=1e-9)
    blind = np.where(made.seen, made.noisy, np.nan)
    again = frequency.posterior(dataclasses.replace(made, noisy=blind, clean=blind, frequencies=-made.frequencies))
    np.testing.assert_array_equal(again.mean, found.mean)
    np.testing.assert_array_equal(again.std, found.std)


def test_posterior_against_amplitudes_on_a_grid():
    """By summing over amplitudes: exact for the normal prior, and next to nothing is lost to the true, uniform one."""
    made, size = frequency.single_frequencies(4), np.linspace(0, 1.5, 3001)
    priors = {"normal": np.exp(-24 * (size - 0.75) ** 2), "uniform": (size >= 0.5) & (size <= 1)}  # variance 1 / 48
    predicted, known = frequency.posterior(made).mean, {name: np.zeros_like(made.clean) for name in priors}
    for i, f in enumerate(made.frequencies[:, 0]):
        wave, s, y = np.sin(2 * np.pi * f * made.times), made.seen[i], made.noisy[i]
        log = -(((y[s] - size[:, None] * wave[s]) / 0.1) ** 2).sum(axis=1) / 2
        for name, prior in priors.items():
            weight = prior * np.exp(log - log.max())
            known[name][i] = (weight @ size) / weight.sum() * wave
    np.testing.assert_allclose(predicted, known["normal"], atol=1e-3)  # the frequency is beyond doubt
    errors = [((mean - made.noisy)[~made.seen] ** 2).mean() for mean in (predicted, known["uniform"])]
    assert errors[0] == pytest.approx(errors[1], rel=0.005)


def test_posterior_knows_the_noise_it_is_told():
    made = frequency.generate(200, seed=2, noise=0.5)
    right, sure = frequency.posterior(made, noise=0.5), frequency.posterior(made)
    errors = [frequency.time_error(one.mean, made.clean).mean() for one in (right, sure)]
    assert right.std.mean() > 0.5 > 0.2 > sure.std.mean() and errors[0] < errors[1]
    with pytest.raises(InputError, match=r"kind='saw'.*'sine'"):
        frequency.posterior(made, "saw")  # type: ignore[arg-type]
