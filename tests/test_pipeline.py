"""Saved pipelines: the same bits back, and whatever is damaged, foreign or in the way is named."""

import json
import os
import pickle
import shutil
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file, save_file
from scipy.sparse import csr_array

import rotarymae
from conftest import identity, random_tokens, refuses, small
from rotarymae.any_series import TOKEN_NUMBERS, AnySeries
from rotarymae.errors import ModelDirectoryError
from rotarymae.heads import Classifier, Regressor, encoder_of
from rotarymae.labels import ClassLabels, NumberTargets
from rotarymae.model import Encoder
from rotarymae.model_files import write_config
from rotarymae.pipeline import KINDS, Pipeline
from rotarymae.preprocess import ObservationPreprocessor
from rotarymae.series.dataset import SeriesDataset

MASK = torch.tensor([[False, True, True, False, False, True]] * 2)
PREDICT = {
    "Encoder": lambda model, tokens: model(tokens).tokens,
    "MaskedAutoencoder": lambda model, tokens: model(tokens, MASK).predicted,
    "AnySeries": lambda model, tokens: model.decode(model.context(tokens), tokens.positions),
    "Classifier": lambda model, tokens: model(tokens),
    "Regressor": lambda model, tokens: model(tokens),
}


def make(kind, **changes):
    if kind == "AnySeries":
        return AnySeries(small(features=1, input_features=TOKEN_NUMBERS - 1, axes=2, likelihood="student_t"))
    config = small(features=2, dropout=0.1, **changes)
    if kind in ("Encoder", "MaskedAutoencoder"):
        return KINDS[kind](config)
    heads = {
        "Classifier": lambda: Classifier(Encoder(config), 3, "mean", 0.2),
        "Regressor": lambda: Regressor(Encoder(config), 2),
    }
    return heads[kind]()


def preprocessor(features=2):
    values = np.random.default_rng(0).normal(size=(6, features))
    return ObservationPreprocessor.fit(SeriesDataset.from_arrays([np.arange(6.0)], [values]))


@pytest.mark.parametrize("kind", list(KINDS))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_loaded_model_predicts_the_same_bits(tmp_path, kind, dtype):
    assert set(PREDICT) == set(KINDS)
    model = make(kind, likelihood="gaussian").to(dtype)
    Pipeline(None, model).save(tmp_path / "model", note="Trained on nothing.")
    assert model.training  # saving changes nothing
    tokens = random_tokens(2, 6, 2, axes=encoder_of(model).config.axes, dtype=dtype)
    tokens = replace(tokens, values=tokens.values.abs())  # one of them may be a variance
    before = torch.get_rng_state()
    back = Pipeline.load(tmp_path / "model").model
    assert torch.get_rng_state().equal(before)  # the caller's random numbers are left alone
    assert type(back) is type(model) and not any(module.training for module in back.modules())
    assert PREDICT[kind](back, tokens).equal(PREDICT[kind](model.eval(), tokens))
    for (name, one), (again, other) in zip(model.state_dict().items(), back.state_dict().items(), strict=True):
        assert name == again and one.equal(other) and one.dtype == other.dtype
    if hasattr(model, "dropout"):
        assert back.dropout.rate == model.dropout.rate
    assert all(parameter.requires_grad for parameter in back.parameters())


def test_a_model_card_says_how_to_use_the_model_and_holds_no_html_of_a_table(tmp_path):
    made, labels = preprocessor(), ClassLabels(("<script>", "b\n# c", "d"))
    uses = {
        "Classifier": ["rotarymae predict FOLDER table.csv --out predictions.csv"],
        "Regressor": ["rotarymae predict FOLDER table.csv --out predictions.csv"],
        "MaskedAutoencoder": ["rotarymae interpolate FOLDER", "rotarymae embed FOLDER"],
        "Encoder": [],
    }
    assert {*uses, "AnySeries"} == set(KINDS)  # whose card ships with it
    for kind, commands in uses.items():
        Pipeline(made, make(kind), labels=labels if kind == "Classifier" else None).save(tmp_path / kind)
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
        assert ("classes: &lt;script&gt;, b # c, d\n" in card) == (kind == "Classifier") and "<script>" not in card
        assert "&#" not in card  # quotation marks stay readable
        Pipeline(None, make(kind)).save(tmp_path / kind)  # without a preprocessor there is no table that it could read
        assert "table.csv" not in (tmp_path / kind / "README.md").read_text()


