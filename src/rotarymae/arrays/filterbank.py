"""Waveforms as log-mel spectrograms, by Kaldi's filterbank (section 5.3 of arXiv:2505.20535, after SSAST)."""

from __future__ import annotations

import math

import numpy as np

from rotarymae.errors import InputError, import_extra

BINS = 128
FRAME_SECONDS, STEP_SECONDS = 0.025, 0.010  # one frame, and from one to the next
LOWEST = 20.0  # Hz, the lower edge of the first bin; the upper edge of the last one is half the sample rate


def filterbank(waveform: np.ndarray, sample_rate: int) -> np.ndarray:
    """The natural logarithms [frames, 128] of a sound's energies in mel bins, float32.

    Frames of 25 ms follow one another every 10 ms, each without its mean, pre-emphasised (0.97) and under a Hamming
    window; nothing is dithered, so the same sound gives the same numbers.

    Args:
        waveform: [n] floats from -1 to 1, or whole numbers in the range of their type.
        sample_rate: in Hz.

    Raises:
        InputError: another shape or type; NaN or infinity; a sound shorter than one frame; a sample rate so low that
            some bin would hold no frequency.
        MissingExtra: kaldi-native-fbank is not installed.
    """
    sound = np.asarray(waveform)
    if sound.ndim != 1 or sound.dtype.kind not in "fiu":
        raise InputError(
            f"a waveform came as {sound.dtype} {sound.shape}; wanted numbers [n]. Take the mean over the channels of "
            "a stereo sound first."
        )
    if type(sample_rate) is not int or sample_rate < 1:
        raise InputError(f"sample_rate is {sample_rate!r}; wanted a positive whole number, in Hz.")
    if sound.dtype.kind in "iu":
        limits = np.iinfo(sound.dtype)
        middle = (int(limits.max) + int(limits.min) + 1) / 2  # of unsigned bytes, the silence
        sound = (sound - middle) / (int(limits.max) + 1 - middle)
    sound = sound.astype(np.float32)
    if not np.isfinite(sound).all():
        raise InputError("the waveform holds NaN or infinity; leave it out.")
    if len(sound) < FRAME_SECONDS * sample_rate:
        raise InputError(
            f"the waveform has {len(sound)} samples, {len(sound) / sample_rate:.3g} s at {sample_rate} Hz; wanted at "
            f"least {FRAME_SECONDS} s."
        )
    if not _every_bin_holds_a_frequency(sample_rate):
        raise InputError(f"a sample rate of {sample_rate} Hz is too low for {BINS} mel bins; resample to 16000 Hz.")
    fbank = import_extra("kaldi_native_fbank", "audio")
    options = fbank.FbankOptions()
    options.frame_opts.samp_freq = sample_rate
    options.frame_opts.frame_length_ms, options.frame_opts.frame_shift_ms = 1e3 * FRAME_SECONDS, 1e3 * STEP_SECONDS
    options.frame_opts.window_type, options.frame_opts.dither = "hamming", 0.0
    options.mel_opts.num_bins, options.mel_opts.low_freq = BINS, LOWEST
    options.use_energy = False
    computer = fbank.OnlineFbank(options)
    computer.accept_waveform(sample_rate, np.ascontiguousarray(sound))
    computer.input_finished()
    return np.stack([computer.get_frame(i) for i in range(computer.num_frames_ready)]).astype(np.float32)


def _every_bin_holds_a_frequency(sample_rate: int) -> bool:
    """Whether each triangle of the mel scale has a frequency of the Fourier transform inside: Kaldi aborts if not."""
    transform = 2 ** math.ceil(math.log2(FRAME_SECONDS * sample_rate))
    mel = 1127.0 * np.log1p(np.arange(transform // 2) * sample_rate / transform / 700.0)
    low, high = 1127.0 * np.log1p(np.array([LOWEST, sample_rate / 2]) / 700.0)
    edges = np.linspace(low, high, BINS + 2)
    inside = np.searchsorted(mel, edges[2:], side="left") - np.searchsorted(mel, edges[:-2], side="right")
    return bool((inside > 0).all())
