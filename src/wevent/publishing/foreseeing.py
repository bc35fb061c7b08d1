"""Effect of registry changes in public numbers, before they are stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from wevent.core.budget import NANO
from wevent.core.ledger import count_typical
from wevent.core.settings import Options
from wevent.journal.contract import Journal
from wevent.journal.terms import Epoch, class_history
from wevent.people.classes import Key
from wevent.people.membership import Change, Changes, Enrolment
from wevent.people.preview import Preview, preview_changes
from wevent.publisher.catalogue import find_mechanism

_SHOWN = 3  # classes of one in a sentence


def preview_sentences(preview: Preview) -> list[str]:
    """Return the effect of changes in words."""
    sentences = []
    if preview.returning:
        sentences.append(f"{_users(preview.returning, 'returns', 'return')} after leaving.")
    if preview.in_transition:
        until = f"slot {preview.until}" + ("" if preview.until_time is None else f" ({preview.until_time})")
        sentences.append(
            f"{_users(preview.in_transition, 'is', 'are')} counted in a stricter class until {until} at the latest."
        )
    return [*sentences, *alone_sentences(preview.alone)]


def preview_to_dict(preview: Preview) -> dict[str, Any]:
    """Return the effect of changes in plain types."""
    alone = [{"window": window, "epsilon": nano / NANO} for window, nano in preview.alone]
    return {**preview._asdict(), "alone": alone}


def foresee(
    journal: Journal, changes: Changes, epochs: Iterable[Epoch] | None = None, slot: int | None = None
) -> Preview:
    """Return the effect of these changes together with the queued ones. Store nothing.

    Args:
        journal: the journal; it may be new.
        changes: in order.
        epochs: every configuration version, that of the changes included; None: as the journal has them.
        slot: first slot in which the changes are active; None: the next one.
    """
    following = 1 if journal.is_new else journal.head().next_slot
    if following == 1 and isinstance(changes, Enrolment):  # nobody was counted yet
        alone = [key for key, size in changes.keys.sizes().items() if size == 1]
        return Preview(len(changes), alone=tuple(sorted(alone)))
    registry, slot = journal.registry, slot or following
    known = journal.epochs() if epochs is None else list(epochs)
    asked: dict[str, list[Change]] = {}
    for change in (*registry.queued(), *changes):
        asked.setdefault(change.user, []).append(change)
    requests = zip(registry.histories(asked), asked.values(), strict=True)
    found = preview_changes(class_history(known, registry.restores()), slot, registry.salt, registry.sizes(), requests)
    return found if found.until is None else found._replace(until_time=known[-1].terms.slot_span(found.until)[0])


def alone_sentences(alone: tuple[Key, ...]) -> list[str]:
    """A warning of classes of one, if there are any."""
    if not alone:
        return []
    shown = "; ".join(f"window {window}, epsilon {nano / NANO:g}" for window, nano in alone[:_SHOWN])
    more = f"; and {len(alone) - _SHOWN} more" if len(alone) > _SHOWN else ""
    return [
        f"Warning: only one person holds {'each of ' if len(alone) > 1 else ''}{shown}{more}. How many hold a requirement "
        "is public, so whoever knows who asked for it knows when this person joins, leaves or changes."
    ]


def strictest_sentences(options: Options, sizes: Mapping[Key, int]) -> list[str]:
    """Return a warning if a few users set the noise for all: mechanisms with one budget or equal weights (spec 8, 11).

    Args:
        options: of the stream.
        sizes: how many users hold each requirement, 0 for one that is only declared.
    """
    shared = find_mechanism(options.mechanism).shared_budget
    if not sizes or not (shared or options.unbiased):
        return []
    windows, epsilons = np.array(list(sizes), dtype=np.int64).T
    users = np.array(list(sizes.values()), dtype=np.int64)
    typical = count_typical(windows, epsilons, users) > 0
    if not typical.any():
        return []
    budget, usual = (
        epsilons[rows].min() / windows[rows].max() if shared else (epsilons[rows] / windows[rows]).min()
        for rows in (slice(None), typical)
    )
    if usual <= 1.05 * budget:  # an error of 10 %
        return []
    few = int(users[~typical].sum())
    cause = "one budget for all" if shared else "equal weights"
    return [
        f"Warning: with {cause} the strictest requirement sets the noise for all users. {few:,} of {int(users.sum()):,} "
        f"users make it {usual / budget:.3g} times as large. Use mechanism pft with its default weights, or do not "
        "offer that requirement."
    ]


def _users(count: int, one: str, many: str) -> str:
    return f"1 user {one}" if count == 1 else f"{count:,} users {many}"
