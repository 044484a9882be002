"""An LSDB catalogue: partition by partition the embeddings of a single process, each object once."""

import sys

import numpy as np
import pandas as pd
import pytest

from rotarymae.errors import MissingExtra
from rotarymae.scale import Embedding, embed_table, jobs
from rotarymae.scale.lsdb import embed
from rotarymae.series import TableLayout

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
    monkeypatch.setattr(Embedding, "open", classmethod(_counted(opened, Embedding.open.__func__)))
    jobs._open.cache_clear()
    with dask.config.set(scheduler="threads", num_workers=2):
        vectors = embed(catalog, survey_model, **ROLES)
        assert [*vectors.columns] == ["id", "ra", "dec", *(f"e{i}" for i in range(24))] and len(opened) == 1
        found, everything = vectors.compute(), catalog.compute()
    assert len(opened) == 1 and len(found) == len(everything) > 1000
    assert found["id"].is_unique and set(found["id"]) == set(everything["id"])
    assert (found.index == everything.index).all() and (found["ra"] == everything["ra"]).all()
    table = pa.table({"id": pa.array(everything["id"]), "lc": pa.array(everything["lc"])})
    layout = TableLayout.for_model(
        Embedding.open(survey_model).directory.of_series(), {**ROLES, "values": ("lc.flux",)}
    )
    alone = embed_table(table, survey_model, layout).to_pandas()
    columns = [f"e{i}" for i in range(24)]
    np.testing.assert_allclose(found[columns].to_numpy(), alone[columns].to_numpy(), rtol=0, atol=1e-5)
    assert all(found[name].dtype == np.float32 for name in columns)


def _counted(opened, inner):
    def open_and_count(cls, *arguments):
        opened.append(arguments)
        return inner(cls, *arguments)

    return open_and_count


def test_an_empty_partition(catalog, survey_model):
    from rotarymae.scale import lsdb as ours

    layout = TableLayout.for_model(Embedding.open(survey_model).directory.of_series())
    empty = catalog.meta[["id", "ra", "dec", "lc"]]
    found = ours._embed_partition(empty, str(survey_model), "pretrained", "auto", layout, ["id", "ra", "dec"])
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
