"""The repairs, and how to undo each: a piece of source that occurs once, and what stood (or might stand) there."""

from __future__ import annotations

from typing import NamedTuple

MEMBERSHIPS = ("tests/fault/test_memberships.py",)
RESTORE = ("tests/fault/test_restore.py",)
INTEGRITY = ("tests/fault/test_integrity.py",)
REMOVALS = ("tests/fault/test_removals.py",)


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
    Mutant(
        "restoring: what was left over stays beside the backup",
        "journal/replacing.py",
        'for ending in ("", *_BESIDE) if os.path.lexists',
        'for ending in ("",) if os.path.lexists',
        RESTORE,
    ),
    Mutant(
        "restoring: a missing journal is not announced before it is moved",
        "restoring.py",
        "    if lock.before.committed != through or lock.before.journal != identity:\n",
        "    if False:\n",
        RESTORE,
    ),
    Mutant(
        "restoring: the announced slot proves memberships",
        "restoring.py",
        'link=link, incarnation="")',
        "link=link)",
        RESTORE,
    ),
    Mutant(
        "restoring: a plain copy does not know that it is one",
        "journal/replacing.py",
        """_run_once(copy, "UPDATE head SET copied = 1, pending = x''")""",
        "_run_once(copy)",
        RESTORE,
    ),
    Mutant(
        "restoring: a whole journal is replaced",
        "restoring.py",
        "        _refuse_sound(journal, identity, end)",
        "        pass",
        RESTORE,
    ),
    Mutant(
        "restoring: a backup is not checked",
        "restoring.py",
        "            source.check()\n",
        "",
        RESTORE,
    ),
    Mutant(
        "restoring: a backup of another journal is taken",
        "restoring.py",
        "        if mark.committed and mark.journal != identity:\n",
        "        if False:\n",
        (*RESTORE, "tests/fault/test_failures_table.py"),
    ),
    Mutant(
        "restoring: too little is noticed after files were moved",
        "restoring.py",
        "        plan_settling(source, through, stated.widest_window)\n",
        "        pass\n",
        RESTORE,
    ),
    Mutant(
        "restoring: a slot before the backup's end is taken",
        "restoring.py",
        "    if through < end:\n",
        "    if False:\n",
        RESTORE,
    ),
    Mutant(
        "integrity: stored slots are not compared with the chain",
        "journal/chain.py",
        "                if link != row[9]:\n",
        "                if False:\n",
        INTEGRITY,
    ),
    Mutant(
        "integrity: a repeated histogram is not compared with its slot",
        "journal/chain.py",
        "if record.shown is not None and record.shown.slot < known:",
        "if False:",
        INTEGRITY,
    ),
    Mutant(
        "integrity: what a dropped slot made is not kept in mind",
        "journal/sqlite.py",
        "self._put(SHOWN_ANCHOR, shown)",
        "pass",
        INTEGRITY,
    ),
    Mutant(
        "integrity: a layout that is not ours is read",
        "journal/storage.py",
        "        if found == schema.FORMAT and schema.columns",
        "        if False and schema.columns",
        INTEGRITY,
    ),
    Mutant(
        "integrity: users lists a registry that does not add up",
        "cli/users.py",
        "        journal.registry.check()\n        rows = [",
        "        rows = [",
        INTEGRITY,
    ),
    Mutant(
        "outputs: the middle is not compared",
        "outputs/comparing.py",
        "        if not text.startswith(part) or len(part) == len(text):\n            raise self._wrong(record.slot)\n",
        "        if len(part) == len(text):\n            self._confirm(part, record.slot)\n            return None\n",
        INTEGRITY,
    ),
    Mutant(
        "outputs: a note is believed without a look at the file",
        "outputs/comparing.py",
        "if hashed is not None and hashed.hexdigest() == written.digest:",
        "if hashed is not None:",
        INTEGRITY,
    ),
    Mutant(
        "outputs: what follows the last slot is left there",
        "outputs/comparing.py",
        "            if self._read(1):\n",
        "            if False:\n",
        (*INTEGRITY, "tests/fault/test_wrong_outputs.py"),
    ),
    Mutant(
        "outputs: a file cut under a run goes on",
        "outputs/text.py",
        "            if self._file.seek(0, os.SEEK_END) != self._size:\n",
        "            self._file.seek(0, os.SEEK_END)\n            if False:\n",
        INTEGRITY,
    ),
    Mutant(
        "requirements: a cut file removes people",
        "opening.py",
        "    if leaving >= 2 and leaving * MOST_LEAVING > registered:\n",
        "    if False:\n",
        REMOVALS,
    ),
    Mutant(
        "requirements: nobody says how many leave",
        "cli/publish.py",
        "        if resumed and wanted is not None:\n",
        "        if False:\n",
        REMOVALS,
    ),
    Mutant(
        "settings: a changed start is shown rounded",
        "journal/terms.py",
        'text = time_text if name == "origin_us" else _seconds_text',
        "text = '{:g}'.format",
        REMOVALS,
    ),
    Mutant(
        "users: an id that is no text",
        "cli/users.py",
        "    check_id(user)\n",
        "",
        REMOVALS,
    ),
]
