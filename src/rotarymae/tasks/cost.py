"""What a training will cost, before it begins: the operations and the memory of its steps, and the time they take."""

from __future__ import annotations

import math
import time

import numpy as np
import torch

from rotarymae.config import BlockSizes, RoMAEConfig
from rotarymae.errors import InputError
from rotarymae.model import MaskedAutoencoder
from rotarymae.system import duration, free_memory
from rotarymae.tasks.config import FitConfig
from rotarymae.tokens import Tokens

LONGEST = 2 * 86_400.0  # seconds of one training, beyond which it is refused
SLOWEST = 1e9  # operations per second; no computer is slower, so that what is quick enough at this rate needs no look
# Numbers kept per token, block and unit of width, gradients on the way included.
KEPT = {"softmax": 24, "linear": 28}
BACKWARD = 3  # a step costs so many forward passes
ENOUGH = 0.1  # seconds of a step that tell how fast the computer is
TRIED = (8192, 4096, 2048, 1024, 512, 256)  # observations per series that are proposed


def estimate_cost(config: FitConfig, sizes: RoMAEConfig, lengths: np.ndarray) -> tuple[float, float, float]:
    """Seconds of pre-training and of fine-tuning on series of these lengths [S], and the bytes that the largest step
    keeps; from some small measured steps."""
    read = lengths if config.max_tokens is None else np.minimum(lengths, config.max_tokens)
    stages = {first: _batch_size(config, first) for first in (True, False)}
    rates = {size: _measure_rate(sizes, int(read.max()), size) for size in set(stages.values())}
    before, after = (
        _passes(config, read, first) * float(step_operations(config, sizes, read, first).sum()) / rates[size]
        for first, size in stages.items()
    )
    return before, after, max(_memory(config, sizes, read, first) for first in stages)


def check_cost(config: FitConfig, sizes: RoMAEConfig, lengths: np.ndarray, noun: str = "series") -> None:
    """Refuses a training whose steps do not fit into memory, or which would take days: the first one of the run.

    Args:
        config: how it is trained.
        sizes: the model.
        lengths: [S] tokens of each example.
        noun: what the examples are.

    Raises:
        InputError: with what it would take, and what to do.
    """
    read, first = lengths if config.max_tokens is None else np.minimum(lengths, config.max_tokens), config.pretrains
    memory, free, work = _memory(config, sizes, read, first), _free_memory(), _operations(config, sizes, read)
    longest = LONGEST if config.minutes is None else 60 * config.minutes
    if memory <= free and work <= longest * SLOWEST:
        return
    rate = _measure_rate(sizes, int(read.max()), _batch_size(config, first))
    seconds = work / rate
    if memory <= free and seconds <= longest:
        return
    enough = [
        most
        for most in TRIED
        if _memory(config, sizes, np.minimum(read, most), first) <= free
        and _operations(config, sizes, np.minimum(read, most)) <= longest * rate
        and most < read.max()
    ]
    advice = "Take"
    if noun != "series":
        advice = f"Take larger patches, make the {noun} smaller, or take"
    elif enough:
        advice = (
            f"Read at most {enough[0]} observations of a series at a time, cut the series into windows of {enough[0]} "
            "that are all read, or take"
        )
    given = config.minutes is not None and seconds > longest
    budget = f"more than the {duration(longest)} given (minutes={config.minutes:g}), about " if given else "about "
    stage = f"{'' if config.minutes is None else 'one step of '}{'pre-training' if config.pretrains else 'fine-tuning'}"
    grows = "with the square of" if sizes.attention == "softmax" else "with"
    tokens = "observations" if noun == "series" else "patches"
    raise InputError(
        f"{stage} would take {budget}{duration(seconds)} and {memory / 2**30:.3g} GiB of memory "
        f"for its largest step ({free / 2**30:.3g} GiB are free): the longest of the {len(read):,} {noun} has "
        f"{read.max():,} {tokens}, the time of a step grows {grows} that, and its memory in proportion. "
        f"{advice} a smaller size, a smaller batch_size, or {'more minutes' if given else 'fewer epochs'}.",
        code="too-costly",
        settings=[("max_tokens", enough[0]), ("window", enough[0])] if enough and noun == "series" else [],
    )


