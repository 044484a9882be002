"""What a person sees while a command works: bars with the time left and the running loss, and plain warnings."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from rotarymae.errors import InputWarning


class Reporter:
    """Prints to the terminal, or with quiet=True only what went wrong; collects warnings for the report."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self.console = Console(stderr=True, highlight=False)
        self.warnings: list[str] = []

    def say(self, text: str) -> None:
        if not self.quiet:
            self.console.print(text, markup=False, soft_wrap=True)

    def warn(self, text: str) -> None:
        """As a warning that `catching_warnings` has caught."""
        self._show(text, InputWarning)

    @contextmanager
    def bar(self, title: str) -> Iterator[Callable[..., None]]:
        """Gives on_step(done, total, loss=None)."""
        if self.quiet:
            yield lambda *step: None
            return
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
                progress.update(task, completed=done, total=total, loss="" if loss is None else f"loss {loss:.4f}")

            yield on_step

    @contextmanager
    def catching_warnings(self) -> Iterator[None]:
        """Shows each warning once, without the line of code it came from."""
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.showwarning = self._show
            yield

    def _show(self, message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if issubclass(category, InputWarning):
            if str(message) not in self.warnings:
                self.warnings.append(str(message))
                self.console.print(f"warning: {message}", style="yellow", markup=False, soft_wrap=True)
        elif not self.quiet and not issubclass(category, DeprecationWarning | FutureWarning | ResourceWarning):
            self.console.print(f"{category.__name__}: {message}", style="dim", markup=False, soft_wrap=True)
