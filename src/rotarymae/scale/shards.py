"""One output file per input file: shards that any number of processes, on any number of hosts, work off together.

Beside the outputs, OUT/_manifest.json says what they are of: the model, the options, and in the end the rows of each
shard. A process that works on a shard holds a lock on OUT/_work/SHARD.claim, which the system gives back when it ends,
however it ends. Claims only save work: two processes that took the same shard would write the same bytes, each beside
the file and then renamed. A shard that cannot be read is named in OUT/_work/SHARD.failed.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import multiprocessing
import os
import random
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from rotarymae.checkpoints import LEFT_AFTER, find_model
from rotarymae.errors import InputError, InputWarning, RotaryMAEError, ShardsFailed, gathered_warnings, listed
from rotarymae.scale.jobs import Job
from rotarymae.scale.tables import answer_table, job_reader
from rotarymae.series import TableLayout, stem, table_files
from rotarymae.system import Reporter, remove_leftovers, sha256_of, write_text
from rotarymae.tasks import write_parts

FORMAT = 1
MANIFEST, WORK = "_manifest.json", "_work"
ABOUT = b"rotarymae"  # in the metadata of an output: which manifest and which input it is of
ONE_ROW_PER_SERIES, MOST_COUNTED = ("embed", "predict"), 1_000_000  # rows; more are not looked at
WAIT = 1.0  # seconds between two looks at shards that others work on
MODEL_FILES = ("config.json", "model.safetensors", "preprocessor.json")


@dataclass(frozen=True)
class Shard:
    """An input file, and where its answers go; `name` is the output's, relative to OUT, with slashes."""

    source: Path
    out: Path
    name: str

    @property
    def output(self) -> Path:
        return self.out / self.name

    @property
    def claim(self) -> Path:
        return self.out / WORK / f"{self.name}.claim"

    @property
    def failed(self) -> Path:
        return self.out / WORK / f"{self.name}.failed"

    @property
    def ended(self) -> bool:
        return self.output.exists() or self.failed.exists()


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

    open: Callable[[], Job]
    name: str
    model: Path
    options: dict[str, Any]
    layout: TableLayout

    def identity(self) -> dict[str, Any]:
        """All that the outputs depend on beside the inputs."""
        layout = json.loads(json.dumps(asdict(self.layout)))
        return {
            "format": FORMAT,
            "job": self.name,
            "model": model_checksum(self.model),
            "options": self.options,
            "layout": layout,
        }


@dataclass(frozen=True)
class ShardTotals:
    """What came of a folder: its shards, how many of them were finished before, and the rows of all."""

    shards: int
    before: int
    rows: int


def answer_shards(
    work: ShardedJob, table: Path, out: Path, workers: int = 1, on_step: Callable[[int, int], None] | None = None
) -> ShardTotals:
    """Answers every file of a folder (or pattern) with a Parquet file of the same name in the folder `out`.

    Shards that are there already are skipped, and those that other processes work on are waited for.

    Args:
        workers: processes on this computer. Others may work on the same folder, here or elsewhere.
        on_step: is called with the shards done and their number.

    Raises:
        InputError: `out` holds the outputs of another model, other options or something else, or cannot be written.
        ShardsFailed: some shards cannot be read; all others are done.
        RotaryMAEError: all workers ended before the last shard was done.
    """
    shards, identity = find_shards(table, out), work.identity()
    _prepare(out, identity)
    before = _look_back(shards, identity)
    if workers == 1:
        _work(work, shards, identity, on_step)
    else:
        _work_in_processes(work, shards, identity, workers, on_step)
    return _finish(out, shards, identity, before)


