"""Files at rest, whoever counts them: what is stored after a slot, and what a later run needs to go on."""

from __future__ import annotations

from typing import Any

from wevent.errors import InvalidInput
from wevent.streams.source import check_time_unit
from wevent.streams.stream_settings import StreamSettings


class RestingFiles:
    """The positions of a stream whose files stay where they are.

    Args:
        settings: the unit of times, and whether there are files at all or a frame.
        number: how many files there are.
    """

    def __init__(self, settings: StreamSettings, number: int) -> None:
        self._settings, self._number = settings, number

    def position(self, slot: int) -> dict[str, Any]:
        """Where the input stands after a slot."""
        return {"slot": slot, "files": self._number, "time_unit": self._settings.time_unit}

    def resume(self, position: Any) -> None:
        """Check that a run can go on after a stored position.

        Raises:
            InvalidInput: if there are fewer files than before: what they held may be missing.
            InvalidSettings: if numbers as times meant something else.
        """
        check_time_unit(position, self._settings.time_unit)
        if self._settings.frame is None and self._number < int(position.get("files", 0)):  # none after live lines
            raise InvalidInput(
                f"the {position['files']} input files of the earlier run, or more",
                f"{self._number}",
                "Give the same or a longer list of inputs.",
                path=None,
            )
