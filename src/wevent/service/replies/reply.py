"""What all answers have in common."""

from __future__ import annotations

import msgspec


class Reply(msgspec.Struct):
    """An answer, or a part of one."""
