"""The models that ship with the library: opened by name, offline, and worth something."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rotarymae import RoMAEClassifier, RoMAEEmbedder
from rotarymae.cli.main import main
from rotarymae.data import plasticc
from rotarymae.errors import InputError
from rotarymae.model_files import SHIPPED, find_model, shipped_models

NAME = "plasticc-ugrizy"


@pytest.fixture(scope="module")
def sample():
    series, labels = plasticc.sample()
    few = np.arange(0, 1400, 7)
    return series.with_values(["flux", "flux_err"]).select(few), labels[few]


def test_they_are_small_and_say_whose_data_they_saw():
    assert shipped_models() == (NAME,)
    assert sum(path.stat().st_size for path in (SHIPPED / NAME).iterdir()) < 10e6
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
    assert len(model.loaded_) > 20
    assert model.predict_proba(series).shape == (30, 2)
