"""The report of a run: what is in it, and that curves and words fit the run."""

import dataclasses
import html
import re

import numpy as np
import pytest

from _runs import FIT
from conftest import patched
from rotarymae import SeriesDataset
from rotarymae.errors import InputWarning
from rotarymae.metrics import SCALED_RMSE, classification_metrics
from rotarymae.queries import curves
from rotarymae.report import build, pictures
from rotarymae.report.build import write_report
from rotarymae.report.pictures import CURVE_POINTS, verdict
from rotarymae.run import run_fit
from rotarymae.series import hide
from rotarymae.splits import Split
from rotarymae.training.fit_config import FitConfig

pytestmark = pytest.mark.usefixtures("complete")
ONCE = dataclasses.replace(FIT, log_every=1)


def words(page):
    return " ".join(re.sub(r"<[^>]*>", " ", re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)).split())


@pytest.fixture(scope="module")
def data():
    draw = np.random.default_rng(0)
    times = [np.sort(draw.uniform(0, 20, draw.integers(4, 12))) for _ in range(16)]
    channels = [np.where(draw.random(len(t)) < 0.5, "u", "$v<") for t in times]
    values = [np.stack([np.sin(t), np.abs(np.cos(t))], 1) for t in times]
    return SeriesDataset.from_arrays(times, values, channels, value_names=["flux", "flux_err"])


def test_the_commands_report(fitted):
    page = (fitted / "run/report.html").read_text()
    text = words(page)
    for part in (
        "stars.csv", "macro-F1", "gradient boosting", "Classes, on held-out series",
        "linear interpolation", "Are the bands honest?", "Class by class",
        "each series' first observation", "flux of g", "held-out series", "rows dropped", "95 % intervals of",
    ):  # fmt: skip
        assert part in html.unescape(text), part
    assert page.count("<img") >= 5 and "<script" not in page and "http://" not in page.replace("http://www.w3.org", "")


def test_a_regression_has_its_own_part(data, tmp_path):
    labels = np.linspace(0, 1, 16) ** 2
    outcome = run_fit(data, labels, ONCE, tmp_path / "run")
    text = words(write_report(outcome, tmp_path / "run/report.html", title="A <b>title").read_text())
    assert "Predicted and true" in text and "Regression, on held-out series" in text and "training mean" in text
    assert "A &lt;b&gt;title" in text and "Class by class" not in text
    # Numbers of different units are not compared with one another: a row each, and the best of each row is bold.
    assert all(f"{value} of {channel}" in text for value in ("flux", "flux_err") for channel in ("u", "$v&lt;"))


def test_many_channels_are_one_table_of_the_worst(two_classes, tmp_path, monkeypatch):
    monkeypatch.setattr(build, "PICTURES", ())

    def part(error):
        errors = {"root_mean_squared_error_scaled": error, "root_mean_squared_error": 7 * error}
        return {"hidden_observations": 3, "methods": {"model": errors, "mean": errors}}

    many = part(0.5) | {"channels": {f"channel-{i}-": part(i / 10) for i in range(100)}}
    few = part(0.5) | {"channels": {f"channel-{i}-": part(i / 10) for i in range(20)}}
    for found, shown in ((many, [*range(99, 79, -1)]), (few, range(20))):
        metrics = two_classes.metrics | {"interpolation": {"flux": found}}
        outcome = dataclasses.replace(two_classes, metrics=metrics)
        text = words(write_report(outcome, tmp_path / "report.html", title="many").read_text())
        rows = re.findall(r"flux of channel-(\d+)- ([\d.]+)", text)
        assert [int(channel) for channel, _ in rows] == list(shown)
        assert rows[0][1] == f"{0.7 * shown[0]:.4g}" or shown[0] == 0
        assert ("Of 100, the 20 with the largest scaled errors" in text) == (found is many)


def test_without_labels_and_with_few_series(data, tmp_path):
    outcome = run_fit(data.select(np.arange(3)), None, ONCE, tmp_path / "run")
    text = words(write_report(outcome, tmp_path / "run/report.html", title="few").read_text())
    assert "on the training series" in text and "held-out" not in text
    assert "Class by class" not in text


