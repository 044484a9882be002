"""One output file per input file: shards that any number of processes, on any number of hosts, answer together.

A shard is done whose output exists and is newer than its input. A process that answers one holds the lock
OUT/_work/SHARD.claim, which the system gives back however the process ends. Outputs are written beside and renamed, and
their bytes do not depend on who wrote them. OUT/_manifest.json says what the folder is of, with a checksum per output.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import multiprocessing
import os
import random
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from filelock import FileLock

from rotarymae.errors import InputError, InputWarning, RotaryMAEError, ShardsFailed, gathered_warnings, listed
from rotarymae.model_files import files_of, find_model
from rotarymae.pipeline import LEFT_AFTER
from rotarymae.run_folder import write_parts
from rotarymae.scale.answers import Question
from rotarymae.scale.tables import answer_table
from rotarymae.system import Reporter, remove_leftovers, sha256, write_text
from rotarymae.tables import TableSchema, stem, table_files

FORMAT = 2
MANIFEST, WORK = "_manifest.json", "_work"
ONE_ROW_PER_SERIES, MAX_ROWS_COUNTED = ("embed", "predict"), 1_000_000
MAX_BROKEN_POOLS = 3  # in a row without a finished shard between: then workers are killed for a reason that stays

OnStep = Callable[[int, int], None]


@dataclass(frozen=True)
class Shard:
    """An input file, and where its answers go; `name` is the output's, relative to OUT, with slashes."""

    source: Path
    out: Path
    name: str

    @property
    def output(self) -> Path:
        return self.out / self.name


@dataclass(frozen=True)
class ShardedJob:
    """What is done to every shard, as it can be sent to another process.

    Attributes:
        open: makes the job; called once per process.
        name: "embed", "predict", ..: for the manifest.
        model: the folder that `open` reads.
        options: of the job, as JSON.
        layout: of the tables.
    """

    open: Callable[[], Question]
    name: str
    model: Path
    options: dict[str, Any]
    layout: TableSchema

    def identity(self) -> dict[str, Any]:
        """Return all that the outputs depend on, except the inputs."""
        layout = json.loads(json.dumps(asdict(self.layout)))
        model = model_checksum(self.model)
        return {"format": FORMAT, "job": self.name, "model": model, "options": self.options, "layout": layout}


@dataclass(frozen=True)
class ShardTotals:
    """The shards of a folder, the number of them that were finished before, and the rows of all."""

    shards: int
    before: int
    rows: int


def answer_shards(
    work: ShardedJob, table: Path, out: Path, workers: int = 1, on_step: OnStep | None = None
) -> ShardTotals:
    """Answer every file of a folder (or pattern) with a Parquet file of the same name in the folder `out`.

    Shards that are done already are skipped, those that other processes work on are waited for, and those of a worker
    that was killed are done again.

    Args:
        workers: processes on this computer. Others may work on the same folder, here or elsewhere.
        on_step: is called with the shards done and their number.

    Raises:
        InputError: `out` holds the outputs of another model, other options or something else, or cannot be written.
        ShardsFailed: some shards cannot be read; all others are done.
        RotaryMAEError: workers are killed again and again.
    """
    shards, identity = find_shards(table, out), work.identity()
    sums = _prepare(out, identity)
    left = [shard for shard in shards if not _is_done(shard, sums)]
    before, failed = len(shards) - len(left), {}
    random.shuffle(left)  # so that processes on one folder seldom want the same shard
    try:
        answers = _in_this_process(work, left) if workers == 1 else _in_workers(work, left, workers)
        for done, (shard, reason) in enumerate(answers, before + 1):
            if reason is not None:
                failed[shard.name] = reason
            if on_step is not None:
                on_step(done, len(shards))
    except KeyboardInterrupt as error:
        done = sum(shard.output.exists() for shard in shards)
        error.add_note(f"{done} of {len(shards)} shards are done in {out}; the same command goes on with the others.")
        raise
    return _finish(out, shards, identity, before, failed)


