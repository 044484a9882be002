"""Model directories: the same bits back, and whatever is damaged, foreign or in the way is named."""

import json
import os
import pickle
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from conftest import random_tokens, refuses, small
from rotarymae.checkpoints import FILES, KINDS, check_replaceable, load, load_directory, save
from rotarymae.config import RoMAEConfig
from rotarymae.errors import ModelDirectoryError
from rotarymae.heads import Classifier, Regressor, TokenRegressor
from rotarymae.model import Encoder, MaskedAutoencoder
from rotarymae.series.dataset import SeriesDataset
from rotarymae.series.preprocessor import Preprocessor
from rotarymae.tasks.config import FitConfig
from rotarymae.tasks.pretrain_finetune import copy_encoder

MASK = torch.tensor([[False, True, True, False, False, True]] * 2)
PREDICT = {
    "Encoder": lambda model, tokens: model(tokens).tokens,
    "MaskedAutoencoder": lambda model, tokens: model(tokens, MASK).predicted,
    "Classifier": lambda model, tokens: model(tokens),
    "Regressor": lambda model, tokens: model(tokens),
    "TokenRegressor": lambda model, tokens: model(tokens),
}


def make(kind, **changes):
    config = small(features=2, dropout=0.1, **changes)
    if kind in ("Encoder", "MaskedAutoencoder"):
        return KINDS[kind](config)
    heads = {
        "Classifier": lambda: Classifier(Encoder(config), 3, "mean", 0.2),
        "Regressor": lambda: Regressor(Encoder(config), 2),
        "TokenRegressor": lambda: TokenRegressor(Encoder(config), 2, 0.1),
    }
    return heads[kind]()


def preprocessor(features=2):
    values = np.random.default_rng(0).normal(size=(6, features))
    return Preprocessor.fit(SeriesDataset.from_arrays([np.arange(6.0)], [values]))


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_loaded_model_predicts_the_same_bits(tmp_path, kind, dtype):
    assert set(PREDICT) == set(KINDS)
    model = make(kind, likelihood="gaussian").to(dtype)
    save(model, tmp_path / "model", note="Trained on nothing.")
    assert model.training  # saving changes nothing
    tokens = random_tokens(2, 6, 2, dtype=dtype)
    before = torch.get_rng_state()
    back = load(tmp_path / "model")
    assert torch.get_rng_state().equal(before)  # the caller's random numbers are left alone
    assert type(back) is type(model) and not any(module.training for module in back.modules())
    assert PREDICT[kind](back, tokens).equal(PREDICT[kind](model.eval(), tokens))
    for (name, one), (again, other) in zip(model.state_dict().items(), back.state_dict().items(), strict=True):
        assert name == again and one.equal(other) and one.dtype == other.dtype
    if hasattr(model, "dropout"):
        assert back.dropout.rate == model.dropout.rate
    assert all(parameter.requires_grad for parameter in back.parameters())


def test_a_loaded_model_attends_as_the_saved_one(tmp_path):
    model, tokens = make("Encoder", attention="linear").eval(), random_tokens(2, 6, 2, dtype=torch.float32)
    save(model, tmp_path / "model")
    back = load(tmp_path / "model")
    assert back.config.attention == "linear" and back(tokens).tokens.equal(model(tokens).tokens)


