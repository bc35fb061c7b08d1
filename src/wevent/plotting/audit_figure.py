"""A picture of an audit: the loss that was shown beside every guarantee."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from wevent.plotting.annotations import heading
from wevent.plotting.canvas import picture
from wevent.plotting.style import GREY, INK, LOSS

_MOST = 2.0  # guarantees: a larger loss is drawn as that


class ShownLoss(NamedTuple):
    """One row: the audit, the promised and the shown loss."""

    label: str
    promised: float
    shown: float
    broken: bool


def draw_audit(title: str, facts: str, rows: Sequence[ShownLoss], path: Path) -> None:
    """Draw a bar for every guarantee, as long as the loss that was shown; no bar may cross the line of the guarantee."""
    with picture(path, 1, 1, size=(8.5, 1.6 + 0.32 * len(rows))) as (drawn, axes):
        axis = axes[0, 0]
        heading(
            drawn,
            title,
            facts,
            "Bar: the largest loss that was shown, as a part of the promised ε. Line: the guarantee.",
        )
        for place, row in enumerate(reversed(rows)):
            part = row.shown / row.promised if math.isfinite(row.shown) else math.inf
            axis.barh(place, min(part, _MOST), height=0.55, color=LOSS if row.broken else GREY)
            said = f"{row.shown:.3g} of {row.promised:.3g}" if math.isfinite(row.shown) else f"∞ of {row.promised:.3g}"
            axis.annotate(  # beside the axis: at the end of its bar it would lie on the line, or on the next bar
                said,
                xy=(1.0, place),
                xytext=(6, 0),
                xycoords=axis.get_yaxis_transform(),
                textcoords="offset points",
                va="center",
                fontsize=8.5,
                annotation_clip=False,
            )
        axis.axvline(1.0, color=INK, linewidth=1.2)
        axis.set_yticks(range(len(rows)), [row.label for row in reversed(rows)])
        axis.set_xlim(0.0, max([1.1, *(min(row.shown / row.promised, _MOST) * 1.02 for row in rows)]))
        axis.xaxis.set_major_formatter(lambda part, _: f"{part:.0%}")
        axis.grid(axis="y", visible=False)
