"""Which weights fine-tuning trains: all of them, the head alone, the upper blocks, or low-rank adapters."""

from __future__ import annotations

import math
from typing import Any

import torch

from rotarymae.errors import InputError, import_extra
from rotarymae.heads import Classifier, Regressor

# Adapters of so many dimensions, or an eighth of the encoder's width where that is less: hundredths of its weights.
RANK = 8
MATRICES = r"transformer\.blocks\.\d+\.(attention\.(query|key|value|output)|mlp\.(up|down))"


def check_tune(tune: str, depth: int) -> None:
    """Refuses, before anything is trained, what cannot be tuned of an encoder of so many blocks.

    Raises:
        InputError: more blocks than the encoder has.
        MissingExtra: "lora" without peft.
    """
    if tune == "lora":
        import_extra("peft", "lora")
    if tune.startswith("top:") and int(tune[4:]) > depth:
        raise InputError(f"tune={tune!r}, but the encoder has {depth} blocks; use tune='full', or fewer blocks.")


def freeze(model: Classifier | Regressor, tune: str, generator: torch.Generator) -> None:
    """Leaves only the weights trainable that `tune` names; the head's always are.

    With "lora" every matrix W of the encoder's blocks becomes W + B·A (arXiv:2106.09685), of which B and A are trained;
    `merge_adapters` makes one matrix of them again.
    """
    encoder = model.encoder
    if tune == "full":
        return
    encoder.requires_grad_(False)
    if tune == "lora":
        rank = max(1, min(RANK, encoder.config.embed_dim // 8))
        peft = import_extra("peft", "lora")
        with torch.random.fork_rng(devices=[]):  # peft draws from torch's own state
            peft.inject_adapter_in_model(peft.LoraConfig(r=rank, lora_alpha=2 * rank, target_modules=MATRICES), encoder)
        for name, weight in encoder.named_parameters():
            if "lora_A" in name:
                drawn = torch.empty(weight.shape, dtype=torch.float32)
                weight.data.copy_(torch.nn.init.kaiming_uniform_(drawn, math.sqrt(5), generator=generator))
    elif tune.startswith("top:"):
        encoder.transformer.blocks[-int(tune[4:]) :].requires_grad_(True)


def merge_adapters(model: Classifier | Regressor) -> None:
    """Adds the adapters of "lora" to their matrices, so that the model is as if all of it had been fine-tuned."""
    layers = import_extra("peft", "lora").tuners.tuners_utils.BaseTunerLayer
    adapted: dict[str, Any] = {name: one for name, one in model.encoder.named_modules() if isinstance(one, layers)}
    for name, module in adapted.items():
        module.merge()
        model.encoder.set_submodule(name, module.get_base_layer())
