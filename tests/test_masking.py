"""Masks hide what they say and never padding; splits lose nothing; noise is a pure function of its key."""

from math import ceil
from typing import get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from conftest import place_rows, random_rows, random_tokens, refuses
from rotarymae.counter_rng import counter_uniform
from rotarymae.masking import MASKINGS, Masking, split
from rotarymae.tokens import Tokens
from rotarymae.training.fit_config import FitConfig, MaskingStrategy

LENGTHS = st.lists(st.integers(1, 9), min_size=1, max_size=5)
PLACEMENTS = st.sampled_from(["front", "middle", "behind", "random"])


def ragged(lengths, placement="random", seed=0):
    return place_rows(random_rows(lengths), max(lengths) + 2, placement, seed)[0]


def table(entries, padding=None):
    """A batch of one row from (time, channel) pairs."""
    at = torch.tensor([entries], dtype=torch.float32)
    return Tokens(torch.zeros(1, len(entries), 1), at, None if padding is None else torch.tensor([padding]))


@pytest.mark.parametrize("kind", ["ratio", "blocks"])
@given(lengths=LENGTHS, ratio=st.floats(0.01, 0.99), placement=PLACEMENTS, seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_ratio_hides_the_ceiling_leaves_one_visible_and_never_hides_padding(kind, lengths, ratio, placement, seed):
    tokens = ragged(lengths, placement, seed)
    mask = Masking(kind, ratio)(tokens)
    assert not (mask & ~tokens.real).any()
    assert mask.sum(1).tolist() == [min(ceil(ratio * n - 1e-9), n - 1) for n in lengths]
    assert (tokens.real & ~mask).any(1).all()


def test_blocks_are_of_one_length_in_time_or_in_a_channel():
    """200 rows of two channels at 30 times; hidden are runs in the order of time or, in other rows, of one channel."""
    times, channels = np.repeat(np.arange(30.0), 2), np.tile([1.0, 2.0], 30)
    shuffled = np.random.default_rng(0).permutation(60)
    at = torch.tensor(np.stack([times, channels], -1)[shuffled], dtype=torch.float32).expand(200, -1, -1)
    mask = Masking("blocks", 0.5)(Tokens(torch.zeros(200, 60, 1), at), counter_uniform(0, 0, np.arange(200))).numpy()
    by_time, by_channel = (
        mask[:, np.lexsort(keys)]
        for keys in ((channels[shuffled], times[shuffled]), (times[shuffled], channels[shuffled]))
    )

    def runs(ordered):
        return (np.diff(ordered.astype(int), axis=1, prepend=0) == 1).sum(1)

    fewest = np.minimum(runs(by_time), runs(by_channel))
    assert (fewest == 1).sum() > 10 and (fewest > 10).sum() > 20, "single blocks and single tokens"
    in_time, in_channel = (runs(by_time) < runs(by_channel)).sum(), (runs(by_time) > runs(by_channel)).sum()
    assert in_time > 40 and in_channel > 40
    assert mask[:, np.argmax(times[shuffled])].any(), "the end is hidden, too"


def test_a_ratio_is_not_rounded_up():
    # In float32, 0.3 · 100 is 30.000002, and its ceiling 31.
    for n, ratio, wanted in [
        (100, 0.3, 30),
        (50, 0.3, 15),
        (4, 0.75, 3),
        (10, 0.7, 7),
        (100, 0.29, 29),
        (1, 0.5, 0),
        (2, 0.99, 1),
        (3, 0.01, 1),
    ]:
        assert Masking("ratio", ratio)(random_tokens(3, n)).sum(1).tolist() == [wanted] * 3


def test_ties_in_the_noise_change_no_count():
    tokens = ragged([5, 3, 1])
    constant = lambda n: torch.full((3, n), 0.5)  # noqa: E731
    mask = Masking("ratio", 0.5)(tokens, constant)
    assert mask.sum(1).tolist() == [3, 2, 0] and not (mask & ~tokens.real).any()


def test_a_range_of_ratios_is_honoured_and_used():
    tokens = random_tokens(400, 20)
    counts = Masking("ratio", (0.3, 0.8))(tokens).sum(1)
    assert set(counts.tolist()) == set(range(7, 17))  # ceil(0.3 · 20 + a little) to ceil(0.8 · 20)
    assert Masking("ratio", (0.5, 0.5))(tokens).sum(1).unique().tolist() == [10]


def test_which_tokens_are_hidden_is_uniform():
    often = Masking("ratio", 0.5)(random_tokens(4000, 8), counter_uniform(0, 0, np.arange(4000))).double().mean(0)
    assert (often - 0.5).abs().max() < 5 * (0.25 / 4000) ** 0.5


def grouped(tokens, mask, axes):
    """{group: set of mask values of its tokens} of the only row."""
    found = {}
    for at, hidden, real in zip(tokens.positions[0].tolist(), mask[0].tolist(), tokens.real[0].tolist()):
        if real:
            found.setdefault(tuple(at[axis] for axis in axes), set()).add(hidden)
    return found


@given(
    entries=st.lists(st.tuples(st.integers(0, 4), st.integers(1, 3)), min_size=1, max_size=12),
    ratio=st.floats(0.05, 0.95),
    blanks=st.integers(0, 3),
    seed=st.integers(0, 99),
)
@settings(max_examples=60, deadline=None)
def test_rows_and_channels_hide_whole_groups_only(entries, ratio, blanks, seed):
    # Padding in the middle, at positions that coincide with real ones once set to zero.
    cut = len(entries) // 2
    padding = [False] * cut + [True] * blanks + [False] * (len(entries) - cut)
    tokens = table(entries[:cut] + [(0, 0)] * blanks + entries[cut:], padding)
    noise = counter_uniform(seed, 0, [0])
    for mask, axes in [
        (Masking("rows", ratio)(tokens, noise), (0,)),
        (Masking("channels", ratio)(tokens, noise), (1,)),
    ]:
        groups = grouped(tokens, mask, axes)
        assert all(len(values) == 1 for values in groups.values())
        hidden = sum(True in values for values in groups.values())
        assert hidden == min(ceil(ratio * len(groups) - 1e-9), len(groups) - 1)
        assert not (mask & ~tokens.real).any()


def test_the_future_by_hand():
    """Half of the span from the first to the last real token, whatever their order; of one time nothing."""
    at = torch.tensor([[3.0, 10.0, 0.0, 5.0, 6.0, 90.0], [7.0, 7.0, 0.0, 0.0, 0.0, 0.0]])[..., None]
    padding = torch.tensor([[False] * 5 + [True], [False] * 2 + [True] * 4])
    mask = Masking("future", 0.5)(Tokens(torch.zeros(2, 6, 1), at, padding))
    assert mask.tolist() == [[False, True, False, False, True, False], [False] * 6]


SHARES = ["ratio", "blocks", "rows", "channels", "future"]
EXAMPLES = [
    Masking("ratio", 0.4),
    Masking("ratio", (0.2, 0.6)),
    Masking("blocks", (0.2, 0.6)),
    Masking("rows", 0.4),
    Masking("channels", (0.2, 0.6)),
    Masking("future", (0.2, 0.6)),
]


def test_every_strategy_is_listed_by_its_name():
    assert {one.kind for one in EXAMPLES} == set(MASKINGS) == set(SHARES)


@pytest.mark.parametrize("kind", SHARES)
def test_a_range_of_shares_gives_each_row_a_share_of_its_own(kind):
    """Twenty times × twenty channels per row, so that a share shows in the number of tokens, whatever is grouped."""
    grid = torch.cartesian_prod(torch.arange(20.0), torch.arange(1.0, 21.0)).expand(60, -1, -1)
    tokens = Tokens(torch.zeros(60, 400, 1), grid)
    share = Masking(kind, (0.1, 0.5))(tokens, counter_uniform(0, 0, np.arange(60))).double().mean(1)
    assert share.min() >= 0.1 and share.max() <= 0.5
    assert share.min() < 0.2 and share.max() > 0.4 and len(share.unique()) > 5
    assert Masking(kind, (0.3, 0.3))(tokens).double().mean(1).allclose(torch.tensor(0.3).double())


@pytest.mark.parametrize("name", sorted({*get_args(MaskingStrategy)} - {"auto"}))
def test_what_the_command_calls_masking_and_mask_ratio_is_what_hides(name):
    assert FitConfig(masking=name, mask_ratio=(0.1, 0.5)).strategy("observations") == Masking(name, ratio=(0.1, 0.5))
    assert FitConfig(masking=name, mask_ratio=0.4).strategy("observations") == Masking(name, ratio=0.4)


def test_by_itself_masking_hides_stretches_of_series_and_single_patches_of_pictures():
    assert FitConfig().strategy("observations") == Masking("blocks", (0.3, 0.8))
    assert FitConfig().strategy("patches") == Masking("ratio", (0.3, 0.8))


@pytest.mark.parametrize("kind", SHARES)
def test_with_a_phase_rows_of_equal_length_hide_equal_shares(kind):
    grid = torch.cartesian_prod(torch.arange(20.0), torch.arange(1.0, 21.0)).expand(5, -1, -1)
    tokens = Tokens(torch.zeros(5, 400, 1), grid)
    shares = {
        phase: Masking(kind, (0.1, 0.9))(tokens, None, phase).sum(1).unique().tolist() for phase in (0.0, 0.2, 0.4)
    }
    assert all(len(counts) == 1 for counts in shares.values()) and len({*map(tuple, shares.values())}) == 3


@given(lengths=LENGTHS, placement=PLACEMENTS, seed=st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_split_is_an_exact_partition_of_rows_of_unequal_length(lengths, placement, seed):
    tokens = ragged([*lengths, 3], placement, seed)
    draw = torch.Generator().manual_seed(seed)
    mask = (torch.rand(tokens.real.shape, generator=draw) < 0.5) & tokens.real
    for i in range(tokens.batch):  # at least one visible a row
        mask[i, tokens.real[i].nonzero()[0]] = False
    mask[-1, tokens.real[-1].nonzero()[-1]] = True
    for part, keep in zip(split(tokens, mask), (tokens.real & ~mask, mask), strict=True):
        counts = keep.sum(1)
        assert part.length == counts.max() and (part.padding is None) == bool((counts == counts.max()).all())
        for i, count in enumerate(counts.tolist()):
            assert part.real[i].tolist() == [True] * count + [False] * (part.length - count)
            assert part.values[i, :count].equal(tokens.values[i, keep[i]])
            assert part.positions[i, :count].equal(tokens.positions[i, keep[i]])


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda t: split(t, torch.zeros(2, 5, dtype=torch.bool)), ("torch.bool (2, 5)", "(2, 4)")),
        (lambda t: split(t, torch.zeros(2, 4)), ("torch.float32 (2, 4)", "bool")),
        (lambda t: split(t, ~t.real), ("hides 2 padding tokens", "mask & tokens.real")),
        (lambda t: split(t, t.real & torch.tensor([[False], [True]])), ("hides all tokens of row 1",)),
        (lambda t: split(t, torch.zeros(2, 4, dtype=torch.bool)), ("hides nothing", "hide a token")),
        (lambda t: Masking("ratio", 0.0), ("mask_ratio is 0.0", "more than 0")),
        (lambda t: Masking("rows", 1.0), ("mask_ratio is 1.0", "less than 1")),
        (lambda t: Masking("ratio", (0.8, 0.3)), ("mask_ratio is (0.8, 0.3)", "(0.3, 0.8)")),
        (lambda t: Masking("channels", (0.5, 1.5)), ("mask_ratio is (0.5, 1.5)", "less than 1")),
        (lambda t: Masking("ratio", (0.1, 0.2, 0.3)), ("mask_ratio is (0.1, 0.2, 0.3)", "(0.3, 0.8)")),
        (lambda t: Masking("ratio", (0.3, None)), ("mask_ratio is (0.3, None)", "one share")),
        (lambda t: Masking("ratio", (0.3, [0.8])), ("mask_ratio is (0.3, [0.8])", "one share")),
        (lambda t: Masking("ratio", "0.5"), ("mask_ratio is '0.5'", "one share")),
        (lambda t: Masking("channels", 0.5)(t), ("masking 'channels'", "no axis of channels", "only that of time")),
        (lambda t: Masking("lumps"), ("'lumps'", "'ratio', 'blocks', 'rows', 'channels', 'future'")),
        (lambda t: Masking("row"), ("'row'", "Did you mean 'rows'?")),
    ],
)
def test_refusals_give_the_numbers(call, parts):
    tokens = ragged([2, 2], "behind")
    assert tokens.length == 4
    with refuses(*parts):
        call(tokens.select(torch.tensor([[0, 1, 2, 2], [0, 1, 0, 1]])))


