"""Throws odd tables, arrays, tokens, files and model folders at the library and counts what comes of them.

    python scripts/fuzz.py                    10,000 tables, arrays, tokens and files, 2,000 model folders
    python scripts/fuzz.py --part tables      one of: tables, arrays, tokens, files, models

Each either works, and is then looked at, or is refused by this library's own error. Pieces run in processes of their
own, so that a crash or a hang is counted, too. Exit code 0: none of either, and no other error.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import resource
import signal
import sys
import tempfile
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from hypothesis import HealthCheck, Phase, given, seed, settings

from _fuzz import arrays, good_files, good_models, outcome, tables, tokens, try_file, try_model

WHOLE = {"tables": 4500, "arrays": 3000, "tokens": 500, "files": 2000, "models": 2000}
HARMED = {"files": (good_files, try_file), "models": (good_models, try_model)}
PIECE = 250
QUIET = list(HealthCheck)
SECONDS = 20  # for one case; all are tiny
MEMORY = 8 << 30


class Hang(BaseException):
    """One case took too long."""


def ring(*_: object) -> None:
    raise Hang


def counted(counts: collections.Counter, call, label: object) -> None:
    signal.alarm(SECONDS)
    try:
        counts[call()] += 1
    except Hang:
        counts["hung"] += 1
        print(f"hang: {label}", file=sys.stderr)
    except BaseException as error:
        signal.alarm(0)
        where = traceback.extract_tb(error.__traceback__)
        ours = next((f for f in reversed(where) if "rotarymae" in f.filename), where[-1])
        what = f"{type(error).__name__} at {Path(ours.filename).name}:{ours.lineno}"
        counts["other error"] += 1
        counts[f"  {what}"] += 1
        if counts[f"  {what}"] == 1:
            print(f"{label}: {what}: {str(error)[:200]}", file=sys.stderr, flush=True)
    finally:
        signal.alarm(0)


def piece(part: str, start: int, count: int, folder: Path) -> collections.Counter:
    counts: collections.Counter = collections.Counter()
    torch.set_num_threads(1)
    signal.signal(signal.SIGALRM, ring)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    if part in HARMED:
        (make, one), kept = HARMED[part], folder / "good"
        kept.mkdir()
        good = make(kept)
        for number in range(start, start + count):
            counted(counts, lambda n=number: one(n, good, folder), f"{part} {number}")
        return counts

    @seed(start)
    @settings(max_examples=count, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=QUIET)
    @given({"tables": tables, "arrays": arrays, "tokens": tokens}[part]())
    def each(call) -> None:
        counted(counts, lambda: outcome(call), f"{part} from {start}")

    each()
    return counts


def run(part: str, count: int) -> collections.Counter:
    total: collections.Counter = collections.Counter()
    for start in range(0, count, PIECE):
        size = min(PIECE, count - start)
        with tempfile.TemporaryDirectory() as folder:
            answer = Path(folder) / "counts.json"
            pid = os.fork()
            if pid == 0:
                try:
                    answer.write_text(json.dumps(piece(part, start, size, Path(folder))))
                finally:
                    sys.stderr.flush()
                    os._exit(0)
            os.waitpid(pid, 0)
            found = json.loads(answer.read_text()) if answer.exists() else {"crashed": 1}
            total.update(found)
            made = sum(n for name, n in found.items() if not name.startswith("  "))
            if made < size and "crashed" not in found:
                total["fewer made than asked for"] += size - made
    return total


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--part", choices=sorted(WHOLE))
    parser.add_argument("--count", type=int)
    given_ = parser.parse_args()
    bad = 0
    for part in [given_.part] if given_.part else WHOLE:
        counts = run(part, given_.count or WHOLE[part])
        said = ", ".join(f"{n:,} {name.strip()}" for name, n in sorted(counts.items(), key=lambda item: item[0]))
        print(f"{part}: {said}", flush=True)
        bad += sum(counts[name] for name in ("hung", "crashed", "other error"))
    sys.exit(0 if bad == 0 else 1)


if __name__ == "__main__":
    main()
