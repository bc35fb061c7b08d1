"""`wevent` on a machine whose wall clock is wrong: the same command; only the wall clock of its process is shifted.

The right time is a fixed time after boot: jumps of this machine's own wall clock (a virtual machine that is paused) show
nowhere. Told by the environment:

WEVENT_RIGHT_NS     the right time when the machine was booted, in nanoseconds since 1970.
WEVENT_SHIFT        a file: how many seconds the wall clock is ahead of it now.
WEVENT_STABLE_S     for how long a wall clock that has jumped must stay there, instead of a minute.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from wevent.cli import main
from wevent.settings.values import SECOND_US

SHIFTED = "tests.service.shifted_serving"
"""This module, as what runs a command."""


def boot_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Shift:
    """How wrong the wall clock of a process is, in whole seconds."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "shift"
        self._right_ns = time.time_ns() - boot_ns()
        self.set(0)
        self.environment = {"WEVENT_SHIFT": str(self._file), "WEVENT_RIGHT_NS": str(self._right_ns)}

    def set(self, seconds: int) -> None:
        draft = self._file.with_suffix(".draft")
        draft.write_text(str(seconds))
        draft.replace(self._file)

    def right_s(self) -> float:
        """The right time."""
        return (boot_ns() + self._right_ns) / 1e9


def shift(right_ns: int, file: Path) -> None:
    time.time_ns = lambda: boot_ns() + right_ns + int(file.read_text()) * 10**9
    time.time = lambda: time.time_ns() / 1e9


if __name__ == "__main__":
    shift(int(os.environ["WEVENT_RIGHT_NS"]), Path(os.environ["WEVENT_SHIFT"]))
    if "WEVENT_STABLE_S" in os.environ:
        from wevent.streams import clock as steady_clock

        steady_clock.STABLE_US = int(os.environ["WEVENT_STABLE_S"]) * SECOND_US
    main(sys.argv[1:])
