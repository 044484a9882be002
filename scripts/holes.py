"""Hide holes of 1, 4, 16 and 64 median gaps, and the end, in series that a fit did not see; score answers and bands.

    python scripts/holes.py glucose --minutes 2
    python scripts/holes.py vitals --data shared/data --further 7000
    python scripts/holes.py plasticc --data shared/data --further 2000

Tables: glucose (generated: 120 days of a sensor, every 5 minutes, with meals), days (the same, 60 series of five
days), season (generated: a wave, its harmonic, a trend and noise), walk (generated), stays (generated: 134 hospital
stays of up to 4,000 values in nine channels), vitals (heart rate and mean pressure of PhysioNet 2012), plasticc (six
bands, 1,500 objects), co2 (statsmodels; one series, scored on the training series, eight times with other holes). A
quarter of the series is held out. Every hole is of one channel, between two of its observations. Errors are in the unit
of each channel, over the better one of straight line and mean; 1.02 is "no worse". A second figure is of standardised
values, in which no bright object outweighs all others. The same figures follow for any-series, which trains on no
table. With --further, so many other objects of PLAsTiCC or records of PhysioNet are scored, too.

Then every series is forecast from eight times in its second half, for a quarter of the series (of vitals the second
day, of co2 400 weeks). By time ahead, errors are over the best of the last value, the value of one season before,
drift, and mean of the series.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from pathlib import Path

import numpy as np

import rotarymae
from rotarymae.interpolation import interpolate
from rotarymae.metrics import SCALED_RMSE
from rotarymae.partners.baselines import INTERPOLATION, predict_simply
from rotarymae.pipeline import Pipeline
from rotarymae.queries import as_queries
from rotarymae.scoring import evaluate_forecasts
from rotarymae.seasons import find_season
from rotarymae.series import SeriesDataset, channel_index
from rotarymae.train import train
from rotarymae.training.cost import Plan
from rotarymae.training.fit_config import FitConfig
from rotarymae.untrained import interpolate_any

LENGTHS = (1, 4, 16, 64)  # median gaps of the channel
HOLES = 3  # per series; of a single series so many that an eighth of it is hidden, at most forty
DRAWS = 4  # of holes in the same series: a share of 68 % among 150 hidden values is known to 4 points only
COPIES = 8  # of a single series, with holes of their own
PUBLIC = {"plasticc": 1500, "vitals": 1200}  # objects or records, to learn from and to score
LEAST = 20  # hidden observations of a channel, to be scored


def glucose(days: int = 120, seed: int = 0) -> SeriesDataset:
    """Generate days of a glucose sensor: a daily rhythm, three meals, and a smooth random walk."""
    draw, hours = np.random.default_rng(seed), np.arange(288) / 12
    times, values = [], []
    level = draw.normal(130, 20)
    for _ in range(days):
        curve = level + 10 * np.sin(2 * np.pi * (hours - 5) / 24)
        for meal in (7, 12.5, 19):
            since = (hours - meal - draw.normal(0, 0.7)).clip(0)
            curve = curve + draw.gamma(4, 18) * since * np.exp(1 - since)
        walk, pace = np.zeros(288), 0.0
        for i in range(1, 288):
            pace = 0.85 * pace + draw.normal()
            walk[i] = 0.985 * walk[i - 1] + pace
        seen = draw.random(288) > 0.03
        times.append(5.0 * np.arange(288)[seen])
        values.append(np.round(curve + walk + draw.normal(0, 1.5, 288))[seen])
    return SeriesDataset.from_arrays(times, values)


def public(name: str, data: Path, part: slice) -> SeriesDataset:
    """Return some light curves of PLAsTiCC, or heart rates and mean pressures of PhysioNet 2012 ("vitals").

    Objects (or records) are in a random order, which is always the same; those of `part` in it are returned. Records
    with fewer than five values are left out.
    """
    from rotarymae_experiments.data import physionet, plasticc

    whole = plasticc.read(data / "plasticc")[0] if name == "plasticc" else physionet.read(data / "physionet2012")
    whole = whole.select(np.sort(np.random.default_rng(0).permutation(len(whole))[part]))
    if name == "plasticc":
        return whole
    names = np.array(whole.channel_names, dtype=object)[channel_index(whole)]
    kept = np.isin(names, ("HR", "MAP"))
    parts = [np.flatnonzero(kept[a:b]) + a for a, b in zip(whole.offsets, whole.offsets[1:], strict=False)]
    parts = [rows for rows in parts if len(rows) > 4]
    columns = (np.asarray(whole.times), np.asarray(whole.values), names)
    return SeriesDataset.from_arrays(*([column[rows] for rows in parts] for column in columns), duplicates="mean")


def table(name: str, data: Path) -> SeriesDataset:
    """Return a data set by its name."""
    draw = np.random.default_rng(0)
    if name == "glucose":
        return glucose()
    if name == "days":
        days = glucose(300)
        parts = [days[i] for i in range(300)]
        times = [
            np.concatenate([np.asarray(parts[i + d].times) + 1440 * d for d in range(5)]) for i in range(0, 300, 5)
        ]
        values = [np.concatenate([np.asarray(parts[i + d].values)[:, 0] for d in range(5)]) for i in range(0, 300, 5)]
        return SeriesDataset.from_arrays(times, values)
    if name == "season":
        times = [np.sort(draw.uniform(0, 240, 240)) for _ in range(200)]
        phases = draw.uniform(0, 2 * np.pi, (200, 2))
        trends = draw.normal(0, 0.01, 200)
        values = [
            np.sin(t * np.pi / 12 + a) + 0.5 * np.sin(t * np.pi / 6 + b) + trend * t + 0.2 * draw.normal(size=240)
            for t, (a, b), trend in zip(times, phases, trends, strict=True)
        ]
        return SeriesDataset.from_arrays(times, values)
    if name == "stays":  # 134 of up to 4,000 values in nine channels that share a slow cause
        columns: tuple[list[np.ndarray], ...] = ([], [], [])
        for _ in range(134):
            rows = int(np.exp(draw.uniform(np.log(200), np.log(4000))))
            t, channel = np.sort(draw.uniform(0, rows / 18, rows)), draw.integers(0, 9, rows)
            grid = np.arange(0, rows / 18 + 1, 0.25)
            cause, each = (np.cumsum(draw.normal(size=(len(grid), n)), axis=0) for n in (1, 9))
            level = 80 + 10 * draw.normal(size=9) + 1.5 * cause * np.linspace(-1, 1, 9) + each
            x = [np.interp(at, grid, level[:, c]) for at, c in zip(t, channel, strict=True)]
            for column, part in zip(columns, (t, np.array(x) + draw.normal(size=rows), channel), strict=True):
                column.append(part)
        return SeriesDataset.from_arrays(*columns)
    if name == "walk":
        steps = [draw.random(300) < 0.8 for _ in range(200)]
        return SeriesDataset.from_arrays(
            [np.flatnonzero(seen) for seen in steps], [np.cumsum(draw.normal(size=300))[seen] for seen in steps]
        )
    if name == "co2":
        from statsmodels.datasets import co2

        weeks = co2.load_pandas().data["co2"].dropna()  # pyright: ignore
        days = weeks.index.to_numpy().astype("datetime64[D]").astype(float)
        return SeriesDataset.from_arrays([days], [weeks.to_numpy()])
    return public(name, data, slice(PUBLIC[name]))


def holes(dataset: SeriesDataset, length: int, count: int, seed: int = 0) -> np.ndarray:
    """Return which observations [n] lie in `count` random holes of each series, each of one channel."""
    draw, hidden = np.random.default_rng([length, seed]), np.zeros(len(dataset.times), bool)
    channels = channel_index(dataset)
    for begin, end in zip(dataset.offsets, dataset.offsets[1:], strict=False):
        for _ in range(count):
            rows = np.arange(begin, end)
            rows = rows[channels[rows] == draw.choice(channels[rows])]
            times = np.asarray(dataset.times[rows])
            gaps = np.diff(times)
            if len(rows) < 8 or not (gaps > 0).any():
                continue
            gap = np.median(gaps[gaps > 0])
            if length * gap <= (times[-1] - times[0]) / 2:
                start = times[draw.integers(1, len(rows) - 1)] - draw.random() * gap
                hidden[rows[1:-1][(times[1:-1] >= start) & (times[1:-1] < start + length * gap)]] = True
    return hidden


def ends(dataset: SeriesDataset) -> np.ndarray:
    """Return which observations [n] are the last tenth of their series."""
    place = np.arange(len(dataset.times)) - np.repeat(dataset.offsets[:-1], dataset.lengths)
    return place >= np.repeat(np.maximum(np.ceil(0.9 * dataset.lengths), 1), dataset.lengths)


def score(pipeline: Pipeline, train_part: SeriesDataset, test: SeriesDataset, masks: list[np.ndarray]) -> str:
    """Return one line of figures: errors by channel, relative to the better of line and mean, and coverage.

    Args:
        masks: bool [n] each, which observations of `test` are hidden; their figures are pooled.
    """
    columns = [_predictions(pipeline, train_part, test, hidden) for hidden in masks if hidden.any()]
    channels, truth, ours, untrained, line, mean, *inside = (
        np.concatenate(parts) for parts in zip(*columns, strict=True)
    )
    known = [c for c in np.unique(channels) if (channels == c).sum() >= LEAST]
    rows = np.isin(channels, known)
    held = [np.mean(part[rows]) for part in inside]
    scaling, figures = pipeline.require_series().values, []
    widths = np.zeros((len(truth), len(scaling.transforms) - 1))
    for answer, scaled in ((ours, False), (ours, True), (untrained, False), (untrained, True)):
        guesses = [truth, answer, line, mean]
        if scaled:
            guesses = [scaling.transform(np.column_stack([guess, widths]), channels)[:, 0] for guess in guesses]
        by_method = [
            [np.sqrt(np.mean((guess - guesses[0])[channels == c] ** 2)) for c in known] for guess in guesses[1:]
        ]
        ratios = by_method[0] / np.minimum(by_method[1], by_method[2])
        figures.append(f"{np.exp(np.mean(np.log(ratios))):.3f} ({' '.join(f'{ratio:.3f}' for ratio in ratios)})")
    model, untrained_too = (f"{raw}, standardised {scaled}" for raw, scaled in (figures[:2], figures[2:]))
    inside_bands = f"inside {held[0]:.1%} and {held[1]:.1%}"
    return f"{rows.sum():6d} hidden, error {model}, {inside_bands}; any-series {untrained_too}"


def _predictions(
    pipeline: Pipeline, train_part: SeriesDataset, test: SeriesDataset, hidden: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Return, for hidden observations: channel, truth, the values of the model, of any-series, line and mean.

    Behind these stands, for each band of the model, whether it holds the truth.
    """
    names, errors = pipeline.require_series().value_names, pipeline.require_series().errors
    owner = np.repeat(np.arange(len(test)), test.lengths)
    inside = np.isin(owner, np.unique(owner[hidden]))
    part = test.select(np.unique(owner[hidden]))
    seen, gone = part.mask_observations(~hidden[inside]), part.mask_observations(hidden[inside])
    answer = interpolate(pipeline, seen, as_queries(gone, pipeline.require_series()))
    any_series = rotarymae.load("any-series").require_autoencoder()
    untrained = interpolate_any(any_series, seen.with_values([*names, *errors]), as_queries(gone), errors)
    truth = np.asarray(gone.with_values(names).values)[:, 0]
    parts = (part.with_values(names) for part in (train_part, seen, gone))
    simple = predict_simply(INTERPOLATION, *parts)
    guesses = [simple[name][:, 0] for name in ("linear_interpolation", "mean")]
    held = [(lower[:, 0] <= truth) & (truth <= upper[:, 0]) for lower, upper in answer.bands.values()]
    return channel_index(gone), truth, answer.mean[:, 0], untrained.mean[:, 0], *guesses, *held


