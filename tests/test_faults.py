"""A few of the attacks of scripts/faults.py; the script itself tries hundreds."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[1] / "scripts" / "faults.py"


def test_made_up_folders_end_in_one_line():
    words = [sys.executable, SCRIPT, "--groups", "folders", "--count", "6", "--verbose"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0 and "folders: 6 of 6 held" in done.stdout, done.stdout + done.stderr
