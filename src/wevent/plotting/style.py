"""The look of each mechanism, the same in every picture.

A personalised mechanism and its ancestor with one budget for all share a hue: the first dark, solid and filled, the second
light, dashed and hollow. The ten colours differ with every kind of colour blindness too (tested), and so do the markers.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

INK = "#222222"
GREY = "#8a8a8a"
SOFT = "#666666"  # of text
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
    """Return the look of a mechanism; a word after a colon (`bd:std`) only makes its line dotted.

    A registered mechanism gets its look from its name.

    >>> look_of("pba") == look_of("pba"), look_of("ba:std").colour == look_of("ba").colour
    (True, True)
    """
    name, colon, _ = label.partition(":")
    number = zlib.crc32(name.encode())
    other = Look(_OTHERS[number % len(_OTHERS)], _OTHER_MARKERS[number // len(_OTHERS) % len(_OTHER_MARKERS)])
    look = LOOKS.get(name, other)
    return look._replace(line=":") if colon else look
