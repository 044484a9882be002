"""The exceptions and warnings of this library, so that callers can tell its refusals from a bug."""

from __future__ import annotations

import difflib
import importlib
import json
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

LONGEST_MESSAGE = 2000  # characters


class RotaryMAEError(Exception):
    """Base of all errors that this library raises on purpose.

    Messages quote the contents of files, so control codes are escaped, lest a name steer the terminal that shows it,
    and the middle of a very long message is left out.

    Attributes:
        code: kebab-case name of the kind of error, such as "unknown-column"; programs compare it, never the message.
        message: the message without advice on settings.
        settings: (option, value) pairs, each of which would avoid the error; `str(error)` ends with them as Python, the
            command's message as options.
    """

    def __init__(
        self, message: object = "", *, code: str = "invalid", settings: Sequence[tuple[str, object]] = ()
    ) -> None:
        """Keep the message, its code (kebab-case name of the kind of error), and settings that would avoid the error.

        Settings are pairs (option, value). The message is cut to about 2,000 characters; unprintable ones are escaped.
        """
        text, half = str(message), LONGEST_MESSAGE // 2
        if len(text) > LONGEST_MESSAGE:
            text = f"{text[:half]} [... {len(text) - 2 * half} characters ...] {text[-half:]}"
        self.code, self.message, self.settings = code, printable(text), tuple(settings)
        super().__init__(self.advise(lambda name, value: f"{name}={json.dumps(value)}"))

    def advise(self, write: Callable[[str, object], str]) -> str:
        """Return the message and, if there are settings that would avoid the error, advice such as "Use window=512."

        Args:
            write: function from (option, value) to a setting as text, such as "window=512" in Python or "--window 512".
        """
        advice = " or ".join(write(name, value) for name, value in self.settings)
        return f"{self.message} Use {advice}." if advice else self.message

    def within(self, where: object) -> Self:
        """Return a copy of the error whose message has "WHERE: ", such as the name of a file, in front.

        If the message begins with `where` already, nothing is put in front. Code and settings are the same.
        """
        error = type(self).__new__(type(self))
        error.__dict__.update(self.__dict__)
        message = self.message if self.message.startswith(str(where)) else f"{where}: {self.message}"
        RotaryMAEError.__init__(error, message, code=self.code, settings=self.settings)
        return error


def printable(text: str) -> str:
    """Return a text with its unprintable characters escaped, because they could steer a terminal: ESC becomes \\x1b.

    Newlines, tabs and no-break spaces stay.
    """
    return "".join(c if c.isprintable() or c in "\n\t\u00a0" else ascii(c)[1:-1] for c in text)


def shortened(text: str, most: int) -> str:
    """Return a text on one line of at most `most` characters; an ellipsis replaces its middle if needed: "fir…ast"."""
    text, half = " ".join(text.split()), (most - 1) // 2
    return text if len(text) <= most else f"{text[: most - 1 - half]}…{text[len(text) - half :]}"


class InputError(RotaryMAEError, ValueError):
    """A table, array, setting or label that cannot be used; the message says what to do."""


class NoObservations(InputError):
    """A table with a valid layout in which nothing was observed.

    Attributes:
        reading: the `series.reading.ReadingReport` on its rows; None for a table without rows.
    """

    def __init__(self, message: object = "", reading: Any = None) -> None:
        """Store the message and `reading`, the report on how the table was read; the code is "no-observations"."""
        self.reading = reading
        super().__init__(message, code="no-observations")


class ModelDirectoryError(RotaryMAEError):
    """A model directory or checkpoint that is incomplete, damaged or of another kind."""


class ShardsFailed(RotaryMAEError):
    """Some files of a folder cannot be read; the message names them. All others are done."""


class MissingExtra(RotaryMAEError, ImportError):
    """A package of an optional extra of this library is not installed; the message says how to install it."""


class InputWarning(UserWarning):
    """Input that was repaired or looks unlike the training data; the message says how.

    Attributes:
        code: kebab-case name of the kind of warning; warnings with equal codes, other than "invalid", are alike.
    """

    def __init__(self, message: object = "", *, code: str = "invalid") -> None:
        """Keep the message and the code, which is the kebab-case name of the kind of warning."""
        self.code = code
        super().__init__(message)


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """Return " Did you mean 'flux'?", to be appended to a message, with the known name that is most similar to `name`.

    Case is ignored. The text is "" if no known name is nearly equal (difflib's ratio of at least 0.75).
    """
    by_lower = {str(k).lower(): str(k) for k in known}
    near = difflib.get_close_matches(str(name).lower(), by_lower, n=1, cutoff=0.75)
    return f" Did you mean {by_lower[near[0]]!r}?" if near else ""


def listed(items: Iterable[Any], limit: int = 8) -> str:
    """Return items in Python's notation, separated by commas, for a message: "'u', 'g'".

    If there are more than `limit`, such as 2, the rest is counted: "'u', 'g', ... (6 in all)".
    """
    plain = [item.item() if hasattr(item, "item") else item for item in items]  # numpy's scalars as Python's
    text = ", ".join(repr(item) for item in plain[:limit])
    return text if len(plain) <= limit else f"{text}, ... ({len(plain)} in all)"


def choose(name: str, value: object, options: Sequence[str]) -> None:
    """Raise InputError (code "unknown-option") unless `value` is among the options.

    Args:
        name: name of the setting that has the value, for the message.
        value: the value to check.
        options: the values that are allowed, which the message lists.
    """
    if value not in options:
        raise InputError(
            f"{name}={value!r} is not known; use one of {listed(options)}.{did_you_mean(value, options)}",
            code="unknown-option",
        )


def import_extra(module: str, extra: str) -> Any:
    """Import and return a module that comes with an optional extra of this library.

    Args:
        module: dotted name, such as "PIL.Image".
        extra: name of the extra, for the message.

    Raises:
        MissingExtra: its package is not installed, or lacks the module.
        Exception: what else the import raises, such as ModuleNotFoundError for a package that this one imports.
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
    """Yield a list to which all warnings raised in the `with` block are added, also by other threads; none is shown.

    Warning filters are shared by all threads, so only one thread at a time may be in such a block; others wait for it.
    """
    with _GATHERING, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught
