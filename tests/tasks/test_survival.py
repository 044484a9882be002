"""Times to an event: what is measured of them, the likelihood of what is known, partners, the command and its files."""

import json
import shutil
import warnings
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from _runs import FIT, SIZES
from conftest import TINY, refuses
from rotarymae import RoMAESurvival, SeriesDataset, load
from rotarymae.cli.main import main
from rotarymae.errors import InputWarning, ModelDirectoryError
from rotarymae.export import make_program
from rotarymae.labels import choose_labels
from rotarymae.losses import event_time
from rotarymae.metrics import like_groups, survival_metrics
from rotarymae.partners import Predictor
from rotarymae.partners.baselines import constant
from rotarymae.partners.boosting import BoostedTrees
from rotarymae.partners.combine import log_loss
from rotarymae.partners.cox import fit_cox
from rotarymae.partners.hazards import FollowUp, interval_probabilities
from rotarymae.prediction import predict_and_embed
from rotarymae.report import pictures
from rotarymae.run import run_fit, run_folds
from rotarymae.survival import (
    EVENT_TIME,
    EventTimes,
    censoring,
    concordance,
    event_times,
    integrated_brier_score,
    kaplan_meier,
)
from rotarymae.tables import status_of
from rotarymae.targets import has_label
from rotarymae.training.fit_config import FitConfig


def known(time, event):
    out = np.zeros(len(time), EVENT_TIME)
    out["time"], out["event"] = time, event
    return out


def patients(count, seed=0):
    """Draw series whose level raises the hazard: times of visits, markers, and durations, some censored."""
    draw = np.random.default_rng(seed)
    level, times, values = draw.normal(size=count), [], []
    for one in level:
        times.append(np.sort(draw.uniform(0, 2, draw.integers(5, 12))))
        values.append(one + 0.2 * draw.normal(size=len(times[-1])))
    end, lost = draw.exponential(3 * np.exp(-level)), np.minimum(draw.exponential(6, count), 5)
    return SeriesDataset.from_arrays(times, values), known(np.minimum(end, lost), end <= lost), level


# ── what is measured ────────────────────────────────────────────────────────────────────────────────────────────────


def brute_force(time, event, predicted):
    """Harrell's concordance pair by pair."""
    right = pairs = 0
    for i in range(len(time)):
        for j in range(len(time)):
            if event[i] and (time[i] < time[j] or (time[i] == time[j] and not event[j])):
                pairs += 1
                right += (predicted[i] < predicted[j]) + 0.5 * (predicted[i] == predicted[j])
    return right / pairs


@pytest.mark.parametrize("count", [2, 5, 16, 33])
@pytest.mark.parametrize("tied", [True, False])
def test_concordance_counts_pairs(count, tied):
    draw = np.random.default_rng(count)
    for _ in range(5):
        time = draw.integers(0, 6, count) if tied else draw.exponential(size=count)
        event, predicted = draw.random(count) < 0.6, draw.integers(0, 4, count)
        event[np.argmin(time)] = True
        if len(set(time.tolist())) > 1:
            assert concordance(time, event, predicted) == pytest.approx(brute_force(time, event, predicted))
    event[:] = np.arange(count) % 2 == 0
    time[0] = -1
    assert concordance(time, event, time + 0.5 * ~event) == 1 and concordance(time, event, np.zeros(count)) == 0.5
    assert np.isnan(concordance(time, np.zeros(count, bool), time))


def test_survival_and_censoring_by_hand():
    time, event = [1.0, 2.0, 2.0, 3.0, 4.0], [True, True, False, False, True]
    assert kaplan_meier(time, event, [0.5, 1, 2, 3.5, 4, 9]).tolist() == pytest.approx([1, 0.8, 0.6, 0.6, 0, 0])
    # At the time 2 the event comes first: of the three that are left, one is censored.
    assert censoring(time, event, [1, 2, 3]).tolist() == pytest.approx([1, 2 / 3, 1 / 3])


