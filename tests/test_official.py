"""The published code: the same numbers from its weights, and a damaged checkpoint is refused by what is wrong."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from conftest import TESTS, refuses
from rotarymae import losses, official
from rotarymae.errors import ModelDirectoryError
from rotarymae.heads import Classifier
from rotarymae.model import MaskedAutoencoder
from rotarymae.rope import angles, frequencies, rotate, rotation
from rotarymae.tokenizers import patchify
from rotarymae.tokens import Tokens

PARITY = TESTS / "parity"
CASES = sorted(path.name for path in PARITY.iterdir() if path.is_dir())


def settings_of(name):
    return json.loads((PARITY / name / "model_config.json").read_text())


def tokens_of(io, settings):
    """Their values [B, T, C, height, width] and positions [B, A, N] as Tokens; patches as (time, height, width, C)."""
    patches = patchify(io["values"].permute(0, 1, 3, 4, 2), settings["tubelet_size"])
    padding = io["pad_mask"].bool() if "pad_mask" in io else None
    return Tokens(patches.values, io["positions"].mT.contiguous(), padding)


def rope_difference(name):
    io = load_file(PARITY / name / "io.safetensors")
    config = json.loads((PARITY / name / "config.json").read_text())
    keep = frequencies(config["head_dim"], config["axes"], config["p"], config["base"])
    order = torch.arange(config["head_dim"]).unflatten(0, (config["axes"], 2, -1)).transpose(0, 1).flatten()
    out = rotate(io["x"][..., order], rotation(angles(io["positions"].mT, keep)))
    return {"rotated": (out - io["y"][..., order]).abs().max().item()}


def model_difference(name):
    io, settings = load_file(PARITY / name / "io.safetensors"), settings_of(name)
    model, tokens = official.load(PARITY / name), tokens_of(io, settings)
    assert not model.training and model.encoder.config.norm_eps == 1e-12
    with torch.no_grad():
        if isinstance(model, Classifier):
            assert "pad_mask" not in io or tokens.padding is not None
            out = model(tokens)
            return {"logits": (out - io["output"]).abs().max().item()}
        found = model(tokens, io["mask"].bool())
        loss = losses.reconstruction(found, settings["normalize_targets"]).mean
    assert found.predicted.shape == io["output"].shape and found.masked.padding is None
    return {"predicted": (found.predicted - io["output"]).abs().max().item(), "loss": (loss - io["loss"]).abs().item()}


@pytest.mark.parametrize("name", CASES)
def test_parity_with_the_published_code(name):
    differences = rope_difference(name) if name.startswith("rope") else model_difference(name)
    print(f"{name}: " + ", ".join(f"{key} {value:.1e}" for key, value in differences.items()))
    assert all(value < 1e-5 for value in differences.values())
    assert ("loss" in differences) == name.startswith("pretraining")


def test_the_six_cases_are_all_there():
    models = ["classifier_cls", "classifier_cls_padded", "pretraining", "pretraining_patches"]
    assert [*models, "rope_1axis", "rope_2axes"] == CASES


def test_padding_of_the_published_case_matters():
    io = load_file(PARITY / "classifier_cls_padded" / "io.safetensors")
    assert io["pad_mask"].any()
    model = official.load(PARITY / "classifier_cls_padded")
    tokens = tokens_of(io | {"pad_mask": torch.zeros_like(io["pad_mask"])}, settings_of("classifier_cls_padded"))
    assert (model(tokens) - io["output"]).abs().max() > 1e-3


def test_what_a_checkpoint_becomes():
    mae = official.load(PARITY / "pretraining")
    assert isinstance(mae, MaskedAutoencoder) and (mae.config.decoder_embed_dim, mae.config.decoder_depth) == (36, 1)
    classifier = official.load(str(PARITY / "classifier_cls"))
    assert isinstance(classifier, Classifier) and (classifier.classes, classifier.pool) == (5, "cls")
    theirs = load_file(PARITY / "classifier_cls" / "model.safetensors")
    assert classifier.encoder.projection.weight.equal(theirs["projection.weight"])


# ── refusals ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def checkpoint(tmp_path):
    """A function that copies a case and changes its settings or tensors."""

    def make(name="pretraining", settings=lambda s: s, tensors=lambda t: t):
        folder = tmp_path / name
        shutil.copytree(PARITY / name, folder)
        changed, loaded = settings_of(name), load_file(folder / "model.safetensors")
        settings(changed)
        tensors(loaded)
        (folder / "model_config.json").write_text(json.dumps(changed))
        save_file(loaded, folder / "model.safetensors")
        return folder

    return make


WQ = "encoder.layers.1.attention.wq.weight"
NORM = "decoder.layers.0.ffn_norm.weight"


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (lambda t: t.pop("projection.weight"), ("'encoder.projection.weight' is missing",)),
        (lambda t: t.pop("cls"), ("'encoder.cls_token' is missing",)),
        (lambda t: t.pop("mask_token"), ("'mask_token' is missing",)),
        (lambda t: t.pop(NORM), ("'decoder.blocks.0.mlp_norm.weight' is missing",)),
        (lambda t: t.pop(WQ), ("'encoder.transformer.blocks.1.attention.query.weight' is missing",)),
        (lambda t: t.update(extra=torch.zeros(1)), ("surplus tensor 'extra'", "fetch it anew")),
        (lambda t: t.update({"encoder.layers.7.ffn_norm.weight": torch.zeros(72)}), ("surplus", "layers.7.ffn_norm")),
        (lambda t: t.update({"encoder.layers.x.ffn_norm.weight": torch.zeros(72)}), ("surplus", "layers.x.ffn_norm")),
        (lambda t: t.update({"encoder.layers.0.bias": torch.zeros(72)}), ("surplus", "encoder.layers.0.bias")),
        (lambda t: t.update({NORM: torch.zeros(7)}), ("decoder.blocks.0.mlp_norm.weight", "(7,)", "(36,)")),
        (lambda t: t.update({"projection.bias": torch.zeros(72, 1)}), ("encoder.projection.bias", "(72, 1)", "(72,)")),
        (lambda t: t.update(cls=torch.zeros(1, 1, 71)), ("encoder.cls_token", "(71,)", "(72,)")),
        (lambda t: t.update({WQ: torch.zeros(())}), ("blocks.1.attention.query.weight", "()", "(72, 72)")),
    ],
)
def test_missing_surplus_and_misshapen_tensors_are_named(checkpoint, change, parts):
    with refuses(*parts, error=ModelDirectoryError):
        official.load(checkpoint(tensors=change))


def test_a_classifier_with_a_decoder_in_its_file_is_refused(checkpoint):
    with refuses("surplus", NORM, error=ModelDirectoryError):
        official.load(checkpoint("classifier_cls", tensors=lambda t: t.update({NORM: torch.zeros(36)})))


@pytest.mark.parametrize(
    ("name", "change", "parts"),
    [
        (
            "pretraining",
            lambda s: s.update(pos_encoding="learned"),
            ("'learned'", "'ropend' or 'absolute'"),
        ),
        ("pretraining", lambda s: s.pop("pos_encoding"), ("'pos_encoding' is missing",)),
        ("pretraining", lambda s: s.pop("use_cls"), ("'use_cls' is missing",)),
        ("pretraining", lambda s: s.pop("encoder_config"), ("'d_model' is missing",)),
        ("pretraining", lambda s: s["decoder_config"].pop("nhead"), ("'nhead' is missing",)),
        ("classifier_cls", lambda s: s.pop("dim_output"), ("dim_output is None", "number of classes")),
        ("classifier_cls", lambda s: s.update(dim_output="x"), ("model_config.json: dim_output is 'x'", "classes")),
        ("classifier_cls", lambda s: s.update(dim_output=1), ("model_config.json: dim_output is 1", "at least 2")),
        ("pretraining", lambda s: s["encoder_config"].update(nhead=5), ("embed_dim (72)", "num_heads (5)")),
        ("classifier_cls", lambda s: s.update(dim_output=10**30), ("model_config.json", "beyond any model")),
        ("pretraining", lambda s: s["encoder_config"].update(dim_feedforward=72 * 10**30), ("beyond any model",)),
        (
            "pretraining",
            lambda s: s["encoder_config"].update(dim_feedforward=None, mlp_ratio=10**400),
            ("model_config.json", "too large"),
        ),
        ("pretraining", lambda s: s["encoder_config"].update(depth=3), ("blocks.2", "is missing")),
        (
            "pretraining",
            lambda s: s["encoder_config"].update(d_model=0, dim_feedforward=288),
            ("model_config.json", "embed_dim is 0"),
        ),
    ],
)
def test_unsupported_settings_are_named(checkpoint, name, change, parts):
    with refuses(*parts, error=ModelDirectoryError):
        official.load(checkpoint(name, settings=change))


def test_missing_and_unreadable_files_are_named(checkpoint):
    folder = checkpoint()
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-50])
    with refuses("model.safetensors", "cannot be read", error=ModelDirectoryError):
        official.load(folder)
    weights.unlink()
    with refuses("model.safetensors", "is missing", error=ModelDirectoryError):
        official.load(folder)
    settings = folder / "model_config.json"
    for text, part in [("{", "read as JSON"), ("[]", "holds a list")]:
        settings.write_text(text)
        with refuses("model_config.json", part, error=ModelDirectoryError):
            official.load(folder)
    settings.unlink()
    with refuses("model_config", error=ModelDirectoryError):
        official.load(folder)


def test_a_depth_beyond_the_file_is_refused_before_a_model_is_built(checkpoint):
    folder = checkpoint(settings=lambda s: s["encoder_config"].update(depth=10**9))
    with refuses("model_config.json", "1000000000 encoder blocks", error=ModelDirectoryError):
        official.load(folder)


@pytest.mark.parametrize("name", ["pretraining", "classifier_cls"])
def test_loading_draws_no_random_numbers(name):
    before = torch.get_rng_state()
    model = official.load(PARITY / name)
    assert torch.get_rng_state().equal(before)
    assert all(p.requires_grad and not p.is_meta and p.dtype == torch.float32 for p in model.parameters())


def test_a_setting_of_another_type_is_refused(checkpoint):
    folder = checkpoint(settings=lambda s: s.update(tubelet_size=2))
    with pytest.raises(ModelDirectoryError, match=r"model_config.*'int'"):
        official.load(folder)
