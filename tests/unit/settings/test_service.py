"""The table [service]: defaults, and one sentence for each mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wevent.core.options import kinds
from wevent.errors import InvalidSettings
from wevent.publishing.configuration import parse_service
from wevent.service.request_body import BODY_BYTES
from wevent.settings import ServiceSettings
from wevent.settings.values import ListenAddress


def settings(**table: Any) -> ServiceSettings:
    return parse_service(table, Path("etc"))


def test_the_largest_body_that_may_be_allowed_has_room() -> None:
    most = [kinds(ServiceSettings)[key].most or 0 for key in ("max_body_bytes", "max_batch_bytes")]
    assert sum(most) <= BODY_BYTES


def test_everything_has_a_default() -> None:
    found = settings()
    assert found.listen == ListenAddress("127.0.0.1", 8080)
    assert not found.public
    assert found.tokens is None
    assert found.url is None
    assert (found.max_body_bytes, found.max_batch_bytes) == (8 << 20, 32 << 20)
    assert (found.requests_per_minute, found.events_per_minute, found.link_hours) == (600, 0, 72)


def test_what_is_said_counts() -> None:
    found = settings(listen="[::1]:0", tokens="my.tokens", url="https://stats.example/", public=True)
    assert str(found.listen) == "[::1]:0"
    assert found.tokens == Path("etc/my.tokens")
    assert found.url == "https://stats.example"
    assert found.public
    assert settings(tokens="/etc/my.tokens").tokens == Path("/etc/my.tokens")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("lisen", "127.0.0.1:80"),
        ("listen", "8080"),
        ("listen", "127.0.0.1:65536"),
        ("listen", "[::zz]:80"),
        ("listen", 8080),
        ("public", "yes"),
        ("tokens", ""),
        ("url", "stats.example"),
        ("url", "https://stats.example/?a"),
        ("url", "https://a b"),
        ("url", "https://[x"),
        ("max_body_bytes", 0),
        ("max_batch_bytes", "many"),
        ("requests_per_minute", -1),
        ("link_hours", 1.5),
        ("events_per_minute", True),
    ],
)
def test_a_mistake_is_named(key: str, value: Any) -> None:
    with pytest.raises(InvalidSettings, match=f"{key}") as refused:
        settings(**{key: value})
    assert refused.value.facts["key"] == f"service.{key}"
