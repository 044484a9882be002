"""The transformer both halves of RoMAE are made of: RMSNorm, rotary attention, SiLU MLP (appendix A.2)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from rotarymae.product import Linear, linear
from rotarymae.rope import Angles, Rotation, rotate_paired, rotate_sorted, rotation

# Tokens that stand side by side: the place of the first, and how many.
Part: TypeAlias = tuple[int, int]
KINDS = 32  # of compiled halves of blocks, at most


class Attention(nn.Module):
    """Scaled dot-product attention with rotated queries and keys; scores are divided by sqrt(head_dim).

    Args:
        embed_dim: D, a multiple of num_heads.
        num_heads: H.
        dropout: probability of dropping an attention weight in training.
    """

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.dropout = dropout
        self.query_key_value = Linear(embed_dim, 3 * embed_dim)
        self.output = Linear(embed_dim, embed_dim)

    def forward(
        self, x: Float[Tensor, "B N D"], by: Rotation | None, attend: Bool[Tensor, "B 1 1 N"] | None = None
    ) -> Float[Tensor, "B N D"]:
        """Every token attends to all; the arguments are those of the parts, which a block calls one by one."""
        return self.output(self.mix(*self.heads(x, by), attend))

    def heads(
        self, x: Float[Tensor, "B T D"], by: Rotation | None, only: Part | None = None, repeats: int = 1
    ) -> tuple[Float[Tensor, "B Q H K"], Float[Tensor, "B N H K"], Float[Tensor, "B N H K"]]:
        """Rotated queries, of a part of the tokens (of all when None), rotated keys, and values.

        `by` is None when positions are not rotary. The last token stands for `repeats` equal ones, which are projected
        once and rotated each by its own angles.
        """
        paired = _complex_is_best(x)
        rotate = rotate_paired if paired else rotate_sorted
        weight, heads = self._weight(by, paired), self.num_heads
        if only is None:
            projected = repeat_last(linear(x, weight), repeats)
            rotated, value = self._heads(projected).split([2 * heads, heads], dim=-2)
            query, key = (rotated if by is None else rotate(rotated, by)).chunk(2, dim=-2)
        else:
            dim = x.shape[-1]
            query = self._heads(linear(x.narrow(1, *only), weight[:dim]))
            key, value = self._heads(linear(x, weight[dim:])).chunk(2, dim=-2)
            if by is not None:
                query, key = rotate(query, by.narrow(*only)), rotate(key, by)
        return query, key, value

    def mix(
        self,
        query: Float[Tensor, "B Q H K"],
        key: Float[Tensor, "B N H K"],
        value: Float[Tensor, "B N H K"],
        attend: Bool[Tensor, "B 1 1 N"] | None = None,
    ) -> Float[Tensor, "B Q D"]:
        """Values, averaged by the scores; the heads side by side.

        `attend` is True where a key may be looked at; a key mask is enough, so no [B, N, N] is ever built. None means
        every key, which leaves the choice to the fastest kernel.
        """
        out = F.scaled_dot_product_attention(
            query.transpose(1, 2),
            key.transpose(1, 2),
            value.transpose(1, 2),
            attn_mask=attend,
            dropout_p=self.dropout if self.training else 0.0,
        )
        return out.transpose(1, 2).flatten(2)

    def _weight(self, by: Rotation | None, paired: bool) -> Float[Tensor, "E D"]:
        """The projection, with the channels of queries and keys in the order the rotation wants."""
        weight = self.query_key_value.weight
        if by is None:
            return weight
        parts = weight.unflatten(0, (3, self.num_heads, -1))
        return torch.cat([parts[:2].index_select(2, by.paired if paired else by.order), parts[2:]]).flatten(0, 2)

    def _heads(self, x: Float[Tensor, "B N P"]) -> Float[Tensor, "B N G K"]:
        return x.unflatten(-1, (-1, self.query_key_value.in_features // self.num_heads))


def _complex_is_best(x: Tensor) -> bool:
    """Whether rotation by complex numbers works here and is the fastest: see `Rotation`."""
    kind = x.device.type
    wide = x.dtype in (torch.float32, torch.float64) and not torch.is_autocast_enabled(kind)
    return wide and kind in ("cpu", "cuda") and not torch.compiler.is_compiling()


def repeat_last(x: Float[Tensor, "B T E"], repeats: int) -> Float[Tensor, "B N E"]:
    """With the last token `repeats` times in place of once."""
    return x if repeats == 1 else torch.cat([x, x[:, -1:].expand(-1, repeats - 1, -1)], dim=1)


class MLP(nn.Module):
    """Linear, SiLU, dropout, linear; no biases."""

    def __init__(self, embed_dim: int, hidden_dim: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.up = Linear(embed_dim, hidden_dim)
        self.down = Linear(hidden_dim, embed_dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        return self.down(self.dropout(F.silu(self.up(x))))


class DropPath(nn.Module):
    """Stochastic depth (arXiv:1603.09382): drops a residual branch for whole samples, and scales up the others."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        if not self.training or self.rate == 0.0:
            return x
        kept = torch.rand(len(x), 1, 1, device=x.device) >= self.rate
        return x * kept.to(x.dtype) / (1.0 - self.rate)


