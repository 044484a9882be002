"""Features: each against a plain restatement of its formula, and what all of them have in common."""

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import multivariate_normal

from rotarymae import SeriesDataset
from rotarymae.partners import FORMULAS, features
from rotarymae.partners.boosting import series_features
from rotarymae.partners.features import MAX_NARROW
from rotarymae.partners.light_curves import (
    DAYS,
    DIMMING,
    PHASES,
    RATIOS,
    SPANS,
    WAVELENGTH,
    fit_curves,
    strongest,
)
from rotarymae.partners.shapes import FEATURES, Groups
from rotarymae.preprocess import Inputs, fit_static


def quantile(x, share):
    return np.sort(x)[int(np.floor(share * (len(x) - 1) + 0.5))]


class Course:
    """One series, and the few quantities that several formulas share."""

    def __init__(self, t, x, e):
        self.t, self.x, self.e, self.n = t, x, e, len(x)
        self.d, self.base = np.diff(x), quantile(x, 0.5)
        self.peak = int(np.argmax(x if e is None else x - e))
        self.height = x[self.peak] - self.base
        self.from_, self.to = self.edge(0.2)
        self.inside = np.array([self.from_ < i < self.to for i in range(self.n)])
        above = x - self.base
        self.bright = (above > 0.1 * self.height) & (above > (0 if e is None else 2 * e))
        if e is not None:
            self.ratio, self.mean = x / e, np.sum(x / e**2) / np.sum(1 / e**2)
            self.r = (x - self.mean) / e

    def edge(self, share):
        below = np.flatnonzero(self.x < self.base + share * self.height)
        before, after = below[below < self.peak], below[below > self.peak]
        return (before[-1] if len(before) else -1), (after[0] if len(after) else self.n)

    def rise(self, share):
        before, _ = self.edge(share)
        return self.t[self.peak] - self.t[before] if before >= 0 else np.nan

    def fall(self, share):
        _, after = self.edge(share)
        return self.t[after] - self.t[self.peak] if after < self.n else np.nan

    def line(self, a, where):
        """The slope of log(x - base) against a, from numpy's least squares."""
        return np.polyfit(a[where], np.log(self.x[where] - self.base), 1)[0] if where.sum() > 2 else np.nan

    def decay(self):
        return self.line(self.t, self.bright & (np.arange(self.n) >= self.peak))

    def power(self, k):
        """From numpy's least squares, instead of sums."""
        phase = 2 * np.pi * k * (self.t - self.t[0]) / (self.t[-1] - self.t[0])
        design = np.stack([np.ones(self.n), np.cos(phase), np.sin(phase)], 1)
        fitted = design @ np.linalg.lstsq(design, self.x, rcond=None)[0]
        return 1 - np.var(self.x - fitted) / np.var(self.x)

    def structure(self, low, high):
        squares = []
        for lag in (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64):
            for i in range(self.n - lag):
                share = (self.t[i + lag] - self.t[i]) / (self.t[-1] - self.t[0])
                if low <= share < high:
                    squares.append((self.x[i + lag] - self.x[i]) ** 2)
        return np.mean(squares) / (2 * np.var(self.x)) if squares else np.nan

    def quiet(self, part):
        return np.sqrt(np.mean((self.x[part] - self.base) ** 2)) / self.height if len(self.x[part]) else np.nan

    def noise(self, part):
        return np.mean(((self.x[part] - self.base) / self.e[part]) ** 2) if len(self.x[part]) else np.nan


def at(times, where, pick):
    return times[where][pick] if where.any() else np.nan


