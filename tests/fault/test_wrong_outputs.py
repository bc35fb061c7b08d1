"""A wrong `--out` is refused before a byte is written: whatever is there stays as it is."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path

import msgspec
import pytest

from tests.support.commands import call, publish, slots_of, write_stream
from tests.support.publications import publish as produce
from tests.support.synthetic import make_journal
from wevent.errors import StorageFailed
from wevent.journal import SqliteJournal
from wevent.journal.witness import RECORD_SIZE, WitnessRecord, read_witness
from wevent.outputs import open_output

FOREIGN = {
    "text": b"Dear diary,\nnothing happened.\n",
    "one line": b"precious",
    "no line break": b"x" * 200_000,
    "an empty line": b"\n",
    "objects": b'{"name": "x"}\n{"name": "y"}\n',
    "a number": b"12\n",
    "numbers first": b"1,2,3\n2,3,4\n",
    "a table": b"slot,time,cell,value\n1,2,3,4\n",
    "binary": bytes(range(256)) * 9,
    "slot 1 of nobody": b'{"slot":1,"time":"2026-01-01T00:00:00Z"}\n',
    "deep": b"[" * 5000 + b"\n",
}

EVERY = ("--mechanism", "uniform")  # a fresh release in every slot


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_stream(tmp_path)
    return tmp_path


def contents(folder: Path) -> dict[str, bytes]:
    """Every file but the witness file, which names its last holder."""
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.is_file() and one.suffix != ".witness"}


def refused(folder: Path, out: str, said: str, minutes: int = 4, *flags: str, **more: str) -> None:
    """Publishing there is one sentence and exit code 2, and every file stays what it was."""
    before = contents(folder)
    done = publish(folder, minutes, *flags, out=out, **more)
    assert done.code == 2, done
    assert done.err.count("Error:") == 1
    assert said in done.err
    assert contents(folder) == before


def put_back_after_slot_4(folder: Path, out: str) -> None:
    """Publish slots 1 to 9, then put the journal and its witness file back as they were after slot 4."""
    assert publish(folder, 4, *EVERY, out=out).code == 0
    old = {name: (folder / name).read_bytes() for name in ("run.journal", "run.journal.witness")}
    assert publish(folder, 9, *EVERY, out=out).code == 0
    for name, content in old.items():
        (folder / name).write_bytes(content)


@pytest.mark.parametrize("ending", ["ndjson", "csv", "parquet"])
@pytest.mark.parametrize("content", FOREIGN)
def test_a_foreign_file(folder: Path, content: str, ending: str) -> None:
    (folder / f"o.{ending}").write_bytes(FOREIGN[content])
    before = (folder / f"o.{ending}").read_bytes()
    done = publish(folder, 3, out=f"o.{ending}")
    assert done.code == 2, done
    assert done.err.count("Error:") == 1
    assert (folder / f"o.{ending}").read_bytes() == before
    assert not (folder / "run.journal").exists()


@pytest.mark.parametrize("ending", ["ndjson", "csv", "parquet"])
@pytest.mark.parametrize("content", FOREIGN)
def test_a_foreign_file_where_the_journal_has_slots(folder: Path, content: str, ending: str) -> None:
    assert publish(folder, 3).code == 0
    (folder / f"o.{ending}").write_bytes(FOREIGN[content])
    refused_here = publish(folder, 4, out=f"o.{ending}")
    assert refused_here.code == 2, refused_here
    assert (folder / f"o.{ending}").read_bytes() == FOREIGN[content]
    assert slots_of(folder / "out.ndjson") == [1, 2, 3]
    assert call(folder, "releases", "run.journal", "--out", f"o.{ending}").code == 2
    assert (folder / f"o.{ending}").read_bytes() == FOREIGN[content]


@pytest.mark.parametrize("ending", ["ndjson", "csv"])
@pytest.mark.parametrize("behind", [b"x", b"and more", b'{"format":2,"slot":4', b"4,2026-01-01T00:03:00Z", b"more\n"])
def test_something_else_behind_our_releases(folder: Path, ending: str, behind: bytes) -> None:
    out = folder / f"o.{ending}"
    assert publish(folder, 3, out=out.name).code == 0
    out.write_bytes(out.read_bytes() + behind)
    refused(folder, out.name, "untouched")


@pytest.mark.parametrize("ending", ["ndjson", "csv"])
def test_only_what_would_be_written_there_is_cut(folder: Path, ending: str) -> None:
    out = folder / f"o.{ending}"
    assert publish(folder, 4, out=out.name).code == 0
    whole = out.read_bytes()
    for length in range(0, len(whole), 3 if ending == "csv" else 11):
        out.write_bytes(whole[:length])
        assert call(folder, "releases", "run.journal", "--out", out.name).code == 0
        assert out.read_bytes() == whole
        torn = bytearray(whole[:length])
        if length and whole[length - 1 : length] != b"\n":
            torn[-1] ^= 1
            out.write_bytes(torn)
            assert call(folder, "releases", "run.journal", "--out", out.name).code == 2
            assert out.read_bytes() == torn


def edit(out: Path, index: int) -> bytes:
    """Change a line; return the file as it was."""
    before = out.read_bytes()
    lines = before.splitlines(keepends=True)
    assert b"pft" in lines[index]
    lines[index] = lines[index].replace(b"pft", b"pba")
    out.write_bytes(b"".join(lines))
    return before


@pytest.mark.parametrize("ending", ["ndjson", "csv"])
def test_an_edited_last_line(folder: Path, ending: str) -> None:
    out = folder / f"o.{ending}"
    assert publish(folder, 3, out=out.name).code == 0
    edit(out, -1)
    refused(folder, out.name, "another journal, or was edited")


@pytest.mark.parametrize("torn", [0, 9])
@pytest.mark.parametrize("ending", ["ndjson", "csv"])
def test_a_file_that_the_note_names_is_rewritten(folder: Path, ending: str, torn: int) -> None:
    """Its last line is this journal's, and the journal has every slot of it; a torn line may follow."""
    out = folder / f"o.{ending}"
    assert publish(folder, 4, out=out.name).code == 0
    before = edit(out, 1)
    os.truncate(out, len(before) - torn)
    out.chmod(0o640)
    done = publish(folder, 5, out=out.name)
    assert done.code == 0, done
    assert "sent again" in done.err
    assert out.read_bytes().startswith(before)
    assert out.stat().st_mode & 0o777 == 0o640
    assert not list(folder.glob(".o.*"))


