"""PhysioNet 2012: records read by hand, standardised without the test set, and hidden by halves."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import _physionet
from rotarymae.errors import InputError
from rotarymae.series import SeriesDataset
from rotarymae_experiments.data import physionet

CHALLENGE = Path(__file__).resolve().parents[3] / "shared" / "data" / "physionet2012"
A = "Time,Parameter,Value\n00:00,RecordID,7\n00:00,Age,54\n00:00,Weight,-1\n01:30,HR,80\n01:30,HR,90\n47:15,HR,70\n"
B = "Time,Parameter,Value\n00:00,RecordID,5\n00:00,Age,60\n00:06,Temp,36.6\n"


def put(folder, a=A, b=B, file="7.txt"):
    _physionet.put(folder, "set-a", {file: a})
    _physionet.put(folder, "set-b", {"5.txt": b})
    return folder


def test_read_by_hand(tmp_path):
    data = physionet.read(put(tmp_path))
    assert data.ids.tolist() == [5, 7] and data.channel_names == ("Age", "HR", "Temp", "Weight")
    assert data.channels is not None
    rows = zip(data.times, data.channels, data.values[:, 0], strict=True)
    assert [(time, data.channel_names[channel], value) for time, channel, value in rows] == [
        (0.0, "Age", 60.0),
        (0.1, "Temp", 36.6),
        (0.0, "Age", 54.0),
        (0.0, "Weight", -1.0),  # unknown stays a value
        (1.5, "HR", 85.0),  # two at one minute
        (47.25, "HR", 70.0),
    ]


def test_files_that_are_missing_or_not_as_published(tmp_path):
    with pytest.raises(InputError, match=r"set-a.tar.gz is missing. .*https://physionet.*ODC-By.*--data-dir"):
        physionet.read(tmp_path)
    wrong = ("01:30,HR", "0130,HR,80", "01:30,HR,high")
    every = [{"a": A.replace("01:30,HR,80", line)} for line in wrong]
    for given in (*every, {"a": A.replace("Time,", "Hour,")}, {"a": ""}, {"file": "notes.txt"}):
        with pytest.raises(InputError, match=r"set-a.tar.gz is not as published"):
            physionet.read(put(tmp_path, **given))
    (tmp_path / "set-a.tar.gz").write_bytes(b"no archive")
    with pytest.raises(InputError, match=r"set-a.tar.gz is not as published .*fetch it anew"):
        physionet.read(tmp_path)


def test_the_split_and_the_scale(tmp_path):
    data = physionet.read(_physionet.write(tmp_path / "made", 60))
    sets = physionet.prepare(data)
    parts = [set(part.ids.tolist()) for part in (sets.train, sets.validation, sets.test)]
    assert [len(part) for part in parts] == [38, 10, 12]
    assert set.union(*parts) == set(range(130_000, 130_060))
    known = [np.concatenate([p.values[p.channels == c, 0] for p in (sets.train, sets.validation)]) for c in range(5)]
    for name, values in zip(data.channel_names or (), known, strict=True):
        if name != "pH":  # never changes
            assert abs(values.mean()) < 1e-9 and abs(values.std() - 1) < 1e-9, name
    # Units of the test records change nothing in what is trained on, and their outliers go.
    test = np.isin(np.repeat(data.ids, data.lengths), sets.test.ids)
    values = np.array(data.values)
    first = int(np.flatnonzero(test & (data.channels == 1))[0])
    values[first] = 1e6
    again = physionet.prepare(replace(data, values=values))
    np.testing.assert_array_equal(again.train.values, sets.train.values)
    assert len(again.test.times) == len(sets.test.times) - 1


def test_the_second_day_from_the_first():
    """Fifty records of two variables; one record ends at hour 24, and a slip of the pen is predicted, not learnt."""
    draw = np.random.default_rng(0)
    times = [np.sort(draw.uniform(0, 48, 30)) for _ in range(50)]
    names = [np.array(["HR", "pH"])[draw.integers(0, 2, 30)] for _ in range(50)]
    values = [np.where(name == "HR", draw.normal(80, 9, 30), draw.normal(7, 1, 30)) for name in names]
    data = SeriesDataset.from_arrays(times, values, names)
    parts = physionet.prepare_forecasting(data)
    assert [len(part) for part in (parts.train, parts.validation, parts.visible, parts.hidden)] == [30, 10, 10, 10]
    assert parts.visible.ids.tolist() == parts.hidden.ids.tolist()
    assert not {*parts.train.ids, *parts.validation.ids} & {*parts.hidden.ids}
    assert parts.visible.times.max() < 24 <= parts.hidden.times.min()
    for channel in (0, 1):
        low, high = data.values[data.channels == channel].min(), data.values[data.channels == channel].max()
        one = int(np.flatnonzero(data.channels == channel)[0])
        whole = np.concatenate([part.values[part.channels == channel] for part in parts])
        assert 0 <= whole.min() < 0.1 and 0.9 < whole.max() <= 1
        assert np.isclose((data.values[one] - low) / (high - low), whole, atol=1e-12).any()
    ended, slip = parts.visible.ids[3], parts.visible.ids[4]
    kept = ~((np.repeat(data.ids, data.lengths) == ended) & (data.times >= 24))
    values = np.array(data.values)
    owner, late = np.repeat(data.ids, data.lengths) == slip, data.times >= 24
    values[np.flatnonzero(owner & late)[0]] = values[np.flatnonzero(owner & ~late)[0]] = 1e4
    again = physionet.prepare_forecasting(replace(data, values=values).mask_observations(kept))
    assert ended not in again.visible.ids and len(again.visible) == 9
    at = again.hidden.ids.tolist().index(slip)
    assert again.hidden[at].values.max() == 1.0 and again.visible[at].values.max() < 1.0
    assert len(again.visible[at].times) == len(parts.visible[4].times) - 1


def test_what_is_known_at_admission_is_static(tmp_path):
    admitted = "00:00,Gender,-1\n00:00,ICUType,3\n00:00,Height,170\n01:30,HR,80"
    a = A.replace("01:30,HR,80", admitted) + "47:30,Weight,70\n47:45,Weight,-1\n"
    data = physionet.with_static(physionet.read(put(tmp_path, a)))
    assert data.ids.tolist() == [5, 7] and data.channel_names == ("HR", "Temp", "Weight")
    static = {name: column.tolist() for name, column in data.static.items()}
    unknown = pytest.approx(np.nan, nan_ok=True)  # -1, as of Gender and of Weight, is unknown
    assert static == {"Age": [60.0, 54.0], "Height": [unknown, 170.0], "ICUType": [unknown, 3.0]}
    assert data.channels is not None
    weights = data.channels == 2
    assert data.times[weights].tolist() == [47.5] and data.values[weights, 0].tolist() == [70.0]


def test_a_record_with_nothing_but_static_columns_is_left_out(tmp_path):
    only = "Time,Parameter,Value\n00:00,Age,60\n00:00,Weight,70\n"
    assert physionet.with_static(physionet.read(put(tmp_path, b=only))).ids.tolist() == [7]


def test_hours_by_hand(tmp_path):
    a = "Time,Parameter,Value\n00:00,Age,54\n01:10,HR,80\n01:50,HR,90\n03:00,Temp,37\n05:00,HR,60\n"
    data = physionet.with_static(physionet.read(put(tmp_path, a, A.replace("7", "5"))))
    hours = physionet.hourly(data).select(np.array([1]))  # record 7
    assert hours.channel_names == ("HR", "Temp") and hours.static["Age"].tolist() == [54.0]
    found = sorted(zip(hours.times.tolist(), hours.channels.tolist(), hours.values[:, 0].tolist(), strict=True))
    assert found == [(1.0, 0, 85.0), (3.0, 1, 37.0), (5.0, 0, 60.0)]


def test_outcomes_and_splits(tmp_path):
    folder = _physionet.write(tmp_path / "made", 30)
    data = physionet.read(folder)
    died = physionet.read_outcomes(folder, data)
    lines = [line.split(",") for name in "ab" for line in (folder / f"Outcomes-{name}.txt").read_text().split()[1:]]
    assert died.tolist() == [int(dict(lines)[str(number)]) for number in data.ids]
    (split,) = physionet.read_splits(folder)
    assert [len(part) for part in (split.train, split.validation, split.test)] == [18, 6, 6]
    assert {*split.train, *split.validation, *split.test} == set(data.ids.tolist())
    (folder / "Outcomes-b.txt").unlink()
    with pytest.raises(InputError, match=r"Outcomes-b.txt is missing. .*https://physionet"):
        physionet.read_outcomes(folder, data)


@pytest.mark.parametrize(
    "content, message",
    [
        (None, r"splits.json holds no splits \(FileNotFoundError.*\{"),
        ("[]", "holds no splits"),
        ('{"a": [{"train": [1], "test": [2]}]}', r"holds no splits \(KeyError: 'validation'"),
        ('{"a": [{"train": [1], "validation": [2], "test": [1]}]}', "a record is in two parts of a split"),
    ],
)
def test_splits_that_are_none(tmp_path, content, message):
    if content is not None:
        (tmp_path / "splits.json").write_text(content)
    with pytest.raises(InputError, match=message):
        physionet.read_splits(tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(not CHALLENGE.is_dir(), reason=f"{CHALLENGE} is not there")
def test_the_challenges_own_files():
    data = physionet.read(CHALLENGE)
    assert len(data) == 8000 and len(data.channel_names or ()) == 41
    assert data.times.min() == 0 and data.times.max() <= 48
    sets = physionet.prepare(data)
    assert [len(part) for part in (sets.train, sets.validation, sets.test)] == [5120, 1280, 1600]
