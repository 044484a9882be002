"""Figures: plain numpy arrays in, a matplotlib Figure out.

Every function builds its own `matplotlib.figure.Figure` and sets its style on it, so that nothing depends on, or
changes, global settings, and no window system is needed. `figure.savefig("name.png")` writes it.
"""

from rotarymae.plots.curves import Panel, curves, frequency_error, predictions
from rotarymae.plots.embeddings import embedding_map, project
from rotarymae.plots.images import reconstruction
from rotarymae.plots.scores import calibration, confusion, regression
from rotarymae.plots.series import interpolation
from rotarymae.plots.style import COLOURS, LSST_BANDS, MARKERS, channel_style
from rotarymae.plots.training import learning_curves

__all__ = [
    "COLOURS",
    "LSST_BANDS",
    "MARKERS",
    "Panel",
    "calibration",
    "channel_style",
    "confusion",
    "curves",
    "embedding_map",
    "frequency_error",
    "interpolation",
    "learning_curves",
    "predictions",
    "project",
    "reconstruction",
    "regression",
]
