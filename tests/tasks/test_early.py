"""Early answers: series that end early are trained on with `early`, and scored with `evaluate --at`."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from _runs import FIT, examples, series
from conftest import TINY, command, refuses, two_kinds, write_csv
from rotarymae.cli.inputs import first_flagged
from rotarymae.counter_rng import counter_uniform
from rotarymae.metrics import early_rows
from rotarymae.partners import BoostedFeatures
from rotarymae.preprocess.examples import cut_tokens
from rotarymae.series import known_at, with_early
from rotarymae.tables import TableSchema, read_table
from rotarymae.train import train


def test_series_are_cut_at_a_time():
    dataset = series(20)
    first, last = dataset.times[dataset.offsets[:-1]], dataset.times[dataset.offsets[1:] - 1]
    middle = known_at(dataset, (first + last) / 2)
    assert (middle.times <= np.repeat((first + last) / 2, middle.lengths)).all()
    assert len(middle.times) == (dataset.times <= np.repeat((first + last) / 2, dataset.lengths)).sum()
    assert known_at(dataset, first).lengths.tolist() == [1] * 20  # what was known at once
    assert known_at(dataset, last).fingerprint() == dataset.fingerprint()


def test_copies_that_end_early_stand_behind_the_whole_series():
    dataset = series(20)
    first = dataset.times[dataset.offsets[:-1]]
    ends = np.stack([first, first + np.inf], 1)
    every = with_early(dataset, ends)
    whole, short, again = (every.select(np.arange(20) + 20 * part) for part in range(3))
    assert whole.fingerprint() == again.fingerprint() == dataset.fingerprint()
    assert short.ids.tolist() == dataset.ids.tolist() and short.lengths.tolist() == [1] * 20


def test_half_of_a_batch_ends_early_whatever_else_is_in_it():
    data = examples("classify", 400, augment=False)
    index = np.arange(400)
    tokens, ends = data.tokens(index, 0), torch.tensor([[2, 0]] * 400)
    cut = cut_tokens(tokens, ends, counter_uniform(3, 0, index, 5))
    before, after = tokens.real.sum(1), cut.real.sum(1)
    assert 0.4 < (after < before).float().mean() < 0.6
    assert after[after < before].unique().tolist() == [1, 2]
    short = int((after == 2).nonzero()[0])
    torch.testing.assert_close(cut.values[short, :2], tokens.values[short, :2])
    alone = cut_tokens(data.tokens(index[short : short + 1], 0), ends[:1], counter_uniform(3, 0, [short], 5))
    assert alone.real.sum() == 2
    assert not torch.equal(cut_tokens(tokens, ends, counter_uniform(3, 1, index, 5)).real.sum(1), after)


@pytest.mark.parametrize(("join_times", "window"), [(False, None), (True, None), (False, 6)])
def test_the_network_reads_what_was_known_at_these_times(join_times, window, monkeypatch):
    dataset, seen = series(60), []

    def watched(tokens, ends, draw):
        seen.extend(zip(ends.tolist(), tokens.real.sum(1).tolist(), strict=True))
        return cut_tokens(tokens, ends, draw)

    monkeypatch.setattr("rotarymae.preprocess.examples.cut_tokens", watched)
    second = dataset.times[dataset.offsets[:-1] + 1]
    since = np.where(np.arange(60) % 3, second, np.nan)
    config = replace(FIT, early=("0", "1"), join_times=join_times, window=window)
    result = train(dataset, np.arange(60) % 2, config, since=since)
    whole = result.pipeline.preprocessor.windows(dataset.select(result.split.train))
    known = set()
    for i, at in zip(
        result.split.train[whole.series], np.split(whole.dataset.times, whole.dataset.offsets[1:-1]), strict=True
    ):
        at = np.unique(at) if join_times else at
        ends = [max(1, int((at <= since[i] + span).sum())) if i % 3 else len(at) for span in (0, 1)]
        known.add((*ends, len(at)))
    assert {(*ends, length) for ends, length in seen} == known
    assert any(a < b < length for a, b, length in known) and any(a == length for a, _, length in known)


def test_partners_and_validation_see_series_that_end_early(monkeypatch):
    seen = []
    fit = BoostedFeatures.fit.__func__

    def watched(cls, task, dataset, truth, *others):
        seen.append((len(dataset), len(truth)))
        return fit(cls, task, dataset, truth, *others)

    monkeypatch.setattr(BoostedFeatures, "fit", classmethod(watched))
    dataset = series(60)
    result = train(dataset, np.arange(60) % 2, replace(FIT, early=("0.5", "2"), predictor="features"))
    known, chosen = len(result.split.train), len(result.split.validation)
    assert seen == [(3 * known,) * 2, (3 * (known + chosen),) * 2]
    assert {len(part) for part in result.validation_outputs.values()} == {chosen}
    assert result.pipeline.parameters["early"] == ["0.5", "2"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("early")
    rows, labels = two_kinds(40)
    table = write_csv(
        folder / "t.csv",
        "id,time,band,flux,seen,never,some,kind",
        [[*row, int(row[1] > 3), 0, int(row[0] == rows[0][0]), labels[row[0]]] for row in rows],
    )
    given = ["fit", table, "--channel", "band", "--values", "flux", "--label", "kind", *TINY, "--quiet"]
    given += ["--early", "2", "--first", "seen"]
    assert command(*given, "--out", folder / "run") == 0
    return folder


def test_evaluate_scores_what_was_known(run, capsys):
    given = ["evaluate", run / "run", run / "t.csv", "--label", "kind", "--at", "2", "+1000"]
    assert command(*given, "--out", run / "m.json") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "+2" in shown and "whole" in shown and "first observation" in shown
    metrics = json.loads((run / "m.json").read_text())
    early = metrics["early"]
    assert early["series"] == 40 and early["left_out"] == 0 and list(early["at"]) == ["2", "1000"]
    assert early["at"]["1000"] == metrics["classification"] != early["at"]["2"]
    assert (run / "m.png").stat().st_size > 10_000


def test_evaluate_counts_from_the_first_flagged_observation(run):
    given = ["evaluate", run / "run", run / "t.csv", "--label", "kind", "--at", "2", "--quiet"]
    assert command(*given, "--first", "seen", "--out", run / "flagged.json") == 0
    assert command(*given, "--out", run / "plain.json") == 0
    flagged, plain = (json.loads((run / f"{name}.json").read_text())["early"] for name in ("flagged", "plain"))
    assert flagged["first"] == "observation with seen" and flagged["series"] > 0
    assert flagged["at"]["2"] != plain["at"]["2"]


def test_a_limit_where_the_flag_is_missing_is_no_flag(tmp_path):
    rows = [["a", 0, 1, 9, 0], ["a", 1, "", 9, ""], ["a", 2, 3, 9, 1]]
    table = write_csv(tmp_path / "t.csv", "id,time,flux,most,seen", rows)
    layout = TableSchema(values=("flux",), upper_limits=("most",))
    assert first_flagged(read_table(table, layout), table, layout, "seen").tolist() == [2.0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--early", "soon"], ["early soon", "6h"]),
        (["--early", "6h"], ["+6"]),
        (["--first", "seen"], ["--first seen", "--early"]),
        (["--first", "sen", "--early", "2"], ["no column 'sen'", "Did you mean 'seen'?"]),
        (["--first", "never", "--early", "2"], ["40 of 40 series", "never", "leave --first out"]),
    ],
)
def test_fit_refuses_other_times(run, tmp_path, capsys, options, words):
    given = ["fit", run / "t.csv", "--channel", "band", "--values", "flux", "--label", "kind", *TINY]
    assert command(*given, *options, "--out", tmp_path / "run") == 2
    error = capsys.readouterr().err
    assert all(word in error for word in words), error
    assert not (tmp_path / "run" / "training" / "pretrain").exists()


def test_a_fit_says_which_series_have_no_flag(run, tmp_path, capsys):
    given = ["fit", run / "t.csv", "--channel", "band", "--values", "flux", "--label", "kind", *TINY]
    assert command(*given, "--early", "2", "--first", "some", "--out", tmp_path / "run") == 0
    assert "39 of 40 series have no observation where some is not 0" in " ".join(capsys.readouterr().err.split())


def test_a_run_resumes_with_the_same_flags_alone():
    from rotarymae.run_folder import identify

    dataset, since = series(20), np.arange(20.0)
    same = [identify(dataset, None, FIT, "auto", 0.0, since=part) for part in (since, since.copy(), since + 1, None)]
    assert same[0] == same[1] != same[2] != same[3] and same[0] != same[3]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--at", "soon"], ["soon", "6h"]),
        (["--at", "6h"], ["+6"]),
        (["--first", "seen"], ["--first seen", "--at"]),
        (["--first", "sen", "--at", "2"], ["no column 'sen'", "Did you mean 'seen'?"]),  # which --values does not name
        (["--at", "2", "--out", "."], [". exists"]),
        (["--at", "2", "--out", "m.png"], ["m.png", "picture", ".json"]),  # the picture would replace the metrics
    ],
)
def test_evaluate_refuses_other_times(run, capsys, options, words):
    assert command("evaluate", run / "run", run / "t.csv", "--label", "kind", *options) == 2
    error = capsys.readouterr().err
    assert all(word in error for word in words)


def test_early_scores_of_several_outputs_are_shown_for_each():
    scores = {"model": {"root_mean_squared_error_output_0": 1.0, "root_mean_squared_error_output_1": 2.0}}
    rows = early_rows({"regression": scores, "early": {"at": {"2": scores}}})
    assert rows == {f"RMSE of output {i}": {"model": {"+2": 1.0 + i, "whole": 1.0 + i}} for i in (0, 1)}


def test_pictures_do_not_end_early():
    from rotarymae.arrays import ArrayDataset

    pictures = ArrayDataset.from_arrays(
        [np.random.default_rng(i).random((8, 8, 1)) for i in range(12)], patch_size=(4, 4)
    )
    with refuses("early"):
        train(pictures, np.arange(12) % 2, replace(FIT, early=("2",)))
