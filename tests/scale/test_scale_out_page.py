"""The lines of docs/scale-out.md that need a program of somebody else, or several processes; the others are run by
tests/test_docs.py. In their place stand the folders that there are, and fewer workers."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs/scale-out.md").read_text(encoding="utf-8")
SETUP = re.search(r"<!-- setup\n(.*?)-->", PAGE, re.DOTALL)
FIT = "fit ztf.parquet --id objectid --time lc.mjd --values lc.mag lc.magerr --channel lc.band --out run"
QUICK = "--pretrain-epochs 1 --min-steps 0 --size tiny-shallow --quiet"


def block(word):
    """The one block of code of the page with this word, and what stands for its folders here."""
    found = [code for code in re.findall(r"```\w+\n(.*?)```", PAGE, re.DOTALL) if word in code]
    assert len(found) == 1, word
    return found[0]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the tables of the page."""
    monkeypatch.chdir(tmp_path)
    assert SETUP is not None
    names = {}
    exec(SETUP[1], names)
    return names


@pytest.fixture
def model(here, tmp_path):
    from rotarymae.cli.main import main

    main([*FIT.split(), *QUICK.split()])
    return tmp_path / "run"


@pytest.mark.slow  # a worker imports torch: some 20 seconds
@pytest.mark.filterwarnings("ignore")
def test_lsdb(here, model):
    lsdb = pytest.importorskip("lsdb")
    pd, nested_pandas = pytest.importorskip("pandas"), pytest.importorskip("nested_pandas")
    table = here["objects"](5000, 60)
    frame = nested_pandas.NestedFrame({name: table[name].to_numpy() for name in ("objectid", "ra", "dec")})
    frame["lc"] = pd.Series(table["lc"].combine_chunks(), dtype=nested_pandas.NestedDtype(table["lc"].type))
    lsdb.from_dataframe(frame, margin_threshold=None).write_catalog("ztf_dr22", progress_bar=False)
    code = block("import lsdb").replace("/shared/run", str(model)).replace("n_workers=8", "n_workers=1")
    exec(code, {})
    found = lsdb.open_catalog("vectors").compute()
    assert sorted(found["objectid"]) == list(range(5000, 5060)) and "e0" in found.columns


@pytest.mark.slow  # Ray takes some 15 seconds to start
@pytest.mark.filterwarnings("ignore")
def test_ray(here, model):
    ray = pytest.importorskip("ray")
    code = block("import ray").replace("/shared/run", str(model)).replace("concurrency=8", "concurrency=1")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        exec(code.replace('"survey"', repr(str(Path("survey").resolve()))), {})
        rows = ray.data.read_parquet("vectors").count()
    finally:
        ray.shutdown()
    assert rows == 36


@pytest.mark.slow  # each process imports torch
@pytest.mark.parametrize("nodes", [2, 3])
def test_torchrun(here, tmp_path, nodes):
    """As many hosts on this one, a process each: the run of one process, from a folder of files."""
    from rotarymae.cli.main import main
    from rotarymae.pipeline import Pipeline

    line = block("torchrun").split("\ntorchrun")[0].replace("\\\n", " ")
    words = shlex.split(line.replace("shards/", "survey/").replace("/shared/run", "several"))
    for option, value in (("--nnodes", str(nodes)), ("--nproc-per-node", "1"), ("--master-addr", "127.0.0.1")):
        words[words.index(option) + 1] = value
    launcher = [sys.executable, "-m", "torch.distributed.run"]
    environment = {**os.environ, "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1"}
    processes = []
    for rank in range(nodes):
        words[words.index("--node-rank") + 1] = str(rank)
        processes.append(subprocess.Popen([*launcher, *words[1:], *QUICK.split()], env=environment))
    assert [process.wait(600) for process in processes] == [0] * nodes
    alone = [word if word != "several" else "alone" for word in words[words.index("rotarymae") + 1 :]]
    main([*alone, *QUICK.split()])
    several, one = (Pipeline.load(tmp_path / name).pretrained.model.state_dict() for name in ("several", "alone"))
    for name, weight in one.items():
        assert (several[name] - weight).abs().max() < 1e-4, name


@pytest.mark.slow  # each process imports torch
def test_accelerate(here, tmp_path):
    words = shlex.split(block("accelerate launch").replace("shards/", "survey/").replace("/shared/run", "several"))
    launcher = [sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([*launcher, *words[2:], *QUICK.split()], env=environment, check=True, timeout=900)
    assert (tmp_path / "several" / "metrics.json").exists()
