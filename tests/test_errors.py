"""Suggestions name only what is nearly alike, in a whole sentence; messages cannot steer a terminal or fill it."""

import pickle
import re
import sys
import time
import tomllib
import warnings
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from conftest import refuses
from rotarymae.errors import (
    InputError,
    InputWarning,
    MissingExtra,
    ModelDirectoryError,
    NoObservations,
    choose,
    did_you_mean,
    gathered_warnings,
    import_extra,
)

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SOURCES = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
EXTRAS = sorted(set(re.findall(r'import_extra\("([\w.]+)", "(\w+)"\)', SOURCES)))


@pytest.mark.parametrize(
    ("name", "known", "wanted"),
    [
        ("tim", ["day", "time"], "time"),
        ("FLUX", ["flux", "time"], "flux"),
        ("flux", ["FLUX", "TIME"], "FLUX"),
        ("embed_dims", ["embed_dim", "depth"], "embed_dim"),
        ("gcs", ["glucose", "time"], None),  # alike by letters, not in meaning
        ("mjd", ["time", "band"], None),
        ("x", [], None),
    ],
)
def test_a_name_is_suggested_when_it_is_nearly_alike(name, known, wanted):
    assert did_you_mean(name, known) == (f" Did you mean {wanted!r}?" if wanted else "")


def test_choose_gives_the_option_what_came_and_what_there_is():
    choose("pool", "cls", ("cls", "mean"))
    with refuses("pool='men'", "'cls', 'mean'", "'mean'"):
        choose("pool", "men", ("cls", "mean"))


@pytest.mark.parametrize("kind", [InputError, ModelDirectoryError])
def test_control_codes_in_a_message_are_escaped_and_its_text_is_kept(kind):
    error = kind("column \x1b[2J\u202e\ud800 is not a number:\n\t6 µm ± 68\u00a0% [B, N], 'λ'")
    assert str(error) == "column \\x1b[2J\\u202e\\ud800 is not a number:\n\t6 µm ± 68\u00a0% [B, N], 'λ'"
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind and str(again) == str(error)


def test_an_error_carries_its_code_and_settings_and_each_caller_writes_them_its_own_way():
    error = InputError("5 rows too many.", code="duplicates", settings=[("duplicates", "mean"), ("window", 7)])
    assert str(error) == '5 rows too many. Use duplicates="mean" or window=7.'
    assert error.advise(lambda name, value: f"--{name} {value}").endswith("Use --duplicates mean or --window 7.")
    for same in (pickle.loads(pickle.dumps(error)), error.within("t.csv")):
        assert (same.code, same.settings) == ("duplicates", (("duplicates", "mean"), ("window", 7)))
    assert str(error.within("t.csv")).startswith("t.csv: 5 rows") and type(error.within("t.csv")) is InputError
    assert str(InputError("t.csv has no rows.").within("t.csv")) == "t.csv has no rows."
    reading = object()
    assert NoObservations("no rows", reading).within("t.csv").reading is reading


def test_an_endless_message_loses_its_middle():
    text = str(InputError(f"config.json: kind {'x' * 10**6}; wanted Encoder."))
    assert text.startswith("config.json: kind xxx") and text.endswith("xxx; wanted Encoder.")
    assert "characters" in text and len(text) < 2100


@pytest.mark.parametrize(("module", "extra"), EXTRAS)
def test_each_module_of_an_extra_is_in_it_and_its_absence_says_how_to_install_it(module, extra, monkeypatch):
    package = module.partition(".")[0]
    names = {name.lower().replace("_", "-") for name in packages_distributions().get(package, [package])}
    brought = {re.split(r"[<>=\[]", text)[0] for text in PROJECT["optional-dependencies"][extra]}
    assert names & brought
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra) as raised:
        import_extra(module, extra)
    assert str(raised.value) == (
        f'{package} is not installed: pip install "rotarymae[{extra}]", or in a clone of the repository '
        f"pip install -c constraints.txt '.[{extra}]'"
    )


def test_all_extras_for_users_are_looked_for():
    assert {extra for _, extra in EXTRAS} == set(PROJECT["optional-dependencies"]) - {"dev", "docs", "all", "survey"}


def test_warnings_are_gathered_in_threads_and_filters_stay():
    """Two threads that restore the process's filters cross over would leave a list that nobody reads."""

    def gather(name):
        for _ in range(200):
            with gathered_warnings() as caught:
                warnings.warn(name, InputWarning, stacklevel=1)
                time.sleep(0)
            assert [str(one.message) for one in caught] == [name]

    before = warnings.showwarning, list(warnings.filters)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(gather, "abcd"))
    assert (warnings.showwarning, list(warnings.filters)) == before
