"""The short help of `fit` names options that exist, with their defaults, few and briefly; every help says its stage."""

import re
from dataclasses import fields

import docstring_parser
import pytest

from conftest import command
from rotarymae.cli.fit import LabelOptions
from rotarymae.cli.inputs import FolderOptions
from rotarymae.cli.main import COMMANDS, main
from rotarymae.cli.short_help import FIT_HELP
from rotarymae.system import field_docs
from rotarymae.tables.schema import helps
from rotarymae.training.fit_config import FitConfig, TrainConfig

OPTIONS = re.findall(r"^  --([a-z-]+) ([A-Z]+(?: \.\.\.)?)? +(\S.*) \((?:default: (.*)|required)\)$", FIT_HELP, re.M)


def test_it_is_short_and_its_options_exist(capsys):
    with pytest.raises(SystemExit, match=r"^0$"):
        main(["fit", "t.csv", "--help"])
    assert capsys.readouterr().out == FIT_HELP
    assert command("fit", "--help-all") == 0
    every = set(re.findall(r"--(?:no-)?([a-z0-9-]+)", capsys.readouterr().out))
    assert len(FIT_HELP.splitlines()) <= 50 and 20 <= len(OPTIONS) <= 25
    assert re.findall(r"^ +--([a-z-]+)", FIT_HELP, re.M) == [name for name, *_ in OPTIONS]  # each has its default
    assert all(sentence.endswith(".") and len(sentence.split()) <= 15 for _, _, sentence, _ in OPTIONS)
    known = [*helps(), *(field.name for kind in (LabelOptions, FolderOptions, FitConfig) for field in fields(kind))]
    of_fit = {name.replace("_", "-") for name in known if name != "units"}  # which only a model has
    assert of_fit | {name for name, *_ in OPTIONS} <= every


def test_its_defaults_are_those_of_the_options():
    defaults = {field.name: field.default for field in fields(FitConfig)}
    stated = {name.replace("-", "_"): default for name, _, _, default in OPTIONS}
    for name in ("size", "seed", "decide", "predictor"):
        assert stated[name] == str(defaults[name])


STAGE = "(reading|pre-training|fine-tuning|scoring|prediction|report)"
STAGES = rf"{STAGE}(, {STAGE})?( and {STAGE})?: "


def test_every_option_of_a_fit_says_briefly_what_it_does_and_at_which_stage():
    of_loop_alone = field_docs(TrainConfig).keys() - {field.name for field in fields(FitConfig)}
    texts = {**helps(), **field_docs(LabelOptions), **field_docs(FolderOptions), **field_docs(FitConfig)}
    assert len(texts) > 80 and not of_loop_alone & texts.keys()
    for name, text in texts.items():
        if name != "units":  # which only a model has
            assert re.match(STAGES, text, re.IGNORECASE), name
            assert len(text.split()) <= 45, name


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_s_option_is_one_paragraph_of_45_words_at_most(name, capsys):
    assert command(name, "--help-all") == 0
    parameters = docstring_parser.parse(COMMANDS[name].__doc__).params
    assert parameters and len(capsys.readouterr().out) > 200
    for parameter in parameters:
        assert "\n" not in parameter.description, parameter.arg_name
        assert len(parameter.description.split()) <= 45, parameter.arg_name


@pytest.mark.parametrize("name", COMMANDS)
def test_no_option_has_a_default_without_words(name, capsys):
    assert command(name, "--help-all") == 0
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert not re.findall(r"\(default: (?:None|True|False|)\)", shown)
    assert re.search(r"\(default: off\b", shown)  # of a flag


def test_the_help_of_an_option_with_a_negative_name_says_what_that_does(capsys):
    assert command("fit", "--help-all") == 0
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    negative = [field.name for field in fields(FitConfig) if field.default is True]
    assert negative
    for name in negative:
        option, text = f"--no-{name.replace('_', '-')}", field_docs(FitConfig)[name]
        assert re.match(rf"{STAGES}{option} .*\botherwise\b", text, re.IGNORECASE), name
        assert f" {option} {text} (default: not given)" in shown


@pytest.mark.parametrize("kind", [FolderOptions, FitConfig])
def test_an_option_that_shows_no_default_says_what_happens_without_it(kind):
    docs = field_docs(kind)
    unset = [field.name for field in fields(kind) if field.default is None]
    assert unset
    for name in unset:
        assert re.search(r"\bwithout (it|them)\b", docs[name], re.IGNORECASE), name
