"""Pictures, videos and sounds as tokens: shapes, crops, scales, refusals, and the same answers in a batch as alone."""

import json
from dataclasses import asdict

import numpy as np
import pytest
import torch

from conftest import identity, refuses, small
from rotarymae.arrays import ArrayDataset, as_arrays
from rotarymae.config import RoMAEConfig
from rotarymae.errors import InputWarning, ModelDirectoryError
from rotarymae.heads import Classifier
from rotarymae.labels import ClassLabels
from rotarymae.masking import Masking
from rotarymae.model import Encoder
from rotarymae.outcome import Outcome
from rotarymae.partners import features
from rotarymae.pipeline import Pipeline
from rotarymae.prediction import embed
from rotarymae.preprocess import DatasetExamples, PatchPreprocessor
from rotarymae.reconstruction import drawn, reconstruct
from rotarymae.series import SeriesDataset
from rotarymae.splits import Split
from rotarymae.system import from_fields
from rotarymae.tokenizers import unpatchify
from rotarymae.train import FitResult, finetune, pretrain
from rotarymae.training import TrainConfig
from rotarymae.training.cost import check_memory
from rotarymae.training.fit_config import FitConfig

TINY = {"embed_dim": 24, "num_heads": 2, "depth": 1, "decoder_embed_dim": 24, "decoder_num_heads": 2}
TINY |= {"decoder_depth": 1, "pretrain_epochs": 1, "min_steps": 0}


def array_tokens(dataset, preprocessor, index):
    return DatasetExamples(dataset, preprocessor).tokens(np.asarray(index), None)


def ragged_pictures(count=9, channels=3, seed=0):
    """Pictures of unequal sizes, 8 to 21 rows and columns."""
    draw = np.random.default_rng(seed)
    return [draw.integers(0, 256, (*draw.integers(8, 22, 2), channels)).astype(np.uint8) for _ in range(count)]


@pytest.fixture(scope="module")
def stripes():
    """40 grey pictures of 12 × 16 whose stripes lie ("h") or stand ("v"), in noise, and their classes."""
    draw = np.random.default_rng(1)
    wave = np.sin(np.arange(16) * np.pi / 2)
    pictures = [
        (np.ones((12, 1)) * wave if i % 2 else wave[:12, None] * np.ones((1, 16))) + 0.5 * draw.normal(size=(12, 16))
        for i in range(40)
    ]
    return np.stack(pictures), np.array(["h", "v"] * 20)


@pytest.mark.parametrize(
    ("shape", "patch_size", "tokens", "features"),
    [
        ((5, 8, 12), 4, 6, 16),
        ((5, 8, 12, 3), 4, 6, 48),
        ((5, 8, 12, 3), (4, 2), 12, 24),
        ((2, 4, 8, 8, 3), (2, 4, 4), 8, 96),
        ((2, 4, 8, 8), (2, 4, 4), 8, 32),
        ((3, 20), (5,), 4, 5),
    ],
)
def test_forms_that_are_taken(shape, patch_size, tokens, features):
    draw = np.random.default_rng(0)
    array = draw.normal(size=shape)
    together, one_by_one = as_arrays(array, patch_size), as_arrays(list(array), patch_size)
    preprocessor = PatchPreprocessor.fit(together)
    assert preprocessor.features == features and preprocessor.axes == len(together.patch_size)
    for dataset in (together, one_by_one):
        found = array_tokens(dataset, preprocessor, range(shape[0]))
        assert found.values.shape == (shape[0], tokens, features) and found.padding is None
        assert dataset.lengths.tolist() == [tokens] * shape[0]
        assert found.positions[0, 0].tolist() == [1.0] * preprocessor.axes
    assert as_arrays(together, None) is together
    assert np.allclose(PatchPreprocessor.fit(one_by_one).std, preprocessor.std)


