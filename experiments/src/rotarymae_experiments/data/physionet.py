"""PhysioNet 2012: two days of intensive care a record, 41 variables, each measured when somebody measured it.

The PhysioNet/Computing in Cardiology Challenge 2012 (Silva et al., ODC-By 1.0), sets a and b, as a `SeriesDataset`: one
series a record, `times` in hours since admission, channels the variables, and one value an observation in the record's
own unit. Age, Gender, Height, ICUType and Weight are observed at time 0; -1, which stands there for unknown, stays a
value. Values of one variable at one minute are averaged.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from rotarymae.errors import InputError
from rotarymae.series import SeriesDataset
from rotarymae.tables import align_labels
from rotarymae_experiments.data.shared import Parts
from rotarymae_experiments.data.sources import reading

SETS = ("set-a", "set-b")
OUTCOMES = ("Outcomes-a.txt", "Outcomes-b.txt")
SPLITS = "splits.json"
STATIC = ("Age", "Gender", "Height", "ICUType", "Weight")  # known at admission; -1 is unknown
HORIZON = 24.0  # hours that a forecast is made from
LIMITS = (0.001, 0.9995)  # quantiles of the training values; values beyond are taken for slips of the pen


class Forecasting(NamedTuple):
    """Records to train and to validate on; and those of the test, `visible` before hour 24, `hidden` from then on."""

    train: SeriesDataset
    validation: SeriesDataset
    visible: SeriesDataset
    hidden: SeriesDataset


def read(folder: str | Path) -> SeriesDataset:
    """Read both sets, one series per record, sorted by number, from set-a.tar.gz and set-b.tar.gz in the folder.

    Raises:
        InputError: a file that is missing (it says where to get it) or not as published.
    """
    rows: list[tuple[int, float, str, float]] = []
    for path in (Path(folder) / f"{name}.tar.gz" for name in SETS):
        with reading(path, "physionet2012"), tarfile.open(path, "r:gz") as archive:
            for member in archive:
                if member.name.endswith(".txt") and (content := archive.extractfile(member)):
                    number = int(Path(member.name).stem)
                    head, *lines = content.read().decode("utf-8").splitlines()
                    if head != "Time,Parameter,Value":
                        raise ValueError(f"{member.name} begins with {head[:40]!r}")
                    for line in lines:
                        clock, variable, value = line.split(",")
                        hour, minute = clock.split(":")
                        rows.append((number, int(hour) + int(minute) / 60, variable, float(value)))
    rows = sorted((row for row in rows if row[2] != "RecordID"), key=lambda row: row[0])
    columns = dict(zip(("id", "time", "variable", "value"), map(list, zip(*rows, strict=True)), strict=True))
    return SeriesDataset.from_frame(pa.table(columns), channel="variable", duplicates="mean")


def prepare(dataset: SeriesDataset) -> Parts[SeriesDataset]:
    """Split and standardise as HeTVAE (ICLR 2022) and mTAN (ICLR 2021) do: 64 % train, 16 % validate, 20 % test.

    The split is scikit-learn's with the seeds 42 and 11 of those papers, over records by number (theirs were in the
    order of a folder, which nobody can know). Of every variable the values outside the quantiles `LIMITS` of the
    training and validation records are left out, and the others are shifted and scaled to mean 0 and variance 1 there.
    """
    from sklearn.model_selection import train_test_split

    seen, test = train_test_split(np.arange(len(dataset)), train_size=0.8, random_state=42, shuffle=True)
    train, valid = train_test_split(seen, train_size=0.8, random_state=11, shuffle=True)
    keep, known, values = _within_limits(dataset, seen), np.isin(_owners(dataset), seen), np.array(dataset.values)  # pyright: ignore
    for of_variable in _variables(dataset):
        inside = values[of_variable & known & keep]
        values[of_variable] = (values[of_variable] - inside.mean()) / (inside.std() or 1.0)
    clean = replace(dataset, values=values).mask_observations(keep)
    return Parts(*(clean.select(np.sort(part)) for part in (train, valid, test)))


def prepare_forecasting(dataset: SeriesDataset) -> Forecasting:
    """Split and scale as t-PatchGNN (ICML 2024): three fifths to train, one to validate, one to test.

    Every variable is shifted and scaled to 0 to 1 over all records. Values outside the quantiles `LIMITS` of their
    variable in the training and validation records are left out, but not of what is to be predicted. Test records that
    have no value before hour 24, or none after it, are left out.
    """
    from sklearn.model_selection import train_test_split

    seen, test = train_test_split(np.arange(len(dataset)), train_size=0.8, random_state=42, shuffle=True)
    train, valid = train_test_split(seen, train_size=0.75, random_state=42, shuffle=False)
    keep, values = _within_limits(dataset, seen), np.array(dataset.values)  # pyright: ignore
    for of_variable in _variables(dataset):
        low, high = values[of_variable].min(), values[of_variable].max()
        values[of_variable] = (values[of_variable] - low) / (high - low if high > low else 1.0)
    scaled = replace(dataset, values=values)
    clean, late, record = scaled.mask_observations(keep), np.asarray(dataset.times) >= HORIZON, _owners(dataset)
    parts = (keep & ~late, late)
    both = np.sort(test)[np.all([np.isin(np.sort(test), record[part]) for part in parts], axis=0)]
    inside = np.isin(record, both)
    visible, hidden = (scaled.select(both).mask_observations(part[inside]) for part in parts)
    return Forecasting(clean.select(np.sort(train)), clean.select(np.sort(valid)), visible, hidden)


def _owners(dataset: SeriesDataset) -> np.ndarray:
    """Return the index of each observation's record, int [n]."""
    return np.repeat(np.arange(len(dataset)), dataset.lengths)


