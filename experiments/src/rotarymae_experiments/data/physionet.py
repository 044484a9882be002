"""PhysioNet 2012: two days of intensive care a record, 41 variables, each measured when somebody measured it.

The PhysioNet/Computing in Cardiology Challenge 2012 (Silva et al., ODC-By 1.0), sets a and b, as a `SeriesDataset`: one
series a record, `times` in hours since admission, channels the variables, and one value an observation in the record's
own unit. Age, Gender, Height, ICUType and Weight are observed at time 0; -1, which stands there for unknown, stays a
value. Values of one variable at one minute are averaged.

For interpolation records are split as HeTVAE (ICLR 2022) and mTAN (ICLR 2021) split them, and standardised: `prepare`;
for forecasts of the second day from the first as t-PatchGNN (ICML 2024) has them: `prepare_forecasting`.
For in-hospital death `with_static` makes columns of what is known at admission, `hourly` turns the rest into one row
per hour, `read_outcomes` reads who died, and `read_splits` which records train and test.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rotarymae.errors import InputError
from rotarymae.series import SeriesDataset, align_labels, read_table
from rotarymae_experiments.data.sources import missing

SETS = ("set-a", "set-b")
HEADER = "Time,Parameter,Value"
OUTCOMES = ("Outcomes-a.txt", "Outcomes-b.txt")
SPLITS = "splits.json"
PARTS = ("train", "validation", "test")
STATIC = ("Age", "Gender", "Height", "ICUType", "Weight")  # known at admission; -1 is unknown
HORIZON = 24.0  # hours that a forecast is made from
LIMITS = (0.001, 0.9995)  # quantiles of the training values; what lies beyond is taken for a slip of the pen


def read(folder: str | Path) -> SeriesDataset:
    """All records of both sets, by number; from set-a.tar.gz and set-b.tar.gz, or unpacked folders of these names.

    Raises:
        InputError: a set that is missing (it says where to get it); a record that is not as it should be, by its line.
    """
    ids: list[int] = []
    lengths: list[int] = []
    times: list[float] = []
    names: list[str] = []
    values: list[float] = []
    for name in SETS:
        for record, text in _records(Path(folder), name):
            before = len(times)
            for number, line in enumerate(text.splitlines()):
                if number == 0 and line.strip() != HEADER:
                    raise InputError(f"{record} of {name} begins with {line[:40]!r}; wanted {HEADER!r}.")
                if number == 0 or not line.strip():
                    continue
                try:
                    clock, variable, value = line.split(",")
                    hour, minute = clock.split(":")
                    time, found = int(hour) + int(minute) / 60, float(value)
                except ValueError:
                    raise InputError(
                        f"{record} of {name}, line {number + 1}: {line[:60]!r}; wanted HH:MM,variable,number."
                    ) from None
                if variable != "RecordID":
                    times.append(time)
                    names.append(variable)
                    values.append(found)
            ids.append(_number(record, name))
            lengths.append(len(times) - before)
    order = np.argsort(ids, kind="stable")
    parts = np.split(np.arange(len(times)), np.cumsum(lengths)[:-1])
    rows = np.concatenate([parts[i] for i in order])
    columns = {
        "id": np.repeat(ids, lengths)[rows],
        "time": np.array(times)[rows],
        "variable": pa.array(names).dictionary_encode().take(pa.array(rows)),
        "value": np.array(values)[rows],
    }
    return SeriesDataset.from_frame(pa.table(columns), channel="variable", duplicates="mean")


@dataclass(frozen=True)
class Prepared:
    """Standardised records. `valid` is a fifth of the training records; they are not in `train`."""

    train: SeriesDataset
    valid: SeriesDataset
    test: SeriesDataset


def prepare(dataset: SeriesDataset) -> Prepared:
    """Four fifths of the records to train on (a fifth of these to validate), one fifth to test, all standardised.

    The split is scikit-learn's with the seeds 42 and 11 of those papers, over records by number (theirs were in the
    order of a folder, which nobody can know). Of every variable the values outside the quantiles `LIMITS` of the
    training and validation records are left out, and the others are shifted and scaled to mean 0 and variance 1 there.
    """
    from sklearn.model_selection import train_test_split

    seen, test = train_test_split(np.arange(len(dataset)), train_size=0.8, random_state=42, shuffle=True)
    train, valid = train_test_split(seen, train_size=0.8, random_state=11, shuffle=True)
    seen = np.asarray(seen)
    keep = _within_limits(dataset, seen)
    values = np.array(dataset.values)
    for own, known in _variables(dataset, seen):
        inside = values[own & known & keep]
        spread = inside.std()
        values[own] = (values[own] - inside.mean()) / (spread if spread > 0 else 1.0)
    clean = replace(dataset, values=values).mask_observations(keep)
    return Prepared(*(clean.select(np.sort(part)) for part in (train, valid, test)))


@dataclass(frozen=True)
class Forecasting:
    """Records to train and validate on, and those of the test: what is known at hour 24, and what came after."""

    train: SeriesDataset
    valid: SeriesDataset
    visible: SeriesDataset
    hidden: SeriesDataset


def prepare_forecasting(dataset: SeriesDataset) -> Forecasting:
    """Three fifths of the records to train on, one to validate and one to test, as t-PatchGNN (ICML 2024) has it.

    Every variable is shifted and scaled to 0 to 1 over all records. Values outside the quantiles `LIMITS` are left
    out, but not of what is to be predicted. Records without a value on either side of hour 24 are not tested.
    """
    from sklearn.model_selection import train_test_split

    seen, test = train_test_split(np.arange(len(dataset)), train_size=0.8, random_state=42, shuffle=True)
    train, valid = train_test_split(seen, train_size=0.75, random_state=42, shuffle=False)
    seen, test = np.asarray(seen), np.sort(test)
    keep = _within_limits(dataset, seen)
    values = np.array(dataset.values)
    for own, _ in _variables(dataset, seen):
        low, high = values[own].min(), values[own].max()
        values[own] = (values[own] - low) / (high - low if high > low else 1.0)
    scaled = replace(dataset, values=values)
    clean = scaled.mask_observations(keep)
    late, record = np.asarray(dataset.times) >= HORIZON, np.repeat(np.arange(len(dataset)), dataset.lengths)
    parts = [keep & ~late, late]
    both = test[np.all([np.isin(test, record[part]) for part in parts], axis=0)]
    inside = np.isin(record, both)
    visible, hidden = (scaled.select(both).mask_observations(part[inside]) for part in parts)
    return Forecasting(clean.select(np.sort(train)), clean.select(np.sort(valid)), visible, hidden)


def _variables(dataset: SeriesDataset, seen: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Of each variable the observations [n] that are its own, and those of the records `seen`, of all variables."""
    assert dataset.channels is not None and dataset.channel_names is not None
    known = np.isin(np.repeat(np.arange(len(dataset)), dataset.lengths), seen)
    for channel in range(len(dataset.channel_names)):
        yield np.asarray(dataset.channels) == channel, known


