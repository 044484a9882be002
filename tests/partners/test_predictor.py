"""What predicts: weights by hand, features that see what they should, members that learn, files that are checked."""

import dataclasses
import json
import shutil

import lightgbm
import numpy as np
import pytest
import safetensors.torch
import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file
from scipy.special import softmax

from _runs import SIZES
from conftest import refuses
from rotarymae import RoMAEClassifier, SeriesDataset
from rotarymae.arrays import ArrayDataset
from rotarymae.errors import ModelDirectoryError
from rotarymae.metrics import expected_calibration_error
from rotarymae.partners import (
    BoostedFeatures,
    Predictor,
    base,
    boosting,
    choose_predictor,
    convolutions,
    features,
    fit_partners,
)
from rotarymae.partners.boosting import (
    COMMON,
    MIN_FEATURES,
    QUICK,
    SEEDS,
    SLOW,
    BoostedTrees,
    check_trees,
    fit_trees,
    series_features,
)
from rotarymae.partners.combine import choose_temperature, choose_weights, combine, temper
from rotarymae.partners.convolutions import RandomConvolutions, on_grid
from rotarymae.partners.predictor import PREDICTOR_FORMAT
from rotarymae.partners.predictor import draw as drawn
from rotarymae.prediction import predict_and_embed
from rotarymae.preprocess import fit_static
from rotarymae.system import Reporter


def fit_predictor(choice, task, data, truth, train, validation, of_model, static, seed, reporter):
    """Fit the partners, and choose on the validation part, as `train` does."""
    fitted = fit_partners(choice, task, data, truth, train, validation, static, seed, reporter)
    return choose_predictor(choice, task, fitted, of_model, reporter)


# ── combining ─────────────────────────────────────────────────────────────────────────────────────────────────────


def noisy(truth, classes, noise, seed):
    """Probabilities of a method that sees the truth through noise, and states its uncertainty rightly."""
    draw = np.random.default_rng(seed)
    seen = np.eye(classes)[truth] + noise * draw.normal(size=(len(truth), classes))
    raised = np.exp(seen / noise**2)
    return raised / raised.sum(1, keepdims=True)


def test_the_average_of_probabilities_is_geometric():
    one, other = np.array([[0.8, 0.2]]), np.array([[0.5, 0.5]])
    found = combine("classification", [one, other], np.array([0.5, 0.5]))
    assert found[0, 0] == pytest.approx(np.sqrt(0.4) / (np.sqrt(0.4) + np.sqrt(0.1)))
    certain = np.array([[1.0, 0.0]])
    assert 0 < combine("classification", [certain, certain], np.array([0.5, 0.5]))[0, 1] < 1e-5


def test_weights_go_to_who_knows_more():
    truth = np.random.default_rng(0).integers(3, size=600)
    good, bad = noisy(truth, 3, 0.7, 1), noisy(truth, 3, 5.0, 2)
    weights = choose_weights("classification", [good, bad], truth)
    assert weights.sum() == pytest.approx(1) and weights[0] > 0.9
    alike = choose_weights("classification", [noisy(truth, 3, 0.9, 1), noisy(truth, 3, 0.9, 2)], truth)
    assert 0.35 < alike[0] < 0.65  # two independent witnesses are both heard
    wrong = np.roll(good, 1, axis=1)
    assert choose_weights("classification", [wrong, good, bad], truth)[0] < 0.02


def test_few_series_decide_little():
    truth = np.array([0, 1, 2, 0])
    good, bad = noisy(truth, 3, 0.7, 1), np.full((4, 3), 1 / 3)
    few = choose_weights("classification", [good, bad], truth)
    many = choose_weights("classification", [np.tile(good, (100, 1)), np.tile(bad, (100, 1))], np.tile(truth, 100))
    assert 0.5 < few[0] < 0.8 < many[0]


def test_weights_of_values():
    draw = np.random.default_rng(0)
    truth = draw.normal(size=(400, 2))
    truth[::5, 1] = np.nan
    filled = np.nan_to_num(truth)
    one, other = filled + draw.normal(size=truth.shape), filled + 2 * draw.normal(size=truth.shape)
    weights = choose_weights("regression", [one, other], truth)
    assert weights[0] == pytest.approx(0.8, abs=0.06)  # by the inverse of the variances, 1 and 4


def test_temperature_undoes_a_known_one():
    truth = np.random.default_rng(0).integers(3, size=3000)
    honest = noisy(truth, 3, 1.0, 1)
    boastful = temper(honest, 1 / 2)
    assert choose_temperature(boastful, truth) == pytest.approx(2, rel=0.15)
    calibrated = temper(boastful, choose_temperature(boastful, truth))
    assert expected_calibration_error(truth, calibrated) < 0.5 * expected_calibration_error(truth, boastful)
    assert (calibrated.argmax(1) == boastful.argmax(1)).all()
    # One series, of which the method was sure and right, is no evidence.
    assert 0.8 < choose_temperature(np.array([[0.99, 0.01]]), np.array([0])) <= 1


