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

from benchmarks.measure import Row, Settings, median, model_flops, product_rate, ratio
from benchmarks.ways import curve
from benchmarks.workload import (
    LONGEST,
    RATIO,
    Classifying,
    Ours,
    Paper,
    Torch,
    counts,
    cycle,
    equal_tokens,
    pad_to,
    ragged_examples,
    ragged_lengths,
)
from rotarymae import product
from rotarymae.batches import SeriesExamples, assemble, in_order, padding_waste, plan
from rotarymae.lanes import TRAINING, cut
from rotarymae.masking import mask_ratio, rows
from rotarymae.model import RoMAEConfig
from rotarymae.product import linear
from rotarymae.tokens import Tokens

BUDGET = 3072  # tokens a batch of the ragged workload: about those of 32 series
REFERENCE_BATCH = 32
ONE_LANE = "ours, eager, one lane"
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
    found, dtype = [], torch.bfloat16 if settings.device == "cuda" else None
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
        tokens = equal_tokens(batch, length, settings)
        eager = Ours(_config(size, settings), settings, dtype=dtype, step=batch * length)
        compiled = Ours(_config(size, settings), settings, compiled=True, dtype=dtype, step=batch * length)
        calls: dict[str, Callable[[], object]] = {
            "training, eager": lambda eager=eager, tokens=tokens: eager.train(tokens),
            "training, compiled": lambda compiled=compiled, tokens=tokens: compiled.train(tokens),
            "inference, eager": lambda eager=eager, tokens=tokens: eager.infer(tokens),
            "inference, compiled": lambda compiled=compiled, tokens=tokens: compiled.infer(tokens),
        }
        times = settings.alternate(calls)
        work = model_flops(eager.model.config, *counts(np.full(batch, length)))
        for name, seconds in times.items():
            rates = [batch * length / s for s in seconds]
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
                shares = [work / s / rate for s in seconds]
                what = f"{size}, {batch} × {length}, {name}, share of {of}"
                found.append(Row("throughput", what, median(shares), "", target if rate == peak else None, each=shares))
    return found


def equal(settings: Settings) -> list[Row]:
    """Batches without padding: ours against both references, in turn within one run."""
    dtype = torch.bfloat16 if settings.device == "cuda" else None
    batch, length = (2, 32) if settings.quick else (32, 256)
    config, tokens = _config("tiny", settings), equal_tokens(batch, length, settings)
    eager, compiled = (Ours(config, settings, how, dtype, step=batch * length) for how in (False, True))
    alone = Ours(config, settings, dtype=dtype)
    paper, plain = Paper(config, settings, dtype), Torch(config, settings)
    calls: dict[str, Callable[[], object]] = {
        "ours, compiled": lambda: compiled.train(tokens),
        "(a) the paper's": lambda: paper.train(tokens),
        "ours, eager": lambda: eager.train(tokens),
        ONE_LANE: lambda: alone.train(tokens),
    }
    if dtype is None:
        calls["(b) torch.nn.TransformerEncoder"] = lambda: plain.train(tokens)
        calls[f"ours, eager, {OTHER}"] = lambda: _other_products(lambda: eager.train(tokens))
    times = settings.alternate(calls, None if settings.quick else 11)
    rates = {name: [batch * length / s for s in seconds] for name, seconds in times.items()}
    found = [Row("equal", f"{name}, training", median(each), "tokens/s", each=each) for name, each in rates.items()]
    theirs = rates["(a) the paper's"]
    found.append(ratio("equal", "compiled against (a)", rates["ours, compiled"], theirs, 1.5))
    found.append(ratio("equal", "eager against (a)", rates["ours, eager"], theirs, 1.15))
    found.append(ratio("equal", "eager against eager, one lane", rates["ours, eager"], rates[ONE_LANE]))
    if dtype is None:
        found.append(ratio("equal", f"eager, {OTHER}, against (a)", rates[f"ours, eager, {OTHER}"], theirs))
        other = rates["(b) torch.nn.TransformerEncoder"]
        found.append(ratio("equal", "compiled against (b)", rates["ours, compiled"], other))
        found.append(ratio("equal", "eager against (b)", rates["ours, eager"], other))
    return found


