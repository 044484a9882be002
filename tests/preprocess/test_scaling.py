"""Scaling: exact inverses channel by channel, units by a stated rule, and statistics that one row cannot move."""

import copy
import json
import warnings
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import identity, refuses, says
from rotarymae.datasets import PREPROCESSORS
from rotarymae.errors import InputWarning
from rotarymae.preprocess import DatasetExamples, ObservationPreprocessor
from rotarymae.preprocess.positions import PositionScaling
from rotarymae.preprocess.values import KNEE, KNEES, NO_LIMIT, ValueScaling
from rotarymae.series.dataset import SeriesDataset
from rotarymae.system import from_fields


def dataset(times, values=None, channels=None, **names):
    values = [np.arange(len(t), dtype=float) for t in times] if values is None else values
    return SeriesDataset.from_arrays(times, values, channels, **names)


def two_channels(n=400, heavy=False):
    """Channels a and b in turn, of different centre and spread; two features."""
    draw = np.random.default_rng(0)
    noise = draw.standard_t(1.2, (2 * n, 2)) if heavy else draw.normal(size=(2 * n, 2))
    values = noise * np.tile([[3.0], [50.0]], (n, 1)) + np.tile([[10.0], [-200.0]], (n, 1))
    times, channels = np.repeat(np.arange(float(n)), 2), np.tile(["a", "b"], n)
    data = dataset([times], [values], [channels], value_names=["x", "y"])
    return data, np.asarray(data.channels)


def by_hand(transforms, centre, width, mean, std):
    scaling = ValueScaling(transforms, len(centre))
    knee, limit = ([[number]] * len(centre) for number in (KNEES[transforms[0]], NO_LIMIT))
    tables = {"centre": centre, "width": width, "mean": mean, "std": std, "knee": knee, "limit": limit}
    for name, table in tables.items():
        getattr(scaling, name)[:] = torch.tensor(table, dtype=torch.float64)
    return scaling


# ── values ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def reference(scaling, values, channels):
    """The formulas of the module, with numpy."""
    out = np.empty_like(values)
    centre, width, mean, std, limit = (
        scaling.state_dict()[n].numpy() for n in ("centre", "width", "mean", "std", "limit")
    )
    for i, c in enumerate(channels):
        for v, name in enumerate(scaling.transforms):
            u = (values[i, v] - centre[c, v]) / width[c, v]
            knee = {"robust": KNEE, "asinh": 0.0}.get(name, np.inf)  # "x" is heavy-tailed
            y = u if abs(u) <= knee else np.sign(u) * (knee + np.arcsinh(abs(u) - knee))
            y = np.clip(y, -limit[c, v], limit[c, v])
            out[i, v] = values[i, v] if name == "none" else (y - mean[c, v]) / std[c, v]
    return out


@pytest.mark.parametrize("transform", ["robust", "standard", "asinh", "none"])
def test_transform_is_the_formula_and_inverse_undoes_it(transform):
    data, channels = two_channels(heavy=True)
    data = replace(data, values=np.clip(data.values, -2000, 2000))  # within the limits
    scaling = ValueScaling.fit(data, {"x": transform, "y": "standard"})
    scaled = scaling.transform(data.values, channels)
    assert np.allclose(scaled, reference(scaling, data.values, channels), rtol=1e-12, atol=1e-12)
    back = scaling.inverse(scaled, channels)
    assert np.abs(back - data.values).max() <= 1e-9 * np.abs(data.values).max()
    assert (transform == "none") == np.array_equal(scaled[:, 0], data.values[:, 0])


@pytest.mark.parametrize("transform", ["robust", "asinh"])
@given(x=st.floats(-1e6, 1e6), channel=st.integers(0, 1))
@settings(max_examples=60, deadline=None)
def test_inverse_undoes_transform_at_any_value(transform, x, channel):
    scaling = by_hand((transform,), [[1.0], [-5.0]], [[2.0], [0.5]], [[0.3], [1.0]], [[2.0], [0.1]])
    one = np.array([[x]])
    back = scaling.inverse(scaling.transform(one, np.array([channel])), np.array([channel]))
    assert back.item() == pytest.approx(x, rel=1e-9, abs=1e-9)


