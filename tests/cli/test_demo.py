"""The demo: its settings, and that it runs."""

import dataclasses

import pytest

from conftest import command
from rotarymae.cli.fit import configure


def test_the_demo_seeds_both_trainings_and_quick_is_shorter():
    whole, quick = configure(seed=7), configure(seed=7, quick=True)
    assert whole.pretraining().seed == whole.finetuning().seed == 7
    assert configure().seed == 0
    epochs = {name: getattr(whole, name) for name in ("pretrain_epochs", "finetune_epochs")}
    assert quick.pretrain_epochs + quick.finetune_epochs < 5 < sum(epochs.values())
    assert dataclasses.replace(quick, **epochs) == whole


def test_the_demos_model_can_be_built():
    config = configure().model_config(axes=2, features=3)
    assert (config.embed_dim, config.num_heads, config.depth) == (120, 2, 4)
    assert config.likelihood == "gaussian"


@pytest.mark.slow
def test_the_demo_runs(tmp_path):
    assert command("demo", "--quick", "--out", tmp_path / "demo", "--quiet") == 0
    wanted = {"metrics.json", "predictions.parquet", "embeddings.parquet", "report.html", "pretrained", "finetuned"}
    assert wanted <= {path.name for path in (tmp_path / "demo").iterdir()}
