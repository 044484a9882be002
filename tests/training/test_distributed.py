"""Two and three processes (gloo, on the CPU) do what one does."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from _runs import examples, log, objective, settings
from rotarymae.training.checkpointing import CHECKPOINT
from rotarymae.training.loop import fit

PROCESS = Path(__file__).resolve().parents[1] / "_process.py"
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}


def command(processes, out, job, *more):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    return [*(launcher if processes > 1 else [sys.executable]), str(PROCESS), str(out), job, *more]


def launch(processes, out, job, *more):
    """What each process wrote."""
    out.mkdir(exist_ok=True)
    done = subprocess.run(
        command(processes, out, job, *more), env=ENVIRONMENT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads((out / f"{job}-{rank}.json").read_text()) for rank in range(processes)]


def newest(folder):
    path = folder / CHECKPOINT
    return path if path.exists() else None


def losses(found):
    return np.array([line["loss"] for line in found["history"] if "loss" in line])


def validations(found):
    return np.array([line["validation"] for line in found["history"] if "validation" in line])


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    out = tmp_path_factory.mktemp("alone")
    return out, {job: launch(1, out, job)[0] for job in ("train", "answer")}


PROCESSES = [2, pytest.param(3, marks=pytest.mark.slow)]


@pytest.mark.parametrize("processes", PROCESSES)
def test_training_is_the_same(alone, processes, tmp_path):
    every = launch(processes, tmp_path, "train")
    one = alone[1]["train"]
    for found in every:
        assert len(losses(found)) == len(losses(one)) == 24
        assert np.abs(losses(found) - losses(one))[:20].max() < 1e-5
        assert np.abs(validations(found) - validations(one)).max() < 1e-5
        assert found["tokens"] == one["tokens"]
        assert found["history"] == every[0]["history"], "all processes tell the same"
    # Each series once an epoch, on one process or another, and the same batches together.
    for epoch in range(3):
        parts = [index for found in every for at, index in found["order"] if at == epoch]
        assert sorted(i for part in parts for i in part) == list(range(101))
    whole = {(epoch, frozenset(index)) for epoch, index in one["order"] if epoch is not None}
    for found in every:
        for epoch, index in found["order"]:
            if epoch is not None:
                assert any(epoch == at and set(index) <= batch for at, batch in whole)


@pytest.mark.parametrize("processes", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_a_run_of_one_process_goes_on_with_several(alone, processes, tmp_path):
    (tmp_path / "run").mkdir()
    shutil.copy(alone[0] / "after-10.safetensors", tmp_path / "run" / CHECKPOINT)
    lines = (alone[0] / "run" / "log.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "run" / "log.jsonl").write_text("".join(lines))
    found, one = launch(processes, tmp_path, "train", "auto"), alone[1]["train"]
    assert np.abs(losses(found[0]) - losses(one)).max() < 1e-5
    assert len(losses(found[0])) == 24 and (losses(found[0])[:10] == losses(one)[:10]).all()
    # The place is the same: of epoch 1 the batches after its second, of epoch 2 all.
    counts = [sum(len(index) for part in found for at, index in part["order"] if at == epoch) for epoch in range(3)]
    assert counts == [0, 101 - 2 * 13, 101] or (counts[0] == 0 and counts[2] == 101)


@pytest.mark.parametrize("processes", [pytest.param(2, marks=pytest.mark.slow), 3])
def test_answers_are_the_same(alone, processes, tmp_path):
    """101 series over three processes give 101 predictions in the order of the input, on each of them."""
    one = alone[1]["answer"]
    for found in launch(processes, tmp_path, "answer"):
        assert abs(found["loss"] - one["loss"]) < 1e-6
        assert abs(found["accuracy"] - one["accuracy"]) < 1e-6
        assert np.shape(found["p"]) == (101, 3) and np.abs(np.array(found["p"]) - one["p"]).max() < 1e-6
        assert np.shape(found["v"]) == (101, 24) and np.abs(np.array(found["v"]) - one["v"]).max() < 1e-5
        assert found["few"] == [0, 1], "a process without any series takes part"


def test_bad_series_are_named_whoever_saw_them(tmp_path):
    every = launch(2, tmp_path, "poisoned")
    assert every[0] == every[1]
    skipped = [line for line in every[0]["history"] if "skipped" in line]
    assert len(skipped) == 2
    assert all("s017" in line["series"] and len(line["series"]) == 10 for line in skipped)


@pytest.mark.slow
def test_a_refusal_is_everybodys(tmp_path):
    said = {found["said"] for found in launch(2, tmp_path, "refused")}
    assert len(said) == 1 and "holds a run already" in said.pop()


@pytest.mark.parametrize("victim", [1, pytest.param(0, marks=pytest.mark.slow)])
def test_one_killed_process_ends_the_job(victim, tmp_path):
    with subprocess.Popen(
        command(2, tmp_path, "long"), env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as job:
        try:
            waited = time.monotonic() + 120
            while newest(tmp_path / "run") is None and time.monotonic() < waited:
                time.sleep(0.1)
            os.kill(int((tmp_path / f"pid-{victim}").read_text()), signal.SIGKILL)
            killed = time.monotonic()
            job.communicate(timeout=60)
        finally:
            job.kill()
    assert job.returncode != 0
    print(f"the job ended {time.monotonic() - killed:.1f} s after process {victim} was killed")
    left = newest(tmp_path / "run")
    assert left is not None
    found = launch(2, tmp_path, "long", "auto")[0]
    assert [line["step"] for line in found["history"] if "loss" in line] == list(range(1, 41))
    what = objective(dropout=0.0, drop_path=0.0)
    alone = fit(what, examples(), settings(epochs=10))
    assert np.abs(losses(found) - [line["loss"] for line in alone.history]).max() < 1e-5
    assert log(tmp_path / "run") == found["history"]


@pytest.mark.slow
def test_sigterm_to_the_job_saves_and_ends(tmp_path):
    with subprocess.Popen(
        command(2, tmp_path, "long"), env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as job:
        waited = time.monotonic() + 120
        while newest(tmp_path / "run") is None and time.monotonic() < waited:
            time.sleep(0.1)
        job.send_signal(signal.SIGTERM)
        output = job.communicate(timeout=60)[0].decode()
    assert job.returncode != 0
    assert "stopped by SIGTERM after step" in output
    assert newest(tmp_path / "run") is not None


@pytest.mark.slow
def test_accelerate_launch(alone, tmp_path):
    """Its own idea of the precision changes nothing: that is TrainConfig's."""
    launcher = "accelerate.commands.launch --multi_gpu --num_processes 2 --num_machines 1 --mixed_precision bf16"
    launcher += " --dynamo_backend no --main_process_port 0 --rdzv_backend c10d"
    started = [sys.executable, "-m", *launcher.split(), str(PROCESS), str(tmp_path), "train"]
    done = subprocess.run(started, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    for rank in range(2):
        found = json.loads((tmp_path / f"train-{rank}.json").read_text())
        assert np.abs(losses(found) - losses(alone[1]["train"]))[:20].max() < 1e-5
