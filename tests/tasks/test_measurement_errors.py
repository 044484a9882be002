"""`errors`: the standard errors of the values are read and weighed, widen what is asked of observations, and are not
predicted themselves."""

import json
from dataclasses import asdict, replace

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import torch

from _runs import FIT
from conftest import TINY, command, refuses, write_csv
from rotarymae import RoMAEInterpolator, SeriesDataset
from rotarymae.batch import Batch
from rotarymae.interpolation import interpolate
from rotarymae.masking import Masking
from rotarymae.preprocess import DatasetExamples, ObservationPreprocessor
from rotarymae.queries import as_queries, grid
from rotarymae.system import from_fields
from rotarymae.tables import TableSchema
from rotarymae.train import pretrain
from rotarymae.training.objectives import Pretraining

ERRORS = ("sigma",)
WITH = replace(FIT, errors=ERRORS)


def noisy(series=16, scale=1.0):
    """Sines with errors of very different size, 0 among them, in two channels."""
    draw, rows = np.random.default_rng(0), []
    for i in range(series):
        for time in np.sort(draw.uniform(0, 20, 8)):
            error = float(draw.choice([0.0, 0.1, 1.0])) * scale
            rows.append((f"s{i}", time, "gr"[draw.integers(2)], scale * np.sin(time) + error * draw.normal(), error))
    return rows


def dataset(scale=1.0):
    frame = dict(zip(("id", "time", "band", "flux", "sigma"), map(list, zip(*noisy(scale=scale))), strict=True))
    return SeriesDataset.from_frame(pyarrow.table(frame), channel="band", values=["flux", "sigma"])


@pytest.fixture(scope="module")
def trained():
    return pretrain(dataset(), WITH).pipeline


def test_an_error_is_standardised_as_its_value_is():
    data = dataset()
    channels = np.asarray(data.channels)
    preprocessor = ObservationPreprocessor.fit(data, {"flux": "standard"}, errors=ERRORS)
    std = (preprocessor.values.width * preprocessor.values.std).numpy()[channels, 0]
    error = np.asarray(data.values)[:, 1]
    values = np.asarray(data.values)
    assert np.allclose(preprocessor.values.standard_errors(values[:, :1], values[:, 1:], channels)[:, 0], error / std)
    # Of a compressed value it is nearer to the deviation of what is compressed than the slope there is.
    scaler = ObservationPreprocessor.fit(data, {"flux": "asinh"}, errors=ERRORS).values
    draw = np.random.default_rng(1).normal(size=20_000)
    for value in (0.0, 3.0):
        at, none = np.full((len(draw), 1), value), np.zeros(len(draw), int)
        scattered = scaler.transform(at + 5 * draw[:, None], none).std()
        assert 0.8 < scaler.standard_errors(at[:1], np.array([[5.0]]), none[:1])[0, 0] / scattered < 1.4


def test_what_is_hidden_comes_with_its_own_error():
    data = dataset()
    preprocessor = ObservationPreprocessor.fit(data, errors=ERRORS)
    assert (preprocessor.features, preprocessor.input_features, preprocessor.value_columns) == (1, 1, ("flux", "sigma"))
    batch = DatasetExamples(data, preprocessor, 0, Masking("ratio", 0.5)).batch(np.arange(16), 0)
    values, channels = np.asarray(data.values), np.asarray(data.channels)
    pairs = np.stack([preprocessor.values.transform(values[:, :1], channels)[:, 0], np.zeros(len(values))], 1)
    errors = preprocessor.values.standard_errors(values[:, :1], values[:, 1:], channels)[:, 0]
    pairs[:, 1] = np.log(np.maximum(errors, 1e-3))
    known = {round(float(z), 4): float(e) for z, e in pairs}
    real = batch.masked.real
    assert int(real.sum()) == 64 and batch.log_errors.shape == (16, batch.masked.length, 1)
    for z, error in zip(batch.masked.values[real][:, 0], batch.log_errors[real][:, 0], strict=True):
        assert np.isclose(known[round(float(z), 4)], float(error), atol=1e-5)
    assert DatasetExamples(data, preprocessor, 0).batch(np.arange(16), None).log_errors is None


def test_the_error_is_part_of_the_likelihood(trained):
    """An observation scatters about the curve by the model's variance and its own."""
    examples = DatasetExamples(dataset(), trained.preprocessor, 0, Masking("ratio", 0.5))
    batch, objective = examples.batch(np.arange(16), 0), Pretraining(trained.model.eval()).eval()
    out, real = trained.model.predict(batch.inputs, batch.masked), batch.masked.real
    deviation = (out.std.square() + (2 * batch.log_errors).exp()).sqrt()
    by_hand = -torch.distributions.Normal(out.predicted, deviation).log_prob(out.masked.values)[real].sum()
    assert torch.allclose(objective(batch).sum, by_hand, rtol=1e-5)
    without = objective(Batch(batch.series, batch.inputs, batch.masked))
    assert not torch.isclose(without.sum, by_hand)
    objective(batch).sum.backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in trained.model.parameters())


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (lambda data: data.with_values(["sigma", "flux"]), ["'sigma', 'flux'", "first all values"]),
        (lambda data: data.with_values(["flux"]), ["'flux'", "'sigma'", "one error for each"]),
        (lambda data: replace(data, values=data.values * [1, -1]), ["'sigma'", "negative"]),
    ],
)
def test_errors_that_cannot_be_used(change, parts):
    with refuses(*parts):
        ObservationPreprocessor.fit(change(dataset()), errors=ERRORS)


