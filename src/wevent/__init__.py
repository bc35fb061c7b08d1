"""wevent: live histograms of user event streams under personalised w-event differential privacy.

Commands are functions here: `publish`, `compare`, `plan`, `verify_journal`, `audit_mechanism`. `open_journal` reads.
A name is imported when it is first asked for: the command line starts, and can be interrupted, before numpy is loaded.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from wevent.errors import (
    BatchConflict,
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
    ServiceRefused,
    ServiceStopping,
    ServiceUnreachable,
    SettingsDiffer,
    StaleJournal,
    StorageFailed,
    UnknownMechanism,
    WeventError,
)

if TYPE_CHECKING:
    from wevent.auditing.mechanism_audit import audit_mechanism
    from wevent.core.estimators import Sampling, Weighting
    from wevent.core.mechanism import (
        ErrorModel,
        Estimate,
        Estimator,
        History,
        Measurement,
        Mechanism,
        NoiseSource,
        NoOffer,
        Plan,
        Planner,
        Policy,
        PolicyInput,
        Smoother,
    )
    from wevent.core.options import Options
    from wevent.core.permit import NoisePermit, Permit, ResponsePermit, SamplingPermit, redeem
    from wevent.core.pft.filter import Filter
    from wevent.core.postprocess import LastValue
    from wevent.core.requirements import Levels, Population, Requirement
    from wevent.counting.labels import Cells
    from wevent.counting.roster import Counts, Roster
    from wevent.experiments import compare, plan
    from wevent.journal import open_journal
    from wevent.noise import SecureNoise, SeededNoise
    from wevent.outputs.release_table import ReleaseTable, read_releases
    from wevent.publisher import local_model as local
    from wevent.publisher.catalogue import mechanisms, register
    from wevent.publisher.publisher import Publisher
    from wevent.publisher.release import Release, to_columns
    from wevent.publishing.session import RunReport, publish
    from wevent.settings import RunOptions
    from wevent.verification import verify_journal

__version__ = "0.1.0"

__all__ = [
    "BatchConflict",
    "Cells",
    "Counts",
    "ErrorModel",
    "Estimate",
    "Estimator",
    "Filter",
    "History",
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
    "LastValue",
    "Levels",
    "Measurement",
    "Mechanism",
    "NoOffer",
    "NoisePermit",
    "NoiseSource",
    "Options",
    "Permit",
    "Plan",
    "Planner",
    "Policy",
    "PolicyInput",
    "Population",
    "Publisher",
    "Release",
    "ReleaseTable",
    "Requirement",
    "ResponsePermit",
    "Roster",
    "RunOptions",
    "RunReport",
    "Sampling",
    "SamplingPermit",
    "SecureNoise",
    "SeededNoise",
    "ServiceRefused",
    "ServiceStopping",
    "ServiceUnreachable",
    "SettingsDiffer",
    "Smoother",
    "StaleJournal",
    "StorageFailed",
    "UnknownMechanism",
    "Weighting",
    "WeventError",
    "audit_mechanism",
    "compare",
    "local",
    "mechanisms",
    "open_journal",
    "plan",
    "publish",
    "read_releases",
    "redeem",
    "register",
    "to_columns",
    "verify_journal",
]

_HOMES = {
    "wevent.verification": ("verify_journal",),
    "wevent.auditing.mechanism_audit": ("audit_mechanism",),
    "wevent.core.estimators": ("Sampling", "Weighting"),
    "wevent.core.mechanism": (
        "PolicyInput",
        "Estimate",
        "Estimator",
        "History",
        "NoOffer",
        "Measurement",
        "Mechanism",
        "ErrorModel",
        "NoiseSource",
        "Plan",
        "Planner",
        "Policy",
        "Smoother",
    ),
    "wevent.core.permit": ("NoisePermit", "Permit", "ResponsePermit", "SamplingPermit", "redeem"),
    "wevent.core.requirements": ("Levels", "Population", "Requirement"),
    "wevent.core.options": ("Options",),
    "wevent.core.pft.filter": ("Filter",),
    "wevent.core.postprocess": ("LastValue",),
    "wevent.counting.labels": ("Cells",),
    "wevent.counting.roster": ("Counts", "Roster"),
    "wevent.experiments": ("compare", "plan"),
    "wevent.journal": ("open_journal",),
    "wevent.noise": ("SecureNoise", "SeededNoise"),
    "wevent.outputs.release_table": ("ReleaseTable", "read_releases"),
    "wevent.publisher": ("local",),
    "wevent.publisher.catalogue": ("mechanisms", "register"),
    "wevent.publisher.publisher": ("Publisher",),
    "wevent.publisher.release": ("Release", "to_columns"),
    "wevent.settings": ("RunOptions",),
    "wevent.publishing.session": ("RunReport", "publish"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'wevent' has no attribute {name!r}")
    if name == "local":
        found: Any = importlib.import_module("wevent.publisher.local_model")
    else:
        found = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return list(__all__)
