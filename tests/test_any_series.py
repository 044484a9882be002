"""Answers without training: the bank of processes, the model that corrects it, and what an answer depends on."""

import numpy as np
import pytest
import torch

from conftest import refuses
from rotarymae import processes
from rotarymae.any_series import TOKEN_NUMBERS, AnySeries, ChannelGroups, standardise
from rotarymae.config import RoMAEConfig
from rotarymae.ensemble import load
from rotarymae.errors import InputError
from rotarymae.pipeline import AnySeriesPipeline
from rotarymae.queries import Queries
from rotarymae.series import SeriesDataset
from rotarymae.tokens import Tokens
from rotarymae.untrained import beside_line, embed_any, interpolate_any


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    sizes = {"embed_dim": 16, "num_heads": 2, "decoder_embed_dim": 16, "decoder_num_heads": 2, "decoder_depth": 1}
    config = RoMAEConfig(axes=2, features=1, input_features=TOKEN_NUMBERS - 1, depth=1, likelihood="student_t", **sizes)
    made = AnySeries(config).eval()
    with torch.no_grad():  # as if it were trained: an untrained one says nothing of tokens
        made.head.correction.weight.normal_(std=0.05)
    return made


def _table(count=5, seed=0):
    draw, times, values = np.random.default_rng(seed), [], []
    for i in range(count):
        n = int(draw.integers(12, 40))
        times.append(np.sort(draw.uniform(0, 30, n)))
        values.append(np.sin(0.5 * times[-1] + i) + 0.05 * draw.normal(size=n))
    return SeriesDataset.from_arrays(times, values)


def _changed(table, time=1.0, origin=0.0, factor=1.0, shift=0.0):
    return SeriesDataset.from_arrays(
        [one.times * time + origin for one in table], [one.values[:, 0] * factor + shift for one in table]
    )


def _asked(dataset, times):
    return Queries.cross(dataset, [np.asarray(times, float)] * len(dataset))


def test_one_kernel_answers_as_the_textbook_does():
    t = torch.tensor([[0.0, 1.0, 2.5, 4.0]], dtype=torch.float64)
    y = torch.tensor([[0.3, -0.2, 0.8, 1.0]], dtype=torch.float64)
    real, noise = torch.ones(1, 4, dtype=torch.bool), torch.tensor([[1.0, 2.0, 0.5, 1.0]], dtype=torch.float64)
    fitted, _ = processes.fit_kernels(t, y, real, noise)
    query = torch.tensor([[1.7]], dtype=torch.float64)
    k = 0
    shape = int(fitted.index[0, k])
    periods = fitted.periods
    u, v = t[0] / 2 - 1, float(query / 2 - 1)  # shares of the span, from -1 to 1
    trend = processes.MEAN_VARIANCE + processes.SLOPE * u[:, None] * u
    trend_at_query = processes.MEAN_VARIANCE + processes.SLOPE * u * v
    within = processes.shapes((t[:, :, None] - t[:, None, :]).abs(), periods)[0, shape] + trend
    cross = processes.shapes((t[:, :, None] - query[:, None, :]).abs(), periods)[0, shape, :, 0] + trend_at_query
    matrix = within + torch.diag(fitted.level[0, k] * noise[0] + processes.JITTER)
    one = fitted._replace(weight=torch.eye(processes.KEPT_KERNELS, dtype=torch.float64)[:1])
    answer = processes.answer(one, query)
    assert answer.mean.item() == pytest.approx((cross @ torch.linalg.solve(matrix, y[0])).item(), rel=1e-9)
    prior = 1 + processes.MEAN_VARIANCE + processes.SLOPE * v * v
    left = prior - cross @ torch.linalg.solve(matrix, cross) + fitted.level[0, k]
    assert (2 * answer.log_std).exp().item() == pytest.approx((left * fitted.amplitude[0, k]).item(), rel=1e-9)
    rest = [0, 1, 3]
    inner = torch.linalg.solve(matrix[rest][:, rest], y[0, rest])
    out = processes.leave_one_out(one, y)
    assert out.mean[0, 2].item() == pytest.approx((matrix[2, rest] @ inner).item(), rel=1e-9)


