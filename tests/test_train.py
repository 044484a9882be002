"""One orchestration: the command and the estimators make the same model from the same data, options and seed."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from _runs import same, series, weights
from conftest import identity, refuses
from rotarymae import RoMAEClassifier, RoMAEEmbedder, RoMAEInterpolator, RoMAERegressor, load
from rotarymae.errors import InputWarning
from rotarymae.pipeline import Pipeline
from rotarymae.run import run_fit
from rotarymae.train import train
from rotarymae.training.fit_config import FitConfig

TINY = {"embed_dim": 12, "num_heads": 1, "depth": 1, "decoder_embed_dim": 12, "decoder_num_heads": 1}
TINY |= {"decoder_depth": 1, "pretrain_epochs": 1, "batch_size": 8, "min_steps": 7}
KINDS = np.array(["a", "b"] * 20)
LABELS = {
    "classes": (RoMAEClassifier, KINDS),
    "numbers": (RoMAERegressor, np.sin(np.arange(40.0))),
    "some": (RoMAEClassifier, np.where(np.arange(40) % 5 == 0, None, KINDS.astype(object))),
    "none": (RoMAEInterpolator, None),
}


@pytest.mark.parametrize("case", LABELS)
def test_the_command_and_the_estimator_make_the_same_pipeline(case, tmp_path):
    data, (kind, targets) = series(40), LABELS[case]
    options = TINY | ({} if targets is None else {"finetune_epochs": 1})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        fraction = {"validation_fraction": 0.15}
        ours = kind(**options, **fraction, random_state=3).fit(data, targets).pipeline_
        theirs = run_fit(data, targets, FitConfig(**options, seed=3), tmp_path / "run", holdout=0).pipeline
    assert same(weights(ours.model), weights(theirs.model))
    assert same(weights(ours.require_autoencoder()), weights(theirs.require_autoencoder()))
    assert identity(ours.preprocessor) == identity(theirs.preprocessor) and ours.labels == theirs.labels
    if targets is not None:
        assert ours.partners.describe() == theirs.partners.describe()
        saved = load(tmp_path / "run")
        assert np.array_equal(saved.outputs(data), ours.outputs(data))


@pytest.mark.parametrize("kind", [RoMAEClassifier, RoMAERegressor, RoMAEInterpolator, RoMAEEmbedder])
def test_every_parameter_is_documented(kind):
    """In numpydoc form, where `help` shows it: a line with the type and the default, and an indented text below."""
    lines = kind.__doc__.split("\n")
    assert "Parameters" in lines and "Attributes" in lines
    for name, value in kind().get_params().items():
        at = next(i for i, line in enumerate(lines) if line.startswith(f"{name} : "))
        assert lines[at].endswith(f"default={value!r}")
        assert lines[at + 1].startswith("    ") and len(lines[at + 1].split()) > 1
    assert "cls_token=False" in kind.__doc__ and "no_" not in kind.__doc__  # the command's --no-cls-token
    assert "--minutes decides" in kind.__doc__  # an option of the command alone is not taken for a parameter


def test_a_loaded_estimator_has_the_parameters_that_were_fitted(tmp_path):
    data = series(40)
    given = {**TINY, "finetune_epochs": 1, "mask_ratio": (0.2, 0.6), "transforms": {"value": "standard"}}
    fitted = RoMAEClassifier(**given, predictor="model", random_state=5).fit(data, KINDS)
    fitted.save(tmp_path / "model")
    loaded = RoMAEClassifier.load(tmp_path / "model")
    assert clone(loaded).get_params() == fitted.get_params()
    again = clone(loaded).fit(data, KINDS)
    assert same(weights(again.pipeline_.model), weights(fitted.pipeline_.model))
    assert RoMAEClassifier.load(tmp_path / "model", batch_size=4).batch_size == 4


def test_a_run_is_loaded_with_its_options(fitted):
    model = RoMAEClassifier.load(fitted / "run")
    wanted = {"pretrain_epochs": 1, "finetune_epochs": 1, "min_steps": 0, "batch_size": 8, "random_state": 0}
    wanted |= {"id": "star", "time": "day", "channel": "band", "values": ("flux",)}
    assert {name: model.get_params()[name] for name in wanted} == wanted


def test_what_cannot_be_trained_is_refused(tmp_path):
    data = series(40)
    pipeline = train(data, None, FitConfig(**TINY)).pipeline
    with refuses("nothing to train"):
        run_fit(data, None, FitConfig(pretrained="x"), tmp_path / "run")
    kept = train(data, None, FitConfig(pretrained="x"), start=pipeline).pipeline
    assert same(weights(kept.model), weights(pipeline.model))
    with refuses("no series has a label"):
        train(data, np.full(40, None), FitConfig(**TINY))
    with refuses("39", "40"):
        train(data, KINDS[1:], FitConfig(**TINY))
    tuned = train(data, KINDS, FitConfig(pretrained="x", finetune_epochs=1, min_steps=0), start=pipeline)
    assert isinstance(tuned.pipeline, Pipeline) and tuned.pretraining is None
    assert same(weights(tuned.pipeline.autoencoder), weights(pipeline.model))
    assert identity(tuned.pipeline.preprocessor) == identity(pipeline.preprocessor.replace(static=()))
