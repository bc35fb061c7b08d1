"""Pictures of releases."""

import re

import numpy as np
import pytest

from tests.unit.drawing.test_released import released
from wevent.drawing.canvas import picture
from wevent.drawing.released_figure import _draw_cell, draw_heatmap, draw_lines

pytestmark = pytest.mark.slow


def texts(path):
    return re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("slots", [(1, 2, 3, 4), (2,), (2, 900)])
def test_every_cell_has_a_panel(tmp_path, timed, slots):
    cells = tuple("abcde")
    draw_lines(released(slots, cells, timed=timed), tmp_path / "a.svg")
    assert set(cells) <= set(texts(tmp_path / "a.svg"))


def test_many_cells_are_a_heatmap(tmp_path):
    cells = tuple(f"cell {number}" for number in range(100))
    draw_heatmap(released(cells=cells), tmp_path / "a.svg")
    found = texts(tmp_path / "a.svg")
    assert "Published: 100 cells" in found
    assert 10 < sum(text.startswith("cell ") for text in found) <= 36


def test_a_band_a_line_and_ticks_where_it_was_measured(tmp_path):
    found = released((2, 3, 4), timed=False)
    with picture(tmp_path / "a.png", 1, 1, size=(4, 3)) as (_, axes):
        _draw_cell(axes[0, 0], found, 0, list(found.slots))
        band, _, ticks = axes[0, 0].collections
        assert band.get_datalim(axes[0, 0].transData).y0 == 15.0
        assert len(ticks.get_segments()) == 2
        line = next(line for line in axes[0, 0].lines if len(line.get_xdata()) == 4)
        assert np.asarray(line.get_ydata()).tolist() == [20.0, 30.0, 40.0, 40.0]  # the last slot has a width too


def test_an_interval_of_a_single_slot_is_seen(tmp_path):
    found = released((2, 3, 4), timed=False)
    found.low[1:] = found.high[1:] = np.nan
    with picture(tmp_path / "a.png", 1, 1, size=(4, 3)) as (_, axes):
        _draw_cell(axes[0, 0], found, 0, list(found.slots))
        alone = axes[0, 0].collections[1]
        assert [segment.tolist() for segment in alone.get_segments()] == [[[2.0, 15.0], [2.0, 25.0]]]


@pytest.mark.parametrize("draw", [draw_lines, draw_heatmap])
def test_a_label_is_no_formula(tmp_path, draw):
    labels = (r"$\frac$", "$a^{$")
    draw(released(cells=labels), tmp_path / "run.svg")
    assert {*labels} <= {*texts(tmp_path / "run.svg")}
