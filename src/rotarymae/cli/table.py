"""The table a command is given, read as its options say or as the model's training table was read."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import arg

from rotarymae.errors import InputError

if TYPE_CHECKING:
    from rotarymae.checkpoints import ModelDirectory
    from rotarymae.series import SeriesDataset


def _default(text: str) -> Any:
    """What help says of an option that is not given: None stands for the model's, or for this."""
    return arg(help_behavior_hint=f"(default: {text})")


@dataclass(frozen=True)
class Columns:
    """How the table is laid out; a model remembers how its training table was."""

    id: Annotated[str | None, _default("id")] = None
    """This column says which series a row belongs to."""
    time: Annotated[str | None, _default("time")] = None
    """This column holds the times, which are numbers or dates; dates count in days."""
    channel: Annotated[str | None, _default("no channels")] = None
    """This column says which channel (band, sensor, variable) was observed."""
    values: Annotated[tuple[str, ...], _default("value")] = ()
    """These columns hold the values; with --wide they are the channels."""
    wide: bool = False
    """The table has one column per channel, and an empty cell is a missing observation, not a zero."""
    tokens: Annotated[Literal["channel", "time"] | None, _default("channel")] = None
    """Each (time, channel) is one token, or each time is one, with all channels as its features."""
    missing: Annotated[Literal["error", "drop"] | None, _default("drop")] = None
    """A row without a value is left out and counted, or is an error."""
    duplicates: Annotated[Literal["error", "mean", "first"] | None, _default("error")] = None
    """Two rows of the same series, time and channel are an error, are averaged, or the first counts."""
    unknown_channels: Annotated[Literal["error", "drop"] | None, _default("drop")] = None
    """For predict, interpolate and embed: rows of channels that the model does not know are left out, or an error."""


@dataclass(frozen=True)
class TableLayout:
    """How a table is read, with nothing left open; kept with the model as a dictionary."""

    id: str = "id"
    time: str = "time"
    channel: str | None = None
    values: tuple[str, ...] = ("value",)
    wide: bool = False
    tokens: Literal["channel", "time"] = "channel"
    missing: Literal["error", "drop"] = "drop"
    duplicates: Literal["error", "mean", "first"] = "error"
    unknown_channels: Literal["error", "drop"] = "drop"
    static: tuple[str, ...] = ()

    @classmethod
    def resolve(cls, columns: Columns, of_model: dict[str, Any] | None = None) -> TableLayout:
        """What is given, else the model's, else the defaults. Raises InputError for options that exclude each other."""
        given = {name: value for name, value in asdict(columns).items() if value}
        before = dict(of_model or {})
        if columns.wide and columns.channel:
            raise InputError("--channel names a column of channels, --wide says each has its own; give one of them.")
        if columns.wide:
            before.pop("channel", None)
        if columns.channel:
            before.pop("wide", None)
        layout = {**before, **given}
        lists = {name: tuple(layout.get(name, getattr(cls, name))) for name in ("values", "static")}
        return cls(**{**layout, **lists})

    def read(self, table: Path, channel_names: tuple[Any, ...] | None = None) -> SeriesDataset:
        """The series of a table; `channel_names` are those of the model, if there is one.

        Raises:
            InputError: a column that is not there, by the option that names it; and as `SeriesDataset.from_frame`.
        """
        from rotarymae.errors import did_you_mean, listed
        from rotarymae.series import SeriesDataset, tables

        names = tables.column_names(table, tables.format_of(table))
        forgiving = channel_names is not None and self.unknown_channels == "drop"
        wanted = [("id", self.id), ("time", self.time)]
        wanted += [] if self.wide and forgiving else [("values", name) for name in self.values]
        wanted += [("channel", self.channel)] if self.channel else []
        wanted += [("static", name) for name in self.static]
        for option, name in wanted:
            if name not in names:
                raise InputError(
                    f"{table} has no column {name!r}; name the right one by --{option}."
                    f"{did_you_mean(name, names)} Its columns are {listed(names, 20)}."
                )
        try:
            return SeriesDataset.from_file(
                table,
                self.id,
                self.time,
                self.channel,
                list(self.values),
                list(self.static),
                wide=self.wide,
                channel_names=None if self.wide else channel_names,
                unknown_channels="drop" if forgiving else "error",
                tokens=self.tokens if self.channel or self.wide else "channel",
                missing=self.missing,
                duplicates=self.duplicates,
            )
        except InputError as error:
            raise InputError(f"{table}: {error}") from error


def read_for(directory: ModelDirectory, table: Path, columns: Columns) -> SeriesDataset:
    """The series of a table for a model that was made from another."""
    preprocessor = directory.preprocessor
    if preprocessor is None:
        raise InputError("the model has no preprocessor; it was not made from a table.")
    return TableLayout.resolve(columns, preprocessor.columns).read(table, preprocessor.channel_names)
