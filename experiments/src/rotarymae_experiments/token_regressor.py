"""A head with one prediction for each token, of the recipes whose targets are of single observations."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from rotarymae.model import Encoder, initialise
from rotarymae.tokens import Tokens


class TokenRegressor(nn.Module):
    """Encoder with a head that predicts `outputs` values for each token."""

    def __init__(self, encoder: Encoder, outputs: int = 1) -> None:
        """Put a new head on the encoder, which is not copied."""
        super().__init__()
        self.outputs = outputs
        self.norm = nn.RMSNorm(encoder.config.embed_dim, eps=encoder.config.norm_eps)
        self.head = nn.Linear(encoder.config.embed_dim, outputs)
        initialise(self)
        self.encoder = encoder

    def forward(self, tokens: Tokens, static: Any = None) -> Tensor:
        """Return values [B, N, outputs], 0 at padding; `static` is there for the training loop, and not read."""
        latent = self.encoder(tokens).tokens
        with torch.autocast(latent.device.type, enabled=False):
            out = self.head(self.norm(latent))
        return out if tokens.padding is None else out.masked_fill(tokens.padding[..., None], 0.0)
