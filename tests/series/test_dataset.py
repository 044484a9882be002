"""Series: every way in gives the same dataset, choosing loses nothing, and what cannot be used is refused by name."""

import datetime as dt
import pickle
import re
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import refuses, says
from rotarymae.errors import InputError, InputWarning
from rotarymae.series import dates
from rotarymae.series.dataset import Series, SeriesDataset
from rotarymae.tables.coerce import as_dataset
from rotarymae.tables.labels import align_column, align_labels

COLUMNS = {
    "star": ["b", "a", "b", "a", "b", "b"],  # interleaved
    "mjd": [1.0, 5.0, 1.0, 6.5, 2.0, 3.5],
    "band": ["r", "g", "g", "g", "g", "r"],
    "flux": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    "err": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
    "ra": [20.0, 10.0, 20.0, 10.0, 20.0, 20.0],
    "kind": ["x", "y", "x", "y", "x", "x"],
}
ROLES: Any = {"id": "star", "time": "mjd", "channel": "band", "values": ["flux", "err"], "static": ["ra", "kind"]}
NAN, INF = float("nan"), float("inf")
MAKERS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}


def frame(**changes):
    """The table above with some columns replaced."""
    return pa.table(COLUMNS | changes)


def build(**changes):
    return SeriesDataset.from_frame(frame(**changes), **ROLES)


def from_wide(table, id="id", time="time", channels: Any = None, static: Any = (), **options):
    return SeriesDataset.from_frame(table, id, time, None, channels, static, wide=True, **options)


# ── ways in ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(params=MAKERS)
def maker(request):
    return MAKERS[request.param]


def test_an_astropy_table_is_read():
    astropy = pytest.importorskip("astropy.table")
    data = SeriesDataset.from_frame(astropy.Table({name: list(column) for name, column in COLUMNS.items()}), **ROLES)
    assert data.fingerprint() == SeriesDataset.from_frame(pa.table(COLUMNS), **ROLES).fingerprint()


def test_from_frame_by_hand(maker):
    data = SeriesDataset.from_frame(maker(COLUMNS), **ROLES)
    assert data.ids.tolist() == ["b", "a"]  # by first appearance
    assert data.channel_names == ("g", "r") and data.value_names == ("flux", "err")
    assert data.times.tolist() == [1.0, 1.0, 2.0, 3.5, 5.0, 6.5]
    assert data.channels is not None and data.channels.tolist() == [0, 1, 0, 1, 0, 0]
    assert data.values.tolist() == [[3, 0.3], [1, 0.1], [5, 0.5], [6, 0.6], [2, 0.2], [4, 0.4]]
    assert data.offsets.tolist() == [0, 4, 6] and data.lengths.tolist() == [4, 2]
    assert data.static["ra"].tolist() == [20.0, 10.0] and data.static["kind"].tolist() == ["x", "y"]
    types = [a.dtype for a in (data.times, data.values, data.channels, data.offsets)]
    assert types == [np.float64, np.float64, np.int32, np.int64]
    assert data.tokens == "channel" and data.time_unit is None


def test_integer_ids_and_channels():
    data = build(star=[7, 3, 7, 3, 7, 7], band=[2, 10, 10, 10, 10, 2])
    assert data.ids.tolist() == [7, 3] and data.ids.dtype == np.int64
    assert data.channel_names == (2, 10)
    assert data[0].id == 7 and isinstance(data[0].id, int)


def test_categories_are_their_labels():
    table = pd.DataFrame(COLUMNS).astype({"star": "category", "band": "category"})
    assert SeriesDataset.from_frame(table, **ROLES).fingerprint() == build().fingerprint()
    coded = pl.DataFrame(COLUMNS).with_columns(pl.col("band").cast(pl.Categorical))
    assert SeriesDataset.from_frame(coded, **ROLES).fingerprint() == build().fingerprint()


@pytest.mark.parametrize("err, wanted", [(pa.float32(), np.float32), (pa.float64(), np.float64)])
def test_float32_stays_only_if_every_column_was(err, wanted):
    columns = {"flux": pa.array(COLUMNS["flux"], pa.float32()), "err": pa.array(COLUMNS["err"], err)}
    assert build(**columns).values.dtype == wanted


def test_booleans_and_integers_become_numbers():
    data = build(flux=[True, False, True, True, False, True], err=[1, 2, 3, 4, 5, 6])
    assert data.values[:2].tolist() == [[1.0, 3.0], [1.0, 1.0]]


def test_without_channels_each_row_is_one_time():
    data = SeriesDataset.from_frame(pa.table({"id": [1, 1], "time": [0, 1], "value": [5, 6]}))
    assert data.channels is None and data.channel_names is None and data.tokens == "time"
    assert data.values.tolist() == [[5.0], [6.0]] and data[0].channels is None


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_datetimes_become_days(unit):
    when = pa.array([dt.datetime(1970, 1, 2), dt.datetime(2024, 2, 29, 12)], pa.timestamp(unit))
    data = SeriesDataset.from_frame(pa.table({"id": [1, 1], "time": when, "value": [0.0, 1.0]}))
    assert data.times.tolist() == [1.0, 19782.5] and data.time_unit == "day"
    assert "times 1970-01-02 00:00:00+00:00 to 2024-02-29 12:00:00+00:00" in repr(data)


def test_times_as_text_are_missing_where_a_code_for_missing_is_spelt_otherwise():
    read = dates.times(pa.array(["1", "2", "x", "-999.0"]), "t", na=["-999"])
    np.testing.assert_array_equal(read.values, [1, 2, NAN, NAN])
    assert read.words == {"x": 1}


def test_a_date_may_be_a_code_for_missing():
    read = dates.times(pa.array(["2024-01-02", "1900-01-01"]), "t", na=["1900-01-01"])
    np.testing.assert_array_equal(read.values, [19724, NAN])


def test_whole_dates_next_to_a_gap_which_pandas_makes_floats_are_dates():
    read = dates.times(pa.array([20240102.0, NAN, None]), "t", "%Y%m%d")
    np.testing.assert_array_equal(read.values, [19724, NAN, NAN])
    read = dates.times(pa.array([20240102, -999]), "t", "%Y%m%d", ["-999.0"])
    assert read.values[0] == 19724 and np.isnan(read.values[1]) and not read.words
    assert dates.times(pa.array([1.5, 2.0]), "t", "%Y%m%d").values.tolist() == [1.5, 2.0]  # no dates
    with refuses("'t'", "2^24", "20240300 in row 0"):
        dates.times(pa.array(np.array([20240301], np.float32)), "t", "%Y%m%d")


def test_the_note_on_spans_names_a_span():
    span = "2024-01-20 00:00 - 2024-01-20 01:00"
    assert repr(span) in (dates.times(pa.array(["NA", span]), "t").note or "")
    note = dates.times(pa.array(["1.2.24 00:00 - 1.2.24 01:00"]), "t", "%d.%m.%y %H:%M").note or ""
    assert "1969 to 2068" in note and "the start" in note


def test_text_that_is_all_iso_dates_is_dates():
    """As JSON and Excel files hold them, and tables that were made from text."""
    for texts, zone in ((["2024-02-29T12:00:00", "2024-03-01"], ""), (["2024-02-29T13:00:00+01:00"] * 2, "UTC")):
        data = SeriesDataset.from_frame(pd.DataFrame({"id": [1, 2], "time": texts, "value": [0.0, 1.0]}))
        assert data.times[0] == 19782.5 and data.time_unit == "day" and data.time_zone == "UTC"
        assert bool(data.reading.notes) == (zone == "")  # times without a zone are said to be taken as UTC


