"""Who may write a journal, by the row of its lease."""

from __future__ import annotations

import os
import socket

import pytest

from wevent.journal.lease import Holder
from wevent.journal.record import Writer

NOBODYS_PID = 1 << 30


def holder(left_s: float | None, *, connected: bool = True, pid: int | None = None, host: str | None = None) -> Holder:
    writer = Writer(os.getpid() if pid is None else pid, host or socket.gethostname(), "2026-01-01T00:00:00Z")
    return Holder(3, "instance", writer, 10.0, left_s, connected)


@pytest.mark.parametrize(
    ("left_s", "may_write"),
    [(None, False), (-1.0, False), (0.0, False), (0.1, True), (10.0, True), (12.0, True), (21.0, False)],
)
def test_a_lease_is_valid_until_it_expires_or_the_clock_was_set_back_far(left_s: float | None, may_write: bool) -> None:
    assert holder(left_s).may_write == may_write


def test_a_process_that_is_gone_is_not_waited_for() -> None:
    assert not holder(5.0, connected=False, pid=NOBODYS_PID).may_write
    assert holder(5.0, connected=False, pid=NOBODYS_PID, host="elsewhere").may_write, "it may connect again"


def test_a_killed_process_whose_statement_still_runs_seems_gone() -> None:
    """Whoever waits does not give up for it: the server ends the session, or the lease expires."""
    killed = holder(5.0, pid=NOBODYS_PID)
    assert killed.may_write
    assert killed.seems_gone()
