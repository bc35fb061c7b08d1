"""The client against the real service: every call, both ways, and across a restart."""

from __future__ import annotations

import asyncio
import inspect
import secrets
import signal
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.support.commands import wait_for
from tests.support.service_process import ServiceProcess, configure, running, start
from wevent.client import AsyncClient, Client, ServiceRefused

WORDS = "a/b ü.?#%2F"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    folder = tmp_path_factory.mktemp("service")
    configure(folder, service="public = true\nmax_batch_bytes = 65536")
    with running(folder) as found:
        with Client(found.address) as client:  # the tests read slots 1 to 3
            next(release for release in client.stream(after=0) if release.slot == 3)
        yield found


def event(user: str) -> dict[str, Any]:
    return {"time": datetime.now(UTC), "user": user, "cell": "north"}


def life(client: Any, url: str) -> Iterator[Any]:
    """Every call once; what it gives back is sent in, awaited where it has to be."""
    about = yield client.about()
    assert about.cells == ["north", "south", "east", "west"]
    levels = yield client.levels()
    assert {row.level for row in levels.rows} >= {"High/Small", "High/Large", "Low/Small", "Low/Large"}
    tried = yield client.set_requirement(WORDS, level="High/Large", dry_run=True)
    assert tried.requirement.window == 8
    for wish in ({"level": "High/Large"}, {"privacy": "Low", "window": "Large"}, {"window": 4, "epsilon": "0.1"}):
        choice = yield client.set_requirement(WORDS, **wish)
    assert (choice.requirement.epsilon, choice.requirement.level) == (0.1, None)
    held = yield client.requirement(WORDS)
    assert held.requirement.window == 4
    taken = yield client.send([event(WORDS)] * 100)
    while taken.rejected == {"late": 100}:  # on a busy machine
        taken = yield client.send([event(WORDS)] * 100)
    assert (taken.accepted, taken.rejected) == (100, {})
    early = {**event(WORDS), "time": datetime(2000, 1, 1, tzinfo=UTC)}
    assert (yield client.send([early] * 2000)).rejected == {"before": 2000}
    odd = [{**early, "user": "\ud800"}, {**early, "time": datetime(2000, 1, 1)}, {**early, "x": "x" * 100_000}]
    assert (yield client.send([early, *odd, early])).rejected == {"before": 2, "no_record": 2, "no_offset": 1}
    assert (yield client.send(b"{}\n", batch_id="one")).rejected == {"no_record": 1}
    imported = yield client.import_requirements(b"user,level\n1,Low/Small\n")
    assert imported.added + imported.unchanged == 1
    assert (yield client.ledger()).slot >= about.committed
    assert (yield client.statement())["neighbours"] == "add_remove"
    assert (yield client.overview())["mechanism"] == "pbd"
    exported = yield client.export(WORDS)
    assert exported["memberships"] or exported["queued"]
    link = yield client.link(WORDS)
    yield client.revoke_links(WORDS)
    link = yield client.link(WORDS)
    own = type(client)(url, token=link.url.partition("#")[2])
    assert (yield own.requirement()).requirement.window == 4
    yield own.set_requirement(level="Low/Small")
    yield own.remove_requirement()
    yield own.end_link()
    yield own.close() if isinstance(own, Client) else own.aclose()
    yield client.erase("1")
    yield client.wait_until_ready()
    table = yield client.release_table(1, 2, cells=["north"])
    assert table.columns["slot"] == [1, 2]


def test_every_call_of_the_blocking_client(service: ServiceProcess) -> None:
    with Client(service.address, token=service.tokens["admin"]) as client:
        steps, answer = life(client, service.address), None
        while True:
            try:
                answer = steps.send(answer)
            except StopIteration:
                break
        assert next(iter(client.stream())).slot > 0
        assert len(list(client.releases(1, 3, page=2))) == 3


def test_every_call_of_the_asynchronous_client(service: ServiceProcess) -> None:
    async def live() -> None:
        async with AsyncClient(service.address, token=service.tokens["admin"]) as client:
            steps, answer = life(client, service.address), None
            while True:
                try:
                    asked = steps.send(answer)
                except StopIteration:
                    break
                answer = await asked if inspect.isawaitable(asked) else asked
            async for release in client.stream():
                assert release.slot > 0
                break
            assert len([release async for release in client.releases(1, 3, page=2)]) == 3

    asyncio.run(live())


def test_refusals_are_the_sentences_of_the_service(service: ServiceProcess) -> None:
    with Client(service.address, token=service.tokens["ingest"]) as client:
        with pytest.raises(ServiceRefused, match="This call needs a token for 'enrol'") as caught:
            client.export("somebody")
        assert caught.value.status == 403  # type: ignore[attr-defined]
        refused: list[ServiceRefused] = []

        def is_refused() -> bool:
            """While the slot of the first one is open: on a busy machine at another attempt."""
            name = secrets.token_hex(8)
            client.send([event("1")], batch_id=name)
            try:
                client.send([event("2")], batch_id=name)
            except ServiceRefused as error:
                refused.append(error)
            return bool(refused)

        wait_for(is_refused, "a refusal")
        assert "batch id" in str(refused[0])
        assert refused[0].status == 409  # type: ignore[attr-defined]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_streams_and_batches_go_on_after_a_restart(tmp_path: Path, number: signal.Signals) -> None:
    configure(tmp_path, service="public = true")
    (tmp_path / "wevent.toml").write_text((tmp_path / "wevent.toml").read_text().replace(":0", f":{free_port()}"))
    first = start(tmp_path)
    with Client(first.address, token=first.tokens["admin"]) as client:
        releases = client.stream(after=0)
        seen = [next(releases).slot]
        first.stop(number)
        with running(tmp_path):
            told = client.send([event("1")])  # while it was away its slot may have closed
            assert told.accepted + sum(told.rejected.values()) == 1
            seen += [next(releases).slot for _ in range(5)]
    assert seen == [1, 2, 3, 4, 5, 6]


def free_port() -> int:
    with socket.socket() as trying:
        trying.bind(("127.0.0.1", 0))
        return int(trying.getsockname()[1])
