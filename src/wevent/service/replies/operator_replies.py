"""What an operator's calls answer."""

from __future__ import annotations

from typing import Literal

from wevent.service.replies.reply import Reply
from wevent.service.replies.stream_replies import LevelsReply


class OverviewReply(Reply):
    """How the service is doing, for its administrator; nothing of it depends on anybody's events.

    Attributes:
        stream, mechanism, epoch: of the journal.
        levels: what is offered, and how many hold it.
        members: how many are registered.
        pending_changes: how many changes take effect at the next slot boundary.
        committed: the last slot that was released.
        committed_start: when it began.
        next_due: when the next release goes out.
        slots_behind: how many releases are due and not out; negative if releases are ahead of the clock.
        fresh_rate: the share of fresh releases among the last `recent_slots`.
        recent_slots: how many these are.
        ready: whether the publisher runs and keeps up.
        role: whether this process closes slots (writer), or another one does (standby).
        unsafe: what weakens the promise.
        writer_since: since when the writer publishes; null if there is none.
        writer_host: where it runs.
        versions: of what it is made of.
    """

    stream: str
    mechanism: str
    epoch: int
    levels: LevelsReply
    members: int
    pending_changes: int
    committed: int
    committed_start: str | None
    next_due: str | None
    slots_behind: int
    fresh_rate: float | None
    recent_slots: int
    ready: bool
    role: Literal["writer", "standby"]
    unsafe: list[str]
    writer_since: str | None
    writer_host: str | None
    versions: dict[str, str]


class HealthReply(Reply):
    """Whether the process answers.

    Attributes:
        status: it does.
    """

    status: Literal["ok"]


class ReadyReply(Reply):
    """Whether the publisher runs and keeps up, and batches can be stored.

    Attributes:
        status: ready; or why it is not. "ahead": slots were released ahead of the clock, and events are late until the clock
            has caught up. "unwritable": batches cannot be stored.
        role: whether this process closes slots (writer), or stands by while another one does.
        clock: jumped: the wall clock disagrees with the time since boot, and slots do not follow it yet.
    """

    status: Literal["ready", "starting", "behind", "ahead", "away", "unwritable", "ended", "failed"]
    role: Literal["writer", "standby"]
    clock: Literal["steady", "jumped"]
