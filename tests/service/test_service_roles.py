"""Every call × everybody who may ask: what each is answered stands in one table here, and in docs/reference/http-access.md.

The calls come from the OpenAPI document of the running service, so a new one fails here until the table knows it.
`WEVENT_WRITE_DOCS=1` writes the page anew.
"""

from __future__ import annotations

import base64
import itertools
import os
import re
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

import httpx
import pytest

from tests.service.serving_process import ROOT, Service, event_line
from wevent.service.tokens import ROLES, Role

PAGE = ROOT / "docs" / "reference" / "http-access.md"
PERSON = "zqperson"  # in every id: nothing else has it
NDJSON, CSV, JSON = "application/x-ndjson", "text/csv", "application/json"
WINDOW = 4


class Call(NamedTuple):
    """A call that is as it should be.

    Attributes:
        access: who is let through: "none" (everybody), "public" (any token or link; everybody if the service is public), a
            role (and admin), or "link" (people with their own link, and nobody else).
        status: for whom is let through.
        kind: the media type of what is sent.
        body: what is sent; PERSON stands for the person.
    """

    access: str
    status: int = 200
    kind: str = ""
    body: str = ""


REQUIREMENT = f'{{"window":{WINDOW},"epsilon":0.5}}'
CALLS = {
    "GET /v1/about": Call("public"),
    "GET /v1/levels": Call("public"),
    "GET /v1/ledger": Call("public"),
    "GET /v1/statement": Call("public"),
    "GET /v1/releases": Call("public"),
    "GET /v1/releases/stream": Call("public"),
    "POST /v1/events": Call("ingest", 200, NDJSON, event_line(PERSON, 1).decode()),
    "PUT /v1/users/{user}/requirement": Call("enrol", 200, JSON, REQUIREMENT),
    "GET /v1/users/{user}/requirement": Call("enrol"),
    "DELETE /v1/users/{user}/requirement": Call("enrol"),
    "GET /v1/users/{user}": Call("enrol"),
    "DELETE /v1/users/{user}": Call("enrol"),
    "POST /v1/users/{user}/link": Call("enrol", 201),
    "DELETE /v1/users/{user}/links": Call("enrol", 204),
    "POST /v1/users": Call("enrol", 200, CSV, f"user,window,epsilon\n{PERSON},{WINDOW},0.5\n"),
    "PUT /v1/me/requirement": Call("link", 200, JSON, '{"level":"High/Small"}'),
    "GET /v1/me/requirement": Call("link"),
    "DELETE /v1/me/requirement": Call("link"),
    "GET /v1/me": Call("link"),
    "DELETE /v1/me": Call("link"),
    "DELETE /v1/me/link": Call("link", 204),
    "GET /healthz": Call("none"),
    "GET /readyz": Call("none"),
    "GET /metrics": Call("admin"),
    "GET /v1/admin/overview": Call("admin"),
}
"""Who may do what."""

BESIDE = {f"GET {path}": Call("none") for path in ("/", "/choose", "/admin", "/static/plotly.min.js", "/openapi.json")}
"""What is served beside the API, and is not in its document."""

PERSONS = ("link", "another's link")
STRANGERS = (
    "nobody",
    "malformed",
    "expired token",
    "revoked token",
    "another service's token",
    "expired link",
    "ended link",
    "all links ended",
    "erased person's link",
    "another service's link",
    "changed link",
)
MALFORMED = ("Bearer", "Basic d2V2Og==", "Bearer wev_", "Bearer wev_00000000_" + "0" * 64, "wev_1", "Bearer \xff")
MALFORMED += ("Bearer " + "x" * 5000, "Bearer a b", "Digest username=admin", "Bearer wel_", "Bearer wel_AAAA")


def expected(call: Call, asks: str, *, public: bool = False) -> int:
    """What somebody is answered."""
    if call.access == "none":
        return call.status
    if asks in STRANGERS:
        return call.status if asks == "nobody" and public and call.access == "public" else 401
    if call.access == "public":
        return call.status
    let_through = asks in PERSONS if call.access == "link" else asks in (call.access, "admin")
    return call.status if let_through else 403