def test_series_of_one_observation_make_a_report_too(tmp_path):
    times = [[0.0, 1.0], *([[0.0]] * 11)]
    data = SeriesDataset.from_arrays(times, [[float(i)] * len(t) for i, t in enumerate(times)])
    every = dataclasses.replace(ONCE, validation_fraction=0.0)
    with pytest.warns(InputWarning, match="11 of 12 series"):
        outcome = run_fit(data, None, every, tmp_path / "run", holdout=0.0)
    assert outcome.metrics["interpolation"]["value"]["hidden_observations"] == 1
    assert "the typical error at hidden" in words(
        write_report(outcome, tmp_path / "report.html", title="ones").read_text()
    )


SMALL = FitConfig(
    pretrain_epochs=1, min_steps=0, embed_dim=24, num_heads=1, depth=1, decoder_embed_dim=24, decoder_num_heads=1
)
LAYOUTS = {
    "one channel, and values without a spread": ({"channels": None}, {"likelihood": "point"}),
    "the values of a time in one token": ({"channels": None, "wide": True, "tokens": "time"}, {}),
    "joined times": ({}, {"join_times": True}),
    "errors and limits": ({"sides": [-1, 0]}, {"errors": ("flux_err",)}),
    "limits at further positions": ({"position_names": ["lat", "lon"], "sides": [-1, 0]}, {}),
    "windows": ({}, {"window": 6, "overlap": 2}),
}


@pytest.mark.filterwarnings("ignore:series .* from their origin")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_model_of_every_layout_is_calibrated_and_its_answers_are_drawn(layout, data, tmp_path):
    changes, options = (dict(one) for one in LAYOUTS[layout])
    draw, sides = np.random.default_rng(0), changes.pop("sides", None)
    times, values, channels = zip(*[(one.times, one.values, one.channels) for one in data])
    if "position_names" in changes:
        changes["positions"] = [draw.uniform(40, 60, (len(one), 2)) for one in times]
    given = {"channels": channels, "value_names": data.value_names} | changes
    dataset = SeriesDataset.from_arrays(times, values, **given)
    if sides is not None:
        some = draw.random((len(dataset.times), 1)) < 0.2
        dataset = dataclasses.replace(dataset, sides=(some * sides).astype(np.int8))
    outcome = run_fit(dataset, None, dataclasses.replace(SMALL, **options), tmp_path / "run")
    assert outcome.pipeline.calibration is not None
    page = write_report(outcome, tmp_path / "report.html", title=layout).read_text()
    assert 'id="series"' in page and ('id="bands"' in page) == ("likelihood" not in options)


def test_curves_reach_over_all_that_was_hidden(data):
    visible, hidden, _ = hide(data, 0.5, seed=0)
    queries = curves(visible, hidden, CURVE_POINTS)
    for i in range(len(visible)):
        at = slice(queries.offsets[i], queries.offsets[i + 1])
        whole = np.concatenate([visible[i].times, hidden[i].times])
        assert queries.times[at].min() == whole.min() and queries.times[at].max() == whole.max()
        assert set(queries.channels[at]) == {*visible[i].channels, *hidden[i].channels}
        assert queries.lengths[i] == CURVE_POINTS * len(set(queries.channels[at]))


def test_verdicts_on_bands_know_how_many_points_were_counted():
    assert [verdict(*x, 10_000) for x in ((0.5, 0.4), (0.68, 0.69), (0.95, 0.99))] == [
        "too narrow",
        "as promised",
        "too wide",
    ]
    assert verdict(0.5, 0.4, 25) == "as promised"  # of 25 points a share is uncertain by 10 percentage points


HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def two_classes(tmp_path_factory):
    """An outcome of two classes and dated observations, with hostile names wherever a table can hold one."""
    draw = np.random.default_rng(1)
    labels = np.array([HOSTILE, "nova"] * 12)
    start = np.datetime64("2024-03-01")
    days = [np.sort(draw.choice(60, 8, replace=False)) for _ in labels]
    values = [np.stack([np.sin(t / 5) + (x == "nova") * t / 20, 0.1 + t / 600], 1) for t, x in zip(days, labels)]
    channels = [np.where(draw.random(8) < 0.5, HOSTILE, "r") for _ in labels]
    data = SeriesDataset.from_arrays(
        [start + t.astype("timedelta64[D]") for t in days],
        values,
        channels,
        ids=[f"{HOSTILE}{i}" for i in range(len(labels))],
        value_names=["mag<b>", "mag<b>_err"],
    )
    folder = tmp_path_factory.mktemp("two") / "run"
    columns = {"time": "night<i>"}
    return run_fit(data, labels, ONCE, folder, columns=columns, command=HOSTILE)


@pytest.fixture(scope="module")
def page_of_two(two_classes, every_part, tmp_path_factory):
    with patched(every_part):
        return write_report(two_classes, tmp_path_factory.mktemp("page") / "report.html", title="two").read_text()


def test_errors_and_coverage_are_drawn_by_distance():
    methods = {"model": {SCALED_RMSE: 0.2}, "linear_interpolation": {SCALED_RMSE: 0.3}}
    near = {"above": 0, "methods": methods, "share_inside_band": {"0.68": 0.7, "0.95": 0.9}}
    left, right = pictures.draw_by_distance([near, near | {"above": 4}], 5.0).figure.axes
    assert [line.get_ydata().tolist() for line in left.lines] == [[0.2, 0.2], [0.3, 0.3]]
    assert [text.get_text() for text in left.get_xticklabels()] == ["≤ 5", "> 20"]
    assert right.lines[0].get_ydata().tolist() == [0.7, 0.7] and list(right.lines[1].get_ydata()) == [0.68, 0.68]


def test_the_probabilities_that_are_drawn_are_those_of_the_most_probable_class(two_classes):
    """Also where weights decide for another class, as those of the best F1."""
    outcome = dataclasses.replace(
        two_classes,
        fit=dataclasses.replace(two_classes.fit, split=Split(np.arange(0), np.arange(0), np.arange(24))),
        predicted=np.tile([0.75, 0.25], (24, 1)),
        labels=np.array(["nova", *[HOSTILE] * 3] * 6),
        fold_weights=np.tile([1.0, 9.0], (24, 1)),
    )
    (drawing,) = pictures.draw_reliability(outcome)
    assert drawing.figure.axes[0].lines[1].get_xydata().tolist() == [[0.75, 0.75]]


def test_an_output_without_any_scored_label_is_not_drawn(data, tmp_path):
    labels = np.stack([np.linspace(0, 1, 16), np.linspace(1, 2, 16)], 1)
    outcome = run_fit(data, labels, dataclasses.replace(ONCE, predictor="model"), tmp_path / "run")
    outcome.labels[outcome.split.scored, 1] = np.nan
    (drawing,) = pictures.draw_regression(outcome)
    assert drawing.caption.startswith("Output 1 of 2.")


def test_a_verdict_says_what_is_not_known_and_keeps_names_as_they_are():
    says, nothing = "of the class {} in {} of pairs", {"auroc": float("nan")}
    said = build._compared(says, {"model": nothing, "features": nothing}, "auroc", "model", build._per_cent)
    assert said == "of the class {} in an unknown share of pairs (model)."
    said = build._compared(says, {"model": {"auroc": 0.5}, "features": nothing}, "auroc", "model", build._per_cent)
    assert said == "of the class {} in 50 % of pairs (model)."


def test_no_name_of_a_users_can_run_or_format_anything(two_classes, tmp_path):
    page = write_report(
        two_classes,
        tmp_path / "report.html",
        title=HOSTILE,
        class_names={HOSTILE: HOSTILE},
        notes=(HOSTILE,),
    ).read_text()
    assert "<script" not in page and "<b>" not in page and "<i>" not in page and " onload" not in page
    assert page.count("&lt;script&gt;") > 10 and "default-src 'none'" in page


