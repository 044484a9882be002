"""What a training costs, before it begins: the memory of its largest step, and the time of all its steps."""

from __future__ import annotations

import math
import time

import numpy as np
import torch

from rotarymae.config import BlockSizes, RoMAEConfig
from rotarymae.counter_rng import make_generator
from rotarymae.errors import InputError
from rotarymae.model import MaskedAutoencoder, build
from rotarymae.system import free_memory
from rotarymae.tokens import Tokens
from rotarymae.training.fit_config import FitConfig

# Numbers kept per token, block and unit of width, gradients on the way included.
KEPT = {"softmax": 24, "linear": 28}
FORWARD_PASSES_PER_STEP = 3
MEASURED_TOKENS = 4096  # in a step that tells how fast the computer is
PROPOSED_MAX_TOKENS = (8192, 4096, 2048, 1024, 512, 256)


def estimate_cost(config: FitConfig, sizes: RoMAEConfig, lengths: np.ndarray) -> tuple[float, float, float]:
    """Return seconds of pre-training and of fine-tuning on series of these lengths [S], and bytes of the largest step.

    The time is that of a few steps which are taken now, in proportion to the products of all steps.
    """
    read = lengths if config.max_tokens is None else np.minimum(lengths, config.max_tokens)
    rate, seconds = _measure_rate(sizes, max(2, int(np.median(read)))), []
    for pretrains in (True, False):
        training = config.pretraining() if pretrains else config.finetuning()
        passes = training.passes(math.ceil(len(read) / _batch_size(config, pretrains)))
        seconds.append(passes * float(step_operations(config, sizes, read, pretrains).sum()) / rate)
    return seconds[0], seconds[1], max(_memory(config, sizes, read, pretrains) for pretrains in (True, False))


def check_memory(config: FitConfig, sizes: RoMAEConfig, lengths: np.ndarray, noun: str = "series") -> None:
    """Refuse a training whose largest step does not fit into memory: the first training of the run.

    Args:
        config: how it is trained.
        sizes: the model.
        lengths: [S] tokens of each example.
        noun: what the examples are.

    Raises:
        InputError: with the memory that it would take, and what to do.
    """
    read, first, free = lengths, config.pretrains, _free_memory()
    if config.max_tokens is not None:
        read = np.minimum(lengths, config.max_tokens)
    memory = _memory(config, sizes, read, first)
    if memory <= free:
        return
    fits = (n for n in PROPOSED_MAX_TOKENS if _memory(config, sizes, np.minimum(read, n), first) <= free)
    most, advice = next(fits, None), "Take"
    if noun != "series":
        advice = f"Take larger patches, make the {noun} smaller, or take"
    elif most is not None:
        advice = (
            f"Read at most {most} observations of a series at a time, cut the series into windows of {most} that are "
            "all read, or take"
        )
    raise InputError(
        f"a step of {'pre-training' if first else 'fine-tuning'} would take {memory / 2**30:.3g} GiB of memory, and "
        f"{free / 2**30:.3g} GiB are free: the longest of the {len(read):,} {noun} has {read.max():,} "
        f"{'observations' if noun == 'series' else 'patches'}. {advice} a smaller size or a smaller batch_size.",
        code="too-little-memory",
        settings=[("max_tokens", most), ("window", most)] if most is not None and noun == "series" else [],
    )


def step_operations(config: FitConfig, sizes: RoMAEConfig, lengths: np.ndarray, pretrains: bool = True) -> np.ndarray:
    """Return floating-point operations of a step for each series [S], of products and attention alone."""
    n = np.asarray(lengths, np.float64)
    visible = n * (1 - np.mean(config.mask_ratio)) if pretrains else n
    operations = _blocks(sizes.encoder_sizes, visible, visible)
    if pretrains:
        operations += _blocks(sizes.decoder_sizes, n, n if sizes.decoder_attention == "joint" else visible)
    return FORWARD_PASSES_PER_STEP * operations


def _blocks(sizes: BlockSizes, queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Return operations of a forward pass in which `queries` tokens attend to `keys` tokens."""
    # Linear attention sums keys and values up in a matrix per head, which every query reads.
    pairs = queries * keys if sizes.attention == "softmax" else (queries + keys) * sizes.head_dim / 2
    products = queries * (8 * sizes.embed_dim + 4 * sizes.hidden_dim)
    return sizes.depth * sizes.embed_dim * (products + 4 * pairs)


def _batch_size(config: FitConfig, pretrains: bool) -> int:
    return (config.pretraining() if pretrains else config.finetuning()).batch_size or 1


def _memory(config: FitConfig, sizes: RoMAEConfig, lengths: np.ndarray, pretrains: bool) -> float:
    """Return bytes that the largest batch keeps for its backward pass; attention keeps no matrix of its scores."""
    tokens, kept = int(lengths.max()) * min(_batch_size(config, pretrains), len(lengths)), KEPT[sizes.attention]
    if not pretrains:
        return 4.0 * kept * float(tokens * sizes.depth * sizes.embed_dim)
    encoder = tokens * (1 - np.mean(config.mask_ratio)) * sizes.depth * sizes.embed_dim
    return 4.0 * kept * float(encoder + tokens * sizes.decoder_depth * sizes.decoder_embed_dim)


def _free_memory() -> float:
    return float(torch.cuda.mem_get_info()[0]) if torch.cuda.is_available() else free_memory()


def _measure_rate(sizes: RoMAEConfig, length: int) -> float:
    """Return operations per second of a step on this computer: the median of three, after one that warms up."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = build(lambda: MaskedAutoencoder(sizes), make_generator(0)).to(device)
    n, rows = min(length, MEASURED_TOKENS), max(1, MEASURED_TOKENS // length)
    at = (torch.arange(n, device=device) / n).float().view(1, n, 1)
    values = at.expand(rows, n, sizes.features + sizes.input_features)
    tokens, mask = Tokens(values, at.expand(rows, n, sizes.axes)), (torch.arange(n) % 2 == 1).to(device).expand(rows, n)
    seconds = []
    for _ in range(4):
        started = time.perf_counter()
        model(tokens, mask).predicted.sum().backward()
        seconds.append(time.perf_counter() - started)
    half = FitConfig(mask_ratio=0.5)
    return rows * float(step_operations(half, sizes, np.array([n]))[0]) / float(np.median(seconds[1:]))
