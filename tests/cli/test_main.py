"""The command: every kind of bad input through it and through Python; its tables, models and exit codes."""

import dataclasses
import importlib
import io
import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import torch

from conftest import TINY, command, refuses, two_kinds, write_csv
from rotarymae import RoMAEClassifier, RoMAEInterpolator, SeriesDataset
from rotarymae import run_folder as outputs
from rotarymae.cli import main as cli
from rotarymae.cli.evaluate import _warn_of_training_series
from rotarymae.cli.output import print_table
from rotarymae.errors import InputWarning
from rotarymae.interpolation import Interpolation
from rotarymae.likelihoods import LIKELIHOODS
from rotarymae.partners import Predictor
from rotarymae.pipeline import Pipeline
from rotarymae.report.content import Table
from rotarymae.system import Reporter
from rotarymae.tables import TableReader, TableSchema, read_table

FAST = {"pretrain_epochs": 1, "min_steps": 0, "batch_size": 8}
STARS = ["--id", "star", "--time", "day", "--channel", "band", "--values", "flux"]


def table(path):
    return pq.read_table(path) if path.suffix == ".parquet" else pyarrow.csv.read_csv(path)


def contents(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def says_all(text, parts):
    return [part for part in parts if str(part) not in " ".join(text.split())] == []


# ── bad tables and labels: through Python and through the command ───────────────────────────────────────────────────

GOOD = ["a,1,2", "a,2,3", "b,1,2", "b,3,5"]
TABLES = {
    "missing values": (["a,1,", "a,2,", "b,1,"], {}, ["'value'", "missing"]),
    "text for a number": (["a,1,2", "a,2,high"], {"strict": True}, ["'value'", "'high'"]),
    "duplicates": (["a,1,2", "b,7,3", "b,7,4"], {}, ["'b'", "at time 7", "2 observations"]),
    "unknown column": (GOOD, {"values": ["vaule"]}, ["'vaule'", "'value'"]),
}


@pytest.mark.parametrize("case", TABLES)
def test_bad_tables(case, tmp_path, capsys):
    rows, options, parts = TABLES[case]
    path = tmp_path / "table.csv"
    path.write_text("\n".join(["id,time,value", *rows]) + "\n")
    with refuses(*parts[:1]) as caught:
        RoMAEInterpolator(**FAST).fit(SeriesDataset.from_file(path, **options))
    assert says_all(str(caught.value), parts)
    given = [
        word
        for name, to in options.items()
        for word in (f"--{name}", *([] if to is True else [to] if isinstance(to, str) else to))
    ]
    assert command("fit", path, "--out", tmp_path / "run", *given, *TINY) == 2
    assert says_all(capsys.readouterr().err, parts)
    assert contents(tmp_path) == ["table.csv"]


OPTIONS = {
    "column of labels": (["--labels", "{labels}", "--label", "lable"], ["'lable'", "'label'"]),
    "words for a regression": (["--labels", "{labels}", "--task", "regression"], ["'x'", "number"]),
    "one class": (["--labels", "{labels}", "--na", "y"], ["'x'", "2 classes"]),
    "transform": (["--transforms", "value", "asin"], ["asin", "asinh"]),
    "column of a transform": (["--transforms", "flux", "asinh"], ["'flux'", "value"]),
    "unit of time": (["--time-unit", "-1"], ["-1", "more than 0"]),
    "mask ratio": (["--mask-ratio", "0.9", "0.2"], ["0.9", "0.2", "the smallest and the largest"]),
    "holdout": (["--holdout", "1.2"], ["holdout", "1.2"]),
    "learning rate": (["--base-lr", "0"], ["base_lr", "more than 0"]),
    "epochs": (["--pretrain-epochs", "0"], ["epochs", "at least 1"]),
    "drop": (["--drop", "1.5"], ["drop", "1.5"]),
    "noise": (["--noise", "-1"], ["noise", "-1"]),
    "channels that are none": (["--masking", "channels"], ["channels"]),
    "wide and long": (["--wide", "--channel", "value"], ["--channel", "--wide"]),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_bad_options_are_refused_before_anything_is_written(case, tmp_path, capsys):
    options, parts = OPTIONS[case]
    path = write_csv(tmp_path / "table.csv", "id,time,value", [row.split(",") for row in GOOD])
    labels = write_csv(tmp_path / "labels.csv", "id,label", [("a", "x"), ("b", "y")])
    options = [option.format(labels=labels) for option in options]
    assert command("fit", path, "--out", tmp_path / "run", *options) == 2
    assert says_all(capsys.readouterr().err, parts)
    assert contents(tmp_path) == ["labels.csv", "table.csv"]


def test_what_can_be_repaired_is_repaired_with_a_warning(tmp_path, capsys):
    rows = ["a,3,u,2", "a,1,u,2", "b,2,u,2", "b,4,v,9", "b,5,v,8"]
    path = write_csv(tmp_path / "table.csv", "id,time,channel,value", [row.split(",") for row in rows])
    with pytest.warns(InputWarning) as caught:
        SeriesDataset.from_file(path, channel="channel").warn_constant_channels()
    wanted = ["not ascending", "'a'", "constant", "channel 'u'"]
    assert says_all(" ".join(str(warning.message) for warning in caught), wanted)
    # Warnings are not "nothing": they are printed in spite of --quiet.
    options = ["--channel", "channel", *TINY[:2], *TINY[4:], "--quiet"]
    assert command("fit", path, "--out", tmp_path / "run", *options) == 0
    assert says_all(capsys.readouterr().err, wanted)
    kept = json.loads((tmp_path / "run/metrics.json").read_text())["warnings"]
    assert len(kept) == 2 and "channel 'u'" in (tmp_path / "run/report.html").read_text().replace("&#39;", "'")


# ── words on the command line ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("arguments", "nearest"),
    [
        (["fit", "t.csv", "--out", "run", "--chanel", "band"], "--channel"),
        (["fit", "t.csv", "--out", "run", "--pretrain-epoch", "3"], "--pretrain-epochs"),
        (["predict", "run", "t.csv", "--out", "p.csv", "--quite"], "--quiet"),
        (["interpolate", "run", "t.csv", "--out", "p.csv", "--gird", "5"], "--grid"),
        (["embed", "run", "t.csv", "--out", "p.csv", "--pol", "cls"], "--pool"),
        (["demo", "--seeds", "1"], "--seed"),
        (["fitt"], "fit"),
        (["prdict", "run", "t.csv"], "Did you mean 'predict'?"),
        (["fit", "t.csv", "--out", "run", "--size", "tinny"], "tiny"),
    ],
)
def test_an_unknown_option_names_the_nearest(arguments, nearest, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command(*arguments) == 2
    printed = capsys.readouterr()
    assert nearest in printed.out + printed.err
    assert contents(tmp_path) == []


def test_a_version_and_a_wrong_option_are_answered_without_torch():
    code = """
import sys
from rotarymae.cli import main as cli
cli.main(["--version"])
for name in ("fit", "predict", "interpolate", "embed", "explain"):
    try:
        cli.main([name, "run", "table.csv", "--out", "new.csv", "--quite"])
    except SystemExit as end:
        print(end.code, "torch" in sys.modules)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.startswith("rotarymae 0.") and out.count("2 False\n") == 5


def test_options_of_labels_need_labels(tmp_path, capsys):
    path = write_csv(tmp_path / "table.csv", "id,time,value", [row.split(",") for row in GOOD])
    assert command("fit", path, "--out", tmp_path / "run", "--label-id", "star") == 2
    assert says_all(capsys.readouterr().err, ["--label-id star", "--labels"])
    assert command("fit", path, "--out", tmp_path / "run", "--label", "kind") == 2
    assert says_all(capsys.readouterr().err, ["no column 'kind'", "'id', 'time', 'value'"])


def test_options_without_effect_are_said(tmp_path, capsys):
    path = write_csv(tmp_path / "table.csv", "id,time,value", [row.split(",") for row in GOOD])
    options = ["--tune", "probe", "--class-weights", "balanced"]
    assert command("fit", path, "--out", tmp_path / "run", *options, *TINY[:2], "--min-steps", "0") == 0
    assert "tune, class_weights concern labels, and there are none" in " ".join(capsys.readouterr().err.split())
    assert command("fit", path, "--out", tmp_path / "other", "--patch-size", "8") == 2
    assert says_all(capsys.readouterr().err, ["--patch-size", "--images or --audio"])


def test_files_as_ids_with_labels_and_a_split_in_the_table(tmp_path, capsys):
    rows, labels = two_kinds(channels=("g",))
    (tmp_path / "files").mkdir()
    for star, kind in labels.items():
        own = [
            (day, flux, kind, "train" if int(star[-2:]) < 16 else "test") for name, day, _, flux in rows if name == star
        ]
        write_csv(tmp_path / "files" / f"{star[-2:]}.csv", "day,flux,kind,part", own)
    options = ["--id", "file", "--time", "day", "--values", "flux", "--label", "kind", "--split-by", "part"]
    assert command("fit", tmp_path / "files", "--out", tmp_path / "run", *options, *TINY) == 0
    predictions = table(tmp_path / "run" / "predictions.parquet").to_pydict()
    assert predictions["file"][:2] == ["00", "01"] and predictions["label"][:2] == ["a", "b"]
    assert predictions["part"].count("test") == 8
    assert (
        command("evaluate", tmp_path / "run", tmp_path / "files", "--label", "kind", "--out", tmp_path / "e.json") == 0
    )


def test_a_folder_in_which_series_go_on_from_file_to_file(fitted, tmp_path, capsys):
    rows = two_kinds()[0]
    (tmp_path / "nights").mkdir()
    for night, own in (("a", rows[::2]), ("b", rows[1::2])):
        write_csv(tmp_path / "nights" / f"{night}.csv", "star,day,band,flux", own)
    assert command("predict", fitted / "run", tmp_path / "nights", "--out", tmp_path / "answers") == 0
    assert says_all(" ".join(capsys.readouterr().err.split()), ["24 of 48 rows", "several files", ".parquet"])


def test_a_value_that_is_called_as_a_deviation_is(tmp_path):
    rows = [(star, day, flux, 2.0 + flux) for star, day, _, flux in two_kinds(channels=("g",))[0]]
    path = write_csv(tmp_path / "t.csv", "id,time,flux,flux_std", rows)
    assert command("fit", path, "--out", tmp_path / "run", "--values", "flux", "flux_std", *TINY) == 0
    found = table(tmp_path / "run" / "interpolations.parquet").to_pydict()
    assert {"flux", "flux_predicted_std", "flux_std", "flux_std_std", "flux_std_observed"} <= set(found)


def test_a_model_of_dates_in_text_reads_dates(tmp_path):
    rows = two_kinds(channels=("g",))[0]
    frame = pd.DataFrame(rows, columns=["id", "time", "channel", "value"]).drop(columns="channel")
    frame["time"] = (pd.Timestamp("2024-01-01") + pd.to_timedelta(frame["time"], "D")).dt.floor("s")
    frame.assign(time=frame["time"].dt.strftime("%d.%m.%Y %H:%M:%S")).to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    options = ["--time-format", "%d.%m.%Y %H:%M:%S", *TINY]
    assert command("fit", tmp_path / "t.csv", "--out", tmp_path / "run", *options) == 0
    for kind in ("csv", "parquet"):
        assert command("embed", tmp_path / "run", tmp_path / f"t.{kind}", "--out", tmp_path / f"{kind}.parquet") == 0
    one, other = (table(tmp_path / f"{kind}.parquet") for kind in ("csv", "parquet"))
    assert np.allclose(one["e0"], other["e0"])


def test_labels_are_a_column_of_the_table_itself_and_channels_all_others(tmp_path, capsys):
    """A German hospital's file: semicolons, decimal commas, dates of the country, its own word for missing."""
    rows = [
        (p, f"{d:02d}.03.2024", f"{60 + 3 * p + d},5", "-" if d == 3 else "36,6", "mw"[p % 2])
        for p in range(6)
        for d in (1, 3, 4)
    ]
    path = tmp_path / "ward.csv"
    path.write_text("id;time;pulse;warmth;sex\n" + "".join(";".join(map(str, row)) + "\n" for row in rows))
    how = ["--wide", "--na", "-", "--time-format", "%d.%m.%Y", "--label", "sex"]
    assert command("fit", path, "--out", tmp_path / "run", *how, *TINY) == 0
    said = ["6 of 36 cells dropped: 'warmth' is missing in 6", "taken as UTC", "separated by ';', decimal commas"]
    assert all(part in " ".join(capsys.readouterr().err.split()) for part in said[:1])
    metrics = json.loads((tmp_path / "run/metrics.json").read_text())
    assert metrics["preprocessing"]["channels"] == ["pulse", "warmth"]
    assert [part for part in said if part in metrics["reading"]["summary"]] == said
    assert command("predict", tmp_path / "run", path, "--out", tmp_path / "out.csv", "--quiet") == 0
    assert set(table(tmp_path / "out.csv")["predicted"].to_pylist()) <= {"m", "w"}
    asked = ["--times", "2024-03-02T12:00", "19787.25", "--out", tmp_path / "at.parquet", "--quiet"]
    assert command("interpolate", tmp_path / "run", path, *asked) == 0
    times = [str(time) for time in table(tmp_path / "at.parquet")["time"].to_pylist()]
    assert set(times) == {"2024-03-02 12:00:00+00:00", "2024-03-05 06:00:00+00:00"}
    assert command("interpolate", tmp_path / "run", path, "--times", "Easter", "--out", tmp_path / "no.csv") == 2


def test_a_label_is_no_channel_where_another_table_gives_it(tmp_path):
    rows, labels = two_kinds()
    wide = [(star, day, flux, int(labels[star] == "a")) for star, day, _, flux in rows if star != "star 00"]
    path = write_csv(tmp_path / "wide.csv", "id,time,flux,label", dict.fromkeys(wide))
    kinds = write_csv(tmp_path / "kinds.csv", "id,label", labels.items())
    how = ["--wide", "--duplicates", "first", "--labels", kinds, *TINY, "--quiet"]
    assert command("fit", path, "--out", tmp_path / "run", *how) == 0
    assert json.loads((tmp_path / "run/metrics.json").read_text())["preprocessing"]["channels"] == ["flux"]


def test_a_table_without_ids_is_one_series_where_nothing_else_could_hold_them(tmp_path, capsys):
    bare = write_csv(tmp_path / "machine.csv", "time,value", [(t, t % 3) for t in range(9)])
    assert command("fit", bare, "--out", tmp_path / "run", *TINY) == 0
    assert command("embed", tmp_path / "run", bare, "--out", tmp_path / "e.csv", "--quiet") == 0
    assert table(tmp_path / "e.csv")["id"].to_pylist() == ["machine"]
    each = ["--out", tmp_path / "f.csv", "--id", "file", "--quiet"]
    assert command("embed", tmp_path / "run", bare, *each) == 0
    assert table(tmp_path / "f.csv")["file"].to_pylist() == ["machine"]
    other = write_csv(tmp_path / "other.csv", "star,time,value", [("a", 1, 2), ("b", 1, 2)])
    assert command("fit", other, "--out", tmp_path / "run2", *TINY) == 2
    assert says_all(capsys.readouterr().err, ["no column 'id'", "'star'", "--id file"])


def test_labels_of_some_series_in_the_table_itself(tmp_path, capsys):
    rows, labels = two_kinds()
    kinds = {name: "" if i % 3 == 0 else kind for i, (name, kind) in enumerate(labels.items())}
    path = write_csv(tmp_path / "stars.csv", "star,day,band,flux,kind", [(*row, kinds[row[0]]) for row in rows])
    assert command("fit", path, "--out", tmp_path / "run", *STARS, "--label", "kind", *TINY) == 0
    assert says_all(capsys.readouterr().err, ["8", "24"])
    found = pq.read_table(tmp_path / "run/predictions.parquet").to_pylist()
    assert {row["star"]: row["label"] or "" for row in found} == kinds
    assert {row["star"] for row in found if row["part"] == "unlabelled"} == {name for name in kinds if not kinds[name]}
    metrics = json.loads((tmp_path / "run/metrics.json").read_text())
    assert metrics["series"]["unlabelled"] == 8 and sum(metrics["series"].values()) == 24
    given = ["--out", tmp_path / "leak", *STARS, "--label", "kind", "--static", "kind", *TINY]
    assert command("fit", path, *given) == 2
    assert says_all(capsys.readouterr().err, ["'kind'"])


def test_evaluate_scores_a_labelled_table_as_the_run_did(fitted, tmp_path, capsys):
    found = pq.read_table(fitted / "run/predictions.parquet").to_pylist()
    labels = write_csv(
        tmp_path / "held.csv", "star,kind", [(r["star"], r["label"]) for r in found if r["part"] == "test"]
    )
    given = [fitted / "run", fitted / "stars.csv", "--out", tmp_path / "m.json", "--label", "kind"]
    assert command("evaluate", *given, "--labels", labels) == 0
    said = capsys.readouterr()
    assert says_all(said.out, ["6", "24", "accuracy", "95 % intervals of"]) and "trained or chosen on" not in said.err
    metrics, run = (json.loads(path.read_text()) for path in (tmp_path / "m.json", fitted / "run/metrics.json"))
    assert metrics["series"] == {"labelled": 6, "unlabelled": 18}
    assert metrics["predictor"] == run["predictor"] and run["predictor"]["chosen"] in metrics["classification"]
    for method, ours in metrics["classification"].items():
        theirs = run["classification"][method]
        assert {name: pytest.approx(theirs[name]) for name in ours} == ours
    every = write_csv(tmp_path / "all.csv", "star,kind", [(r["star"], r["label"]) for r in found])
    assert command("evaluate", fitted / "run", fitted / "stars.csv", "--label", "kind", "--labels", every) == 0
    assert says_all(capsys.readouterr().err, ["18 of 24 series", "trained or chosen on"])
    assert command("evaluate", fitted / "run", fitted / "stars.csv") == 2
    assert says_all(capsys.readouterr().err, ["--label", "--labels"])
    other = write_csv(tmp_path / "other.csv", "star,kind", [("star 00", "z")])
    assert command("evaluate", fitted / "run", fitted / "stars.csv", "--labels", other, "--label", "kind") == 2
    assert says_all(capsys.readouterr().err, ["z", "'a', 'b'"])


def test_damaged_predictions_do_not_keep_a_run_from_being_scored(tmp_path):
    (tmp_path / "predictions.parquet").write_bytes(b"PAR1 no table PAR1")
    with pytest.warns(InputWarning, match="predictions.parquet is damaged"):
        _warn_of_training_series(tmp_path, np.array(["a"]))


def test_evaluate_scores_forecasts(fitted, tmp_path, capsys):
    given = [fitted / "run", fitted / "stars.csv", "--horizon", "2"]
    assert command("evaluate", *given, "--out", tmp_path / "m.json") == 0
    said = capsys.readouterr()
    assert says_all(said.out, ["up to 2 ahead", "last value", "seasonal naive", "drift", "mean so far", "inside"])
    metrics = json.loads((tmp_path / "m.json").read_text())
    assert metrics["series"] == 24 and metrics["horizon"] == "2"
    (row,) = metrics["interpolation"].values()
    assert row["hidden_observations"] > 24 and set(row["methods"]) > {"model", "last_value", "drift"}
    for other in ("--label", "--label-id", "--event"):
        assert command("evaluate", *given, other, "kind") == 2
        assert says_all(capsys.readouterr().err, ["--horizon", f"leave out {other}."])
    (tmp_path / "file").touch()
    assert command("evaluate", *given, "--out", tmp_path / "file" / "m.json") == 2
    assert says_all(capsys.readouterr().err, ["file, not a folder"])
    saved = shutil.copytree(fitted / "run/model", tmp_path / "saved")
    pq.write_table(pa.table({"star": ["star 00"], "predicted": ["a"]}), saved / "predictions.parquet")  # of a user
    assert command("evaluate", saved, *given[1:], "--quiet") == 0
    assert command("evaluate", fitted / "run", fitted / "stars.csv", "--horizon", "soon") == 2
    assert says_all(capsys.readouterr().err, ["--horizon soon"])


def test_evaluate_warns_of_the_series_that_a_model_without_labels_was_trained_on(tmp_path, capsys):
    path = write_csv(tmp_path / "stars.csv", "star,day,band,flux", two_kinds()[0])
    assert command("fit", path, "--out", tmp_path / "run", *STARS, *TINY) == 0
    parts = table(tmp_path / "run/predictions.parquet")
    assert parts.column_names == ["star", "part"] and parts["part"].to_pylist().count("test") == 6
    assert command("evaluate", tmp_path / "run", path, "--horizon", "2") == 0
    assert says_all(capsys.readouterr().err, ["18 of 24 series", "trained or chosen on"])
    assert command("evaluate", tmp_path / "run", path) == 2
    assert says_all(capsys.readouterr().err, ["not fine-tuned", "--horizon"])


def test_python_m_is_the_command():
    out = subprocess.run([sys.executable, "-m", "rotarymae", "--version"], capture_output=True, text=True, check=True)
    assert out.stdout.startswith("rotarymae 0.")


# ── what a run writes, and what the other commands make of it ───────────────────────────────────────────────────────


def test_fit_writes_all_that_it_promises(fitted):
    names = {path.name for path in (fitted / "run").iterdir()}
    assert names == {
        "model", "training", "metrics.json", "report.html",
        "predictions.parquet", "embeddings.parquet", "interpolations.parquet",
    }  # fmt: skip
    metrics = json.loads((fitted / "run/metrics.json").read_text())
    assert metrics["series"] == {"train": 15, "validation": 3, "test": 6}
    others = {"combined", "features", "most_common_class"}
    assert set(metrics["classification"]) == {"model", *others}
    assert metrics["predictor"]["chosen"] in metrics["classification"]
    predictions = pq.read_table(fitted / "run/predictions.parquet")
    assert predictions.column_names == ["star", "part", "label", "predicted", "probability_a", "probability_b"]
    _, labels = two_kinds()
    assert dict(zip(predictions["star"].to_pylist(), predictions["label"].to_pylist(), strict=True)) == labels


def test_predict_gives_the_predictions_of_the_run(fitted, tmp_path):
    assert command("predict", fitted / "run", fitted / "stars.csv", "--out", tmp_path / "p.parquet", "--quiet") == 0
    ours, theirs = table(tmp_path / "p.parquet"), table(fitted / "run/predictions.parquet")
    tested = pc.not_equal(theirs["part"], "validation")  # where methods answer that have not learnt the series
    assert ours.filter(tested).equals(theirs.filter(tested).select(ours.column_names))
    assert ours.filter(pc.invert(tested)) != theirs.filter(pc.invert(tested)).select(ours.column_names)


def test_predict_scores_anomalies(fitted, tmp_path, capsys):
    rows = [row for row in two_kinds()[0] if row[0] < "star 04"] + [("star 9", 1, "g", 2.0)]
    rows += [("odd", *row[1:3], 1e3 * (-1) ** i) for i, row in enumerate(rows[:10])]
    path = write_csv(tmp_path / "new.csv", "star,day,band,flux", rows)
    for i, (model, said) in enumerate({"run": "6 predictions", "autoencoder": "6 anomaly scores"}.items()):
        out = tmp_path / f"{i}.parquet"
        assert command("predict", fitted / model, path, "--anomaly-score", "--out", out) == 0
        assert says_all(capsys.readouterr().err, [said])
    given = [fitted / "autoencoder", path, "--anomaly-score", "--predictor", "features", "--out", tmp_path / "no.csv"]
    assert command("predict", *given) == 2  # there is nothing that the option could choose
    assert says_all(capsys.readouterr().err, ["not fine-tuned"])
    both, alone = (table(tmp_path / f"{i}.parquet").to_pydict() for i in range(2))
    assert alone == {name: both[name] for name in ("star", "anomaly_score")} and len(both) == 5
    found = dict(zip(both["star"], both["anomaly_score"], strict=True))
    assert found.pop("star 9") is None and max(found, key=found.get) == "odd"


def test_predict_by_another_predictor(fitted, tmp_path, capfd):
    """Each is another's prediction; what was not fitted is refused."""
    run, found = fitted / "run", []
    for predictor in ("model", "features", "combined"):
        out = tmp_path / f"{predictor}.parquet"
        assert command("predict", run, fitted / "stars.csv", "--out", out, "--predictor", predictor, "--quiet") == 0
        found.append(table(out)["probability_a"].to_pylist())
    assert len({tuple(column) for column in found}) == 3
    out = tmp_path / "none.parquet"
    alone = Pipeline.load(run)
    dataclasses.replace(alone, partners=Predictor.of_model("classification", "it was fitted so")).save(
        tmp_path / "alone"
    )
    assert command("predict", tmp_path / "alone", fitted / "stars.csv", "--out", out, "--predictor", "combined") == 2
    message = capfd.readouterr().err
    assert "'combined'" in message and "'model'" in message and "it was fitted so" in message
    assert not out.exists()


def test_quiet_prints_nothing(fitted, tmp_path, capfd):
    run, stars = fitted / "run", fitted / "stars.csv"
    for name, options in (("predict", []), ("interpolate", ["--grid", "3"]), ("embed", []), ("explain", [])):
        assert command(name, run, stars, "--out", tmp_path / f"{name}.csv", *options, "--quiet") == 0
    assert capfd.readouterr() == ("", "")
    assert command("embed", run, stars, "--out", tmp_path / "again.csv") == 0
    assert "24 embeddings of 24 numbers" in capfd.readouterr().err


@pytest.mark.parametrize(("name", "called"), [("objectid", "objectid"), ("e1", "id"), ("time", "id")])
def test_ids_are_called_as_in_the_table_unless_an_answer_is(fitted, tmp_path, name, called):
    rows = [row for row in two_kinds()[0] if row[0] < "star 03"]
    path = write_csv(tmp_path / "new.csv", f"{name},day,band,flux", rows)
    for job in ("predict", "embed", "interpolate"):
        out = tmp_path / f"{job}.parquet"
        assert command(job, fitted / "run", path, "--id", name, "--out", out, "--quiet") == 0
        clash = {"embed": "e1", "interpolate": "time"}.get(job) == name
        assert table(out).column_names[0] == (called if clash else name)
        assert set(table(out).column(0).to_pylist()) == {"star 00", "star 01", "star 02"}
        assert len(set(table(out).column_names)) == table(out).num_columns


def test_explain_writes_a_row_per_observation(fitted, tmp_path, capfd):
    run, out = fitted / "run", tmp_path / "importance.parquet"
    assert command("explain", run, fitted / "stars.csv", "--out", out) == 0
    stars = SeriesDataset.from_file(fitted / "stars.csv", "star", "day", "band", ["flux"])
    assert f"{len(stars.times):,} observations of 24 series" in capfd.readouterr().err
    found, model = pq.read_table(out).to_pandas(), RoMAEClassifier.load(run, predictor="model")
    assert found.columns.tolist() == ["star", "time", "channel", "flux", "importance", "predicted"]
    assert (
        found.star.tolist() == np.repeat(stars.ids, stars.lengths).tolist() and (found.flux == stars.values[:, 0]).all()
    )
    assert np.allclose(found.importance, np.concatenate(model.pipeline_.importance(stars)))
    best = model.classes_[model.pipeline_.outputs(stars).argmax(1)]
    assert found.predicted.tolist() == np.repeat(best, stars.lengths).tolist()
    assert command("explain", fitted / "autoencoder", fitted / "stars.csv", "--out", tmp_path / "b.csv") == 2
    assert says_all(capfd.readouterr().err, ["model", "tuned", "rotarymae", "labels"])


def test_csv_and_parquet_hold_the_same(fitted, tmp_path):
    for name in ("predict", "interpolate", "embed"):
        for suffix in ("csv", "parquet"):
            out = tmp_path / f"{name}.{suffix}"
            assert command(name, fitted / "run", fitted / "stars.csv", "--out", out, "--quiet") == 0
        one, other = table(tmp_path / f"{name}.csv"), table(tmp_path / f"{name}.parquet")
        assert one.column_names == other.column_names and len(one) == len(other) > 0
        for column in one.column_names:
            a, b = one[column].to_pylist(), other[column].to_pylist()
            assert a == b or np.allclose(a, b, rtol=1e-6)


def test_interpolate_on_a_grid_at_times_and_at_a_table(fitted, tmp_path, capsys):
    run, stars = fitted / "run", fitted / "stars.csv"
    assert command("interpolate", run, stars, "--out", tmp_path / "grid.parquet", "--grid", "4", "--quiet") == 0
    grid = table(tmp_path / "grid.parquet").to_pydict()
    bands = ["flux_std", "flux_lower68", "flux_upper68", "flux_lower95", "flux_upper95"]
    assert list(grid) == ["star", "time", "channel", "flux", *bands, "distance"]
    assert len(grid["star"]) == 24 * 2 * 4
    order = [np.array(grid[name]) for name in ("flux_lower95", "flux_lower68", "flux", "flux_upper68", "flux_upper95")]
    assert all((a < b).all() for a, b in itertools.pairwise(order))
    rows, _ = two_kinds()
    of_first = [row[1] for row in rows if row[0] == "star 00"]
    assert np.allclose(grid["time"][:4], np.linspace(of_first[0], of_first[-1], 4))

    times = ["--times", "-1", "2.5", "1e1"]
    assert command("interpolate", run, stars, "--out", tmp_path / "times.csv", *times, "--quiet") == 0
    found = table(tmp_path / "times.csv").to_pydict()
    assert found["time"] == [-1, 2.5, 10] * 2 * 24 and found["channel"][:6] == ["g"] * 3 + ["r"] * 3
    last, first = max(of_first), min(of_first)
    seen = np.array([row[1] for row in rows if row[0] == "star 00" and row[2] == "g"])
    assert found["distance"][0] == pytest.approx(np.abs(seen + 1).min()) and last > 10 > first > -1

    # The same times from a table whose rows are in any order: the same values. Series not asked have none.
    asked = [(row["star"], row["time"], row["channel"]) for row in table(tmp_path / "times.csv").to_pylist()]
    asked = [row for row in asked if row[0] != "star 01"]
    shuffled = [asked[i] for i in np.random.default_rng(0).permutation(len(asked))]
    wanted = write_csv(tmp_path / "wanted.csv", "star,day,band", shuffled)
    assert command("interpolate", run, stars, "--out", tmp_path / "at.csv", "--at", wanted) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "138 values of 23 series" in said
    # Row for row in the order of the question, under its names.
    rows = table(tmp_path / "at.csv").to_pylist()
    assert [(row["star"], row["day"], row["band"]) for row in rows] == shuffled
    answer = {(row["star"], row["day"], row["band"]): row["flux"] for row in rows}
    known = {
        (row["star"], row["time"], row["channel"]): row["flux"] for row in table(tmp_path / "times.csv").to_pylist()
    }
    assert set(answer) == set(asked)
    assert max(abs(answer[place] - known[place]) for place in asked) < 1e-4

    # Without a column of channels, every time asks for all of them; "channel" is one in any case.
    one = write_csv(tmp_path / "one.csv", "star,day,channel", [("star 02", 2.5, "r")])
    assert command("interpolate", run, stars, "--out", tmp_path / "of one.csv", "--at", one, "--quiet") == 0
    assert table(tmp_path / "of one.csv")["channel"].to_pylist() == ["r"]
    every = write_csv(tmp_path / "every.csv", "star,day", [("star 02", 2.5), ("star 03", 10)])
    assert command("interpolate", run, stars, "--out", tmp_path / "all.csv", "--at", every, "--quiet") == 0
    rows = [(row["star"], row["day"], row["channel"]) for row in table(tmp_path / "all.csv").to_pylist()]
    assert rows == [("star 02", 2.5, "g"), ("star 02", 2.5, "r"), ("star 03", 10, "g"), ("star 03", 10, "r")]


AT = {
    "unknown series": ("star,day,band", [("star 99", 1, "g")], ["'star 99'"]),
    "unknown channel": ("star,day,band", [("star 00", 1, "z")], ["'z'", "g, r"]),
    "missing column": ("star,days,band", [("star 00", 1, "g")], ["'day'", "'days'"]),
    "missing channels": ("star,day,bnad", [("star 00", 1, "g")], ["'band'", "'bnad'"]),
    "missing time": ("star,day,band", [("star 00", "", "g"), ("star 00", 1, "g")], ["'day'", "missing in 1", "row 0"]),
}


@pytest.mark.parametrize("case", AT)
def test_bad_queries(case, fitted, tmp_path, capsys):
    header, rows, parts = AT[case]
    wanted = write_csv(tmp_path / "wanted.csv", header, rows)
    out = tmp_path / "out.csv"
    assert command("interpolate", fitted / "run", fitted / "stars.csv", "--out", out, "--at", wanted) == 2
    assert says_all(capsys.readouterr().err, parts)
    assert contents(tmp_path) == ["wanted.csv"]


@pytest.mark.parametrize("name", ["predict", "interpolate", "embed", "explain"])
def test_outputs_are_never_written_over(name, fitted, tmp_path, capsys):
    run, stars = fitted / "run", fitted / "stars.csv"
    mine = tmp_path / "mine.csv"
    mine.write_text("mine")
    assert command(name, run, stars, "--out", mine) == 2
    assert "exists" in capsys.readouterr().err and mine.read_text() == "mine"
    assert command(name, run, stars, "--out", tmp_path / "out.xlsx") == 2
    assert says_all(capsys.readouterr().err, [".xlsx", ".csv or .parquet"])
    assert command(name, run, stars, "--out", mine / "out.csv") == 2
    assert says_all(capsys.readouterr().err, ["mine.csv"])
    assert contents(tmp_path) == ["mine.csv"]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_table_that_cannot_be_finished_is_not_there(suffix, fitted, tmp_path, monkeypatch, capsys):
    def full(*_, **__):
        raise OSError("no space left on device")

    for kind in ("pyarrow.csv.CSVWriter", "pyarrow.parquet.ParquetWriter"):
        module, name = kind.rsplit(".", 1)
        writer = getattr(importlib.import_module(module), name)
        monkeypatch.setattr(kind, type("Full", (writer,), {"write_table": full}))
    assert command("embed", fitted / "run", fitted / "stars.csv", "--out", tmp_path / f"out.{suffix}", "--quiet") == 1
    assert capsys.readouterr().err == "rotarymae: no space left on device\n"
    assert contents(tmp_path) == []


@pytest.mark.parametrize("name", ["predict", "interpolate", "embed", "explain"])
def test_one_bad_row_does_not_refuse_the_others(fitted, tmp_path, name, capsys):
    """An unknown channel is dropped and counted; a series of which nothing is left has a row with its id alone."""
    rows, _ = two_kinds()
    rows[20] = (*rows[20][:2], "z", rows[20][3])
    rows = [*rows, ("star x", 1, "z", 0.5), ("star y", 1, "g", "")]
    mixed = write_csv(tmp_path / "mixed.csv", "star,day,band,flux", rows)
    assert command(name, fitted / "run", mixed, "--out", tmp_path / "out.csv") == 0
    said = [
        "2 of",
        "rows are left out",
        "'band' is 'z'",
        "'star x', 'star y'",
        "2 series without observations have an empty row",
    ]
    assert says_all(capsys.readouterr().err, said)
    found = table(tmp_path / "out.csv").to_pylist()
    assert [row["star"] for row in found[-2:]] == ["star x", "star y"] and len({row["star"] for row in found}) == 26
    assert all(value in (None, "") for row in found[-2:] for column, value in row.items() if column != "star")
    assert all(value not in (None, "") for row in found[:-2] for value in row.values())


def test_what_was_read_is_said_and_written_down(tmp_path, capsys):
    rows = [("a", 0, 1), ("a", 1, ""), ("a", 2, 3), ("b", 0, 1), ("b", 1, 2), ("c", 0, "")]
    path = write_csv(tmp_path / "table.csv", "id,time,value", rows)
    assert command("fit", path, "--out", tmp_path / "run", *TINY) == 0
    said = ["read table.csv: 2 of 6 rows dropped: 'value' is missing in 2; 1 series without observations left out"]
    assert says_all(capsys.readouterr().err, said)
    reading = json.loads((tmp_path / "run/metrics.json").read_text())["reading"]
    assert (reading["total"], reading["kept"], reading["empty"]) == (6, 4, ["c"])
    assert reading["missing"] == {"'value' is missing": 2}


def test_other_columns_than_in_training(fitted, tmp_path, capsys):
    rows, _ = two_kinds()
    other = write_csv(tmp_path / "other.csv", "star,day,band,brightness", rows)
    assert command("embed", fitted / "run", other, "--out", tmp_path / "out.csv") == 2
    assert says_all(capsys.readouterr().err, ["other.csv", "'flux'", "--values"])
    renamed = ["--values", "brightness"]
    assert command("embed", fitted / "run", other, "--out", tmp_path / "out.csv", *renamed) == 2
    assert says_all(capsys.readouterr().err, ["brightness", "flux"])
    dataset = SeriesDataset.from_file(other, "star", "day", "band", ["brightness"])
    with refuses("brightness", "flux"):
        RoMAEInterpolator(pretrained=fitted / "run").fit(dataset)


def test_values_in_another_unit_are_warned_of(fitted, tmp_path, capsys):
    rows, _ = two_kinds()
    for factor, shift, warned in ((1, 0, False), (1e-9, 0, True), (1, 300, True)):
        changed = [(*row[:3], row[3] * factor + shift * (row[2] == "g")) for row in rows]
        path = write_csv(tmp_path / f"{factor}-{shift}.csv", "star,day,band,flux", changed)
        assert command("embed", fitted / "run", path, "--out", f"{path}.out.csv", "--quiet") == 0
        said = " ".join(capsys.readouterr().err.split())
        assert ("far from those of the training table" in said) == warned
    assert "values of 'g' are" in said


def test_a_negative_error_is_left_out_by_a_trained_model_too(tmp_path, capsys):
    rows = [(i, t, t % 3, 0.1) for i in range(4) for t in range(6)]
    header = "id,time,value,error"
    run, good = tmp_path / "run", write_csv(tmp_path / "good.csv", header, rows)
    assert command("fit", good, "--errors", "error", "--out", run, *TINY, "--quiet") == 0
    bad = write_csv(tmp_path / "bad.csv", header, [*rows[:-1], (*rows[-1][:3], -1)])
    capsys.readouterr()
    assert command("embed", run, bad, "--out", tmp_path / "strict.csv", "--strict") == 2
    assert says_all(capsys.readouterr().err, ["'error' is negative in 1", "series 3 at time 5"])
    assert command("embed", run, bad, "--out", tmp_path / "out.csv") == 0
    assert says_all(capsys.readouterr().err, ["1 of 24 rows are left out: 'error' is negative in 1"])


# ── other layouts of a table ────────────────────────────────────────────────────────────────────────────────────────


def both_ways(tmp_path, path, options, job="embed"):
    """Fits, and runs another command on the same table with nothing but the model to say how it is read."""
    run = tmp_path / "run"
    assert command("fit", path, "--out", run, *options, *TINY, "--quiet") == 0
    assert command(job, run, path, "--out", tmp_path / "out.parquet", "--quiet") == 0
    return run, table(tmp_path / "out.parquet")


def test_any_series_says_which_channels_it_knows_nothing_of(tmp_path, capsys):
    cells = [("a", 0, 1, ""), ("a", 1, 2, ""), ("b", 2, 3, "")]
    path = write_csv(tmp_path / "wide.csv", "id,time,pulse,lactate", cells)
    assert command("interpolate", path, "--wide", "--grid", "2", "--out", tmp_path / "out.csv") == 0
    assert says_all(" ".join(capsys.readouterr().err.split()), ["none of 2 series", "'lactate'", "say nothing"])


def test_a_wide_table_with_missing_cells(tmp_path):
    cells = [("a", 0, 1, ""), ("a", 1, 2, 5), ("a", 2, "", 4), ("b", 0, 3, ""), ("b", 3, 1, 2)]
    path = write_csv(tmp_path / "wide.csv", "id,time,pulse,temperature", cells)
    run, out = both_ways(tmp_path, path, ["--wide", "--values", "pulse", "temperature"], "interpolate")
    assert set(out["channel"].to_pylist()) == {"pulse", "temperature"}
    assert json.loads((run / "metrics.json").read_text())["preprocessing"]["channels"] == ["pulse", "temperature"]
    # Points of a wide table's model: of every channel, or of the one that a column "channel" names.
    every = write_csv(tmp_path / "every.csv", "id,time", [("b", 1), ("a", 5)])
    one = write_csv(tmp_path / "one.csv", "id,time,channel", [("b", 1, "temperature"), ("a", 5, "pulse")])
    answers = []
    for name, at in (("every", every), ("one", one)):
        assert command("interpolate", run, path, "--out", tmp_path / f"{name}.parquet", "--at", at, "--quiet") == 0
        answers.append(table(tmp_path / f"{name}.parquet").to_pylist())
    places = [[(row["id"], row["time"], row["channel"]) for row in rows] for rows in answers]
    assert places[0] == [(i, t, c) for i, t in (("b", 1), ("a", 5)) for c in ("pulse", "temperature")]
    assert places[1] == [("b", 1, "temperature"), ("a", 5, "pulse")]
    assert np.allclose([answers[0][1]["value"], answers[0][2]["value"]], [row["value"] for row in answers[1]])
    # A ward without a thermometer: never observed, not an error.
    cold = write_csv(tmp_path / "cold.csv", "id,time,pulse", [row[:3] for row in cells])
    with pytest.warns(InputWarning, match="no column 'temperature'"):
        names = ("pulse", "temperature")
        direct = read_table(cold, TableSchema(values=names, wide=True), channel_names=names)
    assert (
        direct.channel_names == ("pulse", "temperature") and direct.channels is not None and not direct.channels.any()
    )
    assert command("interpolate", run, cold, "--out", tmp_path / "cold.parquet", "--grid", "3", "--quiet") == 0
    assert table(tmp_path / "cold.parquet")["channel"].to_pylist() == (["pulse"] * 3 + ["temperature"] * 3) * 2
    assert command("fit", cold, "--out", tmp_path / "y", "--wide", "--values", "pulse", "temperature") == 2
    more = write_csv(tmp_path / "more.csv", "id,time,pulse,temperature,oxygen", [(*row, 97) for row in cells])
    reader = TableReader.open(more, TableSchema(values=("pulse", "temperature"), wide=True), ("pulse", "temperature"))
    assert reader.read().reading.unread == ("oxygen",)


def test_answers_go_to_standard_output_as_csv(fitted, capfdbinary):
    how = ["--out", "-", "--quiet"]
    for words, rows in (("predict", 24), ("embed", 24), ("interpolate", 2 * 24)):
        more = ["--grid", "1"] if words == "interpolate" else []
        capfdbinary.readouterr()
        assert command(words, fitted / "run", fitted / "stars.csv", *more, *how) == 0
        table = pd.read_csv(io.BytesIO(capfdbinary.readouterr().out))
        assert len(table) == rows and "star" in table.columns
    assert not Path("-").exists()


def test_a_log_without_ids_is_asked_by_times_without_ids(tmp_path):
    log = write_csv(tmp_path / "log.csv", "time,value", [(t, t % 3) for t in range(30)])
    run, _ = both_ways(tmp_path, log, [])
    at = write_csv(tmp_path / "at.csv", "time", [(2.5,), (1.5,)])
    assert command("interpolate", run, log, "--out", tmp_path / "values.csv", "--at", at, "--quiet") == 0
    assert table(tmp_path / "values.csv").to_pydict()["time"] == [2.5, 1.5]
    several = write_csv(tmp_path / "several.csv", "id,time,value", [(i, t, t % 3) for i in "ab" for t in range(9)])
    assert command("interpolate", run, several, "--out", tmp_path / "x.csv", "--at", at, "--quiet") == 2


def test_one_token_for_every_time(tmp_path):
    path = write_csv(
        tmp_path / "wide.csv", "id,time,u,v", [(i, t, t * i, t * i + 1) for i in (1, 2, 3) for t in range(5)]
    )
    run, out = both_ways(tmp_path, path, ["--wide", "--values", "u", "v", "--tokens", "time"], "interpolate")
    assert {"u", "v", "u_std"} <= set(out.column_names) and "channel" not in out.column_names
    assert Pipeline.load(run).preprocessor.features == 2


def test_parquet_without_channels_with_missing_values_and_a_regression(tmp_path):
    import pyarrow as pa

    draw = np.random.default_rng(0)
    ids = np.repeat([f"é, {i}" for i in range(12)], 6)
    times, values = np.tile(np.arange(6) ** 2, 12), draw.normal(size=72)
    values[7] = np.nan
    pq.write_table(pa.table({"id": ids, "time": times, "value": values}), tmp_path / "t.parquet")
    targets = {f"é, {i}": round(0.1 * i, 2) for i in range(12)}
    pq.write_table(pa.table({"id": list(targets), "label": list(targets.values())}), tmp_path / "labels.parquet")
    options = ["--labels", tmp_path / "labels.parquet"]
    run, out = both_ways(tmp_path, tmp_path / "t.parquet", options, "predict")
    assert out.column_names == ["id", "predicted"] and out["id"].to_pylist() == list(targets)
    there = pq.read_table(run / "predictions.parquet")
    tested = pc.not_equal(there["part"], "validation")
    assert out["predicted"].filter(tested).equals(there["predicted"].filter(tested))
    metrics = json.loads((run / "metrics.json").read_text())
    rows = {"model", "training_mean", "features", "combined"}
    assert set(metrics["regression"]) == rows
    assert all(
        set(row) == {"root_mean_squared_error", "mean_absolute_error", "r2"} for row in metrics["regression"].values()
    )
    page = (run / "report.html").read_text()
    assert "training mean" in page


# ── an interrupted run ──────────────────────────────────────────────────────────────────────────────────────────────


def test_resume(fitted, complete, tmp_path, monkeypatch, capsys):
    options = [*STARS, "--labels", fitted / "kinds.csv", "--label", "kind", *TINY]
    run = tmp_path / "run"

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("rotarymae.report.build.PICTURES", ())
    with monkeypatch.context() as patch:
        patch.setattr("rotarymae.train.finetune", stop)
        assert command("fit", fitted / "stars.csv", "--out", run, *options) == 130
    assert "--resume" in capsys.readouterr().err
    assert command("fit", fitted / "stars.csv", "--out", run, *options) == 2
    assert "--resume" in capsys.readouterr().err
    other = ["4" if word == "8" else word for word in [*options, "--resume"]]
    assert command("fit", fitted / "stars.csv", "--out", run, *other) == 2
    assert says_all(capsys.readouterr().err, ["batch_size", "8", "4"])
    assert command("fit", fitted / "stars.csv", "--out", run, *options, "--resume", "--quiet") == 0
    for name in ("predictions", "embeddings", "interpolations"):
        assert table(run / f"{name}.parquet").equals(table(fitted / f"run/{name}.parquet")), name


def test_static_columns_are_read_in_fit_and_predict_and_missed_by_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0)
    lines = ["id,time,hr,ph,age"]
    for i in range(20):
        lines += [
            f"{i},{t},{draw.normal():.3f},{'' if (i + t) % 3 else f'{draw.normal():.3f}'},{i + 0.5}" for t in range(5)
        ]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    (tmp_path / "l.csv").write_text("id,label\n" + "\n".join(f"{i},{'xy'[i % 2]}" for i in range(20)))
    fit = "fit t.csv --wide --values hr ph --labels l.csv --static age --join-times --pretrain-epochs 1"
    assert command(*f"{fit} --finetune-epochs 1 --min-steps 1 --out run --quiet".split()) == 0
    assert command(*["predict", "run", "t.csv", "--out", "p.csv", "--quiet"]) == 0
    (tmp_path / "without.csv").write_text("\n".join(line.rpartition(",")[0] for line in lines))
    assert command(*["predict", "run", "without.csv", "--out", "q.csv", "--quiet"]) == 0
    assert "no column 'age'; it is taken as never observed; --objects" in capsys.readouterr().err
    assert command(*["interpolate", "run", "without.csv", "--grid", "3", "--out", "i.csv", "--quiet"]) == 0
    assert command(*["interpolate", "run", "t.csv", "--grid", "3", "--out", "j.csv", "--quiet"]) == 0
    assert "does not read" not in capsys.readouterr().err  # the run does


@pytest.mark.parametrize("width", [80, 50])
def test_words_and_numbers_of_a_result_table_are_never_cut(width, capsys, monkeypatch):
    names = ["model", "gradient boosting on a hundred features", "most common class"]
    metrics = ["accuracy", "expected calibration error", "AUROC", "average precision", "Brier score", "log-loss"]
    rows = {name: {metric: 0.1234 + i for i, metric in enumerate(metrics)} for name in names}
    del rows["most common class"]["AUROC"]
    monkeypatch.setenv("COLUMNS", str(width))
    print_table(Table(list(rows.items()), "classes"), Reporter())
    text = capsys.readouterr().out
    assert "…" not in text and max(map(len, text.splitlines())) <= width
    assert all(text.count(f"{0.1234 + i:.4g}") == (2 if i == 2 else 3) for i in range(6))
    assert all(word in text for name in [*names, *metrics] for word in name.split())


@pytest.mark.parametrize(
    ("own", "spins"), [({}, "1000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "active"}, None)]
)
def test_threads_wait_asleep_unless_told_otherwise(own, spins, monkeypatch):
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.setenv(name, own.get(name, ""))
        if name not in own:
            monkeypatch.delenv(name)
    cli.main(["--version"])
    assert os.environ.get("GOMP_SPINCOUNT") == spins


def test_dates_without_a_zone_are_of_the_series_zone(tmp_path):
    rows = [(name, f"2024-03-{1 + t // 24:02d}T{t % 24:02d}:00+01:00", t % 3) for name in "ab" for t in range(40)]
    zoned = pa.array([row[1] for row in rows]).cast(pa.timestamp("s", "UTC")).cast(pa.timestamp("s", "Europe/Berlin"))
    log = pa.table({"id": [row[0] for row in rows], "time": zoned, "value": [float(row[2]) for row in rows]})
    pq.write_table(log, tmp_path / "log.parquet")
    run, _ = both_ways(tmp_path, tmp_path / "log.parquet", [])
    times = ("2024-03-01T10:00", "2024-03-02T10:30")
    at = write_csv(tmp_path / "at.csv", "id,time", [(name, time) for name in "ab" for time in times])
    for how in (("--at", at), ("--times", *times)):
        out = tmp_path / f"{how[0]}.csv"
        assert command("interpolate", run, tmp_path / "log.parquet", "--out", out, *how, "--quiet") == 0
    assert table(tmp_path / "--at.csv").equals(table(tmp_path / "--times.csv"))
    assert table(tmp_path / "--at.csv")["time"].cast(pa.timestamp("s", "UTC"))[0].as_py().hour == 9


def test_columns_of_values_that_are_called_as_ours(tmp_path):
    names = ("importance", "distance")
    data = SeriesDataset.from_arrays([[0.0, 1.0]], [np.ones((2, 2))], value_names=names)
    found = outputs.score_columns(data, importance=np.array([[0.5], [0.25]]))
    assert list(found) == ["time", "importance_value", "distance", "importance"]
    assert found["importance"].to_pylist() == [0.5, 0.25] and found["importance_value"].to_pylist() == [1, 1]
    answer = Interpolation(np.array([2.5]), np.ones((1, 2)), None, torch.ones(1, 2, 1), LIKELIHOODS["point"])
    found = outputs.interpolation_columns(np.zeros(1), None, None, names, answer)
    assert found["distance"].to_pylist() == [2.5] and found["distance_value"].to_pylist() == [1]
    for columns, called in ((["x"], "star"), (["star"], "id"), (["id", "star"], "id_value")):
        whole = outputs.with_ids(pa.table({column: [1] for column in columns}), pa.array([2]), "star")
        assert whole.column_names == [called, *columns]
    names, values = ("time", "time_value", "a", "a_limit"), np.arange(4.0)[None]  # none takes another's place
    data = SeriesDataset.from_arrays([[0.5]], [values], value_names=names)
    for found in (
        outputs.observation_columns(dataclasses.replace(data, sides=np.zeros((1, 4), np.int8))),
        outputs.interpolation_columns(np.array([0.5]), None, None, names, dataclasses.replace(answer, mean=values)),
    ):
        numbers = [column[0].as_py() for name, column in found.items() if name != "distance"]
        assert [number for number in numbers if number != ""] == [0.5, 0, 1, 2, 3]
