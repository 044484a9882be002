"""Sums of one or two waves of 0 to 24 Hz at 100 points, half of them hidden, and the best prediction there is.

Appendix B.4 of arXiv:2505.20535 (Figures 3-5), which has no public code: y(t) = sum over one or two components of
A w(f t) plus noise, f integer and uniform on 0..24 Hz, t in [0, 1] seconds. What the paper leaves open, and our
reading of it, is in results/notes/frequency.md.

Random streams: `default_rng(seed)`; in this order the number of components, two frequencies, two amplitudes, noise,
ranks of the points; every draw is made for all series at once.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rotarymae.errors import choose
from rotarymae_experiments.data.shared import Posterior, draw_seen

Waveform = Literal["sine", "square", "cycloid"]

POINTS = 100
SEEN = 50
HIGHEST = 24
NOISE_STD = 0.1
AMPLITUDE = (0.5, 1.0)  # lowest and highest


@dataclass(frozen=True)
class FrequencySeries:
    """S series of 100 points at the same times.

    Attributes:
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
    """Return the height, from -1 to 1, of a wave of period 1 at `cycles` (frequency times time), in their shape.

    The kinds are "sine", sin(2 pi c); "square", +1 in the first half of a period and -1 in the second; and "cycloid",
    the height of a point on a rolling wheel, -cos(u) with u - sin(u) = 2 pi c, which touches the ground, -1, at c = 0
    and has mean 1/2. Raises InputError for another kind.
    """
    choose("kind", kind, get_args(Waveform))
    cycles = np.asarray(cycles, np.float64)
    if kind == "sine":
        return np.sin(2 * np.pi * cycles)
    if kind == "square":
        return np.where(cycles % 1 < 0.5, 1.0, -1.0)
    # Kepler's equation at eccentricity 1; a table evenly spaced in u is finest where the cusp needs it.
    rolled = np.linspace(0, 2 * np.pi, 4097)
    return np.interp(cycles % 1, (rolled - np.sin(rolled)) / (2 * np.pi), -np.cos(rolled))


def generate(n: int = 10_000, *, seed: int = 0, kind: Waveform = "sine", noise: float = NOISE_STD) -> FrequencySeries:
    """Draw n training series with one or two components, frequencies uniform on 0..24 Hz.

    `noise` is the standard deviation of the noise, `seed` that of all draws, and `kind` as in `waveform`.
    """
    rng = np.random.default_rng(seed)
    two = rng.integers(1, 2, n, endpoint=True) == 2
    frequencies = rng.integers(0, HIGHEST, (n, 2), endpoint=True)
    frequencies[~two, 1] = -1
    return _series(rng, frequencies, kind, noise)


def single_frequencies(per_frequency: int = 200, *, seed: int = 1, kind: Waveform = "sine") -> FrequencySeries:
    """Draw the series of Figure 3, with one component: `per_frequency` series of each of 0..24 Hz, in that order."""
    first = np.repeat(np.arange(HIGHEST + 1), per_frequency)
    frequencies = np.stack([first, np.full_like(first, -1)], axis=1)
    return _series(np.random.default_rng(seed), frequencies, kind)


def two_frequencies(per_pair: int = 20, *, seed: int = 2, kind: Waveform = "sine") -> FrequencySeries:
    """Draw the series of Figure 4, with two components: `per_pair` series of each of the 300 pairs f1 < f2 of 0..24 Hz.

    The paper does not state how many.
    """
    pairs = np.stack(np.triu_indices(HIGHEST + 1, k=1), axis=1)
    return _series(np.random.default_rng(seed), np.repeat(pairs, per_pair, axis=0), kind)


def _series(
    rng: np.random.Generator, frequencies: NDArray[np.int64], kind: Waveform, noise: float = NOISE_STD
) -> FrequencySeries:
    """Draw n noisy sums of two waves, with `SEEN` of their `POINTS` values seen.

    `frequencies` [n, 2] are in Hz, -1 for no second wave; `noise` is the standard deviation of the noise.
    """
    n, times = len(frequencies), np.linspace(0, 1, POINTS)
    size = rng.uniform(*AMPLITUDE, (n, 2)) * (frequencies >= 0)
    clean = np.zeros((n, POINTS))
    for component in range(2):
        clean += size[:, component, None] * waveform(frequencies[:, component, None] * times, kind)
    noisy = clean + noise * rng.standard_normal((n, POINTS))
    return FrequencySeries(times, noisy, clean, frequencies, draw_seen(rng, n, POINTS, SEEN))


