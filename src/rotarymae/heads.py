"""Heads: what fine-tuning puts on an encoder (appendix A.2). Each is an RMSNorm and a linear layer.

Ours may also pool by attention, and read features of the whole series (age, sex) next to its vector.
"""

from __future__ import annotations

import copy
import math
from inspect import signature
from typing import Any, get_args

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from rotarymae.config import RANGES, HeadPool, Pool
from rotarymae.errors import InputError, choose
from rotarymae.model import Encoder, MaskedAutoencoder, initialise
from rotarymae.tokens import Tokens
from rotarymae.transformer import Dropout

STATIC_DIM, HIDDEN_DIM = 32, 64  # of the head that reads static features
SETTINGS = ("classes", "outputs", "pool", "static_features", "members")  # of some head, next to its dropout


def encoder_of(model: nn.Module) -> Encoder:
    """Return the encoder inside a model; an Encoder is returned itself."""
    encoder = model if isinstance(model, Encoder) else model.encoder
    assert isinstance(encoder, Encoder), "every model of this library has an encoder"
    return encoder


def head_settings(model: nn.Module) -> dict[str, Any] | None:
    """Return the keyword arguments, besides `encoder`, from which the model's class builds a head of this kind.

    They are numbers and texts, which JSON can hold. Return None for a model without a head.
    """
    if isinstance(model, Encoder | MaskedAutoencoder):
        return None
    assert isinstance(model.dropout, Dropout), "every head of this library has a dropout"
    settings = {name: getattr(model, name) for name in SETTINGS if name in signature(type(model)).parameters}
    return settings | {"dropout": model.dropout.rate}


def pooled(encoder: Encoder, tokens: Tokens, pool: str) -> Float[Tensor, "B D"]:
    """Encode tokens and return one vector per row.

    Args:
        encoder: its width D is that of the vectors.
        tokens: B rows of tokens.
        pool: "cls" for the encoded [CLS] token; "mean" or "max" for the mean or maximum over a row's real tokens, [CLS]
            left out.

    Raises:
        InputError: another `pool`; "cls" with an encoder without [CLS]; tokens that do not fit the encoder.
    """
    choose("pool", pool, get_args(Pool))
    if pool == "cls":
        return encoder.summary(tokens)
    latent = encoder(tokens).tokens
    if pool == "max":
        return (latent if tokens.padding is None else latent.masked_fill(tokens.padding[..., None], -torch.inf)).amax(1)
    return mean_of_real(latent, tokens.padding)


def mean_of_real(x: Float[Tensor, "B N D"], padding: Bool[Tensor, "B N"] | None) -> Float[Tensor, "B D"]:
    """Return the mean of each row over its real tokens; a row that is all padding gives NaN.

    Args:
        x: N tokens of width D in each of B rows.
        padding: True where there is no token; None for no padding.
    """
    if padding is None:
        return x.mean(1)
    return x.masked_fill(padding[..., None], 0.0).sum(1) / (~padding).sum(1, keepdim=True)


def embedding(model: nn.Module, tokens: Tokens, pool: str) -> Float[Tensor, "B D"]:
    """Return one vector of the encoder's width D for each of B rows of tokens.

    Args:
        model: an encoder, an autoencoder, or a model with a head.
        tokens: B rows of tokens.
        pool: how a row's tokens become a vector: "cls", "mean" or "max", or "attention" for a model whose head pools
            so. If the model's head has the same pool, the vector is what the head reads (of several members, the first
            member's).

    Raises:
        InputError: another pool; "cls" with an encoder without [CLS]; tokens that do not fit the encoder.
    """
    if isinstance(model, _PooledHead) and pool == model.pool:
        return model.vector(tokens)
    return pooled(encoder_of(model), tokens, pool)


class AttentionPool(nn.Module):
    """Pool each row: take the weighted mean of its normalised tokens, with learned weights.

    Each of the heads weighs its share of the channels: the weights are the softmax, over the row's tokens, of a score
    that is linear in the token. After `initialise` the scores are 0, so that the pool starts as the mean.
    """

    def __init__(self, dim: int, heads: int, eps: float) -> None:
        """Build the norm and the linear layer that scores tokens; `initialise` sets its weights to 0.

        Args:
            dim: width of the tokens.
            heads: number of equal parts of the `dim` channels; each part of a token has its own score.
            eps: RMSNorm adds this number to the mean square.
        """
        super().__init__()
        self.norm = nn.RMSNorm(dim, eps=eps)
        self.scores = nn.Linear(dim, heads, bias=False)

    def forward(self, x: Float[Tensor, "B N D"], padding: Bool[Tensor, "B N"] | None) -> Float[Tensor, "B D"]:
        """Return the mean of each row's normalised tokens, weighted by the softmax of their learned scores.

        Args:
            x: N tokens of width D in each of B rows.
            padding: True where there is no token; these are left out. None for no padding.
        """
        if padding is not None:
            x = x.masked_fill(padding[..., None], 0.0)
        x = self.norm(x)
        scores = self.scores(x).to(x.dtype)
        weights = (scores if padding is None else scores.masked_fill(padding[..., None], -torch.inf)).softmax(1)
        mean = torch.einsum("bnh,bnhk->bhk", weights, x.unflatten(-1, (weights.shape[-1], -1))).flatten(1)
        return mean.to(x.dtype)  # under autocast the product's is lower


