"""While the tests run, every annotated shape is checked, so that signatures cannot rot; and every test is seeded."""

import os
from pathlib import Path

import beartype
import numpy as np
import pytest
import torch

SOURCE = Path(__file__).resolve().parents[1] / "src"

# An int is a float to every type checker, hence also here.
shapes = beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))


def annotated() -> list[str]:
    """The modules that state shapes. The others take what users type, and their own messages are what is tested."""
    files = sorted((SOURCE / "rotarymae").rglob("*.py"))
    with_shapes = [file for file in files if "from jaxtyping import" in file.read_text(encoding="utf-8")]
    return [".".join(file.relative_to(SOURCE).with_suffix("").parts) for file in with_shapes]


# Before anything imports the package. ROTARYMAE_NO_HOOK=1 leaves it out.
if os.environ.get("ROTARYMAE_NO_HOOK") != "1":
    from jaxtyping import install_import_hook

    install_import_hook(annotated(), f"{__name__}.shapes")

torch.set_num_threads(2)


@pytest.fixture(autouse=True)
def seeded():
    """The same random numbers in every test, whichever others run."""
    torch.manual_seed(0)
    np.random.seed(0)
