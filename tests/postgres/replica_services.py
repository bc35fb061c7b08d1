"""Two real services over one journal in a database: started, killed, frozen, restarted, while events are sent to both."""

from __future__ import annotations

import json
import random
import secrets
import time
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import httpx
import psycopg

from tests.postgres.journal_parts import silence
from tests.service.sending import Books, Clock, Enroller, Sender, SentBatch, StreamReader, people
from tests.service.serving_process import Service
from tests.support.commands import PATIENCE_S, Done, call, wait_for
from tests.support.postgres_server import own_schema
from wevent.journal import JournalAddress, open_journal, parse_address
from wevent.journal.address import PostgresAddress
from wevent.outputs.lines import ndjson_line
from wevent.service.tokens import Tokens

SERVING = "tests.postgres.replica_serving"
LEASE_S = 2  # how often roles are looked at; see `replica_serving` for how long a writer may be silent
SENDERS = 2


class Replicas:
    """Services over one journal, each with a folder of its own; they share the witness folder and the tokens.

    Args:
        folder: where all files are.
        url: of the server.
        number: of replicas.
        **settings: of all of them.

    Attributes:
        place: of the journal.
        services: one after the other.
    """

    def __init__(self, folder: Path, url: str, number: int = 2, **settings: Any) -> None:
        self.folder, self.side = folder, folder / "side"
        folder.mkdir(exist_ok=True)
        self.side.mkdir(mode=0o700)
        self.address = f"{url}?schema={own_schema()}&witness={self.side}&lease={LEASE_S}"
        place: JournalAddress = parse_address(self.address)
        assert isinstance(place, PostgresAddress)
        self.place = place
        tokens = Tokens(self.side / f"{place.schema}.tokens")
        self._told = {name: folder / name for name in ("witness.ndjson", "draws.ndjson")}
        told = {"slot": "400ms", "grace": "3s", "time_unit": "us", "journal": self.address, **settings}
        self._looking: psycopg.Connection[Any] | None = None
        self._committed = 0
        self.services = []
        for one in range(number):
            service = Service(folder / f"replica-{one}", people(SENDERS), **told)
            service.tokens = tokens
            self.services.append(service)

    @property
    def witness(self) -> Path:
        return self._told["witness.ndjson"]

    @property
    def draws(self) -> Path:
        return self._told["draws.ndjson"]

    @property
    def url(self) -> str:
        """Of any of those that run; for senders, who try the next one."""
        running = [one.url for one in self.services if one.url and one.runs]
        return random.choice(running or [self.services[0].url])

    def token(self, *roles: str) -> str:
        return self.services[0].token(*roles)

    def sentence(self, service: Service) -> Path:
        return self.folder / f"sentence-{service.folder.name}"

    def start(self, service: Service) -> None:
        self.sentence(service).unlink(missing_ok=True)
        told = {
            "WEVENT_WITNESS": str(self.witness),
            "WEVENT_DRAWS": str(self.draws),
            "WEVENT_SENTENCE": str(self.sentence(service)),
        }
        service.start(module=SERVING, told=told)

    def condemn(self, service: Service, sentence: str) -> None:
        """From now on it dies, or stands still, at a step."""
        draft = self.folder / "draft"
        draft.write_text(sentence)
        draft.rename(self.sentence(service))

    def role(self, service: Service) -> str | None:
        """What it says its role is; None if it does not answer."""
        return self._readiness(service).get("role")

    def condition(self, service: Service) -> str | None:
        """How it says it is; None if it does not answer."""
        return self._readiness(service).get("status")

    def _readiness(self, service: Service) -> dict[str, str]:
        try:
            return dict(httpx.get(service.url + "/readyz", timeout=PATIENCE_S).json())
        except (httpx.TransportError, ValueError):
            return {}

    def writer(self, but: Service | None = None) -> Service:
        """The one that writes; waits until one other than `but` does."""
        found: list[Service] = []

        def looked() -> bool:
            found[:] = [one for one in self.services if one is not but and one.runs and self.role(one) == "writer"]
            return bool(found)

        wait_for(looked, "a writer")
        return found[0]

    def replaced(self, service: Service) -> Service:
        """The one that takes over from a writer that stands still, as if its lease were over."""
        silence(self.place)
        return self.writer(but=service)

    def committed(self) -> int:
        """The last committed slot, by a look at the table; as it was, while the server is away."""
        try:
            if self._looking is None or self._looking.closed:
                self._looking = psycopg.connect(self.place.conninfo, autocommit=True)
            row = self._looking.execute(f"SELECT committed FROM {self.place.schema}.head").fetchone()
            self._committed = 0 if row is None else int(row[0])
        except psycopg.Error:
            self._looking = None
        return self._committed

    def goes_on(self, slots: int = 2) -> None:
        """Wait until more slots are committed."""
        before = self.committed()
        wait_for(lambda: self.committed() >= before + slots, "further slots")

    def command(self, name: str, *arguments: str) -> Done:
        """A wevent command on the journal."""
        return call(self.folder, name, self.address, *arguments)

    def audit(self) -> None:
        """Nothing is found."""
        done = self.command("verify")
        assert done.code == 0, done

    def close(self) -> None:
        for one in self.services:
            one.close()
        if self._looking is not None:
            self._looking.close()

    @property
    def log(self) -> str:
        return "".join(one.log for one in self.services)


