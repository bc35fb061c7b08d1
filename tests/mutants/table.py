"""The repairs, and how to undo each: a piece of source that occurs once, and what stood (or might stand) there."""

from __future__ import annotations

from typing import NamedTuple

MEMBERSHIPS = ("tests/fault/test_memberships.py",)


class Mutant(NamedTuple):
    """One repair undone.

    Attributes:
        name: what is no longer so.
        file: below src/wevent.
        repaired: the text to replace; it occurs once.
        undone: what to put there.
        tests: where some test must fail.
    """

    name: str
    file: str
    repaired: str
    undone: str
    tests: tuple[str, ...]


MUTANTS = [
    Mutant(
        "restore: a membership in doubt goes on",
        "journal/sqlite_registry.py",
        "if restore.doubts(bucket_of(row.user, self._salt)):",
        "if False:",
        MEMBERSHIPS,
    ),
    Mutant(
        "restore: a joiner in doubt waits for nothing",
        "holdout.py",
        "if one.slot < asked and (one.doubts(bucket)",
        "if one.slot < asked and (False",
        MEMBERSHIPS,
    ),
    Mutant(
        "restore: a mark older than M proves",
        "journal/sqlite.py",
        "mark.committed != through or ",
        "",
        MEMBERSHIPS,
    ),
    Mutant(
        "restore: another incarnation proves",
        "journal/sqlite.py",
        'self._put("incarnation", secrets.token_hex(16))  # other',
        "pass  # other",
        MEMBERSHIPS,
    ),
    Mutant(
        "restore: nobody need state the widest window",
        "stale.py",
        "    if widest_window is None:\n        raise StaleJournal(",
        "    if widest_window is None:\n        widest_window = 1\n    if widest_window < 0:\n        raise StaleJournal(",
        MEMBERSHIPS,
    ),
    Mutant(
        "restore: the mark's widest window is ignored",
        "stale.py",
        "widest=max(proof.widest, widest, widest_window or 0)",
        "widest=max(widest, widest_window or 0)",
        MEMBERSHIPS,
    ),
    Mutant(
        "restore: no class floor",
        "journal/sqlite_registry.py",
        "elif before < row.first <= restore.slot and row.key not in charged:",
        "elif False:",
        MEMBERSHIPS,
    ),
    Mutant(
        "restore: a backup's registry takes changes",
        "journal/sqlite_registry.py",
        "            if copied:\n",
        "            if False:\n",
        ("tests/property/test_whole_life.py",),
    ),
    Mutant(
        "restore: users changes a stale journal",
        "cli/users.py",
        "        refuse_stale(head.committed",
        "        (lambda *a, **b: None)(head.committed",
        MEMBERSHIPS,
    ),
    Mutant(
        "restore: changes are not noted in the side file",
        "journal/sqlite.py",
        "        self.lock.changes.note(buckets, revision)\n",
        "",
        MEMBERSHIPS,
    ),
    Mutant(
        "strangers: whom the registry knows is one",
        "members.py",
        "make_roster([row[0] for row in rows], keys, self._declared, unknown, barred)",
        "make_roster([row[0] for row in rows], keys, self._declared, unknown, None)",
        MEMBERSHIPS,
    ),
    Mutant(
        "strangers: a joiner was none",
        "journal/sqlite_registry.py",
        "            past = self._holdout.as_stranger(slot)\n",
        "            past = []\n",
        MEMBERSHIPS,
    ),
    Mutant(
        "strangers: another class at once",
        "members.py",
        "or slot < self._strangers_from:",
        "or False:",
        MEMBERSHIPS,
    ),
    Mutant(
        "strangers: an erased id is one",
        "membership.py",
        "if self._erased and erased_id(name, self._salt) in self._ids:",
        "if False:",
        MEMBERSHIPS,
    ),
    Mutant(
        "audit: histories are not read",
        "audit/memberships.py",
        "        _check_person(journal, person, restores, add)\n",
        "        pass\n",
        ("tests/property/test_whole_life.py",),
    ),
    Mutant(
        "audit: strangers are not looked at",
        "audit/memberships.py",
        "    _check_strangers(journal, restores, add)\n",
        "",
        ("tests/property/test_whole_life.py",),
    ),
    Mutant(
        "audit: who was kept from the strangers is not looked at",
        "audit/memberships.py",
        "        _check_barred(journal, people, add)\n",
        "        pass\n",
        ("tests/property/test_whole_life.py",),
    ),
    Mutant(
        "audit: class sizes are believed", "audit/memberships.py", "    _check_sizes(journal, add)\n", "", MEMBERSHIPS
    ),
    Mutant(
        "audit: the registry need not add up",
        "audit/memberships.py",
        "if _sum_of(journal) != journal.stored:",
        "if False:",
        MEMBERSHIPS,
    ),
]