def test_what_a_directory_holds(tmp_path):
    made = preprocessor()
    labels = ClassLabels(("a", "b", "c"))
    Pipeline(made, make("Classifier"), labels=labels).save(str(tmp_path / "model"), "Seen: six nights.")
    files = sorted(path.name for path in (tmp_path / "model").iterdir())
    assert files == ["README.md", "config.json", "model.safetensors"]
    card = (tmp_path / "model" / "README.md").read_text()
    parameters = sum(p.numel() for p in make("Classifier").parameters())
    for part in ("Classifier (24/2/2)", f"{parameters:,} parameters", "Seen: six nights.", "classes: a, b, c"):
        assert part in card
    back = Pipeline.load(tmp_path / "model")
    assert identity(back.preprocessor) == identity(made) and back.labels == labels and back.model.pool == "mean"
    Pipeline(None, make("Encoder")).save(tmp_path / "model")  # a model directory is replaced
    assert Pipeline.load(tmp_path / "model").preprocessor is None


def forge(folder):
    """Make the sums in config.json fit the files."""
    content = json.loads((folder / "config.json").read_text())
    content.pop("files")
    write_config(folder, content)


@pytest.fixture
def folder(tmp_path):
    Pipeline(preprocessor(), make("Classifier")).save(tmp_path / "model")
    return tmp_path / "model"


def test_a_file_that_may_not_be_read_is_named(folder, monkeypatch):
    def refused(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(rotarymae.model_files, "sha256", refused)
    with refuses("model.safetensors cannot be read: Permission denied", error=ModelDirectoryError):
        Pipeline.load(folder)


@pytest.mark.parametrize("keep", [0, 4, 100, -1, -500])
def test_truncated_weights_are_refused(folder, keep):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with refuses("model.safetensors", "checksum", error=ModelDirectoryError):
        Pipeline.load(folder)
    forge(folder)
    with refuses("model.safetensors cannot be read", error=ModelDirectoryError):
        Pipeline.load(folder)


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
        with refuses("model.safetensors", "checksum", error=ModelDirectoryError):
            Pipeline.load(folder)
        forge(folder)
        with refuses("model.safetensors cannot be read", "a pickle", "never read", error=ModelDirectoryError):
            Pipeline.load(folder)
    path.rename(folder / "pytorch_model.bin")
    with refuses("model.safetensors", "pytorch_model.bin", error=ModelDirectoryError):
        Pipeline.load(folder)
    assert not Bomb.exploded


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with refuses(f"{name} is missing", error=ModelDirectoryError):
        Pipeline.load(folder)


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"[1]", b"[" * 100_000, b'{"a": NaN}', b'{"a": 1e999}'])
def test_a_file_that_is_no_object_is_named(folder, content):
    (folder / "config.json").write_bytes(content)
    with refuses("config.json cannot be read" if b"a" in content else "config.json", error=ModelDirectoryError):
        Pipeline.load(folder)


def test_no_folder_is_named(folder):
    for name in (folder / "nowhere", "n" * 300, "n" * 300 + "/n", ""):
        with refuses("no model", name):
            Pipeline.load(name)
    with refuses(folder / "config.json", "is not a folder", error=ModelDirectoryError):
        Pipeline.load(folder / "config.json")
    with refuses("precision='fp8'", "'bf16'"):
        Pipeline.load(folder, "fp8")  # pyright: ignore


