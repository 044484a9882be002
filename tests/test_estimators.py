"""The scikit-learn estimators: conventions, forms of series, shapes, and what they share with the command."""

import inspect
import re
import shlex
import shutil
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError

from _runs import SIZES
from conftest import TINY, command, refuses, two_kinds, write_csv
from rotarymae import RoMAEClassifier, RoMAEEmbedder, RoMAEInterpolator, RoMAERegressor, SeriesDataset
from rotarymae.errors import InputError, InputWarning
from rotarymae.pipeline import Pipeline
from rotarymae.prediction import predict_and_embed
from rotarymae.tables.coerce import labels_of

ALL = [RoMAEClassifier, RoMAERegressor, RoMAEInterpolator, RoMAEEmbedder]
SHORT = {"pretrain_epochs": 1, "min_steps": 0, "batch_size": 8}
FAST = SIZES | SHORT
BOTH = {**FAST, "finetune_epochs": 1}
TUNED = {**SHORT, "pretrain_epochs": 0, "finetune_epochs": 1}


@pytest.fixture(scope="module")
def lists():
    """24 series as (times, values), and their classes."""
    draw = np.random.default_rng(0)
    times = [np.sort(draw.uniform(0, 20, draw.integers(6, 14))) for _ in range(24)]
    return [(t, np.sin((0.3 + 0.6 * (i % 2)) * t)) for i, t in enumerate(times)], np.array(["slow", "fast"] * 12)


@pytest.fixture(scope="module")
def classifier(lists):
    return RoMAEClassifier(**BOTH).fit(*lists)


@pytest.fixture(scope="module")
def interpolator(lists):
    return RoMAEInterpolator(**FAST).fit(lists[0])


@pytest.mark.parametrize("kind", ALL)
def test_init_only_stores(kind):
    strange = {name: object() for name in inspect.signature(kind).parameters}
    model = kind(**strange)
    assert vars(model) == strange == model.get_params()
    assert clone(kind(size="tiny", random_state=3)).get_params() == kind(size="tiny", random_state=3).get_params()
    assert repr(kind(base_lr=0.5)) == f"{kind.__name__}(base_lr=0.5)"
    assert kind().set_params(batch_size=2).batch_size == 2
    with pytest.raises(ValueError, match="batchsize"):
        kind().set_params(batchsize=2)


@pytest.mark.parametrize("kind", [kind for kind in ALL if kind is not RoMAEInterpolator])
def test_nothing_works_before_fit(kind, lists):
    model = kind()
    call = model.transform if kind is RoMAEEmbedder else model.predict
    with pytest.raises(NotFittedError):
        call(lists[0])


def test_an_interpolator_before_fit_has_nothing_to_save(tmp_path):
    with pytest.raises(NotFittedError):  # though it predicts: `test_shipped`
        RoMAEInterpolator().save(tmp_path / "model")


def test_classifier(classifier, lists):
    series, labels = lists
    assert is_classifier(classifier) and classifier.classes_.tolist() == ["fast", "slow"]
    probabilities = classifier.predict_proba(series)
    assert probabilities.shape == (24, 2) and np.allclose(probabilities.sum(1), 1)
    predicted = classifier.predict(series)
    assert (predicted == classifier.classes_[probabilities.argmax(1)]).all()
    assert classifier.score(series, labels) == (predicted == labels).mean()
    assert set(classifier.history_) == {"pretrain", "finetune"}


def test_the_same_seed_gives_the_same_bits(classifier, lists):
    series, labels = lists
    again = clone(classifier).fit(series, labels).predict_proba(series)
    assert np.array_equal(again, classifier.predict_proba(series))
    other = clone(classifier).set_params(random_state=1).fit(series, labels).predict_proba(series)
    assert not np.array_equal(other, again)


@pytest.mark.slow
def test_it_learns(lists):
    series, labels = lists
    model = RoMAEClassifier(pretrain_epochs=20, finetune_epochs=60, min_steps=0, batch_size=8).fit(series, labels)
    assert model.score(series, labels) > 0.9


