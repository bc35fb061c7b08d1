"""The contract suite: what every mechanism must keep, as plain code for its author's own tests.

>>> from wevent.checks import check_mechanism
>>> check_mechanism("pbu", only=["windows", "restored"])
('windows', 'restored')

It shows that a mechanism is well-behaved on the streams it tries, not that an estimator is private: code that reads counts
needs a review (see the how-to on own mechanisms).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType

from wevent.checks import contract
from wevent.checks.subject import Broken, CheckFailed, Subject, available
from wevent.core.mechanism import Mechanism
from wevent.errors import InvalidOption
from wevent.publisher.catalogue import find_mechanism

__all__ = ["CHECKS", "CheckFailed", "Subject", "check_mechanism"]

_FUNCTIONS = (
    contract.within_its_means,
    contract.windows,
    contract.populations,
    contract.counts_unseen,
    contract.noise,
    contract.restored,
    contract.replayed,
    contract.failed_draws,
    contract.finite,
    contract.memory,
)

CHECKS: Mapping[str, Callable[[Subject], None]] = MappingProxyType(
    {function.__name__.replace("_", "-"): function for function in _FUNCTIONS}
)
"""Every check by its name; the docstring states the rule."""


def check_mechanism(
    mechanism: Mechanism | str, *, only: Collection[str] | None = None, slots: int = 60, seed: int = 5
) -> tuple[str, ...]:
    """Check a mechanism against the contract; return the names of the checks that passed.

    Args:
        mechanism: a `Mechanism`, registered or not (the registered ones stay as they were), or the name of one.
        only: names of `CHECKS` (default: all).
        slots: length of the streams, at least 20; the check of memory takes 200 times as many.
        seed: of the streams, the noise and the adversary. The same seed fails in the same slot.

    Raises:
        CheckFailed: at the first check that fails, with the problem and the call that reproduces it.
        InvalidOption: for an unknown check, or too few slots.
        UnknownMechanism: for a name that is not registered.
    """
    if slots < 20:
        problem = f"The checks need at least 20 slots, not {slots}."
        raise InvalidOption(problem, "Give more slots, so that windows fill.", option="slots", value=slots)
    chosen = tuple(CHECKS) if only is None else tuple(only)
    for name in chosen:
        if name not in CHECKS:
            fix = f"Checks: {', '.join(CHECKS)}."
            raise InvalidOption(f"Unknown check {name!r}.", fix, option="only", value=name)
    if isinstance(mechanism, str):
        _run(chosen, Subject(find_mechanism(mechanism), slots, seed))
    else:
        with available(mechanism):
            _run(chosen, Subject(mechanism, slots, seed))
    return chosen


def _run(names: Collection[str], subject: Subject) -> None:
    """Run checks; an error that the mechanism raises fails the check too."""
    for name in names:
        try:
            CHECKS[name](subject)
        except Broken as broken:
            raise CheckFailed(name, subject, *broken.args).with_traceback(broken.__traceback__) from None
        except Exception as error:
            problem = f"it raises {type(error).__name__}: {error}"
            raise CheckFailed(name, subject, problem, subject.last_slot()) from error
