"""Checkpoints: whole or absent, enough to go on from, and nothing outside the folder is touched."""

import json
import math
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from _runs import KINDS, digest, examples, log, objective, same, settings, weights
from conftest import refuses
from rotarymae.errors import ModelDirectoryError
from rotarymae.pipeline import Pipeline
from rotarymae.system import sha256_of
from rotarymae.training import loop as training
from rotarymae.training.checkpointing import CHECKPOINT, RunFolder, digest_of, read_checkpoint
from rotarymae.training.loop import fit

TESTS = Path(__file__).resolve().parents[1]


def train(folder, kind="pretrain", resume="never", count=40, seed=0, what=None, **changes):
    what = what or objective(kind)
    held = examples(kind, 11, of=1, augment=False)
    result = fit(what, examples(kind, count, seed), settings(**changes), validation=held, folder=folder, resume=resume)
    return what, result


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run of 20 steps that saved every third."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    what, result = train(folder, checkpoint_steps=3, keep_best=True)
    return folder, digest(what.model), result


@pytest.fixture
def run(finished, tmp_path):
    """A copy of it to do harm to."""
    shutil.copytree(finished[0], tmp_path / "run")
    return tmp_path / "run"


# ── what is kept ────────────────────────────────────────────────────────────────────────────────────────────────────


def parts(path):
    """The names of the tensors of a checkpoint, by what they begin with."""
    return {name.partition(".")[0] for name in load_file(path)}


def manifest_of(path):
    return read_checkpoint(path)[0]


def test_the_last_is_kept_with_the_best_weights(finished, tmp_path):
    folder, _, result = finished
    assert sorted(path.name for path in folder.iterdir() if path.name != ".lock") == [CHECKPOINT, "log.jsonl"]
    assert parts(folder / CHECKPOINT) == {"model", "optimizer", "best"}
    assert result.best == min(line["validation"] for line in log(folder) if "validation" in line)
    train(tmp_path / "run", checkpoint_steps=3)
    assert parts(tmp_path / "run" / CHECKPOINT) == {"model", "optimizer"}, "without keep_best"


def test_the_header_says_what_a_checkpoint_is(finished):
    manifest = manifest_of(finished[0] / CHECKPOINT)
    assert (manifest["state"]["step"], manifest["state"]["epoch"], manifest["state"]["batch_index"]) == (20, 5, 0)
    assert manifest["versions"].keys() == {"rotarymae", "torch", "numpy", "python"}


# ── going on ────────────────────────────────────────────────────────────────────────────────────────────────────────


def stop_at(monkeypatch, step):
    """Breaks off when this step begins, with what has been saved until then."""
    inner = training._Loop._step

    class Broken(Exception):
        pass

    def outer(self, *arguments):
        if self.state.step == step:
            raise Broken
        return inner(self, *arguments)

    monkeypatch.setattr(training._Loop, "_step", outer)
    return Broken


WARM = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
import pandas, torch._dynamo, rotarymae.tables.read  # which the first training would import, for longer than it takes
from _runs import *
from rotarymae.training import checkpointing
from rotarymae.training import loop as training
from rotarymae.training.loop import fit

while line := sys.stdin.readline():
    if os.fork() == 0:
        code, *given = json.loads(line)
        exec(code)
        sys.stdout.flush()
        os._exit(0)
    print("ended", os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""


class Warm:
    """A process that has imported all that a training needs, and forks one that does the work it is given."""

    def __init__(self):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen([sys.executable, "-c", WARM, TESTS], **pipes)

    def write(self, line):
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def end(self):
        """The exit code of the work, or minus the signal that ended it, and what it said."""
        said = []
        while not (line := self.process.stdout.readline()).startswith("ended "):
            assert line, "the process that forks is gone"
            said.append(line)
        return int(line.split()[1]), "".join(said)

    def run(self, code, *given):
        self.write(json.dumps([code, *map(str, given)]))
        return self.end()


@pytest.fixture(scope="module")
def warm():
    process = Warm()
    yield process
    process.process.communicate(timeout=60)


NEXT = """
kind, step, folder = given
inner = training._Loop._step

def outer(loop, *arguments):
    if loop.state.step == int(step) + 1:  # the next step is done and saved
        os._exit(0)
    return inner(loop, *arguments)

training._Loop._step = outer
many = {"epochs": 2, "checkpoint_steps": 1, "keep_best": True}
what = objective(kind, seed=99)  # other weights, which the checkpoint replaces
held = examples(kind, 11, of=1, augment=False)
fit(what, examples(kind), settings(**many), validation=held, folder=folder, resume="auto")
"""


def test_a_checkpoint_at_every_step_goes_on_with_the_same_bytes(warm, tmp_path):
    """Dropout, stochastic depth and augmentation are on; a process that has trained nothing goes on from each."""
    many = {"epochs": 2, "checkpoint_steps": 1, "keep_best": True}
    for kind in KINDS[:2]:
        with every_checkpoint() as saved:
            train(tmp_path / kind, kind, **many)
        assert sorted(saved) == list(range(1, 9))
        for step in range(1, 8):
            copy = tmp_path / f"{kind}-{step}"
            copy.mkdir()
            (copy / CHECKPOINT).write_bytes(saved[step])
            assert warm.run(NEXT, kind, step, copy)[0] == 0
            assert (copy / CHECKPOINT).read_bytes() == saved[step + 1], copy


@contextmanager
def every_checkpoint():
    """Yield the bytes of every checkpoint that is written within, by its step; of two of one step the last."""
    inner, saved = RunFolder.save, {}

    def save(folder, *arguments):
        inner(folder, *arguments)
        saved[arguments[2].step] = folder.checkpoint.read_bytes()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunFolder, "save", save)
        yield saved


