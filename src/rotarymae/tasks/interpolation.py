"""Values at any times, in the table's units: where to ask (`Queries`), and the answers with their bands."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from rotarymae.batch import Batch
from rotarymae.checkpoints import ModelDirectory
from rotarymae.errors import InputError, InputWarning, did_you_mean, listed
from rotarymae.model import MaskedAutoencoder
from rotarymae.series import Preprocessor, SeriesDataset, TableLayout, Windows, assemble, plain, positions_of, tables
from rotarymae.tasks.bands import HALF_WIDTHS, SHOWN
from rotarymae.tasks.predict import INFERENCE
from rotarymae.tokens import Tokens, pad_rows
from rotarymae.training import TrainConfig, predict

MAX_QUERIES = 10**8  # in one call: their answers take some 10 GB
CHUNK = 4096  # queries per pass of the decoder
# Pre-training hides at most some four observations for each that it shows: who asks for more wants a curve.
CURVE = 4
# Outside a series' span bands widen over this share of it, chosen on validation series of the recipe synthetic and of
# PLAsTiCC: of 0.25 and 0.5 the one whose 95 % bands held 95 % or more up to half a span beyond the last observation.
WIDENS_OVER = 0.25


class Predicted(NamedTuple):
    """Standardised predictions at queries [B, M, V]; `std` is None for a model without a likelihood."""

    mean: Tensor
    std: Tensor | None


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
    means, spreads, context = [], [], model.context(visible)
    for start in range(0, positions.shape[1], chunk or positions.shape[1]):
        part = slice(start, start + (chunk or positions.shape[1]))
        mean, log_variance = model.decode(context, positions[:, part], None if padding is None else padding[:, part])
        means.append(mean)
        if log_variance is not None:
            spreads.append((0.5 * log_variance).exp())
    return Predicted(torch.cat(means, 1), torch.cat(spreads, 1) if spreads else None)


@dataclass(frozen=True, eq=False)
class Interpolation:
    """Predictions at n queries, all [n, V].

    Attributes:
        extrapolated: [n] True before the first or after the last of a series' observations. There bands widen: over a
            quarter of the series' span they grow to no less than the spread of the training values about the answer.
        mean: centre of the predicted distribution, in the table's units.
        std: half the distance between one deviation below and one above; None without a likelihood. Where a value
            was compressed (asinh), the distribution is skewed in its own unit and the bands say more.
        scaled_mean, scaled_std: the normal distribution itself, standardised like the model's input.
        bands: share → (lower, upper) edges of the central interval that holds it; empty without a likelihood.
    """

    extrapolated: np.ndarray
    mean: np.ndarray
    std: np.ndarray | None
    scaled_mean: np.ndarray
    scaled_std: np.ndarray | None
    bands: dict[float, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    def reordered(self, order: np.ndarray | None) -> Interpolation:
        """The same queries in another order; None leaves them as they are."""
        if order is None:
            return self
        arrays = (self.mean, self.std, self.scaled_mean, self.scaled_std)
        taken = [None if array is None else array[order] for array in arrays]
        bands = {share: (lower[order], upper[order]) for share, (lower, upper) in self.bands.items()}
        return Interpolation(self.extrapolated[order], *taken, bands)  # pyright: ignore


@dataclass(frozen=True)
class Queries:
    """Where to interpolate: flat times and channels (from 0, or None) and offsets [S + 1], one run for each series.

    `errors` [n, V], in the table's units, ask for what would be observed with these standard errors: bands are wider by
    them than those of the curve.
    """

    times: np.ndarray
    channels: np.ndarray | None
    offsets: np.ndarray
    errors: np.ndarray | None = None

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)

    def distinct_times(self) -> tuple[Queries, np.ndarray]:
        """Each time of a series once, without channels, and which of them each query asks for [n]."""
        series = np.repeat(np.arange(len(self.lengths)), self.lengths)
        order = np.lexsort((self.times, series))
        times, owner = self.times[order], series[order]
        opens = np.append(True, (np.diff(times) != 0) | (np.diff(owner) != 0))
        place = np.empty(len(order), np.int64)
        place[order] = np.cumsum(opens) - 1
        offsets = np.searchsorted(owner[opens], np.arange(len(self.offsets)))
        return Queries(times[opens], None, offsets), place

    def of_windows(self, windows: Windows) -> tuple[Queries, np.ndarray]:
        """The queries sorted by window, and the order that sorts answers back."""
        window = windows.deepest(self.times, self.lengths)
        order = np.argsort(window, kind="stable")
        offsets = np.searchsorted(window[order], np.arange(len(windows.series) + 1))
        channels = None if self.channels is None else self.channels[order]
        errors = None if self.errors is None else self.errors[order]
        return Queries(self.times[order], channels, offsets, errors), np.argsort(order, kind="stable")

    @classmethod
    def cross(
        cls, dataset: SeriesDataset, times: Sequence[np.ndarray], channels: Sequence[np.ndarray] | None = None
    ) -> Queries:
        """All of a series' times in its first channel, then all of them in its next.

        Args:
            times: of each series [q_i].
            channels: of each series, counted from 0; all channels of the data set when not given.
        """
        if dataset.channel_names is None:
            counts, number = np.ones(len(times), np.int64), None
        else:
            channels = [np.arange(len(dataset.channel_names))] * len(times) if channels is None else channels
            counts = np.array([len(own) for own in channels])
            number = np.concatenate([np.repeat(own, len(at)) for own, at in zip(channels, times, strict=True)])
        offsets = np.cumsum([0, *(counts * [len(at) for at in times])])
        flat = [np.tile(np.asarray(at, np.float64), count) for at, count in zip(times, counts, strict=True)]
        return cls(np.concatenate(flat), number, offsets)


class _Interpolating:
    """Examples whose inputs are a series' observations and whose masked tokens are its queries."""

    def __init__(self, dataset: SeriesDataset, queries: Queries, preprocessor: Preprocessor) -> None:
        self.dataset, self.queries, self.preprocessor = dataset, queries, preprocessor
        self.origins = preprocessor.positions.origins(dataset)
        self.lengths = preprocessor.lengths(dataset) + np.minimum(queries.lengths, CHUNK)

    def identity(self) -> dict[str, Any]:
        return {"series": self.dataset.fingerprint()}

    def names(self, index: Any) -> list[str]:
        return [str(name) for name in self.dataset.ids[np.asarray(index, np.int64)]]

    def batch(self, index: np.ndarray, epoch: int | None) -> Batch:
        queries, lengths = self.queries, self.queries.lengths[index]
        starts = queries.offsets[index] - (np.cumsum(lengths) - lengths)
        at = np.repeat(starts, lengths) + np.arange(lengths.sum())
        channels = np.zeros(len(at), int) if queries.channels is None else queries.channels[at]
        flat = positions_of(self.preprocessor, queries.times[at], channels, self.origins[index], lengths)
        positions, padding = pad_rows(flat.astype(np.float32), lengths)
        values = torch.zeros(*positions.shape[:2], self.preprocessor.features)
        masked = Tokens(values, positions, padding, check_values=False)
        return Batch(index, assemble(self.dataset, self.preprocessor, index), masked)