def find_shards(table: Path, out: Path) -> list[Shard]:
    """The shards of a folder or pattern. Raises InputError for two inputs with one name, or an `out` among them."""
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
    """SHA-256 of the files that a model's answers depend on."""
    model, digest = find_model(model), hashlib.sha256()
    files = [path for name in MODEL_FILES for path in sorted(model.rglob(name))]
    files = [path for path in files if "training" not in path.relative_to(model).parts]
    for path in [*files, *sorted((model / "predictor").glob("*"))]:
        digest.update(path.relative_to(model).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


# ── what has been done ──────────────────────────────────────────────────────────────────────────────────────────────


def _prepare(out: Path, identity: dict[str, Any]) -> None:
    """Makes the folder with its manifest, or refuses one that is of something else."""
    try:
        if out.is_dir() and not (out / MANIFEST).exists() and any(not _ours(path) for path in out.iterdir()):
            raise InputError(f"{out} holds something already, and no {MANIFEST}; choose a new folder.")
        (out / WORK).mkdir(parents=True, exist_ok=True)
        if not (out / MANIFEST).exists():
            write_text(out / MANIFEST, json.dumps(identity, indent=2) + "\n")
    except OSError as error:
        raise InputError(f"{out} cannot be written ({error}); choose another folder.") from error
    try:
        there = json.loads((out / MANIFEST).read_text(encoding="utf-8"))
    except ValueError:
        there = None
    if not isinstance(there, dict) or there.get("format") != FORMAT:
        raise InputError(f"{out / MANIFEST} is no manifest of this version; choose a new folder.")
    for key, wanted in identity.items():
        if there.get(key) != wanted:
            came, was = _differences(wanted, there.get(key))
            raise InputError(
                f"{out} holds shards of another {key} ({was}, now {came}); choose a new folder, or remove that one."
            )


def _ours(path: Path) -> bool:
    return path.name == WORK or path.name.startswith(".")


def _differences(new: Any, old: Any) -> tuple[str, str]:
    if isinstance(new, dict) and isinstance(old, dict):
        changed = [key for key in new if new[key] != old.get(key)]
        return (", ".join(f"{key}={part.get(key)!r}" for key in changed) for part in (new, old))  # pyright: ignore
    return str(new)[:12], str(old)[:12]


def _look_back(shards: Sequence[Shard], identity: dict[str, Any]) -> int:
    """How many shards are done. Those whose input has been written anew are forgotten, as are failures."""
    done = 0
    for shard in shards:
        shard.failed.unlink(missing_ok=True)
        if not shard.output.exists():
            continue
        about = _about(shard)
        if about.get("of") != sha256_of(identity):
            raise InputError(f"{shard.output} is no output of this job; move it away, or choose a new folder.")
        size, modified = _written(shard.source)
        if about.get("bytes") == size and about.get("modified", modified) == modified:
            done += 1
        else:
            shard.output.unlink()
    return done


def _about(shard: Shard) -> dict[str, Any]:
    """What an output says of itself."""
    try:
        return json.loads((pq.read_schema(shard.output).metadata or {}).get(ABOUT, b"{}"))
    except (OSError, ValueError):
        return {}


def _written(path: Path) -> tuple[int, int]:
    """The size of a file in bytes, and when it was last written, in nanoseconds."""
    return path.stat().st_size, path.stat().st_mtime_ns


def _finish(out: Path, shards: Sequence[Shard], identity: dict[str, Any], before: int) -> ShardTotals:
    failed = {shard.name: shard.failed.read_text(encoding="utf-8") for shard in shards if shard.failed.exists()}
    lacking = [shard.name for shard in shards if not shard.ended]
    if lacking:
        raise RotaryMAEError(
            f"{len(lacking)} of {len(shards)} shards are not done, as the processes that worked on them ended: "
            f"{listed(lacking)}. The same command goes on with them."
        )
    rows = {shard.name: pq.read_metadata(shard.output).num_rows for shard in shards if shard.name not in failed}
    write_text(out / MANIFEST, json.dumps({**identity, "shards": rows, "failed": failed}, indent=2) + "\n")
    if failed:
        first = next(iter(failed))
        raise ShardsFailed(
            f"{len(failed)} of {len(shards)} shards cannot be answered, all others are done: "
            f"{listed(failed)}. The first says: {failed[first]}"
        )
    totals = ShardTotals(len(shards), before, sum(rows.values()))
    if identity["job"] in ONE_ROW_PER_SERIES and 0 < totals.rows <= MOST_COUNTED:
        name = pq.read_schema(shards[0].output).names[0]
        ids = [pq.read_table(shard.output, columns=[name]).column(0).to_pylist() for shard in shards]
        several = totals.rows - len(set(itertools.chain(*ids)))
        if several:
            warnings.warn(
                f"{several:,} of {totals.rows:,} rows in {out} are of series that have a row already: these lie in "
                "several files, and each piece was read by itself. To read the folder as one table, let --out end in "
                ".csv or .parquet.",
                InputWarning,
                stacklevel=2,
            )
    return totals


# ── the work ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _work(
    work: ShardedJob,
    shards: Sequence[Shard],
    identity: dict[str, Any],
    on_step: Callable[[int, int], None] | None = None,
) -> None:
    """Works until every shard has ended, here or elsewhere."""
    job, parent = None, multiprocessing.parent_process()
    looked = -WAIT
    left = random.sample(shards, len(shards))  # so that processes that see no locks seldom do the same
    while left:
        idle = True
        for shard in left:
            if parent is not None and not parent.is_alive():
                return
            if shard.ended:
                continue
            with _claimed(shard) as ours:
                if not ours or shard.ended:  # another one may have finished it in the meantime
                    continue
                idle, job = False, job or work.open()
                _answer(job, work.layout, shard, identity)
            if on_step is not None and time.monotonic() > looked + WAIT:  # each look is at all files
                on_step(sum(one.ended for one in shards), len(shards))
                looked = time.monotonic()
        left = [shard for shard in left if not shard.ended]
        if left and idle:
            time.sleep(WAIT)
    if on_step is not None:
        on_step(len(shards), len(shards))


