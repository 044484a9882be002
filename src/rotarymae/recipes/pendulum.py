"""A pendulum filmed through static: its angle at each of 50 irregular frames.

Table 5 of arXiv:2505.20535 (Section 5.4); model of Table 14, hyper-parameters of Table 15. `rotarymae run pendulum`.

The paper prints 3.32e-3 beside S5's 3.41e-3, CRU's 3.94e-3 and ContiFormer's 4.63e-3, but in another unit: its script
sums squared errors where the others take the mean, and multiplies by 1e-3; in their unit the same run is 36e-3. Expect
that figure again from `paper`, whose head reads all 50 angles off the [CLS] token.

`ours` gives every frame its own head (`TokenRegressor`), which is most of the gain, and half of the sequences are seen
in a mirror while training: left and right change places, and the sine its sign. "Table 14's size" keeps the paper's
encoder, "deeper" is the best found.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from rotarymae.batches import Batch
from rotarymae.data import pendulum as data
from rotarymae.experiment import DrawnExamples, Recipe, Result, Row, Score, Setup, Trial, parameters
from rotarymae.heads import Regressor, TokenRegressor
from rotarymae.masking import rows
from rotarymae.model import Encoder, RoMAEConfig
from rotarymae.objectives import Regression
from rotarymae.tokens import Tokens
from rotarymae.training import TrainConfig

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SMALL, DEEPER = "Table 14's size", "deeper"
MEAN, STD = 0.25, 0.27  # of the training pixels; the published code divides by 0.0021, a slip
PIXELS = data.SIZE**2


@dataclass(frozen=True)
class PendulumSetup(Setup):
    """The configuration.

    Attributes:
        train_size, valid_size, test_size: sequences.
        per_frame: a head for each frame, instead of one that reads all frames off [CLS].
        position_scale: positions are frame numbers 0..99 times this.
        mirror: the share of training sequences that are mirrored.
        model, train: Table 14's encoder and its training.
        deeper, train_deeper: the other encoder and its training.
    """

    cases: tuple[str, ...] = (SMALL, DEEPER)
    train_size: int = 2000
    valid_size: int = 1000
    test_size: int = 1000
    per_frame: bool = False
    position_scale: float = 1.0
    mirror: float = 0.0
    model: RoMAEConfig = field(default_factory=RoMAEConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    deeper: RoMAEConfig = field(default_factory=RoMAEConfig)
    train_deeper: TrainConfig = field(default_factory=TrainConfig)


def setup(scale: str, setting: str) -> PendulumSetup:
    common: dict[str, Any] = {"betas": (0.9, 0.999), "weight_decay": 0.01, "batch_size": 16, "keep_best": True}
    small = RoMAEConfig.named("pendulum", features=PIXELS)
    found = PendulumSetup(
        cases=(SMALL,),
        model=small,
        train=TrainConfig(epochs=50, base_lr=3e-4, warmup_steps=1000, **common),
    )
    if setting == "ours":
        found = dataclasses.replace(
            found,
            cases=(SMALL, DEEPER),
            per_frame=True,
            mirror=0.5,
            train=TrainConfig(epochs=60, base_lr=4e-3, **common),
            deeper=dataclasses.replace(small, embed_dim=64, depth=6, mlp_ratio=2.0),
            train_deeper=TrainConfig(epochs=60, base_lr=4e-3, **common),
        )
    seeds = {"smoke": (42,), "small": tuple(range(42, 47)), "paper": tuple(range(42, 62))}[scale]
    if scale == "smoke":
        train = dataclasses.replace(found.train, epochs=6, batch_size=8, base_lr=3e-3, warmup_steps=4)
        sizes = {"train_size": 64, "valid_size": 8, "test_size": 8}
        found = dataclasses.replace(found, **sizes, cases=(SMALL,), train=train)
    return dataclasses.replace(found, seeds=seeds)


def run(setup: PendulumSetup, case: str, trial: Trial) -> Score:
    sizes = {"train": setup.train_size, "valid": setup.valid_size, "test": setup.test_size}
    sets = data.pendulum(**sizes, cache=trial.cache)
    config, train = (setup.model, setup.train) if case == SMALL else (setup.deeper, setup.train_deeper)
    encoder, frames = Encoder(config), sets.train.times.shape[1]
    model = TokenRegressor(encoder, 2) if setup.per_frame else Regressor(encoder, 2 * frames, pool="cls")
    fitted, valid = (_examples(part, setup, trial.seed) for part in (sets.train, sets.valid))
    trial.fit(Regression(model), fitted, train, valid)
    found = {name: _predict(model, part, setup) for name, part in (("valid", sets.valid), ("test", sets.test))}
    guess = sets.train.targets.mean(axis=(0, 1))
    metrics = {
        "MSE": data.mse(found["test"], sets.test.targets),
        "summed and × 1e-3, as the paper prints": data.published_sum(found["test"], sets.test.targets),
        "validation MSE": data.mse(found["valid"], sets.valid.targets),
        "MSE of the training mean": data.mse(np.broadcast_to(guess, sets.test.targets.shape), sets.test.targets),
    }
    curves = {"times": sets.test.times[:3], "targets": sets.test.targets[:3], "predicted": found["test"][:3]}
    return Score(metrics, curves, parameters(model))


def _examples(part: data.PendulumSet, setup: PendulumSetup, seed: int) -> DrawnExamples:
    targets = torch.from_numpy(part.targets.astype(np.float32))

    def draw(index: np.ndarray, epoch: int | None) -> Batch:
        tokens, wanted = _tokens(part, index, setup), targets[torch.from_numpy(index)]
        if epoch is not None and setup.mirror > 0:
            mirrored = (rows(seed, epoch, index)(1) < setup.mirror)[..., None]
            tokens = dataclasses.replace(tokens, values=torch.where(mirrored, _flipped(tokens.values), tokens.values))
            wanted = torch.where(mirrored, wanted * torch.tensor([-1.0, 1.0]), wanted)
        return Batch(index, tokens, targets=wanted if setup.per_frame else wanted.flatten(1))

    about = {"data": "pendulum", "seed": seed, "sum": float(part.targets.sum())}
    about |= {name: getattr(setup, name) for name in ("train_size", "per_frame", "position_scale", "mirror")}
    return DrawnExamples(len(targets), part.times.shape[1], draw, about)


def _tokens(part: data.PendulumSet, index: np.ndarray, setup: PendulumSetup) -> Tokens:
    """A token for each frame: its 576 standardised pixels, at its number."""
    pixels = part.images[index].reshape(len(index), -1, PIXELS).astype(np.float32)
    positions = (part.times[index, :, None] * setup.position_scale).astype(np.float32)
    return Tokens(torch.from_numpy((pixels / 255 - MEAN) / STD), torch.from_numpy(positions), check_values=False)


def _flipped(values: Tensor) -> Tensor:
    """Left and right exchanged in every frame."""
    return values.unflatten(-1, (data.SIZE, data.SIZE)).flip(-1).flatten(-2)


def _predict(model: TokenRegressor | Regressor, part: data.PendulumSet, setup: PendulumSetup) -> np.ndarray:
    """Sines and cosines [S, frames, 2]."""
    places = np.arange(len(part.images))
    with torch.no_grad():
        found = [model(_tokens(part, index, setup)) for index in np.array_split(places, -(-len(places) // 200))]
    return torch.cat(found).double().numpy().reshape(part.targets.shape)


def figures(result: Result) -> dict[str, Figure]:
    """Three test sequences: the sine of the angle by frame."""
    from rotarymae import plots

    found = {}
    for case, part in result["cases"].items():
        shown, panels = part["curves"][0], {}
        for i, (times, targets, predicted) in enumerate(zip(shown["times"], shown["targets"], shown["predicted"])):
            truth, guess = np.array(targets)[:, 0], np.array(predicted)[:, 0]
            panels[f"test sequence {i + 1}"] = plots.Panel({"RoMAE": (times, guess)}, seen=(times, truth))
        name = "table-14" if case == SMALL else "deeper"
        found[name] = plots.predictions(panels, x_label="frame", y_label="sine of the angle", seen_name="truth")
    return found


DOUBT = (
    "The script prints the sum over 1,000 sequences × 50 frames × 2 times 1e-3, not the mean: in the unit of S5 and "
    "CRU its run is 36e-3. Pixels were standardised by a deviation 127 times too small, and no validation set was kept."
)
RECIPE = Recipe(
    name="pendulum",
    table="Table 5",
    expect="mean squared error below S5's 3.41e-3 in S5's unit (mean over elements)",
    hours={"paper": 0.3, "ours": 1.0},
    setup=setup,
    run=run,
    rows=(
        Row("MSE", SMALL, "MSE", "3.32e-3", "S5 3.41e-3", "MSE of the training mean", DOUBT, "< 3.41e-3"),
        Row("MSE, deeper", DEEPER, "MSE", "–", "S5 3.41e-3", "MSE of the training mean", DOUBT, "< 3.41e-3"),
        Row("in the paper's unit", SMALL, "summed and × 1e-3, as the paper prints", "3.32", doubt=DOUBT),
    ),
    figures=figures,
)