@pytest.mark.parametrize("times", [0, 2])
@pytest.mark.parametrize("ending", ["ndjson", "csv"])
def test_a_slot_that_is_missing_or_comes_twice(folder: Path, ending: str, times: int) -> None:
    out = folder / f"o.{ending}"
    assert publish(folder, 4, *EVERY, out=out.name).code == 0
    whole = out.read_bytes()
    lines = whole.splitlines(keepends=True)
    second = [line for line in lines if line.startswith((b"2,", b'{"format":2,"slot":2,'))]
    place = lines.index(second[0])
    out.write_bytes(b"".join([*lines[:place], *second * times, *lines[place + len(second) :]]))
    done = publish(folder, 5, *EVERY, out=out.name)
    assert done.code == 0, done
    assert out.read_bytes().startswith(whole)


@pytest.mark.parametrize("ending", ["ndjson", "csv"])
def test_a_file_put_in_the_place_that_the_note_names(folder: Path, ending: str) -> None:
    assert publish(folder, 4, *EVERY, journal="a.journal", out=f"a.{ending}").code == 0
    assert publish(folder, 4, *EVERY, journal="b.journal", out=f"b.{ending}").code == 0
    (folder / f"a.{ending}").rename(folder / f"b.{ending}")
    refused(folder, f"b.{ending}", "another journal, or was edited", 6, *EVERY, journal="b.journal")


def test_an_edited_file_with_slots_that_the_journal_dropped(tmp_path: Path) -> None:
    (tmp_path / "users.csv").write_text("user,window,epsilon\n1,4,0.5\n")
    (tmp_path / "events.csv").write_text("time,user,cell\n")
    command = ("publish", "events.csv", "--slot", "1s", "--start", "2026-01-01T00:00:00Z", "--cells", "2")
    command += ("--requirements", "users.csv", "--journal", "run.journal", "--out", "o.ndjson", "--keep", "4")
    assert call(tmp_path, *command, "--end", "2026-01-01T00:30:00Z").code == 0
    kept = json.loads(call(tmp_path, "releases", "run.journal").out.splitlines()[0])["slot"]
    assert kept > 100
    whole = (tmp_path / "o.ndjson").read_bytes()
    longer = (*command, "--end", "2026-01-01T00:30:01Z")
    for slot in (2, kept):
        edit(tmp_path / "o.ndjson", slot - 1)
        before = contents(tmp_path)
        done = call(tmp_path, *longer)
        if slot == kept:
            assert done.code == 2, done
            assert f"another release of slot {kept}" in done.err
            assert contents(tmp_path) == before
        else:
            assert done.code == 0, done  # the journal cannot tell
        (tmp_path / "o.ndjson").write_bytes(whole)
    os.truncate(tmp_path / "o.ndjson", len(whole) - 20)
    assert call(tmp_path, *longer).code == 0
    assert (tmp_path / "o.ndjson").read_bytes().startswith(whole)
    assert slots_of(tmp_path / "o.ndjson") == list(range(1, 1802))


