"""The loop: schedule, groups, order, what each setting does, what a bad batch does, precision, logs."""

import functools
import json
import math
import runpy
import subprocess
import sys
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from _runs import Poisoned, config, digest, examples, log, objective, same, settings, weights
from conftest import refuses
from rotarymae.batch import plan_batches
from rotarymae.errors import InputWarning
from rotarymae.losses import classification
from rotarymae.masking import Masking
from rotarymae.model import MaskedAutoencoder
from rotarymae.preprocess import DatasetExamples
from rotarymae.training import evaluation
from rotarymae.training import loop as training
from rotarymae.training.checkpointing import CHECKPOINT, RunFolder, read_checkpoint
from rotarymae.training.evaluation import evaluate, has_matrix_units, predict
from rotarymae.training.fit_config import TrainConfig
from rotarymae.training.loop import TrainingDiverged, fit, learning_rate, parameter_groups
from rotarymae.training.objectives import TEMPERATURES, Pretraining, Supervised
from rotarymae.transformer import Block

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "losses.json"


def train(kind="pretrain", what=None, held=True, data=None, folder=None, **changes):
    what = what or objective(kind)
    validation = examples(kind, 11, of=1, augment=False) if held else None
    result = fit(what, data or examples(kind), settings(**changes), validation=validation, folder=folder)
    return what, result


def losses(result):
    return [line["loss"] for line in result.history if "loss" in line]


def manifest_in(folder):
    return read_checkpoint(folder / CHECKPOINT)[0]


def validations(result):
    return [line["validation"] for line in result.history if "validation" in line]


# ── schedule and groups ─────────────────────────────────────────────────────────────────────────────────────────────


def test_the_learning_rate_at_its_corners():
    rates = [learning_rate(step, 100, 10, 1.0) for step in range(101)]
    assert rates[0] == 1 / 11 and rates[9] == 10 / 11, "it rises from the first step on, and by equal steps"
    assert rates[10] == 1.0 == max(rates), "the peak is reached, at the step named"
    assert rates[55] == pytest.approx(0.5), "half way down the cosine"
    assert rates[100] == 0.0 and learning_rate(500, 100, 10, 1.0) == 0.0
    assert all(b > a for a, b in pairwise(rates[:11])) and all(b < a for a, b in pairwise(rates[10:]))
    assert rates[10] - rates[9] == pytest.approx(rates[1] - rates[0])


@pytest.mark.parametrize(
    ("step", "steps", "warmup", "wanted"),
    [(0, 1, 0, 1.0), (0, 10, 0, 1.0), (0, 0, 0, 1.0), (5, 10, 20, 6 / 21), (20, 10, 20, 1.0), (21, 10, 20, 0.0)],
)
def test_the_learning_rate_of_odd_runs(step, steps, warmup, wanted):
    assert learning_rate(step, steps, warmup, 2.0) == pytest.approx(2 * wanted)


def test_the_rates_of_a_run_are_the_schedule():
    _, result = train(base_lr=0.01, warmup_steps=4)
    rates = [line["lr"] for line in result.history if "lr" in line]
    assert rates == pytest.approx([learning_rate(step, 20, 4, 0.01) for step in range(20)])
    _, result = train(base_lr=0.01, warmup_fraction=0.3)
    rates = [line["lr"] for line in result.history if "lr" in line]
    assert rates == pytest.approx([learning_rate(step, 20, 6, 0.01) for step in range(20)])


def names_of(groups, model):
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    return [{names[id(parameter)] for parameter in group["params"]} for group in groups]


@pytest.mark.parametrize("kind", ["pretrain", "classify"])
def test_norms_biases_and_tokens_do_not_decay(kind):
    model = objective(kind).model
    groups = parameter_groups(model, 0.05)
    free = set().union(*(names for names, g in zip(names_of(groups, model), groups) if g["weight_decay"] == 0))
    every = {name for name, _ in model.named_parameters()}
    wanted = {name for name in every if name.endswith("bias") or "norm" in name or "token" in name.split(".")[-1]}
    assert free == wanted and wanted
    assert sum(len(group["params"]) for group in groups) == len(every), "each parameter is in one group"
    assert {group["weight_decay"] for group in groups} == {0.0, 0.05}


