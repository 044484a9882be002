"""A made-up problem in the UEA archive's files: four classes, told apart by how fast six dimensions swing."""

from pathlib import Path

import numpy as np


def write(folder: Path, name: str = "BasicMotions", series: int = 24, length: int = 30, dimensions: int = 6) -> Path:
    """FOLDER/NAME/NAME_TRAIN.ts and NAME_TEST.ts; returns FOLDER."""
    draw = np.random.default_rng(0)
    (folder / name).mkdir(parents=True)
    for part in ("TRAIN", "TEST"):
        lines = [f"@problemName {name}", "@timeStamps false", "@classLabel true still slow fast wild", "@data"]
        for i in range(series):
            swing = np.sin(np.arange(length) * (i % 4) / 2 + draw.uniform(0, 6, (dimensions, 1)))
            values = swing + 0.1 * draw.standard_normal((dimensions, length))
            parts = [",".join(f"{v:.4f}" for v in row) for row in values]
            lines.append(":".join([*parts, ["still", "slow", "fast", "wild"][i % 4]]))
        (folder / name / f"{name}_{part}.ts").write_text("# made up\n" + "\n".join(lines) + "\n")
    return folder
