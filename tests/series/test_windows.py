"""Windows of long series: they hold all that was observed, and each time is answered by one of them."""

import itertools
from dataclasses import asdict, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from _runs import FIT
from conftest import refuses
from rotarymae.errors import InputWarning
from rotarymae.interpolation import interpolate
from rotarymae.prediction import embed
from rotarymae.preprocess import ObservationPreprocessor
from rotarymae.queries import Queries
from rotarymae.series import SeriesDataset, Windows
from rotarymae.system import from_fields
from rotarymae.train import finetune, prepare, pretrain
from rotarymae.training.fit_config import FitConfig


def long(lengths=(5, 40, 12, 100)):
    draw = np.random.default_rng(0)
    times = [np.cumsum(draw.uniform(0.5, 1.5, n)) for n in lengths]
    bands = [np.array(["g", "r"])[draw.integers(0, 2, n)] for n in lengths]
    static = {"host": np.arange(len(lengths))}
    return SeriesDataset.from_arrays(
        times, [np.sin(t) for t in times], bands, [f"s{n}" for n in lengths], static=static
    )


@pytest.mark.parametrize("window, overlap", [(12, 0), (12, 3), (13, 12), (40, 8), (99, 1)])
def test_windows_cover_every_series_and_overlap(window, overlap):
    data = long()
    windows = Windows.cut(data, window, overlap)
    assert windows.dataset.lengths.max() == window and np.array_equal(np.unique(windows.series), np.arange(4))
    for s, whole in enumerate(data):
        own = [one for one, of in zip(windows.dataset, windows.series, strict=True) if of == s]
        assert {one.id for one in own} == {whole.id}
        assert np.array_equal(np.unique(np.concatenate([one.times for one in own])), whole.times)
        if len(whole.times) <= window:
            assert len(own) == 1
            continue
        assert all(len(one.times) == window for one in own)
        for one, other in itertools.pairwise(own):
            assert np.isin(other.times, one.times).sum() >= overlap
        assert len(own) == -(-(len(whole.times) - overlap) // (window - overlap))
    assert np.array_equal(windows.dataset.static["host"], windows.series)
    assert Windows.cut(data, None).dataset is data and Windows.cut(data, 100).dataset is data


def test_a_mean_over_windows_counts_observations():
    windows = Windows.cut(long((5, 20)), 10, 2)  # windows of 5; and of 10, 10 and 10
    answers = np.array([[1.0], [2.0], [3.0], [7.0]])
    assert windows.mean(answers).tolist() == [[1.0], [4.0]]
    windows = Windows(replace(windows.dataset), np.array([0, 0, 1, 1]))
    assert windows.mean(answers).tolist() == [[(5 * 1 + 10 * 2) / 15], [5.0]]


@pytest.mark.parametrize("window, overlap", [(20, 6), (20, 0), (13, 12)])
def test_a_time_is_answered_by_the_window_in_which_it_lies_deepest(window, overlap):
    data = long()
    windows = Windows.cut(data, window, overlap)
    first, last = (
        windows.dataset.times[windows.dataset.offsets[:-1]],
        windows.dataset.times[windows.dataset.offsets[1:] - 1],
    )
    times = np.sort(np.random.default_rng(1).uniform(-5, 120, 60))
    before, after, share = (found.reshape(4, 60) for found in windows.at(np.tile(times, 4), np.full(4, 60)))
    assert np.isin(after - before, (0, 1)).all() and (share >= 0).all() and (share <= 1).all()
    assert (after > before).any() and (share[after == before] == 0).all()
    for s in range(4):
        own = np.flatnonzero(windows.series == s)
        depth = np.minimum(times[:, None] - first[own], last[own] - times[:, None])
        assert np.array_equal(np.where(share[s] > 0.5, after[s], before[s]), own[depth.argmax(1)])


@pytest.mark.parametrize("window, overlap", [(20, 6), (20, 0), (13, 12)])
def test_answers_have_no_step_where_windows_meet(window, overlap):
    """A number that each window answers with, at times an instant apart."""
    windows = Windows.cut(long(), window, overlap)
    times = np.linspace(-5, 120, 100_000)
    before, after, share = windows.at(np.tile(times, 4), np.full(4, len(times)))
    number = np.random.default_rng(2).normal(size=len(windows.series))
    answers = ((1 - share) * number[before] + share * number[after]).reshape(4, -1)
    slowest = 0.1  # days over which an answer passes from one window to the next, at the least
    assert np.abs(np.diff(answers)).max() < np.ptp(number) * (times[1] - times[0]) / slowest
    assert len(np.unique(answers[3])) > len(np.unique(windows.series)) and np.isin(
        number[windows.series == 0], answers[0]
    )


@pytest.fixture(scope="module")
def trained():
    data = long((5, 60, 12, 100, 30, 31, 32, 33, 34, 35, 36))
    config = replace(FIT, window=20, overlap=6)
    labels = np.array(list("ababababaab"))
    pretrained = pretrain(data, config).pipeline
    return data, pretrained, finetune(pretrained, data, labels, config).pipeline


def test_windows_of_very_long_series_are_chosen_and_said():
    data = SeriesDataset.from_arrays([np.arange(9000.0), np.arange(5.0)], [np.sin(np.arange(9000.0)), np.ones(5)])
    with pytest.warns(InputWarning, match=r"9,000 observations: .* windows of 1,024 that share 64 \(window=1024\)"):
        preprocessor = prepare(data, FitConfig())
    assert isinstance(preprocessor, ObservationPreprocessor) and (preprocessor.window, preprocessor.overlap) == (
        1024,
        64,
    )
    with pytest.warns(InputWarning, match=r"window=4096"):
        of_few = prepare(data, FitConfig(batch_size=8))
    assert isinstance(of_few, ObservationPreprocessor) and (of_few.window, of_few.overlap) == (4096, 256)
    given = prepare(data, FitConfig(window=9000))  # somebody has chosen already
    assert isinstance(given, ObservationPreprocessor) and given.window == 9000


def test_answers_are_means_over_windows(trained):
    data, pretrained, finetuned = trained
    preprocessor = pretrained.preprocessor
    assert (preprocessor.window, preprocessor.overlap) == (20, 6)
    windows = Windows.cut(data, 20, 6)
    whole = replace(pretrained, preprocessor=preprocessor.replace(window=None, overlap=0))
    vectors = embed(pretrained, data)
    assert len(vectors) == len(data)
    np.testing.assert_allclose(vectors, windows.mean(embed(whole, windows.dataset)), rtol=1e-5, atol=1e-6)
    with pytest.warns(InputWarning, match="training reached"):  # windows count from their own first observation
        assert not np.allclose(vectors[1], embed(whole, data)[1], atol=1e-3)
    probabilities = finetuned.outputs(data)
    assert probabilities.shape == (11, 2) and np.allclose(probabilities.sum(1), 1)


@pytest.mark.filterwarnings("ignore:.*extrapolations:rotarymae.errors.InputWarning")
def test_values_at_any_times_come_from_one_window_or_two(trained):
    data, pretrained, _ = trained
    times = [np.random.default_rng(s).permutation(np.linspace(-1, 110, 9)) for s in range(len(data))]
    queries = Queries.cross(data, times)
    found = interpolate(pretrained, data, queries)
    windows = Windows.cut(data, 20, 6)
    whole = replace(pretrained, preprocessor=pretrained.preprocessor.replace(window=None, overlap=0))
    before, after, share = windows.at(queries.times, queries.lengths)
    channels = queries.channels
    assert channels is not None
    between = np.flatnonzero(after > before)[[0, 5, -1]]
    for i in (0, 25, 60, 61, 100, *between):

        def alone(window, i=i):
            one = windows.dataset.select([window])
            return interpolate(whole, one, Queries(queries.times[[i]], channels[[i]], np.array([0, 1])))

        for name in ("scaled_mean", "std"):
            first, second = (getattr(alone(window), name)[0] for window in (before[i], after[i]))
            wanted = (1 - share[i]) * first + share[i] * second
            np.testing.assert_allclose(getattr(found, name)[i], wanted, rtol=1e-3, atol=1e-5)
        if before[i] == after[i]:
            np.testing.assert_allclose(
                found.bands[0.95][1][i], alone(before[i]).bands[0.95][1][0], rtol=1e-4, atol=1e-5
            )
            assert found.distance[i] <= alone(before[i]).distance[0]  # to the nearest of the whole series


def test_windows_are_kept_with_the_model_and_refused_where_they_cannot_be(trained):
    preprocessor = trained[1].preprocessor
    assert asdict(from_fields(ObservationPreprocessor, asdict(preprocessor), "preprocessor")) == asdict(preprocessor)
    assert preprocessor.describe()["windows"] == "of 20 observations, 6 shared"
    assert FitConfig(window=4096).shared == 256
    with refuses("overlap is 5", "window=4096"):
        FitConfig(overlap=5)
    with refuses("overlap is 100", "window"):
        FitConfig(window=100, overlap=100)
    with refuses("window is 1"):
        FitConfig(window=1)


def test_windows_of_a_table_larger_than_memory_are_no_copy_in_memory(tmp_path, monkeypatch):
    whole = long()
    frame = {"id": np.repeat(whole.ids, whole.lengths), "time": whole.times, "value": whole.values[:, 0]}
    pq.write_table(pa.table(frame), tmp_path / "t.parquet")
    mapped = SeriesDataset.from_file(tmp_path / "t.parquet", memory=0)
    monkeypatch.setattr("rotarymae.series.mapped.SAMPLE", 10)
    monkeypatch.setattr("rotarymae.series.mapped.MAPPED_CHUNK", 20)
    there, here = (Windows.cut(one, 12, 3) for one in (mapped, SeriesDataset.from_file(tmp_path / "t.parquet")))
    assert isinstance(there.dataset.times, np.memmap) and not isinstance(here.dataset.times, np.memmap)
    assert there.dataset.fingerprint() == here.dataset.fingerprint()


def test_classes_weigh_as_their_windows():
    """Balanced weights are of what batches are drawn from."""
    data = long((100, 99, 5, 4))
    config = replace(FIT, window=20, overlap=0, class_weights="balanced")
    seen = []

    def look(objective, examples, _held, settings):
        seen.append((objective.loss.keywords["class_weights"], np.asarray(examples.targets)))
        return settings

    finetune(pretrain(data, config).pipeline, data, np.array(list("aabb")), config, schedule=look)
    ((weights, targets),) = seen
    assert np.bincount(targets).tolist() == [10, 2]
    assert weights[1] / weights[0] == pytest.approx(5.0)