def test_a_model_card_says_how_to_use_the_model_and_holds_no_html_of_a_table(tmp_path):
    made = replace(preprocessor(), classes=("<script>", "b\n# c", "d"))
    uses = {
        "Classifier": ["rotarymae predict FOLDER table.csv --out predictions.csv"],
        "Regressor": ["rotarymae predict FOLDER table.csv --out predictions.csv"],
        "MaskedAutoencoder": ["rotarymae interpolate FOLDER", "rotarymae embed FOLDER"],
        "Encoder": [],
        "TokenRegressor": [],
    }
    assert set(uses) == set(KINDS)
    for kind, commands in uses.items():
        save(make(kind), tmp_path / kind, made)
        card = (tmp_path / kind / "README.md").read_text()
        for part in (
            "library_name: rotarymae",
            "license: unknown",
            'rotarymae.load("FOLDER")',
            "## Licence",
            *commands,
        ):
            assert part in card
        assert ("rotarymae predict" in card) == (kind in ("Classifier", "Regressor"))
        assert "classes: &lt;script&gt;, b # c, d\n" in card and "<script>" not in card
        assert "&#" not in card  # quotation marks stay readable
        save(make(kind), tmp_path / kind)  # without a preprocessor there is no table that it could read
        assert "table.csv" not in (tmp_path / kind / "README.md").read_text()


def test_what_a_directory_holds(tmp_path):
    made = preprocessor()
    save(make("Classifier"), str(tmp_path / "model"), replace(made, classes=("a", "b", "c")), "Seen: six nights.")
    files = sorted(path.name for path in (tmp_path / "model").iterdir())
    assert files == ["README.md", "config.json", "model.safetensors", "preprocessor.json"]
    card = (tmp_path / "model" / "README.md").read_text()
    parameters = sum(p.numel() for p in make("Classifier").parameters())
    for part in ("Classifier (24/2/2)", f"{parameters:,} parameters", "Seen: six nights.", "classes: a, b, c"):
        assert part in card
    back = load_directory(tmp_path / "model")
    assert back.preprocessor == replace(made, classes=("a", "b", "c")) and back.model.pool == "mean"
    save(make("Encoder"), tmp_path / "model")  # a model directory is replaced
    assert load_directory(tmp_path / "model").preprocessor is None


@pytest.fixture
def folder(tmp_path):
    save(make("Classifier"), tmp_path / "model", preprocessor())
    return tmp_path / "model"


@pytest.mark.parametrize("keep", [0, 4, 100, -1, -500])
def test_truncated_weights_are_refused(folder, keep):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with refuses("model.safetensors", error=ModelDirectoryError):
        load(folder)


class Bomb:
    """Sets a flag when it is unpickled."""

    exploded = False

    def __reduce__(self):
        return setattr, (Bomb, "exploded", True)


def test_a_pickle_in_place_of_weights_is_refused_and_never_run(folder):
    path = folder / "model.safetensors"
    dumps = [path.write_bytes, lambda content: torch.save({"a": Bomb()}, path)]
    for write, protocol in [(dumps[0], 2), (dumps[0], 4), (dumps[0], 5), (dumps[1], 2)]:
        write(pickle.dumps(Bomb(), protocol))
        with refuses("model.safetensors", "a pickle", "never read", error=ModelDirectoryError):
            load(folder)
    path.rename(folder / "pytorch_model.bin")
    with refuses("model.safetensors", "pytorch_model", error=ModelDirectoryError):
        load(folder)
    assert not Bomb.exploded


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "preprocessor.json"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with refuses(f"{name} is missing", error=ModelDirectoryError):
        load(folder)


@pytest.mark.parametrize("name", ["config.json", "preprocessor.json"])
@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"[1]", b"[" * 100_000])
def test_a_file_that_is_no_object_is_named(folder, name, content):
    (folder / name).write_bytes(content)
    with refuses(name, error=ModelDirectoryError):
        load(folder)


def test_no_folder_is_named(folder):
    for path in (folder / "nowhere", folder / "config.json"):
        with refuses(path, "is not a folder", "config.json", error=ModelDirectoryError):
            load(path)


def test_a_changed_weight_is_named(folder):
    tensors = load_file(folder / "model.safetensors")
    tensors["head.bias"][0] += 1
    save_file(tensors, folder / "model.safetensors")
    with refuses("model.safetensors", "checksum", error=ModelDirectoryError):
        load(folder)