def test_each_channel_is_standardised_for_itself():
    data, channels = two_channels(4000)
    scaling = ValueScaling.fit(data)
    assert scaling.transforms == ("robust", "robust")
    scaled = scaling.transform(data.values, channels)
    for c in (0, 1):
        assert np.abs(scaled[channels == c].mean(0)).max() < 0.02
        assert np.abs(scaled[channels == c].std(0) - 1).max() < 0.05


def test_few_values_by_hand():
    data = dataset([[0.0, 1.0, 2.0, 3.0]], [[1.0, 3.0, 10.0, 30.0]], [["a", "a", "b", "b"]])
    scaling = ValueScaling.fit(data)
    both = scaling.transform(np.array([[4.0], [40.0], [2.0]]), np.array([0, 1, 0]))
    assert np.allclose(both.ravel(), [2, 2, 0])
    asinh = by_hand(("asinh",), [[1.0]], [[2.0]], [[0.0]], [[1.0]])
    assert asinh.transform(np.array([[5.0]]), np.array([0])).item() == pytest.approx(np.arcsinh(2.0))


@pytest.mark.parametrize("constant", [0.0, 5.0, 0.1, -1e9])
def test_a_constant_channel_has_std_one(constant):
    data = dataset([np.arange(40.0)], [np.r_[np.full(20, constant), np.arange(20.0)]], [["a"] * 20 + ["b"] * 20])
    scaling = ValueScaling.fit(data)
    scaled = scaling.transform(np.array([[constant], [constant + 1]]), np.array([0, 0])).ravel()
    assert abs(scaled[0]) < 1e-6 and scaled[1] == pytest.approx(1, abs=1e-6)


def test_a_clock_that_drifts_is_not_constant():
    drift = 1e-3 * np.random.default_rng(0).normal(size=500)
    data = dataset([np.arange(500.0)], [1e7 + drift])
    assert ValueScaling.fit(data).transform(data.values, np.zeros(500, int)).std() == pytest.approx(1, rel=0.05)


def test_many_equal_numbers_are_constant():
    data = dataset([np.arange(400_000.0)], [np.full((400_000, 2), 0.1)])
    assert ValueScaling.fit(data).std.tolist() == [[1.0, 1.0]]


def test_small_numbers_are_not_constant():
    data = dataset([np.arange(5.0)], [1e-60 * np.arange(5.0)])
    assert 0.5 < ValueScaling.fit(data).transform(data.values, np.zeros(5, int)).std() < 2.5


def test_values_that_are_mostly_one_number_take_the_spread_of_the_others():
    rain = np.zeros(1000)
    rain[::10] = np.random.default_rng(0).uniform(5, 10, 100)
    scaled = ValueScaling.fit(dataset([np.arange(1000.0)], [rain])).transform(rain[:, None], np.zeros(1000, int))
    assert 0.5 < scaled.std() < 2 and np.abs(scaled).max() < 10
    flag = np.zeros(1000)
    flag[7] = 1.0
    scaled = ValueScaling.fit(dataset([np.arange(1000.0)], [flag])).transform(flag[:, None], np.zeros(1000, int))
    assert np.isfinite(scaled).all() and np.abs(scaled).max() < 20


def test_a_channel_without_observations_takes_the_statistics_of_all():
    data = dataset([np.arange(4.0)], [[1.0, 3.0, 1.0, 3.0]], [["a"] * 4], channel_names=["a", "b"])
    scaling = ValueScaling.fit(data)
    for statistic in scaling.state_dict().values():
        assert statistic[0].equal(statistic[1])


def test_a_limit_is_no_value_and_hides_no_value_of_another_column():
    draw = np.random.default_rng(0)
    values, sides = draw.normal((3, -200), (2, 9), (400, 2)), np.zeros((400, 2), np.int8)
    values[:200, 0], sides[:200, 0] = 1e6, -1
    values[399, :], sides[399, :] = 1e6, 1  # of channel b, which has limits only
    channels = [["a"] * 399 + ["b"]]
    data = replace(dataset([np.arange(400.0)], [values], channels), sides=sides)
    fitted = ValueScaling.fit(data).state_dict()
    for v, rows in ((0, slice(200, 399)), (1, slice(399))):
        alone = ValueScaling.fit(dataset([np.arange(400.0)[rows]], [values[rows, v]]))
        for name, statistic in alone.state_dict().items():
            assert torch.equal(fitted[name][:, v], statistic[0].expand(2)), name
    only = ValueScaling.fit(replace(data, sides=np.ones_like(sides)))
    assert all(statistic.isfinite().all() for statistic in only.state_dict().values())


