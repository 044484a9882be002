"""Fast ways are the same ways: one seed and the same batches give the same loss curve, and nothing grows as N²."""

import json
import subprocess
import sys

import pytest
import torch

from conftest import TESTS, small

sys.path.insert(0, str(TESTS.parent))

from benchmarks.sections import loss_curves
from benchmarks.workload import ragged_examples, ragged_lengths

from rotarymae.training.batching import padding_waste, plan

SMALL = {"axes": 2, "features": 2}


def apart(one, other):
    assert len(one) == len(other)
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


def test_loss_curves_of_padded_and_grouped_batches():
    found = loss_curves(50, small(**SMALL), compiled=False)
    print({way: apart(found["eager"], curve) for way, curve in found.items()})
    assert found["eager"][-1] < found["eager"][0]
    assert apart(found["padded"], found["eager"]) < 1e-4
    assert apart(found["grouped"], found["eager"]) < 1e-4


COMPILED = """
import json, torch
from benchmarks.ways import curve
from rotarymae.model import RoMAEConfig
from torch._dynamo.utils import counters
torch.set_num_threads(1)
config = RoMAEConfig(axes=2, features=2, embed_dim=24, num_heads=2, depth=2, decoder_embed_dim=12, decoder_num_heads=1)
curves = [curve(way, 50, config, 1e-3) for way in ("eager", "compiled")]
print(json.dumps([*curves, counters["stats"]["unique_graphs"]]))
"""


@pytest.mark.slow
def test_loss_curves_of_compiled_blocks():
    # In a process of its own: the hook that checks shapes is not for compiling.
    run = subprocess.run([sys.executable, "-c", COMPILED], cwd=TESTS.parent, capture_output=True, text=True, check=True)
    eager, compiled, graphs = json.loads(run.stdout.splitlines()[-1])
    assert eager != compiled  # else nothing was compiled
    # Three ways in (the decoder's first and last block differ), one way out, one more for the other width: with and
    # without padding, in 50 batches of other shapes.
    assert graphs <= 5
    assert apart(eager, compiled) < 1e-4


def test_ragged_batches_waste_little():
    lengths = ragged_lengths(512)
    assert padding_waste(lengths, plan(lengths, 0, 0, batch_tokens=1536)) <= 0.05
    many = ragged_lengths(20_000)
    assert padding_waste(many, plan(many, 0, 0, batch_tokens=8192)) <= 0.05


def test_no_tensor_grows_with_the_square_of_the_length():
    """What a step keeps for its backward pass, at two lengths, with padding."""
    from benchmarks.measure import Settings
    from benchmarks.workload import equal_tokens, masked_batch, widened

    from rotarymae import losses
    from rotarymae.model import MaskedAutoencoder

    model, kept = MaskedAutoencoder(small(**SMALL)), []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        kept.append(tensor.numel())
        return tensor

    totals = []
    for length in (200, 400):
        kept.clear()
        batch = widened(masked_batch(equal_tokens(1, length, Settings())), 5, 15)
        assert batch.masked is not None
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            losses.reconstruction(model.predict(batch.inputs, batch.masked)).mean.backward()
        totals.append(sum(kept))
    assert totals[1] < 2.05 * totals[0]


def test_masks_of_the_ragged_workload_are_a_function_of_the_series():
    examples = ragged_examples(ragged_lengths(16))
    import numpy as np

    alone, together = examples.batch(np.array([3]), 0), examples.batch(np.arange(8), 0)
    assert alone.masked is not None and together.masked is not None
    row = together.masked.values[3][together.masked.real[3]]
    assert torch.equal(alone.masked.values[0], row)
