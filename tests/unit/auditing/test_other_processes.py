"""Audits that run other processes: what hangs is ended and seen, what fails is said, and nothing is left behind."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from wevent.auditing.black_box import command_runs
from wevent.auditing.black_box import own_service as service_module
from wevent.auditing.black_box.box_audit import audit_black_box
from wevent.auditing.black_box.command_process import CommandProcess
from wevent.auditing.black_box.command_runs import CommandRuns
from wevent.auditing.black_box.effort import Effort
from wevent.auditing.black_box.own_service import own_service
from wevent.auditing.black_box.record_pairs import record_pairs
from wevent.auditing.black_box.seen import HUNG
from wevent.errors import InvalidOption

HANGING, SERVICE = "tests.support.broken_by_hanging", "tests.support.broken_service"
ODD, EVERYBODY = "not a time", "time"  # words of one victim's record, and of every file
HANGS_S = 3600.0  # how long what hangs would take
FACTOR = 20  # how much longer than a call that does not hang a call may take


@pytest.fixture(autouse=True)
def _found_by_processes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Processes find the modules of the tests, and their folders are made where the test sees them."""
    root = str(Path(__file__).parents[3])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((root, *filter(None, [os.environ.get("PYTHONPATH")]))))
    (tmp_path / "made").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "made"))
    begun = time.monotonic()
    yield
    assert time.monotonic() - begun < HANGS_S
    assert list((tmp_path / "made").iterdir()) == [], "a folder was left behind"


def _limit_s(folder: Path) -> float:
    """Return a limit that only a call that hangs exceeds, on this machine and with its load of now."""
    (folder / "events.csv").write_text("")
    taken: list[float] = []
    with CommandProcess(HANGING, limit_s=HANGS_S) as process:
        process.call(folder, "publish", "events.csv")  # the first one waits for the process
        for _ in range(5):
            begun = time.monotonic()
            assert process.call(folder, "publish", "events.csv").code == 0
            taken.append(time.monotonic() - begun)
    return max(0.5, FACTOR * max(taken))


@pytest.mark.parametrize("has_fork", [True, False])
def test_a_call_that_hangs_is_ended_and_said_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_fork: bool
) -> None:
    monkeypatch.setenv("WEVENT_HANGS", EVERYBODY)
    if not has_fork:
        monkeypatch.delattr(os, "fork")
    with CommandProcess(HANGING, limit_s=_limit_s(tmp_path)) as process:
        (tmp_path / "events.csv").write_text("time,user,cell\n")
        ended = process.call(tmp_path, "publish", "events.csv")
        assert (ended.code, ended.out) == (None, "begun\n"), "what was said before is seen"
        (tmp_path / "events.csv").write_text("")
        ended = process.call(tmp_path, "publish", "events.csv")
        assert (ended.code, ended.out) == (0, "begun\n"), "the next one is not held up"


def test_a_process_that_hangs_holds_up_no_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEVENT_HANGS", EVERYBODY)
    (tmp_path / "events.csv").write_text("time,user,cell\n")
    process = CommandProcess(HANGING, limit_s=HANGS_S)

    def interrupted() -> None:
        with process:
            server = process._server
            assert server is not None
            assert server.stdin is not None
            call = f'{{"folder": "{tmp_path}", "arguments": ["publish", "events.csv"], "limit_s": 3600}}\n'
            server.stdin.write(call)
            server.stdin.flush()
            while not (tmp_path / "standard-output").exists():
                time.sleep(0.02)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()


def test_a_mechanism_that_hangs_on_one_persons_record_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of the twelve runs that are counted hang with the record, none without it: no chance is in that."""
    monkeypatch.setenv("WEVENT_HANGS", ODD)
    pairs = [pair for pair in record_pairs({}) if "records that are no event" in pair.name]
    monkeypatch.setattr(command_runs, "record_pairs", lambda options: pairs)
    with CommandRuns("uniform", {}, module=HANGING, limit_s=_limit_s(tmp_path)) as runs:
        (finding,) = audit_black_box(runs, Effort(trials=1), seed=1)
    assert finding.broken, finding
    assert HUNG in finding.witness


def test_what_hangs_whatever_it_is_given_is_not_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEVENT_HANGS", EVERYBODY)
    with (
        CommandRuns("uniform", {}, module=HANGING, limit_s=0.5) as runs,
        pytest.raises(
            InvalidOption, match=r"uniform to publish a small file; received a run that did not end within 0\.5 s"
        ),
    ):
        audit_black_box(runs, Effort(trials=1), seed=1)


def test_the_folder_of_runs_that_are_never_begun_is_never_made(tmp_path: Path) -> None:
    CommandRuns("uniform", {})
    assert list((tmp_path / "made").iterdir()) == []


def test_the_folder_of_runs_goes_however_their_process_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise OSError("the process cannot be ended")

    monkeypatch.setattr(CommandProcess, "__enter__", lambda self: self)
    monkeypatch.setattr(CommandProcess, "__exit__", failing)
    with pytest.raises(OSError, match="cannot be ended"), CommandRuns("uniform", {}):
        pass


def test_the_folder_of_runs_goes_if_their_process_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(self: CommandProcess) -> None:
        raise OSError("too many processes")

    monkeypatch.setattr(CommandProcess, "__enter__", failing)
    with pytest.raises(OSError, match="too many processes"), CommandRuns("uniform", {}):
        pass


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("no token", "a token for a service; received no token today"),
        ("no start", "a service that starts; received no port today"),
        ("no address", "a service that starts; received nothing"),
    ],
)
def test_a_service_that_does_not_come_up_is_told_of_and_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, said: str
) -> None:
    _misbehaving(tmp_path, monkeypatch, how)
    begun = tmp_path / "process"
    if how == "no address":  # the time is over as soon as the service runs
        clock = SimpleNamespace(monotonic=lambda: 1e9 * bool(begun.exists() and begun.read_text()), sleep=time.sleep)
        monkeypatch.setattr(service_module, "time", clock)
    with pytest.raises(InvalidOption, match=said), own_service("uniform", {}, module=SERVICE):
        pass
    assert how == "no token" or _is_over(tmp_path)


def test_a_service_may_talk_and_is_killed_if_it_does_not_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _misbehaving(tmp_path, monkeypatch, "no end")
    monkeypatch.setattr(service_module, "_STOP_S", 0.5)
    with pytest.raises(ZeroDivisionError), own_service("uniform", {}, module=SERVICE):
        raise ZeroDivisionError  # what happened in the block is what is told, not how the service stopped
    assert _is_over(tmp_path)


def _misbehaving(folder: Path, patching: pytest.MonkeyPatch, how: str) -> None:
    patching.setenv("WEVENT_MISBEHAVES", how)
    patching.setenv("WEVENT_PROCESS", str(folder / "process"))


def _is_over(folder: Path) -> bool:
    try:
        os.kill(int((folder / "process").read_text()), 0)
    except ProcessLookupError:
        return True
    return False