def _within_limits(dataset: SeriesDataset, seen: np.ndarray) -> np.ndarray:
    """True [n] where a value lies within the quantiles `LIMITS` of its variable in the records `seen`."""
    values, keep = np.asarray(dataset.values)[:, 0], np.ones(len(dataset.times), bool)
    for own, known in _variables(dataset, seen):
        low, high = np.quantile(values[own & known], LIMITS)
        keep &= ~own | ((values >= low) & (values <= high))
    return keep


# ── in-hospital death ───────────────────────────────────────────────────────────────────────────────────────────────


def read_outcomes(folder: str | Path, dataset: SeriesDataset) -> np.ndarray:
    """int64 [S]: 1 where the patient of a record died in hospital, else 0.

    Raises:
        InputError: a file that is missing or has other columns; a record without an outcome.
    """
    tables = []
    for name in OUTCOMES:
        path = Path(folder) / name
        if not path.is_file():
            raise missing(path, "physionet2012")
        tables.append(read_table(path, "csv").select(["RecordID", "In-hospital_death"]))
    outcomes = pa.concat_tables(tables)
    known = np.isin(np.asarray(outcomes["RecordID"]), dataset.ids)
    return align_labels(dataset, outcomes.filter(pa.array(known)), id="RecordID", label="In-hospital_death")


