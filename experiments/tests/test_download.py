"""Fetching, from a server on loopback: whole, cut off and gone on with, changed meanwhile, wrong; and odd archives."""

import gzip
import hashlib
import io
import os
import re
import signal
import tarfile
import threading
import time
import tracemalloc
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from _command import command
from rotarymae.errors import InputError
from rotarymae.system import Reporter
from rotarymae_experiments.data import download, sources
from rotarymae_experiments.data.sources import File, Source

CONTENT = bytes(range(256)) * 4096  # 1 MiB
QUIET = Reporter(quiet=True)


class Server(BaseHTTPRequestHandler):
    """Serves `files`, with ranges; `cuts` are the bytes after which the next answers break off."""

    files: ClassVar[dict] = {}
    cuts: ClassVar[list] = []
    asked: ClassVar[list] = []
    odd: ClassVar[dict] = {}
    ranges, tag, before, after = True, '"one"', None, None

    def do_GET(self):
        own = type(self)
        own.asked.append(self.headers.get("Range"))
        if self.path in own.odd:  # (status, headers, body) as given
            status, headers, body = own.odd[self.path]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
            return
        if self.path not in self.files:
            self.send_error(404)
            return
        content, start = self.files[self.path], 0
        if self.ranges and self.headers.get("Range") and self.headers.get("If-Range", self.tag) == self.tag:
            start = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
            if start >= len(content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.end_headers()
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(content) - start))
        self.send_header("ETag", self.tag)
        self.end_headers()
        if own.before is not None:
            own.before()
        end = start + own.cuts.pop(0) if own.cuts else None
        self.wfile.write(content[start:end])
        if own.after is not None:
            self.wfile.flush()
            own.after()

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    kind = type("Own", (Server,), {"files": {"/file": CONTENT}, "cuts": [], "asked": [], "odd": {}})
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as running:
        running.handle_error = lambda *_: None  # a client that was stopped has closed its end
        thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        kind.url = f"http://127.0.0.1:{running.server_port}"
        yield kind
        running.shutdown()
        thread.join()


def file(server, **more):
    return File(f"{server.url}/file", "file", **more)


def fetch(server, folder, **more):
    download.download(file(server, **more), folder / "file", wait=0)
    return (folder / "file").read_bytes()


def test_a_file_comes_whole_and_is_checked(server, tmp_path):
    seen = []
    whole = file(server, size=len(CONTENT), md5=hashlib.md5(CONTENT).hexdigest())
    download.download(whole, tmp_path / "file", lambda done, total: seen.append((done, total)))
    assert (tmp_path / "file").read_bytes() == CONTENT
    assert seen[-1] == (len(CONTENT), len(CONTENT)) and [p.name for p in tmp_path.iterdir()] == ["file"]
    download.download(whole, tmp_path / "file")  # nothing is asked for twice
    assert server.asked == [None]


def test_a_connection_that_is_cut_is_gone_on_with(server, tmp_path):
    server.cuts += [300_000, 400_000]
    assert fetch(server, tmp_path) == CONTENT
    assert server.asked == [None, "bytes=300000-", "bytes=700000-"]


def test_the_next_call_goes_on_where_this_one_gave_up(server, tmp_path):
    server.cuts += [300_000] + [0] * download.TRIES
    with pytest.raises(InputError, match=r"cannot be fetched .*300,000 bytes are in .*file.part; the same command"):
        fetch(server, tmp_path)
    assert not (tmp_path / "file").exists()
    server.cuts.clear()
    server.asked.clear()
    assert fetch(server, tmp_path) == CONTENT
    assert server.asked == ["bytes=300000-"]


def test_a_server_without_ranges_begins_anew(server, tmp_path):
    server.ranges = False
    server.cuts += [300_000]
    assert fetch(server, tmp_path) == CONTENT


def test_a_part_that_is_whole_already(server, tmp_path):
    (tmp_path / "file.part").write_bytes(CONTENT)
    assert fetch(server, tmp_path, md5=hashlib.md5(CONTENT).hexdigest()) == CONTENT
    (tmp_path / "file").unlink()
    (tmp_path / "file.part").write_bytes(CONTENT + b"more")
    assert fetch(server, tmp_path, md5=hashlib.md5(CONTENT).hexdigest()) == CONTENT


@pytest.mark.parametrize(
    "more, message",
    [
        ({"size": 7}, r"/file offers 1,048,576 bytes where 7 are published"),
        ({"md5": "0" * 32}, r"has the MD5 sum [0-9a-f]{32}; published is 0{32}"),
    ],
)
def test_another_file_than_published(server, tmp_path, more, message):
    with pytest.raises(InputError, match=message):
        fetch(server, tmp_path, **more)
    assert not list(tmp_path.iterdir())


def test_a_file_of_that_name_is_never_overwritten(server, tmp_path):
    (tmp_path / "file").write_bytes(b"mine")
    with pytest.raises(InputError, match=r"4.*1,048,576"):
        fetch(server, tmp_path, size=len(CONTENT))
    assert (tmp_path / "file").read_bytes() == b"mine" and not server.asked


