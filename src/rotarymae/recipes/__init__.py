"""One file for each experiment of the paper, and for the demo."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rotarymae.experiments import Recipe

# In the paper's order. The demo is no experiment: it has a command of its own.
NAMES = (
    "position",
    "position_range",
    "translation",
    "plasticc",
    "pendulum",
    "uea",
    "synthetic",
    "physionet",
    "spirals",
    "frequency",
    "position_scale",
    "speed",
)


def load(name: str) -> Recipe:
    """The recipe of that name. Raises InputError that names the nearest one."""
    from rotarymae.errors import InputError, nearest

    if name not in NAMES:
        raise InputError(f"no recipe {name!r}{nearest(name, NAMES)}; there are {', '.join(NAMES)}.")
    return importlib.import_module(f"rotarymae.recipes.{name}").RECIPE


def describe(name: str) -> str:
    """The recipe's docstring: what it is, what to expect."""
    return (importlib.import_module(f"rotarymae.recipes.{name}").__doc__ or "").strip()
