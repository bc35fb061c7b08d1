"""Files of a journal that are cut under a running publisher: it stops before another slot is stored or goes out."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.commands import (
    PATIENCE_S,
    call,
    close,
    event,
    live,
    publish,
    send,
    slots_of,
    start,
    wait_for,
    write_stream,
)

SENTENCE = "was removed, replaced, cut"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose journal has 20 slots."""
    folder = tmp_path_factory.mktemp("cut")
    write_stream(folder)
    assert publish(folder, 20).code == 0
    return folder


@pytest.fixture
def used(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "run"))


@contextmanager
def running(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A live run that has published slots 21 and 22 and waits for lines."""
    child = start(folder, *live("--out", "out.ndjson"), stdin=subprocess.PIPE)
    try:
        send(child, event(1201, 1), close(1260), event(1261, 2), close(1320))
        wait_for(lambda: slots_of(folder / "out.ndjson")[-2:] == [21, 22], "slot 22")
        yield child
    finally:
        child.kill()
        child.communicate()


def stopped(child: subprocess.Popen[str]) -> str:
    """What it says when the next slot closes."""
    send(child, event(1321, 3), close(1380))
    assert child.wait(timeout=PATIENCE_S) == 2
    assert child.stderr is not None
    said = child.stderr.read()
    assert said.count("Error:") == 1, said
    assert "Traceback" not in said
    return said


def assert_only_end_missing(folder: Path) -> None:
    """The journal itself is whole, and the witness shows that there was more."""
    done = call(folder, "verify", "run.journal", "--json")
    (found,) = json.loads(done.out)["violations"]
    assert (done.code, found["slot"]) == (1, 21)
    assert "shows slot 22, and the journal ends with 20" in found["problem"]


@pytest.mark.parametrize("size", [0, 32, 4096])
def test_a_cut_log_stops_it_and_the_journal_is_not_made_worse(used: Path, size: int) -> None:
    with running(used) as child:
        os.truncate(used / "run.journal-wal", size)
        assert SENTENCE in stopped(child)
    assert slots_of(used / "out.ndjson") == list(range(1, 23))
    assert_only_end_missing(used)
    refused = publish(used, 25)
    assert refused.code == 2
    assert "--released-through" in refused.err
    assert publish(used, 25, "--released-through", "22").code == 0
    assert slots_of(used / "out.ndjson") == list(range(1, 26))


@pytest.mark.parametrize("size", [0, 4096])
def test_a_cut_witness_stops_it(used: Path, size: int) -> None:
    with running(used) as child:
        os.truncate(used / "run.journal.witness", size)
        assert SENTENCE in stopped(child)
    assert slots_of(used / "out.ndjson") == list(range(1, 23))
    assert call(used, "verify", "run.journal").code == 0
    assert publish(used, 25, "--released-through", "22").code == 0
    assert slots_of(used / "out.ndjson") == list(range(1, 26))


def test_what_is_written_after_a_cut_does_not_hide_it(used: Path) -> None:
    """A log that was cut and is long again has a hole: the next start refuses, because the witness shows later slots."""
    with running(used):
        size = (used / "run.journal-wal").stat().st_size
        os.truncate(used / "run.journal-wal", 4096)
        os.truncate(used / "run.journal-wal", size + 8240)
    refused = publish(used, 25)
    assert refused.code == 2
    assert "--released-through" in refused.err
    assert_only_end_missing(used)
    assert slots_of(used / "out.ndjson") == list(range(1, 23))
    assert publish(used, 25, "--released-through", "22").code == 0
    assert slots_of(used / "out.ndjson") == list(range(1, 26))
    assert call(used, "verify", "run.journal").code == 0


def test_cut_shared_memory_stops_it_and_nothing_is_lost(used: Path) -> None:
    with running(used) as child:
        os.truncate(used / "run.journal-shm", 0)
        assert SENTENCE in stopped(child)
    assert slots_of(used / "out.ndjson") == list(range(1, 23))
    assert publish(used, 25).code == 0
    assert slots_of(used / "out.ndjson") == list(range(1, 26))
    assert call(used, "verify", "run.journal").code == 0


def test_other_commands_and_checkpoints_are_no_cut(used: Path) -> None:
    """The log begins anew several times while others read it and write to it."""
    with running(used) as child:
        others = [
            start(used, *command)
            for command in (
                ("users", "run.journal", "set", "7", "--window", "4", "--epsilon", "0.5"),
                ("users", "run.journal", "add", "new", "--window", "4", "--epsilon", "0.5"),
                ("backup", "run.journal", "copy.journal"),
                ("verify", "run.journal"),
                ("status", "run.journal"),
            )
        ]
        slot = 22
        while any(one.poll() is None for one in others) or slot < 400:
            send(
                child, *(event(60 * later + 1, later % 60) for later in range(slot, slot + 20)), close(60 * (slot + 20))
            )
            slot += 20
            wait_for(lambda slot=slot: slots_of(used / "out.ndjson")[-1] == slot, f"slot {slot}")  # type: ignore[misc]
        for one in others:
            _, said = one.communicate()
            assert one.returncode == 0, said
        child.terminate()
        assert child.wait(timeout=PATIENCE_S) == 0
    assert slots_of(used / "out.ndjson") == list(range(1, slot + 1))
    assert call(used, "verify", "run.journal").code == 0