def test_a_file_that_changed_between_two_parts_is_fetched_anew(server, tmp_path):
    """Fails without If-Range: half of the old file and half of the new one."""
    server.cuts += [300_000] + [0] * download.TRIES
    with pytest.raises(InputError):
        fetch(server, tmp_path)
    server.cuts.clear()
    server.files["/file"], server.tag = CONTENT[::-1], '"two"'
    assert fetch(server, tmp_path) == CONTENT[::-1]


@pytest.mark.parametrize(
    "status, headers, body, more, message",
    [
        (404, {}, b"", {}, "answers 404"),
        (204, {}, b"", {}, "answers 204"),
        (302, {"Location": "ftp://127.0.0.1/file"}, b"", {}, "ftp://127.0.0.1"),
        (302, {"Location": "http://[/file"}, b"", {}, "leads to"),
        (200, {}, CONTENT, {"size": 1000}, "1,000"),
        (200, {}, CONTENT, {"limit": 1000}, "1,000"),
        (200, {"Content-Length": "ten"}, CONTENT, {"size": 1000}, "1,000"),
    ],
)
def test_odd_answers_are_refused_and_leave_nothing(server, tmp_path, status, headers, body, more, message):
    server.odd["/odd"] = status, headers, body
    with pytest.raises(InputError, match=message):
        download.download(File(f"{server.url}/odd", "odd", **more), tmp_path / "odd", wait=0)
    assert not [path for path in tmp_path.iterdir() if path.suffix != ".tag"]


def test_a_body_of_unknown_length_comes_whole(server, tmp_path):
    server.odd["/file"] = 200, {}, CONTENT
    assert fetch(server, tmp_path, size=len(CONTENT)) == CONTENT


def test_a_full_disk(server, tmp_path, monkeypatch):
    monkeypatch.setattr(download.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 10}))
    with pytest.raises(InputError, match=r"10.*1,048,576"):
        fetch(server, tmp_path)


def packed(kind, files):
    content = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in files.items():
                archive.writestr(name, data)
    else:
        with tarfile.open(fileobj=content, mode="w:gz") as archive:
            for name, data in files.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
    return content.getvalue()


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_a_data_set_is_unpacked_beside_what_is_there(server, tmp_path, kind):
    server.files["/a"] = packed(kind, {"top/meta/list.csv": b"1,2", "top/audio/a.wav": b"sound", "top/README": b""})
    source = Source(
        "sounds", "", "", "", (File(f"{server.url}/a", f"a.{kind}", unpack=".", strip=1, gives="meta/list.csv"),)
    )
    (tmp_path / "notes.txt").write_text("mine")
    download.fetch(source, tmp_path, QUIET)
    there = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file())
    assert there == ["README", "audio/a.wav", "meta/list.csv", "notes.txt"]
    download.fetch(source, tmp_path, QUIET)
    assert len(server.asked) == 1
    with pytest.raises(InputError, match=r"notes\.txt"):
        download.fetch(source, tmp_path / "notes.txt", QUIET)


def test_a_data_set_is_unpacked_to_here_and_behind_a_link(server, tmp_path, monkeypatch):
    server.files["/a"] = packed("zip", {"meta/list.csv": b"1,2"})
    source = Source("sounds", "", "", "", (File(f"{server.url}/a", "a.zip", unpack=".", gives="meta/list.csv"),))
    for folder in ("here", "behind"):
        (tmp_path / folder).mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "behind")
    monkeypatch.chdir(tmp_path / "here")
    for folder in (".", "../link"):
        download.fetch(source, folder, QUIET)
    for folder in ("here", "behind"):
        assert [path.name for path in (tmp_path / folder).iterdir()] == ["meta"]


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
@pytest.mark.parametrize("name", ["../out.txt", "/out.txt", "a/../../out.txt", "C:/out.txt", "a\\..\\out.txt"])
def test_a_name_that_leads_out_is_refused(tmp_path, kind, name):
    archive = tmp_path / f"a.{kind}"
    archive.write_bytes(packed(kind, {"in.txt": b"", name: b""}))
    with pytest.raises(InputError, match=r"a\..*: the name .* leads out of the folder"):
        download.unpack(archive, tmp_path / "to", 1000)
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == [archive.name]


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_bombs_and_damage_are_refused(tmp_path, kind):
    archive = tmp_path / f"a.{kind}"
    whole = packed(kind, {"zeros": bytes(10**7), "more": bytes(range(256)) * 100})
    archive.write_bytes(whole)
    with pytest.raises(InputError, match=r"1,000,000.*'zeros'"):
        download.unpack(archive, tmp_path / "to", 10**6)
    archive.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"is damaged .*fetch it anew"):
        download.unpack(archive, tmp_path / "to", 10**8)
    archive.write_bytes(whole[:60] + b"\xff" * 40 + whole[100:])
    with pytest.raises(InputError, match=r"is damaged .*fetch it anew"):
        download.unpack(archive, tmp_path / "to", 10**8)
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == [archive.name]


