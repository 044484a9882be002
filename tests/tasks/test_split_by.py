"""Splits that a column decides: groups stay whole, the latest are held out, and what a table says is obeyed."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from _runs import FIT, series
from conftest import TINY, command, refuses, two_kinds, write_csv
from rotarymae.run import run_fit
from rotarymae.splits import Fold, SplitColumn, fold_of, latest, make_split, some_groups, split_off, split_words
from rotarymae.tables import align_column


def split(values, classes=None, rows=None, holdout=0.25, validation=0.2, seed=0):
    values = np.array(values)
    rows = np.arange(len(values)) if rows is None else np.array(rows)
    classes = None if classes is None else np.array(classes)
    return make_split(len(values), rows, classes, holdout, validation, seed, SplitColumn("site", values))


def parts(found):
    return {name: set(rows.tolist()) for name, rows in vars(found).items() if len(rows)}


@pytest.mark.parametrize("seed", range(20))
def test_no_group_is_in_two_parts_and_every_class_is_trained_on(seed):
    draw = np.random.default_rng(seed)
    group = draw.choice(list("abcdefghij"), 120, p=draw.dirichlet(np.full(10, 0.7)))
    classes = draw.choice(["x", "y", "z"], 120)
    found, how = split(group, classes, seed=seed)
    of_part = {name: set(group[list(rows)]) for name, rows in parts(found).items()}
    assert Counter(g for groups in of_part.values() for g in groups).most_common(1)[0][1] == 1
    assert set(classes[found.train]) == set(classes)
    assert (how["method"], how["parts"]["test"]) == ("groups", len(found.test))


def test_the_share_is_met_as_nearly_as_groups_allow():
    sizes = np.repeat(np.arange(40), 5)
    for share in (0.25, 0.75):
        assert some_groups(sizes, None, share, 0).mean() == share
    assert some_groups(np.array([0, 0, 0, 0, 1, 1]), None, 0.1, 0).tolist() == [False] * 4 + [True] * 2  # at least one
    with refuses("50%", "2 choices", "class"):
        some_groups(np.array([0, 0, 1, 1]), np.array(["x", "x", "y", "y"]), 0.5, 0)


@pytest.mark.parametrize("grouped", [False, True])
def test_each_labelled_series_is_in_one_fold(grouped):
    draw = np.random.default_rng(0)
    site, labels = draw.integers(12, size=80).astype(str), draw.choice(["common", "common", "rare"], 80)
    site, rows = np.where(np.arange(80) % 20, site, "north").astype(object), np.flatnonzero(np.arange(80) % 8)
    folds = [Fold(k, 4, SplitColumn("site", site) if grouped else None) for k in (1, 2, 3, 4)]
    splits = [make_split(80, rows, labels[rows], 0.25, 0.2, 3, fold)[0] for fold in folds]
    assert sorted(np.concatenate([one.test for one in splits]).tolist()) == rows.tolist()
    for one in splits:
        used = np.concatenate([one.train, one.validation])
        assert sorted([*used, *one.test]) == rows.tolist() and len(one.validation)
        assert 0.15 < np.mean(labels[one.test] == "rare") < 0.55
        if grouped:
            parts = [set(site[part]) for part in (one.test, one.validation, np.sort([*one.train, *one.unlabelled]))]
            assert sum(map(len, parts)) == len(set.union(*parts))
    assert any(len(one.left_out) for one in splits) is grouped
    said = split_words(make_split(80, rows, labels[rows], 0.25, 0.2, 3, folds[1])[1])
    assert said.startswith("fold 2 of 4") and ("'site'" in said) is grouped


@pytest.mark.parametrize("groups", [None, np.arange(6)])
def test_classes_with_fewer_series_than_folds_are_dealt_at_random(groups):
    number = fold_of(6, np.repeat([0, 1, 2], 2), groups, 5, 0)
    assert sorted(np.bincount(number)) == [1, 1, 1, 1, 2]


def test_folds_that_cannot_be_are_refused():
    kinds = np.array(["a"] * 6 + ["b"])
    with refuses("class 'b'"):
        [make_split(7, np.arange(7), kinds, 0.0, 0.2, 0, Fold(k, 3)) for k in (1, 2, 3)]
    with refuses("folds is 9", "7 series"):
        make_split(7, np.arange(7), None, 0.0, 0.2, 0, Fold(1, 9))
    with refuses("'part'", "leave out one"):
        Fold(1, 2, SplitColumn("part", np.array(["train", "test", "train"])))


def test_the_latest_are_held_out_and_equal_ones_stay_together():
    days = [10.0, 30.0, 20.0, 30.0, 5.0, 40.0, 20.0, 7.0]
    found, how = split(days, validation=0.3)
    # 40 and both of 30 are three of eight, 40 alone is one: both are one away from two.
    assert parts(found) == {"test": {1, 3, 5}, "validation": {2, 6}, "train": {0, 4, 7}}
    assert how["method"] == "latest"
    assert how["parts"] == {"train": 3, "validation": 2, "test": 3}
    assert "split by 'site', the latest held out: 3 series are trained on" in split_words(how)
    assert latest(np.array([0, 0, 0, 1]), 0.9) == 1
    with refuses("class 'y'", "held out", "holdout"):
        split(days, ["x", "x", "x", "x", "x", "y", "x", "x"])


def test_series_without_labels_are_held_out_by_their_time():
    days = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 3.5, 6.5, 20.0, np.nan]
    found, how = split(days, rows=range(8), holdout=0.25, validation=0.3)
    assert parts(found) == {
        "test": {6, 7},
        "validation": {4, 5},
        "train": {0, 1, 2, 3},
        "unlabelled": {8, 11},
        "left_out": {9, 10},
    }
    assert split_words(how).endswith("2 that go with these have no label and are not trained on")


def test_what_the_table_says_is_obeyed():
    words = ["Train", "TEST", "train ", "val", "validation", "train", "test"]
    found, how = split(words)
    assert parts(found) == {"train": {0, 2, 5}, "test": {1, 6}, "validation": {3, 4}}
    assert (how["method"], how["drawn"]) == ("column", [])
    some, how = split(["train"] * 8 + ["test"] * 2)
    assert set(some.test) == {8, 9} and len(some.validation) == 2 and how["drawn"] == ["validation"]
    drawn, how = split(["train"] * 8 + ["validation"] * 2)  # or the series that are trained on would be scored
    assert len(drawn.test) == 2 and set(drawn.validation) == {8, 9} and how["drawn"] == ["test"]
    assert make_split(20, np.arange(20), None, 0.25, 0.2, 0)[1]["drawn"] == ["test", "validation"]
    none, _ = split(["train"] * 8 + ["test"] * 2, validation=0.0)
    assert len(none.validation) == 0 and len(none.train) == 8
    with refuses("series", "train"):
        split(["test", "val", "test"])
    with refuses("class 'b'"):
        split(["train", "train", "train", "test"], ["a", "a", "c", "b"], validation=0.0)


def test_series_without_labels_share_the_fate_of_their_group():
    group = np.array(["a"] * 4 + ["b"] * 4 + ["c"] * 4 + [None], object)
    found, how = split(group, rows=[0, 1, 4, 5, 8, 9], holdout=0.3, validation=0.3)
    held = set(group[np.concatenate([found.test, found.validation])])
    assert len(held) == 2 and set(group[found.left_out]) == held and how["left_out"] == 4
    assert set(found.unlabelled) == {i for i in (2, 3, 6, 7, 10, 11, 12) if group[i] not in held}
    with refuses("1", "'site'"):
        split(group)


def test_one_group_that_is_left_gives_validation_series_at_random():
    found, how = split(["a"] * 10 + ["b"] * 3)
    assert len(found.test) == 3 and len(found.validation) == 2 and how["drawn"] == ["validation"]
    with refuses("'a'", "two"):
        split(["a"] * 5)
    with refuses("holdout is 1.5"):
        split(["a", "b"], holdout=1.5)


def test_numbers_and_words_with_gaps_are_what_they_are():
    assert split(np.array([3, 1, 2, 2], object))[1]["method"] == "latest"
    assert split(np.array([True, False, True, False]))[1]["method"] == "groups"
    assert split(["2019", "2020", "2019", "2021"])[1]["method"] == "groups"


def test_a_run_keeps_its_split_and_says_it(tmp_path):
    dataset, values = series(24), np.array([f"site {i % 6}" for i in range(24)])
    config = replace(FIT, predictor="model")
    outcome = run_fit(dataset, None, config, tmp_path / "run", split_by=SplitColumn("site", values))
    said = outcome.metrics["split"]
    assert (said["by"], said["method"], said["parts"]["train"]) == ("site", "groups", 12)
    (tmp_path / "run/metrics.json").unlink()
    with refuses("the split changed"):
        run_fit(dataset, None, config, tmp_path / "run", resume=True)
    with refuses("the split changed"):
        moved = SplitColumn("site", np.roll(values, 1))
        run_fit(dataset, None, config, tmp_path / "run", resume=True, split_by=moved)


@pytest.fixture
def no_report(monkeypatch):
    monkeypatch.setattr("rotarymae.report.write_report", lambda *_, **__: None)


def test_the_command_splits_by_columns_of_either_table(tmp_path, no_report, capsys):
    rows, labels = two_kinds(24)
    place = {name: f"2020-01-{1 + i:02d}" for i, name in enumerate(labels)}
    write_csv(tmp_path / "t.csv", "id,time,band,flux,site", [(*row, f"site {int(row[0][-2:]) % 8}") for row in rows])
    write_csv(tmp_path / "l.csv", "id,label,seen", [(name, kind, place[name]) for name, kind in labels.items()])
    fit = ["fit", tmp_path / "t.csv", "--channel", "band", "--values", "flux", "--labels", tmp_path / "l.csv", *TINY]
    fit += ["--predictor", "model"]
    assert command(*fit, "--split-by", "site", "--out", tmp_path / "a") == 0
    found = pq.read_table(tmp_path / "a/predictions.parquet").to_pandas()
    site = {row[0]: int(row[0][-2:]) % 8 for row in rows}
    held = {site[name] for name in found.id[found.part == "test"]}
    assert len(held) == 2 and not held & {site[name] for name in found.id[found.part != "test"]}
    metrics = json.loads((tmp_path / "a/metrics.json").read_text())
    assert split_words(metrics["split"]) in " ".join(capsys.readouterr().err.split())
    assert metrics["split"]["method"] == "groups"
    assert command(*fit, "--split-by", "seen", "--out", tmp_path / "b") == 0
    found = pq.read_table(tmp_path / "b/predictions.parquet").to_pandas()
    last = sorted(labels)[-6:]
    assert set(found.id[found.part == "test"]) == set(last)
    assert "the latest held out: 15 series are trained on" in " ".join(capsys.readouterr().err.split())
    assert command(*fit, "--split-by", "sites", "--out", tmp_path / "c") == 2
    said = capsys.readouterr().err
    assert "column 'sites'" in said and "'site'" in said
    assert command(*fit, "--split-by", "flux", "--out", tmp_path / "c") == 2
    assert "'flux' is the label, or that of --split-by or --first" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "c").exists()


def test_words_beside_train_and_test_are_refused():
    with refuses("'site'", "'test'", "'train'", "'unused'", "train", "validation"):
        split(["train"] * 14 + ["Test"] * 8 + ["unused"] * 2)
    found, how = split(["training"] * 6 + ["valid"] * 3 + ["testing"] * 3)
    assert (
        parts(found) == {"train": set(range(6)), "validation": {6, 7, 8}, "test": {9, 10, 11}}
        and how["method"] == "column"
    )


def test_a_class_of_one_series_does_not_undo_the_proportions_of_the_others():
    classes = np.array([*np.repeat(np.arange(10), 8), 10])
    for seed in range(8):
        rest, part = split_off(np.arange(81), classes, 0.25, seed)
        assert set(classes[part]) == set(range(10)) and 10 in classes[rest]


def test_dates_as_text_and_codes_of_missing_cells_in_a_split_column(tmp_path, no_report, capsys):
    rows, labels = two_kinds(24)
    when = {name: f"2020-01-{1 + i:02d}T00:00:00" for i, name in enumerate(labels)}
    table = {name: [row[i] for row in rows] for i, name in enumerate(("id", "time", "band", "flux"))}
    table |= {"kind": [labels[row[0]] for row in rows], "seen": [when[row[0]] for row in rows]}
    pq.write_table(pa.table(table), tmp_path / "t.parquet")  # text, as Parquet made from CSV or JSON has it
    fit = ["fit", tmp_path / "t.parquet", "--channel", "band", "--values", "flux", "--predictor", "model", *TINY]
    assert command(*fit, "--label", "kind", "--split-by", "seen", "--out", tmp_path / "a") == 0
    found = pq.read_table(tmp_path / "a/predictions.parquet").to_pandas()
    assert set(found.id[found.part == "test"]) == set(sorted(labels)[-6:])
    years = {name: -999 if i == 3 else 2000 + i for i, name in enumerate(labels)}
    write_csv(tmp_path / "l.csv", "id,label,year", [(name, kind, years[name]) for name, kind in labels.items()])
    given = ["--labels", tmp_path / "l.csv", "--split-by", "year", "--na", "-999", "--out", tmp_path / "b"]
    assert command(*fit, *given) == 2  # -999 is no year before all others
    assert "1 series have no value in the column 'year'" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("texts", "refused"),
    [
        (["03.09.2020", "", "12.10.2021"], "03.09.2020"),
        (["9/3/20", "10/12/21"], "9/3/20"),
        (["2020-09-03", "2020/10/12 10:00"], "2020/10/12 10:00"),
        (["2020-09-03", "2020-9-4"], "2020-9-4"),
        (["3 Sep 2020", "12 octobre 2021"], "3 Sep 2020"),
        (["03.09.2020", "later"], None),
        (["10.1.2", "10.1.3"], None),
    ],
)
def test_dates_that_come_in_no_order_are_refused(texts, refused):
    data = series(len(texts))
    table = pa.table({"id": data.ids, "day": texts})
    if refused:
        with refuses("'day'", repr(refused), "ISO dates", "2024-03-31"):
            align_column(data, table, "id", "day")
    else:
        assert align_column(data, table, "id", "day")[0].tolist() == texts
    dated = pa.table({"id": data.ids, "day": [f" 2020-09-{i + 1:02d}" for i in range(len(texts))]})
    assert align_column(data, dated, "id", "day")[1]
