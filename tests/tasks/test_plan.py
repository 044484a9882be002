"""A time budget decides the steps of both trainings and how many series are answered, and a resumed run keeps them."""

import json
import os
import re
import time
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np
import pyarrow.parquet as pq
import pytest

from _runs import digest, examples, objective, settings
from conftest import command, refuses
from rotarymae.system import Reporter, moment
from rotarymae.training import cost as plan
from rotarymae.training.checkpointing import read_checkpoint
from rotarymae.training.cost import Plan
from rotarymae.training.fit_config import FitConfig

STARS = ["--id", "star", "--time", "day", "--channel", "band", "--values", "flux"]


def test_a_budget_decides_the_epochs_and_a_resumed_run_keeps_them(fitted, tmp_path, monkeypatch, capsys):
    given = [fitted / "stars.csv", "--out", tmp_path / "run", *STARS, "--labels", fitted / "kinds.csv"]
    given += ["--label", "kind", "--minutes", "0.2", "--tune", "full"]
    monkeypatch.setattr(plan, "measure_step", lambda *_: 0.08)
    with monkeypatch.context() as patch:
        patch.setattr("rotarymae.train.copy_encoder", lambda *_: os.kill(os.getpid(), 2))
        assert command("fit", *given) == 130
    err = " ".join(capsys.readouterr().err.split())
    first = json.loads((tmp_path / "run/training/plan.json").read_text())
    epochs = first["steps"]
    # Half of 12 s is for what comes after, and 0.25 of the rest, at 0.08 s for the only batch of an epoch.
    assert list(epochs) == ["pre-training"] and list(first["rows"]) == ["features"]
    assert 1 <= epochs["pre-training"] <= 22
    assert f"plan: pre-training makes {epochs['pre-training']} epochs of 1 steps" in err
    manifest, _ = read_checkpoint(tmp_path / "run/training/pretrain/checkpoint.safetensors")
    assert manifest["state"]["epoch"] == epochs["pre-training"]
    monkeypatch.setattr(plan, "measure_step", lambda *_: 1.0)
    assert command("fit", *given, "--resume") == 0
    both = json.loads((tmp_path / "run/training/plan.json").read_text())
    assert both["steps"].pop("fine-tuning") in range(1, 7) and both == first


def test_less_than_an_epoch_is_planned_where_no_more_fits_and_kept(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(plan, "measure_step", lambda *_: 4.0)
    monkeypatch.setattr(plan, "measure_token", lambda *_: 0.0)
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    given = objective(), examples(), None, settings(epochs=1000)  # of four steps
    made, steps = {}, {0.1: 1, 0.2: 1, 0.45: 3, 1.0: 9}
    for minutes in steps:
        config = FitConfig(minutes=minutes)
        made[minutes] = Plan(tmp_path / str(minutes), config, 0.0, Reporter()).schedule("pre-training", *given)
        later = Plan(tmp_path / str(minutes), replace(config, minutes=9), 0.0, Reporter())
        assert later.schedule("pre-training", *given) == made[minutes]
    assert {minutes: one.epochs * one.epoch_steps for minutes, one in made.items()} == steps
    assert [one.epochs for one in made.values()] == [1, 1, 1, 3]
    said = " ".join(capfd.readouterr().err.split())
    assert "1 epochs of 3 steps (75.0% of the training part)" in said and "3 epochs of 3 steps" in said
    assert "pre-training makes 9 steps, which are few to learn from" in said and "about 58 s in all" in said


def test_evaluations_and_answers_take_their_part_of_the_minutes(tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "measure_step", lambda *_: 1.0)
    monkeypatch.setattr(plan, "measure_token", lambda *_: 0.01)
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    data = examples()
    held = 0.01 * data.lengths.sum() / 4  # of the same size, after every epoch of four steps

    def steps(name, validation, lengths):
        made = Plan(tmp_path / name, FitConfig(minutes=10), 0.0)
        made.lengths, made.scored = np.full(10, lengths), np.arange(3)
        of_stage = made.schedule("pre-training", objective(), data, validation, settings())
        return of_stage.epochs * of_stage.epoch_steps

    left = 600 - plan.REPORT - plan.CALIBRATION
    assert steps("none", None, 0) == pytest.approx(left, abs=4)
    assert steps("validation", data, 0) == pytest.approx(left / (1 + held), abs=4)
    assert steps("answers", None, 500) == pytest.approx(left - 0.01 * 13 * 500, abs=4)
    assert steps("too many answers", None, 10**6) == pytest.approx(left - plan.ANSWERS * 600, abs=4)


def test_so_many_series_are_answered_as_there_is_time_for(tmp_path, monkeypatch):
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)

    def answered(token, lengths, minutes=2.0, finetuned=None, spent=0.0):
        made = Plan(tmp_path, FitConfig(minutes=minutes), -spent)
        made.lengths, made.scored, made.finetuned = lengths, np.arange(0, len(lengths), 4), finetuned
        made.token = token
        return made.series_to_predict()

    many = np.full(1000, 100)
    room = 120 - plan.REPORT
    (tmp_path / "training").mkdir()
    for damaged in ("[1]", '{"pre-training": 9}', '{"steps": {}, "rows": [1]}', '{"steps": {"a": 0}, "rows": {}}'):
        (tmp_path / "training/plan.json").write_text(damaged)  # or of an older version: of no use, and no obstacle
        assert Plan(tmp_path, FitConfig())._planned() == {"steps": {}, "rows": {}}
    assert answered(1e-6, many) is None and answered(1.0, many, None) is None
    rows, most = answered(2 * room / 125_000, many)  # every fourth is scored, and counts twice
    assert len(rows) == pytest.approx(500, abs=30) and most >= 100 and len(np.unique(rows)) == len(rows)
    late, _ = answered(2 * room / 125_000, many, spent=1e6)
    assert 0 < len(late) < 100, "a run that is late answers few"
    assert answered(room / 1e5, np.array([10**6])) == ([0], 50_000), "a stretch of a single series, twice"
    assert answered(room / 1e5, np.array([10**6]), finetuned=np.arange(1)) is None, "a class is of the whole series"


