"""Which of several formats a caller wants, by the header Accept."""

from __future__ import annotations

from collections.abc import Sequence

from wevent.service.problems import RequestRefused


def chosen_type(accept: str | None, offered: Sequence[str]) -> str:
    """The offered media type that a header asks for most; of several, the one offered first.

    Args:
        accept: the header; None: anything will do.
        offered: what there is, the default first.

    Raises:
        RequestRefused: if none of them will do (406).
    """
    if accept is None or not accept.strip():
        return offered[0]
    wishes = [_wish(part) for part in accept.split(",")[:50]]
    best, weight = "", 0.0
    for kind in offered:
        matching = [(exactness, q) for pattern, q in wishes if (exactness := _matches(pattern, kind))]
        wanted = max(matching)[1] if matching else 0.0
        if wanted > weight:
            best, weight = kind, wanted
    if not best:
        raise RequestRefused(
            406, f"a format out of {', '.join(offered)}", "another one in Accept", f"Send Accept: {offered[0]}."
        )
    return best


def _wish(part: str) -> tuple[str, float]:
    kind, *parameters = (piece.strip().lower() for piece in part.split(";"))
    weight = 1.0
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                weight = min(max(float(value), 0.0), 1.0)
            except ValueError:
                weight = 0.0
    return kind, weight if weight == weight else 0.0  # not a number is no wish


def _matches(pattern: str, kind: str) -> int:
    """How exactly a pattern means a type; 0: it does not."""
    if pattern == kind:
        return 3
    if pattern == kind.partition("/")[0] + "/*":
        return 2
    return int(pattern == "*/*")
