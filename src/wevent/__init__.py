"""wevent: live histograms of user event streams under personalised w-event differential privacy."""

from wevent.core.mechanism import Mechanism
from wevent.core.requirements import Levels, Population, Requirement
from wevent.core.settings import Options
from wevent.counting.cells import Cells
from wevent.counting.counts import Counts
from wevent.counting.roster import Roster
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