def test_the_brier_score_by_hand():
    time, event, survival = np.array([1.0, 2.0, 3.0]), np.array([True, False, True]), np.array([[0.2], [0.5], [0.9]])
    assert integrated_brier_score(time, event, survival, [1.5]) == pytest.approx((0.2**2 + 0.5**2 + 0.1**2) / 3)
    # After 2 one series is censored, and the last one counts twice.
    assert integrated_brier_score(time, event, survival, [2.5]) == pytest.approx((0.2**2 + 2 * 0.1**2) / 3)


# Of these draws by lifelines 0.30.3 and scikit-survival 0.28.0, which cannot be installed next to the newest pandas.
CONCORDANCE, INTEGRATED_BRIER = 0.4612832824094282, 0.32599400362826725
KAPLAN_MEIER = [0.91222756, 0.79882927, 0.70773753, 0.58872213, 0.47437868, 0.3891305, 0.28344277, 0.26280751]
COX, COX_ERRORS = [1.01281326, -0.52663039, -0.010681], [0.0569483, 0.04756251, 0.04295969]


def test_measures_agree_with_other_libraries():
    draw = np.random.default_rng(0)
    time, lost = draw.exponential(size=200), draw.exponential(1.5, size=200)
    event, time, predicted = time < lost, np.minimum(time, lost), draw.normal(size=200)
    at, survival = np.linspace(0.1, 1.5, 8), draw.random((200, 8))
    assert concordance(time, event, predicted) == pytest.approx(CONCORDANCE)
    assert integrated_brier_score(time, event, survival, at) == pytest.approx(INTEGRATED_BRIER)
    np.testing.assert_allclose(kaplan_meier(time, event, at), KAPLAN_MEIER, rtol=1e-6)


def test_predictions_by_the_true_curves_are_calibrated():
    draw = np.random.default_rng(0)
    rate = np.exp(draw.normal(size=4000))
    time, lost = draw.exponential(1 / rate), draw.uniform(0, 3, 4000)
    truth = known(np.minimum(time, lost), time < lost)
    labels = EventTimes.fit(truth)
    curve = np.exp(-rate[:, None] * np.array(labels.edges))
    probabilities = np.concatenate([-np.diff(curve, axis=1), curve[:, -1:]], 1)
    good = survival_metrics(truth, probabilities, labels)
    sharper = probabilities**2 / (probabilities**2).sum(1, keepdims=True)
    bad = survival_metrics(truth, sharper, labels)
    assert good["survival_calibration_error"] < 0.02 < bad["survival_calibration_error"]
    assert good["integrated_brier_score"] < bad["integrated_brier_score"]
    assert good["concordance"] == pytest.approx(concordance(truth["time"], truth["event"], -rate), abs=1e-3)
    assert [len(rows) for rows in like_groups(np.arange(45), 5)] == [23, 22]


def test_the_picture_has_steps_and_a_curve_of_each_group():
    """Of 40 series there are two groups: those with the shorter expected times have all their events at 1."""
    labels = EventTimes((0.0, 2.0, 4.0))
    truth = known([1] * 20 + [3] * 10 + [9] * 10, [True] * 30 + [False] * 10)
    predicted = np.repeat([[0.8, 0.1, 0.1], [0.1, 0.3, 0.6]], 20, axis=0)
    outcome = SimpleNamespace(
        pipeline=SimpleNamespace(labels=labels),
        split=SimpleNamespace(scored=np.arange(40)),
        metrics={"survival": {}, "noun": "series", "scored_on": "test", "series": {}},
        dataset=SimpleNamespace(noun="series"),
        predicted=predicted,
        labels=truth,
    )
    (drawing,) = pictures.draw_survival(outcome)  # pyright: ignore[reportArgumentType]
    axes = drawing.figure.axes[0]
    steps, curve, short, _ = axes.lines
    assert steps.get_xdata().tolist() == [0, 3, 4] and steps.get_ydata().tolist() == pytest.approx([1, 0.5, 0.5])
    assert curve.get_xdata().tolist() == [0, 2, 4] and curve.get_ydata().tolist() == pytest.approx([1, 0.9, 0.6])
    assert short.get_xdata().tolist() == [0, 1] and axes.get_xlim() == (0, 4)


