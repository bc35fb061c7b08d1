"""What tests break and end things with: one of each, and it does what it says."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.support.executioner import Executioner

TESTS = Path(__file__).parents[2]


def test_there_is_one_executioner() -> None:
    found = [path.name for path in TESTS.rglob("*.py") if "\nclass Executioner" in path.read_text(encoding="utf-8")]
    assert found == ["executioner.py"]


@pytest.fixture
def signals(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    sent: list[int] = []
    monkeypatch.setattr(os, "kill", lambda process, number: sent.append(number))
    return sent


def test_the_executioner_waits_for_the_step_and_its_number(tmp_path: Path, signals: list[int]) -> None:
    at = Executioner(tmp_path / "sentence")
    at("committed")
    (tmp_path / "sentence").write_text("committed:2")
    for step in ("committed", "emitted", "written ahead"):
        at(step)
    assert signals == []
    at("committed")
    assert signals == [signal.SIGKILL]


def test_the_executioner_stops_a_process_once(tmp_path: Path, signals: list[int]) -> None:
    at = Executioner(tmp_path / "sentence")
    (tmp_path / "sentence").write_text("committed:1:stop")
    for _ in range(3):
        at("committed")
    assert signals == [signal.SIGSTOP]


def test_a_sentence_that_is_taken_back_meanwhile_is_none(
    tmp_path: Path, signals: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "exists", lambda self: True)  # it was there a moment ago
    Executioner(tmp_path / "sentence")("committed")
    assert signals == []
