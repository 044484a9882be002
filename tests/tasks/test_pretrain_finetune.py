"""Pre-training and fine-tuning of a data set: what fine-tuning starts from, and what is refused."""

import copy
import dataclasses

import numpy as np
import pytest
import torch

from _runs import FIT, waves
from conftest import TINY, command, refuses
from rotarymae import (
    SeriesDataset,
)
from rotarymae.errors import InputWarning
from rotarymae.heads import Classifier
from rotarymae.interpolation import interpolate
from rotarymae.labels import ClassLabels, NumberTargets
from rotarymae.pipeline import Pipeline
from rotarymae.prediction import embed
from rotarymae.queries import grid
from rotarymae.splits import split_off
from rotarymae.train import copy_encoder, finetune, prepare, pretrain


@pytest.fixture(scope="module")
def data():
    return waves()


@pytest.fixture(scope="module")
def pretrained(data):
    return pretrain(data, FIT).pipeline


KINDS = np.array(["x", "y"] * 8)
SHORT = {"pretrain_epochs": 1, "min_steps": 0, "batch_size": 8}
ONCE = {**SHORT, "finetune_epochs": 1}


# ── fine-tuning starts from all of the encoder ──────────────────────────────────────────────────────────────────────


def test_the_copy_has_every_tensor_and_shares_none(pretrained):
    source = pretrained.model.encoder
    copy = copy_encoder(pretrained.model, dataclasses.replace(FIT, dropout=0.3))
    assert copy.config == dataclasses.replace(source.config, dropout=0.3)
    assert list(copy.state_dict()) == list(source.state_dict())
    for name, tensor in copy.state_dict().items():
        assert torch.equal(tensor, source.state_dict()[name])
        assert tensor.data_ptr() != source.state_dict()[name].data_ptr()


@pytest.mark.parametrize(("task", "targets"), [("classification", KINDS), ("regression", np.arange(16.0))])
def test_finetuning_starts_from_the_pretrained_projection(task, targets, pretrained, data):
    before = {name: tensor.clone() for name, tensor in pretrained.model.state_dict().items()}
    still = dataclasses.replace(FIT, finetune_lr=1e-30)
    result = finetune(pretrained, data, targets, still, task=task)
    tuned = result.pipeline
    projections = [name for name in tuned.model.encoder.state_dict() if "proj" in name and "blocks" not in name]
    assert projections, "the encoder has an input projection"
    for name, tensor in tuned.model.encoder.state_dict().items():
        assert torch.equal(tensor, before[f"encoder.{name}"]), name
    # With a real rate all of it moves, and what was pre-trained stays as it was.
    moved = finetune(pretrained, data, targets, FIT, task=task).pipeline.model.encoder.state_dict()
    assert not any(torch.equal(moved[name], before[f"encoder.{name}"]) for name in moved)
    assert all(torch.equal(tensor, before[name]) for name, tensor in pretrained.model.state_dict().items())


# ── precision ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_predictions_obey_the_precision(pretrained, data):
    """bf16 keeps 8 bits: after a few blocks an embedding is off by up to some 2 % of its largest number."""
    whole = embed(pretrained, data)
    rough = embed(dataclasses.replace(pretrained, precision="bf16"), data)
    assert rough.dtype == np.float32 and 0 < np.abs(rough - whole).max() < 0.02 * np.abs(whole).max()
    short = dataclasses.replace(FIT, precision="bf16")
    assert pretrain(data, short).pipeline.precision == "bf16", "a model predicts in the precision of its training"


# ── labels ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_answers_that_are_no_numbers_are_refused(pretrained, data):
    """Every number below is finite, so a model directory may hold it."""
    labels = ClassLabels(("a", "b"))
    model = Classifier(copy.deepcopy(pretrained.model.encoder), 2).eval()
    torch.nn.init.constant_(model.head.weight, 3e38)
    torch.nn.init.constant_(model.norm.weight, 3e38)
    with refuses(f"of {len(data)} series is NaN or infinite", "first for series 0", "damaged"):
        Pipeline(pretrained.preprocessor, model, labels=labels).outputs(data)
    torch.nn.init.constant_(model.encoder.projection.weight, 3e38)
    torch.nn.init.constant_(model.encoder.projection.bias, 3e38)
    windows = pretrained.preprocessor.replace(window=2, overlap=0)  # several pieces of a series are one series
    for preprocessor in (pretrained.preprocessor, windows):
        with refuses(f"for {len(data)} of {len(data)} series is NaN or infinite", "series 0"):
            embed(Pipeline(preprocessor, model), data)