PLAIN = {
    "count": lambda s: s.n,
    "mean": lambda s: np.mean(s.x),
    "std": lambda s: np.std(s.x),
    "min": lambda s: s.x.min(),
    "max": lambda s: s.x.max(),
    "first": lambda s: s.x[0],
    "last": lambda s: s.x[-1],
    "time of last": lambda s: s.t[-1],
    "mean change": lambda s: s.d.mean(),
    "std of changes": lambda s: s.d.std(),
    "span": lambda s: s.t[-1] - s.t[0],
    "skew": lambda s: np.mean((s.x - s.x.mean()) ** 3) / np.std(s.x) ** 3,
    "kurtosis": lambda s: np.mean((s.x - s.x.mean()) ** 4) / np.std(s.x) ** 4,
    "roughness": lambda s: np.mean(s.d**2) / np.var(s.x),
    "largest slope": lambda s: np.abs(s.d / np.diff(s.t)).max(),
    "correlation with time": lambda s: np.corrcoef(s.t, s.x)[0, 1],
    "structure below 0.01": lambda s: s.structure(0, 0.01),
    "structure below 0.05": lambda s: s.structure(0.01, 0.05),
    "structure below 0.2": lambda s: s.structure(0.05, 0.2),
    "structure above 0.2": lambda s: s.structure(0.2, 2),
    "power of 1 cycle": lambda s: s.power(1),
    "power of 2 cycles": lambda s: s.power(2),
    "power of 3 cycles": lambda s: s.power(3),
    "power of 4 cycles": lambda s: s.power(4),
    "time of max": lambda s: s.t[s.peak],
    "height": lambda s: s.height,
    "rise from 0.2": lambda s: s.rise(0.2),
    "rise from 0.5": lambda s: s.rise(0.5),
    "rise from 0.8": lambda s: s.rise(0.8),
    "fall to 0.8": lambda s: s.fall(0.8),
    "fall to 0.5": lambda s: s.fall(0.5),
    "fall to 0.2": lambda s: s.fall(0.2),
    "decay rate": lambda s: -s.decay(),
    "growth rate": lambda s: s.line(s.t, s.bright & (np.arange(s.n) <= s.peak)),
    "power of decay": lambda s: (
        -s.line(np.log(np.maximum(s.t - s.t[s.peak], 1e-9)), s.bright & (np.arange(s.n) > s.peak))
    ),
    "roughness of decay": lambda s: np.mean(s.d[s.peak : s.to - 1] > 0) if s.to - 1 > s.peak else np.nan,
    "quiet before": lambda s: s.quiet(slice(0, s.from_ + 1)),
    "quiet after": lambda s: s.quiet(slice(s.to, None)),
    "second peak": lambda s: (s.x[~s.inside] - s.base).max() / s.height if not s.inside.all() else np.nan,
    "dip": lambda s: (s.base - s.x.min()) / s.height,
    "share of outburst": lambda s: s.inside.mean(),
    "signal to noise": lambda s: s.ratio.mean(),
    "largest signal to noise": lambda s: s.ratio.max(),
    "mean error": lambda s: s.e.mean(),
    "weighted mean": lambda s: s.mean,
    "chi square": lambda s: np.mean(s.r**2),
    "excess variance": lambda s: (np.var(s.x) - np.mean(s.e**2)) / np.var(s.x),
    "Stetson J": lambda s: np.mean(np.sign(s.r[1:] * s.r[:-1]) * np.sqrt(np.abs(s.r[1:] * s.r[:-1]))),
    "Stetson K": lambda s: np.mean(np.abs(s.r)) / np.sqrt(np.mean(s.r**2)),
    "share above 3 sigma": lambda s: np.mean(s.ratio > 3),
    "share above 5 sigma": lambda s: np.mean(s.ratio > 5),
    "share below -3 sigma": lambda s: np.mean(s.ratio < -3),
    "span above 5 sigma": lambda s: at(s.t, s.ratio > 5, -1) - at(s.t, s.ratio > 5, 0),
    "first strong before max": lambda s: s.t[s.peak] - at(s.t, np.abs(s.ratio) > 5, 0),
    "last strong after max": lambda s: at(s.t, np.abs(s.ratio) > 5, -1) - s.t[s.peak],
    "noise before": lambda s: s.noise(slice(0, s.from_ + 1)),
    "noise after": lambda s: s.noise(slice(s.to, None)),
} | {f"quantile {q}": lambda s, q=q: quantile(s.x, q) for q in (0.05, 0.25, 0.5, 0.75, 0.95)}


