"""What only an application of its own shows: one that encrypts nothing, and how it looks when a batch is interrupted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import wevent
from tests.support.commands import PATIENCE_S

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    folder = tmp_path_factory.mktemp("application")
    environment = {**os.environ, "PYTHONPATH": f"{Path(wevent.__file__).parents[1]}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "tests.spark.stopped_process", str(folder)]
    found = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=6 * PATIENCE_S, check=False
    )
    assert found.returncode == 0, found.stderr[-3000:]
    return found


def test_an_application_that_encrypts_nothing_is_refused(done: subprocess.CompletedProcess[str]) -> None:
    called, command, allowed, _ = map(json.loads, done.stdout.splitlines())
    assert "people's events would stay on disk" in called["publish"]
    assert "unencrypted=True" in called["publish"]
    assert called["left"] == ["in"], "nothing was begun"
    assert command["code"] == 2
    assert "in shuffles and spills. Stop it first" in command["said"]
    assert "Traceback" not in command["said"]
    assert allowed == {"allowed": True}


def test_a_stop_in_the_middle_of_a_batch_is_no_failure(done: subprocess.CompletedProcess[str]) -> None:
    """Spark searches what Python says of an interruption, letter by letter: a page of Java's is more than its stack takes."""
    assert json.loads(done.stdout.splitlines()[-1]) == {"active": False, "exception": None}
    assert "StackOverflowError" not in done.stderr