def test_evidence_knows_smooth_from_rough_and_finds_a_period():
    draw = np.random.default_rng(0)
    t = torch.from_numpy(np.sort(draw.uniform(0, 60, 60)))[None]
    y = torch.sin(2 * np.pi * t / 7.3) + 0.05 * torch.from_numpy(draw.normal(size=60))
    fitted, hyperparameters = processes.fit_kernels(t, y, torch.ones_like(t, dtype=torch.bool), torch.ones_like(t))
    assert (fitted.periods[0] - 7.3).abs().min() < 0.15
    assert hyperparameters[0, 4] > 0.95  # periodic
    rough = torch.from_numpy(draw.normal(size=60).cumsum())[None]
    _, hyperparameters = processes.fit_kernels(
        t, (rough - rough.mean()) / rough.std(), torch.ones_like(t, dtype=torch.bool), torch.ones_like(t)
    )
    assert hyperparameters[0, 4] < 0.5


def test_groups_scatter_what_they_gather():
    channels = torch.tensor([[0, 1, 0, 1], [1, 1, 0, 0]])
    times = torch.tensor([[3.0, 1.0, 2.0, 0.0], [5.0, 4.0, 1.0, 0.0]], dtype=torch.float64)
    real = torch.tensor([[True] * 4, [True, True, True, False]])
    groups = ChannelGroups.of(channels, times, real, 2)
    gathered = groups.gather(times)
    assert ((gathered.diff(dim=1) > 0) | ~groups.real[:, 1:]).all()
    assert torch.equal(groups.scatter(gathered, (2, 4)), times * real)


def test_scale_is_robust():
    times = torch.arange(20, dtype=torch.float64)[None] * 3
    values = torch.sin(times)
    channels, visible = torch.zeros(1, 20, dtype=torch.int64), torch.ones(1, 20, dtype=torch.bool)
    _, _, _, scale = standardise(times, channels, values, visible)
    wild = values.clone()
    wild[0, 4] = 1e7
    _, _, _, other = standardise(times, channels, wild, visible)
    assert scale.unit.item() == 3
    assert other.width.item() < 2 * scale.width.item()
    assert abs(other.centre.item() - scale.centre.item()) < 0.2


def test_answers_follow_units_of_time_and_value(model):
    table = _table()
    query = _asked(table, [3.0, 11.1, 20.0])
    first = interpolate_any(model, table, query)
    moved = _changed(table, 86400, 5e9, 40, 1e6)
    second = interpolate_any(model, moved, Queries(query.times * 86400 + 5e9, None, query.offsets))
    np.testing.assert_allclose((second.mean - 1e6) / 40, first.mean, atol=2e-4)
    np.testing.assert_allclose(second.std / 40, first.std, rtol=2e-4)
    np.testing.assert_allclose((second.bands[0.95][0] - 1e6) / 40, first.bands[0.95][0], atol=5e-4)


