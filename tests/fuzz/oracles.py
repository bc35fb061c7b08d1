"""What every parser owes: one sentence of its own for what it refuses, with nobody's data in it."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from wevent.errors import WeventError

Taken = TypeVar("Taken")

MARKER = "Zq7Marker"
"""Stands in inputs where somebody's data stands: no message may have it."""


def taken(read: Callable[[], Taken], *private: str) -> Taken | None:
    """What was read; None if it was refused as it should be. What is done with it afterwards may refuse nothing."""
    with refusals(*private):
        return read()
    return None


@contextmanager
def refusals(*private: str) -> Iterator[list[WeventError]]:
    """Lets wevent's own errors through into a list, and checks what they say; every other error is a finding.

    Args:
        *private: what no message may repeat.
    """
    refused: list[WeventError] = []
    try:
        yield refused
    except WeventError as error:
        check_sentence(str(error), *private)
        refused.append(error)


def check_sentence(said: str, *private: str) -> None:
    """Check a message: one line that can be printed anywhere, without private text."""
    assert said.isprintable(), "a message that a terminal would not show as one line"
    for text in private:
        assert text not in said, "a message repeats what somebody sent"


def own_folder() -> Path:
    """A folder that is gone when the process ends, in memory where there is room."""
    folder = Path(tempfile.mkdtemp(prefix="wevent-fuzz"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def _folder(process: int) -> Path:
    return own_folder()


def empty_folder() -> Path:
    """One and the same folder in a process; empty."""
    folder = _folder(os.getpid())
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder
