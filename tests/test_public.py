"""What users import: what it costs, that every name is there and documented, and that dependence runs one way."""

import ast
import importlib
import inspect
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

import rotarymae

SOURCE = Path(rotarymae.__file__).parent
MODULES = sorted(".".join(file.relative_to(SOURCE).with_suffix("").parts) for file in SOURCE.rglob("*.py"))

# A module imports those of its own line and of lines before it. What stands in one line may depend on one another.
ORDER = [
    ["errors", "__init__"],
    ["tokens", "rope", "product"],
    ["masking", "tokenizers", "transformer"],
    ["model"],
    ["heads", "losses"],
    ["files", "tables", "machine"],
    ["columns", "observations", "store"],
    ["decode", "sources"],
    ["series"],
    ["scaling", "labels"],
    ["checkpoints", "official", "batches", "objectives", "runs", "series_forms"],
    ["train_config"],
    ["optimisation", "processes", "diagnosis", "lanes"],
    ["evaluation"],
    ["training"],
    ["baselines", "data"],
    ["workflows", "inference", "interpolation"],
    ["progress", "plots"],
    ["experiment", "asking", "classifying"],
    ["recipes"],
    ["report", "page", "page_images", "estimators", "fitting", "results"],
    ["summary"],
    ["cli_recipes", "cli_table"],
    ["cli"],
]
IDEA = ["tokens", "tokenizers", "rope", "masking", "product", "transformer", "model", "heads", "losses"]
LEAVES = ["cli", "recipes", "estimators", "plots", "report", "page"]
# plots, report and page are for people: only the run's summary, the recipes and the command, which show it to them,
# read these; and recipes are read by what runs them and by what reads their results.
READERS = {"summary", "cli", "report", "page", "recipes", "__init__"}


def rank(module):
    """The line of ORDER; a module of a package stands in its package's line, and __init__ is the front door."""
    return next(i for i, line in enumerate(ORDER) if module.split(".")[0] in line)


def imports(module, everywhere=True):
    """(names of this package's modules, names of other packages) that a module imports; with everywhere, also inside
    functions; under TYPE_CHECKING never."""
    path = SOURCE / (module.replace(".", "/") + ".py")
    own, others = set(), set()

    def walk(node):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            names = [node.module or ""]
            if node.module in ("rotarymae", "rotarymae.data", "rotarymae.recipes"):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            names = []
        for name in names:
            if name.split(".")[0] != "rotarymae":
                others.add(name.split(".")[0])
            elif name.removeprefix("rotarymae.") in MODULES:
                own.add(name.removeprefix("rotarymae."))
        if everywhere or not isinstance(node, ast.FunctionDef):
            for child in ast.iter_child_nodes(node):
                walk(child)

    walk(ast.parse(path.read_text(encoding="utf-8")))
    return own, others


def test_every_module_has_its_place():
    tops = {module.split(".")[0] for module in MODULES}
    assert tops == {name for line in ORDER for name in line}
    assert len(MODULES) > 30


@pytest.mark.parametrize("module", [m for m in MODULES if m != "__init__"])
def test_dependence_runs_one_way(module):
    own, _ = imports(module)
    later = {name for name in own if rank(name) > rank(module)}
    assert not later, f"{module} imports {later}, which stand after it"


@pytest.mark.parametrize("module", [m for m in MODULES if m != "__init__"])
def test_nothing_imports_what_is_for_people(module):
    own, _ = imports(module)
    tops = {name.split(".")[0] for name in own if name.split(".")[0] != module.split(".")[0]}
    allowed = {"plots", "report", "page"} if module.split(".")[0] in READERS else set()
    allowed |= {"recipes"} if module in ("cli", "cli_recipes", "results") else set()
    assert tops & set(LEAVES) <= allowed


def test_no_cycles():
    graph = {module: imports(module, everywhere=False)[0] for module in MODULES if module != "__init__"}
    done, open_ = set(), []

    def visit(module):
        assert module not in open_, f"{' → '.join([*open_, module])}"
        if module not in done and module in graph:
            open_.append(module)
            for name in graph[module]:
                visit(name)
            done.add(open_.pop())

    for module in graph:
        visit(module)
    assert done == set(graph)


@pytest.mark.parametrize("module", IDEA)
def test_the_idea_knows_no_tables(module):
    own, others = imports(module)
    assert {name.split(".")[0] for name in own} <= {*IDEA, "errors"}
    assert others <= {
        "__future__",
        "collections",
        "dataclasses",
        "difflib",
        "functools",
        "itertools",
        "math",
        "typing",
        "pathlib",
        "platform",
    } | {
        "jaxtyping",
        "numpy",
        "torch",
    }


@pytest.mark.parametrize("name", rotarymae.__all__)
def test_public_names_resolve_and_are_documented(name):
    found = getattr(rotarymae, name)
    assert inspect.getdoc(found)
    assert name in dir(rotarymae)


def test_public_names_are_the_agreed_ones():
    agreed = {"Tokens", "RoMAEConfig", "MaskedAutoencoder", "Encoder", "Classifier", "Regressor", "SeriesDataset"}
    agreed |= {"RoMAEClassifier", "RoMAERegressor", "RoMAEInterpolator", "RoMAEEmbedder", "load", "save", "official"}
    assert agreed <= set(rotarymae.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Classifer'"):
        _ = rotarymae.Classifer


@pytest.mark.parametrize("module", MODULES)
def test_every_module_says_what_it_is(module):
    if module.endswith("__init__"):
        module = module.removesuffix("__init__").rstrip(".")
        if module in ("data", "recipes"):
            return
    assert importlib.import_module(f"rotarymae.{module}".rstrip(".")).__doc__


def seconds(statement):
    code = f"import time, torch; start = time.perf_counter(); {statement}; print(time.perf_counter() - start)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(out.stdout)


def test_importing_is_cheap():
    assert statistics.median(seconds("import rotarymae") for _ in range(3)) < 0.3


def test_importing_loads_nothing_heavy():
    code = "import sys, rotarymae; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "rotarymae" in loaded
    assert not {"pandas", "pyarrow", "sklearn", "matplotlib", "accelerate", "tyro", "scipy"} & set(loaded)
