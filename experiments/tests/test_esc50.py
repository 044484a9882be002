"""ESC-50: recordings and pictures become spectrograms; what is wrong is refused by file and line."""

from pathlib import Path

import numpy as np
import pytest

import _esc50
from rotarymae.arrays import filterbank
from rotarymae.errors import InputError
from rotarymae_experiments.data import esc50

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
pytest.importorskip("soundfile")
pytest.importorskip("kaldi_native_fbank")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return _esc50.write(tmp_path_factory.mktemp("esc50") / "data")


def test_read(made):
    found = esc50.read(made)
    assert len(found) == 40 and found.folds.tolist() == sorted([1, 2, 3, 4, 5] * 8)
    assert found.labels[:8].tolist() == [0, 0, 1, 1, 10, 10, 40, 40]
    assert found.spectrograms.ids[0] == "1-1000-A-0.wav" and found.spectrograms.sample_rate == 44_100
    # The tones rise by an octave per class, so do the loudest bins.
    loudest = [int(found.spectrograms.arrays[i][..., 0].mean(0).argmax()) for i in (0, 2, 4, 6)]
    assert loudest == sorted(set(loudest))
    few = esc50.read(made, esc10=True)
    assert set(few.labels.tolist()) == {0, 1, 10}
    part = found.select(np.array([3, 1]))
    assert part.labels.tolist() == [1, 0] and np.array_equal(part.spectrograms.arrays[1], found.spectrograms.arrays[1])


def test_a_rate_of_ones_own(made):
    assert len(esc50.read(made, sample_rate=16_000).spectrograms.arrays[0]) == 38


def test_whole_numbers_are_scaled(made):
    samples = np.frombuffer((made / "audio" / "1-1000-A-0.wav").read_bytes()[44:], "<i2")
    expected = filterbank(samples, 44_100)
    assert np.allclose(esc50.read(made).spectrograms.arrays[0][..., 0], expected, atol=1e-3)


@pytest.mark.parametrize(
    "line, message",
    [
        ("1-7-A-0.wav,6,0,dog,True,7,A", "folds outside 1 to 5"),
        ("1-7-A-0.wav,1,50,dog,True,7,A", "targets outside 0 to 49"),
        ("1-7-A-0.wav,1,dog,0,True,7,A", "'dog'"),
        ("1-7-A-0.wav,1", "TypeError"),
        ("", "no clips"),
    ],
)
def test_lists_that_are_refused(tmp_path, line, message):
    (tmp_path / "meta").mkdir()
    (tmp_path / "meta" / "esc50.csv").write_text(f"{_esc50.HEAD}\n{line}\n")
    with pytest.raises(InputError, match=rf"esc50.csv is not as published .*{message}"):
        esc50.read(tmp_path)


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(InputError, match=r"esc50.csv is missing.*600 MB.*karolpiczak/ESC-50.*CC BY-NC.*--data-dir"):
        esc50.read(tmp_path)
    (tmp_path / "meta").mkdir()
    (tmp_path / "meta" / "esc50.csv").write_text(f"{_esc50.HEAD}\n../1-7-A-0.wav,1,0,dog,True,7,A\n")
    with pytest.raises(InputError, match=r"audio/1-7-A-0.wav is missing"):  # no name leads out of the folder
        esc50.read(tmp_path)


@pytest.mark.parametrize(
    "how, message",
    [
        ({"rate": 22_050}, "22050 Hz"),
        ({"channels": 2}, "44100 Hz, mono"),
        ({"samples": np.zeros(500)}, "500 samples"),
        ({"content": b"no sound"}, "LibsndfileError"),
    ],
)
def test_recordings_that_are_refused(tmp_path, how, message):
    for name in ("audio", "meta"):
        (tmp_path / name).mkdir()
    (tmp_path / "meta" / "esc50.csv").write_text(f"{_esc50.HEAD}\n1-7-A-0.wav,1,0,dog,True,7,A\n")
    path = tmp_path / "audio" / "1-7-A-0.wav"
    if "content" in how:
        path.write_bytes(how["content"])
    else:
        samples = how.get("samples", np.zeros(44_100))
        _esc50.put_wave(path, samples, how.get("rate", 44_100), how.get("channels", 1))
    with pytest.raises(InputError, match=rf"1-7-A-0.wav.*{message}"):
        esc50.read(tmp_path)


def test_pictures(made):
    found, given = esc50.read_pictures(made), _esc50.pictures()
    assert np.stack(found.spectrograms.arrays).shape == (48, 40, 128, 1)
    assert found.labels.tolist() == given["y"].tolist() and found.folds.tolist() == given["fold"].tolist()
    low, high = given["X"][0, 0, 7], given["X"][0, -1, 7]
    expected = (np.array([low, high], float) - 255) * 80 / 255
    assert np.allclose(found.spectrograms.arrays[0][7, [0, -1], 0], expected)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"X": np.zeros((48, 180, 40), np.uint8)}, r"X is uint8 \(48, 180, 40\)"),
        ({"X": np.zeros((48, 181, 40))}, "X is float64"),
        ({"y": np.arange(3)}, r"y \(3,\)"),
        ({"fold": np.full(48, 9)}, "folds outside 1 to 5"),
        ({"name": np.full(48, None)}, "ValueError"),
    ],
)
def test_pictures_that_are_refused(tmp_path, changes, message):
    with pytest.raises(InputError, match=rf"magma_index.npz is not as published .*{message}"):
        esc50.read_pictures(_esc50.write_pictures(tmp_path, **changes))


def test_pictures_that_are_missing(tmp_path):
    with pytest.raises(InputError, match=r"npz is missing.*no address offers.*--pictures-dir"):
        esc50.read_pictures(tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(not (SHARED / "esc10").is_dir(), reason=f"{SHARED / 'esc10'} is not there")
def test_the_recordings_at_hand():
    found = esc50.read(SHARED / "esc10", esc10=True)
    assert len(found) == 400 and np.bincount(found.folds).tolist() == [0, 80, 80, 80, 80, 80]
    assert sorted(np.bincount(found.labels)[np.unique(found.labels)].tolist()) == [40] * 10


@pytest.mark.skipif(not (SHARED / "esc50_logmel").is_dir(), reason=f"{SHARED / 'esc50_logmel'} is not there")
def test_the_pictures_at_hand():
    found = esc50.read_pictures(SHARED / "esc50_logmel")
    pictures = np.stack(found.spectrograms.arrays)
    assert pictures.shape == (1600, 246, 128, 1) and pictures.min() >= -80 and pictures.max() == 0
    assert np.bincount(found.folds).tolist() == [0, 400, 400, 400, 0, 400]


def test_every_bin_of_a_picture_is_read_in_even_steps(tmp_path):
    """Its rows repeat bins, low ones more often."""
    bins = np.repeat(np.arange(125), np.where(np.arange(125) < 56, 2, 1))  # 181 rows
    given = _esc50.pictures()
    given["X"] = np.broadcast_to((100 + bins)[None, :, None], (48, 181, 40)).astype(np.uint8)
    np.savez(tmp_path / esc50.PICTURES, **given)
    found = esc50.read_pictures(tmp_path).spectrograms.arrays[0][0, :, 0]
    steps = np.diff(np.rint(found * 255 / 80))
    assert set(steps.tolist()) == {0.0, 1.0} and steps.sum() == 124
