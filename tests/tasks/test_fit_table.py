"""From a table to a run folder: the task, the split, the scores, and files that are whole or absent."""

import dataclasses
import errno
import json
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import accuracy_score, average_precision_score, f1_score, roc_auc_score

from _runs import FIT as ONCE
from _runs import series
from conftest import refuses
from rotarymae import SeriesDataset
from rotarymae.errors import InputWarning
from rotarymae.labels import LABELS, choose_labels
from rotarymae.metrics import (
    auroc,
    average_precision,
    classification_metrics,
    interval_words,
    intervals,
    regression_metrics,
)
from rotarymae.partners.baselines import INTERPOLATION
from rotarymae.prediction import embed, predict_and_embed
from rotarymae.run import run_fit
from rotarymae.run_folder import (
    check_folder,
    check_output,
    embedding_columns,
    open_folder,
    prediction_columns,
    write_parts,
)
from rotarymae.scoring import evaluate_predictions
from rotarymae.splits import MIN_SERIES_FOR_HOLDOUT, make_split
from rotarymae.system import Reporter, replacing


@pytest.mark.parametrize(
    ("labels", "task"),
    [
        (["a", "b", "a"], "classification"),
        ([1, 2, 1], "classification"),
        ([1.0, 2.0, 1.0], "classification"),
        ([1.0, 2.5, 1.0], "regression"),
        ([True, False], "classification"),
    ],
)
def test_the_task_is_chosen_by_the_labels(labels, task):
    assert choose_labels(np.array(labels), "auto").task == task
    assert choose_labels(np.array(labels), "regression").task == "regression"


def test_many_whole_numbers_are_asked_about():
    for kind in (int, np.uint8, float):
        with refuses("20 different whole numbers", "20 series", "--task"):
            choose_labels(np.arange(20, dtype=kind), "auto")
    assert choose_labels(np.arange(20), "classification").task == "classification"
    with refuses("'rank'"):
        choose_labels(None, "rank")


def drawn(series, classes, holdout, seed):
    """Split so many labelled series at random."""
    return make_split(series, np.arange(series), classes, holdout, 0.15, seed)[0]


def test_split():
    classes = np.array(list("aab") * 20)
    split = drawn(60, classes, 0.25, 0)
    parts = (split.train, split.validation, split.test)
    assert sorted(np.concatenate(parts)) == list(range(60))
    assert [len(part) for part in parts] == [38, 7, 15]
    assert all(set(classes[part]) == {"a", "b"} for part in parts)
    assert not np.array_equal(split.test, drawn(60, classes, 0.25, 1).test)
    few = drawn(MIN_SERIES_FOR_HOLDOUT - 1, None, 0.25, 0)
    assert len(few.train) == MIN_SERIES_FOR_HOLDOUT - 1 and len(few.test) == len(few.validation) == 0
    all_known = drawn(60, None, 0, 0)  # nothing is held out, and a validation part still chooses the epoch
    assert [len(part) for part in (all_known.train, all_known.validation, all_known.test)] == [51, 9, 0]
    for holdout in (-0.1, 1.0, float("nan")):
        with refuses("holdout"):
            drawn(60, None, holdout, 0)
    with refuses("0.99", "held out"):
        drawn(10, None, 0.99, 0)


def test_folders(tmp_path):
    check_folder(tmp_path / "new", resume=False)
    (tmp_path / "empty").mkdir()
    check_folder(tmp_path / "empty", resume=True)
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", tmp_path / "file/below"):
        with refuses("file"):
            check_folder(path, resume=False)
    with refuses(str(tmp_path), "--resume"):
        check_folder(tmp_path, resume=False)
    with refuses(str(tmp_path), "no run"):
        check_folder(tmp_path, resume=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "file"]
    (tmp_path / "training").mkdir()
    check_folder(tmp_path, resume=True)
    (tmp_path / "metrics.json").write_text("mine")
    with refuses(str(tmp_path), "finished run"):
        check_folder(tmp_path, resume=True)
    assert (tmp_path / "metrics.json").read_text() == "mine"
    for content in ("{", "[1]", "1"):
        (tmp_path / "training/identity.json").write_text(content)
        with refuses("identity.json", "damaged"):
            open_folder(tmp_path, {})


