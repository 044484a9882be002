"""Tables that people really have, rebuilt small: each is read right, or what is doubtful about it is said."""

import dataclasses
import io
import re
import warnings
import zipfile
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from _proposals import doubts_of
from rotarymae.errors import InputError, InputWarning
from rotarymae.series import SeriesDataset, as_dates
from rotarymae.tables import TableSchema, align_labels, open_source, propose, propose_objects, read_table

SERIES = 12


@pytest.fixture(scope="module")
def base():
    """12 series, channels g and r, 15 times each, classes a and b."""
    rng = np.random.default_rng(0)
    rows = [
        (i, t, b, np.sin(t / (2 + i % 2)) + 0.3 * (b == "r") + 0.1 * rng.normal())
        for i in range(SERIES)
        for b in "gr"
        for t in np.sort(rng.uniform(0, 60, 15)).round(3)
    ]
    return pd.DataFrame(rows, columns=["id", "time", "band", "value"])


@pytest.fixture(scope="module")
def iso(base):
    seconds = pd.to_timedelta((base.time * 900).round(), unit="s")
    return base.assign(time=(pd.Timestamp("2025-06-01") + seconds).dt.strftime("%Y-%m-%dT%H:%M:%S"))


def quiet(source, **fields) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        dataset = read_table(source, TableSchema(**fields))
    return dataset, dataset.reading


def doubts(report):
    """Return sentences on what is doubtful, but for times out of order."""
    return [text for text in report.losses() if "ascending" not in text]


def proposed(frame, tmp_path, told=(), kind="csv", **fields):
    path = tmp_path / f"t.{kind}"
    if isinstance(frame, str):
        path.write_text(frame)
    elif kind == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    return propose(open_source(path), TableSchema(**fields), set(told)), path


# ── one row that could spoil a table ────────────────────────────────────────────────────────────────────────────────


def test_a_clock_without_battery_at_the_start_of_every_series_is_named_and_left_out_where_asked(iso):
    first = pd.DataFrame({"id": range(SERIES), "time": "1970-01-01T00:00:00", "band": "g", "value": 0.0})
    _, report = quiet(pd.concat([first, iso]), channel="band")
    [said] = doubts(report)
    assert (
        said.startswith(f"{SERIES} rows lie 55") and "years before the next" in said and "series 0 at time 1970" in said
    )
    dataset, report = quiet(pd.concat([first, iso]), channel="band", since="2000-01-01")
    assert len(dataset.times) == len(iso) and [*report.left_out.values()] == [SERIES] and len(doubts(report)) == 1


def test_a_time_far_from_the_others_is_named_where_it_has_several_channels(iso):
    wide = iso.assign(other=iso.value)
    first = wide.groupby("id").head(2).assign(time=["1970-01-01T00:00:00", "1970-01-01T00:20:00"] * SERIES)
    _, report = quiet(pd.concat([first, wide]).drop(columns="band"), wide=True, values=("value", "other"))
    assert [said.split(" years")[0] for said in doubts(report)] == [f"{4 * SERIES} rows lie 55.4"]


def test_one_time_a_year_off_is_named_by_its_series(iso):
    moved = iso.copy()
    moved.loc[100, "time"] = moved.time[100].replace("2025", "2026")
    _, report = quiet(moved, channel="band")
    assert len(doubts(report)) == 1 and f"series {moved.id[100]} at time 2026" in doubts(report)[0]
    assert not doubts(quiet(iso, channel="band")[1])


@pytest.mark.parametrize("filler", [-999.25, -9999, 1e20, 999.9])
def test_fillers_are_named_with_what_to_type(base, filler):
    filled = base.copy()
    filled.loc[::50, "value"] = filler
    _, report = quiet(filled, channel="band")
    texts = [reason for reason in report.doubts if f"--na {filler:.10g}" in reason]
    assert sum(report.doubts[text] for text in texts) == len(filled.loc[::50])
    dataset, report = quiet(filled, channel="band", na=(str(filler),))
    assert len(dataset.times) == len(base) - len(filled.loc[::50]) and not doubts(report)


def test_one_wild_value_is_named(base):
    wild = base.copy()
    wild.loc[7, "value"] = 1e7
    _, report = quiet(wild, channel="band")
    assert "1 rows have channel 'g' 10000000, far" in doubts(report)[0]


