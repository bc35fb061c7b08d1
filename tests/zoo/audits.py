"""The named audits, each pointed at a subject: what it saw in a few words, or nothing.

An audit knows nothing of bugs. It gets a subject, how long to look and a seed, and says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.zoo import deployment_audits, mechanism_audits
from tests.zoo.bug import Persistence, Subject

AUDITS: dict[str, Callable[[Subject, Persistence, int], str | None]] = {
    "exact": mechanism_audits.exact,
    "noise": mechanism_audits.noise,
    "black box": mechanism_audits.black_box,
    "journal": deployment_audits.journal,
    "lives": deployment_audits.lives,
    "pairs of runs": deployment_audits.pairs,
    "files": deployment_audits.files,
    "clock": deployment_audits.clock,
}
"""By the names that the table has."""


def look(audit: str, subject: Subject, looking: Persistence, seed: int) -> str | None:
    """What an audit sees of a subject."""
    with subject.undone():
        return AUDITS[audit](subject, looking, seed)
