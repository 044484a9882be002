"""What users import: what it costs, that every name is there and documented, and that dependence runs one way."""

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import rotarymae

SOURCE = Path(rotarymae.__file__).parent
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

import structure  # noqa: E402

MODULES = structure.modules(SOURCE)

# A unit imports those of its own line and of lines before it.
ORDER = [
    ["errors", "system", "counter_rng"],
    # the paper
    [
        "tokens",
        "tokenizers",
        "config",
        "rope",
        "position_encodings",
        "masking",
        "transformer",
        "neighbours",
        "model",
        "heads",
        "losses",
    ],
    ["batch"],
    # tables and arrays in, tokens out
    ["series", "arrays"],
    ["checkpoints", "official"],
    ["training"],
    ["data", "plots"],
    # what a user wants done
    ["tasks"],
    ["export", "estimators", "report", "scale"],
    # the paper's experiments and ours
    ["experiments"],
    ["recipes"],
    ["cli"],
]
PAPER = ORDER[1]


def rank(module):
    """The line of ORDER."""
    return next(i for i, line in enumerate(ORDER) if module.split(".")[0] in line)


def test_every_unit_has_its_place():
    assert {module.split(".")[0] for module in MODULES} == {name for line in ORDER for name in line}


@pytest.mark.parametrize("module", MODULES)
def test_dependence_runs_one_way(module):
    own, _ = structure.imports(SOURCE, module)
    later = {name for name in own if rank(name) > rank(module)}
    assert not later, f"{module} imports {later}, which stand after it"


def test_the_house_stays_small_and_has_no_circle():
    graph = structure.units(SOURCE)
    assert len(graph) <= 30
    assert max(structure.levels(graph).values()) <= 10


def test_the_map_of_contributing_is_the_tree():
    text = (SOURCE.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert text == structure.with_map(text, SOURCE), "run `python scripts/structure.py --map`"


def test_training_knows_no_table_and_only_the_top_imports_what_is_for_people():
    graph = structure.units(SOURCE)
    assert not graph["training"] & {"data", "tasks"}
    assert not graph["model"] & {"series", "data", "losses", "training"}
    for leaf in ("cli", "recipes", "report"):
        assert {unit for unit, own in graph.items() if leaf in own} <= {"cli", "experiments", "recipes"}


@pytest.mark.parametrize("module", PAPER)
def test_the_paper_knows_no_tables(module):
    own, others = structure.imports(SOURCE, module)
    assert {name.split(".")[0] for name in own} <= {*PAPER, "errors", "counter_rng"}
    standard = {name for name in others if name in sys.stdlib_module_names}
    assert others - standard <= {"jaxtyping", "numpy", "torch"}


@pytest.mark.parametrize("name", rotarymae.__all__)
def test_public_names_resolve_and_are_documented(name):
    found = getattr(rotarymae, name)
    assert inspect.getdoc(found)
    assert name in dir(rotarymae)


def test_public_names_are_the_agreed_ones():
    agreed = {"Tokens", "RoMAEConfig", "MaskedAutoencoder", "Encoder", "Classifier", "Regressor", "SeriesDataset"}
    agreed |= {"RoMAEClassifier", "RoMAERegressor", "RoMAEInterpolator", "RoMAEEmbedder", "load", "save", "official"}
    assert agreed <= set(rotarymae.__all__)
    with pytest.raises(AttributeError, match="rotarymae attribute Classifer"):
        _ = rotarymae.Classifer


@pytest.mark.parametrize("module", MODULES)
def test_every_module_says_what_it_is(module):
    assert importlib.import_module(f"rotarymae.{module}").__doc__


def test_loading_a_model_leaves_torchs_compiler_alone():
    """It takes seconds to import."""
    code = "import sys, rotarymae; rotarymae.load(sys.argv[1]); print('torch._dynamo' in sys.modules)"
    words = [sys.executable, "-c", code, str(SOURCE / "models/plasticc-ugrizy")]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout.split() == ["False"]


def test_importing_loads_nothing_heavy():
    code = "import sys, rotarymae; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "rotarymae" in loaded
    assert not {"pandas", "pyarrow", "sklearn", "matplotlib", "accelerate", "tyro", "scipy"} & set(loaded)