def test_validation_may_have_fewer_classes_but_no_others(pretrained, data):
    part = data.select(np.arange(4))
    tuned = finetune(pretrained, data, KINDS, FIT, validation=(part, np.array(["y"] * 4)))
    assert tuned.result.best is not None and tuned.pipeline.outputs(part).shape == (4, 2)
    with refuses("'z'", "'x', 'y'"):
        finetune(pretrained, data, KINDS, FIT, validation=(part, np.array(["x", "y", "z", "x"])))
    assert ClassLabels(("x", "y")).encode(np.array(["y", "y"])).tolist() == [1, 1]
    with refuses("labels '' are none"):
        ClassLabels(("x", "y")).encode(np.array(["", "y"]))


def test_targets():
    assert NumberTargets.check([1, 2], 2).tolist() == [[1.0], [2.0]]
    assert np.isnan(NumberTargets.check([1, np.nan], 2)[1, 0])
    assert ClassLabels.check(["a", "b"], 2).tolist() == ["a", "b"]
    with refuses("3 labels for 2 series"):
        NumberTargets.check([1, 2, 3], 2)
    with refuses("series 1", "infinite"):
        NumberTargets.check([1, np.inf], 2)
    with refuses("label", "missing"):
        NumberTargets.check([np.nan, np.nan], 2)
    with refuses("'b'", "number"):
        NumberTargets.check(["1", "b"], 2)
    with refuses("datetime64[ns]", "such as days"):
        NumberTargets.check(np.array(["2024-05-01", "2024-05-02"], "datetime64[ns]"), 2)
    with refuses("(2, 1)"):
        ClassLabels.check([["a"], ["b"]], 2)
    for mixed in (np.array(["a", 1], object), ["a", 1]):
        with refuses("strings", "numbers"):
            ClassLabels.check(mixed, 2)
    with refuses("1 labels are missing", "series 1"):
        ClassLabels.check(["a", np.nan], 2)
    with refuses("unequal length"):
        NumberTargets.check([[1], [2, 3]], 2)
    for kind in (ClassLabels, NumberTargets):
        with refuses("no series has a label"):
            kind.check([], 0)


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
    with refuses("0.9", "held out"):
        split_off(np.arange(1), None, 0.9, 0)


def test_the_wrong_model_is_refused(pretrained, data):
    tuned = finetune(pretrained, data, KINDS, FIT).pipeline
    with refuses("MaskedAutoencoder", "Classifier"):
        interpolate(dataclasses.replace(tuned, autoencoder=None), data, grid(data, 2))
    with refuses("MaskedAutoencoder", "not fine-tuned"):
        pretrained.outputs(data)
    other = SeriesDataset.from_arrays([[1.0, 2.0]], [[1.0, 2.0]], [[5, 6]])
    with refuses("5, 6", "0, 1"):
        embed(pretrained, other)


def test_beta_is_pretrainings(data, pretrained):
    plain = pretrain(data, dataclasses.replace(FIT, beta=0.0)).pipeline
    assert not torch.equal(plain.model.head.weight, pretrained.model.head.weight)


def test_series_of_one_observation_are_no_obstacle(data):
    keep = np.ones(len(data.times), bool)
    keep[1 : data.offsets[1]] = False
    mixed = data.mask_observations(keep)
    assert mixed.lengths[0] == 1
    with pytest.warns(InputWarning, match="1 of 16 series"):
        trained = pretrain(mixed, FIT, validation=mixed.select([0])).pipeline
    assert embed(trained, mixed).shape == (16, 24)
    with refuses("1 series", "two observations"):
        pretrain(mixed.select([0]), FIT)


