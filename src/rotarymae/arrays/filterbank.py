"""Waveforms as log-mel spectrograms, as Kaldi computes them (section 5.3 of arXiv:2505.20535, after SSAST)."""

from __future__ import annotations

import numpy as np

from rotarymae.errors import InputError
from rotarymae.system import unmasked

BINS = 128
FRAME_SECONDS, STEP_SECONDS = 0.025, 0.010  # one frame, and from one to the next
LOWEST = 20.0  # Hz, the lower edge of the first bin; the upper edge of the last one is half the sample rate
EMPHASIS = 0.97
LOUDEST = 100.0  # of floats; beyond, they are surely samples of a file as they were
FRAMES_AT_ONCE = 4096  # frames that are transformed at a time, so that an hour of sound needs no gigabytes
FLOOR = float(np.finfo(np.float32).eps)  # of energies, so that silence has a logarithm


def filterbank(waveform: np.ndarray, sample_rate: int) -> np.ndarray:
    """Return the log-mel spectrogram of a sound, float32 [frames, 128]: natural logarithms of the energy in mel bins.

    Frames of 25 ms begin every 10 ms; samples behind the last whole frame are not used. Each frame loses its mean, is
    pre-emphasised (x[t] - 0.97 x[t - 1]), and is multiplied by a Hamming window. The 128 bins are triangles, evenly
    spaced on the mel scale from 20 Hz to half the sample rate. No noise is added, so the same sound gives the same
    numbers. Energies below 1.2e-7, as of silence, count as 1.2e-7. NaN in a sound makes its frames NaN.

    The Fourier transform has the next power of two samples, as Kaldi's; or more, if some bin would hold no frequency,
    as at 16 kHz, where Kaldi raises an error.

    Args:
        waveform: [n] floats from -1 to 1, or whole numbers of 8, 16 or 32 bits in the range of their type.
        sample_rate: a whole number of at least 1000, in Hz.

    Raises:
        InputError: a waveform of the wrong shape or type, such as 64-bit integers, beyond ±100, or shorter than one
            frame; a sample rate that is no whole number of at least 1000.
    """
    sound = unmasked(waveform)
    whole = sound.dtype.kind in "iu"
    if sound.ndim != 1 or sound.dtype.kind not in "fiu" or (whole and sound.dtype.itemsize > 4):
        raise InputError(
            f"a waveform is {sound.dtype} of the shape {sound.shape}; wanted [n], floats from -1 to 1, or whole "
            "numbers in the type of their file, such as np.int16. Take the mean over the channels of a stereo sound."
        )
    if not isinstance(sample_rate, int | np.integer) or sample_rate < 1000:
        raise InputError(f"sample_rate is {sample_rate!r}; wanted a whole number of at least 1000, in Hz.")
    if whole:
        limits = np.iinfo(sound.dtype)
        middle = (int(limits.max) + int(limits.min) + 1) / 2  # of unsigned bytes, the silence
        sound = (sound - middle) / (int(limits.max) + 1 - middle)
    loudest = np.fmax.reduce(np.abs(sound), initial=0)
    if loudest > LOUDEST:
        raise InputError(
            f"the waveform reaches {loudest:.6g}; wanted floats from -1 to 1. Divide whole numbers of 16 bits by "
            "32768, or give them as np.int16."
        )
    width, step = int(FRAME_SECONDS * sample_rate), int(STEP_SECONDS * sample_rate)
    if len(sound) < width:
        raise InputError(
            f"the waveform has {len(sound)} samples, {len(sound) / sample_rate:.3g} s at {sample_rate} Hz; wanted at "
            f"least {FRAME_SECONDS} s. Leave it out."
        )
    windows = np.lib.stride_tricks.sliding_window_view(sound.astype(np.float32), width)[::step]
    weights, energies = _mel_weights(width, sample_rate), []
    for start in range(0, len(windows), FRAMES_AT_ONCE):
        frames = windows[start : start + FRAMES_AT_ONCE]
        frames = frames - frames.mean(1, keepdims=True)
        frames = frames - np.float32(EMPHASIS) * np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)
        spectrum = np.fft.rfft(frames * np.hamming(width), 2 * len(weights))[:, :-1]
        energies.append(np.log(np.maximum(np.square(np.abs(spectrum)) @ weights, FLOOR)).astype(np.float32))
    return np.concatenate(energies)


def _mel_weights(width: int, sample_rate: int) -> np.ndarray:
    """Return the weight of each of F frequencies in each mel bin, float64 [F, 128], from 0 to 1.

    The bins are triangles on the mel scale, from 20 Hz to half the sample rate. The frequencies are those of a Fourier
    transform of 2F samples, without the last: k · sample_rate / 2F for k = 0 to F - 1. 2F is the smallest power of two
    that is at least `width`; it is doubled until every bin has a frequency of positive weight.

    Args:
        width: samples of a frame.
        sample_rate: in Hz.
    """
    lowest, highest = _mel(np.array([LOWEST, sample_rate / 2]))
    edges = np.linspace(lowest, highest, BINS + 2)
    left, middle, right = edges[:-2], edges[1:-1], edges[2:]
    frequencies = 2 ** int(np.ceil(np.log2(width))) // 2
    while True:
        at = _mel(np.arange(frequencies) * sample_rate / (2 * frequencies))[:, None]
        weights = np.maximum(np.minimum((at - left) / (middle - left), (right - at) / (right - middle)), 0.0)
        if (weights > 0).any(0).all():
            return weights
        frequencies *= 2


def _mel(hertz: np.ndarray) -> np.ndarray:
    """Convert frequencies in Hz to the mel scale (1127 ln(1 + f / 700)), on which equal steps sound alike."""
    return 1127.0 * np.log1p(hertz / 700.0)
