"""The page of a report: it parses, it escapes, it loads nothing, and it says what the Report holds."""

import base64
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from rotarymae import plots
from rotarymae.report import build
from rotarymae.report.build import render
from rotarymae.report.content import Headline, Image, Report, Section, Table

HOSTILE = '<script>alert(\'a & "b"\')</script>$_$" onload="x'


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
    """A report with every part; `text` stands wherever a user's own words can."""
    figure = plots.interpolation([1, 2], [1, 2], time_label=text, value_label=text)
    section = Section(
        "part",
        text,
        text,
        [Image(build.data_uri(figure), text, text, text), Image(build.data_uri(figure), text, width=900)],
        [Table([(text, {text: 0.5, "kind": text}), (text, {})], text, text, text, (text,), (text,))],
        [text],
        [text],
    )
    return Report(text, text, text, [Headline(text, 0.712, {text: 0.644}, note=text)], [section])


@pytest.fixture(scope="module")
def hostile():
    return render(full(HOSTILE))


def test_the_page_parses_and_links_to_every_section(hostile):
    page = Page(hostile)
    assert page.ids == ["headlines", "part"]
    assert [link for link in page.links if link.startswith("#")] == ["#headlines", "#part"]
    assert page.tags.count("section") == hostile.count('<p class="how">') == 2


def test_an_empty_report_is_a_page():
    page = Page(render(Report("only a title")))
    assert page.ids == [] and page.links == [] and "only a title" in page.words


def test_everything_a_user_wrote_is_escaped(hostile):
    assert "<script" not in hostile and "alert('" not in hostile
    page = Page(hostile)
    assert "script" not in page.tags and not any(name.startswith("on") for name in page.attributes)
    # It is still there to be read, wherever it was given.
    assert page.words.count(HOSTILE) == 21


def test_nothing_is_loaded_from_anywhere(hostile):
    page = Page(hostile)
    assert all(link.startswith(("#", "data:image/")) for link in page.links)
    assert not {"script", "link", "iframe", "object", "embed", "base"} & set(page.tags)
    assert "http://" not in hostile and "https://" not in hostile
    assert "url(" not in hostile and "@import" not in hostile
    assert "default-src 'none'" in hostile
    images = [link for link in page.links if link.startswith("data:")]
    assert len(images) == 2
    for image in images:
        kind, data = image.split(";base64,")
        content = base64.b64decode(data, validate=True)
        assert b"<svg" in content if kind.endswith("svg+xml") else content.startswith(b"\x89PNG")
        assert b"<script" not in content


def test_the_same_report_gives_the_same_page():
    assert render(full()) == render(full())


def test_large_figures_become_pixels():
    many = np.random.default_rng(0).normal(size=(1400, 2))
    assert build.data_uri(plots.embedding_map(many, None, None, "PCA")).startswith("data:image/png")
    assert build.data_uri(plots.embedding_map(many[:5], None, None, "PCA")).startswith("data:image/svg+xml")


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
    rows = [("a", {"F1": 0.7, "MSE": 0.4, "n": 3}), ("b", {"F1": 0.6, "MSE": 0.3, "n": 4}), ("c", {"F1": np.nan})]
    table = Table(rows, "comparison", "method", highest=["F1"], lowest=["MSE"])
    page = render(Report("title", sections=[Section("a", "b", "c", tables=[table])]))
    assert re.findall("<strong>(.*?)</strong>", page) == ["0.700", "0.300"]
    assert Page(page).rows[-1] == ["c", "–", "–", "–"]


def test_the_smallest_of_each_row_is_bold_where_rows_have_units_of_their_own():
    rows = [("pH", {"model": 0.02, "mean": 0.05, "n": 0}), ("rate", {"model": 9.0, "mean": 8.0}), ("x", {"mean": 1.0})]
    table = Table(rows, first="value", across=["model", "mean"])
    page = render(Report("title", sections=[Section("a", "b", "c", tables=[table])]))
    assert re.findall("<strong>(.*?)</strong>", page) == ["0.020", "8.000"]


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
        ("a < b", "a < b"),
    ],
)
def test_numbers(value, text):
    assert build.number(value) == text
