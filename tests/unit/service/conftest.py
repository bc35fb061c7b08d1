"""Clocks of the service that stand still until a test moves them."""

from __future__ import annotations

import pytest

from tests.unit.service.access_parts import Clock
from tests.unit.service.service_parts import WALL
from wevent.service import access, publishing_thread, routes_operator, tokens


@pytest.fixture(autouse=True)
def wall(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (publishing_thread, routes_operator):
        monkeypatch.setattr(module, "wall_clock_us", WALL)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (access, tokens):
        monkeypatch.setattr(module, "time", clock)
    return clock
