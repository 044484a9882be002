"""PLAsTiCC: the official files are read as they are, and the sample was drawn from them."""

import gzip
import importlib.util
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from rotarymae.errors import InputError
from rotarymae.series.dataset import SeriesDataset
from rotarymae_experiments.data import plasticc

ROOT = Path(__file__).resolve().parents[2]
FULL = ROOT.parent / "shared" / "data" / "plasticc"

CURVES = """object_id,mjd,passband,flux,flux_err,detected_bool
20,59750.5,2,-544.8,3.6,1
20,59751.5,5,10.5,5.5,0
7,59760.25,0,1.5,0.5,0
"""
METADATA = """object_id,ra,ddf_bool,target
       7, 33.5,0,42
      20,349.0,1,92
"""


def put(folder, curves=CURVES, metadata=METADATA):
    with gzip.open(folder / "plasticc_train_lightcurves.csv.gz", "wt") as file:
        file.write(curves)
    (folder / "plasticc_train_metadata.csv").write_text(metadata)  # unpacked files will do
    return folder


def test_read_by_hand(tmp_path):
    data, labels, metadata = plasticc.read(put(tmp_path))
    assert data.ids.tolist() == [20, 7] and labels.tolist() == [92, 42]
    assert data.channel_names == ("u", "g", "r", "i", "z", "y")
    assert data.channels is not None and data.channels.tolist() == [2, 5, 0]
    assert data.value_names == ("flux", "flux_err", "detected")
    assert data.values.tolist() == [[-544.8, 3.6, 1.0], [10.5, 5.5, 0.0], [1.5, 0.5, 0.0]]
    assert metadata["object_id"].to_pylist() == [20, 7] and metadata["ra"].to_pylist() == [349.0, 33.5]
    assert metadata.column_names == ["object_id", "ra", "ddf_bool", "target"]


def test_read_says_where_to_get_the_files(tmp_path):
    with pytest.raises(InputError, match=r"lightcurves.csv.gz is missing.*zenodo.*2539456.*CC BY 4.0.*sample\(\)"):
        plasticc.read(tmp_path)
    put(tmp_path)
    (tmp_path / "plasticc_train_metadata.csv").unlink()
    with pytest.raises(InputError, match=r"metadata\.csv"):
        plasticc.read(tmp_path)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"curves": CURVES.replace(",5,", ",6,")}, r"'passband' is 6, where 0, 1, 2, 3, 4, 5 are known.*series 20"),
        ({"metadata": METADATA.replace("92", "93")}, r"\[93\].*\[6, 15, 16"),
        ({"metadata": METADATA + "8,0.0,0,42\n"}, "1 objects of the metadata have no light curve: 8"),
        ({"metadata": METADATA.replace("7,", "8,")}, "1 objects of the metadata have no light curve: 8"),
        (
            {"metadata": "".join(x for x in METADATA.splitlines(True) if " 7," not in x)},
            r"1 series have no label .*: 7;",
        ),
    ],
)
def test_read_refuses(tmp_path, change, message):
    with pytest.raises(InputError, match=message):
        plasticc.read(put(tmp_path, **change))


@pytest.fixture(scope="module")
def sample():
    return plasticc.sample()


# ── how it was drawn ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def script():
    path = ROOT / "scripts" / "make_plasticc_sample.py"
    if not path.is_file():
        pytest.skip(f"needs {path.relative_to(ROOT)}, which is not installed with the package")
    spec = importlib.util.spec_from_file_location("make_plasticc_sample", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_shares(script):
    assert script.shares(np.array([10, 50, 1000]), total=100, floor=20).tolist() == [10, 21, 69]
    assert script.shares(np.array([5, 5]), total=100, floor=20).tolist() == [5, 5]
    assert script.shares(np.array([30, 50]), total=100, floor=20).tolist() == [30, 50]
    assert script.shares(np.array([117, 391, 722, 25]), total=400, floor=60).sum() == 400


def test_draw_prefers_the_wide_survey(script):
    labels = np.repeat([1, 2], [100, 3000])
    deep = np.concatenate([np.ones(90), np.zeros(10), np.ones(1000), np.zeros(2000)]).astype(int)
    chosen = script.draw(labels, deep)
    assert len(chosen) == 1400 and (np.diff(chosen) > 0).all()
    rare, common = chosen[labels[chosen] == 1], chosen[labels[chosen] == 2]
    assert len(rare) >= 60 and set(range(90, 100)) <= set(rare.tolist())  # all wide ones, then deep ones
    assert deep[common].sum() == 0
    np.testing.assert_array_equal(chosen, script.draw(labels, deep))
    assert chosen.tolist() != script.draw(labels, deep, seed=1).tolist()


def test_write_then_read(script, tmp_path, sample):
    data, labels = sample
    few = data.select(range(20))
    size = script.write(few, labels[:20], tmp_path)
    assert size == sum(path.stat().st_size for path in tmp_path.iterdir())
    table = pyarrow.parquet.read_table(tmp_path / "plasticc.parquet")
    again = plasticc.SeriesDataset.from_frame(
        table, "object_id", "mjd", "passband", plasticc.VALUES, channel_names=plasticc.BANDS
    )
    assert again.fingerprint() == few.fingerprint()
    assert pyarrow.parquet.read_table(tmp_path / "plasticc_labels.parquet")["label"].to_pylist() == labels[:20].tolist()


# ── the official files ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.skipif(not FULL.is_dir(), reason="needs the official PLAsTiCC files in ../shared/data/plasticc")
def test_sample_comes_from_the_official_files(sample, script):
    data, labels, metadata = plasticc.read(FULL)
    assert len(data) == len(labels) == len(metadata) and set(labels.tolist()) == set(plasticc.CLASSES)
    np.testing.assert_array_equal(data.ids, metadata["object_id"].to_numpy())
    np.testing.assert_array_equal(labels, metadata["target"].to_numpy())
    few, codes = sample
    order = np.argsort(data.ids)
    at = order[np.searchsorted(data.ids, few.ids, sorter=order)]
    same = data.select(at)
    np.testing.assert_array_equal(same.ids, few.ids)
    np.testing.assert_array_equal(labels[at], codes)
    np.testing.assert_array_equal(same.times, few.times)
    np.testing.assert_array_equal(same.channels, few.channels)
    np.testing.assert_array_equal(same.values.astype(np.float32), few.values)
    np.testing.assert_array_equal(at, script.draw(labels, metadata["ddf_bool"].to_numpy()))


def test_times_since_first_detection_are_zero_there_and_keep_their_gaps() -> None:
    dataset = SeriesDataset.from_arrays(
        times=[np.array([10.0, 12.0, 15.0]), np.array([3.0, 4.0])],
        values=[np.array([[1.0, 1, 0], [2, 1, 1], [3, 1, 1]]), np.array([[1.0, 1, 0], [1, 1, 0]])],
        value_names=("flux", "flux_err", "detected"),
    )
    shifted = plasticc.since_first_detection(dataset)
    np.testing.assert_array_equal(shifted.times, [-2.0, 0.0, 3.0, 0.0, 1.0])
