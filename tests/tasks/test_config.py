"""The one description of a fit: its choices are those that exist, and what cannot work is refused at once."""

import dataclasses
import json
from dataclasses import fields
from fractions import Fraction
from typing import get_args

import numpy as np
import pandas
import pytest

from conftest import refuses
from rotarymae.config import SIZES, RoMAEConfig, Size, TargetLoss
from rotarymae.losses import REGRESSION_LOSSES
from rotarymae.system import from_fields
from rotarymae.training.fit_config import FitConfig

# Another value for each option, and what else that needs.
OTHER = {
    "size": "tiny", "embed_dim": 60, "num_heads": 1, "depth": 3, "decoder_embed_dim": 60, "decoder_num_heads": 1,
    "decoder_depth": 3, "decoder_attention": "joint", "likelihood": "point", "neighbours": "on",
    "cls_token": False,
    "masking": "rows", "mask_ratio": 0.4, "beta": 0.2, "pretrain_epochs": 3, "finetune_epochs": 3, "min_steps": 3,
    "batch_size": 3,
    "finetune_batch_size": 3, "base_lr": 3e-3, "finetune_lr": 3e-3, "warmup_steps": 3, "optimizer": "sgd",
    "betas": (0.5, 0.5), "weight_decay": 0.5, "gradient_clip": 3.0, "precision": "bf16", "compile": True,
    "log_every": 3, "seed": 3, "checkpoint_minutes": 3.0,
}  # fmt: skip
NEEDS = {}
# What `prepare`, `finetune`, a task or a split reads; their tests say what each does.
READ_ELSEWHERE = {
    "time_unit", "time_origin", "channel_spacing", "transforms", "pool", "drop", "noise", "dropout", "drop_path",
    "label_smoothing", "class_weights", "validation_fraction", "static", "signal_to_noise", "channel_one_hot",
    "minutes", "join_times", "predictor", "pretrained", "tune", "errors", "window", "overlap",
    "loss", "decide", "costs", "early", "members",
}  # fmt: skip


def meaning(config):
    parts = (config.pretraining(), config.finetuning(), config.model_config(1, 1), config.strategy("observations"))
    return (*parts, config.beta)


def test_the_choices_are_those_that_exist():
    assert set(get_args(Size)) == set(SIZES)
    assert set(get_args(TargetLoss)) == {*REGRESSION_LOSSES}


def test_every_option_is_tried():
    assert {field.name for field in fields(FitConfig)} == {*OTHER, *READ_ELSEWHERE}


@pytest.mark.parametrize("name", OTHER)
def test_no_option_is_without_effect(name):
    needed = NEEDS.get(name, {})
    assert meaning(FitConfig(**needed, **{name: OTHER[name]})) != meaning(FitConfig(**needed))


def test_options_of_training_are_those_of_both_trainings():
    config = FitConfig(min_steps=12, batch_size=3, log_every=5, seed=2)
    for training in (config.pretraining(), config.finetuning()):
        assert (training.min_steps, training.batch_size, training.log_every, training.seed) == (12, 3, 5, 2)


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"cls_token": False, "pool": "cls"}, ["pool='cls'", "cls_token=False", "pool='mean'"]),
        ({"masking": "chanels"}, ["masking", "'chanels'", "'channels'"]),
        ({"mask_ratio": (0.1, 0.2, 0.3)}, ["mask_ratio"]),
        ({"mask_ratio": 1.0}, ["mask_ratio is 1.0"]),
        ({"likelihood": "point", "beta": 0.5}, ["beta (0.5)", "gaussian"]),
        ({"beta": 1.5}, ["beta is 1.5"]),
        ({"optimizer": "sgd", "betas": (0.9, 0.9)}, ["betas", "'sgd'"]),
        ({"transforms": {"flux": "log"}}, ["'flux'", "'log'", "'asinh'"]),
        ({"pretrain_epochs": 0}, ["pretrain_epochs is 0"]),
        ({"finetune_lr": 0.0}, ["finetune_lr is 0.0"]),
        ({"channel_spacing": 0.0}, ["channel_spacing is 0.0"]),
        ({"validation_fraction": 1.0}, ["validation_fraction is 1.0"]),
    ],
)
def test_what_cannot_work_is_refused(options, parts):
    with refuses(*parts):
        FitConfig(**options)


def test_scalars_of_numpy_are_settings_and_are_kept_as_those_of_python():
    given = {"batch_size": np.int64(8), "base_lr": np.float32(0.5), "compile": np.bool_(True), "size": np.str_("tiny")}
    config = FitConfig(**given, mask_ratio=(np.float64(0.25), np.float32(0.5)), time_unit=np.int32(3))
    kept = {name: getattr(config, name) for name in (*given, "mask_ratio", "time_unit")}
    expected = {"batch_size": 8, "base_lr": 0.5, "compile": True, "size": "tiny", "mask_ratio": (0.25, 0.5)}
    assert kept == expected | {"time_unit": 3}
    assert [type(value) for value in kept.values()] == [int, float, bool, str, tuple, int]
    assert type(RoMAEConfig(depth=np.int16(2)).depth) is int
    with refuses("batch_size", "8.0", "whole number"):
        FitConfig(batch_size=np.float64(8))
    with refuses("compile", "1"):
        FitConfig(compile=np.int64(1))


def test_a_lone_name_and_any_sequence_of_names_become_a_tuple():
    for names in (np.array(["a", "b"]), pandas.Index(["a", "b"]), ["a", np.str_("b")], ("a", "b")):
        assert FitConfig(static="age", errors=names).errors == ("a", "b")
    assert FitConfig(static=np.array("age")).static == ("age",) and FitConfig(costs=[1.0, np.int8(2)]).costs == (1.0, 2)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"static": [3]}, "text"),
        ({"static": {"age": 1}}, "a list, each text"),  # whose keys were taken for names
        ({"errors": {"a", "b"}}, "a list, each text"),  # which come in another order in each process
        ({"costs": {"a": 1.0}}, "a list, each a finite number"),
        ({"costs": [None]}, "a finite number"),
        ({"mask_ratio": (0.1, 0.2, 0.3)}, "a finite number or a list of 2, each a finite number"),
        ({"transforms": ["asinh"]}, "a dictionary, each value one of"),
        ({"batch_size": 10**400}, "number of at least 1"),
        ({"base_lr": 10**400}, "a finite number"),
        ({"base_lr": Fraction(1, 2)}, "a finite number"),  # which JSON does not hold
    ],
)
def test_a_value_of_another_kind_is_refused_in_python_and_from_json(options, wanted):
    with refuses(next(iter(options)), wanted):
        FitConfig(**options)
    with refuses(next(iter(options)), wanted):
        from_fields(FitConfig, options, "the options")


def test_the_options_of_a_fit_from_a_trained_model_are_read_again_from_json():
    config = FitConfig(pretrained="run")
    assert FitConfig(**json.loads(json.dumps(dataclasses.asdict(config)))) is not config
