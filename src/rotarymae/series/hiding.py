"""Hiding a part of every series, for a model that is to predict it."""

from __future__ import annotations

from typing import Literal

import numpy as np

from rotarymae.errors import InputError, choose
from rotarymae.series.dataset import SeriesDataset


def hide(
    dataset: SeriesDataset, share: float, seed: int = 0, by: Literal["observation", "time", "latest"] = "observation"
) -> tuple[SeriesDataset, SeriesDataset, np.ndarray]:
    """A share of each series is hidden: (what stays visible, what is hidden, which observations that is).

    Args:
        dataset: the series.
        share: of each series' observations or times, more than 0 and less than 1; rounded up, but one stays visible.
        seed: of the draw.
        by: "observation" draws single observations, "time" draws times with all that was observed then, and "latest"
            takes the last of these times.

    Returns:
        Two data sets of the same series, and a mask [n] over the observations of `dataset`. Series with nothing to
        hide, because they have one observation or time, are in neither data set and not in the mask.

    Raises:
        InputError: a share out of its range; another `by`; no series has anything to hide.
    """
    if not 0 < share < 1:
        raise InputError(f"share {share}; wanted more than 0 and less than 1.")
    choose("by", by, ("observation", "time", "latest"))
    series = np.repeat(np.arange(len(dataset)), dataset.lengths)
    unit = np.arange(len(series))
    if by != "observation":
        first = np.ones(len(series), bool)
        first[1:] = (series[1:] != series[:-1]) | (np.diff(dataset.times) != 0)
        unit = np.cumsum(first) - 1
    owner = series[np.searchsorted(unit, np.arange(unit[-1] + 1))]  # the series of each unit
    count = np.bincount(owner)
    draw = np.arange(len(owner)) if by == "latest" else np.random.default_rng(seed).random(len(owner))
    order = np.lexsort((draw, owner))
    rank = np.empty(len(owner), np.int64)
    rank[order] = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    visible = np.maximum(count - np.ceil(count * share).astype(np.int64), 1)
    hidden = (rank >= visible[owner])[unit]
    usable = np.unique(series[hidden])
    part, inside = dataset.select(usable), np.isin(series, usable)
    return part.mask_observations(~hidden[inside]), part.mask_observations(hidden[inside]), hidden
