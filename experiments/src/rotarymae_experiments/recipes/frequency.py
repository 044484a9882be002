"""Which frequencies survive interpolation? One or two waves of 0 to 24 Hz, half of the 100 points hidden.

Appendix B.4, Figures 3 to 5 of arXiv:2505.20535. `rotarymae-experiments run frequency`. Expect a mean squared error of
single sines of 0.0112 at 5 Hz and 1.1 times that at 20 Hz (3 seeds: 1.09 to 1.12), where the optimum has 0.0102 at
every frequency. Scale `small` takes 3.1 hours on one core.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from rotarymae.batch import Batch
from rotarymae.config import RoMAEConfig
from rotarymae.counter_rng import counter_uniform
from rotarymae.model import MaskedAutoencoder
from rotarymae.training import Pretraining, TrainConfig
from rotarymae_experiments import SMOKE, Figures, Recipe, Result, Row, Score, Setup, Trial, parameters, regular_grid
from rotarymae_experiments.data import frequency as data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CASES: dict[str, data.Waveform] = {"sine": "sine", "square": "square", "cycloid": "cycloid"}
VALIDATION = 500  # series
TIMES = np.linspace(0, 1, data.POINTS)
SINGLE, PAIRS, VALID, TRAIN = 1, 2, 3, 10  # seeds of the generator; training adds the trial's
EXAMPLES = ((1, 5), (11, 20))  # Hz; the first is Figure 5's


@dataclass(frozen=True)
class FrequencySetup(Setup):
    """The configuration.

    Attributes:
        position_scale: Multiply times in [0, 1] by this to get positions.
        series: Train on this many generated series.
        per_frequency: Test on this many series per frequency (Figure 3).
        per_pair: Test on this many series per pair of frequencies (Figure 4).
        queries: Ask the decoder for this many hidden points per series and step of training; None asks for all 50.
        beta: Weigh the likelihood of pre-training by this power of the variance (β-NLL, see `Pretraining`).
        model: Build this autoencoder.
        train: Train it like this.
    """

    cases: tuple[str, ...] = tuple(CASES)
    seeds: tuple[int, ...] = (0, 1, 2)
    position_scale: float = 1.0
    series: int = 10_000
    per_frequency: int = 200
    per_pair: int = 20
    queries: int | None = None
    beta: float = 0.0
    model: RoMAEConfig = field(default_factory=lambda: RoMAEConfig.named("tiny", decoder_attention="joint"))
    train: TrainConfig = field(default_factory=TrainConfig)


def run(setup: FrequencySetup, case: str, trial: Trial) -> Score:
    """Train and score a waveform (`case`) from the trial's seed: errors by frequency, and those of the optimum."""
    kind = CASES[case]
    train = data.generate(setup.series, seed=TRAIN + trial.seed, kind=kind)
    valid = data.generate(min(VALIDATION, setup.series // 2), seed=VALID, kind=kind)
    model = MaskedAutoencoder(setup.model)
    examples_of = {"train": examples(train, setup, case, trial.seed), "valid": examples(valid, setup, case)}
    trial.fit(Pretraining(model, beta=setup.beta), examples_of["train"], setup.train, examples_of["valid"])

    single = data.single_frequencies(setup.per_frequency, seed=SINGLE, kind=kind)
    mean, std = predict(model, single, setup)
    best = data.posterior(single, kind)
    metrics, curves = _by_frequency(single, mean, best.mean)
    metrics |= regular_grid.calibrations(single.noisy, ~single.seen, mean, std, best)
    guesses = {
        "linear interpolation": regular_grid.linear_interpolation(TIMES, single.noisy, single.seen),
        "the training mean": np.broadcast_to(train.noisy.mean(0), single.noisy.shape),
    }
    metrics |= {f"MSE of {name}": float(_errors(guess, single.noisy, single).mean()) for name, guess in guesses.items()}

    pairs = data.two_frequencies(setup.per_pair, seed=PAIRS, kind=kind)
    mean, std = predict(model, pairs, setup)
    best = data.posterior(pairs, kind)
    pair_metrics, shown = _by_pair(pairs, mean, best.mean)
    for pair in EXAMPLES:
        i = int(np.argmax((pairs.frequencies == pair).all(axis=1)))
        example = regular_grid.example(pairs.noisy, pairs.seen, mean, std, best, i)
        shown[f"{pair[0]} and {pair[1]} Hz"] = example | {"clean": pairs.clean[i]}
    return Score(metrics | pair_metrics, curves | shown, parameters(model))


def examples(
    series: data.FrequencySeries, setup: FrequencySetup, case: str, seed: int = 0
) -> regular_grid.DrawnExamples:
    """Return training examples of the series: 50 points are seen, drawn anew in each epoch, and hidden ones predicted.

    `setup` says at what positions, and how many hidden points; `seed` is that of the draws; `case` is not used.
    """

    def draw(index: np.ndarray, epoch: int | None) -> Batch:
        """Return the batch of the series at `index` in this epoch; epoch None always gives the same one."""
        order = counter_uniform(seed, -1 if epoch is None else epoch, index)(data.POINTS).argsort(1)
        everything = regular_grid.on_grid(series.noisy[index], TIMES, setup.position_scale)
        visible, hidden = order[:, : data.SEEN], order[:, data.SEEN :]
        return Batch(index, everything.select(visible), everything.select(hidden[:, : setup.queries]))

    return regular_grid.DrawnExamples(len(series.noisy), data.POINTS, draw)


def predict(
    model: MaskedAutoencoder, series: data.FrequencySeries, setup: FrequencySetup
) -> tuple[np.ndarray, np.ndarray | None]:
    """Predict the hidden points of S series from those seen: return mean and standard deviation, both [S, 100].

    They are NaN at seen points; the latter is None for a model that predicts no spread.
    """
    everything = regular_grid.on_grid(series.noisy, TIMES, setup.position_scale)
    mean, std = regular_grid.predict_masked(model, everything, series.seen, ~series.seen)
    return mean[..., 0], None if std is None else std[..., 0]


def _errors(predicted: np.ndarray, target: np.ndarray, series: data.FrequencySeries, fft: bool = False) -> np.ndarray:
    """Return the mean squared error over the hidden points of each series, [S], from arrays [S, 100].

    With `fft` it is that of the amplitude spectra of the hidden points.
    """
    error = data.fft_error if fft else data.time_error
    return error(data.hidden(predicted, series), data.hidden(target, series))


def _all_errors(series: data.FrequencySeries, mean: np.ndarray, best: np.ndarray) -> dict[str, np.ndarray]:
    """Return {name: error of each series [S]}, by the model's `mean` and by that of the optimum, `best`, both [S, 100].

    The names are "MSE" (against noisy values), "clean MSE" and "FFT MSE" (of spectra), for the optimum with "optimum "
    before them.
    """
    errors = {}
    for prefix, predicted in (("", mean), ("optimum ", best)):
        errors[f"{prefix}MSE"] = _errors(predicted, series.noisy, series)
        errors[f"{prefix}clean MSE"] = _errors(predicted, series.clean, series)
        errors[f"{prefix}FFT MSE"] = _errors(predicted, series.noisy, series, fft=True)
    return errors


def _by_frequency(
    series: data.FrequencySeries, mean: np.ndarray, best: np.ndarray
) -> tuple[dict[str, float], dict[str, Any]]:
    """Return the metrics and the curves of Figure 3, from series with equally many of each frequency, in order.

    Curves are [25], by frequency: means over its series, and standard deviations (", spread"), the paper's bars.
    """
    every = _all_errors(series, mean, best)
    metrics, curves = {}, {"frequency": np.arange(data.HIGHEST + 1)}
    for name, errors in every.items():
        each = errors.reshape(data.HIGHEST + 1, -1)
        metrics[name], curves[name], curves[f"{name}, spread"] = float(errors.mean()), each.mean(1), each.std(1)
    for name in ("MSE", "clean MSE", "optimum MSE", "optimum clean MSE"):
        metrics |= {f"{name} at {hertz} Hz": float(curves[name][hertz]) for hertz in (5, 20)}
    metrics["20 Hz / 5 Hz"] = metrics["MSE at 20 Hz"] / metrics["MSE at 5 Hz"]
    metrics["20 Hz / 5 Hz, clean"] = metrics["clean MSE at 20 Hz"] / metrics["clean MSE at 5 Hz"]
    metrics["optimum 20 Hz / 5 Hz"] = metrics["optimum MSE at 20 Hz"] / metrics["optimum MSE at 5 Hz"]
    return metrics, curves


def _by_pair(
    series: data.FrequencySeries, mean: np.ndarray, best: np.ndarray
) -> tuple[dict[str, float], dict[str, Any]]:
    """Return the metrics and the curves of Figure 4: mean errors by pair of frequencies, [25, 25], symmetric.

    They are NaN on the diagonal.
    """
    every = _all_errors(series, mean, best)
    count, (i, j) = data.HIGHEST + 1, series.frequencies.T
    curves = {}
    for name, errors in every.items():
        total, number = np.zeros((count, count)), np.zeros((count, count))
        for at in ((i, j), (j, i)):
            np.add.at(total, at, errors)
            np.add.at(number, at, 1)
        curves[f"pairs, {name}"] = np.where(number > 0, total / np.maximum(number, 1), np.nan)
    return {f"pairs, {name}": float(errors.mean()) for name, errors in every.items()}, curves


def figures(result: Result) -> Figures:
    """Draw Figures 3 to 5 for each waveform: error by frequency, by pair of frequencies, and examples."""
    from rotarymae_experiments import figures as draw

    drawn = {}
    for case, part in result["cases"].items():
        shown = part["curves"][0]
        names = {"RoMAE": "MSE", "optimum": "optimum MSE", "RoMAE, against clean": "clean MSE"}
        lines = {name: shown[metric] for name, metric in names.items()}
        figure = draw.curves(shown["frequency"], lines, x_label="frequency (Hz)", y_label="mean squared error")
        drawn[case] = figure
        drawn[f"{case}-pairs"] = _matrix(np.array(shown["pairs, MSE"], np.float64))
        names = [f"{pair[0]} and {pair[1]} Hz" for pair in EXAMPLES]
        panels = {name: regular_grid.panel(TIMES, shown[name], "optimum") for name in names}
        drawn[f"{case}-examples"] = draw.predictions(panels, x_label="time (s)")
    return drawn


def _matrix(errors: np.ndarray) -> Figure:
    """Draw errors [25, 25] by pair of frequencies as a picture with a logarithmic scale of colours."""
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.2, 4.9), layout="constrained", facecolor="white", dpi=110)
    axes = figure.subplots()
    picture = axes.imshow(errors, origin="lower", norm=LogNorm())
    figure.colorbar(picture, label="mean squared error")
    axes.set(xlabel="one frequency (Hz)", ylabel="the other (Hz)")
    return figure


