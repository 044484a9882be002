"""Experiments: what a run keeps, that it goes on where it was, and that nothing is written over."""

import dataclasses
import json
import math
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

from rotarymae.batch import Batch
from rotarymae.config import RoMAEConfig
from rotarymae.counter_rng import standard_normal
from rotarymae.errors import InputError
from rotarymae.losses import regression
from rotarymae.model import Encoder, MaskedAutoencoder
from rotarymae.tokens import Tokens
from rotarymae.training.fit_config import TrainConfig
from rotarymae.training.objectives import Supervised
from rotarymae_experiments.regular_grid import (
    DrawnExamples,
    calibration,
    linear_interpolation,
    on_grid,
    predict_masked,
)
from rotarymae_experiments.results import read_file
from rotarymae_experiments.runner import Recipe, Row, Score, Setup, parameters, plain, run
from rotarymae_experiments.token_regressor import TokenRegressor

TINY = RoMAEConfig(embed_dim=12, num_heads=1, depth=1, decoder_embed_dim=12, decoder_num_heads=1, decoder_depth=1)


@dataclass(frozen=True)
class TinySetup(Setup):
    cases: tuple[str, ...] = ("first", "second (2)")
    seeds: tuple[int, ...] = (0, 1)
    times: float = 2.0
    data_dir: str = "here"
    train: TrainConfig = field(default_factory=lambda: TrainConfig(epochs=3, batch_size=4, log_every=1))


class Counting:
    """A recipe that learns to double numbers, counts its trials, and can be made to fail in the middle of one."""

    def __init__(self):
        self.trials, self.fail_at = [], None

    def recipe(self):
        row = Row("error", "first", "MSE", "0.1", simple="MSE of zero")
        return Recipe(name="speed", ours=TinySetup(), run=self.run, rows=(row,))

    def run(self, setup, case, trial):
        model = TokenRegressor(Encoder(TINY))
        values = torch.randn(16, 3, 1, generator=torch.Generator().manual_seed(0))

        def draw(index, epoch):
            if self.fail_at is not None and epoch == self.fail_at:
                raise RuntimeError("the power is gone")
            some = values[torch.from_numpy(index)]
            return Batch(index, Tokens(some, torch.zeros(len(some), 3, 1)), targets=setup.times * some)

        train = dataclasses.replace(setup.train, checkpoint_steps=1)
        trial.fit(Supervised(model, regression), DrawnExamples(16, 3, draw), train)
        self.trials.append((case, trial.seed))
        weight = float(next(model.parameters()).detach().sum())
        return Score({"MSE": weight, "MSE of zero": 1.0}, {"curve": np.arange(3)}, parameters(model))


def go(counting, folder, setup=None, **changes):
    where = {"out": folder / "runs", "results": folder / "results"}
    return run(counting.recipe(), "small", "ours", setup or TinySetup(), **where, **changes)


def test_every_case_and_seed_is_run_once_and_the_file_says_all(tmp_path):
    counting = Counting()
    path = go(counting, tmp_path, command="rotarymae-experiments run it")
    assert path == tmp_path / "results" / "speed-ours-small.json"
    assert counting.trials == [("first", 0), ("first", 1), ("second (2)", 0), ("second (2)", 1)]
    found = read_file(path)
    part = found["cases"]["first"]["metrics"]["MSE"]
    assert part["mean"] == pytest.approx(np.mean(part["each"])) and part["std"] == pytest.approx(
        np.std(part["each"], ddof=1)
    )
    assert part["each"][0] != part["each"][1]  # seeds differ
    assert found["cases"]["first"]["curves"][0] == {"curve": [0, 1, 2]}
    assert found["config"]["train"]["epochs"] == 3 and found["command"] == "rotarymae-experiments run it"
    assert found["hours"] > 0 and found["cases"]["first"]["parameters"] > 100
    assert len(found["cases"]["first"]["losses"][0]["training"]) == 12


