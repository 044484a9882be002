"""The benchmarks measure what they say: the references compute what ours computes, operations are counted right."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from conftest import TESTS, random_rows, small

sys.path.insert(0, str(TESTS.parent))

from benchmarks import sections
from benchmarks.__main__ import markdown
from benchmarks.apart import Apart
from benchmarks.measure import Row, Settings, model_flops, ratio
from benchmarks.reference import Published, TorchAutoencoder, dense_mask, equal_counts
from benchmarks.workload import RATIO, counts, equal_tokens, masked_batch, pad_to, ragged_lengths, widened

from rotarymae import losses, official
from rotarymae.masking import mask_ratio, split
from rotarymae.model import MaskedAutoencoder
from rotarymae.tokens import collate

ROOT = TESTS.parent


def ragged_tokens(lengths=(9, 4, 13), more=0):
    rows = random_rows(lengths, features=2, axes=2, dtype=torch.float32)
    tokens = collate(rows)
    return pad_to(tokens, tokens.length + more)


@pytest.mark.parametrize("more", [0, 6])
def test_the_reference_computes_what_ours_does(more):
    model = MaskedAutoencoder(small(axes=2, features=2))
    tokens = ragged_tokens(more=more)
    mask = mask_ratio(tokens, RATIO)
    ours, theirs = model(tokens, mask), Published.like(model)(tokens, equal_counts(mask, tokens.padding))
    assert theirs.padding is not None and ours.masked.padding is not None
    assert (theirs.predicted[~theirs.padding] - ours.predicted[ours.masked.real]).abs().max() < 1e-5
    assert torch.equal(theirs.target[~theirs.padding], ours.masked.values[ours.masked.real])
    # Their loss divides by padding too.
    loss = Published.like(model).loss(tokens, equal_counts(mask, tokens.padding))
    wanted = losses.reconstruction(ours).sum / theirs.target.numel()
    assert loss.item() == pytest.approx(wanted.item(), rel=1e-5)


def test_the_reference_without_padding():
    model, tokens = MaskedAutoencoder(small(axes=2, features=2)), equal_tokens(2, 16, Settings())
    mask = mask_ratio(tokens, RATIO)
    assert (Published.like(model)(tokens, mask).predicted - model(tokens, mask).predicted).abs().max() < 1e-5
    assert dense_mask(None, 5, tokens.values).shape == (5, 5)


@pytest.mark.parametrize("name", ["pretraining", "pretraining_patches"])
def test_the_reference_gives_the_published_outputs(name):
    from safetensors.torch import load_file

    from test_official import tokens_of

    folder = TESTS / "parity" / name
    io, settings = load_file(folder / "io.safetensors"), json.loads((folder / "model_config.json").read_text())
    model, tokens = official.load(folder), tokens_of(io, settings)
    assert isinstance(model, MaskedAutoencoder)
    with torch.no_grad():
        out = Published.like(model).eval()(tokens, io["mask"].bool())
    assert (out.predicted - io["output"]).abs().max() < 2e-5


def test_equal_counts_hides_padding_only():
    tokens = ragged_tokens(more=5)
    mask = mask_ratio(tokens, RATIO)
    hidden = equal_counts(mask, tokens.padding)
    assert len(set(hidden.sum(1).tolist())) == 1 and hidden.sum(1)[0] == mask.sum(1).max()
    assert torch.equal(hidden & tokens.real, mask)


def test_torchs_encoder_ignores_padding():
    model = TorchAutoencoder(small(axes=2, features=2)).eval()
    tokens = ragged_tokens()
    visible, masked = split(tokens, mask_ratio(tokens, RATIO))
    from rotarymae.batch import Batch

    wide = widened(Batch(np.arange(3), visible, masked), 3, 4)
    assert wide.masked is not None
    a, b = model.loss(visible, masked), model.loss(wide.inputs, wide.masked)
    assert a.item() == pytest.approx(b.item(), rel=1e-5)


@pytest.mark.parametrize("training", [True, False])
def test_operations_agree_with_torchs_count(training):
    config = small(axes=2, features=2, depth=3)
    model, tokens = MaskedAutoencoder(config), equal_tokens(2, 16, Settings())
    batch = masked_batch(tokens)
    assert batch.masked is not None
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        with torch.set_grad_enabled(training):
            loss = losses.reconstruction(model.predict(batch.inputs, batch.masked)).mean
        if training:
            loss.backward()
    assert model_flops(config, *counts(np.full(2, 16)), training) == counter.get_total_flops()


def test_workload():
    lengths = ragged_lengths(512)
    assert lengths.min() >= 8 and lengths.max() <= 390 and abs(lengths.mean() - 88) < 1
    tokens = ragged_tokens()
    visible, masked = counts(np.array([9, 4, 13]))
    seen, hidden = split(tokens, mask_ratio(tokens, RATIO))
    assert seen.real.sum(1).tolist() == visible.tolist() and hidden.real.sum(1).tolist() == masked.tolist()


def test_ratios_are_of_pairs():
    row = ratio("s", "w", [2.0, 9.0, 4.0], [1.0, 3.0, 4.0], 1.5)
    assert row.each == [2.0, 3.0, 1.0] and row.value == 2.0 and row.met
    assert Row("s", "w", 2.0, "s", 1.0, at_least=False).met is False and Row("s", "w", 2.0, "s").met is None
    text = markdown({"quick": False, "device": "cpu"}, [row])
    assert "| s | w | 2 | × | ≥ 1.5 | yes |" in text


def test_calls_take_turns():
    order = []
    Settings(quick=True).alternate({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 2)
    assert order == ["a", "b", "a", "b", "a", "b"]


def counting(settings, folder, name):
    """A contender that writes down who took a turn, in which process."""

    def turn():
        with (folder / "turns").open("a") as file:
            file.write(f"{name} {os.getpid()}\n")
        return 7

    return turn


def failing(settings):
    raise ValueError("no such workload")


def ending(settings):
    os._exit(3)


def test_contenders_take_turns_in_processes_of_their_own(tmp_path: Path):
    with Apart(Settings(threads=1)) as apart:
        for name in ("a", "b"):
            apart.add(name, counting, tmp_path, name)
        rates = apart.rates(2)
        processes = [process for process, _ in apart.processes.values()]
    turns = [line.split() for line in (tmp_path / "turns").read_text().splitlines()]
    assert [name for name, _ in turns] == ["a", "b"] * 3  # the first pair warms up
    assert len({pid for _, pid in turns} | {str(os.getpid())}) == 3
    assert {name: len(each) for name, each in rates.items()} == {"a": 2, "b": 2}
    assert not any(process.is_alive() for process in processes)


@pytest.mark.parametrize(("build", "says"), [(failing, "no such workload"), (ending, "ended with code 3")])
def test_a_contender_that_fails_says_why(build, says):
    with Apart(Settings(threads=1)) as apart:
        apart.add("a", build)
        with pytest.raises(RuntimeError, match=says):
            apart.rates(1)


def test_every_section_runs(tmp_path: Path):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "benchmarks", "--quick", "--threads", "1", "--out", str(tmp_path)]
    command += ["--only", *(name for name in sections.SECTIONS if name != "compilation")]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)
    written = json.loads((tmp_path / "benchmark-quick.json").read_text())
    assert {row["section"] for row in written["rows"]} == set(sections.SECTIONS) - {"compilation"}
    assert all(np.isfinite(row["value"]) for row in written["rows"])
    assert {"date", "commit", "processor", "torch", "threads"} <= set(written["about"])
    assert "mean nothing" in (tmp_path / "benchmark-quick.md").read_text()


@pytest.mark.slow
def test_compilation_section_runs():
    found = {row.what: row.value for row in sections.compilation(Settings(quick=True, threads=1))}
    assert found["recompilations for ten new shapes"] == 0 and found["graphs"] > 0