# ── labels ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_censored_series_counts_for_all_intervals_that_are_left():
    labels = EventTimes((0.0, 1.0, 3.0))
    truth = known([0, 0.5, 1, 2, 4, 2, 0, 3, 9], [True] * 5 + [False] * 4)
    expected = [[1, 0, 0], [1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0.5, 1], [1, 1, 1], [0, 0, 1], [0, 0, 1]]
    np.testing.assert_array_equal(labels.encode(truth), expected)


def test_survival_is_linear_between_edges_and_the_expected_time_its_area():
    labels, probabilities = EventTimes((0.0, 1.0, 3.0)), np.array([[0.4, 0.4, 0.2]])
    survival = labels.survival(probabilities, [0, 0.5, 1, 2, 3, 7])
    np.testing.assert_allclose(survival, [[1, 0.8, 0.6, 0.4, 0.2, 0.2]])
    grid = np.linspace(0, 3, 3001)
    assert labels.predicted(probabilities)[0] == pytest.approx(
        np.trapezoid(labels.survival(probabilities, grid)[0], grid)
    )
    finer = EventTimes((0.0, 0.5, 1.0, 2.0, 3.0))
    np.testing.assert_allclose(labels.convert(finer.convert(probabilities, labels), finer), probabilities)


def test_edges_share_the_events():
    draw = np.random.default_rng(0)
    time = draw.exponential(size=1000)
    edges = np.array(EventTimes.fit(known(time, np.arange(1000) < 200)).edges)
    counts = np.histogram(time[:200], edges)[0]
    assert edges[0] == 0 and edges[-1] == time[:200].max() and len(counts) == 20 and set(counts) == {10}
    assert EventTimes.fit(known([3, 5, 0], [True, False, False])).edges == (0, 3)
    days = EventTimes.fit(known(np.repeat([1.0, 2.0, 7.0], 100), np.ones(300, bool)))  # few different times
    assert days.edges[-1] == 7 and (np.diff(days.edges) > 0).all()


def test_the_times_that_curves_are_shown_at_are_rounded_but_never_after_the_last_event():
    assert EventTimes((0.0, 1.0, 3.0)).times.tolist() == [0.5, 1, 2]
    late = EventTimes.fit(known(np.linspace(1006, 1008, 100), np.ones(100, bool)))  # three digits would be 1010
    assert late.times.tolist() == [1008]


def test_the_loss_is_the_likelihood_of_what_is_known():
    logits = torch.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 0.5]], requires_grad=True)
    possible = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.5, 1.0]])
    loss = event_time(logits, possible)
    p = logits.detach().softmax(-1)
    assert loss.sum.item() == pytest.approx(-float(p[0, 1].log() + (0.5 * p[1, 1] + p[1, 2]).log()))
    assert loss.count == 2
    loss.sum.backward()
    assert logits.grad is not None and logits.grad.isfinite().all()
    assert log_loss(p.double().numpy(), possible.numpy()) == pytest.approx(loss.sum.item())


@pytest.mark.parametrize(
    ("time", "event", "words"),
    [
        ([1.0, -2.0], [1, 0], ("days", "negative", "-2", "series 1")),
        ([1.0, np.inf], [1, 0], ("infinite",)),
        ([1.0, 2.0], [1, 2], ("died", "'2'", "0 or false")),
        ([1.0, 2.0], ["yes", "no"], ("'yes'", "'no'")),
        ([None, 3.0, "x"], [1, 1, 0], ("'x'", "series 2")),  # counted among all series, also those without a label
        ([1.0, 2.0], [True], ("days", "(2,)", "died", "(1,)")),
        ([[1.0, 2.0], [1.0, 2.0]], [True, True], ("(2, 2)", "(2,)")),
    ],
)
def test_durations_and_events_are_checked(time, event, words):
    with refuses(*words):
        event_times(np.array(time, object if None in time else None), np.array(event), "days", "died")


