"""How far apart points should be: the unit of position, swept on the synthetic and the frequency set.

Not in the paper, whose times lie in [0, 1] on both sets. `rotarymae-experiments run position_scale`.

The fastest rotary frequency turns one radian a unit. If a whole series spans one unit, its points are hardly told
apart; with neighbouring points about one unit apart (a scale of 50 on the synthetic set, of 100 on the frequency set)
they are. Farther apart than that cost nothing: at ten times that scale, where the fastest frequency turns ten radians
from point to point, the slower ones still tell them apart, and the errors were the same (one seed).

Every scale gets the same model, seed and steps, fewer than in the recipes `synthetic` and `frequency`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rotarymae_experiments import Figures, Recipe, Result, Row, Score, Setup, Trial
from rotarymae_experiments.recipes import frequency, synthetic

SCALES = {"synthetic": (1.0, 5.0, 50.0, 500.0), "frequency": (1.0, 10.0, 100.0, 1000.0)}
CASES = tuple(f"{name} × {scale:g}" for name, scales in SCALES.items() for scale in scales)


@dataclass(frozen=True)
class ScaleSetup(Setup):
    """The configuration: that of both recipes.

    Attributes:
        synthetic: Run the recipe `synthetic` with this configuration; the case sets its scale of positions.
        frequency: Run the recipe `frequency` with this configuration; the case sets its scale of positions.
    """

    cases: tuple[str, ...] = CASES
    synthetic: synthetic.SyntheticSetup = field(default_factory=synthetic.SyntheticSetup)
    frequency: frequency.FrequencySetup = field(default_factory=frequency.FrequencySetup)


def setup(scale: str, setting: str) -> ScaleSetup:
    one, two = synthetic.setup(scale, setting), frequency.setup(scale, setting)
    if scale == "small":
        one = one.but(train={"epochs": max(1, one.train.epochs // 16)})
        two = two.but(train={"epochs": max(1, two.train.epochs // 24)})
    cases = CASES if scale != "smoke" else ("synthetic × 50", "frequency × 100")
    return ScaleSetup(cases=cases, synthetic=one, frequency=two)


def run(setup: ScaleSetup, case: str, trial: Trial) -> Score:
    name, _, scale = case.partition(" × ")
    if name == "synthetic":
        return synthetic.run(setup.synthetic.but(position_scale=float(scale)), synthetic.CASE, trial)
    return frequency.run(setup.frequency.but(position_scale=float(scale)), "sine", trial)


def figures(result: Result) -> Figures:
    """Error over the optimum's by scale, for each set that was swept."""
    from rotarymae import plots

    found = {}
    for name in SCALES:
        cases = {case: part for case, part in result["cases"].items() if case.startswith(name)}
        if cases:
            scales = [float(case.partition(" × ")[2]) for case in cases]
            metrics = [part["metrics"] for part in cases.values()]
            ratio = {name: [each["MSE"]["mean"] / each["optimum MSE"]["mean"] for each in metrics]}
            label = "scale of positions (units a series spans)"
            axes = plots.curves(scales, ratio, x_label=label, y_label="MSE over the optimum's", log_x=True)
            found[name] = plots.figure_of(axes)
    return found


RECIPE = Recipe(
    name="position_scale",
    table="none",
    expect="large errors at times in [0, 1]; the least from about one unit of position between points on",
    hours={"paper": None, "ours": 0.37},
    setup=setup,
    run=run,
    rows=tuple(Row(f"MSE, {case}", case, "MSE", simple="optimum MSE") for case in CASES),
    figures=figures,
)
