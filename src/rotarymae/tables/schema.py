"""The meaning of each column of a table, said once: for the command, the estimators, shards, and with the model."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from inspect import getdoc
from pathlib import Path
from typing import Any, Literal

from rotarymae.errors import InputError, listed
from rotarymae.system import from_fields
from rotarymae.system.fields import Range, check_fields

Tokenisation = Literal["channel", "time"]
Duplicates = Literal["error", "mean", "first", "last"]
Limits = Literal["censored", "drop"]
Untimed = Literal["drop", "static"]
COLUMN_ROLES = ("id", "time", "clock", "positions", "channel", "values", "errors", "upper_limits", "lower_limits",
                "flags", "static")  # that name columns  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class TableSchema:
    """The columns of a table of observations, and how its cells are read; the command's options say it in these words.

    Parameters
    ----------
    id
        Reading: column that says which series a row belongs to. subject+trial joins two columns; the word file makes
        each input file a series. Set it if the column is not called id.
    time
        Reading: column of times, numbers or dates. If a column lc holds nested fields (Parquet), lc.time is its field
        time. Set it if the column is not called time.
    clock
        Reading: column with the time of day (10:15, 10:15 PM, 1015, or hours). Name it if --time holds days alone.
    positions
        Reading: columns with further positions of each observation, such as latitude, longitude and depth. Name
        them if place matters.
    channel
        Reading: column that says which channel (band, sensor, variable) was observed. Name it if there are several;
        not with --wide.
    values
        Reading: columns of observed values, if they are not called value. With --wide they are the channels; none
        named means all other columns.
    errors
        Reading: columns of the standard errors, in the order of the first columns of values; the model reads them.
    flags
        Reading: columns of quality flags. Observations with anything but 0 in one of them are left out. Name them if
        the table marks bad observations.
    static
        Reading: columns with one value per series, in this table or in that of --objects.
    wide
        Reading: the table has a row per time, and each channel (band, sensor, variable) a column of its own. Set it for
        such a table. An empty cell is a missing observation, not a zero.
    numbered
        Reading: common beginning of numbered columns: FLUX. for FLUX.1, FLUX.2, ...; then give --values FLUX --time
        number --id series. With "", for columns called 1990, 1991, ... or by dates, values are called value. Set it if
        each row is a series.
    tokens
        Reading: with --wide, each value becomes an observation of its own (channel), or each row becomes one
        observation of all channels (time), left out if a cell is empty. Set time if all channels are always measured
        together; if some are missing, rather --join-times.
    duplicates
        Reading: which value counts if rows of the same series, time and channel differ: their mean, the first or the
        last. error takes the first, but refuses a table with more than 1 % of such rows. Set mean if values were
        measured repeatedly.
    limits
        Reading: cells such as <0.01 or >100, and those of --upper-limits and --lower-limits, are limits of a value,
        which the model uses (censored), or are left out and counted (drop). Set drop if such limits are unreliable.
    upper_limits
        Reading: columns of detection limits, in the order of --values: where a value is missing, it lies below its
        limit. Name them if the table has such limits; not with --lower-limits.
    lower_limits
        Reading: columns of detection limits, in the order of --values: where a value is missing, it lies above its
        limit. Name them if larger values mean a weaker signal, as astronomical magnitudes do (column diffmaglim); not
        with --upper-limits.
    untimed
        Reading: rows without a time are left out and counted (drop), or each of their channels becomes a column with
        one value per series (static). Set static if such rows hold facts, such as age at admission.
    since
        Reading: leave out rows before this time, a number or a date; the output says how many. Set it to cut off an
        old or faulty part.
    until
        Reading: leave out rows after this time, a number or a date; the output says how many. Set it to use only what
        was known by then.
    na
        Reading: further cells that mean a missing value, besides empty ones, dashes, a point, NA, NaN, none and null.
        Name the codes of your table, such as -999; a number stands for all its spellings (-999.0).
    time_format
        Reading: how times are written, in the codes of strptime, for example "%d.%m.%Y %H:%M". Set it if dates are not
        recognised.
    header_row
        Reading: line of a text file, or row of an Excel sheet, counted from 1, that names the columns. Set it if it is
        not recognised.
    strict
        Reading: refuse the table if a cell cannot be used, such as an infinite value, instead of leaving out its row.
        Set it if nothing may be left out.
    objects
        Reading: table with one row per series. Give it if static columns, labels or the column of --split-by are there
        and not in TABLE.
    convert
        Reading: convert values to the units of the table that the model (in a fit: --pretrained) was trained on;
        without it, a warning names columns in other units. Works if both tables state units (FITS, a row of units). Set
        it if they differ.
    units
        The unit of each column in the table that a model was trained on, as far as that says it.
    """

    id: str = "id"
    time: str = "time"
    clock: str | None = None
    positions: tuple[str, ...] = ()
    channel: str | None = None
    values: tuple[str, ...] = ("value",)
    errors: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    static: tuple[str, ...] = ()
    wide: bool = False
    numbered: str | None = None
    tokens: Tokenisation = "channel"
    duplicates: Duplicates = "error"
    limits: Limits = "censored"
    upper_limits: tuple[str, ...] = ()
    lower_limits: tuple[str, ...] = ()
    untimed: Untimed = "drop"
    since: str | None = None
    until: str | None = None
    na: tuple[str, ...] = ()
    time_format: str | None = None
    header_row: int | None = None
    strict: bool = False
    objects: Any = None  # path of a table, or a data frame
    convert: bool = False
    units: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the fields, alone and together.

        A single name becomes a tuple of one; `since`, `until` and each entry of `na` become texts, so that the number
        -999 becomes "-999", and a Python date an ISO date.

        Raises:
            InputError: a value of the wrong type, or none of the choices of its field; a `header_row` below 1; no
                `values` without `wide`; a column with two roles ("column-twice"); more columns of limits than of
                values; or options that exclude each other, such as `channel` and `wide`, or upper and lower limits.
        """
        several = isinstance(self.na, Iterable) and not isinstance(self.na, str)
        object.__setattr__(self, "na", tuple(map(str, self.na if several else (self.na,))))  # -999 is a word, too
        for name in ("since", "until"):
            object.__setattr__(self, name, None if getattr(self, name) is None else str(getattr(self, name)))
        check_fields(self, {"header_row": Range(least=1)})
        if not self.values and not self.wide:
            raise InputError("values is empty; give the name of at least one column.")
        taken: dict[str, str] = {}
        for role, name in self.roles:
            if name in taken:
                raise InputError(
                    f"column {name!r} is given twice, as {taken[name]} and as {role}; name each column once.",
                    code="column-twice",
                )
            taken[name] = role
        bounds = (*self.upper_limits, *self.lower_limits)
        most = max(len(self.upper_limits), len(self.lower_limits))
        several = self.wide or self.tokens == "time"  # observations in a row
        single = "belong to single observations; give a table with one row for each (no --wide or --tokens time)."
        conflicts = (
            (self.flags and self.wide, f"flags {listed(self.flags)} {single}"),
            (self.errors and several, f"errors {listed(self.errors)} {single}"),
            (bounds and several, f"columns of limits {listed(bounds)} {single}"),
            (
                self.upper_limits and self.lower_limits,
                f"values {listed(self.values[:1])} have upper limits {listed(self.upper_limits[:1])} and lower limits "
                f"{listed(self.lower_limits[:1])}: a missing value would lie on both sides. Name limits of one side.",
            ),
            (most > len(self.values), f"{most} columns of limits for {len(self.values)} of values; give one each."),
            (self.wide and self.channel, f"channel={self.channel!r} is for long tables: omit --channel or --wide."),
            (
                self.tokens == "time" and self.channel,
                f"tokens='time' needs all channels in one row, and channel={self.channel!r} has a row for each; give a "
                "wide table (--wide).",
            ),
        )
        for conflict, text in conflicts:
            if conflict:
                raise InputError(text)

    @property
    def roles(self) -> list[tuple[str, str]]:
        """Pairs (role, column), such as ("time", "mjd"), for every column that is named or is the default of its role.

        Roles are the fields in `COLUMN_ROLES`, in this order. A role with several columns has several pairs, and a role
        without a column has none.
        """
        named = [(role, getattr(self, role)) for role in COLUMN_ROLES]
        lists = [(role, value if isinstance(value, tuple) else (value,)) for role, value in named if value is not None]
        return [(role, name) for role, names in lists for name in names]

    @classmethod
    def resolve(cls, given: Mapping[str, Any], of_model: Mapping[str, Any] | None = None) -> TableSchema:
        """Make a schema of options: each as it is given, else as the model has it, else the default.

        A given `wide` drops the model's `channel`, and a given `channel` the model's `wide`, as they exclude each
        other. The same holds for `upper_limits` and `lower_limits`. The default of `values` is () if `wide` is given.

        Args:
            given: {field: value}; None, False, () and [] count as not given. Names that are no fields are passed over,
                and paths become texts.
            of_model: {field: value} of a model's training table, whose `objects` is not used. None without a model.

        Raises:
            InputError: what `__post_init__` refuses, such as options that exclude each other.
        """
        known = {one.name for one in fields(cls)}
        given = {
            name: str(value) if isinstance(value, Path) else value
            for name, value in given.items()
            if name in known
            and not (value is None or value is False or (isinstance(value, tuple | list) and not value))
        }
        # Which objects there were in training says nothing of those of another table.
        before = {name: value for name, value in (of_model or {}).items() if name in known - {"objects"}}
        for one, other in (("wide", "channel"), ("upper_limits", "lower_limits")):
            for name, excluded in ((one, other), (other, one)):
                if name in given:
                    before.pop(excluded, None)
        return from_fields(cls, {"values": () if given.get("wide") else cls.values, **before, **given}, "a table")

    @classmethod
    def for_model(
        cls, preprocessor: Any, columns: Mapping[str, Any], given: Mapping[str, Any] | None = None
    ) -> TableSchema:
        """Return the schema for a model's input: that of its training table, changed by what a user gives.

        Static columns, errors and positions are always those of the preprocessor. Censored values (limits such as <5)
        are left out if the preprocessor reads none.

        Args:
            preprocessor: the model's `ObservationPreprocessor`.
            columns: {field: value} of the schema of the model's training table.
            given: {field: value} that a user gives, as for `resolve`; None for nothing.

        Raises:
            InputError: fields that do not fit together, such as a column with two roles.
        """
        schema = cls.resolve(given or {}, columns)
        # No static columns, of a model that is only pre-trained.
        static = tuple(column.name for column in preprocessor.static)
        limits = schema.limits if preprocessor.limits else "drop"
        of_model = {"errors": preprocessor.errors, "positions": preprocessor.position_names, "limits": limits}
        return replace(schema, static=static, **of_model)

    def with_values_of(self, dataset: Any) -> TableSchema:
        """Return the schema completed by what reading found out: the units, and for a wide table the columns of values.

        It is what `rotarymae fit` saves with a model, so that later tables are read alike. `dataset` is a
        `SeriesDataset` that was read by this schema. Values of a wide table are the names of the data set's channels,
        or of its values if it has no channels. Units are {} if the data set has no report on the reading.
        """
        values = tuple(dataset.channel_names or dataset.value_names) if self.wide else self.values
        return replace(self, values=values, units=dataset.reading.units if dataset.reading else {})


def option(field: str, *values: object) -> str:
    """Return the command's option for a field, such as "--time-format", and its values, quoted for a shell."""
    return shlex.join([f"--{field.replace('_', '-')}", *map(str, values)])


def helps() -> dict[str, str]:
    """Return {field: help} for the command's options, each on one line, taken from the docstring of `TableSchema`."""
    parameters = (getdoc(TableSchema) or "").partition("----------\n")[2]
    return {name: " ".join(text.split()) for name, text in re.findall(r"^(\w+)\n((?:    .*\n?)+)", parameters, re.M)}
