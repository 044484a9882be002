"""rotarymae info: guesses columns by their names, counts what is there, and prints a command that works."""

import re
import shlex

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.cells import cell_len

from rotarymae.cli import info
from rotarymae.cli.main import main
from rotarymae.errors import InputWarning
from rotarymae.series import SeriesDataset
from rotarymae.tables import TableSchema


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    rows = [(f"s{i}", t, band, rng.normal(), 0.1) for i in range(12) for t in range(8) for band in "gr"]
    frame = pd.DataFrame(rows, columns=["star", "mjd", "band", "flux", "flux_err"])
    frame.loc[3, "flux"] = np.nan
    frame["kind"] = [("a", "b")[int(star[1:]) % 2] for star in frame.star]
    frame.to_csv(tmp_path / "stars.csv", index=False)
    return tmp_path / "stars.csv"


def test_it_says_what_is_there_and_the_command_it_prints_trains(table, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(["info", str(table)])
    said = capsys.readouterr().out
    for fact in ("1 of 192 rows dropped", "12, with 15 to 16 observations", "g 96, r 95", "median 1", "flux_err"):
        assert fact in said
    command = shlex.split(said.strip().splitlines()[-1])
    assert command[:2] == ["rotarymae", "fit"] and command[-2:] == ["--out", "run"] and "kind" in command
    main([*command[1:], "--pretrain-epochs", "1", "--finetune-epochs", "1", "--min-steps", "0", "--quiet"])
    assert (tmp_path / "run/metrics.json").exists()


def of_columns(printed):
    """Return [column, role, the rest] of each line of the table of columns; what goes on below is joined to it."""
    lines = printed.split("\n\n")[1].splitlines()
    at = [lines[0].index(head) for head in ("taken as", "holds")]
    read: list[list[str]] = []
    for line in lines[1:]:
        cells = [line[: at[0]].strip(), line[at[0] : at[1]].strip(), " ".join(line[at[1] :].split())]
        if cells[0]:
            read.append(cells)
        else:
            read[-1][2] += " " + cells[2]
    return read


DRAW = np.random.default_rng(0)
DAYS = pd.date_range("2024-03-05", periods=60)
OF_ROLES = {
    "all that a command names": (
        {"star": [*"ab"] * 30, "day": DAYS.strftime("%Y-%m-%d"), "hour": DAYS.hour, "x": DRAW.normal(size=60),
         "band": [*"gr"] * 30, "mag": [None, *DRAW.normal(9, 1, 59)], "bad": 0, "deep": 12.5,
         "more": DRAW.normal(size=60)},
        "--id star --time day --clock hour --positions x --channel band --values mag --flags bad --upper-limits deep",
        "id time clock position channel value flag upper limit, not read",
    ),
    "a date in parts, and ids of two columns": (
        {"year": DAYS.year, "month": DAYS.month, "who": [*"ab"] * 30, "run": np.repeat([1, 2], 30), "day": DAYS.day,
         "x": DRAW.normal(size=60), "y": DRAW.normal(size=60)},
        "--id who+run",
        "time time id id time value value",
    ),
    "numbered columns and a label": (
        {"kind": [*"ab"] * 30, **{f"f{k}": DRAW.normal(size=60) for k in range(1, 25)}},
        "",
        "label" + " value" * 24,
    ),
    "numbers of rows, empty and constant columns": (
        {"index": range(60), "time": range(60), "x": DRAW.normal(size=60), "none": "", "one": 7},
        "",
        "not read, time value not read, not read",
    ),
    "errors, and facts without labels": (
        {"id": np.repeat([*"abc"], 20), "mjd": [*range(20)] * 3, "flux": DRAW.normal(size=60),
         "flux_err": DRAW.uniform(1, 2, 60), "age": np.repeat([51, 52, 53], 20)},
        "",
        "id time value error not read",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", OF_ROLES)
def test_every_column_stands_once_with_its_role(kind, tmp_path, capsys):
    columns, options, roles = OF_ROLES[kind]
    pd.DataFrame(columns).to_csv(tmp_path / "t.csv", index=False)
    main(["info", str(tmp_path / "t.csv"), *options.split()])
    printed = capsys.readouterr().out
    names, taken, _ = zip(*of_columns(printed), strict=True)
    assert [*names] == [*columns] and " ".join(taken) == roles.replace(",", "")
    assert ("index" in columns) == ("row numbers" in printed)
    assert "columns not read" not in printed and max(map(len, printed.split("\n\n")[1].splitlines())) <= 100


def test_nested_columns_and_those_that_cannot_be_read_stand_there_with_the_reason(tmp_path, capsys):
    lists = [[[1.0, 2.0]], [[3.0]]]
    light = [[{"t": 0.0, "f": 1.5}, {"t": 1.0, "f": 2.5}, {"t": 2.0, "f": 1.0}]] * 2
    table = pa.table({"id": ["a", "b"], "deep": lists, "lc": light, "z": [0.1, 0.2]})
    pq.write_table(table, tmp_path / "t.parquet")
    main(["info", str(tmp_path / "t.parquet"), "--time", "lc.t"])
    rows = {name: (role, text) for name, role, text in of_columns(capsys.readouterr().out)}
    assert {name: role for name, (role, _) in rows.items()} == {
        "id": "id", "z": "not read", "lc.t": "time", "lc.f": "value", "deep": "not read"
    }  # fmt: skip
    assert rows["deep"][1].startswith("holds lists of lists") and rows["lc.f"][1] == "1, 1.5, 2.5"
    (tmp_path / "t.csv").write_text("time,a,b,b\n" + "".join(f"{k},{k % 7},1,2\n" for k in range(40)))
    main(["info", str(tmp_path / "t.csv")])
    printed = capsys.readouterr().out
    name, role, text = of_columns(printed)[-1]
    assert (name, role) == ("b", "not read") and text.startswith("is there more than once; each")
    assert max(map(len, printed.split("\n\n")[1].splitlines())) <= 100  # long remarks go on below


def test_the_columns_of_the_objects_have_a_table_of_their_own(table, tmp_path, capsys):
    objects = pd.DataFrame({"star": [f"s{i}" for i in range(12)], "z": np.arange(12) / 7, "class": [*"ab"] * 6})
    objects.assign(note=[f"page {i}" for i in range(12)]).to_csv(tmp_path / "o.csv", index=False)
    pd.read_csv(table).drop(columns="kind").to_csv(table, index=False)
    main(["info", str(table), "--objects", str(tmp_path / "o.csv")])
    printed = capsys.readouterr().out
    assert "leave out of --static what is known only after 'class'" in printed
    block = printed.split("\n\n")[2]
    assert [re.split("  +", line)[1] for line in block.splitlines()[1:] if line[0] != " "] == [
        "id", "static", "label", "not read"
    ]  # fmt: skip


@pytest.mark.parametrize(("every", "lines"), [(700, 20), (2, 38), (7, 40)])
def test_a_wide_table_is_folded_and_no_column_is_lost(every, lines, tmp_path, capsys):
    """Every so many columns is constant, and others are measured."""
    table = pd.DataFrame({f"v{k}x": DRAW.normal(size=20) if k % every else 1.5 for k in range(1, 701)})
    table.insert(0, "time", range(20))
    table.to_csv(tmp_path / "t.csv", index=False)
    main(["info", str(tmp_path / "t.csv")])
    rows = of_columns(capsys.readouterr().out)
    folded = {role: int(name.split()[1].replace(",", "")) for name, role, _ in rows if name.startswith("... ")}
    shown = [(name, role) for name, role, _ in rows if not name.startswith("... ")]
    assert len(rows) <= lines and [name for name, _ in shown[:2]] == ["time", "v1x"]
    for role, count in (("value", 700 - 700 // every), ("not read", 700 // every)):
        assert folded.get(role, 0) + sum(one == role for _, one in shown) == count


def test_many_different_remarks_are_folded_by_role():
    lines = [(f"c{k}", ("not read", "value")[k % 2], f"remark {k}") for k in range(90)]
    folded = info._folded(lines)
    assert len(folded) <= 40 and folded[0] == lines[0] and folded[-1][0].endswith("more")
    assert info._folded(lines[:40]) == lines[:40]


def test_names_and_cells_of_any_length_stay_on_their_line(tmp_path, capsys):
    name = "the temperature of the\nliving room in the morning"
    table = pd.DataFrame({"time": range(30), name: range(30), "note": "a long\nremark " * 9, "who": [*"ab"] * 15})
    table.assign(flow=DRAW.normal(size=30)).to_parquet(tmp_path / "t.parquet")
    main(["info", str(tmp_path / "t.parquet")])
    rows = of_columns(capsys.readouterr().out)
    assert len(rows) == 5 and rows[1][0] == "the temperatur…n the morning"
    assert rows[2][2] == "one value: a long remark a…k a long remark"


def test_the_printed_command_reads_as_info_did(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("id,time,a,b\n" + "".join(f"{i % 3},{i},{i},{-i}\n" for i in range(30)))
    options = ["--wide", "--values", "a", "b", "--tokens", "time", "--duplicates", "mean"]
    main(["info", str(tmp_path / "t.csv"), *options])
    said = capsys.readouterr().out.splitlines()[-1]
    assert "--wide" in said and "--tokens time" in said and "--duplicates mean" in said


def test_objects_may_have_columns_that_are_called_like_those_of_the_observations(table, tmp_path, capsys):
    objects = pd.read_csv(table).groupby("star", as_index=False).agg({"flux": "mean", "band": "first", "kind": "first"})
    objects.assign(size=np.arange(12) % 5).to_csv(tmp_path / "objects.csv", index=False)
    main(["info", str(table), "--objects", str(tmp_path / "objects.csv")])
    assert "--values flux" in (said := capsys.readouterr().out.splitlines()[-1]) and "--static size --" in said


def test_duplicates_are_counted_and_the_command_says_what_becomes_of_them(tmp_path, capsys):
    rows = [f"{p},{h},{80 + k}" for p in range(12) for k, h in enumerate((1, 2, 2, 3))]
    (tmp_path / "twice.csv").write_text("\n".join(["patient,hour,value", *rows]))
    main(["info", str(tmp_path / "twice.csv"), "--values", "value"])
    said = capsys.readouterr().out
    assert "12 of 48 rows (25%) repeat the series, time and channel of another" in said
    assert "--duplicates" not in said.splitlines()[-1]  # what merges is never proposed


def test_decimal_commas_dates_and_a_column_per_channel(tmp_path, capsys):
    rows = [
        "patient;Datum;hr;temp",
        *(f"{p};2024-01-0{d} 10:00;{80 + d},5;37,{p + d}" for p in (1, 2) for d in range(1, 6)),
    ]
    (tmp_path / "wide.csv").write_text("\n".join(rows))
    main(["info", str(tmp_path / "wide.csv"), "--time", "Datum"])
    said = capsys.readouterr().out
    assert "--values hr temp --wide" in said and "2024-01-01 10:00" in said and "1 days" in said
    assert "81.5, 82.5, 83.5, 84.5, 85.5" in said and "37.2, 37.3" in said  # never pooled over units


def test_columns_that_are_no_channels_are_facts_or_groups(tmp_path, capsys):
    rows = [
        "stay,patient,hour,hr,age,sex",
        *(f"{s},{s // 2},{h},{80 + s + h},{50 + s},f" for s in range(4) for h in (1, 2)),
    ]
    (tmp_path / "wide.csv").write_text("\n".join(rows))
    main(["info", str(tmp_path / "wide.csv")])
    said = " ".join(capsys.readouterr().out.split())
    assert "--id stay" in said and "--values hr --out run" in said  # without labels, no fact has an effect
    assert "one value per series: --static" in said and "sex not read one value: f" in said
    assert "repeats across series, which a random split puts on both sides: --split-by?" in said


def test_what_cannot_be_guessed_is_asked_for(tmp_path, capsys):
    (tmp_path / "odd.csv").write_text("foo,bar\n1,2\n")
    with pytest.raises(SystemExit) as stop:
        main(["info", str(tmp_path / "odd.csv")])
    assert stop.value.code == 2
    assert "no column looks like time; name it by --time" in capsys.readouterr().err


def test_control_codes_of_names_do_not_reach_the_terminal(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("id,time,band,value\n" + "".join(f"a,{i},\x1b[31mred,{i}\n" for i in range(3)))
    main(["info", str(tmp_path / "t.csv"), "--channel", "band"])
    shown = capsys.readouterr().out
    assert "\x1b" not in shown and shown.count("\\x1b[31mred") == 6  # of columns, channels, values and the first rows


def test_the_only_dates_are_the_time_and_words_among_numbers_are_named(tmp_path, capsys):
    rows = [f"m{i % 2},2024-03-{1 + i:02d},{i}.5,{'bad' if i == 3 else i}" for i in range(20)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["machine,when,load,temp", *rows]) + "\n")
    main(["info", str(path)])
    said, aside = capsys.readouterr()
    assert not aside  # each warning is said once
    assert "--time when" in said
    assert "1 cells of 'temp' cannot be read: 'bad' 1; they are left out" in said


def test_a_table_larger_than_memory_is_described_by_a_sample_which_is_said(tmp_path, monkeypatch):
    draw, n = np.random.default_rng(0), 4000
    columns = {"id": draw.integers(0, 50, n), "time": draw.random(n), "channel": draw.integers(0, 3, n)}
    pd.DataFrame(columns | {"value": draw.random(n)}).to_parquet(tmp_path / "t.parquet")
    with pytest.warns(InputWarning, match="not ascending"):
        plain, mapped = (
            SeriesDataset.from_file(tmp_path / "t.parquet", channel="channel", memory=m) for m in (None, 0)
        )
    schema = TableSchema(channel="channel")
    assert info._contents(mapped, schema) == info._contents(plain, schema)
    monkeypatch.setattr(info, "DESCRIBED_OBSERVATIONS", 800)
    said, whole = (dict(info._contents(dataset, schema)) for dataset in (mapped, plain))
    assert said["sample"] == "gaps and values are those of 10 series"
    assert [said[name] == whole[name] for name in ("series", "times", "channels", "gaps")] == [True, True, True, False]


def test_columns_are_aligned_where_characters_are_two_wide(tmp_path, capsys):
    rows = "".join(f"養殖池{i % 2},2024-05-{i:02d},{i}.5\n" for i in range(1, 25))
    (tmp_path / "池.csv").write_text(f"池,日時,水温\n{rows}", encoding="utf-8")
    main(["info", str(tmp_path / "池.csv")])
    lines = capsys.readouterr().out.splitlines()
    start = cell_len(lines[2].partition("taken as")[0])
    assert lines[3].startswith("池 ")
    assert all(
        cell_len(line.partition(role)[0]) == start for line, role in zip(lines[3:6], ("not read", "time", "value"))
    )
    first = lines[lines.index("the first rows, as they are understood:") + 1 :][:4]
    assert len({*map(cell_len, first)}) == 1
