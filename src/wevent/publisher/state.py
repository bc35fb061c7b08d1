"""A publisher's state as bytes: a versioned, self-describing format.

The format number changes when older code could not read newer bytes; semantic versioning covers it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec

from wevent.core.options import Options
from wevent.core.requirements import Population, Requirement
from wevent.errors import InvalidState

FORMAT = 1
_MAGIC = b"wevent-state\x00"
Count = Annotated[int, msgspec.Meta(ge=0)]


@dataclass(frozen=True, kw_only=True)
class State(Options):
    """What `Publisher.state` stores: options, charges and past outputs; no count, no secure randomness."""

    cells: int | list[Any]
    declared: list[tuple[int, int]]
    population: list[tuple[int, int, Count, Count]]
    slot: Annotated[int, msgspec.Meta(ge=1)]
    ledger: tuple[list[tuple[int, int]], bytes]
    last_fresh: Count
    last_charges: list[Annotated[int, msgspec.Meta(ge=-1)]]
    measurement: list[int | float]
    smoothed: Any
    seeded: bool
    noise: str | None = None
    memory: Any = None
    turnover: Count = 0
    new_users: Count = 0


def dump(state: State) -> bytes:
    """Magic, format number, then the state."""
    return _MAGIC + msgspec.msgpack.encode([FORMAT, state], enc_hook=str)


def load(data: bytes) -> State:
    """Restore a state from `dump`.

    Raises:
        InvalidState: for foreign, damaged or newer bytes.
    """
    if not isinstance(data, (bytes, bytearray, memoryview)) or not bytes(data).startswith(_MAGIC):
        raise _invalid("not the bytes of a state")
    body = bytes(data)[len(_MAGIC) :]
    try:
        number = msgspec.msgpack.decode(body)[0]
        if number != FORMAT:
            raise _invalid(f"format {number}", format=number)
        return msgspec.msgpack.decode(body, type=tuple[int, State])[1]
    except (msgspec.MsgspecError, UnicodeDecodeError, IndexError, TypeError, KeyError):
        raise _invalid("damaged bytes") from None


def population_of(rows: Iterable[tuple[int, int, int, int]]) -> Population:
    """Return the population of stored (window, nano-epsilons, size, own) rows."""
    classes = [(Requirement.from_nano(window, nano), size, own) for window, nano, size, own in rows]
    return Population({one: size for one, size, _ in classes}, {one: own for one, _, own in classes})


def _invalid(problem: str, **facts: Any) -> InvalidState:
    return InvalidState(
        f"Invalid publisher state: {problem}.",
        "Use the bytes of Publisher.state() unchanged.",
        **facts,
    )
