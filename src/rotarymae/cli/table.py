"""The tables a command is given, read as its options say or as the model's training table was read."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import arg

from rotarymae.errors import InputError

if TYPE_CHECKING:
    from rotarymae.checkpoints import ModelDirectory
    from rotarymae.series import SeriesDataset, TableFile


Table = Annotated[Path, arg(metavar="TABLE")]
Model = Annotated[Path, arg(metavar="MODEL")]


def _default(text: str) -> Any:
    """What help says of an option that is not given: None stands for the model's, or for this."""
    return arg(help_behavior_hint=f"(default: {text})")


@dataclass(frozen=True)
class Columns:
    """How the table is laid out; a model remembers how its training table was."""

    id: Annotated[str | None, _default("id")] = None
    """This column says which series a row belongs to; file is the name of the file, where that is no column."""
    time: Annotated[str | None, _default("time")] = None
    """This column holds the times, which are numbers or dates; dates count in days."""
    channel: Annotated[str | None, _default("no channels")] = None
    """This column says which channel (band, sensor, variable) was observed."""
    values: Annotated[tuple[str, ...], _default("value; with --wide all others")] = ()
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
    """Rows of channels that a trained model does not know are left out, or an error, as fit takes them unless told."""
    na: Annotated[tuple[str, ...], _default("empty, NA, NaN, null and the like")] = ()
    """These cells of a text file mean that a value is missing, too."""
    time_format: Annotated[str | None, _default("ISO dates, or numbers")] = None
    """Times are written like this, for example "%d.%m.%Y %H:%M"."""


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
    na: tuple[str, ...] = ()
    time_format: str | None = None

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
        layout = {"values": () if columns.wide else cls.values, **before, **given}
        lists = {name: tuple(layout.get(name, ())) for name in ("values", "static", "na")}
        return cls(**{**layout, **lists})

    def with_values_of(self, dataset: SeriesDataset) -> TableLayout:
        """The same with the channels by name, where a wide table's were all columns that have no other role."""
        if not self.wide:
            return self
        return replace(self, values=tuple(dataset.channel_names or dataset.value_names))

    def open(self, table: Path) -> TableFile:
        """The table's file or files, read as the options say."""
        from rotarymae.series import open_table

        times = {} if self.time_format is None else {self.time: self.time_format}
        return open_table(table, missing=self.na, times=times)

    def read(
        self, table: Path, channel_names: tuple[Any, ...] | None = None, beside: tuple[str, ...] = ()
    ) -> SeriesDataset:
        """The series of a table.

        Args:
            channel_names: those of the model, if there is one.
            beside: columns that are neither of these nor channels, such as a label's.

        Raises:
            InputError: a column that is not there, by the option that names it; and as `SeriesDataset.from_frame`.
        """
        from rotarymae.errors import did_you_mean, listed
        from rotarymae.series import SeriesDataset

        source = self.open(table)
        names = source.column_names()
        roles = {self.id, self.time, self.channel, *self.values, *self.static, *beside}
        # A table of one series needs no ids; another column that is left over might hold them, though.
        alone = self.id not in names and (self.id == "file" or (self.id == "id" and set(names) <= roles))
        values = self.values or tuple(name for name in names if name not in roles)
        forgiving = channel_names is not None and self.unknown_channels == "drop"
        wanted = [("id", self.id)] if not alone else []
        wanted += [("time", self.time)]
        wanted += [] if self.wide and forgiving else [("values", name) for name in values]
        wanted += [("channel", self.channel)] if self.channel else []
        lacking = [name for name in self.static if name not in names]
        if lacking:
            raise InputError(
                f"{table} has no column {lacking[0]!r}, one of the static columns that the model reads (--static in "
                f"training).{did_you_mean(lacking[0], names)} Its columns are {listed(names, 20)}."
            )
        for option, name in wanted:
            if name not in names:
                raise InputError(
                    f"{table} has no column {name!r}; name the right one by --{option}."
                    f"{did_you_mean(name, names)} Its columns are {listed(names, 20)}."
                    f"{' If each file is one series, give --id file.' if option == 'id' else ''}"
                )
        try:
            return SeriesDataset.from_file(
                source,
                None if alone else self.id,
                self.time,
                self.channel,
                list(values),
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


def read_for(directory: ModelDirectory, table: Path, columns: Columns, beside: tuple[str, ...] = ()) -> SeriesDataset:
    """The series of a table for a model that was made from another."""
    preprocessor = directory.preprocessor
    if preprocessor is None:
        raise InputError("the model has no preprocessor; it was not made from a table.")
    layout = TableLayout.resolve(columns, preprocessor.columns)
    needed = tuple(column.name for column in preprocessor.static)  # none, of a model that is only pre-trained
    return replace(layout, static=needed).read(table, preprocessor.channel_names, beside)


@dataclass(frozen=True)
class LabelColumn:
    """Where the labels are."""

    labels: Annotated[Path | None, arg(help_behavior_hint="(default: TABLE)")] = None
    """This table has ids of series and labels, classes or numbers; series without a label are only pre-trained on."""
    label: Annotated[str | None, arg(help_behavior_hint="(default: label)")] = None
    """This column holds the labels; without it and --labels the model is only pre-trained."""
    label_id: Annotated[str | None, arg(help_behavior_hint="(default: as in TABLE)")] = None
    """This column of that table holds the ids."""

    @property
    def beside(self) -> tuple[str, ...]:
        """Columns of the table of observations that hold labels."""
        return (self.label,) if self.label and self.labels is None else ()

    def read(self, dataset: SeriesDataset, layout: TableLayout, table: Path) -> Any:
        """The labels in the order of the series, or None. Raises InputError for labels that do not match."""
        from rotarymae.series import align_labels, read_table

        key = self.label_id or layout.id
        if self.labels is None:
            if self.label is None:
                return None
            found = layout.open(table).read([key, self.label], [key])
        else:
            found = read_table(self.labels, labels=[key])
        return align_labels(dataset, found, key, self.label or "label", unlabelled="none")
