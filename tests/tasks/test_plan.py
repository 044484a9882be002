"""A time budget decides the epochs of both trainings, and a resumed run keeps them."""

import json
import os
import time
from dataclasses import replace

import pytest

from conftest import command
from rotarymae.system import Reporter
from rotarymae.training import cost as plan
from rotarymae.training.checkpointing import read_checkpoint
from rotarymae.training.cost import Plan
from rotarymae.training.fit_config import FitConfig

STARS = ["--id", "star", "--time", "day", "--channel", "band", "--values", "flux"]


def test_a_budget_decides_the_epochs_and_a_resumed_run_keeps_them(fitted, tmp_path, monkeypatch, capsys):
    given = [fitted / "stars.csv", "--out", tmp_path / "run", *STARS, "--labels", fitted / "kinds.csv"]
    given += ["--label", "kind", "--minutes", "0.2"]
    monkeypatch.setattr(plan, "measure_step", lambda *_: 0.08)
    with monkeypatch.context() as patch:
        patch.setattr("rotarymae.train.copy_encoder", lambda *_: os.kill(os.getpid(), 2))
        assert command("fit", *given) == 130
    err = " ".join(capsys.readouterr().err.split())
    epochs = json.loads((tmp_path / "run/training/plan.json").read_text())
    # A quarter of 12 s, less what was used before, at 0.08 s for the only batch of an epoch.
    assert list(epochs) == ["pre-training"] and 1 <= epochs["pre-training"] <= 37
    assert f"plan: pre-training makes {epochs['pre-training']} epochs of 1 steps" in err
    manifest, _ = read_checkpoint(tmp_path / "run/training/pretrain/checkpoint.safetensors")
    assert manifest["state"]["epoch"] == epochs["pre-training"]
    monkeypatch.setattr(plan, "measure_step", lambda *_: 1.0)
    assert command("fit", *given, "--resume") == 0
    both = json.loads((tmp_path / "run/training/plan.json").read_text())
    assert both["pre-training"] == epochs["pre-training"] and 1 <= both["fine-tuning"] <= 7


def test_less_than_an_epoch_is_planned_where_no_more_fits_and_kept(tmp_path, monkeypatch, capfd):
    from _runs import examples, objective, settings

    monkeypatch.setattr(plan, "measure_step", lambda *_: 4.0)
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    given = objective(), examples(), settings(epochs=1000)  # of four steps
    made, steps = {}, {0.1: 1, 0.2: 1, 0.5: 3, 1.0: 9}
    for minutes in steps:
        config = FitConfig(minutes=minutes, validation_fraction=0.0)
        made[minutes] = Plan(tmp_path / str(minutes), config, False, 0.0, Reporter()).schedule("pre-training", *given)
        again = Plan(tmp_path / str(minutes), replace(config, minutes=9), False, 0.0, Reporter()).schedule(
            "pre-training", *given
        )
        assert again == made[minutes]
    assert {minutes: one.epochs * one.epoch_steps for minutes, one in made.items()} == steps
    assert [one.epochs for one in made.values()] == [1, 1, 1, 3]
    said = " ".join(capfd.readouterr().err.split())
    assert "1 epochs of 3 steps (75.0% of the training part)" in said and "3 epochs of 3 steps" in said
    assert "pre-training makes 9 steps, which are few to learn from" in said


def test_steps_are_measured_on_a_copy():
    from _runs import digest, examples, objective, settings

    what, data = objective(), examples()
    before, started = digest(what.model), time.monotonic()
    seconds = plan.measure_step(what, data, settings())
    assert 0 < seconds < time.monotonic() - started and digest(what.model) == before


@pytest.mark.parametrize("minutes", [0, -1, float("inf"), float("nan")])
def test_minutes(minutes):
    from conftest import refuses

    with refuses("minutes", "positive"):
        FitConfig(minutes=minutes)


def test_without_a_budget_nothing_is_measured_and_nothing_changes(tmp_path, monkeypatch):
    from _runs import examples, objective, settings

    monkeypatch.setattr(plan, "measure_step", lambda *_: pytest.fail("it takes steps on a copy"))
    made = Plan(tmp_path, FitConfig(), True, time.monotonic(), Reporter())
    long = settings(epochs=1000)
    assert made.schedule("pre-training", objective(), examples(), long) == long and not list(tmp_path.iterdir())


def test_epochs_beside_minutes_are_warned_of(tmp_path, capfd):
    for changed, said in (
        ({"finetune_epochs": 3, "min_steps": 0, "minutes": 1}, "finetune_epochs, min_steps have no effect"),
        ({"minutes": 1}, ""),
        ({"finetune_epochs": 3}, ""),
        ({"pretrain_epochs": 3, "pretrained": tmp_path, "minutes": 1}, ""),
    ):
        Plan(tmp_path, FitConfig(**changed), True, 0.0, Reporter())
        err = " ".join(capfd.readouterr().err.split())
        assert said in err and bool(err) == bool(said)
