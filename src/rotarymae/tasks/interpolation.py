"""Values at any times, in the table's units: where to ask (`Queries`), and the answers with their bands."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from rotarymae.batch import Batch
from rotarymae.checkpoints import ModelDirectory
from rotarymae.errors import InputError, InputWarning, did_you_mean
from rotarymae.model import MaskedAutoencoder
from rotarymae.series import Preprocessor, SeriesDataset, assemble, place, plain, read_table, tables
from rotarymae.tasks.predict import INFERENCE
from rotarymae.tokens import Tokens
from rotarymae.training import TrainConfig, predict


class Interpolation(NamedTuple):
    """Predictions at queries, in the table's units, all [n, V]; `std` and the bands are None without a likelihood.

    `mean` is the centre of the predicted distribution. Bands hold 68.3 and 95.4 % of it. `std` is half the width of
    the 68 % band: where a value was compressed, the distribution is skewed in its own unit and the bands say more.
    """

    mean: np.ndarray
    std: np.ndarray | None
    lower68: np.ndarray | None
    upper68: np.ndarray | None
    lower95: np.ndarray | None
    upper95: np.ndarray | None


@dataclass(frozen=True)
class Queries:
    """Where to interpolate: flat times and channels (from 0, or None) and offsets [S + 1], one run for each series."""

    times: np.ndarray
    channels: np.ndarray | None
    offsets: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)


class _Interpolating:
    """Examples whose inputs are a series' observations and whose masked tokens are its queries."""

    def __init__(self, dataset: SeriesDataset, queries: Queries, preprocessor: Preprocessor) -> None:
        self.dataset, self.queries, self.preprocessor = dataset, queries, preprocessor
        self.origins = preprocessor.positions.origins(dataset)
        self.lengths = np.asarray(dataset.lengths) + queries.lengths
        self.blocks = dataset.blocks

    def fingerprint(self) -> str:
        return self.dataset.fingerprint()

    def batch(self, index: np.ndarray, epoch: int | None) -> Batch:
        inputs = assemble(self.dataset, self.preprocessor, index)
        rows = []
        for i in index:
            at = slice(int(self.queries.offsets[i]), int(self.queries.offsets[i + 1]))
            times = self.queries.times[at]
            channels = np.zeros(len(times), int) if self.queries.channels is None else self.queries.channels[at]
            rows.append(place(self.preprocessor, times, channels, self.origins[[i]], np.array([len(times)])))
        longest = max(1, max(len(row) for row in rows))
        positions = np.zeros((len(rows), longest, self.preprocessor.axes), np.float32)
        padding = np.ones((len(rows), longest), bool)
        for i, row in enumerate(rows):
            positions[i, : len(row)], padding[i, : len(row)] = row, False
        values = torch.zeros(len(rows), longest, self.preprocessor.features)
        masked = Tokens(
            values,
            torch.from_numpy(positions),
            torch.from_numpy(padding) if padding.any() else None,
            check_values=False,
        )
        return Batch(index, inputs, masked)


def interpolate(
    directory: ModelDirectory,
    dataset: SeriesDataset,
    queries: Queries,
    config: TrainConfig | None = None,
    on_step: Any = None,
) -> Interpolation:
    """The values a pre-trained model expects at any times, in the table's units.

    The queries of a series see each other's positions, as hidden tokens do in pre-training. So an answer depends a
    little on what else is asked, and bands tend to be wider where a query stands alone.

    Raises:
        InputError: a model that is not a MaskedAutoencoder; queries for another number of series, with NaN, or of a
            channel that is none.
    """
    model, preprocessor = directory.model, directory.preprocessor
    if not isinstance(model, MaskedAutoencoder) or preprocessor is None:
        raise InputError(
            f"the model is a {type(model).__name__}; interpolation needs the pre-trained MaskedAutoencoder."
        )
    _check_queries(queries, dataset, preprocessor)
    preprocessor.check(dataset)
    _warn_if_far(queries, dataset, preprocessor)
    gaussian = model.config.likelihood == "gaussian"

    def read(model: torch.nn.Module, batch: Batch) -> list[np.ndarray]:
        assert isinstance(model, MaskedAutoencoder) and batch.masked is not None
        out = model.predict(batch.inputs, batch.masked)
        spread = torch.zeros_like(out.predicted) if out.log_variance is None else (0.5 * out.log_variance).exp()
        both = torch.stack([out.predicted, spread], dim=1).double().cpu().numpy()
        return [row[:, :n] for row, n in zip(both, queries.lengths[batch.series], strict=True)]

    rows = predict(model, _Interpolating(dataset, queries, preprocessor), read, config or INFERENCE, on_step)
    scaled = np.concatenate(rows, axis=1)
    channels = np.zeros(len(queries.times), int) if queries.channels is None else queries.channels

    def at(sigmas: float) -> np.ndarray:
        return preprocessor.values.inverse(scaled[0] + sigmas * scaled[1], channels)

    if not gaussian:
        return Interpolation(at(0), None, None, None, None, None)
    low, high = at(-1), at(1)
    return Interpolation(at(0), (high - low) / 2, low, high, at(-2), at(2))


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
            f"series {dataset.ids[series].item()!r} is asked at time {queries.times[at.argmax()]:.10g}, "
            f"{at.max() * positions.unit:.6g} from its origin; training reached "
            f"{positions.reach * positions.unit:.6g}. Values there are extrapolations.",
            InputWarning,
            stacklevel=3,
        )


