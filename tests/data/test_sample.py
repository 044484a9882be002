"""PLAsTiCC: the shipped sample is what its README says."""

import re
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from rotarymae.data import plasticc

SAMPLES = Path(plasticc.__file__).parent / "samples"


def test_classes():
    assert len(plasticc.CLASSES) == 14
    assert plasticc.CLASSES[90] == "SNIa" and plasticc.CLASSES[64] == "KN" and plasticc.CLASSES[6] == "mu-Lens-Single"


# ── the sample ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def sample():
    return plasticc.sample()


def test_sample_is_usable(sample):
    data, labels = sample
    assert 1300 <= len(data) == len(labels) and labels.dtype == np.int64
    assert data.values.dtype == np.float32 and data.channel_names == plasticc.BANDS
    assert data.value_names == plasticc.VALUES and np.isfinite(data.values).all()
    assert len(set(data.ids.tolist())) == len(data)
    assert data.times.min() > 59580 and data.times.max() < 60675
    assert (data.values[:, 1] > 0).all() and set(np.unique(data.values[:, 2])) == {0, 1}
    assert np.unique(data.channels).tolist() == [0, 1, 2, 3, 4, 5]  # pyright: ignore
    assert data.lengths.min() >= 40


def test_sample_has_every_class(sample):
    _, labels = sample
    codes, counts = np.unique(labels, return_counts=True)
    assert codes.tolist() == sorted(plasticc.CLASSES)
    assert counts.min() >= 25 and np.sort(counts)[1] >= 60


def test_sample_is_small_and_attributed(sample):
    assert sum(path.stat().st_size for path in SAMPLES.glob("plasticc*.parquet")) < 3_000_000
    assert pyarrow.parquet.read_schema(SAMPLES / "plasticc.parquet").field("mjd").type == "double"
    readme = (SAMPLES / "README.md").read_text()
    for words in ("CC BY 4.0", "10.5281/zenodo.2539456", "PLAsTiCC team", "scripts/make_plasticc_sample.py"):
        assert words in readme


def test_readme_counts_the_sample(sample):
    data, labels = sample
    readme = (SAMPLES / "README.md").read_text()
    counts = {int(code): (name, int(n)) for code, name, n in re.findall(r"\| (\d+) \| ([\w-]+) \| (\d+)", readme)}
    assert counts == {code: (name, (labels == code).sum()) for code, name in plasticc.CLASSES.items()}
    assert f"hold {len(data):,} light curves" in readme
