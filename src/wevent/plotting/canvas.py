"""Figures of matplotlib, without a screen and without touching the settings of the program. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from wevent.file_io import atomic_write
from wevent.plotting.style import GREY, INK

_STYLE: Any = {
    "axes.edgecolor": GREY,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 9,
    "axes.axisbelow": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "font.size": 9,
    "grid.color": "#ececec",
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "lines.solid_capstyle": "round",
    "savefig.facecolor": "white",
    "svg.fonttype": "none",
    "svg.hashsalt": "wevent",
    "text.color": INK,
    "xtick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.color": GREY,
    "ytick.labelcolor": INK,
}
_UNDATED: dict[str, dict[str, Any]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
"""The same picture is the same bytes: no dates and versions in the file."""


@contextmanager
def picture(
    path: Path, rows: int, columns: int, *, size: tuple[float, float], dpi: int = 130, **grid: Any
) -> Iterator[tuple[Any, Any]]:
    """Yield a figure and its axes as a table of rows and columns; write the file when the block ends.

    Args:
        path: the file; its ending is the format.
        rows, columns: of axes.
        size: in inches.
        dpi: dots per inch, for formats that have dots.
        grid: as of `matplotlib.figure.Figure.subplots`.
    """
    with matplotlib.rc_context(_STYLE):
        drawn = Figure(figsize=size, layout="constrained")
        yield drawn, drawn.subplots(rows, columns, squeeze=False, **grid)
        path.parent.mkdir(parents=True, exist_ok=True)
        ending = path.suffix.lower()
        with atomic_write(path) as unfinished:
            drawn.savefig(unfinished, dpi=dpi, format=ending[1:], metadata=_UNDATED.get(ending))
