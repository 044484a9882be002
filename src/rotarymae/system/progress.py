"""Progress of a command as a person sees it: its stages with the time left and the running loss, and plain warnings."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from rotarymae.errors import InputWarning, printable

EVERY = 60.0  # seconds between the lines of a stage where standard error is no terminal


class Reporter:
    """Print progress and warnings to standard error, with control codes escaped.

    Attributes:
        quiet: whether nothing is printed but warnings of this library.
        console: rich's console on standard error.
        warnings: texts of the InputWarnings shown so far, each once; they go into the report.
    """

    def __init__(self, quiet: bool = False) -> None:
        """Open the console; `quiet` is True to print warnings only."""
        self.quiet = quiet
        self.console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        self.warnings: list[str] = []

    def say(self, text: str) -> None:
        """Print a line of text on standard error, unless the reporter is quiet."""
        if not self.quiet:
            self.console.print(printable(text), soft_wrap=True)

    def warn(self, text: str) -> None:
        """Print "warning: TEXT" on standard error, also if the reporter is quiet, and keep the text in `warnings`.

        Nothing happens if the same text was shown before.
        """
        self._show(text, InputWarning)

    @contextmanager
    def bar(self, title: str) -> Iterator[Callable[..., None]]:
        """Show the progress of a stage, `title` ("reading"), in a `with` block; yield a function to call at each step.

        Call it as on_step(done, total, loss=None): steps done, steps in all, and the loss so far. A terminal shows a
        bar. Elsewhere a line of text is printed at the start, at a step whenever a minute has passed, and at the end.
        The last one is omitted after an error, and for a stage of less than a second without a loss. A quiet reporter
        shows nothing.
        """
        if self.quiet:
            yield lambda *step, **loss: None
        else:
            with (self._bar if self.console.is_terminal else self._lines)(title) as on_step:
                yield on_step

    @contextmanager
    def _bar(self, title: str) -> Iterator[Callable[..., None]]:
        """Show a progress bar for the stage `title`; yield on_step(done, total, loss=None), to call at each step."""
        columns = (
            TextColumn("{task.description:<14}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[loss]:<12}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=self.console, refresh_per_second=4) as progress:
            task = progress.add_task(title, total=None, loss="")

            def on_step(done: int, total: int, loss: float | None = None) -> None:
                """Move the bar to `done` of `total`, with the loss next to it if there is one."""
                progress.update(task, completed=done, total=total, loss="" if loss is None else f"loss {loss:.4f}")

            yield on_step

    @contextmanager
    def _lines(self, title: str) -> Iterator[Callable[..., None]]:
        """Print the progress of the stage `title` in lines; yield on_step(done, total, loss=None) to call at each step.

        A line comes at the start, at a step whenever a minute has passed, and at the end. The last one is
        omitted after an error, and for a stage of less than a second without a loss.
        """
        self.say(f"{title} ...")
        started = said = time.monotonic()
        steps, ended = "", ""

        def on_step(done: int, total: int, loss: float | None = None) -> None:
            """Print the share of steps done and the time left, if the last line is at least a minute ago.

            The loss is kept for the line at the end.
            """
            nonlocal said, steps, ended
            now = time.monotonic()
            if loss is not None:
                steps, ended = f"{done:,} steps in ", f", loss {loss:.4f}"
            if done and now - said >= EVERY:
                said, left = now, (now - started) / done * (total - done)
                share = f"{100 * done / total:.0f} % ({done:,} of {total:,}{' steps' if ended else ''})"
                self.say(f"{title}: {share}, {duration(left)} left{ended}")

        yield on_step
        seconds = time.monotonic() - started
        if steps or seconds >= 1:
            self.say(f"{title}: {steps}{duration(seconds)}{ended}")

    @contextmanager
    def catching_warnings(self) -> Iterator[None]:
        """Print warnings raised in the `with` block as one line each, without Python's line of code.

        An InputWarning is always printed, each text once, and kept in `warnings`. DeprecationWarning, FutureWarning and
        ResourceWarning are dropped. Other warnings are printed unless the reporter is quiet. After the block, Python's
        warning filters are as before.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.showwarning = self._show
            yield

    def _show(self, message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        """Print a warning; this function replaces `warnings.showwarning`, whose further arguments it ignores.

        An InputWarning is printed if its text is new, and added to `warnings`. Others are not printed if the reporter
        is quiet; DeprecationWarning, FutureWarning and ResourceWarning are never printed.
        """
        if issubclass(category, InputWarning):
            if str(message) not in self.warnings:
                self.warnings.append(str(message))
                self.console.print(printable(f"warning: {message}"), style="yellow", soft_wrap=True)
        elif not self.quiet and not issubclass(category, DeprecationWarning | FutureWarning | ResourceWarning):
            self.console.print(printable(f"{category.__name__}: {message}"), style="dim", soft_wrap=True)


def duration(seconds: float) -> str:
    """Return a number of seconds as text: "0.4 s", "37 s", "12 min 5 s", "3 h 12 min", or from 48 h on "5 days 2 h"."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    minutes = round(whole / 60)
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    hours = round(minutes / 60)
    return f"{hours // 24:,} days {hours % 24} h"


def moment(seconds: float) -> str:
    """Return the local time that is `seconds` from now, as "14:32", or if on another day, as "2026-11-27 02:10"."""
    now = datetime.now()
    then = now + timedelta(seconds=seconds)
    return f"{then:%H:%M}" if then.date() == now.date() else f"{then:%Y-%m-%d %H:%M}"