@pytest.mark.parametrize("when", ["-0500-01-01", "0000-01-01", "10000-01-01"])
def test_dates_that_no_calendar_writes_are_refused_or_left_out(when):
    times = np.array([when, "2024-03-31"], "M8[s]")
    with refuses("outside the years 1 to 9999 in 1", "series 0 at time"):
        SeriesDataset.from_arrays([times], [[1.0, 2.0]])
    with pytest.warns(InputWarning, match="outside the years 1 to 9999 in 1"):
        data = SeriesDataset.from_frame(pa.table({"id": [0, 0], "time": times, "value": [1.0, 2.0]}))
    assert "2024-03-31" in repr(data) and data.reading.dropped == 1


def test_no_texts_are_no_dates():
    assert dates.as_datetimes([], "%Y") == []
    with refuses("'soon'", "not written as '%Y'"):
        dates.as_datetimes(["soon"], "%Y")


def test_dates_zones_durations():
    def days(when):
        data = SeriesDataset.from_frame(pa.table({"id": [1], "time": when, "value": [0.0]}))
        return data.times[0], data.time_unit

    east = dt.timezone(dt.timedelta(hours=6))
    assert days(pa.array([dt.date(1970, 1, 11)])) == (10.0, "day")
    assert days(pa.array([dt.date(1970, 1, 11)], pa.date64())) == (10.0, "day")
    assert days(pd.Series([dt.datetime(1970, 1, 2, 6, tzinfo=east)])) == (1.0, "day")
    assert days(pa.array([dt.timedelta(hours=-36)])) == (-1.5, "day")


def test_arrays_take_the_dates_and_durations_of_python_and_pandas():
    morning = dt.datetime(1970, 1, 2, 6, tzinfo=dt.timezone(dt.timedelta(hours=6)))
    for times in ([morning], pd.DatetimeIndex([morning]), [pd.Timestamp(1970, 1, 2)], [dt.date(1970, 1, 2)]):
        data = SeriesDataset.from_arrays([times], [[0.0]])
        assert (data.times.tolist(), data.time_unit, data.time_zone) == ([1.0], "day", "UTC")
    assert SeriesDataset.from_arrays([[dt.timedelta(hours=12)]], [[0.0]]).times.tolist() == [0.5]
    with refuses("'time' is missing in 1"):
        SeriesDataset.from_arrays([pd.DatetimeIndex([morning, pd.NaT])], [[0.0, 1.0]])
    with refuses("series 0: times is no array of numbers, dates or durations"):
        SeriesDataset.from_arrays([[morning, 3.0]], [[0.0, 1.0]])


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ns"])
def test_dates_and_spans_of_every_unit_of_numpy(unit):
    date = np.array(["1970-01-01"], f"M8[{unit}]")
    spans = [np.array([604_800], "m8[s]").astype(f"m8[{unit}]")] if unit not in "YM" else []
    for times, days in ((date, float(date.astype("M8[D]").astype(int)[0])), *((span, 7.0) for span in spans)):
        data = SeriesDataset.from_arrays([times], [np.zeros(1)])
        assert (data.times[0], data.time_unit) == (days, "day")


def test_arrays_agree_with_frame():
    made = SeriesDataset.from_arrays(
        times=[[1.0, 1.0, 2.0, 3.5], [5.0, 6.5]],
        values=[[[1, 0.1], [3, 0.3], [5, 0.5], [6, 0.6]], [[2, 0.2], [4, 0.4]]],
        channels=[["r", "g", "g", "r"], ["g", "g"]],
        ids=["b", "a"],
        value_names=["flux", "err"],
        static=pd.DataFrame({"ra": [20.0, 10.0], "kind": ["x", "y"]}),
    )
    assert made.fingerprint() == build().fingerprint()


def test_arrays_defaults_and_types():
    data = SeriesDataset.from_arrays([[0, 1], [3]], [np.zeros((2, 2), np.float32), np.ones((1, 2), np.float32)])
    assert data.ids.tolist() == [0, 1] and data.value_names == ("value_0", "value_1")
    assert data.values.dtype == np.float32 and data.times.dtype == np.float64
    dates = SeriesDataset.from_arrays([np.array(["1970-01-03"], "M8[D]")], [[1.0]])
    assert dates.times.tolist() == [2.0] and dates.time_unit == "day" and dates.value_names == ("value",)
    foreign = SeriesDataset.from_arrays([[0.0]], [[1.0]], ids=np.array([5], ">i8"), channels=[np.array([2], ">i4")])
    assert foreign.ids.tolist() == [5] and foreign.channel_names == (2,)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_shuffled_rows_equal_arrays(data):
    """Whatever the order of rows, the dataset is the one that from_arrays builds series by series."""
    count = data.draw(st.integers(1, 4))
    cell = st.tuples(st.integers(-5, 5), st.sampled_from("gru"))
    series = [data.draw(st.lists(cell, min_size=1, max_size=6, unique=True)) for _ in range(count)]
    rows = [(f"s{i}", t / 4, c, 10.0 * i + k) for i, cells in enumerate(series) for k, (t, c) in enumerate(cells)]
    shuffled = data.draw(st.permutations(rows))
    table = pa.table({name: list(col) for name, col in zip(("id", "time", "channel", "value"), zip(*shuffled))})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        made = SeriesDataset.from_frame(table, channel="channel")
        cells = [sorted(((t, c, v) for name, t, c, v in rows if name == id)) for id in made.ids]
        wanted = SeriesDataset.from_arrays(
            [[t for t, _, _ in s] for s in cells],
            [[v for _, _, v in s] for s in cells],
            [[c for _, c, _ in s] for s in cells],
            ids=made.ids,
        )
    assert made.fingerprint() == wanted.fingerprint()
    assert made.ids.tolist() == list(dict.fromkeys(row[0] for row in shuffled))
    again = SeriesDataset.from_frame(made.to_arrow(), channel="channel")
    assert again.fingerprint() == made.fingerprint()


# ── two tokenisations, wide and padded ──────────────────────────────────────────────────────────────────────────────


WIDE = {"id": [1, 1, 2], "time": [0.0, 1.0, 0.0], "hr": [60.0, None, 70.0], "bp": [None, 90.0, 0.0], "age": [4, 4, 5]}


def test_wide_channel_tokens_skip_missing_cells(maker):
    data = from_wide(maker(WIDE), "id", "time", ["hr", "bp"], static=["age"])
    assert data.channel_names == ("hr", "bp") and data.value_names == ("value",)
    assert data.channels is not None and data.channels.tolist() == [0, 1, 0, 1]
    assert data.values.ravel().tolist() == [60.0, 90.0, 70.0, 0.0] and data.lengths.tolist() == [2, 2]
    assert data.static["age"].tolist() == [4, 5] and data.static["age"].dtype == np.int64


def test_wide_time_tokens():
    full = WIDE | {"hr": [60.0, None, 70.0], "bp": [1.0, None, 0.0]}
    data = from_wide(pa.table(full), "id", "time", ["hr", "bp"], tokens="time")
    assert data.value_names == ("hr", "bp") and data.channels is None
    assert data.values.tolist() == [[60.0, 1.0], [70.0, 0.0]]  # the row without any value is gone
    with pytest.warns(InputWarning) as said:
        from_wide(pa.table(WIDE), channels=["hr", "bp"], tokens="time")
    assert re.search(says("2 observed values", "'hr'", "'bp'", "of 3 rows", "--tokens channel"), str(said[0].message))
    with pytest.warns(InputWarning, match="1 observed values"):
        data = from_wide(pa.table(full | {"bp": [1.0, 2.0, 0.0]}), "id", "time", ["hr", "bp"], tokens="time")
    assert len(data.times) == 2 and data.reading is not None and data.reading.lost == 1


