"""The main jobs: what fine-tuning starts from, what is refused, and where values are asked for."""

import dataclasses

import numpy as np
import pytest
import torch

from conftest import command, refuses, write_csv
from rotarymae import SeriesDataset, load, save
from rotarymae.checkpoints import load_directory
from rotarymae.errors import InputWarning
from rotarymae.training import TrainConfig
from rotarymae.workflows import (
    Queries,
    Settings,
    as_queries,
    check_targets,
    class_index,
    copy_encoder,
    embed,
    finetune,
    grid,
    hide,
    interpolate,
    predict_probabilities,
    predict_values,
    pretrain,
    queries_at,
    split_off,
)

ONCE = TrainConfig(epochs=1, batch_size=8)
SETTINGS = Settings(pretrain=ONCE, finetune=ONCE)


@pytest.fixture(scope="module")
def data():
    draw = np.random.default_rng(0)
    times = [np.sort(draw.uniform(0, 20, draw.integers(4, 12))) for _ in range(16)]
    channels = [draw.integers(2, size=len(t)) for t in times]
    return SeriesDataset.from_arrays(times, [np.sin(t) for t in times], channels)


@pytest.fixture(scope="module")
def pretrained(data):
    return pretrain(data, SETTINGS)


KINDS = np.array(["x", "y"] * 8)


# ── fine-tuning starts from all of the encoder ──────────────────────────────────────────────────────────────────────


def test_the_copy_has_every_tensor_and_shares_none(pretrained):
    source = pretrained.model.encoder
    copy = copy_encoder(pretrained.model, dataclasses.replace(SETTINGS, dropout=0.3))
    assert copy.config == dataclasses.replace(source.config, dropout=0.3)
    assert list(copy.state_dict()) == list(source.state_dict())
    for name, tensor in copy.state_dict().items():
        assert torch.equal(tensor, source.state_dict()[name])
        assert tensor.data_ptr() != source.state_dict()[name].data_ptr()


@pytest.mark.parametrize(("task", "targets"), [("classification", KINDS), ("regression", np.arange(16.0))])
def test_finetuning_starts_from_the_pretrained_projection(task, targets, pretrained, data):
    before = {name: tensor.clone() for name, tensor in pretrained.model.state_dict().items()}
    still = dataclasses.replace(SETTINGS, finetune=dataclasses.replace(ONCE, base_lr=1e-30))
    tuned = finetune(pretrained, data, targets, still, task=task)
    projections = [name for name in tuned.model.encoder.state_dict() if "proj" in name and "blocks" not in name]
    assert projections, "the encoder has an input projection"
    for name, tensor in tuned.model.encoder.state_dict().items():
        assert torch.equal(tensor, before[f"encoder.{name}"]), name
    assert set(tuned.loaded) == {f"encoder.{name}" for name in tuned.model.encoder.state_dict()}
    # With a real rate all of it moves, and what was pre-trained stays as it was.
    moved = finetune(pretrained, data, targets, SETTINGS, task=task).model.encoder.state_dict()
    assert not any(torch.equal(moved[name], before[f"encoder.{name}"]) for name in moved)
    assert all(torch.equal(tensor, before[name]) for name, tensor in pretrained.model.state_dict().items())


def test_the_command_reports_what_was_loaded(fitted, tmp_path, capsys):
    columns = ["--id", "star", "--time", "day", "--channel", "band", "--values", "flux"]
    options = ["--labels", fitted / "kinds.csv", "--label", "kind", "--pretrain-epochs", "1", "--finetune-epochs", "1"]
    assert command("fit", fitted / "stars.csv", "--out", tmp_path / "run", *columns, *options, "--min-steps", "0") == 0
    count = len(load(tmp_path / "run/pretrained").encoder.state_dict())
    assert f"started from all {count} tensors of the pre-trained encoder" in " ".join(capsys.readouterr().err.split())


# ── a model saved and loaded ────────────────────────────────────────────────────────────────────────────────────────


