"""Where and with what something was made: for reports and result files."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path

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
