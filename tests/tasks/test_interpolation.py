"""Values at any times: what is hidden, where is asked, what is refused, and the bands."""

import dataclasses

import numpy as np
import pyarrow as pa
import pytest
import torch
from scipy.stats import norm

from _runs import FIT, waves
from conftest import refuses
from rotarymae import interpolation
from rotarymae.calibration import calibrate
from rotarymae.errors import InputWarning
from rotarymae.interpolation import interpolate
from rotarymae.model import MaskedAutoencoder
from rotarymae.queries import Queries, QueryTable, as_queries, check_queries, grid, queries_at, queries_from
from rotarymae.series import SeriesDataset
from rotarymae.tables import TableSchema
from rotarymae.train import pretrain


@pytest.fixture(scope="module")
def data():
    return waves()


@pytest.fixture(scope="module")
def pretrained(data):
    pipeline = pretrain(data, FIT).pipeline
    with torch.no_grad():  # as a model that is sure
        pipeline.autoencoder.head.bias[1] -= 4
    return pipeline


def test_queries(data):
    even = grid(data, 3)
    assert even.lengths.tolist() == [6] * 16 and even.channels[:6].tolist() == [0, 0, 0, 1, 1, 1]
    first = data[0].times
    assert np.allclose(even.times[:3], [first[0], (first[0] + first[-1]) / 2, first[-1]])
    assert queries_at(data, np.array([1.0, 4.0])).times[:4].tolist() == [1, 4, 1, 4]
    after = queries_at(data, ["+25e-1", "4"])
    assert after.times[after.offsets[:-1]].tolist() == (data.times[data.offsets[:-1]] + 2.5).tolist()
    assert after.times[1] == 4
    with refuses("'+4h'", "numbers without a unit"):
        queries_at(data, ["+4h"])
    dated = dataclasses.replace(data, time_unit="day", time_zone="UTC")
    np.testing.assert_allclose(queries_at(dated, ["+12h"]).times[0], data.times[0] + 0.5)
    own = as_queries(data)
    assert np.array_equal(own.times, data.times) and np.array_equal(own.offsets, data.offsets)
    with refuses("grid of 0 points"):
        grid(data, 0)


def test_more_queries_than_memory_could_hold_are_refused(data):
    with refuses("1,000,000,000 times", "16 series", "32,000,000,000 points", "3,840 GB", "100,000,000"):
        grid(data, 10**9)
    with refuses("GB of memory"):
        queries_at(data, np.zeros(10**7))


def test_bad_queries(pretrained, data):
    offsets = np.arange(17)
    good = Queries(np.zeros(16), np.zeros(16, int), offsets)
    assert interpolate(pretrained, data, good).mean.shape == (16, 1)
    for wrong, parts in (
        (dataclasses.replace(good, offsets=offsets[:-1]), ["15 series", "16"]),
        (dataclasses.replace(good, times=np.full(16, np.nan)), ["nan"]),
        (dataclasses.replace(good, channels=None), ["channel"]),
        (dataclasses.replace(good, channels=np.full(16, 2)), ["channel 2", "0 to 1"]),
        (dataclasses.replace(good, errors=np.ones((16, 2))), ["standard errors have 2 columns", "give 1,"]),
        (dataclasses.replace(good, errors=np.full((16, 1), -1.0)), ["standard errors", "negative"]),
        (dataclasses.replace(good, errors=np.full((16, 1), np.nan)), ["standard errors", "finite", "at least 0"]),
        (Queries(np.zeros(0), np.zeros(0, int), np.zeros(17, int)), ["no times"]),
    ):
        with refuses(*parts):
            interpolate(pretrained, data, wrong)


@pytest.mark.parametrize(
    ("at", "positions", "parts"),
    [
        (5.0, None, ["at of series 0", "shape ()", "give a flat array"]),
        ("15", None, ["at of series 0", "shape ()", "give a flat array"]),
        (np.ma.array([1.0, 2.0], mask=[False, True]), None, ["at of series 0", "NaN"]),
        ([1.0], np.ma.array([[1.0, 2.0]], mask=[[False, True]]), ["positions of series 0", "NaN"]),
        (np.array([1j]), None, ["at is no array"]),
        ({1.0, 2.0}, None, ["at is no array", "a list with one array for each"]),
        ([[[1], [2, 3]], [4], [5]], None, ["at is no array"]),
        ([1.0], [["a", "b"]], ["positions is no array", "'a'"]),
        ([1.0], 3.0, ["positions of series 0", "1 to 2 axes"]),
    ],
)
def test_what_is_no_array_of_times_or_positions_is_refused(at, positions, parts):
    data = SeriesDataset.from_arrays(
        [np.arange(3.0)] * 3, [np.ones(3)] * 3, positions=[np.zeros((3, 2))] * 3, position_names=("lat", "lon")
    )
    with refuses(*parts):
        queries_from(data, data, at, positions)