COMMON: dict[str, Any] = {"epochs": 200, "weight_decay": 0.01, "keep_best": True}
DOUBT = "Times in [0, 1] turn the fastest rotary frequency by 1 radian over the whole series."
RECIPE = Recipe(
    name="frequency",
    table="Appendix B.4, Figures 3 to 5",
    paper=FrequencySetup(
        train=TrainConfig(batch_size=64, base_lr=1e-3, betas=(0.9, 0.999), warmup_steps=200, **COMMON)
    ),
    ours=FrequencySetup(
        position_scale=100.0,
        queries=25,
        beta=0.5,
        model=regular_grid.NARROW,
        train=TrainConfig(batch_size=32, base_lr=3e-3, betas=(0.9, 0.95), **COMMON),
    ),
    small={"seeds": (0,), "per_pair": 5},
    paper_small={"train": {"epochs": 1, "batch_size": 8}},
    ours_small={"train": {"epochs": 72}},
    smoke={
        "series": 100,
        "per_frequency": 2,
        "per_pair": 1,
        "model": SMOKE,
        "train": {"epochs": 4, "batch_size": 16, "warmup_steps": 4, "base_lr": 3e-3},
    },
    run=run,
    rows=(
        *(
            row
            for case in CASES
            for row in (
                Row(f"{case}: MSE at 5 Hz", case, "MSE at 5 Hz", simple="optimum MSE at 5 Hz"),
                Row(f"{case}: MSE at 20 Hz", case, "MSE at 20 Hz", simple="optimum MSE at 20 Hz"),
                Row(f"{case}: MSE at 20 Hz / 5 Hz", case, "20 Hz / 5 Hz", "rises linearly above 9 Hz", "–",
                    "optimum 20 Hz / 5 Hz", DOUBT, "about 1"),
                Row(f"{case}: against clean, 20 Hz / 5 Hz", case, "20 Hz / 5 Hz, clean"),
                Row(f"{case}: MSE, all frequencies", case, "MSE", simple="optimum MSE"),
                Row(f"{case}: MSE, two waves", case, "pairs, MSE", simple="pairs, optimum MSE"),
            )
        ),
        *regular_grid.calibration_rows("sine", "sine: "),
    ),
    figures=figures,
)  # fmt: skip