def test_arrays_of_channels():
    nan = np.nan
    array = np.array([[[1, 2, nan], [3, 4, nan]], [[5, nan, nan], [6, nan, nan]]], dtype=np.float32)
    data = as_dataset(array)
    assert data.values.tolist() == [[1, 3], [2, 4], [5, 6]] and data.values.dtype == np.float32
    assert data.times.tolist() == [0, 1, 0] and data.lengths.tolist() == [2, 1] and data.ids.tolist() == [0, 1]
    assert data.value_names == ("channel_0", "channel_1")
    assert as_dataset([array[0, :, :2], array[1, :, :1]]).fingerprint() == data.fingerprint()
    array[0, 1, 1] = nan
    data = as_dataset(array)
    assert data.times.tolist() == [0, 0, 1, 0, 0] and data.channel_names == ("channel_0", "channel_1")
    assert data.channels is not None and data.channels.tolist() == [0, 1, 0, 0, 1]
    times, options = [[0.5, 0.7, 0.8]] * 2, {"value_names": ["p", "q"], "ids": ["x", "y"], "wide": True}
    data = SeriesDataset.from_arrays(times, [one.T for one in array], **options)
    assert data.times.tolist() == [0.5, 0.5, 0.7, 0.5, 0.5] and data.channel_names == ("p", "q")
    with pytest.warns(InputWarning, match="1 observed values are dropped"):
        data = SeriesDataset.from_arrays(times, [one.T for one in array], **options, tokens="time")
    assert data.times.tolist() == [0.5, 0.5]


def test_masked_values_are_missing_ones():
    values = np.ma.masked_greater([1.0, 1e20, 3.0], 1e19)
    wanted = SeriesDataset.from_arrays([[0, 1, 2]], [[1.0, np.nan, 3.0]]).fingerprint()
    assert SeriesDataset.from_arrays([[0, 1, 2]], [values]).fingerprint() == wanted
    table = np.ma.stack([values, values])
    for form in (table[None], [table]):
        assert as_dataset(form).values.tolist() == [[1, 1], [3, 3]]
    days = np.ma.masked_array(np.arange("2024-01-01", "2024-01-04", dtype="M8[D]"), [False, True, False])
    with refuses("time", "missing"):
        SeriesDataset.from_arrays([days], [[1.0, 2.0, 3.0]])
    for values in (["1", "b", "3"], [1j, 2j, 3j]):  # whose imaginary part was dropped
        with refuses("values", "number"):
            SeriesDataset.from_arrays([[0, 1, 2]], [np.ma.masked_array(values, [False, True, False])])


@pytest.mark.parametrize(
    "array, parts",
    [
        (np.zeros((2, 0, 3)), ["(2, 0, 3)"]),
        (np.zeros((2, 3, 4), "U1"), ["numbers [channels, time]"]),
        ([np.zeros((2, 3)), np.zeros((1, 3))], ["different numbers of channels: 1, 2"]),
        (np.array([[[0.0]], [[NAN]]]), ["1 of 2 series have no observation left: 1"]),
        ([([0.0], None)], ["series 0: values is float64 of shape ()"]),
    ],
)
def test_arrays_of_channels_refuse(array, parts):
    with pytest.raises(InputError, match=says(*parts)):
        as_dataset(array)


# ── files ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_table_of_a_data_set_is_the_data_set(tmp_path):
    data = build()
    pyarrow.parquet.write_table(data.to_arrow(id="star", time="mjd", channel="band"), tmp_path / "out.parquet")
    assert SeriesDataset.from_file(tmp_path / "out.parquet", **ROLES).fingerprint() == data.fingerprint()
    # Unless told, the ids are called as in the table they came from, also after a choice of series.
    assert data.select([1, 0]).to_arrow().column_names[0] == data.id_name == ROLES["id"]
    with pytest.raises(InputError, match=says("'flux'", "more than once")):
        build().to_arrow(time="flux")


def test_read_table_refuses_what_is_not_there(tmp_path):
    (tmp_path / "curves.csv").write_text("x\n1\n")
    with pytest.raises(InputError, match=says("curve.csv does not exist", "Did you mean 'curves.csv'?")):
        SeriesDataset.from_file(tmp_path / "curve.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        SeriesDataset.from_file(tmp_path / "folder.csv")


# ── bad tables ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "changes, parts",
    [
        ({"star": [dt.date(2020, 1, 1)] * 6}, ["'star'", "date32", "strings"]),
        ({"star": pa.array([2**63] * 6, pa.uint64())}, ["'star'", "64 bits"]),
        ({"star": np.full(6, 2**24 + 2, np.float32)}, ["'star'", "2^24", "16777218 in row 0"]),
        ({"mjd": ["1.2.2020"] * 6}, ["'mjd'", "text", "'1.2.2020'", "datetimes"]),
        (
            {"flux": ["high", "low", "n/a", "high", "low", "high"]},
            ["'flux'", "holds text and no numbers", "'high'", "'low'"],
        ),
        ({"err": [dt.date(2020, 1, 1)] * 6}, ["'err'", "not numeric", "date32"]),
        ({"band": ["g"] * 6}, ["'b' at time 1", "'g'", "2 observations", "1 rows too many", 'duplicates="mean"']),
        ({"ra": [20.0, 10.0, 20.0, 11.0, 20.0, 20.0]}, ["'ra'", "'a'", "10.0", "11.0", "1 series"]),
        ({"ra": [INF, 10.0, INF, 10.0, INF, INF]}, ["'ra'", "infinite", "'b'"]),
        ({"kind": ["x", "y", "x", "y", "z", "x"]}, ["'kind'", "'b'", "'x'", "'z'"]),
    ],
)
def test_bad_cells_are_named(changes, parts):
    with pytest.raises(InputError, match=says(*parts)):
        build(**changes)


@pytest.mark.parametrize(
    "changes, column, reason, count, first",
    [
        ({"star": ["b", None, "b", "a", "b", None]}, "star", "is missing", 2, "row 1"),
        ({"star": ["b", "a", "b", "", "b", "b"]}, "star", "is missing", 1, "row 3"),
        ({"star": [1.0, 2.0, NAN, 2.0, 1.0, 1.0]}, "star", "is missing", 1, "row 2"),
        ({"star": [1.0, 2.0, INF, 2.0, 1.0, 1.0]}, "star", "is missing", 1, "row 2"),
        ({"band": ["r", "g", None, "g", "g", "r"]}, "band", "is missing", 1, "series 'b' at time 1"),
        ({"mjd": [1.0, 5.0, None, NAN, 2.0, 3.5]}, "mjd", "is missing", 2, "row 2"),
        ({"mjd": [1.0, INF, 1.0, 6.5, 2.0, 3.5]}, "mjd", "is infinite", 1, "row 1"),
        ({"mjd": [dt.date(2020, 1, day) for day in range(1, 6)] + [None]}, "mjd", "is missing", 1, "row 5"),
        ({"flux": [1.0, 2.0, 3.0, -INF, INF, 6.0]}, "flux", "is infinite", 2, "series 'a' at time 6.5, channel 'g'"),
        ({"flux": [1.0, 1e200, 3.0, 4.0, 5.0, 6.0]}, "flux", "is beyond", 1, "series 'a' at time 5, channel 'g'"),
        ({"err": [0.1, -1.0, 0.3, 0.4, 0.5, 0.6]}, "err", "is negative", 1, "series 'a' at time 5, channel 'g'"),
    ],
)
def test_one_bad_cell_is_left_out_counted_and_named(changes, column, reason, count, first):
    options = {**ROLES, "values": ["flux"], "errors": ["err"]}
    with pytest.warns(InputWarning, match=says(f"{count} of 6 rows are left out", repr(column), reason, first)):
        data = SeriesDataset.from_frame(frame(**changes), **options)
    assert data.reading is not None and data.reading.kept == len(data.times) == 6 - count
    [(said, number)] = data.reading.left_out.items()
    assert said.startswith(f"{column!r} {reason}") and number == count
    with pytest.raises(InputError) as refused:
        SeriesDataset.from_frame(frame(**changes), **options, strict=True)
    assert refused.value.code == "unusable-cell" and first in str(refused.value)


