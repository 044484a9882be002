"""Optimisers, their groups of parameters, and the learning rate over a run."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from rotarymae.training.fit_config import TrainConfig

ParameterGroups = list[dict[str, Any]]

# By the names of `config.Optimizer`; each makes an optimiser of `parameter_groups`.
OPTIMIZERS: dict[str, Callable[[ParameterGroups, TrainConfig], torch.optim.Optimizer]] = {
    "adamw": lambda groups, config: torch.optim.AdamW(groups, lr=config.base_lr, betas=config.betas, fused=True),
    "sgd": lambda groups, config: torch.optim.SGD(groups, lr=config.base_lr, momentum=config.momentum),
}
# What a step of each leaves of a parameter, besides "step" in the parameter's shape.
STATE = {torch.optim.AdamW: {"step", "exp_avg", "exp_avg_sq"}, torch.optim.SGD: {"momentum_buffer"}}


def make_optimizer(model: nn.Module, config: TrainConfig) -> torch.optim.Optimizer:
    """Return a new optimiser, AdamW or SGD by the settings, for all parameters of a model that require gradients.

    `weight_decay` applies only to parameters of two or more axes. The learning rate is `base_lr`; the training loop
    sets another one before each step.
    """
    return OPTIMIZERS[config.optimizer](parameter_groups(model, config.weight_decay), config)


def learning_rate(step: float, steps: int, warmup: float, base_lr: float) -> float:
    """Return the learning rate at a step: a line up to `base_lr` at step `warmup`, then a cosine to zero at `steps`.

    The line begins at base_lr / (warmup + 1) at step 0.

    Args:
        step: steps taken before, from 0; may be a fraction.
        steps: number of steps of the run.
        warmup: number of steps of the warm-up; 0 for none.
        base_lr: highest learning rate.
    """
    if step < warmup:
        return base_lr * (step + 1) / (warmup + 1)
    return base_lr * 0.5 * (1 + math.cos(math.pi * min(1.0, (step - warmup) / max(1.0, steps - warmup))))


def parameter_groups(model: nn.Module, weight_decay: float) -> ParameterGroups:
    """Return the trainable parameters of a model as parameter groups for torch; only matrices get weight decay.

    Parameters of two or more axes have `weight_decay`; norms, biases and other vectors have 0.0. The result is a list
    of at most two dictionaries with the keys "params" and "weight_decay", those with decay first; a group without
    parameters is left out.
    """
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    matrices, others = ([one for one in trained if (one.ndim >= 2) == decays] for decays in (True, False))
    groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]