class _PooledHead(nn.Module):
    """Base of the models that read one vector per row: an encoder with a head, or an ensemble of several such networks.

    The outputs of an ensemble (arXiv:1612.01474), which has an encoder and a head for each member, are averaged.
    """

    def __init__(
        self,
        encoder: Encoder,
        outputs: int = 1,
        pool: str = "cls",
        dropout: float = 0.0,
        static_features: int = 0,
        members: int = 1,
    ) -> None:
        """Build a head on `encoder`. With several members, the encoder and its head are copied for each further one.

        Args:
            encoder: to fine-tune; the same object, not a copy.
            outputs: number of logits or values for each row.
            pool: how the vector is made of a row's tokens: "cls", "mean", "max" or "attention".
            dropout: dropout rate in training, for the elements of the vector. If there are static features, it is also
                the rate for the units of the head's hidden layer.
            static_features: number of features of each series (such as age) that the head reads next to the vector.
            members: number of networks, each an encoder and a head. All start with the same weights.

        Raises:
            InputError: an argument out of its range, or "cls" with an encoder without [CLS].
        """
        super().__init__()
        choose("pool", pool, get_args(HeadPool))
        if pool == "cls" and encoder.cls_token is None:
            raise InputError(
                "pool='cls' needs a [CLS] token, and the encoder has none; use pool='mean', or set cls_token=True."
            )
        numbers = {"outputs": outputs, "dropout": dropout, "static_features": static_features, "members": members}
        for name, value in numbers.items():
            RANGES[name].check(name, value)
        sizes = encoder.config
        self.outputs = outputs
        self.pool = pool
        self.static_features = static_features
        pools = pool == "attention"
        self.attention = AttentionPool(sizes.embed_dim, sizes.num_heads, sizes.norm_eps) if pools else None
        self.norm = nn.RMSNorm(sizes.embed_dim, eps=sizes.norm_eps)
        self.dropout = Dropout(dropout)
        self.static = None
        if static_features:
            self.static = nn.Sequential(nn.Linear(static_features, STATIC_DIM), nn.SiLU())
            hidden = nn.Linear(sizes.embed_dim + STATIC_DIM, HIDDEN_DIM)
            self.head = nn.Sequential(hidden, nn.SiLU(), Dropout(dropout), nn.Linear(HIDDEN_DIM, outputs))
        else:
            self.head = nn.Linear(sizes.embed_dim, outputs)
        initialise(self)
        self.encoder = encoder  # after initialise: a pre-trained encoder comes as it is
        self.others = nn.ModuleList()
        self.others.extend([copy.deepcopy(self) for _ in range(members - 1)])

    @property
    def members(self) -> int:
        """Number of networks, each an encoder and a head, whose outputs are averaged."""
        return 1 + len(self.others)

    def forward(self, tokens: Tokens, static: Float[Tensor, "B F"] | None = None) -> Float[Tensor, "B outputs"]:
        """Predict from a batch of tokens.

        Parameters
        ----------
        tokens : Tokens
            The batch [B, N], B rows of N tokens.
        static : Tensor of shape [B, F] or None
            F features of each row's series that the head reads next to its tokens; None for a head that reads none.

        Returns
        -------
        Tensor
            Values [B, outputs], averaged over the networks of the head (members) if it has several; or logits of a
            classifier, the logarithms of the members' mean probabilities.

        Raises
        ------
        InputError
            Another number of static features than the head reads (None has 0); tokens that do not fit the encoder.
        """
        return self.outputs_and_vector(tokens, static)[0]

    def outputs_and_vector(
        self, tokens: Tokens, static: Float[Tensor, "B F"] | None = None
    ) -> tuple[Float[Tensor, "B outputs"], Float[Tensor, "B D"]]:
        """Predict from a batch of tokens, and return the vectors that the head reads as well.

        Parameters
        ----------
        tokens : Tokens
            The batch [B, N], B rows of N tokens.
        static : Tensor of shape [B, F] or None
            F features of each row's series, as for `forward`.

        Returns
        -------
        tuple of Tensor
            Outputs [B, outputs], as `forward` returns them; and the pooled vectors [B, D] before the head's norm, with
            the encoder's width D. Of several networks (members) the vectors are those of the first.

        Raises
        ------
        InputError
            Another number of static features than the head reads (None has 0); tokens that do not fit the encoder.
        """
        vector = self.vector(tokens)
        given = (0,) if static is None else tuple(static.shape[1:])
        if given != (self.static_features,):
            count = self.static_features
            advice = f"give `static` as [series, {count}]" if count else "leave `static` out"
            raise InputError(
                f"each series has static features of shape {given}; the head was made for {count}: {advice}."
            )
        x = self.dropout(self.norm(vector))
        with torch.autocast(x.device.type, enabled=False):  # answers in bfloat16 would have three digits
            if self.static is not None and static is not None:
                x = torch.cat([x, self.static(static.to(vector.dtype))], -1)
            outputs = self.head(x)
        if len(self.others):
            outputs = self._averaged(torch.stack([outputs, *(other(tokens, static) for other in self.others)]))
        return outputs, vector

    def _averaged(self, outputs: Float[Tensor, "M B outputs"]) -> Float[Tensor, "B outputs"]:
        """Return the mean of the outputs of M members (networks) for B rows; `Classifier` averages probabilities."""
        return outputs.mean(0)

    def vector(self, tokens: Tokens) -> Float[Tensor, "B D"]:
        """Return the pooled vectors that the head reads, before its norm; with several members, the first one's.

        Parameters
        ----------
        tokens : Tokens
            The batch [B, N], B rows of N tokens.

        Returns
        -------
        Tensor
            One vector per row, [B, D], of the encoder's width D.

        Raises
        ------
        InputError
            Tokens that do not fit the encoder.
        """
        if self.attention is None:
            return pooled(self.encoder, tokens, self.pool)
        x, cls = self.encoder(tokens)
        padding = tokens.padding
        if cls is not None:
            x = torch.cat([cls[:, None], x], 1)
            padding = None if padding is None else nn.functional.pad(padding, (1, 0), value=False)
        return self.attention(x, padding)


