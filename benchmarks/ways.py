"""One training run in several ways that must not differ: the same seed, batches and masks each time."""

from __future__ import annotations

import numpy as np
import torch

from benchmarks.measure import Settings
from benchmarks.workload import Ours, ragged_examples, ragged_lengths, widened
from rotarymae import losses
from rotarymae.batch import Batch
from rotarymae.config import RoMAEConfig
from rotarymae.training.config import TrainConfig
from rotarymae.training.optimizer import learning_rate

ROWS = 8


def curve(way: str, steps: int, config: RoMAEConfig, rate: float) -> list[float]:
    """Mean losses of `steps` steps of `ROWS` series, at learning rates that rise to `rate` and fall to zero as the
    library's do.

    way: "eager"; "reversed", its rows in the opposite order, the least that rounding can differ by; "padded" with 7
    more places of padding in every row; "grouped" by length into micro-batches of two rows; "compiled".
    """
    ours = Ours(config, Settings(), compiled=way == "compiled")
    lengths = ragged_lengths(64)
    examples, found = ragged_examples(lengths), []
    for step in range(steps):
        for group in ours.trainer.optimizer.param_groups:
            group["lr"] = learning_rate(step, steps, TrainConfig().warmup_fraction * steps, rate)
        index = np.random.default_rng(step).permutation(len(lengths))[:ROWS]
        parts = [index[::-1] if way == "reversed" else index]
        if way == "grouped":
            parts = np.split(index[np.argsort(lengths[index], kind="stable")], ROWS // 2)
        batches = [examples.batch(part, step) for part in parts]
        if way == "padded":
            batches = [widened(batch, 7, 7) for batch in batches]
        found.append(_step(ours, batches))
    return found


def _step(ours: Ours, batches: list[Batch]) -> float:
    sums, terms = torch.zeros(()), 0.0
    for batch in batches:
        assert batch.masked is not None
        loss = losses.reconstruction(ours.model.predict(batch.inputs, batch.masked))
        sums, terms = sums + loss.sum, terms + float(loss.count)
    mean = sums / terms
    ours.trainer.step(mean)
    return float(mean.detach())
