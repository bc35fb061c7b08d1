"""How long the loss of a connection is borne: from the loss on, with a pause between attempts, and not for ever."""

from __future__ import annotations

import time

from psycopg import errors

from wevent.errors import JournalUnreachable

AGAIN = (errors.DeadlockDetected, errors.SerializationFailure)
"""What the server says when a transaction came to nothing and is to be done again, over the same connection."""

_PAUSE_S = 0.1
_OFTEN = 3  # work that takes long and ends the server every time is not begun for ever


class Forbearance:
    """What is left of the patience of one piece of work.

    It begins with the loss, not with the work: a long one may lose its connection at its end, and with it the answer to
    COMMIT, which has to be read. It begins anew only after a connection that held for longer than it lasts, and not often:
    a server that takes connections and drops them uses it up.

    Args:
        patience_s: how long it lasts; whoever has no connection yet waits so long from now on.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._end = time.monotonic() + patience_s
        self._held_since: float | None = None
        self._begun = 0

    def hold(self) -> None:
        """A connection is there: from now on the work goes on over it."""
        self._held_since = time.monotonic()

    def bear(self, loss: JournalUnreachable) -> None:
        """Wait a moment after a loss, or after an attempt to connect that failed, until the next attempt may be made.

        Raises:
            JournalUnreachable: the loss, when patience is over.
        """
        now = time.monotonic()
        if self._held_since is not None and self._may_begin(now - self._held_since):
            self._end, self._begun = now + self._patience_s, self._begun + 1
        self._held_since = None
        if now >= self._end:
            raise loss
        time.sleep(_PAUSE_S)

    def _may_begin(self, held_s: float) -> bool:
        return not self._begun or (held_s > self._patience_s and self._begun < _OFTEN)
