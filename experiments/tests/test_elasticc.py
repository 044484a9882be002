"""ELAsTiCC: the simulator's FITS files, read as they are."""

import gzip

import numpy as np
import pytest

pytest.importorskip("astropy")

from _elasticc import put, write
from conftest import refuses
from rotarymae_experiments.data import elasticc

TWO = {
    # Out of order, a saturated one, one of flux 0, one long before the first detection, one long after the last.
    "12": [
        (60100.0, "r", 5.0, 0.5, 6144),
        (60060.0, "g", 1.0, 0.5, 0),
        (60080.0, "u", -1.0, 0.25, 0),
        (60101.0, "r", 9e4, 0.5, 1024),
        (60102.0, "Y", 7.0, 0.5, 4096),
        (60102.0, "g", 6.0, 0.5, 4096),
        (60103.0, "z", 0.0, 0.5, 4096),
        (60200.0, "i", 0.5, 0.5, 0),
    ],
    "13": [(60001.0, "g", 2.0, 1.0, 0), (60000.0, "g", 3.0, 1.0, 0)],
}


def test_read_by_hand(tmp_path):
    put(tmp_path, "SNIa-SALT2", TWO)
    data, labels = elasticc.read(tmp_path)
    assert data.ids.tolist() == ["12", "13"] and labels.tolist() == ["Ia", "Ia"]
    assert data.channel_names == ("u", "g", "r", "i", "z", "Y") and data.value_names == elasticc.VALUES
    whole = data[0]
    assert whole.times.tolist() == [0.0, 20.0, 40.0, 41.0, 42.0, 42.0, 140.0]
    assert whole.channels is not None and whole.channels.tolist() == [1, 0, 2, 2, 1, 5, 3]
    assert whole.values[:, 0].tolist() == [1.0, -1.0, 5.0, 9e4, 6.0, 7.0, 0.5]
    assert whole.values[:, 1].tolist() == [0.5, 0.25, 0.5, 0.5, 0.5, 0.5, 0.5]
    assert whole.values[:, 2].tolist() == [0, 0, 1, 0, 1, 1, 0]
    assert data[1].times.tolist() == [0.0, 1.0] and data[1].values[:, 0].tolist() == [3.0, 2.0]


def test_of_a_band_sixty_five_observations_are_kept_evenly(tmp_path):
    many = [(60000.0 + i, "g", 1.0 + i, 1.0, 0) for i in range(130)] + [(60000.5, "r", 9.0, 1.0, 0)]
    put(tmp_path, "AGN", {"1": many})
    data, _ = elasticc.read(tmp_path)
    assert len(data.times) == 66 and (data.channels == 1).sum() == 65
    kept = data.values[data.channels == 1, 0] - 1
    assert kept.tolist() == np.linspace(0, 129, 65).astype(int).tolist()


def test_thirty_two_models_make_twenty_classes_and_two_get_a_prefix(tmp_path):
    models = [model for own in elasticc.CLASSES.values() for model in own]
    assert len(elasticc.CLASSES) == 20 and len(models) == len(set(models)) == 32
    one = [(60000.0, "g", 1.0, 1.0, 4096)]
    for number, model in enumerate(models):
        prefix = "ELASTICC_TRAINFIX" if model in ("Cepheid", "d-Sct") else "ELASTICC_TRAIN"
        put(tmp_path, model, {"7" if prefix.endswith("FIX") else str(100 + number): one}, prefix=prefix)
    data, labels = elasticc.read(tmp_path)
    assert len(data) == 32 and set(labels.tolist()) == set(elasticc.CLASSES)
    assert {"10000007", "20000007"} <= set(data.ids.tolist())


def test_files_of_a_model_are_joined_and_counted(tmp_path):
    for number in (1, 2):
        put(
            tmp_path / "FULL_ELASTICC_TRAIN",
            "TDE",
            {f"{number}{i}": [(60000.0, "g", 1.0, 1.0, 0)] for i in range(3)},
            number,
        )
    assert elasticc.read(tmp_path)[0].ids.tolist() == ["10", "11", "12", "20", "21", "22"]
    assert elasticc.read(tmp_path, most_per_model=4)[0].ids.tolist() == ["10", "11", "12", "20"]


def test_the_split():
    labels = np.repeat(["a", "b"], [40, 60])
    splits = elasticc.splits(labels, 10)
    assert len(splits) == 5 and all((split.test == splits[0].test).all() for split in splits)
    assert np.unique(labels[splits[0].test], return_counts=True)[1].tolist() == [10, 10]
    for split in splits:
        parts = [split.train, split.validation, split.test]
        assert sorted(np.concatenate(parts).tolist()) == list(range(100))
        assert np.unique(labels[split.validation], return_counts=True)[1].tolist() == [6, 10]
    assert sorted(np.concatenate([split.validation for split in splits]).tolist() + splits[0].test.tolist()) == list(
        range(100)
    )
    with refuses("class a has 40 objects", "1005"):
        elasticc.splits(labels)


def test_what_is_missing_or_broken_is_named(tmp_path):
    with refuses("ELASTICC_TRAIN_AGN", "GB", "https://", "--data-dir"):
        elasticc.read(tmp_path)
    stem = put(tmp_path, "AGN", TWO)
    head, phot = (stem.with_name(f"{stem.name}_{part}.FITS.gz") for part in ("HEAD", "PHOT"))
    whole = phot.read_bytes()
    short = put(tmp_path / "short", "EB", {"12": TWO["12"][:3]})  # fewer rows than the objects have
    cut = short.with_name(f"{short.name}_PHOT.FITS.gz").read_bytes()
    for content in (whole[: len(whole) // 2], gzip.compress(b"no table"), head.read_bytes(), cut):
        phot.write_bytes(content)
        with refuses("PHOT.FITS.gz is not as published"):
            elasticc.read(tmp_path)
    phot.unlink()
    with refuses("PHOT.FITS.gz is missing"):
        elasticc.read(tmp_path)
    put(tmp_path / "other", "EB", {"1": [(60000.0, "k", 1.0, 1.0, 0)]})
    with refuses("band 'k'", "u, g, r, i, z, Y"):
        elasticc.read(tmp_path / "other")
    for flux, part in ((np.nan, "no finite number"), (0.0, "no object with a flux")):
        put(tmp_path / part, "EB", {"1": [(60000.0, "g", flux, 1.0, 0)]})
        with refuses(part):
            elasticc.read(tmp_path / part)
    put(tmp_path / "fourth", "EB", TWO)
    put(tmp_path / "fourth", "PISN", {"12": [(60000.0, "g", 1.0, 1.0, 0)]})
    with refuses("one of them twice"):
        elasticc.read(tmp_path / "fourth")
    (tmp_path / "empty/ELASTICC_TRAIN_AGN").mkdir(parents=True)
    with refuses("ELASTICC_TRAIN_AGN/HEAD.FITS.gz is missing"):
        elasticc.read(tmp_path / "empty")
    (tmp_path / "ELASTICC_TRAIN_AGN").rename(tmp_path / "ELASTICC_TRAIN_Nova")
    with refuses("nova"):
        elasticc.read(tmp_path)


def test_what_the_smoke_run_reads(tmp_path):
    data, labels = elasticc.read(write(tmp_path))
    assert len(data) == 48 and set(labels.tolist()) == {"AGN", "TDE", "Ia"}
