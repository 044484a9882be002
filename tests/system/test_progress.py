"""What is said of a stage where nobody watches a terminal."""

import time

import pytest

from rotarymae.cli.output import print_table
from rotarymae.report.content import Table
from rotarymae.system import Reporter, duration, progress


def test_a_stage_without_a_terminal_says_how_far_it_is(capfd, monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0.05)
    reporter = Reporter()
    with reporter.bar("pre-training") as on_step:
        for step in range(1, 4):
            on_step(step, 12, 0.5)
            time.sleep(0.15)
    out, err = capfd.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert any(
        line.startswith("pre-training: 25 % (3 of 12 steps), ") and "left, loss 0.5000" in line for line in lines
    )
    assert lines[-1].startswith("pre-training: 3 steps in ") and lines[-1].endswith(", loss 0.5000")


def test_a_stage_that_has_done_nothing_yet_says_nothing_yet(capfd, monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0.0)
    reporter = Reporter()
    with reporter.bar("reading") as on_step:
        assert capfd.readouterr().err == "reading ...\n"
        on_step(0, 2)
        assert capfd.readouterr().err == ""
        on_step(1, 2)
    assert "50 %" in capfd.readouterr().err


def test_names_of_files_and_columns_are_printed_as_they_are_but_for_control_codes(capfd):
    reporter = Reporter()
    reporter.say("[/x] :star: \x1b[31mred"), reporter.warn("[/y] \x1b[31mred")
    rows = [("[/x] \x1b[31mred", {"flux [mJy]": 1.5, "[/y] :star:": 2})] * 7
    print_table(Table(rows, "t [/x]", caption="c [/x]"), reporter)
    out, err = capfd.readouterr()
    assert err.splitlines() == ["[/x] :star: \\x1b[31mred", "warning: [/y] \\x1b[31mred"]
    assert all(part in out for part in ("t [/x]", "c [/x]", "[/x] \\x1b[31mred", "flux [mJy]", "[/y] :star:"))


def test_quiet_says_nothing(capfd, monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0.01)
    with Reporter(quiet=True).bar("reading") as on_step:
        on_step(1, 2, loss=0.5)
        time.sleep(0.05)
    assert capfd.readouterr() == ("", "")


def test_a_stage_of_one_call_says_that_it_began_and_how_long_it_took(capfd, monkeypatch):
    with Reporter().bar("calibrating"):
        assert capfd.readouterr().err == "calibrating ...\n"
    assert capfd.readouterr().err == ""
    clock = iter((10.0, 13.2))
    monkeypatch.setattr("rotarymae.system.progress.time.monotonic", lambda: next(clock))
    with Reporter().bar("calibrating"):
        pass
    assert capfd.readouterr().err == "calibrating ...\ncalibrating: 3.2 s\n"


@pytest.mark.parametrize(
    "seconds,text",
    [
        (3.21, "3.2 s"),
        (59.4, "59 s"),
        (754.2, "12 min 34 s"),
        (11_520, "3 h 12 min"),
        (7199, "2 h 0 min"),
        (300_000, "3 days 11 h"),
    ],
)
def test_durations(seconds, text):
    assert duration(seconds) == text
