"""Seeded noise never goes on by itself: a journal that drew it once is not published from."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support.commands import publish, run, write_stream
from tests.support.synthetic import SyntheticSource
from wevent.journal import SqliteJournal
from wevent.journal.rebuild import rebuild_publisher
from wevent.noise import SecureNoise, SeededNoise
from wevent.outputs import open_output
from wevent.publishing import loop
from wevent.publishing.loop import Publication, Running

pytestmark = pytest.mark.slow


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A journal of the command, continued with seeded noise by a program; its state knows where the seed stands."""
    monkeypatch.setattr(loop, "state_interval", lambda publisher: 1)
    write_stream(tmp_path)
    assert publish(tmp_path, 5, "--mechanism", "pbd").code == 0
    with SqliteJournal(tmp_path / "run.journal", write=True) as journal:
        output = open_output(str(tmp_path / "out.ndjson"))
        source = SyntheticSource(8, cells=4)
        Publication(journal, source, output, running=Running(last=8), noise=SeededNoise(1)).run()
        output.close()
    return tmp_path / "run.journal"


def test_the_command_refuses_and_the_others_say_why(path: Path) -> None:
    done = publish(path.parent, 12)
    assert done.code == 2, done
    assert "ran with seeded noise" in done.err
    assert "epsilons add up" in done.err
    assert json.loads(run(path.parent, "status", "run.journal", "--json").out)["unsafe"] == ["seeded noise"]
    audit = run(path.parent, "verify", "run.journal")
    assert audit.code == 1
    assert "noise was seeded" in audit.out


def test_noise_that_is_not_named_is_secure(path: Path) -> None:
    with SqliteJournal(path) as journal:
        assert type(rebuild_publisher(journal.load(), journal.epochs(), None)._noise) is SecureNoise
    drawn = []
    for name in ("one", "two"):
        copy = path.with_name(f"{name}.journal")
        shutil.copy(path, copy)
        with SqliteJournal(copy, write=True) as journal:
            output = open_output(str(path.with_name(f"{name}.ndjson")))
            publication = Publication(journal, SyntheticSource(40, cells=4), output, running=Running(last=40))
            assert not publication.publisher.seeded
            publication.run()
            output.close()
            assert journal.head().unsafe == ("seeded noise",)  # it never goes away
            drawn.append([record.dissimilarity for record in journal.releases(9)])
    assert drawn[0] != drawn[1]
