"""A trained model with its scalers inside: padded observations in the table's units in, answers in these units out.

What `series.preprocessor` and `series.examples` do with numpy is done here with torch, in float64 up to the tokens, so
that one program holds all of it. Inputs that every program takes, of B series padded to N observations, which need not
be in the order of time:

    time     float64 [B, N]      in the table's unit; dates are days since 1970-01-01 UTC
    values   float64 [B, N, V]   in the order of `value_names`
    channel  int64   [B, N]      index into `channel_names`, from 0; only of a model with channels
    mask     bool    [B, N]      True where there is an observation; what stands elsewhere is not read

A head that reads columns with one value per series takes another:

    static   float64 [B, S]      numbers as they are, categories by their place in the training's list, -1 for another;
                                 NaN is missing
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from rotarymae.errors import InputError
from rotarymae.heads import embedding, encoder_of, mean_of_real
from rotarymae.interpolation import AHEAD, WIDENS_OVER, interpolate
from rotarymae.labels import ClassLabels, NumberTargets
from rotarymae.model import MaskedAutoencoder
from rotarymae.pipeline import Pipeline
from rotarymae.queries import Queries
from rotarymae.series import TRANSFORMS, Preprocessor, SeriesDataset, StaticColumn
from rotarymae.tokens import Tokens


def asinh(x: Tensor) -> Tensor:
    """Of float64, which ONNX programs do not have."""
    return x.sign() * (x.abs() + (x * x + 1).sqrt()).log()


class Scaler(nn.Module):
    """`series.ValueScaler` for padded tensors; transforms "standard", "asinh" and "none"."""

    centre: Tensor
    width: Tensor
    mean: Tensor
    std: Tensor
    compressed: Tensor
    as_is: Tensor

    def __init__(self, preprocessor: Preprocessor) -> None:
        super().__init__()
        scaler = preprocessor.values
        unknown = set(scaler.transforms) - {"standard", "asinh", "none"}
        assert not unknown, f"transforms {unknown} have no tensor form"
        for name in ("centre", "width", "mean", "std"):
            self.register_buffer(name, torch.tensor(getattr(scaler, name), dtype=torch.float64))
        self.register_buffer("compressed", torch.tensor([name == "asinh" for name in scaler.transforms]))
        self.register_buffer("as_is", torch.tensor([not TRANSFORMS[name].standardised for name in scaler.transforms]))

    def forward(self, values: Float[Tensor, "B N V"], channel: Int[Tensor, "B N"]) -> Float[Tensor, "B N V"]:
        """Standardised values."""
        small = asinh((values - self.centre[channel]) / self.width[channel])
        return (torch.where(self.compressed, small, values) - self.mean[channel]) / self.std[channel]

    def inverse(self, scaled: Float[Tensor, "B N V"], channel: Int[Tensor, "B N"]) -> Float[Tensor, "B N V"]:
        """Values in the table's units."""
        x = scaled * self.std[channel] + self.mean[channel]
        small = x.clamp(-80.0, 80.0)
        large = self.centre[channel] + self.width[channel] * (small.exp() - (-small).exp()) / 2
        return torch.where(self.compressed, large, x)

    def spread_about(self, scaled: Float[Tensor, "B N V"], channel: Int[Tensor, "B N"]) -> Float[Tensor, "B N V"]:
        """As `ValueScaler.spread_about`."""
        centre = torch.where(self.as_is, self.centre[channel], 0.0)
        width = torch.where(self.as_is, self.width[channel], 1.0)
        return (width**2 + (scaled - centre) ** 2).sqrt()


class Observed(NamedTuple):
    """Tokens, and what asking for other times of the same series needs."""

    tokens: Tokens
    origin: Float[Tensor, "B 1"]
    first: Float[Tensor, "B 1"]
    last: Float[Tensor, "B 1"]


