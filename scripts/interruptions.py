"""Pulls the plug on `rotarymae fit` at random moments of every stage, resumes it, and compares with a run left alone.

    python scripts/interruptions.py --count 40

Half of the blows are SIGKILL, half SIGTERM or SIGINT, up to three in one run. A run says over a pipe where it is:
which stage begins, when a file is flushed to disk, and when half of a file of weights lies on disk under a temporary
name, as safetensors writes it. The blow falls after one of these, drawn at random, within the time until the next. A
run counts when SIGTERM and SIGINT are answered within five seconds with their exit code, and when after `--resume` its
weights, logs, predictions and metrics are the same bytes as those of the run left alone, with no file left over. Exit
code 0: all did.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import importlib
import json
import os
import random
import signal
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from _runs import series
from rotarymae import calibration, metrics, saving
from rotarymae.cli.main import main as rotarymae
from rotarymae.partners import base, boosting
from rotarymae.report import build
from rotarymae.system import Reporter, atomic_write
from rotarymae.training import checkpointing

# Loaded before the fork: together they take longer than a run.
for slow in ("torch._dynamo", "sklearn.ensemble"):
    importlib.import_module(slow)
BLOWS = (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGINT)
GRACE = 5.0  # seconds in which SIGTERM and SIGINT are to be answered
SIZES = "--embed-dim 24 --num-heads 2 --depth 2 --decoder-embed-dim 12 --decoder-num-heads 1 --decoder-depth 1"
COMMON = f"--channel channel --min-steps 0 --batch-size 10 --log-every 1 {SIZES} --pretrain-epochs 3 --quiet"
SCENES = [
    "--label kind --finetune-epochs 3 --checkpoint-minutes 0 --dropout 0.1 --drop-path 0.2",
    "--label size --finetune-epochs 2 --checkpoint-minutes 1e-3 --optimizer sgd",
    "--checkpoint-minutes 0 --masking rows",
]


@dataclass(frozen=True)
class Blow:
    """Falls `delay` seconds after the `nth` time that a run says `moment`."""

    signum: signal.Signals
    moment: str
    nth: int
    delay: float


def write_table(path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "time", "channel", "value", "kind", "size"])
        for i, one in enumerate(series(40)):
            for time_, channel, value in zip(one.times, one.channels, one.values[:, 0], strict=True):
                writer.writerow([one.id, time_, "gr"[channel], value, "abc"[i % 3], i**0.5])


def run(scene: str, table: Path, folder: Path, pipe: int) -> None:
    """The command, which says over the pipe where it is."""
    torch.set_num_threads(1)

    def say(moment: str) -> None:
        os.write(pipe, f"{moment}\n".encode())

    bar = Reporter.bar

    @contextmanager
    def saying_bar(self: Reporter, title: str):
        say(title)
        with bar(self, title) as on_step:
            yield on_step

    Reporter.bar = saying_bar
    # All this takes longer than the rest of a run, and writes nothing of its own.
    build.data_uri = lambda figure: ""
    metrics.RESAMPLES = metrics.MIN_RESAMPLES = 5
    calibration.MAX_DRAWS, calibration.STEPS = 3, 6
    boosting.SLOW |= {"num_iterations": 40}
    boosting.QUICK |= {"num_iterations": 40}
    for module in (atomic_write, checkpointing):
        module.flush = saying(module.flush, say)
    for module in (saving, base):
        module.save_file = saying(module.save_file, say, half=True)
    rotarymae(["fit", str(table), "--out", str(folder), *COMMON.split(), *scene.split(), "--resume"])


def saying(inner, say, half: bool = False):
    """The same function, which says before it works that it is about to; with `half` of its file on disk."""

    def outer(*arguments, **named):
        if not half:
            say("flush")
            return inner(*arguments, **named)
        part = Path(arguments[1]).with_name(".tmpAbCdEf")
        part.write_bytes(b"half")
        say("weights")
        time.sleep(0.02)  # for the blow to fall
        part.unlink()
        return inner(*arguments, **named)

    return outer


def child(scene: str, table: Path, folder: Path, blow: Blow | None = None):
    """Runs in a forked process, which is warm: (exit code or minus the signal, seconds from the blow to the end, what
    it said and when). The seconds are None when the run had ended before the blow."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        code = 1
        try:
            run(scene, table, folder, writer)
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            sys.stderr.flush()
            os._exit(code)
    os.close(writer)
    said, struck = [], None
    with os.fdopen(reader) as lines:
        for line in lines:
            said.append((line.strip(), time.monotonic()))
            if blow is not None and struck is None and [name for name, _ in said].count(blow.moment) == blow.nth:
                time.sleep(blow.delay)
                struck = time.monotonic()
                os.kill(pid, blow.signum)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return code, None if struck is None or code == 0 else time.monotonic() - struck, said


