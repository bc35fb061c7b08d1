"""Releases as one page: opens offline, in light and dark, without scripts too; a table says what the picture shows.

It needs neither matplotlib nor a network, and holds nothing but what was released.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

import numpy as np

from wevent.core.arrays import FloatArray
from wevent.drawing.heat import LADDER, heat_image
from wevent.drawing.looks import look_of
from wevent.drawing.page_parts import SCRIPT, STYLE
from wevent.drawing.released import Released, band_note, facts_of, mechanisms_of
from wevent.drawing.scales import ribbon, round_numbers, round_times, stairs
from wevent.errors import InvalidOption

MOST_VALUES = 100_000
"""On one page: more would make a browser slow."""

_WIDTH, _LEFT, _RIGHT, _TOP, _BOTTOM = 900.0, 60.0, 26.0, 8.0, 26.0
_PANEL = 170.0
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def lines_page(released: Released) -> str:
    """A chart per cell, with its band where there is one.

    Raises:
        InvalidOption: for more than fits on a page.
    """
    charts = [_chart(released, cell) for cell in range(len(released.cells))]
    return _page(released, charts, band_note(released))


def heatmap_page(released: Released) -> str:
    """One chart of all cells, values as colours.

    Raises:
        InvalidOption: for more than fits on a page.
    """
    known = released.values[np.isfinite(released.values)]
    low, high = (known.min(), known.max()) if known.size else (0.0, 0.0)
    ladder = ",".join(LADDER)
    scale = (
        f"<p class='scale'><span>{_number(low)}</span>"
        f"<i style='background:linear-gradient(90deg,{ladder})'></i><span>{_number(high)}</span></p>"
    )
    return _page(released, [scale, _heatmap(released)], "Colour: published value; light is large.")


def _page(released: Released, charts: Sequence[str], note: str) -> str:
    if released.values.size > MOST_VALUES:
        raise InvalidOption(
            f"at most {MOST_VALUES:,} values on a page",
            f"{len(released.slots):,} slots × {len(released.cells):,} cells",
            "Choose some with --from, --to and --cells, or draw a picture with --out.",
            option="html",
        )
    colours = "".join(
        f".m{number}{{--own:{look_of(name).colour}}}" for number, name in enumerate(mechanisms_of(released))
    )
    title = f"Releases of {released.name}"
    return "\n".join(
        [
            "<!doctype html>",
            f'<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<style>{STYLE}{colours}</style></head><body>",
            f"<h1>{html.escape(title)}</h1>",
            f"<p>{html.escape(facts_of(released))} {html.escape(note)} Ticks at the bottom: slots that were measured "
            "(fresh). Only what was released is on this page.</p>",
            '<p id="said" role="status" aria-live="polite">&nbsp;</p>',
            *charts,
            _table(released),
            f"<script>{SCRIPT}</script></body></html>\n",
        ]
    )


def _chart(released: Released, cell: int) -> str:
    """The SVG of one cell."""
    low, high, values = released.low[:, cell], released.high[:, cell], released.values[:, cell]
    ends = np.concatenate([low, high, values])
    known = ends[np.isfinite(ends)]
    bottom, top = (min(0.0, known.min()), known.max()) if known.size else (0.0, 1.0)
    top = top if top > bottom else bottom + 1.0
    floor = _PANEL - _BOTTOM

    def height(table: FloatArray) -> list[float]:
        return [floor - (value - bottom) / (top - bottom) * (floor - _TOP) for value in table.tolist()]

    across = _across(released)
    parts = []
    for value in round_numbers(float(bottom), float(top)):
        at = height(np.array([value]))[0]
        parts.append(f'<path class="grid" d="M{_LEFT:g} {at:.1f}H{_WIDTH - _RIGHT:g}"/>')
        parts.append(f'<text class="left" x="{_LEFT - 6:g}" y="{at + 4:.1f}">{_number(value)}</text>')
    parts += _time_marks(released, floor)
    for number, mechanism in enumerate(mechanisms_of(released)):
        own = np.array([name == mechanism for name in released.mechanisms])
        below, above, line = (height(np.where(own, table, np.nan)) for table in (low, high, values))
        parts.append(f'<path class="band m{number}" d="{ribbon(across, below, above)}"/>')
        parts.append(f'<path class="line m{number}" d="{stairs(across, line)}"/>')
    parts.append(_fresh_marks(released, across, floor))
    label = f"{released.cells[cell]}: {_spoken_range(values)}"
    return (
        f"<figure><figcaption>{html.escape(released.cells[cell])}</figcaption>"
        f'<svg viewBox="0 0 {_WIDTH:g} {_PANEL:g}" role="img" tabindex="0" data-cell="{cell}" '
        f'{_edges(_LEFT, floor)} aria-label="{html.escape(label)}">{"".join(parts)}<path class="cursor" d=""/></svg></figure>'
    )


def _heatmap(released: Released) -> str:
    number = len(released.cells)
    row = min(22.0, max(6.0, 560.0 / number))
    left, floor = 130.0, _TOP + row * number
    across = _across(released, left)
    parts = [
        f'<rect class="none" x="{left:g}" y="{_TOP:g}" width="{across[-1] - left:.1f}" height="{row * number:.1f}"/>'
        f'<image href="{heat_image(released.values.T)}" x="{left:g}" y="{_TOP:g}" width="{across[-1] - left:.1f}" '
        f'height="{row * number:.1f}" preserveAspectRatio="none"/>'
    ]
    every = math.ceil(11.0 / row)
    for place in range(0, number, every):
        at = _TOP + row * (place + 0.5) + 4
        label = released.cells[place]
        shown = label if len(label) <= 18 else label[:17] + "…"
        parts.append(f'<text class="left" x="{left - 6:g}" y="{at:.1f}">{html.escape(shown)}</text>')
    parts += _time_marks(released, floor, left, grid=False)
    parts.append(_fresh_marks(released, across, floor))
    label = f"{number} cells: {_spoken_range(released.values)}"
    return (
        f'<figure><svg class="heat" viewBox="0 0 {_WIDTH:g} {floor + _BOTTOM:.1f}" role="img" tabindex="0" '
        f'data-row="{row:.3f}" {_edges(left, floor)} aria-label="{html.escape(label)}">'
        f'{"".join(parts)}<path class="cursor" d=""/></svg></figure>'
    )


def _across(released: Released, left: float = _LEFT) -> list[float]:
    """Where slots begin, and where the last one ends: slots are equally wide."""
    first, last = released.slots[0], released.slots[-1] + 1
    width = _WIDTH - _RIGHT - left
    return [left + (slot - first) / (last - first) * width for slot in [*released.slots, last]]


def _time_marks(released: Released, floor: float, left: float = _LEFT, *, grid: bool = True) -> list[str]:
    """Times, or numbers of slots, below the chart."""
    width = _WIDTH - _RIGHT - left
    marks: list[tuple[float, str]] = []
    if released.starts is not None and released.ends is not None:
        begin, end = released.starts[0], released.ends[-1]
        marks = [((time - begin) / (end - begin), text) for time, text in round_times(begin, end)]
    else:
        first, last = released.slots[0], released.slots[-1] + 1
        marks = [((slot - first) / (last - first), f"{slot:,.0f}") for slot in round_numbers(first, last, 9)]
    line = f" {_TOP:g}V{floor:g}" if grid else f" {floor:g}v3"
    return [
        f'<path class="grid" d="M{left + share * width:.1f}{line}"/>'
        f'<text class="below" x="{left + share * width:.1f}" y="{floor + 18:.1f}">{text}</text>'
        for share, text in marks
    ]


def _edges(left: float, floor: float) -> str:
    """Where the chart is within its picture, for the script."""
    return f'data-left="{left:g}" data-right="{_WIDTH - _RIGHT:g}" data-top="{_TOP:g}" data-floor="{floor:.1f}"'


def _fresh_marks(released: Released, across: Sequence[float], floor: float) -> str:
    ticks = "".join(f"M{across[place]:.1f} {floor:g}v5" for place in released.fresh)
    return f'<path class="fresh" d="{ticks}"/>'


def _table(released: Released) -> str:
    """Every number of the picture: a row per slot."""
    heads = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in released.cells)
    rows = []
    for place, slot in enumerate(released.slots):
        start = "" if released.starts is None else f"{released.starts[place]:%Y-%m-%d %H:%M}"
        cells = "".join(f"<td>{_entry(released, place, cell)}</td>" for cell in range(len(released.cells)))
        rows.append(
            f'<tr><th scope="row">{slot}</th><td>{start}</td><td>{html.escape(released.outcomes[place])}</td>{cells}</tr>'
        )
    return (
        "<details><summary>All numbers as a table</summary><div class='wide'><table>"
        "<caption>Published value and, where one is known, the 95 % interval of each cell in each slot</caption>"
        f'<thead><tr><th scope="col">slot</th><th scope="col">start (UTC)</th><th scope="col">outcome</th>{heads}</tr>'
        f"</thead><tbody>{''.join(rows)}</tbody></table></div></details>"
    )


def _entry(released: Released, place: int, cell: int) -> str:
    value = released.values[place, cell]
    if not math.isfinite(value):
        return "–"
    low, high = released.low[place, cell], released.high[place, cell]
    return _number(value) + (f" ({_number(low)} to {_number(high)})" if math.isfinite(low) else "")


def _spoken_range(values: FloatArray) -> str:
    known = values[np.isfinite(values)]
    return f"between {_number(known.min())} and {_number(known.max())}" if known.size else "nothing published yet"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 or value == round(value) else f"{value:.3g}"
