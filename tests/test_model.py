"""The model: padding changes nothing, every setting does something, every parameter learns."""

import dataclasses
from typing import get_args, get_type_hints

import numpy as np
import pytest
import torch

from conftest import place_rows, random_rows, random_tokens, refuses, small, unchecked
from rotarymae import losses
from rotarymae.config import SIZES, RoMAEConfig
from rotarymae.errors import InputError, InputWarning
from rotarymae.heads import Classifier, Regressor
from rotarymae.masking import split
from rotarymae.model import Encoder, MaskedAutoencoder
from rotarymae.rope import POSITION_ENCODINGS, sincos
from rotarymae.tokens import Tokens

# ── sizes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "wanted"), [("tiny-shallow", 778_320), ("tiny", 4_669_920), ("small", 26_884_224), ("base", 74_666_880)]
)
def test_block_parameter_counts(name, wanted):
    with torch.device("meta"):
        encoder = Encoder(RoMAEConfig.named(name))
    assert sum(p.numel() for p in encoder.transformer.parameters()) == wanted
    print(f"{name}: {wanted:,} parameters in the blocks")


def test_the_pendulum_size_builds():
    config = RoMAEConfig.named("pendulum", axes=1, features=24)
    assert (config.embed_dim, config.num_heads, config.depth) == (60, 2, 2)
    encoder = Encoder(config)
    assert all(block.mlp.up.out_features == 30 for block in encoder.transformer.blocks)
    assert encoder(random_tokens(2, 5, 24, dtype=torch.float32)).tokens.shape == (2, 5, 60)


def test_numpys_numbers_of_axes_widen_heads_too():
    with pytest.warns(InputWarning, match="7 position axes"):
        assert RoMAEConfig.named("tiny", axes=np.int64(7)).embed_dim == 210


def test_names_and_dictionaries():
    assert set(SIZES) == {"light", "tiny-shallow", "tiny", "small", "base", "pendulum"}
    config = RoMAEConfig.named("tiny", axes=2, features=3, likelihood="gaussian")
    assert (config.embed_dim, config.num_heads, config.depth, config.axes) == (180, 3, 12, 2)
    decoder = (config.decoder_embed_dim, config.decoder_num_heads, config.decoder_depth, config.decoder_mlp_ratio)
    assert decoder == (180, 3, 2, 4.0) and config.head_dim == 60
    light = RoMAEConfig.named("light", axes=2)  # no decoder is wider than its encoder unless it is said to be
    assert (light.decoder_embed_dim, light.decoder_num_heads, light.decoder_depth) == (120, 2, 2)
    assert RoMAEConfig.named("light", decoder_embed_dim=180, decoder_num_heads=3).decoder_embed_dim == 180


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: RoMAEConfig.named("tiny-shalow"), ("'tiny-shalow'", "'light'", "Did you mean 'tiny-shallow'?")),
        (lambda: RoMAEConfig.named(["tiny"]), ("size=['tiny']", "'light'")),  # pyright: ignore
        (lambda: RoMAEConfig.named("tiny", embed_dims=3), ("'embed_dims'", "Did you mean 'embed_dim'?")),
        (lambda: RoMAEConfig.named("tiny", xyzzy=1), ("RoMAEConfig has no field 'xyzzy'",)),
        (lambda: RoMAEConfig(embed_dim=180, num_heads=7), ("embed_dim (180)", "num_heads (7)")),
        (lambda: RoMAEConfig(axes=4), ("head_dim (60)", "2 × axes (8)", "56 or 64")),
        (lambda: RoMAEConfig(decoder_embed_dim=100, decoder_num_heads=3), ("decoder_embed_dim (100)", "(3)")),
        (lambda: RoMAEConfig(axes=2, decoder_embed_dim=6, decoder_num_heads=2), ("decoder_embed_dim 6", "is 4.")),
        (lambda: RoMAEConfig(axes=7, position_encoding="absolute"), ("embed_dim (180)", "(14)", "choose 168 or 210.")),
        (lambda: RoMAEConfig(mlp_ratio=0.001), ("embed_dim (180)", "0.001", "whole number")),
        (lambda: RoMAEConfig(decoder_mlp_ratio=0.333), ("decoder_mlp_ratio (0.333)", "whole number")),
        (lambda: RoMAEConfig(p=1.5), ("p is 1.5", "at most 1")),
        (lambda: RoMAEConfig(base=0.0), ("base is 0.0", "at least 1")),
        (lambda: RoMAEConfig(base=1e-300), ("base is 1e-300", "at least 1")),  # its powers overflow
        (lambda: RoMAEConfig(mlp_ratio=float("nan")), ("mlp_ratio is nan", "finite")),
        (lambda: RoMAEConfig(norm_eps=0.0), ("norm_eps is 0.0", "more than 0")),
        (lambda: RoMAEConfig(norm_eps=float("inf")), ("norm_eps is inf", "finite")),
        (lambda: RoMAEConfig(dropout=1.0), ("dropout is 1.0", "less than 1")),
        (lambda: RoMAEConfig(drop_path=-0.1), ("drop_path is -0.1", "at least 0")),
        (lambda: RoMAEConfig(position_encoding="learned"), ("position_encoding='learned'", "'rotary', 'absolute'")),
        (lambda: RoMAEConfig(likelihood="laplace"), ("likelihood='laplace'", "'point', 'gaussian'")),
        (lambda: RoMAEConfig(decoder_attention="all"), ("decoder_attention='all'", "'context', 'joint'")),
        (lambda: RoMAEConfig(position_encoding="absolute", p=0.5), ("p (0.5) is a share", "0.75")),
        (lambda: RoMAEConfig(depth=2.0), ("depth is 2.0", "whole number")),
        (lambda: RoMAEConfig(depth=True), ("depth is True", "whole number")),
        (lambda: RoMAEConfig(cls_token=1), ("cls_token is 1", "True or False")),
        (lambda: RoMAEConfig(features=0), ("features is 0", "at least 1")),
        (lambda: RoMAEConfig(p=float("nan")), ("p is nan",)),
    ],
)
def test_configurations_that_cannot_be_are_refused_by_their_numbers(call, parts):
    with refuses(*parts):
        call()


