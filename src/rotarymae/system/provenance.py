"""Where and with what something was made: for reports and result files."""

from __future__ import annotations

import platform
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import rotarymae


def versions() -> dict[str, str]:
    """Return the versions that results depend on."""
    import numpy as np
    import torch

    return {
        "rotarymae": rotarymae.__version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def hardware() -> str:
    """Return the processor or accelerator, and the threads in use."""
    import torch

    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    threads = torch.get_num_threads()
    return f"{processor()}, {threads} thread{'s' if threads > 1 else ''}"


@cache
def processor() -> str:
    """Return the processor's name."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def commit(folder: Path | None = None) -> str | None:
    """Return the commit of this code's checkout, "-dirty" behind it when files differ; None outside a checkout."""
    try:
        call = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
        how: dict[str, Any] = {
            "cwd": folder or Path(__file__).parent,
            "capture_output": True,
            "text": True,
            "check": True,
        }
        if folder is None:  # an environment inside a repository of the user's is not of its commits
            subprocess.run(["git", "ls-files", "--error-unmatch", Path(__file__).name], **how)
        done = subprocess.run(call, **how)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
