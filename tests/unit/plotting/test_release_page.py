"""One page of releases that needs nothing else."""

import json
import re

import pytest

from tests.unit.plotting.test_release_data import columns, released
from wevent.errors import InvalidOption
from wevent.plotting import release_page
from wevent.plotting.release_data import data_from_table
from wevent.plotting.release_page import write_page

EVIL = "</script><img src=x onerror=alert(1)>"


def drawn(text):
    """The traces and the layout that a page hands to plotly."""
    call = text[text.rindex("Plotly.newPlot(") :]
    decoder = json.JSONDecoder()
    traces, end = decoder.raw_decode(call, call.index("["))
    layout, _ = decoder.raw_decode(call, call.index("{", end))
    return traces, layout


@pytest.mark.parametrize("as_lines", [True, False])
@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("slots", [(1, 2, 3, 4), (1,), (2, 900)])
def test_a_page_shows_every_cell_and_fetches_nothing(as_lines, timed, slots, tmp_path):
    write_page(released(slots, timed=timed), tmp_path / "new" / "a.html", as_lines=as_lines)
    text = (tmp_path / "new" / "a.html").read_text(encoding="utf-8")
    assert not re.search(r"<script[^>]+src=|<link", text)
    traces, layout = drawn(text)
    shown = {note["text"] for note in layout["annotations"]} if as_lines else set(layout["yaxis"]["ticktext"])
    assert shown == {"a", "b"}
    assert len(traces) == (4 if as_lines else 1)


def test_values_bands_and_outcomes(tmp_path):
    table = columns((1, 2, 3), cells=("a",), timed=False)
    table["mechanism"] = ["pft", "pft", "pba"]
    write_page(data_from_table("a.csv", table), tmp_path / "a.html", as_lines=True)
    traces, layout = drawn((tmp_path / "a.html").read_text(encoding="utf-8"))
    band, line, other_band, other = traces
    assert band["x"] == [2, 3, 3, 2, None]
    assert band["y"] == [15, 15, 25, 25, None]
    assert other_band["y"] == [25, 25, 35, 35, None]
    assert (line["line"]["color"], other["line"]["color"]) == ("#C7610D", "#0071D0")
    assert line["marker"]["size"] == [0, 5, 0, 0]  # the measured slot, and none at the end
    assert line["hovertext"][:2] == ["a, slot 1: no value, repeated", "a, slot 2: 20 (15 to 25), fresh"]
    assert "Band: 95 % interval" in layout["title"]["subtitle"]["text"]


@pytest.mark.parametrize("as_lines", [True, False])
def test_no_word_of_a_release_is_markup(as_lines, tmp_path):
    table = columns(cells=(EVIL, "b"))
    table["outcome"] = table["mechanism"] = [EVIL] * len(table["slot"])
    write_page(data_from_table(f"{EVIL}.csv", table), tmp_path / "a.html", as_lines=as_lines)
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert EVIL not in text
    assert "<img" not in json.dumps(drawn(text), ensure_ascii=False)


def test_a_page_for_more_than_a_browser_likes_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(release_page, "MOST_VALUES", 7)
    with pytest.raises(InvalidOption, match="4 slots × 2 cells"):
        write_page(released(), tmp_path / "a.html", as_lines=True)
    assert list(tmp_path.iterdir()) == []