@pytest.mark.parametrize(
    ("name", "change", "parts"),
    [
        ("config.json", lambda c: c.update(format=5), ("format 5", "reads format 4")),
        ("config.json", lambda c: c.pop("format"), ("format None",)),
        ("config.json", lambda c: c.pop("files"), ("config.json", "checksums")),
        ("config.json", lambda c: c["files"].update({"model.safetensors": "0"}), ("model.safetensors", "checksum")),
        ("config.json", lambda c: c["model"].update(kind="Transformer"), ("config.json", "checksum")),
        ("config.json", lambda c: c["preprocessor"].update(extra=1), ("config.json", "checksum")),
    ],
)
def test_a_changed_description_is_named(folder, name, change, parts):
    path = folder / name
    described = json.loads(path.read_text())
    change(described)
    path.write_text(json.dumps(described))
    with refuses(*parts, error=ModelDirectoryError):
        Pipeline.load(folder)


@pytest.mark.parametrize(
    ("features", "kind", "labels", "parts"),
    [
        (3, "Encoder", None, ["3 features and 1 axes", "2 and 1"]),
        (
            2,
            "Regressor",
            NumberTargets((0.0,), (1.0,)),
            ["Regressor of 1 outputs", "Regressor of 2 outputs; take labels and model from one run"],
        ),
        (2, "Classifier", ClassLabels(("a", "b")), ["Classifier of 2 outputs", "Classifier of 3"]),
        (2, "Classifier", NumberTargets((0.0,) * 3, (1.0,) * 3), ["regression", "Regressor of 3", "Classifier of 3"]),
    ],
)
def test_a_preprocessor_or_labels_of_another_model_are_refused(features, kind, labels, parts, tmp_path):
    Pipeline(preprocessor(features), make(kind), labels=labels).save(tmp_path / "model")
    with refuses(*parts, error=ModelDirectoryError):
        Pipeline.load(tmp_path / "model")


def test_save_refuses_to_replace_what_is_not_a_model(tmp_path):
    own = tmp_path / "results"
    own.mkdir()
    (own / "thesis.txt").write_text("years of work")
    (own / "config.json").write_text("{}")
    with refuses("results", "thesis.txt", "choose a new folder"):
        Pipeline(None, make("Encoder")).save(own)
    assert sorted(path.name for path in own.iterdir()) == ["config.json", "thesis.txt"]
    assert (own / "thesis.txt").read_text() == "years of work" and (own / "config.json").read_text() == "{}"
    with refuses("thesis.txt", "is a file"):
        Pipeline(None, make("Encoder")).save(own / "thesis.txt")
    with refuses("is a Linear", "MaskedAutoencoder"):
        Pipeline(None, torch.nn.Linear(1, 1))
    assert not (tmp_path / "new").exists()


def test_nothing_behind_a_link_is_removed(tmp_path):
    Pipeline(None, make("Encoder")).save(tmp_path / "real" / "model")
    before = {path.name: path.read_bytes() for path in (tmp_path / "real" / "model").iterdir()}
    (tmp_path / "link").symlink_to(tmp_path / "real" / "model")
    with refuses("link", "link", "real/model", "remove the link"):
        Pipeline(None, make("Encoder")).save(tmp_path / "link")
    assert {path.name: path.read_bytes() for path in (tmp_path / "real" / "model").iterdir()} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real"]
    # A link on the way is only another name of a folder; a link in a model directory is removed, not what it leads to.
    kept = tmp_path / "weights"
    (tmp_path / "real" / "model" / "model.safetensors").rename(kept)
    (tmp_path / "real" / "model" / "model.safetensors").symlink_to(kept)
    (tmp_path / "way").symlink_to(tmp_path / "real")
    model = make("Encoder")
    Pipeline(None, model).save(tmp_path / "way" / "model")
    assert Pipeline.load(tmp_path / "real" / "model").model.projection.weight.equal(model.projection.weight)
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
    Pipeline(None, make("Encoder")).save(tmp_path / "model")
    gone = before - {str(path) for path in tmp_path.rglob("*")}
    left = tmp_path / ".model.0123abcd.part"
    assert gone == {str(left), str(left / "config.json"), str(left / ".tmpXyZ")}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such limits")
