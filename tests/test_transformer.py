"""The transformer: attention by hand, order does not matter, and what dropping does."""

import math

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from conftest import random_tokens
from rotarymae.config import BlockSizes
from rotarymae.rope import angles, frequencies, rotation
from rotarymae.transformer import MLP, Attention, Block, DropPath, Transformer


def turned(axes=1, length=6, head_dim=12, seed=0):
    return by(random_tokens(2, length, axes=axes, seed=seed).positions, head_dim)


def by(positions, head_dim=12, p=0.75):
    return rotation(angles(positions, frequencies(head_dim, positions.shape[-1], p)))


def sizes(depth=2, **changes):
    """Two heads of 12 channels."""
    return BlockSizes(**{"embed_dim": 24, "num_heads": 2, "depth": depth, "hidden_dim": 48, **changes})


def inputs(length=6, dim=24, seed=1):
    return torch.randn(2, length, dim, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_attention_of_two_tokens_by_hand():
    # One head of two channels, one frequency (1 rad a unit), identity weights: query = key = value = x.
    attention = Attention(BlockSizes(2, 1, 1, 2)).double()
    with torch.no_grad():
        for part in (attention.query, attention.key, attention.value, attention.output):
            part.weight.copy_(torch.eye(2))
    x = torch.tensor([[[1.0, 0.0], [0.0, 2.0]]], dtype=torch.float64)
    at = by(torch.tensor([[[0.0], [0.5]]], dtype=torch.float64), 2, p=1.0)
    # Rotated: (1, 0) stays, (0, 2) becomes (-2 sin 0.5, 2 cos 0.5). Scores / sqrt(2), softmax, times the values.
    own, cross = 1 / math.sqrt(2), -2 * math.sin(0.5) / math.sqrt(2)
    other = 4 / math.sqrt(2)
    first = math.exp(own) / (math.exp(own) + math.exp(cross))
    second = math.exp(cross) / (math.exp(cross) + math.exp(other))
    wanted = torch.tensor([[[first, 2 * (1 - first)], [second, 2 * (1 - second)]]], dtype=torch.float64)
    assert (attention(x, at) - wanted).abs().max() < 1e-12
    # A key that may not be looked at leaves the other alone.
    key_mask = torch.tensor([[[[True, False]]]])
    assert (attention(x, at, key_mask) - torch.tensor([[[1.0, 0.0], [1.0, 0.0]]])).abs().max() < 1e-12


class Kernels(TorchDispatchMode):
    """The precision of the queries that each kernel of attention is given."""

    def __init__(self):
        super().__init__()
        self.found = {}

    def __torch_dispatch__(self, kernel, types, args=(), kwargs=None):
        if "attention" in str(kernel):
            self.found.setdefault("backward" if "backward" in str(kernel) else "forward", args[0].dtype)
        return kernel(*args, **(kwargs or {}))


def test_bf16_attention_on_a_processor_keeps_float32_where_a_gradient_will_be_asked_for():
    attention, x = Attention(sizes()), inputs().float()
    exact = attention(x, turned())
    with torch.autocast("cpu", torch.bfloat16), Kernels() as learning:
        attended = attention(x, turned())
        attended.float().sum().backward()
    assert learning.found == {"forward": torch.float32, "backward": torch.float32}
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad(), Kernels() as predicting:
        attention(x, turned())
    assert predicting.found == {"forward": torch.bfloat16}
    assert attended.dtype == torch.bfloat16 and (attended - exact).abs().max() < 0.02 * exact.abs().max()


def test_mlp_by_hand():
    mlp = MLP(BlockSizes(1, 1, 1, 2))
    with torch.no_grad():
        mlp.up.weight.copy_(torch.tensor([[1.0], [-2.0]]))
        mlp.down.weight.copy_(torch.tensor([[3.0, 5.0]]))
    silu = [v / (1 + math.exp(-v)) for v in (1.5, -3.0)]
    assert mlp(torch.full((1, 1, 1), 1.5)).item() == pytest.approx(3 * silu[0] + 5 * silu[1], rel=1e-6)


def test_permuting_tokens_permutes_outputs():
    model = Transformer(sizes()).double()
    x, tokens = inputs(), random_tokens(2, 6)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    out = model(x, by(tokens.positions))
    again = model(x[:, order], by(tokens.positions[:, order]))
    assert (out[:, order] - again).abs().max() < 1e-10
    padding = torch.tensor([[False] * 5 + [True], [True] + [False] * 5])
    some = model(x, by(tokens.positions), padding)
    moved = model(x[:, order], by(tokens.positions[:, order]), padding[:, order])
    assert (some[:, order] - moved).abs().max() < 1e-10 and (some - out)[~padding].abs().max() > 1e-4


@pytest.mark.parametrize("rotary", [True, False])
def test_a_part_gives_what_all_would_give(rotary):
    model, x = Transformer(sizes(3)).double(), inputs()
    at = turned() if rotary else None
    padding = torch.tensor([[False] * 4 + [True, False], [False] * 6])
    for m in (None, padding):
        for queries, count in ((slice(4, None), 2), (slice(1), 1), (slice(1, 4), 3)):
            some = model(x, at, m, queries)
            assert some.shape == (2, count, 24)
            assert (some - model(x, at, m)[:, queries]).abs().max() < 1e-12


@pytest.mark.parametrize("rotary", [True, False])
def test_with_a_context_no_token_behind_it_changes_another(rotary):
    model, x, at = Transformer(sizes(3)).double(), inputs(), turned() if rotary else None
    padding = torch.tensor([[False, True, False, False, False, True], [False] * 6])
    for m in (None, padding):
        out = model(x, at, m, context=3)
        some = model(x[:, :3], None if at is None else at.select(slice(3)), None if m is None else m[:, :3])
        assert (out[:, :3] - some).abs().max() < 1e-12  # the context among itself
        for i in (3, 4, 5):  # each of the others as if it were alone with the context
            alone = [0, 1, 2, i]
            pair = None if at is None else type(at)(at.cos[:, alone], at.sin[:, alone])
            lone = model(x[:, alone], pair, None if m is None else m[:, alone], slice(3, None), context=3)
            assert (out[:, [i]] - lone).abs().max() < 1e-12
        assert (model(x, at, m) - out)[:, 2].abs().max() > 1e-4  # without a context all see all


def test_stochastic_depth_rises_linearly():
    rates = [block.drop_path.rate for block in Transformer(sizes(4, drop_path=0.2)).blocks]
    assert rates == pytest.approx([0.05, 0.1, 0.15, 0.2])


def test_drop_path_drops_whole_samples_and_keeps_the_mean():
    drop, x = DropPath(0.25), torch.ones(4000, 2, 3)
    out = drop(x)
    assert all(len(sample.unique()) == 1 for sample in out[:50])
    assert sorted(set(out.unique().tolist())) == pytest.approx([0, 4 / 3])
    assert abs((out[:, 0, 0] == 0).double().mean() - 0.25) < 5 * (0.1875 / 4000) ** 0.5
    assert drop.eval()(x) is x and DropPath(0.0)(x) is x


def test_dropout_acts_in_training_only():
    at, x = turned(), inputs()
    attention = Attention(sizes(dropout=0.5)).double()
    mlp = MLP(sizes(dropout=0.5)).double()
    for run in (lambda: attention(x, at), lambda: mlp(x)):
        assert not run().equal(run())
    attention.eval(), mlp.eval()
    for run in (lambda: attention(x, at), lambda: mlp(x)):
        assert run().equal(run())


def test_a_block_is_two_residual_branches():
    block = Block(sizes()).double()
    x, at = inputs(), turned()
    half = x + block.attention(block.attention_norm(x), at)
    assert (block(x, at) - (half + block.mlp(block.mlp_norm(half)))).abs().max() < 1e-12
    nn.init.zeros_(block.attention.output.weight)
    nn.init.zeros_(block.mlp.down.weight)
    assert block(x, at).equal(x)
