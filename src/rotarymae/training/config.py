"""How a model is trained: the settings of the training loop, and what they refuse. Imports no torch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

from rotarymae.errors import InputError, choose

Optimizer = Literal["adamw", "sgd"]
Precision = Literal["auto", "fp32", "bf16", "fp16"]


@dataclass(frozen=True)
class TrainConfig:
    """How a model is trained.

    Attributes:
        epochs: Number of passes over the training examples.
        min_steps: Smallest number of steps; small data get more epochs until they make as many.
        batch_size: Examples per step over all processes; give either this or batch_tokens.
        batch_tokens: Tokens per step over all processes, padding included; give either this or batch_size.
        optimizer: The optimiser, with decoupled weight decay (adamw) or with momentum (sgd).
        base_lr: Peak of the learning rate, which rises linearly during warm-up and then falls to zero as a cosine.
        betas: Decay rates of AdamW's two running averages.
        momentum: Momentum of SGD.
        weight_decay: Weight decay of matrices; norms, biases and learned tokens have none.
        warmup_steps: Number of warm-up steps; None takes warmup_fraction of all steps.
        warmup_fraction: Share of all steps that are warm-up when warmup_steps is None.
        layer_decay: Factor from each block's learning rate to that of the block below it; 1 gives all the same rate.
        gradient_clip: Largest norm of the gradient, to which longer ones are scaled down; None clips nothing.
        precision: Precision of matrix products; auto takes bf16 on GPUs that have it and fp32 elsewhere.
        accumulation: Number of micro-batches a step is computed in, which saves memory and changes no result.
        patience: Number of evaluations without a better validation loss after which training stops; None never stops.
        keep_best: Whether training ends with the weights of the best validation loss instead of the last ones.
        compile: Whether the blocks are compiled with torch.compile, which takes a minute and then saves time.
        workers: Number of threads that prepare batches ahead; 0 prepares each batch when it is needed.
        seed: Seed of order, masks, augmentation and dropout.
        log_every: Number of steps per line of log.jsonl.
        checkpoint_minutes: Largest number of minutes between checkpoints of a run that has a folder.
        checkpoint_steps: Number of steps after which a checkpoint is written too; None goes by the clock alone.
        keep: Number of checkpoints kept; the weights of the best validation loss are kept besides.
        max_skipped: Number of steps that may be skipped for a non-finite loss or gradient before training ends.
    """

    epochs: int = 20
    min_steps: int = 0
    batch_size: int | None = 64
    batch_tokens: int | None = None
    optimizer: Optimizer = "adamw"
    base_lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.95)
    momentum: float = 0.9
    weight_decay: float = 0.05
    warmup_steps: int | None = None
    warmup_fraction: float = 0.1
    layer_decay: float = 1.0
    gradient_clip: float | None = 1.0
    precision: Precision = "auto"
    accumulation: int = 1
    patience: int | None = None
    keep_best: bool = False
    compile: bool = False
    workers: int = 0
    seed: int = 0
    log_every: int = 10
    checkpoint_minutes: float = 1.0
    checkpoint_steps: int | None = None
    keep: int = 2
    max_skipped: int = 10

    def __post_init__(self) -> None:
        if (self.batch_size is None) == (self.batch_tokens is None):
            raise InputError("give either batch_size (examples) or batch_tokens (tokens), not both and not neither.")
        for name in ("epochs", "accumulation", "log_every", "keep"):
            _check_whole(name, getattr(self, name), 1)
        for name in ("batch_size", "batch_tokens", "patience", "checkpoint_steps"):
            _check_whole(name, getattr(self, name), 1, optional=True)
        for name in ("min_steps", "workers", "seed", "max_skipped"):
            _check_whole(name, getattr(self, name), 0)
        _check_whole("warmup_steps", self.warmup_steps, 0, optional=True)
        for name in ("base_lr", "layer_decay"):
            _check_number(name, getattr(self, name), "a positive number", above=0)
        if self.gradient_clip is not None:
            _check_number("gradient_clip", self.gradient_clip, "a positive number or None", above=0)
        for name in ("weight_decay", "checkpoint_minutes"):
            _check_number(name, getattr(self, name), "a number of at least 0", least=0)
        if not isinstance(self.betas, tuple | list) or len(self.betas) != 2:
            raise InputError(f"betas is {self.betas!r}; wanted two numbers.")
        fractions = {"momentum": self.momentum, "warmup_fraction": self.warmup_fraction}
        for name, value in {**fractions, "betas[0]": self.betas[0], "betas[1]": self.betas[1]}.items():
            _check_number(name, value, "at least 0 and less than 1", least=0, below=1)
        for name in ("keep_best", "compile"):
            if type(getattr(self, name)) is not bool:
                raise InputError(f"{name} is {getattr(self, name)!r}; wanted True or False.")
        choose("optimizer", self.optimizer, get_args(Optimizer))
        choose("precision", self.precision, get_args(Precision))


def _check_whole(name: str, value: Any, least: int, optional: bool = False) -> None:
    if not (optional and value is None) and (type(value) is not int or value < least):
        raise InputError(f"{name} is {value!r}; wanted a whole number of at least {least}.")


def _check_number(
    name: str, value: Any, wanted: str, least: float = -math.inf, above: float = -math.inf, below: float = math.inf
) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not (number and value >= least and value > above and value < below):
        raise InputError(f"{name} is {value!r}; wanted {wanted}.")