def forecasts(name: str, pipeline: Pipeline, test: SeriesDataset) -> list[str]:
    """Return a line for each time ahead: the error over that of the best simple forecast, and each method's."""
    spans = test.times[test.offsets[1:] - 1] - test.times[test.offsets[:-1]]
    horizon = {"vitals": 24.0, "co2": 2800.0}.get(name, float(np.median(spans)) / 4)
    value = next(iter(evaluate_forecasts(pipeline, test, horizon).values()))
    lines = []
    for row in value["by_distance"]:
        errors = {method: scores[SCALED_RMSE] for method, scores in row["methods"].items()}
        best = min(error for method, error in errors.items() if method != "model")
        figures = ", ".join(f"{method} {error:.4g}" for method, error in errors.items())
        inside = " and ".join(f"{share:.1%}" for share in row["share_inside_band"].values())
        lines.append(
            f"{name} above {row['above']:g} gaps ahead: {row['hidden_observations']:6d} hidden, "
            f"error {errors['model'] / best:.3f} ({figures}), inside {inside}"
        )
    return lines


def main() -> None:
    """Fit by defaults, and print a line for each kind of hole."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=("glucose", "days", "season", "walk", "stays", "vitals", "plasticc", "co2"))
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--further", type=int, default=0, help="score so many other objects of PLAsTiCC or records of PhysioNet, too"
    )
    options = parser.parse_args()
    if options.further and options.table not in PUBLIC:
        parser.error(f"--further scores other series of {' and '.join(PUBLIC)} only")
    warnings.simplefilter("ignore")
    dataset = table(options.table, options.data)
    order = np.random.default_rng(1).permutation(len(dataset))
    several, quarter = len(dataset) > 10, len(dataset) // 4
    test = dataset.select(np.sort(order[:quarter]) if several else np.zeros(COPIES, int))
    train_part = dataset.select(np.sort(order[quarter:])) if several else dataset
    with tempfile.TemporaryDirectory() as folder:
        config = FitConfig(seed=options.seed, minutes=options.minutes)
        pipeline = train(train_part, None, config, plan=Plan(Path(folder), config)).pipeline
    for length in LENGTHS:
        most = max(1, min(40, len(dataset.times) // (8 * length)))
        masks = [holes(test, length, HOLES if several else most, seed) for seed in range(DRAWS if several else 1)]
        if any(mask.any() for mask in masks):
            print(f"{options.table} {length:3d} gaps: {score(pipeline, train_part, test, masks)}", flush=True)
    print(f"{options.table} the end:  {score(pipeline, train_part, test, [ends(test)])}", flush=True)
    if options.further:
        first = PUBLIC[options.table]
        others = public(options.table, options.data, slice(first, first + options.further))
        for length in LENGTHS:
            masks = [holes(others, length, HOLES)]
            print(f"further {length:3d} gaps: {score(pipeline, train_part, others, masks)}", flush=True)
        print(*forecasts(options.table, pipeline, others), sep="\n", flush=True)
    print(f"season {find_season(train_part).time:.4g}")
    print(*forecasts(options.table, pipeline, test if several else dataset), sep="\n")


if __name__ == "__main__":
    main()
