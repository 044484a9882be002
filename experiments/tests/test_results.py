"""Result files: read whole or refused, and set beside published figures."""

import json
import re
from pathlib import Path

import pytest

from _command import command
from rotarymae.errors import InputError
from rotarymae_experiments import recipes
from rotarymae_experiments.results import NOT_AT_HAND, page, read, table

ROOT = Path(__file__).resolve().parents[2]


def result(recipe="translation", setting="ours", scale="small", date="2026-01-01T00:00:00Z", seeds=(0, 1), value=0.5):
    rows = recipes.load(recipe).rows
    cases = {}
    for row in rows:
        part = cases.setdefault(row.case, {"seeds": list(seeds), "metrics": {}, "losses": [], "curves": []})
        for metric in filter(None, (row.metric, row.simple)):
            std = 0.01 if len(seeds) > 1 else None
            part["metrics"][metric] = {"mean": value, "std": std, "each": [value] * len(seeds)}
    about = {"format": 1, "recipe": recipe, "setting": setting, "scale": scale, "date": date, "hours": 0.1}
    about |= {"hardware": "an abacus", "config": {}, "command": f"rotarymae-experiments run {recipe}", "commit": "abc"}
    return {**about, "versions": {"torch": "2"}, "run": "x", "cases": cases}


def test_the_largest_scale_and_of_these_the_last_is_shown():
    found = [
        result(value=1.0, date="2026-01-03T00:00:00Z"),
        result(value=2.0, scale="paper", date="2026-01-01T00:00:00Z"),
        result(value=3.0, scale="paper", date="2026-01-02T00:00:00Z", seeds=(7,)),
        result(value=4.0, scale="smoke", date="2026-01-09T00:00:00Z"),
        result(value=5.0, setting="paper"),
    ]
    lines = {line.row.what: line.measured for line in table(recipes.load_all(), found) if line.recipe == "translation"}
    measured = lines["largest change, without [CLS]"]
    assert measured == {"ours": "3 (1 seed, paper)", "paper": "5 ± 0.01 (2 seeds, small)"}


def test_every_row_of_every_recipe_is_there_even_when_nothing_was_run():
    lines = table(recipes.load_all(), [])
    assert len(lines) == sum(len(recipes.load(name).rows) for name in recipes.NAMES)
    assert all(set(line.measured.values()) <= {"not run", NOT_AT_HAND} for line in lines)
    absent = {line.recipe for line in lines if NOT_AT_HAND in line.measured.values()}
    assert {"elasticc", "uea"} <= absent and not absent & {"position", "physionet", "plasticc"}


def test_the_page_says_what_is_in_doubt_and_nothing_where_nothing_is(tmp_path):
    (tmp_path / "pendulum.md").write_text("its script sums squared errors\n")
    text = page(recipes.load_all(), [(tmp_path / "a.json", result("pendulum"))], tmp_path / "page.md", tmp_path)
    for name in recipes.NAMES:
        assert f"## {name}: " in text
        for row in recipes.load(name).rows:
            assert not row.doubt or re.search(rf"In doubt \(.*{re.escape(row.what)}.*\): {re.escape(row.doubt)}", text)
            assert f"| {row.what} |" in text
    assert text.count("In doubt") == sum(len({r.doubt for r in one.rows if r.doubt}) for one in recipes.load_all())
    assert "sums squared errors" in text and "an abacus" in text


def test_the_page_begins_with_what_came_of_each_published_figure(tmp_path):
    small = result("tiny_imagenet")
    del small["cases"]["rotary"]
    found = [(tmp_path / "a.json", small), (tmp_path / "b.json", result("translation", scale="paper"))]
    text = page(recipes.load_all(), found, tmp_path / "page.md", tmp_path).partition("\n## ")[0]
    lines = {line.split(" | ")[1]: line.split(" | ")[2] for line in text.splitlines() if line.startswith("| ")}
    assert (
        lines["[tiny_imagenet](#tiny_imagenet-table-2)"]
        == "1 not run; command ready; 2 in doubt, and measured at scale small |"
    )
    assert lines["[translation](#translation-corollary-41)"] == "2 measured at scale paper |"
    assert lines["[elasticc](#elasticc-table-4)"].endswith(f" {NOT_AT_HAND} |")
    assert not [name for name in lines if "mortality" in name]  # ours alone


