"""Draws the picture of docs/field.md, and prints its errors: `python scripts/field_picture.py docs/images/field.png`.

Drifting stations observe a wave that travels over a square. One model reads (time, lat, lon), the other the time alone.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch

from rotarymae import RoMAEInterpolator, SeriesDataset
from rotarymae.interpolation import interpolate
from rotarymae.queries import as_queries

DAYS, ROWS, STEPS, TEST = 400, 60, 1800, 50


def wave(table: Any, day: pd.Series | dict[str, float]) -> np.ndarray:
    """Return the wave of a day [n] at (time in hours, lat, lon): wavelength 8 degrees, period 12 hours."""
    along = np.cos(day["angle"]) * table["lat"] + np.sin(day["angle"]) * table["lon"]
    return np.sin(2 * np.pi * (along / 8 - table["time"] / 12) + day["phase"]).to_numpy()


def draw() -> tuple[Any, list[dict[str, float]]]:
    """Return the observations of all days, and what each day's wave is."""
    rng, tables, days = np.random.default_rng(0), [], []
    for i in range(DAYS):
        day = {"angle": rng.uniform(0, 2 * np.pi), "phase": rng.uniform(0, 2 * np.pi)}
        places = {"time": np.sort(rng.uniform(0, 24, ROWS)), "lat": rng.uniform(-5, 5, ROWS)}
        table = pd.DataFrame({"id": i, **places, "lon": rng.uniform(-5, 5, ROWS)})
        tables.append(table.assign(value=wave(table, day) + 0.05 * rng.normal(size=ROWS)))
        days.append(day)
    return pd.concat(tables, ignore_index=True), days


def read(table: Any, positions: list[str]) -> SeriesDataset:
    """Return the series of a table with these further positions."""
    return SeriesDataset.from_frame(table, values=["value"], positions=positions)


def main(path: str) -> None:
    torch.set_num_threads(1)
    table, days = draw()
    train, test = table[table.id < DAYS - TEST], table[table.id >= DAYS - TEST]
    hidden = np.random.default_rng(1).random(len(test)) < 0.25
    answers = {}
    for name, positions in (("(time, lat, lon)", ["lat", "lon"]), ("time alone", [])):
        started = time.process_time()
        model = RoMAEInterpolator(min_steps=STEPS, pretrain_epochs=1).fit(read(train, positions))
        visible, asked = (read(test[rows], positions) for rows in (~hidden, hidden))
        found = interpolate(model.pipeline_, visible, as_queries(asked, model.pipeline_.preprocessor))
        error = np.sqrt(np.mean((found.mean[:, 0] - asked.values[:, 0]) ** 2))
        inside = np.mean((found.bands[0.95][0] <= asked.values) & (asked.values <= found.bands[0.95][1]))
        print(f"{name}: error {error:.3f}, spread {asked.values.std():.3f}, inside the 95 % band {inside:.3f}, "
              f"{time.process_time() - started:.0f} s of processor time", flush=True)  # fmt: skip
        answers[name] = model, visible
    model, visible = answers["(time, lat, lon)"]
    draw_maps(path, model, visible, test[~hidden], days[DAYS - TEST])


def draw_maps(path: str, model: RoMAEInterpolator, visible: SeriesDataset, table: Any, day: dict[str, float]) -> None:
    """Draw the wave and the model's answer on a map at three times, with the observations within two hours."""
    first = table[table.id == DAYS - TEST]
    lat, lon = (part.ravel() for part in np.meshgrid(np.linspace(-5, 5, 41), np.linspace(-5, 5, 41), indexing="ij"))
    figure, axes = plt.subplots(2, 3, figsize=(9, 6), sharex=True, sharey=True, layout="constrained")
    for column, when in enumerate((6.0, 12.0, 18.0)):
        grid = pd.DataFrame({"id": DAYS - TEST, "time": when, "lat": lat, "lon": lon, "value": 0.0})
        asked = read(grid, ["lat", "lon"])
        found = interpolate(
            model.pipeline_, visible.select(np.array([0])), as_queries(asked, model.pipeline_.preprocessor)
        )
        near = first[(first.time - when).abs() < 2]
        for row, (name, values) in enumerate((("the wave", wave(grid, day)), ("the model", found.mean[:, 0]))):
            part = axes[row, column]
            picture = part.imshow(
                values.reshape(41, 41), origin="lower", extent=(-5, 5, -5, 5), vmin=-1.2, vmax=1.2, cmap="RdBu"
            )
            part.scatter(near.lon, near.lat, c=near.value, vmin=-1.2, vmax=1.2, cmap="RdBu", edgecolors="black", s=30)
            part.set_title(f"{name}, {when:.0f} h")
    for part in axes[:, 0]:
        part.set_ylabel("latitude")
    for part in axes[1]:
        part.set_xlabel("longitude")
    figure.colorbar(picture, ax=axes, label="value", shrink=0.7)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1])