class Asking:
    """Everybody who may ask a service, and what they were answered.

    Args:
        service: that runs.
        other: another one.
    """

    def __init__(self, service: Service, other: Service) -> None:
        self.service, self.other = service, other
        self._client = service.asker()
        self._numbers = itertools.count(1)
        self.secrets: set[str] = set()
        self.refused: set[str] = set()  # people whom refused calls were about
        self._guarded: dict[str, str] = {}  # by call
        self._tokens = {role: self._token(role) for role in ROLES}
        self._enrolling = {"Authorization": f"Bearer {self._tokens['enrol']}"}
        expired = service.tokens.create(["admin"], expires=int(time.time()) - 3600)
        self._tokens["expired token"] = expired.text
        revoked = service.tokens.create(ROLES)
        assert self._status("GET", "/v1/about", revoked.text) == 200
        service.tokens.revoke(revoked.record.id)
        self._tokens["revoked token"] = revoked.text
        self._tokens["another service's token"] = other.token(*ROLES)
        self.secrets |= set(self._tokens.values())

    def person(self) -> str:
        """Somebody new who is registered."""
        user = f"{PERSON}-{next(self._numbers)}"
        answer = self._client.put(
            f"/v1/users/{user}/requirement", content=REQUIREMENT, headers={**self._enrolling, "Content-Type": JSON}
        )
        assert answer.status_code == 200, answer.text
        return user

    def credential(self, asks: str, user: str) -> str | None:
        """What somebody sends, for or about a person; None: nothing."""
        if asks == "nobody":
            return None
        if asks in self._tokens:
            return self._tokens[asks]
        link = self._link(asks, user)
        self.secrets.add(link)
        return link

    def ask(self, name: str, call: Call, asks: str, header: str | None = None) -> httpx.Response:
        """One call, about somebody new if it may change something; all that must not are about the same person."""
        is_let_through = expected(call, asks) not in (401, 403)
        if call.access in ("none", "public", "admin"):
            user = f"{PERSON}-0"
        elif is_let_through or name not in self._guarded:
            user = self.person()
            if not is_let_through:
                self._guarded[name] = user
        else:
            user = self._guarded[name]
        credential = self.credential(asks, user) if header is None else None
        headers: Any = [("Content-Type", call.kind)] if call.kind else []
        if credential is not None or header is not None:
            headers.append(("Authorization", (header or f"Bearer {credential}").encode("latin-1")))
        method, path = name.split()
        body = call.body.replace(PERSON, user)
        asked = self._client.build_request(method, path.replace("{user}", user), content=body or None, headers=headers)
        answer = self._client.send(asked, stream=True)
        if not path.endswith(("/stream", ".js")) or answer.status_code != 200:
            answer.read()
        answer.close()
        if answer.status_code in (401, 403):
            self.refused.add(user)
        return answer

    def _status(self, method: str, path: str, token: str) -> int:
        return self._client.request(method, path, headers={"Authorization": f"Bearer {token}"}).status_code

    def _token(self, *roles: Role) -> str:
        return self.service.token(*roles)

    def _link(self, asks: str, user: str) -> str:
        service = self.service
        if asks == "another's link":
            return service.link(self.person())
        if asks == "erased person's link":
            gone = self.person()
            link = service.link(gone)
            assert self._client.delete(f"/v1/users/{gone}", headers=self._enrolling).status_code == 200
            return link
        if asks == "expired link":
            past = SimpleNamespace(time=lambda: time.time() - 100, time_ns=time.time_ns)
            with patch("wevent.service.tokens.time", past):
                return service.tokens.make_link(user, 60).text
        if asks == "another service's link":
            return self.other.link(user)
        link = service.link(user)
        if asks == "ended link":
            assert self._status("DELETE", "/v1/me/link", link) == 204
        elif asks == "all links ended":
            assert self._status("DELETE", f"/v1/users/{user}/links", self._tokens["enrol"]) == 204
        elif asks == "changed link":  # for somebody else, with the signature of this one
            payload = bytearray(base64.urlsafe_b64decode(link[4:] + "=" * (-len(link[4:]) % 4)))
            payload[-33] ^= 1
            return "wel_" + base64.urlsafe_b64encode(bytes(payload)).rstrip(b"=").decode()
        return link


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, Service]]:
    """One for whoever has a token, and a public one; each is a stranger to the other."""
    folder = tmp_path_factory.mktemp("roles")
    people = [(f"{PERSON}-0", WINDOW, 0.5), ("somebody", 8, 0.5)]
    both = (
        Service(folder / "private", people, slot="1h"),
        Service(folder / "public", people, slot="1h", service={"public": True}),
    )
    for service in both:
        service.link("somebody")  # makes the key of its links
        service.start("--log", "debug")
    yield both
    for service in both:
        service.close()


def test_everybody_is_answered_as_the_table_says(services: tuple[Service, Service]) -> None:
    """One test: what is logged, told and changed is looked at once everybody has asked."""
    private, public = services
    paths = private.asker().get("/openapi.json").json()["paths"]
    assert {f"{method.upper()} {path}" for path, calls in paths.items() for method in calls} == set(CALLS)
    asking = Asking(private, public)
    answers = [answer for name in (*CALLS, *BESIDE) for answer in ask_all(asking, name)]
    wrong = [told for told in answers if told.answer.status_code != expected((CALLS | BESIDE)[told.name], told.asks)]
    assert not wrong
    check_told(answers, asking.secrets)
    check_unchanged(private, asking.refused)
    check_public(private, public)
    check_logged(private.log + public.log, asking.secrets)


