"""Which frequencies survive interpolation: sums of one or two waves, half of the points hidden.

Paper: Appendix B.4 of arXiv:2505.20535 (Figures 3-5); it has no public code. A series is

    y(t) = sum over one or two components of A w(f t) + noise,   f integer, uniform on 0..24 Hz

at 100 points of t in [0, 1]; 50 are seen and 50 hidden. Training: 10,000 series, one or two components with equal
probability. Evaluation: 200 series per single frequency, or pairs of frequencies. w is a sine, a square wave or a
cycloid.

What the paper leaves open, and our reading:

* "Gaussian noise N(0, 0.01)" is a variance: standard deviation 0.1. All 100 points are noisy, the hidden ones too;
  `clean` is kept beside them.
* Amplitudes: A ~ U(0.5, 1) and phase zero. With unit amplitudes the mean signal-to-noise ratio (mean square of the
  signal over 0.01) would be 73; the paper prints 43.1, and these amplitudes give 42.7. `amplitude` and
  `random_phase` change it.
* The two frequencies are drawn independently and may be equal. 0 Hz is allowed: with phase zero a sine of 0 Hz is
  0.
* Times are linspace(0, 1, 100); the 50 seen points are drawn without replacement for each series.
* "FFT of the 50 predicted points": the transform of the hidden values in order of time, as if they were evenly
  spaced (50 of them in one second, hence the limit of 25 Hz the paper names). They are not, so `amplitude_spectrum`
  of the hidden values alone is blurred; `full` fills the seen points in with their own values and gives the proper
  spectrum.

Units: t in seconds, f in Hz, values have none. Random streams: `default_rng(seed)`; in this order the number of
components, two frequencies, two amplitudes, two phases (if asked for), noise, ranks of the points; every draw is
made for all series at once.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rotarymae.errors import InputError

Waveform = Literal["sine", "square", "cycloid"]

POINTS = 100
SEEN = 50
HIGHEST = 24
NOISE_STD = 0.1


@dataclass(frozen=True)
class FrequencySeries:
    """S series of 100 points at the same times.

    times: [100] float64, seconds.
    noisy: [S, 100] float64, input and target.
    clean: [S, 100] float64, without noise.
    frequencies: [S, 2] int64, Hz; the second is -1 where there is one component only.
    seen: [S, 100] bool, 50 True per series; the others are hidden.
    """

    times: NDArray[np.float64]
    noisy: NDArray[np.float64]
    clean: NDArray[np.float64]
    frequencies: NDArray[np.int64]
    seen: NDArray[np.bool_]


def waveform(cycles: ArrayLike, kind: Waveform = "sine") -> NDArray[np.float64]:
    """One wave of period 1 and range [-1, 1] at `cycles` (frequency x time), any shape.

    sine: sin(2 pi c). square: +1 in the first half of a period, -1 in the second. cycloid: the height of a point on a
    rolling wheel, -cos(u) with u - sin(u) = 2 pi c; it touches the ground, -1, at c = 0 and has mean 1/2.
    """
    cycles = np.asarray(cycles, np.float64)
    if kind == "sine":
        return np.sin(2 * np.pi * cycles)
    if kind == "square":
        return np.where(cycles % 1 < 0.5, 1.0, -1.0)
    if kind == "cycloid":
        # Kepler's equation at eccentricity 1; a table evenly spaced in u is finest where the cusp needs it.
        rolled = np.linspace(0, 2 * np.pi, 4097)
        return np.interp(cycles % 1, (rolled - np.sin(rolled)) / (2 * np.pi), -np.cos(rolled))
    raise InputError(f"waveform must be one of {', '.join(get_args(Waveform))}; got {kind!r}")


def generate(
    n: int = 10_000,
    *,
    seed: int = 0,
    kind: Waveform = "sine",
    amplitude: tuple[float, float] = (0.5, 1.0),
    random_phase: bool = False,
    noise: float = NOISE_STD,
) -> FrequencySeries:
    """n training series with one or two components, frequencies uniform on 0..24 Hz."""
    if n < 1:
        raise InputError(f"n must be at least 1 series, got {n}")
    rng = np.random.default_rng(seed)
    two = rng.integers(1, 2, n, endpoint=True) == 2
    frequencies = rng.integers(0, HIGHEST, (n, 2), endpoint=True)
    frequencies[~two, 1] = -1
    return _series(rng, frequencies, kind, amplitude, random_phase, noise)


def single_frequencies(
    per_frequency: int = 200,
    *,
    seed: int = 1,
    kind: Waveform = "sine",
    amplitude: tuple[float, float] = (0.5, 1.0),
    random_phase: bool = False,
    noise: float = NOISE_STD,
) -> FrequencySeries:
    """Figure 3: `per_frequency` series of each of 0..24 Hz, in that order."""
    if per_frequency < 1:
        raise InputError(f"per_frequency must be at least 1 series, got {per_frequency}")
    first = np.repeat(np.arange(HIGHEST + 1), per_frequency)
    frequencies = np.stack([first, np.full_like(first, -1)], axis=1)
    return _series(np.random.default_rng(seed), frequencies, kind, amplitude, random_phase, noise)


def two_frequencies(
    per_pair: int = 20,
    *,
    seed: int = 2,
    kind: Waveform = "sine",
    amplitude: tuple[float, float] = (0.5, 1.0),
    random_phase: bool = False,
    noise: float = NOISE_STD,
) -> FrequencySeries:
    """Figure 4: `per_pair` series of each of the 300 pairs f1 < f2 of 0..24 Hz. The paper does not state how many."""
    if per_pair < 1:
        raise InputError(f"per_pair must be at least 1 series, got {per_pair}")
    pairs = np.stack(np.triu_indices(HIGHEST + 1, k=1), axis=1)
    frequencies = np.repeat(pairs, per_pair, axis=0)
    return _series(np.random.default_rng(seed), frequencies, kind, amplitude, random_phase, noise)


def _series(
    rng: np.random.Generator,
    frequencies: NDArray[np.int64],
    kind: Waveform,
    amplitude: tuple[float, float],
    random_phase: bool,
    noise: float,
) -> FrequencySeries:
    lowest, highest = amplitude
    if not (0 <= lowest <= highest and np.isfinite(highest)):
        raise InputError(f"amplitude is (lowest, highest) with 0 <= lowest <= highest, got {amplitude}")
    if not (np.isfinite(noise) and noise >= 0):
        raise InputError(f"noise is a standard deviation and must be finite and >= 0, got {noise}")
    n = len(frequencies)
    times = np.linspace(0, 1, POINTS)
    size = rng.uniform(lowest, highest, (n, 2)) * (frequencies >= 0)
    phase = rng.random((n, 2)) if random_phase else np.zeros((n, 2))
    clean = np.zeros((n, POINTS))
    for component in range(2):
        cycles = frequencies[:, component, None] * times + phase[:, component, None]
        clean += size[:, component, None] * waveform(cycles, kind)
    noisy = clean + noise * rng.standard_normal((n, POINTS))
    seen = rng.random((n, POINTS)).argsort(axis=1).argsort(axis=1) < SEEN
    return FrequencySeries(times, noisy, clean, frequencies, seen)


def signal_to_noise(series: FrequencySeries, noise: float = NOISE_STD) -> float:
    """Mean over series of the mean square of the clean signal over the noise's variance; the paper prints 43.1."""
    if noise <= 0:
        raise InputError(f"noise is a standard deviation and must be > 0 here, got {noise}")
    return float((series.clean**2).mean() / noise**2)