def test_frozen_parameters_are_in_no_group_and_stay():
    what = objective("classify")
    for parameter in what.model.encoder.parameters():
        parameter.requires_grad_(False)
    before = weights(what.model)
    assert sum(len(group["params"]) for group in parameter_groups(what.model, 0.05)) == 3
    train("classify", what, epochs=1)
    after = weights(what.model)
    assert {name for name in before if not torch.equal(before[name], after[name])} == {
        "head.weight",
        "head.bias",
        "norm.weight",
    }


# ── settings ────────────────────────────────────────────────────────────────────────────────────────────────────────

WORSE = {"base_lr": 0.5, "epochs": 8, "warmup_steps": 30}  # a rate that rises until the validation loss does, too

# What each field is changed to, from what; the weights after the run must differ.
CHANGES = {
    "epochs": ({}, 4),
    "epoch_steps": ({}, 3),
    "min_steps": ({}, 17),
    "batch_size": ({}, 8),
    "batch_tokens": ({"batch_size": None, "batch_tokens": 100}, 60),
    "optimizer": ({}, "sgd"),
    "base_lr": ({}, 2e-3),
    "betas": ({}, (0.8, 0.95)),
    "weight_decay": ({}, 0.5),
    "warmup_steps": ({}, 5),
    "warmup_fraction": ({}, 0.5),
    "gradient_clip": ({"optimizer": "sgd"}, 0.01),
    "precision": ({}, "bf16"),
    "keep_best": (WORSE, True),
    "seed": ({}, 1),
}
ELSEWHERE = {
    "compile",
    "log_every",
    "checkpoint_minutes",
    "checkpoint_steps",
}


@functools.cache
def trained(*changes):
    return digest(train("classify", **dict(changes))[0].model)


@pytest.mark.parametrize("field", CHANGES)
def test_each_setting_changes_the_weights(field):
    base, value = CHANGES[field]
    base = {"epochs": 3, **base}
    assert trained(*base.items()) != digest(train("classify", **{**base, field: value})[0].model)


def test_the_same_settings_give_the_same_weights():
    assert trained(("epochs", 3)) == digest(train("classify", epochs=3)[0].model)


def test_no_setting_is_forgotten():
    assert {field.name for field in fields(TrainConfig)} == set(CHANGES) | ELSEWHERE


def test_settings_need_no_torch():
    code = "import sys, rotarymae.training.fit_config; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_compile_compiles_every_block_and_leaves_the_model_as_it_was(monkeypatch):
    """With the backend that does nothing; inductor would take a minute."""
    called = []

    def compiling(call, **how):
        assert how == {"dynamic": True}
        return lambda *given, **more: (called.append(call.__self__), call(*given, **more))[1]

    monkeypatch.setattr(torch, "compile", compiling)
    what, _ = train(compile=True, epochs=1)
    blocks = [module for module in what.model.modules() if isinstance(module, Block)]
    assert len(blocks) == 3 and {id(block) for block in called} == {id(block) for block in blocks}
    called.clear()
    batch = examples().batch(np.arange(2), 0)
    what(batch)
    assert not called
    blocks[0].compile(dynamic=True)  # the user's own choice stays
    train(what=what, compile=True, epochs=1)
    called.clear()
    what(batch)
    assert called and {id(block) for block in called} == {id(blocks[0])}


def test_log_every_and_checkpoint_minutes(tmp_path, monkeypatch):
    _, result = train(log_every=4, held=False, folder=tmp_path / "a")
    assert [line["step"] for line in result.history] == [4, 8, 12, 16, 20]
    _, every = train(held=False)
    assert losses(result) == pytest.approx([np.mean(losses(every)[i : i + 4]) for i in range(0, 20, 4)])
    inner, steps = RunFolder.save, []
    monkeypatch.setattr(RunFolder, "save", lambda *given: (steps.append(given[3].step), inner(*given)))
    train(held=False, folder=tmp_path / "b", checkpoint_minutes=1e7)
    assert steps == [20]
    train(held=False, folder=tmp_path / "c", checkpoint_minutes=0.0)
    assert set(steps) == set(range(1, 21))


