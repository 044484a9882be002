"""How a table is laid out: which column is what. A model remembers it, so that later tables need no telling."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from rotarymae.errors import InputError, InputWarning, did_you_mean, listed
from rotarymae.series.columns import Reading
from rotarymae.series.dataset import SeriesDataset
from rotarymae.series.files import TableFile, open_table
from rotarymae.series.preprocessor import Preprocessor
from rotarymae.series.table_reader import TableReader


@dataclass(frozen=True)
class TableLayout(Reading):
    """How a table is read, with nothing left open; kept with the model as a dictionary.

    Attributes: as the arguments of `SeriesDataset.from_file`; `id` may be "file", where each file is one series,
        `errors` are columns that are read behind `values`, and `na` cells of a text file that mean "missing", too.
    """

    errors: tuple[str, ...] = ()
    na: tuple[str, ...] = ()
    time_format: str | None = None

    @classmethod
    def resolve(cls, given: Mapping[str, Any], of_model: Mapping[str, Any] | None = None) -> TableLayout:
        """What is given (None, False and () are not), else the model's, else the defaults.

        Raises:
            InputError: options that exclude each other.
        """
        given = {name: value for name, value in given.items() if value}
        before, wide = dict(of_model or {}), given.get("wide")
        if wide and "channel" in given:
            raise InputError("--channel names a column of channels, --wide says each has its own; give one of them.")
        if wide:
            before.pop("channel", None)
        if "channel" in given:
            before.pop("wide", None)
        layout = {"values": () if wide else cls.values, **before, **given}
        lists = {name: tuple(layout.get(name, ())) for name in ("values", "errors", "static", "flags", "na")}
        return cls(**{**layout, **lists})

    @classmethod
    def for_model(
        cls, preprocessor: Preprocessor, columns: Mapping[str, Any], given: Mapping[str, Any] | None = None
    ) -> TableLayout:
        """Return how a table for a model is laid out: as its training table (`columns`), but for what is given."""
        layout = cls.resolve(given or {}, columns)
        # No static columns, of a model that is only pre-trained.
        static = tuple(column.name for column in preprocessor.static)
        return replace(layout, static=static, errors=preprocessor.errors)

    def with_values_of(self, dataset: SeriesDataset) -> TableLayout:
        """The same with the channels by name, where a wide table's were all columns that have no other role."""
        if not self.wide:
            return self
        return replace(self, values=tuple(dataset.channel_names or dataset.value_names))

    def open(self, table: Path | pa.Table) -> TableFile:
        """The table, its file or its files, read as the options say."""
        times = {} if self.time_format is None else {self.time: self.time_format}
        if isinstance(table, pa.Table):
            return replace(TableFile.of_table(table), missing=self.na, times=times)
        found = open_table(table, missing=self.na, times=times)
        return found.with_ids_of_files() if self.id == "file" and "file" not in found.column_names() else found

    def reader(
        self,
        table: Path | pa.Table,
        channel_names: tuple[Any, ...] | None = None,
        beside: tuple[str, ...] = (),
        value_names: tuple[str, ...] | None = None,
    ) -> TableReader:
        """What reads the series of a table.

        Args:
            channel_names, value_names: those of the model, if there is one. A column "lc.flux" is its "flux".
            beside: columns that are neither of these nor channels, such as a label's.

        Raises:
            InputError: a column that is not there, by the option that names it.
        """
        if self.errors and (self.wide or self.tokens == "time"):
            raise InputError(
                f"errors {listed(self.errors)} are of single observations; give a table with one row for each "
                "(no --wide, no --tokens time)."
            )
        both = [name for name in self.values if name in self.errors]
        if both:
            raise InputError(f"column {both[0]!r} is given twice, as value and as error; name each column once.")
        source = self.open(table)
        what = "the table" if source.in_memory else table
        names = source.column_names()
        roles = {self.id, self.time, self.channel, *self.values, *self.errors, *self.static, *self.flags, *beside}
        # A table of one series needs no ids; another column that is left over might hold them, though.
        alone = self.id not in names and (self.id == "file" or (self.id == "id" and set(names) <= roles))
        values = self.values or tuple(name for name in names if name not in roles)
        forgiving = channel_names is not None and self.unknown_channels == "drop"
        wanted = [("static", name) for name in self.static] + [("errors", name) for name in self.errors]
        wanted += [("id", self.id)] if not alone else []
        wanted += [("time", self.time)]
        wanted += [] if self.wide and forgiving else [("values", name) for name in values]
        wanted += [("channel", self.channel)] if self.channel else []
        wanted += [("flags", name) for name in self.flags]
        for option, name in wanted:
            if name not in names:
                how = f"; name the right one by --{option}"
                how += ", or add one of zeros, if nothing is flagged" if option == "flags" else ""
                if option in ("static", "errors"):
                    how = f", which the model reads (--{option} in training)" if channel_names or value_names else ""
                more = " If each file is one series, give --id file." if option == "id" else ""
                raise InputError(
                    f"{what} has no column {name!r}{how}.{did_you_mean(name, names)} Its columns are "
                    f"{listed(names, 20)}.{more}"
                )
        unread = [name for name in names if name not in {*roles, *values}]
        if unread:
            source = replace(source, notes=(*source.notes, f"columns not read: {listed(unread)}"))
        strange = set(unread) & set(source.numeric_columns())
        if self.wide and strange and (channel_names is not None or value_names is not None):
            text = f"{what}: this model does not read the columns {listed(sorted(strange))}."
            warnings.warn(text, InputWarning, stacklevel=3)
        same = {field.name: getattr(self, field.name) for field in fields(Reading)}
        changed = {
            "id": "file" if alone else self.id,
            "values": (*values, *self.errors),
            "unknown_channels": "drop" if forgiving else "error",
            "tokens": self.tokens if self.channel or self.wide else "channel",
        }
        return TableReader(
            **{**same, **changed},
            source=source.with_ids_of_files() if alone else source,
            channel_names=None if self.wide else channel_names,
            value_names=value_names if value_names is not None and _fields(values) == _fields(value_names) else None,
            id_name=self.id,
        )

    def read(
        self,
        table: Path,
        channel_names: tuple[Any, ...] | None = None,
        beside: tuple[str, ...] = (),
        value_names: tuple[str, ...] | None = None,
    ) -> SeriesDataset:
        """The series of a table; arguments as `reader`.

        Raises:
            InputError: as `reader` and `SeriesDataset.from_frame`, naming the table.
        """
        reader = self.reader(table, channel_names, beside, value_names)
        try:
            return reader.read()
        except InputError as error:
            raise error.within(table) from error


def _fields(names: tuple[str, ...]) -> list[str]:
    """Of columns "lc.flux" the names of the fields, "flux"."""
    return [name.rsplit(".", 1)[-1] for name in names]
