"""Writes the lines of docs/paper-to-code.md anew: `python scripts/paper_map.py`. A test calls `lines` and compares."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/paper-to-code.md"
ENTRY = re.compile(r"(?P<file>src/[\w/]+\.py)(:\d+)? `(?P<name>\w+)`")


def line_of(file: str, name: str) -> int:
    """The line on which a file defines a name. Raises ValueError where it does not."""
    pattern = re.compile(rf"^ *(?:class|def) {name}\b|^{name}\b[^=]*=")
    for number, line in enumerate((ROOT / file).read_text(encoding="utf-8").splitlines(), 1):
        if pattern.match(line):
            return number
    raise ValueError(f"{PAGE.name}: {file} does not define {name}.")


def lines(page: str) -> str:
    """The page with every name's line as it is now."""
    return ENTRY.sub(lambda m: f"{m['file']}:{line_of(m['file'], m['name'])} `{m['name']}`", page)


if __name__ == "__main__":
    PAGE.write_text(lines(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