def draw_blow(draw: random.Random, said: list[tuple[str, float]], signum: signal.Signals) -> Blow:
    """Stages, flushes and weights are as likely; then one of them, then a moment before the next."""
    moment = draw.choice(sorted({name for name, _ in said}))
    at = [i for i, (name, _) in enumerate(said) if name == moment]
    nth = draw.randrange(len(at))
    delay = 0.0
    if moment != "weights" and at[nth] + 1 < len(said):
        delay = draw.uniform(0, said[at[nth] + 1][1] - said[at[nth]][1])
    return Blow(signum, moment, nth + 1, delay)


def contents(folder: Path) -> dict[str, object]:
    """What must be the same: each file's digest, and metrics.json but for what tells of this very run."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_dir() or path.name in (".lock", "report.html", "results.json", "checkpoint.safetensors"):
            assert not path.name.startswith(".") or path.name == ".lock", f"{path} was left over"
        elif path.name == "metrics.json":
            metrics = json.loads(path.read_text())
            found["metrics.json"] = {k: v for k, v in metrics.items() if k not in ("run", "seconds", "command")}
        else:
            found[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=40, help="blows")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    draw = random.Random(given.seed)
    struck: list[Blow] = []
    bad = runs = 0
    slowest = 0.0
    with tempfile.TemporaryDirectory() as root:
        table = Path(root) / "table.csv"
        write_table(table)

        @cache
        def left_alone(scene: int) -> tuple[dict[str, object], list[tuple[str, float]]]:
            code, _, said = child(SCENES[scene], table, Path(root) / f"alone-{scene}")
            assert code == 0, f"{SCENES[scene]} cannot even be run"
            return contents(Path(root) / f"alone-{scene}"), said

        while len(struck) < given.count:
            scene, folder = draw.randrange(len(SCENES)), Path(root) / f"run-{runs}"
            wanted, said = left_alone(scene)
            runs, history, wrong = runs + 1, [], []
            for _ in range(min(draw.randint(1, 3), given.count - len(struck))):
                blow = draw_blow(draw, said, BLOWS[len(struck) % len(BLOWS)])
                code, seconds, _ = child(SCENES[scene], table, folder, blow)
                if seconds is None:  # the moment came after the end of the run: it does not count
                    wrong += [] if code == 0 else [f"ended with {code}"]
                    break
                struck.append(blow)
                history.append(f"{blow.signum.name} in {blow.moment} {blow.nth}")
                soft = blow.signum != signal.SIGKILL
                slowest = max(slowest, seconds if soft else 0.0)
                if code != (128 + blow.signum if soft else -blow.signum) or (soft and seconds > GRACE):
                    wrong.append(f"ended with {code} after {seconds:.1f} s")
            if not history:
                continue
            if not (folder / "metrics.json").exists():
                code, _, _ = child(SCENES[scene], table, folder)
                wrong += [] if code == 0 else [f"the resumed run ended with {code}"]
            found = contents(folder)
            wrong += [f"{name} differs" for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name)]
            bad += bool(wrong)
            print(f"{', '.join(history)}: {'; '.join(wrong) or 'identical'}", flush=True)
    kinds = ", ".join(f"{sum(blow.signum == one for blow in struck)} {one.name}" for one in dict.fromkeys(BLOWS))
    moments = sorted({blow.moment for blow in struck})
    where = ", ".join(f"{sum(blow.moment == one for blow in struck)} in {one}" for one in moments)
    print(f"{len(struck)} blows ({kinds}; {where}), the soft ones answered within {slowest:.1f} s")
    print("every run ended bit-identical" if not bad else f"{bad} runs went wrong")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
