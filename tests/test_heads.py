"""Heads: padding is not pooled, the encoder comes as it is, and predictions are an RMSNorm and a linear layer."""

from typing import get_args

import pytest
import torch

from conftest import random_tokens, refuses, small
from rotarymae.config import HeadPool
from rotarymae.heads import Classifier, Regressor, mean_of_real, pooled
from rotarymae.model import Encoder, MaskedAutoencoder
from rotarymae.tokens import Tokens


def padded():
    tokens = random_tokens(2, 4)
    return Tokens(tokens.values, tokens.positions, torch.tensor([[False, True, True, False], [False] * 4]))


def test_the_mean_by_hand():
    x = torch.arange(8.0).reshape(2, 4, 1)
    assert mean_of_real(x, None).flatten().tolist() == [1.5, 5.5]
    x[0, 1] = torch.nan  # under the padding
    assert mean_of_real(x, padded().padding).flatten().tolist() == [1.5, 5.5]


def test_pools_are_cls_the_mean_and_the_maximum():
    tokens = padded()
    for encoder in (Encoder(small()).double(), Encoder(small(cls_token=False)).double()):
        latent = encoder(tokens)
        mean = mean_of_real(latent.tokens, tokens.padding)
        assert pooled(encoder, tokens, "mean").equal(mean)
        largest = torch.stack([row[real].amax(0) for row, real in zip(latent.tokens, tokens.real, strict=True)])
        assert pooled(encoder, tokens, "max").equal(largest)
        if latent.cls is not None:
            assert (pooled(encoder, tokens, "cls") - latent.cls).abs().max() < 1e-12
            continue
        with refuses("no [CLS]"):
            pooled(encoder, tokens, "cls")


