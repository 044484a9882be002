"""The sections of the benchmark: each measures one thing and gives rows.

Dropout is 0 throughout. Above 0 torch's CPU attention falls back to a kernel that writes out all scores, for ours and
for the references alike; figures with dropout would say nothing about either. A GPU has fast kernels with it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.measure import Row, Settings, rates, ratio
from benchmarks.workload import (
    LONGEST,
    Finetuning,
    Ours,
    Paper,
    Torch,
    equal_tokens,
    pad_to,
    padding_waste,
    ragged_examples,
    ragged_lengths,
)
from rotarymae import RoMAEConfig
from rotarymae.batch import plan_batches

BUDGET = 3072  # tokens per batch of the ragged workload: about those of 32 series
REFERENCE_BATCH = 32
# The demo's model, and the length of its series.
DEMO = {"embed_dim": 120, "num_heads": 2, "depth": 4, "decoder_embed_dim": 120, "decoder_num_heads": 2}
DEMO |= {"features": 3, "likelihood": "gaussian"}


def _config(size: str, settings: Settings, **changes: Any) -> RoMAEConfig:
    return RoMAEConfig.named("tiny-shallow" if settings.quick else size, **{"axes": 2, "features": 2, **changes})


def throughput(settings: Settings) -> list[Row]:
    """Tokens per second by size, without padding: a step of pre-training, of fine-tuning on [CLS], and encoding."""
    tasks = [("tiny-shallow", 32, 256), ("tiny", 32, 256), ("small", 8, 256)]
    if settings.device == "cuda":
        tasks = [(size, 256, 256) for size in ("tiny", "small", "base")]
    found = []
    for size, batch, length in [("tiny-shallow", 2, 32)] if settings.quick else tasks:
        config = _config(size, settings)
        found += _steps(settings, "throughput", f"{size}, {batch} × {length}", config, batch, length)
    return found


def demo(settings: Settings) -> list[Row]:
    """The demo's model on 32 series of 180 observations."""
    batch, length = (2, 16) if settings.quick else (32, 180)
    return _steps(
        settings, "demo", f"demo's model, {batch} × {length}", _config("tiny", settings, **DEMO), batch, length
    )


def _steps(settings: Settings, section: str, what: str, config: RoMAEConfig, batch: int, length: int) -> list[Row]:
    ours, classifier = Ours(config, settings), Finetuning(config, settings)
    tokens = equal_tokens(batch, length, settings, features=config.features)
    calls: dict[str, Callable[[], None]] = {
        f"{what}, pre-training": lambda: ours.train(tokens),
        f"{what}, fine-tuning": lambda: classifier.train(tokens),
        f"{what}, encoding": lambda: ours.encode(tokens),
    }
    return list(rates(section, batch * length, settings.alternate(calls), "tokens/s").values())


def equal(settings: Settings) -> list[Row]:
    """Pre-training on batches without padding: ours against both references, and rotary against absolute positions."""
    batch, length = (2, 32) if settings.quick else (32, 256)
    config, absolute = _config("tiny", settings), _config("tiny", settings, position_encoding="absolute")
    contenders = {
        "ours": Ours(config, settings),
        "(a) the paper's": Paper(_config("tiny", settings, decoder_attention="joint"), settings),
        "(b) torch.nn.TransformerEncoder": Torch(config, settings),
        "ours, absolute positions": Ours(absolute, settings),
    }
    tokens = equal_tokens(batch, length, settings)
    calls = {name: lambda one=one: one.train(tokens) for name, one in contenders.items()}
    found = rates("equal", batch * length, settings.alternate(calls), "tokens/s")
    each = {name: row.each for name, row in found.items()}
    return [*found.values(), *(ratio("equal", f"ours of {name}", each["ours"], each[name]) for name in list(each)[1:])]


