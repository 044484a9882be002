"""Check the documentation: its code runs, and its links and the names of the code exist."""

import functools
import importlib.util
import inspect
import re
from pathlib import Path
from typing import get_args, get_type_hints

import matplotlib
import matplotlib.pyplot as plt
import pytest
import torch

import rotarymae
from rotarymae import RoMAEClassifier, RoMAEEmbedder, RoMAEInterpolator, RoMAERegressor, RoMAESurvival
from rotarymae.cli.main import COMMANDS, main
from rotarymae.training.fit_config import FitConfig
from test_docstrings import NAMES

matplotlib.use("Agg")
ROOT = Path(__file__).parents[1]
PAGES = sorted(path for path in (ROOT / "docs").glob("*.md") if path.name != "results.md")
QUESTIONS = ("light-curves", "interpolation", "intensive-care", "anomalies", "bands", "few-labels", "field")
QUESTIONS += ("scale-out", "paper-to-code", "images-and-sound", "time-to-event")
# A page shows the defaults, which train for minutes; here one epoch of a small model must do.
SHAPE = {"embed_dim": 48, "num_heads": 2, "depth": 1}
SHAPE |= {"decoder_embed_dim": 48, "decoder_num_heads": 2, "decoder_depth": 1}
QUICK = {"pretrain_epochs": 1, "finetune_epochs": 1, "min_steps": 0, **SHAPE}
OPTIONS = [word for name, value in QUICK.items() for word in (f"--{name.replace('_', '-')}", str(value))]


def load_script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


pictures = load_script("pictures")


def at_test_size(code):
    """Return the code with what its comments give for tests: `objects = 1400  # in tests: 60`."""
    return re.sub(r"= [^\n]*?  # in tests: ([^\n]*)", r"= \1", code)


@pytest.fixture
def quick(monkeypatch):
    for name, value in QUICK.items():
        monkeypatch.setitem(FitConfig.__init__.__kwdefaults__, name, value)
    for kind in (RoMAEClassifier, RoMAEEmbedder, RoMAEInterpolator, RoMAERegressor, RoMAESurvival):
        monkeypatch.setattr(kind, "__init__", quickly(kind.__init__))


def quickly(init):
    """Return a constructor of an estimator whose parameters are `QUICK` unless they are given."""

    @functools.wraps(init)
    def start(self, **given):
        shape = SHAPE.keys() if given.get("pretrained") else set()  # a trained model has its shape
        small = QUICK.keys() & inspect.signature(init).parameters.keys() - shape
        init(self, **{name: QUICK[name] for name in small} | given)

    return start


@pytest.mark.parametrize(
    "page", [path for path in PAGES if pictures.blocks(path.read_text(encoding="utf-8"))], ids=lambda p: p.stem
)
def test_every_block_of_code_runs(page, tmp_path, monkeypatch, quick):
    monkeypatch.chdir(tmp_path)
    names = {}
    for kind, code in pictures.blocks(page.read_text(encoding="utf-8")):
        if kind != "bash":
            exec(compile(at_test_size(code), page.name, "exec"), names)
            continue
        for words in pictures.commands(code):
            assert words[0] == "rotarymae", f"{page.name}: {words} cannot be run here; mark it as text"
            main([*words[1:], *(OPTIONS if words[1] == "fit" else [])])
    plt.close("all")


@pytest.mark.parametrize("page", QUESTIONS)
def test_the_notebook_of_a_page_has_the_code_that_runs_above(page):
    """Its cells are the page's blocks without the small data that stand in for real ones in tests."""
    jupytext = pytest.importorskip("jupytext")
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    cells = jupytext.reads(load_script("mkdocs_hook").notebook(text), "ipynb").cells
    code = [cell.source.removeprefix("%%bash\n") for cell in cells if cell.cell_type == "code"]
    assert code == [block.strip() for kind, block in pictures.blocks(text) if kind != "stand-in"]