def posterior(series: FrequencySeries, kind: Waveform = "sine", noise: float = NOISE_STD) -> Posterior:
    """Return mean and standard deviation of a measurement at every point, given those seen: the best answer there is.

    At a hidden point that is its noisy value; at a seen one it is what a second, independent measurement would give.
    Hidden values and `frequencies` are not looked at. The prior is that of `generate` with this `kind` and `noise`: one
    component (probability 1/2) or two, each frequency uniform on 0..24 Hz.

    Exact but for one thing: the uniform prior of an amplitude is replaced by a normal of the same mean and variance, so
    that everything is in closed form once the frequencies are given. The difference is small: 50 points determine an
    amplitude to about 0.02, a seventh of the prior's standard deviation, so that it matters only at the interval's
    ends. The mean squared error is 0.3 % above that of the uniform prior (7 % above it against the clean curve).

    With A = m + d z, z ~ N(0, 1), and the seen rows H of the waveforms of a hypothesis: the precision of z is
    P = I + d^2 H'H / s^2, its mean P^-1 b with b = d H'(y - H m) / s^2, and the log evidence is, up to a constant,
    (b' P^-1 b - |y - H m|^2 / s^2 - log det P) / 2. All of it needs only the 25 x 25 products H'H and the 25 H'y.
    """
    (lowest, highest), noisy, seen = AMPLITUDE, series.noisy, series.seen
    values = np.where(seen, noisy, 0.0)
    waves = waveform(np.arange(HIGHEST + 1)[:, None] * series.times, kind)
    products = (waves[:, None] * waves[None, :]).reshape(-1, POINTS).T
    middle, spread = (lowest + highest) / 2, (highest - lowest) / 12**0.5
    mean, variance = np.empty_like(noisy), np.empty_like(noisy)
    for start in range(0, len(noisy), 256):
        part = slice(start, start + 256)
        gram = (seen[part].astype(np.float64) @ products).reshape(-1, HIGHEST + 1, HIGHEST + 1)
        first, second = _coefficients(gram, values[part] @ waves.T, middle, spread, noise)
        mean[part] = first @ waves
        variance[part] = ((second @ waves) * waves).sum(axis=1) - mean[part] ** 2
    return Posterior(mean, np.sqrt(np.maximum(variance, 0) + noise**2))


def _coefficients(
    gram: NDArray[np.float64], dot: NDArray[np.float64], middle: float, spread: float, noise: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the posterior first [S, 25] and second [S, 25, 25] moments of the amplitude of each frequency.

    Args:
        gram: [S, 25, 25], products of the waveforms with each other, summed over seen points.
        dot: [S, 25], products of waveforms and values, likewise.
        middle, spread: mean and standard deviation of the prior of an amplitude.
        noise: standard deviation of the noise.
    """
    k = (spread / noise) ** 2
    diagonal = np.einsum("sii->si", gram)

    # One component, [S, 25].
    b = spread / noise**2 * (dot - middle * diagonal)
    precision = 1 + k * diagonal
    fit = (2 * middle * dot - middle**2 * diagonal) / noise**2
    log_one = 0.5 * (b**2 / precision + fit - np.log(precision)) - np.log(2 * len(gram[0]))
    size = middle + spread * b / precision
    square = spread**2 / precision + size**2

    # Two, [S, 25, 25]; what belongs to the second of a pair is the transpose of what belongs to the first.
    p1, p12 = precision[:, :, None], k * gram
    p2 = precision[:, None, :]
    determinant = p1 * p2 - p12**2
    b1 = b[:, :, None] - spread / noise**2 * middle * gram
    b2 = b1.swapaxes(1, 2)
    z1 = (p2 * b1 - p12 * b2) / determinant
    size1 = middle + spread * z1
    fit2 = fit[:, :, None] + fit[:, None, :] - 2 * (middle / noise) ** 2 * gram
    log_two = 0.5 * (b1 * z1 + b2 * z1.swapaxes(1, 2) + fit2 - np.log(determinant)) - np.log(2 * len(gram[0]) ** 2)
    square1 = spread**2 * p2 / determinant + size1**2
    cross = size1 * size1.swapaxes(1, 2) - spread**2 * p12 / determinant

    top = np.maximum(log_one.max(axis=1), log_two.max(axis=(1, 2)))
    one, two = np.exp(log_one - top[:, None]), np.exp(log_two - top[:, None, None])
    total = one.sum(axis=1) + two.sum(axis=(1, 2))
    one, two = one / total[:, None], two / total[:, None, None]
    first = one * size + 2 * (two * size1).sum(axis=2)
    second = 2 * two * cross
    np.einsum("sii->si", second)[:] += one * square + 2 * (two * square1).sum(axis=2)
    return first, second


def hidden(values: ArrayLike, series: FrequencySeries) -> NDArray[np.float64]:
    """Return the numbers [S, 50] of `values` [S, 100] at the hidden points of `series`, in order of time."""
    return np.asarray(values)[~series.seen].reshape(-1, POINTS - SEEN)


def amplitude_spectrum(values: ArrayLike) -> NDArray[np.float64]:
    """Return the absolute Fourier transform along the last axis, as amplitudes: [..., n] becomes [..., n // 2 + 1].

    A sine of amplitude A with whole periods gives A in its bin. Bin k is for k periods in n samples, which are
    k (n - 1) / n Hz on linspace(0, 1, n).
    """
    values = np.asarray(values, np.float64)
    n = values.shape[-1]
    spectrum = 2 * np.abs(np.fft.rfft(values)) / n
    spectrum[..., 0] /= 2
    if n % 2 == 0:
        spectrum[..., -1] /= 2
    return spectrum


def time_error(predicted: NDArray[np.float64], targets: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean squared error of each series, [S]; both arguments are [S, points]."""
    return ((predicted - targets) ** 2).mean(axis=-1)


def fft_error(predicted: NDArray[np.float64], targets: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean squared error of each series' amplitude spectrum, [S]; both arguments are series [S, points].

    Amplitudes are compared, not complex coefficients: by Parseval's theorem the latter would repeat `time_error` in
    another unit.
    """
    return time_error(amplitude_spectrum(predicted), amplitude_spectrum(targets))
