"""Further inputs: the encoder reads them, nothing predicts them, and they come back with a saved model."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from conftest import refuses, small
from rotarymae import SeriesDataset
from rotarymae.masking import Masking
from rotarymae.model import MaskedAutoencoder
from rotarymae.preprocess import DatasetExamples, Inputs, ObservationPreprocessor
from rotarymae.system import from_fields
from rotarymae.training.objectives import Pretraining


def light_curves(lengths=(5, 3, 7), names=("flux", "flux_err")):
    draw = np.random.default_rng(0)
    times = [np.arange(n) * 1.0 for n in lengths]
    values = [np.stack([np.abs(draw.normal(size=n)), draw.uniform(0.1, 1, n)], 1) for n in lengths]
    channels = [np.array(["g", "r", "i"])[np.arange(n) % 3] for n in lengths]
    return SeriesDataset.from_arrays(times, values, channels, value_names=names)


def fitted(data):
    return ObservationPreprocessor.fit(data, inputs=Inputs.fit(data, True, True))


def test_a_token_is_its_scaled_values_then_its_channel_and_its_signal_to_noise():
    data = light_curves()
    made = fitted(data)
    assert made.inputs == Inputs(3, (("flux", "flux_err"),)) and (made.features, made.input_features) == (2, 4)
    tokens, plain = (
        DatasetExamples(data, one).batch(np.arange(3), None).inputs for one in (made, made.replace(inputs=Inputs()))
    )
    assert tokens.values[..., :2].equal(plain.values) and tokens.positions.equal(plain.positions)
    assert data.channel_names == ("g", "i", "r")
    assert tokens.values[0, :3, 2:5].tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
    wanted = np.arcsinh(data.values[:5, 0] / data.values[:5, 1])
    assert np.allclose(tokens.values[0, :5, 5], wanted, atol=1e-6)
    assert (tokens.values[1, 3:] == 0).all()  # padding


@pytest.mark.parametrize(
    ("names", "pairs"),
    [
        (("flux", "flux_err"), (("flux", "flux_err"),)),
        (("Mag", "MAGERR"), (("Mag", "MAGERR"),)),
        (("flux_error", "flux"), (("flux", "flux_error"),)),
        (("flux [µJy]", "Flux_err"), (("flux [µJy]", "Flux_err"),)),
        (("e_mag", "mag"), (("mag", "e_mag"),)),
        (("rate", "rate_unc (1/s)"), (("rate", "rate_unc (1/s)"),)),
        (("flux", "error"), ()),
    ],
)
def test_errors_are_known_by_their_names(names, pairs):
    assert Inputs.fit(light_curves(names=names), False, True) == Inputs(0, pairs)


def test_one_channel_or_too_many_are_not_one_hot():
    one = SeriesDataset.from_arrays([[0.0, 1.0]], [[1.0, 2.0]], [["g", "g"]])
    many = SeriesDataset.from_arrays([np.arange(65.0)], [np.arange(65.0)], [[f"c{i}" for i in range(65)]])
    for data in (one, many, light_curves()):
        assert Inputs.fit(data, data.channel_names == ("g", "i", "r")).channels == (3 if len(data) == 3 else 0)
    assert Inputs.fit(one, True).channels == Inputs.fit(many, True).channels == 0


def test_an_error_of_zero_gives_no_signal_to_noise():
    values = torch.tensor([[3.0, 0.0], [3.0, 1.0]]).double()
    ratios = Inputs(0, (("flux", "flux_err"),)).compute(values, torch.zeros(2, dtype=int), ("flux", "flux_err"))
    assert np.allclose(ratios[:, 0], [0, np.arcsinh(3.0)])


def autoencoder(made, **changes):
    torch.manual_seed(0)
    return MaskedAutoencoder(small(axes=2, features=made.features, input_features=made.input_features, **changes))


def test_the_decoder_predicts_the_values_alone_and_padding_changes_nothing():
    data = light_curves()
    made = fitted(data)
    model = autoencoder(made)
    examples = DatasetExamples(data, made, masking=Masking("ratio", ratio=0.5))
    batch = examples.batch(np.arange(3), None)
    out = model.predict(batch.inputs, batch.masked)
    assert out.predicted.shape[-1] == out.masked.features == 2
    assert batch.inputs.features == 6 and out.masked.values.equal(batch.masked.values[..., :2])
    objective = Pretraining(model)
    assert float(objective(batch).count) == float(batch.masked.real.sum()) * 2
    alone = [examples.batch(np.array([i]), None) for i in range(3)]
    assert sum(objective(one).sum for one in alone).item() == pytest.approx(objective(batch).sum.item(), rel=1e-5)


def test_the_encoder_reads_them():
    data = light_curves()
    made = fitted(data)
    tokens = DatasetExamples(data, made).batch(np.arange(3), None).inputs
    model = autoencoder(made)
    other = replace(tokens, values=tokens.values + torch.tensor([0, 0, 0, 0, 0, 1.0]))
    assert not torch.allclose(model.encoder(tokens).tokens, model.encoder(other).tokens)
    with refuses("2 features", "6 features"):
        model.encoder(replace(tokens, values=tokens.values[..., :2]))


def test_noise_is_added_to_the_values_alone():
    data = light_curves()
    made = fitted(data)
    still = DatasetExamples(data, made).batch(np.arange(3), 0).inputs.values
    noisy = DatasetExamples(data, made, noise=1.0).batch(np.arange(3), 0).inputs.values
    assert noisy[..., 2:].equal(still[..., 2:]) and not noisy[..., :2].equal(still[..., :2])


def test_a_saved_preprocessor_keeps_them():
    made = fitted(light_curves())
    fields = json.loads(json.dumps(asdict(made)))
    assert asdict(from_fields(ObservationPreprocessor, fields, "preprocessor")) == asdict(made)
    assert made.describe()["further inputs"] == "the channel as a one-hot vector of 3, asinh(flux / flux_err)"
