"""Where the data sets of the recipes come from: official addresses and licences, for a reader that misses a file.

experiments/README.md has the commands that fetch them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from rotarymae.errors import InputError, RotaryMAEError


class Source(NamedTuple):
    """Where a data set comes from: `what` it is, its `home` (a page, or the file itself), and its licence in short."""

    what: str
    home: str
    licence: str


SOURCES: dict[str, Source] = {
    "tiny_imagenet": Source(
        "Tiny ImageNet, 120,000 pictures of 200 classes (248 MB, which stay packed)",
        "http://cs231n.stanford.edu/tiny-imagenet-200.zip",
        "ImageNet's terms: research and education only, no redistribution",
    ),
    "esc50": Source(
        "ESC-50, 2,000 recordings of 50 classes (600 MB); ESC-10 is a part of it",
        "https://github.com/karolpiczak/ESC-50",
        "CC BY-NC 3.0; the clips of ESC-10 CC BY 3.0",
    ),
    "esc50_logmel": Source(
        "ESC-50 as 8-bit log-mel pictures of 1,600 clips, which no address offers; --cases leaves out what needs them",
        "https://github.com/karolpiczak/ESC-50",
        "CC BY-NC 3.0, as the clips",
    ),
    "elasticc": Source(
        "ELAsTiCC, 1.8 million simulated light curves of 32 models, in SNANA's FITS files (7.9 GB)",
        "https://portal.nersc.gov/cfs/lsst/DESC_TD_PUBLIC/ELASTICC/",
        "public; no licence is named (LSST DESC)",
    ),
    "plasticc": Source(
        "PLAsTiCC's training set, 7,848 simulated light curves of 14 classes (22 MB)",
        "https://zenodo.org/records/2539456",
        "CC BY 4.0",
    ),
    "uea": Source(
        "the UEA archive of multivariate series (tens of MB)",
        "https://www.timeseriesclassification.com",
        "research use; each problem's page names its origin",
    ),
    "physionet2012": Source(
        "PhysioNet/CinC Challenge 2012, sets a and b: 8,000 records of intensive care (14 MB)",
        "https://physionet.org/content/challenge-2012/1.0.0/",
        "ODC-By 1.0; open, no account is needed",
    ),
}


def missing(path: str | Path, name: str) -> InputError:
    """Return the error to raise where the file `path` is missing: it says what it is part of, where to get it, and how.

    `name` is a key of `SOURCES`.
    """
    what, home, licence = SOURCES[name]
    option = "--pictures-dir" if name == "esc50_logmel" else "--data-dir"
    return InputError(f"{path} is missing. It is of {what}: {home} ({licence}). {option} FOLDER says where it is.")


@contextmanager
def reading(path: Path, name: str) -> Iterator[None]:
    """Turn errors inside a `with` block that reads an official file into an InputError that names the file.

    If the file is missing, the error says where to get it, as `missing` does; `name` is a key of `SOURCES`. Errors of
    this library pass as they are.
    """
    if not path.is_file():
        raise missing(path, name)
    try:
        yield
    except RotaryMAEError:
        raise
    except Exception as error:  # decoders raise nearly every kind for a damaged file
        raise InputError(
            f"{path} is not as published ({type(error).__name__}: {error}); remove it and fetch it anew."
        ) from error