def test_a_failed_save_names_the_file_and_leaves_the_old_model(tmp_path):
    import resource

    model = make("Encoder")
    Pipeline(None, model).save(tmp_path / "model")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8000, hard))  # bytes of one file, as when the disk is full
    try:
        with refuses("model", error=OSError):
            Pipeline(None, make("Encoder")).save(tmp_path / "model")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert Pipeline.load(tmp_path / "model").model.projection.weight.equal(model.projection.weight)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("harm", ["whole numbers", "two types", "NaN", "too deep", "surplus", "missing"])
def test_weights_that_no_model_has_are_refused(folder, harm):
    """With checksums to match, as somebody might make them."""
    path, described = folder / "model.safetensors", json.loads((folder / "config.json").read_text())
    tensors = load_file(path)
    if harm == "too deep":
        described["model"]["config"]["depth"] = 10**6
    elif harm == "surplus":
        tensors["model.other"] = torch.zeros(1)
    elif harm == "missing":
        del tensors["model.head.bias"]
    elif harm == "NaN":
        tensors["model.head.bias"][0] = torch.nan
    else:
        kind = torch.int32 if harm == "whole numbers" else torch.float16
        tensors["model.head.bias"] = tensors["model.head.bias"].to(kind)
    save_file(tensors, path)
    (folder / "config.json").write_text(json.dumps(described))
    forge(folder)
    parts = {
        "too deep": ("blocks; wanted at most",),
        "surplus": ("model.other", "surplus"),
        "missing": ("missing",),
    }
    parts["NaN"] = ("'head.bias'", "NaN")
    with refuses(*parts.get(harm, ("'head.bias'", "floating point type")), error=ModelDirectoryError):
        Pipeline.load(folder)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("config.json", lambda c: c["model"].update(kind="Transformer")),
        ("config.json", lambda c: c["model"].update(head=None)),
        ("config.json", lambda c: c["model"]["head"].update(classes="three")),
        ("config.json", lambda c: c["model"]["head"].update(classes=2**62)),
        ("config.json", lambda c: c["model"]["config"].update(features=2.5)),
        ("config.json", lambda c: c["model"]["config"].update(p=True)),
        ("config.json", lambda c: c.update(autoencoder=dict(c["model"]))),
        ("config.json", lambda c: c.update(labels={"task": "classification", "classes": ["a", "a", "b"]})),
        ("config.json", lambda c: c.update(labels={"task": "regression", "mean": [0.0], "std": [0.0]})),
        ("config.json", lambda c: c.update(labels={"task": "ranking"})),
        ("config.json", lambda c: c.update(labels=[])),
        ("config.json", lambda c: c["preprocessor"].update(kind="pickle")),
        ("config.json", lambda c: c.update(preprocessor=None)),
        ("config.json", lambda c: c.update(columns=[1])),
        ("config.json", lambda c: c.update(columns={"values": 3})),
        ("config.json", lambda c: c.update(columns={"id": ["a"]})),
        ("config.json", lambda c: c.update(parameters={"batch_size": "many"})),
        ("config.json", lambda c: c.update(parameters={"mask_ratio": [1]})),
        ("config.json", lambda c: c.update(forecasts="yes")),
        ("config.json", lambda c: c.update(parameters=None)),
        ("config.json", lambda c: c.update(surplus=1)),
        ("config.json", lambda c: c["preprocessor"].update(surplus=1)),
        ("config.json", lambda c: c["preprocessor"].update(value_names="flux")),
        ("config.json", lambda c: c["preprocessor"].update(join_times=1)),
        ("config.json", lambda c: c["preprocessor"].pop("kind")),
    ],
)
def test_what_no_pipeline_says_is_refused_whatever_its_checksum(folder, name, change):
    content = json.loads((folder / name).read_text())
    change(content)
    (folder / name).write_text(json.dumps(content))
    forge(folder)
    with refuses(folder, error=ModelDirectoryError):
        Pipeline.load(folder)


