"""State bytes: what is inside, what never is, and what is refused."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from tests.unit.scripted import ScriptedNoise
from wevent import InvalidState, Population, Publisher, Requirement, SecureNoise, SeededNoise
from wevent.publisher.state import FORMAT

MAGIC = b"wevent-state\x00"
POPULATION = Population({Requirement(4, 1): 50, Requirement(5, 2): 50})


def publisher(**options) -> Publisher:
    return Publisher(POPULATION, ["n", "s"], "pbd", noise=options.pop("noise", SeededNoise(1)), **options)


def damaged(change) -> bytes:
    """A state whose decoded fields were changed."""
    number, fields = msgspec.msgpack.decode(publisher().state()[len(MAGIC) :])
    change(fields)
    return MAGIC + msgspec.msgpack.encode([number, fields])


def test_the_layout_is_as_documented() -> None:
    state = publisher().state()
    assert state.startswith(MAGIC)
    number, fields = msgspec.msgpack.decode(state[len(MAGIC) :])
    assert number == FORMAT == 1
    assert fields["mechanism"] == "pbd"


def test_own_users_are_in_a_state() -> None:
    moving = Population(dict(POPULATION.items()), {Requirement(4, 1): 50, Requirement(5, 2): 20})
    made = publisher()
    made.update(moving, turnover=0)
    restored = Publisher.restore(made.state())
    assert restored.population == moving != POPULATION
    assert restored.state() == made.state()
    with pytest.raises(InvalidState):
        Publisher.restore(damaged(lambda fields: fields["population"][0].__setitem__(3, 51)))


def test_nothing_of_the_counts_is_in_a_state() -> None:
    """Same outputs, different counts: same bytes."""
    states = []
    for counts in ([[11, 12], [13, 14]], [[0, 50], [50, 0]]):
        made = Publisher(POPULATION, 2, "pbd", noise=ScriptedNoise([False] * 9))
        for _ in range(9):
            made.step(counts)
        states.append(made.state())
    assert states[0] == states[1]


def test_another_source_may_take_over() -> None:
    made = publisher()
    assert isinstance(Publisher.restore(made.state(), noise=SecureNoise())._noise, SecureNoise)
    state = Publisher(POPULATION, 2, "pbd").state()
    one, two = (Publisher.restore(state, noise=SeededNoise(9)) for _ in range(2))
    assert one.step([[1, 2], [3, 4]]).to_dict() == two.step([[1, 2], [3, 4]]).to_dict()


@pytest.mark.parametrize(
    "data", [b"", b"wevent", b"wevent-state\x00", MAGIC + b"\xc1", MAGIC + b"\x05", MAGIC + b"\x90"]
)
def test_foreign_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidState):
        Publisher.restore(data)


def test_every_truncation_is_refused() -> None:
    state = publisher().state()
    for length in range(len(state)):
        with pytest.raises(InvalidState):
            Publisher.restore(state[:length])


def test_a_newer_format_is_refused_by_its_number() -> None:
    number, fields = msgspec.msgpack.decode(publisher().state()[len(MAGIC) :])
    with pytest.raises(InvalidState, match="format 2") as caught:
        Publisher.restore(MAGIC + msgspec.msgpack.encode([number + 1, fields]))
    assert caught.value.format == number + 1


def test_what_a_filter_knew_is_refused_if_it_is_something_else() -> None:
    tracking = Publisher(POPULATION, ["n", "s"], "pft", class_weights="equal", noise=SeededNoise(1))
    number, fields = msgspec.msgpack.decode(tracking.state()[len(MAGIC) :])
    for smoothed in ([], 7, "x", {}, {"level": [[-1], b""]}):
        fields["smoothed"] = smoothed
        with pytest.raises(InvalidState):
            Publisher.restore(MAGIC + msgspec.msgpack.encode([number, fields]))


def test_a_missing_or_mistyped_field_is_refused() -> None:
    for change in (lambda fields: fields.pop("slot"), lambda fields: fields.update(slot="1")):
        with pytest.raises(InvalidState):
            Publisher.restore(damaged(change))


@pytest.mark.parametrize(
    "change",
    [
        lambda fields: fields["ledger"].__setitem__(1, b"123"),
        lambda fields: fields["ledger"].__setitem__(1, b""),
        lambda fields: fields.update(slot=-5),
        lambda fields: fields.update(last_charges=[1]),
        lambda fields: fields.update(measurement=[1, 2, 3]),
        lambda fields: fields.update(measurement=[1, float("nan")]),
        lambda fields: fields.update(last_charges=[-2, 0]),
        lambda fields: fields.update(last_charges=[0, 10**18]),
        lambda fields: fields.update(last_fresh=1),
        lambda fields: fields.update(last_fresh=-1),
        lambda fields: fields.update(slot=2**60),
        lambda fields: fields["ledger"].__setitem__(0, [[4, 10**9], [4, 10**9]]),
        lambda fields: fields["ledger"].__setitem__(0, [[5, 2 * 10**9], [4, 10**9]]),
        lambda fields: fields["ledger"].__setitem__(0, [[4, 10**9]]),
    ],
)
def test_fields_that_contradict_each_other_are_refused(change) -> None:
    with pytest.raises(InvalidState):
        Publisher.restore(damaged(change))


def charges(*changes: tuple[int, int]) -> bytes:
    """A state of two classes, w = 4 and 5, with these charges: 9 places of probes, 9 of publications."""
    kept = np.zeros(18, dtype="<i8")
    for place, charge in changes:
        kept[place] = charge
    return damaged(lambda fields: fields["ledger"].__setitem__(1, kept.tobytes()))


@pytest.mark.parametrize(
    "changes",
    [
        [(1, -1)],
        [(10, -(2**63))],
        [(2, 10**9 + 1)],
        [(5, 2 * 10**9 + 1)],
        [(11, 2**63 - 1)],
        [(2, 10**9), (11, 1)],
        [(2, 2**62), (3, 2**62), (11, 2**62), (12, 2**62)],
    ],
)
def test_charges_that_no_gate_let_through_are_refused(changes: list[tuple[int, int]]) -> None:
    """They would give back what was spent: a negative charge at once, a sum that wraps soon."""
    with pytest.raises(InvalidState):
        Publisher.restore(charges(*changes))
    assert Publisher.restore(charges((2, 10**9), (15, 2 * 10**9))).ledger.spent().tolist() == [10**9, 2 * 10**9]


def test_a_state_is_read_field_by_field() -> None:
    fields = {
        "mechanism": "pbd",
        "neighbours": "add_remove",
        "max_cells_per_user": 1,
        "refund": False,
        "threshold": None,
        "cells": ["n", "s"],
        "declared": [[2, 10**9]],
        "population": [[2, 10**9, 40, 40]],
        "slot": 4,
        "ledger": [[[2, 10**9]], np.array([0, 250_000_000, 0, 125_000_000], dtype="<i8").tobytes()],
        "last_fresh": 3,
        "last_charges": [125_000_000],
        "measurement": [7, -2],
        "smoothed": [[7.0, -2.0], ["laplace", 8.0, 127.8]],
        "seeded": False,
        "noise": None,
    }
    restored = Publisher.restore(MAGIC + msgspec.msgpack.encode([1, fields]), noise=ScriptedNoise([False]))
    assert restored.slot == 4
    assert restored.ledger.spent().tolist() == [375_000_000]
    release = restored.step([[20, 20]])
    assert (release.slot, release.outcome, release.histogram.tolist()) == (4, "repeated", [7.0, -2.0])


@pytest.mark.parametrize(
    "change",
    [
        lambda fields: fields.update(declared=[[19, 10**9], [4, 10**9]]),  # a class without a row of the ledger
        lambda fields: fields.update(declared=[[4, 10**9]]),  # people in a class that was never declared
    ],
)
def test_a_shared_budget_is_for_what_was_declared(change) -> None:
    shared = Publisher(POPULATION, ["n", "s"], "bd", noise=SeededNoise(1))
    number, fields = msgspec.msgpack.decode(shared.state()[len(MAGIC) :])
    change(fields)
    with pytest.raises(InvalidState):
        Publisher.restore(MAGIC + msgspec.msgpack.encode([number, fields]))
