"""The meaning of each column of a table, said once: for the command, the estimators, shards, and with the model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, get_args

from rotarymae.errors import InputError, choose, did_you_mean, listed
from rotarymae.series.columns import names_of

Tokenisation = Literal["channel", "time"]
Missing = Literal["error", "drop"]
Duplicates = Literal["error", "mean", "first", "last"]
Unknown = Literal["error", "drop"]
Limits = Literal["drop", "number"]
Untimed = Literal["drop", "static"]
COLUMNS = ("id", "time", "clock", "positions", "channel", "values", "errors", "flags", "static")  # that name columns
LISTS = ("positions", "values", "errors", "flags", "static", "na")


@dataclass(frozen=True, kw_only=True)
class TableSchema:
    """The columns of a table of observations, and how its cells are read.

    Parameters
    ----------
    id
        Says which series a row belongs to; "file" makes each file a series, unless a column has that name.
    time
        Holds the times, numbers in any unit or dates; "lc.time" is the field `time` of a nested column `lc`.
    clock
        Holds the time of day, where `time` holds days.
    positions
        Hold further positions of each observation, such as latitude and depth.
    channel
        Says which channel (band, sensor, variable) was observed.
    values
        Hold the values; of a wide table they are the channels, and all other columns if none is named.
    errors
        Hold the standard errors of the first values, in their order; they are read behind the values.
    flags
        An observation with another flag than 0 in one of these columns is missing.
    static
        Have one value per series, in this table or in the objects' table.
    wide
        Whether each column of values is a channel.
    numbered
        Before the numbers of columns that are a series per row: "FLUX." of FLUX.1, FLUX.2, ...; the column "number"
        then holds the numbers, "FLUX" the values, and "series" counts the rows.
    tokens
        Whether each (time, channel) is one token, or each time with all its channels.
    missing
        Whether a row without a value is left out and counted ("drop"), or refused ("error").
    duplicates
        What rows of one series, time and channel become: few are left out and many refused ("error"), or one of them.
    unknown_channels
        Whether rows of channels that a model does not know are left out ("drop"), or refused ("error").
    limits
        Whether "<0.01" among values is left out ("drop") or read as its number ("number").
    untimed
        Whether rows without a time are left out ("drop"), or facts about their series ("static").
    since, until
        Rows before or after these times are left out.
    na
        Cells that mean "missing", besides the usual ones.
    time_format
        How times are written that are text, for strptime.
    header_row
        The line of a text file, counted from 1, that names the columns.
    strict
        Whether a cell that cannot be used refuses the table.
    objects
        Another table with one row per series, which has the static columns that the table of observations lacks.
    units
        Column → its unit in the table that a model was trained on, as far as that says it.
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
    missing: Missing = "drop"
    duplicates: Duplicates = "error"
    unknown_channels: Unknown = "drop"
    limits: Limits = "drop"
    untimed: Untimed = "drop"
    since: str | None = None
    until: str | None = None
    na: tuple[str, ...] = ()
    time_format: str | None = None
    header_row: int | None = None
    strict: bool = False
    objects: str | None = None
    units: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the names and options, alone and together. Raises InputError."""
        for name in LISTS:
            value = getattr(self, name)
            empty = name != "values" or self.wide
            value = tuple(map(str, value)) if name == "na" and not isinstance(value, str) else value
            object.__setattr__(self, name, names_of(value, name, empty=empty))
        words = {"tokens": Tokenisation, "missing": Missing, "duplicates": Duplicates, "unknown_channels": Unknown}
        words |= {"limits": Limits, "untimed": Untimed}
        for name, options in words.items():
            choose(name, getattr(self, name), get_args(options))
        roles = self.roles
        wrong = [f"{role}={name!r}" for role, name in roles if not isinstance(name, str)]
        if wrong:
            raise InputError(f"column names must be strings, and not {', '.join(wrong)}; give the name of a column.")
        taken: dict[str, str] = {}
        for role, name in roles:
            if name in taken:
                raise InputError(
                    f"column {name!r} is given twice, as {taken[name]} and as {role}; name each column once.",
                    code="column-twice",
                )
            taken[name] = role
        if self.wide and self.flags:
            raise InputError(
                f"flags {listed(self.flags)} belong to observations, of which a wide table has several per row; put an "
                "empty cell where a value is not to be used."
            )
        if self.wide and (self.channel is not None or self.missing == "error"):
            given = f"channel={self.channel!r}" if self.channel is not None else "missing='error'"
            raise InputError(
                f"{given} is for long tables; in a wide one each value column is a channel, and its cells may be empty."
            )
        if self.errors and (self.wide or self.tokens == "time"):
            raise InputError(
                f"errors {listed(self.errors)} belong to single observations; give a table with one row for each "
                "(no --wide, no --tokens time)."
            )

    @property
    def roles(self) -> list[tuple[str, str]]:
        """Return (role, column) for every column that is named."""
        pairs = []
        for role in COLUMNS:
            value = getattr(self, role)
            pairs += (
                [(role, name) for name in value]
                if isinstance(value, tuple)
                else [(role, value)]
                if value is not None
                else []
            )
        return pairs

    @property
    def error_of(self) -> dict[str, str]:
        """{value column: column of its standard errors}, for the errors that are named."""
        return dict(zip(self.values, self.errors, strict=False))

    @classmethod
    def resolve(cls, given: Mapping[str, Any], of_model: Mapping[str, Any] | None = None) -> TableSchema:
        """Merge options: those given (None, False and () count as not given), else the model's, else the defaults.

        Raises
        ------
        InputError
            Options that exclude each other.
        """
        known = {one.name for one in fields(cls)}
        given = {name: value for name, value in given.items() if value and name in known}
        # Which objects there were in training says nothing of those of another table.
        before = {name: value for name, value in (of_model or {}).items() if name in known - {"objects"}}
        wide = given.get("wide")
        if wide and "channel" in given:
            raise InputError("--channel names a column of channels, --wide says each has its own; give one of them.")
        if wide:
            before.pop("channel", None)
        if "channel" in given:
            before.pop("wide", None)
        return cls.from_json({"values": () if wide else cls.values, **before, **given})

    @classmethod
    def for_model(
        cls, preprocessor: Any, columns: Mapping[str, Any], given: Mapping[str, Any] | None = None
    ) -> TableSchema:
        """Return the schema for a trained model's table: that of its training table, changed by what is `given`."""
        schema = cls.resolve(given or {}, columns)
        # No static columns, of a model that is only pre-trained.
        static = tuple(column.name for column in preprocessor.static)
        return replace(schema, static=static, errors=preprocessor.errors, positions=preprocessor.position_names)

    def with_values_of(self, dataset: Any) -> TableSchema:
        """Return the schema with what reading `dataset` settled: the names of channels in a wide table, and units."""
        values = tuple(dataset.channel_names or dataset.value_names) if self.wide else self.values
        return replace(self, values=values, units=dataset.reading.units if dataset.reading else {})

    def to_json(self) -> dict[str, Any]:
        return json.loads(json.dumps(asdict(self)))

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> TableSchema:
        """Build a schema from the content that `to_json` returned. Raises InputError for an unknown field."""
        names = [one.name for one in fields(cls)]
        for name in content:
            if name not in names:
                raise InputError(f"a table has no {name!r}.{did_you_mean(name, names)}", code="unknown-field")
        lists = {name: tuple(content[name]) for name in LISTS if isinstance(content.get(name), list | tuple)}
        objects = content.get("objects")
        return cls(**{**content, **lists, "objects": None if objects is None else str(objects)})


def option(field: str) -> str:
    """Return the command's option for a field, such as "--time-format"."""
    return f"--{field.replace('_', '-')}"
