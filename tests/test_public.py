"""What users import: what it costs, that every name is there and documented; and that dependence runs one way."""

import ast
import graphlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import rotarymae

SOURCE = Path(rotarymae.__file__).parent

# A package (or module at the top) imports those of its own line and of lines before it. Add a new one where it belongs;
# one that is not named here must only close no circle.
ORDER = """
errors system counter_rng
tokens tokenizers config rope likelihoods masking transformer neighbours model heads losses
processes any_series
batch
series arrays tables preprocess
datasets
model_files official
training
data partners targets survival plots labels models
queries splits metrics
prediction surroundings calibration interpolation reconstruction anomaly untrained
saving
pipeline
ensemble
run_folder
train
outcome scoring run
export estimators report scale
cli
"""
LINE = {name: number for number, line in enumerate(ORDER.split("\n")) for name in line.split()}


def package(file):
    return file.relative_to(SOURCE).with_suffix("").parts[0]


def imports(tree):
    """Yield the packages of rotarymae that a module imports, also within functions, but not under TYPE_CHECKING."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            names = []
        yield from (name.split(".")[1] for name in names if name.startswith("rotarymae."))
        yield from imports(node)


def test_dependence_runs_one_way():
    graph = {}
    for file in SOURCE.rglob("*.py"):
        if (name := package(file)) not in ("__init__", "__main__"):
            imported = set(imports(ast.parse(file.read_text(encoding="utf-8")))) - {name, "__version__"}
            graph.setdefault(name, set()).update(imported)
    upwards = [
        f"{name} imports {other}"
        for name, imported in graph.items()
        for other in imported
        if LINE.get(other, -1) > LINE.get(name, len(LINE))
    ]
    assert not upwards
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError
    assert len(graph) > 10


@pytest.mark.parametrize("name", rotarymae.__all__)
def test_public_names_resolve_and_are_documented(name):
    assert inspect.getdoc(getattr(rotarymae, name))
    assert name in dir(rotarymae)


def test_public_names_are_the_agreed_ones():
    agreed = {"Tokens", "RoMAEConfig", "MaskedAutoencoder", "Encoder", "Classifier", "Regressor", "SeriesDataset"}
    agreed |= {
        "RoMAEClassifier",
        "RoMAERegressor",
        "RoMAESurvival",
        "RoMAEInterpolator",
        "RoMAEEmbedder",
        "load",
        "Pipeline",
        "official",
    }
    assert agreed <= set(rotarymae.__all__)
    with pytest.raises(AttributeError, match="Classifer"):
        _ = rotarymae.Classifer


def test_loading_a_model_leaves_torchs_compiler_alone():
    """It takes seconds to import."""
    code = "import sys, rotarymae; rotarymae.load(sys.argv[1]); print('torch._dynamo' in sys.modules)"
    words = [sys.executable, "-c", code, str(SOURCE / "models/plasticc-ugrizy")]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout.split() == ["False"]


def test_importing_loads_nothing_heavy():
    code = "import sys, rotarymae; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "rotarymae" in loaded
    assert not {"pandas", "pyarrow", "sklearn", "matplotlib", "tyro", "scipy"} & set(loaded)
