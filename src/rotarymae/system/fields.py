"""The fields of dataclasses: their documentation, types and ranges; and values of any type as JSON or plain numbers."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import json
import math
import sys
import textwrap
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np

from rotarymae.errors import InputError, did_you_mean, listed


@functools.cache
def field_docs(group: type) -> dict[str, str]:
    """Return {field: text} for a dataclass: the string literal below each field in its source, joined to one line.

    Fields of base classes come first. Fields without a string are left out. The result is cached: copy it to change it.
    Raises OSError if the source file is missing.
    """
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
    """Return content as strict JSON text, which ends in a newline; on one line if `indent` is None.

    `plain_json` converts the content first: NaN and infinity become null. Raises TypeError for what JSON cannot hold
    then, such as a date.
    """
    return json.dumps(plain_json(content), indent=indent, allow_nan=False) + "\n"


def plain_json(content: Any) -> Any:
    """Return nested content as JSON can hold it.

    Arrays, tensors and numpy's scalars become Python's lists and numbers; tuples become lists; keys of dictionaries and
    paths become text; NaN and infinity become None. Anything else is left as it is.
    """
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
    """The numbers that a setting may hold.

    Attributes:
        least, most: the smallest and the largest number.
        above, below: numbers must be more than `above` and less than `below`.
    """

    least: float = -math.inf
    most: float = math.inf
    above: float = -math.inf
    below: float = math.inf

    def check(self, name: str, value: Any) -> None:
        """Raise InputError unless `value`, of the setting `name`, is a finite number in the range, and no bool."""
        if not (_is_number(value) and self.least <= value <= self.most and self.above < value < self.below):
            words = {"least": "at least", "most": "at most", "above": "more than", "below": "less than"}
            limits = [f"{words[key]} {limit:g}" for key, limit in self._asdict().items() if math.isfinite(limit)]
            raise InputError(f"{name} is {value!r}; wanted a number of {' and '.join(limits)}.")


type_hints = functools.cache(get_type_hints)


def check_fields(holder: Any, ranges: Mapping[str, Range]) -> None:
    """Check every field of a dataclass against its annotation and its range, and convert some values in place.

    Numpy's scalars become Python's, and arrays lists. If the annotation is a tuple, a text "a" becomes ("a",), and a
    list or another sequence a tuple; sets and dictionaries are refused, as they have no order. If the annotation is a
    union with a tuple in it, a list becomes a tuple.

    Args:
        holder: the instance, also of a frozen dataclass.
        ranges: {field: its range}, for a field's number or for each number in its tuple or list. None is not checked.

    Raises:
        InputError: a value of another type than the annotation, or a number out of range; the first one is named.
    """
    hints = type_hints(type(holder))
    for field in dataclasses.fields(holder):
        name, kind, value = field.name, hints[field.name], getattr(holder, field.name)
        options = get_args(kind) if get_origin(kind) in (Union, types.UnionType) else ()
        value = without_numpy(value)
        if get_origin(kind) is tuple and isinstance(value, str | Sequence):
            value = (value,) if isinstance(value, str) else tuple(value)
        elif isinstance(value, list) and any(get_origin(option) is tuple for option in options):
            value = tuple(value)
        object.__setattr__(holder, name, value)
        if not fits(value, kind):
            raise _wrong(name, value, kind)
        if name in ranges and value is not None:
            for number in value if isinstance(value, list | tuple) else (value,):
                ranges[name].check(name, number)


def without_numpy(value: Any) -> Any:
    """Convert a numpy scalar to int, float, bool or str, and an array, a tensor or a pandas column to a list of these.

    Lists and tuples stay lists and tuples, with their items converted. Anything else is returned unchanged.
    """
    if isinstance(value, list | tuple):
        return (list if isinstance(value, list) else tuple)(map(without_numpy, value))
    return value.tolist() if hasattr(value, "tolist") else value


def unmasked(values: Any) -> np.ndarray:
    """Return values as a plain array, in which masked entries, also in a list of masked rows, are NaN (NaT for dates).

    If some entries are masked, whole numbers and booleans become float64; in text they are "nan". Else the dtype stays.
    Raises ValueError for rows of unequal length.
    """
    if type(values) in (list, tuple) and any(isinstance(one, np.ma.MaskedArray) for one in values):
        values = np.ma.array(values)
    if not np.ma.is_masked(values):
        return np.asarray(values)
    if values.dtype.kind in "mM":
        return values.filled(np.array("NaT", values.dtype))
    if values.dtype.kind in "US":  # which may be too short for "nan"
        return np.where(values.mask, "nan", values.data)
    return (values.astype(np.float64) if values.dtype.kind in "iub" else values).filled(np.nan)


def fits(value: Any, kind: Any) -> bool:
    """Return whether a value is of the type that an annotation names, also inside lists, tuples and dictionaries.

    A whole number fits float, but NaN and infinity do not; a list fits a tuple; any dictionary fits a dataclass, and
    nothing else does; True and False fit bool only.

    Args:
        value: any value; numpy's scalars do not fit int, str and bool.
        kind: a union, Literal, tuple, list, dict, Mapping, float, int, str, bool, None, or a dataclass. Keys of dict
            and Mapping must be text. Any value fits another annotation.
    """
    origin, options = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return any(fits(value, option) for option in options)
    if origin is Literal:
        return type(value) in map(type, options) and value in options
    if origin is tuple:
        each = options[:1] * len(value) if isinstance(value, list | tuple) and options[1:] == (...,) else options
        return isinstance(value, list | tuple) and len(each) == len(value) and all(map(fits, value, each))
    if origin is list:
        return isinstance(value, list) and all(fits(one, options[0]) for one in value)
    if origin in (dict, Mapping):
        return isinstance(value, Mapping) and all(type(k) is str and fits(v, options[1]) for k, v in value.items())
    if kind is float:
        return _is_number(value)
    if kind in (int, str, bool, type(None)):
        return type(value) is kind
    return isinstance(value, dict) if dataclasses.is_dataclass(kind) else True


def from_fields(kind: type, fields: Any, whole: str) -> Any:
    """Build a dataclass from a dictionary, such as JSON of `dataclasses.asdict`, and check every value.

    Lists become tuples and dictionaries dataclasses where the annotation says so. A field with a default may be absent.

    Args:
        kind: the dataclass.
        fields: {field: value}.
        whole: the name of the whole, such as "preprocessor", for messages on unknown and missing fields.

    Returns:
        An instance of `kind`.

    Raises:
        InputError: no dictionary; a field that is unknown, missing, or of another type than its annotation; what the
            dataclass itself refuses.
    """
    if not isinstance(fields, dict):
        raise InputError(
            f"{whole} is a {type(fields).__name__}; give an object with a value for each field, as in "
            '{"name": "value"}.'
        )
    known, hints = {field.name: field for field in dataclasses.fields(kind)}, type_hints(kind)
    for name in fields:
        if name not in known:
            raise InputError(f"{whole} has no field {name!r}; use only {', '.join(known)}.")
    for name, field in known.items():
        needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if needed and name not in fields:
            raise InputError(f"{whole} lacks the field {name!r}; give it a value.")
    return kind(**{name: _read(value, hints[name], name) for name, value in fields.items()})


def _read(value: Any, kind: Any, name: str) -> Any:
    """Convert a JSON value to the type `kind`, the annotation of the field `name`, and return it.

    Lists become tuples, dictionaries dataclasses and whole numbers floats, where the annotation says so, also inside
    lists and dictionaries. Raises InputError, with the name of the field, for a value that does not fit.
    """
    origin, options = get_origin(kind), get_args(kind)
    if not fits(value, kind):
        raise _wrong(name, value, kind)
    if origin in (Union, types.UnionType):
        return _read(value, next(option for option in options if fits(value, option)), name)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return from_fields(kind, value, name)
    if origin is tuple:
        each = options[:1] * len(value) if options[1:] == (...,) else options
        return tuple(_read(one, option, name) for one, option in zip(value, each, strict=True))
    if origin is list:
        return [_read(one, options[0], name) for one in value]
    if origin in (dict, Mapping):
        return {key: _read(one, options[1], f"{name}.{key}") for key, one in value.items()}
    return float(value) if kind is float else value


def _wrong(name: str, value: Any, kind: Any) -> InputError:
    """Return the error, for the caller to raise, that says that a field's value does not fit its annotation `kind`.

    Its code is "unknown-option" for a Literal.
    """
    text, options = repr(value), get_args(kind)
    if get_origin(kind) is Literal:
        known = f"{listed(options)}.{did_you_mean(value, options)}"
        return InputError(f"{name}={text:.80} is not known; use one of {known}", code="unknown-option")
    return InputError(f"{name} is {text if len(text) < 80 else text[:77] + '...'}; wanted {_words(kind)}.")


def _words(kind: Any) -> str:
    """Return an annotation in words, for a message: int | None becomes "a whole number or None"."""
    if get_origin(kind) in (Union, types.UnionType):
        return " or ".join(map(_words, get_args(kind)))
    if get_origin(kind) is Literal:
        return f"one of {listed(get_args(kind))}"
    if get_origin(kind) in (tuple, list):
        each, *more = get_args(kind)
        count = "" if more in ([], [...]) else f" of {1 + len(more)}"
        return f"a list{count}, each {_words(each)}"
    if get_origin(kind) in (dict, Mapping):
        each = get_args(kind)[1]
        return "a dictionary" if each is Any else f"a dictionary, each value {_words(each)}"
    if dataclasses.is_dataclass(kind):
        return "a dictionary of fields"
    plain = {float: "a finite number", int: "a whole number", bool: "True or False", type(None): "None", str: "text"}
    return plain.get(kind, str(kind))


def _is_number(value: Any) -> bool:
    """Return whether a value is a finite Python or numpy number within the range of float64, and no bool."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return number and bool(abs(value) <= sys.float_info.max)
