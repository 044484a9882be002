"""Made-up intensive-care records in the challenge's own files: five variables, of which two follow each other."""

import io
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
    """set-a.tar.gz and set-b.tar.gz in a new FOLDER, half of the records in each; returns FOLDER."""
    folder.mkdir(parents=True)
    draw = np.random.default_rng(0)
    numbers = draw.permutation(np.arange(130_000, 130_000 + records))
    for name, part in (("set-a", numbers[: records // 2]), ("set-b", numbers[records // 2 :])):
        put(folder, name, {f"{number}.txt": record(number, draw) for number in part})
    return folder


def put(folder: Path, name: str, files: dict[str, str]) -> None:
    with tarfile.open(folder / f"{name}.tar.gz", "w:gz") as archive:
        for file, text in files.items():
            about = tarfile.TarInfo(f"{name}/{file}")
            about.size = len(text.encode())
            archive.addfile(about, io.BytesIO(text.encode()))
