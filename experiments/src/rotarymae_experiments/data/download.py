"""Fetches files of official addresses: resumes what was cut off, checks sizes and checksums, unpacks with care."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import shutil
import stat
import tarfile
import tempfile
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

from rotarymae.errors import InputError
from rotarymae.system import FolderLock, Reporter, flush
from rotarymae_experiments.data.sources import File, Source

CHUNK = 1 << 18
BUSY = (408, 429)  # what servers answer that want to be asked again
TRIES = 5  # in a row without a byte more
OnBytes = Callable[[int, int], None]
# What the standard library says of a damaged archive; RuntimeError is of an encrypted one.
DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    gzip.BadGzipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)


def fetch(source: Source, folder: str | Path, reporter: Reporter, wait: float = 5.0) -> None:
    """All files of a data set in a folder, archives unpacked. What is there already is not fetched again.

    Args:
        source: the data set.
        folder: is made when it is not there.
        reporter: shows what comes.
        wait: seconds before a connection is tried again.

    Raises:
        InputError: a data set that cannot be fetched; another process is at work in the folder; as `download` and
            `unpack`.
    """
    if not source.files:
        raise InputError(f"{source.what} cannot be fetched. {source.note} About it: {source.home}")
    folder = Path(folder)
    if folder.is_file():
        raise InputError(f"{folder} is a file; name a folder by --to.")
    folder.mkdir(parents=True, exist_ok=True)
    lock = FolderLock(folder)  # two that append to one file would spoil it
    try:
        _fetch(source, folder, reporter, wait)
    finally:
        (folder / ".lock").unlink(missing_ok=True)
        lock.release()


def _fetch(source: Source, folder: Path, reporter: Reporter, wait: float) -> None:
    for file in source.files:
        goal = folder / (file.gives or file.name)
        if file.gives and goal.exists() and not (folder / file.name).exists():  # else it was being unpacked
            reporter.say(f"{goal} is there already")
            continue
        with reporter.bar(f"{file.name}, MB") as on_step:
            download(file, folder / file.name, lambda done, total: on_step(done >> 20, total >> 20), wait)
        if file.unpack is None:
            continue
        with reporter.bar(f"unpacking {file.name}"):
            unpack(folder / file.name, folder / file.unpack, file.limit, file.strip)
        if not goal.exists():
            raise InputError(f"{file.name} of {file.url} holds no {file.gives}; it is not what was expected.")
        (folder / file.name).unlink()


# ── fetching ────────────────────────────────────────────────────────────────────────────────────────────────────────


def download(file: File, path: Path, on_bytes: OnBytes = lambda done, total: None, wait: float = 5.0) -> None:
    """One file. What came before a connection broke stays in PATH.part and is gone on with, now or by the next call.

    Raises:
        InputError: the address answers with an error, or with a file of another size than published; the connection
            broke several times in a row; the disk is too small; the checksum differs; a file of another size or
            checksum has the name already.
    """
    if path.exists():
        try:
            _check(file, path)
        except InputError as error:
            raise InputError(f"{error} It was there already: remove it to fetch it anew.") from None
        return
    part, failures = path.with_name(f"{path.name}.part"), 0
    while True:
        before = _size(part)
        try:
            _receive(file, part, on_bytes)
            break
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, urllib.error.HTTPError) and error.code < 500 and error.code not in BUSY:
                raise InputError(
                    f"{file.url} answers {error.code} ({error.reason}); is the address still right?"
                ) from None
            failures = 1 if _size(part) > before else failures + 1
            if failures == TRIES:
                kept = f"{_size(part):,} bytes are in {part}; the same command goes on from there."
                raise InputError(f"{file.url} cannot be fetched ({error or type(error).__name__}). {kept}") from None
            time.sleep(wait)
    try:
        _check(file, part)
    except InputError:
        part.unlink()
        raise
    flush(part)
    part.replace(path)


def _receive(file: File, part: Path, on_bytes: OnBytes) -> None:
    """Appends to the part what it lacks; OSError or HTTPException where the connection broke."""
    have, headers = _size(part), {"User-Agent": "rotarymae", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        answer = _opener.open(urllib.request.Request(file.url, headers=headers), timeout=60)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # nothing is left to send: whole, or longer than the file
            whole = error.headers.get("Content-Range", "").rpartition("/")[2]
            if whole == str(have):
                return
            part.unlink()
            raise ConnectionError(f"{part} held more than the file") from None
        raise
    with answer:
        goes_on = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        have = have if goes_on else 0
        length = answer.headers.get("Content-Length")
        total = have + int(length) if length else file.size or 0
        if file.size and total != file.size:
            raise InputError(f"{file.url} offers {total:,} bytes where {file.size:,} are published.")
        free = shutil.disk_usage(part.parent).free
        if total - have > free:
            raise InputError(f"{part.parent} has room for {free:,} bytes; {file.name} needs {total - have:,} more.")
        with part.open("ab" if goes_on else "wb") as out:
            while chunk := answer.read1(CHUNK):
                out.write(chunk)
                have += len(chunk)
                on_bytes(have, total)
        if total and have < total:
            raise ConnectionError(f"the connection ended after {have:,} of {total:,} bytes")


class _Redirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if not newurl.startswith("https://") and (req.type == "https" or not newurl.startswith("http://")):
            raise InputError(f"{req.full_url} leads to {newurl}, which is less safe; nothing was fetched.")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


_opener = urllib.request.build_opener(_Redirect)


def _check(file: File, path: Path) -> None:
    if file.size is not None and _size(path) != file.size:
        raise InputError(f"{path} has {_size(path):,} bytes; published are {file.size:,}.")
    if file.md5 is not None:
        with path.open("rb") as opened:
            found = hashlib.file_digest(opened, "md5").hexdigest()
        if found != file.md5:
            raise InputError(f"{path} has the MD5 sum {found}; published is {file.md5}.")


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


# ── unpacking ───────────────────────────────────────────────────────────────────────────────────────────────────────


def unpack(archive: Path, folder: Path, limit: int, strip: int = 0) -> None:
    """All plain files of a zip or tar, written to a hidden folder in `folder`, and moved when everything is there.

    Args:
        archive: .zip, .tar or .tar.gz.
        folder: where; other files in it stay.
        limit: bytes that it may unpack to.
        strip: so many leading folders of each name are left out.

    Raises:
        InputError: a damaged archive; a name that leads out of the folder; a link or device; more than `limit` bytes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with _reading(archive), tempfile.TemporaryDirectory(dir=folder, prefix=f".{archive.name}.") as beside:
        left = limit
        for name, opened in _members(archive):
            parts = safe_parts(archive, name)[strip:]
            if not parts:
                continue
            path = Path(beside, *parts)
            path.parent.mkdir(parents=True, exist_ok=True)
            with opened as content, path.open("xb") as out:
                while chunk := content.read(CHUNK):
                    left -= len(chunk)
                    if left < 0:
                        raise InputError(f"{archive} unpacks to more than {limit:,} bytes (at {name!r}); refused.")
                    out.write(chunk)
                flush(path)
        for path in [path for path in Path(beside).rglob("*") if path.is_file()]:
            goal = folder / path.relative_to(beside)
            goal.parent.mkdir(parents=True, exist_ok=True)
            path.replace(goal)


