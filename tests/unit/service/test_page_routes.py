"""The pages and what they are made of: from this machine alone, and nothing beside them."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from tests.unit.service.service_parts import Service, make_service


@pytest.fixture
def service(tmp_path: Path) -> Service:
    return make_service(tmp_path, tmp_path / "run.journal")


def get(service: Service, path: str, **headers: str) -> httpx.Response:
    return service.ask("GET", path, None, opens=False, headers=headers)


def test_a_page_is_for_everybody_and_not_kept_by_browsers(service: Service) -> None:
    for path in ("/", "/choose", "/admin"):
        answer = get(service, path)
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.headers["cache-control"] == "no-store"


def test_what_pages_are_made_of_may_be_kept_and_asked_for_again(service: Service) -> None:
    answer = get(service, "/static/page.css")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/css; charset=utf-8"
    assert "no-store" not in answer.headers.get("cache-control", "")
    assert get(service, "/static/page.css", **{"If-None-Match": answer.headers["etag"]}).status_code == 304


def test_the_charts_come_from_the_installed_package(service: Service) -> None:
    answer = get(service, "/static/plotly.min.js")
    assert b"plotly.js" in answer.content[:200]
    assert answer.headers["content-type"].startswith("text/javascript")
    assert answer.headers["cache-control"] == "max-age=86400"


@pytest.mark.parametrize(
    "path",
    ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd", "/static/"],
)
def test_nothing_beside_them_is_served(service: Service, path: str) -> None:
    answer = get(service, path)
    assert answer.status_code == 404
    assert "import" not in answer.text
