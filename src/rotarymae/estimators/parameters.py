"""Keyword parameters of the estimators, made from the options of a fit: their signature, defaults and documentation."""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
import types
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from rotarymae.system import field_docs


class Parameter(NamedTuple):
    """One keyword of an estimator."""

    name: str
    annotation: Any
    default: Any
    doc: str


def options(*groups: type, without: tuple[str, ...] = (), **defaults: Any) -> dict[str, Parameter]:
    """Return {name: parameter} for the fields of dataclasses, documented by the string below each field.

    Args:
        groups: the dataclasses; of a name in several, the last counts.
        without: fields to leave out.
        defaults: defaults that differ from those of the fields.
    """
    parameters = {}
    for group in groups:
        docs, hints = field_docs(group), get_type_hints(group)
        for field in dataclasses.fields(group):
            if field.name not in without:
                default = defaults.get(field.name, field.default)
                # The command types --batch-size, Python batch_size.
                doc = re.sub(r"--([a-z-]+)", lambda option: option[1].replace("-", "_"), docs[field.name])
                parameters[field.name] = Parameter(field.name, hints[field.name], default, doc)
    return parameters


def takes(parameters: dict[str, Parameter]) -> Callable[[type], type]:
    """Return a class decorator that gives a class an `__init__` with these keywords, and documents them.

    The class is changed in place: its docstring gets a numpydoc section of the parameters, its `__init__` a signature.
    """

    def decorate(cls: type) -> type:
        """Give the class an `__init__` with these keywords, add them to its docstring, and return it."""

        def __init__(self: Any, **given: Any) -> None:
            """Set every parameter as an attribute, by its default if it is not given; raise TypeError for another."""
            unknown = [name for name in given if name not in parameters]
            if unknown:
                raise TypeError(f"{type(self).__name__} has no parameter {unknown[0]!r}")
            for name, parameter in parameters.items():
                setattr(self, name, given.get(name, parameter.default))

        keyword = inspect.Parameter.KEYWORD_ONLY
        signature_parameters = [
            inspect.Parameter(p.name, keyword, default=p.default, annotation=p.annotation) for p in parameters.values()
        ]
        self_parameter = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        __init__.__signature__ = inspect.Signature([self_parameter, *signature_parameters])  # type: ignore[attr-defined]
        __init__.__qualname__ = f"{cls.__qualname__}.__init__"
        cls.__init__ = __init__  # type: ignore[misc]
        cls.__doc__ = documented(inspect.cleandoc(cls.__doc__ or ""), parameters)
        return cls

    return decorate


def documented(docstring: str, parameters: dict[str, Parameter]) -> str:
    """Return a cleaned docstring with a numpydoc section of the parameters, before that of the attributes if any."""
    lines = ["Parameters", "----------"]
    for parameter in parameters.values():
        lines.append(f"{parameter.name} : {_type(parameter.annotation)}, default={parameter.default!r}")
        lines += textwrap.wrap(parameter.doc, 100, initial_indent="    ", subsequent_indent="    ")
    above, attributes, below = docstring.partition("Attributes\n----------")
    return "\n\n".join(part for part in (above.strip(), "\n".join(lines), (attributes + below).strip()) if part) + "\n"


def _type(annotation: Any) -> str:
    """Return an annotation as numpydoc writes it: choices in braces, alternatives with "or"."""
    if get_origin(annotation) is Literal:
        return "{" + ", ".join(repr(choice) for choice in get_args(annotation)) + "}"
    if get_origin(annotation) in (Union, types.UnionType):
        return " or ".join(_type(option) for option in get_args(annotation))
    if get_origin(annotation) is tuple:
        return f"tuple of {_type(get_args(annotation)[0])}"
    if annotation is type(None):
        return "None"
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")
