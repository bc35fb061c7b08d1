"""The table [service] of a configuration: its keys, and what they may say. Publishing ignores it, but checks it, too."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from wevent.core.nearest import did_you_mean
from wevent.errors import InvalidSettings

LISTEN = "127.0.0.1:8080"
NUMBERS = {
    "max_body_bytes": (8 << 20, 1 << 10, 1 << 27),  # of both together all bodies have room for
    "max_batch_bytes": (32 << 20, 1 << 10, 1 << 27),
    "requests_per_minute": (600, 0, 1_000_000_000),
    "events_per_minute": (0, 0, 1_000_000_000_000),
    "link_hours": (72, 1, 24 * 366),
}
"""Keys with whole numbers: the default, the least and the most."""
_PLACE = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<four>[A-Za-z0-9.-]+)):(?P<port>\d{1,5})")
KEYS = ("listen", "public", "tokens", "url", *NUMBERS)
"""The keys of the table."""


class ListenPlace(NamedTuple):
    """Where a service listens; port 0 is any that is free."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def check_table(table: Mapping[str, Any]) -> None:
    """Whether a table [service] has known keys and values that mean something.

    Raises:
        InvalidSettings: naming the key.
    """
    for key, value in table.items():
        if key not in KEYS:
            raise InvalidSettings(
                "settings of the service that wevent knows",
                f"{key!r} in [service]",
                did_you_mean(key, KEYS, f"Known are {', '.join(sorted(KEYS))}."),
                key=f"service.{key}",
            )
        _check(key, value)


def _check(key: str, value: Any) -> None:
    if key in NUMBERS:
        _, least, most = NUMBERS[key]
        if type(value) is not int or not least <= value <= most:
            raise _invalid(key, f"a whole number from {least:,} to {most:,}", value, "Correct the number.")
    elif key == "public":
        if not isinstance(value, bool):
            raise _invalid(key, "true or false", value, "Write it without quotes.")
    elif not isinstance(value, str) or not value:
        raise _invalid(key, "text", value, "Write it in quotes.")
    elif key == "listen":
        read_place(value)
    elif key == "url":
        read_url(value)


def read_place(text: str) -> ListenPlace:
    """HOST:PORT.

    Raises:
        InvalidSettings: if it is not.
    """
    found = _PLACE.fullmatch(text)
    if found is None or int(found["port"]) > 65_535 or not _is_host(found["six"]):
        raise _invalid("listen", "HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080", text, "Correct it.")
    return ListenPlace(found["six"] or found["four"], int(found["port"]))


def _is_host(six: str | None) -> bool:
    try:
        return six is None or bool(ipaddress.IPv6Address(six))
    except ValueError:
        return False


def read_url(text: str) -> str:
    """An address that links can begin with, without a slash at its end.

    Raises:
        InvalidSettings: if it is none.
    """
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or parts.query or parts.fragment or parts.username is not None or not text.isprintable() or " " in text:
        raise _invalid("url", "an address such as https://stats.example", text, "Write it without ? and #.")
    return text.rstrip("/")


def _invalid(key: str, expected: str, value: Any, remedy: str) -> InvalidSettings:
    return InvalidSettings(f"{key} in [service] to be {expected}", f"{value!r}", remedy, key=f"service.{key}")
