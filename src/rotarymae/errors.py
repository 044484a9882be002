"""The exceptions and warnings of this library, so that callers can tell its refusals from a bug."""

from __future__ import annotations

import difflib
import importlib
import json
import math
import signal
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, get_args, get_type_hints

LONGEST_MESSAGE = 2000  # characters


class RotaryMAEError(Exception):
    """Base of everything this library raises on purpose.

    Messages quote what files say. Control codes are escaped, so that a name cannot steer the terminal that shows it,
    and the middle of an endless message is left out.

    Attributes:
        code: kebab-case name of what happened, such as "unknown-column"; programs compare it, never the message.
        message: what happened, without the advice on settings.
        settings: (option, value) pairs that would avoid the error; `str(error)` writes them as Python, the command as
            options.
    """

    def __init__(
        self, message: object = "", *, code: str = "invalid", settings: Sequence[tuple[str, object]] = ()
    ) -> None:
        self.code, self.message, self.settings = code, printable(_shorten(str(message))), tuple(settings)
        super().__init__(self.advise(lambda name, value: f"{name}={json.dumps(value)}"))

    def advise(self, write: Callable[[str, object], str]) -> str:
        """Return the message with advice on settings, each written by `write(option, value)`."""
        advice = " or ".join(write(name, value) for name, value in self.settings)
        return f"{self.message} Use {advice}." if advice else self.message

    def within(self, where: object) -> Self:
        """Return the same error whose message says first where it happened."""
        error = type(self).__new__(type(self))
        error.__dict__.update(self.__dict__)
        RotaryMAEError.__init__(error, f"{where}: {self.message}", code=self.code, settings=self.settings)
        return error


def _shorten(text: str) -> str:
    if len(text) <= LONGEST_MESSAGE:
        return text
    half = LONGEST_MESSAGE // 2
    return f"{text[:half]} [... {len(text) - 2 * half} characters ...] {text[-half:]}"


def printable(text: str) -> str:
    """Return the text with control codes escaped: a name from a file must not steer the terminal that shows it."""
    return "".join(c if c.isprintable() or c in "\n\t\u00a0" else ascii(c)[1:-1] for c in text)


class InputError(RotaryMAEError, ValueError):
    """A table, array, setting or label that cannot be used; the message says what to do."""


class NoObservations(InputError):
    """A table that is laid out as it should be, in which nothing was observed.

    Attributes:
        reading: what became of its rows, a `series.reading.ReadingReport`; None of a table without rows.
    """

    def __init__(self, message: object = "", reading: Any = None) -> None:
        self.reading = reading
        super().__init__(message, code="no-observations")


class ModelDirectoryError(RotaryMAEError):
    """A model directory or checkpoint that is incomplete, damaged or of another kind."""


class ShardsFailed(RotaryMAEError):
    """Some files of a folder cannot be read; the message names them. All others are done."""


class MissingExtra(RotaryMAEError, ImportError):
    """A package that an extra of this library brings is not installed; the message says how to install it."""


class Interrupted(RotaryMAEError):
    """A training was asked to end and has saved its state.

    Attributes:
        signum: the signal, SIGTERM or SIGINT.
        step: optimiser steps done; a resumed run goes on with the next one.
        folder: where the state is.
    """

    def __init__(self, signum: int, step: int, folder: Path) -> None:
        self.signum, self.step, self.folder = signum, step, folder
        super().__init__(
            f"stopped by {signal.Signals(signum).name} after step {step}; the state is saved in {folder}. Resume the "
            f"run (--resume) to go on with step {step + 1}.",
            code="interrupted",
        )


