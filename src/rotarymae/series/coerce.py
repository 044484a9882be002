"""The forms in which the estimators take series, each as a `SeriesDataset`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from rotarymae.errors import InputError, listed
from rotarymae.series.dataset import Series, SeriesDataset
from rotarymae.series.scaling import Preprocessor


def as_dataset(series: Any, like: Preprocessor | None = None) -> SeriesDataset:
    """Series in any of the forms the estimators take, as a `SeriesDataset`; laid out as `like`, when that is given.

    Raises:
        InputError: another form; and as `SeriesDataset.from_padded` and `from_arrays`.
    """
    if isinstance(series, SeriesDataset):
        return series if like is None else _with_channels(series, like)
    if isinstance(series, np.ndarray) and series.ndim == 3:
        return _from_padded(series, like)
    if isinstance(series, list | tuple) and len(series) and all(_is_one(one) for one in series):
        parts = [(one.times, one.values, one.channels) if isinstance(one, Series) else tuple(one) for one in series]
        lengths = {len([part for part in one if part is not None]) for one in parts}
        if len(lengths) > 1:
            raise InputError("some series come with channels and others without; give all in one form.")
        times, values = [one[0] for one in parts], [one[1] for one in parts]
        channels = [one[2] for one in parts] if lengths == {3} else None
        names: dict[str, Any] = {}
        if like is not None:
            if (channels is None) != (like.channel_names is None):
                has = "none" if channels is None else "one"
                raise InputError(f"series with {has} came; the model was fitted on channels {like.channel_names}.")
            names["channel_names"] = like.channel_names
            names["value_names"] = like.value_names if _width(values[0]) == len(like.value_names) else None
        return SeriesDataset.from_arrays(times, values, channels, **names)
    came = type(series).__name__ + (f" of shape {series.shape}" if isinstance(series, np.ndarray) else "")
    raise InputError(
        f"series came as {came}; wanted a SeriesDataset (SeriesDataset.from_frame reads a data frame), an array "
        "[cases, channels, time], or a list with (times, values) of every series."
    )


def _is_one(one: Any) -> bool:
    return isinstance(one, Series) or (isinstance(one, list | tuple) and len(one) in (2, 3))


def _width(values: Any) -> int:
    return 1 if np.ndim(values) < 2 else np.shape(values)[1]


def _from_padded(array: np.ndarray, like: Preprocessor | None) -> SeriesDataset:
    if like is not None:
        wide = like.channel_names is None
        names = like.value_names if wide else like.channel_names
        assert names is not None
        if array.shape[1] != len(names):
            raise InputError(f"the array has {array.shape[1]} channels; the model was fitted on {len(names)}.")
        return SeriesDataset.from_padded(array, tokens="time" if wide else "channel", channel_names=[*map(str, names)])
    gone = np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.shape, bool)
    together = bool((gone.all(1) == gone.any(1)).all())
    return SeriesDataset.from_padded(array, tokens="time" if together else "channel")


def _with_channels(dataset: SeriesDataset, like: Preprocessor) -> SeriesDataset:
    """The data set with its channels numbered as the model's, which may have more."""
    if dataset.channels is None or dataset.channel_names is None or like.channel_names is None:
        return dataset
    if tuple(dataset.channel_names) == like.channel_names:
        return dataset
    place = {name: i for i, name in enumerate(like.channel_names)}
    strange = [c for c, name in enumerate(dataset.channel_names) if name not in place]
    seen = np.isin(dataset.channels, strange)
    if seen.any():
        row = int(seen.argmax())
        series = int(np.searchsorted(dataset.offsets, row, side="right")) - 1
        raise InputError(
            f"channel {dataset.channel_names[dataset.channels[row]]!r} (first in series "
            f"{listed([dataset.ids[series]])}) was never seen in training; the model knows {listed(place, 20)}."
        )
    number = np.array([place.get(name, 0) for name in dataset.channel_names], np.int32)
    return replace(dataset, channels=number[dataset.channels], channel_names=like.channel_names)