def test_targets_are_checked():
    y = patients(30)[1]
    for targets, words in (
        (known([1, 2], [False, False]), ("event", "no series")),
        (known([0, 2], [True, False]), ("time 0",)),
        (np.ones((2, 2)), ("structured array", "--event")),
    ):
        with refuses(*words):
            EventTimes.check(targets, 2)
    with refuses("survival"):
        choose_labels(y, "regression")
    with refuses("label_smoothing", "time to an event"):
        EventTimes.check_config(FitConfig(label_smoothing=0.1), y)
    with refuses("edges"):
        EventTimes((0.0, 2.0, 1.0))
    assert choose_labels(y) is EventTimes


def test_events_are_read_in_several_ways_and_a_missing_one_is_no_label():
    out = event_times(np.array([1, 2, 3, None, 5], object), np.array(["True", "0", None, "1", True], object))
    assert has_label(out).tolist() == [True, True, False, False, True]
    assert out["event"].tolist() == [True, False, False, False, True]
    for missing in (np.array([1, np.nan]), ["1", "nan"]):
        assert event_times(missing, np.array([True, True]))["event"].tolist() == [True, False]
        assert event_times(missing, ["1", "1"])["event"].tolist() == [True, False]


# ── partners ────────────────────────────────────────────────────────────────────────────────────────────────────────


def hazards_truth(seed=0, count=400):
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(count, 3))
    time, lost = draw.exponential(np.exp(-x @ [1.0, -0.5, 0.0])), draw.exponential(2, count)
    return x, known(np.minimum(time, lost), time <= lost)


def test_boosted_hazards_need_twenty_series():
    for count in (19, 20):
        x, y = hazards_truth(count=count)
        truth = EventTimes.fit(y).encode(y)
        with refuses("20", "19") if count < 20 else nullcontext():
            BoostedTrees.fit("survival", x, truth, 0)


def test_rates_of_hazards_are_a_life_table_and_its_gradient_is_right():
    x, y = hazards_truth()
    labels = EventTimes.fit(y)
    truth = labels.encode(y)
    curve = labels.survival(constant("survival", truth)[None], labels.edges[:-2])[0]
    np.testing.assert_allclose(curve, kaplan_meier(y["time"], y["event"], labels.edges[:-2]), atol=0.01)
    follow_up, log_risk = FollowUp.of(truth), x @ [0.5, 0.2, -0.1]
    gradient = follow_up.expected(log_risk) - follow_up.events.sum(1)
    for i in range(5):
        step = np.zeros(len(x))
        step[i] = 1e-5
        slope = (follow_up.nats(log_risk + step) - follow_up.nats(log_risk - step)) / 2e-5
        assert gradient[i] == pytest.approx(slope, abs=1e-6)
    np.testing.assert_allclose(interval_probabilities(log_risk, follow_up.rates(log_risk)).sum(1), 1)


def test_coxs_regression_is_that_of_lifelines():
    x, y = hazards_truth(count=800)
    ours = fit_cox(x, FollowUp.of(EventTimes.fit(y).encode(y)), 1e-6)
    assert (np.abs(ours - COX) < np.array(COX_ERRORS) / 2).all()