class Tokenizer(nn.Module):
    """Observations in the table's units → tokens, as `series.assemble` makes them.

    Raises:
        InputError: a model whose tokens join all channels of a time, or that weighs measurement errors.
    """

    def __init__(self, preprocessor: Preprocessor) -> None:
        super().__init__()
        if preprocessor.join_times:
            raise InputError(
                "the model was trained with join_times, whose tokens are put together from several rows; only models "
                "without it can be exported."
            )
        if preprocessor.errors:
            raise InputError(
                f"the model weighs the measurement errors {', '.join(preprocessor.errors)} (errors=), which "
                "programs do not; train one without to export it."
            )
        self.preprocessor = preprocessor
        self.scaler = Scaler(preprocessor)

    def forward(
        self,
        time: Float[Tensor, "B N"],
        values: Float[Tensor, "B N V"],
        channel: Int[Tensor, "B N"] | None,
        mask: Bool[Tensor, "B N"],
    ) -> Observed:
        time, values = time.double(), torch.where(mask[..., None], values.double(), 0.0)
        number = torch.zeros_like(mask, dtype=torch.int64) if channel is None else torch.where(mask, channel, 0)
        first = torch.where(mask, time, torch.inf).amin(1, keepdim=True)
        last = torch.where(mask, time, -torch.inf).amax(1, keepdim=True)
        origin = torch.zeros_like(first) if self.preprocessor.positions.origin == "zero" else first
        positions = self.positions(torch.where(mask, time, origin), number, origin)
        parts = [self.scaler(values, number), *self._inputs(values, number)]
        real = mask[..., None]
        tokens = Tokens(
            torch.where(real, torch.cat(parts, -1).float(), 0.0),
            torch.where(real, positions, 0.0),
            ~mask,
            check_values=False,
        )
        return Observed(tokens, origin, first, last)

    def positions(
        self, time: Float[Tensor, "B N"], channel: Int[Tensor, "B N"], origin: Float[Tensor, "B 1"]
    ) -> Float[Tensor, "B N A"]:
        """As `series.positions_of`: the difference of times in float64, the position in float32."""
        at = (time - origin) / self.preprocessor.positions.unit
        if self.preprocessor.axes == 1:
            return at[..., None].float()
        return torch.stack([at, (channel + 1).double() * self.preprocessor.positions.channel_spacing], -1).float()

    def _inputs(self, values: Tensor, channel: Tensor) -> list[Tensor]:
        """As `series.Inputs.compute`."""
        inputs, names = self.preprocessor.inputs, self.preprocessor.value_names
        parts = []
        if inputs.channels:
            parts.append((channel[..., None] == torch.arange(inputs.channels, device=channel.device)).double())
        for column, error in inputs.signal_to_noise:
            value, spread = values[..., names.index(column)], values[..., names.index(error)]
            known = spread > 0
            ratio = torch.where(known, value / torch.where(known, spread, 1.0), 0.0)
            parts.append(asinh(ratio)[..., None])
        return parts


def static_features(columns: tuple[StaticColumn, ...], static: Float[Tensor, "B S"]) -> Float[Tensor, "B F"]:
    """As `series.static_features`."""
    parts = []
    for i, column in enumerate(columns):
        number = static[:, i].double()
        gone = number.isnan()
        if column.categories is None:
            inside = torch.where(gone, column.mean, number.clamp(column.low, column.high))
            parts.append(((inside - column.mean) / column.std)[:, None])
        else:
            known = torch.arange(len(column.categories), device=static.device)
            parts.append((torch.where(gone, -1.0, number)[:, None] == known).double())
        if column.missing:
            parts.append(gone[:, None].double())
    return torch.cat(parts, 1).float()


