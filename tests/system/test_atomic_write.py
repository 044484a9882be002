"""Writing: a reader sees the old or the new, and nobody's file is lost."""

import os
import shutil
from contextlib import suppress

import pytest

from conftest import refuses
from rotarymae.system import check_writable, flush, remove_leftovers, replacing, replacing_folder, write_text


def listing(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_a_file_is_replaced_at_the_end_only(tmp_path):
    path = tmp_path / "deep" / "table.csv"
    write_text(path, "old")
    with replacing(path) as beside:
        beside.write_text("new")
        assert path.read_text() == "old" and beside.parent == path.parent and beside.suffix == ".csv"
    assert path.read_text() == "new" and listing(tmp_path) == ["deep", "deep/table.csv"]
    write_text(str(path), "ä")
    assert path.read_bytes() == "ä".encode()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "table.csv"
    write_text(path, "old")
    with refuses("stop", error=error), replacing(path) as beside:
        beside.write_text("half")
        raise error("stop")
    assert path.read_text() == "old" and listing(tmp_path) == ["table.csv"]


def test_nothing_written_is_an_error(tmp_path):
    with refuses("table.csv", error=FileNotFoundError), replacing(tmp_path / "table.csv"):
        pass
    assert listing(tmp_path) == []


def put(folder, **files):
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)


def test_a_folder_is_replaced_at_the_end(tmp_path):
    path = tmp_path / "model"
    put(path, a="old", c="old")
    with replacing_folder(path) as beside:
        put(beside, a="new", b="new")
        assert (path / "a").read_text() == "old"
    assert listing(tmp_path) == ["model", "model/a", "model/b"]
    assert [(path / name).read_text() for name in ("a", "b")] == ["new", "new"]


def test_a_new_folder_and_its_parents(tmp_path):
    with replacing_folder(str(tmp_path / "x" / "y")) as beside:
        put(beside, a="1")
    assert listing(tmp_path) == ["x", "x/y", "x/y/a"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_the_old_folder_and_nothing_else(tmp_path, error):
    path = tmp_path / "model"
    put(path, a="old")
    with refuses("stop", error=error), replacing_folder(path) as beside:
        put(beside, a="half")
        raise error("stop")
    assert (path / "a").read_text() == "old" and listing(tmp_path) == ["model", "model/a"]


def test_a_rename_that_fails_brings_the_old_folder_back(tmp_path, monkeypatch):
    path = tmp_path / "model"
    put(path, a="old")
    rename = type(path).replace

    def fail(self, target):
        if self.name.endswith(".part"):
            raise OSError("no room")
        return rename(self, target)

    monkeypatch.setattr(type(path), "replace", fail)
    with refuses("no room", error=OSError), replacing_folder(path) as beside:
        put(beside, a="new")
    assert (path / "a").read_text() == "old" and listing(tmp_path) == ["model", "model/a"]


def test_nothing_is_removed_behind_a_link(tmp_path):
    put(tmp_path / "theirs", a="theirs")
    (tmp_path / "model").symlink_to(tmp_path / "theirs")
    with refuses("model", "link", "theirs"), replacing_folder(tmp_path / "model") as beside:
        put(beside, a="new")
    assert listing(tmp_path) == ["model", "theirs", "theirs/a"] and (tmp_path / "theirs" / "a").read_text() == "theirs"


def test_a_file_is_not_replaced_by_a_folder(tmp_path):
    (tmp_path / "model").write_text("theirs")
    with refuses("model is a file"), replacing_folder(tmp_path / "model") as beside:
        put(beside, a="new")
    assert listing(tmp_path) == ["model"]


def test_a_place_that_cannot_be_written_to_is_refused_before_any_work(tmp_path):
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    put(tmp_path, file="1")
    for path, parts in (
        (tmp_path / "gone", ("gone", "nowhere")),
        (tmp_path / "file" / "x", ("file/x", "file")),
        (tmp_path / ("x" * 300), ("xxx cannot be made", "too long")),
    ):
        with refuses(*parts):
            check_writable(path)
    check_writable(tmp_path / "new" / "folder")
    assert listing(tmp_path) == ["file", "gone"]


def test_an_error_names_the_file_that_was_wanted(tmp_path):
    with pytest.raises(OSError, match=r"'.*/table\.csv'"), replacing(tmp_path / "table.csv") as beside:
        raise PermissionError(13, "Permission denied", str(beside))


def test_files_obey_the_umask(tmp_path):
    """Some libraries write them for their owner alone."""
    before = os.umask(0o027)
    try:
        with replacing_folder(tmp_path / "model") as beside:
            put(beside, a="1")
            (beside / "a").chmod(0o600)
    finally:
        os.umask(before)
    assert (tmp_path / "model" / "a").stat().st_mode & 0o777 == 0o640


def test_everything_is_flushed_before_the_rename(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "rotarymae.system.atomic_write.flush", lambda path: seen.append((path.name, (tmp_path / "model").exists()))
    )
    with replacing_folder(tmp_path / "model") as beside:
        put(beside, a="1", b="2")
    assert sorted(seen[:2]) == [("a", False), ("b", False)] and seen[2:] == [
        (beside.name, False),
        (tmp_path.name, True),
    ]


def test_flush_takes_files_and_folders(tmp_path):
    put(tmp_path, a="1")
    flush(tmp_path), flush(tmp_path / "a")
    with refuses("missing", error=FileNotFoundError):
        flush(tmp_path / "missing")


def test_what_killed_writes_left_is_removed_and_nothing_else(tmp_path, monkeypatch):
    """Half files and folders beside the given names only; a link goes, and what it leads to stays."""
    with suppress(KeyboardInterrupt), replacing_folder(tmp_path / "model") as beside:
        shutil.copytree(beside, tmp_path / ".model.ffffffff.part")  # as a killed process leaves it
        raise KeyboardInterrupt
    with replacing(tmp_path / "table.csv") as beside:
        beside.write_text("half")
        mark = beside.name.split(".")[3]
        shutil.copy(beside, tmp_path / beside.name.replace(mark, "ffffffff"))
    (tmp_path / "mine").mkdir()
    (tmp_path / ".model.eeeeeeee.part").symlink_to(tmp_path / "mine")
    for others in (".other.ffffffff.part", ".model.mine", ".model.ffffffff.part.d.e"):
        (tmp_path / others).mkdir()
    assert {".model.ffffffff.part", ".table.csv.ffffffff.part.csv"} < set(listing(tmp_path))
    entries = type(tmp_path).iterdir
    gone = [tmp_path / ".model.dddddddd.part"]  # which another process removes meanwhile
    monkeypatch.setattr(type(tmp_path), "iterdir", lambda path: [*gone * (path == tmp_path), *entries(path)])
    remove_leftovers(tmp_path, ("model", "table.csv"))
    monkeypatch.undo()
    assert listing(tmp_path) == [".model.ffffffff.part.d.e", ".model.mine", ".other.ffffffff.part", "mine", "table.csv"]
