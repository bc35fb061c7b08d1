"""A live publisher that is stopped while its standard input is open: the documented exit code, and no core dump."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.commands import close, event, live, send, slots_of, start, wait_for, write_stream


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
        assert child.wait(timeout=60) == 0, number  # its standard input is still open
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
    assert child.wait(timeout=60) == 2
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


@pytest.mark.parametrize("loaded", ["_multiarray_umath", "apsw", "duckdb"])
def test_an_interrupt_while_the_program_is_loaded(tmp_path: Path, loaded: str) -> None:
    write_stream(tmp_path, minutes=0)
    heeding = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731  also if these tests run in the background
    child = start(tmp_path, *live("--out", "out.ndjson"), stdin=subprocess.PIPE, preexec_fn=heeding)
    wait_for(lambda: loaded in Path(f"/proc/{child.pid}/maps").read_text(), loaded)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (130, "Interrupted.\n")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["events.csv", "users.csv"]


def test_an_interrupt_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    """As in a job that a shell runs in the background."""
    write_stream(tmp_path, minutes=0)
    ignoring = lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)  # noqa: E731
    child = start(tmp_path, *live("--out", "out.ndjson"), stdin=subprocess.PIPE, preexec_fn=ignoring)
    wait_for(lambda: "_multiarray_umath" in Path(f"/proc/{child.pid}/maps").read_text(), "numpy")
    child.send_signal(signal.SIGINT)
    send(child, event(1, 1), close(60))
    child.communicate(timeout=60)
    assert child.returncode == 0
    assert slots_of(tmp_path / "out.ndjson") == [1]
