"""What columns are proposed to be by what repeats, what measures and what dates say, rather than by their names."""

import itertools
import warnings
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from _proposals import doubts_of
from rotarymae.cli import main as cli
from rotarymae.errors import InputError, InputWarning
from rotarymae.tables import TableSchema, looks_like_id, open_source, propose, read_table

DRAW = np.random.default_rng(0)


def looked_at(table, folder) -> tuple[Any, list[str], Any]:
    """Return the schema that is proposed of a table, the doubts, and its data set."""
    path = folder / "t.csv"
    path.write_text(table) if isinstance(table, str) else table.to_csv(path, index=False)
    source = open_source(path)
    proposal = propose(source, TableSchema(), set())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        return proposal.schema, doubts_of(proposal), read_table(source, proposal.schema)


def stamps(count, freq="h"):
    return pd.date_range("2024-05-01", periods=count, freq=freq).strftime("%Y-%m-%dT%H:%M:%S")


# ── channels repeat ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["sensor timestamp [ns]", "tag", "test item"])
def test_a_column_with_another_cell_in_each_row_is_no_channel(name, tmp_path):
    table = pd.DataFrame({"time": stamps(200), name: 10**17 + 7 * np.arange(200), "ECG": DRAW.normal(size=200)})
    schema, _, dataset = looked_at(table, tmp_path)
    assert schema.channel is None and "ECG" in schema.values and len(dataset) == 1


@pytest.mark.parametrize("table", [{"time": [1.0, np.inf], "value": [1.0, 2.0]}, {"x": [np.inf] * 40}])
def test_infinite_numbers_are_looked_at_without_a_warning_of_numpy(table):
    with warnings.catch_warnings(), suppress(InputError):
        warnings.simplefilter("error")
        propose(open_source(pd.DataFrame(table)), TableSchema(), set())


def profiles(floats=2, cycles=4, depths=20):
    """Profiles of floats in the sea, of one date and one cycle each: pressure, temperature and salinity."""
    rows = [
        (1900722 + f, c, day, 5 + 25 * z, 28 - 1.1 * z + DRAW.normal(), 35 + DRAW.normal())
        for f in range(floats)
        for c, day in enumerate(stamps(cycles, "10D"), 1)
        for z in range(depths)
    ]
    return pd.DataFrame(rows, columns=["PLATFORM_NUMBER", "CYCLE_NUMBER", "JULD", "PRES", "TEMP", "PSAL"])


