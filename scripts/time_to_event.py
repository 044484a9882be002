"""Concordance on generated joint trajectories: a marker drives a hazard, and durations are censored.

`python scripts/time_to_event.py --setting level --seeds 1 2 3` prints, for each seed, what the model, its partners and
all of them reach on new patients; what the true risk does, which nobody knows; and what the posterior mean of level and
slope does, which is about the best that the measurements allow.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rotarymae.metrics import survival_metrics
from rotarymae.series import SeriesDataset
from rotarymae.survival import concordance, event_times
from rotarymae.train import train
from rotarymae.training.fit_config import FitConfig

Floats = NDArray[np.float64]
LANDMARK, HORIZON, NOISE, SLOPES = 2.0, 6.0, 0.3, 0.4
YEARS = np.linspace(0, 3 * HORIZON, 6001)  # since the landmark
# The hazard by the marker, whose line goes on as it did: proportional to its exponential, or high on both sides.
SETTINGS: dict[str, Callable[[Floats], Floats]] = {
    "level": lambda marker: 0.12 * np.exp(0.8 * marker.clip(-5, 5)),
    "both-sides": lambda marker: 0.03 * np.exp(np.abs(marker).clip(0, 5)),
}


def cumulated(setting: str, level: Floats, slope: Floats) -> Floats:
    """Return the cumulated hazard [S, YEARS] of patients."""
    hazard = SETTINGS[setting](level[:, None] + slope[:, None] * (LANDMARK + YEARS))
    steps = (hazard[:, 1:] + hazard[:, :-1]) / 2 * np.diff(YEARS)
    return np.concatenate([np.zeros((len(level), 1)), steps.cumsum(1)], 1)


def expected_time(setting: str, level: Floats, slope: Floats) -> Floats:
    """Return the expected time to the event [S], of which no more than the horizon counts."""
    inside = YEARS <= HORIZON
    return np.trapezoid(np.exp(-cumulated(setting, level, slope)[:, inside]), YEARS[inside], axis=1)


def posterior_mean(times: Floats, values: Floats) -> Floats:
    """Return the posterior mean of a patient's level and slope."""
    design = np.stack([np.ones_like(times), times], 1)
    precision = design.T @ design / NOISE**2 + np.diag([1, SLOPES**-2])
    return np.linalg.solve(precision, design.T @ values / NOISE**2)


def run(setting: str, patients: int, new: int, seed: int, config: FitConfig) -> dict[str, object]:
    """Train on generated patients and score new ones."""
    rng, count = np.random.default_rng(seed), patients + new
    level, slope = rng.normal(0, 1, count), rng.normal(0, SLOPES, count)
    visits, values = [], []
    for a, b in zip(level, slope, strict=True):
        visits.append(np.sort(rng.uniform(0, LANDMARK, rng.integers(15, 40))))
        values.append(a + b * visits[-1] + rng.normal(0, NOISE, len(visits[-1])))
    hazards, draws = cumulated(setting, level, slope), rng.exponential(size=count)
    end = np.array([np.interp(draw, one, YEARS, right=np.inf) for draw, one in zip(draws, hazards, strict=True)])
    lost = np.minimum(rng.exponential(1 / 0.12, count), HORIZON)
    y, dataset = event_times(np.minimum(end, lost), end <= lost), SeriesDataset.from_arrays(visits, values)
    known, test = np.arange(patients), np.arange(patients, count)
    began = time.process_time()
    pipeline = train(dataset.select(known), y[known], config).pipeline
    seconds, labels, truth = time.process_time() - began, pipeline.labels, y[test]
    scores = {name: survival_metrics(truth, p, labels) for name, p in pipeline.every(dataset.select(test)).items()}  # type: ignore[arg-type]
    means = np.array([posterior_mean(visits[i], values[i]) for i in test]).T
    for name, parts in (("posterior mean", means), ("true risk", (level[test], slope[test]))):
        expected = expected_time(setting, *parts)
        scores[name] = {"concordance": concordance(truth["time"], truth["event"], expected)}
    return {"setting": setting, "seed": seed, "events": float(y["event"].mean()), "seconds": seconds, "scores": scores}


def main() -> None:
    """Print a line of JSON for each seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--setting", choices=SETTINGS, default="level")
    parser.add_argument("--patients", type=int, default=1000)
    parser.add_argument("--new", type=int, default=1000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--quick", action="store_true", help="train for an epoch, to see that everything runs")
    given = parser.parse_args()
    for seed in given.seeds:
        short = {"pretrain_epochs": 1, "finetune_epochs": 1, "min_steps": 0} if given.quick else {}
        print(
            json.dumps(run(given.setting, given.patients, given.new, seed, FitConfig(seed=seed, **short))), flush=True
        )


if __name__ == "__main__":
    main()
