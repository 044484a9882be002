"""Check the docstrings of the public names: numpydoc's validator, and a section for what is raised."""

import ast
import inspect
import re
import textwrap

import pytest
from numpydoc.validate import validate

import rotarymae

# A summary of one line in the imperative; every parameter and every answer named, typed and described.
CHECKS = {"GL08", "SS02", "SS03", "SS05", "SS06", "PR01", "PR02", "PR03", "PR04", "PR07", "PR10", "RT01", "RT03"}


def public_names():
    """Return the public names and the public methods and properties that classes among them define."""
    for name in rotarymae.__all__:
        thing = getattr(rotarymae, name)
        yield f"rotarymae.{name}"
        if inspect.ismodule(thing):
            yield f"rotarymae.{name}.load"
        for member, _ in inspect.getmembers(thing) if inspect.isclass(thing) else ():
            raw = inspect.getattr_static(thing, member)
            function = getattr(raw, "fget", getattr(raw, "__func__", raw))
            ours = inspect.isfunction(function) and function.__module__.startswith("rotarymae")
            if not member.startswith("_") and ours:
                yield f"rotarymae.{name}.{member}"


NAMES = sorted(public_names())


@pytest.mark.parametrize("name", NAMES)
def test_a_docstring_passes_numpydocs_validator(name):
    errors = [(code, text) for code, text in validate(name)["errors"] if code in CHECKS]
    assert not errors


@pytest.mark.parametrize("name", NAMES)
def test_a_docstring_says_what_is_raised(name):
    _, owner, *member = name.split(".")
    thing = getattr(rotarymae, owner)
    raw = inspect.getattr_static(thing, member[0]) if member else thing
    function = getattr(raw, "fget", getattr(raw, "__func__", raw))
    if inspect.isclass(function):
        function = function.__dict__.get("__post_init__", function.__dict__.get("__init__"))
    if not inspect.isfunction(function) or not function.__module__.startswith("rotarymae"):
        return
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    raised = {node.exc.func.id for node in ast.walk(tree) if isinstance(node, ast.Raise) and hasattr(node.exc, "func")}
    text = inspect.getdoc(raw)
    for error in raised & {"InputError", "ModelDirectoryError"}:
        assert re.search(rf"^Raises\n------\n(.*\n)*?{error}\b", text, re.MULTILINE), f"{name} raises {error}"


def test_the_list_of_names_is_not_empty():
    assert len(NAMES) > 50
