"""N-D patchification: arrays of any number of dimensions → Tokens, and back again (section 4 of arXiv:2505.20535).

An array is [B, d_1, .., d_D, C]: D axes that get positions, and C values (channels) in each cell. A patch is p_1 × ..
× p_D cells; its values are flattened in the order of the axes, channels last, so a token has V = p_1 · .. · p_D · C
features. Patches are numbered with the last axis running fastest. Their positions count patches from 1 along each axis,
because [CLS] stands at 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from rotarymae.errors import InputError
from rotarymae.tokens import Tokens


def patchify(array: Float[Tensor, "B *axes C"], patch_size: Sequence[int]) -> Tokens:
    """Cut arrays into patches, and make each patch a token; patches are numbered with the last axis running fastest.

    Args:
        array: a batch of B arrays with D axes and C channels: [B, d_1, .., d_D, C].
        patch_size: (p_1, .., p_D), numbers of cells along each axis, which must divide d_1 .. d_D.

    Returns:
        N tokens for each array, without padding. Values [B, N, p_1 · .. · p_D · C] are the flattened patches, channels
        fastest. Positions [B, N, D] count the patches along each axis, from 1; they are float32 (float64 for a float64
        array).

    Raises:
        InputError: patch sizes that do not divide the axes, are below 1, or are not one for each axis; an array with
            fewer than three axes, an empty one, one of integers, or one with NaN or infinity.
    """
    sizes = _sizes(array, patch_size)
    counts = [d // p for d, p in zip(sizes, patch_size, strict=True)]
    dims = len(sizes)
    interleaved = [n for pair in zip(counts, patch_size, strict=True) for n in pair]
    order = list(range(1, 2 * dims, 2)) + list(range(2, 2 * dims + 1, 2))
    patches = array.reshape(len(array), *interleaved, array.shape[-1]).permute(0, *order, 2 * dims + 1)
    values = patches.flatten(1, dims).flatten(2)
    dtype = torch.float64 if array.dtype == torch.float64 else torch.float32  # half precision rounds positions
    lines = [torch.arange(1, count + 1, dtype=dtype, device=array.device) for count in counts]
    grid = torch.stack(torch.meshgrid(*lines, indexing="ij"), dim=-1).reshape(1, -1, dims)
    return Tokens(values, grid.repeat(len(array), 1, 1))


def unpatchify(
    values: Float[Tensor, "B N V"], sizes: Sequence[int], patch_size: Sequence[int]
) -> Float[Tensor, "B *axes C"]:
    """Put patches together again to arrays [B, d_1, .., d_D, C]: the inverse of `patchify`.

    Args:
        values: N flattened patches of each of B arrays, in the order of `patchify`; V = p_1 · .. · p_D · C numbers
            each.
        sizes: (d_1, .., d_D), numbers of cells of an array along its D axes.
        patch_size: (p_1, .., p_D), numbers of cells of a patch; they are not checked.
    """
    counts = [d // p for d, p in zip(sizes, patch_size, strict=True)]
    batch, channels = len(values), values.shape[2] // math.prod(patch_size)
    dims = len(sizes)
    patches = values.reshape(batch, *counts, *patch_size, channels)
    order = [axis for pair in zip(range(1, dims + 1), range(dims + 1, 2 * dims + 1), strict=True) for axis in pair]
    return patches.permute(0, *order, 2 * dims + 1).reshape(batch, *sizes, channels)


def _sizes(array: Tensor, patch_size: Sequence[int]) -> tuple[int, ...]:
    """Check that patches divide arrays [B, d_1, .., d_D, C] of C channels; return the arrays' sizes (d_1, .., d_D).

    Raises:
        InputError: an array with fewer than 3 axes; patch sizes that are not one for each of the D axes, are below 1,
            or do not divide the sizes. The message says what would fit.
    """
    if array.ndim < 3:
        raise InputError(
            f"array has {array.ndim} axes, shape {tuple(array.shape)}; wanted three or more: [batch, d_1, .., d_D, "
            "channels]. Add what is missing: array[..., None] for one channel, array[None] for one case."
        )
    sizes = tuple(array.shape[1:-1])
    if len(patch_size) != len(sizes):
        raise InputError(
            f"patch_size {tuple(patch_size)} for an array with {len(sizes)} axes {sizes}; expected one size per axis."
        )
    for axis, (size, patch) in enumerate(zip(sizes, patch_size, strict=True)):
        if patch < 1:
            raise InputError(f"patch_size {tuple(patch_size)}; expected sizes of at least 1.")
        if size % patch:
            below, above = size - size % patch, size - size % patch + patch
            crop = f"crop it to {below}, " if below else ""
            # Images and videos often come channels first.
            channels = f" Channels come last: if these are channels, use array.movedim({axis + 1}, -1)."
            raise InputError(
                f"axis {axis} has size {size}, which is not a whole number of patches of {patch}; {crop}pad it to "
                f"{above}, or choose a patch size that divides {size}.{channels if size in (1, 3, 4) else ''}"
            )
    return sizes
