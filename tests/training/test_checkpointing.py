"""Checkpoints: whole or absent, enough to go on from, and nobody else's files are touched."""

import json
import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given
from hypothesis import settings as tries
from hypothesis import strategies as st

from _runs import KINDS, digest, examples, log, objective, same, settings, weights
from conftest import refuses
from rotarymae.checkpoints import load, save
from rotarymae.errors import InputError, ModelDirectoryError
from rotarymae.training import checkpointing as runs
from rotarymae.training import loop as training
from rotarymae.training.checkpointing import RunFolder, RunState, is_whole, newest, read_manifest
from rotarymae.training.loop import fit

TESTS = Path(__file__).resolve().parents[1]
ROOT = TESTS.parent


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


def test_the_last_and_the_best_are_kept(finished):
    kept = sorted(path.name for path in (finished[0] / "checkpoints").iterdir())
    best = min((line for line in log(finished[0]) if "validation" in line), key=lambda line: line["validation"])
    steps = [name for name in kept if name.startswith("step")]
    assert steps == ["step-00000018", "step-00000020"]
    assert f"best-{best['step']:08d}" in kept
    for name in kept:
        assert is_whole(finished[0] / "checkpoints" / name)


def test_keep_is_how_many(tmp_path):
    train(tmp_path / "run", checkpoint_steps=2, keep=4)
    steps = sorted(path.name for path in (tmp_path / "run" / "checkpoints").glob("step-*"))
    assert steps == [f"step-{step:08d}" for step in (14, 16, 18)] + ["step-00000020-2"]


def test_no_best_weights_without_keep_best(tmp_path):
    train(tmp_path / "run", checkpoint_steps=3)
    assert not list((tmp_path / "run" / "checkpoints").glob("best-*"))


def test_the_manifest_says_what_a_checkpoint_is(finished):
    path = finished[0] / "checkpoints" / "step-00000018"
    manifest = read_manifest(path)
    assert (manifest["state"]["step"], manifest["state"]["epoch"], manifest["state"]["place"]) == (18, 4, 2)
    assert manifest["versions"].keys() == {"rotarymae", "torch", "python"}
    assert manifest["identity"]["data"]["series"] == examples().dataset.fingerprint()
    assert manifest["identity"]["model"]["embed_dim"] == 24
    assert manifest["identity"]["training"]["base_lr"] == 1e-3
    assert manifest["files"].keys() == {"model.safetensors", "optimizer.safetensors"}
    assert {len(digest) for digest in manifest["files"].values()} == {64}


def test_nothing_in_a_checkpoint_is_a_pickle(finished):
    kinds = {path.suffix for path in finished[0].rglob("*") if path.is_file()}
    assert kinds == {".safetensors", ".json", ".jsonl"}


def test_by_the_clock(tmp_path, monkeypatch):
    now = iter(range(0, 10**6, 7))  # each look at the clock comes 7 seconds after the last
    monkeypatch.setattr(training.time, "monotonic", lambda: float(next(now)))
    written = []
    monkeypatch.setattr(RunFolder, "save", lambda self, *rest: written.append(rest[3].step))
    train(tmp_path / "run", checkpoint_seconds=20.0)
    # A look a step and one for every save: the third step after a save is more than 20 seconds late.
    assert len(written) > 5 and all(after - before in (2, 3) for before, after in pairwise(written[:-1]))


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


NEXT = """
import os, sys
sys.path.insert(0, sys.argv[1])
from _runs import *
from rotarymae.training import loop as training

inner = training._Loop._step

for given in sys.argv[2:]:
    kind, step, folder = given.split(":")

    def outer(loop, *arguments):
        if loop.state.step == int(step) + 1:  # the next step is done and saved
            os._exit(0)
        return inner(loop, *arguments)

    if os.fork() == 0:  # a process that has trained nothing before
        training._Loop._step = outer
        many = {"epochs": 2, "checkpoint_steps": 1, "keep": 100, "keep_best": True, "patience": 2}
        what = objective(kind, seed=99)  # other weights, which the checkpoint replaces
        held = examples(kind, 11, of=1, augment=False)
        training.fit(what, examples(kind), settings(**many), validation=held, folder=folder, resume="auto")
        os._exit(0)
    assert os.wait()[1] == 0
"""


def test_a_checkpoint_at_every_step_goes_on_with_the_same_bytes(tmp_path):
    """Dropout, stochastic depth and augmentation are on; a fresh process takes one step from each checkpoint."""
    many = {"epochs": 2, "checkpoint_steps": 1, "keep": 100, "keep_best": True, "patience": 2}
    todo, pairs = [], []
    for kind in KINDS[:2]:
        train(tmp_path / kind, kind, **many)
        saved = runs._checkpoints(tmp_path / kind / "checkpoints", "step")
        assert [read_manifest(path)["state"]["step"] for path in saved] == list(range(1, 9))
        for here, there in pairwise(saved):
            step = read_manifest(here)["state"]["step"]
            copy = tmp_path / f"{kind}-{step}"
            (copy / "checkpoints").mkdir(parents=True)
            names = {here.name, read_manifest(here)["state"]["best_kept"]} - {""}
            for name in names:
                shutil.copytree(here.with_name(name), copy / "checkpoints" / name)
            todo.append(f"{kind}:{step}:{copy}")
            pairs.append((there, copy / "checkpoints" / there.name))
    done = subprocess.run([sys.executable, "-c", NEXT, TESTS, *todo], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert len(pairs) == 14
    for there, after in pairs:
        for file in runs.FILES:
            assert (after / file).read_bytes() == (there / file).read_bytes(), f"{file} of {after}"
        assert read_manifest(after)["state"] == read_manifest(there)["state"]


@pytest.mark.parametrize("at", [1, 3, 4, 9, 16, 19])
@pytest.mark.parametrize("workers", [0, 2])
def test_broken_off_and_gone_on_with_is_the_same_run(finished, at, workers, tmp_path, monkeypatch):
    folder, bits, result = finished
    with monkeypatch.context() as patch:
        broken = stop_at(patch, at)
        with pytest.raises(broken):
            train(tmp_path / "run", checkpoint_steps=3, keep_best=True, workers=workers)
    what, resumed = train(tmp_path / "run", resume="auto", checkpoint_steps=3, keep_best=True, workers=2 - workers)
    assert digest(what.model) == bits
    assert (tmp_path / "run" / "log.jsonl").read_bytes() == (folder / "log.jsonl").read_bytes()
    assert resumed.history == result.history == log(folder)
    assert (resumed.steps, resumed.tokens, resumed.best) == (result.steps, result.tokens, result.best)


def test_interruptions_at_random_moments():
    """The long version is scripts/interruptions.py, 40 of them."""
    command = [sys.executable, ROOT / "scripts" / "interruptions.py", "--count", "6", "--seed", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 of 6 interrupted runs ended bit-identical (3 SIGKILL, 3 SIGTERM; 2 during step" in done.stdout


def test_a_finished_run_gone_on_with_changes_nothing(run, finished):
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    what, result = train(run, resume="auto", checkpoint_steps=3, keep_best=True, what=objective(seed=9))
    assert digest(what.model) == finished[1]
    assert result.history == finished[2].history
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_never_refuses_a_folder_with_a_run(run):
    with refuses(run, "holds a run already", "--resume"):
        train(run)
    with refuses("resume 'always'", "'never', 'auto' or 'force'"):
        train(run, resume="always")


CHANGES = {
    "count": (41, "data.series was"),
    "seed": (1, "data.seed was 0 and is now 1"),
    "base_lr": (2e-3, "training.base_lr was 0.001 and is now 0.002"),
    "epochs": (6, "training.epochs was 5 and is now 6"),
    "batch_size": (9, "training.batch_size was 10 and is now 9"),
}


@pytest.mark.parametrize("field", CHANGES)
def test_another_run_is_refused_and_the_difference_named(run, field):
    value, said = CHANGES[field]
    before = (run / "log.jsonl").read_bytes()
    with refuses("step-00000020 is of another run: ", said, "or force it"):
        train(run, resume="auto", **{"keep_best": True, field: value})
    assert (run / "log.jsonl").read_bytes() == before


def test_other_targets_models_losses_and_masks_are_another_run(tmp_path):
    base = tmp_path / "run"
    fit(objective("classify"), examples("classify"), settings(epochs=1), folder=base)

    def differs(said, what=None, data=None):
        with refuses("is of another run", said):
            fit(
                what or objective("classify"),
                data or examples("classify"),
                settings(epochs=1),
                folder=base,
                resume="auto",
            )

    relabelled = examples("classify")
    relabelled.targets = relabelled.targets.flip(0)
    differs("data.targets was", data=relabelled)
    louder = examples("classify")
    louder.noise = 0.2
    differs("data.noise was 0.1 and is now 0.2", data=louder)
    smoother = objective("classify")
    smoother.label_smoothing = 0.2
    differs("label_smoothing was 0.1 and is now 0.2", smoother)
    weighted = objective("classify")
    weighted.class_weights = torch.ones(3)
    differs("class_weights was None and is now [1.0, 1.0, 1.0]", weighted)
    differs("head.dropout was 0.1 and is now 0.3", objective("classify", dropout=0.3))
    differs("model.drop_path was 0.2 and is now 0.0", objective("classify", drop_path=0.0))
    differs("head.classes was 3 and is now None", objective("regress"))


def test_force_goes_on_with_another_configuration(run):
    _, result = train(run, resume="force", epochs=6, checkpoint_steps=3, keep_best=True)
    assert result.steps == 24 and [line["step"] for line in log(run) if "loss" in line] == list(range(1, 25))
    names = {path.name for path in (run / "checkpoints").glob("step-*")}
    assert names == {f"step-{step:08d}" for step in (18, 20, 21)} | {"step-00000024-2"}, (
        "the former configuration's stay"
    )


@pytest.mark.parametrize("changed", ["log_every", "checkpoint_steps", "keep", "workers", "max_skipped"])
def test_what_changes_no_weight_may_change(finished, run, changed):
    what, _ = train(run, resume="auto", keep_best=True, **{changed: 3})
    assert digest(what.model) == finished[1]


@pytest.mark.parametrize("file", ["model.safetensors", "optimizer.safetensors", "manifest.json"])
@pytest.mark.parametrize("harm", ["truncated", "changed", "gone"])
def test_a_damaged_checkpoint_is_passed_over(run, finished, file, harm):
    path = run / "checkpoints" / "step-00000020" / file
    if harm == "gone":
        path.unlink()
    else:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0xFF
        path.write_bytes(content[:-9] if harm == "truncated" else content)
    assert newest(run / "checkpoints").name == "step-00000018"
    what, _ = train(run, resume="auto", checkpoint_steps=3, keep_best=True)
    assert digest(what.model) == finished[1]
    assert (run / "log.jsonl").read_bytes() == (finished[0] / "log.jsonl").read_bytes()


def test_lost_best_weights_are_an_error(run):
    for path in (run / "checkpoints").glob("best-*"):
        (path / "model.safetensors").unlink()
    with refuses("best validation loss, is missing or damaged", error=ModelDirectoryError):
        train(run, resume="auto", keep_best=True)


def harmed(run, change):
    """A checkpoint whose manifest or tensors are changed, with matching hashes."""
    path = run / "checkpoints" / "step-00000020"
    manifest = json.loads((path / "manifest.json").read_text())
    change(path, manifest)
    manifest["files"] = {name: runs._sha256(path / name) for name in runs.FILES}
    (path / "manifest.json").write_text(json.dumps(manifest))


def test_a_checkpoint_of_another_shape_is_refused(run):
    from safetensors.torch import load_file, save_file

    def reshape(path, manifest):
        tensors = load_file(path / "optimizer.safetensors")
        name = next(name for name in tensors if name.endswith("/exp_avg"))
        tensors[name] = torch.zeros(3, 5)
        save_file(tensors, path / "optimizer.safetensors")

    harmed(run, reshape)
    with refuses("does not fit this model", "has shape (3, 5)", error=ModelDirectoryError):
        train(run, resume="auto", keep_best=True)


@pytest.mark.parametrize(
    "state",
    [{"step": "20"}, {"step": -1}, {"epoch": 1.5}, {"best": "x"}, {"stopped": 1}, {"tokens": None}, {"surplus": 1}],
    ids=str,
)
def test_a_manifest_of_odd_types_is_no_checkpoint(run, state):
    harmed(run, lambda path, manifest: manifest["state"].update(state))
    with refuses("the state has", next(iter(state)), error=ModelDirectoryError):
        read_manifest(run / "checkpoints" / "step-00000020")
    assert newest(run / "checkpoints").name == "step-00000018"


def test_a_manifest_cannot_point_outside_its_folder(run, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    path = run / "checkpoints" / "step-00000020" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["files"]["../../../mine.txt"] = runs._sha256(tmp_path / "mine.txt")
    path.write_text(json.dumps(manifest))
    assert not is_whole(path.parent)
    train(run, resume="auto", checkpoint_steps=1, keep=1, keep_best=True)
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_a_link_or_a_pipe_in_a_checkpoint_is_not_read(run, tmp_path):
    for name in ("manifest.json", "model.safetensors"):
        for path in (run / "checkpoints" / "step-00000020", run / "checkpoints" / "step-00000018"):
            (path / name).unlink(missing_ok=True)
            os.mkfifo(path / name)
    assert newest(run / "checkpoints") is None


# ── the disk ────────────────────────────────────────────────────────────────────────────────────────────────────────


FULL = """
import resource, sys
sys.path.insert(0, sys.argv[1])
from _runs import *
from rotarymae.training import checkpointing as runs
from rotarymae.training import loop as training

class Full(runs.RunFolder):
    def save(self, model, optimizer, scaler, state, keep):
        if state.step >= 6:  # from here on no file may grow beyond what the disk has left
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
        super().save(model, optimizer, scaler, state, keep)

training.RunFolder = Full
try:
    training.fit(objective(), examples(), settings(checkpoint_steps=2), folder=sys.argv[2])
except OSError as error:
    print(error)
    sys.exit(7)
"""


@pytest.mark.parametrize("room", [30_000, 60_000])
def test_a_full_disk_leaves_the_earlier_checkpoint(tmp_path, room):
    """Room for a part of the weights, and for the weights but not the optimiser's state."""
    command = [sys.executable, "-c", FULL, TESTS, tmp_path / "run", str(room)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 7, done.stderr
    assert "step-00000006 could not be written" in done.stdout and "File too large" in done.stdout
    assert "step-00000004 before it stands" in done.stdout
    assert sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir()) == [
        "step-00000002",
        "step-00000004",
    ]
    what, whole = objective(), objective()
    fit(what, examples(), settings(checkpoint_steps=2), folder=tmp_path / "run", resume="auto")
    fit(whole, examples(), settings())
    assert same(weights(what.model), weights(whole.model))


def test_a_log_that_cannot_be_written_says_so(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.open("never", {})
    (tmp_path / "run" / "log.jsonl").unlink()
    (tmp_path / "run" / "log.jsonl").mkdir()
    with pytest.raises(OSError, match=r"log\.jsonl could not be written to"):
        folder.log({"step": 1})


def test_leftovers_of_a_killed_process_are_removed_and_only_those(run):
    manifest = read_manifest(run / "checkpoints" / "step-00000020")
    folder = RunFolder(run)
    folder._identity = manifest["identity"]
    ours = run / "checkpoints" / f".step-00000021.{folder._mark}.part"
    theirs = run / "checkpoints" / ".step-00000021.0123456789abcdef.part"
    for path in (ours, theirs):
        path.mkdir()
        (path / "model.safetensors").write_bytes(b"half")
    train(run, resume="auto", keep_best=True)
    assert not ours.exists() and (theirs / "model.safetensors").read_bytes() == b"half"


# ── other people's files ────────────────────────────────────────────────────────────────────────────────────────────


NAMES = st.one_of(
    st.sampled_from(
        [
            "checkpoints/step-00000002",
            "checkpoints/step-00000004-2",
            "checkpoints/best",
            "checkpoints/best-00000004",
            "checkpoints/manifest.json",
            "checkpoints/step-00000002/manifest.json",
            "checkpoints/step-00000002/model.safetensors",
            "checkpoints/step-00000003/notes.txt",
            "checkpoints/.step-00000004.part",
            "checkpoints/model.safetensors",
            "manifest.json",
            "rotarymae",
            ".log.jsonl.part",
            "log.jsonl.bak",
            "log.jsonl",
            "checkpoints",
            "best",
        ]
    ),
    st.text(st.characters(blacklist_characters="/\0", blacklist_categories=["Cs"]), min_size=1, max_size=12)
    .filter(lambda name: name not in (".", "..") and len(name.encode()) < 100)
    .map(lambda name: f"checkpoints/{name}"),
)


@tries(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=NAMES, as_folder=st.booleans(), when=st.sampled_from(["before", "between"]), copied=st.booleans())
def test_a_users_file_survives_whatever_its_name(tmp_path_factory, name, as_folder, when, copied):
    folder = tmp_path_factory.mktemp("theirs") / "run"
    many = {"epochs": 1, "checkpoint_steps": 1, "keep": 1, "keep_best": True}
    if when == "between":
        train(folder, count=30, **many)
    if (folder / name).exists() and name in ("log.jsonl", "checkpoints"):
        return  # the run's own
    mine = folder / name
    try:
        mine.parent.mkdir(parents=True, exist_ok=True)
        if copied and when == "between":  # a checkpoint of ours under the user's name
            shutil.copytree(newest(folder / "checkpoints"), mine)
        elif as_folder:
            mine.mkdir()
            (mine / "model.safetensors").write_text("the user's")
            (mine / "manifest.json").write_text("{}")
        else:
            mine.write_text("the user's")
    except FileExistsError:
        return  # there already
    files = [path for path in (mine, *mine.rglob("*")) if path.is_file()]
    before = {path: path.read_bytes() for path in files}
    for resume, epochs in (("never", 1), ("auto", 1), ("force", 2), ("auto", 2)):
        try:
            train(folder, resume=resume, count=30, **{**many, "epochs": epochs})
        except InputError as error:
            assert "another folder" in str(error)  # refused, which keeps it too
    assert mine.exists()
    assert {path: path.read_bytes() for path in files} == before


def test_a_note_in_a_checkpoint_survives_its_removal(run):
    note = run / "checkpoints" / "step-00000018" / "notes.txt"
    note.write_text("the one that worked")
    weights_of_18 = note.with_name("model.safetensors")
    other = run / "checkpoints" / "step-00000020" / "optimizer.safetensors"
    other.write_bytes(b"the user's own")  # no longer what the manifest promised: not ours to remove
    train(run, resume="force", epochs=6, checkpoint_steps=1, keep=1, keep_best=True)
    train(run, resume="auto", epochs=6, checkpoint_steps=1, keep=1, keep_best=True)
    assert note.read_text() == "the one that worked"
    assert other.read_bytes() == b"the user's own"
    assert weights_of_18.exists(), "of the former configuration"


def test_pruning_leaves_what_was_put_into_a_checkpoint(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        broken = stop_at(patch, 4)
        with pytest.raises(broken):
            train(folder, checkpoint_steps=1, keep=2)
    (folder / "checkpoints" / "step-00000003" / "notes.txt").write_text("mine")
    changed = folder / "checkpoints" / "step-00000003" / "optimizer.safetensors"
    changed.write_bytes(b"mine, too")
    train(folder, resume="auto", checkpoint_steps=1, keep=2)
    left = {path.name for path in (folder / "checkpoints" / "step-00000003").iterdir()}
    assert left == {"notes.txt", "optimizer.safetensors"}


@pytest.mark.parametrize("name", ["README.md", "config.json", "model.safetensors", "preprocessor.json", "notes.txt"])
@pytest.mark.parametrize("as_folder", [False, True])
@pytest.mark.parametrize("into_a_model", [False, True])
def test_saving_a_model_keeps_a_users_files(tmp_path, name, as_folder, into_a_model):
    model, folder = objective().model, tmp_path / "model"
    if into_a_model:
        save(model, folder)
        (folder / name).unlink(missing_ok=True)
    mine = folder / name / "mine" if as_folder else folder / name
    mine.parent.mkdir(parents=True, exist_ok=True)
    mine.write_text("the user's")
    if into_a_model and not as_folder and name in ("model.safetensors", "preprocessor.json"):
        return  # a model whose file was overwritten: the name alone says whose it is
    with refuses(folder, "choose a new folder"):
        save(model, folder)
    assert mine.read_text() == "the user's"
    assert not list(tmp_path.glob(".*")), "nothing is left beside"


def test_a_model_may_replace_a_model(tmp_path):
    save(objective(seed=1).model, tmp_path / "model")
    save(objective(seed=2).model, tmp_path / "model")
    assert digest(load(tmp_path / "model")) == digest(objective(seed=2).model)


def test_states_round_trip_through_json():
    state = RunState(step=3, loss_sum=0.1 + 0.2, running_loss=1 / 3, best=-1e-300)
    back = json.loads(json.dumps(state.__dict__))
    assert RunState(**back) == state
