"""A dataclass that a file of ours holds as JSON, compared with what its annotations promise."""

from __future__ import annotations

import dataclasses
import math
import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from rotarymae.errors import InputError

WORDS = {str: "text", bool: "true or false", int: "a whole number", float: "a finite number", type(None): "null"}


def from_fields(kind: type, fields: Any, root: str, path: str = "") -> Any:
    """The dataclass `kind` from the dictionary that `dataclasses.asdict` gave, also after JSON.

    Args:
        root: what the whole file holds, for messages.
        path: where in it these fields are.

    Raises:
        InputError: a field that is unknown, is missing, or holds something else than its annotation says; by its path.
    """
    where = path or root
    if not isinstance(fields, dict):
        raise InputError(f"{where} is {type(fields).__name__}; wanted an object of fields.")
    known, hints = {field.name: field for field in dataclasses.fields(kind)}, get_type_hints(kind)
    for name in fields:
        if name not in known:
            raise InputError(f"{where} has no field {name!r}; there are {', '.join(known)}.")
    for name, field in known.items():
        needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if needed and name not in fields:
            raise InputError(f"{where} lacks the field {name!r}.")
    inside = f"{path}." if path else ""
    return kind(**{name: _read(value, hints[name], f"{inside}{name}") for name, value in fields.items()})


def _read(value: Any, kind: Any, path: str) -> Any:
    """The value as its annotation has it: a list becomes a tuple, an object a dataclass."""
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any or (origin is dict and isinstance(value, dict)):
        return value
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return from_fields(kind, value, path, path)
    if origin in (Union, types.UnionType):
        for option in args:
            if _fits(value, option):
                return _read(value, option, path)
    elif origin is tuple and isinstance(value, list | tuple):
        kinds = args[:1] * len(value) if args[-1] is ... else args
        if len(kinds) == len(value):
            return tuple(_read(one, of, f"{path}[{i}]") for i, (one, of) in enumerate(zip(value, kinds, strict=True)))
    elif _fits(value, kind):
        return value
    raise InputError(f"{path} is {value!r:.60}; wanted {_words(kind)}.")


def _fits(value: Any, kind: Any) -> bool:
    """Whether it is of this kind as a whole; of a list and an object, only whether it is one."""
    if get_origin(kind) is Literal:
        return isinstance(value, str) and value in get_args(kind)
    if get_origin(kind) is tuple:
        return isinstance(value, list | tuple)
    if type(value) is str:  # a lone half of a surrogate pair can be neither printed nor put into an array
        return kind is str and not any("\ud800" <= letter <= "\udfff" for letter in value)
    if type(value) is int:
        return kind in (int, float) and abs(value) < 2**63
    return type(value) is kind and (kind is not float or math.isfinite(value))


def _words(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"one of {', '.join(get_args(kind))}"
    if get_origin(kind) in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(_words, get_args(kind))))
    return WORDS.get(kind, "an object" if get_origin(kind) is dict else "a list")
