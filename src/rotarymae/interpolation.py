"""Values at any times, in the table's units, with their bands."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from rotarymae.batch import Batch
from rotarymae.errors import InputError, InputWarning
from rotarymae.likelihoods import Likelihood
from rotarymae.model import MaskedAutoencoder
from rotarymae.prediction import inference
from rotarymae.preprocess import ObservationPreprocessor, assemble
from rotarymae.queries import Queries, check_queries
from rotarymae.series import SeriesDataset, as_dates, channel_index, plain
from rotarymae.tokens import Tokens, pad_rows, round_up, rounding_step
from rotarymae.training import predict

if TYPE_CHECKING:
    from rotarymae.pipeline import Pipeline

SHARES = (0.5, 0.68, 0.9, 0.95)  # of a distribution, held by the central intervals whose promise reports check
SHOWN = (0.68, 0.95)  # the bands that tables and figures show
CHUNK = 4096  # queries per pass of the decoder
# Pre-training hides at most some four observations for each that it shows: who asks for more wants a curve.
CURVE = 4
# Outside a series' span bands widen over this share of it, chosen on validation series of the recipe synthetic and of
# PLAsTiCC: of 0.25 and 0.5 the one whose 95 % bands held 95 % or more up to half a span beyond the last observation.
WIDENS_OVER = 0.25
# A model that learnt to forecast has been asked up to a span behind the last observation: there its bands stay its own.
AHEAD = 1.0


@dataclass(frozen=True, eq=False)
class Predicted:
    """Standardised predictions at queries: the parameters [B, M, V, P] of a likelihood."""

    parameters: Tensor
    likelihood: Likelihood

    @property
    def mean(self) -> Tensor:
        return self.likelihood.mean(self.parameters)

    @property
    def std(self) -> Tensor | None:
        """The standard deviation; None of a likelihood without a spread."""
        return self.likelihood.std(self.parameters) if self.likelihood.has_spread else None


def predict_at(
    model: MaskedAutoencoder,
    visible: Tokens,
    positions: Tensor,
    padding: Tensor | None = None,
    chunk: int | None = CHUNK,
) -> Predicted:
    """The values a model expects at any positions, standardised like its input: the one way to ask.

    The visible tokens are encoded once; the decoder then answers the queries in chunks. With
    decoder_attention="context" an answer does not depend on the other queries, nor on `chunk`. With "joint" the
    queries of a chunk see one another's positions, as in the paper's pre-training.

    Args:
        visible: [B, N] tokens.
        positions: [B, M, A] of the queries.
        padding: [B, M], True where there is no query; what is answered there has no meaning.
        chunk: queries per pass; None for all at once.
    """
    parts, context = [], model.context(visible)
    for start in range(0, positions.shape[1], chunk or positions.shape[1]):
        part = slice(start, start + (chunk or positions.shape[1]))
        parts.append(model.decode(context, positions[:, part], None if padding is None else padding[:, part]))
    return Predicted(torch.cat(parts, 1), model.likelihood)


@dataclass(frozen=True, eq=False)
class Interpolation:
    """Predictions at n queries, all [n, V].

    Attributes:
        extrapolated: [n] True before the first or after the last of a series' observations. There bands widen: over a
            quarter of the series' span they grow to no less than the spread of the training values about the answer.
        mean: centre of the predicted distribution, in the table's units.
        std: half the distance between one deviation below and one above; None of a likelihood without a spread. Where a
            value was compressed (asinh), the distribution is skewed in its own unit and the bands say more.
        scaled: the distribution itself, standardised like the model's input.
        bands: share → (lower, upper) edges of the central interval that holds it; empty without a spread.
        centre, width: what undoes the standardisation, value · width + centre, of a model that standardises each series
            by itself; None where the preprocessor does it.
    """

    extrapolated: np.ndarray
    mean: np.ndarray
    std: np.ndarray | None
    scaled: Predicted
    bands: dict[float, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    centre: np.ndarray | None = None
    width: np.ndarray | None = None

    @property
    def scaled_mean(self) -> np.ndarray:
        return self.scaled.mean.numpy()

    @property
    def scaled_std(self) -> np.ndarray | None:
        """The standard deviation of the standardised distribution; None of a likelihood without a spread."""
        return None if self.scaled.std is None else self.scaled.std.numpy()


class _Interpolating:
    """Examples whose inputs are a series' observations and whose masked tokens are its queries."""

    def __init__(self, dataset: SeriesDataset, queries: Queries, preprocessor: ObservationPreprocessor) -> None:
        self.dataset, self.queries, self.preprocessor = dataset, queries, preprocessor
        self.origins = preprocessor.positions.origins(dataset)
        self.lengths = preprocessor.lengths(dataset) + np.minimum(queries.lengths, CHUNK)

    def names(self, index: Any) -> list[str]:
        return [str(name) for name in self.dataset.ids[np.asarray(index, np.int64)]]

    def batch(self, index: np.ndarray, epoch: int | None) -> Batch:
        queries, lengths = self.queries, self.queries.lengths[index]
        starts = queries.offsets[index] - (np.cumsum(lengths) - lengths)
        at = np.repeat(starts, lengths) + np.arange(lengths.sum())
        times, padding = pad_rows(queries.times[at][:, None], lengths)
        channels = None if queries.channels is None else pad_rows(queries.channels[at][:, None], lengths)[0]
        positions = self.preprocessor.positions_of(
            times[..., 0],
            None if channels is None else channels[..., 0].long(),
            None if queries.positions is None else pad_rows(queries.positions[at], lengths)[0],
            torch.tensor(self.origins[index])[:, None],
        )
        if padding is not None:
            positions = positions.masked_fill(padding[..., None], 0.0)
        values = torch.zeros(*positions.shape[:2], self.preprocessor.features)
        masked = Tokens(values, positions, padding, check_values=False)
        visible = assemble(self.dataset, self.preprocessor, index, self.origins)
        step = rounding_step(visible.length + masked.length)
        return Batch(index, round_up(visible, step), round_up(masked, step))