@pytest.mark.parametrize("at", [1, 4, 16])
def test_broken_off_and_gone_on_with_is_the_same_run(finished, at, tmp_path, monkeypatch):
    folder, bits, result = finished
    with monkeypatch.context() as patch:
        broken = stop_at(patch, at)
        with pytest.raises(broken):
            train(tmp_path / "run", checkpoint_steps=3, keep_best=True)
    what, resumed = train(tmp_path / "run", resume="auto", checkpoint_steps=3, keep_best=True)
    assert digest(what.model) == bits
    assert (tmp_path / "run" / "log.jsonl").read_bytes() == (folder / "log.jsonl").read_bytes()
    assert resumed.history == result.history == log(folder)
    assert (resumed.steps, resumed.tokens, resumed.best) == (result.steps, result.tokens, result.best)


def test_broken_off_in_an_epoch_that_is_cut_short_it_goes_on_in_it(tmp_path, monkeypatch):
    how = {"epoch_steps": 3, "checkpoint_steps": 4}
    whole, _ = train(tmp_path / "whole", **how)
    with monkeypatch.context() as patch:
        broken = stop_at(patch, 10)
        with pytest.raises(broken):
            train(tmp_path / "run", **how)
    again, result = train(tmp_path / "run", resume="auto", **how)
    assert (result.resumed_step, result.steps) == (8, 15) and digest(again.model) == digest(whole.model)


def test_a_finished_run_gone_on_with_changes_nothing(run, finished):
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    what, result = train(run, resume="auto", checkpoint_steps=3, keep_best=True, what=objective(seed=9))
    assert digest(what.model) == finished[1]
    assert result.history == finished[2].history
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_what_was_killed_while_it_opened_leaves_nothing_behind(run):
    mine, other = run / ".log.jsonl.ebc5c971.part.jsonl", run / ".log.jsonl.mine"
    for path in (mine, other):
        path.write_text("half")
    train(run, resume="auto", checkpoint_steps=3, keep_best=True)
    assert not mine.exists() and other.exists()


def test_never_refuses_a_folder_with_a_run(run):
    with refuses(run, "holds a run already", "--resume"):
        train(run)
    with refuses("resume='always'", "'never', 'auto'"):
        train(run, resume="always")


@pytest.mark.parametrize("changed", ["log_every", "checkpoint_steps"])
def test_what_changes_no_weight_may_change(finished, run, changed):
    what, _ = train(run, resume="auto", keep_best=True, **{changed: 3})
    assert digest(what.model) == finished[1]


