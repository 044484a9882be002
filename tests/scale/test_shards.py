"""A folder of shards: each answered once, by however many processes, whatever becomes of them."""

import functools
import hashlib
import json
import multiprocessing
import os
import random
import shutil
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import _survey
from _survey import nested
from conftest import command, refuses
from rotarymae.errors import RotaryMAEError
from rotarymae.pipeline import Pipeline
from rotarymae.scale import ShardedJob, answer_shards, embed_table, embeddings, shards

SHARDS = 30


@pytest.fixture
def folder(tmp_path, request):
    """Shards of a few objects each, one of them without any."""
    inside = tmp_path / "in" / "deep"
    inside.mkdir(parents=True)
    for i in range(getattr(request, "param", SHARDS)):
        table = nested(0 if i == 7 else 5, seed=i, first=5 * i)
        pq.write_table(table, (inside if i % 2 else inside.parent) / f"shard{i:02d}.parquet")
    return tmp_path / "in"


def work_of(model, **options):
    layout = Pipeline.load(model).pretrained.layout()
    return ShardedJob(functools.partial(embeddings, model, **options), "embed", model, options, layout)


def contents(out):
    """The outputs by name, without what is hidden or begins with an underscore."""
    files = [path for path in sorted(out.rglob("*.parquet")) if not path.name.startswith(".")]
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in files}


def ids_in(out):
    return sorted(name for path in out.rglob("shard*.parquet") for name in pq.read_table(path)["id"].to_pylist())


def test_one_output_per_input_with_the_answers_of_the_table(folder, tmp_path, survey_model):
    steps = []
    totals = answer_shards(work_of(survey_model), folder, tmp_path / "out", on_step=lambda *step: steps.append(step))
    objects = 5 * (SHARDS - 1)
    assert (totals.shards, totals.before, totals.rows) == (SHARDS, 0, objects) and steps[-1] == (SHARDS, SHARDS)
    source = folder / "deep" / "shard03.parquet"
    found = pq.read_table(tmp_path / "out" / "deep" / "shard03.parquet")
    assert found.equals(embed_table(pq.read_table(source), survey_model))
    assert len(pq.read_table(tmp_path / "out" / "deep" / "shard07.parquet")) == 0
    manifest = json.loads((tmp_path / "out" / "_manifest.json").read_text())
    assert manifest["job"] == "embed" and len(manifest["model"]) == 64


def test_what_is_done_is_not_done_again_but_for_an_input_that_changed(folder, tmp_path, survey_model):
    out = tmp_path / "out"
    answer_shards(work_of(survey_model), folder, out)
    first = {path: path.stat().st_mtime_ns for path in out.rglob("shard*.parquet")}
    pq.write_table(nested(9, seed=99, first=1000), folder / "shard04.parquet")
    totals = answer_shards(work_of(survey_model), folder, out)
    again = [path.name for path in first if path.stat().st_mtime_ns != first[path]]
    assert totals.before == SHARDS - 1 and again == ["shard04.parquet"]
    damaged = out / "deep" / "shard03.parquet"
    whole = damaged.read_bytes()
    damaged.write_bytes(b"")  # as after a crash of the computer
    with refuses("shard03.parquet is damaged", "remove it"):
        answer_shards(work_of(survey_model), folder, out)
    damaged.write_bytes(whole)
    assert pq.read_table(out / "shard04.parquet")["id"].to_pylist() == list(range(1000, 1009))
    size = (folder / "shard04.parquet").stat().st_size
    table = pq.read_table(folder / "shard04.parquet")
    ids = pa.array(range(2000, 2009), table["id"].type)
    pq.write_table(table.set_column(table.column_names.index("id"), "id", ids), folder / "shard04.parquet")
    assert (folder / "shard04.parquet").stat().st_size == size  # of another content
    assert answer_shards(work_of(survey_model), folder, out).before == SHARDS - 1
    assert pq.read_table(out / "shard04.parquet")["id"].to_pylist() == list(range(2000, 2009))


