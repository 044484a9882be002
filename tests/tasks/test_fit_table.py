"""From a table to a run folder: the task, the split, the scores, and files that are whole or absent."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import accuracy_score, f1_score

from conftest import refuses
from rotarymae import SeriesDataset
from rotarymae.tasks.fit_table import (
    FEWEST,
    check_folder,
    check_output,
    choose_task,
    embedding_table,
    fit_table,
    make_split,
    prediction_columns,
    write_table,
)
from rotarymae.tasks.pretrain_finetune import Settings
from rotarymae.training.config import TrainConfig

ONCE = TrainConfig(epochs=1, batch_size=8)


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
    assert choose_task(np.array(labels), "auto") == task
    assert choose_task(np.array(labels), "regression") == "regression"


def test_many_whole_numbers_are_asked_about():
    with refuses("20 different", "20 series", "--task"):
        choose_task(np.arange(20), "auto")
    assert choose_task(np.arange(20), "classification") == "classification"
    with refuses("'rank'"):
        choose_task(None, "rank")


def test_split():
    classes = np.array(list("aab") * 20)
    split = make_split(60, classes, 0.25, 0)
    parts = (split.train, split.validation, split.test)
    assert sorted(np.concatenate(parts)) == list(range(60))
    assert [len(part) for part in parts] == [38, 7, 15]
    assert all(set(classes[part]) == {"a", "b"} for part in parts)
    assert not np.array_equal(split.test, make_split(60, classes, 0.25, 1).test)
    few = make_split(FEWEST - 1, None, 0.25, 0)
    assert len(few.train) == FEWEST - 1 and len(few.test) == len(few.validation) == 0
    assert len(make_split(60, None, 0, 0).test) == 0
    for holdout in (-0.1, 1.0, float("nan")):
        with refuses("holdout"):
            make_split(60, None, holdout, 0)
    with refuses("0.99", "too few"):
        make_split(10, None, 0.99, 0)


def test_a_class_of_one_is_trained_on():
    classes = np.array(["rare", *["often"] * 30])
    for seed in range(10):
        assert 0 in make_split(31, classes, 0.25, seed).train


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
    with refuses("metrics.json", "move them away"):
        check_folder(tmp_path, resume=True)


def test_tables_are_whole_or_absent(tmp_path, monkeypatch):
    table = pa.table({"id": ['a,"b', "é"], "x": [1.5, None]})
    for name in ("t.csv", "t.parquet"):
        write_table(table, tmp_path / name)
    assert pq.read_table(tmp_path / "t.parquet").equals(table)
    assert (tmp_path / "t.csv").read_text(encoding="utf-8") == '"id","x"\n"a,""b",1.5\n"é",\n'
    with refuses(".txt", ".csv or .parquet"):
        check_output(tmp_path / "t.txt")

    def half(table, path):
        path.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr("rotarymae.tasks.fit_table.pq.write_table", half)
    before = (tmp_path / "t.parquet").read_bytes()
    with pytest.raises(OSError, match="disk full"):
        write_table(table, tmp_path / "t.parquet")
    assert (tmp_path / "t.parquet").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 2


def test_scores_are_those_of_the_written_predictions(fitted):
    """metrics.json says nothing that the tables do not show."""
    rows = pq.read_table(fitted / "run/predictions.parquet").to_pandas()
    metrics = json.loads((fitted / "run/metrics.json").read_text())
    test = rows[rows.part == "test"]
    assert metrics["scored on"] == "held-out series" and len(test) == metrics["series"]["test"]
    ours = metrics["classification"]["model"]
    assert ours["accuracy"] == accuracy_score(test.label, test.predicted)
    assert ours["macro-F1"] == f1_score(test.label, test.predicted, average="macro")
    assert (rows.predicted == np.where(rows.probability_a >= rows.probability_b, "a", "b")).all()

    points = pq.read_table(fitted / "run/interpolations.parquet").to_pandas()
    assert set(points.id) <= set(test.id)
    found = metrics["interpolation"]["flux"]
    assert found["hidden observations"] == len(points)
    away = (points.flux - points.flux_observed).abs()
    assert np.isclose(found["model"]["median absolute error"], away.median())
    for share in ("68", "95"):
        inside = points.flux_observed.between(points[f"flux_lower{share}"], points[f"flux_upper{share}"]).mean()
        assert np.isclose(found["share inside band"][f"{share} %"], inside)


def test_nothing_is_written_when_labels_cannot_be_used(tmp_path):
    data = SeriesDataset.from_arrays([[1.0, 2.0]] * 4, [[1.0, 3.0]] * 4)
    for labels, task in (([1, 1, 1, 1], "auto"), (["a", "b", "a", "b"], "regression"), ([1, 2], "auto")):
        with refuses():
            fit_table(data, np.array(labels), Settings(pretrain=ONCE, finetune=ONCE), tmp_path / "run", task=task)
    assert not list(tmp_path.iterdir())


def test_few_series_are_all_trained_on_and_the_run_says_so(tmp_path):
    times = [[0.0, 1.0, 3.0, 4.0]] * 4
    data = SeriesDataset.from_arrays(times, np.random.default_rng(0).normal(size=(4, 4)).tolist())
    outcome = fit_table(data, np.array([0, 1, 0, 1]), Settings(pretrain=ONCE, finetune=ONCE), tmp_path / "run")
    assert outcome.metrics["scored on"].startswith("the training series")
    assert pq.read_table(tmp_path / "run/predictions.parquet")["part"].to_pylist() == ["train"] * 4
    assert prediction_columns(outcome.finetuned.directory, outcome.predicted)["predicted"].to_pylist()[0] in (0, 1)
    assert embedding_table(data, outcome.embeddings).num_columns == 181
