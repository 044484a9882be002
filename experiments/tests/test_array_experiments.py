"""What recipes of pictures and sounds share."""

import dataclasses

import numpy as np
import pytest
import torch

import _tiny_imagenet
from rotarymae.arrays import ArrayDataset
from rotarymae.config import RoMAEConfig
from rotarymae.heads import Classifier
from rotarymae.model import Encoder, MaskedAutoencoder
from rotarymae.preprocess import PatchPreprocessor
from rotarymae.system import Reporter
from rotarymae.training import TrainConfig
from rotarymae_experiments import (
    SMOKE,
    ArraySetup,
    LabelledArrays,
    finetune_both,
    flip_and_crop,
    predict_arrays,
    pretrain_arrays,
    randaugment,
)
from rotarymae_experiments.data import tiny_imagenet as data
from rotarymae_experiments.recipes import tiny_imagenet
from rotarymae_experiments.runner import Trial


def pictures(count=20):
    draw = np.random.default_rng(0)
    return [_tiny_imagenet.picture(draw, i % 4) for i in range(count)]


def test_randaugment_is_a_function_of_the_seeds():
    pytest.importorskip("kornia")
    augment, given = randaugment(2, 9), pictures()
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    once, again = (np.stack(augment(given, np.arange(20))) for _ in range(2))
    other = np.stack(augment(given, np.arange(20) + 100))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert np.array_equal(once, again) and not np.array_equal(once, other)
    assert once.shape == (20, 64, 64, 3) and once.min() >= 0 and once.max() <= 255
    assert np.abs(once - np.stack(given)).mean((1, 2, 3)).max() > 10
    # Groups of eight have operations of their own.
    changes = [np.abs(once[i] - given[i]).mean() for i in (0, 8, 16)]
    assert len({round(float(change), 3) for change in changes}) == 3


def test_pictures_are_mirrored_and_moved_and_stay_whole():
    given = [np.arange(64 * 64 * 3).reshape(64, 64, 3) + i for i in range(40)]
    once, again = (flip_and_crop(3)(given, np.arange(40)) for _ in range(2))
    mirrored, shifts = 0, set()
    for picture, moved, same in zip(given, once, again, strict=True):
        assert moved.shape == (64, 64, 3) and np.array_equal(moved, same)
        inner = moved[3:-3, 3:-3]
        turned = inner[0, 0, 0] > inner[0, 1, 0]
        mirrored += turned
        source = picture[:, ::-1] if turned else picture
        row, column = (int(at[0]) for at in np.nonzero(source[..., 0] == inner[0, 0, 0]))
        assert np.array_equal(inner, source[row : row + 58, column : column + 58])
        shifts.add((row - 3, column - 3))
    assert 8 < mirrored < 32 and len(shifts) > 15
    assert {row for row, _ in shifts} == {column for _, column in shifts} == set(range(-3, 4))


def test_pre_training_may_see_more_classes_and_never_the_pictures_that_are_scored(tmp_path, monkeypatch):
    folder, seen = _tiny_imagenet.write(tmp_path), []

    def spy(setup, trial, arrays, *given):
        seen.append(arrays.arrays)
        raise StopIteration

    monkeypatch.setattr(tiny_imagenet, "pretrain_arrays", spy)
    for every in (False, True):
        setup = dataclasses.replace(
            tiny_imagenet.RECIPE.configure("smoke", "ours"), data_dir=str(folder), classes=(2, 4), pretrain_on_all=every
        )
        with pytest.raises(StopIteration):
            tiny_imagenet.run(setup, "rotary", Trial(0, tmp_path, Reporter(quiet=True)))
    pictures = data.read(folder)
    assert np.array_equal(seen[0], pictures.train[24:]) and np.array_equal(seen[1], pictures.train)


def trained(folder, seed):
    """The weights of an autoencoder of a case's seed, and those of the classifiers after it."""
    arrays = ArrayDataset.from_arrays(np.stack(pictures(12)), 16)
    preprocessor = PatchPreprocessor.fit(arrays)
    train = TrainConfig(epochs=1, batch_size=6)
    model = RoMAEConfig(axes=2, features=768, **SMOKE)
    setup = ArraySetup(model=model, pretraining=train, finetuning=train)
    trial = Trial(seed, folder / f"seed-{seed}", Reporter(quiet=True))
    trial.folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(seed)
    found = pretrain_arrays(setup, trial, arrays, preprocessor)
    weights = found.encoder.projection.weight.detach().clone()
    tuned = finetune_both(setup, trial, found, LabelledArrays(arrays, np.arange(12) % 4, 4), preprocessor)
    assert set(trial.losses) == {"pretraining", "finetuning", "finetuning from scratch"}
    return weights, {name: classifier.encoder.projection.weight.detach() for name, classifier in tuned.items()}


def test_each_seed_has_an_autoencoder_of_its_own(tmp_path):
    one, tuned = trained(tmp_path, 1)
    other, _ = trained(tmp_path, 2)
    assert not torch.equal(one, other)
    # One classifier went on from the autoencoder, the other began elsewhere.
    near, far = (float((tuned[name] - one).norm() / one.norm()) for name in ("", " from scratch"))
    assert near < 0.5 < far


def test_predictions_from_all_starts_of_a_clip_do_not_depend_on_where_it_starts():
    """Fails when the probabilities of one start are taken; a model of random weights tells the starts apart."""
    draw = np.random.default_rng(0)
    clips = ArrayDataset.from_arrays(draw.normal(size=(40, 32, 8, 1)).astype(np.float32), (4, 8))
    turned = dataclasses.replace(clips, arrays=tuple(np.roll(clip, 12, axis=0) for clip in clips.arrays))
    preprocessor = PatchPreprocessor.fit(clips)
    torch.manual_seed(0)
    model = Classifier(Encoder(RoMAEConfig(axes=2, features=32, **SMOKE)), 5, pool="mean")
    torch.nn.init.normal_(model.encoder.projection.weight, std=3.0)
    one, other = ([predict_arrays(model, part, preprocessor, TrainConfig(), starts) for part in (clips, turned)]
                  for starts in (1, 8))  # fmt: skip
    assert not np.allclose(*one, atol=1e-5)
    np.testing.assert_allclose(*other, atol=1e-6)
    assert len(set(other[0].argmax(1))) > 1


def test_the_head_pools_as_the_setup_says(tmp_path, monkeypatch):
    monkeypatch.setattr(Trial, "fit", lambda *given, **more: None)
    arrays = ArrayDataset.from_arrays(np.stack(pictures(8)), 16)
    for cls_token, pool, wanted in ((False, "max", "max"), (False, "mean", "mean"), (True, "max", "cls")):
        model = RoMAEConfig(axes=2, features=768, **{**SMOKE, "cls_token": cls_token})
        setup = ArraySetup(model=model, pool=pool)
        trial = Trial(0, tmp_path, tmp_path, Reporter(quiet=True))
        train = LabelledArrays(arrays, np.arange(8) % 4, 4)
        found = finetune_both(setup, trial, MaskedAutoencoder(model), train, PatchPreprocessor.fit(arrays))
        assert {classifier.pool for classifier in found.values()} == {wanted}
