"""Tokens: the one data object that flows through every model.

Letters, here and everywhere: B batch, N tokens, M masked tokens, V features per token, A position axes,
D embed_dim, H heads, K head_dim.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor
from torch.nn import functional as F

from rotarymae.errors import InputError


@dataclass(frozen=True, eq=False)
class Tokens:
    """A batch of sequences of tokens, each a small vector of values at a real-valued position.

    Parameters
    ----------
    values : Tensor of shape [B, N, V]
        Standardised values. Those of padding are ignored.
    positions : Tensor of shape [B, N, A]
        Position of each token on each of the A axes, such as time, band, row or column. Axes that count (bands, rows)
        count from 1, because [CLS] is at 0.
    padding : bool Tensor of shape [B, N] or None
        True where there is no token; None when every token is real. Padding may lie anywhere in a row.
    observed : bool Tensor of shape [B, N, W] or None
        True where the first W values of a token were observed; None when all were. The others are no targets of a loss
        and no query's neighbours; the encoder reads the numbers that stand there, such as 0 or an earlier value.
    check_values : bool
        Check every number (the default, for batches built from a user's data), set values and positions of padding to
        0, and turn a padding that marks nothing into None, so that attention can take its fastest kernel. Steps that
        derive Tokens from checked ones pass False: on an accelerator a check would wait for the device.

    Raises
    ------
    InputError
        Wrong ranks, sizes or types; a size of 0; with `check_values` also NaN or infinity outside padding, and rows
        that are padding throughout. The message names the first such row.
    """

    values: Float[Tensor, "B N V"]
    positions: Float[Tensor, "B N A"]
    padding: Bool[Tensor, "B N"] | None = None
    observed: Bool[Tensor, "B N W"] | None = None
    check_values: InitVar[bool] = True

    def __post_init__(self, check_values: bool) -> None:
        """Raise InputError for wrong shapes or types; with `check_values` also for NaN, and set padding to 0."""
        _check_shapes(self.values, self.positions, self.padding, self.observed)
        if check_values:
            padding = _check_numbers(self.values, self.positions, self.padding)
            object.__setattr__(self, "padding", padding)
            if padding is not None:
                object.__setattr__(self, "values", self.values.masked_fill(padding[..., None], 0.0))
                object.__setattr__(self, "positions", self.positions.masked_fill(padding[..., None], 0.0))

    @property
    def batch(self) -> int:
        """Number of rows B."""
        return self.values.shape[0]

    @property
    def length(self) -> int:
        """Number of tokens N of a row, padding included."""
        return self.values.shape[1]

    @property
    def features(self) -> int:
        """Number of values V of a token, further inputs of the encoder included."""
        return self.values.shape[2]

    @property
    def axes(self) -> int:
        """Number of position axes A."""
        return self.positions.shape[2]

    @property
    def real(self) -> Bool[Tensor, "B N"]:
        """Mask, bool [B, N], True for real tokens and False for padding: N tokens in each of B rows."""
        if self.padding is None:
            return torch.ones(self.values.shape[:2], dtype=torch.bool, device=self.values.device)
        return ~self.padding

    @property
    def observed_values(self) -> Bool[Tensor, "B N V"]:
        """Mask, True for values that were observed; False for those that were not, and for padding.

        It is [B, N, V] for V values of N tokens in B rows; if the field `observed` is given, it has the shape of this
        field, which may be for the first values of a token only.
        """
        real = self.real[..., None]
        return real.expand_as(self.values) if self.observed is None else self.observed & real

    def select(self, index: Int[Tensor, "B M"], padding: Bool[Tensor, "B M"] | None = None) -> Tokens:
        """Select tokens of each row, in the order of `index`.

        Parameters
        ----------
        index : int Tensor of shape [B, M]
            Numbers, from 0, of the M tokens to take from each of the B rows; repeats are allowed.
        padding : bool Tensor of shape [B, M] or None
            Padding of the result, True where there is no token; None keeps that of the selected tokens.

        Returns
        -------
        Tokens
            The selected tokens [B, M]; they are not checked for NaN again.
        """
        if padding is None and self.padding is not None:
            padding = self.padding.gather(1, index)
        at = index[..., None]
        return Tokens(
            self.values.gather(1, at.expand(-1, -1, self.features)),
            self.positions.gather(1, at.expand(-1, -1, self.axes)),
            padding,
            None if self.observed is None else self.observed.gather(1, at.expand(-1, -1, self.observed.shape[2])),
            check_values=False,
        )

    def rows(self, index: Int[Tensor, " K"]) -> Tokens:
        """Select rows of the batch, with all their tokens.

        Parameters
        ----------
        index : int Tensor of shape [K]
            Numbers of the rows, from 0, in any order, at least one; repeats are allowed.

        Returns
        -------
        Tokens
            The K selected rows of N tokens, [K, N], in the order of `index`.
        """
        return self._each(lambda part: part[index])

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Tokens:
        """Copy the tokens to another device.

        The dtypes of the tensors stay: positions must not be rounded.

        Parameters
        ----------
        device : torch.device or str
            The device.
        non_blocking : bool
            Whether the copy may run asynchronously.

        Returns
        -------
        Tokens
            The same tokens on that device.
        """
        return self._each(lambda part: part.to(device, non_blocking=non_blocking))

    def _each(self, change: Callable[[Tensor], Tensor]) -> Tokens:
        """Apply `change` to each tensor that is not None (values, positions, ...); return new, unchecked tokens."""
        parts: dict[str, Any] = {name: None if part is None else change(part) for name, part in vars(self).items()}
        return Tokens(**parts, check_values=False)


def pad_rows(
    flat: Shaped[np.ndarray | Tensor, " n *rest"], lengths: Sequence[int] | np.ndarray | Tensor
) -> tuple[Shaped[Tensor, "B N *rest"], Bool[Tensor, "B N"] | None]:
    """Lay out concatenated rows of different lengths as an array [B, N, ...], padded at the end with zeros.

    Args:
        flat: all elements of the first row, then those of the second, and so on; n in all. An element is a number or an
            array of any shape (`rest`).
        lengths: number of elements of each of the B rows, at least one row; the largest is N.

    Returns:
        The array as a tensor, with the type and device of `flat`; and its padding, True beyond a row's end, or None
        when all rows are equally long. The array then shares its memory with `flat`.
    """
    flat, lengths = torch.as_tensor(flat), torch.as_tensor(lengths).cpu()
    longest = int(lengths.max())
    if bool((lengths == longest).all()):
        return flat.reshape(len(lengths), longest, *flat.shape[1:]), None
    real = torch.arange(longest) < lengths[:, None]
    padded = flat.new_zeros(len(lengths), longest, *flat.shape[1:])
    padded[real] = flat
    return padded, ~real.to(flat.device)


def rounding_step(length: int) -> int:
    """Return the multiple to which `round_up` is to pad rows of `length` tokens, so that few different lengths occur.

    It is the largest power of two up to 64 and up to length / 16, at least 1. Few lengths keep memory low, because the
    process keeps freed blocks of each size for reuse.
    """
    return min(64, 1 << max(0, (length // 16).bit_length() - 1))


def round_up(tokens: Tokens, step: int) -> Tokens:
    """Append padding to all rows until their length is a multiple of `step`; return the tokens.

    Tokens whose `padding` is None are returned as they are, whatever their length: with padding, attention would take a
    slower kernel.
    """
    more = -tokens.length % step
    if tokens.padding is None or more == 0:
        return tokens
    return Tokens(
        F.pad(tokens.values, (0, 0, 0, more)),
        F.pad(tokens.positions, (0, 0, 0, more)),
        F.pad(tokens.padding, (0, more), value=True),
        None if tokens.observed is None else F.pad(tokens.observed, (0, 0, 0, more)),
        check_values=False,
    )


def compact(tokens: Tokens, keep: Bool[Tensor, "B N"]) -> Tokens:
    """Keep only some tokens of each row, moved to the front of the row, in their order.

    Args:
        tokens: B rows of N tokens.
        keep: True for tokens to keep; padding is never kept.

    Returns:
        Tokens [B, M], where M is the largest number that a row keeps. Rows that keep fewer are padded at the end; a row
        that keeps nothing is all padding. Padding is None when all rows keep the same number.

    Raises:
        InputError: no row keeps any token.
    """
    keep = keep & tokens.real
    count = keep.sum(1)
    fewest, most = torch.stack([count.min(), count.max()]).tolist()  # one transfer from an accelerator, not two
    index = (~keep).to(torch.uint8).argsort(dim=1, stable=True)[:, :most]
    padding = None if fewest == most else torch.arange(most, device=index.device) >= count[:, None]
    return replace(tokens, padding=None, check_values=False).select(index, padding)


def lexsort(*keys: Shaped[Tensor, "B N"]) -> Int[Tensor, "B N"]:
    """Return the indices that sort each of B rows by the first key, equal elements by the second key, and so on.

    Each of `keys` has N numbers for each row. Elements that are equal in all keys keep their order. Unlike in
    `numpy.lexsort`, the first key is the most important.
    """
    *firsts, last = keys
    order = last.sort(dim=1, stable=True).indices
    for key in reversed(firsts):
        order = order.gather(1, key.gather(1, order).sort(dim=1, stable=True).indices)
    return order


def _check_shapes(values: Tensor, positions: Tensor, padding: Tensor | None, observed: Tensor | None) -> None:
    """Raise InputError unless the fields of `Tokens` are tensors of the right shapes and types, and no size is 0.

    Args:
        values: floats [B, N, V], V values of N tokens in B rows.
        positions: floats [B, N, A], on A axes.
        padding: bool [B, N], or None.
        observed: bool [B, N, W] with W from 1 to V, or None.
    """
    for name, part in (("values", values), ("positions", positions), ("padding", padding), ("observed", observed)):
        if part is not None and not isinstance(part, Tensor):
            raise InputError(f"Tokens take tensors, and {name} is a {type(part).__name__}; use torch.as_tensor.")
    if values.ndim != 3 or positions.ndim != 3:
        raise InputError(
            f"values have shape {tuple(values.shape)} and positions {tuple(positions.shape)}; "
            "expected values [batch, tokens, features] and positions [batch, tokens, axes]."
        )
    if values.shape[:2] != positions.shape[:2]:
        raise InputError(
            f"values are for {tuple(values.shape[:2])} (batch, tokens) but positions for "
            f"{tuple(positions.shape[:2])}; give each token one position on every axis."
        )
    if 0 in (*values.shape, positions.shape[2]):
        raise InputError(
            f"values {tuple(values.shape)} and positions {tuple(positions.shape)} hold nothing; "
            "every size must be at least 1."
        )
    if not (values.is_floating_point() and positions.is_floating_point()):
        raise InputError(
            f"values are {values.dtype} and positions {positions.dtype}; both must be floating point (use .float())."
        )
    if padding is not None and (padding.shape != values.shape[:2] or padding.dtype != torch.bool):
        raise InputError(
            f"padding is {padding.dtype} of shape {tuple(padding.shape)}; expected bool {tuple(values.shape[:2])} "
            "(batch, tokens), True where there is no token."
        )
    if observed is not None and (
        observed.dtype != torch.bool
        or observed.ndim != 3
        or observed.shape[:2] != values.shape[:2]
        or not 1 <= observed.shape[2] <= values.shape[2]
    ):
        raise InputError(
            f"observed is {observed.dtype} of shape {tuple(observed.shape)}; give bool [batch, tokens, k], True where "
            "a value was observed, for the first k values of each token. The values have the shape "
            f"{tuple(values.shape)}."
        )


def _check_numbers(
    values: Float[Tensor, "B N V"], positions: Float[Tensor, "B N A"], padding: Bool[Tensor, "B N"] | None
) -> Bool[Tensor, "B N"] | None:
    """Raise InputError if values or positions are NaN or infinite outside padding, or if a row is nothing but padding.

    Args:
        values: V values of N tokens in each of B rows.
        positions: on A axes.
        padding: True where there is no token; None for no padding.

    Returns:
        The padding; or None if no token is padding.
    """
    if padding is not None:
        empty = padding.all(dim=1)
        if empty.any():
            raise InputError(
                f"row {int(empty.nonzero()[0])} is padding throughout ({int(empty.sum())} such rows of {len(empty)}); "
                "leave series without observations out of the batch."
            )
        if not padding.any():
            padding = None
    for name, tensor in (("values", values), ("positions", positions)):
        bad = ~torch.isfinite(tensor)
        if padding is not None:
            bad &= ~padding[..., None]
        if bad.any():
            row, token, column = (int(i) for i in bad.nonzero()[0])
            raise InputError(
                f"{name} of row {row}, token {token}, column {column} is {tensor[row, token, column].item()} "
                f"({int(bad.sum())} such numbers in the batch); leave missing observations out, "
                "or mark them in `padding`."
            )
    return padding
