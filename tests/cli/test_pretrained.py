"""`--pretrained`: training starts from a model that exists, and what that brings cannot be asked for again."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from conftest import SHORT, TINY, command, identity, refuses, two_kinds, write_csv
from rotarymae import RoMAEClassifier, SeriesDataset
from rotarymae.errors import InputError
from rotarymae.pipeline import Pipeline
from rotarymae.training.fit_config import FitConfig

FINETUNE = [*SHORT[2:], "--predictor", "model"]
STILL = ["--base-lr", "1e-30"]


@pytest.fixture(autouse=True)
def no_report(monkeypatch):
    """Which takes longer than all the rest."""
    monkeypatch.setattr("rotarymae.report.write_report", lambda *_, **__: None)


@pytest.fixture(scope="module")
def other(fitted):
    """Another table: other names of columns, longer gaps, and one band only; with its labels."""
    rows, labels = two_kinds(20)
    rows = [(f"new {id}", 3 * time, band, flux) for id, time, band, flux in rows if band == "r"]
    folder = fitted / "other"
    folder.mkdir()
    write_csv(folder / "table.csv", "object,when,filter,flux", rows)
    write_csv(folder / "kinds.csv", "object,kind", [(f"new {id}", kind) for id, kind in labels.items()])
    return folder


def fit(folder, out, *options):
    columns = ["--id", "object", "--time", "when", "--channel", "filter"]
    labels = ["--labels", folder / "kinds.csv", "--label", "kind"]
    return command("fit", folder / "table.csv", "--out", out, *columns, *labels, *options)


def same(one, two):
    one, two = (Pipeline.load(run).require_autoencoder().state_dict() for run in (one, two))
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


def test_finetuning_starts_from_the_model_as_it_is(fitted, other, tmp_path, capsys):
    start = fitted / "run/model"
    assert fit(other, tmp_path / "run", "--pretrained", fitted / "run", *FINETUNE) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert f"started from {fitted / 'run'}: Pipeline(MaskedAutoencoder 24/2/2, series)" in said
    assert same(start, tmp_path / "run/model") and not (tmp_path / "run/training/pretrain").exists()
    before, after = Pipeline.load(start), Pipeline.load(tmp_path / "run")
    assert identity(after.preprocessor) == identity(before.preprocessor)  # of the first table, not of this one
    assert after.preprocessor.channel_names == ("g", "r") and after.labels.classes == ("a", "b")
    assert (after.columns["id"], after.columns["values"]) == ("object", ["flux"])
    assert command("predict", tmp_path / "run", other / "table.csv", "--out", tmp_path / "p.csv") == 0


def test_pretraining_goes_on_from_it_when_its_epochs_are_given(fitted, other, tmp_path):
    options = ["--pretrained", fitted / "run/model", *FINETUNE, "--pretrain-epochs", "1"]
    assert fit(other, tmp_path / "still", *options, *STILL) == 0
    assert same(fitted / "run/model", tmp_path / "still")
    assert (tmp_path / "still/training/pretrain/log.jsonl").exists()
    assert fit(other, tmp_path / "moved", *options, "--mask-ratio", "0.5") == 0
    assert not same(fitted / "run/model", tmp_path / "moved")


def test_rows_without_a_time_are_facts_where_they_were_for_the_model(fitted, other, tmp_path, monkeypatch):
    """They were said to be static, and no head read them."""
    start, read = Pipeline.load(fitted / "run"), []
    start = replace(start, columns={**start.columns, "untimed": "static"})
    monkeypatch.setattr("rotarymae.train.open_start", lambda source: start)

    def run(dataset, labels, config, *_, **__):
        read.append(config.static)
        raise InputError("enough")

    monkeypatch.setattr("rotarymae.run.run_fit", run)
    fact = edited(
        other, tmp_path / "fact", "object,when,filter,flux\n", "object,when,filter,flux\nnew star 00,,size,3\n"
    )
    assert fit(fact, tmp_path / "run", "--pretrained", fitted / "run", *FINETUNE) == 2
    assert read == [("size",)]


def edited(folder, to, old, new):
    shutil.copytree(folder, to)
    text = (to / "table.csv").read_text()
    (to / "table.csv").write_text(text.replace(old, new))
    return to


@pytest.mark.parametrize(
    ("old", "new", "options", "parts"),
    [
        (",flux", ",brightness", ["--values", "brightness"], ["values are brightness", "trained on flux"]),
        (",r,", ",z,", ["--strict"], ["is 'z', where 'g', 'r' are known"]),
        ("filter", "filter", ["--task", "regression"], ["'a'", "number"]),
        ("filter", "filter", ["--pretrained", "{run}/nothing"], ["no model", "nothing'", "plasticc-ugrizy"]),
        ("filter", "filter", ["--depth", "3", "--time-unit", "2"], ["depth, time_unit are fixed by", "leave them out"]),
        (
            "filter",
            "filter",
            ["--mask-ratio", "0.2"],
            ["mask_ratio is fixed by the pretrained model", "pretrain_epochs"],
        ),
    ],
)
def test_what_does_not_fit_the_model_is_refused_before_anything_is_written(
    old, new, options, parts, fitted, other, tmp_path, capsys
):
    table = edited(other, tmp_path / "table", old, new)
    given = ["--pretrained", fitted / "run", *[option.format(run=fitted / "run") for option in options]]
    assert fit(table, tmp_path / "run", *given, *FINETUNE) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert [part for part in parts if part not in said] == [], said
    assert not (tmp_path / "run").exists()


def test_unknown_channels_are_left_out(fitted, other, tmp_path, capsys):
    table = edited(other, tmp_path / "table", ",r,-", ",z,-")
    options = ["--pretrained", fitted / "run", *FINETUNE]
    assert fit(table, tmp_path / "run", *options) == 0
    assert "'z', where 'g', 'r' are known" in " ".join(capsys.readouterr().err.split())


def test_a_wide_table_may_lack_a_channel_of_the_model(tmp_path, capsys):
    draw = np.random.default_rng(0)
    rows = [(f"p{i}", t, round(draw.normal(), 3), round(draw.normal(), 3)) for i in range(12) for t in range(6)]
    write_csv(tmp_path / "both.csv", "id,time,pulse,ph", rows)
    write_csv(tmp_path / "one.csv", "id,time,pulse,died", [(*row[:3], "ny"[int(row[0][1:]) % 2]) for row in rows])
    assert command("fit", tmp_path / "both.csv", "--out", tmp_path / "a", "--wide", *TINY[:2], *TINY[4:]) == 0
    options = ["--pretrained", tmp_path / "a", "--label", "died", *FINETUNE]
    assert command("fit", tmp_path / "one.csv", "--out", tmp_path / "b", *options) == 0
    assert "no column 'ph'; it is taken as never observed" in " ".join(capsys.readouterr().err.split())
    assert Pipeline.load(tmp_path / "b").preprocessor.channel_names == ("pulse", "ph")


def test_there_must_be_something_to_train(fitted, other, tmp_path, capsys):
    columns = ["--id", "object", "--time", "when", "--channel", "filter"]
    given = ["--out", tmp_path / "run", *columns, "--pretrained", fitted / "run"]
    assert command("fit", other / "table.csv", *given) == 2
    assert "nothing to train" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_run_is_resumed_from_the_same_model_only(fitted, other, tmp_path, capsys):
    shutil.copytree(fitted / "run/model", tmp_path / "model")
    assert fit(other, tmp_path / "run", "--pretrained", tmp_path / "model", *FINETUNE) == 0
    (tmp_path / "run/metrics.json").unlink()
    (tmp_path / "model").rename(tmp_path / "moved")  # the same one elsewhere
    again = ["--pretrained", tmp_path / "moved", *FINETUNE, "--resume"]
    assert fit(other, tmp_path / "run", *again) == 0
    (tmp_path / "run/metrics.json").unlink()
    directory = Pipeline.load(tmp_path / "moved")
    with torch.no_grad():
        directory.require_autoencoder().mask_token += 1
    directory.save(tmp_path / "moved")
    assert fit(other, tmp_path / "run", *again) == 2
    assert "the pretrained model changed" in capsys.readouterr().err


def test_estimators_go_on_pretraining_when_its_epochs_are_given(fitted):
    stars = SeriesDataset.from_file(fitted / "stars.csv", "star", "day", "band", ["flux"])
    labels = np.array(["a", "b"] * 12)
    options = {"finetune_epochs": 1, "min_steps": 0, "batch_size": 8, "predictor": "model"}
    as_it_is = RoMAEClassifier(pretrained=fitted / "run", **options).fit(stars, labels)
    assert set(as_it_is.history_) == {"finetune"}
    further = RoMAEClassifier(pretrained=str(fitted / "run"), pretrain_epochs=1, **options).fit(stars, labels)
    assert set(further.history_) == {"pretrain", "finetune"}
    weight = [model.pipeline_.pretrained.model.mask_token for model in (as_it_is, further)]
    assert not torch.equal(*weight)
    with refuses("depth", "pretrained"):
        RoMAEClassifier(pretrained=fitted / "run", depth=3, **options).fit(stars, labels)


def test_no_time_is_kept_for_a_pretraining_that_is_not_made(fitted, other, tmp_path):
    """With minutes, fine-tuning alone has what both trainings would have had."""
    assert (
        not FitConfig(pretrained="model").pretrains and not FitConfig(pretrained="model", pretrain_epochs=0).pretrains
    )
    assert FitConfig(pretrained="model", pretrain_epochs=2).pretrains and FitConfig().pretrains
    assert fit(other, tmp_path / "run", "--pretrained", fitted / "run", *FINETUNE, "--minutes", "0.02") == 0
    plan = json.loads((tmp_path / "run/training/plan.json").read_text())
    assert set(plan["steps"]) == {"fine-tuning"} and plan["steps"]["fine-tuning"] >= 1 and not plan["rows"]
    assert 0 < len(pq.read_table(tmp_path / "run/predictions.parquet")) <= 20  # as many as the time allows
