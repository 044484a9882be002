"""The command `rotarymae`: its subcommands, and what it says when one of them breaks off.

Each function in COMMANDS is a subcommand; its docstring is its help. A new one is a file here, and its name in
COMMANDS. Files here import heavy modules inside their functions, so that --help and a misspelt option answer at once.
"""

from __future__ import annotations

import os
import re
import signal
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
from rotarymae.cli.interruption import Stopped, stopping_on_signals
from rotarymae.cli.short_help import FIT_HELP
from rotarymae.errors import (
    InputError,
    ModelDirectoryError,
    RotaryMAEError,
    ShardsFailed,
    did_you_mean,
    printable,
)

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
    """Run the command; return None where it succeeds, and exit with a code other than 0 where it fails.

    Args:
        argv: words after the command's name; None takes those of the process.

    Raises:
        SystemExit: with code 2 for refused input or options; 3 if some files of a folder could not be read and all
            others are done; 128 + its number for a signal that stopped the command; 1 for another known error, or
            where nobody reads the output any more. The error is printed in one sentence to standard error.
    """
    from rotarymae import __version__

    if "OMP_WAIT_POLICY" not in os.environ:
        # Next to other jobs, a thread that waits spinning holds the core which the one it waits for needs.
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    arguments = sys.argv[1:] if argv is None else argv
    if arguments in (["--version"], ["-V"]):
        print(f"rotarymae {__version__}")
        return
    try:
        with stopping_on_signals():
            _run_command(arguments)
    except KeyboardInterrupt as error:  # also Arrow's, which has a handler of its own while it reads
        signum = error.signum if isinstance(error, Stopped) else signal.SIGINT
        note = getattr(error, "__notes__", ["Nothing was written."])[0]
        print(f"rotarymae: stopped by {signal.Signals(signum).name}. {note}", file=sys.stderr)
        sys.exit(128 + signum)  # as a shell reports it: 130 for Ctrl-C, 143 for SIGTERM
    except (InputError, ModelDirectoryError) as error:
        print(f"rotarymae: {error.advise(_as_option)}", file=sys.stderr)
        sys.exit(2)
    except ShardsFailed as error:
        print(f"rotarymae: {error}", file=sys.stderr)
        sys.exit(3)
    except BrokenPipeError:  # whoever read our output has closed it, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (RotaryMAEError, OSError) as error:
        print(f"rotarymae: {printable(str(error))}", file=sys.stderr)
        sys.exit(1)


def _run_command(arguments: list[str]) -> None:
    """Parse the arguments and call the function of the subcommand, or print the help that they ask for.

    Raises:
        InputError: an unknown subcommand, and whatever the subcommand refuses.
        SystemExit: after a help text, or for options that cannot be parsed.
    """
    if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        raise InputError(
            f"there is no command {arguments[0]!r}; use one of {', '.join(COMMANDS)}."
            f"{did_you_mean(arguments[0], COMMANDS)}"
        )
    if arguments[:1] == ["fit"] and {"-h", "--help"} & set(arguments):
        print(FIT_HELP, end="")
        return
    for command in COMMANDS.values():  # tyro would break a help where the source breaks its line
        command.__doc__ = re.sub(r"\n {12}(?=\S)", " ", command.__doc__ or "")
    tyro.extras.subcommand_cli_from_dict(
        COMMANDS,
        args=["--help" if argument == "--help-all" else argument for argument in arguments],
        prog="rotarymae",
        description="Learn from irregular observations: pre-train, classify, interpolate, embed.",
        config=(FlagCreatePairsOff, DisallowNone, OmitArgPrefixes),
    )


def _as_option(name: str, value: object) -> str:
    """Return a setting as it is typed: ("batch_size", 8) becomes "--batch-size 8"."""
    return f"--{name.replace('_', '-')} {value}"


if __name__ == "__main__":
    main()