def ragged(settings: Settings) -> list[Row]:
    """Series of light-curve lengths: real tokens per second of an epoch, beside the reference on the same series.

    Ours are batches of nearly equal lengths within a budget of tokens; assembling and masking count. The reference's
    are batches of 32 series, padded to the longest of the set or of the batch; only masking counts.
    """
    series = 16 if settings.quick else 256
    lengths = ragged_lengths(series)
    examples = ragged_examples(lengths)
    config = _config("tiny", settings)
    ours, paper = Ours(config, settings), Paper(_config("tiny", settings, decoder_attention="joint"), settings)
    batches = plan_batches(lengths, 0, 0, batch_tokens=BUDGET)
    order = np.random.default_rng(0).permutation(series)
    whole = [
        examples.preprocessor.complete(examples.tokens(order[i : i + REFERENCE_BATCH], None))
        for i in range(0, series, REFERENCE_BATCH)
    ]

    def epoch() -> None:
        for index in batches:
            ours.train_batch(examples.batch(index, 0))

    def reference(longest: int | None) -> None:
        for tokens in whole:
            paper.train(tokens if longest is None else pad_to(tokens, longest))

    calls: dict[str, Callable[[], None]] = {
        "ours": epoch,
        "(a) padded per batch": lambda: reference(None),
        f"(a) padded to {LONGEST}": lambda: reference(LONGEST),
    }
    found = rates("ragged", float(lengths.sum()), settings.alternate(calls, 5), "real tokens/s")
    each = {name: row.each for name, row in found.items()}
    against = [ratio("ragged", f"ours of {name}", each["ours"], each[name]) for name in list(each)[1:]]
    return [Row("ragged", "padding waste", padding_waste(lengths, batches), ""), *found.values(), *against]


def padding(settings: Settings) -> list[Row]:
    """The share of padding among the tokens of an epoch, by budget."""
    found = []
    for series in (512,) if settings.quick else (512, 6_300, 100_000):
        lengths = ragged_lengths(series)
        for budget in (1536, 4096, 16384):
            waste = padding_waste(lengths, plan_batches(lengths, 0, 0, batch_tokens=budget))
            found.append(Row("padding", f"{series} series, {budget} tokens per batch", waste, ""))
    return found


def memory(settings: Settings) -> list[Row]:
    """Peak memory of a training step by length, each in a fresh process, and the exponent of its growth."""
    lengths = [256, 512] if settings.quick else [1024, 2048, 4096, 8192, 16384]
    root = Path(__file__).resolve().parents[1]
    command = [sys.executable, "-m", "benchmarks.memory", "--device", settings.device]
    command += ["--size", "tiny-shallow" if settings.quick else "tiny"]
    command += ["--threads", str(settings.threads or torch.get_num_threads())]
    peaks = []
    for length in lengths:
        done = subprocess.run([*command, str(length)], stdout=subprocess.PIPE, text=True, cwd=root, check=True)
        peaks.append(int(done.stdout.split()[-1]))
    slope = float(np.polyfit(np.log(lengths), np.log(np.maximum(peaks, 1)), 1)[0])
    found = [Row("memory", f"{n} tokens", peak / 2**20, "MiB") for n, peak in zip(lengths, peaks, strict=True)]
    return [*found, Row("memory", "exponent of growth", slope, "")]


def precision(settings: Settings) -> list[Row]:
    """bf16 against float32 by size, without padding: a step of pre-training, of fine-tuning on [CLS], and encoding."""
    found = []
    sizes = [("light", 2, 16)] if settings.quick else [("light", 32, 180), ("tiny", 32, 256), ("small", 8, 256)]
    for size, batch, length in sizes:
        config = _config(size, settings)
        low, high = ((Ours(config, s), Finetuning(config, s)) for s in _precisions(settings))
        tokens = equal_tokens(batch, length, settings, features=config.features)
        for what, one, other in (
            ("pre-training", low[0].train, high[0].train),
            ("fine-tuning", low[1].train, high[1].train),
            ("encoding", low[0].encode, high[0].encode),
        ):
            calls = {f"{size}, {what}, bf16": partial(one, tokens), f"{size}, {what}, fp32": partial(other, tokens)}
            rows = list(rates("precision", batch * length, settings.alternate(calls), "tokens/s").values())
            found += [*rows, ratio("precision", f"{size}, {what}, bf16 of fp32", rows[0].each, rows[1].each)]
    return found


def _precisions(settings: Settings) -> tuple[Settings, Settings]:
    return replace(settings, precision=torch.bfloat16), replace(settings, precision=torch.float32)


SECTIONS: dict[str, Callable[[Settings], list[Row]]] = {
    "throughput": throughput,
    "demo": demo,
    "equal": equal,
    "ragged": ragged,
    "padding": padding,
    "memory": memory,
    "precision": precision,
}
