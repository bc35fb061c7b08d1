"""What commands print with `--json`: one class per command, from which screen, JSON and its schema are made.

Everything that the screen says is in here; `docs/reference/json.md` is made from these classes. Numbers that are not known
are null. A field that is added is no new format; one that goes or changes its meaning is, and in the changelog.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from wevent.cli.answers.answer import Answer, ClassOfUsers, as_json
from wevent.cli.answers.audits import AuditAnswer, ShownAnswer
from wevent.cli.answers.credentials import NewTokenAnswer, PersonalLinkAnswer, TokenAnswer, TokensAnswer
from wevent.cli.answers.journals import (
    BackupAnswer,
    ClassBudget,
    PlotAnswer,
    PrivateTotals,
    PublishAnswer,
    RestoreAnswer,
    SlotsElsewhere,
    StatusAnswer,
    VerifyAnswer,
    Violation,
    WindowSpend,
    WriterAnswer,
)
from wevent.cli.answers.people import (
    ChangeAnswer,
    ConsequencesAnswer,
    LevelAnswer,
    LevelsAnswer,
    MemberAnswer,
    RegistryDifference,
    RequirementAnswer,
    UsersAnswer,
)
from wevent.cli.answers.rehearsals import (
    CheckAnswer,
    CheckedClass,
    CheckedClock,
    CheckedError,
    CheckedInput,
    CheckedMatching,
    CheckedNotCounted,
    CheckedPeople,
    CheckedReason,
    CheckOfMachine,
    DoctorAnswer,
    InitAnswer,
    MechanismsAnswer,
)
from wevent.cli.answers.simulations import (
    ClaimAnswer,
    CompareAnswer,
    ComparedRow,
    ExpectedRow,
    MoveAnswer,
    PlanAnswer,
    PlannedLevel,
    ReproduceAnswer,
)

__all__ = [
    "ANSWERS",
    "Answer",
    "AuditAnswer",
    "BackupAnswer",
    "ChangeAnswer",
    "CheckAnswer",
    "CheckOfMachine",
    "CheckedClass",
    "CheckedClock",
    "CheckedError",
    "CheckedInput",
    "CheckedMatching",
    "CheckedNotCounted",
    "CheckedPeople",
    "CheckedReason",
    "ClaimAnswer",
    "ClassBudget",
    "ClassOfUsers",
    "CompareAnswer",
    "ComparedRow",
    "ConsequencesAnswer",
    "DoctorAnswer",
    "ExpectedRow",
    "InitAnswer",
    "LevelAnswer",
    "LevelsAnswer",
    "MechanismsAnswer",
    "MemberAnswer",
    "MoveAnswer",
    "NewTokenAnswer",
    "PersonalLinkAnswer",
    "PlanAnswer",
    "PlannedLevel",
    "PlotAnswer",
    "PrivateTotals",
    "PublishAnswer",
    "RegistryDifference",
    "ReproduceAnswer",
    "RequirementAnswer",
    "RestoreAnswer",
    "ShownAnswer",
    "SlotsElsewhere",
    "StatusAnswer",
    "TokenAnswer",
    "TokensAnswer",
    "UsersAnswer",
    "VerifyAnswer",
    "Violation",
    "WindowSpend",
    "WriterAnswer",
    "as_json",
]

ANSWERS: Mapping[str, type[Answer]] = MappingProxyType(
    {
        "verify": VerifyAnswer,
        "backup": BackupAnswer,
        "audit": AuditAnswer,
        "check": CheckAnswer,
        "compare": CompareAnswer,
        "demo": CompareAnswer,
        "doctor": DoctorAnswer,
        "init": InitAnswer,
        "levels": LevelsAnswer,
        "mechanisms": MechanismsAnswer,
        "plan": PlanAnswer,
        "plot": PlotAnswer,
        "publish": PublishAnswer,
        "reproduce": ReproduceAnswer,
        "restore": RestoreAnswer,
        "status": StatusAnswer,
        "token create": NewTokenAnswer,
        "token link": PersonalLinkAnswer,
        "token list": TokensAnswer,
        "token revoke": TokenAnswer,
        "users list": UsersAnswer,
        "users add|set|remove|erase|import": ChangeAnswer,
    }
)
"""Every command that has `--json`, and what it answers."""