def _variables(dataset: SeriesDataset) -> Iterator[np.ndarray]:
    """Yield for each variable a mask [n] of the observations of it."""
    for channel in range(len(dataset.channel_names or ())):
        yield np.asarray(dataset.channels) == channel


def _within_limits(dataset: SeriesDataset, seen: np.ndarray) -> np.ndarray:
    """Return a mask [n], True where a value lies within the quantiles `LIMITS` of its variable.

    These are the quantiles in the records with the indices `seen`.
    """
    values, known = np.asarray(dataset.values)[:, 0], np.isin(_owners(dataset), seen)
    keep = np.ones(len(values), bool)
    for of_variable in _variables(dataset):
        low, high = np.quantile(values[of_variable & known], LIMITS)
        keep &= ~of_variable | ((values >= low) & (values <= high))
    return keep


def read_outcomes(folder: str | Path, dataset: SeriesDataset) -> np.ndarray:
    """Read Outcomes-a.txt and Outcomes-b.txt: return int64 [S], 1 where a record's patient died in hospital, else 0.

    Args:
        folder: where they are.
        dataset: the S records.

    Raises:
        InputError: a file that is missing (it says where to get it) or not as published; a record without an outcome.
    """
    tables = []
    for path in (Path(folder) / name for name in OUTCOMES):
        with reading(path, "physionet2012"):
            tables.append(pyarrow.csv.read_csv(path).select(["RecordID", "In-hospital_death"]))
    outcomes = pa.concat_tables(tables)
    known = np.isin(np.asarray(outcomes["RecordID"]), dataset.ids)
    return align_labels(dataset, outcomes.filter(pa.array(known)), id="RecordID", label="In-hospital_death")


def read_splits(folder: str | Path) -> tuple[Parts[np.ndarray], ...]:
    """Read splits of records from FOLDER/splits.json: return the numbers of the records in each part, for each split.

    The file is {NAME: [{"train": [numbers], "validation": [..], "test": [..]}, ..]}, with any name.

    Raises:
        InputError: a file that is missing or holds something else; a record in two parts of a split.
    """
    path = Path(folder) / SPLITS
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        (splits,) = [value for value in content.values() if isinstance(value, list)]
        read = tuple(Parts(*(np.array(part[name], np.int64) for name in Parts._fields)) for part in splits)
        if any(len(np.unique(np.concatenate(split))) < sum(map(len, split)) for split in read):
            raise ValueError("a record is in two parts of a split")
        return read
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(
            f"{path} holds no splits ({type(error).__name__}: {error}); it says which records train and test: "
            '{"splits": [{"train": [record numbers], "validation": [..], "test": [..]}, ..]}.'
        ) from None


def with_static(dataset: SeriesDataset) -> SeriesDataset:
    """Return the records with what is known at admission as static columns, NaN where unknown, instead of observations.

    Weights measured later stay observations. Records without any other observation are left out, and so are channels.
    """
    names = np.array(dataset.channel_names)
    variable, values, record = names[dataset.channels], np.asarray(dataset.values)[:, 0], _owners(dataset)
    general = np.isin(variable, STATIC)
    at_admission = general & (dataset.times == 0) & (values >= 0)
    static = {}
    for name in STATIC:
        rows = at_admission & (variable == name)
        if rows.any():
            static[name] = np.full(len(dataset), np.nan)
            static[name][record[rows]] = values[rows]
    keep = ~general | ((variable == "Weight") & (dataset.times > 0) & (values >= 0))
    some = np.bincount(record[keep], minlength=len(dataset)) > 0
    left = replace(dataset, static=static).select(some).mask_observations(keep[some[record]])
    present, numbers = np.unique(np.asarray(left.channels), return_inverse=True)
    numbers = numbers.astype(np.asarray(left.channels).dtype)
    return replace(left, channels=numbers, channel_names=tuple(names[present].tolist()))


def hourly(dataset: SeriesDataset) -> SeriesDataset:
    """Return the records with one observation per variable and hour, the mean, at the whole hour before."""
    table = dataset.to_arrow("id", channel="variable")
    table = table.set_column(1, "time", pc.call_function("floor", [table["time"]]))
    return SeriesDataset.from_frame(table, "id", channel="variable", static=[*dataset.static], duplicates="mean")
