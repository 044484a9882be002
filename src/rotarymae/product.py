"""Matrix products of the blocks: in float32 on some CPUs by oneDNN, elsewhere as torch does them.

torch multiplies float32 matrices on the CPU through MKL. It carries oneDNN, too, but calls it only in code that
inductor has frozen for inference; so the product here is an operator of ours around torch's own oneDNN call, with the
backward pass written out. Training was about 1.5 times as fast with it on one AMD EPYC, and slower by 7 % on another
that has no AVX-512 (`python -m benchmarks --only equal` measures both ways). The rule between them is our reading:
MKL's kernels for AMD processors stop at AVX2, oneDNN's do not.

Both libraries sum in float32; results differ in the last digits only.
"""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import register_flop_formula


def _is_amd() -> bool:
    cpuinfo = Path("/proc/cpuinfo")
    described = cpuinfo.read_text(encoding="utf-8") if cpuinfo.exists() else platform.processor()
    return "AuthenticAMD" in described


AVAILABLE = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
# A function of the machine alone, never of a measurement: the same run must give the same bits twice.
ONEDNN = (
    AVAILABLE
    and torch.backends.mkl.is_available()
    and torch.backends.cpu.get_cpu_capability() == "AVX512"
    and _is_amd()
)


@torch.library.custom_op("rotarymae::product", mutates_args=(), schema="(Tensor x, Tensor weight) -> Tensor")
def _product(x: Tensor, weight: Tensor) -> Tensor:
    if x.numel() == 0:  # oneDNN has no products of nothing
        return x.new_zeros(*x.shape[:-1], weight.shape[0])
    return torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")


@_product.register_fake
def _(x: Tensor, weight: Tensor) -> Tensor:
    return x.new_empty(*x.shape[:-1], weight.shape[0])


def _keep(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None]:
    x, weight = ctx.saved_tensors
    of_x = of_weight = None
    if ctx.needs_input_grad[0]:
        of_x = _product(grad, weight.t())
    if ctx.needs_input_grad[1]:
        left, right = grad.flatten(0, -2), x.flatten(0, -2)
        # oneDNN is fastest with the narrower matrix as its rows.
        if left.shape[1] <= right.shape[1]:
            of_weight = _product(left.t(), right.t())
        else:
            of_weight = _product(right.t(), left.t()).t()
    return of_x, of_weight


_product.register_autograd(_backward, setup_context=_keep)


@register_flop_formula(torch.ops.rotarymae.product)
def _flops(x_shape: Any, weight_shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    rows = 1
    for size in x_shape[:-1]:
        rows *= size
    return 2 * rows * weight_shape[0] * weight_shape[1]


def linear(x: Float[Tensor, "*batch I"], weight: Float[Tensor, "O I"]) -> Float[Tensor, "*batch O"]:
    """x weightᵀ, as `torch.nn.functional.linear` without a bias."""
    ours = ONEDNN and x.dtype == weight.dtype == torch.float32 and x.device.type == weight.device.type == "cpu"
    if not ours or x.ndim < 2 or torch.is_autocast_enabled("cpu") or torch.compiler.is_exporting():
        return F.linear(x, weight)
    return _product(x, weight)


class Linear(nn.Linear):
    """`torch.nn.Linear` without a bias, by `linear`."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__(in_features, out_features, bias=False)

    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self.weight)
