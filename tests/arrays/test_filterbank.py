"""The filterbank: frames and bins, an independent computation, what is refused, and batches of unequal lengths."""

import numpy as np
import pytest

from conftest import refuses
from rotarymae.arrays import as_arrays, filterbank
from rotarymae.preprocess import PatchPreprocessor

RATE = 16_000


def noise(seconds, seed=0):
    return (0.1 * np.random.default_rng(seed).normal(size=int(RATE * seconds))).astype(np.float32)


@pytest.mark.parametrize("rate", [22_050, 44_100])
def test_it_is_kaldis(rate):
    kaldi = pytest.importorskip("kaldi_native_fbank")
    options = kaldi.FbankOptions()
    options.frame_opts.samp_freq, options.frame_opts.dither = rate, 0.0
    options.frame_opts.window_type, options.use_energy = "hamming", False
    options.mel_opts.num_bins = 128
    reference, sound = kaldi.OnlineFbank(options), noise(0.5)
    reference.accept_waveform(rate, sound)
    reference.input_finished()
    wanted = np.stack([reference.get_frame(i) for i in range(reference.num_frames_ready)])
    found = filterbank(sound, rate)
    assert found.shape == wanted.shape and found.dtype == np.float32
    assert np.abs(found - wanted).max() < 1e-3


@pytest.mark.parametrize("rate", [4000, 8000, 16_000, 48_000])
def test_every_bin_hears_noise_at_every_sample_rate(rate):
    found = filterbank(noise(4.0)[:rate], rate)
    assert found.shape == (98, 128) and found.std(0).min() > 0.1 and found.mean(0).min() > -12


def test_a_tone_is_loudest_in_its_bin_and_whole_numbers_are_fractions_of_full_scale():
    time = np.arange(RATE // 2) / RATE
    tone = 0.5 * np.sin(2 * np.pi * 1000 * time)
    found = filterbank(tone, RATE)
    edges = np.linspace(*(1127 * np.log(1 + np.array([20, RATE / 2]) / 700)), 130)
    assert abs(int(found.mean(0).argmax()) - int(np.abs(edges[1:-1] - 1127 * np.log(1 + 1000 / 700)).argmin())) <= 1
    loud = found > -5
    for kind in (np.int16, np.int32):
        whole = (tone * np.iinfo(kind).max).astype(kind)
        assert np.allclose(filterbank(whole, RATE)[loud], found[loud], atol=0.01)
    unsigned = (128 + 127 * tone).astype(np.uint8)
    assert np.allclose(filterbank(unsigned, RATE)[:, 40], found[:, 40], atol=0.5)


@pytest.mark.parametrize(
    ("sound", "rate", "parts"),
    [
        (np.zeros((2, 16_000), np.float32), RATE, ("(2, 16000)", "wanted [n]", "stereo")),
        (np.zeros(100, np.float32), RATE, ("100 samples", "0.025 s")),
        (np.zeros(16_000, np.float32), 100, ("sample_rate is 100", "at least 1000")),
        (np.zeros(16_000, np.float32), 16_000.0, ("sample_rate is 16000.0",)),
        (np.array(["a"]), RATE, ("<U1",)),
        (np.full(16_000, 3000.0), RATE, ("reaches 3000", "-1 to 1", "32768", "np.int16")),
        (np.append(np.nan, np.full(16_000, 3000.0)), RATE, ("reaches 3000",)),
        (np.asarray([3000, -3000] * 8000), RATE, ("int64", "-1 to 1", "np.int16")),
    ],
)
def test_what_is_refused(sound, rate, parts):
    with refuses(*parts):
        filterbank(sound, rate)


def test_waveforms_become_patches_and_a_bad_one_is_named():
    sounds = [noise(0.5, 1), noise(0.333, 2), noise(0.2, 3)]
    assert as_arrays(sounds, None, RATE).patch_size == (8, 128)
    dataset = as_arrays(sounds, 16, RATE)
    assert dataset.noun == "sounds" and dataset.patch_size == (16, 16)
    assert type(as_arrays(sounds, 16, np.int64(RATE)).sample_rate) is int
    assert dataset.lengths.tolist() == [3 * 8, 1 * 8, 1 * 8]
    assert "16000 Hz" in repr(dataset)
    with refuses("sound", "1", "NaN"):
        as_arrays([sounds[0], sounds[1] * np.nan], None, RATE)
    with refuses("sound 1", "inhomogeneous"):
        as_arrays([sounds[0], [[0.0], [0.0, 1.0]]], None, RATE)
    with refuses("sound 1", "size 8", "patch of 16", "less than 0.175 s"):
        as_arrays([sounds[0], noise(0.1)], 16, RATE)
    with refuses("sample_rate 16000", "trained on 8000"):
        PatchPreprocessor((16, 16), 1, 8000).check(dataset)
