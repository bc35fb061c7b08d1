"""Two services over one journal in PostgreSQL, the writer killed again and again under load: nothing that was acknowledged is
lost, nothing counts twice, no slot is drawn twice, and of committed slots no event is left (spec 1 and 10)."""

from __future__ import annotations

import json
import os
import platform
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.postgres.journal_parts import silence
from tests.postgres.replica_parts import key_slots, stored_slots
from tests.postgres.replica_services import Load, Replicas, freeze_soon
from tests.support.commands import wait_for
from tests.support.postgres_server import shared_url

KILLS = int(os.environ.get("WEVENT_REPLICA_KILLS", "5"))
RESULT = os.environ.get("WEVENT_REPLICA_RESULT")
STEPS = (
    "committed",
    "written ahead",
    "stored",
    "position stored",
    "read",
    "destroyed",
    "locked",
    "due",
    "closed",
    "dropped",
)
STEPS += ("began", "stepped", "slots stored", "emitted", "version stored")
STEPS_OF_INTAKE = ("stored", "locked")


@pytest.fixture
def replicas(tmp_path: Path) -> Iterator[Replicas]:
    both = Replicas(tmp_path / "both", shared_url())
    yield both
    both.close()


def test_the_writer_is_killed_under_load(replicas: Replicas) -> None:
    begun, chance, killed = time.time(), random.Random(7), dict.fromkeys(("anywhere", *STEPS), 0)
    for service in replicas.services:
        replicas.start(service)
    load = Load(replicas)
    for kill in range(KILLS):
        writer = replicas.writer()
        if kill % 3 == 2:
            step = "anywhere"
            time.sleep(chance.uniform(0.05, 1.0))
            writer.kill()
        else:
            step = STEPS[(kill - kill // 3) % len(STEPS)]
            number = chance.randint(5, 30) if step in STEPS_OF_INTAKE else chance.randint(1, 2)
            replicas.condemn(writer, f"{step}:{number}")
            assert writer.died(), f"{step} was not reached"
        killed[step] += 1
        replicas.goes_on()  # the other one has taken over
        replicas.start(writer)
        _check_nothing_is_left(replicas)
    load.has_counted(100 * KILLS)
    slots, counted = load.finish()
    assert counted > 100 * KILLS
    _check_nothing_is_left(replicas)
    if RESULT:
        result = {
            "command": "make soak",
            "kills": sum(killed.values()),
            "kills_by_step": {step: number for step, number in killed.items() if number},
            "slots": slots,
            "batches": len(load.sent()),
            "events_counted": counted,
            "people_registered": len(load.enroller.acknowledged),
            "seconds": round(time.time() - begun, 1),
            "python": platform.python_version(),
            "outcome": "no acknowledged event or choice lost, no event counted twice, every slot once, as its writer drew it,"
            " keys and events of committed slots gone, audit clean",
        }
        Path(RESULT).write_text(json.dumps(result, indent=2) + "\n")


def test_each_says_its_role_and_all_show_the_same(replicas: Replicas) -> None:
    with ThreadPoolExecutor() as at_once:  # over a journal that is not there yet
        list(at_once.map(replicas.start, replicas.services))
    writer = replicas.writer()
    standby = next(one for one in replicas.services if one is not writer)
    assert replicas.role(standby) == "standby"
    admin, enrol = replicas.token("admin"), replicas.token("enrol")
    for service in replicas.services:
        with service.asker(admin) as client:
            overview = client.get("/v1/admin/overview").raise_for_status().json()
        assert overview["ready"]
        assert overview["role"] == ("writer" if service is writer else "standby")
        assert overview["writer_since"]
    assert json.loads(replicas.command("status", "--json").out)["writer"]["pid"] == writer.pid
    with standby.asker(enrol) as client:
        told = client.put("/v1/users/somebody%20new/requirement", json={"window": 4, "epsilon": 0.5}).raise_for_status()
        assert told.json()["in_force_from"] >= 1
    with writer.asker(enrol) as client:
        assert (
            client.get("/v1/users/somebody%20new/requirement").raise_for_status().json()["requirement"]["window"] == 4
        )
    assert writer.stop() == 0
    assert replicas.writer(but=writer) is standby, "a writer that is stopped is replaced before its lease is over"
    replicas.goes_on()
    assert standby.stop() == 0
    replicas.audit()


def test_a_replica_with_other_settings_is_refused(replicas: Replicas) -> None:
    first, second = replicas.services
    replicas.start(first)
    replicas.goes_on(1)
    config = second.folder / "wevent.toml"
    config.write_text(config.read_text().replace("cells = 4", "cells = 5"))
    with pytest.raises(AssertionError, match="it ended with 2"):
        replicas.start(second)
    assert "cells" in second.log
    assert first.runs
    assert replicas.role(first) == "writer"


def _check_nothing_is_left(replicas: Replicas) -> None:
    """Of slots that everybody can see."""
    committed = replicas.committed()
    wait_for(lambda: min([*key_slots(replicas.place), 1 << 62]) > committed, "the keys of committed slots to go")
    wait_for(lambda: min([*stored_slots(replicas.place), 1 << 62]) > committed, "their events to go")


def test_a_release_is_shown_by_nobody_before_its_key_is_gone(replicas: Replicas) -> None:
    """The writer stands still between the commit and destroying the key: the standby destroys it, then shows the release."""
    for service in replicas.services:
        replicas.start(service)
    writer = replicas.writer()
    standby = next(one for one in replicas.services if one is not writer)
    load = Load(replicas)
    load.is_counted()
    freeze_soon(replicas, writer, "committed")
    committed = replicas.committed()
    # a thread of the writer may have been stopped while it held a lock: only the end of its lease frees that
    silence(replicas.place)
    with standby.asker(replicas.token("read")) as client:
        wait_for(lambda: client.get("/v1/about").json()["committed"] >= committed, "the release on the other replica")
    assert [slot for slot in key_slots(replicas.place) if slot <= committed] == []
    load.stop()