# Every field of RoMAEConfig with a change of it.
CHANGES = {
    "axes": 2,
    "features": 2,
    "input_features": 1,
    "embed_dim": 48,
    "num_heads": 1,
    "depth": 3,
    "mlp_ratio": 1.0,
    "decoder_embed_dim": 24,
    "decoder_num_heads": 3,
    "decoder_depth": 1,
    "decoder_mlp_ratio": 1.0,
    "decoder_attention": "joint",
    "position_encoding": "absolute",
    "p": 0.25,
    "base": 100.0,
    "cls_token": False,
    "dropout": 0.3,
    "drop_path": 0.5,
    "norm_eps": 1e-2,
    "likelihood": "gaussian",
    "neighbours": True,
}


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(RoMAEConfig)])
def test_every_field_matters(name):
    assert name in CHANGES, f"the new field {name!r} needs a case here"
    before, after = small(), small(**{name: CHANGES[name]})
    assert getattr(before, name) != getattr(after, name)
    one, other = MaskedAutoencoder(before).double(), MaskedAutoencoder(after).double()
    shapes = [[(key, tuple(value.shape)) for key, value in model.state_dict().items()] for model in (one, other)]
    if shapes[0] != shapes[1]:
        return  # another number of parameters
    other.load_state_dict(one.state_dict())
    tokens = random_tokens(3, 6, dtype=torch.float64)
    mask = torch.tensor([[False, True] * 3] * 3)
    try:
        outs = [(drawn(model, tokens, mask).predicted, drawn(model.encoder, tokens).tokens) for model in (one, other)]
    except InputError:
        return  # refused
    assert (outs[0][0] - outs[1][0]).abs().max() > 1e-6
    if not name.startswith("decoder_"):
        assert (outs[0][1] - outs[1][1]).abs().max() > 1e-6
    if name in ("dropout", "drop_path"):  # the decoder drops, too
        one.encoder.eval(), other.encoder.eval()
        assert (drawn(one, tokens, mask).predicted - drawn(other, tokens, mask).predicted).abs().max() > 1e-6


def drawn(model, *inputs):
    torch.manual_seed(0)
    return model(*inputs)


# ── padding ─────────────────────────────────────────────────────────────────────────────────────────────────────────

LENGTHS = (5, 2, 4)
BATCH_CONFIG = {"axes": 2, "features": 2}
AUTOENCODERS = ("autoencoder", "gaussian", "joint", "absolute")
KINDS = (*AUTOENCODERS, "encoder", "cls", "mean")