@pytest.mark.parametrize("scale", ["whole", "decimals", "downwards", "names"])
def test_a_date_for_each_cycle_is_the_time_and_numbers_that_measure_are_positions(scale, tmp_path):
    table = profiles()
    if scale == "decimals":
        table["PRES"] += DRAW.uniform(0, 9, len(table)).round(2)
    if scale == "downwards":
        table["PRES"] *= -1
    if scale == "names":  # 1, 2, 3 may number sensors, and rows are those of single values
        table = table.assign(PRES=table.PRES // 25 + 1).drop(columns=["PSAL", "CYCLE_NUMBER"])
    schema, _, dataset = looked_at(table, tmp_path)
    assert (schema.id, schema.time) == ("PLATFORM_NUMBER", "JULD")
    assert schema.channel == ("PRES" if scale == "names" else None)
    assert schema.positions == (() if scale == "names" else ("PRES",))
    assert schema.values == (("TEMP",) if scale == "names" else ("TEMP", "PSAL"))
    assert len(dataset.times) == len(table) * len(schema.values)


def test_numbers_of_cycles_are_no_channel_and_may_be_a_part_of_the_id(tmp_path):
    rows = [
        (f"B{b}", c, 18.7 * i, 4.2 - 0.03 * i, 24 + 0.1 * i, 1.86 - 0.01 * c)
        for b in range(2)
        for c in range(1, 4)
        for i in range(30)
    ]
    columns = ["battery", "cycle", "Time", "Voltage", "Temperature", "Capacity"]
    proposal = propose(open_source(pd.DataFrame(rows, columns=columns)), TableSchema(), set())
    assert proposal.schema.channel is None and {"Voltage", "Temperature", "Capacity"} <= {*proposal.schema.values}
    assert any("'cycle'" in text and "--id battery+cycle" in text for text in doubts_of(proposal))


@pytest.mark.parametrize("remark", [False, True])
def test_classes_that_tell_rows_of_one_channel_apart_are_named(remark, tmp_path):
    keys = itertools.product(["France", "Peru"], ["Wheat", "Barley"], ["Yield", "Area"], range(2005, 2021))
    table = pd.DataFrame([(*key, DRAW.normal()) for key in keys], columns=["Area", "crop", "code", "Year", "Value"])
    if remark:  # words among the numbers of trees do not make these positions
        rows = [
            (p, y, tree, DRAW.normal()) for p in (1, 2) for y in range(2000, 2020) for tree in (*range(1, 8), "all")
        ]
        table = pd.DataFrame(rows, columns=["plot", "year", "tree", "dbh"])
    table.to_csv(tmp_path / "t.csv", index=False)
    proposal = propose(open_source(tmp_path / "t.csv"), TableSchema(), set())
    assert proposal.schema.positions == () and proposal.schema.channel == ("tree" if remark else "code")
    assert any(("--id plot+tree" if remark else "--id Area+crop") in text for text in doubts_of(proposal))


def test_a_date_of_another_thing_does_not_take_the_place_of_a_time(tmp_path):
    table = pd.DataFrame({"time": np.sort(DRAW.uniform(0, 9, 80)), "value": DRAW.normal(size=80)})
    assert looked_at(table.assign(processed=stamps(80)), tmp_path)[0].time == "time"


# ── errors ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("bare", [0, 1, 57])
def test_errors_are_proposed_where_no_row_is_lost(bare, tmp_path):
    table = pd.DataFrame({"time": stamps(120), "mag": DRAW.normal(10, 1, 120).round(2).astype(str), "magerr": 0.05})
    table["magerr"] += np.arange(120) / 1000
    table.loc[60:63, ["mag", "magerr"]] = ["<10.5", None]  # limits need no error
    table.loc[: bare - 1, "magerr"] = None
    table.loc[70, "magerr"] = np.inf  # says as much as no value
    schema, unsure, dataset = looked_at(table, tmp_path)
    assert (
        schema.values == ("mag",)
        and schema.errors == (() if bare else ("magerr",))
        and len(dataset.times) == 119 + bool(bare)
    )
    assert any(f"'magerr': missing in {bare} of 120 rows" in text for text in unsure) == bool(bare)


ERRORS = {"duJy": "uJy", "dm": "m", "e_flow": "flow", "flow_e": "flow", "sigma_flow": "flow", "dFlow": "Flow"}
ERRORS |= {"flow_unc": "flow", "sigmaflow": "flow", "flowunc": "flow", "Flow error (mJy)": "Flow (mJy)"}
ERRORS |= {
    "errvel": "mnvel",
    "sigmarv": "relrv",
    "uncmag": "apmag",
    "erv": "rv",
    "ERROR": "RATE",
    "w1sigmpro": "w1mpro",
}
ERRORS |= {"V_err": "V_mag", "flow_se": "flow", "flow_1sd": "flow", "Fluss_Fehler": "Fluss", "incertitude": "flow"}


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_is_called_as_its_value_with_a_mark(error, tmp_path):
    draws = {name: DRAW.normal(9, 1, 80).round(3) for name in ("sky", ERRORS[error])}
    table = pd.DataFrame({"MJD": 58400 + np.arange(80), **draws, error: DRAW.uniform(1, 2, 80), "F": [*"oc"] * 40})
    schema, _, _ = looked_at(table, tmp_path)
    assert (schema.values, schema.errors, schema.wide) == ((ERRORS[error],), (error,), False)


@pytest.mark.parametrize("names", [("co2", "Stdev", "NbPoints"), ("mean", "sd", "n"), ("RR", "RR_std", "image_count")])
def test_the_spread_of_a_value_is_its_error_and_the_number_of_its_measurements_no_value(names, tmp_path):
    draws = (DRAW.normal(411, 3, 80), DRAW.uniform(0.1, 1, 80), DRAW.integers(9, 60, 80))
    table = pd.DataFrame({"time": stamps(80), **dict(zip(names, draws, strict=True))})
    schema, unsure, _ = looked_at(table, tmp_path)
    assert (schema.values, schema.errors, schema.wide) == (names[:1], names[1:2], False)
    assert f"{names[2]!r}: counts measurements" in unsure
    schema, unsure, _ = looked_at(table.assign(ch4=DRAW.normal(size=80), h2o=DRAW.normal(size=80)), tmp_path)
    wide = any(f"{names[1]!r}: like standard errors" in text for text in unsure)
    assert not {*names[1:]} & {*schema.values} and (wide or schema.errors == names[1:2])
    assert looked_at(table[["time", names[2]]], tmp_path)[0].values == names[2:]  # for want of others


@pytest.mark.parametrize("others", [[], ["r_mean", "r_std"]])
def test_the_spread_of_a_mean_is_no_error_of_a_value_that_is_called_alike(others, tmp_path):
    names = ["date", "midday_gcc", "gcc_mean", "gcc_std", *others]
    table = pd.DataFrame({name: DRAW.uniform(1, 2, 80) for name in names}).assign(date=stamps(80, "D"))
    table["outlierflag_gcc_mean"] = [1 if k % 9 == 0 else None for k in range(80)]
    schema, unsure, _ = looked_at(table, tmp_path)
    one = ("gcc_mean",), ("gcc_std",)
    assert (schema.values, schema.errors) == ((("midday_gcc", "gcc_mean", "r_mean"), ()) if others else one)
    assert [text for text in unsure if "outlierflag" in text] == [
        "'outlierflag_gcc_mean': not 0 in 9 of 80 rows, which --flags would leave out"
    ]


@pytest.mark.parametrize("names", [("bp", "sbp", "dbp"), ("u", "du", "v"), ("ust", "dust", "t2")])
def test_a_d_before_a_name_may_be_something_else(names, tmp_path):
    table = pd.DataFrame({"time": stamps(80), **{name: DRAW.normal(size=80) for name in names}})
    assert looked_at(table, tmp_path)[0].values == names


@pytest.mark.parametrize("name", ["FLT", "Filt"])
def test_an_abbreviated_filter_is_the_channel(name, tmp_path):
    table = pd.DataFrame({"MJD": 56530 + np.arange(40), name: [*"griz"] * 10, "FLUXCAL": DRAW.normal(size=40)})
    assert looked_at(table.assign(FLUXCALERR=DRAW.uniform(1, 2, 40)), tmp_path)[0].channel == name


@pytest.mark.parametrize("name", ["filtercode", "parameter", "Filt"])
@pytest.mark.parametrize("other", ["value", "temp", "test"])
def test_a_passband_of_each_series_is_the_channel_of_values_without_another(other, name, tmp_path):
    table = pd.DataFrame({"oid": np.repeat(range(6), 30), "mjd": [*range(58000, 58030)] * 6})
    table = table.assign(**{name: np.repeat([*"grggrr"], 30)}, value=DRAW.normal(size=180))
    if other == "temp":  # of a wide table
        table = table.rename(columns={"value": "temp"}).assign(wind=DRAW.normal(size=180))
    if other == "test":
        table["test"] = [*"abc"] * 60
    schema, unsure, _ = looked_at(table, tmp_path)
    assert schema.channel == {"value": name, "temp": None, "test": "test"}[other] and schema.wide == (other == "temp")
    said = f"{name!r}: one value per series: --static; the label?" in unsure
    assert (name in schema.static, said) == (other != "value", other != "value")


def test_a_flux_is_the_value_next_to_signed_magnitudes(tmp_path):
    flux = DRAW.normal(size=60).round(3)
    table = pd.DataFrame({"MJD": stamps(60), "m": np.sign(flux) * 20, "dm": 0.5, "uJy": flux, "F": [*"co"] * 30})
    schema = looked_at(table.assign(m=table.m + flux, duJy=DRAW.uniform(1, 2, 60).round(2)), tmp_path)[0]
    assert (schema.values, schema.errors, schema.channel) == (("uJy",), ("duJy",), "F")


HINTS: dict[str, Any] = {  # a hint, and columns by which it is given
    "--id 'patient+run no'": {
        "patient": np.repeat(range(6), 10),
        "time": [*"0011223344"] * 6,
        "run no": [*"ab"] * 30,
    },
    "--positions 'GPS lat.lat' lon": {"GPS lat.lat": np.arange(60) * 7 % 11 / 3, "lon": np.arange(60) * 5 % 13 / 3},
}


@pytest.mark.parametrize("hint", HINTS)
def test_hints_can_be_pasted(hint, tmp_path, capsys):
    table = pd.DataFrame({"time": range(60), **HINTS[hint], "load": DRAW.normal(size=60), "flow": DRAW.normal(size=60)})
    table.to_csv(tmp_path / "t.csv", index=False)
    cli.main(["info", str(tmp_path / "t.csv")])
    assert hint in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("others", [["low"], ["low", "high"]])
def test_each_column_that_looks_like_an_outcome_is_said(others, tmp_path):
    table = pd.DataFrame({"id": np.repeat([*"ab"], 20), "time": [*range(20)] * 2, "x": DRAW.normal(size=40)})
    table = table.assign(**{f"{name}_outcome": DRAW.uniform(1, 2, 40) for name in others})
    wanted = [f"'{name}_outcome': looks like an outcome" for name in others]
    assert [text for text in looked_at(table, tmp_path)[1] if "_outcome" in text] == wanted


def test_empty_columns_hold_no_texts(tmp_path):
    (tmp_path / "t.csv").write_text("time,door,lat,lon\n" + "".join(f"{k},{'ab'[k % 2]},,\n" for k in range(20)))
    with pytest.raises(InputError, match=r"'door' \(a, b\), 'lat' \(empty\), 'lon' \(empty\)\."):
        looked_at((tmp_path / "t.csv").read_text(), tmp_path)


def test_equal_words_of_several_columns_are_one_warning(tmp_path):
    table = pd.DataFrame({"time": range(60), "a": DRAW.normal(size=60), "b": DRAW.normal(size=60)}).astype(str)
    table.loc[[3, 7], ["a", "b"]] = "broken"
    losses = looked_at(table, tmp_path)[2].reading.losses()
    assert [text for text in losses if "broken" in text] == [text for text in losses if "4 cells of 'a', 'b'" in text]
    assert sum("broken" in text for text in losses) == 1


# ── times ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_columns_that_are_called_by_numbers_next_to_dates_are_channels(tmp_path):
    names = [773869, 767541, 767542, *range(717400, 717430)]
    table = pd.DataFrame(DRAW.normal(size=(60, len(names))), columns=[*map(str, names)])
    schema, _, dataset = looked_at(table.set_index(stamps(60)).rename_axis("").reset_index(), tmp_path)
    assert schema.wide and schema.time == "unnamed 1" and len(dataset.channel_names) == len(names)
    with pytest.raises(InputError, match="no column looks like time"):  # these are no axis
        looked_at(table.assign(place="A"), tmp_path)


SPANS = {" - ": "%d.%m.%Y %H:%M", "/": "%Y-%m-%dT%H:%MZ", " to ": "%Y-%m-%d %H:%M"}


@pytest.mark.parametrize("between", SPANS)
def test_the_begin_of_a_span_is_the_time_and_no_word_of_a_load(between, tmp_path):
    begins = pd.date_range("2024-01-20", periods=100, freq="h")
    begin, end = (each.strftime(SPANS[between]) for each in (begins, begins + pd.Timedelta("1h")))
    table = pd.DataFrame({"MTU": begin + between + end, "Day-ahead Load [MW]": DRAW.normal(size=100)})
    schema, _, dataset = looked_at(table, tmp_path)
    assert schema.time == "MTU" and schema.values == ("Day-ahead Load [MW]",)
    assert dataset.times[:2] == pytest.approx([19742, 19742 + 1 / 24]) and "the start is the time" in str(
        dataset.reading
    )


def test_a_number_that_wanders_may_be_no_time(tmp_path):
    table = pd.DataFrame({"Day-ahead Load": DRAW.normal(size=100), "Price": DRAW.normal(size=100)})
    assert any("'Day-ahead Load': goes up and down" in text for text in looked_at(table, tmp_path)[1])


@pytest.mark.parametrize("day", ["3/14/2024", "2024-03-14"])
@pytest.mark.parametrize("clock", ["Time", "Zeit von"])
def test_the_clock_of_a_single_day_is_read_next_to_it(day, clock, tmp_path):
    clocks = [f"{9 + k // 60:02d}:{k % 60:02d}:00" for k in range(120)]
    table = pd.DataFrame({"Date": day, clock: clocks, "Axis1": DRAW.poisson(300, 120)})
    schema, _, dataset = looked_at(table, tmp_path)
    assert (schema.time, schema.clock) == ("Date", clock) and dataset.times[0] == 19796 + 9 / 24


def test_a_coarser_time_and_an_id_of_each_time_are_neither_values_nor_series(tmp_path):
    rows = [(p, day, f"2022-09-{day:02d} {2 * beep:02d}:00", DRAW.normal()) for p in range(8) for day in range(1, 9)
            for beep in range(5)]  # fmt: skip
    table = pd.DataFrame(rows, columns=["subject", "day", "scheduled", "happy"])
    assert looked_at(table, tmp_path)[0].values == ("happy",)
    table = pd.DataFrame({"source_id": 7, "scan_id": np.repeat(range(100, 140), 3), "time": np.repeat(range(40), 3)})
    schema = looked_at(table.assign(band=[*"gri"] * 40, flux=DRAW.normal(size=120)), tmp_path)[0]
    assert (schema.id, schema.channel) == ("source_id", "band")


QUANTITIES = {
    "hours": ("person", "year", 1980),
    "seconds": ("driver", "lap", 1),
    "days above 30": ("country", "year", 1990),
    "data": ("file no", "frame", 0),
    "ora": ("subject", "visit", 1),
}


@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("place", [1, 2])
def test_numbers_that_go_up_and_down_are_no_times_next_to_others_that_go_one_way(place, quantity, tmp_path):
    id, time, first = QUANTITIES[quantity]
    rows = [(i, first + k, DRAW.normal()) for i in range(6) for k in range(12)]
    table = pd.DataFrame(rows, columns=[id, time, "income"])
    table.insert(place, quantity, DRAW.uniform(20, 90, len(table)).round(1))
    schema, _, dataset = looked_at(table, tmp_path)
    assert (schema.id, schema.time, {*schema.values}) == (id, time, {quantity, "income"}) and len(dataset) == 6


@pytest.mark.parametrize("time", ["start_date", "obs date"])
def test_a_date_that_is_missing_in_most_rows_is_not_the_time(time, tmp_path):
    table = pd.DataFrame({time: "", "year": np.repeat(range(2015, 2020), 12), "month": [*range(1, 13)] * 5})
    table = table.assign(deaths=DRAW.poisson(900, 60))
    table.loc[50:, time] = stamps(10, "7D").str[:10]
    assert looked_at(table, tmp_path)[0].time == "year+month"
    proposal = propose(open_source(table), TableSchema(time="year+month"), {"time"})
    assert (proposal.schema.channel, proposal.schema.values) == (None, ("deaths",))


TIMES_OF_IDS = {"age": [8, 10.5, 12], "period": [1, 2, 3, 4], "Alter": [61, 64, 66], "dose": [6.25, 12.5, 25, 50]}


@pytest.mark.parametrize("name", TIMES_OF_IDS)
def test_few_numbers_that_ascend_in_the_rows_of_each_id_are_times(name, tmp_path):
    rows = [(f"S{s}", time, s % 2, DRAW.normal()) for s in range(6) for time in TIMES_OF_IDS[name]]
    table = pd.DataFrame(rows, columns=["subject", name, "group", "score"])
    schema, unsure, _ = looked_at(table, tmp_path)
    assert (schema.id, schema.time, schema.values) == ("subject", name, ("score",))
    assert f"{name!r}: ascends, as a time does" in unsure
    with pytest.raises(InputError, match="no column looks like time"):  # two may be the time
        looked_at(table.assign(end=np.maximum(np.arange(len(table)), 3)), tmp_path)


def test_a_decimal_year_is_the_time_rather_than_the_number_of_its_month_or_of_its_row(tmp_path):
    year, month = np.repeat(range(1990, 2010), 12), np.tile(range(1, 13), 20)
    table = pd.DataFrame({"row": range(240), "A": year, "B": month, "C": (year + (month - 0.5) / 12).round(3)})
    assert looked_at(table.assign(co2=DRAW.normal(size=240)), tmp_path)[0].time == "C"


PARTS = {
    "quarters": ({"year": "{0.year}", "quarter": "{0.quarter}"}, "QS"),
    "quarters with Q": ({"YEAR": "{0.year}", "Q": "Q{0.quarter}"}, "QS"),
    "short names": (
        {"YR": "{0.year}", "MO": "{0.month}", "DA": "{0.day}", "HR": "{0.hour}", "MI": "{0.minute}"},
        "15min",
    ),
}


@pytest.mark.parametrize("kind", PARTS)
def test_quarters_and_short_names_are_parts_of_dates(kind, tmp_path):
    parts, freq = PARTS[kind]
    when = pd.date_range("1990-01-01", periods=60, freq=freq)
    table = pd.DataFrame({name: map(part.format, when) for name, part in parts.items()})
    schema, _, dataset = looked_at(table.assign(gdp=DRAW.normal(size=60), cpi=np.arange(60) / 7), tmp_path)
    assert (schema.id, schema.time, schema.values) == ("file", "+".join(parts), ("gdp", "cpi"))
    assert dataset.times[::2] == pytest.approx(((when - pd.Timestamp(0)) / pd.Timedelta("1D")).to_numpy())


@pytest.mark.parametrize("names", [("VISITMO", "VISITDAY", "VISITYR"), ("obs_month", "obs_day", "obs_year")])
def test_parts_of_a_date_may_have_a_common_beginning(names, tmp_path):
    month, day, year = names
    when = pd.DatetimeIndex(np.tile(pd.date_range("2001-03-05", periods=20, freq="40D"), 6))
    table = pd.DataFrame({"ID": np.repeat(range(6), 20), month: when.month, day: when.day, year: when.year})
    table = table.assign(BIRTHMO=table.ID + 3, BIRTHDAY=9, BIRTHYR=1930 + table.ID, x=DRAW.normal(size=120))
    schema, _, dataset = looked_at(table, tmp_path)
    assert (schema.id, schema.time, schema.values) == ("ID", f"{year}+{month}+{day}", ("x",))
    days = ((when - pd.Timestamp(0)) / pd.Timedelta("1D")).to_numpy()
    np.testing.assert_array_equal(dataset.times, days)
    named = read_table(open_source(tmp_path / "t.csv"), replace(schema, time="+".join(names)))  # in any order
    np.testing.assert_array_equal(named.times, days)
    far = propose(open_source(table.assign(**{year: table[year] + 900}, t=range(120))), TableSchema(), set())
    assert "+" not in far.schema.time  # the years are none
    births = propose(open_source(table.drop(columns=[*names]).assign(date=when)), TableSchema(), set())
    assert births.schema.time == "date" and "BIRTHYR" in births.schema.static  # and what is known of birth stays a fact


def test_stations_at_one_time_are_series(tmp_path):
    table = pd.DataFrame(
        {"STID": [f"S{k}" for k in range(11)], "YR": 2019, "MO": 9, "DA": 9, "TAIR": DRAW.normal(size=11)}
    )
    assert looked_at(table, tmp_path)[0].id == "STID" and looked_at(table, tmp_path)[0].time == "YR+MO+DA"


@pytest.mark.parametrize("name", ["date", "Datum"])
def test_days_of_six_digits_are_dates_where_the_name_says_so(name, tmp_path):
    when = pd.date_range("1980-01-25", periods=60, freq="B")
    table = pd.DataFrame({name: when.strftime("%y%m%d"), "dm": DRAW.normal(size=60)})
    schema, unsure, dataset = looked_at(table, tmp_path)
    assert schema.time_format == "%y%m%d" and any("are read as %y%m%d" in text for text in unsure)
    assert dataset.times == pytest.approx(((when - pd.Timestamp(0)) / pd.Timedelta("1D")).to_numpy())
    for other in (table.rename(columns={name: "cycle"}), table.assign(**{name: 800100 + np.arange(60)})):
        assert looked_at(other, tmp_path)[0].time_format is None


@pytest.mark.parametrize("day", [True, False])
def test_hours_and_minutes_without_leading_zeros_are_a_clock_or_a_doubt(day, tmp_path):
    when = pd.date_range("2024-03-14 08:40", periods=110, freq="10min")
    table = pd.DataFrame({"time": 100 * when.hour + when.minute, "temp": DRAW.normal(size=110)})
    table.insert(0, "date" if day else "day", when.strftime("%Y-%m-%d") if day else when.day_of_year)
    schema, unsure, dataset = looked_at(table, tmp_path)
    assert (schema.time, schema.clock) == (("date", "time") if day else ("time", None))
    assert day or any("like hours and minutes" in text for text in unsure)
    assert not day or dataset.times == pytest.approx(((when - pd.Timestamp(0)) / pd.Timedelta("1D")).to_numpy())
    plain = pd.DataFrame({"time": 10 * np.arange(110), "temp": table.temp})
    assert not any("like hours" in text for text in looked_at(plain, tmp_path)[1])


@pytest.mark.parametrize("written", ["%Y-%m", "%Y/%m/%d", "%b %d %Y", "%d.%m.%Y"])
def test_a_notation_that_can_be_read_in_one_way_is_no_doubt(written, tmp_path):
    when = pd.date_range("2004-01-20", periods=60, freq="41D").strftime(written)
    schema, unsure, _ = looked_at(pd.DataFrame({"date": when, "v": DRAW.normal(size=60)}), tmp_path)
    assert schema.time_format == written and not any("--time-format" in text for text in unsure)


# ── ids ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

STATES = {"approval": ["A", "P"], "code": ["provisional", "final"], "telescope": ["harps", "hires", "apf"]}
STATES |= {"Regime": [1, 2, 3], "wind": [4.0, 5.0, 6.0], "Monat": ["Mai", "Juni", "Juli"], "is_on": [0, 1]}


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("name", STATES)
def test_a_code_that_changes_while_the_times_go_on_is_no_id_and_no_channel(name, backwards, tmp_path):
    table = pd.DataFrame({"date": stamps(60, "D"), name: np.repeat(STATES[name], 60 // len(STATES[name]))})
    table = table.assign(flow=DRAW.normal(size=60), stage=DRAW.normal(size=60))
    table = table[::-1] if backwards else table
    schema, _, dataset = looked_at(table, tmp_path)
    assert (schema.id, schema.channel, len(dataset)) == ("file", None, 1) and {*schema.values} >= {"flow", "stage"}
    anew = looked_at(table.assign(date=np.tile(stamps(60 // len(STATES[name]), "D"), len(STATES[name]))), tmp_path)[0]
    assert anew.id == name


def test_objects_that_are_measured_one_after_another_are_objects(tmp_path):
    table = pd.DataFrame({"date": stamps(80), "Motor": np.repeat([f"M{k}" for k in range(8)], 10)})
    assert looked_at(table.assign(torque=DRAW.normal(size=80)), tmp_path)[0].id == "Motor"


@pytest.mark.parametrize("id", ["UID", "pid", "STID", "stid", "RID", "gid", "animal-identifier", "Serial_Num"])
def test_one_word_that_ends_in_id_is_called_so(id, tmp_path):
    table = pd.DataFrame({id: DRAW.integers(1500, 1530, 300), "answered": stamps(300), "x": DRAW.normal(size=300)})
    assert looked_at(table.assign(y=DRAW.normal(size=300)), tmp_path)[0].id == id
    for name in ("bid", "grid", "mid", "humid", "acid"):
        assert not looks_like_id(name)


@pytest.mark.parametrize("channel", [None, "parameter"])
@pytest.mark.parametrize("site", ["location", "site", "site no"])
def test_a_place_is_the_id_where_it_tells_the_rows_of_one_time_apart(site, channel, tmp_path):
    rows = [(time, s, p, 12.5 + s + DRAW.normal(), 3 + DRAW.normal(), "m" if p == "depth" else "m3/s")
            for time in stamps(40, "D") for s in (9, 10, 23) for p in (("flow", "depth") if channel else ("flow",))
            ]  # fmt: skip
    table = pd.DataFrame(rows, columns=["date", site, "parameter", "value", "depth", "unit"])
    table = table.drop(columns="depth" if channel else ["parameter", "unit"])
    schema, unsure, dataset = looked_at(table, tmp_path)
    assert (schema.id, schema.channel, schema.positions, len(dataset)) == (site, channel, (), 3)
    assert any(text.startswith(f"{site!r}: it tells apart rows of one time") for text in unsure)


@pytest.mark.parametrize("units", ["one", "of channels"])
@pytest.mark.parametrize("name", ["unit", "uom", "Einheit"])
@pytest.mark.parametrize("kind", ["parameter", "type"])
def test_units_of_measurement_are_no_ids(kind, name, units, tmp_path):
    rows = [(time, p, k % 2, DRAW.normal(), "µg/m³" if units == "one" or p == "no2" else "ppm")
            for k, time in enumerate(stamps(60)) for p in ("no2", "co")]  # fmt: skip
    table = pd.DataFrame(rows, columns=["time", kind, "sensorName", "value", name])
    table = table.assign(sensorName=table.sensorName.map("Sensor {}".format))
    schema = looked_at(table, tmp_path)[0]
    assert (schema.id, schema.channel) == ("file", kind)


@pytest.mark.parametrize("name", ["valueuom", "unit", "units_of_measure", "valueU"])
def test_units_that_differ_within_a_channel_are_a_doubt(name, tmp_path):
    rows = [(p, 60 * k, t, DRAW.normal(), ("C", "F")[p % 2] if t == "temp" else "bpm" if k else None)
            for p in range(4) for k in range(20) for t in ("temp", "pulse")]  # fmt: skip
    table = pd.DataFrame(rows, columns=["patient", "time", "parameter", "value", name])
    remark = f"'{name}': units that differ within a channel"
    assert any(text.startswith(remark) for text in looked_at(table, tmp_path)[1])
    every = table.assign(**{name: np.resize([*"CCFF"], len(table))})  # each channel has two
    assert any(text.startswith(remark) for text in looked_at(every, tmp_path)[1])
    alike = table.replace({name: {"F": "C"}})
    assert not any(name in text for text in looked_at(alike, tmp_path)[1])


def test_a_channel_has_one_unit_and_a_group_of_channels_several(tmp_path):
    tests = [("blood", "sodium", "mmol/L"), ("blood", "weight", "kg"), ("urine", "pH", None)]
    rows = [(p, 7 * k + p, *tests[DRAW.integers(3)], DRAW.normal()) for p in range(4) for k in range(40)]
    table = pd.DataFrame(rows, columns=["patient", "time", "category", "test", "unit", "value"])
    assert looked_at(table, tmp_path)[0].channel == "test"


def test_an_id_of_each_time_is_a_doubt(tmp_path):
    rows = [(700 + k, f"2020-08-{1 + k:02d}", who, DRAW.normal(50)) for k in range(25) for who in ("A", "B")]
    unsure = looked_at(pd.DataFrame(rows, columns=["poll_id", "date", "answer", "pct"]), tmp_path)[1]
    assert "'poll_id': each has a single time: is it the id of series?" in unsure


@pytest.mark.parametrize("ascends", [True, False])
def test_an_id_of_visits_gives_way_to_what_was_visited(ascends, tmp_path):
    rows = [(r, 2000 + y, kind, DRAW.integers(30)) for r in (1, 7, 13) for y in range(12) for kind in (316, 444, 507)]
    table = pd.DataFrame(rows, columns=["Route", "Year", "species", "Count"])
    table.insert(0, "RouteDataID", 6100 + np.arange(len(table)) // 3)
    if not ascends:  # as ages of patients of one place
        table["Year"] = 2000 + np.repeat(np.arange(36) * 5 % 13, 3)
    proposal = propose(open_source(table), TableSchema(), set())
    assert proposal.schema.id == ("Route" if ascends else "RouteDataID")
    assert proposal.remarks["RouteDataID"].startswith("each has a single time")


@pytest.mark.parametrize("name", ["ccdid", "qid"])
def test_an_id_of_another_thing_is_none_of_a_series_where_it_is_glued_too(name, tmp_path):
    table = pd.DataFrame({"jd": 2458200 + np.arange(80), name: DRAW.integers(1, 9, 80), "flux": DRAW.normal(size=80)})
    assert looked_at(table, tmp_path)[0].id == "file"


def test_a_column_called_date_is_no_id_next_to_a_clock(tmp_path):
    rows = [(f"{20 + d}:05:2019", f"{h:02d}:00:00", DRAW.normal()) for d in range(5) for h in range(8, 18)]
    table = pd.DataFrame(rows, columns=["Date(dd:mm:yyyy)", "Time(hh:mm:ss)", "AOD"])
    schema = propose(open_source(table), TableSchema(), set()).schema
    assert (schema.id, schema.channel) == ("file", None)
    assert (schema.time, schema.clock, schema.time_format) == (*table.columns[:2], "%d:%m:%Y")


@pytest.mark.parametrize("name", ["tz", "tz_cd", "time_zone"])
def test_a_column_of_zones_is_a_doubt(name, tmp_path):
    table = pd.DataFrame({"datetime": stamps(80), name: np.repeat(["EST", "EDT"], 40), "flow": DRAW.normal(size=80)})
    unsure = looked_at(table.assign(height=DRAW.normal(size=80)), tmp_path)[1]
    assert any(text.startswith(f"'{name}': zones of the times") for text in unsure)


@pytest.mark.parametrize("limit", [">600", "<0.5"])
def test_limits_in_the_text_of_a_value_are_a_doubt(limit, tmp_path):
    rows = [(p, 60 * k, DRAW.integers(60, 99) + 0.5) for p in range(6) for k in range(20)]
    table = pd.DataFrame(rows, columns=["patientunitstayid", "labresultoffset", "labresult"])
    table["labresulttext"] = table.labresult.astype(str)
    table.loc[::9, "labresult"] = None
    assert not any("limits in" in text for text in looked_at(table, tmp_path)[1])
    table.loc[::9, "labresulttext"] = limit
    assert any("limits in 14 rows without 'labresult'" in text for text in looked_at(table, tmp_path)[1])


def test_a_depth_is_a_limit_and_a_mark_of_0_and_1_no_error(tmp_path):
    table = pd.DataFrame({"MJD": 59000 + np.arange(60), "uJy": DRAW.integers(30, 99, 60)})
    table = table.assign(duJy=DRAW.integers(5, 9, 60), err=np.arange(60) % 9 // 8, mag5sig=DRAW.normal(19, 0.1, 60))
    table["sky"] = DRAW.normal(20, 1, 60)
    schema, unsure, _ = looked_at(table, tmp_path)
    assert (schema.values, schema.errors) == (("uJy",), ("duJy",)) and any(
        "'mag5sig': a detection limit" in t for t in unsure
    )


@pytest.mark.parametrize("name", ["1st Max Hour", "max_time"])
def test_the_hour_of_a_maximum_is_no_clock(name, tmp_path):
    table = pd.DataFrame(
        {"Date Local": stamps(90, "D").str[:10], "Mean": DRAW.normal(size=90), name: DRAW.integers(0, 24, 90)}
    )
    if name == "max_time":
        table[name] = table[name].map("{:02d}:00".format)
    schema, _, dataset = looked_at(table, tmp_path)
    assert (schema.time, schema.clock) == ("Date Local", None) and (dataset.times % 1 == 0).all()


# ── values ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_numbers_that_only_count_on_do_not_tell_what_was_measured(tmp_path):
    rows = [(f"S{s}", test, mean * DRAW.uniform(0.9, 1.1), v, f"VISIT {v}", f"2021-0{v}-{10 + k:02d}")
            for s in range(6) for v in range(1, 7) for k, (test, mean) in enumerate((("SYS", 120), ("TEMP", 36)))
            ]  # fmt: skip
    table = pd.DataFrame(rows, columns=["SUBJID", "TESTCD", "ORRES", "VISITNUM", "VISIT", "DTC"])
    schema = looked_at(table, tmp_path)[0]
    assert (schema.channel, schema.values) == ("TESTCD", ("ORRES",))


def test_of_several_values_next_to_a_channel_none_drops_a_row(tmp_path):
    rows = [(p, f"m{m}", 17 * k, *DRAW.normal(size=3)) for p in "AB" for m in range(2) for k in range(60)]
    table = pd.DataFrame(rows, columns=["participant", "MediaName", "time", "GazeX", "GazeY", "Pupil"])
    table.loc[::9, "Pupil"] = None
    schema, unsure, dataset = looked_at(table, tmp_path)
    assert (schema.channel, schema.values, len(dataset.times)) == ("MediaName", ("GazeX", "GazeY"), 240)
    assert any("'Pupil': cells are missing" in text for text in unsure)


@pytest.mark.parametrize("names", [("flux_g", "flux_r"), ("g", "r")])
def test_all_numbers_are_channels_of_a_table_that_is_called_wide(names, tmp_path):
    """Whatever they are called, and whatever cells they lack."""
    table = pd.DataFrame({"id": np.repeat(range(3), 20), "time": [*range(20)] * 3} | dict.fromkeys(names, 0.0))
    table[[*names]] = DRAW.normal(size=(60, 2))
    table.loc[::9, names[1]] = None
    table.to_csv(tmp_path / "t.csv", index=False)
    proposal = propose(open_source(tmp_path / "t.csv"), TableSchema(wide=True, values=()), {"wide"})
    assert proposal.schema.values == names and doubts_of(proposal) == []


STATES_OF_WEATHER = {"sun": 0.0, "rain": 9.0, "snow": 4.0}


@pytest.mark.parametrize("columns", [("date", "weather", "rain", "tmax"), ("Datum", "Betrieb", "Strom", "Zähler")])
def test_a_text_by_which_one_of_several_numbers_differs_is_a_state(columns, tmp_path):
    kinds = DRAW.choice([*STATES_OF_WEATHER], 60)
    rain = [STATES_OF_WEATHER[kind] + DRAW.uniform(0, 1) for kind in kinds]
    more = np.cumsum(DRAW.integers(3, 90, 60)) if "Zähler" in columns else DRAW.normal(size=60)
    table = pd.DataFrame(dict(zip(columns, (stamps(60, "D"), kinds, rain, more), strict=True)))
    schema, _, _ = looked_at(table, tmp_path)
    assert (schema.channel, schema.values, schema.wide) == (None, columns[2:], True)
    assert looked_at(table.rename(columns={columns[2]: "value"}), tmp_path)[0].channel == columns[1]
    one = table.drop(columns=columns[3])
    assert looked_at(one, tmp_path)[0].channel == columns[1]
    one[columns[1]] = one[columns[1]].where(np.arange(60) % 3 == 0)  # in most rows there is none
    assert looked_at(one, tmp_path)[0].channel is None


@pytest.mark.parametrize("name", ["discharge", "discharge_capacity", "event rate", "status voltage"])
def test_words_with_two_senses_are_outcomes_only_where_the_cells_look_so(name, tmp_path):
    table = pd.DataFrame({"id": np.repeat([*"abcd"], 20), "time": [*range(20)] * 4, "stage": DRAW.normal(size=80)})
    schema, unsure, _ = looked_at(table.assign(**{name: DRAW.uniform(1, 2, 80).round(3)}), tmp_path)
    assert schema.values == ("stage", name) and not any("outcome" in text for text in unsure)
    schema, unsure, _ = looked_at(table.assign(**{name: (DRAW.uniform(size=80) > 0.8).astype(int)}), tmp_path)
    assert schema.values == ("stage",) and schema.channel is None
    assert [text for text in unsure if repr(name) in text] == [text for text in unsure if "outcome" in text] != []


@pytest.mark.parametrize("names", [("Month", "Day"), ("mo", "dd")])
def test_a_month_and_a_day_want_a_year(names, tmp_path):
    when = pd.date_range("1973-05-01", periods=90)
    table = pd.DataFrame({"Wind": DRAW.normal(size=90), names[0]: when.month, names[1]: when.day})
    with pytest.raises(InputError, match=f"'{names[0]}' and '{names[1]}' are dates without a year: add a column"):
        looked_at(table, tmp_path)


def test_a_month_next_to_whole_dates_called_day_lacks_no_year(tmp_path):
    day = pd.date_range("2024-01-25", periods=40)
    table = pd.DataFrame({"day": day.strftime("%Y-%m-%d"), "month": day.month, "level": DRAW.normal(size=40)})
    schema, *_ = looked_at(table, tmp_path)
    assert schema.time == "day" and schema.values == ("level",)


@pytest.mark.parametrize("name", ["is_anomaly", "attack", "fault flag", "isFailure", "alarm"])
@pytest.mark.parametrize("words", [(0, 1), (False, True)])
def test_a_label_of_each_time_is_not_read(name, words, tmp_path):
    table = pd.DataFrame({"datetime": stamps(90), "pressure": DRAW.normal(size=90), "current": DRAW.normal(size=90)})
    schema, unsure, _ = looked_at(table.assign(**{name: DRAW.choice(words, 90)}), tmp_path)
    assert schema.values == ("pressure", "current") and any(repr(name) in text for text in unsure)
    scores = table.assign(**{name: DRAW.normal(size=90)})
    assert "flag" in name or looked_at(scores, tmp_path)[0].values == ("pressure", "current", name)


def test_a_unit_with_points_and_two_units_are_no_words_of_a_name(tmp_path):
    names = ["Flux [0.1-100 GeV](cm-2 s-1)", "Flux Error(cm-2 s-1)", "TS"]
    table = pd.DataFrame(DRAW.uniform(1, 2, (90, 3)), columns=names).assign(time=range(90))
    schema = looked_at(table, tmp_path)[0]
    assert (schema.values, schema.errors) == ((names[0],), (names[1],))


def test_parts_of_dates_and_numbers_of_rows_are_neither_ids_nor_values(tmp_path):
    when = pd.date_range("2011-01-25", periods=400, freq="h")
    parts = {"mnth": when.month, "wday": (when.day_of_week + 1) % 7, "instant": range(7, 407), "hr": when.hour}
    table = pd.DataFrame({"dteday": when.strftime("%Y-%m-%d"), **parts, "cnt": DRAW.poisson(40, 400)})
    schema, unsure, _ = looked_at(table, tmp_path)
    assert (schema.id, schema.clock, schema.values) == ("file", "hr", ("cnt",))
    assert {"'mnth': a part of the time", "'wday': a part of the time"} <= {*unsure}


@pytest.mark.parametrize("name", ["day", "Wochentag", "Monat"])
def test_names_of_weekdays_and_months_are_parts_of_the_time(name, tmp_path):
    when = pd.date_range("2023-01-01", periods=400, freq="3D" if name == "Monat" else "D")
    part = when.month_name() if name == "Monat" else when.day_name()
    table = pd.DataFrame({"date": when.strftime("%Y-%m-%d"), name: part, "visitors": DRAW.normal(100, 5, 400)})
    table.visitors += 20 * (when.month if name == "Monat" else when.day_of_week)
    schema, unsure, _ = looked_at(table, tmp_path)
    assert (schema.id, schema.channel, schema.values) == ("file", None, ("visitors",))
    assert f"{name!r}: a part of the time" in unsure


DAYS = np.cumsum(DRAW.integers(1, 9, 80))  # since 2019-12-31
AGAIN: Any = {
    "Day_of_Year": pd.to_datetime(DAYS, unit="D", origin="2019-12-31").day_of_year,
    "age_months": (7 + DAYS / 30.44).round(1),
    "decimal year": (2020 + DAYS / 366).round(4),
    "Unix": 1577750400 + 86400 * DAYS,
    "last contact": 86400.0 * DAYS - DRAW.uniform(0, 900, 80),
}


@pytest.mark.parametrize("origin", ["2019-12-31", 58848])
@pytest.mark.parametrize("name", AGAIN)
def test_a_time_in_another_unit_or_a_part_of_it_is_no_value(name, origin, tmp_path):
    time = pd.to_datetime(DAYS, unit="D", origin=origin) if isinstance(origin, str) else origin + DAYS
    table = pd.DataFrame({"mjd": time, name: AGAIN[name], "east": DRAW.normal(size=80), "north": DRAW.normal(size=80)})
    schema, unsure, _ = looked_at(table, tmp_path)
    if (name, origin) != ("Day_of_Year", 58848):  # which begins anew, and no number says when
        assert schema.values == ("east", "north")
        assert {f"{name!r}: a part of the time", f"{name!r}: repeats the times"} & {*unsure}
    assert looked_at(table[["mjd", name]], tmp_path)[0].values == (name,)  # for want of others


def test_numbers_of_rows_are_no_values(tmp_path):
    table = pd.DataFrame({"days": 32508 + np.arange(160) / 8, "trial": np.arange(160) % 25 + 1})
    table = table.assign(Kp=DRAW.normal(size=160), ap=DRAW.normal(size=160))
    schema, unsure, _ = looked_at(table, tmp_path)
    assert schema.values == ("Kp", "ap") and "'trial': repeats the times" in unsure
    table["trial"] = DRAW.permutation(table.trial)
    assert looked_at(table, tmp_path)[0].values == ("trial", "Kp", "ap")


def test_of_a_date_and_numbers_that_are_called_alike_the_first_is_the_time(tmp_path):
    table = pd.DataFrame(
        {"TimeString": stamps(80), "Time_ms": 44713423611.1 + np.arange(80), "x": DRAW.normal(size=80)}
    )
    assert looked_at(table, tmp_path)[0].time == "TimeString"


def test_a_date_of_birth_is_not_the_time(tmp_path):
    rows = [
        (f"P{p}", f"{11 + p}.03.1950", f"{13 + 2 * k}.01.2020", *DRAW.normal(size=2))
        for p in range(8)
        for k in range(9)
    ]
    table = pd.DataFrame(rows, columns=["Pat.-ID", "Geb.-Datum", "Abnahme", "Krea", "eGFR"])
    schema, _, dataset = looked_at(table, tmp_path)
    assert (schema.time, schema.values) == ("Abnahme", ("Krea", "eGFR")) and len(dataset.times) == 144


def test_of_numbers_that_ascend_those_that_pack_days_are_not_the_time(tmp_path):
    when = pd.date_range("2003-02-25", periods=80)
    table = pd.DataFrame(
        {"c": when.strftime("%Y%m%d.500"), "jdn": 2452696 + np.arange(80), "tsi": DRAW.normal(size=80)}
    )
    schema = looked_at(table, tmp_path)[0]
    assert (schema.time, schema.values) == ("jdn", ("tsi",))


def test_an_age_is_the_time_of_each_id(tmp_path):
    rows = [(f"C{c}", f"{2018 + k}-0{1 + c}-15", c + 12 * k, DRAW.normal()) for c in range(8) for k in range(5)]
    table = pd.DataFrame(rows, columns=["child", "visit_date", "age_months", "weight"])
    assert looked_at(table, tmp_path)[0].values == ("weight",)


CODES: Any = {
    "bikeid": DRAW.integers(15000, 16000, 90),
    "event_index": DRAW.integers(50, 9000, 90),
    "platenum": DRAW.integers(144, 30000, 90),
    "MMSI": DRAW.choice([367123450, 338000111, 366999222], 90),
}
MEASURES: Any = {
    "uric acid": DRAW.integers(150, 4000, 90),
    "UV index": DRAW.integers(0, 12, 90),
    "stock index": 28000 + np.cumsum(DRAW.integers(-300, 300, 90)),
    "PPG": DRAW.integers(52340, 52360, 90),  # as the converter gives it
    "steps": DRAW.integers(0, 20000, 90),
    "num": DRAW.integers(150, 4000, 90),
    "rate": 5_000_000 * (np.arange(90) * 7 % 11),  # few, in millionths
    "price": 3_720_000_000_000 + 250_000_000 * (np.arange(90) * 7 % 25),  # in billionths
}


@pytest.mark.parametrize("name", [*CODES, *MEASURES])
def test_numbers_that_name_something_are_no_values(name, tmp_path):
    table = pd.DataFrame({"time": stamps(90), "speed": DRAW.normal(size=90), "load": DRAW.normal(size=90)})
    schema, unsure, _ = looked_at(table.assign(**{name: (CODES | MEASURES)[name]}), tmp_path)
    assert schema.values == ("speed", "load") + (() if name in CODES else (name,))
    assert (f"{name!r}: codes that name something" in unsure) == (name in CODES)


def test_numbers_that_two_columns_have_are_read_once(tmp_path):
    table = pd.DataFrame({"id": np.repeat([*"abcd"], 20), "time": [*range(20)] * 4, "ORRES": DRAW.normal(size=80)})
    table = table.assign(STRESN=table.ORRES.where(table.ORRES > -1), other=DRAW.normal(size=80)).round(3)
    table["ORRES"] = table.ORRES.astype(str).where(table.ORRES > -1, "<-1")
    schema, unsure, dataset = looked_at(table, tmp_path)
    assert schema.values == ("ORRES", "other") and dataset.sides is not None
    assert "'STRESN': repeats the numbers of another column" in unsure


@pytest.mark.parametrize("name", ["operator_concept_id", "Qualifier", "relation"])
def test_a_column_of_operators_is_a_doubt(name, tmp_path):
    table = pd.DataFrame({"time": stamps(90), "value": DRAW.normal(size=90), name: DRAW.choice([4171756, 4172703], 90)})
    assert any(text.startswith(f"{name!r}: says which values are limits") for text in looked_at(table, tmp_path)[1])


AGAIN_AND_AGAIN = [0, 2, 3, 7, 8, 11, 15, 16, 18, 19]  # times of each channel of each series

LAYOUTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # columns, and what is proposed
    "codes with zeros in front": (
        {"numer_sta": ["07005", "07110"] * 40, "date": np.repeat(stamps(40), 2), "t": DRAW.normal(size=80)},
        {"id": "numer_sta", "positions": (), "values": ("t",)},
    ),
    "an elapsed time called like a test": (
        {"cell": np.repeat([*"ab"], 40), "Test_Time(s)": [*np.arange(40) * 60.0] * 2,
         "Date_Time": [*stamps(40, "min")] * 2, "U(V)": DRAW.normal(size=80)},
        {"time": "Date_Time", "channel": None, "values": ("U(V)",)},
    ),
    "codes of units next to those of measurements": (
        {"person_id": np.repeat(range(4), 20), "measurement_concept_id": [3004410, 3016723] * 40, "date": stamps(80),
         "unit_concept_id": [8554, 8840] * 40, "value_as_number": DRAW.normal(size=80)},
        {"channel": "measurement_concept_id", "values": ("value_as_number",)},
    ),
    "children as columns": (
        {"age": np.arange(1, 19, 0.5), **{f"girl{k}": 80 + np.arange(36.0) * k for k in range(1, 41)}},
        {"numbered": None, "time": "age", "wide": True},
    ),
    "counts of which few are missing": (
        {"site id": np.repeat(range(4), 20), "date": np.repeat(stamps(40), 2), "species": [*"ab"] * 40,
         "birds": ["X" if k % 20 == 0 else k * 7 % 9 for k in range(80)], "minutes": DRAW.integers(5, 90, 80)},
        {"channel": "species", "values": ("birds", "minutes")},
    ),
    "two clocks": (
        {"date": np.repeat(stamps(20, "D").str[:10], 4), "beeptime": ["08:10", "11:02", "15:30", "19:59"] * 20,
         "resptime": ["08:14", "11:03", "15:40", "20:01"] * 20, "mood": DRAW.integers(1, 8, 80)},
        {"clock": "beeptime", "values": ("mood",)},
    ),
    "an s before a name": (
        {"rjd": 55000.5 + np.arange(80), "vrad": DRAW.normal(size=80), "svrad": DRAW.uniform(1, 2, 80),
         "fwhm": DRAW.normal(size=80), "sig_fwhm": DRAW.uniform(1, 2, 80), "sn": DRAW.normal(size=80)},
        {"values": ("vrad",), "errors": ("svrad",)},
    ),
    "types of records": (
        {"time": stamps(80), "Record Type": DRAW.integers(0, 5, 80), "a": DRAW.normal(size=80),
         "b": DRAW.normal(size=80)},
        {"values": ("a", "b")},
    ),
    "channels one after another": (
        {"site": np.repeat([*"pqrst"], 30), "component": [*np.repeat([*"enu"], 10)] * 5,
         "day": np.add.outer(np.arange(15) % 3 / 9, AGAIN_AND_AGAIN).ravel(), "mm": np.sin(np.arange(150))},
        {"id": "site", "time": "day", "channel": "component", "values": ("mm",)},
    ),
    "objects in one log": (
        {"logged": stamps(150), "tank": [f"t{k * k % 7}{k * 5 % 3}" for k in range(150)], "port": [*"ab"] * 75,
         "pH": np.sin(np.arange(150)) + np.arange(150) % 2 * 9},
        {"id": "tank", "channel": "port", "values": ("pH",)},
    ),
    "states in one log": (
        {"logged": stamps(150), "phase": [f"p{k // 5 * 4 % 7}" for k in range(150)], "pH": np.sin(np.arange(150))},
        {"id": "file", "channel": None, "values": ("pH",)},
    ),
    "results next to their numbers and later times": (
        {"labid": 7_000_001 + np.arange(60) * 7 % 60, "stay_id": np.repeat(range(4), 15), "offset": [*range(15)] * 4,
         "labname": [*"abc"] * 20, "labresult": np.arange(60) % 3 * 50 + np.sin(np.arange(60)),
         "revisedoffset": [*range(20, 35)] * 4},
        {"time": "offset", "channel": "labname", "values": ("labresult",)},
    ),
    "a time that no name tells, next to two columns of texts": (
        {"core": np.repeat([*"pqrst"], 30), "isotope": [*np.repeat([*"kj"], 15)] * 5,
         "age_ka": [*range(10), 2, 4, 12, 14, 16] * 10, "ratio": np.sin(np.arange(150))},
        {"id": "core", "time": "age_ka", "values": ("ratio",)},
    ),
    "an object without a name in one row": (
        {"tree": [None, *np.repeat([*"pqrst"], 30)][:150],
         "day": np.add.outer(np.arange(5) / 9, range(30)).ravel(), "flow": np.sin(np.arange(150))},
        {"id": "tree", "time": "day", "values": ("flow",)},
    ),
    "names of targets": (
        {"Target Name": np.repeat([*"pqrst"], 30), "BJD": [*range(30)] * 5, "flux": np.sin(np.arange(150))},
        {"id": "Target Name", "values": ("flux",)},
    ),
    "a filter called F": (
        {"name": np.repeat([*"pq"], 30), "MJD": [*range(30)] * 2, "F": [*"oco"] * 20, "uJy": np.sin(np.arange(60)),
         "duJy": 2 + np.cos(np.arange(60)), "chi": np.sin(np.arange(60) * 3)},
        {"channel": "F", "values": ("uJy",), "errors": ("duJy",)},
    ),
    "frequencies with a unit": (
        {"blazar_id": np.repeat([*"pq"], 30), "MJD": [*range(30)] * 2, "freq": ["5GHz", "8GHz"] * 30,
         "S": np.sin(np.arange(60)) + [0, 9] * 30},
        {"channel": "freq", "values": ("S",)},
    ),
    "ids of variables": (
        {"datetime": stamps(60), "patientid": np.repeat([1, 2], 30), "value": np.sin(np.arange(60)),
         "variableid": [110, 200, 4000] * 20},
        {"id": "patientid", "channel": "variableid", "values": ("value",)},
    ),
    "a clock in another language, two rows of which are of one minute": (
        {"dato": np.repeat([f"2024-07-{d:02d}" for d in range(1, 21)], 5), "y": np.sin(np.arange(100)),
         "klokkeslæt": [f"{h}.{(7 * d * (h > 4)) % 60:02d}" for d in range(20) for h in (4, 4, 9, 14, 20)]},
        {"time": "dato", "clock": "klokkeslæt", "positions": (), "values": ("y",)},
    ),
    "limits of detection and a clock": (
        {"well": np.repeat([*"pqrst"], 30), "jour": [f"{d:02d}/07/2024" for d in np.repeat(range(1, 31), 5)],
         "heure": [f"{7 + 2 * (k % 5)}h{k % 4}5" for k in range(150)], "LOD": 0.5,
         "lead": [None if k % 9 == 0 else 1 + np.sin(k) / 4 for k in range(150)]},
        {"time": "jour", "clock": "heure", "values": ("lead",), "upper_limits": ("LOD",)},
    ),
    "one target, which is no outcome": (
        {"id": np.repeat([*"ab"], 40), "day": [*range(40)] * 2, "target": DRAW.normal(size=80)},
        {"values": ("target",)},
    ),
    "several texts in one log, one of which says what was measured": (
        {"logged": stamps(150), "tank": [f"t{k * k % 7}{k * 5 % 3}" for k in range(150)],
         "probe": [f"p{k * 7 % 15}" for k in range(150)], "mV": [k * 7 % 15 * 10 + np.sin(k) for k in range(150)]},
        {"id": "tank", "channel": "probe", "values": ("mV",)},
    ),
    "places of an organization": (
        {"OrganizationIdentifier": np.repeat([*"ab"], 40), "LocationIdentifier": np.repeat([*"abcd"], 20),
         "date": [*stamps(20)] * 4, "y": DRAW.normal(size=80)},
        {"id": "LocationIdentifier"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_of_instruments_and_archives(layout, tmp_path):
    columns, expected = LAYOUTS[layout]
    pd.DataFrame(columns).to_csv(tmp_path / "t.csv", index=False)
    schema = propose(open_source(tmp_path / "t.csv"), TableSchema(), set()).schema
    assert {name: getattr(schema, name) for name in expected} == expected


def test_what_is_equal_in_all_rows_of_files_is_neither_their_id_nor_their_time(tmp_path):
    for k in range(3):
        table = pd.DataFrame({"Transmitter ID": "8NK", "HospAdmTime": -3.5 * k - 1, "ICULOS": range(1, 21)})
        table.assign(HR=DRAW.normal(size=20), Temp=DRAW.normal(size=20)).to_csv(tmp_path / f"p{k}.csv", index=False)
    schema = propose(open_source(tmp_path), TableSchema(), set()).schema
    assert (schema.id, schema.time, schema.values) == ("file", "ICULOS", ("HR", "Temp"))


def test_names_below_merged_cells_may_repeat_next_to_the_values(tmp_path):
    draws = DRAW.normal(size=(20, 3)).round(3)
    rows = "".join(f"{k + 1:02d}-01-2023,{a},V,ug,{b},P,ug,{c},V,ug\n" for k, (a, b, c) in enumerate(draws))
    names = ",Leeds,,,,,,York,,\nDate,Ozone,status,unit,NO2,status,unit,Ozone,status,unit\n"
    schema = looked_at(names + rows, tmp_path)[0]
    assert (schema.time, schema.values) == ("Date", ("Leeds Ozone", "Leeds NO2", "York Ozone"))


@pytest.mark.parametrize("name", ["VesselName", "redcap_event_name"])
def test_a_name_next_to_several_values_is_no_channel(name, tmp_path):
    table = pd.DataFrame({"time": stamps(90), name: DRAW.choice([*"abc"], 90), "SOG": DRAW.normal(size=90)})
    schema, _, _ = looked_at(table.assign(COG=DRAW.normal(size=90)), tmp_path)
    assert (schema.channel, schema.wide) == (None, True)


def test_a_letter_is_the_time_only_by_itself(tmp_path):
    rows = [(b, 5 * k, 20 + 5 * k + DRAW.uniform()) for b in ("B1", "B2") for k in range(30)]
    table = pd.DataFrame(rows, columns=["batch", "Elapsed (min)", "T_Reactor (°C)"])
    assert looked_at(table[["batch", "T_Reactor (°C)", "Elapsed (min)"]], tmp_path)[0].time == "Elapsed (min)"


def test_an_id_that_may_name_what_was_measured_is_a_doubt(tmp_path):
    table = pd.DataFrame({"Tag": np.repeat(["FIC1.PV", "TI2.PV"], 40), "time": [*stamps(40)] * 2})
    table = table.assign(value=np.where(table.Tag == "TI2.PV", 350, 12) + DRAW.normal(size=80))
    _, unsure, _ = looked_at(table, tmp_path)
    assert any(text.startswith("'Tag': ") and text.endswith("--id file, --channel") for text in unsure)


def test_a_user_is_an_object(tmp_path):
    rows = [
        (u, m, DRAW.choice(5), 964980000 + 977 * u + m) for u in range(8) for m in DRAW.choice(400, 20, replace=False)
    ]
    table = pd.DataFrame(rows, columns=["userId", "movieId", "rating", "timestamp"])
    assert looked_at(table, tmp_path)[0].id == "userId"


def test_an_order_with_one_time_is_no_id_next_to_a_patient(tmp_path):
    rows = [(7000 + p, 80 * p + k, k, c, DRAW.normal()) for p in range(9) for k in range(5) for c in "abc"]
    table = pd.DataFrame(rows, columns=["PID.3", "OBR.3", "time", "OBX.3", "OBX.5"])
    assert looked_at(table, tmp_path)[0].id == "PID.3"


def test_an_id_of_each_entry_is_none_of_series_where_lists_hold_no_times():
    rows = [
        {"id": f"o{5 * p + k}", "subject": {"reference": f"P/{p}"}, "code": [{"code": "8867-4"}],
         "time": f"2021-05-0{1 + k}", "value": DRAW.normal()} for p in range(6) for k in range(5)]  # fmt: skip
    schema = propose(open_source(pa.Table.from_pylist(rows)), TableSchema(), set()).schema
    assert (schema.id, schema.time) == ("subject.reference", "time")


def test_a_label_in_blocks_is_no_id(tmp_path):
    table = pd.DataFrame({"HR": DRAW.normal(80, 9, 54), "SBP": DRAW.normal(120, 9, 54), "ICULOS": range(1, 55)})
    schema, unsure, _ = looked_at(table.assign(SepsisLabel=(table.ICULOS > 40).astype(int)), tmp_path)
    assert (schema.id, schema.values) == ("file", ("HR", "SBP")) and any("'SepsisLabel'" in text for text in unsure)


def test_a_clock_may_have_points(tmp_path):
    when = pd.date_range("2004-03-10 18:00", periods=200, freq="h")
    table = pd.DataFrame(
        {"Date": when.strftime("%d/%m/%Y"), "Time": when.strftime("%H.%M.%S"), "CO": DRAW.normal(size=200)}
    )
    schema, _, dataset = looked_at(table, tmp_path)
    assert (schema.id, schema.clock) == ("file", "Time") and dataset.times[0] == 12487.75 and len(dataset.times) == 200


@pytest.mark.parametrize("name", ["Tid (UTC)", "Klockslag", "godz", "in der Früh"])
@pytest.mark.parametrize("goes_on", [True, False])
def test_a_clock_of_any_name_goes_on_within_each_day(goes_on, name, tmp_path):
    table = pd.DataFrame({"Datum": np.repeat(stamps(9, "D").str[:10], 24), "Luft": DRAW.normal(size=216)})
    hours = np.tile(np.arange(24), 9) if goes_on else DRAW.integers(0, 24, 216)
    table[name] = [f"{hour:02d}:00:00" for hour in hours]
    proposal = propose(open_source(table), TableSchema(), set())
    assert proposal.schema.clock == (name if goes_on else None)
    assert proposal.remarks.get(name) == (None if goes_on else "--clock, if of 'Datum'")


@pytest.mark.parametrize("names", [["Dauer"], ["sunrise", "sunset"], ["Aufgang", "max time"], ["sleep duration"]])
def test_times_of_day_that_may_be_others_are_said(names, tmp_path):
    spent = DRAW.integers(1, 1439, (len(names), 40))
    table = pd.DataFrame({"date": stamps(40, "D").str[:10], "x": DRAW.normal(size=40)})
    table = table.assign(**{name: [f"{m // 60}:{m % 60:02d}" for m in part] for name, part in zip(names, spent)})
    schema, unsure, _ = looked_at(table, tmp_path)
    assert schema.clock is None
    assert {f"{name!r}: --clock, if of 'date'" for name in names} <= {*unsure}


def test_hundredths_are_no_minutes(tmp_path):
    table = pd.DataFrame({"date": stamps(90, "D").str[:10], "level": DRAW.uniform(2, 20, 90).round(2)})
    table["pH"] = DRAW.uniform(7.3, 7.5, 90).round(2)  # all within the minutes of an hour
    table.to_csv(tmp_path / "t.csv", index=False, float_format="%.2f")
    schema = propose(open_source(tmp_path / "t.csv"), TableSchema(), set()).schema
    assert schema.clock is None and schema.values == ("level", "pH")


def test_a_year_and_a_week_are_a_time(tmp_path):
    rows = [(f"Region {g}", 2015 + k // 52, k % 52 + 1, *DRAW.normal(size=2)) for k in range(104) for g in range(3)]
    schema, _, dataset = looked_at(pd.DataFrame(rows, columns=["REGION", "YEAR", "WEEK", "ILI", "ALL"]), tmp_path)
    assert (schema.time, schema.id) == ("YEAR+WEEK", "REGION") and dataset.times[0] == 16433  # a Monday


def test_a_header_and_a_row_of_the_whole_table_stand_above_its_own(tmp_path):
    rows = "".join(f"2019,1,{1 + k // 24},{k % 24},{k * 7 % 11}\n" for k in range(200))
    text = f"Source,Station,City,Latitude,Zone\nNSRDB,17,-,40.1,-7\nYear,Month,Day,Hour,GHI\n{rows}"
    schema, _, dataset = looked_at(text, tmp_path)
    assert (schema.time, schema.values, len(dataset.times)) == ("Year+Month+Day+Hour", ("GHI",), 200)
    plain = looked_at("id,time,value\n" + "".join(f"{i},{t},{t % 7}\n" for i in "ab" for t in range(30)), tmp_path)
    assert len(plain[2].times) == 60


def test_a_header_that_leaves_most_columns_without_a_name_is_a_doubt(tmp_path):
    clock, rows = ",".join(f"{k // 2}:{k % 2 * 3}0" for k in range(1, 9)), DRAW.uniform(size=(6, 24)).round(2)
    below = "".join(f"a,2012-07-1{k}{8 * ',0.5'}\n" for k in range(9))
    said = "9 of 10 columns have no name; if another line names them, --header-row"
    with pytest.raises(InputError, match=rf"no column looks like values.*\. {said}\."):
        looked_at(f"Use in kWh{9 * ','}\nid,day,{clock}\n{below}", tmp_path)
    wells = "".join(f"\n{well},{','.join(map(str, row))}" for well, row in zip("ABCDEF", rows, strict=True))
    unsure = looked_at(f"Reader,,v2{22 * ','}\nMode,Absorbance{23 * ','}{wells}", tmp_path)[1]
    assert said.replace("9 of 10", "23 of 25") in unsure
    frame = pd.DataFrame(DRAW.normal(size=(9, 5)), columns=["time", "a", *(f"unnamed {k}" for k in (3, 4, 5))])
    proposal = propose(open_source(frame), TableSchema(), {"time"})  # which has no lines
    assert not any("no name" in doubt for doubt in proposal.unsure)


def test_words_that_flag_few_rows_are_a_doubt(tmp_path):
    table = pd.DataFrame({"STATION": ["A", "B"] * 50, "DATE": np.repeat(stamps(50), 2), "VALUE": DRAW.normal(size=100)})
    table["QFLAG"] = ["S" if k % 9 == 4 else None for k in range(100)]
    assert "'QFLAG': a flag? Leave out the bad rows before reading" in looked_at(table, tmp_path)[1]


def test_an_id_that_is_the_day_of_its_rows_is_an_id(tmp_path):
    rows = [(d, f"2024-05-{d:02d}T{h:02d}:00:00", DRAW.normal()) for d in range(1, 6) for h in range(24)]
    schema = looked_at(pd.DataFrame(rows, columns=["patient_id", "time", "value"]), tmp_path)[0]
    assert (schema.id, schema.values) == ("patient_id", ("value",))


def test_a_refusal_says_what_is_constant_and_that_even_steps_need_times(tmp_path):
    table = pd.DataFrame({"created_at": stamps(30), "field1": 31.7, "field2": 58.0, "note": ""})
    with pytest.raises(InputError, match=r"'field1' \(one value: 31.7\), 'field2' \(one value: 58.0\)") as caught:
        looked_at(table, tmp_path)
    assert "'note' (empty)" in str(caught.value) and caught.value.code == "no-values"
    with pytest.raises(InputError, match="rows are at even steps") as caught:
        looked_at("1500909471.0\n4.0\n" + "\n".join(f"{x:.4f}" for x in DRAW.normal(size=60)) + "\n", tmp_path)
    assert caught.value.code == "no-time"
