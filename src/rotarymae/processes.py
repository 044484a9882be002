"""A bank of Gaussian processes: some seventy kernels answer for each channel of a series, weighed by their evidence.

No hyperparameter is optimised. Each channel's squared amplitude is integrated out (inverse-gamma prior), each kernel
of a fixed grid of shapes and noise levels is weighed by the marginal likelihood of the observations (Rasmussen &
Williams 2006, sections 2.7 and 5.2) to the power `TEMPER`, and the best `KEPT_KERNELS` answer. The power is below 1
because no real series is a draw of one of these kernels: the evidence alone is too sure of the least wrong one
(Grünwald & van Ommen 2017, https://doi.org/10.1214/17-BA1085). Each kernel contains an unknown mean and slope. Two
periods of each channel are read off a periodogram. Channels that are alike are answered together: a second bank
multiplies the best shapes by the channels' correlation.

Letters: U channels of a batch, n observations, m queries, k kernels that are kept, S = 20 shapes, R rows (series) with
C channels. All is float64 and without gradients.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

KEPT_KERNELS = 10
TEMPER = 0.3
MEAN_VARIANCE = 0.2  # of a channel's unknown mean, in units of the amplitude
SLOPE = 0.2  # variance of its unknown change over half of the observed span, likewise
FARTHEST = 1.5  # half spans from the middle of the observations, beyond which the slope adds nothing
PRIOR_COUNT, PRIOR_SCALE = 1.0, 0.5  # of the inverse-gamma prior of the squared amplitude; values have a spread of 1
JITTER = 1e-8
NOISES = (1e-3, 0.03, 0.25, 1.5)  # variances, in units of the amplitude
PERIODIC_NOISES = (0.003, 0.1)
# The parts of each shape: kind, length in units of position, share of the amplitude.
BANK_SHAPES: tuple[tuple[tuple[str, float, float], ...], ...] = (
    (("exponential", 4.0, 1.0),),
    (("exponential", 30.0, 1.0),),
    (("square", 1.5, 0.1), ("exponential", 60.0, 0.9)),
    (("matern", 4.0, 0.15), ("exponential", 100.0, 0.85)),
    (("matern", 1.0, 1.0),),
    (("matern", 3.0, 1.0),),
    (("matern", 10.0, 1.0),),
    (("matern", 40.0, 1.0),),
    (("square", 1.2, 1.0),),
    (("square", 2.5, 1.0),),
    (("square", 6.0, 1.0),),
    (("square", 18.0, 1.0),),
    (("matern", 1.5, 0.3), ("square", 15.0, 0.7)),
    (("matern", 4.0, 0.1), ("square", 30.0, 0.9)),
)
PERIODIC = ((1.4, 12.0), (0.6, 12.0), (1.0, 3.0))  # roughness within a period, and the periods a shape lasts
PERIODS = 2
PERIOD_PENALTY = -4.0  # log prior odds of a period, which was chosen among many
FASTEST = 0.5  # cycles per unit of position
MAX_FREQUENCIES = 400
NUMBERS_PER_PASS = 1 << 21  # numbers in the matrices of one pass: what a processor's cache holds
JOINT_SHAPES = 3
SHRINK = (0.6, 0.95)  # shares of the estimated correlation between channels that are tried
# Observations and channels of a row that are answered together: of forty channels, as in intensive care, most
# correlations are chance, and hidden rows of PhysioNet 2012 are answered worse (0.415 than 0.406).
MAX_JOINT, MAX_JOINT_CHANNELS = 320, 12
DESCRIPTORS = 7


class Answer(NamedTuple):
    """Predictions by Gaussian processes, one number per query in each field.

    Attributes:
        mean: of an observation, and of the curve without noise.
        log_std: natural logarithm of the standard deviation of an observation, noise included.
        curve_log_std: natural logarithm of the standard deviation of the curve without noise.
        kernel_spread: standard deviation of the means that single kernels predict, as a share of exp(log_std).
    """

    mean: Float[Tensor, "*shape"]
    log_std: Float[Tensor, "*shape"]
    curve_log_std: Float[Tensor, "*shape"]
    kernel_spread: Float[Tensor, "*shape"]


class Fitted(NamedTuple):
    """Gaussian processes fitted to U channels of n observations; only the k most probable kernels are stored.

    A kernel is one of S = 20 shapes with a noise variance.

    Attributes:
        times: of the observations.
        real: False behind a channel's last observation.
        index: number of each stored kernel's shape, from 0.
        periods: two of each channel, for its periodic shapes.
        weight: probability of each stored kernel; they add up to 1.
        amplitude: squared amplitude of each stored kernel.
        level: noise variance of each stored kernel, divided by the squared amplitude.
        alpha: `inverse` times the observed values.
        inverse: inverse covariance matrix of the observations, noise included, for a squared amplitude of 1.
        noise: variance of the noise of each observation, in the units of the values squared.
        log_evidence: logarithm of the marginal likelihood of the observations, averaged over all kernels, where those
            of periodic ones are multiplied by exp(`PERIOD_PENALTY`).
        tables: for each shape its weight among all kernels, its mean squared amplitude and its mean noise variance.
    """

    times: Float[Tensor, "U n"]
    real: Bool[Tensor, "U n"]
    index: Int[Tensor, "U k"]
    periods: Float[Tensor, "U 2"]
    weight: Float[Tensor, "U k"]
    amplitude: Float[Tensor, "U k"]
    level: Float[Tensor, "U k"]
    alpha: Float[Tensor, "U k n"]
    inverse: Float[Tensor, "U k n n"]
    noise: Float[Tensor, "U k n"]
    log_evidence: Float[Tensor, " U"]
    tables: Float[Tensor, "U S 3"]

    @property
    def scale(self) -> Float[Tensor, "U k 1"]:
        """Squared amplitudes of the k kernels kept per channel: factors of covariances of unit amplitude, [U, k, 1]."""
        return self.amplitude[..., None]


def _descriptors() -> Float[Tensor, "kernels 6"]:
    """Return six numbers that describe each kernel of the bank, as a float32 table with a row per kernel.

    Averages of the rows, weighted by how well the kernels fit, describe a channel to the network. A kernel that is not
    periodic is a sum of parts of the kinds "exponential", "matern" and "square", each with a length and a share of the
    variance. The columns of the table are
    - 0: log(noise variance) / 3, where the variance of the kernel itself is 1;
    - 1: half the mean log length of the parts, weighted by share; 0 for a periodic kernel;
    - 2 and 3: the share of "exponential" parts, and that of "square" parts; 0 for a periodic kernel;
    - 4: 1 for a periodic kernel, else 0;
    - 5: 1 for a periodic kernel that fades over 3 periods, else 0.
    """
    table = torch.zeros(BANK_SIZE, 5, dtype=torch.float64)
    for s, shape in enumerate(BANK_SHAPES):
        table[s, 0] = sum(share * math.log(length) for _, length, share in shape) / 2
        table[s, 1] = sum(share for kind, _, share in shape if kind == "exponential")
        table[s, 2] = sum(share for kind, _, share in shape if kind == "square")
    table[len(BANK_SHAPES) :, 3] = 1.0
    table[len(BANK_SHAPES) + 2 :: len(PERIODIC), 4] = 1.0
    return torch.cat([KERNEL_LEVEL[:, None].log() / 3, table[KERNEL_SHAPE]], 1).float()


BANK_SIZE = len(BANK_SHAPES) + PERIODS * len(PERIODIC)
# A kernel is a shape with a noise variance, in units of the amplitude.
_KERNELS = [(s, level) for s in range(BANK_SIZE) for level in (NOISES if s < len(BANK_SHAPES) else PERIODIC_NOISES)]
KERNEL_SHAPE = torch.tensor([s for s, _ in _KERNELS])
KERNEL_LEVEL = torch.tensor([level for _, level in _KERNELS], dtype=torch.float64)
KERNEL_PRIOR = PERIOD_PENALTY * (len(BANK_SHAPES) <= KERNEL_SHAPE).double()
KERNEL_DESCRIPTORS = _descriptors()


def fit_kernels(
    times: Float[Tensor, "U n"], values: Float[Tensor, "U n"], real: Bool[Tensor, "U n"], noise: Float[Tensor, "U n"]
) -> tuple[Fitted, Float[Tensor, "U D"]]:
    """Fit Gaussian processes to the n observations of U channels, one per kernel of a fixed bank, and weigh them.

    The weight of a kernel is proportional to L^0.3 (`TEMPER`), where L is the marginal likelihood of the observations.
    For a periodic kernel, L is multiplied by exp(`PERIOD_PENALTY`) before.

    Args:
        times: divided by the median gap between observations, so that gaps are about 1; float64.
        values: with a location near 0 and a spread near 1; float64.
        real: False at padding, which follows a channel's last observation.
        noise: noise variance of each observation, divided by the channel's mean noise variance; 1 where unknown.

    Returns:
        The fitted processes; and D = 7 float32 numbers that describe each channel, all averages with the kernels'
        weights. Six are the columns of `KERNEL_DESCRIPTORS`, averaged over all kernels. The last is the log squared
        amplitude, averaged over the kernels that the processes keep.
    """
    values = values * real
    periods = find_periods(times, values, real)
    size = max(1, NUMBERS_PER_PASS // (len(KERNEL_LEVEL) * times.shape[1] ** 2))
    columns = zip(*(part.split(size) for part in (times, values, real, noise, periods)), strict=True)
    parts = [_fit(*chunk) for chunk in columns]
    fitted = Fitted(*(torch.cat([part[i] for part, _ in parts]) for i in range(len(Fitted._fields))))
    return fitted, torch.cat([hyperparameters for _, hyperparameters in parts])


def _fit(
    times: Float[Tensor, "U n"],
    values: Float[Tensor, "U n"],
    real: Bool[Tensor, "U n"],
    noise: Float[Tensor, "U n"],
    periods: Float[Tensor, "U 2"],
) -> tuple[Fitted, Float[Tensor, "U D"]]:
    """Fit a Gaussian process per kernel to each of U channels, and weigh the kernels, for `fit_kernels`.

    The caller passes so few channels that their matrices fit into a processor's cache.

    Args:
        times, values, noise: n observations of each channel, scaled as for `fit_kernels`; values are 0 at padding.
        real: False at padding.
        periods: two of each channel, from `find_periods`.

    Returns:
        The fitted processes; and D = 7 float32 numbers per channel, averages with the kernels' weights: the six columns
        of `KERNEL_DESCRIPTORS`, then the log squared amplitude of the kernels that are kept.
    """
    n = times.shape[1]
    both = (real[:, :, None] & real[:, None, :]).double()
    distance = (times[:, :, None] - times[:, None, :]).abs() * both
    share = share_of_span(times, times, real)
    trend = MEAN_VARIANCE + SLOPE * share[:, :, None] * share[:, None, :]
    kernel = (shapes(distance, periods) + trend[:, None]) * both[:, None]
    levels = KERNEL_LEVEL[:, None] * noise[:, None]
    factor, log_root, squares, _ = _factorise(kernel[:, KERNEL_SHAPE], levels, real, values)
    # The evidence with the amplitude integrated out is a multivariate Student t.
    count = real.sum(1, keepdim=True).double()
    a, b = PRIOR_COUNT + count / 2, PRIOR_SCALE + squares / 2
    log_evidence = -log_root - a * b.log() - count / 2 * math.log(2 * math.pi)
    log_evidence = log_evidence + torch.lgamma(a) - math.lgamma(PRIOR_COUNT) + PRIOR_COUNT * math.log(PRIOR_SCALE)
    log_evidence = log_evidence + KERNEL_PRIOR
    weight = (TEMPER * log_evidence).softmax(1)
    amplitude = b / (a - 0.5)
    kept, index = weight.topk(KEPT_KERNELS, 1)
    kept = kept / kept.sum(1, keepdim=True)
    inverse = torch.cholesky_inverse(factor.gather(1, index[:, :, None, None].expand(-1, -1, n, n)))
    alpha = (inverse @ values[:, None, :, None])[..., 0]
    chosen = amplitude.gather(1, index)
    scale = (kept * chosen.log()).sum(1, keepdim=True)
    hyperparameters = torch.cat([weight.float() @ KERNEL_DESCRIPTORS, scale.float()], 1)
    total = log_evidence.logsumexp(1) - math.log(len(KERNEL_LEVEL))
    tables = _by_shape(weight, amplitude)
    level = KERNEL_LEVEL[index]
    noises = (level * chosen)[..., None] * noise[:, None]
    kernels = (KERNEL_SHAPE[index], periods, kept, chosen, level, alpha, inverse, noises, total, tables)
    return Fitted(times, real, *kernels), hyperparameters


def _factorise(
    matrix: Float[Tensor, "U k n n"],
    noise: Float[Tensor, "U k n"],
    real: Bool[Tensor, "U n"],
    values: Float[Tensor, "U n"],
) -> tuple[Float[Tensor, "U k n n"], Float[Tensor, "U k"], Float[Tensor, "U k"], Int[Tensor, "U k"]]:
    """Add noise to k covariance matrices per channel, in place, and compute their Cholesky factors.

    Args:
        matrix: covariances of n observations for each of U channels, without noise; 0 in rows and columns of padding.
        noise: variances to add to the diagonal, with 1e-8 more.
        real: False at padding, where 1 is added instead.
        values: the observations v.

    Returns:
        Four tensors: the lower Cholesky factors; half the log determinants; v' K^-1 v for each matrix K; and an integer
        that is 0 where the factorisation succeeded.
    """
    # A row of padding is one of the identity: it changes no determinant and no product.
    matrix.diagonal(dim1=2, dim2=3).add_(torch.where(real[:, None], noise + JITTER, 1.0))
    factor, failed = torch.linalg.cholesky_ex(matrix)
    right = values[:, None, :, None].expand(-1, matrix.shape[1], -1, 1)
    squares = torch.linalg.solve_triangular(factor, right, upper=False).square().sum((2, 3))
    return factor, factor.diagonal(dim1=2, dim2=3).log().sum(-1), squares, failed


def _by_shape(weight: Float[Tensor, "U kernels"], amplitude: Float[Tensor, "U kernels"]) -> Float[Tensor, "U S 3"]:
    """Sum the weights, and average the amplitudes and noises, of all kernels that have the same shape.

    A kernel of the bank is one of S = 20 shapes with one of several noise variances.

    Args:
        weight: of each kernel, for U channels; their sum over kernels is 1.
        amplitude: squared amplitude of each kernel.

    Returns:
        Three numbers for each shape: the sum of its kernels' weights; and, weighted by these, the mean squared
        amplitude and the mean noise variance.
    """
    weight, owner = weight.clamp(min=1e-30), KERNEL_SHAPE.expand_as(weight)
    share, *sums = (
        torch.zeros(len(weight), BANK_SIZE, dtype=torch.float64).scatter_add(1, owner, part)
        for part in (weight, weight * amplitude, weight * amplitude * KERNEL_LEVEL)
    )
    return torch.stack([share, *(total / share for total in sums)], 2)


def shapes(distance: Float[Tensor, "U a b"], periods: Float[Tensor, "U 2"]) -> Float[Tensor, "U S a b"]:
    """Return the correlation of two values some time apart under each of the S = 20 shapes of kernels; 1 at distance 0.

    A shape is a function of the distance, with fixed lengths. The last six are periodic, and fade over 3 or 12 periods:
    three have the first period, three the second.

    Args:
        distance: time between each of a values and each of b values, for U channels, at least 0, in units of the
            channel's median gap.
        periods: two of each channel, in the same unit.
    """
    parts = {}
    for kind, length in {(kind, length) for shape in BANK_SHAPES for kind, length, _ in shape}:
        r = distance / length
        if kind == "exponential":
            parts[kind, length] = (-r).exp()
        elif kind == "matern":  # 3/2
            parts[kind, length] = (1 + math.sqrt(3) * r) * (-math.sqrt(3) * r).exp()
        else:
            parts[kind, length] = (-0.5 * r * r).exp()
    every: list[Any] = [sum(share * parts[kind, length] for kind, length, share in shape) for shape in BANK_SHAPES]
    for p in range(PERIODS):
        cycles = distance / periods[:, p, None, None]
        wave = (cycles * math.pi).sin().square()
        every += [(-2 / rough**2 * wave - 0.5 * (cycles / lasting).square()).exp() for rough, lasting in PERIODIC]
    return torch.stack(every, 1)


def chosen_shapes(
    distance: Float[Tensor, "U a b"], periods: Float[Tensor, "U 2"], index: Int[Tensor, "U k"]
) -> Float[Tensor, "U k a b"]:
    """Return the correlation of two values by their distance in time, for k chosen shapes per channel; 1 at distance 0.

    A shape is one of the functions of distance in `shapes`.

    Args:
        distance: time between each of a values and each of b values, for U channels, at least 0.
        periods: two of each channel, for the periodic shapes.
        index: numbers of the chosen shapes, from 0, in the order of `shapes`.
    """
    every = shapes(distance, periods)
    return every.gather(1, index[:, :, None, None].expand(-1, -1, *every.shape[2:]))


def share_of_span(
    times: Float[Tensor, "U m"], observed: Float[Tensor, "U n"], real: Bool[Tensor, "U n"]
) -> Float[Tensor, "U m"]:
    """Rescale times linearly so that a channel's first observation is at -1 and its last at 1.

    Times beyond these get numbers up to ±`FARTHEST` (1.5), where the scale ends. If a channel has a single observation,
    its time becomes 0, and other times become ±1.5.

    Args:
        times: m times for each of U channels.
        observed: times of n observations of each channel.
        real: False where there is no observation.
    """
    first = observed.masked_fill(~real, torch.inf).amin(1, keepdim=True)
    last = observed.masked_fill(~real, -torch.inf).amax(1, keepdim=True)
    return ((2 * times - first - last) / (last - first).clamp(min=1e-9)).clamp(-FARTHEST, FARTHEST)


def find_periods(
    times: Float[Tensor, "U n"], values: Float[Tensor, "U n"], real: Bool[Tensor, "U n"]
) -> Float[Tensor, "U 2"]:
    """Return for each of U channels the periods of two sine waves that explain the most variance (a periodogram).

    Periods are in units of `times`; the one that explains more comes first. A straight line is subtracted before the
    search, which tries frequencies from 0.8 / span to `FASTEST` (0.5 cycles per unit of time). If 0.8 / span is above
    `FASTEST`, it alone is tried. The span is the time from the first to the last observation, but at least 1. The
    second frequency is at least 1.2 / span from the first; if no frequency is so far away, it is 0.8 / span.

    Args:
        times: of n observations of each channel, float64.
        values: observed at these times.
        real: False at padding, which follows a channel's last observation.
    """
    n, w = real.sum(1, keepdim=True).clamp(min=1), real.double()
    last = times.masked_fill(~real, -torch.inf).amax(1, keepdim=True)
    span = (last - times.masked_fill(~real, torch.inf).amin(1, keepdim=True)).clamp(min=1.0)
    lowest = 0.8 / span
    # Four frequencies for each observation, so that a channel's grid does not depend on the others'.
    steps = (4 * n + 8).clamp(max=MAX_FREQUENCIES)
    number = torch.arange(int(steps.max()), dtype=torch.float64).expand(len(times), -1)
    frequency = lowest + (FASTEST - lowest).clamp(min=0) * (number / (steps - 1)).clamp(max=1)
    t = times - (times * w).sum(1, keepdim=True) / n
    y = values - (values * w).sum(1, keepdim=True) / n
    slope = (t * y * w).sum(1, keepdim=True) / (t * t * w).sum(1, keepdim=True).clamp(min=1e-9)
    y = ((y - slope * t) * w)[:, None]
    phase = 2 * math.pi * frequency[:, :, None] * t[:, None]

    def centred(wave: Tensor) -> Tensor:
        """Subtract from a wave at the n observations of U channels its mean over them; return 0 at padding."""
        return (wave - (wave * w[:, None]).sum(-1, keepdim=True) / n[..., None]) * w[:, None]

    c, s = centred(phase.cos()), centred(phase.sin())
    cc, ss, cs = (c * c).sum(-1) + 1e-6, (s * s).sum(-1) + 1e-6, (c * s).sum(-1)
    yc, ys = (c * y).sum(-1), (s * y).sum(-1)
    power = (yc * yc * ss + ys * ys * cc - 2 * yc * ys * cs) / (cc * ss - cs * cs).clamp(min=1e-6)
    power = torch.where(number < steps, power, -1.0)
    first = frequency.gather(1, power.argmax(1, keepdim=True))
    away = (frequency - first).abs() >= 1.2 / span
    second = frequency.gather(1, torch.where(away, power, -1.0).argmax(1, keepdim=True))
    return 1 / torch.cat([first, second], 1)


def answer(fitted: Fitted | Joint, times: Float[Tensor, "U m"], channels: Int[Tensor, "U m"] | None = None) -> Answer:
    """Predict observations at m times for each of U rows, by Gaussian processes that were fitted to these rows.

    All fields of the result are [U, m], see `Answer`: the mean, log standard deviations (natural logarithms) with and
    without noise, and how far single kernels differ. The noise of a predicted observation is the mean noise of its
    channel.

    Args:
        fitted: processes of U single channels (`Fitted`), or of all channels of U series together (`Joint`).
        times: at which to predict, in the units of those to which the processes were fitted.
        channels: number of each time's channel, from 0, for `Joint`; None for `Fitted`.
    """
    distance = (fitted.times[:, :, None] - times[:, None, :]).abs()
    observed, asked = (share_of_span(part, fitted.times, fitted.real) for part in (fitted.times, times))
    slope = SLOPE * observed[:, :, None] * asked[:, None, :]
    prior = 1 + MEAN_VARIANCE + SLOPE * asked.square()[:, None]
    if isinstance(fitted, Joint):
        assert channels is not None, "a row of several channels is asked by channel"
        parts = fitted.channels, channels, fitted.index, fitted.periods, fitted.amplitude, fitted.correlation
        cross = _coupled(distance, slope, *parts)
        prior, noise = prior * _of_channels(fitted.amplitude, channels), _of_channels(fitted.level, channels)
    else:
        cross = chosen_shapes(distance, fitted.periods, fitted.index) + (MEAN_VARIANCE + slope)[:, None]
        noise = fitted.level[..., None] * fitted.scale
    cross = cross * fitted.real[:, None, :, None]
    mean = (cross * fitted.alpha[..., None]).sum(2)
    explained = ((fitted.inverse @ cross) * cross).sum(2)
    curve = (prior - explained).clamp(min=1e-9) * fitted.scale
    return _mixture(fitted.weight, mean, curve + noise, curve)


def leave_one_out(fitted: Fitted | Joint, values: Float[Tensor, "U n"]) -> Answer:
    """Predict each observation of a row from the others of the row, by equation 5.12 of Rasmussen & Williams 2006.

    Args:
        fitted: Gaussian processes of U single channels (`Fitted`), or of all channels of U series together (`Joint`).
        values: the n observations of each row to which the processes were fitted.

    Returns:
        Means and logarithms of standard deviations, each field [U, n]; at padding they have no meaning.
    """
    inner = fitted.inverse.diagonal(dim1=2, dim2=3).clamp(min=1e-12)
    mean, variance = values[:, None] - fitted.alpha / inner, fitted.scale / inner
    return _mixture(fitted.weight, mean, variance, (variance - fitted.noise).clamp(min=1e-9))


def _mixture(
    weight: Float[Tensor, "U k"],
    mean: Float[Tensor, "U k m"],
    variance: Float[Tensor, "U k m"],
    curve: Float[Tensor, "U k m"],
) -> Answer:
    """Combine the predictions of k kernels at m times in each of U rows into that of their mixture, with fields [U, m].

    Args:
        weight: of each kernel; they add up to 1.
        mean: predicted by each kernel.
        variance: of an observation, noise included, predicted by each kernel.
        curve: variance of the curve without noise, predicted by each kernel.
    """
    weight = weight[..., None]
    whole = (weight * mean).sum(1)
    between = (weight * (mean - whole[:, None]).square()).sum(1)
    total = (weight * variance).sum(1) + between
    known = ((weight * curve).sum(1) + between).clamp(min=1e-12)
    return Answer(whole, total.log() / 2, known.log() / 2, (between / total).sqrt())


# ── several channels ────────────────────────────────────────────────────────────────────────────────────────────────


class Joint(NamedTuple):
    """Gaussian processes fitted to R rows (series) of n observations in C channels, which share information.

    There are q = 6 kernels: each of 3 shapes with each of 2 correlation matrices, in the order (shape 1, matrix 1),
    (shape 1, matrix 2), (shape 2, matrix 1) and so on.

    Attributes:
        times, channels: of the observations of all channels of a row, in any order.
        real: False at padding.
        index: number of each of the 3 shapes, from 0.
        periods: of the periodic shapes.
        weight: probability of each kernel; they add up to 1.
        amplitude, level: squared amplitude and noise variance of each channel, with each shape.
        correlation: the 2 matrices of correlations between channels: as estimated, but multiplied by the two `SHRINK`.
        alpha: `inverse` times the observed values.
        inverse: inverse covariance matrix of the observations, noise included, in the units of the values.
        noise: variance of the noise of each observation.
        share: weight of this prediction against those of single channels, from 0 to 1.
    """

    times: Float[Tensor, "R n"]
    channels: Int[Tensor, "R n"]
    real: Bool[Tensor, "R n"]
    index: Int[Tensor, "R 3"]
    periods: Float[Tensor, "R 2"]
    weight: Float[Tensor, "R q"]
    amplitude: Float[Tensor, "R 3 C"]
    level: Float[Tensor, "R 3 C"]
    correlation: Float[Tensor, "R 2 C C"]
    alpha: Float[Tensor, "R q n"]
    inverse: Float[Tensor, "R q n n"]
    noise: Float[Tensor, "R q n"]
    share: Float[Tensor, " R"]

    scale = 1.0  # `inverse` has the amplitudes in it


def correlations(curves: Float[Tensor, "R C T"], trust: Float[Tensor, "R C T"]) -> Float[Tensor, "R C C"]:
    """Estimate the correlations between C channels of each of R series from their fitted curves at T common times.

    The matrices are made positive definite, with ones on the diagonal.

    Args:
        curves: predicted curve of each channel.
        trust: how well the curve is known at each time, from 0 to 1. For a pair of channels, the weight of a time is
            the product of their trusts. A channel with trust 0 at all times has the correlation 0 with all others.
    """
    mean = (curves * trust).sum(-1, keepdim=True) / trust.sum(-1, keepdim=True).clamp(min=1e-6)
    away = (curves - mean) * trust
    cross = torch.einsum("rct,rdt->rcd", away, away)
    square = torch.einsum("rct,rdt->rcd", (curves - mean).square() * trust, trust)
    estimate = cross / (square * square.mT).sqrt().clamp(min=1e-9)
    estimate.diagonal(dim1=1, dim2=2).fill_(1.0)
    values, vectors = torch.linalg.eigh((estimate + estimate.mT) / 2)
    estimate = (vectors * values.clamp(min=1e-6)[:, None]) @ vectors.mT
    size = estimate.diagonal(dim1=1, dim2=2).sqrt()
    return estimate / (size[:, :, None] * size[:, None, :])


def fit_joint(
    times: Float[Tensor, "R n"],
    channels: Int[Tensor, "R n"],
    values: Float[Tensor, "R n"],
    real: Bool[Tensor, "R n"],
    noise: Float[Tensor, "R n"],
    correlation: Float[Tensor, "R C C"],
    tables: Float[Tensor, "R C S 3"],
    present: Bool[Tensor, "R C"],
    periods: Float[Tensor, "R 2"],
    single_evidence: Float[Tensor, " R"],
) -> Joint:
    """Fit Gaussian processes to all C channels of each of R series together, so that channels inform each other.

    There are six kernels: each of three shapes with each of two matrices of correlations between channels. The shapes
    are the three of the S = 20 in `shapes` (functions of time) that fit the channels best. The matrices are
    `correlation` with its entries off the diagonal multiplied by 0.6, and the same with 0.95 (`SHRINK`).

    Args:
        times, channels, values: the n observations of each series; channels are numbers from 0.
        real: False at padding, where values are 0.
        noise: noise variance of each observation, divided by the mean noise variance of its channel.
        correlation: between channels, from `correlations`.
        tables: weight, mean squared amplitude and mean noise variance of each shape in each channel, from processes of
            single channels (`Fitted.tables`).
        present: True for channels that have observations.
        periods: two of each series, for the periodic shapes.
        single_evidence: log evidence of the processes of single channels, summed over channels.

    Returns:
        The fitted processes. Their field `share` is the weight of their predictions against those of single channels:
        close to 1 if their log evidence is far above `single_evidence`, close to 0 if it is far below. It is 0 for a
        series with fewer than two channels `present`.
    """
    score = (tables[..., 0].clamp(min=1e-4).log() * present[..., None]).sum(1)
    index = score.topk(JOINT_SHAPES, 1).indices
    take = index[:, None].expand(-1, tables.shape[1], -1)
    amplitude, level = (tables[..., i].gather(2, take).mT.contiguous() for i in (1, 2))
    eye = torch.eye(correlation.shape[1], dtype=torch.float64)
    shrunk = torch.stack([share * correlation + (1 - share) * eye for share in SHRINK], 1)
    both = (real[:, :, None] & real[:, None, :]).double()
    distance = (times[:, :, None] - times[:, None, :]).abs() * both
    share = share_of_span(times, times, real)
    slope = SLOPE * share[:, :, None] * share[:, None, :]
    kernel = _coupled(distance, slope, channels, channels, index, periods, amplitude, shrunk) * both[:, None]
    noises = _of_channels(level, channels) * noise[:, None]
    factor, log_root, squares, failed = _factorise(kernel, noises, real, values)
    count = real.sum(1, keepdim=True).double()
    evidence = -log_root - 0.5 * squares - count / 2 * math.log(2 * math.pi)
    evidence = torch.where(failed > 0, -torch.inf, evidence).nan_to_num(nan=-torch.inf)
    inverse = torch.cholesky_inverse(factor).nan_to_num()
    number = present.sum(1).double()
    # Correlations and amplitudes were fitted to the same values: half a nat for each channel.
    odds = evidence.logsumexp(1) - math.log(evidence.shape[1]) - single_evidence - 0.5 * number
    trust = (TEMPER * odds.nan_to_num(nan=-50.0, neginf=-50.0)).clamp(-50, 50).sigmoid() * (number > 1)
    weight, alpha = (TEMPER * evidence.clamp(min=-1e12)).softmax(1), (inverse @ values[:, None, :, None])[..., 0]
    kernels = (index, periods, weight, amplitude, level, shrunk, alpha, inverse, noises, trust)
    return Joint(times, channels, real, *kernels)


def mix(first: Answer, second: Answer, share: Float[Tensor, "*shape"]) -> Answer:
    """Combine two predictions for the same times into that of their mixture.

    Each variance of the result is the weighted mean of both variances, plus a part that grows with the distance of the
    two means. The spread of the predictions of single kernels, `kernel_spread`, grows likewise.

    Args:
        first, second: the predictions; all their fields have the same shape.
        share: weight of the second, from 0 to 1.
    """
    mean = (1 - share) * first.mean + share * second.mean
    apart = share * (1 - share) * (first.mean - second.mean).square()

    def mixed(a: Tensor, b: Tensor) -> Tensor:
        """Return the mixture's variance, at least 1e-12, from the variances `a` of the first and `b` of the second."""
        return ((1 - share) * a + share * b + apart).clamp(min=1e-12)

    variances = [(2 * each.log_std).exp() for each in (first, second)]
    total = mixed(*variances)
    curve = mixed(*((2 * each.curve_log_std).exp() for each in (first, second)))
    between = mixed(*(each.kernel_spread.square() * v for each, v in zip((first, second), variances, strict=True)))
    return Answer(mean, total.log() / 2, curve.log() / 2, (between / total).sqrt())


