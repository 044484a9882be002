"""How well a position is told near the middle and near the ends of a domain: one token, and [CLS] at 0.

Figure 2 of arXiv:2505.20535 (Appendix B.1), hyper-parameters of Table 16. `rotarymae-experiments run position_range`.
Expect errors far below the variance of the domain, rising towards its ends. Scale `small` takes 0.2 hours on one core.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np

from rotarymae.config import RoMAEConfig
from rotarymae.model import Encoder
from rotarymae.training import TrainConfig
from rotarymae_experiments import Figures, Recipe, Result, Row, Score, Setup, Trial, parameters
from rotarymae_experiments.data import position as data
from rotarymae_experiments.recipes.position import locate
from rotarymae_experiments.token_regressor import TokenRegressor

HIGH = {"(0, 100)": 100.0, "(0, 1000)": 1000.0}


@dataclass(frozen=True)
class RangeSetup(Setup):
    """The configuration.

    Attributes:
        samples: Train on this many tokens; the paper gives no sizes, the default is Table 1's.
        tests: Score this many tokens.
        span: Stretch RoPE positions to run over 0..span; None leaves them as they are.
        standardize: Shift and scale targets to mean 0 and variance 1 in training.
        slow_down: Divide the learning rate of (0, 1000) by this.
        model: Build this encoder.
        train: Train it like this.
    """

    cases: tuple[str, ...] = tuple(HIGH)
    samples: int = 20_000
    tests: int = 4_000
    span: float | None = None
    standardize: bool = False
    slow_down: float = 1.0
    model: RoMAEConfig = field(default_factory=RoMAEConfig)
    train: TrainConfig = field(default_factory=TrainConfig)


def run(setup: RangeSetup, case: str, trial: Trial) -> Score:
    """Train and score a domain (`case`) from the trial's seed: errors of positions, and their curve over the domain."""
    high = HIGH[case]
    sets = data.position_sets(high=high, tokens=1, train=setup.samples, test=setup.tests, seed=trial.seed)
    model = TokenRegressor(Encoder(setup.model))
    position_unit = 1.0 if setup.span is None else high / setup.span
    rate = setup.train.base_lr / (setup.slow_down if high == 1000 else 1.0)
    train = dataclasses.replace(setup.train, base_lr=rate)
    predicted, metrics = locate(trial, model, sets, train, (0.0, high), setup.standardize, position_unit)
    curve = data.mse_by_position(predicted, sets.test, high)
    metrics["MSE of the middle 80 %"] = float(np.nanmean(curve.mse[5:-5]))
    return Score(metrics, {"fraction": curve.fraction, "mse": curve.mse}, parameters(model))


def figures(result: Result) -> Figures:
    """Draw Figure 2: the error by position, a curve for each case."""
    from rotarymae_experiments import figures as draw

    cases = result["cases"]
    curves = {case: np.nanmean([[np.nan if v is None else v for v in c["mse"]] for c in cases[case]["curves"]], axis=0)
              for case in cases}  # fmt: skip
    fraction = next(iter(cases.values()))["curves"][0]["fraction"]
    label = "position, as a fraction of the domain"
    return {"curve": draw.curves(fraction, curves, x_label=label, y_label="mean squared error")}


RECIPE = Recipe(
    name="position_range",
    table="Figure 2",
    # On a CPU the paper's width of 960 (133 million parameters) would take hours; at small tiny's own width stands in.
    paper=RangeSetup(
        seeds=(0, 1, 2, 3, 4),
        model=RoMAEConfig.named("tiny", embed_dim=960),
        train=TrainConfig(
            optimizer="sgd", base_lr=5e-6, weight_decay=0.0, gradient_clip=None, epochs=10, warmup_steps=625
        ),
        slow_down=10.0,
    ),
    ours=RangeSetup(
        seeds=(0, 1, 2, 3, 4),
        model=RoMAEConfig.named("tiny"),
        train=TrainConfig(base_lr=1e-3, weight_decay=0.01, betas=(0.9, 0.999), epochs=10, warmup_steps=300),
        span=100.0,
        standardize=True,
    ),
    small={"seeds": (0,), "model": RoMAEConfig.named("tiny")},
    ours_small={"model": RoMAEConfig(depth=4)},
    smoke={
        "samples": 200,
        "tests": 200,
        "model": RoMAEConfig(),
        "train": {"epochs": 2, "batch_size": 16, "warmup_steps": 2},
    },
    run=run,
    rows=tuple(
        Row(f"{metric}, {case}", case, metric, "figure only", simple="variance")
        for case in HIGH
        for metric in ("MSE", "MSE of the middle 80 %")
    ),
    figures=figures,
)