BAD = {
    "epochs": [0, 1.0, True, None, "3"],
    "epoch_steps": [0, 1.0],
    "min_steps": [-1],
    "batch_size": [0, True, 2.5],
    "batch_tokens": [10],
    "optimizer": ["adam", None],
    "base_lr": [0, -1.0, math.nan, math.inf, "1e-3", None],
    "betas": [(0.9,), (0.9, 1.0), (-0.1, 0.9), (math.nan, 0.9), 0.9],
    "weight_decay": [-0.1, math.nan, math.inf, None],
    "warmup_steps": [-1, 0.5],
    "warmup_fraction": [1.0, -0.1, math.nan],
    "gradient_clip": [0.0, -1.0, math.nan],
    "precision": ["float32", None],
    "keep_best": ["yes", 1],
    "compile": [None],
    "seed": [-1, 0.5, 2**64],
    "log_every": [0],
    "checkpoint_minutes": [-1.0, math.nan],
    "checkpoint_steps": [0],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field in BAD for value in BAD[field]])
def test_impossible_settings_are_refused(field, value):
    with refuses(field):
        TrainConfig(**{field: value})


def test_every_setting_can_be_refused():
    assert {field.name for field in fields(TrainConfig)} == set(BAD)


def test_min_steps_lengthens_a_short_run():
    _, result = train(epochs=1, min_steps=10, held=False)
    assert result.steps == 12  # whole epochs of four
    assert train(epochs=5, min_steps=10, held=False)[1].steps == 20


def test_epoch_steps_cut_an_epoch_short_and_its_evaluation_with_it(monkeypatch):
    inner, seen, whole, data = training.evaluate, [], [], examples()

    def watched(*given):
        seen.append(given[-1])
        whole.append(inner(*given[:-1]))
        return inner(*given)

    monkeypatch.setattr(training, "evaluate", watched)
    make = data.batch
    data.batch = lambda index, epoch: (seen.append((epoch, *index)), make(index, epoch))[1]
    _, result = train(data=data, epochs=2, epoch_steps=2)
    assert result.steps == 4 and len(validations(result)) == 2 and set(validations(result)).isdisjoint(whole)
    first, second, one, third, fourth, other = seen
    assert (one, other) == (2, 2), "of two of four batches, one in two examples is evaluated"
    assert [*first, *second] != [*third, *fourth] and first[0] == 0 and fourth[0] == 1
    assert len({*first[1:], *second[1:]}) == 20


def test_keep_best_ends_with_the_best_weights():
    what, result = train("classify", **WORSE, keep_best=True)
    found = validations(result)
    assert min(found) < found[-1], "the last are not the best here"
    held = examples("classify", 11, of=1, augment=False)
    assert evaluate(what, held, settings()) == pytest.approx(min(found), abs=1e-6)


def test_a_validation_loss_of_nan_is_never_the_best(tmp_path, monkeypatch):
    inner, calls = training.evaluate, []

    def sometimes(*arguments):
        calls.append(0)
        return math.nan if len(calls) == 1 else inner(*arguments)

    monkeypatch.setattr(training, "evaluate", sometimes)
    _, result = train(folder=tmp_path / "run", epochs=3, keep_best=True)
    assert result.best == min(validations(result)[1:])
    lines = (tmp_path / "run" / "log.jsonl").read_text()
    assert '"validation": null' in lines and "NaN" not in lines, "strict JSON"


def test_no_examples_are_refused():
    nothing = SimpleNamespace(lengths=np.zeros(0, int))
    with refuses("training", "examples"):
        fit(objective(), nothing, settings())
    with refuses("validation", "examples"):
        fit(objective(), examples(), settings(), validation=nothing)


# ── order ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_seeds_next_to_each_other_share_no_order():
    """The order within and of the batches of one seed must not come again under another one."""
    orders = [np.concatenate(plan_batches(np.ones(64, int), seed, 0, 1)) for seed in range(20)]
    assert len({tuple(order) for order in orders}) == 20
    # What one seed shuffles by the stream of the next one, shuffled back, would be the order of that.
    first, then = (np.random.Generator(np.random.Philox(key=np.array([s, 0], np.uint64))) for s in (0, 1))
    assert (orders[0] != first.permutation(64)[then.permutation(64)]).any()


