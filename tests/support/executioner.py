"""Who ends a process of a test where the test says: for commands that run with steps that have names."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path


class Executioner:
    """Ends or stops this process at a labelled step.

    Args:
        sentence: the file that says so: `STEP:N`, SIGKILL at the N-th time that this step is reached; `STEP:N:stop`,
            SIGSTOP, once. It may come and go at any time.
    """

    def __init__(self, sentence: Path) -> None:
        self._sentence = sentence
        self._reached = 0
        self._guard = threading.Lock()

    def __call__(self, reached: str) -> None:
        with self._guard:
            try:
                step, number, *kind = self._sentence.read_text().split(":")
            except FileNotFoundError:
                return
            self._reached += reached == step
            if self._reached < int(number):
                return
            if kind:
                self._sentence.unlink()
                self._reached = 0
            os.kill(os.getpid(), signal.SIGSTOP if kind else signal.SIGKILL)
