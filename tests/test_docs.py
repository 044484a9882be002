"""The documentation says what is so: its code runs, and its links and the names of the code exist."""

import functools
import inspect
import re
import shlex
from pathlib import Path

import matplotlib
import pytest

from rotarymae import RoMAEClassifier, RoMAEEmbedder, RoMAEInterpolator, RoMAERegressor
from rotarymae.cli.main import main
from rotarymae.training.fit_config import FitConfig

matplotlib.use("Agg")
ROOT = Path(__file__).parents[1]
PAGES = sorted(path for path in (ROOT / "docs").glob("*.md") if path.name != "results.md")
BLOCK = re.compile(r"^(?:```|<!-- )(?P<kind>python|bash|setup)\n(?P<code>.*?)^(?:```|-->)$", re.MULTILINE | re.DOTALL)
# A page shows the defaults, which train for minutes; here one epoch of a shallow model must do.
QUICK = {"pretrain_epochs": 1, "finetune_epochs": 1, "min_steps": 0, "depth": 1, "decoder_depth": 1}
OPTIONS = [word for name, value in QUICK.items() for word in (f"--{name.replace('_', '-')}", str(value))]


def blocks(page):
    return [(match["kind"], match["code"]) for match in BLOCK.finditer(page)]


@pytest.fixture
def quick(monkeypatch):
    for name, value in QUICK.items():
        monkeypatch.setitem(FitConfig.__init__.__kwdefaults__, name, value)
    for kind in (RoMAEClassifier, RoMAEEmbedder, RoMAEInterpolator, RoMAERegressor):
        monkeypatch.setattr(kind, "__init__", quickly(kind.__init__))


def quickly(init):
    """Return a constructor of an estimator whose parameters are `QUICK` unless they are given."""

    @functools.wraps(init)
    def start(self, **given):
        init(self, **{name: QUICK[name] for name in QUICK.keys() & inspect.signature(init).parameters.keys()} | given)

    return start


@pytest.mark.parametrize(
    "page", [path for path in PAGES if blocks(path.read_text(encoding="utf-8"))], ids=lambda p: p.stem
)
def test_every_block_of_code_runs(page, tmp_path, monkeypatch, quick):
    monkeypatch.chdir(tmp_path)
    names = {}
    for kind, code in blocks(page.read_text(encoding="utf-8")):
        if kind != "bash":
            exec(compile(code, page.name, "exec"), names)
            continue
        for line in filter(None, code.replace("\\\n", " ").splitlines()):
            words = shlex.split(line, comments=True)
            assert words[0] == "rotarymae", f"{page.name}: {line!r} cannot be run here; mark it as text"
            main([*words[1:], *(OPTIONS if words[1] == "fit" else [])])


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