def test_far_predictions_stay_finite():
    scaling = by_hand(("robust",), [[0.0]], [[1.0]], [[0.0]], [[1.0]])
    assert np.isfinite(scaling.inverse(np.array([[1e6], [-1e6]]), np.array([0, 0]))).all()


@pytest.mark.parametrize(
    ("transforms", "parts"), [({"z": "asinh"}, ("'z'", "x, y")), ({"x": "arsinh"}, ("'arsinh'", "Did you mean"))]
)
def test_a_transform_of_no_column_or_of_no_known_name_is_refused(transforms, parts):
    with refuses(*parts):
        ValueScaling.fit(two_channels(30)[0], transforms)


# ── what one row can spoil ──────────────────────────────────────────────────────────────────────────────────────────


def base_table(change=None):
    """80 series, channels g and r, 15 times each; `change` may alter its columns."""
    draw = np.random.default_rng(0)
    rows = [
        (i, t, b, np.sin(t / (2 + i % 2)) + 0.3 * (b == "r") + 0.1 * draw.normal())
        for i in range(80)
        for b in "gr"
        for t in np.sort(draw.uniform(0, 60, 15)).round(3)
    ]
    ids, times, bands, values = (np.array(column) for column in zip(*rows, strict=True))
    if change is not None:
        change(times, values)
    parts = [np.flatnonzero(ids == i) for i in range(80)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # times come band by band
        return SeriesDataset.from_arrays(
            [times[at] for at in parts], [values[at] for at in parts], [bands[at].tolist() for at in parts]
        )


def tokens_by_time(data, preprocessor):
    """{(series, channel, time): (value, position)} of all tokens."""
    tokens = DatasetExamples(data, preprocessor).tokens(np.arange(len(data)), None)
    channel = np.asarray(data.channels)
    flat = zip(tokens.values[tokens.real][:, 0].tolist(), tokens.positions[tokens.real][:, 0].tolist(), strict=True)
    owner = np.repeat(np.arange(len(data)), data.lengths)
    return dict(zip(zip(owner.tolist(), channel.tolist(), data.times.tolist(), strict=True), flat, strict=True))


def difference(before, after):
    common = before.keys() & after.keys()
    assert len(common) >= len(before) - 80
    return np.max([np.abs(np.subtract(before[key], after[key])) for key in common], axis=0)


def test_one_wild_value_moves_nothing_and_is_named():
    def spoil(times, values):
        values[1234] = 1e7

    clean, spoilt = base_table(), base_table(spoil)
    plain = ObservationPreprocessor.fit(clean)
    with pytest.warns(InputWarning, match=says("1 value", "column 'value' is 1e+07", "series 41")) as caught:
        robust = ObservationPreprocessor.fit(spoilt)
    assert len(caught) == 1
    before, after = tokens_by_time(clean, plain), tokens_by_time(spoilt, robust)
    wild = max(after.values())[0]
    moved = difference(before, {key: token for key, token in after.items() if token[0] != wild})
    assert moved[0] < 0.02 and moved[1] == 0  # in deviations, of values in any channel and series
    assert 4 < wild < 10  # compressed, not cut off
    other = [key for key in before if key[1] != 0 and key in after]
    spoilt_channel = int(np.asarray(spoilt.channels)[spoilt.values[:, 0].argmax()])
    assert all(before[key] == after[key] for key in other if key[1] != spoilt_channel)


def test_one_time_decades_before_in_every_series_moves_nothing():
    def spoil(times, values):
        times[::30] = -20_000.0  # the first of band g in every series

    clean, spoilt = base_table(), base_table(spoil)
    plain = ObservationPreprocessor.fit(clean)
    robust = ObservationPreprocessor.fit(spoilt)
    assert abs(robust.positions.unit / plain.positions.unit - 1) < 0.05
    assert robust.positions.reach < 1.1 * plain.positions.reach
    for data, made in ((clean, plain), (spoilt, robust)):
        tokens = DatasetExamples(data, made).tokens(np.arange(80), None)
        later = tokens.positions[..., 0][tokens.positions[..., 0] > -1000]
        assert later.min() >= 0 and later.max() <= made.positions.reach + 1e-4


def test_one_time_a_year_off_in_one_series_moves_nothing():
    def spoil(times, values):
        times[330] += 365.0

    made = ObservationPreprocessor.fit(base_table(spoil))
    plain = ObservationPreprocessor.fit(base_table())
    assert abs(made.positions.unit / plain.positions.unit - 1) < 0.01 and made.positions.reach < 100


def test_fluxes_over_six_decades_are_not_named():
    draw = np.random.default_rng(0)
    flux = draw.choice([-1, 1], (20, 500)) * 10 ** draw.normal(1.5, 1.2, (20, 500))
    flux[3, 7] = 2e6
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = ObservationPreprocessor.fit(dataset([np.arange(500.0)] * 20, list(flux)))
    scaled = made.values.transform(flux.reshape(-1, 1), np.zeros(10_000, int))
    assert scaled.std() == pytest.approx(1, abs=0.1) and np.abs(scaled).max() < 12


# ── positions ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_unit_by_hand():
    # Gaps 1, 1, 4 and 2, 3: medians 1 and 2.5; duplicates within a series are no gap, nor is the step to the next.
    data = dataset([[100.0, 101.0, 102.0, 106.0], [0.0, 2.0, 5.0]])
    assert PositionScaling.fit(data).unit == 1.75
    twice = dataset([[0.0, 0.0, 4.0, 4.0]], channels=[["a", "b", "a", "b"]])
    assert PositionScaling.fit(twice).unit == 4.0
    # Bursts: gaps of 0.001 over a span of 1000 would need a million units; a thousandth of the span is taken.
    burst = dataset([[0.0, 0.001, 0.002, 999.0, 999.001, 999.002]])
    assert PositionScaling.fit(burst).unit == pytest.approx(2 * 998.999 / 1000, rel=1e-3)
    assert PositionScaling.fit(dataset([[7.0], [8.0]])).unit == 1.0  # nothing to measure
    assert PositionScaling.fit(data, unit=0.5).unit == 0.5


@pytest.mark.parametrize("origin", ["first", "zero"])
def test_origins(origin):
    data = dataset([[100.0, 104.0], [10.0, 12.0, 18.0]])
    made = ObservationPreprocessor.fit(data, time_unit=2.0, origin=origin)
    tokens = DatasetExamples(data, made).tokens(np.arange(2), None)
    at = tokens.positions[tokens.real][:, 0].tolist()
    assert at == ([0, 2, 0, 1, 4] if origin == "first" else [50, 52, 5, 6, 9])
    assert made.positions.reach == (4 if origin == "first" else 52)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_origins_of_padded_rows_are_those_of_the_data_set(seed):
    draw = np.random.default_rng(seed)
    lengths = draw.integers(1, 12, 5)
    times = [np.sort(draw.choice([-1e4, 0, 0], n) + draw.uniform(0, 3, n)) for n in lengths]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # reading names times that are far from the others
        data, scaling = dataset(times), PositionScaling(0)
    rows = torch.full((5, 14), torch.nan, dtype=torch.float64)
    for row, one in zip(rows, times, strict=True):
        row[: len(one)] = torch.from_numpy(draw.permutation(one))
    found = scaling.origins_of_rows(rows.nan_to_num(1e9), ~rows.isnan())
    assert found[:, 0].tolist() == scaling.origins(data).tolist()


def test_times_like_mjd_keep_their_precision():
    small = np.array([0.0, 1e-6, 0.5, 1.25])
    data = dataset([59_000.0 + small])
    made = ObservationPreprocessor.fit(data, time_unit=1.0)
    at = DatasetExamples(data, made).tokens(np.array([0]), None).positions[0, :, 0].numpy()
    assert np.abs(at - small).max() < 1e-9  # of which float32 times, 0.004 apart, know nothing


def test_each_further_column_has_its_own_origin_and_unit():
    draw = np.random.default_rng(0)
    positions = [np.stack([draw.uniform(40, 60, 400), draw.uniform(-5000, 0, 400)], 1) for _ in range(6)]
    data = dataset(
        [np.sort(draw.uniform(0, 100, 400)) for _ in range(6)], positions=positions, position_names=("lat", "depth")
    )
    made = ObservationPreprocessor.fit(data)
    assert made.axes == 3 and made.position_names == ("lat", "depth")
    assert np.allclose(made.positions.column_origins, [50, -2500], atol=100)
    assert np.allclose(made.positions.units[1:], [20 / 20, 5000 / 20], rtol=0.15)  # 400 places: 20 along each axis
    tokens = DatasetExamples(data, made).tokens(np.array([2]), None)
    wanted = (data[2].positions - made.positions.column_origins.numpy()) / made.positions.units[1:].numpy()
    assert np.allclose(tokens.positions[0, :, 1:], wanted, atol=1e-5)
    with refuses("none", "lat", code="other-positions"):
        made.check(replace(data, positions=None, position_names=()))


def test_one_wild_position_does_not_move_the_units():
    draw = np.random.default_rng(0)
    places = draw.uniform(0, 10, (300, 1))
    wild = places.copy()
    wild[17] = 1e6
    both = [ObservationPreprocessor.fit(dataset([np.arange(300.0)], positions=[one])) for one in (places, wild)]
    assert both[1].positions.units[1] == pytest.approx(both[0].positions.units[1].item(), rel=0.05)


# ── both, saved ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("channels", [True, False])
def test_a_saved_preprocessor_is_the_same_one(channels):
    data = two_channels()[0] if channels else dataset([[0.0, 1.0, 3.0]])
    made = ObservationPreprocessor.fit(data, origin="zero", channel_spacing=2.0)
    back = from_fields(PREPROCESSORS[made.kind], json.loads(json.dumps(asdict(made))), "preprocessor")
    back.load_state_dict(made.state_dict())
    assert identity(back) == identity(made) == identity(copy.deepcopy(made))
    assert (back.axes, back.features) == ((2, 2) if channels else (1, 1))
    assert made.channel_names == (("a", "b") if channels else None)
    assert set(made.describe()) >= {"values", "channels", "unit of time", "times count from"}
    shorter = made.replace(window=5)
    assert shorter.window == 5 and made.window is None
    assert shorter.values.centre.equal(made.values.centre) and identity(shorter) != identity(made)
    other = made.replace()
    other.values.mean += 1
    assert identity(other) != identity(made)


def test_statistics_that_are_not_there_are_not_used_in_silence():
    data = two_channels(30)[0]
    empty = from_fields(ObservationPreprocessor, asdict(ObservationPreprocessor.fit(data)), "preprocessor")
    with refuses("nan"):
        DatasetExamples(data, empty.replace()).tokens(np.array([0]), None)


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (lambda d: d.update(extra=1), ("preprocessor has no field 'extra'",)),
        (lambda d: d.pop("value_names"), ("preprocessor lacks the field 'value_names'",)),
        (lambda d: d["inputs"].update(means=1), ("inputs has no field 'means'",)),
    ],
)
def test_an_unknown_or_missing_field_is_named(change, parts):
    fields = json.loads(json.dumps(asdict(ObservationPreprocessor.fit(two_channels(30)[0]))))
    change(fields)
    with refuses(*parts):
        from_fields(ObservationPreprocessor, fields, "preprocessor")


