"""Where data sets are from: the commands that are printed, and the words of a reader that misses a file."""

import subprocess

import pytest

from _command import command
from rotarymae.errors import InputError
from rotarymae_experiments.data.sources import SOURCES, fetch, find, missing


def test_every_data_set_is_listed_with_its_licence(capsys):
    assert command("data") == 0
    said = capsys.readouterr().out
    assert all(name in said and source.licence in said and source.home in said for name, source in SOURCES.items())


def test_the_commands_fetch_check_and_unpack(capsys):
    assert command("data", "uea") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("# ") and len(lines) == 1 + 2 * 6
    assert "--output Epilepsy.zip https://" in "\n".join(lines) and "unzip -q Epilepsy.zip -d Epilepsy" in lines
    assert command("data", "tiny_imagenet") == 0
    assert "echo '90528d7ca1a48142e341f4ef8d21d0de  tiny-imagenet-200.zip' | md5sum --check" in capsys.readouterr().out
    assert command("data", "ueaa") == 2 and command("data", "audioset") == 2


def test_they_are_lines_of_a_shell(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "a.txt").write_text("content\n")
    url = (tmp_path / "there" / "a.txt").as_uri()
    lines = fetch(url, "b.txt", "f75b8179e4bbe7e2b4a074dcef62de95", "cp b.txt c.txt")
    done = subprocess.run(["sh", "-e", "-c", "\n".join(lines)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and (tmp_path / "c.txt").read_text() == "content\n", done.stderr


def test_a_missing_file_says_how_to_get_it():
    assert "rotarymae-experiments data uea" in str(missing("x.ts", "uea"))
    with pytest.raises(InputError, match="Did you mean 'uea'"):
        find("ueaa")
