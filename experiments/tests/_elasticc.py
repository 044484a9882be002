"""Made-up light curves in the FITS files of ELAsTiCC's simulator: classes are told apart by how bright they are."""

from pathlib import Path

import numpy as np

END = {"MJD": -777.0, "BAND": "-", "FLUXCAL": -777.0, "FLUXCALERR": -777.0, "PHOTFLAG": 0}  # behind each object


def put(folder: Path, model: str, objects: dict[str, list[tuple]], number: int = 1, prefix: str = "ELASTICC_TRAIN"):
    """HEAD and PHOT of a model; an object is its rows (mjd, band, flux, error, flag), in the order given."""
    from astropy.table import Table

    place = folder / f"{prefix}_{model}"
    place.mkdir(parents=True, exist_ok=True)
    rows, first, last = [], [], []
    for own in objects.values():
        first.append(len(rows) + 1)
        rows += [dict(zip(END, row, strict=True)) for row in own]
        last.append(len(rows))
        rows.append(END)
    stem = place / f"{prefix}_NONIaMODEL0-{number:04d}"
    head = Table({"SNID": list(objects), "SNTYPE": [0] * len(first), "PTROBS_MIN": first, "PTROBS_MAX": last})
    kinds = {"MJD": "f8", "BAND": "U2", "FLUXCAL": "f4", "FLUXCALERR": "f4", "PHOTFLAG": "i4"}
    phot = Table({name: np.array([row[name] for row in rows], kind) for name, kind in kinds.items()})
    head.write(f"{stem}_HEAD.FITS.gz", format="fits")
    phot.write(f"{stem}_PHOT.FITS.gz", format="fits")
    return stem


def write(folder: Path, objects: int = 16, models: tuple[str, ...] = ("AGN", "TDE", "SNIa-SALT2")) -> Path:
    """So many objects of each model in a new FOLDER; returns FOLDER."""
    draw = np.random.default_rng(0)
    for number, model in enumerate(models):
        made = {}
        for i in range(objects):
            times = 60000 + np.sort(draw.uniform(0, 100, 24))
            flux = 10.0 * (number + 1) ** 2 + draw.normal(0, 1, 24)
            flags = [0] * 8 + [6144] + [4096] * 15
            bands = draw.choice(list("ugrizY"), 24)
            made[f"{number}{i:03d}"] = list(zip(times, bands, flux, np.ones(24), flags, strict=True))
        put(folder, model, made)
    return folder
