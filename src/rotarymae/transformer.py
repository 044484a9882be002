"""The transformer both halves of RoMAE are made of: RMSNorm, rotary attention, SiLU MLP (sections 3 and 4.1, A.2)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from rotarymae.config import BlockSizes
from rotarymae.rope import Rotation, rotate

ALL = slice(None)


class Dropout(nn.Module):
    """A layer that sets random elements of its input to zero in training, and divides the others by 1 - rate.

    Attributes:
        rate: share of the elements that is dropped.
        generator: what the layer draws from, set by `drawing_from`. None is torch's own state, which all threads share:
            a training would change the caller's random numbers, and two trainings in two threads each other's.
    """

    def __init__(self, rate: float) -> None:
        """Create the layer; `rate` is the share that is dropped, 0 to less than 1."""
        super().__init__()
        self.rate = rate
        self.generator: torch.Generator | None = None

    @property
    def drops(self) -> bool:
        """Whether anything is dropped: in training mode, at a rate above 0."""
        return self.training and self.rate > 0

    def mask_shape(self, x: Float[Tensor, "*shape"]) -> tuple[int, ...]:
        """Return the shape of the random mask for x: the shape of x; in `DropPath` one that is broadcast to x."""
        return tuple(x.shape)

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Set random elements of x (in `DropPath`, whole rows) to 0, and divide the others by 1 - rate.

        In evaluation mode, or with a rate of 0, x itself is returned.
        """
        if not self.drops:
            return x
        dropped = torch.empty(self.mask_shape(x), dtype=torch.bool, device=x.device)
        return x.masked_fill(dropped.bernoulli_(self.rate, generator=self.generator), 0.0) / (1.0 - self.rate)


class DropPath(Dropout):
    """Stochastic depth (arXiv:1603.09382): dropout of whole rows of its input, a residual branch."""

    def mask_shape(self, x: Float[Tensor, "*shape"]) -> tuple[int, ...]:
        """Return the shape of the random mask for x, one number per row: [B, 1, ..., 1] with as many axes as x."""
        return (len(x), *(1 for _ in x.shape[1:]))


@contextmanager
def drawing_from(generator: torch.Generator, module: nn.Module) -> Iterator[None]:
    """Let all `Dropout` and `DropPath` layers in `module` draw random numbers from `generator` within a `with` block.

    After the block they draw from torch's global generator again. torch's own dropout layers are not affected.
    """
    layers = [layer for layer in module.modules() if isinstance(layer, Dropout)]
    for layer in layers:
        layer.generator = generator
    try:
        yield
    finally:
        for layer in layers:
            layer.generator = None


class Attention(nn.Module):
    """Scaled dot-product attention (Eq. 1) with rotated queries and keys.

    Scores are divided by sqrt(head_dim), as the paper's code does; Eq. 1 writes the width of the model.
    """

    def __init__(self, sizes: BlockSizes) -> None:
        """Build the linear projections of queries, keys, values and outputs, and the dropout of attention weights.

        All projections map embed_dim to embed_dim, without biases. `sizes` gives embed_dim, the width of each head
        and the rate of the dropout.
        """
        super().__init__()
        self.head_dim = sizes.head_dim
        self.dropout = Dropout(sizes.dropout)
        self.query = nn.Linear(sizes.embed_dim, sizes.embed_dim, bias=False)
        self.key = nn.Linear(sizes.embed_dim, sizes.embed_dim, bias=False)
        self.value = nn.Linear(sizes.embed_dim, sizes.embed_dim, bias=False)
        self.output = nn.Linear(sizes.embed_dim, sizes.embed_dim, bias=False)

    def forward(
        self,
        x: Float[Tensor, "B N D"],
        rotation: Rotation | None,
        key_mask: Bool[Tensor, "B 1 1 L"] | None = None,
        queries: slice = ALL,
        keys: slice = ALL,
    ) -> Float[Tensor, "B Q D"]:
        """Let the Q tokens that `queries` selects attend to the L tokens that `keys` selects; return a result for each.

        The results are what attention adds to the Q tokens; the tokens themselves (the residual) are not added here.

        Args:
            x: N tokens of width D in each of B rows.
            rotation: the rotation of queries and keys of all N tokens; None for positions that are not rotary.
            key_mask: True for keys that may be attended to; None means all, which permits the fastest kernel.
            queries, keys: slices of the N tokens; by default all of them.
        """
        query, key, value = (
            layer(x[:, at]).unflatten(-1, (-1, self.head_dim))
            for layer, at in ((self.query, queries), (self.key, keys), (self.value, keys))
        )
        if rotation is not None:
            query, key = rotate(query, rotation.select(queries)), rotate(key, rotation.select(keys))
        query, key, value = query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)
        if query.dtype is torch.bfloat16 and query.device.type == "cpu" and torch.is_grad_enabled():
            # There, torch's backward pass takes three times as long in bfloat16 as in float32.
            with torch.autocast("cpu", enabled=False):
                attended = _weighted(query.float(), key.float(), value.float(), key_mask, self.dropout)
            attended = attended.to(query.dtype)
        else:
            attended = _weighted(query, key, value, key_mask, self.dropout)
        return self.output(attended.transpose(1, 2).flatten(2))