def test_links_lead_to_the_files(tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "docs").mkdir()
    path = tmp_path / "results" / "translation-ours-small.json"
    path.write_text(json.dumps(result()))
    (tmp_path / "results" / "translation-ours-small-shift.png").write_bytes(b"")
    assert command("results", tmp_path / "results", "--page", tmp_path / "docs" / "results.md") == 0
    text = (tmp_path / "docs" / "results.md").read_text()
    assert "(../results/translation-ours-small-shift.png)" in text
    assert "(../results/translation-ours-small.json)" in text


@pytest.mark.parametrize(
    "text, message",
    [
        ("{", "cannot be read"),
        ("[1]", "no result file of this library"),
        ('{"format": 2}', r"format 2; wanted 1"),
        (json.dumps({**result(), "cases": None}), "no whole result file: cases is None"),
        (json.dumps({**result(), "hours": "long"}), "no whole result file: hours is 'long'"),
    ],
)
def test_a_damaged_file_is_named(text, message, tmp_path):
    (tmp_path / "broken.json").write_text(text)
    with pytest.raises(InputError, match=f"broken.json.*{message}"):
        read(tmp_path)


def test_results_of_somebody_elses_recipe_are_left_out_and_said_so(tmp_path, capsys):
    (tmp_path / "a.json").write_text(json.dumps({**result(), "recipe": "mine"}))
    assert command("results", tmp_path) == 0
    assert "recipes are not of this package: mine." in capsys.readouterr().err


def test_no_folder(tmp_path):
    with pytest.raises(InputError, match="is no folder"):
        read(tmp_path / "results")


def test_the_results_kept_here_can_be_read_and_the_page_is_theirs():
    found = read(ROOT / "results")
    assert found
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    made = page(recipes.load_all(), found, ROOT / "docs" / "results.md", ROOT / "results" / "notes")
    assert text == made, "run `rotarymae-experiments results --page docs/results.md`"


def test_the_commands(tmp_path, capsys):
    assert command("list") == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in recipes.NAMES)
    assert command("show", "spirals", "--setting", "paper") == 0
    assert '"base_lr": 0.0003' in capsys.readouterr().out
    assert command("show", "spiral") == 2
    assert "Did you mean 'spirals'" in capsys.readouterr().err


def test_run_changes_what_is_asked_for_and_results_shows_it(tmp_path, capsys):
    places = ("--out", tmp_path / "runs", "--results", tmp_path / "results")
    assert command("run", "speed", "--scale", "smoke", *places, "--quiet", "--rounds", "2", "--model.depth", "1") == 0
    (path,) = (tmp_path / "results").glob("*.json")
    written = json.loads(path.read_text())
    assert written["config"]["rounds"] == 2 and written["config"]["model"]["depth"] == 1
    assert written["setting"] == "ours" and written["scale"] == "smoke"
    assert written["command"].startswith("rotarymae-experiments run speed --scale smoke --out ")
    assert written["command"].endswith(" --quiet --rounds 2 --model.depth 1")
    assert command("results", tmp_path / "results") == 0
    assert "not run" in capsys.readouterr().out  # a smoke run is not shown
    assert command("run", "speed", "--scale", "smoke", *places, "--rouns", "2") == 2
    assert command("run", "sped") == 2
    assert "Did you mean 'speed'" in capsys.readouterr().err
    assert command("run", "speed", "--threads", "two") == 2
    assert command("run", "speed", "--scale") == 2
    assert command("run", "--help") == 0
    assert "--scale" in capsys.readouterr().out