def test_a_dataset_of_other_values_or_channels_is_refused():
    data = two_channels(30)[0]
    made = ObservationPreprocessor.fit(data)
    made.check(data)
    with refuses("y, x", "x, y", "in the same order", "rename yours"):
        made.check(replace(data, value_names=("y", "x")))
    with refuses("'b', 'a'", "'a', 'b'", "channel_names", "leave out --values"):
        made.check(replace(data, channel_names=("b", "a")))
    with refuses("the channels are none", "trained on 'a', 'b'"):
        made.check(replace(data, channels=None, channel_names=None))


def test_far_positions_get_a_warning_that_names_the_series():
    made = ObservationPreprocessor.fit(dataset([[0.0, 10.0], [0.0, 20.0]]), time_unit=1.0)
    near = dataset([[0.0, 15.0], [5.0, 36.0]], ids=["near", "also near"])  # 1.5 · 20 + 1 and no further
    far = dataset([[0.0, 10.0], [5.0, 6.0, 40.0]], ids=["near", "distant"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made.check(near)
    with pytest.warns(InputWarning, match=says("'distant'", "35", "training reached 20", "1 series reach")):
        made.check(far)


def test_a_channel_in_another_unit_is_named_once():
    draw = np.random.default_rng(0).normal(size=(10, 20, 2))
    data = dataset([np.arange(20.0)] * 10, list(draw), [["u"] * 20] * 10)
    with pytest.warns(InputWarning, match="the values of 'u' are far"):
        ObservationPreprocessor.fit(data).check(replace(data, values=data.values * 1000))
