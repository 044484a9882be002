"""How a model is trained: the settings of the training loop, and what they refuse."""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from rotarymae.errors import InputError


@dataclass(frozen=True)
class TrainConfig:
    """How a model is trained.

    Attributes:
        epochs: passes over the training examples; more when they make fewer than
        min_steps: steps, so that a small table is not left half trained.
        batch_size: examples a step, over all processes; or
        batch_tokens: tokens a step, padding counted, over all processes. One of the two.
        optimizer: "adamw" or "sgd".
        base_lr: the peak of the schedule: linear warm-up, then a cosine to zero.
        betas: AdamW's.
        momentum: SGD's.
        weight_decay: on weight matrices only; none on norms, biases and tokens.
        warmup_steps: steps of warm-up; when None,
        warmup_fraction: that share of all steps.
        layer_decay: each block's rate is this factor times that of the one above it; 1 for all the same.
        gradient_clip: largest norm of the gradient; None does not clip.
        precision: "auto" (bf16 where the hardware has it, else fp32), "fp32", "bf16" or "fp16".
        accumulation: micro-batches a step is cut into; the step is the same, the memory smaller.
        patience: stop after this many evaluations without a better validation loss; None never stops.
        keep_best: end with the weights of the best validation loss instead of the last. Without validation data this
            and `patience` have nothing to go by.
        compile: compile the blocks (torch.compile, dynamic shapes).
        workers: threads that prepare batches ahead; 0 prepares them in step.
        lanes: threads that each take rows of a step through the model, on the CPU; None takes as many as are fastest,
            1 leaves the threads to torch's operators. A model with dropout or stochastic depth has one, and so have a
            compiled model and each of several processes.
        seed: of order, masks, augmentation and dropout.
        log_every: steps between lines of log.jsonl.
        checkpoint_seconds: time between checkpoints, when the run has a folder.
        checkpoint_steps: also after every so many steps.
        keep: checkpoints kept, beside the best.
        max_skipped: steps with a non-finite loss or gradient are skipped and reported; after more than this the run
            ends.
    """

    epochs: int = 20
    min_steps: int = 0
    batch_size: int | None = 64
    batch_tokens: int | None = None
    optimizer: str = "adamw"
    base_lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.95)
    momentum: float = 0.9
    weight_decay: float = 0.05
    warmup_steps: int | None = None
    warmup_fraction: float = 0.1
    layer_decay: float = 1.0
    gradient_clip: float | None = 1.0
    precision: str = "auto"
    accumulation: int = 1
    patience: int | None = None
    keep_best: bool = False
    compile: bool = False
    workers: int = 0
    lanes: int | None = None
    seed: int = 0
    log_every: int = 10
    checkpoint_seconds: float = 60.0
    checkpoint_steps: int | None = None
    keep: int = 2
    max_skipped: int = 10

    def __post_init__(self) -> None:
        if (self.batch_size is None) == (self.batch_tokens is None):
            raise InputError("give either batch_size (examples) or batch_tokens (tokens), not both and not neither.")
        whole = {"batch_size": 1, "batch_tokens": 1, "warmup_steps": 0, "patience": 1, "checkpoint_steps": 1}
        whole |= {"epochs": 1, "min_steps": 0, "accumulation": 1, "workers": 0, "seed": 0, "log_every": 1, "keep": 1}
        whole |= {"max_skipped": 0, "lanes": 1}
        may_be_none = {
            "lanes",
            "batch_size",
            "batch_tokens",
            "warmup_steps",
            "patience",
            "checkpoint_steps",
            "gradient_clip",
        }
        for name, least in whole.items():
            value = getattr(self, name)
            if not (value is None and name in may_be_none) and (type(value) is not int or value < least):
                raise InputError(f"{name} is {value!r}; wanted a whole number of at least {least}.")
        for name in ("base_lr", "layer_decay", "gradient_clip"):
            value = getattr(self, name)
            if not (value is None and name in may_be_none) and not (_is_number(value) and value > 0):  # pyright: ignore
                raise InputError(f"{name} is {value!r}; wanted a positive number.")
        for name in ("weight_decay", "checkpoint_seconds"):
            value = getattr(self, name)
            if not (_is_number(value) and value >= 0):
                raise InputError(f"{name} is {value!r}; wanted a number of at least 0.")
        if not isinstance(self.betas, tuple | list) or len(self.betas) != 2:
            raise InputError(f"betas is {self.betas!r}; wanted two numbers.")
        fractions = {"momentum": self.momentum, "warmup_fraction": self.warmup_fraction}
        for name, value in {**fractions, "betas[0]": self.betas[0], "betas[1]": self.betas[1]}.items():
            if not (_is_number(value) and 0 <= value < 1):
                raise InputError(f"{name} is {value!r}; wanted at least 0 and less than 1.")
        for name in ("keep_best", "compile"):
            if type(getattr(self, name)) is not bool:
                raise InputError(f"{name} is {getattr(self, name)!r}; wanted True or False.")
        if self.optimizer not in ("adamw", "sgd"):
            raise InputError(f"optimizer {self.optimizer!r}; wanted 'adamw' or 'sgd'.")
        if self.precision not in ("auto", "fp32", "bf16", "fp16"):
            raise InputError(f"precision {self.precision!r}; wanted 'auto', 'fp32', 'bf16' or 'fp16'.")

    def dtype(self, device: torch.device) -> torch.dtype | None:
        """What autocast computes matrix products in, or None for the weights' own precision."""
        if self.precision == "auto":
            return torch.bfloat16 if device.type == "cuda" and torch.cuda.is_bf16_supported() else None
        return {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}[self.precision]

    def autocast(self, device: torch.device) -> Any:
        """A context in which the model computes as `precision` says."""
        dtype = self.dtype(device)
        return nullcontext() if dtype is None else torch.autocast(device.type, dtype)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
