"""Scaling: exact inverses, channel by channel; units by a stated rule; a preprocessor that is the same when saved."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import refuses, says
from rotarymae.errors import InputWarning
from rotarymae.series import scaling
from rotarymae.series.dataset import SeriesDataset
from rotarymae.series.preprocessor import Preprocessor
from rotarymae.series.scaling import PositionScaler, ValueScaler


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


# ── values ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("transform", ["standard", "asinh", "none"])
def test_inverse_undoes_transform(transform):
    data, channels = two_channels(heavy=True)
    scaler = ValueScaler.fit(data, {"x": transform, "y": "standard"})
    scaled = scaler.transform(data.values, channels)
    back = scaler.inverse(scaled, channels)
    assert np.abs(back - data.values).max() <= 1e-9 * np.abs(data.values).max()
    assert scaler.transforms == (transform, "standard")
    assert (transform == "none") == np.array_equal(scaled[:, 0], data.values[:, 0])


@given(x=st.floats(-1e6, 1e6), channel=st.integers(0, 1))
@settings(max_examples=60, deadline=None)
def test_inverse_undoes_transform_at_any_value(x, channel):
    scaler = ValueScaler(("asinh",), ((1.0,), (-5.0,)), ((2.0,), (0.5,)), ((0.3,), (1.0,)), ((2.0,), (0.1,)))
    one = np.array([[x]])
    back = scaler.inverse(scaler.transform(one, np.array([channel])), np.array([channel]))
    assert back.item() == pytest.approx(x, rel=1e-9, abs=1e-9)


def test_each_channel_is_standardised_for_itself():
    data, channels = two_channels()
    scaler = ValueScaler.fit(data)
    assert scaler.transforms == ("standard", "standard")
    scaled = scaler.transform(data.values, channels)
    for c in (0, 1):
        assert np.abs(scaled[channels == c].mean(0)).max() < 1e-12
        assert np.abs(scaled[channels == c].std(0) - 1).max() < 1e-12


def test_by_hand():
    data = dataset([[0.0, 1.0, 2.0, 3.0]], [[1.0, 3.0, 10.0, 30.0]], [["a", "a", "b", "b"]])
    scaler = ValueScaler.fit(data)
    assert scaler.mean == ((2.0,), (20.0,)) and scaler.std == ((1.0,), (10.0,))
    both = scaler.transform(np.array([[4.0], [40.0]]), np.array([0, 1]))
    assert both.ravel().tolist() == [2, 2]
    asinh = ValueScaler(("asinh",), ((1.0,),), ((2.0,),), ((0.0,),), ((1.0,),))
    assert asinh.transform(np.array([[5.0]]), np.array([0])).item() == pytest.approx(np.arcsinh(2.0))


def test_asinh_is_chosen_for_heavy_tails_and_not_for_normal_data():
    draw = np.random.default_rng(1)
    times = [np.arange(2000.0)]
    both = np.stack([draw.normal(size=2000), draw.standard_t(1.0, 2000)], 1)
    assert ValueScaler.fit(dataset(times, [both])).transforms == ("standard", "asinh")
    assert ValueScaler.fit(dataset(times, [both]), {"value_1": "standard"}).transforms == ("standard", "standard")
    few = ValueScaler.fit(dataset([np.arange(19.0)], [np.r_[np.zeros(9), np.ones(9), 1e6]]))
    assert few.transforms == ("standard",)  # under 20 observations say nothing of tails
    # One heavy channel is enough.
    channels = [np.tile(["a", "b"], 1000)]
    mixed = np.where(channels[0] == "a", draw.normal(size=2000), draw.standard_t(1.0, 2000))
    assert ValueScaler.fit(dataset(times, [mixed], channels)).transforms == ("asinh",)


@pytest.mark.parametrize("constant", [0.0, 5.0, 0.1, -1e9])
def test_a_constant_channel_has_std_one(constant):
    data = dataset([np.arange(40.0)], [np.r_[np.full(20, constant), np.arange(20.0)]], [["a"] * 20 + ["b"] * 20])
    scaler = ValueScaler.fit(data)
    assert scaler.std[0] == (1.0,) and scaler.std[1] != (1.0,)
    scaled = scaler.transform(np.array([[constant], [constant + 1]]), np.array([0, 0])).ravel()
    assert abs(scaled[0]) < 1e-6 and scaled[1] == pytest.approx(1, abs=1e-6)


def test_a_clock_that_drifts_is_not_constant():
    drift = 1e-3 * np.random.default_rng(0).normal(size=500)
    data = dataset([np.arange(500.0)], [1e7 + drift])
    assert ValueScaler.fit(data).transform(data.values, np.zeros(500, int)).std() == pytest.approx(1, rel=1e-3)


def test_many_equal_numbers_are_constant():
    data = dataset([np.arange(400_000.0)], [np.full((400_000, 2), 0.1)])
    assert ValueScaler.fit(data).std == ((1.0, 1.0),)


def test_small_numbers_are_not_constant():
    data = dataset([np.arange(5.0)], [1e-60 * np.arange(5.0)])
    assert ValueScaler.fit(data).transform(data.values, np.zeros(5, int)).std() == pytest.approx(1)


def test_a_channel_without_observations_takes_the_statistics_of_all():
    data = dataset([np.arange(4.0)], [[1.0, 3.0, 1.0, 3.0]], [["a"] * 4], channel_names=["a", "b"])
    scaler = ValueScaler.fit(data)
    assert scaler.mean == ((2.0,), (2.0,)) and scaler.std == ((1.0,), (1.0,))


def test_far_predictions_stay_finite():
    scaler = ValueScaler(("asinh",), ((0.0,),), ((1.0,),), ((0.0,),), ((1.0,),))
    assert np.isfinite(scaler.inverse(np.array([[1e6], [-1e6]]), np.array([0, 0]))).all()


@pytest.mark.parametrize(
    ("transforms", "parts"),
    [({"z": "asinh"}, ("'z'", "x, y")), ({"x": "log"}, ("'log' of 'x'", "standard, asinh, none"))],
)
def test_transforms_that_cannot_be_are_refused(transforms, parts):
    with refuses(*parts):
        ValueScaler.fit(two_channels(30)[0], transforms)


# ── positions ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_unit_by_hand():
    # Gaps 1, 1, 4 and 2, 3; duplicates within a series are no gap, nor is the step to the next series.
    data = dataset([[100.0, 101.0, 102.0, 106.0], [0.0, 2.0, 5.0]])
    assert PositionScaler.fit(data).unit == 2.0  # the median of 1, 1, 2, 3, 4
    twice = dataset([[0.0, 0.0, 4.0, 4.0]], channels=[["a", "b", "a", "b"]])
    assert PositionScaler.fit(twice).unit == 4.0
    # Bursts: gaps of 0.001 over a span of 1000 would need a million units; a thousandth of the span is taken.
    burst = dataset([[0.0, 0.001, 0.002, 999.0, 1000.0]])
    assert PositionScaler.fit(burst).unit == 1.0
    assert PositionScaler.fit(dataset([[7.0], [8.0]])).unit == 1.0  # nothing to measure
    assert PositionScaler.fit(data, unit=0.5).unit == 0.5


@pytest.mark.parametrize("origin", ["first", "zero"])
def test_origins(origin):
    data = dataset([[100.0, 104.0], [10.0, 12.0, 18.0]])
    scaler = PositionScaler.fit(data, unit=2.0, origin=origin)
    at = scaler.times(data.times, scaler.origins(data), data.lengths)
    assert at.tolist() == ([0, 2, 0, 1, 4] if origin == "first" else [50, 52, 5, 6, 9])
    assert scaler.reach == (4 if origin == "first" else 52)


def test_times_like_mjd_keep_their_precision():
    small = np.array([0.0, 1e-6, 0.5, 1.25])
    data = dataset([59_000.0 + small])
    scaler = PositionScaler.fit(data, unit=1.0)
    at = scaler.times(data.times, scaler.origins(data), data.lengths)
    assert at.dtype == np.float64 and np.abs(at - small).max() < 1e-10
    assert np.abs(np.float32(at) - small).max() < 1e-9  # of which float32 times, 0.004 apart, know nothing


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ({"origin": "last"}, ("'last'", "'first'", "'zero'")),
        ({"unit": 0.0}, ("unit of positions is 0.0", "positive")),
        ({"unit": float("nan")}, ("unit of positions is nan",)),
        ({"channel_spacing": -1.0}, ("channel_spacing of positions is -1.0",)),
    ],
)
def test_positions_that_cannot_be_are_refused(arguments, parts):
    with refuses(*parts):
        PositionScaler.fit(dataset([[0.0, 1.0]]), **arguments)


# ── both, saved ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("channels", [True, False])
def test_a_saved_preprocessor_is_the_same_one(channels):
    data = two_channels()[0] if channels else dataset([[0.0, 1.0, 3.0]])
    made = Preprocessor.fit(data, origin="zero", channel_spacing=2.0)
    made = replace(made, classes=("x", "y"), target=((0.5, 2.0),))
    back = Preprocessor.from_dict(json.loads(json.dumps(made.to_dict())))
    assert back == made and (back.axes, back.features) == ((2, 2) if channels else (1, 1))
    assert made.channel_names == (("a", "b") if channels else None)
    assert set(made.describe()) >= {"values", "channels", "unit of time", "times count from"}


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (lambda d: d.update(extra=1), ("preprocessor has no field 'extra'",)),
        (lambda d: d.pop("value_names"), ("preprocessor lacks the field 'value_names'",)),
        (lambda d: d.pop("values"), ("preprocessor lacks the field 'values'",)),
        (lambda d: d["values"].pop("mean"), ("values lacks the field 'mean'",)),
        (lambda d: d["values"].update(means=1), ("values has no field 'means'",)),
        (lambda d: d["positions"].pop("unit"), ("positions lacks the field 'unit'",)),
    ],
)
def test_an_unknown_or_missing_field_is_named(change, parts):
    fields = json.loads(json.dumps(Preprocessor.fit(two_channels(30)[0]).to_dict()))
    change(fields)
    with refuses(*parts):
        Preprocessor.from_dict(fields)


def test_a_dataset_of_other_values_or_channels_is_refused():
    data = two_channels(30)[0]
    made = Preprocessor.fit(data)
    made.check(data)
    with refuses("y, x", "x, y", "in this order"):
        made.check(replace(data, value_names=("y", "x")))
    with refuses("('b', 'a')", "('a', 'b')", "channel_names="):
        made.check(replace(data, channel_names=("b", "a")))
    with refuses("None", "('a', 'b')"):
        made.check(replace(data, channels=None, channel_names=None))


def test_far_positions_get_a_warning_that_names_the_series():
    made = Preprocessor.fit(dataset([[0.0, 10.0], [0.0, 20.0]]), time_unit=1.0)
    near = dataset([[0.0, 15.0], [5.0, 36.0]], ids=["near", "also near"])  # 1.5 · 20 + 1 and no further
    far = dataset([[0.0, 10.0], [5.0, 6.0, 40.0]], ids=["near", "distant"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made.check(near)
    with pytest.warns(InputWarning, match=says("'distant'", "35", "training reached 20", "1 series reach")):
        made.check(far)


def test_a_transform_is_added_in_one_place(monkeypatch):
    cube = scaling.Transform(lambda x, centre, width: np.cbrt(x), lambda y, centre, width: y**3, True, "cube root")
    monkeypatch.setitem(scaling.TRANSFORMS, "cbrt", cube)
    data = dataset([[0.0, 1.0, 2.0], [0.0, 1.0]])
    made = Preprocessor.fit(data, {"value": "cbrt"})
    assert Preprocessor.from_dict(json.loads(json.dumps(made.to_dict()))) == made
    values, channels = np.array([[1.0], [8.0], [-27.0]]), np.zeros(3, int)
    scaled = made.values.transform(values, channels)
    assert np.allclose(np.diff(scaled[:, 0]) * made.values.std[0][0], [1, -5])
    assert np.allclose(made.values.inverse(scaled, channels), values)
