"""An LSDB catalogue: partition by partition the embeddings of a single process, each object once."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from _survey import nested
from rotarymae.errors import MissingExtra
from rotarymae.pipeline import Pipeline
from rotarymae.scale import answers, embed_table
from rotarymae.scale.lsdb import embed

# Theirs, not ours.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
ROLES = {"id": "id", "time": "lc.t", "values": ["lc.flux"], "channel": "lc.band"}


@pytest.fixture(scope="module")
def catalog():
    lsdb = pytest.importorskip("lsdb")
    made = lsdb.generate_catalog(2000, {"lc": 5}, seed=0, lowest_order=1)
    south = made.query("dec < 40")  # a filter leaves partitions without objects: four lie beyond 41.8 degrees
    assert south.npartitions >= 12
    return south


def test_a_catalogue_is_the_table_partition_by_partition(catalog, survey_model, monkeypatch):
    import dask
    import pyarrow as pa

    opened = []
    monkeypatch.setattr(answers, "open_embeddings", _counted(opened, answers.open_embeddings))
    answers._open.cache_clear()
    with dask.config.set(scheduler="threads", num_workers=2):
        vectors = embed(catalog, survey_model, **ROLES)
        assert [*vectors.columns] == ["id", "ra", "dec", *(f"e{i}" for i in range(24))] and len(opened) == 1
        found, everything = vectors.compute(), catalog.compute()
    assert len(opened) == 1 and len(found) == len(everything) > 1000
    assert found["id"].is_unique and set(found["id"]) == set(everything["id"])
    assert (found.index == everything.index).all() and (found["ra"] == everything["ra"]).all()
    table = pa.table({"id": pa.array(everything["id"]), "lc": pa.array(everything["lc"])})
    layout = Pipeline.load(survey_model).layout({**ROLES, "values": ("lc.flux",)})
    alone = embed_table(table, survey_model, layout).to_pandas()
    columns = [f"e{i}" for i in range(24)]
    assert differences(found[columns].to_numpy(), alone[columns].to_numpy()).max() <= 1e-6
    assert all(found[name].dtype == np.float32 for name in columns)


def differences(found, wanted):
    """The largest difference of each vector [S], by the vector's length: batches of other series are padded otherwise,
    which changes the last digits of float32 sums."""
    return np.abs(found - wanted).max(1) / np.linalg.norm(wanted, axis=1)


def _counted(opened, inner):
    def open_and_count(*arguments):
        opened.append(arguments)
        return inner(*arguments)

    return open_and_count


def test_an_empty_partition(catalog, survey_model):
    from rotarymae.scale import lsdb as ours

    layout = Pipeline.load(survey_model).layout()
    empty = catalog.meta[["id", "ra", "dec", "lc"]]
    found = ours._embed_partition(empty, str(survey_model), "pretrained", "auto", "auto", layout, ["id", "ra", "dec"])
    assert len(found) == 0 and [*found.columns][:4] == ["id", "ra", "dec", "e0"] and isinstance(found, pd.DataFrame)


def test_without_the_extra_the_error_says_what_to_install(survey_model, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "lsdb"]:
        monkeypatch.delitem(sys.modules, name)

    class Hidden:
        def find_spec(self, name, *_):
            if name.partition(".")[0] == "lsdb":
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(sys, "meta_path", [Hidden(), *sys.meta_path])
    with pytest.raises(MissingExtra, match=r'pip install "rotarymae\[survey\]"'):
        embed(None, survey_model)


# ── processes that are killed ───────────────────────────────────────────────────────────────────────────────────────

DRIVER = """
import json, os, resource, sys
import lsdb
from dask.distributed import Client
from rotarymae.scale import answers
from rotarymae.scale.lsdb import embed

source, model, out = sys.argv[1:4]
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
with Client(n_workers=2, threads_per_worker=1, dashboard_address=":0") as client:
    catalog = lsdb.open_catalog(source)
    vectors = embed(catalog, model, id="id", time="lc.t", values=["lc.flux"], channel="lc.band")
    client.run(__import__, "rotarymae.scale.tables")
    print(json.dumps([*client.run(os.getpid).values()]), flush=True)
    vectors.write_catalog(out, resume="resume" in sys.argv, progress_bar=False)
    loads, peaks = ([*client.run(of).values()] for of in (lambda: answers._open.cache_info().misses, peak))
    print(json.dumps({"loads": loads, "peaks": peaks}), flush=True)
