"""The fields of dataclasses: their documentation, their types and ranges, and as JSON, whatever a file says."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import json
import math
import textwrap
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from rotarymae.errors import InputError, choose


@functools.cache
def field_docs(group: type) -> dict[str, str]:
    """Return {field: the string below it in the source, on one line} for a dataclass and its base classes."""
    docs: dict[str, str] = {}
    for kind in reversed(group.__mro__):
        if kind is object or not dataclasses.is_dataclass(kind):
            continue
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
        assert isinstance(tree, ast.ClassDef)
        for field, text in zip(tree.body, tree.body[1:], strict=False):
            match field, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(doc))):
                    docs[name] = " ".join(doc.split())
    return docs


def as_json(content: Any, indent: int | None = 2) -> str:
    """Return content as strict JSON, as `plain_json` converts it, with a newline at its end."""
    return json.dumps(plain_json(content), indent=indent, allow_nan=False) + "\n"


def plain_json(content: Any) -> Any:
    """Return content as JSON can hold it: numpy's values as Python's, paths as text, NaN and infinity as None."""
    if hasattr(content, "tolist"):
        content = content.tolist()
    if isinstance(content, Mapping):
        return {str(key): plain_json(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [plain_json(value) for value in content]
    if isinstance(content, Path):
        return str(content)
    return None if isinstance(content, float) and not math.isfinite(content) else content


class Range(NamedTuple):
    """The numbers that a setting may hold: at least `least` and at most `most`, above `above` and below `below`."""

    least: float = -math.inf
    most: float = math.inf
    above: float = -math.inf
    below: float = math.inf

    def check(self, name: str, value: Any) -> None:
        """Raise InputError unless `value` is a finite number in the range; None, True and False are no numbers."""
        if not (_is_number(value) and self.least <= value <= self.most and self.above < value < self.below):
            words = {"least": "at least", "most": "at most", "above": "more than", "below": "less than"}
            limits = [f"{words[key]} {limit:g}" for key, limit in self._asdict().items() if math.isfinite(limit)]
            raise InputError(f"{name} is {value!r}; wanted a number of {' and '.join(limits)}.")


type_hints = functools.cache(get_type_hints)


def check_fields(holder: Any, ranges: Mapping[str, Range]) -> None:
    """Raise InputError where a field of a dataclass has a value of another type than its annotation, or out of range.

    Args:
        ranges: by name, for the numbers in a field; None is in every range.
    """
    hints = type_hints(type(holder))
    for field in dataclasses.fields(holder):
        value = getattr(holder, field.name)
        _read(value, hints[field.name], field.name)
        if field.name in ranges and value is not None:
            for number in value if isinstance(value, list | tuple) else (value,):
                ranges[field.name].check(field.name, number)


def from_fields(kind: type, fields: Any, where: str) -> Any:
    """Return an instance of the dataclass `kind`, from a dictionary as `dataclasses.asdict` makes it, or JSON of that.

    Lists become tuples and dictionaries dataclasses where the annotation says so. Every value is checked against its
    annotation; a field with a default may be absent.

    Args:
        fields: the dictionary.
        where: what the fields belong to, for messages.

    Raises:
        InputError: no dictionary; a field that is unknown, missing, or of another type.
    """
    if not isinstance(fields, dict):
        raise InputError(f"{where} is a {type(fields).__name__}; wanted an object of fields.")
    known, hints = {field.name: field for field in dataclasses.fields(kind)}, type_hints(kind)
    for name in fields:
        if name not in known:
            raise InputError(f"{where} has no field {name!r}; there are {', '.join(known)}.")
    for name, field in known.items():
        needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if needed and name not in fields:
            raise InputError(f"{where} lacks the field {name!r}.")
    return kind(**{name: _read(value, hints[name], name) for name, value in fields.items()})


def _read(value: Any, kind: Any, name: str) -> Any:
    """Return a JSON value as the annotation `kind` demands: lists become tuples, dictionaries dataclasses.

    Whole numbers become floats where one is wanted; True and False are no numbers. An annotation other than tuple,
    Literal, union, dict, dataclass, int, float, str, bool and None is not checked.

    Args:
        name: of the field, for messages.

    Raises:
        InputError: a value that does not fit.
    """
    origin, options = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        for option in sorted(options, key=lambda option: option in (int, float)):  # True is no number
            try:
                return _read(value, option, name)
            except InputError:
                continue
        raise _wrong(name, value, kind)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return from_fields(kind, value, name)
    if origin is Literal:
        choose(name, value, options)
        return value
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise _wrong(name, value, kind)
        each = [options[0]] * len(value) if options[-1:] == (...,) else list(options)
        if len(each) != len(value):
            raise _wrong(name, value, kind)
        return tuple(_read(one, option, name) for one, option in zip(value, each, strict=True))
    read: Any = lambda: float(value) if kind is float else value  # noqa: E731
    if kind is float:
        fits = _is_number(value)
    elif kind in (int, str, bool, type(None)):
        fits = type(value) is kind
    elif origin is list:
        fits, read = isinstance(value, list), lambda: [_read(one, options[0], name) for one in value]
    elif origin in (dict, Mapping):
        fits = isinstance(value, Mapping) and all(isinstance(key, str) for key in value)
        read = lambda: {key: _read(one, options[1], f"{name}.{key}") for key, one in value.items()}  # noqa: E731
    else:
        return value
    if not fits:
        raise _wrong(name, value, kind)
    return read()


def _wrong(name: str, value: Any, kind: Any) -> InputError:
    """Return the error for a field `name` whose value does not fit the annotation `kind`."""
    text = repr(value)
    return InputError(f"{name} is {text if len(text) < 80 else text[:77] + '...'}; wanted {_words(kind)}.")


def _words(kind: Any) -> str:
    """Return an annotation in words, for a message."""
    if get_origin(kind) in (Union, types.UnionType):
        return " or ".join(map(_words, get_args(kind)))
    if get_origin(kind) is tuple:
        return f"a list, each {_words(get_args(kind)[0])}"
    plain = {float: "a finite number", int: "a whole number", bool: "True or False", type(None): "None", str: "text"}
    return plain.get(kind, str(kind))


def _is_number(value: Any) -> bool:
    """Return whether a value is a finite number; True and False are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
