"""A pretended accelerator: its tensors hold their numbers on the CPU, and may meet no tensor of the CPU.

`python tests/_pretended.py FOLDER` fits models in the folder on it, and asks them for every kind of answer. It is a
process of its own, since torch takes it for the accelerator of this machine from then on.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

sys.path.insert(0, str(Path(__file__).parents[1]))
from conftest import FEW_DRAWS, FEWER, TINY, command, patched, two_kinds, write_csv

NAME = "pretended"
MOVES = (torch.ops.aten._to_copy.default, torch.ops.aten.copy_.default)


class Remote(torch.Tensor):
    """A tensor of the pretended accelerator."""

    @staticmethod
    def __new__(cls, held):
        layout = (held.shape, held.stride(), held.storage_offset())
        return torch.Tensor._make_wrapper_subclass(cls, *layout, dtype=held.dtype, device=torch.device(NAME, 0))

    def __init__(self, held):
        if held.dtype == torch.float64:
            raise TypeError("this accelerator has no float64, as Apple's")
        self.held = held

    def __array__(self, *args, **kwargs):
        raise TypeError("a tensor of an accelerator is no array; move it to the CPU first.")

    numpy = __array__

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return computed(function, args, kwargs or {})


def computed(function, args, kwargs):
    """The result of an operation, computed on the CPU; tensors of both devices are refused, but for scalars."""
    every, tree = tree_flatten((args, kwargs))
    remote = any(isinstance(one, Remote) for one in every)
    local = [one for one in every if isinstance(one, torch.Tensor) and not isinstance(one, Remote) and one.dim()]
    if remote and local and function not in MOVES:
        raise RuntimeError(f"{function}: tensors of shapes {[tuple(one.shape) for one in local]} are on the CPU")
    device = kwargs.get("device")
    if not remote and device is None:
        return function(*args, **kwargs)
    there = remote if device is None else device.type == NAME
    held = [one.held if isinstance(one, Remote) else one for one in every]
    args_here, kwargs_here = tree_unflatten(held, tree)
    result = function(*args_here, **kwargs_here | ({} if device is None else {"device": torch.device("cpu")}))
    if not there:
        return result
    if function._schema.is_mutable:  # in place: the same tensors, or nothing
        return result if result is None else kwargs.get("out", args[0])
    return tree_map(lambda one: Remote(one) if isinstance(one, torch.Tensor) else one, result)


class Pretend(TorchDispatchMode):
    """Within it, tensors that are made on the pretended accelerator, or moved to it, are `Remote`."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return computed(function, args, kwargs or {})


class Generator(torch.Generator):
    """A generator that draws on the CPU, whatever device it is for."""

    def __new__(cls, device="cpu"):
        return super().__new__(cls)


def pretend():
    """Makes the pretended accelerator that of this process, and returns the mode to enter."""
    _setup_privateuseone_for_python_backend(NAME)
    torch._C._set_only_lift_cpu_tensors(True)
    autocast = torch.autocast
    torch.Generator = Generator
    torch.autocast = lambda kind, *args, **kwargs: autocast("cpu" if kind == NAME else kind, *args, **kwargs)
    return Pretend()


def mixed():
    """Asserts that tensors of both devices do not meet."""
    there = torch.arange(3.0).to(NAME)
    assert isinstance(there, Remote) and (there + 1).cpu().tolist() == [1, 2, 3]
    for wrong in (lambda: there + torch.ones(3), lambda: torch.ones(3)[there.long()], there.numpy):
        try:
            wrong()
        except (RuntimeError, TypeError):
            continue
        raise AssertionError("tensors of two devices met")


def main(folder):
    """Fits five kinds of models in the folder, and asks for every kind of answer."""
    rows, labels = two_kinds()
    table = write_csv(folder / "stars.csv", "star,day,band,flux", rows)
    fainter = [(*row[:3], f"<{row[3]}" if i % 9 == 0 else row[3], 0.1) for i, row in enumerate(rows)]
    limits = write_csv(folder / "limits.csv", "star,day,band,flux,error", fainter)
    field = write_csv(
        folder / "field.csv", "star,day,lat,flux", [(*rows[i][:2], i % 5, rows[i][3]) for i in range(len(rows))]
    )
    events = write_csv(folder / "events.csv", "star,days,died", [(star, i + 1, i % 2) for i, star in enumerate(labels)])
    kinds = write_csv(folder / "kinds.csv", "star,kind", labels.items())
    few = write_csv(folder / "few.csv", "star,day,band,flux", [row for row in rows if row[0] < "star 03"])
    asked = write_csv(folder / "asked.csv", "star,day,band", [row[:3] for row in rows[::3]])
    columns = ["--id", "star", "--time", "day", "--values", "flux"]
    bands, classes, run = [*columns, "--channel", "band"], ["--labels", kinds, "--label", "kind"], folder / "run"
    pictures(folder / "pictures")
    fits = {
        "run": [table, *bands, *classes, "--members", 2],
        "limits": [limits, *bands, "--errors", "error", "--likelihood", "student_t"],
        "field": [field, *columns, "--positions", "lat", *classes, "--predictor", "model"],
        "events": [
            table,
            *bands,
            "--labels",
            events,
            "--duration",
            "days",
            "--event",
            "died",
            "--join-times",
            "--predictor",
            "model",
        ],
        "images": [folder / "pictures", "--images"],
    }
    for name, words in fits.items():
        assert command("fit", *words, *TINY, "--quiet", "--out", folder / name) == 0, name
        print("fit", name)
    answers = {
        "predict": ["predict", run, table],
        "embed": ["embed", run, table],
        "interpolate": ["interpolate", run, table, "--at", asked],
        "explain": ["explain", run, few],
        "evaluate": ["evaluate", run, table, *classes],
        "anomalies": ["anomalies", folder / "limits", limits],
        "untrained": ["interpolate", few, *bands, "--grid", 20],
        "odd": ["anomalies", few, *bands],
        "labels of pictures": ["predict", folder / "images", folder / "pictures"],
    }
    for name, words in answers.items():
        assert command(*words, "--quiet", "--out", folder / f"{name}.csv") == 0, name
        print(name)


def pictures(folder):
    """Writes pictures of two kinds, in a folder each."""
    for kind in ("dark", "light"):
        (folder / kind).mkdir(parents=True)
        for i in range(12):
            shade = np.random.default_rng(i).integers(0, 99, (32, 32, 3)) + 150 * (kind == "light")
            Image.fromarray(shade.astype(np.uint8)).save(folder / kind / f"{i}.png")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    short = {"rotarymae.report.build.PICTURES": ()} | FEWER | FEW_DRAWS
    with pretend(), patched(short):
        mixed()
        main(Path(sys.argv[1]))
