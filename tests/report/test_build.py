"""The report of a run: what is in it, and that curves and words fit the run."""

import re

import numpy as np
import pytest

from rotarymae import SeriesDataset
from rotarymae.report.build import POINTS, learning_curve, write_report
from rotarymae.tasks.fit_table import fit_table
from rotarymae.tasks.interpolation import curves, hide
from rotarymae.tasks.pretrain_finetune import Settings
from rotarymae.training.config import TrainConfig
from rotarymae.training.loop import TrainResult

ONCE = TrainConfig(epochs=1, batch_size=8, log_every=1)


def words(page):
    return " ".join(re.sub(r"<[^>]*>", " ", re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)).split())


@pytest.fixture(scope="module")
def data():
    draw = np.random.default_rng(0)
    times = [np.sort(draw.uniform(0, 20, draw.integers(4, 12))) for _ in range(16)]
    channels = [np.where(draw.random(len(t)) < 0.5, "u", "$v<") for t in times]
    values = [np.stack([np.sin(t), np.abs(np.cos(t))], 1) for t in times]
    return SeriesDataset.from_arrays(times, values, channels, value_names=["flux", "flux_err"])


def test_the_commands_report(fitted):
    page = (fitted / "run/report.html").read_text()
    text = words(page)
    for part in (
        "stars.csv", "At a glance", "macro-F1", "gradient boosting", "Classes, on held-out series",
        "linear interpolation", "Are the bands honest?", "Class by class", "Map of embeddings",
        "each series' first observation", "tiny-shallow", "flux at", "held-out series",
    ):  # fmt: skip
        assert part in text.replace("&#x27;", "'"), part
    assert page.count("<img") >= 5 and "<script" not in page and "http://" not in page.replace("http://www.w3.org", "")


def test_a_regression_has_its_own_part(data, tmp_path):
    labels = np.linspace(0, 1, 16) ** 2
    outcome = fit_table(data, labels, Settings(pretrain=ONCE, finetune=ONCE), tmp_path / "run")
    text = words(write_report(outcome, tmp_path / "run/report.html", title="A <b>title").read_text())
    assert "Predicted beside true" in text and "Regression, on held-out series" in text and "training mean" in text
    assert "A &lt;b&gt;title" in text and "Class by class" not in text
    # One table for each value: numbers of different units are not compared with one another.
    assert "flux at" in text and "flux_err at" in text


def test_without_labels_and_with_few_series(data, tmp_path):
    outcome = fit_table(data.select(np.arange(3)), None, Settings(pretrain=ONCE), tmp_path / "run")
    text = words(write_report(outcome, tmp_path / "run/report.html", title="few").read_text())
    assert "on the training series, for want of others" in text and "held-out" not in text
    assert "Map of embeddings" not in text and "Class by class" not in text


def test_series_of_one_observation_make_a_report_too(tmp_path):
    times = [[0.0, 1.0], *([[0.0]] * 11)]
    data = SeriesDataset.from_arrays(times, [[float(i)] * len(t) for i, t in enumerate(times)])
    outcome = fit_table(data, None, Settings(pretrain=ONCE), tmp_path / "run", holdout=0.0)
    assert outcome.metrics["interpolation"]["value"]["hidden observations"] == 1
    assert "At a glance" in words(write_report(outcome, tmp_path / "report.html", title="ones").read_text())


def test_curves_reach_over_all_that_was_hidden(data):
    visible, hidden, _ = hide(data, 0.5, seed=0)
    queries = curves(visible, hidden, POINTS)
    for i in range(len(visible)):
        at = slice(queries.offsets[i], queries.offsets[i + 1])
        whole = np.concatenate([visible[i].times, hidden[i].times])
        assert queries.times[at].min() == whole.min() and queries.times[at].max() == whole.max()
        assert set(queries.channels[at]) == {*visible[i].channels, *hidden[i].channels}
        assert queries.lengths[i] == POINTS * len(set(queries.channels[at]))


def test_learning_curves_are_means_by_epoch():
    history = [
        {"step": 1, "epoch": 0.0, "loss": 4.0, "lr": 1.0},
        {"step": 2, "epoch": 0.5, "loss": 2.0, "lr": 1.0},
        {"step": 2, "epoch": 1, "validation": 7.0},
        {"step": 3, "epoch": 1.0, "loss": 1.0, "lr": 1.0},
    ]
    curve = learning_curve("fine-tuning", TrainResult(history))
    assert (list(curve.steps), list(curve.training)) == ([1, 2], [3.0, 1.0])
    assert curve.validation[0] == 7.0 and np.isnan(curve.validation[1])
    assert learning_curve("fine-tuning", TrainResult([])) is None
    assert learning_curve("pre-training", TrainResult(history[:2])).validation is None
