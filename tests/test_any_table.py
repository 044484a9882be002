"""The made-up tables of docs/any-table.md: the page shows what `info` prints, and the command that it prints trains."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
spec = importlib.util.spec_from_file_location("any_table", ROOT / "scripts" / "any_table.py")
assert spec is not None and spec.loader is not None
any_table = importlib.util.module_from_spec(spec)
spec.loader.exec_module(any_table)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", any_table.MADE, ids=lambda make: make.__name__)
def test_the_command_that_info_prints_trains_and_stands_in_the_page(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(any_table, "QUICK", [*any_table.QUICK, "--minutes", "0.01"])
    lines, words = any_table.look(make(tmp_path))
    page = (ROOT / "docs" / "any-table.md").read_text()
    assert lines[-1] in page, "write the page anew: python scripts/any_table.py --help"
    any_table.train(words, tmp_path / "run")
    assert (tmp_path / "run" / "metrics.json").exists()
