"""A writer whose wall clock jumps closes no slot ahead of time for the others, and says so; see `test_clock_jumps`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres.replica_services import Replicas
from tests.service.sending import Clock
from tests.service.shifted_serving import SHIFTED, Shift
from tests.support.commands import wait_for
from tests.support.postgres_server import shared_url


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[Replicas]:
    both = Replicas(tmp_path / "both", shared_url())
    yield both
    both.close()


def test_the_clock_of_the_writer_is_wrong_for_a_while(replicas: Replicas) -> None:
    first, second = replicas.services
    shifts = [Shift(one.folder) for one in replicas.services]
    for one, shift in zip(replicas.services, shifts, strict=True):
        one.start(module=SHIFTED, told=shift.environment)
    assert replicas.writer() is first
    clock = Clock.of(first, replicas.token("read"))
    shifts[0].set(300)
    wait_for(lambda: "the wall clock jumped by +300 s" in first.log, "the writer to notice")
    for seconds in (300, 0):
        shifts[0].set(seconds)
        replicas.goes_on(3)
        assert clock.end_us(replicas.committed()) < shifts[0].right_s() * 1e6, "a slot closed ahead"
        wait_for(lambda: replicas.condition(second) == "ready", "the standby to be ready")
    shifts[0].set(-300)
    wait_for(lambda: replicas.condition(first) == "ahead", "the writer to be ahead of its clock")
    shifts[0].set(0)
    wait_for(lambda: replicas.condition(first) == "ready", "the writer to be ready")
    replicas.goes_on(3)
    assert first.stop() == 0
    assert second.stop() == 0
    assert first.log.count("the wall clock is steady again") == 2
    assert "the wall clock" not in second.log
    replicas.audit()
