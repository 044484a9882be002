"""Fast ways are the same ways: one seed and the same batches give the same loss curve, and nothing grows as N²."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from conftest import TESTS, small

sys.path.insert(0, str(TESTS.parent))

from benchmarks.measure import Settings
from benchmarks.workload import Ours, equal_tokens, masked_batch, pad_to, padding_waste, ragged_examples, ragged_lengths

from rotarymae import losses
from rotarymae.batch import plan_batches
from rotarymae.model import MaskedAutoencoder

SMALL = {"axes": 2, "features": 2}
ROWS = 8


def curve(way, config, steps=50, rate=1e-3):
    """Mean losses of some steps, "eager" or "compiled"."""
    ours = Ours(config, Settings())
    if way == "compiled":
        for block in (*ours.model.encoder.transformer.blocks, *ours.model.decoder.blocks):
            block.compile(dynamic=True)
    lengths = ragged_lengths(64)
    examples, curve = ragged_examples(lengths), []
    for step in range(steps):
        for group in ours.trainer.optimizer.param_groups:
            group["lr"] = rate * min(step / 10, (steps - step) / steps)
        index = np.random.default_rng(step).permutation(len(lengths))[:ROWS]
        batch = examples.batch(index, step)
        loss = losses.reconstruction(ours.model.predict(batch.inputs, batch.masked)).mean
        ours.trainer.step(loss)
        curve.append(float(loss.detach()))
    return curve


COMPILED = """
import json, torch
from test_speed import curve
from rotarymae import RoMAEConfig
torch.set_num_threads(1)
config = RoMAEConfig(axes=2, features=2, embed_dim=24, num_heads=2, depth=2, decoder_embed_dim=12, decoder_num_heads=1)
print(json.dumps([curve(way, config) for way in ("eager", "compiled")]))
"""


@pytest.mark.slow
def test_loss_curves_of_compiled_blocks():
    # In a process of its own: the hook that checks shapes is not for compiling.
    command = [sys.executable, "-c", COMPILED]
    environment = {"ROTARYMAE_NO_HOOK": "1"}
    run = subprocess.run(
        command, cwd=TESTS, capture_output=True, text=True, check=True, env={**os.environ, **environment}
    )
    eager, compiled = json.loads(run.stdout.splitlines()[-1])
    assert eager != compiled  # else nothing was compiled
    assert eager == pytest.approx(compiled, abs=1e-4)


def test_padding_waste_by_hand():
    assert padding_waste(np.array([1, 3, 2]), [np.array([0, 1]), np.array([2])]) == pytest.approx(2 / 8)


@pytest.mark.parametrize(("size", "most"), [({"batch_size": 32}, 0.15), ({"batch_tokens": 4096}, 0.06)])
def test_little_is_padding_even_of_log_normal_lengths(size, most):
    lengths = np.maximum(1, np.random.default_rng(0).lognormal(4, 1, 5000)).astype(int)
    waste = padding_waste(lengths, plan_batches(lengths, 0, 0, **size))
    naive = padding_waste(lengths, np.split(np.arange(5000), range(32, 5000, 32)))
    print(f"{size}: {waste:.1%} of the tokens are padding, {naive:.0%} without sorting")
    assert waste < most and naive > 0.4


def test_no_tensor_grows_with_the_square_of_the_length():
    """What a step keeps for its backward pass, at two lengths, with padding."""
    model, kept = MaskedAutoencoder(small(**SMALL)), []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        kept.append(tensor.numel())
        return tensor

    totals = []
    for length in (200, 400):
        kept.clear()
        batch = masked_batch(pad_to(equal_tokens(1, length, Settings()), length + 20))
        assert batch.masked is not None
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            losses.reconstruction(model.predict(batch.inputs, batch.masked)).mean.backward()
        totals.append(sum(kept))
    assert totals[1] < 2.05 * totals[0]
