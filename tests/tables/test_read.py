"""A table in parts of whole series is the same series, in the same order, as the table at once."""

import warnings

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from conftest import refuses
from rotarymae.errors import InputWarning, NoObservations
from rotarymae.series import SeriesDataset, mapped
from rotarymae.tables import TableReader, TableSchema, align_column, align_labels, open_source, read

SERIES = 30


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    for name in ("PART", "READ"):
        monkeypatch.setattr(read, name, 40)
    monkeypatch.setattr(mapped, "MAPPED_CHUNK", 40)


def table(ids=None, longest=20, nested=False):
    """Series of 1 to `longest` observations, and one of 150; the values of two series are all missing."""
    draw = np.random.default_rng(0)
    lengths = draw.integers(1, longest, SERIES)
    lengths[7] = 150
    ids = pa.array([f"star {i}" for i in range(SERIES)] if ids is None else ids)
    which = np.repeat(np.arange(SERIES), lengths)
    flux = draw.standard_normal(len(which))
    flux[np.isin(which, [4, 20, SERIES - 1])] = np.nan
    time = np.arange(len(which)) / 4
    band = np.array(["g", "r"])[draw.integers(0, 2, len(which))]
    if not nested:
        return pa.table({"id": ids.take(pa.array(which)), "time": time, "band": band.tolist(), "flux": flux})
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    lists = {"time": pa.array(time), "band": pa.array(band.tolist()), "flux": pa.array(flux)}
    lists = {name: pa.ListArray.from_arrays(offsets, column) for name, column in lists.items()}
    return pa.table({"id": ids, **lists})


def reader(source, **changes):
    columns = {"id": "id", "time": "time", "channel": "band", "values": ("flux",)}
    return TableReader.open(source, TableSchema(**{**columns, **changes}))


def written(folder, rows, how):
    path = folder / f"t.{how}"
    if how == "memory":
        return rows
    if how == "csv":
        pyarrow.csv.write_csv(rows, path)
    elif how == "parquet":
        pyarrow.parquet.write_table(rows, path, row_group_size=35)
    else:
        pyarrow.feather.write_feather(rows, path, chunksize=35)
    return open_source(path)


def joined(parts):
    """All series of parts, one behind the other: (ids, whether observed, times, values)."""
    ids = [name for part in parts for name in part.ids.to_pylist()]
    observed = np.concatenate([part.observed for part in parts])
    sets = [part.dataset for part in parts if part.dataset is not None]
    return ids, observed, np.concatenate([d.times for d in sets]), np.concatenate([d.values for d in sets])


@pytest.mark.parametrize("how", ["memory", "csv", "parquet", "feather"])
@pytest.mark.parametrize("form", ["long", "nested", "shuffled"])
def test_parts_are_the_whole_in_its_order(tmp_path, monkeypatch, form, how):
    if (form, how) == ("nested", "csv"):
        pytest.skip("text has no lists")
    rows = table(nested=form == "nested")
    if form == "shuffled":
        rows = rows.take(pa.array(np.random.default_rng(1).permutation(len(rows))))
    source = written(tmp_path, rows, how)
    with pytest.warns(InputWarning) as raised:
        parts = list(reader(source).parts())
    losses = [str(warning.message) for warning in raised if "no observation" in str(warning.message)]
    assert len(losses) == 1 and losses[0].startswith("3 series have no observation and are left out")
    monkeypatch.undo()
    with pytest.warns(InputWarning):
        whole = reader(source).read()
    ids, observed, times, values = joined(parts)
    assert len(parts) > 5 and ids == rows["id"].unique().to_pylist()
    assert [name for name, there in zip(ids, observed, strict=True) if there] == whole.ids.tolist()
    assert np.array_equal(times, whole.times) and np.array_equal(values, whole.values)
    if form != "shuffled":  # a part is one piece, or one series that is longer
        assert all(part.dataset is None or len(part.dataset.times) <= 150 + 80 for part in parts)