def interpolate(
    pipeline: Pipeline,
    dataset: SeriesDataset,
    queries: Queries,
    on_step: Any = None,
    chunk: int | None = CHUNK,
) -> Interpolation:
    """The values a pre-trained model expects at any times, in the table's units; see `predict_at`.

    Raises:
        InputError: a model that is not a MaskedAutoencoder; queries for another number of series, with NaN, or of a
            channel that is none.
    """
    model, preprocessor = pipeline.require_autoencoder(), pipeline.require_series()
    check_queries(queries, dataset, preprocessor)
    windows, given, fade, outside = preprocessor.windows(dataset), queries, None, _spans_beyond(queries, dataset) > 0
    if len(windows.series) > len(dataset):
        dataset, (queries, fade) = windows.dataset, queries.of_windows(windows)
    preprocessor.check(dataset)
    _warn_if_far(queries, dataset, preprocessor)
    _warn_if_joint(model, queries, dataset)
    asked = queries.lengths > 0
    if not asked.all():
        dataset, queries = dataset.select(asked), replace(queries, offsets=np.unique(queries.offsets))

    def read(model: torch.nn.Module, batch: Batch) -> list[np.ndarray]:
        assert isinstance(model, MaskedAutoencoder) and batch.masked is not None
        found = predict_at(model, batch.inputs, batch.masked.positions, batch.masked.padding, chunk)
        parameters = found.parameters.cpu().double().numpy()
        return [row[:n] for row, n in zip(parameters, queries.lengths[batch.series], strict=True)]

    channels = channel_index(queries)
    beyond = _spans_beyond(queries, dataset, AHEAD * pipeline.forecasts)
    place = np.arange(len(channels))
    if preprocessor.join_times:  # one query predicts all channels of a time
        queries, place = queries.distinct_times()
        chunk = chunk and max(1, chunk // preprocessor.features)
    rows = predict(model, _Interpolating(dataset, queries, preprocessor), read, inference(pipeline), on_step)
    scaled = np.concatenate(rows)
    bad = np.asarray(~np.isfinite(scaled).all(axis=(1, 2)))
    if bad.any():
        series = int(np.searchsorted(queries.offsets, int(bad.argmax()), side="right")) - 1
        raise InputError(
            f"the model's answer to {int(bad.sum()):,} of {bad.size:,} queries is NaN or infinite, first in series "
            f"{plain(dataset.ids[series])!r}; its weights are damaged, or the values there lie far outside the "
            "training range."
        )
    if preprocessor.join_times:
        parts = scaled.reshape(len(scaled), -1, len(preprocessor.value_names), scaled.shape[-1])
        scaled = parts[place, channels]
    if fade is not None:
        scaled, channels = fade.mixed(scaled), channels[fade.first]
        # Between windows is not outside; the span of a window may be 0, and how far beyond then infinite.
        beyond = np.where(outside, np.minimum(beyond[fade.first], beyond[fade.second]), 0.0)
    scaler, likelihood = preprocessor.values, model.likelihood
    parameters = torch.from_numpy(scaled)
    mean = likelihood.mean(parameters).numpy()
    centre = scaler.inverse(mean, channels)
    if not likelihood.has_spread:
        return Interpolation(outside, centre, None, Predicted(parameters, likelihood))
    # What training never asked for, the model answers with the certainty of what it was asked for.
    share = np.minimum(beyond / WIDENS_OVER, 1.0)[:, None]
    variance = likelihood.std(parameters).numpy() ** 2
    extra = share * np.maximum(scaler.spread_about(mean, channels) ** 2 - variance, 0.0)
    if given.errors is not None:
        extra = extra + scaler.standard_errors(centre, given.errors, channels) ** 2
    predicted = Predicted(likelihood.widen(parameters, torch.from_numpy(extra).log()), likelihood)

    def unscaled(edge: Tensor) -> np.ndarray:
        return scaler.inverse(edge.numpy(), channels)

    std = likelihood.std(predicted.parameters)
    spread = (unscaled(predicted.mean + std) - unscaled(predicted.mean - std)) / 2
    bands = {}
    for share in SHOWN:
        lower, upper = likelihood.interval(predicted.parameters, share)
        bands[share] = unscaled(lower), unscaled(upper)
    return Interpolation(outside, centre, spread, predicted, bands)


def _spans_beyond(queries: Queries, dataset: SeriesDataset, ahead: float = 0.0) -> np.ndarray:
    """How far each query lies before its series' first or more than `ahead` after its last observation [n], in spans of
    the series; 0 between them, infinity outside of a series of one time."""
    first = np.repeat(dataset.times[dataset.offsets[:-1]], queries.lengths)
    last = np.repeat(dataset.times[dataset.offsets[1:] - 1], queries.lengths)
    behind = queries.times - last - ahead * (last - first)
    away = np.maximum(np.maximum(first - queries.times, behind), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(away > 0, away / (last - first), 0.0)


def _warn_if_joint(model: MaskedAutoencoder, queries: Queries, dataset: SeriesDataset) -> None:
    if model.config.decoder_attention == "joint" and (queries.lengths > CURVE * np.asarray(dataset.lengths)).any():
        most = int((queries.lengths / dataset.lengths).argmax())
        warnings.warn(
            f"series {plain(dataset.ids[most])!r} has {dataset.lengths[most]} observations and is asked at "
            f"{queries.lengths[most]} points, which see one another in this model (decoder_attention='joint'): its "
            "answers, and its bands above all, depend on what else is asked. Ask for fewer points at a time, or train "
            "with decoder_attention='context'.",
            InputWarning,
            stacklevel=3,
        )


def _warn_if_far(queries: Queries, dataset: SeriesDataset, preprocessor: ObservationPreprocessor) -> None:
    positions = preprocessor.positions
    at = np.abs(queries.times - np.repeat(positions.origins(dataset), queries.lengths)) / positions.unit
    if at.max() > 1.5 * positions.reach + 1.0:
        series = int(np.searchsorted(queries.offsets, int(at.argmax()), side="right")) - 1
        when, days = f"{queries.times[at.argmax()]:.10g}", "" if dataset.time_unit is None else f" {dataset.time_unit}s"
        if dataset.time_zone is not None:
            when = str(as_dates(queries.times[[at.argmax()]], dataset.time_zone)[0].as_py())
        warnings.warn(
            f"series {plain(dataset.ids[series])!r} is asked at time {when}, "
            f"{at.max() * positions.unit:.6g}{days} from its origin; training reached "
            f"{positions.reach * positions.unit:.6g}. Values there are extrapolations.",
            InputWarning,
            stacklevel=3,
        )