def test_another_model_or_option_is_refused(folder, tmp_path, survey_model, monkeypatch):
    out = tmp_path / "out"
    answer_shards(work_of(survey_model), folder, out)
    with refuses("options", "{}", "'cls'", code="other-shards"):
        answer_shards(work_of(survey_model, pool="cls"), folder, out)
    monkeypatch.setattr(shards, "model_checksum", lambda model: "0" * 64)
    with refuses("model", "000000000000", code="other-shards"):
        answer_shards(work_of(survey_model), folder, out)


def test_a_model_is_known_by_its_files_wherever_it_lies_and_by_its_name(survey_model, tmp_path):
    for place in (tmp_path / "a", tmp_path / "training" / "a"):
        shutil.copytree(survey_model, place)
        assert shards.model_checksum(place) == shards.model_checksum(survey_model)
    assert shards.model_checksum(Path("plasticc-ugrizy")) != hashlib.sha256().hexdigest()


def test_folders_that_are_refused(folder, tmp_path, survey_model):
    work = work_of(survey_model)
    with refuses("files", "input"):
        answer_shards(work, folder, folder / "out")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    for content in (None, "[" * 100_000, "[]", "{}"):
        if content is not None:
            (tmp_path / "mine" / "_manifest.json").write_text(content)
        with refuses("is not empty"):
            answer_shards(work, folder, tmp_path / "mine")
    (tmp_path / "file").write_text("")
    with refuses("file", "cannot be written"):
        answer_shards(work, folder, tmp_path / "file" / "out")
    (folder / "shard04.csv").write_text("id\n")
    with refuses("'shard04.parquet'"):
        answer_shards(work, folder, tmp_path / "out")