def test_regressor(lists):
    series, labels = lists
    targets = np.where(labels == "fast", 20.0, 10.0)
    model = RoMAERegressor(**BOTH).fit(series, targets)
    assert is_regressor(model) and model.predict(series).shape == (24,)
    assert 0 < model.predict(series).mean() < 40  # in the unit of the targets
    assert model.score(series, targets) <= 1
    two = RoMAERegressor(**BOTH).fit(series, np.stack([targets, -targets], 1))
    assert two.predict(series).shape == (24, 2)


def test_interpolator_shapes(interpolator, lists):
    series = lists[0]
    mean, std = interpolator.predict(series, at=[0.5, 1, 2], return_std=True)
    assert mean.shape == std.shape == (24, 3, 1) and (std > 0).all()
    assert np.array_equal(interpolator.predict(series, at=np.array([0.5, 1, 2])), mean)
    assert np.array_equal(interpolator.predict(series, at=np.tile([0.5, 1, 2], (24, 1))), mean)
    ragged = interpolator.predict(series, at=[np.arange(1 + i % 3) for i in range(24)])
    assert [len(one) for one in ragged] == [1, 2, 3] * 8 and ragged[0].shape == (1, 1)
    assert np.allclose(ragged[2], interpolator.predict(series, at=[0, 1, 2])[2], atol=1e-5)
    with refuses("2 series", "24"):
        interpolator.predict(series, at=[[1.0], [2.0]])
    with refuses("series 0", "NaN"):
        interpolator.predict(series, at=[1.0, np.nan])


def test_interpolator_with_channels(fitted):
    stars = SeriesDataset.from_file(fitted / "stars.csv", "star", "day", "band", ["flux"])
    model = RoMAEInterpolator(pretrained=fitted / "run").fit(stars)
    assert model.history_ == {}
    mean = model.predict(stars, at=[1.0, 5.0, 9.0])
    assert mean.shape == (24, 2, 3, 1)
    ragged = model.predict(stars, at=[[1.0, 5.0, 9.0], *([[0.0]] * 23)])
    assert ragged[0].shape == (2, 3, 1) and ragged[1].shape == (2, 1, 1)
    assert np.allclose(ragged[0], mean[0], atol=1e-5)


def test_the_channel_axis_is_the_right_one():
    draw = np.random.default_rng(0)
    array = draw.normal(size=(12, 3, 9)) * 0.01 + np.array([0.0, 100.0, 200.0])[:, None]
    array[0, :, 5:] = np.nan
    gaps = array.copy()
    gaps[1, 0, 2] = np.nan
    whole, parts = RoMAEInterpolator(**FAST).fit(array), RoMAEInterpolator(**FAST).fit(gaps)
    assert whole.pipeline_.preprocessor.channel_names is None and len(parts.pipeline_.preprocessor.channel_names) == 3
    for model, given in ((whole, array), (parts, gaps)):
        mean = model.predict(given, at=[1.5, 2.5])
        assert mean.shape == (12, 3, 2)
        assert np.allclose(mean.mean((0, 2)), [0, 100, 200], atol=1)
    with pytest.warns(InputWarning, match="2 observed values are dropped"):
        assert whole.predict(gaps, at=[1.5]).shape == (12, 3, 1)
    one = (np.arange(9.0), array[1, 0])
    with refuses("single (times, values)", "list"):
        whole.predict(one, at=[1.5])


def test_embedder(interpolator, lists, tmp_path):
    series = lists[0]
    interpolator.pipeline_.save(tmp_path / "model")
    by_path = RoMAEEmbedder(pretrained=tmp_path / "model").fit(series)
    loaded = RoMAEEmbedder(pretrained=Pipeline.load(tmp_path / "model")).fit(series)
    found = by_path.transform(series)
    assert found.shape == (24, 24) and found.dtype == np.float32
    assert np.array_equal(found, loaded.transform(series))
    near = RoMAEEmbedder(**FAST, neighbours="on")  # as the interpolator by itself
    assert np.array_equal(found, near.fit_transform(series))
    assert not np.array_equal(found, RoMAEEmbedder(pool="cls", **FAST).fit_transform(series))
    assert by_path.get_feature_names_out()[23] == "romaeembedder23"


