"""Annotated shapes are checked in the tests of the modules that state them, so that signatures cannot rot.

Every test is seeded. Below are the few things that several test files share.
"""

import ast
import importlib
import os
import re
import signal
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import beartype
import hypothesis
import jaxtyping
import numpy as np
import pytest
import torch

ROOT = Path(__file__).resolve().parent
TESTS = ROOT / "tests"
SOURCES = (ROOT / "src", ROOT / "experiments" / "src")

# An int is a float to every type checker, hence also here.
checked = beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))


def annotated() -> list[str]:
    """The modules that state shapes. The others take what users type, and their own messages are what is tested."""
    files = [(source, file) for source in SOURCES for file in sorted(source.rglob("*.py"))]
    with_shapes = [each for each in files if "from jaxtyping import" in each[1].read_text(encoding="utf-8")]
    return [".".join(file.relative_to(source).with_suffix("").parts) for source, file in with_shapes]


def outside_functions(visit):
    """Leave out functions within functions, which would be compiled anew in each call."""
    inside = (ast.FunctionDef, ast.AsyncFunctionDef)
    return lambda self, node: node if any(isinstance(one, inside) for one in self._parents) else visit(self, node)


# Before anything imports the package. ROTARYMAE_NO_HOOK=1 leaves it out.
ANNOTATED = set(annotated())
if os.environ.get("ROTARYMAE_NO_HOOK") != "1":
    transformer = jaxtyping._import_hook.JaxtypingTransformer  # pyright: ignore[reportAttributeAccessIssue]
    transformer.visit_FunctionDef = outside_functions(transformer.visit_FunctionDef)
    jaxtyping.install_import_hook(sorted(ANNOTATED), f"{__name__}.checked")
jaxtyping.config.update("jaxtyping_disable", True)

torch.set_num_threads(1)  # the models here are too small to share out
# For the processes that tests start, too: sums over other numbers of threads differ in the last digit.
os.environ["OMP_NUM_THREADS"] = "1"


# The same cases in every run, so that a change is judged by its own faults. scripts/fuzz.py looks for new ones.
hypothesis.settings.register_profile("suite", derandomize=True, database=None)
hypothesis.settings.load_profile("suite")


@pytest.fixture(autouse=True)
def seeded():
    """The same random numbers in every test, whichever others run."""
    torch.manual_seed(0)
    np.random.seed(0)


@contextmanager
def unchecked(disable=True):
    """Inside, shapes are not checked."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", disable)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", before)


@pytest.fixture(autouse=True)
def shapes(request):
    """Check shapes where a file imports what states them."""
    origins = {getattr(each, "__module__", None) for each in vars(request.module).values()}
    with unchecked(origins.isdisjoint(ANNOTATED)):
        yield


@pytest.fixture(autouse=True, scope="session")
def unchecked_loop():
    """Shapes are not checked in the training loop, which would check each thousands of times."""
    from rotarymae.training.loop import _Loop

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Loop, "run", unchecked()(_Loop.run))
        yield


# Nine tenths of a tiny fit are its calibration, its pictures, the resampling of its scores, and thousands of trees.
LEFT_OUT = {"rotarymae.train.calibrate": lambda *_, **__: None, "rotarymae.report.build.PICTURES": ()}
FEW_TREES = {"learning_rate": 0.5, "num_iterations": 40, "num_leaves": 6, "feature_fraction": 0.05}
FEWER = {
    "rotarymae.metrics.RESAMPLES": 5,
    "rotarymae.metrics.MIN_RESAMPLES": 5,
    **{f"rotarymae.partners.boosting.{name}": FEW_TREES for name in ("SLOW", "QUICK", "RISK")},
}

# A calibration that is not judged learns from few values.
FEW_DRAWS = {"rotarymae.calibration.MAX_DRAWS": 3, "rotarymae.calibration.STEPS": 6}


@contextmanager
def patched(changes):
    """Set these attributes, by their full names, for a while."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in changes.items():
            patch.setattr(name, value)
        yield


@pytest.fixture(autouse=True, scope="session")
def short_fits():
    """Fits neither calibrate nor draw, and resample and boost little; `patched` with the value restores all that."""
    parts = [name.rpartition(".") for name in LEFT_OUT | FEWER]
    originals = {f"{module}.{name}": getattr(importlib.import_module(module), name) for module, _, name in parts}
    with patched(LEFT_OUT | FEWER):
        yield originals


@pytest.fixture(scope="session")
def every_part(short_fits):
    """What to give to `patched`, so that fits calibrate and draw, too, though from few values, resamples and trees."""
    return {name: short_fits[name] for name in LEFT_OUT} | FEW_DRAWS


@pytest.fixture
def complete(every_part):
    """The fits of a test calibrate, and draw their report."""
    with patched(every_part):
        yield


@pytest.fixture
def whole(short_fits):
    """The fits of a test do all that those of users do, at the same length."""
    with patched(short_fits):
        yield


