"""Attacks the command with damaged, hostile and made-up input, and prints what held.

    python scripts/faults.py                              # every group
    python scripts/faults.py --groups folders --count 200 --seed 0

An attack holds when the command ends in time and in less than MEMORY, either with an answer without NaN, or with exit
code 1 to 3 and one line that starts with "rotarymae:"; a traceback never does. Each group is a function below that
yields (attack, what went wrong or ""). Commands run in forked processes, which are warm. Exit code 0: all held.
"""

from __future__ import annotations

import argparse
import copy
import csv
import itertools
import json
import math
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from safetensors.numpy import load_file, save_file

from rotarymae.cli.main import main as rotarymae_main
from rotarymae.system import sha256, sha256_of

MEMORY = 1 << 30  # bytes
LIMIT = {"seconds": 60.0}  # of one command; --seconds gives more where other work shares the processor
SIZES = "--embed-dim 24 --num-heads 2 --depth 1 --decoder-embed-dim 12 --decoder-num-heads 1 --decoder-depth 1"
FIT = (
    f"--channel band --label kind --min-steps 0 --batch-size 8 {SIZES} --pretrain-epochs 1 --finetune-epochs 1 --quiet"
)
Attacks = Iterator[tuple[str, str]]


@dataclass(frozen=True)
class Ended:
    """How a command ended; `code` is None where it had to be killed, and `memory` the peak in bytes."""

    code: int | None
    text: str
    memory: int


def run(words: list[Any], times: float = 1, before: Callable[[], object] | None = None) -> Ended:
    """Run the command in a forked process, for at most `times` the limit."""
    with tempfile.TemporaryFile("w+b") as said:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.dup2(said.fileno(), 1)
                os.dup2(said.fileno(), 2)
                signal.signal(signal.SIGINT, signal.default_int_handler)
                if before is not None:
                    before()
                rotarymae_main([str(word) for word in words])
                code = 0
            except SystemExit as end:
                code = int(end.code or 0)
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        deadline, code = time.monotonic() + times * LIMIT["seconds"], None
        while True:
            done, status, usage = os.wait4(pid, os.WNOHANG)
            if done:
                code = os.waitstatus_to_exitcode(status)
                break
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
                _, _, usage = os.wait4(pid, 0)
                break
            time.sleep(0.01)
        said.seek(0)
        return Ended(code, said.read().decode(errors="replace"), usage.ru_maxrss * 1024)


def wrong_with(ended: Ended, answer: Path | None = None) -> str:
    """Return what is wrong with an end, or ""."""
    lines = [line for line in ended.text.splitlines() if line.strip()]
    if ended.code is None:
        return "no end in time"
    if "Traceback" in ended.text:
        return f"traceback: {lines[-1][:200]}"
    if ended.code < 0:
        return f"ended by signal {-ended.code}"
    if ended.memory > MEMORY:
        return f"{ended.memory / 2**20:,.0f} MB"
    if ended.code in (1, 2, 3):
        own = [line for line in lines if line.startswith("rotarymae:")]
        return "" if len(own) == 1 else f"{len(own)} lines of its own, rc {ended.code}: {' | '.join(lines)[:200]}"
    if ended.code != 0:
        return f"rc {ended.code}"
    if answer is not None:
        with answer.open(newline="") as file:
            for row in csv.DictReader(file):
                for name, cell in row.items():
                    if "nan" in cell.lower() or "inf" in cell.lower():
                        return f"{name} is {cell}"
    return ""


# ── a run to attack ─────────────────────────────────────────────────────────────────────────────────────────────────


def write_table(path: Path, series: int = 24, columns: str = "id,time,band,value,kind") -> Path:
    draw = np.random.default_rng(0)
    with path.open("w", newline="") as file:
        file.write(columns + "\n")
        writer = csv.writer(file)
        for i in range(series):
            for t in np.sort(draw.uniform(0, 20, 12)):
                writer.writerow(
                    [f"s{i}", round(t, 3), "gr"[draw.integers(2)], round(math.sin(t) + i % 2, 4), "ab"[i % 2]]
                )
    return path