@pytest.mark.filterwarnings("ignore::rotarymae.errors.InputWarning")
@pytest.mark.parametrize("kind", [pa.int32(), pa.uint16(), pa.string(), pa.large_string(), pa.float32()])
@pytest.mark.parametrize("rows", [40, 10_000], ids=["streamed", "at once"])
def test_ids_keep_their_type(monkeypatch, kind, rows):
    monkeypatch.setattr(read, "PART", rows)
    for nested in (False, True):
        own = pa.array(np.arange(SERIES)).cast(kind)
        parts = list(reader(table(own, nested=nested)).parts())
        assert pa.concat_arrays([part.ids for part in parts]).equals(own)


def test_files_as_series(tmp_path):
    for i in range(4):
        rows = pa.table({"time": np.arange(25.0) + i, "flux": np.ones(25) * i})
        pyarrow.parquet.write_table(rows, tmp_path / f"night{i}.parquet")
    source = open_source(tmp_path)
    parts = list(reader(source, id="file", channel=None).parts())
    assert len(parts) > 1 and joined(parts)[0] == [f"night{i}" for i in range(4)]
    mapped = reader(source, id="file", channel=None).read(0)
    assert mapped.ids.tolist() == joined(parts)[0] and np.array_equal(mapped.times, joined(parts)[2])


def test_a_table_without_rows_has_no_parts_and_one_without_observations_says_why():
    rows = table(nested=True)
    assert list(reader(rows.slice(0, 0)).parts()) == []
    (part,) = reader(rows.slice(4, 1)).parts()
    assert part.dataset is None and part.ids.to_pylist() == ["star 4"] and not part.observed.any()
    assert isinstance(part.why, NoObservations) and "no value was observed" in str(part.why)


