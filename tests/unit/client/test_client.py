"""The clients against a real HTTP server that answers as scripted: what is sent, read, repeated, and never shown."""

from __future__ import annotations

import inspect
import json
import logging
import pickle
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.scripted_server import HANG_UP, Answer, scripted
from tests.unit.client.calling import Ask, Pauses, both
from wevent.client import AsyncClient, Client, ServiceRefused, ServiceUnreachable
from wevent.errors import InvalidOption, WeventError
from wevent.schemas import PersonalLink

TOKEN = "wev_ab12_verysecret"
EVENT = {"time": "2026-01-01T00:00:10Z", "user": "alice-4711", "cell": "north"}
TAKEN = Answer.json({"accepted": 1, "rejected": {}})


def released(slot: int) -> dict[str, Any]:
    return {
        "format": 2,
        "slot": slot,
        "start": f"2026-01-01T00:00:{slot:02d}Z",
        "end": f"2026-01-01T00:00:{slot + 1:02d}Z",
        "mechanism": "pft",
        "outcome": "fresh",
        "measured": slot,
        "cells": ["north", "south"],
        "histogram": [10.5, 7],
        "std_error": [1.0, 1.0],
        "low": [8, 5],
        "high": [12, 9],
        "classes": [{"window": 40, "epsilon": 0.5}],
        "charges": [0.1],
        "threshold": 0.1,
        "dissimilarity": None,
    }


ABOUT = {
    "stream": "default",
    "slot_length_s": 2.0,
    "slot_origin": "2026-01-01T00:00:00Z",
    "due_s": 1.5,
    "grace_s": 1.0,
    "mechanism": "pft",
    "neighbours": "add_remove",
    "max_cells_per_user": 1,
    "cells": ["north", "south"],
    "committed": 7,
    "first": 1,
    "next_due": "2026-01-01T00:00:17.5Z",
    "public": True,
    "version": "0.1.0",
    "a field of a later version": 1,
}


class TestReading:
    @both
    def test_what_is_public_about_a_stream(self, ask: Ask) -> None:
        with scripted(Answer.json(ABOUT)) as server:
            about = ask(server.url, "about")
            ask(server.url, "about", token=TOKEN)
        assert about.committed == 7
        assert about.slot_origin == datetime(2026, 1, 1, tzinfo=UTC)
        assert server.asked[0].target == "/v1/about"
        assert [asked.headers.get("authorization") for asked in server.asked] == [None, f"Bearer {TOKEN}"]

    @both
    def test_releases_come_page_after_page(self, ask: Ask) -> None:
        pages = [{"releases": [released(1), released(2)], "next": 3}, {"releases": [released(3)], "next": None}]
        with scripted(*map(Answer.json, pages)) as server:
            found = ask(server.url, "releases", 1, datetime(2026, 1, 2, tzinfo=UTC), cells=["north", "a,b"], page=2)
        assert [release.slot for release in found] == [1, 2, 3]
        assert found[0].by_cell() == {"north": 10.5, "south": 7}
        rest = "&to=2026-01-02T00%3A00%3A00%2B00%3A00&cells=north%2C%22a%2Cb%22&limit=2"
        assert [asked.target for asked in server.asked] == [f"/v1/releases?from={first}{rest}" for first in (1, 3)]

    @both
    def test_releases_are_the_table_that_files_give(self, ask: Ask) -> None:
        empty = {**released(2), "histogram": None, "low": None, "high": None, "std_error": None, "cells": 2}
        with scripted(Answer.json({"releases": [released(1), empty], "next": None})) as server:
            table = ask(server.url, "release_table")
        assert table.columns["slot"] == [1, 1, 2, 2]
        assert table.columns["cell"] == ["north", "south", "0", "1"]
        assert table.columns["value"] == [10.5, 7, None, None]
        assert table.to_polars().height == 4

    @both
    @pytest.mark.parametrize(("status", "said"), [(200, "one version"), (404, "The answer has status 404")])
    def test_an_answer_of_something_else(self, ask: Ask, status: int, said: str) -> None:
        with scripted(Answer(status, b"<h1>hello</h1>")) as server, pytest.raises(ServiceRefused, match=said):
            ask(server.url, "about")


