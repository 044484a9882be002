"""PhysioNet 2012: two days of intensive care a record, 41 variables, each measured when somebody measured it.

The PhysioNet/Computing in Cardiology Challenge 2012 (Silva et al., ODC-By 1.0), sets a and b, as a `SeriesDataset`: one
series a record, `times` in hours since admission, channels the variables, and one value an observation in the record's
own unit. Age, Gender, Height, ICUType and Weight are observed at time 0; -1, which stands there for unknown, stays a
value. Values of one variable at one minute are averaged.

For interpolation records are split as HeTVAE (ICLR 2022) and mTAN (ICLR 2021) split them, and standardised: `prepare`.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from rotarymae.errors import InputError
from rotarymae.series import SeriesDataset

SOURCE = "https://physionet.org/content/challenge-2012/1.0.0/"
SETS = ("set-a", "set-b")
HEADER = "Time,Parameter,Value"
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
    assert dataset.channels is not None and dataset.channel_names is not None
    known = np.isin(np.repeat(np.arange(len(dataset)), dataset.lengths), seen)
    values, keep = np.array(dataset.values), np.ones(len(dataset.times), bool)
    for channel in range(len(dataset.channel_names)):
        own = dataset.channels == channel
        low, high = np.quantile(values[own & known], LIMITS)
        keep &= ~own | ((values[:, 0] >= low) & (values[:, 0] <= high))
        inside = values[own & known & keep]
        spread = inside.std()
        values[own] = (values[own] - inside.mean()) / (spread if spread > 0 else 1.0)
    clean = replace(dataset, values=values).mask_observations(keep)
    return Prepared(*(clean.select(np.sort(part)) for part in (train, valid, test)))


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
            raise InputError(f"{packed} cannot be read ({error}); download it again from {SOURCE}.") from error
    elif unpacked.is_dir():
        for path in sorted(unpacked.glob("*.txt")):
            yield path.name, path.read_text(encoding="utf-8")
    else:
        raise InputError(
            f"{packed} is missing. Download {name}.tar.gz from {SOURCE} (ODC-By 1.0) into {folder}, or say where it "
            "is by --data-dir."
        )


def _number(record: str, name: str) -> int:
    stem = Path(record).stem
    if not stem.isdigit():
        raise InputError(f"{name} holds {record}; wanted records named by their number, as 132539.txt.")
    return int(stem)