def model_of(kind):
    torch.manual_seed(1)
    if kind in AUTOENCODERS:
        likelihood = "gaussian" if kind == "gaussian" else "point"
        encoding = "absolute" if kind == "absolute" else "rotary"
        own = {"likelihood": likelihood, "position_encoding": encoding}
        own["decoder_attention"] = "joint" if "joint" in kind else "context"
        return MaskedAutoencoder(small(**BATCH_CONFIG, **own)).double()
    encoder = Encoder(small(**BATCH_CONFIG))
    return encoder.double() if kind == "encoder" else Classifier(encoder, 3, pool=kind).double()


def run(kind, model, tokens, places, which):
    """Predictions of the real tokens, row by row, and the loss as (sum, count), of rows `which` at `places`."""
    labels = torch.tensor([2, 0, 1])[list(which)]
    if kind in AUTOENCODERS:
        mask = torch.zeros(tokens.real.shape, dtype=torch.bool)
        for i, at in enumerate(places):
            mask[i, at[1::2]] = True  # every second one; so the rows hide 2, 1 and 2
        out = model(tokens, mask)
        rows = [out.parameters[i, : len(at) // 2] for i, at in enumerate(places)]
        return rows, losses.reconstruction(out)
    if kind in ("cls", "mean"):
        logits = model(tokens)
        return list(logits), losses.classification(logits, labels)
    out = model(tokens)
    rows = [torch.cat([out.cls[i : i + 1], out.tokens[i, at]]) for i, at in enumerate(places)]
    flat = torch.cat(rows)
    return rows, losses.Loss(flat.square().sum(), torch.tensor(flat.numel()))


def worst_of_padding(kind, length, placement, seed):
    """Largest differences (prediction, loss, gradient) of a padded batch from its rows one at a time, unpadded."""
    model = model_of(kind)
    rows = random_rows(LENGTHS, 2, 2, seed=seed)
    alone, total, count = [], 0.0, 0
    for i, row in enumerate(rows):
        n = len(row[0])
        tokens = Tokens(row[0][None], row[1][None])
        assert tokens.padding is None
        predicted, loss = run(kind, model, tokens, [torch.arange(n)], [i])
        alone += predicted
        total, count = total + loss.sum, count + loss.count
    mean = total / count
    gradients = torch.autograd.grad(mean, list(model.parameters()), allow_unused=True)
    tokens, places = place_rows(rows, length, placement, seed)
    assert tokens.padding is not None
    together, loss = run(kind, model, tokens, places, range(len(rows)))
    again = torch.autograd.grad(loss.mean, list(model.parameters()), allow_unused=True)
    assert loss.count == count
    differences = [
        max((a - b).abs().max().item() for a, b in zip(alone, together, strict=True)),
        abs((mean - loss.mean).item()),
        max((a - b).abs().max().item() for a, b in zip(gradients, again, strict=True) if a is not None),
    ]
    assert all(d == d for d in differences)  # NaN stood under the padding
    return differences


@pytest.mark.parametrize("kind", KINDS)
def test_padding_anywhere_changes_no_prediction_loss_or_gradient(kind):
    for seed, (placement, length) in enumerate([("front", 5), ("middle", 8), ("behind", 12), ("random", 7)]):
        assert max(worst_of_padding(kind, length, placement, seed)) <= 1e-10


@pytest.mark.parametrize("decoder_attention", ["context", "joint"])
def test_query_padding_changes_no_other_query(decoder_attention):
    mae = MaskedAutoencoder(small(decoder_attention=decoder_attention)).double()
    visible, queries = random_tokens(2, 5), random_tokens(2, 4, seed=1).positions
    wanted = mae.reconstruct(visible, queries[:, :3])
    padding = torch.tensor([[False] * 3 + [True]] * 2)
    queries[:, 3] = 1e3
    assert (mae.reconstruct(visible, queries, padding)[:, :3] - wanted).abs().max() < 1e-10


# ── positions ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_without_cls_only_differences_of_positions_count_and_with_it_their_values_do():
    tokens = random_tokens(2, 6, axes=2)
    shift = torch.tensor([12.5, 3.0], dtype=torch.float64)
    moved = Tokens(tokens.values, tokens.positions + shift)
    relative = Encoder(small(axes=2, cls_token=False)).double()
    difference = (relative(tokens).tokens - relative(moved).tokens).abs().max().item()
    print(f"shift of all positions, without [CLS]: {difference:.1e}")
    assert difference <= 1e-10 and relative(tokens).cls is None
    anchored = Encoder(small(axes=2, cls_token=True)).double()
    torch.nn.init.normal_(anchored.cls_token)
    assert (anchored(tokens).tokens - anchored(moved).tokens).abs().max() > 1e-4


def test_permuting_tokens_permutes_outputs():
    tokens = random_tokens(2, 6)
    order = torch.tensor([[3, 0, 5, 1, 4, 2], [5, 4, 3, 2, 1, 0]])
    encoder = Encoder(small()).double()
    one, other = encoder(tokens), encoder(tokens.select(order))
    assert (one.tokens.gather(1, order[..., None].expand(-1, -1, 24)) - other.tokens).abs().max() < 1e-10
    assert (one.cls - other.cls).abs().max() < 1e-10
    mae = MaskedAutoencoder(small()).double()
    queries = random_tokens(2, 6, seed=1).positions
    out = mae.reconstruct(tokens.select(order), queries.gather(1, order[..., None]))
    assert (mae.reconstruct(tokens, queries).gather(1, order[..., None]) - out).abs().max() < 1e-10


@pytest.mark.parametrize("cls_token", [True, False])
def test_absolute_positions_are_those_of_the_tokens_themselves(cls_token, monkeypatch):
    mae = MaskedAutoencoder(small(position_encoding="absolute", cls_token=cls_token)).double()
    tokens = random_tokens(2, 6)
    mask = torch.tensor([[True, False, False, True, False, False], [False, True, True, False, False, False]])
    visible, masked = split(tokens, mask)
    seen = {}

    def watch(name):
        return lambda module, arguments: seen.update({name: arguments[0]})

    mae.encoder.transformer.register_forward_pre_hook(watch("encoder"))
    mae.decoder.register_forward_pre_hook(watch("decoder"))
    mae(tokens, mask)
    zero = torch.zeros(2, 1, 1, dtype=torch.float64)
    front = [zero] if cls_token else []
    at = torch.cat([*front, visible.positions], 1)
    added = seen["encoder"][:, len(front) :] - mae.encoder.projection(visible.values)
    assert (added - sincos(visible.positions, 24)).abs().max() < 1e-12
    if cls_token:
        assert (seen["encoder"][:, 0] - mae.encoder.cls_token - sincos(zero, 24)[:, 0]).abs().max() < 1e-12
    latent = mae.encoder(visible)
    tokens_in = latent.tokens if latent.cls is None else torch.cat([latent.cls[:, None], latent.tokens], 1)
    assert (seen["decoder"][:, :-2] - mae.decoder_projection(tokens_in) - sincos(at, 12)).abs().max() < 1e-12
    assert (seen["decoder"][:, -2:] - mae.mask_token - sincos(masked.positions, 12)).abs().max() < 1e-12


# ── the autoencoder ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_forward_predict_and_reconstruct_agree():
    mae = MaskedAutoencoder(small(likelihood="gaussian")).double()
    tokens = random_tokens(3, 6)
    mask = torch.tensor([[False, True] * 3, [True] + [False] * 5, [True, True] + [False] * 4])
    out = mae(tokens, mask)
    visible, masked = split(tokens, mask)
    assert out.predicted.shape == (3, 3, 1) and out.masked.values.equal(masked.values)
    assert mae.predict(visible, masked).predicted.equal(out.predicted)
    mean, std = mae.reconstruct(visible, masked.positions, masked.padding, return_std=True)
    assert mean.equal(out.predicted) and std.equal(out.std) and (std > 0).all()
    assert mae.reconstruct(visible, masked.positions, masked.padding).equal(mean)
    assert MaskedAutoencoder(small()).double()(tokens, mask).std is None


def test_hidden_values_are_never_seen():
    mae = MaskedAutoencoder(small()).double()
    tokens, mask = random_tokens(2, 6), torch.tensor([[False, True] * 3] * 2)
    other = Tokens(torch.where(mask[..., None], 99.0, tokens.values), tokens.positions)
    assert mae(tokens, mask).predicted.equal(mae(other, mask).predicted)


def test_joint_answers_do_depend_on_what_else_is_asked():
    mae = MaskedAutoencoder(small(decoder_attention="joint")).double()
    visible, queries = random_tokens(2, 5), random_tokens(2, 4, seed=1).positions
    assert (mae.reconstruct(visible, queries)[:, :1] - mae.reconstruct(visible, queries[:, :1])).abs().max() > 1e-4


@pytest.mark.parametrize("decoder_attention", ["context", "joint"])
def test_the_last_decoder_block_computes_only_masked_tokens(decoder_attention):
    mae = MaskedAutoencoder(small(decoder_attention=decoder_attention)).double()
    tokens = random_tokens(3, 9)
    mask = torch.tensor([[True, False, False] * 3, [True] + [False] * 8, [True, True] + [False] * 7])
    seen = {}
    for m, block in enumerate(mae.decoder.blocks):
        for name in ("mlp", "attention.key", "attention.output"):
            block.get_submodule(name).register_forward_pre_hook(
                lambda module, arguments, key=(m, name): seen.update({key: arguments[0].shape[1]})
            )
    assert mae(tokens, mask).predicted.shape == (3, 3, 1)
    visible, masked = 1 + 8, 3  # [CLS] and the most visible of a row, the most masked
    keys = visible if decoder_attention == "context" else visible + masked
    assert seen == {
        (0, "mlp"): visible + masked,
        (0, "attention.output"): visible + masked,
        (0, "attention.key"): keys,
        (1, "mlp"): masked,
        (1, "attention.output"): masked,
        (1, "attention.key"): keys,
    }


def test_every_position_encoding_of_the_configuration_is_there():
    assert set(POSITION_ENCODINGS) == set(get_args(get_type_hints(RoMAEConfig)["position_encoding"]))


@pytest.mark.parametrize("position_encoding", ["rotary", "absolute"])
def test_the_summary_is_cls_and_its_last_block_computes_nothing_else(position_encoding):
    encoder = Encoder(small(position_encoding=position_encoding)).double()
    tokens = random_tokens(3, 9)
    padded = dataclasses.replace(tokens, padding=torch.arange(9) >= torch.tensor([[9], [1], [5]]))
    seen = []
    for block in encoder.transformer.blocks:
        block.mlp.register_forward_pre_hook(lambda module, arguments: seen.append(arguments[0].shape[1]))
    for batch in (tokens, padded):
        seen.clear()
        summary = encoder.summary(batch)
        assert seen == [10] * (len(seen) - 1) + [1] and len(seen) > 1
        assert (summary - encoder(batch).cls).abs().max() < 1e-12


def test_no_summary_without_cls():
    with refuses("no [CLS]", "pool='mean'"):
        Encoder(small(cls_token=False)).summary(random_tokens(2, 4))


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda mae, t: mae.reconstruct(t, torch.zeros(2, 3)), ("(2, 3)", "[2, number, 1]")),
        (lambda mae, t: mae.reconstruct(t, torch.zeros(3, 3, 1)), ("(3, 3, 1)", "[2, number, 1]")),
        (lambda mae, t: mae.reconstruct(t, torch.zeros(2, 3, 2)), ("(2, 3, 2)", "[2, number, 1]")),
        (
            lambda mae, t: mae.reconstruct(t, torch.zeros(2, 3, 1), torch.zeros(2, 4, dtype=torch.bool)),
            ("padding is torch.bool (2, 4)", "(2, 3)"),
        ),
        (
            lambda mae, t: mae.reconstruct(t, torch.zeros(2, 3, 1), torch.zeros(2, 3)),
            ("padding is torch.float32", "give torch.bool (2, 3)"),
        ),
        (
            lambda mae, t: MaskedAutoencoder(small(features=3)).predict(random_tokens(2, 4, 3), t),
            ("hidden tokens have 1 values", "predicts 3"),
        ),
        (
            lambda mae, t: MaskedAutoencoder(small(features=3))(
                Tokens(torch.zeros(2, 4, 3), t.positions, observed=torch.ones(2, 4, 1, dtype=torch.bool)),
                torch.tensor([True, False, False, False]).expand(2, 4),
            ),
            ("mask `observed` has 1", "3"),
        ),
        (lambda mae, t: mae.reconstruct(t, torch.zeros(2, 3, 1), return_std=True), ("likelihood='gaussian'",)),
        (lambda mae, t: mae.reconstruct(t, torch.full((2, 3, 1), torch.nan)), ("positions to predict at hold NaN",)),
        (
            lambda mae, t: mae.reconstruct(
                t, torch.tensor([0.0, torch.inf])[:, None].expand(2, 2, 1), torch.tensor([[False, True], [True, False]])
            ),
            ("hold NaN or infinity", "as padding"),
        ),
        (lambda mae, t: mae.encoder(random_tokens(2, 3, 2)), ("2 features and 1 position", "and 1 axes")),
        (lambda mae, t: mae.encoder(random_tokens(2, 3, 1, 3)), ("1 features and 3 position", "and 1 axes")),
    ],
)
def test_input_that_does_not_fit_the_model_is_refused_by_its_numbers(call, parts):
    with refuses(*parts):
        call(MaskedAutoencoder(small()), random_tokens(2, 4))