class TestSending:
    @both
    def test_lines_go_out_with_an_id_of_their_own(self, ask: Ask) -> None:
        with scripted(Answer.json({"accepted": 1, "rejected": {"late": 1}})) as server:
            reply = ask(server.url, "send", [EVENT, {**EVENT, "time": datetime(2026, 1, 1, tzinfo=UTC)}], token=TOKEN)
            ask(server.url, "send", [EVENT], token=TOKEN)
        assert (reply.accepted, reply.rejected) == (1, {"late": 1})
        first, second = server.asked
        assert [json.loads(line)["time"] for line in first.body.splitlines()] == [
            EVENT["time"],
            "2026-01-01T00:00:00+00:00",
        ]
        assert first.body.endswith(b"\n")
        assert first.headers["content-type"] == "application/x-ndjson"
        assert first.headers["idempotency-key"] != second.headers["idempotency-key"]

    @both
    def test_the_same_events_are_the_same_batch(self, ask: Ask) -> None:
        with scripted(TAKEN) as server:
            ask(server.url, "send", [EVENT])
            ask(server.url, "send", b'{"time":"2026-01-01T00:00:10Z","user":"alice-4711","cell":"north"}')
            ask(server.url, "send", [EVENT], batch_id="mine")
        ids = [asked.headers["idempotency-key"] for asked in server.asked]
        assert ids[0] == ids[1]
        assert ids[2] == "mine"

    @both
    def test_large_batches_are_compressed(self, ask: Ask) -> None:
        with scripted(TAKEN) as server:
            ask(server.url, "send", [EVENT] * 1000)
        (asked,) = server.asked
        assert asked.headers["content-encoding"] == "gzip"
        assert len(asked.body) < 1000
        assert asked.plain.count(b"\n") == 1000

    @both
    @pytest.mark.parametrize("event", [{"time": object()}, {"cell": "\ud800"}, {(1, 2): 3}, "a line", None])
    def test_an_event_that_json_cannot_express_touches_no_other(self, ask: Ask, event: Any) -> None:
        with scripted(TAKEN) as server:
            ask(server.url, "send", [EVENT, event, EVENT])
        sent = [json.loads(line) for line in server.asked[0].body.splitlines()]
        assert sent == [EVENT, None, EVENT]

    @both
    @pytest.mark.parametrize("name", ["", "a b", "x\r\nhost: y", "ü", "x" * 201])
    def test_ids_that_are_none(self, ask: Ask, name: str) -> None:
        with pytest.raises(InvalidOption, match="visible ASCII"):
            ask("http://127.0.0.1:9", "send", [EVENT], batch_id=name)

    @both
    def test_a_batch_that_is_too_large_is_sent_in_parts(self, ask: Ask) -> None:
        events = [{**EVENT, "extra": "x" * 1000 * number} for number in (3, 2, 1)]
        large = Answer.problem(413, "The request is not valid. Send it in several parts.")
        for batch_id in (None, "mine"):
            with scripted(large, large, large, TAKEN, Answer.json({"accepted": 1, "rejected": {"late": 2}})) as server:
                reply = ask(server.url, "send", events, batch_id=batch_id)
            assert (reply.accepted, reply.rejected) == (2, {"late": 2, "no_record": 1})
            assert [asked.plain.count(b"\n") for asked in server.asked] == [3, 1, 2, 1, 1]
            ids = [asked.headers["idempotency-key"] for asked in server.asked]
            assert len(set(ids)) == 5
            with scripted(large, TAKEN) as server:
                ask(server.url, "send", events, batch_id=batch_id)
            assert [asked.headers["idempotency-key"] for asked in server.asked] == ids[:3], "the same in every attempt"


class TestAgain:
    """The service is away, or says to come back."""

    @both
    @pytest.mark.parametrize(
        "failure", [HANG_UP, *(Answer.problem(code, "Later.") for code in (429, 502, 503, 504, 507))]
    )
    def test_a_batch_goes_again_under_the_same_id(self, ask: Ask, failure: Answer) -> None:
        pauses = Pauses()
        with scripted(failure, failure, Answer.problem(503, "Later.", retry_after="7"), TAKEN) as server:
            assert ask(server.url, "send", [EVENT], pauses=pauses).accepted == 1
        assert len({(asked.headers["idempotency-key"], asked.body) for asked in server.asked}) == 1
        assert len(server.asked) == 4
        assert len(pauses) == 3
        assert pauses[-1] == 7.0, "as long as it is told"

    @both
    def test_pauses_grow_and_patience_ends(self, ask: Ask) -> None:
        pauses = Pauses()
        with (
            scripted(Answer.problem(429, "The request is not valid. Wait.")) as server,
            pytest.raises(ServiceRefused, match=r"^The request is not valid. Wait\.$"),
        ):
            ask(server.url, "send", [EVENT], pauses=pauses, patience_s=3.0)
        assert len(server.asked) == len(pauses) + 1
        assert pauses[0] <= 0.25
        assert pauses[-1] > pauses[0]

    @both
    def test_nobody_is_there(self, ask: Ask) -> None:
        with pytest.raises(ServiceUnreachable, match=r"reached: no connection \(.*refused.*\)|attempts failed"):
            ask("http://127.0.0.1:9", "about", patience_s=0.1)

    @both
    def test_no_answer_in_time(self, ask: Ask) -> None:
        stalled = Answer(pieces=[b"{"], hang_up=True)
        with scripted(stalled) as server, pytest.raises(ServiceUnreachable, match="the connection was lost"):
            ask(server.url, "about", patience_s=0.1)

    @both
    @pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 409, 413, 415, 500])
    def test_what_is_refused_is_not_asked_again(self, ask: Ask, status: int) -> None:
        with (
            scripted(Answer.problem(status, "The request is not valid. Do c.")) as server,
            pytest.raises(ServiceRefused, match=r"^The request is not valid. Do c\.$") as caught,
        ):
            ask(server.url, "send", [EVENT])
        assert len(server.asked) == 1
        assert (caught.value.status, caught.value.title) == (status, "A title")  # type: ignore[attr-defined]

    @both
    def test_a_link_is_not_made_twice(self, ask: Ask) -> None:
        with scripted(HANG_UP) as server, pytest.raises(ServiceUnreachable):
            ask(server.url, "link", "alice")
        assert len(server.asked) == 1

    @both
    def test_ready_is_waited_for(self, ask: Ask) -> None:
        with scripted(Answer.problem(503, "Behind."), Answer.json({"status": "ok"})) as server:
            assert ask(server.url, "wait_until_ready") is None
        assert len(server.asked) == 2


