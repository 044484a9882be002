"""The commands about experiments: rotarymae list | show | run | results.

As in `cli`, each function's docstring is its help, and heavy modules are imported inside.
"""

from __future__ import annotations

import itertools
import json
import shlex
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from tyro.conf import FlagCreatePairsOff, Positional, arg

from rotarymae.errors import InputError

Scale = Literal["smoke", "small", "paper"]
Setting = Literal["paper", "ours"]
Name = Annotated[str, arg(metavar="NAME")]
Folder = Annotated[Path, arg(metavar="FOLDER")]


def list_recipes() -> None:
    """List the recipes: the experiments of the paper, each with its table, what to expect, and hours."""
    from rich.console import Console
    from rich.table import Table

    from rotarymae import recipes

    table = Table("name", "in the paper", "expect", "hours, small: paper / ours")
    for name in recipes.NAMES:
        recipe = recipes.load(name)
        table.add_row(
            name,
            recipe.table,
            recipe.expect,
            " / ".join("?" if hours is None else f"{hours:g}" for hours in recipe.hours.values()),
        )
    console = Console()
    console.print(table)
    console.print("`rotarymae show NAME` says more, `rotarymae run NAME` runs it; `rotarymae demo` is the demo.")


def show(name: Positional[Name], scale: Scale = "small", setting: Setting = "ours") -> None:
    """Show a recipe: what it is, and its whole configuration.

    Args:
        name: Of the recipe.
        scale: smoke (seconds), small (what a CPU manages) or paper (the paper's epochs, sizes and seeds).
        setting: The paper's hyper-parameters, or ours.
    """
    from rotarymae import recipes
    from rotarymae.experiments import plain

    recipe = recipes.load(name)
    print(recipes.describe(name))
    print(f"\nConfiguration of --scale {scale} --setting {setting}:\n")
    print(json.dumps(plain(recipe.configure(scale, setting)), indent=1))


def run(
    name: Positional[Name],
    scale: Scale = "small",
    setting: Setting = "ours",
    out: Path = Path("runs"),
    results: Path = Path("results"),
    threads: int = 0,
    quiet: bool = False,
) -> None:
    """Run a recipe, or go on with one that was stopped; writes results/NAME-SETTING-SCALE.json and figures.

    Any field of the configuration can be changed by an option: `rotarymae run NAME --help` lists them all.
    For example: rotarymae run spirals --scale small --train.base-lr 3e-4

    Args:
        name: Of the recipe; `rotarymae list` lists them.
        scale: smoke (seconds), small (what a CPU manages) or paper (the paper's epochs, sizes and seeds).
        setting: The paper's hyper-parameters, or ours.
        out: Folder of the run's own folder, with checkpoints. Another configuration wants another one.
        results: Folder of the result file. Files of other runs there are left alone.
        threads: Of the processor; 0 leaves torch's choice.
        quiet: Print only what goes wrong.
    """
    _run(
        name,
        None,
        scale,
        setting,
        out,
        results,
        threads,
        quiet,
        f"rotarymae run {name} --scale {scale} --setting {setting}",
    )


def run_with_overrides(arguments: list[str]) -> None:
    """`rotarymae run` as typed: the options of `run`, then those of the recipe's configuration."""
    name = next((argument for argument in arguments if not argument.startswith("-")), None)
    if name is None or arguments[0].startswith("-"):
        tyro.cli(run, args=arguments, prog="rotarymae run", config=(FlagCreatePairsOff,))
        return
    from rotarymae import recipes

    recipe = recipes.load(name)
    own, rest = _split(arguments[1:])
    setup = recipe.configure(own.get("scale", "small"), own.get("setting", "ours"))
    help_wanted = {"-h", "--help"} & set(rest)
    if help_wanted:
        print(f"usage: rotarymae run {name} [--scale smoke|small|paper] [--setting paper|ours] [--out PATH]")
        print("       [--results PATH] [--threads INT] [--quiet] [changes to the configuration, as below]\n")
    changed: Any = tyro.cli(
        type(setup), args=rest, default=setup, prog=f"rotarymae run {name}", description=f"{name}: {recipe.expect}."
    )
    _run(
        name,
        changed,
        own.get("scale", "small"),
        own.get("setting", "ours"),
        Path(own.get("out", "runs")),
        Path(own.get("results", "results")),
        _whole(own.get("threads", "0")),
        "quiet" in own,
        # Where files go is nobody else's business.
        shlex.join(["rotarymae", "run", name, *_kept(own), *rest]),
    )


def _kept(own: dict[str, str]) -> list[str]:
    """Of the options of `run`, those that say what was run."""
    return [part for key in ("scale", "setting", "threads") if key in own for part in (f"--{key}", own[key])]


def _split(arguments: list[str]) -> tuple[dict[str, str], list[str]]:
    """The options of `run` itself, by name, and what is left for the configuration."""
    own: dict[str, str] = {}
    rest: list[str] = []
    waiting = iter(arguments)
    for argument in waiting:
        option, equals, value = argument.partition("=")
        key = option.removeprefix("--")
        if key == "quiet" and option.startswith("--"):
            own[key] = "yes"
        elif option.startswith("--") and key in ("scale", "setting", "out", "results", "threads"):
            found = value if equals else next(waiting, None)
            if found is None:
                raise InputError(f"{option} wants a value.")
            own[key] = found
        else:
            rest.append(argument)
    return own, rest


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise InputError(f"--threads is {text!r}; wanted a whole number.")
    return int(text)


def _run(
    name: str,
    setup: Any,
    scale: str,
    setting: str,
    out: Path,
    results: Path,
    threads: int,
    quiet: bool,
    command: str,
) -> None:
    import torch

    from rotarymae import recipes
    from rotarymae.experiments import run as run_recipe
    from rotarymae.progress import Reporter

    recipe, reporter = recipes.load(name), Reporter(quiet)
    if threads:
        torch.set_num_threads(threads)
    with reporter.catching_warnings():
        path = run_recipe(
            recipe,
            scale,
            setting,
            setup or recipe.configure(scale, setting),
            out=out,
            results=results,
            command=command,
            reporter=reporter,
        )
    reporter.say(f"the results are in {path}; `rotarymae results` sets them beside what was published")


def results(
    folder: Positional[Annotated[Path, arg(metavar="FOLDER")]] = Path("results"), page: Path | None = None
) -> None:
    """Print what was measured beside what the paper and others published.

    Args:
        folder: Folder of result files.
        page: Write the documentation's page there instead, as Markdown, with what is in doubt and why.
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from rotarymae.experiments import read, table, write_page

    if page is not None:
        write_page(folder, page)
        print(f"written: {page}")
        return
    console, lines = Console(), table([result for _, result in read(folder)])
    for name, own in itertools.groupby(lines, key=lambda line: line.recipe):
        rows = [
            {
                "": line.row.what,
                "paper": line.row.paper + (" (?)" if line.row.doubt and line.row.paper != "–" else ""),
                "best other": line.row.best,
                "simple or optimum": line.simple,
                "paper's setting": line.measured["paper"],
                "ours": line.measured["ours"],
                "aim": line.row.aim,
            }
            for line in own
        ]
        shown = Table(title=name, title_justify="left", title_style="bold")
        # A column in which nothing stands takes room from numbers, which a narrow terminal must not cut short.
        filled = [column for column in rows[0] if any(row[column] not in ("", "–") for row in rows)]
        for column in filled:
            shown.add_column(column, overflow="fold")
        for row in rows:
            shown.add_row(*(escape(row[column]) for column in filled))
        console.print(shown)
    console.print("(?): the published figure is in doubt; `rotarymae results --page FILE` says why.")
