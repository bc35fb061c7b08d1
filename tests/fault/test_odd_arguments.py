"""Names that no file can have, bytes that are no text, things that are no file: one sentence, and all is left as it was."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.commands import CLOCK, PATIENCE_S, PEOPLE, Done, call, publish, run, start, write_stream

LONG = "x" * 300
END = ("--end", "2026-01-01T00:05:00Z")
PUBLISH = ("publish", "events.csv", *CLOCK, *END, *PEOPLE, "--journal", "run.journal", "--out", "out.ndjson")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_stream(tmp_path, minutes=5)
    return tmp_path


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


def assert_sentence(done: Done) -> None:
    assert done.code == 2, done
    assert "Traceback" not in done.err
    assert done.err.count("Error:") == 1, done
    assert len(done.err) < 1000, "a name of any length is not repeated whole"


def with_value(option: str, value: str) -> tuple[str, ...]:
    """The publish command with another value for an option; "" stands for the events."""
    command = list(PUBLISH)
    command[command.index(option) + 1 if option else 1] = value
    return tuple(command)


TOO_LONG = {
    "events": with_value("", f"{LONG}.csv"),
    "journal": with_value("--journal", LONG),
    "out": with_value("--out", f"{LONG}.ndjson"),
    "out csv": with_value("--out", f"{LONG}.csv"),
    "out parquet": with_value("--out", f"{LONG}.parquet"),
    "requirements": with_value("--requirements", f"{LONG}.csv"),
    "cells": with_value("--cells", LONG),
    "cells txt": with_value("--cells", f"{LONG}.txt"),
    "config": (*PUBLISH, "--config", f"{LONG}.toml"),
    "status": ("status", LONG),
    "releases": ("releases", LONG),
    "verify": ("verify", LONG),
    "users": ("users", LONG, "list"),
    "users add": ("users", LONG, "add", "n", "--window", "4", "--epsilon", "0.5"),
    "backup": ("backup", LONG, "copy.journal"),
    "restore": ("restore", LONG, "run.journal", "--released-through", "1"),
    "restore to": ("restore", "events.csv", LONG, "--released-through", "1"),
    "init": ("init", LONG),
    "folder": ("status", f"{LONG}/run.journal"),
    "witness file": with_value("--journal", "x" * 252),
}


@pytest.mark.parametrize("command", TOO_LONG)
def test_a_name_that_is_too_long(folder: Path, command: str) -> None:
    assert_sentence(call(folder, *TOO_LONG[command]))
    assert names(folder) == ["events.csv", "users.csv"]


def test_a_name_that_is_too_long_for_a_backup(folder: Path) -> None:
    assert publish(folder, 3).code == 0
    before = names(folder)
    assert_sentence(call(folder, "backup", "run.journal", LONG))
    assert_sentence(call(folder, "releases", "run.journal", "--out", f"{LONG}.ndjson"))
    assert_sentence(call(folder, "users", "run.journal", "import", f"{LONG}.csv"))
    assert names(folder) == before


@pytest.mark.parametrize(
    "more",
    [
        ("--out", "\udcff.ndjson"),
        ("--stream", "\udcff"),
        ("--journal", "\udcff.journal"),
        ("--requirements", "\udcff.csv"),
        ("--cells", "\udcff.csv"),
        ("--config", "\udcff.toml"),
        ("--user-column", "\udcff"),
        ("--mechanism", "\udcff"),
        ("--declare", "\udcff"),
        ("--start", "\udcff"),
        ("\udcff.csv",),
    ],
)
def test_bytes_that_are_no_text(folder: Path, more: tuple[str, ...]) -> None:
    assert_sentence(call(folder, *PUBLISH, *more))
    assert names(folder) == ["events.csv", "users.csv"]


def test_a_folder_whose_name_is_no_text(tmp_path: Path) -> None:
    folder = tmp_path / "\udcff"
    folder.mkdir()
    write_stream(folder, minutes=5)
    assert_sentence(call(folder, *PUBLISH))
    assert names(folder) == ["events.csv", "users.csv"]


def test_an_output_in_a_folder_whose_name_is_no_text(folder: Path) -> None:
    odd = folder / "\udcff"
    odd.mkdir()
    (folder / "link").symlink_to(odd)
    for minutes in (3, 5):
        assert publish(folder, minutes, out="link/out.ndjson").code == 0
    assert (odd / "out.ndjson").read_bytes().count(b"\n") == 5


def make_device(path: Path) -> None:
    os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 7))


def make_socket(path: Path) -> None:
    before = Path.cwd()
    os.chdir(path.parent)  # the whole path may be too long for a socket
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(path.name)
    os.chdir(before)


def make_link(path: Path) -> None:
    path.symlink_to("somewhere.journal")


def make_link_to_a_file(path: Path) -> None:
    path.with_name("file").write_bytes(b"kept")
    path.symlink_to("file")


KINDS: dict[str, Callable[[Path], None]] = {
    "folder": Path.mkdir,
    "pipe": os.mkfifo,
    "socket": make_socket,
    "symbolic link": make_link,
    "symbolic link to a file": make_link_to_a_file,
}
if os.geteuid() == 0:
    KINDS["device"] = make_device


@pytest.mark.parametrize("kind", KINDS)
def test_a_backup_replaces_files_only(folder: Path, kind: str) -> None:
    assert publish(folder, 3).code == 0
    KINDS[kind](folder / "target")
    before = (folder / "target").lstat(), names(folder)
    done = call(folder, "backup", "run.journal", "target", "--force")
    assert_sentence(done)
    assert f"a {kind.removesuffix(' to a file')} (" in done.err
    after = (folder / "target").lstat()
    assert (stat.S_IFMT(after.st_mode), after.st_ino) == (stat.S_IFMT(before[0].st_mode), before[0].st_ino)
    assert names(folder) == before[1]
    (folder / "old").write_text("old")
    assert call(folder, "backup", "run.journal", "old", "--force").code == 0


def test_a_configuration_that_is_no_file_is_not_opened(folder: Path) -> None:
    os.mkfifo(folder / "pipe.toml")
    child = start(folder, "publish", "--config", "pipe.toml")
    try:
        out, err = child.communicate(timeout=PATIENCE_S)  # whoever opens it waits for ever
        assert_sentence(Done(child.returncode, out, err))
    finally:
        child.kill()
    if os.geteuid() == 0:
        os.mknod(folder / "zero.toml", stat.S_IFCHR | 0o600, os.makedev(1, 5))
        assert_sentence(call(folder, "publish", "--config", "zero.toml"))
    (folder / "folder.toml").mkdir()
    assert_sentence(call(folder, "publish", "--config", "folder.toml"))


def test_a_configuration_without_end_is_not_read_whole(folder: Path) -> None:
    with (folder / "large.toml").open("wb") as file:
        file.truncate(1 << 40)  # a hole: nothing of it is on disk
    done = call(folder, "publish", "--config", "large.toml")
    assert_sentence(done)
    assert "longer than 1,048,576 bytes" in done.err


def test_a_link_that_was_there_before_a_failing_start_stays(folder: Path) -> None:
    (folder / "run.journal").symlink_to("run.journal")
    assert_sentence(call(folder, *PUBLISH))
    assert os.readlink(folder / "run.journal") == "run.journal"
    assert names(folder) == ["events.csv", "run.journal", "users.csv"]


def test_a_link_that_leads_to_no_file_yet_stays_and_its_file_goes(folder: Path) -> None:
    (folder / "run.journal").symlink_to("real.journal")
    assert_sentence(call(folder, *PUBLISH, "--user-column", "person"))
    assert os.readlink(folder / "run.journal") == "real.journal"
    assert names(folder) == ["events.csv", "run.journal", "users.csv"]
    assert call(folder, *PUBLISH).code == 0
    assert "real.journal" in names(folder)


@pytest.mark.parametrize("user", ["x" * 257, "ä" * 129])
def test_nobody_is_registered_under_an_id_that_no_event_can_have(folder: Path, user: str) -> None:
    assert publish(folder, 3).code == 0
    done = call(folder, "users", "run.journal", "add", user, "--window", "4", "--epsilon", "0.5")
    assert_sentence(done)
    assert "1 to 256 bytes" in done.err
    fits = call(folder, "users", "run.journal", "add", "x" * 256, "--window", "4", "--epsilon", "0.5")
    assert fits.code == 0


class TestReports:
    """What was done is not called undone because it could not be reported."""

    def said(self, folder: Path, *command: str) -> str:
        with Path("/dev/full").open("wb") as full:
            done = run(folder, *command, stdout=full)
        assert_sentence(done)
        assert "run the same command again" not in done.err
        assert "do not run the command again" in done.err
        return done.err

    def test_users(self, folder: Path) -> None:
        assert publish(folder, 3).code == 0
        said = self.said(folder, "users", "run.journal", "add", "n1", "--window", "4", "--epsilon", "0.5")
        assert "The change was made" in said
        assert "in force from slot 4 on" in said
        assert "n1 " in call(folder, "users", "run.journal", "list").out

    def test_backup_and_restore(self, folder: Path) -> None:
        assert publish(folder, 3).code == 0
        assert "through slot 3" in self.said(folder, "backup", "run.journal", "copy.journal")
        (folder / "run.journal").unlink()
        said = self.said(folder, "restore", "copy.journal", "run.journal", "--released-through", "3")
        assert "was restored" in said
        assert publish(folder, 5).code == 0
