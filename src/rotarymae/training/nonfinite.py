"""Find where the first number that is not finite arose: in the data, a weight, a layer or a gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from rotarymae.batch import Batch
from rotarymae.training.objectives import Objective


class NonFinite(NamedTuple):
    """Where the first number that is not finite is, and whether that is the data themselves."""

    where: str
    in_data: bool = False


def first_non_finite(objective: Objective, batch: Batch, device: torch.device, autocast: Any) -> NonFinite:
    """Find the first number that is not finite; `autocast` is the context the model computes in."""
    if not torch.isfinite(batch.inputs.values).all():
        return NonFinite("the given values of the inputs", in_data=True)
    if batch.masked is not None and batch.masked.values.isinf().any():  # NaN was not observed, as in targets
        return NonFinite("the given values of the masked tokens", in_data=True)
    if batch.targets is not None and batch.targets.is_floating_point() and batch.targets.isinf().any():
        return NonFinite("the given targets", in_data=True)
    for name, parameter in objective.model.named_parameters():
        if not torch.isfinite(parameter.detach()).all():
            return NonFinite(f"the weight {name}")
    name = _first_non_finite_output(objective, batch.to(device), autocast)
    if name is not None:
        return NonFinite(f"the output of {name}")
    for name, parameter in objective.model.named_parameters():
        if parameter.grad is not None and not torch.isfinite(parameter.grad).all():
            return NonFinite(f"the gradient of {name}")
    return NonFinite("the loss")


def _first_non_finite_output(objective: Objective, batch: Batch, autocast: Any) -> str | None:
    """Return the part of the model whose output is the first to be non-finite, by another pass over the batch."""
    names: list[str] = []

    def look(name: str) -> Callable[[nn.Module, Any, Any], None]:
        def hook(module: nn.Module, inputs: Any, output: Any) -> None:
            if not names and isinstance(output, Tensor) and not torch.isfinite(output).all():
                names.append(name)

        return hook

    hooks = [part.register_forward_hook(look(name)) for name, part in objective.model.named_modules() if name]
    try:
        with torch.no_grad(), autocast:
            objective(batch)
    finally:
        for hook in hooks:
            hook.remove()
    return names[0] if names else None
