"""What all answers have in common, and how they are printed as JSON."""

from __future__ import annotations

import json
from typing import Any

import msgspec


class Answer(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a command answers."""


class ClassOfUsers(Answer):
    """Users with the same requirement.

    Attributes:
        window: in slots.
        epsilon: of that window.
        users: how many hold it.
    """

    window: int
    epsilon: float
    users: int


def as_json(answer: Answer, *, indent: int | None = 2) -> str:
    """JSON in plain ASCII, which every console and pipe takes; what is no number is null."""
    plain: Any = json.loads(msgspec.json.encode(answer))
    return json.dumps(plain, indent=indent)
