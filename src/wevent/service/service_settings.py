"""The table [service] of the configuration: where the service listens, who may read, and how much it takes."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from wevent.core.nearest import did_you_mean
from wevent.errors import InvalidSettings
from wevent.publishing.configuration import Settings
from wevent.service.tokens_file import tokens_path

LISTEN = "127.0.0.1:8080"
_NUMBERS = {  # the default, the least and the most
    "max_body_bytes": (8 << 20, 1 << 10, 1 << 30),
    "max_batch_bytes": (32 << 20, 1 << 10, 1 << 31),
    "max_batch_events": (100_000, 1, 10_000_000),
    "requests_per_minute": (600, 0, 1_000_000_000),
    "events_per_minute": (0, 0, 1_000_000_000_000),
    "link_hours": (72, 1, 24 * 366),
}
_PLACE = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<four>[A-Za-z0-9.-]+)):(?P<port>\d{1,5})")
KEYS = ("listen", "public", "tokens", "url", *_NUMBERS)
"""The keys of the table."""


class Place(NamedTuple):
    """Where a service listens; port 0 is any that is free."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, kw_only=True)
class ServiceSettings:
    """What the service is told, checked.

    Attributes:
        listen: where it listens.
        public: whether releases, ledger, levels and statement are for everybody.
        tokens: the file of tokens.
        url: what personal links begin with; None: where it listens.
        max_body_bytes: the most that one request may send.
        max_batch_bytes: the same, after decompression.
        max_batch_events: the most events of one batch.
        requests_per_minute: of one token, or of one address without a token; 0: any number.
        events_per_minute: of one token; 0: any number.
        link_hours: how long a personal link lasts.
    """

    listen: Place
    public: bool
    tokens: Path
    url: str | None
    max_body_bytes: int
    max_batch_bytes: int
    max_batch_events: int
    requests_per_minute: int
    events_per_minute: int
    link_hours: int

    @classmethod
    def of(cls, settings: Settings, folder: Path = Path(), listen: str | None = None) -> ServiceSettings:
        """What the settings of a stream say.

        Args:
            settings: with a journal.
            folder: of the configuration, which relative names start at.
            listen: where to listen, instead of where the configuration says.

        Raises:
            InvalidSettings: for an unknown key or a meaningless value, naming it.
        """
        table: Mapping[str, Any] = settings.service
        check_table(table)
        assert settings.journal is not None, "a service has a journal"
        return cls(
            listen=_place(listen if listen is not None else table.get("listen", LISTEN)),
            public=table.get("public", False),
            tokens=tokens_path(settings.journal, table.get("tokens"), folder),
            url=_url(table["url"]) if "url" in table else None,
            **{name: table.get(name, default) for name, (default, _, _) in _NUMBERS.items()},
        )


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
    if key in _NUMBERS:
        _, least, most = _NUMBERS[key]
        if type(value) is not int or not least <= value <= most:
            raise _invalid(key, f"a whole number from {least:,} to {most:,}", value, "Correct the number.")
    elif key == "public":
        if not isinstance(value, bool):
            raise _invalid(key, "true or false", value, "Write it without quotes.")
    elif not isinstance(value, str) or not value:
        raise _invalid(key, "text", value, "Write it in quotes.")
    elif key == "listen":
        _place(value)
    elif key == "url":
        _url(value)


def _place(text: str) -> Place:
    found = _PLACE.fullmatch(text)
    if found is None or int(found["port"]) > 65_535 or not _is_host(found["six"]):
        raise _invalid("listen", "HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080", text, "Correct it.")
    return Place(found["six"] or found["four"], int(found["port"]))


def _is_host(six: str | None) -> bool:
    try:
        return six is None or bool(ipaddress.IPv6Address(six))
    except ValueError:
        return False


def _url(text: str) -> str:
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
