"""How well does a model fill the gaps of real series, if it has only seen drawn functions?

Not in the paper: `rotarymae-experiments run prior --hours 0.45` trains the model in the box `any-series`.

The model corrects a bank of Gaussian processes (`rotarymae.any_series`); what it is trained on is in
`rotarymae_experiments.prior`, what it is scored on in `rotarymae_experiments.gaps`. The budget is counted in steps, of
which a shared core makes `STEPS_PER_HOUR`: the same seed and budget give the same weights, however busy the machine is,
and a run that was stopped goes on bit for bit.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from rotarymae.any_series import TOKEN_NUMBERS, AnySeries
from rotarymae.batch import Batch
from rotarymae.config import RoMAEConfig
from rotarymae.pipeline import AnySeriesPipeline
from rotarymae.training import Pretraining, TrainConfig
from rotarymae_experiments import Figures, Recipe, Result, Row, Score, Setup, Trial, parameters, prior
from rotarymae_experiments import gaps as protocol
from rotarymae_experiments.prior import PriorExamples

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CASE = "any-series"
STEPS_PER_HOUR = 14000  # of one core that is shared with another training
HELD_OUT_SEED, HELD_OUT = 10**6, 2048
# The picture shows the first series of these sets, whatever they look like.
EXAMPLES = (
    ("PLAsTiCC r", "random", "days", "flux"),
    ("PLAsTiCC g", "block", "days", "flux"),
    ("PhysioNet HR", "random", "hours", "beats per minute"),
    ("PhysioNet MAP", "block", "hours", "mmHg"),
    ("CO2", "block", "days", "parts per million"),
    ("JapaneseVowels", "random", "frames", "coefficient"),
)
NOTE = """It answers any table of irregular series without training: gaps, values at any time, oddities. It corrects a
bank of some seventy Gaussian processes, and was trained on drawn functions alone: it holds nobody's data.

It is made for tables with too few series to train on, and for a first look. Where many series resemble each other, a
model trained on them (`rotarymae fit`) knows what this one cannot. Each series is read by itself, in windows of 160
observations: what only a longer stretch shows, it does not see. It knows no unit and no bound of values, and no further
positions next to time; far beyond the last observation it returns to the mean. Its embeddings say little of classes.
`rotarymae-experiments run prior` trains and scores it.

    rotarymae interpolate table.csv --out values.csv
    rotarymae anomalies table.csv --out scores.csv"""


def model_config(embed_dim: int = 96, num_heads: int = 3) -> RoMAEConfig:
    """Return the model's sizes, with this width and number of heads: two blocks that encode, one that decodes."""
    return RoMAEConfig(
        axes=2,
        features=1,
        input_features=TOKEN_NUMBERS - 1,
        embed_dim=embed_dim,
        num_heads=num_heads,
        depth=2,
        mlp_ratio=3.0,
        decoder_embed_dim=embed_dim,
        decoder_num_heads=num_heads,
        decoder_depth=1,
        decoder_mlp_ratio=3.0,
        base=1000.0,
        likelihood="student_t",
    )


@dataclass(frozen=True)
class PriorSetup(Setup):
    """The configuration.

    Attributes:
        hours: Train for as many steps as one core makes in this time.
        data_dir: Look for the development sets plasticc, physionet2012 and uea in this folder.
        model: The model has these sizes.
        train: It is trained in this way; hours decide the number of steps.
    """

    cases: tuple[str, ...] = (CASE,)
    hours: float = 1.0
    data_dir: str = "data"
    model: RoMAEConfig = field(default_factory=model_config)
    train: TrainConfig = field(
        default_factory=lambda: TrainConfig(
            epochs=1, batch_size=32, base_lr=2e-3, warmup_fraction=0.05, weight_decay=0.02, precision="fp32"
        )
    )


