"""What people ask of the registry through the API: thin over `wevent.publishing.registrations`, which has the rules."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from wevent.core.budget import NANO
from wevent.errors import InvalidMembership, NotRegistered, WeventError
from wevent.journal import Journal, JournalPlace
from wevent.people.classes import Key
from wevent.people.membership import Change, Membership, check_id
from wevent.publishing import registrations
from wevent.publishing.registrations import Asked, DueThrough, InForce
from wevent.publishing.views import view_user
from wevent.schemas import (
    ChoiceResult,
    EarlierRow,
    HeldChoice,
    ImportResult,
    LeaveResult,
    LevelBody,
    MembershipRow,
    QueuedRow,
    RequirementBody,
    UserExport,
    UserRequirement,
)
from wevent.service.request_body import CSV
from wevent.streams.clock import SlotClock, utc_time
from wevent.streams.windows import span_text

_NOBODY = "Check the id, letter by letter."


def choose(
    place: JournalPlace,
    user: str,
    body: LevelBody | RequirementBody,
    *,
    dry_run: bool,
    due_through: DueThrough,
    clock: SlotClock | None,
) -> ChoiceResult:
    """Queue the requirement that a user asks for; raises as `registrations.choose`."""
    asked = Asked(**{name: str(value) for name, value in msgspec.structs.asdict(body).items() if value is not None})
    if not asked.is_one_way:  # the registry's own sentence has the options of the command
        numbers = isinstance(body, RequirementBody)
        raise InvalidMembership(
            "level, or window (in slots, or a duration) with epsilon, or window with privacy (words)"
            if numbers
            else "level, or window with privacy (words)",
            ", ".join(asked.given) or "none of them",
            "Give one of these; /v1/levels has the words.",
        )
    force = registrations.choose(place, user, asked, dry_run=dry_run, due_through=due_through)
    assert force.slot is not None
    assert force.person is not None
    assert force.terms is not None
    held = force.person.current
    assert held is not None, "who chose holds what they chose"
    return ChoiceResult(
        requirement=_held(held.key, held.level, force.terms.slot_length_us),
        in_force_from=force.slot,
        in_force_time=_time(clock, force.slot),
        earlier_until=force.earlier_until,
        earlier_until_time=_time(clock, force.earlier_until),
        notes=_notes(force),
    )


def leave(place: JournalPlace, user: str, *, erased: bool, due_through: DueThrough) -> LeaveResult:
    """Let somebody leave, and erase the id if that is wished; raises as `registrations.remove`."""
    try:
        force = (registrations.erase if erased else registrations.remove)(place, user, due_through=due_through)
    except NotRegistered as error:  # its remedy is a command
        raise NotRegistered(error.expected, error.received, _NOBODY) from None
    assert force.slot is not None
    assert force.person is not None
    person = force.person
    ends = [until for row in person.past if (until := person.kept_until(row)) is not None]
    notes = _notes(force)
    if ends:
        what = "A keyed digest of the id" if erased else "The id"
        notes.append(f"{what} is kept through slot {max(ends)}, so that the earlier choice stays in force until then.")
    return LeaveResult(in_force_from=force.slot, kept_until=max(ends, default=None), notes=notes)


def requirement_of(journal: Journal, user: str, due_through: DueThrough) -> HeldChoice:
    """What somebody holds, or will once what is queued is in force.

    Raises:
        NotRegistered: if they hold nothing.
    """
    check_id(user)
    head = journal.head()
    view, slot = view_user(journal, user), head.next_slot
    queued = bool(view.queued)
    if queued:
        slot = registrations.boundary_ahead(journal, head, due_through())
        view = view.after((), slot, journal.registry.salt)
    held = view.current
    if held is None:
        raise NotRegistered("a registered user", "one who is not", _NOBODY)
    terms, earlier_until = head.epoch.terms, view.earlier_until(slot)
    return HeldChoice(
        requirement=_held(held.key, held.level, terms.slot_length_us),
        in_force_from=held.first,
        in_force_time=terms.slot_start(held.first),
        earlier_until=earlier_until,
        earlier_until_time=None if earlier_until is None else terms.slot_start(earlier_until),
        queued=queued,
    )


def export_of(journal: Journal, user: str) -> UserExport:
    """All that is held about one person.

    Raises:
        NotRegistered: if nothing is.
    """
    check_id(user)
    view = view_user(journal, user)
    by_request = user in journal.registry.joined_by_request()
    if not view.memberships and not view.queued and not by_request:
        raise NotRegistered("somebody about whom something is held", "nobody", "Nothing is held under this id.")
    slot_us = journal.head().epoch.terms.slot_length_us
    current = [] if view.current is None else [view.current]
    return UserExport(
        memberships=[_membership(row, slot_us) for row in current],
        earlier=[_earlier(row, view.kept_until(row), slot_us) for row in view.past],
        queued=[_queued(change, slot_us) for change in view.queued],
        joined_by_request=by_request,
    )


def import_people(
    place: JournalPlace,
    body: bytes,
    kind: str,
    columns: Mapping[str, str],
    *,
    replace: bool = False,
    allow_removals: bool = False,
    dry_run: bool = False,
) -> ImportResult:
    """Import a requirements file: add and change, and with `replace` let everybody leave who is not in it.

    Args:
        place: of the journal.
        body: the file.
        kind: its media type.
        columns: what its columns are called, where they have names of their own.
        replace: whether who is missing leaves.
        allow_removals: whether many may leave at once.
        dry_run: only say what that means.

    Raises:
        WeventError: as of `registrations.import_file`; of the file it says where, not what it is called here.
    """
    with _as_file(body, ".csv" if kind == CSV else ".ndjson") as file:
        try:
            done = registrations.import_file(
                place, file, allow_removals=allow_removals, columns=columns, dry_run=dry_run, partial=not replace
            )
        except WeventError as error:
            said = [
                part.replace(repr(str(file)), "the body") for part in (error.expected, error.received, error.remedy)
            ]
            remedy = said[2].replace("--allow-removals", "allow_removals=true")
            facts = {name: fact for name, fact in error.facts.items() if name != "path"}
            raise type(error)(said[0], said[1], remedy, **facts) from None
    return ImportResult(
        added=done.joining,
        changed=done.changing,
        removed=done.leaving,
        unchanged=done.unchanged,
        in_transition=done.preview.in_transition,
        notes=done.sentences(),
    )


@contextmanager
def _as_file(body: bytes, ending: str) -> Iterator[Path]:
    """A body as a file that can be read by its name; ids are in it, so where that is possible it is in memory alone."""
    with tempfile.TemporaryDirectory(prefix="wevent-") as folder:
        name = Path(folder) / f"requirements{ending}"
        if not hasattr(os, "memfd_create"):
            name.write_bytes(body)
            yield name
            return
        with os.fdopen(os.memfd_create("requirements"), "wb", closefd=True) as memory:
            memory.write(body)
            memory.flush()
            name.symlink_to(f"/proc/{os.getpid()}/fd/{memory.fileno()}")
            yield name


def _notes(force: InForce) -> list[str]:
    return [*force.notes, *(() if force.preview is None else force.preview.warnings())]


def _time(clock: SlotClock | None, slot: int | None) -> datetime | None:
    return None if clock is None or slot is None else utc_time(clock.start_of(slot))


def _held(key: Key, level: str | None, slot_us: int | None) -> UserRequirement:
    return UserRequirement(**_plain(key, slot_us), level=level)


def _plain(key: Key, slot_us: int | None) -> dict[str, Any]:
    window, nano = key
    return {
        "window": window,
        "epsilon": nano / NANO,
        "span": None if slot_us is None else span_text(window * slot_us),
    }


def _membership(row: Membership, slot_us: int | None) -> MembershipRow:
    return MembershipRow(**_plain(row.key, slot_us), level=row.level, first=row.first, last=row.last)


def _earlier(row: Membership, until: int | None, slot_us: int | None) -> EarlierRow:
    assert row.last is not None
    assert until is not None
    return EarlierRow(
        **_plain(row.key, slot_us), level=row.level, first=row.first or None, last=row.last, kept_until=until
    )


def _queued(change: Change, slot_us: int | None) -> QueuedRow:
    asked = None if change.key is None else _held(change.key, change.level, slot_us)
    return QueuedRow(action=change.action, requirement=asked)
