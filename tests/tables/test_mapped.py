"""Tables larger than memory: the same data set as in memory, from mapped columns that are written once."""

import json
import re
import tempfile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from conftest import identity
from rotarymae.errors import InputError, InputWarning
from rotarymae.partners import features
from rotarymae.preprocess import ObservationPreprocessor
from rotarymae.series import dataset as dataset_file
from rotarymae.series import mapped as mapped_file
from rotarymae.series.dataset import SeriesDataset
from rotarymae.tables import open_source, read

ROLES: Any = {"id": "star", "time": "mjd", "channel": "band", "values": ["flux", "err"]}
SUFFIXES = [".csv", ".tsv", ".csv.gz", ".parquet", ".arrow", ".feather"]


def table(series=40, text=False, seed=0):
    """Rows of series in any order, with a column that nobody asks for."""
    draw = np.random.default_rng(seed)
    each = draw.permutation(np.repeat(np.arange(series), draw.integers(1, 30, series)))
    n = len(each)
    return pa.table(
        {
            "star": [f"star {7 * i}" for i in each] if text else 7 * each + 3,
            "mjd": 59_000 + draw.permutation(n) * 0.25,
            "band": np.array(["g", "i", "r"])[draw.integers(0, 3, n)].tolist() if text else draw.integers(0, 3, n),
            "unused": ["x" * 50] * n,
            "flux": draw.normal(9, 4, n),
            "err": draw.uniform(1, 2, n),
            "host": [f"host {i % 5}" for i in each],
            "redshift": each / 8,
        }
    )


def write(folder, rows, suffix=".parquet"):
    path = folder / f"stars{suffix}"
    if suffix == ".parquet":
        pyarrow.parquet.write_table(rows, path, row_group_size=100)
    elif suffix in (".arrow", ".feather"):
        pyarrow.feather.write_feather(rows, path, chunksize=100)
    else:
        options = pyarrow.csv.WriteOptions(delimiter="\t" if suffix == ".tsv" else ",")
        with pa.output_stream(str(path)) as out:
            pyarrow.csv.write_csv(rows, out, options)
    return path


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(read, "READ", 100)


def both(path, **roles):
    """(in memory, mapped), without the warning that rows were sorted."""
    with pytest.warns(InputWarning, match="times that were not ascending"):
        plain = SeriesDataset.from_file(path, **roles)
    with pytest.warns(InputWarning, match="times that were not ascending"):
        mapped = SeriesDataset.from_file(path, **roles, memory=0)
    assert isinstance(mapped.times, np.memmap) and not isinstance(plain.times, np.memmap)
    return plain, mapped


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("text", [False, True])
def test_mapped_columns_are_the_set_in_memory(tmp_path, suffix, text):
    roles = {**ROLES, "static": ("host", "redshift")}
    plain, mapped = both(write(tmp_path, table(text=text), suffix), **roles)
    assert mapped.fingerprint() == plain.fingerprint() and repr(mapped) == f"{repr(plain)[:-1]}, memory-mapped)"
    assert plain.id_name == mapped.id_name == ROLES["id"]
    for name in ("times", "values", "channels", "offsets"):
        one, other = getattr(plain, name), getattr(mapped, name)
        assert one.dtype == other.dtype and np.array_equal(one, other)
    for one, other in zip(plain, mapped, strict=True):
        assert one.id == other.id and np.array_equal(one.values, other.values)


@pytest.mark.parametrize(
    "roles",
    [
        {"id": "star", "time": "mjd", "values": "flux"},
        {"id": "star", "time": "mjd", "values": ["flux", "err"], "wide": True},
        {"id": "star", "time": "mjd", "values": ["flux", "err"], "wide": True, "tokens": "time"},
        {**ROLES, "channel_names": [2, 1, 0, 5]},
    ],
)
def test_other_readings(tmp_path, roles):
    plain, mapped = both(write(tmp_path, table()), **roles)
    assert mapped.fingerprint() == plain.fingerprint()


