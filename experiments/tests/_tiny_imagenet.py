"""Made-up pictures in the layout of the official Tiny ImageNet zip: classes told apart by colour and stripes."""

import io
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image


def jpeg(pixels: np.ndarray) -> bytes:
    content = io.BytesIO()
    Image.fromarray(pixels).save(content, "JPEG")
    return content.getvalue()


def picture(draw: np.random.Generator, kind: int, side: int = 64) -> np.ndarray:
    rows = np.arange(side)[:, None, None]
    stripes = 60 * np.sin(rows * (kind + 1) / 4 + draw.uniform(0, 6))
    colour = np.array([kind * 30 % 256, 128, 255 - kind * 30 % 256])
    return np.clip(stripes + colour + draw.normal(0, 10, (side, side, 3)), 0, 255).astype(np.uint8)


def files(classes: int = 4, per_class: int = 12, validation: int = 4) -> dict[str, bytes]:
    """The content of each file by name; the first validation picture is grey."""
    draw, top = np.random.default_rng(0), "tiny-imagenet-200"
    names = [f"n{kind:08d}" for kind in range(classes)]
    found = {f"{top}/wnids.txt": "\n".join(names).encode()}
    found[f"{top}/words.txt"] = "".join(f"{name}\tthing {kind}\n" for kind, name in enumerate(names)).encode()
    for kind, name in enumerate(names):
        for i in range(per_class):
            found[f"{top}/train/{name}/images/{name}_{i}.JPEG"] = jpeg(picture(draw, kind))
    lines = []
    for i in range(classes * validation):
        pixels = picture(draw, i % classes)
        found[f"{top}/val/images/val_{i}.JPEG"] = jpeg(pixels[..., 0] if i == 0 else pixels)
        lines.append(f"val_{i}.JPEG\t{names[i % classes]}\t0\t0\t63\t63\n")
    found[f"{top}/val/val_annotations.txt"] = "".join(lines).encode()
    return found


def write(folder: Path, content: dict[str, bytes] | None = None) -> Path:
    """FOLDER/tiny-imagenet-200.zip; returns FOLDER."""
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / "tiny-imagenet-200.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in (files() if content is None else content).items():
            archive.writestr(name, data)
    return folder
