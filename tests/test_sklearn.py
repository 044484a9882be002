"""scikit-learn's own checks of the estimators, the tools people put around them, and the forms of series they take."""

import warnings

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_methods_subset_invariance, estimator_checks_generator

from conftest import command, refuses
from rotarymae import RoMAEClassifier, RoMAEEmbedder, RoMAEInterpolator, RoMAERegressor, SeriesDataset
from rotarymae.data import plasticc
from rotarymae.errors import InputWarning
from rotarymae.tables import as_dataset
from rotarymae.targets import as_targets, has_label, narrowed

SMALL = {"embed_dim": 12, "num_heads": 1, "depth": 1, "decoder_embed_dim": 12, "decoder_num_heads": 1}
SMALL |= {"decoder_depth": 1, "pretrain_epochs": 1, "min_steps": 0, "batch_size": 8}
BOTH = {**SMALL, "finetune_epochs": 1, "predictor": "model"}
# No augmentation: it drops half of the two numbers of scikit-learn's blobs.
LEARNS = {**BOTH, "finetune_epochs": 3, "base_lr": 2e-2, "pool": "mean", "drop": 0.0, "noise": 0.0, "masking": "ratio"}
CHECKED = [RoMAEClassifier(**LEARNS), RoMAERegressor(**BOTH), RoMAEInterpolator(**SMALL), RoMAEEmbedder(**SMALL)]
WAIVED = {
    "check_regressors_train": "it wants half of the variance explained, and the model is trained for a second only"
}


def checks():
    """Yield (estimator, check); those that come again with memory that cannot be written to are slow."""
    for one in CHECKED:
        waived = WAIVED if isinstance(one, RoMAERegressor) else {}
        for pair in estimator_checks_generator(one, expected_failed_checks=waived, mark="xfail", xfail_strict=True):
            values, marks = getattr(pair, "values", pair), [*getattr(pair, "marks", ())]
            check = values[1]
            again = [f"{name}={value}" for name, value in check.keywords.items() if name == "readonly_memmap"]
            marks += [pytest.mark.slow] if again else []
            yield pytest.param(*values, marks=marks, id="-".join([type(one).__name__, check.func.__name__, *again]))


@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_checks_of_scikit_learn(estimator, check):
    if isinstance(estimator, RoMAERegressor) and check.func is check_methods_subset_invariance:
        pytest.skip("it allows 1e-7, less than float32 can hold; the test below allows 1e-5")
    check(estimator)


def test_an_answer_does_not_depend_on_the_other_series():
    X = np.random.default_rng(0).normal(size=(20, 3))
    model = RoMAERegressor(**BOTH).fit(X, X[:, 0])
    alone = np.concatenate([model.predict(X[i : i + 1]) for i in range(20)])
    assert np.allclose(model.predict(X), alone, rtol=0, atol=1e-5)


# ── the same data in every form ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def gappy():
    """An array [16, 3, 20] of slow and fast waves; 40 % of the numbers are NaN, and some series end early."""
    draw = np.random.default_rng(0)
    speed = np.where(np.arange(16) % 2, 0.9, 0.3)[:, None, None]
    array = np.sin(speed * np.arange(20) + np.arange(3)[:, None]) + 0.05 * draw.normal(size=(16, 3, 20))
    array[draw.random(array.shape) < 0.4] = np.nan
    for row, length in zip(array, draw.integers(12, 21, 16), strict=True):
        row[:, length:] = np.nan
    array[:, 0, 0] = 0.0
    return array, np.array(["slow", "fast"] * 8)


def forms_of(array):
    """The same series in every form that can hold channels with gaps."""
    case, time, channel = np.nonzero(~np.isnan(array.transpose(0, 2, 1)))
    value, name = array[case, channel, time], np.array([f"channel_{c}" for c in range(array.shape[1])])[channel]
    long = {"star": case, "day": time.astype(float), "band": name, "flux": value}
    groups = [(time[case == i], value[case == i], name[case == i]) for i in range(len(array))]
    names = {"channel": "band", "values": ("flux",)}
    dataset = SeriesDataset.from_frame(pd.DataFrame(long), "star", "day", "band", ["flux"])
    ends = np.where(~np.isnan(array).all(1), np.arange(array.shape[2]) + 1, 0).max(1)
    return {
        "pandas": (pd.DataFrame(long), {"id": "star", "time": "day", **names}),
        "polars": (pl.DataFrame(long), {"id": "star", "time": "day", **names}),
        "arrow": (pa.table(long), {"id": "star", "time": "day", **names}),
        "data set": (dataset, {}),
        "series": (list(dataset), {}),
        "lists": (groups, {}),
        "padded": (array, {}),
        "arrays": ([one[:, :end] for one, end in zip(array, ends, strict=True)], {}),
    }