# ── learning ────────────────────────────────────────────────────────────────────────────────────────────────────────


def every_model():
    config = small(features=2)
    return {
        "point": MaskedAutoencoder(config),
        "gaussian": MaskedAutoencoder(small(features=2, likelihood="gaussian")),
        "absolute": MaskedAutoencoder(small(features=2, position_encoding="absolute")),
        "no cls": MaskedAutoencoder(small(features=2, cls_token=False)),
        "classifier": Classifier(Encoder(config), 3),
        "classifier, mean": Classifier(Encoder(config), 3, pool="mean"),
        "regressor": Regressor(Encoder(config), 2),
    }


@pytest.mark.parametrize("kind", list(every_model()))
def test_every_parameter_receives_a_gradient_and_no_buffer_does(kind):
    model = every_model()[kind].double()
    tokens = random_tokens(4, 6, 2)
    if isinstance(model, MaskedAutoencoder):
        loss = losses.reconstruction(model(tokens, torch.tensor([[False, True, False] * 2] * 4))).mean
    elif isinstance(model, Classifier):
        loss = losses.classification(model(tokens), torch.tensor([0, 1, 2, 1])).mean
    else:
        out = model(tokens)
        loss = losses.regression(out, torch.randn_like(out)).mean
    loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().max() > 1e-9, name
    assert not any(buffer.requires_grad for buffer in model.buffers())


