"""Standard output: what may not have been seen is sent again, the same bytes; readers drop repeated slots."""

from __future__ import annotations

from collections.abc import Iterable
from typing import BinaryIO

from wevent.errors import ReaderGone, StorageFailed, may_pass
from wevent.journal.contract import Emitted
from wevent.journal.record import Record
from wevent.outputs.lines import ndjson_line


class StreamOutput:
    """An open stream of lines."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def check(self, journal: Emitted, committed: int) -> None:
        """Nothing: what went out before cannot be seen."""

    def repair(self, journal: Emitted, committed: int, emitted: int) -> int:
        """Send every committed release that is not known to have gone out."""
        again = [record for record in journal.releases(emitted + 1) if record.shown is not None]
        self.emit(again)
        return len(again)

    def emit(self, records: Iterable[Record]) -> None:
        """One line per slot, then flush."""
        try:
            self._stream.write(b"".join(ndjson_line(record) for record in records))
            self._stream.flush()
        except (OSError, StorageFailed) as error:
            closed = isinstance(error, (BrokenPipeError, ReaderGone))
            raise StorageFailed(
                "to write to standard output",
                "a closed one" if closed else "one that cannot be written",
                "Releases are safe in the journal: what was not seen is sent again when the same command is run again.",
                path="-",
                passing=may_pass(error) if isinstance(error, OSError) else error.passing,
            ) from None

    def close(self) -> None:
        """Leave it open: it is not ours."""

    def abandon(self) -> None:
        """Leave it open: it is not ours."""
