"""What a query is told of its neighbours: by hand, whatever else is asked, and the line before any training."""

import dataclasses

import numpy as np
import pytest
import torch

from _runs import FIT, waves
from conftest import refuses
from rotarymae import RoMAEEmbedder, RoMAEInterpolator, SeriesDataset
from rotarymae.config import RoMAEConfig
from rotarymae.interpolation import interpolate
from rotarymae.masking import Masking
from rotarymae.model import MaskedAutoencoder
from rotarymae.neighbours import NeighbourHead, neighbours, observe
from rotarymae.partners.baselines import LINE, predict_simply
from rotarymae.pipeline import Pipeline
from rotarymae.preprocess import DatasetExamples, ObservationPreprocessor
from rotarymae.queries import as_queries
from rotarymae.series import hide
from rotarymae.tokens import Tokens
from rotarymae.train import interpolation_options, pretrain
from rotarymae.training import Pretraining

SMALL = RoMAEConfig(embed_dim=16, num_heads=2, depth=1, decoder_embed_dim=16, decoder_num_heads=2)


def test_by_hand():
    """Two features at times 0, 4, 8, 12, out of order; the second is observed at 4 and 12 alone."""
    values = [[7.0, 3.0, 1, 1], [1.0, 0.0, 1, 0], [5.0, 0.0, 1, 0], [2.0, 1.0, 1, 1]]
    inputs = torch.tensor(values)[None]
    observed = inputs[..., 2:] > 0
    visible = Tokens(inputs, torch.tensor([12.0, 0.0, 8.0, 4.0])[None, :, None], observed=observed)
    found = neighbours(observe(visible, 2), torch.tensor([[[6.0], [13.0], [2.0]]]), 2)
    assert torch.allclose(found[..., 0], torch.tensor([[[3.5, 1.5], [7.0, 3.0], [1.5, 1.0]]]))
    line, before, after, near, near2, change, change2, mean, _ = found[0, 0].T.tolist()
    assert (before, after) == ([2.0, 1.0], [5.0, 3.0])
    assert np.allclose(near, [1 / 1.5, 1 / 1.5]) and np.allclose(near2, [1 / 1.5, 1 / 2.5])
    assert (change, change2) == ([-1.0, 0.0], [2.0, 0.0])  # the second feature has no further neighbours
    assert line == [3.5, 1.5] and mean == [3.75, 2.0]
    _, before, after, near, near2, *_ = found[0, 1].T.tolist()
    assert after == near2 == [0.0, 0.0] and before == [7.0, 3.0] and np.allclose(near, [0.8, 0.8])


def test_by_hand_with_channels():
    """Channel 1 at times 0, 4, 8 and channel 3 at 2 and 10, out of order; padding tells nothing."""
    rows = [(8.0, 1, 5.0), (2.0, 3, 1.0), (0.0, 1, 1.0), (10.0, 3, 3.0), (4.0, 1, 2.0), (6.0, 1, 99.0)]
    values, positions = torch.tensor([[[x]] for _, _, x in rows]), torch.tensor([[t, float(c)] for t, c, _ in rows])
    visible = Tokens(values.transpose(0, 1), positions[None], torch.arange(6)[None] == 5)
    queries = torch.tensor([[[6.0, 1.0], [6.0, 3.0], [0.0, 3.0], [9.0, 1.0], [5.0, 2.0]]])
    found = neighbours(observe(visible, 1), queries, 1)
    assert torch.allclose(found[0, :, 0, 0], torch.tensor([3.5, 2.0, 1.0, 5.0, 0.0]))
    line, before, after, near, near2, change, change2, mean, count = found[0, 0, 0].tolist()
    assert (line, before, after, change, change2) == (3.5, 2.0, 5.0, -1.0, 0.0)
    assert np.allclose([near, near2, mean, count], [1 / 1.5, 1 / 1.5, 8 / 3, np.log(4) / 3])
    _, before, after, near, near2, _, change2, mean, _ = found[0, 2, 0].tolist()
    assert (before, near) == (0.0, 0.0) and (after, change2, mean) == (1.0, 2.0, 2.0) and np.isclose(near2, 1 / 1.5)
    assert (found[0, 4] == 0).all()  # nobody has seen channel 2


