"""wevent: live histograms of user event streams under personalised w-event differential privacy.

The verbs of the command line are functions here: `publish`, `audit`, `compare`, `plan`; `open_journal` reads one.
"""

import importlib
from typing import TYPE_CHECKING, Any

from wevent.core.estimators.sampling import Sampling
from wevent.core.estimators.weighting import Weighting
from wevent.core.mechanism import (
    Budgets,
    Estimate,
    Estimator,
    History,
    Idle,
    Measurement,
    Mechanism,
    NoiseError,
    NoiseSource,
    Outlook,
    Plan,
    Planner,
    Policy,
    Smoother,
)
from wevent.core.permit import NoisePermit, Permit, ResponsePermit, SamplingPermit, redeem
from wevent.core.requirements import Levels, Population, Requirement
from wevent.core.settings import Options
from wevent.core.smoothers.filter import Filter
from wevent.core.smoothers.hold import Hold
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

if TYPE_CHECKING:
    from wevent.auditing import audit_journal as audit
    from wevent.experiments import compare, plan
    from wevent.journal import open_journal
    from wevent.publishing.session import Intent, publish

__version__ = "0.1.0"

_ON_DEMAND = {  # `import wevent` stays quick: what needs databases or simulation is loaded when it is first used
    "Intent": "wevent.publishing.session",
    "audit": "wevent.auditing",
    "compare": "wevent.experiments",
    "open_journal": "wevent.journal",
    "plan": "wevent.experiments",
    "publish": "wevent.publishing.session",
}
_OTHER_NAMES = {"audit": "audit_journal"}


def __getattr__(name: str) -> Any:
    """A public name that is loaded on demand."""
    if name not in _ON_DEMAND:
        raise AttributeError(f"module 'wevent' has no attribute {name!r}")
    return getattr(importlib.import_module(_ON_DEMAND[name]), _OTHER_NAMES.get(name, name))


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "Budgets",
    "Cells",
    "Counts",
    "Estimate",
    "Estimator",
    "Filter",
    "History",
    "Hold",
    "Idle",
    "InsufficientBudget",
    "Intent",
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
    "Measurement",
    "Mechanism",
    "NoiseError",
    "NoisePermit",
    "NoiseSource",
    "Options",
    "Outlook",
    "Permit",
    "Plan",
    "Planner",
    "Policy",
    "Population",
    "Publisher",
    "Release",
    "Requirement",
    "ResponsePermit",
    "Roster",
    "Sampling",
    "SamplingPermit",
    "SecureNoise",
    "SeededNoise",
    "SettingsDiffer",
    "Smoother",
    "StaleJournal",
    "StorageFailed",
    "UnknownMechanism",
    "Weighting",
    "WeventError",
    "audit",
    "compare",
    "local",
    "mechanisms",
    "open_journal",
    "plan",
    "publish",
    "redeem",
    "register",
    "to_columns",
]
