"""What `rotarymae info` says of twelve tables that people have, and whether the command that it prints trains.

    python scripts/any_table.py --folder tables --page docs/any-table.md
    python scripts/any_table.py --folder tables --data DATA

Nine tables are made up, in the layouts of surveys, hospitals and instruments; three are public data sets, and are tried
where DATA has their files. No column is named: `info` proposes them all. With `--page` the section of the page between
its two marks is written anew.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shlex
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from rotarymae.cli.main import main

QUICK = shlex.split("--minutes 1 --depth 1 --decoder-depth 1 --quiet")
MARKS = "<!-- tables begin -->", "<!-- tables end -->"
KEPT = ("rows", "series", "times", "channels", "unsure", "warning")  # lines that the page shows, below the columns
LONGEST = 150  # characters of such a line
SERIES, TIMES = 24, 12


def _observations(bands: tuple[str, ...], days: float = 60) -> pd.DataFrame:
    """Return a long table: id, time, band, value and error of `SERIES` objects, sines of two speeds."""
    draw = np.random.default_rng(0)
    n = SERIES * len(bands) * TIMES
    table = pd.DataFrame({"id": np.repeat(np.arange(SERIES), n // SERIES), "time": draw.uniform(0, days, n)})
    table = table.sort_values(["id", "time"], ignore_index=True)
    table["band"] = draw.choice(bands, n)
    table["value"] = np.sin(table.time / (2 + table.id % 2)) + 0.1 * draw.normal(size=n)
    table["error"] = draw.uniform(0.05, 0.15, n)
    return table.round(4)


def ztf(folder: Path) -> str:
    """Alerts of ZTF, with limits."""
    d = _observations(("1", "2"))
    table = pd.DataFrame({"oid": 5e14 + d.id, "jd": 2459000.5 + d.time, "fid": d.band, "magpsf": 18 + d.value})
    table = table.assign(sigmapsf=d.error, diffmaglim=20.5 - d.error, isdiffpos="t").astype({"oid": int})
    table.loc[::9, ["magpsf", "sigmapsf", "isdiffpos"]] = None  # only the limit is known
    table.to_csv(folder / "ztf.csv", index=False)
    return "ztf.csv"


def rubin(folder: Path) -> str:
    """Sources of difference images of Rubin."""
    d = _observations(tuple("gri"))
    table = pd.DataFrame({"diaSourceId": 10**15 + np.arange(len(d)), "diaObjectId": 10**14 + d.id})
    table = table.assign(visit=2024000 + (d.time * 10).astype(int), detector=(d.time * 7).astype(int) % 9, band=d.band)
    table = table.assign(midpointMjdTai=60600 + d.time, ra=150.1 + d.id / 90, dec=2.2 - d.id / 90)
    table = table.assign(psfFlux=1e3 * d.value, psfFluxErr=1e3 * d.error, snr=d.value / d.error)
    table.to_parquet(folder / "rubin.parquet", index=False)
    return "rubin.parquet"


def meds(folder: Path) -> str:
    """Events of MEDS, with births and facts without a time."""
    d = _observations(("HR", "LACTATE", "WEIGHT"), days=3)
    when = pd.Timestamp("2150-03-01") + pd.to_timedelta((d.time * 86400).round(), unit="s")
    table = pd.DataFrame({"subject_id": d.id, "time": when, "code": d.band, "numeric_value": d.value})
    born = pd.DataFrame({"subject_id": range(SERIES), "time": pd.Timestamp("2090-01-01"), "code": "MEDS_BIRTH"})
    facts = pd.DataFrame({"subject_id": range(SERIES), "code": [f"GENDER//{'FM'[i % 2]}" for i in range(SERIES)]})
    table = pd.concat([table, born, facts]).sort_values(["subject_id", "time"], na_position="first")
    table.to_parquet(folder / "meds.parquet", index=False)
    return "meds.parquet"


def clif_vitals(folder: Path) -> str:
    """Vital signs of CLIF."""
    d = _observations(("heart_rate", "map", "spo2"), days=3)
    when = pd.Timestamp("2150-03-01", tz="UTC") + pd.to_timedelta((d.time * 86400).round(), unit="s")
    table = pd.DataFrame({"hospitalization_id": (2 * 10**7 + d.id).astype(str), "recorded_dttm": when})
    table = table.assign(vital_name=d.band.str.upper(), vital_category=d.band, vital_value=80 + d.value)
    table.assign(meas_site_name="unspecified").to_parquet(folder / "clif_vitals.parquet")
    return "clif_vitals.parquet"


def clif_labs(folder: Path) -> str:
    """Laboratory values of CLIF, which are texts, and numbers as far as they are some."""
    d = _observations(("sodium", "lactate"), days=9)
    when = pd.Timestamp("2150-03-01", tz="UTC") + pd.to_timedelta((d.time * 86400).round(), unit="s")
    numbers = (10 + d.value).round(2)
    texts = numbers.astype(str).where(np.arange(len(d)) % 20 > 0, "<0.5")
    texts = texts.where(np.arange(len(d)) % 33 > 0, "___")
    table = pd.DataFrame({"hospitalization_id": (2 * 10**7 + d.id).astype(str)})
    for k, name in enumerate(("lab_order_dttm", "lab_collect_dttm", "lab_result_dttm")):
        table[name] = when + pd.Timedelta(30 * k, "min")
    table = table.assign(lab_name=d.band.str.title(), lab_category=d.band, lab_value=texts)
    table["lab_value_numeric"] = numbers.where(texts == numbers.astype(str))
    table = table.assign(reference_unit=np.where(d.band == "sodium", "mmol/L", "mg/dL"))
    table.index += 5
    table.to_parquet(folder / "clif_labs.parquet")
    return "clif_labs.parquet"


def kepler(folder: Path) -> str:
    """A star each row, a cadence each column."""
    draw = np.random.default_rng(0)
    flux = np.sin(np.arange(80) / (2 + np.arange(SERIES)[:, None] % 2)) + 0.1 * draw.normal(size=(SERIES, 80))
    table = pd.DataFrame(flux.round(3), columns=[f"FLUX.{i}" for i in range(1, 81)])
    table.insert(0, "LABEL", np.arange(SERIES) % 2 + 1)
    table.to_csv(folder / "kepler.csv", index=False)
    return "kepler.csv"


def sensors(folder: Path) -> str:
    """The log of one station, with dates as a spreadsheet writes them."""
    draw = np.random.default_rng(0)
    when = pd.date_range("2024-03-25", periods=400, freq="30min").strftime("%d/%m/%Y %H:%M")
    table = pd.DataFrame({"Date/Time": when, "Temp (°C)": 20 + draw.normal(size=400).cumsum() / 9})
    table["Humidity (%)"] = 50 + draw.normal(size=400).cumsum()
    table.round(2).to_csv(folder / "station.csv", index=False)
    return "station.csv"


def wide(folder: Path) -> str:
    """A column for each variable, mostly empty."""
    draw = np.random.default_rng(0)
    table = pd.DataFrame({"patient": np.repeat(np.arange(SERIES), 2 * TIMES)})
    table["hour"] = np.tile(np.arange(2 * TIMES), SERIES)
    for name, usual in (("heart_rate", 80), ("temperature", 37), ("lactate", 2)):
        column = usual * (1 + 0.1 * draw.normal(size=len(table)))
        table[name] = np.where(draw.uniform(size=len(table)) < 0.5, column.round(2), np.nan)
    table["age"], table["died"] = 50 + table.patient, table.patient % 2
    table.to_csv(folder / "wide.csv", index=False)
    return "wide.csv"


def units(folder: Path) -> str:
    """A preamble above the header, and a row of units below it."""
    d = _observations(("g", "r"))
    rows = [f"{i},{t:.3f},{b},{v:.3f},{e:.3f}" for i, t, b, v, e in d.itertuples(index=False)]
    lines = ["Export of the archive, 2025-11-03", "Contact: archive@example.org", ""]
    lines += ["star,mjd,filter,flux,flux_err", ",d,,mJy,mJy", *rows]
    (folder / "archive.csv").write_text("\n".join(lines) + "\n")
    return "archive.csv"


def plasticc(data: Path, folder: Path) -> str:
    """PLAsTiCC, with the table of its objects."""
    for name in ("plasticc_train_lightcurves.csv.gz", "plasticc_train_metadata.csv.gz"):
        _link(data / "plasticc" / name, folder)
    return "plasticc_train_lightcurves.csv.gz --objects plasticc_train_metadata.csv.gz"


def mallorn(data: Path, folder: Path) -> str:
    """MALLORN, with the table of its objects."""
    for name in ("lightcurves.csv.gz", "objects.csv"):
        _link(data / "mallorn" / name, folder)
    return "lightcurves.csv.gz --objects objects.csv"


def physionet(data: Path, folder: Path) -> str:
    """PhysioNet 2012: a file each patient, as they are in the archive."""
    if not (folder / "set-a").exists():
        with tarfile.open(data / "physionet2012" / "set-a.tar.gz") as packed:
            packed.extractall(folder, filter="data")
    _link(data / "physionet2012" / "Outcomes-a.txt", folder)
    return "set-a --objects Outcomes-a.txt"


def _link(path: Path, folder: Path) -> None:
    if not (folder / path.name).exists():
        (folder / path.name).symlink_to(path.resolve())


MADE: tuple[Callable[[Path], str], ...] = (ztf, rubin, meds, clif_vitals, clif_labs, kepler, sensors, wide, units)
PUBLIC: tuple[Callable[[Path, Path], str], ...] = (plasticc, mallorn, physionet)


def look(arguments: str) -> tuple[list[str], list[str]]:
    """Return the lines that `info` prints of a table, and the words of the command that trains."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        main(["info", *shlex.split(arguments)])
    lines = printed.getvalue().strip().splitlines()
    return lines, shlex.split(lines[-1])


