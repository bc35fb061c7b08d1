"""Who is let through: every role at every door, odd headers, limits; and no token in any answer."""

from __future__ import annotations

import asyncio
import pickle
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from fastapi import Request

from tests.unit.service.access_parts import NOW, Clock, Door, Parts, guarded_app, parts
from wevent.service.access import Caller, any_caller, count, needs
from wevent.service.problems import RequestError, problem_of
from wevent.service.tokens import CredentialRefused

ROLES = ("ingest", "enrol", "read", "admin")
DOORS = (*ROLES, "public", "me")


@pytest.fixture
def service(tmp_path: Path, clock: Clock) -> Parts:
    return parts(tmp_path)


def recognise(context: Parts, headers: list[tuple[bytes, bytes]], host: str | None, *, public: bool = False) -> Caller:
    app = SimpleNamespace(state=SimpleNamespace(context=context))
    scope = {"type": "http", "headers": headers, "client": host and (host, 1), "app": app}
    return asyncio.run((any_caller if public else needs("read"))(Request(scope)))


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def credentials(service: Parts, clock: Clock) -> dict[str, str | None]:
    """One of every kind; those that admit nobody are made for every door."""
    revoked = service.tokens.create(ROLES)
    service.tokens.revoke(revoked.record.id)
    expired = service.tokens.create(ROLES, expires=NOW + 1)
    old_link, link, ended = (service.tokens.make_link("ann", life) for life in (1, 100, 100))
    service.tokens.end_link(ended.record)
    clock.now += 1
    return {
        **{role: service.tokens.create([role]).text for role in ROLES},
        "link": link.text,
        "none": None,
        "revoked": revoked.text,
        "expired": expired.text,
        "foreign": "wev_0123abcd_" + "0" * 64,
        "expired link": old_link.text,
        "ended link": ended.text,
    }


def expected(door: str, held: str, public: bool) -> int:
    if held not in (*ROLES, "link"):
        return 200 if held == "none" and door == "public" and public else 401
    if door == "me":
        return 200 if held == "link" else 403
    return 200 if door == "public" or held in (door, "admin") else 403


@pytest.mark.parametrize("public", [False, True])
def test_every_door_and_every_credential(service: Parts, clock: Clock, public: bool) -> None:
    service.settings.public = public
    client = Door(guarded_app(service))
    held = credentials(service, clock)
    for door in DOORS:
        for name, text in held.items():
            answer = client.get(f"/{door}", headers={} if text is None else bearer(text))
            assert answer.status_code == expected(door, name, public), (door, name)
            assert (answer.headers.get("WWW-Authenticate") == "Bearer") == (answer.status_code == 401)
            assert text is None or text not in answer.text
            if answer.status_code == 200:
                assert answer.json()["user"] == ("ann" if name == "link" else None)
            else:
                assert re.fullmatch(r"[^.]+\. [^.]+\.", answer.json()["detail"])
                assert "ann" not in answer.json()["detail"]


@pytest.mark.parametrize(
    "value",
    [
        b"", b" ", b"Bearer", b"Bearer ", b"Bearer  ", b"TOKEN", b"Basic TOKEN", b"Token TOKEN", b"Bearer TOKEN TOKEN",
        b"BearerTOKEN", b"Bearer\tTOKEN", b"Bearer TOKEN,", b'Bearer "TOKEN"', b"Bearer \xc3\xa9", b"Bearer \xff\xfe",
        b"Bearer TOKEN\x00", b"Bearer TOKEN\xa0", b"Bearer " + b"x" * 100_000, b"x" * 1_000_000, b"Bearer wev_",
        b"Bearer wel_", b"Bearer wev__", b"Bearer wel_====", b"Bearer Bearer TOKEN", b"Bearer wev_%00",
        b"Bearer wel_" + b"A" * 590, b"Digest username=TOKEN", b"\xef\xbb\xbfBearer TOKEN",
    ],
)  # fmt: skip
def test_odd_headers_are_refused(service: Parts, value: bytes) -> None:
    text = service.tokens.create(["admin"]).text
    value = value.replace(b"TOKEN", text.encode())
    service.settings.public = True  # a token that is sent is judged, also where none is needed
    with pytest.raises((RequestError, CredentialRefused)) as caught:
        recognise(service, [(b"authorization", value)], "192.0.2.1", public=True)
    assert problem_of(caught.value).status_code == 401
    assert text not in str(caught.value)


def test_the_scheme_in_any_case_and_blanks_around_it(service: Parts) -> None:
    text = service.tokens.create(["read"]).text.encode()
    for value in (b"Bearer " + text, b"bearer " + text, b"BEARER   " + text, b" Bearer " + text + b" \t"):
        assert recognise(service, [(b"Authorization", value)], None).kind == "token"