class Answers(nn.Module, ABC):
    """A program: its inputs and outputs by name, and what the library itself answers in its place."""

    outputs: tuple[str, ...]

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__()
        self.pipeline = replace(pipeline, precision="fp32")
        self.preprocessor = pipeline.require_series()
        self.model, self.tokenizer = pipeline.model, Tokenizer(self.preprocessor)

    @property
    def needs(self) -> tuple[str, ...]:
        """The names of the inputs."""
        channel = () if self.preprocessor.channel_names is None else ("channel",)
        return ("time", "values", *channel, "mask")

    @abstractmethod
    def of_library(self, dataset: SeriesDataset, feeds: dict[str, Tensor]) -> tuple[np.ndarray, ...]:
        """What the library answers for the same series, in the order of `outputs`."""


class Predictions(Answers):
    """`probabilities` float32 [B, classes], in the order of `classes`, or `predicted` float64 [B, outputs].

    The logarithms of probabilities are divided by the temperature of the model that the fit found.
    """

    target: Tensor

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__(pipeline)
        labels, partners = pipeline.require_labels(), pipeline.partners
        self.temperature = 1.0 if partners is None else partners.temperatures["model"]
        self.outputs = ("probabilities",) if isinstance(labels, ClassLabels) else ("predicted",)
        if isinstance(labels, NumberTargets):
            self.register_buffer("target", torch.tensor([labels.mean, labels.std], dtype=torch.float64))

    @property
    def needs(self) -> tuple[str, ...]:
        return (*super().needs, "static") if self.preprocessor.static else super().needs

    def forward(
        self, time: Tensor, values: Tensor, mask: Tensor, channel: Tensor | None = None, static: Tensor | None = None
    ) -> Tensor:
        tokens = self.tokenizer(time, values, channel, mask).tokens
        out = self.model(tokens, None if static is None else static_features(self.preprocessor.static, static))
        if self.outputs == ("predicted",):
            return out.double() * self.target[1] + self.target[0]
        return (out / self.temperature).softmax(-1)

    def of_library(self, dataset: SeriesDataset, feeds: dict[str, Tensor]) -> tuple[np.ndarray, ...]:
        return (self.pipeline.outputs(dataset, "model"),)


class Embeddings(Answers):
    """`embedding` float32 [B, D], as `embed` pools it."""

    outputs = ("embedding",)

    def __init__(self, pipeline: Pipeline, pool: str | None = None) -> None:
        super().__init__(pipeline)
        self.pool = pool or getattr(self.model, "pool", "mean")
        if self.pool == "cls" and encoder_of(self.model).cls_token is None:  # before a program is traced
            raise InputError("pool='cls' of a model without [CLS]; use pool='mean'.")

    def forward(self, time: Tensor, values: Tensor, mask: Tensor, channel: Tensor | None = None) -> Tensor:
        return embedding(self.model, self.tokenizer(time, values, channel, mask).tokens, self.pool)

    def of_library(self, dataset: SeriesDataset, feeds: dict[str, Tensor]) -> tuple[np.ndarray, ...]:
        return (self.pipeline.embed(dataset, self.pool),)


