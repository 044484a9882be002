"""Batches: every example once, pure functions of (seed, epoch), little padding, and the tokens of their series."""

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import refuses
from rotarymae.batch import by_length, plan_batches
from rotarymae.masking import Masking
from rotarymae.preprocess import DatasetExamples, ObservationPreprocessor
from rotarymae.series.dataset import SeriesDataset

LENGTHS = st.lists(st.integers(1, 30), min_size=1, max_size=80).map(np.array)
SIZES = st.one_of(
    st.integers(1, 20).map(lambda n: {"batch_size": n}), st.integers(1, 90).map(lambda n: {"batch_tokens": n})
)


def ragged(lengths=(4, 1, 7, 3), channels=True, features=2, seed=0):
    draw = np.random.default_rng(seed)
    times = [59_000 + 10 * i + np.cumsum(draw.uniform(0.5, 2, n)) for i, n in enumerate(lengths)]
    values = [draw.normal(5, 3, (n, features)) for n in lengths]
    labels = [draw.choice(["g", "r", "i"], n) for n in lengths] if channels else None
    names = ["g", "r", "i"] if channels else None
    return SeriesDataset.from_arrays(times, values, labels, channel_names=names)


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


# ── the order ───────────────────────────────────────────────────────────────────────────────────────────────────────


@given(lengths=LENGTHS, size=SIZES, seed=st.integers(-5, 2**64), epoch=st.integers(0, 50))
@settings(max_examples=80, deadline=None)
def test_a_plan_covers_each_example_once_within_its_budget(lengths, size, seed, epoch):
    batches = plan_batches(lengths, seed, epoch, **size)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    for batch in batches:
        if "batch_size" in size:
            assert 1 <= len(batch) <= size["batch_size"]
        else:
            assert len(batch) == 1 or len(batch) * lengths[batch].max() <= size["batch_tokens"]


@pytest.mark.parametrize("size", [{"batch_size": 8}, {"batch_tokens": 400}])
def test_a_plan_is_a_pure_function_of_seed_and_epoch(size):
    lengths = np.random.default_rng(0).integers(1, 60, 300)
    first = plan_batches(lengths, 3, 5, **size)
    np.random.seed(99), torch.manual_seed(99)
    assert len(plan_batches(lengths, 3, 5, **size)) == len(first) and same(plan_batches(lengths, 3, 5, **size), first)
    flat = np.concatenate(first)
    for seed, epoch in [(3, 6), (4, 5)]:
        assert not np.array_equal(np.concatenate(plan_batches(lengths, seed, epoch, **size)), flat)


def test_batches_do_not_come_in_the_order_of_their_lengths():
    lengths = np.arange(1, 513)
    longest = [lengths[batch].max() for batch in plan_batches(lengths, 0, 0, batch_size=8)]
    assert abs(np.corrcoef(longest, np.arange(len(longest)))[0, 1]) < 0.5


def reference(lengths, batch_size=None, batch_tokens=None):
    """As said: take the next example while the batch stays within its budget."""
    batches, now = [], []
    for i, length in enumerate(lengths):
        with_it = [*now, i]
        fits = len(with_it) <= (batch_size or np.inf)
        fits &= len(with_it) * max(length, *(lengths[j] for j in with_it)) <= (batch_tokens or np.inf)
        if now and not fits:
            batches.append(now)
            with_it = [i]
        now = with_it
    return [*batches, now]


@given(lengths=LENGTHS, size=SIZES)
@settings(max_examples=100, deadline=None)
def test_by_length_is_the_straightforward_cut(lengths, size):
    order = np.argsort(lengths, kind="stable")
    expected = [order[batch].tolist() for batch in reference(lengths[order].tolist(), **size)]
    assert [batch.tolist() for batch in by_length(lengths, **size)] == expected