def test_an_answer_depends_on_no_other_query_and_no_other_series(model):
    table = _table()
    whole = interpolate_any(model, table, _asked(table, np.linspace(0, 30, 40)))
    one = interpolate_any(model, table.select([2]), _asked(table.select([2]), [np.linspace(0, 30, 40)[7]]))
    np.testing.assert_allclose(one.mean[0], whole.mean[2 * 40 + 7], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(one.std[0], whole.std[2 * 40 + 7], rtol=1e-4)


def test_another_channel_that_is_alike_helps(model):
    draw, t = np.random.default_rng(1), np.arange(60.0)
    walks = [draw.normal(size=60).cumsum() for _ in range(8)]
    both = SeriesDataset.from_arrays(
        [np.repeat(t, 2)] * 8,
        [np.stack([-walk, 2 * walk], 1).ravel() + 0.1 * draw.normal(size=120) for walk in walks],
        [np.tile([0, 1], 60)] * 8,
    )
    hidden = (np.asarray(both.channels) == 0) & (both.times >= 20) & (both.times < 40)
    visible, gap = both.mask_observations(~hidden), both.mask_observations(hidden)
    alone = visible.mask_observations(np.asarray(visible.channels) == 0)
    query = Queries(np.asarray(gap.times), gap.channels, np.asarray(gap.offsets))
    errors = [
        np.sqrt(np.square(interpolate_any(model, seen, query).mean - gap.values).mean()) for seen in (visible, alone)
    ]
    assert errors[0] < 0.4 * errors[1], errors


def test_long_series_go_in_windows(model):
    t = np.arange(700.0)
    table = SeriesDataset.from_arrays([t], [np.sin(0.3 * t)])
    asked = Queries(np.arange(0.5, 699), None, np.array([0, 699]))
    answer = interpolate_any(model, table, asked)
    assert np.abs(answer.mean[:, 0] - np.sin(0.3 * asked.times)).max() < 0.1


@pytest.mark.parametrize("channels", [None, [2], [-1]])
def test_queries_that_do_not_fit_the_channels_are_refused(model, channels):
    table = SeriesDataset.from_arrays([np.arange(12.0)], [np.arange(12.0)], [np.arange(12) % 2])
    wrong = Queries(np.ones(1), None if channels is None else np.array(channels), np.array([0, 1]))
    with refuses("channel"):
        interpolate_any(model, table, wrong)


def test_progress_counts_every_series_once(model):
    table = _table(count=200)
    some = Queries(np.ones(1), None, np.append(np.zeros(200, int), 1))
    for answer, asked in ((interpolate_any, [some]), (embed_any, [])):
        steps = []
        answer(model, table, *asked, on_step=lambda *step, steps=steps: steps.append(step))
        assert len(steps) > 1 and steps == sorted(steps) and steps[-1] == (200, 200)


def test_a_channel_that_a_series_lacks_gets_the_tables(model):
    t = np.arange(15.0)
    both, one = (np.repeat(t, 2), np.stack([t, 500 + t], 1).ravel(), np.tile([0, 1], 15)), (t, t, np.zeros(15, int))
    table = SeriesDataset.from_arrays(*zip(both, one, strict=True))
    answer = interpolate_any(model, table, Queries(np.array([3.0, 3.0]), np.array([1, 1]), np.array([0, 1, 2])))
    assert abs(answer.mean[1, 0] - 507) < 10


def test_a_planted_spike_is_the_oddest_observation(model):
    table = _table(count=10)
    spiked = [one.values[:, 0] + 4.0 * (np.arange(len(one.times)) == 5) for one in table]
    odd = SeriesDataset.from_arrays([one.times for one in table], spiked)
    scores = AnySeriesPipeline(None, model).observation_scores(odd)[:, 0]
    rank = [np.argmax(scores[a:b]) for a, b in zip(odd.offsets[:-1], odd.offsets[1:], strict=True)]
    assert np.mean(np.array(rank) == 5) >= 0.8


def test_embeddings_are_finite_and_depend_on_the_series(model):
    vectors = embed_any(model, _table())
    assert vectors.shape == (5, 16) and np.isfinite(vectors).all()
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-4


def test_scores_do_not_depend_on_the_unit_of_a_series(model):
    pipeline, table = AnySeriesPipeline(None, model), _table()
    usual = pipeline.anomaly_score(table)
    assert np.allclose(pipeline.anomaly_score(_changed(table, time=3.0, factor=1e4, shift=-50.0)), usual, atol=1e-4)
    wild = SeriesDataset.from_arrays(
        [one.times for one in table],
        [one.values[:, 0] + 9.0 * (i == 2) * (-1.0) ** np.arange(len(one.times)) for i, one in enumerate(table)],
    )
    assert np.flatnonzero(np.abs(pipeline.anomaly_score(wild) - usual) > 1e-4).tolist() == [2]


def test_it_is_saved_and_loaded_as_every_model_is(model, tmp_path):
    AnySeriesPipeline(None, model).save(tmp_path / "model")
    loaded, table = load(tmp_path / "model"), _table()
    asked = [0.5, 3.0, 40.0]
    mean, std = loaded.interpolate(table, asked, return_std=True)
    again, spread = AnySeriesPipeline(None, model).interpolate(table, asked, return_std=True)
    assert mean.shape == (5, 3, 1) and (mean == again).all() and (std == spread).all() and (std > 0).all()
    with pytest.raises(InputError) as refused:
        loaded.importance(table)
    assert refused.value.code == "untrained"


def test_a_value_with_a_large_standard_error_counts_for_little(model):
    times = np.arange(20.0)
    values = np.sin(0.4 * times)
    values[7] += 2.0

    def found(error):
        errors = np.where(times == 7, error, 0.1) + 0.01 * times
        table = SeriesDataset.from_arrays([times], [np.stack([values, errors], 1)], value_names=["flux", "error"])
        pipeline = AnySeriesPipeline(None, model, columns={"errors": ("error",)})
        return pipeline.interpolate(table, [7.0])[0, 0, 0]

    assert found(1.0) < found(0.1) - 0.3


def test_a_negative_error_is_refused(model):
    table = SeriesDataset.from_arrays(
        [np.arange(9.0)], [np.stack([np.arange(9.0), -np.ones(9)], 1)], value_names=["y", "e"]
    )
    for answer, asked in ((interpolate_any, [_asked(table, [1.5])]), (embed_any, [])):
        with refuses("the error 'e'", "not negative"):
            answer(model, table, *asked, ("e",))


def test_a_query_beyond_32_bits_is_answered(model):
    answer = interpolate_any(model, _table(), _asked(_table(), [1e300, -1e300]))
    assert np.isfinite(answer.mean).all() and np.isfinite(answer.std).all()


def test_a_tenth_is_hidden_and_compared_with_the_line(model):
    compared = beside_line(model, _table(count=30))
    assert compared is not None and compared.series == compared.compared == 30
    assert compared.error < compared.line < 0.5  # a wave, seen at some twenty times
    assert beside_line(model, SeriesDataset.from_arrays([[0.0, 1.0]], [[0.0, 1.0]])) is None


def test_bands_hold_small_noise_on_a_slow_wave():
    draw, t = np.random.default_rng(0), np.arange(160.0)
    waves = [np.sin(t / 23 + i) + 0.02 * draw.normal(size=160) for i in range(10)]
    hidden = t % 8 == 3
    seen = SeriesDataset.from_arrays([t[~hidden]] * 10, [wave[~hidden] for wave in waves])
    answer = interpolate_any(load("any-series").model, seen, _asked(seen, t[hidden]))
    truth = np.concatenate([wave[hidden] for wave in waves])
    held = {share: np.mean((low[:, 0] <= truth) & (truth <= high[:, 0])) for share, (low, high) in answer.bands.items()}
    assert 0.5 < held[0.68] < 0.8 and held[0.95] > 0.93


def test_other_sizes_are_refused():
    with pytest.raises(InputError):
        AnySeries(RoMAEConfig(axes=1))


@pytest.mark.parametrize(("values", "axes"), [(1, 2), (2, 1), (3, 2)])
def test_tokens_of_other_sizes_are_refused(model, values, axes):
    with refuses(f"{values} values and {axes} axes", "(value, noise)"):
        model.context(Tokens(torch.ones(1, 4, values), torch.ones(1, 4, axes)))


def test_a_constant_series_is_answered_by_its_constant_in_any_unit(model):
    for size in (1e-9, 1.0, 1e9):
        table = SeriesDataset.from_arrays([np.arange(12.0)], [np.full(12, 3.0 * size)])
        answer = interpolate_any(model, table, _asked(table, [4.5, 6.0]))
        assert np.allclose(answer.mean, 3.0 * size, rtol=0.05) and (answer.std < size).all()