def test_texts_among_numbers_are_missing_and_listed_with_their_counts():
    cells = ["1", "<0.5", "n/a", "NEG", "NEG", "2.5"]
    with pytest.warns(InputWarning) as caught:
        data = SeriesDataset.from_frame(frame(flux=cells), **(ROLES | {"values": "flux"}), limits="drop")
    assert re.search(says("2 cells of 'flux' cannot be read", "'NEG' 2", "--na NEG"), str(caught[0].message))
    assert re.search(says("1 values of 'flux' are limits, and are left out", "first: series"), str(caught[2].message))
    assert data.reading is not None and data.reading.words == {"flux": {"NEG": 2}}
    assert data.values.ravel().tolist() == [1.0, 2.5] and data.reading.missing == {"'flux' is missing": 4}


@pytest.mark.parametrize(
    "roles, parts",
    [
        ({"time": "mjdd"}, ["column 'mjdd'", "Did you mean 'mjd'?", "'star'"]),
        ({"values": ["fluxx", "er"]}, ["'fluxx'", "'flux'"]),
        ({"values": ["flux", "flux"]}, ["'flux'", "given twice", "value", "value"]),
        ({"values": ["flux", "mjd"]}, ["'mjd'", "given twice", "as time", "as value"]),
        ({"values": []}, ["values is empty"]),
        ({"values": [3]}, ["values", "3", "text"]),
        ({"id": 0}, ["id is 0", "text"]),
        ({"tokens": "times"}, ["tokens='times'", "'channel', 'time'", "Did you mean 'time'"]),
        ({"tokens": "time"}, ["tokens='time'", "channel='band'", "wide"]),
        ({"duplicates": "newest"}, ["duplicates='newest'", "'error', 'mean', 'first', 'last'"]),
        ({"channel_names": ["r"], "strict": True}, ["'band' is 'g', where 'r' are known, in 4 (first: series 'a'"]),
        ({"channel_names": ["g", "r", "g"]}, ["'g'", "twice"]),
        ({"channel_names": [["g"], ["r"]]}, ["'channel_names'", "list"]),
        ({"channel_names": ["g", 1]}, ["channel_names", "mixed type"]),
        ({"channel_names": ["g", None]}, ["channel_names", "1 are missing"]),
        ({"channel_names": []}, ["channel_names is []", "at least one"]),
        ({"channel": None, "channel_names": ["g"]}, ["'g'", "channel=..."]),
    ],
)
def test_bad_roles_are_named(roles, parts):
    with pytest.raises(InputError, match=says(*parts)):
        SeriesDataset.from_frame(frame(), **(ROLES | roles))


def test_no_table_no_rows():
    for wrong in ({"id": [1]}, pl.LazyFrame({"id": [1]}), [1, 2]):
        with pytest.raises(InputError, match=says(type(wrong).__name__, "pandas", "astropy", ".collect()")):
            SeriesDataset.from_frame(wrong)
    with pytest.raises(InputError, match=says("no rows", "'star'")):
        SeriesDataset.from_frame(frame().slice(0, 0), **ROLES)
    for twice in (pa.table([[1], [2]], names=["id", "id"]), pd.DataFrame([[1, 2]], columns=["id", "id"])):
        for read in (SeriesDataset.from_frame, as_dataset):
            with pytest.raises(InputError, match=says("'id'", "more than once", "name of its own")):
                read(twice)


@pytest.mark.parametrize("column", ["star", "band", "flux", "mjd"])
def test_mixed_types_are_refused(column):
    table = pd.DataFrame(COLUMNS).astype({column: object})
    table.loc[0, column] = 1 if column in ("star", "band") else "one"
    with pytest.raises(InputError, match=says(f"'{column}'", "mixed type")):
        SeriesDataset.from_frame(table, **ROLES)


@pytest.mark.parametrize("ids", [pd.period_range("2024", periods=6, freq="D"), pd.interval_range(0, 6)])
def test_ids_of_a_type_that_holds_no_labels_are_refused(ids):
    with pytest.raises(InputError, match=says("'star'", "labels and ids must be integers")):
        SeriesDataset.from_frame(pd.DataFrame(COLUMNS).assign(star=ids), **ROLES)


def test_given_channels_keep_their_order():
    data = SeriesDataset.from_frame(
        frame(), **ROLES, channel_names=np.array([" r", "i", "g"])
    )  # as cells, without blanks
    assert data.channel_names == ("r", "i", "g")
    assert data.channels is not None and data.channels.tolist() == [0, 2, 2, 0, 2, 2]


def test_missing_values_are_missing_observations_and_counted():
    data = build(flux=[1.0, NAN, 3.0, 4.0, 5.0, 6.0], err=[0.1, NAN, 0.3, 0.4, 0.5, 0.6])  # nothing observed is lost
    assert data.values[:, 0].tolist() == [3.0, 1.0, 5.0, 6.0, 4.0] and data.reading is not None
    assert str(data.reading) == "1 of 6 rows dropped: 'flux' is missing in 1" and data.reading.kept == 5
    with pytest.warns(InputWarning, match=says("1 observed values are dropped", "'err' is missing in 1 of 6 rows")):
        data = build(err=[0.1, 0.2, None, 0.4, 0.5, 0.6])
    assert data.values[:, 0].tolist() == [1.0, 5.0, 6.0, 2.0, 4.0] and data.lengths.tolist() == [3, 2]
    assert str(build().reading) == "none of 6 rows dropped"


def test_series_without_observations_are_left_out_and_counted():
    with pytest.warns(InputWarning, match="1 series have no observation and are left out: 'a'"):
        data = SeriesDataset.from_frame(frame(flux=[1.0, NAN, 3.0, NAN, 5.0, 6.0]), **(ROLES | {"values": "flux"}))
    assert data.ids.tolist() == ["b"] and data.static["ra"].tolist() == [20.0] and len(data.times) == 4
    assert data.reading is not None and data.reading.empty == ("a",) and data.reading.as_json()["kept"] == 4
    with pytest.raises(InputError, match=says("no value was observed", "6 of 6", "'flux'")):
        SeriesDataset.from_frame(frame(flux=[NAN] * 6), **(ROLES | {"values": "flux"}))


def test_a_column_that_costs_most_of_what_was_observed_is_named():
    limits = [1.0] + [None] * 5  # as where a limit is given only for what was not detected
    with pytest.warns(InputWarning) as said:
        SeriesDataset.from_frame(frame(limit=limits), **(ROLES | {"values": ["flux", "limit"]}))
    message = str(said[0].message)
    assert re.search(says("5 observed values", "'limit' is missing in 5 of 6 rows", "--wide"), message)
    gaps = {name: [1.0 if i == k else None for i in range(6)] for k, name in enumerate(("hr", "bp", "ph"))}
    with pytest.raises(InputError, match=says("of 6 rows", "channel", "--wide")):
        SeriesDataset.from_frame(frame(**gaps), **(ROLES | {"values": list(gaps)}))


def test_rows_of_unknown_channels_are_dropped_where_asked_and_counted():
    with pytest.warns(InputWarning, match=says("2 of 6 rows", "'band' is 'r', where 'g', 'i' are known, in 2")):
        data = SeriesDataset.from_frame(frame(), **ROLES, channel_names=["g", "i"])
    assert data.channel_names == ("g", "i") and data.channels is not None and data.channels.tolist() == [0] * 4
    assert str(data.reading) == "2 of 6 rows dropped: 'band' is 'r', where 'g', 'i' are known, in 2"


