"""The lines of docs/scale-out.md that need a program of somebody else; the others are run by tests/test_docs.py.

In their place stand the folders that there are, and fewer workers.
"""

import re
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
