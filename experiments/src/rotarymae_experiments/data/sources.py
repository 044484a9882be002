"""Where the data sets of the recipes come from: official addresses, sizes, licences, and published checksums.

`rotarymae-experiments data NAME` prints the commands that fetch one; a reader that misses a file says so in the words
of `missing`. A checksum is here only where its publisher, or long use of the same file, vouches for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rotarymae.errors import InputError, did_you_mean


@dataclass(frozen=True)
class Source:
    """A data set.

    Attributes:
        what: it is.
        home: the page about it.
        size: of the download, for people.
        licence: in short.
        commands: of a shell, which fetch it into the folder they are typed in, or go on where one was cut; none where
            that is not possible or not allowed, and `note` says why.
        note: what else there is to know before fetching it.
    """

    what: str
    home: str
    size: str
    licence: str
    commands: tuple[str, ...] = ()
    note: str = ""


def fetch(url: str, name: str, md5: str = "", unpack: str = "") -> tuple[str, ...]:
    """Return the lines of a shell that fetch a file under a name, compare its published MD5, and unpack it."""
    check = (f"echo '{md5}  {name}' | md5sum --check",) if md5 else ()
    return (f"curl --fail --location --continue-at - --output {name} {url}", *check, *((unpack,) if unpack else ()))


UEA = ("BasicMotions", "CharacterTrajectories", "Epilepsy", "Heartbeat", "LSST", "JapaneseVowels")
_TINY = "http://cs231n.stanford.edu/tiny-imagenet-200.zip"
_ESC50 = "https://github.com/karolpiczak/ESC-50"
_ZENODO = "https://zenodo.org/records/2539456"
_PHYSIONET = "https://physionet.org/files/challenge-2012/1.0.0"
_ELASTICC = "https://portal.nersc.gov/cfs/lsst/DESC_TD_PUBLIC/ELASTICC"
_ARCHIVE = "https://www.timeseriesclassification.com"
SOURCES: dict[str, Source] = {
    "tiny_imagenet": Source(
        "Tiny ImageNet, 120,000 pictures of 200 classes",
        _TINY,
        "248 MB",
        "ImageNet's terms: research and education only, no redistribution",
        fetch(_TINY, "tiny-imagenet-200.zip", "90528d7ca1a48142e341f4ef8d21d0de"),
        note="It stays packed: the reader takes the zip.",
    ),
    "esc50": Source(
        "ESC-50, 2,000 recordings of 50 classes; ESC-10 is a part of it",
        _ESC50,
        "about 600 MB",
        "CC BY-NC 3.0; the clips of ESC-10 CC BY 3.0",
        fetch(
            f"{_ESC50}/archive/refs/heads/master.zip",
            "ESC-50-master.zip",
            unpack="unzip -q ESC-50-master.zip && mv ESC-50-master/* .",
        ),
    ),
    "esc50_logmel": Source(
        "ESC-50 as 8-bit log-mel pictures of 1,600 clips (folds 1, 2, 3 and 5)",
        _ESC50,
        "36 MB",
        "CC BY-NC 3.0, as the clips",
        note="No address offers these pictures; the recordings they were made from are the data set esc50.",
    ),
    "librispeech": Source(
        "LibriSpeech train-clean-100, 100 hours of read speech, which the paper pre-trains on for ESC-50",
        "https://www.openslr.org/12/",
        "6.4 GB",
        "CC BY 4.0",
        fetch(
            "https://www.openslr.org/resources/12/train-clean-100.tar.gz",
            "train-clean-100.tar.gz",
            "2a93770f6d5c6c964bc36631d331a522",
            unpack="tar xzf train-clean-100.tar.gz",
        ),
    ),
    "audioset": Source(
        "AudioSet's balanced part, some 20,000 clips of videos, which the paper pre-trains on for ESC-50",
        "https://research.google.com/audioset/download.html",
        "tens of GB",
        "labels CC BY 4.0; the sound belongs to whoever made the videos",
        note="Google publishes labels and no sound, so there is nothing official to fetch. Whoever has the clips as "
        "wav, flac or ogg names their folder by --pretrain-dir.",
    ),
    "elasticc": Source(
        "ELAsTiCC, 1.8 million simulated light curves of 32 models, in SNANA's FITS files",
        f"{_ELASTICC}/",
        "7.9 GB",
        "public; no licence is named (LSST DESC)",
        fetch(
            f"{_ELASTICC}/TRAINING_SAMPLES/FULL_ELASTICC_TRAIN.tar",
            "FULL_ELASTICC_TRAIN.tar",
            unpack="tar xf FULL_ELASTICC_TRAIN.tar",
        ),
    ),
    "plasticc": Source(
        "PLAsTiCC's training set, 7,848 simulated light curves of 14 classes",
        _ZENODO,
        "22 MB",
        "CC BY 4.0",
        tuple(
            line
            for name, md5 in (
                ("plasticc_train_lightcurves.csv.gz", "1aa1605908b5a6398bd46bf9120b6400"),
                ("plasticc_train_metadata.csv.gz", "8c6b00fd503d6cf3d9a42bfb53046e0f"),
            )
            for line in fetch(f"{_ZENODO}/files/{name}", name, md5)
        ),
    ),
    "uea": Source(
        f"six problems of the UEA archive ({', '.join(UEA)})",
        _ARCHIVE,
        "tens of MB",
        "research use; each problem's page names its origin",
        tuple(
            line
            for name in UEA
            for line in fetch(
                f"{_ARCHIVE}/aeon-toolkit/{name}.zip", f"{name}.zip", unpack=f"unzip -q {name}.zip -d {name}"
            )
        ),
    ),
    "physionet2012": Source(
        "PhysioNet/CinC Challenge 2012, sets a and b: 8,000 records of intensive care",
        "https://physionet.org/content/challenge-2012/1.0.0/",
        "14 MB",
        "ODC-By 1.0; open, no account is needed",
        tuple(
            line
            for name in ("set-a.tar.gz", "set-b.tar.gz", "Outcomes-a.txt", "Outcomes-b.txt")
            for line in fetch(f"{_PHYSIONET}/{name}", name)
        ),
        note="The five splits of the recipe mortality (splits.json) are not among the challenge's files.",
    ),
}


def find(name: str) -> Source:
    """The data set of this name. Raises InputError for an unknown one; the nearest is named."""
    if name not in SOURCES:
        raise InputError(f"no data set {name!r}; there are {', '.join(SOURCES)}.{did_you_mean(name, SOURCES)}")
    return SOURCES[name]


def missing(path: str | Path, name: str) -> InputError:
    """The error of a reader whose file is missing: what it is part of, address, size, licence, and the command."""
    source = find(name)
    about = f"{path} is missing. It is of {source.what}: {source.home} ({source.size}; {source.licence})."
    if not source.commands:
        where = "--pictures-dir, or leave out by --cases what needs it" if name == "esc50_logmel" else "--data-dir"
        return InputError(f"{about} {source.note} If you have it, say where by {where}.")
    return InputError(
        f"{about} `rotarymae-experiments data {name}` prints how to fetch it; --data-dir FOLDER says where it is."
    )


@contextmanager
def reading(path: Path, name: str) -> Iterator[None]:
    """Turn any error while an official file is read into an InputError that names the file and says where to get it."""
    if not path.is_file():
        raise missing(path, name)
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # decoders raise nearly every kind for a damaged file
        raise InputError(
            f"{path} is not as published ({type(error).__name__}: {error}); remove it and fetch it anew."
        ) from error
