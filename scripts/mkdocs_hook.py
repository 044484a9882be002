"""Show files outside docs/ (results, changelog) in the documentation, and the dark picture on dark pages."""

from __future__ import annotations

import re
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
    markdown = markdown.replace("](../results/", "](results/").replace("](docs/", "](")  # of CHANGELOG.md
    return re.sub(r"!\[([^]]*)\]\(images/([\w-]+)\.png\)", both, markdown)


def both(image: re.Match[str]) -> str:
    """Show a picture on light pages alone where there is one for dark pages."""
    text, name = image.groups()
    if not (ROOT / f"docs/images/{name}-dark.png").exists():
        return image[0]
    return f"![{text}](images/{name}.png#only-light)![{text}](images/{name}-dark.png#only-dark)"
