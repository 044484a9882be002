"""Shifting all positions changes nothing without [CLS], and something with it.

Corollary 4.1 and Proposition 4.2 of arXiv:2505.20535. `rotarymae-experiments run translation`. Expect the encoder's
outputs to change by less than 1e-4 of their deviation without [CLS] at any shift up to 10,000, and by about 0.3 with
it. Scale `small` takes 0.1 hours on one core.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import torch

from rotarymae.config import RoMAEConfig
from rotarymae.model import MaskedAutoencoder
from rotarymae.tokens import Tokens
from rotarymae.training import Pretraining, TrainConfig
from rotarymae_experiments import SMOKE, Recipe, Row, Score, Setup, Trial, on_grid, parameters
from rotarymae_experiments.data import synthetic as data
from rotarymae_experiments.recipes import synthetic

WITH, WITHOUT = "with [CLS]", "without [CLS]"
SHIFTS = (0.1, 1.0, 10.0, 100.0, 1_000.0, 10_000.0)


@dataclass(frozen=True)
class TranslationSetup(Setup):
    """The configuration.

    Attributes:
        double: Keep positions in float64.
        series: Generate this many series, to train and test on.
        model: Build this autoencoder; the case sets whether it has [CLS].
        train: Train it like this.
    """

    cases: tuple[str, ...] = (WITH, WITHOUT)
    double: bool = False
    series: int = 2000
    model: RoMAEConfig = field(default_factory=lambda: RoMAEConfig.named("tiny"))
    train: TrainConfig = field(
        default_factory=lambda: TrainConfig(epochs=20, batch_size=64, base_lr=1e-3, warmup_fraction=0.2)
    )


def run(setup: TranslationSetup, case: str, trial: Trial) -> Score:
    """Train with or without [CLS] (`case`) from the trial's seed, and measure what shifts change in the output."""
    sets = data.splits(setup.series)
    model = MaskedAutoencoder(dataclasses.replace(setup.model, cls_token=case == WITH))
    series = synthetic.SyntheticSetup(position_scale=50.0, queries=12, model=model.config)
    trial.fit(Pretraining(model), synthetic.examples(sets.train, series, trial.seed), setup.train)
    still = on_grid(sets.test.noisy[:50], synthetic.TIMES, 50.0)
    changes = [largest_change(model, still, shift, setup.double) for shift in SHIFTS]
    metrics = {f"change at {shift:g}": change for shift, change in zip(SHIFTS, changes, strict=True)}
    return Score({"largest change": max(changes), **metrics}, {}, parameters(model))


def largest_change(model: MaskedAutoencoder, tokens: Tokens, shift: float, double: bool) -> float:
    """Return the largest change of the encoder's output when `shift` is added to all positions, in standard deviations.

    With `double`, positions are kept in float64.
    """
    positions = tokens.positions.double() if double else tokens.positions
    with torch.no_grad():
        still = model.encoder(dataclasses.replace(tokens, positions=positions)).tokens
        moved = model.encoder(dataclasses.replace(tokens, positions=positions + shift)).tokens
    return float((moved - still).abs().max() / still.std())


RECIPE = Recipe(
    name="translation",
    table="Corollary 4.1",
    paper=TranslationSetup(),
    ours=TranslationSetup(double=True),
    small={"train": {"epochs": 5}},
    smoke={"series": 200, "model": SMOKE, "train": {"epochs": 6, "batch_size": 16, "base_lr": 3e-3}},
    run=run,
    rows=(
        Row("largest change, without [CLS]", WITHOUT, "largest change", "0 (proved)", aim="≤ 1e-4"),
        Row("largest change, with [CLS]", WITH, "largest change", "> 0 (proved)", aim="> 0"),
    ),
)
