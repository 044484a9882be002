"""Fetch files from official addresses: continue what was cut off, check sizes and checksums, unpack with care."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import os
import shutil
import stat
import tarfile
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

from rotarymae.errors import InputError
from rotarymae.system import FolderLock, Reporter
from rotarymae_experiments.data.sources import File, Source

CHUNK = 1 << 18
BUSY = (408, 429)  # answers of servers that want to be asked again
TRIES = 5  # in a row without a byte more
MAX_HEADER = 1 << 20  # bytes that a tar may give to one member's names
MAX_MEMBERS = 1_000_000
OnBytes = Callable[[int, int], None]
# RuntimeError: an encrypted zip. OSError: a name too long, one that is both file and folder, a full disk.
DAMAGE = (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, RuntimeError, ValueError, OSError)


def fetch(source: Source, folder: str | Path, reporter: Reporter, wait: float = 5.0) -> None:
    """Fetch all files of a data set into a folder and unpack archives; skip what is there already.

    Raises:
        InputError: a data set that cannot be fetched; another process works in the folder; as `download`, `unpack`.
    """
    if not source.files:
        raise InputError(f"{source.what} cannot be fetched. {source.note} About it: {source.home}")
    folder = Path(folder)
    if folder.is_file():
        raise InputError(f"{folder} is a file; name a folder by --to.")
    folder.mkdir(parents=True, exist_ok=True)
    lock = FolderLock(folder)  # two that append to one file would spoil it
    try:
        for file in source.files:
            _fetch(file, folder, reporter, wait)
    finally:
        (folder / ".lock").unlink(missing_ok=True)
        lock.release()


def _fetch(file: File, folder: Path, reporter: Reporter, wait: float) -> None:
    archive, goal = folder / file.name, folder / (file.gives or file.name)
    if file.gives and goal.exists() and not archive.exists():  # else it was being unpacked
        reporter.say(f"{goal} is there already")
        return
    with reporter.bar(f"{file.name}, MB") as on_step:
        download(file, archive, lambda done, total: on_step(done >> 20, total >> 20), wait)
    if file.unpack is not None:
        with reporter.bar(f"unpacking {file.name}"):
            unpack(archive, folder / file.unpack, file.limit, file.strip)
        if not goal.exists():
            raise InputError(f"{file.name} of {file.url} holds no {file.gives}; it is not what was expected.")
        archive.unlink()


def download(file: File, path: Path, on_bytes: OnBytes = lambda done, total: None, wait: float = 5.0) -> None:
    """Fetch one file. PATH.part keeps what came before a connection broke; this or the next call continues it.

    Raises:
        InputError: the address answers with an error, or with a file of another size than published; the connection
            broke several times in a row; the disk is too small; the checksum differs; a file of another size or
            checksum has the name already.
    """
    if path.exists():
        _check(file, path, "It was there already: remove it to fetch it anew.")
        return
    part, failures = path.with_name(f"{path.name}.part"), 0
    while True:
        before = _size(part)
        try:
            _receive(file, part, on_bytes)
            break
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, urllib.error.HTTPError) and error.code < 500 and error.code not in BUSY:
                raise InputError(f"{file.url} answers {error.code} ({error.reason}); is the address right?") from None
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
    finally:
        _tag(part).unlink(missing_ok=True)
    part.replace(path)


def _receive(file: File, part: Path, on_bytes: OnBytes) -> None:
    """Append to the part what it lacks. Raises OSError or HTTPException where the connection broke."""
    start, tag = _size(part), _tag(part)
    request = urllib.request.Request(file.url, headers={"User-Agent": "rotarymae", "Accept-Encoding": "identity"})
    version = tag.read_text(encoding="ascii") if tag.exists() else ""
    if start and version:  # the server sends the whole file if it has changed since
        request.add_header("If-Range", version)
    if start and (version or file.md5):
        request.add_header("Range", f"bytes={start}-")
    try:
        answer = _opener.open(request, timeout=60)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # nothing is left to send: the part is whole, or longer than the file
            if error.headers.get("Content-Range", "").rpartition("/")[2] == str(start):
                return
            part.unlink()
            raise ConnectionError(f"{part} held more than the file") from None
        raise
    except ValueError as error:  # of an address that a redirect gave
        raise InputError(f"{file.url} leads to an address that is none ({error}).") from error
    with answer:
        if answer.status not in (200, 206):
            raise InputError(f"{file.url} answers {answer.status} ({answer.reason}), which is no file.")
        if answer.status == 206 and not answer.headers.get("Content-Range", "").startswith(f"bytes {start}-"):
            part.unlink()
            raise ConnectionError("the server sent another part than asked for")
        have = start if answer.status == 206 else 0
        total = file.size or 0 if answer.length is None else have + answer.length
        most = file.size or max(total, file.limit)
        if file.size and total != file.size:
            raise InputError(f"{file.url} offers {total:,} bytes where {file.size:,} are published.")
        free = shutil.disk_usage(part.parent).free
        if total - have > free:
            raise InputError(f"{part.parent} has room for {free:,} bytes; {file.name} needs {total - have:,} more.")
        version = answer.headers.get("ETag", "")
        if not version or version.startswith("W/"):  # a weak one does not promise the same bytes
            version = answer.headers.get("Last-Modified", "")
        tag.write_text(version if version.isascii() else "", encoding="ascii")
        with part.open("ab" if have else "wb") as out:
            while chunk := answer.read1(CHUNK):
                have += len(chunk)
                if have > most:
                    part.unlink()
                    raise InputError(f"{file.url} sends more than {most:,} bytes; it is not what was expected.")
                out.write(chunk)
                on_bytes(have, total)
        if have < total:
            raise ConnectionError(f"the connection ended after {have:,} of {total:,} bytes")


class _Redirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if not newurl.startswith("https://") and (req.type == "https" or not newurl.startswith("http://")):
            raise InputError(f"{req.full_url} leads to {newurl}, which is less safe; nothing was fetched.")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


_opener = urllib.request.build_opener(_Redirect)


def _check(file: File, path: Path, advice: str = "") -> None:
    if file.size is not None and _size(path) != file.size:
        raise InputError(f"{path} has {_size(path):,} bytes; published are {file.size:,}. {advice}".strip())
    if file.md5 is not None:
        with path.open("rb") as opened:
            md5 = hashlib.file_digest(opened, "md5").hexdigest()
        if md5 != file.md5:
            raise InputError(f"{path} has the MD5 sum {md5}; published is {file.md5}. {advice}".strip())


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _tag(part: Path) -> Path:
    """Return the file that keeps the server's mark of the version (ETag or date) that a part is of."""
    return part.with_name(f"{part.name}.tag")


