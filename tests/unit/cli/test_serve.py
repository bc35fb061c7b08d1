"""`wevent serve` before it serves: what it needs, and what it refuses. The process itself: tests/service."""

from __future__ import annotations

import importlib.util
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from tests.support import commands
from tests.support.service_process import configure


def test_without_its_packages_it_says_how_to_get_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure(tmp_path)
    found = importlib.util.find_spec

    def without(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name in ("fastapi", "uvloop") else found(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    done = commands.call(tmp_path, "serve", "--config", "wevent.toml")
    assert done.code == 2
    assert done.err.strip().splitlines()[-1] == (
        "Error: Packages of the service are missing: fastapi, uvloop. Install them: pip install 'wevent[serve]'."
    )


@pytest.mark.parametrize(
    ("service", "said"),
    [
        ('lisen = "x"', "'lisen' in [service]"),
        ("max_body_bytes = 1", "max_body_bytes in [service] must be a whole number, at least 1,024"),
        ('url = "nowhere"', "url in [service] must be an address"),
    ],
)
def test_a_mistake_in_its_table_is_found_by_other_commands_too(tmp_path: Path, service: str, said: str) -> None:
    configure(tmp_path, service=service, top='inputs = "-"\n')
    for command in ("serve", "levels"):
        done = commands.call(tmp_path, command, "--config", "wevent.toml")
        assert done.code == 2, command
        assert said in done.err, command


def test_a_journal_is_needed_and_a_place_that_is_one(tmp_path: Path) -> None:
    configure(tmp_path)
    text = (tmp_path / "wevent.toml").read_text()
    (tmp_path / "without.toml").write_text(text.replace('journal = "run.journal"', ""))
    assert "journal must be set" in commands.call(tmp_path, "serve", "--config", "without.toml").err
    assert "HOST:PORT" in commands.call(tmp_path, "serve", "--config", "wevent.toml", "--listen", "8080").err
    done = commands.call(tmp_path, "serve", "--config", "wevent.toml", "--listen", "192.0.2.1:1")
    assert done.code == 2
    assert "The service cannot listen at" in done.err
