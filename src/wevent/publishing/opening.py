"""The terms of a journal: made from settings, compared with those in force, and begun with the people who come along."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from wevent.core.requirements import Levels, Requirement
from wevent.core.settings import Options, option_kinds, option_values
from wevent.core.suitability import complete
from wevent.errors import InvalidJournal, InvalidMembership
from wevent.journal.contract import Journal
from wevent.journal.rebuild import new_publisher
from wevent.journal.terms import PERMANENT, SEEDED, Epoch, Terms, levels_to_plain
from wevent.people.membership import Change, Changes, check_declared
from wevent.publisher.catalogue import find_mechanism
from wevent.publishing.configuration import Settings
from wevent.publishing.importing import Difference, WantedRegistry, import_changes, import_users, registered
from wevent.publishing.preview import preview
from wevent.streams.clock import SlotClock
from wevent.streams.cycles import calendar_slots

_KEPT = ("stream", "unknown_users")  # besides the options
_ONE_CHOICE = frozenset(("anchors", "unbiased"))  # how classes count: who says one of them chooses anew


def keep_pinned(settings: Settings, pinned: Terms | None) -> Settings:
    """Settings in which options, stream and strangers that were not said are as the journal has them.

    Defaults are for new journals. Cells, clock and levels have to be said again: events and requirements are read with
    them. If another mechanism is said, the options that belong to a mechanism start from that one's own again.

    Args:
        settings: what was asked for.
        pinned: the terms in force, None for a new journal.
    """
    if pinned is None:
        return settings
    other = "mechanism" in settings.said and settings.mechanism != pinned.mechanism
    kept = [name for name, kind in option_kinds().items() if not (other and kind.of_mechanism)]
    if settings.said & _ONE_CHOICE:
        kept = [name for name in kept if name not in _ONE_CHOICE]
    return replace(settings, **{name: getattr(pinned, name) for name in (*kept, *_KEPT) if name not in settings.said})


def with_levels(settings: Settings, pinned: Terms | None) -> Settings:
    """Settings that offer levels: the default ones, unless others are declared or the journal has gone without.

    Args:
        settings: what was asked for.
        pinned: the terms in force, None for a new journal.
    """
    default = Levels.default()
    if settings.levels is not None or (pinned is not None and pinned.levels != levels_to_plain(default)):
        return settings
    return replace(settings, levels=default)


def make_terms(
    settings: Settings, clock: tuple[int, int], keys: Iterable[tuple[int, int]], pinned: Terms | None
) -> Terms:
    """The terms that settings ask for.

    Declared classes are those of the first requirements file, of every pair of levels, and the ones in `keys`; a
    resumed journal keeps its own and adds none by itself.

    Args:
        settings: what was asked for.
        clock: origin and length of the slots, microseconds.
        keys: (window, nano-epsilons) of classes to declare.
        pinned: the terms in force, None for a new journal.

    Raises:
        UnknownMechanism: if there is no such mechanism.
        InvalidSettings: for a calendar of slots that have no times.
    """
    if settings.days is not None:
        times = None if settings.slot_length_us is None else SlotClock(*clock)
        settings = replace(settings, calendar=calendar_slots(settings.days, times, settings.timezone_us))
    declared = {*keys, *(() if pinned is None else pinned.declared)}
    if settings.levels is not None and (pinned is None or pinned.levels != levels_to_plain(settings.levels)):
        declared |= {requirement.key for requirement in settings.levels.offered().values()}
    return Terms(
        stream=settings.stream,
        origin_us=clock[0],
        length_us=clock[1],
        cells=settings.cells.declaration(),
        declared=sorted(declared),
        levels=levels_to_plain(settings.levels),
        unknown_users=settings.unknown_users,
        **option_values(complete(find_mechanism(settings.mechanism), Options(**option_values(settings)))),
    )


def pinned_terms(journal: Journal) -> Terms | None:
    """The terms that bind a journal, None before its first slot: a start that came to no slot binds nobody."""
    return None if journal.is_new else journal.head().pinned


def refuse_seeded(journal: Journal) -> None:
    """Refuse to serve people from a journal that ever drew seeded noise: its releases protect nobody.

    Raises:
        InvalidJournal: naming the way out.
    """
    if not journal.is_new and SEEDED in journal.head().unsafe:
        raise InvalidJournal(
            "a journal with secure noise only",
            f"one that ran with seeded noise ({journal.name})",
            "Whoever knows the seed can undo it: publish into another journal (over the same people epsilons add up).",
            path=journal.name,
        )


def must_begin(journal: Journal, terms: Terms, *, new_epoch: bool) -> bool:
    """Whether these terms are to be begun: the first ones, or an epoch the operator asked for. Stores nothing.

    Raises:
        SettingsDiffer: naming what differs from the terms in force.
        InvalidOption: if no publisher can work under them.
        InvalidMembership: if somebody who is registered could not be counted under them.
    """
    pinned = pinned_terms(journal)
    if pinned is not None:
        names = pinned.differing(terms)
        if not new_epoch or not names or any(name in PERMANENT for name in names):
            pinned.check_same(terms)
            return False
    new_publisher(with_version(journal, terms), None)  # refuses options that do not fit
    if pinned is not None:
        _refuse_unlivable(journal, terms)
    return True


def _refuse_unlivable(journal: Journal, terms: Terms) -> None:
    """Everybody keeps their requirement in the first slot of an epoch, whatever comes with it: its terms must allow it.

    Raises:
        InvalidMembership: naming the first requirement that they do not allow, and how to declare it.
    """
    for key in sorted({key for key, _ in registered(journal).values()}):
        try:
            check_declared(key, terms.declared)
        except InvalidMembership as error:
            held = f"{key[0]},{Requirement.from_nano(*key).epsilon:g}"
            raise InvalidMembership(
                "an epoch whose terms allow every requirement that registered people hold",
                f"one that does not allow {held} (window, epsilon)",
                f"Nothing was changed. Declare it with the epoch (--declare {held}).",
                requirement=key,
            ) from error


def begin(
    journal: Journal,
    terms: Terms,
    *,
    new_epoch: bool,
    wanted: WantedRegistry | None = None,
    unsafe: tuple[str, ...] = (),
    allow_removals: bool = False,
) -> Difference:
    """Begin a new journal with these terms, go on under the same ones, or begin an epoch the operator asked for.

    A new epoch, and all that comes with it, is stored in the transaction of its first slot (`Journal.begin`).

    Args:
        journal: opened for writing.
        terms: what to pin.
        new_epoch: whether other terms than those in force are meant.
        wanted: who should be registered; None leaves the registry as it is.
        unsafe: what weakens the promise.
        allow_removals: whether many may leave at once.

    Returns:
        What the registry was told to change for `wanted` and for an edited level table.

    Raises:
        SettingsDiffer, InvalidOption: as of `must_begin`.
        InvalidMembership: as of `must_begin`, for a requirement that nobody may hold under these terms, or for too many
            who leave.
    """
    if not must_begin(journal, terms, new_epoch=new_epoch):
        done = Difference() if wanted is None else import_users(journal, wanted, allow_removals=allow_removals)
        journal.note_unsafe(unsafe)
        return done
    asked = 0 if journal.is_new else journal.registry.pending()  # before anything is read: a later wish stands
    changes, done = coming_changes(journal, terms, wanted, allow_removals=allow_removals)
    journal.begin(terms, unsafe, changes, None if wanted is None else wanted.digest, asked)
    return done


def coming_changes(
    journal: Journal, terms: Terms, wanted: WantedRegistry | None, *, allow_removals: bool
) -> tuple[Changes, Difference]:
    """What comes with terms that are to be begun: new numbers for levels, then what a file says. Stores nothing.

    Args:
        journal: the journal.
        terms: what is to be pinned.
        wanted: who should be registered; None leaves the registry as it is.
        allow_removals: whether many may leave at once.

    Raises:
        InvalidMembership: as of `begin`.
    """
    changes: Changes = []
    done = Difference()
    pinned, table = pinned_terms(journal), terms.level_table
    if pinned is not None and table is not None and pinned.levels != terms.levels:
        changes = list(_relevelled(journal, table))
    relevelled = len(changes)
    if wanted is not None:
        more, done = import_changes(journal, wanted, terms, changes, allow_removals=allow_removals)
        changes = [*changes, *more] if len(changes) else more
    if len(changes):
        versions = with_version(journal, terms)
        first = (
            None if len(versions) == 1 else versions[-1].first + 1
        )  # what comes with an epoch follows its first slot
        done = replace(done, relevelled=relevelled, preview=preview(journal, changes, versions, first))
    return changes, done


def with_version(journal: Journal, terms: Terms) -> list[Epoch]:
    """Return the versions of a journal with one more under these terms."""
    if pinned_terms(journal) is None:
        return [Epoch(1, 1, terms)]
    epochs = journal.epochs()
    return [*epochs, Epoch(len(epochs) + 1, journal.head().next_slot, terms)]


def _relevelled(journal: Journal, table: Levels) -> Iterable[Change]:
    """An edited level table is a change for everybody whose level has other numbers now (spec 10)."""
    for user, (held, words) in registered(journal).items():
        if words is not None:
            key = table.choose(words).key
            if key != held:
                yield Change("set", user, key, words)