@pytest.mark.parametrize("seed", range(12))
def test_kept_and_dropped_add_up_to_the_rows_of_the_file(tmp_path, seed):
    """Whatever is missing, repeated, unknown or empty; in memory and mapped."""
    draw = np.random.default_rng(seed)
    rows, wide = int(draw.integers(30, 90)), bool(seed % 3 == 0)
    table = {
        "id": draw.integers(0, 12, rows),
        "time": draw.integers(0, 40, rows).astype(float),
        "band": draw.choice(["g", "r", "z"], rows),
        **{name: np.where(draw.random(rows) < draw.uniform(0, 0.3), NAN, draw.normal(size=rows)) for name in "vw"},
    }
    pyarrow.parquet.write_table(pa.table(table), tmp_path / "a.parquet")
    roles: Any = (
        {"values": ["v", "w"], "wide": True} if wide else {"channel": "band", "values": ["v", "w"][: 1 + seed % 2]}
    )
    roles |= {} if wide else {"channel_names": ["g", "r"]}
    for memory in (None, 0):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)
            data = SeriesDataset.from_file(tmp_path / "a.parquet", **roles, duplicates="first", memory=memory)
        report = data.reading
        assert report is not None and report.total == rows * (2 if wide else 1)
        assert report.kept == len(data.times) and len(data) + len(report.empty) == len(set(table["id"].tolist()))
        if not wide:
            assert sum(report.left_out.values()) <= int((table["band"] == "z").sum())
        gone = {name: int(np.isnan(table[name]).sum()) for name in roles["values"]}
        if wide:
            assert report.missing == {f"{name!r} is missing": count for name, count in gone.items() if count}


@pytest.mark.parametrize(
    "value, said",
    [(-999.0, True), (1e6, True), (-999.25, True), (4.0, False)],
    ids=["code", "large", "not whole", "near"],
)
def test_a_value_that_looks_like_a_code_is_named(value, said):
    values = np.random.default_rng(0).normal(size=200)
    values[[7, 91]] = value
    table = pa.table({"id": np.arange(200) % 5, "time": np.arange(200), "s": ["a", "b"] * 100, "value": values})
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        data = SeriesDataset.from_frame(table, channel="s")
    assert ["rows have channel 'b'" in str(warning.message) for warning in raised] == [True] * said
    assert data.reading is not None and sum(data.reading.doubts.values()) == 2 * said


def test_a_code_that_comes_often_is_named_where_values_vary():
    values = np.random.default_rng(0).uniform(18, 79, 300)
    values[::3] = -999
    with pytest.warns(InputWarning, match="100 rows have column 'value' -999"):
        SeriesDataset.from_frame(pa.table({"id": np.arange(300) % 5, "time": np.arange(300), "value": values}))
    values[::3] = -150  # as far from the rest as the rest spreads
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SeriesDataset.from_frame(pa.table({"id": np.arange(300) % 5, "time": np.arange(300), "value": values}))


def test_static_numbers_may_be_missing():
    data = build(ra=[NAN, 10.0, NAN, 10.0, None, None])
    assert np.isnan(data.static["ra"][0]) and data.static["ra"][1] == 10.0
    assert build(ra=[None, 1, None, 1, None, None]).static["ra"][1] == 1.0


def test_unsorted_times_are_sorted_with_one_warning():
    with pytest.warns(InputWarning, match=says("1 series had", "sorted", "'b'")) as caught:
        data = build(mjd=[9.0, 5.0, 1.0, 6.5, 2.0, 3.5])
    assert len(caught) == 1
    assert data[0].times.tolist() == [1.0, 2.0, 3.5, 9.0] and data[0].values[-1, 0] == 1.0
    assert data[1].times.tolist() == [5.0, 6.5]


def test_duplicates_mean_and_first():
    twice = {"band": ["g"] * 6}  # the rows 0 and 2
    first = SeriesDataset.from_frame(frame(**twice), **ROLES, duplicates="first")
    assert first[0].values[:, 0].tolist() == [1.0, 5.0, 6.0] and first[0].times.tolist() == [1.0, 2.0, 3.5]
    mean = SeriesDataset.from_frame(frame(**twice), **ROLES, duplicates="mean")
    assert mean[0].values[:, 0].tolist() == [2.0, 5.0, 6.0] and mean[1].values[:, 0].tolist() == [2.0, 4.0]
    single = {"flux": pa.array(COLUMNS["flux"], pa.float32()), "err": pa.array(COLUMNS["err"], pa.float32())}
    kept = SeriesDataset.from_frame(frame(**twice, **single), **ROLES, duplicates="mean")
    assert kept.values.dtype == np.float32
    # Rows out of order: the first is the first of the table.
    table = pa.table({"id": [1, 1, 1], "time": [5, 2, 5], "value": [1.0, 2.0, 3.0]})
    with pytest.warns(InputWarning, match="1 series had"):
        assert SeriesDataset.from_frame(table, duplicates="first").values.ravel().tolist() == [2.0, 1.0]
    wide = pa.table({"id": [1, 1], "time": [0, 0], "a": [1.0, 3.0], "b": [NAN, 5.0]})
    assert from_wide(wide, channels=["a", "b"], duplicates="mean").values.ravel().tolist() == [2.0, 5.0]


def test_same_time_in_two_channels_or_series_is_no_duplicate():
    assert len(build().times) == 6  # rows 0 and 2 share series and time
    table = pa.table({"id": [1, 2], "time": [0, 0], "value": [1.0, 2.0]})
    assert SeriesDataset.from_frame(table).lengths.tolist() == [1, 1]


@pytest.mark.parametrize(
    "change, parts",
    [
        ({"times": []}, ["no series"]),
        ({"times": 5}, ["no series"]),
        ({"ids": 7}, ["ids has no entries, times has 2"]),
        ({"values": [[1.0, 2.0]]}, ["values has 1 entries, times has 2"]),
        ({"ids": ["x"]}, ["ids has 1 entries, times has 2"]),
        ({"static": {"ra": [1.0]}}, ["ra has 1 entries, times has 2"]),
        ({"static": {"ra": [1.0, "x"]}}, ["ra", "mixed type"]),
        ({"ids": ["x", "x"]}, ["repeated or missing", "'x'"]),
        ({"ids": ["x", 1]}, ["ids", "mixed type"]),
        ({"ids": ["x", None]}, ["ids", "1 are missing"]),
        ({"ids": "xy"}, ["ids is 'xy'", "list"]),
        ({"channels": [["a", "a"], ["a"]], "channel_names": np.array("a")}, ["channel_names is array('a'", "list"]),
        ({"values": [[1.0, 2.0], [1.0, 2.0]]}, ["series 1", "(2, 1)"]),
        ({"values": [[1.0, 2.0], [[1.0, 2.0]]]}, ["series 1", "(1, 2)"]),
        ({"values": [["a", "b"], [1.0]]}, ["series 0", "values", "<U1"]),
        ({"values": [[1.0, [2.0]], [1.0]]}, ["series 0", "values", "no array of numbers", "convert it"]),
        ({"times": [[[0.0, 1.0]], [0.0]]}, ["series 0", "times", "(1, 2)"]),
        ({"times": [[], [0.0]], "values": [[], [1.0]]}, ["1 of 2 series", "0"]),
        ({"times": [np.array(["2020"], "M8[D]"), []], "values": [[1.0], []]}, ["1 of 2 series", "no observation: 1"]),
        ({"times": [[0.0, 1.0], [NAN]]}, ["missing", "series 1"]),
        ({"times": [[0.0, INF], [0.0]]}, ["infinite", "series 0"]),
        ({"times": [[0.0, 1.0], np.array(["2020"], "M8[D]")]}, ["numbers in some series and dates in others"]),
        ({"times": [[0, 1], np.array([5], "m8[s]")]}, ["numbers in some series and durations in others"]),
        ({"values": [[NAN, NAN], [0.0]]}, ["1 of 2 series", "no observation left: 0"]),
        ({"values": [[1.0, INF], [0.0]]}, ["'value'", "infinite", "series 0", "time 1"]),
        ({"values": [[1.0, 2.0]], "static": {"values": [1, 2]}}, ["values has 1 entries"]),
        ({"channels": [["a", "b"]]}, ["channels has 1 entries"]),
        ({"channels": [["a", "b"], ["a", "b"]]}, ["channels of series 1", "2 labels", "for 1 observations"]),
        ({"channels": [["a", "b"], [1]]}, ["channels of series 1", "int64", "string"]),
        ({"channels": [["a", 2], ["a"]]}, ["channels of series 0", "mixed type"]),
        ({"channels": [["a", "b"], ["c"]], "channel_names": ["a", "b"]}, ["'c'", "'a', 'b'", "series 1"]),
        ({"channel_names": ["a"]}, ["channels=[...]"]),
        ({"value_names": ["a", "b"]}, ["2 names for 1 columns"]),
        ({"values": [np.zeros((2, 2)), np.zeros((1, 2))], "value_names": ["a", "a"]}, ["'a'", "more than once"]),
    ],
)
def test_bad_arrays_are_named(change, parts):
    with pytest.raises(InputError, match=says(*parts)):
        SeriesDataset.from_arrays(**({"times": [[0.0, 1.0], [0.0]], "values": [[1.0, 2.0], [3.0]]} | change))


