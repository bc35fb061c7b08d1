"""SIGKILL at every labelled step and at random moments: every byte ever emitted for a slot is the same (spec 10)."""

from __future__ import annotations

import json
import os
import platform
import time
from pathlib import Path

import pytest

from tests.fault.broken import DropsCharges, EmitsBeforeCommit, StoresChargesApart
from tests.fault.killing import STEPS, Broken, Rounds, random_rounds, warm_up

KILLS = int(os.environ.get("WEVENT_KILLS", "60"))
RESULT = os.environ.get("WEVENT_SOAK_RESULT")


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    warm_up()


def kill_and_finish(rounds: Rounds, step: str) -> None:
    rounds.killed_at(step, 2, 10)
    rounds.finish(30)


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("step", STEPS)
def test_killed_at_a_labelled_step(tmp_path: Path, step: str, batch: int) -> None:
    rounds = Rounds(tmp_path, batch=batch)
    rounds.killed_at(step, 1, 6)
    rounds.killed_at(step, 2, 14)
    rounds.finish(20)


def test_killed_many_times(tmp_path: Path) -> None:
    begun = time.time()
    parts = max(1, KILLS // 50)  # a new stream now and then, so that early and late slots are both killed
    killed = midway = slots = 0
    for part in range(parts):
        folder = tmp_path / str(part)
        folder.mkdir()
        rounds = Rounds(folder, batch=1 + part % 3)
        slots += random_rounds(rounds, KILLS // parts, seed=part)
        killed, midway = killed + rounds.killed, midway + rounds.killed_midway
    assert killed >= KILLS // parts * parts
    assert midway > killed // 4  # enough of them died after emitting something in the same round
    if RESULT:
        result = {
            "command": "make soak",
            "kills": killed,
            "kills_after_an_emitted_slot_of_the_same_round": midway,
            "slots": slots,
            "streams": parts,
            "seconds": round(time.time() - begun, 1),
            "python": platform.python_version(),
            "outcome": "every slot exactly once, every emitted byte stored, every audit clean",
        }
        Path(RESULT).write_text(json.dumps(result, indent=2) + "\n")


@pytest.mark.parametrize("step", STEPS)
def test_standard_output_may_repeat_slots_with_the_same_bytes_only(tmp_path: Path, step: str) -> None:
    rounds = Rounds(tmp_path, batch=2, stream=True)
    rounds.killed_at(step, 2, 9)
    rounds.finish(12)


def test_emitting_before_the_commit_is_caught(tmp_path: Path) -> None:
    def attempts() -> None:
        for attempt in range(5):  # two draws may agree by chance
            folder = tmp_path / str(attempt)
            folder.mkdir()
            kill_and_finish(Rounds(folder, publication=EmitsBeforeCommit, stream=True), "emitted")

    with pytest.raises(Broken, match="different bytes"):
        attempts()


def test_an_output_ahead_of_its_journal_stops_the_next_run(tmp_path: Path) -> None:
    rounds = Rounds(tmp_path, publication=EmitsBeforeCommit)
    rounds.killed_at("emitted", 3, 10)
    with pytest.raises(Broken, match="failed by itself"):
        rounds.finish(12)


def test_dropping_the_charges_is_caught(tmp_path: Path) -> None:
    rounds = Rounds(tmp_path, journal=DropsCharges)
    with pytest.raises(Broken):
        kill_and_finish(rounds, "committed")


def test_charges_in_a_transaction_of_their_own_are_caught(tmp_path: Path) -> None:
    rounds = Rounds(tmp_path, journal=StoresChargesApart)
    with pytest.raises(Broken):
        kill_and_finish(rounds, "charges apart")
