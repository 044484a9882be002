"""Ctrl-C and SIGTERM at any stage: the command ends soon, with the usual exit code, and says what is saved."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import duckdb
import pytest

from conftest import TINY, command
from rotarymae.cli.interruption import Stopped, how_to_resume, stopping_on_signals, with_advice

STARS = ["--id", "star", "--time", "day", "--channel", "band", "--values", "flux"]
SIGNALS = [signal.SIGINT, signal.SIGTERM]

ALONE = """
import signal, sys, time
{before}
from rotarymae.cli import interruption
with interruption.stopping_on_signals():
    print("ready", flush=True)
    {work}
"""
STUBBORN = """
    try:
        time.sleep(60)
    except BaseException:
        time.sleep(60)
"""


def hit(work, *signals, before=""):
    """The exit code, standard error and seconds of a process that does this work when the signals come."""
    process = subprocess.Popen(
        [sys.executable, "-c", ALONE.format(before=before, work=work)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    time.sleep(0.5)  # it has begun by now
    started = time.monotonic()
    for signum in signals:
        process.send_signal(signum)
        time.sleep(0.1)
    _, err = process.communicate(timeout=60)
    return process.returncode, err, time.monotonic() - started


def test_the_same_signal_twice_ends_at_once():
    code, _, seconds = hit(STUBBORN, signal.SIGTERM, signal.SIGTERM)
    assert code == -signal.SIGTERM and seconds < 30


def test_the_other_signal_is_the_same_request():
    """Launchers pass Ctrl-C on as SIGTERM: what cleans up must not be hit a second time."""
    work = "try:\n        time.sleep(60)\n    finally:\n        time.sleep(0.3); print('cleaned', file=sys.stderr)"
    code, err, _ = hit(work, signal.SIGINT, signal.SIGTERM)
    assert code != 143 and err.startswith("cleaned") and "Stopped" in err


def test_a_signal_that_the_caller_ignores_stays_ignored():
    ignored = "signal.signal(signal.SIGINT, signal.SIG_IGN)"
    code, err, _ = hit("time.sleep(1); print('done', file=sys.stderr)", signal.SIGINT, before=ignored)
    assert (code, err) == (0, "done\n")


@pytest.mark.parametrize("signum", SIGNALS)
def test_handlers_are_put_back_and_notes_go_on(signum):
    before = [signal.getsignal(each) for each in SIGNALS]
    with pytest.raises(Stopped) as caught, stopping_on_signals(), with_advice(lambda: "Half."):
        os.kill(os.getpid(), signum)
        time.sleep(60)
    assert caught.value.signum == signum and caught.value.__notes__ == ["Half."]
    assert [signal.getsignal(each) for each in SIGNALS] == before


@pytest.mark.parametrize("signum", SIGNALS)
def test_a_signal_during_a_query_is_a_stop(signum):
    """DuckDB raises RuntimeError in the place of what the handler raised."""
    with pytest.raises(Stopped) as caught, stopping_on_signals(), with_advice(lambda: "Half."):
        threading.Timer(0.2, os.kill, (os.getpid(), signum)).start()
        duckdb.connect(config={"threads": 1}).sql("select sum(sqrt(a)) from range(1000000000) t(a)").fetchall()
    assert caught.value.signum == signum and caught.value.__notes__ == ["Half."]


@pytest.mark.parametrize("signum", SIGNALS)
def test_a_signal_during_a_query_of_a_shard_is_no_fault_of_the_shard(signum, fitted, tmp_path, monkeypatch, capsys):
    """Whatever else goes wrong with a shard is kept for the end, when all others are done."""

    def stuck(*_):
        threading.Timer(0.2, os.kill, (os.getpid(), signum)).start()
        duckdb.connect(config={"threads": 1}).sql("select sum(sqrt(a)) from range(1000000000) t(a)").fetchall()

    monkeypatch.setattr("rotarymae.scale.shards.answer_table", stuck)
    (tmp_path / "in").mkdir()
    shutil.copy(fitted / "stars.csv", tmp_path / "in" / "1.csv")
    assert command("embed", fitted / "run", tmp_path / "in", "--out", tmp_path / "out") == 128 + signum
    assert f"stopped by {signum.name}. 0 of 1 files are done" in capsys.readouterr().err


STAGES = {
    "rotarymae.tables.TableReader.read": ["Nothing was saved."],
    "rotarymae.train.prepare": ["Nothing was saved."],
    "rotarymae.train.Pretraining": ["No state was saved", "--resume begins at the beginning"],
    "rotarymae.train.copy_encoder": ["The state of the training is saved", "--resume"],
    "rotarymae.scoring.constant": ["The state of the training is saved", "--resume"],
    "rotarymae.report.build.render": ["The state of the training is saved", "--resume"],
}


@pytest.mark.parametrize(("stage", "signum"), list(zip(STAGES, SIGNALS * 4, strict=False)))
def test_every_stage_of_a_fit_ends_at_a_signal(stage, signum, fitted, tmp_path, monkeypatch, capsys):
    def stuck(*_, **__):
        os.kill(os.getpid(), signum)
        time.sleep(60)

    monkeypatch.setattr(stage, stuck)
    labels = ["--labels", fitted / "kinds.csv", "--label", "kind"]
    started = time.monotonic()
    assert command("fit", fitted / "stars.csv", "--out", tmp_path / "run", *STARS, *labels, *TINY) == 128 + signum
    assert time.monotonic() - started < 50, "it did not wait for the end of the stage"
    said = " ".join(capsys.readouterr().err.split())
    assert all(part in said for part in [f"stopped by {signum.name}", *STAGES[stage]]), said
    assert not (tmp_path / "run/metrics.json").exists()


def test_a_training_goes_on_from_its_last_checkpoint(fitted, tmp_path, monkeypatch, capsys):
    """SIGTERM within the second step: the state after the first is saved, and the resumed run says so."""
    from rotarymae.training.loop import _Loop

    given = [fitted / "stars.csv", "--out", tmp_path / "run", *STARS, *TINY, "--checkpoint-minutes", "0"]
    inner, calls = _Loop._step, []

    def step(loop, *arguments):
        calls.append(loop)
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return inner(loop, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(_Loop, "_step", step)
        assert command("fit", *given) == 143
    assert "stopped by SIGTERM. The state of the training is saved" in " ".join(capsys.readouterr().err.split())
    halves = [".predictions.parquet.0123abcd.part.parquet", "training/.identity.json.0123abcd.part.json"]
    for half in halves:  # as SIGKILL leaves them
        (tmp_path / "run" / half).touch()
    assert command("fit", *given, "--resume") == 0
    assert not any((tmp_path / "run" / half).exists() for half in halves)
    assert "training goes on after step 1" in " ".join(capsys.readouterr().err.split())
    assert (tmp_path / "run/report.html").exists()


def test_what_is_saved_is_said_of_a_cross_validation_too(tmp_path):
    run = tmp_path / "run"
    assert how_to_resume(run) == "Nothing was saved."
    (run / "training").mkdir(parents=True)
    assert "No state was saved" in how_to_resume(run)
    stage = run / "folds" / "2" / "training" / "pretrain"
    stage.mkdir(parents=True)
    (stage / "checkpoint.safetensors").touch()
    assert "--resume goes on from there" in how_to_resume(run)


def test_another_run_is_refused_before_there_is_a_checkpoint(fitted, tmp_path, monkeypatch, capsys):
    given = [fitted / "stars.csv", "--out", tmp_path / "run", *STARS, *TINY]
    with monkeypatch.context() as patch:
        patch.setattr("rotarymae.train.Pretraining", lambda *_, **__: os.kill(os.getpid(), 2))
        assert command("fit", *given) == 130
    assert command("fit", *given, "--resume", "--finetune-lr", "0.5", "--holdout", "0.5") == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "finetune_lr was None and is 0.5 now; holdout was 0.25 and is 0.5 now" in said
    labels = ["--labels", fitted / "kinds.csv", "--label", "kind"]
    assert command("fit", *given, "--resume", *labels) == 2
    assert "the labels changed" in " ".join(capsys.readouterr().err.split())
    assert command("fit", *given, "--resume") == 0
    assert "no checkpoint to resume; training begins at step 1" in " ".join(capsys.readouterr().err.split())


def test_blows_at_random_moments():
    """The long version is scripts/interruptions.py, 40 of them."""
    script = Path(__file__).resolve().parents[2] / "scripts" / "interruptions.py"
    done = subprocess.run([sys.executable, script, "--count", "2"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 blows (1 SIGKILL, 1 SIGTERM" in done.stdout and "every run ended bit-identical" in done.stdout
