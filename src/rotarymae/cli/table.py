"""The table a command is given, read as its options say or as the model was made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rotarymae.errors import InputError

if TYPE_CHECKING:
    from rotarymae.checkpoints import ModelDirectory
    from rotarymae.series import SeriesDataset


@dataclass(frozen=True)
class Columns:
    """How the table is read. predict, interpolate and embed take what is not given here from the model."""

    id: str | None = None
    """Column that says which series a row belongs to [id]."""
    time: str | None = None
    """Column of times, numbers or dates (dates count in days) [time]."""
    channel: str | None = None
    """Column that says which channel (band, sensor, variable) was observed; leave it out if there is one."""
    values: tuple[str, ...] = ()
    """Columns of values [value]. With --wide these are the channels."""
    wide: bool = False
    """The table has one column a channel; an empty cell is a missing observation, not a zero."""
    tokens: Literal["channel", "time"] | None = None
    """One token for every (time, channel), or for every time with all channels as its features [channel]."""
    missing: Literal["error", "drop"] | None = None
    """A missing value: an error, or no observation [error]."""
    duplicates: Literal["error", "mean", "first"] | None = None
    """Two rows of the same series, time and channel: an error, their mean, or the first [error]."""


AS_THEY_ARE = Columns()  # no option given


def reading_of(columns: Columns, of_model: dict[str, Any]) -> dict[str, Any]:
    """The settings of a table: what is given, else the model's, else the defaults."""
    reading = {
        "id": columns.id or of_model.get("id") or "id",
        "time": columns.time or of_model.get("time") or "time",
        "channel": columns.channel or of_model.get("channel"),
        "values": list(columns.values or of_model.get("values") or ("value",)),
        "wide": columns.wide or (bool(of_model.get("wide")) and columns.channel is None),
        "tokens": columns.tokens or of_model.get("tokens") or "channel",
        "missing": columns.missing or of_model.get("missing") or "error",
        "duplicates": columns.duplicates or of_model.get("duplicates") or "error",
    }
    if reading["wide"] and reading["channel"]:
        raise InputError("--channel names a column of channels, --wide says each has its own column; give one of them.")
    return reading


def read(
    table: Path, reading: dict[str, Any], static: tuple[str, ...], channel_names: tuple[Any, ...] | None
) -> SeriesDataset:
    """The series of a table; `channel_names` are those of the model, if there is one.

    Raises:
        InputError: a column that is not there, by the option that names it; and as `SeriesDataset.from_frame`.
    """
    from rotarymae.errors import did_you_mean, listed
    from rotarymae.series import SeriesDataset, tables

    names = tables.column_names(table, tables.format_of(table))
    wanted = [("id", reading["id"]), ("time", reading["time"]), *(("values", name) for name in reading["values"])]
    wanted += [("channel", reading["channel"])] if reading["channel"] else []
    wanted += [("static", name) for name in static]
    for option, name in wanted:
        if name not in names:
            raise InputError(
                f"{table} has no column {name!r}; name the right one by --{option}."
                f"{did_you_mean(name, names)} Its columns are {listed(names, 20)}."
            )
    try:
        return SeriesDataset.from_file(
            table,
            reading["id"],
            reading["time"],
            reading["channel"],
            reading["values"],
            static,
            wide=reading["wide"],
            channel_names=None if reading["wide"] else channel_names,
            tokens=reading["tokens"] if reading["channel"] or reading["wide"] else "channel",
            missing=reading["missing"],
            duplicates=reading["duplicates"],
        )
    except InputError as error:
        raise InputError(f"{table}: {error}") from error


def read_for(directory: ModelDirectory, table: Path, columns: Columns) -> SeriesDataset:
    """The series of a table for a model that was made from another."""
    preprocessor = directory.preprocessor
    if preprocessor is None:
        raise InputError("the model has no preprocessor; it was not made from a table.")
    return read(table, reading_of(columns, preprocessor.columns), (), preprocessor.channel_names)
