"""What is worth keeping of a corpus: the smallest inputs that together reach every line and branch that all of it reaches."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any

import wevent
from tests.fuzz.targets import Target

Step = tuple[str, int, int]
_SOURCES = str(Path(wevent.__file__).parent)


def keep(target: Target, found: Path, most_bytes: int) -> int:
    """Write into the kept corpus what it lacks; inputs with names of their own stay. Returns how many there are."""
    target.kept.mkdir(parents=True, exist_ok=True)
    named = [path for path in sorted(target.kept.iterdir()) if not _is_hashed(path)]
    hashed = [path for path in target.kept.iterdir() if _is_hashed(path)]
    inputs = {path.read_bytes() for path in (*hashed, *found.iterdir())} | set(target.seeds)
    reached: set[Step] = set()
    for path in named:
        reached |= steps_of(target.check, path.read_bytes())
    chosen = smallest_cover(target.check, inputs, reached)
    for path in hashed:
        path.unlink()
    room = most_bytes
    for data in chosen:
        if len(data) <= room:
            (target.kept / hashlib.sha256(data).hexdigest()[:16]).write_bytes(data)
            room -= len(data)
    return len(list(target.kept.iterdir()))


def smallest_cover(check: Callable[[bytes], None], inputs: Iterable[bytes], reached: set[Step]) -> list[bytes]:
    """Inputs, smaller ones first, each of which reaches something that those before it do not."""
    chosen = []
    for data in sorted(inputs, key=lambda one: (len(one), one)):
        steps = steps_of(check, data)
        if steps - reached:
            chosen.append(data)
            reached |= steps
    return chosen


def steps_of(check: Callable[[bytes], None], data: bytes) -> set[Step]:
    """Every step from line to line within a function of wevent's that checking an input takes."""
    steps: set[Step] = set()

    def enter(frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(_SOURCES):
            return None
        last = [0]

        def line(frame: FrameType, event: str, argument: Any) -> Any:
            if event == "line":
                steps.add((name, last[0], frame.f_lineno))
                last[0] = frame.f_lineno
            return line

        return line

    before = sys.gettrace()  # that of a debugger, or of who measures coverage
    sys.settrace(enter)
    try:
        check(data)
    finally:
        sys.settrace(before)
    return steps


def _is_hashed(path: Path) -> bool:
    return len(path.name) == 16 and all(sign in "0123456789abcdef" for sign in path.name)
