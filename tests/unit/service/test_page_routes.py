"""The pages and what they are made of: from this machine alone, and nothing beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.service.service_parts import Service, make_service, write_journal
from wevent.service import routes_operator


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "index.html").write_text("<!doctype html><title>releases</title>")
    (pages / "page.css").write_text("body {}")
    (tmp_path / "secret.txt").write_text("secret")
    monkeypatch.setattr(routes_operator, "PAGES", pages)
    return make_service(tmp_path, write_journal(tmp_path))


def test_a_page_is_for_everybody_and_not_kept_by_browsers(service: Service) -> None:
    answer = service.ask("GET", "/", None)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    assert service.ask("GET", "/choose", None).status_code == 404  # not written here


def test_what_pages_are_made_of_may_be_kept_and_asked_for_again(service: Service) -> None:
    answer = service.ask("GET", "/static/page.css", None)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/css; charset=utf-8"
    assert "no-store" not in answer.headers.get("cache-control", "")
    again = service.ask("GET", "/static/page.css", None, headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304


def test_the_charts_come_from_the_installed_package(service: Service) -> None:
    packed = service.ask("GET", "/static/plotly.min.js", None, headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    plain = service.ask("GET", "/static/plotly.min.js", None, headers={"Accept-Encoding": "identity"})
    assert plain.content == packed.content
    assert b"plotly.js" in plain.content[:200]
    assert plain.headers["content-type"].startswith("text/javascript")
    again = service.ask("GET", "/static/plotly.min.js", None, headers={"If-None-Match": plain.headers["etag"]})
    assert again.status_code == 304


@pytest.mark.parametrize(
    "path",
    [
        "/static/../secret.txt",
        "/static/%2e%2e/secret.txt",
        "/static/..%2fsecret.txt",
        "/static//etc/passwd",
        "/static/",
    ],
)
def test_nothing_beside_them_is_served(service: Service, path: str) -> None:
    answer = service.ask("GET", path, None)
    assert answer.status_code == 404
    assert "secret" not in answer.text