@pytest.mark.parametrize("axes", [1, 2])
def test_a_feature_that_was_not_observed_hides_no_other_of_its_token(axes):
    values = torch.tensor([[[1.0, 10.0], [2.0, 99.0], [5.0, 30.0]]])
    positions = torch.tensor([[[0.0, 1.0], [4.0, 1.0], [8.0, 1.0]]])[..., :axes]
    visible = Tokens(values, positions, observed=values != 99)
    found = neighbours(observe(visible, 2), torch.tensor([[[6.0, 1.0]]])[..., :axes], 2)
    assert found[..., 0].tolist() == [[[3.5, 25.0]]]
    mean, count = found[0, 0, :, -2:].T
    assert torch.allclose(mean, torch.tensor([8 / 3, 20.0])) and torch.allclose(count, torch.tensor([4.0, 3]).log() / 3)


@pytest.mark.parametrize("joined", [True, False])
def test_an_untrained_model_draws_the_straight_line(joined):
    data = waves()
    config = dataclasses.replace(FIT, join_times=joined, neighbours="on", likelihood="gaussian")
    fitted = ObservationPreprocessor.fit(data, join_times=joined)
    model = MaskedAutoencoder(config.model_config(fitted.axes, fitted.features, fitted.input_features))
    visible, hidden, _ = hide(data, 0.5, by="time")
    found = interpolate(Pipeline(fitted, model), visible, as_queries(hidden))
    wanted = predict_simply([LINE], data, visible, hidden)[LINE]
    assert len(wanted) > 50 and np.allclose(found.mean, wanted, atol=1e-4)


@pytest.mark.parametrize("axes", [1, 2])
def test_an_answer_depends_on_nothing_else(axes):
    model = MaskedAutoencoder(dataclasses.replace(SMALL, axes=axes, features=2, input_features=4, neighbours=True))
    assert isinstance(model.head, NeighbourHead)
    torch.nn.init.normal_(model.head.correction.weight)
    values = torch.randn(3, 9, 6)
    values[..., 2:4] = (torch.rand(3, 9, 2) < 0.5).float()
    channels = torch.tensor([1.0, 2.0])[torch.randint(2, (3, 16, 1))]
    positions = torch.cat([24 * torch.rand(3, 16, 1) - 2, channels], -1)[..., :axes]
    visible = Tokens(values, positions[:, :9], torch.arange(9) >= torch.tensor([[9], [4], [6]]))
    queries = positions[:, 9:]

    def ask(visible, at):
        return model.decode(model.context(visible), at)[..., 0]

    whole = ask(visible, queries)
    parts = [ask(visible, queries[:, [i]]) for i in range(7)]
    assert whole.std() > 0.1 and (torch.cat(parts, 1) - whole).abs().max() < 1e-5
    order = torch.stack([torch.randperm(9) for _ in range(3)])
    assert (ask(visible.select(order), queries) - whole).abs().max() < 1e-5


def test_every_parameter_learns():
    """After some steps: the first moves nothing but what starts at zero."""
    config = dataclasses.replace(FIT, join_times=True, neighbours="on", likelihood="gaussian", masking="ratio")
    trained = pretrain(waves(), config).pipeline
    assert isinstance(trained.model, MaskedAutoencoder)
    batch = DatasetExamples(waves(), trained.preprocessor, masking=config.strategy("observations")).batch(
        np.arange(16), None
    )
    Pretraining(trained.model.train())(batch).sum.backward()
    for name, parameter in trained.model.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().max() > 0, name


def test_positions_are_times_or_times_and_channels():
    with refuses("neighbours", "3 position axes"):
        RoMAEConfig(axes=3, embed_dim=24, num_heads=2, decoder_embed_dim=24, decoder_num_heads=2, neighbours=True)


def test_who_reads_neighbours_without_being_told():
    """Models without labels to learn; not classifiers, embedders, or what the configuration says."""
    data = waves()
    sizes = {"pretrain_epochs": 1, "min_steps": 0, "embed_dim": 24, "num_heads": 2, "depth": 1, "decoder_embed_dim": 24}
    assert RoMAEInterpolator(**sizes).fit(data).pipeline_.model.config.neighbours
    assert not RoMAEInterpolator(**sizes, neighbours="off").fit(data).pipeline_.model.config.neighbours
    assert not RoMAEEmbedder(**sizes).fit(data).pipeline_.model.config.neighbours
    assert interpolation_options(FIT, data).neighbours == "on"
    errors = dataclasses.replace(FIT, errors=("value_err",))
    assert interpolation_options(errors, data).neighbours == "on"
    assert interpolation_options(errors, SeriesDataset.from_arrays([[0.0, 1.0]], [[0.0, 1.0]])).neighbours == "on"
    where = SeriesDataset.from_arrays([[0.0, 1.0]], [[0.0, 1.0]], positions=[[3.0, 4.0]])
    assert interpolation_options(FIT, where).neighbours == "off"  # on several axes none is nearest
    with refuses("position_0", code="neighbours-of-positions"):
        pretrain(where, dataclasses.replace(FIT, neighbours="on"))


