"""Publisher or ledger of a journal: the stored state, and every slot committed since, replayed (spec 10).

Nothing random is stored and nothing is drawn: charges and measurements of committed slots are public numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

from wevent.core.ledger import Ledger
from wevent.core.mechanism import NoiseSource
from wevent.core.options import option_values
from wevent.core.requirements import Population
from wevent.journal.record import Loaded, Record
from wevent.journal.terms import Epoch, class_history
from wevent.noise import SecureNoise
from wevent.people.classes import to_requirements
from wevent.publisher.publisher import Publisher


def new_publisher(versions: Sequence[Epoch], noise: NoiseSource | None, earlier: Publisher | None = None) -> Publisher:
    """Return a publisher under the last of these versions, before its first slot and without members.

    A shared budget covers the classes that are live when the version starts, retained ones included (spec 15.3). Classes of
    the publisher before are among them: a user may still hold one that no version declares, if a backup was restored
    before the changes of its version were applied.

    Args:
        versions: versions of the journal up to the one that starts.
        noise: None is secure noise.
        earlier: publisher of the version before, whose slot and charges are inherited.
    """
    version = versions[-1]
    live = set(to_requirements(class_history(versions).live(version.first)))
    publisher = Publisher(
        Population(dict.fromkeys(live.union(() if earlier is None else earlier.population.classes), 0)),
        version.terms.cells,
        noise=noise,
        **option_values(version.terms),
    )
    if earlier is not None:
        publisher.inherit(earlier)
    return publisher


def rebuild_publisher(loaded: Loaded, epochs: list[Epoch], noise: NoiseSource | None) -> Publisher:
    """Return the publisher that goes on after the last committed slot, with an identical ledger.

    A slot of another version is replayed by a publisher of that version, which inherits every charge.

    Args:
        loaded: head and state of the journal.
        epochs: all its versions.
        noise: None is secure noise, also after seeded noise: a seeded stream that went on would repeat draws.
    """

    def follow(publisher: Publisher, epoch: Epoch) -> Publisher:
        known = [*(earlier for earlier in epochs if earlier.number < epoch.number), epoch]
        return new_publisher(known, noise, publisher)

    noise = SecureNoise() if noise is None else noise
    if loaded.state is None:
        epoch = epochs[0]
        publisher = new_publisher([epoch], noise)
    else:
        publisher = Publisher.restore(loaded.state, noise)
        epoch = max((known for known in epochs if known.first < publisher.slot), key=lambda known: known.number)
    for record in loaded.since:
        if record.epoch.number != epoch.number:
            epoch = record.epoch
            publisher = follow(publisher, epoch)
        group = record.group
        if group.population != publisher.population or group.turnover != publisher.turnover:
            publisher.update(group.population, turnover=group.turnover - publisher.turnover)
        shown = record.shown
        measured = shown.measured if record.kind == "published" and shown is not None else None
        publisher.replay(record.probe, record.publication, measured)
    if loaded.head.epoch.number != epoch.number:
        publisher = follow(publisher, loaded.head.epoch)
    return publisher


def rebuild_ledger(loaded: Loaded, epochs: list[Epoch]) -> tuple[Ledger, Population]:
    """Return the ledger after the last committed slot, and the population in force; to be read, never to be spent from.

    Much quicker than a whole publisher: nothing is smoothed.
    """
    if loaded.state is None:
        publisher = new_publisher(epochs[:1], SecureNoise())
    else:
        publisher = Publisher.restore(loaded.state, SecureNoise())
    ledger, population = publisher._ledger, publisher.population
    for record in loaded.since:
        population = follow_ledger(ledger, population, record)
    return ledger, population


def follow_ledger(ledger: Ledger, population: Population, record: Record) -> Population:
    """Charge a ledger with the slot after that of `population`; return the population in force in it."""
    if record.group.population != population:
        ledger.update(record.group.population)
    ledger.replay(record.probe, record.publication)
    return record.group.population
