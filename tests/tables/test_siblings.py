"""Further tables that people have: other languages, marks between thousands, units in cells, times in parts."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from _proposals import doubts_of
from rotarymae.errors import InputError, InputWarning
from rotarymae.queries import QueryTable
from rotarymae.series import as_dates, cells
from rotarymae.series.dates import formats_of, times, with_clock
from rotarymae.tables import (
    TableSchema,
    align_labels,
    id_column,
    open_source,
    propose,
    propose_objects,
    read_table,
)

SERIES, TIMES = 6, 15


@pytest.fixture(scope="module")
def base():
    draw = np.random.default_rng(0)
    rows = [(i, t) for i in range(SERIES) for t in np.sort(draw.uniform(0, 60, TIMES)).round(2)]
    table = pd.DataFrame(rows, columns=["id", "time"])
    return table.assign(value=(np.sin(table.time / 3) + table.id).round(3))


@pytest.fixture(scope="module")
def when(base):
    return pd.Timestamp("2024-03-20") + pd.to_timedelta((base.time * 6 * 3600).round(), unit="s")


def looked_at(path) -> tuple[Any, Any]:
    """Return what is proposed of a file, and its data set."""
    source = open_source(path)
    proposal = propose(source, TableSchema(), set())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        return proposal, read_table(source, proposal.schema)


NAMES = [
    ("Patient", "Zeit", "Messwert"),
    ("identifiant", "heure", "valeur"),
    ("paciente", "fecha", "valor"),
    ("sensorId", "ts", "temperature"),
    ("编号", "时间", "数值"),
    ("star", "foo", "flux"),  # the time by its shape
]


@pytest.mark.parametrize("names", NAMES, ids=lambda names: names[0])
def test_columns_in_other_languages(base, tmp_path, names):
    base.set_axis(names, axis=1).to_csv(tmp_path / "t.csv", index=False)
    proposal, dataset = looked_at(tmp_path / "t.csv")
    assert (proposal.schema.id, proposal.schema.time, *proposal.schema.values) == names
    np.testing.assert_array_equal(dataset.values[:, 0], base.value)


def german(value):
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


def in_digits(text, zero):
    return "".join(chr(ord(zero) + int(sign)) if sign.isdecimal() else sign for sign in text)


CELLS = {
    "commas between thousands": (",", lambda v: f"{v:,.2f}"),
    "points between thousands": (";", german),
    "points between thousands, quoted": (",", german),
    "blanks between thousands": (";", lambda v: f"{v:,.2f}".replace(",", "\u202f").replace(".", ",")),
    "apostrophes between thousands": (",", lambda v: f"{v:,.2f}".replace(",", "'")),
    "percent": (",", "{:.2f}%".format),
    "a semicolon at the end of a line": (",", "{:.2f};".format),
    "a unit": (",", "{:.2f} mg/dL".format),
    "a unit and decimal commas": (";", lambda v: f"{v:.2f} mg/dL".replace(".", ",")),
    "a unit behind thousands": (",", "{:,.2f} MWh".format),
    "dollars": (",", lambda v: f"{v:,.2f}".replace("-", "-$") if v < 0 else f"${v:,.2f}"),
    "US dollars": (",", lambda v: f"US${abs(v):,.2f}"),
    "euros": (";", lambda v: f"{v:.2f} €".replace(".", ",")),
    "a typographic minus": (",", lambda v: f"{v - 2500:.2f}".replace("-", "−")),
    "a minus behind the number": (",", lambda v: f"{abs(v - 2500):.2f}{'-' * (v < 2500)}"),
    "a minus behind thousands": (";", lambda v: f"{german(abs(v - 2500))}{'-' * (v < 2500)}"),
    "a minus behind decimal commas": (";", lambda v: f"{abs(v - 2500):.2f} {'-' * (v < 2500)}".replace(".", ",")),
    "Arabic digits": (";", lambda v: in_digits(f"{v:,.2f}".replace(",", "٬").replace(".", "٫"), "٠")),
    "Persian digits": (",", lambda v: in_digits(f"{v:.2f}".replace(".", "٫"), "۰")),
    "Devanagari digits": (",", lambda v: in_digits(f"{v:.2f}", "०")),
    "full-width digits": (",", lambda v: in_digits(f"{v:.2f}", "０").replace(".", "．").replace("-", "－")),
    "Fortran": (",", lambda v: f"{v:.6E}".replace("E", "D")),
}


@pytest.mark.parametrize("kind", CELLS)
def test_numbers_as_people_write_them(base, tmp_path, kind):
    separator, written = CELLS[kind]
    values = (1000 * base.value + 1500).round(2)
    base.assign(value=values.map(written)).to_csv(tmp_path / "t.csv", index=False, sep=separator)
    _, dataset = looked_at(tmp_path / "t.csv")
    expected = values - 2500 if "minus" in kind else values.abs() if "US" in kind else values
    np.testing.assert_allclose(dataset.values[:, 0], expected, rtol=0, atol=1e-2)


def test_a_comma_that_may_be_either_is_not_guessed():
    few = cells.numbers(pa.array(["1,234", "5"]), "value")
    assert few.words == {"1,234": 1} and few.values[1] == 5
    many = cells.numbers(pa.array([f"{k},204" for k in range(1, 12)] + ["998"]), "value")
    assert many.values[0] == 1204 and "commas between thousands" in str(many.note)
    coded = cells.numbers(pa.array(["+0146,5", "-0021,1", "5"]), "value")  # and a code of quality
    assert coded.note is None and sum(coded.words.values()) == 2
    coded = cells.numbers(pa.array([*(f"{10100 + k},{'159'[k % 3]}" for k in range(30)), "5"]), "value")
    assert coded.note is None and sum(coded.words.values()) == 30
    tenths = cells.numbers(pa.array([f"{1010 + k},{'05'[k % 2]}" for k in range(30)]), "value")
    assert tenths.note == "column 'value': decimal commas" and tenths.values[1] == 1011.5
    two_units = cells.numbers(pa.array(["5", "5 mg", "7 g"]), "value")
    assert two_units.words == {"5 mg": 1, "7 g": 1}


@pytest.mark.parametrize(
    "written", ["%d-%b-%Y %H:%M:%S", "%Y%m%d%H%M%S", "%Y%m%d%H", "%d/%m/%Y, %H:%M:%S", "%b %d, %Y %H:%M:%S"]
)
def test_dates_of_other_notations(base, when, tmp_path, written):
    if written == "%Y%m%d%H":
        when = pd.Series(pd.date_range("2024-03-20 05:00", periods=len(base), freq="h"))
    base.assign(time=when.dt.strftime(written)).to_csv(tmp_path / "t.csv", index=False)
    proposal, dataset = looked_at(tmp_path / "t.csv")
    assert proposal.schema.time_format == written
    np.testing.assert_allclose(dataset.times, (when - pd.Timestamp(0)) / pd.Timedelta("1D"), rtol=0, atol=1e-9)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize(("zero", "written"), [("٠", "%Y/%m/%d"), ("०", "%Y-%m-%d %H:%M"), ("０", "%Y年%m月%d日")])
def test_dates_in_digits_of_other_scripts(base, tmp_path, zero, written, suffix):
    days = pd.Series(pd.date_range("2021-01-04", periods=len(base), freq="D"))
    table = base.assign(time=[in_digits(text, zero) for text in days.dt.strftime(written)], id="第" + zero)
    table.to_csv(tmp_path / "t.csv", index=False) if suffix == "csv" else table.to_parquet(tmp_path / "t.parquet")
    dataset = looked_at(tmp_path / f"t.{suffix}")[1]
    np.testing.assert_array_equal(dataset.times, (days - pd.Timestamp(0)) / pd.Timedelta("1D"))
    assert dataset.ids.tolist() == ["第" + zero]  # a name stays as it is


def test_marks_of_schools_are_no_negative_numbers():
    assert cells.numbers(pa.array(["1", "2-", "2+"]), "value").words == {"2-": 1, "2+": 1}


def test_dates_as_whole_numbers_of_parquet(base, when, tmp_path):
    base.assign(time=when.dt.strftime("%Y%m%d%H%M%S").astype(int)).to_parquet(tmp_path / "t.parquet")
    assert looked_at(tmp_path / "t.parquet")[1].time_unit == "day"
    base.assign(time=20240000 + base.index).to_parquet(tmp_path / "t.parquet")  # some are no dates
    assert looked_at(tmp_path / "t.parquet")[1].time_unit is None


def test_dates_whose_notation_is_iso_need_no_format(base, when, tmp_path):
    base.assign(time=when.dt.strftime("%Y-%m-%d %H:%M:%S")).to_csv(tmp_path / "t.csv", index=False)
    assert looked_at(tmp_path / "t.csv")[0].schema.time_format is None


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_date_in_columns_of_its_parts(base, when, tmp_path, suffix):
    parts = {name: getattr(when.dt, name) for name in ("year", "month", "day", "hour", "minute", "second")}
    table = base.assign(**parts).drop(columns="time")
    path = tmp_path / f"t.{suffix}"
    table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path)
    proposal, dataset = looked_at(path)
    assert proposal.schema.time == "year+month+day+hour+minute+second" and proposal.schema.values == ("value",)
    np.testing.assert_allclose(dataset.times, (when - pd.Timestamp(0)) / pd.Timedelta("1D"), rtol=0, atol=1e-9)


MINIMA: Any = {
    "a minimum of the month": (["year", "month"], ["min", "max"]),
    "rain of the month": (["year", "month"], ["mm"]),
    "rain before the date": (["mm", "year", "month"], ["mm"]),
    "a minimum of the hour": (["year", "month", "day", "hour"], ["min", "max"]),
    "a minimum with a fraction": (["year", "month", "day", "hour"], ["min"]),
    "hours of sun": (["year", "month", "day"], ["hour"]),
    "hours of work": (["year", "month", "day"], ["hours"]),
}


@pytest.mark.parametrize("kind", MINIMA)
def test_a_value_that_is_called_like_a_part_of_a_date_is_a_value(kind, when, tmp_path):
    parts, values = MINIMA[kind]
    parts = {name: getattr(when.dt, name) for name in parts if name != "mm"}
    draw = np.random.default_rng(0).uniform(1, 50, (len(values), len(when))).round(2 * (len(values) == 1))
    table = pd.DataFrame({**parts, **dict(zip(values, draw, strict=True))}).astype(dict.fromkeys(parts, int))
    (table[["mm", *parts]] if kind == "rain before the date" else table).to_csv(tmp_path / "t.csv", index=False)
    proposal = propose(open_source(tmp_path / "t.csv"), TableSchema(), set())
    assert (proposal.schema.time, proposal.schema.values) == ("+".join(parts), tuple(values))


def test_parts_of_a_date_may_be_a_day_of_the_year_two_digits_and_a_fraction_of_a_second(base, when, tmp_path):
    when = when - pd.Timedelta("9131.25D") + pd.to_timedelta(base.index % 7 / 8, unit="s")  # from 1999 on
    clock = {"hh": when.dt.hour, "mn": when.dt.minute, "ss": when.dt.second + when.dt.microsecond / 1e6}
    days = ((when - pd.Timestamp(0)) / pd.Timedelta(1, "D")).to_numpy().reshape(SERIES, TIMES)
    for day in ({"MM": when.dt.month, "DD": when.dt.day}, {"DOY": when.dt.day_of_year}):
        table = base.assign(YY=when.dt.year % 100, **day, **clock).drop(columns="time")
        table.to_csv(tmp_path / "t.csv", index=False)
        proposal, dataset = looked_at(tmp_path / "t.csv")
        assert proposal.schema.time == "+".join(["YY", *day, *clock]) and proposal.schema.values == ("value",)
        assert np.abs(dataset.times - np.sort(days).ravel()).max() < 1e-9
    last = table.drop_duplicates("id").assign(hh=24, mn=0, ss=0, YY=24, DOY=60)
    assert set(read_table(last, TableSchema(time=proposal.schema.time)).times) == {19783.0}  # the first of March 2024


def test_a_year_and_a_month_are_a_date(tmp_path):
    table = pd.DataFrame(
        {"YEAR": np.repeat(range(1950, 1960), 12), "MONTH": [*range(1, 13)] * 10, "SST": np.arange(120.0)}
    )
    table.to_csv(tmp_path / "t.csv", index=False)
    proposal, dataset = looked_at(tmp_path / "t.csv")
    assert (proposal.schema.time, proposal.schema.id) == ("YEAR+MONTH", "file")
    assert dataset.times[:2].tolist() == [-7305, -7274]


DAYS, MONTHS = pd.date_range("2024-01-20", periods=24), pd.date_range("2024-01-01", periods=12, freq="MS")


GERMAN = "Jan Feb Mär Apr Mai Jun Jul Aug Sep Okt Nov Dez"
NAMES_OF_TIMES = {
    "2024-01-20": DAYS.strftime("%Y-%m-%d"),
    "1/20/24": DAYS.strftime("%-m/%-d/%y"),
    "Jan 2024": pd.date_range("2024-01-01", periods=24, freq="MS").strftime("%b %Y"),
    "20240120": DAYS.strftime("%Y%m%d"),
    "1990": range(1990, 2014),
    "Y1990": [f"Y{year}" for year in range(1990, 2014)],
    "2019-Q1": [f"{year}-Q{quarter}" for year in range(2019, 2025) for quarter in range(1, 5)],
    "Mär 2024": [f"{month} {year}" for year in (2024, 2025) for month in GERMAN.split()],
    "400.5": [f"{400.5 + 2 * k}" for k in range(24)],
}


@pytest.mark.parametrize("preamble", [False, True])
@pytest.mark.parametrize("names", NAMES_OF_TIMES.values(), ids=[*NAMES_OF_TIMES])
def test_a_row_whose_columns_are_called_as_times_is_a_series(names, preamble, tmp_path):
    values = np.random.default_rng(0).normal(size=(5, 24)).round(4)
    table = pd.DataFrame(values, columns=[*map(str, names)])
    table.insert(0, "Country", [*"ABCDE"])
    text = '"Data Source","World, and more",\n\n' * preamble + table.assign(end="").to_csv(index=False)
    (tmp_path / "t.csv").write_text(text.replace(",end", ","))
    if preamble and "400.5" in names:  # which may be the numbers of a row
        return
    proposal, dataset = looked_at(tmp_path / "t.csv")
    schema, dated = proposal.schema, isinstance(names[0], str) and names[0][0] != "Y" and "." not in names[0]
    assert (schema.id, schema.time, len(schema.values), schema.wide) == ("Country", "number", 1, False)
    assert [*dataset.ids] == [*"ABCDE"] and dataset.values[:, 0].tolist() == values.ravel().tolist()
    start = {"J": 19723, "4": 400.5}.get(str(names[0])[0], 19742 if dated else 1990)
    start = 17897 if "2019-Q1" in names else start
    assert dataset.times[0] == start and (dataset.time_zone is not None) == dated


def test_times_as_names_of_columns_are_named_where_their_order_is_not_plain(tmp_path):
    names = [f"{k}/{k}/2024" for k in range(1, 13)]
    pd.DataFrame(np.eye(12), columns=names).to_csv(tmp_path / "t.csv")
    with pytest.raises(InputError, match="names of its columns are times"):
        propose(open_source(tmp_path / "t.csv"), TableSchema(), set())


OF_DAY = {"H01": [f"H{k:02d}" for k in range(1, 25)], "13:00": [f"{k:02d}:00" for k in range(24)], "7": range(24)}


@pytest.mark.parametrize("names", [*OF_DAY.values(), MONTHS.strftime("%b")], ids=[*OF_DAY, "Dec"])
def test_times_as_names_of_channels_are_doubted_and_none_is_lost(names, tmp_path):
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(30, len(names))), columns=[*map(str, names)])
    table.insert(0, "Year" if "Dec" in table else "date", range(1990, 2020) if "Dec" in table else [*DAYS, *DAYS[:6]])
    table.to_csv(tmp_path / "t.csv", index=False)
    proposal = propose(open_source(tmp_path / "t.csv"), TableSchema(), set())
    assert proposal.schema.values == tuple(map(str, names))
    assert any("are read as channels; if the names say times" in text for text in doubts_of(proposal))


REFUSED = {
    "id,time,value,value": "There are no others. Besides, column 'value' is there more than once",
    "id,time,door": r"There are 'door' \(high, low\)\.",
}


@pytest.mark.parametrize("header", REFUSED)
def test_why_no_column_is_one_of_values(header, tmp_path):
    cells_of = [["0", str(k), word, word][: header.count(",") + 1] for k, word in enumerate(["low", "high"] * 9)]
    (tmp_path / "t.csv").write_text("\n".join([header, *map(",".join, cells_of)]) + "\n")
    with pytest.raises(InputError, match=REFUSED[header]):
        propose(open_source(tmp_path / "t.csv"), TableSchema(), set())


def test_points_between_thousands_are_known_by_the_decimal_commas_of_another_column(base, tmp_path):
    counts = [f"{1000 + k:,}".replace(",", ".") for k in base.index]
    base.assign(count=counts).to_csv(tmp_path / "t.csv", index=False, sep=";", decimal=",")
    dataset = read_table(tmp_path / "t.csv", TableSchema(values=("count",), duplicates="first"))
    assert np.sort(dataset.values[:, 0]).tolist() == [*range(1000, 1000 + len(base))]


def test_ids_that_differ_in_capitals_are_a_doubt(base):
    table = base.sort_values("time").assign(id=np.where(base.index % 2, "Star ", "star ") + base.id.astype(str))
    with pytest.warns(InputWarning, match="12 ids in 'id' differ from another in capitals alone"):
        assert len(read_table(table.sort_values(["id", "time"]), TableSchema())) == 12


def test_classes_that_differ_in_capitals_or_are_numbers_but_few_are_doubts(base, tmp_path):
    labels = pa.table({"id": range(SERIES), "label": ["AGN", "SN Ia", "sn ia", "AGN", "SN Ia", "agn"]})
    dataset = read_table(base.sort_values(["id", "time"]), TableSchema())
    with pytest.warns(InputWarning, match="4 words of column 'label' differ from another in capitals alone"):
        align_labels(dataset, labels)
    (tmp_path / "l.csv").write_text("id,mass\n" + "".join(f"{k},{k + 1.5 if k else 'unsure'}\n" for k in range(SERIES)))
    with pytest.warns(InputWarning, match="1 different words among the numbers of column 'mass' .*--na unsure"):
        align_labels(dataset, tmp_path / "l.csv", label="mass")
    assert align_labels(dataset, tmp_path / "l.csv", "id", "mass", "none", na=("unsure",))[1] == 2.5


def test_a_pressure_is_no_channel_and_columns_that_are_there_twice_are_said(base, tmp_path):
    level = (base.value * 3).round().astype(int) + 120
    table = base.assign(bp=[f"{high}/{high - 40}" for high in level], hr=level / 2)
    table.to_csv(tmp_path / "t.csv", index=False)
    proposal, _ = looked_at(tmp_path / "t.csv")
    assert proposal.schema.channel is None
    table.to_csv(tmp_path / "t.csv", index=False, header=["id", "a", "a", "b", "b"])
    with pytest.raises(InputError, match=r"Besides, columns 'a', 'b' are each there more than once; each .* own\.$"):
        looked_at(tmp_path / "t.csv")


def test_numbers_next_to_a_word_for_missing_are_numbers_however_few(base, tmp_path):
    for word, said in (("MM", []), ("nd", [{"nd": 60}])):
        base.assign(wave=base.value.where(base.index % 3 == 0, word)).to_csv(tmp_path / "t.csv", index=False)
        proposal, _ = looked_at(tmp_path / "t.csv")
        schema = replace(proposal.schema, values=("wave",), wide=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)
            dataset = read_table(tmp_path / "t.csv", schema)
        assert len(dataset.times) == 30 and [*dataset.reading.words.values()] == said  # pyright: ignore


def test_a_word_among_the_numbers_of_a_static_column_is_a_doubt(base, tmp_path):
    base.assign(age=(base.id + 40).astype(str).replace("40", "unknown")).to_csv(tmp_path / "t.csv", index=False)
    with pytest.warns(InputWarning, match="'age' make all its cells classes; .*--na unknown"):
        read_table(tmp_path / "t.csv", TableSchema(static=("age",)))
    dataset = read_table(tmp_path / "t.csv", TableSchema(static=("age",), na=("unknown",)))
    assert dataset.static["age"][1:].tolist() == [41, 42, 43, 44, 45] and np.isnan(dataset.static["age"][0])


def test_errors_of_a_wide_table_are_said_to_be_left_out(base, tmp_path):
    table = base.rename(columns={"value": "g"})
    table = table.assign(g_err=0.1 + table.index % 5, r=table.g + 1, r_err=0.1 + table.index % 5)
    table.to_csv(tmp_path / "t.csv", index=False)
    proposal, _ = looked_at(tmp_path / "t.csv")
    assert proposal.schema.values == ("g", "r") and proposal.remarks.keys() == {"g_err", "r_err"}


# ── the objects' table ──────────────────────────────────────────────────────────────────────────────────────────────


def test_the_objects_may_call_their_ids_otherwise(tmp_path):
    for i in range(6):
        (tmp_path / f"{1000 + i}.csv").write_text("time,value\n" + "".join(f"{t},{i + t}\n" for t in range(5)))
    files = open_source(tmp_path)
    objects = pd.DataFrame({"RecordID": range(1000, 1006), "age": range(50, 56), "los": range(6), "died": [0, 1] * 3})
    label, static, remarks = propose_objects(open_source(objects), "file", None)
    assert (label, static, remarks["los"]) == ("died", ("age",), "looks like an outcome")
    dataset = read_table(files, TableSchema(id="file", static=("age",), objects=objects))  # pyright: ignore
    assert dataset.static["age"].tolist() == [*range(50, 56)]
    key = id_column(open_source(objects), "file")
    assert align_labels(dataset, objects, key, "died").tolist() == [0, 1] * 3
    with pytest.raises(InputError, match="no column 'file'"):
        read_table(files, TableSchema(id="file", static=("age",), objects=objects.assign(patient_id=0)))  # pyright: ignore


def test_rows_without_a_time_are_said(base, tmp_path):
    table = pd.concat([base.assign(code="HR"), pd.DataFrame({"id": range(SERIES), "code": "SEX//F"})])
    table = table.sort_values("id", kind="stable")
    table.to_csv(tmp_path / "t.csv", index=False)
    assert any(f"{SERIES} of " in text and "rows seen" in text for text in doubts_of(looked_at(tmp_path / "t.csv")[0]))


def test_files_that_begin_alike_are_looked_at_once(tmp_path, monkeypatch):
    from rotarymae.tables import formats

    for i in range(4):
        (tmp_path / f"{i}.csv").write_text("time;value\n" + "".join(f"{t};{i},{t}\n" for t in range(5)))
    (tmp_path / "5.csv").write_text("# note\ntime;value\n" + "".join(f"{t};5,{t}\n" for t in range(5)))
    sniffed = []
    monkeypatch.setattr(formats, "sniff", lambda *args, _sniff=formats.sniff: sniffed.append(args[0]) or _sniff(*args))
    dataset = read_table(tmp_path, TableSchema(id="file"))
    assert [path.name for path in sniffed] == ["0.csv", "5.csv"]
    assert dataset.values[:, 0].tolist() == [i + t / 10 for i in (0, 1, 2, 3, 5) for t in range(5)]


# ── indices of data frames, ids, months ─────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def hourly():
    values = np.random.default_rng(0).normal(size=60).round(3)
    return pd.DataFrame({"a": values}, index=pd.date_range("2024-01-01", periods=60, freq="h"))


@pytest.mark.parametrize("suffix", ["csv", "parquet", "xlsx"])
def test_dates_in_an_index_without_a_name_are_the_time(hourly, tmp_path, suffix):
    path = tmp_path / f"t.{suffix}"
    {"csv": hourly.to_csv, "parquet": hourly.to_parquet, "xlsx": hourly.to_excel}[suffix](path)
    proposal, dataset = looked_at(path)
    assert (proposal.schema.id, proposal.schema.values, dataset.time_unit) == ("file", ("a",), "day")
    np.testing.assert_array_equal(dataset.values[:, 0], hourly.a)


def test_the_index_of_a_frame_is_read_where_it_has_names_or_dates(base, hourly):
    dataset = read_table(hourly, TableSchema(id="file", values=("a",)))
    assert dataset.time_unit == "day" and len(dataset.times) == 60
    twice = base.set_index(["id", "time"]).rename_axis(["x", "x"])
    assert open_source(twice).columns == ["value"]
    indexed = read_table(base.set_index(["id", "time"]), TableSchema())
    np.testing.assert_array_equal(indexed.values[:, 0], base.value)
    assert open_source(base.set_index(base.id)).columns == ["id", "time", "value"]  # a level that is a column, too


@pytest.mark.parametrize("written", ["%G-W%V", "%GW%V"])
def test_weeks_are_dates(written, tmp_path):
    mondays = pd.date_range("2020-12-07", periods=60, freq="7D")
    table = pd.DataFrame({"year_week": mondays.strftime(written), "cases": np.arange(60) % 7})
    table.to_csv(tmp_path / "t.csv", index=False)
    proposal, dataset = looked_at(tmp_path / "t.csv")
    assert proposal.schema.time == "year_week"
    assert dataset.times == pytest.approx((mondays - pd.Timestamp(0)) / pd.Timedelta(1, "D"))
    read = times(pa.array(["2023-W52", "2023-W53", "2024-W02"]), "week")  # 2023 has 52 weeks
    assert read.words == {"2023-W53": 1} and read.values == pytest.approx([19716, np.nan, 19730], nan_ok=True)


@pytest.mark.parametrize("written", ["%Y-%m", "%b %Y"])
def test_months_are_dates(tmp_path, written):
    months = pd.date_range("2001-01-01", periods=60, freq="MS").strftime(written)
    pd.DataFrame({"month": months, "sales": np.arange(60.0)}).to_csv(tmp_path / "t.csv", index=False)
    assert looked_at(tmp_path / "t.csv")[1].times[:2].tolist() == [11323, 11354]


def test_rows_sorted_by_time_are_of_the_objects_that_tell_them_apart(tmp_path):
    days = pd.date_range("2024-01-01", periods=40).strftime("%Y-%m-%d")
    stores = pd.DataFrame({"date": np.repeat(days, 5), "store": [*"abcde"] * 40, "sales": np.arange(200.0)})
    stores.to_csv(tmp_path / "t.csv", index=False)
    assert looked_at(tmp_path / "t.csv")[0].schema.id == "store"
    stores.rename(columns={"store": "sensor"}).to_csv(tmp_path / "t.csv", index=False)
    assert looked_at(tmp_path / "t.csv")[0].schema.channel == "sensor"


def test_glued_names_of_ids_and_offsets_and_numbers_next_to_texts(base, tmp_path):
    table = pd.DataFrame({"vitalperiodicid": base.index, "patientunitstayid": base.id + 100})
    table = table.assign(observationoffset=(60 * base.time).round() - 300, heartrate=base.value, sao2=base.value + 90)
    table.to_csv(tmp_path / "t.csv", index=False)
    schema = looked_at(tmp_path / "t.csv")[0].schema
    assert (schema.id, schema.time, schema.values) == ("patientunitstayid", "observationoffset", ("heartrate", "sao2"))
    events = base.rename(columns={"value": "valuenum"}).assign(value=base.value.astype(str), itemid=220045)
    events.loc[::2, "itemid"] = 220210
    events.to_csv(tmp_path / "t.csv", index=False)
    assert looked_at(tmp_path / "t.csv")[0].schema.values == ("valuenum",)


def test_decimals_of_parquet_are_values(base, tmp_path):
    decimals = pa.array(base.value.round(3)).cast(pa.decimal128(10, 3), safe=False)
    table = pa.table({"id": base.id, "time": base.time, "value": decimals})
    pq.write_table(table, tmp_path / "t.parquet")
    assert looked_at(tmp_path / "t.parquet")[0].schema.values == ("value",)


def test_a_unit_of_measurement_is_no_id(tmp_path):
    table = pd.DataFrame({"machine": np.repeat([*"wxyz"], 20), "time": [*range(20)] * 4, "unit": [*"abcd"] * 20})
    table.assign(value=np.arange(80.0)).to_csv(tmp_path / "t.csv", index=False)
    assert looked_at(tmp_path / "t.csv")[0].schema.id == "machine"


def test_a_note_for_each_object_is_no_static_column_however_many_objects_there_are(monkeypatch):
    """Only the first rows are looked at; they are what counts of them are compared with."""
    objects = pd.DataFrame({"id": range(50), "kind": ["a", "b"] * 25, "note": [f"see page {i}" for i in range(50)]})
    monkeypatch.setattr("rotarymae.tables.columns.ROWS", 20)
    label, static, remarks = propose_objects(open_source(objects), "id", "kind")
    assert (label, static) == ("kind", ()) and remarks["note"] == "differs in most series: --static?"


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_table_of_long_series_is_guessed_from_rows_all_over_it(tmp_path, monkeypatch, suffix):
    """The first rows hold one series, which shows nothing of what is the same throughout a series."""
    draw = np.random.default_rng(0)
    table = pd.DataFrame({"machine_id": np.repeat(range(8), 100), "time": np.tile(range(100), 8)})
    table["kind"], table["value"] = np.where(table.machine_id % 2, "a", "b"), draw.normal(size=800)
    path = tmp_path / f"t.{suffix}"
    table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path)
    monkeypatch.setattr("rotarymae.tables.columns.ROWS", 40)
    found = propose(open_source(path), TableSchema(), set())
    assert (found.schema.id, found.label) == ("machine_id", "kind")
    seen = open_source(path).sample(40).read(["machine_id"])["machine_id"].to_pylist()
    assert len(seen) == 40 and [int(one) for one in seen[::5]] == list(range(8))


# ── columns that nobody named ───────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def sensors():
    """Two sensors that alternate within each machine, whose quality is what one would predict."""
    draw = np.random.default_rng(0)
    table = pd.DataFrame({"Maschine": np.repeat([f"M{i}" for i in range(8)], 20)})
    hours = pd.Timestamp("2024-03-20 08:00") + pd.to_timedelta(np.arange(len(table)), unit="h")
    table["Zeit"] = hours.strftime("%d.%m.%Y %H:%M")  # pyright: ignore
    table["Fühler"] = np.tile(["Fühler oben", "Fühler unten"], 80)
    table["Messwert"] = [f"{value:.2f}".replace(".", ",") for value in 20 + draw.normal(size=160)]
    return table.assign(Güte=np.repeat(["gut", "schlecht"] * 4, 20))


def proposal_of(table, tmp_path):
    table.to_csv(tmp_path / "t.csv", sep=";", index=False, encoding="latin-1")
    return propose(open_source(tmp_path / "t.csv"), TableSchema(), set())


def test_a_german_log_of_sensors(sensors, tmp_path):
    proposal = proposal_of(sensors, tmp_path)
    assert (proposal.schema.channel, proposal.schema.values) == ("Fühler", ("Messwert",))
    assert proposal.label is None
    assert "the label?" in proposal.remarks["Güte"]


@pytest.mark.parametrize("name", ["Kopf", "status", "Bemerkung"])
def test_texts_that_change_within_series_are_no_channel_by_themselves(sensors, tmp_path, name):
    table = sensors.rename(columns={"Fühler": name})
    if name == "Bemerkung":
        table[name] = [f"siehe {k}" for k in range(len(table))]
    proposal = proposal_of(table, tmp_path)
    hint = None if name == "Bemerkung" else "--channel, if it says what was measured"
    assert proposal.schema.channel is None and proposal.remarks.get(name) == hint


def test_codes_are_values_of_a_wide_table(sensors, tmp_path):
    table = sensors.assign(Kopf=np.tile([3, 7], 80)).drop(columns="Fühler")
    assert proposal_of(table, tmp_path).schema.values == ("Messwert",)
    proposal = proposal_of(table.rename(columns={"Messwert": "Drehmoment"}), tmp_path)
    assert proposal.schema.wide and proposal.schema.values == ("Drehmoment", "Kopf")


def test_texts_that_follow_the_channel_are_not_doubted(sensors, tmp_path):
    table = sensors.assign(Einheit=np.tile(["°C", "K"], 80))
    assert not any("'Einheit'" in text for text in doubts_of(proposal_of(table, tmp_path)))


@pytest.mark.parametrize("name", ["quality", "grade", "outcome", "diagnosis", "status", "Befund"])
@pytest.mark.parametrize("codes", [False, True])
def test_the_only_class_of_a_series_is_said_to_be_its_label(sensors, tmp_path, name, codes):
    table = sensors.rename(columns={"Güte": name})
    if codes:
        table[name] = (table[name] == "gut").astype(int)
    proposal = proposal_of(table, tmp_path)
    assert proposal.label == name or "the label?" in proposal.remarks[name]


def test_of_several_classes_of_a_series_none_is_taken_away(sensors, tmp_path):
    table = sensors.assign(Halle=np.repeat(["A", "A", "B", "B"] * 2, 20), Alter=np.repeat(np.arange(8) / 7, 20))
    proposal = proposal_of(table, tmp_path)
    assert set(proposal.schema.static) == {"Güte", "Halle", "Alter"}
    assert {name for name, remark in proposal.remarks.items() if "the label?" in remark} == {"Güte", "Halle"}


# ── instruments, exports and forms ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("offset", [" +0200", "+0200", " +02:00", " UTC", "Z"])
def test_dates_with_an_offset_behind_a_blank_are_dates(offset, base, when, tmp_path):
    base.assign(time=when.dt.strftime("%Y-%m-%d %H:%M:%S") + offset).to_csv(tmp_path / "t.csv", index=False)
    dataset = looked_at(tmp_path / "t.csv")[1]
    days = (when - pd.Timestamp(0)) / pd.Timedelta(1, "D") - ("2" in offset) * 2 / 24
    assert np.abs(dataset.times - np.sort(days.to_numpy().reshape(SERIES, TIMES)).ravel()).max() < 1e-9


CLOCKS = {"Uhrzeit": "%H:%M:%S", "uhrzeit": "%H:%M Uhr", "Time": "%I:%M:%S %p", "UTC_TIME": "%H%M", "Hour": "%H"}


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("day", ["%d.%m.%Y", "%Y%m%d", "%Y-%m-%d", "%d/%m/%Y", "%Y%j"])
@pytest.mark.parametrize("one", [True, False], ids=["one", "several"])
def test_a_clock_next_to_days_of_any_notation_is_part_of_the_time(one, clock, day, base, when, tmp_path):
    when = when.dt.floor({"Hour": "h", "UTC_TIME": "min", "uhrzeit": "min"}.get(clock, "s"))
    table = base.assign(Datum=when.dt.strftime(day), **{clock: when.dt.strftime(CLOCKS[clock])})
    table = table.drop(columns=["time", "id"] if one else "time")
    table = table.drop_duplicates([name for name in table if name != "value"])
    table.to_csv(tmp_path / "t.csv", index=False)
    proposal, dataset = looked_at(tmp_path / "t.csv")
    assert (proposal.schema.time, proposal.schema.clock) == ("Datum", clock)
    assert (proposal.schema.id, proposal.schema.channel) == ("file" if one else "id", None)
    days = (when - pd.Timestamp(0)) / pd.Timedelta(1, "D")
    assert np.unique(dataset.times) == pytest.approx(np.unique(days), abs=1e-9)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_clock_next_to_a_day_in_parts_or_at_midnight_is_part_of_the_time(suffix, when, base, tmp_path):
    hours = {"Time": when.dt.strftime("%H:%M:%S"), "value": base.value, "id": base.id}
    parts = {name: getattr(when.dt, name) for name in ("year", "month", "day")}
    for day, time in ((parts, "year+month+day"), ({"date": when.dt.floor("D")}, "date")):
        table = pd.DataFrame({**day, **hours})
        path = tmp_path / f"t.{suffix}"
        table.to_csv(path, index=False) if suffix == "csv" else table.to_parquet(path)
        proposal, dataset = looked_at(path)
        assert (proposal.schema.time, proposal.schema.clock, proposal.schema.id) == (time, "Time", "id")
        assert dataset.times[0] == pytest.approx((when.min() - pd.Timestamp(0)) / pd.Timedelta(1, "D"), abs=1e-9)


def test_a_clock_that_is_none_is_refused_or_missing():
    day = pa.array(["2024-03-05"] * 3)
    for written, hours in (
        (["7", "13", "24"], [7, 13, 24]),
        (["0000", "0015", "1030"], [0, 0.25, 10.5]),
        (["10.15", " 9.30", "8.00"], [10.25, 9.5, 8]),
        (["10.15", "9.5", "8.75"], [10.15, 9.5, 8.75]),
        (["10h15", "9:75", "8:30.30"], [10.25, np.nan, 8.5 + 30 / 3600]),
    ):
        read = with_clock(times(day, "day"), pa.array(written), "day").values - 19787
        assert read * 24 == pytest.approx(hours, nan_ok=True)
    for wrong in (
        [7.0, 13.0, 61.0],
        [900.0, 1075.0, 1100.0],
        [900.0, 2500.0, 1.0],
        [7.0, -1.0, 8.0],
        [1.0, np.inf, 2.0],
    ):
        with pytest.raises(InputError, match="write hours from 0 to 24, or 10:15:00, or 1015"):
            with_clock(times(day, "day"), pa.array(wrong), "day")


def test_a_buoy_has_units_below_its_header_and_its_time_in_five_columns(tmp_path):
    hours = pd.date_range("2022-01-01 00:50", periods=60, freq="h")
    rows = [f"{hour:%Y %m %d %H %M} {k % 7 + 0.5:.1f}  99.0 {12 + k % 5}" for k, hour in enumerate(hours)]
    head = ["#YY  MM DD hh mm WSPD VIS WTMP", "#yr  mo dy hr mn m/s nmi m/s"]
    (tmp_path / "t.txt").write_text("\n".join([*head, *rows]) + "\n")
    proposal, dataset = looked_at(tmp_path / "t.txt")
    assert proposal.schema.time == "YY+MM+DD+hh+mm"
    assert proposal.schema.values == ("WSPD", "WTMP")  # VIS is always 99
    assert dataset.times[0] == 18993 + 50 / 1440


def test_a_row_of_widths_and_types_is_no_observation(tmp_path):
    rows = "".join(f"USGS\t01646500\t2023-05-01 {k // 4:02d}:{15 * (k % 4):02d}\t{9000 + k}\n" for k in range(40))
    (tmp_path / "t.tsv").write_text(f"# provisional\nagency_cd\tsite_no\tdatetime\t00060\n5s\t15s\t20d\t14n\n{rows}")
    proposal, dataset = looked_at(tmp_path / "t.tsv")
    assert (proposal.schema.id, proposal.schema.values, len(dataset.times)) == ("file", ("00060",), 40)


def test_a_column_by_which_the_values_differ_is_the_channel(tmp_path):
    draw = np.random.default_rng(0)
    rows = [
        (f"01-{i:03d}", v, test, mean * draw.uniform(0.7, 1.3), f"2020-{v:02d}-{draw.integers(1, 28):02d}", state)
        for i in range(8)
        for v in range(1, 8)
        for test, mean in (("ALT", 30), ("CREAT", 1), ("WBC", 7))
        for state in draw.choice(["LOW", "NORMAL"], 1)
    ]
    table = pd.DataFrame(rows, columns=["SUBJID", "VISITNUM", "LBTESTCD", "LBORRES", "LBDTC", "LBNRIND"])
    table.to_csv(tmp_path / "t.csv", index=False)
    schema = looked_at(tmp_path / "t.csv")[0].schema
    assert (schema.id, schema.channel, schema.values) == ("SUBJID", "LBTESTCD", ("LBORRES",))


def test_whole_numbers_that_tell_rows_of_one_time_apart_are_the_channel(tmp_path):
    rows = [(s, d, f"2010-02-{5 + k:02d}", 10.5 * d + k) for s in (1, 2) for d in range(1, 6) for k in range(20)]
    pd.DataFrame(rows, columns=["Store", "Dept", "Date", "Sales"]).to_csv(tmp_path / "t.csv", index=False)
    schema = looked_at(tmp_path / "t.csv")[0].schema
    assert (schema.id, schema.channel, schema.values) == ("Store", "Dept", ("Sales",))


def test_a_band_is_never_the_id_and_an_error_may_have_no_unit(tmp_path):
    rows = [(2457000.5 + k, "V" if k < 50 else "g", 3 + k % 5 / 10, 0.05 + k % 3 / 100) for k in range(100)]
    pd.DataFrame(rows, columns=["HJD", "Filter", "flux(mJy)", "flux_err"]).to_csv(tmp_path / "t.csv", index=False)
    schema = looked_at(tmp_path / "t.csv")[0].schema
    assert (schema.id, schema.channel, schema.values, schema.errors) == (
        "file",
        "Filter",
        ("flux(mJy)",),
        ("flux_err",),
    )


def test_a_second_id_and_the_end_of_each_time_are_no_facts_and_no_values(base, when, tmp_path):
    stamps = {name: when.dt.strftime("%Y%m%d%H%M") for name in ("TIMESTAMP_START", "TIMESTAMP_END")}
    table = base.assign(
        animal=base.id.map("Stork {}".format), **stamps, temp=base.value + 1, temp_qc=base.index % 3 // 2
    )
    table = table.assign(tag_identifier=1000 + base.id, weight=np.array([31, 28, 35, 30, 29, 33])[base.id])
    table.drop(columns=["time", "id"]).to_csv(tmp_path / "t.csv", index=False)
    proposal, _ = looked_at(tmp_path / "t.csv")
    schema = proposal.schema
    assert (schema.time, schema.static, schema.values) == ("TIMESTAMP_START", ("weight",), ("value",))
    assert "--flags" in proposal.remarks["temp_qc"]


@pytest.mark.parametrize("name", ["Güte", "sleep_quality"])
def test_a_quality_with_fractions_is_measured(name, base, tmp_path):
    base[["time", "value"]].rename(columns={"value": name}).to_csv(tmp_path / "t.csv", index=False)
    assert looked_at(tmp_path / "t.csv")[0].schema.values == (name,)


def test_of_a_date_and_a_counter_the_date_is_the_time(when, base, tmp_path):
    table = base.assign(**{"Timestamp (YYYY-MM-DD)": when, "Transmitter Time (Long Integer)": 5000 + base.index * 300})
    table.drop(columns="time").to_csv(tmp_path / "t.csv", index=False)
    assert looked_at(tmp_path / "t.csv")[0].schema.time == "Timestamp (YYYY-MM-DD)"


@pytest.mark.parametrize("words", [("true", "false"), ("TRUE", "FALSE")])
def test_true_and_false_are_numbers_in_text_as_in_parquet(words, base, tmp_path):
    rejected = base.index % 10 == 3
    base.assign(rejected=np.where(rejected, *words)).to_csv(tmp_path / "t.csv", index=False)
    base.assign(rejected=rejected).to_parquet(tmp_path / "t.parquet")
    for path in (tmp_path / "t.csv", tmp_path / "t.parquet"):
        proposal, _ = looked_at(path)
        assert "--flags" in proposal.remarks["rejected"]
        dataset = read_table(open_source(path), TableSchema(flags=("rejected",)))
        assert len(dataset.times) == len(base) - rejected.sum()


def test_a_station_of_the_quality_of_air_is_an_id(base, tmp_path):
    table = base.drop(columns="id").assign(AirQualityStation=base.id.map("DEBB{:03d}".format))
    table.to_csv(tmp_path / "t.csv", index=False)
    assert looked_at(tmp_path / "t.csv")[0].schema.id == "AirQualityStation"


@pytest.mark.parametrize("name", ["Quality", "qc_flag"])
def test_words_of_quality_in_all_rows_are_a_doubt(name, base, tmp_path):
    table = base.assign(more=base.value**2, **{name: np.where(base.index % 7, "Good", "Bad")})
    table.to_csv(tmp_path / "t.csv", index=False)
    assert looked_at(tmp_path / "t.csv")[0].remarks[name].startswith("a flag?")


@pytest.mark.parametrize(
    "name",
    ["cc_flags", "aflags", "Validity", "qual_frame", "temp_qc", "Datenqualität", "T_Güte", "qualité", "calidad",
     "kwaliteit", "качество"],
)  # fmt: skip
@pytest.mark.parametrize("good", [0, 1])
def test_a_flag_is_neither_the_id_nor_a_value_whichever_number_is_good(good, name, base, tmp_path):
    table = base[["time", "value"]].assign(more=base.value**2, **{name: np.where(base.id < 5, good, 4)})
    table.assign(time=np.arange(len(base))).to_csv(tmp_path / "t.csv", index=False)
    proposal, _ = looked_at(tmp_path / "t.csv")
    assert (proposal.schema.id, {*proposal.schema.values} - {"more"}) == ("file", {"value"})
    assert proposal.remarks[name].startswith("not 0 in" if good == 0 else "a flag?")


@pytest.mark.parametrize(
    "written",
    [
        "%d/%b/%Y:%H:%M:%S +0000",
        "%Y%m%dT%H%M%SZ",
        "%Y:%m:%d %H:%M:%S",
        "%d:%m:%Y %H:%M:%S",
        "%a %b %d %H:%M:%S %Y",
        "%a, %d %b %Y %H:%M:%S GMT",
        "%d-%b-%y %I.%M.%S.%f %p",
        "%Y-%jT%H:%M:%S",
        "%Y-%m-%d %H:%M:%S:%f",
        "%Y年%m月%d日 %H:%M:%S",
        "%A, %B %d, %Y %I:%M:%S %p",
        "%m/%d/%Y %I:%M:%S %p",
        "%d.%m.%y %H:%M:%S",
        "%Y-%m-%d-%H.%M.%S.%f",
    ],
)
def test_the_notation_of_dates_is_seen_in_their_words_and_numbers(written, base, when, tmp_path):
    base.assign(time=when.dt.strftime(written)).to_csv(tmp_path / "t.csv", index=False)
    proposal, dataset = looked_at(tmp_path / "t.csv")
    assert proposal.schema.time_format == written.replace("+0000", "%z")
    days = ((when - pd.Timestamp(0)) / pd.Timedelta(1, "D")).to_numpy().reshape(SERIES, TIMES)
    assert np.abs(dataset.times - np.sort(days).ravel()).max() < 1e-9
    with pytest.raises(InputError) as error:
        read_table(open_source(tmp_path / "t.csv"), TableSchema())
    assert repr(proposal.schema.time_format) in str(error.value)


LANGUAGES = {
    "de": "Jan Feb Mär Apr Mai Jun Jul Aug Sep Okt Nov Dez",
    "de, in full": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "fr": "janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc.",
    "fr, in full": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    "nl": "jan feb mrt apr mei jun jul aug sep okt nov dec",
    "AP": "Jan. Feb. March April May June July Aug. Sept. Oct. Nov. Dec.",
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_months_in_other_languages_are_read(language, tmp_path):
    written = "{1} {0.day}, {0.year}" if language in ("fr", "nl", "AP") else "{0.day}. {1} {0.year}"
    names, days = LANGUAGES[language].split(), pd.date_range("2023-01-03", periods=60, freq="9D")
    table = pd.DataFrame({"date": [written.format(day, names[day.month - 1]) for day in days], "value": range(60)})
    table.loc[60] = ["unknown", 1]
    table.to_csv(tmp_path / "t.csv", index=False)
    proposal, dataset = looked_at(tmp_path / "t.csv")
    assert (proposal.schema.time, proposal.schema.id) == ("date", "file")
    assert dataset.times.tolist() == ((days - pd.Timestamp(0)) / pd.Timedelta("1D")).tolist()
    assert dataset.reading.words == {"date": {"unknown": 1}}


def test_may_is_a_month_in_short_and_in_full():
    assert formats_of(["3-May-2023", "1-Jun-2023"]) == ["%d-%b-%Y"]
    assert formats_of(["May 3, 2023", "September 13, 2023"]) == ["%B %d, %Y"]


NOTATIONS = {
    "05/2024 13:00": ["%m/%Y %H:%M"],
    "Mar 2024 13:00": ["%b %Y %H:%M"],
    "7:12 20.03.2024": ["%H:%M %d.%m.%Y"],
    "07:12:30.25 20.03.2024": ["%H:%M:%S.%f %d.%m.%Y"],
    "20MAR24:07:12:00": ["%d%b%y:%H:%M:%S"],
    "2024-03-20:07:12": ["%Y-%m-%d:%H:%M"],
    "20.03.2024 24:00": ["%d.%m.%Y %H:%M"],
    "2023365": ["%Y%j"],
    "5. März 2024": ["%d. %b %Y"],  # März says that 5 is no month
    "2024年3月5日": ["%Y年%m月%d日"],
    "05.06.24": ["%d.%m.%y"],
    "32.06.24": ["%y.%m.%d"],
    "1.3.2026 14.05": ["%d.%m.%Y %H.%M"],
    "05. 06. 2024": ["%d. %m. %Y"],
    "06.25.2024": ["%m.%d.%Y"],
    "2026.03.11": ["%Y.%m.%d"],
    "05/06/2024 14.05": ["%d/%m/%Y %H.%M", "%m/%d/%Y %H.%M"],
    "05-06-2024": ["%d-%m-%Y", "%m-%d-%Y"],
    "05/06/24": ["%d/%m/%y", "%m/%d/%y", "%y/%m/%d"],
    "25/06/24": ["%d/%m/%y", "%y/%m/%d"],
    "13:00 25/06/32": ["%H:%M %d/%m/%y"],
}


@pytest.mark.parametrize("text", NOTATIONS)
def test_a_group_with_colons_is_a_clock_and_only_points_say_that_the_day_comes_first(text):
    assert formats_of([text]) == NOTATIONS[text]


def test_a_year_of_two_digits_is_never_the_year_24():
    texts = pa.array(["25/06/24", "31/12/69", "25/06/24"])
    read = times(texts, "time", "%d/%m/%y")
    assert as_dates(read.values)[0].as_py().year == 2024 and as_dates(read.values)[1].as_py().year == 1969
    assert "1969 to 2068" in str(read.note)
    with pytest.raises(InputError, match=r"not written as '%d/%m/%Y'.*%y of two digits"):
        times(texts, "time", "%d/%m/%Y")
    mixed = times(pa.array(["25/06/24", "25/06/2024"]), "time", "%d/%m/%Y")
    assert mixed.words == {"25/06/24": 1} and mixed.values[1] == 19899


def test_the_hour_24_is_the_end_of_the_day(tmp_path):
    rows = [f"{1 + k // 24:02d}.03.2024 {k % 24 + 1:02d}:00,{k % 7}" for k in range(20 * 24)]
    (tmp_path / "t.csv").write_text("Zeit,Wert\n" + "\n".join(rows) + "\n")
    dataset = looked_at(tmp_path / "t.csv")[1]
    assert dataset.times * 24 == pytest.approx(19783 * 24 + np.arange(1, 20 * 24 + 1))


@pytest.mark.parametrize(
    "text", ["2023-W07", "2023-Q2", "10:10:12", "v1.2.3", "a12", "7", "", "5 марта 2024", "Mar 5 - Mar 7 2024"]
)
def test_what_is_no_date_has_no_notation(text):
    assert formats_of([text]) == []


@pytest.mark.parametrize("separator", [",", " "])
def test_a_file_without_names_of_columns_has_numbered_ones(separator, tmp_path):
    draw = np.random.default_rng(0)
    rows = [f"{u} {c} {draw.normal():.3f} 100.0 {draw.normal(600):.2f}" for u in range(1, 9) for c in range(1, 41)]
    (tmp_path / "t.txt").write_text("\n".join(rows).replace(" ", separator) + "\n")
    proposal, dataset = looked_at(tmp_path / "t.txt")
    schema = proposal.schema
    assert (schema.id, schema.time, schema.values) == ("column 1", "column 2", ("column 3", "column 5"))
    assert len(dataset) == 8 and dataset.lengths.sum() == 2 * 320


HEADLESS = {
    "numbers that ascend": ("{s},{t}.5,{v}.25", ","),
    "two numbers": ("{t}.5 {v}.25", " "),
    "dates": ("A{s},2024-01-{t:02d},{v}", ","),
    "dates with points": ("{s};{t:02d}.01.2024 13:00;{v}", ";"),
}


@pytest.mark.parametrize("kind", HEADLESS)
def test_a_first_row_of_cells_as_those_below_is_no_header(kind, tmp_path):
    row, separator = HEADLESS[kind]
    rows = [row.format(s=s, t=t, v=20 + (s + t) % 7) for s in range(2) for t in range(1, 20)]
    (tmp_path / "t.txt").write_text("\n".join(rows) + "\n")
    source = open_source(tmp_path / "t.txt")
    assert source.columns == [f"column {k + 1}" for k in range(row.count(separator) + 1)] and source.rows() == 38


@pytest.mark.parametrize(
    "names", [["1990", "1991", "1995"], ["400.5", "401.0", "401.5", "402.0"], ["id", "2024-01-31"]]
)
def test_numbers_and_dates_may_be_names_of_columns(names, tmp_path):
    rows = [",".join(str(k * len(names) + c) for c in range(len(names))) for k in range(9)]
    (tmp_path / "t.csv").write_text("\n".join([",".join(names), *rows]) + "\n")
    assert open_source(tmp_path / "t.csv").columns == names


@pytest.mark.parametrize("words", [False, True], ids=["numbers", "words"])
@pytest.mark.parametrize("separator", [",", "\t", " "])
def test_names_of_rows_have_no_name_in_the_header_as_r_writes_it(separator, words, base, tmp_path):
    names = [f"row{k}" if words else k + 1 for k in range(len(base))]
    lines = base.set_index(pd.Index(names)).to_csv(sep=separator, header=False).splitlines()
    (tmp_path / "t.txt").write_text("\n".join([separator.join(base), *lines]) + "\n")
    proposal, dataset = looked_at(tmp_path / "t.txt")
    assert (proposal.schema.id, proposal.schema.time, proposal.schema.values) == ("id", "time", ("value",))
    np.testing.assert_array_equal(dataset.values[:, 0], base.value)


def test_more_cells_than_names_are_refused_or_said(base, tmp_path):
    rows = [f"{row.id},{row.time},{row.value}" for row in base.itertuples()]
    (tmp_path / "t.csv").write_text("\n".join(["id,time,value", *(row.replace(".", ",") for row in rows)]) + "\n")
    with pytest.raises(InputError, match=r"line 1 names 3 columns, .*'0,.*quote cells that hold ','") as refused:
        open_source(tmp_path / "t.csv")
    assert refused.value.code == "unequal-lines"
    (tmp_path / "t.csv").write_text("time,value\n" + "".join(f"{k / 4},{k % 7},1\n" for k in range(40)))
    with pytest.raises(InputError, match="line 1 names 2 columns"):  # which of the three has no name?
        open_source(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text(
        "\n".join(["id,time,value", *(row + ", x" * (row[-1] == "1") for row in rows)]) + "\n"
    )
    assert "lines have more cells than the header, which are not read" in open_source(tmp_path / "t.csv").notes[0]
    (tmp_path / "t.csv").write_text("\n".join(["id,time,value", *(row + "," for row in rows)]) + "\n")
    assert not open_source(tmp_path / "t.csv").notes


@pytest.mark.parametrize("dash", ["-", "--", "---", ".", "Null", "na", "none", "NAN"])
def test_a_dash_a_point_and_words_in_any_capitals_are_missing_values(dash, base, tmp_path):
    values = base.value.astype(str).where(base.index % 9 != 2, dash)
    base.assign(value=values).to_csv(tmp_path / "t.csv", index=False)
    report = looked_at(tmp_path / "t.csv")[1].reading
    assert report.words == {} and report.missing == {"'value' is missing": 10}


def test_a_number_of_visits_is_no_value(tmp_path):
    days = pd.date_range("2024-01-20", periods=24).strftime("%d-%b-%Y")
    rows = [(p, days[k], k + 1, 120 + (k * p) % 11, 80 + (k + p) % 9) for p in range(1, 6) for k in range(24)]
    columns = ["Patient", "Visit Date", "Visit", "SBP", "DBP"]
    pd.DataFrame(rows, columns=columns).to_csv(tmp_path / "t.csv", index=False)
    assert looked_at(tmp_path / "t.csv")[0].schema.values == ("SBP", "DBP")


def test_who_measured_is_not_what_was_measured(tmp_path):
    draw = np.random.default_rng(0)
    columns = ["subject_id", "stay_id", "caregiver_id", "charttime", "itemid", "valuenum"]
    rows = [
        (100 + s // 2, 200 + s, draw.integers(30), f"2150-01-{1 + k // 24:02d} {k % 24:02d}:00:00", item, 80.0 + k)
        for s in range(12)
        for item in (220045, 220210)
        for k in range(30)
    ]
    pd.DataFrame(rows, columns=columns).to_csv(tmp_path / "t.csv", index=False)
    proposal, _ = looked_at(tmp_path / "t.csv")
    assert (proposal.schema.id, proposal.split) == ("stay_id", "subject_id")


def test_a_unit_in_blocks_and_a_constant_source_are_no_ids(tmp_path):
    rows = [(unit, f"P{p}", k, 5.0 + k, "lab") for unit in ("mmol", "mg") for k in range(30) for p in range(6)]
    columns = ["unit", "patient", "time", "value", "source"]
    pd.DataFrame(rows, columns=columns).to_csv(tmp_path / "t.csv", index=False)
    assert looked_at(tmp_path / "t.csv")[0].schema.id == "patient"


def test_a_second_count_of_the_times_is_no_value(tmp_path):
    rows = [(f"S{s}", k, 30 * k, np.sin(k + s)) for s in range(5) for k in range(40)]
    pd.DataFrame(rows, columns=["subject", "epoch", "onset_sec", "EEG"]).to_csv(tmp_path / "t.csv", index=False)
    assert looked_at(tmp_path / "t.csv")[0].schema.values == ("EEG",)


@pytest.mark.parametrize("wide", [True, False])
def test_a_clock_that_passes_midnight_and_several_series_of_one_id_are_doubts(wide, tmp_path):
    seconds = (86_000 + 10 * np.arange(100)) % 86_400
    clock = [f"{s // 3600:02d}:{s // 60 % 60:02d}:{s % 60:02d}" for s in seconds]
    table = pd.DataFrame({"time": clock, "x": np.sin(seconds), "y": np.cos(seconds)})
    values = ["x", "y"] if wide else ["x"]
    for frame, doubted in ((table, True), (table.iloc[40:], False), (table.sample(frac=1, random_state=0), False)):
        frame.to_csv(tmp_path / "t.csv", index=False)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            read_table(open_source(tmp_path / "t.csv"), TableSchema(id="file", values=tuple(values), wide=wide))
        assert any("passed midnight" in str(one.message) for one in said) == doubted


def test_the_clock_of_a_table_of_times_counts_and_is_answered_as_it_was_written():
    layout = TableSchema(id="meter", time="day", clock="clock", time_format="%d.%m.%Y")
    table = pa.table({"meter": ["a", "b"], "day": ["05.03.2024", "19.03.2024"], "clock": ["10:30", "01:15"]})
    queries = QueryTable.of(table, layout)
    assert queries.rows.times == pytest.approx([19787 + 10.5 / 24, 19801 + 1.25 / 24])
    answers = pa.table({"meter": ["b", "a"], "time": as_dates(queries.rows.times[::-1]), "value": [2.0, 1.0]})
    written = queries.laid_out(answers)
    assert written.select(["meter", "day", "clock"]).to_pydict() == table.to_pydict()
    assert written["value"].to_pylist() == [1.0, 2.0]
    whole = QueryTable.of(pa.table({"meter": ["a"], "time": ["2024-03-05T10:30:00Z"]}), layout)  # as of --grid
    assert whole.rows.times[0] == queries.rows.times[0]


def test_copies_of_a_row_do_not_make_its_mean_surer(tmp_path):
    rows = pd.DataFrame([("a", 1.0, 2.0, 0.5), ("a", 1.0, 4.0, 0.5), ("a", 2.0, 7.0, 1.0)], columns=[*"itve"])
    first = None
    for copies in (1, 2):
        pd.concat([rows] * copies).to_csv(tmp_path / "t.csv", index=False)
        schema = TableSchema(id="i", time="t", values=("v",), errors=("e",), duplicates="mean")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)
            values = np.asarray(read_table(open_source(tmp_path / "t.csv"), schema).values)
        first = values if first is None else first
        assert values == pytest.approx(first)
    assert first == pytest.approx(np.array([[3.0, 0.5 / 2**0.5], [7.0, 1.0]]))


# ── codes for "missing", columns without names, numbered columns, intervals ─────────────────────────────────────────


@pytest.mark.parametrize("code", [-999, -9999.9, -99.99, 999])
def test_a_code_of_nines_is_named_in_a_short_table(code):
    table = pd.DataFrame({"id": 1, "time": range(6), "value": [121, 121.5, code, 118.5, 119.5, code]})
    with pytest.warns(InputWarning, match=f"2 rows have column 'value' {code}, far .*--na {code}"):
        read_table(table, TableSchema())
    with pytest.warns(InputWarning, match="1 rows have column 'value' -99, "):  # though others lie as far
        read_table(pd.DataFrame({"id": 1, "time": range(5), "value": [0, 400, 30, -99, 5]}), TableSchema())
    plain = pd.DataFrame({"id": 1, "time": range(6), "value": [91, 95, 99, 94, 99, 97]})
    assert not read_table(plain, TableSchema()).reading.doubts  # pyright: ignore


def test_a_column_of_nothing_but_a_code_is_empty(base, tmp_path):
    base.assign(wind=-999.0, size=99).to_csv(tmp_path / "t.csv", index=False)
    proposal, _ = looked_at(tmp_path / "t.csv")
    assert proposal.columns["wind"].holds() == "empty" and proposal.columns["size"].holds() == "one value: 99"


def test_rows_without_names_are_series_where_columns_are_more_alike_than_rows(tmp_path):
    draw = np.random.default_rng(0)
    cycle, sensors = np.arange(60), 10 ** np.arange(24) % 997 + np.arange(60)[:, None] / 50
    sensors = sensors + draw.normal(size=sensors.shape) / 100
    np.savetxt(tmp_path / "t.txt", np.column_stack([cycle // 20, cycle % 20 + 1, sensors]), fmt="%g")
    proposal, dataset = looked_at(tmp_path / "t.txt")
    assert (proposal.schema.id, proposal.schema.time, proposal.schema.wide) == ("column 1", "column 2", True)
    assert len(dataset) == 3 and len(dataset.channel_names) == 24
    waves = np.sin(np.arange(40) / 3 + draw.uniform(0, 6, (12, 1))) + draw.normal(size=(12, 40)) / 9
    np.savetxt(tmp_path / "t.txt", waves, fmt="%.4f")
    proposal, dataset = looked_at(tmp_path / "t.txt")
    assert proposal.schema.numbered == "column " and dataset.lengths.tolist() == [40] * 12
    assert any("as one series in each row" in text for text in doubts_of(proposal))


def test_a_single_column_of_numbers_has_no_header_and_no_times(tmp_path):
    (tmp_path / "t.csv").write_text("1500909471.000000\n4.000000\n" + "0.362595\n0.098657\n" * 9)
    with pytest.raises(
        InputError, match=r"There are .column 1. \(.*\)\. The file is read thus: no line names"
    ) as refused:
        looked_at(tmp_path / "t.csv")
    assert "pandas.melt" not in str(refused.value)


def test_a_single_row_without_names_is_no_series(tmp_path):
    (tmp_path / "t.csv").write_text("1," * 30 + "1\n")
    with pytest.raises(InputError, match="no column looks like time"):
        propose(open_source(tmp_path / "t.csv"), TableSchema(), set())


def test_columns_that_are_times_are_said(tmp_path):
    dates = pd.Series(pd.date_range("2009-01-01", periods=9).astype(str), name="date")
    draw = np.random.default_rng(0)
    for names, said in (
        ([f"{k:02}시" for k in range(1, 13)], True),
        ([f"{k} Uhr" for k in range(24)], True),
        ([f"V{k}" for k in range(1, 25)], True),
        ([f"sensor {name}" for name in "abcdefghijkl"], False),
    ):
        cells_of = pd.DataFrame(draw.normal(size=(9, len(names))).round(3), columns=names)
        pd.concat([dates, cells_of], axis=1).to_csv(tmp_path / "t.csv", index=False)
        assert any("pandas.melt" in text for text in doubts_of(looked_at(tmp_path / "t.csv")[0])) == said


def test_columns_of_the_days_of_each_month_are_said(tmp_path):
    days = pd.date_range("2017-01-01", periods=24, freq="MS")
    values = np.random.default_rng(0).normal(20, 3, (24, 31)).round(2)
    table = pd.DataFrame(values, columns=[f"FLOW{k}" for k in range(1, 32)])
    table = pd.DataFrame({"YEAR": days.year, "MONTH": days.month, "MONTHLY_MEAN": values.mean(axis=1)}).join(table)
    table.to_csv(tmp_path / "t.csv", index=False)
    [text] = (text for text in doubts_of(looked_at(tmp_path / "t.csv")[0]) if "'FLOW1', 'FLOW2'" in text)
    assert text.endswith("or a series of each row by --numbered FLOW")


def test_few_numbered_columns_are_a_series_of_each_row_or_named_where_the_time_is_missing(tmp_path):
    draw = np.random.default_rng(0)
    names = ["t0", "t0.5", "t1", "t1.5", "t2", "t3"]
    rows = pd.DataFrame(draw.normal(4, 1, (8, 6)).round(1), columns=names)
    rows.assign(group=["control"] * 4 + ["obese"] * 4).to_csv(tmp_path / "t.csv", index=False)
    proposal, dataset = looked_at(tmp_path / "t.csv")
    assert proposal.schema.numbered == "t" and dataset.times[:6].tolist() == [0, 0.5, 1, 1.5, 2, 3]
    assert any("'t0', 't0.5', 't1', ... (6 in all) are proposed" in text for text in doubts_of(proposal))
    others = ["bdi.pre", "bdi.2m", "bdi.4m", "bdi.6m", "bdi.8m", "length"]
    rows.set_axis(others, axis=1).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(InputError, match=r"'bdi\.2m', .*pandas\.melt.*--numbered bdi\.\."):
        looked_at(tmp_path / "t.csv")
    days = ["id", "sex", "age", "arm", "site", "dose", "day0", "day7", "day14", "day28"]
    pd.DataFrame(draw.normal(4, 1, (30, 10)), columns=days).to_csv(tmp_path / "days.csv", index=False)
    with pytest.raises(InputError, match=r"'day0', .*--numbered day\."):
        looked_at(tmp_path / "days.csv")
    source = open_source(tmp_path / "t.csv", numbered="bdi.")
    assert source.read(["number"])["number"].to_pylist()[:4] == [2, 4, 6, 8]
    assert "'bdi.pre' begin with 'bdi.', too, and are no part of the series" in source.notes
