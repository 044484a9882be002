"""The command `rotarymae-experiments`: list | show | run | results. Each function's docstring is its help."""

from __future__ import annotations

import dataclasses
import json
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from tyro.conf import DisallowNone, FlagCreatePairsOff, OmitArgPrefixes, Positional, arg

import rotarymae_experiments as experiments
from rotarymae import system
from rotarymae.cli.interruption import ending
from rotarymae.errors import InputError, did_you_mean
from rotarymae_experiments import recipes

Scale = Literal["smoke", "small", "paper"]
Setting = Literal["paper", "ours"]
Name = Annotated[str, arg(metavar="NAME")]
Folder = Annotated[Path, arg(metavar="FOLDER")]


def list_recipes() -> None:
    """List the recipes: the experiments of the paper and ours, each with its table and its question."""
    from rich.console import Console
    from rich.table import Table

    table = Table("name", "in the paper", "question")
    for recipe in recipes.load_all():
        table.add_row(recipe.name, recipe.table, recipe.describe()[0])
    console = Console()
    console.print(table)
    console.print("`rotarymae-experiments show NAME` says more, `rotarymae-experiments run NAME` runs it.")


def show(name: Positional[Name], scale: Scale = "small", setting: Setting = "ours") -> None:
    """Show a recipe: what it is, what to expect, and its whole configuration.

    Args:
        name: Show the recipe of this name, or of this file, such as my_recipe.py.
        scale: Show it at this scale: smoke takes seconds, small is what a CPU manages, paper has the paper's sizes.
        setting: Take the paper's hyper-parameters, or ours.
    """
    recipe = recipes.load(name)
    print(*recipe.describe(), sep="\n\n")
    print(f"\nConfiguration of --scale {scale} --setting {setting}:\n")
    print(json.dumps(experiments.plain(recipe.configure(scale, setting)), indent=1))


@dataclass(frozen=True)
class RunOptions:
    """How a recipe is run.

    Attributes:
        scale: Run at this scale: smoke takes seconds, small is what a CPU manages, paper has the paper's sizes.
        setting: Take the paper's hyper-parameters, or ours.
        out: Keep checkpoints below this folder; another configuration needs another one.
        results: Write the result file to this folder; files of other runs there are left alone.
        threads: Compute on this many threads of the processor; 0 leaves the choice to torch.
        quiet: Print only what goes wrong.
    """

    scale: Scale = "small"
    setting: Setting = "ours"
    out: Path = Path("runs")
    results: Path = Path("results")
    threads: int = 0
    quiet: bool = False


def run(name: Positional[Name], options: Annotated[RunOptions, arg(name="")] = RunOptions()) -> None:
    """Run a recipe, or go on with one that was stopped; writes RESULTS/NAME-SETTING-SCALE.json and figures.

    Any field of the configuration can be changed by an option; `rotarymae-experiments run NAME --help` lists them all.
    For example: rotarymae-experiments run spirals --scale small --train.base-lr 3e-4

    Args:
        name: Run the recipe of this name (`rotarymae-experiments list` shows ours), or of this file (my_recipe.py).
        options: How it is run.
    """
    run_with_overrides([name])


def run_with_overrides(arguments: list[str]) -> None:
    """Run `rotarymae-experiments run` with the options of `run` and those of the recipe's configuration.

    Args:
        arguments: as typed behind `run`: the recipe's name, then options. Without a name, help is printed.

    Raises:
        InputError: an option before the name; an unknown recipe.
    """
    if arguments and arguments[0].startswith("-") and arguments[0] not in ("-h", "--help"):
        raise InputError(f"{arguments[0]} came first; wanted the recipe's name first, and its options behind it.")
    if not arguments or arguments[0].startswith("-"):
        tyro.cli(run, args=arguments, prog="rotarymae-experiments run", config=(FlagCreatePairsOff,))
        return
    import torch

    name, typed = arguments[0], arguments[1:]
    recipe = recipes.load(name)
    # Scale and setting decide what the configuration's defaults are, so they are read first.
    no_help = [argument for argument in typed if argument not in ("-h", "--help")]
    first, _ = tyro.cli(RunOptions, args=no_help, return_unknown_args=True, config=(FlagCreatePairsOff,))
    setup = recipe.configure(first.scale, first.setting)
    parts = [("options", Annotated[RunOptions, arg(name="")]), ("setup", Annotated[type(setup), arg(name="")])]
    both = dataclasses.make_dataclass("Run", parts)
    parsed: Any = tyro.cli(
        both,
        args=typed,
        default=both(RunOptions(scale=first.scale, setting=first.setting), setup),
        prog=f"rotarymae-experiments run {name}",
        description=recipe.describe()[0],
        config=(FlagCreatePairsOff,),
    )
    options, reporter = parsed.options, system.Reporter(parsed.options.quiet)
    if options.threads:
        torch.set_num_threads(options.threads)
    if getattr(parsed.setup, "sample", False) and parsed.setup.data_dir != getattr(setup, "data_dir", None):
        reporter.warn("data_dir has no effect: the sample that ships with the library is read.")
    how: dict[str, Any] = {"out": options.out, "results": options.results, "reporter": reporter}
    how["command"] = shlex.join(["rotarymae-experiments", "run", name, *typed])
    with reporter.catching_warnings():
        path = experiments.run(recipe, options.scale, options.setting, parsed.setup, **how)
    reporter.say(f"the results are in {path}; `rotarymae-experiments results` sets them next to what was published")


def results(folder: Positional[Folder] = Path("results"), page: Path | None = None) -> None:
    """Print what was measured next to what the paper and others published, as a page of Markdown.

    Args:
        folder: Read the result files of this folder, as `rotarymae-experiments run` writes them.
        page: Write the page to this file instead; its links lead from there.
    """
    files = experiments.read(folder)
    text = experiments.page(recipes.load_all(), files, page or Path("results.md"), folder / "notes")
    if page is None:
        print(text, end="")
    else:
        system.write_text(page, text)
        print(f"written: {page}")
    others = sorted({result["recipe"] for _, result in files} - set(recipes.NAMES))
    if others:
        print(f"Not shown, as their recipes are not of this package: {', '.join(others)}.", file=sys.stderr)


COMMANDS = {"list": list_recipes, "show": show, "run": run, "results": results}


def main(argv: list[str] | None = None) -> None:
    """Run the command with the arguments `argv`; None takes those of the process.

    It ends with exit code 2 for refused input, 1 for another error, and 128 + the signal's number if it was stopped.
    """
    arguments = sys.argv[1:] if argv is None else argv
    with ending("rotarymae-experiments", "The same command goes on from what was saved."):
        if arguments[:1] == ["run"]:  # its options depend on the recipe
            run_with_overrides(arguments[1:])
            return
        if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
            known = f"there are {', '.join(COMMANDS)}.{did_you_mean(arguments[0], COMMANDS)}"
            raise InputError(f"no command {arguments[0]!r}; {known}")
        tyro.extras.subcommand_cli_from_dict(
            COMMANDS,
            args=arguments,
            prog="rotarymae-experiments",
            description="Run the experiments of the paper and ours, and show their results.",
            config=(FlagCreatePairsOff, DisallowNone, OmitArgPrefixes),
        )