def outbursts(with_errors, series=12):
    """Series of unequal lengths, the shortest of 5: an outburst on noise, early, late, or at an end."""
    draw = np.random.default_rng(3)
    out = []
    for i in range(series):
        n = int(draw.integers(5, 90)) if i else 5
        t = np.sort(draw.uniform(0, 100, n))
        since = t - draw.uniform(-10, 110)
        x = 20 * np.exp(-np.abs(since) / np.where(since > 0, 15, 4)) + draw.normal(size=n)
        out.append((t, x, draw.uniform(0.5, 2, n) if with_errors else None))
    return out


def grouped(courses, order):
    """The observations as flat columns in an order of series and their times."""
    t, x = (np.concatenate([courses[i][part] for i in order]) for part in (0, 1))
    e = None if courses[0][2] is None else np.concatenate([courses[i][2] for i in order])
    keys = np.concatenate([np.full(len(courses[i][0]), i) for i in order])
    return Groups(keys, len(courses) + 1, t, x, e)


@pytest.mark.parametrize("with_errors", [False, True])
@pytest.mark.parametrize("feature", FEATURES, ids=lambda one: one.name)
def test_a_feature_is_its_formula(feature, with_errors):
    assert feature.formula
    courses = outbursts(with_errors)
    if feature.needs_errors and not with_errors:
        return
    expected = [PLAIN[feature.name](Course(*one)) for one in courses]
    number = len(courses)
    for order in (np.arange(number), np.random.default_rng(0).permutation(number)):
        groups = grouped(courses, order)
        computed = groups.to_all_groups(feature.compute(groups))
        np.testing.assert_allclose(computed[:number], expected, rtol=1e-7, atol=1e-9)
        assert np.isnan(computed[number])  # a group without observations
    assert np.isfinite(expected).sum() > number / 4
    assert len({np.round(one, 9) for one in expected if np.isfinite(one)}) > 1


def test_every_feature_has_a_name_and_a_formula_of_its_own():
    names = [feature.name for feature in FEATURES]
    assert set(names) == set(PLAIN) and len(set(names)) == len(names)


def test_the_page_of_features_has_the_formula_of_each():
    page = (Path(__file__).parents[2] / "docs/features.md").read_text(encoding="utf-8")
    listed = [line for line in page.splitlines() if line.startswith("- **")]
    assert listed == [f"- **{name}**: {formula}" for name, formula in FORMULAS.items()]


def light_curves(series=9, with_errors=True, seed=0):
    draw, parts = np.random.default_rng(seed), []
    for _ in range(series):
        n = int(draw.integers(6, 30))
        t, channel = np.sort(draw.uniform(0, 50, n)), draw.choice(["g", "r", "i"], n)
        x = 10 * np.exp(-(((t - 25) / 8) ** 2)) * np.where(channel == "g", 2, 1) + draw.normal(size=n)
        parts.append((t, np.stack([x, draw.uniform(0.5, 1, n)], 1) if with_errors else x[:, None], channel))
    times, values, channels = zip(*parts, strict=True)
    names = ["flux", "flux_err"] if with_errors else ["flux"]
    return SeriesDataset.from_arrays(times, values, channels, value_names=names)


@pytest.mark.parametrize("with_errors", [False, True])
def test_features_of_a_series_do_not_depend_on_others_or_on_the_unit_of_time_and_value(with_errors):
    data = light_curves(with_errors=with_errors)
    table, names = features(data)
    assert table.shape == (9, len(names)) and len(set(names)) == len(names)
    dense = ["course" not in name for name in names]  # few observations are in few windows
    assert not np.isinf(table).any() and np.isfinite(table[:, dense]).mean() > 0.8
    alone, _ = features(data.select([3]))
    np.testing.assert_allclose(alone[0], table[3], rtol=1e-9)
    shuffled, _ = features(data.select([8, 3, 0]))
    np.testing.assert_allclose(shuffled, table[[8, 3, 0]], rtol=1e-9)
    free = ("relative", "roughness", "Stetson", "course")
    pure = [i for i, name in enumerate(names) if any(word in name for word in free) and "curve: " not in name]
    others = SeriesDataset.from_arrays(
        [t * 24 + 1e3 for t in np.split(data.times, data.offsets[1:-1])],
        [v * 1e3 for v in np.split(data.values, data.offsets[1:-1])],
        [np.array(data.channel_names)[c] for c in np.split(data.channels, data.offsets[1:-1])],
        value_names=data.value_names,
    )
    np.testing.assert_allclose(features(others)[0][:, pure], table[:, pure], rtol=1e-6, atol=1e-9)


