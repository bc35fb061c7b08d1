"""What everybody may see: formats, ranges, the stream of server-sent events."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from pathlib import Path
from typing import Any

import duckdb
import httpx
import pytest

from tests.support import commands
from tests.support.commands import PATIENCE_S
from tests.unit.service.service_parts import SLOTS, Service, make_service, write_journal
from wevent.errors import JournalUnreachable
from wevent.journal import open_journal
from wevent.outputs.lines import ndjson_line
from wevent.service import feed as release_feed
from wevent.service.feed import JournalReader, ReleaseFeed

PARQUET = "application/vnd.apache.parquet"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("journal")
    write_journal(folder)
    return folder


@pytest.fixture
def service(tmp_path: Path, folder: Path) -> Service:
    return make_service(tmp_path, folder / "run.journal", public=True)


def lines_of(path: Path) -> list[bytes]:
    with open_journal(path) as journal:
        return [ndjson_line(record) for record in journal.releases()]


def slots(service: Service, query: str) -> list[int]:
    answer = service.ask("GET", f"/v1/releases?{query}", role=None)
    assert answer.status_code == 200, answer.text
    return [release["slot"] for release in answer.json()["releases"]]


def test_about_says_what_stream_this_is(service: Service) -> None:
    told = service.ask("GET", "/v1/about", role=None).json()
    assert told["stream"] == "default"
    assert told["slot_length_s"] == 60
    assert told["slot_origin"] == commands.START
    assert told["cells"] == ["0", "1", "2", "3"]
    assert (told["committed"], told["first"], told["public"]) == (SLOTS, 1, True)
    assert told["next_due"] == "2026-01-01T00:07:01Z"


def test_every_format_has_the_same_releases(service: Service, folder: Path) -> None:
    lines = lines_of(folder / "run.journal")
    whole = service.ask("GET", "/v1/releases", role=None)
    assert whole.headers["content-type"] == "application/json"
    assert whole.json() == {"releases": [json.loads(line) for line in lines], "next": None}
    ndjson = service.ask("GET", "/v1/releases", role=None, headers={"Accept": "application/x-ndjson"})
    assert ndjson.content == b"".join(lines) == (folder / "out.ndjson").read_bytes()
    table = service.ask("GET", "/v1/releases", role=None, headers={"Accept": "text/csv"})
    rows = list(csv.DictReader(io.StringIO(table.text)))
    assert table.text == commands.call(folder, "releases", "run.journal", "--format", "csv").out
    parquet = service.ask("GET", "/v1/releases", role=None, headers={"Accept": PARQUET})
    assert parquet.headers["content-type"] == PARQUET
    (folder / "got.parquet").write_bytes(parquet.content)
    found = duckdb.execute(f"SELECT slot, cell, value FROM '{folder / 'got.parquet'}' ORDER BY slot, cell").fetchall()
    assert found == [(int(row["slot"]), row["cell"], float(row["value"]) if row["value"] else None) for row in rows]


def test_a_parquet_file_is_bounded_and_says_where_to_go_on(
    service: Service, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wevent.service.routes_releases._FILE_VALUES", 9)  # of four cells a slot
    part = service.ask("GET", "/v1/releases", role=None, headers={"Accept": PARQUET})
    assert "from=3" in part.headers["link"]
    (folder / "part.parquet").write_bytes(part.content)
    found = duckdb.execute(f"SELECT DISTINCT slot FROM '{folder / 'part.parquet'}' ORDER BY slot").fetchall()
    assert found == [(1,), (2,)]


def test_slots_are_chosen_by_number_or_time(service: Service) -> None:
    assert slots(service, "from=2&to=3") == [2, 3]
    assert slots(service, "limit=2") == [5, 6]
    assert slots(service, "to=3&limit=2") == [2, 3]
    assert slots(service, "from=2026-01-01T00:01:00Z&to=2026-01-01T00:03:00Z") == [2, 3]
    assert slots(service, "from=7") == []
    assert slots(service, f"from={10**30}") == []
    for bad in ("from=0", "from=-1", "from=x", "from=3&to=2", "limit=10001", "limit=x", f"from={'9' * 101}"):
        assert service.ask("GET", f"/v1/releases?{bad}", role=None).status_code == 400, bad


def test_a_part_says_where_to_go_on(service: Service) -> None:
    first = service.ask("GET", "/v1/releases?from=1&to=5&limit=2&cells=0,1", role=None)
    assert first.json()["next"] == 3
    address = first.headers["link"]
    assert address == '</v1/releases?from=3&to=5&cells=0%2C1&limit=2>; rel="next"'
    seen = [1, 2]
    while address:
        page = service.ask("GET", address[1 : address.index(">")], role=None)
        seen += [release["slot"] for release in page.json()["releases"]]
        address = page.headers.get("link", "")
    assert seen == [1, 2, 3, 4, 5]
    assert "link" not in service.ask("GET", "/v1/releases", role=None).headers


def test_cells_are_cut_as_the_command_does(service: Service, folder: Path) -> None:
    for kind, accept in (("ndjson", "application/x-ndjson"), ("csv", "text/csv")):
        said = commands.call(folder, "releases", "run.journal", "--cells", "2,0", "--format", kind).out
        assert service.ask("GET", "/v1/releases?cells=2,0", role=None, headers={"Accept": accept}).text == said
    refused = service.ask("GET", "/v1/releases?cells=9", role=None)
    assert "The journal declares no cells '9'." in refused.json()["detail"]


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("*/*", "application/json"),
        ("text/csv;q=0.5, application/x-ndjson;q=0.8", "application/x-ndjson"),
        ("text/*", "text/csv; charset=utf-8"),
        ("application/json;q=0, */*;q=0.1", "application/x-ndjson"),
        ("", "application/json"),
    ],
)
def test_the_header_chooses_the_format(service: Service, accept: str, kind: str) -> None:
    answer = service.ask("GET", "/v1/releases?limit=1", role=None, headers={"Accept": accept})
    assert answer.headers["content-type"] == kind


@pytest.mark.parametrize("accept", ["text/html", "*/*;q=0", "nonsense", "text/csv;q=0"])
def test_other_formats_are_refused(service: Service, accept: str) -> None:
    assert service.ask("GET", "/v1/releases", role=None, headers={"Accept": accept}).status_code == 406


def test_levels_and_ledger_and_statement_are_those_of_the_commands(service: Service, folder: Path) -> None:
    levels = service.ask("GET", "/v1/levels", role=None).json()
    assert [row["level"] for row in levels["rows"][:4]] == ["High/Small", "High/Large", "Low/Small", "Low/Large"]
    assert levels["rows"][0] == {
        "level": "High/Small",
        "privacy": "High",
        "window_word": "Small",
        "window": 4,
        "epsilon": 0.1,
        "span": "4 minutes",
        "odds": pytest.approx(1.10517),
        "users": None,
        "noise": pytest.approx(9.0),
    }
    assert (levels["privacy"], levels["windows"]) == (["High", "Low"], ["Small", "Large"])
    assert levels["users"] == 60
    status = json.loads(commands.call(folder, "status", "run.journal", "--json").out)
    ledger = service.ask("GET", "/v1/ledger", role=None).json()
    assert ledger["slot"] == SLOTS
    assert [{name: row[name] for name in row if name != "charged"} for row in ledger["classes"]] == status["classes"]
    assert all(row["left"] + row["charged"] == pytest.approx(row["epsilon"]) for row in ledger["classes"])
    statement = json.loads(commands.call(folder, "status", "run.journal", "--statement").out)
    assert service.ask("GET", "/v1/statement", role=None).json() == statement


def test_without_public_a_token_is_needed(tmp_path: Path, folder: Path) -> None:
    closed = make_service(tmp_path, folder / "run.journal")
    for path in ("/v1/about", "/v1/levels", "/v1/releases", "/v1/releases/stream", "/v1/ledger", "/v1/statement"):
        assert closed.ask("GET", path, role=None).status_code == 401, path
    assert closed.ask("GET", "/v1/about", role="read").status_code == 200


def test_large_releases_are_read_one_by_one_and_none_is_lost(
    service: Service, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release_feed, "_KEPT", 2)
    monkeypatch.setattr(release_feed, "_PIECE_BYTES", 1)
    asked = []
    ask = JournalReader.ask
    monkeypatch.setattr(JournalReader, "ask", lambda reader, question: asked.append(question) or ask(reader, question))
    for accept, cells in (("application/x-ndjson", None), ("application/x-ndjson", "0,2"), ("text/csv", None)):
        asked.clear()
        options = ("--format", "csv" if accept == "text/csv" else "ndjson", *(("--cells", cells) if cells else ()))
        said = commands.call(folder, "releases", "run.journal", *options).out
        path = "/v1/releases" if cells is None else f"/v1/releases?cells={cells}"
        assert service.ask("GET", path, role=None, headers={"Accept": accept}).text == said
        assert len(asked) >= SLOTS - 2, "each of those that are not kept"


# The stream


async def some_events(feed: ReleaseFeed, after: int | None, number: int) -> list[bytes]:
    """What a reader gets, until there are so many events."""
    found: list[bytes] = []
    async for text in feed.events(after, lambda: True):
        found += [part for part in text.split(b"\n\n") if part]
        if sum(part.startswith(b"id:") for part in found) >= number:
            break
    return found


def test_a_reader_gets_what_it_missed_and_then_what_comes(service: Service, folder: Path) -> None:
    async def act(client: httpx.AsyncClient) -> Any:
        feed = service.context.feed
        reading = asyncio.create_task(some_events(feed, 3, 3))
        return await asyncio.wait_for(reading, PATIENCE_S)

    lines = lines_of(folder / "run.journal")
    assert service.during(act) == [
        b"retry: 2000",
        *(b"id: %d\nevent: release\ndata: %s" % (slot, lines[slot - 1][:-1]) for slot in (4, 5, 6)),
    ]


def test_a_slot_that_is_committed_wakes_every_reader(tmp_path: Path) -> None:
    write_journal(tmp_path, SLOTS)
    service = make_service(tmp_path, tmp_path / "run.journal", public=True)

    async def act(client: httpx.AsyncClient) -> Any:
        feed = service.context.feed
        following = asyncio.create_task(feed.follow())
        readers = [asyncio.create_task(some_events(feed, None, 2)) for _ in range(200)]
        await asyncio.sleep(0.05)
        assert not any(reader.done() for reader in readers)
        commands.write_stream(tmp_path, SLOTS + 2)
        done = await asyncio.to_thread(commands.publish, tmp_path, SLOTS + 2, "--config", "wevent.toml")
        assert done.code == 0, done
        feed.wake(SLOTS + 2)
        found = await asyncio.wait_for(asyncio.gather(*readers), PATIENCE_S)
        feed.close()
        await following
        return found

    found = service.during(act)
    assert all(one == found[0] for one in found)
    assert [part.split(b"\n")[0] for part in found[0]] == [b"retry: 2000", b"id: 7", b"id: 8"]


def test_a_database_that_lags_behind_skips_no_slot(tmp_path: Path) -> None:
    """The one that answers may be a standby which does not show yet what the other one has committed."""
    write_journal(tmp_path, SLOTS)
    service = make_service(tmp_path, tmp_path / "run.journal", public=True)

    async def act(client: httpx.AsyncClient) -> Any:
        feed = service.context.feed
        feed.wake(SLOTS + 2)
        following = asyncio.create_task(feed.follow())
        await asyncio.sleep(0.2)
        assert feed.committed == SLOTS
        commands.write_stream(tmp_path, SLOTS + 2)
        done = await asyncio.to_thread(commands.publish, tmp_path, SLOTS + 2, "--config", "wevent.toml")
        assert done.code == 0, done
        feed.wake(SLOTS + 2)
        found = await asyncio.wait_for(some_events(feed, SLOTS, 2), PATIENCE_S)
        feed.close()
        await following
        return found

    assert [part.split(b"\n")[0] for part in service.during(act)] == [b"retry: 2000", b"id: 7", b"id: 8"]


def test_a_release_that_could_not_be_read_is_read_a_moment_later(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Not with the next slot: that may be a day away."""
    monkeypatch.setattr(release_feed, "_RETRY_S", 0.01)
    failures = iter(range(3))

    async def act(client: httpx.AsyncClient) -> None:
        feed = service.context.feed
        reader, feed.committed = feed._reader, SLOTS - 1
        ask = reader.ask

        async def asked(question: Any) -> Any:
            if next(failures, None) is not None:
                raise JournalUnreachable("No answer.", "Wait.", path="")
            return await ask(question)

        monkeypatch.setattr(reader, "ask", asked)
        following = asyncio.create_task(feed.follow())
        feed.wake(SLOTS)
        assert len(await asyncio.wait_for(some_events(feed, SLOTS - 1, 1), PATIENCE_S)) == 2
        feed.close()
        await following

    service.during(act)
    assert caplog.text.count("releases cannot be read") == 1, "said once, however often it failed"


