"""The command `rotarymae`: its subcommands, and what it says when one of them breaks off.

Each function in COMMANDS is a subcommand; its docstring is its help. A new one is a file here, and its name in
COMMANDS. Files here import heavy modules inside their functions, so that --help and a misspelt option answer at once.
"""

from __future__ import annotations

import os
import re
import sys

import tyro
from tyro.conf import DisallowNone, FlagCreatePairsOff, OmitArgPrefixes

from rotarymae.cli.answer import (
    anomalies_command,
    embed_command,
    explain_command,
    interpolate_command,
    predict_command,
)
from rotarymae.cli.evaluate import evaluate_command
from rotarymae.cli.export import export_command
from rotarymae.cli.features import features_command
from rotarymae.cli.fit import demo_command, fit_command
from rotarymae.cli.info import info_command
from rotarymae.cli.interruption import ending
from rotarymae.cli.short_help import FIT_HELP
from rotarymae.errors import InputError, did_you_mean

COMMANDS = {
    "demo": demo_command,
    "info": info_command,
    "fit": fit_command,
    "predict": predict_command,
    "evaluate": evaluate_command,
    "interpolate": interpolate_command,
    "anomalies": anomalies_command,
    "embed": embed_command,
    "explain": explain_command,
    "features": features_command,
    "export": export_command,
}


def main(argv: list[str] | None = None) -> None:
    """Run the command that the arguments ask for; return None if it succeeds, and exit if it fails.

    Args:
        argv: words after "rotarymae"; None takes those of the process.

    Raises:
        SystemExit: with code 0 after a help text; with code 2 for options that cannot be parsed. For another error,
            `ending` prints it and chooses the code: 2 for refused input or a damaged model, 3 if some files of a folder
            failed, 128 + its number for a signal, else 1. An error that is neither the library's nor OSError is a bug,
            and is raised unchanged.
    """
    from rotarymae import __version__

    if "OMP_WAIT_POLICY" not in os.environ:
        # Next to other jobs, a thread that waits spinning holds the core which the one it waits for needs.
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    arguments = sys.argv[1:] if argv is None else argv
    if arguments in (["--version"], ["-V"]):
        print(f"rotarymae {__version__}")
        return
    with ending("rotarymae", "Nothing was written."):
        _run_command(arguments)


def _run_command(arguments: list[str]) -> None:
    """Parse the words after "rotarymae" and call the function of the subcommand, or print the help that they ask for.

    Raises:
        InputError: an unknown subcommand, and whatever the subcommand refuses.
        SystemExit: with 2 for options that cannot be parsed, after tyro has printed why; with 0 after a help text.
    """
    if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        raise InputError(
            f"there is no command {arguments[0]!r}; use one of {', '.join(COMMANDS)}."
            f"{did_you_mean(arguments[0], COMMANDS)}"
        )
    if arguments[:1] == ["fit"] and {"-h", "--help"} & set(arguments):
        print(FIT_HELP, end="")
        sys.exit(0)
    for command in COMMANDS.values():  # tyro would break a help where the source breaks its line
        command.__doc__ = re.sub(r"\n {12}(?=\S)", " ", command.__doc__ or "")
    tyro.extras.subcommand_cli_from_dict(
        COMMANDS,
        args=["--help" if argument == "--help-all" else argument for argument in arguments],
        prog="rotarymae",
        description="Learn from irregular observations: pre-train, classify, interpolate, embed.",
        config=(FlagCreatePairsOff, DisallowNone, OmitArgPrefixes),
    )


if __name__ == "__main__":
    main()