def test_colours_by_hand():
    """Peak of the leading channel g at 10, half as high at 8 and 13: a width of 5."""
    times = [0.0, 8.0, 10.0, 13.0, 30.0, 10.0, 15.0, 20.0, 0.0]
    values = [0.0, 4.0, 10.0, 4.0, 0.0, 5.0, 1.0, 3.0, 0.0]
    order = np.argsort(times, kind="stable")
    bands = np.array(["g"] * 5 + ["r"] * 4)
    data = SeriesDataset.from_arrays(
        [np.array(times)[order]], [np.array(values)[order]], [bands[order]], value_names=["flux"]
    )
    table, names = features(data)
    found = dict(zip(names, table[0]))
    assert found["g: flux rise from 0.5"] == 2 and found["g: flux fall to 0.5"] == 3
    assert found["g - r: flux relative at peak"] == pytest.approx((7 - 5) / 12)  # g at 8 is -0.4 widths: (4 + 10) / 2
    assert found["g - r: flux relative after peak"] == pytest.approx((4 - 1) / 5)  # g at 13, r at 15
    assert found["g - r: flux time of max"] == 0 and found["all: channels"] == 2


@pytest.mark.parametrize("with_errors", [False, True])
def test_the_course_around_the_peak_by_hand(with_errors):
    """Peak of the leading channel g at 512 of 1,024: its windows end 4, 8, .., 256 away, and at the ends."""
    times = {"g": [0.0, 500.0, 512.0, 518.0, 600.0, 1024.0], "r": [510.0, 519.0, 519.5, 540.0, 800.0]}
    values = {"g": [1.0, 1.0, 11.0, 6.0, 0.0, 1.0], "r": [6.0, 3.0, 1.0, 2.0, 1.0]}
    errors = {"g": [1.0] * 6, "r": [1.0, 1.0, 2.0, 1.0, 1.0]}
    t, x, e = (np.concatenate([one["g"], one["r"]]) for one in (times, values, errors))
    order, bands = np.argsort(t), np.array(["g"] * 6 + ["r"] * 5)
    x = np.stack([x, e], 1) if with_errors else x[:, None]
    names = ["flux", "flux_err"] if with_errors else ["flux"]
    data = SeriesDataset.from_arrays([t[order]], [x[order]], [bands[order]], value_names=names)
    table, names = features(data)
    found = dict(zip(names, table[0]))
    expected = {"g 0": 1.0, "g 1": np.nan, "g 2": np.nan, "g -2": 0.0, "g 5": -0.1, "g -7": 0.0, "g 7": 0.0}
    expected |= {"r 0": 0.4, "r 1": (1 - 1 / 4) / (1 + 1 / 4) / 10 if with_errors else 0.0, "r 3": 0.0, "r 7": -0.1}
    expected["g 1"] = 0.5  # g is 6 at 518, and its median is 1
    for name, value in expected.items():
        channel, window = name.split()
        assert found[f"{channel}: flux course {window}"] == pytest.approx(value, nan_ok=True), name
    signal = "r: flux signal of course 0"
    assert (found[signal] == 4.0) if with_errors else (signal not in found)


def test_exact_values_count_and_have_no_ratio_to_their_error():
    values = [[1.0, 0.5], [9.0, 0.0], [2.0, 0.5]]
    data = SeriesDataset.from_arrays([[0.0, 1.0, 2.0]], [values], value_names=["flux", "flux_err"])
    table, names = features(data)
    found = dict(zip(names, table[0]))
    assert (found["all: flux count"], found["all: flux max"], found["all: flux time of max"]) == (3, 9, 1)
    assert (found["all: flux signal to noise"], found["all: flux largest signal to noise"]) == (3, 4)
    assert found["all: flux weighted mean"] == 9 and found["all: flux chi square"] == (16**2 + 14**2) / 2


