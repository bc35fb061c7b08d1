"""From settings to a running publication: what `wevent publish` does, and `wevent.publish` (`wevent.publishing.calling`).

The order is what makes a failed start harmless: nothing is pinned before the first slot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wevent.core.requirements import Requirement
from wevent.errors import InvalidMembership, InvalidSettings
from wevent.journal import Journal, Terms, open_journal
from wevent.noise import SecureNoise
from wevent.outputs import Output, open_output, refuse_dropping, refuse_same_file
from wevent.outputs.release_table import ReleaseTable, read_releases
from wevent.publishing.configuration import Settings, cells_file, read_config
from wevent.publishing.due import due_moments
from wevent.publishing.foreseeing import alone_sentences
from wevent.publishing.importing import (
    AskingFile,
    Difference,
    WantedRegistry,
    import_changes,
    is_imported,
    registered,
    requirements_digest,
    wanted_people,
    wanted_users,
)
from wevent.publishing.loop import Progress, Publication, Running, Summary
from wevent.publishing.opening import (
    begin,
    keep_pinned,
    make_terms,
    must_begin,
    pinned_terms,
    refuse_seeded,
    with_levels,
)
from wevent.publishing.staleness import Settlement, plan_or_refuse, store_settlement
from wevent.publishing.stopping import forbid_core_dumps
from wevent.streams import SlotClock, Source, declared_clock, open_source
from wevent.streams.files.inputs import find_files
from wevent.streams.live.spool import spool_folder, sweep

_FILE_BATCH = 256  # slots that file input may commit at once

SourceFactory = Callable[[Settings, SlotClock, int | None], Source]
"""Opens the events of a stream, given its clock and its last slot (None: no end)."""


@dataclass(frozen=True, kw_only=True)
class Intent:
    """What the operator says for this run alone; none of it is a setting of the stream.

    Attributes:
        declare: "WINDOW,EPSILON" of classes that may have members later.
        new_epoch: go on with another mechanism, cells or levels; every charge stays.
        allow_removals: also if more than one in ten of the registered are no longer in the requirements file.
        released_through: for a restored backup, the last slot that went out.
        widest_window: for a restored backup without its side file, the widest window ever declared.
        start_over: for a journal that is lost, a new one over the same people.
        keep: how many slots the journal keeps; None: all. Not with a Parquet output, which is made from the journal.
    """

    declare: tuple[str, ...] = ()
    new_epoch: bool = False
    allow_removals: bool = False
    released_through: int | None = None
    widest_window: int | None = None
    start_over: bool = False
    keep: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.declare, (tuple, list)) or not all(isinstance(text, str) for text in self.declare):
            raise InvalidSettings(
                "declare to be several texts 'WINDOW,EPSILON'",
                f"{self.declare!r}" if isinstance(self.declare, str) else type(self.declare).__name__,
                "Write Intent(declare=('40,0.5',)).",
                key="declare",
            )


@dataclass(frozen=True)
class RunReport:
    """What a run came to.

    Attributes:
        summary: the slots it published; public.
        imported: what the requirements file, or an edited level table, changed; None without one or on a new journal; public.
        totals: events that were not counted, of the whole run: private, for the operator's eyes only.
        malformed: where the first malformed records were; private.
        journal: where the releases are.
    """

    summary: Summary
    imported: Difference | None
    totals: dict[str, int] = field(repr=False)  # a notebook or a log shows reports
    malformed: list[str] = field(repr=False)
    journal: Path

    def releases(self) -> ReleaseTable:
        """Every release that the journal keeps, a row per slot and cell: `.to_pandas()`, `.to_polars()`, `.columns`, …"""
        return read_releases(self.journal)


@dataclass(frozen=True)
class Watch:
    """Who wants to be told of a run while it goes on.

    Attributes:
        imported: told what the requirements file changes in a journal that exists, before the first slot.
        told: told what the operator should know, a sentence each: durations that were rounded, classes of one.
        begun: told the first slot and the last there will be (None: no end).
        progress: told after every commit.
    """

    imported: Callable[[Difference], None] = lambda difference: None
    told: Callable[[str], None] = lambda sentence: None
    begun: Callable[[int, int | None], None] = lambda first, last: None
    progress: Progress = lambda slot, last: None


def run(
    settings: Settings,
    intent: Intent,
    read: Iterable[tuple[str, Path]],
    watch: Watch | None = None,
    output: Output | None = None,
    source_of: SourceFactory = open_source,
    *,
    enrolling: bool = False,
) -> RunReport:
    """Publish under checked settings.

    Args:
        settings: of the stream.
        intent: what the operator says for this run alone.
        read: files that the settings were read from, and what each is: releases must not go there.
        watch: who is told.
        output: where releases go; None: where the settings say.
        source_of: where events come from; the settings say, unless a service receives them.
        enrolling: whether people may choose a level while it runs: levels are then offered in any case, and all of them
            declared; a new journal may begin with nobody.
    """
    watch = watch or Watch()
    path = _journal_path(settings)
    forbid_core_dumps()
    # 1. The only writer, of a journal that is neither damaged nor lost.
    with open_journal(path, write=True, start_over=intent.start_over) as journal:
        # 2. One that ran with seeded noise is refused; so is an old copy, unless it is told what went out elsewhere.
        refuse_seeded(journal)
        plan = plan_settlement(journal, intent)
        # 3. The settings agree with those that are pinned; what was not said is as pinned. Nothing is stored.
        settings = keep_pinned(settings, pinned_terms(journal))
        if enrolling:
            settings = with_levels(settings, pinned_terms(journal))
        begun = _begun_clock(journal, settings.slot_us) if enrolling else pinned_clock(journal)
        clock, last = declared_clock(settings, begun)
        wanted, terms = asked_terms(journal, settings, clock, intent)
        must_begin(journal, terms, new_epoch=intent.new_epoch)  # `begin` asks again: people may ask meanwhile
        # 4. Input and output can be used: the output holds this journal's releases or none. Nothing is written.
        refuse_same_file(settings.out, _own_files(journal, settings, read))
        source = source_of(settings, clock, last)
        output = open_output(settings.out) if output is None else output
        refuse_dropping(output, intent.keep)
        output.check(journal, _known_slots(journal, plan))
        # 5. What went out elsewhere is charged, now that a wrong output is ruled out. Terms, and who is registered: an epoch
        #    is stored with its first slot, first terms bind with the first slot.
        if plan is not None:
            if wanted is not None:  # a file that was cut is refused before anything is charged
                import_changes(journal, wanted, terms, allow_removals=intent.allow_removals)
            store_settlement(journal, plan)
        resumed = pinned_terms(journal) is not None
        difference = begin(
            journal,
            terms,
            new_epoch=intent.new_epoch,
            wanted=wanted,
            unsafe=("start auto",) if settings.start_auto else (),
            allow_removals=intent.allow_removals,
        )
        imported = difference if resumed and (wanted is not None or difference.relevelled) else None
        for sentence in settings.notes:
            watch.told(sentence)
        if imported is not None:
            watch.imported(imported)
        else:
            for sentence in (*difference.notes, *alone_sentences(difference.consequences.alone)):
                watch.told(sentence)
        # 6. Slot after slot: read, step, commit, emit.
        batch = 1 if settings.is_live else _FILE_BATCH
        due = due_moments(settings, clock)
        progress = watch.progress if enrolling else _sweeping(journal, path, watch.progress)
        running = Running(last=last, batch=batch, keep=intent.keep, due=due, progress=progress)
        noise = SecureNoise()
        if due is not None:
            noise.get_ready()
        publication = Publication(journal, source, output, running=running, noise=noise)
        watch.begun(publication.publisher.slot, last)
        try:
            summary = publication.run()
            output.close()
        finally:
            output.abandon()
    return RunReport(summary, imported, source.totals(), source.first_malformed(), path)


def settings_files(config: Path | str | None, cells: Any) -> list[tuple[str, Path]]:
    """The files that settings are read from, and what each is."""
    cells = cells if cells is not None or config is None else read_config(config).get("cells")
    files = [("the configuration file", config), ("the file of cells", cells_file(cells))]
    return [(kind, Path(file)) for kind, file in files if file is not None]


def _sweeping(journal: Journal, path: Path, progress: Progress) -> Progress:
    """Progress that leaves nothing of committed slots where a service kept their events: only a service reads them."""
    folder = spool_folder(path)
    if not folder.is_dir():
        return progress
    sweep(folder, journal.head().committed)

    def swept(slot: int, last: int | None) -> None:
        sweep(folder, slot)
        progress(slot, last)

    return swept


def _journal_path(settings: Settings) -> Path:
    if settings.journal is None:
        raise InvalidSettings(
            "a journal", "none", "Give --journal, or journal = … in the configuration file.", key="journal"
        )
    if not settings.journal.parent.is_dir():
        raise InvalidSettings(
            "a journal in an existing folder", f"{settings.journal}", "Make the folder first.", key="journal"
        )
    return settings.journal


def _own_files(journal: Journal, settings: Settings, read: Iterable[tuple[str, Path]]) -> list[tuple[str, Path]]:
    """Every file that a run reads or keeps, and what it is: releases must not go there."""
    inputs = [] if settings.is_live else find_files(settings.inputs)
    files = [("the journal or a file beside it", file) for file in journal.files()]
    files += [("an input", Path(file)) for file in inputs]
    people = [] if settings.requirements is None else [("the requirements file", settings.requirements)]
    return [*files, *read, *people]


def plan_settlement(journal: Journal, intent: Intent) -> Settlement | None:
    """What is to be charged to an old copy, None if it is none; nothing is stored.

    Raises:
        StaleJournal: if it may be one and nobody says what went out.
    """
    if not journal.is_new:
        return plan_or_refuse(journal, intent.released_through, intent.widest_window)
    if intent.released_through is not None:
        raise InvalidSettings(
            "a restored backup for --released-through",
            f"no journal at {journal.name}",
            "Put the backup there first.",
            key="released_through",
        )
    return None


def _known_slots(journal: Journal, plan: Settlement | None) -> int:
    """The last slot that the journal knows, or will know once it is settled."""
    if plan is not None and plan.batch.records:
        return plan.batch.records[-1].slot
    return 0 if journal.is_new else journal.head().committed


def pinned_clock(journal: Journal) -> SlotClock | None:
    """The clock that binds a journal, None before its first slot."""
    pinned = pinned_terms(journal)
    return None if pinned is None else SlotClock(pinned.origin_us, pinned.length_us)


def _begun_clock(journal: Journal, length_us: int) -> SlotClock | None:
    """The clock that a service goes on with: also before the first slot is committed, whose events it may have taken.

    Whether it has taken any does not matter: the clock would tell (spec 1).
    """
    if journal.is_new:
        return None
    terms = journal.head().epoch.terms
    return SlotClock(terms.origin_us, terms.length_us) if terms.length_us == length_us else pinned_clock(journal)


def asked_terms(
    journal: Journal | None, settings: Settings, clock: SlotClock, intent: Intent
) -> tuple[WantedRegistry | None, Terms]:
    """Who the requirements file wants, and the terms that the settings ask for; stores nothing.

    Args:
        journal: None before there is one.
        settings: of the stream.
        clock: of its slots.
        intent: what the operator says for this run alone.

    Raises:
        InvalidSettings: if nobody is registered and there is no requirements file.
        WeventError: as of `wanted_users`.
    """
    pinned = None if journal is None else pinned_terms(journal)
    wanted = _wanted(settings, None if journal is None or pinned is None else journal.imported())
    keys = {_declared(text) for text in intent.declare}
    if pinned is None:
        people = set() if wanted is None else set(wanted.keys)
        if journal is not None and (wanted is None or is_imported(journal, wanted, clock.length_us)):
            people |= {key for key, _ in registered(journal).values()}  # acknowledged before the first slot: they stay
        if not people and not (settings.is_live and settings.levels is not None):  # whoever comes can choose a level
            raise InvalidSettings(
                "requirements for a new journal",
                "none",
                "Give --requirements with one row per user.",
                key="requirements",
            )
        keys |= people
    return wanted, make_terms(settings, (clock.origin_us, clock.length_us), keys, pinned)


def _wanted(settings: Settings, imported: bytes | None) -> WantedRegistry | None:
    """Who the requirements file wants, None without one; a file that was imported already is not read again."""
    if settings.people is not None:
        wanted = wanted_people(settings.people, settings.levels)
        return None if wanted.digest == imported else wanted
    file = AskingFile.of(settings)
    if file is None:
        return None
    if imported is not None and requirements_digest(file) == imported:
        return None
    return wanted_users(file)


def _declared(text: str) -> tuple[int, int]:
    window, _, epsilon = text.partition(",")
    if not window.strip().isdecimal() or not epsilon:
        raise InvalidMembership("WINDOW,EPSILON to declare", repr(text), "Write for example 40,0.5.")
    return Requirement(int(window), epsilon.strip()).key