def _answer(job: Job, layout: TableLayout, shard: Shard, identity: dict[str, Any]) -> None:
    """Writes the output of a shard, or why there is none. A disk that is full is no shard's fault."""
    size, modified = _written(shard.source)
    about = {"of": sha256_of(identity), "input": shard.source.name, "bytes": size, "modified": modified}
    shard.output.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(shard.output.parent, [shard.output.name], LEFT_AFTER)
    try:
        tables = answer_table(job, job_reader(job, shard.source, layout))
        with_about = (one.replace_schema_metadata({ABOUT: json.dumps(about).encode()}) for one in tables)
        with gathered_warnings() as caught:
            write_parts(with_about, shard.output)
        for text in dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, InputWarning)):
            warnings.warn(f"{shard.source.name}: {text}", InputWarning, stacklevel=2)
    except (OSError, MemoryError):
        raise
    except Exception as error:
        reason = str(error) if isinstance(error, RotaryMAEError) else f"{type(error).__name__}: {error}"
        write_text(shard.failed, reason if str(shard.source) in reason else f"{shard.source}: {reason}")


def _work_in_processes(
    work: ShardedJob,
    shards: Sequence[Shard],
    identity: dict[str, Any],
    workers: int,
    on_step: Callable[[int, int], None] | None,
) -> None:
    context = multiprocessing.get_context("spawn")
    threads = max(1, (os.cpu_count() or 1) // workers)
    processes = [
        context.Process(target=_start, args=(work, shards, identity, threads), daemon=True) for _ in range(workers)
    ]
    for process in processes:
        process.start()
    try:
        while any(process.is_alive() for process in processes):
            processes[0].join(WAIT)
            if not processes[0].is_alive():
                time.sleep(0.1)
            if on_step is not None:
                on_step(sum(shard.ended for shard in shards), len(shards))
    finally:
        for process in processes:
            process.terminate()


def _start(work: ShardedJob, shards: Sequence[Shard], identity: dict[str, Any], threads: int) -> None:
    """What a worker process does."""
    import torch

    torch.set_num_threads(threads)
    with Reporter().catching_warnings():
        _work(work, shards, identity)


@contextmanager
def _claimed(shard: Shard) -> Iterator[bool]:
    """Whether the shard is ours, for as long as this lasts. File systems without locks give it to everyone."""
    shard.claim.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(shard.claim)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        yield False
        return
    except NotImplementedError:
        pass
    try:
        yield True
    finally:
        lock.release()
        with suppress(OSError):  # Windows, while others look at it
            shard.claim.unlink()
