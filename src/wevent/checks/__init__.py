"""The contract suite: what every mechanism must keep, as plain code for its author's own tests.

>>> from wevent.checks import check_mechanism
>>> check_mechanism("pbu", only=["windows", "same-seed"])
('windows', 'same-seed')

It proves that a mechanism is well-behaved on the streams it tries, not that an estimator is private: what reads counts
is reviewed by people (see the how-to on own mechanisms).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from types import MappingProxyType

from wevent.checks import continuing, endurance, populations, published_values, spending
from wevent.checks.subject import Broken, CheckFailed, Subject, available
from wevent.core.mechanism import Mechanism
from wevent.errors import InvalidOption
from wevent.publisher.catalogue import find_mechanism

__all__ = ["CHECKS", "CheckFailed", "Subject", "check_mechanism"]

_FUNCTIONS = (
    spending.within_its_means,
    spending.windows,
    spending.counts_unseen,
    continuing.same_seed,
    continuing.restored,
    continuing.restored_after_an_update,
    continuing.replayed,
    continuing.secure_noise,
    continuing.errors_change_nothing,
    populations.charges_outlive_members,
    populations.any_population,
    populations.same_population,
    published_values.named,
    published_values.releases,
    published_values.releases_stay,
    published_values.noise_in_every_cell,
    published_values.finite,
    published_values.options,
    endurance.memory,
)

CHECKS: Mapping[str, Callable[[Subject], None]] = MappingProxyType(
    {function.__name__.replace("_", "-"): function for function in _FUNCTIONS}
)
"""Every check by its name; the docstring says what it holds a mechanism to."""


def check_mechanism(
    mechanism: Mechanism | str, *, only: Collection[str] | None = None, slots: int = 60, seed: int = 5
) -> tuple[str, ...]:
    """Hold a mechanism to the contract; returns the names of the checks it kept.

    Args:
        mechanism: a `Mechanism`, registered or not (what is registered stays as it was), or the name of one.
        only: names out of `CHECKS`; all of them unless told otherwise.
        slots: how long the streams are, at least 20; the check of memory takes 200 times as many.
        seed: of the streams, the noise and the adversary. The same seed fails in the same place.

    Raises:
        CheckFailed: at the first broken check; it says what was expected, what came, and how to see it again.
        InvalidOption: for a check that there is none of, or too few slots.
        UnknownMechanism: for a name that is not registered.
    """
    if slots < 20:
        raise InvalidOption(
            f"The checks need at least 20 slots, not {slots}.",
            "Give more slots, so that windows fill.",
            option="slots",
            value=slots,
        )
    chosen = tuple(CHECKS) if only is None else tuple(only)
    for name in chosen:
        if name not in CHECKS:
            raise InvalidOption(
                f"Unknown check {name!r}.",
                f"Checks: {', '.join(CHECKS)}.",
                option="only",
                value=name,
            )
    row = find_mechanism(mechanism) if isinstance(mechanism, str) else mechanism
    subject = Subject(row, slots, seed)
    with ExitStack() as stack:
        if not isinstance(mechanism, str):
            stack.enter_context(available(row))
        for name in chosen:
            _hold_to(name, subject)
    return chosen


def _hold_to(name: str, subject: Subject) -> None:
    """Run one check; whatever the mechanism raises in it is a broken check too."""
    try:
        CHECKS[name](subject)
    except Broken as broken:
        raise CheckFailed(name, subject, broken).with_traceback(broken.__traceback__) from None
    except Exception as error:
        raised = Broken("no error", f"{type(error).__name__}: {error}", subject.last_slot())
        raise CheckFailed(name, subject, raised) from error