def run(setup: PriorSetup, case: str, trial: Trial) -> Score:
    """Train `any-series` from the trial's seed, save it in its folder, and score it on real and drawn series."""
    model, data_dir = AnySeries(setup.model), Path(setup.data_dir)
    assert setup.train.batch_size is not None, "steps are counted in batches"
    steps = max(1, round(setup.hours * STEPS_PER_HOUR))
    held_out = PriorExamples(HELD_OUT if not trial.smoke else 32, HELD_OUT_SEED + trial.seed)
    before = held_out_nats(model, held_out)
    bank = copy.deepcopy(model)
    examples = PriorExamples(steps * setup.train.batch_size, trial.seed)
    trial.fit(Pretraining(model), examples, setup.train)
    AnySeriesPipeline(None, model.eval()).save(trial.folder / "model", NOTE, license="mit")
    metrics = {"held-out draws, untrained": before, "held-out draws": held_out_nats(model, held_out)}
    sets = {} if trial.smoke else protocol.development_sets(data_dir)
    drawn = {"drawn functions": protocol.drawn_set(2 if trial.smoke else protocol.COUNT)}
    cache, tables = trial.folder.parent / "processes", {}
    for name, which in (("trained", model), ("untrained", bank)):
        tables[name] = protocol.compare(which, sets | drawn, cache, trial.reporter.say)
        real = {row: scores for row, scores in tables[name].items() if not row.startswith("drawn")} or tables[name]
        metrics |= {f"{what}{', untrained' * (which is bank)}": x for what, x in protocol.summary(real).items()}
    if not trial.smoke:
        tables["others"] = protocol.compare(model, protocol.other_sets(data_dir), cache, trial.reporter.say)
        metrics |= {f"{what}, other sets": x for what, x in protocol.summary(tables["others"]).items()}
    spikes = protocol.spikes(model, sets or drawn)
    for name in ("ours", "running median"):
        metrics[f"area under the curve for spikes, {name}"] = float(np.mean([row[name] for row in spikes.values()]))
    channels = protocol.several_channels(model, Path() if trial.smoke else data_dir, 8 if trial.smoke else 300)
    metrics |= {f"1,000 series, {what}": x for what, x in protocol.speed(model, 8 if trial.smoke else 1000).items()}
    if not trial.smoke and (data_dir / "physionet2012").is_dir():
        rows = protocol.physionet_rows(model, data_dir / "physionet2012")
        metrics |= {f"PhysioNet rows MSE, {who}": error for who, error in rows.items()}
    examples_of = (protocol.hide(sets[name], how)[0] for name, how, *_ in EXAMPLES if name in sets)
    shown = [{what: column.tolist() for what, column in protocol.curves(model, gap).items()} for gap in examples_of]
    return Score(metrics, tables | {"spikes": spikes, "channels": channels, "examples": shown}, parameters(model))


