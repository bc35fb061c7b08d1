"""How a mechanism looks, the same in every picture.

A personalised mechanism and its ancestor with one budget for all share a hue: the first dark, solid and filled, the second
light, dashed and hollow. The ten colours differ for people with any kind of colour blindness too (tested), and the marker
says it once more.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

INK = "#222222"
GREY = "#8a8a8a"
PALE = "#d4d4d4"
GAIN, LOSS = "#0071D0", "#C7610D"  # less error, more error


class Look(NamedTuple):
    """A colour, a marker in matplotlib's letters, a line style, and whether the marker is filled."""

    colour: str
    marker: str
    line: str = "-"
    filled: bool = True


LOOKS = {
    "pft": Look("#C7610D", "o"),
    "pba": Look("#0071D0", "s"),
    "ba": Look("#9CBBFF", "s", "--", False),
    "pbd": Look("#305346", "^"),
    "bd": Look("#2AD3A2", "^", "--", False),
    "pbu": Look("#612E7B", "D"),
    "uniform": Look("#C469A6", "D", "--", False),
    "sample": Look("#E1B500", "v", "--"),
    "plbu": Look("#6C350C", "P"),
    "lbu": Look("#998455", "P", "--", False),
}
"""The built-in mechanisms."""

_OTHERS = ("#A3123F", "#6E8B00", "#00909E", "#7D7DE0", "#555555", "#E0607E", "#3B6FA0")
_OTHER_MARKERS = "X*hp<>d8"


def look_of(label: str) -> Look:
    """How the mechanism of this label looks; a word after a colon (`bd:std`) only makes its line dotted.

    A registered mechanism gets its look from its name, so that it too is the same everywhere.

    >>> look_of("pba") == look_of("pba"), look_of("ba:std").colour == look_of("ba").colour
    (True, True)
    """
    name, colon, _ = label.partition(":")
    number = zlib.crc32(name.encode())
    other = Look(_OTHERS[number % len(_OTHERS)], _OTHER_MARKERS[number // len(_OTHERS) % len(_OTHER_MARKERS)])
    look = LOOKS.get(name, other)
    return look._replace(line=":") if colon else look


def readable(colour: str) -> str:
    """The colour, darkened as far as text in it can be read on white (contrast 4.5 to 1).

    >>> readable("#9CBBFF") < "#9CBBFF", readable("#305346")
    (True, '#305346')
    """
    parts = [int(colour[place : place + 2], 16) for place in (1, 3, 5)]
    while 1.05 / (_luminance(parts) + 0.05) < 4.5:
        parts = [int(part * 0.95) for part in parts]
    return "#" + "".join(f"{part:02X}" for part in parts)


def _luminance(parts: list[int]) -> float:
    """As WCAG 2 defines it."""
    shares = [part / 255 for part in parts]
    linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