def find_shards(table: Path, out: Path) -> list[Shard]:
    """Return the shards of a folder or pattern.

    Raises:
        InputError: two inputs with one name, or an `out` among them.
    """
    paths = table_files(table)
    base = table if table.is_dir() else Path(os.path.commonpath([path.parent for path in paths]))
    names = [(path.relative_to(base).parent / f"{stem(path)}.parquet").as_posix() for path in paths]
    # A pattern finds outputs again only if it is one of them; what goes through folders finds all in its own.
    within = base.resolve() in (out.resolve(), *out.resolve().parents) and (table.is_dir() or "**" in table.parts)
    if within or any((out.resolve() / name).match(str(table.absolute())) for name in names):
        raise InputError(f"{out} lies in {base}, whose files are the input; choose a folder elsewhere.")
    twice = sorted(name for name in set(names) if names.count(name) > 1) if len(set(names)) < len(names) else []
    if twice:
        raise InputError(f"several files would be written as {listed(twice)}; give them different names.")
    return [Shard(path, out, name) for path, name in zip(paths, names, strict=True)]


def model_checksum(model: Path) -> str:
    """Return the SHA-256 of the files that a model's answers depend on."""
    folder, digest = find_model(model), hashlib.sha256()
    for name in files_of(folder):
        digest.update(name.encode() + b"\0" + (folder / name).read_bytes())
    return digest.hexdigest()


# ── what has been done ──────────────────────────────────────────────────────────────────────────────────────────────


def _prepare(out: Path, identity: dict[str, Any]) -> dict[str, str]:
    """Make the folder with its manifest, or refuse one of something else; return the checksums of its outputs."""
    try:
        others = [path.name for path in out.iterdir() if not path.name.startswith(".")] if out.is_dir() else []
        if set(others) - {WORK} and MANIFEST not in others:
            raise InputError(f"{out} holds something already, and no {MANIFEST}; choose a new folder.")
        (out / WORK).mkdir(parents=True, exist_ok=True)
        if MANIFEST not in others:
            write_text(out / MANIFEST, json.dumps(identity, indent=2) + "\n")
    except OSError as error:
        raise InputError(f"{out} cannot be written ({error}); choose another folder.") from error
    try:
        there = json.loads((out / MANIFEST).read_text(encoding="utf-8"))
        sums = {name: str(about["sha256"]) for name, about in there.get("shards", {}).items()}
        readable = there["format"] == FORMAT
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError):
        readable = False
    if not readable:
        raise InputError(f"{out / MANIFEST} is no manifest of this version; choose a new folder.")
    for key, value in identity.items():
        if there.get(key) != value:
            raise InputError(
                f"{out} holds shards of another {key} ({there.get(key)}, now {value}); choose a new folder, or remove "
                "that one.",
                code="other-shards",
            )
    return sums


def _is_done(shard: Shard, sums: dict[str, str]) -> bool:
    """Return whether the output is there; one that is older than its input, or has changed, is removed."""
    if not shard.output.exists():
        return False
    newer = shard.output.stat().st_mtime_ns >= shard.source.stat().st_mtime_ns
    if newer and sums.get(shard.name) in (None, sha256(shard.output)):
        return True
    shard.output.unlink()
    return False


def _finish(
    out: Path, shards: Sequence[Shard], identity: dict[str, Any], before: int, failed: dict[str, str]
) -> ShardTotals:
    done = [shard for shard in shards if shard.name not in failed]
    rows = {shard.name: pq.read_metadata(shard.output).num_rows for shard in done}
    about = {shard.name: {"rows": rows[shard.name], "sha256": sha256(shard.output)} for shard in done}
    write_text(out / MANIFEST, json.dumps({**identity, "shards": about, "failed": failed}, indent=2) + "\n")
    if failed:
        raise ShardsFailed(
            f"{len(failed)} of {len(shards)} shards cannot be answered, all others are done: "
            f"{listed(failed)}. The first says: {next(iter(failed.values()))}"
        )
    total = sum(rows.values())
    if identity["job"] in ONE_ROW_PER_SERIES and 0 < total <= MAX_ROWS_COUNTED:
        name = pq.read_schema(shards[0].output).names[0]
        ids = [pq.read_table(shard.output, columns=[name]).column(0).to_pylist() for shard in shards]
        several = total - len(set(itertools.chain(*ids)))
        if several:
            warnings.warn(
                f"{several:,} of {total:,} rows in {out} are of series that have a row already: these lie in several "
                "files, and each piece was read by itself. To read the folder as one table, let --out end in .csv or "
                ".parquet.",
                InputWarning,
                stacklevel=3,
            )
    return ShardTotals(len(shards), before, total)


