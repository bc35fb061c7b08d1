"""The targets by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

CORPUS = Path(__file__).parent / "corpus"

MODULES = {
    "json-lines": "json_lines",
    "delimited-lines": "delimited_lines",
    "event-files": "event_files",
    "requirements": "requirement_files",
    "configuration": "configurations",
    "journal": "journal_bytes",
    "state": "state_bytes",
    "event-bodies": "event_bodies",
    "people-bodies": "people_bodies",
    "credentials": "sent_credentials",
    "segment": "segment_bytes",
}


class Target(NamedTuple):
    """What is fuzzed.

    Attributes:
        name: of the target and of its folder in the corpus.
        check: raises if a promise is broken.
        seeds: inputs to begin with.
        words: that inputs are likely to hold.
    """

    name: str
    check: Callable[[bytes], None]
    seeds: tuple[bytes, ...]
    words: tuple[bytes, ...]

    @property
    def kept(self) -> Path:
        """Where its inputs are kept."""
        return CORPUS / self.name


def load(name: str) -> Target:
    """A target; what it tests is imported only now, so that the fuzzer can watch it."""
    module = importlib.import_module(f"tests.fuzz.{MODULES[name]}")
    return Target(name, module.check, module.SEEDS, module.WORDS)
