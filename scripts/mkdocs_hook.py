"""Show files outside docs/ (results, changelog) in the documentation, dark pictures on dark pages, and notebooks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jupytext
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}


def on_files(files: Files, config: Any) -> Files:
    for path in sorted(path for path in (ROOT / "results").glob("*.*") if path.suffix != ".md"):
        files.append(File.generated(config, f"results/{path.name}", abs_src_path=str(path)))
    files.append(File.generated(config, "changelog.md", abs_src_path=str(ROOT / "CHANGELOG.md")))
    for path in sorted((ROOT / "docs").glob("*.md")):
        if has_notebook(text := path.read_text(encoding="utf-8")):
            files.append(File.generated(config, f"notebooks/{path.stem}.ipynb", content=notebook(text)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    if has_notebook(markdown):
        markdown += f"\n\n[This page as a notebook](notebooks/{Path(page.file.src_path).stem}.ipynb){{ download }}\n"
    markdown = markdown.replace("](../results/", "](results/").replace("](docs/", "](")  # of CHANGELOG.md
    return re.sub(r"!\[([^]]*)\]\(images/([\w-]+)\.png\)", both, markdown)


def both(image: re.Match[str]) -> str:
    """Show a picture on light pages alone where there is one for dark pages."""
    text, name = image.groups()
    if not (ROOT / f"docs/images/{name}-dark.png").exists():
        return image[0]
    return f"![{text}](images/{name}.png#only-light)![{text}](images/{name}-dark.png#only-dark)"


def has_notebook(page: str) -> bool:
    return "\n```python\n" in page


def notebook(page: str) -> str:
    """Return a page as a Jupyter notebook: its blocks of code, with the hidden set-up, become cells."""
    page = re.sub(r"^<!-- stand-in\n.*?^-->\n", "", page, flags=re.MULTILINE | re.DOTALL)
    page = re.sub(r"^<!-- setup\n(.*?)^-->$", r"```python\n\1```", page, flags=re.MULTILINE | re.DOTALL)
    page = re.sub(r"\]\(([\w-]+)\.md", r"](../\1/", page.replace("](images/", "](../images/"))
    page = re.sub(r"^```sh$", "```text", page, flags=re.MULTILINE)  # for another machine
    cells = jupytext.reads(page, {"extension": ".md", "format_name": "markdown"})
    cells.metadata = {"kernelspec": KERNEL}
    return jupytext.writes(cells, "ipynb")
