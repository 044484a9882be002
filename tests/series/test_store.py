"""Opened files: the same series as in memory, read by blocks, few of them kept, and refused by name when it is read."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import refuses
from rotarymae.errors import InputWarning
from rotarymae.masking import Masking
from rotarymae.series.dataset import SeriesDataset
from rotarymae.series.examples import SeriesExamples, assemble
from rotarymae.series.scaling import Preprocessor
from rotarymae.series.store import PIECE, ArrowRows, Blocks, open_rows
from rotarymae.training.batching import by_length, padding_waste, plan

ROLES: Any = {"id": "star", "time": "mjd", "channel": "band", "values": ["flux", "err"]}
ROW_BYTES = 8 + 4 + 8  # time, channel, two float32


def table(lengths=(5, 1, 12, 3, 30, 2), text=False, wide=False, seed=0):
    """Sorted rows of series; ids and bands as text or as integers."""
    draw = np.random.default_rng(seed)
    lengths = np.array(lengths)
    n, each = lengths.sum(), np.repeat(np.arange(len(lengths)), lengths)
    times = 59_000 + np.concatenate([np.cumsum(draw.choice([0.5, 1, 2.25], k)) for k in lengths])
    bands = draw.integers(0, 3, n)
    kind = np.float64 if wide else np.float32
    return pa.table(
        {
            "star": [f"star {7 * i}" for i in each] if text else 7 * each + 3,
            "mjd": times,
            "band": np.array(["g", "i", "r"])[bands].tolist() if text else bands.astype(np.int8),
            "flux": draw.normal(9, 4, n).astype(np.float32),
            "err": draw.uniform(1, 2, n).astype(kind),
        }
    )


def write(folder, rows, kind="parquet", part=7):
    """A file of short row groups or record batches."""
    path = folder / f"stars.{'parquet' if kind == 'parquet' else 'arrow'}"
    if kind == "parquet":
        pyarrow.parquet.write_table(rows, path, row_group_size=part)
    else:
        pyarrow.feather.write_feather(rows, path, compression=kind, chunksize=part)
    return path


def store(data):
    assert data._view is not None
    return data._view.store


def equal(one, other):
    for name in ("times", "values", "offsets", "ids"):
        left, right = np.asarray(getattr(one, name)), np.asarray(getattr(other, name))
        assert left.dtype == right.dtype and np.array_equal(left, right), name
    assert (one.channels is None) == (other.channels is None)
    assert one.channels is None or np.array_equal(one.channels, other.channels)
    for name in ("value_names", "channel_names", "time_unit", "tokens"):
        assert getattr(one, name) == getattr(other, name), name


# ── the same as in memory ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["parquet", "uncompressed", "lz4"])
@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("part", [1, 7, 100])
def test_an_opened_file_is_the_set_read_from_it(tmp_path, kind, text, part):
    rows = table(text=text, wide=text)
    lazy = SeriesDataset.open(write(tmp_path, rows, kind, part), **ROLES)
    data = SeriesDataset.from_frame(rows, **ROLES)
    equal(lazy, data)
    equal(lazy.load(), data)
    assert isinstance(lazy.load().times, np.ndarray) and data.load() is data and data.sample() is data
    for one, other in zip(lazy, data, strict=True):
        assert one.id == other.id and np.array_equal(one.times, other.times)
        assert np.array_equal(one.channels, other.channels) and np.array_equal(one.values, other.values)
    made = Preprocessor.fit(data)
    assert made == Preprocessor.fit(lazy)  # all of a small file is the sample
    index = np.array([4, 0, 2])
    one, other = assemble(lazy, made, index), assemble(data, made, index)
    assert one.values.equal(other.values) and one.positions.equal(other.positions)
    batch = SeriesExamples(lazy, made, 1, Masking()).batch(index, 0)
    assert batch.inputs.values.equal(SeriesExamples(data, made, 1, Masking()).batch(index, 0).inputs.values)
    assert repr(lazy) == repr(data).replace(f"times {data.times.min():g} to {data.times.max():g}, ", "").replace(
        "per series)", f"per series, in stars.{'parquet' if kind == 'parquet' else 'arrow'})"
    )


@given(
    lengths=st.lists(st.integers(1, 25), min_size=1, max_size=30),
    part=st.integers(1, 60),
    blocks=st.integers(1, 4),
    data=st.data(),
)
@settings(max_examples=40, deadline=None)
def test_any_rows_and_any_series_in_any_order(tmp_path_factory, lengths, part, blocks, data):
    rows = table(lengths)
    path = write(tmp_path_factory.mktemp("any"), rows, data.draw(st.sampled_from(["parquet", "uncompressed"])), part)
    longest = part + max(lengths)
    lazy = SeriesDataset.open(path, **ROLES, cache_bytes=ROW_BYTES * longest * blocks)
    full = SeriesDataset.from_frame(rows, **ROLES)
    places = st.lists(st.integers(0, len(lengths) - 1), min_size=1, max_size=20)
    some = np.array(data.draw(places))
    equal(lazy.select(some).load(), full.select(some))
    for one, other in zip(lazy.select(some), full.select(some), strict=True):
        assert np.array_equal(one.times, other.times) and np.array_equal(one.channels, other.channels)
    twice = np.array(data.draw(st.lists(st.integers(-len(some), len(some) - 1), min_size=1, max_size=20)))
    equal(lazy.select(some).select(twice).load(), full.select(some).select(twice))
    at = np.array(data.draw(st.lists(st.integers(-len(rows), len(rows) - 1), min_size=1, max_size=20)))
    assert np.array_equal(lazy.times[at], full.times[at]) and np.array_equal(lazy.values[at], full.values[at])
    cut = slice(*sorted(np.abs(at[:2]).tolist()))
    assert np.array_equal(lazy.channels[cut], full.channels[cut])
    kept = store(lazy)
    assert kept.kept_bytes <= kept.cache_bytes
    assert kept.kept_bytes == sum(c.nbytes for block in kept._kept.values() for c in block.values())
    assert kept.cuts[0] == 0 and kept.cuts[-1] == len(rows) and (np.diff(kept.cuts) > 0).all()
    assert np.isin(kept.cuts, full.offsets).all() and np.diff(kept.cuts).max() < longest


def test_dates_dictionaries_and_no_channels(tmp_path):
    rows = table(text=True)
    days = pc.cast(pc.multiply(rows["mjd"], 86_400), pa.int64()).cast(pa.timestamp("s"))
    rows = rows.set_column(1, "mjd", days).set_column(0, "star", rows["star"].dictionary_encode())
    for kind in ("parquet", "uncompressed"):
        path = write(tmp_path, rows, kind)
        for roles in (ROLES, {**ROLES, "channel": None}, {**ROLES, "values": "flux"}):
            lazy = SeriesDataset.open(path, **roles)
            equal(lazy, SeriesDataset.from_frame(rows, **roles))
            assert lazy.time_unit == "day"
    assert "day" not in repr(lazy)


def test_channels_within_one_time_come_sorted(tmp_path):
    rows = pa.table({"id": [1, 1, 1, 2], "t": [0.0, 0.0, 1.0, 0.0], "c": ["r", "g", "r", "g"], "v": [1.0, 2, 3, 4]})
    roles: Any = {"time": "t", "channel": "c", "values": "v"}
    equal(SeriesDataset.open(write(tmp_path, rows, part=2), **roles), SeriesDataset.from_frame(rows, **roles))


def test_channel_names_as_given(tmp_path):
    rows = table(text=True)
    path = write(tmp_path, rows)
    lazy = SeriesDataset.open(path, **ROLES, channel_names=np.array(["z", "r", "i", "g"]))
    equal(lazy, SeriesDataset.from_frame(rows, **ROLES, channel_names=["z", "r", "i", "g"]))


def test_a_part_of_observations_and_tables(tmp_path):
    rows = table()
    lazy, data = SeriesDataset.open(write(tmp_path, rows), **ROLES), SeriesDataset.from_frame(rows, **ROLES)
    keep = np.arange(len(rows)) % 2 == 0
    keep[data.offsets[:-1]] = True
    equal(lazy.mask_observations(keep), data.mask_observations(keep))
    assert lazy.to_arrow().equals(data.to_arrow())
    lazy.write_parquet(tmp_path / "again.parquet", "star", "mjd", "band")
    equal(SeriesDataset.open(tmp_path / "again.parquet", **ROLES), data)


def test_constant_channels_are_named(tmp_path):
    rows = table().set_column(3, "flux", pa.array(np.full(53, 4, np.float32)))
    lazy = SeriesDataset.open(write(tmp_path, rows), **ROLES)
    with pytest.warns(InputWarning, match="of a sample: channel 0, column 'flux'"):
        assert len(lazy.warn_constant_channels()) == 3


def test_no_copy_of_a_mapped_file(tmp_path):
    rows = table((300,) * 1000)
    path = write(tmp_path, rows, "uncompressed", 100_000)
    before = pa.total_allocated_bytes()
    found = ArrowRows(path).read(["mjd", "flux"], 5, 250_000)
    assert pa.total_allocated_bytes() - before < 10_000 < found.nbytes
    assert found["mjd"].to_pylist()[::1000] == rows["mjd"].to_pylist()[5:250_000:1000]


@pytest.mark.parametrize(("kind", "columns"), [("lz4", ["err"]), ("uncompressed", table().column_names)])
def test_of_a_compressed_file_only_the_columns_asked_for_are_decompressed(tmp_path, kind, columns):
    rows = ArrowRows(write(tmp_path, table(), kind))
    assert rows._reader(["err"]).get_batch(0).schema.names == columns
    assert rows.read(["err"], 0, 53).column_names == ["err"]


def test_long_record_batches_are_read_in_pieces(tmp_path):
    rows = table((400,) * (3 * PIECE // 400))
    lazy = SeriesDataset.open(write(tmp_path, rows, "uncompressed", 2**30), **ROLES)
    assert len(store(lazy).cuts) == 4 and np.abs(np.diff(store(lazy).cuts) - PIECE).max() <= 400
    assert lazy[7000].times.tolist() == rows["mjd"].to_pylist()[7000 * 400 : 7001 * 400]
    assert store(lazy).decoded == 1


# ── few blocks at a time ────────────────────────────────────────────────────────────────────────────────────────────


def many(folder, blocks=40, series=2000, cache=10, **changes):
    """An opened file of `blocks` blocks, of which `cache` are kept."""
    lengths = np.random.default_rng(1).integers(2, 20, series)
    rows = table(lengths, **changes)
    part = len(rows) // blocks
    return SeriesDataset.open(write(folder, rows, part=part), **ROLES, cache_bytes=ROW_BYTES * (part + 20) * cache)


SIZES = [{"batch_size": 4}, {"batch_tokens": 50}]


@pytest.mark.parametrize("size", SIZES)
def test_an_epoch_reads_each_block_once(tmp_path, size):
    lazy = many(tmp_path)
    kept, blocks = store(lazy), len(store(lazy).cuts) - 1
    assert lazy.blocks is not None and blocks == 40
    orders = [plan(lazy.lengths, 3, 1, **size, blocks=lazy.blocks), by_length(lazy.lengths, **size, blocks=lazy.blocks)]
    for order in orders:
        assert sorted(np.concatenate(order).tolist()) == list(range(len(lazy)))
        kept._start(kept._rows)
        most = 0
        for index in order:
            lazy.gather(index)
            most = max(most, kept.kept_bytes)
        assert blocks == kept.decoded and most <= kept.cache_bytes
    kept._start(kept._rows)
    for index in plan(lazy.lengths, 3, 1, **size)[:20]:
        lazy.gather(index)
    assert kept.decoded > blocks  # what a plan that knows no blocks costs


@pytest.mark.parametrize("size", SIZES)
def test_a_part_of_the_series_reads_each_block_once(tmp_path, size):
    lazy = many(tmp_path)
    part = lazy.select(np.random.default_rng(0).random(len(lazy)) < 0.15)
    assert part.blocks is not None and part.blocks.of.max() == 39
    store(lazy)._start(None)
    for index in plan(part.lengths, 3, 1, **size, blocks=part.blocks):
        part.gather(index)
    assert store(part).decoded == 40


def test_what_fits_into_memory_is_shuffled_like_what_is_there(tmp_path):
    assert SeriesDataset.open(write(tmp_path, table()), **ROLES).blocks is None
    assert SeriesDataset.from_frame(table(), **ROLES).blocks is None


BLOCKS = st.tuples(
    st.lists(st.tuples(st.integers(1, 30), st.integers(0, 5)), min_size=1, max_size=80),
    st.lists(st.integers(1, 400), min_size=6, max_size=6),
    st.integers(1, 900),
)


@given(
    drawn=BLOCKS,
    size=st.one_of(
        st.integers(1, 20).map(lambda n: {"batch_size": n}), st.integers(1, 90).map(lambda n: {"batch_tokens": n})
    ),
    seed=st.integers(-5, 2**64),
    epoch=st.integers(0, 50),
)
@settings(max_examples=80, deadline=None)
def test_a_plan_by_blocks_covers_each_example_once_within_its_budget(drawn, size, seed, epoch):
    examples, rows, window = drawn
    lengths, of = np.array(examples).T
    blocks = Blocks(of, np.array(rows), window)
    batches = plan(lengths, seed, epoch, **size, blocks=blocks)
    for order in (batches, by_length(lengths, **size, blocks=blocks)):
        assert sorted(np.concatenate(order).tolist()) == list(range(len(lengths)))
        for batch in order:
            if "batch_size" in size:
                assert 1 <= len(batch) <= size["batch_size"]
            else:
                assert len(batch) == 1 or len(batch) * lengths[batch].max() <= size["batch_tokens"]
    again = plan(lengths, seed, epoch, **size, blocks=blocks)
    assert [b.tolist() for b in again] == [b.tolist() for b in batches]


def test_windows_by_hand():
    blocks = Blocks(np.array([0, 0, 1, 2, 3]), np.array([10, 30, 10, 10]), 20)
    key = np.array([2, 1, 0, 5, 4])

    def windows(order):
        return [window.tolist() for window in blocks.windows(np.array(order), key)]

    assert windows([0, 1, 2, 3]) == [[2, 1, 0], [4, 3]]  # from rows 0 and 10; from 40 and 50
    assert windows([3, 2, 1, 0]) == [[4, 3], [2], [1, 0]]  # from rows 0 and 10; from 20; from 50


def test_plans_by_blocks_are_shuffled_anew_and_hold_little_padding():
    draw = np.random.default_rng(0)
    lengths = np.maximum(1, draw.lognormal(4, 1, 20_000)).astype(int)
    of = np.arange(20_000) // 500
    blocks = Blocks(of, np.bincount(of, lengths).astype(int), int(lengths.sum()) // 6)
    batches = [plan(lengths, *key, batch_tokens=4096, blocks=blocks) for key in ((0, 0), (0, 1), (1, 0))]
    assert padding_waste(lengths, batches[0]) < 0.05
    first = [order[0].tolist() for order in batches]
    assert first[0] != first[1] != first[2] != first[0]
    flat = np.concatenate(batches[0])
    assert np.unique(of[flat[:2000]]).size > 5  # several blocks at a time
    assert abs(np.corrcoef(of[flat], np.arange(len(flat)))[0, 1]) < 0.4  # in no order of the file
    fixed = by_length(lengths, batch_tokens=4096)
    assert np.array_equal(np.concatenate(fixed), np.argsort(lengths, kind="stable"))


def test_a_sample_is_bounded_and_pure(tmp_path):
    lazy = many(tmp_path)
    store(lazy)._start(None)
    some = lazy.sample(2000, parts=8)
    assert store(lazy).decoded == 8 and isinstance(some.times, np.ndarray)
    assert 2000 <= len(some.times) < 2000 + 20
    equal(some, lazy.sample(2000, parts=8))
    from_blocks = np.unique(lazy._view.block[np.isin(lazy.ids, some.ids)])
    assert len(from_blocks) == 8 and from_blocks[-1] > 15  # not only the head of the file
    assert not np.array_equal(some.ids[:5], lazy.sample(2000, parts=8, seed=1).ids[:5])
    one = int(np.flatnonzero(lazy.ids == some.ids[3])[0])
    assert np.array_equal(lazy[one].values, some[3].values)
    made, whole = Preprocessor.fit(lazy.select(np.arange(1500))), Preprocessor.fit(lazy.load())
    assert np.allclose(made.values.mean, whole.values.mean, rtol=0.05)
    assert made.positions.unit == pytest.approx(whole.positions.unit, rel=0.05)


def test_the_last_used_blocks_are_kept(tmp_path):
    lazy = many(tmp_path, cache=2)
    blocks = [int(np.flatnonzero(lazy._view.block == k)[0]) for k in range(3)]
    for k, decoded in [(0, 1), (1, 2), (0, 2), (2, 3), (0, 3), (1, 4)]:
        lazy.gather(np.array([blocks[k]]))
        assert store(lazy).decoded == decoded


def test_threads_share_a_store(tmp_path):
    lazy = many(tmp_path, cache=3)
    full = lazy.load()
    draws = [np.random.default_rng(i).integers(0, len(lazy), 30) for i in range(60)]
    with ThreadPoolExecutor(8) as pool:
        for index, (times, channels, values) in zip(draws, pool.map(lazy.gather, draws), strict=True):
            wanted = full.gather(index)
            assert np.array_equal(times, wanted[0]) and np.array_equal(values, wanted[2])
            assert np.array_equal(channels, wanted[1])
        assert store(lazy).kept_bytes <= store(lazy).cache_bytes
        store(lazy)._start(None)
        list(pool.map(lambda i: lazy[0], range(50)))
    assert store(lazy).decoded == 1  # whoever comes second waits


def test_copies_open_the_file_anew(tmp_path):
    rows = table()
    path = write(tmp_path, rows)
    lazy = SeriesDataset.open(path, **ROLES)
    part = lazy.select([4, 1])
    text = pickle.dumps((lazy, part))
    assert len(text) < 10_000 + lazy.offsets.nbytes
    again, other = pickle.loads(text)
    equal(again, lazy), equal(other, part)
    assert store(again) is store(other) is not store(lazy) and again.fingerprint() == lazy.fingerprint()
    equal(copy.deepcopy(part), part)
    write(tmp_path, table(seed=1))
    with refuses("stars.parquet", "not the one that was opened"):
        np.asarray(pickle.loads(text)[0].times)


def test_fingerprints(tmp_path):
    path = write(tmp_path, table())
    lazy = SeriesDataset.open(path, **ROLES)
    assert SeriesDataset.open(path, **ROLES).fingerprint() == lazy.fingerprint()
    moved = path.rename(tmp_path / "other.parquet")
    assert SeriesDataset.open(moved, **ROLES).fingerprint() == lazy.fingerprint()
    others = [
        lazy.select([0, 1]),
        lazy.select([1, 0]),
        SeriesDataset.open(moved, **{**ROLES, "values": ["err", "flux"]}),
        SeriesDataset.open(moved, **{**ROLES, "values": "flux"}),
        SeriesDataset.open(moved, **{**ROLES, "values": "flux", "time": "err"}),
        SeriesDataset.open(moved, **ROLES, channel_names=[2, 1, 0]),
        SeriesDataset.open(write(tmp_path, table(seed=1)), **ROLES),
        SeriesDataset.open(write(tmp_path, table(), part=8), **ROLES),
        SeriesDataset.from_frame(table(), **ROLES),
    ]
    assert len({lazy.fingerprint(), *(other.fingerprint() for other in others)}) == 10


def test_training_is_the_same_as_in_memory(tmp_path):
    from rotarymae.tasks.predict import embed
    from rotarymae.tasks.pretrain_finetune import Settings, pretrain
    from rotarymae.training.config import TrainConfig

    rows = table(np.random.default_rng(0).integers(2, 15, 60))
    path = write(tmp_path, rows, part=50)
    config = TrainConfig(epochs=2, batch_size=None, batch_tokens=100, min_steps=0)
    how = Settings(embed_dim=24, num_heads=2, depth=1, pretrain=config, decoder_embed_dim=24, decoder_num_heads=2)
    data, lazy = SeriesDataset.from_frame(rows, **ROLES), SeriesDataset.open(path, **ROLES)
    tight = SeriesDataset.open(path, **ROLES, cache_bytes=200 * ROW_BYTES)
    assert lazy.blocks is None and tight.blocks is not None
    trained = [pretrain(d.select(np.arange(50)), how, validation=d.select(np.arange(50, 60))) for d in (data, lazy)]
    for one, other in zip(*(t.model.state_dict().values() for t in trained), strict=True):
        assert one.equal(other)
    blocks = len(store(tight).cuts) - 1
    found = [embed(trained[0].directory, d, config=config) for d in (data, lazy, tight)]
    assert np.array_equal(found[0], found[1]) and np.allclose(found[0], found[2], atol=1e-5)
    assert store(tight).decoded <= 2 * blocks  # to check it, and to embed it
    store(tight)._start(None)
    by_parts = pretrain(tight, how, validation=tight)
    assert store(tight).decoded <= 7 * blocks  # scalers and checks, 2 epochs of training and of validation
    assert store(tight).kept_bytes <= 200 * ROW_BYTES
    assert not by_parts.model.encoder.state_dict()["cls_token"].equal(
        trained[0].model.encoder.state_dict()["cls_token"]
    )


# ── what is refused ─────────────────────────────────────────────────────────────────────────────────────────────────


def replaced(row, **cells):
    rows = table()
    for name, cell in cells.items():
        column = rows[name].to_pylist()
        column[row] = cell
        rows = rows.set_column(rows.schema.get_field_index(name), name, pa.array(column, rows.schema.field(name).type))
    return rows


@pytest.mark.parametrize("kind", ["parquet", "uncompressed"])
@pytest.mark.parametrize(
    ("row", "cells", "parts"),
    [
        (20, {"flux": None}, ("rows 18 to 20", "'flux' has 1 missing", "series 24", "Drop those rows and write")),
        (20, {"err": np.nan}, ("'err' has 1 missing", "series 24")),
        (45, {"err": -np.inf}, ("'err' is infinite", "series 31")),
        (45, {"mjd": np.nan}, ("'mjd' is missing", "series 31")),
        (45, {"mjd": 1.0}, ("series 31 at time 1", "comes after a later", "sort('star', 'mjd')")),
    ],
)
def test_numbers_are_refused_when_their_block_is_read(tmp_path, kind, row, cells, parts):
    lazy = SeriesDataset.open(write(tmp_path, replaced(row, **cells), kind), **ROLES)
    assert len(lazy[0].times) == 5  # another block
    for _ in range(2):
        with refuses("stars.", *parts):
            lazy.load()


def test_duplicates_and_unknown_channels_are_refused_when_read(tmp_path):
    rows = table(text=True)
    twice = pa.concat_tables([rows.slice(0, 20), rows.slice(19)])
    with refuses("series 'star 21' at time", "has 2 observations (1 rows too many in all). Merge them"):
        SeriesDataset.open(write(tmp_path, twice), **ROLES).load()
    with refuses("rows 0 to 17", "column 'band': channel 'i'", "is not known; known channels are 'g', 'r'"):
        SeriesDataset.open(write(tmp_path, rows), **ROLES, channel_names=["g", "r"]).load()
    with refuses("column 'band': channel", "known channels are 0, 1"):
        SeriesDataset.open(write(tmp_path, rows), **ROLES, channel_names=[0, 1]).load()


@pytest.mark.parametrize("kind", ["parquet", "uncompressed"])
def test_series_whose_rows_are_apart_are_refused(tmp_path, kind):
    rows = table()
    apart = pa.concat_tables([rows.slice(5), rows.slice(0, 5)])
    # The last rows again under the first id: rows 48 to 52.
    again = apart.set_column(0, "star", pa.array([*apart["star"].to_pylist()[:48], *[10] * 5]))
    with refuses("stars.", "series 10", "row 0 and again in row 48", "sort('star')"):
        SeriesDataset.open(write(tmp_path, again, kind), **ROLES)
    path = write(tmp_path, apart, kind)
    assert SeriesDataset.open(path, **ROLES).ids.tolist() == [10, 17, 24, 31, 38, 3]  # together is enough


@pytest.mark.parametrize("kind", ["parquet", "uncompressed"])
@pytest.mark.parametrize(
    ("cells", "roles", "parts"),
    [
        ({"star": None}, {}, ("counted from row 14", "'star' is missing", "the first in row 6")),
        ({"band": None}, {}, ("counted from row 14", "'band' is missing", "the first in row 6")),
        ({}, {"time": "mdj"}, ("time column 'mdj' is missing.", "Did you mean 'mjd'?", "stars.")),
        ({}, {"values": "star", "id": "star"}, ("'star' is given twice",)),
        ({}, {"channel": None, "channel_names": [1]}, ("channel_names 1 need a channel",)),
        ({}, {"channel_names": [1, 1]}, ("names a channel twice",)),
        ({}, {"cache_bytes": 100}, ("rows", "cache_bytes is 100", "row groups of about a million")),
    ],
)
def test_files_are_refused_at_once(tmp_path, monkeypatch, kind, cells, roles, parts):
    monkeypatch.setattr("rotarymae.series.store.SCAN", 7)
    with refuses(*parts):
        SeriesDataset.open(write(tmp_path, replaced(20, **cells), kind), **{**ROLES, **roles})


def test_columns_of_a_wrong_kind_are_refused_at_once(tmp_path):
    path = write(tmp_path, table(text=True))
    with refuses("column 'star' is not numeric but"):
        SeriesDataset.open(path, id="band", time="mjd", values="star")
    with refuses("time column 'star' holds text"):
        SeriesDataset.open(path, id="band", time="star", values="flux")


def test_files_that_are_none_are_refused(tmp_path):
    path = write(tmp_path, table())
    (tmp_path / "half.parquet").write_bytes(path.read_bytes()[:-20])
    with pa.OSFile(str(tmp_path / "stream.arrow"), "wb") as file, pa.ipc.new_stream(file, table().schema) as stream:
        stream.write_table(table())
    write(tmp_path, table().slice(0, 0)).rename(tmp_path / "none.parquet")
    (tmp_path / "stars.csv").write_text("a,b\n")
    (tmp_path / "folder.parquet").mkdir()
    for name, *parts in [
        ("half.parquet", "cannot be opened as parquet", "complete?"),
        ("stream.arrow", "cannot be opened as arrow", "not the stream format"),
        ("none.parquet", "no rows", "'star'"),
        ("stars.csv", "only Parquet and Arrow", "from_frame"),
        ("gone.parquet", "is no file"),
        ("folder.parquet", "is no file"),
    ]:
        with refuses(name, *parts):
            open_rows(tmp_path / name)


def test_indices_that_cannot_be_are_refused(tmp_path):
    lazy = SeriesDataset.open(write(tmp_path, table()), **ROLES)
    with pytest.raises(IndexError, match="53 to 53 of 53"):
        lazy.times[53]
    with refuses("slice or integers", "bool"):
        lazy.times[np.ones(53, bool)]
    with refuses("series 6 does not exist"):
        lazy.select([6])
    assert lazy.times[2] == lazy.times[np.array([2])][0] and lazy.values[2].shape == (2,)
    assert lazy.values.shape == (53, 2) and lazy.values.ndim == 2 and len(lazy.times[:0]) == 0


def test_a_whole_column_that_is_too_large_is_refused(tmp_path):
    lazy = many(tmp_path, cache=3)
    with refuses("the whole column 'times' of stars.parquet", "bytes", "sample()"):
        np.asarray(lazy.times)
    assert len(lazy.load().times) == len(lazy.times)


def test_a_file_sorted_as_the_message_says_opens(tmp_path):
    rows = table()
    mixed = rows.take(pa.array(np.random.default_rng(0).permutation(len(rows))))
    path = write(tmp_path, mixed)
    with refuses("not together", "scan_parquet(old).sort('star').sink_parquet(new)"):
        SeriesDataset.open(path, **ROLES)
    pl.scan_parquet(path).sort("star", "mjd").sink_parquet(tmp_path / "new.parquet")
    equal(SeriesDataset.open(tmp_path / "new.parquet", **ROLES), SeriesDataset.from_frame(rows, **ROLES))
