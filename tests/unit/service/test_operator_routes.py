"""What an operator asks: alive, ready, metrics and overview; and that no number of events is anywhere in them."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.unit.service.service_parts import SLOTS, WALL, Service, make_service, set_wall, write_journal
from wevent.publishing import registrations
from wevent.service import publishing_thread


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_journal(tmp_path_factory.mktemp("journal"))


@pytest.fixture
def service(tmp_path: Path, journal: Path) -> Service:
    return make_service(tmp_path, journal)


def test_health_needs_nothing(service: Service) -> None:
    assert service.ask("GET", "/healthz", None).json() == {"status": "ok"}


def test_ready_is_who_publishes_and_keeps_up(service: Service) -> None:
    for slot, second, status, word in (
        (SLOTS + 1, 30, 200, "ready"),
        (SLOTS + 4, 30, 200, "ready"),
        (SLOTS + 5, 0.9, 200, "ready"),  # the fourth is not due yet
        (SLOTS + 5, 1.1, 503, "behind"),
    ):
        set_wall(slot, second)
        answer = service.ask("GET", "/readyz", None)
        assert (answer.status_code, answer.json()) == (status, {"status": word, "role": "writer", "clock": "steady"}), (
            slot,
            second,
        )
    set_wall(SLOTS + 1, 30)
    for phase in ("starting", "ended", "failed"):
        service.state.phase = phase  # type: ignore[assignment]
        answer = service.ask("GET", "/readyz", None)
        assert (answer.status_code, answer.json()) == (503, {"status": phase, "role": "writer", "clock": "steady"})
    service.state.phase, service.state.storing = "running", False
    answer = service.ask("GET", "/readyz", None)
    assert (answer.status_code, answer.json()) == (503, {"status": "unwritable", "role": "writer", "clock": "steady"})
    service.state.phase, service.state.role, service.state.away = "running", "standby", True
    answer = service.ask("GET", "/readyz", None)
    assert (answer.status_code, answer.json()) == (503, {"status": "away", "role": "standby", "clock": "steady"})


def test_a_database_that_says_nothing_for_a_while_is_away(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that stands still with its connections open neither answers nor fails."""
    set_wall(SLOTS + 1, 30)
    service.state.heard_s, now_s = 100.0, 100.0
    monkeypatch.setattr(publishing_thread, "time", SimpleNamespace(monotonic=lambda: now_s))
    for now_s, word in ((104.9, "ready"), (105.1, "away")):  # noqa: B007  what the clock says
        assert service.ask("GET", "/readyz", None).json()["status"] == word
    service.state.heard_s = 105.0
    assert service.ask("GET", "/readyz", None).json()["status"] == "ready"


def test_releases_ahead_of_the_clock_are_not_ready(service: Service) -> None:
    """Slots up to 6 are released: by a clock that says less, events of now are late."""
    for slot, second, status, word, behind in (
        (SLOTS - 2, 30, 503, "ahead", 2 - SLOTS + 1),
        (SLOTS, 57.9, 503, "ahead", -1),
        (SLOTS, 58.1, 200, "ready", 0),  # a clock may be corrected by a moment
        (SLOTS + 1, 0, 200, "ready", 0),
    ):
        set_wall(slot, second)
        answer = service.ask("GET", "/readyz", None)
        assert (answer.status_code, answer.json()["status"]) == (status, word), (slot, second)
        assert service.ask("GET", "/v1/admin/overview").json()["slots_behind"] == behind
        assert f"\nwevent_slots_behind {behind}\n" in service.ask("GET", "/metrics").text
    service.state.last = SLOTS
    set_wall(SLOTS, 0)
    assert service.state.condition == "ready", "nothing comes after the last slot"


def test_a_clock_that_has_jumped_is_said(service: Service) -> None:
    """Slots go on, so the service is ready all the same."""
    set_wall(SLOTS + 1, 30)
    WALL.jumped = True
    answer = service.ask("GET", "/readyz", None)
    assert (answer.status_code, answer.json()) == (200, {"status": "ready", "role": "writer", "clock": "jumped"})


def test_the_next_release_is_due_on_the_grid(service: Service) -> None:
    for slot, second, due in (
        (SLOTS + 1, 30, "2026-01-01T00:07:01Z"),
        (SLOTS + 2, 0.5, "2026-01-01T00:07:01Z"),
        (SLOTS + 2, 1.5, "2026-01-01T00:08:01Z"),  # late: at the next moment
    ):
        set_wall(slot, second)
        assert service.state.next_due == datetime.fromisoformat(due)
    service.state.last = SLOTS
    assert service.state.next_due is None
    assert service.state.behind == 0


def test_metrics_have_slots_and_budgets_and_nothing_else(service: Service) -> None:
    answer = service.ask("GET", "/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    names = set(re.findall(r"^(\w+)", answer.text, re.MULTILINE)) - {""}
    assert names == {
        "wevent_slots_total",
        "wevent_fresh_slots_total",
        "wevent_slots_behind",
        "wevent_can_store_batches",
        "wevent_budget_left_epsilon",
        "wevent_users",
    }
    assert f"wevent_slots_total {SLOTS}\n" in answer.text
    assert 'wevent_users{window="4",epsilon="0.5"} 10\n' in answer.text
    for role in ("read", "ingest", "enrol"):
        assert service.ask("GET", "/metrics", role).status_code == 403


def test_the_overview_says_how_it_is_going(service: Service) -> None:
    told = service.ask("GET", "/v1/admin/overview").json()
    assert (told["stream"], told["mechanism"], told["epoch"]) == ("default", "pbd", 1)
    assert (told["members"], told["pending_changes"]) == (60, 0)
    assert (told["committed"], told["committed_start"], told["slots_behind"]) == (SLOTS, "2026-01-01T00:05:00Z", 0)
    assert told["recent_slots"] == SLOTS
    assert 0 <= told["fresh_rate"] <= 1
    assert (told["ready"], told["unsafe"], told["writer_since"]) == (True, [], None)
    assert set(told["versions"]) == {"wevent", "opendp", "python"}
    assert sum(row["users"] for row in told["levels"]["rows"]) == 60


def test_changes_that_wait_are_counted(tmp_path: Path) -> None:
    service = make_service(tmp_path, write_journal(tmp_path))
    asked = registrations.Requested(level="High/Small")
    registrations.choose(service.context.journal, "ann", asked, due_through=lambda: 0)
    assert service.ask("GET", "/v1/admin/overview").json()["pending_changes"] == 1