def unpack(archive: Path, folder: Path, limit: int, strip: int = 0) -> None:
    """Unpack all plain files of a zip, tar or tar.gz into a hidden folder, and move them when all are there.

    Args:
        archive: .zip, .tar or .tar.gz.
        folder: where; other files in it stay.
        limit: bytes that it may unpack to.
        strip: this number of leading folders of each name is left out.

    Raises:
        InputError: a damaged archive; a name that leads out of the folder; a link or device; more than `limit` bytes.
    """
    temporary = folder / f".{archive.name}.unpacked"
    shutil.rmtree(temporary, ignore_errors=True)  # of a process that was killed
    temporary.mkdir(parents=True)
    left = limit
    try:
        for number, (name, content) in enumerate(_members(archive)):
            parts = safe_parts(archive, name)[strip:]
            if not parts:
                continue
            if number == MAX_MEMBERS:
                raise InputError(f"{archive} holds more than {MAX_MEMBERS:,} files; refused.")
            path = Path(temporary, *parts)
            path.parent.mkdir(parents=True, exist_ok=True)
            with content, path.open("xb") as out:
                while chunk := content.read(CHUNK):
                    left -= len(chunk)
                    if left < 0:
                        raise InputError(f"{archive} unpacks to more than {limit:,} bytes (at {name!r}); refused.")
                    out.write(chunk)
        if hasattr(os, "sync"):  # once, not for each of thousands of files
            os.sync()
        for path in [path for path in temporary.rglob("*") if path.is_file()]:
            goal = folder / path.relative_to(temporary)
            goal.parent.mkdir(parents=True, exist_ok=True)
            path.replace(goal)
    except InputError:
        raise
    except DAMAGE as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"{archive} is damaged ({reason}); remove it and fetch it anew.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    if zipfile.is_zipfile(archive) or archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as packed:
            for entry in packed.infolist():
                if stat.S_ISLNK(entry.external_attr >> 16):
                    raise InputError(f"{archive}: {entry.filename!r} is a link; refused.")
                if not entry.is_dir():
                    yield entry.filename, packed.open(entry)
        return
    with archive.open("rb") as raw, gzip.GzipFile(fileobj=raw) as unzipped:
        zipped = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        bounded: Any = _Bounded(unzipped if zipped else raw)
        with tarfile.open(fileobj=bounded, mode="r:") as packed:
            for member in packed:
                if not (member.isfile() or member.isdir()):
                    raise InputError(f"{archive}: {member.name!r} is a link or a device; refused.")
                if content := packed.extractfile(member):
                    yield member.name, content


class _Bounded:
    """A file that refuses to read much at once, as tarfile does for a header: 1 MB can unpack to a gigabyte."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def read(self, size: int) -> bytes:
        if size > MAX_HEADER:
            raise tarfile.ReadError(f"a header of {size:,} bytes")
        return self.file.read(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


def safe_parts(archive: str | Path, name: str) -> tuple[str, ...]:
    """Return the parts of a name in an archive. Raises InputError for one that leads out of the archive's folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name or "\0" in name or not path.parts:
        raise InputError(f"{archive}: the name {name!r} leads out of the folder; refused.")
    return path.parts
