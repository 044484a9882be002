"""Clocks, pairs, counting: how every figure of the benchmarks is taken."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from rotarymae.config import RoMAEConfig
from rotarymae.provenance import commit, processor


@dataclass(frozen=True)
class Settings:
    """How a run measures.

    Attributes:
        quick: small sizes and few pairs: shows that everything runs; its figures mean nothing.
        device: "cpu" or "cuda".
        threads: of the processor.
        clock: "wall", or "cpu" for the process's processor time, which neighbours on the machine disturb less (with
            one thread; with more, waiting threads count as working).
    """

    quick: bool = False
    device: str = "cpu"
    threads: int = 0
    clock: str = "wall"

    @property
    def pairs(self) -> int:
        return 1 if self.quick else 5

    @property
    def pairs_near_one(self) -> int:
        """More of them, where a ratio is near one."""
        return 1 if self.quick else 11

    @property
    def steps(self) -> int:
        """Of a turn, where a ratio is near one: what else the machine does disturbs a longer turn less."""
        return 1 if self.quick else 4

    @property
    def dtype(self) -> torch.dtype | None:
        """Of autocast; None is none."""
        return torch.bfloat16 if self.device == "cuda" else None

    def now(self) -> float:
        if self.device == "cuda":
            torch.cuda.synchronize()
        return time.process_time() if self.clock == "cpu" else time.perf_counter()

    def seconds(self, call: Callable[[], Any]) -> float:
        start = self.now()
        call()
        return self.now() - start

    def alternate(self, calls: dict[str, Callable[[], Any]], pairs: int | None = None) -> dict[str, list[float]]:
        """Seconds of each call, one after another, over and over; once before, unmeasured, to warm up."""
        for call in calls.values():
            call()
        found: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(pairs or self.pairs):
            for name, call in calls.items():
                found[name].append(self.seconds(call))
        return found


@dataclass(frozen=True)
class Row:
    """One figure.

    Attributes:
        section, what, unit: what it is.
        value: a median, unless `what` says otherwise.
        target: what it should reach, or None.
        at_least: whether more is better; only with a target.
        each: the figures of the single pairs.
    """

    section: str
    what: str
    value: float
    unit: str
    target: float | None = None
    at_least: bool = True
    each: list[float] = field(default_factory=list)

    @property
    def met(self) -> bool | None:
        if self.target is None:
            return None
        return self.value >= self.target if self.at_least else self.value <= self.target

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "met": self.met}


def median(numbers: Sequence[float]) -> float:
    return float(statistics.median(numbers))


def ratio(
    section: str,
    what: str,
    of: Sequence[float],
    to: Sequence[float],
    target: float | None = None,
    unit: str = "×",
) -> Row:
    """The median of the ratios of two speeds, pair by pair."""
    each = [a / b for a, b in zip(of, to, strict=True)]
    return Row(section, what, median(each), unit, target, True, each)


def block_flops(keys: float, queries: float, dim: int, hidden: int) -> float:
    """Forward, of one block: keys and values of all `keys` tokens, the rest for `queries` of them. A product of
    [n, a] by [a, b] counts 2·n·a·b; scores and their product with the values count 4·D a pair of query and key.
    """
    linear = 2 * keys * 2 * dim * dim + queries * (2 * 2 * dim * dim + 2 * 2 * dim * hidden)
    return linear + 4 * queries * keys * dim


def model_flops(config: RoMAEConfig, visible: np.ndarray, masked: np.ndarray, training: bool = True) -> float:
    """Floating-point operations of pre-training on rows of so many real tokens: what the mathematics needs.

    sum over rows of encoder(1 + visible) + decoder(1 + visible + masked; last block: queries = masked) + projections;
    a training step is three times the forward pass, twice for the input projection, whose input needs no gradient.
    Padding, norms, rotation, softmax and what a kernel computes again are not counted.
    """
    dim, small = config.embed_dim, config.decoder_embed_dim
    hidden, small_hidden = round(dim * config.mlp_ratio), round(small * config.decoder_mlp_ratio)
    seen = np.asarray(visible, np.float64) + config.cls_token
    asked = np.asarray(masked, np.float64)
    forward = np.zeros_like(seen)
    forward += config.depth * block_flops_of(seen, seen, dim, hidden)
    forward += (config.decoder_depth - 1) * block_flops_of(seen + asked, seen + asked, small, small_hidden)
    forward += block_flops_of(seen + asked, asked, small, small_hidden)
    if config.position_encoding == "rotary" and config.decoder_depth > 1:  # queries are one until they are rotated
        forward -= 6 * np.maximum(asked - 1, 0) * small**2
    forward += 2 * seen * dim * small + 2 * asked * small * config.features
    once = 2 * np.asarray(visible, np.float64) * config.features * dim
    return float((3 * forward + 2 * once if training else forward + once).sum())


def block_flops_of(keys: np.ndarray, queries: np.ndarray, dim: int, hidden: int) -> np.ndarray:
    """`block_flops` row by row."""
    return np.array([block_flops(k, q, dim, hidden) for k, q in zip(keys, queries, strict=True)])


def product_rate(
    settings: Settings,
    dtype: torch.dtype = torch.float32,
    product: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None = None,
) -> float:
    """FLOP/s of a plain matrix product, best of several: 2048×180 by 180×720, on a GPU 8192×8192 by 8192×8192.

    `product` takes [n, k] and [m, k], as a layer has its weight; None is torch.mm into memory that is there.
    """
    n, k, m = (8192, 8192, 8192) if settings.device == "cuda" else (2048, 180, 720)
    a = torch.randn(n, k, device=settings.device, dtype=dtype)
    b = torch.randn(k, m, device=settings.device, dtype=dtype)
    weight, out = b.t().contiguous(), torch.empty(n, m, device=settings.device, dtype=dtype)
    repeats = 3 if settings.quick else 50

    def many() -> None:
        for _ in range(repeats):
            if product is None:
                torch.mm(a, b, out=out)
            else:
                product(a, weight)

    many()
    return 2.0 * n * k * m * repeats / min(settings.seconds(many) for _ in range(1 if settings.quick else 5))


class Trainer:
    """The optimiser's part of a step, as `rotarymae.training.fit` does it (fused), or as torch does by default."""

    def __init__(self, model: nn.Module, fused: bool) -> None:
        self.parameters = list(model.parameters())
        self.optimizer = torch.optim.AdamW(self.parameters, lr=1e-4, fused=fused or None)

    def step(self, loss: torch.Tensor) -> None:
        loss.backward()
        self.update()

    def update(self) -> None:
        """By the gradients that are there."""
        nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


def machine(settings: Settings) -> dict[str, Any]:
    """Where and with what a run was made."""
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": commit(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "gpu": torch.cuda.get_device_name() if settings.device == "cuda" else None,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        **asdict(settings),
    }
