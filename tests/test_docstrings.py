"""Check the docstrings of the public names: numpydoc's validator, and a section for what is raised."""

import ast
import inspect
import re
import textwrap
from pathlib import Path

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
    if function.__code__.co_filename == "<string>":  # of a dataclass, which only stores
        return
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    raised = {node.exc.func.id for node in ast.walk(tree) if isinstance(node, ast.Raise) and hasattr(node.exc, "func")}
    text = inspect.getdoc(raw)
    for error in raised & {"InputError", "ModelDirectoryError"}:
        assert re.search(rf"^Raises\n------\n(.*\n)*?{error}\b", text, re.MULTILINE), f"{name} raises {error}"


SOURCE = Path(rotarymae.__file__).parent
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}


def test_one_name_has_one_meaning():
    """No two modules have one public name at the top; both functions `load` are public, as agreed."""
    modules = {}
    for path, tree in TREES.items():
        for node in tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            for name in [node.name] if isinstance(node, ast.FunctionDef | ast.ClassDef) else names:
                modules.setdefault(name, set()).add(path)
    assert len(modules) > 500
    shared = {name: paths for name, paths in modules.items() if len(paths) > 1 and not name.startswith("_")}
    assert set(shared) == {"load"}


def test_names_and_docstrings_are_plain():
    words, starts = {"found", "own", "came", "told", "wanted"}, r"(Of|What|Those|As many|So many)\b"
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
                assert not re.match(starts, ast.get_docstring(node) or ""), f"{path}: {ast.get_docstring(node)}"
            named = [getattr(node, field, None) for field in ("id", "arg", "name", "attr", "asname")]
            assert not words & set(filter(None, named)), f"{path}:{getattr(node, 'lineno', '')}"


def test_the_list_of_names_is_not_empty():
    assert len(NAMES) > 50
