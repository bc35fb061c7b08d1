"""What a bug of the zoo is, and how one is put in: one thing replaced at run time, everything else as it is shipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from wevent.auditing.audit_subject import AuditSubject
from wevent.auditing.exact.lives import Life
from wevent.core.requirements import Population

Undone = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True, kw_only=True)
class Persistence:
    """How much an audit looks before it says that there is nothing.

    Attributes:
        seconds: about how long, if `rounds` do not take longer.
        rounds: searches of every case, lives, pairs of runs: made however long they take, so that what is found does not
            depend on the speed of a machine. The black box does not know them: it looks by time.
    """

    seconds: float = 0.0
    rounds: int = 0


@dataclass(frozen=True, kw_only=True)
class Subject:
    """What an audit is pointed at: the product with a bug, or its healthy counterpart.

    Attributes:
        aided: whether an audit may begin where the bug matters: with the population, decisions, lives, records below.
        undone: while it is entered, the code has the bug; a healthy subject has nothing to enter.
        mechanism: the mechanism, for audits of mechanisms.
        population: one in which the bug costs something.
        life: changes of that population, and restores, for the exact audit.
        script: decisions to force in each slot, p to publish and s to skip, for the audit of a journal's windows.
        lives: seeds of whole lives to begin with: in most nothing happens that the bug would spoil.
        records: what `pairs_of` is asked for to begin with: kind of record, way, format, seed.
    """

    aided: bool = True
    undone: Undone = nullcontext
    mechanism: AuditSubject | None = None
    population: Population | None = None
    life: Life = ()
    script: str = ""
    lives: tuple[int, ...] = ()
    records: tuple[tuple[str, str, str | None, int], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Bug:
    """A mistake that somebody made, or could make.

    Attributes:
        name: what it is called.
        sentence: what is wrong.
        origin: where it comes from: somebody's code, a line of the specification, a repair.
        broken: the product with it.
        healthy: the product without it, otherwise the same.
        audits: which audits are meant for it, the quickest first.
    """

    name: str
    sentence: str
    origin: str
    broken: Subject
    healthy: Subject
    audits: tuple[str, ...]


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Something else stands under a name of a class or a module, for a while."""
    before = vars(owner)[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def together(*replacements: tuple[Any, str, Any]) -> Undone:
    """Several names replaced at once: one thing that is written in two places."""

    @contextmanager
    def undone() -> Iterator[None]:
        with ExitStack() as stack:
            for owner, name, value in replacements:
                stack.enter_context(replaced(owner, name, value))
            yield

    return undone