def step_operations(config: FitConfig, sizes: RoMAEConfig, lengths: np.ndarray, pretrains: bool = True) -> np.ndarray:
    """Floating-point operations of one training step's share of each series [S], from products and attention alone."""
    n = np.asarray(lengths, np.float64)
    ratio = np.mean(config.mask_ratio)
    visible = n * (1 - ratio) if pretrains else n
    found = _blocks(sizes.encoder_sizes, visible, visible)
    if pretrains:
        keys = n if sizes.decoder_attention == "joint" else visible
        found += _blocks(sizes.decoder_sizes, n, keys)
    return BACKWARD * found


def _blocks(sizes: BlockSizes, queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Of a forward pass in which so many tokens attend to so many of them."""
    # Linear attention sums keys and values up in a matrix per head, which every query reads.
    pairs = queries * keys if sizes.attention == "softmax" else (queries + keys) * sizes.head_dim / 2
    products = queries * (8 * sizes.embed_dim + 4 * sizes.hidden_dim)
    return sizes.depth * sizes.embed_dim * (products + 4 * pairs)


def _operations(config: FitConfig, sizes: RoMAEConfig, lengths: np.ndarray) -> float:
    """Of all steps of the training, or of the largest one where minutes decide how many there are."""
    first = config.pretrains
    if config.minutes is not None:
        largest = np.sort(lengths)[-_batch_size(config, first) :]
        return float(step_operations(config, sizes, largest, first).sum())
    return _passes(config, lengths, first) * float(step_operations(config, sizes, lengths, first).sum())


def _batch_size(config: FitConfig, pretrains: bool) -> int:
    return (config.pretraining() if pretrains else config.finetuning()).batch_size or 1


def _passes(config: FitConfig, lengths: np.ndarray, pretrains: bool) -> int:
    training = config.pretraining() if pretrains else config.finetuning()
    return training.passes(math.ceil(len(lengths) / _batch_size(config, pretrains)))


def _memory(config: FitConfig, sizes: RoMAEConfig, lengths: np.ndarray, pretrains: bool) -> float:
    """Bytes that the largest batch keeps for its backward pass; attention keeps no matrix of its scores."""
    tokens, kept = int(lengths.max()) * min(_batch_size(config, pretrains), len(lengths)), KEPT[sizes.attention]
    if not pretrains:
        return 4.0 * kept * float(tokens * sizes.depth * sizes.embed_dim)
    encoder = tokens * (1 - np.mean(config.mask_ratio)) * sizes.depth * sizes.embed_dim
    return 4.0 * kept * float(encoder + tokens * sizes.decoder_depth * sizes.decoder_embed_dim)


def _free_memory() -> float:
    if torch.cuda.is_available():
        return float(torch.cuda.mem_get_info()[0])
    return free_memory()


def _measure_rate(sizes: RoMAEConfig, longest: int, batch_size: int) -> float:
    """Operations per second of a step on this computer; of one series, or of as many as make it last long enough for
    what every step costs besides to be small."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with torch.random.fork_rng(devices=[]):
        model = MaskedAutoencoder(sizes).to(device)
    n = max(2, min(longest, 1024))  # of one observation nothing can be hidden
    steps = torch.arange(float(n), device=device)

    def seconds(rows: int) -> float:
        values = (steps / n).view(1, n, 1).expand(rows, n, sizes.features + sizes.input_features)
        tokens = Tokens(values, (steps / n).view(1, n, 1).expand(rows, n, sizes.axes), None)
        started = time.perf_counter()
        model(tokens, (steps % 2 == 1).expand(rows, n)).predicted.sum().backward()
        return time.perf_counter() - started

    seconds(1)  # warms up
    # Of some, the one that nothing else held up, such as pages that are still read in.
    rows, took = 1, min(seconds(1) for _ in range(3))
    while took < ENOUGH and 2 * rows <= batch_size:
        rows *= 2
        took = min(seconds(rows) for _ in range(3))
    halves = FitConfig(mask_ratio=0.5)
    return rows * float(step_operations(halves, sizes, np.array([n]))[0]) / took
