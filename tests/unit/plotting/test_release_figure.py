"""Pictures of releases."""

import re

import numpy as np
import pytest

from tests.unit.plotting.test_release_data import released
from wevent.plotting.canvas import picture
from wevent.plotting.release_figure import _draw_cell, draw_heatmap, draw_lines

pytestmark = pytest.mark.slow


def texts(path):
    return re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("slots", [(1, 2, 3, 4), (2,), (2, 900)])
def test_every_cell_has_a_panel_and_no_label_is_a_formula(tmp_path, timed, slots):
    cells = (*"abc", r"$\frac$", "$a^{$")
    draw_lines(released(slots, cells, timed=timed), tmp_path / "a.svg")
    assert set(cells) <= set(texts(tmp_path / "a.svg"))


def test_many_cells_are_a_heatmap(tmp_path):
    cells = tuple(f"cell ${number}$" for number in range(100))
    draw_heatmap(released(cells=cells), tmp_path / "a.svg")
    found = texts(tmp_path / "a.svg")
    assert "Published: 100 cells" in found
    assert 10 < len(set(cells) & set(found)) <= 36


def test_a_band_a_line_and_ticks_where_it_was_measured(tmp_path):
    found = released((2, 3, 4), timed=False)
    found.low[1] = found.high[1] = np.nan  # intervals of single slots are seen too
    with picture(tmp_path / "a.png", 1, 1, size=(4, 3)) as (_, axes):
        _draw_cell(axes[0, 0], found, 0)
        band, line = axes[0, 0].patches
        assert band.get_data().values[[0, 2]].tolist() == [25.0, 45.0]
        assert band.get_data().baseline[[0, 2]].tolist() == [15.0, 35.0]
        assert band.get_path().get_extents().bounds == (2.0, 15.0, 3.0, 30.0)
        assert line.get_data().values.tolist() == [20.0, 30.0, 40.0]
        assert line.get_data().edges.tolist() == [2, 3, 4, 5]  # the last slot has a width too
        (ticks,) = axes[0, 0].collections
        assert len(ticks.get_segments()) == 2