# ── parts of a batch ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("what", ["pretrain", "classify", "regress"])
def test_a_batch_does_not_depend_on_the_others_in_it(what):
    """Masks and augmentation of a series are its own: in another batch it is padded otherwise."""
    data = examples(what, 30)
    for epoch in (0, 3, None):
        together = data.batch(np.arange(30), epoch)
        for i in range(30):
            alone = data.batch(np.array([i]), epoch)
            for whole, own in ((together.inputs, alone.inputs), (together.masked, alone.masked)):
                if own is not None:
                    assert torch.equal(whole.values[i][whole.real[i]], own.values[0][own.real[0]])
                    assert torch.equal(whole.positions[i][whole.real[i]], own.positions[0][own.real[0]])


@pytest.mark.parametrize("kind", ["pretrain", "classify", "regress"])
def test_rounded_lengths_change_no_loss_and_no_gradient(kind, monkeypatch):
    results, lengths = [], []
    for step in (1, 16):
        monkeypatch.setattr("rotarymae.preprocess.examples.rounding_step", lambda length, step=step: step)
        batch = examples(kind, 30, augment=False).batch(np.arange(30), 2)
        what = objective(kind, dropout=0.0, drop_path=0.0)
        loss = what(batch)
        loss.sum.backward()
        lengths.append(batch.inputs.length)
        results.append((loss, [p.grad for p in what.parameters() if p.grad is not None]))
    assert lengths[0] < lengths[1] == 16
    (one, first), (other, second) = results
    assert float(one.sum.detach()) == pytest.approx(float(other.sum.detach()), rel=1e-6) and one.count == other.count
    worst = max(float((a - b).abs().max()) for a, b in zip(first, second, strict=True))
    assert worst < 1e-5 * max(float(a.abs().max()) for a in first)


def test_a_part_in_which_nothing_can_be_hidden_counts_for_nothing():
    """With masking by channel a series of one channel hides nothing; alone on a process it must not end the run."""
    data = examples(count=60)
    data.masking = Masking("channels", 0.5)
    single = [i for i, one in enumerate(data.dataset) if len(set(one.channels.tolist())) == 1]
    assert single
    batch, what = data.batch(np.array(single[:1]), 0), objective()
    loss = what(batch)
    assert loss.count == 0 and float(loss.sum.detach()) == 0
    result = train(data=data, held=False, batch_size=1, epochs=1, log_every=1)[1]
    assert np.isfinite(losses(result)).all() and 0 not in losses(result)
    alone = DatasetExamples(data.dataset.select(single), data.preprocessor, masking=Masking("channels", 0.5))
    start = digest(what.model)
    assert not losses(train(what=what, data=alone, held=False, epochs=1)[1]) and digest(what.model) == start


# ── bad batches ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.filterwarnings("ignore:.* training steps were skipped")
def test_one_nan_is_reported_and_the_run_goes_on(tmp_path):
    """A NaN in one series of the batch of step 30."""
    data = examples()
    batches = plan_batches(data.lengths, 0, 7, 10)
    bad = int(batches[1][4])  # epoch 7 begins with step 29
    what, result = train(data=Poisoned(data, {bad}, epoch=7), held=False, epochs=10, folder=tmp_path / "run")
    skipped = [line for line in log(tmp_path / "run") if "skipped" in line]
    assert len(skipped) == 1 and skipped[0]["step"] == 30 and skipped[0]["skipped"] == 1
    assert f"s{bad:03d}" in skipped[0]["series"]
    assert set(skipped[0]["series"]) == {f"s{i:03d}" for i in batches[1]}
    assert [line["step"] for line in log(tmp_path / "run") if "loss" in line] == [*range(1, 30), *range(31, 41)]
    assert result.skipped == 1 and result.steps == 40 and np.isfinite(losses(result)).all()
    assert all(torch.isfinite(tensor).all() for tensor in weights(what.model).values())


@pytest.mark.filterwarnings("ignore:.* training steps were skipped")
def test_a_skipped_step_leaves_weights_and_optimiser(tmp_path, monkeypatch):
    """The step is left out altogether: nothing decays, no moment is updated."""
    data = examples()
    bad = int(plan_batches(data.lengths, 0, 0, 10)[3][0])  # the last batch of the first epoch
    inner, saved = RunFolder.save, {}

    def save(folder, *given):
        inner(folder, *given)
        saved[given[2].step] = read_checkpoint(folder.checkpoint)

    monkeypatch.setattr(RunFolder, "save", save)
    train(data=Poisoned(data, {bad}), held=False, epochs=1, folder=tmp_path / "run", checkpoint_steps=1)
    assert same(saved[3][1], saved[4][1]) and saved[4][0]["state"]["skipped"] == 1