def test_a_rewriting_that_fails_leaves_the_file_as_it_is(folder: Path) -> None:
    out = folder / "o.ndjson"
    assert publish(folder, 4, out=out.name).code == 0
    whole = edit(out, 1)
    edited = out.read_bytes()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with SqliteJournal(folder / "run.journal", write=True) as journal:
        output = open_output(str(out))
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) - 100, before[1]))
        try:
            with pytest.raises(StorageFailed, match="Releases are safe in the journal"):
                output.repair(journal, 4, 4)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert out.read_bytes() == edited
        assert not list(folder.glob(".o.*"))
        assert output.repair(journal, 4, 4) == 4
        output.close()
    assert out.read_bytes() == whole


def test_files_that_a_run_reads_or_keeps(folder: Path) -> None:
    (folder / "stream.toml").write_text("grace = '0s'\n")
    (folder / "cells.csv").write_text("cell\n0\n1\n2\n3\n")
    (folder / "config.ndjson").symlink_to("stream.toml")
    (folder / "input.csv").symlink_to("events.csv")
    (folder / "journal.ndjson").symlink_to("run.journal")
    (folder / "log.csv").symlink_to("run.journal-wal")
    os.link(folder / "users.csv", folder / "hard.csv")
    before = contents(folder)
    for out, said in {
        "events.csv": "an input",
        "input.csv": "an input",
        "users.csv": "the requirements file",
        "hard.csv": "the requirements file",
        "cells.csv": "the file of cells",
        "config.ndjson": "the configuration file",
        "journal.ndjson": "the journal or a file beside it",
        "log.csv": "the journal or a file beside it",
    }.items():
        done = publish(folder, 3, "--config", "stream.toml", "--cells", "cells.csv", out=out)
        assert done.code == 2, done
        assert said in done.err
    assert contents(folder) == before


def test_a_glob_never_reads_the_output_of_an_earlier_run(folder: Path) -> None:
    (folder / "live").mkdir()
    (folder / "live" / "a.ndjson").write_text('{"time": "2026-01-01T00:00:01Z", "user": 1, "cell": 1}\n')
    arguments = ("--slot", "60s", "--start", "2026-01-01T00:00:00Z", "--end", "2026-01-01T00:03:00Z", "--cells", "4")
    arguments += ("--requirements", "users.csv", "--journal", "run.journal", "--out", "live/o.ndjson")
    assert call(folder, "publish", "live/*.ndjson", *arguments).code == 0
    done = call(folder, "publish", "live/*.ndjson", *arguments)
    assert done.code == 2
    assert "an input" in done.err


@pytest.mark.parametrize("ending", ["ndjson", "csv", "parquet"])
@pytest.mark.parametrize("kind", ["folder", "pipe", "device", "full device"])
def test_what_is_no_file(folder: Path, kind: str, ending: str) -> None:
    out = folder / f"o.{ending}"
    if kind == "folder":
        out.mkdir()
    elif kind == "pipe":
        os.mkfifo(out)
    else:
        out.symlink_to("/dev/null" if kind == "device" else "/dev/full")
    refused(folder, out.name, "a file for the releases")


def test_a_parquet_file_leaves_nothing_beside_it(folder: Path) -> None:
    for name in ("o.parquet.csv", "o.parquet.partial"):
        (folder / name).write_text("precious")
    assert publish(folder, 3, out="o.parquet").code == 0
    assert (folder / "o.parquet.csv").read_text() == "precious"
    assert (folder / "o.parquet.partial").read_text() == "precious"
    assert {one.name for one in folder.iterdir()} >= {"o.parquet"}
    assert not [one.name for one in folder.iterdir() if one.name.startswith(".wevent")]
    assert publish(folder, 5, out="o.parquet").code == 0


def shown_slots(witness: Path) -> tuple[WitnessRecord, bytes]:
    """What a witness shows, whoever wrote it: the record without its writer, and all that stands behind it."""
    record = msgspec.structs.replace(read_witness(witness), number=0, pid=0, host="", since="")
    return record, witness.read_bytes()[2 * RECORD_SIZE :]