def interpolate(
    directory: ModelDirectory,
    dataset: SeriesDataset,
    queries: Queries,
    config: TrainConfig | None = None,
    on_step: Any = None,
    chunk: int | None = CHUNK,
) -> Interpolation:
    """The values a pre-trained model expects at any times, in the table's units; see `predict_at`.

    Raises:
        InputError: a model that is not a MaskedAutoencoder; queries for another number of series, with NaN, or of a
            channel that is none.
    """
    model = directory.model
    if not isinstance(model, MaskedAutoencoder):
        raise InputError(
            f"the model is a {type(model).__name__}; interpolation needs the pre-trained MaskedAutoencoder."
        )
    preprocessor = directory.of_series()
    _check_queries(queries, dataset, preprocessor)
    windows, back = preprocessor.windows(dataset), None
    if len(windows.series) > len(dataset):  # each query is answered by the window in which it lies deepest
        dataset, (queries, back) = windows.dataset, queries.of_windows(windows)
    preprocessor.check(dataset)
    _warn_if_far(queries, dataset, preprocessor)
    _warn_if_joint(model, queries, dataset)
    asked = queries.lengths > 0
    if not asked.all():
        dataset, queries = dataset.select(asked), replace(queries, offsets=np.unique(queries.offsets))

    def read(model: torch.nn.Module, batch: Batch) -> list[np.ndarray]:
        assert isinstance(model, MaskedAutoencoder) and batch.masked is not None
        found = predict_at(model, batch.inputs, batch.masked.positions, batch.masked.padding, chunk)
        both = torch.stack([part for part in found if part is not None], 1).cpu().double().numpy()
        return [row[:, :n] for row, n in zip(both, queries.lengths[batch.series], strict=True)]

    channels = np.zeros(len(queries.times), int) if queries.channels is None else queries.channels
    beyond, place = _spans_beyond(queries, dataset), np.arange(len(channels))
    if preprocessor.join_times:  # one query predicts all channels of a time
        queries, place = queries.distinct_times()
        chunk = chunk and max(1, chunk // preprocessor.features)
    rows = predict(model, _Interpolating(dataset, queries, preprocessor), read, config or INFERENCE, on_step)
    scaled = np.concatenate(rows, axis=1)
    bad = np.asarray(~np.isfinite(scaled).all(axis=(0, 2)))
    if bad.any():
        series = int(np.searchsorted(queries.offsets, int(bad.argmax()), side="right")) - 1
        raise InputError(
            f"the model's answer to {int(bad.sum()):,} of {bad.size:,} queries is NaN or infinite, first in series "
            f"{plain(dataset.ids[series])!r}; its weights are damaged, or the values there lie far outside the "
            "training range."
        )
    if preprocessor.join_times:
        parts = scaled.reshape(*scaled.shape[:2], -1, len(preprocessor.value_names))
        scaled = parts[:, place, channels]
    scaler, mean = preprocessor.values, scaled[0]
    if not model.config.predicts_variance:
        return Interpolation(beyond > 0, scaler.inverse(mean, channels), None, mean, None).reordered(back)
    # What training never asked for, the model answers with the certainty of what it was asked for.
    share = np.minimum(beyond / WIDENS_OVER, 1.0)[:, None]
    least = scaler.spread_about(mean, channels)
    std = np.sqrt(scaled[1] ** 2 + share * np.maximum(least**2 - scaled[1] ** 2, 0))

    if queries.errors is not None:
        std = np.hypot(std, scaler.standard_errors(scaler.inverse(mean, channels), queries.errors, channels))

    def at(deviations: float) -> np.ndarray:
        return scaler.inverse(mean + deviations * std, channels)

    bands = {share: (at(-HALF_WIDTHS[share]), at(HALF_WIDTHS[share])) for share in SHOWN}
    return Interpolation(beyond > 0, at(0), (at(1) - at(-1)) / 2, mean, std, bands).reordered(back)


def _spans_beyond(queries: Queries, dataset: SeriesDataset) -> np.ndarray:
    """How far each query lies before its series' first or after its last observation [n], in spans of the series; 0
    between them, infinity outside of a series of one time."""
    first = np.repeat(dataset.times[dataset.offsets[:-1]], queries.lengths)
    last = np.repeat(dataset.times[dataset.offsets[1:] - 1], queries.lengths)
    away = np.maximum(np.maximum(first - queries.times, queries.times - last), 0.0)
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


def _check_queries(queries: Queries, dataset: SeriesDataset, preprocessor: Preprocessor) -> None:
    if len(queries.offsets) != len(dataset) + 1 or queries.offsets[-1] != len(queries.times):
        raise InputError(f"queries are for {len(queries.offsets) - 1} series; the data set has {len(dataset)}.")
    if len(queries.times) == 0:
        raise InputError("there are no times to interpolate at.")
    if not np.isfinite(queries.times).all():
        raise InputError(f"query {int((~np.isfinite(queries.times)).argmax())} has the time NaN or infinity.")
    if (queries.channels is None) != (preprocessor.channel_names is None):
        raise InputError("give queries a channel when the table has channels, and none when it has not.")
    if preprocessor.channel_names is not None and queries.channels is not None:
        known = len(preprocessor.channel_names)
        if ((queries.channels < 0) | (queries.channels >= known)).any():
            raise InputError(f"queries ask for channel {int(queries.channels.max())}; there are 0 to {known - 1}.")


def _warn_if_far(queries: Queries, dataset: SeriesDataset, preprocessor: Preprocessor) -> None:
    positions = preprocessor.positions
    at = np.abs(positions.times(queries.times, positions.origins(dataset), queries.lengths))
    if at.max() > 1.5 * positions.reach + 1.0:
        series = int(np.searchsorted(queries.offsets, int(at.argmax()), side="right")) - 1
        warnings.warn(
            f"series {plain(dataset.ids[series])!r} is asked at time {queries.times[at.argmax()]:.10g}, "
            f"{at.max() * positions.unit:.6g} from its origin; training reached "
            f"{positions.reach * positions.unit:.6g}. Values there are extrapolations.",
            InputWarning,
            stacklevel=3,
        )


def grid(dataset: SeriesDataset, points: int) -> Queries:
    """`points` even times from each series' first to its last observation, for every channel of the data set.

    Raises:
        InputError: less than one point; more than memory could hold.
    """
    if points < 1:
        raise InputError(f"points is {points}; wanted at least 1.")
    _check_size(dataset, points)
    first, last = dataset.times[dataset.offsets[:-1]], dataset.times[dataset.offsets[1:] - 1]
    return Queries.cross(dataset, list(np.linspace(first, last, points, axis=1)))


def curves(visible: SeriesDataset, hidden: SeriesDataset, points: int) -> Queries:
    """`points` even times over all observations of each series, seen or hidden, in the channels that it has."""
    times, channels = [], []
    for seen, left in zip(visible, hidden, strict=True):
        both = np.concatenate([seen.times, left.times])
        times.append(np.linspace(both.min(), both.max(), points))
        if seen.channels is not None and left.channels is not None:
            channels.append(np.union1d(seen.channels, left.channels))
    return Queries.cross(visible, times, channels)


def queries_at(dataset: SeriesDataset, times: np.ndarray) -> Queries:
    """The same times for every series, and for every channel when there are channels."""
    _check_size(dataset, len(times))
    return Queries.cross(dataset, [times] * len(dataset))


def _check_size(dataset: SeriesDataset, times: int) -> None:
    """Refuses, before any work, more queries than memory could hold."""
    channels = 1 if dataset.channel_names is None else len(dataset.channel_names)
    queries = times * len(dataset) * channels
    if queries > MAX_QUERIES:
        # Per query its series, time and channel, and per value a mean, a deviation and the edges of two bands, twice.
        size = queries * 8 * (3 + 2 * 6 * len(dataset.value_names)) / 1e9
        raise InputError(
            f"{times:,} times for {len(dataset):,} series in {channels:,} channels are {queries:,} points, whose "
            f"answers would take {size:,.0f} GB of memory; ask for at most {MAX_QUERIES:,} points at a time."
        )


@dataclass(frozen=True, eq=False)
class QueryTable:
    """Where some series of a table are asked, read from another table with a row per time.

    Attributes:
        name: of that table, for messages.
        ids: the distinct ids, in order of first appearance.
        series: int [n], which of them each row asks.
        times: float64 [n].
        channels: labels [n]; None where every row asks for all channels.
        errors: [n, V] standard errors of what would be observed; None where the curve is asked for.
    """

    name: str
    ids: list[Any]
    series: np.ndarray
    times: np.ndarray
    channels: list[Any] | None
    errors: np.ndarray | None = None

    @classmethod
    def read(cls, path: Path, layout: TableLayout) -> QueryTable:
        """From a file; arguments as `of`, which also says what is raised."""
        source = layout.open(path)
        channel = layout.channel or "channel"
        labels = [name for name in (layout.id, channel) if name in source.column_names()]
        return cls.of(source.read(None, labels), layout, str(path))

    @classmethod
    def of(cls, table: pa.Table, layout: TableLayout, name: str = "the table of times") -> QueryTable:
        """From a table's columns of ids, times and channels.

        Args:
            layout: the columns' names, and how times and missing cells are written. Without a column of channels that
                is the column "channel", if there is one; if not, every row asks for all channels. Where the table has
                the columns of errors, it asks for what would be observed with these errors.

        Raises:
            InputError: a missing column or cell, a time that is not finite; no rows.
        """
        if not len(table):
            raise InputError(f"{name} has no rows; there are no times to interpolate at.")
        id, time, channel = layout.id, layout.time, layout.channel
        if channel is None and "channel" in table.column_names:
            channel = "channel"
        with_errors = layout.errors if set(layout.errors) <= set(table.column_names) else ()
        wanted = [id, time] + ([channel] if channel else [])
        for column in (*wanted, *with_errors):
            if column not in table.column_names:
                near = did_you_mean(column, table.column_names)
                raise InputError(f"{name} has no column {column!r}; it needs {listed(wanted)}.{near}")
            if table[column].null_count:
                count = table[column].null_count
                raise InputError(f"{name}: column {column!r} has {count} empty cells; every query needs one.")
        series, ids = tables.encode(tables.label_array(tables.to_arrow(table[id]), id))
        times, _ = tables.times(tables.to_arrow(table[time]), time)
        tables.refuse_bad_times(times, time, ids[series])
        errors = [tables.numbers(tables.to_arrow(table[column]), column) for column in with_errors]
        channels = table[channel].to_pylist() if channel else None
        stacked = np.stack(errors, axis=1) if errors else None
        return cls(name, ids.tolist(), series, np.asarray(times, np.float64), channels, stacked)

    def queries(self, dataset: SeriesDataset) -> Queries:
        """Those of the data set's series, in its order.

        Raises:
            InputError: an unknown channel.
        """
        rank = {plain(name): i for i, name in enumerate(dataset.ids)}
        asked = np.array([rank.get(name, -1) for name in self.ids], np.int64)[self.series]
        order = np.argsort(asked, kind="stable")[(asked < 0).sum() :]
        offsets, times = np.searchsorted(asked[order], np.arange(len(dataset) + 1)), self.times[order]
        errors = None if self.errors is None else self.errors[order]
        names = dataset.channel_names
        if names is None:
            return Queries(times, None, offsets, errors)
        if self.channels is None:
            every = len(names)
            errors = None if errors is None else np.repeat(errors, every, axis=0)
            return Queries(np.repeat(times, every), np.tile(np.arange(every), len(times)), offsets * every, errors)
        known = {plain(name): i for i, name in enumerate(names)}
        strange = [name for name in dict.fromkeys(self.channels) if name not in known]
        if strange:
            raise InputError(
                f"{self.name} asks for channel {strange[0]!r}; the model knows {', '.join(map(str, known))}."
            )
        number = np.array([known[name] for name in self.channels], np.int64)
        return Queries(times, number[order], offsets, errors)

    def refuse_others(self, ids: Iterable[Any]) -> None:
        """Refuses to ask series that are not among the ids.

        Raises:
            InputError: naming the first.
        """
        there = set(ids)
        unknown = [name for name in self.ids if name not in there]
        if unknown:
            raise InputError(
                f"{self.name} asks for series {unknown[0]!r}, which the table of observations does not have."
            )


def as_queries(dataset: SeriesDataset, preprocessor: Preprocessor | None = None) -> Queries:
    """The times and channels of a data set's own observations, and their errors, if the preprocessor knows of such."""
    errors = None
    if preprocessor is not None and preprocessor.errors:
        errors = np.asarray(dataset.with_values(preprocessor.errors).values)
    return Queries(np.asarray(dataset.times), dataset.channels, np.asarray(dataset.offsets), errors)
