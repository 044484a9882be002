"""The commit of the code that a result was made with."""

from __future__ import annotations

import subprocess
from pathlib import Path


def commit(folder: Path = Path(__file__).parent) -> str | None:
    """Return the commit (12 hex digits) of the git checkout that `folder` belongs to; None outside one, or without git.

    "-dirty" follows it if files differ from those of the commit.
    """
    call = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        # An environment inside a repository of somebody else's is not of its commits.
        subprocess.run(["git", "ls-files", "--error-unmatch", "."], cwd=folder, capture_output=True, check=True)
        return subprocess.run(call, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
