"""Who may add events and who may close slots: a lock of the database that many share, or one has alone.

It is held by a transaction, and ends with it. A replica that was stopped inside one would keep slots from closing: whoever
needs the lock alone waits for others a moment, then ends their connections. What these had not committed was acknowledged
to nobody, and they find out by reading. Sessions that the role may not end are waited for a little longer, and then it is
said who is in the way: nothing is drawn while it is waited for, so giving up draws nothing again (spec 10).
"""

from __future__ import annotations

import time
from contextlib import suppress

from psycopg import errors, sql

from wevent.errors import StorageFailed
from wevent.journal.connection import Connection
from wevent.journal.lease import lock_key
from wevent.journal.place import PostgresPlace

STANDSTILL_S = 2
"""So long a replica may stand in the way of a slot that closes."""

GIVE_UP_S = 20.0
"""So long whoever needs the lock waits for sessions that do not end."""

_HOLDERS = """
SELECT held.pid, session.usename, session.xact_start < clock_timestamp() - make_interval(secs => %s)
FROM pg_locks AS held JOIN pg_stat_activity AS session USING (pid)
WHERE held.locktype = 'advisory' AND held.granted AND held.objsubid = 1 AND held.pid <> pg_backend_pid()
AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database())
AND ((held.classid::bigint << 32) | held.objid::bigint) = %s
"""


class IntakeLock:
    """A lock of one journal.

    Args:
        place: the journal.
        what: is locked, a word.
    """

    def __init__(self, place: PostgresPlace, what: str = "intake") -> None:
        self._place, self._what = place, what
        self._number = lock_key(place.schema, what)

    def shared(self, connection: Connection) -> tuple[int, bool, bytes]:
        """Take it together with others until the end of the transaction.

        What it returns is read by a statement of its own: one that waits for the lock sees what was there before it waited.

        Returns:
            the last closed slot, whether nothing is to be taken in now, and the mark of the side folder; all stay so.
        """
        text = sql.SQL(
            "SELECT pg_advisory_xact_lock_shared({}); SELECT closed, paused = fence, folder FROM intake, writer"
        )
        with connection.cursor() as cursor:
            cursor.execute(text.format(self._number))
            cursor.nextset()
            closed, paused, folder = cursor.fetchall()[0]
            return int(closed), bool(paused), bytes(folder)

    def alone(self, connection: Connection, work: sql.Composable) -> None:
        """Do something while nobody else has it: one message to the server, so that no pause of this process is inside.

        Args:
            connection: outside of any transaction.
            work: statements without results.

        Raises:
            StorageFailed: if others keep it, and cannot be ended; nothing was done.
        """
        text = sql.SQL("SET LOCAL lock_timeout TO {}; SELECT pg_advisory_xact_lock({}); {}").format(
            1000 * STANDSTILL_S, self._number, work
        )
        end, before = time.monotonic() + GIVE_UP_S, dict[int, str]()
        while True:
            try:
                connection.execute(text).close()
                return
            except errors.LockNotAvailable:
                before = self._end_holders(connection, before)
                if time.monotonic() >= end:
                    raise self._kept(before) from None

    def _end_holders(self, connection: Connection, before: dict[int, str]) -> dict[int, str]:
        """End who has had it for too long, as far as the role may; who has it: their processes and roles.

        How long others have had it the server may not say to this role: then those that had it the last time, too.
        """
        holders: dict[int, str] = {}
        for process, role, is_long in connection.execute(_HOLDERS, (STANDSTILL_S, self._number)).fetchall():
            holders[process] = str(role)
            if is_long or (is_long is None and process in before):
                with suppress(errors.InsufficientPrivilege):  # of another role: it has to be waited for
                    connection.execute("SELECT pg_terminate_backend(%s)", (process,)).close()
        return holders

    def _kept(self, holders: dict[int, str]) -> StorageFailed:
        named = ", ".join(f"process {process} of role {role}" for process, role in sorted(holders.items())[:5])
        return StorageFailed(
            f"to have the {self._what} of the journal alone for a moment",
            f"sessions that keep it and could not be ended ({named or 'they keep its tables'}; {self._place})",
            "Use one role for all replicas, or let this one end the others' sessions (GRANT pg_signal_backend TO role); "
            "or end them. Nothing was drawn, and what was acknowledged is kept.",
            path=str(self._place),
        )
