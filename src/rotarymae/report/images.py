"""Figures as images inside a page."""

from __future__ import annotations

import base64
import io
import re

import matplotlib
from matplotlib.figure import Figure

LARGEST_SVG = 120_000  # bytes; beyond it the same figure is smaller as pixels


def data_uri(figure: Figure) -> str:
    """The figure as a data URI: SVG, sharp at every size, or PNG where that would be large."""
    buffer = io.BytesIO()
    # A fixed salt gives the same bytes for the same figure. As an image of its own the SVG shares no ids with others.
    nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
    with matplotlib.rc_context({"svg.hashsalt": "rotarymae", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", metadata=nothing, dpi=150)
    svg = _shorter(buffer.getvalue().decode()).encode()
    if len(svg) <= LARGEST_SVG:
        return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
    return f"data:image/png;base64,{base64.b64encode(_png(figure)).decode()}"


def _png(figure: Figure) -> bytes:
    """Two pixels per CSS pixel and 256 colours: a third of the bytes. The palette covers the range of colours, as the
    usual one, made for the many pixels, gives a class with few of them the colour of another."""
    from PIL import Image  # comes with matplotlib

    buffer, out = io.BytesIO(), io.BytesIO()
    figure.savefig(buffer, format="png", dpi=192)
    with Image.open(buffer) as picture:
        palette = Image.Quantize.MAXCOVERAGE
        small = picture.convert("RGB").quantize(256, method=palette, kmeans=2, dither=Image.Dither.NONE)
        small.save(out, format="PNG", optimize=True)
    return out.getvalue()


SVG_PATH = re.compile(r' d="[^"]*"')
DECIMALS = re.compile(r"(\.\d\d)\d+")
LINE_START = re.compile(r"\n\s*")


def _shorter(svg: str) -> str:
    """The same drawing in about half the bytes: paths to a hundredth of a point, no indentation."""
    return LINE_START.sub("\n", SVG_PATH.sub(lambda path: DECIMALS.sub(r"\1", path.group()), svg))