@pytest.mark.parametrize("other", [{"band": ["r", "z"]}, {"band": None}, {"static": 1.0}])
def test_series_of_two_data_sets_are_joined_only_if_their_columns_are_alike(other):
    """Channels are numbered in each data set, so that 0 may be g in one and r in the other."""
    static = ["static"] if "static" in other else []
    frame = pd.DataFrame({"id": [1, 1], "time": [0.0, 1.0], "value": [1.0, 2.0], "band": ["g", "r"]})
    one = SeriesDataset.from_frame(frame, channel="band")
    assert len(as_dataset([*one, *one])) == 2
    channel = "band" if other.get("band", 1) else None
    two = SeriesDataset.from_frame(frame.assign(**other), channel=channel, static=static)
    for series in ([*one, *two], [*two, *one]):
        with refuses("several data sets", "read their tables together"):
            as_dataset(series)


def test_the_same_series_in_all_forms_give_the_same_predictions(gappy):
    """What a fitted model reads in the other forms is in the next test."""
    array, labels = gappy
    forms = forms_of(array)
    want, want_at = None, None
    for name in ("pandas", "data set", "lists", "arrays"):
        series, columns = forms[name]
        found = RoMAEClassifier(**BOTH, **columns).fit(series, labels).predict_proba(series)
        interpolator = RoMAEInterpolator(**SMALL, **columns).fit(series)
        at = np.asarray(interpolator.predict(series, at=[2.0, 5.5])).reshape(16, 3, 2)
        want, want_at = (found, at) if want is None else (want, want_at)
        assert np.allclose(found, want, rtol=0, atol=1e-6), name
        assert np.allclose(at, want_at, rtol=0, atol=1e-6), name
    assert np.ptp(want[:, 0]) > 1e-3


def test_a_model_fitted_on_one_form_reads_the_others(gappy):
    array, labels = gappy
    forms = forms_of(array)
    frame, columns = forms["pandas"]
    model = RoMAEClassifier(**BOTH, **columns).fit(frame, labels)
    want = model.predict_proba(frame)
    for name, (series, _) in forms.items():
        assert np.allclose(model.predict_proba(series), want, rtol=0, atol=1e-6), name


