"""Frequencies: what the Fourier transform finds is what was put in; waves; errors by hand; the stream."""

import math

import numpy as np
import pytest

from rotarymae.data import frequency
from rotarymae.errors import InputError


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


def test_one_or_two_components_equally_often_and_frequencies_uniform():
    made = frequency.generate(10_000)
    two = made.frequencies[:, 1] >= 0
    assert two.mean() == pytest.approx(0.5, abs=0.02)
    drawn = np.concatenate([made.frequencies[:, 0], made.frequencies[two, 1]])
    assert drawn.min() == 0 and drawn.max() == 24
    np.testing.assert_allclose(np.bincount(drawn) / len(drawn), 1 / 25, rtol=0.2)
    assert (made.noisy - made.clean).var() == pytest.approx(0.01, rel=0.02)
    # the paper prints 43.1 for its training set
    assert frequency.signal_to_noise(made) == pytest.approx(43.1, rel=0.03)


def test_the_spectrum_peaks_at_the_frequency_of_each_series():
    made = frequency.single_frequencies(8)
    np.testing.assert_array_equal(made.frequencies[:, 0], np.repeat(np.arange(25), 8))
    spectrum = frequency.amplitude_spectrum(made.noisy)
    sounding = made.frequencies[:, 0] > 0
    np.testing.assert_array_equal(spectrum.argmax(axis=1)[sounding], made.frequencies[sounding, 0])
    np.testing.assert_array_equal(made.clean[~sounding], 0)


def test_two_frequencies_give_two_peaks():
    made = frequency.two_frequencies(2, noise=0)
    assert len(made.clean) == 300 * 2
    assert len(np.unique(made.frequencies, axis=0)) == 300
    apart = (made.frequencies[:, 0] > 0) & (np.diff(made.frequencies)[:, 0] > 3)
    top = np.sort(np.argsort(frequency.amplitude_spectrum(made.clean[apart]))[:, -2:], axis=1)
    # 1 Hz is 100 / 99 bins, so the sides of one peak may top the centre of the weaker: compare the stronger's bin only
    strong = frequency.amplitude_spectrum(made.clean[apart]).argmax(axis=1)
    assert (strong[:, None] == made.frequencies[apart]).any(axis=1).all()
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


@pytest.mark.parametrize("change", [{"kind": "square"}, {"kind": "cycloid"}, {"random_phase": True}, {"noise": 0.2}])
def test_each_option_changes_the_series(change):
    plain, changed = frequency.generate(20), frequency.generate(20, **change)
    np.testing.assert_array_equal(plain.frequencies, changed.frequencies)
    assert not np.allclose(plain.noisy, changed.noisy)


def test_amplitude_range():
    made = frequency.single_frequencies(40, amplitude=(2.0, 3.0), noise=0, kind="square")
    peak = np.abs(made.clean).max(axis=1)
    assert 2 <= peak.min() < 2.05 and 2.95 < peak.max() <= 3


def test_hidden_and_full_are_inverse():
    made = frequency.generate(6)
    np.testing.assert_array_equal(frequency.full(frequency.hidden(made.noisy, made), made), made.noisy)
    filled = frequency.full(np.zeros((6, 50)), made)
    assert (filled[~made.seen] == 0).all() and (filled[made.seen] == made.noisy[made.seen]).all()
    first = np.flatnonzero(~made.seen[2])[0]
    assert frequency.hidden(made.clean, made)[2, 0] == made.clean[2, first]


def test_errors_by_hand():
    t = np.arange(50) / 50
    targets = np.stack([np.sin(2 * np.pi * 5 * t), np.sin(2 * np.pi * 5 * t)])
    predicted = np.stack([np.zeros(50), np.cos(2 * np.pi * 5 * t)])
    np.testing.assert_allclose(frequency.time_error(predicted, targets), [0.5, 1.0])
    # a wave of amplitude 1 missing from one of 26 bins; a shifted wave has the same amplitudes
    np.testing.assert_allclose(frequency.fft_error(predicted, targets), [1 / 26, 0], atol=1e-12)


def test_refusals_say_what_came():
    made = frequency.generate(3)
    with pytest.raises(InputError, match="at least 1 series, got 0"):
        frequency.generate(0)
    with pytest.raises(InputError, match="sine, square, cycloid; got 'saw'"):
        frequency.generate(3, kind="saw")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"got \(2, 1\)"):
        frequency.generate(3, amplitude=(2, 1))
    with pytest.raises(InputError, match=r"got -0\.1"):
        frequency.single_frequencies(1, noise=-0.1)
    with pytest.raises(InputError, match=r"\(3, 50\) .* got \(3, 100\)"):
        frequency.full(made.noisy, made)
    with pytest.raises(InputError, match=r"\(3, 100\), got \(3, 50\)"):
        frequency.hidden(np.zeros((3, 50)), made)
    with pytest.raises(InputError, match=r"\(50,\)"):
        frequency.time_error(np.zeros(50), np.zeros(50))
    with pytest.raises(InputError, match="per_pair must be at least 1"):
        frequency.two_frequencies(0)
