"""wevent: live histograms of user event streams under personalised w-event differential privacy.

A name is imported when it is first asked for: the command line starts, and can be interrupted, before numpy is loaded.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from wevent.errors import (
    InsufficientBudget,
    InvalidCells,
    InvalidCounts,
    InvalidEvents,
    InvalidInput,
    InvalidJournal,
    InvalidMembership,
    InvalidOption,
    InvalidOutput,
    InvalidPopulation,
    InvalidReports,
    InvalidRequirement,
    InvalidRoster,
    InvalidSettings,
    InvalidState,
    JournalLocked,
    SettingsDiffer,
    StaleJournal,
    StorageFailed,
    UnknownMechanism,
    WeventError,
)

if TYPE_CHECKING:
    from wevent.core.mechanism import Mechanism
    from wevent.core.requirements import Levels, Population, Requirement
    from wevent.core.settings import Options
    from wevent.counting.cells import Cells
    from wevent.counting.counts import Counts
    from wevent.counting.roster import Roster
    from wevent.noise import SecureNoise, SeededNoise
    from wevent.publisher import local_client as local
    from wevent.publisher.catalogue import mechanisms, register
    from wevent.publisher.publisher import Publisher
    from wevent.publisher.release import Release, to_columns

__version__ = "0.1.0"

__all__ = [
    "Cells",
    "Counts",
    "InsufficientBudget",
    "InvalidCells",
    "InvalidCounts",
    "InvalidEvents",
    "InvalidInput",
    "InvalidJournal",
    "InvalidMembership",
    "InvalidOption",
    "InvalidOutput",
    "InvalidPopulation",
    "InvalidReports",
    "InvalidRequirement",
    "InvalidRoster",
    "InvalidSettings",
    "InvalidState",
    "JournalLocked",
    "Levels",
    "Mechanism",
    "Options",
    "Population",
    "Publisher",
    "Release",
    "Requirement",
    "Roster",
    "SecureNoise",
    "SeededNoise",
    "SettingsDiffer",
    "StaleJournal",
    "StorageFailed",
    "UnknownMechanism",
    "WeventError",
    "local",
    "mechanisms",
    "register",
    "to_columns",
]

_HOMES = {
    "core.mechanism": ("Mechanism",),
    "core.requirements": (
        "Levels",
        "Population",
        "Requirement",
    ),
    "core.settings": ("Options",),
    "counting.cells": ("Cells",),
    "counting.counts": ("Counts",),
    "counting.roster": ("Roster",),
    "noise": (
        "SecureNoise",
        "SeededNoise",
    ),
    "publisher.catalogue": (
        "mechanisms",
        "register",
    ),
    "publisher.publisher": ("Publisher",),
    "publisher.release": (
        "Release",
        "to_columns",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "local":
        found: Any = importlib.import_module("wevent.publisher.local_client")
    elif name in _HOME_OF:
        found = getattr(importlib.import_module(f"wevent.{_HOME_OF[name]}"), name)
    else:
        raise AttributeError(f"module 'wevent' has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