def test_a_sample_is_answered_and_said_to_be_one(fitted, tmp_path, monkeypatch, capsys):
    rows = np.arange(0, 24, 2)
    monkeypatch.setattr(Plan, "series_to_predict", lambda self: (rows, 5))
    given = [fitted / "stars.csv", "--out", tmp_path / "run", *STARS, "--labels", fitted / "kinds.csv", "--label"]
    given += ["kind", "--pretrain-epochs", "1", "--finetune-epochs", "1", "--min-steps", "0"]
    assert command("fit", *given) == 0
    metrics = json.loads((tmp_path / "run/metrics.json").read_text())
    count = metrics["sample"]["series"]
    assert (
        12 <= count < 24 == sum(metrics["series"].values())
        and 0 < metrics["sample"]["scored"] < metrics["series"]["test"]
    )
    predictions = pq.read_table(tmp_path / "run/predictions.parquet")
    assert len(predictions) == len(pq.read_table(tmp_path / "run/embeddings.parquet")) == count
    assert max(Counter(pq.read_table(tmp_path / "run/interpolations.parquet")["star"].to_pylist()).values()) <= 5
    words = f"{count} of {sum(metrics['series'].values())} series, drawn at random, are answered and scored"
    said, page = " ".join(capsys.readouterr().err.split()), (tmp_path / "run/report.html").read_text()
    assert words in said and words in page and "of the held-out series" in page


def test_steps_and_tokens_are_measured_on_a_copy():
    what, data = objective(), examples()
    for measure, units in ((plan.measure_step, 1), (plan.measure_token, data.lengths.sum())):
        before, started = digest(what.model), time.monotonic()
        seconds = measure(what, data, settings())
        assert 0 < seconds * units < time.monotonic() - started and digest(what.model) == before


@pytest.mark.parametrize("minutes", [0, -1, float("inf"), float("nan")])
def test_minutes(minutes):
    with refuses("minutes is"):
        FitConfig(minutes=minutes)


def test_what_is_the_same_for_any_table_takes_longer_on_a_shared_processor(tmp_path, monkeypatch):
    now = {"monotonic": 0.0, "process_time": 0.0}
    for clock in now:
        monkeypatch.setattr(time, clock, lambda clock=clock: now[clock])
    made = Plan(tmp_path, FitConfig(minutes=2))
    alone, series = made.report_seconds(calibrates=True), made.max_rows_to_compare
    now.update(monotonic=30.0, process_time=10.0)
    assert made.report_seconds(calibrates=True) == 3 * alone > made.report_seconds() > alone
    assert made.max_rows_to_compare == pytest.approx(series / 3, abs=1)
    now.update(process_time=50.0)  # on several threads
    assert made.report_seconds(calibrates=True) == alone


def test_a_moment_of_another_day_has_its_date():
    now = datetime.now()
    tomorrow = now + timedelta(days=1)
    assert re.fullmatch(r"\d\d:\d\d", moment(0)) and moment(86_400) == f"{tomorrow:%Y-%m-%d %H:%M}"


def test_epochs_beside_minutes_are_warned_of(tmp_path, capfd):
    for changed, said in (
        ({"finetune_epochs": 3, "min_steps": 0, "minutes": 1}, "finetune_epochs, min_steps have no effect"),
        ({"minutes": 1}, ""),
        ({"finetune_epochs": 3}, ""),
        ({"pretrain_epochs": 3, "pretrained": str(tmp_path), "minutes": 1}, ""),
    ):
        Plan(tmp_path, FitConfig(**changed), 0.0, Reporter())
        err = " ".join(capfd.readouterr().err.split())
        assert said in err and bool(err) == bool(said)