def test_expected_calibration_error_by_hand():
    sure = np.array([[0.95, 0.05], [0.95, 0.05], [0.55, 0.45], [0.55, 0.45]])
    truth = np.array([0, 0, 0, 1])  # right in 2 of 2 and in 1 of 2
    assert expected_calibration_error(truth, sure) == pytest.approx(0.5 * 0.05 + 0.5 * 0.05)
    assert expected_calibration_error(np.array([1, 1]), np.array([[1.0, 0.0]] * 2)) == 1


# ── partners ───────────────────────────────────────────────────────────────────────────────────────────────────────


def trees(rows=300, classes=3, seed=0, features=5):
    """Features with gaps, targets that depend on them, and trees that have learnt these."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(rows, features))
    target = (np.digitize(x[:, 0] + 0.1 * x[:, 1], [-0.5, 0.5]) if classes else x[:, :2] * [1, 1e6] + [0, 1e9])[:rows]
    if classes == 2:
        target = np.minimum(target, 1)
    x[draw.random(x.shape) < 0.2] = np.nan
    task = "classification" if classes else "regression"
    return x, target, BoostedTrees.fit(task, x, target, seed)


@pytest.mark.parametrize("classes", [2, 3])
def test_trees_are_those_of_lightgbm(whole, classes):
    """The mean of the scores of three, from seeds of their own."""
    x, target, fitted = trees(classes=classes, features=30)
    settings = COMMON | (SLOW if classes == 2 else QUICK | {"class_weight": "balanced"})
    settings |= {"feature_fraction": MIN_FEATURES / 30}
    several = [lightgbm.LGBMClassifier(**settings, seed=seed).fit(x, target) for seed in range(SEEDS)]
    scores = np.mean([one.predict_proba(x, raw_score=True) for one in several], axis=0)
    expected = softmax(scores if classes > 2 else np.stack([0 * scores, scores], 1), axis=1)
    np.testing.assert_allclose(fitted.predict(x), expected, rtol=1e-10)


def test_each_output_is_boosted_in_its_own_unit():
    x, target, fitted = trees(classes=0)
    error = np.abs(fitted.predict(x) - target).mean(0)
    assert (error < [0.3, 3e5]).all()  # single precision holds 1e9 within 64 and 1e6 of it within 0.06
    target[:50, 1] = np.nan
    assert np.isfinite(BoostedTrees.fit("regression", x, target, 0).predict(x)).all()


def test_trees_do_not_depend_on_threads(monkeypatch):
    texts = []
    for threads in (1, 2):
        monkeypatch.setitem(COMMON, "num_threads", threads)
        monkeypatch.setitem(boosting.QUICK, "num_iterations", 5)  # threads wait for one another on a busy machine
        texts.append(trees(3000)[2].texts)
    assert texts[0] == texts[1]


def test_trees_without_any_split_are_a_constant():
    fitted = BoostedTrees.fit("classification", np.full((12, 2), np.nan), np.arange(12) % 2, 0)
    np.testing.assert_allclose(fitted.predict(np.zeros((3, 2))), 0.5)
    check_trees(fitted.texts[0], 2, 2)


TAMPERED = {
    "a cycle": ("left_child=", lambda old: "0" + old[old.index(" ") :]),
    "a node with two parents": ("left_child=", lambda old: " ".join(["-1"] * len(old.split()))),
    "a leaf that is none": ("right_child=", lambda old: old.rpartition(" ")[0] + " -999"),
    "a feature that is none": ("split_feature=", lambda old: "99" + old[1:]),
    "a negative feature": ("split_feature=", lambda old: "-1" + old[1:]),
    "a feature beyond 64 bits": ("split_feature=", lambda old: "9" * 30 + old[1:]),
    "an index that LightGBM reads otherwise": ("split_feature=", lambda old: "0_1" + old[1:]),
    "a categorical split": ("decision_type=", lambda old: "1" + old[1:]),
    "a threshold of nan": ("threshold=", lambda old: "nan" + old[old.index(" ") :]),
    "an infinite leaf": ("leaf_value=", lambda old: "inf" + old[old.index(" ") :]),
    "a missing leaf": ("leaf_value=", lambda old: old.rpartition(" ")[0]),
    "many leaves": ("num_leaves=", lambda old: "2000000000"),
    "another tree": ("Tree=", lambda old: "7"),
    "categories": ("num_cat=", lambda old: "1"),
    "words": ("threshold=", lambda old: "x" + old[old.index(" ") :]),
    "other sizes": ("tree_sizes=", lambda old: "9" + old),
    "more classes": ("num_class=", lambda old: "40"),
    "more features": ("max_feature_idx=", lambda old: "99"),
    "another objective": ("objective=", lambda old: "custom"),
}


@pytest.fixture(scope="module")
def text():
    """The text of trees of five features and three classes."""
    return trees()[2].texts[0]


@pytest.mark.parametrize("kind", TAMPERED)
def test_a_text_that_is_not_ours_is_refused(kind, text):
    check_trees(text, 5, 3)
    field, change = TAMPERED[kind]
    head, _, rest = text.partition(f"\n{field}")
    old, _, rest = rest.partition("\n")
    tampered = f"{head}\n{field}{change(old)}\n{rest}"
    if field != "tree_sizes=":  # with the sizes that fit the change
        first, _, blocks = tampered.partition("tree_sizes=")
        blocks = blocks.partition("\n\n")[2]
        sizes = " ".join(str(len(block) + 3) for block in blocks.split("\n\n\n")[:-1])
        tampered = f"{first}tree_sizes={sizes}\n\n{blocks}"
    with pytest.raises(ValueError):
        check_trees(tampered, 5, 3)


@pytest.mark.parametrize("change", [lambda text: text[:-20], lambda text: text + "parameters:\n", lambda text: ""])
def test_a_text_that_is_cut_or_goes_on_is_refused(change, text):
    with pytest.raises(ValueError):
        check_trees(change(text), 5, 3)


def waves(series=60, seed=0):
    """Two classes by frequency, on a shared grid with gaps; and a static column that says nothing."""
    draw = np.random.default_rng(seed)
    classes = np.arange(series) % 2
    times = [np.sort(draw.choice(40, 28, replace=False)).astype(float) for _ in classes]
    phases = draw.uniform(0, 6, series)
    values = [np.sin((0.4 + 0.5 * c) * t + p) for c, t, p in zip(classes, times, phases, strict=True)]
    extra = {"age": draw.normal(size=series), "sex": np.array(["f", "m"])[draw.integers(2, size=series)]}
    return SeriesDataset.from_arrays(times, values, static=extra), classes


def test_convolutions_tell_frequencies_apart():
    data, classes = waves()
    train, test = np.arange(40), np.arange(40, 60)
    found = RandomConvolutions.fit("classification", data.select(train), classes[train]).predict(data.select(test))
    np.testing.assert_allclose(found.sum(1), 1)
    assert (found.argmax(1) == classes[test]).all()


def test_trees_also_learn_from_copies_that_lack_some_observations(monkeypatch):
    data, classes = waves()
    tables = []
    weights = []

    def watched(task, features, truth, seed, weight=None):
        tables.append((features, truth))
        weights.append(weight)

    monkeypatch.setattr(BoostedTrees, "fit", watched)
    for most in (100_000, 150, 61, 50):
        monkeypatch.setattr(boosting, "WITH_COPIES", most)
        BoostedFeatures.fit("classification", data, classes, (), 0)
    BoostedFeatures.fit("classification", *chirps(), (), 0)
    monkeypatch.setattr(boosting, "WITH_COPIES", 100_000)
    monkeypatch.setattr(boosting, "OBSERVATIONS", 60 * 28 * 3)
    BoostedFeatures.fit("classification", data, classes, (), 0)
    BoostedFeatures.fit("classification", data, classes, (), 0, 200)
    BoostedFeatures.fit("regression", data, classes[:, None].astype(float), (), 0)  # values are predicted worse so
    assert [len(features) for features, _ in tables] == [60 * 9, 150, 61, 60, 24, 60 * 3, 200, 60]
    assert [None if one is None else (one[:60].sum(), one[60:].sum().round(9)) for one in weights] == [
        *((60, 60), (60, 60), (60, 1), None, None),
        *((60, 60), (60, 60), None),
    ]
    features, truth = tables[0]
    assert truth.tolist() == classes.tolist() * 9
    np.testing.assert_array_equal(features[:60], tables[3][0])
    counts = features.reshape(9, 60, -1)[:, :, 0]
    assert (counts[0] == 28).all() and counts[1:].min() < 12 and 17.5 < counts[1:].mean() < 19.5
    assert len({tuple(one) for one in counts}) == 9
    features, truth = tables[1]  # one copy of each series, and another of every second one, drawn at random
    assert (truth[:120].reshape(2, 60) == classes).all() and 0.3 < truth[120:].mean() < 0.7
    assert len(np.unique(features[120:], axis=0)) == 30


@pytest.mark.parametrize("length", [100, 1000, 3000])
def test_trees_learn_from_more_rows_the_more_series_there_are_without_a_jump(length):
    class Series(list):
        kind, lengths = "observations", property(lambda self: np.full(len(self), length))

    rows = [BoostedFeatures.rows("classification", Series([0] * count)) for count in range(10, 30_000, 10)]
    assert rows[0] == 90 and rows[-1] == 29_990 and min(np.diff(rows)) >= 0 and max(np.diff(rows)) <= 90
    assert rows[300] == min(24_000, 10**7 // length)  # of 3,010 series


def test_classes_weigh_the_same_whatever_weights_their_series_have():
    x, target, _ = trees()
    weight = np.where(target == 0, 3.0, 1.0)
    settings = QUICK | {"num_iterations": 1, "balanced": True}
    balanced = (weight.sum() / (3 * np.bincount(target, weight)))[target] * weight
    given = fit_trees(x, target, 3, settings, 0, weight=weight)
    assert given == fit_trees(x, target, 3, settings | {"balanced": False}, 0, weight=balanced)


def test_the_validation_part_is_predicted_by_members_that_have_not_learnt_it():
    data, classes = waves()
    noise = np.random.default_rng(1).integers(2, size=len(classes))  # which can be learnt by heart alone
    train, validation = np.arange(40), np.arange(40, 60)
    of_model = np.full((20, 2), 0.5)
    given = ("auto", "classification", data, noise, train, validation, of_model, (), 0, Reporter(quiet=True))
    predictor, held = fit_predictor(*given)
    every = predictor.every(np.full((60, 2), 0.5), data)
    assert set(held) == set(every)
    right = {name: (found.argmax(1) == noise[40:]).mean() for name, found in held.items()}
    learnt = {name: (found[40:].argmax(1) == noise[40:]).mean() for name, found in every.items()}
    assert right["features"] < 0.8 < learnt["features"]


def test_the_grid_is_a_straight_line_between_observations():
    data = SeriesDataset.from_arrays([[0.0, 4.0], [0.0, 1.0]], [[1.0, 3.0], [5.0, 5.0]])
    assert on_grid(data, 5).tolist() == [[[1, 1.5, 2, 2.5, 3]], [[5, 5, 5, 5, 5]]]


def test_only_series_of_a_grid_share_one():
    assert RandomConvolutions.suits("classification", waves()[0])
    draw = np.random.default_rng(0)
    assert not RandomConvolutions.suits(
        "classification", SeriesDataset.from_arrays(draw.random((60, 30)).cumsum(1), draw.random((60, 30)))
    )
    assert not RandomConvolutions.suits(
        "classification", SeriesDataset.from_arrays([[0.0, 1.0, 2.0]] * 20, [[0.0, 1.0, 2.0]] * 20)
    )  # short


def chirps(sounds=24, rate=16_000, seed=0):
    """Sounds of unequal lengths, whose pitch rises or falls; boosting on mean and deviation cannot tell which."""
    draw = np.random.default_rng(seed)
    classes = np.arange(sounds) % 2
    waves = []
    for c in classes:
        time = np.arange(draw.integers(8000, 14_000)) / rate
        sweep = 1000 + 2000 * (time / time[-1] if c else 1 - time / time[-1])
        wave = np.sin(2 * np.pi * np.cumsum(sweep) / rate) + 0.05 * draw.normal(size=len(time))
        waves.append((draw.uniform(0.1, 0.9) * wave / 2).astype(np.float32))
    return ArrayDataset.from_waveforms(waves, rate), classes


def test_convolutions_tell_rising_from_falling_sounds():
    data, classes = chirps()
    train, test = np.arange(16), np.arange(16, 24)
    fitted = RandomConvolutions.fit("classification", data.select(train), classes[train])
    found = fitted.predict(data.select(test))
    assert (found.argmax(1) == classes[test]).all()
    alone = np.concatenate([fitted.predict(data.select([i])) for i in test])
    np.testing.assert_allclose(alone, found, atol=1e-6)
    louder = dataclasses.replace(data, arrays=tuple(array + 3 for array in data.arrays))  # e³ times the energy
    np.testing.assert_allclose(fitted.predict(louder.select(test)), found, atol=1e-5)


def test_one_value_far_off_does_not_outvote_all_others():
    """With maxima among the features about half of these are told apart."""
    draw = np.random.default_rng(1)
    times, classes = np.tile(np.arange(50.0), (60, 1)), np.arange(60) % 2
    waves = np.sin(times * (0.5 + 0.5 * classes[:, None]))
    known, asked = (waves + 0.3 * draw.normal(size=(60, 50)) for _ in range(2))
    fitted = RandomConvolutions.fit("classification", SeriesDataset.from_arrays(times, known), classes)
    asked[np.arange(60), draw.integers(50, size=60)] = draw.choice([-1, 1], 60) * draw.uniform(50, 150, 60)
    found = fitted.predict(SeriesDataset.from_arrays(times, asked))
    assert (found.argmax(1) == classes).mean() > 0.9


def test_bands_are_decibels_below_the_loudest_within_80():
    natural = np.full((20, 128), -10.0)
    natural[4:6, 8:12] += 100 * np.log(10) / 10  # 100 decibels
    bands = convolutions._bands(natural)
    assert bands.shape == (32, 10)
    assert bands[2, 2] == 0 and (np.delete(bands.ravel(), 22) == -80).all()
    assert (convolutions._bands(np.full((20, 128), -15.9)) == -80).all()  # silence


def test_sounds_shorter_than_a_kernel_are_convolved():
    data, classes = chirps()
    short = dataclasses.replace(data, arrays=tuple(array[:3] for array in data.arrays), patch_size=(1, 128))
    found = RandomConvolutions.fit("classification", short, classes).predict(short.select([0]))
    assert np.isfinite(found).all()


def test_convolutions_join_for_sounds_and_not_for_pictures():
    data, classes = chirps()
    assert RandomConvolutions.suits("classification", data)
    assert not RandomConvolutions.suits("classification", dataclasses.replace(data, sample_rate=None))
    few_bins = tuple(array[:, :40] for array in data.arrays)
    assert not RandomConvolutions.suits(
        "classification", dataclasses.replace(data, arrays=few_bins, patch_size=(8, 40))
    )
    train, validation, of_model = np.arange(16), np.arange(16, 24), np.full((8, 2), 0.5)
    reporter = Reporter(quiet=True)
    found, _ = fit_predictor("auto", "classification", data, classes, train, validation, of_model, (), 0, reporter)
    assert set(found.partners) == {"features", "convolutions"}
    assert found.losses["convolutions"] < found.losses["features"]


def test_too_many_or_too_long_sounds_are_not_convolved(monkeypatch):
    data, _ = chirps()
    monkeypatch.setattr(convolutions, "MOST_POINTS", -(-sum(len(array) for array in data.arrays) // 2))
    assert RandomConvolutions.suits("classification", data)
    monkeypatch.setattr(convolutions, "MOST_POINTS", convolutions.MOST_POINTS - 1)
    assert not RandomConvolutions.suits("classification", data)
    monkeypatch.undo()
    monkeypatch.setattr(convolutions, "MOST_SERIES", 23)
    assert not RandomConvolutions.suits("classification", data)


def test_static_columns_change_what_boosting_says():
    data, _ = waves(80)
    labels = (data.static["age"] > 0).astype(int)
    train, test = np.arange(60), np.arange(60, 80)
    static = fit_static(data.select(train), ["age", "sex"])
    arguments = ("classification", data.select(train), labels[train])
    seen = BoostedFeatures.fit(*arguments, static, 0)
    assert (seen.predict(data.select(test)).argmax(1) == labels[test]).mean() > 0.9
    blind = BoostedFeatures.fit(*arguments, (), 0)
    assert (blind.predict(data.select(test)).argmax(1) == labels[test]).mean() < 0.8
    with refuses("lacks", "'age'"):
        seen.predict(dataclasses.replace(data, static={}))


@pytest.mark.parametrize("kind", ["constant channel", "once per series", "in one series only", "constant values"])
def test_boosting_ignores_features_that_all_series_lack(kind):
    """A skew of a constant, or of single observations, is missing for every series."""
    draw = np.random.default_rng(0)
    times, values, channels = [], [], []
    for s in range(30):
        t, x, c = np.arange(6.0), draw.normal(size=6) if kind != "constant values" else np.ones(6), ["g"] * 6
        if kind == "constant channel":
            t, x, c = np.r_[t, t + 0.5], np.r_[x, np.ones(6)], c + ["r"] * 6
        elif kind != "in one series only" or s == 0:
            t, x, c = np.r_[t, 0.5], np.r_[x, draw.normal()], [*c, "r"]
        order = np.argsort(t)
        times, values, channels = [*times, t[order]], [*values, x[order]], [*channels, np.array(c)[order]]
    data, labels = SeriesDataset.from_arrays(times, values, channels), np.arange(30) % 2
    assert np.isnan(features(data)[0]).all(0).any()
    for task, truth in (("classification", labels), ("regression", labels[:, None].astype(float))):
        assert np.isfinite(BoostedFeatures.fit(task, data, truth, (), 0).predict(data)).all()


def test_boosting_repeats_and_needs_two_classes():
    data, classes = waves(60)
    once, again = (BoostedFeatures.fit("classification", data, classes, (), 3).predict(data) for _ in range(2))
    np.testing.assert_array_equal(once, again)
    with refuses("two classes"):
        BoostedFeatures.fit("classification", data, np.zeros(60, int), (), 0)


# ── the predictor ─────────────────────────────────────────────────────────────────────────────────────────────────


def fitted_predictor(asked="auto", of_model=None, truth=None, task="classification", data=None):
    data, classes = waves() if data is None else (data, truth)
    truth = classes if truth is None else truth
    train, validation = np.arange(len(data))[: len(data) * 2 // 3], np.arange(len(data))[len(data) * 2 // 3 :]
    of_model = np.full((len(validation), 2), 0.5) if of_model is None else of_model
    reporter = Reporter(quiet=True)
    static = fit_static(data, ["age", "sex"])
    found, _ = fit_predictor(asked, task, data, truth, train, validation, of_model, static, 0, reporter)
    return found, data, reporter


@pytest.fixture(scope="module")
def chosen():
    """The predictor of a model that knows nothing, and the data."""
    return fitted_predictor()[:2]


def test_the_winner_is_chosen_by_validation_and_can_be_asked_for(chosen):
    lost, _ = chosen
    assert lost.choice == "combined" and lost.weights["model"] < 0.3
    assert set(lost.partners) == {"features", "convolutions"}
    classes = waves()[1]
    perfect = np.where(np.eye(2)[classes[40:]] == 1, 0.999, 0.001)
    noise = np.random.default_rng(0).integers(2, size=60)
    noise[40:] = classes[40:]
    won, *_ = fitted_predictor(of_model=perfect, truth=noise)  # nobody else can know these labels
    assert won.choice in ("model", "combined") and won.losses[won.choice] <= min(won.losses.values()) + 1 / 20
    assert won.weights["model"] > 0.5
    for asked in ("model", "features"):
        assert fitted_predictor(asked)[0].choice == asked
    assert not fitted_predictor("model")[0].partners


def test_a_saved_predictor_gives_the_same_predictions(chosen, tmp_path):
    predictor, data = chosen
    of_model = np.random.default_rng(0).dirichlet([1, 1], len(data))
    predictor.save(tmp_path / "model/partners")
    loaded = Predictor.load(tmp_path / "model/partners")
    for choice in ("auto", "model", "features", "combined"):
        ours, theirs = (one.predict(of_model, data, choice) for one in (predictor, loaded))
        assert np.array_equal(ours, theirs)
        np.testing.assert_allclose(ours.sum(1), 1)
    assert loaded.describe() == predictor.describe()


def test_a_regression_is_averaged_by_error(tmp_path):
    data, _ = waves(60)
    truth = np.stack([3 * data.static["age"] + 100, 1e-3 * data.static["age"]], 1)
    truth[::7, 1] = np.nan
    rough = np.nan_to_num(truth[40:]) + np.random.default_rng(0).normal(size=(20, 2)) * [1, 3e-4]
    predictor, *_ = fitted_predictor(of_model=rough, truth=truth, task="regression", data=data)
    assert set(predictor.partners) == {"features"} and 0 < predictor.weights["model"] < 1
    predictor.save(tmp_path / "p")
    of_model = np.zeros((60, 2))
    assert np.array_equal(Predictor.load(tmp_path / "p").predict(of_model, data), predictor.predict(of_model, data))


def test_other_series_than_in_training_are_refused(chosen):
    predictor, data = chosen
    other = dataclasses.replace(data, value_names=("height",))
    with refuses("lacking", "value", "unknown", "height"):
        predictor.predict(np.full((60, 2), 0.5), other)
    known = series_features(data, ())[1]
    for names, words in (
        ((*known, "more"), "lacking 'more'"),
        (known[::-1], "the order is another"),
    ):
        with refuses("in their order", words):
            series_features(data, (), names)
    with refuses("outputs", "another run", error=ModelDirectoryError):
        predictor.predict(np.full((60, 3), 1 / 3), data)


def test_without_validation_the_model_predicts_and_says_so():
    data, classes = waves(8)
    reporter, nobody = Reporter(quiet=True), np.zeros(0, np.int64)
    arguments = ("classification", data, classes, np.arange(8), nobody, np.zeros((0, 2)), (), 0, reporter)
    found, _ = fit_predictor("auto", *arguments)
    assert found.choice == "model" and "no validation" in found.because and not reporter.warnings
    raw = np.random.default_rng(0).dirichlet([1, 1], 8)
    np.testing.assert_allclose(found.predict(raw, data), raw)
    fit_predictor("combined", *arguments)
    assert "'combined'" in reporter.warnings[0]


def test_where_time_is_short_partners_learn_from_some_series_of_every_class(monkeypatch):
    rows, classes = np.arange(10, 60), np.r_[np.zeros(59, np.int64), 1]
    some = drawn(rows, 8, classes, 0)
    assert len(some) == 8 and set(some) <= set(rows) and 59 in some and np.array_equal(some, drawn(rows, 8, classes, 0))
    assert drawn(rows, 50, classes, 0) is rows and len(drawn(rows, 1, classes, 0)) == 2

    class Short:
        max_rows_to_compare, most = 20, 15

        def max_rows_to_learn(self, name, compared, seconds):
            asked.append((name, compared))
            return self.most

    fit, seen = BoostedFeatures.fit.__func__, []

    def watched(cls, task, dataset, truth, static, seed, rows):
        seen.append((len(dataset), rows))
        return fit(cls, task, dataset, truth, static, seed, rows)

    monkeypatch.setattr(BoostedFeatures, "fit", classmethod(watched))
    data, classes = waves(60)
    reporter, asked, said = Reporter(quiet=True), [], []
    reporter.say = said.append
    parts = (data, classes, np.arange(40), np.arange(40, 60), (), 0, reporter)
    fitted = fit_partners("auto", "classification", *parts, Short())
    assert ("features", 20) in asked and seen == [(20, 20), (15, 15)]
    assert "gradient boosting learns from 15 of 60 series, and from 20 when it is compared" in " ".join(said)
    every = fit_partners("auto", "classification", *parts)
    assert seen[2:] == [(40, 360), (60, 540)]
    Short.max_rows_to_compare, Short.most = 50, 100  # more series come before copies
    fit_partners("auto", "classification", *parts, Short())
    assert seen[4:] == [(40, 50), (60, 100)]
    assert not np.array_equal(every.predictions["features"], fitted.predictions["features"])


@pytest.mark.parametrize("error", [ValueError, MemoryError])
def test_a_partner_that_fails_is_left_out(error, monkeypatch):
    def fails(*_):
        raise error("too much")

    monkeypatch.setattr(BoostedFeatures, "fit", fails)
    (data, classes), reporter = waves(12), Reporter(quiet=True)
    fitted = fit_partners("auto", "classification", data, classes, np.arange(8), np.arange(8, 12), (), 0, reporter)
    assert list(fitted.partners) == list(fitted.predictions) == ["convolutions"]
    assert f"left out ({error.__name__}: too much)" in reporter.warnings[0]


@pytest.mark.parametrize("series", [4, 6, 12])
def test_tiny_sets_and_one_class_in_validation(series):
    data, classes = waves(series)
    train, validation = np.arange(series - 1), np.array([series - 1])
    of_model = np.array([[0.3, 0.7]])
    arguments = (data, classes, train, validation, of_model, (), 0, Reporter(quiet=True))
    found, _ = fit_predictor("auto", "classification", *arguments)
    predicted = found.predict(np.full((series, 2), 0.5), data)
    assert np.isfinite(predicted).all() and all(0 < weight < 1 for weight in found.weights.values())


def test_damaged_and_foreign_files_are_refused(chosen, tmp_path):
    predictor, _ = chosen
    folder = tmp_path / "p"

    def fresh():
        predictor.save(folder)
        return json.loads((folder / "predictor.json").read_text())

    def broken(*parts):
        with refuses(*parts, error=ModelDirectoryError):
            Predictor.load(folder)

    fresh()
    (folder / "predictor.json").write_text("{")
    broken("predictor.json", "JSON")
    (folder / "predictor.json").write_text('{"format": 6}')
    broken("predictor.json", f"has format 6; this version reads format {PREDICTOR_FORMAT}. Fit the model anew")
    described = fresh()
    (folder / "predictor.json").write_text(json.dumps(described | {"choice": "magic"}))
    broken("predictor.json", "choice")
    fresh()
    (folder / "features.txt").unlink()
    broken("features.txt")
    fresh()
    (folder / "other.txt").write_text("of another run")
    broken("other.txt", "no file of this model")


def sealed(folder, described):
    """Write predictor.json, whose checksum the pipeline keeps."""
    (folder / "predictor.json").write_text(json.dumps(described))


def of(*place, **changes):
    """A change of the settings that lie at a place among those of the partner "features"."""

    def change(described):
        for name in ("partners", "features", *place):
            described = described[name]
        described |= changes

    return change


FIELDS = {
    "task": ("task", lambda d: d.update(task="magic")),
    "no task": ("task", lambda d: d.update(task=None)),
    "choice": ("choice", lambda d: d.update(choice="magic")),
    "because": ("because", lambda d: d.update(because=3)),
    "no weights": ("weights", lambda d: d.update(weights={})),
    "weights of nothing": ("weights", lambda d: d.update(weights=dict.fromkeys(d["weights"], 0.0))),
    "weights as text": ("weights", lambda d: d.update(weights=dict.fromkeys(d["weights"], "1"))),
    "temperature 0": ("temperatures", lambda d: d["temperatures"].update(model=0.0)),
    "no temperatures": ("temperatures", lambda d: d.update(temperatures={})),
    "losses": ("losses", lambda d: d["losses"].update(other=1.0)),
    "surplus field": ("extra", lambda d: d.update(extra=1)),
    "missing field": ("because", lambda d: d.pop("because")),
    "partners a list": ("partners", lambda d: d.update(partners=[])),
    "another partner": ("partners", lambda d: d["partners"].update({"../../etc": {}})),
    "settings a list": ("settings", lambda d: d["partners"].update(features=[])),
    "surplus setting": ("settings", of(more=1)),
    "feature names": ("features", of(features="abc")),
    "fewer features": ("features.txt", of(features=["a"])),
    "classes": ("features.txt", of("trees", classes=3)),
    "many classes": ("features.txt", of("trees", classes=10**9)),
    "classes as text": ("classes", of("trees", classes="2")),
    "center of classes": ("center", of("trees", center=[0.0])),
    "static": ("static", of(static=3)),
    "static of nothing": ("features.txt", of(static=[])),
    "static std": ("static", of("static", 0, std=0.0)),
    "static mean": ("mean", of("static", 0, mean="x")),
    "static categories": ("categories", of("static", 0, categories=7)),
}


@pytest.fixture(scope="module")
def saved(chosen, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "model/partners"
    chosen[0].save(folder)
    return folder


@pytest.mark.parametrize("kind", FIELDS)
def test_made_up_fields_are_refused(kind, saved, tmp_path):
    folder = shutil.copytree(saved, tmp_path / "p")
    described = json.loads((folder / "predictor.json").read_text())
    sealed(folder, described)
    Predictor.load(folder)
    field, change = FIELDS[kind]
    change(described)
    sealed(folder, described)
    with refuses(field, error=ModelDirectoryError):
        Predictor.load(folder)


ARRAYS = {
    "length": lambda x: x * 10**7,
    "center": lambda x: x * np.nan,
    "scale": lambda x: x * 0,
    "dilation": lambda x: x * 10**6,
    "huge dilation": lambda x: x + 2**61,
    "mix": lambda x: x + 2,
    "bias": lambda x: x[:, :50],
    "weight": lambda x: x[:-1],
    "intercept": lambda x: x.astype(np.float32),
}


@pytest.mark.parametrize("kind", ["surplus", "missing", *ARRAYS])
def test_made_up_arrays_are_refused(kind, saved, tmp_path):
    folder = shutil.copytree(saved, tmp_path / "p")
    file = folder / "convolutions.safetensors"
    arrays = load_file(file)
    if kind == "surplus":
        arrays["more"] = np.zeros(3)
    elif kind == "missing":
        del arrays["mix"]
    else:
        name = kind.split()[-1]
        arrays[name] = np.ascontiguousarray(ARRAYS[kind](arrays[name]))
    save_file(arrays, file)
    sealed(folder, json.loads((folder / "predictor.json").read_text()))
    with refuses("convolutions.safetensors", error=ModelDirectoryError):
        Predictor.load(folder)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e5m2])
def test_an_array_of_a_dtype_that_numpy_lacks_is_refused(dtype, tmp_path):
    safetensors.torch.save_file({"a": torch.ones(3).to(dtype)}, tmp_path / "a.safetensors")
    with refuses("a.safetensors", error=ModelDirectoryError):
        base.load_arrays(tmp_path / "a.safetensors", {"a": (np.float64, (3,))})


def test_a_full_disk_is_an_os_error(chosen, monkeypatch, tmp_path):
    def full(*arguments):
        raise SafetensorError("No space left on device")

    monkeypatch.setattr(base, "save_file", full)
    with pytest.raises(OSError, match="No space left"):
        chosen[0].save(tmp_path / "p")


def test_the_estimator_predicts_with_its_predictor():
    data, classes = waves(30)
    data = dataclasses.replace(data, static={})
    tiny = {"pretrain_epochs": 1, "finetune_epochs": 1, "min_steps": 0, **SIZES}
    model = RoMAEClassifier(**tiny).fit(data, classes)
    raw = predict_and_embed(model.pipeline_, data)[0]
    assert model.pipeline_.partners.choice == "combined"
    assert np.array_equal(model.predict_proba(data), model.pipeline_.partners.predict(raw, data))
    alone = RoMAEClassifier(**tiny, predictor="model").fit(data, classes)
    assert not alone.pipeline_.partners.partners
    assert (alone.predict_proba(data).argmax(1) == raw.argmax(1)).all()