def full(predicted: ArrayLike, series: FrequencySeries) -> NDArray[np.float64]:
    """Whole series [S, 100]: the seen noisy values, and `predicted` [S, 50] at the hidden points, in order of time."""
    predicted = np.asarray(predicted, np.float64)
    wanted = (len(series.seen), POINTS - SEEN)
    if predicted.shape != wanted:
        raise InputError(f"predicted must have shape {wanted} (series, hidden points), got {predicted.shape}")
    values = series.noisy.copy()
    values[~series.seen] = predicted.ravel()
    return values


def hidden(values: ArrayLike, series: FrequencySeries) -> NDArray[np.float64]:
    """The values [S, 50] of `values` [S, 100] at the hidden points, in order of time."""
    values = np.asarray(values)
    if values.shape != series.seen.shape:
        raise InputError(f"values must have shape {series.seen.shape}, got {values.shape}")
    return values[~series.seen].reshape(len(values), POINTS - SEEN)


def amplitude_spectrum(values: ArrayLike) -> NDArray[np.float64]:
    """|FFT| along the last axis, as amplitudes: a sine of amplitude A with whole periods gives A in its bin.

    [..., n] -> [..., n // 2 + 1]. Bin k holds k periods in n samples, so k (n - 1) / n Hz on linspace(0, 1, n).
    """
    values = np.asarray(values, np.float64)
    n = values.shape[-1]
    spectrum = 2 * np.abs(np.fft.rfft(values)) / n
    spectrum[..., 0] /= 2
    if n % 2 == 0:
        spectrum[..., -1] /= 2
    return spectrum


def time_error(predicted: ArrayLike, targets: ArrayLike) -> NDArray[np.float64]:
    """Mean squared error of each series in the time domain, [S]; both [S, points]."""
    predicted, targets = _pair(predicted, targets)
    return ((predicted - targets) ** 2).mean(axis=-1)


def fft_error(predicted: ArrayLike, targets: ArrayLike) -> NDArray[np.float64]:
    """Mean squared error of each series between `amplitude_spectrum`s, [S]; both [S, points].

    Amplitudes, not complex coefficients: by Parseval's theorem the latter would repeat `time_error` in another unit.
    """
    predicted, targets = _pair(predicted, targets)
    return ((amplitude_spectrum(predicted) - amplitude_spectrum(targets)) ** 2).mean(axis=-1)


def _pair(predicted: ArrayLike, targets: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    predicted, targets = np.asarray(predicted, np.float64), np.asarray(targets, np.float64)
    if predicted.shape != targets.shape or predicted.ndim != 2:
        raise InputError(
            f"predicted {predicted.shape} and targets {targets.shape} must have equal shapes [series, points]"
        )
    return predicted, targets