@pytest.mark.parametrize("harm", ["truncated", "changed", "empty"])
def test_a_damaged_checkpoint_is_refused_and_named(run, harm):
    content = bytearray((run / CHECKPOINT).read_bytes())
    content[len(content) // 2] ^= 0x01
    (run / CHECKPOINT).write_bytes({"truncated": content[:-9], "changed": content, "empty": b""}[harm])
    with refuses(run / CHECKPOINT, "Remove", error=ModelDirectoryError):
        train(run, resume="auto", checkpoint_steps=3, keep_best=True)


def test_every_bit_of_a_checkpoint_counts(run):
    content = (run / CHECKPOINT).read_bytes()
    manifest, tensors = read_checkpoint(run / CHECKPOINT)
    for place in [*range(0, 4000, 37), *range(4000, len(content), len(content) // 50)]:
        changed = bytearray(content)
        changed[place] ^= 1 << (place % 8)
        (run / CHECKPOINT).write_bytes(changed)
        try:
            found = read_checkpoint(run / CHECKPOINT)
        except ModelDirectoryError:
            continue
        assert found[0] == manifest and same(found[1], tensors), "only space between its words may change"


def test_where_a_run_begins_is_told(run, tmp_path):
    said = []
    for folder, resume in ((run, "auto"), (tmp_path / "new", "auto"), (tmp_path / "other", "never")):
        held = examples("pretrain", 11, of=1, augment=False)
        how = settings(checkpoint_steps=3, keep_best=True)
        fit(objective(), examples(), how, validation=held, folder=folder, resume=resume, on_resume=said.append)
    assert said == [
        f"{run}: training goes on after step 20.",
        f"{tmp_path / 'new'} has no checkpoint to resume; training begins at step 1.",
    ]


def header_of(manifest):
    return {"manifest": json.dumps(manifest | {"sha256": sha256_of(manifest)})}


def harmed(path, change):
    """Change the manifest and the tensors of a checkpoint, with checksums to match."""
    manifest, tensors = read_checkpoint(path)
    change(manifest, tensors)
    manifest["tensors"] = digest_of(tensors)
    save_file(tensors, path, header_of(manifest))


def test_foreign_weights_are_refused(run):
    def change(manifest, tensors):
        tensors["model.mask_token"] = tensors["model.mask_token"][:-1].clone()

    harmed(run / CHECKPOINT, change)
    with refuses("model", "mask_token", error=ModelDirectoryError):
        train(run, resume="auto", keep_best=True)


OPTIMIZER_HARMS = {
    "short": lambda tensors, name: tensors.update({name: torch.zeros(())}),
    "lacking": lambda tensors, name: tensors.pop(name),
    "whole numbers": lambda tensors, name: tensors.update({name: tensors[name].int()}),
    "not finite": lambda tensors, name: tensors.update({name: tensors[name] * torch.nan}),
    "of no weight": lambda tensors, name: tensors.update({"optimizer.other/exp_avg": tensors[name].clone()}),
    "of no part": lambda tensors, name: tensors.update({f"other.{name}": tensors[name].clone()}),
    "surplus": lambda tensors, name: tensors.update({f"{name}_more": tensors[name].clone()}),
}


@pytest.mark.parametrize("harm", OPTIMIZER_HARMS)
def test_what_no_step_could_have_left_is_refused(run, harm):
    """A fused step writes behind the end of a tensor that is too small."""

    def change(manifest, tensors):
        OPTIMIZER_HARMS[harm](tensors, next(name for name in tensors if name.endswith("/exp_avg")))

    harmed(run / CHECKPOINT, change)
    with refuses(run / CHECKPOINT, "model", error=ModelDirectoryError):
        train(run, resume="auto", keep_best=True)


def state(**fields):
    return lambda manifest: manifest["state"].update(fields)


MADE_UP = {
    "text for a number": state(epoch="5"),
    "a step below 0": state(step=-1),
    "a step that is no whole number": state(step=1e308),
    "a loss that is not finite": state(best=math.inf),
    "a number for a flag": state(stopped=1),
    "a field of Python's": state(__class__="x"),
    "a field less": lambda manifest: manifest["state"].pop("tokens"),
    "a state that is a list": lambda manifest: manifest.update(state=[1]),
    "no log": lambda manifest: manifest.pop("history"),
    "a log that is text": lambda manifest: manifest.update(history="1"),
    "a log without steps": lambda manifest: manifest.update(history=[{"epoch": 1.0}]),
    "a loss that is text": lambda manifest: manifest.update(history=[{"step": 1, "epoch": 1.0, "loss": "1"}]),
    "another format": lambda manifest: manifest.update(format=1),
}


@pytest.mark.parametrize("harm", MADE_UP)
def test_a_made_up_manifest_with_right_checksums_is_refused(run, harm):
    manifest, tensors = read_checkpoint(run / CHECKPOINT)
    MADE_UP[harm](manifest)
    save_file(tensors, run / CHECKPOINT, header_of(manifest))
    with refuses(run / CHECKPOINT, error=ModelDirectoryError):
        read_checkpoint(run / CHECKPOINT)


@pytest.mark.parametrize("content", ["[" * 100_000, "[]", "null", '{"sha256": NaN}'])
def test_what_is_no_manifest_is_refused(run, content):
    save_file({"model.a": torch.zeros(1)}, run / CHECKPOINT, {"manifest": content})
    with refuses(run / CHECKPOINT, error=ModelDirectoryError):
        read_checkpoint(run / CHECKPOINT)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_fifo_is_no_file(run):
    (run / CHECKPOINT).unlink()
    os.mkfifo(run / CHECKPOINT)
    with refuses(run / CHECKPOINT, error=ModelDirectoryError):
        train(run, resume="auto", keep_best=True)


# ── the disk ────────────────────────────────────────────────────────────────────────────────────────────────────────


FULL = """
import resource

class Full(checkpointing.RunFolder):
    def save(self, model, optimizer, state, *more):
        if state.step >= 6:  # from here on no file may grow beyond what the disk has left
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(given[1]), resource.RLIM_INFINITY))
        super().save(model, optimizer, state, *more)

training.RunFolder = Full
try:
    fit(objective(), examples(), settings(checkpoint_steps=2), folder=given[0])
except OSError as error:
    print(error, flush=True)
    os._exit(7)
"""


def assert_it_goes_on_as_if_nothing_was(folder):
    what, whole = objective(), objective()
    fit(what, examples(), settings(checkpoint_steps=2), folder=folder, resume="auto")
    fit(whole, examples(), settings())
    assert same(weights(what.model), weights(whole.model))


@pytest.mark.parametrize("room", [30_000, 90_000])
def test_a_full_disk_leaves_the_earlier_checkpoint(warm, tmp_path, room):
    code, said = warm.run(FULL, tmp_path / "run", room)
    assert code == 7 and f"{CHECKPOINT} could not be written" in said and "File too large" in said
    assert "before it stands" in said
    assert read_checkpoint(tmp_path / "run" / CHECKPOINT)[0]["state"]["step"] == 4
    assert_it_goes_on_as_if_nothing_was(tmp_path / "run")


def test_a_log_that_cannot_be_written_says_so(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.open("never")
    (tmp_path / "run" / "log.jsonl").unlink()
    (tmp_path / "run" / "log.jsonl").mkdir()
    with pytest.raises(OSError, match=r"log\.jsonl"):
        folder.log({"step": 1})


KILLED = """
import signal
inner, saves = Path.write_bytes, []

def killed(path, content):
    saves.append(path)
    inner(path, content[:1000] if len(saves) == int(given[1]) else content)
    if len(saves) == int(given[1]):
        os.kill(os.getpid(), signal.SIGKILL)

Path.write_bytes = killed
fit(objective(), examples(), settings(checkpoint_steps=2), folder=given[0], resume="auto")
"""


@pytest.mark.parametrize("write", [1, 2, 6])
def test_killed_while_weights_are_written_it_resumes(warm, tmp_path, write):
    assert warm.run(KILLED, tmp_path / "run", write)[0] == -9
    assert len(list((tmp_path / "run").glob(".checkpoint*"))) == 1
    assert_it_goes_on_as_if_nothing_was(tmp_path / "run")
    assert len(list((tmp_path / "run").glob(".checkpoint*"))) == 0


RUNNING = """
def wait(step, steps, loss):
    if step == 3:
        print("here", flush=True)
        sys.stdin.readline()

fit(objective(), examples(), settings(checkpoint_steps=2), folder=given[0], on_step=wait)
"""


def test_a_second_process_is_refused_and_told_who_runs(warm, tmp_path):
    warm.write(json.dumps([RUNNING, str(tmp_path / "run")]))
    assert warm.process.stdout.readline() == "here\n"
    for resume in ("auto", "never"):
        with refuses(f"{tmp_path / 'run'} is in use by another process", "choose another folder"):
            fit(objective(), examples(), settings(), folder=tmp_path / "run", resume=resume)
    warm.write("go on")
    assert warm.end()[0] == 0
    # The first was not disturbed, and has given the lock back.
    assert_it_goes_on_as_if_nothing_was(tmp_path / "run")


# ── other people's files ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["README.md", "config.json", "model.safetensors", "notes.txt"])
@pytest.mark.parametrize("as_folder", [False, True])
@pytest.mark.parametrize("into_a_model", [False, True])
def test_saving_a_model_keeps_a_users_files(tmp_path, name, as_folder, into_a_model):
    model, folder = objective().model, tmp_path / "model"
    if into_a_model:
        Pipeline(None, model).save(folder)
        (folder / name).unlink(missing_ok=True)
    mine = folder / name / "mine" if as_folder else folder / name
    mine.parent.mkdir(parents=True, exist_ok=True)
    mine.write_text("the user's")
    if into_a_model and not as_folder and name == "model.safetensors":
        return  # a model whose file was overwritten: the name alone says whose it is
    with refuses(folder, "choose a new folder"):
        Pipeline(None, model).save(folder)
    assert mine.read_text() == "the user's"
    assert not list(tmp_path.glob(".*")), "nothing is left beside"
