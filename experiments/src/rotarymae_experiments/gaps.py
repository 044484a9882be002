"""Gaps in real series, filled by simple methods and by a model: the protocol of `any-series`.

Of each set up to 60 series of at least 20 observations (at most 200 are used); of each, half of the observations are
hidden at random, or a quarter as one block. Errors are in units of each series' own spread, pooled over all hidden
observations of a set. A Gaussian process (scikit-learn; Matérn 3/2 + squared exponential + white noise) is fitted to
each series by marginal likelihood; its answers are kept in a file, because they take minutes.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from statsmodels.datasets import co2, elnino, sunspots

from rotarymae.any_series import AnySeries
from rotarymae.partners.baselines import LINE, predict_simply
from rotarymae.pipeline import AnySeriesPipeline
from rotarymae.queries import Queries, as_queries
from rotarymae.series import SeriesDataset, channel_index
from rotarymae.series import hide as hold_out
from rotarymae.untrained import interpolate_any
from rotarymae_experiments import prior
from rotarymae_experiments.data.shared import mse
from rotarymae_experiments.regular_grid import HALF_WIDTHS

COUNT, LEAST, MOST = 60, 20, 200
HIDING = ("random", "block")
BANDS = ("u", "g", "r", "i", "z", "y")
VITALS = ("HR", "Temp", "MAP", "Urine")
Series = tuple[np.ndarray, np.ndarray]  # (times [n], values [n]) of one channel


@dataclass(frozen=True, eq=False)
class Gap:
    """One series of n observations: times and values [n], and hidden, bool [n], which are to be predicted."""

    times: np.ndarray
    values: np.ndarray
    hidden: np.ndarray


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions at n times, those of several series one after the other.

    Attributes:
        mean: [n].
        std: [n] standard deviation, or half the width of the central 68.27 % interval.
        bands: {share: (lower [n], upper [n])}, the central intervals that hold 0.68 and 0.95.
    """

    mean: np.ndarray
    std: np.ndarray
    bands: dict[float, tuple[np.ndarray, np.ndarray]]


def development_sets(data_dir: Path) -> dict[str, list[Series]]:
    """Return {name: up to 60 series} by which the model's design was chosen.

    These are PLAsTiCC's six bands, four vital signs of PhysioNet 2012, atmospheric CO2, and channels of JapaneseVowels.
    Sets whose folder (plasticc, physionet2012, uea) is not in `data_dir` are left out.
    """
    from rotarymae_experiments.data import physionet, plasticc, uea

    sets: dict[str, list[Series]] = {}
    if (data_dir / "plasticc").is_dir():
        curves = plasticc.read(data_dir / "plasticc")[0]
        sets |= {f"PLAsTiCC {band}": _series(curves, c) for c, band in enumerate(BANDS)}
    if (data_dir / "physionet2012").is_dir():
        records = physionet.read(data_dir / "physionet2012")
        assert records.channel_names is not None, "variables are channels"
        sets |= {f"PhysioNet {name}": _series(records, records.channel_names.index(name)) for name in VITALS}
    table = co2.load_pandas().data["co2"].dropna()  # pyright: ignore
    sets["CO2"] = _pieces(table.index.to_numpy().astype("datetime64[D]").astype(float), table.to_numpy())
    if (data_dir / "uea").is_dir():
        sets["JapaneseVowels"] = _columns(uea.read(data_dir / "uea", "JapaneseVowels").train)
    return sets