@pytest.fixture(autouse=True, scope="session")
def heard():
    """SIGINT is not ignored, as it is where tests run in the background of a script."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def float32():
    """Precision "auto" is float32 on every processor: tests compare digits, and those with AMX would take bf16."""
    from rotarymae.training import evaluation

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation, "has_matrix_units", lambda: False)
        yield


def says(*parts):
    """A pattern that matches text with all the parts, in this order."""
    return "(?s)" + ".*".join(re.escape(str(part)) for part in parts)


@contextmanager
def refuses(*parts, error=None, code=None):
    """What happens inside must be refused: with this code, and with names and numbers in the message, in this order.

    Shapes are not checked inside, as they are not for users: the message must be the code's own.
    """
    from rotarymae.errors import InputError

    with unchecked(), pytest.raises(error or InputError, match=says(*parts)) as caught:
        yield caught
    assert code is None or caught.value.code == code  # pyright: ignore[reportAttributeAccessIssue]


def small(**changes):
    """A configuration for tests: heads of 12 channels, which 1, 2 and 3 axes divide."""
    from rotarymae.config import RoMAEConfig

    sizes = {"embed_dim": 24, "num_heads": 2, "depth": 2, "mlp_ratio": 2.0}
    sizes |= {"decoder_embed_dim": 12, "decoder_num_heads": 1, "decoder_depth": 2, "decoder_mlp_ratio": 2.0}
    return RoMAEConfig(**{**sizes, **changes})


def random_rows(lengths, features=1, axes=1, dtype=torch.float64, seed=0):
    """Rows (values [n, V], positions [n, A]) of these lengths, positions between 0 and 20."""
    draw = torch.Generator().manual_seed(seed)
    return [
        (
            torch.randn(n, features, generator=draw, dtype=dtype),
            20 * torch.rand(n, axes, generator=draw, dtype=dtype),
        )
        for n in lengths
    ]


def from_rows(rows):
    """The rows in a batch, padded behind."""
    from rotarymae.tokens import Tokens, pad_rows

    lengths = [len(values) for values, _ in rows]
    values, positions = (pad_rows(torch.cat(parts), lengths)[0] for parts in zip(*rows, strict=True))
    return Tokens(values, positions, pad_rows(values.new_zeros(sum(lengths), 1), lengths)[1])


def random_tokens(batch=2, length=6, features=1, axes=1, dtype=torch.float64, seed=0):
    """A batch without padding."""
    return from_rows(random_rows([length] * batch, features, axes, dtype, seed))


def place_rows(rows, length, placement, seed=0):
    """The rows in a batch of `length`, padding "front", "middle", "behind" or at "random" places of each row.

    NaN stands under the padding. Returns the tokens and for every row the places of its tokens.
    """
    from rotarymae.tokens import Tokens

    draw = torch.Generator().manual_seed(seed)
    first = rows[0]
    values = torch.full((len(rows), length, first[0].shape[1]), torch.nan, dtype=first[0].dtype)
    positions = torch.full((len(rows), length, first[1].shape[1]), torch.nan, dtype=first[1].dtype)
    padding = torch.ones(len(rows), length, dtype=torch.bool)
    places = []
    for i, (v, p) in enumerate(rows):
        n, blank = len(v), length - len(v)
        at = {
            "front": torch.arange(blank, length),
            "middle": torch.cat([torch.arange(n // 2), torch.arange(n // 2 + blank, length)]),
            "behind": torch.arange(n),
            "random": torch.randperm(length, generator=draw)[:n].sort().values,
        }[placement]
        values[i, at], positions[i, at], padding[i, at] = v, p, False
        places.append(at)
    return Tokens(values, positions, padding), places


# ── a small run of the command, made once ───────────────────────────────────────────────────────────────────────────

SHORT = "--pretrain-epochs 1 --finetune-epochs 1 --min-steps 0 --batch-size 8".split()  # noqa: SIM905
SMALL = "--embed-dim 24 --num-heads 2 --depth 2 --decoder-embed-dim 12 --decoder-num-heads 1 --decoder-depth 1"
TINY = [*SHORT, *SMALL.split()]


def command(*arguments):
    """Runs the command in this process; its exit code."""
    from rotarymae.cli import main as cli

    try:
        cli.main([str(argument) for argument in arguments])
    except SystemExit as end:
        return end.code or 0
    return 0


def two_kinds(series=24, channels=("g", "r")):
    """Rows (id, time, channel, flux) of sine waves in two channels, slow ("a") and fast ("b"), and the labels by id."""
    draw = np.random.default_rng(0)
    rows, labels = [], {}
    for i in range(series):
        name, kind = f"star {i:02d}", "ab"[i % 2]
        labels[name] = kind
        for time in np.sort(draw.uniform(0, 30, draw.integers(6, 16))):
            rows.append(
                (name, round(time, 4), channels[draw.integers(len(channels))], round(np.sin((i % 2 + 0.3) * time), 5))
            )
    return rows, labels


def write_csv(path, header, rows):
    """A table as text; returns the path."""
    lines = [header, *(",".join(str(cell) for cell in row) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def fitted(tmp_path_factory, short_fits, every_part):
    """A folder with stars.csv, kinds.csv, run/ of `rotarymae fit`, and autoencoder/, its pre-trained part."""
    from rotarymae.pipeline import Pipeline

    folder = tmp_path_factory.mktemp("fitted")
    rows, labels = two_kinds()
    table = write_csv(folder / "stars.csv", "star,day,band,flux", rows)
    kinds = write_csv(folder / "kinds.csv", "star,kind", labels.items())
    columns = ["--id", "star", "--time", "day", "--channel", "band", "--values", "flux"]
    options = [*columns, "--labels", kinds, "--label", "kind", *TINY, "--quiet"]
    resamples = {name: value for name, value in short_fits.items() if "RESAMPLES" in name}
    with patched(every_part | resamples):
        assert command("fit", table, "--out", folder / "run", *options) == 0
    Pipeline.load(folder / "run").pretrained.save(folder / "autoencoder")
    return folder


@pytest.fixture(scope="session")
def survey_model(tmp_path_factory):
    """A model directory for the tables of `_survey.nested`, which nobody trained."""
    from _survey import save_model

    folder = tmp_path_factory.mktemp("survey") / "model"
    save_model(folder)
    return folder


def identity(preprocessor):
    """Return everything that a preprocessor's tokens depend on: its settings, and its statistics as bytes."""
    statistics = {name: tensor.numpy().tobytes() for name, tensor in preprocessor.state_dict().items()}
    return preprocessor.kind, asdict(preprocessor), statistics
