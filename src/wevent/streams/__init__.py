"""From events to counted slots: the clock, and files."""

from wevent.settings import StreamSettings
from wevent.streams.clock import SlotClock
from wevent.streams.file_source import FileSource, declared_clock
from wevent.streams.requirements_file import Requirements, read_requirements
from wevent.streams.source import SlotCounts, Source

__all__ = [
    "FileSource",
    "Requirements",
    "SlotClock",
    "SlotCounts",
    "Source",
    "StreamSettings",
    "declared_clock",
    "read_requirements",
]
