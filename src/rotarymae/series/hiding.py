"""Hiding a part of every series, for a model that is to predict it."""

from __future__ import annotations

from typing import Literal

import numpy as np

from rotarymae.errors import InputError, choose
from rotarymae.series.dataset import SeriesDataset


def known_at(dataset: SeriesDataset, when: np.ndarray) -> SeriesDataset:
    """Keep only the observations up to a given time of each series, as if nothing later were known.

    Args:
        when: [S], a time for each series in the unit of the data set; observations at just this time stay.

    Raises:
        InputError: a series without an observation until then.
    """
    return dataset.mask_observations(dataset.times <= np.repeat(when, dataset.lengths))


def with_early(dataset: SeriesDataset, ends: np.ndarray) -> SeriesDataset:
    """Augment a data set: return its S series, followed by k copies of each, which end early.

    The copies come S at a time, in the order of the series, under the same ids: entries i, S + i, 2 S + i, ... of the
    result are of series i.

    Args:
        ends: [S, k], the last time of each copy of a series, in the unit of the data set.

    Raises:
        InputError: a copy without any observation.
    """
    every = dataset.select(np.tile(np.arange(len(dataset)), ends.shape[1] + 1))
    return known_at(every, np.concatenate([np.full(len(dataset), np.inf), ends.T.ravel()]))


def with_thinned(dataset: SeriesDataset, copies: int, seed: int = 0) -> SeriesDataset:
    """Augment a data set: return its S series, followed by copies of each, which lack some observations.

    A copy keeps its first observation. It keeps each other one with a probability that is drawn for the copy from 0.3
    to 1. The copies come S at a time, in the order of the series.

    Args:
        copies: number of copies of each series.
        seed: for the draw.
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
    """Split each series into visible and hidden observations; return both data sets and a mask of the hidden ones.

    Args:
        dataset: the series.
        share: share of each series' observations to hide, or of its times with `by` "time" or "latest"; more than 0,
            less than 1. The number is rounded up, but one stays visible.
        seed: for the draw.
        by: "observation" draws single observations. "stretch" draws runs of consecutive ones. All runs of a series have
            one length, drawn log-uniformly from 1 to all that is hidden; a run at an end of the series, or the last one
            drawn, may be shorter. "time" draws times, and hides everything observed then. "latest" hides the last
            times.

    Returns:
        Two data sets of the same series: with the visible observations, and with the hidden ones. Series that have only
        one observation, or with `by` "time" or "latest" only one time, are in neither. And a mask, bool [n], over the
        observations of `dataset`, True where hidden; False for series in neither data set.

    Raises:
        InputError: a share out of its range; an unknown `by`; no series has anything to hide.
    """
    if not 0 < share < 1:
        raise InputError(f"share is {share}; give the share of observations to hide, more than 0 and less than 1.")
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
    if not len(usable):
        raise InputError("nothing can be hidden: every series has a single observation or time; add longer series.")
    part, inside = dataset.select(usable), np.isin(series, usable)
    return part.mask_observations(~hidden[inside]), part.mask_observations(hidden[inside]), hidden


def rank_within(group: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Return the rank of each of n entries in its group, int [n] from 0, by ascending keys; equal keys stay in order.

    Args:
        group: int [n], number of each entry's group, from 0.
        key: [n], what each group is sorted by.
    """
    count, rank = np.bincount(group), np.empty(len(group), np.int64)
    rank[np.lexsort((key, group))] = np.arange(len(group)) - np.repeat(np.cumsum(count) - count, count)
    return rank
