"""Made-up intensive-care records in the challenge's own files: five variables, of which two follow each other."""

import io
import json
import tarfile
from pathlib import Path

import numpy as np


def record(number: int, draw: np.random.Generator) -> str:
    lines = ["Time,Parameter,Value", f"00:00,RecordID,{number}", f"00:00,Age,{draw.integers(20, 90)}"]
    beat, minute = 80.0, 0
    for _ in range(int(draw.integers(8, 20))):
        minute += int(draw.integers(1, 120))
        beat += 5 * draw.standard_normal()
        clock = f"{minute // 60:02d}:{minute % 60:02d}"
        lines += [f"{clock},HR,{beat:.0f}", f"{clock},MAP,{beat / 2 + 40:.1f}"]
        if draw.random() < 0.3:
            lines += [f"{clock},Temp,{37 + draw.standard_normal():.1f}", f"{clock},pH,7.4"]
    return "\n".join(lines) + "\n"


def write(folder: Path, records: int = 60) -> Path:
    """The challenge's sets and outcomes in a new FOLDER, half of the records in each, and a split; returns FOLDER."""
    folder.mkdir(parents=True)
    draw = np.random.default_rng(0)
    numbers = draw.permutation(np.arange(130_000, 130_000 + records))
    dies = np.random.default_rng(1).random(records) < 0.4
    for name, rows in (("a", slice(0, records // 2)), ("b", slice(records // 2, records))):
        put(folder, f"set-{name}", {f"{number}.txt": record(number, draw) for number in numbers[rows]})
        lines = [f"{number},{int(died)}" for number, died in zip(numbers[rows], dies[rows], strict=True)]
        (folder / f"Outcomes-{name}.txt").write_text("\n".join(["RecordID,In-hospital_death", *lines]) + "\n")
    parts = np.split(numbers, [records * 6 // 10, records * 8 // 10])
    split = dict(zip(("train", "validation", "test"), [part.tolist() for part in parts], strict=True))
    (folder / "splits.json").write_text(json.dumps({"about": "made up", "made_up": [split]}))
    return folder


def put(folder: Path, name: str, files: dict[str, str]) -> None:
    with tarfile.open(folder / f"{name}.tar.gz", "w:gz") as archive:
        for file, text in files.items():
            about = tarfile.TarInfo(f"{name}/{file}")
            about.size = len(text.encode())
            archive.addfile(about, io.BytesIO(text.encode()))
