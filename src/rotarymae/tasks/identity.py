"""What a run is of, written down before it trains, so that another is never taken for it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rotarymae.errors import InputError
from rotarymae.system import write_text
from rotarymae.tasks.config import FitConfig
from rotarymae.tasks.data import AnyDataset
from rotarymae.tasks.split_by import SplitColumn
from rotarymae.training import FREE_TO_CHANGE

IDENTITY = Path("training/identity.json")
# What is kept as a digest, and what messages call it.
DIGESTS = {"table": "table", "labels": "labels", "split_by": "split", "pretrained": "pretrained model"}


def identify(
    dataset: AnyDataset,
    labels: np.ndarray | None,
    config: FitConfig,
    task: str,
    holdout: float,
    split_by: SplitColumn | None = None,
    start: torch.nn.Module | None = None,
) -> Any:
    """All that decides what a run finds, as JSON; `start` is the trained model that it starts from."""
    settings = {name: value for name, value in dataclasses.asdict(config).items() if name not in FREE_TO_CHANGE}
    digest = None if labels is None else _digest_of(labels)
    settings["pretrained"] = None if start is None else _digest(start)  # wherever it lies
    settings["split_by"] = None if split_by is None else [split_by.name, _digest_of(split_by.values)]
    parts = {**settings, "task": task, "holdout": holdout, "labels": digest, "table": dataset.fingerprint()}
    return json.loads(json.dumps(parts))


def keep_identity(out: Path, identity: dict[str, Any]) -> None:
    """Writes the identity of a new run; that of a resumed one must be the same.

    Raises:
        InputError: the run in the folder is of other data or has other settings, which the message names.
    """
    try:
        before = json.loads((out / IDENTITY).read_text(encoding="utf-8"))
    except FileNotFoundError:
        write_text(out / IDENTITY, json.dumps(identity, indent=1) + "\n")
        return
    except ValueError:
        raise InputError(f"{out / IDENTITY} is damaged; choose a new folder.") from None
    changed = [name for name in {**before, **identity} if before.get(name) != identity.get(name)]
    if changed:
        found = [
            f"the {DIGESTS[name]} changed"
            if name in DIGESTS
            else f"{name} was {before.get(name)!r} and is {identity.get(name)!r} now"
            for name in changed[:5]
        ]
        raise InputError(
            f"the run in {out} is another: {'; '.join(found)}. Resume with the same data and settings, or "
            "choose another folder."
        )


def _digest_of(column: np.ndarray) -> str:
    return hashlib.sha256(repr(column.tolist()).encode()).hexdigest()


def _digest(model: torch.nn.Module) -> str:
    """SHA-256 of a model's tensors."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
