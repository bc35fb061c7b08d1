"""The repairs, and how to undo each: a piece of source that occurs once, and what stood (or might stand) there."""

from __future__ import annotations

from typing import NamedTuple

MEMBERSHIPS = ("tests/fault/test_memberships.py",)
INPUTS = ("tests/unit/cli/test_publish_inputs.py", "tests/property/test_isolation.py")
FIRST_FORMAT = ("tests/unit/journal/sqlite/test_first_format.py",)
LOST = ("tests/fault/test_lost_journal.py",)
LEFT = ("tests/fault/test_leftovers.py", "tests/unit/journal/tables/test_sealed.py")
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
LEADING = ("tests/postgres/test_leadership.py",)
CONNECTIONS = ("tests/postgres/test_lost_connections.py",)
OUTSIDE = ("tests/postgres/test_outside.py",)
SERVER = ("tests/postgres/test_broken_server.py",)
DATABASE = ("tests/postgres/test_postgres_journal.py",)
EVENTS = ("tests/postgres/test_event_store.py",)
KEYS = ("tests/postgres/test_event_store_keys.py",)
FROZEN = ("tests/postgres/test_replicas_standstill.py",)
REPLICAS = ("tests/postgres/test_replicas.py",)
NEWS = ("tests/postgres/test_commit_news.py",)
SHOWN = ("tests/postgres/test_shown_slots.py",)
DRAFTS = ("tests/postgres/test_drafts.py",)
PATIENCE = ("tests/postgres/test_patience.py",)
BEGUN = ("tests/postgres/test_begun.py",)
INTAKE = ("tests/postgres/test_intake_lock.py",)
AUDITED_END = ("tests/unit/auditing/test_end_of_journal.py",)
STATES = ("tests/unit/publisher/test_state.py",)
AUDITED = ("tests/unit/auditing/test_audit.py",)
OPEN = ("tests/unit/streams/live/test_open_slot.py",)
PLACES = ("tests/unit/journal/test_place.py",)


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
        "first format: memberships that mean nothing are brought up to date",
        "journal/sqlite/schema.py",
        "if connection.execute(_NO_MEMBERSHIPS).fetchall():",
        "if None in connection.execute(_NO_MEMBERSHIPS).fetchall():",
        FIRST_FORMAT,
    ),
    Mutant(
        "first format: what breaks while it is brought up to date is a traceback",
        "journal/sqlite/journal.py",
        "with readable(self.path):  # nothing added up",
        "with ExitStack():  # nothing added up",
        FIRST_FORMAT,
    ),
    Mutant(
        "audit: a number is as many zeros",
        "auditing/journal_audit.py",
        'return b"" if value is None else memoryview(value).tobytes()',
        'return bytes(value or b"")',
        AUDITED,
    ),
    Mutant(
        "state: what the filter knew may be anything",
        "publisher/publisher.py",
        "except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError) as error:",
        "except (ValueError, TypeError, LookupError, ArithmeticError) as error:",
        STATES,
    ),
    Mutant(
        "state: a shared budget of a class without charges",
        "publisher/publisher.py",
        "if publisher._row.shared_budget and not {*saved.declared} <= {*saved.ledger[0]}:",
        "if publisher._row is None:",
        STATES,
    ),
    Mutant(
        "open slots: a cell that there is not",
        "streams/live/open_slot.py",
        "if ((cells < -1) | (cells >= cells_declared)).any():",
        "if len(cells) < 0:",
        OPEN,
    ),
    Mutant(
        "address: a host that cannot be is a traceback",
        "journal/postgres/connection.py",
        "except UnicodeError:  # no name server",
        "except ZeroDivisionError:  # no name server",
        PLACES,
    ),
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
        "journal/tables/marking.py",
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
        "journal/tables/evidence.py",
        "return known == (revision.number, int(revision.token, 16))",
        "return known[0] == revision.number",
        MEMBERSHIPS,
    ),
    Mutant(
        "restore: what was forgotten elsewhere is remembered",
        "journal/tables/table_registry.py",
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
        "journal/tables/table_registry.py",
        "        if copied:\n",
        "        if False:\n",
        ("tests/property/test_whole_life.py",),
    ),
    Mutant(
        "restore: users changes a stale journal",
        "publishing/registrations.py",
        "    refuse_stale(journal, committed, known, copied=head.copied)\n",
        "",
        MEMBERSHIPS,
    ),
    Mutant(
        "restore: changes are not noted in the side file",
        "journal/tables/marking.py",
        "        side.changes.note(buckets, after)\n",
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
        "journal/tables/lost.py",
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
        "journal/tables/table_journal.py",
        "pending = self._keys.seal(batch.pending)",
        "pending = batch.pending",
        LEFT,
    ),
    Mutant(
        "events: old keys stay",
        "journal/tables/table_journal.py",
        "        self._keys.committed()",
        "        pass",
        LEFT,
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
        "journal/tables/chain.py",
        "                if link != row[9]:\n",
        "                if False:\n",
        INTEGRITY,
    ),
    Mutant(
        "integrity: a repeated histogram is not compared with its slot",
        "journal/tables/chain.py",
        "if record.shown is not None and record.shown.slot < known:",
        "if False:",
        INTEGRITY,
    ),
    Mutant(
        "integrity: what a dropped slot made is not kept in mind",
        "journal/tables/table_journal.py",
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
        "            self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)\n",
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
        "return max(self._done, self._closing.closed(now_us))",
        "return self._done",
        SERVED,
    ),
    Mutant(
        "service: a late release goes out when it is ready",
        "publishing/due.py",
        "return own_us + missed * self._step_us",
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
        "service/bounded_connection.py",
        "        self._between_bytes += len(data) if was_in_body else 0\n",
        "",
        ("tests/unit/service/test_bounded_connection.py",),
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
    Mutant(
        "database: the fence is not compared",
        "journal/postgres/write_transactions.py",
        """WHERE {ours} RETURNING fence\"""",
        """RETURNING fence\"""",
        LEADING,
    ),
    Mutant(
        "database: a number is enough, whoever had it",
        "journal/postgres/write_transactions.py",
        " AND instance = '{self._lead.instance}'",
        "",
        LEADING,
    ),
    Mutant(
        "database: what was stored is stored again",
        "journal/postgres/write_transactions.py",
        "return row[0] in doubtful",
        "return False",
        CONNECTIONS,
    ),
    Mutant(
        "database: what was not stored is taken for stored",
        "journal/postgres/write_transactions.py",
        "return row[0] in doubtful",
        "return True",
        CONNECTIONS,
    ),
    Mutant(
        "database: a commit that another writer went on from is called discarded",
        "journal/postgres/write_transactions.py",
        "        if stands():",
        "        if False:",
        LEADING,
    ),
    Mutant(
        "database: who asks does not look whether it was heard",
        "journal/postgres/write_transactions.py",
        "return row is not None and row[0] > 0",
        "return False",
        CONNECTIONS,
    ),
    Mutant(
        "database: writers of one journal do not wait for each other",
        "journal/postgres/write_transactions.py",
        """f"SELECT pg_advisory_xact_lock({lock_key(session.place.schema, 'transaction')})\"""",
        '"SELECT 1"',
        DATABASE,
    ),
    Mutant(
        "database: rows of a transaction that was undone are remembered",
        "journal/postgres/write_transactions.py",
        "            except Interrupted as interrupted:\n                undone()\n",
        "            except Interrupted as interrupted:\n",
        CONNECTIONS,
    ),
    Mutant(
        "database: a paused writer keeps the journal",
        "journal/postgres/writer_table.py",
        "return self.silent_s is not None and abs(self.silent_s) < self.lease_s",
        "return self.silent_s is not None",
        LEADING,
    ),
    Mutant(
        "database: a guard that comes back does not look who writes",
        "journal/postgres/leadership.py",
        "            if holder is None or (holder.fence, holder.instance) != (self.fence, self.instance):\n",
        "            if False:\n",
        LEADING,
    ),
    Mutant(
        "database: a beat waits for a transaction",
        "journal/postgres/writer_table.py",
        """query = f"UPDATE pulse SET beat = {beat} WHERE (SELECT instance FROM writer) = %s\"""",
        """query = f"WITH held AS (SELECT instance FROM writer FOR UPDATE) UPDATE pulse SET beat = {beat} FROM held"\\
        " WHERE instance = %s\"""",
        LEADING,
    ),
    Mutant(
        "database: a database that was put back goes on",
        "journal/postgres/postgres_journal.py",
        "        if self._end is None or self.link_at(self._end[0]) == self._end[1]:\n",
        "        if True:\n",
        OUTSIDE,
    ),
    Mutant(
        "database: a number of an old backup is used again",
        "journal/postgres/postgres_journal.py",
        "Leadership.take(place, above=newest)",
        "Leadership.take(place)",
        OUTSIDE,
    ),
    Mutant(
        "database: the newest side file alone is believed",
        "journal/postgres/side_folder.py",
        "        if latest.committed <= newest.committed:\n",
        "        if True:\n",
        OUTSIDE,
    ),
    Mutant(
        "database: a later mark of a paused writer proves memberships",
        "journal/postgres/side_folder.py",
        'link=latest.link, incarnation="")',
        "link=latest.link)",
        OUTSIDE,
    ),
    Mutant(
        "database: keys of older writers stay",
        "journal/overwriting.py",
        "            file.write(bytes(size))\n",
        "            pass\n",
        OUTSIDE,
    ),
    Mutant(
        "database: a lost schema begins anew beside its mark",
        "journal/postgres/postgres_journal.py",
        "        check_lost(home, known, identity, start_over=start_over)\n",
        "",
        OUTSIDE,
    ),
    Mutant(
        "database: a server that forgets is written to",
        "journal/postgres/connection.py",
        "        if found[name] not in allowed:\n",
        "        if False:\n",
        SERVER,
    ),
    Mutant(
        "database: what the session is pinned to is taken for what the server says",
        "journal/postgres/connection.py",
        "SELECT name, reset_val FROM pg_settings",
        "SELECT name, setting FROM pg_settings",
        SERVER,
    ),
    Mutant(
        "database: a password is shown",
        "journal/postgres/server_errors.py",
        '            text = text.replace(str(given[name]), "…")\n',
        "            text += str(given[name])\n",
        DATABASE,
    ),
    Mutant(
        "replicas: events are taken in for a slot that has closed",
        "journal/postgres/sealed_events.py",
        "            if min(rows) <= self._closed:\n                return False\n",
        "",
        EVENTS,
    ),
    Mutant(
        "replicas: a slot closes while somebody is adding to it",
        "journal/postgres/intake_lock.py",
        "SELECT pg_advisory_xact_lock_shared({}); SELECT closed",
        "SELECT {}::bigint; SELECT closed",
        EVENTS,
    ),
    Mutant(
        "replicas: a batch that two get at once is stored twice",
        "journal/postgres/event_tables.py",
        "sealed bytea NOT NULL, PRIMARY KEY (slot, key)",
        "sealed bytea NOT NULL",
        EVENTS,
    ),
    Mutant(
        "replicas: a lost report counts as an acknowledgement",
        "streams/live/shared_receiver.py",
        "            except JournalUnreachable:\n",
        "            except JournalUnreachable:\n"
        "                [one.tell(self._sorted(one).answer) for one in waiting]\n"
        "                return\n",
        EVENTS,
    ),
    Mutant(
        "replicas: whoever stands still keeps slots open",
        "journal/postgres/intake_lock.py",
        '                    connection.execute("SELECT pg_terminate_backend(%s)", (process,)).close()\n',
        "                    pass\n",
        EVENTS,
    ),
    Mutant(
        "replicas: what a dead writer left stays",
        "streams/live/shared_source.py",
        "        self._close(through)\n        self.forget(through)\n",
        "",
        EVENTS,
    ),
    Mutant(
        "replicas: events are acknowledged that another command will not count",
        "journal/postgres/sealed_events.py",
        "            if paused:\n",
        "            if False:\n",
        EVENTS,
    ),
    Mutant(
        "replicas: keys in a folder that the others do not see",
        "journal/postgres/sealed_events.py",
        "            if folder != self._mark:\n",
        "            if False:\n",
        EVENTS,
    ),
    Mutant(
        "replicas: a destroyed key is removed, not overwritten",
        "journal/overwriting.py",
        "            file.write(bytes(size))\n",
        "            pass\n",
        KEYS,
    ),
    Mutant(
        "replicas: a release is shown that no mark knows",
        "journal/postgres/commit_news.py",
        "min(committed, mark.committed)",
        "committed",
        NEWS,
    ),
    Mutant(
        "replicas: a release is shown before its key is gone",
        "service/journal_follower.py",
        "            self._events.destroy(committed)\n",
        "",
        REPLICAS,
    ),
    Mutant(
        "replicas: a writer sends a release before its key is gone",
        "service/replica_thread.py",
        "            store.destroy(slot)\n            store.announce()\n",
        "            pass\n",
        FROZEN,
    ),
    Mutant(
        "database: a reader is shown a slot that no mark knows",
        "journal/postgres/postgres_journal.py",
        "        if self._lead is not None or committed <= emitted:\n",
        "        if True:\n",
        SHOWN,
    ),
    Mutant(
        "database: a reader without the side folder is shown what may not have gone out",
        "journal/postgres/postgres_journal.py",
        "            return emitted\n",
        "            return committed\n",
        SHOWN,
    ),
    Mutant(
        "database: budgets are told with a slot that is not shown",
        "journal/tables/standing.py",
        "            if record.slot > head.committed:\n                break\n",
        "",
        SHOWN,
    ),
    Mutant(
        "database: a slot that was sent and not committed is drawn again",
        "journal/postgres/postgres_journal.py",
        "            self._adopt(drafts, self._end)\n",
        "            pass\n",
        DRAFTS,
    ),
    Mutant(
        "database: a draft is stored for slots that went out elsewhere",
        "journal/postgres/postgres_journal.py",
        " and self._stated <= end[0]\n",
        "\n",
        DRAFTS,
    ),
    Mutant(
        "database: a draft that does not fit any more is forgotten, and its slot drawn again",
        "journal/postgres/postgres_journal.py",
        "        return known if sent <= known.committed else",
        "        return known if True else",
        DRAFTS,
    ),
    Mutant(
        "database: whoever changes people lets a draft go",
        "publishing/registrations.py",
        "        _refuse_stale(journal)  # again",
        "        pass  # again",
        DRAFTS,
    ),
    Mutant(
        "database: a draft goes with the first mark, whatever it says",
        "journal/postgres/postgres_journal.py",
        "            self._is_settled = self._slots.end()[0] >= self._sent\n",
        "            self._is_settled = True\n",
        DRAFTS,
    ),
    Mutant(
        "database: a draft goes before its slot is known outside",
        "journal/postgres/draft_files.py",
        '        self._state = "committed"\n',
        '        self._state = "nothing"\n',
        DRAFTS,
    ),
    Mutant(
        "replicas: what the operator said is forgotten before it is done",
        "service/replica_thread.py",
        "journal.head().committed >= (self._intent.released_through or 0)\n",
        "True\n",
        DRAFTS,
    ),
    Mutant(
        "database: a draft goes although it is not stored",
        "journal/postgres/draft_files.py",
        '        if self._state == "nothing":\n',
        "        if True:\n",
        DRAFTS,
    ),
    Mutant(
        "database: a draft keeps ids",
        "journal/postgres/postgres_journal.py",
        "            self._brought_ids = brings_ids\n",
        "            pass\n",
        DRAFTS,
    ),
    Mutant(
        "database: memberships that were lost are counted under",
        "journal/tables/table_journal.py",
        "            self.registry.check_in_force(batch.records[-1].slot)\n",
        "            pass\n",
        DRAFTS,
    ),
    Mutant(
        "database: connecting again asks for patience within patience",
        "journal/postgres/lasting_session.py",
        "        if self._is_regaining:",
        "        if False:",
        PATIENCE,
    ),
    Mutant(
        "database: a damaged journal counts as none",
        "journal/__init__.py",
        "    except (NoJournal, StaleJournal):",
        "    except (InvalidJournal, StaleJournal):",
        BEGUN,
    ),
    Mutant(
        "replicas: a sender waits for a database that stands still",
        "streams/live/shared_receiver.py",
        "waiting.answer.result(self._answer_s)",
        "waiting.answer.result()",
        ("tests/unit/streams/live/test_shared_receiver.py",),
    ),
    Mutant(
        "replicas: a slot that cannot be closed drops the draws before it",
        "streams/live/shared_source.py",
        "                if slot == first:\n                    raise\n",
        "                raise\n",
        INTAKE,
    ),
    Mutant(
        "audit: an end that is missing is not noticed",
        "auditing/journal_audit.py",
        "        if own.committed > committed:\n",
        "        if False:\n",
        AUDITED_END,
    ),
]