# ── one batch ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("channels", [True, False])
@pytest.mark.parametrize("origin", ["first", "zero"])
def test_tokens_are_made_as_in_a_loop_over_series(channels, origin):
    data = ragged(channels=channels)
    made = ObservationPreprocessor.fit(data, origin=origin, channel_spacing=3.0, transforms={"value_0": "asinh"})
    index = np.array([2, 0, 1])
    tokens = DatasetExamples(data, made).batch(index, None).inputs
    assert tokens.values.shape == (3, 7, 2) and tokens.values.dtype == tokens.positions.dtype == torch.float32
    for i, s in enumerate(index):
        one, n = data[int(s)], data.lengths[s]
        which = np.zeros(n, int) if one.channels is None else one.channels
        start = one.times[0] if origin == "first" else 0.0
        wanted = made.values.transform(one.values, which)
        at = (one.times - start) / made.positions.unit
        assert tokens.real[i].tolist() == [True] * n + [False] * (7 - n)
        assert np.allclose(tokens.values[i, :n], wanted, rtol=1e-6, atol=1e-6)
        assert np.allclose(tokens.positions[i, :n, 0], at, rtol=1e-6)
        if channels:
            assert tokens.positions[i, :n, 1].tolist() == (3.0 * (which + 1)).tolist()
        assert tokens.axes == (2 if channels else 1)
        assert not tokens.values[i, n:].any() and not tokens.positions[i, n:].any()


def test_rows_of_equal_length_have_no_padding_and_a_row_does_not_depend_on_its_batch():
    data = ragged((4, 4, 6, 4))
    made = ObservationPreprocessor.fit(data)
    even, uneven = (
        DatasetExamples(data, made).batch(np.array([3, 0, 1]), None).inputs,
        DatasetExamples(data, made).batch(np.array([2, 3]), None).inputs,
    )
    assert even.padding is None and uneven.padding is not None
    assert even.values[0].equal(uneven.values[1, :4]) and even.positions[0].equal(uneven.positions[1, :4])


def test_place_by_hand():
    made = ObservationPreprocessor.fit(ragged(), time_unit=2.0, channel_spacing=0.5)
    times, origins = torch.tensor([[10.0, 14.0], [5.0, 3.0]]).double(), torch.tensor([[10.0], [3.0]]).double()
    at = made.positions_of(times, torch.tensor([[0, 2], [1, 0]]), None, origins)
    assert at.tolist() == [[[0, 0.5], [2, 1.5]], [[1, 1.0], [0, 0.5]]]


def examples(**changes):
    data = ragged((9, 5, 7, 9, 6, 8))
    return DatasetExamples(data, ObservationPreprocessor.fit(data), **{"seed": 3, **changes})


def rows_of(batch):
    """Each series' real tokens, whatever the batch's padding."""
    parts = [batch.inputs] if batch.masked is None else [batch.inputs, batch.masked]
    return {
        int(s): [torch.cat([part.values[i], part.positions[i]], 1)[part.real[i]].tolist() for part in parts]
        for i, s in enumerate(batch.series)
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"masking": Masking("ratio", (0.3, 0.8))},
        {"masking": Masking("rows", 0.5)},
        {"drop": 0.6},
        {"noise": 0.3},
        {"drop": 0.6, "noise": 0.3, "masking": Masking("ratio", 0.4)},
    ],
)
def test_randomness_is_a_function_of_seed_epoch_and_series(changes):
    made = examples(**changes)
    together = rows_of(made.batch(np.array([0, 1, 2, 3]), 5))
    torch.manual_seed(77), np.random.seed(77)
    again = examples(**changes)
    assert rows_of(again.batch(np.array([0, 1, 2, 3]), 5)) == together
    assert rows_of(made.batch(np.array([0, 1, 2, 3]), 6)) != together
    assert rows_of(examples(**changes, seed=4).batch(np.array([0, 1, 2, 3]), 5)) != together
    held = rows_of(made.batch(np.array([0, 1]), None))
    assert rows_of(again.batch(np.array([0, 1]), None)) == held  # evaluation is fixed