def test_a_long_backlog_comes_in_pieces_from_the_journal(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_feed, "_KEPT", 2)
    monkeypatch.setattr(release_feed, "_PIECE", 2)

    async def act(client: httpx.AsyncClient) -> Any:
        return await asyncio.wait_for(some_events(service.context.feed, 0, SLOTS), PATIENCE_S)

    found = service.during(act)
    assert [part.split(b"\n")[0] for part in found[1:]] == [b"id: %d" % slot for slot in range(1, SLOTS + 1)]


def test_what_is_handed_over_at_once_is_bounded(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_feed, "_SENT_BYTES", 1)

    async def act(client: httpx.AsyncClient) -> Any:
        pieces = []
        async for text in service.context.feed.events(0, lambda: True):
            pieces.append(text)
            if len(pieces) > SLOTS:
                break
        return pieces

    pieces = service.during(act)
    assert all(piece.count(b"id: ") == 1 for piece in pieces[1:])


def test_silence_is_broken_now_and_then(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_feed, "HEARTBEAT_S", 0.01)

    async def act(client: httpx.AsyncClient) -> Any:
        pieces = []
        async for text in service.context.feed.events(SLOTS, lambda: True):
            pieces.append(text)
            if len(pieces) == 3:
                break
        return pieces

    assert service.during(act) == [b"retry: 2000\n\n", b": still here\n\n", b": still here\n\n"]


