"""Values at any times, in the table's units, with their bands."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from rotarymae.batch import Batch
from rotarymae.errors import InputError, InputWarning
from rotarymae.likelihoods import Likelihood
from rotarymae.model import MaskedAutoencoder
from rotarymae.prediction import inference
from rotarymae.preprocess import DatasetExamples, ObservationPreprocessor
from rotarymae.queries import Queries, check_queries, queries_from, shape_answers
from rotarymae.series import SeriesDataset, as_dates, channel_index, plain
from rotarymae.surroundings import output_numbers, surroundings
from rotarymae.tokens import Tokens, pad_rows, round_up, rounding_step
from rotarymae.training import predict

if TYPE_CHECKING:
    from rotarymae.pipeline import Pipeline

SHOWN_BANDS = (0.68, 0.95)  # the bands that tables and figures show
QUERIES_PER_PASS = 4096  # queries per pass of the decoder
# More queries than this per observation are a curve: pre-training hides at most about so many for each visible one.
CURVE = 4
Step = Callable[[int, int], None] | None  # called with (steps done, steps in all)
MOST_ERRORS = 3.0  # standard errors that a band of observations may reach beyond the bounds of training values
DEVIATION = math.erf(math.sqrt(0.5))  # of a normal distribution lies within one standard deviation


def predict_at(
    model: MaskedAutoencoder,
    visible: Tokens,
    positions: Float[Tensor, "B M A"],
    padding: Bool[Tensor, "B M"] | None = None,
    chunk: int = QUERIES_PER_PASS,
) -> Float[Tensor, "B M V P"]:
    """Predict distributions of values at any positions: parameters of the model's likelihood, standardised.

    The visible tokens are encoded once; the decoder then predicts `chunk` positions of each row at a time. With
    decoder_attention="context" a prediction depends neither on the other positions nor on `chunk`. With "joint" the
    positions of a chunk attend to one another, as in the paper.

    Args:
        model: the autoencoder.
        visible: observations of B series, as the model takes them.
        positions: where to predict: M positions for each series, on the A axes of the tokens.
        padding: True where there is no position; predictions there have no meaning. None when all are positions.
        chunk: number of positions per pass of the decoder, which limits the memory needed.

    Returns:
        P parameters of each of the V values at each position; the first is the mean.
    """
    context, parts = model.context(visible), positions.split(chunk, 1)
    paddings = [None] * len(parts) if padding is None else padding.split(chunk, 1)
    return torch.cat([model.decode(context, *part) for part in zip(parts, paddings, strict=True)], 1)


@dataclass(frozen=True, eq=False)
class Interpolation:
    """Predictions of V values at n queries, each a time (and a channel, if there are some); arrays [n, V] unless said.

    Attributes:
        distance: [n] time to the nearest observation of the same series and channel, in the table's unit; infinite
            where there is none. Bands widen with it, see `calibration`.
        mean: centre of the predicted distribution, in the table's units.
        std: half the width of the central 68.27 % interval, in the table's units; None without a spread. Where a value
            was compressed (asinh), the distribution is skewed in the table's units, and the bands describe it better.
        parameters: [n, V, P] of the distribution, P for each value, standardised like the model's input.
        likelihood: says what these parameters mean.
        bands: {share: (lower, upper)}, the edges of the central intervals that hold 0.68 and 0.95 of the distribution,
            in the table's units; empty without a spread.
        centre, width: the standardisation of each prediction by a model that standardises each series by itself: a
            standardised value · width + centre is in the table's units. None where the pipeline's preprocessor
            standardises.
    """

    distance: np.ndarray
    mean: np.ndarray
    std: np.ndarray | None
    parameters: Tensor
    likelihood: Likelihood
    bands: dict[float, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    centre: np.ndarray | None = None
    width: np.ndarray | None = None

    @property
    def scaled_mean(self) -> np.ndarray:
        """Mean of the predicted distribution of V values at n times, [n, V], standardised like the model's input."""
        return self.likelihood.mean(self.parameters).numpy()


def bands_of(
    likelihood: Likelihood,
    parameters: Float[Tensor, "n V P"],
    unscale: Callable[[np.ndarray], np.ndarray],
    shares: Iterable[float] = SHOWN_BANDS,
) -> dict[float, tuple[np.ndarray, np.ndarray]]:
    """Return {share: (lower, upper)}: the edges [n, V] of the central intervals that hold a share of each distribution.

    Args:
        likelihood: kind of distribution; one with a spread.
        parameters: P of the distribution of each of V values at n queries (times to predict at), standardised.
        unscale: turns standardised edges [n, V] into the table's units.
        shares: the probabilities that the intervals hold, such as 0.95.
    """
    edges = {share: likelihood.interval(parameters, share) for share in shares}
    return {share: (unscale(lower.numpy()), unscale(upper.numpy())) for share, (lower, upper) in edges.items()}


