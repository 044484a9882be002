"""Cross-validation in one run: each labelled series is scored by a model without it, and the average predicts."""

import json
import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest

import rotarymae
import rotarymae.report
from _runs import FIT, SIZES, series
from conftest import TINY, command, patched, refuses, two_kinds, write_csv
from rotarymae import RoMAEClassifier, RoMAEEmbedder, run
from rotarymae.errors import InputError, ModelDirectoryError
from rotarymae.run import run_folds
from rotarymae.scale import predictions
from rotarymae.splits import SplitColumn
from rotarymae.train import pretrain

CONFIG = replace(FIT, predictor="model")


@pytest.fixture(scope="module")
def finished(tmp_path_factory, every_part):
    """A cross-validation of three folds by the command; four series have no label."""
    folder = tmp_path_factory.mktemp("folds")
    rows, labels = two_kinds(34)
    table = write_csv(folder / "t.csv", "id,time,band,flux", rows)
    known = [(name, kind) for i, (name, kind) in enumerate(labels.items()) if i >= 4]
    kinds = write_csv(folder / "kinds.csv", "id,label", known)
    given = ["fit", table, "--channel", "band", "--values", "flux", "--labels", kinds, "--decide", "balanced", *TINY]
    whole = rotarymae.report.write_report
    with (
        patched(every_part),
        pytest.MonkeyPatch.context() as patch,
    ):  # pictures take long: only the page of all is drawn
        patch.setattr(
            "rotarymae.report.write_report",
            lambda outcome, path, **how: (
                whole(outcome, path, **how) if path.parent.name == "run" else path.write_text("a page")
            ),
        )
        assert command(*given, "--folds", "3", "--out", folder / "run", "--quiet") == 0
    return folder


def table(path):
    return pq.read_table(path).to_pandas().set_index("id")


def test_each_series_is_predicted_by_a_fold_without_it(finished):
    found, metrics = (
        table(finished / "run/predictions.parquet"),
        json.loads((finished / "run/metrics.json").read_text()),
    )
    assert (found.part == "unlabelled").sum() == 4 and metrics["series"] == {"labelled": 30, "unlabelled": 4}
    right = []
    for fold in (1, 2, 3):
        own = table(finished / f"run/folds/{fold}/predictions.parquet")
        assert (finished / f"run/folds/{fold}/report.html").is_file()
        inside = found[found.part == f"fold {fold}"]
        assert len(inside) == 10 and set(inside.index) == set(own.index[own.part == "test"])
        np.testing.assert_allclose(inside.probability_a, own.probability_a[inside.index], atol=1e-6)
        assert (inside.predicted == own.predicted[inside.index]).all()
        right.append(float((inside.predicted == inside.label).mean()))
    name = metrics["predictor"]["chosen"]
    accuracy = metrics["folds"][name]["accuracy"]
    assert accuracy["folds"] == pytest.approx(right) and accuracy["mean"] == pytest.approx(np.mean(right))
    assert accuracy["std"] == pytest.approx(np.std(right, ddof=1))
    assert metrics["classification"][name]["accuracy"] == pytest.approx(np.mean(right))
    assert {"rare_f1", "rare_average_precision"} <= metrics["classification"][name].keys()
    page = (finished / "run/report.html").read_text()
    assert "standard deviation over folds" in page and "3 folds" in page and 'id="classes"' in page and "<img" in page
    assert all("predicted better by mean" in text for text in metrics.get("warnings", ()))


def test_the_run_predicts_with_the_average_of_its_folds(finished, capsys):
    run, out = finished / "run", finished / "answers.parquet"
    assert command("predict", run, finished / "t.csv", "--out", out, "--quiet") == 0
    answers = table(out)
    each = [rotarymae.load(run / f"folds/{fold}").predict_proba(finished / "t.csv") for fold in (1, 2, 3)]
    np.testing.assert_allclose(answers[["probability_a", "probability_b"]], np.mean(each, axis=0), atol=1e-12)
    found = table(run / "predictions.parquet")
    unseen = found.index[found.part == "unlabelled"]
    np.testing.assert_allclose(found.probability_b[unseen], answers.probability_b[unseen], atol=1e-6)
    (run / "folds/.hidden").touch()  # as systems leave
    whole = rotarymae.load(run)
    assert (whole.predict(finished / "t.csv") == answers.predicted).all()
    for model in ("features", "model"):
        each = [one.outputs(finished / "t.csv", model) for one in whole.members]
        np.testing.assert_allclose(whole.outputs(finished / "t.csv", model), np.mean(each, axis=0))
        asked = RoMAEClassifier.load(run, predictor=model)
        np.testing.assert_allclose(asked.pipeline_.predict_proba(finished / "t.csv"), np.mean(each, axis=0))
        assert [one.precision for one in asked.set_params(precision="bf16")._fitted().members] == ["bf16"] * 3
    with refuses("folds/1"):
        RoMAEEmbedder.load(run)
    assert command("evaluate", run, finished / "t.csv", "--labels", finished / "kinds.csv") == 0
    assert "30 of 30 series" in " ".join(capsys.readouterr().err.split())  # have ids that the folds were trained on
    for asked in (["embed", run, finished / "t.csv"], ["explain", run, finished / "t.csv"], ["export", run]):
        assert command(*asked, "--out", finished / "refused.parquet") == 2
        assert "folds/1" in capsys.readouterr().err and not (finished / "refused.parquet").exists()
    with refuses("folds/1"):
        rotarymae.load(run).save(finished / "copy")


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_run_that_was_killed_goes_on_to_the_same_results(task, tmp_path, monkeypatch):
    dataset, labels = series(24), np.array(["a", "b"] * 12) if task == "classification" else np.linspace(0, 1, 24)
    site = SplitColumn("site", np.arange(24).astype(str).astype(object))
    run_folds(dataset, labels, CONFIG, tmp_path / "whole", 3, split_by=site)

    def killed(*given, **how):
        if given[3].name == "2":
            (given[3] / "training").mkdir(parents=True)
            raise KeyboardInterrupt
        return original(*given, **how)

    original = run.run_fit
    monkeypatch.setattr(run, "run_fit", killed)
    with pytest.raises(KeyboardInterrupt):
        run_folds(dataset, labels, CONFIG, tmp_path / "parts", 3, split_by=site)
    monkeypatch.undo()
    with refuses("not finished", "--resume"):
        rotarymae.load(tmp_path / "parts")
    for changed in ({"folds": 4}, {"config": replace(CONFIG, seed=1)}, {"labels": labels[::-1]}):
        given = {"labels": labels, "config": CONFIG, "folds": 3} | changed
        with refuses("differs", next(iter(changed)) if "config" not in changed else "seed"):
            run_folds(dataset, given["labels"], given["config"], tmp_path / "parts", given["folds"], resume=True)
    run_folds(dataset, labels, CONFIG, tmp_path / "parts", 3, split_by=site, resume=True)
    one, other = (tmp_path / name for name in ("whole", "parts"))
    assert pq.read_table(one / "predictions.parquet").equals(pq.read_table(other / "predictions.parquet"))
    same = [json.loads((folder / "metrics.json").read_text()) for folder in (one, other)]
    for key in ("folds", task, "predictor"):
        assert same[0][key] == same[1][key]
    assert [(folder / f"folds/{k}/model/model.safetensors").read_bytes() for folder in (one,) for k in (1, 2, 3)] == [
        (folder / f"folds/{k}/model/model.safetensors").read_bytes() for folder in (other,) for k in (1, 2, 3)
    ]
    assert same[0]["predictor"]["because"] == "asked for by predictor='model', in each of 3 folds"
    with refuses("finished run"):
        run_folds(dataset, labels, CONFIG, tmp_path / "parts", 3, split_by=site, resume=True)
    for fold in (2, 1, 3):
        shutil.rmtree(one / f"folds/{fold}")
        with pytest.raises(ModelDirectoryError, match="lists 3"):
            rotarymae.load(one)


