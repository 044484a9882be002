"""The short help of `fit` names options that exist, with their defaults, few and briefly."""

import dataclasses
import re

import pytest

from conftest import command
from rotarymae.cli.main import COMMANDS
from rotarymae.cli.short_help import FIT_HELP
from rotarymae.training.fit_config import FitConfig

OPTIONS = re.findall(r"^  (--[a-z-]+) ([A-Z]+(?: \.\.\.)?)? +(\S.*) \((?:default: (.*)|required)\)$", FIT_HELP, re.M)


def test_it_is_short_and_its_options_exist(capsys):
    assert command("fit", "t.csv", "--help") == 0
    assert capsys.readouterr().out == FIT_HELP
    assert command("fit", "--help-all") == 0
    every = set(re.findall(r"(--[a-z-]+)", capsys.readouterr().out))
    assert 20 <= len(OPTIONS) <= 25 and {name for name, *_ in OPTIONS} <= every
    assert all(len(sentence.split()) <= 15 for _, _, sentence, _ in OPTIONS)


def test_its_defaults_are_those_of_the_options():
    defaults = {field.name: field.default for field in dataclasses.fields(FitConfig)}
    stated = {name[2:].replace("-", "_"): default for name, _, _, default in OPTIONS}
    for name in ("size", "seed", "decide", "predictor"):
        assert stated[name] == str(defaults[name])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_its_default_in_words(name, capsys):
    assert command(name, "--help-all") == 0
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "(required)" in shown or "(default: 0)" in shown
    assert not re.findall(r"\(default: (?:None|True|False|)\)", shown)