def test_wide_refuses():
    every = from_wide(pa.table(WIDE), "id", "time", static=["age"])  # as the command's --wide
    assert every.channel_names == ("hr", "bp")
    for names in (["bp", "hr"], ["hr"]):
        assert from_wide(pa.table(WIDE), static=["age"], channel_names=names).channel_names == tuple(names)
    with refuses("channel_names are 'bp'", "values 'hr', 'bp'"):
        from_wide(pa.table(WIDE), channels=["hr", "bp"], channel_names=["bp"])
    one = from_wide(pa.table(WIDE), "id", "time", np.array(["hr"]), static="age")  # as an index gives it
    assert one.channel_names == ("hr",) and list(one.static) == ["age"]
    for odd, name in (({"channels": 5}, "values"), ({"static": 3}, "static")):
        with pytest.raises(InputError, match=says(name, "wanted a list")):
            from_wide(pa.table(WIDE), "id", "time", **odd)
    with pytest.raises(InputError, match=says("'hrt'", "'hr'")):
        from_wide(pa.table(WIDE), "id", "time", ["hrt"])
    with pytest.raises(InputError, match=says("in 2 series", "3 of 3", "3")):
        from_wide(pa.table(WIDE | {"hr": [None] * 3}), "id", "time", ["hr"])
    with pytest.raises(InputError, match=says("series 1 at time 0", "'hr'", "2 observations")):
        from_wide(pa.table(WIDE | {"time": [0, 0, 0], "hr": [1, 2, 3]}), "id", "time", ["hr", "bp"])


@pytest.mark.parametrize(
    "change, parts",
    [
        ({"times": np.zeros(3)}, ["values", "(3, 2)"]),
        ({"offsets": np.array([0, 6])}, ["offsets", "(2,)", "(3,)"]),
        ({"offsets": np.array([0, 0, 6])}, ["offsets[1]", " is 0", "end at 6", "empty"]),
        ({"offsets": np.array([0, 1, 5])}, ["offsets[2]", " is 5", "end at 6"]),
        ({"channels": None}, ["channel_names", "without channels"]),
        ({"channels": np.zeros(2, np.int32)}, ["channels", "(2,)", "(6,)"]),
        ({"static": {"ra": np.zeros(5)}}, ["'ra'", "(5,)", "(2,)"]),
    ],
)
def test_parts_that_do_not_fit_together(change, parts):
    with pytest.raises(InputError, match=says(*parts)):
        SeriesDataset(**(vars(build()) | change))


# ── reading and choosing ────────────────────────────────────────────────────────────────────────────────────────────


def test_items_and_iteration():
    data = build()
    assert len(data) == 2 and [s.id for s in data] == ["b", "a"]
    last = data[-1]
    assert isinstance(last, Series) and last.id == "a" and last.times.tolist() == [5.0, 6.5]
    assert last.channels is not None and last.channels.tolist() == [0, 0] and last.values.shape == (2, 2)
    assert data[np.int64(1)].id == "a"
    for index in (2, -3):
        with pytest.raises(IndexError, match=f"no series {index}; the data set has 2"):
            data[index]
    with pytest.raises(TypeError, match="select"):
        data[0:1]  # pyright: ignore


def test_repr():
    shown = repr(build())
    assert all(p in shown for p in ["2 series", "6 observations", "'g', 'r'", "'flux', 'err'", "1 to 6.5", "2 to 4"])
    assert "channels" not in repr(SeriesDataset.from_arrays([[0.0]], [[1.0]]))


def big():
    """40 series of 1 to 9 observations, two channels."""
    draw = np.random.default_rng(3)
    lengths = draw.integers(1, 10, 40)
    return SeriesDataset.from_arrays(
        [np.arange(n) for n in lengths],
        [draw.normal(size=(n, 2)) for n in lengths],
        [draw.integers(0, 2, n) for n in lengths],
        ids=[f"id{i}" for i in range(40)],
        static={"z": draw.normal(size=40)},
    )


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-40, 39), min_size=1, max_size=60))
def test_select_takes_the_series_asked_for(indices):
    data = big()
    chosen = data.select(indices)
    assert chosen.ids.tolist() == data.ids[indices].tolist()
    assert chosen.static["z"].tolist() == data.static["z"][indices].tolist()
    for got, index in zip(chosen, indices, strict=True):
        wanted = data[index]
        np.testing.assert_array_equal(got.times, wanted.times)
        np.testing.assert_array_equal(got.values, wanted.values)
        np.testing.assert_array_equal(got.channels, wanted.channels)


def test_select_round_trips():
    data = big()
    order = np.random.default_rng(0).permutation(40)
    assert data.select(order).fingerprint() != data.fingerprint()
    assert data.select(order).select(np.argsort(order)).fingerprint() == data.fingerprint()
    assert data.select(np.ones(40, bool)).fingerprint() == data.fingerprint()
    mask = np.arange(40) % 3 == 0
    assert data.select(mask).fingerprint() == data.select(range(0, 40, 3)).fingerprint()


@pytest.mark.parametrize(
    "indices, parts",
    [
        ([], ["none of the 2 series"]),
        ([False, False], ["none of the 2 series"]),
        ([True], ["1 entries for 2 series"]),
        ([0, 2], ["index 2", "2 series"]),
        ([-3], ["index -3"]),
        (np.array([2**64 - 1], np.uint64), ["index 18446744073709551615"]),
        ([0.5], ["float64"]),
        ([[0]], ["(1, 1)"]),
        ([[0], [0, 1]], ["(2,)", "flat list"]),
    ],
)
def test_select_refuses(indices, parts):
    with pytest.raises(InputError, match=says(*parts)):
        build().select(indices)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_mask_observations_keeps_what_it_says(seed):
    data = big()
    keep = np.random.default_rng(seed).random(len(data.times)) < 0.5
    keep[data.offsets[:-1]] = True
    kept = data.mask_observations(keep)
    assert kept.ids.tolist() == data.ids.tolist() and kept.lengths.sum() == keep.sum()
    for i, got in enumerate(kept):
        here = keep[data.offsets[i] : data.offsets[i + 1]]
        np.testing.assert_array_equal(got.times, data[i].times[here])
        np.testing.assert_array_equal(got.values, data[i].values[here])
        np.testing.assert_array_equal(got.channels, data[i].channels[here])  # pyright: ignore