def finetuning(settings: Settings) -> list[Row]:
    """A step of fine-tuning a classifier on [CLS]: the last block computes nothing else, or every token."""
    dtype, found = torch.bfloat16 if settings.device == "cuda" else None, []
    batch, length = (2, 32) if settings.quick else (32, 128)
    tokens = equal_tokens(batch, length, settings)
    for size in ("tiny-shallow", "tiny"):
        lanes = {"[CLS]": batch * length, "every token": batch * length, "one lane": 0}
        contenders = {what: Classifying(_config(size, settings), settings, dtype, step) for what, step in lanes.items()}
        calls: dict[str, Callable[[], object]] = {
            what: lambda contender=contender, what=what: contender.train(tokens, all_tokens=what == "every token")
            for what, contender in contenders.items()
        }
        times = settings.alternate(calls, None if settings.quick else 11)
        rates = {what: [batch * length / s for s in seconds] for what, seconds in times.items()}
        about = f"{size}, {batch} × {length}"
        found.append(Row("finetuning", about, median(rates["[CLS]"]), "tokens/s", each=rates["[CLS]"]))
        for other in ("every token", "one lane"):
            found.append(ratio("finetuning", f"{about}, against {other}", rates["[CLS]"], rates[other]))
    return found


# The way of multiplying that is not this machine's: what of a ratio is due to the library that multiplies.
OTHER = "torch's own products" if product.ONEDNN else "products by oneDNN"


def _other_products(call: Callable[[], object]) -> None:
    was, product.ONEDNN = product.ONEDNN, product.AVAILABLE and not product.ONEDNN
    try:
        call()
    finally:
        product.ONEDNN = was


