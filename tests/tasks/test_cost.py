"""What would not fit, or would take days, is refused before it begins."""

import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import command, refuses
from rotarymae.training import cost
from rotarymae.training.fit_config import FitConfig

CONFIG = FitConfig(size="tiny-shallow")
SIZES = CONFIG.model_config(axes=1, features=1)


def write_series(path, lengths):
    ids = np.repeat(np.arange(len(lengths)), lengths)
    times = np.arange(len(ids), dtype=float)
    pq.write_table(pa.table({"id": ids, "time": times, "value": np.sin(times / 7)}), path)
    return path


def test_one_series_of_900_000_observations_is_answered_at_once(tmp_path, capsys):
    table = write_series(tmp_path / "long.parquet", [899_284])
    started = time.monotonic()
    how = ["--window", "900000", "--size", "base", "--batch-size", "64"]
    assert command("fit", table, *how, "--out", tmp_path / "run") == 2
    assert time.monotonic() - started < 60, "it took 3 s alone"
    said = " ".join(capsys.readouterr().err.split())
    assert [part for part in ("899,284", "GiB of memory", "--window ") if part not in said] == []
    assert not (tmp_path / "run").exists()


def test_many_series_of_one_observation_are_answered_at_once(tmp_path, capsys):
    table = write_series(tmp_path / "short.parquet", np.ones(100_000, int))
    assert command("fit", table, "--out", tmp_path / "run") == 2
    assert "none of the 63,750 series to train on has two observations" in " ".join(capsys.readouterr().err.split())


def test_what_is_refused_and_what_is_proposed(monkeypatch):
    cost.check_memory(CONFIG, SIZES, np.full(1000, 200))
    monkeypatch.setattr(cost, "free_memory", lambda: 2e9)
    with refuses("7 GiB", "1.86 GiB", "32 series has 4,000", "window=1024", code="too-little-memory"):
        cost.check_memory(CONFIG, SIZES, np.full(32, 4000))
    with refuses("smaller size", code="too-little-memory"):
        cost.check_memory(FitConfig(size="base", batch_size=10_000), SIZES, np.full(10_000, 300))
    # The proposal is enough, and so is what it proposes besides.
    cost.check_memory(CONFIG, SIZES, np.full(32, 1024))
    cost.check_memory(FitConfig(size="tiny-shallow", batch_size=8), SIZES, np.full(32, 4000))


def test_each_training_has_a_batch_size_of_its_own(monkeypatch):
    monkeypatch.setattr(cost, "free_memory", lambda: 2e9)
    own = FitConfig(size="tiny-shallow", batch_size=4, finetune_batch_size=32, min_steps=0)
    lengths = np.full(64, 400)
    memory = cost._memory(own, SIZES, lengths, False)
    assert memory == 4 * cost.KEPT * 32 * 400 * SIZES.depth * SIZES.embed_dim > cost._memory(own, SIZES, lengths, True)
    continued = {"pretrained": "model", "size": "light"}  # fine-tunes alone, by batches of its own
    cost.check_memory(replace(own, **continued, batch_size=32, finetune_batch_size=4), SIZES, np.full(32, 4000))
    with refuses("fine-tuning", "GiB", code="too-little-memory"):
        cost.check_memory(replace(own, **continued), SIZES, np.full(32, 4000))


def test_memory_grows_in_proportion():
    one, four = (cost._memory(CONFIG, SIZES, np.array([n]), True) for n in (1000, 4000))
    assert four == pytest.approx(4 * one)
