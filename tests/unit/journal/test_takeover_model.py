"""Model of writers that take over from each other: every interleaving of three writers over one slot (spec 10).

The model is of a commit protocol that writes every draw ahead into a witness file. It runs no code of the journal.
A writer raises the fence (R0), copies the newest older witness and removes older ones. Then it takes the draw that it found,
or makes its own and writes it ahead (C4), destroys the key of the slot (C5), and commits (C6). It may die between any two
steps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import pytest

WRITERS = 3


class Witness(NamedTuple):
    """Witness file of one fence: the draw of the slot, if there is one, and whether the slot's key still exists."""

    draw: int | None = None
    has_key: bool = True


class Writer(NamedTuple):
    """Writer before its next step, with its fence and the draw that it holds."""

    step: str
    fence: int = 0
    draw: int | None = None
    copied: Witness | None = None


class State(NamedTuple):
    """Database, witness folder and writers.

    `sent` are the draws of which the database received a part: it may keep them on its pages, committed or not.
    """

    fence: int
    stored: int | None
    sent: frozenset[int]
    files: tuple[tuple[int, Witness], ...]
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
        case "raise":  # R0: the transaction of C6 locks the row of the fence
            if any(other.step == "C6 commit" for other in state.writers):
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
                return after("done")
            if fence not in files:  # a newer writer removed it: this one is fenced
                return after("dead")
            found = files[fence]
            if found.draw is not None:  # R4
                return after("C6", writer=writer._replace(draw=found.draw))
            if not found.has_key:
                return after("lost")
            return after("C5" if fault == "C5 first" else "C4", writer=writer._replace(draw=number))
        case "C4":
            if fence in files:
                files[fence] = files[fence]._replace(draw=writer.draw)
            return after("C6" if fault == "C5 first" else "C5")
        case "C5":
            if fence in files:
                files[fence] = files[fence]._replace(has_key=False)
            return after("C4" if fault == "C5 first" else "C6")
        case "C6":  # compares the fence and the next slot before any part of the draw is sent
            assert writer.draw is not None
            sent = state.sent | {writer.draw}
            if state.fence != fence or state.stored is not None:
                if fault == "draw destroyed" and fence in files:  # wrong: the next writer may not have copied it yet
                    files[fence] = files[fence]._replace(draw=None)
                ended = "dead" if state.stored is None else "done"
                return after(ended, sent=sent if fault == "no fence check" else state.sent)
            return after("C6 commit", sent=sent)
        case "C6 commit":
            return after("done", stored=writer.draw)
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
    start = State(0, None, frozenset(), ((0, Witness()),), (Writer(first),) * WRITERS)
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
    assert states == 17_228


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("copy first", "two draws"),
        ("C5 first", "the key is destroyed"),
        ("no fence check", "two draws"),
        ("draw destroyed", "the key is destroyed"),
    ],
)
def test_a_wrong_order_is_found(fault: str, found: str) -> None:
    _, violation = explore(fault)
    assert violation is not None
    assert found in violation
