"""`make serve` without make: the service and the city come up, live, and end together at one Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import wevent
from tests.support.commands import PATIENCE_S
from wevent.client import Client

pytestmark = pytest.mark.slow


def free_port() -> int:
    with socket.socket() as trying:
        trying.bind(("127.0.0.1", 0))
        return int(trying.getsockname()[1])


def start(folder: Path, port: int, **more: Any) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        str(Path(__file__).parents[2] / "examples/live_city.py"),
        "--port",
        str(port),
        "--users",
        "900",
        "--day",
        "120",
    ]
    environment = {**os.environ, "PYTHONPATH": str(Path(wevent.__file__).parents[1])}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(command, cwd=folder, env=environment, text=True, start_new_session=True, **pipes, **more)  # type: ignore[call-overload,no-any-return]


@pytest.fixture
def port() -> int:
    return free_port()


def test_the_city_lives_and_ends(tmp_path: Path, port: int) -> None:
    city = start(tmp_path, port)
    try:
        assert city.stdout is not None
        said = ""
        for line in city.stdout:
            said += line
            if "Stop with Ctrl-C." in line:
                break
        url = f"http://127.0.0.1:{port}"
        assert f"{url}/\n" in said
        link = re.search(r"/choose#(wel_\S+)", said)
        assert link, said
        token = tmp_path / "demo-serve" / "admin.token"
        assert token.stat().st_mode & 0o777 == 0o600
        with Client(url, token=token.read_text().strip()) as client, Client(url, token=link[1]) as own:
            releases = client.stream(after=0)
            assert next(releases).outcome == "fresh"
            next(one for one in releases if sum(one.by_cell().values()) > 100)  # hundreds of 900 people are on the map
            assert own.requirement().requirement.level is not None
            assert client.overview()["members"] == 900  # who enrolled before the first slot is in force now
    finally:
        os.killpg(city.pid, signal.SIGINT)
        rest, _ = city.communicate(timeout=PATIENCE_S)
    assert city.returncode == 0, rest
    assert rest.rstrip().endswith("Stopped. The next `make serve` makes another city.")
    assert "Traceback" not in rest
    with socket.socket() as trying:
        trying.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        trying.bind(("127.0.0.1", port))  # nobody listens there any more


def ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@pytest.mark.parametrize("asking", [signal.SIGINT, signal.SIGTERM])
def test_a_city_that_a_script_started_ends_when_it_is_asked_to(tmp_path: Path, port: int, asking: int) -> None:
    """A shell without job control starts `make serve &` with SIGINT ignored."""
    city = start(tmp_path, port, preexec_fn=ignore_interrupts)
    try:
        assert city.stdout is not None
        assert any("Stop with Ctrl-C." in line for line in city.stdout)
        city.send_signal(asking)
        rest, _ = city.communicate(timeout=PATIENCE_S)
    finally:
        city.kill()
    assert city.returncode == 0, rest
    assert "Stopped." in rest
    with socket.socket() as trying:
        trying.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        trying.bind(("127.0.0.1", port))  # nor does the service listen any more


def test_a_taken_port_is_a_sentence(tmp_path: Path, port: int) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        said, _ = start(tmp_path, port).communicate(timeout=PATIENCE_S)
    assert "cannot be used" in said
    assert f"make serve PORT={port + 1}" in said
    assert "Traceback" not in said
    assert not (tmp_path / "demo-serve").exists()
