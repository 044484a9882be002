"""The estimators on pictures, videos and sounds: fit, predict, embed, save, load, and one batch as one by one."""

import numpy as np
import pytest
from sklearn.base import clone

from conftest import refuses
from rotarymae import RoMAEClassifier, RoMAEEmbedder, RoMAEInterpolator, RoMAERegressor, RoMAESurvival
from rotarymae.arrays import ArrayDataset
from rotarymae.errors import InputWarning

SIZES = {"embed_dim": 24, "num_heads": 2, "depth": 1, "decoder_embed_dim": 24, "decoder_num_heads": 2}
FAST = {**SIZES, "decoder_depth": 1, "pretrain_epochs": 1, "min_steps": 0, "batch_size": 8}
BOTH = {**FAST, "finetune_epochs": 1}


@pytest.fixture(scope="module")
def pictures():
    """24 colour pictures of unequal sizes, dark ("d") and light ("l"), and their classes."""
    draw = np.random.default_rng(0)
    sizes = draw.integers(8, 20, (24, 2))
    found = [draw.integers(0, 60, (*size, 3)) + 150 * (i % 2) for i, size in enumerate(sizes)]
    return [picture.astype(np.uint8) for picture in found], np.array(["d", "l"] * 12)


@pytest.fixture(scope="module")
def sounds():
    """24 waveforms of unequal lengths at 8 kHz, hums and hisses, and their classes."""
    draw = np.random.default_rng(1)
    lengths = draw.integers(1600, 4000, 24)
    found = [np.sin(0.2 * np.arange(n)) if i % 2 else 0.3 * draw.normal(size=n) for i, n in enumerate(lengths)]
    return found, np.array(["hiss", "hum"] * 12)


@pytest.fixture(scope="module")
def classifier(pictures):
    return RoMAEClassifier(patch_size=4, **BOTH).fit(*pictures)


@pytest.mark.parametrize("predictor", ["model", "combined"])
def test_pictures_of_unequal_size_are_answered_together_as_one_by_one(pictures, predictor, tmp_path):
    model = RoMAEClassifier(patch_size=4, predictor=predictor, **BOTH).fit(*pictures)
    assert model.pipeline_.model.pool == "attention"
    together = model.predict_proba(pictures[0])
    assert together.shape == (24, 2) and model.classes_.tolist() == ["d", "l"]
    one_by_one = np.concatenate([model.predict_proba([picture]) for picture in pictures[0]])
    assert np.abs(together - one_by_one).max() < 1e-5 and np.ptp(together[:, 0]) > 1e-3
    model.save(tmp_path / "model")
    loaded = RoMAEClassifier.load(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba(pictures[0]), together)
    assert loaded.predict(pictures[0][:3]).tolist() == model.predict(pictures[0][:3]).tolist()


def test_sounds_of_unequal_length_are_answered_together_as_one_by_one(sounds, tmp_path):
    model = RoMAEClassifier(sample_rate=8000, **BOTH).fit(*sounds)
    assert model.pipeline_.preprocessor.patch_size == (8, 128) and model.pipeline_.model.pool == "max"
    together = model.predict_proba(sounds[0])
    one_by_one = np.concatenate([model.predict_proba([sound]) for sound in sounds[0]])
    assert np.abs(together - one_by_one).max() < 1e-5
    model.save(tmp_path / "model")
    embedder = RoMAEEmbedder.load(tmp_path / "model")
    vectors = embedder.transform(sounds[0])
    assert vectors.shape == (24, 24)
    alone = np.concatenate([embedder.transform([sound]) for sound in sounds[0]])
    assert np.abs(vectors - alone).max() < 1e-5
    with refuses("sample_rate", "4000", "trained on 8000"):
        model.predict(ArrayDataset.from_waveforms(sounds[0], 4000))


def test_videos_and_grey_pictures_are_embedded():
    draw = np.random.default_rng(0)
    videos, grey = draw.normal(size=(12, 4, 8, 8, 3)), draw.normal(size=(12, 8, 8))
    embedder = RoMAEEmbedder(patch_size=(2, 4, 4), **FAST)
    assert embedder.fit_transform(videos).shape == (12, 24)
    assert embedder.get_feature_names_out().shape == (24,)
    assert RoMAEEmbedder(patch_size=4, **FAST).fit(grey).transform(list(grey)).shape == (12, 24)


