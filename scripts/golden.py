"""Writes tests/golden/losses.json: 100 losses of a fixed tiny run, which the tests compare with.

    python scripts/golden.py

Run it when a change is meant to alter the numbers, and say so in the commit message.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import torch

from _runs import examples, objective, settings
from rotarymae.training.loop import fit

GOLDEN = Path(__file__).resolve().parents[1] / "tests" / "golden" / "losses.json"


def losses() -> list[float]:
    """25 epochs of four batches of a pre-training with dropout and stochastic depth, on one thread."""
    torch.set_num_threads(1)
    result = fit(objective(), examples(), settings(epochs=25))
    return [line["loss"] for line in result.history]


if __name__ == "__main__":
    GOLDEN.parent.mkdir(exist_ok=True)
    content = {"torch": torch.__version__, "losses": losses()}
    GOLDEN.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    print(f"{len(content['losses'])} losses, {content['losses'][0]:.4f} to {content['losses'][-1]:.4f} → {GOLDEN}")