def sse(*slots: int) -> bytes:
    return b"".join(
        b"id: %d\nevent: release\ndata: %s\n\n" % (slot, json.dumps(released(slot)).encode()) for slot in slots
    )


class TestStreaming:
    @both
    def test_it_goes_on_where_it_was_broken_off(self, ask: Ask) -> None:
        pieces = sse(1, 2)
        first = Answer(pieces=[b": hello\n\n", pieces[:40], pieces[40:]], hang_up=True)
        second = Answer(pieces=[sse(2, 3)[:-9]], hang_up=True)  # the third is cut off
        third = Answer(pieces=[b": heartbeat\n\n", sse(3, 4)])
        with scripted(first, HANG_UP, Answer.problem(503, "Later."), second, third) as server:
            found = ask(server.url, "stream", after=0, take=4)
        assert [release.slot for release in found] == [1, 2, 3, 4]
        assert [asked.headers["last-event-id"] for asked in server.asked] == ["0", "2", "2", "2", "2"]
        assert {asked.headers["accept"] for asked in server.asked} == {"text/event-stream"}

    @both
    def test_from_now_on_means_after_what_is_released(self, ask: Ask) -> None:
        with scripted(Answer.json(ABOUT), HANG_UP, Answer(pieces=[sse(8)])) as server:
            found = ask(server.url, "stream", take=1)
        assert [release.slot for release in found] == [8]
        assert [asked.headers.get("last-event-id") for asked in server.asked] == [None, "7", "7"]

    @both
    def test_a_refusal_ends_it(self, ask: Ask) -> None:
        with (
            scripted(Answer.problem(401, "The request is not valid. Show one.")) as server,
            pytest.raises(ServiceRefused, match="not valid"),
        ):
            ask(server.url, "stream", after=0)
        assert len(server.asked) == 1

    @both
    def test_patience_ends(self, ask: Ask) -> None:
        with (
            scripted(Answer(pieces=[b": hello\n\n"])) as server,
            pytest.raises(ServiceUnreachable, match="the stream ended"),
        ):
            ask(server.url, "stream", after=0, patience_s=0.0)

    @both
    def test_the_server_says_how_long_to_wait(self, ask: Ask) -> None:
        pauses = Pauses()
        with scripted(Answer(pieces=[b"retry: 4000\n\n"]), Answer(pieces=[sse(1)])) as server:
            ask(server.url, "stream", after=0, take=1, pauses=pauses)
        assert 2.0 <= pauses[0] <= 4.0

    @both
    def test_an_event_that_is_no_release(self, ask: Ask) -> None:
        with (
            scripted(Answer(pieces=[b"event: news\ndata: x\n\nevent: release\ndata: x\n\n"])) as server,
            pytest.raises(ServiceRefused, match="cannot be read"),
        ):
            ask(server.url, "stream", after=0)


class TestPeople:
    CHANGE = Answer.json(
        {
            "requirement": {"window": 120, "epsilon": 0.1, "level": "High/Large", "span": "4 minutes"},
            "in_force_from": 9,
            "in_force_time": "2026-01-01T00:00:16Z",
            "earlier_until": 128,
            "earlier_until_time": "2026-01-01T00:04:14Z",
            "queued": True,
            "notes": ["A note."],
        }
    )

    @both
    def test_a_choice(self, ask: Ask) -> None:
        with scripted(self.CHANGE) as server:
            change = ask(server.url, "set_requirement", "../b ü.", level="High/Large", dry_run=True, token=TOKEN)
            ask(server.url, "set_requirement", 17, window=40, epsilon="0.5")
            ask(server.url, "set_requirement", privacy="High", window="Large")
        assert (change.in_force_from, change.earlier_until) == (9, 128)
        assert [(asked.method, asked.target, json.loads(asked.body)) for asked in server.asked] == [
            ("PUT", "/v1/users/%2E%2E%2Fb%20%C3%BC%2E/requirement?dry_run=true", {"level": "High/Large"}),
            ("PUT", "/v1/users/17/requirement", {"window": 40, "epsilon": "0.5"}),
            ("PUT", "/v1/me/requirement", {"privacy": "High", "window": "Large"}),
        ]

    @both
    def test_nobody_is_named(self, ask: Ask) -> None:
        with pytest.raises(InvalidOption, match="id of the user"):
            ask("http://127.0.0.1:9", "erase", "")


