"""What is noted outside a journal about its last slot, read by code of its own (spec 10).

A journal whose end was cut off consistently, or that is an old copy of itself, looks whole from the inside. Its side file, or
those in the side folder of a database, knows better: each begins with 4,096 bytes of JSON, as documented
(docs/reference/journal-format.md).
"""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import NamedTuple

from wevent.journal.place import PostgresPlace

_TEXT = 4096
_LOOKS = 5  # at a text that is being written, or a file that is being removed
_PAUSE_S = 0.02


class Noted(NamedTuple):
    """What one side file says: the id of a journal, the last slot it committed, and the hash chain's link there."""

    journal: str
    committed: int
    link: str


class OutsideMarks(NamedTuple):
    """What was seen outside.

    Attributes:
        place: where it was looked for.
        noted: what side files say, the newest last.
        unseen: why nothing can be told; None if something can.
    """

    place: str
    noted: list[Noted]
    unseen: str | None

    def of(self, journal: str) -> Noted | None:
        """The latest slot of a journal; None if nothing is noted of it."""
        own = [one for one in self.noted if one.journal == journal]
        return max(own, key=lambda one: one.committed, default=None)

    @property
    def newest(self) -> Noted | None:
        """What the newest side file says."""
        return self.noted[-1] if self.noted else None


def look_outside(place: Path | PostgresPlace) -> OutsideMarks:
    """What is noted outside now. Whoever compares it with the journal reads the journal afterwards: that may go on."""
    for _ in range(_LOOKS):
        seen = _look(place)
        if seen.unseen is None:
            break
        time.sleep(_PAUSE_S)
    return seen


def _look(place: Path | PostgresPlace) -> OutsideMarks:
    if isinstance(place, PostgresPlace):
        if place.side is None:
            return OutsideMarks("", [], "the address names no side folder")
        where = str(place.side)
        try:
            files = _of_fences(place.side, place.schema)
        except OSError as error:
            return OutsideMarks(where, [], f"{where}: {error.strerror or 'an error'}")
        missing = f"no side file in {where}"
    else:
        where = f"{os.path.realpath(place) if place.is_symlink() else place}.lock"  # that of what a link leads to
        files, missing = [Path(where)], f"no side file {where}"
    try:
        noted = [_read(path) for path in files]
    except FileNotFoundError:
        return OutsideMarks(where, [], missing)
    except (OSError, ValueError, TypeError, AttributeError, ArithmeticError, RecursionError):
        return OutsideMarks(where, [], f"{where} cannot be read")
    said = [one for one in noted if one.journal]
    return OutsideMarks(where, said, None if said else missing if not files else f"{where} says nothing of a journal")


def _of_fences(folder: Path, schema: str) -> list[Path]:
    """The side files of a journal in a database, that of the largest fencing number last."""
    names = ((re.fullmatch(rf"{re.escape(schema)}\.([0-9]+)\.side", name), name) for name in os.listdir(folder))
    return [folder / name for _, name in sorted((int(match[1]), name) for match, name in names if match)]


def _read(path: Path) -> Noted:
    with path.open("rb") as file:
        text = file.read(_TEXT).strip(b" \0")
    said = json.loads(text)
    return Noted(str(said.get("journal", "")), int(said.get("committed", 0)), str(said.get("link", "")))