@pytest.mark.filterwarnings("ignore::rotarymae.errors.InputWarning")
@pytest.mark.parametrize("how", ["memory", "parquet", "mapped"])
def test_most_of_a_part_may_be_dropped_but_not_most_of_the_table(tmp_path, how):
    rows = table().drop_columns(["band"])
    columns = {"channel": None, "values": ("flux", "err")}

    def read_without(lost):
        error = np.ones(len(rows))
        error[lost] = np.nan
        source = written(tmp_path, rows.append_column("err", pa.array(error)), "parquet" if how == "mapped" else how)
        if how != "mapped":
            return joined(list(reader(source, **columns).parts()))[2]
        return reader(source, **columns).read(memory=0).times

    which = pc.index_in(rows["id"], rows["id"].unique()).to_numpy()
    with pytest.warns(InputWarning, match="observed values are dropped"):
        assert len(read_without(np.flatnonzero(np.isin(which, [7, 9])))) > len(rows) / 4
    with pytest.warns(InputWarning, match="'err' is missing in(?s:.)*--wide"):
        read_without(np.arange(len(rows) // 10, len(rows)))


@pytest.mark.parametrize("memory", [None, 0, "parts"])
def test_dates_as_text_have_a_zone_in_every_part_or_in_none(tmp_path, memory):
    rows = table(longest=50).drop_columns(["time"])
    series = np.array([int(name.split()[1]) for name in rows["id"].to_pylist()])
    for zones in (("", ""), ("Z", "Z"), ("", "+02:00")):
        texts = [f"2024-01-01T{n // 60:02d}:{n % 60:02d}:00{zones[int(s >= 15)]}" for n, s in enumerate(series)]
        source = written(tmp_path, rows.append_column("time", pa.array(texts)), "parquet")

        def read_it(source=source):
            if memory == "parts":
                return joined(list(reader(source).parts()))
            return reader(source).read(memory)

        if zones[1] == "+02:00":
            with refuses("time"), warnings.catch_warnings():
                warnings.simplefilter("ignore", InputWarning)
                read_it()
        else:
            with pytest.warns(InputWarning, match="no observation"):
                read_it()


def several(folder, *each):
    """Files of 60 rows, which have a series in common; column by column what differs between them."""
    folder.mkdir()
    for i, changes in enumerate(each):
        ids = ["star 1"] * 60 if i else ["star 0", "star 1"] * 30
        rows = {"id": sorted(ids), "time": np.arange(60.0) + 60 * i, "band": ["g", "r"] * 30, "flux": np.ones(60)}
        pyarrow.parquet.write_table(pa.table(rows | changes), folder / f"{i}.parquet")
    return folder


COARSE = pa.array(range(60), pa.timestamp("s"))
FINE = pa.array(range(60_000_001, 60_000_061), pa.timestamp("us"))
OTHER_TYPES = {
    "floats of other sizes": ({"flux": pa.array(range(60), pa.float32())}, {"flux": pa.array(range(60), pa.int64())}),
    "times of other units": ({"time": COARSE}, {"time": FINE}),
    "nothing but null": ({}, {"flux": pa.nulls(60)}),
    "a dictionary and texts": ({"band": pa.array(["g", "r"] * 30).dictionary_encode()}, {}),
}


@pytest.mark.parametrize("case", OTHER_TYPES)
@pytest.mark.parametrize("memory", [None, 0])
def test_files_whose_columns_differ_in_size_are_one_table(tmp_path, case, memory):
    source = open_source(several(tmp_path / "in", *OTHER_TYPES[case]))
    whole = reader(source).read(memory)
    ids, observed, times, values = joined(list(reader(source).parts()))
    assert ids == ["star 0", "star 1"] and observed.all()
    wanted = reader(source).read()
    for found_times, found_values in ((times, values), (whole.times, whole.values)):
        assert np.array_equal(found_times, wanted.times) and np.array_equal(found_values, wanted.values)


def test_what_later_rows_of_a_large_text_file_hold(tmp_path):
    path, rows = tmp_path / "t.csv", ["id,time,band,flux"]
    begin = np.datetime64("2024-01-01 00:00:00")  # 40,000 minutes: more than a block
    rows += [f"a,{str(begin + np.timedelta64(i, 'm')).replace('T', ' ')},g,{i}" for i in range(40_000)]
    path.write_text("\n".join([*rows, "a,2024-02-01 00:00:00.5,g,0.5"]) + "\n")
    parts = list(reader(open_source(path)).parts())
    assert parts[-1].dataset is not None and parts[-1].dataset.times.max() == 19754 + 0.5 / 86400
    path.write_text("\n".join([*rows, "a,2024-02-01 00:00:00,g,bad"]) + "\n")
    with pytest.warns(InputWarning, match="1 cells of 'flux' cannot be read: 'bad' 1"):
        assert sum(len(part.dataset.times) for part in reader(path).parts() if part.dataset) == 40_000


@pytest.mark.parametrize("memory", [None, 0])
def test_blanks_around_labels_do_not_count(tmp_path, memory):
    path = tmp_path / "t.csv"
    path.write_text("id,time,band,flux\n" + "".join(f"{'  7' if t % 2 else '7'},{t}, g,1.5\n" for t in range(100)))
    found = reader(open_source(path)).read(memory)
    assert found.ids.tolist() == [7] and found.channel_names == ("g",) and found.lengths.tolist() == [100]


def test_blanks_around_texts_of_labels_splits_and_static_columns_do_not_count(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,time,value,kind\n1,0,2,a \n1,1,2, a\n2,0,3,a\n2,1,3,  a\n3,0,2,  \n3,1,2,\n")
    data = SeriesDataset.from_file(path, static=["kind"])
    assert data.static["kind"].tolist() == ["a", "a", None]
    table = open_source(path)
    assert align_labels(data, table, label="kind", unlabelled="none").tolist() == ["a", "a", None]
    assert align_column(data, table, "id", "kind")[0].tolist() == ["a", "a", None]


@pytest.mark.parametrize("memory", [None, 0])
def test_columns_of_plain_numbers_are_read_as_the_others(tmp_path, memory):
    """Python and DuckDB take 1_5 for 15."""
    rows = ["7,0,1.5,a", "7,1,1_5,a", "8,2,+2e1,b", "8,3, 4 ,b", "8,4,nan,b", "8,5,,b"]
    (tmp_path / "t.csv").write_text("\n".join(["id,time,value,kind", *rows]) + "\n")
    with pytest.warns(InputWarning, match="1 cells of 'value' cannot be read: '1_5' 1"):
        data = SeriesDataset.from_file(tmp_path / "t.csv", static=["kind"], memory=memory)
    assert data.values.ravel().tolist() == [1.5, 20.0, 4.0] and data.ids.tolist() == [7, 8]
    assert data.static["kind"].tolist() == ["a", "b"] and data.reading.missing == {"'value' is missing": 3}
