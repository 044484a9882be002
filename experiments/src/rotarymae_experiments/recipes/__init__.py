"""One file per experiment; `load` also gives the recipe of a user's file."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rotarymae.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from rotarymae_experiments import Recipe

NAMES = tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def load(name: str) -> Recipe:
    """Return the recipe of a name, or of a Python file that defines RECIPE (`my_recipe.py`, `folder/my_recipe.py`).

    Raises:
        InputError: no recipe has the name (the nearest one is named); the file is missing or has no RECIPE.
    """
    if name.endswith(".py"):
        return _from_file(Path(name))
    if name in NAMES:
        return importlib.import_module(f"rotarymae_experiments.recipes.{name}").RECIPE
    raise InputError(
        f"no recipe {name!r}.{did_you_mean(name, NAMES)} There are {', '.join(NAMES)}. Run a recipe of your own by its "
        "file: rotarymae-experiments run my_recipe.py"
    )


def load_all() -> list[Recipe]:
    """Return the recipes of this package, by name."""
    return [load(name) for name in NAMES]


def _from_file(path: Path) -> Recipe:
    """Run a Python file and return the recipe that it defines as RECIPE; raise InputError if file or recipe is missing.

    The file's folder is added to the import path.
    """
    name = f"rotarymae_own_{path.stem}"  # or signal.py would replace Python's
    spec = importlib.util.spec_from_file_location(name, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise InputError(f"{path} is no file; give the path of a Python file that defines RECIPE.")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses with postponed annotations look their module up by name. Its imports may be in the same folder.
    sys.modules[name] = module
    sys.path.append(str(path.parent.resolve()))
    spec.loader.exec_module(module)
    from rotarymae_experiments import Recipe

    recipe = getattr(module, "RECIPE", None)
    if not isinstance(recipe, Recipe):
        raise InputError(f"{path} has no RECIPE of the type rotarymae_experiments.Recipe.")
    return recipe
