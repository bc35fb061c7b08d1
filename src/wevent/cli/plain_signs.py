"""Plain signs on screens that lack ours: no encoding of a console ends a command."""

from __future__ import annotations

import codecs
from collections.abc import Mapping

PLAINLY = "wevent.plainly"
"""How text is written in an encoding that lacks some of its signs: an error handler of codecs."""

PLAIN_ASCII = "plain-ascii"
"""What a console of ASCII calls its encoding."""

_PLAIN: Mapping[str, str] = {
    "█": "#", "░": ".", "─": "-", "━": "-", "…": "...", "ε": "eps", "±": "+-", "×": "x", "·": "*", "√": "sqrt",
    "²": "^2", "≤": "<=", "≥": ">=", "→": "->", "–": "-", "—": "-", "’": "'", "‘": "'", "“": '"', "”": '"', "µ": "u",
}  # fmt: skip


def _plainly(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    return "".join(_PLAIN.get(sign) or ascii(sign)[1:-1] for sign in signs), error.end


codecs.register_error(PLAINLY, _plainly)


def as_shown(text: str, encoding: str) -> str:
    """Text as a console of this encoding shows it: what it lacks in plain signs."""
    name = "ascii" if encoding == PLAIN_ASCII else encoding
    return text.encode(name, PLAINLY).decode(name)


def without_controls(text: str) -> str:
    r"""Text that commands no terminal: control signs and the like show as escapes.

    >>> without_controls("\x1b[31mann")
    '\\x1b[31mann'
    """
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)
