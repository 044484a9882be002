import base64
import io
import re
from dataclasses import fields, replace
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.figure import Figure

from rotarymae import plots
from rotarymae.errors import InputError
from rotarymae.report import html as pages
from rotarymae.report import images as page_images
from rotarymae.report.content import (
    Calibration,
    Classification,
    EmbeddingMap,
    Headline,
    InterpolatedSeries,
    LearningCurve,
    Picture,
    Preprocessing,
    Report,
    Run,
    Table,
)
from rotarymae.report.html import render, write

HOSTILE = "<script>alert('a & \"b\"')</script>$_$"
# Section of the page by field of the report.
ANCHORS = {
    "headlines": "headlines",
    "tables": "tables",
    "series": "series",
    "calibration": "calibration",
    "classification": "classes",
    "embedding": "embedding",
    "learning_curves": "learning",
    "pictures": "picture-1",
    "preprocessing": "data",
    "run": "run",
    "notes": "notes",
}


class Page(HTMLParser):
    """Collects what the tests ask about, and fails on tags that do not nest."""

    EMPTY = ("meta", "img", "br", "link", "input", "hr")

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.links, self.ids, self.attributes = [], [], [], [], []
        self.words = ""
        self.rows, self.row = [], []
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in self.EMPTY:
            self.open.append(tag)
        for name, value in attrs:
            self.attributes.append(name)
            if name in ("src", "href", "srcset", "data", "action", "poster", "background"):
                self.links.append(value)
            if name == "id":
                self.ids.append(value)
        if tag in ("th", "td"):
            self.row.append("")

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> closes something else"
        if tag == "tr":
            self.rows.append(self.row)
            self.row = []

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.words += data
        if self.row and {"th", "td"} & set(self.open):
            self.row[-1] += data


def full(text="plain"):
    """A report with every section; `text` stands wherever a user's own words can."""
    picture = Figure(figsize=(1, 1))
    picture.text(0, 0, "x")
    return Report(
        title=text,
        summary=text,
        headlines=[Headline(text, 0.712, {text: 0.644}, note=text), Headline("error", 0.25, {"a": 0.2}, False)],
        tables=[Table(text, [(text, {text: 0.5, "MSE": 2.0}), ("b", {"MSE": 1.0})], ("MSE",), caption=text)],
        series=[
            InterpolatedSeries(text, [0, 1], [1, 2], [0, 1], channel_names=[text, "b"], value_label=text),
            InterpolatedSeries("b", [0, 1], [1, 2], curve_times=[0, 1], curve_mean=[1, 2], curve_std=[1, 1]),
        ],
        calibration=Calibration([0.5, 0.95], [0.5, 0.8], 400),
        classification=Classification([text, "b"], [0, 0, 1, 1], [0, 1, 1, 1], [0, 0, 0, 1], text),
        embedding=EmbeddingMap([[0, 0], [1, 1]], [0, 1], [text, "b"], text),
        learning_curves=[LearningCurve(text, [1, 2], [3.0, 2.0], [3.0, 2.5])],
        pictures=[Picture(text, picture, text)],
        preprocessing=Preprocessing({text: text, "rows": 81234}, {text: text}, text, {text: 3}, [text]),
        run=Run(text, 7, 754.2, text, {text: text}, {"top": 3e-4, text: {text: {"deep": [0.9, None, text]}}}),
        notes=[text],
    )


@pytest.fixture(scope="module")
def hostile():
    return render(full(HOSTILE))


def test_the_page_parses_and_has_every_section_with_its_sentence(hostile):
    page = Page(hostile)
    assert list(page.ids) == list(ANCHORS.values())
    assert [link for link in page.links if link.startswith("#")] == [f"#{anchor}" for anchor in ANCHORS.values()]
    assert page.tags.count("section") == hostile.count('<p class="how">') == len(ANCHORS)
    assert set(ANCHORS) == {field.name for field in fields(Report)} - {"title", "summary"}


@pytest.mark.parametrize("name", ANCHORS)
def test_each_section_is_shown_only_when_given(name):
    alone = Page(render(Report("title", **{name: getattr(full(), name)})))
    assert alone.ids == [ANCHORS[name]]


def test_an_empty_report_is_a_page():
    page = Page(render(Report("only a title")))
    assert page.ids == [] and page.links == [] and "only a title" in page.words


