"""How far apart should points be? The unit of position, swept on the synthetic and the frequency set.

Not in the paper, whose times lie in [0, 1] on both sets. `rotarymae-experiments run position_scale`. Expect large
errors at times in [0, 1], and the least from about one unit of position between neighbouring points on (one seed).
Scale `small` takes 0.4 hours on one core.
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


def run(setup: ScaleSetup, case: str, trial: Trial) -> Score:
    name, _, scale = case.partition(" × ")
    if name == "synthetic":
        return synthetic.run(setup.synthetic.but(position_scale=float(scale)), synthetic.CASE, trial)
    return frequency.run(setup.frequency.but(position_scale=float(scale)), "sine", trial)


def figures(result: Result) -> Figures:
    """Error over the optimum's by scale, for each set that was swept."""
    from rotarymae_experiments import figures as draw

    drawn = {}
    for name in SCALES:
        cases = {case: part for case, part in result["cases"].items() if case.startswith(name)}
        if cases:
            scales = [float(case.partition(" × ")[2]) for case in cases]
            metrics = [part["metrics"] for part in cases.values()]
            ratio = {name: [each["MSE"]["mean"] / each["optimum MSE"]["mean"] for each in metrics]}
            label = "scale of positions (units a series spans)"
            figure = draw.curves(scales, ratio, x_label=label, y_label="MSE over the optimum's", log_x=True)
            drawn[name] = figure
    return drawn


RECIPE = Recipe(
    name="position_scale",
    table="none",
    run=run,
    paper=ScaleSetup(synthetic=synthetic.RECIPE.paper, frequency=frequency.RECIPE.paper),  # pyright: ignore
    ours=ScaleSetup(synthetic=synthetic.RECIPE.ours, frequency=frequency.RECIPE.ours),  # pyright: ignore
    small={"frequency": frequency.RECIPE.small},
    paper_small={"synthetic": {"train": {"epochs": 1}}, "frequency": frequency.RECIPE.paper_small},
    ours_small={"synthetic": {"train": {"epochs": 30}}, "frequency": {"train": {"epochs": 3}}},
    smoke={
        "cases": ("synthetic × 50", "frequency × 100"),
        "synthetic": synthetic.RECIPE.smoke,
        "frequency": frequency.RECIPE.smoke,
    },
    rows=tuple(Row(f"MSE, {case}", case, "MSE", simple="optimum MSE") for case in CASES),
    figures=figures,
)