@pytest.mark.parametrize("ending", ["ndjson", "csv", "parquet"])
def test_the_longer_output_of_another_journal(folder: Path, ending: str) -> None:
    assert publish(folder, 9, *EVERY, journal="a.journal", out=f"a.{ending}").code == 0
    assert publish(folder, 4, *EVERY, journal="b.journal", out=f"b.{ending}").code == 0
    shown = shown_slots(folder / "b.journal.witness")
    refused(folder, f"a.{ending}", "unless the file is another journal's", 12, *EVERY, journal="b.journal")
    before = contents(folder)
    stated = ("--released-through", "9", "--same-settings", "--accept-lost-changes")
    done = publish(folder, 12, *EVERY, *stated, journal="b.journal", out=f"a.{ending}")
    assert done.code == 2, done
    assert "another journal" in done.err
    assert contents(folder) == before
    assert shown_slots(folder / "b.journal.witness") == shown
    done = publish(folder, 6, *EVERY, journal="b.journal", out=f"b.{ending}")
    assert done.code == 0, done
    assert "Published slots 5 to 6" in done.err


@pytest.mark.parametrize("ending", ["ndjson", "csv", "parquet"])
def test_only_an_output_of_the_same_journal_proves_that_it_is_old(folder: Path, ending: str) -> None:
    put_back_after_slot_4(folder, f"o.{ending}")
    refused(folder, f"o.{ending}", "The journal is an old copy", 12, *EVERY)
    stated = ("--released-through", "9", "--same-settings", "--accept-lost-changes")
    assert publish(folder, 12, *EVERY, *stated, out=f"o.{ending}").code == 0
    if ending == "ndjson":
        assert slots_of(folder / "o.ndjson") == list(range(1, 13))


@pytest.mark.parametrize("ending", ["ndjson", "csv"])
def test_a_torn_line_of_a_slot_that_another_copy_released(folder: Path, ending: str) -> None:
    out = folder / f"o.{ending}"
    put_back_after_slot_4(folder, out.name)
    os.truncate(out, out.stat().st_size - 9)
    whole = out.read_bytes()[: out.read_bytes().rindex(b"\n") + 1]
    stated = ("--released-through", "9", "--same-settings", "--accept-lost-changes")
    assert publish(folder, 12, *EVERY, *stated, out=out.name).code == 0
    kept = out.read_bytes()
    assert kept.startswith(whole)
    assert kept[len(whole) :].startswith(b'{"format":2,"slot":10,' if ending == "ndjson" else b"10,")
    assert publish(folder, 14, *EVERY, out=out.name).code == 0
    assert out.read_bytes().startswith(kept)


@pytest.mark.parametrize("ending", ["ndjson", "csv"])
def test_a_longer_output_that_was_edited_still_tells_of_an_old_copy(folder: Path, ending: str) -> None:
    """It may be the only witness of slots that went out: nobody is told to move it away."""
    out = folder / f"o.{ending}"
    put_back_after_slot_4(folder, out.name)
    lines = out.read_bytes().splitlines(keepends=True)
    out.write_bytes(b"".join([*lines[:2], lines[1], *lines[2:]]))
    refused(folder, out.name, "The journal is an old copy", 12, *EVERY)


def test_a_line_torn_in_a_slot_that_the_journal_dropped(tmp_path: Path) -> None:
    (tmp_path / "users.csv").write_text("user,window,epsilon\n1,4,0.5\n")
    (tmp_path / "events.csv").write_text("time,user,cell\n")
    command = ("publish", "events.csv", "--slot", "1s", "--start", "2026-01-01T00:00:00Z", "--cells", "2")
    command += ("--requirements", "users.csv", "--journal", "run.journal", "--keep", "4")
    assert call(tmp_path, *command, "--end", "2026-01-01T00:30:00Z", "--out", "o.ndjson").code == 0
    out = tmp_path / "o.ndjson"
    out.write_bytes(out.read_bytes().splitlines(keepends=True)[0][:-1])
    before = out.read_bytes()
    done = call(tmp_path, *command, "--end", "2026-01-01T00:31:00Z", "--out", "o.ndjson")
    assert done.code == 2, done
    assert out.read_bytes() == before


def test_a_longer_output_with_nothing_in_common(folder: Path) -> None:
    assert publish(folder, 9, journal="a.journal", out="a.ndjson").code == 0
    assert publish(folder, 4, journal="b.journal", out="b.ndjson").code == 0
    lines = (folder / "a.ndjson").read_bytes().splitlines(keepends=True)
    (folder / "a.ndjson").write_bytes(b"".join(lines[5:]))
    refused(folder, "a.ndjson", "unless the file is another journal's", 12, journal="b.journal")


