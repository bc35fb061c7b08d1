"""One page of releases: self-contained, and the same without scripts."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from tests.unit.drawing.test_released import columns, released
from wevent.drawing import released_page
from wevent.drawing.heat import heat_colours
from wevent.drawing.released import of_table
from wevent.drawing.released_page import heatmap_page, lines_page
from wevent.drawing.scales import ribbon, round_numbers, stairs
from wevent.errors import InvalidOption

VOID = {"meta", "path", "rect", "image", "i"}


class Whole(HTMLParser):
    """Checks that every element is closed, and keeps what points outside of the page."""

    def __init__(self, text):
        super().__init__()
        self.open, self.outside, self.tags = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        for name, value in attributes:
            if name in ("href", "src", "action") and not value.startswith("data:"):
                self.outside.append(value)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag


@pytest.mark.parametrize("make", [lines_page, heatmap_page])
@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("slots", [(1, 2, 3, 4), (2,), (1,), (2, 900)])
def test_a_page_is_whole_and_needs_nothing_else(make, timed, slots):
    text = make(released(slots, timed=timed))
    page = Whole(text)
    assert page.open == []
    assert page.outside == []
    assert "http://" not in text
    assert "https://" not in text
    assert "nan" not in re.sub(r"base64,[^\"]*", "", text).lower()
    assert page.tags.count("svg") == (2 if make is lines_page else 1)
    assert "prefers-color-scheme:dark" in text


def test_the_table_says_what_the_picture_shows():
    text = lines_page(released())
    rows = re.findall(r"<tr><th scope=\"row\">(\d+)</th>(.*?)</tr>", text)
    assert [int(number) for number, _ in rows] == [1, 2, 3, 4]
    assert re.findall(r"<td>(.*?)</td>", rows[0][1]) == ["2026-03-02 00:00", "repeated", "–", "–"]
    assert re.findall(r"<td>(.*?)</td>", rows[1][1]) == ["2026-03-02 01:00", "fresh", "20 (15 to 25)", "21 (16 to 26)"]


def test_without_bands_there_are_none():
    assert re.findall(r'<path class="band m0" d="([^"]*)"', lines_page(released(bands=False))) == ["", ""]
    assert "No band" in lines_page(released(bands=False))


def test_labels_cannot_break_out_of_the_page():
    wicked = '</script><script>alert("1")</script>'
    for make in (lines_page, heatmap_page):
        text = make(released(cells=(wicked, "b")))
        assert text.count("<script>") == 1
        assert wicked not in text
        assert Whole(text).open == []


def test_a_page_for_more_than_a_browser_likes_is_refused(monkeypatch):
    monkeypatch.setattr(released_page, "MOST_VALUES", 7)
    with pytest.raises(InvalidOption, match="4 slots × 2 cells"):
        lines_page(released())


def test_two_mechanisms_have_two_colours():
    table = columns()
    table["mechanism"] = ["pft"] * 4 + ["pba"] * 4
    text = lines_page(of_table("a.csv", table))
    assert ".m0{--own:#C7610D}" in text
    assert ".m1{--own:#0071D0}" in text


def test_paths_leave_gaps():
    nan = float("nan")
    assert stairs([0, 1, 2, 3], [5, nan, 7]) == "M0 5H1M2 7H3"
    assert ribbon([0, 1, 2, 3], [1, nan, 3], [2, nan, 4]) == "M0 1V2H1V1ZM2 3V4H3V3Z"


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 7), (0, 98_765), (0.001, 0.0042), (5, 5)])
def test_numbers_on_an_axis_are_few_and_inside(low, high):
    found = round_numbers(low, high)
    assert 1 <= len(found) <= 6
    assert all(low - 1e-9 <= number <= high + 1e-9 for number in found)


def test_larger_values_are_lighter_and_nothing_is_clear():
    colours = heat_colours(np.array([[0.0, 5.0, 10.0, np.nan]]))[0]
    assert colours[0].tolist() == [0, 34, 78, 255]
    assert colours[2].tolist() == [254, 232, 56, 255]
    assert colours[3, 3] == 0
    assert colours[0, :3].sum() < colours[1, :3].sum() < colours[2, :3].sum()


@pytest.mark.parametrize("page", [lines_page, heatmap_page])
def test_no_word_of_a_release_is_markup(page):
    evil = "</script><img src=x onerror=alert(1)>"
    table = columns(cells=(evil, "b"))
    table["outcome"] = [evil] * len(table["slot"])
    table["mechanism"] = [evil] * len(table["slot"])
    text = page(of_table(f"{evil}.csv", table))
    assert "img" not in Whole(text).tags
    assert text.count("<script") == 1
