"""Writing so that a reader sees the old file or the new one, never half of either."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
import time
import uuid
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rotarymae.errors import InputError

LEFT = re.compile(r"\.(.+)\.[0-9a-f]{8}\.(part(\.\w+)?|old)")  # what `replacing` and `replacing_folder` write to


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path to write to; when the `with` block ends without an error, it is renamed to `path`.

    The temporary path is in the same folder; missing folders above `path` are created, and stay. If `path` is a link,
    the link is replaced. The file is forced to disk before it is renamed. After an error the temporary file is removed,
    and `path` is as it was; an OSError that names no file, or the temporary one, gets the name `path`. A process that
    is killed leaves a hidden file behind.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part{path.suffix}")
    try:
        yield temporary
        flush(temporary)
        temporary.replace(path)
        flush(path.parent)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None and error.filename in (None, str(temporary)):
            error.filename = str(path)  # of a full disk the system says neither which file nor where
        raise


@contextmanager
def replacing_folder(path: str | Path) -> Iterator[Path]:
    """Yield a temporary folder to write to; when the `with` block ends without an error, it replaces the folder `path`.

    Missing folders above `path` are created, and stay. Files in the new folder get the permissions that the umask
    allows, and are forced to disk. An older folder at `path` is renamed, and removed once the new one has its name;
    after an error before that, `path` is as it was. A process that is killed leaves hidden folders behind; if that
    happens between the two renamings, `path` is missing.

    Raises:
        InputError: `path` is a link or a file. It is left alone, as is the folder that a link leads to.
    """
    path = Path(path)
    if path.is_symlink():
        raise InputError(f"{path} is a link to {path.readlink()}; write to that folder itself, or remove the link.")
    if path.is_file():
        raise InputError(f"{path} is a file, where a folder is to be written; choose another path, or remove it.")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")
    old = temporary.with_suffix(".old")
    temporary.mkdir()
    try:
        yield temporary
        mode = temporary.stat().st_mode & 0o666  # what the umask allows, also for files of libraries that write 0600
        for part in [*temporary.rglob("*"), temporary]:
            if part.is_file():
                part.chmod(mode)
            flush(part)
        if path.exists():
            path.replace(old)
        temporary.replace(path)
        flush(path.parent)
    except BaseException:
        if old.exists() and not path.exists():
            old.replace(path)
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    if old.exists():
        shutil.rmtree(old)


def check_writable(path: Path) -> None:
    """Raise InputError if no file or folder can be created at `path`.

    That is the case for a broken link, a path below a file, a name that is too long, and a place where nothing can be
    written; an existing file or folder is accepted. To try it, a temporary file is written and removed: in `path` if it
    is a folder, else in the nearest folder above that exists.
    """
    inside = path.parent
    try:
        if path.is_symlink() and not path.exists():
            raise InputError(f"{path} is a link to {path.readlink()}, which does not exist; remove the link.")
        above = next((folder for folder in path.parents if folder.exists()), None)
        if above is not None and not above.is_dir():
            raise InputError(f"{path} cannot be made: {above} is a file, not a folder. Choose another path.")
        inside = path if path.is_dir() else above
        with tempfile.TemporaryFile(dir=inside):  # permissions alone do not tell, of file systems that are read-only
            pass
    except OSError as error:
        raise InputError(
            f"{path} cannot be made: nothing can be written to {inside} ({error.strerror}). Choose another path."
        ) from None


def remove_leftovers(folder: Path, names: Container[str] | None = None, after: float = 0.0) -> None:
    """Remove half-written files and folders that killed processes left in a folder; other files are left alone.

    They are recognised by the names that `replacing` and `replacing_folder` give to temporary files and folders. Links
    are removed, never followed.

    Args:
        folder: an existing folder; only what lies directly in it is looked at.
        names: names of the final files or folders whose leftovers are removed; None for all.
        after: least age in seconds; younger leftovers stay, as another process may be writing them. A folder is as old
            as the newest thing directly in it.
    """
    for path in folder.iterdir():
        match = LEFT.fullmatch(path.name)
        if match is None or not (names is None or match[1] in names):
            continue
        with suppress(FileNotFoundError):  # another process has renamed or removed it by now
            is_folder = path.is_dir() and not path.is_symlink()
            parts = [*path.iterdir()] if is_folder else []
            if time.time() - max(part.lstat().st_mtime for part in parts or [path]) < after:
                continue
            if is_folder:
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()


def sha256(path: Path) -> str:
    """Return the SHA-256 of the file at `path` as 64 hexadecimal digits; raise OSError if it cannot be read."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of(content: Any) -> str:
    """Return the SHA-256 of content that JSON can hold, as 64 hexadecimal digits; the order of keys does not matter."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def write_text(path: str | Path, text: str) -> None:
    """Write a text file in UTF-8, whole or not at all, in place of an old one; missing folders above are created.

    The file is forced to disk.
    """
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def flush(path: Path) -> None:
    """Force a file, or the list of a folder's entries, to disk; do nothing for a folder on Windows."""
    windows = os.name == "nt"
    if windows and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDWR if windows else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