@pytest.mark.parametrize("ending", ["ndjson", "csv"])
def test_slots_that_neither_the_output_nor_the_journal_has(tmp_path: Path, ending: str) -> None:
    (tmp_path / "users.csv").write_text("user,window,epsilon\n1,4,0.5\n")
    (tmp_path / "events.csv").write_text("time,user,cell\n")
    command = ("publish", "events.csv", "--slot", "1s", "--start", "2026-01-01T00:00:00Z", "--cells", "2")
    command += ("--requirements", "users.csv", "--journal", "run.journal")
    first = (*command, "--end", "2026-01-01T00:00:50Z", "--out", f"o.{ending}")
    assert call(tmp_path, *first).code == 0
    later = (*command, "--end", "2026-01-01T00:30:00Z", "--keep", "4")
    assert call(tmp_path, *later, "--out", f"other.{ending}").code == 0
    before = (tmp_path / f"o.{ending}").read_bytes()
    kept = json.loads(call(tmp_path, "releases", "run.journal").out.splitlines()[0])["slot"]
    assert kept > 100
    for arguments in ((*later, "--out", f"o.{ending}"), ("releases", "run.journal", "--out", f"o.{ending}")):
        done = call(tmp_path, *arguments)
        assert done.code == 2, done
        assert f"slots 51 to {kept - 1}, which o.{ending} needs" in done.err
        assert (tmp_path / f"o.{ending}").read_bytes() == before


def test_a_parquet_file_and_a_journal_that_drops_slots(folder: Path) -> None:
    done = publish(folder, 3, "--keep", "4", out="o.parquet")
    assert done.code == 2, done
    assert "Leave --keep out" in done.err
    assert not (folder / "run.journal").exists()
    assert not (folder / "o.parquet").exists()
    assert publish(folder, 3, out="o.parquet").code == 0
    refused(folder, "o.parquet", "Leave --keep out", 5, "--keep", "4")


def test_a_parquet_file_with_slots_that_the_journal_dropped(tmp_path: Path) -> None:
    (tmp_path / "users.csv").write_text("user,window,epsilon\n1,4,0.5\n")
    (tmp_path / "events.csv").write_text("time,user,cell\n")
    command = ("publish", "events.csv", "--slot", "1s", "--start", "2026-01-01T00:00:00Z", "--cells", "2")
    command += ("--requirements", "users.csv", "--journal", "run.journal")
    assert call(tmp_path, *command, "--end", "2026-01-01T00:29:00Z", "--out", "o.parquet").code == 0
    later = (*command, "--end", "2026-01-01T00:45:00Z")
    assert call(tmp_path, *later, "--keep", "4", "--out", "other.ndjson").code == 0
    before = contents(tmp_path)
    kept = json.loads(call(tmp_path, "releases", "run.journal").out.splitlines()[0])["slot"]
    assert kept > 100
    for arguments in ((*later, "--out", "o.parquet"), ("releases", "run.journal", "--out", "o.parquet")):
        done = call(tmp_path, *arguments)
        assert done.code == 2, done
        assert f"slots 1 to {min(kept - 1, 29 * 60)}, which o.parquet needs" in done.err
        assert contents(tmp_path) == before
    (tmp_path / "o.parquet").rename(tmp_path / "old.parquet")
    assert call(tmp_path, *later, "--out", "o.parquet").code == 0
    assert call(tmp_path, *later, "--out", "o.parquet").code == 0  # its first slot is the first one that is kept


def test_a_parquet_file_that_cannot_be_written(tmp_path: Path) -> None:
    """Room for its lines as text, which are fewer bytes than the smallest Parquet file."""
    with make_journal(tmp_path / "run.journal") as journal:
        produce(journal, tmp_path / "o.ndjson", 1)
        output = open_output(str(tmp_path / "o.parquet"))
        output.repair(journal, 1, 1)
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (600, before[1]))
        try:
            with pytest.raises(StorageFailed, match=r"an error of DuckDB .* Releases are safe in the journal"):
                output.close()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not [one.name for one in tmp_path.iterdir() if "parquet" in one.name]


@pytest.mark.parametrize("ending", ["ndjson", "csv", "parquet"])
def test_a_folder_that_is_not_there(folder: Path, ending: str) -> None:
    done = publish(folder, 3, out=f"no/o.{ending}")
    assert done.code == 2, done
    assert "Make the folder first." in done.err
    assert not (folder / "run.journal").exists()
    assert publish(folder, 3).code == 0
    done = call(folder, "releases", "run.journal", "--out", f"no/o.{ending}")
    assert done.code == 2, done
    assert "Make the folder first." in done.err