def test_coxs_regression_and_boosting_learn_the_risk():
    x, y = hazards_truth(count=600)
    truth, test = EventTimes.fit(y).encode(y), slice(400, None)
    labels, risk = EventTimes.fit(y), x @ [1.0, -0.5, 0.0]
    weight = fit_cox(x[:400], FollowUp.of(truth[:400]), 1.0)
    np.testing.assert_allclose(weight, [1, -0.5, 0], atol=0.2)
    trees = BoostedTrees.fit("survival", x[:400], truth[:400], 0)
    best = concordance(y["time"][test], y["event"][test], -risk[test])
    for predicted in (trees.predict(x[test]), interval_probabilities(x[test] @ weight, np.array(trees.rates))):
        assert concordance(y["time"][test], y["event"][test], labels.predicted(predicted)) > best - 0.03
    again = BoostedTrees.fit("survival", x[:400], truth[:400], 0)
    assert again.texts == trees.texts and again.rates == trees.rates


# ── runs ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    out = tmp_path_factory.mktemp("survival") / "run"
    dataset, y, _ = patients(160)
    y["time"][:10] = np.nan
    return run_fit(dataset, y, FIT, out), out


def test_a_run_scores_and_writes_survival(run):
    outcome, out = run
    metrics, table = json.loads((out / "metrics.json").read_text()), pq.read_table(out / "predictions.parquet")
    methods = metrics["survival"]
    assert set(methods) == {"model", "features", "cox", "combined", "life_table"}
    assert methods["life_table"]["concordance"] == 0.5 and methods["cox"]["concordance"] > 0.65
    assert metrics["series"]["unlabelled"] == 10
    labels = outcome.pipeline.labels
    names = [f"survival_{time:g}" for time in labels.times]
    assert table.column_names[1:] == ["part", "label", "event", "predicted", *names]
    assert table["label"].null_count == table["event"].null_count == 10
    columns = np.stack([table[name].to_numpy() for name in names], 1)
    assert ((columns >= 0) & (columns <= 1)).all() and (np.diff(columns, axis=1) <= 1e-12).all()
    each = [outcome.labels["event"][part].mean() for part in (outcome.split.train, outcome.split.test)]
    assert each[0] == pytest.approx(each[1], abs=0.02)  # all parts have their share of events


def test_a_loaded_run_predicts_the_same_and_explains(run):
    outcome, out = run
    dataset, pipeline = patients(12, seed=1)[0], load(out)
    for name, predicted in outcome.pipeline.every(dataset).items():
        np.testing.assert_array_equal(pipeline.every(dataset)[name], predicted)
    assert pipeline.labels == outcome.pipeline.labels
    curve = pipeline.survival(dataset, [0, 1, 2])
    assert (curve[:, 0] == 1).all() and (np.diff(curve, axis=1) < 0).all()
    for times in ([-1], [1000], [np.nan]):
        with refuses("survival", "last training event"):
            pipeline.survival(dataset, times)
    with refuses("Classifier"):
        pipeline.predict_proba(dataset)
    with refuses("return_interval", "survival"):
        pipeline.predict(dataset, return_interval=0.9)
    whole = predict_and_embed(pipeline, dataset)[0]
    last = dataset.lengths[0] - 1
    without = predict_and_embed(pipeline, dataset.mask_observations(np.arange(len(dataset.times)) != last))[0]
    change = pipeline.labels.predicted(whole[:1]) - pipeline.labels.predicted(without[:1])
    assert pipeline.importance(dataset)[0][last] == pytest.approx(change[0], abs=1e-4)


def test_damaged_partners_are_refused(run, tmp_path):
    partners = run[0].pipeline.partners
    for change in ({"rates": [-1.0]}, {"rates": []}, {"rates": ["1"]}):
        folder = tmp_path / str(change["rates"])
        partners.save(folder)
        described = json.loads((folder / "predictor.json").read_text())
        described["partners"]["features"]["trees"] |= change
        (folder / "predictor.json").write_text(json.dumps(described))
        with pytest.raises(ModelDirectoryError, match="rates"):
            Predictor.load(folder)
    partners.save(tmp_path / "whole")
    assert Predictor.load(tmp_path / "whole").weights == partners.weights