def test_every_observation_of_other_inputs_is_read():
    """Two further inputs for one value are no joined times, whatever their sign."""
    values = torch.tensor([[[5.0, -1.0, 0.3], [7.0, -2.0, -0.1]]])
    visible = Tokens(values, torch.tensor([[[0.0], [2.0]]]))
    model = MaskedAutoencoder(dataclasses.replace(SMALL, input_features=2, neighbours=True)).eval()
    assert model.reconstruct(visible, torch.tensor([[[1.0]]])).item() == pytest.approx(6.0, abs=1e-5)


@pytest.mark.usefixtures("whole")
def test_a_dense_log_is_learnt_in_a_few_steps():
    """From the line on: after 39 steps as good as the line, with bands that hold about what they should."""
    draw = np.random.default_rng(0)
    times = np.cumsum(draw.exponential(size=1500))
    data = SeriesDataset.from_arrays([times], [np.sin(times / 30) + 0.05 * draw.standard_normal(1500)])
    sizes = {"size": "light", "depth": 1, "decoder_depth": 1, "base_lr": 5e-3}
    model = RoMAEInterpolator(**sizes, pretrain_epochs=12, min_steps=0, batch_size=4, window=128).fit(data)
    visible, hidden, _ = hide(data, 0.25, seed=0)
    found = interpolate(model.pipeline_, visible, as_queries(hidden))
    line = predict_simply([LINE], data, visible, hidden)[LINE]
    error, of_line = (np.sqrt(np.mean((x - hidden.values) ** 2)) for x in (found.mean, line))
    assert error < 1.1 * of_line
    assert found.std is not None
    assert 0.5 < np.mean(np.abs(found.mean - hidden.values) < found.std) < 0.9


def test_single_observations_of_joined_times_are_hidden():
    """Half of all observations, not of all times; and rows, channels as their names say."""
    draw = np.random.default_rng(0)
    times = [np.repeat(np.arange(20.0), 3) for _ in range(8)]
    channels = [np.tile(["a", "b", "c"], 20) for _ in range(8)]
    data = SeriesDataset.from_arrays(times, [draw.standard_normal(60) for _ in range(8)], channels)
    fitted = ObservationPreprocessor.fit(data, join_times=True)
    whole = DatasetExamples(data, fitted).tokens(np.arange(8), None).values
    for kind, ratio in (("ratio", 0.5), ("rows", 0.5), ("channels", 0.3)):
        batch = DatasetExamples(data, fitted, masking=Masking(kind, ratio=ratio)).batch(np.arange(8), None)
        assert batch.masked is not None
        seen, masked = batch.inputs.values[..., 3:6] > 0, batch.masked.observed_values
        assert (seen.sum((1, 2)) + masked.sum((1, 2)) == 60).all()
        for row in range(8):
            assert torch.isin(batch.masked.values[row][masked[row]], whole[row]).all()
        if kind == "ratio":
            assert (masked.sum((1, 2)) == 30).all()
            assert ((masked.sum(2) > 0) & (masked.sum(2) < 3)).sum() > 50
        elif kind == "rows":
            assert (masked.sum(2)[batch.masked.real] == 3).all() and (batch.masked.real.sum(1) == 10).all()
        else:
            assert (masked.any(1).sum(1) == 1).all() and (masked.sum((1, 2)) == 20).all()


@pytest.mark.parametrize("values", [torch.float32, torch.float64])
def test_positions_of_higher_precision_than_the_weights(values):
    model = MaskedAutoencoder(dataclasses.replace(SMALL, neighbours=True)).to(values)
    draw = torch.Generator().manual_seed(0)
    positions = torch.rand(2, 5, 1, generator=draw, dtype=torch.float64)
    visible = Tokens(torch.randn(2, 5, 1, generator=draw, dtype=values), positions)
    hidden = Tokens(visible.values, positions + 0.01)
    assert model.predict(visible, hidden).predicted.dtype == values