def test_tables_are_written_by_their_suffix(tmp_path):
    table = pa.table({"id": ['a,"b', "é"], "x": [1.5, None]})
    for name in ("t.csv", "t.parquet"):
        write_parts([table], tmp_path / name)
    assert pq.read_table(tmp_path / "t.parquet").equals(table)
    assert (tmp_path / "t.csv").read_text(encoding="utf-8") == '"id","x"\n"a,""b",1.5\n"é",\n'
    with refuses(".txt", ".csv or .parquet"):
        check_output(tmp_path / "t.txt")


def test_scores_are_those_of_the_written_predictions(fitted):
    """metrics.json says nothing that the tables do not show."""
    rows = pq.read_table(fitted / "run/predictions.parquet").to_pandas()
    metrics = json.loads((fitted / "run/metrics.json").read_text())
    test = rows[rows.part == "test"]
    assert metrics["scored_on"] == "test" and len(test) == metrics["series"]["test"]
    ours = metrics["classification"][metrics["predictor"]["chosen"]]
    assert ours["accuracy"] == accuracy_score(test.label, test.predicted)
    assert ours["macro_f1"] == f1_score(test.label, test.predicted, average="macro")
    assert (rows.predicted == np.where(rows.probability_a >= rows.probability_b, "a", "b")).all()

    spans = metrics["intervals"]
    assert spans["method"] == metrics["predictor"]["chosen"]
    for name, (low, high) in spans["metrics"].items():
        assert low <= ours[name] <= high or name == "expected_calibration_error"  # which noise makes larger

    points = pq.read_table(fitted / "run/interpolations.parquet").to_pandas()
    assert set(points.star) <= set(test.star)
    found = metrics["interpolation"]["flux"]
    assert found["hidden_observations"] == len(points)
    for share in (68, 95):
        inside = points.flux_observed.between(points[f"flux_lower{share}"], points[f"flux_upper{share}"]).mean()
        assert np.isclose(found["share_inside_band"][f"{share / 100}"], inside)
    # In its own unit each channel is scored for itself; only scaled errors are pooled.
    assert set(found["methods"]) == {"model", *INTERPOLATION}
    assert "median_absolute_error" not in found["methods"]["model"]
    for channel, row in found["channels"].items():
        part = points[points.channel == channel]
        away = (part.flux - part.flux_observed).abs()
        assert row["hidden_observations"] == len(part)
        assert np.isclose(row["methods"]["model"]["median_absolute_error"], away.median())
        assert np.isclose(row["methods"]["model"]["root_mean_squared_error"], (away**2).mean() ** 0.5)


def test_intervals_are_as_wide_as_chance(whole):
    """The share of 100 tosses of a fair coin, and of 10,000; a class that a resample lacks costs only that resample."""
    draw = np.random.default_rng(0)
    for count in (100, 10_000):
        truth = draw.integers(0, 2, count)
        found = intervals("coin", classification_metrics, truth, np.tile([0.6, 0.4], (count, 1)))
        low, high = found["metrics"]["accuracy"]
        assert np.isclose(high - low, 4 * 0.5 / count**0.5, rtol=0.25)
    rare = np.r_[1, np.zeros(19, int)]
    found = intervals("x", classification_metrics, rare, np.tile([0.9, 0.1], (20, 1)))
    assert np.isfinite(list(found["metrics"].values())).all()
    words = interval_words({"intervals": {"method": "model", "share": 0.95, "metrics": {"r2": [0.51234, 0.75]}}})
    assert all(part in words for part in ("95 %", "'model'", "R² 0.512 to 0.75"))
    assert interval_words({"intervals": {"method": "model", "share": 0.95, "metrics": {}}}) == ""


def test_metrics_of_classes_by_hand():
    two = np.array([[0.9, 0.1], [0.6, 0.4], [0.35, 0.65], [0.8, 0.2]])
    found = classification_metrics(np.array([0, 0, 1, 1]), two)
    assert found["auroc"] == 0.75 and found["accuracy"] == 0.75  # 3 of 4 pairs are in order
    assert found["brier_score"] == pytest.approx(np.mean([0.01, 0.16, 0.35**2, 0.64]))
    assert found["log_loss"] == pytest.approx(-np.log([0.9, 0.6, 0.65, 0.2]).mean())
    assert found["rare_f1"] == pytest.approx(2 / 3) and found["rare_average_precision"] == found["average_precision"]
    weighted = classification_metrics(np.array([0, 0, 1, 1]), two, weights=(1, 2), rare=0)
    assert weighted["accuracy"] == 0.5 and weighted["rare_f1"] == 0.5  # 0.4 · 2 is decided for the second class
    three = classification_metrics(np.array([0, 0, 1, 1]), np.c_[two, np.zeros(4)])
    assert three["macro_auroc"] == 0.75 and "brier_score" not in three  # nothing of the third class is there
    assert np.isnan(classification_metrics(np.array([1, 1]), two[:2])["auroc"])