@pytest.mark.filterwarnings("ignore:.* training steps were skipped")
def test_one_per_cent_of_rows_poisoned_ends_with_advice(tmp_path):
    data = examples(count=300)
    with pytest.raises(TrainingDiverged) as caught:
        train(data=Poisoned(data, {7, 100, 222}), held=False, epochs=5, folder=tmp_path / "run", checkpoint_steps=20)
    said = str(caught.value)
    for part in (
        "11 steps had a non-finite loss or gradient",
        "Look at these series for extreme values, or lower base_lr (0.001).",
        f"The last good checkpoint is {tmp_path / 'run' / CHECKPOINT}",
    ):
        assert part in said
    assert manifest_in(tmp_path / "run")["state"]["skipped"] == 11
    what = objective(seed=4)
    healed = settings(epochs=5)
    result = fit(what, data, healed, folder=tmp_path / "run", resume="auto")  # without the poison
    assert np.isfinite(losses(result)).all() and result.steps == 150 and result.skipped == 11


@pytest.mark.filterwarnings("ignore:.* training steps were skipped")
def test_a_run_ends_after_too_many_skipped_steps(monkeypatch):
    data = Poisoned(examples(), {5})
    monkeypatch.setattr("rotarymae.training.loop.MAX_SKIPPED", 5)
    assert train(data=data, held=False)[1].skipped == 5
    monkeypatch.setattr("rotarymae.training.loop.MAX_SKIPPED", 4)
    with pytest.raises(TrainingDiverged, match="5 steps had"):
        train(data=data, held=False)


def test_lost_weights_are_never_saved(tmp_path, monkeypatch):
    """A finite gradient can still end in weights that are not; the checkpoints before stand."""
    inner = training._Loop._step

    def spoil(self, *arguments):
        loss = inner(self, *arguments)
        if self.state.step == 9:
            with torch.no_grad():
                self.objective.model.mask_token.mul_(torch.inf)
        return loss

    monkeypatch.setattr(training._Loop, "_step", spoil)
    with pytest.raises(TrainingDiverged, match=r"mask_token.*10"):
        train(folder=tmp_path / "run", checkpoint_steps=1)
    assert manifest_in(tmp_path / "run")["state"]["step"] == 9


# ── precision ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["pretrain", "classify", "regress"])
def test_losses_norms_angles_and_answers_stay_in_float32(kind, monkeypatch):
    from rotarymae import rope

    what, kinds = objective(kind), {name: set() for name in ("norm", "linear", "last layer", "angles", "loss")}
    for name, part in what.named_modules():
        if isinstance(part, nn.RMSNorm):
            part.register_forward_hook(lambda m, i, o: kinds["norm"].update({i[0].dtype, o.dtype}))
        if isinstance(part, nn.Linear):
            which = "last layer" if name.endswith(".head") else "linear"
            part.register_forward_hook(lambda m, i, o, which=which: kinds[which].add(o.dtype))
    inner = rope.rotation

    def rotation(angles):
        found = inner(angles)
        kinds["angles"] |= {angles.dtype, found.cos.dtype, found.sin.dtype}
        return found

    monkeypatch.setattr(rope, "rotation", rotation)
    what.register_forward_hook(lambda m, i, o: kinds["loss"].add(o.sum.dtype))
    _, result = train(kind, what, precision="bf16")
    single = {torch.float32}
    assert kinds == dict.fromkeys(kinds, single) | {"linear": {torch.bfloat16}}
    assert {parameter.dtype for parameter in what.parameters()} == single
    exact = losses(train(kind, precision="fp32")[1])
    assert losses(result)[:20] == pytest.approx(exact[:20], rel=0.1, abs=0.05)


@pytest.mark.parametrize(("units", "taken"), [(False, "fp32"), (True, "bf16")])
def test_auto_is_bf16_where_the_processor_has_units_for_it(units, taken, monkeypatch):
    if torch.cuda.is_available():
        pytest.skip("auto asks the GPU here")
    monkeypatch.setattr(evaluation, "has_matrix_units", lambda: units)
    assert evaluation.taken_precision("auto") == taken and evaluation.taken_precision("bf16") == "bf16"
    one, other = (train(precision=precision, epochs=1)[0] for precision in ("auto", taken))
    assert digest(one.model) == digest(other.model)


