"""The benchmarks measure what they say: the references compute what ours computes, operations are counted right."""

import json
import sys

import numpy as np
import pytest
import torch

from conftest import TESTS, from_rows, random_rows, small, unchecked

sys.path.insert(0, str(TESTS.parent))

from benchmarks import sections
from benchmarks.__main__ import main, markdown
from benchmarks.measure import Settings, ratio
from benchmarks.reference import Published, TorchAutoencoder, dense_mask, equal_counts
from benchmarks.workload import RATIO, equal_tokens, pad_to, ragged_lengths

from rotarymae import losses, official
from rotarymae.masking import Masking, split
from rotarymae.model import MaskedAutoencoder

JOINT = small(axes=2, features=2, decoder_attention="joint")  # as the published model's decoder


def ragged_tokens(lengths=(9, 4, 13), more=0):
    rows = random_rows(lengths, features=2, axes=2, dtype=torch.float32)
    tokens = from_rows(rows)
    return pad_to(tokens, tokens.length + more)


@pytest.mark.parametrize("more", [0, 6])
def test_the_reference_computes_what_ours_does(more):
    model = MaskedAutoencoder(JOINT)
    tokens = ragged_tokens(more=more)
    mask = Masking("ratio", RATIO)(tokens)
    ours, theirs = model(tokens, mask), Published.like(model)(tokens, equal_counts(mask, tokens.padding))
    assert theirs.padding is not None and ours.masked.padding is not None
    assert (theirs.predicted[~theirs.padding] - ours.predicted[ours.masked.real]).abs().max() < 1e-5
    assert torch.equal(theirs.target[~theirs.padding], ours.masked.values[ours.masked.real])
    # Their loss divides by padding too.
    loss = Published.like(model).loss(tokens, equal_counts(mask, tokens.padding))
    wanted = losses.reconstruction(ours).sum / theirs.target.numel()
    assert loss.item() == pytest.approx(wanted.item(), rel=1e-5)


def test_the_reference_without_padding():
    model, tokens = (
        MaskedAutoencoder(JOINT),
        equal_tokens(2, 16, Settings()),
    )
    mask = Masking("ratio", RATIO)(tokens)
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
    mask = Masking("ratio", RATIO)(tokens)
    hidden = equal_counts(mask, tokens.padding)
    assert len(set(hidden.sum(1).tolist())) == 1 and hidden.sum(1)[0] == mask.sum(1).max()
    assert torch.equal(hidden & tokens.real, mask)


def test_torchs_encoder_ignores_padding():
    model = TorchAutoencoder(JOINT).eval()
    tokens = ragged_tokens()
    visible, masked = split(tokens, Masking("ratio", RATIO)(tokens))
    a, b = (
        model.loss(visible, masked),
        model.loss(pad_to(visible, visible.length + 3), pad_to(masked, masked.length + 4)),
    )
    assert a.item() == pytest.approx(b.item(), rel=1e-5)


def test_workload():
    lengths = ragged_lengths(512)
    assert lengths.min() >= 8 and lengths.max() <= 390 and abs(lengths.mean() - 88) < 1


def test_ratios_are_of_pairs():
    row = ratio("s", "w", [2.0, 9.0, 4.0], [1.0, 3.0, 4.0])
    assert row.each == [2.0, 3.0, 1.0] and row.value == 2.0
    assert "| s | w | 2 | × |" in markdown({"quick": False, "device": "cpu"}, [row])


def test_calls_take_turns():
    order = []
    Settings().alternate({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 2)
    assert order == ["a", "b", "a", "b", "a", "b"]  # the first pair warms up


def test_every_section_runs(tmp_path):
    with unchecked():
        main(["--quick", "--threads", "1", "--out", str(tmp_path)])
    written = json.loads((tmp_path / "benchmark-quick.json").read_text())
    assert {row["section"] for row in written["rows"]} == set(sections.SECTIONS)
    assert all(np.isfinite(row["value"]) for row in written["rows"])
    assert {"date", "commit", "processor", "torch", "threads"} <= set(written["about"])
    assert "mean nothing" in (tmp_path / "benchmark-quick.md").read_text()
