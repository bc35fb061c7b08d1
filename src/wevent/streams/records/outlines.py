"""What a value looks like without what it says: letters, digits and signs in their places."""

from __future__ import annotations

import re
from collections.abc import Sequence

_COLUMNS = 20  # in a message
_NUMERIC = frozenset("0123456789 .:+-TZ")
_SHOWN = 48  # characters
_SIGNS = frozenset(" \t-_:./+,;|@#\"'{}[]()=")


def outline(text: str) -> str:
    """The outline of a value: a or A for a letter, 9 for a digit, ? for a rare sign; for the operator only.

    >>> outline("u-4711"), outline("2026-01-31 08:15")
    ('a-9999', '9999-99-99 99:99')
    """
    characters = "".join(map(_kind, text[:_SHOWN]))
    return characters + "…" if len(text) > _SHOWN else characters


def listed_columns(names: Sequence[str]) -> str:
    """The columns of a file for a message; as outlines where they look like a record, of a file without a header.

    >>> listed_columns(["time", "user"]), listed_columns(["4711", "Harbour"])
    ("'time', 'user'", "'9999', 'Aaaaaaa' (they look like a record: is the header line missing?)")
    """
    if looks_like_record(names):
        shown, end = [outline(name) for name in names], " (they look like a record: is the header line missing?)"
    else:
        shown, end = list(names), ""
    return (", ".join(map(repr, shown[:_COLUMNS])) or "none") + (", …" if len(names) > _COLUMNS else "") + end


def looks_like_record(names: Sequence[str]) -> bool:
    """Whether one of the names of columns looks like a value: somebody's record stands where the header should."""
    return any(_is_value(name) for name in names)


def _is_value(name: str) -> bool:
    """A number or a time, also within a line that another delimiter splits; an address or a level."""
    parts = re.split(r"[;,|\t]", name)
    return "@" in name or "/" in name or any(set(part) <= _NUMERIC and any(map(str.isdigit, part)) for part in parts)


def _kind(character: str) -> str:
    if character.isalpha():
        return "A" if character.isupper() else "a"
    if character.isdigit():
        return "9"
    return character if character in _SIGNS else "?"