@pytest.mark.parametrize(
    ("unit", "zone", "parts"),
    [(None, None, ["holds durations", "give numbers"]), ("day", "UTC", ["holds durations", "give dates"])],
)
def test_a_table_of_durations_is_for_series_of_durations(data, unit, zone, parts):
    asked = QueryTable.of(pa.table({"id": ["a"], "time": pa.array([1], pa.duration("s"))}), TableSchema())
    with refuses(*parts):
        asked.queries(dataclasses.replace(data, time_unit=unit, time_zone=zone))
    assert asked.queries(dataclasses.replace(data, time_unit="day")).lengths.tolist() == [0] * 16


def test_a_table_of_times_without_the_column_of_times_names_the_option():
    with refuses("no column 'when'", "--time"):
        QueryTable.of(pa.table({"id": ["a"], "day": [1]}), TableSchema(time="when"))


@pytest.mark.parametrize("given", [0, 1, 3])
def test_queries_on_another_number_of_axes_are_refused_by_number(given):
    times = np.arange(30.0)
    data = SeriesDataset.from_arrays(
        [times], [np.sin(times)], positions=[np.zeros((30, 2))], position_names=("lat", "lon")
    )
    asked = Queries(np.zeros(2), None, np.array([0, 2]), positions=np.zeros((2, given)) if given else None)
    with refuses(f"on {given} axes", "on 2; give", "'lat', 'lon'", code="positions-needed"):
        check_queries(asked, data)
    check_queries(dataclasses.replace(asked, positions=np.zeros((2, 2))), data)


def test_far_queries_are_warned_of(pretrained, data):
    with pytest.warns(InputWarning, match="series 1 is to be predicted at time 900"):
        interpolate(pretrained, data, queries_at(data, np.array([1.0, 900.0])))


def test_series_that_are_not_asked_change_nothing(pretrained, data):
    all_of_them = queries_at(data, np.array([1.0]))
    one = Queries(all_of_them.times[4:6], all_of_them.channels[4:6], np.array([0] * 3 + [2] * 14))
    found = interpolate(pretrained, data, one)
    assert np.allclose(found.mean, interpolate(pretrained, data, all_of_them).mean[4:6], atol=1e-5)


def ask(model, data, per_series):
    return interpolate(model, data, Queries.cross(data, per_series))


def test_an_answer_does_not_depend_on_what_else_is_asked(pretrained, data, monkeypatch):
    """The same 1,000 points alone, in a grid of 200 per series, and in chunks of 7, in float32."""
    few = data.select([0, 1])
    points = [np.linspace(0, 20, 250), np.linspace(0, 15, 250)]  # in two channels
    whole = ask(pretrained, few, points)
    assert len(whole.mean) == 1000
    extra = ask(pretrained, few, [np.r_[at, np.linspace(1, 14, 200)] for at in points])
    monkeypatch.setattr(interpolation, "QUERIES_PER_PASS", 7)
    sevens = ask(pretrained, few, points)
    kept = np.tile(np.r_[np.ones(250, bool), np.zeros(200, bool)], 4)
    for name in ("mean", "std", "scaled_mean"):
        wanted = getattr(whole, name)
        np.testing.assert_allclose(getattr(sevens, name), wanted, rtol=0, atol=1e-5)
        np.testing.assert_allclose(getattr(extra, name)[kept], wanted, rtol=0, atol=1e-5)
        for i in (0, 124, 249):  # one point at a time
            alone = ask(pretrained, few, [points[0][[i]], points[1][[i]]])
            np.testing.assert_allclose(getattr(alone, name), wanted[i::250], rtol=0, atol=1e-5)


def test_series_are_encoded_once_however_many_points_are_asked(pretrained, data, monkeypatch):
    monkeypatch.setattr(interpolation, "QUERIES_PER_PASS", 7)
    passes = []
    hook = pretrained.model.encoder.register_forward_hook(lambda *_: passes.append(1))
    try:
        ask(pretrained, data.select([0]), [np.linspace(0, 20, 50)])
    finally:
        hook.remove()
    assert len(passes) == 1


def test_curves_of_a_joint_model_are_warned_of(pretrained, data):
    config = dataclasses.replace(pretrained.model.config, decoder_attention="joint")
    joint = MaskedAutoencoder(config)
    directory = dataclasses.replace(pretrained, model=joint)
    with pytest.warns(InputWarning, match=r"see one another.*decoder_attention='context'"):
        interpolate(directory, data, grid(data, 200))
    interpolate(directory, data, as_queries(data))  # as many as pre-training hides: no warning


