"""Tiny ImageNet: the zip is read as it is, and whatever is wrong in it is refused by name and line."""

from pathlib import Path

import numpy as np
import pytest

import _tiny_imagenet
from rotarymae.errors import InputError
from rotarymae_experiments.data import tiny_imagenet

REAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "tiny_imagenet"
TOP = "tiny-imagenet-200"


def changed(tmp_path, **changes):
    """A folder with the made-up zip in which some files are other ones, or None, left out."""
    content = {**_tiny_imagenet.files(2, 3, 2), **{f"{TOP}/{name}": data for name, data in changes.items()}}
    return _tiny_imagenet.write(tmp_path, {name: data for name, data in content.items() if data is not None})


def test_read(tmp_path):
    found = tiny_imagenet.read(_tiny_imagenet.write(tmp_path))
    assert found.train.shape == (48, 64, 64, 3) and found.train.dtype == np.uint8
    assert found.train_labels.tolist() == sorted([0, 1, 2, 3] * 12)
    assert found.validation_labels.tolist() == [0, 1, 2, 3] * 4
    assert found.classes == tuple(f"n{i:08d}" for i in range(4))
    grey, coloured = found.validation[:2]
    assert (grey == grey[..., :1]).all() and not (coloured == coloured[..., :1]).all()
    draw = np.random.default_rng(0)
    first = _tiny_imagenet.picture(draw, 0)
    assert np.abs(found.train[0].astype(int) - first).mean() < 15  # as JPEG keeps it


def test_fewer_classes_and_pictures(tmp_path):
    folder = _tiny_imagenet.write(tmp_path)
    whole, part = tiny_imagenet.read(folder), tiny_imagenet.read(folder, classes=(0, 2), per_class=11)
    assert part.train.shape[0] == 22 and len(part.validation) == 8 and part.classes == whole.classes[:2]
    assert np.array_equal(part.train[:11], whole.train[:11])  # picture _10 comes behind _9
    with pytest.raises(InputError, match="classes 0 to 7 of 4"):
        tiny_imagenet.read(folder, classes=(0, 7))


ANNOTATIONS = "val/val_annotations.txt"
TRAIN, VALID = "train/n00000001/images/n00000001_1.JPEG", "val/images/val_1.JPEG"


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"wnids.txt": None}, "wnids.txt"),
        ({"wnids.txt": b"n00000000\nn7"}, "n00000001"),
        ({ANNOTATIONS: b"val_0.JPEG"}, "IndexError"),
        ({ANNOTATIONS: b"val_77.JPEG\tn00000000\t0\n"}, "val_77.JPEG"),
        ({TRAIN: b"no picture"}, "UnidentifiedImageError"),
        ({VALID: _tiny_imagenet.jpeg(np.zeros((64, 64, 3), np.uint8))[:-300]}, "OSError"),
        ({VALID: _tiny_imagenet.jpeg(np.zeros((32, 64, 3), np.uint8))}, "val_1.JPEG has 64×32 pixels"),
    ],
)
def test_what_is_refused(tmp_path, changes, message):
    with pytest.raises(InputError, match=rf"tiny-imagenet-200\.zip is not as published .*{message}.*fetch it anew"):
        tiny_imagenet.read(changed(tmp_path, **changes))


def test_a_zip_that_is_missing_or_cut(tmp_path):
    with pytest.raises(InputError, match=r"zip is missing.*248 MB.*cs231n.*ImageNet.*--data-dir"):
        tiny_imagenet.read(tmp_path)
    path = _tiny_imagenet.write(tmp_path) / tiny_imagenet.FILE
    path.write_bytes(path.read_bytes()[:9000])
    with pytest.raises(InputError, match=r"zip is not as published .*fetch it anew"):
        tiny_imagenet.read(tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(not REAL.is_dir(), reason=f"{REAL} is not there")
def test_the_files_at_hand():
    found = tiny_imagenet.read(REAL)
    assert len(found.train) == 20_000 and len(found.validation) == 5_000 and len(found.classes) == 200
    assert np.bincount(found.train_labels).tolist() == [100] * 200
    assert np.bincount(found.validation_labels).tolist() == [25] * 200


def test_a_file_beside_the_folder_is_left_alone(tmp_path):
    folder = _tiny_imagenet.write(tmp_path, {**_tiny_imagenet.files(2, 3, 2), "README.txt": b"hello"})
    assert len(tiny_imagenet.read(folder).classes) == 2