def _weighted(
    query: Float[Tensor, "B H Q K"],
    key: Float[Tensor, "B H L K"],
    value: Float[Tensor, "B H L K"],
    key_mask: Bool[Tensor, "B 1 1 L"] | None,
    dropout: Dropout,
) -> Float[Tensor, "B H Q K"]:
    """Return the weighted means of L values for Q queries, by scaled dot-product attention.

    Args:
        query, key, value: K numbers for each token, in each of B rows and H heads.
        key_mask: True for keys that may be attended to; None means all.
        dropout: the layer that drops attention weights in training.
    """
    if not dropout.drops:
        return F.scaled_dot_product_attention(query, key, value, key_mask)
    # torch's kernel would drop weights by the random state that all threads share. On processors it builds the matrix
    # of weights as well.
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5
    scores = scores if key_mask is None else scores.masked_fill(~key_mask, -torch.inf)
    weights = dropout(scores.softmax(-1))
    return weights.to(value.dtype) @ value


class MLP(nn.Module):
    """Linear, SiLU, dropout, linear; no biases."""

    def __init__(self, sizes: BlockSizes) -> None:
        """Build the linear layers, from embed_dim to hidden_dim of `sizes` and back, and the dropout between them."""
        super().__init__()
        self.up = nn.Linear(sizes.embed_dim, sizes.hidden_dim, bias=False)
        self.down = nn.Linear(sizes.hidden_dim, sizes.embed_dim, bias=False)
        self.dropout = Dropout(sizes.dropout)

    def forward(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        """Apply the layers to each of N tokens of width D in B rows; x itself (the residual) is not added here."""
        return self.down(self.dropout(F.silu(self.up(x))))


class Block(nn.Module):
    """Pre-norm residual block: attention, then MLP."""

    def __init__(self, sizes: BlockSizes, drop_path: float = 0.0) -> None:
        """Build norms, attention and MLP of the given sizes.

        `drop_path` is the rate at which training skips each of the two branches (attention, MLP) for a row.
        """
        super().__init__()
        self.attention_norm = nn.RMSNorm(sizes.embed_dim, eps=sizes.norm_eps)
        self.attention = Attention(sizes)
        self.mlp_norm = nn.RMSNorm(sizes.embed_dim, eps=sizes.norm_eps)
        self.mlp = MLP(sizes)
        self.drop_path = DropPath(drop_path)

    def forward(
        self,
        x: Float[Tensor, "B N D"],
        rotation: Rotation | None,
        key_mask: Bool[Tensor, "B 1 1 L"] | None = None,
        queries: slice = ALL,
        keys: slice = ALL,
    ) -> Float[Tensor, "B Q D"]:
        """Run attention and MLP, each with its residual; return the Q tokens that `queries` selects.

        Args:
            x: N tokens of width D in each of B rows.
            rotation: the rotation of queries and keys of all N tokens; None for positions that are not rotary.
            key_mask: True for each of the L keys that may be attended to; None means all.
            queries: slice of the Q tokens to return; the others are not computed.
            keys: slice of the L tokens that are attended to.
        """
        attended = self.attention(self.attention_norm(x), rotation, key_mask, queries, keys)
        x = x[:, queries] + self.drop_path(attended)
        return x + self.drop_path(self.mlp(self.mlp_norm(x)))


class Transformer(nn.Module):
    """A stack of `depth` blocks, without a final norm.

    Block m of `depth`, from 1, skips each of its branches (attention, MLP) at the rate drop_path · m / depth.
    """

    def __init__(self, sizes: BlockSizes) -> None:
        """Build `sizes.depth` blocks; the rate of `DropPath` rises linearly to `sizes.drop_path` in the last block."""
        super().__init__()
        self.blocks = nn.ModuleList(Block(sizes, sizes.drop_path * (m + 1) / sizes.depth) for m in range(sizes.depth))

    def forward(
        self,
        x: Float[Tensor, "B N D"],
        rotation: Rotation | None,
        padding: Bool[Tensor, "B N"] | None = None,
        queries: slice = ALL,
        context: int | None = None,
    ) -> Float[Tensor, "B Q D"]:
        """Run all blocks on N tokens in each of B rows; return the Q tokens that `queries` selects.

        The last block computes only these Q tokens. Results at padded positions have no meaning.

        Args:
            x: the tokens, of width D.
            rotation: the rotation of queries and keys of all N tokens; None for positions that are not rotary.
            padding: True where there is no token; no token attends to it. None for no padding.
            queries: slice of the tokens to return; by default all.
            context: if given, all tokens attend only to the first `context` tokens of their row; no token attends to
                those behind them, not even the token itself. None lets all attend to all.
        """
        keys = slice(context)
        key_mask = None if padding is None else ~padding[:, None, None, keys]
        *blocks, final = self.blocks
        for block in blocks:
            x = block(x, rotation, key_mask, ALL, keys)
        return final(x, rotation, key_mask, queries, keys)
