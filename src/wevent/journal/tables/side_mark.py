"""What a side file of a journal says, in its first bytes: who writes the journal, and the last slot it committed.

A journal that knows less was restored from an old copy, and one that is not there was lost (`wevent.journal.tables.lost`).
What the text says of another journal is never deleted; it is kept as `earlier`.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

MARK_SIZE = 4096
"""Bytes of text, always all of them: overwriting never leaves a mixed text."""


class Earlier(msgspec.Struct, frozen=True):
    """A journal that committed slots at this place before another one was started over it."""

    journal: str
    committed: int


class Mark(msgspec.Struct, kw_only=True):
    """The text of the side file.

    Attributes:
        pid, host, since: who writes the journal, or wrote it last.
        journal: the journal's own id.
        committed: the last slot committed by that writer, in a journal that ended with `link`.
        link: hexadecimal end of the hash chain at that slot.
        revision, chain: state of the registry, see `wevent.journal.contents.Revision`. Written before it is committed.
        applied: number of the last revision that is known to be committed.
        versions: hash over all configuration versions, hexadecimal.
        earlier: journals that were at this place before, the last of them last.
        readable: whether the side file said something that can be read; never written.
    """

    pid: int = 0
    host: str = ""
    since: str = ""
    journal: str = ""
    committed: int = 0
    link: str = ""
    revision: int = -1
    chain: str = ""
    applied: int = -1
    versions: str = ""
    earlier: list[Earlier] = []
    readable: bool = True


def read_mark(path: Path) -> Mark:
    """What a side file says; an empty mark if there is none, one that is not `readable` if it cannot be read."""
    try:
        with path.open("rb") as file:
            text = file.read(MARK_SIZE)
        if text and not text.strip(b" \0"):  # made and never written, or wiped out by a power failure
            return Mark(readable=False)
        mark = msgspec.json.decode(text.strip(b" \0") or b"{}", type=Mark)
        return mark if mark.committed >= 0 else Mark(readable=False)
    except FileNotFoundError:
        return Mark()
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Mark(readable=False)
