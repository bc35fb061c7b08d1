"""Wrong ways to publish that are easy to write: the campaign must notice each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.fault.broken import EmitsBeforeCommit, StoresChargesApart
from tests.fault.campaign.commands import unchanged


def emit_before_commit() -> None:
    """A release goes out before it is stored: after a crash the slot is drawn again."""
    import wevent.cli.publish

    wevent.cli.publish.Publication = EmitsBeforeCommit  # type: ignore[misc]


def charges_apart() -> None:
    """Charges are stored in a transaction of their own: a crash between loses them."""
    import wevent.cli.publish

    wevent.cli.publish.SqliteJournal = StoresChargesApart  # type: ignore[misc]


def no_mark() -> None:
    """The side file is not told how far the journal is: a journal that lost its end goes unnoticed."""
    from wevent.journal.sqlite import SqliteJournal

    SqliteJournal.mark = lambda journal: None  # type: ignore[method-assign]


def no_sync() -> None:
    """Commits are not forced to disk before the release goes out: after a power cut the slot is drawn again."""
    from wevent.journal import storage

    prepared = storage._prepared

    def careless(connection: Any, *, write: bool) -> Any:
        prepared(connection, write=write)
        connection.execute("PRAGMA synchronous = OFF")
        return connection

    storage._prepared = careless


def unchecked_output() -> None:
    """An output is continued without looking at what is in it."""
    import os

    from wevent.outputs.text import FileOutput, _Found

    def found(output: FileOutput, file: Any, journal: Any, committed: int) -> _Found:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        return _Found(file.read().count(b"\n"), size)

    FileOutput._inspect = found  # type: ignore[method-assign]


VARIANTS: dict[str, Callable[[], None]] = {
    "unchanged": unchanged,
    "emit before commit": emit_before_commit,
    "charges apart": charges_apart,
    "no mark": no_mark,
    "no sync": no_sync,
    "unchecked output": unchecked_output,
}
