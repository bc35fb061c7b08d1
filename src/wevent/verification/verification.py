"""Verification of a journal: configuration versions, slots, end and memberships, read straight from its tables.

The package is independent on purpose. It follows the documented format (docs/reference/journal-format.md), and shares no
code with the ledger, the publisher or the journal but for opening files and databases.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wevent.errors import InvalidJournal
from wevent.journal.address import PostgresAddress, parse_address
from wevent.verification.journal_reader import HeadRow, JournalTables, open_reader
from wevent.verification.membership_check import NANO, JournalRows, RestoreRow, Version, check_memberships
from wevent.verification.slot_check import PinnedVersion, SlotCheck
from wevent.verification.witness_check import SeenWitness, check_end, read_witness

_LIMIT = 1000  # findings that are listed one by one
_PINNED = ("stream", "origin_us", "length_us", "neighbours", "max_cells_per_user")


@dataclass
class Report:
    """Result of a verification.

    Attributes:
        first: first slot that was checked.
        slots: number of checked slots.
        classes: (window, nano-epsilons) → the largest spend of any window, nano-epsilons.
        violations: findings in slot order; empty if nothing is wrong.
        unsafe: reasons that weaken the guarantee without breaking it.
        elsewhere: first and last slots of stretches that another copy of the journal released: a backup was restored.
        witness_slot: last slot that the witness shows; None if it shows nothing of the journal.
        witness_problem: reason why the end of the journal was not compared with a witness; None if it was.
        write_ahead_slot: last slot of a draw that only the witness has and the next writer stores; None without one.
    """

    first: int = 1
    slots: int = 0
    classes: dict[tuple[int, int], int] = field(default_factory=dict)
    violations: list[dict[str, Any]] = field(default_factory=list)
    unsafe: list[str] = field(default_factory=list)
    elsewhere: list[tuple[int, int]] = field(default_factory=list)
    witness_slot: int | None = None
    witness_problem: str | None = None
    write_ahead_slot: int | None = None

    @property
    def ok(self) -> bool:
        """True if nothing is wrong."""
        return not self.violations

    def add(self, slot: int, problem: str, **facts: Any) -> None:
        """Add a finding; those beyond a limit are dropped."""
        if len(self.violations) < _LIMIT:
            self.violations.append({"slot": slot, "problem": problem, **facts})

    def to_dict(self) -> dict[str, Any]:
        """Return plain types, ready for JSON; epsilons as numbers."""
        return {
            "ok": self.ok,
            "first": self.first,
            "slots": self.slots,
            "classes": [
                {"window": window, "epsilon": nano / NANO, "worst_window_spend": worst / NANO}
                for (window, nano), worst in sorted(self.classes.items())
            ],
            "released_elsewhere": [{"first": first, "last": last} for first, last in self.elsewhere],
            "witness_slot": self.witness_slot,
            "witness_problem": self.witness_problem,
            "write_ahead_slot": self.write_ahead_slot,
            "unsafe": self.unsafe,
            "violations": self.violations,
        }


def verify_journal(path: str | Path | PostgresAddress) -> Report:
    """Check a journal; it may be in use.

    Args:
        path: its file, or the address of its database.

    Raises:
        InvalidJournal: if it cannot be read as a journal at all.
        StorageFailed: if its database does not answer.
    """
    if not isinstance(path, (str, Path, PostgresAddress)):
        raise InvalidJournal(
            f"A {type(path).__name__} is no path of a journal.", "Give the name of its file.", path=None
        )
    place = parse_address(path)
    witness = read_witness(place)
    with open_reader(place) as reader:
        return _check(reader, witness)


def _check(reader: JournalTables, witness: SeenWitness) -> Report:
    head, facts = reader.head(), reader.facts()
    report = Report(first=head.first, unsafe=json.loads(facts["unsafe"]))
    if "seeded noise" in report.unsafe:
        report.add(head.first, "noise was seeded: whoever knows the seed can undo it")
    versions = [(number, first, terms.encode()) for number, first, terms in reader.versions()]
    settings = [(first, json.loads(terms)) for _, first, terms in versions]
    _check_settings(settings, report)
    pinned = {number: PinnedVersion(first, hashlib.sha256(terms).digest()) for number, first, terms in versions}
    slots = SlotCheck(reader, pinned, report.add)
    last, chain = slots.run(head.first, head.anchor)
    _check_head(head, facts["id"].decode(), last, chain, report)
    report.witness_slot, report.witness_problem, report.write_ahead_slot = check_end(reader, witness, report.add)
    journal = JournalRows(
        reader.members(),
        [RestoreRow(*row) for row in reader.restores()],
        [Version.from_terms(first, terms) for first, terms in settings],
        slots.runs,
        facts["salt"],
        facts["registry"],
        head.committed,
        int(facts.get("complete_from", 1)),
    )
    check_memberships(journal, report.add)
    report.slots, report.elsewhere = last + 1 - head.first, slots.elsewhere
    report.classes = {key: sums.worst for key, sums in slots.sums.items()}
    report.violations.sort(key=lambda violation: violation["slot"])
    return report


def _check_settings(versions: list[tuple[int, Any]], report: Report) -> None:
    """Check that pinned settings never change, and that declared classes are legal."""
    for number, (first, terms) in enumerate(versions, 1):
        if any(terms[name] != versions[0][1][name] for name in _PINNED):
            report.add(first, f"version {number} changes a setting that is pinned for the life of a journal")
        declared = [(window, nano) for window, nano in terms["declared"]]
        if not declared or any(not 2 * window <= nano <= 50 * NANO for window, nano in declared):
            report.add(first, f"version {number} declares a class that no guarantee can be built on")


def _check_head(head: HeadRow, identity: str, last: int, chain: bytes, report: Report) -> None:
    """Check that the slots begin and end where the head says."""
    if last != head.committed:
        report.add(last + 1, f"slots up to {head.committed} were committed, but the last one stored is {last}")
    is_begun_elsewhere = (
        head.first == 1 and head.anchor != hashlib.sha256(b"wevent journal" + identity.encode()).digest()
    )
    if chain != head.chain or is_begun_elsewhere:
        report.add(last, "the hash chain does not begin or end where the journal says")