@pytest.mark.parametrize("pool", ["cls", "mean", "max"])
@pytest.mark.parametrize("kind", [Classifier, Regressor])
def test_a_head_is_a_norm_and_a_linear_layer_on_the_pooled_vector(kind, pool):
    model = kind(Encoder(small()), 3, pool=pool).double()
    tokens = padded()
    vector = pooled(model.encoder, tokens, pool)
    scaled = vector / (vector.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    wanted = scaled @ model.head.weight.T + model.head.bias
    assert model(tokens).shape == (2, 3) and (model(tokens) - wanted).abs().max() < 1e-12


def test_attention_pooling_starts_as_the_mean_of_normalised_tokens_and_cls_and_learns_to_prefer():
    model = Classifier(Encoder(small()), 3, pool="attention").double()
    tokens = padded()
    latent = model.encoder(tokens)
    rows = torch.cat([latent.cls[:, None], latent.tokens], 1)
    rows = rows / (rows.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    wanted = torch.stack([rows[0, [0, 1, 4]].mean(0), rows[1].mean(0)])
    assert (model.vector(tokens) - wanted).abs().max() < 1e-9
    assert model.attention is not None
    assert model.attention.scores.weight.shape == (2, 24)
    with torch.no_grad():  # towards the token that is most like the query
        model.attention.scores.weight[0, :] = 1e4 * rows[1, 2]
    assert (model.vector(tokens)[1, :12] - rows[1, rows[1].matmul(rows[1, 2]).argmax(), :12]).abs().max() < 1e-9


def test_attention_pooling_depends_on_neither_padding_nor_batch():
    model = Regressor(Encoder(small(cls_token=False)), 2, pool="attention").double()
    assert model.attention is not None
    torch.nn.init.normal_(model.attention.scores.weight)
    tokens = random_tokens(1, 3)
    more = Tokens(
        torch.cat([tokens.values, torch.full((1, 2, 1), torch.nan, dtype=torch.float64)], 1),
        torch.cat([tokens.positions, torch.zeros(1, 2, 1, dtype=torch.float64)], 1),
        torch.tensor([[False] * 3 + [True] * 2]),
    )
    assert (model(tokens) - model(more)).abs().max() < 1e-12
    x = torch.randn(1, 4, 24, dtype=torch.float64)
    x[0, 1] = torch.nan
    pooled_vector = model.attention(x, torch.tensor([[False, True, False, False]]))
    assert (pooled_vector - model.attention(x[:, [0, 2, 3]], None)).abs().max() < 1e-12


@pytest.mark.parametrize("pool", get_args(HeadPool))
def test_pooled_vectors_keep_the_weights_precision_under_autocast(pool):
    model, tokens = Classifier(Encoder(small()), 3, pool=pool), random_tokens(2, 4, dtype=torch.float32)
    wanted = model(tokens)
    with torch.autocast("cpu", torch.bfloat16):
        vector, logits = model.vector(tokens), model(tokens)
    assert vector.dtype == logits.dtype == torch.float32
    assert (logits - wanted).abs().max() < 0.1
    assert not logits.equal(logits.bfloat16().float())  # the last layer does not round them


@pytest.mark.parametrize("kind", [Classifier, Regressor])
def test_static_features_are_read_beside_the_vector(kind):
    model = kind(Encoder(small()), 3, static_features=2).double()
    tokens, static = padded(), torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
    before, after = model(tokens, static), model(tokens, static + torch.tensor([[0, 0], [0, 1.0]]))
    assert before.shape == (2, 3) and before[0].equal(after[0]) and not torch.allclose(before[1], after[1])
    model(tokens, static).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    for wrong, shape in ((None, "(0,)"), (static[:, :1], "(1,)"), (static[0], "()")):
        with refuses(shape, "made for 2"):
            model(tokens, wrong)
    with refuses("(2,)", "made for 0"):
        kind(Encoder(small()), 3).double()(tokens, static)


def test_pools_differ_and_dropout_acts_in_training_only():
    tokens, encoder = padded(), Encoder(small())
    models = [Classifier(encoder, 3, pool=pool).double() for pool in ("cls", "mean")]
    models[1].load_state_dict(models[0].state_dict())
    assert (models[0](tokens) - models[1](tokens)).abs().max() > 1e-4
    for model in (
        Classifier(encoder, 3, dropout=0.5),
        Regressor(encoder, dropout=0.5),
    ):
        model.double()
        assert not model(tokens).equal(model(tokens))
        model.eval()
        assert model(tokens).equal(model(tokens))


@pytest.mark.parametrize("make", [lambda e: Classifier(e, 2), lambda e: Regressor(e)])
def test_the_pretrained_encoder_comes_as_it_is(make):
    mae = MaskedAutoencoder(small())
    before = {name: tensor.clone() for name, tensor in mae.encoder.state_dict().items()}
    model = make(mae.encoder)
    assert model.encoder is mae.encoder
    assert all(tensor.equal(before[name]) for name, tensor in model.encoder.state_dict().items())
    assert {name.removeprefix("encoder.") for name in model.state_dict() if name.startswith("encoder.")} == set(before)


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda e: Classifier(e, 1), ("classes is 1", "at least 2")),
        (lambda e: Classifier(e, None), ("classes is None", "at least 2")),
        (lambda e: Regressor(e, 0), ("outputs is 0", "at least 1")),
        (lambda e: Regressor(e, True), ("outputs is True", "at least 1")),
        (lambda e: Classifier(e, 2, pool="median"), ("pool='median'", "'mean', 'max', 'cls', 'attention'")),
        (lambda e: Classifier(e, 2, dropout=1.0), ("dropout is 1.0", "less than 1")),
        (lambda e: Regressor(e, 2, dropout=-0.5), ("dropout is -0.5", "at least 0")),
        (lambda e: Regressor(Encoder(small(cls_token=False))), ("pool='cls'", "needs a [CLS] token", "pool='mean'")),
    ],
)
def test_refusals(call, parts):
    with refuses(*parts):
        call(Encoder(small()))
