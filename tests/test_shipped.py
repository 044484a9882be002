"""The models that ship with the library: opened by name, offline, and worth something."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rotarymae import RoMAEClassifier, RoMAEEmbedder, RoMAEInterpolator, load
from rotarymae.cli.main import main
from rotarymae.data import plasticc
from rotarymae.errors import InputError, InputWarning
from rotarymae.model_files import ANY_SERIES, SHIPPED, find_model, shipped_models

NAME = "plasticc-ugrizy"


@pytest.fixture(scope="module")
def sample():
    series, labels = plasticc.sample()
    few = np.arange(0, 1400, 7)
    return series.with_values(["flux", "flux_err"]).select(few), labels[few]


def test_they_are_small_and_say_whose_data_they_saw():
    assert shipped_models() == (ANY_SERIES, NAME)
    for name in shipped_models():
        assert sum(path.stat().st_size for path in (SHIPPED / name).iterdir()) < 10e6
    card = (SHIPPED / NAME / "README.md").read_text(encoding="utf-8")
    assert "license: cc-by-4.0" in card and "10.5281/zenodo.2539456" in card and "1,400 objects" in card


def test_a_name_that_does_not_exist(tmp_path):
    with pytest.raises(InputError, match=f"no model 'plasticc'.*{NAME}"):
        find_model("plasticc")
    assert find_model(tmp_path) == tmp_path


def test_its_embeddings_tell_classes_apart(sample):
    series, labels = sample
    vectors = RoMAEEmbedder.load(NAME).transform(series)
    assert vectors.shape == (len(series), 120)
    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500))
    often = np.isin(labels, [c for c, n in zip(*np.unique(labels, return_counts=True), strict=True) if n >= 8])
    found = cross_val_score(probe, vectors[often], labels[often], cv=4)
    assert found.mean() > 0.35  # the most common class is a fifth


def test_the_command_embeds_by_name_and_fine_tuning_starts_from_it(sample, tmp_path):
    series, labels = sample[0].select(np.arange(30)), sample[1][:30] == 90
    pd.DataFrame(
        {
            "object_id": np.repeat(series.ids, series.lengths),
            "mjd": series.times,
            "passband": np.array(series.channel_names)[series.channels],
            "flux": series.values[:, 0],
            "flux_err": series.values[:, 1],
        }
    ).to_csv(tmp_path / "curves.csv", index=False)
    main(["embed", NAME, str(tmp_path / "curves.csv"), "--out", str(tmp_path / "vectors.csv"), "--quiet"])
    vectors = pd.read_csv(tmp_path / "vectors.csv")
    assert vectors.shape == (30, 121)
    model = RoMAEClassifier(pretrained=NAME, finetune_epochs=1, min_steps=0, predictor="model").fit(series, labels)
    assert model.predict_proba(series).shape == (30, 2)


# ── any-series: no training ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def waves():
    """Return 40 noisy waves at uneven times as a frame, with one spike in each; which rows these are."""
    draw, rows = np.random.default_rng(0), []
    for i in range(40):
        times = np.sort(draw.uniform(0, 60, 50))
        wave = np.sin(draw.uniform(0.2, 0.5) * times + i) + 0.1 * draw.normal(size=50)
        rows.append(pd.DataFrame({"id": i, "time": times, "value": 100 + 10 * wave, "spike": np.arange(50) == 20}))
    frame = pd.concat(rows, ignore_index=True)
    frame["value"] += np.where(frame["spike"], 15.0, 0.0)
    return frame.drop(columns="spike"), frame["spike"].to_numpy()


def test_a_table_alone_is_interpolated_and_the_command_says_how(waves, tmp_path, capsys):
    table, at, out = tmp_path / "waves.csv", tmp_path / "at.csv", tmp_path / "values.csv"
    waves[0].to_csv(table, index=False)
    main(["interpolate", str(table), "--grid", "7", "--out", str(out)])
    said = capsys.readouterr().err
    assert "no training: answered by any-series" in said and "the straight line's 0." in said
    values = pd.read_csv(out)
    assert len(values) == 280 and (values["value_lower68"] < values["value"]).all()
    pd.DataFrame({"id": [3, 5], "time": [10.0, 12.5]}).to_csv(at, index=False)
    main(["interpolate", str(table), "--at", str(at), "--out", str(tmp_path / "asked.csv"), "--quiet"])
    asked = pd.read_csv(tmp_path / "asked.csv")
    at_once = load(ANY_SERIES).interpolate(waves[0][waves[0]["id"] == 5], [12.5])
    assert asked["id"].tolist() == [3, 5] and asked["value"][1] == pytest.approx(at_once[0, 0, 0], rel=1e-6)


def test_spikes_score_highest_without_training(waves, tmp_path):
    table, out = tmp_path / "waves.csv", tmp_path / "scores.csv"
    waves[0].to_csv(table, index=False)
    main(["anomalies", str(table), "--out", str(out), "--quiet"])
    scores = pd.read_csv(out)
    assert scores[["id", "time", "value"]].to_numpy() == pytest.approx(waves[0].to_numpy())
    assert roc_auc_score(waves[1], scores["anomaly_score"]) > 0.95


def test_a_model_without_a_table_is_refused(tmp_path, capsys):
    for command in ("interpolate", "anomalies"):
        with pytest.raises(SystemExit):
            main([command, NAME, "--out", str(tmp_path / "out.csv")])
        assert f"{NAME} is a model" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_interpolator_answers_before_fit_and_says_so(waves):
    curves = waves[0][waves[0]["id"] < 6]
    estimator = RoMAEInterpolator()
    with pytest.warns(InputWarning, match="no training"):
        mean, std = estimator.predict(curves, at=[10.0, 20.0], return_std=True)
    assert mean.shape == (6, 2, 1) and (std > 0).all() and not hasattr(estimator, "pipeline_")
    with pytest.warns(InputWarning, match="no training"):
        assert estimator.score(curves) > 0.5
