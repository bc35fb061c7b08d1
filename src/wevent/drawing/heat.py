"""Values as colours: from dark blue over grey to yellow, lighter the larger, also for people with colour blindness."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
import numpy.typing as npt

from wevent.core.arrays import FloatArray

LADDER = ("#00224e", "#123570", "#3b496c", "#575d6d", "#707173", "#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838")
"""The colours of cividis (Nuñez, Anderton and Renslow 2018) at even steps."""


def heat_image(values: FloatArray) -> str:
    """One pixel per value, rows as given, as the address of a PNG that a page can hold.

    Args:
        values: rows × columns; NaN for what was not published.
    """
    return "data:image/png;base64," + base64.b64encode(_png(heat_colours(values))).decode("ascii")


def heat_colours(values: FloatArray) -> npt.NDArray[np.uint8]:
    """Red, green, blue and opacity per value, from the smallest to the largest; nothing at all for NaN."""
    steps = np.array([_parts(colour) for colour in LADDER], dtype=np.float64)
    known = np.isfinite(values)
    low, high = (float(values[known].min()), float(values[known].max())) if known.any() else (0.0, 1.0)
    shares = np.where(known, (np.nan_to_num(values) - low) / (high - low or 1.0), 0.0)
    along = np.arange(len(LADDER)) / (len(LADDER) - 1)
    colours = np.stack([*(np.interp(shares, along, steps[:, part]) for part in range(3)), 255.0 * known], axis=-1)
    return colours.round().astype(np.uint8)


def _parts(colour: str) -> list[int]:
    return [int(colour[place : place + 2], 16) for place in (1, 3, 5)]


def _png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """The smallest PNG that holds these pixels: a header, the compressed rows, an end."""
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    chunks = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)
