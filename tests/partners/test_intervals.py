"""Intervals of numbers: by hand, their coverage, and what keeps them."""

import json
from dataclasses import replace

import numpy as np
import pytest

from _runs import FIT, SIZES
from conftest import refuses
from rotarymae import RoMAERegressor, SeriesDataset, load
from rotarymae.cli.fit import _warn_if_censored
from rotarymae.ensemble import Ensemble
from rotarymae.errors import ModelDirectoryError
from rotarymae.partners.combine import MAX_ERRORS, half_widths, least_errors, sorted_errors
from rotarymae.run import run_fit, run_folds
from rotarymae.run_folder import prediction_columns
from rotarymae.scale import predictions
from rotarymae.splits import SplitColumn


def test_half_widths_by_hand():
    truth = np.array([[0.0, 1.0], [1.0, np.nan], [2.0, 1.0], [-3.0, 1.0]])
    errors = sorted_errors(np.array([[0.0, 0.0]] * 4), truth)
    assert errors == [[0.0, 1.0, 2.0, 3.0], [1.0, 1.0, 1.0]]
    assert half_widths(errors, 0.5).tolist() == [1.5, 1.0]  # between the second and third of four, the second of three
    assert half_widths(errors, 0.75).tolist() == [2.75, 1.0]
    assert half_widths(errors, 0.8) is None and half_widths([], 0.5) is None
    assert least_errors(0.9) == 9 and least_errors(0.5) == 1 and least_errors(0.95) == 19
    assert half_widths([list(range(9))], 0.9).tolist() == [8]


def test_intervals_hold_what_they_promise_whatever_the_errors_are():
    draw = np.random.default_rng(0)
    inside = []
    for known in (12, 18, 40) * 400:
        scale = draw.uniform(0.1, 3, 90)
        away = (draw.standard_t(3, 90) * scale)[:, None]
        half = half_widths(sorted_errors(np.zeros((known, 1)), away[:known]), 0.9)
        inside.append((np.abs(away[40:]) <= half).mean())
    coverage = np.reshape(inside, (-1, 3)).mean(0)
    assert (coverage > 0.895).all() and (coverage < 0.93).all(), coverage


def test_of_many_errors_even_steps_are_kept():
    away = np.random.default_rng(0).normal(size=(50_000, 1))
    errors = sorted_errors(np.zeros_like(away), away)
    assert len(errors[0]) == MAX_ERRORS and errors[0][-1] == np.abs(away).max()
    assert half_widths(errors, 0.9)[0] == pytest.approx(np.quantile(np.abs(away), 0.9), rel=0.01)