def one_channel_each(count, with_both=0):
    """Series of five observations, all in one channel but for the first `with_both`."""
    times = [np.arange(5.0) + i for i in range(count)]
    channels = [np.array(["g", "r"])[(np.arange(5) * (i < with_both) + i) % 2] for i in range(count)]
    return SeriesDataset.from_arrays(times, [np.sin(t) for t in times], channels)


def one_time_each(count, with_two=0):
    """Series of three channels at one time, but for the first `with_two`."""
    times = [np.array([0.0, i < with_two, i < with_two]) + i for i in range(count)]
    return SeriesDataset.from_arrays(times, [np.sin(t + np.arange(3)) for t in times], [np.array([*"ugr"])] * count)


NOTHING_TO_HIDE = [("channels", one_channel_each), ("rows", one_time_each), ("future", one_time_each)]


@pytest.mark.parametrize(("masking", "make"), NOTHING_TO_HIDE)
def test_masking_that_hides_nothing_is_refused_before_training(masking, make, monkeypatch):
    config = dataclasses.replace(FIT, masking=masking)
    with refuses(masking, "6 series", code="nothing-to-hide"):
        prepare(make(6), config)
    monkeypatch.setattr("rotarymae.train.fit", lambda *_, **__: pytest.fail("it trains"))
    with refuses(masking, "6 series"):
        pretrain(make(6), config)


@pytest.mark.parametrize(("masking", "make"), NOTHING_TO_HIDE)
def test_series_in_which_nothing_could_be_hidden_are_left_out_and_counted(masking, make):
    config, validation = dataclasses.replace(FIT, masking=masking), make(4)
    with pytest.warns(InputWarning, match="4 of 9 series"):
        trained = pretrain(make(9, 5), config, validation=validation)
    assert trained.result.tokens == {"channels": 25}.get(masking, 15), "those of the five others"


def test_a_forecaster_without_later_times_to_score_ends_well(tmp_path, capsys):
    """12 of 24 series have two times; those that are scored have one."""
    rows = [
        f"{i},{t * (i < 12)},{'ugr'[t]},{i % 3 + t},{'train' if i < 16 else 'test'}"
        for i in range(24)
        for t in range(3)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["id,time,band,value,part", *rows]))
    how = ["--channel", "band", "--masking", "future", "--out", tmp_path / "run", "--split-by", "part", *TINY]
    assert command("fit", tmp_path / "t.csv", *how) == 0, capsys.readouterr().err


# ── regression of several outputs ───────────────────────────────────────────────────────────────────────────────────


def test_outputs_of_unequal_scale_are_learnt_alike(data):
    """Standardised together, the smaller output would be lost in the larger one's deviation."""
    level = np.array([part.values.mean() for part in data])
    targets = np.stack([1e-3 * level, 1e3 * level + 5e3], 1)
    config = dataclasses.replace(FIT, pool="mean", finetune_epochs=60, finetune_lr=3e-3)
    tuned = finetune(pretrain(data, FIT).pipeline, data, targets, config, task="regression").pipeline
    predicted = tuned.outputs(data)
    scores = 1 - ((predicted - targets) ** 2).sum(0) / ((targets - targets.mean(0)) ** 2).sum(0)
    assert scores.min() > 0.8 and abs(scores[0] - scores[1]) < 0.1


def test_outputs_that_cannot_be_learnt_or_compared_are_refused():
    """They gave a model that could not be saved, and errors of numpy and scikit-learn."""
    with refuses("output 1", "Hold out less"):
        NumberTargets.fit(np.array([[1.0, np.nan], [2.0, np.nan]]))
    with refuses("deviations (1.0, nan)"):
        NumberTargets((0.0, 0.0), (1.0, np.nan))
    with refuses("1 targets per series", "give 2, as in training"):
        NumberTargets((0.0, 0.0), (1.0, 1.0)).truth(np.arange(3.0))


