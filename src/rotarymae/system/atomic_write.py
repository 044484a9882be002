"""Writing so that a reader sees the old file or the new one, never half of either; and one writer at a time."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import re
import shutil
import socket
import sys
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rotarymae.errors import InputError


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A path beside `path` to write to; on success it is flushed to disk and renamed over `path`.

    On an error nothing is left behind and `path` is as it was. A process that is killed leaves a hidden file beside.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part{path.suffix}")
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
def replacing_folder(path: str | Path) -> Iterator[Path]:
    """A new folder beside `path` to write to; on success its files are flushed and it takes the name `path`.

    Files of the same names in an older folder at `path` are removed with it; whatever else was in it moves into the
    new one. On Linux there is no moment without a folder at `path`; elsewhere the old one is renamed aside first, and
    back when the second rename fails. A process that is killed leaves a hidden folder beside.

    Raises:
        InputError: `path` is a link; what it leads to is left alone.
    """
    path = Path(path)
    if path.is_symlink():
        raise InputError(f"{path} is a link to {path.readlink()}; write to that folder itself, or remove the link.")
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")
    beside.mkdir()
    try:
        yield beside
        mode = beside.stat().st_mode & 0o666  # what the umask allows, also for files of libraries that write 0600
        for file in beside.iterdir():
            if file.is_file():
                file.chmod(mode)
                flush(file)
        flush(beside)
        old = _swap_in(beside, path)
        flush(path.parent)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    if old is not None:
        for left in old.iterdir():
            if not (path / left.name).exists():
                left.replace(path / left.name)
        shutil.rmtree(old)


def _swap_in(new: Path, path: Path) -> Path | None:
    """Renames `new` to `path`; returns where the folder that was there is now."""
    if not path.exists():
        new.replace(path)
        return None
    if _exchange(new, path):
        return new
    old = new.with_suffix(".old")
    path.replace(old)
    try:
        new.replace(path)
    except BaseException:
        old.replace(path)
        raise
    return old


def _exchange(one: Path, other: Path) -> bool:
    """Exchanges two folders in one step, where the system can (renameat2 with RENAME_EXCHANGE on Linux)."""
    if sys.platform != "linux":
        return False
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return rename is not None and rename(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0


def remove_leftovers(folder: Path, names: Iterable[str]) -> None:
    """Removes what a killed process left half written in a folder of ours, beside files or folders of these names.

    Links are removed, never followed.
    """
    known = "|".join(map(re.escape, names))
    for path in folder.iterdir():
        if re.fullmatch(rf"\.({known})\.[0-9a-f]{{8}}\.(part(\.\w+)?|old)", path.name):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def sha256(path: Path) -> str:
    """The checksum of a file, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of(content: Any) -> str:
    """The checksum of what JSON can hold, hexadecimal; the order of fields and the layout of a file do not matter."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def write_text(path: str | Path, text: str) -> None:
    """Writes beside and renames."""
    with replacing(path) as beside:
        beside.write_text(text, encoding="utf-8")


def flush(path: Path) -> None:
    """Forces a file, or a folder's entries, to disk. Windows has no such thing for folders."""
    windows = os.name == "nt"
    if windows and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDWR if windows else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class FolderLock:
    """A folder for one process at a time, by a lock on its file `.lock`, which says who has it.

    The system gives the lock back when the process ends, however it ends. File systems without locks have none.

    Raises:
        InputError: another process has it; the message names it.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / ".lock"
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        self._file = os.open(path, flags, 0o666)
        if not _lock(self._file):
            owner = os.read(self._file, 200).decode(errors="replace").strip()
            os.close(self._file)
            raise InputError(
                f"{folder} is in use by {owner or 'another process'}; wait for it, or choose another folder."
            )
        os.ftruncate(self._file, 0)
        os.write(self._file, f"process {os.getpid()} on {socket.gethostname()}".encode())

    def release(self) -> None:
        os.ftruncate(self._file, 0)
        os.close(self._file)


def _lock(file: int) -> bool:
    """Whether the lock is ours now; true also where the file system knows no locks."""
    if sys.platform == "win32":
        import msvcrt

        os.lseek(file, 1 << 20, os.SEEK_SET)  # far behind the text, which others may read while it is locked
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            os.lseek(file, 0, os.SEEK_SET)
            return False
        os.lseek(file, 0, os.SEEK_SET)
        return True
    import fcntl

    with suppress(OSError):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True