def _of_channels(table: Float[Tensor, "R 3 C"], channels: Int[Tensor, "R m"]) -> Float[Tensor, "R q m"]:
    """Look up a number for each of m observations, such as an amplitude, under each of q = 6 joint kernels.

    A kernel has one of 3 shapes (functions of time) and one of 2 correlation matrices; those of the first shape come
    first. The number does not depend on the matrix.

    Args:
        table: the number for each shape and each of C channels, in each of R series.
        channels: number of each observation's channel, from 0.
    """
    return table.gather(2, channels[:, None].expand(-1, table.shape[1], -1)).repeat_interleave(len(SHRINK), 1)


def _coupled(
    distance: Float[Tensor, "R a b"],
    slope: Float[Tensor, "R a b"],
    left: Int[Tensor, "R a"],
    right: Int[Tensor, "R b"],
    index: Int[Tensor, "R 3"],
    periods: Float[Tensor, "R 2"],
    amplitude: Float[Tensor, "R 3 C"],
    correlation: Float[Tensor, "R 2 C C"],
) -> Float[Tensor, "R q a b"]:
    """Return the covariances between two sets of values in each of R series, without noise, for q = 6 kernels.

    The left set has a values, the right set b values, of any channels. A kernel combines one of 3 shapes (functions of
    time) with one of 2 matrices of correlations between channels; the kernels of the first shape come first. Each
    channel has an unknown mean and an unknown slope, which add to the covariances; slopes of correlated channels are
    correlated.

    Args:
        distance: absolute differences between the times of the left and of the right values.
        slope: covariances that the unknown slope adds, at a squared amplitude of 1.
        left, right: channel number of each left and of each right value, from 0.
        index: numbers of the 3 shapes, from 0.
        periods: two of each series, for the periodic shapes.
        amplitude: squared amplitude of each of C channels with each shape.
        correlation: the 2 matrices of correlations between channels.
    """
    shape = chosen_shapes(distance, periods, index) + slope[:, None]
    left_size, right_size = (_of_channels(amplitude, part).sqrt() for part in (left, right))
    row = torch.arange(len(distance))[:, None, None]
    linked = correlation.transpose(1, 0)[:, row, left[:, :, None], right[:, None, :]].transpose(0, 1)
    offset = MEAN_VARIANCE * (left[:, :, None] == right[:, None, :]).double()
    parts = (shape[:, :, None] * linked[:, None] + offset[:, None, None]).flatten(1, 2)
    return left_size[..., None] * right_size[:, :, None] * parts
