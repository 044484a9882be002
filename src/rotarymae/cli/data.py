"""`rotarymae data`: the data sets of the recipes, from their official addresses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from rotarymae.cli.table import Quiet


def fetch_data(
    name: Positional[Annotated[str, arg(metavar="NAME")]] = "",
    to: Annotated[Path | None, arg(metavar="FOLDER", help_behavior_hint="(default: data/NAME)")] = None,
    quiet: Quiet = False,
) -> None:
    """Fetch a data set of the recipes from its official address, or go on with one that was cut off.

    Without a name it lists the data sets with address, size and licence. For example: rotarymae data uea --to data/uea

    Args:
        name: Fetch this data set.
        to: The files go to this folder, which is a recipe's --data-dir.
    """
    from rotarymae.data import download, sources
    from rotarymae.system import Reporter

    if not name:
        for key, source in sources.SOURCES.items():
            print(f"{key}: {source.what}\n    {source.size}; {source.licence}\n    {source.home}")
            if source.note:
                print(f"    {source.note}")
        return
    source, folder, reporter = sources.find(name), to or Path("data") / name, Reporter(quiet)
    reporter.say(f"{source.what}: {source.home} ({source.size}). Licence: {source.licence}. {source.note}".strip())
    download.fetch(source, folder, reporter)
    reporter.say(f"{name} is in {folder}")
