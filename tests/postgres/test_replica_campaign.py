"""Three services over one journal in PostgreSQL under load, and faults of every kind one after the other (spec 10).

No acknowledged event is lost or counted twice, and no slot is drawn twice. `test_failover` loses commits,
and `test_witness_folder` has two witness folders.
"""

from __future__ import annotations

import json
import os
import platform
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from tests.postgres.journal_parts import silence
from tests.postgres.replica_services import Load, Replicas
from tests.service.serving_process import Service
from tests.support.commands import wait_for
from tests.support.cutting_proxy import CuttingProxy
from tests.support.postgres_server import PostgresServer

FAULTS = int(os.environ.get("WEVENT_REPLICA_FAULTS", "8"))
RESULT = os.environ.get("WEVENT_REPLICA_FAULTS_RESULT")


class Cluster(NamedTuple):
    """A server, replicas, and the proxy between the server and each replica."""

    server: PostgresServer
    replicas: Replicas
    proxies: list[CuttingProxy]
    losers: set[int]

    def proxy(self, service: Service) -> CuttingProxy:
        return self.proxies[self.replicas.services.index(service)]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    server = PostgresServer()
    replicas = Replicas(tmp_path / "three", server.url(), 3)
    proxies = [CuttingProxy(server.port) for _ in replicas.services]
    for service, proxy in zip(replicas.services, proxies, strict=True):
        config = service.folder / "wevent.toml"
        config.write_text(config.read_text().replace(f":{server.port}/", f":{proxy.port}/"))
    yield Cluster(server, replicas, proxies, set())
    replicas.close()
    for proxy in proxies:
        proxy.close()
    server.stop()


def kill(cluster: Cluster, service: Service) -> None:
    service.kill()
    silence(cluster.replicas.place)
    cluster.replicas.goes_on()
    cluster.replicas.start(service)


def stop(cluster: Cluster, service: Service) -> None:
    assert service.stop() == 0, service.log[-2000:]
    cluster.replicas.goes_on()
    cluster.replicas.start(service)


def stop_past_the_lease(cluster: Cluster, service: Service) -> None:
    service.freeze()
    _take_over(cluster, service)
    service.thaw()
    _answers(cluster, service)


def freeze_the_connections(cluster: Cluster, service: Service) -> None:
    cluster.proxy(service).freeze()
    _take_over(cluster, service)
    cluster.proxy(service).thaw()
    _answers(cluster, service)


def freeze_shortly(cluster: Cluster, service: Service) -> None:
    cluster.proxy(service).freeze()
    time.sleep(0.5)
    cluster.proxy(service).thaw()


def cut_the_connections(cluster: Cluster, service: Service) -> None:
    cluster.proxy(service).cut()


def end_the_sessions(cluster: Cluster, service: Service) -> None:
    del service
    with psycopg.connect(cluster.server.url(), autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename = 'wevent'"
        )


def crash_the_server(cluster: Cluster, service: Service) -> None:
    del service
    cluster.server.restart("immediate")


KINDS = (
    kill, stop, stop_past_the_lease, freeze_the_connections, freeze_shortly, cut_the_connections, end_the_sessions,
    crash_the_server,
)  # fmt: skip


def _take_over(cluster: Cluster, service: Service) -> None:
    """Wait until another one writes, if this one did."""
    cluster.losers.add(service.pid)
    silence(cluster.replicas.place)
    cluster.replicas.writer(but=service)
    cluster.replicas.goes_on()


def _answers(cluster: Cluster, service: Service) -> None:
    wait_for(lambda: cluster.replicas.role(service) is not None, "an answer")
    assert service.runs, service.log[-2000:]


def test_no_fault_loses_an_event_or_draws_a_slot_twice(cluster: Cluster) -> None:
    begun, seed = time.time(), random.SystemRandom().randrange(1 << 30) if RESULT else 5
    chance, injected, replicas = random.Random(seed), Counter[str](), cluster.replicas
    for service in replicas.services:
        replicas.start(service)
    load = Load(replicas)
    for number in range(FAULTS):
        time.sleep(chance.uniform(0.0, 0.6))
        fault = KINDS[number % len(KINDS)]
        service = replicas.writer() if chance.random() < 0.7 else chance.choice(replicas.services)
        print(
            f"{time.time() - begun:.1f} s: {fault.__name__}, {service.folder.name} ({replicas.role(service)})",
            flush=True,
        )
        fault(cluster, service)
        injected[fault.__name__] += 1
        replicas.goes_on()
        for one in replicas.services:
            assert one.runs, one.log[-2000:]
    load.has_counted(10 * FAULTS)
    slots, counted = load.finish(cluster.losers)
    if RESULT:
        result = {
            "command": "make soak",
            "seed": seed,
            "faults": injected,
            "slots": slots,
            "events_counted": counted,
            "seconds": round(time.time() - begun, 1),
            "python": platform.python_version(),
            "outcome": "no acknowledged event lost, no event counted twice, every slot once, audit clean",
        }
        Path(RESULT).write_text(json.dumps(result, indent=2) + "\n")