class Interpolations(Answers):
    """`mean` and `std` float64 [B, M, V] at `query_time` float64 [B, M] (and `query_channel` int64 [B, M]).

    As `interpolate`: beyond a series' observations the deviation grows to the spread of the training values. A
    model without a likelihood has no `std`.
    """

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__(pipeline.pretrained)
        self.outputs = ("mean", "std") if pipeline.require_autoencoder().likelihood.has_spread else ("mean",)

    @property
    def needs(self) -> tuple[str, ...]:
        extra = () if self.preprocessor.channel_names is None else ("query_channel",)
        return (*super().needs, "query_time", *extra)

    def forward(
        self,
        time: Tensor,
        values: Tensor,
        mask: Tensor,
        query_time: Tensor,
        channel: Tensor | None = None,
        query_channel: Tensor | None = None,
    ) -> Any:
        assert isinstance(self.model, MaskedAutoencoder)
        tokens, origin, first, last = self.tokenizer(time, values, channel, mask)
        asked, scaler = query_time.double(), self.tokenizer.scaler
        number = torch.zeros_like(asked, dtype=torch.int64) if query_channel is None else query_channel
        positions = self.tokenizer.positions(asked, number, origin)
        parameters = self.model.decode(self.model.context(tokens), positions).double()
        mean = self.model.likelihood.mean(parameters)
        if not self.model.likelihood.has_spread:
            return scaler.inverse(mean, number)
        behind = asked - last - AHEAD * self.pipeline.forecasts * (last - first)
        away = torch.maximum(first - asked, behind).clamp(min=0.0)
        span = (last - first) * WIDENS_OVER
        share = torch.where(away > 0, torch.where(span > 0, away / torch.where(span > 0, span, 1.0), 1.0), 0.0)
        variance = self.model.likelihood.std(parameters) ** 2
        least = scaler.spread_about(mean, number) ** 2
        std = (variance + share.clamp(max=1.0)[..., None] * (least - variance).clamp(min=0.0)).sqrt()
        upper, lower = scaler.inverse(mean + std, number), scaler.inverse(mean - std, number)
        return scaler.inverse(mean, number), (upper - lower) / 2

    def of_library(self, dataset: SeriesDataset, feeds: dict[str, Tensor]) -> tuple[np.ndarray, ...]:
        times, channel = feeds["query_time"].numpy(), feeds.get("query_channel")
        offsets = np.arange(len(times) + 1) * times.shape[1]
        queries = Queries(times.ravel(), None if channel is None else channel.numpy().ravel(), offsets)
        found = interpolate(self.pipeline, dataset, queries)
        both = [found.mean] if found.std is None else [found.mean, found.std]
        return tuple(part.reshape(*times.shape, -1) for part in both)


class LightCurves(Answers):
    """What `light_curve.embed` 0.13 asks of a multi-band model.

    Inputs `flux`, `flux_err`, `time` float32 [B, N], `mask` bool [B, N] (True = valid), `channel_index` int64 [B, N];
    outputs `cls` [B, D], `mean` [B, D] over the observations, and `sequence` [B, N, D], float32, with 0 under the mask.
    Times of float32 lose minutes of a date: give days since the first observation, as that package does.

    Raises:
        InputError: a model without channels, without [CLS], or of other values than a flux and its error.
    """

    outputs = ("cls", "mean", "sequence")

    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__(pipeline)
        encoder, preprocessor = encoder_of(pipeline.model), self.preprocessor
        names = preprocessor.value_names
        if preprocessor.channel_names is None or encoder.cls_token is None or not 1 <= len(names) <= 2:
            raise InputError(
                f"the contract light-curve wants a model with channels, a [CLS] token, and a flux with or without its "
                f"error; this one has the channels {preprocessor.channel_names}, the values {', '.join(names)} and "
                f"{'no' if encoder.cls_token is None else 'a'} [CLS]."
            )
        self.encoder = encoder

    @property
    def needs(self) -> tuple[str, ...]:
        return ("flux", "flux_err", "time", "mask", "channel_index")

    def forward(self, flux: Tensor, flux_err: Tensor, time: Tensor, mask: Tensor, channel_index: Tensor) -> Any:
        both = torch.stack([flux, flux_err], -1)[..., : len(self.preprocessor.value_names)]
        tokens = self.tokenizer(time, both, channel_index, mask).tokens
        latent = self.encoder(tokens)
        assert latent.cls is not None
        sequence = torch.where(mask[..., None], latent.tokens, 0.0)
        return latent.cls, mean_of_real(latent.tokens, tokens.padding), sequence

    def of_library(self, dataset: SeriesDataset, feeds: dict[str, Tensor]) -> tuple[np.ndarray, ...]:
        """Without the sequence, which the library gives nobody; its mean is compared."""
        alone = replace(self.pipeline, model=self.encoder, autoencoder=None, labels=None, partners=None)
        return tuple(alone.embed(dataset, pool) for pool in ("cls", "mean"))
