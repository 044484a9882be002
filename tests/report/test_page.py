"""The page of a report: it parses, it escapes, it loads nothing, and it says what the Report holds."""

import base64
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from rotarymae import plots
from rotarymae.report.build import render
from rotarymae.report.content import Best, Drawing, Section, Table, cell_text, error_table

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
    figure = plots.interpolation([1, 2], [1, 2], [0, 0], [text], shown=[0], time_label=text, value_label=text)
    section = Section(
        "part",
        text,
        text,
        [Drawing(figure, text, text, text), Drawing(figure, text)],
        [Table([(text, {text: Best(0.5), "kind": text}), (text, {})], text, text, text)],
        [text],
        text,
    )
    return text, text, [section]


@pytest.fixture(scope="module")
def hostile():
    return render(*full(HOSTILE))


def test_the_page_parses_and_links_to_every_section(hostile):
    page = Page(hostile)
    assert page.ids == ["part"]
    assert [link for link in page.links if link.startswith("#")] == ["#part"]
    assert page.tags.count("section") == hostile.count('<p class="how">') == 1


def test_an_empty_report_is_a_page():
    page = Page(render("only a title", "", []))
    assert page.ids == [] and page.links == [] and "only a title" in page.words


def test_everything_a_user_wrote_is_escaped(hostile):
    assert "<script" not in hostile and "alert('" not in hostile
    page = Page(hostile)
    assert "script" not in page.tags and not any(name.startswith("on") for name in page.attributes)
    # It is still there to be read, wherever it was given.
    assert page.words.count(HOSTILE) == 17


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
        assert kind.endswith("png") and content.startswith(b"\x89PNG")
        assert b"<script" not in content


def test_the_same_report_gives_the_same_page():
    assert render(*full()) == render(*full())


def test_the_best_is_bold_and_what_is_not_there_a_dash():
    rows = [("a", {"F1": Best(0.7), "MSE": 0.4}), ("b", {"F1": 0.6, "MSE": Best(0.3)}), ("c", {"F1": np.nan})]
    page = render("title", "", [Section("a", "b", "c", tables=[Table(rows, "comparison", "method")])])
    assert re.findall("<strong>(.*?)</strong>", page) == ["0.7", "0.3"]
    assert Page(page).rows[-1] == ["c", "–", "–"]


def test_the_smallest_error_of_each_row_is_the_best():
    def scores(**errors):
        return {"methods": {name: {"e": error} for name, error in errors.items()}, "hidden_observations": 3}

    parts = [("pH", scores(model=0.02, mean=0.05)), ("x", scores(model=9.0, mean=8.0)), ("y", scores(mean=1.0))]
    rows = dict(error_table("t", parts, "e", "").rows)
    best = [[type(cell) is Best for cell in row.values()] for row in rows.values()]
    assert best == [[True, False, False], [False, True, False], [False, False]]
    table = error_table("t", [*parts, ("z", scores(model=1.0) | {"limits": 2})], "e", "")
    assert [row.get("of these limits") for _, row in table.rows] == [None, None, None, 2] and "limit" in table.caption
    assert not error_table("t", parts, "e", "").caption


@pytest.mark.parametrize(
    "value,text",
    [
        (12345, "12,345"),
        (np.int64(-3), "-3"),
        (0.70349, "0.7035"),
        (0.0, "0"),
        (-81234.5, "-81,234"),
        (3.21e-5, "3.21e-05"),
        (float("nan"), "–"),
        (float("-inf"), "-inf"),
        (True, "yes"),
        (np.False_, "no"),
        (None, "–"),
        ("a < b", "a < b"),
        ({"a": 1, "b": [2.5, None]}, "a: 1, b: 2.5, –"),
        ((), "–"),
    ],
)
def test_values_as_text(value, text):
    assert cell_text(value) == text