def test_what_is_done_is_not_done_again_wherever_the_data_lie_and_another_run_leaves_it_alone(tmp_path):
    counting = Counting()
    path = go(counting, tmp_path)
    before = path.read_bytes()
    first, again = json.loads(before), json.loads(go(counting, tmp_path, TinySetup(data_dir="there")).read_text())
    assert len(counting.trials) == 4 and first["cases"] == again["cases"] and first["run"] == again["run"]
    assert not {"data_dir", "cases", "seeds"} & set(again["config"])
    with pytest.raises(InputError, match=r"another.*configuration"):
        go(counting, tmp_path, TinySetup(times=3.0))
    before, setup = path.read_bytes(), TinySetup(cases=("first",), seeds=(0,))
    second = run(counting.recipe(), "small", "ours", setup, out=tmp_path / "elsewhere", results=tmp_path / "results")
    assert second.name == "speed-ours-small-2.json" and path.read_bytes() == before


def test_seeds_and_cases_can_be_added(tmp_path):
    counting = Counting()
    go(counting, tmp_path, TinySetup(cases=("first",), seeds=(0,)))
    go(counting, tmp_path, TinySetup(cases=("first",), seeds=(0, 1, 2)))
    path = go(counting, tmp_path, TinySetup(cases=("second (2)",), seeds=(7,)))
    assert counting.trials == [("first", 0), ("first", 1), ("first", 2), ("second (2)", 7)]
    cases = read_file(path)["cases"]
    assert {case: part["seeds"] for case, part in cases.items()} == {"first": [0, 1, 2], "second (2)": [7]}


def test_every_trial_names_its_commit(tmp_path, monkeypatch):
    counting = Counting()
    for seed, name in ((0, "one"), (1, "two")):
        monkeypatch.setattr("rotarymae_experiments.runner.commit", lambda name=name: name)
        path = go(counting, tmp_path, TinySetup(cases=("first",), seeds=(seed,)))
    found = read_file(path)
    assert found["cases"]["first"]["commits"] == ["one", "two"] and found["commit"] == "two"


def test_a_stopped_run_goes_on_and_ends_with_the_same_numbers(tmp_path):
    whole = json.loads(go(Counting(), tmp_path / "whole").read_text())
    counting = Counting()
    counting.fail_at = 1
    with pytest.raises(RuntimeError, match="power"):
        go(counting, tmp_path / "stopped")
    counting.fail_at = None
    again = json.loads(go(counting, tmp_path / "stopped").read_text())
    for case, part in whole["cases"].items():
        assert again["cases"][case]["metrics"] == part["metrics"]
        assert again["cases"][case]["losses"] == part["losses"]


@pytest.mark.parametrize(
    "setup, message",
    [
        (TinySetup(cases=("frist",)), "speed has no case 'frist'.*Did you mean 'first'"),
        (TinySetup(cases=()), "nothing to run"),
        (TinySetup(seeds=()), "nothing to run"),
    ],
)
def test_cases_that_are_not_there(setup, message, tmp_path):
    with pytest.raises(InputError, match=message):
        go(Counting(), tmp_path, setup)
    assert not list(tmp_path.rglob("*.json"))


def series(n=5, length=7):
    draw = torch.Generator().manual_seed(0)
    values, at = torch.randn(n, length, 2, generator=draw), torch.rand(n, length, 1, generator=draw)
    return Tokens(values, at)


@pytest.mark.parametrize("likelihood", ["point", "gaussian"])
def test_predict_masked_gives_what_the_model_says_of_each_token(likelihood):
    torch.manual_seed(0)
    model = MaskedAutoencoder(dataclasses.replace(TINY, features=2, likelihood=likelihood)).eval()
    tokens, rng = series(), np.random.default_rng(0)
    seen = rng.random((5, 7)).argsort(1).argsort(1) < np.array([[1], [2], [3], [4], [5]])
    mean, std = predict_masked(model, tokens, seen, ~seen)
    assert (np.isnan(mean[..., 0]) == seen).all() and (std is None) == (likelihood == "point")
    with torch.no_grad():
        for i in range(5):
            row = Tokens(tokens.values[i : i + 1], tokens.positions[i : i + 1])
            out = model(row, torch.from_numpy(~seen[i : i + 1]))
            np.testing.assert_allclose(mean[i][~seen[i]], out.predicted[0].numpy(), atol=1e-5)
            if std is not None:
                np.testing.assert_allclose(std[i][~seen[i]], out.std[0].numpy(), atol=1e-5)


