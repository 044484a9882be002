"""What could not be finished is refused before it costs anything, and what a killed process left does not pile up."""

from pathlib import Path

import numpy as np
import pytest
import torch

from _runs import FIT, waves
from conftest import TINY, command, refuses, write_csv
from rotarymae.interpolation import interpolate
from rotarymae.queries import grid
from rotarymae.run_folder import check_folder, check_output
from rotarymae.train import pretrain


def test_answers_that_are_no_numbers_are_refused():
    data = waves()
    trained = pretrain(data, FIT).pipeline
    with torch.no_grad():
        trained.model.head.bias.fill_(torch.nan)
    with refuses("96", "96", "series 0"):
        interpolate(trained, data, grid(data, 3))


@pytest.mark.parametrize(
    ("label", "options", "parts"),
    [
        ("1e155", ["--label", "label"], ["label of series 1", "1e+155", "3.4e+38", "choose a larger unit"]),
        ("1.5", ["--seed", 2**64], ["seed is 18446744073709551616", "less than 1.84467e+19"]),
        ("1.5", ["--time-unit", "1e-300"], ["units of 1e-300", "3e+300", "a larger unit"]),
    ],
)
def test_numbers_that_nothing_could_be_done_with(label, options, parts, tmp_path, capsys):
    rows = [(f"s{i}", t, t % 3, label if i == 1 else 0.1 * i) for i in range(12) for t in range(4)]
    table = write_csv(tmp_path / "t.csv", "id,time,value,label", rows)
    assert command("fit", table, "--out", tmp_path / "run", *TINY, *options) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert all(part in said for part in parts), said
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="a folder that nobody can write to")
def test_an_output_that_cannot_be_written_is_refused_before_any_work(tmp_path, capsys):
    with refuses("/proc/run", "nothing", "written"):
        check_folder(Path("/proc/run"), resume=False)
    with refuses("/proc/run.csv", "nothing", "written"):
        check_output(Path("/proc/run.csv"))
    table = write_csv(tmp_path / "t.csv", "id,time,value", [("a", 1, 2)])
    assert command("fit", table, "--out", "/proc/run") == 2
    said = capsys.readouterr().err
    assert "nothing can be written" in said and "reading" not in said
    assert list(tmp_path.iterdir()) == [table]


def test_a_static_column_that_says_nothing_of_the_labelled_series_is_refused_before_training(tmp_path, capsys):
    rows = [(i, t, np.sin(t), "" if i > 11 else "ab"[i % 2], 1 if i < 12 else 2) for i in range(16) for t in range(5)]
    write_csv(tmp_path / "t.csv", "id,time,value,label,age", rows)
    given = ["fit", tmp_path / "t.csv", "--label", "label", "--static", "age", "--out", tmp_path / "run", *TINY]
    assert command(*given) == 2
    assert "static column 'age' is 1 in every series" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "run").exists()