def test_bands_are_quantiles_in_the_tables_unit(pretrained, data):
    found = interpolate(pretrained, data, grid(data, 4))
    for share, (lower, upper) in found.bands.items():  # no asinh here: symmetric
        assert np.allclose((lower + upper) / 2, found.mean)
        assert np.allclose((upper - lower) / 2, norm.ppf(0.5 + share / 2) * found.std, rtol=1e-4)
    assert np.allclose(found.bands[0.95][0], found.mean - 1.959964 * found.std, rtol=1e-4)
    assert set(found.bands) == {0.68, 0.95}


def test_the_scaled_distribution_is_the_one_behind_the_bands(data):
    """Also where a value is compressed: an edge of a band is a quantile in both units."""
    compressed = pretrain(data, dataclasses.replace(FIT, transforms={"value": "asinh"})).pipeline
    queries = grid(data, 3)
    found, scaler = interpolate(compressed, data, queries), compressed.preprocessor.values
    std = found.likelihood.std(found.parameters).numpy()
    for share, edges in found.bands.items():
        for sign, edge in zip((-1, 1), edges, strict=True):
            wanted = found.scaled_mean + sign * norm.ppf(0.5 + share / 2) * std
            assert np.allclose(scaler.transform(edge, queries.channels), wanted, atol=1e-6)
    assert np.allclose(scaler.transform(found.mean, queries.channels), found.scaled_mean, atol=1e-6)


@pytest.mark.parametrize("transform", ["asinh", "none"])
def test_bands_beyond_the_training_range_hold_what_they_promise(transform):
    """Steps that no model foresees: seen and trained on up to two thirds of the time only."""
    draw, n = np.random.default_rng(0), 64
    times = np.linspace(0, 1, 31)
    curves = 5 + 3 * np.repeat(draw.standard_normal((n, 11)), 3, axis=1)[:, :31]
    early = SeriesDataset.from_arrays([times[:21]] * n, list(curves[:, :21]))
    config = dataclasses.replace(FIT, transforms={"value": transform}, pretrain_epochs=3)
    model = pretrain(early, config).pipeline
    found = ask(dataclasses.replace(model, calibration=calibrate(model, early)), early, [times[21:]] * n)
    low, high = found.bands[0.95]
    assert np.allclose(found.distance, np.tile(times[21:] - times[20], n))
    inside = (curves[:, 21:].ravel() >= low[:, 0]) & (curves[:, 21:].ravel() <= high[:, 0])
    assert 0.92 < inside.mean() < 0.995


@pytest.mark.parametrize("errors", [None, 1.0, 300.0])
def test_no_answer_lies_beyond_all_values_of_training(data, errors):
    """Where values are compressed, a mean of +30 deviations would be that many powers of e away."""
    heavy = dataclasses.replace(data, values=np.sinh(4 * data.values))
    model = pretrain(heavy, FIT).pipeline
    scaler, queries = model.preprocessor.values, grid(heavy, 4)
    largest = scaler.inverse(scaler.transform(np.full((1, 1), 1e30), np.zeros(1, int)), np.zeros(1, int)).item()
    assert np.abs(heavy.values).max() < largest < 1e12
    with torch.no_grad():
        model.autoencoder.head.bias[0] += 30
    if errors is not None:
        queries = dataclasses.replace(queries, errors=np.full((len(queries.times), 1), errors))
    answer, slack = interpolate(model, heavy, queries), 1 + 1e-6
    assert (np.abs(answer.mean) <= slack * largest).all() and answer.mean.max() > largest / 100
    spare = 0 if errors is None else 30 * errors  # a few standard errors
    assert all((np.abs(edge) <= slack * largest + spare).all() for band in answer.bands.values() for edge in band)
    assert (answer.std > 0).all() and np.isfinite(answer.scaled_mean).all()


def test_without_a_likelihood_there_is_no_deviation(data):
    plain = pretrain(data, dataclasses.replace(FIT, likelihood="point")).pipeline
    found = interpolate(plain, data, grid(data, 2))
    assert found.std is None and not found.bands and np.isfinite(found.mean).all()


def test_windows_of_one_time_have_bands_between_them(data, pretrained):
    model = dataclasses.replace(pretrained, preprocessor=pretrained.preprocessor.replace(window=2))
    times, channels = np.repeat(np.arange(5.0), 2), np.tile([0, 1], 5)
    one = SeriesDataset.from_arrays([times], [np.sin(times)], [channels], channel_names=data.channel_names)
    found = ask(model, one, [np.arange(4) + 0.5])
    assert found.std is not None and np.isfinite(found.std).all()
