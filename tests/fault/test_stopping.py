"""A live publisher that is stopped while its standard input is open: the documented exit code, and no core dump."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import wevent
from tests.support.commands import (
    CLOCK,
    PATIENCE_S,
    PEOPLE,
    close,
    event,
    live,
    run,
    send,
    slots_of,
    start,
    wait_for,
    write_stream,
)

INTERRUPTED = """
import os, signal, sys
loaded = sys.argv.pop(1)
sys.addaudithook(lambda event, told: event == "import" and told[0] == loaded and os.kill(os.getpid(), signal.SIGINT))
from wevent.cli import main
main()
"""
"""The command, interrupted at the moment that it loads a library."""


def begin(folder: Path, *more: str) -> subprocess.Popen[str]:
    """A live run that has published slot 1 and waits for more."""
    folder.mkdir()
    write_stream(folder, minutes=0)
    child = start(
        folder,
        *live("--out", "out.ndjson", *more),
        stdin=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2),
    )
    send(child, event(1, 1), close(60), event(61, 2))
    return child


def test_signals_end_it_with_exit_code_0(tmp_path: Path) -> None:
    signals = [signal.SIGTERM, signal.SIGINT] * 6
    children = [begin(tmp_path / str(number)) for number in range(len(signals))]
    for number, child in enumerate(children):
        wait_for(lambda number=number: slots_of(tmp_path / str(number) / "out.ndjson") == [1], "slot 1")  # type: ignore[misc]
        child.send_signal(signals[number])
    for number, child in enumerate(children):
        assert child.wait(timeout=PATIENCE_S) == 0, number  # its standard input is still open
        assert child.stderr is not None
        err = child.stderr.read()
        assert "Run the same command again to resume" in err
        assert "Fatal" not in err
        assert not list((tmp_path / str(number)).glob("core*"))
        child.communicate()


@pytest.mark.parametrize(
    ("more", "lines"),
    [(("--strict",), ("malformed\n",)), (("--mechanism", "pbx"), ()), (("--requirements", "missing.csv"), ())],
)
def test_errors_end_it_with_exit_code_2(tmp_path: Path, more: tuple[str, ...], lines: tuple[str, ...]) -> None:
    child = begin(tmp_path / "run", *more)
    send(child, *lines)
    assert child.wait(timeout=PATIENCE_S) == 2
    assert child.stderr is not None
    err = child.stderr.read()
    assert err.count("Error:") == 1
    assert "Fatal" not in err
    child.communicate()


def test_a_crash_writes_no_memory(tmp_path: Path) -> None:
    child = begin(tmp_path / "run")
    wait_for(lambda: slots_of(tmp_path / "run" / "out.ndjson") == [1], "slot 1")
    limits = Path(f"/proc/{child.pid}/limits").read_text()
    assert next(line for line in limits.splitlines() if line.startswith("Max core file size")).split()[4] == "0"
    child.send_signal(signal.SIGABRT)
    _, status = os.waitpid(child.pid, 0)
    assert os.WTERMSIG(status) == signal.SIGABRT
    assert not os.WCOREDUMP(status)
    assert not list((tmp_path / "run").glob("core*"))
    child.returncode = -signal.SIGABRT
    child.communicate()


@pytest.mark.parametrize("loaded", ["numpy._core._multiarray_umath", "apsw", "duckdb"])
def test_an_interrupt_while_the_program_is_loaded(tmp_path: Path, loaded: str) -> None:
    write_stream(tmp_path, minutes=0)
    heeding = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731  also if these tests run in the background
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, loaded, *live("--out", "out.ndjson")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(wevent.__file__).parents[1])},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        preexec_fn=heeding,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (130, "Interrupted.\n")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["events.csv", "users.csv"]


def heed_stops() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


SERVED = ("serve", "--slot", "60s", *PEOPLE, "--journal", "run.journal", "--listen", "127.0.0.1:0")


@pytest.mark.parametrize("loaded", ["_multiarray_umath", "apsw", "duckdb"])
@pytest.mark.parametrize("arguments", [live("--out", "out.ndjson"), SERVED], ids=["publish", "serve"])
def test_a_stop_while_the_program_is_loaded(tmp_path: Path, arguments: tuple[str, ...], loaded: str) -> None:
    write_stream(tmp_path, minutes=0)
    child = start(tmp_path, *arguments, stdin=subprocess.PIPE, preexec_fn=heed_stops)
    wait_for(lambda: loaded in Path(f"/proc/{child.pid}/maps").read_text(), loaded)
    child.send_signal(signal.SIGTERM)
    _, err = child.communicate(timeout=60)
    assert (child.returncode, "Traceback" in err) == (0, False), err
    assert "Stopped" in err


def test_a_stop_is_no_success_of_another_command(tmp_path: Path) -> None:
    child = start(tmp_path, "status", "run.journal", preexec_fn=heed_stops)
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=60)
    assert child.returncode in (-signal.SIGTERM, 2)  # 2: there is no journal


STOPPED_AT = """
import importlib, os, signal, sys
module, name = importlib.import_module(sys.argv.pop(1)), sys.argv.pop(1)
real = getattr(module, name)

def stopped(*arguments, **more):
    os.kill(os.getpid(), signal.SIGTERM)
    return real(*arguments, **more)

setattr(module, name, stopped)
from wevent.cli import main
main()
"""


@pytest.mark.parametrize("step", ["open_journal", "check_journal", "resolve", "open_output", "begin", "Publication"])
def test_a_stop_while_a_run_is_prepared(tmp_path: Path, step: str) -> None:
    write_stream(tmp_path, minutes=3)
    end = ("--end", "2026-01-01T00:03:00Z")
    command = ["publish", "events.csv", *CLOCK, *end, *PEOPLE, "--journal", "run.journal", "--out", "out.ndjson"]
    stopped = subprocess.run(
        [sys.executable, "-c", STOPPED_AT, "wevent.publishing.session", step, *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=heed_stops,
    )
    assert stopped.returncode == 0, stopped
    assert "Stopped as asked" in stopped.stderr
    assert slots_of(tmp_path / "out.ndjson") == []
    assert run(tmp_path, *command).code == 0
    assert slots_of(tmp_path / "out.ndjson") == [1, 2, 3]


@pytest.mark.parametrize("step", ["_bind", "due_offset_us"])
def test_a_stop_while_a_service_is_prepared(tmp_path: Path, step: str) -> None:
    write_stream(tmp_path, minutes=0)
    stopped = subprocess.run(
        [sys.executable, "-c", STOPPED_AT, "wevent.service.server", step, *SERVED],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=heed_stops,
    )
    assert (stopped.returncode, stopped.stderr) == (0, "Stopped.\n")


def test_an_interrupt_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    """As in a job that a shell runs in the background."""
    write_stream(tmp_path, minutes=0)
    ignoring = lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)  # noqa: E731
    child = start(tmp_path, *live("--out", "out.ndjson"), stdin=subprocess.PIPE, preexec_fn=ignoring)
    wait_for(lambda: "_multiarray_umath" in Path(f"/proc/{child.pid}/maps").read_text(), "numpy")
    child.send_signal(signal.SIGINT)
    send(child, event(1, 1), close(60))
    child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 0
    assert slots_of(tmp_path / "out.ndjson") == [1]
