"""The forms in which the estimators take series, each as a `SeriesDataset`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import narwhals as nw
import numpy as np
import pyarrow as pa

from rotarymae.errors import InputError, listed
from rotarymae.series.cells import label_values, to_arrow
from rotarymae.series.dataset import Series, SeriesDataset
from rotarymae.series.tidy import offsets_of
from rotarymae.system import unmasked
from rotarymae.tables.formats import one_type
from rotarymae.tables.labels import align_labels
from rotarymae.tables.read import TableReader
from rotarymae.tables.schema import TableSchema

if TYPE_CHECKING:
    from rotarymae.preprocess import ObservationPreprocessor


def as_dataset(
    series: Any,
    like: ObservationPreprocessor | None = None,
    columns: TableSchema | None = None,
    of_training: Mapping[str, Any] | None = None,
) -> SeriesDataset:
    """Convert series in any form that the estimators accept to a `SeriesDataset`.

    Observations are sorted by time, and those with NaN for a value are left out. Series of lists and arrays, and
    `Series` objects, get the ids 0, 1, 2, ...

    Args:
        series: a `SeriesDataset`; a data frame with a row per observation; a list of arrays [channels, n_i], one per
            series, or one array [S, channels, n]; a list with (times [n_i], values [n_i]) or (times, values, channels
            [n_i]) for each series; or a list of `Series`, the items of one data set.
        like: the preprocessor of a trained model; None without one. With it, channels are numbered as in the model,
            values in arrays get the model's names, and censored values (limits such as <5) are left out if the model
            reads none. Without it, a `SeriesDataset` is returned as it is.
        columns: which column of a data frame is what; None for columns called id, time and value.
        of_training: the fields of the `TableSchema` by which the training table of `like` was read, as a dictionary;
            None for a model that was not fitted on a table. If `rotarymae fit` trained the model, a data frame is read
            by these fields, and only id, time and channel are those of `columns`. Otherwise `of_training` is ignored.

    Raises:
        InputError: series in another form; a channel that `like` does not know; columns that are absent or not numeric;
            arrays whose lengths differ, or that hold infinite values; different values at one time; a series without
            observations; a list of `Series` with different channels, columns or units.

    Warns:
        InputWarning: rows of a data frame, or limits, that are left out; series of lists whose times do not ascend.
    """
    each = list(series) if isinstance(series, list | tuple) else []
    if isinstance(series, np.ndarray) and series.ndim == 3 and series.size:
        each = list(series)
    if isinstance(series, SeriesDataset):
        dataset = series
    elif is_frame(series):
        dataset = _from_frame(series, like, columns or TableSchema(), of_training or {})
    elif each and all(isinstance(one, np.ndarray) and one.ndim == 2 for one in each):
        dataset = _from_channels(each, like)
    elif each and all(isinstance(one, Series) for one in each):  # selected from a data set, by scikit-learn for example
        dataset = _joined(each)
    elif each and all(isinstance(one, list | tuple) and len(one) in (2, 3) for one in each):
        dataset = _from_tuples(each, like)
    else:
        kind = type(series).__name__ + (f" of shape {series.shape}" if isinstance(series, np.ndarray) else "")
        if (isinstance(series, list | tuple) and not series) or getattr(series, "shape", (1,))[:1] == (0,):
            raise InputError(f"there are no series: an empty {kind} was given; give one series or more.")
        raise InputError(
            f"the series are {kind}; wanted a SeriesDataset, a long data frame, an array [cases, channels, time], a "
            "list of arrays [channels, time], or a list with (times, values) or (times, values, channels) of every "
            "series. tuple(zip(*observations)) makes (times, values, channels) of a list of (time, value, channel)."
        )
    return dataset if like is None else _with_channels(dataset, like).with_limits(like.limits).with_errors(like.errors)


def is_frame(series: Any) -> bool:
    """Return whether an object is a data frame with named columns, of pandas, polars, Arrow or another library.

    True for a lazy frame, too; False for a pandas frame with a column whose name is no text, such as a number.
    """
    if isinstance(series, pa.Table):  # also with a name that occurs twice, as below, which narwhals refuses
        return True
    if nw.dependencies.is_pandas_dataframe(series):
        return all(isinstance(name, str) for name in series.columns)
    seen = nw.from_native(series, pass_through=True)
    return isinstance(seen, nw.LazyFrame | nw.DataFrame)


def labels_of(
    dataset: SeriesDataset, series: Any, labels: Any, id: str, unlabelled: Literal["error", "none"] = "error"
) -> Any:
    """Return the labels of S series in their order, from any form in which a caller may give them.

    Args:
        dataset: the S series as read.
        series: the series as the caller gave them, such as a data frame.
        labels: a dictionary {id: label}; the name of a column, if `series` is a data frame; a pandas Series whose index
            holds the ids (`_index_holds_ids`); or a pandas DataFrame, each column of which is treated like a Series.
            Anything else, such as an array or a Series with another index, must be in the order of the series, and is
            not checked.
        id: the column of ids of a data frame.
        unlabelled: if "none", a series without a label by its id gets None; if "error", it is refused.

    Returns:
        Array [S] of the labels, or [S, columns] for a DataFrame. Labels in the order of the series are returned as they
        are, except that a masked array becomes an array of objects, with None for masked values.

    Raises:
        InputError: a label that is also a static column; labels of mixed type, or ids that are no texts or numbers
            ("mixed-type"); what `align_labels` refuses in labels by id.

    Warns:
        InputWarning: as `align_labels` does.
    """
    if isinstance(labels, str) and is_frame(series):
        if labels in dataset.static:
            raise InputError(f"the label {labels!r} is also a static column; leave it out of static=.")
        return align_labels(dataset, series, id, labels, unlabelled)
    if nw.dependencies.is_pandas_dataframe(labels) and labels.shape[1]:
        return np.column_stack([labels_of(dataset, series, column, id, unlabelled) for _, column in labels.items()])
    if isinstance(labels, Mapping):
        ids, labels = list(labels), list(labels.values())
    elif nw.dependencies.is_pandas_series(labels) and _index_holds_ids(labels.index, series):
        ids, labels = list(labels.index), list(labels)
    else:
        return np.array(np.ma.asarray(labels).tolist(), object) if np.ma.is_masked(labels) else labels
    with one_type("id"):
        columns = {"id": to_arrow(np.array(ids))}
    with one_type("label"):
        columns["label"] = pa.array(labels, from_pandas=True)  # NaN among strings is None
    return align_labels(dataset, pa.table(columns), "id", "label", unlabelled)


def _index_holds_ids(index: Any, series: Any) -> bool:
    """Return whether the index of a pandas Series of labels holds ids; else labels are in the order of the series.

    - An unnamed RangeIndex, which pandas gives to values without an index, holds no ids: the result is False.
    - If `series` is a data frame, any other index holds ids: True. If it is neither a data frame nor a data set: False.
    - If `series` is a data set, the result is True if a text in the index is an id. Numbers in the index may only count
      the rows; so it is also True if all of the index are ids, or all ids are in the index, and False otherwise.
    """
    if type(index).__name__ == "RangeIndex" and index.name is None:
        return False
    if not isinstance(series, SeriesDataset):
        return is_frame(series)
    known, ids = set(index), set(series.ids.tolist())
    return (both := known & ids) in (known, ids) or any(isinstance(one, str) for one in both)


def _from_frame(
    frame: Any, like: ObservationPreprocessor | None, columns: TableSchema, of_training: Mapping[str, Any]
) -> SeriesDataset:
    """Read a data frame as a data set; `as_dataset` describes the arguments.

    Channels are numbered as in `like`, if that has channels. Raises InputError for a column that is absent or not
    numeric, and for a series without observations. Warns (InputWarning) as `TableReader.read` does.
    """
    if like is not None and fitted_by_command(of_training):
        given = {name: getattr(columns, name) for name in ("id", "time", "channel")}
        schema = TableSchema.for_model(like, of_training, given)
        reader = TableReader.open(frame, schema, like.channel_names, like.value_columns)
    else:
        if like is not None and not like.limits:
            columns = replace(columns, limits="drop")
        known = None if like is None or columns.channel is None else like.channel_names
        reader = TableReader.open(frame, columns, known)
    return reader.read(refuse_empty=True)


def fitted_by_command(of_training: Mapping[str, Any]) -> bool:
    """Return whether a model's training table was read as `rotarymae fit` reads, so that new frames must be, too.

    `of_training` are the fields of `TableSchema` that the model saved. They hold "tokens" if the command trained the
    model, or an estimator that started from such a model.
    """
    return "tokens" in of_training


def _joined(series: Sequence[Series]) -> SeriesDataset:
    """Make one data set of `Series` objects, in their order; scikit-learn selects such objects from a data set.

    The ids become 0, 1, 2, ..., as one series may be selected twice. Raises InputError if channels, columns or units of
    the series differ, as those of two data sets may.
    """
    first = series[0]
    names = ("channel_names", "value_names", "time_unit", "time_zone", "position_names")
    alike: list[dict[str, Any]] = [{name: getattr(one, name) for name in names} for one in series]
    forms = [(same, {*one.static}, one.sides is None) for same, one in zip(alike, series, strict=True)]
    if strange := [one.id for one, form in zip(series, forms, strict=True) if form != forms[0]]:
        raise InputError(
            f"the series are of several data sets: {listed(strange)} have other channels, columns, units or limits "
            f"than {listed([first.id])}; read their tables together as one."
        )
    columns = {
        name: None if getattr(first, name) is None else np.concatenate([getattr(one, name) for one in series])
        for name in ("times", "channels", "values", "positions", "sides")
    }
    static = {name: label_values(pa.array([one.static[name] for one in series])) for name in first.static}
    offsets = offsets_of(np.array([len(one.times) for one in series]))
    return SeriesDataset(**columns, **alike[0], offsets=offsets, ids=np.arange(len(series)), static=static)  # pyright: ignore


def _from_tuples(series: Sequence[Any], like: ObservationPreprocessor | None) -> SeriesDataset:
    """Read a list with (times, values) or (times, values, channels) for every series as a data set.

    Args:
        series: the list. Times and channels are [n_i], values [n_i] or [n_i, columns]. Channels that are None count as
            not given.
        like: the preprocessor of a model, whose names of channels and values are taken; None without one.

    Raises:
        InputError: channels of some series only; channels where `like` was fitted without, or none where it has some;
            what `SeriesDataset.from_arrays` refuses, such as arrays whose lengths differ.
    """
    parts = [[*one[:2], *(part for part in one[2:] if part is not None)] for one in series]
    if len({len(one) for one in parts}) > 1:
        raise InputError("some series have channels, and others have none; give channels to all or to none.")
    times, values, *channels = (list(column) for column in zip(*parts, strict=True))
    names = None if like is None else like.channel_names
    if like is not None and bool(channels) != (names is not None):
        if channels:
            raise InputError(
                "the series have channels, and the model was fitted without any; give (times, values) alone."
            )
        raise InputError(
            f"the series have no channels, and the model was fitted on the channels {listed(names or ())}; give "
            "(times, values, channels)."
        )
    dataset = SeriesDataset.from_arrays(times, values, *channels, channel_names=names)
    return _named(dataset, like)


def _from_channels(arrays: Sequence[np.ndarray], like: ObservationPreprocessor | None) -> SeriesDataset:
    """Read arrays [channels, n_i], one per series, as a data set; the columns of an array are the times 0, 1, 2, ...

    NaN means that a channel was not observed at a time. With `like`, an observation is laid out as in its data set: one
    value with its channel or, if `like` has no channels, all values of one time. Without `like`, it is all values of
    one time if no time has both NaN and numbers, else one value with its channel.

    Args:
        like: the preprocessor of a model, which names the channels in their order; without it (None) they are called
            channel_0, channel_1, ...

    Raises:
        InputError: arrays without numbers; different numbers of channels, or another than `like` was fitted on; what
            `SeriesDataset.from_arrays` refuses, such as a series without observations.
    """
    try:
        arrays = [unmasked(one) for one in arrays]
    except ValueError as error:
        raise InputError(
            f"the series cannot be read as arrays of numbers ({error}); give an array [cases, channels, time]."
        ) from error
    widths, kinds = sorted({len(one) for one in arrays}), sorted({str(one.dtype) for one in arrays})
    if any(one.dtype.kind not in "fiub" for one in arrays):
        raise InputError(f"the arrays are of the types {listed(kinds)}; wanted numbers [channels, time]. Convert them.")
    if len(widths) > 1:
        raise InputError(
            f"the arrays [channels, time] have different numbers of channels: {listed(widths)}; give all the same "
            "channels, with NaN where nothing was observed."
        )
    if like is None:
        names: Sequence[Any] = [f"channel_{c}" for c in range(widths[0])]
        together = all((gone.all(0) == gone.any(0)).all() for gone in map(np.isnan, arrays))
    else:
        together = like.channel_names is None
        names = like.value_columns if like.channel_names is None else like.channel_names
        if widths[0] != len(names):
            raise InputError(
                f"the arrays [channels, time] have {widths[0]} channels, and the model was fitted on {len(names)}: "
                f"{listed(names)}. Give these, in this order."
            )
    times, values = [np.arange(one.shape[1]) for one in arrays], [one.T for one in arrays]
    tokens = "time" if together else "channel"
    dataset = SeriesDataset.from_arrays(times, values, value_names=[*map(str, names)], wide=True, tokens=tokens)
    return dataset if like is None or together else _named(replace(dataset, channel_names=like.channel_names), like)


def _named(dataset: SeriesDataset, like: ObservationPreprocessor | None) -> SeriesDataset:
    """Rename the columns of values of a data set, which was made of arrays without names, as those of a model.

    Returns the data set as it is if `like` is None, or if the model has another number of these columns.
    """
    if like is None or len(dataset.value_names) != len(like.value_columns):
        return dataset
    return replace(dataset, value_names=like.value_columns)


def _with_channels(dataset: SeriesDataset, like: ObservationPreprocessor) -> SeriesDataset:
    """Return the data set with its channels numbered as in the model that `like` is from.

    The model may have channels that the data set lacks. If one of the two has no channels, the data set is returned as
    it is.

    Raises:
        InputError: an observation of a channel that the model does not know.
    """
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
            f"{listed([dataset.ids[series]])}) was never seen in training; the model knows {listed(place, 20)}. Rename "
            "it, or leave out its observations."
        )
    number = np.array([place.get(name, 0) for name in dataset.channel_names], np.int32)
    return replace(dataset, channels=number[dataset.channels], channel_names=like.channel_names)
