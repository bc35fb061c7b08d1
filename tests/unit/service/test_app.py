"""The application as a whole: its document, its headers, refusals as problems, and what is logged."""

from __future__ import annotations

import logging
from pathlib import Path

import httpx
import pytest

from tests.unit.service.service_parts import Service, make_service, write_journal


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_journal(tmp_path_factory.mktemp("journal"))


@pytest.fixture
def service(tmp_path: Path, journal: Path) -> Service:
    return make_service(tmp_path, journal)


def test_every_answer_has_the_headers_that_keep_browsers_strict(service: Service) -> None:
    for path in ("/healthz", "/v1/about", "/nothing", "/v1/releases?from=x"):
        headers = service.ask("GET", path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self';"), path
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers


def test_refusals_are_problems_with_one_sentence(service: Service) -> None:
    for method, path, status in (
        ("GET", "/nothing", 404),
        ("PATCH", "/v1/users/1/requirement", 405),
        ("GET", "/v1/releases?limit=0", 400),
        ("GET", "/v1/releases?cells=nowhere", 400),
        ("GET", "/v1/users/nobody/requirement", 404),
    ):
        answer = service.ask(method, path)
        assert answer.status_code == status, path
        assert answer.headers["content-type"] == "application/problem+json"
        told = answer.json()
        assert told["status"] == status
        assert told["detail"].endswith(".")
    patched = service.ask("PATCH", "/v1/users/1/requirement")
    assert patched.headers["allow"] == "DELETE, GET, HEAD, PUT"
    assert "(DELETE, GET, HEAD, PUT)" in patched.json()["detail"]
    assert service.ask("POST", "/").headers["allow"] == "GET, HEAD"
    assert service.ask("HEAD", "/v1/events").headers["allow"] == "POST"
    assert service.ask("GET", "/v1/about", role=None).headers["www-authenticate"] == "Bearer"


def test_head_has_the_headers_of_get_and_no_body(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    paths = ("/", "/choose", "/admin", "/static/page.css", "/healthz", "/readyz", "/metrics", "/v1/about", "/v1/levels")
    paths += ("/v1/releases", "/v1/releases?limit=0", "/v1/users/1", "/v1/me", "/openapi.json", "/nothing")
    for path in paths:
        got, head = service.ask("GET", path), service.ask("HEAD", path)
        assert (head.status_code, head.content) == (got.status_code, b""), path
        assert {**head.headers, "date": ""} == {**got.headers, "date": ""}, path
    with caplog.at_level(logging.INFO):
        stream = service.ask("HEAD", "/v1/releases/stream")
    assert (stream.status_code, stream.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert "HEAD /v1/releases/stream 200" in caplog.text
    assert service.context.feed.readers.total() == 0


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/v1/releases?limit=0", "The query parameter limit is not valid. Input should be greater than or equal to 1."),
        (f"/v1/releases?from={'9' * 101}", "The query parameter from is not valid. String should have at most 100"),
        ("/v1/releases/stream?after=x", "The query parameter after is not valid. "),
        ("/v1/releases?format=csv", "Unknown query parameter. Supported: from, to, cells, limit."),
        ("/v1/about?format=csv", "Unknown query parameter. Supported: none."),
    ],
)
def test_what_is_wrong_with_a_query_is_said_in_words(service: Service, path: str, sentence: str) -> None:
    answer = service.ask("GET", path)
    assert answer.status_code == 400
    assert answer.json()["detail"].startswith(sentence)


def test_a_parameter_that_is_refused_is_not_repeated(service: Service) -> None:
    for path in ("/v1/releases?limit=secret", "/v1/releases/stream?after=secret", "/v1/releases?from=" + "secret" * 20):
        assert "secret" not in service.ask("GET", path).text
    answer = service.ask("PUT", "/v1/users/1/requirement?dry_run=secret", json={"level": "High/Small"})
    assert answer.status_code == 400
    assert "secret" not in answer.text


def test_the_log_names_templates_and_never_what_was_sent(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        service.ask("GET", "/v1/users/secret-id/requirement")
        service.ask("GET", "/v1/users/secret-id/requirement?secret-name=secret-query")
        service.ask("GET", "/secret-path")
        service.ask("GET", "/v1/about", role=None, headers={"Authorization": "Bearer secret-token"})
    own = [record for record in caplog.records if record.name.startswith("wevent")]
    lines = [record.getMessage() for record in own]
    asked = "GET /v1/users/{user}/requirement"
    assert lines == [f"{asked} 404", f"{asked} 400", "GET (no such path) 404", "GET /v1/about 401"]


def test_an_error_that_nobody_foresaw_tells_nothing(
    service: Service, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("somebody's data")

    monkeypatch.setattr(service.context.reader, "once", broken)
    answer = service.ask("GET", "/v1/about")
    assert answer.status_code == 500
    assert "somebody" not in answer.text + caplog.text
    assert "KeyError at " in caplog.text


def test_ids_with_slashes_and_signs_are_one_part_of_a_path(service: Service) -> None:
    for path in ("a%2Fb", "%2E%2E%2Frequirement", "a%252Fb", "%F0%9F%9A%B2", "a%20b"):
        answer = service.ask(
            "PUT", f"/v1/users/{path}/requirement?dry_run=true", json={"level": "High/Small"}, role="enrol"
        )
        assert answer.status_code == 200, path
    for path in ("%FF", "%00", "erased%3Ax"):
        answer = service.ask("PUT", f"/v1/users/{path}/requirement", json={"level": "High/Small"}, role="enrol")
        assert answer.status_code == 400, path
    for path in (
        "/v1/users//requirement",
        "/v1/%75sers/1/requirement",
        "/v1/users%2F1/requirement",
    ):
        assert (
            service.ask("GET", httpx.URL(raw_path=path.encode(), scheme="http", host="service")).status_code == 404
        ), path


def test_the_document_describes_every_call(service: Service) -> None:
    document = service.ask("GET", "/openapi.json", role=None).json()
    assert "422" not in str(document["paths"])
    assert "HTTPValidationError" not in document["components"]["schemas"]
    for path, calls in document["paths"].items():
        for method, call in calls.items():
            assert call["description"], (method, path)
            for status, told in call["responses"].items():
                if int(status) >= 400 and path != "/readyz":
                    assert set(told["content"]) == {"application/problem+json"}, (method, path, status)
            if path not in ("/healthz", "/readyz"):
                assert call["security"], (method, path)
    assert document["paths"]["/v1/about"]["get"]["security"] == [{}, {"token": []}, {"link": []}]
    assert document["paths"]["/v1/me"]["get"]["security"] == [{"link": []}]
    assert service.ask("GET", "/docs").status_code == 404
