"""Tiny runs, the same every time, for tests and for the longer checks in scripts/."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch

from rotarymae.batch import Batch
from rotarymae.config import RoMAEConfig
from rotarymae.heads import Classifier, Regressor
from rotarymae.losses import classification, regression
from rotarymae.masking import Masking
from rotarymae.model import Encoder, MaskedAutoencoder
from rotarymae.preprocess import DatasetExamples, ObservationPreprocessor
from rotarymae.series.dataset import SeriesDataset
from rotarymae.training.fit_config import FitConfig, TrainConfig
from rotarymae.training.objectives import Objective, Pretraining, Supervised

KINDS = ("pretrain", "classify", "regress")


def series(count: int, seed: int = 0, longest: int = 12) -> SeriesDataset:
    """Noisy sines in two channels, of 2 to `longest` observations."""
    draw = np.random.default_rng(seed)
    times, values, channels = [], [], []
    for i in range(count):
        n = int(draw.integers(2, longest + 1))
        at = np.sort(draw.uniform(0, 20, n)) + 1e-3 * np.arange(n)
        times.append(at)
        values.append(np.sin(at + i % 3) + 0.1 * draw.standard_normal(n))
        channels.append(np.array(["g", "r"])[draw.integers(0, 2, n)])
    channels[0][:2] = ["g", "r"]  # both are there in every data set
    ids = [f"s{i:03d}" for i in range(count)]
    return SeriesDataset.from_arrays(times, values, channels, ids)


# Of the main jobs, as short as they can be.
SIZES = {"embed_dim": 24, "num_heads": 2, "depth": 2}
SIZES |= {"decoder_embed_dim": 12, "decoder_num_heads": 1, "decoder_depth": 1}
FIT = FitConfig(pretrain_epochs=1, finetune_epochs=1, min_steps=0, batch_size=8, **SIZES)


def waves() -> SeriesDataset:
    """16 series of 4 to 11 observations in two channels."""
    draw = np.random.default_rng(0)
    times = [np.sort(draw.uniform(0, 20, draw.integers(4, 12))) for _ in range(16)]
    channels = [draw.integers(2, size=len(t)) for t in times]
    return SeriesDataset.from_arrays(times, [np.sin(t) for t in times], channels)


def config(dropout: float = 0.1, drop_path: float = 0.2) -> RoMAEConfig:
    return RoMAEConfig(
        axes=2,
        features=1,
        embed_dim=24,
        num_heads=2,
        depth=2,
        mlp_ratio=2.0,
        decoder_embed_dim=12,
        decoder_num_heads=1,
        decoder_depth=1,
        decoder_mlp_ratio=2.0,
        dropout=dropout,
        drop_path=drop_path,
        likelihood="gaussian",
    )


def objective(kind: str = "pretrain", dropout: float = 0.1, drop_path: float = 0.2, seed: int = 0) -> Objective:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        sizes = config(dropout, drop_path)
        if kind == "pretrain":
            return Pretraining(MaskedAutoencoder(sizes))
        if kind == "classify":
            return Supervised(
                Classifier(Encoder(sizes), 3, dropout=dropout), partial(classification, label_smoothing=0.1)
            )
        return Supervised(Regressor(Encoder(sizes), 1, pool="mean", dropout=dropout), regression)


def examples(
    kind: str = "pretrain", count: int = 40, seed: int = 0, of: int = 0, augment: bool = True
) -> DatasetExamples:
    """`of` chooses the series, `seed` the masks."""
    dataset = series(count, of)
    preprocessor = ObservationPreprocessor.fit(series(40))
    preprocessor.positions.training_reach[0] = 1e3
    if kind == "pretrain":
        return DatasetExamples(dataset, preprocessor, seed, Masking("ratio", (0.3, 0.8)))
    targets = np.arange(count) % 3
    if kind == "regress":
        targets = np.sin(np.arange(count, dtype=np.float32))[:, None]
    drop, noise = (0.3, 0.1) if augment else (0.0, 0.0)
    return DatasetExamples(dataset, preprocessor, seed, targets=targets, drop=drop, noise=noise)


def settings(**changes) -> TrainConfig:
    """Five epochs of four batches, without checkpoints by the clock."""
    usual = {"epochs": 5, "batch_size": 10, "log_every": 1, "checkpoint_minutes": 1e7, "precision": "fp32"}
    return TrainConfig(**{**usual, **changes})


def weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    """Bit for bit."""
    return one.keys() == other.keys() and all(
        one[name].dtype == other[name].dtype and torch.equal(one[name], other[name]) for name in one
    )


def digest(model: torch.nn.Module) -> str:
    found = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        found.update(name.encode() + tensor.detach().cpu().contiguous().numpy().tobytes())
    return found.hexdigest()


def log(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]


class Poisoned:
    """Examples of which some series turn every number they touch into NaN, past all checks of the data set."""

    def __init__(self, inner: DatasetExamples, bad: set[int], epoch: int | None = None) -> None:
        self.inner, self.bad, self.epoch = inner, bad, epoch
        self.lengths = inner.lengths
        self.names = inner.names

    def batch(self, index: np.ndarray, epoch: int | None) -> Batch:
        batch = self.inner.batch(index, epoch)
        hit = [i for i, s in enumerate(index.tolist()) if s in self.bad]
        if hit and self.epoch in (None, epoch):
            values = batch.inputs.values.clone()
            values[hit] = torch.nan
            batch = replace(batch, inputs=replace(batch.inputs, values=values, check_values=False))
        return batch
