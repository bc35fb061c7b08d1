"""What the calls about the stream answer: releases, levels, ledger, batches."""

from __future__ import annotations

from typing import Any, Literal

from wevent.service.replies.reply import Reply


class AboutReply(Reply):
    """What stream this is.

    Attributes:
        stream: its name.
        slot_length_s: how long a slot is.
        slot_origin: where slot 1 starts.
        due_s: how long after the end of a slot its release goes out.
        grace_s: how long after the end of a slot its events are still taken.
        mechanism: which one publishes.
        neighbours: which streams are told apart with difficulty: add_remove or replace.
        max_cells_per_user: how many cells a person counts in, per slot.
        cells: the labels.
        committed: the last slot that was released, 0 before the first.
        first: the first slot that is kept.
        next_due: when the next release goes out; null once publishing has ended.
        public: whether releases may be read without a token.
        version: of the service.
    """

    stream: str
    slot_length_s: float | None
    slot_origin: str | None
    due_s: float
    grace_s: float
    mechanism: str
    neighbours: str
    max_cells_per_user: int
    cells: list[str]
    committed: int
    first: int
    next_due: str | None
    public: bool
    version: str


class OfferedLevel(Reply):
    """A level that users may choose. For operators also a requirement that users hold and no level names.

    Attributes:
        level: the words, such as High/Small; null for numbers.
        privacy: the word of privacy in it, if it has one.
        window_word: the word of the window in it, if it has one.
        window: in slots.
        epsilon: what any such span costs at most.
        span: the window as a length of time.
        odds: e^epsilon: by how much all that is published may change the odds that somebody was there.
        users: number of users who chose it, under any name. Null in `/v1/levels`: only operators see it.
        noise: of one release if everybody had chosen it and each slot had an equal part; 1 for the level with the least.
    """

    level: str | None
    privacy: str | None
    window_word: str | None
    window: int
    epsilon: float
    span: str | None
    odds: float
    users: int | None
    noise: float


class LevelsReply(Reply):
    """Levels that users may choose.

    Attributes:
        rows: levels, the strictest first.
        users: number of registered users.
        privacy: the words of privacy, the strictest first.
        windows: the words of windows, the shortest first.
        slot_length_s: how long a slot is.
    """

    rows: list[OfferedLevel]
    users: int
    privacy: list[str]
    windows: list[str]
    slot_length_s: float | None


class ClassOfPeople(Reply):
    """A requirement class of a release.

    Attributes:
        window: in slots.
        epsilon: of any such window.
    """

    window: int
    epsilon: float


class ReleaseObject(Reply):
    """A release, as `wevent publish` writes it: every field is in [releases](releases.md)."""

    format: int
    slot: int
    start: str | None
    end: str | None
    mechanism: str
    outcome: Literal["fresh", "repeated", "estimated", "nullified"]
    measured: int | None
    cells: int | list[Any]
    histogram: list[float] | None
    std_error: list[float] | None
    low: list[float] | None
    high: list[float] | None
    classes: list[ClassOfPeople]
    charges: list[float]
    threshold: float | None
    dissimilarity: float | None


class ReleasesReply(Reply):
    """Some releases.

    Attributes:
        releases: in slot order.
        next: the slot to go on from, null if there is none yet.
    """

    releases: list[ReleaseObject]
    next: int | None


class LedgerRow(Reply):
    """The budget of a class.

    Attributes:
        window: in slots.
        epsilon: what any window may be charged.
        users: how many hold it and are counted.
        left: what the next slot may still charge.
        share: the same, as a share of epsilon.
        charged: what the open window was charged.
    """

    window: int
    epsilon: float
    users: int
    left: float
    share: float
    charged: float


class LedgerReply(Reply):
    """The budget of every class.

    Attributes:
        slot: the last slot that was released: all is as of then.
        classes: the shortest window first.
    """

    slot: int
    classes: list[LedgerRow]


class BatchReply(Reply):
    """What became of a batch; a function of the batch, the clock and public settings alone.

    Attributes:
        accepted: how many events were taken, whoever they are of.
        rejected: how many were not, by reason.
    """

    accepted: int
    rejected: dict[str, int]
