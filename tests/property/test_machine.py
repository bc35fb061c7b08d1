"""Hypothesis searches for a life of publisher, journal and registry in which a promise breaks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.property.machines.broken_rules import BROKEN_MACHINES, BROKEN_RULES, broken
from tests.property.machines.life_machine import LifeMachine
from tests.property.machines.stores import FileStore, MemoryStore
from tests.support.profiles import examples


class FileLife(LifeMachine):
    make_store = FileStore


class MemoryLife(LifeMachine):
    make_store = MemoryStore


@pytest.mark.parametrize(("machine", "number"), [(FileLife, 20), (MemoryLife, 30)])
def test_no_life_breaks_a_promise(machine: Any, number: int) -> None:
    run_state_machine_as_test(machine, settings=settings(examples(number), stateful_step_count=30))


@pytest.mark.parametrize("name", [*BROKEN_RULES, *BROKEN_MACHINES])
def test_the_machine_finds_what_is_broken(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    machine = broken(name, monkeypatch)
    searching = settings(
        deadline=None,
        max_examples=100,
        stateful_step_count=20,
        derandomize=True,
        database=None,
        phases=(Phase.generate,),
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    with pytest.raises(AssertionError, match=r"lost|spent|with other numbers|drawn again|went out"):
        run_state_machine_as_test(machine, settings=searching)
