"""The DuckDB database of a process, and its folder for temporary files."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
from pathlib import Path

import duckdb

from rotarymae.system.machine import free_memory


@functools.cache
def scratch() -> Path:
    """Return the temporary folder of this process, which is made once and removed when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="rotarymae-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def _database_of(process: int) -> duckdb.DuckDBPyConnection:
    """Return an in-memory DuckDB database for a process, with limits on memory and threads, and a folder to sort in.

    It is made once for each process id, as a forked process needs a database of its own.
    """
    threads = min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    config = {
        "memory_limit": f"{max(256, min(1500, int(free_memory() / 4 / 2**20)))}MB",
        "temp_directory": str(scratch() / f"sorting-{process}"),
        "threads": threads,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
    }
    database = duckdb.connect(":memory:", config=config)
    database.execute("SET TimeZone = 'UTC'")
    return database


def connection() -> duckdb.DuckDBPyConnection:
    """Return this process's in-memory DuckDB database, made on the first call; it uses disk where memory is short."""
    return _database_of(os.getpid())