def test_dates_duplicates_and_gaps(tmp_path):
    rows = table()
    days = pc.cast(pc.floor(pc.subtract(rows["mjd"], 59_000)), pa.int64())
    rows = rows.set_column(1, "mjd", pc.cast(pc.multiply(pc.divide(days, 9), 86_400), pa.timestamp("s")))
    flux = np.array(rows["flux"].to_pylist())
    flux[::7] = np.nan
    rows = (
        rows.set_column(4, "flux", pa.array(flux))
        .set_column(5, "err", pa.array(flux))
        .set_column(0, "star", rows["star"].dictionary_encode())
    )
    keep = np.isin(np.array(rows["star"]), np.unique(np.array(rows["star"])[~np.isnan(flux)]))
    path = write(tmp_path, rows.filter(pa.array(keep)))
    plain, mapped = both(path, **ROLES, duplicates="mean")
    assert mapped.fingerprint() == plain.fingerprint() and mapped.time_unit == "day"
    assert mapped.reading == plain.reading and plain.reading is not None and plain.reading.dropped > 10


def test_memory_decides_and_no_file_is_left(tmp_path):
    path = write(tmp_path, table())
    columns = ["star", "mjd", "band", "flux", "err"]
    need = pyarrow.parquet.read_metadata(path).num_rows * 5 * 8 * 4
    source = open_source(path)
    assert source.too_large(columns, need - 1) and not source.too_large(columns, need)
    assert not source.too_large(columns)
    both(path, **ROLES)
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_is_named_by_the_folder_that_is_written_to(tmp_path, monkeypatch):
    def full(columns, folder):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(read, "map_parts", full)
    path = write(tmp_path, table())
    for writable, folder in ((True, tmp_path), (False, tempfile.gettempdir())):
        monkeypatch.setattr(read.os, "access", lambda *_, writable=writable: writable)
        with pytest.raises(InputError, match=f"cannot be written to {re.escape(str(folder))} .*No space"):
            SeriesDataset.from_file(path, **ROLES, memory=0)


def test_large_selections_are_mapped_and_statistics_and_features_are_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(mapped_file, "SAMPLE", 50)
    monkeypatch.setattr(dataset_file, "SAMPLE", 50)
    plain, mapped = both(write(tmp_path, table(80)), **ROLES)
    order = np.random.default_rng(0).permutation(80)[:60]
    part = mapped.select(order)
    assert isinstance(part.times, np.memmap) and part.fingerprint() == plain.select(order).fingerprint()
    again = part.select(np.arange(30, 0, -1))
    assert isinstance(again.times, np.memmap) and again.fingerprint() == plain.select(order[30:0:-1]).fingerprint()
    assert not isinstance(mapped.select([3]).times, np.memmap)
    assert identity(ObservationPreprocessor.fit(mapped)) == identity(ObservationPreprocessor.fit(plain))
    keep = np.random.default_rng(1).random(len(plain.times)) < 0.8
    keep[plain.offsets[:-1]] = True
    assert mapped.mask_observations(keep).fingerprint() == plain.mask_observations(keep).fingerprint()
    for one, other in zip(features(plain), features(mapped), strict=True):
        assert np.array_equal(one, other, equal_nan=True) if isinstance(one, np.ndarray) else one == other


def test_a_series_and_a_sample_are_in_memory(tmp_path):
    _, mapped = both(write(tmp_path, table(80)), **ROLES)
    sample = mapped.sample(200)
    assert 200 <= len(sample.times) < 230 and not isinstance(sample.times, np.memmap)
    assert sample.fingerprint() == mapped.sample(200).fingerprint() and mapped.sample() is mapped


def test_ids_of_a_csv_file_are_text_unless_all_are_written_as_integers(tmp_path):
    for ids, wanted in (
        (["001", "01", "1"], ["001", "01", "1"]),
        (["   7", " -20", "1234"], [7, -20, 1234]),  # columns aligned by blanks
        (["1", "-20", "0"], [1, -20, 0]),
        (["1", "2.0", "3"], ["1", "2.0", "3"]),
        (["NA", "2", "3"], ["NA", "2", "3"]),
        (["9" * 30, "2", "3"], ["9" * 30, "2", "3"]),
    ):
        path = tmp_path / "ids.csv"
        path.write_text("id,time,value\n" + "".join(f"{name},{t},1.5\n" for name in ids for t in range(2)))
        for memory in (None, 0):
            assert json.dumps(SeriesDataset.from_file(path, memory=memory).ids.tolist()) == json.dumps(wanted)
        assert SeriesDataset.from_file(path).ids.tolist() == wanted
