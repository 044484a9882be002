"""Hiding a part of every series, for a model that is to predict it."""

from __future__ import annotations

from typing import Literal

import numpy as np

from rotarymae.errors import InputError, choose
from rotarymae.series.dataset import SeriesDataset


def known_at(dataset: SeriesDataset, when: np.ndarray) -> SeriesDataset:
    """Return the series without their observations after a time of each, `when` [S], in the unit of the data set.

    Raises InputError for a series without an observation until then.
    """
    return dataset.mask_observations(dataset.times <= np.repeat(when, dataset.lengths))


def with_early(dataset: SeriesDataset, copies: int, seed: int = 0) -> SeriesDataset:
    """Return the S series, followed by `copies` · S copies of them, each cut after the time of a random observation."""
    every = dataset.select(np.tile(np.arange(len(dataset)), copies + 1))
    share = np.random.default_rng(seed).random(len(every))
    last = (share * every.lengths).astype(np.int64)
    last[: len(dataset)] = dataset.lengths - 1
    return known_at(every, every.times[every.offsets[:-1] + last])


def with_thinned(dataset: SeriesDataset, copies: int, seed: int = 0) -> SeriesDataset:
    """Return the S series, followed by `copies` · S copies of them, which lack some observations.

    A copy keeps its first observation, and each other one with a probability that is drawn for the copy, from 0.3 to 1.
    """
    every = dataset.select(np.tile(np.arange(len(dataset)), copies + 1))
    draw = np.random.default_rng(seed)
    share = draw.uniform(0.3, 1, len(every))
    share[: len(dataset)] = 1
    keep = draw.random(len(every.times)) < np.repeat(share, every.lengths)
    keep[every.offsets[:-1]] = True
    return every.mask_observations(keep)


def hide(
    dataset: SeriesDataset,
    share: float,
    seed: int = 0,
    by: Literal["observation", "stretch", "time", "latest"] = "observation",
) -> tuple[SeriesDataset, SeriesDataset, np.ndarray]:
    """Hide a share of each series; return (visible series, hidden series, mask of the hidden observations).

    Args:
        dataset: the series.
        share: of each series' observations or times, more than 0 and less than 1; rounded up, but one stays visible.
        seed: of the draw.
        by: "observation" draws single observations, "stretch" consecutive ones, whose number is drawn per series,
            log-uniformly up to all that is hidden, "time" draws times with all that was observed then, and "latest"
            takes the last of these times.

    Returns:
        Two data sets of the same series, and a mask [n] over the observations of `dataset`. Series with nothing to
        hide, because they have one observation or time, are in neither data set and not in the mask.

    Raises:
        InputError: a share out of its range; another `by`; no series has anything to hide.
    """
    if not 0 < share < 1:
        raise InputError(f"share is {share}; wanted a share to hide of more than 0 and less than 1.")
    choose("by", by, ("observation", "stretch", "time", "latest"))
    series = np.repeat(np.arange(len(dataset)), dataset.lengths)
    unit = np.arange(len(series))
    if by in ("time", "latest"):
        first = np.ones(len(series), bool)
        first[1:] = (series[1:] != series[:-1]) | (np.diff(dataset.times) != 0)
        unit = np.cumsum(first) - 1
    owner = series[np.searchsorted(unit, np.arange(unit[-1] + 1))]  # the series of each unit
    count = np.bincount(owner)
    random = np.random.default_rng(seed)
    draw = np.arange(len(owner)) if by == "latest" else random.random(len(owner))
    if by == "stretch":
        most = np.ceil(count * share)
        length = np.floor((most + 1) ** random.random(len(count))).astype(np.int64)
        first = np.cumsum(count) - count
        place = np.arange(len(owner)) - first[owner] + (random.random(len(count)) * length).astype(np.int64)[owner]
        draw = draw[first[owner] + np.minimum(place // length[owner], count[owner] - 1)]
    visible = np.maximum(count - np.ceil(count * share).astype(np.int64), 1)
    hidden = (rank_within(owner, draw) >= visible[owner])[unit]
    usable = np.unique(series[hidden])
    part, inside = dataset.select(usable), np.isin(series, usable)
    return part.mask_observations(~hidden[inside]), part.mask_observations(hidden[inside]), hidden


def rank_within(group: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Return the rank of each of n entries in its group, int [n] from 0, by ascending keys; equal ones stay in order.

    Args:
        group: int [n], numbers from 0.
        key: [n].
    """
    count, rank = np.bincount(group), np.empty(len(group), np.int64)
    rank[np.lexsort((key, group))] = np.arange(len(group)) - np.repeat(np.cumsum(count) - count, count)
    return rank
