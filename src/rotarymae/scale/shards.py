"""One output file per input file: shards that any number of processes, on any number of hosts, answer together.

A shard is done if its output exists and is not older than its input. Outputs are written under another name and
renamed, and their bytes do not depend on who wrote them, so processes need no other agreement: each takes the shards in
an order of its own and skips what is there by then. OUT/_manifest.json says of which model, options and layout the
folder is.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import multiprocessing
import multiprocessing.connection
import os
import random
import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rotarymae.errors import InputError, InputWarning, RotaryMAEError, ShardsFailed, gathered_warnings, listed
from rotarymae.model_files import CONFIG, find_model
from rotarymae.run_folder import write_parts
from rotarymae.saving import SAVE_SECONDS
from rotarymae.scale.answers import Computation
from rotarymae.scale.tables import answer_table
from rotarymae.system import Reporter, remove_leftovers, write_text
from rotarymae.tables import TableSchema, stem, table_files

MANIFEST = "_manifest.json"
ONE_ROW_PER_SERIES, MAX_ROWS_COUNTED = ("embed", "predict"), 1_000_000


@dataclass(frozen=True)
class Shard:
    """An input file and its output file.

    Attributes:
        source: path of the input.
        output: path of the output.
        name: path of the output relative to the folder of outputs, with slashes.
    """

    source: Path
    output: Path
    name: str

    def is_done(self) -> bool:
        """Return whether the output file exists and is not older than the input file."""
        return self.output.exists() and self.output.stat().st_mtime_ns >= self.source.stat().st_mtime_ns


@dataclass(frozen=True)
class ShardedJob:
    """The work on every file of a folder, which can be sent to another process.

    Attributes:
        open: function without arguments that loads the model and returns the computation; called once per process. With
            several processes it must be picklable.
        name: "embed", "predict" or another name of the computation, for the manifest.
        model: what `open` loads, a folder or a name that `find_model` finds.
        options: options of the computation, as JSON, for the manifest.
        layout: columns of the tables.
    """

    open: Callable[[], Computation]
    name: str
    model: Path
    options: dict[str, Any]
    layout: TableSchema

    def manifest(self) -> dict[str, Any]:
        """Return the content of _manifest.json: name of the job, checksum of the model, options, and table columns."""
        layout = json.loads(json.dumps(asdict(self.layout)))
        return {"job": self.name, "model": model_checksum(self.model), "options": self.options, "layout": layout}


@dataclass(frozen=True)
class ShardTotals:
    """Numbers of a folder whose files have been answered.

    Attributes:
        shards: number of input files.
        before: number of these that were done before.
        rows: number of rows in all outputs, also in those from before.
    """

    shards: int
    before: int
    rows: int


def answer_shards(
    work: ShardedJob, table: Path, out: Path, workers: int = 1, on_step: Callable[[int, int], None] | None = None
) -> ShardTotals:
    """Compute one Parquet file of results for every input file (shard) of a folder or pattern of paths.

    An output has the name of its input, with the suffix .parquet. Outputs that are not older than their input are left
    alone, so that an interrupted job can be continued; older ones are removed first. A series whose rows lie in several
    files gets a result from each.

    Args:
        work: what to compute, and the layout of the files.
        table: a folder of tables, or a pattern of paths.
        out: the folder of outputs, which is created if it is missing.
        workers: number of processes on this computer, at least 1; 1 is this process alone. Other computers may work on
            the same folder at the same time.
        on_step: called with (files done or failed, files in all); None for none.

    Raises:
        InputError: fewer than one worker; `out` holds outputs of another model, other options or something else, or
            cannot be written; no model; what `find_shards` refuses; a damaged output. With one worker also what
            `work.open` raises.
        ShardsFailed: some files failed; all others are done.
        RotaryMAEError: a worker was killed, or `work.open` failed in it; the same call continues with the rest.
        OSError, MemoryError: the disk or the memory is full; the same call continues with the rest.
        KeyboardInterrupt: with a note on how many files are done.

    Warns:
        InputWarning: each warning of the computation, with the file's name; for "embed" and "predict" with at most a
            million rows, also series whose rows are spread over several files.
    """
    if workers < 1:
        raise InputError(f"workers is {workers}, and at least one process must do the work; give 1 or more.")
    shards = find_shards(table, out)
    _open_folder(out, work.manifest())
    left = [shard for shard in shards if not shard.is_done()]
    for shard in left:
        shard.output.unlink(missing_ok=True)
    done_before, failed = len(shards) - len(left), {}
    random.shuffle(left)  # so that processes on one folder seldom take the same shard
    try:
        answer = _in_this_process if workers == 1 else partial(_in_workers, workers=workers)
        for done, (shard, reason) in enumerate(answer(work, left) if left else (), done_before + 1):
            if reason is not None:
                failed[shard.name] = reason
            if on_step is not None:
                on_step(done, len(shards))
    except KeyboardInterrupt as error:
        done = sum(shard.output.exists() for shard in shards)
        error.add_note(f"{done} of {len(shards)} files are done in {out}; the same command continues with the others.")
        raise
    if failed:
        raise ShardsFailed(
            f"{len(failed)} of {len(shards)} input files failed, and all others are done: {listed(failed)}. Mend "
            f"them and run the same command again. The first error is: {next(iter(failed.values()))}"
        )
    rows = sum(map(_rows_of, shards))
    if work.name in ONE_ROW_PER_SERIES and 0 < rows <= MAX_ROWS_COUNTED:
        name = pq.read_schema(shards[0].output).names[0]
        ids = itertools.chain(*(pq.read_table(shard.output, columns=[name])[name].to_pylist() for shard in shards))
        several = rows - len(set(ids))
        if several:
            warnings.warn(
                f"{several:,} of {rows:,} rows are of series that have another row, as they lie in several files, and "
                "each file was read by itself. For one row per series, let --out end in .csv or .parquet.",
                InputWarning,
                stacklevel=2,
            )
    return ShardTotals(len(shards), done_before, rows)


def find_shards(table: Path, out: Path) -> list[Shard]:
    """Return a `Shard` (input and output file) for each file of a folder or a pattern of paths, sorted by input.

    Outputs end in .parquet and have the same paths below `out` as inputs have below the folder (for a pattern: below
    their common folder): "tables/a/x.csv" → "out/a/x.parquet". Nothing is written.

    Args:
        table: a folder of tables, or a pattern of paths.
        out: the folder of outputs, which need not exist.

    Raises:
        InputError: no input files; two inputs with the same output file; `out` lies among the inputs.
    """
    paths = table_files(table)
    base = table if table.is_dir() else Path(os.path.commonpath([path.parent for path in paths]))
    names = [(path.relative_to(base).parent / f"{stem(path)}.parquet").as_posix() for path in paths]
    # A folder, or a pattern with **, would find outputs in any folder inside; another pattern only those beside inputs.
    inside = (out.resolve(), *out.resolve().parents) if table.is_dir() or "**" in table.parts else (out.resolve(),)
    if base.resolve() in inside:
        raise InputError(
            f"the output folder {out} lies in {base}, whose files are the input; choose a folder elsewhere."
        )
    twice = sorted(name for name in set(names) if names.count(name) > 1) if len(set(names)) < len(names) else []
    if twice:
        raise InputError(f"several input files have the same output file ({listed(twice)}); rename some of the inputs.")
    return [Shard(path, out / name, name) for path, name in zip(paths, names, strict=True)]


def _rows_of(shard: Shard) -> int:
    """Return the number of rows of an output file; raise InputError if it is no Parquet file, as after a crash."""
    try:
        return pq.read_metadata(shard.output).num_rows
    except pa.ArrowException as error:
        raise InputError(f"{shard.output} is damaged ({error}); remove it, and run the same command again.") from None


def model_checksum(model: Path) -> str:
    """Return a checksum that tells models apart: the SHA-256 of config.json, which has checksums of the other files.

    It is a text of hexadecimal digits. For a cross-validation the config.json of all folds are joined. `model` is a
    folder or a name; InputError is raised if there is no such model.
    """
    configs = sorted(find_model(model).rglob(CONFIG))
    return hashlib.sha256(b"".join(path.read_bytes() for path in configs)).hexdigest()


def _open_folder(out: Path, manifest: dict[str, Any]) -> None:
    """Create a folder of outputs with its manifest, or check that an existing folder has the same manifest.

    The manifest, `ShardedJob.manifest`, is kept in the file _manifest.json. A folder with nothing but hidden files
    counts as new. Raises InputError for a folder that cannot be written; for a folder with files, but without such a
    manifest; and, with the code "other-shards", for the manifest of another job.
    """
    file, kept = out / MANIFEST, None
    try:
        out.mkdir(parents=True, exist_ok=True)
        if all(path.name.startswith(".") for path in out.iterdir()):
            write_text(file, json.dumps(manifest, indent=2) + "\n")
    except OSError as error:
        raise InputError(f"{out} cannot be written ({error}); choose another folder.") from error
    with suppress(OSError, ValueError, RecursionError):
        kept = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(kept, dict) or kept.keys() != manifest.keys():
        raise InputError(f"{out} is not empty, and has no {MANIFEST} of this version; choose a new folder.")
    for key, value in manifest.items():
        if kept[key] != value:
            raise InputError(
                f"{out} holds the output of a run with another {key}: {kept[key]} instead of {value}; choose a new "
                "folder, or remove that one.",
                code="other-shards",
            )


# ── the work ────────────────────────────────────────────────────────────────────────────────────────────────────────

Answered = tuple[Shard, str | None]  # the shard, and the reason as text if it could not be answered


def _in_this_process(work: ShardedJob, shards: Sequence[Shard]) -> Iterator[Answered]:
    """Load the model; compute the output of each shard (file) in turn; yield (shard, None or why it failed)."""
    computation = work.open()
    for shard in shards:
        yield shard, _answer(computation, work.layout, shard)


def _in_workers(work: ShardedJob, shards: Sequence[Shard], workers: int) -> Iterator[Answered]:
    """Compute the outputs of shards (files) in worker processes; yield (shard, None or why it failed) as each ends.

    There are at most `workers` processes, and at most one per shard; there must be a shard. They share the processor's
    threads; each loads the model once. They end when the generator or this process does.

    Raises:
        RotaryMAEError: a worker ended, as when it is killed, or could not load the model.
        OSError, MemoryError: the disk or the memory of a worker is full.
    """
    threads, context = max(1, (os.cpu_count() or 1) // workers), multiprocessing.get_context("spawn")
    ending, open_end = context.Pipe(duplex=False)
    pool, done = ProcessPoolExecutor(min(workers, len(shards)), context, _start, (work, threads, ending)), 0
    try:
        for future in as_completed([pool.submit(_answer_in_worker, shard) for shard in shards]):
            yield future.result()
            done += 1
    except BrokenProcessPool:
        raise RotaryMAEError(
            f"a worker process was killed, perhaps for lack of memory; {len(shards) - done} of {len(shards)} files are "
            "left. The same command continues with them; fewer --workers need less memory."
        ) from None
    finally:
        open_end.close()
        pool.shutdown(cancel_futures=True)


_answer_here: Callable[[Shard], str | None]


def _start(work: ShardedJob, threads: int, ending: Any) -> None:
    """Set up a worker process: load the model, and ignore Ctrl-C, which the parent process handles.

    It sets the global `_answer_here`, which computes the output of one shard (file) in this process, and the number of
    torch's `threads`. The process ends at once when the other end of the connection `ending` is closed, or
    the parent process ends.
    """
    import torch

    global _answer_here
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    ends = [ending, *([] if parent is None else [parent.sentinel])]
    threading.Thread(target=lambda: (multiprocessing.connection.wait(ends), os._exit(1)), daemon=True).start()
    torch.set_num_threads(threads)
    _answer_here = partial(_answer, work.open(), work.layout)


def _answer_in_worker(shard: Shard) -> Answered:
    """Compute the output of a shard (file) in a worker process; print warnings; return (shard, None or why it failed).

    The process has been set up by `_start`.
    """
    with Reporter().catching_warnings():
        return shard, _answer_here(shard)


def _answer(computation: Computation, layout: TableSchema, shard: Shard) -> str | None:
    """Compute and write the output of one shard (an input file); return None, or the reason why that failed.

    If the output is there by now, nothing is done. Half-written files that killed processes left for this output are
    removed, if they are older than an hour. `layout` are the columns of the input.

    Raises:
        OSError, MemoryError: the disk or the memory is full, which is not the shard's fault.
        KeyboardInterrupt: Ctrl-C, also during a query of DuckDB.

    Warns:
        InputWarning: each different warning of the computation, with the input's name in front.
    """
    if shard.is_done():  # by another process
        return None
    shard.output.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(shard.output.parent, [shard.output.name], SAVE_SECONDS)
    try:
        with gathered_warnings() as caught:
            write_parts(answer_table(computation, computation.pipeline.reader(shard.source, layout)), shard.output)
        for text in dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, InputWarning)):
            warnings.warn(f"{shard.source.name}: {text}", InputWarning, stacklevel=2)
    except (OSError, MemoryError):
        raise
    except Exception as error:
        if str(error) == "Query interrupted":  # so DuckDB says that Ctrl-C came during a query
            raise KeyboardInterrupt from error
        reason = str(error) if isinstance(error, RotaryMAEError) else f"{type(error).__name__}: {error}"
        return reason if str(shard.source) in reason else f"{shard.source}: {reason}"
    return None
