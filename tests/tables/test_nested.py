"""One row per object, its observations in lists: every form that Arrow has of it is the same data set."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from conftest import refuses
from rotarymae.errors import InputWarning
from rotarymae.series import SeriesDataset
from rotarymae.tables import open_source, read

IDS = [7, 3, 9, 7]
TIMES: Any = [[0.5, 1.5], [0.25], [], [3.0, 2.0, 4.0]]
FLUX: Any = [[1.25, -2.5], [3.0], [], [np.nan, 1.0, 2.0]]
BAND: Any = [["g", "r"], ["r"], [], ["g", "g", "r"]]
ROLES: Any = ("id", "lc.t", "lc.b", ["lc.f"])
ROWS = [[{"t": t, "f": f, "b": b} for t, f, b in zip(*row, strict=True)] for row in zip(TIMES, FLUX, BAND, strict=True)]


def lists(kind):
    columns = {"lc.t": (TIMES, pa.float64()), "lc.f": (FLUX, pa.float64()), "lc.b": (BAND, pa.string())}
    return pa.table({"id": IDS, **{name: pa.array(c, kind(of)) for name, (c, of) in columns.items()}})


def structs(lists_of=pa.list_):
    kind = pa.struct([("t", pa.float64()), ("f", pa.float64()), ("b", pa.string())])
    return pa.table({"id": IDS, "lc": pa.array(ROWS, lists_of(kind))})


def _with_categories(table):
    """The bands as a dictionary with codes, as categories of pandas are written."""
    bands = table["lc.b"].combine_chunks()
    coded = pa.ListArray.from_arrays(bands.offsets, bands.values.dictionary_encode())
    return table.set_column(table.schema.get_field_index("lc.b"), "lc.b", coded)


FORMS = {
    "lists": lambda: lists(pa.list_),
    "large lists": lambda: lists(pa.large_list),
    "a struct of lists": lambda: pa.table(
        {"id": IDS, "lc": [{"t": t, "f": f, "b": b} for t, f, b in zip(TIMES, FLUX, BAND, strict=True)]}
    ),
    "lists of categories": lambda: _with_categories(lists(pa.list_)),
    "a list of structs": structs,
    "a large list of structs": lambda: structs(pa.large_list),
    "pandas": lambda: lists(pa.list_).to_pandas(),
    "pandas of structs": lambda: structs().to_pandas(),
    "polars": lambda: pl.from_arrow(structs()),
}


def long():
    """The same observations, a row each."""
    rows = [
        (name, t, f, b)
        for name, *row in zip(IDS, TIMES, FLUX, BAND, strict=True)
        for t, f, b in zip(*row, strict=True)
        if not np.isnan(f)
    ]
    return (
        pd.DataFrame(rows, columns=["id", "lc.t", "lc.f", "lc.b"])
        .sort_values("lc.t", kind="stable")
        .loc[[0, 1, 2, 3, 4]]
    )


@pytest.mark.filterwarnings("ignore::rotarymae.errors.InputWarning")
@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_long_table(tmp_path, monkeypatch, form):
    wanted = SeriesDataset.from_frame(long(), *ROLES).fingerprint()
    table = FORMS[form]()
    found = SeriesDataset.from_frame(table, *ROLES)
    assert found.fingerprint() == wanted and found.reading is not None
    assert found.reading.empty == (9,) and sum(found.reading.missing.values()) == 2 and found.reading.kept == 5
    if isinstance(table, pa.Table):
        monkeypatch.setattr(read, "READ", 3)
        rows = 4 if form == "lists of categories" else 2  # pyarrow reads such lists of one row group only
        pyarrow.parquet.write_table(table, tmp_path / "t.parquet", row_group_size=rows)
        pyarrow.feather.write_feather(table, tmp_path / "t.feather", chunksize=2)
        for suffix in ("parquet", "feather"):
            for memory in (None, 0):
                made = SeriesDataset.from_file(tmp_path / f"t.{suffix}", *ROLES, memory=memory)
                assert made.fingerprint() == wanted and made.reading is not None
                assert made.reading.missing == found.reading.missing and made.reading.empty == (9,)


def test_flags_and_padding_are_missing_observations():
    nan = np.nan
    table = pa.table(
        {
            "id": ["a", "b"],
            "t": pa.array([[1.0, 2.0, 3.0, nan], [1.0, 2.0, nan, nan]], pa.list_(pa.float64(), 4)),
            "f": [[5.0, 6.0, 7.0, nan], [8.0, nan, nan, nan]],
            "catflags": [[0, 32768, 0, 0], [0, 0, None, 0]],
            "saturated": [[False, True, True, False], [False] * 4],
        }
    )
    data = SeriesDataset.from_frame(table, "id", "t", None, "f", flags=["catflags", "saturated"])
    assert data.times.tolist() == [1, 1] and data.values.ravel().tolist() == [5, 8] and data.reading is not None
    assert data.reading.missing == {"'catflags' is a flag": 1, "'saturated' is a flag": 1, "'f' is missing": 4}
    assert (data.reading.total, data.reading.kept) == (8, 2)
    said = "6 of 8 rows dropped: 'catflags' is a flag in 1, 'saturated' is a flag in 1, 'f' is missing in 4"
    assert said in str(data.reading)
    every = SeriesDataset.from_frame(table, "id", "t", None, "f")
    assert every.times.tolist() == [1, 2, 3, 1]


def test_flags_of_a_wide_table_are_refused(tmp_path):
    pyarrow.parquet.write_table(pa.table({"id": [1], "time": [0.5], "u": [1.0], "bad": [1]}), tmp_path / "t.parquet")
    with refuses("flags 'bad'", "single observations"):
        SeriesDataset.from_file(tmp_path / "t.parquet", values=["u"], wide=True, flags=["bad"])


def test_a_time_that_is_missing_next_to_a_value_is_left_out_and_named():
    table = pa.table({"id": ["a"], "t": [[1.0, None]], "f": [[1.0, 2.0]]})
    with pytest.warns(InputWarning, match="'t' is missing in 1 .first: row 1"):
        assert SeriesDataset.from_frame(table, "id", "t", None, "f").times.tolist() == [1.0]


def test_rows_of_one_object_and_one_filter_each_join():
    """As ZTF has them: the filter is a column without lists."""
    table = pa.table(
        {
            "object": [4, 4, 5],
            "filter": [1, 2, 1],
            "lc": [
                {"mjd": [1.0, 3.0], "mag": [20.0, 21.0]},
                {"mjd": [2.0], "mag": [19.0]},
                {"mjd": [9.0], "mag": [18.0]},
            ],
        }
    )
    data = SeriesDataset.from_frame(table, "object", "lc.mjd", "filter", ["lc.mag"])
    assert data.ids.tolist() == [4, 5] and data.times.tolist() == [1, 2, 3, 9]
    assert data.channels is not None and data.channels.tolist() == [0, 1, 0, 0] and data.channel_names == (1, 2)


def test_different_rows_of_lists_keep_their_order():
    source = open_source(pa.table({"id": [1, 2], "a": [[3, 1, 2, 9, 3], [0, 9]], "b": [[1, 1, 1, 1, 1], [1]]}))
    assert source.read(["a"], distinct=True)["a"].to_pylist() == [3, 1, 2, 9, 0]
    with refuses("row 2", "different lengths"):
        source.read(["a", "b"], distinct=True)
    assert source.read(["a", "b"], distinct=True, equal=False)["b"].to_pylist() == [1, 1, 1, 1, 1, None]
    with refuses("no column 'key'"):
        next(source.series(["a"], "key", 10))


def test_names_of_fields_are_checked():
    with refuses("'lc.mjd'", "'lc.mjdd'"):
        SeriesDataset.from_frame(
            pa.table({"id": [1], "lc": [{"mjdd": [1.0], "f": [1.0]}]}), "id", "lc.mjd", None, "lc.f"
        )
    with refuses("row 1", "different lengths", "'lc.t', 'lc.f'"):
        SeriesDataset.from_frame(
            pa.table({"id": [1], "lc": [{"t": [1.0, 2.0], "f": [1.0]}]}), "id", "lc.t", None, "lc.f"
        )
