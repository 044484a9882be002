"""Free memory is that of the process, which a container or a shell may allow less than the computer has."""

import subprocess
import sys

import psutil
import pytest

from rotarymae.system import free_memory

GB = 1 << 30


@pytest.mark.parametrize(
    ("group", "files", "left"),
    [
        (
            "0::/job/7",
            {
                "job/memory.max": 4 * GB,
                "job/memory.current": 3 * GB,
                "job/memory.stat": "file 0",
                "job/7/memory.max": "max",
            },
            GB,
        ),
        (
            "0::/a",
            {"a/memory.max": GB, "a/memory.current": GB, "a/memory.stat": f"file 9\ninactive_file {GB // 4}"},
            GB // 4,
        ),
        ("0::/full", {"full/memory.max": GB, "full/memory.current": 2 * GB, "full/memory.stat": "file 0"}, 0),
        ("0::/", {}, None),
    ],
)
def test_the_limit_of_a_control_group_counts(group, files, left, tmp_path):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(f"3:pids:/elsewhere\n{group}\n")
    for name, content in files.items():
        path = tmp_path / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{content}\n")
    found = free_memory(tmp_path)
    if left is None:
        assert found == pytest.approx(psutil.virtual_memory().available, rel=0.2)
    else:
        assert found == left


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits")
def test_the_limit_of_address_space_counts():
    program = """
import resource, psutil
from rotarymae.system import free_memory
taken = psutil.Process().memory_info().vms
resource.setrlimit(resource.RLIMIT_AS, (taken + (1 << 20), resource.RLIM_INFINITY))
assert 0 < free_memory() <= 1 << 20, free_memory()
"""
    subprocess.run([sys.executable, "-c", program], check=True)