def test_a_verdict_comes_first_then_failures_then_trust_then_the_data(page_of_two):
    page = page_of_two
    verdict = (
        r'class="verdict">On held-out series \(6\), one of the class nova ranks above another one in \d+ % of pairs'
    )
    assert page.index(re.search(verdict, page)[0]) < page.index("Compared with simpler methods")
    assert "; the best other method, " in page
    anchors = re.findall(r'<section id="(\w+)"', page)
    order = ["comparison", "classes", "mistakes", "series", "bands", "learning", "data", "run", "notes"]
    assert [name for name in anchors if name in order] == [name for name in order if name in anchors]
    assert {"classes", "series", "bands", "data"} <= set(anchors)


def test_each_frequent_confusion_shows_its_most_certain_mistake():
    labels, predicted = np.array([0, 0, 0, 1, 1, 2]), np.array([1, 1, 0, 1, 2, 2])
    probabilities = np.array([[0.2, 0.8, 0], [0.1, 0.9, 0], [1, 0, 0], [0, 1, 0], [0, 0.4, 0.6], [0, 0, 1]])
    shown = list(pictures.confusions(labels, predicted, probabilities, ("a", "b", "c")))
    assert shown == [
        (1, "2 of 3 a are taken for b; this one with a probability of 0.90."),
        (4, "1 of 2 b are taken for c; this one with a probability of 0.60."),
    ]


def test_two_classes_have_curves_over_thresholds(page_of_two):
    text = words(page_of_two)
    assert "Other thresholds" in text and "Class by class" in text
    assert "ids and observed values of some" in text
    assert "Bars are ± mag&lt;b&gt;_err" in text


def test_of_many_channels_the_most_observed_are_drawn(tmp_path, monkeypatch):
    draw = np.random.default_rng(0)
    common = [np.r_[np.repeat(np.arange(15), 3), np.repeat(15 + draw.permutation(25)[:12], 1)] for _ in range(12)]
    times = [np.sort(draw.uniform(0, 20, len(one))) for one in common]
    channels = [np.array([f"c{i:02d}" for i in draw.permutation(one)]) for one in common]
    data = SeriesDataset.from_arrays(times, [np.sin(t) for t in times], channels)
    outcome, drawn = run_fit(data, None, ONCE, tmp_path / "run"), []
    inner = pictures.plots.interpolation
    monkeypatch.setattr(pictures.plots, "interpolation", lambda *a, **k: drawn.append(inner(*a, **k)) or drawn[-1])
    text = words(write_report(outcome, tmp_path / "report.html", title="many").read_text())
    assert text.count("Of 27 channels the 12 with most observations.") == len(drawn) == 3
    for figure in drawn:
        titles = [axes.get_title(loc="left") for axes in figure.axes if axes.get_visible()]
        assert len(titles) == 12 and all(title < "c15" for title in titles)


def test_a_page_is_replaced_in_one_step(two_classes, tmp_path, monkeypatch):
    path = tmp_path / "runs" / "report.html"
    monkeypatch.setattr(build, "PICTURES", [])
    assert write_report(two_classes, path, title="first") == path
    write_report(two_classes, str(path), title="größer ▲")
    assert path.stat().st_mode & 0o044 == 0o044  # a page is there to be shown to others

    def full_disk(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(type(path), "replace", full_disk)
    with pytest.raises(OSError, match="no space left"):
        write_report(two_classes, path, title="third")
    assert "größer ▲" in path.read_text(encoding="utf-8")
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]


def test_the_mean_over_classes_is_that_of_the_metrics():
    """Also where a class is predicted that no scored series has."""
    labels, predicted = np.zeros(6, int), np.arange(6) % 2
    table = pictures.class_table(labels, predicted, ("a", "b", "c"), "held-out series")
    sure = np.where(np.arange(3)[None] == predicted[:, None], 0.9, 0.05)
    assert table.rows[-1][1]["F1"] == pytest.approx(classification_metrics(labels, sure)["macro_f1"])