class _Interpolating(DatasetExamples):
    """Batches for `training.predict`: observations of series as visible tokens, queries as masked ones."""

    def __init__(self, dataset: SeriesDataset, queries: Queries, preprocessor: ObservationPreprocessor) -> None:
        """Store S series, their queries (times to predict at), and the preprocessor without its static columns.

        Set `lengths`, by which series are put into batches: for each series its number of tokens plus its number of
        queries, where at most `QUERIES_PER_PASS` queries are counted.
        """
        super().__init__(dataset, preprocessor.replace(static=()))
        self.queries, self.origins = queries, preprocessor.positions.origins(dataset)
        self.lengths = self.lengths + np.minimum(queries.lengths, QUERIES_PER_PASS)

    def batch(self, index: np.ndarray, epoch: int | None) -> Batch:
        """Return a batch of series: observations as inputs, queries (times to predict at) as masked tokens of value 0.

        `index` has numbers of series, from 0. All positions and values are standardised. `epoch` is not used.
        """
        queries, lengths = self.queries, self.queries.lengths[index]
        at = np.concatenate([np.arange(*queries.offsets[i : i + 2]) for i in index])
        times, padding = pad_rows(queries.times[at], lengths)
        channels, places = (
            None if column is None else pad_rows(column[at], lengths)[0]
            for column in (queries.channels, queries.positions)
        )
        origins = torch.tensor(self.origins[index])[:, None]
        positions = self.preprocessor.positions_of(times, channels, places, origins)
        if padding is not None:
            positions = positions.masked_fill(padding[..., None], 0.0)
        values = torch.zeros(*positions.shape[:2], self.preprocessor.features)
        masked = Tokens(values, positions, padding, check_values=False)
        visible = self.preprocessor.complete(self.preprocessor.tokens_of(self.dataset, index))
        step = rounding_step(visible.length + masked.length)
        return Batch(index, round_up(visible, step), round_up(masked, step))