def test_first_gradients_are_of_one_size():
    mae = MaskedAutoencoder(small())
    tokens = random_tokens(8, 12, dtype=torch.float32)
    losses.reconstruction(mae(tokens, torch.tensor([[False, True] * 6] * 8))).mean.backward()
    assert mae.mask_token.grad.norm() < 100  # 4e5 were it zero before the RMSNorm


def test_initial_values_are_those_of_the_table():
    torch.manual_seed(0)
    mae = MaskedAutoencoder(RoMAEConfig(features=4))
    for name, parameter in mae.named_parameters():
        last = name.split(".")[-1]
        if last in ("cls_token", "mask_token"):
            assert 0.01 < parameter.std() < 0.03, name
        elif "norm" in name:
            assert (parameter == 1).all(), name
        elif last == "bias":
            assert (name == "encoder.projection.bias") == bool(parameter.any()), name
        else:
            rows = parameter.shape[0]
            bound = (6 / (rows + parameter.shape[1])) ** 0.5
            assert 0.9 * bound < parameter.abs().max() <= bound, name


@pytest.mark.parametrize("likelihood", ["point", "gaussian"])
def test_one_batch_can_be_overfitted(likelihood):
    torch.manual_seed(0)
    mae = MaskedAutoencoder(small(likelihood=likelihood))
    tokens = random_tokens(4, 10, dtype=torch.float32)
    mask = torch.tensor([[False, True, False, False, True] * 2] * 4)
    optimiser = torch.optim.Adam(mae.parameters(), lr=5e-3)
    for _ in range(200):
        optimiser.zero_grad()
        with unchecked():  # the answer below is
            losses.reconstruction(mae(tokens, mask)).mean.backward()
        torch.nn.utils.clip_grad_norm_(mae.parameters(), 1.0)
        optimiser.step()
    out = mae(tokens, mask)
    share = ((out.predicted - out.masked.values).square().mean() / out.masked.values.var()).item()
    assert share < 0.02


def test_the_residual_stream_keeps_the_weights_precision_under_autocast():
    mae = MaskedAutoencoder(small())
    tokens, mask = random_tokens(2, 6, dtype=torch.float32), torch.tensor([[False, True] * 3] * 2)
    wanted = mae(tokens, mask).predicted
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = mae(tokens, mask).predicted
    assert out.dtype == torch.float32 and 0 < (out - wanted).abs().max() < 0.1
    assert not out.equal(out.bfloat16().float())  # the last layer does not round it