def test_augmentation_is_off_in_evaluation():
    index = np.array([0, 1, 2])
    plain = rows_of(examples().batch(index, None))
    augmented = examples(drop=0.9, noise=1.0)
    assert rows_of(augmented.batch(index, None)) == plain
    assert rows_of(augmented.batch(index, 0)) != plain
    assert rows_of(examples().batch(index, 0)) == plain


def test_drop_leaves_a_subset_in_order_and_noise_has_its_size():
    data = ragged((400, 1, 2) + (50,) * 40, channels=False)
    made = DatasetExamples(data, ObservationPreprocessor.fit(data), drop=0.8)
    index = np.arange(len(data))
    before, after = rows_of(DatasetExamples(data, made.preprocessor).batch(index, 0)), rows_of(made.batch(index, 0))
    shares = []
    for s in index:
        kept = after[s][0]
        places = [before[s][0].index(token) for token in kept]
        assert places == sorted(set(places)) and kept
        shares.append(1 - len(kept) / len(before[s][0]))
    assert 0.25 < np.mean(shares[3:]) < 0.55 and np.max(shares) < 0.95 and np.std(shares[3:]) > 0.1
    noisy = DatasetExamples(data, made.preprocessor, noise=0.3).batch(index[:1], 0).inputs
    clean = DatasetExamples(data, made.preprocessor).batch(index[:1], 0).inputs
    assert noisy.positions.equal(clean.positions)
    assert (noisy.values - clean.values).std().item() == pytest.approx(0.3, rel=0.1)
    assert abs((noisy.values - clean.values).mean().item()) < 0.05


def test_drop_of_joined_times_leaves_out_values_too_and_does_not_carry_them_forward():
    times = np.arange(20.0)
    frame = {"id": ["a"] * 21, "time": [0.0, *times], "v": [5.0, *times], "c": ["rare"] + ["often"] * 20}
    data = SeriesDataset.from_frame(pa.table(frame), values=["v"], channel="c")
    preprocessor = ObservationPreprocessor.fit(data, join_times=True)
    rare, often = (data.channel_names.index(name) for name in ("rare", "often"))
    seen = []
    for epoch in range(60):
        batch = DatasetExamples(data, preprocessor, drop=0.9).batch(np.array([0]), epoch).inputs
        observed, recency = batch.values[0, :, 2:4], batch.values[0, :, 4:6]
        assert observed.shape[0] <= 20 and bool((observed[:, often] <= 1).all())
        there = bool(observed[:, rare].any())
        # What was left out is unknown from then on; what was kept is carried to every later time.
        assert bool((recency[:, rare] > 0).all()) == there and bool((recency[:, rare] > 0).any()) == there
        seen.append((there, float(observed[:, often].mean())))
    kept, shares = zip(*seen, strict=True)
    assert 10 < sum(kept) < 50  # dropped with its time or by itself
    assert min(shares) < 0.5 and max(shares) > 0.9  # of the times that are left, some lack the other channel's value
    plain = DatasetExamples(data, preprocessor, drop=0.9).batch(np.array([0]), None).inputs
    assert plain.length == 20 and bool(plain.values[0, :, 2 + often].all())


def test_masks_split_the_batch_and_targets_follow_their_series():
    made = examples(masking=Masking("ratio", 0.5))
    index = np.array([4, 1])
    batch = made.batch(index, 0)
    assert batch.masked.real.sum(1).tolist() == [3, 3] and batch.inputs.real.sum(1).tolist() == [3, 2]
    targets = np.arange(6) * 10
    assert examples(targets=targets).batch(index, 0).targets.tolist() == [40, 10]
    assert examples(targets=targets).batch(index, 0).masked is None
    moved = batch.to("cpu")
    assert moved.series is index and moved.masked.values.equal(batch.masked.values)


def test_examples_refuse_another_number_of_targets():
    with refuses("5 targets for 6 series"):
        examples(targets=np.zeros(5))


def test_examples_know_the_lengths_and_names_of_their_series():
    assert examples().lengths.tolist() == [9, 5, 7, 9, 6, 8]
    assert examples().names(np.array([4, 1])) == [str(name) for name in examples().dataset.ids[[4, 1]]]