# ── the work ────────────────────────────────────────────────────────────────────────────────────────────────────────

Answered = tuple[Shard, str | None]  # and why it could not be answered


def _in_this_process(work: ShardedJob, shards: Sequence[Shard]) -> Iterator[Answered]:
    job = work.open() if shards else None
    for shard in shards:
        assert job is not None
        yield shard, _answer(job, work.layout, shard)


def _in_workers(work: ShardedJob, shards: Sequence[Shard], workers: int) -> Iterator[Answered]:
    """Yield each shard when a worker process has answered it; after a worker was killed, new ones do what is left."""
    left, broken = {shard.name: shard for shard in shards}, 0
    threads = max(1, (os.cpu_count() or 1) // workers)
    while left:
        pool = ProcessPoolExecutor(
            min(workers, len(left)), multiprocessing.get_context("spawn"), _start, (work, threads)
        )
        try:
            for future in as_completed([pool.submit(_answer_in_worker, shard) for shard in left.values()]):
                shard, reason = future.result()
                del left[shard.name]
                broken = 0
                yield shard, reason
        except BrokenProcessPool:
            broken += 1
            if broken == MAX_BROKEN_POOLS:
                raise RotaryMAEError(
                    f"worker processes end before they have answered a shard, {broken} times in a row (killed for lack "
                    f"of memory?); {len(left)} of {len(shards)} are left: {listed(left)}. The same command goes on "
                    "with them."
                ) from None
        finally:
            for process in multiprocessing.active_children():
                process.terminate()
            pool.shutdown(cancel_futures=True)


_answer_here: Callable[[Shard], str | None]


def _start(work: ShardedJob, threads: int) -> None:
    """Prepare a worker process: it ends with its parent, which alone hears Ctrl-C."""
    import torch

    global _answer_here
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()
    torch.set_num_threads(threads)
    _answer_here = partial(_answer, work.open(), work.layout)


def _answer_in_worker(shard: Shard) -> Answered:
    with Reporter().catching_warnings():
        return shard, _answer_here(shard)


def _answer(question: Question, layout: TableSchema, shard: Shard) -> str | None:
    """Write the output of a shard that is not there by now; return why it cannot be answered, or None.

    Raises:
        OSError, MemoryError: no room, for which the shard is not to blame.
    """
    with _claimed(shard) as alone:
        if shard.output.exists():
            return None
        shard.output.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(shard.output.parent, [shard.output.name], 0.0 if alone else LEFT_AFTER)
        try:
            with gathered_warnings() as caught:
                write_parts(answer_table(question, question.pipeline.reader(shard.source, layout)), shard.output)
            for text in dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, InputWarning)):
                warnings.warn(f"{shard.source.name}: {text}", InputWarning, stacklevel=2)
        except (OSError, MemoryError):
            raise
        except Exception as error:
            reason = str(error) if isinstance(error, RotaryMAEError) else f"{type(error).__name__}: {error}"
            return reason if str(shard.source) in reason else f"{shard.source}: {reason}"
    return None


@contextmanager
def _claimed(shard: Shard) -> Iterator[bool]:
    """Wait until no other process works on the shard; yields False where the file system has no locks."""
    claim = shard.out / WORK / f"{shard.name}.claim"
    claim.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(claim)
    try:
        lock.acquire()
    except NotImplementedError:
        yield False
        return
    try:
        yield True
    finally:
        with suppress(OSError):  # Windows, while others look at it
            claim.unlink()
        lock.release()