@pytest.mark.parametrize(
    ("name", "change", "parts"),
    [
        ("config.json", lambda c: c.update(format=3), ("format 3", "reads format 2")),
        ("config.json", lambda c: c.pop("format"), ("format None",)),
        ("config.json", lambda c: c.pop("sha256"), ("config.json", "checksum")),
        ("config.json", lambda c: c["sha256"].update({"model.safetensors": "0"}), ("model.safetensors", "checksum")),
        ("config.json", lambda c: c.update(kind="Transformer"), ("config.json", "checksum")),
        ("config.json", lambda c: c["config"].update(depth=10**9), ("config.json", "checksum")),
        ("config.json", lambda c: c["head"].update(classes=4), ("config.json", "checksum")),
        ("preprocessor.json", lambda p: p.update(extra=1), ("preprocessor.json", "checksum")),
        ("preprocessor.json", lambda p: p["values"].update(std=[["a", "b"]]), ("preprocessor.json", "checksum")),
    ],
)
def test_a_changed_description_is_named(folder, name, change, parts):
    path = folder / name
    described = json.loads(path.read_text())
    change(described)
    path.write_text(json.dumps(described))
    with refuses(*parts, error=ModelDirectoryError):
        load(folder)


def test_a_directory_of_the_first_format_has_no_checksums(folder):
    path = folder / "config.json"
    described = json.loads(path.read_text())
    del described["sha256"]
    path.write_text(json.dumps(described | {"format": 1}))
    assert load(folder).pool == "mean"


def test_a_preprocessor_of_another_model_is_refused(tmp_path):
    save(make("Encoder"), tmp_path / "model", preprocessor(features=3))
    with refuses("3 features and 1 axes", "2 and 1", error=ModelDirectoryError):
        load(tmp_path / "model")


def test_a_preprocessor_of_another_number_of_targets_is_refused(tmp_path):
    save(make("Regressor"), tmp_path / "model", replace(preprocessor(), target=((0.0, 1.0),)))
    with refuses("preprocessor.json", "1", "asks for 2", error=ModelDirectoryError):
        load(tmp_path / "model")


def test_a_preprocessor_of_another_number_of_classes_is_refused(tmp_path):
    save(make("Classifier"), tmp_path / "model", replace(preprocessor(), classes=("a", "b")))
    with refuses("preprocessor.json", "2", "asks for 3", error=ModelDirectoryError):
        load(tmp_path / "model")


