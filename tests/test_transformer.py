"""The transformer: attention by hand, order does not matter, and what dropping does."""

import math

import pytest
import torch
from torch import nn

from conftest import random_tokens
from rotarymae import transformer
from rotarymae.rope import angles, frequencies, rotation
from rotarymae.transformer import MLP, Attention, Block, DropPath, Transformer


def turned(axes=1, length=6, head_dim=12, seed=0):
    return angles(random_tokens(2, length, axes=axes, seed=seed).positions, frequencies(head_dim, axes))


def by(at):
    """Angles as a single attention or block takes them, for heads of 12 channels."""
    return rotation(at, 12)


def inputs(length=6, dim=24, seed=1):
    return torch.randn(2, length, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_attention_of_two_tokens_by_hand():
    # One head of two channels, one frequency (1 rad a unit), identity weights: query = key = value = x.
    attention = Attention(2, 1).double()
    with torch.no_grad():
        attention.query_key_value.weight.copy_(torch.eye(2).repeat(3, 1))
        attention.output.weight.copy_(torch.eye(2))
    x = torch.tensor([[[1.0, 0.0], [0.0, 2.0]]], dtype=torch.float64)
    at = rotation(angles(torch.tensor([[[0.0], [0.5]]], dtype=torch.float64), frequencies(2, 1, p=1.0)), 2)
    # Rotated: (1, 0) stays, (0, 2) becomes (-2 sin 0.5, 2 cos 0.5). Scores / sqrt(2), softmax, times the values.
    own, cross = 1 / math.sqrt(2), -2 * math.sin(0.5) / math.sqrt(2)
    other = 4 / math.sqrt(2)
    first = math.exp(own) / (math.exp(own) + math.exp(cross))
    second = math.exp(cross) / (math.exp(cross) + math.exp(other))
    wanted = torch.tensor([[[first, 2 * (1 - first)], [second, 2 * (1 - second)]]], dtype=torch.float64)
    assert (attention(x, at) - wanted).abs().max() < 1e-12
    # A key that may not be looked at leaves the other alone.
    attend = torch.tensor([[[[True, False]]]])
    assert (attention(x, at, attend) - torch.tensor([[[1.0, 0.0], [1.0, 0.0]]])).abs().max() < 1e-12


def test_mlp_by_hand():
    mlp = MLP(1, 2)
    with torch.no_grad():
        mlp.up.weight.copy_(torch.tensor([[1.0], [-2.0]]))
        mlp.down.weight.copy_(torch.tensor([[3.0, 5.0]]))
    silu = [v / (1 + math.exp(-v)) for v in (1.5, -3.0)]
    assert mlp(torch.full((1, 1, 1), 1.5)).item() == pytest.approx(3 * silu[0] + 5 * silu[1], rel=1e-6)


def test_attention_scores_depend_on_position_differences_only():
    positions = random_tokens(2, 6, axes=2).positions
    attention, keep = Attention(24, 2).double(), frequencies(12, 2)
    x = inputs()
    shift = torch.tensor([100.0, -7.0], dtype=torch.float64)
    near, far = attention(x, by(angles(positions, keep))), attention(x, by(angles(positions + shift, keep)))
    assert (near - far).abs().max() < 1e-10
    assert (near - attention(x, by(angles(2 * positions, keep)))).abs().max() > 1e-3


def test_permuting_tokens_permutes_outputs():
    model = Transformer(24, 2, 2, 48).double()
    x, tokens = inputs(), random_tokens(2, 6)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    keep = frequencies(12, 1)
    out = model(x, angles(tokens.positions, keep))
    again = model(x[:, order], angles(tokens.positions[:, order], keep))
    assert (out[:, order] - again).abs().max() < 1e-10
    padding = torch.tensor([[False] * 5 + [True], [True] + [False] * 5])
    some = model(x, angles(tokens.positions, keep), padding)
    moved = model(x[:, order], angles(tokens.positions[:, order], keep), padding[:, order])
    assert (some[:, order] - moved).abs().max() < 1e-10 and (some - out)[~padding].abs().max() > 1e-4


@pytest.mark.parametrize("rotary", [True, False])
def test_a_part_gives_what_all_would_give(rotary):
    model, x = Transformer(24, 2, 3, 48).double(), inputs()
    at = turned() if rotary else None
    padding = torch.tensor([[False] * 4 + [True, False], [False] * 6])
    for m in (None, padding):
        for start, count in ((4, 2), (0, 1), (1, 3)):
            some = model(x, at, m, only=(start, count))
            assert some.shape == (2, count, 24)
            assert (some - model(x, at, m)[:, start : start + count]).abs().max() < 1e-12


def test_stochastic_depth_rises_linearly():
    rates = [block.drop_path.rate for block in Transformer(24, 2, 4, 48, drop_path=0.2).blocks]
    assert rates == pytest.approx([0.05, 0.1, 0.15, 0.2])


def test_drop_path_drops_whole_samples_and_keeps_the_mean():
    drop, x = DropPath(0.25), torch.ones(4000, 2, 3)
    out = drop(x)
    assert all(len(sample.unique()) == 1 for sample in out[:50])
    assert sorted(set(out.unique().tolist())) == pytest.approx([0, 4 / 3])
    assert abs((out[:, 0, 0] == 0).double().mean() - 0.25) < 5 * (0.1875 / 4000) ** 0.5
    assert drop.eval()(x) is x and DropPath(0.0)(x) is x


def test_dropout_acts_in_training_only():
    at, x = by(turned()), inputs()
    attention = Attention(24, 2, dropout=0.5).double()
    mlp = MLP(24, 48, dropout=0.5).double()
    for run in (lambda: attention(x, at), lambda: mlp(x)):
        assert not run().equal(run())
    attention.eval(), mlp.eval()
    for run in (lambda: attention(x, at), lambda: mlp(x)):
        assert run().equal(run())


def test_a_block_is_two_residual_branches():
    block = Block(24, 2, 48).double()
    x, at = inputs(), by(turned())
    half = x + block.attention(block.attention_norm(x), at)
    assert (block(x, at) - (half + block.mlp(block.mlp_norm(half)))).abs().max() < 1e-12
    nn.init.zeros_(block.attention.output.weight)
    nn.init.zeros_(block.mlp.down.weight)
    assert block(x, at).equal(x)


def test_both_ways_of_rotating_give_the_same_block(monkeypatch):
    torch.manual_seed(0)
    model, x, found = Transformer(24, 2, 2, 48).double(), torch.randn(2, 6, 24, dtype=torch.float64), []
    at = angles(10 * torch.rand(2, 6, 1, dtype=torch.float64), frequencies(12, 1))
    for best in (True, False):
        monkeypatch.setattr(transformer, "_complex_is_best", lambda x, best=best: best)
        model.zero_grad()
        y = model(x, at, only=(3, 3))
        y.square().sum().backward()
        found.append((y.detach(), model.blocks[0].attention.query_key_value.weight.grad.clone()))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-12, rtol=1e-10)