@dataclass(frozen=True)
class Split:
    """Numbers of the records [n] of each part."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


def read_splits(folder: str | Path) -> tuple[Split, ...]:
    """The splits in splits.json: a name → a list of {"train": [numbers], "validation": [..], "test": [..]}.

    Raises:
        InputError: a file that is missing or holds something else; a record in two parts of a split.
    """
    path = Path(folder) / SPLITS
    wanted = '{"splits": [{"train": [record numbers], "validation": [..], "test": [..]}, ..]}'
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        (listed,) = [value for value in content.values() if isinstance(value, list)]
        found = tuple(Split(*(np.array(part[name], np.int64) for name in PARTS)) for part in listed)
    except FileNotFoundError:
        raise InputError(f"{path} is missing. It says which records train and test; wanted {wanted}.") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{path} holds no splits ({type(error).__name__}: {error}); wanted {wanted}.") from None
    for number, split in enumerate(found):
        records = np.concatenate([getattr(split, name) for name in PARTS])
        values, counts = np.unique(records, return_counts=True)
        if (counts > 1).any():
            raise InputError(f"split {number} of {path} has record {values[counts > 1][0]} in two places.")
    return found


def with_static(dataset: SeriesDataset) -> SeriesDataset:
    """The same records with what is known at admission as static columns [S], NaN where unknown, instead of rows.

    Weights measured later stay rows, too. Records of which no row is left are left out.
    """
    assert dataset.channels is not None and dataset.channel_names is not None
    names = np.array(dataset.channel_names)
    variable, values = names[dataset.channels], np.asarray(dataset.values)[:, 0]
    record = np.repeat(np.arange(len(dataset)), dataset.lengths)
    general = np.isin(variable, STATIC)
    at_admission = general & (dataset.times == 0) & (values >= 0)
    static = {}
    for name in STATIC:
        own = at_admission & (variable == name)
        if own.any():
            static[name] = np.full(len(dataset), np.nan)
            static[name][record[own]] = values[own]
    keep = ~general | ((variable == "Weight") & (dataset.times > 0) & (values >= 0))
    some = np.bincount(record[keep], minlength=len(dataset)) > 0
    left = replace(dataset, static=static).select(some).mask_observations(keep[some[record]])
    present = np.unique(np.asarray(left.channels))
    numbers = np.searchsorted(present, np.asarray(left.channels)).astype(np.asarray(left.channels).dtype)
    return replace(left, channels=numbers, channel_names=tuple(names[present].tolist()))


def hourly(dataset: SeriesDataset) -> SeriesDataset:
    """The same records with the mean of each variable and hour, at whole hours."""
    table = dataset.to_arrow("id", channel="variable")
    table = table.set_column(1, "time", pc.call_function("floor", [table["time"]]))
    return SeriesDataset.from_frame(table, "id", channel="variable", static=[*dataset.static], duplicates="mean")


def _records(folder: Path, name: str) -> Iterator[tuple[str, str]]:
    """(file name, text) of each record of a set."""
    packed, unpacked = folder / f"{name}.tar.gz", folder / name
    if packed.is_file():
        try:
            with tarfile.open(packed, "r:gz") as archive:
                for member in archive:
                    file = archive.extractfile(member) if member.isfile() and member.name.endswith(".txt") else None
                    if file is not None:
                        yield Path(member.name).name, file.read().decode("utf-8")
        except (tarfile.TarError, EOFError, OSError, UnicodeDecodeError) as error:
            raise InputError(f"{packed} cannot be read ({error}); remove it and fetch it anew.") from error
    elif unpacked.is_dir():
        for path in sorted(unpacked.glob("*.txt")):
            yield path.name, path.read_text(encoding="utf-8")
    else:
        raise missing(packed, "physionet2012")


def _number(record: str, name: str) -> int:
    stem = Path(record).stem
    if not stem.isdigit():
        raise InputError(f"{name} holds {record}; wanted records named by their number, as 132539.txt.")
    return int(stem)