def test_errors_and_joined_times_exclude_each_other():
    with refuses("errors", "join_times"):
        pretrain(dataset(), replace(WITH, join_times=True))


def test_a_saved_preprocessor_keeps_the_names_of_errors():
    fields = json.loads(json.dumps(asdict(ObservationPreprocessor.fit(dataset(), errors=ERRORS))))
    assert from_fields(ObservationPreprocessor, fields, "preprocessor").errors == ERRORS


def test_bands_of_observations_are_wider_than_those_of_the_curve(trained):
    data = dataset()
    own = as_queries(data, trained.preprocessor)
    curve = interpolate(trained, data, replace(own, errors=None))
    observed = interpolate(trained, data, own)
    scaler, channels = trained.preprocessor.values, np.asarray(data.channels)
    error = scaler.standard_errors(curve.mean, np.asarray(data.values)[:, 1:], channels)
    assert curve.mean.shape == (128, 1) and np.array_equal(curve.mean, observed.mean)
    scaled = [one.likelihood.std(one.parameters).numpy() for one in (curve, observed)]
    assert np.allclose(scaled[1] ** 2, scaled[0] ** 2 + error**2)
    wide = [upper - lower for lower, upper in (curve.bands[0.95], observed.bands[0.95])]
    assert (wide[1][own.errors == 1] > wide[0][own.errors == 1]).all()
    assert np.allclose(wide[1][own.errors == 0], wide[0][own.errors == 0])
    with refuses("values are flux", "errors sigma"):
        interpolate(trained, data.with_values(["flux"]), grid(data, 2))


def test_the_command_and_the_estimators(complete, tmp_path, capsys):
    rows = noisy(24)
    table = write_csv(tmp_path / "t.csv", "id,time,band,flux,sigma", rows)
    kinds = write_csv(tmp_path / "k.csv", "id,label", [(f"s{i}", "ab"[i % 2]) for i in range(24)])
    fit = ["fit", table, "--channel", "band", "--values", "flux", "--errors", "sigma", "--labels", kinds, *TINY]
    assert command(*fit, "--out", tmp_path / "run") == 0
    metrics = json.loads((tmp_path / "run/metrics.json").read_text())
    assert list(metrics["interpolation"]) == ["flux"] and metrics["preprocessing"]["measurement errors"] == "sigma"
    found = pq.read_table(tmp_path / "run/interpolations.parquet").column_names
    assert "flux_observed" in found and not any("sigma" in name for name in found)
    page = (tmp_path / "run/report.html").read_text()
    assert "Bars are ± sigma" in page and "bands are those of the curve" in page
    ask = write_csv(tmp_path / "at.csv", "id,time,band,sigma", [("s0", 3.0, "g", 0.0), ("s0", 3.0, "g", 2.0)])
    for name in ("predict", "embed"):
        assert command(name, tmp_path / "run", table, "--out", tmp_path / f"{name}.csv") == 0
    assert command("interpolate", tmp_path / "run", table, "--at", ask, "--out", tmp_path / "o.csv") == 0
    curve, observed = pyarrow.csv.read_csv(tmp_path / "o.csv")["flux_std"].to_pylist()
    assert observed > curve and np.isclose(observed, np.hypot(curve, 2.0), rtol=0.05)
    capsys.readouterr()
    write_csv(tmp_path / "less.csv", "id,time,band,flux", [row[:4] for row in rows])
    assert command("predict", tmp_path / "run", tmp_path / "less.csv", "--out", tmp_path / "p.csv") == 2
    assert "no column 'sigma', which the model reads" in " ".join(capsys.readouterr().err.split())
    assert command(*fit, "--out", tmp_path / "b", "--tokens", "time") == 2
    assert "tokens='time' needs all channels in one row" in " ".join(capsys.readouterr().err.split())
    model = RoMAEInterpolator(errors=("sigma",), pretrain_epochs=1, min_steps=0).fit(dataset())
    assert model.predict(dataset(), [1.0, 2.0]).shape == (16, 2, 2, 1)
    frame = pyarrow.csv.read_csv(table)
    columns = {"channel": "band", "values": ["flux"], "errors": ["sigma"]}
    model = RoMAEInterpolator(**columns, pretrain_epochs=1, min_steps=0).fit(frame)
    assert model.predict(frame, [1.0, 2.0]).shape == (24, 2, 2, 1)


def test_a_column_that_is_value_and_error_is_named_as_both(tmp_path):
    with refuses("'sigma'", "twice", "value"):
        TableSchema(values=("flux", "sigma"), errors=("sigma",))