def test_mask_observations_edges():
    data = build()
    assert data.mask_observations(np.ones(6, bool)).fingerprint() == data.fingerprint()
    with pytest.raises(InputError, match=says("1 of 2 series", "'a'", "select")):
        data.mask_observations(np.array([True] * 4 + [False] * 2))
    for wrong in (np.ones(5, bool), np.ones(6)):
        with pytest.raises(InputError, match=says("bool of shape (6,)", wrong.dtype, wrong.shape)):
            data.mask_observations(wrong)


def test_nothing_shares_memory_with_the_table():
    flux = np.array(COLUMNS["flux"])
    data = SeriesDataset.from_arrays([np.arange(6.0)], [flux])
    before = data.fingerprint()
    flux[:] = 0
    assert data.fingerprint() == before
    for made in (data, build(star=[7, 3, 7, 3, 7, 7]), as_dataset(np.zeros((2, 1, 3)))):
        arrays = [made.times, made.values, made.offsets, made.ids, *made.static.values()]
        assert all(array.flags.writeable for array in arrays)  # else torch warns


def test_fingerprint_sees_everything():
    data = build()
    assert re.fullmatch("[0-9a-f]{64}", data.fingerprint()) and data.fingerprint() == build().fingerprint()
    assert pickle.loads(pickle.dumps(data)).fingerprint() == data.fingerprint()
    parts = vars(data)
    changes = {
        "times": data.times + 1,
        "values": data.values * 2,
        "offsets": np.array([0, 3, 6]),
        "ids": np.array(["b", "c"]),
        "value_names": ("flux", "error"),
        "channels": 1 - data.channels,  # pyright: ignore
        "channel_names": ("g", "i"),
        "positions": np.zeros((6, 1)),
        "position_names": ("lat",),
        "sides": np.zeros(data.values.shape, np.int8),
        "static": data.static | {"ra": np.zeros(2)},
        "time_unit": "day",
        "errors": {"flux": "flux_err"},
    }
    assert changes.keys() == parts.keys() - {"reading", "time_zone", "id_name"}  # where the content came from
    position = {name: changes.pop(name) for name in ("positions", "position_names")}  # which come together
    each = [{name: value} for name, value in changes.items()] + [position, position | {"position_names": ("lon",)}]
    prints = {SeriesDataset(**(parts | change)).fingerprint() for change in each}
    assert len({*prints, data.fingerprint()}) == len(each) + 1


def test_constant_channels_are_named():
    data = build(flux=[1.0, 7.0, 7.0, 7.0, 7.0, 2.0])
    with pytest.warns(InputWarning, match=says("channel 'g', column 'flux'")) as caught:
        assert data.warn_constant_channels() == ("channel 'g', column 'flux'",)
    assert len(caught) == 1
    assert build().warn_constant_channels() == ()  # and no warning
    flat = SeriesDataset.from_arrays([[0.0, 1.0]], [[[1.0, 2.0], [3.0, 2.0]]], value_names=["a", "b"])
    with pytest.warns(InputWarning, match="column 'b'"):
        assert flat.warn_constant_channels() == ("column 'b'",)
    assert flat.warn_constant_channels(errors=["b"]) == ()  # errors may be the same throughout


# ── labels ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_labels_follow_the_series(maker):
    table = maker({"star": ["a", "b"], "y": [0, 1]})
    assert align_labels(build(), table, id="star", label="y").tolist() == [1, 0]
    assert align_labels(build().select([1, 0, 1]), table, id="star", label="y").tolist() == [0, 1, 0]
    named = align_labels(build(), maker({"id": ["a", "b"], "label": ["SN", "AGN"]}))
    assert named.tolist() == ["AGN", "SN"]


@pytest.mark.parametrize(
    "ids, labels, parts",
    [
        (["a"], [1], ["1 series have no label", "'b'"]),
        (["a", "b", "a"], [1, 2, 3], ["'label'", "several values", "'a'"]),
        (["c", "d"], [1, 2], ["2 series have no label", "'b', 'a'"]),
        (["a", None], [1, 2], ["1 series have no label", "'b'"]),
        (["a", "b"], [None, 2], ["1 series have no label", "'label'", "'a'"]),
        (["a", "b"], [1.0, NAN], ["1 series have no label", "'label'", "'b'"]),
        (["a", "b"], [1.0, INF], ["'label'", "infinite"]),
        ([1, 2], [1, 2], ["'b', 'a'", "labels of 1, 2"]),
        ([], [], ["2 series have no label", "'label'"]),
    ],
)
def test_bad_labels_are_named(ids, labels, parts):
    with pytest.raises(InputError, match=says(*parts)):
        align_labels(build(), pa.table({"id": ids, "label": labels}))


@pytest.mark.parametrize("read", [align_labels, align_column])
def test_ids_are_no_labels(read):
    with pytest.raises(InputError, match="'id' holds the ids of the series, and is also named as label") as refused:
        read(build(), pa.table({"id": ["a", "b"], "label": ["x", "y"]}), "id", "id")
    assert refused.value.code == "column-twice"


def test_labels_may_repeat_belong_to_others_or_lack():
    for last in ("y", "", None):  # as in a table of observations, whose first rows have the labels
        repeated = pa.table({"id": ["a", "b", "a", "b"], "label": ["x", "y", "x", last]})
        assert align_labels(build(), repeated).tolist() == ["y", "x"]
    with pytest.warns(InputWarning, match="2 labels belong to no series and are not used: 'd', 'c'"):
        found = align_labels(build(), pa.table({"id": ["d", "a", "c", "b"], "label": [4, 1, 3, 2]}))
    assert found.tolist() == [2, 1] and found.dtype == np.int64
    for some in (
        {"id": ["a"], "label": ["x"]},
        {"id": ["a", "b"], "label": ["x", ""]},
        {"id": ["a", "b"], "label": ["x", None]},
    ):
        assert align_labels(build(), pa.table(some), unlabelled="none").tolist() == [None, "x"]
    with pytest.raises(InputError, match=r"2.*series"):
        align_labels(build(), pa.table({"id": ["a", "b"], "label": [None, NAN]}), unlabelled="none")


def test_ids_that_are_whole_or_not():
    data = SeriesDataset.from_frame(pa.table({"id": [1, 2], "time": [0.0, 0.0], "value": [1.0, 2.0]}))
    with pytest.warns(InputWarning, match="1 labels belong to no series and are not used: 2.5"):
        found = align_labels(data, pa.table({"id": [2.0, 2.5, 1.0], "label": ["b", "c", "a"]}))
    assert found.tolist() == ["a", "b"]
    data = SeriesDataset.from_frame(pa.table({"id": [1, 2**60 + 1], "time": [0.0, 0.0], "value": [1.0, 2.0]}))
    found = align_labels(data, pa.table({"id": [1.0], "label": ["a"]}), unlabelled="none")
    assert found.tolist() == ["a", None]  # no float is as exact as the other id


def test_ids_that_have_lost_digits_are_refused():
    """Of the table, whose series may have merged, and of the labels, which would belong to others."""
    said = ("column 'id'", "above 2^53", "in row 1", "as integers")
    ids = [1.0, 2.0**60]
    with refuses(*said):
        SeriesDataset.from_frame(pa.table({"id": ids, "time": [0.0, 0.0], "value": [1.0, 2.0]}))
    exact = SeriesDataset.from_frame(pa.table({"id": [1, 2**60 + 1], "time": [0.0, 0.0], "value": [1.0, 2.0]}))
    with refuses(*said):
        align_labels(exact, pa.table({"id": ids, "label": [1, 2]}))
    amounts = pa.table({"id": [1, 2**60 + 1], "label": [1e40, 2.5e40]})  # to learn, of any size
    assert align_labels(exact, amounts).tolist() == [1e40, 2.5e40]