"""


def start(source, model, out, *words):
    """A process that drives two workers, and the ids of theirs, once they are there."""
    command = [sys.executable, "-c", DRIVER, str(source), str(model), str(out), *words]
    errors = (out.parent / "errors.txt").open("a")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, (out.parent / "errors.txt").read_text()[-2000:]
    return process, json.loads(line)


def ended(process, out):
    """What the process said of its workers."""
    said = process.communicate()[0]
    assert process.returncode == 0, (out.parent / "errors.txt").read_text()[-2000:]
    return json.loads(said.splitlines()[-1])


def wait_for_files(out, count):
    while len([*out.rglob("Npix*.parquet")]) < count:
        time.sleep(0.002)


def survey_on_disk(folder, objects, crowd=0):
    """A catalogue over the sky in 12 partitions, one of them with a `crowd` besides, and the table that it is of."""
    import lsdb
    import nested_pandas

    table = nested(objects + crowd, 40)
    draw = np.random.default_rng(0)
    ra, dec = draw.uniform(0, 360, objects + crowd), np.degrees(np.arcsin(draw.uniform(-1, 1, objects + crowd)))
    ra[objects:], dec[objects:] = draw.uniform(40, 50, crowd), draw.uniform(35, 45, crowd)
    frame = nested_pandas.NestedFrame({"id": table["id"].to_numpy(), "ra": ra, "dec": dec})
    frame["lc"] = pd.Series(table["lc"].combine_chunks(), dtype=nested_pandas.NestedDtype(table["lc"].type))
    catalog = lsdb.from_dataframe(frame, lowest_order=0, highest_order=0, margin_threshold=None)
    assert catalog.npartitions == 12
    catalog.write_catalog(folder / "source", progress_bar=False)
    return folder / "source", table


def check(out, table, model):
    """Each object is there once, with the vector that a single process makes of it."""
    import lsdb

    found: pd.DataFrame = lsdb.open_catalog(out).compute().sort_values("id")  # pyright: ignore
    layout = Pipeline.load(model).layout({**ROLES, "values": ("lc.flux",)})
    alone = embed_table(table, model, layout).to_pandas().sort_values("id")
    assert found["id"].tolist() == alone["id"].tolist()
    columns = [f"e{i}" for i in range(24)]
    return differences(found[columns].to_numpy(), alone[columns].to_numpy()).max()


@pytest.mark.slow  # seven processes import torch and dask: one to three minutes
def test_a_worker_and_a_driver_that_are_killed(tmp_path, survey_model):
    source, table = survey_on_disk(tmp_path, 2000)
    process, workers = start(source, survey_model, tmp_path / "one")
    wait_for_files(tmp_path / "one", 2)
    os.kill(workers[0], signal.SIGKILL)
    said = ended(process, tmp_path / "one")
    print("worker killed:", said, "difference", check(tmp_path / "one", table, survey_model))
    assert max(said["loads"]) == 1 and check(tmp_path / "one", table, survey_model) <= 1e-6

    process, workers = start(source, survey_model, tmp_path / "two")
    wait_for_files(tmp_path / "two", 3)
    process.kill()
    process.wait()
    there = len([*(tmp_path / "two").rglob("Npix*.parquet")])
    process, workers = start(source, survey_model, tmp_path / "two", "resume")
    said = ended(process, tmp_path / "two")
    print("driver killed with", there, "files:", said, "difference", check(tmp_path / "two", table, survey_model))
    assert max(said["loads"]) == 1 and check(tmp_path / "two", table, survey_model) <= 1e-6


@pytest.mark.slow
def test_a_large_partition_takes_little_more_memory(tmp_path, survey_model):
    peaks = {}
    for name, crowd in (("even", 0), ("crowded", 20_000)):
        (tmp_path / name).mkdir()
        source, table = survey_on_disk(tmp_path / name, 12_000, crowd)
        process, _ = start(source, survey_model, tmp_path / name / "out")
        said = ended(process, tmp_path / name / "out")
        peaks[name] = max(said["peaks"])
        assert max(said["loads"]) <= 1 and check(tmp_path / name / "out", table, survey_model) <= 1e-6
    print("peak MiB per worker:", peaks)
    assert peaks["crowded"] < peaks["even"] + 500
