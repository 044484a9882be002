"""RoMAE: the encoder, and the masked autoencoder around it (section 4 of arXiv:2505.20535)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from rotarymae.config import LikelihoodKind, RoMAEConfig
from rotarymae.errors import InputError
from rotarymae.likelihoods import LIKELIHOODS
from rotarymae.masking import split
from rotarymae.neighbours import NUMBERS, NeighbourHead, Observed, neighbours, observe
from rotarymae.rope import POSITION_ENCODINGS
from rotarymae.tokens import Tokens
from rotarymae.transformer import ALL, Transformer

Module = TypeVar("Module", bound=nn.Module)


class Latent(NamedTuple):
    """Output of the encoder for a batch of B rows, before any final norm: heads have a norm of their own.

    Attributes:
        tokens: a vector of the encoder's width D for each of the N input tokens of a row. At padding it has no meaning.
        cls: the vector of the [CLS] token of each row; None for an encoder without one.
    """

    tokens: Float[Tensor, "B N D"]
    cls: Float[Tensor, "B D"] | None


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """Predictions of the autoencoder for the masked tokens of a batch of B rows, standardised like its input.

    Attributes:
        parameters: P numbers for each of the V values of M tokens. What they mean depends on the likelihood; the first
            is the mean. They have no meaning at padding.
        masked: the hidden tokens [B, M] with the V true values; its padding marks which of the M are no tokens.
        likelihood: name of the likelihood that the parameters belong to.
    """

    parameters: Float[Tensor, "B M V P"]
    masked: Tokens
    likelihood: LikelihoodKind

    @property
    def predicted(self) -> Float[Tensor, "B M V"]:
        """Predicted mean of each of the V values of M hidden tokens in B rows, [B, M, V], standardised."""
        return LIKELIHOODS[self.likelihood].mean(self.parameters)

    @property
    def std(self) -> Float[Tensor, "B M V"] | None:
        """Predicted standard deviation of each value, standardised: V values of M hidden tokens in B rows, [B, M, V].

        None where the likelihood is "point", which predicts no spread.
        """
        likelihood = LIKELIHOODS[self.likelihood]
        return likelihood.std(self.parameters) if likelihood.has_spread else None


class Context(NamedTuple):
    """Visible tokens of B rows, encoded once, for any number of calls of `MaskedAutoencoder.decode`.

    Attributes:
        tokens: C tokens of the decoder's width E; [CLS] is the first, if there is one.
        positions: of these tokens on the A axes; 0 for [CLS].
        padding: True where there is no token; None for no padding.
        observed: what else the model looks up at each query: the visible observations of a model with `neighbours`, the
            fitted processes (`Bank`) of an `AnySeries`; None for other models.
    """

    tokens: Float[Tensor, "B C E"]
    positions: Float[Tensor, "B C A"]
    padding: Bool[Tensor, "B C"] | None
    observed: Observed | None = None


class Encoder(nn.Module):
    """Encoder of tokens: input projection, [CLS] and blocks; of a pre-trained model, fine-tuning keeps only this part.

    Parameters
    ----------
    config : RoMAEConfig
        Sizes of the model; those of the decoder are not used.
    """

    def __init__(self, config: RoMAEConfig) -> None:
        """Build the input projection, [CLS] (if `config.cls_token`) and the blocks, and draw their initial values."""
        super().__init__()
        self.config = config
        self.projection = nn.Linear(config.features + config.input_features, config.embed_dim)
        self.cls_token = nn.Parameter(torch.empty(config.embed_dim)) if config.cls_token else None
        sizes = config.encoder_sizes
        self.position_encoding = POSITION_ENCODINGS[config.position_encoding](config, sizes)
        self.transformer = Transformer(sizes)
        initialise(self)

    def forward(self, tokens: Tokens) -> Latent:
        """Encode a batch.

        Parameters
        ----------
        tokens : Tokens
            The batch [B, N], B rows of N tokens, with the features and axes of the configuration.

        Returns
        -------
        Latent
            `tokens` [B, N, D], a vector of the encoder's width D for each token, without meaning at padded positions;
            and `cls` [B, D], None without a [CLS] token.

        Raises
        ------
        InputError
            The tokens have another number of features or axes than the configuration.
        """
        x = self._encode(tokens)
        return Latent(x, None) if self.cls_token is None else Latent(x[:, 1:], x[:, 0])

    def summary(self, tokens: Tokens) -> Float[Tensor, "B D"]:
        """Encode a batch and return [CLS] alone; cheaper than `forward`, as the last block computes no other token.

        Parameters
        ----------
        tokens : Tokens
            The batch [B, N], B rows of N tokens.

        Returns
        -------
        Tensor
            The encoded [CLS] token of each row, [B, D], with the encoder's width D.

        Raises
        ------
        InputError
            The tokens have another number of features or axes than the configuration; or the encoder has no [CLS].
        """
        if self.cls_token is None:
            raise InputError("this encoder has no [CLS] token to give; take the mean over tokens (pool='mean').")
        return self._encode(tokens, queries=slice(1))[:, 0]

    def _encode(self, tokens: Tokens, queries: slice = ALL) -> Float[Tensor, "B Q D"]:
        """Project the tokens, put [CLS] in front if there is one, and run the blocks.

        Args:
            tokens: the batch, B rows of N tokens.
            queries: which of the encoded tokens to return, counted from 0; [CLS], if there is one, is token 0.

        Returns:
            The Q selected tokens of each row, of the encoder's width D, without a final norm.

        Raises:
            InputError: tokens with another number of features or axes than the configuration.
        """
        config, features = self.config, self.config.features + self.config.input_features
        if tokens.features != features or tokens.axes != config.axes:
            raise InputError(
                f"tokens have {tokens.features} features and {tokens.axes} position axes; the model was made for "
                f"{features} features ({config.features} values and {config.input_features} further inputs) and "
                f"{config.axes} axes. Give such tokens, or make a model with another RoMAEConfig."
            )
        weight = self.projection.weight
        # The residual stream keeps the weights' precision under autocast; only matrix products are done in less.
        x = self.projection(tokens.values.to(weight.dtype)).to(weight.dtype)
        positions, padding = with_cls(tokens.positions, tokens.padding, self.config.cls_token)
        if self.cls_token is not None:
            x = torch.cat([self.cls_token.expand(x.shape[0], 1, -1), x], dim=1)
        x = self.position_encoding.add(x, positions)
        return self.transformer(x, self.position_encoding.rotation(positions), padding, queries)


class MaskedAutoencoder(nn.Module):
    """Autoencoder that encodes visible tokens and predicts the hidden ones from their positions alone (Figure 1).

    Parameters
    ----------
    config : RoMAEConfig
        Sizes of encoder and decoder.
    """

    def __init__(self, config: RoMAEConfig) -> None:
        """Build the encoder, the mask token, the decoder and its output layer, and draw their initial values."""
        super().__init__()
        self.config = config
        self.encoder = Encoder(config)
        dim, sizes = config.decoder_embed_dim, config.decoder_sizes
        self.decoder_projection = nn.Linear(config.embed_dim, dim)
        self.mask_token = nn.Parameter(torch.empty(dim))
        self.position_encoding = POSITION_ENCODINGS[config.position_encoding](config, sizes)
        self.decoder = Transformer(sizes)
        self.norm = nn.RMSNorm(dim, eps=config.norm_eps)
        self.likelihood = LIKELIHOODS[config.likelihood]
        outputs = self.likelihood.outputs
        if config.neighbours:
            self.neighbour_projection = nn.Linear(config.features * NUMBERS, dim, bias=False)
            self.head = NeighbourHead(dim, config.features, outputs)
        else:
            self.head = nn.Linear(dim, config.features * outputs)
        initialise(self)

    def forward(self, tokens: Tokens, mask: Bool[Tensor, "B N"]) -> Reconstruction:
        """Predict the hidden tokens from the others.

        Parameters
        ----------
        tokens : Tokens
            The batch [B, N], B rows of N tokens.
        mask : bool Tensor of shape [B, N]
            True where a token is hidden.

        Returns
        -------
        Reconstruction
            Predictions [B, M] for the hidden tokens, in their order, with their true values. M is the largest number
            that a row hides; the other rows are padded at the end.

        Raises
        ------
        InputError
            A mask of another shape or type, or one that hides padding, nothing at all, or all tokens of a row; tokens
            with another number of features or axes than the configuration.
        """
        visible, masked = split(tokens, mask)
        return self.predict(visible, masked)

    def predict(self, visible: Tokens, masked: Tokens) -> Reconstruction:
        """Predict hidden tokens, for a batch that is split already.

        Parameters
        ----------
        visible : Tokens
            The visible tokens [B, N], N in each of B rows.
        masked : Tokens
            The hidden tokens [B, M], M in each row. Their values are returned as the truth, and not read otherwise. A
            model with `neighbours` predicts only values that `masked` marks as observed: where a value was not, its
            prediction has no meaning.

        Returns
        -------
        Reconstruction
            Predictions for the M hidden tokens of each row, with their true values. Further inputs of the tokens, such
            as standard errors, are left out.

        Raises
        ------
        InputError
            Visible tokens with another number of features or axes than the configuration; hidden tokens with another
            number of rows or axes, or with fewer values (or marks of which were observed) than the model predicts.
        """
        features, observed = self.config.features, masked.observed
        if masked.features < features or (observed is not None and observed.shape[2] < features):
            marks = "" if observed is None else f", and their mask `observed` has {observed.shape[2]}"
            raise InputError(
                f"hidden tokens have {masked.features} values{marks}; the model predicts {features} values per token: "
                f"give `masked` with at least {features}."
            )
        target_mask = masked.observed_values[..., :features] if self.config.neighbours else None
        parameters = self.decode(self.context(visible), masked.positions, masked.padding, target_mask)
        if masked.features > features:
            observed = None if observed is None else observed[..., :features]
            masked = replace(masked, values=masked.values[..., :features], observed=observed, check_values=False)
        return Reconstruction(parameters, masked, self.config.likelihood)

    def reconstruct(
        self,
        visible: Tokens,
        positions: Float[Tensor, "B M A"],
        padding: Bool[Tensor, "B M"] | None = None,
        return_std: bool = False,
    ) -> Float[Tensor, "B M V"] | tuple[Float[Tensor, "B M V"], Float[Tensor, "B M V"]]:
        """Predict values at any positions, standardised like the input.

        With `decoder_attention="context"` a prediction does not depend on the other positions; with "joint" it does.

        Parameters
        ----------
        visible : Tokens
            The observations [B, N], N in each of B rows.
        positions : Tensor of shape [B, M, A]
            Where to predict: M positions for each row, on the A axes of the tokens.
        padding : bool Tensor of shape [B, M] or None
            True where there is no position; predictions there have no meaning. None when all are positions.
        return_std : bool
            Whether to return standard deviations as well.

        Returns
        -------
        Tensor or tuple of Tensor
            Means [B, M, V] of the V values at each position; with `return_std` a pair of means and standard deviations
            of the same shape.

        Raises
        ------
        InputError
            `return_std` of a model that predicts no spread; tokens, positions or padding of another shape; padding that
            is not bool; NaN or infinity in positions outside padding.
        """
        if return_std and not self.likelihood.has_spread:
            raise InputError(
                "this model predicts no spread (likelihood='point'); leave out return_std, or train with "
                "likelihood='gaussian'."
            )
        parameters = self.decode(self.context(visible), positions, padding)
        if not (positions if padding is None else positions[~padding]).isfinite().all():
            text = "positions to predict at hold NaN or infinity; leave such positions out, or mark them as padding."
            raise InputError(text)
        mean = self.likelihood.mean(parameters)
        return (mean, self.likelihood.std(parameters)) if return_std else mean

    def context(self, visible: Tokens) -> Context:
        """Encode the visible tokens once, for any number of calls of `decode`.

        Parameters
        ----------
        visible : Tokens
            The visible tokens [B, N], N in each of B rows.

        Returns
        -------
        Context
            The encoded tokens, projected to the decoder's width, with [CLS] first if there is one. For a model with
            `neighbours` it also holds the visible observations, sorted by channel and time.

        Raises
        ------
        InputError
            The tokens have another number of features or axes than the configuration.
        """
        latent = self.encoder(visible)
        encoded = latent.tokens if latent.cls is None else torch.cat([latent.cls[:, None], latent.tokens], dim=1)
        tokens = self.decoder_projection(encoded).to(self.decoder_projection.weight.dtype)
        observed = observe(visible, self.config.features) if self.config.neighbours else None
        return Context(tokens, *with_cls(visible.positions, visible.padding, self.config.cls_token), observed)

    def decode(
        self,
        context: Context,
        positions: Float[Tensor, "B M A"],
        padding: Bool[Tensor, "B M"] | None = None,
        target_mask: Bool[Tensor, "B M V"] | None = None,
    ) -> Float[Tensor, "B M V P"]:
        """Predict values at any positions (queries) from encoded tokens; return the parameters of the likelihood.

        Parameters
        ----------
        context : Context
            The encoded visible tokens, as the method `context` returns them.
        positions : Tensor of shape [B, M, A]
            Where to predict: M positions for each of the B rows, on the A axes of the tokens.
        padding : bool Tensor of shape [B, M] or None
            True where there is no query; predictions there have no meaning. None when all are queries.
        target_mask : bool Tensor of shape [B, M, V] or None
            True where a value is to be predicted, which saves time for a model with `neighbours`; predictions elsewhere
            have no meaning. None predicts all. Other models ignore it.

        Returns
        -------
        Tensor
            P parameters, standardised and clamped, of each of the V values at each position, [B, M, V, P]. The first is
            the mean; the class of `likelihoods` that the configuration names says what the others are.

        Raises
        ------
        InputError
            Positions or padding of another shape; padding that is not bool.
        """
        batch, _, axes = context.positions.shape
        if positions.ndim != 3 or (positions.shape[0], positions.shape[2]) != (batch, axes):
            raise InputError(
                f"positions to predict at have shape {tuple(positions.shape)}; give [{batch}, number, {axes}] "
                "(batch, positions per row, axes)."
            )
        if padding is not None and (padding.shape != positions.shape[:2] or padding.dtype != torch.bool):
            raise InputError(
                f"padding is {padding.dtype} {tuple(padding.shape)}; give torch.bool {tuple(positions.shape[:2])}, "
                "False at positions to predict at."
            )
        query_tokens = self.mask_token.expand(*positions.shape[:2], -1)
        near = None
        if context.observed is not None:
            near = neighbours(context.observed, positions.to(context.positions.dtype), self.config.features)
            near = near.to(query_tokens.dtype)
            query_tokens = query_tokens + self.neighbour_projection(near.flatten(2)).to(query_tokens.dtype)
        x = self._decoded(context, query_tokens, positions, padding)
        with torch.autocast(x.device.type, enabled=False):  # answers in bfloat16 would have three digits
            out = self.head(x) if near is None else self.head(x, near, target_mask)
        return self.likelihood.parameters(out)

    def _decoded(
        self,
        context: Context,
        queries: Float[Tensor, "B M E"],
        positions: Float[Tensor, "B M A"],
        padding: Bool[Tensor, "B M"] | None,
    ) -> Float[Tensor, "B M E"]:
        """Run the decoder on visible tokens followed by M mask tokens per row; return the results for the latter.

        Args:
            context: visible tokens of B rows, encoded and projected to the decoder's width E.
            queries: the mask tokens, before absolute positions are added.
            positions: of the mask tokens, on A axes.
            padding: True where there is no mask token; None for no padding.

        Returns:
            The decoded mask tokens, after the decoder's final RMSNorm.
        """
        visible = context.positions.shape[1]
        x = torch.cat([context.tokens, queries], dim=1)
        positions = torch.cat([context.positions, positions.to(context.positions.dtype)], dim=1)
        if context.padding is not None or padding is not None:
            parts = (context.padding, visible), (padding, queries.shape[1])
            none = [x.new_zeros(x.shape[0], n, dtype=torch.bool) if part is None else part for part, n in parts]
            padding = torch.cat(none, dim=1)
        x = self.position_encoding.add(x, positions)
        keys = visible if self.config.decoder_attention == "context" else None
        return self.norm(
            self.decoder(x, self.position_encoding.rotation(positions), padding, slice(visible, None), keys)
        )


def with_cls(
    positions: Float[Tensor, "B N A"], padding: Bool[Tensor, "B N"] | None, cls_token: bool
) -> tuple[Float[Tensor, "B L A"], Bool[Tensor, "B L"] | None]:
    """Put [CLS] in front of the N tokens of B rows, so that each has L = N + 1; return (positions, padding).

    Args:
        positions: on A axes; that of [CLS] is 0 on each.
        padding: True where there is no token; it is False for [CLS]. None stays None.
        cls_token: whether there is a [CLS] token. If not, both are returned as they are, and L is N.
    """
    if not cls_token:
        return positions, padding
    positions = torch.cat([positions.new_zeros(positions.shape[0], 1, positions.shape[2]), positions], dim=1)
    if padding is not None:
        padding = torch.cat([padding.new_zeros(padding.shape[0], 1), padding], dim=1)
    return positions, padding


def initialise(module: nn.Module, generator: torch.Generator | None = None) -> None:
    """Set the initial values of all parameters of an encoder, autoencoder or head, in place.

    - Weights of linear layers are Xavier uniform, as in MAE. Those of layers called "scores", "correction" or "readout"
      are 0: attention pooling starts as the mean over tokens, a NeighbourHead as the straight line between neighbours,
      an AnySeries as its Gaussian processes.
    - Biases are 0, but that of the input projection ("projection") is normal with variance 2 / (inputs + outputs). With
      a zero bias, the first RMSNorm would keep only the sign of a token with one feature.
    - Scales of an RMSNorm are 1. [CLS] and [MASK] are N(0, 0.02²): a zero [MASK] before an RMSNorm gets a first
      gradient of 4e5. The embedding of features in a NeighbourHead is N(0, 0.5²).

    Numbers are drawn in float32 on the CPU, so that they do not depend on the default type and device. They come from
    `generator`; None means torch's global state. A module with any parameter on the meta device is left alone.
    """
    if any(parameter.is_meta for parameter in module.parameters()):
        return  # a model about to be loaded; to draw numbers for it, torch would first import its compiler, in seconds

    def draw(parameter: Tensor, distribution: Callable[..., Tensor], **how: float) -> None:
        """Fill `parameter` in place with numbers drawn by `distribution`, such as `torch.nn.init.normal_`.

        `how` are further arguments of `distribution`, such as std.
        """
        drawn = torch.empty(parameter.shape, dtype=torch.float32, device="cpu")
        with torch.no_grad():
            parameter.copy_(distribution(drawn, **how, generator=generator))

    for name, layer in module.named_modules():
        last = name.split(".")[-1]
        if isinstance(layer, nn.Linear):
            if last in ("scores", "correction", "readout"):
                nn.init.zeros_(layer.weight)
            else:
                draw(layer.weight, nn.init.xavier_uniform_)
            if layer.bias is not None and last == "projection":
                draw(layer.bias, nn.init.normal_, std=math.sqrt(2 / sum(layer.weight.shape)))
            elif layer.bias is not None:
                nn.init.zeros_(layer.bias)
        elif isinstance(layer, nn.RMSNorm):
            nn.init.ones_(layer.weight)
    for name, parameter in module.named_parameters():
        if name.split(".")[-1] in ("cls_token", "mask_token"):
            draw(parameter, nn.init.normal_, std=0.02)
        elif name.split(".")[-1] == "embedding":
            draw(parameter, nn.init.normal_, std=0.5)


def build(make: Callable[[], Module], generator: torch.Generator) -> Module:
    """Call `make()` and return its module, with float32 weights on the CPU that are drawn from `generator` only.

    `make` is called on the meta device, so parameters get no values; `initialise` draws them. Buffers are arbitrary.
    """
    with torch.device("meta"):  # torch's layers would draw from the state that all threads share
        module = make()
    module = module.to_empty(device="cpu").float()
    initialise(module, generator)
    return module
