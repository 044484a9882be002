"""What the ratios are taken against: the paper's model as its authors run it, and torch's own encoder.

Written for the benchmark from the paper's text and a description of how the published code spends its time, not from
that code. `Published` computes what `rotarymae.MaskedAutoencoder` computes, from the same weights (`Published.like`),
in the way that costs what it costs its users:

* every batch is padded to the longest series of the data set, or of the batch;
* counts are made equal by hiding padding: a row that hides fewer tokens than the row that hides most hides padding
  beside them, so whatever padding is left stands among the visible tokens;
* attention gets a dense float mask [B, N, N], or an N × N mask of zeros when nothing is padded;
* queries, keys and values come from three projections, and each layer rotates queries and keys over all their
  channels, with sines computed once a pass;
* the decoder computes every token in its last block, and only then are the hidden ones taken;
* the loss of padding is zeroed and then averaged over everything.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rotarymae.config import RoMAEConfig
from rotarymae.model import MaskedAutoencoder
from rotarymae.tokens import Tokens
from rotarymae.transformer import Transformer


def equal_counts(mask: Tensor, padding: Tensor | None) -> Tensor:
    """The mask [B, N] with padding hidden too, so that every row hides as many places as the row that hides most."""
    if padding is None:
        return mask
    wanted = mask.sum(1, keepdim=True).amax() - mask.sum(1, keepdim=True)
    return mask | (padding & (padding.cumsum(1) <= wanted))


def dense_mask(padding: Tensor | None, length: int, like: Tensor) -> Tensor:
    """What is added to the scores: [B, 1, N, N] with -inf at padded keys, or zeros [N, N]."""
    if padding is None:
        return like.new_zeros(length, length)
    mask = like.new_zeros(len(padding), length, length)
    return mask.masked_fill(padding[:, None, :], -torch.inf)[:, None]


def sines(positions: Tensor, head_dim: int, p: float, base: float) -> tuple[Tensor, Tensor]:
    """Cosines and sines [B, N, 1, K] of every channel; those that are not rotated have frequency 0."""
    axes = positions.shape[-1]
    channels = head_dim // axes
    frequency = base ** (-2.0 * torch.arange(channels // 2, device=positions.device) / channels)
    frequency[int(p * channels // 2) :] = 0.0
    angle = (positions[..., None] * torch.cat([frequency, frequency]))[:, :, None]
    return angle.cos().flatten(3), angle.sin().flatten(3)


def turn(x: Tensor, cos: Tensor, sin: Tensor, axes: int) -> Tensor:
    """Rotates x [B, N, H, K]; channel i of an axis goes with channel i + half of the axis."""
    first, second = x.unflatten(-1, (axes, -1)).chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1).flatten(-2) * sin


class Layer(nn.Module):
    def __init__(self, dim: int, heads: int, hidden: int, eps: float, dropout: float) -> None:
        super().__init__()
        self.heads, self.rate = heads, dropout
        self.norm1, self.norm2 = nn.RMSNorm(dim, eps=eps), nn.RMSNorm(dim, eps=eps)
        self.query, self.key, self.value, self.output = (nn.Linear(dim, dim, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(dim, hidden, bias=False), nn.Linear(hidden, dim, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, axes: int, mask: Tensor) -> Tensor:
        h = self.norm1(x)
        query, key, value = (part(h).unflatten(-1, (self.heads, -1)) for part in (self.query, self.key, self.value))
        query, key = turn(query, cos, sin, axes), turn(key, cos, sin, axes)
        h = F.scaled_dot_product_attention(
            query.transpose(1, 2),
            key.transpose(1, 2),
            value.transpose(1, 2),
            attn_mask=mask.to(query.dtype),
            dropout_p=self.rate if self.training else 0.0,
        )
        x = x + self.output(h.transpose(1, 2).flatten(2))
        return x + self.down(self.dropout(F.silu(self.up(self.norm2(x)))))

    def load(self, block: nn.Module, axes: int) -> None:
        """The weights of one of our blocks; the channels of queries and keys in the published order."""
        own = block.state_dict()
        query, key = (
            own[f"attention.{part}.weight"].unflatten(0, (self.heads, 2, axes, -1)).transpose(1, 2).flatten(0, 3)
            for part in ("query", "key")
        )
        weights = {
            "norm1.weight": own["attention_norm.weight"],
            "norm2.weight": own["mlp_norm.weight"],
            "query.weight": query,
            "key.weight": key,
            "value.weight": own["attention.value.weight"],
            "output.weight": own["attention.output.weight"],
            "up.weight": own["mlp.up.weight"],
            "down.weight": own["mlp.down.weight"],
        }
        self.load_state_dict(weights)


class Stack(nn.Module):
    def __init__(self, dim: int, heads: int, depth: int, hidden: int, config: RoMAEConfig) -> None:
        super().__init__()
        self.config, self.head_dim = config, dim // heads
        self.layers = nn.ModuleList(Layer(dim, heads, hidden, config.norm_eps, config.dropout) for _ in range(depth))

    def forward(self, x: Tensor, positions: Tensor, padding: Tensor | None) -> Tensor:
        mask = dense_mask(padding, x.shape[1], x)
        cos, sin = sines(positions, self.head_dim, self.config.p, self.config.base)
        for layer in self.layers:
            x = layer(x, cos, sin, self.config.axes, mask)
        return x

    def load(self, transformer: Transformer) -> None:
        for layer, block in zip(self.layers, transformer.blocks, strict=True):
            assert isinstance(layer, Layer)
            layer.load(block, self.config.axes)


@dataclass(frozen=True)
class Hidden:
    """Predictions [B, M, V] of the hidden places, what stood there, and which of them are padding."""

    predicted: Tensor
    target: Tensor
    padding: Tensor | None


class Published(nn.Module):
    """Reference (a). Rotary, with [CLS], without stochastic depth."""

    def __init__(self, config: RoMAEConfig) -> None:
        super().__init__()
        assert config.position_encoding == "rotary" and config.cls_token and config.drop_path == 0.0
        dim, small = config.embed_dim, config.decoder_embed_dim
        self.projection = nn.Linear(config.features, dim)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.encoder = Stack(dim, config.num_heads, config.depth, round(dim * config.mlp_ratio), config)
        self.between = nn.Linear(dim, small)
        self.mask_token = nn.Parameter(torch.zeros(1, 1, small))
        hidden = round(small * config.decoder_mlp_ratio)
        self.decoder = Stack(small, config.decoder_num_heads, config.decoder_depth, hidden, config)
        self.norm = nn.RMSNorm(small, eps=config.norm_eps)
        self.head = nn.Linear(small, config.features)

    @classmethod
    def like(cls, model: MaskedAutoencoder) -> Published:
        """With a copy of the weights of one of ours."""
        own = cls(model.config)
        own.encoder.load(model.encoder.transformer)
        own.decoder.load(model.decoder)
        own.projection.load_state_dict(model.encoder.projection.state_dict())
        own.between.load_state_dict(model.decoder_projection.state_dict())
        own.norm.load_state_dict(model.norm.state_dict())
        own.head.load_state_dict(model.head.state_dict())
        assert model.encoder.cls_token is not None
        with torch.no_grad():
            own.cls_token.copy_(model.encoder.cls_token)
            own.mask_token.copy_(model.mask_token)
        return own

    def forward(self, tokens: Tokens, mask: Tensor) -> Hidden:
        """`mask` hides as many places of every row (`equal_counts`)."""
        values, positions, padding = tokens.values, tokens.positions, tokens.padding
        batch, seen = len(values), ~mask
        x = torch.cat([self.cls_token.expand(batch, -1, -1), self.projection(_take(values, seen))], dim=1)
        origin = positions.new_zeros(batch, 1, positions.shape[2])
        seen_at = torch.cat([origin, _take(positions, seen)], dim=1)
        seen_padding = hidden_padding = both = None
        if padding is not None:
            seen_padding = torch.cat([padding.new_zeros(batch, 1), padding[seen].view(batch, -1)], dim=1)
            hidden_padding = padding[mask].view(batch, -1)
            both = torch.cat([seen_padding, hidden_padding], dim=1)
        x = self.encoder(x, seen_at, seen_padding)
        target = _take(values, mask)
        x = torch.cat([self.between(x), self.mask_token.expand(batch, target.shape[1], -1)], dim=1)
        x = self.decoder(x, torch.cat([seen_at, _take(positions, mask)], dim=1), both)
        return Hidden(self.head(self.norm(x[:, -target.shape[1] :])), target, hidden_padding)

    def loss(self, tokens: Tokens, mask: Tensor) -> Tensor:
        out = self(tokens, mask)
        terms = (out.predicted - out.target).square()
        if out.padding is not None:
            terms = terms.masked_fill(out.padding[..., None], 0.0)
        return terms.mean()


class TorchAutoencoder(nn.Module):
    """Reference (b): two torch.nn.TransformerEncoder of the same sizes around the same tokens; no rotation.

    Its blocks are torch's: LayerNorm, biases and a ReLU, a key padding mask, and a last block that computes every
    token.
    """

    def __init__(self, config: RoMAEConfig) -> None:
        super().__init__()
        dim, small = config.embed_dim, config.decoder_embed_dim
        self.projection = nn.Linear(config.features, dim)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.encoder = _torch_encoder(dim, config.num_heads, config.depth, config.mlp_ratio)
        self.between = nn.Linear(dim, small)
        self.mask_token = nn.Parameter(torch.zeros(1, 1, small))
        self.decoder = _torch_encoder(small, config.decoder_num_heads, config.decoder_depth, config.decoder_mlp_ratio)
        self.head = nn.Linear(small, config.features)

    def predict(self, visible: Tokens, masked: Tokens) -> Tensor:
        x = self.projection(visible.values)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1)
        padding = None if visible.padding is None else F.pad(visible.padding, (1, 0))
        x = self.encoder(x, src_key_padding_mask=padding)
        x = torch.cat([self.between(x), self.mask_token.expand(len(x), masked.length, -1)], dim=1)
        both = None
        if padding is not None or masked.padding is not None:
            seen = ~visible.real if padding is None else visible.padding
            assert seen is not None
            both = F.pad(torch.cat([seen, ~masked.real], dim=1), (1, 0))
        x = self.decoder(x, src_key_padding_mask=both)
        return self.head(x[:, -masked.length :])

    def loss(self, visible: Tokens, masked: Tokens) -> Tensor:
        terms = (self.predict(visible, masked) - masked.values).square()
        return terms[masked.real].mean()


def _torch_encoder(dim: int, heads: int, depth: int, mlp_ratio: float) -> nn.TransformerEncoder:
    layer = nn.TransformerEncoderLayer(
        dim, heads, round(dim * mlp_ratio), dropout=0.0, batch_first=True, norm_first=True
    )
    return nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)


def _take(x: Tensor, where: Tensor) -> Tensor:
    """The tokens [B, N, ·] at `where`, which is True equally often in every row, in their order."""
    return x[where].view(len(x), -1, x.shape[-1])
