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
        epochs: Training makes this many passes over the examples.
        min_steps: Training makes at least this many steps; small data get more epochs until they make as many.
        batch_size: A step sees this many examples over all processes; give either this or batch_tokens.
        batch_tokens: A step sees this many tokens over all processes, padding included; give either this or
            batch_size.
        optimizer: The optimiser is AdamW, with decoupled weight decay (adamw), or has a momentum (sgd).
        base_lr: The learning rate rises linearly to this peak during warm-up and then falls to zero as a
            cosine.
        betas: AdamW's two running averages decay at these rates.
        momentum: SGD has this momentum.
        weight_decay: Matrices decay at this rate; norms, biases and learned tokens do not decay.
        warmup_steps: The learning rate rises over this many steps; None takes warmup_fraction of all steps.
        warmup_fraction: This share of all steps is warm-up when warmup_steps is None.
        layer_decay: The learning rate of a block is this times that of the block above it; 1 gives all the same
            rate.
        gradient_clip: A gradient with a larger norm is scaled down to this norm; None clips nothing.
        precision: Matrix products are computed in this precision; auto takes bf16 on GPUs that have it and fp32
            elsewhere.
        accumulation: A step is computed in this many micro-batches, which saves memory and changes no result.
        patience: Training stops after this many evaluations without a better validation loss; None never stops.
        keep_best: Training ends with the weights of the best validation loss instead of the last ones.
        compile: The blocks are compiled with torch.compile, which takes a minute and then saves time.
        workers: This many threads prepare batches ahead; with 0 each batch is prepared when it is needed.
        seed: This number fixes order, masks, augmentation and dropout.
        log_every: The log gets one line per this many steps.
        checkpoint_minutes: A run that has a folder writes a checkpoint at least this often, in minutes.
        checkpoint_steps: A checkpoint is written after this many steps, too; None goes by the clock alone.
        keep: This many checkpoints are kept; the weights of the best validation loss are kept besides.
        max_skipped: Training ends after this many steps were skipped for a non-finite loss or gradient.
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
