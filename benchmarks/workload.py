"""What is run: series of light-curve lengths, batches of equal length, and a training step of each contender."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.measure import Settings, Trainer
from benchmarks.reference import Published, TorchAutoencoder, equal_counts
from rotarymae.batch import Batch
from rotarymae.config import RoMAEConfig
from rotarymae.heads import Classifier
from rotarymae.masking import Masking, mask_ratio, split
from rotarymae.model import Encoder, MaskedAutoencoder
from rotarymae.series.dataset import SeriesDataset
from rotarymae.series.examples import SeriesExamples
from rotarymae.series.scaling import Preprocessor
from rotarymae.tokens import Tokens
from rotarymae.training.lanes import INFERENCE, TRAINING, Lanes, cut, lanes_for
from rotarymae.training.loop import compile_blocks
from rotarymae.training.objectives import Pretraining

RATIO = 0.75
LONGEST = 390


def ragged_lengths(series: int, seed: int = 0) -> np.ndarray:
    """Observations a series: log-normal, log-mean 4.2, log-sd 0.8, clipped to 8..390; mean about 88."""
    return np.clip(np.random.default_rng(seed).lognormal(4.2, 0.8, series), 8, LONGEST).astype(np.int64)


def ragged_examples(lengths: np.ndarray, seed: int = 0) -> SeriesExamples:
    """Light curves of these lengths: time and one of six bands; flux and its error."""
    draw = np.random.default_rng(seed)
    n, series = int(lengths.sum()), len(lengths)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    times = np.cumsum(draw.exponential(3.0, n))
    dataset = SeriesDataset(
        times=times,
        values=np.stack([draw.standard_normal(n), draw.random(n) + 0.1], axis=1).astype(np.float32),
        offsets=starts.astype(np.int64),
        ids=np.arange(series),
        value_names=("flux", "error"),
        channels=draw.integers(0, 6, n).astype(np.int32),
        channel_names=tuple("ugrizY"),
    )
    return SeriesExamples(dataset, Preprocessor.fit(dataset), seed, Masking(ratio=RATIO))


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
    visible, masked = split(tokens, mask_ratio(tokens, RATIO))
    return Batch(np.arange(tokens.batch), visible, masked)


def widened(batch: Batch, visible: int, masked: int) -> Batch:
    """The same step with so much more padding behind the visible and behind the masked tokens of every row."""
    assert batch.masked is not None
    inputs = pad_to(batch.inputs, batch.inputs.length + visible)
    return replace(batch, inputs=inputs, masked=pad_to(batch.masked, batch.masked.length + masked))


def autocast(settings: Settings, dtype: torch.dtype | None) -> torch.autocast:
    return torch.autocast(settings.device, dtype or torch.bfloat16, enabled=dtype is not None)


def parts_of(tokens: Tokens, lanes: Lanes, most: int = TRAINING) -> list[Tokens]:
    """The rows as they are cut for training, and for evaluation."""
    if tokens.values.device.type != "cpu":
        return [tokens]
    rows = cut(np.arange(tokens.batch), np.full(tokens.batch, tokens.length), most, lanes.count)
    return [Tokens(tokens.values[part], tokens.positions[part]) for part in map(torch.from_numpy, rows)]


class Ours:
    """`rotarymae.MaskedAutoencoder`, eager or with compiled blocks, its steps taken as `rotarymae.training` does.

    `step` is how many tokens a step has, from which follows in how many lanes it is computed; 0 is one lane. `dtype` is
    autocast's, if not the one of the settings.
    """

    def __init__(
        self,
        config: RoMAEConfig,
        settings: Settings,
        compiled: bool = False,
        dtype: torch.dtype | None = None,
        step: int = 0,
    ) -> None:
        torch.manual_seed(0)
        self.settings, self.dtype = settings, dtype or settings.dtype
        self.model = MaskedAutoencoder(config).to(settings.device)
        compiled = compiled and not settings.quick  # a quick run compiles once, in its own section
        if compiled:
            compile_blocks(self.model)
        self.trainer = Trainer(self.model, fused=True)
        self.lanes = Lanes(1 if compiled else lanes_for(torch.device(settings.device), step))

    def train_parts(self, parts: list[Batch]) -> None:
        """One step on all of them."""
        parts = [part.to(self.settings.device) for part in parts]
        objective = Pretraining(self.model)
        count = sum(objective.count(part) for part in parts)

        def loss(part: Batch) -> Tensor:
            with autocast(self.settings, self.dtype):
                return objective(part) / count

        self.lanes.backward(loss, parts, self.trainer.parameters)
        self.trainer.update()

    def train_batch(self, batch: Batch) -> None:
        self.train_parts([batch])

    def train(self, tokens: Tokens) -> None:
        """Masks, splits and learns."""
        self.train_parts([masked_batch(part) for part in parts_of(tokens, self.lanes)])

    def infer(self, tokens: Tokens) -> None:
        """Encodes all the tokens; a model fine-tuned on [CLS] computes less, `Encoder.summary`."""

        def encode(part: Tokens) -> None:
            with torch.no_grad(), autocast(self.settings, self.dtype):
                self.model.encoder(part)

        self.lanes.map(encode, parts_of(tokens, self.lanes, INFERENCE))


class Classifying:
    """`rotarymae.Classifier` on [CLS], of 14 classes."""

    def __init__(self, config: RoMAEConfig, settings: Settings, step: int = 0) -> None:
        torch.manual_seed(0)
        self.settings = settings
        self.model = Classifier(Encoder(config), 14).to(settings.device)
        self.trainer = Trainer(self.model, fused=True)
        self.lanes = Lanes(lanes_for(torch.device(settings.device), step))

    def train(self, tokens: Tokens, all_tokens: bool = False) -> None:
        """Learns one batch; with `all_tokens` [CLS] is taken only after the last block has computed every token."""
        model, of = self.model, tokens.batch

        def loss(part: Tokens) -> Tensor:
            targets = torch.arange(part.batch, device=self.settings.device) % model.classes
            with autocast(self.settings, self.settings.dtype):
                vector = model.encoder(part).cls if all_tokens else model.encoder.summary(part)
                logits = model.head(model.norm(vector))
                return nn.functional.cross_entropy(logits, targets, reduction="sum") / of

        self.lanes.backward(loss, parts_of(tokens, self.lanes), self.trainer.parameters)
        self.trainer.update()


class Paper:
    """Reference (a). `benchmarks.reference.Published` with torch's default AdamW."""

    def __init__(self, config: RoMAEConfig, settings: Settings) -> None:
        torch.manual_seed(0)
        self.settings = settings
        self.model = Published.like(MaskedAutoencoder(config)).to(settings.device)
        self.trainer = Trainer(self.model, fused=False)

    def train(self, tokens: Tokens) -> None:
        tokens = tokens.to(self.settings.device)
        mask = equal_counts(mask_ratio(tokens, RATIO), tokens.padding)
        with autocast(self.settings, self.settings.dtype):
            loss = self.model.loss(tokens, mask)
        self.trainer.step(loss)


class Torch:
    """Reference (b): torch.nn.TransformerEncoder, fused AdamW."""

    def __init__(self, config: RoMAEConfig, settings: Settings) -> None:
        torch.manual_seed(0)
        self.model = TorchAutoencoder(config).to(settings.device)
        self.trainer = Trainer(self.model, fused=True)

    def train(self, tokens: Tokens) -> None:
        self.trainer.step(self.model.loss(*split(tokens, mask_ratio(tokens, RATIO))))


def counts(lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(visible, masked) tokens of rows of these lengths."""
    masked = np.minimum(np.ceil(RATIO * lengths - 1e-9), lengths - 1)
    return lengths - masked, masked


def cycle(calls: list[Callable[[], object]]) -> Callable[[], None]:
    """A call that makes the next of `calls`, over and over."""
    at = 0

    def following() -> None:
        nonlocal at
        calls[at % len(calls)]()
        at += 1

    return following
