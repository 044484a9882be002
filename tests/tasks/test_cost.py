"""What would not fit, or would take days, is refused before it begins; a share of long series is read instead."""

import json
import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import TINY, command, refuses
from rotarymae import SeriesDataset
from rotarymae.errors import InputWarning
from rotarymae.preprocess import ObservationPreprocessor, SeriesExamples
from rotarymae.preprocess.observations import thinned
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
    assert [part for part in ("899,284", "GiB of memory", "--max-tokens ") if part not in said] == []
    assert not (tmp_path / "run").exists()


def test_many_series_of_one_observation_are_answered_at_once(tmp_path, capsys):
    table = write_series(tmp_path / "short.parquet", np.ones(100_000, int))
    assert command("fit", table, "--out", tmp_path / "run") == 2
    assert "none of the 63,750 series to train on has two observations" in " ".join(capsys.readouterr().err.split())


def test_a_share_of_a_long_series_is_read_in_training_and_by_the_model(tmp_path, capsys):
    table = write_series(tmp_path / "long.parquet", [3000, 50])
    out = tmp_path / "run"
    assert command("fit", table, "--out", out, "--max-tokens", "100", *TINY) == 0
    assert "more than 100 observations are not read whole" in " ".join(capsys.readouterr().err.split())
    assert json.loads((out / "model/preprocessor.json").read_text())["max_tokens"] == 100
    log = (out / "training/pretrain/log.jsonl").read_text()
    assert json.loads((out / "metrics.json").read_text())["settings"]["max_tokens"] == 100 and log == ""
    assert command("embed", out, table, "--out", tmp_path / "e.csv") == 0
    assert "not read whole" in capsys.readouterr().err


def test_what_is_refused_and_what_is_proposed(monkeypatch):
    cost.check_memory(CONFIG, SIZES, np.full(1000, 200))
    monkeypatch.setattr(cost, "_free_memory", lambda: 2e9)
    with refuses("7 GiB", "1.86 GiB", "32 series has 4,000", "max_tokens=1024", code="too-little-memory"):
        cost.check_memory(CONFIG, SIZES, np.full(32, 4000))
    with refuses("smaller size", code="too-little-memory"):
        cost.check_memory(FitConfig(size="base", batch_size=10_000), SIZES, np.full(10_000, 300))
    # The proposal is enough, and so is what it proposes besides.
    cost.check_memory(FitConfig(size="tiny-shallow", max_tokens=1024), SIZES, np.full(32, 4000))
    cost.check_memory(FitConfig(size="tiny-shallow", batch_size=8), SIZES, np.full(32, 4000))


def test_each_training_has_a_batch_size_of_its_own(monkeypatch):
    monkeypatch.setattr(cost, "_free_memory", lambda: 2e9)
    own = FitConfig(size="tiny-shallow", batch_size=4, finetune_batch_size=32, min_steps=0)
    lengths = np.full(64, 400)
    memory = cost.largest_step(own, SIZES, lengths)
    assert memory == 4 * cost.KEPT["softmax"] * 32 * 400 * SIZES.depth * SIZES.embed_dim, "of fine-tuning"
    small, large = (FitConfig(size="tiny-shallow", batch_size=size) for size in (4, 32))
    assert cost.largest_step(large, SIZES, lengths) == 8 * cost.largest_step(small, SIZES, lengths) > memory
    continued = {"pretrained": "model", "size": "light"}  # fine-tunes alone, by batches of its own
    cost.check_memory(replace(own, **continued, batch_size=32, finetune_batch_size=4), SIZES, np.full(32, 4000))
    with refuses("fine-tuning", "GiB", code="too-little-memory"):
        cost.check_memory(replace(own, **continued), SIZES, np.full(32, 4000))


def test_memory_grows_in_proportion():
    one, four = (cost._memory(CONFIG, SIZES, np.array([n]), True) for n in (1000, 4000))
    assert four == pytest.approx(4 * one)


def test_thinned_rows():
    lengths = np.array([5, 1000, 20, 21])
    kept = thinned(lengths, 20)
    series = np.repeat(np.arange(4), lengths)[kept]
    assert np.bincount(series).tolist() == [5, 20, 20, 20]
    assert (np.diff(kept) > 0).all() and kept[:5].tolist() == [0, 1, 2, 3, 4]
    middle = kept[5:25] - 5
    assert (middle // 50 == np.arange(20)).all(), "one of each twentieth"
    assert set(middle % 5) == set(range(5)), "sensors that take turns are all met"
    assert thinned(lengths[1:2], 20).tolist() == middle.tolist(), "whatever else is in the batch"


def test_training_draws_anew_and_evaluation_does_not():
    times = [np.arange(1000.0) + 5, np.arange(30.0)]
    dataset = SeriesDataset.from_arrays(times, [np.sin(t) for t in times])
    preprocessor = ObservationPreprocessor.fit(dataset).replace(max_tokens=40)
    with pytest.warns(InputWarning, match="more than 40 observations"):
        preprocessor.check(dataset)
    examples = SeriesExamples(dataset, preprocessor)
    assert examples.lengths.tolist() == [40, 30]

    def positions(index, epoch):
        return examples.batch(np.array(index), epoch).inputs.positions[index.index(0), :40, 0].numpy()

    first, second, held = positions([0, 1], 0), positions([0, 1], 1), positions([0, 1], None)
    assert not np.array_equal(first, second) and not np.array_equal(first, held)
    assert np.array_equal(first, positions([0], 0)) and np.array_equal(held, positions([1, 0], None))
    for drawn in (first, second, held):
        assert (np.diff(drawn) > 0).all() and drawn[-1] - drawn[0] > 0.9 * 999 / preprocessor.positions.unit
        assert drawn[0] * preprocessor.positions.unit < 25, "times count from the first observation, drawn or not"
