"""A picture of the oddest observations and stretches of a table, with what lies around them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from rotarymae import plots, system

SHOWN = 3  # oddities of each kind
AROUND = 100  # observations of the same channel that are drawn on either side; two oddities are farther apart


def draw_oddest(scores: Path, picture: Path) -> None:
    """Draw the oddest observations and stretches of a file of scores, at most three of each, as a PNG picture.

    A stretch is a run of neighbouring observations that are odd together, such as a jump or a drift. No picture is
    written if no observation has a score. Raises OSError if a file cannot be read or written.

    Args:
        scores: a .csv or .parquet file that `rotarymae anomalies` has written. If it has several columns of values,
            the first is drawn.
        picture: path of the PNG file.
    """
    table = pq.read_table(scores) if scores.suffix == ".parquet" else _read_csv(scores)
    names = table.column_names
    single, stretch = (
        next(name for name in names if name.endswith(kind)) for kind in ("anomaly_score", "stretch_score")
    )
    value = next(name for name in names[1:] if name not in ("time", "channel"))
    excerpts = [*_oddest(table, value, single, "observation"), *_oddest(table, value, stretch, "stretch")]
    if excerpts:
        with system.replacing(picture) as temporary:
            plots.excerpts(excerpts, value).savefig(temporary, format="png", dpi=160)


def _read_csv(path: Path) -> pa.Table:
    """Read a CSV file of scores; ids and channels, such as 001 and NA, stay text."""
    texts = {name: pa.string() for name in (pyarrow.csv.open_csv(path).schema.names[0], "channel")}
    return pyarrow.csv.read_csv(path, convert_options=pyarrow.csv.ConvertOptions(column_types=texts))


def _oddest(table: pa.Table, value: str, column: str, noun: str) -> Iterator[plots.Excerpt]:
    """Yield excerpts around the three observations with the highest scores, to be drawn, the highest first.

    An excerpt is the observation with up to 100 observations of the same series and channel on either side.
    Observations that are at most 100 away from one chosen before, or have no score, are not chosen: there may be fewer
    than three.

    Args:
        table: what `rotarymae anomalies` has written, a row per observation; limits are marked in a column VALUE_limit.
        value, column: names of the columns of values and of scores.
        noun: what the scores rate, for the title: "observation" marks the chosen observation alone as odd; "stretch"
            marks all observations of the excerpt that have at least half of its score.
    """
    names = table.column_names[:1] + [name for name in table.column_names if name == "channel"]
    codes = [table[name].combine_chunks().dictionary_encode().indices.to_numpy() for name in names]
    group = np.unique(np.stack(codes), axis=1, return_inverse=True)[1]
    score = table[column].to_numpy().astype(float)
    marked = f"{value}_limit"
    marks = table[marked].to_numpy() if marked in table.column_names else np.full(len(score), "")
    sides = (marks == ">").astype(int) - (marks == "<")
    shown: list[tuple[int, int]] = []
    for row in np.argsort(np.nan_to_num(-score, nan=np.inf)):
        rows = np.flatnonzero(group == group[row])
        at = int(np.searchsorted(rows, row))
        if len(shown) == SHOWN or np.isnan(score[row]):
            return
        if any(group[row] == other and abs(at - place) <= AROUND for other, place in shown):
            continue
        shown.append((int(group[row]), at))
        rows = rows[max(0, at - AROUND) : at + AROUND + 1]
        odd = rows == row if noun == "observation" else score[rows] >= score[row] / 2
        name, oddity = ", ".join(str(table[name][row]) for name in names), f"{noun}, score {score[row]:.3g}"
        times, values = (table[name].take(rows).to_numpy() for name in ("time", value))
        yield plots.Excerpt(name, oddity, times, values, odd, sides[rows])
