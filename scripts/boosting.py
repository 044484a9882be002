"""Score boosted trees alone, as `fit` has them next to the network, out of fold on two public tables.

    python scripts/boosting.py mallorn --data shared/data
    python scripts/boosting.py plasticc --data shared/data --folds 0 1
    python scripts/boosting.py plasticc --data shared/data --folds 0 1 --redshift
    python scripts/boosting.py plasticc --data shared/data --folds 0 1 --magnitudes
    python scripts/boosting.py mallorn --data shared/data --copies 0 --no-curves

Folds are stratified by class, five, seed 0. With --redshift PLAsTiCC has its redshift and reddening as static columns.
With --magnitudes fluxes of 3 errors or more become magnitudes, and others limits of 5 errors, as surveys publish them.
With --copies 0 the trees do not learn from copies that lack observations, with --no-curves not from the features of the
smooth curve of all filters.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
from sklearn.metrics import average_precision_score, f1_score, log_loss, roc_auc_score
from sklearn.model_selection import StratifiedKFold

from rotarymae.partners import BoostedFeatures, boosting, light_curves
from rotarymae.preprocess import StaticColumn, fit_static
from rotarymae.series import SeriesDataset
from rotarymae.tables import TableSchema, align_labels, read_table

Table = tuple[SeriesDataset, np.ndarray, tuple[StaticColumn, ...]]


def mallorn(data: Path, _: bool) -> Table:
    """Return the light curves of MALLORN, whether each is a tidal disruption, and its two static columns."""
    folder = data / "mallorn"
    objects = str(folder / "objects.csv")
    schema = TableSchema(
        id="object_id", time="Time (MJD)", channel="Filter", values=("Flux",), errors=("Flux_err",),
        static=("Z", "EBV"), objects=objects,
    )  # fmt: skip
    dataset = read_table(folder / "lightcurves.csv.gz", schema)
    truth = np.asarray(align_labels(dataset, objects, id="object_id", label="target"), int)
    return dataset, truth, fit_static(dataset, ("Z", "EBV"))


def plasticc(data: Path, redshift: bool) -> Table:
    """Return the light curves of PLAsTiCC, the number of each one's class, and two static columns or none."""
    from rotarymae_experiments.data import plasticc as reader

    dataset, classes, facts = reader.read(data / "plasticc")
    names = ("hostgal_photoz", "mwebv") if redshift else ()
    dataset = replace(dataset, static={name: np.asarray(facts[name]) for name in names})
    return dataset, np.unique(classes, return_inverse=True)[1], fit_static(dataset, names)


def in_magnitudes(dataset: SeriesDataset) -> SeriesDataset:
    """Return the light curves in magnitudes: 25 - 2.5 log10(flux), and below 3 errors only a limit of 5 errors."""
    flux, error = np.asarray(dataset.with_values(["flux", "flux_err"]).values, np.float64).T
    seen = flux >= 3 * error
    magnitude = 25 - 2.5 * np.log10(np.where(seen, flux, 5 * error))
    values = np.stack([magnitude, np.where(seen, 2.5 / np.log(10) * error / np.where(seen, flux, 1), 0)], 1)
    sides = np.stack([~seen, np.zeros_like(seen)], 1).astype(np.int8)
    return replace(dataset, values=values, value_names=("mag", "mag_err"), sides=sides)


def main() -> None:
    """Print the scores of each fold, and of all together where there are two classes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=("mallorn", "plasticc"))
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--folds", type=int, nargs="+", default=list(range(5)))
    parser.add_argument("--copies", type=int, default=boosting.MOST_COPIES)
    parser.add_argument("--redshift", action="store_true")
    parser.add_argument("--magnitudes", action="store_true")
    parser.add_argument("--no-curves", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    boosting.MOST_COPIES = options.copies
    if options.no_curves:
        light_curves.find_sources = lambda *_: None
    table = {"mallorn": mallorn, "plasticc": plasticc}[options.table]
    dataset, truth, static = table(options.data, options.redshift)
    dataset = in_magnitudes(dataset) if options.magnitudes else dataset
    chances, scored = np.zeros((len(truth), truth.max() + 1)), np.zeros(len(truth), bool)
    for k, (train, test) in enumerate(StratifiedKFold(5, shuffle=True, random_state=0).split(truth, truth)):
        if k in options.folds:
            start = time.process_time()
            trees = BoostedFeatures.fit("classification", dataset.select(train), truth[train], static, 0)
            chances[test], scored[test] = trees.predict(dataset.select(test)), True
            macro = f1_score(truth[test], chances[test].argmax(1), average="macro")
            loss, seconds = log_loss(truth[test], chances[test]), time.process_time() - start
            print(f"fold {k}: macro-F1 {macro:.3f}, log-loss {loss:.3f}, {seconds:.0f} s", flush=True)
    if truth.max() == 1:
        known, chance = truth[scored], chances[scored, 1]
        precision, area = average_precision_score(known, chance), roc_auc_score(known, chance)
        print(f"out of fold: average precision {precision:.3f}, AUROC {area:.3f}")


if __name__ == "__main__":
    main()
