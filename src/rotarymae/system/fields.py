"""The fields of dataclasses: their documentation, and as JSON, written and read whatever a file says."""

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
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from rotarymae.errors import InputError


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
    if origin in (tuple, list):
        if isinstance(value, list | tuple):
            each = [options[0]] * len(value) if origin is list or options[-1:] == (...,) else options
            if len(each) == len(value):
                return origin(_read(one, option, name) for one, option in zip(value, each, strict=True))
    elif origin is dict:
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return {key: _read(one, options[1], f"{name}.{key}") for key, one in value.items()}
    elif origin is Literal:
        if value in options and type(value) in {type(option) for option in options}:
            return value
    elif kind is float:
        if type(value) in (int, float) and math.isfinite(value):
            return float(value)
    elif kind not in (int, str, bool, type(None)) or type(value) is kind:
        return value
    raise _wrong(name, value, kind)


def _wrong(name: str, value: Any, kind: Any) -> InputError:
    """Return the error for a field `name` whose value does not fit the annotation `kind`."""
    text, needed = repr(value), kind.__name__ if isinstance(kind, type) else kind
    return InputError(f"the field {name!r} holds {text if len(text) < 80 else text[:77] + '...'}; wanted {needed}.")