def held_out_nats(model: AnySeries, examples: PriorExamples) -> float:
    """Return the mean negative log-likelihood of the hidden observations of fixed draws, in nats per observation."""
    objective = Pretraining(model).eval()
    total = count = 0.0
    with torch.inference_mode():
        for index in np.array_split(np.arange(len(examples.lengths)), max(1, len(examples.lengths) // 32)):
            batch: Batch = examples.batch(index, None)
            loss = objective(batch)
            total, count = total + float(loss.sum), count + float(loss.count)
    return total / count


def figures(result: Result) -> Figures:
    """Draw what was answered for six real series, and three draws of each component of the prior."""
    shown = result["cases"][CASE]["curves"][0]["examples"]
    return {"components": _components()} | ({"series": _series(shown)} if shown else {})


def _series(shown: list[dict[str, list[float]]]) -> Figure:
    """Draw six real series with hidden observations, and the predictions and bands of any-series.

    `shown` has what `gaps.curves` returned for each of `EXAMPLES`, with lists for arrays.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 9), layout="constrained")
    for axis, (name, how, time, value), one in zip(figure.subplots(3, 2).flat, EXAMPLES, shown, strict=True):
        part = {what: np.asarray(column) for what, column in one.items()}
        grid, hidden = part["grid"], part["hidden"].astype(bool)
        axis.fill_between(grid, part["lower 0.95"], part["upper 0.95"], color="C0", alpha=0.15, lw=0, label="95 %")
        axis.fill_between(grid, part["lower 0.68"], part["upper 0.68"], color="C0", alpha=0.3, lw=0, label="68 %")
        axis.plot(grid, part["mean"], color="C0", label="any-series")
        axis.plot(grid, part["process"], color="C1", lw=1, label="process")
        for edge in ("process lower", "process upper"):
            axis.plot(grid, part[edge], color="C1", lw=0.7, ls=":", label="95 % of it" if "lower" in edge else None)
        axis.plot(grid, part["line"], color="0.6", lw=0.8, label="line")
        axis.plot(part["times"][~hidden], part["values"][~hidden], "k.", ms=5, label="seen")
        axis.plot(part["times"][hidden], part["values"][hidden], "o", mfc="w", mec="C3", ms=4, label="hidden")
        low, high = part["values"].min(), part["values"].max()
        axis.set_ylim(low - 0.4 * (high - low), high + 0.4 * (high - low))
        axis.set(xlabel=time, ylabel=value)
        axis.set_title(f"{name}, {'half' if how == 'random' else 'a block'} hidden", fontsize=10)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=8)
    return figure


def _components() -> Figure:
    """Draw three samples of each component of the prior, and six whole draws."""
    from matplotlib.figure import Figure

    span, numbers = torch.full((60,), 50.0, dtype=torch.float64), prior.Numbers(3, 0, np.arange(60))
    at = torch.linspace(0, 50, 200, dtype=torch.float64).expand(60, -1)
    covariance = prior.process_kernel(numbers, 50, at, span) + 1e-6 * torch.eye(200, dtype=torch.float64)
    process = (torch.linalg.cholesky(covariance) @ numbers.normal(110, 200)[..., None])[..., 0]
    drawn = {"process": process}
    for part in (prior.trend, prior.season, prior.jumps, prior.plateaus, prior.pulses):
        shape = part(numbers, 120, at, span)
        drawn[part.__name__] = shape[shape.amax(1) - shape.amin(1) > 1e-6]
    figure = Figure(figsize=(9, 9), layout="constrained")
    axes = figure.subplots(4, 3)
    for axis, (name, curves) in zip(axes.flat, drawn.items(), strict=False):
        for curve in curves[:3]:
            axis.plot(at[0], curve / curve.abs().max())
        axis.set_title(name)
    rows = prior.draw(3, 0, np.arange(40))
    for axis, i in zip(axes.flat[6:], (1, 3, 8, 13, 21, 30), strict=True):
        for channel in rows.channels[i].unique()[:3]:
            of_channel = (rows.channels[i] == channel) & ~rows.padding[i]
            (shown,) = axis.plot(rows.times[i][of_channel], rows.values[i][of_channel], ".")
            hidden = of_channel & rows.hidden[i]
            axis.plot(rows.times[i][hidden], rows.values[i][hidden], "o", mfc="none", color=shown.get_color())
        axis.set_title("a draw; circles are hidden")
    for axis in axes.flat:
        axis.set_xticks([])
    return figure


RECIPE = Recipe(
    name="prior",
    run=run,
    ours=PriorSetup(),
    smoke={"hours": 8 / STEPS_PER_HOUR},
    figures=figures,
    rows=(
        Row("nats of held-out draws", CASE, "held-out draws", simple="held-out draws, untrained"),
        Row("rows nearer than the line", CASE, "nearer than the line (within 1 %)", aim="1"),
        Row("rows nearer than a process for each series", CASE, "nearer than the process", aim="≥ 0.67"),
        Row("rows likelier than that process", CASE, "likelier than the process", aim="≥ 0.5"),
        Row("share within the 68 % band", CASE, "inside 68", aim="0.62 to 0.76"),
        Row("share within the 95 % band", CASE, "inside 95", aim="0.92 to 0.98"),
        Row("area under the curve for spikes", CASE, "area under the curve for spikes, ours",
            simple="area under the curve for spikes, running median", aim="≥ 0.9"),
        Row("times as fast as that process, 1,000 series", CASE, "1,000 series, times as fast", aim="≥ 20"),
    ),
)  # fmt: skip
