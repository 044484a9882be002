"""PhysioNet 2012: records read by hand, standardised without the test set, and hidden by halves."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import _physionet
from rotarymae.data import physionet
from rotarymae.errors import InputError
from rotarymae.series import hide

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


def test_unpacked_folders_are_the_same(tmp_path):
    packed = physionet.read(put(tmp_path))
    for name, file, text in (("set-a", "7.txt", A), ("set-b", "5.txt", B)):
        (tmp_path / "open" / name).mkdir(parents=True)
        (tmp_path / "open" / name / file).write_text(text)
    assert physionet.read(tmp_path / "open").fingerprint() == packed.fingerprint()


@pytest.mark.parametrize(
    "a, message",
    [
        (A.replace("Time,", "Hour,"), "7.txt of set-a begins with 'Hour,Parameter,Value'"),
        (A.replace("01:30,HR,80", "01:30,HR"), "7.txt of set-a, line 5: '01:30,HR'; wanted HH:MM,variable,number"),
        (A.replace("01:30,HR,80", "0130,HR,80"), "line 5: '0130,HR,80'"),
        (A.replace("HR,80", "HR,high"), "line 5: '01:30,HR,high'"),
    ],
)
def test_what_is_refused(tmp_path, a, message):
    with pytest.raises(InputError, match=message):
        physionet.read(put(tmp_path, a))


def test_files_that_are_missing_broken_or_strange(tmp_path):
    with pytest.raises(InputError, match=r"set-a.tar.gz is missing. Download .* https://physionet.*--data-dir"):
        physionet.read(tmp_path)
    put(tmp_path, file="notes.txt")
    with pytest.raises(InputError, match=r"set-a holds notes.txt"):
        physionet.read(tmp_path)
    (tmp_path / "set-a.tar.gz").write_bytes(b"no archive")
    with pytest.raises(InputError, match=r"set-a.tar.gz cannot be read.*download it again"):
        physionet.read(tmp_path)


def test_the_split_and_the_scale(tmp_path):
    data = physionet.read(_physionet.write(tmp_path / "made", 60))
    sets = physionet.prepare(data)
    parts = [set(part.ids.tolist()) for part in (sets.train, sets.valid, sets.test)]
    assert [len(part) for part in parts] == [38, 10, 12]
    assert set.union(*parts) == set(range(130_000, 130_060))
    known = [np.concatenate([p.values[p.channels == c, 0] for p in (sets.train, sets.valid)]) for c in range(5)]
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


@pytest.mark.parametrize("by", ["time", "observation"])
def test_halves_are_hidden(tmp_path, by):
    data = physionet.read(_physionet.write(tmp_path / "made"))
    visible, hidden, _ = hide(data, 0.5, 3, by)
    assert visible.ids.tolist() == hidden.ids.tolist() == data.ids.tolist()
    for whole, seen, rest in zip(data, visible, hidden, strict=True):
        cells = [set(zip(part.times, part.channels, strict=True)) for part in (whole, seen, rest)]
        assert cells[1] | cells[2] == cells[0] and not cells[1] & cells[2]
        if by == "time":
            assert not set(seen.times) & set(rest.times)
            assert len(set(seen.times)) == len(set(whole.times)) // 2
        else:
            assert len(seen.times) == len(whole.times) // 2
    assert len(set(visible.lengths.tolist())) > 1
    other, _, _ = hide(data, 0.5, 4, by)
    assert other.fingerprint() != visible.fingerprint()
    with pytest.raises(InputError, match="by='row'"):
        hide(data, 0.5, 3, "row")  # type: ignore[arg-type]


def test_a_record_that_cannot_be_halved_is_in_neither_part(tmp_path):
    data = physionet.read(put(tmp_path, b="Time,Parameter,Value\n00:00,Age,60\n00:00,Weight,70\n"))
    visible, hidden, _ = hide(data, 0.5, 3, "time")
    assert visible.ids.tolist() == hidden.ids.tolist() == [7]
    visible, hidden, _ = hide(data, 0.5, 3, "observation")
    assert visible.ids.tolist() == hidden.ids.tolist() == [5, 7]


@pytest.mark.slow
@pytest.mark.skipif(not CHALLENGE.is_dir(), reason=f"{CHALLENGE} is not there")
def test_the_challenges_own_files():
    data = physionet.read(CHALLENGE)
    assert len(data) == 8000 and len(data.channel_names or ()) == 41
    assert data.times.min() == 0 and data.times.max() <= 48
    sets = physionet.prepare(data)
    assert [len(part) for part in (sets.train, sets.valid, sets.test)] == [5120, 1280, 1600]
