"""Writing so that a reader sees the old file or the new one, never half of either."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | Path, mark: str | None = None) -> Iterator[Path]:
    """A path beside `path` to write to; on success it is flushed to disk and renamed over `path`.

    On an error nothing is left behind and `path` is as it was. A process that is killed leaves the file beside, whose
    name holds `mark` (by default a random one), so that whoever knows the mark can tell it from other people's files.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{mark or uuid.uuid4().hex[:8]}.part{path.suffix}")
    try:
        yield beside
        flush(beside)
        beside.replace(path)
        flush(path.parent)
    except BaseException as error:
        beside.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None and error.errno is not None:
            error.filename = str(path)  # of a full disk the system says neither which file nor where
        raise


@contextmanager
def replacing_folder(path: str | Path, mark: str | None = None) -> Iterator[Path]:
    """A folder beside `path` to write to; on success every file in it is flushed and the folder renamed to `path`.

    `mark` as in `replacing`. An older folder at `path` is moved away first. Files of the same names are removed with
    it; whatever else was in it is somebody else's and moves into the new one.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{mark or uuid.uuid4().hex[:8]}.part")
    beside.mkdir()
    old = None
    try:
        yield beside
        for file in beside.iterdir():
            flush(file)
        flush(beside)
        if path.exists():
            old = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.old")
            path.replace(old)
        beside.replace(path)
        flush(path.parent)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        if old is not None and not path.exists():
            old.replace(path)
        raise
    if old is not None:
        for left in list(old.iterdir()):
            if (path / left.name).exists() and left.is_file():
                left.unlink()
            else:
                left.replace(path / left.name)
        old.rmdir()


def write_text(path: str | Path, text: str) -> None:
    """Writes beside and renames."""
    with replacing(path) as beside:
        beside.write_text(text, encoding="utf-8")


def flush(path: Path) -> None:
    """Forces a file, or a folder's entries, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
