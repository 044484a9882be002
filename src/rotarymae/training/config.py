"""Settings of the training loop, and the values that they refuse. Imports no torch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from rotarymae.config import Precision
from rotarymae.errors import InputError, check_choices, check_number, check_settings, check_share, check_whole

Optimizer = Literal["adamw", "sgd"]
# How `TrainConfig` checks its fields.
RULES: list[tuple[Any, tuple[str, ...], dict[str, Any]]] = [
    (check_whole, ("epochs", "log_every"), {"least": 1}),
    (check_whole, ("min_steps", "seed", "max_skipped"), {"least": 0}),
    (check_whole, ("batch_size", "batch_tokens", "epoch_steps", "patience"), {"least": 1, "optional": True}),
    (check_whole, ("checkpoint_steps",), {"least": 1, "optional": True}),
    (check_whole, ("warmup_steps",), {"least": 0, "optional": True}),
    (check_number, ("base_lr", "layer_decay"), {"wanted": "a positive number", "above": 0}),
    (check_number, ("gradient_clip",), {"wanted": "a positive number or None", "above": 0, "optional": True}),
    (check_number, ("weight_decay", "checkpoint_minutes"), {"wanted": "a number of at least 0", "least": 0}),
    (check_share, ("momentum", "warmup_fraction"), {}),
]


@dataclass(kw_only=True, repr=False, eq=False)
class LoopOptions:
    """The options that the trainings of one fit share, under the names that the command and the estimators offer.

    A new one is a field here, a line in `TrainConfig.__post_init__`, and the place that reads it.
    """

    base_lr: float = 1e-3
    """The learning rate rises linearly to this peak during warm-up and then falls to zero as a cosine."""
    warmup_steps: int | None = None
    """The learning rate rises over this many steps; without it, over a share of all steps, by default a tenth."""
    optimizer: Optimizer = "adamw"
    """The optimiser is AdamW, with decoupled weight decay, or stochastic gradient descent with momentum (sgd)."""
    weight_decay: float = 0.05
    """Weight matrices decay at this rate; norms, biases and learned tokens do not decay."""
    gradient_clip: float | None = 1.0
    """A gradient with a larger norm is scaled down to this norm."""
    patience: int | None = None
    """Training stops after this many passes without a better validation loss; without it, never early."""
    precision: Precision = "auto"
    """Matrix products are computed in this precision; "auto" takes bf16 where the hardware has units for it."""
    compile: bool = False
    """Compile the blocks of the model, which takes a minute and pays in long runs."""
    log_every: int = 10
    """The log of a training gets one line per this many steps."""


@dataclass(kw_only=True)
class TrainConfig(LoopOptions):
    """Settings of one training. Raises InputError for a value out of its range."""

    epochs: int = 20
    """Training makes this many passes over the examples."""
    epoch_steps: int | None = None
    """A pass ends after this many steps, though it has not seen every example; None sees all of them."""
    min_steps: int = 0
    """Training makes at least this many steps; small data get more epochs until they make as many."""
    batch_size: int | None = 64
    """A step sees this many examples over all processes; give either this or batch_tokens."""
    batch_tokens: int | None = None
    """A step sees this many tokens over all processes, padding included; give either this or batch_size."""
    betas: tuple[float, float] = (0.9, 0.95)
    """AdamW's two running averages decay at these rates."""
    momentum: float = 0.9
    """SGD has this momentum."""
    warmup_fraction: float = 0.1
    """This share of all steps is warm-up when warmup_steps is None."""
    layer_decay: float = 1.0
    """The learning rate of a block is this times that of the block above it; 1 gives all the same rate."""
    keep_best: bool = False
    """Training ends with the weights of the best validation loss instead of the last ones."""
    seed: int = 0
    """This number fixes order, masks, augmentation and dropout."""
    checkpoint_minutes: float = 1.0
    """A run that has a folder writes a checkpoint at least this often, in minutes."""
    checkpoint_steps: int | None = None
    """A checkpoint is written after this many steps, too; None goes by the clock alone."""
    max_skipped: int = 10
    """Training ends after this many steps were skipped for a non-finite loss or gradient."""

    def __post_init__(self) -> None:
        if (self.batch_size is None) == (self.batch_tokens is None):
            raise InputError("give either batch_size (examples) or batch_tokens (tokens), not both and not neither.")
        check_settings(self, *RULES)
        if self.seed >= 2**64:
            raise InputError(f"seed is {self.seed}; wanted a whole number below 2^64.")
        if not isinstance(self.betas, tuple | list) or len(self.betas) != 2:
            raise InputError(f"betas is {self.betas!r}; wanted two numbers.")
        for i, rate in enumerate(self.betas):
            check_share(f"betas[{i}]", rate)
        for name in ("keep_best", "compile"):
            if type(getattr(self, name)) is not bool:
                raise InputError(f"{name} is {getattr(self, name)!r}; wanted True or False.")
        check_choices(self)

    def passes(self, steps: int) -> int:
        """Return the number of passes that training makes, each of this many steps."""
        return max(self.epochs, math.ceil(self.min_steps / steps))
