"""What is run: series of light-curve lengths, batches of equal length, and a training step of each contender."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from benchmarks.measure import Settings, Trainer
from benchmarks.reference import Published, TorchAutoencoder, equal_counts
from rotarymae import Classifier, Encoder, MaskedAutoencoder, RoMAEConfig, SeriesDataset, Tokens
from rotarymae.batch import Batch
from rotarymae.masking import Masking, split
from rotarymae.preprocess import DatasetExamples, ObservationPreprocessor
from rotarymae.training import Pretraining

RATIO = 0.75
LONGEST = 390


def ragged_lengths(series: int, seed: int = 0) -> np.ndarray:
    """Observations per series: log-normal, log-mean 4.2, log-sd 0.8, clipped to 8..390; mean about 88."""
    return np.clip(np.random.default_rng(seed).lognormal(4.2, 0.8, series), 8, LONGEST).astype(np.int64)


def padding_waste(lengths: np.ndarray, batches: Sequence[np.ndarray]) -> float:
    """The share of padded tokens among all that the batches hold."""
    held = sum(len(batch) * int(lengths[batch].max()) for batch in batches)
    return 1.0 - float(sum(int(lengths[batch].sum()) for batch in batches)) / held


def ragged_examples(lengths: np.ndarray, seed: int = 0) -> DatasetExamples:
    """Light curves of these lengths: time and one of six bands; flux and its error."""
    draw = np.random.default_rng(seed)
    n, series = int(lengths.sum()), len(lengths)
    dataset = SeriesDataset(
        times=np.cumsum(draw.exponential(3.0, n)),
        values=np.stack([draw.standard_normal(n), draw.random(n) + 0.1], axis=1).astype(np.float32),
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        ids=np.arange(series),
        value_names=("flux", "error"),
        channels=draw.integers(0, 6, n).astype(np.int32),
        channel_names=tuple("ugrizY"),
    )
    return DatasetExamples(dataset, ObservationPreprocessor.fit(dataset), seed, Masking("ratio", RATIO))


def equal_tokens(batch: int, length: int, settings: Settings, axes: int = 2, features: int = 2) -> Tokens:
    """A batch without padding; positions on every axis are real numbers up to 100."""
    draw = torch.Generator().manual_seed(length)
    values = torch.randn(batch, length, features, generator=draw)
    positions = 100 * torch.rand(batch, length, axes, generator=draw)
    return Tokens(values, positions).to(settings.device)


def pad_to(tokens: Tokens, length: int) -> Tokens:
    """The same rows with padding behind, up to `length`."""
    more = length - tokens.length
    if more == 0:
        return tokens
    values = nn.functional.pad(tokens.values, (0, 0, 0, more))
    positions = nn.functional.pad(tokens.positions, (0, 0, 0, more))
    return Tokens(values, positions, nn.functional.pad(~tokens.real, (0, more), value=True))


def masked_batch(tokens: Tokens) -> Batch:
    """A batch of a pre-training step."""
    visible, masked = split(tokens, Masking("ratio", RATIO)(tokens))
    return Batch(np.arange(tokens.batch), visible, masked)


def autocast(settings: Settings) -> torch.autocast:
    return torch.autocast(settings.device, settings.dtype or torch.bfloat16, enabled=settings.dtype is not None)


class Ours:
    """`rotarymae.MaskedAutoencoder`, its steps taken as `rotarymae.training` does."""

    def __init__(self, config: RoMAEConfig, settings: Settings) -> None:
        torch.manual_seed(0)
        self.settings = settings
        self.model = MaskedAutoencoder(config).to(settings.device)
        self.objective = Pretraining(self.model)
        self.trainer = Trainer(self.model, fused=True)

    def train_batch(self, batch: Batch) -> None:
        batch = batch.to(self.settings.device)
        with autocast(self.settings):
            loss = self.objective(batch).mean
        self.trainer.step(loss)

    def train(self, tokens: Tokens) -> None:
        """Masks, splits and learns."""
        self.train_batch(masked_batch(tokens))

    @torch.no_grad()
    def encode(self, tokens: Tokens) -> None:
        with autocast(self.settings):
            self.model.encoder(tokens)


class Finetuning:
    """`rotarymae.Classifier` on [CLS], of 14 classes."""

    def __init__(self, config: RoMAEConfig, settings: Settings) -> None:
        torch.manual_seed(0)
        self.settings = settings
        self.model = Classifier(Encoder(config), 14).to(settings.device)
        self.trainer = Trainer(self.model, fused=True)

    def train(self, tokens: Tokens) -> None:
        targets = torch.arange(tokens.batch, device=self.settings.device) % 14
        with autocast(self.settings):
            loss = nn.functional.cross_entropy(self.model(tokens), targets)
        self.trainer.step(loss)


class Paper:
    """Reference (a): `benchmarks.reference.Published` with torch's default AdamW."""

    def __init__(self, config: RoMAEConfig, settings: Settings) -> None:
        torch.manual_seed(0)
        self.settings = settings
        self.model = Published.like(MaskedAutoencoder(config)).to(settings.device)
        self.trainer = Trainer(self.model, fused=False)

    def train(self, tokens: Tokens) -> None:
        tokens = tokens.to(self.settings.device)
        mask = equal_counts(Masking("ratio", RATIO)(tokens), tokens.padding)
        with autocast(self.settings):
            loss = self.model.loss(tokens, mask)
        self.trainer.step(loss)


class Torch:
    """Reference (b): torch.nn.TransformerEncoder, fused AdamW."""

    def __init__(self, config: RoMAEConfig, settings: Settings) -> None:
        torch.manual_seed(0)
        self.settings = settings
        self.model = TorchAutoencoder(config).to(settings.device)
        self.trainer = Trainer(self.model, fused=True)

    def train(self, tokens: Tokens) -> None:
        with autocast(self.settings):
            loss = self.model.loss(*split(tokens, Masking("ratio", RATIO)(tokens)))
        self.trainer.step(loss)