class Block(nn.Module):
    """Pre-norm residual block: attention, then MLP."""

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        hidden_dim: int,
        dropout: float = 0.0,
        drop_path: float = 0.0,
        norm_eps: float = 1e-6,
    ) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(embed_dim, eps=norm_eps)
        self.attention = Attention(embed_dim, num_heads, dropout)
        self.mlp_norm = nn.RMSNorm(embed_dim, eps=norm_eps)
        self.mlp = MLP(embed_dim, hidden_dim, dropout)
        self.drop_path = DropPath(drop_path)
        self.compiled = False

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        by: Rotation | None,
        attend: Bool[Tensor, "B 1 1 N"] | None = None,
        only: Part | None = None,
        repeats: int = 1,
    ) -> Float[Tensor, "B Q D"]:
        """The new tokens; `only` a part of them when given (they still look at all).

        The last token stands for `repeats` equal ones; a block is given that or `only`, never both.

        With `compiled` set, what comes before the attention kernel and what comes after it are compiled, each on its
        own. The kernel would not gain, and so batches with and without padding share both halves.
        """
        before, after = _compiled() if self.compiled else (Block.before, Block.after)
        query, key, value = before(self, x, by, only, repeats)
        mixed = self.attention.mix(query, key, value, attend)
        # Copied, or the second half would be compiled once more for another layout: a part of a single row passes for
        # contiguous, and .contiguous() would leave its strides.
        whole = torch.contiguous_format
        kept = repeat_last(x, repeats) if only is None else x.narrow(1, *only).clone(memory_format=whole)
        return after(self, kept, mixed)

    def before(
        self, x: Float[Tensor, "B T D"], by: Rotation | None, only: Part | None, repeats: int
    ) -> tuple[Float[Tensor, "B Q H K"], Float[Tensor, "B N H K"], Float[Tensor, "B N H K"]]:
        return self.attention.heads(self.attention_norm(x), by, only, repeats)

    def after(self, x: Float[Tensor, "B Q D"], mixed: Float[Tensor, "B Q D"]) -> Float[Tensor, "B Q D"]:
        x = x + self.drop_path(self.attention.output(mixed))
        return x + self.drop_path(self.mlp(self.mlp_norm(x)))


@functools.cache
def _compiled() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Both halves of a block, compiled for any number and length of rows; all blocks of one kind share them."""
    # Three ways in and two widths, with and without gradients, many rows or one, are more kinds than torch compiles of
    # one function before it goes on without, saying no more than a line in its log.
    dynamo = torch._dynamo.config
    dynamo.recompile_limit = max(KINDS, dynamo.recompile_limit)
    return torch.compile(Block.before, dynamic=True), torch.compile(Block.after, dynamic=True)


class Transformer(nn.Module):
    """`depth` blocks. The rate of stochastic depth rises linearly: block m of N drops with drop_path · m / N."""

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        depth: int,
        hidden_dim: int,
        dropout: float = 0.0,
        drop_path: float = 0.0,
        norm_eps: float = 1e-6,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.blocks = nn.ModuleList(
            Block(embed_dim, num_heads, hidden_dim, dropout, drop_path * (m + 1) / depth, norm_eps)
            for m in range(depth)
        )

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        at: Angles | None,
        padding: Bool[Tensor, "B N"] | None = None,
        only: Part | None = None,
        repeats: int = 1,
    ) -> Float[Tensor, "B Q D"]:
        """All tokens through every block; the final one computes `only` that part of them when given.

        The last token of x stands for `repeats` equal ones; angles and padding are of all N = T - 1 + repeats.
        """
        attend = None if padding is None else ~padding[:, None, None, :]
        by = None if at is None or at.cos.shape[-1] == 0 else rotation(at, x.shape[-1] // self.num_heads)
        final = len(self.blocks) - 1
        if final == 0:  # the only block computes a part, for which every token must be there
            x, repeats = repeat_last(x, repeats), 1
        for m, block in enumerate(self.blocks):
            x = block(x, by, attend, only if m == final else None, repeats if m == 0 else 1)
        return x