@pytest.mark.parametrize("equal", [True, False], ids=["equal lengths", "unequal lengths"])
def test_what_the_loader_of_aeon_gives_goes_in_unchanged(equal, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its own, and those of what it imports
        datasets = pytest.importorskip("aeon.datasets", reason="aeon cannot stand beside the constraints")
    draw, lines = np.random.default_rng(0), []
    for i in range(12):
        rows = draw.normal(size=(2, 8 if equal else 6 + i % 3)).round(3)
        lines.append(":".join([*(",".join(map(str, row)) for row in rows), ["up", "down"][i % 2]]))
    head = ["@problemName Made", "@timeStamps false", "@missing false", "@univariate false", "@dimensions 2"]
    head += [f"@equalLength {str(equal).lower()}", *(["@seriesLength 8"] if equal else []), "@classLabel true up down"]
    path = tmp_path / "Made_TRAIN.ts"
    path.write_text("\n".join([*head, "@data", *lines]) + "\n")
    series, labels = datasets.load_from_ts_file(str(path))
    assert isinstance(series, np.ndarray if equal else list) and series[0].shape == (2, 8 if equal else 6)
    assert RoMAEClassifier(**BOTH).fit(series, labels).predict_proba(series).shape == (12, 2)


def test_rows_of_a_table_are_series_of_one_channel():
    draw = np.random.default_rng(0)
    table = draw.normal(size=(16, 9))
    table[0, 4] = np.nan
    rows = [(np.flatnonzero(~np.isnan(row)), row[~np.isnan(row)]) for row in table]
    frame = pd.DataFrame(
        [(i, t, v) for i, row in enumerate(rows) for t, v in zip(*row)], columns=["id", "time", "value"]
    )
    forms = [table, table.tolist(), pd.DataFrame(table), table[:, None], list(table[:, None]), rows, frame]
    found = [RoMAEEmbedder(**SMALL).fit(series).transform(series) for series in forms]
    for other in found[1:]:
        assert np.allclose(other, found[0], rtol=0, atol=1e-6)
    filled = RoMAEInterpolator(**SMALL).fit(table).predict(table)
    assert filled.shape == table.shape and np.isfinite(filled).all()
    padded = RoMAEInterpolator(**SMALL).fit(table[:, None])
    assert np.allclose(padded.predict(table[:, None])[:, 0], filled, atol=1e-6)
    assert padded.predict(rows)[0].shape == (8, 1)  # without times: a series' own


@pytest.mark.filterwarnings("ignore:A column-vector y")  # scikit-learn's
def test_what_a_mask_hides_is_missing(gappy):
    array, labels = gappy
    hidden = np.ma.masked_array(np.nan_to_num(array, nan=1e6), np.isnan(array))
    tables = [one[:, : 8 - i % 3] for i, one in enumerate(array[..., :8])]
    pairs = [(np.flatnonzero(~np.isnan(one[0])), one[0][~np.isnan(one[0])]) for one in array]
    masked = [(np.arange(one.shape[-1]), one[0]) for one in hidden]
    forms = [(hidden, array), ([hidden[i, :, : one.shape[1]] for i, one in enumerate(tables)], tables)]
    forms += [(hidden[:, 0], array[:, 0]), (list(hidden[:, 0]), array[:, 0]), (masked, pairs)]
    for given, same in forms:
        model = RoMAEEmbedder(**SMALL).fit(same)
        for found in (model.transform(given), model.pipeline_.embed(given)):
            assert np.allclose(found, model.transform(same), rtol=0, atol=1e-6)
    some = np.ma.masked_array(np.arange(16.0), np.arange(16) < 2)
    with pytest.warns(InputWarning, match="2 of 16 series have no label"):
        RoMAERegressor(**BOTH).fit(array, some)
    for y in (labels, labels[:, None]):
        with pytest.warns(InputWarning, match="2 of 16 series have no label"):
            RoMAEClassifier(**BOTH).fit(array, np.ma.masked_array(y, np.broadcast_to(np.arange(16) < 2, y.T.shape).T))


@pytest.mark.parametrize("labels", [[1, 0, 2], [0.5, 1.5, 2.5], ["a", "b", "c"], [True, False, True]])
def test_labels_under_a_mask_are_missing(labels):
    targets = as_targets(np.ma.masked_array(labels, [False, True, False]))
    assert targets.tolist() == [labels[0], None, labels[2]] and has_label(targets).tolist() == [True, False, True]
    assert type(targets) is np.ndarray and narrowed(targets[has_label(targets)]).dtype == np.array(labels).dtype


@pytest.mark.filterwarnings("ignore:A column-vector y")  # scikit-learn's, of a frame with one column
def test_labels_of_a_frame_may_come_by_id(gappy):
    array, labels = gappy
    frame, columns = forms_of(array)["pandas"]
    frame["kind"] = labels[frame["star"]]
    order = np.random.default_rng(0).permutation(16)
    shuffled = pd.concat([frame[frame["star"] == i] for i in order])
    by_id = dict(enumerate(labels))
    model = RoMAEClassifier(**{**BOTH, **columns})
    want = clone(model).fit(shuffled, "kind")
    for given in (by_id, pd.Series(by_id)[order], pd.DataFrame({"kind": by_id}), labels[order]):
        assert np.array_equal(clone(model).fit(shuffled, given).predict_proba(frame), want.predict_proba(frame))
    for given in (by_id, pd.DataFrame({"kind": by_id}), labels[order]):
        assert want.score(shuffled, given) == want.score(shuffled, "kind")
    numbers = pd.DataFrame({"size": np.arange(16.0), "age": -np.arange(16.0)}, index=list(range(16)))  # by id
    both = RoMAERegressor(**{**BOTH, **columns}).fit(shuffled, numbers.to_numpy()[order])
    assert np.array_equal(clone(both).fit(shuffled, numbers).predict(frame), both.predict(frame))
    assert both.score(shuffled, numbers) == both.score(shuffled, numbers.to_numpy()[order])
    with pytest.warns(InputWarning, match="1 of 16 series have no label"):
        some = clone(model).fit(frame, {i: label for i, label in by_id.items() if i != 5})
    others = frame[frame["star"] != 5]
    assert some.score(frame, {i: label for i, label in by_id.items() if i != 5}) == some.score(others, "kind")
    with refuses("'kind'"):
        clone(model).set_params(static=["kind"]).fit(frame, "kind")
    with refuses("no observation left: 3"):
        model.fit(frame.assign(flux=frame["flux"].where(frame["star"] != 3)), labels)


def test_a_saved_estimator_knows_the_columns_of_its_frame(gappy, tmp_path):
    array, labels = gappy
    frame, columns = forms_of(array)["pandas"]
    model = RoMAEClassifier(**BOTH, **columns).fit(frame, labels)
    model.save(tmp_path / "model")
    loaded = RoMAEClassifier.load(tmp_path / "model")
    assert (loaded.id, loaded.time, loaded.channel, loaded.values) == ("star", "day", "band", ("flux",))
    assert np.array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    frame.to_csv(tmp_path / "table.csv", index=False)
    assert (
        command("predict", tmp_path / "model", tmp_path / "table.csv", "--out", tmp_path / "found.csv", "--quiet") == 0
    )
    assert pd.read_csv(tmp_path / "found.csv")["predicted"].tolist() == model.predict(frame).tolist()


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (lambda a: pd.DataFrame({"id": [1, 1], "time": 2.0, "value": [1, 2]}), ["by SeriesDataset.from_frame"]),
        (lambda a: [a[0], a[1][:2]], ["channels", "2, 3"]),
        (lambda a: pd.DataFrame({"id": [1], "when": [2.0], "value": [1.0]}), ["no column 'time'", "'when'"]),
        (lambda a: a[:, 0, 1], ["Reshape your data"]),
        (lambda a: [a[0, 0], a[1, 0, :2]], ["series are list", "a list with (times, values)"]),
        (lambda a: pd.Series([(np.arange(2), a[0, 0, :2])] * 3), ["series are Series", "a list with (times, values)"]),
        (lambda a: np.zeros(3, [("id", int), ("value", float)]), ["series are ndarray", "a long data frame"]),
    ],
)
def test_forms_that_cannot_be_read(make, parts, gappy):
    with refuses(*parts):
        RoMAEEmbedder(**SMALL).fit(make(gappy[0]))


