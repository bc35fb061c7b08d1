"""Follows a journal that several replicas share: what one has committed, all of them show."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from wevent.service.publisher_state import PublisherState
from wevent.service.role_log import RoleLog
from wevent.service.storage_probe import StorageProbe

if TYPE_CHECKING:
    from wevent.journal import SharedJournal

_LOOK_S = 0.5  # without news


class JournalFollower(threading.Thread):
    """Looks how far a journal is, as soon as it goes on.

    Nobody is told of a slot before it is known outside the database and the key of its events is destroyed: whoever committed
    it may have died before that.

    Args:
        shared: the journal, which has been begun, as this process shares it.
        state: what all calls see of it.
        told: called with every committed slot that is new.
        role: told when the database is away, and when it answers again.
    """

    def __init__(
        self, shared: SharedJournal, state: PublisherState, told: Callable[[int], None], role: RoleLog
    ) -> None:
        super().__init__(name="follower", daemon=True)
        self._state, self._told, self._role = state, told, role
        self._over = threading.Event()
        self._news = shared.news()
        self._events = shared.events("following", patience_s=0.0)
        self._probe = StorageProbe(state, self._events.probe)

    def run(self) -> None:
        """Follow until it is stopped; a database that does not answer is asked again and again."""
        self._hear()  # whoever started this has just read from it
        while not self._over.is_set():
            try:
                self._see(self._news.wait(_LOOK_S))
                self._probe.check()
                self._hear()
                self._role.answers()
            except Exception as error:  # noqa: BLE001  a replica that follows no more would only look like one
                self._state.away = True
                self._role.away(error)
                self._over.wait(_LOOK_S)
        self._state.heard_s = None
        self._news.close()
        self._events.close()

    def stop(self) -> None:
        """Let it end; from any thread."""
        self._over.set()

    def _hear(self) -> None:
        self._state.away, self._state.heard_s = False, self._state.monotonic_s()

    def _see(self, committed: int) -> None:
        if committed > self._state.committed:
            self._events.destroy(committed)
            self._state.advance(committed)
            self._told(committed)
