"""How a figure is taken: contenders in turn, A, B, A, B …, and the median of the ratios pair by pair."""

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

from rotarymae.system import processor
from rotarymae_experiments.checkout import commit


@dataclass(frozen=True)
class Settings:
    """How a run measures.

    Attributes:
        quick: small sizes and one pair: shows that everything runs; its figures mean nothing.
        device: "cpu" or "cuda".
        threads: threads of the processor; 0 leaves torch's choice.
        precision: of autocast; None is bf16 on a GPU and none on a processor.
    """

    quick: bool = False
    device: str = "cpu"
    threads: int = 0
    precision: torch.dtype | None = None

    @property
    def dtype(self) -> torch.dtype | None:
        """The precision of autocast; None is no autocast."""
        if self.precision is not None:
            return None if self.precision is torch.float32 else self.precision
        return torch.bfloat16 if self.device == "cuda" else None

    def now(self) -> float:
        if self.device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    def alternate(self, calls: dict[str, Callable[[], Any]], pairs: int = 9) -> dict[str, list[float]]:
        """Seconds of each call, one after another, over and over; once before, unmeasured, to warm up."""
        for call in calls.values():
            call()
        seconds: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(1 if self.quick else pairs):
            for name, call in calls.items():
                start = self.now()
                call()
                seconds[name].append(self.now() - start)
        return seconds


@dataclass(frozen=True)
class Row:
    """One figure.

    Attributes:
        section, what, unit: what it is.
        value: a median, unless `what` says otherwise.
        each: the figures of the single pairs.
    """

    section: str
    what: str
    value: float
    unit: str
    each: list[float] = field(default_factory=list)


def rates(section: str, amount: float, seconds: dict[str, list[float]], unit: str) -> dict[str, Row]:
    """The speed of every contender, each of which did `amount` per turn."""
    found = {name: [amount / s for s in each] for name, each in seconds.items()}
    return {name: Row(section, name, statistics.median(each), unit, each) for name, each in found.items()}


def ratio(section: str, what: str, of: Sequence[float], to: Sequence[float]) -> Row:
    """The median of the ratios of two speeds, pair by pair."""
    each = [a / b for a, b in zip(of, to, strict=True)]
    return Row(section, what, statistics.median(each), "×", each)


class Trainer:
    """The optimiser's part of a step, as `rotarymae.training.fit` does it (fused), or as torch does by default."""

    def __init__(self, model: nn.Module, fused: bool) -> None:
        self.parameters = list(model.parameters())
        self.optimizer = torch.optim.AdamW(self.parameters, lr=1e-4, fused=fused or None)

    def step(self, loss: torch.Tensor) -> None:
        loss.backward()
        nn.utils.clip_grad_norm_(self.parameters, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


def machine(settings: Settings) -> dict[str, Any]:
    """Where and with what a run was made."""
    return {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": commit(),
        "processor": processor(),
        "vector units": torch.backends.cpu.get_cpu_capability(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "gpu": torch.cuda.get_device_name() if settings.device == "cuda" else None,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "quick": settings.quick,
        "device": settings.device,
    }


def as_json(about: dict[str, Any], rows: list[Row]) -> dict[str, Any]:
    return {"about": about, "rows": [asdict(row) for row in rows]}