@contextmanager
def _reading(archive: Path) -> Iterator[None]:
    """What goes wrong in reading becomes an error that names the archive."""
    try:
        yield
    except InputError:
        raise
    except FileExistsError as error:
        raise InputError(f"{archive} has two files of one name, {error.filename}.") from error
    except DAMAGE as error:
        said = str(error).partition("\n")[0]
        raise InputError(f"{archive} is damaged ({said}); remove it and fetch it anew.") from error


def _members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    if zipfile.is_zipfile(archive) or archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as packed:
            for entry in packed.infolist():
                if stat.S_ISLNK(entry.external_attr >> 16):
                    raise InputError(f"{archive}: {entry.filename!r} is a link; refused.")
                if not entry.is_dir():
                    yield entry.filename, packed.open(entry)
        return
    with tarfile.open(archive) as packed:
        for member in packed:
            if not (member.isfile() or member.isdir()):
                raise InputError(f"{archive}: {member.name!r} is a link or a device; refused.")
            content = packed.extractfile(member)
            if content is not None:
                yield member.name, content


def safe_parts(archive: str | Path, name: str) -> tuple[str, ...]:
    """The parts of a name in an archive. Raises InputError for one that leads out of the folder it is unpacked to."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name or "\0" in name or not path.parts:
        raise InputError(f"{archive}: the name {name!r} leads out of the folder; refused.")
    return path.parts
