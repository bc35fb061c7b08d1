"""What the operator's log says of a replica's role: a line for every change of it, and nothing of events.

Takeovers are rare, and whoever looks after a service wants to know when they were: these lines are there at every level but
`--quiet` and `--log warning`.
"""

from __future__ import annotations

import logging
import threading

from wevent.errors import WeventError
from wevent.journal.contents import Writer

NAME = "wevent.service.role"
_log = logging.getLogger(NAME)


class RoleLog:
    """Says each change once; from any thread."""

    def __init__(self) -> None:
        self._said = self._failed = ""
        self._away: type[object] | None = None
        self._guard = threading.Lock()

    def writes(self, slot: int) -> None:
        """This replica is the writer, and the next slot is this one."""
        with self._guard:
            self._failed = ""
        self._say(f"writes from slot {slot} on")

    def waits(self) -> None:
        """Another process is about to begin the journal."""
        self._say("stands by until another process has begun the journal")

    def stands_by(self, writer: Writer) -> None:
        """Another process is the writer."""
        self._say(f"stands by: process {writer.pid} on {writer.host} writes, since {writer.since}")

    def stops_writing(self, reason: object) -> None:
        """It was, or wanted to be, the writer, and cannot be now."""
        with self._guard:
            is_news, self._failed = str(reason) != self._failed, str(reason)
            self._said = ""  # whatever it is next is said
        if is_news:
            _log.warning("stands by until the journal can be written again: %s", reason)

    def away(self, reason: Exception) -> None:
        """The database does not answer, or what it answers cannot be followed; of a mistake of ours all is said."""
        with self._guard:
            is_news, self._away = type(reason) is not self._away, type(reason)
        if not is_news:
            return
        if isinstance(reason, WeventError):
            _log.warning("the database is away, and is asked again and again: %s", reason)
        else:
            _log.error("the journal cannot be followed, which is tried again and again", exc_info=reason)

    def answers(self) -> None:
        """It does."""
        with self._guard:
            is_news, self._away = self._away is not None, None
        if is_news:
            _log.info("the database answers again")

    def _say(self, sentence: str) -> None:
        with self._guard:
            is_news, self._said = sentence != self._said, sentence
        if is_news:
            _log.info("%s", sentence)