def test_a_stream_ends_with_its_token(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the next heartbeat: no release may come for hours."""
    monkeypatch.setattr(release_feed, "HEARTBEAT_S", 0.01)
    made = service.context.tokens.create(["read"])

    async def act(client: httpx.AsyncClient) -> Any:
        headers = {"Authorization": f"Bearer {made.text}", "Last-Event-ID": str(SLOTS)}
        answer = asyncio.create_task(client.get("/v1/releases/stream", headers=headers))
        while not service.context.feed.readers.total():
            await asyncio.sleep(0.01)
        service.context.tokens.revoke(made.record.id)
        return await asyncio.wait_for(answer, 60), service.context.feed.readers.total()

    answer, readers = service.during(act)
    assert answer.status_code == 200
    assert readers == 0


def test_the_stream_ends_when_the_service_does(service: Service) -> None:
    async def act(client: httpx.AsyncClient) -> Any:
        feed = service.context.feed
        answer = asyncio.create_task(client.get("/v1/releases/stream", headers={"Last-Event-ID": "4"}))
        while not feed.readers.total():
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        feed.close()
        return await answer

    answer = service.during(act)
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    assert [line for line in answer.text.splitlines() if line.startswith("id")] == ["id: 5", "id: 6"]


def test_a_place_that_is_none_is_refused(service: Service) -> None:
    for headers, query in (({"Last-Event-ID": "x"}, ""), ({}, "?after=-1"), ({"Last-Event-ID": "9" * 19}, "")):
        assert service.ask("GET", f"/v1/releases/stream{query}", role=None, headers=headers).status_code == 400
    assert service.ask("GET", "/v1/releases/stream", role=None, headers={"Accept": "text/csv"}).status_code == 406


def test_there_is_room_for_so_many_readers(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release_feed, "MAX_READERS", 0)
    answer = service.ask("GET", "/v1/releases/stream", role=None)
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "30"


def test_a_burst_of_requests_takes_no_more_places_than_one_caller_has(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release_feed, "MAX_READERS_OF_CALLER", 3)

    async def act(client: httpx.AsyncClient) -> Any:
        def ask(role: str) -> asyncio.Task[httpx.Response]:
            return asyncio.create_task(client.get("/v1/releases/stream", headers=service.header(role)))

        feed = service.context.feed
        asked = [*(ask("read") for _ in range(20)), ask("admin")]
        while sum(one.done() for one in asked) < 17 or feed.readers.total() < 4:
            await asyncio.sleep(0.01)
        feed.close()
        return [(await one).status_code for one in asked], feed.readers.total()

    statuses, left = service.during(act)
    assert sorted(statuses[:20]) == [200] * 3 + [429] * 17
    assert statuses[20] == 200
    assert left == 0
