"""Commands in process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.commands import RunCommand
from wevent.cli import main


@pytest.fixture
def invoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> RunCommand:
    """Run a command in the temporary folder; return its exit code and what it printed."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        out, err = capfd.readouterr()
        return int(caught.value.code or 0), out, err

    return run
