"""The table [service] of the configuration: where the service listens, who may read, and how much it takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wevent.publishing.configuration import Settings
from wevent.publishing.service_table import LISTEN, NUMBERS, ListenPlace, check_table, read_place, read_url
from wevent.service.tokens import tokens_path


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
        requests_per_minute: of one token, or of one address without a token; 0: any number.
        events_per_minute: of one token; 0: any number.
        link_hours: how long a personal link lasts.
    """

    listen: ListenPlace
    public: bool
    tokens: Path
    url: str | None
    max_body_bytes: int
    max_batch_bytes: int
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
            listen=read_place(listen if listen is not None else table.get("listen", LISTEN)),
            public=table.get("public", False),
            tokens=tokens_path(settings.journal, table.get("tokens"), folder),
            url=read_url(table["url"]) if "url" in table else None,
            **{name: table.get(name, default) for name, (default, _, _) in NUMBERS.items()},
        )
