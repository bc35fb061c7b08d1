"""Model of writers that take over from each other: every interleaving of three writers over one slot (spec 10).

The model is of the commit protocol in `wevent.journal.journal`. It runs no code of the journal. A writer raises the fence,
copies the newest older witness and removes older ones. Then it takes the draw that it found, or makes its own from the events
of the slot and writes it ahead. It commits, and only then it destroys the key of the slot's events, which all writers share.
It may die between any two steps. A writer that is refused before it sent anything takes its draw back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import pytest

WRITERS = 3


class Witness(NamedTuple):
    """Witness file of one fence: the draw of the slot, if there is one."""

    draw: int | None = None


class Writer(NamedTuple):
    """Writer before its next step, with its fence and the draw that it holds."""

    step: str
    fence: int = 0
    draw: int | None = None
    copied: Witness | None = None


class State(NamedTuple):
    """Database, witness folder and writers.

    `sent` are the draws of which the database received a part: it may keep them on its pages, committed or not. `has_key`
    tells whether the events of the slot can still be read.
    """

    fence: int
    stored: int | None
    sent: frozenset[int]
    files: tuple[tuple[int, Witness], ...]
    has_key: bool
    writers: tuple[Writer, ...]


def advance(state: State, number: int, fault: str) -> State | None:
    """Return the state after one step of a writer, None if the writer has ended or waits for a row lock."""
    writer, files = state.writers[number], dict(state.files)
    step, fence = writer.step, writer.fence

    def after(next_step: str, *, writer: Writer = writer, **changed: object) -> State:
        writers = list(state.writers)
        writers[number] = writer._replace(step=next_step)
        return state._replace(writers=tuple(writers), files=tuple(sorted(files.items())), **changed)  # type: ignore[arg-type]

    match step:
        case "copy first":  # wrong: before the fence is raised
            return after("raise", writer=writer._replace(copied=files[max(files)]))
        case "raise":  # the transaction of a commit locks the row of the fence
            if any(other.step == "committing" for other in state.writers):
                return None
            raised = state.fence + 1
            if writer.copied is not None:
                files[raised] = writer.copied
            return after(
                "copy" if writer.copied is None else "remove", writer=writer._replace(fence=raised), fence=raised
            )
        case "copy":
            older = [other for other in files if other < fence]
            if not older:  # a newer writer removed them: this one is fenced
                return after("dead")
            files[fence] = files[max(older)]
            return after("remove")
        case "remove":
            for older_fence in [other for other in files if other < fence]:
                del files[older_fence]
            return after("recover")
        case "recover":
            if state.stored is not None:
                return after("destroy key")
            if fence not in files:  # a newer writer removed it: this one is fenced
                return after("dead")
            found = files[fence].draw
            if found is not None:
                return after("send", writer=writer._replace(draw=found))
            if not state.has_key:
                return after("lost")
            return after("destroy key" if fault == "key first" else "write ahead", writer=writer._replace(draw=number))
        case "write ahead":
            if fence in files:
                files[fence] = Witness(writer.draw)
            return after("send")
        case "send":  # compares the fence and the next slot before any part of the draw is sent
            assert writer.draw is not None
            sent = state.sent | {writer.draw}
            if state.fence != fence or state.stored is not None:
                is_own = writer.draw == number  # a draw that was found may have been sent by a writer before
                if fence in files and (is_own or fault == "found draw taken back"):
                    files[fence] = Witness()
                ended = "dead" if state.stored is None else "done"
                return after(ended, sent=sent if fault == "no fence check" else state.sent)
            return after("committing", sent=sent)
        case "committing":
            return after("done" if fault == "key first" else "destroy key", stored=writer.draw)
        case "destroy key":
            return after("write ahead" if fault == "key first" else "done", has_key=False)
        case _:
            return None


def kill(state: State, number: int) -> State | None:
    """Return the state after a writer dies; a transaction that it had open is undone."""
    if state.writers[number].step in ("dead", "done", "lost"):
        return None
    writers = list(state.writers)
    writers[number] = writers[number]._replace(step="dead")
    return state._replace(writers=tuple(writers))


def following(state: State, fault: str) -> Iterator[State]:
    for number in range(WRITERS):
        for found in (advance(state, number, fault), kill(state, number)):
            if found is not None:
                yield found


def find_violation(state: State) -> str | None:
    if len(state.sent) > 1:
        return "two draws of one slot reached the database"
    if any(writer.step == "lost" for writer in state.writers):
        return "the key is destroyed and there is no draw"
    if state.stored is None and all(writer.step == "done" for writer in state.writers):
        return "nobody stored the slot"
    return None


def explore(fault: str) -> tuple[int, str | None]:
    """Visit every state that can be reached; return how many there are, and the first violation."""
    first = "copy first" if fault == "copy first" else "raise"
    start = State(0, None, frozenset(), ((0, Witness()),), True, (Writer(first),) * WRITERS)
    seen, queue = {start}, deque([start])
    while queue:
        for found in following(queue.popleft(), fault):
            if found in seen:
                continue
            if (violation := find_violation(found)) is not None:
                return len(seen), violation
            seen.add(found)
            queue.append(found)
    return len(seen), None


def test_in_every_state_a_slot_has_one_draw() -> None:
    states, violation = explore("")
    assert violation is None
    assert states > 10_000


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("copy first", "two draws"),
        ("key first", "the key is destroyed"),
        ("no fence check", "two draws"),
        ("found draw taken back", "two draws"),
    ],
)
def test_a_wrong_order_is_found(fault: str, found: str) -> None:
    _, violation = explore(fault)
    assert violation is not None
    assert found in violation