def test_agrees_with_the_command(fitted):
    """The same settings, the same series, the same split: the estimator is a layer over the same jobs."""
    stars = SeriesDataset.from_file(fitted / "stars.csv", "star", "day", "band", ["flux"])
    rows = pq.read_table(fitted / "run/embeddings.parquet").to_pandas().set_index("star")
    assert np.array_equal(Pipeline.load(fitted / "run").embed(stars), rows.loc[stars.ids].to_numpy())


def test_a_pretrained_model_saves_the_first_training(interpolator, lists, tmp_path):
    series, labels = lists
    interpolator.pipeline_.save(tmp_path / "model")
    tiny = RoMAEClassifier(**{**TUNED, "base_lr": 1e-30, "pretrain_epochs": None}, pretrained=tmp_path / "model").fit(
        series, labels
    )
    assert set(tiny.history_) == {"finetune"}
    start = interpolator.pipeline_.model.encoder.state_dict()
    for name, tensor in tiny.pipeline_.model.encoder.state_dict().items():
        assert (tensor == start[name]).all(), name
    with refuses("MaskedAutoencoder", "wanted a Pipeline"):
        RoMAEClassifier(pretrained=interpolator.pipeline_.model).fit(series, labels)


def test_fewer_channels_than_in_training_and_unknown_ones(fitted):
    stars = SeriesDataset.from_file(fitted / "stars.csv", "star", "day", "band", ["flux"])
    model = RoMAEEmbedder(pretrained=fitted / "run").fit(stars)
    rows = [row for row in two_kinds()[0] if row[2] == "r"]
    frame = {name: [row[i] for row in rows] for i, name in enumerate(("star", "day", "band", "flux"))}
    import pandas as pd

    red = SeriesDataset.from_frame(pd.DataFrame(frame), "star", "day", "band", ["flux"])
    assert red.channel_names == ("r",)
    only = stars.mask_observations(stars.channels == 1)
    assert np.array_equal(model.transform(red), model.transform(only))
    frame["band"][3] = "z"
    with refuses("'z'", rows[3][0], "'g', 'r'"):
        model.transform(SeriesDataset.from_frame(pd.DataFrame(frame), "star", "day", "band", ["flux"]))


