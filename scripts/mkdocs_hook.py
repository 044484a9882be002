"""Lets the documentation show files that lie outside docs/: the results with their pictures, and the changelog."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]


def on_files(files: Files, config: Any) -> Files:
    for path in sorted(path for path in (ROOT / "results").glob("*.*") if path.suffix != ".md"):
        files.append(File.generated(config, f"results/{path.name}", abs_src_path=str(path)))
    files.append(File.generated(config, "changelog.md", abs_src_path=str(ROOT / "CHANGELOG.md")))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    return markdown.replace("](../results/", "](results/").replace("](docs/", "](")  # of CHANGELOG.md
