"""Rotary positions: rotations keep norms, scores depend on differences only, and angles are never rounded."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import random_tokens
from rotarymae.rope import angles, frequencies, rotate, rotation, sincos


def rotated(x, positions, p=0.75, base=10_000.0):
    """x [B, H, N, K], the heads first so that scores are one product."""
    by = rotation(angles(positions, frequencies(x.shape[-1], positions.shape[-1], p, base)))
    return rotate(x.transpose(1, 2), by).transpose(1, 2)


def heads(axes, seed=0, length=5):
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(2, 3, length, 12 * axes, dtype=torch.float64, generator=draw)
    return x, random_tokens(2, length, axes=axes, seed=seed).positions


def test_frequencies_by_hand():
    # K/A = 8: pairs i = 0..3 at 10000^(-2i/8) = 1, 0.1, 0.01, 0.001; of these floor(0.75 · 8 // 2) = 3 are kept.
    assert torch.allclose(frequencies(8, 1), torch.tensor([1, 0.1, 0.01, 0], dtype=torch.float64), rtol=1e-12)
    assert torch.allclose(frequencies(16, 2, 1.0, 16.0), torch.tensor([1, 0.5, 0.25, 0.125], dtype=torch.float64))
    assert frequencies(8, 1, p=0.0).tolist() == [0] * 4 and frequencies(8, 1, p=0.74).count_nonzero() == 2
    assert frequencies(8, 1).dtype == torch.float64


def test_one_pair_by_hand():
    # Four channels on one axis: pairs (0, 2) and (1, 3), turned by 1 and 0.01 rad per unit; here at position 2.
    x = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64).view(1, 1, 1, 4)
    out = rotated(x, torch.full((1, 1, 1), 2.0, dtype=torch.float64), p=1.0).flatten().tolist()
    c, s, d, t = math.cos(2), math.sin(2), math.cos(0.02), math.sin(0.02)
    assert out == pytest.approx([c - 3 * s, 2 * d - 4 * t, s + 3 * c, 2 * t + 4 * d], abs=1e-12)


@given(seed=st.integers(0, 999), axes=st.integers(1, 3), p=st.floats(0, 1), scale=st.floats(0.01, 1e3))
@settings(max_examples=30, deadline=None)
def test_rotation_keeps_the_norm_and_scores_depend_on_differences_only(seed, axes, p, scale):
    query, positions = heads(axes, seed)
    key, _ = heads(axes, seed + 1)
    positions, shift = scale * positions, scale * torch.linspace(-3, 5, axes, dtype=torch.float64)
    turned = rotated(query, positions, p)
    assert (turned.norm(dim=-1) - query.norm(dim=-1)).abs().max() < 1e-10
    scores = turned @ rotated(key, positions, p).mT
    shifted = rotated(query, positions + shift, p) @ rotated(key, positions + shift, p).mT
    assert (scores - shifted).abs().max() < 1e-10 * max(1, scale)


def test_scores_do_depend_on_differences():
    query, positions = heads(2)
    key, _ = heads(2, 1)
    scores = rotated(query, positions) @ rotated(key, positions).mT
    for axis in range(2):  # moving the keys alone, along either axis
        moved = positions.clone()
        moved[..., axis] += 1.0
        assert (scores - rotated(query, positions) @ rotated(key, moved).mT).abs().max() > 0.1


def test_p_zero_leaves_queries_unchanged_and_p_chooses_the_fastest():
    x, positions = heads(1)
    assert rotated(x, positions, p=0.0).equal(x)
    some = rotated(x, positions, p=0.5)  # 12 channels: 6 pairs, of which the first 3 turn
    fixed = [3, 4, 5, 9, 10, 11]
    assert some[..., fixed].equal(x[..., fixed])
    assert all(not some[..., i].equal(x[..., i]) for i in range(12) if i not in fixed)
    assert some[..., :3].equal(rotated(x, positions, p=1.0)[..., :3])


def test_every_axis_turns_its_own_pairs():
    x, positions = heads(2)  # 24 channels: 12 pairs, of which the first 6 belong to the first axis
    moved = positions.clone()
    moved[..., 1] += 1.0
    before, after = (rotated(x, at).unflatten(-1, (2, 12)) for at in (positions, moved))
    assert before[..., :6].equal(after[..., :6]) and not before[..., 6:].equal(after[..., 6:])


def test_angles_are_computed_in_the_precision_of_positions_and_never_below_float32():
    at = torch.full((1, 1, 1), 100.3)
    for dtype, wanted in [(torch.float64,) * 2, (torch.float32,) * 2, (torch.bfloat16, torch.float32)]:
        assert angles(at.to(dtype), frequencies(8, 1)).dtype == wanted
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = angles(at, frequencies(8, 1))
    assert inside.equal(angles(at, frequencies(8, 1))) and inside.dtype == torch.float32
    assert (inside[0, 0].cos() - torch.tensor([100.3, 10.03, 1.003, 0]).cos()).abs().max() < 1e-5


def test_sincos_by_hand():
    # Four channels, two axes: each axis has one frequency, 1, as (sin, cos).
    at = torch.tensor([[[0.5, 2.0]]], dtype=torch.float64)
    wanted = [math.sin(0.5), math.cos(0.5), math.sin(2), math.cos(2)]
    assert sincos(at, 4).flatten().tolist() == pytest.approx(wanted, abs=1e-12)
    one = sincos(at[..., :1], 4, base=100.0).flatten().tolist()
    assert one == pytest.approx([math.sin(0.5), math.sin(0.05), math.cos(0.5), math.cos(0.05)], abs=1e-12)


def test_no_float64_is_moved_to_a_device(monkeypatch):
    """Apple's has none: the frequencies take the positions' precision before they move."""
    moved, inner = [], torch.Tensor.to

    def to(tensor, *where, **how):
        moved.append((tensor.dtype, where))
        return inner(tensor, *where, **how)

    monkeypatch.setattr(torch.Tensor, "to", to)
    at = torch.zeros(1, 2, 1)
    assert angles(at, frequencies(8, 1)).dtype == torch.float32
    assert [dtype for dtype, where in moved if at.device in where] == [torch.float32]


def test_rotation_keeps_the_precision_of_its_input():
    by = rotation(angles(10 * torch.rand(2, 5, 1), frequencies(12, 1)))
    x = torch.randn(2, 5, 3, 12)
    for dtype, apart in ((torch.bfloat16, 0.05), (torch.float32, 0), (torch.float64, 1e-6)):
        out = rotate(x.to(dtype), by)
        assert out.dtype == dtype and (out.float() - rotate(x, by)).abs().max() <= apart


def test_a_part_of_the_tokens_turns_as_it_does_among_all():
    by = rotation(angles(10 * torch.rand(2, 5, 1), frequencies(12, 1)))
    x = torch.randn(2, 5, 3, 12)
    for part in (slice(1, 3), slice(2), slice(3, None)):
        assert rotate(x[:, part], by.select(part)).equal(rotate(x, by)[:, part])