def test_tokens_are_the_standardised_patches_of_the_middle():
    pictures = ragged_pictures()
    dataset = ArrayDataset.from_arrays(pictures, 4)
    preprocessor = PatchPreprocessor.fit(dataset)
    cells = np.concatenate([picture.reshape(-1, 3) for picture in pictures]).astype(np.float64)
    assert np.allclose(preprocessor.mean, cells.mean(0)) and np.allclose(preprocessor.std, cells.std(0))
    found = array_tokens(dataset, preprocessor, range(len(pictures)))
    for i, picture in enumerate(pictures):
        rows, columns = (size // 4 for size in picture.shape[:2])
        top, left = (size % 4 // 2 for size in picture.shape[:2])
        middle = picture[top : top + 4 * rows, left : left + 4 * columns]
        n = rows * columns
        assert dataset.lengths[i] == n == int(found.real[i].sum())
        again = unpatchify(found.values[i : i + 1, :n], middle.shape[:2], (4, 4))[0].numpy()
        assert np.allclose(preprocessor.unscale(again), middle, atol=1e-3)
        assert found.positions[i, n - 1].tolist() == [rows, columns]


@pytest.mark.parametrize("pool", ["mean", "cls", "attention"])
def test_pictures_of_unequal_size_give_in_one_batch_what_they_give_alone(pool):
    dataset = ArrayDataset.from_arrays(ragged_pictures(), 4)
    preprocessor = PatchPreprocessor.fit(dataset)
    sizes = small(axes=2, features=preprocessor.features)
    model = Classifier(Encoder(sizes), 3, pool).eval()
    pipeline = Pipeline(preprocessor, model, labels=ClassLabels(("a", "b", "c")))
    for ask in (pipeline.predict_proba, pipeline.embed):
        one_by_one = np.concatenate([ask(dataset.select([i])) for i in range(len(dataset))])
        assert np.abs(ask(dataset) - one_by_one).max() < 1e-5
        assert np.ptp(one_by_one, axis=0).max() > 1e-3  # they do differ


def test_batches_depend_on_seed_epoch_and_example_alone():
    dataset = ArrayDataset.from_arrays(ragged_pictures(), 4)
    preprocessor = PatchPreprocessor.fit(dataset)
    examples = DatasetExamples(dataset, preprocessor, 3, Masking("ratio", ratio=0.5), noise=0.1)
    both, one = examples.batch(np.array([2, 5]), 1), examples.batch(np.array([5]), 1)
    assert both.masked is not None and one.masked is not None
    n = int(one.masked.real.sum())
    assert both.masked.positions[1, :n].equal(one.masked.positions[0])
    assert not examples.batch(np.array([5]), 2).masked.positions.equal(one.masked.positions)
    fixed = [examples.batch(np.array([5]), None).masked.values for _ in range(2)]
    assert fixed[0].equal(fixed[1])
    hidden, seen = int(both.masked.real.sum()), int(both.inputs.real.sum())
    assert hidden + seen == dataset.lengths[[2, 5]].sum()


def test_a_transform_of_arrays_is_for_training_alone():
    dataset = ArrayDataset.from_arrays(np.arange(2 * 4 * 4).reshape(2, 4, 4), 2)
    preprocessor = PatchPreprocessor.fit(dataset)
    seeds = []

    def mirror(arrays, drawn):
        seeds.append(drawn.tolist())
        return [array[:, ::-1] for array in arrays]

    examples, plain = DatasetExamples(dataset, preprocessor, transform=mirror), DatasetExamples(dataset, preprocessor)
    index = np.array([0, 1])
    wanted = array_tokens(ArrayDataset.from_arrays(np.stack(dataset.arrays)[:, :, ::-1, 0], 2), preprocessor, index)
    assert examples.batch(index, 0).inputs.values.equal(wanted.values)
    assert examples.batch(index, None).inputs.values.equal(plain.batch(index, None).inputs.values)
    examples.batch(index[1:], 0)
    examples.batch(index, 1)
    assert seeds[0][1] == seeds[1][0] and seeds[2] != seeds[0]


@pytest.mark.parametrize("likelihood", ["gaussian", "point"])
def test_pretraining_and_finetuning_learn_to_tell_pictures_apart(stripes, likelihood, tmp_path):
    pictures, labels = stripes
    dataset = ArrayDataset.from_arrays(pictures, 4)
    config = FitConfig(
        **{**TINY, "depth": 2, "likelihood": likelihood, "mask_ratio": 0.5, "pretrain_epochs": 5},
        **{"finetune_epochs": 6, "batch_size": 8, "label_smoothing": 0.1, "base_lr": 3e-3},
    )
    train = np.arange(30)
    first = pretrain(dataset.select(train), config)
    pretrained = first.pipeline
    losses = [line["loss"] for line in first.result.history if "loss" in line]
    assert losses[-1] < losses[0]
    tuned = finetune(pretrained, dataset.select(train), labels[train], config).pipeline
    held = dataset.select(np.arange(30, 40))
    probabilities = tuned.outputs(held)
    found = np.array(tuned.labels.classes)[probabilities.argmax(1)]
    assert (found == labels[30:]).all()
    tuned.save(tmp_path / "model")
    loaded = Pipeline.load(tmp_path / "model")
    assert identity(loaded.preprocessor) == identity(tuned.preprocessor)
    assert np.array_equal(loaded.outputs(held), probabilities)
    assert embed(loaded, held).shape == (10, 24)
    assert "pictures" in (tmp_path / "model" / "README.md").read_text(encoding="utf-8")


def test_options_of_series_are_refused_for_pictures(stripes):
    dataset = ArrayDataset.from_arrays(stripes[0], 4)
    for changes in ({"time_unit": 2.0}, {"join_times": True}, {"window": 5}, {"static": ("age",)}):
        with refuses(next(iter(changes)), "pictures", "times"):
            pretrain(dataset, FitConfig(**changes))
    with refuses("masking='channels'", "pictures have none"):
        pretrain(dataset, FitConfig(masking="channels"))
    with refuses("40 pictures", "two patches", "(12, 16)"):
        pretrain(ArrayDataset.from_arrays(stripes[0], (12, 16)), FitConfig())


def test_series_and_pictures_are_not_mixed_up(stripes):
    dataset = ArrayDataset.from_arrays(stripes[0], 4)
    preprocessor = PatchPreprocessor.fit(dataset)
    directory = Pipeline(preprocessor, Encoder(small(axes=2, features=16)).eval())
    series = SeriesDataset.from_arrays([[0.0, 1.0]], [[1.0, 2.0]])
    with refuses("series were given", "trained on pictures"):
        embed(directory, series)
    with refuses("trained on pictures", "trained on series"):
        directory.require_series()
    with refuses("channels 3", "trained on 1"):
        embed(directory, ArrayDataset.from_arrays(ragged_pictures(), 4))
    with refuses("patch_size (2, 2)", "trained on (4, 4)"):
        embed(directory, ArrayDataset.from_arrays(stripes[0], 2))
    videos = PatchPreprocessor.fit(ArrayDataset.from_arrays(np.arange(128.0).reshape(2, 4, 4, 4), (2, 2, 2)))
    videos.refuse_other(2)  # one number for each axis
    with refuses("patch_size is (4, 4, 4)", "trained with (2, 2, 2)"):
        videos.refuse_other(4)
    halves = ArrayDataset.from_arrays((1000 * stripes[0]).astype(np.float16), 4)
    PatchPreprocessor.fit(halves).check(halves)  # whose deviation is not summed in 16 bits


@pytest.mark.parametrize(
    ("arrays", "patch_size", "parts"),
    [
        ([np.zeros((8, 8)), np.zeros((3, 8))], 4, ("picture 1", "size 3", "axis 0", "patch of 4")),
        ([np.zeros((8, 8, 3)), np.zeros((8, 8, 1))], 4, ("picture 1", "(8, 8, 1)", "the first array has 3")),
        (np.zeros((2, 8, 8, 0)), 4, ("picture 0", "size 0", "axis 2", "patch of 1")),
        ([np.zeros((8, 8)), np.full((8, 8), np.nan)], 4, ("picture 1", "NaN")),
        (np.full((2, 8, 8), np.inf), 4, ("picture 0", "infinity")),
        (np.zeros((2, 4, 8, 8, 3)), 4, ("(4, 8, 8, 3)", "patch_size (4, 4)", "three numbers")),
        (np.array([["a"]]), (1,), ("array 0", "wanted numbers")),
        (np.zeros((2, 8, 8)), (4, 0), ("patch_size is (4, 0)",)),
        (np.zeros((2, 8, 8)), None, ("need patch_size",)),
        ([], 4, ("no arrays", "at least one")),
        (np.ma.masked_greater(np.ones((2, 8, 8)), 0), 4, ("picture 0", "NaN")),
        ("pictures", 4, ("data is of type str",)),
        ([[[1, 2], [3]]], 4, ("array 0", "no array of numbers", "inhomogeneous", "convert it")),
    ],
)
def test_what_cannot_be_used_is_named(arrays, patch_size, parts):
    with refuses(*parts):
        as_arrays(arrays, patch_size)


def test_a_constant_channel_is_told(stripes):
    pictures = np.stack([stripes[0], np.zeros_like(stripes[0])], -1)
    with pytest.warns(InputWarning, match="channel 1"):
        preprocessor = PatchPreprocessor.fit(ArrayDataset.from_arrays(pictures, 4))
    assert preprocessor.std[1] == 1.0
    pictures = 1e7 + 1e-3 * np.random.default_rng(0).normal(size=(4, 8, 8, 1))
    assert PatchPreprocessor.fit(ArrayDataset.from_arrays(pictures, 4)).std[0] == pytest.approx(1e-3, rel=0.1)


def test_a_changed_file_is_refused(stripes, tmp_path):
    preprocessor = PatchPreprocessor.fit(ArrayDataset.from_arrays(stripes[0], 4))
    Pipeline(preprocessor, Encoder(small(axes=2, features=16))).save(tmp_path / "model")
    file = tmp_path / "model" / "config.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    fields = {name: value for name, value in content["preprocessor"].items() if name != "kind"}
    assert asdict(from_fields(PatchPreprocessor, fields, "preprocessor")) == asdict(preprocessor)
    content["preprocessor"]["sample_rate"] = -1
    file.write_text(json.dumps(content), encoding="utf-8")
    with refuses("config.json", "checksum", error=ModelDirectoryError):
        Pipeline.load(tmp_path / "model")


def test_equal_sizes_are_never_padded_and_fingerprints_tell_data_apart(stripes):
    dataset = ArrayDataset.from_arrays(stripes[0], 4)
    other = ArrayDataset.from_arrays(list(stripes[0]), 4)
    assert dataset.fingerprint() == other.fingerprint() != dataset.select([0, 1]).fingerprint()
    assert dataset.fingerprint() != ArrayDataset.from_arrays(stripes[0], 2).fingerprint()
    assert "40 pictures" in repr(dataset) and "12 to 12 patches of 4×4" in repr(dataset)
    assert torch.equal(
        array_tokens(dataset, PatchPreprocessor.fit(dataset), [3]).values,
        array_tokens(other, PatchPreprocessor.fit(other), [3]).values,
    )


def test_reconstructions_show_what_was_there_and_hide_whole_patches(monkeypatch):
    pictures = ragged_pictures(6, channels=1)
    dataset = ArrayDataset.from_arrays(pictures, 4)
    config = FitConfig(mask_ratio=0.75, **TINY)
    directory = pretrain(dataset, config).pipeline
    together = reconstruct(directory, dataset, config.strategy("patches"))
    monkeypatch.setattr("rotarymae.reconstruction.inference", lambda _: TrainConfig(batch_size=1))
    alone = reconstruct(directory, dataset, config.strategy("patches"))
    for i, (one, same) in enumerate(zip(together, alone, strict=True)):
        assert (one.hidden == same.hidden).all() and np.abs(one.predicted - same.predicted).max() < 1e-4
        original, masked, filled = drawn(directory, dataset.arrays[i], one)
        gone = np.isnan(masked)
        assert gone.sum() == 16 * one.hidden.sum() == 16 * np.ceil(0.75 * dataset.lengths[i] - 1e-9)
        assert np.allclose(masked[~gone], original[~gone], atol=1e-3) and np.isfinite(filled).all()
        assert np.allclose(filled[~gone], original[~gone], atol=1e-3)
        unscaled = directory.require_arrays().unscale(one.truth.reshape(-1, 1)).ravel()
        assert np.allclose(np.sort(unscaled), np.sort(original[gone]), atol=1e-3)
    with refuses("MaskedAutoencoder", "Encoder"):
        reconstruct(Pipeline(directory.preprocessor, directory.model.encoder), dataset, config.strategy("patches"))


def test_features_for_boosting_are_means_and_deviations_of_regions():
    draw = np.random.default_rng(0)
    picture, small_one = draw.normal(size=(9, 8, 2)), draw.normal(size=(3, 3, 2))
    table, names = features(ArrayDataset.from_arrays([picture, small_one], 1))
    assert table.shape == (2, 64) and len(set(names)) == 64
    assert np.isclose(table[0, names.index("mean of channel 1, region 5")], picture[3:5, 2:4, 1].mean())
    assert np.isclose(table[0, names.index("std of channel 0, region 15")], picture[7:, 6:, 0].std())
    assert np.isfinite(table).all()


def test_what_needs_too_much_memory_is_refused():
    with refuses("2 arrays", "1,000,000 patches", code="too-little-memory"):
        check_memory(FitConfig(size="base"), RoMAEConfig(axes=2, depth=1000), np.full(2, 1_000_000), "arrays")


def test_arrays_are_selected_by_integers_or_a_mask():
    data = ArrayDataset.from_arrays(np.arange(96.0).reshape(6, 4, 4, 1), 2)
    assert data.select(data.ids >= 4).ids.tolist() == [4, 5] and data.select([-1, 0]).ids.tolist() == [5, 0]
    for wrong, parts in (
        ([1.7], ["float64"]),
        ([True], ["1 entries", "6"]),
        ([6], ["index 6", "6 pictures"]),
        ([], ["none"]),
    ):
        with refuses(*parts):
            data.select(np.array(wrong))


@pytest.mark.parametrize(("ids", "shape"), [(["a"], "(1,)"), (7, "()"), ("ab", "()"), ([["a"], ["b"]], "(2, 1)")])
def test_as_many_names_as_arrays(ids, shape):
    with refuses(shape, "2 sounds"):
        ArrayDataset.from_waveforms([np.zeros(5000)] * 2, 16_000, ids=ids)
    with refuses(shape, "2 arrays"):
        ArrayDataset.from_arrays(np.zeros((2, 8, 8)), 4, ids=ids)


def test_a_sample_of_pictures_has_them_whole():
    pictures = as_arrays(np.random.default_rng(0).random((4, 16, 16)), 2, None)  # of 64 patches
    fit = FitResult(Pipeline(None, Encoder(small())), Split(np.array([0, 1]), np.array([2]), np.array([3])))
    sample = Outcome(pictures, FitConfig(), fit).sample(np.array([1]), 10)
    assert sample.dataset.lengths.tolist() == [64] * 3 and sample.metrics["sample"]["stretch"] is None
