"""Headings, names, dots and axes."""

import datetime
import math
from itertools import pairwise

import pytest
from matplotlib.text import Text

from wevent.plotting.annotations import Dot, Ending, draw_dots, heading, name_ends, slot_places, spread, time_axis
from wevent.plotting.canvas import picture


@pytest.mark.parametrize("wanted", [[0.5] * 8, [0.1, 0.11, 0.9, 0.12], [0.0, 1.0], [0.3]])
def test_names_are_apart_and_in_order(wanted):
    places = spread(wanted, 0.05)
    order = sorted(range(len(wanted)), key=lambda number: wanted[number])
    gaps = [places[b] - places[a] for a, b in pairwise(order)]
    assert all(gap >= 0.05 - 1e-9 for gap in gaps)


def test_names_stand_outside_the_data_and_do_not_overlap(tmp_path):
    with picture(tmp_path / "new" / "lines.png", 1, 1, size=(6, 4)) as (drawn, axes):
        axis = axes[0, 0]
        for number in range(6):
            axis.plot([0, 1], [number, 5 + 0.01 * number])
        name_ends(drawn, [(axis, [Ending(5 + 0.01 * number, f"line {number}", "#0071D0") for number in range(6)])])
        drawn.draw_without_rendering()
        boxes = [Text.get_window_extent(text) for text in axis.texts]  # without the thin lines
        assert min(box.x0 for box in boxes) >= axis.get_window_extent().x1
        assert not any(one.overlaps(other) for one in boxes for other in boxes if one is not other)
        assert max(box.x1 for box in boxes) <= drawn.bbox.x1
    assert (tmp_path / "new" / "lines.png").read_bytes().startswith(b"\x89PNG")


def test_long_headings_are_broken_and_fit(tmp_path):
    with picture(tmp_path / "a.png", 1, 1, size=(7, 3)) as (drawn, axes):
        heading(drawn, "some moderately long words " * 6, "and more of them, " * 12, "short")
        drawn.draw_without_rendering()
        title, facts = drawn.texts
        assert max(text.get_window_extent().x1 for text in drawn.texts) <= drawn.bbox.x1
        assert title.get_window_extent().y0 >= facts.get_window_extent().y1 - 1
        assert facts.get_window_extent().y0 >= axes[0, 0].get_window_extent().y1


def test_dots_have_whiskers_where_there_is_an_interval(tmp_path):
    rows = [Dot("a", 10.0, 8.0, 12.0, "#0071D0", text="10"), Dot("b", 20.0, math.nan, math.nan, "#C7610D", text="20")]
    with picture(tmp_path / "dots.svg", 1, 1, size=(4, 2)) as (_, axes):
        draw_dots(axes[0, 0], rows, logarithmic=True)
        whiskers = [line for line in axes[0, 0].lines if list(line.get_xdata()) == [8.0, 12.0]]
        assert len(whiskers) == 1
        assert [text.get_text() for text in axes[0, 0].get_yticklabels()] == ["a", "b"]
    drawn = (tmp_path / "dots.svg").read_text()
    assert ">20</text>" in drawn


def test_a_failing_picture_leaves_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError), picture(tmp_path / "a.png", 1, 1, size=(4, 2)):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_the_same_picture_is_the_same_bytes(tmp_path):
    for name in ("a.svg", "b.svg", "a.pdf", "b.pdf"):
        with picture(tmp_path / name, 1, 1, size=(4, 2)) as (_, axes):
            axes[0, 0].plot([1, 2], [1, 2])
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()


def test_slots_are_times_days_or_numbers(tmp_path):
    start, hour = datetime.datetime(2026, 3, 2, tzinfo=datetime.UTC), datetime.timedelta(hours=1)
    assert slot_places(2, start, hour) == [start, start + hour]
    assert slot_places(3, None, 12 * hour) == [0.0, 0.5, 1.0]
    assert slot_places(2, None, None) == [1.0, 2.0]
    for number, times in enumerate([(start, hour), (None, hour), (None, None)]):
        with picture(tmp_path / f"{number}.svg", 1, 1, size=(6, 2)) as (_, axes):
            axes[0, 0].plot(slot_places(48, *times), range(48))
            time_axis(axes[0, 0], *times)
    dated, days, slots = ((tmp_path / f"{number}.svg").read_text() for number in range(3))
    assert "2026-Mar" in dated
    assert "day 2" in days
    assert ">slot</text>" in slots