@pytest.mark.parametrize("names", [("flux", "flux_err"), ("flux", "FLUX_ERROR"), ("Flux", "fluxerr")])
def test_features_know_the_errors_that_the_encoder_knows(names):
    data = SeriesDataset.from_arrays([[0.0, 1.0]], [[[1.0, 0.5], [2.0, 0.5]]], value_names=names)
    assert Inputs.fit(data, signal_to_noise=True).signal_to_noise == (names,)
    table, found = features(data)
    assert table[0, found.index(f"all: {names[0]} largest signal to noise")] == 4
    assert not any(names[1] in name for name in found)


def test_features_know_errors_of_any_name_if_they_are_named():
    frame = {"id": [0, 0], "time": [0.0, 1.0], "flux": [1.0, 2.0], "wobble": [0.5, 0.5]}
    by_table = SeriesDataset.from_frame(pd.DataFrame(frame), values=["flux"], errors=["wobble"])
    assert by_table.error_of == {"flux": "wobble"} and by_table.with_values(["flux"]).error_of == {}
    later = dataclasses.replace(by_table, errors={}).with_errors(["wobble"])
    for data in (by_table, later, by_table.select([0]), by_table.with_values(["flux", "wobble"])):
        table, names = features(data)
        assert table[0, names.index("all: flux largest signal to noise")] == 4
        assert not any("wobble" in name for name in names)


@pytest.mark.parametrize("time", [0.1, 1.1, 2459000.3])
def test_there_is_no_slope_over_one_time(time):
    groups = Groups(np.zeros(7, np.int64), 1, np.full(7, time), np.arange(7.0), None)
    assert np.isnan(groups.slope(groups.t, groups.x, np.ones(7, bool))).all()


def test_wide_tables_get_basic_features_of_each_channel():
    channels = [f"c{i:02d}" for i in range(40)]
    data = SeriesDataset.from_arrays([np.arange(40.0)], [np.arange(40.0)], [channels])
    _, names = features(data)
    basic = sum(one.basic for one in FEATURES)
    assert len(names) == 40 * basic + 1 > MAX_NARROW


def test_features_are_the_same_in_chunks(monkeypatch):
    data = light_curves()
    whole, _ = features(data)
    monkeypatch.setattr(SeriesDataset, "series_chunks", lambda self: iter([np.arange(4), np.arange(4, 9)]))
    np.testing.assert_allclose(features(data)[0], whole, rtol=1e-12)


@pytest.mark.parametrize("values", [[1.0], [2.0, 2.0], [2.0, 2.0, 2.0]])
def test_series_without_a_course_have_features_without_infinity(values):
    data = SeriesDataset.from_arrays([np.arange(len(values)), [0.0, 1.0]], [values, [1.0, 3.0]], value_names=["x"])
    table, names = features(data)
    assert not np.isinf(table).any() and table[0, names.index("all: x count")] == len(values)


def black_body(*seen, kelvin=10_000.0, names=("flux", "flux_err"), bands="ugrizy", static=("Z", "EBV")):
    """A source with an outburst of 30 days, 150 days after the first observation at rest, as seen at each (z, dust)."""
    t, parts = np.repeat(np.arange(0.0, 401, 5), 6), []
    nm300, dimming = np.array([[1.22, 1.61, 2.07, 2.52, 2.9, 3.24], [4.76, 3.66, 2.7, 2.05, 1.59, 1.31]])
    for z, dust in seen:
        at_rest = np.tile(nm300, 81) / (1 + z)
        glow = 1 / (at_rest**3 * np.expm1(47960 / (at_rest * np.broadcast_to(kelvin, 81).repeat(6))))
        distance = (1 + z) * quad(lambda u: 1 / np.sqrt(0.3 * (1 + u) ** 3 + 0.7), 0, z)[0]
        flux = np.exp(-(((t - 150) / 30) ** 2)) * glow * (1 + z) / distance**2
        flux *= 10 ** (-0.4 * np.tile(dimming, 81) * dust)
        parts.append((t * (1 + z), np.stack([flux, np.full(len(t), flux.max() / 1000)], 1)[:, : len(names)]))
    times, values = zip(*parts, strict=True)
    channels = [np.tile(list(bands), 81)] * len(seen)
    columns = dict(zip(static, np.array(seen).T, strict=False))
    return SeriesDataset.from_arrays(times, values, channels, value_names=names, static=columns)


