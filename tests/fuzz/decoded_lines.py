"""Lines decoded together, alone, in another order and again: nothing that one line says changes another's event."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wevent.core.limits import MAX_LABEL_BYTES
from wevent.streams.decoding import PROBLEMS, Decoded, DelimitedDecoder
from wevent.streams.json_lines import ObjectDecoder

Made = tuple[list[tuple[int, object, int]], list[tuple[int, int]]]


def check_alone(lines: Sequence[bytes], make_decoder: Callable[[], DelimitedDecoder | ObjectDecoder]) -> None:
    """Every line gives the same together with the others as by itself."""
    by_itself = make_decoder()
    alone = {line: _made(by_itself.decode(line), 1) for line in set(lines)}
    shared = make_decoder()
    for order in (lines, lines[::-1]):
        events = [event for line in order for event in alone[line][0]]
        malformed = [(row, problem) for row, line in enumerate(order) for _, problem in alone[line][1]]
        together = _made(shared.decode(b"".join(order)), len(order))
        assert together == (events, malformed), "a line changed what another one gives"
    for line, (events, _) in alone.items():
        shared.time_text(line[:-1])
        for event in events:
            _check_event(event, line)


def _made(decoded: Decoded, lines: int) -> Made:
    """The events, and which lines are malformed and why."""
    times, users, cells = decoded.batch
    assert len(times) == len(users) == len(cells)
    malformed = list(zip(decoded.malformed.tolist(), decoded.problems.tolist(), strict=True))
    assert all(0 <= row < lines and problem in PROBLEMS for row, problem in malformed)
    assert len(times) + len(malformed) <= lines
    return list(zip(times.tolist(), users.values(), cells.tolist(), strict=True)), malformed


def _check_event(event: tuple[int, object, int], line: bytes) -> None:
    time, user, cell = event
    assert isinstance(time, int)
    assert isinstance(cell, int)
    assert cell >= -1
    spelled = str(user).encode("utf-8", "surrogatepass")
    assert 0 < len(spelled) <= MAX_LABEL_BYTES, "an id that nobody can have"
    assert b"\0" not in line, "a record with a NUL in it"
