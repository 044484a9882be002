"""Contenders in processes of their own, which take turns.

In one process they would not be alone: glibc gives large blocks back to the system and fetches them anew, page by page,
more or fewer of them depending on who ran before. In `equal` the paper's model took 22,000 to 134,000 page faults a
step for that reason, 0.07 to 0.35 s of about 1.3. Apart, each has memory as its users have it.
"""

from __future__ import annotations

import multiprocessing
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import torch

from benchmarks.measure import Settings

Turn = Callable[[], int]  # does the next piece of work and says how many tokens it had


class Apart:
    """Processes that build one `Turn` each and take it when told; the others wait meanwhile. A context manager."""

    def __init__(self, settings: Settings) -> None:
        methods = multiprocessing.get_all_start_methods()
        self.context: Any = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
        if "forkserver" in methods:
            self.context.set_forkserver_preload(["benchmarks.turns", "torch._dynamo"])  # imported once for all
        self.settings = settings
        self.processes: dict[str, tuple[Any, Connection]] = {}

    def __enter__(self) -> Apart:
        return self

    def __exit__(self, *_: object) -> None:
        for _, connection in self.processes.values():
            connection.close()  # which ends a process that waits for its turn
        for process, _ in self.processes.values():
            process.join(10)
            process.kill()
            process.join()

    def add(self, name: str, build: Callable[..., Turn], *arguments: Any) -> None:
        """A contender whose process calls build(settings, *arguments), a function of a module."""
        here, there = self.context.Pipe()
        process = self.context.Process(target=_serve, args=(there, self.settings, build, arguments), daemon=True)
        process.start()
        there.close()
        self.processes[name] = process, here

    def rates(self, pairs: int | None = None) -> dict[str, list[float]]:
        """Tokens/s of each contender, one after another, over and over; once before, unmeasured, to warm up.

        Raises:
            RuntimeError: a contender failed; with its traceback.
        """
        found: dict[str, list[float]] = {name: [] for name in self.processes}
        for round in range(1 + (pairs or self.settings.pairs)):
            for name in self.processes:
                rate = self._turn(name)
                if round:
                    found[name].append(rate)
        return found

    def _turn(self, name: str) -> float:
        process, connection = self.processes[name]
        try:
            connection.send("turn")
            kind, said = connection.recv()
        except (EOFError, OSError):
            process.join(10)
            raise RuntimeError(f"the process of {name!r} ended with code {process.exitcode}.") from None
        if kind == "failed":
            raise RuntimeError(f"{name!r} failed:\n{said}")
        seconds, tokens = said
        return tokens / seconds


def _serve(connection: Connection, settings: Settings, build: Callable[..., Turn], arguments: tuple[Any, ...]) -> None:
    if settings.threads:
        torch.set_num_threads(settings.threads)
    turn = None
    while True:
        try:
            connection.recv()
        except EOFError:  # the benchmark has ended
            return
        try:
            turn = turn or build(settings, *arguments)
            start = settings.now()
            tokens = turn()
            connection.send(("took", (settings.now() - start, tokens)))
        except BaseException:
            connection.send(("failed", traceback.format_exc()))
            return
