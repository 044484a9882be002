"""The documentation of the estimators: parameters, from the strings below the fields, and common attributes."""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
import types
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from rotarymae.system import field_docs

Class = TypeVar("Class", bound=type)
ATTRIBUTES = """
pipeline_ : Pipeline
    The fitted model with its preprocessor and partners.
history_ : dict
    What was logged, by training; not of a loaded estimator.
"""


def documented(cls: Class) -> Class:
    """Add numpydoc sections of parameters and attributes to the docstring of a dataclass, in place; return the class.

    Parameters are its fields, each documented by a string below it in the source. Options of the command in these texts
    become parameters: --batch-size becomes batch_size, and --no-cls-token becomes cls_token=False. Options that the
    class lacks, such as --minutes, stay. The docstring may have a section of attributes at its end, to which
    `ATTRIBUTES` is added; otherwise `ATTRIBUTES` is that section.
    """
    lines, docs, hints = ["Parameters", "----------"], field_docs(cls), get_type_hints(cls)
    for field in dataclasses.fields(cls):
        lines.append(f"{field.name} : {_type(hints[field.name])}, default={field.default!r}")
        doc = docs[field.name]
        for name in docs:
            option = name.replace("_", "-")
            doc = re.sub(rf"--no-{option}\b(?!-)", f"{name}=False", re.sub(rf"--{option}\b(?!-)", name, doc))
        lines += textwrap.wrap(doc, 100, initial_indent="    ", subsequent_indent="    ")
    head = "Attributes\n----------\n"
    above, _, attributes = inspect.cleandoc(cls.__doc__ or "").partition(head)
    cls.__doc__ = "\n\n".join((above.strip(), "\n".join(lines), head + (attributes + ATTRIBUTES).strip())) + "\n"
    return cls


def _type(annotation: Any) -> str:
    """Return an evaluated annotation as numpydoc writes it: "{'a', 'b'}", "int or None", "tuple of int" and so on."""
    if get_origin(annotation) is Literal:
        return "{" + ", ".join(repr(choice) for choice in get_args(annotation)) + "}"
    if get_origin(annotation) in (Union, types.UnionType):
        return " or ".join(_type(option) for option in get_args(annotation))
    if get_origin(annotation) is tuple:
        return f"tuple of {_type(get_args(annotation)[0])}"
    if annotation is type(None):
        return "None"
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")