class TestSecrets:
    """Neither tokens nor ids are shown."""

    @both
    def test_nothing_is_logged(self, ask: Ask, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        with scripted(TestPeople.CHANGE, Answer.problem(404, "Not registered. Check the id.")) as server:
            ask(server.url, "set_requirement", "alice-4711", level="High/Large", token=TOKEN)
            with pytest.raises(ServiceRefused):
                ask(server.url, "export", "alice-4711", token=TOKEN)
        # httpx's own clients log addresses as information
        assert [record for record in caplog.records if record.levelno >= logging.INFO] == []
        assert "alice" not in caplog.text
        assert "verysecret" not in caplog.text

    @both
    def test_failures_name_nobody(self, ask: Ask) -> None:
        with scripted(HANG_UP) as server, pytest.raises(WeventError) as caught:
            ask(server.url, "export", "alice-4711", token=TOKEN, patience_s=0.0)
        shown = f"{caught.value!r} {caught.value} {caught.value.facts} {caught.value.__cause__}"
        assert "alice" not in shown
        assert "secret" not in shown

    def test_representations(self) -> None:
        shown = repr(Client("http://127.0.0.1:1/", token=TOKEN)) + repr(AsyncClient("http://127.0.0.1:1", token=TOKEN))
        assert shown == "<Client of http://127.0.0.1:1><AsyncClient of http://127.0.0.1:1>"
        link = PersonalLink("https://stats.example/choose#wel_secret", datetime(2026, 1, 1, tzinfo=UTC))
        assert "secret" not in repr(link) + str(link) + f"{link}"

    @pytest.mark.parametrize("kind", [Client, AsyncClient])
    def test_a_token_does_not_travel_unencrypted(self, kind: Any) -> None:
        with pytest.raises(InvalidOption, match="Without https"):
            kind("http://stats.example", token=TOKEN)
        kind("http://stats.example")
        kind("http://stats.example", token=TOKEN, plain_http=True)
        for url in ("http://localhost:1", "http://127.0.0.2", "http://[::1]:8080", "https://stats.example/city/"):
            kind(url, token=TOKEN)

    @pytest.mark.parametrize(
        "url",
        ["stats.example", "ftp://x", "http://", "http://u:p@x", "http://x/?a=1", "http://x:99999", "http://x/#wel_s"],
    )
    def test_addresses_that_are_none(self, url: str) -> None:
        with pytest.raises(InvalidOption, match="the address of a service") as caught:
            Client(url)
        assert "wel_s" not in str(caught.value)

    @pytest.mark.parametrize("token", ["", "a b", "wev_x\n", "ü"])
    def test_tokens_that_are_none(self, token: str) -> None:
        with pytest.raises(InvalidOption, match="The token has characters"):
            Client("http://127.0.0.1", token=token)


class TestFace:
    def test_both_clients_have_the_same_calls(self) -> None:
        for name, method in vars(AsyncClient).items():
            if name.startswith("_") or name == "aclose":
                continue
            blocking = getattr(Client, name)
            parameters = [inspect.signature(one).parameters for one in (blocking, method)]
            assert parameters[0] == parameters[1]
            assert blocking.__doc__ == method.__doc__
            assert "Async" not in inspect.signature(blocking).return_annotation
            assert not inspect.iscoroutinefunction(blocking)
        assert inspect.signature(Client).parameters.keys() == inspect.signature(AsyncClient).parameters.keys()

    def test_refusals_can_be_pickled(self) -> None:
        for sentence in ("The request is not valid. Do c.", "A sentence of a proxy."):
            error = pickle.loads(pickle.dumps(ServiceRefused(sentence, 400, "Bad", {"key": "x"})))
            assert (str(error), error.status, error.answer) == (sentence, 400, {"key": "x"})

    def test_without_httpx(self) -> None:
        code = (
            "import sys; sys.modules['httpx'] = sys.modules['anyio'] = None\n"
            "import wevent.client\n"
            "try: wevent.client.Client('http://127.0.0.1')\n"
            "except wevent.WeventError as error: print(error)\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip().endswith("Run pip install 'wevent[client]'.")
