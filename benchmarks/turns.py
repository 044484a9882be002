"""What each contender does when it is its turn: functions that build it, in a process of its own (`Apart`)."""

from __future__ import annotations

import numpy as np

from benchmarks.apart import Turn
from benchmarks.measure import Settings
from benchmarks.workload import (
    LONGEST,
    Classifying,
    Ours,
    Paper,
    Torch,
    equal_tokens,
    pad_to,
    ragged_examples,
    ragged_lengths,
)
from rotarymae import product
from rotarymae.config import RoMAEConfig
from rotarymae.series.examples import SeriesExamples, assemble
from rotarymae.tokens import Tokens
from rotarymae.training.batching import plan
from rotarymae.training.lanes import TRAINING, cut

COMPILED, EAGER, ONE_LANE = "ours, compiled", "ours, eager", "ours, eager, one lane"
# The way of multiplying that is not this machine's: what of a ratio is due to the library that multiplies.
OTHER = "ours, eager, torch's own products" if product.ONEDNN else "ours, eager, products by oneDNN"
PAPER, TORCH = "(a) the paper's", "(b) torch.nn.TransformerEncoder"


def ours(settings: Settings, who: str, config: RoMAEConfig, step: int) -> Ours:
    """Ours as `who` says, for steps of so many tokens."""
    if who == OTHER:
        product.ONEDNN = product.AVAILABLE and not product.ONEDNN
    return Ours(config, settings, compiled=who == COMPILED, step=0 if who == ONE_LANE else step)


def contender(settings: Settings, who: str, config: RoMAEConfig, step: int) -> Ours | Paper | Torch:
    if who == PAPER:
        return Paper(config, settings)
    return Torch(config, settings) if who == TORCH else ours(settings, who, config, step)


def training(
    settings: Settings,
    who: str,
    config: RoMAEConfig,
    batch: int,
    length: int,
    steps: int = 1,
    quantised: bool = False,
) -> Turn:
    """Pre-training steps on a batch without padding; with `quantised` at whole-numbered positions."""
    one = contender(settings, who, config, batch * length)
    tokens = equal_tokens(batch, length, settings)
    if quantised:
        tokens = Tokens(tokens.values, tokens.positions.round())

    def turn() -> int:
        for _ in range(steps):
            one.train(tokens)
        return steps * batch * length

    return turn


def inference(settings: Settings, who: str, config: RoMAEConfig, batch: int, length: int) -> Turn:
    """The encoder on a batch without padding."""
    one, tokens = ours(settings, who, config, batch * length), equal_tokens(batch, length, settings)

    def turn() -> int:
        one.infer(tokens)
        return batch * length

    return turn


def finetuning(settings: Settings, config: RoMAEConfig, batch: int, length: int, all_tokens: bool, lanes: bool) -> Turn:
    """A step of a classifier on [CLS]; with `all_tokens` the last block computes every token."""
    one = Classifying(config, settings, step=batch * length if lanes else 0)
    tokens = equal_tokens(batch, length, settings)

    def turn() -> int:
        one.train(tokens, all_tokens)
        return batch * length

    return turn


def epoch(settings: Settings, who: str, config: RoMAEConfig, series: int, budget: int) -> Turn:
    """An epoch of ours on ragged series, in batches by token budget; assembling and masking count."""
    one, lengths = ours(settings, who, config, budget), ragged_lengths(series)
    examples = ragged_examples(lengths)
    steps = steps_of(settings, lengths, budget, one.lanes.count)

    def turn() -> int:
        for parts in steps:
            one.train_parts([examples.batch(part, 0) for part in parts])
        return int(lengths.sum())

    return turn


def steps_of(settings: Settings, lengths: np.ndarray, budget: int, lanes: int) -> list[list[np.ndarray]]:
    """The series of every step of an epoch, cut for so many lanes."""
    steps = plan(lengths, 0, 0, batch_tokens=budget)
    return [[index] if settings.device != "cpu" else cut(index, lengths, TRAINING, lanes) for index in steps]


def padded(settings: Settings, config: RoMAEConfig, series: int, size: int, longest: bool) -> Turn:
    """An epoch of the paper's model on ragged series in batches of `size`, each padded to its longest series or to that
    of all; only masking counts, not assembling."""
    one, lengths = Paper(config, settings), ragged_lengths(series)
    examples = ragged_examples(lengths)
    groups = np.random.default_rng(1).permutation(series).reshape(-1, size)
    whole = [assembled(examples, group) for group in groups]
    whole = [pad_to(tokens, LONGEST) for tokens in whole] if longest else whole

    def turn() -> int:
        for tokens in whole:
            one.train(tokens)
        return int(lengths.sum())

    return turn


def assembled(examples: SeriesExamples, index: np.ndarray) -> Tokens:
    return assemble(examples.dataset, examples.preprocessor, index)