class Load:
    """Senders, somebody who enrols people and somebody who reads, at all replicas, through all their lives.

    Args:
        replicas: to whom.

    Attributes:
        run: marks everything of it.
    """

    def __init__(self, replicas: Replicas) -> None:
        self.replicas, self.run = replicas, secrets.token_hex(4)
        read = replicas.token("read")
        self._read = read
        self.clock = Clock.of(replicas.services[0], read)
        anyone: Any = replicas
        self.senders = [
            Sender(number, anyone, replicas.token("ingest"), self.clock, self.run) for number in range(SENDERS)
        ]
        self.enroller = Enroller(anyone, replicas.token("enrol"))
        self.readers = [StreamReader(one, read) for one in replicas.services]
        for thread in self._threads():
            thread.start()

    def sent(self) -> list[SentBatch]:
        return [batch for sender in self.senders for batch in list(sender.batches)]

    def is_counted(self) -> None:
        """Wait until slots are committed that have events."""
        wait_for(lambda: bool(self.sent()), "events")
        first = min(event.slot for batch in self.sent() for event in batch.events)
        wait_for(lambda: self.replicas.committed() > first, "a slot with events")

    def has_counted(self, events: int) -> None:
        """Wait until more events than these were acknowledged."""
        wait_for(lambda: sum(len(one.events) for one in self.sent() if one.is_acknowledged) > events, "events")

    def finish(self, losers: Collection[int] = ()) -> tuple[int, int]:
        """Nobody disturbs any more: everything is answered, released and adds up. Slots, and events that were counted.

        Args:
            losers: see `check_draws`.
        """
        replicas = self.replicas
        for thread in (*self.senders, self.enroller):
            thread.finish()
        batches = self.sent()
        last = max(event.slot for batch in batches for event in batch.events)
        wait_for(lambda: replicas.committed() >= last, f"slot {last}")
        self._check_answers(last)
        for one in replicas.services:
            if one.runs:
                assert one.stop() == 0, one.log[-2000:]
        for reader in self.readers:
            reader.finish()
        stored = self._stored()
        for reader in self.readers:
            assert reader.seen.items() <= stored.items(), "what was read is what is stored"
        check_draws(replicas.draws, stored, losers)
        listed = json.loads(replicas.command("users", "list", "--json").out)["users"]
        assert {row["user"] for row in listed} >= set(self.enroller.acknowledged), "who was told is registered"
        assert "Traceback" not in replicas.log, replicas.log[-4000:]
        counted = Books(batches).check(self._witness_of_winners(losers), len(stored))
        replicas.audit()
        return len(stored), counted

    def stop(self) -> None:
        """Let everybody end, whatever is missing."""
        for thread in self._threads():
            thread._over.set()

    def _witness_of_winners(self, losers: Collection[int]) -> Path:
        """What was seen of steps, without those of losers that came to nothing: the events were gone with the commit.

        A draw that a loser had written down is stored by the next writer, and then nobody tells of the commit.
        """
        told = map(json.loads, self.replicas.draws.read_bytes().splitlines())
        committed = {one["slot"]: one["pid"] for one in told if one["what"] == "committed"}
        kept = self.replicas.folder / "winners.ndjson"
        with kept.open("wb") as file:
            for line in self.replicas.witness.read_bytes().splitlines():
                seen = json.loads(line)
                if seen["pid"] not in losers or committed.get(seen["slot"], seen["pid"]) == seen["pid"]:
                    file.write(line + b"\n")
        return kept

    def _stored(self) -> dict[int, bytes]:
        with open_journal(self.replicas.place) as journal:
            last = journal.head().committed
            stored = {record.slot: ndjson_line(record).rstrip(b"\n") for record in journal.releases()}
        assert sorted(stored) == list(range(1, last + 1))
        return stored

    def _check_answers(self, last: int) -> None:
        """All that run say the same of every slot."""
        for one, reader in zip(self.replicas.services, self.readers, strict=True):
            if not one.runs:
                continue
            one.wait_until_committed(last, self._read)
            with one.asker(self._read) as client:
                answer = client.get("/v1/releases?from=1&limit=10000", headers={"Accept": "application/x-ndjson"})
            for place, line in enumerate(answer.raise_for_status().content.splitlines(), start=1):
                reader.take(place, line)

    def _threads(self) -> Iterable[Any]:
        return (*self.senders, self.enroller, *self.readers)


def check_draws(draws: Path, stored: dict[int, bytes], losers: Collection[int] = ()) -> None:
    """Every stored release is what its writer drew, and no slot was drawn after its commit.

    Args:
        draws: what processes told.
        stored: what the journal has.
        losers: processes that stood still while another one took over: what they draw then is nobody's.
    """
    drawn: dict[tuple[int, int], list[str]] = {}
    committed: dict[int, int] = {}
    for line in draws.read_bytes().splitlines():
        told = json.loads(line)
        slot, pid = told["slot"], told["pid"]
        if told["what"] == "drawn":
            assert slot not in committed or pid in losers, f"slot {slot} was drawn after its commit"
            drawn.setdefault((slot, pid), []).append(told["line"])
        else:
            assert committed.setdefault(slot, pid) == pid, f"slot {slot} was committed twice"
    for slot, pid in committed.items():
        assert drawn[slot, pid][-1].encode() == stored[slot], f"slot {slot} is not what its writer drew last"
    missing = set(stored) - set(committed)  # killed between the commit and telling us
    for slot in missing:
        assert stored[slot].decode() in [line for (one, _), lines in drawn.items() if one == slot for line in lines]


def freeze_soon(replicas: Replicas, service: Service, step: str) -> None:
    """Let it stand still at a step, and wait until it does."""
    replicas.condemn(service, f"{step}:1:stop")
    state = Path(f"/proc/{service.pid}/stat")
    wait_for(lambda: state.read_text().rpartition(")")[2].split()[0] == "T", f"a standstill at {step}")
    time.sleep(0.05)
