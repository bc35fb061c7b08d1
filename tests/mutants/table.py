"""The repairs, and how to undo each: a piece of source that occurs once, and what stood (or might stand) there."""

from __future__ import annotations

from typing import NamedTuple

MEMBERSHIPS = ("tests/fault/test_memberships.py",)
INPUTS = ("tests/unit/cli/test_publish_inputs.py", "tests/property/test_isolation.py")
FIRST_FORMAT = ("tests/unit/journal/sqlite/test_first_format.py",)
LOST = ("tests/fault/test_lost_journal.py",)
LEFT = ("tests/fault/test_leftovers.py", "tests/unit/journal/sqlite/test_sealed.py")
GATE = ("tests/unit/core/test_ledger.py",)
PERMITS = ("tests/unit/core/test_permit.py", "tests/contract/test_noise_sources.py", "tests/unit/noise")
TOTAL = ("tests/unit/core/test_total.py", "tests/property/test_total.py", "tests/unit/core/smoothers")
BOUNDS = ("tests/unit/core", "tests/unit/noise", "tests/unit/publisher/test_publisher.py")
RESTORE = ("tests/fault/test_restore.py",)
INTEGRITY = ("tests/fault/test_integrity.py",)
ODD = ("tests/fault/test_odd_arguments.py",)
CUT = ("tests/unit/journal/sqlite/test_intact.py", "tests/fault/test_cut_files.py")
REMOVALS = ("tests/fault/test_removals.py",)
SERVED = ("tests/service/test_service_kills.py",)
TIMING = ("tests/service/test_service_timing.py",)


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
        "people/histories.py",
        "waits = restore.wait(current.key, bucket_of(current.user, salt), current.since)",
        "waits = 0",
        MEMBERSHIPS,
    ),
    Mutant(
        "restore: a joiner in doubt waits for nothing",
        "people/holdout.py",
        "waits += [restore.wait(key, bucket, since) for restore in self.restores if restore.slot < asked]",
        "",
        MEMBERSHIPS,
    ),
    Mutant(
        "restore: a mark older than M proves",
        "journal/sqlite/marking.py",
        "mark.committed != through or ",
        "",
        MEMBERSHIPS,
    ),
    Mutant(
        "restore: nobody need state the widest window",
        "publishing/staleness.py",
        "    if widest_window is None:\n        raise StaleJournal(",
        "    if widest_window is None:\n        widest_window = 1\n    if widest_window < 0:\n        raise StaleJournal(",
        MEMBERSHIPS,
    ),
    Mutant(
        "restore: the mark's widest window is ignored",
        "publishing/staleness.py",
        "widest=max(proof.widest, widest, widest_window or 0)",
        "widest=max(widest, widest_window or 0)",
        MEMBERSHIPS,
    ),
    Mutant(
        "restore: no class floor",
        "people/holdout.py",
        "return 0 if key in self.charged else self.slot + key[0]",
        "return 0",
        MEMBERSHIPS,
    ),
    Mutant(
        "restore: what people wait for is not charged",
        "publishing/staleness.py",
        "for row in sorted({*publisher.ledger.rows, *held}):",
        "for row in sorted({*publisher.ledger.rows}):",
        MEMBERSHIPS,
    ),
    Mutant(
        "restore: revisions of another copy prove",
        "journal/sqlite/evidence.py",
        "return known == (revision.number, int(revision.token, 16))",
        "return known[0] == revision.number",
        MEMBERSHIPS,
    ),
    Mutant(
        "restore: what was forgotten elsewhere is remembered",
        "journal/sqlite/sqlite_registry.py",
        "work.forget(restore.slot + 1)",
        "work.forget(0)",
        MEMBERSHIPS,
    ),
    Mutant(
        "restore: a crash before the mark closes the journal",
        "publishing/staleness.py",
        " and not journal.is_elsewhere(mark.committed)",
        "",
        MEMBERSHIPS,
    ),
    Mutant(
        "restore: a copy that dropped the marked slot is believed",
        "publishing/staleness.py",
        "if link is None and 0 < mark.committed < committed and not stated:",
        "if False:",
        MEMBERSHIPS,
    ),
    Mutant(
        "restore: a backup's registry takes changes",
        "journal/sqlite/sqlite_registry.py",
        "            if copied:\n",
        "            if False:\n",
        ("tests/property/test_whole_life.py",),
    ),
    Mutant(
        "restore: users changes a stale journal",
        "publishing/registrations.py",
        "        refuse_stale(committed, known, copied=head.copied)\n",
        "",
        MEMBERSHIPS,
    ),
    Mutant(
        "restore: changes are not noted in the side file",
        "journal/sqlite/marking.py",
        "        lock.changes.note(buckets, after)\n",
        "",
        MEMBERSHIPS,
    ),
    Mutant(
        "strangers: whom the registry knows is one",
        "publishing/member_view.py",
        "make_roster(rows.users, rows.keys, self._declared, unknown, barred, waiting)",
        "make_roster(rows.users, rows.keys, self._declared, unknown, None, waiting)",
        MEMBERSHIPS,
    ),
    Mutant(
        "strangers: a joiner was none",
        "people/histories.py",
        "            past = self._strangers\n",
        "            past = []\n",
        MEMBERSHIPS,
    ),
    Mutant(
        "strangers: another class at once",
        "publishing/member_view.py",
        "or slot < self._strangers_from:",
        "or False:",
        MEMBERSHIPS,
    ),
    Mutant(
        "strangers: an erased id is one",
        "people/membership.py",
        "if self._erased and erased_id(name, self._salt) in self._ids:",
        "if False:",
        MEMBERSHIPS,
    ),
    Mutant(
        "audit: histories are not read",
        "auditing/memberships.py",
        "        _check_person(journal, person, restores, add)\n",
        "        pass\n",
        ("tests/property/test_whole_life.py",),
    ),
    Mutant(
        "audit: strangers are not looked at",
        "auditing/memberships.py",
        "    _check_strangers(journal, restores, add)\n",
        "",
        ("tests/property/test_whole_life.py",),
    ),
    Mutant(
        "audit: who was kept from the strangers is not looked at",
        "auditing/memberships.py",
        "        _check_barred(journal, people, add)\n",
        "        pass\n",
        ("tests/property/test_whole_life.py",),
    ),
    Mutant(
        "audit: class sizes are believed",
        "auditing/memberships.py",
        "    _check_sizes(journal, add)\n",
        "",
        MEMBERSHIPS,
    ),
    Mutant(
        "audit: the registry need not add up",
        "auditing/memberships.py",
        "if _sum_of(journal) != journal.stored:",
        "if False:",
        MEMBERSHIPS,
    ),
    Mutant(
        "records: a NUL does not spoil its line",
        "streams/records/splitting.py",
        'if b"\\0" in lines:\n        found',
        "if False:\n        found",
        INPUTS,
    ),
    Mutant(
        "records: a lone carriage return does not spoil its line",
        "streams/records/splitting.py",
        'found.append(returns[characters[returns + 1] != ord("\\n")])',
        "pass",
        INPUTS,
    ),
    Mutant(
        "records: quotes may stand anywhere",
        "streams/records/delimited.py",
        "legal = 2 * quoted.sum(axis=1) == number",
        "legal = number >= 0",
        INPUTS,
    ),
    Mutant(
        "records: bytes that are no text do not spoil their line",
        "streams/records/splitting.py",
        "if not lines.isascii() and not _is_text(lines):",
        "if False:",
        INPUTS,
    ),
    Mutant(
        "gate: the parts are added before they are compared",
        "core/ledger.py",
        "        exceeding = probe_budgets > self._remaining\n        if publication is not None:\n"
        "            exceeding |= publication_budgets > self._remaining - probe_budgets\n",
        "        exceeding = probe_budgets + publication_budgets > self._remaining\n",
        GATE,
    ),
    Mutant(
        "lost: a missing journal begins anew beside its mark",
        "journal/sqlite/lost.py",
        "if lost and not start_over:",
        "if False:",
        LOST,
    ),
    Mutant(
        "lost: outputs are not looked at before the first slot",
        "publishing/session.py",
        "        output.check(journal, _known_slots(journal, plan))\n",
        "",
        (*LOST, "tests/fault/test_wrong_outputs.py"),
    ),
    Mutant(
        "events: pending ones are stored in clear",
        "journal/sqlite/journal.py",
        "pending = self._keys.seal(batch.pending)",
        "pending = batch.pending",
        LEFT,
    ),
    Mutant(
        "events: old keys stay", "journal/sqlite/journal.py", "        self._keys.committed()", "        pass", LEFT
    ),
    Mutant(
        "noise: a seeded journal is published from",
        "publishing/session.py",
        "        refuse_seeded(journal)\n",
        "",
        ("tests/unit/publishing/test_seeded.py",),
    ),
    Mutant(
        "noise: unnamed noise goes on seeded",
        "journal/rebuild.py",
        "    noise = SecureNoise() if noise is None else noise\n",
        "",
        ("tests/unit/publishing/test_seeded.py",),
    ),
    Mutant(
        "pft: nothing stands between smoother and commit",
        "core/total.py",
        "        return (after, estimate) if held or _is_finite(estimate) else None\n",
        "        return after, estimate\n",
        TOTAL,
    ),
    Mutant(
        "pft: a smoother's exception ends the slot",
        "core/total.py",
        "    except Exception:  # noqa: BLE001  whatever a draw can lead to, the slot goes on\n        return None\n",
        "    except ZeroDivisionError:\n        return None\n",
        TOTAL,
    ),
    Mutant(
        "noise: scales may reach the ends of 64 bits",
        "core/permit.py",
        "if scale > MAX_SCALE:  # it could be cut off",
        "if scale == math.inf:",
        PERMITS,
    ),
    Mutant(
        "noise: a publication with too little budget is drawn",
        "core/permit.py",
        "return threshold >= least_threshold(sensitivity << WEIGHT_BITS)",
        "return threshold >= 1",
        BOUNDS,
    ),
    Mutant(
        "noise: more cells per user than cells", "core/suitability.py", "    if k > cells:\n", "    if False:\n", BOUNDS
    ),
    Mutant(
        "permits: anything with the right attributes",
        "core/permit.py",
        "    if type(permit) is not kind:\n",
        "    if False:\n",
        PERMITS,
    ),
    Mutant(
        "permits: drawn with again and again", "core/permit.py", "    permit._use()\n\n\n@final", "\n\n@final", PERMITS
    ),
    Mutant(
        "backup: replaces what is there",
        "journal/sqlite/copying.py",
        "if os.path.lexists(target) and not replace:",
        "if False:",
        ("tests/unit/cli/test_backup.py",),
    ),
    Mutant(
        "restoring: what was left over stays beside the backup",
        "journal/sqlite/replacing.py",
        'for ending in ("", *_BESIDE) if os.path.lexists',
        'for ending in ("",) if os.path.lexists',
        RESTORE,
    ),
    Mutant(
        "restoring: a missing journal is not announced before it is moved",
        "publishing/restoring.py",
        "    if lock.before.committed != through or lock.before.journal != identity:\n",
        "    if False:\n",
        RESTORE,
    ),
    Mutant(
        "restoring: the announced slot proves memberships",
        "publishing/restoring.py",
        'link=link, incarnation="")',
        "link=link)",
        RESTORE,
    ),
    Mutant(
        "restoring: a plain copy does not know that it is one",
        "journal/sqlite/replacing.py",
        """_run_once(copy, "UPDATE head SET copied = 1, pending = x''")""",
        "_run_once(copy)",
        RESTORE,
    ),
    Mutant(
        "restoring: a whole journal is replaced",
        "publishing/restoring.py",
        "        _refuse_sound(journal, identity, end)",
        "        pass",
        RESTORE,
    ),
    Mutant(
        "restoring: a backup is not checked",
        "publishing/restoring.py",
        "            source.check()\n",
        "",
        RESTORE,
    ),
    Mutant(
        "restoring: a backup of another journal is taken",
        "publishing/restoring.py",
        "        if mark.committed and mark.journal != identity:\n",
        "        if False:\n",
        (*RESTORE, "tests/fault/test_failures_table.py"),
    ),
    Mutant(
        "restoring: too little is noticed after files were moved",
        "publishing/restoring.py",
        "        plan_settling(source, through, stated.widest_window)\n",
        "        pass\n",
        RESTORE,
    ),
    Mutant(
        "restoring: a slot before the backup's end is taken",
        "publishing/restoring.py",
        "    if through < end:\n",
        "    if False:\n",
        RESTORE,
    ),
    Mutant(
        "integrity: stored slots are not compared with the chain",
        "journal/sqlite/chain.py",
        "                if link != row[9]:\n",
        "                if False:\n",
        INTEGRITY,
    ),
    Mutant(
        "integrity: a repeated histogram is not compared with its slot",
        "journal/sqlite/chain.py",
        "if record.shown is not None and record.shown.slot < known:",
        "if False:",
        INTEGRITY,
    ),
    Mutant(
        "integrity: what a dropped slot made is not kept in mind",
        "journal/sqlite/journal.py",
        "self._facts[SHOWN_ANCHOR] = shown",
        "pass",
        INTEGRITY,
    ),
    Mutant(
        "integrity: a layout that is not ours is read",
        "journal/sqlite/storage.py",
        "        if found == schema.FORMAT and schema.columns",
        "        if False and schema.columns",
        INTEGRITY,
    ),
    Mutant(
        "integrity: users lists a registry that does not add up",
        "cli/users.py",
        "        journal.registry.check()\n        members = journal.registry.members()\n        waiting",
        "        members = journal.registry.members()\n        waiting",
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
        "        if not self._read(1):\n            return\n",
        "        return\n",
        (*INTEGRITY, "tests/fault/test_wrong_outputs.py"),
    ),
    Mutant(
        "outputs: any longer file makes a journal an old copy",
        "outputs/comparing.py",
        "        judge = ahead if self._shared else unrelated\n",
        "        judge = ahead\n",
        ("tests/fault/test_wrong_outputs.py",),
    ),
    Mutant(
        "outputs: slots are charged before the output is compared",
        "publishing/session.py",
        "        plan = plan_settlement(journal, intent)\n",
        "        plan = plan_settlement(journal, intent)\n"
        "        store_settlement(journal, plan) if plan is not None else None\n",
        ("tests/fault/test_wrong_outputs.py",),
    ),
    Mutant(
        "outputs: a gap that the journal cannot fill is left",
        "outputs/comparing.py",
        "        if anything and self._last < first.slot - 1 and first.shown is not None:\n",
        "        if False:\n",
        ("tests/fault/test_wrong_outputs.py",),
    ),
    Mutant(
        "outputs: a renamed file gets later releases",
        "outputs/text_output.py",
        "        if not self._is_in_place():\n            self._begin_anew()\n",
        "",
        ("tests/fault/test_rotation.py",),
    ),
    Mutant(
        "outputs: a rotation is forgotten",
        "outputs/text_output.py",
        "        self._note(force=True)\n",
        "",
        ("tests/fault/test_rotation.py",),
    ),
    Mutant(
        "outputs: a file cut under a run goes on",
        "outputs/text_output.py",
        "            if self._file.seek(0, os.SEEK_END) != self._size:\n",
        "            self._file.seek(0, os.SEEK_END)\n            if False:\n",
        INTEGRITY,
    ),
    Mutant(
        "requirements: a cut file removes people",
        "publishing/importing.py",
        "    if leaving >= 2 and leaving * MOST_LEAVING > registered:\n",
        "    if False:\n",
        REMOVALS,
    ),
    Mutant(
        "requirements: what is forgotten at the boundary is foreseen to hold people out",
        "people/foresight.py",
        "if row.last is None or row.last > self._forgotten]",
        "]",
        ("tests/unit/people/test_foresight.py", "tests/contract/journal/test_registry.py"),
    ),
    Mutant(
        "requirements: a window of hours keeps the slots of a clock that is gone",
        "publishing/importing.py",
        "    return journal.head().epoch.terms.length_us == slot_us\n",
        "    return True\n",
        ("tests/unit/publishing/test_unsaid.py",),
    ),
    Mutant(
        "requirements: a dry run stores what it shows",
        "publishing/importing.py",
        "    if not dry_run:\n        journal.registry.ask(changes, epoch.number)\n",
        "    if True:\n        journal.registry.ask(changes, epoch.number)\n",
        ("tests/unit/cli/test_levels.py",),
    ),
    Mutant(
        "requirements: nobody says how many leave",
        "publishing/session.py",
        "        if imported is not None:\n",
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
        "arguments: bytes that are no text",
        "cli/group.py",
        "    check_text(given)\n",
        "",
        ODD,
    ),
    Mutant(
        "backup: replaces what is no file",
        "journal/sqlite/copying.py",
        "if (kind := _special_kind(target)) is not None:",
        "if (kind := None) is not None:",
        ODD,
    ),
    Mutant(
        "cut: a file that got shorter",
        "journal/sqlite/intact.py",
        " or size < self.size",
        "",
        CUT,
    ),
    Mutant(
        "cut: a log that was written to after the cut",
        "journal/sqlite/intact.py",
        "        return written\n",
        "        return True\n",
        CUT,
    ),
    Mutant(
        "cut: a log that was cut is put into the journal",
        "journal/sqlite/file.py",
        "            self.database.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)\n",
        "            pass\n",
        CUT,
    ),
    Mutant(
        "first format: nobody waits",
        "journal/sqlite/journal.py",
        "            self._doubt_older_restores()\n",
        "            pass\n",
        FIRST_FORMAT,
    ),
    Mutant(
        "first format: an open that fails keeps the lock",
        "journal/sqlite/journal.py",
        "            undo.callback(self._file.close)",
        "            undo.callback(int)",
        FIRST_FORMAT,
    ),
    Mutant(
        "parquet: slots are dropped before the file is made",
        "publishing/session.py",
        "        refuse_dropping(output, intent.keep)\n",
        "",
        ("tests/fault/test_wrong_outputs.py",),
    ),
    Mutant(
        "parquet: a shorter file takes the place of a longer one",
        "outputs/parquet_output.py",
        "        if kept is not None and first < kept.slot:\n",
        "        if False:\n",
        ("tests/fault/test_wrong_outputs.py",),
    ),
    Mutant(
        "requirements: a file that changes while it is read is imported",
        "publishing/importing.py",
        "    if requirements_digest(file) != digest:\n",
        "    if False:\n",
        ("tests/unit/publishing/test_registrations.py",),
    ),
    Mutant(
        "service: batch ids are forgotten with a crash",
        "streams/live/spool_source.py",
        "                seen.answer = spooled.answer or seen.answer\n",
        "                self._seen.clear()\n",
        SERVED,
    ),
    Mutant(
        "service: events that were acknowledged are not read again",
        "streams/live/spool_source.py",
        "                self._add(slot, spooled.events)\n",
        "",
        SERVED,
    ),
    Mutant(
        "service: events outlive their slot",
        "streams/live/spool_source.py",
        "        self._spool.forget(through)\n",
        "",
        SERVED,
    ),
    Mutant(
        "service: files of committed slots outlive a crash",
        "streams/live/spool.py",
        "                _remove(path)\n                continue\n",
        "                continue\n",
        SERVED,
    ),
    Mutant(
        "service: a standstill keeps slots open",
        "streams/live/spool_source.py",
        "return max(self._done, self._clock.slot_of(now_us - self._settings.grace_us) - 1)",
        "return self._done",
        SERVED,
    ),
    Mutant(
        "service: a late release goes out when it is ready",
        "publishing/due.py",
        "return own_us + missed * self._clock.length_us",
        "return own_us",
        TIMING,
    ),
    Mutant(
        "service: a release goes out when it is ready",
        "publishing/loop.py",
        "        if self._running.due is None:\n",
        "        if True:\n",
        TIMING,
    ),
    Mutant(
        "service: headers behind a body are gathered without end",
        "service/connection.py",
        "        self._between_bytes += len(data) if was_in_body else 0\n",
        "",
        ("tests/unit/service/test_connection.py",),
    ),
    Mutant(
        "events: a line of any length is looked at",
        "streams/records/splitting.py",
        "    if len(lines) > MAX_LINE_BYTES:\n",
        "    if False:\n",
        ("tests/unit/streams/live/test_spool_source.py",),
    ),
    Mutant(
        "service: what a killed run wrote is acknowledged before it is on disk",
        "streams/live/spool.py",
        "            with self._forcing:\n                self._force_all()\n",
        "",
        ("tests/unit/streams/live/test_spool_source.py",),
    ),
]