@pytest.mark.parametrize(("emulated_only", "taken"), [(True, "fp32"), (False, "bf16")])
def test_auto_asks_a_gpu_for_units_and_not_for_emulation(emulated_only, taken, monkeypatch):
    asked = lambda including_emulation=True: including_emulation or not emulated_only  # noqa: E731
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", asked)
    assert evaluation.taken_precision("auto", torch.device("cuda")) == taken


def test_matrix_units_are_those_that_the_system_knows_of():
    """avx512_bf16, which has no tiles, is not enough."""
    flags = Path("/proc/cpuinfo")
    if not flags.exists():
        pytest.skip("no /proc/cpuinfo")
    assert has_matrix_units() == ("amx_bf16" in flags.read_text().split())


def test_low_precision_resumes_with_the_same_bits(tmp_path, monkeypatch):
    whole, _ = train(precision="bf16")
    inner = training._Loop._step

    def stop(self, *arguments):
        if self.state.step == 7:
            raise KeyboardInterrupt
        return inner(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(training._Loop, "_step", stop)
        with pytest.raises(KeyboardInterrupt):
            train(precision="bf16", folder=tmp_path / "run", checkpoint_steps=3)
    what = objective()
    held = examples("pretrain", 11, of=1, augment=False)
    fit(what, examples(), settings(precision="bf16"), validation=held, folder=tmp_path / "run", resume="auto")
    assert same(weights(what.model), weights(whole.model))


# ── evaluation and prediction ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("mode", [True, False])
def test_evaluate_and_predict_restore_the_mode(mode):
    what = objective("classify")
    what.train(mode)
    data = examples("classify", 15, augment=False)
    first, second = (evaluate(what, data, settings()) for _ in range(2))
    assert first == second, "without dropout"
    assert all(part.training == mode for part in what.modules())

    def read(model, batch):
        assert not model.training
        return list(model(batch.inputs))

    one, two = (predict(what.model, data, read, settings()) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))
    assert all(part.training == mode for part in what.model.modules())

    def broken(model, batch):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        predict(what.model, data, broken, settings())
    assert all(part.training == mode for part in what.model.modules())


def test_predictions_obey_the_precision():
    what, data = objective("classify"), examples("classify", 9, augment=False)
    for precision in ("fp32", "bf16"):
        read = lambda model, batch: [torch.is_autocast_enabled("cpu")] * len(batch.series)  # noqa: E731
        assert predict(what.model, data, read, settings(precision=precision)) == [precision == "bf16"] * 9