def curve_of(z, dust=0.0, **options):
    table, names = features(black_body((z, dust), **options))
    curve = {name: number for name, number in zip(names, table[0], strict=True) if name.startswith("curve: ")}
    assert len(curve) == len(FEATURES) + 6 + 4 * (len(SPANS) + len(PHASES))
    return {name.removeprefix("curve: flux "): number for name, number in curve.items()}


def test_the_curve_of_a_black_body_by_hand():
    curve = curve_of(0.5, 0.2)
    emitted = WAVELENGTH[1:4] / 1.5
    glow = 1 / (emitted**3 * np.expm1(4.796 / emitted))  # of g, r and i, at 10,000 K
    assert curve["count"] == 81 and curve["max"] == pytest.approx(glow.sum(), rel=0.02)
    assert (curve["time of max"], curve["span"]) == (pytest.approx(0, abs=2), pytest.approx(400))
    assert (curve["rise from 0.5"], curve["fall to 0.5"]) == (pytest.approx(25), pytest.approx(25))
    assert curve["temperature of all"] == pytest.approx(4, abs=0.02) and curve["misfit of peak"] < 1
    assert curve["temperature at 15 days"] == pytest.approx(4, abs=0.02) and np.isnan(curve["temperature at 170 days"])
    assert curve["error of temperature of all"] < 0.02 and np.isnan(curve["temperature of end"])
    assert curve["evidence per observation"] > 2 and curve["misfit"] < 1


@pytest.mark.parametrize("kelvin", [5000, 10_000, 20_000])
def test_the_curve_at_rest_depends_on_the_source_alone(kelvin):
    near, far = curve_of(0.2, kelvin=kelvin), curve_of(0.8, 0.3, kelvin=kelvin)
    for curve in (near, far):
        for phase in ("of all", "of rise", "of peak", "of fall", "at -15 days", "at 0 days", "at 25 days"):
            assert curve[f"temperature {phase}"] == pytest.approx(np.log10(kelvin), abs=0.03), phase
    for name in ("span", "rise from 0.5", "fall to 0.2"):
        assert far[name] == pytest.approx(near[name], abs=5), name  # one step


def test_what_cools_is_seen_to_cool():
    curve = curve_of(0.3, kelvin=np.where(np.arange(81) > 31, 6000, 20_000))
    assert curve["temperature of rise"] == pytest.approx(np.log10(20_000), abs=0.03)
    assert curve["temperature of fall"] == pytest.approx(np.log10(6000), abs=0.03)
    assert curve["misfit of all"] > 10 * max(curve["misfit of rise"], curve["misfit of fall"])