def test_saved_and_loaded_models_give_the_same_bits(pretrained, data, tmp_path):
    save(pretrained.model, tmp_path / "p", pretrained.preprocessor)
    loaded = load_directory(tmp_path / "p")
    assert loaded.preprocessor == pretrained.preprocessor
    asked = grid(data, 5)
    for ours, theirs in zip(
        interpolate(pretrained.directory, data, asked), interpolate(loaded, data, asked), strict=True
    ):
        assert np.array_equal(ours, theirs)
    assert np.array_equal(embed(pretrained.directory, data), embed(loaded, data))
    for task, targets, job in (
        ("classification", KINDS, predict_probabilities),
        ("regression", np.arange(16.0), predict_values),
    ):
        tuned = finetune(pretrained, data, targets, SETTINGS, task=task)
        save(tuned.model, tmp_path / task, tuned.preprocessor)
        assert np.array_equal(job(tuned.directory, data), job(load_directory(tmp_path / task), data))
        # Fine-tuning from the loaded model is fine-tuning from the model.
        again = finetune(loaded, data, targets, SETTINGS, task=task)
        assert np.array_equal(job(tuned.directory, data), job(again.directory, data))


# ── labels ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_validation_may_have_fewer_classes_but_no_others(pretrained, data):
    part = data.select(np.arange(4))
    tuned = finetune(pretrained, data, KINDS, SETTINGS, validation=(part, np.array(["y"] * 4)))
    assert tuned.result.best is not None and predict_probabilities(tuned.directory, part).shape == (4, 2)
    with refuses("z", "x, y"):
        finetune(pretrained, data, KINDS, SETTINGS, validation=(part, np.array(["x", "y", "z", "x"])))
    assert class_index(np.array(["y", "y"]), ["x", "y"]).tolist() == [1, 1]


def test_targets():
    assert check_targets([1, 2], 2, "regression").tolist() == [[1.0], [2.0]]
    assert np.isnan(check_targets([1, np.nan], 2, "regression")[1, 0])
    assert check_targets(["a", "b"], 2, "classification").tolist() == ["a", "b"]
    with refuses("3 labels for 2 series"):
        check_targets([1, 2, 3], 2, "regression")
    with refuses("series 1", "infinite"):
        check_targets([1, np.inf], 2, "regression")
    with refuses("every label is missing"):
        check_targets([np.nan, np.nan], 2, "regression")
    with refuses("'b'", "number"):
        check_targets(["1", "b"], 2, "regression")
    with refuses("(2, 1)"):
        check_targets([["a"], ["b"]], 2, "classification")
    with refuses("strings", "numbers"):
        check_targets(np.array(["a", 1], object), 2, "classification")
    with refuses("'ranking'", "'regression'"):
        check_targets([1, 2], 2, "ranking")


def test_split_off_is_a_partition_that_trains_on_every_class():
    classes = np.array(list("aaaaaaaaabbbbbbbbbccd"))
    for seed in range(20):
        rest, part = split_off(np.arange(21), classes, 0.4, seed)
        assert sorted([*rest, *part]) == list(range(21))
        assert set(classes[rest]) == set("abcd")
        assert list(rest) == sorted(rest) and 5 <= len(part) <= 9
    assert not np.array_equal(
        split_off(np.arange(21), classes, 0.4, 0)[0], split_off(np.arange(21), classes, 0.4, 1)[0]
    )
    even = np.array(list("ab") * 10)
    assert sorted(even[split_off(np.arange(20), even, 0.2, 0)[1]]) == list("aabb")
    with refuses("0.9", "too few"):
        split_off(np.arange(1), None, 0.9, 0)


# ── hiding, and asking ──────────────────────────────────────────────────────────────────────────────────────────────


def test_hide_is_a_partition_that_leaves_one(data):
    visible, hidden, mask = hide(data, 0.4, seed=0)
    assert mask.sum() == len(hidden.times) and len(visible.times) + len(hidden.times) == len(data.times)
    assert (hidden.lengths == np.ceil(data.lengths * 0.4)).all()
    assert (visible.lengths >= 1).all()
    assert sorted([*visible.times, *hidden.times]) == sorted(data.times)
    assert np.array_equal(hide(data, 0.4, seed=0)[2], mask) and not np.array_equal(hide(data, 0.4, seed=1)[2], mask)
    single = SeriesDataset.from_arrays([[1.0], [1.0, 2.0]], [[1.0], [1.0, 2.0]])
    assert hide(single, 0.9, seed=0)[0].ids.tolist() == [1]
    with refuses("share 1.0"):
        hide(data, 1.0, seed=0)