def fitted(folder: Path, seed: int = 0) -> Path:
    """Fit a small run in this process, which is warm from then on; return its folder."""
    table, out = write_table(folder / "table.csv"), folder / f"run{seed}"
    rotarymae_main(["fit", str(table), "--out", str(out), *FIT.split(), "--seed", str(seed)])
    return out


def asked(draw: random.Random, run_folder: Path, table: Path, out: Path) -> list[Any]:
    """Return one of the commands that read a run."""
    command = draw.choice(["predict", "predict", "embed", "interpolate"])
    return [command, run_folder, table, "--out", out, "--quiet", *(["--grid", "3"] if command == "interpolate" else [])]


# ── made-up folders: right checksums, wrong contents ────────────────────────────────────────────────────────────────

VALUES: list[Any] = [None, True, "x", "", [], {}, 0, -1, 1, 2, 0.5, -0.5, 1e-9, 1e9, 1e308, 2**40, 10**7, float("nan")]
VALUES += [float("inf"), "../../../etc/hostname", "/proc/kmsg", "/dev/zero", "__class__", "x" * 10**5, [[[[]]]]]


def places(content: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of keys to every value below a JSON value."""
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in itertools.islice(items, 200):
        yield (*above, key)
        yield from places(value, (*above, key))


def change_json(draw: random.Random, path: Path) -> str:
    content = json.loads(path.read_text())
    at: list[Any] = []  # a walk from the top: lists of many items would hide all other fields
    parent, value = content, content
    while isinstance(value, dict | list) and value and (not at or draw.random() < 0.6):
        parent = value
        at.append(draw.choice(list(value) if isinstance(value, dict) else range(len(value))))
        value = value[at[-1]]
    what = draw.choice(["value", "value", "value", "remove", "add", "swap"])
    name = ".".join(map(str, at))
    if what == "remove":
        del parent[at[-1]]
    elif what == "add" and isinstance(parent, dict):
        parent[draw.choice(["surplus", "__class__", "../up"])] = draw.choice(VALUES)
    elif what == "add":
        parent.append(copy.deepcopy(parent[at[-1]]))
    elif what == "swap":
        other = content
        for key in draw.choice(list(places(content))):
            other = other[key]
        parent[at[-1]] = copy.deepcopy(other)
    else:
        parent[at[-1]] = draw.choice(VALUES)
        what = f"{str(parent[at[-1]])[:30]!r}"
    path.write_text(json.dumps(content))
    return f"{path.name}: {name} {what}"


def change_array(draw: random.Random, path: Path) -> str:
    arrays = {name: array.copy() for name, array in load_file(path).items()}
    name = draw.choice(sorted(arrays))
    array, what = (
        arrays[name],
        draw.choice(["nan", "inf", "huge", "negative", "shape", "dtype", "remove", "add", "empty"]),
    )
    flat = array.reshape(-1)
    if what == "remove":
        del arrays[name]
    elif what == "add":
        arrays["surplus"] = array
    elif what == "empty":
        arrays[name] = array[:0] if array.ndim else np.zeros((0,), array.dtype)
    elif what == "shape":
        arrays[name] = np.concatenate([flat, flat]) if draw.random() < 0.5 else flat[:-1]
    elif what == "dtype":
        arrays[name] = array.astype(draw.choice([np.float64, np.int64, np.int8, np.bool_]))
    elif flat.size:
        number = {"nan": np.nan, "inf": np.inf, "huge": 1e30, "negative": -1e3}[what]
        number = number if array.dtype.kind == "f" else {"negative": -5}.get(what, 2**31 - 1)
        flat[draw.randrange(flat.size)] = np.array(number).astype(array.dtype)
    save_file({key: np.ascontiguousarray(value) for key, value in arrays.items()}, path)
    return f"{path.name}: {name} {what}"


def change_text(draw: random.Random, path: Path) -> str:
    lines = path.read_text().split("\n")
    at = draw.choice([i for i, line in enumerate(lines) if line])
    words = lines[at].split(" ")
    words[draw.randrange(len(words))] = str(draw.choice([-1, 0, 10**9, "nan", "inf", "x", "", 1e308]))
    what = draw.choice(["word", "remove", "twice"])
    lines[at : at + 1] = {"word": [" ".join(words)], "remove": [], "twice": [lines[at]] * 2}[what]
    path.write_text("\n".join(lines))
    return f"{path.name}: line {at} {what}"


# What makes up another content of a file, by its suffix.
CHANGES: dict[str, Callable[[random.Random, Path], str]] = {
    ".json": change_json,
    ".safetensors": change_array,
    ".txt": change_text,
}


def mend_sums(folder: Path) -> None:
    """Write checksums anew, as anybody can; sums of what is not there stay as they are."""
    files = sorted(folder.rglob("*.json"), key=lambda path: -len(path.parts))
    for path in files:
        try:
            content = json.loads(path.read_text())
        except ValueError:
            continue
        if not isinstance(content, dict):
            continue
        for key in ("sha256", "files"):
            sums = content.get(key)
            if not isinstance(sums, dict):
                continue
            rest = {name: value for name, value in content.items() if name != key}
            for name in sums:
                if (path.parent / name).resolve() == path.resolve():
                    sums[name] = sha256_of(rest)
                elif (path.parent / name).is_file() and folder in (path.parent / name).resolve().parents:
                    sums[name] = sha256(path.parent / name)
            path.write_text(json.dumps(content))


def folders(root: Path, draw: random.Random, count: int) -> Attacks:
    """Made-up folders: one field, array or line of one file is changed, and the checksums fit."""
    base = fitted(root)
    skipped = {"training", "report.html"}
    files = [p for p in sorted(base.rglob("*")) if p.is_file() and not skipped & set(p.relative_to(base).parts)]
    files = [path for path in files if path.suffix in CHANGES and path.name != "metrics.json"]
    for i in range(count):
        made, out = root / f"made{i}", root / f"made{i}.csv"
        shutil.copytree(base, made, ignore=shutil.ignore_patterns("training", "*.parquet", "report.html"))
        path = draw.choice(files)
        what = CHANGES[path.suffix](draw, made / path.relative_to(base))
        mend_sums(made)
        words = asked(draw, made, root / "table.csv", out)
        ended = run(words)
        yield f"{words[0]}: {path.parent.name}/{what}", wrong_with(ended, out if ended.code == 0 else None)
        shutil.rmtree(made)
        out.unlink(missing_ok=True)


def sums(root: Path, draw: random.Random, count: int) -> Attacks:
    """Checksum lists that name files elsewhere."""
    base = fitted(root)
    for path in [p for p in sorted(base.rglob("*.json")) if "training" not in p.parts]:
        content = json.loads(path.read_text())
        key = next(
            (key for key in ("sha256", "files") if isinstance(content, dict) and isinstance(content.get(key), dict)),
            None,
        )
        if key is None:
            continue
        for name in ("/proc/kmsg", "/dev/zero", "../../../../etc/hostname"):
            before = path.read_text()
            path.write_text(json.dumps(content | {key: {**content[key], name: "0"}}))
            ended = run(["predict", base, root / "table.csv", "--out", root / "x.csv", "--quiet"])
            yield (
                f"{path.parent.name}/{path.name} names {name}",
                wrong_with(ended) or ("" if ended.code == 2 else "taken"),
            )
            (root / "x.csv").unlink(missing_ok=True)
            path.write_text(before)


def damage(root: Path, draw: random.Random, count: int) -> Attacks:
    """Files of a run with one bit changed, halved, emptied, removed, or something else in their place."""
    base, table, out = fitted(root), root / "table.csv", root / "x.csv"
    answers = {}
    for command in ("predict", "embed"):
        assert run([command, base, table, "--out", out, "--quiet"]).code == 0
        answers[command] = out.read_bytes()
        out.unlink()
    files = [p for p in sorted(base.rglob("*")) if p.is_file() and p.suffix in (".json", ".safetensors", ".txt")]
    files = [path for path in files if "training" not in path.parts and path.name != "metrics.json"]
    for path, how in [
        (path, how)
        for path in files
        for how in ("bit", "bit", "half", "empty", "gone", "fifo", "zero", "folder", "deep")
    ]:
        kept = path.read_bytes()
        path.unlink()
        changed = bytearray(kept)
        changed[draw.randrange(len(kept))] ^= 1 << draw.randrange(8)
        parts = {"bit": bytes(changed), "half": kept[: len(kept) // 2], "empty": b"", "deep": b"[" * 10**5}
        if how in parts:
            path.write_bytes(parts[how])
        elif how == "fifo":
            os.mkfifo(path)
        elif how == "zero":
            path.symlink_to("/dev/zero")
        elif how == "folder":
            path.mkdir()
        command = draw.choice(list(answers))
        ended = run([command, base, table, "--out", out, "--quiet"])
        wrong = wrong_with(ended) or (
            "other answer" if ended.code == 0 and out.read_bytes() != answers[command] else ""
        )
        yield f"{command}: {path.parent.name}/{path.name} {how}", wrong
        out.unlink(missing_ok=True)
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
        path.write_bytes(kept)


def mixed(root: Path, draw: random.Random, count: int) -> Attacks:
    """Parts of a run that are gone, or of another run of the same shape: never another answer without a word."""
    base, other, table, out = fitted(root), fitted(root, 1), root / "table.csv", root / "x.csv"
    assert run(["predict", base, table, "--out", out, "--quiet"]).code == 0
    answer = out.read_bytes()
    parts = [p for p in sorted(base.rglob("*")) if p.is_dir() or p.suffix in (".safetensors", ".txt")]
    for part in [p for p in parts if "training" not in p.relative_to(base).parts]:
        for how in ("gone", "another's"):
            kept = root / "kept"
            part.rename(kept)
            theirs = other / part.relative_to(base)
            if how != "gone" and theirs.exists():
                shutil.copytree(theirs, part) if theirs.is_dir() else shutil.copy(theirs, part)
            out.unlink(missing_ok=True)
            ended = run(["predict", base, table, "--out", out, "--quiet"])
            silent = (
                ended.code == 0
                and out.read_bytes() != answer
                and "rotarymae" not in ended.text
                and "warning" not in ended.text
            )
            yield (
                f"{part.relative_to(base)} {how}",
                wrong_with(ended) or ("another answer, not a word" if silent else ""),
            )
            if part.is_dir():
                shutil.rmtree(part)
            part.unlink(missing_ok=True)
            kept.rename(part)


# ── tables ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def tables(root: Path, draw: random.Random, count: int) -> Attacks:
    """Hostile tables, looked at by `info`."""

    def book(name: str, sheet: str, strings: str = "") -> None:
        with zipfile.ZipFile(root / name, "w") as archive:
            main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
            office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
            package = "http://schemas.openxmlformats.org/package/2006"
            kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
            archive.writestr(
                "[Content_Types].xml",
                f'<Types xmlns="{package}/content-types"><Default Extension="rels" ContentType="application/'
                'vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" '
                'ContentType="application/xml"/><Override PartName="/xl/workbook.xml" '
                f'ContentType="{kind}.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" '
                f'ContentType="{kind}.worksheet+xml"/></Types>',
            )
            archive.writestr(
                "_rels/.rels",
                f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" Type="{office}/officeDocument" '
                'Target="xl/workbook.xml"/></Relationships>',
            )
            archive.writestr(
                "xl/workbook.xml",
                f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets><sheet name="a" sheetId="1" r:id="r1"/></sheets>'
                "</workbook>",
            )
            archive.writestr(
                "xl/_rels/workbook.xml.rels",
                f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" Type="{office}/worksheet" '
                'Target="worksheets/sheet1.xml"/></Relationships>',
            )
            archive.writestr(
                "xl/worksheets/sheet1.xml",
                strings + f'<worksheet xmlns="{main}"><sheetData>{sheet}</sheetData></worksheet>',
            )

    cell = '<row r="{r}"><c r="{c}{r}"><v>1</v></c></row>'
    book("far.xlsx", cell.format(r=1048576, c="XFD"))
    book("entity.xlsx", cell.format(r=1, c="A"), '<!DOCTYPE a [<!ENTITY b "c">]>')
    (root / "deep.jsonl").write_text('{"id":"a","time":1,"value":' + "[" * 50_000 + "]" * 50_000 + "}\n")
    (root / "less_deep.jsonl").write_text('{"id":"a","time":1,"value":' + "[" * 10_000 + "]" * 10_000 + "}\n")
    (root / "deep.json").write_text("[" * 100_000 + "]" * 100_000)
    names = ["id", "time", *(f"c{i}" for i in range(10_000))]
    (root / "wide.csv").write_text(",".join(names) + "\n" + "\n".join(",".join(["1"] * len(names)) for _ in range(20)))
    with (root / "keys.json").open("w") as file:
        json.dump(
            [{"id": 1, "time": i, "value": 1.0} | {f"k{50 * i + j}": 1 for j in range(50)} for i in range(2000)], file
        )
    (root / "bytes.csv").write_bytes(draw.randbytes(100_000))
    (root / "nul.csv").write_bytes(b"id,time,value\na\0,1,2\nb,\0,3\n")
    (root / "bytes.parquet").write_bytes(b"PAR1" + draw.randbytes(50_000) + b"PAR1")
    (root / "bytes.gz.csv").write_bytes(b"\x1f\x8b" + draw.randbytes(1000))
    (root / "long.csv").write_text("id,time,value\n" + "".join(f"{'x' * 10**6}{i % 3},{i},1\n" for i in range(30)))
    hostile = ("far.xlsx", "entity.xlsx", "deep.jsonl", "less_deep.jsonl", "deep.json", "wide.csv", "keys.json")
    for name in (*hostile, "bytes.csv", "nul.csv", "bytes.parquet", "bytes.gz.csv", "long.csv"):
        yield f"info {name}", wrong_with(run(["info", root / name]))
    write_table(root / "escape.csv", columns="id,time,band,value\x1b[2J,ki\x07nd")
    ended = run(["info", root / "escape.csv"])
    yield "info: control codes", wrong_with(ended) or ("ESC is printed" if "\x1b[2J" in ended.text else "")


# ── the run itself ──────────────────────────────────────────────────────────────────────────────────────────────────


def writing(root: Path, draw: random.Random, count: int) -> Attacks:
    """Places that cannot be written to, and limits on the size of files; then --resume."""
    table = write_table(root / "table.csv")
    (root / "file").write_text("")
    (root / "gone").symlink_to(root / "nowhere")
    (root / "foreign").mkdir()
    (root / "foreign" / "letter.txt").write_text("dear")
    for place in (root / "file", root / "gone", root / "foreign", root / "file" / "deep", Path("/proc/run")):
        ended = run(["fit", table, "--out", place, *FIT.split()], 5)
        wrong = wrong_with(ended) or ("" if ended.code == 2 else f"rc {ended.code}")
        yield f"fit --out {place.name}", wrong or ("bare errno" if "[Errno" in ended.text else "")
    for limit in (10_000, 100_000, 300_000, 1_000_000):
        out = root / f"limited{limit}"

        def limited(size: int = limit) -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

        ended = run(["fit", table, "--out", out, *FIT.split()], 5, limited)
        there = all((out / name).exists() for name in ("metrics.json", "report.html"))
        wrong = wrong_with(ended) or ("rc 0 without a report" if ended.code == 0 and not there else "")
        if ended.code != 0:
            resumed = run(["fit", table, "--out", out, *FIT.split(), "--resume"], 5)
            wrong = (
                wrong or wrong_with(resumed) or ("" if (out / "report.html").exists() else "resumed without a report")
            )
        yield f"files of at most {limit:,} bytes", wrong


def signals(root: Path, draw: random.Random, count: int) -> Attacks:
    """SIGINT and SIGTERM to the real command; one that the caller ignores."""
    table = write_table(root / "table.csv", 60)
    words = [sys.executable, "-m", "rotarymae", "fit", str(table), *FIT.replace("epochs 1", "epochs 400").split()]
    for name, ignored, sent in (("once", False, [2]), ("ignored", True, [2]), ("SIGTERM", True, [15])):
        preset = (lambda: signal.signal(2, signal.SIG_IGN)) if ignored else None
        out = root / name
        process = subprocess.Popen([*words, "--out", str(out)], stderr=subprocess.PIPE, text=True, preexec_fn=preset)
        for _ in range(1200):
            time.sleep(0.1)
            if (out / "training" / "pretrain" / "log.jsonl").exists():
                break
        for signum in sent:
            process.send_signal(signum)
        started = time.monotonic()
        if name == "ignored":
            time.sleep(3)
            yield "SIGINT that the caller ignores", "" if process.poll() is None else f"ended with {process.returncode}"
            process.kill()
            process.communicate()
            continue
        _, err = process.communicate(timeout=60)
        seconds = time.monotonic() - started
        good = process.returncode == 128 + sent[0] and "Traceback" not in err and seconds < 10
        yield (
            f"{signal.Signals(sent[0]).name} once",
            "" if good else f"rc {process.returncode} after {seconds:.1f} s: {err[-200:]}",
        )


def shards(root: Path, draw: random.Random, count: int) -> Attacks:
    """A folder of shards: damaged ones, a manifest that is nested deep, strange workers."""
    base, inside = fitted(root), root / "in"
    inside.mkdir()
    for i in range(6):
        write_table(inside / f"n{i}.csv", 4 + i)
    words = ["embed", base, inside, "--out", root / "out", "--quiet"]
    for workers in ("0", "-1"):
        yield f"--workers {workers}", wrong_with(run([*words, "--workers", workers]))
    whole = (inside / "n2.csv").read_bytes()
    for name, content in (("empty", b""), ("bytes", draw.randbytes(5000)), ("half", whole[: len(whole) // 2] + b'"')):
        (inside / "n2.csv").write_bytes(content)
        ended = run(words)
        held = (ended.code == 3 and "n2.csv" in ended.text) or (name == "half" and ended.code in (0, 3))
        yield f"a shard that is {name}", wrong_with(ended) or ("" if held else f"rc {ended.code}: {ended.text[:200]}")
        shutil.rmtree(root / "out")
    (inside / "n2.csv").write_bytes(whole)
    assert run(words).code == 0
    good = {path.name: path.read_bytes() for path in (root / "out").glob("*.parquet")}
    (root / "out" / "_manifest.json").write_text("[" * 100_000)
    yield "a manifest that is nested deep", wrong_with(run(words))
    shutil.rmtree(root / "out")
    process = subprocess.Popen(
        [sys.executable, "-m", "rotarymae", *map(str, words), "--workers", "2"], stderr=subprocess.PIPE, text=True
    )
    for _ in range(1200):
        time.sleep(0.05)
        if list((root / "out").glob("*.parquet")):
            break
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    there = len(list((root / "out").glob("*.parquet")))
    yield (
        "SIGINT with workers",
        "" if process.returncode in (0, 130) and "Nothing was written" not in err else err[-200:],
    )
    ended = run(words)
    same = {path.name: path.read_bytes() for path in (root / "out").glob("*.parquet")} == good
    yield f"then the same command, with {there} done", wrong_with(ended) or ("" if same else "other bytes")


def pages(root: Path, draw: random.Random, count: int) -> Attacks:
    """Names that are HTML, in the report."""
    name = "<img src=x onerror=pwn()>"
    table = write_table(root / "table.csv", columns=f"{name}id,time,band,value,kind")
    out = root / "run"
    ended = run(["fit", table, "--id", f"{name}id", "--out", out, *FIT.split()], 5)
    text = (out / "report.html").read_text() if (out / "report.html").exists() else ""
    yield (
        "report.html: the name of the id column",
        wrong_with(ended) or ("it is markup" if name in text or not text else ""),
    )


def threads(root: Path, draw: random.Random, count: int) -> Attacks:
    """Fits in threads, beside the caller's random numbers, and under no_grad, inference_mode, a float64 default."""
    code = """
import sys, threading, warnings, numpy as np, torch
warnings.simplefilter("ignore")
from rotarymae import RoMAEClassifier
r = np.random.default_rng(0)
X, y = r.normal(size=(20, 12)).cumsum(1), np.arange(20) % 2
how = dict(size="tiny-shallow", pretrain_epochs=1, finetune_epochs=1, min_steps=0, predictor="model")
def fit(seed): return RoMAEClassifier(**how, random_state=seed).fit(X, y).predict_proba(X)
alone = [fit(0), fit(1)]
if sys.argv[1] == "threads":
    got = [None, None]
    def work(i): got[i] = fit(i)
    ts = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    [t.start() for t in ts]; [t.join() for t in ts]
    print(all(np.array_equal(a, b) for a, b in zip(alone, got)))
elif sys.argv[1] == "caller":
    torch.manual_seed(5); a = torch.rand(3); torch.manual_seed(5); before = torch.get_rng_state(); fit(0)
    print(bool((torch.get_rng_state() == before).all()) and torch.equal(torch.rand(3), a))
else:
    if sys.argv[1] == "no_grad":
        with torch.no_grad(): got = fit(0)
    elif sys.argv[1] == "inference_mode":
        with torch.inference_mode(): got = fit(0)
    else:
        torch.set_default_dtype(torch.float64); got = fit(0)
    print(np.array_equal(got, alone[0]))
"""
    for case in ("threads", "caller", "no_grad", "inference_mode", "float64"):
        done = subprocess.run([sys.executable, "-c", code, case], capture_output=True, text=True, timeout=600)
        yield (
            f"fit: {case}",
            "" if done.stdout.strip() == "True" else (done.stdout + done.stderr)[-200:].replace("\n", " | "),
        )


GROUPS = (folders, sums, damage, mixed, tables, writing, signals, shards, pages, threads)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", nargs="*", choices=[group.__name__ for group in GROUPS], default=None)
    parser.add_argument("--count", type=int, default=200, help="made-up folders")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true", help="also print what held")
    parser.add_argument(
        "--seconds", type=float, default=LIMIT["seconds"], help="of one command, before it is said to hang"
    )
    given = parser.parse_args()
    LIMIT["seconds"] = given.seconds
    torch.set_num_threads(1)
    failed = 0
    for group in GROUPS:
        if given.groups is not None and group.__name__ not in given.groups:
            continue
        with tempfile.TemporaryDirectory() as root:
            attacks = held = 0
            for attack, wrong in group(Path(root), random.Random(given.seed), given.count):
                attacks, held = attacks + 1, held + (not wrong)
                if wrong or given.verbose:
                    print(f"  {'NOT HELD' if wrong else 'held'}  {attack}{': ' if wrong else ''}{wrong}", flush=True)
        failed += attacks - held
        print(f"{group.__name__}: {held} of {attacks} held", flush=True)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