def test_the_smooth_curve_against_plain_gaussian_processes():
    rng = np.random.default_rng(3)
    days, filters = np.sort(rng.uniform(0, 200, 45)), rng.integers(0, 6, 45)
    e = rng.uniform(0.5, 2, 45)
    x = 20 * np.exp(-(((days - 90) / 30) ** 2)) * (1 + 0.2 * filters) + e * rng.standard_normal(45)
    alone = fit_curves(np.zeros(45, int), filters, days, x, e, 1)
    pair = np.r_[np.zeros(45, int), np.ones(30, int)]
    beside = fit_curves(pair, *(np.r_[part, part[:30]] for part in (filters, days, x, e)), 2)
    assert all(np.array_equal(one[0], two[0]) for one, two in zip(alone, beside, strict=True))

    def matern(distance):
        return (1 + np.sqrt(3) * distance) * np.exp(-np.sqrt(3) * distance)

    def kernel(t, f, other_t, other_f, length, ratio):
        apart = np.abs(np.log(WAVELENGTH)[f][:, None] - np.log(WAVELENGTH)[other_f])
        return matern(np.abs(t[:, None] - other_t) / length) * matern(apart / ratio)

    scale = np.sqrt((x**2).mean() - (e**2).mean())
    noise = np.diag((e / scale) ** 2 + 0.02**2)
    logs = {}
    for kind in itertools.product(DAYS, RATIOS):
        covariance = kernel(days, filters, days, filters, *kind) + noise
        logs[kind] = multivariate_normal(np.zeros(45), covariance).logpdf(x / scale)
    best = max(logs, key=lambda kind: logs[kind])
    silence = multivariate_normal(np.zeros(45), noise).logpdf(x / scale)
    assert alone.evidence[0] == pytest.approx(logs[best] - silence)
    share = np.exp(np.array(list(logs.values())) - logs[best])
    assert alone.days[0] == pytest.approx(np.average([np.log(kind[0]) for kind in logs], weights=share))
    assert alone.ratio[0] == pytest.approx(np.average([np.log(kind[1]) for kind in logs], weights=share))
    inverse = np.linalg.inv(kernel(days, filters, days, filters, *best) + noise)
    asked, number = np.repeat(alone.peak[0] + np.array(PHASES), 6), np.tile(np.arange(6), len(PHASES))
    cross = kernel(asked, number, days, filters, *best)
    np.testing.assert_allclose(alone.mean[0].ravel(), scale * cross @ inverse @ (x / scale), rtol=1e-8)
    variance = scale**2 * (1 - np.einsum("ij,jk,ik->i", cross, inverse, cross))
    np.testing.assert_allclose(alone.variance[0].ravel(), variance, rtol=1e-6)
    fitted = scale * kernel(days, filters, days, filters, *best) @ inverse @ (x / scale)
    assert alone.misfit[0] == pytest.approx((((x - fitted) / scale) ** 2 / np.diag(noise)).mean())
    assert alone.peak[0] == pytest.approx(90, abs=8) and alone.scale[0] == pytest.approx(scale)


def test_of_a_long_series_the_strongest_observations_and_others_evenly_are_kept():
    rng = np.random.default_rng(0)
    strength = [rng.standard_normal(n) for n in (7, 100, 101, 437)]
    series = np.repeat(np.arange(4), [7, 100, 101, 437])
    kept = strongest(series, np.concatenate(strength))
    start = 0
    for s, one in enumerate(strength):
        mine = kept[series[kept] == s] - start
        start += len(one)
        assert len(mine) == min(len(one), 100) and set(np.argsort(-one)[:50]) <= set(mine)
        if len(one) == 437:
            others = np.setdiff1d(np.arange(437), np.argsort(-one)[:50])
            ranks = np.searchsorted(others, np.intersect1d(mine, others))
            assert len(ranks) == 50 and np.diff(ranks).min() >= 7 and np.diff(ranks).max() <= 8


@pytest.mark.parametrize(
    "options",
    [
        {"bands": ["LSST u", "lsst_g", "SDSS-r", "i", "z'", "Y"]},
        {"bands": range(6)},
        {"static": ("hostgal_photoz", "mwebv")},
        {"static": ("z_spec", "E(B-V)")},
        {"static": ("Redshift", "ebv")},
        {"names": ("PSF_Flux", "psf_flux_error")},
    ],
)
def test_filters_redshift_and_reddening_are_known_by_their_names(options):
    usual, usual_names = features(black_body((0.5, 0.2)))
    table, names = features(black_body((0.5, 0.2), **options))
    flux = options.get("names", ["flux"])[0]
    brightness = usual[0, usual_names.index("curve: flux max")]
    assert table[0, names.index(f"curve: {flux} max")] == pytest.approx(brightness, rel=1e-3)


