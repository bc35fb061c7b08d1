"""What the calls of the API answer: one class each, from which the JSON and the OpenAPI document are made.

Numbers here are public. What is not known is null. Fields may be added; one that goes is in the changelog.
"""

from __future__ import annotations

import msgspec

from wevent.service.replies.operator_replies import (
    HealthReply,
    OverviewReply,
    ReadyReply,
)
from wevent.service.replies.person_replies import (
    WAYS,
    ChosenReply,
    EarlierRow,
    ExportReply,
    HeldRequirement,
    ImportReply,
    LeftReply,
    LevelBody,
    LinkReply,
    MembershipRow,
    QueuedRow,
    RequirementBody,
    RequirementReply,
)
from wevent.service.replies.stream_replies import (
    AboutReply,
    BatchReply,
    ClassOfPeople,
    LedgerReply,
    LedgerRow,
    LevelsReply,
    OfferedLevel,
    ReleaseObject,
    ReleasesReply,
)

__all__ = [
    "REPLIES",
    "WAYS",
    "AboutReply",
    "BatchReply",
    "ChosenReply",
    "ClassOfPeople",
    "EarlierRow",
    "ExportReply",
    "HealthReply",
    "HeldRequirement",
    "ImportReply",
    "LedgerReply",
    "LedgerRow",
    "LeftReply",
    "LevelBody",
    "LevelsReply",
    "LinkReply",
    "MembershipRow",
    "OfferedLevel",
    "OverviewReply",
    "QueuedRow",
    "ReadyReply",
    "ReleaseObject",
    "ReleasesReply",
    "RequirementBody",
    "RequirementReply",
]

REPLIES: tuple[type[msgspec.Struct], ...] = (
    AboutReply,
    LevelsReply,
    ReleaseObject,
    ReleasesReply,
    LedgerReply,
    BatchReply,
    ChosenReply,
    EarlierRow,
    RequirementReply,
    LeftReply,
    ExportReply,
    LinkReply,
    ImportReply,
    OverviewReply,
    HealthReply,
    ReadyReply,
    LevelBody,
    RequirementBody,
)
"""Everything that the OpenAPI document describes by name."""
