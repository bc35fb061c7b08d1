"""Enrolment over HTTP: the rules are the registry's, and a person with a link does the same without an id in any path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.unit.service.service_parts import ORIGIN_US, SLOTS, Service, make_service, set_wall, write_journal
from wevent.journal import open_journal
from wevent.publishing import loop, registrations
from wevent.settings.values import SECOND_US, format_time

NEXT = SLOTS + 2
"""The slot after the open one: its roster is made when the open one is over."""


@pytest.fixture
def service(tmp_path: Path) -> Service:
    return make_service(tmp_path, write_journal(tmp_path))


def put(service: Service, user: str, body: dict[str, Any], query: str = "") -> httpx.Response:
    return service.ask("PUT", f"/v1/users/{user}/requirement{query}", "enrol", json=body)


def apply(service: Service) -> None:
    """What a publisher does at the next boundary, here at once."""
    registrations.apply_changes(service.context.journal)


def test_somebody_new_holds_what_they_choose(service: Service) -> None:
    expected = {
        "requirement": {"window": 4, "epsilon": 0.1, "level": "High/Small", "span": "4 minutes"},
        "in_force_from": NEXT,
        "in_force_time": format_time(ORIGIN_US + (NEXT - 1) * 60 * SECOND_US),
        "earlier_until": None,
        "earlier_until_time": None,
    }
    for body in ({"level": "High/Small"}, {"privacy": "High", "window": "Small"}):
        told = put(service, "ann", body, "?dry_run=true").json()
        assert {name: told[name] for name in expected} == expected
        assert "only one user holds" in told["notes"][0]
    assert service.ask("GET", "/v1/users/ann/requirement", "enrol").status_code == 404
    assert put(service, "ann", {"level": "High/Small"}).status_code == 200
    held = service.ask("GET", "/v1/users/ann/requirement", "enrol").json()
    assert held == {**expected, "queued": True, "notes": []}
    apply(service)
    held = service.ask("GET", "/v1/users/ann/requirement", "enrol").json()
    assert (held["in_force_from"], held["earlier_until"], held["queued"]) == (SLOTS + 1, None, False)


def test_a_change_behind_a_long_queue_is_announced_for_its_slot(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "_CHANGES_PER_MINUTE", 3)
    told = [put(service, f"new{number}", {"level": "High/Small"}).json()["in_force_from"] for number in range(7)]
    assert told == [NEXT] * 3 + [NEXT + 1] * 3 + [NEXT + 2]


@pytest.mark.parametrize("second", [0.5, 1.5, 59.0])
@pytest.mark.parametrize("later", [1, 2, 40])
def test_no_change_is_promised_for_a_slot_that_is_past(service: Service, later: int, second: float) -> None:
    """The publisher stood still: the slots that are due share a roster, and the one after the next is the first without."""
    now = SLOTS + later  # the slot of now; the one before it is due one second after its end
    set_wall(now, second)
    first = max(SLOTS, now - 2 if second < 1 else now - 1) + 2
    assert first >= now
    told = put(service, "ann", {"level": "High/Small"}).json()
    assert (told["in_force_from"], told["earlier_until"]) == (first, None)
    assert service.ask("GET", "/v1/users/ann/requirement", "enrol").json()["in_force_from"] == first
    assert service.ask("DELETE", "/v1/users/1/requirement", "enrol").json()["in_force_from"] == first


def test_a_change_is_active_at_once_and_the_earlier_choice_for_its_own_window(service: Service) -> None:
    told = put(service, "1", {"window": "4m", "epsilon": 0.5}).json()
    assert told["requirement"] == {"window": 4, "epsilon": 0.5, "level": None, "span": "4 minutes"}
    assert (told["in_force_from"], told["earlier_until"]) == (NEXT, NEXT - 1 + 8)
    assert told["earlier_until_time"] == format_time(ORIGIN_US + (NEXT + 6) * 60 * SECOND_US)
    held = service.ask("GET", "/v1/users/1/requirement", "enrol").json()
    assert {name: told[name] for name in held if name not in ("queued", "notes")} | {
        "queued": True,
        "notes": [],
    } == held
    assert put(service, "0", {"window": 8, "epsilon": "0.5"}).json()["earlier_until"] == NEXT - 1 + 4
    rounded = put(service, "2", {"window": "210s", "epsilon": 0.5}).json()
    assert "no whole number of slots" in rounded["notes"][0]


def test_a_change_back_at_the_same_boundary_leaves_no_trace(service: Service) -> None:
    put(service, "1", {"window": 4, "epsilon": 0.5})
    told = put(service, "1", {"window": 8, "epsilon": 0.6}).json()
    assert told["earlier_until"] is None
    held = service.ask("GET", "/v1/users/1/requirement", "enrol").json()
    assert (held["in_force_from"], held["earlier_until"]) == (1, None)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"level": "Hugh/Small"},
        {"level": "High/Small", "epsilon": 1},
        {"privacy": "High"},
        {"window": 4},
        {"window": 99, "epsilon": 0.5},
        {"window": 0, "epsilon": 0.5},
        {"window": 4, "epsilon": 0},
        {"window": 4, "epsilon": "nan"},
        {"window": -4, "epsilon": 0.5},
        {"window": "4 fortnights", "epsilon": 0.5},
        {"user": "ann", "level": "High/Small"},
    ],
)
def test_what_nobody_may_hold_is_refused(service: Service, body: dict[str, Any]) -> None:
    answer = put(service, "ann", body)
    assert answer.status_code == 400, answer.text
    with open_journal(service.context.journal) as journal:
        assert journal.registry.pending() == 0


def test_a_requirement_that_is_stated_in_no_way_is_told_the_keys_of_the_body(service: Service) -> None:
    told = put(service, "ann", {"privacy": "High"}).json()["detail"]
    assert "must have level, or window" in told
    assert "/v1/levels" in told
    assert "--" not in told


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "/v1/users/1/requirement?dryrun=true"),
        ("DELETE", "/v1/users/1/requirement?dry_run=true"),
        ("DELETE", "/v1/users/1?dry_run=true"),
        ("POST", "/v1/users?dry-run=true"),
        ("POST", "/v1/users?dry_run=true&Replace=true"),
    ],
)
def test_a_misspelt_parameter_changes_nothing(service: Service, method: str, path: str) -> None:
    """Whoever means to rehearse must not have done it."""
    body = {"json": {"level": "High/Small"}} if method == "PUT" else {}
    answer = service.ask(method, path, "enrol", **body)
    assert answer.status_code == 400
    assert "Unknown query parameter" in answer.json()["detail"]
    assert service.ask(method, path, "ingest", **body).status_code == 403  # who may not ask is not told what there is
    with open_journal(service.context.journal) as journal:
        assert journal.registry.pending() == 0


def test_nobody_to_leave_is_not_told_a_command(service: Service) -> None:
    for path in ("/v1/users/nobody/requirement", "/v1/users/nobody"):
        answer = service.ask("DELETE", path, "enrol")
        assert answer.status_code == 404
        assert answer.json()["detail"].endswith("Check the id.")


def test_who_leaves_is_told_what_stays(service: Service) -> None:
    left = service.ask("DELETE", "/v1/users/1/requirement", "enrol").json()
    assert (left["in_force_from"], left["kept_until"]) == (NEXT, NEXT - 1 + 8 - 1)
    assert "The id is kept through slot" in left["notes"][-1]
    assert service.ask("GET", "/v1/users/1/requirement", "enrol").status_code == 404
    assert service.ask("DELETE", "/v1/users/1/requirement", "enrol").status_code == 404
    apply(service)
    export = service.ask("GET", "/v1/users/1", "enrol").json()
    assert export["memberships"] == []
    assert [(row["last"], row["kept_until"]) for row in export["earlier"]] == [(SLOTS, SLOTS + 8 - 1)]


def test_erasing_leaves_a_digest_that_is_exported_too(service: Service) -> None:
    told = service.ask("DELETE", "/v1/users/2", "enrol").json()
    assert "A keyed digest of the id is kept" in told["notes"][-1]
    export = service.ask("GET", "/v1/users/2", "enrol").json()
    assert export["queued"] == [{"action": "erase", "requirement": None}]
    apply(service)
    assert b"erased:" not in service.ask("GET", "/v1/users/2", "enrol").content
    assert len(service.ask("GET", "/v1/users/2", "enrol").json()["earlier"]) == 1
    with open_journal(service.context.journal) as journal:
        assert not journal.registry.remembers("2")


def test_an_export_has_all_that_is_held_and_nothing_else(service: Service) -> None:
    put(service, "ann", {"level": "Low/Large"})
    assert service.ask("GET", "/v1/users/ann", "enrol").json() == {
        "memberships": [],
        "earlier": [],
        "queued": [
            {
                "action": "set",
                "requirement": {"window": 8, "epsilon": 0.9, "level": "Low/Large", "span": "8 minutes"},
            }
        ],
        "joined_by_request": True,
    }
    known = service.ask("GET", "/v1/users/3", "enrol").json()
    row = {"window": 8, "epsilon": 0.5, "level": None, "span": "8 minutes", "first": 1, "last": None}
    assert known == {"memberships": [row], "earlier": [], "queued": [], "joined_by_request": False}
    assert service.ask("GET", "/v1/users/nobody", "enrol").status_code == 404


def send_file(service: Service, text: str, query: str = "", kind: str = "text/csv") -> httpx.Response:
    return service.ask("POST", f"/v1/users{query}", "enrol", content=text, headers={"Content-Type": kind})


def test_a_file_adds_and_changes_and_lets_nobody_leave(service: Service) -> None:
    text = "user,window,epsilon\nann,4,0.5\n0,4,0.5\n1,4,0.1\n"
    expected = {"added": 1, "changed": 1, "removed": 0, "unchanged": 1, "in_transition": 1}
    for query in ("?dry_run=true", ""):
        told = send_file(service, text, query).json()
        assert {name: told[name] for name in expected} == expected
    again = send_file(service, '{"user":"ann","window":4,"epsilon":0.5}\n', kind="application/x-ndjson").json()
    assert (again["added"], again["changed"], again["unchanged"]) == (0, 0, 1)
    with open_journal(service.context.journal) as journal:
        assert [change.user for change in journal.registry.queued()] == ["1", "ann"]
        assert len(journal.registry.joined_by_request()) == 1


def test_a_file_may_replace_everybody_if_that_is_said(service: Service) -> None:
    text = "user,window,epsilon\n0,4,0.5\n"
    refused = send_file(service, text, "?replace=true")
    assert refused.status_code == 400
    assert "allow_removals=true" in refused.json()["detail"]
    told = send_file(service, text, "?replace=true&allow_removals=true").json()
    assert (told["removed"], told["unchanged"]) == (59, 1)


def test_a_bad_file_is_told_by_its_line_and_not_by_its_path(service: Service) -> None:
    for text, said in (
        ("user,level\nann,High/Small\nbob,Hugh/Small\n", "the body, line 3"),
        ("user\nann\n", "Its columns"),
        ("", "the body"),
    ):
        refused = send_file(service, text)
        assert refused.status_code == 400
        assert said in refused.json()["detail"], refused.text
        assert "/" not in refused.json()["detail"].replace("Hugh/Small", "").replace("High/Small", "")
    assert send_file(service, "user,level\n", kind="text/plain").status_code == 415


def test_a_person_with_a_link_does_the_same_for_themselves(service: Service) -> None:
    made = service.ask("POST", "/v1/users/4/link", "enrol")
    assert made.status_code == 201
    address, _, text = made.json()["url"].partition("#")
    assert address == "http://127.0.0.1:8080/choose"
    assert made.json()["expires"].endswith("Z")
    mine = {"Authorization": f"Bearer {text}"}

    def me(method: str, path: str = "", **more: Any) -> httpx.Response:
        return service.ask(method, f"/v1/me{path}", None, headers=mine, **more)

    assert me("GET", "/requirement").json()["requirement"]["window"] == 4
    told = me("PUT", "/requirement", json={"level": "High/Large"})
    assert told.json()["earlier_until"]
    assert me("GET").json() == service.ask("GET", "/v1/users/4", "enrol").json()
    assert me("DELETE", "/requirement").json()["kept_until"]
    assert me("PUT", "/requirement", json={"level": "High/Large"}).status_code == 200  # who left may come back
    assert service.ask("GET", "/v1/users/5", None, headers=mine).status_code == 403
    assert service.ask("GET", "/v1/about", None, headers=mine).status_code == 200
    assert me("DELETE").status_code == 200
    assert me("GET").status_code == 401, "erased, and the link with them"
    assert me("PUT", "/requirement", json={"level": "High/Large"}).status_code == 401


@pytest.mark.parametrize(
    "wish",
    [
        {"window": 1, "epsilon": 2e-9},
        {"window": 4, "epsilon": 0.1},  # the numbers of a level are not its words
        {"window": "4m", "epsilon": "0.1"},
        {"window": 4, "privacy": "High"},
        {"window": "Small", "epsilon": 0.1},
        {"level": None, "window": "1", "epsilon": None, "privacy": None},
        {"level": "High/1"},
        {"privacy": "0.1", "window": "Small"},
        {},
    ],
)
def test_a_link_takes_offered_levels_alone(service: Service, wish: dict[str, Any]) -> None:
    text = service.ask("POST", "/v1/users/4/link", "enrol").json()["url"].partition("#")[2]
    mine = {"Authorization": f"Bearer {text}"}
    before = service.ask("GET", "/v1/users/4", "enrol").json()
    for dry_run in ("", "?dry_run=true"):
        refused = service.ask("PUT", f"/v1/me/requirement{dry_run}", None, headers=mine, json=wish)
        assert refused.status_code == 400, refused.text
        assert "epsilon" not in refused.json()["detail"], "numbers are not offered"
    assert service.ask("GET", "/v1/users/4", "enrol").json() == before
    for level in ({"level": "High/Small"}, {"privacy": "Low", "window": "Large"}):
        told = service.ask("PUT", "/v1/me/requirement", None, headers=mine, json=level)
        assert told.json()["requirement"]["level"] in ("High/Small", "Low/Large")


@pytest.mark.parametrize("keys", [("level",), ("privacy", "window"), ("window", "epsilon")])
def test_an_answer_repeats_little_of_what_was_sent(service: Service, keys: tuple[str, ...]) -> None:
    for number in (900, 30_000):
        body = dict.fromkeys(keys, "x" * number)
        refused = service.ask("PUT", "/v1/users/4/requirement", "enrol", json=body)
        assert refused.status_code == 400
        assert len(refused.content) < 4000
    refused = send_file(service, f"user,level\nann,{'x' * 60_000}\n")
    assert refused.status_code == 400
    assert "the body, line 2" in refused.json()["detail"]
    assert len(refused.content) < 4000


def test_all_links_of_a_person_end_together(service: Service) -> None:
    texts = [service.ask("POST", "/v1/users/4/link", "enrol").json()["url"].partition("#")[2] for _ in range(2)]
    assert service.ask("DELETE", "/v1/users/4/links", "enrol").status_code == 204
    ended = service.ask("POST", "/v1/users/4/link", "enrol").json()["url"].partition("#")[2]
    mine = {"Authorization": f"Bearer {ended}"}
    assert service.ask("DELETE", "/v1/me/link", None, headers=mine).status_code == 204
    for text in (*texts, ended):
        assert service.ask("GET", "/v1/me", None, headers={"Authorization": f"Bearer {text}"}).status_code == 401
    assert service.ask("GET", "/v1/me", "admin").status_code == 403  # an administrator is no person here


def test_bodies_of_requirements_are_small_json(service: Service) -> None:
    path = "/v1/users/ann/requirement"
    assert service.ask("PUT", path, "enrol", content=b"{}").status_code == 415
    headers = {"Content-Type": "application/json"}
    assert service.ask("PUT", path, "enrol", content=b"x" * 70_000, headers=headers).status_code == 413
    assert service.ask("PUT", path, "enrol", content=b"[" * 30_000, headers=headers).status_code == 400