def other_sets(data_dir: Path) -> dict[str, list[Series]]:
    """Return {name: 60 series} of sets by which nothing was chosen: BasicMotions and Epilepsy, sunspots, and El Niño.

    The first two are left out if there is no folder uea in `data_dir`.
    """
    from rotarymae_experiments.data import uea

    sets: dict[str, list[Series]] = {}
    if (data_dir / "uea").is_dir():
        sets |= {name: _columns(uea.read(data_dir / "uea", name).train) for name in ("BasicMotions", "Epilepsy")}
    spots = sunspots.load_pandas().data
    sets["sunspots"] = _pieces(spots["YEAR"].to_numpy(float), spots["SUNACTIVITY"].to_numpy(float))  # pyright: ignore
    months = elnino.load_pandas().data.to_numpy(float)[:, 1:].ravel()  # pyright: ignore
    sets["El Niño"] = _pieces(np.arange(len(months), dtype=float), months)
    return sets


def _columns(dataset: SeriesDataset) -> list[Series]:
    """Return 60 series: the start of random value columns of random series that are long enough and not constant."""
    draw, columns = np.random.default_rng(1), []
    while len(columns) < COUNT:
        one = dataset[int(draw.integers(len(dataset)))]
        column = np.asarray(one.values, float)[:MOST, int(draw.integers(one.values.shape[1]))]
        if len(column) >= LEAST - 2 and column.std() > 0:
            columns.append((np.asarray(one.times, float)[:MOST], column))
    return columns


def drawn_set(count: int, seed: int = 2 * 10**6) -> list[Series]:
    """Return `count` functions of one channel and at least 20 observations, drawn from the prior by `seed`."""
    functions: list[Series] = []
    start = 0
    while len(functions) < count:
        rows = prior.draw(seed, 0, np.arange(start, start + 4 * count))
        start += 4 * count
        for times, values, channels, padding in zip(rows.times, rows.values, rows.channels, rows.padding, strict=True):
            real = ~padding
            if int(channels.max()) == 0 and int(real.sum()) >= LEAST and float(values[real].std()) > 1e-6:
                functions.append((times[real].numpy(), values[real].numpy()))
    return functions[:count]


def _series(dataset: SeriesDataset, channel: int) -> list[Series]:
    """Return up to 60 series: one channel (its number) of random series where it is long enough and not constant.

    Values are those of the first value column, at most the first 200.
    """
    series = []
    for i in np.random.default_rng(0).permutation(len(dataset)):
        one = dataset[int(i)]
        of_channel = one.channels == channel
        times, values = np.asarray(one.times)[of_channel], np.asarray(one.values)[of_channel, 0]
        if len(times) >= LEAST and values.std() > 0:
            series.append((times[:MOST].astype(float), values[:MOST].astype(float)))
        if len(series) == COUNT:
            break
    return series


def _pieces(times: np.ndarray, values: np.ndarray) -> list[Series]:
    """Return 60 random stretches of 60 to 199 observations of one long series (times and values [n])."""
    draw = np.random.default_rng(0)
    lengths = draw.integers(60, MOST, COUNT)
    starts = [int(draw.integers(len(times) - n)) for n in lengths]
    return [(times[s : s + n], values[s : s + n]) for s, n in zip(starts, lengths, strict=True)]


