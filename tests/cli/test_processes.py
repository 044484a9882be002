"""The command on several processes of a launcher: they share the work, and one of them writes and speaks."""

import json
import os
import subprocess
import sys

import pyarrow.parquet as pq

from conftest import TINY

STARS = ["--id", "star", "--time", "day", "--channel", "band", "--values", "flux"]


def test_two_processes_need_no_variables_and_write_what_one_would(fitted, tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ACCELERATE")}
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    labels = ["--labels", fitted / "kinds.csv", "--label", "kind"]
    given = ["-m", "rotarymae", "fit", fitted / "stars.csv", "--out", tmp_path / "run", *STARS, *labels, *TINY]
    done = subprocess.run([*launcher, *given], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("the report is") == 1 and done.stdout.count("classification, on held-out series") == 1
    run = tmp_path / "run"
    assert {path.name for path in run.iterdir()} == {path.name for path in (fitted / "run").iterdir()}
    assert "This part was left out" not in (run / "report.html").read_text()
    ours, alone = (json.loads((folder / "metrics.json").read_text()) for folder in (run, fitted / "run"))
    assert ours["series"] == alone["series"] and ours["classification"].keys() == alone["classification"].keys()
    ours, alone = (pq.read_table(folder / "embeddings.parquet") for folder in (run, fitted / "run"))
    assert ours["star"].equals(alone["star"])