def test_everything_a_user_wrote_is_escaped(hostile):
    assert "<script" not in hostile and "alert('" not in hostile
    page = Page(hostile)
    assert "script" not in page.tags and not any(name.startswith("on") for name in page.attributes)
    # It is still there to be read, wherever it was given: once or more in each section.
    for section in re.split("<section ", hostile)[1:]:
        assert "&lt;script&gt;" in section or section.startswith(('id="calib', 'id="learn')), section[:40]


def test_nothing_is_loaded_from_anywhere(hostile):
    page = Page(hostile)
    assert all(link.startswith(("#", "data:image/")) for link in page.links)
    assert not {"script", "link", "iframe", "object", "embed", "base"} & set(page.tags)
    assert "http://" not in hostile and "https://" not in hostile
    assert "url(" not in hostile and "@import" not in hostile
    assert "default-src 'none'" in hostile
    images = [link for link in page.links if link.startswith("data:")]
    assert len(images) == 7
    for image in images:
        kind, data = image.split(";base64,")
        content = base64.b64decode(data, validate=True)
        assert b"<svg" in content if kind.endswith("svg+xml") else content.startswith(b"\x89PNG")
        assert b"<script" not in content


def test_the_same_report_gives_the_same_page():
    assert render(full()) == render(full())


def test_large_figures_become_pixels(monkeypatch):
    given = Report("title", learning_curves=full().learning_curves)
    assert "data:image/svg+xml" in render(given)
    monkeypatch.setattr(page_images, "LARGEST_SVG", 10)
    assert "data:image/png" in render(given)


def test_pixels_keep_every_colour():
    from PIL import Image

    generator = np.random.default_rng(0)
    figure = plots.embedding_map(generator.normal(size=(400, 2)), np.arange(400) % 16, list("abcdefghijklmnop"))
    exact = io.BytesIO()
    figure.savefig(exact, format="png", dpi=192)
    before, after = (
        np.asarray(Image.open(source).convert("RGB"), int) for source in (exact, io.BytesIO(page_images._png(figure)))
    )
    assert np.abs(before - after).max() <= 24


def test_headlines_stand_beside_their_baselines():
    given = [
        Headline("F1", 0.7, {"trees": 0.6, "oracle": 0.9, "twin": 0.7}),
        Headline("MSE", 0.2, {"line": 0.25, "exact": 0.1, "none": np.nan}, higher_is_better=False),
    ]
    rows = Page(render(Report("title", headlines=given))).rows
    assert rows == [
        ["trees", "0.600", "▲ 0.100"],
        ["oracle", "0.900", "▼ 0.200"],
        ["twin", "0.700", "equal"],
        ["line", "0.250", "▲ 0.050"],
        ["exact", "0.100", "▼ 0.100"],
        ["none", "–", ""],
    ]


def test_the_best_of_each_column_is_bold():
    rows = [("a", {"F1": 0.7, "MSE": 0.4}), ("b", {"F1": 0.6, "MSE": 0.3}), ("c", {"F1": np.nan})]
    page = render(Report("title", tables=[Table("comparison", rows, ["MSE"])]))
    assert re.findall("<strong>(.*?)</strong>", page) == ["0.700", "0.300"]
    assert Page(page).rows[-1] == ["c", "–", "–"]


def test_class_table_by_hand():
    classification = Classification(
        ["star", "nova", "absent"], [0, 0, 0, 1], [0, 0, 1, 1], [0, 0, 0, 0], "most common class"
    )
    page = Page(render(Report("title", classification=classification)))
    assert page.rows == [
        ["class", "precision", "recall", "F1", "F1 of most common class", "objects"],
        ["star", "1.000", "0.667", "0.800", "0.857", "3"],
        ["nova", "0.500", "1.000", "0.667", "0", "1"],
        ["absent", "0", "0", "0", "0", "0"],
        ["mean over classes (macro)", "0.750", "0.833", "0.733", "0.429", "4"],
    ]
    assert "Accuracy 0.750 on 4 held-out objects" in page.words and "left out of the means" in page.words
    without = Page(render(Report("title", classification=replace(classification, baseline=None))))
    assert without.rows[1] == ["star", "1.000", "0.667", "0.800", "3"]


def test_class_scores_agree_with_scikit_learn():
    from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

    generator = np.random.default_rng(0)
    labels, predicted = generator.integers(0, 5, (2, 60))
    counts = pages.confusion_counts(labels, predicted, 5)
    np.testing.assert_array_equal(counts, confusion_matrix(labels, predicted))
    expected = np.stack(precision_recall_fscore_support(labels, predicted, zero_division=0), 1)
    np.testing.assert_allclose(pages.class_scores(counts), expected)


