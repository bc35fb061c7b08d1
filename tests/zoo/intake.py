"""Bugs on the way from records to releases: what one person's record does to others' (spec 1)."""

from __future__ import annotations

import re
from typing import Any

from tests.zoo.bug import Bug, Subject, Undone, together
from wevent.events import live_source, segment_log
from wevent.publishing.loop import Publication
from wevent.settings import StreamSettings
from wevent.streams import decoding

_QUOTED = re.compile(rb'"[^"]*(?:"|\Z)')


def _closed_by_events() -> Undone:
    """The latest event says what time it is."""
    read = live_source.PipeSource._take_events

    def hurried(self: live_source.PipeSource, lines: bytes) -> None:
        read(self, lines)
        times = self._decoder.decode(lines).batch.times
        if len(times):
            self._closed = max(self._closed, self._clock.slot_of(int(times.max())) - 1)

    return together((live_source.PipeSource, "_take_events", hurried))


_STRICT = property(lambda self: True, lambda self, value: None)  # whatever the settings say


def _quotes_over_lines() -> Undone:
    """A quoted field goes on over line ends, as RFC 4180 has it."""
    split_fields = decoding.split_fields

    def split(lines: bytes, delimiter: str, width: int, wanted: Any) -> Any:
        joined = _QUOTED.sub(lambda field: field[0].replace(b"\n", b" "), lines)
        return split_fields(joined.removesuffix(b" ") + b"\n" * (joined[-1:] == b" "), delimiter, width, wanted)

    return together((decoding, "split_fields", split))


def _bug(name: str, sentence: str, origin: str, undone: Undone, audits: tuple[str, ...], *records: Any) -> Bug:
    return Bug(
        name=name,
        sentence=sentence,
        origin=origin,
        broken=Subject(undone=undone, records=records),
        healthy=Subject(records=records),
        audits=audits,
    )


INTAKE = (
    _bug(
        "slot closed by a far-future timestamp",
        "The latest event is the clock: one person's event from next year closes every slot until then.",
        "watermarks of stream engines; ▲ of section 1 of the specification",
        _closed_by_events(),
        ("pairs of runs",),
        ("far future", "clock", None, 89),
    ),
    _bug(
        "run that stops on one user's record",
        "The first malformed line ends the run.",
        "an exception that nobody catches; ▲ of section 1 of the specification",
        together((StreamSettings, "strict", _STRICT)),
        ("pairs of runs",),
        ("cut off", "clock", None, 8),
    ),
    _bug(
        "CSV quote that swallows others' records",
        "A quote that is never closed takes in the lines up to the next one.",
        "RFC 4180 and every CSV reader that keeps it; ▲ of section 1 of the specification",
        _quotes_over_lines(),
        ("pairs of runs",),
        ("broken syntax", "files", "csv", 2867),
    ),
    _bug(
        "raw events left in a log",
        "Events of open slots are stored as they are: the event log has them when the slot is long over.",
        "a repair: events are stored in clear",
        together(
            (segment_log, "encrypt", lambda key, text: text),
            (segment_log, "decrypt", lambda key, sealed: bytes(sealed)),
        ),
        ("files",),
    ),
    _bug(
        "release time that depends on counts",
        "A release goes out when it is ready, and counting takes longer the more there is to count.",
        "a repair: service, a release goes out when it is ready",
        together((Publication, "_hold", lambda self, slot: True)),
        ("clock",),
    ),
)
