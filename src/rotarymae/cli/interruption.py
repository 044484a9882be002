"""Ctrl-C and SIGTERM end a command at any moment, within five seconds. Imports nothing heavy."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

GRACE = 4.0  # seconds from a signal until the process is ended from outside the main thread
STAGES = {"finetune": "fine-tuning", "pretrain": "pre-training"}  # below training/, the later one first


class Stopped(KeyboardInterrupt):
    """SIGINT or SIGTERM came. It is no Exception, so that nothing that survives errors survives it.

    Attributes:
        signum: which of them.
        advice: what is saved, and how to go on.
    """

    def __init__(self, signum: int, advice: str) -> None:
        self.signum, self.advice = signum, advice
        super().__init__(f"stopped by {signal.Signals(signum).name}. {advice}")


@contextmanager
def stopping_on_signals(advise: Callable[[], str]) -> Iterator[None]:
    """Within, SIGINT and SIGTERM raise Stopped in the main thread; training has handlers of its own that save first.

    Python runs handlers between two operations only, and one operation on a huge tensor can take minutes. A thread
    therefore watches, and ends the process when it is still at work after GRACE seconds, or when the same signal comes
    a second time. Files are written beside and renamed, so that what was saved before stands. Outside the main thread
    signals cannot be watched, and nothing happens.

    Args:
        advise: says what is saved, and how to go on; called in either thread.
    """
    former: dict[int, Any] = {}

    def stop(signum: int, frame: Any) -> None:
        for each in former:  # one exception is enough: a second one would break what cleans up after the first
            signal.signal(each, lambda signum, frame: None)
        raise Stopped(signum, advise())

    def unraisable(raised: Any) -> None:
        # In a finalizer Python drops what a handler raises. The thread then ends the process, without a traceback.
        if not isinstance(raised.exc_value, Stopped):
            former_hook(raised)

    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    with receiver, sender:
        try:
            # The one thing that Python does at once, whatever the main thread is in: a byte to this socket.
            former_sender = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
        except ValueError:
            yield
            return
        watchdog = threading.Thread(target=_watch, args=(receiver, advise), daemon=True)
        former_hook, sys.unraisablehook = sys.unraisablehook, unraisable
        try:
            for signum in (signal.SIGINT, signal.SIGTERM):
                former[signum] = signal.signal(signum, stop)
            watchdog.start()
            yield
        except KeyboardInterrupt as error:  # Arrow has a handler of its own while it reads
            raise error if isinstance(error, Stopped) else Stopped(signal.SIGINT, advise()) from error
        finally:
            for signum, handler in former.items():
                signal.signal(signum, handler)
            signal.set_wakeup_fd(former_sender)
            sys.unraisablehook = former_hook
            sender.send(b"\0")
            watchdog.join()


def _watch(receiver: socket.socket, advise: Callable[[], str]) -> None:
    first, deadline = 0, 0.0
    while True:
        receiver.settimeout(max(deadline - time.monotonic(), 0.001) if first else None)
        try:
            (signum,) = receiver.recv(1)
        except TimeoutError:
            signum = first
        if signum == 0:
            return
        if signum not in (signal.SIGINT, signal.SIGTERM):
            continue
        if signum == first:
            name = signal.Signals(signum).name
            os.write(2, f"\nrotarymae: stopped by {name} in the middle of its work. {advise()}\n".encode())
            os._exit(128 + signum)
        if not first:
            first, deadline = signum, time.monotonic() + GRACE


def how_to_resume(out: Path) -> str:
    """What an interrupted `fit` has saved in its folder."""
    for stage, name in STAGES.items():
        found = [re.match(r"step-(\d+)-", path.name) for path in (out / "training" / stage / "checkpoints").glob("*")]
        steps = [int(match[1]) for match in found if match]
        if steps:
            return f"The state after step {max(steps)} of {name} is saved in {out}; --resume goes on from there."
    if (out / "training").is_dir():
        return f"No state was saved in {out} yet; --resume begins at the beginning."
    return "Nothing was saved."
