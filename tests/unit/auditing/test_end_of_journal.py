"""The audit compares the end of a journal with what is noted outside: a tail that was cut off leaves no other trace."""

from __future__ import annotations

import json
from pathlib import Path

import apsw
import pytest

from tests.support.commands import call
from tests.support.synthetic import SyntheticSource, make_journal
from wevent.journal import SqliteJournal
from wevent.outputs import open_output
from wevent.publishing.loop import Publication, Running
from wevent.verification import audit_journal


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal of 12 slots."""
    with make_journal(tmp_path / "a.journal") as journal:
        Publication(
            journal, SyntheticSource(12), open_output(str(tmp_path / "o.ndjson")), running=Running(last=12)
        ).run()
    return tmp_path / "a.journal"


def side(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def cut(path: Path, last: int) -> None:
    """Drop the slots after one so that nothing inside tells."""
    database = apsw.Connection(str(path))
    database.execute(f"DELETE FROM slots WHERE slot > {last}; DELETE FROM histograms WHERE slot > {last}")
    database.execute(
        f"UPDATE head SET committed = {last}, emitted = {last}, link = (SELECT link FROM slots WHERE slot = {last})"
    )
    database.close()


def test_the_whole_journal_reaches_its_mark(path: Path) -> None:
    report = audit_journal(path)
    assert (report.ok, report.marked, report.mark_unseen) == (True, 12, None)


def test_a_tail_that_was_cut_off_consistently_is_found(path: Path) -> None:
    cut(path, 9)
    report = audit_journal(path)
    assert [one["slot"] for one in report.violations] == [10]
    assert f"slot 12 is noted in {side(path)}, and the journal ends with 9" in report.violations[0]["problem"]
    done = call(path.parent, "audit", path.name)
    assert done.code == 1
    assert "VIOLATION in slot 10: slot 12 is noted in" in done.out


def test_a_cut_journal_that_went_on_is_found(path: Path) -> None:
    text = side(path).read_bytes()
    cut(path, 9)
    side(path).unlink()
    with SqliteJournal(path, write=True) as journal:
        journal.mark()
        Publication(
            journal, SyntheticSource(12), open_output(str(path.with_name("p.ndjson"))), running=Running(last=12)
        ).run()
    side(path).write_bytes(text)
    (found,) = audit_journal(path).violations
    assert (found["slot"], "another release of it is noted" in found["problem"]) == (12, True)


def test_the_mark_of_another_journal_is_found(path: Path) -> None:
    text = side(path).read_bytes()
    said = json.loads(text[:4096])
    side(path).write_bytes(text.replace(said["journal"].encode(), b"f" * len(said["journal"]), 1))
    report = audit_journal(path)
    assert [one["problem"] for one in report.violations] == [f"slot 12 of another journal is noted in {side(path)}"]
    assert (report.marked, report.mark_unseen) == (None, f"{side(path)} is of another journal")


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"\0" * 4096,
        b"{",
        b"[1]",
        b"[" * 4096,
        b'{"journal": "x", "committed": 1e400}',
        b'{"journal": "x", "committed": "many"}',
        b"{}",
    ],
)
def test_where_no_mark_is_seen_that_is_said(path: Path, content: bytes | None) -> None:
    """A journal that was copied without its side file may be whole."""
    cut(path, 9)
    side(path).unlink()
    if content is not None:
        side(path).write_bytes(content)
    report = audit_journal(path)
    assert (report.ok, report.marked) == (True, None)
    assert str(side(path)) in str(report.mark_unseen)
    done = call(path.parent, "audit", path.name)
    assert done.code == 0
    assert "whether the end of the journal is missing was not checked" in done.out
    assert json.loads(call(path.parent, "audit", str(path), "--json").out)["mark_unseen"] == report.mark_unseen


def test_a_link_leads_to_the_side_file_of_what_it_names(path: Path, tmp_path: Path) -> None:
    (tmp_path / "link.journal").symlink_to(path)
    assert audit_journal(tmp_path / "link.journal").marked == 12
