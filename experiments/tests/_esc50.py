"""Made-up sounds in the layout of ESC-50: tones of a pitch per class, and as log-mel pictures, stripes."""

import wave
from pathlib import Path

import numpy as np

TARGETS = (0, 1, 10, 40)
HEAD = "filename,fold,target,category,esc10,src_file,take"


def put_wave(path: Path, samples: np.ndarray, rate: int = 44_100, channels: int = 1) -> None:
    with wave.open(str(path), "wb") as out:
        out.setnchannels(channels)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes((samples * 32_767).astype("<i2").tobytes())


def write(folder: Path, per_fold: int = 2, folds: int = 5, seconds: float = 0.4) -> Path:
    """FOLDER/audio/*.wav of unequal lengths and FOLDER/meta/esc50.csv, and the pictures; returns FOLDER."""
    draw = np.random.default_rng(0)
    for name in ("audio", "meta"):
        (folder / name).mkdir(parents=True)
    lines = [HEAD]
    for fold in range(1, folds + 1):
        for kind, target in enumerate(TARGETS):
            for take in range(per_fold):
                times = np.arange(int(44_100 * seconds * (1 + 0.1 * take))) / 44_100
                sound = np.sin(2 * np.pi * 400 * 2**kind * times) * np.exp(-times) + 0.05 * draw.normal(size=len(times))
                name = f"{fold}-{1000 * fold + take}-{'AB'[take % 2]}-{target}.wav"
                put_wave(folder / "audio" / name, 0.5 * np.clip(sound, -2, 2))
                lines.append(f"{name},{fold},{target},kind {target},{target != 40},{1000 * fold + take},A")
    (folder / "meta" / "esc50.csv").write_text("\n".join(lines) + "\n")
    write_pictures(folder)
    return folder


def pictures(per_fold: int = 3, columns: int = 40) -> dict[str, np.ndarray]:
    """Arrays as in the file of pictures, of folds 1, 2, 3 and 5 and four classes."""
    draw = np.random.default_rng(1)
    folds = np.repeat([1, 2, 3, 5], per_fold * 4)
    targets = np.tile(np.arange(4), per_fold * 4)  # 0 and 1 are of ESC-10
    x = draw.integers(0, 60, (len(folds), 181, columns))
    for i, target in enumerate(targets):
        x[i, 30 * target : 30 * target + 20] += 150
    names = np.array(
        [f"{fold}-{i}-A-{target}.wav" for i, (fold, target) in enumerate(zip(folds, targets, strict=True))]
    )
    return {"X": x.astype(np.uint8), "y": targets, "fold": folds, "name": names}


def write_pictures(folder: Path, **changes: np.ndarray) -> Path:
    np.savez_compressed(folder / "esc50_specs_magma_index.npz", **{**pictures(), **changes})
    return folder
