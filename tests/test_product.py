"""The product by oneDNN is torch's linear: values, gradients, gradients of gradients, and where it steps aside."""

import pytest
import torch
from torch.nn import functional as F

from rotarymae import product
from rotarymae.product import Linear, linear

onednn = pytest.mark.skipif(not product.AVAILABLE, reason="this torch has no oneDNN")


@pytest.fixture(autouse=True)
def by_onednn(monkeypatch):
    """On every machine that can, also where it is not the faster way."""
    monkeypatch.setattr(product, "ONEDNN", product.AVAILABLE)


def pair(*shape, out=7, dtype=torch.float32, seed=0):
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(*shape, generator=draw, dtype=dtype, requires_grad=True)
    weight = torch.randn(out, shape[-1], generator=draw, dtype=dtype, requires_grad=True)
    return x, weight


def used(call):
    """Whether a call goes through our operator."""
    with torch.profiler.profile() as seen:
        call()
    return any("rotarymae::product" in event.key for event in seen.key_averages())


# Rows fewer and more than columns, one row, a wide and a narrow weight.
@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 4), (1, 1, 6), (64, 33, 20), (5, 2, 3, 8)])
@pytest.mark.parametrize("out", [1, 7, 40])
def test_values_and_gradients_are_those_of_torch(shape, out):
    found = []
    for way in (linear, F.linear):
        x, weight = pair(*shape, out=out)
        y = way(x, weight)
        y.cos().sum().backward()
        found.append((y.detach(), x.grad, weight.grad))
    for ours, theirs in zip(*found, strict=True):
        assert ours.shape == theirs.shape
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=2e-4)


@onednn
def test_it_is_used_in_float32_and_nowhere_else():
    assert used(lambda: linear(*pair(4, 6)))
    assert not used(lambda: linear(*pair(4, 6, dtype=torch.float64)))
    with torch.autocast("cpu", torch.bfloat16):
        assert not used(lambda: linear(*pair(4, 6)))
        assert linear(*pair(4, 6)).dtype == torch.bfloat16


@onednn
def test_the_blocks_use_it():
    from rotarymae.transformer import Block

    block = Block(12, 2, 24)
    assert used(lambda: block(torch.randn(2, 5, 12), None))


def test_only_what_is_needed_gets_a_gradient():
    x, weight = pair(4, 6)
    linear(x.detach(), weight).sum().backward()
    assert x.grad is None and weight.grad is not None
    weight.grad = None
    linear(x, weight.detach()).sum().backward()
    assert weight.grad is None and x.grad is not None


def test_gradients_of_gradients():
    found = []
    for way in (linear, F.linear):
        x, weight = pair(3, 4)
        (first,) = torch.autograd.grad(way(x, weight).square().sum(), x, create_graph=True)
        found.append(torch.autograd.grad(first.square().sum(), weight)[0])
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-4)


@onednn
def test_the_operator_keeps_torchs_rules():
    torch.library.opcheck(torch.ops.rotarymae.product.default, pair(4, 5, 6))


def test_of_strided_and_of_no_rows():
    x, weight = pair(6, 5, 8)
    torch.testing.assert_close(linear(x.transpose(0, 1), weight), F.linear(x.transpose(0, 1), weight))
    torch.testing.assert_close(linear(x[:, -2:], weight[2:5]), F.linear(x[:, -2:], weight[2:5]))
    assert linear(x[:0], weight).shape == (0, 5, 7)


def test_a_layer_has_no_bias_and_the_same_weights_as_torchs():
    torch.manual_seed(0)
    ours = Linear(6, 3)
    torch.manual_seed(0)
    theirs = torch.nn.Linear(6, 3, bias=False)
    assert ours.bias is None
    assert torch.equal(ours.weight, theirs.weight)
    x = torch.randn(4, 6)
    torch.testing.assert_close(ours(x), theirs(x))


@onednn
def test_the_choice_is_the_machines(monkeypatch):
    assert used(lambda: linear(*pair(4, 6)))
    monkeypatch.setattr(product, "ONEDNN", False)
    assert not used(lambda: linear(*pair(4, 6)))