@pytest.mark.parametrize("page", QUESTIONS)
def test_a_page_opens_with_a_picture_that_its_code_makes(page):
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    first = re.search(r"!\[[^]]+\]\(images/([\w-]+)\.png\)", text)
    assert first and text.index(first[0]) < text.index("\n## ")
    assert f'figure.savefig("{first[1]}.png")' in text
    assert all((ROOT / "docs/images" / f"{first[1]}{kind}.png").exists() for kind in ("", "-dark"))
    assert re.search(r"^\| .*\|\n\| ---", text, re.MULTILINE) and "## What can go wrong" in text


def test_every_entry_of_the_api_has_an_example():
    """The blocks of the page run above; `official.load` needs a published checkpoint."""
    text = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    code = "\n".join(code for _, code in pictures.blocks(text))
    for entry in set(NAMES) - {"rotarymae.official", "rotarymae.official.load"}:
        _, name, *member = entry.split(".")
        assert f"::: rotarymae.{name}\n" in text and re.search(rf"\b{(member or [name])[0]}\b", code), entry
    assert all(hasattr(rotarymae, name) for name in re.findall(r"^::: rotarymae\.(\w+)", text, re.MULTILINE))


def test_links_between_pages_lead_somewhere():
    for path in (*PAGES, ROOT / "README.md"):
        for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text(encoding="utf-8")):
            assert (path.parent / link).exists(), f"{path.name} links to {link}, which is not there"


def test_the_navigation_names_every_page():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    named = set(re.findall(r": ([\w-]+\.md)$", navigation, re.MULTILINE))
    assert named == {path.name for path in (ROOT / "docs").glob("*.md")} | {"changelog.md"}


def test_the_code_that_the_page_of_the_paper_names_exists():
    page = (ROOT / "docs/paper-to-code.md").read_text(encoding="utf-8")
    entries = re.findall(r"((?:experiments/)?src/[\w/]+\.py) `(\w+)`", page)
    assert entries and page.count("src/") == len(entries)
    for file, name in entries:
        assert re.search(rf"^ *(class|def) {name}\b|^{name}\b", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)


def test_the_map_of_the_code_names_what_is_there():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for folder in ("src/rotarymae/", "scripts/"):
        tree = re.search(rf"^```text\n{folder}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        assert tree
        named = [line.split()[0] for line in tree[1].splitlines()]
        assert all(len(line.split()) > 1 for line in tree[1].splitlines()) and len(named) == len(set(named))
        real = {path.name + "/" * path.is_dir() for path in (ROOT / folder).iterdir()}
        assert set(named) == real - {"__pycache__/"}
    for path in set(re.findall(r"`((?:src|docs|tests|results|experiments)/[\w./]*)`", text)) - {
        "results/notes/NAME.md"
    }:
        assert (ROOT / path).exists(), path


def test_the_two_places_of_a_change_in_the_map_agree():
    """Each name in a `Literal` has its class or entry, as CONTRIBUTING.md says, and none is missing."""
    from rotarymae import config, heads, likelihoods, masking, rope
    from rotarymae.preprocess.values import KNEES
    from rotarymae.tables.formats import FORMAT_READERS
    from rotarymae.tables.source import FORMATS
    from rotarymae.training import fit_config

    assert set(get_args(config.LikelihoodKind)) == set(likelihoods.LIKELIHOODS)
    assert set(get_args(fit_config.MaskingStrategy)) - {"auto"} == set(masking.MASKINGS)
    assert set(get_args(fit_config.Transform)) == set(KNEES)
    encodings = get_type_hints(config.RoMAEConfig)["position_encoding"]
    assert set(get_args(encodings)) == set(rope.POSITION_ENCODINGS)
    assert set(FORMAT_READERS) < set(FORMATS.values())
    encoder = heads.Encoder(config.RoMAEConfig.named("tiny-shallow", axes=1, features=1))
    tokens = rotarymae.Tokens(torch.randn(2, 3, 1), torch.arange(3.0).expand(2, 3)[..., None])
    vectors = [heads.pooled(encoder, tokens, pool).tolist() for pool in get_args(config.Pool)]
    assert all(one != other for i, one in enumerate(vectors) for other in vectors[:i])
    for name, function in COMMANDS.items():
        assert function.__name__ == f"{name}_command" and function.__module__.startswith("rotarymae.cli.")


def test_the_readme_is_two_screens():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 90