# ── what `info` proposes ────────────────────────────────────────────────────────────────────────────────────────────


def test_times_of_32_bits_are_named_and_nothing_is_merged(base, tmp_path):
    coarse = base.assign(time=(2_459_450 + np.arange(len(base)) / 200).astype(np.float32))
    with pytest.raises(InputError, match=r"0\.25 with 32 bits") as refused:
        quiet(coarse, channel="band")
    assert refused.value.code == "duplicates"
    proposal, _ = proposed(coarse, tmp_path, kind="parquet")
    assert proposal.schema.duplicates == "error"


def test_times_that_32_bits_make_equal_are_named(base, tmp_path):
    with pytest.raises(
        InputError, match=r"no column looks like time.* 't_ms' has 32 bits, which may have made times equal"
    ):
        proposed(base.rename(columns={"time": "t_ms"}).assign(t_ms=np.float32(1.7e12)), tmp_path, kind="parquet")


@pytest.mark.parametrize("how", ["text", "parquet"])
def test_day_and_clock_are_the_time_together(base, tmp_path, how):
    when = pd.Timestamp("2025-06-01") + pd.to_timedelta((base.time * 3600).round(), unit="s")
    apart = base.drop(columns="time").assign(
        day=when.dt.date if how == "parquet" else when.dt.strftime("%Y-%m-%d"),
        clock=when.dt.time if how == "parquet" else when.dt.strftime("%H:%M:%S"),
    )
    proposal, path = proposed(apart, tmp_path, kind="parquet" if how == "parquet" else "csv")
    assert (proposal.schema.time, proposal.schema.clock) == ("day", "clock")
    dataset, _ = quiet(path, **{f.name: getattr(proposal.schema, f.name) for f in dataclasses.fields(TableSchema)})
    wanted = quiet(base.assign(time=when), channel="band")[0]
    np.testing.assert_allclose(dataset.times, wanted.times, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(dataset.values, wanted.values)


NAMES = {
    "ztf": (["oid", "jd", "band", "magpsf", "sigmapsf", "diffmaglim"], "magpsf", "sigmapsf"),
    "rubin": (["diaObjectId", "midpointMjdTai", "band", "psfFlux", "psfFluxErr", "x"], "psfFlux", "psfFluxErr"),
    "mallorn": (["object_id", "Time (MJD)", "Filter", "Flux", "Flux_err", "x"], "Flux", "Flux_err"),
    "nearly usual": (["star_id", "obs_mjd", "filter_name", "flux", "flux_error", "x"], "flux", "flux_error"),
    "meds": (["subject_id", "time", "code", "numeric_value", "std", "x"], "numeric_value", None),
    "clif": (
        ["hospitalization_id", "recorded_dttm", "vital_category", "vital_value", "v_sd", "x"],
        "vital_value",
        None,
    ),
}


@pytest.mark.parametrize("kind", NAMES)
def test_columns_are_proposed_by_pieces_of_their_names(base, tmp_path, kind):
    names, value, error = NAMES[kind]
    rng = np.random.default_rng(0)
    table = base.assign(error=rng.uniform(0.1, 0.2, len(base)), more=20 + rng.normal(size=len(base)))
    table.columns = names
    proposal, _ = proposed(table, tmp_path)
    schema = proposal.schema
    assert (schema.id, schema.time, schema.channel) == tuple(names[:3])
    assert schema.values == (value,) and schema.errors == ((error,) if error else ()) and not schema.wide
    assert kind != "ztf" or proposal.remarks["diffmaglim"].startswith("a detection limit")


def test_a_sensor_log_is_one_series_with_a_channel_per_column(tmp_path):
    rng = np.random.default_rng(0)
    when = pd.date_range("2024-01-01", periods=100, freq="10min").strftime("%Y-%m-%d %H:%M:%S")
    log = pd.DataFrame({"Date/Time": when, "Temp": rng.normal(size=100), "Humidity": rng.normal(size=100)})
    proposal, _ = proposed(log, tmp_path)
    assert proposal.schema.time == "Date/Time" and proposal.schema.wide and proposal.schema.id == "file"
    assert proposal.schema.values == ("Temp", "Humidity")


@pytest.mark.parametrize("written", ["%d/%m/%Y %H:%M", "%m/%d/%y", "%d.%m.%Y"])
def test_dates_that_fit_one_notation_alone_are_read_by_it(written, tmp_path):
    days = pd.date_range("2024-01-01", periods=40, freq="D")
    log = pd.DataFrame({"Date": days.strftime(written), "value": np.arange(40.0)})
    proposal, source = proposed(log, tmp_path)
    assert proposal.schema.time_format == written
    assert (read_table(source, proposal.schema).times == (days - pd.Timestamp(0)).days).all()
    if "." in written:  # which say that the day comes first
        assert proposed(log[:12], tmp_path)[0].schema.time_format == written
        return
    with pytest.raises(InputError, match=r"%d.*%m.*--time-format") as error:
        proposed(log[:12], tmp_path)  # no day after the twelfth
    assert error.value.code == "time-text"


@pytest.mark.parametrize("cells", [["01 Jan", "02 Jan"], ["1. März", "2. März"], ["3 sept.", "4 sept."]])
def test_days_of_one_month_without_a_year_are_no_numbers_with_a_unit(cells):
    with pytest.raises(InputError) as error:
        SeriesDataset.from_frame(pd.DataFrame({"id": 0, "time": cells, "value": [1.0, 2.0]}))
    assert error.value.code == "time-text"
    hours = SeriesDataset.from_frame(pd.DataFrame({"id": 0, "time": ["1 h", "2 h"], "value": [1.0, 2.0]}))
    assert hours.times.tolist() == [1, 2]


def test_each_of_several_files_is_a_series_and_what_changes_with_the_outcome_is_not_read(tmp_path):
    rng = np.random.default_rng(0)
    for i in range(6):
        visit = {
            "HR": 80 + rng.normal(size=9),
            "Age": 40 + i // 2,
            "ICULOS": range(1, 10),
            "SepsisLabel": [0] * 8 + [1],
        }
        pd.DataFrame(visit).to_csv(tmp_path / f"p{i}.psv", sep="|", index=False)
    proposal = propose(open_source(tmp_path), TableSchema(), set())
    schema = proposal.schema
    assert (schema.id, schema.time, schema.values, schema.static) == ("file", "ICULOS", ("HR",), ("Age",))
    assert proposal.remarks["SepsisLabel"] == "looks like an outcome"


def test_the_index_of_pandas_is_nothing_and_constant_columns_are_static(base, tmp_path):
    table = base.assign(age=50 + base.id, sex=np.where(base.id % 2, "m", "f"), site="one", futime=base.id * 7)
    table.index = range(5, 5 + len(table))
    proposal, _ = proposed(table, tmp_path, kind="parquet")
    assert proposal.schema.values == ("value",) and proposal.schema.static == ("age", "sex")
    assert proposal.remarks["futime"] == "looks like an outcome"


def test_groups_of_series_are_named(base, tmp_path):
    proposal, _ = proposed(base.rename(columns={"id": "stay_id"}).assign(patient_id=base.id // 2), tmp_path)
    assert proposal.schema.id == "stay_id" and proposal.split == "patient_id"
    assert "--split-by" in proposal.remarks["patient_id"]


def test_numbered_columns_of_one_stem_are_a_series_per_row(tmp_path):
    rng = np.random.default_rng(0)
    flux = rng.normal(size=(8, 60)).round(3)
    names = ["LABEL", *(f"FLUX.{i}" for i in range(1, 61))]
    table = pd.DataFrame(np.column_stack([np.arange(8) % 2 + 1, flux]), columns=names).astype({"LABEL": int})
    proposal, path = proposed(table, tmp_path)
    schema = proposal.schema
    assert (schema.id, schema.time, schema.values, schema.numbered) == ("series", "number", ("FLUX",), "FLUX.")
    assert proposal.label == "LABEL" and not schema.wide
    for memory in (None, 0):
        dataset = read_table(path, schema, others=("LABEL",), memory=memory)
        assert dataset.ids.tolist() == [*range(1, 9)] and dataset.reading.total == 480
        np.testing.assert_array_equal(dataset.values.reshape(8, 60), flux)
        np.testing.assert_array_equal(dataset.times.reshape(8, 60), [np.arange(1, 61)] * 8)
    labels = align_labels(dataset, open_source(path, numbered="FLUX."), "series", "LABEL")
    assert labels.tolist() == [1, 2] * 4
    with_time = table.assign(time=range(8))  # a column of times: each numbered column is a channel
    assert proposed(with_time, tmp_path)[0].schema.wide


def test_numbered_columns_next_to_others_of_their_new_names():
    table = pd.DataFrame({"series": list("pq"), "_row": 7, "F1": [1.0, 2.0], "F2": ["3", "x"], "F3": [5.0, 6.0]})
    schema = TableSchema(id="series", time="number", values=("F",), numbered="F")
    with pytest.warns(InputWarning, match="1 cells of 'F' cannot be read: 'x' 1"):
        dataset = read_table(table, schema)
    assert dataset.ids.tolist() == ["p", "q"] and dataset.values.ravel().tolist() == [1, 3, 5, 2, 6]
    for name in ("number", "F"):
        with pytest.raises(InputError, match=rf"joins the columns F1, F2, ... of the table to new .* have: '{name}'"):
            read_table(table.rename(columns={"series": name}), schema)
    with pytest.raises(InputError, match="column 'F1' is there more than once"):
        read_table(table.rename(columns={"F2": "F1"}), schema)
    assert open_source(table[["F1"]], numbered="F").notes == ("each row is a series of 1 columns F1, ...",)
    with pytest.raises(InputError, match=r"joins the columns F1, F2, .* to new ones, .* have: 'number'"):
        open_source(table.assign(number=[[0]] * len(table)), numbered="F")


def test_a_column_that_repeats_in_blocks_is_the_id(base, tmp_path):
    table = (
        base.sort_values(["id", "time"])
        .rename(columns={"id": "wafer"})
        .assign(wafer=lambda d: "w" + d.wafer.astype(str))
    )
    proposal, _ = proposed(table, tmp_path)
    assert proposal.schema.id == "wafer" and any("rows come in blocks" in text for text in doubts_of(proposal))


def test_the_label_of_the_objects_may_have_several_classes():
    objects = pa.table({"id": range(30), "SpecType": list("abc") * 10, "z": np.arange(30) / 7})
    assert propose_objects(open_source(objects), "id", None)[:2] == ("SpecType", ("z",))
    assert propose_objects(open_source(objects), "id", "of another table")[1] == ("SpecType", "z")


def test_columns_whose_names_differ_in_capitals_are_two(tmp_path):
    frame = pd.DataFrame({"id": [1, 1], "time": [0.0, 1.0], "value": [2.0, 3.0], "Value": [4.0, 5.0]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    for source in (frame, tmp_path / "t.csv"):
        assert quiet(source, values=("Value",))[0].values.ravel().tolist() == [4.0, 5.0]
        assert quiet(source, values=("value",))[0].values.ravel().tolist() == [2.0, 3.0]


# ── one bad cell ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_series_without_any_error_is_read_and_named(base):
    table = base.assign(sigma=0.1)
    table.loc[table.id == 3, "sigma"] = np.nan
    dataset, report = quiet(table, channel="band", errors=("sigma",))
    assert len(dataset) == SERIES and np.isfinite(dataset.values).all()
    assert any("1 series have 'value' but no 'sigma' at all" in text and "first: 3" in text for text in report.losses())
    table["id"] = table.id.where(table.id != 3)
    report = quiet(table, channel="band", errors=("sigma",))[1]
    assert not any("0 series" in text for text in report.losses())


def test_a_column_that_nobody_asked_for_may_be_there_twice(tmp_path):
    (tmp_path / "t.csv").write_text("id,time,x,value,x\n1,0,5,1.5,6\n1,1,5,2.5,6\n")
    assert quiet(tmp_path / "t.csv")[0].values.ravel().tolist() == [1.5, 2.5]
    with pytest.raises(InputError) as refused:
        quiet(tmp_path / "t.csv", values=("x",))
    assert refused.value.code == "column-twice"
    with pytest.raises(InputError, match="column '1' is there more than once"):
        open_source(pd.DataFrame({1: [0], "1": [1]})).need(["1"])


def test_duplicates_last_and_means_by_weight():
    table = pd.DataFrame({"id": 1, "time": [5.0, 5.0, 6.0], "flux": [5.01, 5.04, 1.0], "flux_err": [0.01, 1.0, 0.5]})
    fields: Any = {"values": ("flux",), "errors": ("flux_err",)}
    assert quiet(table, **fields, duplicates="last")[0].values[0].tolist() == [5.04, 1.0]
    mean = quiet(table, **fields, duplicates="mean")[0].values
    weights = np.array([1e4, 1.0])
    np.testing.assert_allclose(mean[0], [np.average([5.01, 5.04], weights=weights), weights.sum() ** -0.5])
    assert mean[1].tolist() == [1.0, 0.5]


def test_few_repeats_are_left_out_and_many_refused(base):
    once = pd.concat([base, base.iloc[[5]].assign(value=9.0)])
    dataset, report = quiet(once, channel="band")
    assert len(dataset.times) == len(base) and report.merged == 1 and "1 rows repeat" in doubts(report)[0]
    same = pd.concat([base, base.iloc[:100]])  # written twice, with the same values
    dataset, report = quiet(same, channel="band")
    assert len(dataset.times) == len(base) and report.merged == 100
    with pytest.raises(InputError) as refused:
        quiet(pd.concat([base, base.iloc[:100].assign(value=9.0)]), channel="band")
    assert refused.value.code == "duplicates"


def test_rows_without_a_time_are_left_out_or_facts(tmp_path, monkeypatch):
    table = pd.DataFrame(
        {
            "subject_id": [1, 1, 1, 1, 1, 1, 2, 2, 2, 2],
            "time": [None] * 4 + ["2020-01-01", "2020-01-02"] + [None] * 2 + ["2020-01-01", "2020-01-02"],
            "code": ["GENDER//F", "AGE", "AGE", "SMOKER", "HR", "HR", "GENDER//M", "AGE", "HR", "HR"],
            "numeric_value": [None, None, 50.0, 1.0, 80.0, 81.0, None, 60.0, 70.0, 71.0],
        }
    )
    fields: Any = {"id": "subject_id", "channel": "code", "values": ("numeric_value",)}
    dataset, report = quiet(table, **fields)
    assert len(dataset.times) == 4 and report.dropped == 6 and dataset.channel_names == ("HR",)
    dataset, report = quiet(table, **fields, untimed="static")
    facts = {"AGE": [50.0, 60.0], "SMOKER": [1.0, None], "GENDER//F": [True, False], "GENDER//M": [False, True]}
    assert {name: pa.array(column, from_pandas=True).to_pylist() for name, column in dataset.static.items()} == facts
    assert dataset.channel_names == ("HR",) and not report.left_out
    with_strange = pd.concat([table, table.iloc[[4]].assign(code="BP")])
    with pytest.warns(InputWarning, match="'code' is 'BP', where 'HR' are known"):
        read_table(with_strange, TableSchema(**fields, untimed="static"), channel_names=("HR",))
    table.to_parquet(tmp_path / "t.parquet")
    monkeypatch.setattr("rotarymae.tables.read.READ", 2)
    mapped = read_table(tmp_path / "t.parquet", TableSchema(**fields, untimed="static"), memory=0)
    assert {name: pa.array(column, from_pandas=True).to_pylist() for name, column in mapped.static.items()} == facts


def test_the_label_as_a_channel_is_refused(base, tmp_path):
    base.assign(status=base.id % 2).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(InputError) as refused:
        read_table(tmp_path / "t.csv", TableSchema(wide=True, values=("value", "status")), others=("status",))
    assert refused.value.code == "label-is-input"


def test_an_outcome_beside_the_label_is_read_as_a_channel_with_a_warning(base, tmp_path):
    table = base.drop(columns="band").assign(futime=base.id * 7, kind=base.id % 2).drop_duplicates(["id", "time"])
    table = table.sort_values(["id", "time"])
    table.to_csv(tmp_path / "t.csv", index=False)
    with pytest.warns(InputWarning, match="'futime' look like outcomes, and are read as channels"):
        read_table(tmp_path / "t.csv", TableSchema(wide=True, values=()), others=("kind",))


# ── containers ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_field_may_be_null_in_the_first_file_and_a_number_in_the_second(tmp_path):
    for i, kind in enumerate((pa.null(), pa.float64())):
        entry = [
            {"time": 1.0 + i, "value": None if i == 0 else 2.5},
            {"time": 2.0 + i, "value": None if i == 0 else 3.5},
        ]
        column = pa.array([entry], pa.list_(pa.struct([("time", pa.float64()), ("value", kind)])))
        pyarrow.parquet.write_table(pa.table({"id": [i], "lc": column}), tmp_path / f"{i}.parquet")
    dataset, report = quiet(tmp_path, time="lc.time", values=("lc.value",))
    assert dataset.ids.tolist() == [1] and dataset.values.ravel().tolist() == [2.5, 3.5] and report.empty == (0,)


def test_a_nested_and_a_flat_column_of_one_name_both_exist():
    frame = pd.DataFrame({"id": [1], "time": [7.0], "lc": [[{"time": 1.0, "value": 2.0}, {"time": 2.0, "value": 3.0}]]})
    dataset, _ = quiet(frame, time="lc.time", values=("lc.value",))
    assert dataset.times.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("memory", [None, 0])
def test_ids_of_every_kind_of_text(tmp_path, memory):
    for i, kind in enumerate((pa.string_view(), pa.large_string())):
        ids = pa.array(["a", "b", "a"], pa.string()).cast(kind)
        pyarrow.parquet.write_table(
            pa.table({"id": ids, "time": [2.0 + i, 1.0, 9.0 + i], "value": [1.0, 2.0, 3.0]}), tmp_path / f"{i}.parquet"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        dataset = read_table(tmp_path, TableSchema(duplicates="first"), memory=memory)
    assert dataset.ids.tolist() == ["a", "b"] and dataset.times.tolist() == [2.0, 3.0, 9.0, 10.0, 1.0]


def test_big_endian_columns_are_read_as_they_are(base):
    table = base.assign(**{name: base[name].to_numpy().astype(">f8") for name in ("time", "value")})
    assert quiet(table, channel="band")[0].fingerprint() == quiet(base, channel="band")[0].fingerprint()


def test_quantities_of_time_become_days_and_units_are_kept(base):
    astropy = pytest.importorskip("astropy.table")
    units = pytest.importorskip("astropy.units")
    table = astropy.QTable(
        {"id": base.id, "time": base.time.to_numpy() * units.hour, "value": base.value.to_numpy() * units.mJy}
    )
    source = open_source(table)
    assert source.units == {"time": "d", "value": "mJy"} and any("is read in days" in note for note in source.notes)
    np.testing.assert_allclose(quiet(table, duplicates="first")[0].times, quiet(base, duplicates="first")[0].times / 24)


def test_columns_of_astropy_that_no_table_can_hold_are_refused_where_they_are_read():
    table, time = pytest.importorskip("astropy.table"), pytest.importorskip("astropy.time")
    days = time.Time(["2024-03-31", "2024-04-01"], scale="local")
    columns = {
        "id": ["a", "b"],
        "time": days,
        "value": [1.0, 2.0],
        "c": np.array([1j, 2]),
        "o": np.array([1, "x"], "O"),
    }
    assert read_table(table.QTable(columns), TableSchema()).times.tolist() == [19813, 19814]
    for name in ("c", "o"):
        with pytest.raises(InputError, match=f"column '{name}' holds values of mixed type"):
            read_table(table.QTable(columns), TableSchema(values=(name,)))


def test_another_unit_than_in_training_is_named_with_the_factor(base):
    pytest.importorskip("astropy")
    base = base.sort_values(["id", "time"])

    def in_unit(unit, factor):
        field = pa.field("value", pa.float64(), metadata={"unit": unit})
        table = pa.Table.from_pandas(base.assign(value=base.value * factor), preserve_index=False)
        return table.set_column(table.schema.get_field_index("value"), field, table["value"])

    schema = TableSchema(channel="band")
    trained = schema.with_values_of(quiet(in_unit("uJy", 1), channel="band")[0])
    assert trained.units == {"value": "uJy"}
    with pytest.warns(InputWarning, match=r"'value' is in nJy.* trained on uJy; convert it: multiply by 0\.001"):
        read_table(in_unit("nJy", 1000), trained)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_table(in_unit("uJy", 1), trained)
        read_table(base, trained)  # which says no unit
        converted = read_table(in_unit("nJy", 1000), replace(trained, convert=True))
    np.testing.assert_allclose(converted.values, quiet(base, channel="band")[0].values, rtol=1e-12)
    assert converted.reading.units == {"value": "uJy"} and "converted from nJy to uJy" in str(converted.reading)
    aged = in_unit("nJy", 1000).append_column(pa.field("age", pa.float64(), metadata={"unit": "ms"}), [base.id * 1e3])
    units = {"value": "uJy", "age": "s"}
    static = read_table(aged, replace(trained, static=("age",), convert=True, units=units)).static["age"]
    assert static.tolist() == [*range(SERIES)]
    with pytest.raises(InputError, match=r"'value' is in mag.* trained on uJy; no factor is known"):
        read_table(in_unit("mag", 1), replace(trained, convert=True))


@pytest.mark.parametrize("unit", ["Jy", "%"])
def test_errors_are_converted_to_the_unit_of_their_values_or_named(base, unit):
    pytest.importorskip("astropy")
    fields = [pa.field("value", pa.float64(), metadata={"unit": "mJy"}), pa.field("e", pa.float64())]
    fields[1] = fields[1].with_metadata({"unit": unit})
    base = base.sort_values(["id", "time"])
    table = pa.Table.from_pandas(base, preserve_index=False).drop_columns("value")
    for field, column in zip(fields, (base.value, 0.002 + 0 * base.value), strict=True):
        table = table.append_column(field, [column])
    dataset, report = quiet(table, channel="band", values=("value",), errors=("e",))
    converted = unit == "Jy"
    np.testing.assert_allclose(dataset.values[:, 1], 2 if converted else 0.002)
    assert ("'e' is converted from Jy to mJy" in str(report)) == converted
    if not converted:
        with pytest.warns(InputWarning, match="'e' is in %, and 'value', whose error it is, in mJy; convert it"):
            read_table(table, TableSchema(channel="band", values=("value",), errors=("e",)))


def test_columns_of_positions_are_read_with_the_times(base, tmp_path):
    table = base.assign(lat=base.value + 1, lon=base.value + 2)
    table.loc[3, "lat"] = np.nan
    table.to_csv(tmp_path / "t.csv", index=False)
    for memory in (None, 0):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)
            dataset = read_table(
                tmp_path / "t.csv", TableSchema(channel="band", positions=("lat", "lon")), memory=memory
            )
        assert dataset.position_names == ("lat", "lon") and dataset.positions is not None
        np.testing.assert_allclose(dataset.positions[:, 1] - dataset.positions[:, 0], 1)
        assert dataset.reading.left_out == {"'lat' is missing": 1}


@pytest.mark.parametrize("memory", [None, 0])
def test_static_columns_may_stand_in_the_table_of_objects(base, tmp_path, memory):
    base.to_csv(tmp_path / "t.csv", index=False)
    objects = pd.DataFrame({"id": range(SERIES - 1, -1, -1), "z": np.arange(SERIES) / 10, "kind": list("ab") * 6})
    objects.to_csv(tmp_path / "o.csv", index=False)
    schema = TableSchema(channel="band", static=("z", "kind"), objects=str(tmp_path / "o.csv"))
    dataset = read_table(tmp_path / "t.csv", schema, memory=memory)
    assert dataset.static["z"].tolist() == (np.arange(SERIES)[::-1] / 10).tolist()
    assert dataset.static["kind"].tolist() == list("ba") * 6
    pd.concat([objects, objects.assign(z=7.0)]).to_csv(tmp_path / "o.csv", index=False)
    with pytest.raises(InputError, match=f"^{re.escape(str(tmp_path / 'o.csv'))}: column 'z' has several values"):
        read_table(tmp_path / "t.csv", schema, memory=memory)


def test_series_that_the_objects_do_not_have_are_named(base):
    objects = pd.DataFrame({"id": range(1, SERIES), "z": 0.5, "kind": "a"})
    schema = TableSchema(channel="band", static=("z", "kind"), objects=objects)  # pyright: ignore
    with pytest.warns(InputWarning, match="1 series are not in the table; .* are missing .first: 0"):
        dataset = read_table(base.sort_values(["id", "time"]), schema)
    assert np.isnan(dataset.static["z"][0]) and dataset.static["kind"][0] is None and dataset.static["z"][1] == 0.5


# ── times ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_times_come_out_as_they_went_in_to_the_last_digit():
    rng = np.random.default_rng(0)
    for unit, year in (("s", 2190), ("ms", 2180), ("us", 2030)):
        first = np.datetime64(f"{year}-01-01", unit).astype(np.int64)
        ticks = first + rng.integers(0, 86_400 * {"s": 1, "ms": 1000, "us": 1_000_000}[unit] * 300, 5_000)
        when = pa.array(np.sort(np.unique(ticks))).cast(pa.timestamp(unit))
        dataset = SeriesDataset.from_frame(
            pa.table({"id": [1] * len(when), "time": when, "value": np.zeros(len(when))})
        )
        assert as_dates(dataset.times, "UTC").cast(pa.timestamp("us")).equals(when.cast(pa.timestamp("us")))


def test_elapsed_times_and_offsets_are_read_as_days(tmp_path):
    (tmp_path / "t.csv").write_text("id,time,value\n1,00:07,1\n1,47:30,2\n1,1 days 02:00:00,3\n1,-1:30,4\n")
    dataset, report = quiet(tmp_path / "t.csv")
    np.testing.assert_allclose(dataset.times * 24, [-1.5, 7 / 60, 26, 47.5])
    assert dataset.time_unit == "day" and "elapsed hours" in str(report)


def test_one_time_that_is_none_is_left_out(base, tmp_path):
    base.astype({"time": str}).assign(time=lambda d: d.time.where(d.index != 4, "noon")).to_csv(
        tmp_path / "t.csv", index=False
    )
    dataset, report = quiet(tmp_path / "t.csv", channel="band")
    assert len(dataset.times) == len(base) - 1 and report.words == {"time": {"noon": 1}}


def test_standard_input_is_a_table_like_others(monkeypatch, base):
    from rotarymae.tables import source

    class Pipe:
        buffer = io.BytesIO(base.to_csv(index=False).encode())

    monkeypatch.setattr(source.sys, "stdin", Pipe)
    source.standard_input.cache_clear()
    assert quiet("-", channel="band")[0].fingerprint() == quiet(base, channel="band")[0].fingerprint()


# ── hostile files: one line, soon ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "name, content",
    [
        ("t.jsonl", b'{"id":"a","time":1,"value":' + b"[" * 50_000 + b"]" * 50_000 + b"}\n"),
        ("t.json", b"[" * 100_000),
        (
            "t.json",
            b"["
            + b",".join(b"{%s}" % b",".join(b'"k%d_%d":1' % (i, k) for k in range(50)) for i in range(2000))
            + b"]",
        ),
        ("t.csv", b"id,time,value\n" + b'"' + b"x" * 40_000_000),
        ("t.csv", b"\x00" * 100_000),
        ("t.parquet", b"PAR1" + b"\xff" * 100),
        ("t.xlsx", b"PK\x03\x04" + b"\xff" * 100),
    ],
    ids=["deep lines", "deep", "keys", "a long cell", "zeros", "parquet", "excel"],
)
def test_hostile_files_are_refused_in_one_line(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as refused:
        quiet(tmp_path / name)
    assert "\n" not in str(refused.value) and name in str(refused.value)


def test_a_far_cell_of_excel_costs_nothing_and_an_entity_is_refused(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active["A1"], book.active["B1"] = "id", "time"
    book.active["XFD1048576"] = 1.0
    book.save(tmp_path / "far.xlsx")
    assert open_source(tmp_path / "far.xlsx").columns == ["id", "time"]
    with zipfile.ZipFile(tmp_path / "far.xlsx") as good, zipfile.ZipFile(tmp_path / "bomb.xlsx", "w") as bad:
        for name in good.namelist():
            text = good.read(name)
            if name.endswith("sheet1.xml"):
                text = b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>' + text.replace(b"<v>", b"<v>&b;")
            bad.writestr(name, text)
    with pytest.raises(InputError, match=r"bomb.xlsx"):
        quiet(tmp_path / "bomb.xlsx")
