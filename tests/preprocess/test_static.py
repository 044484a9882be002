"""Static columns: numbers and categories, missing or never seen, become features that come back with a saved model."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from conftest import refuses, says
from rotarymae import SeriesDataset
from rotarymae.errors import InputWarning
from rotarymae.preprocess import DatasetExamples, ObservationPreprocessor, StaticColumn, fit_static, static_features
from rotarymae.system import from_fields


def compute(column, values):
    return column.features(torch.from_numpy(column.codes(values)).double()).numpy()


def people(**static):
    count = len(next(iter(static.values())))
    return SeriesDataset.from_arrays([[0.0, 1.0]] * count, [[1.0, 2.0]] * count, static=static)


def test_a_number_is_standardised_and_missing_is_its_mean_with_a_flag():
    made = StaticColumn.fit("age", np.array([50.0, 60.5, 70.0, np.nan]))
    assert made.categories is None and made.missing and made.width == 2
    found = compute(made, np.array([50.0, 60.5, 70.0, np.nan]))
    assert abs(found[:3, 0].mean()) < 1e-12 and abs(found[:3, 0].std() - 1) < 1e-9
    assert found[3].tolist() == [0, 1] and (found[:3, 1] == 0).all()
    assert np.abs(compute(made, np.array([1e9, -1e9]))).max() < 2  # moved to the edges of training


def test_a_category_is_one_hot_and_what_training_has_not_seen_is_zeros_with_a_warning():
    made = StaticColumn.fit("sex", np.array(["m", "f", "m", None], object))
    assert made.categories == ("f", "m") and made.width == 3
    assert compute(made, np.array(["m", "f", None], object)).tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1]]
    with pytest.warns(InputWarning, match=says("'sex'", "'x'", "'f', 'm'")):
        assert compute(made, np.array(["x"], object)).tolist() == [[0, 0, 0]]


def test_few_whole_numbers_are_categories():
    assert StaticColumn.fit("unit", np.array([1, 2, 3, 4] * 3)).categories == (1, 2, 3, 4)
    assert StaticColumn.fit("unit", np.array([1.0, 2.0, np.nan] * 3)).categories == (1.0, 2.0)
    assert StaticColumn.fit("age", np.arange(12)).categories is None  # each once: no categories
    assert StaticColumn.fit("age", np.array([0.5, 1.5] * 9)).categories is None


def test_missing_categories_are_read_from_a_table():
    data = people(sex=["m", None, "f"], age=[1.0, None, 3.5])
    assert data.static["sex"].tolist() == ["m", None, "f"] and np.isnan(data.static["age"][1])
    assert data.fingerprint() == people(sex=["m", None, "f"], age=[1.0, None, 3.5]).fingerprint()


def test_what_says_nothing_is_refused():
    with refuses("'sex'", "'m'"):
        fit_static(people(sex=["m", "m"]), ("sex",))
    with refuses("'age'"):
        StaticColumn.fit("age", np.array([np.nan, np.nan]))
    with refuses("'name' has 300 categories", "256"):
        StaticColumn.fit("name", np.array([f"n{i}" for i in range(300)], object))
    with refuses("'born' holds dates or durations", "years"):
        StaticColumn.fit("born", np.array(["2001-02-03", "2004-05-06"], "M8[D]"))
    with refuses("static column 'agee'", "'age'", "'age'"):
        fit_static(people(age=[1.0, 2.5]), ("agee",))
    with refuses("static column 'age'", "none"):
        made = fit_static(people(age=[1.0, 2.5]), ("age",))
        static_features(made, replace(people(age=[1.0, 2.5]), static={}))
    with refuses("'age' holds 'old'", "in training it held numbers"):
        static_features(made, people(age=["old", "young"]))
    for empty in (np.array([None, None]), np.array(["NaT", "NaT"], "M8[D]")):
        assert not static_features(made, replace(people(age=[1.0, 2.5]), static={"age": empty})).any()


def test_batches_carry_the_features_of_their_series():
    data = people(age=[1.5, 2.5, 3.5], sex=["m", "f", "f"])
    made = ObservationPreprocessor.fit(data).replace(static=fit_static(data, ("age", "sex")))
    assert made.static_features == 3
    batch = DatasetExamples(data, made).batch(np.array([2, 0]), None)
    assert batch.static[:, 1:].tolist() == [[1, 0], [0, 1]] and batch.static[0, 0] > 0 > batch.static[1, 0]
    back = from_fields(ObservationPreprocessor, json.loads(json.dumps(asdict(made))), "preprocessor")
    assert asdict(back) == asdict(made) and made.describe()["static columns"] == "age, sex"


def test_a_category_is_the_same_as_a_number_and_as_text():
    """Whether a text file's 3 is a number depends on what else stands in its column."""
    ward = StaticColumn.fit("ward", np.array(["3", "ICU", "3", "ICU"], object))
    for column in ([3, 3], [3.0, 3.0], ["3", "3"]):
        assert compute(ward, np.array(column)).tolist() == [[1, 0], [1, 0]]
    number = StaticColumn.fit("ward", np.array([3, 4, 3, 4]))
    assert compute(number, np.array(["3", "4"], object)).tolist() == [[1, 0], [0, 1]]


def test_an_empty_column_is_missing_throughout(tmp_path):
    (tmp_path / "t.csv").write_text("id,time,value,age\n1,0,1,\n1,1,2,\n")
    data = SeriesDataset.from_file(tmp_path / "t.csv", static=["age"])
    assert all(one is None or one != one for one in data.static["age"])
    age = StaticColumn.fit("age", np.arange(40.0))
    assert compute(age, data.static["age"]).tolist() == [[0.0]]
