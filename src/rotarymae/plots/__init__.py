"""Figures from plain numpy arrays.

A function of one panel draws onto `axes`, or onto a new figure, and returns the axes; `figure_of(axes)` is its figure.
A function that lays out several panels returns the Figure. Each sets its style on what it draws, so that nothing
depends on, or changes, global settings, and no window system is needed. `figure.savefig("name.png")` writes it.
"""

from rotarymae.plots.curves import Panel, curves, predictions
from rotarymae.plots.embeddings import embedding_map, project
from rotarymae.plots.images import reconstruction
from rotarymae.plots.scores import calibration, confusion, precision_recall, regression, reliability, roc
from rotarymae.plots.series import Curve, interpolation
from rotarymae.plots.style import COLOURS, LSST_BANDS, MARKERS, channel_style, figure_of, style_of
from rotarymae.plots.training import learning_curves

__all__ = [
    "COLOURS",
    "LSST_BANDS",
    "MARKERS",
    "Curve",
    "Panel",
    "calibration",
    "channel_style",
    "confusion",
    "curves",
    "embedding_map",
    "figure_of",
    "interpolation",
    "learning_curves",
    "precision_recall",
    "predictions",
    "project",
    "reconstruction",
    "regression",
    "reliability",
    "roc",
    "style_of",
]