@pytest.mark.parametrize("digits", [12, 1, 0])  # without and with ties
def test_areas_are_those_of_scikit_learn(digits):
    draw = np.random.default_rng(0)
    positive = draw.random(200) < 0.2
    scores = np.round(draw.random(200) + 0.3 * positive, digits)
    assert auroc(positive, scores) == pytest.approx(roc_auc_score(positive, scores), abs=1e-12)
    assert average_precision(positive, scores) == pytest.approx(average_precision_score(positive, scores), abs=1e-12)


def test_metrics_of_values_are_of_each_output():
    truth = np.array([[0.0, 1.0], [2.0, np.nan], [4.0, 3.0]])
    found = regression_metrics(truth, truth + np.array([[1.0, 2.0], [-1.0, 0.0], [1.0, -2.0]]))
    assert found["root_mean_squared_error_output_0"] == 1 and found["mean_absolute_error_output_1"] == 2
    assert found["r2_output_0"] == pytest.approx(1 - 3 / 8) and found["r2_output_1"] == -3
    assert set(regression_metrics(truth[:, :1], truth[:, :1])) == {
        "root_mean_squared_error",
        "mean_absolute_error",
        "r2",
    }


def test_nothing_is_written_when_labels_cannot_be_used(tmp_path):
    data = SeriesDataset.from_arrays([[1.0, 2.0]] * 4, [[1.0, 3.0]] * 4)
    for labels, task in (([1, 1, 1, 1], "auto"), (["a", "b", "a", "b"], "regression"), ([1, 2], "auto"), ("a", "auto")):
        with refuses():
            run_fit(data, np.array(labels), ONCE, tmp_path / "run", task=task)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("task", ["auto", "classification", "regression"])
@pytest.mark.parametrize("last", ["1.5", None])
def test_texts_and_numbers_are_no_labels_of_one_kind(task, last, tmp_path):
    """No table holds both: they were trained on to the end, and then could not be written."""
    labels = np.array([*["1.5", 1] * 5, last], object)
    series = SeriesDataset.from_arrays(np.tile(np.arange(4.0), (11, 1)), np.random.default_rng(0).normal(size=(11, 4)))
    with refuses("strings", "numbers"):
        run_fit(series, labels, ONCE, tmp_path / "run", task=task)
    assert not (tmp_path / "run").exists()


def test_few_series_are_all_trained_on_and_the_run_says_so(tmp_path):
    times = [[0.0, 1.0, 3.0, 4.0]] * 4
    data = SeriesDataset.from_arrays(times, np.random.default_rng(0).normal(size=(4, 4)).tolist())
    outcome = run_fit(data, np.array([0, 1, 0, 1]), ONCE, tmp_path / "run")
    assert outcome.metrics["scored_on"] == "train"
    assert pq.read_table(tmp_path / "run/predictions.parquet")["part"].to_pylist() == ["train"] * 4
    assert prediction_columns(outcome.pipeline.labels, outcome.predicted)["predicted"].to_pylist()[0] in (0, 1)
    assert len(embedding_columns(outcome.embeddings)) == 24


# ── what must not lose a training ───────────────────────────────────────────────────────────────────────────────────


def readings(series=12, unseen=None):
    """A channel of many values, and one with a single value per series; with `unseen`, a third in one series only."""
    draw = np.random.default_rng(0)
    times = [np.sort(draw.uniform(0, 20, 8)) for _ in range(series)]
    channels = [np.array(["pulse"] * 7 + ["weight"]) for _ in range(series)]
    if unseen is not None:
        channels[unseen][2:5] = "rare"
    return SeriesDataset.from_arrays(times, [draw.normal(size=8) for _ in times], channels)


