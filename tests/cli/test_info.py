"""rotarymae info: guesses columns by their names, counts what is there, and prints a command that works."""

import shlex

import numpy as np
import pandas as pd
import pytest

from rotarymae.cli import info
from rotarymae.cli.main import main
from rotarymae.errors import InputWarning
from rotarymae.series import SeriesDataset


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
    assert "81.5 to 85.5" in said and "37.2 to 37.7" in said  # never pooled over units


def test_columns_that_are_no_channels_are_facts_or_groups(tmp_path, capsys):
    rows = [
        "stay,patient,hour,hr,age,sex",
        *(f"{s},{s // 2},{h},{80 + s + h},{50 + s},f" for s in range(4) for h in (1, 2)),
    ]
    (tmp_path / "wide.csv").write_text("\n".join(rows))
    main(["info", str(tmp_path / "wide.csv")])
    said = " ".join(capsys.readouterr().out.split())
    assert "--id stay" in said and "--values hr --out run" in said  # without labels, no fact has an effect
    assert "--static age is left out, as it has no effect without labels" in said  # sex is the same in all
    assert "'patient' repeats across series" in said and "--split-by patient?" in said


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
    assert "\x1b" not in shown and shown.count("\\x1b[31mred") == 5  # of channels, values and the first rows


def test_the_only_dates_are_the_time_and_words_among_numbers_are_named(tmp_path, capsys):
    rows = [f"m{i % 2},2024-03-{1 + i:02d},{i}.5,{'bad' if i == 3 else i}" for i in range(20)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["machine,when,load,temp", *rows]) + "\n")
    main(["info", str(path)])
    said, aside = capsys.readouterr()
    assert not aside  # each warning is said once
    assert "time when" in said and "--time when" in said
    assert "1 cells of 'temp' cannot be read: 'bad' 1; they are left out" in said


def test_a_table_larger_than_memory_is_described_by_a_sample_which_is_said(tmp_path, monkeypatch):
    draw, n = np.random.default_rng(0), 4000
    columns = {"id": draw.integers(0, 50, n), "time": draw.random(n), "channel": draw.integers(0, 3, n)}
    pd.DataFrame(columns | {"value": draw.random(n)}).to_parquet(tmp_path / "t.parquet")
    with pytest.warns(InputWarning, match="not ascending"):
        plain, mapped = (
            SeriesDataset.from_file(tmp_path / "t.parquet", channel="channel", memory=m) for m in (None, 0)
        )
    assert info._contents(mapped) == info._contents(plain)
    monkeypatch.setattr(info, "DESCRIBED_OBSERVATIONS", 800)
    said, whole = dict(info._contents(mapped)), dict(info._contents(plain))
    assert said["sample"] == "gaps and values are those of 10 series"
    assert [said[name] == whole[name] for name in ("series", "times", "channels", "gaps")] == [True, True, True, False]
