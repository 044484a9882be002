"""What is said of the cells of a column."""

import numpy as np
import pandas as pd
import pytest

from rotarymae.tables import open_source
from rotarymae.tables.columns import look

DRAW = np.random.default_rng(0)
HELD = {
    "0.1 to 153.5 mg/dL, median 2.7": [0.1, 153.5, 2.7, 2.5, 2.8, 2.6, 2.9],
    "0, 0.5, 1": [1, 0.5, 0, 0.5],
    "g, r": ["r", "g", None, "r"],
    "2020-01-01 to 2020-03-10": pd.date_range("2020-01-01", periods=70).astype(str),
    "2020-01-01 to 2020-01-02 05:00:00": pd.date_range("2020-01-01", periods=30, freq="h").astype(str),
    "40 different, such as star 1": [f"star {k}" for k in range(1, 41)],
    "05/06/24, 07/08/24": ["05/06/24", "07/08/24"],  # the day or the month may come first
    "1,5; 2": ["1,5", "2"],
    "empty": [None, ""],
    "one value: 7": [7, 7, None],
    "2459000.5 to 2459060.5 mg/dL": 2459000.518 + 59.952 * np.linspace(0, 1, 40),
    "298.0012 to 298.0026 mg/dL": np.linspace(298.0012, 298.0026, 15),
    "160 to 160320 mg/dL, median 170": [160, 165, 168, 170, 180, 90000, 160319.5],
    "1.609160400056e+18 to 1.609160409407e+18 mg/dL": 1609160400055920128 + 1337143 * 7 * np.arange(1000) * 1.0,
}


@pytest.mark.parametrize("wanted", HELD)
def test_what_a_column_holds_is_said_in_few_words(wanted):
    column = look(open_source(pd.DataFrame({"x": HELD[wanted]})))["x"]
    assert column.holds("mg/dL") == wanted


@pytest.mark.parametrize("name", ["itemid", "subject_id"])
def test_numbers_that_are_names_have_no_range(name):
    column = look(open_source(pd.DataFrame({name: 220045 + np.arange(40)})))[name]
    assert column.holds(names=name == "itemid") == "40 different, such as 220045"
