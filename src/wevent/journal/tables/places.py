"""Bytes of an open file, read and overwritten in place."""

from __future__ import annotations

import os


def read_at(file: int, number: int, place: int) -> bytes:
    """So many bytes from a place on, fewer at the end of the file."""
    os.lseek(file, place, os.SEEK_SET)
    parts = []
    while number > 0 and (part := os.read(file, number)):
        parts.append(part)
        number -= len(part)
    return b"".join(parts)


def write_at(file: int, data: bytes, place: int) -> None:
    """Overwrite bytes in place, all of them."""
    os.lseek(file, place, os.SEEK_SET)
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]