def hide(series: list[Series], how: str, seed: int = 7) -> list[Gap]:
    """Hide half of each series' observations at random (`how` "random"), or a quarter of them as a block ("block")."""
    draw, gaps = np.random.default_rng(seed), []
    for times, values in series:
        n, hidden = len(times), np.zeros(len(times), bool)
        if how == "random":
            hidden[draw.permutation(n)[: n // 2]] = True
        else:
            start = int(draw.integers(n - n // 4 + 1))
            hidden[start : start + n // 4] = True
        gaps.append(Gap(times, values, hidden))
    return gaps


def line(gap: Gap, at: np.ndarray | None = None) -> np.ndarray:
    """Return the values of straight lines between visible observations; beyond the first and last, the nearest value.

    They are for the times `at` [m], or with None for the hidden times.
    """
    return np.interp(gap.times[gap.hidden] if at is None else at, gap.times[~gap.hidden], gap.values[~gap.hidden])


def curves(model: AnySeries, gap: Gap, points: int = 200) -> dict[str, np.ndarray]:
    """Return a series with its gap, and what model, Gaussian process and line predict at even times over its span.

    Returns:
        {name: array}: "times", "values" and "hidden" [n] of the series; [points] "grid" (the times), "mean" of the
        model and its band edges "lower 0.68", "upper 0.68", "lower 0.95" and "upper 0.95", "process" with "process
        lower" and "process upper" (95 %), and "line".
    """
    grid = np.linspace(gap.times.min(), gap.times.max(), points)
    seen = SeriesDataset.from_arrays([gap.times[~gap.hidden]], [gap.values[~gap.hidden]], duplicates="mean")
    ours = interpolate_any(model, seen, Queries(grid, None, np.array([0, points])))
    process = gaussian_process(gap, grid)
    arrays = {"times": gap.times, "values": gap.values, "hidden": gap.hidden, "grid": grid, "mean": ours.mean[:, 0]}
    for share, (lower, upper) in ours.bands.items():
        arrays |= {f"lower {share:g}": lower[:, 0], f"upper {share:g}": upper[:, 0]}
    lower, upper = process.bands[0.95]
    arrays |= {"process": process.mean, "process lower": lower, "process upper": upper}
    return arrays | {"line": line(gap, grid)}


def gaussian_process(gap: Gap, at: np.ndarray | None = None) -> Predictions:
    """Fit a Gaussian process to the visible observations of a series, and predict at the times `at`.

    None means the hidden times. Standard deviations include the noise of an observation.
    """
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

    times, values = gap.times[~gap.hidden], gap.values[~gap.hidden]
    gaps = np.diff(np.unique(times))
    unit = float(np.median(gaps)) if len(gaps) else 1.0
    sizes, lengths = (1e-3, 1e3), (0.1, 1e4)
    rough = ConstantKernel(1.0, sizes) * Matern(3.0, lengths, nu=1.5)
    smooth = ConstantKernel(1.0, sizes) * RBF(10.0, lengths)
    process = GaussianProcessRegressor(rough + smooth + WhiteKernel(0.1, (1e-6, 1e2)), normalize_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of hyperparameters at their bounds
        process.fit((times / unit)[:, None], values)
    query_times = gap.times[gap.hidden] if at is None else at
    mean, std = process.predict((query_times / unit)[:, None], return_std=True)
    return _normal(mean, std)  # pyright: ignore


def _normal(mean: np.ndarray, std: np.ndarray) -> Predictions:
    """Return predictions by normal distributions, with their 68 and 95 % bands; mean and std are [n]."""
    half = {share: HALF_WIDTHS[share] * std for share in (0.68, 0.95)}
    return Predictions(mean, std, {share: (mean - away, mean + away) for share, away in half.items()})


def with_model(model: AnySeries, gaps: list[Gap]) -> Predictions:
    """Return a model's predictions at the hidden times of all series, asked at once; one series after the other."""
    seen = [(gap.times[~gap.hidden], gap.values[~gap.hidden]) for gap in gaps]
    dataset = SeriesDataset.from_arrays(*zip(*seen, strict=True), duplicates="mean")  # pyright: ignore
    offsets = np.cumsum([0, *(int(gap.hidden.sum()) for gap in gaps)])
    query_times = np.concatenate([gap.times[gap.hidden] for gap in gaps])
    answer = interpolate_any(model, dataset, Queries(query_times, None, offsets))
    assert answer.std is not None, "Student's t has a spread"
    bands = {share: (lower[:, 0], upper[:, 0]) for share, (lower, upper) in answer.bands.items()}
    return Predictions(answer.mean[:, 0], answer.std[:, 0], bands)


def score(gaps: list[Gap], predicted: Predictions) -> dict[str, float]:
    """Return how good predictions are, over all hidden observations of a set, whose unit is their series' spread.

    The scores are "rmse"; "nll", the median of -log N(value; mean, std²) in nats; and the shares of values within the
    two bands, "inside 68" and "inside 95". Predictions are series after series, in the order of `gaps`.
    """
    truth = np.concatenate([gap.values[gap.hidden] for gap in gaps])
    spread = np.concatenate([np.full(gap.hidden.sum(), gap.values.std()) for gap in gaps])
    error, std = (predicted.mean - truth) / spread, np.maximum(predicted.std / spread, 1e-6)
    nats = 0.5 * (error / std) ** 2 + np.log(std) + 0.5 * np.log(2 * np.pi)
    scores = {"rmse": np.sqrt(np.square(error).mean()), "nll": np.median(nats)}
    for share, (lower, upper) in predicted.bands.items():
        scores[f"inside {100 * share:.0f}"] = ((truth >= lower) & (truth <= upper)).mean()
    return {name: float(value) for name, value in scores.items()}


def with_processes(gaps: list[Gap], cache: Path) -> tuple[Predictions, float]:
    """Return the predictions of a Gaussian process for each series, at hidden times, and the processor seconds it took.

    They are read from the file `cache` (.npz); if there is none, they are computed and written to it.
    """
    if not cache.exists():
        started = time.process_time()
        answers = [gaussian_process(gap) for gap in gaps]
        seconds = time.process_time() - started
        cache.parent.mkdir(parents=True, exist_ok=True)
        mean, std = (np.concatenate([getattr(one, name) for one in answers]) for name in ("mean", "std"))
        np.savez(cache, seconds=seconds, mean=mean, std=std)
    with np.load(cache) as kept:
        return _normal(kept["mean"], kept["std"]), float(kept["seconds"])


def compare(
    model: AnySeries, sets: dict[str, list[Series]], cache: Path, said: Callable[[str], None] = print
) -> dict[str, dict[str, float]]:
    """Score line, Gaussian processes and model on each set, for each way of hiding: return {"SET, HOW": scores}.

    Scores are the root mean square errors "line", "process" and "ours", "process nll", "ours nll", "inside 68" and
    "inside 95" of the model, "process seconds", "ours seconds", and the number of "series".

    Args:
        model: `any-series`, trained or not.
        sets: {name: series}.
        cache: folder that keeps the predictions of the processes.
        said: called with a line of text for each row.
    """
    rows = {}
    for name, series in sets.items():
        for how in HIDING:
            gaps = hide(series, how)
            processes, process_seconds = with_processes(gaps, cache / f"{name.replace(' ', '-')}-{how}.npz")
            started = time.process_time()
            answers = with_model(model, gaps)
            seconds = time.process_time() - started
            process, ours = score(gaps, processes), score(gaps, answers)
            straight = score(gaps, _normal(np.concatenate([line(gap) for gap in gaps]), np.ones(len(answers.mean))))
            row = {"line": straight["rmse"], "process": process["rmse"], "ours": ours["rmse"]}
            row |= {"process nll": process["nll"], "ours nll": ours["nll"]}
            row |= {share: ours[share] for share in ("inside 68", "inside 95")}
            row |= {"process seconds": process_seconds, "ours seconds": seconds, "series": len(gaps)}
            rows[f"{name}, {how}"] = row
            said(f"{name}, {how}: " + ", ".join(f"{key} {value:.3f}" for key, value in row.items()))
    return rows


def summary(rows: dict[str, dict[str, float]]) -> dict[str, float]:
    """Sum up the rows of `compare`: return {what: number}.

    These are the number of rows, the shares of rows in which the model is nearer than line and process and likelier
    than the process, the mean shares inside its bands, and how many times as fast as the processes it is.
    """
    every = list(rows.values())

    def mean(each: Callable[[dict[str, float]], float]) -> float:
        """Return the mean of `each(row)` over all rows."""
        return float(np.mean([each(row) for row in every]))

    seconds = [sum(row[f"{who} seconds"] for row in every) for who in ("process", "ours")]
    return {
        "rows": float(len(every)),
        "nearer than the line (within 1 %)": mean(lambda row: row["ours"] <= 1.01 * row["line"]),
        "nearer than the process": mean(lambda row: row["ours"] < row["process"]),
        "likelier than the process": mean(lambda row: row["ours nll"] < row["process nll"]),
        "inside 68": mean(lambda row: row["inside 68"]),
        "inside 95": mean(lambda row: row["inside 95"]),
        "times as fast as the process": seconds[0] / max(seconds[1], 1e-9),
    }


# ── other questions to the same model ───────────────────────────────────────────────────────────────────────────────


def spikes(model: AnySeries, sets: dict[str, list[Series]], seed: int = 11) -> dict[str, dict[str, float]]:
    """Plant spikes, and return for each set how well they are found: {set: {"ours": area, "running median": area}}.

    Areas are those under the ROC curve. One observation in thirty, at least one of each series, is moved up or down by
    five robust deviations (1.4826 times the median absolute deviation of its series). "running median" scores an
    observation by its distance from the median of five neighbours.
    """
    from sklearn.metrics import roc_auc_score

    draw, by_set, pipeline = np.random.default_rng(seed), {}, AnySeriesPipeline(None, model)
    for name, series in sets.items():
        planted, odd, simple = [], [], []
        for times, values in series:
            deviation = 1.4826 * np.median(np.abs(values - np.median(values)))
            deviation = deviation if deviation > 0 else values.std()
            which = np.zeros(len(values), bool)
            which[draw.permutation(len(values))[: max(1, len(values) // 30)]] = True
            moved = values + which * draw.choice([-5.0, 5.0], len(values)) * deviation
            order = np.argsort(times, kind="stable")
            window = np.lib.stride_tricks.sliding_window_view(np.pad(moved[order], 2, mode="edge"), 5)
            planted.append(moved[order])
            odd.append(which[order])
            simple.append(np.abs(moved[order] - np.median(window, axis=1)) / deviation)
        at = [np.sort(times, kind="stable") for times, _ in series]
        # A time that is observed twice would be one observation.
        at = [times + 1e-6 * np.arange(len(times)) * (times[-1] - times[0]) / len(times) for times in at]
        scores = pipeline.observation_scores(SeriesDataset.from_arrays(at, planted))[:, 0]
        truth = np.concatenate(odd)
        areas = (roc_auc_score(truth, each) for each in (scores, np.concatenate(simple)))
        by_set[name] = dict(zip(("ours", "running median"), map(float, areas), strict=True))
    return by_set


def lending(model: AnySeries, dataset: SeriesDataset, seed: int = 5) -> dict[str, float]:
    """Hide a stretch of one channel of each series, and predict it with and without the other channels.

    The stretch is a random quarter of the series' span; hidden is the channel with the most observations in it. Series
    for which that is impossible are left out.

    Returns:
        {"series": number of series, "with the others": error, "alone": error}; errors are root mean squares in units of
        the channel's spread.
    """
    draw, times, channels = np.random.default_rng(seed), np.asarray(dataset.times), channel_index(dataset)
    values, used = np.asarray(dataset.values)[:, 0], np.zeros(len(dataset), bool)
    gone, alone, spread = np.zeros(len(times), bool), np.zeros(len(times), bool), np.zeros(len(times))
    for i, rows in enumerate(np.split(np.arange(len(times)), dataset.offsets[1:-1])):
        span = times[rows[-1]] - times[rows[0]]
        start = times[rows[0]] + draw.uniform(0, 0.75) * span
        inside = rows[(times[rows] >= start) & (times[rows] <= start + 0.25 * span)]
        if not len(inside) or len(np.unique(channels[rows])) < 2:
            continue
        same = rows[channels[rows] == np.bincount(channels[inside]).argmax()]
        hidden = np.intersect1d(inside, same)
        if len(same) - len(hidden) >= 4 and values[same].std() > 0:
            used[i], gone[hidden], alone[same], spread[hidden] = True, True, True, values[same].std()
    part, kept = dataset.select(np.flatnonzero(used)), np.repeat(used, dataset.lengths)
    queries, errors = as_queries(part.mask_observations(gone[kept])), {"series": float(used.sum())}
    for name, seen in (("with the others", ~gone), ("alone", alone & ~gone)):
        mean = interpolate_any(model, part.mask_observations(seen[kept]), queries).mean[:, 0]
        errors[name] = float(np.sqrt(np.square((mean - values[gone]) / spread[gone]).mean()))
    return errors


def several_channels(model: AnySeries, data_dir: Path, count: int = 300) -> dict[str, dict[str, float]]:
    """Return {set: scores of `lending`} for drawn functions, PLAsTiCC's bands and PhysioNet's vital signs.

    Sets whose folder (plasticc, physionet2012) is not in `data_dir` are left out; of each, up to `count` series count.
    """
    from rotarymae_experiments.data import physionet, plasticc

    drawn = prior.draw(4 * 10**6, 0, np.arange(4 * count))
    several = [i for i in range(4 * count) if int(drawn.channels[i].max()) > 0][:count]
    parts = [
        [part[i][~drawn.padding[i]].numpy() for i in several] for part in (drawn.times, drawn.values, drawn.channels)
    ]
    tables = {"drawn functions": SeriesDataset.from_arrays(*parts, duplicates="mean")}
    if (data_dir / "plasticc").is_dir():
        curves = plasticc.read(data_dir / "plasticc")[0]
        tables["PLAsTiCC"] = curves.select(np.random.default_rng(0).permutation(len(curves))[:count])
    if (data_dir / "physionet2012").is_dir():
        records = physionet.read(data_dir / "physionet2012")
        records = records.select(np.random.default_rng(0).permutation(len(records))[:count])
        vitals = ("HR", "SysABP", "DiasABP", "MAP", "NISysABP", "NIDiasABP", "NIMAP", "Temp", "RespRate")
        kept = np.isin(np.array(records.channel_names)[channel_index(records)], vitals)
        there = np.logical_or.reduceat(kept, records.offsets[:-1])
        inside = np.repeat(there, records.lengths)
        tables["PhysioNet"] = records.select(np.flatnonzero(there)).mask_observations(kept[inside])
    return {name: lending(model, table) for name, table in tables.items()}


def physionet_rows(model: AnySeries, folder: Path) -> dict[str, float]:
    """Return mean squared errors of model ("ours") and straight lines ("line") at hidden times of PhysioNet 2012.

    The protocol is that of the recipe `physionet`, case "rows"; `folder` has the challenge's files.
    """
    from rotarymae_experiments.data import physionet

    test = physionet.prepare(physionet.read(folder)).test
    visible, gone, _ = hold_out(test, 0.5, by="time")
    truth = np.asarray(gone.values)
    guesses = {
        "ours": interpolate_any(model, visible, as_queries(gone)).mean,
        "line": predict_simply([LINE], visible, visible, gone)[LINE],
    }
    return {name: mse(guess, truth) for name, guess in guesses.items()}


def speed(model: AnySeries, count: int = 1000) -> dict[str, float]:
    """Measure how long model and Gaussian processes take to predict half of the values of `count` drawn functions.

    Returns:
        {"ours seconds", "process seconds", "times as fast"}, in processor time; the model is asked for all at once.
    """
    gaps = hide(drawn_set(count), "random")
    timings = {}
    for name, answer in {
        "ours": lambda: with_model(model, gaps),
        "process": lambda: [*map(gaussian_process, gaps)],
    }.items():
        started = time.process_time()
        answer()
        timings[f"{name} seconds"] = time.process_time() - started
    return timings | {"times as fast": timings["process seconds"] / timings["ours seconds"]}