class Told(NamedTuple):
    """A call, who asked, and what they were answered."""

    name: str
    asks: str
    answer: httpx.Response


def ask_all(asking: Asking, name: str) -> Iterator[Told]:
    """Let everybody ask."""
    for asks in (*STRANGERS, *ROLES, *PERSONS):
        for header in MALFORMED if asks == "malformed" else (None,):
            yield Told(name, asks, asking.ask(name, (CALLS | BESIDE)[name], asks, header))


def check_told(answers: list[Told], secrets: set[str]) -> None:
    """Nobody is told a token, a link or an id, but who makes a link."""
    for name, asks, answer in answers:
        assert answer.status_code != 401 or answer.headers["www-authenticate"] == "Bearer", (name, asks)
        text = repr(answer.headers) + (answer.text if answer.is_stream_consumed else "")
        assert PERSON not in text, (name, asks)
        assert not any(secret in text for secret in secrets), (name, asks)
        is_new_link = name == "POST /v1/users/{user}/link" and answer.status_code == 201
        assert is_new_link == bool(re.search(r"we[vl]_[\w-]{8}", text)), (name, asks)


def check_unchanged(service: Service, refused: set[str]) -> None:
    """Who is refused changes nothing."""
    assert len(refused) > 10
    with service.asker(service.token("enrol")) as client:
        for user in sorted(refused):
            held = client.get(f"/v1/users/{user}/requirement")
            assert held.status_code == 200, user
            assert held.json()["requirement"]["window"] == WINDOW


def check_public(private: Service, public: Service) -> None:
    """A public service needs no token for what is released; one that is sent is judged all the same."""
    for name, call in CALLS.items():
        sent: dict[str, dict[str, str]] = {"nobody": {}, "another service's token": _bearer(private.token("admin"))}
        for asks, headers in sent.items():
            target = name.replace("{user}", "somebody").split()
            with public.asker() as client, client.stream(*target, headers=headers) as answer:
                assert answer.status_code == expected(call, asks, public=True), (name, asks)


def check_logged(log: str, secrets: set[str]) -> None:
    """Calls and answers are logged; no id, token or link, in whatever form."""
    assert "POST /v1/events 403" in log
    assert "PUT /v1/users/{user}/requirement 200" in log
    assert PERSON not in log
    assert base64.b64encode(PERSON.encode())[:8].decode() not in log
    assert not re.search(r"we[vl]_", log)
    assert not any(secret[-40:] in log for secret in secrets)
    assert "Traceback" not in log


def test_a_link_shows_its_own_person_alone_and_a_token_nothing_once_it_is_revoked(
    services: tuple[Service, Service],
) -> None:
    service = services[0]
    links = {WINDOW: service.link(f"{PERSON}-0"), 8: service.link("somebody")}
    for window, link in links.items():
        with service.asker(link) as client:
            assert client.get("/v1/me/requirement").json()["requirement"]["window"] == window
            assert [row["window"] for row in client.get("/v1/me").json()["memberships"]] == [window]
            for sneaky in ("?user=somebody", f"?user={PERSON}-0", "?id=somebody"):
                assert client.get(f"/v1/me{sneaky}").status_code == 400
    made = service.tokens.create(["read"])
    with service.asker(made.text) as client:
        assert client.get("/v1/about").status_code == 200
        assert service.command("token", "run.journal", "revoke", made.record.id).code == 0
        assert client.get("/v1/about").status_code == 401


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_the_page_has_this_table() -> None:
    text = page()
    if "WEVENT_WRITE_DOCS" in os.environ:
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text


def page() -> str:
    columns = ("nobody", *ROLES, "link")
    lines = [
        "# Who is answered what",
        "",
        "Every call of the [HTTP API](http.md) and everybody who may ask, with the status of the answer. Made by",
        "`tests/service/test_service_roles.py`, which asks a running service each of them (`WEVENT_WRITE_DOCS=1` writes this",
        "page).",
        "",
        "| call | for | nobody | " + " | ".join(f"`{role}`" for role in ROLES) + " | own link |",
        "|---" * (len(columns) + 2) + "|",
    ]
    for name, call in (CALLS | BESIDE).items():
        told = " | ".join(str(expected(call, asks)) for asks in columns)
        whom = {"none": "everybody", "link": "the person", "public": "public"}.get(call.access, f"`{call.access}`")
        lines.append(f"| `{name}` | {whom} | {told} |")
    lines += [
        "",
        "*public*: with `public = true` in `[service]` nobody is answered 200 as well. Like nobody (401) is treated whoever",
        f"sends what is not in force, also where nothing is needed: {', '.join(STRANGERS[1:])}.",
        "",
        "A link is for `/v1/me` and its own person alone: under `/v1/users` it is refused, whoever's id is in the path.",
        "Who is refused changes nothing.",
        "",
    ]
    return "\n".join(lines)