def waves(count, seed=0):
    draw = np.random.default_rng(seed)
    times = [np.sort(draw.uniform(0, 20, draw.integers(4, 12))) for _ in range(count)]
    size = draw.uniform(0.5, 3, count)
    values = [a * np.sin(t) for a, t in zip(size, times, strict=True)]
    return SeriesDataset.from_arrays(times, values), size + 0.2 * size * draw.normal(size=count)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run on 120 series, with two outputs."""
    out = tmp_path_factory.mktemp("intervals") / "run"
    dataset, size = waves(120)
    run_fit(dataset, np.stack([size, -size], 1), FIT, out, task="regression")
    return out


def test_a_regression_writes_its_intervals_and_their_coverage(run):
    import pyarrow.parquet as pq

    table, metrics = (
        pq.read_table(run / "predictions.parquet").to_pandas(),
        json.loads((run / "metrics.json").read_text()),
    )
    names = [f"predicted_{i}{edge}" for i in (0, 1) for edge in ("", "_lower90", "_upper90")]
    assert [name for name in table.columns if name.startswith("predicted")] == names
    held = table[table.part == "test"]
    label = np.stack(held.label)[:, 0] if held.label.dtype == object else held.label
    inside = (label >= held.predicted_0_lower90) & (label <= held.predicted_0_upper90)
    row = metrics["regression"][metrics["predictor"]["chosen"]]
    assert row["interval90_coverage_output_0"] == pytest.approx(inside.mean())
    width = held.predicted_0_upper90 - held.predicted_0_lower90
    assert row["interval90_width_output_0"] == pytest.approx(width.mean())


def test_a_saved_pipeline_keeps_its_intervals(run, tmp_path):
    pipeline, (dataset, _) = load(run), waves(10, seed=1)
    value, lower, upper = pipeline.predict(dataset, return_interval=0.8)
    assert value.shape == lower.shape == (10, 2) and (lower < value).all()
    np.testing.assert_allclose(upper - value, value - lower)
    wider = pipeline.predict(dataset, return_interval=0.9)
    assert (wider[2] > upper).all()
    question = predictions(pipeline)
    answers = question.compute(dataset, None).columns
    assert answers.schema == question.schema and "predicted_0_lower90" in answers.column_names
    np.testing.assert_allclose(answers["predicted_1_upper90"].to_numpy(), wider[2][:, 1])
    pipeline.save(tmp_path / "again")
    assert load(tmp_path / "again").predictor.errors == pipeline.predictor.errors
    model = predictions(pipeline, "model").compute(dataset, None).columns  # intervals of what predicts
    half = (model["predicted_0_upper90"].to_numpy() - model["predicted_0"].to_numpy())[0]
    assert half == pytest.approx(pipeline.half_widths(predictor="model")[0])
    with refuses("99.9 %", 999):
        pipeline.predict(dataset, return_interval=0.999)
    for share in (0, 1, 1.5):
        with refuses(share, "more than 0 and less than 1"):
            pipeline.predict(dataset, return_interval=share)
        with refuses(share, "more than 0 and less than 1"):
            pipeline.half_widths(share)


@pytest.mark.parametrize("errors", [[[0.2, 0.1], [0.1]], [[-1.0], [1.0]], [[None], [1.0]], [["1"], [1.0]], [[1.0]], 3])
def test_damaged_errors_are_refused(run, tmp_path, errors):
    load(run).save(tmp_path / "model")
    path = tmp_path / "model/partners/predictor.json"
    content = json.loads(path.read_text())
    content["errors"]["model"] = errors
    path.write_text(json.dumps(content))
    with pytest.raises(ModelDirectoryError):
        load(tmp_path / "model")


def test_the_estimator_returns_intervals_laid_out_as_its_values():
    dataset, size = waves(100)
    quick = {"pretrain_epochs": 1, "finetune_epochs": 1, "min_steps": 0, **SIZES}
    estimator = RoMAERegressor(**quick, predictor="model").fit(dataset, size)
    value, lower, upper = estimator.predict(dataset, return_interval=0.9)
    assert value.shape == lower.shape == upper.shape == (100,)
    np.testing.assert_array_equal(value, estimator.predict(dataset))
    assert np.ptp(upper - lower) == pytest.approx(0, abs=1e-9)


def test_too_few_validation_series_give_no_interval():
    dataset, size = waves(30)
    quick = {"pretrain_epochs": 1, "finetune_epochs": 1, "min_steps": 0, **SIZES}
    estimator = RoMAERegressor(**quick, predictor="model").fit(dataset, size)
    with refuses(9, 5):
        estimator.predict(dataset, return_interval=0.9)
    assert list(predictions(estimator.pipeline_).schema.names) == ["predicted"]


def test_folds_pool_the_errors_of_their_members(tmp_path):
    dataset, size = waves(150)
    outcome = run_folds(dataset, size, FIT, tmp_path / "run", 2, task="regression")
    ensemble = load(tmp_path / "run")
    assert isinstance(ensemble, Ensemble)
    known = [len(member.predictor.errors["model"][0]) for member in ensemble.members]
    assert len(ensemble.predictor.errors["model"][0]) == sum(known) and ensemble.half_widths() is not None
    each = {member.half_widths()[0] for member in ensemble.members}
    assert set(np.unique(outcome.half_widths)) == each  # out of fold, each by its own model
    row = outcome.metrics["regression"]["model"]
    assert 0 < row["interval90_coverage"] <= 1
    assert outcome.metrics["folds"]["model"]["interval90_coverage"]["mean"] == pytest.approx(
        row["interval90_coverage"], abs=0.02
    )
    value, lower, _ = ensemble.predict(dataset, return_interval=0.9)
    np.testing.assert_allclose(value - lower, ensemble.half_widths()[0])


def test_folds_of_which_one_has_too_few_errors_have_no_intervals(tmp_path):
    dataset, size = waves(81)
    site = SplitColumn("site", np.repeat(["a", "b"], (41, 40)).astype(object))
    config = replace(FIT, predictor="model", validation_fraction=0.2)
    outcome = run_folds(dataset, size, config, tmp_path / "run", 2, task="regression", split_by=site)
    assert [member.half_widths() is None for member in outcome.pipeline.members] == [False, True]
    for scores in (outcome.metrics["folds"]["model"], outcome.metrics["regression"]["model"]):
        assert set(scores) == {"root_mean_squared_error", "mean_absolute_error", "r2"}


def test_columns_of_classes_have_no_intervals(run):
    labels = load(run).require_labels()
    assert list(prediction_columns(labels, np.zeros((2, 2)))) == ["predicted_0", "predicted_1"]


@pytest.mark.parametrize(
    ("label", "columns", "warns"),
    [
        ("days_to_event", ["id", "days_to_event", "status"], "status"),
        ("Survival", ["id", "Survival", "In_hospital_death"], "In_hospital_death"),
        ("days", ["id", "days", "age"], None),
        ("mass", ["id", "mass", "status"], None),
        ("event_time", ["id", "event_time"], None),
    ],
)
def test_a_status_beside_a_duration_is_pointed_out(recwarn, label, columns, warns):
    _warn_if_censored(label, columns)
    assert [warns in str(one.message) and label in str(one.message) for one in recwarn] == [True] * bool(warns)
