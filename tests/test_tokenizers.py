"""Tokenizers: patches are an exact rearrangement, and positions count from 1."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import refuses
from rotarymae.tokenizers import patchify, unpatchify


@st.composite
def geometry(draw):
    dims = draw(st.integers(1, 4))
    patch = [draw(st.integers(1, 3)) for _ in range(dims)]
    counts = [draw(st.integers(1, 3)) for _ in range(dims)]
    return counts, patch, draw(st.integers(1, 2)), draw(st.integers(1, 3))


@given(geometry=geometry())
@settings(max_examples=60, deadline=None)
def test_unpatchify_is_the_inverse_in_one_to_four_dimensions(geometry):
    counts, patch, batch, channels = geometry
    sizes = [n * p for n, p in zip(counts, patch, strict=True)]
    array = torch.arange(batch * math.prod(sizes) * channels, dtype=torch.float64).reshape(batch, *sizes, channels)
    tokens = patchify(array, patch)
    assert tokens.values.shape == (batch, math.prod(counts), math.prod(patch) * channels)
    assert unpatchify(tokens.values, sizes, patch).equal(array)
    # The definition, token by token: the last axis runs fastest, and a patch is where its position says.
    for n in {0, math.prod(counts) // 2, math.prod(counts) - 1}:
        at = [int(x) - 1 for x in tokens.positions[0, n]]
        cut = tuple(slice(k * p, (k + 1) * p) for k, p in zip(at, patch, strict=True))
        assert tokens.values[0, n].equal(array[(0, *cut)].flatten())
        number = 0
        for k, count in zip(at, counts, strict=True):
            number = number * count + k
        assert number == n


def test_image_by_hand():
    tokens = patchify(torch.arange(16.0).reshape(1, 4, 4, 1), (2, 2))
    assert tokens.values[0].tolist() == [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]
    assert tokens.positions[0].tolist() == [[1, 1], [1, 2], [2, 1], [2, 2]]
    assert patchify(torch.zeros(1, 4, 4, 3), (4, 1)).values.shape == (1, 4, 12)


@pytest.mark.parametrize(
    ("dtype", "wanted"), [(torch.float16, torch.float32), (torch.float32, torch.float32), (torch.float64,) * 2]
)
def test_positions_are_never_below_float32(dtype, wanted):
    assert patchify(torch.zeros(1, 4, 1, dtype=dtype), (2,)).positions.dtype == wanted


@pytest.mark.parametrize(
    ("shape", "patch", "parts"),
    [
        ((2, 3, 1), (2,), ("axis 0", "size 3", "patches of 2")),
        ((2, 4, 1), (1, 1), ("(1, 1)", "1 axes", "(4,)")),
        ((2, 4, 1), (0,), ("(0,)", "at least 1")),
        ((2, 20, 1), (8,), ("axis 0", "size 20", "crop it to 16, pad it to 24", "divides 20")),
        ((2, 5, 1), (8,), ("patches of 8; pad it to 8,",)),
        ((2, 4), (1,), ("(2, 4)", "[batch, d_1, .., d_D, channels]")),
        ((0, 4, 1), (2,), ("(0, 2, 2)", "hold nothing")),
        ((2, 0, 1), (2,), ("(2, 0, 2)", "hold nothing")),
    ],
)
def test_patchify_refuses(shape, patch, parts):
    with refuses(*parts):
        patchify(torch.zeros(shape), patch)


def test_what_comes_channels_first_is_refused_with_what_to_do():
    for first, patch in [(torch.rand(2, 3, 32, 48), (16, 16)), (torch.rand(2, 4, 3, 32, 48), (2, 16, 16))]:
        axis = first.shape.index(3)
        with refuses("size 3", "patches of 16", "Channels come last", f"array.movedim({axis}, -1)"):
            patchify(first, patch)
        assert patchify(first.movedim(axis, -1), patch).length == 6 * (len(patch) - 1)
    with refuses("axis 0 has size 100", "96", "112"):
        patchify(torch.rand(1, 100, 128, 1), (16, 16))
