"""What a newcomer runs into first: each mistake is one sentence, exit code 2, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import wevent
from wevent.cli.group import cli
from wevent.errors import WeventError

pytestmark = pytest.mark.slow


@pytest.fixture
def example(tmp_path: Path) -> Path:
    assert run("init", tmp_path / "city").exit_code == 0
    return tmp_path / "city"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


@pytest.mark.parametrize(
    "mistake",
    [("--mechanism", "pfd"), ("--user-column", "nope"), ("--out", "releases.xlsx"), ("--slot", "0s")],
)
def test_a_first_run_that_fails_pins_nothing(example: Path, mistake: tuple[str, str]) -> None:
    failed = run("publish", "--config", example / "wevent.toml", *mistake)
    assert isinstance(failed.exception, WeventError)  # `main` turns it into one sentence and exit code 2
    assert list(example.glob("run.journal*")) == []
    assert run("publish", "--config", example / "wevent.toml").exit_code == 0
    assert run("verify", example / "run.journal").exit_code == 0


def test_a_journal_that_has_slots_survives_a_mistake(example: Path) -> None:
    assert run("publish", "--config", example / "wevent.toml").exit_code == 0
    failed = run("publish", "--config", example / "wevent.toml", "--slot", "30m")
    assert "slot ('5 minutes' in the journal, '30 minutes' now)" in str(failed.exception)
    assert run("verify", example / "run.journal").exit_code == 0


def test_who_left_can_still_be_erased(example: Path) -> None:
    assert run("publish", "--config", example / "wevent.toml").exit_code == 0
    journal, user = example / "run.journal", (example / "requirements.csv").read_text().split("\n")[1].split(",")[0]
    assert run("users", journal, "remove", user).exit_code == 0
    assert run("users", journal, "erase", user).exit_code == 0
    again = run("users", journal, "erase", user)
    assert isinstance(again.exception, WeventError)


@pytest.mark.parametrize("command", [("status",), ("releases",), ("verify",)])
def test_a_folder_is_no_journal(tmp_path: Path, command: tuple[str, ...]) -> None:
    failed = run(*command, tmp_path)
    assert isinstance(failed.exception, WeventError)
    assert "Traceback" not in failed.output


@pytest.mark.parametrize("command", [("compare",), ("demo",)])
def test_a_picture_has_a_picture_s_ending(command: tuple[str, ...]) -> None:
    failed = run(*command, "--plot", "x.foo")
    assert failed.exit_code == 2
    assert "ending in .png" in failed.output


def test_the_package_is_the_command(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(wevent.__file__).parents[1])}
    command = [sys.executable, "-m", "wevent", "--version"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert wevent.__version__ in done.stdout