class Classifier(_PooledHead):
    """Encoder with a head that predicts logits [B, classes] for B rows of tokens.

    Parameters
    ----------
    encoder : Encoder
        The encoder to fine-tune; the same object, not a copy. Further members get copies.
    classes : int
        Number of classes, at least 2.
    pool : {"cls", "mean", "max", "attention"}
        The head reads the encoded [CLS] token, the mean or maximum over the other real tokens, or a mean over all of
        them, [CLS] included, with learned weights (attention).
    dropout : float
        Share that training drops of the pooled vector's elements, and of the hidden units that read static features.
    static_features : int
        Number F of features of each series that the head reads next to its vector.
    members : int
        Number of networks, each an encoder and a head, whose probabilities are averaged.

    Raises
    ------
    InputError
        An argument out of its range, or pool="cls" without a [CLS] token.
    """

    def __init__(
        self,
        encoder: Encoder,
        classes: int,
        pool: str = "cls",
        dropout: float = 0.0,
        static_features: int = 0,
        members: int = 1,
    ) -> None:
        """Put a head with `classes` outputs, the logits, on an encoder.

        `pool` ("cls", "mean", "max" or "attention") makes one vector of a row's tokens, of which training drops the
        share `dropout`; the head also reads `static_features` numbers. `members` is the number of networks, of which
        all but the first are copies of encoder and head; their probabilities are averaged. An argument out of its range
        raises InputError.
        """
        RANGES["classes"].check("classes", classes)
        super().__init__(encoder, classes, pool, dropout, static_features, members)
        self.classes = classes

    def _averaged(self, outputs: Float[Tensor, "M B outputs"]) -> Float[Tensor, "B outputs"]:
        """Average the probabilities of M members (networks), given their logits for B rows; return the logarithms."""
        return outputs.log_softmax(-1).logsumexp(0) - math.log(len(outputs))


class Regressor(_PooledHead):
    """Encoder with a head that predicts values [B, outputs] for B rows of tokens.

    Parameters
    ----------
    encoder : Encoder
        The encoder to fine-tune; the same object, not a copy. Further members get copies.
    outputs : int
        Number of values for each row, at least 1.
    pool : {"cls", "mean", "max", "attention"}
        The head reads the encoded [CLS] token, the mean or maximum over the other real tokens, or a mean over all of
        them, [CLS] included, with learned weights (attention).
    dropout : float
        Share that training drops of the pooled vector's elements, and of the hidden units that read static features.
    static_features : int
        Number F of features of each series that the head reads next to its vector.
    members : int
        Number of networks, each an encoder and a head, whose values are averaged.

    Raises
    ------
    InputError
        An argument out of its range, or pool="cls" without a [CLS] token.
    """