def test_a_resumed_run_ends_in_the_same_weights(run, tmp_path):
    outcome, out = run
    dataset, labels = outcome.dataset, outcome.labels
    shutil.copytree(out, tmp_path / "again")
    (tmp_path / "again" / "metrics.json").unlink()
    resumed = run_fit(dataset, labels, FIT, tmp_path / "again", resume=True).pipeline
    for name, weight in outcome.pipeline.model.state_dict().items():
        assert torch.equal(weight, resumed.model.state_dict()[name])
    labels = labels.copy()
    labels["event"][20] = ~labels["event"][20]
    (tmp_path / "again" / "metrics.json").unlink()
    with refuses("labels changed"):
        run_fit(dataset, labels, FIT, tmp_path / "again", resume=True)


def test_folds_have_intervals_of_their_own_and_answer_together(tmp_path):
    dataset, y, _ = patients(90)
    outcome = run_folds(dataset, y, FIT, tmp_path / "run", 2)
    first, second = outcome.pipeline.members
    assert first.labels != second.labels and outcome.pipeline.labels == first.labels
    new = patients(9, seed=2)[0]
    times = np.minimum(first.labels.edges[1:3], second.labels.edges[-1])
    mean = (first.labels.survival(first.outputs(new), times) + second.labels.survival(second.outputs(new), times)) / 2
    np.testing.assert_allclose(outcome.pipeline.survival(new, times), mean, atol=0.05)
    assert set(outcome.metrics["folds"]["cox"]) == {
        "concordance",
        "integrated_brier_score",
        "survival_calibration_error",
    }


def test_the_program_answers_with_probabilities_of_intervals(run):
    pipeline = run[0].pipeline
    program = make_program(pipeline, "predict")
    assert program.outputs == ("probabilities",)
    one = patients(3)[0][1]
    times, values = (torch.from_numpy(part[None].copy()) for part in (one.times, one.values.astype(np.float32)))
    with torch.no_grad():
        answer = program({"time": times, "values": values, "mask": torch.ones(times.shape, dtype=torch.bool)})
    alone = SeriesDataset.from_arrays([one.times], [one.values])
    np.testing.assert_allclose(answer.numpy(), pipeline.outputs(alone, "model"), atol=1e-5)


def test_the_length_of_a_series_that_tells_the_duration_is_pointed_out(tmp_path):
    dataset, y, _ = patients(40)
    spans = np.array([one.times[-1] - one.times[0] for one in dataset])
    with pytest.warns(InputWarning, match="until the event"):
        run_fit(dataset, known(spans, y["event"]), FIT, tmp_path / "run")


