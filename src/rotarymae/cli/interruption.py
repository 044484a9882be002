"""How a command ends that is stopped, by Ctrl-C or SIGTERM, or fails: with one sentence and an exit code."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rotarymae.errors import InputError, ModelDirectoryError, RotaryMAEError, ShardsFailed, printable
from rotarymae.tables.schema import option


class Stopped(KeyboardInterrupt):
    """SIGINT or SIGTERM arrived; a KeyboardInterrupt, so that `except Exception` does not swallow it."""

    def __init__(self, signum: int) -> None:
        """Keep the number of the signal, such as signal.SIGTERM."""
        self.signum = signum
        super().__init__()


@contextmanager
def stopping_on_signals() -> Iterator[None]:
    """Raise Stopped in the `with` block when SIGINT or SIGTERM arrives; restore the former handlers after it.

    After the first signal, the same one again ends the process at once, and the other one is ignored, as launchers
    pass Ctrl-C on as SIGTERM, too. Signals that the process ignores already, as under `nohup`, stay ignored. Outside
    the main thread, the only one that may set handlers, nothing is changed.

    After a signal, any other error that leaves the block is replaced by that Stopped, with the error's notes: DuckDB
    raises RuntimeError("Query interrupted") in its place. Without a signal, errors pass unchanged.
    """
    watched = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    former: dict[int, Any] = {signum: signal.getsignal(signum) for signum in watched}
    former = {signum: handler for signum, handler in former.items() if handler not in (None, signal.SIG_IGN)}
    stopped: list[Stopped] = []

    def stop(signum: int, frame: object) -> None:
        """Raise Stopped for the first signal, `signum`, and set what the next one will do; `frame` is not read."""
        for each in former:
            signal.signal(each, signal.SIG_DFL if each == signum else signal.SIG_IGN)
        stopped.append(Stopped(signum))
        raise stopped[0]

    try:
        for signum in former:
            signal.signal(signum, stop)
        yield
    except (Exception, KeyboardInterrupt) as error:
        if not stopped or error is stopped[0]:
            raise
        for note in getattr(error, "__notes__", ()):
            stopped[0].add_note(note)
        raise stopped[0] from error
    finally:
        for signum, handler in former.items():
            signal.signal(signum, handler)


@contextmanager
def ending(command: str, note: str) -> Iterator[None]:
    """Print why the `with` block ended, an error or a signal, to standard error; exit with the code for it.

    SIGINT and SIGTERM stop the block, see `stopping_on_signals`. Nothing happens after a block without an error. Errors
    that are neither the library's (`RotaryMAEError`) nor OSError pass unchanged, as does SystemExit.

    Args:
        command: its name, with which the text begins.
        note: the sentence to print after "stopped by SIGINT.", such as "Nothing was written." If the stop came within a
            block `with_advice(...)`, the sentence of that block is printed instead.

    Raises:
        SystemExit: with code 2 for refused input or options, or a damaged model; 3 if some files of a folder could not
            be read and all others are done; 128 + the number of the signal (130 for Ctrl-C) if one stopped the command;
            1 for any other RotaryMAEError or OSError; 1 with nothing printed if nobody reads the output any more.
    """
    try:
        with stopping_on_signals():
            yield
    except KeyboardInterrupt as error:  # also Arrow's, which has a handler of its own while it reads
        signum = error.signum if isinstance(error, Stopped) else signal.SIGINT
        note = getattr(error, "__notes__", [note])[0]
        text = f"stopped by {signal.Signals(signum).name}. {note}"
        code = 128 + signum  # as a shell reports it: 130 for Ctrl-C, 143 for SIGTERM
    except (InputError, ModelDirectoryError) as error:
        text, code = error.advise(option), 2
    except ShardsFailed as error:
        text, code = str(error), 3
    except BrokenPipeError:  # whoever read our output has closed it, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (RotaryMAEError, OSError) as error:
        text, code = printable(str(error)), 1
    else:
        return
    print(f"{command}: {text}", file=sys.stderr)
    sys.exit(code)


@contextmanager
def with_advice(advise: Callable[[], str]) -> Iterator[None]:
    """Add a sentence to an error that leaves the `with` block, or to a stop by a signal, and raise it again.

    The sentence is added as a note (`add_note`). After a stop, `ending` prints this sentence in place of its own. If
    blocks are nested, it prints the sentence of the innermost one.

    Args:
        advise: returns the sentence; it is called only after an error or a stop.
    """
    try:
        yield
    except (KeyboardInterrupt, Exception) as error:  # a stop may look like an error, see `stopping_on_signals`
        error.add_note(advise())
        raise


def how_to_resume(out: Path) -> str:
    """Return a sentence on what an interrupted `fit` has saved in its folder `out`, and from where --resume goes on.

    It is "Nothing was saved." if `out` does not exist, or no training has begun in it.
    """
    if out.is_dir() and any(out.rglob("checkpoint.safetensors")):  # those of a cross-validation lie in its folds
        return f"The state of the training is saved in {out}; --resume goes on from there."
    if (out / "training").is_dir():
        return f"No state was saved in {out} yet; --resume begins at the beginning."
    return "Nothing was saved."
