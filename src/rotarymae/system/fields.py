"""A dataclass that a file of ours holds as JSON."""

from __future__ import annotations

import dataclasses
import types
from typing import Any, Union, get_args, get_origin, get_type_hints

from rotarymae.errors import InputError


def from_fields(kind: type, fields: dict[str, Any], where: str) -> Any:
    """Return the dataclass `kind` from the dictionary of `dataclasses.asdict`, also after JSON, which has no tuples.

    Args:
        where: what the fields are of, for messages.

    Raises:
        InputError: a field that is unknown or missing, or that holds a list where there should be none.
    """
    known, hints = {field.name: field for field in dataclasses.fields(kind)}, get_type_hints(kind)
    for name in fields:
        if name not in known:
            raise InputError(f"{where} has no field {name!r}; there are {', '.join(known)}.")
    for name, field in known.items():
        needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if needed and name not in fields:
            raise InputError(f"{where} lacks the field {name!r}.")
    return kind(**{name: _read(value, hints[name], name) for name, value in fields.items()})


def _read(value: Any, kind: Any, name: str) -> Any:
    """Return the value as its annotation has it: a list becomes a tuple, an object a dataclass."""
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return from_fields(kind, value, name)
    if not isinstance(value, list | tuple):
        return value
    if get_origin(kind) in (Union, types.UnionType):
        kind = next((option for option in get_args(kind) if get_origin(option) is tuple), None)
    if get_origin(kind) is not tuple:
        raise InputError(f"the field {name!r} holds the list {value!r}; wanted {kind}.")
    return tuple(_read(one, get_args(kind)[0], name) for one in value)