@pytest.mark.parametrize(
    "name", ["/proc/kmsg", "../../etc/hostname", "model.pt", "partners/../x.json", "training/a.json"]
)
def test_no_other_file_than_a_pipelines_is_opened(folder, name, monkeypatch):
    content = json.loads((folder / "config.json").read_text())
    content["files"][name] = "0"
    (folder / "config.json").write_text(json.dumps(content))
    opened = []
    monkeypatch.setattr("rotarymae.model_files.sha256", lambda path: opened.append(path) or "0")
    with refuses(name, "no file of a model", error=ModelDirectoryError):
        Pipeline.load(folder)
    assert not opened


def test_a_pipeline_is_tied_together(fitted, tmp_path):
    """Partners that are gone, of another pipeline, or put beside one that has none are refused in one line."""
    source = fitted / "run/model"
    before = Pipeline.load(source)
    assert before.partners is not None and before.labels.classes == ("a", "b")
    shutil.copytree(source, tmp_path / "gone")
    shutil.rmtree(tmp_path / "gone/partners")
    with refuses("partners", "missing", error=ModelDirectoryError):
        Pipeline.load(tmp_path / "gone")
    shutil.copytree(source, tmp_path / "other")
    replace(before, partners=replace(before.partners, choice="model")).save(tmp_path / "another")
    shutil.rmtree(tmp_path / "other/partners")
    shutil.copytree(tmp_path / "another/partners", tmp_path / "other/partners")
    with refuses("partners/predictor.json", "checksum", error=ModelDirectoryError):
        Pipeline.load(tmp_path / "other")
    shutil.copytree(fitted / "run", tmp_path / "run")
    shutil.rmtree(tmp_path / "run/model")
    shutil.copytree(tmp_path / "another", tmp_path / "run/model")
    with refuses("model", "another run", error=ModelDirectoryError):
        Pipeline.load(tmp_path / "run")
    before.pretrained.save(tmp_path / "alone")
    shutil.copytree(source / "partners", tmp_path / "alone/partners")
    with refuses("no part of this model", error=ModelDirectoryError):
        Pipeline.load(tmp_path / "alone")
    before.pretrained.save(tmp_path / "another")  # what was there goes, partners included
    assert Pipeline.load(tmp_path / "another").partners is None


def test_a_pipeline_answers_every_form_of_data(fitted):
    pipeline = rotarymae.load(fitted / "run")
    frame = pd.read_csv(fitted / "stars.csv")
    dataset = SeriesDataset.from_file(fitted / "stars.csv", "star", "day", "band", ["flux"])
    wanted = pipeline.predict_proba(dataset)
    for form in (frame, fitted / "stars.csv", str(fitted / "stars.csv"), list(dataset)):
        assert np.array_equal(pipeline.predict_proba(form), wanted)
    assert (pipeline.predict(frame) == np.array(["a", "b"])[wanted.argmax(1)]).all()
    assert pipeline.embed(frame).shape == (24, 24) and len(pipeline.importance(frame)) == 24
    mean, std = pipeline.interpolate(frame, at=[1.0, 5.0], return_std=True)
    assert mean.shape == std.shape == (24, 2, 2, 1)
    assert pipeline.anomaly_score(frame).shape == (24,)
    for form in (np.array(5.0), [np.array(5.0)], np.arange(5.0), csr_array(np.eye(5)), [[1, 2], [3]]):
        with refuses("the series are"):
            pipeline.predict(form)
    with refuses("not fine-tuned"):
        pipeline.pretrained.predict(frame)
    with refuses("MaskedAutoencoder"):
        replace(pipeline, autoencoder=None).interpolate(frame)
