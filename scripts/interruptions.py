"""Pulls the plug on small runs at random moments, resumes them, and compares with runs that were left alone.

    python scripts/interruptions.py --count 40

Half of the interruptions are SIGKILL, half SIGTERM or SIGINT. They come during a step, during a save (between any two
flushes to disk), while a file of weights is written (half of it lies there under a temporary name, as safetensors does
it), during an evaluation, or at a moment of the clock. Pre-training and fine-tuning take turns, with dropout,
stochastic depth, augmentation, early stopping and the best weights kept, with and without workers. A run counts when
its final weights and its log are the same bytes as those of the run that was left alone. Exit code 0: all did.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from _runs import digest, examples, objective, settings
from rotarymae.series import SeriesExamples
from rotarymae.system import atomic_write
from rotarymae.training import checkpointing
from rotarymae.training import loop as training

WHERE = ("step", "save", "write", "evaluation", "clock")
SCENES = [
    {"kind": "pretrain", "workers": 0, "checkpoint_steps": 3, "keep_best": True, "patience": 2},
    {"kind": "classify", "workers": 2, "checkpoint_steps": 1, "keep_best": True, "patience": 3, "accumulation": 2},
    {"kind": "pretrain", "workers": 2, "checkpoint_steps": 2, "batch_size": None, "batch_tokens": 64},
    {"kind": "regress", "workers": 0, "checkpoint_steps": 5, "keep_best": True, "keep": 1, "optimizer": "sgd"},
]


def run(scene: dict, folder: Path, strike: tuple[str, int, int] | None) -> None:
    """The whole run, or up to the blow: `strike` is (where, the how manieth time, signal)."""
    torch.set_num_threads(1)
    held = examples(scene["kind"], 11, of=1, augment=False)
    if strike is not None:
        arm(*strike, held)
    changes = {key: value for key, value in scene.items() if key != "kind"}
    kind = scene["kind"]
    what = objective(kind)
    try:
        training.fit(
            what,
            examples(kind),
            settings(epochs=6, **changes),
            validation=held,
            folder=folder,
            resume="auto",
        )
    except training.Interrupted:
        os._exit(75)
    (folder / "final.txt").write_text(digest(what.model))


def arm(where: str, at: int, blow: int, held: SeriesExamples) -> None:
    """Strikes this process itself at the `at`-th moment of a kind; for "clock" after `at` milliseconds."""
    if where == "clock":

        def later() -> None:
            time.sleep(at / 1000)
            os.kill(os.getpid(), blow)

        threading.Thread(target=later, daemon=True).start()
        return
    passed = 0

    def count() -> None:
        nonlocal passed
        passed += 1
        if passed == at:
            os.kill(os.getpid(), blow)

    if where == "step":  # between the gradients and the weights' change
        owners, name = [training.nn.utils], "get_total_norm"
    elif where == "save":
        owners, name = [atomic_write, checkpointing], "flush"
    elif where == "write":
        owners, name = [checkpointing], "save_file"
    else:
        owners, name = [held], "batch"
    inner = getattr(owners[0], name)

    def outer(*arguments, **named):
        if where == "write":
            half = arguments[1].with_name(".tmpAbCdEf")
            half.write_bytes(b"half")
            count()
            half.unlink()
        else:
            count()
        return inner(*arguments, **named)

    for owner in owners:
        setattr(owner, name, outer)


def child(scene: dict, folder: Path, strike: tuple[str, int, int] | None) -> int:
    """Runs in a forked process, which is warm; returns how it ended, minus the signal or the exit code."""
    pid = os.fork()
    if pid == 0:
        code = 1
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # ends the process, as SIGTERM does, where nobody watches it
        try:
            run(scene, folder, strike)
            code = 0
        finally:
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quiet", action="store_true")
    given = parser.parse_args()
    draw = random.Random(given.seed)
    struck = {signal.SIGKILL: 0, signal.SIGTERM: 0, signal.SIGINT: 0}
    moments = dict.fromkeys(WHERE, 0)
    same = late = number = 0
    with tempfile.TemporaryDirectory() as root:
        wanted = []
        for i, scene in enumerate(SCENES[: given.count]):
            folder = Path(root) / f"alone-{i}"
            started = time.monotonic()
            assert child(scene, folder, None) == 0, f"scene {scene} cannot even be run"
            took = time.monotonic() - started
            wanted.append(((folder / "final.txt").read_text(), (folder / "log.jsonl").read_bytes(), took))
        while sum(struck.values()) < given.count:
            number_struck = sum(struck.values())
            blow = (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGINT)[number_struck % 4]
            where = WHERE[(number_struck // 2) % len(WHERE)]
            scene = draw.randrange(len(wanted))
            final, log, took = wanted[scene]
            # Moments of the whole run: 24 steps, some 60 flushes, 6 evaluations of 2 batches, took seconds.
            most = {"step": 20, "save": 25, "write": 12, "evaluation": 12, "clock": round(900 * took)}[where]
            folder = Path(root) / f"run-{number}"
            number += 1
            ended = child(SCENES[scene], folder, (where, draw.randint(1, most), blow))
            if ended == 0:  # the moment came after the end of the run: it does not count
                late += 1
                continue
            assert ended in (-9, -15, -2, 75), f"the run ended with {ended}"
            struck[blow] += 1
            moments[where] += 1
            again = child(SCENES[scene], folder, None)
            left = [path.name for path in (folder / "checkpoints").glob(".*")]
            equal = (
                again == 0
                and not left
                and (folder / "final.txt").read_text() == final
                and (folder / "log.jsonl").read_bytes() == log
            )
            same += equal
            if not given.quiet or not equal:
                print(f"{blow.name} during {where}: {'identical' if equal else 'DIFFERENT'} {left or ''}", flush=True)
    total = sum(struck.values())
    signals = ", ".join(f"{n} {blow.name}" for blow, n in struck.items())
    when = ", ".join(f"{n} during {where}" for where, n in moments.items())
    print(f"{same} of {total} interrupted runs ended bit-identical ({signals}; {when})")
    sys.exit(0 if same == total else 1)


if __name__ == "__main__":
    main()
