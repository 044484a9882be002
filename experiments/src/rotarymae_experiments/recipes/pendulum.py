"""A pendulum filmed through static: its angle at each of 50 irregular frames.

Table 5 of arXiv:2505.20535 (Section 5.4), model of Table 14, hyper-parameters of Table 15.
`rotarymae-experiments run pendulum`. Expect a mean squared error of 0.0029 ± 0.0002 (5 seeds), in the unit in which S5
has 0.00341. Scale `small` takes 0.6 hours on one core.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch

from rotarymae.batch import Batch
from rotarymae.config import RoMAEConfig
from rotarymae.counter_rng import counter_uniform
from rotarymae.heads import Regressor
from rotarymae.losses import regression
from rotarymae.model import Encoder
from rotarymae.tokens import Tokens
from rotarymae.training import Supervised, TrainConfig
from rotarymae_experiments import DrawnExamples, Recipe, Row, Score, Setup, Trial, parameters
from rotarymae_experiments.data import pendulum as data
from rotarymae_experiments.data.shared import mse
from rotarymae_experiments.token_regressor import TokenRegressor

SMALL = "Table 14's size"
MEAN = 0.25  # of the training pixels; their deviation is 0.27
PIXELS = data.SIZE**2


@dataclass(frozen=True)
class PendulumSetup(Setup):
    """The configuration.

    Attributes:
        train_size: Train on this many sequences.
        valid_size: Draw this many sequences for validation, which choose nothing here.
        test_size: Score this many sequences.
        per_frame: Use one head per frame, instead of one that reads all frames off [CLS].
        position_scale: Multiply frame numbers 0..99 by this to get positions.
        pixel_std: Divide pixels, in [0, 1] less their mean, by this.
        mirror: Mirror this share of the training sequences.
        static: Add more static to this share of the training sequences.
        symmetric: Predict every sequence in the mirror, too, and take the mean.
        model: Build this encoder (Table 14's).
        train: Train it like this.
    """

    cases: tuple[str, ...] = (SMALL,)
    train_size: int = 2000
    valid_size: int = 1000
    test_size: int = 1000
    per_frame: bool = False
    position_scale: float = 1.0
    pixel_std: float = 0.27
    mirror: float = 0.0
    static: float = 0.0
    symmetric: bool = False
    model: RoMAEConfig = field(default_factory=RoMAEConfig)
    train: TrainConfig = field(default_factory=TrainConfig)


def run(setup: PendulumSetup, case: str, trial: Trial) -> Score:
    """Train and score from the trial's seed: squared errors of sine and cosine of the angle; one case."""
    sizes = {"train": setup.train_size, "valid": setup.valid_size, "test": setup.test_size}
    sets = data.pendulum(**sizes)
    encoder, frames = Encoder(setup.model), sets.train.times.shape[1]
    model = TokenRegressor(encoder, 2) if setup.per_frame else Regressor(encoder, 2 * frames, pool="cls")
    # The validation set chooses nothing within a run, so the weights of the last step are scored.
    trial.fit(Supervised(model, regression), _examples(sets.train, setup, trial.seed), setup.train)
    predicted = {name: _predict(model, part, setup) for name, part in (("valid", sets.validation), ("test", sets.test))}
    guess = sets.train.targets.mean(axis=(0, 1))
    metrics = {
        "MSE": mse(predicted["test"], sets.test.targets),
        "summed and × 1e-3, as the paper prints": data.published_sum(predicted["test"], sets.test.targets),
        "validation MSE": mse(predicted["valid"], sets.validation.targets),
        "MSE of the training mean": mse(np.broadcast_to(guess, sets.test.targets.shape), sets.test.targets),
    }
    return Score(metrics, {}, parameters(model))


def _examples(part: data.PendulumSet, setup: PendulumSetup, seed: int) -> DrawnExamples:
    """Return sequences of pictures with sines and cosines of their angles as targets; in training they are augmented.

    Then static is added to some, drawn by `seed`, and some are mirrored, as `setup` says.
    """
    targets = torch.from_numpy(part.targets.astype(np.float32))

    def draw(index: np.ndarray, epoch: int | None) -> Batch:
        """Return the batch of the sequences at `index` in this epoch; epoch None does not augment."""
        pixels, angles = part.images[index].astype(np.float32) / 255, targets[torch.from_numpy(index)]
        if epoch is not None:
            chosen = counter_uniform(seed, epoch, index)(2).numpy()
            for i in np.flatnonzero(chosen[:, 0] < setup.static):
                key = np.random.SeedSequence([seed, epoch, int(index[i])]).generate_state(1)[0]
                pixels[i] = _with_static(pixels[i], part.times[index[i]], np.random.RandomState(key))
            mirrored = chosen[:, 1] < setup.mirror
            pixels[mirrored] = pixels[mirrored][..., ::-1]
            angles = torch.where(torch.from_numpy(mirrored)[:, None, None], angles * MIRRORED, angles)
        tokens = _tokens(pixels, part.times[index], setup)
        return Batch(index, tokens, targets=angles if setup.per_frame else angles.flatten(1))

    return DrawnExamples(len(targets), part.times.shape[1], draw)


MIRRORED = torch.tensor([-1.0, 1.0])  # what a mirror does to sine and cosine of the angle


def _with_static(pixels: np.ndarray, times: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Return frames [K, 24, 24] with pixels from 0 to 1 under more static, drawn by `rng` as the generator draws it.

    `times` [K] are the numbers of the frames.
    """
    weight = data.clearness(rng, 1)[0, times][:, None, None].astype(np.float32)
    return weight * pixels + (1 - weight) * rng.random_sample(pixels.shape).astype(np.float32)


def _tokens(pixels: np.ndarray, times: np.ndarray, setup: PendulumSetup) -> Tokens:
    """Return tokens [B, K], one for each frame [24, 24] with pixels from 0 to 1: its 576 scaled pixels, at its number.

    `times` [B, K] are the numbers of the frames; `setup` has the scales of pixels and positions.
    """
    values = ((pixels - MEAN) / setup.pixel_std).astype(np.float32).reshape(*times.shape, PIXELS)
    positions = (times[..., None] * setup.position_scale).astype(np.float32)
    return Tokens(torch.from_numpy(values), torch.from_numpy(positions), check_values=False)


def _predict(model: TokenRegressor | Regressor, part: data.PendulumSet, setup: PendulumSetup) -> np.ndarray:
    """Return the predicted sines and cosines of the angles in S sequences, [S, frames, 2]."""
    parts = []
    for index in np.array_split(np.arange(len(part.images)), -(-len(part.images) // 200)):
        pixels, shape = part.images[index].astype(np.float32) / 255, part.targets[index].shape
        with torch.no_grad():
            seen = model(_tokens(pixels, part.times[index], setup)).reshape(shape)
            if setup.symmetric:
                other = model(_tokens(pixels[..., ::-1].copy(), part.times[index], setup)).reshape(shape)
                seen = (seen + MIRRORED * other) / 2
        parts.append(seen.double().numpy())
    return np.concatenate(parts)


DOUBT = (
    "The script prints the sum over 1,000 sequences × 50 frames × 2 times 1e-3, not the mean: in the unit of S5 and "
    "CRU its run is 36e-3. Pixels were standardised by a deviation 127 times too small, and no validation set was kept."
)
PAPER = PendulumSetup(
    seeds=tuple(range(42, 62)),
    model=RoMAEConfig.named("pendulum", features=PIXELS),
    train=TrainConfig(epochs=50, base_lr=3e-4, warmup_steps=1000, betas=(0.9, 0.999), weight_decay=0.01, batch_size=16),
)
RECIPE = Recipe(
    name="pendulum",
    table="Table 5",
    paper=PAPER,
    ours=PAPER.but(
        per_frame=True,
        pixel_std=0.8,
        mirror=0.5,
        static=0.5,
        symmetric=True,
        train=TrainConfig(epochs=60, base_lr=1e-2, weight_decay=0.2, batch_size=16),
    ),
    small={"seeds": tuple(range(42, 47))},
    smoke={
        "seeds": (42,),
        "train_size": 64,
        "valid_size": 8,
        "test_size": 8,
        "train": {"epochs": 6, "batch_size": 8, "base_lr": 3e-3, "warmup_steps": 4},
    },
    run=run,
    rows=(
        Row("MSE", SMALL, "MSE", "3.32e-3", "S5 3.41e-3", "MSE of the training mean", DOUBT, "< 3.41e-3"),
        Row("in the paper's unit", SMALL, "summed and × 1e-3, as the paper prints", "3.32", doubt=DOUBT),
    ),
)