def test_a_header_of_a_gigabyte_is_refused_unread(tmp_path):
    """Fails where tarfile may read what it likes: a megabyte of archive takes a gigabyte of memory."""
    entry = tarfile.TarInfo("name")
    entry.type, entry.size = tarfile.XHDTYPE, 1 << 30
    with gzip.open(tmp_path / "a.tar.gz", "wb") as archive:
        archive.write(entry.tobuf(tarfile.GNU_FORMAT))
        for _ in range(8):
            archive.write(bytes(1 << 20))
    tracemalloc.start()
    with pytest.raises(InputError, match="a header of 1,073,741,824 bytes"):
        download.unpack(tmp_path / "a.tar.gz", tmp_path / "to", 10**8)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 24


def test_thousands_of_empty_files_take_no_minute(tmp_path):
    (tmp_path / "a.zip").write_bytes(packed("zip", {f"{i}.txt": b"" for i in range(3000)}))
    started = time.process_time()
    download.unpack(tmp_path / "a.zip", tmp_path / "to", 1000)
    assert len(list((tmp_path / "to").iterdir())) == 3000 and time.process_time() - started < 5


@pytest.mark.parametrize("names", [("a", "a/b"), ("n" * 300,), ("a", "./a")])
def test_names_that_no_disk_holds_are_told_in_a_sentence(tmp_path, names):
    (tmp_path / "a.zip").write_bytes(packed("zip", dict.fromkeys(names, b"")))
    with pytest.raises(InputError, match=r"a\.zip is damaged"):
        download.unpack(tmp_path / "a.zip", tmp_path / "to", 1000)


def test_what_a_killed_process_left_is_removed(tmp_path):
    (tmp_path / "a.zip").write_bytes(packed("zip", {"a": b"1"}))
    (tmp_path / "to" / ".a.zip.unpacked" / "half").mkdir(parents=True)
    download.unpack(tmp_path / "a.zip", tmp_path / "to", 1000)
    assert [path.name for path in (tmp_path / "to").iterdir()] == ["a"]


def test_links_are_refused(tmp_path):
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        entry = tarfile.TarInfo("link")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(entry)
    with pytest.raises(InputError, match=r"'link'"):
        download.unpack(tmp_path / "a.tar", tmp_path / "to", 10**8)
    entry = zipfile.ZipInfo("link")
    entry.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(entry, "/etc/passwd")
    with pytest.raises(InputError, match=r"'link' is a link"):
        download.unpack(tmp_path / "a.zip", tmp_path / "to", 10**8)


def test_an_archive_of_something_else(server, tmp_path):
    server.files["/a"] = packed("zip", {"other.txt": b""})
    source = Source("sounds", "", "", "", (File(f"{server.url}/a", "a.zip", unpack="in", gives="in/list.csv"),))
    with pytest.raises(InputError, match=r"a.zip of http.* holds no in/list.csv"):
        download.fetch(source, tmp_path, QUIET)


def test_the_command(server, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sources.SOURCES, "made", Source("made up", "its page", "1 MB", "free", (file(server),)))
    assert command("data", "made", "--to", tmp_path / "made") == 0
    said = capsys.readouterr().err
    assert "its page (1 MB). Licence: free" in said and (tmp_path / "made" / "file").read_bytes() == CONTENT
    assert command("data") == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in sources.SOURCES)
    assert command("data", "tiny_imagnet") == 2
    assert "Did you mean 'tiny_imagenet'?" in capsys.readouterr().err
    assert command("data", "audioset", "--to", tmp_path) == 2
    assert "cannot be fetched. Google publishes labels and no sound" in capsys.readouterr().err


def test_an_interrupted_command_is_gone_on_with(server, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sources.SOURCES, "made", Source("made up", "its page", "1 MB", "free", (file(server),)))
    server.cuts += [300_000]
    server.after = lambda: (time.sleep(0.5), os.kill(os.getpid(), signal.SIGINT), time.sleep(0.5))
    assert command("data", "made", "--to", tmp_path, "--quiet") == 130
    assert "The same command goes on from what was saved." in capsys.readouterr().err
    assert (tmp_path / "file.part").stat().st_size == 300_000
    server.after = None
    assert command("data", "made", "--to", tmp_path, "--quiet") == 0
    assert (tmp_path / "file").read_bytes() == CONTENT and server.asked == [None, "bytes=300000-"]


def test_what_every_source_says():
    for name, source in sources.SOURCES.items():
        assert source.home.startswith("http") and source.size and source.licence and source.what
        assert source.files or source.note, name
        for one in source.files:
            # Without encryption only where a checksum tells whether it came as published.
            assert one.url.startswith("https://") or one.md5, name
            assert one.unpack is None or one.gives, name
        told = str(sources.missing("a/file", name))
        assert source.home in told and source.licence in told and re.search("--(data|pictures)-dir", told)


def test_two_cannot_fetch_into_one_folder(server, tmp_path):
    source = Source("sounds", "", "", "", (File(f"{server.url}/file", "file"),))
    refused = []

    def second():
        if not refused:
            with pytest.raises(InputError, match=r"process") as caught:
                download.fetch(source, tmp_path, QUIET)
            refused.append(caught.value)

    server.before = second  # while the first one waits for the file
    download.fetch(source, tmp_path, QUIET)
    assert refused and [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == CONTENT