def test_what_is_seen_may_be_asked_for_too():
    torch.manual_seed(0)
    model = MaskedAutoencoder(dataclasses.replace(TINY, features=2)).eval()
    seen = np.zeros((5, 7), bool)
    seen[:, :3] = True
    everything, _ = predict_masked(model, series(), seen, np.ones_like(seen))
    hidden, _ = predict_masked(model, series(), seen, ~seen)
    assert np.isfinite(everything).all()
    np.testing.assert_allclose(everything[~seen], hidden[~seen], atol=1e-5)  # whatever else is asked


def test_calibration_of_a_normal():
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=200_000), rng.uniform(0.5, 2, 200_000)
    found = calibration(mean + std * rng.normal(size=200_000), mean, std)
    assert found["NLL"] == pytest.approx(0.5 + np.log(std).mean() + 0.5 * math.log(2 * math.pi), abs=0.01)
    for share in (50, 68, 95):
        assert found[f"inside {share} %"] == pytest.approx(share / 100, abs=0.005)


def test_plain_is_json():
    found = plain({"a": np.array([1.0000049, np.nan]), "b": (np.int64(3), float("inf")), "c": TINY})
    assert found["a"] == [1.0, None] and found["b"] == [3, None] and found["c"]["embed_dim"] == 12
    json.dumps(found, allow_nan=False)


def test_linear_interpolation_holds_the_ends():
    found = linear_interpolation(
        np.arange(4.0), np.array([[9.0, 1.0, 9.0, 3.0]]), np.array([[False, True, False, True]])
    )
    assert found.tolist() == [[1.0, 1.0, 2.0, 3.0]]


def test_tokens_on_a_grid():
    found = on_grid(torch.ones(2, 3), np.array([0.0, 0.5, 1.0]), 50.0)
    assert found.values.shape == (2, 3, 1) and found.positions[1, :, 0].tolist() == [0.0, 25.0, 50.0]
    assert on_grid(torch.ones(2, 3, 4), np.zeros(3)).values.shape == (2, 3, 4)


def test_normal_numbers_from_uniform_ones():
    found = standard_normal(torch.tensor([0.0, 0.5, 0.8413447, 1 - 2**-24]))
    assert torch.isfinite(found).all() and found[1] == 0 and found[2] == pytest.approx(1, abs=1e-5)


class Odd:
    """A recipe whose metrics are given by seed."""

    def __init__(self, *metrics, cases=("all",)):
        self.metrics, self.cases = metrics, cases

    def run(self, folder, seeds=(0, 1)):
        setup = Setup(self.cases, tuple(seeds))
        recipe = Recipe(name="speed", ours=setup, run=lambda setup, case, trial: Score(self.metrics[trial.seed]))
        where = {"out": folder / "runs", "results": folder / "results"}
        return read_file(run(recipe, "small", "ours", setup, **where))["cases"]["all"]["metrics"]


def test_a_metric_that_a_seed_lacks_is_that_of_the_others(tmp_path):
    found = Odd({"a": np.float32(1.5)}, {"a": math.nan, "b": 2.0}).run(tmp_path)
    assert found["a"] == {"mean": 1.5, "std": None, "each": [1.5, None]}
    assert found["b"] == {"mean": 2.0, "std": None, "each": [None, 2.0]}


def test_cases_that_would_share_a_folder_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"cases.*folder"):
        Odd({}, cases=("t < 5", "t > 5")).run(tmp_path)


def test_a_damaged_result_file_is_left_alone(tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "speed-ours-small.json").write_text("")
    Odd({"a": 1.0}).run(tmp_path, seeds=[0])
    assert (tmp_path / "results" / "speed-ours-small-2.json").exists()
