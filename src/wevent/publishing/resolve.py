"""Settings, run options and the pinned configuration, resolved to what a run works under; and the start of its version."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from wevent.core.builtin_mechanisms import complete
from wevent.core.options import Options, option_kinds, option_values
from wevent.core.requirements import Levels, Requirement
from wevent.errors import InvalidJournal, InvalidMembership, InvalidSettings
from wevent.journal import Journal
from wevent.journal.rebuild import new_publisher
from wevent.journal.terms import PERMANENT, SEEDED, Epoch, Terms, levels_to_plain
from wevent.people.classes import Key
from wevent.people.membership import Change, Changes
from wevent.publisher.catalogue import find_mechanism
from wevent.publishing.importing import (
    Difference,
    import_changes,
    import_users,
    is_imported,
    preview,
    read_wanted,
    registered,
)
from wevent.publishing.staleness import Settlement, plan_settling, refuse_lost_changes
from wevent.settings import RunOptions, Settings
from wevent.settings.values import calendar_slots
from wevent.streams import SlotClock, declared_clock
from wevent.streams.requirements_file import Requirements

_KEPT = ("stream", "unknown_users")  # besides the options


class ResolvedRun(NamedTuple):
    """Configuration of a run."""

    settings: Settings  # with the pinned values where none is explicit
    clock: SlotClock
    last: int | None  # None: no end
    wanted: Requirements | None  # contents of the requirements file; None without one, or if it was imported already
    terms: Terms  # configuration to pin


def check_journal(journal: Journal, options: RunOptions) -> Settlement | None:
    """Refuse a journal with seeded noise, whose releases protect no user, and an old copy, unless the options settle it.

    Return the charges for an old copy; None if it needs none. Store nothing.
    """
    if journal.is_new:
        if options.released_through is not None:
            problem = f"--released-through is for a restored backup, and there is no journal at {journal.name}."
            raise InvalidSettings(problem, "Put the backup there first.", key="released_through")
        return None
    if SEEDED in journal.head().unsafe:
        raise InvalidJournal(
            f"The journal ran with seeded noise ({journal.name}).",
            "The seed undoes the noise: publish into another journal (over the same users epsilons add up).",
            path=journal.name,
        )
    plan = plan_settling(journal, options)
    if not options.accept_lost_changes and (plan is None or not plan.changes_lost):
        refuse_lost_changes(journal)
    return plan


def resolve(
    journal: Journal | None, settings: Settings, options: RunOptions, *, enrolling: bool = False
) -> ResolvedRun:
    """Return the configuration of a run, during which users may choose a level if `enrolling`. Store nothing."""
    pinned = pinned_terms(journal)
    settings = _complete(settings, pinned, enrolling=enrolling)
    clock_terms = pinned
    if enrolling and journal is not None and not journal.is_new:
        # A service may have taken events under the clock of a version that has no slot yet. The rule does not depend on
        # events, since the clock would show it (spec 1).
        begun = journal.head().epoch.terms
        clock_terms = begun if begun.length_us == settings.slot_us else pinned
    known = None if clock_terms is None else SlotClock(clock_terms.origin_us, clock_terms.length_us)
    clock, last = declared_clock(settings, known)
    wanted = read_wanted(settings, None if journal is None or pinned is None else journal.imported())
    keys = {_parse_class(text) for text in options.declare}
    if pinned is None:
        keys |= _first_classes(journal, settings, wanted, clock)
    terms = _make_terms(settings, clock, keys, pinned)
    must_begin(journal, terms, reconfigure=options.reconfigure)  # `begin` asks again: users may ask meanwhile
    return ResolvedRun(settings, clock, last, wanted, terms)


def pinned_terms(journal: Journal | None) -> Terms | None:
    """Return the pinned configuration, None before the first slot: a version without a slot does not bind."""
    return None if journal is None or journal.is_new else journal.head().pinned


def must_begin(journal: Journal | None, terms: Terms, *, reconfigure: bool) -> bool:
    """Return whether a version is to begin with these terms: the first, or one that the operator wants. Store nothing.

    Terms are refused if they differ otherwise, if no publisher can work under them, and if a user holds an undeclared class.
    """
    pinned = pinned_terms(journal)
    if pinned is not None:
        names = pinned.differing(terms)
        if not reconfigure or not names or any(name in PERMANENT for name in names):
            pinned.check_same(terms)
            return False
    new_publisher(with_version(journal, terms), None)  # refuses options that do not fit
    if journal is not None and pinned is not None:
        # Every user keeps the requirement in the first slot of the version.
        undeclared = {key for key, _ in registered(journal).values()} - set(terms.declared)
        if undeclared:
            key = min(undeclared)
            held = f"{key[0]},{Requirement.from_nano(*key).epsilon:g}"
            raise InvalidMembership(
                f"Registered users hold {held} (window, epsilon), which the new configuration version does not declare.",
                f"Nothing was changed. Declare it too (--declare {held}).",
                requirement=key,
            )
    return True


def begin(
    journal: Journal,
    terms: Terms,
    *,
    reconfigure: bool,
    wanted: Requirements | None = None,
    unsafe: tuple[str, ...] = (),
    allow_removals: bool = False,
    dry_run: bool = False,
) -> Difference:
    """Begin the first version or one that is asked for, or continue the active one; import the requirements file.

    A version, and the changes that come with it, are stored in the transaction of its first slot (`Journal.begin`): new
    numbers of levels (spec 10), then those of the file.

    Args:
        journal: opened for writing, unless this is a dry run, which stores nothing.
        terms: configuration to pin.
        reconfigure: whether terms other than the pinned ones begin a version.
        wanted: users who should be registered; None leaves the registry as it is.
        unsafe: notes on what weakens the guarantee.
        allow_removals, dry_run: as of `import_users`.

    Returns:
        Changes of the registry for `wanted` and for an edited level table.
    """
    done = Difference()
    if not must_begin(journal, terms, reconfigure=reconfigure):
        if wanted is not None:
            done = import_users(journal, wanted, allow_removals=allow_removals, dry_run=dry_run)
        if not dry_run:
            journal.note_unsafe(unsafe)
        return done
    queued = 0 if journal.is_new else journal.registry.last_request()  # before anything is read: a later request stands
    changes: Changes = []
    pinned, table = pinned_terms(journal), terms.level_table
    if pinned is not None and table is not None and pinned.levels != terms.levels:
        changes = [
            Change("set", user, table.choose(level).key, level)
            for user, (held, level) in registered(journal).items()
            if level is not None and table.choose(level).key != held
        ]
    relevelled = len(changes)
    if wanted is not None:
        more, done = import_changes(journal, wanted, terms, changes, allow_removals=allow_removals)
        changes = [*changes, *more] if len(changes) else more
    if len(changes):
        versions = with_version(journal, terms)
        first = None if len(versions) == 1 else versions[-1].first + 1  # changes follow the first slot of a version
        done = replace(done, relevelled=relevelled, preview=preview(journal, changes, versions, first))
    if not dry_run:
        journal.begin(terms, unsafe, changes, None if wanted is None else wanted.digest, queued)
    return done


def with_version(journal: Journal | None, terms: Terms) -> list[Epoch]:
    """Return the versions of a journal with one more under these terms."""
    if journal is None or pinned_terms(journal) is None:
        return [Epoch(1, 1, terms)]
    epochs = journal.epochs()
    return [*epochs, Epoch(len(epochs) + 1, journal.head().next_slot, terms)]


def _complete(settings: Settings, pinned: Terms | None, *, enrolling: bool) -> Settings:
    """Return settings with the pinned options, stream and unregistered users where none are explicit.

    Defaults are for new journals. Cells, clock and levels must be explicit: events and requirements are read with them. If
    another mechanism is explicit, the options that belong to a mechanism start from its defaults. Where users may choose a
    level, the default levels are offered, unless others are declared or the journal has gone without.
    """
    default = Levels.default()
    if enrolling and settings.levels is None and (pinned is None or pinned.levels == levels_to_plain(default)):
        settings = replace(settings, levels=default)
    if pinned is None:
        return settings
    other = "mechanism" in settings.said and settings.mechanism != pinned.mechanism
    kept = [name for name, kind in option_kinds().items() if not (other and kind.of_mechanism)]
    return replace(settings, **{name: getattr(pinned, name) for name in (*kept, *_KEPT) if name not in settings.said})


def _parse_class(text: str) -> Key:
    window, _, epsilon = text.partition(",")
    if not window.strip().isdecimal() or not epsilon:
        raise InvalidMembership(f"--declare takes WINDOW,EPSILON, not {text!r}.", "Write for example 40,0.5.")
    return Requirement(int(window), epsilon.strip()).key


def _first_classes(
    journal: Journal | None, settings: Settings, wanted: Requirements | None, clock: SlotClock
) -> set[Key]:
    """Return the requirements of the users that a stream begins with; refuse none if no user can join later."""
    keys = set() if wanted is None else set(wanted.keys)
    if journal is not None and (wanted is None or is_imported(journal, wanted, clock.length_us)):
        keys |= {key for key, _ in registered(journal).values()}  # acknowledged before the first slot: they stay
    if not keys and not (settings.is_live and settings.levels is not None):  # users who come can choose a level
        problem = "There are no requirements for a new journal."
        raise InvalidSettings(problem, "Give --requirements with one row per user.", key="requirements")
    return keys


def _make_terms(settings: Settings, clock: SlotClock, keys: Iterable[Key], pinned: Terms | None) -> Terms:
    """Return the configuration to pin.

    Declared classes are those of the first requirements file, of every pair of levels, and the ones in `keys`. A resumed
    journal keeps its own and adds none by itself.
    """
    if settings.days is not None:
        slot_of = None if settings.slot_length_us is None else clock.slot_of
        settings = replace(settings, special_days=calendar_slots(settings.days, slot_of, settings.timezone_us))
    declared = {*keys, *(() if pinned is None else pinned.declared)}
    if settings.levels is not None and (pinned is None or pinned.levels != levels_to_plain(settings.levels)):
        declared |= {requirement.key for requirement in settings.levels.offered().values()}
    return Terms(
        stream=settings.stream,
        origin_us=clock.origin_us,
        length_us=clock.length_us,
        cells=settings.cells.declaration(),
        declared=sorted(declared),
        levels=levels_to_plain(settings.levels),
        unknown_users=settings.unknown_users,
        **option_values(complete(find_mechanism(settings.mechanism), Options(**option_values(settings)))),
    )
