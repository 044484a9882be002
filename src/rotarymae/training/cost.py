"""The memory of a training's largest step, before it begins."""

from __future__ import annotations

import numpy as np
import torch

from rotarymae.config import RoMAEConfig
from rotarymae.errors import InputError
from rotarymae.system import free_memory
from rotarymae.training.fit_config import FitConfig

# Numbers kept per token, block and unit of width, gradients on the way included.
KEPT = {"softmax": 24, "linear": 28}
PROPOSED_MAX_TOKENS = (8192, 4096, 2048, 1024, 512, 256)


def largest_step(config: FitConfig, sizes: RoMAEConfig, lengths: np.ndarray) -> float:
    """Return the bytes of memory that the largest step takes of both trainings on series of these lengths [S]."""
    read = lengths if config.max_tokens is None else np.minimum(lengths, config.max_tokens)
    return max(_memory(config, sizes, read, pretrains) for pretrains in (True, False))


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


def _memory(config: FitConfig, sizes: RoMAEConfig, lengths: np.ndarray, pretrains: bool) -> float:
    """Return bytes that the largest batch keeps for its backward pass; attention keeps no matrix of its scores."""
    batch_size = (config.pretraining() if pretrains else config.finetuning()).batch_size or 1
    tokens, kept = int(lengths.max()) * min(batch_size, len(lengths)), KEPT[sizes.attention]
    if not pretrains:
        return 4.0 * kept * float(tokens * sizes.depth * sizes.embed_dim)
    encoder = tokens * (1 - np.mean(config.mask_ratio)) * sizes.depth * sizes.embed_dim
    return 4.0 * kept * float(encoder + tokens * sizes.decoder_depth * sizes.decoder_embed_dim)


def _free_memory() -> float:
    return float(torch.cuda.mem_get_info()[0]) if torch.cuda.is_available() else free_memory()