def interpolate(
    pipeline: Pipeline,
    dataset: SeriesDataset,
    queries: Queries,
    on_step: Any = None,
) -> Interpolation:
    """Predict values of series at given times with a trained model, in the table's units.

    Predictions are in the order of the queries. They have deviations and error bands, unless the likelihood of the
    model is "point", and are calibrated if the pipeline has a calibration. If the queries have standard errors, the
    bands are for observations with these errors, else for the curve itself. Series longer than the model reads at once
    are cut into overlapping pieces; in an overlap the prediction passes smoothly from one to the next.

    Args:
        pipeline: has a MaskedAutoencoder of series and its preprocessor.
        dataset: S series, with the observations that the model sees.
        queries: n times, and channels if the model has some, at which to predict; some series may have none.
        on_step: called with (batches done, batches in all), for progress bars; None for none.

    Raises:
        InputError: a model that is not a MaskedAutoencoder of series; queries that `check_queries` refuses, or whose
            errors are for another number of values than the model predicts; series that the preprocessor's `check`
            refuses; predictions that are NaN or infinite.

    Warns:
        InputWarning: queries far beyond the times of training; more queries than a "joint" decoder answers well; series
            that look unlike those of training.
    """
    model, preprocessor = pipeline.require_autoencoder(), pipeline.require_series()
    check_queries(queries, dataset)
    windows, given = preprocessor.windows(dataset), queries
    distance = time_to_nearest(dataset, queries)
    dataset, (queries, blend) = windows.dataset, queries.of_windows(windows)
    preprocessor.check(dataset)
    if given.errors is not None and given.errors.shape[1] != (V := len(preprocessor.value_names)):
        raise InputError(
            f"the queries' standard errors have {given.errors.shape[1]} columns; give {V}, one per predicted value."
        )
    _warn_if_far(queries, dataset, preprocessor)
    _warn_if_joint(model, queries, dataset)
    has_queries = queries.lengths > 0
    if not has_queries.all():
        dataset, queries = dataset.select(has_queries), replace(queries, offsets=np.unique(queries.offsets))

    calibration = pipeline.calibration

    def read(model: torch.nn.Module, batch: Batch) -> list[np.ndarray]:
        """Predict a batch's queries: return an array [n, V, P + 1] for each of its series, with n queries of V values.

        With joined times, V counts the values of all channels. The first P numbers are the parameters of the
        distribution, calibrated if the pipeline has a calibration. The last says how far the band widens to the spread
        of the channel, from 0 to 1; it is 0 without calibration.
        """
        assert isinstance(model, MaskedAutoencoder) and batch.masked is not None
        parameters = predict_at(model, batch.inputs, batch.masked.positions, batch.masked.padding, chunk)
        # On the CPU, where the calibration is, and where every machine has float64.
        parameters, visible, positions = parameters.cpu().double(), batch.inputs.to("cpu"), batch.masked.positions.cpu()
        widens = parameters.new_zeros(*parameters.shape[:3], 1)
        if calibration is not None:
            around = surroundings(visible, positions, preprocessor, float(calibration.season))
            parameters = calibration(parameters, around, output_numbers(positions, preprocessor))
            widens = calibration.widens(around)[..., None]
        parameters = torch.cat([parameters, widens], -1).numpy()
        return [row[:n] for row, n in zip(parameters, queries.lengths[batch.series], strict=True)]

    channels = channel_index(queries)
    place, chunk = np.arange(len(channels)), QUERIES_PER_PASS
    if preprocessor.join_times:  # one query predicts all channels of a time
        queries, place = queries.distinct_times()
        chunk = max(1, chunk // preprocessor.features)
    rows = predict(model, _Interpolating(dataset, queries, preprocessor), read, inference(pipeline), on_step)
    scaled = np.concatenate(rows)
    bad = np.asarray(~np.isfinite(scaled).all(axis=(1, 2)))
    if bad.any():
        series = int(np.searchsorted(queries.offsets, int(bad.argmax()), side="right")) - 1
        raise InputError(
            f"{int(bad.sum()):,} of the model's {bad.size:,} predictions are NaN or infinite, first in series "
            f"{plain(dataset.ids[series])!r}. Either its weights are damaged, so load or fit it anew; or the values "
            "there lie far outside those of training, so check their unit."
        )
    if preprocessor.join_times:
        parts = scaled.reshape(len(scaled), -1, len(preprocessor.value_names), scaled.shape[-1])
        scaled = parts[place, channels]
    scaled, channels = blend.mixed(scaled), channel_index(given)
    scaler = preprocessor.values
    likelihood = model.likelihood if calibration is None else calibration.calibrated_likelihood
    parameters, widens = torch.from_numpy(scaled[..., :-1]), scaled[..., -1]
    # A prediction beyond all values of training is none, least of all where the way back to units is exponential.
    mean = scaler.bounded(likelihood.mean(parameters).numpy(), channels)
    parameters[..., 0] = torch.from_numpy(mean)
    centre = scaler.inverse(mean, channels)
    if not likelihood.has_spread:
        return Interpolation(distance, centre, None, parameters, likelihood)
    # Farther from any observation than was ever measured, nothing is known but the spread of the channel.
    variance = likelihood.std(parameters).numpy() ** 2
    extra = widens * np.maximum(scaler.spread_about(mean, channels) ** 2 - variance, 0.0)
    parameters = likelihood.widen(parameters, torch.from_numpy(extra).log(), normal=False)
    spare = 0.0
    if given.errors is not None:
        errors = torch.from_numpy(scaler.standard_errors(centre, given.errors, channels))
        parameters, spare = likelihood.widen(parameters, 2 * errors.log()), MOST_ERRORS * errors.numpy()

    def unscale(edge: np.ndarray) -> np.ndarray:
        """Return edges of bands, [n, V], in the table's units.

        Edges beyond the bounds of training values are moved to them; with errors, to three standard errors beyond.
        """
        near = scaler.bounded(edge, channels)
        return scaler.inverse(np.clip(edge, near - spare, near + spare), channels)

    bands = bands_of(likelihood, parameters, unscale, (*SHOWN_BANDS, DEVIATION))
    lower, upper = bands.pop(DEVIATION)
    return Interpolation(distance, centre, (upper - lower) / 2, parameters, likelihood, bands)


def interpolated(
    pipeline: Pipeline, dataset: SeriesDataset, X: Any, at: Any, return_std: bool = False, positions: Any = None
) -> Any:
    """Predict values at given times, in all channels; return arrays shaped as `Pipeline.interpolate` says.

    Args:
        pipeline: a trained one, or the shipped `any-series`.
        dataset: the series of `X`, already read.
        X: the series as the caller gave them; the shape of the result depends on their form.
        at: times for all series, or a list of arrays of times for each; None means those of the series.
        return_std: whether to return a pair of values and standard deviations.
        positions: coordinates at these times on further position axes, such as latitude; None without such axes.

    Raises:
        InputError: times or positions that cannot be used; `return_std` for a model that predicts no spread.
    """
    queries, layout = queries_from(dataset, X, at, positions)
    answer = pipeline.answer(dataset, queries)
    mean = shape_answers(answer.mean, queries, layout)
    if not return_std:
        return mean
    if answer.std is None:
        raise InputError(
            "the model predicts values without standard deviations (likelihood='point'); leave out return_std, or "
            "train with likelihood='gaussian'."
        )
    return mean, shape_answers(answer.std, queries, layout)


def standardise_truth(
    pipeline: Pipeline, dataset: SeriesDataset, answer: Interpolation, limits: bool = True
) -> np.ndarray:
    """Standardise n observed values like a model's predictions of them, so that the two can be compared.

    Args:
        pipeline: the one that predicted.
        dataset: the n observations.
        answer: the predictions of these observations, in their order.
        limits: whether to limit gross outliers as in the model's input; no effect with a model that standardises each
            series by itself.

    Returns:
        Float [n, V], a column for each of the V values that the model predicts.
    """
    if answer.centre is not None and answer.width is not None:
        values = np.asarray(dataset.values, np.float64)[:, : answer.mean.shape[1]]
        return (values - answer.centre) / answer.width
    known = pipeline.require_series()
    values, channels = dataset.with_values(known.value_names).values, channel_index(dataset)
    return known.values.transform(values, channels) if limits else known.values.unbounded(values, channels)


def time_to_nearest(dataset: SeriesDataset, queries: Queries) -> np.ndarray:
    """Return the time from each of n queries to the nearest observation of its series and channel, float64 [n].

    Times are in the table's unit; infinite where the series has no observation of that channel. Only time counts, not
    further position axes, and an observation counts even if some of its values are missing.
    """
    channels = len(dataset.channel_names or (None,))
    times = np.concatenate([dataset.times, queries.times])
    series = np.arange(len(dataset))
    owner = np.concatenate([np.repeat(series, dataset.lengths), np.repeat(series, queries.lengths)])
    group = owner * channels + np.concatenate([channel_index(dataset), channel_index(queries)])
    order = np.lexsort((times, group))
    times, group, seen = times[order], group[order], order < len(dataset.times)
    place, nearest = np.arange(len(order)), np.full(len(order), np.inf)
    before = np.maximum.accumulate(np.where(seen, place, -1))
    after = np.minimum.accumulate(np.where(seen, place, len(order))[::-1])[::-1]
    for neighbour in (before, after):
        inside = neighbour.clip(0, len(order) - 1)
        there = (inside == neighbour) & (group[inside] == group)
        nearest = np.where(there, np.minimum(nearest, np.abs(times - times[inside])), nearest)
    answer = np.empty(len(order))
    answer[order] = nearest
    return answer[len(dataset.times) :]


def _warn_if_joint(model: MaskedAutoencoder, queries: Queries, dataset: SeriesDataset) -> None:
    """Warn (InputWarning) if a series has so many queries (times to predict at) that they influence each other much.

    They do only in a model with decoder_attention="joint", whose queries attend to one another. The limit is 4 queries
    (`CURVE`) per observation of the series; the message names the series with the most per observation.
    """
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
    """Warn (InputWarning) if a query is so far from the origin of its series that the prediction is extrapolated.

    The origin is the time from which the preprocessor counts the times of a series. "Far" is beyond 1.5 times the
    largest such time of the training set plus one unit of position. The message names the farthest query.
    """
    positions = preprocessor.positions
    at = np.abs(queries.times - np.repeat(positions.origins(dataset), queries.lengths)) / positions.unit
    if at.max() > 1.5 * positions.reach + 1.0:
        series = int(np.searchsorted(queries.offsets, int(at.argmax()), side="right")) - 1
        when, days = f"{queries.times[at.argmax()]:.10g}", "" if dataset.time_unit is None else f" {dataset.time_unit}s"
        if dataset.time_zone is not None:
            when = str(as_dates(queries.times[[at.argmax()]], dataset.time_zone)[0].as_py())
        warnings.warn(
            f"series {plain(dataset.ids[series])!r} is to be predicted at time {when}, "
            f"{at.max() * positions.unit:.6g}{days} from where its times begin; training reached "
            f"{positions.reach * positions.unit:.6g}. Values there are extrapolations; do not rely on them.",
            InputWarning,
            stacklevel=3,
        )