def grid(dataset: SeriesDataset, points: int) -> Queries:
    """`points` even times from each series' first to its last observation, for every channel it has."""
    if points < 1:
        raise InputError(f"points is {points}; wanted at least 1.")
    channels = 1 if dataset.channel_names is None else len(dataset.channel_names)
    first, last = dataset.times[dataset.offsets[:-1]], dataset.times[dataset.offsets[1:] - 1]
    lines = np.linspace(first, last, points, axis=1)
    times = np.repeat(lines[:, None, :], channels, axis=1).reshape(-1)
    number = None if dataset.channel_names is None else np.tile(np.repeat(np.arange(channels), points), len(dataset))
    return Queries(times, number, np.arange(len(dataset) + 1) * points * channels)


def queries_at(dataset: SeriesDataset, times: np.ndarray) -> Queries:
    """The same times for every series, and for every channel when there are channels."""
    channels = 1 if dataset.channel_names is None else len(dataset.channel_names)
    each = np.tile(np.asarray(times, np.float64), channels)
    number = (
        None if dataset.channel_names is None else np.tile(np.repeat(np.arange(channels), len(times)), len(dataset))
    )
    return Queries(np.tile(each, len(dataset)), number, np.arange(len(dataset) + 1) * len(each))


def queries_from_table(dataset: SeriesDataset, path: str | Path, id: str, time: str, channel: str | None) -> Queries:
    """Queries from a table of ids, times and channels; the series are asked in the data set's order.

    Raises:
        InputError: an id the data set has not, a missing column or cell, an unknown channel.
    """
    table = read_table(path)
    wanted = [id, time] + ([channel] if channel else [])
    for name in wanted:
        if name not in table.column_names:
            raise InputError(
                f"{path} has no column {name!r}{did_you_mean(name, table.column_names)}; it needs {wanted}."
            )
        if table[name].null_count:
            raise InputError(
                f"{path}: column {name!r} has {table[name].null_count} empty cells; every query needs one."
            )
    places = {plain(name): i for i, name in enumerate(dataset.ids)}
    asked = table[id].to_pylist()
    unknown = [name for name in asked if name not in places]
    if unknown:
        raise InputError(f"{path} asks for series {unknown[0]!r}, which the table of observations does not have.")
    series = np.array([places[name] for name in asked], np.int64)
    at, _ = tables.times(tables.arrow_column(tables.as_frame(table), time), time)
    order = np.argsort(series, kind="stable")
    number = None
    if dataset.channel_names is not None:
        if not channel:
            raise InputError(f"{path}: the model has channels; name their column by --channel.")
        known = {plain(name): i for i, name in enumerate(dataset.channel_names)}
        names = table[channel].to_pylist()
        strange = [name for name in names if name not in known]
        if strange:
            raise InputError(f"{path} asks for channel {strange[0]!r}; the model knows {', '.join(map(str, known))}.")
        number = np.array([known[name] for name in names], np.int64)[order]
    offsets = np.searchsorted(series[order], np.arange(len(dataset) + 1))
    return Queries(np.asarray(at, np.float64)[order], number, offsets)


def hide(dataset: SeriesDataset, share: float, seed: int) -> tuple[SeriesDataset, SeriesDataset, np.ndarray]:
    """(visible, hidden, hidden observations [n] of the data set): a random share of each series' observations.

    Series with one observation keep it and are in neither part's way: `hidden` has only series that hide something.
    """
    if not 0 < share < 1:
        raise InputError(f"share {share}; wanted more than 0 and less than 1.")
    uniform = np.random.default_rng(seed).random(len(dataset.times))
    series = np.repeat(np.arange(len(dataset)), dataset.lengths)
    order = np.lexsort((uniform, series))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(dataset.offsets[:-1], dataset.lengths)
    hidden = rank < np.repeat(np.minimum(np.ceil(dataset.lengths * share), dataset.lengths - 1), dataset.lengths)
    with_some = np.unique(series[hidden])
    inside = np.isin(series, with_some)
    part = dataset.select(with_some)
    return part.mask_observations(~hidden[inside]), part.mask_observations(hidden[inside]), hidden


def as_queries(dataset: SeriesDataset) -> Queries:
    """The times and channels of a data set's own observations."""
    return Queries(np.asarray(dataset.times), dataset.channels, np.asarray(dataset.offsets))