def test_several_headers_are_refused(service: Parts) -> None:
    text = service.tokens.create(["admin"]).text.encode()
    for second in (b"Bearer " + text, b"Basic x", b""):
        headers = [(b"authorization", b"Bearer " + text), (b"authorization", second)]
        with pytest.raises(RequestError, match="Send one header") as caught:
            recognise(service, headers, "192.0.2.1")
        assert caught.value.status == 401


def test_no_token_elsewhere_counts(service: Parts) -> None:
    text = service.tokens.create(["admin"]).text
    client = Door(guarded_app(service))
    assert client.get(f"/read?token={text}&access_token={text}").status_code == 401
    assert (
        client.get("/read", headers={"X-Authorization": f"Bearer {text}", "Cookie": f"token={text}"}).status_code == 401
    )


def test_a_damaged_file_admits_nobody_but_the_public(service: Parts, caplog: pytest.LogCaptureFixture) -> None:
    token, link = service.tokens.create(["admin"]).text, service.tokens.make_link("ann", 60).text
    service.tokens.path.write_bytes(b"damaged")
    client = Door(guarded_app(service))
    for door in DOORS:
        for text in (token, link, "wev_0123abcd_" + "0" * 64):
            answer = client.get(f"/{door}", headers=bearer(text))
            assert answer.status_code == 503
            assert "tokens file cannot be used" in answer.json()["detail"]
            assert str(service.tokens.path) not in answer.text
        assert client.get(f"/{door}").status_code == 401
    service.settings.public = True
    assert client.get("/public").status_code == 200
    assert client.get("/read").status_code == 401
    assert caplog.text.count("tokens and links are not accepted") == 1, "logged once"
    assert token not in caplog.text


def test_too_many_requests(tmp_path: Path, clock: Clock) -> None:
    service = parts(tmp_path, requests_per_minute=6)
    first, second = service.tokens.create(["read"]).text, service.tokens.create(["read"]).text
    client = Door(guarded_app(service))
    assert [client.get("/read", headers=bearer(first)).status_code for _ in range(7)] == [200] * 6 + [429]
    answer = client.get("/admin", headers=bearer(first))
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "10")
    assert client.get("/read", headers=bearer(second)).status_code == 200
    assert [client.get("/read").status_code for _ in range(7)] == [401] * 6 + [429]
    assert client.get("/read", headers=bearer("wev_guess")).status_code == 429  # guesses count for the address
    assert client.get("/read", headers=bearer(second)).status_code == 200
    clock.now += 10
    assert client.get("/read", headers=bearer(first)).status_code == 200


def test_too_many_events(tmp_path: Path, clock: Clock) -> None:
    service = parts(tmp_path, events_per_minute=100)
    caller, other = Caller("token", "00000001"), Caller("token", "00000002")
    count(service.events, caller, "events", 100)
    with pytest.raises(RequestError, match="limit of events per minute") as caught:
        count(service.events, caller, "events", 50)
    assert (caught.value.status, caught.value.headers) == (429, {"Retry-After": "30"})
    count(service.events, other, "events", 100)


def test_addresses_of_one_household_count_together(tmp_path: Path, clock: Clock) -> None:
    for hosts, statuses in (
        (("2001:db8::1", "2001:db8::2"), [401, 429]),
        (("2001:db8::1", "2001:db8:0:1::1"), [401, 401]),
        (("192.0.2.1", "::ffff:192.0.2.1"), [401, 429]),
        (("192.0.2.1", "192.0.2.2"), [401, 401]),
        ((None, "testclient"), [401, 429]),
        (("fe80::1%eth0", "x" * 10_000), [401, 401]),
    ):
        service = parts(tmp_path, requests_per_minute=1)
        found = []
        for host in hosts:
            with pytest.raises(RequestError) as caught:
                recognise(service, [], host)
            found.append(caught.value.status)
        assert found == statuses, hosts


def test_nobody_is_named_in_a_representation(service: Parts) -> None:
    link = service.tokens.make_link("ann", 60)
    caller = recognise(service, [(b"authorization", b"Bearer " + link.text.encode())], "192.0.2.1", public=True)
    assert caller.user == "ann"
    assert caller.roles == frozenset()
    assert "ann" not in repr(caller)
    assert link.text not in repr(caller)
    service.settings.public = True
    assert "192.0.2.1" not in repr(recognise(service, [], "192.0.2.1", public=True))


def test_a_refusal_survives_a_pickle() -> None:
    error = RequestError(429, "Too many requests.", "Wait.", {"Retry-After": "1"})
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.status, again.headers) == (str(error), 429, {"Retry-After": "1"})
