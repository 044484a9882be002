"""The interactive page: self-contained, a click shows a curve; and surprise, by which its table is sorted."""

import dataclasses
import pickle
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from _browser import CHROMIUM, drive

from rotarymae.anomaly import anomaly_score
from rotarymae.errors import MissingExtra
from rotarymae.report import write_explorer
from rotarymae.report.explore import _curves
from rotarymae.run import run_fit
from rotarymae.series import SeriesDataset
from rotarymae.training.fit_config import FitConfig

# The place on the screen of the first point with a curve, once the page is drawn.
POINT = """(() => {
  if (!globalThis.Bokeh || !Bokeh.documents.length) return null
  const map = [...Bokeh.documents[0]._all_models.values()].find((model) => model.type == "Figure")
  const view = Bokeh.index.find_one(map)
  if (!view || !view._has_finished) return null
  const data = map.renderers[0].data_source.data, box = view.el.getBoundingClientRect()
  const i = Array.from(data.row).findIndex((row) => row >= 0)
  return [box.left + view.frame.x_scale.compute(data.x[i]), box.top + view.frame.y_scale.compute(data.y[i])]
})()"""
TITLE = """(() => {
  const models = [...Bokeh.documents[0]._all_models.values()]
  const curve = models.filter((m) => m.type == "Figure")[1]
  return [curve.title.text, curve.renderers.at(-1).data_source.data.x.length, document.documentElement.scrollWidth]
})()"""


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    rng = np.random.default_rng(0)
    times = [np.sort(rng.uniform(0, 10, 12)) for _ in range(24)]
    values = [np.sin(t) + i % 2 for i, t in enumerate(times)]
    ids = [f"<star {i}>" for i in range(24)]
    dataset = SeriesDataset.from_arrays(times, values, ids=ids)
    labels = np.array(["flat & calm", "steep"])[np.arange(24) % 2]
    config = FitConfig(pretrain_epochs=1, finetune_epochs=1, min_steps=0)
    return run_fit(dataset, labels, config, tmp_path_factory.mktemp("run") / "out")


def test_the_page_stands_alone_and_escapes_what_it_shows(outcome, tmp_path):
    page = write_explorer(outcome, tmp_path / "explore.html", title="<b>mine</b>").read_text(encoding="utf-8")
    assert "&lt;b&gt;mine" in page and "<b>mine" not in page and "<star" not in page
    assert not re.search(r"<(?:script|img|link)[^>]+(?:src|href)=[\"']http", page)
    assert "default-src 'none'" in page and len(page) < 3_000_000


def test_the_name_of_the_id_column_is_text_also_in_the_table_of_the_page(outcome, tmp_path):
    """Bokeh's table writes the titles of its columns as HTML."""
    hostile = dataclasses.replace(outcome, dataset=dataclasses.replace(outcome.dataset, id_name="<img src=x>"))
    page = write_explorer(hostile, tmp_path / "explore.html", title="t").read_text(encoding="utf-8")
    assert (
        '"title":"&amp;lt;img src=x&amp;gt;"' in page and '"title":"&lt;img' not in page and '"title":"<img' not in page
    )


def test_times_keep_their_digits_and_dates_are_dates(tmp_path):
    rng = np.random.default_rng(0)
    julian = [2_459_000.5 + np.sort(rng.uniform(0, 0.8, 12)) for _ in range(24)]
    values = [np.sin(9 * t) for t in julian]
    config = FitConfig(pretrain_epochs=1, min_steps=0)
    run = run_fit(SeriesDataset.from_arrays(julian, values), None, config, tmp_path / "julian")
    assert all(len(set(times)) == 12 for times in _curves(run)["time"])
    frame = pd.DataFrame({"id": np.repeat(np.arange(24), 12), "value": np.concatenate(values)})
    frame["time"] = pd.Timestamp("2024-03-01") + pd.to_timedelta(np.concatenate(julian) - 2_459_000, unit="D")
    run = run_fit(SeriesDataset.from_frame(frame), None, config, tmp_path / "dates")
    page = write_explorer(run, tmp_path / "explore.html", title="dates").read_text(encoding="utf-8")
    assert "DatetimeAxis" in page


def test_magnitudes_are_drawn_bright_side_up(outcome, tmp_path):
    flipped = [
        '"flipped":true' in write_explorer(outcome, tmp_path / "explore.html", title="mine", invert=invert).read_text()
        for invert in ((), ("value",))
    ]
    assert flipped == [False, True]


def test_a_resumed_run_writes_the_same_page(outcome, tmp_path):
    code = (
        "import pickle, sys; from rotarymae.report import write_explorer; "
        "write_explorer(pickle.load(open(sys.argv[1], 'rb')), sys.argv[2], title='mine')"
    )
    (tmp_path / "outcome").write_bytes(pickle.dumps(outcome))
    for name in ("one", "two"):
        subprocess.run([sys.executable, "-W", "ignore", "-c", code, tmp_path / "outcome", tmp_path / name], check=True)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_it_needs_three_series(outcome, tmp_path):
    with pytest.raises(Exception, match="three series"):
        few = type(outcome)(outcome.dataset.select([0, 1]), outcome.config, outcome.fit)
        few.embeddings = outcome.embeddings[:2]
        write_explorer(few, tmp_path / "explore.html", title="few")


def test_without_bokeh_it_says_what_to_install(outcome, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "bokeh", None)
    with pytest.raises(MissingExtra, match=r"rotarymae\[explore\]"):
        write_explorer(outcome, tmp_path / "explore.html", title="t")


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.parametrize("width", [1280, 400])
def test_a_click_on_the_map_shows_the_curve(outcome, tmp_path, width):
    page = write_explorer(outcome, tmp_path / "explore.html", title="mine")
    values, errors = drive(page, tmp_path / "profile", width, [POINT, lambda point: point, TITLE])
    title, points, wide = values[-1]
    assert title.startswith("<star ") and points == 12
    assert wide <= width and not errors


def test_a_series_unlike_the_others_surprises(outcome):
    directory, dataset = outcome.pipeline, outcome.dataset
    usual = anomaly_score(directory, dataset)
    odd = SeriesDataset.from_arrays([dataset[0].times, [1.0]], [100.0 * (-1.0) ** np.arange(12), [0.0]])
    found = anomaly_score(directory, odd)
    assert found[0] > np.nanmax(usual) + 1 and np.isnan(found[1])


def test_the_surprise_of_a_series_depends_on_nothing_else(outcome):
    directory, dataset, steps = outcome.pipeline, outcome.dataset, []
    usual = anomaly_score(directory, dataset, lambda *step: steps.append(step))
    assert np.allclose(anomaly_score(directory, dataset.select([7, 3])), usual[[7, 3]], atol=1e-5)
    assert steps[-1][0] == steps[-1][1] and steps == sorted(steps)


def test_every_observation_can_anomaly_score(outcome):
    """One value in twelve is off, wherever it stands; a random quarter would miss most of them."""
    directory, dataset = outcome.pipeline, outcome.dataset
    one = dataset[0]
    values = [one.values[:, 0] + 30 * (np.arange(12) == i) for i in range(12)]
    odd = SeriesDataset.from_arrays([one.times] * 12, values)
    assert anomaly_score(directory, odd).min() > anomaly_score(directory, dataset)[0] + 1
