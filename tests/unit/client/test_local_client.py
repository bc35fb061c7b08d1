"""The device's own path in the local model: the class of a report, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from wevent import InvalidReports, Requirement
from wevent.client.local_client import LocalClient
from wevent.people.classes import Key

A, B, CORNER = (4, 1_000_000_000), (8, 2_000_000_000), (8, 1_000_000_000)
CLASSES = (A, B, CORNER)


def held(*, slot: int = 1) -> LocalClient:
    client = LocalClient(3)
    client.set_requirement(Requirement.from_nano(*A), slot)
    return client


def classes_of(client: LocalClient, slots: range) -> list[Key]:
    return [(made.window, made.nano) for made in (client.report(0, slot, CLASSES) for slot in slots)]


def test_a_change_is_counted_as_strict_as_both_for_the_earlier_window() -> None:
    client = held()
    assert classes_of(client, range(1, 3)) == [A, A]
    client.set_requirement(Requirement.from_nano(*B), 3)
    assert classes_of(client, range(3, 8)) == [CORNER, CORNER, CORNER, B, B]


def test_a_change_back_keeps_the_other_requirement_for_its_own_window() -> None:
    client = held()
    client.report(0, 1, CLASSES)
    client.set_requirement(Requirement.from_nano(*B), 2)
    client.report(0, 2, CLASSES)
    client.set_requirement(Requirement.from_nano(*A), 3)
    assert classes_of(client, range(3, 12)) == [CORNER] * 7 + [A, A]


def test_changes_before_any_slot_leave_no_trace() -> None:
    client = held(slot=5)
    client.set_requirement(Requirement.from_nano(*B), 5)
    assert classes_of(client, range(5, 7)) == [B, B]


def test_a_report_is_drawn_once_and_sent_again_with_its_class() -> None:
    client = held()
    made = client.report(2, 1, CLASSES)
    assert made.epsilon == 0.25
    again = LocalClient(3, client.state)
    assert all(again.report(0, 1, (B,), B) == made for _ in range(50))


def test_the_path_outlives_the_process() -> None:
    client = held()
    client.report(0, 1, CLASSES)
    client.set_requirement(None, 2)
    client = LocalClient(3, client.state)
    client.set_requirement(Requirement.from_nano(*B), 3)
    assert classes_of(client, range(3, 6)) == [CORNER, CORNER, B]


def test_a_table_without_a_strict_class_gets_the_corner() -> None:
    client = held()
    client.report(0, 1, CLASSES)
    client.set_requirement(Requirement.from_nano(*B), 2)
    made = client.report(0, 2, (A, B))
    assert (made.window, made.nano) == CORNER


@pytest.mark.parametrize("told", [A, B, (8, 1_000_000_001), (7, 1_000_000_000)])
def test_a_looser_class_of_the_server_is_refused(told: Key) -> None:
    client = held()
    client.report(0, 1, CLASSES)
    client.set_requirement(Requirement.from_nano(*B), 2)
    with pytest.raises(InvalidReports, match="looser than a requirement"):
        client.report(0, 2, CLASSES, told)
    made = client.report(0, 2, CLASSES, (9, 900_000_000))
    assert (made.window, made.nano) == (9, 900_000_000)


def test_no_budget_gives_a_uniform_report() -> None:
    assert {held().report(0, 1, CLASSES, (10, 9)).answer for _ in range(200)} == {0, 1, 2, 3}


@pytest.mark.parametrize(
    "wrong",
    [
        lambda client: client.report(0, 1, CLASSES),
        lambda client: client.set_requirement(None, 2),
        lambda client: client.report(9, 3, CLASSES),
        lambda client: (client.set_requirement(None, 3), client.report(0, 3, CLASSES)),
    ],
    ids=["earlier slot", "change in the past", "other cell", "nothing held"],
)
def test_what_cannot_be_reported_is_refused(wrong: Callable[[LocalClient], object]) -> None:
    client = held()
    client.report(0, 2, CLASSES)
    with pytest.raises(InvalidReports):
        wrong(client)


@pytest.mark.parametrize("impossible", [(8, -1_000_000_000), (0, 1_000), (-8, 1_000)])
def test_an_impossible_class_is_refused_from_the_table_and_from_the_server(impossible: Key) -> None:
    with pytest.raises(InvalidReports, match="negative"):
        held().report(0, 1, CLASSES, told=impossible)
    with pytest.raises(InvalidReports, match="negative"):
        held().report(0, 1, (*CLASSES, impossible))