def test_save_refuses_to_replace_what_is_not_a_model(tmp_path):
    own = tmp_path / "results"
    own.mkdir()
    (own / "thesis.txt").write_text("years of work")
    (own / "config.json").write_text("{}")
    with refuses("results", "thesis.txt", "choose a new folder"):
        save(make("Encoder"), own)
    assert sorted(path.name for path in own.iterdir()) == ["config.json", "thesis.txt"]
    assert (own / "thesis.txt").read_text() == "years of work" and (own / "config.json").read_text() == "{}"
    with refuses("thesis.txt", "is a file"):
        save(make("Encoder"), own / "thesis.txt")
    with refuses("got a Linear", "MaskedAutoencoder"):
        save(torch.nn.Linear(1, 1), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_nothing_behind_a_link_is_removed(tmp_path):
    save(make("Encoder"), tmp_path / "real" / "model")
    before = {path.name: path.read_bytes() for path in (tmp_path / "real" / "model").iterdir()}
    (tmp_path / "link").symlink_to(tmp_path / "real" / "model")
    for write in (check_replaceable, lambda folder: save(make("Encoder"), folder)):
        with refuses("link", "link", "real/model", "remove the link"):
            write(tmp_path / "link")
    assert {path.name: path.read_bytes() for path in (tmp_path / "real" / "model").iterdir()} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real"]
    # A link on the way is only another name of a folder; a link in a model directory is removed, not what it leads to.
    kept = tmp_path / "weights"
    (tmp_path / "real" / "model" / "model.safetensors").rename(kept)
    (tmp_path / "real" / "model" / "model.safetensors").symlink_to(kept)
    (tmp_path / "way").symlink_to(tmp_path / "real")
    model = make("Encoder")
    save(model, tmp_path / "way" / "model")
    assert load(tmp_path / "real" / "model").projection.weight.equal(model.projection.weight)
    assert kept.read_bytes() == before["model.safetensors"]


def test_what_killed_saves_left_is_removed_and_nothing_else(tmp_path):
    def folder(name, *files, hours=2.0):
        (tmp_path / name).mkdir()
        for file in files:
            (tmp_path / name / file).write_text("x")
            os.utime(tmp_path / name / file, (time.time() - 3600 * hours,) * 2)

    folder(".model.0123abcd.part", "config.json", ".tmpXyZ")
    folder(".model.0123abce.part", "config.json", hours=0.5)  # somebody may be writing it
    folder(".model.mine.part", "config.json")
    folder(".other.0123abcd.part", "config.json")
    folder("elsewhere", "config.json")
    (tmp_path / ".model.01234567.part").symlink_to(tmp_path / "elsewhere")
    before = {str(path) for path in tmp_path.rglob("*")}
    save(make("Encoder"), tmp_path / "model")
    gone = before - {str(path) for path in tmp_path.rglob("*")}
    left = tmp_path / ".model.0123abcd.part"
    assert gone == {str(left), str(left / "config.json"), str(left / ".tmpXyZ")}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_files_obey_the_umask(tmp_path):
    old = os.umask(0o027)
    try:
        save(make("Encoder"), tmp_path / "model")
    finally:
        os.umask(old)
    assert {path.name: oct(path.stat().st_mode & 0o777) for path in (tmp_path / "model").iterdir()} == dict.fromkeys(
        FILES, "0o640"
    )


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such limits")
def test_a_failed_save_names_the_file_and_leaves_the_old_model(tmp_path):
    import resource

    model = make("Encoder")
    save(model, tmp_path / "model")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8000, hard))  # bytes of one file, as when the disk is full
    try:
        with refuses("model.safetensors", error=OSError):
            save(make("Encoder"), tmp_path / "model")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert load(tmp_path / "model").projection.weight.equal(model.projection.weight)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_fine_tuning_starts_from_all_of_the_pretrained_encoder(tmp_path):
    mae = MaskedAutoencoder(RoMAEConfig(features=2))
    save(mae, tmp_path / "model")
    copy = copy_encoder(load(tmp_path / "model"), FitConfig(dropout=0.3, drop_path=0.1))
    model = Classifier(copy, 3)
    theirs = mae.encoder.state_dict()
    assert {"projection.weight", "projection.bias", "cls_token"} < set(theirs)
    for name, tensor in model.encoder.state_dict().items():
        assert tensor.equal(theirs[name]), name
    assert (copy.config.dropout, copy.config.drop_path) == (0.3, 0.1)
    assert copy is not mae.encoder and copy.projection.weight is not mae.encoder.projection.weight


@pytest.mark.parametrize("harm", ["whole numbers", "two types", "NaN", "too deep"])
def test_weights_that_no_model_has_are_refused(folder, harm):
    """With checksums to match, as somebody might make them."""
    path, described = folder / "model.safetensors", json.loads((folder / "config.json").read_text())
    described.pop("sha256")
    tensors = load_file(path)
    if harm == "too deep":
        described["config"]["depth"] = 10**6
    elif harm == "NaN":
        tensors["head.bias"][0] = torch.nan
    else:
        tensors["head.bias"] = tensors["head.bias"].to(torch.int32 if harm == "whole numbers" else torch.float16)
    save_file(tensors, path)
    (folder / "config.json").write_text(json.dumps(described | {"format": 1}))  # which had no checksums
    parts = ("more blocks than",) if harm == "too deep" else ("'head.bias'", "floating point type")
    with refuses(*parts, error=ModelDirectoryError):
        load(folder)
