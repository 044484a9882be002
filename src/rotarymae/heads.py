"""Heads: what fine-tuning puts on an encoder (appendix A.2). Each is an RMSNorm and a linear layer."""

from __future__ import annotations

from jaxtyping import Bool, Float
from torch import Tensor, nn

from rotarymae.errors import InputError
from rotarymae.model import Encoder, initialise
from rotarymae.tokens import Tokens

POOLS = ("cls", "mean")


def pooled(encoder: Encoder, tokens: Tokens, pool: str) -> Float[Tensor, "B D"]:
    """One vector a row: the [CLS] token ("cls"), or the mean over real tokens ("mean").

    An encoder without [CLS] gives the mean in any case.
    """
    if pool == "cls" and encoder.cls_token is not None:
        return encoder.summary(tokens)
    return mean_of_real(encoder(tokens).tokens, tokens.padding)


def mean_of_real(x: Float[Tensor, "B N D"], padding: Bool[Tensor, "B N"] | None) -> Float[Tensor, "B D"]:
    """The mean of a row; padding never counts."""
    if padding is None:
        return x.mean(1)
    return x.masked_fill(padding[..., None], 0.0).sum(1) / (~padding).sum(1, keepdim=True)


class _PooledHead(nn.Module):
    def __init__(self, encoder: Encoder, outputs: int, pool: str, dropout: float) -> None:
        super().__init__()
        if pool not in POOLS:
            raise InputError(f"pool is {pool!r}; wanted 'cls' or 'mean'.")
        if pool == "cls" and encoder.cls_token is None:
            raise InputError("pool='cls' of an encoder without [CLS]; use pool='mean', or set cls_token=True.")
        if not 0 <= dropout < 1:
            raise InputError(f"dropout is {dropout}; wanted at least 0 and less than 1.")
        self.pool = pool
        self.norm = nn.RMSNorm(encoder.config.embed_dim, eps=encoder.config.norm_eps)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(encoder.config.embed_dim, outputs)
        initialise(self)
        self.encoder = encoder  # after initialise: a pre-trained encoder comes as it is

    def forward(self, tokens: Tokens) -> Float[Tensor, "B outputs"]:
        """Predictions [B, outputs] for a batch."""
        return self.from_vector(pooled(self.encoder, tokens, self.pool))

    def from_vector(self, vector: Float[Tensor, "B D"]) -> Float[Tensor, "B outputs"]:
        """As `forward`, for a batch that the encoder has turned into vectors (`pooled`) already."""
        return self.head(self.dropout(self.norm(vector))).to(vector.dtype)


class Classifier(_PooledHead):
    """Logits [B, classes] from an encoder.

    Args:
        encoder: fine-tuned as it is; the same object, not a copy.
        classes: at least 2.
        pool: "cls", or "mean" over real tokens.
        dropout: on the pooled vector.

    Raises:
        InputError: a bad argument, or pool="cls" without a [CLS] token.
    """

    def __init__(self, encoder: Encoder, classes: int, pool: str = "cls", dropout: float = 0.0) -> None:
        if classes < 2:
            raise InputError(f"classes is {classes}; a classifier needs at least 2.")
        super().__init__(encoder, classes, pool, dropout)
        self.classes = classes


class Regressor(_PooledHead):
    """Values [B, outputs] from an encoder; arguments as `Classifier`."""

    def __init__(self, encoder: Encoder, outputs: int = 1, pool: str = "cls", dropout: float = 0.0) -> None:
        if outputs < 1:
            raise InputError(f"outputs is {outputs}; wanted at least 1.")
        super().__init__(encoder, outputs, pool, dropout)
        self.outputs = outputs


class TokenRegressor(nn.Module):
    """Values [B, N, outputs], one prediction for each token."""

    def __init__(self, encoder: Encoder, outputs: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        if outputs < 1:
            raise InputError(f"outputs is {outputs}; wanted at least 1.")
        if not 0 <= dropout < 1:
            raise InputError(f"dropout is {dropout}; wanted at least 0 and less than 1.")
        self.outputs = outputs
        self.norm = nn.RMSNorm(encoder.config.embed_dim, eps=encoder.config.norm_eps)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(encoder.config.embed_dim, outputs)
        initialise(self)
        self.encoder = encoder

    def forward(self, tokens: Tokens) -> Float[Tensor, "B N outputs"]:
        """Predictions for every token; under padding they are zero."""
        latent = self.encoder(tokens).tokens
        out = self.head(self.dropout(self.norm(latent))).to(latent.dtype)
        return out if tokens.padding is None else out.masked_fill(tokens.padding[..., None], 0.0)