# ── tools around estimators ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def stars():
    """40 light curves of PLAsTiCC of two classes, with six bands, and their labels."""
    dataset, labels = plasticc.sample()
    some = np.concatenate([np.flatnonzero(labels == name)[:20] for name in (65, 90)])
    return dataset.select(some), labels[some]


def test_cross_validation_grid_search_and_joblib_on_light_curves(stars, tmp_path):
    series, labels = stars
    assert len(cross_val_score(RoMAEClassifier(**BOTH), series, labels, cv=2)) == 2
    search = GridSearchCV(RoMAEClassifier(**BOTH), {"pool": ["mean", "attention"]}, cv=2).fit(series, labels)
    assert len(search.cv_results_["params"]) == 2 and search.best_estimator_.pool == search.best_params_["pool"]
    joblib.dump(search, tmp_path / "search.joblib")
    again = joblib.load(tmp_path / "search.joblib")
    assert np.array_equal(again.predict_proba(series), search.predict_proba(series))


def test_cross_validation_reads_static_columns(stars):
    series, labels = stars
    static = {"redshift": np.arange(40.0)}
    dataset = SeriesDataset(**{**vars(series), "static": static})
    scores = cross_val_score(RoMAEClassifier(**BOTH, static=("redshift",)), dataset, labels, cv=2, error_score="raise")
    assert len(scores) == 2


def test_series_that_scikit_learn_selects_keep_the_names_of_their_values(stars):
    series, _ = stars
    again = as_dataset([series[i] for i in range(len(series))])
    assert again.value_names == series.value_names


def test_a_pipeline_of_embedder_and_regression(gappy):
    array, labels = gappy
    pipeline = make_pipeline(RoMAEEmbedder(**SMALL), LogisticRegression(max_iter=500))
    pipeline.fit(array, labels)
    assert pipeline.predict(array).shape == (16,)
    search = GridSearchCV(pipeline, {"romaeembedder__pool": ["mean", "cls"]}, cv=2).fit(array, labels)
    assert set(search.best_params_) == {"romaeembedder__pool"}


# ── what fit and predict offer besides ──────────────────────────────────────────────────────────────────────────────


def test_the_interpolator_is_scored_at_hidden_points(gappy):
    array, _ = gappy
    from rotarymae.series import hide
    from rotarymae.tables import as_dataset

    model = RoMAEInterpolator(**SMALL).fit(array)
    score = model.score(array)
    dataset = as_dataset(array, model.pipeline_.preprocessor)
    visible, hidden, _ = hide(dataset, 0.25, seed=0)
    predicted = [
        model.predict([(seen.times, seen.values, np.array(dataset.channel_names)[seen.channels])], at=left.times)
        for seen, left in zip(visible, hidden, strict=True)
    ]
    found = [p[0, one.channels, np.arange(len(one.times)), 0] for p, one in zip(predicted, hidden, strict=True)]

    def scaled(values):
        return model.pipeline_.preprocessor.values.transform(np.concatenate(values).reshape(-1, 1), hidden.channels)

    assert score == pytest.approx(r2_score(scaled([one.values[:, 0] for one in hidden]), scaled(found)), abs=1e-5)
    assert model.set_params(base_lr=1e-2, pretrain_epochs=60).fit(array).score(array) > score