# ── doors ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_estimator_takes_the_forms_of_a_duration():
    pandas = pytest.importorskip("pandas")
    dataset, y, _ = patients(80)
    options = SIZES | {"pretrain_epochs": 1, "finetune_epochs": 2, "min_steps": 0}
    model = RoMAESurvival(**options).fit(dataset, y)
    surv = np.array([*zip(y["event"], y["time"])], [("cens", bool), ("t", float)])  # as scikit-survival's Surv
    expected = model.predict(dataset)
    frame = pandas.DataFrame({"event": y["event"].astype(int), "time": y["time"]})
    np.testing.assert_array_equal(RoMAESurvival(**options).fit(dataset, frame).predict(dataset), expected)
    assert model.score(dataset, y) == concordance(y["time"], y["event"], expected)
    table = pa.Table.from_pandas(frame)
    for form in (frame, surv, table, pl.from_arrow(table), (table["event"], table["time"])):
        assert model.score(dataset, form) == model.score(dataset, y)
    with refuses("y has 3 parts"):
        model.score(dataset, frame.assign(more=0))
    assert (model.predict_survival_function(dataset, [1.0, 2.0]).shape) == (80, 2)
    assert model.edges_[0] == 0 and len(model.edges_) > 2
    with refuses("structured array"):
        model.score(dataset, y["time"])
    with refuses("structured array"):
        RoMAESurvival(**options).fit(dataset, y["time"])
    series = np.repeat(np.arange(80), dataset.lengths)
    long = pandas.DataFrame({"id": series, "time": dataset.times, "value": dataset.values[:, 0]})
    long = long.assign(days=y["time"][series], died=y["event"][series])
    by_name = RoMAESurvival(**options).fit(long, ("died", "days"))
    assert by_name.edges_.tolist() == model.edges_.tolist()


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    dataset, y, _ = patients(60)
    rows = zip(np.repeat(np.arange(60), dataset.lengths), dataset.times, dataset.values[:, 0])
    (folder / "visits.csv").write_text("patient,year,marker\n" + "".join(f"p{i},{t},{v}\n" for i, t, v in rows))
    status = ["true" if one else "false" for one in y["event"]]
    lines = [f"p{i},{time},{one},{i % 7}\n" for i, (time, one) in enumerate(zip(y["time"], status))]
    (folder / "patients.csv").write_text("patient,days,status,age\n" + "".join(lines))
    return folder


COLUMNS = ["--id", "patient", "--time", "year", "--values", "marker"]
SHORT = [*TINY, "--quiet"]


def test_info_proposes_the_event(tables, capsys):
    main(["info", str(tables / "visits.csv"), "--objects", str(tables / "patients.csv")])
    out = " ".join(capsys.readouterr().out.split())
    assert "days duration" in out and "status event" in out and "--duration days --event status" in out
    assert "--static age" in out


def test_the_command_fits_predicts_and_evaluates(complete, tables, capsys, tmp_path):
    given = [str(tables / "visits.csv"), *COLUMNS, "--objects", str(tables / "patients.csv")]
    main(["fit", *given, "--duration", "days", "--event", "status", "--out", str(tmp_path / "run"), *SHORT])
    page = (tmp_path / "run/report.html").read_text()
    assert 'id="survival"' in page and 'id="bands"' in page and 'id="regression"' not in page
    main(["predict", str(tmp_path / "run"), str(tables / "visits.csv"), "--out", str(tmp_path / "new.parquet")])
    table = pq.read_table(tmp_path / "new.parquet")
    assert table.column_names[:2] == ["patient", "predicted"] and table.column_names[2].startswith("survival_")
    labels = ["--labels", str(tables / "patients.csv"), "--label", "days"]
    scored = ["evaluate", str(tmp_path / "run"), str(tables / "visits.csv"), *labels]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        main([*scored, "--event", "status", "--out", str(tmp_path / "metrics.json"), "--at", "0.5"])
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert 0 < metrics["early"]["at"]["0.5"]["model"]["concordance"] < 1
    with pytest.raises(SystemExit):
        main(scored)
    assert "--event" in capsys.readouterr().err


def test_a_status_beside_a_duration_is_pointed_out(tables, capsys, tmp_path):
    given = [str(tables / "visits.csv"), *COLUMNS, "--objects", str(tables / "patients.csv"), *SHORT]
    main(["fit", *given, "--label", "days", "--out", str(tmp_path / "run")])
    assert "--event status" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["fit", *given, "--event", "status", "--out", str(tmp_path / "other")])
    assert "--duration" in capsys.readouterr().err
    assert status_of("days", ["days", "age"]) is None and status_of("mass", ["mass", "status"]) is None


@pytest.mark.slow
def test_concordance_is_near_that_of_the_true_risk():
    dataset, y, level = patients(1200)
    train, test = np.arange(800), np.arange(800, 1200)
    model = RoMAESurvival().fit(dataset.select(train), y[train])
    best = concordance(y["time"][test], y["event"][test], -level[test])
    assert model.score(dataset.select(test), y[test]) > best - 0.01