def broken(*_, **__):
    raise ValueError("no bins")


def test_a_failing_report_costs_itself_only(tmp_path):
    labels, reporter = np.arange(12) % 2, Reporter(quiet=True)
    config = ONCE
    run_fit(readings(), labels, config, tmp_path / "run", reporter=reporter, report=broken)
    metrics = json.loads((tmp_path / "run/metrics.json").read_text())
    assert set(metrics["classification"]) == {"model", "combined", "features", "most_common_class"}
    (of_report,) = metrics["warnings"]
    assert "the report failed" in of_report
    assert (tmp_path / "run/predictions.parquet").exists() and (tmp_path / "run/model").is_dir()


def test_a_channel_that_only_held_out_series_have_leaves_the_comparison_whole(tmp_path):
    """Its mean is unknown; metrics.json says null, never NaN, and the other channels are compared."""
    test = int(drawn(12, None, 0.25, 0).test[0])
    data = readings(unseen=test)
    run_fit(data, None, ONCE, tmp_path / "run")

    def constant(name):
        raise AssertionError(f"{name} is no JSON")

    metrics = json.loads((tmp_path / "run/metrics.json").read_text(), parse_constant=constant)
    found = metrics["interpolation"]["value"]
    assert found["hidden_observations"] > 0
    for row in found["methods"].values():
        assert row["root_mean_squared_error_scaled"] is not None


def test_a_model_that_a_straight_line_beats_is_said_to_be_behind(tmp_path, monkeypatch):
    t, rng = np.arange(20.0), np.random.default_rng(0)
    lines = SeriesDataset.from_arrays([t] * 24, [a * t + b for a, b in rng.normal(size=(24, 2))])
    for neighbours, advice in (("off", "neighbours='on'"), ("on", "more epochs")):
        config, reporter = dataclasses.replace(ONCE, neighbours=neighbours), Reporter(quiet=True)
        result = run_fit(lines, None, config, tmp_path / neighbours, reporter=reporter)
        errors = result.metrics["interpolation"]["value"]["methods"]["model"]
        (behind,) = [text for text in reporter.warnings if "predicted better by linear interpolation" in text]
        assert advice in behind and f"{errors['root_mean_squared_error_scaled']:.3g}" in behind

    monkeypatch.setattr("rotarymae.scoring.MIN_HIDDEN", 1_000)  # hidden observations are fewer: chance
    reporter = Reporter(quiet=True)
    run_fit(lines, None, ONCE, tmp_path / "again", reporter=reporter)
    assert not any("predicted better" in text for text in reporter.warnings)


def test_a_run_killed_while_its_results_are_written_goes_on(tmp_path, monkeypatch):
    out, config, labels = tmp_path / "run", ONCE, np.arange(12) % 2

    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr("rotarymae.run.write_metrics", killed)
        run_fit(readings(), labels, config, out)
    before = (out / "predictions.parquet").read_bytes()
    assert not (out / "metrics.json").exists()
    run_fit(readings(), labels, config, out, resume=True)
    assert (out / "predictions.parquet").read_bytes() == before
    assert (out / "metrics.json").exists()
    with refuses("finished"):
        run_fit(readings(), labels, config, out, resume=True)


def test_a_full_disk_is_named_and_can_be_resumed(tmp_path):
    def full(outcome, folder):
        with replacing(tmp_path / "run/report.html"):
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match=r"No space left.*report\.html"):
        run_fit(readings(), None, ONCE, tmp_path / "run", report=full)
    run_fit(readings(), None, ONCE, tmp_path / "run", resume=True)


def test_embeddings_and_predictions_of_one_pass_are_those_of_two(tmp_path):
    outcome = run_fit(readings(), np.arange(12) % 2, ONCE, tmp_path / "run")
    assert json.loads((tmp_path / "run/metrics.json").read_text())["precision"] == "fp32"  # which auto has taken
    directory = outcome.pipeline
    predicted, embeddings = predict_and_embed(directory, outcome.dataset)
    assert np.allclose(predicted, predict_and_embed(directory, outcome.dataset)[0], atol=1e-6)
    assert np.array_equal(embeddings, outcome.embeddings)
    assert np.allclose(outcome.embeddings, embed(directory, outcome.dataset), atol=1e-6)


