"""Wrong ways to publish that are easy to write: the campaign must notice each of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from tests.fault.broken import EmitsBeforeCommit, StoresChargesApart
from tests.fault.campaign.commands import unchanged
from wevent.journal import Batch
from wevent.journal.record import Hook, Transaction, no_hook

_EFFECTS_BETWEEN = 200


def emit_before_commit() -> None:
    """A release goes out before it is stored: after a crash the slot is drawn again."""
    import wevent.publishing.session

    wevent.publishing.session.Publication = EmitsBeforeCommit  # type: ignore[misc]


def charges_apart() -> None:
    """Charges are stored in a transaction of their own: a crash between loses them."""
    import wevent.journal

    wevent.journal.SqliteJournal = _ChargesMuchLater  # type: ignore[misc]


class _ChargesMuchLater(StoresChargesApart):
    """Most of what a run does lies between the two transactions: a kill at a random effect seldom misses it."""

    def commit(self, batch: Batch, at: Hook = no_hook) -> None:
        def wait(step: str) -> None:
            at(step)
            if step == "charges apart":
                with open(os.devnull, "w") as nowhere:
                    for _ in range(_EFFECTS_BETWEEN):
                        nowhere.write("")

        super().commit(batch, wait)


def late_witness() -> None:
    """The witness is told how far the journal is when a run starts only: one that lost its end later goes unnoticed."""
    from wevent.journal.journal import Journal

    write_ahead, told = Journal._write_ahead, list[Journal]()

    def write_once(journal: Journal, transaction: Transaction) -> None:
        if journal not in told:
            told.append(journal)
            write_ahead(journal, transaction)

    Journal._write_ahead = write_once  # type: ignore[method-assign]


def no_sync() -> None:
    """Nothing is forced to disk before the release goes out: after a power cut the slot is drawn again."""
    from wevent.journal import sqlite, witness

    prepared = sqlite.prepare

    def careless(connection: Any) -> None:
        prepared(connection)
        connection.execute("PRAGMA synchronous = OFF")

    sqlite.prepare = careless
    witness._force = lambda file: None


def unchecked_output() -> None:
    """An output is continued without looking at what is in it."""
    from wevent.outputs.text_output import FileOutput, Note, _Content

    def content(
        output: FileOutput, file: Any, journal: Any, committed: int, note: Note | None
    ) -> tuple[_Content, bool]:
        file.seek(0)
        data = file.read()
        return _Content(data.count(b"\n"), data), False

    FileOutput._inspect = content  # type: ignore[method-assign]


VARIANTS: dict[str, Callable[[], None]] = {
    "unchanged": unchanged,
    "emit before commit": emit_before_commit,
    "charges apart": charges_apart,
    "late witness": late_witness,
    "no sync": no_sync,
    "unchecked output": unchecked_output,
}