def test_evaluation_gives_the_device_back_after_an_error(monkeypatch):
    """As on a GPU: the device of a run is another one than that of the model."""
    what, data = objective("classify"), examples("classify", 9, augment=False)
    seen = []
    monkeypatch.setattr(evaluation, "default_device", lambda: torch.device("meta"))
    monkeypatch.setattr(type(what), "to", lambda self, device: (seen.append(str(device)), self)[1])
    monkeypatch.setattr(data, "batch", lambda index, epoch: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        evaluate(what, data, settings())
    assert seen == ["meta", "cpu"]


def test_predictions_are_in_the_order_of_the_input():
    what, data = objective("classify"), examples("classify", 33, augment=False)
    for sizes in ({"batch_size": 7}, {"batch_size": None, "batch_tokens": 30}):
        assert predict(what.model, data, lambda model, batch: batch.series.tolist(), settings(**sizes)) == [*range(33)]


def test_evaluation_weighs_every_target_alike():
    """The mean over batches of any size is the mean over one batch of all; a mean of batch means is not."""
    what, data = objective(dropout=0.0), examples(count=23)
    whole = evaluate(what, data, settings(batch_size=23))
    assert evaluate(what, data, settings(batch_size=5)) == pytest.approx(whole, rel=1e-5)
    parts = []
    what.eval()
    with torch.no_grad():
        batch = data.batch(np.arange(23), None)
        assert float(what(batch).mean) == pytest.approx(whole, rel=1e-5)
        for start in range(0, 23, 5):
            batch = data.batch(np.arange(start, min(start + 5, 23)), None)
            parts.append(float(what(batch).mean))
    assert abs(np.mean(parts) - whole) > 1e-3


class Surer(nn.Module):
    def __init__(self, model, times):
        super().__init__()
        self.model, self.times = model, times

    def forward(self, inputs, static=None):
        return self.times * self.model(inputs, static)


def test_logits_are_judged_at_their_best_temperature():
    """A network that is mostly right, and much too sure of itself, is better than one that knows nothing."""
    data, model = examples("classify", 21, augment=False), objective("classify").model
    read = lambda model, batch: list(model(batch.inputs))  # noqa: E731
    logits = torch.stack(predict(model, data, read, settings()))
    sure = float(8 / (logits.amax(1) - logits.amin(1)).mean())
    data.targets = torch.where(torch.arange(21) % 7 > 0, logits.argmax(1), logits.argmin(1))  # six of seven are right
    by_hand = [float(F.cross_entropy(sure * logits / t, data.targets)) for t in TEMPERATURES]
    judged = evaluate(Supervised(Surer(model, sure), classification, tempered=True), data, settings(batch_size=5))
    assert judged == pytest.approx(min(by_hand), rel=1e-4)
    plain = evaluate(Supervised(Surer(model, sure), classification), data, settings(batch_size=5))
    assert judged < math.log(3) < plain


@pytest.mark.parametrize("every", [2, 3, 100])
@pytest.mark.parametrize("sizes", [{"batch_size": 8}, {"batch_size": None, "batch_tokens": 60}])
def test_a_part_of_the_evaluation_has_series_of_every_length(sizes, every):
    what, data, seen = objective("classify"), examples("classify", 40, augment=False), []
    make = data.batch
    data.batch = lambda index, epoch: (seen.extend(index), make(index, epoch))[1]
    first = evaluate(what, data, settings(**sizes), every=every)
    mean, low, high = (f(data.lengths) for f in (np.mean, np.min, np.max))
    assert len(set(seen)) == len(seen) >= (40 // every if every < 100 else 4)
    assert data.lengths[seen].mean() == pytest.approx(mean, abs=(high - low) / 10)
    assert np.ptp(data.lengths[seen]) > (high - low) / 2
    assert evaluate(what, data, settings(**sizes), every=every) == first


def test_the_model_is_left_in_evaluation_mode_also_after_an_error(monkeypatch):
    what = objective()
    assert not any(part.training for part in train(what=what)[0].modules())
    monkeypatch.setattr("rotarymae.training.loop.MAX_SKIPPED", 0)
    with pytest.raises(TrainingDiverged):
        train(what=what, data=Poisoned(examples(), {5}), held=False)
    assert not any(part.training for part in what.modules())


@torch.no_grad()
def test_beta_weights_training_and_leaves_validation_the_likelihood():
    plain, weighted = (Pretraining(MaskedAutoencoder(config(0.0, 0.0)), beta=beta) for beta in (0.0, 1.0))
    weighted.load_state_dict(plain.state_dict())
    batch = examples().batch(np.arange(8), 0)
    assert float(plain.train()(batch).sum) != pytest.approx(float(weighted.train()(batch).sum), rel=1e-3)
    assert float(plain.eval()(batch).sum) == pytest.approx(float(weighted.eval()(batch).sum), rel=1e-6)
    with refuses("beta is 2", "0", "1"):
        Pretraining(plain.model, beta=2)
    point = MaskedAutoencoder(replace(config(), likelihood="point"))
    with refuses("beta", "likelihood='gaussian'"):
        Pretraining(point, beta=0.5)


# ── warnings ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_many_skipped_steps_and_a_loss_that_rose_are_warned_of():
    with pytest.warns(InputWarning, match=r"5 of 20 training steps were skipped, .* series s\d+"):
        _, result = train(data=Poisoned(examples(), {5}), held=False)
    assert result.skipped == 5
    with pytest.warns(InputWarning, match=r"training diverged: the loss began at .* and ended at .* base_lr \(30\)"):
        train("regress", base_lr=30.0, warmup_steps=0)


# ── golden ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_hundred_losses_are_those_kept():
    """`python scripts/golden.py` writes them anew. Across processors and versions of torch sums are ordered otherwise;
    1e-3 leaves room for that, and a changed default, mask, order or schedule shows in the first ten losses."""
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))["losses"]
    script = runpy.run_path(str(GOLDEN.parents[2] / "scripts/golden.py"))
    assert len(golden) == 100 and script["losses"]() == pytest.approx(golden, rel=1e-3, abs=1e-3)
