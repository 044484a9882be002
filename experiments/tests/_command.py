"""The command `rotarymae-experiments`, run in this process."""

from rotarymae_experiments import cli


def command(*arguments):
    """The exit code."""
    try:
        cli.main([str(argument) for argument in arguments])
    except SystemExit as end:
        return end.code or 0
    return 0