def test_a_resumed_run_starts_from_the_same_pretrained_model(tmp_path, monkeypatch):
    dataset, labels = series(24), np.array(["a", "b"] * 12)
    for name in ("one", "other"):
        pretrain(dataset, replace(CONFIG, seed=len(name))).pipeline.save(tmp_path / name)
    short = replace(CONFIG, **dict.fromkeys(SIZES))  # a trained model has its sizes
    monkeypatch.setattr(run, "run_fit", lambda *_, **__: exit())  # before the first fold has its folder
    with pytest.raises(SystemExit):
        run_folds(dataset, labels, replace(short, pretrained=str(tmp_path / "one")), tmp_path / "run", 3)
    (tmp_path / "run/folds").mkdir()
    for name, error in (("other", InputError), ("one", SystemExit)):
        again = replace(short, pretrained=str(tmp_path / name))
        with pytest.raises(error, match="the pretrained model changed" if name == "other" else None):
            run_folds(dataset, labels, again, tmp_path / "run", 3, resume=True)


def test_what_a_fold_takes_beyond_its_share_is_missing_to_the_later_ones(tmp_path, monkeypatch):
    clock, takes, lost = [1000.0], iter([100.0, 30.0, 0.0]), []

    def fit(*_, started, **__):
        lost.append(clock[0] - started)
        clock[0] += next(takes)
        if len(lost) == 3:
            raise SystemExit

    monkeypatch.setattr(run, "run_fit", fit)
    monkeypatch.setattr(run, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    config = replace(CONFIG, minutes=3.5)  # a minute for each of three folds
    with pytest.raises(SystemExit):
        run_folds(series(24), np.array(["a", "b"] * 12), config, tmp_path / "run", 3)
    assert lost == [0, 20, 10]  # 40 s late with two folds left, 10 s late with one


def test_folds_that_cannot_be_are_refused_before_any_training(tmp_path, capsys):
    out, kinds = tmp_path / "run", np.array(["a"] * 23 + ["b"])
    with refuses("class 'b'"):
        run_folds(series(24), kinds, CONFIG, out, 3)
    with refuses("labels"):
        run_folds(series(24), None, CONFIG, out, 3)
    assert not out.exists()
    rows, _ = two_kinds(8)
    given = ["fit", write_csv(tmp_path / "t.csv", "id,time,band,value", rows), "--out", out, "--folds", "3"]
    assert command(*given) == 2 and "--folds 3 is for labels" in " ".join(capsys.readouterr().err.split())
    assert command(*given, "--label", "band", "--holdout", "0.5") == 2
    assert "--holdout" in capsys.readouterr().err and not out.exists()


def test_folds_that_chose_differently_combine_all_methods(finished):
    members = rotarymae.load(finished / "run").members
    partners = [replace(one.partners, choice=choice) for one, choice in zip(members, ("model", "features", "model"))]
    mixed = rotarymae.ensemble.Ensemble.of([replace(one, partners=p) for one, p in zip(members, partners)])
    expected = np.mean([one.outputs(finished / "t.csv", "combined") for one in members], axis=0)
    assert mixed.predictor.choice == "combined"
    np.testing.assert_allclose(mixed.every(finished / "t.csv")["combined"], expected, atol=1e-12)
    np.testing.assert_allclose(mixed.predict_proba(finished / "t.csv"), expected, atol=1e-12)
    assert predictions(mixed, "features").noun == "predictions"  # each fold has it
    with pytest.raises(InputError):
        mixed.outputs(finished / "t.csv", "nothing")