def train(words: list[str], run: Path) -> None:
    """Run a printed command with a training as small as can be."""
    main([*words[1:-1], str(run), *QUICK])


def described(title: str, arguments: str, lines: list[str]) -> str:
    """Return the part of the page about one table."""
    below = next(i for i, line in enumerate(lines) if line.startswith("to take a column"))
    kept = (line for line in lines[below:] if line.startswith(KEPT))
    kept = [line if len(line) <= LONGEST else f"{line[: LONGEST - 4]} ..." for line in kept]
    shown = "\n".join([f"$ rotarymae info {arguments}", *lines[1:below], *kept, "", "to train:", lines[-1]])
    return f"### {title}\n\n```text\n{shown}\n```"


def run() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="where tables and runs are written")
    parser.add_argument("--data", type=Path, help="the folder of the public data sets")
    parser.add_argument("--page", type=Path, help="the page that is written anew")
    parser.add_argument("--only", nargs="*", help="the tables to try, by the names of their functions")
    parser.add_argument("--no-training", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    page = options.page.resolve() if options.page else None
    data = options.data.resolve() if options.data else None
    os.chdir(options.folder)
    here, parts = Path(), []
    makers = {make.__name__: (make, (here,)) for make in MADE}
    makers |= {make.__name__: (make, (data, here)) for make in PUBLIC if data is not None}
    for name, (make, where) in makers.items():
        if options.only and name not in options.only:
            continue
        arguments = make(*where)
        lines, words = look(arguments)
        print("\n".join([f"== {name}: info {arguments}", *lines]), flush=True)
        if not options.no_training:
            train(words, Path(f"run-{name}"))
        made_up = " (made up)" if make in MADE else ""
        parts.append(described(f"{(make.__doc__ or name).rstrip('.')}{made_up}", arguments, lines))
    if page is not None:
        before, _, rest = page.read_text().partition(MARKS[0])
        _, _, after = rest.partition(MARKS[1])
        page.write_text(f"{before}{MARKS[0]}\n\n" + "\n\n".join(parts) + f"\n\n{MARKS[1]}{after}")


if __name__ == "__main__":
    run()