# ── noise ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(
    seed=st.integers(-(2**63), 2**64),
    epoch=st.integers(-1, 10**6),
    ids=st.lists(st.integers(0, 2**40), min_size=1, max_size=6, unique=True),
    n=st.integers(1, 7),
)
@settings(max_examples=60, deadline=None)
def test_rows_are_a_pure_function_of_their_key_whatever_the_batch(seed, epoch, ids, n):
    together = counter_uniform(seed, epoch, ids)
    first, second = together(n), together(n)
    for i, one in enumerate(ids):
        alone = counter_uniform(seed, epoch, [one])
        assert alone(n)[0].equal(first[i]) and alone(n)[0].equal(second[i])
        at_once = counter_uniform(seed, epoch, np.array([one]))(2 * n)[0]
        assert at_once.equal(torch.cat([first[i], second[i]]))
    assert counter_uniform(seed, epoch, ids[::-1])(n).flip(0).equal(first)


def test_rows_differ_between_seeds_epochs_and_series():
    draws = [
        counter_uniform(seed, epoch, [series])(8)
        for seed in (0, 1, 2)
        for epoch in (-1, 0, 1, 2)
        for series in (0, 1, 2, 10**9)
    ]
    assert len({tuple(draw.flatten().tolist()) for draw in draws}) == 48


def test_rows_are_uniform_and_unrelated():
    draws = torch.cat(
        [counter_uniform(7, epoch, np.arange(500))(40)[None] for epoch in range(10)]
    ).double()  # [10, 500, 40]
    flat = draws.flatten()
    assert flat.min() >= 0 and flat.max() < 1
    n = len(flat)
    assert abs(flat.mean() - 0.5) < 5 * (1 / 12 / n) ** 0.5
    assert abs(flat.var() - 1 / 12) < 5 * (1 / 180 / n) ** 0.5
    counts = torch.histc(flat, 64, 0, 1)
    chi = ((counts - n / 64) ** 2 / (n / 64)).sum()
    assert 20 < chi < 120  # 63 degrees of freedom
    centred = draws - 0.5
    for one, other in [  # neighbours in epoch, series and count
        (centred[1:], centred[:-1]),
        (centred[:, 1:], centred[:, :-1]),
        (centred[..., 1:], centred[..., :-1]),
    ]:
        assert abs((one * other).mean() * 12) < 5 / one.numel() ** 0.5


def test_the_default_draws_from_the_global_generator():
    tokens = random_tokens(2, 30)
    torch.manual_seed(3)
    first = Masking("ratio", 0.5)(tokens)
    assert not Masking("ratio", 0.5)(tokens).equal(first)
    torch.manual_seed(3)
    assert Masking("ratio", 0.5)(tokens).equal(first)


@pytest.mark.parametrize("masking", EXAMPLES, ids=lambda one: f"{one.kind}-{one.ratio}")
def test_masks_need_no_float64_on_an_accelerator(masking):
    """Apple's GPUs have none. Fake tensors know their device and type without having it."""

    class Float64OnCPU(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), named=None):
            made = function(*arguments, **(named or {}))
            assert not isinstance(made, torch.Tensor) or made.dtype != torch.float64 or made.device.type == "cpu"
            return made

    with FakeTensorMode(), Float64OnCPU():
        tokens = Tokens(torch.empty(3, 8, 1, device="meta"), torch.empty(3, 8, 2, device="meta"), check_values=False)
        mask = masking(tokens, lambda n: torch.empty(3, n), phase=0.3)
        assert (mask.shape, mask.dtype, mask.device.type) == ((3, 8), torch.bool, "meta")