def test_numbers_are_learnt_from_pictures(pictures):
    targets = np.array([picture.mean() for picture in pictures[0]])
    model = RoMAERegressor(patch_size=4, **BOTH).fit(pictures[0], targets)
    assert model.predict(pictures[0]).shape == (24,) and model.score(pictures[0], targets) > 0.5


@pytest.mark.filterwarnings("ignore:1 of 24 pictures have no label")
def test_labels_of_pictures_come_in_each_form_that_fit_takes(pictures):
    known = dict(enumerate(pictures[1]))
    hidden = np.ma.masked_array(pictures[1], np.arange(24) == 3)
    for labels in (known, hidden):
        model = RoMAEClassifier(patch_size=4, **BOTH, predictor="model").fit(pictures[0], labels)
        assert model.classes_.tolist() == sorted(set(pictures[1])) and model.score(pictures[0], known) >= 0
    seen, time = np.arange(24) % 3 > 0, np.linspace(1, 2, 24)
    model = RoMAESurvival(patch_size=4, **BOTH, predictor="model").fit(pictures[0], (seen, time))
    assert 0 <= model.score(pictures[0], (seen, time)) <= 1


def test_a_pretrained_model_of_pictures_says_by_itself_what_it_reads(classifier, pictures):
    again = RoMAEClassifier(pretrained=classifier.pipeline_.pretrained, **{**BOTH, "pretrain_epochs": 0})
    with_sizes = {name: getattr(RoMAEClassifier(), name) for name in (*SIZES, "decoder_depth")}
    tuned = again.set_params(**with_sizes).fit(*pictures)
    known, before = tuned.pipeline_.preprocessor, classifier.pipeline_.preprocessor
    assert known.patch_size == (4, 4) and known.mean.tolist() == before.mean.tolist()


def test_parameters_are_kept_and_what_does_not_fit_is_refused(classifier, pictures, tmp_path):
    assert clone(classifier).get_params() == classifier.get_params()
    assert "patch_size=4" in repr(classifier)
    assert not hasattr(RoMAEInterpolator(), "patch_size")
    with refuses("channels 1", "trained on 3"):
        classifier.predict(np.zeros((2, 8, 8)))
    with refuses("picture 1", "size 3", "patch of 4"):
        classifier.predict([pictures[0][0], pictures[0][1][:3]])
    with refuses("24 series"):
        RoMAEClassifier(patch_size=4, **BOTH).fit(pictures[0], pictures[1][:5])
    with refuses("trained on pictures", "trained on series"):
        RoMAEInterpolator(pretrained=classifier.pipeline_.pretrained).fit([([0.0, 1.0], [1.0, 2.0])])
    for job in ("interpolate", "anomaly_score", "importance"):
        with refuses("trained on pictures", "trained on series"):
            getattr(classifier.pipeline_, job)(pictures[0])
    classifier.save(tmp_path / "model")
    with refuses("trained on pictures", "trained on series"):
        RoMAEInterpolator.load(tmp_path / "model")
    RoMAEEmbedder(pretrained=classifier.pipeline_.pretrained).fit(pictures[0]).save(tmp_path / "autoencoder")
    with refuses("trained on pictures", "trained on series"):
        RoMAEInterpolator.load(tmp_path / "autoencoder")


def test_what_differs_from_the_model_is_refused_and_numpy_numbers_are_numbers():
    pictures = list(np.random.default_rng(0).random((12, 8, 8)))
    model = RoMAEEmbedder(patch_size=np.int64(4), pretrain_epochs=1, min_steps=0).fit(pictures)
    assert model.pipeline_.preprocessor.patch_size == (4, 4)
    for changed in ({"patch_size": 8}, {"patch_size": 4, "sample_rate": 16_000}):
        with refuses("model", "trained"):
            RoMAEEmbedder(pretrained=model.pipeline_, pretrain_epochs=0, **changed).fit(pictures)
    with refuses("patch_size is 4.5"):
        RoMAEEmbedder(patch_size=4.5).fit(pictures)


def test_pictures_in_another_unit_are_warned_of(classifier, pictures, recwarn):
    classifier.predict(pictures[0])
    assert not [one for one in recwarn if issubclass(one.category, InputWarning)]
    with pytest.warns(InputWarning, match="standard deviation 0.*are they in the same unit"):
        classifier.predict([picture / np.float32(255) for picture in pictures[0]])
