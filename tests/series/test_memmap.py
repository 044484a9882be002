"""Tables larger than memory: the same data set as in memory, from mapped columns that are written once."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from conftest import refuses
from rotarymae.errors import InputWarning
from rotarymae.partners import features
from rotarymae.series import dataset as dataset_file
from rotarymae.series import memmap
from rotarymae.series.dataset import SeriesDataset
from rotarymae.series.files import open_table
from rotarymae.series.preprocessor import Preprocessor

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
    monkeypatch.setattr(memmap, "CHUNK", 100)


def both(path, **roles):
    """(in memory, mapped), without the warning that rows were sorted."""
    with pytest.warns(InputWarning, match="times were not ascending"):
        read = SeriesDataset.from_file(path, **roles)
    with pytest.warns(InputWarning, match=r"times were not ascending.*parts of stars"):
        mapped = SeriesDataset.from_file(path, **roles, memory=0)
    assert isinstance(mapped.times, np.memmap) and not isinstance(read.times, np.memmap)
    return read, mapped


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("text", [False, True])
def test_mapped_columns_are_the_set_in_memory(tmp_path, suffix, text):
    roles = {**ROLES, "static": ("host", "redshift")}
    read, mapped = both(write(tmp_path, table(text=text), suffix), **roles)
    assert mapped.fingerprint() == read.fingerprint() and repr(mapped) == f"{repr(read)[:-1]}, memory-mapped)"
    assert read.id_name == mapped.id_name == ROLES["id"]
    for name in ("times", "values", "channels", "offsets"):
        one, other = getattr(read, name), getattr(mapped, name)
        assert one.dtype == other.dtype and np.array_equal(one, other)
    for one, other in zip(read, mapped, strict=True):
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
    read, mapped = both(write(tmp_path, table()), **roles)
    assert mapped.fingerprint() == read.fingerprint()


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
    read, mapped = both(path, **ROLES, missing="drop", duplicates="mean")
    assert mapped.fingerprint() == read.fingerprint() and mapped.time_unit == "day"
    again = SeriesDataset.from_file(path, **ROLES, missing="drop", duplicates="mean", memory=0)
    assert mapped.reading == again.reading == read.reading and read.reading is not None and read.reading.missing > 10


def test_columns_are_written_once_and_again_where_the_file_or_the_options_changed(tmp_path):
    path = write(tmp_path, table())
    _, mapped = both(path, **ROLES)
    written = {file: file.stat().st_mtime_ns for file in (tmp_path / "stars.parquet.columns").rglob("*.[fi][48]")}
    assert len(written) == 3
    assert SeriesDataset.from_file(path, **ROLES, memory=0).fingerprint() == mapped.fingerprint()  # and no warning
    assert written == {
        file: file.stat().st_mtime_ns for file in (tmp_path / "stars.parquet.columns").rglob("*.[fi][48]")
    }
    with pytest.warns(InputWarning):
        assert SeriesDataset.from_file(path, **{**ROLES, "values": "err"}, memory=0).value_names == ("err",)
    write(tmp_path, table(seed=1))
    with pytest.warns(InputWarning):
        assert SeriesDataset.from_file(path, **ROLES, memory=0).fingerprint() != mapped.fingerprint()


def test_a_failure_leaves_nothing_behind(tmp_path):
    rows = table()
    flux = np.array(rows["flux"].to_pylist())
    flux[-1] = np.inf
    path = write(tmp_path, rows.set_column(4, "flux", pa.array(flux)))
    with refuses("'flux' is infinite", "series"):
        SeriesDataset.from_file(path, **ROLES, memory=0)
    assert list((tmp_path / "stars.parquet.columns").iterdir()) == []
    (tmp_path / "taken").write_text("")
    with refuses("larger than memory", "taken", "Make room"):
        SeriesDataset.from_file(path, **ROLES, memory=0, folder=tmp_path / "taken")


def test_memory_decides(tmp_path):
    path = write(tmp_path, table())
    need = pyarrow.parquet.read_metadata(path).num_rows * 5 * 8 * memmap.COPIES
    source = open_table(path)
    columns = ["star", "mjd", "band", "flux", "err"]
    assert memmap.too_large(source, columns, need - 1) and not memmap.too_large(source, columns, need)
    assert not memmap.too_large(source, columns)


def test_large_selections_are_mapped_and_statistics_and_features_are_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(dataset_file, "SAMPLE", 50)
    read, mapped = both(write(tmp_path, table(80)), **ROLES)
    order = np.random.default_rng(0).permutation(80)[:60]
    part = mapped.select(order)
    assert isinstance(part.times, np.memmap) and part.fingerprint() == read.select(order).fingerprint()
    again = part.select(np.arange(30, 0, -1))
    assert isinstance(again.times, np.memmap) and again.fingerprint() == read.select(order[30:0:-1]).fingerprint()
    assert not list((tmp_path / "stars.parquet.columns").rglob("*selected-*"))
    assert not isinstance(mapped.select([3]).times, np.memmap)
    assert Preprocessor.fit(mapped) == Preprocessor.fit(read)
    keep = np.random.default_rng(1).random(len(read.times)) < 0.8
    keep[read.offsets[:-1]] = True
    assert mapped.mask_observations(keep).fingerprint() == read.mask_observations(keep).fingerprint()
    for one, other in zip(features(read), features(mapped), strict=True):
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


def test_numbers_of_a_csv_file_may_begin_as_integers(tmp_path):
    path = tmp_path / "late.csv"
    path.write_text("id,time,value\n" + "".join(f"1,{t},7\n" for t in range(200_000)) + "2,0.5,0.25\n")
    mapped = SeriesDataset.from_file(path, memory=0)
    assert mapped.fingerprint() == SeriesDataset.from_file(path).fingerprint() and mapped[1].values.tolist() == [[0.25]]


def test_different_rows_are_those_of_the_whole_in_order(tmp_path):
    table = pa.table({"id": [3, 3, 1, 2, 2, 2], "kind": pa.array(["b", "b", "a", None, None, "c"]).dictionary_encode()})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet", row_group_size=2)
    found = open_table(tmp_path / "t.parquet").read_distinct(["id", "kind"], ["id"])
    assert found.to_pylist() == [
        {"id": 3, "kind": "b"},
        {"id": 1, "kind": "a"},
        {"id": 2, "kind": None},
        {"id": 2, "kind": "c"},
    ]


def test_a_file_of_many_row_groups_is_streamed_in_the_memory_of_one(tmp_path):
    rows = 1 << 17
    draw = np.random.default_rng(0)
    with pyarrow.parquet.ParquetWriter(
        tmp_path / "t.parquet", pa.schema({"id": pa.int64(), "v": pa.float64()})
    ) as file:
        for group in range(16):
            file.write_table(pa.table({"id": np.full(rows, group), "v": draw.normal(size=rows)}))
    before, most = pa.total_allocated_bytes(), 0
    for piece in open_table(tmp_path / "t.parquet").stream(["id", "v"], ["id"]):
        most = max(most, pa.total_allocated_bytes() - before)
        assert len(piece["v"])
    assert most < 8 * rows * 16  # 16 groups of two columns are twice as much