def ragged(settings: Settings) -> list[Row]:
    """Series of light-curve lengths: real tokens/s. A pair is an epoch of ours beside some batches of the reference,
    other ones in every pair, so that the pairs together see nearly all series; assembling and masking count for ours,
    only masking for the reference."""
    dtype = torch.bfloat16 if settings.device == "cuda" else None
    lengths = ragged_lengths(16 if settings.quick else 512)
    examples, config = ragged_examples(lengths), _config("tiny", settings)
    budget = 32 * LONGEST if settings.device == "cuda" else BUDGET
    batches = plan(lengths, 0, 0, batch_tokens=budget)
    target = 5.0 if settings.device == "cuda" else 20.0
    ours = {name: Ours(config, settings, name == "compiled", dtype, budget) for name in ("eager", "compiled")}
    ours["eager, one lane"] = Ours(config, settings, dtype=dtype)
    paper = Paper(config, settings, dtype)
    size = 4 if settings.quick else REFERENCE_BATCH
    groups = np.random.default_rng(1).permutation(len(lengths)).reshape(-1, size)
    whole = [_assembled(examples, group) for group in groups]

    def parts(contender: Ours, index: np.ndarray) -> list[np.ndarray]:
        return [index] if settings.device != "cpu" else cut(index, lengths, TRAINING, contender.lanes.count)

    cuts = [part for index in batches for part in parts(ours["eager"], index)]
    found = [Row("ragged", "padding waste", padding_waste(lengths, cuts), "", 0.05, at_least=False)]
    rates: dict[str, list[float]] = {}

    def note(name: str, tokens: float, call: Callable[[], object]) -> None:
        rates.setdefault(name, []).append(tokens / settings.seconds(call))

    def epoch(contender: Ours) -> None:
        for index in batches:
            contender.train_parts([examples.batch(part, 0) for part in parts(contender, index)])

    for name in ours:  # every shape once, so that compilation and first allocations are not measured
        epoch(ours[name])
    paper.train(pad_to(whole[0], LONGEST))
    paper.train(whole[0])
    order = np.random.default_rng(2).permutation(len(lengths))
    large = order.reshape(-1, 8 if settings.quick else AUTHORS_BATCH)
    each = max(1, len(whole) // settings.pairs)
    for pair in range(settings.pairs):
        part = range(pair * each, min(len(whole), (pair + 1) * each))
        tokens = int(sum(lengths[groups[i]].sum() for i in part))
        for name, contender in ours.items():
            note(f"ours, {name}", int(lengths.sum()), lambda contender=contender: epoch(contender))
        calls = [lambda i=i: paper.train(pad_to(whole[i], LONGEST)) for i in part]
        note(f"(a) padded to {LONGEST}", tokens, lambda calls=calls: [call() for call in calls])
        calls = [lambda i=i: paper.train(whole[i]) for i in part]
        note("(a) padded per batch", tokens, lambda calls=calls: [call() for call in calls])
        group = large[pair % len(large)]
        batch = pad_to(_assembled(examples, group), LONGEST)
        note(
            f"(a) padded to {LONGEST}, {len(group)} at once", int(lengths[group].sum()), lambda b=batch: paper.train(b)
        )
    found += [Row("ragged", f"{name}, training", median(r), "real tokens/s", each=r) for name, r in rates.items()]
    for name in ours:
        own = rates[f"ours, {name}"]
        found.append(
            ratio("ragged", f"{name} against (a) padded to {LONGEST}", own, rates[f"(a) padded to {LONGEST}"], target)
        )
        found.append(ratio("ragged", f"{name} against (a) padded per batch", own, rates["(a) padded per batch"], 4.0))
        other = f"(a) padded to {LONGEST}, {large.shape[1]} at once"
        found.append(ratio("ragged", f"{name} against {other}", own, rates[other]))
    return found


def _assembled(examples: SeriesExamples, index: np.ndarray) -> Tokens:
    return assemble(examples.dataset, examples.preprocessor, index)


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
    dtype = torch.bfloat16 if settings.device == "cuda" else None
    batch, length = (2, 32) if settings.quick else ((64, 1024) if settings.device == "cuda" else (32, 256))
    continuous = equal_tokens(batch, length, settings)
    quantised = type(continuous)(continuous.values, continuous.positions.round())
    found = []
    for compiled in (False, True):
        step = batch * length
        turned = Ours(_config("tiny", settings), settings, compiled, dtype, step)
        added = Ours(_config("tiny", settings, position_encoding="absolute"), settings, compiled, dtype, step)
        calls: dict[str, Callable[[], object]] = {
            "absolute": lambda added=added: added.train(continuous),
            "quantised": lambda turned=turned: turned.train(quantised),
            "continuous": lambda turned=turned: turned.train(continuous),
        }
        times = settings.alternate(calls, None if settings.quick else 11)
        rates = {name: [batch * length / s for s in seconds] for name, seconds in times.items()}
        how = "compiled" if compiled else "eager"
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
    tokens = _assembled(ragged_examples(lengths), np.arange(256))
    assert tokens.length == LONGEST
    calls: dict[str, Callable[[], object]] = {
        "drawn from torch's generator": lambda: mask_ratio(tokens, RATIO),
        "a function of seed, epoch and series": lambda: mask_ratio(tokens, RATIO, rows(0, 0, np.arange(256))),
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
        "rotarymae --help": [*python, "-c", "from rotarymae.cli import main; main()", "--help"],
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
    against more padding, and against rows in groups of a length (micro-batches of one step)."""
    steps = 3 if settings.quick else 50
    found = loss_curves(steps, _config("tiny-shallow", settings), compiled=True)
    base = found.pop("eager")
    return [
        Row("curves", f"{name} against eager, {steps} steps", _apart(base, curve), "", 1e-4, at_least=False)
        for name, curve in found.items()
    ]


def loss_curves(steps: int, config: RoMAEConfig, compiled: bool, rate: float = 1e-3) -> dict[str, list[float]]:
    """Mean losses of `steps` steps on the same 8 series a step, by the ways in which the same step can be taken."""
    ways = ["eager", "padded", "grouped"] + (["compiled"] if compiled else [])
    return {way: curve(way, steps, config, rate) for way in ways}


def _apart(one: list[float], other: list[float]) -> float:
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
