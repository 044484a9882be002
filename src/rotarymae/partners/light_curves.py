"""Features of light curves: a Gaussian process makes one smooth curve of the fluxes in all filters of a source.

The curve depends on time and wavelength, so each filter's observations tell about the others, also at times when only
one was observed. Boone (2019), https://doi.org/10.3847/1538-3881/ab5182, does so with a kernel that is fitted to each
object. Here ten kernels are tried, and the likeliest one is taken.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rotarymae.errors import listed
from rotarymae.partners.base import Floats
from rotarymae.partners.shapes import Groups, Integers, compute, divide
from rotarymae.series import SeriesDataset
from rotarymae.series.columns import says_magnitude

# Rubin's filters: wavelength in units of 300 nm, and magnitudes by which a reddening of 1 dims.
FILTERS, WAVELENGTH = "ugrizy", np.array([1.22, 1.61, 2.07, 2.52, 2.90, 3.24])
DIMMING = np.array([4.76, 3.66, 2.70, 2.05, 1.59, 1.31])  # Fitzpatrick (1999)
FILTER = re.compile(r"(?:(?:lsst|sdss|ztf)[ _.-]?|z(?=[gri]))?([ugrizy])'?", re.IGNORECASE)
ZERO_POINT = 25.0  # the magnitude of a flux of 1
LIMIT_ERRORS = 5.0  # a limit of a brightness lies this many standard errors above 0
REDSHIFT = re.compile(r"redshift|(host(gal)?_?)?((spec|photo?)_?)?z(_?(spec|photo?))?", re.IGNORECASE)
REDDENING = re.compile(r"(mw_?)?e_?\(?b ?-? ?v\)?", re.IGNORECASE)
LEAST_REDSHIFT = 0.003
NO_REDSHIFT = -0.1  # numbers up to this are codes for a missing one, such as -9
# The kernels that are tried: Matérn 3/2 with each of these lengths in days, and in the logarithm of the wavelength.
DAYS, RATIOS = (5.0, 12.0, 30.0, 75.0, 180.0), (0.3, 0.9)
MOST_OBSERVATIONS = 100  # of a series: the strongest half of them, and as many of the others
LEAST_OBSERVATIONS = 3
LENGTH_STEP = 20  # series are padded to a multiple, so that no result depends on the series beside it
MATRIX_NUMBERS = 1 << 19  # numbers in the matrices of one pass: what a processor's cache holds
NOISE_FLOOR = 0.02  # of a flux, in units of the series' root mean square
BRIGHT = [FILTERS.index(name) for name in "gri"]  # the filters whose sum is the brightness
PHASES = (-40, -15, 0, 15, 25, 40, 60, 100, 170)  # days from the peak at which the curve is computed
SPANS = {"all": (-60, 200), "rise": (-60, -5), "peak": (-15, 15), "fall": (10, 40), "late": (30, 90), "end": (80, 200)}
KELVIN = np.geomspace(3000, 80000, 40)
FLUX_ACCURACY = 0.05  # of a flux, and of the curve's brightest filter: no source is exactly as it is described
POINT = 4  # days whose observations are joined
FAINTEST, BRIGHTEST = 0.02, 3.0  # of a filter's flux at the peak, as a share of the brightness


class Sources(NamedTuple):
    """Facts that the table holds about the sources of S light curves, besides their observations.

    Attributes:
        filters: [C], the index of each channel's filter in `FILTERS`.
        redshift: [S], NaN where it is missing, also for a code such as -9; None if the table has no such column.
        reddening: [S], E(B - V) by dust in front of each source; 0 where it is not known.
        columns: names of the columns that hold redshift and reddening, as far as there are any.
        magnitudes: whether the brightness is given in magnitudes.
    """

    filters: Integers
    redshift: Floats | None
    reddening: Floats
    columns: tuple[str, ...]
    magnitudes: bool = False

    def select(self, series: slice) -> Sources:
        """Return redshift and reddening of the series in a slice, as `Sources`; the other fields stay the same."""
        redshift = None if self.redshift is None else self.redshift[series]
        return self._replace(redshift=redshift, reddening=self.reddening[series])

    @property
    def note_for_user(self) -> str:
        """A sentence for a user: the filters of the light curves, and the columns of redshift and dust, if any."""
        corrected = f"corrected by {listed(self.columns)}" if self.columns else "not corrected for redshift and dust"
        filters = listed([FILTERS[k] for k in self.filters], len(FILTERS))
        unit = "magnitudes" if self.magnitudes else "fluxes"
        curve = "features of one smooth curve of all filters"
        return f"light curves, {unit} in {filters}, times in days: {curve}, {corrected}"


class Curves(NamedTuple):
    """Smooth curves of S sources in six filters, those of `FILTERS`; NaN for a series that is too short.

    Attributes:
        evidence: [S], logarithm of the likelihood of the fluxes under the curve's kernel over that under noise alone.
        days, ratio: [S], the kernel's length in days and in the logarithm of the wavelength; means of their logarithms
            over all kernels, weighted by likelihood.
        misfit: [S], mean((x - curve)² / variance) over the fitted observations; see `curve_features`.
        scale: [S], root mean square of the fluxes without their errors' share.
        peak: [S], the time at which the brightness, the curve's sum over g, r and i, is largest.
        mean, variance: [S, 9, 6], the curve at `PHASES` days from the peak, and the variance of its error.
    """

    evidence: Floats
    days: Floats
    ratio: Floats
    misfit: Floats
    scale: Floats
    peak: Floats
    mean: Floats
    variance: Floats


def find_sources(dataset: SeriesDataset, static: Iterable[str]) -> Sources | None:
    """Return filters, redshift and reddening of the light curves in a data set; None if it holds no light curves.

    It holds some if both of these are true:
    - The first value column has standard errors, and its name has "flux" in it or says magnitudes.
    - There are two or more channels, all named after filters (g, "LSST g", sdss_g, zg ..). Two surveys number their
      filters: PLAsTiCC has exactly the channels 0 to 5 for u to y; ZTF, whose first value column is "magpsf", has 1 to
      3 for g, r and i, or two of them.

    The redshift is the first column in `static` that holds numbers and is named after one (z, redshift, z_spec,
    hostgal_photoz ..). The reddening is found in the same way (EBV, mwebv, E(B-V)).
    """
    first, channels = dataset.value_names[0], [str(one) for one in dataset.channel_names or ()]
    if set(channels) == set("012345") or (first == "magpsf" and set(channels) <= set("123")):
        channels = [FILTERS[int(one)] for one in channels]
    filters = [FILTER.fullmatch(one) for one in channels]
    index = [FILTERS.index(one[1].lower()) for one in filters if one]
    magnitudes = "flux" not in first.lower()
    named = first in dataset.error_of and (says_magnitude(first) or not magnitudes)
    if not named or not 2 <= len(filters) == len(index):
        return None
    columns = [(name, np.asarray(dataset.static[name])) for name in static if name in dataset.static]
    numbers = [(name, column.astype(np.float64)) for name, column in columns if column.dtype.kind in "fiu"]
    redshift, reddening = ([one for one in numbers if name.fullmatch(one[0])][:1] for name in (REDSHIFT, REDDENING))
    dust = np.nan_to_num(reddening[0][1]) if reddening else np.zeros(len(dataset))
    columns = tuple(name for name, _ in redshift + reddening)
    z = np.where(redshift[0][1] > NO_REDSHIFT, redshift[0][1], np.nan) if redshift else None
    return Sources(np.array(index), z, dust, columns, magnitudes)


def fluxes(
    x: Floats, e: Floats, limits: Floats, sides: NDArray[np.int8] | None, magnitudes: bool
) -> tuple[Floats, Floats]:
    """Return the fluxes [n] of n observations and their standard errors.

    The flux of a magnitude m is 10^(0.4 (25 - m)). If only a limit of the brightness is known (an upper limit of a
    flux, a lower one of a magnitude), the flux is 0 and its error a fifth of the limit's flux.

    Args:
        x, e: [n] fluxes or magnitudes, NaN where a limit is known, and their standard errors.
        limits: [n], the limits.
        sides: int8 [n], -1 for upper limits, 1 for lower ones, else 0; None without limits.
        magnitudes: True if they are magnitudes.
    """
    if magnitudes:
        with np.errstate(over="ignore"):  # of codes such as -999
            x, limits = (10 ** (0.4 * (ZERO_POINT - part)) for part in (x, limits))
            e = 0.4 * math.log(10) * x * e
    if sides is None:
        return x, e
    dark = sides == (1 if magnitudes else -1)
    return np.where(dark, 0.0, x), np.where(dark, limits / LIMIT_ERRORS, e)


def curve_features(
    series: Integers, channels: Integers, times: Floats, x: Floats, e: Floats, sources: Sources, size: int
) -> dict[str, Floats]:
    """Return features of light curves, from one smooth curve through the fluxes of all filters of a light curve.

    The smooth curve is a Gaussian process. The covariance of two fluxes is s² m(days / T) m(|log(wavelength ratio)| /
    W), with Matérn's function m(u) = (1 + sqrt(3) u) exp(-sqrt(3) u), and s² = mean(x²) - mean(e²), at least 0.05
    mean(x²). T is one of 5, 12, 30, 75 and 180 days, and W is 0.3 or 0.9: the pair that makes the fluxes likeliest. The
    peak is the time at which the curve's sum over g, r and i is largest. If a series has more than 100 observations,
    the curve is fitted to the 50 of largest x / e and 50 of the others.

    With a redshift, the curve is that of the source at rest: days and wavelengths are divided by 1 + redshift, and
    fluxes are multiplied by the squared luminosity distance (flat universe, 30 % matter) over 1 + redshift. Fluxes are
    corrected for the dust in front of the source if its reddening is known.

    The features are those of `point_features` and `curve_temperatures`, and these:

    - "evidence": log(likelihood of the fluxes / their likelihood as noise alone). "evidence per observation": the same
      divided by the number of the series' observations.
    - "log days" and "log ratio": the means of log(T) and log(W) over all pairs, weighted by likelihood.
    - "log scale": log(s). "misfit": mean((x - smooth curve)² / d²) over the fitted fluxes, d² = e² + (s / 50)².

    Args:
        series, channels: int [n], index of each observation's series, ascending, and of its channel.
        times, x, e: [n] times in days, ascending in each series; fluxes and their standard errors.
        sources: what is known of the sources.
        size: number of series, S.

    Returns:
        {name of the feature: numbers [S]}. All but "count" and "strength", which are 0, are NaN for series that have
        fewer than 3 observations, or lack a redshift although there is a column of redshifts.
    """
    z = np.zeros(size) if sources.redshift is None else np.maximum(sources.redshift, LEAST_REDSHIFT)
    at = np.flatnonzero(np.isfinite(x) & (e > 0) & np.isfinite(z)[series])
    series, filters, z = series[at], sources.filters[channels[at]], np.nan_to_num(z)
    clear = 10 ** (0.4 * DIMMING[filters] * sources.reddening[series])
    days, x, e = times[at] / (1 + z[series]), x[at] * clear, e[at] * clear
    some = strongest(series, x / e)
    curves = fit_curves(series[some], filters[some], days[some], x[some], e[some], size)
    distance = (1 + z) * z * ((0.3 * (1 + z[:, None] * (np.arange(64) + 0.5) / 64) ** 3 + 0.7) ** -0.5).mean(1)
    unit = np.ones(size) if sources.redshift is None else distance**2 / (1 + z)

    at = np.flatnonzero(np.isfinite(curves.peak)[series])
    series, filters, days, x, e = series[at], filters[at], days[at] - curves.peak[series[at]], x[at], e[at]
    opens = (np.diff(series, prepend=-1) != 0) | (np.diff(days // POINT, prepend=np.inf) != 0)
    w = 1 / (np.maximum(e, 1e-12) ** 2 + (FLUX_ACCURACY * x) ** 2)
    observations = np.cumsum(opens) - 1, series, filters, days, x, w
    out = point_features(*observations, curves, unit)
    out |= {"evidence": curves.evidence, "log days": curves.days, "log ratio": curves.ratio, "misfit": curves.misfit}
    out["evidence per observation"] = divide(curves.evidence, np.bincount(series, minlength=size))
    out["log scale"] = np.log(curves.scale * unit)
    return out | curve_temperatures(*observations, curves, z)


def point_features(
    point: Integers, series: Integers, filters: Integers, t: Floats, x: Floats, w: Floats, curves: Curves, unit: Floats
) -> dict[str, Floats]:
    """Combine the observations of all filters into points of a single light curve; return features of these points.

    A point combines the observations of 4 days. For an observation with flux x and weight w, let p be the flux of its
    filter over that of g, r and i together, both read from the series' smooth curve at the peak. p is limited to 0.02
    to 3, and 1/3 where the curve is missing. The brightness of a point is sum(w p x) / sum(w p²), its standard error
    sum(w p²)^-½; both are multiplied by `unit`.

    Args:
        point, series, filters: int [n], number of each observation's point, series and filter, all from 0; those of
            points ascend without gaps.
        t, x, w: [n] days from the peak; fluxes; and weights 1 / (e² + (x / 20)²), where e is the flux's standard error.
        curves: the smooth curves of the S series.
        unit: [S], the factor of each series' brightness.

    Returns:
        {name of the feature, such as "max": numbers [S]}.
    """
    at_peak, of = curves.mean[:, PHASES.index(0)], series[np.unique(point, return_index=True)[1]]
    share = np.clip(divide(at_peak, at_peak[:, BRIGHT].sum(1, keepdims=True)), FAINTEST, BRIGHTEST)
    p = np.nan_to_num(share, nan=1 / len(BRIGHT))[series, filters]
    weight, total = np.bincount(point, w * p * p), np.bincount(point, w * p * x)
    day = np.bincount(point, t) / np.bincount(point)
    return compute(Groups(of, len(unit), day, unit[of] * total / weight, unit[of] / np.sqrt(weight)))


def curve_temperatures(
    point: Integers, series: Integers, filters: Integers, t: Floats, x: Floats, w: Floats, curves: Curves, z: Floats
) -> dict[str, Floats]:
    """Return features of S sources as {name: numbers [S]}: black-body temperatures at several times.

    There are four features per time, such as "temperature of peak": the log10 of kelvin; its standard deviation ("error
    of .."); "misfit", chi² per degree of freedom; and "strength", the square root of the chi² that the black body
    explains. `temperatures` has the formulas.

    - "temperature of .." uses the observations in a span of days from the peak: "all" -60 to 200, "rise" -60 to -5,
      "peak" -15 to 15, "fall" 10 to 40, "late" 30 to 90, "end" 80 to 200.
    - "temperature at .. days" uses the fluxes of the smooth curve on a day, in six filters. The variance of each flux
      is raised by the square of 5 % of the brightest filter's flux.

    Args:
        point, series, filters, t, x, w, curves: observations and smooth curves, as in `point_features`.
        z: [S], the redshift of each series.
    """
    out, size, emitted = {}, len(z), WAVELENGTH / (1 + z[:, None])
    for span, (low, high) in SPANS.items():
        k = (t >= low) & (t < high)
        columns = temperatures(point[k], series[k], emitted[series[k], filters[k]], x[k], w[k], size)
        out |= {f"{name} of {span}": column for name, column in columns.items()}
    number = np.repeat(np.arange(size), len(FILTERS))
    for k, phase in enumerate(PHASES):
        flux = curves.mean[:, k]
        w = divide(1, curves.variance[:, k] + (FLUX_ACCURACY * np.abs(flux).max(1, keepdims=True)) ** 2)
        columns = temperatures(number, number, emitted.ravel(), flux.ravel(), w.ravel(), size)
        out |= {f"{name} at {phase} days": column for name, column in columns.items()}
    return out


def strongest(series: Integers, strength: Floats) -> Integers:
    """Return the indices, ascending, of at most 100 observations of each series: the 50 strongest and 50 others.

    The others are taken evenly from what is left, in the order of time. Series of at most 100 observations keep all.

    Args:
        series: [n] index of each observation's series, ascending.
        strength: [n], such as the flux divided by its standard error; the largest are the strongest.
    """
    half, total = MOST_OBSERVATIONS // 2, len(series)
    starts, counts = _firsts(series)
    first, count = starts[series], counts[series]
    rank = np.empty(total, np.int64)
    rank[np.lexsort((-strength, series))] = np.arange(total) - first
    weak = (rank >= half).astype(np.int64)
    before = np.cumsum(weak) - weak
    number, others = before - before[first], np.maximum(count - half, 1)
    even = number * half // others != (number - 1) * half // others
    return np.flatnonzero((count <= MOST_OBSERVATIONS) | (rank < half) | even)


def _firsts(series: Integers) -> tuple[Integers, Integers]:
    """Return, from ascending series numbers [n], the index of each series' first observation and its count, [S]."""
    count = np.bincount(series)
    return np.cumsum(count) - count, count


def fit_curves(series: Integers, filters: Integers, days: Floats, x: Floats, e: Floats, size: int) -> Curves:
    """Fit a Gaussian process over days and wavelengths to the fluxes of each series; return the smooth curves.

    Args:
        series, filters: int [n], index of each observation's series, ascending, and of its filter in `FILTERS`.
        days, x, e: [n] times in days, fluxes and their standard errors, all finite, errors positive.
        size: number of series, S.

    Returns:
        Fields of length S: the curve of each series in six filters at nine times around its peak, and numbers on the
        fit. NaN for a series of fewer than 3 observations.
    """
    shapes = {"mean": (len(PHASES), 6), "variance": (len(PHASES), 6)}
    out = Curves(*(np.full((size, *shapes.get(name, ())), np.nan) for name in Curves._fields))
    first, count = _firsts(series)
    squares, errors = (divide(np.bincount(series, part**2), count) for part in (x, e))
    scale = np.sqrt(np.maximum(squares - errors, 0.05 * squares))
    usable = np.flatnonzero((count >= LEAST_OBSERVATIONS) & (scale > 0) & np.isfinite(scale))
    width = -(-count // LENGTH_STEP) * LENGTH_STEP
    for length in np.unique(width[usable]):
        chosen = usable[width[usable] == length]
        for ids in np.array_split(chosen, -(-len(chosen) * length**2 // MATRIX_NUMBERS)):
            real = np.arange(length) < count[ids][:, None]
            at = np.where(real, first[ids][:, None] + np.arange(length), 0)
            unit = scale[ids][:, None]
            noise = np.where(real, np.minimum(e[at] / unit, 1e6) ** 2 + NOISE_FLOOR**2, 1.0)
            columns = (days[at], np.where(real, x[at] / unit, 0.0), noise, real)
            curves = _fit(filters[at], *(torch.from_numpy(np.ascontiguousarray(part)) for part in columns))
            for name, target, part in zip(Curves._fields, out, curves, strict=True):
                power = {"scale": 1, "mean": 1, "variance": 2}.get(name, 0)
                target[ids] = part * scale[ids].reshape(-1, *[1] * (part.ndim - 1)) ** power
    return out


def _matern(distance: Tensor) -> Tensor:
    """Return Matérn's correlation with smoothness 3/2 at distances in units of its length."""
    distance = distance * math.sqrt(3)
    return (1 + distance) * torch.exp(-distance)


@torch.no_grad()
def _fit(filters: NDArray[np.int64], days: Tensor, x: Tensor, noise: Tensor, real: Tensor) -> Curves:
    """Fit one Gaussian process over days and wavelengths to each of U series padded to n observations; return curves.

    The kernel is the likeliest of a grid. Fluxes are in units of the series' scale (see `Curves`); so are the curves.

    Args:
        filters: int [U, n], the index of each observation's filter.
        days, x, noise: float64 [U, n], times, fluxes, and the variances of their errors; x is 0 and noise 1 at padding.
        real: bool [U, n], False at padding.
    """
    filter_of = torch.from_numpy(filters)
    log_wavelength = torch.from_numpy(np.log(WAVELENGTH))
    apart = (log_wavelength[:, None] - log_wavelength).abs()
    both = (real[:, :, None] & real[:, None, :]).double()
    distance = (days[:, :, None] - days[:, None, :]).abs()
    ratios = [_matern(apart / ratio) for ratio in RATIOS]
    in_color = [one[filter_of[:, :, None], filter_of[:, None, :]] * both for one in ratios]
    logs, factor, length, kind = [], torch.zeros_like(distance), x.new_zeros(len(x)), x.new_zeros(len(x)).long()
    best = x.new_full((len(x),), -torch.inf)
    for tried in DAYS:
        in_time = _matern(distance / tried)
        for k, color in enumerate(in_color):
            root = torch.linalg.cholesky(in_time * color + torch.diag_embed(noise))
            white = torch.linalg.solve_triangular(root, x[..., None], upper=False)[..., 0]
            logs.append(-(white**2).sum(1) / 2 - root.diagonal(dim1=1, dim2=2).log().sum(1))
            better = logs[-1] > best
            best = torch.where(better, logs[-1], best)
            length[better], kind[better], factor[better] = tried, k, root[better]
    weight = torch.softmax(torch.stack(logs, 1), 1).reshape(-1, len(DAYS), len(RATIOS))
    silence = -((x**2 / noise) * real).sum(1) / 2 - noise.log().sum(1) / 2
    # The kernel is a product, so a filter's curve needs the fluxes' weights once, and the times' correlations.
    color = torch.stack(ratios)[kind[:, None], filter_of] * real[..., None]
    weights = color * torch.cholesky_solve(x[..., None], factor)

    def near(days_asked: Tensor) -> Tensor:
        """Return the correlations of the times asked [U, m] with the times of the observations, [U, m, n]."""
        return _matern((days_asked[:, :, None] - days[:, None, :]).abs() / length[:, None, None])

    def brightest(days_asked: Tensor) -> Tensor:
        """Return the first of the times asked [U, m] at which the sum over g, r and i is largest, [U, 1]."""
        brightness = (near(days_asked) @ weights)[..., BRIGHT].sum(2)
        return days_asked.gather(1, brightness.argmax(1)[:, None])

    at_padding = days[:, :1]  # so that padding adds no time
    peak = brightest(torch.where(real, days, at_padding))
    peak = brightest(peak + torch.arange(-10.0, 11, 2, dtype=torch.float64))
    explained = (near(days) @ weights).gather(2, filter_of[..., None])[..., 0]
    asked = near(peak + torch.tensor(PHASES, dtype=torch.float64))
    covariance = (asked[:, :, None] * color.transpose(1, 2)[:, None]).flatten(1, 2)
    known = torch.linalg.solve_triangular(factor, covariance.transpose(1, 2), upper=False)
    results = (
        best - silence,
        weight.sum(2) @ torch.tensor(DAYS, dtype=torch.float64).log(),
        weight.sum(1) @ torch.tensor(RATIOS, dtype=torch.float64).log(),
        ((x - explained) ** 2 / noise * real).sum(1) / real.sum(1),
        torch.ones_like(best),
        peak[:, 0],
        asked @ weights,
        (1 - (known**2).sum(1)).clamp_min(0).unflatten(1, (len(PHASES), -1)),
    )
    return Curves(*(part.numpy() for part in results))


def temperatures(
    flux_group: Integers, series: Integers, wavelength: Floats, x: Floats, w: Floats, size: int
) -> dict[str, Floats]:
    """Return the temperature of the black body that explains the fluxes of each series.

    Fluxes are grouped, such as those of about one time in several filters. All groups of a series share the temperature
    T, and each has a brightness b of its own, at least 0. "temperature" is the mean of log10(T), T from
    3,000 to 80,000 K, weighted by exp(-chi² / 2), chi² = sum(w (x - b p)²), where p is Planck's law at T; "error of
    temperature" is its standard deviation; "misfit" is the least chi² per degree of freedom; "strength" is
    sqrt(sum(w x²) - least chi²).

    Args:
        flux_group: int [n], the number of each flux's group, ascending. A group belongs to one series.
        series: int [n], the number of each flux's series, 0 .. size - 1.
        wavelength: [n], in units of 300 nm, where the light was emitted.
        x, w: [n] fluxes, and their weights, 1 / variance.
        size: number of series.

    Returns:
        The four features, [size] each. The first three are NaN if the strength is at most 3, or if no group has two
        fluxes.
    """
    _, first, group = np.unique(flux_group, return_index=True, return_inverse=True)
    of, level = series[first], np.log10(KELVIN)
    gain = np.empty((len(KELVIN), size))
    for k, kelvin in enumerate(KELVIN):
        p = wavelength**-3 / np.expm1(np.minimum(47960 / (wavelength * kelvin), 300))
        total, known = np.bincount(group, w * p * x, len(of)), np.bincount(group, w * p * p, len(of))
        gain[k] = np.bincount(of, np.nan_to_num(divide(np.maximum(total, 0) ** 2, known)), size)
    best, chance = gain.max(0), np.exp((gain - gain.max(0)) / 2)
    mean = level @ chance / chance.sum(0)
    error = np.sqrt(((level[:, None] - mean) ** 2 * chance).sum(0) / chance.sum(0))
    freedom = np.bincount(series, minlength=size) - np.bincount(of, minlength=size)
    seen = (best > 9) & (freedom > 0)
    misfit = divide(np.bincount(series, w * x * x, size) - best, freedom)
    columns = {"temperature": mean, "error of temperature": error, "misfit": misfit}
    out = {name: np.where(seen, column, np.nan) for name, column in columns.items()}
    return out | {"strength": np.sqrt(best)}