class InputWarning(UserWarning):
    """Input that was repaired or looks unlike the training data; the message says how.

    Attributes:
        code: kebab-case name of what was seen; warnings with the same one, other than "invalid", are of one kind.
    """

    def __init__(self, message: object = "", *, code: str = "invalid") -> None:
        self.code = code
        super().__init__(message)


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """ " Did you mean 'flux'?" for the nearest of the known names, or nothing where none is near.

    A sentence to put behind the message. Names must be nearly alike: by Python's usual 0.6 'gcs' is near 'glucose'.
    """
    by_lower = {str(k).lower(): str(k) for k in known}
    near = difflib.get_close_matches(str(name).lower(), by_lower, n=1, cutoff=0.75)
    return f" Did you mean {by_lower[near[0]]!r}?" if near else ""


def listed(items: Iterable[Any], limit: int = 8) -> str:
    """Return the first few items as Python writes them: 'u', 'g', ... (6 in all)."""
    plain = [item.item() if hasattr(item, "item") else item for item in items]  # numpy's scalars as Python's
    text = ", ".join(repr(item) for item in plain[:limit])
    return text if len(plain) <= limit else f"{text}, ... ({len(plain)} in all)"


def choose(name: str, value: object, options: Sequence[str]) -> None:
    """Refuse an option that does not exist.

    Raises:
        InputError: naming the option, the value, and the known values.
    """
    if value not in options:
        raise InputError(
            f"{name}={value!r} is not known; use one of {listed(options)}.{did_you_mean(value, options)}",
            code="unknown-option",
        )


def names_of(names: Sequence[str] | str, what: str, empty: bool = False) -> tuple[str, ...]:
    """Return names of columns as a tuple; one string is one name. Raises InputError for anything else, or none."""
    if not isinstance(names, str | Iterable):
        raise InputError(f"{what} is {names!r}; give column names.")
    names = (names,) if isinstance(names, str) else tuple(names)
    if not names and not empty:
        raise InputError(f"{what} is empty; give at least one name.")
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise InputError(f"{what} holds {listed(wrong)}, which is no string; give column names.")
    return names


def check_whole(name: str, value: Any, least: int, optional: bool = False) -> None:
    """Raise InputError unless the value is a whole number of at least `least`, or None where it is optional."""
    if not (optional and value is None) and (type(value) is not int or value < least):
        raise InputError(f"{name} is {value!r}; wanted a whole number of at least {least}.")


def check_number(
    name: str,
    value: Any,
    allowed: str,
    least: float = -math.inf,
    above: float = -math.inf,
    below: float = math.inf,
    optional: bool = False,
) -> None:
    """Raise InputError unless the value is a finite number in the range (`allowed` in words), or an optional None."""
    if optional and value is None:
        return
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not (number and value >= least and value > above and value < below):
        raise InputError(f"{name} is {value!r}; wanted {allowed}.")


def check_settings(holder: object, *rules: tuple[Callable[..., None], Iterable[str], dict[str, Any]]) -> None:
    """Check the attributes of an object: each rule is a check, the names it is for, and its further arguments."""
    for check, names, arguments in rules:
        for name in names:
            check(name, getattr(holder, name), **arguments)


def check_choices(holder: object) -> None:
    """Refuse a word in a field whose annotation lists other words (`Literal["a", "b"]`)."""
    for name, kind in get_type_hints(type(holder)).items():
        options = get_args(kind)
        if options and all(isinstance(option, str) for option in options):
            choose(name, getattr(holder, name), options)


def check_share(name: str, value: Any) -> None:
    """Raise InputError unless 0 ≤ value < 1."""
    check_number(name, value, "at least 0 and less than 1", least=0, below=1)


def import_extra(module: str, extra: str) -> Any:
    """Import and return a module that comes with an extra of this library.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise  # the package is there and lacks something itself
        raise MissingExtra(
            f'{package} is not installed: pip install "rotarymae[{extra}]", or in a clone of the repository '
            f"pip install -c constraints.txt '.[{extra}]'"
        ) from None


_GATHERING = threading.RLock()


@contextmanager
def gathered_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Yield a list that gets every warning of what runs inside.

    One thread at a time: filters are the process's, and two threads that restore them cross over would lose them.
    """
    with _GATHERING, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught
