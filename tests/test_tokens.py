"""Tokens: what cannot be used is refused by its numbers, padding is never read, and rows keep their content."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import from_rows, random_rows, refuses
from rotarymae.tokens import Tokens, compact, pad_rows, round_up, rounding_step

NAN, INF = float("nan"), float("inf")


def zeros(*shape, dtype=torch.float32):
    return torch.zeros(*shape, dtype=dtype)


def with_number(shape, place, number):
    table = zeros(*shape)
    table[place] = number
    return table


NOTHING_REAL = torch.tensor([[False, True], [True, True], [True, True]])


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ((zeros(2, 3), zeros(2, 3, 1)), ("(2, 3)", "(2, 3, 1)", "[batch, tokens, features]")),
        ((zeros(2, 3, 1), zeros(2, 3)), ("(2, 3, 1)", "(2, 3)", "[batch, tokens, axes]")),
        ((zeros(2, 3, 1), zeros(2, 4, 1)), ("(2, 3)", "(2, 4)", "one position on every axis")),
        ((zeros(2, 3, 1), zeros(5, 3, 1)), ("(2, 3)", "(5, 3)")),
        ((zeros(0, 3, 1), zeros(0, 3, 1)), ("(0, 3, 1)", "hold nothing", "at least 1")),
        ((zeros(2, 0, 1), zeros(2, 0, 1)), ("(2, 0, 1)", "hold nothing")),
        ((zeros(2, 3, 0), zeros(2, 3, 1)), ("(2, 3, 0)", "hold nothing")),
        ((zeros(2, 3, 1), zeros(2, 3, 0)), ("(2, 3, 0)", "hold nothing")),
        ((zeros(2, 3, 1, dtype=torch.int64), zeros(2, 3, 1)), ("torch.int64", "torch.float32", ".float()")),
        ((zeros(2, 3, 1), zeros(2, 3, 1, dtype=torch.int32)), ("torch.float32", "torch.int32", ".float()")),
        ((np.zeros((2, 3, 1)), zeros(2, 3, 1)), ("values is a ndarray", "torch.as_tensor")),
        ((zeros(2, 3, 1), zeros(2, 3, 1), [[False] * 3] * 2), ("padding is a list", "torch.as_tensor")),
        ((zeros(2, 3, 1), zeros(2, 3, 1), zeros(2, 4).bool()), ("(2, 4)", "(2, 3)", "(batch, tokens)")),
        ((zeros(2, 3, 1), zeros(2, 3, 1), zeros(2, 3)), ("torch.float32", "bool", "True where there is no token")),
        ((zeros(3, 2, 1), zeros(3, 2, 1), NOTHING_REAL), ("row 1", "padding throughout", "2 such rows of 3")),
        (
            (with_number((2, 3, 2), (1, 2, 1), NAN), zeros(2, 3, 1)),
            ("values of row 1, token 2, column 1 is nan", "1 such numbers"),
        ),
        (
            (zeros(2, 3, 2), with_number((2, 3, 1), (0, slice(1, 3)), -INF)),
            ("positions of row 0, token 1, column 0 is -inf", "2 such numbers", "`padding`"),
        ),
    ],
)
def test_every_refusal_names_its_numbers(arguments, parts):
    with refuses(*parts):
        Tokens(*arguments)


def test_numbers_are_looked_at_only_when_asked():
    tokens = Tokens(torch.full((1, 2, 1), NAN), zeros(1, 2, 1), check_values=False)
    assert tokens.values.isnan().all()
    with refuses("(1, 2)", "(1, 3)"):  # shapes always
        Tokens(zeros(1, 2, 1), zeros(1, 3, 1), check_values=False)


def test_padding_is_set_to_zero_and_no_padding_becomes_none():
    values, positions = torch.ones(2, 2, 1), torch.ones(2, 2, 1)
    values[0, 1], positions[0, 1] = NAN, INF
    padding = torch.tensor([[False, True], [False, False]])
    tokens = Tokens(values, positions, padding)
    assert tokens.values.flatten().tolist() == [1, 0, 1, 1] and tokens.positions.flatten().tolist() == [1, 0, 1, 1]
    assert values[0, 1].isnan() and positions[0, 1].isinf()  # the caller's own are left alone
    assert tokens.real.tolist() == [[True, False], [True, True]]
    assert Tokens(zeros(2, 2, 1), zeros(2, 2, 1), zeros(2, 2).bool()).padding is None
    assert Tokens(zeros(2, 2, 1), zeros(2, 2, 1)).real.all()


def test_sizes_and_frozen():
    tokens = Tokens(zeros(2, 3, 4), zeros(2, 3, 5, dtype=torch.float64))
    assert (tokens.batch, tokens.length, tokens.features, tokens.axes) == (2, 3, 4, 5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        tokens.values = zeros(1)
    assert tokens.to("cpu").positions.dtype == torch.float64  # a move rounds nothing


def test_select_by_hand():
    values = torch.arange(6.0).reshape(2, 3, 1)
    tokens = Tokens(values, 10 + values, torch.tensor([[False, False, True], [False, False, False]]))
    chosen = tokens.select(torch.tensor([[1, 0], [2, 0]]))
    assert chosen.values.flatten().tolist() == [1, 0, 5, 3] and chosen.positions.flatten().tolist() == [11, 10, 15, 13]
    assert chosen.padding.tolist() == [[False, False], [False, False]]
    assert tokens.select(torch.tensor([[2], [0]])).padding.tolist() == [[True], [False]]
    given = tokens.select(torch.tensor([[2], [0]]), torch.tensor([[False], [True]]))
    assert given.padding.tolist() == [[False], [True]]


def test_compact_by_hand():
    values = torch.arange(8.0).reshape(2, 4, 1)
    tokens = Tokens(values, 10 + values, torch.tensor([[False, True, False, False], [False] * 4]))
    kept = compact(tokens, torch.tensor([[False, True, True, False], [True, False, True, True]]))  # 1 is padding
    assert kept.values[0, :1].flatten().tolist() == [2] and kept.values[1].flatten().tolist() == [4, 6, 7]
    assert kept.positions[0, 0] == 12 and kept.positions[1].flatten().tolist() == [14, 16, 17]
    assert kept.padding.tolist() == [[False, True, True], [False] * 3]
    even = compact(tokens, torch.tensor([[False, False, True, True], [True, False, False, True]]))
    assert even.padding is None and even.values.flatten().tolist() == [2, 3, 4, 7]
    lone = compact(tokens, torch.tensor([[False] * 4, [True, False, False, False]]))
    assert lone.padding.tolist() == [[True], [False]]
    with refuses("hold nothing"):
        compact(tokens, torch.zeros(2, 4, dtype=torch.bool))


@given(lengths=st.lists(st.integers(1, 6), min_size=1, max_size=5))
@settings(max_examples=25, deadline=None)
def test_padding_keeps_every_row(lengths):
    rows = random_rows(lengths, features=2, axes=3)
    tokens = from_rows(rows)
    assert tokens.values.shape == (len(lengths), max(lengths), 2) and tokens.positions.shape[2] == 3
    assert (tokens.padding is None) == (len(set(lengths)) == 1)
    for i, (values, positions) in enumerate(rows):
        assert tokens.values[i, : lengths[i]].equal(values) and tokens.positions[i, : lengths[i]].equal(positions)
        assert tokens.real[i].tolist() == [True] * lengths[i] + [False] * (max(lengths) - lengths[i])


@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor])
def test_pad_rows_by_hand(kind):
    flat = kind([[1, 2], [3, 4], [5, 6]])
    table, padding = pad_rows(flat, kind([1, 0, 2]))
    assert table.tolist() == [[[1, 2], [0, 0]], [[0, 0], [0, 0]], [[3, 4], [5, 6]]] and table.dtype == torch.int64
    assert padding.tolist() == [[False, True], [True, True], [False, False]]
    table, padding = pad_rows(flat, [3])
    assert table.tolist() == [flat.tolist()] and padding is None
    assert pad_rows(flat[:0], [0, 0])[0].shape == (2, 0, 2)


def test_padding_is_on_the_device_of_its_rows():
    """As on a GPU: "meta" is a device without memory, on which nothing can be looked at."""
    table, padding = pad_rows(torch.zeros(3, 2, device="meta"), [1, 2])
    assert table.device.type == padding.device.type == "meta" and padding.shape == (2, 2)
    assert Tokens(table, table, padding, check_values=False).to("meta").real.shape == (2, 2)


def test_lengths_are_rounded_up_by_a_16th_at_most_and_become_few():
    lengths = range(1, 3000)
    rounded = [-(-n // rounding_step(n)) * rounding_step(n) for n in lengths]
    assert all(n <= r <= n * 17 / 16 for n, r in zip(lengths, rounded, strict=True))
    assert len({r for r in rounded if 50 <= r <= 352}) < 50 and {rounding_step(n) for n in (1024, 10**6)} == {64}


def test_rounding_up_adds_padding_alone_and_none_where_there_is_none():
    tokens = from_rows([(torch.ones(5, 2), torch.ones(5, 1)), (torch.ones(3, 2), torch.ones(3, 1))])
    rounded = round_up(tokens, 4)
    assert rounded.length == 8 and rounded.real.sum() == 8 and rounded.values[:, :5].equal(tokens.values)
    assert not rounded.values[rounded.padding].any() and not rounded.positions[rounded.padding].any()
    assert round_up(tokens, 5) is tokens
    full = Tokens(torch.ones(2, 5, 2), torch.ones(2, 5, 1))
    assert round_up(full, 4) is full


def test_rounding_up_keeps_what_was_observed():
    padding = torch.tensor([[False, False, False], [False, False, True]])
    observed = torch.tensor(
        [[[True, False], [False, True], [True, True]], [[True, True], [False, True], [False, False]]]
    )
    tokens = Tokens(torch.ones(2, 3, 2), torch.ones(2, 3, 1), padding, observed)
    rounded = round_up(tokens, 4)
    assert rounded.observed is not None and rounded.observed[:, :3].equal(observed) and not rounded.observed[:, 3].any()