BAD = {
    "a film": (lambda s: np.zeros((3, 4, 2, 2)), "ndarray of shape (3, 4, 2, 2)"),
    "a number": (lambda s: 3, "int"),
    "no series": (lambda s: [], "list"),
    "observations": (lambda s: [[(a, b, 0.1, "g") for a, b in zip(*one)] for one in s], "(times, values, channels)"),
    "NaN in a list": (lambda s: [(s[0][0], np.full(len(s[0][0]), np.nan)), *s[1:]], "no observation left: 0"),
    "an empty case": (lambda s: np.stack([np.zeros((2, 5)), np.full((2, 5), np.nan)]), "1 of 2 series"),
    "lengths": (lambda s: [(s[0][0], s[0][1][1:]), *s[1:]], "series 0"),
    "single observations": (lambda s: [(t[:1], v[:1]) for t, v in s], "two observations"),
    "an empty list": (lambda s: [], "an empty list was given"),
    "an empty array": (lambda s: np.zeros((0, 1, 5)), "there are no series"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_series(case, lists):
    make, part = BAD[case]
    with refuses(part):
        RoMAEInterpolator(**FAST).fit(make(lists[0]))


@pytest.mark.parametrize(
    ("labels", "parts"),
    [
        (["a", "b"], ["2 labels for 24 series"]),
        (["a"] * 24, ["'a'", "2 classes"]),
        ([None] * 24, ["no series has a label"]),
        ([np.nan] * 20 + ["a"] * 4, ["'a'", "2 classes"]),
        ("a", ["one value for 24 series"]),
        ([{}] * 24, ["type dict"]),
        ([np.nan] + [i + 0.5 for i in range(23)], ["continuous"]),
        ([None] + [i + 0.5 for i in range(23)], ["continuous"]),
        ([[i + 0.5] for i in range(24)], ["continuous"]),
        ([[1], [1, 2]] * 12, ["unequal length"]),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")  # of one column
def test_bad_labels(labels, parts, lists):
    with refuses(*parts):
        RoMAEClassifier(**BOTH).fit(lists[0], labels)


@pytest.mark.parametrize(
    "make",
    [
        lambda few: few,
        lambda few: np.array([np.nan if one is None else float(one == "b") for one in few]),
        lambda few: pd.Series(few, dtype="string"),
        lambda few: {i: one for i, one in enumerate(few) if one is not None},
    ],
    ids=["None", "floats with NaN", "pandas.NA", "by id"],
)
def test_series_without_a_label_are_pre_trained_on(make, lists):
    """As the command does; the labelled ones are fine-tuned on as if they were alone."""
    series, _ = lists
    few = [None if i % 3 == 0 else "ab"[i % 2] for i in range(24)]
    with pytest.warns(InputWarning, match="8 of 24 series have no label: they are pre-trained on, and not fine-tuned"):
        model = RoMAEClassifier(**BOTH).fit(series, make(few))
    assert len(model.classes_) == 2 and model.predict_proba(series).shape == (24, 2)
    there = [i for i, one in enumerate(few) if one is not None]
    known = RoMAEClassifier(**TUNED, pretrained=model.pipeline_.pretrained)
    alone = clone(known).fit([series[i] for i in there], [few[i] for i in there])
    with pytest.warns(InputWarning, match="8 of 24 series have no label: they are not used"):
        among = clone(known).fit(series, make(few))
    for found in (alone, among):
        assert np.allclose(found.predict_proba(series), model.predict_proba(series), atol=1e-6)
    assert len(model.history_["pretrain"]) > 0


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({"size": "huge"}, ["'huge'"]),
        ({"random_state": "three"}, ["random_state is 'three'"]),
    ],
)
def test_bad_settings_are_refused_by_fit(settings, parts, lists):
    with refuses(*parts):
        RoMAEClassifier(**{**BOTH, **settings}).fit(*lists)


# ── saved and loaded ────────────────────────────────────────────────────────────────────────────────────────────────


def answers(model, series):
    if isinstance(model, RoMAEInterpolator):
        return model.predict(series, at=[0.5, 2.0])
    return model.transform(series) if isinstance(model, RoMAEEmbedder) else model.predict(series)


@pytest.mark.parametrize("kind", [RoMAEClassifier, RoMAERegressor, RoMAEInterpolator, RoMAEEmbedder])
def test_a_saved_estimator_loaded_predicts_the_same(kind, lists, classifier, interpolator, tmp_path):
    series, labels = lists
    if kind is RoMAERegressor:
        model = kind(**BOTH).fit(series, np.arange(24) * 0.1)
    elif kind is RoMAEEmbedder:
        model = kind(**FAST).fit(series)
    else:
        model = classifier if kind is RoMAEClassifier else interpolator
    model.save(tmp_path / "model")
    loaded = kind.load(tmp_path / "model")
    assert np.array_equal(answers(loaded, series), answers(model, series))
    if kind is RoMAEClassifier:
        assert np.array_equal(loaded.predict_proba(series), model.predict_proba(series))
        assert loaded.classes_.tolist() == model.classes_.tolist() and loaded.score(series, labels) >= 0
    if kind is RoMAEEmbedder:
        assert loaded.get_feature_names_out().tolist() == model.get_feature_names_out().tolist()


def test_estimators_load_a_run_folder(fitted, tmp_path):
    stars = SeriesDataset.from_file(fitted / "stars.csv", "star", "day", "band", ["flux"])
    rows = pq.read_table(fitted / "run/predictions.parquet").to_pandas().set_index("star").loc[stars.ids]
    assert RoMAEClassifier.load(fitted / "run").predict(stars).tolist() == rows["predicted"].tolist()
    assert RoMAEInterpolator.load(fitted / "run").predict(stars, at=[1.0]).shape == (24, 2, 1, 1)
    assert RoMAEEmbedder.load(fitted / "run", pool="cls").transform(stars).shape == (24, 24)
    run = Pipeline.load(fitted / "run")  # of a head that pools as no vector without a head can
    replace(run, parameters=run.parameters | {"pool": "attention"}).save(tmp_path / "model")
    assert RoMAEEmbedder.load(tmp_path / "model").transform(stars).shape == (24, 24)
    with refuses("Classifier", "RoMAERegressor", "regression"):
        RoMAERegressor.load(fitted / "run")


@pytest.mark.parametrize(
    "how",
    [
        ["--values", "a", "--flags", "bad", "--na", "-9"],
        ["--wide", "--values", "a", "b"],
        ["--values", "a", "--duplicates", "mean"],
        ["--wide", "--values", "a", "b", "--tokens", "time"],
    ],
)
def test_a_loaded_model_reads_frames_as_the_command_read_its_table(how, tmp_path, monkeypatch):
    monkeypatch.setattr("rotarymae.report.write_report", lambda *_, **__: None)
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({"id": np.repeat(range(24), 8), "time": np.tile(np.arange(8.0), 24)})
    frame["label"] = np.where(frame["id"] % 2, "A", "B")
    frame[["a", "b"]] = draw.normal(size=(192, 2)) + (frame["id"] % 2).to_numpy()[:, None]
    frame["bad"] = (draw.random(192) < 0.2).astype(int)
    if "--flags" in how:
        frame.loc[frame["bad"] == 1, "a"] = 50.0
        frame.loc[frame.index % 9 == 4, "a"] = -9.0
    if "--duplicates" in how:  # two rows for each time
        frame["time"] //= 2
    frame.to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.chdir(tmp_path)
    assert command("fit", "t.csv", "--label", "label", "--out", "run", *how, *TINY, "--predictor", "model") == 0
    assert command("predict", "run", "t.csv", "--out", "told.parquet") == 0
    told = pq.read_table("told.parquet").to_pandas()[["probability_A", "probability_B"]].to_numpy()
    assert np.allclose(RoMAEClassifier.load("run").predict_proba(frame), told, atol=1e-6)
    with refuses("'id'", "'object_id'"):  # not one series of them all
        RoMAEClassifier.load("run").predict(frame.rename(columns={"id": "object_id"}))
    # A model that starts from it reads frames alike in fit and in predict.
    labels = frame.groupby("id")["label"].first()
    model = RoMAEClassifier(**SHORT, finetune_epochs=1, pretrained="run", predictor="model").fit(frame, labels)
    kept = Pipeline.load(tmp_path / "run").columns
    for option in ("flags", "na", "wide", "duplicates", "tokens"):
        assert model.pipeline_.columns[option] == kept[option]
    assert model.predict_proba(frame).shape == (24, 2)


@pytest.mark.parametrize("stage", ["pretrained", "finetuned"])
def test_the_lines_of_a_model_card_run(stage, fitted, tmp_path, monkeypatch):
    pipeline = Pipeline.load(fitted / "run")
    (pipeline if stage == "finetuned" else pipeline.pretrained).save(tmp_path / "model")
    card = (tmp_path / "model" / "README.md").read_text()
    blocks = dict(re.findall(r"```(sh|python)\n(.*?)```", card, re.S))
    monkeypatch.chdir(tmp_path)
    shutil.copy(fitted / "stars.csv", "table.csv")
    found = {}
    exec(blocks["python"].replace("FOLDER", str(tmp_path / "model")), found)
    assert len(found["answers"]) == 24
    lines = [line for line in blocks["sh"].splitlines() if line.startswith("rotarymae")]
    assert lines
    for line in lines:
        assert command(*shlex.split(line.replace("FOLDER", str(tmp_path / "model")))[1:]) == 0
    if stage == "finetuned":
        import pyarrow.csv

        assert found["answers"].tolist() == pyarrow.csv.read_csv("predictions.csv")["predicted"].to_pylist()


def test_a_model_is_saved_again_to_its_folder_and_predicts_by_what_is_asked_for(lists, tmp_path):
    model = RoMAEClassifier(**BOTH, predictor="combined").fit(*lists)
    for _ in range(2):
        model.save(tmp_path / "model")
    for choice in ("model", "features", "combined"):
        loaded = RoMAEClassifier.load(tmp_path / "model", predictor=choice)
        dataset = model._read(lists[0])
        every = model.pipeline_.partners.every(predict_and_embed(model.pipeline_, dataset)[0], dataset)
        assert np.allclose(loaded.predict_proba(lists[0]), every[choice])
    RoMAEInterpolator(**FAST).fit(lists[0]).save(tmp_path / "other")
    with refuses("predictor='combined'"):
        RoMAEClassifier(**BOTH, predictor="model").fit(*lists).save(tmp_path / "alone")
        RoMAEClassifier.load(tmp_path / "alone", predictor="combined")


def test_scores_are_of_the_series_that_have_a_label(classifier, lists):
    some = [label if i % 3 else None for i, label in enumerate(lists[1])]
    at = [i for i, label in enumerate(some) if label]
    for wrong, words in (([None] * 24, "no series has a label"), (lists[1][:10], "10 labels for 24 series")):
        with refuses(words):
            classifier.score(lists[0], wrong)
    assert classifier.score(lists[0], some) == classifier.score([lists[0][i] for i in at], lists[1][at])
    numbers = np.where(np.arange(24) % 3 == 0, np.nan, np.arange(24.0))
    regressor = RoMAERegressor(**BOTH).fit(lists[0], np.arange(24.0))
    assert regressor.score(lists[0], numbers) == regressor.score([lists[0][i] for i in at], np.arange(24.0)[at])
    with refuses("10 labels for 24 series"):
        regressor.score(lists[0], np.arange(10.0))
    with refuses("shape (24, 2, 2)"):
        RoMAERegressor(**BOTH).fit(lists[0], np.zeros((24, 2, 2)))
    for model in (classifier, regressor):
        with refuses("(24, 2)", "(24,)"):
            model.score(lists[0], np.zeros((24, 2)))
    whole = np.arange(24) % 2
    numbers = RoMAEClassifier(**BOTH).fit(lists[0], whole)
    for same in (whole.astype(float), whole.astype(str), whole[:, None], whole.astype(bool)):
        assert numbers.score(lists[0], same) == np.mean(numbers.predict(lists[0]) == whole)


def test_dates_are_asked_in_any_form():
    days = pd.date_range("2024-01-01", periods=10, freq="D")
    frame = pd.DataFrame({"id": np.repeat([0, 1, 2], 10), "time": np.tile(days, 3), "value": np.arange(30.0)})
    model = RoMAEInterpolator(**FAST).fit(frame)
    wanted = model.predict(frame, at=np.array([19724.5, 19725.0]))
    asked = pd.to_datetime(["2024-01-02 12:00", "2024-01-03 00:00"])
    hours, texts = asked.to_numpy().astype("datetime64[h]"), ["2024-01-02T12:00", "2024-01-03"]
    for at in (
        asked,
        asked.to_numpy(),
        asked.to_numpy().astype("datetime64[s]"),
        hours,
        list(asked),
        list(hours),
        [asked] * 3,
        texts,
    ):
        assert np.allclose(model.predict(frame, at=at), wanted)
    numbers = frame.assign(time=np.tile(np.arange(10), 3))
    with pytest.warns(InputWarning, match="times are numbers, and were dates"):
        model.predict(numbers)
    with refuses("at is a table", "'id', 'time'"):
        model.predict(frame, at=pd.DataFrame({"id": [0], "time": [1.0]}))
    with refuses("at holds dates", "numbers"), warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        model.predict(numbers, at=asked)
    with refuses("'at'", "text"):
        model.predict(frame, at=["tomorrow"])
    with refuses("at holds durations", "give dates"):
        model.predict(frame, at=[pd.Timedelta(hours=1)])
    with pytest.warns(InputWarning, match="cells are in h"):
        model.predict(frame, at=["19724h"])
    with refuses("query 1", "the time 20240101.0", "years 1 to 9999"):
        model.predict(frame, at=[19724.5, 20240101])
    dataset = SeriesDataset.from_frame(frame)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.allclose(model.predict([dataset[0], dataset[2]], at=asked), wanted[[0, 2]])


def test_dates_without_a_zone_are_in_that_of_the_series():
    hours = pd.date_range("2024-06-01", periods=10, freq="h", tz="Europe/Berlin")
    frame = pd.DataFrame({"id": np.repeat([0, 1], 10), "time": np.tile(hours, 2), "value": np.arange(20.0)})
    model = RoMAEInterpolator(**FAST).fit(frame)
    wanted = model.predict(frame, at=hours[2:4])
    for at in (["2024-06-01T02:00", "2024-06-01T03:00"], hours[2:4].tz_localize(None), ["2024-06-01T00:00Z"] * 2):
        assert np.allclose(model.predict(frame, at=at)[:, 0], wanted[:, 0])
    with refuses("holds NaN"):
        model.predict(frame, at=pd.DatetimeIndex(["2024-06-01", None]))


def test_errors_go_from_python_to_the_command_and_back(tmp_path):
    rows = two_kinds()[0]
    path = write_csv(tmp_path / "t.csv", "star,day,flux,sigma", [(star, day, flux, 0.1) for star, day, _, flux in rows])
    frame = pd.read_csv(path).drop_duplicates(["star", "day"])
    columns = {"id": "star", "time": "day", "values": "flux", "errors": "sigma"}
    model = RoMAEInterpolator(**FAST, **columns).fit(frame)
    assert isinstance(model.score(frame), float)
    model.save(tmp_path / "model")
    frame.to_csv(path, index=False)
    assert command("embed", tmp_path / "model", path, "--out", tmp_path / "e.parquet") == 0
    loaded = RoMAEInterpolator.load(tmp_path / "model")
    assert loaded.errors == "sigma" and np.array_equal(loaded.predict(frame, [1.0])[0], model.predict(frame, [1.0])[0])


def test_boosting_reads_errors_of_any_name_in_training_and_after_it(tmp_path):
    rows, _ = two_kinds()
    path = write_csv(tmp_path / "t.csv", "id,time,flux,sigma", [(star, day, flux, 0.1) for star, day, _, flux in rows])
    frame = pd.read_csv(path).drop_duplicates(["id", "time"])
    frame.to_csv(path, index=False)
    series = SeriesDataset.from_frame(frame, values=["flux", "sigma"])
    model = RoMAEClassifier(**BOTH, errors="sigma", predictor="features").fit(series, np.arange(len(series)) % 2)
    names = model.pipeline_.partners.partners["features"].features
    assert "all: flux chi square" in names and not any(name.startswith("all: sigma") for name in names)
    model.save(tmp_path / "model")
    assert command("predict", tmp_path / "model", path, "--values", "flux", "--out", tmp_path / "p.csv") == 0
    answers = pd.read_csv(tmp_path / "p.csv")
    assert np.allclose(answers[["probability_0", "probability_1"]], model.predict_proba(series), atol=1e-5)


def test_one_name_is_a_name(lists):
    series = SeriesDataset.from_arrays(
        [t for t, _ in lists[0]], [v for _, v in lists[0]], static={"age": list(np.arange(24.0))}
    )
    assert RoMAEClassifier(**BOTH, static="age").fit(series, lists[1]).pipeline_.preprocessor.static[0].name == "age"


def test_a_model_that_is_taken_as_it_is_obeys_the_window(interpolator, lists):
    given = {**TUNED, "pretrained": interpolator.pipeline_, "window": 3}
    assert RoMAEClassifier(**given).fit(*lists).pipeline_.preprocessor.window == 3


def test_numbers_of_numpy_are_numbers(lists):
    model = RoMAEInterpolator(**{**FAST, "pretrain_epochs": np.int64(1)}, random_state=np.int64(1))
    model.set_params(base_lr=np.float32(1e-3)).fit(lists[0])
    assert RoMAEClassifier(**BOTH, random_state=2**33).fit(*lists).pipeline_.partners.available[1:]


def test_outputs_that_are_known_of_some_series_alone(lists):
    numbers = np.random.default_rng(0).normal(size=(24, 2))
    numbers[3:, 1] = np.nan
    for seed in range(3):  # whichever part the three fall into
        model = RoMAERegressor(**BOTH, predictor="model", random_state=seed)
        try:
            model.fit(lists[0], numbers)
        except InputError as error:
            assert "every label of output 1" in str(error) and not hasattr(model, "pretrained_")
            continue
        with np.errstate(all="ignore"):
            assert np.isfinite(model.score(lists[0], numbers))


def test_pairs_of_numbers_in_an_array_of_objects_are_two_outputs(lists):
    pairs = pd.Series([[float(i), float(-i)] for i in range(24)])
    model = RoMAERegressor(**BOTH, predictor="model").fit(lists[0], pairs)
    assert model.predict(lists[0]).shape == (24, 2)


def test_labels_of_a_data_set_by_id_may_have_other_ids_too():
    dataset = SeriesDataset.from_arrays([[0.0, 1.0]] * 4, [[1.0, 2.0]] * 4, ids=list("dbca"))
    by_id = pd.Series([0, 1, 2, 3], index=list("abcd"))
    part = dataset.select([0, 2])
    with pytest.warns(InputWarning, match="no series"):
        assert [*labels_of(part, part, by_id, "id")] == [3, 2]
    with refuses("'a'"):
        labels_of(dataset, dataset, by_id.rename({"a": "other"}), "id")  # once taken in the order given, in silence
    numbers = SeriesDataset.from_arrays([[0.0, 1.0]] * 3, [[1.0, 2.0]] * 3, ids=[1, 2, 3])
    assert [*labels_of(numbers, numbers, pd.Series([5, 6, 7], index=[2, 0, 1]), "id")] == [5, 6, 7]  # rows, shuffled


def test_labels_with_the_default_index_of_pandas_keep_their_order():
    """The series of a frame are in the order in which they appear; 0, 1, 2, ... are no ids even where these exist."""
    ids = np.repeat([3, 1, 2, 0], 3)
    frame = pd.DataFrame({"id": ids, "time": np.tile(np.arange(3.0), 4), "value": np.arange(12.0)})
    dataset, labels = SeriesDataset.from_frame(frame), pd.Series(list("abcd"))
    assert [*labels_of(dataset, frame, labels, "id")] == [*labels_of(dataset, dataset, labels, "id")] == [*"abcd"]
    by_id = labels.rename_axis("id")
    assert [*labels_of(dataset, frame, by_id, "id")] == [*"dbca"], "a named index was made on purpose"
    for strange in ({3: "a", 1: 2, 2: "b", 0: "c"}, dict.fromkeys(range(4), object()), {0: 10**30, 1: 1, 2: 1, 3: 1}):
        with refuses("column 'label' holds values of mixed type"):
            labels_of(dataset, frame, strange, "id")
    with refuses("label", "several", "1"):
        labels_of(dataset, frame, pd.Series(list("abcda"), index=[3, 1, 2, 0, 1]), "id")
    with refuses("column 'id' holds values of mixed type"):
        labels_of(dataset, frame, {(id, "x"): 1 for id in range(4)}, "id")
    nothing = pd.DataFrame(index=list("abcd"))
    assert labels_of(dataset, frame, nothing, "id") is nothing


def test_a_forecaster_is_scored_by_the_latest_observations(lists, monkeypatch):
    from rotarymae.estimators import unsupervised

    asked, hide = [], unsupervised.hide
    monkeypatch.setattr(unsupervised, "hide", lambda *of, by, **how: asked.append(by) or hide(*of, by=by, **how))
    RoMAEInterpolator(**FAST, masking="future").fit(lists[0]).score(lists[0])
    assert asked == ["latest"]


def test_a_frame_is_read_with_the_positions_of_the_model():
    frame = pd.DataFrame({"id": np.repeat(range(6), 5), "time": np.tile(np.arange(5.0), 6), "value": np.arange(30.0)})
    frame["depth"] = frame["value"] % 7
    dataset = SeriesDataset.from_frame(frame, positions=["depth"])
    model, asked = RoMAEInterpolator(**FAST).fit(dataset), {"at": [1.5], "positions": [[2.0]]}
    assert np.array_equal(model.predict(frame, **asked), model.predict(dataset, **asked))


def test_warnings_of_a_fit_are_those_of_python(lists):
    with pytest.warns(InputWarning, match="predictor='features' needs validation series and there are none"):
        RoMAEClassifier(**BOTH, predictor="features", validation_fraction=0.0).fit(*lists)


def test_static_columns_that_are_not_read_are_said():
    frame = pd.DataFrame({"id": np.repeat(range(6), 5), "time": np.tile(np.arange(5.0), 6), "value": np.arange(30.0)})
    frame["age"] = frame["id"] * 10.0
    dataset = SeriesDataset.from_frame(frame, static=["age"])
    with pytest.warns(InputWarning, match="static columns 'age' are not used; name those to read by static="):
        RoMAEClassifier(**BOTH).fit(dataset, list("ababab"))