@pytest.mark.parametrize(
    ("names", "bands"),
    [(("magpsf", "sigmapsf"), {"g": 1, "r": 2}), (("mag", "mag_err"), {"g": "zg", "i": "zi"})],
)
def test_magnitudes_and_their_limits_have_the_curve_of_the_fluxes(names, bands):
    source = black_body((0.5, 0.2), static=())
    band = np.array(source.channel_names)[source.channels]
    keep = np.isin(band, list(bands))
    label = [bands[one] for one in band[keep].tolist()]
    flux, error = source.values[keep].T
    dark = flux < 5 * error
    flux[dark] = 0
    both = np.stack([flux, error], 1)
    usual = SeriesDataset.from_arrays([source.times[keep]], [both], [band[keep]], value_names=["flux", "flux_err"])
    faint = np.where(dark, 5 * error, flux)
    magnitude = 25 - 2.5 * np.log10(faint)
    shown = [f">{one:.12f}" if far else f"{one:.12f}" for one, far in zip(magnitude, dark, strict=True)]
    columns = {"id": 0, "time": source.times[keep], "band": label, names[0]: shown}
    columns[names[1]] = np.where(dark, np.nan, error / flux.clip(1e-9) * 2.5 / np.log(10))
    data = SeriesDataset.from_frame(pd.DataFrame(columns), channel="band", values=names[:1], errors=names[1:])
    of_fluxes, of_magnitudes = (dict(zip(one[1], one[0][0], strict=True)) for one in (features(usual), features(data)))
    assert dark.sum() > 100
    for name, number in of_magnitudes.items():
        if name.startswith("curve: "):
            same = of_fluxes.get(name.replace(names[0], "flux"), np.nan)
            assert number == pytest.approx(same, rel=1e-6, nan_ok=True), name


@pytest.mark.parametrize("static", [("Z_err", "EBV"), ()])
def test_without_a_redshift_the_curve_is_that_of_the_observed_fluxes(static):
    data = black_body((0.5, 0.2), static=static)
    table, names = features(data)
    span, height = (table[0, names.index(f"curve: flux {name}")] for name in ("span", "max"))
    brightest = [data.values[data.channels == data.channel_names.index(band), 0].max() for band in "gri"]
    clear = 10 ** (0.4 * DIMMING[1:4] * 0.2) if "EBV" in static else 1
    assert span == pytest.approx(600) and height == pytest.approx((np.array(brightest) * clear).sum(), rel=0.02)


@pytest.mark.parametrize(
    "options",
    [
        {"names": ("flux",)},
        {"names": ("count", "count_err")},
        {"names": ("mag",)},
        {"names": ("image", "image_err")},
        {"bands": ["u", "g", "r", "i", "z", "w"]},
        {"bands": range(1, 7)},
    ],
)
def test_there_is_a_curve_only_of_a_brightness_with_errors_in_filters(options):
    assert not any(name.startswith("curve") for name in features(black_body((0.5, 0.2), **options))[1])


def test_trees_read_a_redshift_only_where_it_is_named():
    data = black_body((0.5, 0.2), (0.3, 0.1))
    without = series_features(data, ())
    plain = features(dataclasses.replace(data, static={}))
    assert without[1] == plain[1] and np.array_equal(without[0], plain[0], equal_nan=True)
    named, span = series_features(data, fit_static(data, ("Z",)))[0], plain[1].index("curve: flux span")
    assert named[0, span] == pytest.approx(400) and plain[0][0, span] == pytest.approx(600)


@pytest.mark.parametrize("missing", [np.nan, -9.0])
def test_a_series_without_a_redshift_has_no_curve_and_others_keep_theirs(missing):
    both = black_body((0.5, 0.2), (0.3, 0.1))
    whole, names = features(both)
    table, _ = features(dataclasses.replace(both, static=both.static | {"Z": np.array([missing, 0.3])}))
    for name, number in zip(names, table[0], strict=True):
        if name.startswith("curve: "):
            assert number == 0 if "count" in name or "strength" in name else np.isnan(number), name
    np.testing.assert_allclose(table[1], whole[1], rtol=1e-9)


@pytest.mark.parametrize("unit", [1.0, 86400e9])
def test_curves_of_short_or_dark_series_are_not_infinite_in_any_unit_of_time(unit):
    lengths = [1, 2, 3, 30, 1, 5]
    values = [[[i - 1.0, 0.5 + i % 2] for i in range(n)] for n in lengths[:-2]] + [[[1.0, 0.0]], [[0.0, 1.0]] * 5]
    data = SeriesDataset.from_arrays(
        [np.arange(n) * 9.0 * unit for n in lengths], values, [list("ugrizy" * 5)[:n] for n in lengths],
        value_names=["flux", "flux_err"], static={"z": [0.0, -0.5, 1.0, 0.3, 0.1, 0.2]},
    )  # fmt: skip
    table, names = features(data)
    assert not np.isinf(table).any()
    assert table[:, names.index("curve: flux count")].tolist() == [0, 0, 3, 30, 0, 0]