@pytest.mark.parametrize("count", [10, 12])
def test_a_score_needs_a_label_for_each_series(count, tmp_path):
    outcome = run_fit(series(11), np.array(list("abababababa")), ONCE, tmp_path / "run")
    with refuses(f"{count} labels for 11 series"):
        evaluate_predictions(outcome.pipeline, series(11), np.array(["a"] * count))


def test_series_without_a_label_are_pretrained_on_and_embedded(tmp_path):
    """Half of the series have a label: those are fine-tuned on and scored; all are embedded, and none is lost."""
    dataset = series(40)
    labels = np.array(["x" if i % 4 == 1 else "y" if i % 4 == 3 else None for i in range(40)], object)
    outcome = run_fit(dataset, labels, ONCE, tmp_path / "run")
    split = outcome.split
    assert split.unlabelled.tolist() == list(range(0, 40, 2))
    assert sorted([*split.train, *split.validation, *split.test]) == list(range(1, 40, 2)) and len(split.test) == 5
    assert set(split.pretrain) == {*split.train, *split.unlabelled}
    assert set(outcome.metrics["classification"]["model"]) and outcome.embeddings.shape[0] == 40
    table = pq.read_table(tmp_path / "run/predictions.parquet").to_pydict()
    assert table["label"] == labels.tolist() and table["part"].count("unlabelled") == 20
    assert set(table["predicted"]) <= {"x", "y"}
    with refuses("series", "label"):
        run_fit(dataset, np.full(40, None, object), ONCE, tmp_path / "none")
    # Pre-training saw the unlabelled series: without them it ends with other weights.
    only = run_fit(dataset.select(split.labelled), labels[split.labelled].astype(str), ONCE, tmp_path / "only")
    assert not np.allclose(only.embeddings, outcome.embeddings[split.labelled])


def test_a_class_that_no_scored_series_has_is_named(tmp_path):
    run_fit(series(12), np.array(["rare"] + ["common"] * 11), ONCE, tmp_path / "run")
    said = json.loads((tmp_path / "run/metrics.json").read_text())["warnings"]
    assert said == ["the metrics say nothing about the class 'rare': no scored series has it."]


def test_many_whole_numbers_are_classes_with_a_warning():
    labels = np.arange(40) % 15
    with pytest.warns(InputWarning, match="15 different whole numbers.*--task regression"):
        assert choose_labels(labels).task == "classification"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert choose_labels(labels, "classification").task == "classification"
        assert choose_labels(np.arange(40) % 5).task == "classification"


@pytest.mark.parametrize(
    ("precision", "taken", "said"), [("auto", "bf16", 1), ("auto", "fp32", 0), ("bf16", "bf16", 0)]
)
def test_bf16_that_nobody_asked_for_is_said(precision, taken, said, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("rotarymae.run.taken_precision", lambda asked: taken)
    config = dataclasses.replace(ONCE, precision=precision)
    run_fit(readings(), None, config, tmp_path / "run", reporter=Reporter())
    assert capsys.readouterr().err.count("matrix products are in bf16") == said


def test_without_held_out_series_those_of_validation_are_scored_and_no_method_has_learnt_them(tmp_path):
    draw = np.random.default_rng(0)
    times = [np.sort(draw.uniform(0, 10, 8)) for _ in range(60)]
    noise = SeriesDataset.from_arrays(times, [draw.normal(size=8) for _ in times])
    labels = draw.choice(["a", "b"], 60)  # which nothing can tell
    outcome = run_fit(noise, labels, ONCE, tmp_path / "run", holdout=0.0)
    assert len(outcome.split.test) == 0 and np.array_equal(outcome.split.scored, outcome.split.validation)
    assert outcome.metrics["scored_on"] == "validation"
    assert max(found["accuracy"] for found in outcome.metrics["classification"].values()) < 1


def test_nearly_as_many_texts_as_series_are_no_classes():
    labels = np.array([f"{i},5" for i in range(20)])
    with refuses("20", "'0,5'", "'1,5'", "20", "decimal point", "task='classification'"):
        choose_labels(labels)
    assert choose_labels(labels, "classification").task == "classification"
    for strange in (np.array([b"x", b"y"] * 5), np.array(["2024-01-01", "2025-01-01"] * 5, "datetime64[s]")):
        with refuses("labels", "type", "to strings"):
            LABELS["classification"].check(strange, 10)
