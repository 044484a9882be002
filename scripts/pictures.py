"""Draw the pictures of the documentation by running the code of its pages, at full size.

`python scripts/pictures.py light-curves bands` draws those of two pages, `python scripts/pictures.py` all.
`--data FOLDER` holds what a page reads and the package does not ship: intensive-care needs FOLDER/physionet2012.

What a page saves as NAME.png becomes docs/images/NAME.png, on white, and NAME-dark.png for dark pages.
"""

from __future__ import annotations

import argparse
import colorsys
import os
import re
import shlex
import tempfile
import time
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import Collection
from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text

ROOT = Path(__file__).parents[1]
DOCS, IMAGES = ROOT / "docs", ROOT / "docs" / "images"
# `setup` blocks are hidden; `stand-in` blocks make small data in place of real ones, for tests alone.
BLOCK = re.compile(
    r"^(?:```|<!-- )(?P<kind>python|bash|setup|stand-in)\n(?P<code>.*?)^(?:```|-->)$", re.MULTILINE | re.DOTALL
)
STYLE = {
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e6eb",
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    "axes.edgecolor": "#9aa1ad",
    "axes.labelcolor": "#1f2430",
    "text.color": "#1f2430",
    "xtick.labelcolor": "#1f2430",
    "ytick.labelcolor": "#1f2430",
    "legend.frameon": False,
    "figure.dpi": 110,
    "savefig.dpi": 110,
}


def blocks(page: str) -> list[tuple[str, str]]:
    """Return the blocks of a page that can be run, as (kind, code)."""
    return [(match["kind"], match["code"]) for match in BLOCK.finditer(page)]


def commands(code: str) -> list[list[str]]:
    """Return the commands of a block of bash as lists of words."""
    return [shlex.split(line, comments=True) for line in code.replace("\\\n", " ").splitlines() if line.strip()]


def darken(figure: Figure) -> None:
    """Turn the colours of a figure for a dark page: greys are inverted, colours are brightened."""
    for artist in figure.findobj():
        axes = getattr(artist, "axes", None)
        if isinstance(artist, Text):
            if axes is None or artist not in axes.texts or not axes.images:  # text on a picture stays as it is
                artist.set_color(_turned(artist.get_color())[0])
        elif isinstance(artist, Line2D):
            parts = ("color", "markerfacecolor", "markeredgecolor")
            colours = {part: getattr(artist, f"get_{part}")() for part in parts}  # all before one changes the others
            for part, colour in colours.items():
                if not isinstance(colour, str) or colour not in ("none", "auto"):
                    getattr(artist, f"set_{part}")(_turned(colour)[0])
        elif isinstance(artist, Patch) or (isinstance(artist, Collection) and artist.get_array() is None):
            for part in ("facecolor", "edgecolor"):
                colours = getattr(artist, f"get_{part}")()
                if len(colours):
                    turned = _turned(colours)
                    getattr(artist, f"set_{part}")(turned[0] if isinstance(artist, Patch) else turned)


def _turned(colours: Any) -> np.ndarray:
    turned = to_rgba_array(colours).copy()
    for colour in turned:
        hue, light, saturation = colorsys.rgb_to_hls(*colour[:3])
        grey = max(colour[:3]) - min(colour[:3]) < 0.15
        colour[:3] = colorsys.hls_to_rgb(hue, 0.93 - 0.81 * light if grey else max(light, 0.55), saturation)
    return turned


def draw(page: Path, data: Path | None) -> None:
    """Run the Python of a page in an empty folder, in which the folders of `data` can be seen."""
    save = Figure.savefig

    def save_both(figure: Figure, name: Any, **_: Any) -> None:
        path = IMAGES / Path(name).name
        save(figure, path, facecolor="white", bbox_inches="tight", pad_inches=0.1)
        darken(figure)
        save(figure, path.with_stem(f"{path.stem}-dark"), transparent=True, bbox_inches="tight", pad_inches=0.1)

    names: dict[str, Any] = {}
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder, plt.rc_context(STYLE):
        os.chdir(folder)
        for entry in data.iterdir() if data else ():
            Path(entry.name).symlink_to(entry)
        Figure.savefig = save_both  # type: ignore[method-assign]
        try:
            every = blocks(text)
            last = max(i for i, (_, code) in enumerate(every) if ".savefig(" in code)
            for kind, code in every[: last + 1]:
                if kind in ("setup", "python"):
                    exec(compile(code, page.name, "exec"), names)
        finally:
            Figure.savefig = save  # type: ignore[method-assign]
            os.chdir(ROOT)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", help="names of pages, without .md; all that save a picture by default")
    parser.add_argument("--data", type=lambda path: Path(path).resolve(), help="the folder of real data")
    options = parser.parse_args()
    paths = [DOCS / f"{name}.md" for name in options.pages] or [
        path for path in sorted(DOCS.glob("*.md")) if ".savefig(" in path.read_text(encoding="utf-8")
    ]
    for path in paths:
        started = time.process_time()
        draw(path, options.data)
        print(f"{path.name}: {time.process_time() - started:.0f} s of processor time", flush=True)