def test_calibration_counts_and_judges():
    counted = Calibration.from_gaussian([0.0, 0.9, 1.5, 3.0, np.nan], np.zeros(5), np.ones(5), (0.68, 0.95))
    assert counted.points == 4 and counted.observed == (0.5, 0.75)
    honest = np.random.default_rng(0).normal(3, 2, 20_000)
    right = Calibration.from_gaussian(honest, np.full(20_000, 3.0), np.full(20_000, 2.0))
    np.testing.assert_allclose(right.observed, right.nominal, atol=0.01)
    page = Page(render(Report("title", calibration=Calibration([0.5, 0.68, 0.95], [0.4, 0.69, 0.99], 10_000))))
    assert page.rows[1:] == [
        ["50 %", "40.0 %", "too narrow"],
        ["68 %", "69.0 %", "as promised"],
        ["95 %", "99.0 %", "too wide"],
    ]
    # Of 25 points a share is uncertain by 10 percentage points: no verdict from 0.4.
    few = Page(render(Report("title", calibration=Calibration([0.5], [0.4], 25))))
    assert few.rows[1] == ["50 %", "40.0 %", "as promised"]
    with pytest.raises(InputError, match="all are missing"):
        Calibration.from_gaussian([np.nan], [0.0], [1.0])


def test_configuration_is_flattened_and_exact():
    settings = {"seed": 0, "train": {"base_lr": 3e-4, "betas": [0.9, 0.95], "mask": {"ratio": 0.5}, "none": {}}}
    rows = Page(render(Report("title", run=Run(configuration=settings)))).rows
    assert rows == [
        ["seed", "0"],
        ["train"],
        ["base_lr", "0.0003"],
        ["betas", "0.9, 0.95"],
        ["mask.ratio", "0.5"],
        ["none", "–"],
    ]


@pytest.mark.parametrize(
    "value,text",
    [
        (12345, "12,345"),
        (np.int64(-3), "−3"),
        (0.70349, "0.703"),
        (0.0, "0"),
        (12.3456, "12.35"),
        (-81234.5, "−81,234"),
        (3.21e-5, "3.21e−05"),
        (float("nan"), "–"),
        (float("-inf"), "−∞"),
        (True, "yes"),
        (np.False_, "no"),
        (None, "–"),
        ("a < b", "a &lt; b"),
    ],
)
def test_numbers(value, text):
    assert pages.number(value) == text


@pytest.mark.parametrize(
    "seconds,text",
    [(3.21, "3.2 s"), (59.4, "59 s"), (754.2, "12 min 34 s"), (11_520, "3 h 12 min"), (7199, "2 h 0 min")],
)
def test_durations(seconds, text):
    assert pages.duration(seconds) == text


def test_write_makes_the_folder_and_replaces_in_one_step(tmp_path, monkeypatch):
    path = tmp_path / "runs" / "report.html"
    assert write(Report("first"), path) == path
    assert "first" in path.read_text(encoding="utf-8")
    write(Report("größer ▲"), str(path))
    assert "größer ▲" in path.read_text(encoding="utf-8")
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]
    assert path.stat().st_mode & 0o044 == 0o044  # a page is there to be shown to others

    def full_disk(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(type(path), "replace", full_disk)
    with pytest.raises(OSError, match="no space left"):
        write(Report("third"), path)
    assert "größer ▲" in path.read_text(encoding="utf-8")
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]


@pytest.mark.parametrize(
    "make,message",
    [
        (lambda: Classification(["a"], [], []), "one class index per held-out series"),
        (lambda: Classification(["a"], [0, 1], [0, 0]), "there are 1 names"),
        (lambda: Classification(["a", "b"], [0, 1], [0.0, 1.0]), "wanted integers"),
        (lambda: Classification(["a", "b"], [0, 1], [0]), "wanted integers of shape"),
        (lambda: LearningCurve("fine-tuning", [1, 2], [1.0]), "one loss per step"),
        (lambda: Calibration([0.5], [0.5, 0.6], 3), "must agree"),
        (lambda: Calibration.from_gaussian([1.0], [1.0], [1.0, 2.0]), "must agree"),
    ],
)
def test_parts_refuse_what_does_not_fit(make, message):
    with pytest.raises(InputError, match=message):
        make()