def test_targets_far_from_zero_have_their_own_spread():
    draw = np.random.default_rng(0)
    far = 1e12 + 100 * draw.normal(size=(50, 1))
    assert NumberTargets.fit(far).encode(far).std() == pytest.approx(1, rel=1e-5)
    same = np.full((50, 1), 0.1)
    with pytest.warns(InputWarning, match=r"every training label is 0\.1; .* nothing to learn"):
        assert np.abs(NumberTargets.fit(same).encode(same)).max() < 1e-6
    with pytest.warns(InputWarning, match="every training label is 3; .* nothing to learn"):
        NumberTargets.fit(np.array([[3.0]]))


def test_options_of_classes_are_refused_by_a_regression(pretrained, data):
    with refuses("label_smoothing=0.1", "regression"):
        finetune(pretrained, data, np.arange(16.0), dataclasses.replace(FIT, label_smoothing=0.1), task="regression")


def test_a_regression_may_minimise_absolute_errors(pretrained, data):
    """Few outliers, far to one side: the mean follows them and the median does not."""
    targets = np.where(np.arange(16) % 8 == 0, 100.0, 0.0)
    found = {}
    for loss in ("auto", "absolute_error"):
        how = {"loss": loss, "drop": 0.0, "batch_size": 16, "tune": "probe"}
        config = dataclasses.replace(FIT, **how, finetune_epochs=40, finetune_lr=1e-2)
        tuned = finetune(pretrained, data, targets, config, task="regression").pipeline
        found[loss] = float(np.median(tuned.outputs(data)))
    assert found["absolute_error"] < 0.6 * found["auto"]
    with refuses("loss='absolute_error'", "'auto'"):
        finetune(pretrained, data, KINDS, dataclasses.replace(FIT, loss="absolute_error"))


# ── further inputs and static columns ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("task", "targets"), [("classification", KINDS), ("regression", np.arange(16.0))])
def test_static_columns_change_predictions_and_come_back_with_the_model(task, targets, pretrained, data, tmp_path):
    age, sex = np.linspace(20, 80, 16), np.array(["f", "m"] * 8, object)
    known = dataclasses.replace(data, static={"age": age, "sex": sex, "label": targets})
    config = dataclasses.replace(FIT, static=("age", "sex"), pool="attention")
    tuned = finetune(pretrained, known, targets, config, task=task).pipeline
    tuned.save(tmp_path / "model")
    directory = Pipeline.load(tmp_path / "model")
    before = directory.outputs(known)
    assert np.array_equal(before, tuned.outputs(known))
    for name, column in (("age", age[::-1].copy()), ("sex", sex[::-1].copy())):
        changed = dataclasses.replace(known, static=known.static | {name: column})
        assert not np.allclose(before, directory.outputs(changed))
    assert np.array_equal(before, directory.outputs(dataclasses.replace(known, static={"age": age, "sex": sex})))
    with refuses("static column 'sex'", "'age'"):
        directory.outputs(dataclasses.replace(known, static={"age": age}))
    assert embed(directory, known.select([0, 1])).shape == (2, 24)
    card = (tmp_path / "model" / "README.md").read_text()
    assert "static columns: age, sex" in card and "one-hot vector of 2" in card


def test_a_static_column_that_is_not_there_is_refused_before_training(data):
    with refuses("static column 'age'", "none"):
        pretrain(data, dataclasses.replace(FIT, static=("age",)))


def test_further_inputs_can_be_switched_off(data):
    for on in (True, False):
        trained = pretrain(data, dataclasses.replace(FIT, channel_one_hot=on)).pipeline
        assert trained.preprocessor.inputs.channels == trained.model.config.input_features == (2 if on else 0)


def test_interpolation_with_further_inputs_answers_in_the_tables_units(data):
    values = np.stack([data.values[:, 0] + 100, np.full(len(data.times), 0.5)], 1)
    pairs = dataclasses.replace(data, values=values, value_names=("flux", "flux_err"))
    trained = pretrain(pairs, FIT).pipeline
    assert trained.model.config.input_features == 3 and trained.preprocessor.features == 2
    found = interpolate(trained, pairs, grid(pairs, 4))
    assert found.mean.shape[1] == 2 and 90 < np.median(found.mean[:, 0]) < 110
