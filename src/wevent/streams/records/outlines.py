"""What a value looks like without what it says: letters, digits and signs in their places."""

from __future__ import annotations

_SHOWN = 48  # characters
_SIGNS = frozenset(" \t-_:./+,;|@#\"'{}[]()=")


def outline(text: str) -> str:
    """The outline of a value: a or A for a letter, 9 for a digit, ? for a rare sign; for the operator only.

    >>> outline("u-4711"), outline("2026-01-31 08:15")
    ('a-9999', '9999-99-99 99:99')
    """
    characters = "".join(map(_kind, text[:_SHOWN]))
    return characters + "…" if len(text) > _SHOWN else characters


def _kind(character: str) -> str:
    if character.isalpha():
        return "A" if character.isupper() else "a"
    if character.isdigit():
        return "9"
    return character if character in _SIGNS else "?"
