"""Recipes: every file is listed, says what to expect, can be configured, and runs at its smallest scale."""

import dataclasses
import json
import re
import signal
import sys

import pytest

import _elasticc
import _esc50
import _physionet
import _tiny_imagenet
import _uea
from _command import command
from rotarymae.errors import InputError
from rotarymae_experiments import recipes
from rotarymae_experiments.results import read_file
from rotarymae_experiments.runner import SCALES, SETTINGS, Setup, run

MADE_UP = {"elasticc": _elasticc.write, "uea": _uea.write, "physionet": _physionet.write, "mortality": _physionet.write}
MADE_UP |= {"tiny_imagenet": _tiny_imagenet.write, "esc50": _esc50.write}


def test_every_file_is_a_recipe():
    assert len(recipes.NAMES) >= 17


@pytest.mark.parametrize("name", recipes.NAMES)
def test_each_says_what_it_is(name):
    assert re.search(rf"`rotarymae-experiments run {name}[` ]", recipes.load(name).describe()[1])


@pytest.mark.parametrize("name", recipes.NAMES)
def test_each_can_be_configured(name):
    recipe = recipes.load(name)
    assert recipe.name == name and all(recipe.describe())
    setups = {(scale, setting): recipe.configure(scale, setting) for scale in SCALES for setting in SETTINGS}
    assert all(isinstance(setup, Setup) and setup.cases and setup.seeds for setup in setups.values())
    for setting in SETTINGS:
        assert setups["smoke", setting] != setups["small", setting]
    assert (setups["paper", "paper"] != setups["paper", "ours"]) == (recipe.paper is not None)
    cases = {case for setup in setups.values() for case in setup.cases}
    assert {row.case for row in recipe.rows} <= cases
    with pytest.raises(InputError, match=r"scale 'smal'.*Did you mean 'small'"):
        recipe.configure("smal", "ours")


def test_an_unknown_recipe():
    with pytest.raises(InputError, match=r"'spiral'.*'spirals'"):
        recipes.load("spiral")


OWN = """
\"\"\"The mean of numbers of one's own.\"\"\"

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rotarymae_experiments import Recipe, Row, Score, Setup


@dataclass(frozen=True)
class OwnSetup(Setup):
    \"\"\"The configuration.

    Attributes:
        times: Multiply the numbers by this.
    \"\"\"

    cases: tuple[str, ...] = ("all",)
    times: float = 1.0


def run(setup, case, trial):
    numbers = np.loadtxt(Path(__file__).with_name("numbers.txt"))
    return Score({"mean": float(setup.times * numbers.mean())})


RECIPE = Recipe(name="mine", ours=OwnSetup(), run=run, rows=(Row("mean", "all", "mean"),), trains=False)
"""


def test_a_recipe_and_data_of_ones_own_run_from_outside_the_package(tmp_path, capsys):
    (tmp_path / "my_recipe.py").write_text(OWN)
    (tmp_path / "numbers.txt").write_text("1\n2\n3\n")
    file, places = tmp_path / "my_recipe.py", ("--out", tmp_path / "runs", "--results", tmp_path / "results")
    assert command("run", file, "--times", "2", *places) == 0
    found = read_file(tmp_path / "results" / "mine-ours-small.json")
    assert found["cases"]["all"]["metrics"]["mean"]["mean"] == 4.0
    assert command("show", file) == 0
    assert "The mean of numbers of one's own." in capsys.readouterr().out
    assert command("run", file, "--help") == 0
    assert "Multiply the numbers by this." in capsys.readouterr().out


def test_a_file_that_is_no_recipe_is_named(tmp_path):
    (tmp_path / "empty.py").write_text("")
    with pytest.raises(InputError, match=r"empty\.py.*RECIPE"):
        recipes.load(str(tmp_path / "empty.py"))
    with pytest.raises(InputError, match=r"gone\.py"):
        recipes.load(str(tmp_path / "gone.py"))


@pytest.mark.parametrize("signum, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stop_has_the_exit_code_of_its_signal(signum, code, monkeypatch, capsys):
    monkeypatch.setattr(recipes, "load_all", lambda: signal.raise_signal(signum))
    assert command("list") == code
    assert f"stopped by {signum.name}. The same command goes on" in capsys.readouterr().err


def smoke(name, setting, folder):
    recipe = recipes.load(name)
    setup = recipe.configure("smoke", setting)
    if name in MADE_UP:  # real files are not on every machine
        setup = dataclasses.replace(setup, data_dir=str(MADE_UP[name](folder / "data")))
    path = run(recipe, "smoke", setting, setup, out=folder / "runs", results=folder / "results")
    result = read_file(path)
    for part in result["cases"].values():
        for losses in part["losses"]:
            for stage, curve in losses.items():
                last = sum(curve[-3:]) / 3
                assert last < curve[0], f"{name}, {stage}: the loss went from {curve[0]:.4g} to {last:.4g}"
        assert not recipe.trains or all(part["losses"])
    shown = {row.metric for row in recipe.rows if row.case in result["cases"]}
    measured = {metric for part in result["cases"].values() for metric in part["metrics"]}
    if setting == "ours":  # the paper's setting predicts no variance, so it has no likelihood
        assert shown <= measured
    else:
        assert shown & measured
    figures = list(path.parent.glob("*.png"))
    assert bool(figures) == (recipe.figures is not None)
    return result


@pytest.mark.parametrize("name", recipes.NAMES)
def test_each_runs(name, tmp_path):
    result = smoke(name, "ours", tmp_path)
    json.dumps(result, allow_nan=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", recipes.NAMES)
def test_each_runs_in_the_papers_setting(name, tmp_path):
    smoke(name, "paper", tmp_path)


def test_a_recipe_of_ones_own_takes_no_module_s_place_and_finds_what_lies_beside_it(tmp_path):
    import signal

    (tmp_path / "signal.py").write_text("from beside_it import NAME\n" + OWN.replace('"mine"', "NAME"))
    (tmp_path / "beside_it.py").write_text("NAME = 'what lies beside'\n")
    assert recipes.load(str(tmp_path / "signal.py")).name == "what lies beside"
    assert sys.modules["signal"] is signal


def test_a_folder_that_a_smoke_run_does_not_read_is_said(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("rotarymae_experiments.run", lambda *_, **__: tmp_path / "result.json")
    assert command("run", "plasticc", "--scale", "smoke", "--data-dir", tmp_path) == 0
    assert "data_dir has no effect" in capsys.readouterr().err
    assert command("run", "plasticc", "--scale", "smoke") == 0
    assert "no effect" not in capsys.readouterr().err


def test_options_before_the_name_of_a_recipe_are_refused(capsys):
    assert command("run", "--scale", "smoke", "speed") == 2
    assert "--scale came first; wanted the recipe's name first" in capsys.readouterr().err