def test_outputs_lie_beside_the_inputs_where_a_pattern_does_not_find_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("n1.csv", "n2.csv", "m.parquet", "sub/k.parquet"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    for pattern, out in (("n*.csv", "out"), ("*.parquet", "out"), (str(tmp_path / "*.csv"), "out")):
        assert shards.find_shards(Path(pattern), Path(out))
    for pattern, out in (("*.parquet", "."), ("**/*.csv", "out"), (".", "out")):
        with refuses("files", "input"):
            shards.find_shards(Path(pattern), Path(out))


def test_a_damaged_shard_is_named_and_the_others_go_on(folder, tmp_path, survey_model, capsys):
    whole = (folder / "shard04.parquet").read_bytes()
    (folder / "shard04.parquet").write_bytes(whole[: len(whole) // 2])
    arguments = ["embed", survey_model, folder, "--out", tmp_path / "out"]
    assert command(*arguments, "--quiet") == 3
    said = capsys.readouterr().err
    assert "1 of 30 input files" in said and "'shard04.parquet'" in said and "cannot be read as parquet" in said
    assert len(contents(tmp_path / "out")) == SHARDS - 1
    (folder / "shard04.parquet").write_bytes(whole)
    assert command(*arguments) == 0
    assert "145 embeddings of 24 numbers from 30 shards, 29 of them before" in " ".join(capsys.readouterr().err.split())
    assert command("embed", survey_model, folder / "shard04.parquet", "--out", tmp_path / "folder") == 2
    assert command("embed", survey_model, folder, "--out", tmp_path / "x.parquet", "--workers", "2") == 2
    assert "--workers 2" in capsys.readouterr().err


def test_a_full_disk_is_no_fault_of_a_shard(folder, tmp_path, survey_model, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shards, "write_parts", full)
    with pytest.raises(OSError, match="No space left"):
        answer_shards(work_of(survey_model), folder, tmp_path / "out")
    assert contents(tmp_path / "out") == {}


def test_an_interrupt_says_what_is_done(folder, tmp_path, survey_model, monkeypatch):
    answer, out = shards._answer, tmp_path / "out"

    def interrupted(*arguments):
        if len(contents(out)) == 3:
            raise KeyboardInterrupt
        return answer(*arguments)

    monkeypatch.setattr(shards, "_answer", interrupted)
    with pytest.raises(KeyboardInterrupt) as raised:
        answer_shards(work_of(survey_model), folder, out)
    assert f"3 of {SHARDS}" in raised.value.__notes__[0]
    monkeypatch.undo()
    assert answer_shards(work_of(survey_model), folder, out).before == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("folder", [SHARDS, pytest.param(200, marks=pytest.mark.slow)], indirect=True)
def test_killed_processes_leave_nothing_double_and_nothing_out(folder, tmp_path, survey_model, monkeypatch):
    """Three processes, one of them killed at ten random moments and started anew; forked, as imports take seconds."""
    work = work_of(survey_model)
    answer_shards(work, folder, tmp_path / "undisturbed")
    job = work.open()
    slow = ShardedJob(lambda: job, work.name, work.model, work.options, work.layout)
    count = len(shards.find_shards(folder, tmp_path / "out"))
    answer = shards._answer

    def slowly(*arguments):
        time.sleep(random.uniform(0, 0.05))
        return answer(*arguments)

    monkeypatch.setattr(shards, "_answer", slowly)
    context, draw = multiprocessing.get_context("fork"), random.Random(0)

    def start(i):
        process = context.Process(target=answer_shards, args=(slow, folder, tmp_path / "out"))
        process.start()
        return process

    processes, killed = [start(i) for i in range(3)], 0
    while killed < 10:
        time.sleep(draw.uniform(0, 0.1 * count / SHARDS))
        i = draw.randrange(3)
        if processes[i].is_alive():
            processes[i].kill()
            killed += 1
        processes[i].join()
        processes[i] = start(i)
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert len(contents(tmp_path / "out")) == count
    totals = answer_shards(work, folder, tmp_path / "out")
    assert totals.before == count and contents(tmp_path / "out") == contents(tmp_path / "undisturbed")
    assert ids_in(tmp_path / "out") == [name for i in range(count) if i != 7 for name in range(5 * i, 5 * i + 5)]


def test_fewer_than_one_worker_are_refused(folder, tmp_path, survey_model):
    with refuses("workers is 0"):
        answer_shards(work_of(survey_model), folder, tmp_path / "out", workers=0)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow  # two processes import torch: some 15 seconds
def test_worker_processes(folder, tmp_path, survey_model):
    answer_shards(work_of(survey_model), folder, tmp_path / "one")
    totals = answer_shards(work_of(survey_model), folder, tmp_path / "two", workers=2)
    assert totals.rows == 145 and contents(tmp_path / "one") == contents(tmp_path / "two")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_the_shards_of_a_killed_worker_are_done_by_the_next_run(folder, tmp_path, survey_model, monkeypatch):
    """And another child process of the caller lives on."""
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
    child.start()
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    )
    work = work_of(survey_model)
    once = ShardedJob(
        functools.partial(_survey.open_unless_killed, survey_model, tmp_path / "killed"),
        work.name,
        work.model,
        work.options,
        work.layout,
    )
    with refuses("was killed", "of 30 files are left", error=RotaryMAEError):
        answer_shards(once, folder, tmp_path / "out", workers=2)
    assert (tmp_path / "killed").exists() and child.is_alive()
    child.kill()
    assert answer_shards(once, folder, tmp_path / "out").rows == 145
    assert len(contents(tmp_path / "out")) == SHARDS


@pytest.mark.parametrize("workers", [1, 2])
def test_a_warning_names_its_shard_and_no_line_of_code(tmp_path, survey_model, capfd, workers):
    (tmp_path / "in").mkdir()
    for i in range(2):
        table = nested(3, seed=i, first=3 * i)
        t, flux, band = table["lc"].combine_chunks().flatten()
        if i:
            t = pa.ListArray.from_arrays(t.offsets, pc.negate(t.flatten()))
        lists = pa.StructArray.from_arrays([t, flux, band], ["t", "flux", "band"])
        pq.write_table(pa.table({"id": table["id"], "lc": lists}), tmp_path / "in" / f"shard{i}.parquet")
    words = ("embed", survey_model, tmp_path / "in", "--out", tmp_path / "out", "--workers", workers)
    assert command(*words) == 0
    said = " ".join(capfd.readouterr().err.split())
    assert "series had times that were not ascending" in said
    assert "shard0.parquet" not in said and ".py:" not in said
