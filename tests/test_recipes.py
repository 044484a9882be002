"""Recipes: each says what it is, and what it sets is used."""

import dataclasses
import importlib
from pathlib import Path

import pytest

import rotarymae.recipes
from conftest import command
from rotarymae.recipes.demo import settings

FILES = sorted(f.stem for f in Path(rotarymae.recipes.__file__).parent.glob("*.py") if f.stem != "__init__")


def test_there_are_recipes():
    assert "demo" in FILES


@pytest.mark.parametrize("name", FILES)
def test_each_says_what_it_is(name):
    recipe = importlib.import_module(f"rotarymae.recipes.{name}")
    assert recipe.__doc__ and "rotarymae" in recipe.__doc__


def test_the_demo_seeds_both_trainings_and_quick_is_shorter():
    whole, quick = settings(seed=7), settings(seed=7, quick=True)
    assert whole.pretrain.seed == whole.finetune.seed == 7
    assert settings().pretrain.seed == 0
    assert quick.pretrain.epochs + quick.finetune.epochs < 5 < whole.pretrain.epochs + whole.finetune.epochs
    same = dataclasses.replace(quick, pretrain=whole.pretrain, finetune=whole.finetune)
    assert same == whole


def test_the_demos_model_can_be_built():
    config = settings().model_config(axes=2, features=3)
    assert (config.embed_dim, config.num_heads, config.depth) == (120, 2, 4)
    assert config.likelihood == "gaussian"


@pytest.mark.slow
def test_the_demo_runs(tmp_path):
    assert command("demo", "--quick", "--out", tmp_path / "demo", "--quiet") == 0
    wanted = {"metrics.json", "predictions.parquet", "embeddings.parquet", "report.html", "pretrained", "finetuned"}
    assert wanted <= {path.name for path in (tmp_path / "demo").iterdir()}
