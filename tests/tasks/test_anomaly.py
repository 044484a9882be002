"""Scores of observations and stretches: what is odd scores high, whatever its kind."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats
from sklearn.metrics import roc_auc_score

import rotarymae
from _runs import FIT
from rotarymae.anomaly import RUN, hidden_losses, odd_observations
from rotarymae.cli.oddest import draw_oddest
from rotarymae.interpolation import interpolate
from rotarymae.likelihoods import LIKELIHOODS
from rotarymae.queries import as_queries
from rotarymae.series import SeriesDataset, hide
from rotarymae.train import pretrain

FROZEN, DRIFT, JUMP = slice(200, 230), slice(500, 560), slice(800, 840)


@pytest.fixture(scope="module")
def any_series():
    return rotarymae.load("any-series")


@pytest.fixture(scope="module")
def scores(any_series):
    """A wave with noise, of which a stretch is frozen, one drifts and one has jumped; its stretches' scores."""
    draw, times = np.random.default_rng(0), np.arange(1200.0)
    values = np.sin(times / 25) + 0.1 * draw.normal(size=1200)
    values[FROZEN] = values[200]
    values[DRIFT] += np.linspace(0, 2.5, 60)
    values[JUMP] += 2.0
    return any_series.stretch_scores([(times, values)])[:, 0]


@pytest.mark.parametrize(("stretch", "least"), [(FROZEN, 0.85), (DRIFT, 0.75), (JUMP, 0.95)])
def test_a_planted_stretch_scores_higher_than_the_rest(scores, stretch, least):
    planted, rest = np.zeros(1200, bool), np.ones(1200, bool)
    planted[stretch] = True
    for other in (FROZEN, DRIFT, JUMP):
        rest[other] = False
    kept = planted | rest
    assert roc_auc_score(planted[kept], scores[kept]) > least


def test_short_channels_have_no_stretch_score_and_every_series_of_two_has_an_observations(any_series):
    times = [np.arange(float(RUN - 1)), np.arange(float(RUN)), np.zeros(1)]
    data = SeriesDataset.from_arrays(times, [np.sin(part) for part in times])
    single, stretch = odd_observations(any_series, data)
    known = np.split(~np.isnan(stretch[:, 0]), data.offsets[1:-1])
    assert [part.all() for part in known] == [False, True, False] and not known[0].any()
    assert [not np.isnan(part).any() for part in np.split(single[:, 0], data.offsets[1:-1])] == [True, True, False]


def test_each_column_of_values_has_a_score_even_where_no_series_has_two_observations(any_series):
    data = SeriesDataset.from_arrays([np.zeros(1)] * 3, [np.ones((1, 2))] * 3)
    assert any_series.observation_scores(data).shape == (3, 2)


@pytest.mark.parametrize("likelihood", ["gaussian", "student_t", "point"])
def test_a_limit_is_as_odd_as_a_value_there_or_as_a_usual_one(likelihood):
    draw = np.random.default_rng(0)
    data = SeriesDataset.from_arrays([np.arange(16.0)] * 24, list(draw.normal(size=(24, 16)))).with_limits(True)
    pipeline = pretrain(data, replace(FIT, likelihood=likelihood)).pipeline
    visible, hidden, _ = hide(data, 0.25)
    answer = interpolate(pipeline, visible, as_queries(hidden, pipeline.require_series()))

    def losses(value, side):
        part = replace(hidden, values=np.full(hidden.values.shape, value), sides=np.full(hidden.values.shape, side))
        return hidden_losses(pipeline, part, answer)

    usual = losses(9.0, -1)
    assert np.array_equal(losses(-9.0, -1), losses(-9.0, 0)) and np.array_equal(losses(9.0, 1), losses(9.0, 0))
    assert np.allclose(usual, losses(-9.0, 1), atol=1e-5) and (losses(-9.0, -1) > usual + 3).all()
    if likelihood == "point":
        assert not usual.any()
    else:  # the mean loss of values that are as predicted
        kind, parameters = LIKELIHOODS[likelihood], answer.parameters.double()
        entropy = (
            stats.t.entropy(kind.freedom(parameters).numpy()) if likelihood == "student_t" else stats.norm.entropy()
        )
        assert np.allclose(usual, entropy + parameters[..., 1].numpy() / 2, atol=0.02)


def test_progress_only_grows_and_ends_at_the_end(any_series):
    steps: list[float] = []
    data = SeriesDataset.from_arrays([np.arange(40.0)] * 3, [np.sin(np.arange(40.0))] * 3)
    odd_observations(any_series, data, lambda done, total: steps.append(done / total))
    assert (np.diff(steps) >= 0).all() and steps[-1] == 1.0


def test_the_command_draws_the_oddest_next_to_its_file(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{name},{t},{np.sin(t / 5) + 9 * (t == 30)}" for name in "ab" for t in range(60)]
    Path("t.csv").write_text("id,time,value\n" + "\n".join(rows) + "\n")
    from rotarymae.cli.main import main

    main(["anomalies", "t.csv", "--out", "scores.csv", "--quiet"])
    assert Path("scores.csv").read_text().startswith('"id","time","value","anomaly_score","stretch_score"\n')
    assert Path("scores.png").read_bytes().startswith(b"\x89PNG")
    for out in ("scores.parquet", "."):  # a picture is there, and a folder that has no name
        with pytest.raises(SystemExit):
            main(["anomalies", "t.csv", "--out", out, "--quiet"])
    assert not Path("scores.parquet").exists()


def test_ids_and_channels_of_a_file_are_drawn_as_they_are_written(tmp_path, monkeypatch):
    """001 and 1 became one series, and the channel NA a missing one, which could not be drawn."""
    drawn = []
    monkeypatch.setattr("rotarymae.plots.excerpts", lambda parts, value: drawn.extend(parts) or Figure())
    scores = {("001", "NA"): 5, ("001", "2"): 4, ("1", "NA"): 3, ("1", "2"): 2}
    rows = [f'"{id}",{t},"{band}",0,{score},' for (id, band), score in scores.items() for t in (0, 1)]
    (tmp_path / "s.csv").write_text("id,time,channel,value,anomaly_score,stretch_score\n" + "\n".join(rows) + "\n")
    draw_oddest(tmp_path / "s.csv", tmp_path / "s.png")
    assert [part.name for part in drawn] == ["001, NA", "001, 2", "1, NA"] and (tmp_path / "s.png").exists()