def test_queries(data):
    even = grid(data, 3)
    assert even.lengths.tolist() == [6] * 16 and even.channels[:6].tolist() == [0, 0, 0, 1, 1, 1]
    first = data[0].times
    assert np.allclose(even.times[:3], [first[0], (first[0] + first[-1]) / 2, first[-1]])
    assert queries_at(data, np.array([1.0, 4.0])).times[:4].tolist() == [1, 4, 1, 4]
    own = as_queries(data)
    assert np.array_equal(own.times, data.times) and np.array_equal(own.offsets, data.offsets)
    with refuses("points is 0"):
        grid(data, 0)


def test_bad_queries(pretrained, data):
    offsets = np.arange(17)
    good = Queries(np.zeros(16), np.zeros(16, int), offsets)
    assert interpolate(pretrained.directory, data, good).mean.shape == (16, 1)
    for wrong, parts in (
        (dataclasses.replace(good, offsets=offsets[:-1]), ["15 series", "16"]),
        (dataclasses.replace(good, times=np.full(16, np.nan)), ["NaN"]),
        (dataclasses.replace(good, channels=None), ["channel"]),
        (dataclasses.replace(good, channels=np.full(16, 2)), ["channel 2", "0 to 1"]),
        (Queries(np.zeros(0), np.zeros(0, int), np.zeros(17, int)), ["no times"]),
    ):
        with refuses(*parts):
            interpolate(pretrained.directory, data, wrong)


def test_far_queries_are_warned_of(pretrained, data):
    with pytest.warns(InputWarning, match="series 1 is asked at time 900"):
        interpolate(pretrained.directory, data, queries_at(data, np.array([1.0, 900.0])))


def test_series_that_are_not_asked_change_nothing(pretrained, data):
    all_of_them = queries_at(data, np.array([1.0]))
    one = Queries(all_of_them.times[4:6], all_of_them.channels[4:6], np.array([0] * 3 + [2] * 14))
    found = interpolate(pretrained.directory, data, one)
    assert np.allclose(found.mean, interpolate(pretrained.directory, data, all_of_them).mean[4:6], atol=1e-5)


def test_bands_are_quantiles_in_the_tables_unit(pretrained, data):
    found = interpolate(pretrained.directory, data, grid(data, 4))
    assert np.allclose((found.upper68 - found.lower68) / 2, found.std)
    assert np.allclose(found.upper95 - found.lower95, 4 * found.std)  # no asinh here: symmetric
    assert np.allclose((found.upper68 + found.lower68) / 2, found.mean)


def test_without_a_likelihood_there_is_no_deviation(data):
    plain = pretrain(data, dataclasses.replace(SETTINGS, likelihood="point"))
    found = interpolate(plain.directory, data, grid(data, 2))
    assert found.std is None and found.lower68 is None and np.isfinite(found.mean).all()


def test_the_wrong_model_is_refused(pretrained, data):
    tuned = finetune(pretrained, data, KINDS, SETTINGS)
    with refuses("Classifier", "MaskedAutoencoder"):
        interpolate(tuned.directory, data, grid(data, 2))
    with refuses("MaskedAutoencoder", "Classifier"):
        predict_probabilities(pretrained.directory, data)
    with refuses("Classifier", "Regressor"):
        predict_values(tuned.directory, data)
    other = SeriesDataset.from_arrays([[1.0, 2.0]], [[1.0, 2.0]], [[5, 6]])
    with refuses("(5, 6)", "(0, 1)"):
        embed(pretrained.directory, other)


def test_series_of_one_observation_are_no_obstacle(data):
    keep = np.ones(len(data.times), bool)
    keep[1 : data.offsets[1]] = False
    mixed = data.mask_observations(keep)
    assert mixed.lengths[0] == 1
    trained = pretrain(mixed, SETTINGS, validation=mixed.select([0]))
    assert embed(trained.directory, mixed).shape == (16, 180)
    with refuses("1 series", "two observations"):
        pretrain(mixed.select([0]), SETTINGS)


def test_a_table_of_queries_needs_its_channel(fitted, tmp_path, capsys):
    wanted = write_csv(tmp_path / "wanted.csv", "star,day", [("star 00", 1)])
    out = tmp_path / "out.csv"
    assert command("interpolate", fitted / "run", fitted / "stars.csv", "--out", out, "--at", wanted) == 2
    assert "'band'" in capsys.readouterr().err