def test_an_id_that_only_looks_like_a_digit_is_a_text():
    data = SeriesDataset.from_frame(pa.table({"id": ["²", "1"], "time": [0.0, 0.0], "value": [1.0, 2.0]}))
    with pytest.warns(InputWarning, match="belong to no series"):
        found = align_labels(data, pa.table({"id": [1, 2], "label": ["x", "y"]}), unlabelled="none")
    assert found.tolist() == [None, "x"]


# ── numbers that do not fit ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("times", "values", "parts"),
    [
        ([0.0, 1e300], [1.0, 2.0], ("'time' is beyond 3.4e+38", "32 bits", "series 7")),
        ([0.0, -1e308], [1.0, 2.0], ("'time' is beyond", "series 7")),
        ([0.0, 1.0], [1.0, 1e154], ("'value' is beyond", "series 7 at time 1")),
    ],
)
def test_numbers_that_overflow_in_32_bits_are_refused_at_reading(times, values, parts):
    with refuses(*parts):
        SeriesDataset.from_arrays([times], [values], ids=[7])


def test_integer_times_that_a_float_cannot_tell_apart_are_duplicates():
    start = 1_700_000_000_000_000_000
    frame = {"id": [1, 1], "value": [1.0, 2.0]}
    with refuses("series 1", "2 observations", "'time', 256 with 64 bits", "subtract the first time"):
        SeriesDataset.from_frame(pa.table(frame | {"time": [start, start + 10]}))
    with pytest.warns(InputWarning, match="rounding step of the column 'time', 256 with 64 bits"):
        assert len(SeriesDataset.from_frame(pa.table(frame | {"time": [start, start + 1024]})).times) == 2
    far = SeriesDataset.from_frame(pa.table(frame | {"time": [start, start + 10**9]}))
    assert np.diff(far.times) == 10**9


def test_one_long_id_takes_no_memory_for_the_others(tmp_path):
    ids = ["x" * 1_000_000, *(f"{i}" for i in range(10_000)), "a\0"]
    made = SeriesDataset.from_frame(pa.table({"id": ids, "time": np.zeros(len(ids)), "value": np.ones(len(ids))}))
    assert made.ids.nbytes < 100_000 and made.ids[-1] == "a\0" and made.fingerprint()


def test_of_a_wide_file_only_wanted_columns_are_looked_at(tmp_path):
    n = 20_000
    path = tmp_path / "wide.csv"
    path.write_text(",".join(["id", "time", "value", *(f"c{i}" for i in range(n))]) + "\n" + ",".join("1" * (n + 3)))
    start = time.process_time()
    assert SeriesDataset.from_file(path).value_names == ("value",)
    assert time.process_time() - start < 5


def test_channels_and_ids_are_the_same_as_numbers_and_as_texts():
    """Whether a text file's 1 is a number depends on what else stands in its column."""
    frame = pa.table({"id": ["a", "a"], "time": [0, 1], "band": [1, 2], "value": [1.0, 2.0]})
    data = SeriesDataset.from_frame(frame, channel="band", channel_names=["1", "2", "3a"])
    assert data.channels is not None and data.channels.tolist() == [0, 1]
    frame = pa.table({"id": ["1", "2", "3b"], "time": [0, 0, 0], "value": [1.0, 2.0, 3.0]})
    labels = pa.table({"id": [2, 1], "label": ["two", "one"]})
    found = align_labels(SeriesDataset.from_frame(frame), labels, unlabelled="none")
    assert found.tolist() == ["one", "two", None]
    frame = pa.table({"id": ["001", "2"], "time": [0, 0], "value": [1.0, 2.0]})
    with refuses("'001'", "labels of 1"):
        align_labels(SeriesDataset.from_frame(frame), labels)


def test_what_a_wide_table_cannot_obey_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text("id,time,a,b\n1,0,1,\n1,1,2,3\n")
    with refuses("channel='id2'", "wide"):
        SeriesDataset.from_file(tmp_path / "t.csv", values=["a", "b"], wide=True, channel="id2")


def test_texts_that_say_there_is_no_label_are_warned_of():
    table = pa.table({"star": ["a", "b"], "y": ["N/A", "SN"]})
    with pytest.warns(InputWarning, match=r"1 series have the label 'N/A', which is taken as a class.*--na N/A"):
        assert align_labels(build(), table, id="star", label="y").tolist() == ["SN", "N/A"]


def test_a_channel_without_observations_is_warned_of():
    wide = pa.table(
        {"id": [1, 1], "time": [0.0, 1.0], "seen": [1.0, 2.0], "dead": pa.array([None, None], pa.float64())}
    )
    data = from_wide(wide, channels=["seen", "dead"])
    with pytest.warns(InputWarning, match="channel 'dead' was never observed: .* leave it out"):
        assert data.warn_constant_channels() == ()


def test_codes_are_named_by_channel_and_column_but_exact_errors_are_none():
    draw = np.random.default_rng(0)
    n = 100
    values = {"mag": draw.normal(20, 0.1, n), "magerr": draw.normal(10, 0.01, n), "seeing": draw.normal(1, 0.01, n)}
    for name, places, code in (("mag", slice(0, 24, 2), -999), ("seeing", slice(0, 44, 2), -999), ("magerr", 0, 0)):
        values[name][places] = code
    frame = pa.table({"id": [1] * n, "time": np.arange(n), "band": ["g", "r"] * (n // 2), **values})
    with pytest.warns(InputWarning) as caught:
        SeriesDataset.from_frame(frame, channel="band", values=list(values))
    [said] = (str(warning.message) for warning in caught)
    assert said.startswith("22 rows have channel 'g', columns 'mag', 'seeing' -999, far from all others; if that means")


def test_duplicates_at_a_date_are_named_by_the_date():
    days = pa.array([dt.datetime(2024, 3, 31, 10)] * 2, pa.timestamp("us"))
    with refuses("'a'", "2024", "-03", "-31", "10", "00", "00", "00", "00", "2"):
        SeriesDataset.from_frame(pa.table({"id": ["a", "a"], "time": days, "value": [1.0, 2.0]}))


def test_integers_of_128_bits_are_read():
    table = {"id": [1, 1], "time": [0.0, 1.0], "value": pl.Series([3, 4], dtype=pl.Int128)}
    read = SeriesDataset.from_frame(pl.DataFrame(table), id="id", time="time", values=["value"])
    assert read.values[:, 0].tolist() == [3, 4]


def test_negative_durations_in_texts_are_those_of_pandas():
    spans = pd.to_timedelta([-3.0, -1.5, 0.0, 1.5, 26.5], unit="h")
    for texts in (spans.astype(str), [str(one.to_pytimedelta()) for one in spans]):
        data = SeriesDataset.from_frame(pd.DataFrame({"id": 0, "time": texts, "value": np.arange(5.0)}))
        assert np.allclose(data.times * 24, [-3, -1.5, 0, 1.5, 26.5]) and data.values.ravel().tolist() == [*range(5)]


@pytest.mark.parametrize(
    ("clock", "hours"), [("13:30 PM", 13.5), ("01:30 PM", 13.5), ("12:10 AM", 1 / 6), ("12:30 pm", 12.5)]
)
def test_halves_of_the_day(clock, hours):
    table = pd.DataFrame({"id": 0, "day": ["2024-01-01", "2024-01-02"], "at": [clock] * 2, "value": [1.0, 2.0]})
    data = SeriesDataset.from_frame(table, time="day", clock="at")
    assert np.allclose(data.times - 19723, [hours / 24, 1 + hours / 24])
