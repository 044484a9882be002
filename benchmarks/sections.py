"""The sections of the benchmark: each measures one thing and gives rows. Targets are those the project set itself.

Dropout is 0 throughout. Above 0 torch's CPU attention falls back to a kernel that writes out all scores, for ours and
for the references alike; figures with dropout would say nothing about either. A GPU has fast kernels with it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import turns
from benchmarks.apart import Apart
from benchmarks.measure import Row, Settings, median, model_flops, product_rate, ratio
from benchmarks.turns import COMPILED, EAGER, ONE_LANE, OTHER, PAPER, TORCH, inference, training
from benchmarks.ways import curve
from benchmarks.workload import LONGEST, RATIO, Ours, counts, cycle, equal_tokens, ragged_examples, ragged_lengths
from rotarymae import product
from rotarymae.config import RoMAEConfig
from rotarymae.counter_rng import counter_uniform
from rotarymae.masking import mask_ratio
from rotarymae.product import linear
from rotarymae.training.batching import in_order, padding_waste, plan
from rotarymae.training.lanes import lanes_for

BUDGET = 3072  # tokens a batch of the ragged workload: about those of 32 series
REFERENCE_BATCH = 32
AUTHORS_BATCH = 256  # they pre-train on light curves in batches of 512; half of that keeps a pair short


def _config(size: str, settings: Settings, **changes: Any) -> RoMAEConfig:
    if settings.quick:
        size = "tiny-shallow"
    return RoMAEConfig.named(size, **{"axes": 2, "features": 2, **changes})


def _tasks(settings: Settings) -> list[tuple[str, int, int]]:
    """(size, batch, length)."""
    if settings.quick:
        return [("tiny-shallow", 2, 32)]
    if settings.device == "cuda":
        lengths = ((256, 256), (64, 1024), (16, 4096))
        return [(size, batch, length) for size in ("tiny", "small", "base") for batch, length in lengths]
    tiny = [("tiny-shallow", 32, 256), ("tiny", 128, 64), ("tiny", 32, 256), ("tiny", 8, 1024)]
    return [*tiny, ("small", 8, 256), ("base", 4, 256)]


def throughput(settings: Settings) -> list[Row]:
    """Tokens/s by size and length, and the share of the matrix-product rate (of the model's own operations)."""
    found, dtype = [], settings.dtype
    peak = product_rate(settings, dtype or torch.float32)
    unit = "TFLOP/s" if settings.device == "cuda" else "GFLOP/s"
    scale = 1e12 if settings.device == "cuda" else 1e9
    found.append(Row("throughput", f"matrix product, {dtype or torch.float32}", peak / scale, unit))
    peaks = {"the matrix-product rate": peak}
    if dtype is None and product.ONEDNN:  # a stricter measure, where the blocks' own products are faster
        peaks["the rate of the blocks' products alone"] = product_rate(settings, product=linear)
        found.append(
            Row("throughput", "the blocks' product", peaks["the rate of the blocks' products alone"] / scale, unit)
        )
    for size, batch, length in _tasks(settings):
        config = _config(size, settings)
        with Apart(settings) as apart:
            for how, who in (("eager", EAGER), ("compiled", COMPILED)):
                apart.add(f"training, {how}", training, who, config, batch, length)
                apart.add(f"inference, {how}", inference, who, config, batch, length)
            of_each = apart.rates()
        work = model_flops(config, *counts(np.full(batch, length))) / (batch * length)  # a token
        for name, rates in of_each.items():
            found.append(
                Row("throughput", f"{size}, {batch} × {length}, {name}", median(rates), "tokens/s", each=rates)
            )
            if not name.startswith("training"):
                continue
            target = None
            if settings.device == "cuda":
                target = 0.45 if (size, length, name) == ("base", 1024, "training, compiled") else None
            elif (size, batch, length, name) == ("tiny", 32, 256, "training, compiled"):
                target = 0.8
            for of, rate in peaks.items():
                shares = [work * r / rate for r in rates]
                what = f"{size}, {batch} × {length}, {name}, share of {of}"
                found.append(Row("throughput", what, median(shares), "", target if rate == peak else None, each=shares))
    return found


def equal(settings: Settings) -> list[Row]:
    """Batches without padding: ours against both references."""
    batch, length = (2, 32) if settings.quick else (32, 256)
    whos = [COMPILED, PAPER, EAGER, ONE_LANE, *([] if settings.dtype else [TORCH, OTHER])]
    with Apart(settings) as apart:
        for who in whos:
            apart.add(who, training, who, _config("tiny", settings), batch, length, settings.steps)
        rates = apart.rates(settings.pairs_near_one)
    found = [Row("equal", f"{who}, training", median(each), "tokens/s", each=each) for who, each in rates.items()]
    found.append(ratio("equal", "compiled against (a)", rates[COMPILED], rates[PAPER], 1.5))
    found.append(ratio("equal", "eager against (a)", rates[EAGER], rates[PAPER], 1.15))
    found.append(ratio("equal", "eager against eager, one lane", rates[EAGER], rates[ONE_LANE]))
    if TORCH in rates:
        found.append(ratio("equal", f"{OTHER}, against (a)", rates[OTHER], rates[PAPER]))
        found.append(ratio("equal", "compiled against (b)", rates[COMPILED], rates[TORCH]))
        found.append(ratio("equal", "eager against (b)", rates[EAGER], rates[TORCH]))
    return found


def finetuning(settings: Settings) -> list[Row]:
    """A step of fine-tuning a classifier on [CLS]: the last block computes nothing else, or every token."""
    found: list[Row] = []
    batch, length = (2, 32) if settings.quick else (32, 128)
    for size in ("tiny-shallow", "tiny"):
        with Apart(settings) as apart:
            for what, all_tokens, lanes in (
                ("[CLS]", False, True),
                ("every token", True, True),
                ("one lane", False, False),
            ):
                apart.add(what, turns.finetuning, _config(size, settings), batch, length, all_tokens, lanes)
            rates = apart.rates(settings.pairs_near_one)
        about = f"{size}, {batch} × {length}"
        found.append(Row("finetuning", about, median(rates["[CLS]"]), "tokens/s", each=rates["[CLS]"]))
        for other in ("every token", "one lane"):
            found.append(ratio("finetuning", f"{about}, against {other}", rates["[CLS]"], rates[other]))
    return found


def ragged(settings: Settings) -> list[Row]:
    """Series of light-curve lengths: real tokens/s. A pair is an epoch of ours beside an epoch of the reference on the
    same series; assembling and masking count for ours, only masking for the reference."""
    series, size, large = (16, 4, 8) if settings.quick else (512, REFERENCE_BATCH, AUTHORS_BATCH)
    on_gpu = settings.device == "cuda"
    budget, config, lengths = 32 * LONGEST if on_gpu else BUDGET, _config("tiny", settings), ragged_lengths(series)
    steps = turns.steps_of(settings, lengths, budget, lanes_for(torch.device(settings.device), budget))
    waste = padding_waste(lengths, [part for step in steps for part in step])
    found = [Row("ragged", "padding waste", waste, "", 0.05, at_least=False)]
    to_longest, per_batch = f"(a) padded to {LONGEST}", "(a) padded per batch"
    many = f"{to_longest}, {large} at once"
    with Apart(settings) as apart:
        for who in (EAGER, COMPILED, ONE_LANE):
            apart.add(who, turns.epoch, who, config, series, budget)
        apart.add(to_longest, turns.padded, config, series, size, True)
        apart.add(per_batch, turns.padded, config, series, size, False)
        apart.add(many, turns.padded, config, series, large, True)
        rates = apart.rates()
    found += [Row("ragged", f"{who}, training", median(r), "real tokens/s", each=r) for who, r in rates.items()]
    for who in (EAGER, COMPILED, ONE_LANE):
        for other, target in ((to_longest, 5.0 if on_gpu else 20.0), (per_batch, 4.0), (many, None)):
            found.append(ratio("ragged", f"{who}, against {other}", rates[who], rates[other], target))
    return found


def padding(settings: Settings) -> list[Row]:
    """Padding waste of whole epochs by budget, against batches drawn at random."""
    found = []
    for series in (512,) if settings.quick else (512, 6_300, 100_000):
        lengths = ragged_lengths(series)
        for budget in (1536, 4096, 16384):
            waste = padding_waste(lengths, plan(lengths, 0, 0, batch_tokens=budget))
            found.append(Row("padding", f"{series} series, {budget} tokens a batch", waste, ""))
        order = np.random.default_rng(0).permutation(series)
        batches = [order[cut] for cut in in_order(lengths[order], batch_size=REFERENCE_BATCH)]
        found.append(
            Row("padding", f"{series} series, {REFERENCE_BATCH} at random", padding_waste(lengths, batches), "")
        )
        found.append(Row("padding", f"{series} series, all to {LONGEST}", 1 - float(lengths.mean()) / LONGEST, ""))
    return found


def rotary(settings: Settings) -> list[Row]:
    """Table 9: a training step with absolute positions, with whole-number rotary ones and with continuous ones."""
    batch, length = (2, 32) if settings.quick else ((64, 1024) if settings.device == "cuda" else (32, 256))
    turned, added = (_config("tiny", settings, position_encoding=name) for name in ("rotary", "absolute"))
    found = []
    for how, who in (("eager", EAGER), ("compiled", COMPILED)):
        with Apart(settings) as apart:
            apart.add("absolute", training, who, added, batch, length, settings.steps)
            apart.add("quantised", training, who, turned, batch, length, settings.steps, True)
            apart.add("continuous", training, who, turned, batch, length, settings.steps)
            rates = apart.rates(settings.pairs_near_one)
        found.append(Row("rotary", f"absolute, {how}", median(rates["absolute"]), "tokens/s", each=rates["absolute"]))
        found.append(ratio("rotary", f"quantised of absolute, {how}", rates["quantised"], rates["absolute"], unit=""))
        found.append(
            ratio("rotary", f"continuous of absolute, {how}", rates["continuous"], rates["absolute"], 0.97, "")
        )
    return found


def memory(settings: Settings) -> list[Row]:
    """Peak memory of a training step by length, each in a fresh process, and the exponent of its growth."""
    lengths = [256, 512] if settings.quick else [1024, 2048, 4096, 8192, 16384]
    size = "tiny-shallow" if settings.quick else "tiny"
    found = []
    for who, limit, extra in (("ours", lengths[-1], []), ("(a)", min(4096, lengths[-1]), ["--reference"])):
        used = [length for length in lengths if length <= limit]
        peaks = [int(_child("benchmarks.memory", settings, str(n), "--size", size, *extra)) for n in used]
        found += [Row("memory", f"{who}, {n} tokens", p / 2**20, "MiB") for n, p in zip(used, peaks, strict=True)]
        slope = float(np.polyfit(np.log(used), np.log(np.maximum(peaks, 1)), 1)[0])
        target = None if extra else 1.1
        found.append(Row("memory", f"{who}, exponent of growth", slope, "", target, at_least=False))
    return found


def compilation(settings: Settings) -> list[Row]:
    """Compilation in a fresh process, nothing from earlier runs; then ten new shapes."""
    size = "tiny-shallow" if settings.quick else "tiny"
    extra = ["--cached"] if settings.quick else []
    seen = json.loads(_child("benchmarks.compilation", settings, "--size", size, *extra))
    return [
        Row("compilation", "in all", seen["seconds"], "s", 60.0, at_least=False),
        Row("compilation", "graphs", seen["graphs"], ""),
        Row("compilation", "recompilations for ten new shapes", seen["recompilations"], "", 0.0, at_least=False),
    ]


def masking(settings: Settings) -> list[Row]:
    """Masks of 256 rows of 390 places, lengths as in the ragged workload."""
    lengths = ragged_lengths(256)
    lengths[0] = LONGEST
    tokens = turns.assembled(ragged_examples(lengths), np.arange(256))
    assert tokens.length == LONGEST
    calls: dict[str, Callable[[], object]] = {
        "drawn from torch's generator": lambda: mask_ratio(tokens, RATIO),
        "a function of seed, epoch and series": lambda: mask_ratio(
            tokens, RATIO, counter_uniform(0, 0, np.arange(256))
        ),
    }
    times = settings.alternate(calls, 3 if settings.quick else 51)
    return [
        Row("masking", f"256 × 390, {name}", 1e3 * median(seconds), "ms", 5.0, at_least=False)
        for name, seconds in times.items()
    ]


def pipeline(settings: Settings) -> list[Row]:
    """Slicing, scaling, masking and splitting of batches in memory, without a model, in one thread of Python."""
    lengths = ragged_lengths(256 if settings.quick else 20_000)
    examples = ragged_examples(lengths)
    found = []
    for budget in (BUDGET, 8192):
        batches = plan(lengths, 0, 0, batch_tokens=budget)[: 5 if settings.quick else 200]
        tokens = int(sum(lengths[index].sum() for index in batches))
        call = {"batches": lambda batches=batches: [examples.batch(index, 0) for index in batches]}
        rates = [tokens / s for s in settings.alternate(call)["batches"]]
        found.append(Row("pipeline", f"{budget} tokens a batch", median(rates), "tokens/s", each=rates))
    return found


def startup(settings: Settings) -> list[Row]:
    """Seconds until the package is imported, its model classes are, and the command has printed its help."""
    python = [sys.executable]
    commands = {
        "import rotarymae": [*python, "-c", "import rotarymae"],
        "import of a model": [*python, "-c", "from rotarymae import MaskedAutoencoder"],
        "rotarymae --help": [*python, "-c", "from rotarymae.cli.main import main; main()", "--help"],
    }
    found = []
    wall = Settings(settings.quick, threads=settings.threads)

    def start(command: list[str]) -> None:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    for name, command in commands.items():
        times = wall.alternate({name: lambda command=command: start(command)})[name]
        found.append(Row("startup", name, median(times), "s", each=times))
    return found


def gpu(settings: Settings) -> list[Row]:
    """Tiny, small and base in bf16, equal lengths and ragged, compiled: tokens/s and utilisation.

    Model FLOP utilisation is the model's own operations over the rate of a large bf16 product in the same run. On a CPU
    the same code runs in a small way.
    """
    dtype, found = torch.bfloat16, []
    peak = product_rate(settings, dtype)
    found.append(Row("gpu", "bf16 matrix product", peak / 1e12, "TFLOP/s"))
    sizes = ["tiny-shallow"] if settings.quick or settings.device == "cpu" else ["tiny", "small", "base"]
    small = settings.quick or settings.device == "cpu"
    for size in sizes:
        config = RoMAEConfig.named(size, axes=2, features=2)
        ours = Ours(config, settings, compiled=True, dtype=dtype)
        for batch, length in ((2, 32),) if small else ((1024, 64), (256, 256), (64, 1024), (16, 4096)):
            tokens = equal_tokens(batch, length, settings)
            seconds = settings.alternate({"step": lambda ours=ours, tokens=tokens: ours.train(tokens)})["step"]
            rates = [batch * length / s for s in seconds]
            shares = [model_flops(config, *counts(np.full(batch, length))) / s / peak for s in seconds]
            what = f"{size}, {batch} × {length}"
            found.append(Row("gpu", what, median(rates), "tokens/s", each=rates))
            target = 0.45 if (size, length) == ("base", 1024) else None
            found.append(Row("gpu", f"{what}, utilisation", median(shares), "", target, each=shares))
        lengths = ragged_lengths(16 if small else 8192)
        examples = ragged_examples(lengths)
        batches = [
            examples.batch(i, 0).to(settings.device) for i in plan(lengths, 0, 0, batch_tokens=1024 if small else 65536)
        ]
        turn = cycle([lambda b=b, ours=ours: ours.train_batch(b) for b in batches])

        def epoch(turn: Callable[[], None] = turn, n: int = len(batches)) -> None:
            for _ in range(n):
                turn()

        seconds = settings.alternate({"epoch": epoch})["epoch"]
        work = model_flops(config, *counts(lengths))
        rates = [int(lengths.sum()) / s for s in seconds]
        found.append(Row("gpu", f"{size}, ragged", median(rates), "real tokens/s", each=rates))
        shares = [work / s / peak for s in seconds]
        found.append(Row("gpu", f"{size}, ragged, utilisation", median(shares), "", each=shares))
    return found


def curves(settings: Settings) -> list[Row]:
    """The largest difference between the loss curves of one seed on the same batches: eager against compiled,
    against more padding, and against rows in groups of a length (micro-batches of one step). Rows in the opposite order
    show how far apart rounding alone takes them."""
    steps = 3 if settings.quick else 50
    found = loss_curves(steps, _config("tiny-shallow", settings), compiled=True)
    base = found.pop("eager")
    return [
        Row(
            "curves",
            f"{name} against eager, {steps} steps",
            _difference(base, curve),
            "",
            None if name == "reversed" else 1e-4,
            at_least=False,
        )
        for name, curve in found.items()
    ]


def loss_curves(steps: int, config: RoMAEConfig, compiled: bool, rate: float = 1e-3) -> dict[str, list[float]]:
    """Mean losses of `steps` steps on the same 8 series a step, by the ways in which the same step can be taken."""
    ways = ["eager", "reversed", "padded", "grouped"] + (["compiled"] if compiled else [])
    return {way: curve(way, steps, config, rate) for way in ways}


def _difference(one: list[float], other: list[float]) -> float:
    return max(abs(a - b) for a, b in zip(one, other, strict=True))


def _child(module: str, settings: Settings, *arguments: str) -> str:
    """What a module prints last, run in a process of its own."""
    command = [sys.executable, "-m", module, *arguments, "--device", settings.device]
    command += ["--threads", str(settings.threads or torch.get_num_threads())]
    with tempfile.TemporaryFile("w+") as log:
        root = Path(__file__).resolve().parent.parent
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=log, text=True, cwd=root)
        if done.returncode:
            log.seek(0)
            raise RuntimeError(f"{' '.join(command)} failed:\n{log.read()[-4000:]}")
    return done.stdout.strip().splitlines()[-1]


SECTIONS: dict[str, Callable[[Settings], list[Row]]] = {
    "startup": startup,
    "masking": masking,
    "pipeline": pipeline,
    "padding": padding,
    "equal": equal,
    "finetuning": finetuning,
    "ragged": ragged,
    "rotary": rotary,
    "throughput": throughput,
    "memory": memory,
    "compilation": compilation,
    "curves": curves,
    "gpu": gpu,
}
